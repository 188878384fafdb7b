/* stats.c - what a graph is made of, and what it costs, summed up by operator.
 *
 * Needs: nothing. Keeps: everything.
 */
#include "check_impl.h"
#include "analysis/analysis_impl.h"
#include "dim/dim_impl.h"
#include "ops/ops_impl.h"

#include <cfx/embed/stats.h>
#include <stdlib.h>

/* Rows while they grow: a table by name; `rows` of the stats is a sorted copy. */
typedef struct entry {
    cfx_stats_row row;
    int64_t key;      /* what it is sorted by: operations, with a guess for symbols */
    size_t name_size;
    uint32_t hash;    /* of the name */
} entry;

typedef struct memory {
    const cfx_allocator *allocator;
    cfxi_arena arena;   /* entries, names */
    cfxi_hash_set entries; /* of entry */
    cfxi_hash_key names;   /* of them there */
    cfxi_vec rows;      /* of cfx_stats_row */
} memory;

cfx_status cfx_stats_init(cfx_stats *s, const cfx_allocator *allocator, cfx_error *err)
{
    *s = (cfx_stats){0};
    allocator = cfxi_base_allocator(allocator);
    memory *m = cfxi_base_alloc(allocator, sizeof *m);
    if (!m)
        return cfxi_base_nomem(err);
    *m = (memory){.allocator = allocator, .names = cfxi_base_hash_key_new(m)};
    cfxi_base_arena_init(&m->arena, allocator);
    s->memory = m;
    return CFX_OK;
}

void cfx_stats_free(cfx_stats *s)
{
    memory *m = s->memory;
    if (m) {
        cfxi_base_vec_free(&m->rows, sizeof(cfx_stats_row), m->allocator);
        cfxi_base_set_free(&m->entries, m->allocator);
        cfxi_base_arena_release(&m->arena);
        cfxi_base_free(m->allocator, m, sizeof *m);
    }
    *s = (cfx_stats){0};
}

/* ---- rows ---------------------------------------------------------------------------------- */

static uint32_t hash_of_entry(const void *item)
{
    return ((const entry *)item)->hash;
}

static bool has_name(const void *item, const void *name, size_t size)
{
    const entry *e = item;
    return e->name_size == size && memcmp(e->row.name, name, size) == 0;
}

static char *copy_name(memory *m, const char *name, size_t size)
{
    char *copy = cfxi_base_arena_alloc(&m->arena, size + 1);
    if (!copy)
        return NULL;
    memcpy(copy, name, size);
    copy[size] = '\0';
    return copy;
}

/* The row of that name, which may be new; NULL if memory is out. */
static entry *find_row(memory *m, const char *name, size_t size, cfx_operator op)
{
    const uint32_t hash = cfxi_base_hash_keyed(&m->names, name, size);
    entry *e = cfxi_base_set_find(&m->entries, hash, has_name, name, size);
    if (e || !cfxi_base_set_reserve(&m->entries, hash_of_entry, m->allocator))
        return e;
    e = cfxi_base_arena_alloc(&m->arena, sizeof *e);
    char *copy = e ? copy_name(m, name, size) : NULL;
    if (!copy)
        return NULL;
    *e = (entry){.row = {.name = copy, .op = op}, .name_size = size, .hash = hash};
    cfxi_base_set_insert(&m->entries, hash, e);
    return e;
}

static int compare_entries(const void *a, const void *b)
{
    const entry *x = *(entry *const *)a;
    const entry *y = *(entry *const *)b;
    if (x->key != y->key)
        return x->key < y->key ? 1 : -1;
    if (x->row.count != y->row.count)
        return x->row.count < y->row.count ? 1 : -1;
    return strcmp(x->row.name, y->row.name);
}

/* Copies the rows out, sorted. */
static cfx_status sort_rows(cfx_stats *s, cfx_error *err)
{
    memory *m = s->memory;
    const size_t n = m->entries.size;
    const size_t bytes = (n + 1) * sizeof(entry *);
    entry **all = cfxi_base_alloc(m->allocator, bytes);
    m->rows.size = s->n_rows = 0;
    if (!all || !cfxi_base_vec_reserve(&m->rows, n, sizeof(cfx_stats_row), m->allocator)) {
        if (all)
            cfxi_base_free(m->allocator, all, bytes);
        return cfxi_base_nomem(err);
    }
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        all[i] = cfxi_base_set_next(&m->entries, &at);
    qsort(all, n, sizeof *all, compare_entries);
    for (size_t i = 0; i < n; i++)
        ((cfx_stats_row *)m->rows.data)[i] = all[i]->row;
    cfxi_base_free(m->allocator, all, bytes);
    s->rows = m->rows.data;
    s->n_rows = n;
    return CFX_OK;
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* The class that the scope of a call_module tells, if that scope is the call itself. */
static const char *class_of(const cfx_node *n, const char *path, size_t size)
{
    const char *scope = n->scope ? cfx_graph_stack_path(n->graph, n->scope) : NULL;
    if (!scope || strncmp(scope, path, size) != 0 || (scope[size] && scope[size] != '@'))
        return NULL;
    return cfx_graph_stack_type(n->graph, n->scope);
}

const char *cfxi_check_callee(const cfx_node *n, size_t *size, cfx_operator *op)
{
    const char *name = cfx_node_target(n, size, NULL);
    *op = cfx_node_operator(n);
    if (!name) {
        name = "(no name)";
        *size = strlen(name);
    }
    if (n->op == CFX_OP_CALL_MODULE) {
        const char *class_name = class_of(n, name, *size);
        *op = class_name ? cfxi_ops_of_class(class_name) : CFX_OPID_NONE;
        name = class_name ? class_name : "(module)";
    }
    if (*op != CFX_OPID_NONE)
        name = cfx_operator_name(*op);
    if (*op != CFX_OPID_NONE || n->op == CFX_OP_CALL_MODULE)
        *size = strlen(name);
    return name;
}

/* Objects without a name are counted as one. */
static cfx_status count_call(memory *m, const cfx_node *n, cfx_error *err)
{
    size_t size = 0;
    cfx_operator op;
    const char *name = cfxi_check_callee(n, &size, &op);
    entry *e = find_row(m, name, size, op);
    if (!e)
        return cfxi_base_nomem(err);
    e->row.count++;
    return CFX_OK;
}

static cfx_status count_graph(cfx_graph *g, void *ctx, cfx_error *err)
{
    cfx_stats *s = ctx;
    for (const cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        s->nodes++;
        s->opcodes[n->op]++;
        if (n->op == CFX_OP_CALL_FUNCTION || n->op == CFX_OP_CALL_METHOD ||
            n->op == CFX_OP_CALL_MODULE)
            CFX_TRY(count_call(s->memory, n, err));
    }
    s->regions += cfx_graph_parent(g) != NULL;
    return cfxi_analysis_each_region(g, count_graph, s, err);
}

cfx_status cfx_stats_add_graph(cfx_stats *s, cfx_graph *g, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(s->memory, "stats object", err));
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    CFX_TRY(count_graph(g, s, err));
    return sort_rows(s, err);
}

/* ---- weights ------------------------------------------------------------------------------- */

cfx_status cfx_stats_add_state(cfx_stats *s, const cfx_state *state, cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    for (size_t i = 0; i < cfx_state_size(state); i++) {
        cfx_tensor *t;
        cfx_state_entry(state, i, &t);
        const cfx_dtype dtype = cfx_tensor_dtype(t);
        int64_t n = 1;
        for (size_t d = 0; d < cfx_tensor_ndim(t); d++)
            n = cfx_dim_mul(NULL, n, cfx_tensor_sizes(t)[d], err);
        s->tensors[dtype]++;
        s->elements[dtype] = cfx_dim_add(NULL, s->elements[dtype], n, err);
        n = cfx_dim_mul(NULL, n, (int64_t)cfx_dtype_size(dtype), err);
        s->weight_bytes = cfx_dim_add(NULL, s->weight_bytes, n, err);
    }
    return err->status;
}

/* ---- costs --------------------------------------------------------------------------------- */

typedef struct costing {
    cfx_stats *s;
    cfx_dims *dims;
    cfx_error *err;
} costing;

/* Symbols are compared as if each were this. */
static int64_t guess(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return 64;
}

static int64_t guess_of(const cfx_dims *dims, int64_t size)
{
    int64_t value = 0;
    if (!cfx_dim_is_symbol(size))
        return size;
    return cfxi_dim_eval(dims, size, guess, NULL, &value, NULL) == CFX_OK ? value : 0;
}

/* Where it depends on symbols which of two is more, the one that is for the guess. */
static cfx_status raise_peak(costing *c, const cfx_cost *cost)
{
    cfx_stats *s = c->s;
    const int below = cfx_dim_compare_lt(c->dims, s->peak_bytes, cost->live);
    const bool more = below == -1 ? guess_of(c->dims, s->peak_bytes) < guess_of(c->dims, cost->live)
                                  : below == 1;
    s->peak_depends = s->peak_depends || (below == -1 && s->peak_node);
    if (s->peak_node && !more)
        return CFX_OK;
    s->peak_bytes = cost->live;
    s->peak_node = copy_name(s->memory, cost->node, strlen(cost->node));
    return s->peak_node ? CFX_OK : cfxi_base_nomem(c->err);
}

static cfx_status add_cost(void *ctx, const cfx_cost *cost)
{
    costing *c = ctx;
    cfx_stats *s = c->s;
    const char *name = cfx_operator_name(cost->op);
    entry *e = find_row(s->memory, name, strlen(name), cost->op);
    if (!e)
        return cfxi_base_nomem(c->err);
    e->row.calls++;
    e->row.flops = cfx_dim_add(c->dims, e->row.flops, cost->flops, c->err);
    e->row.bytes = cfx_dim_add(c->dims, e->row.bytes, cost->bytes, c->err);
    s->flops = cfx_dim_add(c->dims, s->flops, cost->flops, c->err);
    s->result_bytes = cfx_dim_add(c->dims, s->result_bytes, cost->bytes, c->err);
    CFX_TRY(raise_peak(c, cost));
    return c->err->status;
}

cfx_status cfx_stats_add_costs(cfx_stats *s, const cfx_program *p, cfx_runtime *rt, cfx_dims *dims,
                               const cfx_datum *inputs, size_t n, cfx_error *err)
{
    cfx_error own = {0};
    costing c = {s, dims, &own};
    size_t at = 0;
    CFX_TRY(cfxi_base_expect(s->memory, "stats object", err));
    cfx_error why = {0};
    cfx_status status = cfx_program_cost(p, rt, dims, inputs, n, add_cost, &c, &why);
    if (status != CFX_OK) {
        if (err)
            *err = own.status == status ? own : why;
        return status;
    }
    s->has_costs = true;
    for (entry *e; (e = cfxi_base_set_next(&((memory *)s->memory)->entries, &at)) != NULL;)
        e->key = guess_of(dims, e->row.flops);
    return sort_rows(s, err);
}
