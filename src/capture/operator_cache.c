/* operator_cache.c - what a call needs to know of an operator: read from the table's text once for
 * a scope.
 *
 * A program of 40,000 calls uses a handful of operators; their texts say which parameters must be
 * given, and how a captured call is spelled.
 */
#include "capture_impl.h"

#include <stdio.h>

struct cfxi_rows {
    cfxi_row *of[CFX_OPERATOR_COUNT];  /* NULL: not called yet */
};

/* ---- parameters ---------------------------------------------------------------------------- */

void cfxi_capture_row_param(cfxi_row *row, size_t i, const cfx_schema_param *param, bool needed)
{
    const uint32_t bit = (uint32_t)1 << i;
    row->needed |= needed ? bit : 0;
    row->is_bool |= strncmp(param->type, "bool", 4) == 0 ? bit : 0;
    row->by_name |= param->keyword_only ? bit : 0;
}

/* ---- spelling ------------------------------------------------------------------------------ */

static bool starts_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* How good a spelling is for a call with the row's own parameters: 0 it is none. A method takes
 * what people give it; an overload of aten only what its signature says: no number for a tensor. */
static int rank(const char *name, cfx_spelling kind)
{
    const bool fixed = cfxi_ops_spelling_has_params(name);
    if (kind == CFX_SPELLING_METHOD)
        return fixed ? 1 : 3;
    if (kind == CFX_SPELLING_OVERLOAD)
        return 2;
    if (kind != CFX_SPELLING_FUNCTION || fixed)
        return 0;
    if (starts_with(name, "torch.nn.functional."))
        return 5;
    return starts_with(name, "torch.") ? 6 : 4;
}

/* As a person would in Python, and so that the row's parameters are the function's. */
static void spell(cfx_operator op, cfxi_row *row)
{
    char name[CFX_SPELLING_SIZE];
    cfx_spelling kind;
    int best = 0;
    snprintf(row->spelled, sizeof row->spelled, "cfx.ops.%s", cfx_operator_name(op));
    for (size_t i = 0; cfx_operator_spelling(op, i, name, &kind); i++) {
        const int good = rank(name, kind);
        if (good <= best)
            continue;
        best = good;
        row->method = kind == CFX_SPELLING_METHOD;
        const char *start = row->method ? strrchr(name, '.') + 1 : name;
        memmove(row->spelled, start, strlen(start) + 1);
    }
}

/* Names for numbers that are rows of their own. */
static const struct {
    cfx_operator op;
    const char *name;
} number_names[] = {
    {CFX_OPID_floor, "math.floor"},      {CFX_OPID_ceil, "math.ceil"},
    {CFX_OPID_trunc, "math.trunc"},      {CFX_OPID_sqrt, "math.sqrt"},
    {CFX_OPID_exp, "math.exp"},          {CFX_OPID_log, "math.log"},
    {CFX_OPID_sin, "math.sin"},          {CFX_OPID_cos, "math.cos"},
    {CFX_OPID_maximum, "torch.sym_max"}, {CFX_OPID_minimum, "torch.sym_min"},
};

/* torch.remainder takes no two numbers; operator.mod does, and gives a number, as the row does. */
static void spell_for_numbers(cfx_operator op, cfxi_row *row)
{
    const size_t n = sizeof number_names / sizeof *number_names;
    const cfx_operator functional = cfx_operator_functional(op);
    char name[CFX_SPELLING_SIZE];
    for (size_t i = 0; cfx_operator_spelling(op, i, name, NULL); i++) {
        const bool built_in = starts_with(name, "builtins.");
        if (built_in || (starts_with(name, "operator.") && row->number[0] == '\0'))
            memcpy(row->number, name, sizeof name);
    }
    for (size_t i = 0; row->number[0] == '\0' && i < n; i++)
        if (number_names[i].op == op)
            snprintf(row->number, sizeof row->number, "%s", number_names[i].name);
    if (row->number[0] == '\0' && functional != CFX_OPID_NONE)
        spell_for_numbers(functional, row);
}

static bool is_number_type(const char *type)
{
    return strcmp(type, "int") == 0 || strcmp(type, "float") == 0 || strcmp(type, "bool") == 0 ||
           strcmp(type, "Scalar") == 0;
}

/* ---- rows of the table --------------------------------------------------------------------- */

cfxi_rows *cfxi_capture_rows_new(const cfx_allocator *allocator)
{
    cfxi_rows *rows = cfxi_base_alloc(allocator, sizeof *rows);
    if (rows)
        memset(rows, 0, sizeof *rows);
    return rows;
}

void cfxi_capture_rows_free(cfxi_rows *rows, const cfx_allocator *allocator)
{
    if (!rows)
        return;
    for (size_t i = 0; i < CFX_OPERATOR_COUNT; i++)
        cfxi_base_free(allocator, rows->of[i], sizeof *rows->of[i]);
    cfxi_base_free(allocator, rows, sizeof *rows);
}

const cfxi_row *cfxi_capture_row_of(cfx_scope *s, cfx_operator op)
{
    cfx_schema_param param;
    if (!s->rows)
        s->rows = cfxi_capture_rows_new(s->allocator);
    if (!s->rows || s->rows->of[op])
        return s->rows ? s->rows->of[op] : NULL;
    cfxi_row *row = cfxi_base_alloc(s->allocator, sizeof *row);
    if (!row)
        return NULL;
    *row = (cfxi_row){.needed = 0};
    for (size_t i = 0; i < CFXI_MOST_PARAMS && cfx_operator_param(op, i, &param); i++)
        cfxi_capture_row_param(row, i, &param, !param.value.text && !param.variadic);
    spell(op, row);
    spell_for_numbers(op, row);
    row->gives_number = cfx_operator_result(op, 0, &param) && is_number_type(param.type);
    s->rows->of[op] = row;
    return row;
}
