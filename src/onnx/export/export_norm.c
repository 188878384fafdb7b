/* export_norm.c - normalisation layers. */
#include "export_impl.h"

/* A vector of the size of dimension `dim` with the same number everywhere. */
static cfxi_ev *vector(cfxi_export_call *c, int64_t dim, double value)
{
    cfxi_ev *size = cfxi_export_one(c->x, SIZE(c->args[0], dim));
    return cfxi_export_filled(c, size, cfxi_export_result_dtype(c), value);
}

static cfxi_ev *given_or(cfxi_export_call *c, size_t i, int64_t dim, double value)
{
    return cfxi_export_given(c, i) ? IN(i) : vector(c, dim, value);
}

/* ---- batches ------------------------------------------------------------------------------- */

static cfxi_ev *batch_norm_of(cfxi_export_call *c, bool training, double eps)
{
    cfxi_ev *inputs[] = {IN(0), given_or(c, 1, 1, 1), given_or(c, 2, 1, 0), given_or(c, 3, 1, 0),
                         given_or(c, 4, 1, 1)};
    cfxi_ev *outputs[3];
    cfxi_export_nodes(c->x, "BatchNormalization", inputs, 5, outputs, training ? 3 : 1);
    SET_FLOAT("epsilon", eps);
    if (training)
        SET_INT("training_mode", 1);
    for (size_t i = 3; training && i < 5; i++)  /* they would change, and nobody may read them */
        c->args[i]->unmade = cfxi_export_given(c, i);
    return outputs[0];
}

/* In training statistics are those of the batch; what the module would keep is not a result. */
cfxi_ev *cfxi_export_batch_norm(cfxi_export_call *c)
{
    const bool training = cfxi_export_bool(c, 5) || !cfxi_export_given(c, 3);
    return batch_norm_of(c, training, cfxi_export_float(c, 7));
}

cfxi_ev *cfxi_export_native_batch_norm(cfxi_export_call *c)
{
    if (cfxi_export_bool(c, 5))
        return cfxi_export_refuse(c, "batch norm in training gives statistics, which ONNX has no "
                                  "results for; save the model after model.eval()");
    cfxi_ev *none = cfxi_export_filled(c, INTS(0), cfxi_export_result_dtype(c), 0);
    return cfxi_export_list(c->x, CFXI_EVS(batch_norm_of(c, false, cfxi_export_float(c, 7)), none,
                                           none), 3);
}

cfxi_ev *cfxi_export_instance_norm(cfxi_export_call *c)
{
    if (!cfxi_export_bool(c, 5))
        return batch_norm_of(c, false, cfxi_export_float(c, 7));
    cfxi_ev *made = NODE("InstanceNormalization", IN(0), given_or(c, 1, 1, 1),
                         given_or(c, 2, 1, 0));
    SET_FLOAT("epsilon", cfxi_export_float(c, 7));
    return made;
}

/* ---- rows ---------------------------------------------------------------------------------- */

static size_t normalized_dims(cfxi_export_call *c, cfxi_ev **shape)
{
    cfxi_ev **items;
    const size_t n = cfxi_export_items(c, 1, &items);
    *shape = cfxi_export_shape_of(c->x, items, n);
    return n;
}

static cfxi_ev *layer_norm_of(cfxi_export_call *c, double eps, cfxi_ev **outputs, size_t n)
{
    cfxi_ev *shape;
    const size_t dims = normalized_dims(c, &shape);
    cfxi_ev *weight = cfxi_export_given(c, 2)
                          ? IN(2) : cfxi_export_filled(c, shape, cfxi_export_result_dtype(c), 1);
    cfxi_ev *inputs[] = {IN(0), weight, IN(3)};
    cfxi_export_nodes(c->x, "LayerNormalization", inputs, 3, outputs, n);
    SET_INT("axis", -(int64_t)dims);
    SET_FLOAT("epsilon", eps);
    return outputs[0];
}

cfxi_ev *cfxi_export_layer_norm(cfxi_export_call *c)
{
    cfxi_ev *outputs[1];
    return layer_norm_of(c, cfxi_export_float(c, 4), outputs, 1);
}

cfxi_ev *cfxi_export_native_layer_norm(cfxi_export_call *c)
{
    cfxi_ev *outputs[3];
    layer_norm_of(c, cfxi_export_float(c, 4), outputs, 3);
    return cfxi_export_list(c->x, outputs, 3);
}

static double rms_eps(cfxi_export_call *c)
{
    if (cfxi_export_given(c, 3))
        return cfxi_export_float(c, 3);
    const cfx_dtype dtype = cfxi_export_dtype(c->args[0]);
    return dtype == CFX_DTYPE_FLOAT64 ? 2.220446049250313e-16
           : dtype == CFX_DTYPE_FLOAT16 ? 0.0009765625
           : dtype == CFX_DTYPE_BFLOAT16 ? 0.0078125 : 1.1920928955078125e-07;
}

cfxi_ev *cfxi_export_rms_norm(cfxi_export_call *c)
{
    cfxi_ev *shape;
    int64_t axes[CFX_MAX_DIMS];
    const size_t n = normalized_dims(c, &shape);
    cfxi_ev *x = IN(0);
    for (size_t i = 0; i < n; i++)
        axes[i] = (int64_t)i - (int64_t)n;
    cfxi_ev *mean = cfxi_export_reduce(c, "ReduceMean", NODE("Mul", x, x), axes, n, true);
    cfxi_ev *size = NODE("Sqrt", NODE("Add", mean, LIKE(x, rms_eps(c))));
    cfxi_ev *made = NODE("Div", x, size);
    return cfxi_export_given(c, 2) ? NODE("Mul", made, IN(2)) : made;
}

cfxi_ev *cfxi_export_rms_norm_23(cfxi_export_call *c)
{
    cfxi_ev *shape;
    const size_t n = normalized_dims(c, &shape);
    cfxi_ev *weight = cfxi_export_given(c, 2)
                          ? IN(2) : cfxi_export_filled(c, shape, cfxi_export_result_dtype(c), 1);
    cfxi_ev *made = NODE("RMSNormalization", IN(0), weight);
    SET_INT("axis", -(int64_t)n);
    SET_FLOAT("epsilon", rms_eps(c));
    return made;
}

/* ---- groups -------------------------------------------------------------------------------- */

/* (c) as (c, 1, 1), for an input (n, c, h, w). */
static cfxi_ev *per_channel(cfxi_export_call *c, cfxi_ev *v)
{
    int64_t sizes[CFX_MAX_DIMS] = {-1};
    const int rank = c->args[0]->rank;
    for (int i = 1; i < CFX_MAX_DIMS; i++)
        sizes[i] = 1;
    return rank > 2 ? cfxi_export_reshape(c, v, sizes, (size_t)rank - 1) : v;
}

/* Groups as the channels of instance norm. */
static cfxi_ev *group_norm_of(cfxi_export_call *c, int64_t groups, cfxi_ev *weight, cfxi_ev *bias,
                              double eps)
{
    const cfx_dtype dtype = cfxi_export_result_dtype(c);
    cfxi_ev *x = cfxi_export_reshape(c, IN(0), (const int64_t[]){0, groups, -1}, 3);
    x = NODE("InstanceNormalization", x, cfxi_export_filled(c, INTS(groups), dtype, 1),
             cfxi_export_filled(c, INTS(groups), dtype, 0));
    SET_FLOAT("epsilon", eps);
    x = NODE("Reshape", x, SHAPE(c->args[0]));
    if (weight)
        x = NODE("Mul", x, per_channel(c, weight));
    return bias ? NODE("Add", x, per_channel(c, bias)) : x;
}

cfxi_ev *cfxi_export_group_norm(cfxi_export_call *c)
{
    return group_norm_of(c, cfxi_export_int(c, 1), IN(2), IN(3), cfxi_export_float(c, 4));
}

cfxi_ev *cfxi_export_group_norm_21(cfxi_export_call *c)
{
    if (!cfxi_export_given(c, 2) || !cfxi_export_given(c, 3))
        return cfxi_export_group_norm(c);
    cfxi_ev *made = NODE("GroupNormalization", IN(0), IN(2), IN(3));
    SET_FLOAT("epsilon", cfxi_export_float(c, 4));
    SET_INT("num_groups", cfxi_export_int(c, 1));
    return made;
}

/* v * g / |v|, the norm over all dimensions but one. */
cfxi_ev *cfxi_export_weight_norm(cfxi_export_call *c)
{
    int64_t axes[CFX_MAX_DIMS];
    size_t n = 0;
    const int rank = c->args[0]->rank;
    const int64_t dim = cfxi_export_dim(c, 2, rank);
    for (int i = 0; i < rank; i++)
        if (i != dim)
            axes[n++] = i;
    cfxi_ev *v = IN(0);
    return NODE("Mul", v, NODE("Div", IN(1), cfxi_export_reduce(c, "ReduceL2", v, axes, n, true)));
}
