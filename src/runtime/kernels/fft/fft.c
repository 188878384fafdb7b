/* fft.c - the rows of Fourier transforms: of complex numbers, of real ones to the half that
 * determines the rest, and back.
 *
 * All of them compute in double complex, on a copy whose dimensions have the full lengths: a pass
 * for each dimension transforms its lines. Results lie in memory as PyTorch leaves them: the
 * dimensions that are transformed innermost, the others in the order of the input's strides.
 */
#include "fft_impl.h"

#include "dim/dim_impl.h"
#include "runtime/view_impl.h"

#include <math.h>

typedef double complex z;

typedef enum kind { TO_COMPLEX, TO_HALF, TO_REAL } kind;  /* c2c, r2c, c2r */

/* What a call asks for. Sizes may be symbols in a rule. */
typedef struct plan {
    kind kind;
    int sign;
    bool whole;                  /* TO_HALF gives all of it */
    size_t n;                    /* of dims; the last is the one that is halved */
    size_t dims[CFX_MAX_DIMS];
    int64_t full[CFX_MAX_DIMS];  /* the length of each dimension of the tensor */
    int64_t in[CFX_MAX_DIMS];    /* how much of it the input gives, at most */
    int64_t out[CFX_MAX_DIMS];
    double power;                /* the result is divided by the number of elements to this power */
} plan;

static const struct {
    cfx_operator op;
    kind kind;
    int sign;
    bool list;  /* (self, s, dims, norm), else (self, n, dim, norm) */
} rows[] = {
    {CFX_OPID_fft_fft, TO_COMPLEX, -1, false},   {CFX_OPID_fft_ifft, TO_COMPLEX, 1, false},
    {CFX_OPID_fft_rfft, TO_HALF, -1, false},     {CFX_OPID_fft_irfft, TO_REAL, 1, false},
    {CFX_OPID_fft_ihfft, TO_HALF, 1, false},     {CFX_OPID_fft_hfft, TO_REAL, -1, false},
    {CFX_OPID_fft_fft2, TO_COMPLEX, -1, true},   {CFX_OPID_fft_ifft2, TO_COMPLEX, 1, true},
    {CFX_OPID_fft_rfft2, TO_HALF, -1, true},     {CFX_OPID_fft_irfft2, TO_REAL, 1, true},
    {CFX_OPID_fft_fftn, TO_COMPLEX, -1, true},   {CFX_OPID_fft_ifftn, TO_COMPLEX, 1, true},
    {CFX_OPID_fft_rfftn, TO_HALF, -1, true},     {CFX_OPID_fft_irfftn, TO_REAL, 1, true},
};

enum { SELF, N, DIM, NORM };
enum { C2C_DIM = 1, NORMALIZATION, LAST };  /* of _fft_c2c, _fft_r2c and _fft_c2r */

/* ---- reading arguments --------------------------------------------------------------------- */

static cfx_status read_norm(cfxi_call *c, plan *p)
{
    const char *norm = cfxi_rt_is_none(c, NORM) ? "backward" : cfxi_rt_str(c, NORM);
    if (strcmp(norm, "ortho") == 0)
        p->power = 0.5;
    else if (strcmp(norm, "backward") == 0 || strcmp(norm, "forward") == 0)
        p->power = (p->sign < 0) == (norm[0] == 'f');
    else
        return cfxi_fail(c, CFX_E_SHAPE, "Invalid normalization mode: \"%.40s\"", norm);
    return CFX_OK;
}

static cfx_status add_dim(cfxi_call *c, plan *p, int64_t dim)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, SELF);
    if (x->ndim == 0)
        return cfxi_fail(c, CFX_E_INDEX, "Dimension specified as %lld but tensor has no dimensions",
                         (long long)dim);
    CFX_TRY(cfxi_rt_dim(c, dim, x->ndim, &p->dims[p->n]));
    for (size_t i = 0; i < p->n; i++)
        if (p->dims[i] == p->dims[p->n])
            return cfxi_fail(c, CFX_E_SHAPE, "FFT dims must be unique");
    p->n++;
    return CFX_OK;
}

/* The length that a dimension is to have: -1 leaves it to the input. */
static cfx_status set_length(cfxi_call *c, plan *p, size_t i, int64_t length)
{
    const size_t d = p->dims[i];
    const bool half = p->kind == TO_REAL && i + 1 == p->n;
    const int64_t size = cfxi_rt_tensor(c, SELF)->size[d];
    if (length == -1)
        length = half ? cfx_dim_mul(c->dims, 2, cfx_dim_sub(c->dims, size, 1, c->err), c->err)
                      : size;
    CFX_TRY(c->err->status);
    if (length < 1 && !cfx_dim_is_symbol(length))
        return cfxi_fail(c, CFX_E_SHAPE, "Invalid number of data points (%lld) specified",
                         (long long)length);
    p->full[d] = p->in[d] = p->out[d] = length;
    if (i + 1 == p->n && (half || (p->kind == TO_HALF && !p->whole))) {
        int64_t *halved = half ? &p->in[d] : &p->out[d];
        *halved = cfx_dim_add(c->dims, cfx_dim_div(c->dims, length, 2, c->err), 1, c->err);
    }
    return c->err->status;
}

static cfx_status read_lists(cfxi_call *c, plan *p)
{
    const size_t ndim = cfxi_rt_tensor(c, SELF)->ndim;
    int64_t sizes[CFX_MAX_DIMS];
    int64_t dims[CFX_MAX_DIMS];
    size_t n_sizes;
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, N, sizes, &n_sizes));
    CFX_TRY(cfxi_rt_ints(c, DIM, dims, &n));
    if (!cfxi_rt_is_none(c, N) && !cfxi_rt_is_none(c, DIM) && n_sizes != n)
        return cfxi_fail(c, CFX_E_SHAPE, "When given, dim and shape arguments must have the same "
                         "length");
    if (n_sizes > ndim)
        return cfxi_fail(c, CFX_E_SHAPE, "Got shape with %zu values but input tensor only has %zu "
                         "dimensions.", n_sizes, ndim);
    if (cfxi_rt_is_none(c, DIM)) {
        n = cfxi_rt_is_none(c, N) ? ndim : n_sizes;
        for (size_t i = 0; i < n; i++)
            dims[i] = (int64_t)(ndim - n + i);
    }
    for (size_t i = 0; i < n; i++)
        CFX_TRY(add_dim(c, p, dims[i]));
    for (size_t i = 0; i < n; i++)
        CFX_TRY(set_length(c, p, i, cfxi_rt_is_none(c, N) ? -1 : sizes[i]));
    return CFX_OK;
}

/* The three rows that PyTorch's own are made of. */
static cfx_status read_plain(cfxi_call *c, plan *p)
{
    int64_t dims[CFX_MAX_DIMS];
    size_t n;
    const bool back = c->op == CFX_OPID__fft_c2r;
    p->kind = back ? TO_REAL : c->op == CFX_OPID__fft_r2c ? TO_HALF : TO_COMPLEX;
    p->sign = back || (p->kind == TO_COMPLEX && !cfxi_rt_bool(c, LAST)) ? 1 : -1;
    p->whole = p->kind == TO_HALF && !cfxi_rt_bool(c, LAST);
    p->power = 0.5 * (double)cfxi_rt_int(c, NORMALIZATION);
    if (cfxi_rt_int(c, NORMALIZATION) < 0 || cfxi_rt_int(c, NORMALIZATION) > 2)
        return cfxi_fail(c, CFX_E_SHAPE, "Unsupported normalization type");
    CFX_TRY(cfxi_rt_ints(c, C2C_DIM, dims, &n));
    for (size_t i = 0; i < n; i++)
        CFX_TRY(add_dim(c, p, dims[i]));
    for (size_t i = 0; i < n; i++)
        CFX_TRY(set_length(c, p, i, back && i + 1 == n ? cfxi_rt_int(c, LAST) : -1));
    return CFX_OK;
}

static cfx_status read_plan(cfxi_call *c, plan *p)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, SELF);
    *p = (plan){.n = 0};
    for (size_t d = 0; d < x->ndim; d++)
        p->full[d] = p->in[d] = p->out[d] = x->size[d];
    size_t i = 0;
    while (i < sizeof rows / sizeof *rows && rows[i].op != c->op)
        i++;
    if (i == sizeof rows / sizeof *rows)
        return read_plain(c, p);
    p->kind = rows[i].kind;
    p->sign = rows[i].sign;
    CFX_TRY(read_norm(c, p));
    if (rows[i].list)
        return read_lists(c, p);
    CFX_TRY(add_dim(c, p, cfxi_rt_int(c, DIM)));
    if (!cfxi_rt_is_none(c, N) && cfxi_rt_int(c, N) == -1)
        return cfxi_fail(c, CFX_E_SHAPE, "Invalid number of data points (-1) specified");
    return set_length(c, p, 0, cfxi_rt_is_none(c, N) ? -1 : cfxi_rt_int(c, N));
}

/* ---- the rule ------------------------------------------------------------------------------ */

static cfx_status result_type(cfxi_call *c, const plan *p, cfx_dtype *out)
{
    const cfx_dtype given = cfx_tensor_dtype(cfxi_rt_tensor(c, SELF));
    const bool wide = given == CFX_DTYPE_FLOAT64 || given == CFX_DTYPE_COMPLEX128;
    if (given == CFX_DTYPE_FLOAT16 || given == CFX_DTYPE_BFLOAT16)
        return cfxi_fail(c, CFX_E_SHAPE, "Unsupported dtype %s", cfx_dtype_name(given));
    if (p->kind == TO_HALF && cfx_dtype_is_complex(given))
        return cfxi_fail(c, CFX_E_SHAPE, "expected a real input tensor, but got %s",
                         cfx_dtype_name(given));
    if (p->kind != TO_COMPLEX && p->n == 0)
        return cfxi_fail(c, CFX_E_SHAPE, "must transform at least one axis");
    if (p->kind == TO_REAL)
        *out = wide ? CFX_DTYPE_FLOAT64 : CFX_DTYPE_FLOAT32;
    else
        *out = wide ? CFX_DTYPE_COMPLEX128 : CFX_DTYPE_COMPLEX64;
    return CFX_OK;
}

/* Puts dimension d among those from order[first] on: longer strides before shorter ones. A tensor
 * that is padded is copied first, and the copy is contiguous. */
static void place(const cfx_tensor *x, bool padded, size_t first, size_t *n, size_t d,
                  uint8_t order[CFX_MAX_DIMS])
{
    size_t at = (*n)++;
    for (; at > first; at--) {
        const size_t before = order[at - 1];
        if (padded ? before < d : x->stride[before] >= x->stride[d])
            break;
        order[at] = (uint8_t)before;
    }
    order[at] = (uint8_t)d;
}

/* Outermost first: dimensions that are not transformed, then those that are; one that is halved
 * last. */
static void layout_order(const cfx_tensor *x, const plan *p, uint8_t order[CFX_MAX_DIMS])
{
    bool padded = false;
    bool passed[CFX_MAX_DIMS] = {false};
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        passed[p->dims[i]] = true;
        padded = padded || p->in[p->dims[i]] > x->size[p->dims[i]];
    }
    for (size_t d = 0; d < x->ndim; d++)
        if (!passed[d])
            place(x, padded, 0, &n, d, order);
    const size_t first = n;
    for (size_t i = 0; i < p->n; i++) {
        const bool halved = p->kind != TO_COMPLEX && i + 1 == p->n;
        place(x, padded, halved ? n : first, &n, p->dims[i], order);
    }
}

cfx_status cfxi_rule_fft(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, SELF);
    plan p;
    cfx_dtype dtype = CFX_DTYPE_COMPLEX64;
    uint8_t order[CFX_MAX_DIMS];
    CFX_TRY(read_plan(c, &p));
    CFX_TRY(result_type(c, &p, &dtype));
    CFX_TRY(cfxi_rt_result(c, 0, dtype, p.out, x->ndim));
    if (c->infer)
        return CFX_OK;
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    layout_order(x, &p, order);
    cfxi_tensor_ordered_strides(y->size, y->ndim, cfxi_tensor_itemsize(y), order, y->stride);
    return CFX_OK;
}

/* ---- the kernel ---------------------------------------------------------------------------- */

typedef void element_fn(const cfx_tensor *t, char *at, z *number, double factor);

static void load(const cfx_tensor *t, char *at, z *number, double factor)
{
    double parts[2];
    cfxi_tensor_load_complex(cfx_tensor_dtype(t), at, parts);
    *number = CMPLX(parts[0] * factor, parts[1] * factor);
}

static void store(const cfx_tensor *t, char *at, z *number, double factor)
{
    const double parts[2] = {creal(*number) * factor, cimag(*number) * factor};
    cfxi_tensor_store_complex(cfx_tensor_dtype(t), at, parts);
}

/* The next position, the last dimension first; false after the last one. */
static bool advance(int64_t *at, const int64_t *most, size_t ndim)
{
    for (size_t d = ndim; d-- > 0;) {
        if (++at[d] < most[d])
            return true;
        at[d] = 0;
    }
    return false;
}

/* `each` for the elements of `t` at positions below `most`, with their numbers in `work`, which has
 * the sizes `full`. */
static void exchange(const cfx_tensor *t, const int64_t *most, const int64_t *full, z *work,
                     element_fn *each, double factor)
{
    int64_t at[CFX_MAX_DIMS] = {0};
    int64_t steps[CFX_MAX_DIMS];
    int64_t step = 1;
    for (size_t d = t->ndim; d-- > 0; step *= full[d]) {
        steps[d] = step;
        if (most[d] == 0)
            return;
    }
    do {
        int64_t number = 0;
        int64_t offset = 0;
        for (size_t d = 0; d < t->ndim; d++) {
            number += at[d] * steps[d];
            offset += at[d] * t->stride[d];
        }
        each(t, t->data + offset, &work[number], factor);
    } while (advance(at, most, t->ndim));
}

/* The half that is not given: each number is the conjugate of the one as far from the other end. */
static void mirror(z *line, int64_t n)
{
    for (int64_t k = 1; 2 * k < n; k++)
        line[n - k] = conj(line[k]);
}

static cfx_status pass_over(cfxi_call *c, const plan *p, size_t dim, bool real, z *work,
                            int64_t count)
{
    const int64_t n = p->full[dim];
    int64_t inner = 1;
    cfxi_transform t;
    size_t size;
    for (size_t d = dim + 1; d < cfxi_rt_tensor(c, SELF)->ndim; d++)
        inner *= p->full[d];
    z *line = cfxi_base_mul_size((size_t)n, 2 * sizeof *line, 0, &size)
                  ? cfxi_rt_scratch(c->rt, size) : NULL;
    if (!line)
        return cfxi_base_nomem(c->err);
    cfx_status status = cfxi_fft_begin(c, &t, n, p->sign);
    for (int64_t i = 0; status == CFX_OK && i < count / n; i++) {
        z *first = work + i / inner * inner * n + i % inner;
        for (int64_t k = 0; k < n; k++)
            line[k] = first[k * inner];
        if (real)
            mirror(line, n);
        cfxi_fft_run(&t, line, line + n);
        for (int64_t k = 0; k < n; k++)
            first[k * inner] = line[n + k];
    }
    cfxi_fft_end(c, &t);
    cfxi_rt_scratch_free(c->rt, line);
    return status;
}

static cfx_status compute(cfxi_call *c, const plan *p, z *work, int64_t count)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, SELF);
    const cfx_tensor *y = cfxi_rt_result_at(c, 0);
    int64_t given[CFX_MAX_DIMS];
    double length = 1;
    for (size_t d = 0; d < x->ndim; d++)
        given[d] = x->size[d] < p->in[d] ? x->size[d] : p->in[d];
    memset(work, 0, (size_t)count * sizeof *work);
    exchange(x, given, p->full, work, load, 1);
    for (size_t i = 0; i < p->n; i++) {
        CFX_TRY(pass_over(c, p, p->dims[i], p->kind == TO_REAL && i + 1 == p->n, work, count));
        length *= (double)p->full[p->dims[i]];
    }
    exchange(y, p->out, p->full, work, store, pow(length, -p->power));
    return CFX_OK;
}

static cfx_status run(cfxi_call *c)
{
    plan p;
    size_t count = 1;
    CFX_TRY(read_plan(c, &p));
    for (size_t d = 0; d < cfxi_rt_tensor(c, SELF)->ndim; d++) {
        if (p.full[d] == 0)
            return CFX_OK;
        if (!cfxi_base_mul_size(count, (size_t)p.full[d], 0, &count))
            return cfxi_base_nomem(c->err);
    }
    size_t size;
    z *work = cfxi_base_mul_size(count, sizeof *work, 0, &size) ? cfxi_rt_scratch(c->rt, size)
                                                                : NULL;
    if (!work)
        return cfxi_base_nomem(c->err);
    const cfx_status status = compute(c, &p, work, (int64_t)count);
    cfxi_rt_scratch_free(c->rt, work);
    return status;
}

cfx_status cfxi_kernel_fft_fft(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel_fft_ifft(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel_fft_rfft(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel_fft_irfft(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel_fft_hfft(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel_fft_ihfft(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel_fft_fft2(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel_fft_ifft2(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel_fft_rfft2(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel_fft_irfft2(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel_fft_fftn(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel_fft_ifftn(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel_fft_rfftn(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel_fft_irfftn(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel__fft_c2c(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel__fft_r2c(cfxi_call *c) { return run(c); }
cfx_status cfxi_kernel__fft_c2r(cfxi_call *c) { return run(c); }

/* ---- the middle first ---------------------------------------------------------------------- */

cfx_status cfxi_rule_fft_shift(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, SELF);
    int64_t dims[CFX_MAX_DIMS];
    cfx_datum lists[2][CFX_MAX_DIMS];
    cfx_datum args[3] = {c->args[SELF], cfx_datum_invalid(), cfx_datum_invalid()};
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, 1, dims, &n));
    for (; cfxi_rt_is_none(c, 1) && n < x->ndim; n++)
        dims[n] = (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        size_t d;
        CFX_TRY(cfxi_rt_dim(c, dims[i], x->ndim, &d));
        const int64_t size = x->ndim ? x->size[d] : 1;
        const bool known = !cfx_dim_is_symbol(size);  /* else only sizes are asked for */
        const int64_t shift = c->op == CFX_OPID_fft_fftshift ? size / 2 : size - size / 2;
        lists[0][i] = cfx_datum_int(known ? shift : 0);
        lists[1][i] = cfx_datum_int((int64_t)d);
    }
    for (size_t k = 0; k < 2; k++)
        args[1 + k] = cfx_datum_seq(CFX_DATUM_LIST, lists[k], n, c->rt->allocator, c->err);
    cfx_datum rolled = cfx_datum_invalid();
    if (args[1].kind != CFX_DATUM_INVALID && args[2].kind != CFX_DATUM_INVALID)
        rolled = n ? cfxi_rt_sub(c, CFX_OPID_roll, args, 3) : cfxi_rt_sub(c, CFX_OPID_clone, args,
                                                                         1);
    cfx_datum_release(args[1]);
    cfx_datum_release(args[2]);
    if (rolled.kind == CFX_DATUM_INVALID)
        return c->err->status;
    cfxi_rt_result_datum(c, 0, rolled);
    return CFX_OK;
}
