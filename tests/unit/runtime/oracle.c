/* oracle.c - kernels that use the pool against loops in double that share nothing with them.
 *
 * Matrices of odd sizes are views into larger ones: they begin at any float, their rows lie apart,
 * or they are transposed. Each instruction set of the machine, with one and with three threads.
 */
#include "check.h"

#include <cfx/embed/runtime.h>
#include <cfx/operators.h>
#include <math.h>
#include <stdint.h>

enum { VIEWS = 4 };  /* dense, at an odd address, transposed, both */

static const int64_t sizes[][3] = {  /* rows, columns, and columns of the second matrix */
    {1, 1, 1}, {1, 33, 7}, {3, 5, 2}, {17, 1, 31}, {31, 63, 65}, {67, 129, 15}, {255, 97, 33},
    {129, 513, 66}, {5, 4099, 3}, {4099, 5, 17}, {301, 301, 130},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static double at(const cfx_tensor *t, int64_t i, int64_t j)
{
    const int64_t *step = cfx_tensor_strides(t);
    const char *data = cfx_tensor_data(t);
    return *(const float *)(const void *)(data + i * step[0] + j * step[1]);
}

/* The result of a view operator; takes over the tensor. */
static cfx_datum viewed(cfx_runtime *rt, cfx_operator op, cfx_datum x, int64_t a, int64_t b,
                        int64_t c, size_t n)
{
    const cfx_datum args[] = {x, cfx_datum_int(a), cfx_datum_int(b), cfx_datum_int(c)};
    const cfx_datum y = cfx_operator_run(rt, op, args, n, NULL);
    cfx_datum_release(x);
    return y;
}

/* Numbers from -2 to 2 that depend on the seed. */
static cfx_datum matrix(cfx_runtime *rt, int64_t rows, int64_t columns, int view, uint32_t seed)
{
    const bool turned = view & 2;
    const int64_t odd = view & 1;
    const int64_t r = turned ? columns : rows;
    const int64_t c = turned ? rows : columns;
    const int64_t whole[] = {r + 2 * odd, c + 3 * odd};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, whole, 2, NULL, NULL);
    float *to = cfx_tensor_data(t);
    for (int64_t i = 0; i < cfx_tensor_numel(t); i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 8) * (4.0f / (1 << 24)) - 2;
    }
    cfx_datum x = cfx_datum_tensor(t);
    if (odd) {
        x = viewed(rt, CFX_OPID_narrow, x, 0, 1, r, 4);
        x = viewed(rt, CFX_OPID_narrow, x, 1, 1, c, 4);
    }
    return turned ? viewed(rt, CFX_OPID_transpose, x, 0, 1, 0, 3) : x;
}

/* ---- oracles: element (i, j) of the result ------------------------------------------------- */

typedef double oracle(const cfx_tensor *x, const cfx_tensor *y, int64_t i, int64_t j);

static int64_t width(const cfx_tensor *x) { return cfx_tensor_sizes(x)[1]; }

static double product_at(const cfx_tensor *x, const cfx_tensor *y, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t k = 0; k < width(x); k++)
        sum += at(x, i, k) * at(y, k, j);
    return sum;
}

static double softmax_at(const cfx_tensor *x, const cfx_tensor *y, int64_t i, int64_t j)
{
    double sum = 0;
    (void)y;
    for (int64_t k = 0; k < width(x); k++)
        sum += exp(at(x, i, k));
    return exp(at(x, i, j)) / sum;
}

static double sum_at(const cfx_tensor *x, const cfx_tensor *y, int64_t i, int64_t j)
{
    double sum = 0;
    (void)y;
    for (int64_t k = 0; k < width(x); k++)
        sum += at(x, i, k);
    return j == 0 ? sum : NAN;
}

static double norm_at(const cfx_tensor *x, const cfx_tensor *y, int64_t i, int64_t j)
{
    const double n = (double)width(x);
    const double mean = sum_at(x, y, i, 0) / n;
    double square = 0;
    for (int64_t k = 0; k < width(x); k++)
        square += (at(x, i, k) - mean) * (at(x, i, k) - mean);
    return (at(x, i, j) - mean) / sqrt(square / n + 1e-5);
}

static double exp_at(const cfx_tensor *x, const cfx_tensor *y, int64_t i, int64_t j)
{
    (void)y;
    return exp(at(x, i, j));
}

static double copy_at(const cfx_tensor *x, const cfx_tensor *y, int64_t i, int64_t j)
{
    (void)y;
    return at(x, i, j);
}

/* ---- comparing ----------------------------------------------------------------------------- */

typedef struct subject {
    cfx_operator op;
    oracle *want;
    double slack;  /* times the length of a row, for each element */
} subject;

static const subject subjects[] = {
    {CFX_OPID_matmul, product_at, 1e-6},  {CFX_OPID_softmax, softmax_at, 1e-6},
    {CFX_OPID_sum, sum_at, 1e-6},         {CFX_OPID_layer_norm, norm_at, 2e-6},
    {CFX_OPID_exp, exp_at, 4e-6},         {CFX_OPID_contiguous, copy_at, 0},
};

static cfx_datum run(cfx_runtime *rt, cfx_operator op, cfx_datum x, cfx_datum y)
{
    const cfx_datum last = cfx_datum_int(op == CFX_OPID_layer_norm ? width(x.as.tensor) : 1);
    const cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, &last, 1, NULL, NULL);
    cfx_datum args[] = {x, y, cfx_datum_bool(true)};
    size_t n = 1;
    if (op == CFX_OPID_matmul) {
        n = 2;
    } else if (op == CFX_OPID_softmax) {
        args[1] = last;
        n = 2;
    } else if (op == CFX_OPID_sum || op == CFX_OPID_layer_norm) {
        args[1] = list;
        n = op == CFX_OPID_sum ? 3 : 2;
    }
    const cfx_datum out = cfx_operator_run(rt, op, args, n, NULL);
    cfx_datum_release(list);
    return out;
}

static double worst(const subject *s, const cfx_tensor *x, const cfx_tensor *y,
                    const cfx_tensor *out)
{
    const int64_t *shape = cfx_tensor_sizes(out);
    const bool long_sums = s->want == product_at || s->want == sum_at;
    double most = 0;
    for (int64_t i = 0; i < shape[0]; i++)
        for (int64_t j = 0; j < shape[1]; j++) {
            if (shape[0] * shape[1] > 2000 && (i * 31 + j) % 23)
                continue;  /* some of many */
            const double error = fabs(at(out, i, j) - s->want(x, y, i, j));
            most = error > most || isnan(error) ? error : most;
        }
    return most / (long_sums ? (double)width(x) : 1);
}

static void compare(cfx_runtime *rt, const subject *s, const int64_t size[3], int view)
{
    const cfx_datum x = matrix(rt, size[0], size[1], view, 1);
    const cfx_datum y = matrix(rt, size[1], size[2], VIEWS - 1 - view, 2);
    const cfx_datum out = run(rt, s->op, x, y);
    REQUIRE(out.kind == CFX_DATUM_TENSOR);
    const double error = worst(s, x.as.tensor, y.as.tensor, out.as.tensor);
    if (!CHECK(error <= s->slack))
        printf("    %s of %d x %d, view %d, %s, %u threads: %g\n", cfx_operator_name(s->op),
               (int)size[0], (int)size[1], view, cfx_isa_name(cfx_runtime_isa(rt)),
               cfx_runtime_threads(rt), error);
    cfx_datum_release(out);
    cfx_datum_release(y);
    cfx_datum_release(x);
}

static void compare_all(const subject *s)
{
    for (int isa = 0; isa < CFX_ISA_COUNT; isa++)
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            const cfx_runtime_options o = {.threads = threads, .limit_isa = true,
                                           .isa = (cfx_isa)isa};
            cfx_runtime *rt = cfx_runtime_new(&o, NULL);
            REQUIRE(rt);
            for (int view = 0; view < VIEWS; view++)
                for (int i = 0; i < SIZES; i++)
                    compare(rt, s, sizes[i], view);
            cfx_runtime_free(rt);
        }
}

TEST(products) { compare_all(&subjects[0]); }
TEST(softmax) { compare_all(&subjects[1]); }
TEST(sums) { compare_all(&subjects[2]); }
TEST(layer_norms) { compare_all(&subjects[3]); }
TEST(exponentials) { compare_all(&subjects[4]); }
TEST(copies) { compare_all(&subjects[5]); }
