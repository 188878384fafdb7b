/* guard_sizes.c - sizes of tensors inside of a graph, by the sizes of its inputs.
 *
 * The graph up to the last size that is wanted is copied and lowered as far as its operators have
 * rows, and shape rules run once with symbols for the sizes and integers of the inputs (variables).
 *
 * Rules take a symbol for a size that is not 1, and N and M for one size where they are added; but
 * N may be 1 and broadcast. So the symbols are cautious ones (dim_impl.h): what broadcasting makes
 * of sizes that may be 1 is not known. As a net below that, what the rules say is tried: they run
 * again with numbers for the variables (1, the sizes of the run that was recorded, twice these; 0
 * and -1 for integers), and only what they say then, too, is used. If an operator fails for such a
 * size, the graph does not come to its end, and nothing needs to hold.
 */
#include "guard_impl.h"

#include "dim/dim_impl.h"
#include "runtime/program_impl.h"

#include <cfx/embed/copy.h>
#include <cfx/embed/tensor.h>
#include <cfx/lower.h>

typedef struct entry {
    const cfx_node *node;
    cfxi_guard_item *items;  /* NULL: it is not known, or has proved wrong */
    size_t n;
} entry;

struct cfxi_guard_sizes {
    const cfx_allocator *allocator;
    cfxi_arena arena;
    cfx_node_map *places;   /* of nodes, in `entries` */
    entry *entries;
    size_t num_entries;
    cfxi_guard_term *variables;
    size_t num_variables;
};

/* What a run of the rules is made with. */
typedef struct inference {
    cfxi_guard_sizes *sizes;
    const cfx_settle_options *options;
    size_t num_inputs;
    cfx_program *program;
    cfx_datum *inputs;   /* one for each input */
    cfx_datum *values;   /* one for each variable, in the present run */
    uint8_t *chosen;     /* for each variable: whether it is to be a number */
    int64_t *numbers;    /* and which */
    cfx_error *err;
} inference;

/* ---- the part of the graph ----------------------------------------------------------------- */

static bool is_assertion(const cfx_node *n)
{
    const cfx_operator op = cfx_node_operator(n);
    return (cfx_operator_flags(op) & CFX_OPERATOR_CHECKS) && cfx_node_num_users(n) == 0;
}

/* Erases what stands behind the last wanted node, and assertions: what they demand is not taken for
 * granted here. */
static cfx_status cut(cfx_graph *g, const cfx_node_map *wanted, cfx_error *err)
{
    bool behind = true;
    cfx_node *before;
    for (cfx_node *n = cfx_graph_last(g); n; n = before) {
        before = cfx_node_prev(n);
        if (cfx_node_op(n) == CFX_OP_PLACEHOLDER)
            continue;
        if (behind && cfx_node_map_get(wanted, n).kind != CFX_KIND_INVALID)
            behind = false;
        if (behind || is_assertion(n))
            CFX_TRY(cfx_graph_erase(g, n, err));
    }
    return CFX_OK;
}

/* The wanted nodes are what the copy returns. */
static cfx_status return_wanted(cfx_graph *g, const cfxi_guard_sizes *s, const cfx_node_map *map,
                                cfx_error *err)
{
    cfx_value *items = cfxi_base_alloc(s->allocator, s->num_entries * sizeof *items);
    if (!items)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < s->num_entries; i++)
        items[i] = cfx_node_map_get(map, s->entries[i].node);
    const cfx_value all = cfx_value_tuple(g, items, s->num_entries, err);
    cfxi_base_free(s->allocator, items, s->num_entries * sizeof *items);
    if (all.kind == CFX_KIND_INVALID)
        return err->status;
    return cfx_graph_output(g, all, err) ? CFX_OK : err->status;
}

static cfx_status mark_wanted(const cfxi_guard_sizes *s, const cfx_node_map *map,
                              cfx_node_map *wanted, cfx_error *err)
{
    for (size_t i = 0; i < s->num_entries; i++) {
        const cfx_value copy = cfx_node_map_get(map, s->entries[i].node);
        if (copy.kind == CFX_KIND_NODE)
            CFX_TRY(cfx_node_map_set(wanted, copy.as.node, cfx_value_bool(true), err));
    }
    return CFX_OK;
}

/* A copy of the graph that gives the wanted sizes; NULL with *err set. */
static cfx_graph *part_of(cfx_graph *g, const cfxi_guard_sizes *s, cfx_error *err)
{
    cfx_node_map *map = cfx_node_map_new(s->allocator, err);
    cfx_node_map *wanted = map ? cfx_node_map_new(s->allocator, err) : NULL;
    cfx_graph *part = wanted ? cfx_graph_clone(g, map, err) : NULL;
    cfx_status status = part ? mark_wanted(s, map, wanted, err) : err->status;
    if (status == CFX_OK)
        status = cut(part, wanted, err);
    if (status == CFX_OK)
        status = return_wanted(part, s, map, err);
    cfx_node_map_free(wanted);
    cfx_node_map_free(map);
    if (status == CFX_OK)
        return part;
    cfx_graph_release(part);
    return NULL;
}

/* Whether a call that is not known may give a tensor other sizes: resize_ and its like. */
static bool may_resize(const cfx_node *n)
{
    size_t size = 0;
    const char *target = cfx_node_op(n) == CFX_OP_CALL_FUNCTION ||
                                 cfx_node_op(n) == CFX_OP_CALL_METHOD
                             ? cfx_node_target(n, &size, NULL) : NULL;
    return target && size > 1 && target[size - 1] == '_' && target[size - 2] != '_' &&
           !cfx_node_operator(n);
}

static bool has_resizes(const cfx_graph *g)
{
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
        if (may_resize(n))
            return true;
    return false;
}

/* Adds the tensors that the graph and its regions read. */
static cfx_status add_state(cfx_graph *g, const cfx_settle_options *o, cfx_state *state,
                            cfx_error *err)
{
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        const char *path = cfx_node_op(n) == CFX_OP_GET_ATTR ? cfx_node_target(n, NULL, err) : NULL;
        if (path && o->tensor && !cfx_state_get(state, path)) {
            cfx_tensor *t = o->tensor(o->ctx, path, err);
            cfx_status status = t ? cfx_state_set(state, path, t, err) : err->status;
            cfx_tensor_release(t);
            CFX_TRY(status);
        }
        for (size_t i = 0; i < cfx_node_num_args(n); i++)
            if (cfx_node_arg(n, i).kind == CFX_KIND_GRAPH)
                CFX_TRY(add_state(cfx_value_graph(cfx_node_arg(n, i)), o, state, err));
    }
    return CFX_OK;
}

/* The program of the part; NULL if there is none to rely on, or with *err set. */
static cfx_program *program_of(cfx_graph *part, const cfxi_guard_sizes *s,
                               const cfx_settle_options *o, cfx_error *err)
{
    const cfx_lower_options options = {.partial = true};
    cfx_program *program = NULL;
    cfx_state *state = cfx_state_new(s->allocator, err);
    cfx_status status = state ? cfx_graph_lower(part, o->modules, &options, err) : CFX_E_NOMEM;
    if (status == CFX_OK)
        status = add_state(part, o, state, err);
    if (status == CFX_OK && !has_resizes(part))
        program = cfxi_rt_program_partial(part, state, s->allocator, err);
    cfx_state_free(state);
    return program;
}

/* ---- one run ------------------------------------------------------------------------------- */

static cfx_dims *new_dims(inference *f)
{
    cfx_dims *dims = cfx_dims_new(f->sizes->allocator, f->err);
    if (dims)
        dims->cautious = true;
    return dims;
}

static cfx_datum symbol_datum(int64_t d)
{
    cfx_datum datum = cfx_datum_int(d);
    datum.symbolic = cfx_dim_is_symbol(d);
    return datum;
}

/* Values of the variables: symbols, or numbers for those that are chosen. */
static cfx_status set_values(inference *f, cfx_dims *dims)
{
    char name[CFXI_NUMBER_SIZE + 1] = "v";
    for (size_t i = 0; i < f->sizes->num_variables; i++) {
        f->values[i] = cfx_datum_int(f->numbers[i]);
        if (f->chosen[i])
            continue;
        cfxi_base_format_int((int64_t)i, name + 1);
        const bool size = f->sizes->variables[i].dim != CFX_GUARD_NUMBER;
        const int64_t d = cfx_dims_symbol(dims, name, size ? 0 : INT64_MIN, f->err);
        if (d == CFX_DIM_UNKNOWN)
            return f->err->status;
        f->values[i] = symbol_datum(d);
    }
    return CFX_OK;
}

static cfx_status set_inputs(inference *f)
{
    size_t variable = 0;
    for (size_t i = 0; i < f->num_inputs; i++) {
        const cfx_guard_input *in = &f->options->inputs[i];
        int64_t sizes[CFX_MAX_DIMS];
        cfx_datum_release(f->inputs[i]);
        f->inputs[i] = cfx_datum_invalid();
        if (in->number.kind == CFX_DATUM_INT) {
            f->inputs[i] = f->values[variable++];
        } else if (in->number.kind != CFX_DATUM_INVALID) {
            f->inputs[i] = cfxi_rt_py_unknown(CFX_DATUM_FLOAT);
        } else {
            for (size_t d = 0; d < in->ndim; d++)
                sizes[d] = in->fixed && in->fixed[d] ? in->sizes[d] : f->values[variable++].as.i;
            f->inputs[i] = cfx_datum_tensor(cfx_tensor_new_abstract(
                in->dtype, sizes, in->ndim, f->sizes->allocator, f->err));
        }
        if (f->inputs[i].kind == CFX_DATUM_INVALID)
            return f->err->status;
    }
    return CFX_OK;
}

/* Runs the rules: a tuple of the wanted sizes, None where one is not known. INVALID with *err set.
 * */
static cfx_datum run_rules(inference *f, cfx_dims *dims, bool strict)
{
    if (set_values(f, dims) != CFX_OK || set_inputs(f) != CFX_OK)
        return cfx_datum_invalid();
    return cfxi_rt_program_sizes(f->program, f->options->rt, dims, f->inputs, f->num_inputs, strict,
                                 f->err);
}

/* ---- from sizes to expressions ------------------------------------------------------------- */

static bool emit(const inference *f, const cfx_dims *dims, int64_t d, cfxi_guard_code *code);

static bool emit_symbol(const inference *f, int64_t d, cfxi_guard_code *code)
{
    for (size_t i = 0; i < f->sizes->num_variables; i++)
        if (f->values[i].symbolic && f->values[i].as.i == d)
            return cfxi_guard_push_term(code, (uint32_t)i);
    return false;  /* of data */
}

/* Without its sign. */
static bool emit_product(const inference *f, const cfx_dims *dims, const cfxi_term *t,
                         cfxi_guard_code *code)
{
    bool any = false;
    if (t->factor == INT64_MIN)
        return false;
    const int64_t factor = t->factor < 0 ? -t->factor : t->factor;
    if (factor != 1 || t->m->degree == 0) {
        if (!cfxi_guard_push_number(code, cfx_datum_int(factor)))
            return false;
        any = true;
    }
    for (size_t i = 0; i < t->m->degree; i++) {
        if (!emit(f, dims, cfxi_dim_of(cfxi_dim_at(dims, t->m->atoms[i])), code) ||
            (any && !cfxi_guard_push_function(code, CFXI_GUARD_MUL)))
            return false;
        any = true;
    }
    return true;
}

/* A positive term comes first if there is one: 3 - N. */
static bool emit_sum(const inference *f, const cfx_dims *dims, const cfxi_dim_expr *e,
                     cfxi_guard_code *code)
{
    size_t first = 0;
    while (first + 1 < e->n && e->t[first].factor < 0)
        first++;
    first = e->t[first].factor < 0 ? 0 : first;
    if (!emit_product(f, dims, &e->t[first], code) ||
        (e->t[first].factor < 0 && !cfxi_guard_push_function(code, CFXI_GUARD_NEG)))
        return false;
    for (size_t i = 0; i < e->n; i++) {
        const cfxi_guard_op op = e->t[i].factor < 0 ? CFXI_GUARD_SUB : CFXI_GUARD_ADD;
        if (i != first && (!emit_product(f, dims, &e->t[i], code) ||
                           !cfxi_guard_push_function(code, op)))
            return false;
    }
    return true;
}

/* As deep as sizes nest: CFXI_DIM_DEPTH. */
static bool emit(const inference *f, const cfx_dims *dims, int64_t d, cfxi_guard_code *code)
{
    static const cfxi_guard_op ops[] = {
        [CFXI_DIM_DIV] = CFXI_GUARD_FLOOR_DIV, [CFXI_DIM_MOD] = CFXI_GUARD_MOD,
        [CFXI_DIM_MAX] = CFXI_GUARD_MAX, [CFXI_DIM_MIN] = CFXI_GUARD_MIN};
    const cfxi_dim_expr *e = cfx_dim_is_symbol(d) ? cfxi_dim_expr_of(dims, d) : NULL;
    if (!e)
        return d > CFX_DIM_UNKNOWN && cfxi_guard_push_number(code, cfx_datum_int(d));
    if (e->kind == CFXI_DIM_SYMBOL)
        return emit_symbol(f, d, code);
    if (e->kind == CFXI_DIM_SUM)
        return emit_sum(f, dims, e, code);
    return emit(f, dims, e->a, code) && emit(f, dims, e->b, code) &&
           cfxi_guard_push_function(code, ops[e->kind]);
}

static cfx_status take_sizes(inference *f, const cfx_dims *dims, cfx_datum found)
{
    cfxi_guard_code code;
    size_t n;
    const cfx_datum *items = cfx_datum_items(found, &n);
    for (size_t i = 0; i < n && i < f->sizes->num_entries; i++) {
        entry *e = &f->sizes->entries[i];
        code.n = code.depth = 0;
        if (items[i].kind != CFX_DATUM_INT || !emit(f, dims, items[i].as.i, &code))
            continue;
        const size_t bytes = code.n * sizeof *e->items;
        e->items = cfxi_base_arena_alloc(&f->sizes->arena, bytes);
        if (!e->items)
            return cfxi_base_nomem(f->err);
        memcpy(e->items, code.items, bytes);
        e->n = code.n;
    }
    return CFX_OK;
}

/* ---- trying numbers ------------------------------------------------------------------------ */

/* Keeps what the rules say in this run, too. */
static void compare(inference *f, cfx_dims *dims, cfx_datum found)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(found, &n);
    for (size_t i = 0; i < f->sizes->num_entries; i++) {
        const entry *e = &f->sizes->entries[i];
        cfx_error own = {0};
        if (!e->items)
            continue;
        const cfx_datum told = cfxi_guard_evaluate(e->items, e->n, f->values, dims, &own);
        if (i >= n || items[i].kind != CFX_DATUM_INT || told.kind != CFX_DATUM_INT ||
            cfx_dim_compare_eq(dims, told.as.i, items[i].as.i) != 1)
            f->sizes->entries[i].items = NULL;
    }
}

/* Runs the rules with numbers for the chosen variables. */
static cfx_status try_chosen(inference *f)
{
    cfx_dims *dims = new_dims(f);
    if (!dims)
        return CFX_E_NOMEM;
    const cfx_datum found = run_rules(f, dims, true);
    const cfx_status status = found.kind == CFX_DATUM_INVALID ? f->err->status : CFX_OK;
    if (status == CFX_OK)
        compare(f, dims, found);
    cfx_datum_release(found);
    cfx_dims_free(dims);
    if (status == CFX_E_NOMEM || status == CFX_E_HOST)
        return status;
    *f->err = (cfx_error){0};  /* an operator does not take these sizes */
    return CFX_OK;
}

/* All variables are 1, then each alone if there are few. */
static cfx_status try_ones(inference *f)
{
    enum { FEW = 8 };
    const size_t count = f->sizes->num_variables;
    for (size_t i = 0; i < count; i++) {
        f->chosen[i] = 1;
        f->numbers[i] = 1;
    }
    CFX_TRY(try_chosen(f));
    for (size_t i = 0; count > 1 && count <= FEW && i < count; i++) {
        memset(f->chosen, 0, count);
        f->chosen[i] = 1;
        CFX_TRY(try_chosen(f));
    }
    return CFX_OK;
}

/* Integers are also tried as 0 and -1: slices count those from the end. */
static cfx_status try_integers(inference *f, int64_t number)
{
    bool any = false;
    for (size_t i = 0; i < f->sizes->num_variables; i++) {
        f->chosen[i] = f->sizes->variables[i].dim == CFX_GUARD_NUMBER;
        f->numbers[i] = number;
        any = any || f->chosen[i];
    }
    return any ? try_chosen(f) : CFX_OK;
}

/* All variables are what they were in the run that was recorded, times a factor. */
static cfx_status try_examples(inference *f, int64_t factor)
{
    for (size_t i = 0; i < f->sizes->num_variables; i++) {
        const cfxi_guard_term *v = &f->sizes->variables[i];
        const cfx_guard_input *in = &f->options->inputs[v->input];
        const int64_t was = v->dim == CFX_GUARD_NUMBER ? in->number.as.i : in->sizes[v->dim];
        f->chosen[i] = 1;
        if (__builtin_mul_overflow(was, factor, &f->numbers[i]))
            return CFX_OK;
    }
    return try_chosen(f);
}

static bool any_left(const cfxi_guard_sizes *s)
{
    for (size_t i = 0; i < s->num_entries; i++)
        if (s->entries[i].items)
            return true;
    return false;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static cfx_status infer_all(inference *f)
{
    cfx_dims *dims = new_dims(f);
    if (!dims)
        return CFX_E_NOMEM;
    memset(f->chosen, 0, f->sizes->num_variables);
    const cfx_datum found = run_rules(f, dims, false);
    cfx_status status = found.kind == CFX_DATUM_INVALID ? f->err->status
                                                        : take_sizes(f, dims, found);
    cfx_datum_release(found);
    cfx_dims_free(dims);
    if (status != CFX_OK || !any_left(f->sizes))
        return status;
    CFX_TRY(try_ones(f));
    CFX_TRY(try_integers(f, 0));
    CFX_TRY(try_integers(f, -1));
    CFX_TRY(try_examples(f, 1));
    return try_examples(f, 2);
}

static cfx_status infer(cfxi_guard_sizes *s, cfx_program *program, size_t num_inputs,
                        const cfx_settle_options *options, cfx_error *err)
{
    const size_t n = s->num_variables;
    inference f = {.sizes = s, .options = options, .program = program, .num_inputs = num_inputs,
                   .err = err};
    f.inputs = cfxi_base_arena_zeros(&s->arena, num_inputs, sizeof *f.inputs);
    f.values = cfxi_base_arena_zeros(&s->arena, n, sizeof *f.values);
    f.chosen = cfxi_base_arena_zeros(&s->arena, n, 1);
    f.numbers = cfxi_base_arena_zeros(&s->arena, n, sizeof *f.numbers);
    if (!f.inputs || !f.values || !f.chosen || !f.numbers)
        return cfxi_base_nomem(err);
    cfx_status status = infer_all(&f);
    for (size_t i = 0; i < num_inputs; i++)
        cfx_datum_release(f.inputs[i]);
    if (status == CFX_OK || status == CFX_E_NOMEM || status == CFX_E_HOST)
        return status;
    *err = (cfx_error){0};  /* the rules do not take these inputs: nothing is known */
    for (size_t i = 0; i < s->num_entries; i++)
        s->entries[i].items = NULL;
    return CFX_OK;
}

/* Whether rules can be asked about such inputs. */
static bool can_ask(const cfx_settle_options *o, size_t num_inputs)
{
    for (size_t i = 0; i < num_inputs; i++)
        if (o->inputs[i].number.kind == CFX_DATUM_INVALID &&
            (o->inputs[i].ndim > CFX_MAX_DIMS || o->inputs[i].dtype >= CFX_DTYPE_COUNT))
            return false;
    return o->rt != NULL;
}

static cfx_status add_variables(cfxi_guard_sizes *s, const cfx_settle_options *o, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += o->inputs[i].ndim + 1;
    s->variables = cfxi_base_arena_zeros(&s->arena, count, sizeof *s->variables);
    for (size_t i = 0; s->variables && i < n; i++) {
        const cfx_guard_input *in = &o->inputs[i];
        if (in->number.kind == CFX_DATUM_INT)
            s->variables[s->num_variables++] = (cfxi_guard_term){i, CFX_GUARD_NUMBER};
        for (size_t d = 0; in->number.kind == CFX_DATUM_INVALID && d < in->ndim; d++)
            if (!in->fixed || !in->fixed[d])
                s->variables[s->num_variables++] = (cfxi_guard_term){i, d};
    }
    return s->variables ? CFX_OK : CFX_E_NOMEM;
}

/* Those of the graph itself, not of its regions, each once. */
static cfx_status add_entries(cfxi_guard_sizes *s, const cfx_graph *g, const cfxi_vec *wanted,
                              cfx_error *err)
{
    s->entries = cfxi_base_arena_zeros(&s->arena, wanted->size, sizeof *s->entries);
    if (!s->entries)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < wanted->size; i++) {
        const cfx_node *n = ((const cfx_node *const *)wanted->data)[i];
        if (cfx_node_graph(n) != g || cfx_node_map_get(s->places, n).kind != CFX_KIND_INVALID)
            continue;
        CFX_TRY(cfx_node_map_set(s->places, n, cfx_value_int((int64_t)s->num_entries), err));
        s->entries[s->num_entries++].node = n;
    }
    return CFX_OK;
}

cfxi_guard_sizes *cfxi_guard_sizes_new(cfx_guards *guards, cfx_graph *g, const cfxi_vec *wanted,
                                       const cfx_settle_options *options, cfx_error *err)
{
    const cfx_allocator *allocator = guards->allocator;
    cfxi_guard_sizes *s = cfxi_base_alloc(allocator, sizeof *s);
    if (!s) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *s = (cfxi_guard_sizes){.allocator = allocator};
    cfxi_base_arena_init(&s->arena, allocator);
    s->places = cfx_node_map_new(allocator, err);
    cfx_status status = s->places ? add_entries(s, g, wanted, err) : CFX_E_NOMEM;
    if (status == CFX_OK && add_variables(s, options, guards->num_inputs) != CFX_OK)
        status = cfxi_base_nomem(err);
    if (status == CFX_OK && s->num_entries > 0 && can_ask(options, guards->num_inputs)) {
        cfx_graph *part = part_of(g, s, err);
        cfx_program *program = part ? program_of(part, s, options, err) : NULL;
        status = err->status;
        if (program && status == CFX_OK)
            status = infer(s, program, guards->num_inputs, options, err);
        cfx_program_free(program);
        cfx_graph_release(part);
    }
    if (status == CFX_OK)
        return s;
    cfxi_guard_sizes_free(s);
    return NULL;
}

void cfxi_guard_sizes_free(cfxi_guard_sizes *s)
{
    if (!s)
        return;
    cfx_node_map_free(s->places);
    cfxi_base_arena_release(&s->arena);
    cfxi_base_free(s->allocator, s, sizeof *s);
}

const cfxi_guard_item *cfxi_guard_sizes_get(const cfxi_guard_sizes *s, const cfx_node *n,
                                            size_t *count)
{
    const cfx_value place = cfx_node_map_get(s->places, n);
    if (place.kind != CFX_KIND_INT)
        return NULL;
    *count = s->entries[place.as.i].n;
    return s->entries[place.as.i].items;
}

cfxi_guard_term cfxi_guard_sizes_variable(const cfxi_guard_sizes *s, uint32_t i)
{
    return s->variables[i];
}
