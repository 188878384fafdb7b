/* product.c - batches of matrix products, of any type.
 *
 * Floats go to cfxi_linalg_gemm_run; 16-bit ones are converted first, complex ones are four real
 * products of their parts, integers have loops of their own. Batches that share the right matrix
 * and follow each other in memory are one product with more rows.
 */
#include "product_impl.h"
#include "runtime/runtime_impl.h"

enum { BATCH_WORK = 1 << 16 };  /* multiplications that a piece of a batch should have */

/* m, n, k and the steps of each operand in elements; the batch's dimensions are those that are left
 * after folding. */
typedef struct batch {
    cfx_runtime *rt;
    cfx_dtype dtype;
    cfxi_gemm g;
    size_t size;  /* of an element */
    size_t ndim;
    int64_t sizes[CFX_MAX_DIMS];
    int64_t a_step[CFX_MAX_DIMS], b_step[CFX_MAX_DIMS], c_step[CFX_MAX_DIMS];
    double alpha_imaginary, beta_imaginary;
    _Atomic int failed;  /* a cfx_status */
} batch;

void cfxi_linalg_unsqueeze(cfx_tensor *t, size_t dim)
{
    for (size_t d = t->ndim; d > dim; d--) {
        t->size[d] = t->size[d - 1];
        t->stride[d] = t->stride[d - 1];
    }
    t->size[dim] = 1;
    t->stride[dim] = 0;
    t->ndim++;
}

/* ---- integers ------------------------------------------------------------------------------ */

/* One product of int64, which wraps. A row of C at a time, so that B is read along its rows. */
static void multiply_integers(const cfxi_gemm *g)
{
    const uint64_t *a = g->a;
    const uint64_t *b = g->b;
    const uint64_t alpha = (uint64_t)(int64_t)g->alpha;
    const uint64_t beta = (uint64_t)(int64_t)g->beta;
    for (int64_t i = 0; i < g->m; i++) {
        uint64_t *c = (uint64_t *)g->c + i * g->c_row;
        for (int64_t j = 0; j < g->n; j++)
            c[j * g->c_col] = beta ? beta * c[j * g->c_col] : 0;
        for (int64_t p = 0; p < g->k; p++) {
            uint64_t x = alpha * a[i * g->a_row + p * g->a_col];
            const uint64_t *line = b + p * g->b_row;
            for (int64_t j = 0; j < g->n; j++)
                c[j * g->c_col] += x * line[j * g->b_col];
        }
    }
}

/* ---- complex numbers ----------------------------------------------------------------------- */

static void scale_complex(const cfxi_gemm *g, cfx_dtype dtype, double re, double im)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            char *at = (char *)g->c + (i * g->c_row + j * g->c_col) *
                                          (int64_t)cfx_dtype_size(dtype);
            double x[2] = {0, 0};
            if (re != 0 || im != 0)
                cfxi_tensor_load_complex(dtype, at, x);
            const double y[2] = {re * x[0] - im * x[1], re * x[1] + im * x[0]};
            cfxi_tensor_store_complex(dtype, at, y);
        }
}

/* C += alpha A B, alpha real or imaginary: the parts of C, A and B are real matrices whose elements
 * lie two apart. */
static cfx_status add_parts(const batch *b, const cfxi_gemm *whole, double alpha, bool imaginary,
                            cfx_error *err)
{
    cfx_dtype real = b->dtype == CFX_DTYPE_COMPLEX64 ? CFX_DTYPE_FLOAT32 : CFX_DTYPE_FLOAT64;
    size_t half = b->size / 2;
    for (int part = 0; part < 4; part++) {
        int pa = part & 1;
        int pb = part >> 1;
        int pc = (pa + pb + imaginary) & 1;
        bool negative = pa + pb + imaginary >= 2;  /* i * i once; i^3 = -i likewise */
        cfxi_gemm g = *whole;
        g.a = (const char *)g.a + (size_t)pa * half;
        g.b = (const char *)g.b + (size_t)pb * half;
        g.c = (char *)g.c + (size_t)pc * half;
        g.a_row *= 2, g.a_col *= 2, g.b_row *= 2, g.b_col *= 2, g.c_row *= 2, g.c_col *= 2;
        g.alpha = negative ? -alpha : alpha;
        g.beta = 1;
        g.bias = NULL;
        CFX_TRY(cfxi_linalg_gemm_run(b->rt, real, &g, err));
    }
    return CFX_OK;
}

static cfx_status multiply_complex(const batch *b, const cfxi_gemm *g, cfx_error *err)
{
    scale_complex(g, b->dtype, g->beta, b->beta_imaginary);
    if (g->alpha != 0)
        CFX_TRY(add_parts(b, g, g->alpha, false, err));
    if (b->alpha_imaginary != 0)
        CFX_TRY(add_parts(b, g, b->alpha_imaginary, true, err));
    return CFX_OK;
}

/* ---- batches ------------------------------------------------------------------------------- */

static cfx_status multiply_one(const batch *b, const cfxi_gemm *g, cfx_error *err)
{
    if (b->dtype == CFX_DTYPE_INT64) {
        multiply_integers(g);
        return CFX_OK;
    }
    if (cfx_dtype_is_complex(b->dtype))
        return multiply_complex(b, g, err);
    return cfxi_linalg_gemm_run(b->rt, b->dtype, g, err);
}

static void batch_range(void *ctx, int64_t begin, int64_t end)
{
    batch *b = ctx;
    for (int64_t i = begin; i < end; i++) {
        cfxi_gemm g = b->g;
        int64_t a = 0;
        int64_t at_b = 0;
        int64_t at_c = 0;
        int64_t rest = i;
        for (size_t d = b->ndim; d-- > 0; rest /= b->sizes[d]) {
            a += rest % b->sizes[d] * b->a_step[d];
            at_b += rest % b->sizes[d] * b->b_step[d];
            at_c += rest % b->sizes[d] * b->c_step[d];
        }
        g.a = (const char *)g.a + a * (int64_t)b->size;
        g.b = (const char *)g.b + at_b * (int64_t)b->size;
        g.c = (char *)g.c + at_c * (int64_t)b->size;
        cfx_status status = multiply_one(b, &g, NULL);
        if (status != CFX_OK)
            atomic_store(&b->failed, (int)status);
    }
}

/* Rows of integers are a batch, too, so that threads share them. */
static void integer_rows(void *ctx, int64_t begin, int64_t end)
{
    const batch *b = ctx;
    cfxi_gemm g = b->g;
    g.m = end - begin;
    g.a = (const char *)g.a + begin * g.a_row * (int64_t)b->size;
    g.c = (char *)g.c + begin * g.c_row * (int64_t)b->size;
    multiply_integers(&g);
}

/* Innermost dimensions that only lengthen A and C become rows; those of size 1 go. */
static void fold(batch *b)
{
    size_t kept = 0;
    for (size_t d = 0; d < b->ndim; d++) {
        if (b->sizes[d] == 1)
            continue;
        b->sizes[kept] = b->sizes[d];
        b->a_step[kept] = b->a_step[d];
        b->b_step[kept] = b->b_step[d];
        b->c_step[kept++] = b->c_step[d];
    }
    b->ndim = kept;
    while (b->ndim > 0) {
        size_t d = b->ndim - 1;
        cfxi_gemm *g = &b->g;
        if (g->m == 1) {  /* the steps along rows are free */
            g->a_row = b->a_step[d];
            g->c_row = b->c_step[d];
        }
        if (b->b_step[d] != 0 || b->a_step[d] != g->a_row * g->m || b->c_step[d] != g->c_row * g->m)
            return;
        g->m *= b->sizes[d];
        b->ndim--;
    }
}

static cfx_status run_batch(batch *b, cfx_error *err)
{
    int64_t count = 1;
    fold(b);
    for (size_t d = 0; d < b->ndim; d++)
        count *= b->sizes[d];
    double work = (double)b->g.m * (double)b->g.n * (double)(b->g.k + 1);
    if (count == 1 && b->dtype == CFX_DTYPE_INT64) {
        double row = (double)b->g.n * (double)(b->g.k + 1);
        cfxi_rt_parallel(b->rt, b->g.m, row > BATCH_WORK ? 1 : (int64_t)(BATCH_WORK / row) + 1,
                         integer_rows, b);
    } else if (count < (int64_t)cfxi_rt_pool_threads(b->rt->pool)) {
        batch_range(b, 0, count);  /* the products themselves use the threads */
    } else {
        cfxi_rt_parallel(b->rt, count, work > BATCH_WORK ? 1 : (int64_t)(BATCH_WORK / work) + 1,
                         batch_range, b);
    }
    cfx_status status = (cfx_status)atomic_load(&b->failed);
    return status == CFX_OK ? CFX_OK
           : status == CFX_E_NOMEM ? cfxi_base_nomem(err)
                                   : cfx_error_set(err, status, "the matrix product failed");
}

/* ---- tensors ------------------------------------------------------------------------------- */

static cfx_dtype compute_type(cfx_dtype d)
{
    return d == CFX_DTYPE_FLOAT16 || d == CFX_DTYPE_BFLOAT16 ? CFX_DTYPE_FLOAT32
           : cfx_dtype_is_integer(d)                         ? CFX_DTYPE_INT64
                                                             : d;
}

/* `t` in that type: itself if its strides are whole elements, else a copy, which *made owns. (Of
 * what will be written only the memory counts, if not `filled`.) */
static cfx_status operand(cfxi_call *c, const cfx_tensor **t, cfx_dtype dtype, bool filled,
                          cfx_tensor **made)
{
    *made = NULL;
    if ((*t)->dtype == dtype && cfxi_tensor_has_whole_strides(*t))
        return CFX_OK;
    *made = cfx_tensor_new(dtype, (*t)->size, (*t)->ndim, c->rt->allocator, c->err);
    if (!*made)
        return c->err->status;
    if (filled)
        CFX_TRY(cfxi_rt_copy(c->rt, *made, *t, c->err));
    *t = *made;
    return CFX_OK;
}

/* Steps of an operand along the batch of `out`, in elements; 0 where it is broadcast. */
static void batch_steps(const cfx_tensor *t, size_t ndim, int64_t size, int64_t *steps)
{
    size_t own = (size_t)t->ndim - 2;
    for (size_t d = 0; d < ndim; d++) {
        size_t from = d + own - ndim;
        steps[d] = d + own < ndim || t->size[from] == 1 ? 0 : t->stride[from] / size;
    }
}

static cfx_status multiply(cfxi_call *c, cfx_tensor *out, const cfx_tensor *a, const cfx_tensor *b,
                           const cfxi_factors *f)
{
    const int64_t size = (int64_t)cfxi_tensor_itemsize(out);
    const size_t no = out->ndim;
    const size_t na = a->ndim;
    const size_t nb = b->ndim;
    batch all = {.rt = c->rt, .dtype = (cfx_dtype)out->dtype, .size = (size_t)size,
                 .ndim = no - 2, .alpha_imaginary = f->alpha[1], .beta_imaginary = f->beta[1]};
    if (cfxi_tensor_numel(out) == 0)
        return CFX_OK;
    all.g = (cfxi_gemm){
        .m = out->size[no - 2], .n = out->size[no - 1], .k = a->size[na - 1],
        .a = a->data, .a_row = a->stride[na - 2] / size, .a_col = a->stride[na - 1] / size,
        .b = b->data, .b_row = b->stride[nb - 2] / size, .b_col = b->stride[nb - 1] / size,
        .c = out->data, .c_row = out->stride[no - 2] / size, .c_col = out->stride[no - 1] / size,
        .alpha = f->alpha[0], .beta = f->beta[0], .bias = f->bias ? f->bias->data : NULL};
    memcpy(all.sizes, out->size, (no - 2) * sizeof *all.sizes);
    batch_steps(a, no - 2, size, all.a_step);
    batch_steps(b, no - 2, size, all.b_step);
    batch_steps(out, no - 2, size, all.c_step);
    return run_batch(&all, c->err);
}

cfx_status cfxi_linalg_product(cfxi_call *c, cfx_tensor *out, const cfx_tensor *a,
                               const cfx_tensor *b, const cfxi_factors *f)
{
    cfx_dtype dtype = compute_type((cfx_dtype)out->dtype);
    cfxi_factors with = *f;
    const cfx_tensor *result = out;
    cfx_tensor *made[4] = {NULL};
    cfx_status status = operand(c, &a, dtype, true, &made[0]);
    if (status == CFX_OK)
        status = operand(c, &b, dtype, true, &made[1]);
    if (status == CFX_OK && f->bias)
        status = operand(c, &with.bias, dtype, true, &made[2]);
    if (status == CFX_OK)
        status = operand(c, &result, dtype, f->beta[0] != 0 || f->beta[1] != 0, &made[3]);
    if (status == CFX_OK)
        status = multiply(c, made[3] ? made[3] : out, a, b, &with);
    if (status == CFX_OK && made[3])
        status = cfxi_rt_copy(c->rt, out, made[3], c->err);
    for (size_t i = 0; i < 4; i++)
        cfx_tensor_release(made[i]);
    return status;
}
