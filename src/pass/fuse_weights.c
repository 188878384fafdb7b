/* fuse_weights.c - the weights of a layer and a batch-norm in one.
 *
 *     factor = gamma / sqrt(var + eps)          for each channel
 *     weight = weight * factor
 *     bias   = (bias - mean) * factor + beta
 *
 * Computed by the host's operators, in the element types that they promote to; the results have the
 * element types that the layer had, as in torch.nn.utils.fusion.
 */
#include "fuse_bn_impl.h"

cfx_value cfxi_pass_fuse_compute(fuse_job *job, cfx_operator op, const cfx_value *args, size_t n)
{
    cfx_error why = {.status = CFX_OK};
    if (job->status != CFX_OK)
        return cfx_value_invalid();
    cfx_value v = job->modules->call(job->modules->ctx, job->g, op, args, n, &why);
    if (v.kind != CFX_KIND_INVALID)
        return cfxi_pass_fuse_hold(job, v);
    *job->err = why;
    job->status = why.status;
    return v;
}

/* An operator of one value or two. */
static cfx_value compute(fuse_job *job, cfx_operator op, cfx_value a, cfx_value b)
{
    const cfx_value args[] = {a, b};
    return cfxi_pass_fuse_compute(job, op, args, b.kind == CFX_KIND_INVALID ? 1 : 2);
}

cfx_value cfxi_pass_fuse_reshape(fuse_job *job, cfx_value t, const int64_t *shape, size_t rank)
{
    cfx_value sizes[FUSE_MAX_RANK];
    if (job->status != CFX_OK)
        return cfx_value_invalid();
    for (size_t i = 0; i < rank; i++)
        sizes[i] = cfx_value_int(shape[i]);
    cfx_value tuple = cfx_value_tuple(job->g, sizes, rank, job->err);
    if (tuple.kind == CFX_KIND_INVALID) {
        job->status = CFX_E_NOMEM;
        return tuple;
    }
    return compute(job, CFX_OPID_reshape, t, cfxi_pass_fuse_hold(job, tuple));
}

/* The weight of a convolution has its channels first; that of a transposed one second, and there
 * they are counted in each group. */
static cfx_value scale_weight(fuse_job *job, const fused_layer *layer, cfx_value factor)
{
    const int64_t *old = layer->weight.shape;
    const size_t rank = layer->weight.rank;
    int64_t shape[FUSE_MAX_RANK] = {old[0], 1, 1, 1, 1, 1};
    int64_t apart[FUSE_MAX_RANK] = {layer->groups, old[0] / layer->groups};
    if (!layer->transposed)
        return compute(job, CFX_OPID_mul, layer->weight.value,
                       cfxi_pass_fuse_reshape(job, factor, shape, rank));
    for (size_t i = 1; i < rank; i++)
        apart[i + 1] = old[i];
    shape[0] = layer->groups;
    shape[2] = old[1];
    cfx_value weight = cfxi_pass_fuse_reshape(job, layer->weight.value, apart, rank + 1);
    weight = compute(job, CFX_OPID_mul, weight,
                     cfxi_pass_fuse_reshape(job, factor, shape, rank + 1));
    return cfxi_pass_fuse_reshape(job, weight, old, rank);
}

/* Multiplied one after the other, as torch does: with mixed element types that is more exact. */
static cfx_value shift_bias(fuse_job *job, const fused_layer *layer, const fused_norm *norm,
                            cfx_value inverse)
{
    cfx_value bias = layer->bias.value.kind == CFX_KIND_NONE
                         ? compute(job, CFX_OPID_neg, norm->mean.value, cfx_value_invalid())
                         : compute(job, CFX_OPID_sub, layer->bias.value, norm->mean.value);
    bias = compute(job, CFX_OPID_mul, bias, inverse);
    if (norm->weight.value.kind != CFX_KIND_NONE)
        bias = compute(job, CFX_OPID_mul, bias, norm->weight.value);
    return norm->bias.value.kind == CFX_KIND_NONE
               ? bias : compute(job, CFX_OPID_add, bias, norm->bias.value);
}

static bool differs(const fused_tensor *t, cfx_dtype dtype)
{
    return t->value.kind != CFX_KIND_NONE && t->dtype != dtype;
}

bool cfxi_pass_fuse_weights(fuse_job *job, const fused_layer *layer, const fused_norm *norm,
                            fused_weights *out)
{
    const cfx_dtype dtype = layer->weight.dtype;
    const bool has_bias = layer->bias.value.kind != CFX_KIND_NONE;
    const bool mixed = differs(&norm->mean, dtype) || differs(&norm->var, dtype) ||
                       differs(&norm->weight, dtype) || differs(&norm->bias, dtype) ||
                       differs(&layer->bias, dtype);
    cfx_value factor = compute(job, CFX_OPID_add, norm->var.value, cfx_value_float(norm->eps));
    cfx_value inverse = compute(job, CFX_OPID_rsqrt, factor, cfx_value_invalid());
    factor = inverse;
    if (norm->weight.value.kind != CFX_KIND_NONE)
        factor = compute(job, CFX_OPID_mul, norm->weight.value, factor);
    out->weight = scale_weight(job, layer, factor);
    out->bias = shift_bias(job, layer, norm, inverse);
    if (mixed) {
        out->weight = compute(job, CFX_OPID_to, out->weight, cfx_value_dtype(dtype));
        out->bias = compute(job, CFX_OPID_to, out->bias,
                            cfx_value_dtype(has_bias ? layer->bias.dtype : dtype));
    }
    return job->status == CFX_OK;
}
