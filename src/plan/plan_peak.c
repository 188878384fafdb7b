/* plan_peak.c - bytes that live at each step: a tree over the steps, in which a range is added to,
 * and the most found, in the logarithm of their number. */
#include "plan_peak.h"

bool cfxi_plan_peak_new(cfxi_peak *p, const cfxi_plan *plan, const bool *outside)
{
    const cfx_allocator *a = plan->allocator;
    const size_t memories = plan->memories.size + 1;
    *p = (cfxi_peak){.plan = plan, .outside = outside, .leaves = 1};
    while (p->leaves < plan->steps.size)
        p->leaves *= 2;
    p->most = cfxi_base_alloc(a, 2 * p->leaves * sizeof *p->most);
    p->added = cfxi_base_alloc(a, 2 * p->leaves * sizeof *p->added);
    p->first = cfxi_base_alloc(a, memories * sizeof *p->first);
    p->last = cfxi_base_alloc(a, memories * sizeof *p->last);
    if (!p->most || !p->added || !p->first || !p->last)
        return false;
    memset(p->most, 0, 2 * p->leaves * sizeof *p->most);
    memset(p->added, 0, 2 * p->leaves * sizeof *p->added);
    for (size_t i = 0; i < memories; i++) {
        p->first[i] = CFXI_NONE;
        p->last[i] = 0;
    }
    return true;
}

void cfxi_plan_peak_free(cfxi_peak *p)
{
    if (!p->plan)
        return;
    const cfx_allocator *a = p->plan->allocator;
    const size_t memories = p->plan->memories.size + 1;
    cfxi_base_free(a, p->most, 2 * p->leaves * sizeof *p->most);
    cfxi_base_free(a, p->added, 2 * p->leaves * sizeof *p->added);
    cfxi_base_free(a, p->first, memories * sizeof *p->first);
    cfxi_base_free(a, p->last, memories * sizeof *p->last);
}

void cfxi_plan_peak_touch(cfxi_peak *p, uint32_t memory, uint32_t step)
{
    if (p->first[memory] == CFXI_NONE || step < p->first[memory])
        p->first[memory] = step;
    if (step > p->last[memory])
        p->last[memory] = step;
}

/* ---- the tree ------------------------------------------------------------------------------ */

/* Adds to the steps from `from` to `to`, of which the node `at` has those from `low` to `high`. */
static void add(cfxi_peak *p, size_t at, size_t low, size_t high, size_t from, size_t to,
                int64_t bytes)
{
    if (from > high || to < low)
        return;
    if (from <= low && high <= to) {
        p->added[at] += bytes;
        p->most[at] += bytes;
        return;
    }
    const size_t middle = low + (high - low) / 2;
    add(p, 2 * at, low, middle, from, to, bytes);
    add(p, 2 * at + 1, middle + 1, high, from, to, bytes);
    const int64_t left = p->most[2 * at];
    const int64_t right = p->most[2 * at + 1];
    p->most[at] = p->added[at] + (left > right ? left : right);
}

/* A memory lives, or does not any more. */
static void count(cfxi_peak *p, uint32_t memory, int sign)
{
    const cfxi_memory *m = cfxi_plan_memory(p->plan, memory);
    if (!p->outside[memory] && p->first[memory] != CFXI_NONE)
        add(p, 1, 0, p->leaves - 1, p->first[memory], p->last[memory], sign * (int64_t)m->size);
}

/* ---- joining ------------------------------------------------------------------------------- */

void cfxi_plan_peak_begin(cfxi_peak *p)
{
    for (uint32_t i = 0; i < p->plan->memories.size; i++)
        count(p, i, 1);
    p->limit = p->most[1];
}

bool cfxi_plan_peak_join(cfxi_peak *p, uint32_t part, uint32_t whole)
{
    p->part = part;
    p->whole = whole;
    p->was_first = p->first[whole];
    p->was_last = p->last[whole];
    count(p, part, -1);
    count(p, whole, -1);
    if (p->first[part] != CFXI_NONE) {
        cfxi_plan_peak_touch(p, whole, p->first[part]);
        cfxi_plan_peak_touch(p, whole, p->last[part]);
    }
    count(p, whole, 1);
    if (p->most[1] <= p->limit)
        return true;
    cfxi_plan_peak_undo(p);
    return false;
}

void cfxi_plan_peak_undo(cfxi_peak *p)
{
    count(p, p->whole, -1);
    p->first[p->whole] = p->was_first;
    p->last[p->whole] = p->was_last;
    count(p, p->whole, 1);
    count(p, p->part, 1);
}
