/* colour.c - colours the opcode in each line of a graph, for terminals. */
#include "cli.h"

#include <string.h>

/* Inputs and the output, what is read, what is called. */
static const char *colour_of(cfx_opcode op)
{
    switch (op) {
    case CFX_OP_PLACEHOLDER:
    case CFX_OP_OUTPUT:
        return "\033[32m";
    case CFX_OP_GET_ATTR:
        return "\033[35m";
    case CFX_OP_CALL_FUNCTION:
    case CFX_OP_CALL_MODULE:
    case CFX_OP_CALL_METHOD:
        return "\033[36m";
    case CFX_OPCODE_COUNT:
        break;
    }
    return "";
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_.%&\"'", c);
}

static bool opcode_at(const char *word, size_t size, cfx_opcode *op)
{
    char name[16];
    if (size == 0 || size >= sizeof name)
        return false;
    memcpy(name, word, size);
    name[size] = '\0';
    return cfx_opcode_parse(name, op);
}

/* Of a line, the first word that is an opcode is its opcode: a node's name follows a '%'. */
static cfx_status write_line(cfx_sink out, const char *line, size_t size)
{
    size_t at = 0;
    while (at < size) {
        size_t end = at;
        cfx_opcode op;
        while (end < size && line[end] && is_word_char(line[end]))
            end++;
        if (!opcode_at(line + at, end - at, &op)) {
            at = end + 1;
            continue;
        }
        const char *colour = colour_of(op);
        cfx_status status = out.write(out.ctx, line, at);
        status = status ? status : out.write(out.ctx, colour, strlen(colour));
        status = status ? status : out.write(out.ctx, line + at, end - at);
        status = status ? status : out.write(out.ctx, "\033[0m", 4);
        return status ? status : out.write(out.ctx, line + end, size - end);
    }
    return out.write(out.ctx, line, size);
}

static cfx_status write_colour(void *ctx, const char *data, size_t size)
{
    cli_colour *colour = ctx;
    while (size > 0) {
        const char *newline = memchr(data, '\n', size);
        size_t n = newline ? (size_t)(newline - data) + 1 : size;
        cfx_status status = cfx_buffer_append(&colour->line, data, n);
        if (status == CFX_OK && newline) {
            status = write_line(colour->out, colour->line.data, colour->line.size);
            colour->line.size = 0;
        }
        if (status != CFX_OK)
            return status;
        data += n;
        size -= n;
    }
    return CFX_OK;
}

cfx_sink cli_colour_sink(cli_colour *colour, cfx_sink out)
{
    colour->out = out;
    cfx_buffer_init(&colour->line, NULL);
    return (cfx_sink){write_colour, colour};
}

void cli_colour_free(cli_colour *colour) { cfx_buffer_free(&colour->line); }
