/* properties.c - what a tensor is: its sizes, its type. Rules alone: no element is looked at. */
#include "runtime/view_impl.h"

#include <stdio.h>

/* ---- sizes --------------------------------------------------------------------------------- */

cfx_status cfxi_rule_numel(cfxi_call *c)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, 0);
    cfxi_rt_result_datum(c, 0, cfxi_rt_size_datum(cfxi_rt_numel_dim(c, t->size, t->ndim)));
    return c->err->status;
}

/* The stride of dimension `d` in elements. Of an abstract tensor that of a dense one. */
static int64_t stride_of(cfxi_call *c, const cfx_tensor *t, size_t d)
{
    if (t->storage)
        return t->stride[d] / (int64_t)cfxi_tensor_itemsize(t);
    return cfxi_rt_numel_dim(c, t->size + d + 1, t->ndim - d - 1);
}

/* All sizes or strides as a tuple. */
static cfx_status all_of(cfxi_call *c, const cfx_tensor *t, bool strides)
{
    cfx_datum items[CFX_MAX_DIMS];
    for (size_t i = 0; i < t->ndim; i++)
        items[i] = cfxi_rt_size_datum(strides ? stride_of(c, t, i) : t->size[i]);
    cfx_datum tuple = cfx_datum_seq(CFX_DATUM_TUPLE, items, t->ndim, c->rt->allocator, c->err);
    if (tuple.kind == CFX_DATUM_INVALID)
        return c->err->status;
    cfxi_rt_result_datum(c, 0, tuple);
    return CFX_OK;
}

static cfx_status one_of(cfxi_call *c, const cfx_tensor *t, bool strides)
{
    size_t dim;
    if (t->ndim == 0)
        return cfxi_fail(c, CFX_E_INDEX, "Dimension specified as %lld but tensor has no dimensions",
                         (long long)cfxi_rt_int(c, 1));
    CFX_TRY(cfxi_rt_dim(c, cfxi_rt_int(c, 1), t->ndim, &dim));
    cfxi_rt_result_datum(c, 0, cfxi_rt_size_datum(strides ? stride_of(c, t, dim) : t->size[dim]));
    return CFX_OK;
}

cfx_status cfxi_rule_size(cfxi_call *c)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, 0);
    if (!cfxi_rt_is_none(c, 1))
        return one_of(c, t, false);
    CFX_TRY(all_of(c, t, false));
    cfx_datum_set_row(c->results[0], CFX_OPID_size);
    return CFX_OK;
}

cfx_status cfxi_rule_stride(cfxi_call *c)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, 0);
    return cfxi_rt_is_none(c, 1) ? all_of(c, t, true) : one_of(c, t, true);
}

/* Not known before a run, if sizes are not the same symbols. */
cfx_status cfxi_rule_is_same_size(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    const cfx_tensor *b = cfxi_rt_tensor(c, 1);
    bool same = a->ndim == b->ndim;
    bool known = true;
    for (size_t i = 0; i < a->ndim && same && known; i++) {
        same = a->size[i] == b->size[i];
        known = same || (!cfx_dim_is_symbol(a->size[i]) && !cfx_dim_is_symbol(b->size[i]));
    }
    cfx_datum answer = cfx_datum_bool(same);
    answer.symbolic = !known;
    cfxi_rt_result_datum(c, 0, answer);
    return CFX_OK;
}

cfx_status cfxi_rule_element_size(cfxi_call *c)
{
    cfxi_rt_result_datum(c, 0, cfx_datum_int((int64_t)cfxi_tensor_itemsize(cfxi_rt_tensor(c, 0))));
    return CFX_OK;
}

cfx_status cfxi_rule_dim(cfxi_call *c)
{
    cfxi_rt_result_datum(c, 0, cfx_datum_int(cfxi_rt_tensor(c, 0)->ndim));
    return CFX_OK;
}

cfx_status cfxi_rule_is_floating_point(cfxi_call *c)
{
    cfx_dtype dtype = (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype;
    cfxi_rt_result_datum(c, 0, cfx_datum_bool(cfx_dtype_is_float(dtype)));
    return CFX_OK;
}

cfx_status cfxi_rule_is_complex(cfxi_call *c)
{
    cfx_dtype dtype = (cfx_dtype)cfxi_rt_tensor(c, 0)->dtype;
    cfxi_rt_result_datum(c, 0, cfx_datum_bool(cfx_dtype_is_complex(dtype)));
    return CFX_OK;
}

/* ---- getattr ------------------------------------------------------------------------------- */

/* Attributes that are a row on the tensor. */
static const struct {
    const char *name;
    cfx_operator op;
} by_row[] = {
    {"shape", CFX_OPID_size}, {"T", CFX_OPID_numpy_T},  {"mT", CFX_OPID_mT},
    {"H", CFX_OPID_adjoint},  {"mH", CFX_OPID_adjoint}, {"real", CFX_OPID_real},
    {"imag", CFX_OPID_imag},  {"data", CFX_OPID_alias}, {"ndim", CFX_OPID_dim},
};

static const char *const always_false[] = {
    "requires_grad", "is_cuda", "is_sparse", "is_quantized", "is_meta", "is_mkldnn", "is_nested",
    "is_mps", "is_xpu", "is_sparse_csr",
};

static cfx_datum tensor_attribute(cfxi_call *c, cfx_datum object, const char *name)
{
    const cfx_tensor *t = object.as.tensor;
    for (size_t i = 0; i < sizeof by_row / sizeof *by_row; i++)
        if (strcmp(name, by_row[i].name) == 0)
            return cfxi_rt_sub(c, by_row[i].op, &object, 1);
    for (size_t i = 0; i < sizeof always_false / sizeof *always_false; i++)
        if (strcmp(name, always_false[i]) == 0)
            return cfx_datum_bool(false);
    if (strcmp(name, "dtype") == 0)
        return cfx_datum_dtype((cfx_dtype)t->dtype);
    if (strcmp(name, "device") == 0)
        return cfx_datum_from_text(CFX_DATUM_DEVICE, "cpu", 3, c->rt->allocator, c->err);
    if (strcmp(name, "layout") == 0)
        return cfx_datum_scalar(CFX_DATUM_LAYOUT, CFX_LAYOUT_STRIDED);
    if (strcmp(name, "is_cpu") == 0 || strcmp(name, "is_leaf") == 0)
        return cfx_datum_bool(true);
    if (strcmp(name, "itemsize") == 0)
        return cfx_datum_int((int64_t)cfxi_tensor_itemsize(t));
    if (strcmp(name, "nbytes") == 0) {
        int64_t n = cfxi_rt_numel_dim(c, t->size, t->ndim);
        return cfxi_rt_size_datum(
            cfx_dim_mul(c->dims, n, (int64_t)cfxi_tensor_itemsize(t), c->err));
    }
    if (strcmp(name, "grad") == 0 || strcmp(name, "grad_fn") == 0)
        return cfx_datum_none();
    return cfx_datum_invalid();
}

/* "values" of what max_dim returns; start, stop and step of a slice. */
static cfx_datum item_by_name(cfx_datum object, const char *name)
{
    static const char *const slice_names[] = {"start", "stop", "step"};
    size_t n;
    const cfx_datum *items = cfx_datum_items(object, &n);
    cfx_schema_param result;
    for (size_t i = 0; i < n; i++) {
        if (object.kind == CFX_DATUM_SLICE && strcmp(name, slice_names[i]) == 0)
            return cfx_datum_retain(items[i]);
        if (object.kind == CFX_DATUM_TUPLE && object.as.seq->op &&
            cfx_operator_result((cfx_operator)object.as.seq->op, i, &result) &&
            result.name.size == strlen(name) &&
            memcmp(result.name.text, name, result.name.size) == 0)
            return cfx_datum_retain(items[i]);
    }
    return cfx_datum_invalid();
}

static cfx_datum number_attribute(cfx_datum object, const char *name)
{
    bool complex = object.kind == CFX_DATUM_COMPLEX;
    if (strcmp(name, "real") == 0)
        return complex ? cfx_datum_float(object.as.c[0]) : object;
    if (strcmp(name, "imag") == 0)
        return complex                             ? cfx_datum_float(object.as.c[1])
               : object.kind == CFX_DATUM_FLOAT ? cfx_datum_float(0)
                                                   : cfx_datum_int(0);
    return cfx_datum_invalid();
}

static cfx_datum dtype_attribute(cfx_dtype dtype, const char *name)
{
    if (strcmp(name, "is_floating_point") == 0)
        return cfx_datum_bool(cfx_dtype_is_float(dtype));
    if (strcmp(name, "is_complex") == 0)
        return cfx_datum_bool(cfx_dtype_is_complex(dtype));
    if (strcmp(name, "itemsize") == 0)
        return cfx_datum_int((int64_t)cfx_dtype_size(dtype));
    return cfx_datum_invalid();
}

/* type and index of "cuda:1" */
static cfx_datum device_attribute(cfxi_call *c, cfx_datum object, const char *name)
{
    size_t size;
    const char *text = cfx_datum_text(object, &size);
    const char *colon = memchr(text, ':', size);
    int64_t index = 0;
    size_t type = colon ? (size_t)(colon - text) : size;
    if (strcmp(name, "type") == 0)
        return cfx_datum_from_text(CFX_DATUM_STR, text, type, c->rt->allocator, c->err);
    if (strcmp(name, "index") == 0 && !colon)
        return cfx_datum_none();
    if (strcmp(name, "index") == 0 && cfxi_base_parse_int(colon + 1, size - type - 1, &index))
        return cfx_datum_int(index);
    return cfx_datum_invalid();
}

/* ---- what a type can hold: torch.finfo, torch.iinfo ---------------------------------------- */

enum { MOST_FACTS = 7 };

/* Names and values in turn, as a dict has them. */
typedef struct facts {
    const char *names[MOST_FACTS];
    cfx_datum values[MOST_FACTS];
    size_t n;
} facts;

static void add_fact(facts *f, const char *name, cfx_datum value)
{
    f->names[f->n] = name;
    f->values[f->n++] = value;
}

static bool float_facts(cfx_dtype t, facts *f)
{
    static const struct {
        uint8_t dtype, bits;
        double max, eps, tiny, resolution;
    } rows[] = {
        {CFX_DTYPE_FLOAT16, 16, 65504, 0x1p-10, 0x1p-14, 1e-3},
        {CFX_DTYPE_BFLOAT16, 16, 0x1.fep127, 0x1p-7, 0x1p-126, 1e-2},
        {CFX_DTYPE_FLOAT32, 32, 0x1.fffffep127, 0x1p-23, 0x1p-126, 1e-6},
        {CFX_DTYPE_FLOAT64, 64, 0x1.fffffffffffffp1023, 0x1p-52, 0x1p-1022, 1e-15},
    };
    t = t == CFX_DTYPE_COMPLEX64 ? CFX_DTYPE_FLOAT32 : t == CFX_DTYPE_COMPLEX128 ? CFX_DTYPE_FLOAT64
                                                                                 : t;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].dtype == t) {
            add_fact(f, "bits", cfx_datum_int(rows[i].bits));
            add_fact(f, "max", cfx_datum_float(rows[i].max));
            add_fact(f, "min", cfx_datum_float(-rows[i].max));
            add_fact(f, "eps", cfx_datum_float(rows[i].eps));
            add_fact(f, "tiny", cfx_datum_float(rows[i].tiny));
            add_fact(f, "smallest_normal", cfx_datum_float(rows[i].tiny));
            add_fact(f, "resolution", cfx_datum_float(rows[i].resolution));
            return true;
        }
    return false;
}

static bool int_facts(cfx_dtype t, facts *f)
{
    const int bits = (int)cfx_dtype_size(t) * 8;
    const bool plain = t == CFX_DTYPE_UINT8 || t == CFX_DTYPE_UINT16 || t == CFX_DTYPE_UINT32;
    if (!cfx_dtype_is_integer(t) || (bits == 64 && t != CFX_DTYPE_INT64))
        return false;
    const int64_t most = plain ? (INT64_C(1) << bits) - 1 : (int64_t)(UINT64_MAX >> (65 - bits));
    add_fact(f, "bits", cfx_datum_int(bits));
    add_fact(f, "max", cfx_datum_int(most));
    add_fact(f, "min", cfx_datum_int(plain ? 0 : -most - 1));
    return true;
}

cfx_status cfxi_rule_type_info(cfxi_call *c)
{
    const bool whole = c->op == CFX_OPID_iinfo;
    const cfx_dtype t = cfxi_rt_is_none(c, 0) ? CFX_DTYPE_FLOAT32 : (cfx_dtype)c->args[0].as.i;
    facts f = {.n = 0};
    cfx_datum items[2 * MOST_FACTS];
    cfx_datum made = cfx_datum_invalid();
    size_t n = 0;
    if ((!cfxi_rt_is_none(c, 0) && c->args[0].kind != CFX_DATUM_DTYPE) ||
        !(whole ? int_facts(t, &f) : float_facts(t, &f)))
        return cfxi_fail(c, CFX_E_TYPE, "torch.%s() requires %s input type", whole ? "iinfo"
                         : "finfo", whole ? "an integer" : "a floating point");
    for (; n < f.n; n++) {
        items[2 * n] = cfx_datum_from_text(CFX_DATUM_STR, f.names[n], strlen(f.names[n]),
                                           c->rt->allocator, c->err);
        if (items[2 * n].kind == CFX_DATUM_INVALID)
            break;
        items[2 * n + 1] = f.values[n];
    }
    if (n == f.n)
        made = cfx_datum_seq(CFX_DATUM_DICT, items, 2 * n, c->rt->allocator, c->err);
    while (n-- > 0)
        cfx_datum_release(items[2 * n]);
    if (made.kind != CFX_DATUM_INVALID)
        cfxi_rt_result_datum(c, 0, made);
    return made.kind == CFX_DATUM_INVALID ? c->err->status : CFX_OK;
}

static cfx_datum dict_attribute(cfx_datum d, const char *name)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i + 1 < n; i += 2)
        if (items[i].kind == CFX_DATUM_STR && strcmp(cfx_datum_text(items[i], NULL), name) == 0)
            return cfx_datum_retain(items[i + 1]);
    return cfx_datum_invalid();
}

/* INVALID if it has none of the name that is known here. */
static cfx_datum attribute_of(cfxi_call *c, cfx_datum object, const char *name)
{
    switch ((cfx_datum_kind)object.kind) {
    case CFX_DATUM_TENSOR: return tensor_attribute(c, object, name);
    case CFX_DATUM_TUPLE:
    case CFX_DATUM_SLICE: return item_by_name(object, name);
    case CFX_DATUM_BOOL:
    case CFX_DATUM_INT:
    case CFX_DATUM_FLOAT:
    case CFX_DATUM_COMPLEX: return number_attribute(object, name);
    case CFX_DATUM_DICT: return dict_attribute(object, name);  /* of finfo */
    case CFX_DATUM_DTYPE: return dtype_attribute((cfx_dtype)object.as.i, name);
    case CFX_DATUM_DEVICE: return device_attribute(c, object, name);
    default: return cfx_datum_invalid();
    }
}

cfx_status cfxi_rule_getattr(cfxi_call *c)
{
    cfx_datum object = c->args[0];
    const char *name = cfxi_rt_str(c, 1);
    cfx_datum found = attribute_of(c, object, name);
    if (found.kind == CFX_DATUM_INVALID && c->err->status == CFX_OK && !cfxi_rt_is_none(c, 2))
        found = cfx_datum_retain(c->args[2]);
    if (found.kind == CFX_DATUM_INVALID && c->err->status == CFX_OK)
        return cfxi_fail(c, CFX_E_TYPE, "'%s' has no attribute '%.60s' that cfx supports",
                         cfx_datum_kind_name((cfx_datum_kind)object.kind), name);
    cfxi_rt_result_datum(c, 0, found);
    return found.kind == CFX_DATUM_INVALID ? c->err->status : CFX_OK;
}

/* Whether it is a method of tensors that has a row. */
static bool is_method(const char *name)
{
    char spelling[CFX_SPELLING_SIZE];
    const int size = snprintf(spelling, sizeof spelling, "torch.Tensor.%s", name);
    return size > 0 && (size_t)size < sizeof spelling &&
           cfx_operator_find(spelling, (size_t)size) != CFX_OPID_NONE;
}

/* Of what is not known here there may be more: only None has nothing that a program asks for. */
cfx_status cfxi_rule_hasattr(cfxi_call *c)
{
    const cfx_datum object = c->args[0];
    const char *name = cfxi_rt_str(c, 1);
    cfx_datum found = attribute_of(c, object, name);
    const bool known = found.kind != CFX_DATUM_INVALID ||
                       (object.kind == CFX_DATUM_TENSOR && is_method(name));
    cfx_datum_release(found);
    CFX_TRY(c->err->status);
    if (!known && object.kind != CFX_DATUM_NONE)
        return cfxi_fail(c, CFX_E_TYPE, "cannot tell whether '%s' has the attribute '%.60s'; cfx "
                         "does not know it", cfx_datum_kind_name((cfx_datum_kind)object.kind),
                         name);
    cfxi_rt_result_datum(c, 0, cfx_datum_bool(known));
    return CFX_OK;
}
