/* import_numbers.c - what rules compute with: sizes as numbers, lists, types. */
#include "rules_impl.h"

#include "capture/capture_impl.h"

/* ---- arithmetic on sizes ------------------------------------------------------------------- */

static bool both_known(cfx_var a, cfx_var b)
{
    return a.kind == CFX_VAR_INT && b.kind == CFX_VAR_INT;
}

static bool is_number(cfx_var a, int64_t x) { return a.kind == CFX_VAR_INT && a.as.i == x; }

cfx_var cfxi_import_plus(cfx_scope *s, cfx_var a, cfx_var b)
{
    int64_t sum;
    if (both_known(a, b) && !__builtin_add_overflow(a.as.i, b.as.i, &sum))
        return cfx_var_int(sum);
    return is_number(a, 0) ? b : is_number(b, 0) ? a : cfx_add(s, a, b);
}

cfx_var cfxi_import_minus(cfx_scope *s, cfx_var a, cfx_var b)
{
    int64_t rest;
    if (both_known(a, b) && !__builtin_sub_overflow(a.as.i, b.as.i, &rest))
        return cfx_var_int(rest);
    return is_number(b, 0) ? a : cfx_sub(s, a, b);
}

cfx_var cfxi_import_times(cfx_scope *s, cfx_var a, cfx_var b)
{
    int64_t product;
    if (both_known(a, b) && !__builtin_mul_overflow(a.as.i, b.as.i, &product))
        return cfx_var_int(product);
    return is_number(a, 1) ? b : is_number(b, 1) ? a : cfx_mul(s, a, b);
}

cfx_var cfxi_import_over(cfx_scope *s, cfx_var a, cfx_var b)
{
    if (both_known(a, b) && b.as.i > 0)
        return cfx_var_int(a.as.i / b.as.i - (a.as.i % b.as.i < 0));
    return is_number(b, 1) ? a : cfx_floor_divide(s, a, b);
}

cfx_var cfxi_import_larger(cfx_scope *s, cfx_var a, cfx_var b)
{
    if (both_known(a, b))
        return a.as.i > b.as.i ? a : b;
    return cfx_sym_max(s, a, b);
}

cfx_var cfxi_import_smaller(cfx_scope *s, cfx_var a, cfx_var b)
{
    if (both_known(a, b))
        return a.as.i < b.as.i ? a : b;
    return cfx_sym_min(s, a, b);
}

/* ---- sizes and lists ----------------------------------------------------------------------- */

cfx_var cfxi_import_dim_of(cfx_scope *s, cfx_var v, int dim)
{
    const cfx_at at = {.scope = s};
    cfx_datum d = cfx_scope_ok(s) ? cfxi_capture_var_datum(at, v) : cfx_datum_invalid();
    int64_t size = -1;
    if (d.kind == CFX_DATUM_TENSOR) {
        const int rank = (int)cfx_tensor_ndim(d.as.tensor);
        dim = dim < 0 ? dim + rank : dim;
        if (dim >= 0 && dim < rank)
            size = cfx_tensor_sizes(d.as.tensor)[dim];
    }
    cfx_datum_release(d);
    return size >= 0 ? cfx_var_int(size) : cfx_size(s, v, .dim = cfx_var_int(dim));
}

cfx_var cfxi_import_tuple(cfx_scope *s, const cfx_var *items, size_t n)
{
    const cfx_at at = {.scope = s};
    return cfx_var_seq_at(at, CFX_DATUM_TUPLE, cfx_vars_make(items, n));
}

bool cfxi_import_is_empty(cfxi_import_call *c, size_t i)
{
    if (!cfxi_import_has(c, i))
        return true;
    if (cfxi_import_rank(c, i) != 1)
        return false;
    const cfx_var n = cfxi_import_size(c, i, 0);
    return is_number(n, 0);
}

int cfxi_import_each_int(cfxi_import_call *c, size_t i, cfx_var *out, int most)
{
    cfx_scope *s = c->scope;
    cfxi_items known;
    if (cfxi_import_items(c, i, &known) && known.n <= (size_t)most) {
        memcpy(out, known.items, known.n * sizeof *out);
        return (int)known.n;
    }
    const int rank = cfxi_import_rank(c, i);
    const cfx_var n = rank == 1 ? cfxi_import_size(c, i, 0) : cfx_var_int(1);
    if (rank < 0 || rank > 1 || n.kind != CFX_VAR_INT || n.as.i > most) {
        cfxi_import_fail(c, CFX_E_UNSUPPORTED, "input %zu must be a list of at most %d integers, "
                         "and its length be known", i, most);
        return -1;
    }
    for (int k = 0; k < (int)n.as.i; k++)
        out[k] = cfx_item(s, rank == 0 ? cfxi_import_in(c, i)
                                       : cfx_select(s, cfxi_import_in(c, i), 0, k));
    return (int)n.as.i;
}

cfx_var cfxi_import_floats_of(cfxi_import_call *c, size_t i)
{
    cfx_scope *s = c->scope;
    cfx_var items[CFX_MAX_DIMS * 2];
    const cfx_tensor *known = cfxi_import_known(c, i);
    const cfx_var n = cfxi_import_rank(c, i) == 1 ? cfxi_import_size(c, i, 0) : cfx_var_empty();
    if (n.kind != CFX_VAR_INT || n.as.i > CFX_MAX_DIMS * 2)
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "input %zu must be a list, and its length be "
                                "known", i);
    for (int64_t k = 0; k < n.as.i; k++) {
        if (known) {
            const size_t item = cfx_dtype_size(cfx_tensor_dtype(known));
            cfx_datum d = cfx_datum_load(cfx_tensor_dtype(known),
                                         (const char *)cfx_tensor_data(known) + (size_t)k * item);
            items[k] = cfx_var_float(d.kind == CFX_DATUM_INT ? (double)d.as.i : d.as.f);
        } else {
            items[k] = cfx_item(s, cfx_select(s, cfxi_import_in(c, i), 0, k));
        }
    }
    return cfxi_import_tuple(s, items, (size_t)n.as.i);
}

cfx_var cfxi_import_pad_ends(cfx_scope *s, cfx_var x, const cfx_var *before, const cfx_var *after,
                             int n, cfx_var value)
{
    cfx_var pads[CFX_MAX_DIMS * 2];
    bool any = false;
    for (int i = 0; i < n; i++) {  /* the last dimension first */
        pads[2 * i] = before[n - 1 - i];
        pads[2 * i + 1] = after[n - 1 - i];
        any = any || !is_number(pads[2 * i], 0) || !is_number(pads[2 * i + 1], 0);
    }
    return any ? cfx_constant_pad_nd(s, x, cfxi_import_tuple(s, pads, (size_t)n * 2),
                                     .value = value)
               : x;
}

/* ---- types --------------------------------------------------------------------------------- */

cfx_var cfxi_import_cast_to(cfx_scope *s, cfx_var x, cfx_dtype dtype)
{
    if (dtype == CFX_DTYPE_COUNT || cfxi_import_dtype_of(s, x) == dtype)
        return x;
    return cfx_to(s, x, cfx_var_dtype(dtype));
}

cfx_var cfxi_import_widened(cfx_scope *s, cfx_var x)
{
    const cfx_dtype dtype = cfxi_import_dtype_of(s, x);
    const bool narrow = dtype == CFX_DTYPE_FLOAT16 || dtype == CFX_DTYPE_BFLOAT16;
    return narrow ? cfx_to(s, x, cfx_var_dtype(CFX_DTYPE_FLOAT32)) : x;
}

cfx_var cfxi_import_along(cfx_scope *s, cfx_var x, int axis, int rank)
{
    int64_t sizes[CFX_MAX_DIMS];
    if (rank < 1 || rank > CFX_MAX_DIMS)
        return x;
    for (int i = 0; i < rank; i++)
        sizes[i] = i == axis ? -1 : 1;
    return cfx_reshape(s, x, cfx_var_ints(s, sizes, (size_t)rank));
}
