/* random_edit.c - random edits that keep a graph well formed, and a count of what graphs hold. */
#include "random_impl.h"

#include <cfx/embed/graph.h>
#include <cfx/embed/location.h>
#include <cfx/embed/ops.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- edits --------------------------------------------------------------------------------- */

/* The graph being edited: its nodes in order, and where its body begins and ends. */
typedef struct editor {
    builder b;
    cfx_node **all;
    size_t n;
    size_t first;  /* the first that is no placeholder */
} editor;

static bool is_control(const cfx_node *n)
{
    return cfx_operator_regions(cfx_node_operator(n)) > 0;
}

static bool is_call(const cfx_node *n)
{
    cfx_opcode op = cfx_node_op(n);
    return (op == CFX_OP_CALL_FUNCTION || op == CFX_OP_CALL_MODULE || op == CFX_OP_CALL_METHOD) &&
           !is_control(n);
}

static size_t index_of(const editor *e, const cfx_node *n)
{
    size_t i = 0;
    while (e->all[i] != n)
        i++;
    return i;
}

static cfx_node *pick(editor *e) { return e->all[random_below(e->b.r, e->n)]; }

/* The nodes that the one at `i` may use. */
static builder *before(editor *e, size_t i)
{
    e->b.nodes = e->all;
    e->b.n = i;
    return &e->b;
}

static cfx_status edit_erase(editor *e)
{
    cfx_node *n = pick(e);
    cfx_opcode op = cfx_node_op(n);
    bool needed = op == CFX_OP_OUTPUT || (op == CFX_OP_PLACEHOLDER && cfx_graph_parent(e->b.g));
    if (needed || cfx_node_num_users(n) > 0)
        return CFX_OK;
    return cfx_graph_erase(e->b.g, n, e->b.err);
}

static cfx_status edit_move(editor *e)
{
    cfx_node *n = pick(e);
    if (cfx_node_op(n) == CFX_OP_PLACEHOLDER)
        return cfx_node_prepend(e->all[0], n, e->b.err);
    if (cfx_node_op(n) == CFX_OP_OUTPUT)
        return CFX_OK;
    size_t low = e->first;  /* it may stand before low, low + 1, ..., high */
    size_t high = e->n - 1;
    for (size_t i = 0; i < cfx_node_num_inputs(n); i++)
        if (index_of(e, cfx_node_input(n, i)) >= low)
            low = index_of(e, cfx_node_input(n, i)) + 1;
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (index_of(e, cfx_use_user(use)) < high)
            high = index_of(e, cfx_use_user(use));
    return cfx_node_prepend(e->all[low + random_below(e->b.r, high - low + 1)], n, e->b.err);
}

static cfx_status edit_replace_uses(editor *e)
{
    size_t i = random_below(e->b.r, e->n);
    if (cfx_node_op(e->all[i]) == CFX_OP_OUTPUT)
        return CFX_OK;
    cfx_value with = random_leaf(before(e, i));
    if (random_chance(e->b.r, 20))
        with = cfx_value_node(e->all[i]);
    return cfx_node_replace_uses(e->all[i], with, NULL, NULL, NULL, e->b.err);
}

static cfx_status edit_rename(editor *e)
{
    static const char *const wishes[] = {"relu", "x", "tmp_7", "1 a", "sum", ""};
    char exact[32];
    cfx_node *n = pick(e);
    if (random_chance(e->b.r, 60))
        return cfx_node_rename(n, wishes[random_below(e->b.r, 6)], e->b.err);
    int size = snprintf(exact, sizeof exact, "exact_%u", (unsigned)random_below(e->b.r, 1000));
    if (cfx_graph_find(e->b.g, exact))
        return CFX_OK;
    return cfx_node_set_name(n, exact, (size_t)size, e->b.err);
}

static cfx_status edit_args(editor *e)
{
    size_t i = random_below(e->b.r, e->n);
    cfx_node *n = e->all[i];
    builder *b = before(e, i);
    if (!is_call(n))
        return CFX_OK;
    size_t args = cfx_node_num_args(n);
    switch (random_below(e->b.r, 5)) {
    case 0:
        return cfx_node_set_args(n, random_args(b), b->err);
    case 1:
        return cfx_node_set_kwargs(n, random_kwargs(b), b->err);
    case 2:
        return args ? cfx_node_set_arg(n, random_below(b->r, args), random_value(b, 0), b->err)
                    : CFX_OK;
    case 3:
        return cfx_node_insert_arg(n, random_below(b->r, args + 1), random_value(b, 0), b->err);
    default:
        return cfx_node_set_kwarg(n, "dim", random_value(b, 0), b->err);
    }
}

static cfx_status edit_rest(editor *e)
{
    cfx_node *n = pick(e);
    builder *b = before(e, 0);
    switch (random_below(e->b.r, 4)) {
    case 0:
        return cfx_node_set_type(n, random_constant(b), b->err);
    case 1:
        return cfx_node_set_type(n, cfx_value_invalid(), b->err);
    case 2:
        return cfx_node_set_location(n, random_chance(b->r, 50) ? NULL : "edited.py", 7, b->err);
    default:
        return is_call(n) ? cfx_node_set_target(n, random_target(b, cfx_node_op(n)), b->err)
                          : CFX_OK;
    }
}

static cfx_status edit_insert(editor *e)
{
    size_t i = e->first + random_below(e->b.r, e->n - e->first);
    bool after = i + 1 < e->n && random_chance(e->b.r, 50);
    cfx_insert_point at = {e->all[i], after};
    cfx_status status = cfx_graph_set_insert_point(e->b.g, at, e->b.err);
    if (status == CFX_OK && !random_call(before(e, after ? i + 1 : i)))
        status = e->b.err->status;
    cfx_insert_point end = {NULL, false};
    cfx_graph_set_insert_point(e->b.g, end, NULL);
    return status;
}

/* The graph itself, or one of its regions. */
static cfx_graph *descend(cfx_graph *g, random_source *r)
{
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        for (size_t i = 0; i < cfx_node_num_args(n); i++) {
            cfx_graph *region = cfx_value_graph(cfx_node_arg(n, i));
            if (region && random_chance(r, 15))
                return descend(region, r);
        }
    }
    return g;
}

static cfx_status edit_once(editor *e)
{
    static cfx_status (*const edits[])(editor *e) = {
        edit_erase, edit_erase, edit_move, edit_move, edit_replace_uses, edit_rename, edit_args,
        edit_args, edit_rest, edit_insert, edit_insert,
    };
    e->n = e->first = 0;
    for (cfx_node *n = cfx_graph_first(e->b.g); n; n = cfx_node_next(n)) {
        e->all[e->n++] = n;
        e->first += cfx_node_op(n) == CFX_OP_PLACEHOLDER;
    }
    return edits[random_below(e->b.r, sizeof edits / sizeof *edits)](e);
}

cfx_status random_graph_edit(cfx_graph *g, uint64_t seed, size_t count, cfx_error *err)
{
    random_source r = {~seed};
    cfx_error own = {.status = CFX_OK};
    cfx_status status = CFX_OK;
    for (size_t i = 0; i < count && status == CFX_OK; i++) {
        editor e = {.b = {.r = &r, .g = descend(g, &r), .err = &own}};
        e.all = malloc((cfx_graph_size(e.b.g) + 1) * sizeof *e.all);
        status = e.all ? edit_once(&e) : CFX_E_NOMEM;
        free(e.all);
    }
    if (status != CFX_OK && err)
        *err = own;
    return status;
}

/* ---- counting ------------------------------------------------------------------------------ */

static void count_graph(random_stats *s, const cfx_graph *g, size_t region);

static void count_value(random_stats *s, cfx_value v, size_t nesting, size_t region)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    s->values++;
    s->kinds[v.kind]++;
    s->nested[nesting < RANDOM_MAX_NESTING ? nesting : RANDOM_MAX_NESTING]++;
    for (size_t i = 0; i < n; i++)
        count_value(s, items[i], nesting + 1, region);
    if (v.kind == CFX_KIND_GRAPH)
        count_graph(s, cfx_value_graph(v), region + 1);
}

static void count_items(random_stats *s, cfx_value v, size_t region)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    for (size_t i = 0; i < n; i++)
        count_value(s, items[i], 0, region);
}

static void count_graph(random_stats *s, const cfx_graph *g, size_t region)
{
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        s->nodes++;
        s->opcodes[cfx_node_op(n)]++;
        s->in_region[region]++;
        s->typed += cfx_node_type(n).kind != CFX_KIND_INVALID;
        s->located += cfx_node_file(n) != NULL;
        s->scoped += cfx_node_module_stack(n) != 0;
        count_items(s, cfx_node_args(n), region);
        count_items(s, cfx_node_kwargs(n), region);
        if (cfx_node_type(n).kind != CFX_KIND_INVALID)
            count_value(s, cfx_node_type(n), 0, region);
    }
}

void random_stats_add(random_stats *stats, const cfx_graph *g)
{
    stats->graphs++;
    count_graph(stats, g, 0);
}

static double percent(size_t part, size_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

static void print_row(const char *what, const char *name, size_t count, size_t whole)
{
    printf("  %-8s %-14s %9zu  %5.1f %%\n", what, name, count, percent(count, whole));
}

static void print_number(const char *what, size_t number, size_t count, size_t whole)
{
    char name[24];
    snprintf(name, sizeof name, "%zu", number);
    print_row(what, name, count, whole);
}

void random_stats_print(const random_stats *s)
{
    printf("%zu graphs, %zu nodes, %zu values\n", s->graphs, s->nodes, s->values);
    for (int i = 0; i < CFX_OPCODE_COUNT; i++)
        print_row("opcode", cfx_opcode_name((cfx_opcode)i), s->opcodes[i], s->nodes);
    for (size_t i = 0; i <= RANDOM_MAX_REGIONS; i++)
        print_number("region", i, s->in_region[i], s->nodes);
    print_row("node", "with type", s->typed, s->nodes);
    print_row("node", "with location", s->located, s->nodes);
    print_row("node", "with scope", s->scoped, s->nodes);
    for (int i = CFX_KIND_INVALID + 1; i < CFX_KIND_COUNT; i++)
        print_row("kind", cfx_kind_name((cfx_kind)i), s->kinds[i], s->values);
    for (size_t i = 0; i <= RANDOM_MAX_NESTING; i++)
        print_number("nesting", i, s->nested[i], s->values);
}

static bool all_above(const size_t *counts, size_t n, size_t whole)
{
    bool good = true;
    for (size_t i = 0; i < n; i++)
        good = good && percent(counts[i], whole) >= 1.0;
    return good;
}

bool random_stats_balanced(const random_stats *s)
{
    return all_above(s->opcodes, CFX_OPCODE_COUNT, s->nodes) &&
           all_above(s->in_region, RANDOM_MAX_REGIONS + 1, s->nodes) &&
           all_above(s->kinds + 1, CFX_KIND_COUNT - 1, s->values) &&
           all_above(s->nested, RANDOM_MAX_NESTING + 1, s->values);
}
