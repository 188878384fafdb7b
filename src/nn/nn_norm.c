/* nn_norm.c - normalisation: weights of one, statistics to begin with. */
#include "nn_impl.h"

/* A weight and, if there is to be one, a bias. */
static void add_affine(cfxi_making *k, bool affine, const int64_t *sizes, size_t ndim)
{
    if (affine)
        cfxi_nn_parameter(k, "weight", sizes, ndim, cfxi_nn_init_fill(1));
    else
        cfxi_nn_no_parameter(k, "weight");
    if (affine && cfxi_nn_flag(k, "bias"))
        cfxi_nn_parameter(k, "bias", sizes, ndim, cfxi_nn_init_fill(0));
    else
        cfxi_nn_no_parameter(k, "bias");
}

/* Batch and instance normalisation. */
void cfxi_nn_make_norm(cfxi_making *k)
{
    const int64_t n = cfxi_nn_int(k, "num_features");
    cfxi_nn_at_least(k, "num_features", 0);
    add_affine(k, cfxi_nn_flag(k, "affine"), &n, 1);
    if (!cfxi_nn_flag(k, "track_running_stats")) {
        cfxi_nn_no_buffer(k, "running_mean");
        cfxi_nn_no_buffer(k, "running_var");
        cfxi_nn_no_buffer(k, "num_batches_tracked");
        return;
    }
    cfxi_nn_buffer(k, "running_mean", &n, 1, cfxi_nn_init_fill(0));
    cfxi_nn_buffer(k, "running_var", &n, 1, cfxi_nn_init_fill(1));
    k->dtype = CFX_DTYPE_INT64;
    cfxi_nn_buffer(k, "num_batches_tracked", NULL, 0, cfxi_nn_init_fill(0));
}

/* The sizes that are normalised, always a tuple. */
static size_t normalized_shape(cfxi_making *k, int64_t sizes[CFX_MAX_DIMS])
{
    size_t n = cfxi_nn_ints(k, "normalized_shape", sizes, CFX_MAX_DIMS);
    cfxi_nn_at_least(k, "normalized_shape", 0);
    if (cfx_scope_ok(k->at.scope))
        cfxi_nn_set(k, "normalized_shape", cfxi_nn_tuple(k, sizes, n));
    return n;
}

void cfxi_nn_make_layer_norm(cfxi_making *k)
{
    int64_t sizes[CFX_MAX_DIMS];
    const size_t n = normalized_shape(k, sizes);
    add_affine(k, cfxi_nn_flag(k, "elementwise_affine"), sizes, n);
}

void cfxi_nn_make_rms_norm(cfxi_making *k)
{
    int64_t sizes[CFX_MAX_DIMS];
    const size_t n = normalized_shape(k, sizes);
    if (cfxi_nn_flag(k, "elementwise_affine"))
        cfxi_nn_parameter(k, "weight", sizes, n, cfxi_nn_init_fill(1));
    else
        cfxi_nn_no_parameter(k, "weight");
}

void cfxi_nn_make_group_norm(cfxi_making *k)
{
    const int64_t n = cfxi_nn_int(k, "num_channels");
    const int64_t groups = cfxi_nn_int(k, "num_groups");
    cfxi_nn_at_least(k, "num_channels", 0);
    cfxi_nn_at_least(k, "num_groups", 1);
    if (cfx_scope_ok(k->at.scope) && n % groups != 0)
        cfxi_nn_fail(k, "num_channels %lld is not divisible by num_groups %lld", (long long)n,
                     (long long)groups);
    add_affine(k, cfxi_nn_flag(k, "affine"), &n, 1);
}
