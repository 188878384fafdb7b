/* export_arguments.c - what a call gives for the parameters of its row, as rules ask for it. */
#include "export_impl.h"

bool cfxi_export_given(const cfxi_export_call *c, size_t i)
{
    return i < c->n && c->args[i]->datum.kind != CFX_DATUM_NONE;
}

cfxi_ev *cfxi_export_arg(cfxi_export_call *c, size_t i)
{
    return cfxi_export_given(c, i) ? cfxi_export_fresh(c->x, c->args[i]) : NULL;
}

cfxi_ev *cfxi_export_in(cfxi_export_call *c, size_t i)
{
    cfxi_ev *v = cfxi_export_arg(c, i);
    return v ? cfxi_export_cast(c->x, v, cfxi_export_result_dtype(c)) : NULL;
}

/* ---- numbers ------------------------------------------------------------------------------- */

static const char *param_name(const cfxi_export_call *c, size_t i)
{
    static char none[] = "?";
    cfx_schema_param param;
    if (!cfx_operator_param(c->op, i, &param))
        return none;
    return cfxi_export_text(c->x, "%.*s", (int)param.name.size, param.name.text);
}

static cfx_datum known_number(cfxi_export_call *c, size_t i)
{
    const cfx_datum d = i < c->n ? c->full[i] : cfx_datum_invalid();
    if (cfxi_rt_is_number(d) && !d.symbolic)
        return d;
    if (i < c->n && cfxi_export_is_known(c->args[i]))
        return c->args[i]->datum;
    cfxi_export_refuse(c, "'%s' is computed while the graph runs, and ONNX wants it as an "
                       "attribute; make it a constant", param_name(c, i));
    return cfx_datum_int(0);
}

int64_t cfxi_export_int(cfxi_export_call *c, size_t i)
{
    const cfx_datum d = known_number(c, i);
    return d.kind == CFX_DATUM_BOOL ? d.as.b : d.kind == CFX_DATUM_FLOAT ? (int64_t)d.as.f : d.as.i;
}

double cfxi_export_float(cfxi_export_call *c, size_t i)
{
    const cfx_datum d = known_number(c, i);
    return d.kind == CFX_DATUM_BOOL ? d.as.b : d.kind == CFX_DATUM_INT ? (double)d.as.i : d.as.f;
}

bool cfxi_export_bool(cfxi_export_call *c, size_t i)
{
    return cfxi_export_given(c, i) && cfxi_export_int(c, i) != 0;
}

const char *cfxi_export_str(const cfxi_export_call *c, size_t i)
{
    return i < c->n ? cfx_datum_text(c->full[i], NULL) : NULL;
}

bool cfxi_export_is(const cfxi_export_call *c, size_t i, const char *word)
{
    const char *text = cfxi_export_str(c, i);
    return text && strcmp(text, word) == 0;
}

/* ---- lists --------------------------------------------------------------------------------- */

size_t cfxi_export_ints(cfxi_export_call *c, size_t i, int64_t *out)
{
    size_t n = 0;
    const cfx_datum *items = i < c->n ? cfx_datum_items(c->full[i], &n) : NULL;
    if (!items && cfxi_export_given(c, i)) {
        out[0] = cfxi_export_int(c, i);
        return 1;
    }
    if (n > CFX_MAX_DIMS * 2)
        n = CFX_MAX_DIMS * 2;
    for (size_t k = 0; k < n; k++) {
        out[k] = items[k].as.i;
        if (items[k].symbolic)
            cfxi_export_refuse(c, "'%s' depends on sizes, and ONNX wants it as an attribute; make "
                               "it a constant", param_name(c, i));
    }
    return n;
}

size_t cfxi_export_items(cfxi_export_call *c, size_t i, cfxi_ev ***out)
{
    cfxi_ev *v = i < c->n ? c->args[i] : NULL;
    *out = NULL;
    if (!v || cfxi_export_is_none(v))
        return 0;
    *out = v->items;
    if (v->items || !cfxi_export_is_number(v))
        return v->n;
    size_t n = 1;  /* 3 for int[2] is [3, 3] */
    if (!cfx_datum_items(c->full[i], &n))
        n = 1;
    *out = cfxi_export_room(c->x, n, sizeof **out);
    for (size_t k = 0; *out && k < n; k++)
        (*out)[k] = v;
    return *out ? n : 0;
}

int64_t cfxi_export_dim(cfxi_export_call *c, size_t i, int rank)
{
    const int64_t dim = cfxi_export_int(c, i);
    return dim < 0 ? dim + (rank ? rank : 1) : dim;
}

size_t cfxi_export_axes(cfxi_export_call *c, size_t i, int rank, int64_t *out)
{
    size_t n = cfxi_export_given(c, i) ? cfxi_export_ints(c, i, out) : 0;
    for (size_t k = 0; k < n; k++)
        out[k] += out[k] < 0 ? (rank ? rank : 1) : 0;
    if (n > 0)
        return n;
    for (n = 0; n < (size_t)(rank < 0 ? 0 : rank); n++)
        out[n] = (int64_t)n;
    return n;
}

/* ---- types --------------------------------------------------------------------------------- */

static const cfx_tensor *tensor_of(cfx_datum d)
{
    return d.kind == CFX_DATUM_TENSOR ? d.as.tensor : NULL;
}

const cfx_tensor *cfxi_export_result(const cfxi_export_call *c, size_t i)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(c->result, &n);
    return items ? (i < n ? tensor_of(items[i]) : NULL) : tensor_of(c->result);
}

cfx_dtype cfxi_export_result_dtype(const cfxi_export_call *c)
{
    const cfx_tensor *t = cfxi_export_result(c, 0);
    return t ? cfx_tensor_dtype(t)
           : cfxi_rt_is_number(c->result) ? cfxi_rt_scalar_dtype(c->result) : CFX_DTYPE_FLOAT32;
}

/* Of numbers it is that of the widest kind, of tensors what PyTorch's promotion gives. */
cfx_dtype cfxi_export_common(cfxi_export_call *c, size_t i, size_t j)
{
    const cfx_datum both[] = {c->full[i], c->full[j]};
    if (cfxi_export_is_number(c->args[i]) && cfxi_export_is_number(c->args[j])) {
        const cfx_dtype a = cfxi_export_dtype(c->args[i]);
        const cfx_dtype b = cfxi_export_dtype(c->args[j]);
        return a == CFX_DTYPE_FLOAT64 || b == CFX_DTYPE_FLOAT64 ? CFX_DTYPE_FLOAT64
               : a == CFX_DTYPE_INT64 || b == CFX_DTYPE_INT64 ? CFX_DTYPE_INT64 : CFX_DTYPE_BOOL;
    }
    cfx_error ignored = {0};
    cfx_datum sum = cfx_operator_infer(c->x->rt, c->x->dims, CFX_OPID_add, both, 2, &ignored);
    const cfx_dtype dtype = sum.kind == CFX_DATUM_TENSOR ? cfx_tensor_dtype(sum.as.tensor)
                                                         : cfxi_export_dtype(c->args[i]);
    cfx_datum_release(sum);
    if (ignored.status == CFX_E_NOMEM)
        cfxi_export_fail(c->x);
    return dtype;
}

cfx_dtype cfxi_export_computes(cfx_dtype dtype)
{
    switch ((int)dtype) {
    case CFX_DTYPE_BOOL: case CFX_DTYPE_INT8: case CFX_DTYPE_UINT8: case CFX_DTYPE_INT16:
    case CFX_DTYPE_UINT16: return CFX_DTYPE_INT32;
    default: return dtype;
    }
}
