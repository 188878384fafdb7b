/* weight_only.c - products with weights of 8 or 4 bits against plain loops in double: odd sizes,
 * groups of any length, zero points, posts, NaN and infinities, for each instruction set of the
 * machine and several threads. */
#include "backend/backend_impl.h"
#include "runtime/kernels/tiles/weight_only.h"

#include "test_alloc.h"

#include <math.h>

static uint64_t state = 11;

static int64_t draw(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(state >> 33) % n;
}

/* Calls fn with a runtime of each instruction set of the machine. */
static void for_each_isa(void fn(cfx_runtime *rt), unsigned threads)
{
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++) {
        const cfx_runtime_options options = {.threads = threads, .limit_isa = true,
                                             .isa = (cfx_isa)isa};
        cfx_runtime *rt = cfx_runtime_new(&options, NULL);
        if (rt->isa == (cfx_isa)isa)
            fn(rt);
        cfx_runtime_free(rt);
    }
}

/* Memory of exactly its size, so that reading past the end is caught. */
static float *numbers(int64_t n)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(draw(2001) - 1000) / 500;
    return x;
}

static cfx_tensor *tensor(cfx_dtype dtype, int64_t rows, int64_t columns)
{
    const int64_t sizes[2] = {rows, columns};
    return cfx_tensor_new(dtype, sizes, columns > 0 ? 2 : 1, NULL, NULL);
}

/* A product, and its weights as they are meant. */
typedef struct trial {
    cfxi_problem p;
    int64_t groups;
    cfx_tensor *codes, *scale, *zero;
    double *w;  /* [n][k] */
    float *x, *bias, *add, *out;
} trial;

static int code_of(const trial *t, int64_t n, int64_t k)
{
    const int8_t *codes = cfx_tensor_data(t->codes);
    if (t->p.weight_only.positive)
        return ((const uint8_t *)codes)[n * t->p.k + k];
    if (t->p.weight_only.bits == 8)
        return codes[n * t->p.k + k];
    const int half = (uint8_t)codes[n * ((t->p.k + 1) / 2) + k / 2] >> (k % 2 * 4) & 15;
    return half < 8 ? half : half - 16;
}

static void make_weights(trial *t)
{
    cfxi_problem *p = &t->p;
    const bool each = p->weight_only.group >= p->k && draw(2);  /* one dimension */
    const bool four = p->weight_only.bits == 4;
    const bool positive = p->weight_only.positive = !four && draw(2);
    const bool one_zero = draw(4) == 0;
    t->groups = (p->k + p->weight_only.group - 1) / p->weight_only.group;
    t->codes = tensor(four || positive ? CFX_DTYPE_UINT8 : CFX_DTYPE_INT8, p->n,
                      four ? (p->k + 1) / 2 : p->k);
    t->scale = tensor(CFX_DTYPE_FLOAT32, p->n, each ? 0 : t->groups);
    t->zero = p->weight_only.zeros
                  ? tensor(positive || draw(2) ? CFX_DTYPE_INT64 : CFX_DTYPE_INT8,
                           one_zero ? 1 : p->n, one_zero || each ? 0 : t->groups)
                  : NULL;
    for (int64_t i = 0; i < cfx_tensor_numel(t->codes); i++)
        ((uint8_t *)cfx_tensor_data(t->codes))[i] = (uint8_t)draw(256);
    for (int64_t i = 0; i < p->n * t->groups; i++) {
        const int64_t ends[3] = {four ? -8 : -128, four ? 7 : 127, draw(9) - 4};
        const int64_t zero = ends[draw(3)] + (positive ? 128 : 0);
        ((float *)cfx_tensor_data(t->scale))[i] = (float)(1 + draw(100)) / (four ? 500 : 8000);
        if (one_zero && i > 0)
            continue;
        if (t->zero && t->zero->dtype == CFX_DTYPE_INT8)
            ((int8_t *)cfx_tensor_data(t->zero))[i] = (int8_t)zero;
        else if (t->zero)
            ((int64_t *)cfx_tensor_data(t->zero))[i] = zero;
    }
    t->w = malloc((size_t)(p->n * p->k) * sizeof *t->w);
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t k = 0; k < p->k; k++) {
            const int64_t all = n * t->groups + k / p->weight_only.group;
            const int64_t at = t->zero && one_zero ? 0 : all;
            const int64_t zero =
                !t->zero ? 0
                : t->zero->dtype == CFX_DTYPE_INT8 ? ((int8_t *)cfx_tensor_data(t->zero))[at]
                                                   : ((int64_t *)cfx_tensor_data(t->zero))[at];
            const float scale = ((float *)cfx_tensor_data(t->scale))[all];
            t->w[n * p->k + k] = (double)(code_of(t, n, k) - zero) * scale;
        }
}

static void make_trial(trial *t, cfx_runtime *rt, int64_t m, int64_t n, int64_t k, int64_t group)
{
    const int64_t gap = draw(3);
    *t = (trial){.p = {.kind = CFXI_WEIGHT_ONLY, .isa = rt->isa,
                       .threads = cfx_runtime_threads(rt), .m = m, .n = n, .k = k,
                       .x_row = k + gap, .out_row = n + gap, .has_bias = draw(2),
                       .weight_only = {draw(2) ? 4 : 8, group, draw(2)}}};
    make_weights(t);
    t->x = numbers(m * (k + gap) - gap);
    t->out = numbers(m * (n + gap) - gap);
    t->add = numbers(m * (n + gap) - gap);
    t->bias = t->p.has_bias ? numbers(n) : NULL;
    if (draw(2))
        t->p.posts[t->p.num_posts++] = (cfxi_post){.kind = CFXI_POST_ADD, .rows = {n + gap}};
    if (draw(2))
        t->p.posts[t->p.num_posts++] =
            (cfxi_post){.kind = CFXI_POST_CLAMP, .low = -1, .high = INFINITY};
    if (draw(2))
        t->p.posts[t->p.num_posts++] = (cfxi_post){.kind = CFXI_POST_FN, .fn = CFXI_FN_silu};
}

static void free_trial(trial *t)
{
    cfx_tensor_release(t->codes);
    cfx_tensor_release(t->scale);
    cfx_tensor_release(t->zero);
    free(t->w), free(t->x), free(t->bias), free(t->add), free(t->out);
}

static double expected(const trial *t, int64_t i, int64_t j, double *size)
{
    const cfxi_problem *p = &t->p;
    double sum = t->bias ? (double)t->bias[j] : 0;
    *size = fabs(sum) + 1;
    for (int64_t k = 0; k < p->k; k++) {
        const double term = (double)t->x[i * p->x_row + k] * t->w[j * p->k + k];
        sum += term;
        *size += fabs(term);
    }
    for (size_t s = 0; s < p->num_posts; s++) {
        if (p->posts[s].kind == CFXI_POST_ADD)
            sum += (double)t->add[i * p->out_row + j];
        else if (p->posts[s].kind == CFXI_POST_CLAMP)
            sum = sum < p->posts[s].low ? p->posts[s].low : sum;
        else
            sum = sum / (1 + exp(-sum));
    }
    return sum;
}

static bool run_trial(const trial *t, cfx_runtime *rt, float *out)
{
    cfx_error err = {0};
    double cost = -1;
    cfx_tensor *tensors[3] = {t->codes, t->scale, t->zero};
    const cfxi_constants c = {.bias = t->bias, .tensors = tensors, .rt = draw(2) ? rt : NULL};
    const cfxi_run r = {.rt = rt, .x = t->x, .out = out, .operands = {t->add}};
    CHECK(cfxi_backend_weight_only.query(&t->p, &cost) && cost >= 0);
    cfxi_kernel *k =
        cfxi_backend_weight_only.prepare(&t->p, &c, cfxi_base_allocator(NULL), &err);
    const bool good = CHECK(k != NULL) && CHECK_INT_EQ(CFX_OK, k->backend->run(k, &r, &err));
    if (k)
        k->backend->release(k);
    return good;
}

static bool check_trial(const trial *t, cfx_runtime *rt)
{
    const cfxi_problem *p = &t->p;
    bool good = run_trial(t, rt, t->out);
    for (int64_t i = 0; i < p->m && good; i++)
        for (int64_t j = 0; j < p->n && good; j++) {
            double size;
            const double want = expected(t, i, j, &size);
            const float got = t->out[i * p->out_row + j];
            good = isfinite(want) ? fabs(want - got) <= 1e-6 * size
                                  : isnan(want) ? isnan(got) : want == (double)got;
            if (!CHECK(good))
                printf("    %lld x %lld x %lld, %d bits, groups of %lld: [%lld][%lld] want %g, "
                       "got %g\n", (long long)p->m, (long long)p->n, (long long)p->k,
                       p->weight_only.bits, (long long)p->weight_only.group, (long long)i,
                       (long long)j, want, (double)got);
        }
    return good;
}

static void check_sizes(cfx_runtime *rt)
{
    static const int64_t rows[] = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 29, 65};
    static const int64_t groups[] = {1, 3, 8, 16, 20, 32, 64};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int again = 0; again < 9; again++) {
            const int64_t k = 1 + draw(again < 3 ? 20 : 300);
            const int64_t group = draw(3) ? groups[draw(7)] : k;
            trial t;
            make_trial(&t, rt, rows[i], 1 + draw(again < 5 ? 40 : 200), k, group);
            const bool good = check_trial(&t, rt);
            free_trial(&t);
            if (!good)
                return;
        }
}

TEST(sizes) { for_each_isa(check_sizes, 1); }
TEST(threads) { for_each_isa(check_sizes, 3); }

/* More elements than are floats at a time, and more rows than a block has. */
static void check_long(cfx_runtime *rt)
{
    static const int64_t all[][4] = {{70, 33, 2500, 128}, {1, 70, 5000, 5000}, {300, 20, 1100, 48}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int again = 0; again < 3; again++) {
            trial t;
            make_trial(&t, rt, all[i][0], all[i][1], all[i][2], all[i][3]);
            check_trial(&t, rt);
            free_trial(&t);
        }
}

TEST(long_rows) { for_each_isa(check_long, 2); }

/* They reach what they are multiplied into, and nothing else. */
static void check_special(cfx_runtime *rt)
{
    const float special[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e30f, 1e-40f};
    for (int again = 0; again < 40; again++) {
        const int64_t k = 1 + draw(90);
        trial t;
        make_trial(&t, rt, 1 + draw(20), 1 + draw(70), k, 1 + draw(k));
        t.x[draw(t.p.m) * t.p.x_row + draw(k)] = special[draw(6)];
        if (draw(2))
            t.x[draw(t.p.m) * t.p.x_row + draw(k)] = special[draw(6)];
        check_trial(&t, rt);
        free_trial(&t);
    }
}

TEST(special_values) { for_each_isa(check_special, 1); }

/* Kernels for other numbers of rows have packed weights in common. */
TEST(packs)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    const cfx_allocator *a = cfxi_base_allocator(NULL);
    cfxi_packs packs = {0};
    trial t;
    make_trial(&t, rt, 30, 20, 40, 16);
    cfx_tensor *tensors[3] = {t.codes, t.scale, t.zero};
    const cfxi_constants c = {.w = cfx_tensor_data(t.codes), .bias = t.bias, .tensors = tensors,
                              .packs = &packs};
    cfxi_kernel *many = cfxi_backend_weight_only.prepare(&t.p, &c, a, &err);
    t.p.m = 2;
    cfxi_kernel *few = cfxi_backend_weight_only.prepare(&t.p, &c, a, &err);
    t.p.weight_only.group = 20;  /* others */
    cfxi_kernel *other = cfxi_backend_weight_only.prepare(&t.p, &c, a, &err);
    CHECK(many && few && many->packed == few->packed);
    CHECK(other && other->packed != few->packed);
    cfxi_backend_weight_only.release(many);
    cfxi_backend_weight_only.release(few);
    cfxi_backend_weight_only.release(other);
    cfxi_backend_packs_free(&packs, a);
    free_trial(&t);
    cfx_runtime_free(rt);
}

static cfx_status prepare_and_run(const cfx_allocator *a, void *arg)
{
    const trial *t = arg;
    cfx_error err = {0};
    const cfx_runtime_options options = {.allocator = a, .threads = 1};
    cfx_tensor *tensors[3] = {t->codes, t->scale, t->zero};
    const cfxi_constants c = {.bias = t->bias, .tensors = tensors};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    const cfxi_run r = {.rt = rt, .x = t->x, .out = t->out, .operands = {t->add}};
    cfxi_kernel *k = rt ? cfxi_backend_weight_only.prepare(&t->p, &c, a, &err) : NULL;
    const cfx_status status = k ? k->backend->run(k, &r, &err) : err.status;
    if (k)
        k->backend->release(k);
    cfx_runtime_free(rt);
    return status;
}

TEST(out_of_memory)
{
    for (int64_t m = 1; m < 40; m += 30) {
        cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
        trial t;
        make_trial(&t, rt, m, 20, 43, 9);
        cfx_runtime_free(rt);
        CHECK(test_oom_sweep(prepare_and_run, &t) > 2);
        free_trial(&t);
    }
}
