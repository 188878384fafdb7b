/* graph_json.c - a graph as JSON, with every field of every node; codegen.h shows it.
 *
 * Containers and regions nest deeper than a C stack likes, so the writer keeps a stack of its own:
 * each frame is something half written, and `step` writes the next piece of the topmost one.
 */
#include "ir/graph_impl.h"

#include <cfx/codegen.h>
#include <cfx/embed/codegen.h>
#include <math.h>

typedef enum frame_kind { FRAME_GRAPH, FRAME_NODE, FRAME_SEQ } frame_kind;

typedef struct frame {
    frame_kind kind;
    cfx_graph *graph;        /* GRAPH */
    cfx_node *node;          /* GRAPH: the next one; NODE */
    const cfx_value *items;  /* SEQ */
    size_t n, i;             /* SEQ: items, and written; NODE: fields written */
    bool pairs;              /* SEQ: [key, value], ... */
    bool object;             /* SEQ: keys are strings, of an object */
    const char *close;       /* SEQ */
} frame;

typedef struct writer {
    cfxi_out out;
    cfx_error *err;
    cfx_status status;  /* of what is not the sink; *err is set then */
    cfx_node *node;     /* the last one begun, for messages */
    size_t depth;       /* of graphs: only the nodes of the outermost begin a line */
    cfxi_vec frames;    /* of frame */
    cfxi_vec scopes;    /* of uint32_t */
    const cfx_allocator *allocator;
} writer;

static void stop(writer *w, cfx_status status)
{
    w->status = status;
    w->out.status = status;
}

/* ---- strings ------------------------------------------------------------------------------- */

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

static void write_string(cfxi_out *out, const char *text, size_t size)
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

static void write_text(writer *w, const char *text) { write_string(&w->out, text, strlen(text)); }

cfx_status cfx_json_write_string(const char *text, size_t size, cfx_sink sink)
{
    cfxi_out out;
    cfxi_base_out_begin(&out, sink);
    write_string(&out, text, size);
    return cfxi_base_out_end(&out, NULL);
}

/* ---- values -------------------------------------------------------------------------------- */

static frame *push(writer *w, frame_kind kind)
{
    if (!cfxi_base_vec_reserve(&w->frames, 1, sizeof(frame), w->allocator)) {
        stop(w, cfxi_base_nomem(w->err));
        return NULL;
    }
    frame *f = (frame *)w->frames.data + w->frames.size++;
    *f = (frame){.kind = kind};
    return f;
}

/* {"kind": "text"} */
static void write_tagged(writer *w, cfx_kind kind, const char *text, size_t size)
{
    cfxi_base_out_printf(&w->out, "{\"%s\": ", cfx_kind_name(kind));
    write_string(&w->out, text, size);
    cfxi_base_out_char(&w->out, '}');
}

static void write_float(writer *w, double f)
{
    char text[CFXI_NUMBER_SIZE];
    const size_t size = cfxi_base_format_float(f, text);
    if (isfinite(f))
        cfxi_base_out_write(&w->out, text, size);
    else
        write_tagged(w, CFX_KIND_FLOAT, text, size);
}

static void write_bytes(writer *w, const char *data, size_t size)
{
    cfxi_base_out_str(&w->out, "{\"bytes\": \"");
    for (size_t i = 0; i < size; i++)
        cfxi_base_out_printf(&w->out, "%02x", (unsigned char)data[i]);
    cfxi_base_out_str(&w->out, "\"}");
}

static void write_str(writer *w, cfx_value v)
{
    size_t size;
    const char *text = cfx_value_text(v, &size);
    if (v.kind == CFX_KIND_STR)
        write_string(&w->out, text, size);
    else if (v.kind == CFX_KIND_BIGINT)
        cfxi_base_out_write(&w->out, text, size);
    else if (v.kind == CFX_KIND_BYTES)
        write_bytes(w, text, size);
    else
        write_tagged(w, (cfx_kind)v.kind, text, size);
}

static void no_name(writer *w, const cfx_error *why)
{
    if (why->status != CFX_E_KEY) {
        if (w->err)
            *w->err = *why;
        stop(w, why->status);
        return;
    }
    stop(w, cfx_error_set(w->err, CFX_E_VALUE, "node %%%.100s holds an object without a qualified "
                          "name, which JSON cannot hold: %.200s",
                          w->node ? w->node->name->data : "?", why->message));
}

static void write_host(writer *w, cfx_value v)
{
    cfx_error why = {.status = CFX_OK};
    const char *name = cfx_value_host_name(v.as.ref->graph, v, &why);
    if (name)
        write_tagged(w, CFX_KIND_HOST, name, strlen(name));
    else
        no_name(w, &why);
}

static void open_items(writer *w, const char *open, const char *close, const cfx_value *items,
                       size_t n)
{
    frame *f = push(w, FRAME_SEQ);
    cfxi_base_out_str(&w->out, open);
    if (!f)
        return;
    f->items = items;
    f->n = n;
    f->close = close;
}

static void open_seq(writer *w, cfx_value v)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    if (v.kind != CFX_KIND_LIST)
        cfxi_base_out_printf(&w->out, "{\"%s\": ", cfx_kind_name((cfx_kind)v.kind));
    open_items(w, "[", v.kind == CFX_KIND_LIST ? "]" : "]}", items, n);
    if (w->out.status == CFX_OK)
        ((frame *)w->frames.data)[w->frames.size - 1].pairs = v.kind == CFX_KIND_DICT;
}

static void open_graph(writer *w, cfx_graph *g)
{
    frame *f = push(w, FRAME_GRAPH);
    cfxi_base_out_str(&w->out, "{\"nodes\": [");
    w->depth++;
    if (!f)
        return;
    f->graph = g;
    f->node = g->root.next;
}

/* Writes a scalar; opens a container or a region. */
static void write_value(writer *w, cfx_value v)
{
    char number[CFXI_NUMBER_SIZE];
    if (cfxi_ir_is_seq(v)) {
        open_seq(w, v);
        return;
    }
    if (cfxi_ir_is_str(v)) {
        write_str(w, v);
        return;
    }
    switch ((cfx_kind)v.kind) {
    case CFX_KIND_NONE:
        cfxi_base_out_str(&w->out, "null");
        break;
    case CFX_KIND_BOOL:
        cfxi_base_out_str(&w->out, v.as.b ? "true" : "false");
        break;
    case CFX_KIND_INT:
        cfxi_base_out_write(&w->out, number, cfxi_base_format_int(v.as.i, number));
        break;
    case CFX_KIND_FLOAT:
        write_float(w, v.as.f);
        break;
    case CFX_KIND_ELLIPSIS:
        write_tagged(w, CFX_KIND_ELLIPSIS, "...", 3);
        break;
    case CFX_KIND_DTYPE:
        write_tagged(w, CFX_KIND_DTYPE, cfx_dtype_name((cfx_dtype)v.as.i),
                     strlen(cfx_dtype_name((cfx_dtype)v.as.i)));
        break;
    case CFX_KIND_LAYOUT:
        write_tagged(w, CFX_KIND_LAYOUT, cfx_layout_name((cfx_layout)v.as.i),
                     strlen(cfx_layout_name((cfx_layout)v.as.i)));
        break;
    case CFX_KIND_MEMORY_FORMAT:
        write_tagged(w, CFX_KIND_MEMORY_FORMAT,
                     cfx_memory_format_name((cfx_memory_format)v.as.i),
                     strlen(cfx_memory_format_name((cfx_memory_format)v.as.i)));
        break;
    case CFX_KIND_NODE:
        write_tagged(w, CFX_KIND_NODE, v.as.node->name->data, v.as.node->name->size);
        break;
    case CFX_KIND_GRAPH:
        cfxi_base_out_str(&w->out, "{\"graph\": ");
        open_graph(w, v.as.ref->region);
        break;
    case CFX_KIND_HOST:
        write_host(w, v);
        break;
    default:
        stop(w, cfx_error_set(w->err, CFX_E_VALUE, "there is an invalid value in a node"));
        break;
    }
}

/* ---- nodes --------------------------------------------------------------------------------- */

static void write_head(writer *w, const cfx_node *n)
{
    cfx_error why = {.status = CFX_OK};
    size_t size;
    const char *target = cfx_node_target(n, &size, &why);
    if (!target) {
        no_name(w, &why);
        return;
    }
    cfxi_base_out_str(&w->out, "{\"name\": ");
    write_string(&w->out, n->name->data, n->name->size);
    cfxi_base_out_printf(&w->out,
                         ", \"op\": \"%s\", \"target\": ", cfx_opcode_name(cfx_node_op(n)));
    write_string(&w->out, target, size);
}

static void write_users(writer *w, const cfx_node *n)
{
    cfxi_base_out_str(&w->out, ", \"users\": [");
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use)) {
        const cfx_node *user = cfx_use_user(use);
        cfxi_base_out_str(&w->out, use == cfx_node_first_use(n) ? "" : ", ");
        write_string(&w->out, user->name->data, user->name->size);
    }
    cfxi_base_out_char(&w->out, ']');
}

/* They are linked from the innermost outwards. */
static void write_scopes(writer *w, const cfx_node *n)
{
    w->scopes.size = 0;
    for (uint32_t at = n->scope; at; at = cfx_graph_stack_outer(n->graph, at)) {
        if (!cfxi_base_vec_reserve(&w->scopes, 1, sizeof at, w->allocator)) {
            stop(w, cfxi_base_nomem(w->err));
            return;
        }
        ((uint32_t *)w->scopes.data)[w->scopes.size++] = at;
    }
    for (size_t i = w->scopes.size; i-- > 0;) {
        const uint32_t at = ((const uint32_t *)w->scopes.data)[i];
        const bool first = i + 1 == w->scopes.size;
        cfxi_base_out_str(&w->out, first ? ", \"scopes\": [{\"path\": " : ", {\"path\": ");
        write_text(w, cfx_graph_stack_path(n->graph, at));
        cfxi_base_out_str(&w->out, ", \"type\": ");
        write_text(w, cfx_graph_stack_type(n->graph, at));
        cfxi_base_out_str(&w->out, i ? "}" : "}]");
    }
}

static void write_tail(writer *w, const cfx_node *n)
{
    write_users(w, n);
    if (cfx_node_file(n)) {
        cfxi_base_out_str(&w->out, ", \"file\": ");
        write_text(w, cfx_node_file(n));
        cfxi_base_out_printf(&w->out, ", \"line\": %u", (unsigned)cfx_node_line(n));
    }
    write_scopes(w, n);
    cfxi_base_out_char(&w->out, '}');
}

/* ---- the next piece ------------------------------------------------------------------------ */

static void open_node(writer *w, cfx_node *n)
{
    frame *f = push(w, FRAME_NODE);
    w->node = n;
    if (f)
        f->node = n;
}

static void step_graph(writer *w, frame *f)
{
    cfx_node *n = f->node;
    if (n == &f->graph->root) {
        w->depth--;
        cfxi_base_out_str(&w->out, w->depth ? "]}}" : "\n]}\n");
        w->frames.size--;
        return;
    }
    const bool first = n == f->graph->root.next;
    cfxi_base_out_str(&w->out, w->depth > 1 ? (first ? "" : ", ") : first ? "\n " : ",\n ");
    f->node = n->next;
    open_node(w, n);
}

static void step_node(writer *w, frame *f)
{
    cfx_node *n = f->node;
    size_t size;
    const cfx_value *items;
    switch (f->i++) {
    case 0:
        write_head(w, n);
        items = cfx_value_items(cfx_node_args(n), &size);
        cfxi_base_out_str(&w->out, ", \"args\": ");
        open_items(w, "[", "]", items, size);
        break;
    case 1:
        items = cfx_value_items(cfx_node_kwargs(n), &size);
        cfxi_base_out_str(&w->out, ", \"kwargs\": ");
        open_items(w, "{", "}", items, size);
        if (w->out.status == CFX_OK)
            ((frame *)w->frames.data)[w->frames.size - 1].object = true;
        break;
    case 2:
        if (cfx_node_type(n).kind == CFX_KIND_INVALID)
            break;
        cfxi_base_out_str(&w->out, ", \"type\": ");
        write_value(w, cfx_node_type(n));
        break;
    default:
        write_tail(w, n);
        w->frames.size--;
        break;
    }
}

static void step_seq(writer *w, frame *f)
{
    const size_t i = f->i++;
    const bool key = (f->pairs || f->object) && i % 2 == 0;
    const bool second = (f->pairs || f->object) && !key;
    if (i == f->n) {
        cfxi_base_out_str(&w->out, f->pairs && i > 0 ? "]" : "");
        cfxi_base_out_str(&w->out, f->close);
        w->frames.size--;
        return;
    }
    if (second)
        cfxi_base_out_str(&w->out, f->object ? ": " : ", ");
    else if (i > 0)
        cfxi_base_out_str(&w->out, f->pairs ? "], " : ", ");
    if (key && f->pairs)
        cfxi_base_out_char(&w->out, '[');
    write_value(w, f->items[i]);
}

static cfx_status write_all(writer *w, cfx_graph *g)
{
    cfxi_ir_graph_freeze(g);
    while (w->frames.size > 0 && w->out.status == CFX_OK) {
        frame *f = (frame *)w->frames.data + w->frames.size - 1;
        if (f->kind == FRAME_GRAPH)
            step_graph(w, f);
        else if (f->kind == FRAME_NODE)
            step_node(w, f);
        else
            step_seq(w, f);
    }
    cfxi_ir_graph_thaw(g);
    cfxi_base_vec_free(&w->frames, sizeof(frame), w->allocator);
    cfxi_base_vec_free(&w->scopes, sizeof(uint32_t), w->allocator);
    return w->status == CFX_OK ? cfxi_base_out_end(&w->out, w->err) : w->status;
}

cfx_status cfx_codegen_json(cfx_graph *g, cfx_sink out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    writer w = {.err = err, .allocator = g->allocator};
    cfxi_base_out_begin(&w.out, out);
    open_graph(&w, g);
    return write_all(&w, g);
}

cfx_status cfx_codegen_node_json(cfx_node *n, cfx_sink out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(n, "node", err));
    writer w = {.err = err, .allocator = n->graph->allocator, .depth = 1};
    cfxi_base_out_begin(&w.out, out);
    open_node(&w, n);
    return write_all(&w, n->graph);
}
