/* arguments.c - arguments in the form that the schema promises, and how rules and kernels read
 * them. */
#include "ops/ops_impl.h"
#include "runtime_impl.h"
#include "dim/dim_impl.h"

#include <math.h>

/* ---- converting ---------------------------------------------------------------------------- */

cfx_dtype cfxi_rt_scalar_dtype(cfx_datum d)
{
    return d.kind == CFX_DATUM_BOOL  ? CFX_DTYPE_BOOL
           : d.kind == CFX_DATUM_INT ? CFX_DTYPE_INT64
           : d.kind == CFX_DATUM_FLOAT ? CFX_DTYPE_FLOAT64
                                       : CFX_DTYPE_COMPLEX128;
}

/* A number as a tensor without dimensions; an abstract one if the number is not known. */
static cfx_datum wrap(cfxi_call *c, cfx_datum d)
{
    cfx_tensor *t = d.symbolic ? cfx_tensor_new_abstract(cfxi_rt_scalar_dtype(d), NULL, 0,
                                                         c->rt->allocator, c->err)
                               : cfx_tensor_new(cfxi_rt_scalar_dtype(d), NULL, 0, c->rt->allocator,
                                                c->err);
    if (!t)
        return cfx_datum_invalid();
    t->number = true;
    if (!d.symbolic)
        memcpy(t->data, &d.as, cfx_dtype_size((cfx_dtype)t->dtype));
    return cfx_datum_tensor(t);
}

/* What an abstract tensor of one element holds: a number that is not known. */
static bool unwrap_abstract(cfxi_call *c, const cfx_tensor *t, cfx_datum *out)
{
    if (!c->infer || cfx_dtype_is_complex((cfx_dtype)t->dtype))
        return false;
    for (size_t i = 0; i < t->ndim; i++)
        if (t->size[i] != 1)
            return false;
    if (cfx_dtype_is_integer((cfx_dtype)t->dtype)) {
        *out = cfxi_rt_unknown_int(c);
        return true;
    }
    *out = t->dtype == CFX_DTYPE_BOOL ? cfx_datum_bool(false) : cfx_datum_float(0);
    out->symbolic = 1;
    return true;
}

/* The number in a tensor of one element. */
static bool element(cfx_datum d, cfx_datum *out)
{
    const cfx_tensor *t = d.kind == CFX_DATUM_TENSOR ? d.as.tensor : NULL;
    if (!t || !cfxi_rt_can_read(t) || cfxi_tensor_numel(t) != 1)
        return false;
    if (t->dtype == CFX_DTYPE_BOOL)
        *out = cfx_datum_bool(*t->data != 0);
    else if (cfx_dtype_is_integer((cfx_dtype)t->dtype))
        *out = cfx_datum_int(cfxi_tensor_load_int((cfx_dtype)t->dtype, t->data));
    else if (cfx_dtype_is_float((cfx_dtype)t->dtype))
        *out = cfx_datum_float(cfxi_tensor_load_float((cfx_dtype)t->dtype, t->data));
    else
        return false;
    return true;
}

/* Torch takes such a tensor for an int or float. */
static bool unwrap(cfxi_call *c, cfx_datum d, cfx_datum *out)
{
    if (d.kind == CFX_DATUM_TENSOR && !d.as.tensor->storage)
        return unwrap_abstract(c, d.as.tensor, out);
    return element(d, out);
}

/* A number as small as symbols are would be taken for one. No size, index or dimension is, so that
 * all of them act alike. The ends of a range of random numbers are none of these, and of a shift or
 * a number of turns the remainder counts. */
static bool looks_symbolic(const cfxi_call *c, cfx_datum d, bool item)
{
    if (d.kind != CFX_DATUM_INT || d.symbolic || d.as.i > CFX_DIM_UNKNOWN)
        return false;
    if (c->op == CFX_OPID_roll || c->op == CFX_OPID_rot90)
        return false;
    return item || (c->op != CFX_OPID_randint && c->op != CFX_OPID_randint_like &&
                    c->op != CFX_OPID_random);
}

/* Whether `t` is one number: clamp's limits may be more, and index_fill says what it takes. */
static bool fits_scalar(const cfxi_call *c, const cfx_tensor *t)
{
    if (c->op == CFX_OPID_clamp || c->op == CFX_OPID_clamp_min || c->op == CFX_OPID_clamp_max ||
        c->op == CFX_OPID_index_fill)
        return true;
    for (size_t i = 0; i < t->ndim; i++)
        if (!cfx_dim_is_symbol(t->size[i]) && t->size[i] != 1)
            return false;
    return true;
}

/* One argument or item of a list; INVALID if it does not fit. Owned. */
static cfx_datum convert_one(cfxi_call *c, cfxi_param_type type, cfx_datum d, bool item)
{
    const cfx_datum misfit = cfx_datum_invalid();
    cfx_datum number = d;
    switch (type) {
    case CFXI_PARAM_TENSOR:
        if (cfxi_rt_is_number(d))
            return wrap(c, d);
        return d.kind == CFX_DATUM_TENSOR ? cfx_datum_retain(d) : misfit;
    case CFXI_PARAM_INT:
        if (number.kind == CFX_DATUM_TENSOR && !unwrap(c, d, &number))
            return misfit;
        if (number.kind == CFX_DATUM_BOOL && d.kind == CFX_DATUM_TENSOR)
            return misfit;  /* a tensor that counts has integers */
        if (number.kind == CFX_DATUM_BOOL)
            return number.symbolic ? cfxi_rt_unknown_int(c) : cfx_datum_int(number.as.b);
        if (looks_symbolic(c, number, item))
            return cfx_datum_int(CFX_DIM_UNKNOWN + 1);
        return number.kind == CFX_DATUM_INT ? number : misfit;
    case CFXI_PARAM_FLOAT:
        if (number.kind == CFX_DATUM_TENSOR && !unwrap(c, d, &number))
            return misfit;
        if (number.kind == CFX_DATUM_BOOL)
            return cfx_datum_float(number.as.b);
        if (number.kind == CFX_DATUM_INT) {
            cfx_datum f = cfx_datum_float((double)number.as.i);
            f.symbolic = number.symbolic;
            return f;
        }
        return number.kind == CFX_DATUM_FLOAT ? number : misfit;
    case CFXI_PARAM_BOOL:
        if (number.kind == CFX_DATUM_TENSOR && !unwrap(c, d, &number))
            return misfit;
        if (number.kind == CFX_DATUM_INT && d.kind == CFX_DATUM_INT && !number.symbolic)
            return cfx_datum_bool(number.as.i != 0);
        return number.kind == CFX_DATUM_BOOL ? number : misfit;
    case CFXI_PARAM_SCALAR:
        if (d.kind == CFX_DATUM_TENSOR ? !fits_scalar(c, d.as.tensor) : !cfxi_rt_is_number(d))
            return misfit;
        return cfx_datum_retain(d);
    case CFXI_PARAM_STR: return d.kind == CFX_DATUM_STR ? cfx_datum_retain(d) : misfit;
    case CFXI_PARAM_DTYPE: return d.kind == CFX_DATUM_DTYPE ? d : misfit;
    case CFXI_PARAM_OTHER: return cfx_datum_retain(d);
    }
    return misfit;
}

static bool is_none(cfx_datum d) { return d.kind == CFX_DATUM_NONE || d.kind == CFX_DATUM_INVALID; }

/* Whether the items are what they should be already: then the list is shared. */
static bool fits_as_it_is(const cfxi_call *c, const cfxi_signature_param *p,
                          const cfx_datum *items, size_t n)
{
    if (p->length && n == 1 && p->length > 1)
        return false;
    for (size_t i = 0; i < n; i++) {
        bool fits = p->type == CFXI_PARAM_OTHER ||
                    (p->type == CFXI_PARAM_TENSOR && items[i].kind == CFX_DATUM_TENSOR) ||
                    (p->type == CFXI_PARAM_INT && items[i].kind == CFX_DATUM_INT &&
                     !looks_symbolic(c, items[i], true)) ||
                    (p->type == CFXI_PARAM_FLOAT && items[i].kind == CFX_DATUM_FLOAT) ||
                    (p->items_optional && items[i].kind == CFX_DATUM_NONE);
        if (!fits)
            return false;
    }
    return true;
}

/* A list of `length` times the same, or of the items converted. */
static cfx_datum convert_items(cfxi_call *c, const cfxi_signature_param *p, const cfx_datum *items,
                               size_t n)
{
    cfx_datum some[16];
    cfx_datum result = cfx_datum_invalid();
    size_t length = n == 1 && p->length > 1 ? p->length : n;
    cfx_datum *made = length <= 16 ? some : cfxi_rt_scratch(c->rt, length * sizeof *made);
    if (!made) {
        cfxi_base_nomem(c->err);
        return result;
    }
    size_t i = 0;
    for (; i < length; i++) {
        cfx_datum item = items[n == 1 ? 0 : i];
        bool none = p->items_optional && is_none(item);
        made[i] = none ? cfx_datum_none() : convert_one(c, (cfxi_param_type)p->type, item, true);
        if (made[i].kind == CFX_DATUM_INVALID)
            break;
    }
    if (i == length)
        result = cfx_datum_seq(CFX_DATUM_LIST, made, length, c->rt->allocator, c->err);
    while (i-- > 0)
        cfx_datum_release(made[i]);
    if (made != some)
        cfxi_rt_scratch_free(c->rt, made);
    return result;
}

static cfx_datum convert_list(cfxi_call *c, const cfxi_signature_param *p, cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    if (d.kind != CFX_DATUM_LIST && d.kind != CFX_DATUM_TUPLE)
        return convert_items(c, p, &d, 1);  /* one number for all */
    if (fits_as_it_is(c, p, items, n))
        return cfx_datum_retain(d);
    return convert_items(c, p, items, n);
}

static cfx_status refuse(cfxi_call *c, const cfxi_signature *s, size_t i, cfx_datum d)
{
    cfx_schema_param param;
    cfxi_ops_schema_param(s->schema, i, &param);
    if (c->err->status == CFX_E_NOMEM)
        return CFX_E_NOMEM;
    if (d.kind == CFX_DATUM_INVALID)
        return cfxi_fail(c, CFX_E_TYPE, "missing argument '%.*s'",
                         (int)param.name.size, param.name.text);
    if (d.kind == CFX_DATUM_TENSOR)  /* some can stand for numbers */
        return cfxi_fail(c, CFX_E_TYPE, "argument '%.*s' must be %s, not a %s tensor with %u "
                         "dimension(s)",
                         (int)param.name.size, param.name.text, param.type,
                         cfx_dtype_name(cfx_tensor_dtype(d.as.tensor)), d.as.tensor->ndim);
    return cfxi_fail(c, CFX_E_TYPE, "argument '%.*s' must be %s, not %s", (int)param.name.size,
                     param.name.text, param.type, cfx_datum_kind_name((cfx_datum_kind)d.kind));
}

/* A kernel reads what it is given: elements that are still in a file are fetched. */
static cfx_status settle(const cfxi_call *c, cfx_datum d)
{
    size_t n;
    if (c->infer)
        return CFX_OK;
    if (d.kind == CFX_DATUM_TENSOR)
        return cfxi_tensor_settle(d.as.tensor, c->err);
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        if (items[i].kind == CFX_DATUM_TENSOR)
            CFX_TRY(cfxi_tensor_settle(items[i].as.tensor, c->err));
    return CFX_OK;
}

cfx_status cfxi_rt_arguments(cfxi_call *c, const cfxi_signature *s, const cfx_datum *args, size_t n,
                             cfx_datum *full)
{
    for (size_t i = 0; i < s->num_params; i++)
        full[i] = cfx_datum_invalid();
    if (n > s->num_params)
        return cfxi_fail(c, CFX_E_TYPE, "too many arguments: expected at most %u, got %zu",
                         s->num_params, n);
    for (size_t i = 0; i < s->num_params; i++) {
        const cfxi_signature_param *p = &s->params[i];
        cfx_datum given = i < n ? args[i] : full[i];
        if (given.kind == CFX_DATUM_INVALID) {
            if (p->value.kind == CFX_DATUM_INVALID && !p->optional &&
                (p->type != CFXI_PARAM_OTHER || !p->list))
                return refuse(c, s, i, given);
            full[i] = cfx_datum_retain(p->value);
            continue;
        }
        if (given.kind == CFX_DATUM_NONE && (p->optional || p->type >= CFXI_PARAM_DTYPE))
            full[i] = given;
        else if (given.kind == CFX_DATUM_STR && p->words)
            full[i] = cfx_datum_retain(given);
        else
            full[i] = p->list ? convert_list(c, p, given)
                              : convert_one(c, (cfxi_param_type)p->type, given, false);
        if (full[i].kind == CFX_DATUM_INVALID)
            return refuse(c, s, i, given);
        if (p->type == CFXI_PARAM_TENSOR || p->type == CFXI_PARAM_OTHER)
            CFX_TRY(settle(c, full[i]));
    }
    return CFX_OK;
}

/* ---- reading ------------------------------------------------------------------------------- */

double cfxi_rt_scalar(const cfxi_call *c, size_t i)
{
    cfx_datum d = c->args[i];
    if (d.symbolic || (d.kind == CFX_DATUM_TENSOR && !cfxi_rt_can_read(d.as.tensor)))
        return NAN;  /* not known: no comparison in a rule holds */
    if (d.kind == CFX_DATUM_TENSOR && !element(d, &d))
        return 0;
    return d.kind == CFX_DATUM_BOOL ? d.as.b : d.kind == CFX_DATUM_INT ? (double)d.as.i : d.as.f;
}

cfx_status cfxi_rt_number(cfxi_call *c, size_t i, int64_t *out)
{
    if (c->args[i].kind != CFX_DATUM_INT || c->args[i].symbolic)
        return cfxi_fail(c, CFX_E_VALUE, "argument %zu must be a known integer", i);
    *out = c->args[i].as.i;
    return CFX_OK;
}

cfx_status cfxi_rt_ints(cfxi_call *c, size_t i, int64_t out[], size_t *n)
{
    const cfx_datum *items = cfx_datum_items(c->args[i], n);
    if (*n > CFX_MAX_DIMS)
        return cfxi_fail(c, CFX_E_SHAPE, "got a list of %zu sizes; cfx supports up to %d "
                         "dimensions", *n, CFX_MAX_DIMS);
    for (size_t k = 0; k < *n; k++)
        out[k] = items[k].as.i;
    return CFX_OK;
}

cfx_status cfxi_rt_dim(cfxi_call *c, int64_t dim, size_t ndim, size_t *out)
{
    int64_t n = ndim ? (int64_t)ndim : 1;
    if (dim <= CFX_DIM_UNKNOWN)
        return cfxi_fail(c, CFX_E_VALUE, "dim must be a known integer");
    if (dim < -n || dim >= n)
        return cfxi_fail(c, CFX_E_INDEX,
                         "Dimension out of range (expected to be in range of [%lld, %lld], but got "
                         "%lld)", (long long)-n, (long long)n - 1, (long long)dim);
    *out = (size_t)(dim < 0 ? dim + n : dim);
    return CFX_OK;
}

/* ---- sizes --------------------------------------------------------------------------------- */

int64_t cfxi_rt_fresh(cfxi_call *c)
{
    return c->infer && c->dims ? cfxi_dim_fresh(c->dims, c->err) : CFX_DIM_UNKNOWN;
}

cfx_datum cfxi_rt_unknown_int(cfxi_call *c)
{
    cfx_datum d = cfx_datum_int(CFX_DIM_UNKNOWN);
    if (c->infer && c->dims)
        d.as.i = cfxi_dim_fresh_number(c->dims, c->err);
    d.symbolic = 1;
    return d;
}

static bool is_cautious(const cfxi_call *c, int64_t a, int64_t b)
{
    return c->dims && c->dims->cautious && (cfx_dim_is_symbol(a) || cfx_dim_is_symbol(b));
}

static bool is_more_than_one(const cfxi_call *c, int64_t size)
{
    return cfx_dim_is_symbol(size) ? cfxi_dim_at_least(c->dims, size, 2) : size != 1;
}

bool cfxi_rt_join_sizes(cfxi_call *c, int64_t *a, int64_t b)
{
    if (*a == 1)
        *a = b;
    if (*a == b || b == 1)
        return true;
    if (!is_cautious(c, *a, b))
        return cfxi_rt_same_size(c, b, *a);
    if (is_more_than_one(c, *a) || cfx_dim_compare_eq(c->dims, *a, b) == 1)
        return true;  /* and what stands on the other side is that, or 1 */
    *a = is_more_than_one(c, b) ? b : cfxi_rt_fresh(c);
    return true;
}

bool cfxi_rt_broadcasts(cfxi_call *c, int64_t size, int64_t to)
{
    return size == 1 || is_cautious(c, size, to) || cfxi_rt_same_size(c, size, to);
}

cfx_status cfxi_rt_is_one(cfxi_call *c, int64_t size, bool *out)
{
    *out = size == 1;
    if (is_cautious(c, size, 1) && !is_more_than_one(c, size))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "whether a size is 1 is not known");
    return CFX_OK;
}

cfx_status cfxi_rt_broadcast(cfxi_call *c, const cfx_tensor *const *tensors, size_t n,
                             int64_t sizes[CFX_MAX_DIMS], size_t *ndim)
{
    *ndim = 0;
    for (size_t i = 0; i < n; i++)
        if (tensors[i] && tensors[i]->ndim > *ndim)
            *ndim = tensors[i]->ndim;
    for (size_t d = 0; d < *ndim; d++)
        sizes[d] = 1;
    for (size_t i = 0; i < n; i++) {
        size_t skip = tensors[i] ? *ndim - tensors[i]->ndim : *ndim;
        for (size_t d = skip; d < *ndim; d++) {
            int64_t size = tensors[i]->size[d - skip];
            const int64_t before = sizes[d];
            if (!cfxi_rt_join_sizes(c, &sizes[d], size))
                return cfxi_fail(c, CFX_E_SHAPE,
                                 "The size of tensor a (%lld) must match the size of tensor b "
                                 "(%lld) at non-singleton dimension %zu", (long long)before,
                                 (long long)size, d);
        }
    }
    return CFX_OK;
}
