/* vector_functions.c - functions of float against double precision, over their whole range and on
 * each instruction set: relative errors, signs of zero, infinity and NaN. */
#include "row_agreement.h"

typedef struct function {
    cfx_operator op;
    double (*want)(double x);
    double low, high;
    double within;  /* relative */
} function;

static double gelu(double x) { return x * 0.5 * erfc(-x / sqrt(2.0)); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double silu(double x) { return x / (1 + exp(-x)); }
static double hardswish(double x) { return x * fmin(fmax(x + 3, 0), 6) / 6; }

static const function functions[] = {
    {CFX_OPID_gelu, gelu, -3.5, 12, 1e-6},     {CFX_OPID_exp, exp, -80, 88, 2e-7},
    {CFX_OPID_tanh, tanh, -12, 12, 3e-7},      {CFX_OPID_erf, erf, -5, 5, 3e-7},
    {CFX_OPID_sigmoid, sigmoid, -80, 20, 3e-7}, {CFX_OPID_silu, silu, -80, 20, 3e-7},
    {CFX_OPID_hardswish, hardswish, -2.9, 9, 5e-6},
};

enum { COUNT = 10007 };

static void check(const function *f, cfx_runtime *rt)
{
    const int64_t n = COUNT;
    cfx_datum x = random_floats(&n, 1, (lie){0});
    float *at = (float *)x.as.tensor->data;
    for (int64_t i = 0; i < n; i++)
        at[i] = (float)(f->low + (f->high - f->low) * (double)i / (n - 1));
    at[0] = -0.f;
    at[1] = NAN;
    at[2] = INFINITY;
    cfx_datum y = cfx_operator_run(rt, f->op, &x, 1, NULL);
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    const float *got = (const float *)y.as.tensor->data;
    CHECK(got[0] == (float)f->want(-0.0) && !signbit(got[0]) == !signbit(f->want(-0.0)));
    CHECK(isnan(got[1]));
    CHECK(got[2] == (float)f->want(INFINITY));
    double worst = 0;
    for (int64_t i = 3; i < n; i++) {
        const double want = f->want(at[i]);
        const double error = want == 0 ? fabs(got[i]) : fabs(got[i] - want) / fabs(want);
        worst = error > worst ? error : worst;
    }
    if (!CHECK(worst <= f->within))
        printf("    %s: error %g\n", cfx_operator_name(f->op), worst);
    cfx_datum_release(x);
    cfx_datum_release(y);
}

TEST(errors_are_small)
{
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++) {
        const cfx_runtime_options o = {.threads = 1, .limit_isa = true, .isa = (cfx_isa)isa};
        cfx_runtime *rt = cfx_runtime_new(&o, NULL);
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
            check(&functions[i], rt);
        cfx_runtime_free(rt);
    }
}
