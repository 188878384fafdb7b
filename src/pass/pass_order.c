/* pass_order.c - the order of passes, or of anything else, under constraints.
 *
 * A constraint says of two items (a, b) whether a may come before b. Items are known by their
 * places in a list, so that one may stand there more than once. Every pair is asked about: there
 * are few passes.
 */
#include "base/base_impl.h"

#include <cfx/embed/pass.h>
#include <cfx/pass.h>

/* ---- by places ----------------------------------------------------------------------------- */

static cfx_status ask(cfx_order_fn *allows, void *ctx, size_t a, size_t b, bool *allowed,
                      cfx_error *err)
{
    int answer = allows(ctx, a, b);
    *allowed = answer > 0;
    if (answer >= 0)
        return CFX_OK;
    return cfx_error_set(err, CFX_E_HOST, "could not tell whether item %zu may come before item "
                         "%zu", a, b);
}

cfx_status cfx_order_check(size_t n, cfx_order_fn *allows, void *ctx, size_t *first, size_t *second,
                           cfx_error *err)
{
    bool allowed;
    for (size_t a = 0; a < n; a++)
        for (size_t b = a + 1; b < n; b++) {
            CFX_TRY(ask(allows, ctx, a, b, &allowed, err));
            if (allowed)
                continue;
            if (first)
                *first = a;
            if (second)
                *second = b;
            return cfx_error_set(err, CFX_E_GRAPH, "item %zu must come before item %zu", b, a);
        }
    return CFX_OK;
}

typedef struct order_job {
    size_t n;
    bool *later;    /* later[a * n + b]: b must come after a */
    size_t *waits;  /* for how many others each item waits */
    size_t *order;
    size_t done;
} order_job;

static cfx_status ask_all(order_job *job, cfx_order_fn *allows, void *ctx, cfx_error *err)
{
    bool allowed;
    for (size_t a = 0; a < job->n; a++)
        for (size_t b = 0; b < job->n; b++) {
            job->later[a * job->n + b] = false;
            if (a == b)
                continue;
            CFX_TRY(ask(allows, ctx, b, a, &allowed, err));
            job->later[a * job->n + b] = !allowed;
            job->waits[b] += !allowed;
        }
    return CFX_OK;
}

/* What waits for none, in the order in which it came to that; then what is in a cycle. */
static void sort(order_job *job)
{
    const size_t n = job->n;
    for (size_t i = 0; i < n; i++)
        if (job->waits[i] == 0)
            job->order[job->done++] = i;
    for (size_t k = 0; k < job->done; k++)
        for (size_t b = 0; b < n; b++)
            if (job->later[job->order[k] * n + b] && --job->waits[b] == 0)
                job->order[job->done++] = b;
    size_t end = job->done;
    for (size_t i = 0; i < n; i++)
        if (job->waits[i] > 0)
            job->order[end++] = i;
}

cfx_status cfx_order_sort(size_t n, cfx_order_fn *allows, void *ctx, size_t *order, size_t *sorted,
                          const cfx_allocator *allocator, cfx_error *err)
{
    order_job job = {.n = n, .order = order};
    size_t pairs, bytes;
    *sorted = 0;
    if (!cfxi_base_mul_size(n, n, 1, &pairs) ||
        !cfxi_base_mul_size(n, sizeof *job.waits, pairs, &bytes))
        return cfxi_base_nomem(err);
    job.waits = cfxi_base_alloc(allocator, bytes);
    if (!job.waits)
        return cfxi_base_nomem(err);
    memset(job.waits, 0, n * sizeof *job.waits);
    job.later = (bool *)(job.waits + n);
    cfx_status status = ask_all(&job, allows, ctx, err);
    if (status == CFX_OK) {
        sort(&job);
        *sorted = job.done;
        if (job.done < n)
            status = cfx_error_set(err, CFX_E_GRAPH, "item %zu must come before one that must come "
                                   "before it", order[job.done]);
    }
    cfxi_base_free(allocator, job.waits, bytes);
    return status;
}

/* ---- by pairs ------------------------------------------------------------------------------ */

/* `first[i]` is where what comes behind item i starts in `behind`. All zero at first. */
typedef struct pair_job {
    size_t n, n_pairs;
    size_t *waits, *first, *behind;
    size_t *order;
    size_t done;
} pair_job;

/* Sorts the pairs by their first items; those of one item keep their order. */
static void sort_pairs(pair_job *job, const cfx_order_pair *pairs)
{
    for (size_t i = 0; i < job->n_pairs; i++) {
        job->first[pairs[i].before]++;
        job->waits[pairs[i].after]++;
    }
    for (size_t i = 0; i < job->n; i++)
        job->first[i + 1] += job->first[i];
    for (size_t i = job->n_pairs; i-- > 0;)
        job->behind[--job->first[pairs[i].before]] = pairs[i].after;
}

static void order_pairs(pair_job *job)
{
    for (size_t i = 0; i < job->n; i++)
        if (job->waits[i] == 0)
            job->order[job->done++] = i;
    for (size_t k = 0; k < job->done; k++) {
        const size_t i = job->order[k];
        for (size_t f = job->first[i]; f < job->first[i + 1]; f++)
            if (--job->waits[job->behind[f]] == 0)
                job->order[job->done++] = job->behind[f];
    }
    size_t end = job->done;
    for (size_t i = 0; i < job->n; i++)
        if (job->waits[i] > 0)
            job->order[end++] = i;
}

cfx_status cfx_order_sort_pairs(size_t n, const cfx_order_pair *pairs, size_t n_pairs,
                                size_t *order, size_t *sorted, const cfx_allocator *allocator,
                                cfx_error *err)
{
    pair_job job = {.n = n, .n_pairs = n_pairs, .order = order};
    size_t count, bytes;
    *sorted = 0;
    for (size_t i = 0; i < n_pairs; i++)
        if (pairs[i].before >= n || pairs[i].after >= n)
            return cfx_error_set(err, CFX_E_INDEX, "pair %zu names an item past the last", i);
    if (!cfxi_base_mul_size(n, 2, n_pairs, &count) ||
        !cfxi_base_mul_size(count, sizeof(size_t), 2 * sizeof(size_t), &bytes))
        return cfxi_base_nomem(err);
    job.waits = cfxi_base_alloc(allocator, bytes);
    if (!job.waits)
        return cfxi_base_nomem(err);
    memset(job.waits, 0, bytes);
    job.first = job.waits + n;
    job.behind = job.first + n + 1;
    sort_pairs(&job, pairs);
    order_pairs(&job);
    *sorted = job.done;
    cfxi_base_free(allocator, job.waits, bytes);
    if (job.done == n)
        return CFX_OK;
    return cfx_error_set(err, CFX_E_GRAPH, "item %zu must come before one that must come before it",
                         order[job.done]);
}

/* ---- by names ------------------------------------------------------------------------------ */

typedef struct named_passes {
    const cfx_pass *const *passes;
    const cfx_pass_constraint *constraints;
    size_t n_constraints;
} named_passes;

static int names_allow(void *ctx, size_t a, size_t b)
{
    const named_passes *names = ctx;
    for (size_t i = 0; i < names->n_constraints; i++)
        if (strcmp(names->passes[a]->name, names->constraints[i].after) == 0 &&
            strcmp(names->passes[b]->name, names->constraints[i].before) == 0)
            return 0;
    return 1;
}

cfx_status cfx_passes_sort(const cfx_pass **passes, size_t n,
                           const cfx_pass_constraint *constraints, size_t n_constraints,
                           const cfx_allocator *allocator, cfx_error *err)
{
    named_passes names = {passes, constraints, n_constraints};
    size_t bytes, sorted;
    if (n == 0)
        return CFX_OK;
    if (!cfxi_base_mul_size(n, sizeof(size_t) + sizeof *passes, 0, &bytes))
        return cfxi_base_nomem(err);
    const cfx_pass **old = cfxi_base_alloc(allocator, bytes);
    if (!old)
        return cfxi_base_nomem(err);
    size_t *order = (size_t *)(void *)(old + n);
    cfx_status status = cfx_order_sort(n, names_allow, &names, order, &sorted, allocator, err);
    if (status == CFX_E_GRAPH)
        cfx_error_set(err, status, "the pass %s must run before one that must run before it",
                      passes[order[sorted]]->name);
    memcpy(old, passes, n * sizeof *passes);
    for (size_t i = 0; status == CFX_OK && i < n; i++)
        passes[i] = old[order[i]];
    cfxi_base_free(allocator, (void *)old, bytes);
    return status;
}
