/* chain_known.c - activations that a chain has written out become one function:
 *
 *     x * 0.5 * (1 + erf(x / sqrt(2)))                             gelu
 *     0.5 * x * (1 + tanh(0.79788 * (x + 0.044715 * x * x * x)))   gelu_tanh
 *     x * sigmoid(x)                                               silu
 *
 * also with a power, in any order, and with numbers divided by or multiplied in parts. A product is
 * compared as a number and its factors. What comes before x, and after, stays.
 */
#include "chain.h"

#include <math.h>

enum { MOST_FACTORS = 4 };

static const double NUMBER_OF_TANH = 0.79788456080286535588;  /* sqrt(2 / pi) */
static const double NUMBER_OF_CUBE = 0.044715;

/* number * factors[0] * factors[1] ... */
typedef struct product {
    double number;
    cfxi_chain_arg factors[MOST_FACTORS];
    size_t n;
} product;

static bool is_same(const cfxi_chain_arg *a, const cfxi_chain_arg *b)
{
    return a->from == b->from && a->from != CFXI_FROM_NUMBER && a->index == b->index;
}

static const cfxi_chain_op *op_of(const cfxi_chain *c, const cfxi_chain_arg *arg)
{
    return arg->from == CFXI_FROM_OP ? &c->ops[arg->index] : NULL;
}

/* How often a function multiplies its argument with itself; or 0. */
static int power_of(const cfxi_chain_op *op)
{
    return op->fn == CFXI_FN_square ? 2 : op->fn == CFXI_FN_cube ? 3 : 0;
}

/* Multiplies *p by what `arg` is; false if it has too many factors. x is never taken apart. */
static bool multiply(const cfxi_chain *c, const cfxi_chain_arg *arg, const cfxi_chain_arg *x,
                     product *p)
{
    const cfxi_chain_op *op = is_same(arg, x) ? NULL : op_of(c, arg);
    if (arg->from == CFXI_FROM_NUMBER) {
        p->number *= (double)arg->number;
        return true;
    }
    if (op && op->fn == CFXI_FN_mul)
        return multiply(c, &op->args[0], x, p) && multiply(c, &op->args[1], x, p);
    if (op && op->fn == CFXI_FN_div && op->args[1].from == CFXI_FROM_NUMBER) {
        p->number /= (double)op->args[1].number;
        return multiply(c, &op->args[0], x, p);
    }
    for (int i = op ? power_of(op) : 0; i > 0; i--)
        if (!multiply(c, &op->args[0], x, p))
            return false;
    if (op && power_of(op))
        return true;
    if (p->n == MOST_FACTORS)
        return false;
    p->factors[p->n++] = *arg;
    return true;
}

static bool is_near(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(b); }

/* Whether `arg` is `number` times x, so many times, and, unless `other` is NULL, times one other
 * factor, which it gets. *p is where factors are. */
static bool is_product(const cfxi_chain *c, const cfxi_chain_arg *arg, const cfxi_chain_arg *x,
                       double number, size_t times, const cfxi_chain_arg **other, product *p)
{
    size_t found = 0;
    *p = (product){.number = 1};
    if (other)
        *other = NULL;
    if (!multiply(c, arg, x, p) || !is_near(p->number, number) || p->n != times + (other ? 1 : 0))
        return false;
    for (size_t i = 0; i < p->n; i++)
        if (is_same(&p->factors[i], x))
            found++;
        else if (other)
            *other = &p->factors[i];
    return found == times;
}

/* The other summand, if `arg` is a sum of `one` (a number, or x) and something. */
static const cfxi_chain_arg *beside(const cfxi_chain *c, const cfxi_chain_arg *arg,
                                    const cfxi_chain_arg *one)
{
    const cfxi_chain_op *op = op_of(c, arg);
    if (!op || op->fn != CFXI_FN_add)
        return NULL;
    for (size_t k = 0; k < 2; k++) {
        const cfxi_chain_arg *a = &op->args[k];
        if (one->from == CFXI_FROM_NUMBER
                ? a->from == CFXI_FROM_NUMBER && a->number == one->number : is_same(a, one))
            return &op->args[1 - k];
    }
    return NULL;
}

/* 0.79788 * (x + 0.044715 x^3), or 0.79788 * x * (1 + 0.044715 x^2) */
static bool is_inside_of_tanh(const cfxi_chain *c, const cfxi_chain_arg *arg,
                              const cfxi_chain_arg *x)
{
    static const cfxi_chain_arg one = {.from = CFXI_FROM_NUMBER, .number = 1};
    for (size_t outside = 0; outside < 2; outside++) {
        product p, cube;
        const cfxi_chain_arg *sum;
        if (!is_product(c, arg, x, NUMBER_OF_TANH, outside, &sum, &p) || !sum)
            continue;
        const cfxi_chain_arg *rest = beside(c, sum, outside ? &one : x);
        if (rest && is_product(c, rest, x, NUMBER_OF_CUBE, 3 - outside, NULL, &cube))
            return true;
    }
    return false;
}

/* What x times 0.5 and `factor` is; CFXI_FN_COUNT if it is nothing known. */
static cfxi_fn find_gelu(const cfxi_chain *c, const cfxi_chain_arg *factor,
                         const cfxi_chain_arg *x)
{
    static const cfxi_chain_arg one = {.from = CFXI_FROM_NUMBER, .number = 1};
    const cfxi_chain_arg *rest = beside(c, factor, &one);
    const cfxi_chain_op *op = rest ? op_of(c, rest) : NULL;
    product p;
    if (op && op->fn == CFXI_FN_erf && is_product(c, &op->args[0], x, sqrt(0.5), 1, NULL, &p))
        return CFXI_FN_gelu;
    if (op && op->fn == CFXI_FN_tanh && is_inside_of_tanh(c, &op->args[0], x))
        return CFXI_FN_gelu_tanh;
    return CFXI_FN_COUNT;
}

/* What function of x the result of number i is. */
static cfxi_fn find_function(const cfxi_chain *c, size_t i, const cfxi_chain_arg *x)
{
    const cfxi_chain_arg result = {.from = CFXI_FROM_OP, .index = i};
    const cfxi_chain_arg *factor;
    product p;
    if (is_product(c, &result, x, 0.5, 1, &factor, &p) && factor)
        return find_gelu(c, factor, x);
    if (!is_product(c, &result, x, 1, 1, &factor, &p) || !factor)
        return CFXI_FN_COUNT;
    const cfxi_chain_op *op = op_of(c, factor);
    return op && op->fn == CFXI_FN_sigmoid && is_same(&op->args[0], x) ? CFXI_FN_silu
                                                                        : CFXI_FN_COUNT;
}

/* Makes function i one of the inputs, or of what functions before it gave, if it is known. */
static void recognise(cfxi_chain *c, size_t i)
{
    for (size_t k = 0; k < c->num_inputs + i; k++) {
        const bool is_input = k < c->num_inputs;
        const cfxi_chain_arg x = {.from = is_input ? CFXI_FROM_INPUT : CFXI_FROM_OP,
                                  .index = is_input ? k : k - c->num_inputs};
        const cfxi_fn fn = find_function(c, i, &x);
        if (fn != CFXI_FN_COUNT) {
            c->ops[i] = (cfxi_chain_op){.fn = fn, .n = 1, .args = {x}};
            return;
        }
    }
}

/* Leaves out functions that nobody needs. */
static void drop_unused(cfxi_chain *c)
{
    bool used[CFXI_CHAIN_OPS] = {false};
    size_t number[CFXI_CHAIN_OPS];
    size_t n = 0;
    for (size_t i = c->num_ops; i-- > 0;) {
        used[i] = used[i] || i + 1 == c->num_ops;
        for (size_t a = 0; used[i] && a < c->ops[i].n; a++)
            if (c->ops[i].args[a].from == CFXI_FROM_OP)
                used[c->ops[i].args[a].index] = true;
    }
    for (size_t i = 0; i < c->num_ops; i++) {
        if (!used[i])
            continue;
        number[i] = n;
        c->ops[n] = c->ops[i];
        for (size_t a = 0; a < c->ops[n].n; a++)
            if (c->ops[n].args[a].from == CFXI_FROM_OP)
                c->ops[n].args[a].index = number[c->ops[n].args[a].index];
        n++;
    }
    c->num_ops = n;
}

void cfxi_backend_chain_recognise(cfxi_chain *c)
{
    for (size_t i = 0; i < c->num_ops; i++)
        if (c->ops[i].fn == CFXI_FN_mul || c->ops[i].fn == CFXI_FN_div)
            recognise(c, i);
    drop_unused(c);
}
