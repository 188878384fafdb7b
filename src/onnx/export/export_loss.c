/* export_loss.c - losses, by what they are: a function of two tensors, and its mean or sum. */
#include "export_impl.h"

/* 0, 1, 2: nothing, mean, sum; or the word. */
static cfxi_ev *reduced(cfxi_export_call *c, cfxi_ev *x, size_t reduction)
{
    const char *word = cfxi_export_str(c, reduction);
    const int64_t how = word ? (strcmp(word, "mean") == 0 ? 1 : strcmp(word, "sum") == 0 ? 2 : 0)
                             : cfxi_export_int(c, reduction);
    if (how == 0)
        return x;
    return cfxi_export_reduce(c, how == 1 ? "ReduceMean" : "ReduceSum", x, NULL, 0, false);
}

static cfxi_ev *apart(cfxi_export_call *c) { return NODE("Sub", IN(0), IN(1)); }

cfxi_ev *cfxi_export_mse_loss(cfxi_export_call *c)
{
    cfxi_ev *d = apart(c);
    return reduced(c, NODE("Mul", d, d), 2);
}

cfxi_ev *cfxi_export_l1_loss(cfxi_export_call *c) { return reduced(c, NODE("Abs", apart(c)), 2); }

/* A parabola below the limit, a line above. */
static cfxi_ev *bent(cfxi_export_call *c, double limit, double slope)
{
    cfxi_ev *d = NODE("Abs", apart(c));
    cfxi_ev *low = NODE("Mul", NODE("Mul", d, d), LIKE(d, 0.5 * slope / limit));
    cfxi_ev *high = NODE("Mul", NODE("Sub", d, LIKE(d, 0.5 * limit)), LIKE(d, slope));
    return reduced(c, NODE("Where", NODE("Less", d, LIKE(d, limit)), low, high), 2);
}

cfxi_ev *cfxi_export_smooth_l1_loss(cfxi_export_call *c)
{
    const double beta = cfxi_export_float(c, 3);
    return beta == 0 ? cfxi_export_l1_loss(c) : bent(c, beta, 1);
}

cfxi_ev *cfxi_export_huber_loss(cfxi_export_call *c)
{
    return bent(c, cfxi_export_float(c, 3), cfxi_export_float(c, 3));
}

static cfxi_ev *weighted(cfxi_export_call *c, cfxi_ev *x, size_t weight)
{
    return cfxi_export_given(c, weight) ? NODE("Mul", x, IN(weight)) : x;
}

cfxi_ev *cfxi_export_bce(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    cfxi_ev *y = IN(1);
    cfxi_ev *one = LIKE(x, 1);
    cfxi_ev *least = LIKE(x, -100);
    cfxi_ev *yes = NODE("Mul", y, NODE("Max", NODE("Log", x), least));
    cfxi_ev *no = NODE("Max", NODE("Log", NODE("Sub", one, x)), least);
    cfxi_ev *all = NODE("Neg", NODE("Add", yes, NODE("Mul", NODE("Sub", one, y), no)));
    return reduced(c, weighted(c, all, 2), 3);
}

/* (1 - y) x + (1 + (p - 1) y) softplus(-x) */
cfxi_ev *cfxi_export_bce_logits(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    cfxi_ev *y = IN(1);
    cfxi_ev *one = LIKE(x, 1);
    cfxi_ev *soft = NODE("Softplus", NODE("Neg", x));
    if (cfxi_export_given(c, 3)) {
        cfxi_ev *p = NODE("Mul", NODE("Sub", IN(3), one), y);
        soft = NODE("Mul", NODE("Add", p, one), soft);
    }
    cfxi_ev *all = NODE("Add", NODE("Mul", NODE("Sub", one, y), x), soft);
    return reduced(c, weighted(c, all, 2), 4);
}

cfxi_ev *cfxi_export_kl_div(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    cfxi_ev *y = IN(1);
    cfxi_ev *all = NULL;
    if (cfxi_export_bool(c, 3)) {
        all = NODE("Mul", NODE("Exp", y), NODE("Sub", y, x));
    } else {
        cfxi_ev *own = NODE("Where", NODE("Equal", y, LIKE(y, 0)), LIKE(y, 0),
                            NODE("Mul", y, NODE("Log", y)));
        all = NODE("Sub", own, NODE("Mul", y, x));
    }
    if (!cfxi_export_is(c, 2, "batchmean"))
        return reduced(c, all, 2);
    cfxi_ev *sum = cfxi_export_reduce(c, "ReduceSum", all, NULL, 0, false);
    return NODE("Div", sum, CAST(SIZE(c->args[0], 0), cfxi_export_dtype(x)));
}

/* ---- classes ------------------------------------------------------------------------------- */

static cfxi_ev *nll_node(cfxi_export_call *c, const char *op, cfxi_ev *x, size_t reduction)
{
    static const char *const words[] = {"none", "mean", "sum"};
    const char *word = cfxi_export_str(c, reduction);
    if (c->args[0]->rank < 2)
        return cfxi_export_refuse(c, "the loss is written for batches; add a batch dimension");
    cfxi_ev *made = NODE(op, x, CAST(ARG(1), CFX_DTYPE_INT64), IN(2));
    SET_TEXT("reduction", word ? word : words[cfxi_export_int(c, reduction) % 3]);
    SET_INT("ignore_index", cfxi_export_int(c, reduction + 1));
    return made;
}

cfxi_ev *cfxi_export_nll_loss(cfxi_export_call *c)
{
    return nll_node(c, "NegativeLogLikelihoodLoss", IN(0), 3);
}

cfxi_ev *cfxi_export_cross_entropy(cfxi_export_call *c)
{
    if (cfxi_export_float(c, 5) != 0 || c->args[1]->rank == c->args[0]->rank)
        return cfxi_export_refuse(c, "cross_entropy with label smoothing or probabilities is not "
                                  "written; compute it from log_softmax");
    return nll_node(c, "SoftmaxCrossEntropyLoss", IN(0), 3);
}

cfxi_ev *cfxi_export_hinge_embedding_loss(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    cfxi_ev *y = IN(1);
    cfxi_ev *zero = LIKE(x, 0);
    cfxi_ev *far = NODE("Max", NODE("Sub", LIKE(x, cfxi_export_float(c, 2)), x), zero);
    cfxi_ev *a = NODE("Where", NODE("Equal", y, LIKE(x, 1)), zero, far);
    cfxi_ev *b = NODE("Where", NODE("Equal", y, LIKE(x, -1)), zero, x);
    return reduced(c, NODE("Add", a, b), 3);
}

cfxi_ev *cfxi_export_margin_ranking_loss(cfxi_export_call *c)
{
    cfxi_ev *d = NODE("Neg", NODE("Mul", IN(2), apart(c)));
    cfxi_ev *all = NODE("Max", NODE("Add", d, LIKE(d, cfxi_export_float(c, 3))), LIKE(d, 0));
    return reduced(c, all, 4);
}

cfxi_ev *cfxi_export_soft_margin_loss(cfxi_export_call *c)
{
    return reduced(c, NODE("Softplus", NODE("Neg", NODE("Mul", IN(1), IN(0)))), 2);
}

cfxi_ev *cfxi_export_poisson_nll_loss(cfxi_export_call *c)
{
    cfxi_ev *x = IN(0);
    cfxi_ev *y = IN(1);
    if (cfxi_export_bool(c, 3))
        return cfxi_export_refuse(c, "poisson_nll_loss with full=True is not written");
    cfxi_ev *log = NODE("Log", NODE("Add", x, LIKE(x, cfxi_export_float(c, 4))));
    cfxi_ev *all = cfxi_export_bool(c, 2) ? NODE("Sub", NODE("Exp", x), NODE("Mul", y, x))
                                          : NODE("Sub", x, NODE("Mul", y, log));
    return reduced(c, all, 5);
}
