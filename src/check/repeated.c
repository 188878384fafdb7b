/* repeated.c - parts of a graph that do the same, by a hash of their structure.
 *
 *     %a = call_module[target=layers.0](%x)       a group of two copies of two nodes:
 *     %b = call_function[target=torch.relu](%a)       (%a, %b), (%c, %d)
 *     %c = call_module[target=layers.1](%b)
 *     %d = call_function[target=torch.relu](%c)
 *
 * Every node has a token: a hash of its opcode, target and arguments, in which all nodes look the
 * same. The hash of a part is that of its tokens and of its wiring: who uses which node of the
 * part, by place, or which value from outside, by the order in which they first come up; and which
 * nodes are used outside. Here parts are scopes: what a module call holds. repeated_runs.c has the
 * other way.
 */
#include "ops/ops_impl.h"
#include "repeated_impl.h"

#include <stdlib.h>

typedef struct group {
    size_t first;   /* in `nodes` */
    size_t labels;  /* in `scopes` */
    size_t copies;
    size_t size;
    const cfx_graph *graph;
} group;

struct cfx_repeats {
    const cfx_allocator *allocator;
    cfxi_vec groups;  /* of group */
    cfxi_vec nodes;   /* of cfx_node *: copy by copy */
    cfxi_vec scopes;  /* of uint32_t: one for each copy; 0 is none */
};

/* ---- tokens -------------------------------------------------------------------------------- */

static uint64_t any_node(const cfxi_hasher *c, const cfx_node *n)
{
    (void)c;
    (void)n;
    return 0;
}

/* "conv" of "layer1.0.conv", "layers" of "layers.3". */
static uint64_t last_word(const char *path)
{
    const char *end = path + strlen(path);
    for (;;) {
        const char *start = end;
        while (start > path && start[-1] != '.')
            start--;
        if (start == path || !cfxi_base_is_digit(*start))
            return cfxi_base_hash_bytes(start, (size_t)(end - start));
        end = start - 1;
    }
}

/* Of the class of the module that a call_module calls; of the path, if that is not known. */
static cfx_status class_token(const cfxi_repeat_job *job, const cfx_node *n, uint64_t *token)
{
    const cfxi_scope *scope = cfxi_ir_scope_at(n->graph, n->scope);
    const char *path = n->callee->ref->name->data;
    const size_t size = strlen(path);
    cfx_buffer name;
    cfx_buffer_init(&name, job->graph->allocator);
    cfx_status status = cfxi_ops_module_class(job->modules, path, &name, job->err);
    bool own = !job->modules && scope && strncmp(scope->path->data, path, size) == 0 &&
               (scope->path->data[size] == '\0' || scope->path->data[size] == '@');
    *token = name.size > 0 ? cfxi_base_hash_bytes(name.data, name.size)
             : own ? cfxi_base_hash_bytes(scope->type->data, scope->type->size) : last_word(path);
    cfx_buffer_free(&name);
    return status;
}

/* The words of an assertion often name a node or a layer: only what it asserts counts. */
static bool is_assertion(const cfx_node *n)
{
    const cfx_str *name = n->op == CFX_OP_CALL_FUNCTION ? n->callee->ref->name : NULL;
    return name && strcmp(name->data, "torch._assert") == 0;
}

/* A function without a name counts by identity. */
static cfx_status node_token(const cfxi_repeat_job *job, const cfx_node *n, uint64_t *token)
{
    cfxi_hasher c = {.graph = job->graph, .err = job->err, .node = any_node, .shape_only = true};
    uint64_t h = n->op;
    if (n->op == CFX_OP_CALL_MODULE && n->callee->ref->kind == CFXI_REF_NAME) {
        CFX_TRY(class_token(job, n, token));
        h = cfxi_base_hash_mix(h, *token);
    } else if (n->op != CFX_OP_GET_ATTR) {
        c.by_identity = true;
        h = cfxi_ir_hash_ref(&c, h, n->callee->ref);
        c.by_identity = false;
    }
    if (!is_assertion(n)) {
        h = cfxi_ir_hash_items(&c, h, n->args);
        h = cfxi_ir_hash_items(&c, h, n->kwargs);
    }
    *token = h;
    return c.status;
}

/* ---- one graph ----------------------------------------------------------------------------- */

static void job_end(cfxi_repeat_job *job)
{
    const cfx_allocator *a = job->graph->allocator;
    cfxi_base_free(a, job->nodes, job->n * sizeof *job->nodes);
    cfxi_base_free(a, job->tokens, job->n * sizeof *job->tokens);
    cfxi_base_free(a, job->epoch, job->n * sizeof *job->epoch);
    cfxi_base_free(a, job->local, job->n * sizeof *job->local);
    cfxi_base_free(a, job->covered, job->n * sizeof *job->covered);
}

/* The host is asked for names and may run any code, so the graph is frozen meanwhile. */
static cfx_status find_tokens(cfxi_repeat_job *job)
{
    cfx_status status = CFX_OK;
    cfxi_ir_graph_freeze(job->graph);
    for (size_t i = 0; i < job->n && status == CFX_OK; i++) {
        const cfx_node *n = job->nodes[i];
        if (n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT)
            job->tokens[i] = cfxi_base_hash_mix(n->op, i);
        else
            status = node_token(job, n, &job->tokens[i]);
    }
    cfxi_ir_graph_thaw(job->graph);
    return status;
}

static cfx_status job_begin(cfxi_repeat_job *job)
{
    const cfx_allocator *a = job->graph->allocator;
    size_t at = 0;
    job->n = job->graph->size;
    job->nodes = cfxi_base_alloc(a, job->n * sizeof *job->nodes);
    job->tokens = cfxi_base_alloc(a, job->n * sizeof *job->tokens);
    job->epoch = cfxi_base_alloc(a, job->n * sizeof *job->epoch);
    job->local = cfxi_base_alloc(a, job->n * sizeof *job->local);
    job->covered = cfxi_base_alloc(a, job->n * sizeof *job->covered);
    if (!job->nodes || !job->tokens || !job->epoch || !job->local || !job->covered)
        return cfxi_base_nomem(job->err);
    memset(job->epoch, 0, job->n * sizeof *job->epoch);
    memset(job->covered, 0, job->n * sizeof *job->covered);
    for (cfx_node *n = job->graph->root.next; n != &job->graph->root; n = n->next)
        job->nodes[at++] = n;
    CFX_TRY(find_tokens(job));
    job->stamp = cfxi_ir_graph_number(job->graph);  /* last: names of regions may be asked for */
    return CFX_OK;
}

/* ---- the hash of a part -------------------------------------------------------------------- */

/* What is in the part has its place as `local`, what is not has a number from OUTSIDE on. */
enum { OUTSIDE = 1u << 31 };

typedef struct wiring {
    cfxi_repeat_job *job;
    uint64_t hash;
    uint32_t outside;
} wiring;

static cfx_status add_input(void *ctx, cfx_node *n)
{
    wiring *w = ctx;
    cfxi_repeat_job *job = w->job;
    uint32_t at = n->mark - job->stamp;
    if (job->epoch[at] != job->part) {
        job->epoch[at] = job->part;
        job->local[at] = OUTSIDE + w->outside++;
    }
    w->hash = cfxi_base_hash_mix(w->hash, job->local[at]);
    return CFX_OK;
}

static bool is_used_outside(const cfxi_repeat_job *job, const cfx_node *n)
{
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use)) {
        uint32_t at = use->user->mark - job->stamp;
        if (job->epoch[at] != job->part || job->local[at] >= OUTSIDE)
            return true;
    }
    return false;
}

uint64_t cfxi_check_part_hash(cfxi_repeat_job *job, const uint32_t *positions, size_t n)
{
    wiring w = {.job = job, .hash = cfxi_base_hash_mix(0, n)};
    job->part++;
    for (size_t i = 0; i < n; i++) {
        job->epoch[positions[i]] = job->part;
        job->local[positions[i]] = (uint32_t)i;
    }
    for (size_t i = 0; i < n; i++) {
        const cfx_node *node = job->nodes[positions[i]];
        w.hash = cfxi_base_hash_mix(w.hash, job->tokens[positions[i]]);
        (void)cfx_value_each_node(cfx_node_args(node), add_input, &w);
        (void)cfx_value_each_node(cfx_node_kwargs(node), add_input, &w);
        w.hash = cfxi_base_hash_mix(w.hash, is_used_outside(job, node));
    }
    return w.hash;
}

int cfxi_check_compare_positions(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static cfx_status positions_of(const cfxi_repeat_job *job, cfx_node *const *nodes, size_t n,
                               uint32_t *positions)
{
    for (size_t i = 0; i < n; i++) {
        if (nodes[i]->graph != job->graph || cfxi_ir_node_erased(nodes[i]))
            return cfx_error_set(job->err, CFX_E_GRAPH, "node %%%s is not in this graph",
                                 nodes[i]->name->data);
        positions[i] = nodes[i]->mark - job->stamp;
    }
    qsort(positions, n, sizeof *positions, cfxi_check_compare_positions);
    return CFX_OK;
}

cfx_status cfxi_check_nodes_hash(cfx_graph *g, cfx_node *const *nodes, size_t n,
                                 const cfx_module_tree *modules, uint64_t *hash, cfx_error *err)
{
    cfxi_repeat_job job = {.graph = g, .modules = modules, .err = err};
    uint32_t *positions = cfxi_base_alloc(g->allocator, (n + 1) * sizeof *positions);
    cfx_status status = positions ? CFX_OK : cfxi_base_nomem(err);
    if (status == CFX_OK && g->size > 0)
        status = job_begin(&job);
    if (status == CFX_OK)
        status = positions_of(&job, nodes, n, positions);
    if (status == CFX_OK)
        *hash = cfxi_check_part_hash(&job, positions, n);
    job_end(&job);
    cfxi_base_free(g->allocator, positions, (n + 1) * sizeof *positions);
    return status;
}

/* ---- groups -------------------------------------------------------------------------------- */

cfx_status cfxi_check_repeats_add(cfxi_repeat_job *job, const uint32_t *positions, size_t n,
                                  const uint32_t *scopes, size_t copies)
{
    cfx_repeats *r = job->found;
    if (!cfxi_base_vec_reserve(&r->groups, 1, sizeof(group), r->allocator) ||
        !cfxi_base_vec_reserve(&r->nodes, n * copies, sizeof(cfx_node *), r->allocator) ||
        !cfxi_base_vec_reserve(&r->scopes, copies, sizeof(uint32_t), r->allocator))
        return cfxi_base_nomem(job->err);
    ((group *)r->groups.data)[r->groups.size++] =
        (group){r->nodes.size, r->scopes.size, copies, n, job->graph};
    for (size_t i = 0; i < n * copies; i++) {
        ((cfx_node **)r->nodes.data)[r->nodes.size++] = job->nodes[positions[i]];
        job->covered[positions[i]] = true;
    }
    for (size_t i = 0; i < copies; i++)
        ((uint32_t *)r->scopes.data)[r->scopes.size++] = scopes ? scopes[i] : 0;
    return CFX_OK;
}

/* ---- scopes -------------------------------------------------------------------------------- */

typedef struct scope_part {
    uint32_t scope;
    size_t size;
    size_t first;    /* of its positions */
    uint64_t hash;
    size_t covers;   /* by all with this size and hash */
} scope_part;

typedef struct scope_job {
    cfxi_repeat_job *job;
    scope_part *parts;    /* by scope - 1, then sorted */
    size_t n;
    uint32_t *positions;  /* of the nodes of each scope, one after the other */
    size_t total;
    uint32_t *chosen;     /* positions of the copies of one group */
    uint32_t *scopes;
} scope_job;

/* A scope holds the nodes of the scopes inside it, too. */
static size_t count_nodes(scope_job *s)
{
    size_t total = 0;
    const cfx_graph *g = s->job->graph;
    for (size_t i = 0; i < s->job->n; i++)
        for (uint32_t at = s->job->nodes[i]->scope; at; at = cfxi_ir_scope_at(g, at)->parent) {
            s->parts[at - 1].size++;
            total++;
        }
    for (size_t i = 0, first = 0; i < s->n; first += s->parts[i++].size)
        s->parts[i].first = first;
    return total;
}

static void fill_positions(scope_job *s)
{
    const cfx_graph *g = s->job->graph;
    for (size_t i = 0; i < s->n; i++)
        s->parts[i].size = 0;
    for (size_t i = 0; i < s->job->n; i++)
        for (uint32_t at = s->job->nodes[i]->scope; at; at = cfxi_ir_scope_at(g, at)->parent) {
            scope_part *part = &s->parts[at - 1];
            s->positions[part->first + part->size++] = (uint32_t)i;
        }
    for (size_t i = 0; i < s->n; i++)
        s->parts[i].hash = cfxi_check_part_hash(s->job, s->positions + s->parts[i].first,
                                                s->parts[i].size);
}

/* Those that cover most first; of those the small ones, equal ones together, outer before inner. */
static int compare_parts(const void *a, const void *b)
{
    const scope_part *x = a;
    const scope_part *y = b;
    if (x->covers != y->covers)
        return x->covers < y->covers ? 1 : -1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->scope > y->scope) - (x->scope < y->scope);
}

static bool is_covered(const cfxi_repeat_job *job, const uint32_t *positions, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (job->covered[positions[i]])
            return true;
    return false;
}

static size_t end_of_group(const scope_job *s, size_t from)
{
    size_t to = from + 1;
    while (to < s->n && s->parts[to].size == s->parts[from].size &&
           s->parts[to].hash == s->parts[from].hash)
        to++;
    return to;
}

static cfx_status add_scopes(scope_job *s, size_t from, size_t to)
{
    const size_t size = s->parts[from].size;
    const uint32_t taken = ++s->job->part;
    size_t copies = 0;
    for (size_t i = from; i < to; i++) {
        const uint32_t *positions = s->positions + s->parts[i].first;
        /* It overlaps one of another group, or holds the same nodes as one around it. */
        if (is_covered(s->job, positions, size) || s->job->epoch[positions[0]] == taken)
            continue;
        s->job->epoch[positions[0]] = taken;
        memcpy(s->chosen + copies * size, positions, size * sizeof *positions);
        s->scopes[copies++] = s->parts[i].scope;
    }
    if (copies < s->job->min_copies)
        return CFX_OK;
    return cfxi_check_repeats_add(s->job, s->chosen, size, s->scopes, copies);
}

static cfx_status group_scopes(scope_job *s)
{
    qsort(s->parts, s->n, sizeof *s->parts, compare_parts);
    for (size_t from = 0, to; from < s->n; from = to) {
        to = end_of_group(s, from);
        for (size_t i = from; i < to; i++)
            s->parts[i].covers = (to - from) * s->parts[i].size;
    }
    qsort(s->parts, s->n, sizeof *s->parts, compare_parts);
    for (size_t from = 0, to; from < s->n; from = to) {
        to = end_of_group(s, from);
        if (s->parts[from].size >= s->job->min_nodes)
            CFX_TRY(add_scopes(s, from, to));
    }
    return CFX_OK;
}

static cfx_status find_scopes(cfxi_repeat_job *job)
{
    scope_job s = {.job = job, .n = job->graph->scopes.size};
    const cfx_allocator *a = job->graph->allocator;
    cfx_status status = CFX_OK;
    s.parts = cfxi_base_alloc(a, s.n * sizeof *s.parts);
    s.scopes = cfxi_base_alloc(a, s.n * sizeof *s.scopes);
    if (s.parts && s.scopes) {
        for (size_t i = 0; i < s.n; i++)
            s.parts[i] = (scope_part){.scope = (uint32_t)i + 1};
        s.total = count_nodes(&s);
        s.positions = cfxi_base_alloc(a, s.total * sizeof *s.positions);
        s.chosen = cfxi_base_alloc(a, s.total * sizeof *s.chosen);
    }
    if (s.positions && s.chosen) {
        fill_positions(&s);
        status = group_scopes(&s);
    } else {
        status = cfxi_base_nomem(job->err);
    }
    cfxi_base_free(a, s.parts, s.n * sizeof *s.parts);
    cfxi_base_free(a, s.scopes, s.n * sizeof *s.scopes);
    cfxi_base_free(a, s.positions, s.total * sizeof *s.positions);
    cfxi_base_free(a, s.chosen, s.total * sizeof *s.chosen);
    return status;
}

/* ---- the whole ----------------------------------------------------------------------------- */

typedef struct search {
    const cfx_module_tree *modules;
    const cfx_repeat_options *opts;
    cfx_repeats *found;
} search;

static bool has_scopes(const cfx_graph *g)
{
    for (const cfx_node *n = g->root.next; n != &g->root; n = n->next)
        if (n->scope)
            return true;
    return false;
}

static cfx_status find_all(cfx_graph *g, void *ctx, cfx_error *err)
{
    const search *s = ctx;
    cfxi_repeat_job job = {.graph = g, .modules = s->modules, .found = s->found, .err = err};
    job.min_nodes = s->opts && s->opts->min_nodes ? s->opts->min_nodes : 2;
    job.min_copies = s->opts && s->opts->min_copies ? s->opts->min_copies : 2;
    if (g->size >= OUTSIDE)
        return cfx_error_set(err, CFX_E_LIMIT, "the graph has too many nodes");
    if (g->size > 0) {
        cfx_status status = job_begin(&job);
        if (status == CFX_OK)
            status = has_scopes(g) ? find_scopes(&job) : cfxi_check_find_runs(&job);
        job_end(&job);
        CFX_TRY(status);
    }
    return cfxi_analysis_each_region(g, find_all, ctx, err);
}

cfx_repeats *cfx_graph_find_repeated(cfx_graph *g, const cfx_module_tree *modules,
                                     const cfx_repeat_options *opts, cfx_error *err)
{
    cfx_repeats *r = cfxi_base_alloc(g->allocator, sizeof *r);
    if (!r) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *r = (cfx_repeats){.allocator = g->allocator};
    search s = {cfxi_analysis_modules_or_null(modules), opts, r};
    if (find_all(g, &s, err) == CFX_OK)
        return r;
    cfx_repeats_free(r);
    return NULL;
}

void cfx_repeats_free(cfx_repeats *r)
{
    if (!r)
        return;
    cfxi_base_vec_free(&r->groups, sizeof(group), r->allocator);
    cfxi_base_vec_free(&r->nodes, sizeof(cfx_node *), r->allocator);
    cfxi_base_vec_free(&r->scopes, sizeof(uint32_t), r->allocator);
    cfxi_base_free(r->allocator, r, sizeof *r);
}

/* ---- reading ------------------------------------------------------------------------------- */

static const group *group_at(const cfx_repeats *r, size_t i)
{
    return (const group *)r->groups.data + i;
}

size_t cfx_repeats_num_groups(const cfx_repeats *r) { return r->groups.size; }
size_t cfx_repeats_num_copies(const cfx_repeats *r, size_t i) { return group_at(r, i)->copies; }
size_t cfx_repeats_num_nodes(const cfx_repeats *r, size_t i) { return group_at(r, i)->size; }

cfx_node *cfx_repeats_node(const cfx_repeats *r, size_t i, size_t copy, size_t node)
{
    const group *g = group_at(r, i);
    return ((cfx_node **)r->nodes.data)[g->first + copy * g->size + node];
}

const char *cfx_repeats_path(const cfx_repeats *r, size_t i, size_t copy)
{
    const group *g = group_at(r, i);
    return cfx_graph_stack_path(g->graph, ((uint32_t *)r->scopes.data)[g->labels + copy]);
}
