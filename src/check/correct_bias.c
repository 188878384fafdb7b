/* correct_bias.c - new biases for layers whose weights are integers.
 *
 *     before                                             after, if nothing else reads fc.bias
 *     %bias = get_attr[target=fc.bias]()                 the same, and fc.bias has new values
 *     %fc = call_function[target=...linear](%x, %w, %bias)
 *
 *     %fc = call_function[target=...linear](%x, %w)      %fc_bias = get_attr[target=fc.bias]()
 *                                                        %fc = call_function[...](%x, %w, %fc_bias)
 *
 * Needs: the modules. Keeps: names, order and locations of all nodes. Linear in nodes and edges,
 * and in the elements that are looked at.
 */
#include "comparison_impl.h"

#include "check_impl.h"

#include "analysis/analysis_impl.h"
#include "pass/fuse_bn_impl.h"
#include "quantize/observer_impl.h"

#include <cfx/correct.h>
#include <cfx/embed/tensor.h>

#include <math.h>

/* Of each channel. */
typedef struct channel {
    double expected;  /* the sum of this call's elements, in the float model */
    double over;      /* by how much the sums of all calls are above what was expected */
    double squares;   /* of the mean shift in each call, times its elements */
} channel;

typedef struct corrected {
    cfx_node *a, *b;
    size_t behind;      /* dimensions of the result behind the channels */
    channel *channels;  /* NULL: nothing was seen yet */
    int64_t n_channels;
    int64_t expected;   /* elements of each channel in this call; 0: none */
    int64_t seen;       /* likewise in all calls, */
    int64_t calls;      /* of which there were so many */
} corrected;

struct cfx_correction {
    const cfx_allocator *allocator;
    cfx_comparison *pairs;
    cfxi_vec layers;  /* of corrected */
};

/* ---- layers -------------------------------------------------------------------------------- */

static corrected *layer_at(const cfx_correction *c, size_t i)
{
    return (corrected *)c->layers.data + i;
}

/* The reader of the integers that a weight is made of; NULL if it is not made of integers that are
 * stored. */
static cfx_node *stored_weight(const cfx_node *layer)
{
    const cfx_value weight = cfx_node_operand(layer, "weight");
    cfx_node *from = weight.kind == CFX_KIND_NODE && cfxi_check_is_dequantize(weight.as.node)
                         ? cfx_node_input(weight.as.node, 0) : NULL;
    if (from && cfx_node_operator(from) == CFX_OPID_unpack_int4)
        from = cfx_node_input(from, 0);
    return from && from->op == CFX_OP_GET_ATTR ? from : NULL;
}

/* Whether the value of `a` is that of the layer, and not of an activation behind it. */
static bool is_measured_at(const cfxi_layer *pair)
{
    size_t size;
    cfx_operator op;
    if (pair->a == pair->head)
        return true;
    cfxi_check_callee(pair->a, &size, &op);
    return op == CFX_OPID_batch_norm;
}

/* A layer may have several counterparts: itself, and the observer behind it. The first will do. */
static cfx_status find_layers(cfx_correction *c, cfxi_pointers *found, cfx_error *err)
{
    const cfxi_layer *pairs = c->pairs->layers.data;
    for (size_t i = 0; i < c->pairs->layers.size; i++) {
        cfx_node *b = pairs[i].work;
        const fused_kind *kind = cfxi_pass_fuse_kind(cfx_node_operator(b));
        if (!kind || !stored_weight(b) || !is_measured_at(&pairs[i]) ||
            cfxi_base_pointers_get(found, b))
            continue;
        if (!cfxi_base_pointers_set(found, b, b, c->allocator) ||
            !cfxi_base_vec_reserve(&c->layers, 1, sizeof(corrected), c->allocator))
            return cfxi_base_nomem(err);
        *layer_at(c, c->layers.size++) = (corrected){.a = pairs[i].a, .b = b,
                                                     .behind = kind->dims};
    }
    return CFX_OK;
}

cfx_correction *cfx_correction_new(cfx_graph *model, cfx_graph *quantized,
                                   const cfx_allocator *allocator, cfx_error *err)
{
    allocator = cfxi_base_allocator(allocator);
    cfx_comparison *pairs = cfx_comparison_new(model, quantized, allocator, err);
    cfx_correction *c = pairs ? cfxi_base_alloc(allocator, sizeof *c) : NULL;
    if (!c) {
        if (pairs)
            cfxi_base_nomem(err);
        cfx_comparison_free(pairs);
        return NULL;
    }
    *c = (cfx_correction){.allocator = allocator, .pairs = pairs};
    cfxi_pointers found = {0};
    const cfx_status status = find_layers(c, &found, err);
    cfxi_base_pointers_free(&found, allocator);
    if (status == CFX_OK)
        return c;
    cfx_correction_free(c);
    return NULL;
}

void cfx_correction_free(cfx_correction *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->layers.size; i++) {
        const corrected *l = layer_at(c, i);
        if (l->channels)
            cfxi_base_free(c->allocator, l->channels, (size_t)l->n_channels * sizeof(channel));
    }
    cfxi_base_vec_free(&c->layers, sizeof(corrected), c->allocator);
    cfx_comparison_free(c->pairs);
    cfxi_base_free(c->allocator, c, sizeof *c);
}

bool cfx_correction_pair(const cfx_correction *c, size_t i, cfx_node **a, cfx_node **b)
{
    if (!c || i >= c->layers.size)
        return false;
    *a = layer_at(c, i)->a;
    *b = layer_at(c, i)->b;
    return true;
}

/* ---- means --------------------------------------------------------------------------------- */

static void add_elements(void *ctx, const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i];
    *(double *)ctx += sum;
}

/* The sum of the elements of a channel. */
static double sum_of(const cfx_tensor *x, size_t axis, int64_t channel_index)
{
    const cfxi_part part = cfxi_quantize_part_at(x, axis, channel_index);
    double sum = 0;
    cfxi_quantize_walk(&part, cfxi_rt_isa_of_machine(), add_elements, &sum);
    return sum;
}

/* The dimension of a result that its channels are; false if it has none, or no elements. */
static bool find_axis(const corrected *l, const cfx_tensor *x, size_t *axis)
{
    if (!x || !cfx_dtype_is_float(cfx_tensor_dtype(x)) || cfx_tensor_is_abstract(x) ||
        x->ndim < l->behind + 1 || cfx_tensor_numel(x) == 0)
        return false;
    *axis = x->ndim - 1 - l->behind;
    return true;
}

static cfx_status find_layer(const cfx_correction *c, size_t i, corrected **l, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(c, "correction", err));
    if (i >= c->layers.size)
        return cfx_error_set(err, CFX_E_INDEX, "there is no layer %zu; there are %zu", i,
                             c->layers.size);
    *l = layer_at(c, i);
    return CFX_OK;
}

/* Room for so many channels; *fits tells whether it had as many before. */
static cfx_status reserve_channels(const cfx_correction *c, corrected *l, int64_t n, bool *fits,
                                   cfx_error *err)
{
    size_t bytes;
    *fits = l->channels && l->n_channels == n;
    if (l->channels)
        return CFX_OK;
    if (!cfxi_base_mul_size((size_t)n, sizeof(channel), 0, &bytes) ||
        !(l->channels = cfxi_base_alloc(c->allocator, bytes)))
        return cfxi_base_nomem(err);
    memset(l->channels, 0, bytes);
    l->n_channels = n;
    *fits = true;
    return CFX_OK;
}

cfx_status cfx_correction_expect(cfx_correction *c, size_t i, const cfx_tensor *x, cfx_error *err)
{
    corrected *l = NULL;
    size_t axis;
    bool fits;
    double all = 0;
    CFX_TRY(find_layer(c, i, &l, err));
    l->expected = 0;
    if (!find_axis(l, x, &axis))
        return CFX_OK;
    CFX_TRY(cfxi_tensor_settle(x, err));
    CFX_TRY(reserve_channels(c, l, x->size[axis], &fits, err));
    for (int64_t k = 0; fits && k < l->n_channels; k++)
        all += l->channels[k].expected = sum_of(x, axis, k);
    if (fits && isfinite(all))
        l->expected = cfx_tensor_numel(x) / l->n_channels;
    return CFX_OK;
}

/* Fills in by how much the sums are above the expected ones; false if one is not finite. */
static bool measure(const corrected *l, const cfx_tensor *x, size_t axis, float *mean)
{
    double all = 0;
    for (int64_t k = 0; k < l->n_channels; k++) {
        const double over = sum_of(x, axis, k) - l->channels[k].expected;
        mean[k] = (float)(over / (double)l->expected);
        all += over;
    }
    return isfinite(all);
}

cfx_status cfx_correction_meet(cfx_correction *c, size_t i, const cfx_tensor *x, cfx_tensor **shift,
                               cfx_error *err)
{
    corrected *l = NULL;
    size_t axis;
    int64_t sizes[CFX_MAX_DIMS];
    *shift = NULL;
    CFX_TRY(find_layer(c, i, &l, err));
    if (l->expected == 0 || !find_axis(l, x, &axis) || x->size[axis] != l->n_channels ||
        cfx_tensor_numel(x) / l->n_channels != l->expected)
        return CFX_OK;
    CFX_TRY(cfxi_tensor_settle(x, err));
    sizes[0] = l->n_channels;
    for (size_t d = 1; d <= l->behind; d++)
        sizes[d] = 1;
    cfx_tensor *means = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, l->behind + 1, c->allocator, err);
    if (!means)
        return cfxi_base_failed(err, CFX_E_NOMEM);
    float *mean = cfx_tensor_data(means);
    if (measure(l, x, axis, mean)) {
        for (int64_t k = 0; k < l->n_channels; k++) {
            const double over = (double)mean[k] * (double)l->expected;
            l->channels[k].over += over;
            l->channels[k].squares += over * (double)mean[k];
        }
        l->seen += l->expected;
        l->calls++;
        *shift = means;
    } else {
        cfx_tensor_release(means);
    }
    l->expected = 0;
    return CFX_OK;
}

/* ---- who reads a bias ---------------------------------------------------------------------- */

/* How many arguments are what is at a path, whatever other paths lead there; and calls of it, if it
 * is a module. */
typedef struct readers {
    const cfx_module_tree *modules;
    const cfx_allocator *allocator;
    cfxi_hash_map counts;  /* identity -> size_t */
} readers;

static cfx_status count_reader(readers *r, const char *path, size_t n, cfx_error *err)
{
    const void *id = r->modules->identity(r->modules->ctx, path);
    size_t *count = id ? cfxi_base_map_add(&r->counts, id, sizeof(size_t), r->allocator) : NULL;
    if (id && !count)
        return cfxi_base_nomem(err);
    if (count)
        *count += n;
    return CFX_OK;
}

/* A module that is called as a whole reads all that is in it; of that, biases are asked about. */
static cfx_status count_readers(cfx_graph *g, void *ctx, cfx_error *err)
{
    readers *r = ctx;
    char path[FUSE_MAX_PATH];
    const cfx_node *n = cfx_graph_first(g);
    for (; n; n = cfx_node_next(n)) {
        const char *target = cfx_node_target(n, NULL, NULL);
        if (n->op == CFX_OP_GET_ATTR)
            for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
                CFX_TRY(count_reader(r, target, use->count, err));
        if (n->op == CFX_OP_CALL_MODULE)
            CFX_TRY(count_reader(r, target, 1, err));
        if (n->op == CFX_OP_CALL_MODULE &&
            snprintf(path, sizeof path, "%s.bias", target) < (int)sizeof path)
            CFX_TRY(count_reader(r, path, 1, err));
    }
    return cfxi_analysis_each_region(g, count_readers, r, err);
}

static size_t readers_of(const readers *r, const char *path)
{
    const void *id = r->modules->identity(r->modules->ctx, path);
    const size_t *count = id ? cfxi_base_map_find(&r->counts, id, sizeof(size_t)) : NULL;
    return count ? *count : 0;
}

/* ---- new biases ---------------------------------------------------------------------------- */

/* So many times the variance that chance gives to a mean, its square has to be: with less, models
 * of few calls and random inputs lost by it. */
#define CERTAIN 6.0

/* The mean shift of all calls, less what of it may be chance: a shift that is another one in each
 * call only disturbs other data. Of a single call nothing is known; it counts in full. */
static double lasting_shift(const corrected *l, const channel *k)
{
    const double mean = k->over / (double)l->seen;
    const double spread = fmax(k->squares / (double)l->seen - mean * mean, 0);
    const double chance = l->calls > 1 ? CERTAIN * spread / (double)(l->calls - 1) : 0;
    return chance < mean * mean ? mean * (1 - chance / (mean * mean)) : 0;
}

/* The shifts of all channels, as a tensor of the host's. */
static cfx_value shift_of(fuse_job *job, const corrected *l)
{
    cfxi_vec means = {0};
    cfx_value list = cfx_value_invalid();
    if (cfxi_base_vec_reserve(&means, (size_t)l->n_channels, sizeof(cfx_value),
                              job->g->allocator)) {
        for (int64_t k = 0; k < l->n_channels; k++)
            ((cfx_value *)means.data)[means.size++] =
                cfx_value_float(lasting_shift(l, &l->channels[k]));
        list = cfx_value_list(job->g, means.data, means.size, job->err);
    }
    cfxi_base_vec_free(&means, sizeof(cfx_value), job->g->allocator);
    if (list.kind == CFX_KIND_INVALID) {
        job->status = cfxi_base_nomem(job->err);
        return list;
    }
    const cfx_value args[] = {cfxi_pass_fuse_hold(job, list),
                              cfx_value_dtype(CFX_DTYPE_FLOAT32)};
    return cfxi_pass_fuse_compute(job, CFX_OPID_tensor, args, 2);
}

static cfx_value look(fuse_job *job, const char *path)
{
    const cfx_value v = job->modules->get(job->modules->ctx, job->g, path, job->err);
    if (v.kind == CFX_KIND_INVALID) {
        job->status = cfxi_base_failed(job->err, CFX_E_KEY);
        return v;
    }
    return cfxi_pass_fuse_hold(job, v);
}

/* Zeros, where the weight is. */
static cfx_value no_bias(fuse_job *job, const corrected *l, const char *weight)
{
    const cfx_value from = look(job, weight);
    const cfx_value n = cfx_value_int(l->n_channels);
    const cfx_value size = cfx_value_list(job->g, &n, 1, job->err);
    const cfx_value args[] = {from, cfxi_pass_fuse_hold(job, size),
                              cfx_value_dtype(CFX_DTYPE_FLOAT32)};
    return cfxi_pass_fuse_compute(job, CFX_OPID_new_zeros, args, 3);
}

/* `old` less the shifts, in the type and at the place of `old`. */
static cfx_value less_shift(fuse_job *job, const corrected *l, cfx_value old)
{
    const cfx_value shift[] = {shift_of(job, l), old};
    const cfx_value args[] = {old, cfxi_pass_fuse_compute(job, CFX_OPID_type_as, shift, 2)};
    return cfxi_pass_fuse_compute(job, CFX_OPID_sub, args, 2);
}

static bool is_none(fuse_job *job, const char *path)
{
    const cfx_value v = job->modules->get(job->modules->ctx, job->g, path, NULL);
    const bool is = v.kind == CFX_KIND_NONE;
    cfx_value_discard(job->g, v);
    return is;
}

/* "fc.bias" of "fc.weight_int8", where there is None or nothing; else a path near that. */
static cfx_node *add_bias(fuse_job *job, const readers *r, const corrected *l, const char *weight,
                          cfx_value v)
{
    char path[FUSE_MAX_PATH];
    const char *dot = strrchr(weight, '.');
    const int parent = dot ? (int)(dot - weight) : 0;
    if (snprintf(path, sizeof path, "%.*s", parent, weight) >= (int)sizeof path - 8) {
        cfx_error_set(job->err, CFX_E_LIMIT, "the path '%.100s' is too long", weight);
        return NULL;
    }
    const bool is_called = readers_of(r, path) > 0;
    strcat(path, dot ? ".bias" : "bias");
    if (is_called || !is_none(job, path))
        return cfxi_pass_fuse_reader(job, l->b, path, "", v);
    return job->modules->set(job->modules->ctx, job->g, path, v, job->err) == CFX_OK
               ? cfxi_analysis_add_reader(l->b, path, job->err) : NULL;
}

static cfx_status correct(fuse_job *job, const readers *r, const corrected *l)
{
    const cfx_value bias = cfx_node_operand(l->b, "bias");
    const char *weight = cfx_node_target(stored_weight(l->b), NULL, NULL);
    cfx_node *reader = bias.kind == CFX_KIND_NODE ? bias.as.node : NULL;
    const bool none = bias.kind == CFX_KIND_NONE || bias.kind == CFX_KIND_INVALID;
    if (!none && (!reader || reader->op != CFX_OP_GET_ATTR))
        return CFX_OK;  /* computed */
    const char *path = reader ? cfx_node_target(reader, NULL, NULL) : NULL;
    const cfx_value new = less_shift(job, l, path ? look(job, path) : no_bias(job, l, weight));
    if (job->status != CFX_OK)
        return job->status;
    job->changed = true;
    if (path && readers_of(r, path) == 1)
        return job->modules->set(job->modules->ctx, job->g, path, new, job->err);
    cfx_node *made = path ? cfxi_pass_fuse_reader(job, l->b, path, "_corrected", new)
                          : add_bias(job, r, l, weight, new);
    CFX_TRY(made ? cfxi_pass_fuse_give(job, l->b, true, made)
                 : cfxi_base_failed(job->err, CFX_E_NOMEM));
    return reader && reader->n_users == 0 ? cfx_graph_erase(job->g, reader, job->err) : CFX_OK;
}

static cfx_status correct_all(const cfx_correction *c, fuse_job *job)
{
    readers r = {.modules = job->modules, .allocator = c->allocator};
    cfx_status status = count_readers(job->g, &r, job->err);
    for (size_t i = 0; status == CFX_OK && i < c->layers.size; i++) {
        if (layer_at(c, i)->seen > 0)
            status = correct(job, &r, layer_at(c, i));
        cfxi_pass_fuse_let_go(job, 0);
    }
    cfxi_base_vec_free(&job->held, sizeof(cfx_value), job->g->allocator);
    cfxi_base_map_free(&r.counts, sizeof(size_t), c->allocator);
    return status;
}

static bool met_any(const cfx_correction *c)
{
    for (size_t i = 0; i < c->layers.size; i++)
        if (layer_at(c, i)->seen > 0)
            return true;
    return false;
}

cfx_status cfx_correction_finish(cfx_correction *c, const cfx_module_tree *modules, bool *changed,
                                 cfx_error *err)
{
    cfx_error own;
    CFX_TRY(cfxi_base_expect(c, "correction", err));
    CFX_TRY(cfxi_base_expect(modules, "modules", err));
    err = cfxi_base_error_or(err, &own);
    if (!met_any(c))
        return cfx_error_set(err, CFX_E_VALUE, "no bias can be corrected: %s",
                             c->layers.size > 0 ? "no layer was run, or its values were not finite"
                                                : "no layer has weights that are integers");
    fuse_job job = {.g = c->pairs->b, .modules = modules, .err = err};
    const cfx_status status = correct_all(c, &job);
    if (changed)
        *changed = job.changed;
    return status;
}
