/* items.c - a[b], a[b] = c, del a[b]: parts of tensors; those of lists and dicts are in
 * container_items.c. */
#include "container_items_impl.h"
#include "runtime/view_impl.h"

/* ---- tensors: what an index means ---------------------------------------------------------- */

/* What x[...] selects: a view, and of that what tensors among the indices pick. */
typedef struct selection {
    cfxi_view view;
    size_t dim;                      /* the next dimension of the view that an index applies to */
    cfx_datum picks[CFX_MAX_DIMS];   /* for `index`: None or a tensor; owned */
    size_t num_picks;
    size_t covered;                  /* dimensions that those are for */
} selection;

static void selection_free(selection *s)
{
    for (size_t i = 0; i < s->num_picks; i++)
        cfx_datum_release(s->picks[i]);
}

static bool is_mask(cfx_datum d)
{
    return d.kind == CFX_DATUM_TENSOR &&
           (d.as.tensor->dtype == CFX_DTYPE_BOOL || d.as.tensor->dtype == CFX_DTYPE_UINT8);
}

/* How many dimensions an index takes. */
static size_t dims_taken(cfx_datum index)
{
    if (index.kind == CFX_DATUM_NONE || index.kind == CFX_DATUM_ELLIPSIS ||
        index.kind == CFX_DATUM_BOOL)
        return 0;
    return is_mask(index) ? index.as.tensor->ndim : 1;
}

/* Adds a tensor that picks along the next dimensions; taken over. */
static cfx_status add_pick(cfxi_call *c, selection *s, cfx_datum tensor, size_t dims)
{
    while (s->covered < s->dim && s->num_picks < CFX_MAX_DIMS) {
        s->picks[s->num_picks++] = cfx_datum_none();
        s->covered++;
    }
    if (s->num_picks == CFX_MAX_DIMS) {
        cfx_datum_release(tensor);
        return cfxi_fail(c, CFX_E_INDEX, "too many indices for tensor of dimension %zu",
                         s->view.ndim);
    }
    s->picks[s->num_picks++] = tensor;
    s->covered += dims;
    s->dim += dims;
    return CFX_OK;
}

static cfx_status by_int(cfxi_call *c, selection *s, int64_t index)
{
    int64_t size = s->view.size[s->dim];
    bool known = !cfx_dim_is_symbol(index) && size >= 0;
    if (known && (index < -size || index >= size))
        return cfxi_fail(c, CFX_E_INDEX, "index %lld is out of bounds for dimension %zu with size "
                         "%lld", (long long)index, s->dim, (long long)size);
    return cfxi_rt_view_select(c, &s->view, s->dim, index);
}

/* A dimension of size 1, with the stride that unsqueeze gives it. */
static cfx_status new_dim(cfxi_call *c, selection *s)
{
    const cfxi_view *v = &s->view;
    const int64_t stride = s->dim < v->ndim ? cfxi_rt_wrap_mul(v->size[s->dim], v->stride[s->dim])
                                            : (int64_t)cfxi_tensor_itemsize(cfxi_rt_tensor(c, 0));
    return cfxi_rt_view_insert(c, &s->view, s->dim++, 1, stride);
}

static cfx_status by_slice(cfxi_call *c, selection *s, cfx_datum slice)
{
    size_t n;
    const cfx_datum *parts = cfx_datum_items(slice, &n);
    int64_t bounds[3] = {0, INT64_MAX, 1};
    for (size_t i = 0; i < 3; i++) {
        cfx_datum number;
        if (parts[i].kind == CFX_DATUM_NONE)
            continue;
        CFX_TRY(cfxi_rt_python_index(c, parts[i], &number));
        bounds[i] = cfxi_rt_index_of(number);
    }
    if (bounds[2] <= 0 && !cfx_dim_is_symbol(bounds[2]))
        return cfxi_fail(c, CFX_E_VALUE, "step must be greater than zero");
    CFX_TRY(cfxi_rt_view_slice(c, &s->view, s->dim++, bounds[0], bounds[1], bounds[2]));
    return CFX_OK;
}

/* True and False pick all or nothing of a new dimension of size 1. */
static cfx_status by_truth(cfxi_call *c, selection *s, cfx_datum mask)
{
    static const int64_t one = 1;
    cfx_tensor *t = NULL;
    CFX_TRY(cfxi_rt_view_insert(c, &s->view, s->dim, 1, 0));
    if (mask.kind == CFX_DATUM_TENSOR) {
        cfxi_view v = {.dtype = (cfx_dtype)mask.as.tensor->dtype, .ndim = 1, .size = {1}};
        t = cfxi_rt_view_tensor(c, mask.as.tensor, &v);
    } else {
        t = cfx_tensor_new(CFX_DTYPE_BOOL, &one, 1, c->rt->allocator, c->err);
        if (t)
            *t->data = mask.as.b;
    }
    return t ? add_pick(c, s, cfx_datum_tensor(t), 1) : c->err->status;
}

static cfx_status by_tensor(cfxi_call *c, selection *s, cfx_datum index)
{
    const cfx_tensor *t = index.as.tensor;
    if (t->ndim == 0 && is_mask(index))
        return by_truth(c, s, index);
    if (t->ndim == 0 && cfx_dtype_is_integer((cfx_dtype)t->dtype)) {
        cfx_datum number = cfx_datum_int(0);
        if (c->planner && !cfxi_rt_can_read(t))
            return cfxi_fail(c, CFX_E_UNSUPPORTED, "the index is an element of a tensor");
        if (t->storage && !c->infer)
            CFX_TRY(cfxi_rt_python_index(c, index, &number));
        return by_int(c, s, cfxi_rt_index_of(number));
    }
    return add_pick(c, s, cfx_datum_retain(index), dims_taken(index));
}

/* Applies one index; `rest` is how many dimensions an Ellipsis stands for. */
static cfx_status apply(cfxi_call *c, selection *s, cfx_datum index, size_t rest)
{
    switch ((cfx_datum_kind)index.kind) {
    case CFX_DATUM_INT: return by_int(c, s, cfxi_rt_index_of(index));
    case CFX_DATUM_SLICE: return by_slice(c, s, index);
    case CFX_DATUM_NONE: return new_dim(c, s);
    case CFX_DATUM_ELLIPSIS: s->dim += rest; return CFX_OK;
    case CFX_DATUM_BOOL: return by_truth(c, s, index);
    case CFX_DATUM_TENSOR: return by_tensor(c, s, index);
    default:
        return cfxi_fail(c, CFX_E_TYPE,
                         "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
                         "Variables are valid indices (got %s)", cfxi_rt_py_kind_of(index));
    }
}

/* The same with lists of numbers made tensors; owned. */
static cfx_datum index_of(cfxi_call *c, cfx_datum given)
{
    if (given.kind == CFX_DATUM_LIST || given.kind == CFX_DATUM_TUPLE)
        return cfxi_rt_sub(c, CFX_OPID_tensor, &given, 1);
    return cfx_datum_retain(given);
}

static cfx_status apply_all(cfxi_call *c, selection *s, const cfx_datum *indices, size_t n)
{
    size_t taken = 0;
    for (size_t i = 0; i < n; i++)
        taken += dims_taken(indices[i]);
    if (taken > s->view.ndim)
        return cfxi_fail(c, CFX_E_INDEX, "too many indices for tensor of dimension %zu",
                         s->view.ndim);
    size_t rest = s->view.ndim - taken;
    for (size_t i = 0; i < n; i++) {
        CFX_TRY(apply(c, s, indices[i], rest));
        if (indices[i].kind == CFX_DATUM_ELLIPSIS)
            rest = 0;
    }
    return CFX_OK;
}

/* What x[key] selects; the caller frees it also if it fails. */
static cfx_status select_by(cfxi_call *c, selection *s, const cfx_tensor *x, cfx_datum key)
{
    enum { MOST = 3 * CFX_MAX_DIMS };
    cfx_datum indices[MOST];
    size_t n = 1;
    size_t made = 0;
    cfx_status status = CFX_OK;
    const cfx_datum *given = key.kind == CFX_DATUM_TUPLE ? cfx_datum_items(key, &n) : &key;
    *s = (selection){.view = cfxi_rt_view_of(x)};
    if (n > MOST)
        return cfxi_fail(c, CFX_E_INDEX, "too many indices for tensor of dimension %u", x->ndim);
    for (; status == CFX_OK && made < n; made++) {
        indices[made] = index_of(c, given[made]);
        if (indices[made].kind == CFX_DATUM_INVALID)
            status = c->err->status;
    }
    if (status == CFX_OK)
        status = apply_all(c, s, indices, n);
    while (made-- > 0)
        cfx_datum_release(indices[made]);
    return status;
}

static cfx_datum picks_list(cfxi_call *c, const selection *s)
{
    return cfx_datum_seq(CFX_DATUM_LIST, s->picks, s->num_picks, c->rt->allocator, c->err);
}

static cfx_status tensor_item(cfxi_call *c, const cfx_tensor *x, cfx_datum key)
{
    selection s;
    cfx_status status = select_by(c, &s, x, key);
    if (status == CFX_OK && s.num_picks == 0) {
        status = cfxi_rt_view_result(c, 0, x, &s.view);
    } else if (status == CFX_OK) {
        cfx_datum args[2] = {cfx_datum_tensor(cfxi_rt_view_tensor(c, x, &s.view)),
                             picks_list(c, &s)};
        if (args[0].kind != CFX_DATUM_INVALID && args[1].kind != CFX_DATUM_INVALID)
            cfxi_rt_result_datum(c, 0, cfxi_rt_sub(c, CFX_OPID_index, args, 2));
        if (c->results[0].kind == CFX_DATUM_INVALID)
            status = c->err->status;
        cfx_datum_release(args[0]);
        cfx_datum_release(args[1]);
    }
    selection_free(&s);
    return status;
}

/* ---- getitem ------------------------------------------------------------------------------- */

cfx_status cfxi_rule_getitem(cfxi_call *c)
{
    cfx_datum a = c->args[0];
    return a.kind == CFX_DATUM_TENSOR ? tensor_item(c, a.as.tensor, c->args[1])
                                      : cfxi_index_container_item(c, a, c->args[1]);
}

/* ---- setitem ------------------------------------------------------------------------------- */

/* `value` as a tensor of x's type, without leading dimensions of size 1 beyond `ndim`; owned. */
static cfx_tensor *value_for(cfxi_call *c, const cfx_tensor *x, cfx_datum value, size_t ndim)
{
    cfx_datum args[2] = {value, cfx_datum_dtype((cfx_dtype)x->dtype)};
    if (value.kind != CFX_DATUM_TENSOR)
        return cfxi_rt_sub_tensor(c, CFX_OPID_scalar_tensor, args, 2);
    cfx_tensor *t = cfxi_rt_sub_tensor(c, CFX_OPID_to, args, 2);
    if (!t || t->ndim <= ndim || t->size[0] != 1)
        return t;
    cfxi_view v = cfxi_rt_view_of(t);
    while (v.ndim > ndim && v.size[0] == 1)
        cfxi_rt_view_remove(&v, 0);
    cfx_tensor *shorter = cfxi_rt_view_tensor(c, t, &v);
    cfx_tensor_release(t);
    return shorter;
}

/* Writes `value`, broadcast, to the view `dst`; also where it is a part of the same tensor. (With
 * picks it is index_put_ that checks the target.) */
static cfx_status write_view(cfxi_call *c, cfx_tensor *dst, cfx_tensor *value)
{
    cfxi_view v = cfxi_rt_view_of(value);
    CFX_TRY(cfxi_rt_check_written(c, dst));
    CFX_TRY(cfxi_rt_view_expand(c, &v, dst->size, dst->ndim));
    if (c->infer)
        return CFX_OK;
    if (!cfxi_tensor_may_overlap(dst, value))
        return cfxi_rt_copy(c->rt, dst, value, c->err);
    cfx_datum given = cfx_datum_tensor(cfx_tensor_retain(value));
    cfx_tensor *copy = cfxi_rt_sub_tensor(c, CFX_OPID_clone, &given, 1);
    cfx_datum_release(given);
    cfx_status status = copy ? cfxi_rt_copy(c->rt, dst, copy, c->err) : c->err->status;
    cfx_tensor_release(copy);
    return status;
}

static cfx_status write_picks(cfxi_call *c, cfx_tensor *dst, const selection *s, cfx_tensor *value)
{
    cfx_datum args[3] = {cfx_datum_tensor(cfx_tensor_retain(dst)), picks_list(c, s),
                         cfx_datum_tensor(cfx_tensor_retain(value))};
    cfx_status status = c->err->status;
    if (args[1].kind != CFX_DATUM_INVALID) {
        cfx_datum done = cfxi_rt_sub(c, CFX_OPID_index_put_, args, 3);
        status = done.kind == CFX_DATUM_INVALID ? c->err->status : CFX_OK;
        cfx_datum_release(done);
    }
    for (size_t i = 0; i < 3; i++)
        cfx_datum_release(args[i]);
    return status;
}

static cfx_status set_tensor_item(cfxi_call *c, cfx_tensor *x, cfx_datum key, cfx_datum value)
{
    selection s;
    cfx_status status = select_by(c, &s, x, key);
    cfx_tensor *dst = status == CFX_OK ? cfxi_rt_view_tensor(c, x, &s.view) : NULL;
    size_t ndim = s.view.ndim;  /* with picks it is index_put that looks at the value */
    bool as_it_is = s.num_picks && value.kind == CFX_DATUM_TENSOR;
    cfx_tensor *from = !dst       ? NULL
                       : as_it_is ? cfx_tensor_retain(value.as.tensor)
                                  : value_for(c, x, value, ndim);
    if (status == CFX_OK && !from)
        status = c->err->status;
    if (status == CFX_OK)
        status = s.num_picks ? write_picks(c, dst, &s, from) : write_view(c, dst, from);
    cfx_tensor_release(from);
    cfx_tensor_release(dst);
    selection_free(&s);
    return status;
}

cfx_status cfxi_rule_setitem(cfxi_call *c)
{
    cfx_datum a = c->args[0];
    return a.kind == CFX_DATUM_TENSOR ? set_tensor_item(c, a.as.tensor, c->args[1], c->args[2])
                                      : cfxi_index_set_container_item(c, a, c->args[1], c->args[2]);
}

cfx_status cfxi_rule_delitem(cfxi_call *c)
{
    return cfxi_index_delete_item(c, c->args[0], c->args[1]);
}
