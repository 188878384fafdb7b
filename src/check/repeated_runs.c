/* repeated_runs.c - runs of consecutive nodes that come several times, for graphs without scopes.
 *
 * The tokens of the nodes (repeated.c) are a text. Its suffixes are sorted by doubling; suffixes
 * that begin with the same L tokens are neighbours then, and the longest common beginnings of
 * neighbours give all candidates: intervals of suffixes with their common length (the inner nodes
 * of a suffix tree, n - 1 at most). Candidates wait in a heap by how many nodes they could cover at
 * most. The first is looked at: its copies that do not overlap and are not covered yet, the largest
 * set of those with the same wiring. If no other can cover more, it is taken; otherwise it goes
 * back with what it really covers, which can only shrink later on.
 *
 * O(n log n) for the suffixes. After so many visits of nodes no new candidates are looked at, and
 * the best of the others are taken.
 */
#include "repeated_impl.h"

#include <stdlib.h>

enum { VISITS = 64 };  /* of each node, on average */

/* Suffixes sorted[low .. high] have the first `length` tokens in common. */
typedef struct candidate {
    size_t covers;  /* at most */
    uint32_t low, high, length;
    bool seen;      /* it has been looked at */
} candidate;

typedef struct run_job {
    cfxi_repeat_job *job;
    size_t n;
    uint32_t *sorted;   /* the suffixes, by their first positions */
    uint32_t *rank;     /* by position: its place among them */
    uint32_t *common;   /* by place: tokens in common with the suffix before */
    uint32_t *scratch;  /* 2 * n + 2: counts; positions */
    candidate *heap;
    size_t size;
    uint64_t *hashes;
    size_t visits;
} run_job;

/* ---- suffixes ------------------------------------------------------------------------------ */

typedef struct numbered {
    uint64_t token;
    uint32_t at;
} numbered;

static int compare_tokens(const void *a, const void *b)
{
    const numbered *x = a;
    const numbered *y = b;
    if (x->token != y->token)
        return x->token < y->token ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* The order and the ranks by the first token alone. */
static cfx_status sort_tokens(run_job *r)
{
    const cfx_allocator *a = r->job->graph->allocator;
    numbered *rows = cfxi_base_alloc(a, r->n * sizeof *rows);
    if (!rows)
        return cfxi_base_nomem(r->job->err);
    for (size_t i = 0; i < r->n; i++)
        rows[i] = (numbered){r->job->tokens[i], (uint32_t)i};
    qsort(rows, r->n, sizeof *rows, compare_tokens);
    for (size_t i = 0; i < r->n; i++) {
        bool same = i > 0 && rows[i].token == rows[i - 1].token;
        r->sorted[i] = rows[i].at;
        r->rank[rows[i].at] = same ? r->rank[rows[i - 1].at] : (uint32_t)i;
    }
    cfxi_base_free(a, rows, r->n * sizeof *rows);
    return CFX_OK;
}

/* The rank of the suffix at `at`; one that is empty comes first. */
static uint32_t rank_at(const run_job *r, size_t at) { return at < r->n ? r->rank[at] + 1 : 0; }

/* Sorts by the first 2 * width tokens what is sorted by the first `width`: a stable counting sort
 * of the suffixes in the order of their second halves. Ranks are the first place of equal ones, so
 * they serve as the places where to put them. */
static bool double_width(run_job *r, size_t width)
{
    uint32_t *order = r->scratch;
    uint32_t *next = r->scratch + r->n;
    size_t k = 0;
    bool apart = true;
    for (size_t i = r->n - width; i < r->n; i++)
        order[k++] = (uint32_t)i;
    for (size_t i = 0; i < r->n; i++)
        if (r->sorted[i] >= width)
            order[k++] = r->sorted[i] - (uint32_t)width;
    for (size_t i = 0; i < r->n; i++)
        next[i] = (uint32_t)i;
    for (size_t i = 0; i < r->n; i++)
        r->sorted[next[r->rank[order[i]]]++] = order[i];
    for (size_t i = 0; i < r->n; i++) {
        const uint32_t at = r->sorted[i];
        const uint32_t before = i > 0 ? r->sorted[i - 1] : 0;
        bool same = i > 0 && r->rank[at] == r->rank[before] &&
                    rank_at(r, at + width) == rank_at(r, before + width);
        order[at] = same ? order[before] : (uint32_t)i;
        apart = apart && !same;
    }
    memcpy(r->rank, order, r->n * sizeof *order);
    return apart;
}

/* Kasai's way: the suffix one to the right has at least all but one of them in common. */
static void find_common(run_job *r)
{
    const uint64_t *tokens = r->job->tokens;
    size_t h = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (r->rank[i] == 0) {
            r->common[0] = 0;
            h = 0;
            continue;
        }
        const size_t j = r->sorted[r->rank[i] - 1];
        while (i + h < r->n && j + h < r->n && tokens[i + h] == tokens[j + h])
            h++;
        r->common[r->rank[i]] = (uint32_t)h;
        h -= h > 0;
    }
}

static cfx_status sort_suffixes(run_job *r)
{
    CFX_TRY(sort_tokens(r));
    for (size_t width = 1; width < r->n; width *= 2)
        if (double_width(r, width))
            break;
    find_common(r);
    return CFX_OK;
}

/* ---- candidates: a heap -------------------------------------------------------------------- */

/* Those that cover more come first; of those the shorter ones, and of those the earlier. */
static bool comes_first(const run_job *r, const candidate *a, const candidate *b)
{
    if (a->covers != b->covers)
        return a->covers > b->covers;
    if (a->length != b->length)
        return a->length < b->length;
    return r->sorted[a->low] < r->sorted[b->low];
}

static void push(run_job *r, candidate c)
{
    size_t at = r->size++;
    for (; at > 0 && comes_first(r, &c, &r->heap[(at - 1) / 2]); at = (at - 1) / 2)
        r->heap[at] = r->heap[(at - 1) / 2];
    r->heap[at] = c;
}

static candidate pop(run_job *r)
{
    const candidate top = r->heap[0];
    const candidate last = r->heap[--r->size];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < r->size; at = child) {
        if (child + 1 < r->size && comes_first(r, &r->heap[child + 1], &r->heap[child]))
            child++;
        if (!comes_first(r, &r->heap[child], &last))
            break;
        r->heap[at] = r->heap[child];
    }
    r->heap[at] = last;
    return top;
}

/* An interval that is still open, with the first and last position in it. */
typedef struct open_interval {
    uint32_t length, low, first, last;
} open_interval;

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t greatest(uint32_t a, uint32_t b) { return a > b ? a : b; }

static void add_candidate(run_job *r, const open_interval *o, size_t high)
{
    const size_t count = high - o->low + 1;
    const size_t span = (size_t)o->last - o->first + o->length;  /* they may overlap */
    const size_t covers = count * o->length < span ? count * o->length : span;
    if (o->length >= r->job->min_nodes && count >= r->job->min_copies)
        push(r, (candidate){covers, o->low, (uint32_t)high, o->length, false});
}

/* Walks the places, with the intervals that are open on a stack: longer inside shorter. */
static cfx_status find_candidates(run_job *r)
{
    const cfx_allocator *a = r->job->graph->allocator;
    open_interval *stack = cfxi_base_alloc(a, (r->n + 1) * sizeof *stack);
    size_t depth = 0;
    if (!stack)
        return cfxi_base_nomem(r->job->err);
    stack[depth++] = (open_interval){0, 0, r->sorted[0], r->sorted[0]};
    for (size_t i = 1; i <= r->n; i++) {
        const uint32_t length = i < r->n ? r->common[i] : 0;
        open_interval next = {length, (uint32_t)i - 1, r->sorted[i - 1], r->sorted[i - 1]};
        while (stack[depth - 1].length > length) {
            const open_interval done = stack[--depth];
            add_candidate(r, &done, i - 1);
            next.low = done.low;
            next.first = least(next.first, done.first);
            next.last = greatest(next.last, done.last);
            stack[depth - 1].first = least(stack[depth - 1].first, done.first);
            stack[depth - 1].last = greatest(stack[depth - 1].last, done.last);
        }
        if (stack[depth - 1].length < length)
            stack[depth++] = next;
        if (i < r->n) {
            stack[depth - 1].first = least(stack[depth - 1].first, r->sorted[i]);
            stack[depth - 1].last = greatest(stack[depth - 1].last, r->sorted[i]);
        }
    }
    cfxi_base_free(a, stack, (r->n + 1) * sizeof *stack);
    return CFX_OK;
}

/* ---- choosing ------------------------------------------------------------------------------ */

static bool is_free(run_job *r, uint32_t start, uint32_t length)
{
    uint32_t i = 0;
    while (i < length && !r->job->covered[start + i])
        i++;
    r->visits += i;
    return i == length;
}

static uint64_t run_hash(run_job *r, uint32_t start, uint32_t length)
{
    uint32_t *positions = r->scratch + r->n;
    for (uint32_t i = 0; i < length; i++)
        positions[i] = start + i;
    return cfxi_check_part_hash(r->job, positions, length);
}

/* Leaves in `scratch` where the copies of a candidate begin, in ascending order, and their hashes:
 * those that are free, and of those that overlap the first. */
static size_t find_copies(run_job *r, const candidate *c)
{
    uint32_t *starts = r->scratch;
    const size_t count = (size_t)c->high - c->low + 1;
    size_t copies = 0;
    uint32_t end = 0;
    memcpy(starts, r->sorted + c->low, count * sizeof *starts);
    qsort(starts, count, sizeof *starts, cfxi_check_compare_positions);
    for (size_t i = 0; i < count; i++) {
        const uint32_t start = starts[i];
        if (start < end || !is_free(r, start, c->length))
            continue;
        starts[copies] = start;
        r->hashes[copies++] = run_hash(r, start, c->length);
        end = start + c->length;
    }
    r->visits += count + copies * c->length;
    return copies;
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Keeps the copies with the hash that most have; of two such, that of the earlier copies. */
static size_t keep_equal(run_job *r, size_t copies)
{
    uint64_t *sorted = r->hashes + copies;
    uint64_t best = r->hashes[0];
    size_t most = 0;
    memcpy(sorted, r->hashes, copies * sizeof *sorted);
    qsort(sorted, copies, sizeof *sorted, compare_hashes);
    for (size_t i = 0, j; i < copies; i = j) {
        for (j = i; j < copies && sorted[j] == sorted[i]; j++)
            ;
        if (j - i > most || (j - i == most && sorted[i] == r->hashes[0])) {
            most = j - i;
            best = sorted[i];
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < copies; i++)
        if (r->hashes[i] == best)
            r->scratch[kept++] = r->scratch[i];
    return kept;
}

static cfx_status accept(run_job *r, const candidate *c, size_t copies)
{
    const cfx_allocator *a = r->job->graph->allocator;
    const size_t size = copies * c->length;
    uint32_t *positions = cfxi_base_alloc(a, size * sizeof *positions);
    if (!positions)
        return cfxi_base_nomem(r->job->err);
    for (size_t i = 0; i < size; i++)
        positions[i] = r->scratch[i / c->length] + (uint32_t)(i % c->length);
    cfx_status status = cfxi_check_repeats_add(r->job, positions, c->length, NULL, copies);
    cfxi_base_free(a, positions, size * sizeof *positions);
    return status;
}

static cfx_status choose(run_job *r)
{
    while (r->size > 0 && r->visits < 2 * VISITS * r->n) {
        candidate c = pop(r);
        const bool late = r->visits >= VISITS * r->n;
        if (late && !c.seen)
            continue;
        size_t copies = find_copies(r, &c);
        copies = copies > 0 ? keep_equal(r, copies) : 0;
        if (copies < r->job->min_copies)
            continue;
        c.covers = copies * c.length;
        c.seen = true;
        if (!late && r->size > 0 && comes_first(r, &r->heap[0], &c))
            push(r, c);
        else
            CFX_TRY(accept(r, &c, copies));
    }
    return CFX_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static cfx_status find(run_job *r)
{
    const cfx_allocator *a = r->job->graph->allocator;
    r->sorted = cfxi_base_alloc(a, r->n * sizeof *r->sorted);
    r->rank = cfxi_base_alloc(a, r->n * sizeof *r->rank);
    r->common = cfxi_base_alloc(a, r->n * sizeof *r->common);
    r->scratch = cfxi_base_alloc(a, 2 * r->n * sizeof *r->scratch);
    r->heap = cfxi_base_alloc(a, r->n * sizeof *r->heap);
    r->hashes = cfxi_base_alloc(a, 2 * r->n * sizeof *r->hashes);
    if (!r->sorted || !r->rank || !r->common || !r->scratch || !r->heap || !r->hashes)
        return cfxi_base_nomem(r->job->err);
    CFX_TRY(sort_suffixes(r));
    CFX_TRY(find_candidates(r));
    return choose(r);
}

cfx_status cfxi_check_find_runs(cfxi_repeat_job *job)
{
    run_job r = {.job = job, .n = job->n};
    const cfx_allocator *a = job->graph->allocator;
    cfx_status status = find(&r);
    cfxi_base_free(a, r.sorted, r.n * sizeof *r.sorted);
    cfxi_base_free(a, r.rank, r.n * sizeof *r.rank);
    cfxi_base_free(a, r.common, r.n * sizeof *r.common);
    cfxi_base_free(a, r.scratch, 2 * r.n * sizeof *r.scratch);
    cfxi_base_free(a, r.heap, r.n * sizeof *r.heap);
    cfxi_base_free(a, r.hashes, 2 * r.n * sizeof *r.hashes);
    return status;
}
