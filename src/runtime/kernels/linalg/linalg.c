/* linalg.c - determinants, inverses, systems of equations, triangular ones; Cholesky and QR. */
#include "product_impl.h"
#include "linalg_impl.h"

#include <math.h>

/* ---- rules --------------------------------------------------------------------------------- */

cfx_dtype cfxi_linalg_real_type(cfx_dtype d)
{
    return d == CFX_DTYPE_COMPLEX64    ? CFX_DTYPE_FLOAT32
           : d == CFX_DTYPE_COMPLEX128 ? CFX_DTYPE_FLOAT64
                                       : d;
}

cfx_status cfxi_linalg_check_matrices(cfxi_call *c, const cfx_tensor *t, const char *name)
{
    cfx_dtype d = (cfx_dtype)t->dtype;
    if (t->ndim < 2)
        return cfxi_fail(c, CFX_E_SHAPE, "%s: The input tensor A must have at least 2 dimensions.",
                         name);
    if (!cfx_dtype_is_float(d) && !cfx_dtype_is_complex(d))
        return cfxi_fail(c, CFX_E_SHAPE, "%s: Expected a floating point or complex tensor as "
                         "input. Got %s", name, cfx_dtype_name(d));
    if (d == CFX_DTYPE_FLOAT16 || d == CFX_DTYPE_BFLOAT16)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "%s: Low precision dtypes not supported. Got %s",
                         name, cfx_dtype_name(d));
    return CFX_OK;
}

cfx_status cfxi_linalg_check_square(cfxi_call *c, const cfx_tensor *t, const char *name)
{
    CFX_TRY(cfxi_linalg_check_matrices(c, t, name));
    if (!cfxi_rt_same_size(c, cfxi_linalg_rows(t), cfxi_linalg_columns(t)))
        return cfxi_fail(c, CFX_E_SHAPE, "%s: A must be batches of square matrices, but they are "
                         "%lld by %lld matrices", name, (long long)cfxi_linalg_rows(t),
                         (long long)cfxi_linalg_columns(t));
    return CFX_OK;
}

/* The last two dimensions, if there are two, change places in memory. */
static void make_column_major(cfx_tensor *t)
{
    size_t n = t->ndim;
    if (n < 2)
        return;
    int64_t item = (int64_t)cfxi_tensor_itemsize(t);
    t->stride[n - 2] = item;
    t->stride[n - 1] = item * (t->size[n - 2] > 1 ? t->size[n - 2] : 1);
}

cfx_status cfxi_linalg_matrix_result(cfxi_call *c, size_t i, cfx_dtype dtype,
                                     const cfx_tensor *like, int64_t rows, int64_t columns)
{
    int64_t sizes[CFX_MAX_DIMS];
    memcpy(sizes, like->size, sizeof sizes);
    sizes[like->ndim - 2] = rows;
    sizes[like->ndim - 1] = columns;
    CFX_TRY(cfxi_rt_result(c, i, dtype, sizes, like->ndim));
    if (!c->infer)
        make_column_major(cfxi_rt_result_at(c, i));
    return CFX_OK;
}

/* ---- matrices in memory -------------------------------------------------------------------- */

int64_t cfxi_linalg_matrix_count(const cfx_tensor *out)
{
    int64_t n = 1;
    for (size_t d = 0; d + 2 < out->ndim; d++)
        n *= out->size[d];
    return n;
}

char *cfxi_linalg_matrix_at(const cfx_tensor *t, const cfx_tensor *out, int64_t index)
{
    char *at = t->data;
    for (size_t d = (size_t)out->ndim - 2; d-- > 0; index /= out->size[d]) {
        if (d + t->ndim < out->ndim)
            continue;
        size_t from = d + t->ndim - out->ndim;
        if (t->size[from] != 1)
            at += index % out->size[d] * t->stride[from];
    }
    return at;
}

void cfxi_linalg_matrix_load(const cfx_tensor *t, const char *at, cfxi_z *a)
{
    for (int64_t i = 0; i < cfxi_linalg_rows(t); i++)
        for (int64_t j = 0; j < cfxi_linalg_columns(t); j++) {
            double x[2];
            cfxi_tensor_load_complex((cfx_dtype)t->dtype,
                                     at + i * t->stride[t->ndim - 2] + j * t->stride[t->ndim - 1],
                                     x);
            *a++ = CMPLX(x[0], x[1]);
        }
}

void cfxi_linalg_matrix_store(const cfx_tensor *t, char *at, const cfxi_z *a)
{
    for (int64_t i = 0; i < cfxi_linalg_rows(t); i++)
        for (int64_t j = 0; j < cfxi_linalg_columns(t); j++, a++) {
            const double x[2] = {creal(*a), cimag(*a)};
            cfxi_tensor_store_complex((cfx_dtype)t->dtype,
                                      at + i * t->stride[t->ndim - 2] + j * t->stride[t->ndim - 1],
                                      x);
        }
}

cfxi_z *cfxi_linalg_matrix_scratch(cfxi_call *c, int64_t n)
{
    size_t size;
    cfxi_z *z =
        cfxi_base_mul_size((size_t)n, sizeof *z, 1, &size) ? cfxi_rt_scratch(c->rt, size) : NULL;
    if (!z)
        cfxi_base_nomem(c->err);
    return z;
}

/* ---- LU ------------------------------------------------------------------------------------ */

static double size_of(cfxi_z x) { return fabs(creal(x)) + fabs(cimag(x)); }

/* a = P L U in place, n x n; rows[i] is the row that came to be row i. Returns the sign of the
 * permutation, and in *zero the first zero on the diagonal (counted from 1), or 0. */
static int decompose_lu(cfxi_z *a, int64_t n, int64_t *rows, int64_t *zero)
{
    int sign = 1;
    *zero = 0;
    for (int64_t i = 0; i < n; i++)
        rows[i] = i;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            if (size_of(a[i * n + k]) > size_of(a[best * n + k]))
                best = i;
        if (a[best * n + k] == 0) {
            *zero = *zero ? *zero : k + 1;
            continue;
        }
        for (int64_t j = 0; best != k && j < n; j++) {
            cfxi_z t = a[k * n + j];
            a[k * n + j] = a[best * n + j];
            a[best * n + j] = t;
        }
        if (best != k) {
            int64_t t = rows[k];
            rows[k] = rows[best];
            rows[best] = t;
            sign = -sign;
        }
        for (int64_t i = k + 1; i < n; i++) {
            cfxi_z f = a[i * n + k] / a[k * n + k];
            a[i * n + k] = f;
            for (int64_t j = k + 1; f != 0 && j < n; j++)
                a[i * n + j] -= cfxi_linalg_z_mul(f, a[k * n + j]);
        }
    }
    return sign;
}

/* x (n x k) = U^-1 L^-1 P b */
static void lu_solve(const cfxi_z *lu, const int64_t *rows, int64_t n, const cfxi_z *b, int64_t k,
                     cfxi_z *x)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++) {
            cfxi_z sum = b[rows[i] * k + j];
            for (int64_t p = 0; p < i; p++)
                sum -= cfxi_linalg_z_mul(lu[i * n + p], x[p * k + j]);
            x[i * k + j] = sum;
        }
    for (int64_t i = n; i-- > 0;)
        for (int64_t j = 0; j < k; j++) {
            cfxi_z sum = x[i * k + j];
            for (int64_t p = i + 1; p < n; p++)
                sum -= cfxi_linalg_z_mul(lu[i * n + p], x[p * k + j]);
            x[i * k + j] = sum / lu[i * n + i];
        }
}

/* ---- determinant --------------------------------------------------------------------------- */

cfx_status cfxi_rule_linalg_det(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    CFX_TRY(cfxi_linalg_check_square(c, a, "linalg.det"));
    return cfxi_rt_result(c, 0, (cfx_dtype)a->dtype, a->size, (size_t)a->ndim - 2);
}

cfx_status cfxi_kernel_linalg_det(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    cfx_tensor *out = cfxi_rt_result_at(c, 0);
    int64_t n = cfxi_linalg_rows(a);
    cfxi_z *lu = cfxi_linalg_matrix_scratch(c, n * n + n);
    if (!lu)
        return CFX_E_NOMEM;
    for (int64_t i = 0, count = cfxi_linalg_matrix_count(a); i < count; i++) {
        int64_t zero;
        cfxi_linalg_matrix_load(a, cfxi_linalg_matrix_at(a, a, i), lu);
        cfxi_z det = decompose_lu(lu, n, (int64_t *)(lu + n * n), &zero);
        for (int64_t k = 0; k < n; k++)
            det = cfxi_linalg_z_mul(det, lu[k * n + k]);
        const double x[2] = {creal(det), cimag(det)};
        cfxi_tensor_store_complex((cfx_dtype)out->dtype,
                                  out->data + i * (int64_t)cfxi_tensor_itemsize(out), x);
    }
    cfxi_rt_scratch_free(c->rt, lu);
    return CFX_OK;
}

/* ---- inverse ------------------------------------------------------------------------------- */

cfx_status cfxi_rule_linalg_inv(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    CFX_TRY(cfxi_linalg_check_square(c, a, "linalg.inv"));
    return cfxi_linalg_matrix_result(c, 0, (cfx_dtype)a->dtype, a, cfxi_linalg_rows(a),
                                     cfxi_linalg_columns(a));
}

cfx_status cfxi_kernel_linalg_inv(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    cfx_tensor *out = cfxi_rt_result_at(c, 0);
    int64_t n = cfxi_linalg_rows(a);
    cfx_status status = CFX_OK;
    cfxi_z *lu = cfxi_linalg_matrix_scratch(c, 3 * n * n + n);
    if (!lu)
        return CFX_E_NOMEM;
    cfxi_z *unit = lu + n * n;
    cfxi_z *x = unit + n * n;
    int64_t *rows = (int64_t *)(x + n * n);
    for (int64_t k = 0; k < n * n; k++)
        unit[k] = k % (n + 1) == 0;
    for (int64_t i = 0, count = cfxi_linalg_matrix_count(a); i < count && status == CFX_OK; i++) {
        int64_t zero;
        cfxi_linalg_matrix_load(a, cfxi_linalg_matrix_at(a, a, i), lu);
        decompose_lu(lu, n, rows, &zero);
        lu_solve(lu, rows, n, unit, n, x);
        if (zero)
            status = cfxi_fail(c, CFX_E_SHAPE, "linalg.inv: The diagonal element %lld is zero, the "
                               "inversion could not be completed because the input matrix is "
                               "singular.", (long long)zero);
        cfxi_linalg_matrix_store(out, cfxi_linalg_matrix_at(out, out, i), x);
    }
    cfxi_rt_scratch_free(c->rt, lu);
    return status;
}

/* ---- A X = B ------------------------------------------------------------------------------- */

/* Whether B holds vectors: one dimension, or one less than A with the same batch. */
static bool holds_vectors(cfxi_call *c, const cfx_tensor *a, const cfx_tensor *b)
{
    bool same = b->ndim + 1 == a->ndim;
    for (size_t d = 0; same && d < b->ndim; d++)
        same = cfxi_rt_same_size(c, a->size[d], b->size[d]);
    return b->ndim == 1 || same;
}

cfx_status cfxi_rule_linalg_solve(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    cfx_tensor b = cfxi_linalg_shown(cfxi_rt_tensor(c, 1));
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    bool left = cfxi_rt_bool(c, 2);
    CFX_TRY(cfxi_linalg_check_square(c, a, "linalg.solve"));
    if (b.dtype != a->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.solve: Expected A and B to have the same dtype, "
                         "but found A of type %s and B of type %s instead",
                         cfx_dtype_name((cfx_dtype)a->dtype), cfx_dtype_name((cfx_dtype)b.dtype));
    bool vectors = holds_vectors(c, a, &b);
    if (vectors && !left)
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.solve: Vector broadcasting of the left hand side "
                         "is not supported for left=False");
    if (vectors)
        cfxi_linalg_unsqueeze(&b, b.ndim);
    if (b.ndim < 2 || !cfxi_rt_same_size(c, cfxi_linalg_rows(a),
                                         left ? cfxi_linalg_rows(&b) : cfxi_linalg_columns(&b)))
        return cfxi_fail(c, CFX_E_SHAPE, "linalg.solve: Incompatible shapes of A and B for the "
                         "equation %s = B", left ? "AX" : "XA");
    cfx_tensor batch_a = cfxi_linalg_shown(a);
    cfx_tensor batch_b = cfxi_linalg_shown(&b);
    batch_a.ndim = (uint8_t)(a->ndim - 2), batch_b.ndim = (uint8_t)(b.ndim - 2);
    const cfx_tensor *both[] = {&batch_a, &batch_b};
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));
    sizes[ndim++] = cfxi_linalg_rows(&b);
    if (!vectors)
        sizes[ndim++] = cfxi_linalg_columns(&b);
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)a->dtype, sizes, ndim));
    if (!c->infer && left)
        make_column_major(cfxi_rt_result_at(c, 0));
    return CFX_OK;
}

static void transpose(cfx_tensor *t)
{
    size_t n = t->ndim;
    int64_t size = t->size[n - 1];
    int64_t stride = t->stride[n - 1];
    t->size[n - 1] = t->size[n - 2], t->stride[n - 1] = t->stride[n - 2];
    t->size[n - 2] = size, t->stride[n - 2] = stride;
}

cfx_status cfxi_kernel_linalg_solve(cfxi_call *c)
{
    cfx_tensor a = cfxi_linalg_shown(cfxi_rt_tensor(c, 0));
    cfx_tensor b = cfxi_linalg_shown(cfxi_rt_tensor(c, 1));
    cfx_tensor out = cfxi_linalg_shown(cfxi_rt_result_at(c, 0));
    cfx_status status = CFX_OK;
    if (holds_vectors(c, &a, &b)) {
        cfxi_linalg_unsqueeze(&b, b.ndim);
        cfxi_linalg_unsqueeze(&out, out.ndim);
    }
    if (!cfxi_rt_bool(c, 2)) {  /* X A = B is A' X' = B' */
        transpose(&a);
        transpose(&b);
        transpose(&out);
    }
    int64_t n = cfxi_linalg_rows(&a);
    int64_t k = cfxi_linalg_columns(&b);
    cfxi_z *lu = cfxi_linalg_matrix_scratch(c, n * n + 2 * n * k + n);
    if (!lu)
        return CFX_E_NOMEM;
    cfxi_z *right = lu + n * n;
    cfxi_z *x = right + n * k;
    int64_t *rows = (int64_t *)(x + n * k);
    for (int64_t i = 0, count = cfxi_linalg_matrix_count(&out); i < count && status == CFX_OK;
         i++) {
        int64_t zero;
        cfxi_linalg_matrix_load(&a, cfxi_linalg_matrix_at(&a, &out, i), lu);
        cfxi_linalg_matrix_load(&b, cfxi_linalg_matrix_at(&b, &out, i), right);
        decompose_lu(lu, n, rows, &zero);
        lu_solve(lu, rows, n, right, k, x);
        if (zero)
            status = cfxi_fail(c, CFX_E_SHAPE, "torch.linalg.solve: The solver failed because the "
                               "input matrix is singular.");
        cfxi_linalg_matrix_store(&out, cfxi_linalg_matrix_at(&out, &out, i), x);
    }
    cfxi_rt_scratch_free(c->rt, lu);
    return status;
}

/* ---- triangular systems -------------------------------------------------------------------- */

enum { TRIANGLE, RIGHT, UPPER, LEFT, UNIT };

cfx_status cfxi_rule_linalg_solve_triangular(cfxi_call *c)
{
    const char *name = "linalg.solve_triangular";
    const cfx_tensor *a = cfxi_rt_tensor(c, TRIANGLE);
    const cfx_tensor *b = cfxi_rt_tensor(c, RIGHT);
    const bool left = cfxi_rt_bool(c, LEFT);
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    if (a->ndim < 2 || b->ndim < 2)
        return cfxi_fail(c, CFX_E_SHAPE, "%s: The input tensor %c must have at least 2 dimensions.",
                         name, a->ndim < 2 ? 'A' : 'B');
    if (!cfxi_rt_same_size(c, cfxi_linalg_rows(a), cfxi_linalg_columns(a)))
        return cfxi_fail(c, CFX_E_SHAPE, "%s: A must be batches of square matrices, but they are "
                         "%lld by %lld matrices", name, (long long)cfxi_linalg_rows(a),
                         (long long)cfxi_linalg_columns(a));
    if (!cfxi_rt_same_size(c, cfxi_linalg_rows(a),
                           left ? cfxi_linalg_rows(b) : cfxi_linalg_columns(b)))
        return cfxi_fail(c, CFX_E_SHAPE, "%s: Incompatible shapes of A and B for the equation "
                         "%s = B", name, left ? "AX" : "XA");
    if (!cfx_dtype_is_complex((cfx_dtype)a->dtype) && a->dtype != CFX_DTYPE_FLOAT32 &&
        a->dtype != CFX_DTYPE_FLOAT64)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "%s is not implemented for %s", name,
                         cfx_dtype_name((cfx_dtype)a->dtype));
    cfx_tensor batch_a = cfxi_linalg_shown(a);
    cfx_tensor batch_b = cfxi_linalg_shown(b);
    batch_a.ndim = (uint8_t)(a->ndim - 2), batch_b.ndim = (uint8_t)(b->ndim - 2);
    const cfx_tensor *both[] = {&batch_a, &batch_b};
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));
    sizes[ndim++] = cfxi_linalg_rows(b);
    sizes[ndim++] = cfxi_linalg_columns(b);
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)a->dtype, sizes, ndim));
    if (!c->infer)
        make_column_major(cfxi_rt_result_at(c, 0));
    return CFX_OK;
}

/* Without C's detour for infinities, so that a zero on the diagonal acts as in real numbers. */
static cfxi_z quotient(cfxi_z a, cfxi_z b)
{
    return cimag(b) == 0 ? CMPLX(creal(a) / creal(b), cimag(a) / creal(b)) : a / b;
}

/* x (n x k) becomes the solution of a x = x, where what is on the other side of a's diagonal does
 * not count, nor the diagonal if it is all ones. */
static void substitute(const cfxi_z *a, int64_t n, cfxi_z *x, int64_t k, bool upper, bool unit)
{
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = upper ? n - 1 - step : step;
        for (int64_t p = upper ? i + 1 : 0; p < (upper ? n : i); p++)
            for (int64_t j = 0; j < k; j++)
                x[i * k + j] -= cfxi_linalg_z_mul(a[i * n + p], x[p * k + j]);
        for (int64_t j = 0; !unit && j < k; j++)
            x[i * k + j] = quotient(x[i * k + j], a[i * n + i]);
    }
}

cfx_status cfxi_kernel_linalg_solve_triangular(cfxi_call *c)
{
    cfx_tensor a = cfxi_linalg_shown(cfxi_rt_tensor(c, TRIANGLE));
    cfx_tensor b = cfxi_linalg_shown(cfxi_rt_tensor(c, RIGHT));
    cfx_tensor out = cfxi_linalg_shown(cfxi_rt_result_at(c, 0));
    bool upper = cfxi_rt_bool(c, UPPER);
    if (!cfxi_rt_bool(c, LEFT)) {  /* X A = B is A' X' = B' */
        transpose(&a);
        transpose(&b);
        transpose(&out);
        upper = !upper;
    }
    const int64_t n = cfxi_linalg_rows(&a);
    const int64_t k = cfxi_linalg_columns(&b);
    cfxi_z *matrix = cfxi_linalg_matrix_scratch(c, n * n + n * k);
    if (!matrix)
        return CFX_E_NOMEM;
    for (int64_t i = 0, count = cfxi_linalg_matrix_count(&out); i < count; i++) {
        cfxi_linalg_matrix_load(&a, cfxi_linalg_matrix_at(&a, &out, i), matrix);
        cfxi_linalg_matrix_load(&b, cfxi_linalg_matrix_at(&b, &out, i), matrix + n * n);
        substitute(matrix, n, matrix + n * n, k, upper, cfxi_rt_bool(c, UNIT));
        cfxi_linalg_matrix_store(&out, cfxi_linalg_matrix_at(&out, &out, i), matrix + n * n);
    }
    cfxi_rt_scratch_free(c->rt, matrix);
    return CFX_OK;
}

/* ---- Cholesky ------------------------------------------------------------------------------ */

cfx_status cfxi_rule_linalg_cholesky(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    CFX_TRY(cfxi_linalg_check_square(c, a, "linalg.cholesky"));
    return cfxi_linalg_matrix_result(c, 0, (cfx_dtype)a->dtype, a, cfxi_linalg_rows(a),
                                     cfxi_linalg_columns(a));
}

/* The lower triangle of `a` becomes L, the rest 0; returns the minor that is not positive. */
static int64_t cholesky(cfxi_z *a, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double d = creal(a[j * n + j]);
        for (int64_t p = 0; p < j; p++)
            d -= creal(cfxi_linalg_z_mul(a[j * n + p], conj(a[j * n + p])));
        if (!(d > 0))
            return j + 1;
        a[j * n + j] = sqrt(d);
        for (int64_t i = j + 1; i < n; i++) {
            cfxi_z sum = a[i * n + j];
            for (int64_t p = 0; p < j; p++)
                sum -= cfxi_linalg_z_mul(a[i * n + p], conj(a[j * n + p]));
            a[i * n + j] = sum / creal(a[j * n + j]);
            a[j * n + i] = 0;
        }
    }
    return 0;
}

cfx_status cfxi_kernel_linalg_cholesky(cfxi_call *c)
{
    cfx_tensor a = cfxi_linalg_shown(cfxi_rt_tensor(c, 0));
    cfx_tensor out = cfxi_linalg_shown(cfxi_rt_result_at(c, 0));
    cfx_status status = CFX_OK;
    int64_t n = cfxi_linalg_rows(&a);
    bool upper = cfxi_rt_bool(c, 1);
    cfxi_z *l = cfxi_linalg_matrix_scratch(c, n * n);
    if (!l)
        return CFX_E_NOMEM;
    if (upper) {  /* U = L^H of the transposed (conjugated) matrix */
        transpose(&a);
        transpose(&out);
    }
    for (int64_t i = 0, count = cfxi_linalg_matrix_count(&a); i < count && status == CFX_OK; i++) {
        cfxi_linalg_matrix_load(&a, cfxi_linalg_matrix_at(&a, &a, i), l);
        for (int64_t k = 0; upper && k < n * n; k++)
            l[k] = conj(l[k]);
        int64_t minor = cholesky(l, n);
        for (int64_t k = 0; upper && k < n * n; k++)
            l[k] = conj(l[k]);
        if (minor)
            status = cfxi_fail(c, CFX_E_SHAPE, "linalg.cholesky: The factorization could not be "
                               "completed because the input is not positive-definite (the leading "
                               "minor of order %lld is not positive-definite).", (long long)minor);
        cfxi_linalg_matrix_store(&out, cfxi_linalg_matrix_at(&out, &out, i), l);
    }
    cfxi_rt_scratch_free(c->rt, l);
    return status;
}

/* ---- QR ------------------------------------------------------------------------------------ */

cfx_status cfxi_rule_linalg_qr(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    const char *mode = cfxi_rt_str(c, 1);
    CFX_TRY(cfxi_linalg_check_matrices(c, a, "linalg.qr"));
    bool complete = strcmp(mode, "complete") == 0;
    bool only_r = strcmp(mode, "r") == 0;
    if (!complete && !only_r && strcmp(mode, "reduced") != 0)
        return cfxi_fail(c, CFX_E_SHAPE, "qr received unrecognized mode '%s' but expected one of "
                         "'reduced' (default), 'r', or 'complete'", mode);
    int64_t m = cfxi_linalg_rows(a);
    int64_t n = cfxi_linalg_columns(a);
    int64_t k = complete ? m : cfx_dim_min(c->dims, m, n, c->err);
    const int64_t none = 0;
    cfx_dtype dtype = (cfx_dtype)a->dtype;
    CFX_TRY(only_r ? cfxi_rt_result(c, 0, dtype, &none, 1)
                   : cfxi_linalg_matrix_result(c, 0, dtype, a, m, k));
    return cfxi_linalg_matrix_result(c, 1, dtype, a, k, n);
}

/* One reflection: column k of `a` (m x n) below the diagonal becomes 0; q (m x m) is multiplied by
 * it from the right. As LAPACK has it, the diagonal is real, with the sign that does not cancel;
 * a last column of one element is left if it is real. */
static void reflect(cfxi_z *a, int64_t m, int64_t n, int64_t k, cfxi_z *q, cfxi_z *v)
{
    double below = 0;
    for (int64_t i = k + 1; i < m; i++)
        below += creal(cfxi_linalg_z_mul(a[i * n + k], conj(a[i * n + k])));
    cfxi_z alpha = a[k * n + k];
    if (below == 0 && cimag(alpha) == 0)
        return;
    double norm = sqrt(below + creal(cfxi_linalg_z_mul(alpha, conj(alpha))));
    double beta = creal(alpha) > 0 || (creal(alpha) == 0 && !signbit(creal(alpha))) ? -norm : norm;
    cfxi_z tau = CMPLX((beta - creal(alpha)) / beta, -cimag(alpha) / beta);
    for (int64_t i = k; i < m; i++)
        v[i] = i == k ? 1 : a[i * n + k] / (alpha - beta);
    for (int64_t j = k; j < n; j++) {  /* a = (1 - conj(tau) v v^H) a */
        cfxi_z sum = 0;
        for (int64_t i = k; i < m; i++)
            sum += cfxi_linalg_z_mul(conj(v[i]), a[i * n + j]);
        sum = cfxi_linalg_z_mul(sum, conj(tau));
        for (int64_t i = k; i < m; i++)
            a[i * n + j] -= cfxi_linalg_z_mul(v[i], sum);
    }
    for (int64_t i = k + 1; i < m; i++)
        a[i * n + k] = 0;
    for (int64_t i = 0; q && i < m; i++) {  /* q = q (1 - tau v v^H) */
        cfxi_z sum = 0;
        for (int64_t j = k; j < m; j++)
            sum += cfxi_linalg_z_mul(q[i * m + j], v[j]);
        sum = cfxi_linalg_z_mul(sum, tau);
        for (int64_t j = k; j < m; j++)
            q[i * m + j] -= cfxi_linalg_z_mul(sum, conj(v[j]));
    }
}

/* The first columns of rows of `from` (`width` each), packed. */
static void take_columns(cfxi_z *to, const cfxi_z *from, int64_t rows, int64_t width,
                         int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        memmove(to + i * columns, from + i * width, (size_t)columns * sizeof *to);
}

cfx_status cfxi_kernel_linalg_qr(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    cfx_tensor *q_out = cfxi_rt_result_at(c, 0);
    cfx_tensor *r_out = cfxi_rt_result_at(c, 1);
    int64_t m = cfxi_linalg_rows(a);
    int64_t n = cfxi_linalg_columns(a);
    bool only_r = q_out->ndim < 2;
    cfxi_z *r = cfxi_linalg_matrix_scratch(c, m * n + m * m + m);
    if (!r)
        return CFX_E_NOMEM;
    cfxi_z *q = r + m * n;
    for (int64_t i = 0, count = cfxi_linalg_matrix_count(a); i < count; i++) {
        cfxi_linalg_matrix_load(a, cfxi_linalg_matrix_at(a, a, i), r);
        for (int64_t k = 0; k < m * m; k++)
            q[k] = k % (m + 1) == 0;
        for (int64_t k = 0; k < m && k < n; k++)
            reflect(r, m, n, k, only_r ? NULL : q, q + m * m);
        cfxi_linalg_matrix_store(r_out, cfxi_linalg_matrix_at(r_out, r_out, i), r);
        if (only_r)
            continue;
        take_columns(q, q, m, m, cfxi_linalg_columns(q_out));
        cfxi_linalg_matrix_store(q_out, cfxi_linalg_matrix_at(q_out, q_out, i), q);
    }
    cfxi_rt_scratch_free(c->rt, r);
    return CFX_OK;
}
