/* whole_values.c - which nodes certainly give no tensors of floats: numbers and sizes, and whole
 * values, that is integers and truth values, such as masks, tokens and positions.
 *
 * Nothing is run: a row tells it by what it reads. What is not certain counts as floats.
 */
#include "integers_impl.h"
#include "prepare_impl.h"

#include <cfx/tensor.h>

/* ---- numbers -------------------------------------------------------------------------------- */

static bool all_inputs_are_numbers(const cfxi_prepare *p, const cfx_node *n)
{
    for (uint32_t i = 0; i < n->n_inputs; i++) {
        const cfxi_quantize_facts *f = cfxi_quantize_facts_of(p, n->inputs[i].def);
        if (!f || !f->number)
            return false;
    }
    return n->n_inputs > 0;
}

static bool is_tensor_attribute(cfx_value name)
{
    static const char *const tensors[] = {"T", "mT", "H", "mH", "data", "grad", "real", "imag"};
    const char *text = cfx_value_text(name, NULL);
    for (size_t i = 0; text && i < sizeof tensors / sizeof *tensors; i++)
        if (strcmp(text, tensors[i]) == 0)
            return true;
    return text == NULL;
}

/* Whether the value is certainly not a tensor: a size, a number, a tuple of them. */
bool cfxi_quantize_is_number(const cfxi_prepare *p, const cfx_node *n, cfx_operator op)
{
    cfx_schema_param result, first;
    if (n->op == CFX_OP_PLACEHOLDER)
        return cfxi_base_pointers_get(&p->numbers, n) != NULL;
    if (n->op != CFX_OP_CALL_FUNCTION && n->op != CFX_OP_CALL_METHOD)
        return false;
    if (op == CFX_OPID_getattr)
        return !is_tensor_attribute(cfx_node_arg(n, 1));
    if (op == CFX_OPID_size)
        return true;
    if (!cfx_operator_result(op, 0, &result))
        return n->op == CFX_OP_CALL_FUNCTION && all_inputs_are_numbers(p, n);
    if (strncmp(result.type, "Tensor", 6) != 0 && strncmp(result.type, "Any", 3) != 0)
        return true;
    const bool takes_one = cfx_operator_param(op, 0, &first) &&
                           (strncmp(first.type, "Tensor", 6) == 0 ||
                            strncmp(first.type, "Any", 3) == 0);
    return takes_one && n->op == CFX_OP_CALL_FUNCTION && all_inputs_are_numbers(p, n);
}

/* ---- whole values --------------------------------------------------------------------------- */

enum {
    ALWAYS = 1,  /* its result is whole whatever it reads */
    FIRST = 2,   /* if its first argument is */
    ALL = 3,     /* if all that it reads are, and no literal is a float */
    PLACES = 4   /* likewise, but its first argument is a condition */
};

static const uint8_t rows[CFX_OPERATOR_COUNT] = {
    [CFX_OPID_eq] = ALWAYS, [CFX_OPID_ne] = ALWAYS, [CFX_OPID_lt] = ALWAYS, [CFX_OPID_le] = ALWAYS,
    [CFX_OPID_gt] = ALWAYS, [CFX_OPID_ge] = ALWAYS, [CFX_OPID_logical_and] = ALWAYS,
    [CFX_OPID_logical_or] = ALWAYS, [CFX_OPID_logical_xor] = ALWAYS,
    [CFX_OPID_logical_not] = ALWAYS, [CFX_OPID_bitwise_and] = ALWAYS,
    [CFX_OPID_bitwise_or] = ALWAYS, [CFX_OPID_bitwise_xor] = ALWAYS,
    [CFX_OPID_bitwise_not] = ALWAYS, [CFX_OPID_isnan] = ALWAYS, [CFX_OPID_isinf] = ALWAYS,
    [CFX_OPID_isfinite] = ALWAYS, [CFX_OPID_argmax] = ALWAYS, [CFX_OPID_argmin] = ALWAYS,
    [CFX_OPID_argsort] = ALWAYS, [CFX_OPID_one_hot] = ALWAYS, [CFX_OPID_nonzero] = ALWAYS,
    [CFX_OPID_cast_int] = ALWAYS, [CFX_OPID_cast_long] = ALWAYS, [CFX_OPID_cast_bool] = ALWAYS,
    [CFX_OPID_size] = ALWAYS, [CFX_OPID_numel] = ALWAYS, [CFX_OPID_dim] = ALWAYS,
    [CFX_OPID_masked_fill] = FIRST, [CFX_OPID_zeros_like] = FIRST, [CFX_OPID_ones_like] = FIRST,
    [CFX_OPID_new_zeros] = FIRST, [CFX_OPID_new_ones] = FIRST, [CFX_OPID_cumsum] = FIRST,
    [CFX_OPID_sum] = FIRST, [CFX_OPID_to_device] = FIRST,
    [CFX_OPID_add] = ALL, [CFX_OPID_sub] = ALL, [CFX_OPID_rsub] = ALL, [CFX_OPID_mul] = ALL,
    [CFX_OPID_floor_divide] = ALL, [CFX_OPID_remainder] = ALL, [CFX_OPID_neg] = ALL,
    [CFX_OPID_abs] = ALL, [CFX_OPID_clamp] = ALL, [CFX_OPID_minimum] = ALL,
    [CFX_OPID_maximum] = ALL, [CFX_OPID_arange] = ALL, [CFX_OPID_arange_start] = ALL,
    [CFX_OPID_cat] = ALL, [CFX_OPID_stack] = ALL, [CFX_OPID_where] = PLACES,
};

static bool is_whole_dtype(cfx_dtype dtype)
{
    return dtype == CFX_DTYPE_BOOL || cfx_dtype_is_integer(dtype);
}

static bool is_whole_value(const cfxi_prepare *p, cfx_value v)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    if (v.kind == CFX_KIND_NODE) {
        const cfxi_quantize_facts *f = cfxi_quantize_facts_of(p, v.as.node);
        return f && f->whole;
    }
    for (size_t i = 0; i < n; i++)
        if (!is_whole_value(p, items[i]))
            return false;
    return v.kind != CFX_KIND_FLOAT && v.kind != CFX_KIND_COMPLEX;
}

/* Whether all arguments from the first on are whole. */
static bool all_are_whole(const cfxi_prepare *p, const cfx_node *n, size_t first)
{
    for (size_t i = first; i < cfx_node_num_args(n); i++)
        if (!is_whole_value(p, cfx_node_arg(n, i)))
            return false;
    return is_whole_value(p, cfx_node_kwargs(n));
}

/* The type of a parameter or buffer of the model. */
static bool is_whole_attribute(const cfxi_prepare *p, const cfx_node *n)
{
    cfx_value v;
    cfx_error why = {.status = CFX_OK};
    if (cfxi_ops_module_attr(p->modules, p->g, cfxi_quantize_path(n), "dtype", &v, &why) != CFX_OK)
        return false;  /* it is not a tensor */
    const bool is = v.kind == CFX_KIND_DTYPE && is_whole_dtype((cfx_dtype)v.as.i);
    cfx_value_discard(p->g, v);
    return is;
}

/* Whether the first argument decides: such rows only move elements, or keep their type. */
static bool goes_by_first(cfx_operator op)
{
    const cfxi_quantize_row *row = cfxi_quantize_find_row(op);
    return rows[op] == FIRST || (row && row->role == CFXI_QUANTIZE_SHARE && !rows[op]) ||
           cfxi_quantize_moves(op);
}

bool cfxi_quantize_is_whole(const cfxi_prepare *p, const cfx_node *n, cfx_operator op, bool number)
{
    const cfx_value dtype = cfx_node_operand(n, "dtype");
    if (n->op == CFX_OP_PLACEHOLDER)
        return cfxi_base_pointers_get(&p->wholes, n) != NULL;
    if (n->op == CFX_OP_GET_ATTR)
        return is_whole_attribute(p, n);
    if (op == CFX_OPID_getattr && number)
        return true;  /* x.shape, x.ndim */
    if (dtype.kind == CFX_KIND_DTYPE)
        return is_whole_dtype((cfx_dtype)dtype.as.i);
    if (op == CFX_OPID_NONE || dtype.kind == CFX_KIND_NODE)
        return false;
    if (rows[op] == ALL || rows[op] == PLACES)
        return all_are_whole(p, n, rows[op] == PLACES);
    if (!goes_by_first(op))
        return rows[op] == ALWAYS;
    return n->n_inputs > 0 && is_whole_value(p, cfx_value_node(n->inputs[0].def));
}
