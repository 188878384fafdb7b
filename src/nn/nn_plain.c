/* nn_plain.c - modules that are no more than their arguments, but for a check or an attribute. */
#include "nn_impl.h"

void cfxi_nn_make_nothing(cfxi_making *k) { (void)k; }

/* ---- pooling ------------------------------------------------------------------------------- */

/* A stride that is not given is the kernel's size. */
void cfxi_nn_make_pool(cfxi_making *k)
{
    cfxi_nn_at_least(k, "kernel_size", 1);
    cfxi_nn_at_least(k, "stride", 1);
    cfxi_nn_at_least(k, "padding", 0);
    cfxi_nn_at_least(k, "dilation", 1);
    if (cfxi_nn_is_none(k, "stride"))
        cfxi_nn_set(k, "stride", cfx_datum_retain(cfxi_nn_arg(k, "kernel_size")));
}

void cfxi_nn_make_fractional_pool(cfxi_making *k)
{
    size_t n;
    const cfx_datum *ratio = cfx_datum_items(cfxi_nn_arg(k, "output_ratio"), &n);
    const bool size = !cfxi_nn_is_none(k, "output_size");
    cfxi_nn_at_least(k, "kernel_size", 1);
    if (!ratio && !size)
        cfxi_nn_fail(k, "output_size or output_ratio is required");
    if (ratio && size)
        cfxi_nn_fail(k, "give output_size or output_ratio, not both");
    for (size_t i = 0; i < n; i++)
        if (!(ratio[i].as.f > 0 && ratio[i].as.f < 1))
            cfxi_nn_fail(k, "output_ratio must be between 0 and 1, not %g", ratio[i].as.f);
}

/* ---- dropout and activations --------------------------------------------------------------- */

void cfxi_nn_make_dropout(cfxi_making *k) { cfxi_nn_probability(k, "p"); }

void cfxi_nn_make_relu6(cfxi_making *k)
{
    cfxi_nn_set(k, "min_val", cfx_datum_float(0));
    cfxi_nn_set(k, "max_val", cfx_datum_float(6));
}

/* min_value and max_value are the old names of min_val and max_val. */
void cfxi_nn_make_hardtanh(cfxi_making *k)
{
    const char *const low = cfxi_nn_is_none(k, "min_value") ? "min_val" : "min_value";
    const char *const high = cfxi_nn_is_none(k, "max_value") ? "max_val" : "max_value";
    cfxi_nn_set(k, "min_val", cfxi_nn_arg(k, low));
    cfxi_nn_set(k, "max_val", cfxi_nn_arg(k, high));
    if (!(cfxi_nn_float(k, high) > cfxi_nn_float(k, low)))
        cfxi_nn_fail(k, "max_val must be greater than min_val");
}

void cfxi_nn_make_prelu(cfxi_making *k)
{
    const int64_t n = cfxi_nn_int(k, "num_parameters");
    cfxi_nn_at_least(k, "num_parameters", 0);
    cfxi_nn_parameter(k, "weight", &n, 1, cfxi_nn_init_fill(cfxi_nn_float(k, "init")));
}

/* ---- shapes -------------------------------------------------------------------------------- */

void cfxi_nn_make_zero_pad(cfxi_making *k) { cfxi_nn_set(k, "value", cfx_datum_float(0)); }

void cfxi_nn_make_upsample(cfxi_making *k)
{
    const bool bilinear = k->nn == CFX_NN_UpsamplingBilinear2d;
    cfxi_nn_set_text(k, "name", cfxi_ops_nn_name(k->nn));
    if (k->nn == CFX_NN_Upsample)
        return;
    cfxi_nn_set_text(k, "mode", bilinear ? "bilinear" : "nearest");
    cfxi_nn_set(k, "align_corners", bilinear ? cfx_datum_bool(true) : cfx_datum_none());
    cfxi_nn_set(k, "recompute_scale_factor", cfx_datum_none());
}

/* ---- losses -------------------------------------------------------------------------------- */

/* What size_average and reduce, before there was `reduction`, say together. */
void cfxi_nn_make_loss(cfxi_making *k)
{
    static const char *const words[] = {"none", "mean", "sum", NULL};
    static const char *const of_kl_div[] = {"none", "mean", "sum", "batchmean", NULL};
    const cfx_datum average = cfxi_nn_arg(k, "size_average");
    const cfx_datum reduce = cfxi_nn_arg(k, "reduce");
    if (average.kind != CFX_DATUM_BOOL && reduce.kind != CFX_DATUM_BOOL) {
        cfxi_nn_one_of(k, "reduction", k->nn == CFX_NN_KLDivLoss ? of_kl_div : words);
        return;
    }
    if (reduce.kind == CFX_DATUM_BOOL && !reduce.as.b)
        cfxi_nn_set_text(k, "reduction", "none");
    else
        cfxi_nn_set_text(k, "reduction", average.kind == CFX_DATUM_BOOL && !average.as.b ? "sum"
                                                                                         : "mean");
}
