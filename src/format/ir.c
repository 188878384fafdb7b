/* ir.c - recognizes IR text. The room ir reads and writes it. */
#include "format_impl.h"

/* The word `graph` comes first, after blanks and comments. */
bool cfxi_format_ir_is(const char *data, size_t size)
{
    size_t at = 0;
    while (at < size && (strchr(" \t\r\n", data[at]) || data[at] == '#')) {
        if (!data[at])
            return false;
        const bool comment = data[at] == '#';
        while (comment && at < size && data[at] != '\n')
            at++;
        at += at < size;
    }
    return size - at >= 5 && memcmp(data + at, "graph", 5) == 0;
}
