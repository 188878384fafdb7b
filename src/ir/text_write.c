/* text_write.c - writes the lossless IR text of a graph (docs/ir.md).
 *
 * Each frame of the walk is something half written: a graph (its mark is the indent of its nodes),
 * a container, a node whose type is being written, or the arguments of a node.
 */
#include "text_lex_impl.h"
#include "walk_impl.h"

#include <stdlib.h>

enum { STEPS_TYPE, STEPS_CALL };  /* the steps of a node: none, and one for each argument */

typedef struct writer {
    cfx_graph *graph;  /* the one whose node is being written */
    cfx_node *node;    /* that node, for messages */
    cfxi_out out;
    cfx_error *err;
    cfx_status status;
    cfxi_walk walk;   /* a set that had to be sorted owns a copy of its items */
    cfxi_vec scopes;  /* of uint32_t */
    const cfx_allocator *allocator;
    bool brief;       /* one node alone, on one line: regions are only hinted at */
} writer;

/* ---- failing ------------------------------------------------------------------------------- */

/* The first failure stops the writing. */
static void stop(writer *w, cfx_status status)
{
    w->status = status;
    w->out.status = status;
}

static void write_nomem(writer *w) { stop(w, cfxi_base_nomem(w->err)); }

/* ---- words --------------------------------------------------------------------------------- */

/* As it is if every character belongs to the class, else quoted. */
static void write_word(writer *w, cfxi_char_class class, const char *text, size_t size)
{
    if (cfxi_ir_is_run(class, text, size)) {
        cfxi_base_out_write(&w->out, text, size);
        return;
    }
    if (!cfxi_base_utf8_valid(text, size))
        stop(w, cfx_error_set(w->err, CFX_E_VALUE, "node %%%s has a name, target or scope that is "
                              "not UTF-8; rename it", w->node->name->data));
    cfxi_base_out_quoted(&w->out, text, size, '"');
}

static void write_node_name(writer *w, const cfx_node *n)
{
    cfxi_base_out_char(&w->out, '%');
    write_word(w, CFXI_CHAR_NAME, n->name->data, n->name->size);
}

static void write_key(writer *w, const cfx_str *key)
{
    if (cfxi_base_is_identifier(key->data, key->size))
        cfxi_base_out_write(&w->out, key->data, key->size);
    else
        cfxi_base_out_quoted(&w->out, key->data, key->size, '"');
    cfxi_base_out_char(&w->out, '=');
}

static void name_fails(writer *w, const char *what, cfx_status status, const char *why)
{
    if (status == CFX_E_NOMEM)
        write_nomem(w);
    else if (status == CFX_E_HOST)
        stop(w, cfx_error_set(w->err, CFX_E_HOST, "%s", why));
    else
        stop(w, cfx_error_set(w->err, CFX_E_VALUE, "node %%%s: %s is an object without a qualified "
                              "name, which IR text cannot hold; store it as an attribute of the "
                              "module, or define it at the top level of a file (%.200s)",
                              w->node->name->data, what, why));
}

/* Whether the name leads back to the object, so that the reader finds it again. */
static cfx_status check_lookup(writer *w, cfx_ref *ref, const cfx_str *name, cfx_error *why)
{
    const cfx_host *host = w->graph->host;
    void *found = NULL;
    if (ref->kind != CFXI_REF_OBJECT || ref->name_checked || !host->resolve)
        return CFX_OK;
    CFX_TRY(host->resolve(host->ctx, name->data, &found, why));
    ref->name_checked = found == ref->object ||
                        (found && host->equal &&
                         host->equal(host->ctx, found, ref->object) == 1);
    if (found)
        host->release(host->ctx, found);
    if (ref->name_checked)
        return CFX_OK;
    return cfx_error_set(why, CFX_E_KEY, "%s has the name %.150s",
                         found ? "another object" : "no loaded object", name->data);
}

/* The qualified name of a host object, or NULL after reporting that it has none. */
static const cfx_str *name_of(writer *w, cfx_ref *ref, const char *what)
{
    cfx_error why = {.status = CFX_E_HOST};
    const cfx_str *name = cfxi_ir_ref_qualified_name(w->graph, ref, &why);
    if (!name) {
        name_fails(w, what, why.status, why.message);
        return NULL;
    }
    cfx_status status = check_lookup(w, ref, name, &why);
    if (status == CFX_OK)
        return name;
    name_fails(w, what, status, why.message);
    return NULL;
}

/* ---- the order of sets --------------------------------------------------------------------- */

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

static int compare_str(const cfx_str *a, const cfx_str *b)
{
    const int order = memcmp(a->data, b->data, a->size < b->size ? a->size : b->size);
    return order ? order : COMPARE(a->size, b->size);
}

/* Maps floats to numbers in the same order; zeros and nans are told apart by their bits. */
static uint64_t float_rank(double f)
{
    const uint64_t sign = (uint64_t)1 << 63;
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits & sign ? ~bits : bits | sign;
}

static int compare_floats(double a, double b) { return COMPARE(float_rank(a), float_rank(b)); }

/* Scalars by kind, then by what they are; never by where they lie. */
static int compare_scalars(const void *left, const void *right)
{
    const cfx_value a = *(const cfx_value *)left;
    const cfx_value b = *(const cfx_value *)right;
    if (a.kind != b.kind)
        return COMPARE(a.kind, b.kind);
    if (cfxi_ir_is_str(a))
        return compare_str(a.as.str, b.as.str);
    if (a.kind == CFX_KIND_FLOAT)
        return compare_floats(a.as.f, b.as.f);
    if (a.kind == CFX_KIND_BOOL)
        return COMPARE(a.as.b, b.as.b);
    if (a.kind != CFX_KIND_COMPLEX)
        return COMPARE(a.as.i, b.as.i);
    const cfx_value *x = a.as.seq->items;
    const cfx_value *y = b.as.seq->items;
    const int order = compare_floats(x[0].as.f, y[0].as.f);
    return order ? order : compare_floats(x[1].as.f, y[1].as.f);
}

static bool needs_sorting(const cfxi_walk_frame *f)
{
    bool ordered = true;
    if (f->kind != CFX_KIND_SET && f->kind != CFX_KIND_FROZENSET)
        return false;
    for (size_t i = 0; i < f->n; i++) {
        if (f->items[i].kind == CFX_KIND_INVALID || f->items[i].kind > CFX_KIND_COMPLEX)
            return false; /* nodes and containers, which only C puts into sets, stay as they lie */
        ordered = ordered && (i == 0 || compare_scalars(&f->items[i - 1], &f->items[i]) <= 0);
    }
    return !ordered;
}

/* A host keeps a set in the order of its hashes, which differs between processes. */
static void sort_set(writer *w, cfxi_walk_frame *f)
{
    if (!needs_sorting(f))
        return;
    cfx_value *sorted = cfxi_base_alloc(w->allocator, f->n * sizeof *sorted);
    if (!sorted) {
        write_nomem(w);
        return;
    }
    memcpy(sorted, f->items, f->n * sizeof *sorted);
    qsort(sorted, f->n, sizeof *sorted, compare_scalars);
    f->items = f->own.data = sorted;
}

static void free_sorted(writer *w, const cfxi_walk_frame *f)
{
    if (f->what == CFXI_WALK_ITEMS && f->own.data)
        cfxi_base_free(w->allocator, f->own.data, f->n * sizeof *f->items);
}

/* ---- values -------------------------------------------------------------------------------- */

/* Hands on a frame; NULL says that memory has run out. */
static cfxi_walk_frame *entered(writer *w, cfxi_walk_frame *f)
{
    if (!f)
        write_nomem(w);
    return f;
}

static void write_float(writer *w, double f)
{
    char text[CFXI_NUMBER_SIZE];
    uint64_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (f != f && bits != 0x7ff8000000000000u)
        cfxi_base_out_printf(&w->out, "nan(0x%016llx)", (unsigned long long)bits);
    else
        cfxi_base_out_write(&w->out, text, cfxi_base_format_float(f, text));
}

static void write_str(writer *w, cfx_value v)
{
    const cfx_str *str = v.as.str;
    if (v.kind == CFX_KIND_BYTES) {
        cfxi_base_out_quoted_bytes(&w->out, str->data, str->size, '"');
    } else if (v.kind == CFX_KIND_BIGINT) {
        cfxi_base_out_write(&w->out, str->data, str->size);
    } else {
        const bool device = v.kind == CFX_KIND_DEVICE;
        cfxi_base_out_str(&w->out, device ? "device(" : "");
        cfxi_base_out_quoted(&w->out, str->data, str->size, '"');
        cfxi_base_out_str(&w->out, device ? ")" : "");
    }
}

static void write_host(writer *w, cfx_ref *ref)
{
    const cfx_str *name = name_of(w, ref, "an argument");
    cfxi_base_out_char(&w->out, '&');
    if (name)
        write_word(w, CFXI_CHAR_DOTTED, name->data, name->size);
}

/* How a container opens; brackets as in Python, the others as a call. */
static const char *opening(cfx_kind kind)
{
    switch (kind) {
    case CFX_KIND_LIST:
        return "[";
    case CFX_KIND_TUPLE:
        return "(";
    case CFX_KIND_DICT:
        return "{";
    default:
        return cfx_kind_name(kind);
    }
}

static void open_seq(writer *w, cfx_value v)
{
    const bool bracket = v.kind == CFX_KIND_LIST || v.kind == CFX_KIND_TUPLE ||
                         v.kind == CFX_KIND_DICT;
    cfxi_walk_frame *f = entered(w, cfxi_ir_walk_into(&w->walk, v));
    if (!f)
        return;
    sort_set(w, f);
    cfxi_base_out_str(&w->out, opening((cfx_kind)v.kind));
    cfxi_base_out_str(&w->out, bracket ? "" : "(");
}

static void open_graph(writer *w, cfx_graph *g, size_t indent)
{
    cfxi_walk_frame *f = entered(w, cfxi_ir_walk_nodes(&w->walk, g));
    if (f)
        f->mark = (uint32_t)indent;
}

static void write_int(writer *w, int64_t i)
{
    char text[CFXI_NUMBER_SIZE];
    cfxi_base_out_write(&w->out, text, cfxi_base_format_int(i, text));
}

/* Writes a scalar; opens a container or a region. */
static void write_value(writer *w, cfx_value v)
{
    switch ((cfx_kind)v.kind) {
    case CFX_KIND_INVALID:
    case CFX_KIND_COUNT:
        stop(w, cfx_error_set(w->err, CFX_E_VALUE, "node %%%s holds an invalid value",
                              w->node->name->data));
        break;
    case CFX_KIND_NONE:
    case CFX_KIND_BOOL:
    case CFX_KIND_DTYPE:
    case CFX_KIND_LAYOUT:
    case CFX_KIND_MEMORY_FORMAT:
        cfxi_base_out_str(&w->out, cfxi_ir_value_word(v));
        break;
    case CFX_KIND_ELLIPSIS:
        cfxi_base_out_str(&w->out, "...");
        break;
    case CFX_KIND_INT:
        write_int(w, v.as.i);
        break;
    case CFX_KIND_FLOAT:
        write_float(w, v.as.f);
        break;
    case CFX_KIND_STR:
    case CFX_KIND_BYTES:
    case CFX_KIND_BIGINT:
    case CFX_KIND_DEVICE:
        write_str(w, v);
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
        open_seq(w, v);
        break;
    case CFX_KIND_NODE:
        write_node_name(w, v.as.node);
        break;
    case CFX_KIND_GRAPH:
        if (w->brief) {
            cfxi_base_out_str(&w->out, "graph {...}");
            break;
        }
        cfxi_base_out_str(&w->out, "graph {\n");
        open_graph(w, v.as.ref->region, cfxi_ir_walk_graph(&w->walk)->mark + 4);
        break;
    case CFX_KIND_HOST:
        write_host(w, v.as.ref);
        break;
    }
}

/* ---- locations ----------------------------------------------------------------------------- */

static void write_scopes(writer *w, uint32_t scope)
{
    w->scopes.size = 0;
    for (; scope; scope = cfx_graph_stack_outer(w->graph, scope)) {
        if (!cfxi_base_vec_reserve(&w->scopes, 1, sizeof scope, w->allocator)) {
            write_nomem(w);
            return;
        }
        ((uint32_t *)w->scopes.data)[w->scopes.size++] = scope;
    }
    for (size_t i = w->scopes.size; i > 0; i--) {
        const uint32_t at = ((uint32_t *)w->scopes.data)[i - 1];
        const char *path = cfx_graph_stack_path(w->graph, at);
        const char *type = cfx_graph_stack_type(w->graph, at);
        cfxi_base_out_str(&w->out, i == w->scopes.size ? " in " : " > ");
        write_word(w, CFXI_CHAR_DOTTED, path, strlen(path));
        cfxi_base_out_char(&w->out, '(');
        write_word(w, CFXI_CHAR_DOTTED, type, strlen(type));
        cfxi_base_out_char(&w->out, ')');
    }
}

static void write_location(writer *w, const cfx_node *n)
{
    const char *file = cfx_node_file(n);
    if (!file && !n->scope)
        return;
    cfxi_base_out_str(&w->out, "  @");
    if (file) {
        cfxi_base_out_char(&w->out, ' ');
        /* Not to be taken for the word that introduces the scopes: "in", "in/model.py" */
        if (strncmp(file, "in", 2) == 0 && !cfxi_ir_is_char(CFXI_CHAR_DOTTED, file[2]))
            cfxi_base_out_quoted(&w->out, file, strlen(file), '"');
        else
            write_word(w, CFXI_CHAR_FILE, file, strlen(file));
        cfxi_base_out_char(&w->out, ':');
        write_int(w, cfx_node_line(n));
    }
    write_scopes(w, n->scope);
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* A name that two nodes share cannot be referred to. The owner of a name is one of its nodes, or
 * nobody after an edit: then it is looked for. */
static void check_name(writer *w, cfx_node *n)
{
    if (n->name->owner == n)
        return;
    for (const cfx_node *other = w->graph->root.next; other != &w->graph->root;
         other = other->next) {
        if (other == n || other->name != n->name)
            continue;
        stop(w, cfx_error_set(w->err, CFX_E_GRAPH, "two nodes are named %%%s, so IR text cannot "
                              "tell them apart; rename one of them", n->name->data));
        return;
    }
    if (!n->name->owner)
        n->name->owner = n;
}

static bool is_word(const cfx_str *str, const char *word)
{
    return str->size == strlen(word) && memcmp(str->data, word, str->size) == 0;
}

/* Stars may lead: "*args" and "**kwargs" are targets of placeholders. */
static void write_target(writer *w, const cfx_str *target)
{
    size_t stars = 0;
    while (stars < target->size && stars < 2 && target->data[stars] == '*')
        stars++;
    if (!cfxi_ir_is_run(CFXI_CHAR_DOTTED, target->data + stars, target->size - stars))
        stars = 0;
    cfxi_base_out_write(&w->out, target->data, stars);
    write_word(w, CFXI_CHAR_DOTTED, target->data + stars, target->size - stars);
}

/* From the opcode to the opening parenthesis; the arguments follow. */
static void write_head(writer *w, cfx_node *n)
{
    const cfx_str *target = name_of(w, n->callee->ref, "the target");
    const size_t count = (n->args ? n->args->size : 0) + (n->kwargs ? n->kwargs->size / 2 : 0);
    if (!entered(w, cfxi_ir_walk_steps(&w->walk, STEPS_CALL, n, count)) || !target)
        return;
    cfxi_base_out_str(&w->out, cfx_opcode_name((cfx_opcode)n->op));
    if (n->op != CFX_OP_OUTPUT || !is_word(target, "output")) {
        cfxi_base_out_str(&w->out, "[target=");
        write_target(w, target);
        cfxi_base_out_char(&w->out, ']');
    }
    cfxi_base_out_char(&w->out, '(');
}

/* The plain output needs no name. */
static bool is_anonymous(const cfx_node *n)
{
    return n->op == CFX_OP_OUTPUT && n->name->size == 6 && memcmp(n->name->data, "output", 6) == 0;
}

static void write_node(writer *w, cfx_node *n)
{
    const bool has_type = n->ext && n->ext->type.kind != CFX_KIND_INVALID;
    w->node = n;
    if (!w->brief)
        check_name(w, n);
    if (w->out.status != CFX_OK)
        return;
    if (has_type || !is_anonymous(n))
        write_node_name(w, n);
    if (has_type) {
        if (!entered(w, cfxi_ir_walk_steps(&w->walk, STEPS_TYPE, n, 0)))
            return;
        cfxi_base_out_str(&w->out, ": ");
        write_value(w, n->ext->type);
        return;
    }
    cfxi_base_out_str(&w->out, is_anonymous(n) ? "" : " = ");
    write_head(w, n);
}

/* ---- the next piece ------------------------------------------------------------------------ */

static void next_node(writer *w, const cfxi_walk_frame *f)
{
    w->graph = f->node->graph;
    cfxi_base_out_spaces(&w->out, f->mark);
    write_node(w, f->node);
}

/* Goes back to the node that holds the region just written. */
static void leave_graph(writer *w, const cfxi_walk_frame *f)
{
    const cfxi_walk_frame *outer = cfxi_ir_walk_graph(&w->walk);
    if (!outer)
        return;
    cfxi_base_out_spaces(&w->out, f->mark - 2);
    cfxi_base_out_char(&w->out, '}');
    w->node = outer->node;
    w->graph = outer->node->graph;
}

static void next_argument(writer *w, const cfxi_walk_frame *f)
{
    const cfx_node *n = f->node;
    const size_t i = f->i - 1;
    const size_t positional = n->args ? n->args->size : 0;
    cfxi_base_out_str(&w->out, i ? ", " : "");
    if (i < positional) {
        write_value(w, n->args->items[i]);
        return;
    }
    const cfx_value *entry = &n->kwargs->items[2 * (i - positional)];
    write_key(w, entry[0].as.str);
    write_value(w, entry[1]);
}

static void leave_call(writer *w, const cfx_node *n)
{
    cfxi_base_out_char(&w->out, ')');
    if (w->brief)
        return;
    write_location(w, n);
    cfxi_base_out_char(&w->out, '\n');
}

static void leave_seq(writer *w, const cfxi_walk_frame *f)
{
    free_sorted(w, f);
    cfxi_base_out_str(&w->out, f->kind == CFX_KIND_TUPLE && f->n == 1 ? "," : "");
    cfxi_base_out_char(&w->out, f->kind == CFX_KIND_LIST   ? ']'
                                : f->kind == CFX_KIND_DICT ? '}'
                                                           : ')');
}

static void next_item(writer *w, cfxi_walk_frame *f)
{
    const size_t i = f->i - 1;
    const cfx_value *items = f->items;
    const bool value_of_dict = f->kind == CFX_KIND_DICT && i % 2 == 1;
    cfxi_base_out_str(&w->out, value_of_dict ? ": " : i ? ", " : "");
    if (f->kind == CFX_KIND_NAMEDTUPLE && i == 0)
        f->i = 2; /* the names of the fields stand with their values */
    if (f->kind == CFX_KIND_NAMEDTUPLE && i >= 2)
        write_key(w, items[1].as.seq->items[i - 2].as.str);
    write_value(w, items[i]);
}

static void write_next(writer *w, cfxi_walk_frame *f)
{
    switch ((cfxi_walk_what)f->what) {
    case CFXI_WALK_ITEMS:
        next_item(w, f);
        break;
    case CFXI_WALK_STEPS:
        next_argument(w, f);
        break;
    case CFXI_WALK_NODES:
        next_node(w, f);
        break;
    }
}

static void write_end(writer *w, const cfxi_walk_frame *f)
{
    cfx_node *n = f->node;
    if (f->what == CFXI_WALK_ITEMS) {
        leave_seq(w, f);
    } else if (f->what == CFXI_WALK_NODES) {
        leave_graph(w, f);
    } else if (f->kind == STEPS_CALL) {
        leave_call(w, n);
    } else {
        cfxi_base_out_str(&w->out, " = ");
        write_head(w, n);
    }
}

/* After a failure, what was half written is still there. */
static void writer_free(writer *w)
{
    while (w->walk.depth > 0)
        free_sorted(w, cfxi_ir_walk_pop(&w->walk));
    cfxi_ir_walk_end(&w->walk, NULL);
    cfxi_base_vec_free(&w->scopes, sizeof(uint32_t), w->allocator);
}

static cfx_status write_all(writer *w)
{
    cfx_graph *g = w->graph;
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
    writer_free(w);
    return w->status == CFX_OK ? cfxi_base_out_end(&w->out, w->err) : w->status;
}

cfx_status cfx_graph_text(cfx_graph *g, cfx_sink out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    writer w = {.graph = g, .err = err, .allocator = g->allocator};
    cfxi_base_out_begin(&w.out, out);
    cfxi_ir_walk_begin(&w.walk, g->allocator);
    cfxi_base_out_str(&w.out, "graph():\n");
    open_graph(&w, g, 2);
    return write_all(&w);
}

cfx_status cfx_node_text(cfx_node *n, cfx_sink out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(n, "node", err));
    writer w = {.graph = n->graph, .err = err, .allocator = n->graph->allocator, .brief = true};
    cfxi_base_out_begin(&w.out, out);
    cfxi_ir_walk_begin(&w.walk, w.allocator);
    cfxi_ir_graph_freeze(n->graph);  /* the host is asked for the target already */
    write_node(&w, n);
    cfx_status status = write_all(&w);
    cfxi_ir_graph_thaw(n->graph);
    return status;
}
