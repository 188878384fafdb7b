/* shapes.c - cfx show --shapes: what each node gives, without computing anything. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { MOST_SHAPES = 256 };

/* name=value, value read already. */
typedef struct shape {
    const char *name;
    size_t size;
    cfx_datum value;
} shape;

typedef struct shapes {
    shape all[MOST_SHAPES];
    size_t n;
} shapes;

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }

size_t cli_end_of_value(const char *text)
{
    int depth = 0;
    size_t at = 0;
    for (; text[at]; at++) {
        depth += (text[at] == '[' || text[at] == '(') - (text[at] == ']' || text[at] == ')');
        if (depth <= 0 && (text[at] == ',' || text[at] == ';'))
            break;
    }
    return at;
}

static cfx_status read_shapes(const char *text, cfx_dims *dims, shapes *s, cfx_error *err)
{
    for (;;) {
        while (is_space(*text) || *text == ',' || *text == ';')
            text++;
        if (!*text)
            return CFX_OK;
        shape *one = &s->all[s->n];
        size_t value = strcspn(text, "=");
        if (!text[value] || s->n == MOST_SHAPES)
            return cfx_error_set(err, CFX_E_SYNTAX,
                                 "--shapes: expected NAME=TYPE[SIZES], found '%.80s'", text);
        *one = (shape){.name = text, .size = value};
        while (one->size && is_space(text[one->size - 1]))
            one->size--;
        text += value + 1;
        size_t size = cli_end_of_value(text);
        one->value = cfx_datum_parse(dims, text, size, NULL, err);
        if (one->value.kind == CFX_DATUM_INVALID)
            return err->status;
        s->n++;
        text += size;
    }
}

/* Names that the graph reads rather than takes are parameters. */
static cfx_status give_parameters(cli_program *p, const cli_input *in, const shapes *s,
                                  cfx_error *err)
{
    for (const cfx_node *n = cfx_graph_first(in->graph); n; n = cfx_node_next(n)) {
        const char *path = NULL;
        if (cfx_node_op(n) == CFX_OP_GET_ATTR)
            path = cfx_node_target(n, NULL, NULL);
        for (size_t i = 0; path && i < s->n; i++) {
            if (strlen(path) != s->all[i].size || memcmp(path, s->all[i].name, s->all[i].size) ||
                s->all[i].value.kind != CFX_DATUM_TENSOR)
                continue;
            cfx_status status = cfx_state_set(p->state, path, s->all[i].value.as.tensor, err);
            if (status != CFX_OK)
                return status;
        }
    }
    return CFX_OK;
}

static cfx_status give_inputs(cli_program *p, const shapes *s, cfx_error *err)
{
    for (size_t i = 0; i < s->n; i++) {
        char path[200];
        const shape *one = &s->all[i];
        snprintf(path, sizeof path, "%.*s", one->size > 199 ? 199 : (int)one->size, one->name);
        if (cfx_state_get(p->state, path))
            continue;
        cfx_status status = cli_program_set(p, one->name, one->size, one->value, err);
        if (status != CFX_OK)
            return status;
    }
    return CFX_OK;
}

/* ---- printing ------------------------------------------------------------------------------ */

/* Lines "name\ttype", kept until the width of the names is known. */
typedef struct printer {
    const cfx_dims *dims;
    cfx_buffer lines;
    size_t width;
    cfx_error *err;
} printer;

static cfx_status add(printer *p, const char *text)
{
    return cfx_buffer_append(&p->lines, text, strlen(text)) == CFX_OK
               ? CFX_OK
               : cfx_error_set(p->err, CFX_E_NOMEM, "out of memory");
}

static cfx_status note(void *ctx, const char *node, cfx_datum result)
{
    printer *p = ctx;
    size_t size = strlen(node);
    p->width = size > p->width && size < 40 ? size : p->width;
    cfx_status status = add(p, node);
    if (status == CFX_OK)
        status = add(p, "\t");
    if (status == CFX_OK)
        status = cfx_datum_print(result, p->dims, cfx_buffer_sink(&p->lines), p->err);
    return status == CFX_OK ? add(p, "\n") : status;
}

static cfx_status print_lines(const printer *p, const char *lines, cfx_sink out)
{
    static const char spaces[] = "                                          ";
    cfx_status status = CFX_OK;
    while (status == CFX_OK && *lines) {
        size_t name = strcspn(lines, "\t\n");
        size_t size = strcspn(lines, "\n") + 1;
        size_t rest = lines[name] == '\t' ? name + 1 : 0;  /* an assumption is no node */
        status = out.write(out.ctx, rest ? "%" : "  ", rest ? 1 : 2);
        if (status == CFX_OK && rest)
            status = out.write(out.ctx, lines, name);
        if (status == CFX_OK && rest)
            status = out.write(out.ctx, spaces, 2 + (name < p->width ? p->width - name : 0));
        if (status == CFX_OK)
            status = out.write(out.ctx, lines + rest, size - rest);
        lines += size;
    }
    return status;
}

static cfx_status print_assumptions(printer *p, cfx_sink out)
{
    size_t n = 0;
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    cfx_status status = cfx_dims_print_assumptions(p->dims, cfx_buffer_sink(&text), &n, p->err);
    if (status == CFX_OK && n > 0)
        status = out.write(out.ctx, "assuming\n", 9);
    if (status == CFX_OK)
        status = print_lines(p, text.data, out);
    cfx_buffer_free(&text);
    return status;
}

static cfx_status infer(const cli_program *p, cfx_sink out, cfx_error *err)
{
    printer print = {.dims = p->dims, .err = err};
    cfx_buffer_init(&print.lines, NULL);
    cfx_datum result = cfx_program_infer(p->program, p->rt, p->dims, p->inputs, p->num_inputs, note,
                                         &print, err);
    cfx_status status = result.kind == CFX_DATUM_INVALID ? err->status : CFX_OK;
    cfx_status written = print_lines(&print, print.lines.data, out);  /* also up to what failed */
    if (status == CFX_OK && (status = written) == CFX_OK)
        status = print_assumptions(&print, out);
    cfx_datum_release(result);
    cfx_buffer_free(&print.lines);
    return status;
}

cfx_status cli_program_shapes(cli_program *p, const cli_input *in, const char *text,
                              const char *weights, bool *told, cfx_error *err)
{
    static shapes s;  /* too large for some stacks; the command runs once */
    cfx_status status = cli_program_begin(p, in, weights, NULL, err);
    if (status == CFX_OK)
        status = read_shapes(text, p->dims, &s, err);
    if (status == CFX_OK)
        status = give_parameters(p, in, &s, err);
    if (status == CFX_OK)
        status = cli_program_make(p, in, told, err);
    if (status == CFX_OK)
        status = give_inputs(p, &s, err);
    while (s.n > 0)
        cfx_datum_release(s.all[--s.n].value);
    return status;
}

cfx_status cli_show_shapes(const cli_input *in, const char *text, const char *weights, bool *told,
                           cfx_sink out, cfx_error *err)
{
    cli_program p;
    cfx_status status = cli_program_shapes(&p, in, text, weights, told, err);
    if (status == CFX_OK)
        status = infer(&p, out, err);
    cli_program_end(&p);
    return status;
}
