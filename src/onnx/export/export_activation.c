/* export_activation.c - activations: those of ONNX, and others by what they are. */
#include "export_impl.h"

#include <math.h>

cfxi_ev *cfxi_export_relu6(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    return NODE("Clip", x, LIKE(x, 0), LIKE(x, 6));
}

cfxi_ev *cfxi_export_hardtanh(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    return NODE("Clip", x, LIKE(x, cfxi_export_float(c, 1)), LIKE(x, cfxi_export_float(c, 2)));
}

cfxi_ev *cfxi_export_elu(cfxi_export_call *c)
{
    const double scale = cfxi_export_float(c, 2);
    const double inside = cfxi_export_float(c, 3);
    cfxi_ev *x = IN(0);
    cfxi_ev *made = NULL;
    if (inside == 1) {
        made = NODE("Elu", x);
        SET_FLOAT("alpha", cfxi_export_float(c, 1));
    } else {
        cfxi_ev *low = NODE("Sub", NODE("Exp", NODE("Mul", x, LIKE(x, inside))), LIKE(x, 1));
        low = NODE("Mul", low, LIKE(x, cfxi_export_float(c, 1)));
        made = NODE("Where", NODE("Greater", x, LIKE(x, 0)), x, low);
    }
    return scale == 1 ? made : NODE("Mul", made, LIKE(x, scale));
}

/* x * (1 + f) / 2 */
static cfxi_ev *half_of(cfxi_export_call *c, cfxi_ev *x, cfxi_ev *f)
{
    return NODE("Mul", NODE("Mul", x, LIKE(x, 0.5)), NODE("Add", f, LIKE(x, 1)));
}

cfxi_ev *cfxi_export_gelu(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    if (!cfxi_export_is(c, 1, "tanh"))
        return half_of(c, x, NODE("Erf", NODE("Mul", x, LIKE(x, CFXI_ROOT_HALF))));
    cfxi_ev *cube = NODE("Mul", NODE("Mul", x, x), x);
    cfxi_ev *inside = NODE("Add", x, NODE("Mul", cube, LIKE(x, 0.044715)));
    return half_of(c, x, NODE("Tanh", NODE("Mul", inside, LIKE(x, sqrt(2 / CFXI_PI)))));
}

cfxi_ev *cfxi_export_gelu_20(cfxi_export_call *c)
{
    cfxi_ev *made = NODE("Gelu", IN(0));
    SET_TEXT("approximate", cfxi_export_str(c, 1));
    return made;
}

cfxi_ev *cfxi_export_silu(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    return NODE("Mul", x, NODE("Sigmoid", x));
}

/* One slope for each channel, which is dimension 1. */
cfxi_ev *cfxi_export_prelu(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    cfxi_ev *w = IN(1);
    int64_t sizes[CFX_MAX_DIMS] = {-1};
    const int rank = c->args[0]->rank;
    for (int i = 1; i < CFX_MAX_DIMS; i++)
        sizes[i] = 1;
    if (cfxi_export_known_size(c->x, c->args[1], 0) != 1 && c->args[1]->rank == 1 && rank > 2)
        w = cfxi_export_reshape(c, w, sizes, (size_t)rank - 1);
    return NODE("PRelu", x, w);
}

cfxi_ev *cfxi_export_rrelu(cfxi_export_call *c)
{
    if (cfxi_export_bool(c, 3))
        return cfxi_export_refuse(c, "rrelu in training draws random slopes, which ONNX has no "
                                  "operator for; save the model after model.eval()");
    cfxi_ev *made = NODE("LeakyRelu", IN(0));
    SET_FLOAT("alpha", (cfxi_export_float(c, 1) + cfxi_export_float(c, 2)) / 2);
    return made;
}

cfxi_ev *cfxi_export_hardsigmoid(cfxi_export_call *c)
{
    cfxi_ev *made = NODE("HardSigmoid", IN(0));
    SET_FLOAT("alpha", 1.0 / 6);
    SET_FLOAT("beta", 0.5);
    return made;
}

static cfxi_ev *shrink(cfxi_export_call *c, bool moves)
{
    cfxi_ev *made = NODE("Shrink", IN(0));
    SET_FLOAT("lambd", cfxi_export_float(c, 1));
    SET_FLOAT("bias", moves ? cfxi_export_float(c, 1) : 0);
    return made;
}

cfxi_ev *cfxi_export_hardshrink(cfxi_export_call *c) { return shrink(c, false); }
cfxi_ev *cfxi_export_softshrink(cfxi_export_call *c) { return shrink(c, true); }

/* Above the threshold softplus is x but for less than float32 can show. */
cfxi_ev *cfxi_export_softplus(cfxi_export_call *c)
{
    const double beta = cfxi_export_float(c, 1);
    cfxi_ev *x = IN(0);
    cfxi_ev *soft = beta == 1 ? NODE("Softplus", x)
                              : NODE("Div", NODE("Softplus", NODE("Mul", x, LIKE(x, beta))),
                                     LIKE(x, beta));
    if (cfxi_export_float(c, 2) >= 15)
        return soft;
    cfxi_ev *limit = LIKE(x, cfxi_export_float(c, 2) / beta);
    return NODE("Where", NODE("Greater", x, limit), x, soft);
}

cfxi_ev *cfxi_export_threshold(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    return NODE("Where", NODE("Greater", x, LIKE(x, cfxi_export_float(c, 1))), x,
                LIKE(x, cfxi_export_float(c, 2)));
}

cfxi_ev *cfxi_export_log_sigmoid(cfxi_export_call *c)
{
    return NODE("Neg", NODE("Softplus", NODE("Neg", IN(0))));
}

cfxi_ev *cfxi_export_tanhshrink(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    return NODE("Sub", x, NODE("Tanh", x));
}

cfxi_ev *cfxi_export_glu(cfxi_export_call *c)
{
    const int64_t dim = cfxi_export_dim(c, 1, c->args[0]->rank);
    cfxi_ev *x = IN(0);
    cfxi_ev *half = NODE("Div", SIZE(c->args[0], dim), INT(2));
    cfxi_ev *a = cfxi_export_slice(c, x, dim, INT(0), half, 1);
    cfxi_ev *b = cfxi_export_slice(c, x, dim, half, NULL, 1);
    return NODE("Mul", a, NODE("Sigmoid", b));
}

/* A tensor without dimensions has one element, whose softmax is 1. */
static cfxi_ev *over_dim(cfxi_export_call *c, const char *op, cfxi_ev *x)
{
    const int rank = c->args[0]->rank;
    if (rank == 0)
        x = cfxi_export_unsqueeze(c, x, 0);
    cfxi_ev *made = NODE(op, x);
    SET_INT("axis", cfxi_export_dim(c, 1, rank));
    return rank == 0 ? cfxi_export_squeeze(c, made, 0) : made;
}

cfxi_ev *cfxi_export_softmax(cfxi_export_call *c) { return over_dim(c, "Softmax", IN(0)); }

/* A lane of minus infinity alone is NaN in Softmax, and zeros here. */
cfxi_ev *cfxi_export_safe_softmax(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    const int rank = c->args[0]->rank;
    const int64_t axis = cfxi_export_dim(c, 1, rank);
    cfxi_ev *most = rank == 0 ? x : cfxi_export_reduce(c, "ReduceMax", x, &axis, 1, true);
    cfxi_ev *hidden = NODE("Equal", most, LIKE(x, -INFINITY));
    return NODE("Where", hidden, LIKE(x, 0), over_dim(c, "Softmax", x));
}

cfxi_ev *cfxi_export_log_softmax(cfxi_export_call *c) { return over_dim(c, "LogSoftmax", IN(0)); }
cfxi_ev *cfxi_export_softmin(cfxi_export_call *c)
{
    return over_dim(c, "Softmax", NODE("Neg", IN(0)));
}

/* ---- dropout ------------------------------------------------------------------------------- */

cfxi_ev *cfxi_export_dropout(cfxi_export_call *c)
{
    const bool yes = true;
    cfxi_ev *x = ARG(0);
    if (!cfxi_export_bool(c, 2) || cfxi_export_float(c, 1) == 0)
        return x;
    cfxi_ev *p = cfxi_export_number(c->x, CFX_DTYPE_FLOAT32,
                                    cfx_datum_float(cfxi_export_float(c, 1)));
    return NODE("Dropout", x, p, cfxi_export_constant(c->x, CFX_DTYPE_BOOL, &yes, 1, 0));
}

cfxi_ev *cfxi_export_no_dropout(cfxi_export_call *c)
{
    if (!cfxi_export_bool(c, 2) || cfxi_export_float(c, 1) == 0)
        return ARG(0);
    return cfxi_export_refuse(c, "ONNX has no such dropout in training; save the model after "
                              "model.eval()");
}

cfxi_ev *cfxi_export_tanh_backward(cfxi_export_call *c)
{
    cfxi_ev *y = IN(1);
    return NODE("Mul", IN(0), NODE("Sub", LIKE(y, 1), NODE("Mul", y, y)));
}
