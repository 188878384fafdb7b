/* graph_json.c - a graph as JSON, with every field of every node; codegen.h shows it.
 *
 * Containers and regions nest deeper than a C stack likes, so the writer keeps a stack of its own:
 * each frame is something half written, and `step` writes the next piece of the topmost one.
 */
#include "ir/graph_impl.h"

#include <cfx/codegen.h>
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
    cfxi_json_out json;     /* into `out` */
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

cfx_status cfx_json_string(const char *text, size_t size, cfx_sink sink)
{
    cfxi_out out;
    cfxi_base_out_begin(&out, sink);
    cfxi_base_json_text(&out, text, size);
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

static void write_text(writer *w, const char *text)
{
    cfxi_base_json_string(&w->json, text, strlen(text));
}

/* {"kind": ...} */
static void open_tagged(writer *w, cfx_kind kind)
{
    cfxi_base_json_open(&w->json, '{');
    cfxi_base_json_field(&w->json, cfx_kind_name(kind));
}

static void write_tagged(writer *w, cfx_kind kind, const char *text, size_t size)
{
    open_tagged(w, kind);
    cfxi_base_json_string(&w->json, text, size);
    cfxi_base_json_close(&w->json, '}');
}

static void write_word(writer *w, cfx_kind kind, const char *word)
{
    write_tagged(w, kind, word, strlen(word));
}

static void write_float(writer *w, double f)
{
    char text[CFXI_NUMBER_SIZE];
    if (isfinite(f))
        cfxi_base_json_float(&w->json, f);
    else
        write_tagged(w, CFX_KIND_FLOAT, text, cfxi_base_format_float(f, text));
}

static void write_bytes(writer *w, const char *data, size_t size)
{
    open_tagged(w, CFX_KIND_BYTES);
    cfxi_base_json_raw(&w->json, "\"", 1);
    for (size_t i = 0; i < size; i++)
        cfxi_base_out_printf(&w->out, "%02x", (unsigned char)data[i]);
    cfxi_base_out_char(&w->out, '"');
    cfxi_base_json_close(&w->json, '}');
}

static void write_str(writer *w, cfx_value v)
{
    size_t size;
    const char *text = cfx_value_text(v, &size);
    if (v.kind == CFX_KIND_STR)
        cfxi_base_json_string(&w->json, text, size);
    else if (v.kind == CFX_KIND_BIGINT)
        cfxi_base_json_raw(&w->json, text, size);
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
        write_word(w, CFX_KIND_HOST, name);
    else
        no_name(w, &why);
}

/* `close`: the brackets behind the items. */
static void open_items(writer *w, char open, const char *close, const cfx_value *items, size_t n)
{
    frame *f = push(w, FRAME_SEQ);
    cfxi_base_json_open(&w->json, open);
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
        open_tagged(w, (cfx_kind)v.kind);
    open_items(w, '[', v.kind == CFX_KIND_LIST ? "]" : "]}", items, n);
    if (w->out.status == CFX_OK)
        ((frame *)w->frames.data)[w->frames.size - 1].pairs = v.kind == CFX_KIND_DICT;
}

static void open_graph(writer *w, cfx_graph *g)
{
    frame *f = push(w, FRAME_GRAPH);
    cfxi_base_json_open(&w->json, '{');
    cfxi_base_json_field(&w->json, "nodes");
    cfxi_base_json_open(&w->json, '[');
    w->depth++;
    if (!f)
        return;
    f->graph = g;
    f->node = g->root.next;
}

static void close_all(writer *w, const char *brackets)
{
    for (; *brackets; brackets++)
        cfxi_base_json_close(&w->json, *brackets);
}

/* Writes a scalar; opens a container or a region. */
static void write_value(writer *w, cfx_value v)
{
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
        cfxi_base_json_raw(&w->json, "null", 4);
        break;
    case CFX_KIND_BOOL:
        cfxi_base_json_raw(&w->json, v.as.b ? "true" : "false", v.as.b ? 4 : 5);
        break;
    case CFX_KIND_INT:
        cfxi_base_json_int(&w->json, v.as.i);
        break;
    case CFX_KIND_FLOAT:
        write_float(w, v.as.f);
        break;
    case CFX_KIND_ELLIPSIS:
        write_word(w, CFX_KIND_ELLIPSIS, "...");
        break;
    case CFX_KIND_DTYPE:
        write_word(w, CFX_KIND_DTYPE, cfx_dtype_name((cfx_dtype)v.as.i));
        break;
    case CFX_KIND_LAYOUT:
        write_word(w, CFX_KIND_LAYOUT, cfx_layout_name((cfx_layout)v.as.i));
        break;
    case CFX_KIND_MEMORY_FORMAT:
        write_word(w, CFX_KIND_MEMORY_FORMAT, cfx_memory_format_name((cfx_memory_format)v.as.i));
        break;
    case CFX_KIND_NODE:
        write_tagged(w, CFX_KIND_NODE, v.as.node->name->data, v.as.node->name->size);
        break;
    case CFX_KIND_GRAPH:
        open_tagged(w, CFX_KIND_GRAPH);
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
    cfxi_base_json_open(&w->json, '{');
    cfxi_base_json_field(&w->json, "name");
    cfxi_base_json_string(&w->json, n->name->data, n->name->size);
    cfxi_base_json_field(&w->json, "op");
    write_text(w, cfx_opcode_name(cfx_node_op(n)));
    cfxi_base_json_field(&w->json, "target");
    cfxi_base_json_string(&w->json, target, size);
}

static void write_users(writer *w, const cfx_node *n)
{
    cfxi_base_json_field(&w->json, "users");
    cfxi_base_json_open(&w->json, '[');
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use)) {
        const cfx_node *user = cfx_use_user(use);
        cfxi_base_json_string(&w->json, user->name->data, user->name->size);
    }
    cfxi_base_json_close(&w->json, ']');
}

/* They are linked from the innermost outwards. */
static void write_scopes(writer *w, const cfx_node *n)
{
    w->scopes.size = 0;
    for (uint32_t at = n->scope; at; at = cfx_scope_parent(n->graph, at)) {
        if (!cfxi_base_vec_reserve(&w->scopes, 1, sizeof at, w->allocator)) {
            stop(w, cfxi_base_nomem(w->err));
            return;
        }
        ((uint32_t *)w->scopes.data)[w->scopes.size++] = at;
    }
    if (w->scopes.size == 0)
        return;
    cfxi_base_json_field(&w->json, "scopes");
    cfxi_base_json_open(&w->json, '[');
    for (size_t i = w->scopes.size; i-- > 0;) {
        const uint32_t at = ((const uint32_t *)w->scopes.data)[i];
        cfxi_base_json_open(&w->json, '{');
        cfxi_base_json_field(&w->json, "path");
        write_text(w, cfx_scope_path(n->graph, at));
        cfxi_base_json_field(&w->json, "type");
        write_text(w, cfx_scope_type(n->graph, at));
        cfxi_base_json_close(&w->json, '}');
    }
    cfxi_base_json_close(&w->json, ']');
}

static void write_tail(writer *w, const cfx_node *n)
{
    write_users(w, n);
    if (cfx_node_file(n)) {
        cfxi_base_json_field(&w->json, "file");
        write_text(w, cfx_node_file(n));
        cfxi_base_json_field(&w->json, "line");
        cfxi_base_json_int(&w->json, cfx_node_line(n));
    }
    write_scopes(w, n);
    cfxi_base_json_close(&w->json, '}');
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
        cfxi_base_out_str(&w->out, w->depth ? "" : "\n");
        close_all(w, w->depth ? "]}}" : "]}");
        cfxi_base_out_str(&w->out, w->depth ? "" : "\n");
        w->frames.size--;
        return;
    }
    if (w->depth == 1)
        cfxi_base_json_line(&w->json);
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
        cfxi_base_json_field(&w->json, "args");
        open_items(w, '[', "]", items, size);
        break;
    case 1:
        items = cfx_value_items(cfx_node_kwargs(n), &size);
        cfxi_base_json_field(&w->json, "kwargs");
        open_items(w, '{', "}", items, size);
        if (w->out.status == CFX_OK)
            ((frame *)w->frames.data)[w->frames.size - 1].object = true;
        break;
    case 2:
        if (cfx_node_type(n).kind == CFX_KIND_INVALID)
            break;
        cfxi_base_json_field(&w->json, "type");
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
    if (f->pairs && key && i > 0)
        cfxi_base_json_close(&w->json, ']');
    if (i == f->n) {
        close_all(w, f->close);
        w->frames.size--;
        return;
    }
    if (f->pairs && key)
        cfxi_base_json_open(&w->json, '[');
    if (f->object && key) {
        size_t size;
        const char *text = cfx_value_text(f->items[i], &size);
        cfxi_base_json_key(&w->json, text, size);
        return;
    }
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
    cfxi_base_json_begin(&w.json, &w.out, false);
    open_graph(&w, g);
    return write_all(&w, g);
}

cfx_status cfx_codegen_node_json(cfx_node *n, cfx_sink out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(n, "node", err));
    writer w = {.err = err, .allocator = n->graph->allocator, .depth = 1};
    cfxi_base_out_begin(&w.out, out);
    cfxi_base_json_begin(&w.json, &w.out, false);
    open_node(&w, n);
    return write_all(&w, n->graph);
}
