/* import_loss.c - losses, dropout, and random numbers. */
#include "import_impl.h"

#include <cfx/embed/tensor.h>

/* ---- losses -------------------------------------------------------------------------------- */

/* The loss of log-probabilities [n, c, ...] and classes [n, ...]; all places are one dimension. */
static cfx_var likelihood_loss(cfxi_import_call *c, cfx_var x)
{
    cfx_scope *s = c->scope;
    const int rank = cfxi_import_need_rank(c, 0);
    const bool none = cfxi_import_is(c, "reduction", "mean", "none");
    const bool mean = cfxi_import_is(c, "reduction", "mean", "mean");
    const bool has_ignored = cfxi_import_attribute(c, "ignore_index") != NULL;
    cfx_var target = cfxi_import_in(c, 1);
    const cfx_var classes = cfx_to(s, target, cfx_var_dtype(CFX_DTYPE_INT64));
    cfx_var rows = classes;
    if (rank > 2) {
        x = cfx_flatten(s, x, .start_dim = cfx_v(2));
        x = cfx_flatten(s, cfx_transpose(s, x, 1, 2), .end_dim = cfx_v(1));
        rows = cfx_reshape(s, classes, cfx_ints(s, -1));
    }
    const int64_t ignored = has_ignored ? cfxi_import_int(c, "ignore_index", 0) : -100;
    const cfx_var loss = cfx_nll_loss(s, x, rows, .weight = cfxi_import_optional(c, 2),
                                      .reduction = cfx_v(none ? 0 : mean ? 1 : 2),
                                      .ignore_index = cfx_v(ignored));
    return none && rank > 2 ? cfx_reshape_as(s, loss, classes) : loss;
}

cfx_var cfxi_import_nll_loss(cfxi_import_call *c)
{
    return likelihood_loss(c, cfxi_import_in(c, 0));
}

cfx_var cfxi_import_softmax_loss(cfxi_import_call *c)
{
    const cfx_var x = cfx_log_softmax(c->scope, cfxi_import_in(c, 0), 1);
    cfxi_import_set(c, 1, x);
    return likelihood_loss(c, x);
}

/* ---- dropout ------------------------------------------------------------------------------- */

static cfx_var all_true(cfx_scope *s, cfx_var x)
{
    return cfx_ones_like(s, x, .dtype = cfx_var_dtype(CFX_DTYPE_BOOL));
}

/* Before opset 12 it does nothing here: models are read to be run. */
cfx_var cfxi_import_dropout_never(cfxi_import_call *c)
{
    const cfx_var x = cfxi_import_in(c, 0);
    if (cfxi_import_wants(c, 1))
        cfxi_import_set(c, 1, c->opset < 10 ? cfx_ones_like(c->scope, x) : all_true(c->scope, x));
    return x;
}

cfx_var cfxi_import_dropout(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_tensor *training = cfxi_import_known(c, 2);
    const bool never = !cfxi_import_has(c, 2) ||
                       (training && cfx_tensor_numel(training) == 1 &&
                        *(const char *)cfx_tensor_data(training) == 0);
    if (never)
        return cfxi_import_dropout_never(c);
    if (cfxi_import_later(c))
        return cfx_var_empty();
    const cfx_var p = cfxi_import_has(c, 1) ? cfxi_import_unknown(c, cfxi_import_number(c, 1))
                                            : cfx_v(0.5);
    const cfx_var train = training ? cfx_v(true) : cfxi_import_unknown(c, cfxi_import_number(c, 2));
    const cfx_var both = cfx_native_dropout(s, cfxi_import_in(c, 0), p, train);
    cfxi_import_set(c, 1, cfx_to(s, cfx_getitem(s, both, 1), cfx_var_dtype(CFX_DTYPE_BOOL)));
    return cfx_getitem(s, both, 0);
}

/* ---- random numbers ------------------------------------------------------------------------ */

/* The attribute `dtype`, or the type of input 0, or float32. */
static cfx_var dtype_of(cfxi_import_call *c)
{
    const int64_t number = cfxi_import_int(c, "dtype", 0);
    const cfx_dtype own = c->node->inputs.n > 0 ? cfxi_import_dtype(c, 0) : CFX_DTYPE_COUNT;
    const cfx_dtype dtype = number ? cfxi_onnx_dtype(number) : own;
    return cfx_var_dtype(dtype == CFX_DTYPE_COUNT ? CFX_DTYPE_FLOAT32 : dtype);
}

static cfx_var random_of(cfxi_import_call *c, bool normal, bool like)
{
    cfx_scope *s = c->scope;
    size_t n = 0;
    if (cfxi_import_later(c))
        return cfx_var_empty();
    const int64_t *shape = like ? NULL : cfxi_import_ints(c, "shape", &n);
    const cfx_var size = like ? cfx_size(s, cfxi_import_in(c, 0)) : cfx_var_ints(s, shape, n);
    const cfx_var dtype = dtype_of(c);
    const double a = cfxi_import_float(c, normal ? "mean" : "low", 0);
    const double b = cfxi_import_float(c, normal ? "scale" : "high", 1);
    cfx_var x = normal ? cfx_randn(s, size, .dtype = dtype) : cfx_rand(s, size, .dtype = dtype);
    if (normal ? b != 1 : b - a != 1)
        x = cfx_mul(s, x, normal ? b : b - a);
    return a != 0 ? cfx_add(s, x, a) : x;
}

cfx_var cfxi_import_random_normal(cfxi_import_call *c) { return random_of(c, true, false); }
cfx_var cfxi_import_random_uniform(cfxi_import_call *c) { return random_of(c, false, false); }
cfx_var cfxi_import_random_normal_like(cfxi_import_call *c) { return random_of(c, true, true); }
cfx_var cfxi_import_random_uniform_like(cfxi_import_call *c) { return random_of(c, false, true); }

cfx_var cfxi_import_bernoulli(cfxi_import_call *c)
{
    if (cfxi_import_later(c))
        return cfx_var_empty();
    return cfx_to(c->scope, cfx_bernoulli(c->scope, cfxi_import_in(c, 0)), dtype_of(c));
}

/* The input has the logarithms of the probabilities. */
cfx_var cfxi_import_multinomial(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int64_t to = cfxi_import_int(c, "dtype", 6);
    if (cfxi_import_later(c))
        return cfx_var_empty();
    const cfx_var p = cfx_softmax(s, cfxi_import_in(c, 0), 1);
    const cfx_var drawn = cfx_multinomial(s, p, cfxi_import_int(c, "sample_size", 1),
                                          .replacement = cfx_v(true));
    return cfx_to(s, drawn, cfx_var_dtype(to == 7 ? CFX_DTYPE_INT64 : CFX_DTYPE_INT32));
}
