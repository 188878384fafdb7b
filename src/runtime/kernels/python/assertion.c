/* assertion.c - rows that fail instead of returning something. */
#include "runtime/python_impl.h"
#include "runtime/view_impl.h"

#include <cfx/embed/base.h>
#include <cfx/embed/dim.h>

/* What depends on sizes that are not known yet is let pass. */
static cfx_status require(cfxi_call *c, cfx_status otherwise)
{
    const char *message = cfxi_rt_str(c, 1);
    cfxi_truth t;
    CFX_TRY(cfxi_rt_python_truth(c, c->args[0], &t));
    if (t == CFXI_FALSE)
        return cfxi_fail(c, otherwise, "%.400s", message ? message : "an assertion failed");
    return CFX_OK;
}

/* torch._assert raises AssertionError, its relatives RuntimeError. */
cfx_status cfxi_rule__assert(cfxi_call *c)
{
    return require(c, c->op == CFX_OPID__assert ? CFX_E_ASSERTION : CFX_E_SHAPE);
}
cfx_status cfxi_rule_check(cfxi_call *c) { return require(c, CFX_E_SHAPE); }

/* The status whose exception in Python has the name; RuntimeError's for what has none. */
static cfx_status status_of(const char *exception)
{
    for (int i = CFX_OK + 1; i < CFX_E_HOST; i++) {
        const char *name = cfx_status_exception((cfx_status)i);
        if (name && exception && strcmp(name, exception) == 0 && i != CFX_E_GRAPH)
            return (cfx_status)i;
    }
    return CFX_E_SHAPE;
}

/* Where only sizes are asked for, nobody knows whether it is come to. */
cfx_status cfxi_rule_fail(cfxi_call *c)
{
    const char *kind = cfxi_rt_str(c, 0);
    const char *message = c->args[1].kind == CFX_DATUM_STR ? cfxi_rt_str(c, 1) : NULL;
    if (c->infer)
        return CFX_OK;
    return cfxi_fail(c, status_of(kind), "%s%s%.400s", kind ? kind : "failed", message ? ": " : "",
                     message ? message : "");
}

/* How many items unpacking finds; -1: that depends on sizes that are not known yet. */
static cfx_status count_items(cfxi_call *c, cfx_datum d, int64_t *count)
{
    size_t n;
    if (d.kind == CFX_DATUM_TENSOR && d.as.tensor->ndim == 0)
        return cfxi_fail(c, CFX_E_TYPE, "iteration over a 0-d tensor");
    if (d.kind == CFX_DATUM_TENSOR) {
        const cfx_datum size = cfxi_rt_size_datum(d.as.tensor->size[0]);
        *count = size.symbolic ? -1 : size.as.i;
        return CFX_OK;
    }
    if (d.kind == CFX_DATUM_STR) {
        const char *text = cfx_datum_text(d, &n);
        *count = 0;
        for (size_t i = 0; i < n; i++)  /* bytes that begin a character */
            *count += ((unsigned char)text[i] & 0xc0) != 0x80;
        return CFX_OK;
    }
    if (d.kind == CFX_DATUM_DICT)
        return cfxi_fail(c, CFX_E_TYPE, "a graph cannot unpack a dict; unpack list(...) of it");
    if (!cfx_datum_items(d, &n) || d.kind == CFX_DATUM_SLICE)
        return cfxi_fail(c, CFX_E_TYPE, "cannot unpack non-iterable %s object",
                         cfxi_rt_py_kind_of(d));
    *count = (int64_t)n;
    return CFX_OK;
}

/* `a, b = values`; with `more`, `a, b, *rest = values`. */
cfx_status cfxi_rule_check_length(cfxi_call *c)
{
    const long long wanted = (long long)cfxi_rt_int(c, 1);
    const bool more = cfxi_rt_bool(c, 2);
    int64_t n = -1;
    CFX_TRY(count_items(c, c->args[0], &n));
    if (n >= 0 && n < wanted)
        return cfxi_fail(c, CFX_E_VALUE, "not enough values to unpack (expected %s%lld, got %lld)",
                         more ? "at least " : "", wanted, (long long)n);
    if (n > wanted && !more)
        return cfxi_fail(c, CFX_E_VALUE, "too many values to unpack (expected %lld)", wanted);
    return CFX_OK;
}

/* self.buffer = value: in Python the attribute would be another tensor. */
cfx_status cfxi_rule_check_buffer(cfxi_call *c)
{
    const cfx_tensor *buffer = cfxi_rt_tensor(c, 0);
    const cfx_tensor *value = cfxi_rt_tensor(c, 1);
    bool same = buffer->ndim == value->ndim;
    for (size_t i = 0; same && i < buffer->ndim; i++)
        same = cfxi_rt_same_size(c, buffer->size[i], value->size[i]);
    if (!same || buffer->dtype != value->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "a graph cannot give a buffer another %s; register it "
                         "with the %s that it gets", same ? "dtype" : "shape",
                         same ? "dtype" : "shape");
    return CFX_OK;
}

cfx_status cfxi_rule__assert_tensor_metadata(cfxi_call *c)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, 0);
    int64_t item = (int64_t)cfxi_tensor_itemsize(t);
    int64_t wanted[CFX_MAX_DIMS];
    size_t n;
    CFX_TRY(cfxi_rt_ints(c, 1, wanted, &n));
    bool same = cfxi_rt_is_none(c, 1) || n == t->ndim;
    for (size_t i = 0; same && i < n; i++)
        same = cfxi_rt_same_size(c, wanted[i], t->size[i]);
    if (!same)
        return cfxi_fail(c, CFX_E_SHAPE, "Tensor sizes mismatch!");
    CFX_TRY(cfxi_rt_ints(c, 2, wanted, &n));
    same = cfxi_rt_is_none(c, 2) || n == t->ndim;
    for (size_t i = 0; same && t->storage && i < n; i++)
        same = t->size[i] <= 1 || (t->stride[i] % item == 0 && wanted[i] == t->stride[i] / item);
    if (!same)
        return cfxi_fail(c, CFX_E_SHAPE, "Tensor strides mismatch!");
    if (cfxi_rt_dtype_or(c, 3, (cfx_dtype)t->dtype) != (cfx_dtype)t->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "Tensor dtype mismatch! Expected: %s Got: %s",
                         cfx_dtype_name(cfxi_rt_dtype_or(c, 3, CFX_DTYPE_FLOAT32)),
                         cfx_dtype_name((cfx_dtype)t->dtype));
    if (cfxi_rt_check_device(c, 4) != CFX_OK)
        return cfxi_fail(c, CFX_E_SHAPE, "Tensor device mismatch!");
    return CFX_OK;
}

cfx_status cfxi_rule_sym_constrain_range(cfxi_call *c)
{
    cfx_datum size;
    CFX_TRY(cfxi_rt_python_index(c, c->args[0], &size));
    bool below = !cfxi_rt_is_none(c, 1) && !size.symbolic && size.as.i < cfxi_rt_int(c, 1);
    bool above = !cfxi_rt_is_none(c, 2) && !size.symbolic && size.as.i > cfxi_rt_int(c, 2);
    if (below || above)
        return cfxi_fail(c, CFX_E_SHAPE, "Invalid value range for %lld: it must be %s %lld",
                         (long long)size.as.i, below ? "at least" : "at most",
                         (long long)cfxi_rt_int(c, below ? 1 : 2));
    if (size.symbolic && !cfxi_rt_is_none(c, 1) && cfx_dim_is_symbol(size.as.i))
        cfx_dim_expect_le(c->dims, cfxi_rt_int(c, 1), size.as.i);
    if (size.symbolic && !cfxi_rt_is_none(c, 2) && cfx_dim_is_symbol(size.as.i))
        cfx_dim_expect_le(c->dims, size.as.i, cfxi_rt_int(c, 2));
    return CFX_OK;
}
