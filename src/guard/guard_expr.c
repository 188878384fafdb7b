/* guard_expr.c - expressions of guards: their functions, and what they are for some values. */
#include "guard_impl.h"

/* ---- the tables ---------------------------------------------------------------------------- */

/* int and float are no actions of Python's rows. */
#define CFXI_PY_INT CFXI_PY_NOTHING
#define CFXI_PY_FLOAT CFXI_PY_NOTHING

#define OPERANDS(id)                                                                               \
    (CFXI_PY_##id == CFXI_PY_NOTHING || CFXI_PY_##id >= CFXI_PY_FIRST_UNARY ? 1 : 2)

const cfxi_guard_function cfxi_guard_functions[CFXI_GUARD_OP_COUNT] = {
#define CFX_GUARD_FUNCTION(id, text, form, binding, name)                                          \
    [CFXI_GUARD_##id] = {text, name, CFXI_GUARD_##form, binding, CFXI_PY_##id, OPERANDS(id)},
#include <cfx/guard.def>
#undef CFX_GUARD_FUNCTION
};

const char *const cfxi_guard_signs[CFX_GUARD_RELATION_COUNT] = {
#define CFX_GUARD_RELATION(id, sign, opposite) [CFX_GUARD_##id] = sign,
#include <cfx/guard.def>
#undef CFX_GUARD_RELATION
};

const char *const cfxi_guard_kinds[CFX_GUARD_KIND_COUNT] = {
#define CFX_GUARD_KIND(id, name) [CFX_GUARD_##id] = name,
#include <cfx/guard.def>
#undef CFX_GUARD_KIND
};

const char *const cfxi_guard_askers[CFX_GUARD_ASKER_COUNT] = {
#define CFX_GUARD_ASKER(id, name) [CFX_GUARD_BY_##id] = name,
#include <cfx/guard.def>
#undef CFX_GUARD_ASKER
};

static const uint8_t comparisons[CFX_GUARD_RELATION_COUNT] = {
#define CFX_GUARD_RELATION(id, sign, opposite) [CFX_GUARD_##id] = CFXI_PY_##id,
#include <cfx/guard.def>
#undef CFX_GUARD_RELATION
};

/* ---- making -------------------------------------------------------------------------------- */

static cfxi_guard_item *push(cfxi_guard_code *code, cfxi_guard_op op)
{
    if (code->n == CFXI_GUARD_ITEMS)
        return NULL;
    cfxi_guard_item *item = &code->items[code->n++];
    *item = (cfxi_guard_item){.op = (uint32_t)op, .number = cfx_datum_invalid()};
    return item;
}

static cfxi_guard_item *push_operand(cfxi_guard_code *code, cfxi_guard_op op)
{
    cfxi_guard_item *item = code->depth < CFXI_GUARD_DEPTH ? push(code, op) : NULL;
    code->depth += item != NULL;
    return item;
}

bool cfxi_guard_push_number(cfxi_guard_code *code, cfx_datum number)
{
    cfxi_guard_item *item = push_operand(code, CFXI_GUARD_NUMBER);
    if (item)
        item->number = number;
    return item != NULL;
}

bool cfxi_guard_push_term(cfxi_guard_code *code, uint32_t term)
{
    cfxi_guard_item *item = push_operand(code, CFXI_GUARD_TERM);
    if (item)
        item->term = term;
    return item != NULL;
}

/* -3 is a number: texts do not tell it from the negative of 3. */
static bool negate_number(cfxi_guard_code *code)
{
    cfxi_guard_item *last = code->n ? &code->items[code->n - 1] : NULL;
    if (!last || last->op != CFXI_GUARD_NUMBER)
        return false;
    if (last->number.kind == CFX_DATUM_FLOAT)
        last->number.as.f = -last->number.as.f;
    else if (last->number.as.i != INT64_MIN)
        last->number.as.i = -last->number.as.i;
    else
        return false;
    return true;
}

bool cfxi_guard_push_function(cfxi_guard_code *code, cfxi_guard_op op)
{
    if (op == CFXI_GUARD_NEG && negate_number(code))
        return true;
    if (!push(code, op))
        return false;
    code->depth -= cfxi_guard_functions[op].operands - 1u;
    return true;
}

/* ---- computing ----------------------------------------------------------------------------- */

static cfx_datum to_float(cfx_datum d)
{
    return d.symbolic ? cfxi_rt_py_unknown(CFX_DATUM_FLOAT) : cfx_datum_float(cfxi_rt_py_float(d));
}

static cfx_datum apply(cfxi_call *c, cfxi_guard_op op, const cfx_datum *operand)
{
    const cfxi_py_action action = (cfxi_py_action)cfxi_guard_functions[op].action;
    if (op == CFXI_GUARD_FLOAT && operand[0].kind != CFX_DATUM_COMPLEX)
        return to_float(operand[0]);
    if (op == CFXI_GUARD_INT || op == CFXI_GUARD_FLOAT)  /* a complex number is refused */
        return cfxi_rt_py_unary(c, CFXI_PY_TRUNC, operand[0]);
    if (action == CFXI_PY_MAX || action == CFXI_PY_MIN)
        return cfxi_rt_python_choose(c, operand[0], operand[1], action == CFXI_PY_MAX);
    if (cfxi_guard_functions[op].operands == 1)
        return cfxi_rt_py_unary(c, action, operand[0]);
    return cfxi_rt_py_arithmetic(c, action, operand[0], operand[1]);
}

cfx_datum cfxi_guard_evaluate(const cfxi_guard_item *items, size_t n, const cfx_datum *values,
                              cfx_dims *dims, cfx_error *err)
{
    cfx_error own;
    cfx_datum stack[CFXI_GUARD_DEPTH];
    size_t depth = 0;
    cfxi_call c = {.dims = dims, .err = cfxi_base_error_or(err, &own)};
    for (size_t i = 0; i < n; i++) {
        if (items[i].op == CFXI_GUARD_NUMBER) {
            stack[depth++] = items[i].number;
        } else if (items[i].op == CFXI_GUARD_TERM) {
            stack[depth++] = values[items[i].term];
            if (stack[depth - 1].kind == CFX_DATUM_INVALID) {
                cfx_error_set(c.err, CFX_E_OVERFLOW, "a number does not fit in 64 bits");
                break;
            }
        } else {
            depth -= cfxi_guard_functions[items[i].op].operands;
            stack[depth] = apply(&c, (cfxi_guard_op)items[i].op, stack + depth);
            if (stack[depth++].kind == CFX_DATUM_INVALID)
                break;
        }
    }
    return stack[depth - 1];
}

cfx_datum cfxi_guard_answer(const cfx_guards *g, const cfxi_guard_row *row, const cfx_datum *values,
                            cfx_dims *dims, cfx_error *err)
{
    cfx_error own;
    cfxi_call c = {.dims = dims, .err = cfxi_base_error_or(err, &own)};
    cfx_datum sides[2];
    for (int i = 0; i < 2; i++) {
        sides[i] = cfxi_guard_evaluate(cfxi_guard_items(g, row, i == 1),
                                       i == 1 ? row->right : row->left, values, dims, c.err);
        if (sides[i].kind == CFX_DATUM_INVALID)
            return sides[i];
    }
    cfx_datum truth = cfxi_rt_py_compare(&c, (cfxi_py_action)comparisons[row->relation], sides[0],
                                         sides[1]);
    if (truth.kind == CFX_DATUM_BOOL && !truth.symbolic)
        truth.as.b = truth.as.b == row->truth;
    return truth;
}

bool cfxi_guard_is_total(const cfxi_guard_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const cfxi_guard_op op = (cfxi_guard_op)items[i].op;
        const bool divides = op == CFXI_GUARD_FLOOR_DIV || op == CFXI_GUARD_MOD ||
                             op == CFXI_GUARD_TRUE_DIV;
        if (op == CFXI_GUARD_POW || op == CFXI_GUARD_SHIFT_LEFT || op == CFXI_GUARD_SHIFT_RIGHT ||
            op == CFXI_GUARD_SQRT)
            return false;
        if (divides && (items[i - 1].op != CFXI_GUARD_NUMBER ||
                        cfxi_rt_py_float(items[i - 1].number) == 0))
            return false;
    }
    return true;
}
