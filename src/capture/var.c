/* var.c - variables in and out: what they are as data of the runtime, and as values of a graph. */
#include "capture_impl.h"

#include <stdio.h>

/* ---- as data ------------------------------------------------------------------------------- */

static cfx_datum from_text(cfx_at at, cfx_datum_kind kind, const char *text)
{
    cfx_error err = {0};
    cfx_datum d = cfx_datum_from_text(kind, text ? text : "", text ? strlen(text) : 0,
                                      at.scope->allocator, &err);
    if (d.kind == CFX_DATUM_INVALID)
        cfxi_capture_scope_take(at, &err);
    return d;
}

cfx_datum cfxi_capture_var_datum(cfx_at at, cfx_var v)
{
    const cfxi_slot *slot;
    switch ((cfx_var_kind)v.kind) {
    case CFX_VAR_EMPTY: return cfx_datum_invalid();
    case CFX_VAR_NONE: return cfx_datum_none();
    case CFX_VAR_BOOL: return cfx_datum_bool(v.as.b);
    case CFX_VAR_INT: return cfx_datum_int(v.as.i);
    case CFX_VAR_FLOAT: return cfx_datum_float(v.as.f);
    case CFX_VAR_DTYPE: return cfx_datum_dtype((cfx_dtype)v.as.i);
    case CFX_VAR_ELLIPSIS: return cfx_datum_scalar(CFX_DATUM_ELLIPSIS, 0);
    case CFX_VAR_LAYOUT: return cfx_datum_scalar(CFX_DATUM_LAYOUT, v.as.i);
    case CFX_VAR_MEMORY_FORMAT: return cfx_datum_scalar(CFX_DATUM_MEMORY_FORMAT, v.as.i);
    case CFX_VAR_STR: return from_text(at, CFX_DATUM_STR, v.as.text);
    case CFX_VAR_DEVICE: return from_text(at, CFX_DATUM_DEVICE, v.as.text);
    case CFX_VAR_VALUE:
        slot = cfxi_capture_var_slot(at, v);
        return slot ? cfx_datum_retain(slot->datum) : cfx_datum_invalid();
    }
    cfx_scope_fail_at(at, CFX_E_VALUE, "invalid variable: cfx did not create it");
    return cfx_datum_invalid();
}

bool cfx_var_is_none(cfx_scope *s, cfx_var v)
{
    const cfx_at nowhere = {.scope = s};
    const cfxi_slot *slot =
        v.kind == CFX_VAR_VALUE && cfx_scope_ok(s) ? cfxi_capture_var_slot(nowhere, v) : NULL;
    return v.kind == CFX_VAR_NONE || (slot && slot->datum.kind == CFX_DATUM_NONE);
}

bool cfxi_capture_var_is_number(cfx_at at, cfx_var v)
{
    const cfxi_slot *slot = v.kind == CFX_VAR_VALUE ? cfxi_capture_var_slot(at, v) : NULL;
    return v.kind == CFX_VAR_BOOL || v.kind == CFX_VAR_INT || v.kind == CFX_VAR_FLOAT ||
           (slot && cfxi_rt_is_number(slot->datum));
}

/* ---- as values ----------------------------------------------------------------------------- */

/* What a slot holds, for the graph that is being made. */
static cfx_value slot_value(cfx_at at, const cfxi_slot *slot, cfx_error *err)
{
    cfx_graph *g = at.scope->trace->graph;
    if (slot->graph == g)
        return slot->value;
    if (slot->value.kind == CFX_KIND_INVALID)
        return cfxi_capture_value_from_datum(g, slot->datum, err);
    cfx_error_set(err, CFX_E_GRAPH, "this variable belongs to the function around the branch or "
                  "loop; pass it as an input, after ctx");
    return cfx_value_invalid();
}

cfx_value cfxi_capture_var_value(cfx_at at, cfx_var v)
{
    cfx_graph *g = at.scope->trace->graph;
    cfx_error err = {0};
    cfx_value value = cfx_value_invalid();
    const bool has_text = v.kind == CFX_VAR_STR || v.kind == CFX_VAR_DEVICE;
    const char *text = has_text && v.as.text ? v.as.text : "";
    switch ((cfx_var_kind)v.kind) {
    case CFX_VAR_EMPTY:
    case CFX_VAR_NONE: return cfx_value_none();
    case CFX_VAR_BOOL: return cfx_value_bool(v.as.b);
    case CFX_VAR_INT: return cfx_value_int(v.as.i);
    case CFX_VAR_FLOAT: return cfx_value_float(v.as.f);
    case CFX_VAR_DTYPE: return cfx_value_dtype((cfx_dtype)v.as.i);
    case CFX_VAR_ELLIPSIS: return cfx_value_ellipsis();
    case CFX_VAR_LAYOUT: return cfx_value_layout((cfx_layout)v.as.i);
    case CFX_VAR_MEMORY_FORMAT: return cfx_value_memory_format((cfx_memory_format)v.as.i);
    case CFX_VAR_STR: value = cfx_value_str(g, text, strlen(text), &err); break;
    case CFX_VAR_DEVICE: value = cfx_value_device(g, text, strlen(text), &err); break;
    case CFX_VAR_VALUE: {
        const cfxi_slot *slot = cfxi_capture_var_slot(at, v);
        if (!slot)
            return cfx_value_invalid();
        value = slot_value(at, slot, &err);
    }
    }
    if (value.kind == CFX_KIND_INVALID)
        cfxi_capture_scope_take(at, &err);
    return value;
}

bool cfxi_capture_var_values(cfx_at at, cfx_vars in, cfx_value *out)
{
    for (size_t i = 0; i < in.n; i++) {
        out[i] = cfxi_capture_var_value(at, in.items[i]);
        if (out[i].kind != CFX_KIND_INVALID)
            continue;
        while (i-- > 0)
            cfx_value_discard(at.scope->trace->graph, out[i]);
        return false;
    }
    return true;
}

/* ---- lists --------------------------------------------------------------------------------- */

/* The variables, one after the other, as data: false, and the scope fails. What is not known while
 * tracing is INVALID; *known says whether all are known. */
static bool each_datum(cfx_at at, cfx_vars in, cfx_datum *out, bool *known)
{
    *known = true;
    for (size_t i = 0; i < in.n; i++) {
        out[i] = cfxi_capture_var_datum(at, in.items[i]);
        *known = *known && out[i].kind != CFX_DATUM_INVALID;
        if (!cfx_scope_ok(at.scope)) {
            while (i-- > 0)
                cfx_datum_release(out[i]);
            return false;
        }
    }
    return true;
}

static cfx_datum datum_seq(cfx_at at, cfx_datum_kind kind, cfx_vars in, cfx_datum *items)
{
    cfx_error err = {0};
    cfx_datum d = cfx_datum_invalid();
    bool known;
    if (!each_datum(at, in, items, &known))
        return d;
    if (known) {
        d = cfx_datum_seq(kind, items, in.n, at.scope->allocator, &err);
        if (d.kind == CFX_DATUM_INVALID)
            cfxi_capture_scope_take(at, &err);
    } else if (!at.scope->trace) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "a list contains an empty variable");
    }
    for (size_t i = 0; i < in.n; i++)
        cfx_datum_release(items[i]);
    return d;
}

static cfx_value value_seq(cfx_at at, cfx_datum_kind kind, cfx_vars in, cfx_value *items)
{
    cfx_error err = {0};
    cfx_graph *g = at.scope->trace->graph;
    size_t n = 0;
    cfx_value v = cfx_value_invalid();
    for (; n < in.n && cfx_scope_ok(at.scope); n++)
        items[n] = cfxi_capture_var_value(at, in.items[n]);
    if (cfx_scope_ok(at.scope)) {
        v = cfx_value_seq(g, kind == CFX_DATUM_LIST    ? CFX_KIND_LIST
                             : kind == CFX_DATUM_TUPLE ? CFX_KIND_TUPLE
                             : kind == CFX_DATUM_DICT  ? CFX_KIND_DICT
                                                       : CFX_KIND_SLICE, items, n, &err);
        if (v.kind == CFX_KIND_INVALID)
            cfxi_capture_scope_take(at, &err);
    }
    for (size_t i = 0; v.kind == CFX_KIND_INVALID && i < n; i++)
        if (in.items[i].kind != CFX_VAR_VALUE)
            cfx_value_discard(g, items[i]);
    return v;
}

cfx_var cfx_var_seq_at(cfx_at at, cfx_datum_kind kind, cfx_vars in)
{
    union both {
        cfx_datum d;
        cfx_value v;
    } here[CFXI_FEW];
    cfxi_room room = {.here = here, .fits = CFXI_FEW, .item = sizeof *here};
    cfx_var made = cfx_var_empty();
    void *items = cfx_scope_ok(at.scope) ? cfxi_capture_room_for(at, &room, in.n) : NULL;
    if (!items)
        return made;
    cfx_datum d = datum_seq(at, kind, in, items);
    cfx_value v = cfx_value_invalid();
    if (at.scope->trace && cfx_scope_ok(at.scope))
        v = value_seq(at, kind, in, items);
    if (!cfx_scope_ok(at.scope))
        cfx_datum_release(d);
    else if (at.scope->trace)
        made = cfxi_capture_var_of_value(at, v, at.scope->trace->graph, d);
    else
        made = cfxi_capture_var_of_datum(at, d);
    cfxi_capture_room_free(at, &room);
    return made;
}

/* While tracing, too, it is a datum: a region can use it as well as the graph around it. */
cfx_var cfx_ints_at(cfx_at at, const int64_t *ints, size_t n)
{
    cfx_error err = {0};
    cfx_datum here[CFXI_FEW];
    cfxi_room room = {.here = here, .fits = CFXI_FEW, .item = sizeof *here};
    if (!cfx_scope_ok(at.scope))
        return cfx_var_empty();
    if (n > 0 && !ints) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "cfx_var_ints got NULL for %zu integers", n);
        return cfx_var_empty();
    }
    cfx_datum *items = cfxi_capture_room_for(at, &room, n);
    if (!items)
        return cfx_var_empty();
    for (size_t i = 0; i < n; i++)
        items[i] = cfx_datum_int(ints[i]);
    cfx_datum d = cfx_datum_seq(CFX_DATUM_TUPLE, items, n, at.scope->allocator, &err);
    cfxi_capture_room_free(at, &room);
    if (d.kind != CFX_DATUM_INVALID)
        return cfxi_capture_var_of_datum(at, d);
    cfxi_capture_scope_take(at, &err);
    return cfx_var_empty();
}

/* ---- in ------------------------------------------------------------------------------------ */

/* A tensor that a traced program brought along: an attribute of what it becomes. */
static cfx_var constant(cfx_at at, cfx_tensor *t)
{
    cfxi_trace *trace = at.scope->trace;
    cfx_error err = {0};
    char name[40];
    do
        snprintf(name, sizeof name, "_tensor_constant%zu", trace->constants++);
    while (cfxi_capture_module_at(trace->root, name));
    cfx_node *n = NULL;
    if (cfxi_capture_module_put(trace->made, name, strlen(name), CFXI_MEMBER_BUFFER, NULL,
                                cfx_datum_tensor(t), &err) == CFX_OK)
        n = cfx_graph_get_attr(trace->graph, name, &err);
    if (!n) {
        cfxi_capture_scope_take(at, &err);
        return cfx_var_empty();
    }
    return cfxi_capture_trace_node(at, n, cfxi_capture_known_of_tensor(at, t));
}

cfx_var cfx_var_from_tensor_at(cfx_at at, cfx_tensor *t)
{
    if (!cfx_scope_ok(at.scope))
        return cfx_var_empty();
    if (!t) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "the tensor is NULL");
        return cfx_var_empty();
    }
    if (at.scope->trace)
        return constant(at, t);
    return cfxi_capture_var_of_datum(at, cfx_datum_tensor(cfx_tensor_retain(t)));
}

cfx_var cfx_var_from_datum_at(cfx_at at, cfx_datum d)
{
    if (!cfx_scope_ok(at.scope))
        return cfx_var_empty();
    if (d.kind == CFX_DATUM_INVALID) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "cannot make a variable of an invalid datum");
        return cfx_var_empty();
    }
    if (d.kind == CFX_DATUM_TENSOR)
        return cfx_var_from_tensor_at(at, d.as.tensor);
    return cfxi_capture_var_of_datum(at, cfx_datum_retain(d));
}

/* ---- out ----------------------------------------------------------------------------------- */

static const char *while_tracing = "tensors have no values while tracing; use cfx_if or cfx_while "
                                   "for control flow that depends on data";

cfx_datum cfx_var_datum_at(cfx_at at, cfx_var v)
{
    if (!cfx_scope_ok(at.scope))
        return cfx_datum_invalid();
    const cfxi_slot *slot = v.kind == CFX_VAR_VALUE ? cfxi_capture_var_slot(at, v) : NULL;
    if (slot && slot->value.kind != CFX_KIND_INVALID) {
        cfx_scope_fail_at(at, CFX_E_TYPE, "%s", while_tracing);
        return cfx_datum_invalid();
    }
    cfx_datum d = cfxi_capture_var_datum(at, v);
    if (d.kind == CFX_DATUM_INVALID)
        cfx_scope_fail_at(at, CFX_E_VALUE, "the variable is empty");
    return d;
}

cfx_tensor *cfx_var_tensor_at(cfx_at at, cfx_var v)
{
    cfx_datum d = cfx_var_datum_at(at, v);
    if (d.kind == CFX_DATUM_INVALID)
        return NULL;
    cfx_datum_release(d);  /* the variable has it */
    if (d.kind == CFX_DATUM_TENSOR)
        return d.as.tensor;
    cfx_scope_fail_at(at, CFX_E_TYPE, "expected a tensor, not %s",
                      cfx_datum_kind_name((cfx_datum_kind)d.kind));
    return NULL;
}

cfx_node *cfxi_capture_var_node(cfx_scope *s, cfx_var v)
{
    const cfxi_slot *slot = NULL;
    if (cfx_scope_ok(s) && v.kind == CFX_VAR_VALUE && v.as.value.scope == s->id &&
        v.as.value.slot < s->slots.size)
        slot = (const cfxi_slot *)s->slots.data + v.as.value.slot;
    return slot && slot->serial == v.count && slot->value.kind == CFX_KIND_NODE
               ? slot->value.as.node : NULL;
}

/* The one element of a tensor; INVALID, and the scope fails, if it has not one. */
static cfx_datum element(cfx_at at, const cfx_tensor *t)
{
    if (!cfx_tensor_is_abstract(t) && cfx_tensor_numel(t) == 1)
        return cfx_datum_load(cfx_tensor_dtype(t), cfx_tensor_data(t));
    cfx_scope_fail_at(at, CFX_E_SHAPE, "a tensor with %lld elements cannot be used as a number",
                      (long long)cfx_tensor_numel(t));
    return cfx_datum_invalid();
}

double cfx_var_number_at(cfx_at at, cfx_var v)
{
    cfx_datum whole = cfx_var_datum_at(at, v);
    cfx_datum d = whole.kind == CFX_DATUM_TENSOR ? element(at, whole.as.tensor) : whole;
    cfx_datum_release(whole);
    switch ((cfx_datum_kind)d.kind) {
    case CFX_DATUM_BOOL: return d.as.b;
    case CFX_DATUM_INT: return (double)d.as.i;
    case CFX_DATUM_FLOAT: return d.as.f;
    default: break;
    }
    cfx_scope_fail_at(at, CFX_E_TYPE, "expected a number, not %s",
                      cfx_datum_kind_name((cfx_datum_kind)d.kind));
    return 0;
}

/* ---- shapes and types ---------------------------------------------------------------------- */

/* The tensor that a variable is, or what is known of it: borrowed; NULL, and the scope fails. */
static const cfx_tensor *known_tensor(cfx_at at, cfx_var v)
{
    if (!cfx_scope_ok(at.scope))
        return NULL;
    cfx_datum d = cfxi_capture_var_datum(at, v);
    cfx_datum_release(d);  /* the variable has it */
    if (d.kind == CFX_DATUM_TENSOR)
        return d.as.tensor;
    if (cfxi_rt_is_number(d))
        cfx_scope_fail_at(at, CFX_E_TYPE, "expected a tensor, not a number");
    else if (at.scope->trace && d.kind == CFX_DATUM_INVALID)
        cfx_scope_fail_at(
            at, CFX_E_TYPE,
            "the shape is not known while tracing; give the input shapes (.shapes = \"x=float32[N, "
            "3]\"), or use cfx_size, which returns a variable");
    else
        cfx_scope_fail_at(at, CFX_E_TYPE, "expected a tensor, not %s",
                          cfx_datum_kind_name((cfx_datum_kind)d.kind));
    return NULL;
}

int64_t cfx_var_size_at(cfx_at at, cfx_var v, int64_t dim)
{
    const cfx_tensor *t = known_tensor(at, v);
    const int64_t n = t ? (int64_t)cfx_tensor_ndim(t) : 0;
    if (!t)
        return 0;
    if (dim < -n || dim >= n) {
        cfx_scope_fail_at(at, CFX_E_INDEX, "dimension %lld is out of range for a tensor with %lld "
                          "dimensions", (long long)dim,
                          (long long)n);
        return 0;
    }
    const int64_t size = cfx_tensor_sizes(t)[dim < 0 ? dim + n : dim];
    if (size >= 0)
        return size;
    cfx_scope_fail_at(at, CFX_E_TYPE,
                      "the size of dimension %lld is symbolic; use cfx_size, which returns a "
                      "variable",
                      (long long)dim);
    return 0;
}

size_t cfx_var_ndim_at(cfx_at at, cfx_var v)
{
    const cfx_tensor *t = known_tensor(at, v);
    return t ? cfx_tensor_ndim(t) : 0;
}

cfx_dtype cfx_var_dtype_of_at(cfx_at at, cfx_var v)
{
    const cfx_tensor *t = known_tensor(at, v);
    return t ? cfx_tensor_dtype(t) : CFX_DTYPE_FLOAT32;
}

cfx_status cfx_var_print(cfx_scope *s, cfx_var v, cfx_sink out)
{
    cfx_error err = {0};
    const cfx_at nowhere = {.scope = s};
    const cfx_node *n = cfxi_capture_var_node(s, v);
    if (!cfx_scope_ok(s))
        return s ? s->error.status : CFX_E_VALUE;
    if (n)
        return cfxi_base_sink_write(out, n->name->data, n->name->size);
    cfx_datum d = cfxi_capture_var_datum(nowhere, v);
    const cfx_status status = cfxi_tensor_show(d, out, &err);
    cfx_datum_release(d);
    return status == CFX_OK ? CFX_OK : cfxi_capture_scope_take(nowhere, &err);
}
