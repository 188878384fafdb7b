/* dot.c - a graph in the language of Graphviz.
 *
 *     %relu = call_function[target=torch.relu](%x)     "relu" [label="{%relu|torch.relu|...}"];
 *                                                      "x" -> "relu";
 *
 * Text inside a label goes through a sink that escapes it, and cuts it where it gets long. Nodes
 * are known by their names; inside a region by "outer/0/name". With scopes the nodes are sorted by
 * the scope they are in (counting sort), and the tree of scopes is written as nested clusters, with
 * a stack in the scopes' own array: the depth of modules is not that of the C stack.
 */
#include "ir/graph_impl.h"

#include <cfx/codegen.h>

enum { ROW_LIMIT = 100, MAX_INDENT = 40, NO_SCOPE = 0 };

typedef struct dot {
    const cfx_dot_options *options;
    cfxi_out out;
    cfx_error *err;
    cfx_status status;  /* of the host or of `describe`; *err is set then */
    cfx_buffer prefix;  /* of the nodes of the graph that is being written */
    size_t indent;
    size_t room;        /* bytes that the row may still have */
    unsigned clusters;  /* written so far */
    bool records;
} dot;

/* ---- text ---------------------------------------------------------------------------------- */

static void failed(dot *d, cfx_status status)
{
    if (status == CFX_OK || d->out.status != CFX_OK)
        return;
    d->status = cfxi_base_failed(d->err, status);
    d->out.status = status;
}

static void escape(dot *d, char c)
{
    if (c == '\n') {
        cfxi_base_out_str(&d->out, "\\n");
        return;
    }
    if (c == '"' || c == '\\' || (d->records && strchr("{}|<>", c) && c))
        cfxi_base_out_char(&d->out, '\\');
    cfxi_base_out_char(&d->out, (unsigned char)c < ' ' ? ' ' : c);
}

/* A row that is full ends with dots, after a complete character; what follows is dropped. */
static cfx_status write_escaped(void *ctx, const char *data, size_t size)
{
    dot *d = ctx;
    for (size_t i = 0; i < size && d->room > 0; i++) {
        if (d->room == 1 && ((unsigned char)data[i] & 0xC0) != 0x80) {
            cfxi_base_out_str(&d->out, "...");
            d->room = 0;
            return CFX_OK;
        }
        escape(d, data[i]);
        d->room -= d->room > 1;
    }
    return d->out.status;
}

static cfx_sink escaped(dot *d) { return (cfx_sink){write_escaped, d}; }

static void put(dot *d, const char *text) { write_escaped(d, text, strlen(text)); }

/* The indentation stays bounded, however deep the modules are: the text is linear in the graph. */
static void begin_line(dot *d)
{
    cfxi_base_out_spaces(&d->out, d->indent < MAX_INDENT ? d->indent : MAX_INDENT);
}

/* A field of a record; of other shapes, a line. */
static void begin_row(dot *d)
{
    cfxi_base_out_str(&d->out, d->records ? "|" : "\\n");
    d->room = ROW_LIMIT;
}

static void write_id(dot *d, const cfx_node *n)
{
    const bool records = d->records;
    d->records = false;  /* braces mean nothing here */
    d->room = SIZE_MAX;
    cfxi_base_out_char(&d->out, '"');
    write_escaped(d, d->prefix.data, d->prefix.size);
    write_escaped(d, n->name->data, n->name->size);
    cfxi_base_out_char(&d->out, '"');
    d->records = records;
}

/* ---- labels -------------------------------------------------------------------------------- */

/* "call_function torch.relu"; by the object's repr where it has no name. */
static void write_target(dot *d, cfx_node *n)
{
    cfx_error why = {.status = CFX_OK};
    size_t size;
    begin_row(d);
    put(d, cfx_opcode_name(cfx_node_op(n)));
    if (n->op == CFX_OP_OUTPUT)
        return;
    put(d, " ");
    const char *target = cfx_node_target(n, &size, &why);
    const cfx_host *host = cfx_graph_host(cfx_node_graph(n));
    if (target)
        write_escaped(d, target, size);
    else if (why.status == CFX_E_KEY)
        failed(d, host->repr(host->ctx, cfx_node_target_object(n), escaped(d), d->err));
    else {
        if (d->err)
            *d->err = why;
        failed(d, why.status);
    }
}

static bool is_shown(const dot *d, cfx_value v)
{
    return v.kind != CFX_KIND_GRAPH && !(d->options->literals_only && v.kind == CFX_KIND_NODE);
}

/* `key` is INVALID for a positional argument. */
static void write_argument(dot *d, cfx_graph *g, cfx_value key, cfx_value v, bool *some)
{
    size_t size;
    if (!is_shown(d, v) || d->out.status != CFX_OK)
        return;
    if (*some)
        put(d, ", ");
    else
        begin_row(d);
    *some = true;
    const char *text = key.kind == CFX_KIND_INVALID ? NULL : cfx_value_text(key, &size);
    if (text) {
        write_escaped(d, text, size);
        put(d, "=");
    }
    failed(d, cfx_value_print(g, v, escaped(d), d->err));
}

static void write_arguments(dot *d, cfx_node *n)
{
    size_t size;
    bool some = false;
    const cfx_value none = {.kind = CFX_KIND_INVALID};
    const cfx_value *items = cfx_value_items(cfx_node_args(n), &size);
    for (size_t i = 0; i < size; i++)
        write_argument(d, cfx_node_graph(n), none, items[i], &some);
    items = cfx_value_items(cfx_node_kwargs(n), &size);
    for (size_t i = 0; i < size; i += 2)
        write_argument(d, cfx_node_graph(n), items[i], items[i + 1], &some);
}

/* What the caller knows of a node is a row only if it says something. */
static void write_description(dot *d, cfx_node *n)
{
    cfx_buffer text;
    if (!d->options->describe || d->out.status != CFX_OK)
        return;
    cfx_buffer_init(&text, cfx_graph_allocator(cfx_node_graph(n)));
    failed(d, d->options->describe(d->options->ctx, n, cfx_buffer_sink(&text), d->err));
    if (text.size > 0) {
        begin_row(d);
        d->room = SIZE_MAX;
        write_escaped(d, text.data, text.size);
    }
    cfx_buffer_free(&text);
}

static void write_location(dot *d, const cfx_node *n)
{
    char line[CFXI_NUMBER_SIZE];
    const char *file = d->options->locations ? cfx_node_file(n) : NULL;
    if (!file)
        return;
    begin_row(d);
    d->room = SIZE_MAX;
    put(d, file);
    put(d, ":");
    write_escaped(d, line, cfxi_base_format_int(cfx_node_line(n), line));
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* Calls of one target have one colour. */
static const char *colour_of(const cfx_node *n)
{
    static const char *const by_target[] = {
        "#d6eaf8", "#fadbd8", "#d5f5e3", "#fdebd0", "#e8daef", "#d1f2eb", "#f6ddcc", "#e5e8b6",
    };
    switch ((cfx_opcode)n->op) {
    case CFX_OP_PLACEHOLDER: return "aliceblue";
    case CFX_OP_GET_ATTR: return "lightgrey";
    case CFX_OP_CALL_MODULE: return "lemonchiffon";
    case CFX_OP_OUTPUT: return "powderblue";
    case CFX_OP_CALL_FUNCTION:
    case CFX_OP_CALL_METHOD:
    case CFX_OPCODE_COUNT: break;
    }
    size_t size;
    const char *target = cfx_node_target(n, &size, NULL);
    const uint64_t hash = target ? cfxi_base_hash_bytes(target, size) : 0;
    return by_target[(hash >> 16) % (sizeof by_target / sizeof *by_target)];
}

static bool is_hidden(const dot *d, const cfx_node *n)
{
    return d->options->hide_get_attr && n->op == CFX_OP_GET_ATTR;
}

static void write_regions(dot *d, cfx_node *n);

static void write_node(dot *d, cfx_node *n)
{
    if (is_hidden(d, n) || d->out.status != CFX_OK)
        return;
    begin_line(d);
    write_id(d, n);
    cfxi_base_out_str(&d->out, d->records ? " [label=\"{" : " [label=\"");
    d->room = ROW_LIMIT;
    put(d, "%");
    write_escaped(d, n->name->data, n->name->size);
    write_target(d, n);
    write_arguments(d, n);
    write_description(d, n);
    write_location(d, n);
    const char *colour = d->options->colour ? d->options->colour(d->options->ctx, n) : NULL;
    cfxi_base_out_printf(&d->out, "%s\", fillcolor=\"%s\"];\n", d->records ? "}" : "",
                         colour ? colour : colour_of(n));
    write_regions(d, n);
}

static void write_edges(dot *d, const cfx_graph *g)
{
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        const size_t inputs = is_hidden(d, n) ? 0 : cfx_node_num_inputs(n);
        for (size_t i = 0; i < inputs; i++) {
            const cfx_node *def = cfx_node_input(n, i);
            if (is_hidden(d, def))
                continue;
            begin_line(d);
            write_id(d, def);
            cfxi_base_out_str(&d->out, " -> ");
            write_id(d, n);
            cfxi_base_out_str(&d->out, ";\n");
        }
    }
}

/* ---- scopes -------------------------------------------------------------------------------- */

/* One scope, and the nodes in it: first, first + 1, ... before `end` among the sorted ones. */
typedef struct scope_entry {
    size_t first, end;
    uint32_t child, sibling, parent;  /* in the tree; NO_SCOPE for none */
} scope_entry;

typedef struct scope_tree {
    scope_entry *scopes;  /* by number; NO_SCOPE is the root */
    size_t n_scopes;
    cfx_node **nodes;
    size_t n_nodes;
} scope_tree;

/* A scope has a smaller number than those inside of it. */
static uint32_t largest_scope(const cfx_graph *g)
{
    uint32_t largest = NO_SCOPE;
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
        largest = cfx_node_module_stack(n) > largest ? cfx_node_module_stack(n) : largest;
    return largest;
}

/* Links each scope to its parent, in the order of their numbers. */
static void link_scopes(scope_tree *t, const cfx_graph *g)
{
    for (size_t i = t->n_scopes; i-- > 1;) {
        const uint32_t parent = cfx_graph_stack_outer(g, (uint32_t)i);
        t->scopes[i].parent = parent;
        t->scopes[i].sibling = t->scopes[parent].child;
        t->scopes[parent].child = (uint32_t)i;
    }
}

static void sort_nodes(scope_tree *t, cfx_graph *g)
{
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
        t->scopes[cfx_node_module_stack(n)].end++;
    size_t first = 0;
    for (size_t i = 0; i < t->n_scopes; i++) {
        const size_t count = t->scopes[i].end;
        t->scopes[i].first = t->scopes[i].end = first;
        first += count;
    }
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
        t->nodes[t->scopes[cfx_node_module_stack(n)].end++] = n;
}

static void open_cluster(dot *d, const char *style)
{
    begin_line(d);
    cfxi_base_out_printf(&d->out, "subgraph \"cluster_%u\" {\n", d->clusters++);
    d->indent += 2;
    begin_line(d);
    cfxi_base_out_printf(&d->out, "style=\"%s\"; label=\"", style);
    d->room = ROW_LIMIT;
}

static void close_cluster(dot *d)
{
    d->indent -= 2;
    begin_line(d);
    cfxi_base_out_str(&d->out, "}\n");
}

static void enter_scope(dot *d, const cfx_graph *g, const scope_tree *t, uint32_t scope)
{
    if (scope != NO_SCOPE) {
        open_cluster(d, "rounded");
        put(d, cfx_graph_stack_path(g, scope));
        put(d, " ");
        put(d, cfx_graph_stack_type(g, scope));
        cfxi_base_out_str(&d->out, "\";\n");
    }
    for (size_t i = t->scopes[scope].first; i < t->scopes[scope].end; i++)
        write_node(d, t->nodes[i]);
}

/* Down to the first child, on to the next sibling, else up again. */
static void write_scopes(dot *d, const cfx_graph *g, const scope_tree *t)
{
    uint32_t at = NO_SCOPE;
    enter_scope(d, g, t, at);
    for (bool down = true; d->out.status == CFX_OK;) {
        const uint32_t next = down ? t->scopes[at].child : t->scopes[at].sibling;
        if (!down)
            close_cluster(d);
        if (next != NO_SCOPE) {
            at = next;
            enter_scope(d, g, t, at);
            down = true;
        } else if (down && at != NO_SCOPE) {
            down = false;
        } else if (at == NO_SCOPE || (at = t->scopes[at].parent) == NO_SCOPE) {
            return;
        }
    }
}

static void write_by_scope(dot *d, cfx_graph *g)
{
    const cfx_allocator *allocator = cfx_graph_allocator(g);
    scope_tree t = {.n_scopes = (size_t)largest_scope(g) + 1, .n_nodes = cfx_graph_size(g)};
    const size_t scopes_size = t.n_scopes * sizeof *t.scopes;
    const size_t nodes_size = (t.n_nodes + 1) * sizeof *t.nodes;
    t.scopes = cfxi_base_alloc(allocator, scopes_size);
    t.nodes = cfxi_base_alloc(allocator, nodes_size);
    if (t.scopes && t.nodes) {
        memset(t.scopes, 0, scopes_size);
        link_scopes(&t, g);
        sort_nodes(&t, g);
        write_scopes(d, g, &t);
    } else {
        failed(d, CFX_E_NOMEM);
    }
    if (t.nodes)
        cfxi_base_free(allocator, t.nodes, nodes_size);
    if (t.scopes)
        cfxi_base_free(allocator, t.scopes, scopes_size);
}

/* ---- graphs and regions -------------------------------------------------------------------- */

static void write_graph(dot *d, cfx_graph *g)
{
    if (d->options->module_stacks) {
        write_by_scope(d, g);
    } else {
        for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
            write_node(d, n);
    }
    write_edges(d, g);
}

/* "outer/0/" before the names of the nodes in the first region of %outer. */
static void extend_prefix(dot *d, const cfx_node *owner, size_t i)
{
    char number[CFXI_NUMBER_SIZE];
    const size_t size = cfxi_base_format_int((int64_t)i, number);
    if (cfx_buffer_append(&d->prefix, owner->name->data, owner->name->size) != CFX_OK ||
        cfx_buffer_append(&d->prefix, "/", 1) != CFX_OK ||
        cfx_buffer_append(&d->prefix, number, size) != CFX_OK ||
        cfx_buffer_append(&d->prefix, "/", 1) != CFX_OK)
        failed(d, CFX_E_NOMEM);
}

/* A region is a cluster; its result goes to its owner. */
static void write_region(dot *d, cfx_node *owner, cfx_graph *region, size_t i)
{
    const size_t before = d->prefix.size;
    const cfx_node *last = cfx_graph_last(region);
    open_cluster(d, "rounded,dashed");
    put(d, "%");
    write_escaped(d, owner->name->data, owner->name->size);
    cfxi_base_out_printf(&d->out, ", region %zu\";\n", i);
    extend_prefix(d, owner, i);
    write_graph(d, region);
    close_cluster(d);
    if (last) {
        begin_line(d);
        write_id(d, last);
        d->prefix.size = before;
        cfxi_base_out_str(&d->out, " -> ");
        write_id(d, owner);
        cfxi_base_out_str(&d->out, " [style=dashed];\n");
    }
    d->prefix.size = before;
}

/* The nesting of regions is limited (CFX_MAX_REGION_DEPTH), so this may call itself. */
static void write_regions(dot *d, cfx_node *n)
{
    size_t found = 0;
    const cfx_value given[] = {cfx_node_args(n), cfx_node_kwargs(n)};
    for (int k = 0; k < 2; k++) {
        size_t size;
        const cfx_value *items = cfx_value_items(given[k], &size);
        for (size_t i = k; i < size && d->out.status == CFX_OK; i += (size_t)k + 1) {
            cfx_graph *region = cfx_value_graph(items[i]);
            if (region)
                write_region(d, n, region, found++);
        }
    }
}

cfx_status cfx_codegen_dot(cfx_graph *g, const cfx_dot_options *options, cfx_sink sink,
                           cfx_error *err)
{
    static const cfx_dot_options plain = {0};
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    dot d = {.options = options ? options : &plain, .err = err, .indent = 2};
    const char *shape = d.options->shape ? d.options->shape : "record";
    cfxi_ir_graph_freeze(g);
    cfx_buffer_init(&d.prefix, cfx_graph_allocator(g));
    cfxi_base_out_begin(&d.out, sink);
    cfxi_base_out_str(&d.out, "digraph \"");
    d.room = SIZE_MAX;
    put(&d, d.options->name ? d.options->name : "graph");
    cfxi_base_out_str(&d.out, "\" {\n  fontname=\"monospace\"; fontsize=10; rankdir=TB;\n"
                         "  node [fontname=\"monospace\", fontsize=10, style=\"filled,rounded\", "
                         "shape=\"");
    put(&d, shape);
    cfxi_base_out_str(&d.out, "\"];\n");
    d.records = strcmp(shape, "record") == 0 || strcmp(shape, "Mrecord") == 0;
    write_graph(&d, g);
    cfxi_base_out_str(&d.out, "}\n");
    cfx_buffer_free(&d.prefix);
    cfxi_ir_graph_thaw(g);
    return d.status == CFX_OK ? cfxi_base_out_end(&d.out, err) : d.status;
}
