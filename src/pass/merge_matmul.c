/* merge_matmul.c - computes matrix products with a common right-hand side as one.
 *
 *     before                                     after
 *     %a = call_function[target=torch.matmul]    %cat = call_function[target=torch.cat]([%x, %y])
 *         (%x, %w)                               %m = call_function[target=torch.matmul](%cat, %w)
 *     %b = call_function[target=torch.matmul]    %i = call_method[target=size](%x, 0)
 *         (%y, %w)                               %j = call_method[target=size](%y, 0)
 *                                                %s = call_function[target=torch.split](%m,
 *                                                    [%i, %j])
 *                                                %a = call_function[target=operator.getitem](%s, 0)
 *                                                %b = call_function[target=operator.getitem](%s, 1)
 *
 * Needs: left-hand sides with two dimensions: torch.matmul takes others, but nobody can tell here.
 * Keeps: names, types and locations of all other nodes; the order of what has an effect.
 *
 * Every node gets a level: how many of the products in question lie on the longest way to it. What
 * has an effect counts as waiting for whatever had one before it; after a node that writes, all do.
 * Products of one level do not wait for one another, so those with the same right-hand side are
 * merged, and the merged product is put before whatever else is on its level. No pair is ever
 * compared: linear in nodes and edges, except that the effect of an operator is found by looking
 * at its regions.
 */
#include "analysis/analysis_impl.h"
#include "analysis/effects_impl.h"
#include "pass_impl.h"

/* Products with the same target and right-hand side; then those of them on one level. */
typedef struct batch {
    const cfxi_callee *callee;
    const void *rhs;       /* a node, or the callee of all that read one path */
    uint32_t level;        /* 0 while the levels are not known */
    uint32_t hash;
    uint32_t size;
    uint32_t done;         /* members replaced so far */
    cfx_node *split;       /* once it is merged: the node whose items are the results */
    struct entry *first;
    struct batch *next;    /* in the order in which they were found */
} batch;

/* A node, by its place in the graph. */
typedef struct entry {
    cfx_node *node;
    batch *batch;          /* NULL if it is no product */
    struct entry *same;    /* the next one in its batch */
    uint32_t level;
    uint8_t effect;        /* a cfx_effect */
} entry;

typedef struct merge_job {
    const cfx_target *split;  /* or NULL */
    cfxi_effect_model *model;
    cfx_graph *g;
    entry *entries;        /* in order; `sorted` points to them level by level */
    entry **sorted;
    size_t n;
    cfxi_hash_set table;      /* of batch */
    batch *batches, **last;
    size_t merged;
    bool changed;
    cfx_error *err;
} merge_job;

/* ---- products ------------------------------------------------------------------------------ */

/* torch.fx looks at torch.matmul alone; torch.mm insists on two dimensions. */
static bool is_product(const cfx_node *n)
{
    cfx_operator op = cfx_node_operator(n);
    if (op == CFX_OPID_matmul) {
        const char *name = n->op == CFX_OP_CALL_FUNCTION ? cfx_node_target(n, NULL, NULL) : NULL;
        return name && strcmp(name, "torch.matmul") == 0;
    }
    return op == CFX_OPID_mm;
}

static cfx_value left_of(const cfx_node *n) { return cfx_node_operand(n, "self"); }
static cfx_value right_of(const cfx_node *n)
{
    return cfx_node_operand(n, cfx_node_operator(n) == CFX_OPID_mm ? "mat2" : "other");
}

static bool same_batch(const void *item, const void *key, size_t size)
{
    const batch *a = item;
    const batch *b = key;
    (void)size;
    return a->callee == b->callee && a->rhs == b->rhs && a->level == b->level;
}

static uint32_t hash_of_batch(const void *item) { return ((const batch *)item)->hash; }

/* The batch like `wanted`; a new one if there is none. NULL if memory is out. */
static batch *find_batch(merge_job *job, batch wanted)
{
    uint64_t h = cfxi_base_hash_mix((uintptr_t)wanted.callee, (uintptr_t)wanted.rhs);
    wanted.hash = (uint32_t)cfxi_base_hash_mix(h, wanted.level);
    batch *found = cfxi_base_set_find(&job->table, wanted.hash, same_batch, &wanted, 0);
    if (found)
        return found;
    if (!cfxi_base_set_reserve(&job->table, hash_of_batch, job->g->allocator) ||
        !(found = cfxi_base_alloc(job->g->allocator, sizeof *found))) {
        cfxi_base_nomem(job->err);
        return NULL;
    }
    *found = wanted;
    cfxi_base_set_insert(&job->table, found->hash, found);
    *job->last = found;
    job->last = &found->next;
    return found;
}

static cfx_status note_product(merge_job *job, entry *e)
{
    const cfx_node *n = e->node;
    cfx_value left = left_of(n);
    cfx_value right = right_of(n);
    size_t given = cfx_node_num_args(n) + (n->kwargs ? n->kwargs->size / 2 : 0);
    if (left.kind != CFX_KIND_NODE || right.kind != CFX_KIND_NODE || given != 2)
        return CFX_OK;
    const cfx_node *rhs = right.as.node;
    const void *key = rhs->op == CFX_OP_GET_ATTR ? (const void *)rhs->callee : rhs;
    e->batch = find_batch(job, (batch){.callee = n->callee, .rhs = key});
    if (!e->batch)
        return CFX_E_NOMEM;
    e->batch->size++;
    return CFX_OK;
}

/* The host may run any code, so the graph is frozen meanwhile. */
static cfx_status find_products(merge_job *job)
{
    cfx_status status = CFX_OK;
    entry *e = job->entries;
    cfxi_ir_graph_freeze(job->g);
    for (cfx_node *n = job->g->root.next; n != &job->g->root && status == CFX_OK; n = n->next) {
        cfx_effect effect = CFX_EFFECT_NONE;
        *e = (entry){.node = n};
        if (n->op != CFX_OP_PLACEHOLDER)
            status = cfxi_analysis_effect(job->model, n, &effect, job->err);
        e->effect = (uint8_t)effect;
        if (status == CFX_OK && effect == CFX_EFFECT_NONE && is_product(n))
            status = note_product(job, e);
        e++;
    }
    cfxi_ir_graph_thaw(job->g);
    return status;
}

/* ---- levels -------------------------------------------------------------------------------- */

static void find_levels(merge_job *job)
{
    const uint32_t stamp = cfxi_ir_graph_number(job->g);
    uint32_t floor = 0;  /* what comes after a node that writes is not below it */
    uint32_t alone = 0;  /* the level of the last node with an effect */
    uint32_t top = 0;
    for (size_t i = 0; i < job->n; i++) {
        entry *e = &job->entries[i];
        e->level = floor;
        for (uint32_t k = 0; k < e->node->n_inputs; k++) {
            const entry *input = &job->entries[e->node->inputs[k].def->mark - stamp];
            if (input->level > e->level)
                e->level = input->level;
        }
        if (e->effect == CFX_EFFECT_ALONE && alone > e->level)
            e->level = alone;
        if (e->effect == CFX_EFFECT_WRITES || e->node->op == CFX_OP_OUTPUT)
            e->level = top;
        if (e->batch && e->batch->size > 1)
            e->level++;
        if (e->level > top)
            top = e->level;
        if (e->effect != CFX_EFFECT_NONE)
            alone = e->level;
        if (e->effect == CFX_EFFECT_WRITES)
            floor = e->level;
    }
}

/* Forms batches of one level, of which those with several members are merged. */
static cfx_status find_batches(merge_job *job)
{
    for (size_t i = job->n; i-- > 0;) {
        entry *e = &job->entries[i];
        if (!e->batch || e->batch->size < 2)
            continue;
        batch wanted = {.callee = e->batch->callee, .rhs = e->batch->rhs, .level = e->level};
        e->batch = find_batch(job, wanted);
        if (!e->batch)
            return CFX_E_NOMEM;
        e->same = e->batch->first;
        e->batch->first = e;
        e->batch->size++;
        job->merged += e->batch->size == 2;
    }
    return CFX_OK;
}

static bool is_merged(const entry *e) { return e->batch && e->batch->level && e->batch->size > 1; }

/* Counting sort: level by level, and on each level first what is merged, then the rest, each in the
 * order of the graph. */
static cfx_status sort_entries(merge_job *job)
{
    uint32_t levels = 0;
    for (size_t i = 0; i < job->n; i++)
        if (job->entries[i].level > levels)
            levels = job->entries[i].level;
    const size_t bytes = (2 * (size_t)levels + 3) * sizeof(size_t);
    size_t *starts = cfxi_base_alloc(job->g->allocator, bytes);
    if (!starts)
        return cfxi_base_nomem(job->err);
    memset(starts, 0, bytes);
    for (size_t i = 0; i < job->n; i++)
        starts[2 * job->entries[i].level + !is_merged(&job->entries[i]) + 1]++;
    for (size_t i = 1; i < 2 * (size_t)levels + 3; i++)
        starts[i] += starts[i - 1];
    for (size_t i = 0; i < job->n; i++) {
        entry *e = &job->entries[i];
        job->sorted[starts[2 * e->level + !is_merged(e)]++] = e;
    }
    cfxi_base_free(job->g->allocator, starts, bytes);
    return CFX_OK;
}

/* ---- merging ------------------------------------------------------------------------------- */

static cfx_target by_name(const char *name)
{
    return (cfx_target){.name = name, .size = strlen(name)};
}

/* A new node at the insertion point, where `like` stands in the user's program. */
static cfx_node *create(merge_job *job, cfx_opcode op, cfx_target target, const cfx_value *args,
                        size_t n, const cfx_node *like)
{
    cfx_node *made = cfxi_analysis_add_call(job->g, op, target, args, n, job->err);
    if (made)
        cfxi_analysis_place_like(made, like);
    return made;
}

static cfx_node *create_call(merge_job *job, const char *name, const cfx_value *args, size_t n,
                             const cfx_node *like)
{
    cfx_node *made = cfxi_analysis_add_function(job->g, name, args, n, job->err);
    if (made)
        cfxi_analysis_place_like(made, like);
    return made;
}

/* How many rows a left-hand side has: a new node. */
static cfx_value rows_of(merge_job *job, const cfx_node *product)
{
    const cfx_value args[] = {left_of(product), cfx_value_int(0)};
    cfx_node *n = create(job, CFX_OP_CALL_METHOD, by_name("size"), args, 2, product);
    return n ? cfx_value_node(n) : cfx_value_invalid();
}

/* The left-hand sides, or their rows, as a list: held by the caller, INVALID with the error set. */
static cfx_value left_sides(merge_job *job, const batch *b, bool rows)
{
    const cfx_allocator *a = job->g->allocator;
    cfx_value *items = cfxi_base_alloc(a, b->size * sizeof *items);
    cfx_value list = cfx_value_invalid();
    size_t n = 0;
    if (!items) {
        cfxi_base_nomem(job->err);
        return list;
    }
    for (const entry *e = b->first; e; e = e->same) {
        items[n] = rows ? rows_of(job, e->node) : left_of(e->node);
        if (items[n++].kind == CFX_KIND_INVALID)
            break;
    }
    if (n == b->size && items[n - 1].kind != CFX_KIND_INVALID)
        list = cfx_value_list(job->g, items, n, job->err);
    cfxi_base_free(a, items, b->size * sizeof *items);
    return cfx_value_retain(list);
}

/* Splits a product into those of the left-hand sides. */
static cfx_node *create_split(merge_job *job, const batch *b, cfx_node *product)
{
    const cfx_node *like = b->first->node;
    cfx_value parts[] = {cfx_value_node(product), left_sides(job, b, !job->split)};
    if (parts[1].kind == CFX_KIND_INVALID)
        return NULL;
    cfx_node *made = job->split
                         ? create(job, CFX_OP_CALL_FUNCTION, *job->split, parts, 2, like)
                         : create_call(job, "torch.split", parts, 2, like);
    cfx_value_release(job->g, parts[1]);
    return made;
}

/* Concatenates, multiplies and splits, at the insertion point. */
static cfx_status create_merged(merge_job *job, batch *b)
{
    cfx_node *like = b->first->node;
    const cfx_ref *ref = like->callee->ref;
    cfx_value lefts = left_sides(job, b, false);
    if (lefts.kind == CFX_KIND_INVALID)
        return CFX_E_NOMEM;
    cfx_target target = ref->kind == CFXI_REF_OBJECT ? (cfx_target){.object = ref->object}
                                                     : by_name(ref->name->data);
    cfx_node *cat = create_call(job, "torch.cat", &lefts, 1, like);
    const cfx_value sides[] = {cfx_value_node(cat), right_of(like)};
    cfx_node *product = cat ? create(job, (cfx_opcode)like->op, target, sides, 2, like) : NULL;
    if (product)
        b->split = create_split(job, b, product);
    cfx_value_release(job->g, lefts);
    return b->split ? CFX_OK : job->err->status;
}

static cfx_status erase_reader(merge_job *job, cfx_value rhs)
{
    cfx_node *n = rhs.as.node;
    bool unused = n->op == CFX_OP_GET_ATTR && n->n_users == 0 && !cfxi_ir_node_erased(n);
    return unused ? cfx_graph_erase(job->g, n, job->err) : CFX_OK;
}

/* Takes the result of one member out of the merged product. */
static cfx_status replace_product(merge_job *job, entry *e, cfx_node **made)
{
    const cfx_value item[] = {cfx_value_node(e->batch->split), cfx_value_int(e->batch->done++)};
    const cfx_value rhs = right_of(e->node);
    *made = create_call(job, "operator.getitem", item, 2, e->node);
    if (!*made)
        return job->err->status;
    CFX_TRY(cfx_node_replace_uses(e->node, cfx_value_node(*made), NULL, NULL, NULL, job->err));
    CFX_TRY(cfx_graph_erase(job->g, e->node, job->err));
    return erase_reader(job, rhs);
}

static cfx_status insert_after(merge_job *job, const cfx_node *last)
{
    const cfx_insert_point at = {last ? last->next : job->g->root.next, false};
    return cfx_graph_set_insert_point(
        job->g, cfxi_ir_node_is_root(at.node) ? (cfx_insert_point){NULL, false} : at, job->err);
}

/* Puts a node where it belongs: behind all that has been placed. */
static cfx_status place(merge_job *job, entry *e, cfx_node **last)
{
    cfx_node *n = e->node;
    if (cfxi_ir_node_erased(n))
        return CFX_OK;
    if (is_merged(e)) {
        CFX_TRY(insert_after(job, *last));
        if (!e->batch->split)
            CFX_TRY(create_merged(job, e->batch));
        return replace_product(job, e, last);
    }
    if (n->prev != (*last ? *last : &job->g->root))
        CFX_TRY(*last ? cfx_node_append(*last, n, job->err)
                      : cfx_node_prepend(job->g->root.next, n, job->err));
    *last = n;
    return CFX_OK;
}

static cfx_status merge(merge_job *job)
{
    cfx_insert_point old = cfx_graph_insert_point(job->g);
    cfx_status status = CFX_OK;
    cfx_node *last = NULL;
    cfx_iter pin;  /* hooks may erase nodes */
    job->changed = true;
    cfx_iter_begin(&pin, job->g, false);
    for (size_t i = 0; i < job->n && status == CFX_OK; i++)
        status = place(job, job->sorted[i], &last);
    cfx_graph_set_insert_point(job->g, old, NULL);
    cfx_iter_end(&pin);
    return status;
}

/* ---- all of them --------------------------------------------------------------------------- */

static cfx_status merge_found(merge_job *job)
{
    bool any = false;
    CFX_TRY(find_products(job));
    for (const batch *b = job->batches; b; b = b->next)
        any = any || b->size > 1;
    if (!any)
        return CFX_OK;
    find_levels(job);
    CFX_TRY(find_batches(job));
    if (job->merged == 0)
        return CFX_OK;
    CFX_TRY(sort_entries(job));
    return merge(job);
}

static cfx_status merge_all(cfx_graph *g, void *ctx, cfx_error *err)
{
    merge_job *outer = ctx;
    merge_job job = {.split = outer->split, .model = outer->model,
                     .g = g, .n = g->size, .err = err};
    const size_t bytes = job.n * (sizeof *job.entries + sizeof *job.sorted);
    job.last = &job.batches;
    job.entries = job.n ? cfxi_base_alloc(g->allocator, bytes) : NULL;
    if (job.n && !job.entries)
        return cfxi_base_nomem(err);
    job.sorted = (entry **)(job.entries + job.n);
    cfx_status status = merge_found(&job);
    outer->changed = outer->changed || job.changed;
    for (batch *b = job.batches, *next; b; b = next) {
        next = b->next;
        cfxi_base_free(g->allocator, b, sizeof *b);
    }
    cfxi_base_set_free(&job.table, g->allocator);
    cfxi_base_free(g->allocator, job.entries, bytes);
    return status == CFX_OK ? cfxi_analysis_each_region(g, merge_all, outer, err) : status;
}

cfx_status cfxi_pass_merge_matmul(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                                  bool *changed, cfx_error *err)
{
    const cfx_merge_matmul_options *o = opts;
    cfx_error own;
    cfxi_effect_model model = {.modules = modules, .strict = o && o->strict};
    merge_job job = {.split = o ? o->split : NULL, .model = &model};
    cfx_status status = merge_all(g, &job, cfxi_base_error_or(err, &own));
    cfxi_analysis_model_end(&model);
    if (changed)
        *changed = job.changed;
    return status;
}
