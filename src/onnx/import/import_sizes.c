/* import_sizes.c - nodes that compute with lists of sizes, item by item.
 *
 * Exporters compute shapes with ordinary operators: Shape, Gather, Concat, Mul. As tensors they
 * would hide from cfx how many dimensions a Reshape gives. So sizes stay numbers: arithmetic is
 * done for each item, and a rule that moves elements is run on labels, which tell afterwards where
 * each item went.
 */
#include "engine_impl.h"

/* ---- moving -------------------------------------------------------------------------------- */

/* The label of item k of input i: no size or index has such a value. */
static int64_t label(size_t i, size_t k)
{
    return INT64_MIN / 2 + 1 + (int64_t)(i * 65536 + k);
}

/* The item that a label stands for; false if it is none. */
static bool item_of(const cfxi_import_call *c, int64_t x, cfx_var *out)
{
    const int64_t number = x < 0 ? x - (INT64_MIN / 2 + 1) : -1;
    if (number < 0 || number / 65536 >= (int64_t)c->node->inputs.n)
        return false;
    const cfxi_imported *v = c->inputs[number / 65536];
    if (!v || v->kind != CFXI_IMPORTED_ITEMS || number % 65536 >= (int64_t)v->items.n)
        return false;
    *out = v->items.items[number % 65536];
    return true;
}

/* A stand-in for a list of sizes: labels as a tensor. */
static cfxi_imported *labelled(cfxi_import_call *c, size_t i)
{
    cfxi_import *m = c->import;
    const cfxi_items *l = &c->inputs[i]->items;
    const int64_t n = (int64_t)l->n;
    cfxi_imported *v = cfxi_base_arena_zeros(&m->arena, 1, sizeof *v);
    cfx_tensor *t = v && n < 65536 ? cfx_tensor_new(CFX_DTYPE_INT64, &n, !l->is_scalar,
                                                    m->allocator, NULL) : NULL;
    for (int64_t k = 0; t && k < n; k++)
        ((int64_t *)cfx_tensor_data(t))[k] = label(i, (size_t)k);
    if (!t || !cfxi_import_keep(m, t))
        return NULL;
    v->kind = CFXI_IMPORTED_KNOWN;
    v->known = t;
    return v;
}

/* Output i, a tensor of labels and numbers, as a list; false if it is not of rank 0 or 1. */
static bool unlabel(cfxi_import_call *c, size_t i, cfx_dtype dtype)
{
    const cfx_tensor *t = c->outputs[i].known;
    cfx_var items[256];
    if (c->outputs[i].kind != CFXI_IMPORTED_KNOWN)
        return true;
    if (cfx_tensor_ndim(t) > 1 || cfx_tensor_numel(t) > 256 ||
        cfx_tensor_dtype(t) != CFX_DTYPE_INT64)
        return false;
    for (int64_t k = 0; k < cfx_tensor_numel(t); k++) {
        const int64_t x = ((const int64_t *)cfx_tensor_data(t))[k];
        if (!item_of(c, x, &items[k]))
            items[k] = cfx_var_int(x);
    }
    cfxi_import_set_items(c, i, items, (size_t)cfx_tensor_numel(t), cfx_tensor_ndim(t) == 0);
    if (c->outputs[i].kind == CFXI_IMPORTED_ITEMS)
        c->outputs[i].items_dtype = dtype;
    return true;
}

/* Whether each list of sizes is among what the rule moves, and everything else is known. */
static bool can_move(const cfxi_import_call *c, const cfxi_import_row *row, cfx_dtype *dtype)
{
    for (size_t i = 0; i < c->node->inputs.n; i++) {
        const cfxi_imported *v = c->inputs[i];
        const bool moves = row->moves >> (i < 31 ? i : 31) & 1;
        if (v && v->kind != CFXI_IMPORTED_KNOWN && !(v->kind == CFXI_IMPORTED_ITEMS && moves))
            return false;
        if (v && v->kind == CFXI_IMPORTED_ITEMS)
            *dtype = v->items_dtype;
    }
    return true;
}

static bool move(cfxi_import_call *c, const cfxi_import_row *row)
{
    const cfxi_imported *with[32];
    const struct cfxi_imported *const *inputs = c->inputs;
    cfx_dtype dtype = CFX_DTYPE_INT64;
    bool done = c->node->inputs.n <= 32 && can_move(c, row, &dtype);
    for (size_t i = 0; done && i < c->node->inputs.n; i++) {
        with[i] = inputs[i];
        if (with[i] && with[i]->kind == CFXI_IMPORTED_ITEMS) {
            with[i] = labelled(c, i);
            done = with[i] != NULL;
        }
    }
    if (!done)
        return false;
    c->inputs = with;
    done = cfxi_import_compute(c, row);
    c->inputs = inputs;
    for (size_t i = 0; done && i < c->node->outputs.n; i++)
        done = unlabel(c, i, dtype);
    for (size_t i = 0; !done && i < c->node->outputs.n; i++)
        c->outputs[i].kind = CFXI_IMPORTED_NONE;
    return done;
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

/* What computes an operator with sizes; NONE if that is done with tensors. Div of ONNX cuts
 * off, which is the same for sizes. */
static cfx_operator arithmetic_of(cfxi_text op)
{
    const char *list;
    switch (cfxi_import_spelling(op, &list)) {
    case CFX_OPID_add: return CFX_OPID_add;
    case CFX_OPID_sub: return CFX_OPID_sub;
    case CFX_OPID_mul: return CFX_OPID_mul;
    case CFX_OPID_div: return CFX_OPID_floor_divide;
    default: return CFX_OPID_NONE;
    }
}

static cfx_var compute_item(cfxi_import_call *c, cfx_operator op, cfx_var a, cfx_var b)
{
    const cfx_at at = {.scope = c->scope};
    const cfx_var args[] = {a, b};
    int64_t x = 0;
    if (a.kind == CFX_VAR_INT && b.kind == CFX_VAR_INT) {
        const bool fits = op == CFX_OPID_add   ? !__builtin_add_overflow(a.as.i, b.as.i, &x)
                          : op == CFX_OPID_sub ? !__builtin_sub_overflow(a.as.i, b.as.i, &x)
                          : op == CFX_OPID_mul ? !__builtin_mul_overflow(a.as.i, b.as.i, &x)
                                               : b.as.i > 0;
        if (!fits)
            return cfxi_import_fail(c, CFX_E_VALUE, "the result of this arithmetic on sizes is too "
                                    "large, or divides by zero");
        return cfx_var_int(op == CFX_OPID_floor_divide ? a.as.i / b.as.i : x);
    }
    return cfx_apply_at(at, op, args, 2);
}

static bool compute_items(cfxi_import_call *c)
{
    const cfx_operator op = arithmetic_of(c->node->op);
    cfxi_items a, b;
    cfx_var items[64];
    if (!op || c->node->inputs.n != 2 || !cfxi_import_items(c, 0, &a) ||
        !cfxi_import_items(c, 1, &b))
        return false;
    const size_t n = a.n > b.n ? a.n : b.n;
    if (n > 64 || (a.n != b.n && a.n != 1 && b.n != 1))
        return false;
    for (size_t k = 0; k < n && cfx_scope_ok(c->scope); k++)
        items[k] = compute_item(c, op, a.items[a.n == 1 ? 0 : k], b.items[b.n == 1 ? 0 : k]);
    cfxi_import_set_items(c, 0, items, n, a.is_scalar && b.is_scalar);
    return true;
}

/* Whether a size equals a number below 0, as exporters ask (-1 stands for a size in Expand): it
 * does not. */
static bool compare_items(cfxi_import_call *c)
{
    cfxi_items a, b;
    bool same[64];
    cfx_error err = {0};
    if (!cfxi_onnx_is(c->node->op, "Equal") || c->node->inputs.n != 2 ||
        !cfxi_import_items(c, 0, &a) || !cfxi_import_items(c, 1, &b))
        return false;
    const size_t n = a.n > b.n ? a.n : b.n;
    if (n > 64 || (a.n != b.n && a.n != 1 && b.n != 1))
        return false;
    for (size_t k = 0; k < n; k++) {
        const cfx_var x = a.items[a.n == 1 ? 0 : k];
        const cfx_var y = b.items[b.n == 1 ? 0 : k];
        const bool both = x.kind == CFX_VAR_INT && y.kind == CFX_VAR_INT;
        const bool never = (x.kind == CFX_VAR_INT && x.as.i < 0) ||
                           (y.kind == CFX_VAR_INT && y.as.i < 0);
        if (!both && !never)
            return false;
        same[k] = both && x.as.i == y.as.i;
    }
    const int64_t size = (int64_t)n;
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_BOOL, &size, !(a.is_scalar && b.is_scalar),
                                   c->import->allocator, &err);
    for (size_t k = 0; t && k < n; k++)
        ((bool *)cfx_tensor_data(t))[k] = same[k];
    if (t)
        cfxi_import_set_known(c, 0, t);
    else
        cfxi_import_fail(c, err.status, "%s", err.message);
    return true;
}

bool cfxi_import_by_items(cfxi_import_call *c, const cfxi_import_row *row)
{
    return (row->moves && move(c, row)) || compute_items(c) || compare_items(c);
}
