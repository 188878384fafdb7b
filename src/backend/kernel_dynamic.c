/* kernel_dynamic.c - products of floats with weights of 8 bits: rows of x become integers, with a
 * scale and a zero point for all that each run chooses, and the product of integers does the rest.
 */
#include "backend_impl.h"

#include <math.h>

enum {
    MIDDLE = 128,
    GRAIN = 1 << 14  /* elements that are worth waking another thread */
};

typedef struct dynamic_kernel {
    cfxi_kernel head;
    cfxi_kernel *product;
    const cfxi_integer_rows *rows;
} dynamic_kernel;

/* The product that follows: its rows lie side by side, as unsigned numbers. */
static cfxi_problem product_of(const cfxi_problem *p)
{
    cfxi_problem product = *p;
    product.kind = CFXI_PRODUCT;
    product.x_row = p->k;
    product.integers.x_signed = false;
    product.integers.x_zero = 1;
    product.integers.each_run = true;
    return product;
}

static bool query(const cfxi_problem *p, double *cost)
{
    const cfxi_problem product = product_of(p);
    return p->kind == CFXI_DYNAMIC && p->m > 0 && p->n > 0 && p->k > 0 &&
           cfxi_backend_bytes.query(&product, cost);
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *c,
                            const cfx_allocator *allocator, cfx_error *err)
{
    const cfxi_problem product = product_of(p);
    dynamic_kernel *k = cfxi_base_alloc(allocator, sizeof *k);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    *k = (dynamic_kernel){.head = {&cfxi_backend_dynamic, allocator, *p, sizeof *k, NULL},
                          .product = cfxi_backend_bytes.prepare(&product, c, allocator, err),
                          .rows = cfxi_integer_rows_of(p->isa)};
    if (k->product) {
        k->head.packed = k->product->packed;  /* which releases it */
        return &k->head;
    }
    cfxi_base_free(allocator, k, sizeof *k);
    return NULL;
}

typedef struct running {
    const dynamic_kernel *k;
    const float *x;
    cfxi_integer_quantizing by;
    uint8_t *to;
    atomic_bool not_finite;
    _Atomic float low, high;
} running;

static void lower(_Atomic float *to, float x)
{
    float was = atomic_load(to);
    while (x < was && !atomic_compare_exchange_weak(to, &was, x))
        continue;
}

static void raise(_Atomic float *to, float x)
{
    float was = atomic_load(to);
    while (x > was && !atomic_compare_exchange_weak(to, &was, x))
        continue;
}

/* Elements from `at` on, at most to the end of their row and before `end`. */
static int64_t run_of(const cfxi_problem *p, int64_t at, int64_t end)
{
    const int64_t row_end = (at / p->k + 1) * p->k;
    return (row_end < end ? row_end : end) - at;
}

static const float *element(const running *w, int64_t at)
{
    const cfxi_problem *p = &w->k->head.problem;
    return w->x + at / p->k * p->x_row + at % p->k;
}

static void find_range(void *ctx, int64_t begin, int64_t end)
{
    running *w = ctx;
    float low = 0;
    float high = 0;
    bool finite = true;
    for (int64_t n; begin < end; begin += n) {
        n = run_of(&w->k->head.problem, begin, end);
        finite = w->k->rows->range(n, element(w, begin), &low, &high) && finite;
    }
    if (!finite)
        atomic_store(&w->not_finite, true);
    lower(&w->low, low);
    raise(&w->high, high);
}

static void quantize(void *ctx, int64_t begin, int64_t end)
{
    const running *w = ctx;
    for (int64_t n; begin < end; begin += n) {
        n = run_of(&w->k->head.problem, begin, end);
        w->k->rows->quantize(n, element(w, begin), &w->by, w->to + begin);
    }
}

/* As choose_qparams and quantize_per_tensor do; integers with signs are 128 more. False if there is
 * no scale: NaN and infinities make all of the result NaN. */
static bool make_integers(running *w, cfx_runtime *rt, cfxi_run *product)
{
    const cfxi_problem *p = &w->k->head.problem;
    const int64_t count = p->m * p->k;
    const int64_t middle = p->dynamic.low < 0 ? MIDDLE : 0;
    float scale;
    int64_t zero;
    cfxi_rt_parallel(rt, count, GRAIN, find_range, w);
    if (atomic_load(&w->not_finite))
        return false;
    cfxi_integer_choose(atomic_load(&w->low), atomic_load(&w->high), p->dynamic.low,
                        p->dynamic.high, p->dynamic.eps, &scale, &zero);
    if (!isfinite(scale) ||
        !cfxi_integer_quantizing_of(CFX_DTYPE_UINT8, (float)(1 / (double)scale),
                                    (float)(zero + middle), (float)(p->dynamic.low + middle),
                                    (float)(p->dynamic.high + middle), &w->by))
        return false;
    cfxi_rt_parallel(rt, count, GRAIN, quantize, w);
    product->x = (const float *)(const void *)w->to;
    product->x_scale = (double)scale;
    product->x_zero = (int32_t)(zero + middle);
    return true;
}

static void fill_nan(const cfxi_problem *p, const cfxi_run *r)
{
    int64_t offset[CFXI_MOST_POSTS];
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++)
            r->out[i * p->out_row + j] = NAN;
    for (size_t s = 0; s < p->num_posts; s++)
        offset[s] = 0;
    cfxi_backend_finish_rows(p, r, 0, r->out, p->m, p->out_row, p->n, 0, offset);
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    enum { SLACK = 64 };  /* bytes behind the rows, which are read */
    const dynamic_kernel *k = (const dynamic_kernel *)kernel;
    const cfxi_problem *p = &kernel->problem;
    cfx_status status = CFX_OK;
    cfxi_run product = *r;
    running w = {.k = k, .x = r->x,
                 .to = cfxi_rt_scratch(r->rt, (size_t)(p->m * p->k) + SLACK)};
    if (!w.to)
        return cfxi_base_nomem(err);
    atomic_init(&w.not_finite, false);
    atomic_init(&w.low, 0);
    atomic_init(&w.high, 0);
    if (make_integers(&w, r->rt, &product))
        status = k->product->backend->run(k->product, &product, err);
    else
        fill_nan(p, r);
    cfxi_rt_scratch_free(r->rt, w.to);
    return status;
}

static void release(cfxi_kernel *kernel)
{
    dynamic_kernel *k = (dynamic_kernel *)kernel;
    k->product->backend->release(k->product);
    cfxi_base_free(kernel->allocator, k, sizeof *k);
}

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    const dynamic_kernel *k = (const dynamic_kernel *)kernel;
    cfxi_base_out_str(out, "to integers, ");
    k->product->backend->print(k->product, out);
}

const cfxi_backend cfxi_backend_dynamic = {"built-in, int8", query, prepare, run, release, print};
