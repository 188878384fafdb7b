/* stages.c - cuts a graph into balanced stages, for a pipeline.
 *
 *     costs, 2 stages    cut        largest
 *     4 1 1 2 4          4 1 1|2 4  6
 *
 * Needs: calls that stand behind what they read.
 * Keeps: the graph as it is.
 *
 * Stages are stretches of the list of calls. The least possible largest cost is found by bisection:
 * whether stages of at most a cost suffice, a greedy walk over sums tells, stage by stage. Where
 * each cut may be then lies between the places at which two greedy walks, one from either end, put
 * it; the sum of the bytes that cross is made least by going through these places cut by cut, with
 * the best place of the cut before kept in a queue that slides along.
 */
#include "split_impl.h"

#include <math.h>

typedef struct stager {
    cfx_graph *g;
    const cfx_stages_options *what;
    cfx_node **calls;
    size_t n, stages;       /* calls; stages */
    double *sums;           /* sums[i]: costs of the first i calls */
    double *crossing;       /* crossing[i]: bytes that cross a cut before call i */
    size_t *last;           /* the latest place of each cut; cut 0 is the start */
    size_t *first;          /* and the earliest */
    size_t *offsets;        /* where the places of each cut begin in `best` and `choice` */
    double *best;           /* the fewest bytes for the cuts up to there */
    size_t *choice;         /* the place of the cut before */
    uint32_t stamp;
    cfxi_arena arena;       /* of all these arrays */
    cfx_error *err;
} stager;

static void *array(stager *s, size_t n, size_t item_size)
{
    void *items = cfxi_base_arena_zeros(&s->arena, n, item_size);
    if (!items)
        cfxi_base_nomem(s->err);
    return items;
}

/* ---- numbers ------------------------------------------------------------------------------- */

static cfx_status check_number(const stager *s, const double *numbers, size_t i, const cfx_node *n,
                               const char *what)
{
    if (!numbers || (isfinite(numbers[i]) && numbers[i] >= 0))
        return CFX_OK;
    return cfx_error_set(s->err, CFX_E_VALUE, "the %s of node %%%s is %g; it must be finite and "
                         "not negative", what, n->name->data, numbers[i]);
}

/* What each call adds to the bytes that cross: from its own place to that of its last user. */
static void add_crossing(stager *s, size_t call, double size)
{
    const cfx_node *n = s->calls[call];
    size_t end = call;
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use)) {
        size_t at = use->user->mark - s->stamp;
        if (at < s->n && s->calls[at] == use->user && at > end)
            end = at;
    }
    s->crossing[call + 1] += size;
    s->crossing[end + 1] -= size;
}

/* Calls get their number among the calls as their mark, all other nodes one that is too large. */
static cfx_status take_calls(stager *s)
{
    size_t i = 0;
    s->stamp = cfxi_ir_graph_stamp(s->g, (uint32_t)s->g->size + 1);
    for (cfx_node *n = s->g->root.next; n != &s->g->root; n = n->next, i++) {
        double cost = s->what->costs ? s->what->costs[i] : 1;
        n->mark = s->stamp + (uint32_t)s->g->size;
        if (!cfxi_ir_is_call(n))
            continue;
        CFX_TRY(check_number(s, s->what->costs, i, n, "cost"));
        CFX_TRY(check_number(s, s->what->sizes, i, n, "size"));
        n->mark = s->stamp + (uint32_t)s->n;
        s->calls[s->n] = n;
        s->sums[s->n + 1] = s->sums[s->n] + cost;
        s->n++;
    }
    if (!isfinite(s->sums[s->n]))
        return cfx_error_set(s->err, CFX_E_VALUE, "the sum of the costs is too large");
    i = 0;
    for (const cfx_node *n = s->g->root.next; n != &s->g->root; n = n->next, i++)
        if (cfxi_ir_is_call(n))
            add_crossing(s, n->mark - s->stamp, s->what->sizes ? s->what->sizes[i] : 1);
    for (i = 0; i < s->n; i++)
        s->crossing[i + 1] += s->crossing[i];
    return CFX_OK;
}

/* ---- the largest cost ---------------------------------------------------------------------- */

/* The end of the longest stage from call `from` that costs at most `limit`. */
static size_t reach(const stager *s, size_t from, double limit)
{
    size_t low = from, high = s->n;
    while (low < high) {
        size_t middle = high - (high - low) / 2;
        if (s->sums[middle] - s->sums[from] <= limit)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static bool suffices(const stager *s, double limit)
{
    size_t at = 0;
    for (size_t j = 0; j < s->stages && at < s->n; j++)
        at = reach(s, at, limit);
    return at == s->n;
}

static double find_limit(const stager *s)
{
    double low = -1, high = s->sums[s->n];  /* one stage of all does */
    for (int i = 0; i < 200; i++) {
        double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high)
            break;  /* there is no number between them */
        if (suffices(s, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* ---- the fewest bytes ---------------------------------------------------------------------- */

/* The earliest and latest place of each cut. */
static cfx_status find_places(stager *s, double limit)
{
    size_t total = 0;
    for (size_t j = 0; j < s->stages; j++)
        s->last[j + 1] = reach(s, s->last[j], limit);
    s->first[s->stages] = s->n;
    for (size_t j = s->stages, at = s->n; j > 0; j--) {
        while (at > 0 && s->sums[s->first[j]] - s->sums[at - 1] <= limit)
            at--;
        s->first[j - 1] = at;
    }
    s->first[0] = 0;
    for (size_t j = 0; j <= s->stages; j++) {
        s->offsets[j] = total;
        total += s->last[j] - s->first[j] + 1;
    }
    s->best = array(s, total, sizeof *s->best);
    s->choice = s->best ? array(s, total, sizeof *s->choice) : NULL;
    return s->choice ? CFX_OK : CFX_E_NOMEM;
}

/* The best places of cut j from those of the one before, in a queue of places that get worse. */
static void place_cut(stager *s, size_t j, double limit, size_t *queue)
{
    const double *before = s->best + s->offsets[j - 1];
    size_t next = s->first[j - 1], head = 0, tail = 0;
    for (size_t at = s->first[j]; at <= s->last[j]; at++) {
        for (; next <= s->last[j - 1] && next <= at; next++) {
            while (tail > head && before[queue[tail - 1] - s->first[j - 1]] >
                                      before[next - s->first[j - 1]])
                tail--;
            queue[tail++] = next;
        }
        while (head < tail && s->sums[at] - s->sums[queue[head]] > limit)
            head++;
        size_t i = s->offsets[j] + at - s->first[j];
        s->best[i] = HUGE_VAL;
        if (head == tail)
            continue;  /* no stage ends here */
        double here = j < s->stages ? s->crossing[at] : 0;
        s->best[i] = before[queue[head] - s->first[j - 1]] + here;
        s->choice[i] = queue[head];
    }
}

static cfx_status place_cuts(stager *s, double limit)
{
    size_t *queue = array(s, s->n + 1, sizeof *queue);
    if (!queue)
        return CFX_E_NOMEM;
    for (size_t j = 1; j <= s->stages; j++)
        place_cut(s, j, limit, queue);
    return CFX_OK;
}

/* Walks back from the end; stages that would be empty are not counted. */
static void number_parts(stager *s, size_t *parts, double *largest)
{
    size_t *stage_of = s->first;  /* not needed any more: the place of each cut */
    size_t at = s->n;
    for (size_t j = s->stages; j > 0; j--) {
        size_t before = s->choice[s->offsets[j] + at - s->first[j]];
        stage_of[j] = at;
        at = before;
    }
    size_t call = 0, i = 0, stage = 0, used = 0, begin = 0;
    *largest = 0;
    for (const cfx_node *n = s->g->root.next; n != &s->g->root; n = n->next, i++) {
        parts[i] = CFX_SPLIT_BASE;
        if (!cfxi_ir_is_call(n))
            continue;
        while (call >= stage_of[stage + 1]) {
            used += stage_of[stage + 1] > begin;
            *largest = fmax(*largest, s->sums[stage_of[stage + 1]] - s->sums[begin]);
            begin = stage_of[++stage];
        }
        parts[i] = used;
        call++;
    }
    *largest = fmax(*largest, s->sums[s->n] - s->sums[begin]);
}

static cfx_status solve(stager *s, size_t *parts, double *largest)
{
    CFX_TRY(take_calls(s));
    if (s->stages > s->n)
        s->stages = s->n ? s->n : 1;
    s->last = array(s, s->stages + 2, sizeof *s->last);
    s->first = s->last ? array(s, s->stages + 2, sizeof *s->first) : NULL;
    s->offsets = s->first ? array(s, s->stages + 2, sizeof *s->offsets) : NULL;
    if (!s->offsets)
        return CFX_E_NOMEM;
    double limit = find_limit(s);
    CFX_TRY(find_places(s, limit));
    CFX_TRY(place_cuts(s, limit));
    number_parts(s, parts, largest);
    return CFX_OK;
}

cfx_status cfx_graph_stages(cfx_graph *g, const cfx_stages_options *what, size_t *parts,
                            double *largest, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    double ignored;
    stager s = {.g = g, .what = what, .stages = what->n, .err = err};
    if (what->n == 0)
        return cfx_error_set(err, CFX_E_VALUE, "a graph cannot be cut into 0 stages");
    cfxi_base_arena_init(&s.arena, g->allocator);
    s.calls = array(&s, g->size, sizeof *s.calls);
    s.sums = s.calls ? array(&s, g->size + 2, sizeof *s.sums) : NULL;
    s.crossing = s.sums ? array(&s, g->size + 2, sizeof *s.crossing) : NULL;
    cfx_status status = s.crossing ? solve(&s, parts, largest ? largest : &ignored) : CFX_E_NOMEM;
    cfxi_base_arena_release(&s.arena);
    return status;
}
