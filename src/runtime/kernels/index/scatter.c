/* scatter.c - element by element by a tensor of indices along one dimension: gather, scatter. */
#include "picked_slices_impl.h"

#include <cfx/embed/dim.h>

#include <math.h>

/* ---- checks -------------------------------------------------------------------------------- */

/* Sizes with at least one dimension. */
static cfxi_view with_dims(const cfx_tensor *t)
{
    cfxi_view v = cfxi_rt_view_of(t);
    if (v.ndim == 0) {
        v.size[0] = 1;
        v.stride[0] = (int64_t)cfx_dtype_size(v.dtype);
        v.ndim = 1;
    }
    return v;
}

static bool is_empty(const cfx_tensor *t)
{
    for (size_t i = 0; i < t->ndim; i++)
        if (t->size[i] == 0)
            return true;
    return false;
}

/* Whether a[d] <= b[d] but for `dim` (SIZE_MAX: for all). */
static bool no_larger(cfxi_call *c, const cfxi_view *a, const cfxi_view *b, size_t dim)
{
    for (size_t i = 0; i < a->ndim; i++) {
        bool known = !cfx_dim_is_symbol(a->size[i]) && !cfx_dim_is_symbol(b->size[i]);
        if (i == dim || a->size[i] == b->size[i])
            continue;
        if (known ? a->size[i] > b->size[i] : !cfx_dim_expect_le(c->dims, a->size[i], b->size[i]))
            return false;
    }
    return true;
}

/* What gather and all scatters ask of the index. */
static cfx_status check_index(cfxi_call *c, size_t *dim)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *index = cfxi_rt_tensor(c, 2);
    cfxi_view a = with_dims(index);
    cfxi_view b = with_dims(x);
    char ta[CFXI_SIZES_TEXT];
    char tb[CFXI_SIZES_TEXT];
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), x->ndim, dim));
    if (is_empty(index))
        return CFX_OK;
    if (index->dtype != CFX_DTYPE_INT64 && index->dtype != CFX_DTYPE_INT32)
        return cfxi_fail(c, CFX_E_SHAPE, "%s(): Expected dtype int32/int64 for index",
                         cfx_operator_name(c->op));
    if (a.ndim != b.ndim)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "Index tensor must have the same number of dimensions as %s tensor",
                         c->op == CFX_OPID_gather ? "input" : "self");
    if (!no_larger(c, &a, &b, *dim))
        return cfxi_fail(c, CFX_E_SHAPE,
                         "Expected index %s to be no larger than self %s apart from dimension %zu",
                         cfxi_rt_sizes_text(a.size, a.ndim, ta),
                         cfxi_rt_sizes_text(b.size, b.ndim, tb), *dim);
    return CFX_OK;
}

cfx_status cfxi_rule_gather(cfxi_call *c)
{
    const cfx_tensor *index = cfxi_rt_tensor(c, 2);
    size_t dim;
    CFX_TRY(check_index(c, &dim));
    return cfxi_rt_result(c, 0, (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype, index->size, index->ndim);
}

/* For scatter, scatter_add and scatter_reduce; a number for `src` is written everywhere. */
cfx_status cfxi_rule_scatter(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *index = cfxi_rt_tensor(c, 2);
    const cfx_tensor *src = cfxi_rt_tensor(c, 3);
    cfxi_view a = with_dims(index);
    cfxi_view b = with_dims(src);
    char ta[CFXI_SIZES_TEXT];
    char tb[CFXI_SIZES_TEXT];
    size_t dim;
    CFX_TRY(check_index(c, &dim));
    if (!src->number && src->dtype != x->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "%s(): Expected self.dtype to be equal to src.dtype",
                         cfx_operator_name(c->op));
    if (!src->number && !is_empty(index) && (a.ndim != b.ndim || !no_larger(c, &a, &b, SIZE_MAX)))
        return cfxi_fail(c, CFX_E_SHAPE, "Expected index %s to be no larger than src %s",
                         cfxi_rt_sizes_text(a.size, a.ndim, ta),
                         cfxi_rt_sizes_text(b.size, b.ndim, tb));
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, x->size, x->ndim);
}

/* ---- walking the index --------------------------------------------------------------------- */

/* One row of the index after the other: along its last dimension. */
typedef struct lanes {
    cfx_dtype dtype;
    size_t dim;
    cfxi_view index;     /* dense int64 */
    const int64_t *at;
    char *own;           /* what is indexed */
    cfxi_view own_view;
    char *other;
    cfxi_view other_view;
    cfxi_join how;
    bool gets;
    int64_t *count;      /* writes to each element of `own`, which is dense; or NULL */
    _Atomic int64_t bad; /* an index out of range: its place, or -1 */
} lanes;

/* One element of `item` bytes; a move or two for those that matter. */
static inline void move(char *to, const char *from, size_t item)
{
    if (item == 4)
        memcpy(to, from, 4);
    else if (item == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, item);
}

static void run_row(lanes *l, int64_t row, char *own, char *other)
{
    size_t last = l->index.ndim - 1;
    int64_t n = l->index.size[last];
    int64_t size = l->own_view.size[l->dim];
    int64_t stride = l->own_view.stride[l->dim];
    int64_t along = l->dim == last ? 0 : l->own_view.stride[last];
    int64_t step = l->other_view.stride[last];
    size_t item = cfx_dtype_size(l->dtype);
    const int64_t *at = l->at + row * n;
    for (int64_t i = 0; i < n; i++, other += step, own += along) {
        if ((uint64_t)at[i] >= (uint64_t)size) {
            l->bad = row * n + i;
            return;
        }
        char *mine = own + at[i] * stride;
        if (l->gets)
            move(other, mine, item);
        else if (l->how == CFXI_JOIN_SET)
            move(mine, other, item);
        else if (l->how == CFXI_JOIN_ADD && l->dtype == CFX_DTYPE_FLOAT32)
            *(float *)(void *)mine += *(const float *)(const void *)other;
        else
            cfxi_index_join_run(l->dtype, l->how, 1, mine, 0, other, 0);
        if (l->count)
            l->count[(mine - l->own) / (int64_t)item]++;
    }
}

static void run_rows(void *ctx, int64_t begin, int64_t end)
{
    lanes *l = ctx;
    for (int64_t row = begin; row < end; row++) {
        int64_t rest = row;
        char *own = l->own;
        char *other = l->other;
        for (size_t d = l->index.ndim - 1; d-- > 0;) {
            int64_t i = rest % l->index.size[d];
            rest /= l->index.size[d];
            own += d == l->dim ? 0 : i * l->own_view.stride[d];
            other += i * l->other_view.stride[d];
        }
        run_row(l, row, own, other);
    }
}

static cfx_status run_lanes(cfxi_call *c, lanes *l)
{
    size_t last = l->index.ndim - 1;
    int64_t rows = 1;
    for (size_t d = 0; d < last; d++)
        rows *= l->index.size[d];
    l->bad = -1;
    if (l->index.size[last] == 0)
        return CFX_OK;
    if (l->gets)
        cfxi_rt_parallel(c->rt, rows, 1 + (1 << 14) / l->index.size[last], run_rows, l);
    else
        run_rows(l, 0, rows);
    if (l->bad < 0)
        return CFX_OK;
    return cfxi_fail(c, CFX_E_SHAPE, "index %lld is out of bounds for dimension %zu with size %lld",
                     (long long)l->at[l->bad], l->dim, (long long)l->own_view.size[l->dim]);
}

/* Fills in all but `how`: `own` by `index` along `dim`, beside `other`. */
static lanes lanes_of(size_t dim, const cfx_tensor *index, const cfx_tensor *own,
                      const cfx_tensor *other)
{
    lanes l = {
        .dtype = (cfx_dtype)own->dtype,
        .dim = dim,
        .index = with_dims(index),
        .at = (const int64_t *)(const void *)index->data,
        .own = own->data,
        .own_view = with_dims(own),
        .other = other->data,
        .other_view = with_dims(other),
    };
    if (other->ndim == 0)  /* one value for all */
        memset(l.other_view.stride, 0, sizeof l.other_view.stride);
    return l;
}

cfx_status cfxi_kernel_gather(cfxi_call *c)
{
    size_t dim;
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), cfxi_rt_tensor(c, 0)->ndim, &dim));
    if (is_empty(cfxi_rt_tensor(c, 2)))
        return CFX_OK;
    cfx_tensor *index = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 2), CFX_DTYPE_INT64);
    if (!index)
        return c->err->status;
    lanes l = lanes_of(dim, index, cfxi_rt_tensor(c, 0), cfxi_rt_result_at(c, 0));
    l.gets = true;
    cfx_status status = run_lanes(c, &l);
    cfx_tensor_release(index);
    return status;
}

/* ---- scatter ------------------------------------------------------------------------------- */

/* Result 0 is argument 0 with `src` (of its type) joined at the index; `count` as in lanes. */
static cfx_status scatter_from(cfxi_call *c, const cfx_tensor *src, cfxi_join how, int64_t *count)
{
    size_t dim;
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), y->ndim, &dim));
    if (is_empty(cfxi_rt_tensor(c, 2)))
        return CFX_OK;
    cfx_tensor *index = cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 2), CFX_DTYPE_INT64);
    cfx_tensor *one = NULL;
    cfx_status status = index ? CFX_OK : c->err->status;
    if (status == CFX_OK && src->number) {
        one = cfxi_rt_contiguous(c, src, (cfx_dtype)y->dtype);
        status = one ? CFX_OK : c->err->status;
    }
    if (status == CFX_OK) {
        lanes l = lanes_of(dim, index, y, one ? one : src);
        l.how = how;
        l.count = count;
        status = run_lanes(c, &l);
    }
    cfx_tensor_release(one);
    cfx_tensor_release(index);
    return status;
}

cfx_status cfxi_kernel_scatter(cfxi_call *c)
{
    const char *reduce = cfxi_rt_str(c, 4);
    CFX_TRY(cfxi_index_begin_from_self(c));
    if (reduce && strcmp(reduce, "add") != 0 && strcmp(reduce, "multiply") != 0)
        return cfxi_fail(c, CFX_E_SHAPE, "reduce argument must be either add or multiply.");
    return scatter_from(c, cfxi_rt_tensor(c, 3), !reduce            ? CFXI_JOIN_SET
                                              : reduce[0] == 'a' ? CFXI_JOIN_ADD
                                                                 : CFXI_JOIN_MUL, NULL);
}

cfx_status cfxi_kernel_scatter_add(cfxi_call *c)
{
    CFX_TRY(cfxi_index_begin_from_self(c));
    return scatter_from(c, cfxi_rt_tensor(c, 3), CFXI_JOIN_ADD, NULL);
}

/* ---- scatter_reduce ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    cfxi_join how;
    double start;  /* changes nothing */
} reductions[] = {
    {"sum", CFXI_JOIN_ADD, 0},          {"prod", CFXI_JOIN_MUL, 1},
    {"mean", CFXI_JOIN_ADD, 0},         {"amax", CFXI_JOIN_MAX, -INFINITY},
    {"amin", CFXI_JOIN_MIN, INFINITY},
};

cfx_status cfxi_rule_scatter_reduce(cfxi_call *c)
{
    const char *name = cfxi_rt_str(c, 4);
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (strcmp(name, reductions[i].name) == 0)
            return cfxi_rule_scatter(c);
    return cfxi_fail(c, CFX_E_SHAPE,
                     "reduce argument must be either sum, prod, mean, amax or amin, got %.40s",
                     name);
}

/* The value of `dtype` that is nearest to `start`: the least integer for -inf. */
static void store_start(cfx_dtype dtype, double start, void *at)
{
    int bits = 8 * (int)cfx_dtype_size(dtype) - !cfxi_tensor_dtype_is_unsigned(dtype);
    int64_t most = bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
    if (dtype == CFX_DTYPE_BOOL)
        cfxi_tensor_store_int(dtype, at, start > 0);
    else if (cfx_dtype_is_integer(dtype) && isinf(start))
        cfxi_tensor_store_int(dtype, at,
                              start > 0 ? most
                              : cfxi_tensor_dtype_is_unsigned(dtype) ? 0 : -most - 1);
    else
        cfxi_tensor_store_float(dtype, at, start);
}

/* How many elements its memory has room for from the first to the last: in place there may be gaps
 * between them. */
static int64_t extent(const cfx_tensor *y)
{
    int64_t n = 1;
    for (size_t d = 0; d < y->ndim; d++) {
        if (y->size[d] == 0)
            return 0;
        n += (y->size[d] - 1) * (y->stride[d] / (int64_t)cfxi_tensor_itemsize(y));
    }
    return n;
}

/* Sums divided by how many there are; of integers rounded down. */
static void divide(cfx_tensor *y, const int64_t *count, bool include_self)
{
    cfx_dtype dtype = (cfx_dtype)y->dtype;
    size_t item = cfxi_tensor_itemsize(y);
    for (int64_t i = 0, n = extent(y); i < n; i++) {
        char *at = y->data + i * (int64_t)item;
        int64_t by = count[i] + include_self;
        if (count[i] == 0)
            continue;
        if (cfx_dtype_is_integer(dtype)) {
            int64_t sum = cfxi_tensor_load_int(dtype, at);
            cfxi_tensor_store_int(dtype, at, sum / by - (sum % by != 0 && sum < 0));
        } else {
            double both[2];
            cfxi_tensor_load_complex(dtype, at, both);
            both[0] /= (double)by;
            both[1] /= (double)by;
            cfxi_tensor_store_complex(dtype, at, both);
        }
    }
}

static cfx_status reduce_into(cfxi_call *c, size_t which, int64_t *count)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    char start[16];
    bool include_self = cfxi_rt_bool(c, 5);
    if (!include_self) {  /* elements that are written to begin anew */
        cfx_tensor one = {.dtype = y->dtype, .number = true, .storage = y->storage, .data = start};
        atomic_init(&one.refs, 1);  /* ours: it is retained and released below */
        store_start((cfx_dtype)y->dtype, reductions[which].start, start);
        CFX_TRY(scatter_from(c, &one, CFXI_JOIN_SET, NULL));
    }
    CFX_TRY(scatter_from(c, cfxi_rt_tensor(c, 3), reductions[which].how, count));
    if (count)
        divide(y, count, include_self);
    return CFX_OK;
}

cfx_status cfxi_kernel_scatter_reduce(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    const char *name = cfxi_rt_str(c, 4);
    size_t which = 0;
    while (strcmp(name, reductions[which].name) != 0)
        which++;
    CFX_TRY(cfxi_index_begin_from_self(c));
    if (strcmp(name, "mean") != 0)
        return reduce_into(c, which, NULL);
    size_t bytes = ((size_t)extent(y) + 1) * sizeof(int64_t);
    int64_t *count = cfxi_rt_scratch(c->rt, bytes);
    if (!count)
        return cfxi_base_nomem(c->err);
    memset(count, 0, bytes);
    cfx_status status = reduce_into(c, which, count);
    cfxi_rt_scratch_free(c->rt, count);
    return status;
}

/* ---- take ---------------------------------------------------------------------------------- */

cfx_status cfxi_rule_take(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, 0);
    const cfx_tensor *index = cfxi_rt_tensor(c, 1);
    if (index->dtype != CFX_DTYPE_INT64)
        return cfxi_fail(c, CFX_E_SHAPE, "take(): Expected a long tensor for index, but got %s",
                         cfx_dtype_name((cfx_dtype)index->dtype));
    if (is_empty(x) && !is_empty(index))
        return cfxi_fail(c, CFX_E_INDEX, "take(): tried to take from an empty tensor");
    return cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, index->size, index->ndim);
}

cfx_status cfxi_kernel_take(cfxi_call *c)
{
    cfx_tensor *y = cfxi_rt_result_at(c, 0);
    const cfx_tensor *given = cfxi_rt_tensor(c, 0);
    cfx_tensor *x = cfxi_rt_contiguous(c, given, (cfx_dtype)given->dtype);
    cfx_tensor *index = x ? cfxi_rt_contiguous(c, cfxi_rt_tensor(c, 1), CFX_DTYPE_INT64) : NULL;
    cfx_status status = index ? CFX_OK : c->err->status;
    int64_t size = cfxi_tensor_numel(given);
    size_t item = cfxi_tensor_itemsize(y);
    for (int64_t i = 0, n = cfxi_tensor_numel(y); status == CFX_OK && i < n; i++) {
        int64_t at = ((const int64_t *)(void *)index->data)[i];
        if (at < -size || at >= size)
            status = cfxi_fail(c, CFX_E_INDEX,
                               "out of range: tried to access index %lld on a tensor of %lld "
                               "elements.", (long long)at, (long long)size);
        else
            memcpy(y->data + i * (int64_t)item,
                   x->data + (at < 0 ? at + size : at) * (int64_t)item, item);
    }
    cfx_tensor_release(index);
    cfx_tensor_release(x);
    return status;
}

/* ---- take_along_dim ------------------------------------------------------------------------ */

/* `t` broadcast to `sizes` but for dimension `dim`, where it keeps its own; owned. */
static cfx_tensor *spread_but(cfxi_call *c, const cfx_tensor *t, const int64_t *sizes, size_t ndim,
                              size_t dim)
{
    int64_t wanted[CFX_MAX_DIMS];
    cfxi_view v = cfxi_rt_view_of(t);
    memcpy(wanted, sizes, sizeof wanted);
    wanted[dim] = t->size[dim];
    if (cfxi_rt_view_expand(c, &v, wanted, ndim) != CFX_OK)
        return NULL;
    return cfxi_rt_view_tensor(c, t, &v);
}

/* Indices from the end, as gather takes them. */
static void count_from_start(cfx_tensor *index, int64_t size)
{
    int64_t *at = (int64_t *)(void *)index->data;
    for (int64_t i = 0, n = cfxi_tensor_numel(index); i < n; i++)
        at[i] += at[i] < 0 ? size : 0;
}

/* gather of x and indices, broadcast along all other dimensions. */
static cfx_status gather_spread(cfxi_call *c, cfx_tensor *x, cfx_tensor *index, size_t dim)
{
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    cfx_tensor flat[2];
    const cfx_tensor *both[2] = {&flat[0], &flat[1]};
    const cfx_tensor *given[2] = {x, index};
    for (size_t i = 0; i < 2; i++) {
        cfxi_view v = cfxi_rt_view_of(given[i]);
        v.size[dim] = 1;
        cfxi_rt_view_borrow(&flat[i], given[i], &v);
    }
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));
    cfx_datum args[3] = {cfx_datum_tensor(spread_but(c, x, sizes, ndim, dim)),
                         cfx_datum_int((int64_t)dim), cfx_datum_none()};
    cfx_tensor *spread = spread_but(c, index, sizes, ndim, dim);
    if (spread && !c->infer && spread->storage) {
        cfx_tensor *own = cfx_tensor_new(CFX_DTYPE_INT64, spread->size, ndim, c->rt->allocator,
                                         c->err);
        if (own && cfxi_rt_copy(c->rt, own, spread, c->err) == CFX_OK)
            count_from_start(own, x->size[dim]);
        cfx_tensor_release(spread);
        spread = own;
    }
    args[2] = cfx_datum_tensor(spread);
    if (spread && args[0].kind != CFX_DATUM_INVALID)
        cfxi_rt_result_datum(c, 0, cfxi_rt_sub(c, CFX_OPID_gather, args, 3));
    cfx_datum_release(args[0]);
    cfx_datum_release(args[2]);
    return c->results[0].kind == CFX_DATUM_INVALID ? c->err->status : CFX_OK;
}

cfx_status cfxi_rule_take_along_dim(cfxi_call *c)
{
    cfx_tensor *x = cfxi_rt_tensor(c, 0);
    cfx_tensor *index = cfxi_rt_tensor(c, 1);
    size_t dim;
    if (index->dtype != CFX_DTYPE_INT64)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "torch.take_along_dim(): dtype of indices should be Long but got %s",
                         cfx_dtype_name((cfx_dtype)index->dtype));
    if (!cfxi_rt_is_none(c, 2)) {
        if (x->ndim != index->ndim)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "torch.take_along_dim(): input and indices should have the same "
                             "number of dimensions, but got %u dimensions for input, and %u "
                             "dimensions for indices", x->ndim, index->ndim);
        CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 2), x->ndim, &dim));
        return gather_spread(c, x, index, dim);
    }
    cfx_datum both[2] = {c->args[0], c->args[1]};
    cfx_tensor *flat[2];
    flat[0] = cfxi_rt_sub_tensor(c, CFX_OPID_ravel, &both[0], 1);
    flat[1] = flat[0] ? cfxi_rt_sub_tensor(c, CFX_OPID_ravel, &both[1], 1) : NULL;
    cfx_status status = flat[1] ? gather_spread(c, flat[0], flat[1], 0) : c->err->status;
    cfx_tensor_release(flat[0]);
    cfx_tensor_release(flat[1]);
    return status;
}
