/* tensor_copy.c - elements from one tensor to another, broadcast and converted. */
#include "runtime_impl.h"

enum { GRAIN = 65536, TURNED_GRAIN = 16384, BLOCK = 512, WIDEST = 16 };

typedef struct pair {
    cfx_dtype to;
    cfx_dtype from;
    size_t size;  /* of an element of both, if they are of one type */
    cfx_isa isa;
} pair;

/* ---- rows ---------------------------------------------------------------------------------- */

#define MOVE(type)                                                                                 \
    for (int64_t i = 0; i < n; i++)                                                                \
        *(type *)(to + i * to_step) = *(const type *)(from + i * from_step)

void cfxi_rt_move(size_t size, int64_t n, const char *from, int64_t from_step, char *to,
                  int64_t to_step)
{
    switch (size) {
    case 1: MOVE(uint8_t); break;
    case 2: MOVE(uint16_t); break;
    case 4: MOVE(uint32_t); break;
    case 8: MOVE(uint64_t); break;
    default:
        for (int64_t i = 0; i < n; i++)
            memmove(to + i * to_step, from + i * from_step, size);
    }
}

void cfxi_rt_repeat(size_t size, int64_t n, char *to)
{
    size_t all = size * (size_t)n;
    size_t done = size;
    if (size == 1) {
        memset(to, to[0], all);
        return;
    }
    for (; done < all && done < 4096; done *= 2)
        memcpy(to + done, to, done * 2 > all ? all - done : done);
    for (size_t step = done; done < all; done += step)
        memcpy(to + done, to, done + step > all ? all - done : step);
}

static void same_row(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    const pair *p = ctx;
    int64_t size = (int64_t)p->size;
    if (step[0] == size && step[1] == size) {
        memmove(at[0], at[1], (size_t)n * p->size);
    } else if (step[0] == size && step[1] == 0) {
        memmove(at[0], at[1], p->size);
        cfxi_rt_repeat(p->size, n, at[0]);
    } else {
        cfxi_rt_move(p->size, n, at[1], step[1], at[0], step[0]);
    }
}

static void converting_row(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    _Alignas(CFXI_ALIGN) char from[BLOCK * WIDEST];
    _Alignas(CFXI_ALIGN) char to[BLOCK * WIDEST];
    const pair *p = ctx;
    int64_t from_size = (int64_t)cfx_dtype_size(p->from);
    int64_t to_size = (int64_t)cfx_dtype_size(p->to);
    if (step[0] == to_size && step[1] == from_size) {
        cfxi_rt_convert(p->isa, p->to, at[0], p->from, at[1], n);
        return;
    }
    if (step[0] == to_size && step[1] == 0) {
        cfxi_rt_convert(p->isa, p->to, at[0], p->from, at[1], 1);
        cfxi_rt_repeat((size_t)to_size, n, at[0]);
        return;
    }
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t some = n - i < BLOCK ? n - i : BLOCK;
        cfxi_rt_move((size_t)from_size, some, at[1] + i * step[1], step[1], from, from_size);
        cfxi_rt_convert(p->isa, p->to, to, p->from, from, some);
        cfxi_rt_move((size_t)to_size, some, to, to_size, at[0] + i * step[0], step[0]);
    }
}

/* ---- transposes ---------------------------------------------------------------------------- */

/* Rows of the target are columns of the source: square tiles keep both in the cache. Pairs are rows
 * that need none. */
enum { TILE = 32, LEAST_SIDE = 4, LEAST_PAIRS = 8, PAIR_BAND = 512 };

typedef struct transpose {
    const pair *p;
    char *to;
    const char *from;
    int64_t rows, columns;      /* of the target: columns lie side by side there, rows in `from` */
    int64_t to_row, from_column;
    int64_t band;               /* rows that are done together */
    size_t outer;               /* dimensions around it */
    int64_t size[CFX_MAX_DIMS];
    int64_t to_step[CFX_MAX_DIMS];
    int64_t from_step[CFX_MAX_DIMS];
} transpose;

/* Bands of rows, numbered through all matrices. */
static void transpose_bands(void *ctx, int64_t begin, int64_t end)
{
    const transpose *t = ctx;
    int64_t bands = (t->rows + t->band - 1) / t->band;
    for (int64_t at = begin; at < end; at++) {
        char *to = t->to;
        const char *from = t->from;
        int64_t rest = at / bands;
        int64_t row = at % bands * t->band;
        for (size_t d = 0; d < t->outer; d++) {
            to += rest % t->size[d] * t->to_step[d];
            from += rest % t->size[d] * t->from_step[d];
            rest /= t->size[d];
        }
        int64_t rows = t->rows - row < t->band ? t->rows - row : t->band;
        to += row * t->to_row;
        from += row * (int64_t)t->p->size;
        for (int64_t k = 0; k < t->columns; k += TILE)
            cfxi_rt_transpose(t->p->isa, t->p->size, rows,
                              t->columns - k < TILE ? t->columns - k : TILE,
                              to + k * (int64_t)t->p->size, t->to_row, from + k * t->from_column,
                              t->from_column);
    }
}

/* Whether two different dimensions are the inner ones of target and source; then it is done. */
static bool copy_transposed(cfx_runtime *rt, cfx_tensor *dst, const cfx_tensor *src,
                            const int64_t *step, const pair *p)
{
    size_t row = CFX_MAX_DIMS;  /* the source's inner dimension: a row of the target each */
    size_t column = CFX_MAX_DIMS;
    for (size_t d = 0; d < dst->ndim; d++) {
        if (dst->size[d] > 1 && dst->stride[d] == (int64_t)p->size)
            column = d;
        else if (dst->size[d] > 1 && step[d] == (int64_t)p->size)
            row = d;
    }
    if (row == CFX_MAX_DIMS || column == CFX_MAX_DIMS || step[column] == (int64_t)p->size)
        return false;
    const bool pairs = p->size == 4 && dst->size[column] == 2 && dst->stride[row] == 8 &&
                       dst->size[row] >= LEAST_PAIRS;
    if (!pairs && (dst->size[row] < LEAST_SIDE || dst->size[column] < LEAST_SIDE))
        return false;
    transpose t = {.p = p, .to = dst->data, .from = src->data, .rows = dst->size[row],
                   .columns = dst->size[column], .to_row = dst->stride[row],
                   .from_column = step[column], .band = pairs ? PAIR_BAND : TILE};
    int64_t bands = (t.rows + t.band - 1) / t.band;
    for (size_t d = dst->ndim; d-- > 0;) {
        if (d == row || d == column)
            continue;
        t.size[t.outer] = dst->size[d];
        t.to_step[t.outer] = dst->stride[d];
        t.from_step[t.outer++] = step[d];
        bands *= dst->size[d];
    }
    int64_t grain = TURNED_GRAIN / ((t.rows < t.band ? t.rows : t.band) * t.columns);
    cfxi_rt_parallel(rt, bands, grain < 1 ? 1 : grain, transpose_bands, &t);
    return true;
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Whether the elements are there already. */
static bool is_there(const cfx_tensor *dst, const cfx_tensor *src, const int64_t *step)
{
    bool there = dst->data == src->data && dst->dtype == src->dtype;
    for (size_t d = 0; there && d < dst->ndim; d++)
        there = dst->size[d] == 1 || dst->stride[d] == step[d];
    return there;
}

cfx_status cfxi_rt_copy(cfx_runtime *rt, cfx_tensor *dst, const cfx_tensor *src, cfx_error *err)
{
    int64_t step[CFX_MAX_DIMS] = {0};
    if (src->ndim > dst->ndim)
        return cfx_error_set(err, CFX_E_SHAPE, "cannot copy a tensor with %u dimensions to one "
                             "with %u", src->ndim,
                             dst->ndim);
    CFX_TRY(cfxi_tensor_settle(src, err));
    CFX_TRY(cfxi_tensor_settle(dst, err));
    size_t skip = (size_t)(dst->ndim - src->ndim);
    for (size_t d = skip; d < dst->ndim; d++) {
        if (src->size[d - skip] != dst->size[d] && src->size[d - skip] != 1)
            return cfx_error_set(err, CFX_E_SHAPE, "cannot copy a dimension of size %lld to one of "
                                 "size %lld",
                                 (long long)src->size[d - skip], (long long)dst->size[d]);
        step[d] = src->size[d - skip] == 1 ? 0 : src->stride[d - skip];
    }
    if (cfxi_tensor_numel(dst) == 0 || is_there(dst, src, step))
        return CFX_OK;
    pair p = {(cfx_dtype)dst->dtype, (cfx_dtype)src->dtype, cfxi_tensor_itemsize(dst), rt->isa};
    const cfx_tensor *operands[2] = {dst, src};
    if (p.to != p.from)
        cfxi_rt_loop(rt, operands, 2, GRAIN, converting_row, &p);
    else if (!copy_transposed(rt, dst, src, step, &p))
        cfxi_rt_loop(rt, operands, 2, GRAIN, same_row, &p);
    return CFX_OK;
}

cfx_tensor *cfxi_rt_contiguous(cfxi_call *c, const cfx_tensor *t, cfx_dtype dtype)
{
    if (t->dtype == dtype && cfx_tensor_is_contiguous(t))
        return cfx_tensor_retain((cfx_tensor *)t);
    cfx_tensor *copy = cfx_tensor_new(dtype, t->size, t->ndim, c->rt->allocator, c->err);
    if (copy && cfxi_rt_copy(c->rt, copy, t, c->err) != CFX_OK) {
        cfx_tensor_release(copy);
        return NULL;
    }
    return copy;
}
