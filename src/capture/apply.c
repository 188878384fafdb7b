/* apply.c - an operator on variables: computed now, or noted in the graph that is being made. */
#include "capture_impl.h"
#include "runtime/library_rows.h"

#include <stdio.h>

/* ---- arguments ----------------------------------------------------------------------------- */

/* What is called: a row of the table, or of a library. */
typedef struct callee {
    cfx_operator op;
    const cfx_custom_operator *custom;  /* instead of `op`; or NULL */
    const cfxi_row *row;
    const char *spelled;                /* as a captured call names it; NULL: as the row does */
} callee;

static const char *name_of(const callee *f)
{
    return f->custom ? f->custom->name : cfx_operator_name(f->op);
}

static bool param_at(const callee *f, size_t i, cfx_schema_param *param)
{
    return f->custom ? cfxi_ops_schema_param(f->custom->schema, i, param)
                     : cfx_operator_param(f->op, i, param);
}

/* In C `true` is a number: a parameter that is a bool takes 0 and 1 for False and True. */
static cfx_var as_param(const callee *f, size_t i, cfx_var v)
{
    if (v.kind == CFX_VAR_INT && (v.as.i == 0 || v.as.i == 1) && f->row->is_bool >> i & 1)
        return cfx_var_bool(v.as.i == 1);
    return v;
}

/* The arguments as data; false, and the scope fails. *known: whether all that is given is known. */
static bool all_data(cfx_at at, const callee *f, const cfx_var *args, size_t n, cfx_datum *out,
                     bool *known)
{
    *known = true;
    for (size_t i = 0; i < n; i++) {
        out[i] = cfxi_capture_var_datum(at, as_param(f, i, args[i]));
        *known = *known && (out[i].kind != CFX_DATUM_INVALID || args[i].kind == CFX_VAR_EMPTY);
        if (cfx_scope_ok(at.scope))
            continue;
        while (i-- > 0)
            cfx_datum_release(out[i]);
        return false;
    }
    return true;
}

/* ---- computing ----------------------------------------------------------------------------- */

static cfx_var compute(cfx_at at, const callee *f, const cfx_var *args, size_t n)
{
    cfx_datum data[CFXI_MOST_PARAMS];
    cfx_error err = {0};
    bool known;
    if (!all_data(at, f, args, n, data, &known))
        return cfx_var_empty();
    cfx_datum result = f->custom
                           ? cfx_operator_run_named(at.scope->rt, f->custom->name, data, n, &err)
                           : cfx_operator_run(at.scope->rt, f->op, data, n, &err);
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(data[i]);
    if (result.kind == CFX_DATUM_INVALID) {
        cfxi_capture_scope_take(at, &err);
        return cfx_var_empty();
    }
    return cfxi_capture_var_of_datum(at, result);
}

/* ---- noting -------------------------------------------------------------------------------- */

typedef struct passed {
    cfx_value args[CFXI_MOST_PARAMS];
    size_t n;
    cfx_value kwargs[2 * CFXI_MOST_PARAMS];
    size_t n_kwargs;
    bool spread;  /* the last of args is a list for a parameter that takes any number of values */
} passed;

static void discard(cfx_graph *g, const passed *p)
{
    for (size_t i = 0; i < p->n; i++)
        cfx_value_discard(g, p->args[i]);
    for (size_t i = 0; i < p->n_kwargs; i++)
        cfx_value_discard(g, p->kwargs[i]);
}

/* Sorts the arguments into those by position and those by name. */
static bool pass_all(cfx_at at, const callee *f, const cfx_var *args, size_t n, passed *p)
{
    cfx_graph *g = at.scope->trace->graph;
    cfx_error err = {0};
    cfx_schema_param param;
    bool gap = false;
    for (size_t i = 0; i < n; i++) {
        gap = gap || f->row->by_name >> i & 1;
        if (args[i].kind == CFX_VAR_EMPTY) {
            gap = true;
            continue;
        }
        const cfx_value v = cfxi_capture_var_value(at, as_param(f, i, args[i]));
        if (v.kind == CFX_KIND_INVALID)
            return false;
        if (!gap) {
            p->args[p->n++] = v;
            p->spread = param_at(f, i, &param) && param.variadic && !f->custom &&
                        (v.kind == CFX_KIND_LIST || v.kind == CFX_KIND_TUPLE);
            continue;
        }
        cfx_value name = cfx_value_invalid();
        if (param_at(f, i, &param))
            name = cfx_value_str(g, param.name.text, param.name.size, &err);
        if (name.kind == CFX_KIND_INVALID) {
            cfx_value_discard(g, v);
            cfxi_capture_scope_take(at, &err);
            return false;
        }
        p->kwargs[p->n_kwargs++] = name;
        p->kwargs[p->n_kwargs++] = v;
    }
    return true;
}

/* The positional arguments as Python passes them: format("{} {}", *values). */
static cfx_value positional(cfx_graph *g, const passed *p, cfx_error *err)
{
    if (!p->spread)
        return cfx_value_tuple(g, p->args, p->n, err);
    const cfx_value list = p->args[p->n - 1];
    const size_t first = p->n - 1;
    const size_t n = list.as.seq ? list.as.seq->size : 0;
    size_t bytes;
    cfx_value args = cfx_value_invalid();
    cfx_value *all = cfxi_base_mul_size(first + n, sizeof *all, 1, &bytes)
                         ? cfxi_base_alloc(g->allocator, bytes) : NULL;
    if (!all) {
        cfxi_base_nomem(err);
        return args;
    }
    memcpy(all, p->args, first * sizeof *all);
    for (size_t i = 0; i < n; i++)
        all[first + i] = list.as.seq->items[i];
    args = cfx_value_tuple(g, all, first + n, err);
    cfx_value_discard(g, list);  /* its items are in the tuple now */
    cfxi_base_free(g->allocator, all, bytes);
    return args;
}

static cfx_node *create(cfx_graph *g, const callee *f, const passed *p, cfx_error *err)
{
    const char *name = f->custom ? f->custom->name : f->spelled ? f->spelled : f->row->spelled;
    const cfx_target target = {.name = name, .size = strlen(name)};
    cfx_value args = positional(g, p, err);
    cfx_value kwargs = cfx_value_invalid();
    if (args.kind != CFX_KIND_INVALID && p->n_kwargs > 0)
        kwargs = cfx_value_seq(g, CFX_KIND_DICT, p->kwargs, p->n_kwargs, err);
    const bool method = f->row->method && !f->spelled;
    const cfx_opcode op = method ? CFX_OP_CALL_METHOD : CFX_OP_CALL_FUNCTION;
    cfx_node *n = NULL;
    if (args.kind != CFX_KIND_INVALID && (kwargs.kind != CFX_KIND_INVALID || p->n_kwargs == 0))
        n = cfx_graph_create(g, op, target, args, kwargs, NULL, cfx_value_invalid(), err);
    if (!n) {
        cfx_value_discard(g, args);
        cfx_value_discard(g, kwargs);
    }
    return n;
}

static cfx_node *note_call(cfx_at at, const callee *f, const cfx_var *args, size_t n)
{
    cfx_graph *g = at.scope->trace->graph;
    cfx_error err = {0};
    passed p = {.n = 0};
    cfx_node *call = NULL;
    if (pass_all(at, f, args, n, &p)) {
        call = create(g, f, &p, &err);
        if (!call)
            cfxi_capture_scope_take(at, &err);
    } else {
        discard(g, &p);
    }
    return call;
}

/* What the rule says of the result, if all is known of the arguments: INVALID without a failure if
 * not; the scope fails if they do not fit. */
static cfx_datum infer(cfx_at at, const callee *f, const cfx_var *args, size_t n)
{
    cfx_datum data[CFXI_MOST_PARAMS];
    cfx_error err = {0};
    cfx_datum result = cfx_datum_invalid();
    bool known;
    if (!at.scope->trace->dims || !all_data(at, f, args, n, data, &known))
        return cfx_datum_invalid();
    if (known) {
        cfx_dims *dims = at.scope->trace->dims;
        result = f->custom
                     ? cfx_operator_infer_named(at.scope->rt, dims, f->custom->name, data, n, &err)
                     : cfx_operator_infer(at.scope->rt, dims, f->op, data, n, &err);
        if (result.kind == CFX_DATUM_INVALID)
            cfxi_capture_scope_take(at, &err);
    }
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(data[i]);
    return result;
}

/* How many operands a call has if all else is left out: those that it must be given; 0 if more
 * than that is given. */
static size_t only_operands(const cfxi_row *row, const cfx_var *args, size_t n)
{
    size_t operands = 0;
    for (size_t i = 0; i < n; i++) {
        if (row->needed >> i & 1)
            operands = i + 1;
        else if (args[i].kind != CFX_VAR_EMPTY && args[i].kind != CFX_VAR_NONE)
            return 0;
    }
    return operands;
}

/* Whether it is spelled as Python does it for numbers: if it has no tensor, or the first operand is
 * none, for which torch's functions have no place (2 < x). Sets *all: there is no tensor. */
static bool is_of_numbers(cfx_at at, const cfxi_row *row, const cfx_var *args, size_t operands,
                          bool *all)
{
    *all = row->number[0] != '\0' && operands > 0;
    if (!*all || !cfxi_capture_var_is_number(at, args[0]))
        return *all = false;
    for (size_t i = 1; i < operands; i++)
        *all = *all && cfxi_capture_var_is_number(at, args[i]);
    return *all || strncmp(row->number, "operator.", 9) == 0;
}

/* What is known of the result where shapes are not: whether it is a number. */
static cfx_datum known_number(cfx_at at, const callee *f, bool numbers, const cfx_node *call)
{
    if (f->custom)
        return cfx_datum_invalid();
    if (numbers || f->row->gives_number)
        return cfxi_capture_some_number();
    return cfxi_capture_number_of_call(at.scope->trace, f->op, call);
}

static cfx_var note(cfx_at at, const callee *f, const cfx_var *args, size_t n)
{
    callee as = *f;
    bool numbers = false;
    cfx_datum known = infer(at, f, args, n);
    const size_t operands = f->custom ? 0 : only_operands(f->row, args, n);
    if (is_of_numbers(at, f->row, args, operands, &numbers)) {
        as.spelled = f->row->number;
        n = operands;
    }
    cfx_node *call = cfx_scope_ok(at.scope) ? note_call(at, &as, args, n) : NULL;
    if (!call) {
        cfx_datum_release(known);
        return cfx_var_empty();
    }
    if (!at.scope->trace->dims)
        known = known_number(at, f, numbers, call);
    return cfxi_capture_trace_node(at, call, known);
}

/* ---- both ---------------------------------------------------------------------------------- */

static cfx_var apply(cfx_at at, const callee *f, const cfx_var *args, size_t n)
{
    cfx_schema_param param;
    if (n > 0 && !param_at(f, n - 1, &param)) {
        cfx_scope_fail_at(at, CFX_E_TYPE, "%s%s: too many arguments (%zu given)", name_of(f),
                          f->custom ? f->custom->schema : cfx_operator_schema(f->op), n);
        return cfx_var_empty();
    }
    for (size_t i = 0; i < n; i++) {
        if (args[i].kind == CFX_VAR_EMPTY && f->row->needed >> i & 1 && param_at(f, i, &param)) {
            cfx_scope_fail_at(at, CFX_E_VALUE, "%s: required argument '%.*s' is empty", name_of(f),
                              (int)param.name.size, param.name.text);
            return cfx_var_empty();
        }
    }
    return at.scope->trace ? note(at, f, args, n) : compute(at, f, args, n);
}

cfx_var cfx_apply_at(cfx_at at, cfx_operator op, const cfx_var *args, size_t n)
{
    if (!cfx_scope_ok(at.scope))
        return cfx_var_empty();
    if (!cfx_operator_has_kernel(op) || n > CFXI_MOST_PARAMS) {
        cfx_scope_fail_at(at, CFX_E_TYPE, "operator %d is not in the table, or too many arguments "
                          "were given",
                          (int)op);
        return cfx_var_empty();
    }
    const callee f = {.op = op, .row = cfxi_capture_row_of(at.scope, op)};
    if (f.row)
        return apply(at, &f, args, n);
    cfx_scope_fail_at(at, CFX_E_NOMEM, "out of memory");
    return cfx_var_empty();
}

/* A library's row is read each time. */
static void read_row(const callee *f, cfxi_row *row)
{
    cfx_schema_param param;
    *row = (cfxi_row){.needed = 0};
    for (size_t i = 0; i < CFXI_MOST_PARAMS && param_at(f, i, &param); i++) {
        const bool optional = param.type[strlen(param.type) - 1] == '?';
        cfxi_capture_row_param(row, i, &param, !param.value.text && !param.variadic && !optional);
    }
}

cfx_var cfx_apply_named_at(cfx_at at, const char *name, cfx_vars args)
{
    if (!cfx_scope_ok(at.scope))
        return cfx_var_empty();
    const cfx_library *library = cfxi_rt_library(at.scope->rt);
    callee f = {.custom = name ? cfxi_rt_library_get(library, name) : NULL};
    cfxi_row row;
    if (!f.custom) {
        cfx_scope_fail_at(at, CFX_E_KEY, library ? "the scope's library has no operator '%.100s'"
                                        : "the scope has no library with an operator '%.100s' "
                                          "(cfx_scope_options.library)", name ? name : "");
        return cfx_var_empty();
    }
    read_row(&f, &row);
    f.row = &row;
    return apply(at, &f, args.items, args.n);
}
