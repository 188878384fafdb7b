/* eigen.c - singular values and eigenvalues by Jacobi's rotations: slow for large matrices, but
 * accurate to the last bits, and short. */
#include "linalg_impl.h"

#include <math.h>

enum { MOST_SWEEPS = 60 };

/* ---- rotations ----------------------------------------------------------------------------- */

/* The rotation that makes a 2 x 2 Hermitian matrix (p, z; conj(z), q) diagonal: columns (x, y)
 * become (c x - s conj(phase) y, s phase x + c y). */
typedef struct rotation {
    double c, s;
    cfxi_z phase;
} rotation;

static rotation rotation_of(double p, double q, cfxi_z z)
{
    double size = cabs(z);
    double tau = (q - p) / (2 * size);
    double t = (tau >= 0 ? 1 : -1) / (fabs(tau) + sqrt(1 + tau * tau));
    double c = 1 / sqrt(1 + t * t);
    return (rotation){c, c * t, z / size};
}

/* Rotates columns i and j of a matrix with `rows` rows of `width`. */
static void rotate_columns(cfxi_z *a, int64_t rows, int64_t width, int64_t i, int64_t j, rotation r)
{
    for (int64_t k = 0; k < rows; k++) {
        cfxi_z x = a[k * width + i];
        cfxi_z y = a[k * width + j];
        a[k * width + i] = r.c * x - cfxi_linalg_z_mul(r.s * conj(r.phase), y);
        a[k * width + j] = cfxi_linalg_z_mul(r.s * r.phase, x) + r.c * y;
    }
}

static cfxi_z column_product(const cfxi_z *a, int64_t rows, int64_t width, int64_t i, int64_t j)
{
    cfxi_z sum = 0;
    for (int64_t k = 0; k < rows; k++)
        sum += cfxi_linalg_z_mul(conj(a[k * width + i]), a[k * width + j]);
    return sum;
}

/* ---- singular values ----------------------------------------------------------------------- */

/* Rotates the columns of a (m x n, m >= n) until they are orthogonal; v (n x n, may be NULL)
 * likewise. */
static void make_orthogonal(cfxi_z *a, int64_t m, int64_t n, cfxi_z *v)
{
    bool done = false;
    for (int sweep = 0; !done && sweep < MOST_SWEEPS; sweep++) {
        done = true;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < n; j++) {
                cfxi_z z = column_product(a, m, n, i, j);
                double p = creal(column_product(a, m, n, i, i));
                double q = creal(column_product(a, m, n, j, j));
                if (cabs(z) == 0 || cabs(z) <= 1e-16 * sqrt(p * q))
                    continue;
                rotation r = rotation_of(p, q, z);
                done = false;
                rotate_columns(a, m, n, i, j, r);
                if (v)
                    rotate_columns(v, n, n, i, j, r);
            }
    }
}

static void swap_columns(cfxi_z *a, int64_t rows, int64_t width, int64_t i, int64_t j)
{
    for (int64_t k = 0; k < rows; k++) {
        cfxi_z t = a[k * width + i];
        a[k * width + i] = a[k * width + j];
        a[k * width + j] = t;
    }
}

/* Columns `from`.. of q (rows x rows, of which `from` are orthonormal) up to `to`: unit vectors,
 * made orthogonal to those before. */
static void complete_basis(cfxi_z *q, int64_t rows, int64_t from, int64_t to)
{
    for (int64_t next = 0; from < to && next < rows; next++) {
        double norm = 0;
        for (int64_t k = 0; k < rows; k++)
            q[k * rows + from] = k == next;
        for (int pass = 0; pass < 2; pass++)  /* twice is enough */
            for (int64_t j = 0; j < from; j++) {
                cfxi_z along = column_product(q, rows, rows, j, from);
                for (int64_t k = 0; k < rows; k++)
                    q[k * rows + from] -= cfxi_linalg_z_mul(along, q[k * rows + j]);
            }
        norm = sqrt(creal(column_product(q, rows, rows, from, from)));
        if (norm < 0.5 / sqrt((double)rows))
            continue;  /* it lay in what is there already */
        for (int64_t k = 0; k < rows; k++)
            q[k * rows + from] /= norm;
        from++;
    }
}

/* m >= n: a (destroyed) = u s v^H, u m x m. */
static void svd_tall(cfxi_z *a, int64_t m, int64_t n, double *s, cfxi_z *u, int64_t u_columns,
                     cfxi_z *v)
{
    for (int64_t k = 0; v && k < n * n; k++)
        v[k] = k % (n + 1) == 0;
    make_orthogonal(a, m, n, v);
    for (int64_t j = 0; j < n; j++)
        s[j] = sqrt(creal(column_product(a, m, n, j, j)));
    for (int64_t i = 0; i < n; i++) {
        int64_t best = i;
        for (int64_t j = i + 1; j < n; j++)
            best = s[j] > s[best] ? j : best;
        if (best == i)
            continue;
        double t = s[i];
        s[i] = s[best];
        s[best] = t;
        swap_columns(a, m, n, i, best);
        if (v)
            swap_columns(v, n, n, i, best);
    }
    int64_t rank = 0;
    while (u && rank < n && s[rank] > s[0] * 1e-15 * (double)m)
        rank++;
    for (int64_t j = 0; u && j < rank; j++)
        for (int64_t k = 0; k < m; k++)
            u[k * m + j] = a[k * n + j] / s[j];
    if (u)
        complete_basis(u, m, rank, u_columns);
}

/* Singular values of m x n (any), descending, in s[min(m, n)]. Unless u is NULL: u is m x m (its
 * first `columns` columns are wanted), v n x n: a = u s v^H. `work` has 2 * max(m, n)^2 + m * n
 * numbers. */
static void decompose_svd(const cfxi_z *a, int64_t m, int64_t n, double *s, cfxi_z *u,
                          int64_t u_columns, cfxi_z *v, int64_t v_columns, cfxi_z *work)
{
    if (m >= n) {
        memcpy(work, a, (size_t)(m * n) * sizeof *a);
        svd_tall(work, m, n, s, u, u_columns, v);
        return;
    }
    for (int64_t i = 0; i < m; i++)  /* a^H = v s u^H */
        for (int64_t j = 0; j < n; j++)
            work[j * m + i] = conj(a[i * n + j]);
    svd_tall(work, n, m, s, v, v_columns, u);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static bool is_finite(const cfxi_z *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(creal(a[i])) || !isfinite(cimag(a[i])))
            return false;
    return true;
}

cfx_status cfxi_rule_linalg_svd(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    int64_t sizes[CFX_MAX_DIMS];
    CFX_TRY(cfxi_linalg_check_matrices(c, a, "linalg.svd"));
    int64_t m = cfxi_linalg_rows(a);
    int64_t n = cfxi_linalg_columns(a);
    int64_t k = cfx_dim_min(c->dims, m, n, c->err);
    bool full = cfxi_rt_bool(c, 1);
    CFX_TRY(cfxi_linalg_matrix_result(c, 0, (cfx_dtype)a->dtype, a, m, full ? m : k));
    memcpy(sizes, a->size, sizeof sizes);
    sizes[a->ndim - 2] = k;
    CFX_TRY(cfxi_rt_result(c, 1, cfxi_linalg_real_type((cfx_dtype)a->dtype), sizes,
                           (size_t)a->ndim - 1));
    return cfxi_linalg_matrix_result(c, 2, (cfx_dtype)a->dtype, a, full ? n : k, n);
}

static void store_values(const cfx_tensor *t, int64_t first, const double *s, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        cfxi_tensor_store_float((cfx_dtype)t->dtype,
                                t->data + (first + k) * (int64_t)cfxi_tensor_itemsize(t), s[k]);
}

cfx_status cfxi_kernel_linalg_svd(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    cfx_tensor *out[] = {cfxi_rt_result_at(c, 0), cfxi_rt_result_at(c, 1), cfxi_rt_result_at(c, 2)};
    int64_t m = cfxi_linalg_rows(a);
    int64_t n = cfxi_linalg_columns(a);
    int64_t k = least(m, n);
    cfx_status status = CFX_OK;
    cfxi_z *z = cfxi_linalg_matrix_scratch(c, 2 * m * n + m * m + 2 * n * n + k + 1);
    if (!z)
        return CFX_E_NOMEM;
    cfxi_z *u = z + m * n;
    cfxi_z *v = u + m * m;
    cfxi_z *vh = v + n * n;
    cfxi_z *work = vh + n * n;
    double *s = (double *)(work + m * n);
    int64_t u_columns = cfxi_linalg_columns(out[0]);
    int64_t v_columns = cfxi_linalg_rows(out[2]);
    for (int64_t i = 0, count = cfxi_linalg_matrix_count(a); i < count && status == CFX_OK; i++) {
        cfxi_linalg_matrix_load(a, cfxi_linalg_matrix_at(a, a, i), z);
        if (!is_finite(z, m * n)) {
            status = cfxi_fail(c, CFX_E_SHAPE, "linalg.svd: The algorithm failed to converge "
                               "because the input matrix contained non-finite values.");
            break;
        }
        decompose_svd(z, m, n, s, u, u_columns, v, v_columns, work);
        for (int64_t r = 0; r < m; r++)
            memmove(u + r * u_columns, u + r * m, (size_t)u_columns * sizeof *u);
        for (int64_t r = 0; r < v_columns; r++)
            for (int64_t j = 0; j < n; j++)
                vh[r * n + j] = conj(v[j * n + r]);
        cfxi_linalg_matrix_store(out[0], cfxi_linalg_matrix_at(out[0], out[0], i), u);
        store_values(out[1], i * k, s, k);
        cfxi_linalg_matrix_store(out[2], cfxi_linalg_matrix_at(out[2], out[2], i), vh);
    }
    cfxi_rt_scratch_free(c->rt, z);
    return status;
}

cfx_tensor *cfxi_linalg_singular_values(cfxi_call *c, const cfx_tensor *t)
{
    int64_t sizes[CFX_MAX_DIMS];
    int64_t m = cfxi_linalg_rows(t);
    int64_t n = cfxi_linalg_columns(t);
    memcpy(sizes, t->size, sizeof sizes);
    sizes[t->ndim - 2] = least(m, n);
    cfx_tensor *out = cfx_tensor_new(cfxi_linalg_real_type((cfx_dtype)t->dtype), sizes,
                                     (size_t)t->ndim - 1, c->rt->allocator, c->err);
    cfxi_z *z = out ? cfxi_linalg_matrix_scratch(c, 2 * m * n + least(m, n) + 1) : NULL;
    if (!z) {
        cfx_tensor_release(out);
        return NULL;
    }
    for (int64_t i = 0, count = cfxi_linalg_matrix_count(t); i < count; i++) {
        double *s = (double *)(z + 2 * m * n);
        cfxi_linalg_matrix_load(t, cfxi_linalg_matrix_at(t, t, i), z);
        decompose_svd(z, m, n, s, NULL, 0, NULL, 0, z + m * n);
        store_values(out, i * least(m, n), s, least(m, n));
    }
    cfxi_rt_scratch_free(c->rt, z);
    return out;
}

/* ---- eigenvalues of Hermitian matrices ----------------------------------------------------- */

cfx_status cfxi_rule_linalg_eigh(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    const char *side = cfxi_rt_str(c, 1);
    CFX_TRY(cfxi_linalg_check_square(c, a, "linalg.eigh"));
    if (!side[0] || side[1] || !strchr("LUlu", side[0]))
        return cfxi_fail(c, CFX_E_SHAPE, "Expected UPLO argument to be 'L' or 'U', but got %s",
                         side);
    CFX_TRY(cfxi_rt_result(c, 0, cfxi_linalg_real_type((cfx_dtype)a->dtype), a->size,
                           (size_t)a->ndim - 1));
    return cfxi_linalg_matrix_result(c, 1, (cfx_dtype)a->dtype, a, cfxi_linalg_rows(a),
                                     cfxi_linalg_columns(a));
}

/* Rotates rows and columns of a (n x n, Hermitian) until it is diagonal; v collects them. */
static void diagonalize(cfxi_z *a, int64_t n, cfxi_z *v)
{
    bool done = false;
    for (int sweep = 0; !done && sweep < MOST_SWEEPS; sweep++) {
        done = true;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < n; j++) {
                cfxi_z z = a[i * n + j];
                double p = creal(a[i * n + i]);
                double q = creal(a[j * n + j]);
                if (cabs(z) == 0 || cabs(z) <= 1e-17 * (fabs(p) + fabs(q)))
                    continue;
                rotation r = rotation_of(p, q, z);
                done = false;
                rotate_columns(a, n, n, i, j, r);
                for (int64_t k = 0; k < n; k++) {  /* the rows, by the conjugate */
                    cfxi_z x = a[i * n + k];
                    cfxi_z y = a[j * n + k];
                    a[i * n + k] = r.c * x - cfxi_linalg_z_mul(r.s * r.phase, y);
                    a[j * n + k] = cfxi_linalg_z_mul(r.s * conj(r.phase), x) + r.c * y;
                }
                a[i * n + j] = a[j * n + i] = 0;
                rotate_columns(v, n, n, i, j, r);
            }
    }
}

/* From one triangle the whole matrix; the diagonal is real. */
static void mirror(cfxi_z *a, int64_t n, bool upper)
{
    for (int64_t i = 0; i < n; i++) {
        a[i * n + i] = creal(a[i * n + i]);
        for (int64_t j = 0; j < i; j++) {
            if (upper)
                a[i * n + j] = conj(a[j * n + i]);
            else
                a[j * n + i] = conj(a[i * n + j]);
        }
    }
}

cfx_status cfxi_kernel_linalg_eigh(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    cfx_tensor *values = cfxi_rt_result_at(c, 0);
    cfx_tensor *vectors = cfxi_rt_result_at(c, 1);
    int64_t n = cfxi_linalg_rows(a);
    cfx_status status = CFX_OK;
    cfxi_z *z = cfxi_linalg_matrix_scratch(c, 2 * n * n + n + 1);
    if (!z)
        return CFX_E_NOMEM;
    cfxi_z *v = z + n * n;
    double *w = (double *)(v + n * n);
    for (int64_t i = 0, count = cfxi_linalg_matrix_count(a); i < count && status == CFX_OK; i++) {
        cfxi_linalg_matrix_load(a, cfxi_linalg_matrix_at(a, a, i), z);
        mirror(z, n, strchr("Uu", cfxi_rt_str(c, 1)[0]) != NULL);
        if (!is_finite(z, n * n))
            status = cfxi_fail(c, CFX_E_SHAPE, "linalg.eigh: The algorithm failed to converge "
                               "because "
                               "the input matrix is ill-conditioned or has non-finite values.");
        for (int64_t k = 0; k < n * n; k++)
            v[k] = k % (n + 1) == 0;
        if (status == CFX_OK)
            diagonalize(z, n, v);
        for (int64_t k = 0; k < n; k++)
            w[k] = creal(z[k * n + k]);
        for (int64_t k = 0; k < n; k++) {
            int64_t best = k;
            for (int64_t j = k + 1; j < n; j++)
                best = w[j] < w[best] ? j : best;
            double t = w[k];
            w[k] = w[best];
            w[best] = t;
            swap_columns(v, n, n, k, best);
        }
        store_values(values, i * n, w, n);
        cfxi_linalg_matrix_store(vectors, cfxi_linalg_matrix_at(vectors, vectors, i), v);
    }
    cfxi_rt_scratch_free(c->rt, z);
    return status;
}
