/* json_write.c - JSON: strings and their escapes, numbers, the commas between items. */
#include "base_impl.h"

/* Characters beyond ASCII as they are; but lone surrogates, which UTF-8 cannot have, as escapes. */
static void write_char(cfxi_out *out, const char *text, size_t size, uint32_t code)
{
    if (code == '"' || code == '\\') {
        cfxi_base_out_char(out, '\\');
        cfxi_base_out_char(out, (char)code);
    } else if (code == '\n') {
        cfxi_base_out_str(out, "\\n");
    } else if (code < 0x20 || code == 0x7f || (code >= 0xd800 && code < 0xe000)) {
        cfxi_base_out_printf(out, "\\u%04x", (unsigned)code);
    } else {
        cfxi_base_out_write(out, text, size);
    }
}

void cfxi_base_json_text(cfxi_out *out, const char *text, size_t size)
{
    cfxi_base_out_char(out, '"');
    for (size_t at = 0; at < size;) {
        uint32_t code = 0;
        const size_t n = cfxi_base_utf8_decode(text + at, size - at, &code);
        if (n > 0)
            write_char(out, text + at, n, code);
        else
            cfxi_base_out_str(out, "\\ufffd");
        at += n ? n : 1;
    }
    cfxi_base_out_char(out, '"');
}

void cfxi_base_json_begin(cfxi_json_out *j, cfxi_out *out, bool compact)
{
    *j = (cfxi_json_out){.out = out, .compact = compact, .first = true};
}

/* What stands before a value or a key. */
static void separate(cfxi_json_out *j)
{
    if (!j->first)
        cfxi_base_out_char(j->out, ',');
    if (j->line)
        cfxi_base_out_str(j->out, "\n ");
    else if (!j->first && !j->compact)
        cfxi_base_out_char(j->out, ' ');
    j->first = j->line = false;
}

void cfxi_base_json_line(cfxi_json_out *j) { j->line = true; }

void cfxi_base_json_open(cfxi_json_out *j, char bracket)
{
    separate(j);
    cfxi_base_out_char(j->out, bracket);
    j->first = true;
}

void cfxi_base_json_close(cfxi_json_out *j, char bracket)
{
    cfxi_base_out_char(j->out, bracket);
    j->first = false;
}

void cfxi_base_json_key(cfxi_json_out *j, const char *key, size_t size)
{
    cfxi_base_json_string(j, key, size);
    cfxi_base_out_str(j->out, j->compact ? ":" : ": ");
    j->first = true;
}

void cfxi_base_json_field(cfxi_json_out *j, const char *key)
{
    cfxi_base_json_key(j, key, strlen(key));
}

void cfxi_base_json_string(cfxi_json_out *j, const char *text, size_t size)
{
    separate(j);
    cfxi_base_json_text(j->out, text, size);
}

void cfxi_base_json_raw(cfxi_json_out *j, const char *text, size_t size)
{
    separate(j);
    cfxi_base_out_write(j->out, text, size);
}

void cfxi_base_json_int(cfxi_json_out *j, int64_t i)
{
    char text[CFXI_NUMBER_SIZE];
    cfxi_base_json_raw(j, text, cfxi_base_format_int(i, text));
}

void cfxi_base_json_float(cfxi_json_out *j, double f)
{
    char text[CFXI_NUMBER_SIZE];
    cfxi_base_json_raw(j, text, cfxi_base_format_float(f, text));
}
