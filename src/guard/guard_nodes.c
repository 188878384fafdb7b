/* guard_nodes.c - guards from questions about the numbers of a graph.
 *
 * A number of a graph is an input, a size of an input, a function of numbers; or a size of a tensor
 * inside, which guard_sizes.c tells by those of the inputs, all that are needed at once.
 */
#include "guard_impl.h"

#include <cfx/embed/copy.h>

/* ---- numbers of the graph ------------------------------------------------------------------ */

cfxi_guard_op cfxi_guard_function_of(const cfx_node *n)
{
    const char *name = cfx_node_op(n) == CFX_OP_CALL_FUNCTION ? cfx_node_target(n, NULL, NULL)
                                                              : NULL;
    if (!name)
        return CFXI_GUARD_NUMBER;
    name += name[0] == '_';  /* _operator.add */
    for (int op = CFXI_GUARD_TERM + 1; op < CFXI_GUARD_OP_COUNT; op++)
        if (strcmp(cfxi_guard_functions[op].name, name) == 0)
            return (cfxi_guard_op)op;
    return CFXI_GUARD_NUMBER;
}

/* The number of the input that a value is; SIZE_MAX: it is none. */
static size_t input_of(const cfxi_guard_reader *r, cfx_value v)
{
    const cfx_value i = v.kind == CFX_KIND_NODE ? cfx_node_map_get(r->inputs, v.as.node)
                                                : cfx_value_invalid();
    return i.kind == CFX_KIND_INT ? (size_t)i.as.i : SIZE_MAX;
}

static cfxi_guard_found push_term(cfxi_guard_reader *r, size_t input, size_t dim,
                                  cfxi_guard_code *code)
{
    uint32_t term;
    const cfx_guard_input *in = &r->options->inputs[input];
    if (dim != CFX_GUARD_NUMBER && in->fixed && in->fixed[dim])
        return cfxi_guard_push_number(code, cfx_datum_int(in->sizes[dim])) ? CFXI_GUARD_DECIDED
                                                                           : CFXI_GUARD_OPEN;
    if (!cfxi_guard_term_of(r->guards, input, dim, &term)) {
        cfxi_base_nomem(r->err);
        return CFXI_GUARD_FAILED;
    }
    return cfxi_guard_push_term(code, term) ? CFXI_GUARD_DECIDED : CFXI_GUARD_OPEN;
}

/* x.size(d) of an input; OPEN if it is none. */
static cfxi_guard_found read_size(cfxi_guard_reader *r, const cfx_node *n, cfxi_guard_code *code)
{
    const cfx_operator op = cfx_node_operator(n);
    if (op != CFX_OPID_size && op != CFX_OPID_sym_size)
        return CFXI_GUARD_OPEN;
    const size_t input = input_of(r, cfx_node_arg(n, 0));
    const cfx_value dim = cfx_node_operand(n, "dim");
    if (input == SIZE_MAX || dim.kind != CFX_KIND_INT)
        return CFXI_GUARD_OPEN;
    const cfx_guard_input *in = &r->options->inputs[input];
    const int64_t ndim = (int64_t)in->ndim;
    if (in->number.kind != CFX_DATUM_INVALID || dim.as.i < -ndim || dim.as.i >= ndim)
        return CFXI_GUARD_OPEN;
    return push_term(r, input, (size_t)(dim.as.i < 0 ? dim.as.i + ndim : dim.as.i), code);
}

/* Whether shape rules can tell what an integer is: strides they do not know. */
static bool is_of_sizes(const cfx_node *n)
{
    const cfx_value of = cfx_node_arg(n, 0);
    switch (cfx_node_operator(n)) {
    case CFX_OPID_size:
    case CFX_OPID_sym_size:
    case CFX_OPID_numel:
    case CFX_OPID_len: return true;
    case CFX_OPID_getitem:
        return of.kind == CFX_KIND_NODE && cfx_node_operator(of.as.node) == CFX_OPID_size;
    default: return false;
    }
}

/* A size inside of the graph. */
static cfxi_guard_found read_inner(cfxi_guard_reader *r, cfx_node *n, cfxi_guard_code *code)
{
    size_t count = 0;
    const cfxi_guard_item *items = r->sizes ? cfxi_guard_sizes_get(r->sizes, n, &count) : NULL;
    if (r->wanted && is_of_sizes(n)) {
        if (!cfxi_base_vec_reserve(r->wanted, 1, sizeof n, r->guards->allocator)) {
            cfxi_base_nomem(r->err);
            return CFXI_GUARD_FAILED;
        }
        ((const cfx_node **)r->wanted->data)[r->wanted->size++] = n;
    }
    if (!items)
        return CFXI_GUARD_OPEN;
    for (size_t i = 0; i < count; i++) {
        cfxi_guard_found found = CFXI_GUARD_DECIDED;
        bool fits = true;
        if (items[i].op == CFXI_GUARD_TERM) {
            const cfxi_guard_term t = cfxi_guard_sizes_variable(r->sizes, items[i].term);
            found = push_term(r, t.input, t.dim, code);
        } else if (items[i].op == CFXI_GUARD_NUMBER) {
            fits = cfxi_guard_push_number(code, items[i].number);
        } else {
            fits = cfxi_guard_push_function(code, (cfxi_guard_op)items[i].op);
        }
        if (found != CFXI_GUARD_DECIDED || !fits)
            return fits ? found : CFXI_GUARD_OPEN;
    }
    return CFXI_GUARD_DECIDED;
}

static cfxi_guard_found read_value(cfxi_guard_reader *r, cfx_value v, cfxi_guard_code *code,
                                   int depth);

/* All operands are read even if one is open: it may be told later. */
static cfxi_guard_found read_call(cfxi_guard_reader *r, const cfx_node *n, cfxi_guard_op op,
                                  cfxi_guard_code *code, int depth)
{
    const size_t args = cfx_node_num_args(n);
    const size_t operands = cfxi_guard_functions[op].operands;
    const bool many = op == CFXI_GUARD_MAX || op == CFXI_GUARD_MIN;
    cfxi_guard_found all = CFXI_GUARD_DECIDED;
    size_t kwargs = 0;
    cfx_value_items(cfx_node_kwargs(n), &kwargs);
    if (kwargs > 0 || (many ? args < operands : args != operands))
        return CFXI_GUARD_OPEN;
    for (size_t i = 0; i < args; i++) {
        const cfxi_guard_found found = read_value(r, cfx_node_arg(n, i), code, depth);
        if (found == CFXI_GUARD_FAILED)
            return found;
        all = found == CFXI_GUARD_OPEN ? found : all;
        if (all == CFXI_GUARD_DECIDED && i + 1 >= operands && !cfxi_guard_push_function(code, op))
            all = CFXI_GUARD_OPEN;
    }
    return all;
}

static cfxi_guard_found read_value(cfxi_guard_reader *r, cfx_value v, cfxi_guard_code *code,
                                   int depth)
{
    if (v.kind == CFX_KIND_INT || v.kind == CFX_KIND_FLOAT)
        return cfxi_guard_push_number(code, v.kind == CFX_KIND_INT ? cfx_datum_int(v.as.i)
                                                                   : cfx_datum_float(v.as.f))
                   ? CFXI_GUARD_DECIDED : CFXI_GUARD_OPEN;
    if (v.kind != CFX_KIND_NODE || depth == 0 || ++r->visits > CFXI_GUARD_ITEMS)
        return CFXI_GUARD_OPEN;  /* what uses its parts twice has no bounds as a tree */
    const size_t input = input_of(r, v);
    if (input != SIZE_MAX)
        return r->options->inputs[input].number.kind == CFX_DATUM_INVALID
                   ? CFXI_GUARD_OPEN : push_term(r, input, CFX_GUARD_NUMBER, code);
    const cfxi_guard_op op = cfxi_guard_function_of(v.as.node);
    if (op != CFXI_GUARD_NUMBER)
        return read_call(r, v.as.node, op, code, depth - 1);
    const cfxi_guard_found found = read_size(r, v.as.node, code);
    return found == CFXI_GUARD_OPEN ? read_inner(r, v.as.node, code) : found;
}

cfxi_guard_found cfxi_guard_read(cfxi_guard_reader *r, cfx_value v, cfxi_guard_code *code)
{
    code->n = code->depth = 0;
    r->visits = 0;
    return read_value(r, v, code, CFXI_GUARD_DEPTH);
}

/* ---- questions ----------------------------------------------------------------------------- */

/* The values that the terms had in the run that was recorded. */
static cfx_datum example_of(const cfx_guard_input *in, size_t dim)
{
    return dim == CFX_GUARD_NUMBER ? in->number : cfx_datum_int(in->sizes[dim]);
}

static cfx_status hold_examples(const cfx_guards *g, const cfx_settle_options *options,
                                size_t first, cfx_error *err)
{
    cfx_status status = CFX_OK;
    const size_t count = g->terms.size;
    cfx_datum *values = cfxi_base_alloc(g->allocator, (count + 1) * sizeof *values);
    if (!values)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < count; i++) {
        const cfxi_guard_term *t = &cfxi_guard_terms(g)[i];
        values[i] = example_of(&options->inputs[t->input], t->dim);
    }
    for (size_t i = first; status == CFX_OK && i < g->rows.size; i++) {
        const cfx_datum answer = cfxi_guard_answer(g, cfxi_guard_at(g, i), values, NULL, NULL);
        if (answer.kind != CFX_DATUM_BOOL || !answer.as.b)
            status = CFX_E_VALUE;
    }
    cfxi_base_free(g->allocator, values, (count + 1) * sizeof *values);
    return status;
}

/* Adds a question that the inputs decide. One that was told from sizes inside but does not hold for
 * the example was told wrongly: the graph goes on checking it. */
static cfx_status settle_one(cfxi_guard_reader *r, cfx_question *q)
{
    cfxi_guard_code left;
    cfxi_guard_code right;
    const size_t before = r->guards->rows.size;
    const cfxi_guard_found a = cfxi_guard_read(r, q->left, &left);
    const cfxi_guard_found b = a == CFXI_GUARD_FAILED ? a : cfxi_guard_read(r, q->right, &right);
    if (b == CFXI_GUARD_FAILED)
        return r->err->status;
    if (r->wanted || a == CFXI_GUARD_OPEN || b == CFXI_GUARD_OPEN)
        return CFX_OK;
    CFX_TRY(cfxi_guard_add(r->guards, &q->guard, q->relation, q->truth, &left, &right, r->err));
    const cfx_status status = hold_examples(r->guards, r->options, before, r->err);
    if (status == CFX_E_VALUE)
        cfxi_guard_cut(r->guards, before);
    q->settled = status == CFX_OK;
    return status == CFX_E_NOMEM ? status : CFX_OK;
}

static cfx_status settle_all(cfxi_guard_reader *r, cfx_graph *g, cfx_question *questions, size_t n)
{
    cfxi_vec wanted = {0};
    cfxi_guard_sizes *sizes = NULL;
    cfx_status status = CFX_OK;
    r->wanted = &wanted;
    for (size_t i = 0; status == CFX_OK && i < n; i++)
        status = settle_one(r, &questions[i]);
    r->wanted = NULL;
    if (status == CFX_OK && wanted.size > 0) {
        sizes = cfxi_guard_sizes_new(r->guards, g, &wanted, r->options, r->err);
        status = sizes ? CFX_OK : r->err->status;
    }
    r->sizes = sizes;
    for (size_t i = 0; status == CFX_OK && i < n; i++)
        status = settle_one(r, &questions[i]);
    cfxi_guard_sizes_free(sizes);
    cfxi_base_vec_free(&wanted, sizeof(const cfx_node *), r->guards->allocator);
    return status == CFX_OK ? cfxi_guard_reduce(r->guards, r->options, r->err) : status;
}

cfx_status cfx_guards_settle(cfx_guards *guards, cfx_graph *g, cfx_question *questions, size_t n,
                             const cfx_settle_options *options, cfx_error *err)
{
    cfx_error own;
    int64_t count = 0;
    err = cfxi_base_error_or(err, &own);
    *err = (cfx_error){0};
    cfx_node_map *inputs = cfx_node_map_new(guards->allocator, err);
    cfx_status status = inputs ? CFX_OK : CFX_E_NOMEM;
    for (cfx_node *node = cfx_graph_first(g); status == CFX_OK && node; node = cfx_node_next(node))
        if (cfx_node_op(node) == CFX_OP_PLACEHOLDER)
            status = cfx_node_map_set(inputs, node, cfx_value_int(count++), err);
    if (status == CFX_OK && (size_t)count != guards->num_inputs)
        status = cfx_error_set(err, CFX_E_VALUE, "the graph has %lld inputs, the guards are for "
                               "%zu", (long long)count, guards->num_inputs);
    for (size_t i = 0; i < n; i++)
        questions[i].settled = false;
    cfxi_guard_reader r = {.guards = guards, .options = options, .inputs = inputs, .err = err};
    if (status == CFX_OK)
        status = settle_all(&r, g, questions, n);
    cfx_node_map_free(inputs);
    return status;
}
