/* graph_json.c - a graph as JSON, with every field of every node; codegen.h shows it.
 *
 * Each frame of the walk is something half written: a graph, a node (a step for each field that
 * holds values), a container.
 */
#include "ir/walk_impl.h"

#include <cfx/codegen.h>
#include <cfx/embed/codegen.h>
#include <math.h>

/* How the items of a container are written; the mode of its frame. */
typedef enum layout {
    LAYOUT_LIST,    /* [a, b] */
    LAYOUT_TAGGED,  /* {"tuple": [a, b]} */
    LAYOUT_PAIRS,   /* {"dict": [[key, value], ...]} */
    LAYOUT_OBJECT   /* {key: value, ...}: keys are strings */
} layout;

enum { FIELD_ARGS, FIELD_KWARGS, FIELD_TYPE, FIELDS };  /* the steps of a node */

typedef struct writer {
    cfxi_out out;
    cfxi_json_out json;     /* into `out` */
    cfx_error *err;
    cfx_status status;  /* of what is not the sink; *err is set then */
    cfx_node *node;     /* the last one begun, for messages */
    size_t depth;       /* of graphs: only the nodes of the outermost begin a line */
    cfxi_walk walk;
    cfxi_vec scopes;    /* of uint32_t */
    const cfx_allocator *allocator;
} writer;

static void stop(writer *w, cfx_status status)
{
    w->status = status;
    w->out.status = status;
}

cfx_status cfx_json_write_string(const char *text, size_t size, cfx_sink sink)
{
    cfxi_out out;
    cfxi_base_out_begin(&out, sink);
    cfxi_base_json_text(&out, text, size);
    return cfxi_base_out_end(&out, NULL);
}

/* ---- values -------------------------------------------------------------------------------- */

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
                          "name, which JSON cannot represent: %.200s",
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

static void open_items(writer *w, cfx_value v, layout how)
{
    cfxi_walk_frame *f = cfxi_ir_walk_into(&w->walk, v);
    cfxi_base_json_open(&w->json, how == LAYOUT_OBJECT ? '{' : '[');
    if (f)
        f->mode = how;
}

static void open_seq(writer *w, cfx_value v)
{
    if (v.kind != CFX_KIND_LIST)
        open_tagged(w, (cfx_kind)v.kind);
    open_items(w, v, v.kind == CFX_KIND_LIST   ? LAYOUT_LIST
                     : v.kind == CFX_KIND_DICT ? LAYOUT_PAIRS
                                               : LAYOUT_TAGGED);
}

static void open_graph(writer *w, cfx_graph *g)
{
    cfxi_ir_walk_nodes(&w->walk, g);
    cfxi_base_json_open(&w->json, '{');
    cfxi_base_json_field(&w->json, "nodes");
    cfxi_base_json_open(&w->json, '[');
    w->depth++;
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
        stop(w, cfx_error_set(w->err, CFX_E_VALUE, "a node holds an invalid value"));
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
    for (uint32_t at = n->scope; at; at = cfx_graph_stack_outer(n->graph, at)) {
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
        write_text(w, cfx_graph_stack_path(n->graph, at));
        cfxi_base_json_field(&w->json, "type");
        write_text(w, cfx_graph_stack_type(n->graph, at));
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
    w->node = n;
    cfxi_ir_walk_steps(&w->walk, 0, n, FIELDS);
}

static void next_node(writer *w, const cfxi_walk_frame *f)
{
    cfx_node *n = f->node;
    if (w->depth == 1)
        cfxi_base_json_line(&w->json);
    open_node(w, n);
}

static void next_field(writer *w, const cfxi_walk_frame *f)
{
    const cfx_node *n = f->node;
    switch (f->i - 1) {
    case FIELD_ARGS:
        write_head(w, n);
        cfxi_base_json_field(&w->json, "args");
        open_items(w, cfx_node_args(n), LAYOUT_LIST);
        break;
    case FIELD_KWARGS:
        cfxi_base_json_field(&w->json, "kwargs");
        open_items(w, cfx_node_kwargs(n), LAYOUT_OBJECT);
        break;
    case FIELD_TYPE:
        if (cfx_node_type(n).kind == CFX_KIND_INVALID)
            break;
        cfxi_base_json_field(&w->json, "type");
        write_value(w, cfx_node_type(n));
        break;
    }
}

static void next_item(writer *w, const cfxi_walk_frame *f)
{
    const uint32_t i = f->i - 1;
    const bool pairs = f->mode == LAYOUT_PAIRS;
    const bool object = f->mode == LAYOUT_OBJECT;
    const bool key = (pairs || object) && i % 2 == 0;
    if (pairs && key && i > 0)
        cfxi_base_json_close(&w->json, ']');
    if (pairs && key)
        cfxi_base_json_open(&w->json, '[');
    if (object && key) {
        size_t size;
        const char *text = cfx_value_text(f->items[i], &size);
        cfxi_base_json_key(&w->json, text, size);
        return;
    }
    write_value(w, f->items[i]);
}

static void leave_seq(writer *w, const cfxi_walk_frame *f)
{
    static const char *const close[] = {[LAYOUT_LIST] = "]", [LAYOUT_TAGGED] = "]}",
                                        [LAYOUT_PAIRS] = "]}", [LAYOUT_OBJECT] = "}"};
    if (f->mode == LAYOUT_PAIRS && f->n > 0)
        cfxi_base_json_close(&w->json, ']');
    close_all(w, close[f->mode]);
}

static void leave_graph(writer *w)
{
    w->depth--;
    cfxi_base_out_str(&w->out, w->depth ? "" : "\n");
    close_all(w, w->depth ? "]}}" : "]}");
    cfxi_base_out_str(&w->out, w->depth ? "" : "\n");
}

static void write_next(writer *w, const cfxi_walk_frame *f)
{
    switch ((cfxi_walk_what)f->what) {
    case CFXI_WALK_ITEMS:
        next_item(w, f);
        break;
    case CFXI_WALK_STEPS:
        next_field(w, f);
        break;
    case CFXI_WALK_NODES:
        next_node(w, f);
        break;
    }
}

static void write_end(writer *w, const cfxi_walk_frame *f)
{
    if (f->what == CFXI_WALK_ITEMS)
        leave_seq(w, f);
    else if (f->what == CFXI_WALK_NODES)
        leave_graph(w);
    else
        write_tail(w, f->node);
}

static cfx_status write_all(writer *w, cfx_graph *g)
{
    cfxi_walk_frame *f;
    cfxi_walk_event event;
    cfxi_ir_graph_freeze(g);
    while (w->out.status == CFX_OK && (event = cfxi_ir_walk_next(&w->walk, &f)) != CFXI_WALK_END) {
        if (event == CFXI_WALK_NEXT)
            write_next(w, f);
        else
            write_end(w, f);
    }
    cfxi_ir_graph_thaw(g);
    const cfx_status walked = cfxi_ir_walk_end(&w->walk, w->status == CFX_OK ? w->err : NULL);
    cfxi_base_vec_free(&w->scopes, sizeof(uint32_t), w->allocator);
    if (w->status != CFX_OK || walked != CFX_OK)
        return w->status != CFX_OK ? w->status : walked;
    return cfxi_base_out_end(&w->out, w->err);
}

cfx_status cfx_codegen_json(cfx_graph *g, cfx_sink out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    writer w = {.err = err, .allocator = g->allocator};
    cfxi_base_out_begin(&w.out, out);
    cfxi_base_json_begin(&w.json, &w.out, false);
    cfxi_ir_walk_begin(&w.walk, w.allocator);
    open_graph(&w, g);
    return write_all(&w, g);
}

cfx_status cfx_codegen_node_json(cfx_node *n, cfx_sink out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(n, "node", err));
    writer w = {.err = err, .allocator = n->graph->allocator, .depth = 1};
    cfxi_base_out_begin(&w.out, out);
    cfxi_base_json_begin(&w.json, &w.out, false);
    cfxi_ir_walk_begin(&w.walk, w.allocator);
    open_node(&w, n);
    return write_all(&w, n->graph);
}
