/* place_size.c - parts of a graph by the memory of devices: in the order of the calls, and with the
 * calls that look up embeddings apart.
 *
 *     memory 30, 30; each call needs 10, and 10 for what it reads
 *     %a(%x) %b(%a) %c(%b)                     parts: {a, b}, {c}
 *
 * Needs: calls that stand behind what they read.
 * Keeps: the graph as it is.
 */
#include "placement_impl.h"

#include <math.h>

/* ---- filling one part ---------------------------------------------------------------------- */

typedef struct filling {
    cfxi_placer *p;
    cfxi_placing *out;
    uint32_t part;  /* that is being filled, or CFX_NO_PART */
    double used;
} filling;

static void begin(filling *f)
{
    f->part = (uint32_t)f->out->n++;
    f->used = 0;
}

/* What a call adds to the part; p->seen has the last part that each leaf is in. */
static double needed(const filling *f, uint32_t i, bool empty)
{
    const cfxi_placer *p = f->p;
    double need = p->what->totals[i];
    for (uint32_t k = p->first[i]; k < p->first[i + 1]; k++) {
        const uint32_t def = p->reads[k];
        const uint32_t in = p->kind[def] == CFXI_CALL ? f->out->parts[def] : p->seen[def];
        if (empty || in != f->part)
            need += p->what->outputs[def];
    }
    return need;
}

static void add(filling *f, uint32_t i)
{
    cfxi_placer *p = f->p;
    f->used += needed(f, i, false);
    f->out->parts[i] = f->part;
    for (uint32_t k = p->first[i]; k < p->first[i + 1]; k++)
        if (p->kind[p->reads[k]] == CFXI_LEAF)
            p->seen[p->reads[k]] = f->part;
}

static filling start(cfxi_placer *p, cfxi_placing *out)
{
    out->n = 0;
    for (size_t i = 0; i < p->n; i++)
        out->parts[i] = p->seen[i] = CFX_NO_PART;
    return (filling){p, out, CFX_NO_PART, 0};
}

static cfx_status too_large(const cfx_node *n, double need, const char *where, cfx_error *err)
{
    return cfx_error_set(err, CFX_E_GRAPH, "%s is too large to fit %s: it needs %.0f bytes "
                         "including its inputs", n->name->data, where, need);
}

/* ---- by size ------------------------------------------------------------------------------- */

static uint32_t unused_device(const cfxi_placer *p, const bool *used, double need)
{
    for (size_t d = 0; d < p->what->n_devices; d++)
        if (!used[d] && p->what->memory[d] >= need)
            return (uint32_t)d;
    return CFX_NO_PART;
}

static cfx_status fill_devices(cfxi_placer *p, cfxi_placing *out, bool *used, cfx_error *err)
{
    filling f = start(p, out);
    size_t unused = p->what->n_devices;
    bool single = false;
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->kind[i] != CFXI_CALL)
            continue;
        const bool fits = f.part != CFX_NO_PART && !single &&
            f.used + needed(&f, i, false) <= p->what->memory[out->devices[f.part]];
        if (!fits) {
            single = single || (f.part != CFX_NO_PART && unused == 0);
            const double need = needed(&f, i, true);
            const uint32_t device = single ? CFX_NO_PART : unused_device(p, used, need);
            if (!single && device == CFX_NO_PART)
                return too_large(p->nodes[i], need, "any device", err);
            begin(&f);
            out->devices[f.part] = device;
            if (!single) {
                used[device] = true;
                unused--;
            }
        }
        add(&f, i);
    }
    return CFX_OK;
}

/* Finds room for the parts of one call that are on no device. */
static cfx_status fit_rest(cfxi_placer *p, cfxi_placing *out, cfx_error *err)
{
    size_t n_placed = 0;
    for (size_t i = 0; i < out->n; i++)
        if (out->devices[i] != CFX_NO_PART)
            p->costs[n_placed++] = (cfx_link){(uint32_t)i, out->devices[i], 0};
    if (n_placed == out->n)
        return CFX_OK;
    cfxi_split_survey_parts(p, out->parts, out->n);
    const cfx_fit_options fit = {p->what->memory, p->what->n_devices, p->sizes, out->n,
                                 p->shared, p->n_links, p->costs, n_placed};
    if (!cfxi_split_fit_parts(&fit, p->trial_devices, &p->room))
        return cfx_error_set(err, CFX_E_GRAPH, "Cannot Get a Valid Partition to Logical Device "
                             "Mapping: no device has room for one of the %zu calls that are left "
                             "when all devices are used", out->n - n_placed);
    for (size_t i = n_placed; i < out->n; i++)
        out->devices[i] = p->trial_devices[i];
    return CFX_OK;
}

cfx_status cfxi_split_place_by_size(cfxi_placer *p, cfxi_placing *out, cfx_error *err)
{
    bool *used = cfxi_split_new_array(&p->arena, p->what->n_devices, sizeof *used);
    if (!used)
        return cfxi_base_nomem(err);
    for (size_t d = 0; d < p->what->n_devices; d++)
        used[d] = false;
    CFX_TRY(fill_devices(p, out, used, err));
    return fit_rest(p, out, err);
}

/* ---- embeddings apart ---------------------------------------------------------------------- */

static cfx_status fill_kinds(cfxi_placer *p, cfxi_placing *out, bool *kinds, cfx_error *err)
{
    filling f = start(p, out);
    const double memory = p->what->memory[0];
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->kind[i] != CFXI_CALL)
            continue;
        const bool kind = p->what->embedding[i];
        const bool same = f.part != CFX_NO_PART && kinds[f.part] == kind;
        if (!same || f.used + needed(&f, i, false) > memory) {
            const double need = needed(&f, i, true);
            if (need > memory)
                return too_large(p->nodes[i], need, "into a device", err);
            begin(&f);
            kinds[f.part] = kind;
        }
        add(&f, i);
    }
    return CFX_OK;
}

/* What parts `a` and `b` would need as one: p->weights has what each part shares with `a`, and
 * p->seen is `a` for the leaves of that. */
static double joint_size(const cfxi_placer *p, uint32_t a, uint32_t b)
{
    double size = p->sizes[a] + p->sizes[b] - p->weights[b];
    for (uint32_t l = p->leaves[b]; l < p->leaves[b + 1]; l++)
        if (p->seen[p->leaf[l]] == a)
            size -= p->what->totals[p->leaf[l]];
    return size;
}

static void prepare_joint_sizes(cfxi_placer *p, uint32_t a)
{
    for (size_t i = 0; i < p->n_parts; i++)
        p->weights[i] = 0;
    for (size_t k = 0; k < p->n_links; k++) {
        if (p->shared[k].from == a)
            p->weights[p->shared[k].to] += p->shared[k].weight;
        if (p->shared[k].to == a)
            p->weights[p->shared[k].from] += p->shared[k].weight;
    }
    for (size_t i = 0; i < p->n; i++)
        p->seen[i] = CFX_NO_PART;
    for (uint32_t l = p->leaves[a]; l < p->leaves[a + 1]; l++)
        p->seen[p->leaf[l]] = a;
}

/* The smallest part of a kind, and the largest that it can join; or CFX_NO_PART. */
static uint32_t find_pair(cfxi_placer *p, const bool *kinds, bool kind, uint32_t *smallest)
{
    uint32_t a = CFX_NO_PART, b = CFX_NO_PART;
    for (uint32_t i = 0; i < p->n_parts; i++)
        if (kinds[i] == kind && (a == CFX_NO_PART || p->sizes[i] < p->sizes[a]))
            a = i;
    *smallest = a;
    if (a == CFX_NO_PART || !cfxi_split_part_levels(p))
        return CFX_NO_PART;
    prepare_joint_sizes(p, a);
    for (uint32_t i = 0; i < p->n_parts; i++)
        if (i != a && kinds[i] == kind && fabs(p->far[i] - p->far[a]) < 2 &&
            (b == CFX_NO_PART || p->sizes[i] >= p->sizes[b]) &&
            joint_size(p, a, i) <= p->what->memory[0])
            b = i;
    return b;
}

static void join_kind(cfxi_placer *p, cfxi_placing *out, bool *kinds, bool kind)
{
    for (;;) {
        uint32_t a;
        cfxi_split_survey_parts(p, out->parts, out->n);
        const uint32_t b = find_pair(p, kinds, kind, &a);
        if (b == CFX_NO_PART)
            return;
        size_t kept = 0;
        cfxi_split_join_parts(p, out->parts, out->n, a, b, out->parts);
        for (uint32_t i = 0; i < out->n; i++)
            if (i != a && i != b)
                kinds[kept++] = kinds[i];
        kinds[kept++] = kind;
        out->n = kept;
    }
}

/* Each part of embeddings on a device of its own, which has room for all other parts. */
static cfx_status give_devices(const cfxi_placer *p, cfxi_placing *out, const bool *kinds,
                               cfx_error *err)
{
    uint32_t n = 0;
    double others = 0;
    for (size_t i = 0; i < out->n; i++) {
        out->devices[i] = kinds[i] ? n++ : CFX_NO_PART;
        others += kinds[i] ? 0 : p->sizes[i];
    }
    if (n == 0)
        return cfx_error_set(err, CFX_E_GRAPH, "no call in the graph looks up embeddings; place it "
                             "by size instead");
    if (n > p->what->n_devices)
        return cfx_error_set(err, CFX_E_GRAPH, "Need %u devices, but only %zu provided",
                             (unsigned)n, p->what->n_devices);
    for (size_t i = 0; i < out->n; i++)
        if (kinds[i] && p->sizes[i] + others > p->what->memory[0])
            return cfx_error_set(err, CFX_E_GRAPH, "partition_%zu(embedding partition) and non "
                                 "embedding partitions can not fit into one device: they need "
                                 "%.0f and %.0f bytes, it has %.0f", i, p->sizes[i], others,
                                 p->what->memory[0]);
    return CFX_OK;
}

cfx_status cfxi_split_place_embeddings(cfxi_placer *p, cfxi_placing *out, cfx_error *err)
{
    bool *kinds = cfxi_split_new_array(&p->arena, p->n, sizeof *kinds);
    if (!kinds)
        return cfxi_base_nomem(err);
    if (p->what->n_devices == 0)
        return cfx_error_set(err, CFX_E_VALUE, "no devices are given");
    CFX_TRY(fill_kinds(p, out, kinds, err));
    join_kind(p, out, kinds, false);
    join_kind(p, out, kinds, true);
    return give_devices(p, out, kinds, err);
}
