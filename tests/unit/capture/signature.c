/* signature.c - signature.ir: what is read, what is refused, what inputs agree with. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/cfx.h>

#define DICT(fields) "graph():\n  output({" fields "})\n"

static const char whole[] =
    DICT("\"inputs\": [(\"x\", \"tensor\", torch.float32, (\"n\", 3)), (\"scale\", \"float\"),"
         " (\"y\", \"any\"), (\"z\", \"tensor\", None, None)],"
         " \"state\": [(\"calls\", \"int\", 7),"
         " (\"cache.keys[0]\", \"tensor\", torch.int64, (None, 8)),"
         " (\"rate\", \"float\", 0.5), (\"on\", \"bool\", True)],"
         " \"results\": [(\"result.logits\", False), (\"calls\", True)],"
         " \"guards\": \"size program \\\"model.py:12\\\": x.shape[0] * 2 > 7 is True\\n\","
         " \"structure\": {\"anything\": [(1, 2)]}");

static cfx_signature *parse(const char *text, cfx_error *err)
{
    return cfx_signature_parse(text, strlen(text), NULL, err);
}

static cfx_datum tensor(cfx_dtype dtype, int64_t a, int64_t b)
{
    return cfx_datum_tensor(cfx_tensor_new(dtype, (int64_t[]){a, b}, 2, NULL, NULL));
}

TEST(a_signature_is_read)
{
    cfx_error err = {0};
    cfx_signature_input in;
    cfx_signature_result out;
    cfx_buffer text;
    cfx_signature *s = parse(whole, &err);
    if (!CHECK(s != NULL))
        printf("    got  %s\n", err.message);
    REQUIRE(s != NULL);
    CHECK_INT_EQ(4, cfx_signature_num_arguments(s));
    REQUIRE(cfx_signature_input_at(s, 0, &in));
    CHECK_STR_EQ("x", in.name);
    CHECK_INT_EQ(CFX_DATUM_TENSOR, in.kind);
    CHECK_INT_EQ(CFX_DTYPE_FLOAT32, in.dtype);
    CHECK_INT_EQ(2, in.rank);
    CHECK_INT_EQ(-1, in.sizes[0]);
    CHECK_INT_EQ(3, in.sizes[1]);
    CHECK_STR_EQ("n", in.dims[0]);
    CHECK(in.dims[1] == NULL && !in.state);
    REQUIRE(cfx_signature_input_at(s, 3, &in));
    CHECK_INT_EQ(CFX_DTYPE_COUNT, in.dtype);
    CHECK_INT_EQ(-1, in.rank);
    REQUIRE(cfx_signature_input_at(s, 4, &in));
    CHECK(in.state && in.kind == CFX_DATUM_INT);
    CHECK(!cfx_signature_input_at(s, 8, &in));
    REQUIRE(cfx_signature_result_at(s, 1, &out));
    CHECK(out.state && strcmp(out.name, "calls") == 0);
    CHECK(!cfx_signature_result_at(s, 2, &out));
    cfx_buffer_init(&text, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_signature_print(s, cfx_buffer_sink(&text), &err));
    CHECK_STR_EQ("x: float32[n, 3]\nscale: float\ny: any\nz: tensor\ncalls: int (state, first 7)\n"
                 "cache.keys[0]: int64[?, 8] (state)\nrate: float (state, first 0.5)\n"
                 "on: bool (state, first True)\n-> result.logits, calls (state)\n"
                 "assumes x.shape[0] * 2 > 7 is True, asked at model.py:12\n", text.data);
    cfx_buffer_free(&text);
    cfx_signature_free(s);
}

static void check_refuses(const cfx_signature *s, cfx_datum *values, size_t i, cfx_datum wrong,
                          const char *message)
{
    cfx_error err = {0};
    const cfx_datum right = values[i];
    values[i] = wrong;
    CHECK_INT_EQ(CFX_E_ASSERTION, cfx_signature_check(s, values, 8, &err));
    CHECK_STR_EQ(message, err.message);
    values[i] = right;
    if (wrong.kind == CFX_DATUM_TENSOR)
        cfx_datum_release(wrong);
}

TEST(inputs_are_checked)
{
    cfx_error err = {0};
    cfx_signature *s = parse(whole, &err);
    cfx_datum values[8] = {tensor(CFX_DTYPE_FLOAT32, 4, 3), cfx_datum_float(1), cfx_datum_none(),
                           tensor(CFX_DTYPE_BOOL, 1, 1), cfx_datum_int(0),
                           tensor(CFX_DTYPE_INT64, 1, 8), cfx_datum_float(1), cfx_datum_bool(true)};
    REQUIRE(s != NULL);
    CHECK_INT_EQ(CFX_OK, cfx_signature_check(s, values, 8, &err));
    check_refuses(s, values, 0, tensor(CFX_DTYPE_FLOAT32, 4, 2),
                  "the input 'x' must be float32[n, 3]; got float32[4, 2]");
    check_refuses(s, values, 0, tensor(CFX_DTYPE_FLOAT64, 4, 3),
                  "the input 'x' must be float32[n, 3]; got float64[4, 3]");
    check_refuses(s, values, 0, tensor(CFX_DTYPE_FLOAT32, 3, 3),
                  "x.shape[0] * 2 > 7 was True at model.py:12 when the model was captured");
    check_refuses(s, values, 1, cfx_datum_int(2), "the input 'scale' must be float; got int 2");
    check_refuses(s, values, 4, cfx_datum_float(2), "the state 'calls' must be int; got float 2.0");
    CHECK_INT_EQ(CFX_E_ASSERTION, cfx_signature_check(s, values, 7, &err));
    const cfx_datum x = values[0];
    values[0] = cfx_datum_invalid();  /* its default: nothing is known of it */
    CHECK_INT_EQ(CFX_OK, cfx_signature_check(s, values, 8, &err));
    values[0] = x;
    for (size_t i = 0; i < 8; i++)
        cfx_datum_release(values[i]);
    cfx_signature_free(s);
}

/* Each is valid IR text; the message names the part that is wrong. */
TEST(wrong_signatures_are_refused)
{
    static const struct { const char *text; const char *message; } rows[] = {
        {"graph():\n  output(1)\n", "not a dict"},
        {"graph():\n  %x = placeholder[target=x]()\n  output(%x)\n", "not a dict"},
        {DICT(""), "inputs must be a list"},
        {DICT("\"inputs\": 3"), "inputs must be a list"},
        {DICT("\"inputs\": [3]"), "inputs[0] is not a tuple of a name"},
        {DICT("\"inputs\": [(\"x\",)]"), "inputs[0] is not a tuple of a name"},
        {DICT("\"inputs\": [(\"x\", \"any\"), (3, \"any\")]"), "inputs[1] is not a tuple"},
        {DICT("\"inputs\": [(\"x\", \"matrix\")]"), "inputs[0] is of the unknown kind 'matrix'"},
        {DICT("\"inputs\": [(\"x\", \"tensor\")]"), "inputs[0] is a tensor without a type"},
        {DICT("\"inputs\": [(\"x\", \"tensor\", 3, None)]"), "neither a dtype nor None"},
        {DICT("\"inputs\": [(\"x\", \"tensor\", None, 3)]"), "sizes that are not a tuple"},
        {DICT("\"inputs\": [(\"x\", \"tensor\", None, (-1,))]"), "a size that is not a number"},
        {DICT("\"inputs\": [(\"x\", \"tensor\", None, (((((1,),),),),))]"), "a size that is not"},
        {DICT("\"inputs\": [(\"x\", \"tensor\", None, (1, 1, 1, 1, 1, 1, 1, 1, 1))]"),
         "has 9 dimensions; at most 8"},
        {DICT("\"inputs\": [(\"x\", \"any\"), (\"x\", \"int\")]"), "two inputs are called 'x'"},
        {DICT("\"inputs\": [(\"\", \"any\")]"), "is empty"},
        {DICT("\"inputs\": [], \"state\": 1"), "state must be a list"},
        {DICT("\"inputs\": [], \"state\": [(\"c\", \"int\")]"), "state[0] is state"},
        {DICT("\"inputs\": [], \"state\": [(\"c\", \"int\", 0.5)]"), "state without a first value"},
        {DICT("\"inputs\": [], \"state\": [(\"c\", \"any\", 1)]"), "state without a first value"},
        {DICT("\"inputs\": [], \"results\": 1"), "results must be None or a list"},
        {DICT("\"inputs\": [], \"results\": [(\"c\", 1)]"), "results[0] is not a tuple"},
        {DICT("\"inputs\": [], \"slots\": [(\"c\", \"a\")]"), "slots[0] is not a path and texts"},
        {DICT("\"inputs\": [], \"slots\": [(\"c\", None, 1)]"), "slots[0] is not a path and texts"},
        {DICT("\"inputs\": [], \"present\": [3]"), "present[0] is not a path and texts"},
        {DICT("\"inputs\": [], \"literals\": [(\"c\", \"1\")]"), "literals[0] is not a name"},
        {DICT("\"inputs\": [], \"state\": [(\"c\", \"int\", 1)],"
              " \"results\": [(\"c\", True), (\"c\", True)]"), "results[1] is the second"},
        {DICT("\"inputs\": [], \"guards\": 3"), "guards must be a text"},
        {DICT("\"inputs\": [], \"guards\": \"size program: y > 1 is True\""), "guards, line 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cfx_error err = {0};
        CHECK(parse(rows[i].text, &err) == NULL);
        CHECK_INT_EQ(CFX_E_VALUE, err.status);
        if (!CHECK(strstr(err.message, rows[i].message) != NULL))
            printf("    %zu: got  %s\n", i, err.message);
    }
    cfx_error err = {0};
    CHECK(parse("graph(:", &err) == NULL);
    CHECK_INT_EQ(CFX_E_SYNTAX, err.status);
}

/* Depth and number of what a file says have limits. */
TEST(large_signatures_are_refused)
{
    cfx_buffer text;
    for (int nested = 0; nested < 2; nested++) {
        cfx_error err = {0};
        cfx_buffer_init(&text, NULL);
        cfx_buffer_append(&text, "graph():\n  output({\"inputs\": [", 30);
        for (int i = 0; i < 10001; i++) {
            char row[32];
            snprintf(row, sizeof row, nested ? "(" : "(\"x%d\", \"any\"), ", i);
            cfx_buffer_append(&text, row, strlen(row));
        }
        for (int i = 0; nested && i < 10001; i++)
            cfx_buffer_append(&text, ",)", 2);
        cfx_buffer_append(&text, "]})\n", 4);
        CHECK(parse(text.data, &err) == NULL);
        CHECK(err.status != CFX_OK && err.message[0]);
        if (!nested)
            CHECK_STR_EQ("a graph has at most 10000 inputs", err.message);
        cfx_buffer_free(&text);
    }
}

TEST(a_graph_without_a_signature_has_names)
{
    static const char ir[] = "graph():\n  %a = placeholder[target=first]()\n"
                             "  %b = placeholder[target=second](3)\n  output((%a, %b))\n";
    cfx_error err = {0};
    cfx_signature_input in;
    cfx_graph *g = cfx_graph_parse(ir, strlen(ir), NULL, NULL, &err);
    cfx_signature *s = cfx_signature_of_graph(g, NULL, &err);
    cfx_graph_release(g);
    REQUIRE(s != NULL);
    CHECK_INT_EQ(2, cfx_signature_num_arguments(s));
    REQUIRE(cfx_signature_input_at(s, 1, &in));
    CHECK_STR_EQ("second", in.name);
    CHECK_INT_EQ(CFX_DATUM_INVALID, in.kind);
    const cfx_datum values[] = {cfx_datum_none(), cfx_datum_int(1)};
    CHECK_INT_EQ(CFX_OK, cfx_signature_check(s, values, 2, &err));
    cfx_signature_free(s);
    CHECK(cfx_signature_of_graph(NULL, NULL, &err) == NULL);
}

static cfx_status read_all(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    cfx_signature *s = cfx_signature_parse(whole, strlen(whole), a, &err);
    (void)arg;
    cfx_signature_free(s);
    return s ? CFX_OK : err.status;
}

TEST(memory_may_run_out) { CHECK(test_oom_sweep(read_all, NULL) > 3); }
