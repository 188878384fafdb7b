/* print.c - graphs, nodes and values as torch.fx prints them.
 *
 * torch.fx has three ways to show a value. In the arguments of a node (ARG) nodes carry a '%' and
 * strings no quotes, down through lists, tuples and dicts; whatever else holds values (sets,
 * slices) shows their repr. What a graph returns, and a default, is str(value) (STR): the repr, but
 * for what is on top. The third is the repr itself (REPR).
 */
#include "graph_impl.h"

#include <math.h>

typedef enum print_mode { MODE_ARG, MODE_STR, MODE_REPR } print_mode;

typedef struct printer {
    cfx_graph *graph;
    cfxi_out out;
    cfx_error *err;
    cfx_status status;  /* of the host; *err is set then */
} printer;

static void printer_begin(printer *p, cfx_graph *g, cfx_sink sink, cfx_error *err)
{
    cfxi_ir_graph_freeze(g);
    p->graph = g;
    p->err = err;
    p->status = CFX_OK;
    cfxi_base_out_begin(&p->out, sink);
}

static cfx_status printer_end(printer *p)
{
    cfxi_ir_graph_thaw(p->graph);
    return p->status == CFX_OK ? cfxi_base_out_end(&p->out, p->err) : p->status;
}

/* Notes how a call of the host went. A failure of the sink below it is reported at the end. */
static void host_done(printer *p, cfx_status status)
{
    if (status == CFX_OK || p->out.status != CFX_OK)
        return;
    p->status = status;
    p->out.status = status;
}

/* ---- host values --------------------------------------------------------------------------- */

/* The qualified name, or NULL where it has none or the host failed, which is noted. */
static const cfx_str *ref_name(printer *p, cfx_ref *ref)
{
    cfx_error err = {.status = CFX_E_HOST};
    const cfx_str *name = cfxi_ir_ref_qualified_name(p->graph, ref, &err);
    if (!name && err.status != CFX_E_KEY) {
        if (p->err)
            *p->err = err;
        host_done(p, err.status);
    }
    return name;
}

static void print_object_repr(printer *p, const cfx_ref *ref)
{
    const cfx_host *host = p->graph->host;
    host_done(p, host->repr(host->ctx, ref->object, cfxi_base_out_sink(&p->out), p->err));
}

static void show_ref(printer *p, cfx_ref *ref, cfx_show where)
{
    const cfx_host *host = p->graph->host;
    if (p->out.status != CFX_OK)
        return;
    if (ref->kind == CFXI_REF_OBJECT && host->show && where != CFX_SHOW_TARGET) {
        host_done(p,
                  host->show(host->ctx, ref->object, where, cfxi_base_out_sink(&p->out), p->err));
        return;
    }
    const bool by_name = where == CFX_SHOW_TYPE || where == CFX_SHOW_TARGET;
    const cfx_str *name = ref->kind == CFXI_REF_NAME || by_name ? ref_name(p, ref) : NULL;
    if (name)
        cfxi_base_out_write(&p->out, name->data, name->size);
    else if (p->out.status == CFX_OK)
        print_object_repr(p, ref);
}

static void print_host(printer *p, cfx_ref *ref, print_mode mode)
{
    if (p->out.status != CFX_OK)
        return;
    if (mode == MODE_REPR && ref->kind == CFXI_REF_OBJECT)
        print_object_repr(p, ref);
    else
        show_ref(p, ref, mode == MODE_ARG ? CFX_SHOW_ARG : CFX_SHOW_STR);
}

/* What Python calls the __name__ of a class: the last part of its qualified name. */
static void print_class_name(printer *p, cfx_ref *ref)
{
    const cfx_host *host = p->graph->host;
    const cfx_str *name = p->out.status == CFX_OK ? ref_name(p, ref) : NULL;
    if (p->out.status != CFX_OK)
        return;
    if (!name) {
        host_done(p, host->name_hint(host->ctx, ref->object, cfxi_base_out_sink(&p->out), p->err));
        return;
    }
    size_t first = name->size;
    while (first > 0 && name->data[first - 1] != '.')
        first--;
    cfxi_base_out_write(&p->out, name->data + first, name->size - first);
}

/* ---- scalars ------------------------------------------------------------------------------- */

static void print_float(printer *p, double f)
{
    char text[CFXI_NUMBER_SIZE];
    cfxi_base_out_write(&p->out, text, cfxi_base_format_float(f, text));
}

/* A part of a complex number: "1", not "1.0"; the second part always has a sign. */
static void print_part(printer *p, double f, bool sign)
{
    char text[CFXI_NUMBER_SIZE];
    size_t size = cfxi_base_format_float(f, text);
    if (size > 2 && memcmp(text + size - 2, ".0", 2) == 0)
        size -= 2;
    if (sign && text[0] != '-')
        cfxi_base_out_char(&p->out, '+');
    cfxi_base_out_write(&p->out, text, size);
}

static void print_complex(printer *p, const cfx_value *parts)
{
    const double re = parts[0].as.f;
    const bool only_imaginary = re == 0 && !signbit(re);
    if (!only_imaginary) {
        cfxi_base_out_char(&p->out, '(');
        print_part(p, re, false);
    }
    print_part(p, parts[1].as.f, !only_imaginary);
    cfxi_base_out_str(&p->out, only_imaginary ? "j" : "j)");
}

/* "cuda:1" is device(type='cuda', index=1). */
static void print_device(printer *p, const cfx_str *name)
{
    const char *colon = memchr(name->data, ':', name->size);
    const size_t size = colon ? (size_t)(colon - name->data) : name->size;
    cfxi_base_out_str(&p->out, "device(type='");
    cfxi_base_out_write(&p->out, name->data, size);
    cfxi_base_out_char(&p->out, '\'');
    if (colon) {
        cfxi_base_out_str(&p->out, ", index=");
        cfxi_base_out_write(&p->out, colon + 1, name->size - size - 1);
    }
    cfxi_base_out_char(&p->out, ')');
}

static void print_int(printer *p, int64_t i)
{
    char text[CFXI_NUMBER_SIZE];
    cfxi_base_out_write(&p->out, text, cfxi_base_format_int(i, text));
}

/* ---- containers ---------------------------------------------------------------------------- */

static void print_value(printer *p, cfx_value v, print_mode mode);

static void print_items(printer *p, const char *open, const cfx_value *items, size_t n,
                        const char *close, print_mode mode)
{
    cfxi_base_out_str(&p->out, open);
    for (size_t i = 0; i < n; i++) {
        if (i)
            cfxi_base_out_write(&p->out, ", ", 2);
        print_value(p, items[i], mode);
    }
    cfxi_base_out_str(&p->out, close);
}

static void print_tuple(printer *p, const cfx_value *items, size_t n, print_mode mode)
{
    print_items(p, "(", items, n, n == 1 ? ",)" : ")", mode);
}

static void print_dict(printer *p, const cfx_value *items, size_t n, print_mode mode)
{
    cfxi_base_out_char(&p->out, '{');
    for (size_t i = 0; i + 1 < n; i += 2) {
        if (i)
            cfxi_base_out_write(&p->out, ", ", 2);
        print_value(p, items[i], mode == MODE_ARG ? MODE_STR : MODE_REPR);
        cfxi_base_out_write(&p->out, ": ", 2);
        print_value(p, items[i + 1], mode);
    }
    cfxi_base_out_char(&p->out, '}');
}

static void print_namedtuple(printer *p, const cfx_value *items, size_t n, print_mode mode)
{
    if (mode == MODE_ARG) {
        print_tuple(p, items + 2, n - 2, mode);
        return;
    }
    print_class_name(p, items[0].as.ref);
    cfxi_base_out_char(&p->out, '(');
    for (size_t i = 2; i < n; i++) {
        const cfx_str *field = items[1].as.seq->items[i - 2].as.str;
        if (i > 2)
            cfxi_base_out_write(&p->out, ", ", 2);
        cfxi_base_out_write(&p->out, field->data, field->size);
        cfxi_base_out_char(&p->out, '=');
        print_value(p, items[i], MODE_REPR);
    }
    cfxi_base_out_char(&p->out, ')');
}

static void print_range(printer *p, const cfx_value *parts)
{
    const bool plain = parts[2].kind == CFX_KIND_INT && parts[2].as.i == 1;
    print_items(p, "range(", parts, plain ? 2 : 3, ")", MODE_REPR);
}

static void print_seq(printer *p, cfx_value v, print_mode mode)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    const print_mode inner = mode == MODE_ARG ? MODE_ARG : MODE_REPR;
    switch (v.kind) {
    case CFX_KIND_COMPLEX:
        print_complex(p, items);
        break;
    case CFX_KIND_SLICE:
        print_items(p, "slice(", items, n, ")", MODE_REPR);
        break;
    case CFX_KIND_RANGE:
        print_range(p, items);
        break;
    case CFX_KIND_LIST:
        print_items(p, "[", items, n, "]", inner);
        break;
    case CFX_KIND_TUPLE:
        print_tuple(p, items, n, inner);
        break;
    case CFX_KIND_SET:
        print_items(p, n ? "{" : "set(", items, n, n ? "}" : ")", MODE_REPR);
        break;
    case CFX_KIND_FROZENSET:
        print_items(p, n ? "frozenset({" : "frozenset(", items, n, n ? "})" : ")", MODE_REPR);
        break;
    case CFX_KIND_DICT:
        print_dict(p, items, n, inner);
        break;
    case CFX_KIND_NAMEDTUPLE:
        print_namedtuple(p, items, n, inner);
        break;
    }
}

/* ---- any value ----------------------------------------------------------------------------- */

static void print_str(printer *p, cfx_value v, print_mode mode)
{
    const cfx_str *str = v.as.str;
    if (v.kind == CFX_KIND_BYTES)
        cfxi_base_out_repr_bytes(&p->out, str->data, str->size);
    else if (v.kind == CFX_KIND_STR && mode == MODE_REPR)
        cfxi_base_out_repr_str(&p->out, str->data, str->size);
    else if (v.kind == CFX_KIND_DEVICE && mode == MODE_REPR)
        print_device(p, str);
    else
        cfxi_base_out_write(&p->out, str->data, str->size);
}

static void print_node_name(printer *p, const cfx_node *n, print_mode mode)
{
    if (mode == MODE_ARG)
        cfxi_base_out_char(&p->out, '%');
    cfxi_base_out_write(&p->out, n->name->data, n->name->size);
}

static void print_region(printer *p, const cfx_graph *region)
{
    cfxi_base_out_printf(&p->out, "graph[%zu node%s]", region->size, region->size == 1 ? "" : "s");
}

static void print_value(printer *p, cfx_value v, print_mode mode)
{
    switch ((cfx_kind)v.kind) {
    case CFX_KIND_INVALID:
    case CFX_KIND_COUNT:
        cfxi_base_out_str(&p->out, "<invalid>");
        break;
    case CFX_KIND_NONE:
    case CFX_KIND_BOOL:
    case CFX_KIND_DTYPE:
    case CFX_KIND_LAYOUT:
    case CFX_KIND_MEMORY_FORMAT:
        cfxi_base_out_str(&p->out, cfxi_ir_value_word(v));
        break;
    case CFX_KIND_ELLIPSIS:
        cfxi_base_out_str(&p->out, "Ellipsis");
        break;
    case CFX_KIND_INT:
        print_int(p, v.as.i);
        break;
    case CFX_KIND_FLOAT:
        print_float(p, v.as.f);
        break;
    case CFX_KIND_STR:
    case CFX_KIND_BYTES:
    case CFX_KIND_BIGINT:
    case CFX_KIND_DEVICE:
        print_str(p, v, mode);
        break;
    case CFX_KIND_COMPLEX:
    case CFX_KIND_SLICE:
    case CFX_KIND_RANGE:
    case CFX_KIND_LIST:
    case CFX_KIND_TUPLE:
    case CFX_KIND_SET:
    case CFX_KIND_FROZENSET:
    case CFX_KIND_DICT:
    case CFX_KIND_NAMEDTUPLE:
        print_seq(p, v, mode);
        break;
    case CFX_KIND_NODE:
        print_node_name(p, v.as.node, mode);
        break;
    case CFX_KIND_GRAPH:
        print_region(p, v.as.ref->region);
        break;
    case CFX_KIND_HOST:
        print_host(p, v.as.ref, mode);
        break;
    }
}

cfx_status cfx_value_print(cfx_graph *g, cfx_value v, cfx_sink out, cfx_error *err)
{
    printer p;
    printer_begin(&p, g, out, err);
    print_value(&p, v, MODE_ARG);
    return printer_end(&p);
}

cfx_status cfxi_ir_value_repr(cfx_graph *g, cfx_value v, cfx_sink out, cfx_error *err)
{
    printer p;
    printer_begin(&p, g, out, err);
    print_value(&p, v, MODE_REPR);
    return printer_end(&p);
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* " : torch.Tensor " or " : ". */
static void print_type(printer *p, cfx_value type)
{
    cfxi_base_out_write(&p->out, " : ", 3);
    if (type.kind == CFX_KIND_INVALID)
        return;
    if (type.kind == CFX_KIND_HOST)
        show_ref(p, type.as.ref, CFX_SHOW_TYPE);
    else if (type.kind == CFX_KIND_ELLIPSIS)
        cfxi_base_out_str(&p->out, "...");
    else
        print_value(p, type, MODE_REPR);
    cfxi_base_out_char(&p->out, ' ');
}

static void print_head(printer *p, cfx_node *n)
{
    print_node_name(p, n, MODE_ARG);
    print_type(p, n->ext ? n->ext->type : cfx_value_invalid());
    cfxi_base_out_str(&p->out, "[num_users=");
    print_int(p, n->n_users);
    cfxi_base_out_str(&p->out, "] = ");
    cfxi_base_out_str(&p->out, cfx_opcode_name((cfx_opcode)n->op));
    cfxi_base_out_str(&p->out, "[target=");
    show_ref(p, n->callee->ref, CFX_SHOW_TARGET);
    cfxi_base_out_char(&p->out, ']');
}

static void print_call(printer *p, const cfx_node *n)
{
    cfxi_base_out_str(&p->out, "(args = ");
    print_tuple(p, n->args ? n->args->items : NULL, n->args ? n->args->size : 0, MODE_ARG);
    cfxi_base_out_str(&p->out, ", kwargs = ");
    print_dict(p, n->kwargs ? n->kwargs->items : NULL, n->kwargs ? n->kwargs->size : 0, MODE_ARG);
    cfxi_base_out_char(&p->out, ')');
}

static void print_node(printer *p, cfx_node *n)
{
    const bool has_arg = n->args && n->args->size > 0;
    if (n->op != CFX_OP_OUTPUT)
        print_head(p, n);
    switch ((cfx_opcode)n->op) {
    case CFX_OP_PLACEHOLDER:
        if (has_arg) {
            cfxi_base_out_str(&p->out, "(default=");
            print_value(p, n->args->items[0], MODE_STR);
            cfxi_base_out_char(&p->out, ')');
        }
        break;
    case CFX_OP_OUTPUT:
        cfxi_base_out_str(&p->out, "return ");
        if (has_arg)
            print_value(p, n->args->items[0], MODE_STR);
        break;
    case CFX_OP_CALL_FUNCTION:
    case CFX_OP_CALL_MODULE:
    case CFX_OP_CALL_METHOD:
        print_call(p, n);
        break;
    case CFX_OP_GET_ATTR:
    case CFX_OPCODE_COUNT:
        break;
    }
}

cfx_status cfx_node_print(cfx_node *n, cfx_sink out, cfx_error *err)
{
    printer p;
    printer_begin(&p, n->graph, out, err);
    print_node(&p, n);
    return printer_end(&p);
}

cfx_status cfx_graph_print(cfx_graph *g, cfx_sink out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    printer p;
    printer_begin(&p, g, out, err);
    cfxi_base_out_str(&p.out, "graph():");
    for (cfx_node *n = g->root.next; n != &g->root && p.out.status == CFX_OK; n = n->next) {
        cfxi_base_out_str(&p.out, "\n    ");
        print_node(&p, n);
    }
    return printer_end(&p);
}
