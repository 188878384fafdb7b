/* json_write.c - tests of the JSON writer: commas, brackets, escapes, failing sinks. */
#include "test_alloc.h"

#include <cfx/embed/base.h>
#include <math.h>
#include <string.h>

/* What `write` makes of an empty writer. Good until the next call. */
static const char *written(void (*write)(cfx_json *j), bool compact)
{
    static char out[300];
    cfx_buffer text;
    cfx_json j;
    cfx_buffer_init(&text, NULL);
    cfx_json_begin(&j, cfx_buffer_sink(&text), compact);
    write(&j);
    CHECK_INT_EQ(CFX_OK, j.status);
    CHECK(text.size < sizeof out);
    snprintf(out, sizeof out, "%s", text.data);
    cfx_buffer_free(&text);
    return out;
}

/* ---- commas and lines ---------------------------------------------------------------------- */

static void write_sample(cfx_json *j)
{
    cfx_json_open(j, '{');
    cfx_json_field(j, "a");
    cfx_json_int(j, -3);
    cfx_json_field(j, "b");
    cfx_json_open(j, '[');
    cfx_json_close(j, ']');
    cfx_json_key(j, "c d", 3);
    cfx_json_open(j, '[');
    cfx_json_float(j, 0.5);
    cfx_json_null(j);
    cfx_json_open(j, '{');
    cfx_json_close(j, '}');
    cfx_json_string(j, "xy", 1);
    cfx_json_close(j, ']');
    cfx_json_field(j, "e");
    cfx_json_bool(j, true);
    cfx_json_close(j, '}');
}

TEST(commas_and_colons)
{
    CHECK_STR_EQ("{\"a\": -3, \"b\": [], \"c d\": [0.5, null, {}, \"x\"], \"e\": true}",
                 written(write_sample, false));
}

TEST(without_spaces)
{
    CHECK_STR_EQ("{\"a\":-3,\"b\":[],\"c d\":[0.5,null,{},\"x\"],\"e\":true}",
                 written(write_sample, true));
}

static void write_lines(cfx_json *j)
{
    cfx_json_open(j, '[');
    for (int i = 0; i < 2; i++) {
        cfx_json_line(j);
        cfx_json_open(j, '[');
        cfx_json_int(j, i);
        cfx_json_int(j, i);
        cfx_json_close(j, ']');
    }
    cfx_json_line(j);
    cfx_json_close(j, ']');
}

TEST(items_on_lines_of_their_own)
{
    CHECK_STR_EQ("[\n [0, 0],\n [1, 1]\n]", written(write_lines, false));
    CHECK_STR_EQ("[\n [0,0],\n [1,1]\n]", written(write_lines, true));
}

static void write_nothing(cfx_json *j) { (void)j; }

TEST(nothing) { CHECK_STR_EQ("", written(write_nothing, false)); }

/* ---- values -------------------------------------------------------------------------------- */

static void write_numbers(cfx_json *j)
{
    cfx_json_open(j, '[');
    cfx_json_int(j, INT64_MIN);
    cfx_json_int(j, INT64_MAX);
    cfx_json_uint(j, 0);
    cfx_json_uint(j, UINT64_MAX);
    cfx_json_float(j, 1e-05);
    cfx_json_float(j, 2);
    cfx_json_float(j, INFINITY);
    cfx_json_float(j, -INFINITY);
    cfx_json_float(j, NAN);
    cfx_json_raw(j, "123456789012345678901234567890", 30);
    cfx_json_close(j, ']');
}

TEST(numbers)
{
    CHECK_STR_EQ("[-9223372036854775808, 9223372036854775807, 0, 18446744073709551615, 1e-05, 2.0, "
                 "null, null, null, 123456789012345678901234567890]",
                 written(write_numbers, false));
}

static void write_words(cfx_json *j)
{
    cfx_json_open(j, '[');
    cfx_json_bool(j, false);
    cfx_json_text(j, "a");
    cfx_json_text(j, "");
    cfx_json_text(j, NULL);
    cfx_json_close(j, ']');
}

TEST(words) { CHECK_STR_EQ("[false, \"a\", \"\", null]", written(write_words, false)); }

/* A lone string. Good until the next call. */
static const char *quoted(const char *text, size_t size)
{
    static char out[100];
    cfx_buffer buffer;
    cfx_json j;
    cfx_buffer_init(&buffer, NULL);
    cfx_json_begin(&j, cfx_buffer_sink(&buffer), false);
    cfx_json_string(&j, text, size);
    CHECK_INT_EQ(CFX_OK, j.status);
    snprintf(out, sizeof out, "%s", buffer.data);
    cfx_buffer_free(&buffer);
    return out;
}

TEST(escapes)
{
    CHECK_STR_EQ("\"\"", quoted("", 0));
    CHECK_STR_EQ("\"a\\\"b\\\\c\\nd\\u0009\\u007f\"", quoted("a\"b\\c\nd\t\x7f", 9));
    CHECK_STR_EQ("\"\\u0000\"", quoted("\0", 1));
    CHECK_STR_EQ("\"\xc3\xa9 \xf0\x9f\x98\x80\"", quoted("\xc3\xa9 \xf0\x9f\x98\x80", 7));
    CHECK_STR_EQ("\"\\ud800\"", quoted("\xed\xa0\x80", 3)); /* a lone surrogate */
    CHECK_STR_EQ("\"\\ufffdx\"", quoted("\xffx", 2));
    CHECK_STR_EQ("\"x\\ufffd\"", quoted("x\xc3", 2)); /* cut in a character */
}

static void write_escaped_key(cfx_json *j)
{
    cfx_json_open(j, '{');
    cfx_json_field(j, "\"");
    cfx_json_bool(j, false);
    cfx_json_key(j, "\n", 1);
    cfx_json_text(j, "\\");
    cfx_json_close(j, '}');
}

TEST(keys_are_escaped)
{
    CHECK_STR_EQ("{\"\\\"\": false, \"\\n\": \"\\\\\"}", written(write_escaped_key, false));
}

static void write_nested(cfx_json *j)
{
    cfx_json_open(j, '[');
    for (int i = 0; i < 2; i++) {
        cfx_json inner;
        cfx_json_begin(&inner, cfx_json_value_sink(j), true);
        cfx_json_open(&inner, '[');
        cfx_json_int(&inner, i);
        cfx_json_int(&inner, i);
        cfx_json_close(&inner, ']');
        CHECK_INT_EQ(CFX_OK, inner.status);
    }
    cfx_json_null(j);
    cfx_json_close(j, ']');
}

TEST(a_writer_in_a_writer)
{
    CHECK_STR_EQ("[[0,0], [1,1], null]", written(write_nested, false));
}

/* ---- failures ------------------------------------------------------------------------------ */

/* Takes `left` bytes. */
typedef struct full {
    size_t left;
    size_t calls_after;
    bool failed;
} full;

static cfx_status write_full(void *ctx, const char *data, size_t size)
{
    full *f = ctx;
    (void)data;
    f->calls_after += f->failed;
    f->failed = f->failed || size > f->left;
    f->left -= f->failed ? 0 : size;
    return f->failed ? CFX_E_IO : CFX_OK;
}

/* Wherever it fails, the status stays and the sink is left alone. */
TEST(the_first_failure_stays)
{
    const size_t whole = strlen(written(write_sample, false));
    for (size_t room = 0; room <= whole; room++) {
        full f = {.left = room};
        cfx_json j;
        cfx_json_begin(&j, (cfx_sink){write_full, &f}, false);
        write_sample(&j);
        CHECK_INT_EQ(room < whole ? CFX_E_IO : CFX_OK, j.status);
        CHECK_INT_EQ(0, f.calls_after);
    }
}

TEST(a_failure_of_the_inner_writer_reaches_the_outer)
{
    full f = {.left = 3};
    cfx_json j;
    cfx_json_begin(&j, (cfx_sink){write_full, &f}, false);
    cfx_json_open(&j, '[');
    const cfx_sink sink = cfx_json_value_sink(&j);
    CHECK_INT_EQ(CFX_OK, sink.write(sink.ctx, "12", 2));
    CHECK_INT_EQ(CFX_E_IO, sink.write(sink.ctx, "34", 2));
    CHECK_INT_EQ(CFX_E_IO, sink.write(sink.ctx, "5", 1));
    CHECK_INT_EQ(CFX_E_IO, j.status);
    CHECK_INT_EQ(0, f.calls_after);
}

TEST(an_empty_sink)
{
    cfx_json j;
    cfx_json_begin(&j, (cfx_sink){NULL, NULL}, false);
    CHECK_INT_EQ(CFX_OK, j.status);
    write_sample(&j);
    CHECK_INT_EQ(CFX_E_VALUE, j.status);
}

static cfx_status write_long(const cfx_allocator *a, void *arg)
{
    cfx_buffer text;
    cfx_json j;
    (void)arg;
    cfx_buffer_init(&text, a);
    cfx_json_begin(&j, cfx_buffer_sink(&text), false);
    cfx_json_open(&j, '[');
    for (int i = 0; i < 5000; i++)
        cfx_json_int(&j, i);
    cfx_json_close(&j, ']');
    cfx_buffer_free(&text);
    return j.status;
}

TEST(out_of_memory) { CHECK(test_oom_sweep(write_long, NULL) > 1); }
