/* json_write.c - JSON: strings and their escapes, numbers, the commas between items. */
#include "base_impl.h"

#include <cfx/embed/base.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void cfx_json_begin(cfx_json *j, cfx_sink out, bool compact)
{
    *j = (cfx_json){.out = out, .compact = compact, .first = true};
}

static void put(cfx_json *j, const char *text, size_t size)
{
    if (j->status == CFX_OK && size > 0)
        j->status = cfxi_base_sink_write(j->out, text, size);
}

static void put_char(cfx_json *j, char c) { put(j, &c, 1); }

/* What stands before a value or a key. */
static void separate(cfx_json *j)
{
    char text[3];
    size_t size = 0;
    if (!j->first)
        text[size++] = ',';
    if (j->line)
        text[size++] = '\n';
    if (j->line || (!j->first && !j->compact))
        text[size++] = ' ';
    put(j, text, size);
    j->first = j->line = false;
}

/* ---- strings ------------------------------------------------------------------------------- */

/* UTF-8 cannot encode lone surrogates, so they are escaped; other characters beyond ASCII stand as
 * they are. */
static bool needs_escape(uint32_t code)
{
    return code < 0x20 || code == '"' || code == '\\' || code == 0x7f ||
           (code >= 0xd800 && code < 0xe000);
}

static void put_escape(cfx_json *j, uint32_t code)
{
    char text[8] = {'\\', (char)code};
    if (code == '"' || code == '\\') {
        put(j, text, 2);
    } else if (code == '\n') {
        put(j, "\\n", 2);
    } else {
        snprintf(text, sizeof text, "\\u%04x", (unsigned)code & 0xffff);
        put(j, text, 6);
    }
}

/* Whatever needs no escape is written in one piece. */
static void put_string(cfx_json *j, const char *text, size_t size)
{
    size_t begin = 0;
    put_char(j, '"');
    for (size_t at = 0; at < size;) {
        uint32_t code = 0;
        const size_t n = cfxi_base_utf8_decode(text + at, size - at, &code);
        if (n == 0 || needs_escape(code)) {
            put(j, text + begin, at - begin);
            put_escape(j, n ? code : 0xfffd);
            begin = at + (n ? n : 1);
        }
        at += n ? n : 1;
    }
    put(j, text + begin, size - begin);
    put_char(j, '"');
}

void cfx_json_string(cfx_json *j, const char *text, size_t size)
{
    separate(j);
    put_string(j, text, size);
}

void cfx_json_text(cfx_json *j, const char *text)
{
    if (text)
        cfx_json_string(j, text, strlen(text));
    else
        cfx_json_null(j);
}

/* ---- containers ---------------------------------------------------------------------------- */

void cfx_json_line(cfx_json *j) { j->line = true; }

void cfx_json_open(cfx_json *j, char bracket)
{
    separate(j);
    put_char(j, bracket);
    j->first = true;
}

void cfx_json_close(cfx_json *j, char bracket)
{
    if (j->line)
        put_char(j, '\n');
    put_char(j, bracket);
    j->first = j->line = false;
}

void cfx_json_key(cfx_json *j, const char *key, size_t size)
{
    cfx_json_string(j, key, size);
    put(j, ": ", j->compact ? 1 : 2);
    j->first = true;
}

void cfx_json_field(cfx_json *j, const char *key) { cfx_json_key(j, key, strlen(key)); }

/* ---- other values -------------------------------------------------------------------------- */

void cfx_json_raw(cfx_json *j, const char *text, size_t size)
{
    separate(j);
    put(j, text, size);
}

void cfx_json_null(cfx_json *j) { cfx_json_raw(j, "null", 4); }

void cfx_json_bool(cfx_json *j, bool b) { cfx_json_raw(j, b ? "true" : "false", b ? 4 : 5); }

void cfx_json_int(cfx_json *j, int64_t i)
{
    char text[CFXI_NUMBER_SIZE];
    cfx_json_raw(j, text, cfxi_base_format_int(i, text));
}

void cfx_json_uint(cfx_json *j, uint64_t u)
{
    char text[CFXI_NUMBER_SIZE];
    cfx_json_raw(j, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, u));
}

void cfx_json_float(cfx_json *j, double f)
{
    char text[CFXI_NUMBER_SIZE];
    if (isfinite(f))
        cfx_json_raw(j, text, cfxi_base_format_float(f, text));
    else
        cfx_json_null(j);
}

static cfx_status value_write(void *ctx, const char *data, size_t size)
{
    cfx_json *j = ctx;
    put(j, data, size);
    return j->status;
}

cfx_sink cfx_json_value_sink(cfx_json *j)
{
    const cfx_sink sink = {value_write, j};
    separate(j);
    return sink;
}
