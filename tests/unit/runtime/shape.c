/* shape.c - views, indexing, joining, factories and Python's operations, by cfx_operator_run. */
#include "runtime/runtime_impl.h"

#include <cfx/embed/dim.h>

#include "check.h"
#include "test_alloc.h"

static cfx_runtime *runtime_on(const cfx_allocator *a, cfx_error *err)
{
    cfx_runtime_options options = {.allocator = a, .threads = 1};
    return cfx_runtime_new(&options, err);
}

/* float32 0, 1, 2, ... of these sizes. */
static cfx_datum counted(const cfx_allocator *a, const int64_t *sizes, size_t ndim, cfx_error *err)
{
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, ndim, a, err);
    for (int64_t i = 0; t && i < cfx_tensor_numel(t); i++)
        ((float *)cfx_tensor_data(t))[i] = (float)i;
    return cfx_datum_tensor(t);
}

static cfx_datum ints(const cfx_allocator *a, cfx_datum_kind kind, const int64_t *v, size_t n,
                      cfx_error *err)
{
    cfx_datum items[8];
    for (size_t i = 0; i < n; i++)
        items[i] = cfx_datum_int(v[i]);
    return cfx_datum_seq(kind, items, n, a, err);
}

static cfx_datum seq(const cfx_allocator *a, cfx_datum_kind kind, const cfx_datum *items, size_t n,
                     cfx_error *err)
{
    return cfx_datum_seq(kind, items, n, a, err);
}

/* "float32[2, 3] 0 1 2 3 4 5", or the message of the error. */
static const char *show(cfx_datum d, const cfx_error *err, char out[600])
{
    cfx_buffer text;
    if (d.kind == CFX_DATUM_INVALID)
        return err->message;
    cfx_buffer_init(&text, NULL);
    cfx_datum_print(d, NULL, cfx_buffer_sink(&text), NULL);
    int used = snprintf(out, 500, "%s", text.data);
    cfx_buffer_free(&text);
    if (d.kind != CFX_DATUM_TENSOR)
        return out;
    cfx_error own = {0};
    cfx_runtime *rt = runtime_on(NULL, &own);
    cfx_datum flat = cfx_operator_run(rt, CFX_OPID_ravel, &d, 1, &own);
    const cfx_tensor *t = flat.as.tensor;
    for (int64_t i = 0; i < cfx_tensor_numel(t) && used < 500; i++) {
        const char *at = (const char *)cfx_tensor_data(t) + i * t->stride[0];
        used += snprintf(out + used, 90, " %g", cfxi_tensor_load_float((cfx_dtype)t->dtype, at));
    }
    cfx_datum_release(flat);
    cfx_runtime_free(rt);
    return out;
}

#define SHOWS(want, d)                                                                             \
    do {                                                                                           \
        char shown_[600];                                                                          \
        cfx_datum d_ = (d);                                                                        \
        CHECK_STR_EQ(want, show(d_, &err, shown_));                                                \
        cfx_datum_release(d_);                                                                     \
    } while (0)

TEST(views_share_memory_and_copies_do_not)
{
    cfx_error err = {0};
    cfx_runtime *rt = runtime_on(NULL, &err);
    cfx_datum x = counted(NULL, (int64_t[]){2, 3}, 2, &err);
    cfx_datum turned = cfx_operator_run(rt, CFX_OPID_t, &x, 1, &err);
    SHOWS("float32[3, 2] 0 3 1 4 2 5", cfx_datum_retain(turned));
    CHECK(turned.as.tensor->storage == x.as.tensor->storage);
    cfx_datum flat_args[2] = {turned, ints(NULL, CFX_DATUM_LIST, (int64_t[]){-1}, 1, &err)};
    cfx_datum flat = cfx_operator_run(rt, CFX_OPID_reshape, flat_args, 2, &err);
    CHECK(flat.as.tensor->storage != x.as.tensor->storage);
    SHOWS("float32[6] 0 3 1 4 2 5", flat);
    SHOWS("view(float32[3, 2], [-1]): view size is not compatible with input tensor's size and "
          "stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...)"
          " instead.", cfx_operator_run(rt, CFX_OPID_view, flat_args, 2, &err));
    cfx_datum_release(flat_args[1]);
    flat_args[1] = ints(NULL, CFX_DATUM_LIST, (int64_t[]){4, -1}, 2, &err);
    SHOWS("reshape(float32[3, 2], [4, -1]): shape '[4, -1]' is invalid for input of size 6",
          cfx_operator_run(rt, CFX_OPID_reshape, flat_args, 2, &err));
    cfx_datum_release(flat_args[1]);
    cfx_datum_release(turned);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
}

TEST(rules_take_symbols)
{
    cfx_error err = {0};
    cfx_runtime *rt = runtime_on(NULL, &err);
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    int64_t n = cfx_dims_symbol(dims, "N", 2, &err);
    int64_t sizes[] = {n, 3, 4};
    char text[600];
    cfx_datum x = cfx_datum_tensor(
        cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, sizes, 3, NULL, &err));
    cfx_datum args[2] = {x, ints(NULL, CFX_DATUM_LIST, (int64_t[]){-1, 6}, 2, &err)};
    cfx_datum y = cfx_operator_infer(rt, dims, CFX_OPID_reshape, args, 2, &err);
    CHECK(y.kind == CFX_DATUM_TENSOR &&
          y.as.tensor->size[0] == cfx_dim_mul(dims, n, 2, &err));
    cfx_datum slice[3] = {cfx_datum_int(1), cfx_datum_none(), cfx_datum_none()};
    cfx_datum key[2] = {x, seq(NULL, CFX_DATUM_SLICE, slice, 3, &err)};
    cfx_datum rest = cfx_operator_infer(rt, dims, CFX_OPID_getitem, key, 2, &err);
    CHECK(rest.kind == CFX_DATUM_TENSOR &&
          rest.as.tensor->size[0] == cfx_dim_sub(dims, n, 1, &err));
    cfx_datum first[2] = {x, cfx_datum_int(0)};
    cfx_datum size = cfx_operator_infer(rt, dims, CFX_OPID_size, first, 2, &err);
    cfx_datum sum_args[2] = {size, cfx_datum_int(-1)};
    cfx_datum sum = cfx_operator_infer(rt, dims, CFX_OPID_add, sum_args, 2, &err);
    CHECK(sum.kind == CFX_DATUM_INT && sum.symbolic && sum.as.i == cfx_dim_sub(dims, n, 1, &err));
    cfx_datum more = cfx_operator_infer(rt, dims, CFX_OPID_gt, sum_args, 2, &err);
    CHECK_STR_EQ("True", show(more, &err, text));
    cfx_datum_release(rest);
    cfx_datum_release(key[1]);
    cfx_datum_release(y);
    cfx_datum_release(args[1]);
    cfx_datum_release(x);
    cfx_dims_free(dims);
    cfx_runtime_free(rt);
}

TEST(items_of_tensors)
{
    cfx_error err = {0};
    cfx_runtime *rt = runtime_on(NULL, &err);
    cfx_datum x = counted(NULL, (int64_t[]){2, 3}, 2, &err);
    cfx_datum list = ints(NULL, CFX_DATUM_LIST, (int64_t[]){2, 0}, 2, &err);
    cfx_datum ellipsis = cfx_datum_scalar(CFX_DATUM_ELLIPSIS, 0);
    cfx_datum both[2] = {ellipsis, list};
    cfx_datum args[3] = {x, seq(NULL, CFX_DATUM_TUPLE, both, 2, &err), cfx_datum_int(9)};
    SHOWS("float32[2, 2] 2 0 5 3", cfx_operator_run(rt, CFX_OPID_getitem, args, 2, &err));
    SHOWS("None", cfx_operator_run(rt, CFX_OPID_setitem, args, 3, &err));
    SHOWS("float32[2, 3] 9 1 9 9 4 9", cfx_datum_retain(x));
    cfx_datum_release(args[1]);
    args[1] = cfx_datum_int(2);
    SHOWS("getitem(float32[2, 3], 2): index 2 is out of bounds for dimension 0 with size 2",
          cfx_operator_run(rt, CFX_OPID_getitem, args, 2, &err));
    CHECK_INT_EQ(CFX_E_INDEX, err.status);
    cfx_datum step[3] = {cfx_datum_none(), cfx_datum_none(), cfx_datum_int(-1)};
    args[1] = seq(NULL, CFX_DATUM_SLICE, step, 3, &err);
    SHOWS("getitem(float32[2, 3], slice(None, None, -1)): step must be greater than zero",
          cfx_operator_run(rt, CFX_OPID_getitem, args, 2, &err));
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    cfx_datum_release(args[1]);
    cfx_datum_release(list);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
}

TEST(numbers_do_what_python_does)
{
    cfx_error err = {0};
    cfx_runtime *rt = runtime_on(NULL, &err);
    const struct {
        cfx_operator op;
        cfx_datum a;
        cfx_datum b;
        const char *want;
    } cases[] = {
        {CFX_OPID_floor_divide, cfx_datum_int(-7), cfx_datum_int(2), "-4"},
        {CFX_OPID_remainder, cfx_datum_int(-7), cfx_datum_int(2), "1"},
        {CFX_OPID_remainder, cfx_datum_float(7.5), cfx_datum_int(-2), "-0.5"},
        {CFX_OPID_div, cfx_datum_int(7), cfx_datum_int(2), "3.5"},
        {CFX_OPID_pow, cfx_datum_int(2), cfx_datum_int(-1), "0.5"},
        {CFX_OPID_add, cfx_datum_bool(true), cfx_datum_bool(true), "2"},
        {CFX_OPID_add_, cfx_datum_int(1), cfx_datum_float(0.5), "1.5"},
        {CFX_OPID_lt, cfx_datum_int(1), cfx_datum_float(1.5), "True"},
        {CFX_OPID_eq, cfx_datum_none(), cfx_datum_int(0), "False"},
        {CFX_OPID_mul, cfx_datum_int(INT64_MAX), cfx_datum_int(2),
         "mul(9223372036854775807, 2): the integer result does not fit in 64 bits"},
        {CFX_OPID_floor_divide, cfx_datum_int(1), cfx_datum_int(0),
         "floor_divide(1, 0): integer division or modulo by zero"},
        {CFX_OPID_add, cfx_datum_int(1), cfx_datum_none(),
         "add(1, None): unsupported operand type(s) for +: 'int' and 'None'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cfx_datum args[2] = {cases[i].a, cases[i].b};
        SHOWS(cases[i].want, cfx_operator_run(rt, cases[i].op, args, 2, &err));
    }
    cfx_datum pair = ints(NULL, CFX_DATUM_TUPLE, (int64_t[]){1, 2}, 2, &err);
    cfx_datum args[2] = {pair, pair};
    SHOWS("(1, 2, 1, 2)", cfx_operator_run(rt, CFX_OPID_add, args, 2, &err));
    SHOWS("False", cfx_operator_run(rt, CFX_OPID_lt, args, 2, &err));
    args[1] = cfx_datum_int(-1);
    SHOWS("2", cfx_operator_run(rt, CFX_OPID_getitem, args, 2, &err));
    cfx_datum_release(pair);
    cfx_runtime_free(rt);
}

TEST(refusals)
{
    cfx_error err = {0};
    cfx_runtime *rt = runtime_on(NULL, &err);
    cfx_datum x = counted(NULL, (int64_t[]){2, 3}, 2, &err);
    cfx_datum y = counted(NULL, (int64_t[]){2, 4}, 2, &err);
    cfx_datum two[2] = {x, y};
    cfx_datum list = seq(NULL, CFX_DATUM_LIST, two, 2, &err);
    SHOWS("cat([float32[2, 3], float32[2, 4]]): Sizes of tensors must match except in dimension "
          "0. Expected size 3 but got size 4 for tensor number 1 in the list.",
          cfx_operator_run(rt, CFX_OPID_cat, &list, 1, &err));
    CHECK_INT_EQ(CFX_E_SHAPE, err.status);
    cfx_datum cuda = cfx_datum_from_text(CFX_DATUM_DEVICE, "cuda:0", 6, NULL, &err);
    cfx_datum to[3] = {x, cuda, cfx_datum_none()};
    SHOWS("to_device(float32[2, 3], 'cuda:0', None): cfx computes on the CPU, not on "
          "'cuda:0'", cfx_operator_run(rt, CFX_OPID_to_device, to, 3, &err));
    CHECK_INT_EQ(CFX_E_UNSUPPORTED, err.status);
    cfx_datum no[2] = {cfx_datum_bool(false),
                       cfx_datum_from_text(CFX_DATUM_STR, "why", 3, NULL, &err)};
    SHOWS("_assert(False, 'why'): why", cfx_operator_run(rt, CFX_OPID__assert, no, 2, &err));
    cfx_datum_release(no[1]);
    cfx_datum_release(cuda);
    cfx_datum_release(list);
    cfx_datum_release(y);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
}

/* ---- memory -------------------------------------------------------------------------------- */

typedef struct many {
    cfx_runtime *rt;
    cfx_error err;
} many;

static bool runs(many *m, cfx_operator op, const cfx_datum *args, size_t n)
{
    cfx_datum d = cfx_operator_run(m->rt, op, args, n, &m->err);
    cfx_datum_release(d);
    return d.kind != CFX_DATUM_INVALID;
}

/* Rows that allocate on the way. */
static bool run_many(many *m, cfx_datum x, cfx_datum index, cfx_datum mask, cfx_datum list)
{
    cfx_datum two[2] = {x, x};
    cfx_datum zero = cfx_datum_int(0);
    cfx_datum key[2] = {cfx_datum_none(), mask};
    const cfx_allocator *a = m->rt->allocator;
    cfx_datum pair = seq(a, CFX_DATUM_LIST, two, 2, &m->err);
    cfx_datum tuple = seq(a, CFX_DATUM_TUPLE, key, 2, &m->err);
    cfx_datum name = cfx_datum_from_text(CFX_DATUM_STR, "mean", 4, a, &m->err);
    bool made = pair.kind && tuple.kind && name.kind;
    bool ok = made && runs(m, CFX_OPID_cat, &pair, 1) && runs(m, CFX_OPID_hstack, &pair, 1) &&
              runs(m, CFX_OPID_getitem, (cfx_datum[]){x, tuple}, 2) &&
              runs(m, CFX_OPID_getitem, (cfx_datum[]){x, list}, 2) &&
              runs(m, CFX_OPID_setitem, (cfx_datum[]){x, tuple, zero}, 3) &&
              runs(m, CFX_OPID_scatter_reduce, (cfx_datum[]){x, zero, index, x, name}, 5) &&
              runs(m, CFX_OPID_take_along_dim, (cfx_datum[]){x, index, zero}, 3) &&
              runs(m, CFX_OPID_tolist, &x, 1) &&
              runs(m, CFX_OPID_tensor, &list, 1) && runs(m, CFX_OPID_list, &x, 1) &&
              runs(m, CFX_OPID_roll, (cfx_datum[]){x, cfx_datum_int(1)}, 2) &&
              runs(m, CFX_OPID_where_nonzero, &mask, 1) &&
              runs(m, CFX_OPID_masked_select, (cfx_datum[]){x, mask}, 2) &&
              runs(m, CFX_OPID_add, (cfx_datum[]){list, list}, 2);
    cfx_datum_release(name);
    cfx_datum_release(tuple);
    cfx_datum_release(pair);
    return ok;
}

static cfx_status allocate_all(const cfx_allocator *a, void *arg)
{
    many m = {.err = {0}};
    static const int64_t sizes[] = {2, 3};
    (void)arg;
    m.rt = runtime_on(a, &m.err);
    cfx_datum x = counted(a, sizes, 2, &m.err);
    cfx_datum index = cfx_datum_tensor(cfx_tensor_new(CFX_DTYPE_INT64, sizes, 2, a, &m.err));
    cfx_datum mask = cfx_datum_tensor(cfx_tensor_new(CFX_DTYPE_BOOL, sizes, 2, a, &m.err));
    cfx_datum list = ints(a, CFX_DATUM_LIST, (int64_t[]){1, 0}, 2, &m.err);
    bool made = m.rt && x.kind && index.kind && mask.kind && list.kind;
    if (made) {
        memset(cfx_tensor_data(index.as.tensor), 0, 48);
        memset(cfx_tensor_data(mask.as.tensor), 1, 6);
    }
    bool ok = made && run_many(&m, x, index, mask, list);
    cfx_datum_release(list);
    cfx_datum_release(mask);
    cfx_datum_release(index);
    cfx_datum_release(x);
    cfx_runtime_free(m.rt);
    return ok ? CFX_OK : m.err.status;
}

TEST(every_allocation_may_fail)
{
    CHECK(test_oom_sweep(allocate_all, NULL) > 20);
}
