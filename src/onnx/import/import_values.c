/* import_values.c - what rules ask of a node's inputs, and what they say of its outputs. */
#include "engine_impl.h"

#include "runtime/python_impl.h"

#include <stdio.h>

/* ---- as variables -------------------------------------------------------------------------- */

/* A list of sizes as a tensor. */
static cfx_var tensor_of_items(cfx_scope *s, const cfxi_imported *v)
{
    const cfx_at at = {.scope = s};
    const cfxi_items *l = &v->items;
    const cfx_var data = l->is_scalar ? l->items[0]
                                      : cfx_var_seq_at(at, CFX_DATUM_LIST,
                                                       cfx_vars_make(l->items, l->n));
    return cfx_tensor_row(s, data, .dtype = cfx_var_dtype(v->items_dtype));
}

cfx_var cfxi_import_var(cfxi_import *m, cfxi_imported *v)
{
    cfx_graph *g = cfxi_capture_scope_graph(m->trace);
    if (v->kind == CFXI_IMPORTED_VAR)
        return v->var;
    if (v->kind == CFXI_IMPORTED_NONE || v->kind == CFXI_IMPORTED_FAILED)
        return cfx_var_none();
    if (v->graph != g) {
        v->var = v->kind == CFXI_IMPORTED_KNOWN ? cfxi_import_weight(m, v)
                                                : tensor_of_items(m->trace, v);
        v->graph = g;
    }
    return v->var;
}

static cfxi_imported *input(const cfxi_import_call *c, size_t i)
{
    return i < c->node->inputs.n ? (cfxi_imported *)c->inputs[i] : NULL;
}

bool cfxi_import_has(const cfxi_import_call *c, size_t i)
{
    return cfxi_import_is_given(input(c, i));
}

cfx_var cfxi_import_optional(cfxi_import_call *c, size_t i)
{
    cfx_error err = {0};
    cfxi_imported *v = input(c, i);
    if (!cfxi_import_is_given(v) || !cfx_scope_ok(c->scope))
        return cfx_var_empty();
    if (cfx_scope_is_tracing(c->scope))
        return cfxi_import_var(c->import, v);
    cfx_tensor *t =
        v->kind == CFXI_IMPORTED_KNOWN ? cfxi_import_elements(c->import, v, &err) : NULL;
    return t ? cfx_var_from_tensor(c->scope, t)
             : cfxi_import_fail(c, CFX_E_VALUE, "input %zu is not known", i);
}

cfx_var cfxi_import_in(cfxi_import_call *c, size_t i)
{
    if (!cfxi_import_has(c, i))
        return cfxi_import_fail(c, CFX_E_VALUE, "input %zu is missing", i);
    return cfxi_import_optional(c, i);
}

cfx_var cfxi_import_fixed(cfxi_import_call *c, size_t i)
{
    cfxi_imported *v = input(c, i);
    if (cfxi_import_is_given(v))
        v->fixed = true;
    return cfxi_import_in(c, i);
}

cfx_var cfxi_import_list(cfxi_import_call *c, size_t from)
{
    const cfx_at at = {.scope = c->scope};
    const size_t n = c->node->inputs.n > from ? c->node->inputs.n - from : 0;
    cfx_var *all = cfxi_base_arena_zeros(&c->import->arena, n, sizeof *all);
    if (!all)
        return cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        all[i] = cfxi_import_in(c, from + i);
    return cfx_var_seq_at(at, CFX_DATUM_LIST, cfx_vars_make(all, n));
}

/* ---- elements that are known --------------------------------------------------------------- */

const cfx_tensor *cfxi_import_known(cfxi_import_call *c, size_t i)
{
    cfx_error err = {0};
    cfxi_imported *v = input(c, i);
    if (!v || v->kind != CFXI_IMPORTED_KNOWN)
        return NULL;
    const cfx_tensor *t = cfxi_import_elements(c->import, v, &err);
    if (!t)
        cfxi_import_fail(c, err.status, "%s", err.message);
    return t;
}

enum { MOST_ITEMS = 4096 };

/* The elements of a small integer tensor as constants; false if it is none. */
static bool constants(cfxi_import_call *c, const cfx_tensor *t, cfxi_items *out)
{
    const cfx_dtype dtype = cfx_tensor_dtype(t);
    const int64_t n = cfx_tensor_numel(t);
    if ((dtype != CFX_DTYPE_INT64 && dtype != CFX_DTYPE_INT32) || cfx_tensor_ndim(t) > 1 ||
        n > MOST_ITEMS)
        return false;
    cfx_var *items = cfxi_base_arena_zeros(&c->import->arena, (size_t)n, sizeof *items);
    if (!items) {
        cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
        return false;
    }
    for (int64_t k = 0; k < n; k++)
        items[k] = cfx_var_int(dtype == CFX_DTYPE_INT64
                                   ? ((const int64_t *)cfx_tensor_data(t))[k]
                                   : ((const int32_t *)cfx_tensor_data(t))[k]);
    *out = (cfxi_items){items, (size_t)n, cfx_tensor_ndim(t) == 0};
    return true;
}

bool cfxi_import_items(cfxi_import_call *c, size_t i, cfxi_items *out)
{
    const cfxi_imported *v = input(c, i);
    if (v && v->kind == CFXI_IMPORTED_ITEMS) {
        *out = v->items;
        return true;
    }
    const cfx_tensor *t = cfxi_import_known(c, i);
    return t && constants(c, t, out);
}

/* Elements of a tensor that only a run knows: numbers, one for each, if it is known how many. */
static cfx_var each_element(cfxi_import_call *c, cfx_var t)
{
    cfx_scope *s = c->scope;
    const cfx_at at = {.scope = s};
    cfx_var each[CFX_MAX_DIMS * 2];
    cfx_datum d = cfxi_capture_var_datum(at, t);
    const bool is_list = d.kind == CFX_DATUM_TENSOR && cfx_tensor_ndim(d.as.tensor) == 1;
    const int64_t n = is_list ? cfx_tensor_sizes(d.as.tensor)[0] : -1;
    cfx_datum_release(d);
    if (n < 0 || n > CFX_MAX_DIMS * 2)
        return cfx_tolist(s, cfxi_import_unknown(c, t));  /* of any length */
    for (int64_t k = 0; k < n; k++)
        each[k] = cfx_item(s, cfx_select(s, t, 0, k));
    return cfx_var_seq_at(at, CFX_DATUM_TUPLE, cfx_vars_make(each, (size_t)n));
}

cfx_var cfxi_import_ints_of(cfxi_import_call *c, size_t i)
{
    const cfx_at at = {.scope = c->scope};
    cfxi_items l;
    if (!cfxi_import_items(c, i, &l))
        return each_element(c, cfxi_import_in(c, i));
    return cfx_var_seq_at(at, CFX_DATUM_TUPLE, cfx_vars_make(l.items, l.n));
}

cfx_var cfxi_import_number(cfxi_import_call *c, size_t i)
{
    cfxi_items l;
    if (!cfxi_import_has(c, i))
        return cfx_var_empty();
    if (cfxi_import_items(c, i, &l) && l.n == 1)
        return l.items[0];
    const cfx_tensor *t = cfxi_import_known(c, i);
    if (!t || cfx_tensor_numel(t) != 1)
        return cfx_item(c->scope, cfxi_import_in(c, i));
    cfx_datum d = cfx_datum_load(cfx_tensor_dtype(t), cfx_tensor_data(t));
    return d.kind == CFX_DATUM_INT    ? cfx_var_int(d.as.i)
           : d.kind == CFX_DATUM_BOOL ? cfx_var_bool(d.as.b)
                                      : cfx_var_float(d.as.f);
}

int cfxi_import_axes(cfxi_import_call *c, size_t i, const char *name, int64_t *out, int most)
{
    cfxi_items l;
    size_t n;
    const int64_t *ints = name ? cfxi_import_ints(c, name, &n) : NULL;
    if (ints || (name && cfxi_import_attribute(c, name))) {
        if (n > (size_t)most)
            return cfxi_import_fail(c, CFX_E_VALUE, "'%s' has %zu items", name, n), -1;
        if (n > 0)
            memcpy(out, ints, n * sizeof *out);
        return (int)n;
    }
    if (!cfxi_import_has(c, i))
        return -1;
    if (!cfxi_import_items(c, i, &l))
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "input %zu must be known when the file is "
                                "read: a constant, or computed from shapes", i), -1;
    if (l.n > (size_t)most)
        return cfxi_import_fail(c, CFX_E_VALUE, "input %zu has %zu items", i, l.n), -1;
    for (size_t k = 0; k < l.n; k++) {
        if (l.items[k].kind != CFX_VAR_INT)
            return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "item %zu of input %zu depends on the "
                                    "sizes of the inputs; it must be a constant", k, i), -1;
        out[k] = l.items[k].as.i;
    }
    return (int)l.n;
}

cfx_var cfxi_import_unknown(cfxi_import_call *c, cfx_var v)
{
    const cfx_at at = {.scope = c->scope};
    cfx_node *n = cfx_scope_is_tracing(c->scope) ? cfxi_capture_var_node(c->scope, v) : NULL;
    return n ? cfxi_capture_var_of_value(at, cfx_value_node(n), n->graph, cfx_datum_invalid()) : v;
}

bool cfxi_import_axes_of(cfxi_import_call *c, size_t i, const char *name, cfx_var *out, int most,
                         int *n)
{
    cfxi_items l;
    int64_t axes[64];
    const bool given = name && cfxi_import_attribute(c, name);
    *n = -1;
    if (given || !cfxi_import_has(c, i) || cfxi_import_items(c, i, &l)) {
        *n = cfxi_import_axes(c, i, name, axes, most < 64 ? most : 64);
        for (int k = 0; k < *n; k++)
            out[k] = cfx_var_int(axes[k]);
        return cfx_scope_ok(c->scope);
    }
    const cfx_var t = cfxi_import_in(c, i);
    const cfx_var size = cfxi_import_rank(c, i) == 0 ? cfx_var_int(1)
                         : cfxi_import_rank(c, i) == 1 ? cfxi_import_size(c, i, 0) : cfx_var_none();
    if (size.kind != CFX_VAR_INT || size.as.i > most) {
        cfxi_import_fail(c, CFX_E_UNSUPPORTED, "it is not known how many elements input %zu has",
                         i);
        return false;
    }
    *n = (int)size.as.i;
    const cfx_var flat = cfx_reshape(c->scope, t, cfx_ints(c->scope, -1));
    for (int k = 0; k < *n; k++)
        out[k] = cfxi_import_unknown(c, cfx_item(c->scope, cfx_select(c->scope, flat, 0, k)));
    return cfx_scope_ok(c->scope);
}

/* ---- types and sizes ----------------------------------------------------------------------- */

/* What is known of a variable: borrowed; NULL if it is not known to be a tensor. */
static const cfx_tensor *fact(cfx_scope *s, cfx_var v)
{
    const cfx_at at = {.scope = s};
    if (!cfx_scope_ok(s) || v.kind != CFX_VAR_VALUE)
        return NULL;
    cfx_datum d = cfxi_capture_var_datum(at, v);
    cfx_datum_release(d);  /* the variable has it */
    return d.kind == CFX_DATUM_TENSOR ? d.as.tensor : NULL;
}

int cfxi_import_rank_of(cfx_scope *s, cfx_var v)
{
    const cfx_tensor *t = fact(s, v);
    return t ? (int)cfx_tensor_ndim(t) : -1;
}

cfx_dtype cfxi_import_dtype_of(cfx_scope *s, cfx_var v)
{
    const cfx_tensor *t = fact(s, v);
    return t ? cfx_tensor_dtype(t) : CFX_DTYPE_COUNT;
}

int cfxi_import_rank(cfxi_import_call *c, size_t i)
{
    const cfxi_imported *v = input(c, i);
    if (v && v->kind == CFXI_IMPORTED_ITEMS)
        return v->items.is_scalar ? 0 : 1;
    const cfx_tensor *t = cfxi_import_known(c, i);
    if (t)
        return (int)cfx_tensor_ndim(t);
    return v && v->kind == CFXI_IMPORTED_VAR ? cfxi_import_rank_of(c->scope, v->var) : -1;
}

int cfxi_import_need_rank(cfxi_import_call *c, size_t i)
{
    const int rank = cfxi_import_rank(c, i);
    if (rank < 0 && cfxi_import_has(c, i))
        cfxi_import_fail(c, CFX_E_UNSUPPORTED, "the number of dimensions of input %zu is not "
                         "known; give the inputs of the file their shapes", i);
    else if (rank < 0)
        cfxi_import_fail(c, CFX_E_VALUE, "input %zu is missing", i);
    return rank;
}

cfx_dtype cfxi_import_dtype(cfxi_import_call *c, size_t i)
{
    const cfxi_imported *v = input(c, i);
    if (v && v->kind == CFXI_IMPORTED_ITEMS)
        return v->items_dtype;
    const cfx_tensor *t = cfxi_import_known(c, i);
    if (t)
        return cfx_tensor_dtype(t);
    return v && v->kind == CFXI_IMPORTED_VAR ? cfxi_import_dtype_of(c->scope, v->var)
                                             : CFX_DTYPE_COUNT;
}

int64_t cfxi_import_type(cfxi_import_call *c, size_t i)
{
    const cfxi_imported *v = input(c, i);
    if (v && v->type)
        return v->type;
    const cfx_dtype dtype = cfxi_import_dtype(c, i);
    return dtype == CFX_DTYPE_COUNT ? 0 : cfxi_onnx_dtype_number(dtype);
}

cfx_var cfxi_import_size(cfxi_import_call *c, size_t i, int dim)
{
    const cfxi_imported *v = input(c, i);
    const cfx_tensor *t = cfxi_import_known(c, i);
    if (v && v->kind == CFXI_IMPORTED_ITEMS)
        return cfx_var_uint(v->items.n);
    if (!t)
        t = v && v->kind == CFXI_IMPORTED_VAR ? fact(c->scope, v->var) : NULL;
    if (t && dim < (int)cfx_tensor_ndim(t) && cfx_tensor_sizes(t)[dim] >= 0)
        return cfx_var_int(cfx_tensor_sizes(t)[dim]);
    return cfx_size(c->scope, cfxi_import_in(c, i), .dim = cfx_var_int(dim));
}

int cfxi_import_axis(cfxi_import_call *c, int64_t axis, int rank)
{
    if (axis >= -rank && axis < rank)
        return (int)(axis < 0 ? axis + rank : axis);
    if (cfx_scope_ok(c->scope))
        cfxi_import_fail(c, CFX_E_VALUE, "axis %lld is out of range for %d dimensions",
                         (long long)axis, rank);
    return -1;
}

/* ---- outputs ------------------------------------------------------------------------------- */

size_t cfxi_import_num_outputs(const cfxi_import_call *c) { return c->node->outputs.n; }

bool cfxi_import_wants(const cfxi_import_call *c, size_t i)
{
    return i < c->node->outputs.n && c->node->outputs.items[i].size > 0;
}

void cfxi_import_set(cfxi_import_call *c, size_t i, cfx_var v)
{
    if (!cfxi_import_wants(c, i) || !cfx_scope_ok(c->scope))
        return;
    c->outputs[i].kind = v.kind == CFX_VAR_NONE || v.kind == CFX_VAR_EMPTY ? CFXI_IMPORTED_NONE
                                                                          : CFXI_IMPORTED_VAR;
    c->outputs[i].var = v;
    c->outputs[i].graph = cfxi_capture_scope_graph(c->scope);
}

void cfxi_import_set_known(cfxi_import_call *c, size_t i, cfx_tensor *t)
{
    if (t && !cfxi_import_keep(c->import, t))
        cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
    else if (t && cfxi_import_wants(c, i)) {
        c->outputs[i].kind = CFXI_IMPORTED_KNOWN;
        c->outputs[i].known = t;
        c->outputs[i].graph = NULL;
    }
}

/* Constants alone are a tensor that is known. */
static void set_constants(cfxi_import_call *c, size_t i, const cfx_var *items, size_t n,
                          bool is_scalar)
{
    cfx_error err = {0};
    const int64_t size = (int64_t)n;
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_INT64, &size, !is_scalar, c->import->allocator, &err);
    for (size_t k = 0; t && k < n; k++)
        ((int64_t *)cfx_tensor_data(t))[k] = items[k].as.i;
    if (t)
        cfxi_import_set_known(c, i, t);
    else
        cfxi_import_fail(c, err.status, "%s", err.message);
}

void cfxi_import_set_items(cfxi_import_call *c, size_t i, const cfx_var *items, size_t n,
                           bool is_scalar)
{
    bool known = true;
    if (!cfxi_import_wants(c, i) || !cfx_scope_ok(c->scope))
        return;
    for (size_t k = 0; k < n; k++)
        known = known && items[k].kind == CFX_VAR_INT;
    if (known) {
        set_constants(c, i, items, n, is_scalar);
        return;
    }
    cfx_var *copy = cfxi_base_arena_zeros(&c->import->arena, n, sizeof *copy);
    if (!copy) {
        cfxi_import_fail(c, CFX_E_NOMEM, "out of memory");
        return;
    }
    memcpy(copy, items, n * sizeof *copy);
    c->outputs[i].kind = CFXI_IMPORTED_ITEMS;
    c->outputs[i].items = (cfxi_items){copy, n, is_scalar};
    c->outputs[i].items_dtype = CFX_DTYPE_INT64;
    c->outputs[i].graph = NULL;
}

void cfxi_import_set_items_type(cfxi_import_call *c, size_t i, cfx_dtype dtype)
{
    if (cfxi_import_wants(c, i) && c->outputs[i].kind == CFXI_IMPORTED_ITEMS)
        c->outputs[i].items_dtype = dtype;
}

void cfxi_import_set_type(cfxi_import_call *c, size_t i, int64_t number)
{
    if (cfxi_import_wants(c, i))
        c->outputs[i].type = cfxi_onnx_narrow_bits(number) ? number : 0;
}

bool cfxi_import_later(cfxi_import_call *c)
{
    if (!cfx_scope_is_tracing(c->scope))
        c->later = true;
    return c->later;
}

cfx_var cfxi_import_fail(cfxi_import_call *c, cfx_status status, const char *format, ...)
{
    char text[400];
    va_list args;
    const cfx_at at = {.scope = c->scope};
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cfx_scope_fail_at(at, status, "%s", text);
    return cfx_var_empty();
}
