/* place_cost.c - parts of a graph by how long it takes: joining parts, and exchanging calls.
 *
 *     %a(%x) %b(%a) %c(%x), all fit one device      parts: {a}, {b}, {c}; {a, b}, {c}; {a, b, c}
 *
 * Needs: calls that stand behind what they read.
 * Keeps: the graph as it is.
 *
 * What a change gives is found by looking at the whole graph with it: parts move to other devices
 * as sizes change, so that no part of the result can be kept.
 */
#include "placement_impl.h"

#include <math.h>

/* How long the graph takes with these parts on the devices that they are then put on. */
static double try_parts(cfxi_placer *p, const uint32_t *parts, size_t n, uint32_t *devices)
{
    cfxi_split_survey_parts(p, parts, n);
    if (!cfxi_split_map_parts(p, devices))
        return INFINITY;
    return cfxi_split_parts_latency(p, devices);
}

/* ---- joining parts ------------------------------------------------------------------------- */

typedef struct joiner {
    cfxi_placer *p;
    cfxi_placing *out;
    double *levels;
    unsigned char *linked;  /* which parts pass a value to or from the first of a pair */
    uint32_t *ends;         /* links of the parts: their ends, by part */
    uint32_t *starts;
} joiner;

/* The neighbours of each part. */
static void keep_links(joiner *j)
{
    const cfxi_placer *p = j->p;
    for (size_t i = 0; i <= p->n_parts + 1; i++)
        j->starts[i] = 0;
    for (size_t k = 0; k < p->n_links; k++) {
        j->starts[p->shared[k].from + 2]++;
        j->starts[p->shared[k].to + 2]++;
    }
    for (size_t i = 0; i < p->n_parts; i++)
        j->starts[i + 2] += j->starts[i + 1];
    for (size_t k = 0; k < p->n_links; k++) {
        j->ends[j->starts[p->shared[k].from + 1]++] = p->shared[k].to;
        j->ends[j->starts[p->shared[k].to + 1]++] = p->shared[k].from;
    }
}

static void mark_links(joiner *j, uint32_t part, unsigned char mark)
{
    for (uint32_t k = j->starts[part]; k < j->starts[part + 1]; k++)
        j->linked[j->ends[k]] = mark;
}

/* Of all pairs, the last one that makes the graph take least; false if it would take longer. */
static bool find_best_pair(joiner *j, double *least, uint32_t *a, uint32_t *b)
{
    bool found = false;
    const size_t n = j->out->n;
    cfxi_placer *p = j->p;
    for (uint32_t i = 0; i + 1 < n; i++) {
        mark_links(j, i, 1);
        for (uint32_t k = i + 1; k < n; k++) {
            if (!j->linked[k] && fabs(j->levels[i] - j->levels[k]) >= 2)
                continue;
            cfxi_split_join_parts(p, j->out->parts, n, i, k, p->trial);
            const double latency = try_parts(p, p->trial, n - 1, p->trial_devices);
            if (!isfinite(latency) || latency > *least)
                continue;
            *least = latency;
            *a = i;
            *b = k;
            found = true;
        }
        mark_links(j, i, 0);
    }
    return found;
}

static bool allocate(joiner *j)
{
    cfxi_placer *p = j->p;
    j->levels = cfxi_split_new_array(&p->arena, p->n, sizeof *j->levels);
    j->linked = cfxi_split_new_array(&p->arena, p->n, sizeof *j->linked);
    j->ends = cfxi_split_new_array(&p->arena, 2 * p->n_edges, sizeof *j->ends);
    j->starts = cfxi_split_new_array(&p->arena, p->n + 1, sizeof *j->starts);
    if (j->linked)
        memset(j->linked, 0, p->n);
    return j->levels && j->linked && j->ends && j->starts;
}

cfx_status cfxi_split_place_by_cost(cfxi_placer *p, cfxi_placing *out, cfx_error *err)
{
    joiner j = {.p = p, .out = out};
    uint32_t a = 0, b = 0;
    if (!allocate(&j))
        return cfxi_base_nomem(err);
    out->n = 0;
    for (size_t i = 0; i < p->n; i++) {
        out->devices[i] = CFX_NO_PART;
        out->parts[i] = p->kind[i] == CFXI_CALL ? (uint32_t)out->n++ : CFX_NO_PART;
    }
    cfxi_split_survey_parts(p, out->parts, out->n);
    double least = cfxi_split_parts_latency(p, out->devices);
    for (;;) {
        cfxi_split_survey_parts(p, out->parts, out->n);
        cfxi_split_part_levels(p);
        for (size_t i = 0; i < out->n; i++)
            j.levels[i] = p->far[i];
        keep_links(&j);
        if (!find_best_pair(&j, &least, &a, &b))
            break;
        cfxi_split_join_parts(p, out->parts, out->n, a, b, out->parts);
        out->n--;
    }
    cfxi_split_survey_parts(p, out->parts, out->n);
    cfxi_split_map_parts(p, out->devices);
    return CFX_OK;
}

/* ---- exchanging calls ---------------------------------------------------------------------- */

/* Tries calls `a` and `b` in each other's part, or `a` in that of `b` alone. */
static void try_exchange(cfxi_placer *p, cfxi_placing *out, uint32_t a, uint32_t b, bool move,
                         double *least, uint32_t *best, bool *moves)
{
    const uint32_t from = out->parts[a], to = out->parts[b];
    out->parts[a] = to;
    if (!move)
        out->parts[b] = from;
    const double latency = try_parts(p, out->parts, out->n, p->trial_devices);
    out->parts[a] = from;
    out->parts[b] = to;
    if (latency < *least) {
        *least = latency;
        *best = b;
        *moves = move;
    }
}

static bool improve(cfxi_placer *p, cfxi_placing *out, uint32_t a, double *least)
{
    uint32_t best = CFX_NO_PART;
    bool moves = false;
    for (uint32_t part = 0; part < out->n; part++) {
        uint32_t one = CFX_NO_PART;
        if (part == out->parts[a])
            continue;
        for (uint32_t b = 0; b < p->n; b++)
            if (p->kind[b] == CFXI_CALL && out->parts[b] == part) {
                try_exchange(p, out, a, b, false, least, &best, &moves);
                one = b;
            }
        if (one != CFX_NO_PART)
            try_exchange(p, out, a, one, true, least, &best, &moves);
    }
    if (best == CFX_NO_PART)
        return false;
    const uint32_t from = out->parts[a];
    out->parts[a] = out->parts[best];
    if (!moves)
        out->parts[best] = from;
    return true;
}

/* Parts that all calls have left. */
static void drop_empty(cfxi_placer *p, cfxi_placing *out)
{
    uint32_t n = 0;
    cfxi_split_survey_parts(p, out->parts, out->n);
    for (size_t i = 0; i < out->n; i++) {
        p->slot[i] = n;
        out->devices[n] = out->devices[i];
        n += p->starts[i] < p->starts[i + 1];
    }
    for (size_t i = 0; i < p->n; i++)
        if (out->parts[i] != CFX_NO_PART)
            out->parts[i] = p->slot[out->parts[i]];
    out->n = n;
}

cfx_status cfxi_split_place_by_exchange(cfxi_placer *p, cfxi_placing *out, cfx_error *err)
{
    bool changed = false;
    for (size_t i = 0; i < p->n; i++)
        if (p->kind[i] == CFXI_CALL && out->parts[i] >= out->n)
            return cfx_error_set(err, CFX_E_INDEX, "call %%%s is not in any of the %zu partitions",
                                 p->nodes[i]->name->data, out->n);
    cfxi_split_survey_parts(p, out->parts, out->n);
    double least = cfxi_split_parts_latency(p, out->devices);
    for (uint32_t i = 0; i < p->n; i++)
        if (p->kind[i] == CFXI_CALL)
            changed = improve(p, out, i, &least) || changed;
    if (changed)
        try_parts(p, out->parts, out->n, out->devices);
    drop_empty(p, out);
    return CFX_OK;
}
