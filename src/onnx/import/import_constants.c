/* import_constants.c - constants of every kind. */
#include "import_impl.h"
#include "engine_impl.h"

/* A tensor of numbers that an attribute lists. */
static cfx_tensor *from_numbers(cfxi_import_call *c, cfx_dtype dtype, const void *data, size_t n,
                                bool is_scalar)
{
    cfx_error err = {0};
    const int64_t size = (int64_t)n;
    cfx_tensor *t = cfx_tensor_new(dtype, &size, !is_scalar, c->import->allocator, &err);
    if (!t)
        cfxi_import_fail(c, err.status, "%s", err.message);
    else if (n > 0)
        memcpy(cfx_tensor_data(t), data, n * cfx_dtype_size(dtype));
    return t;
}

static cfx_tensor *from_attribute(cfxi_import_call *c, const char *name,
                                  const cfxi_onnx_attribute *a)
{
    cfx_error err = {0};
    if (strcmp(name, "value") == 0)
        return cfxi_import_tensor_attribute(c, name);
    if (strcmp(name, "value_float") == 0)
        return from_numbers(c, CFX_DTYPE_FLOAT32, &a->f, 1, true);
    if (strcmp(name, "value_int") == 0)
        return from_numbers(c, CFX_DTYPE_INT64, &a->i, 1, true);
    if (strcmp(name, "value_floats") == 0)
        return from_numbers(c, CFX_DTYPE_FLOAT32, a->floats.items, a->floats.n, false);
    if (strcmp(name, "value_ints") == 0)
        return from_numbers(c, CFX_DTYPE_INT64, a->ints.items, a->ints.n, false);
    if (strcmp(name, "sparse_value") == 0 && a->sparse) {
        cfx_tensor *t = cfxi_onnx_tensor_of_sparse(&c->import->source, a->sparse, &err);
        if (!t)
            cfxi_import_fail(c, err.status, "%s", err.message);
        return t;
    }
    cfxi_import_fail(c, CFX_E_UNSUPPORTED, "it is a string; cfx has numbers alone");
    return NULL;
}

cfx_var cfxi_import_constant(cfxi_import_call *c)
{
    static const char *const names[] = {"value",        "value_float",  "value_int",
                                        "value_floats", "value_ints",   "sparse_value",
                                        "value_string", "value_strings"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const cfxi_onnx_attribute *a = cfxi_import_attribute(c, names[i]);
        if (!a)
            continue;
        cfxi_import_set_known(c, 0, from_attribute(c, names[i], a));
        if (a->t)
            cfxi_import_set_type(c, 0, a->t->dtype);
        return cfx_var_empty();
    }
    return cfxi_import_fail(c, CFX_E_VALUE, "it has no value");
}

/* The one element of the attribute `value`; 0 as float32 if it is not given. */
static cfx_var fill_value(cfxi_import_call *c, cfx_dtype *dtype)
{
    cfx_tensor *t = cfxi_import_tensor_attribute(c, "value");
    cfx_var v = cfx_var_float(0);
    *dtype = t ? cfx_tensor_dtype(t) : CFX_DTYPE_FLOAT32;
    if (t && cfx_tensor_numel(t) == 1) {
        const cfx_datum d = cfx_datum_load(*dtype, cfx_tensor_data(t));
        v = d.kind == CFX_DATUM_INT    ? cfx_var_int(d.as.i)
            : d.kind == CFX_DATUM_BOOL ? cfx_var_bool(d.as.b)
                                       : cfx_var_float(d.as.f);
    } else if (t) {
        cfxi_import_fail(c, CFX_E_VALUE, "'value' must have one element");
    }
    cfx_tensor_release(t);
    return v;
}

cfx_var cfxi_import_constant_of_shape(cfxi_import_call *c)
{
    cfx_dtype dtype;
    const cfx_var value = fill_value(c, &dtype);
    const cfx_var sizes = cfxi_import_ints_of(c, 0);
    return cfx_full(c->scope, sizes, value, .dtype = cfx_var_dtype(dtype));
}

/* ---- tensors that are made of numbers ------------------------------------------------------ */

cfx_var cfxi_import_range(cfxi_import_call *c)
{
    const cfx_dtype dtype = cfxi_import_dtype(c, 0);
    const cfx_var start = cfxi_import_number(c, 0);
    const cfx_var end = cfxi_import_number(c, 1);
    const cfx_var step = cfxi_import_number(c, 2);
    return cfx_arange_start(c->scope, start, end, .step = step,
                            .dtype = dtype == CFX_DTYPE_COUNT ? cfx_var_empty()
                                                              : cfx_var_dtype(dtype));
}

cfx_var cfxi_import_trilu(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const cfx_var k = cfxi_import_has(c, 1) ? cfxi_import_number(c, 1) : cfx_v(0);
    const cfx_var x = cfxi_import_in(c, 0);
    return cfxi_import_int(c, "upper", 1) ? cfx_triu(s, x, .diagonal = k)
                                          : cfx_tril(s, x, .diagonal = k);
}

cfx_var cfxi_import_eye_like(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const int64_t to = cfxi_import_int(c, "dtype", 0);
    const cfx_dtype dtype = to ? cfxi_onnx_dtype(to) : cfxi_import_dtype(c, 0);
    if (cfxi_import_need_rank(c, 0) != 2 || dtype == CFX_DTYPE_COUNT)
        return cfxi_import_fail(c, CFX_E_VALUE, "the input must be a matrix, of a type that is "
                                "known");
    const cfx_var row = cfx_arange(s, cfxi_import_size(c, 0, 0));
    const cfx_var column = cfx_arange(s, cfxi_import_size(c, 0, 1));
    const cfx_var shifted = cfx_add(s, cfx_unsqueeze(s, row, 1), cfxi_import_int(c, "k", 0));
    return cfx_to(s, cfx_eq(s, shifted, column), cfx_var_dtype(dtype));
}
