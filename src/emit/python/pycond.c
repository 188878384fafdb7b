/* pycond.c - cond as if, elif and else; or as branches that return.
 *
 * A result is computed in a variable of its own, or in that of the operand which one branch gives
 * as it is: `if p:` `x = torch.relu(x)`. A branch that has nothing to do then is left out. Where
 * the function ends with a cond, its branches may return instead, so that they need not nest.
 */
#include "pyregion_impl.h"

/* A variable for something that a region gives. */
typedef struct result_var {
    cfx_node *node;         /* that reads it, or NULL */
    const cfxi_name *name;
    const cfx_node *taken;  /* the operand whose variable it is, or NULL */
    const cfx_node *before; /* who holds the variable while the branches run, or NULL */
    bool shared;            /* it was there before */
} result_var;

/* What a cond gives: in one value, or item by item if nobody needs the tuple. */
typedef struct results {
    result_var *vars;
    size_t size;
    cfx_value given[2];  /* what the branches give */
    bool whole;
    bool returns;        /* the branches end the function */
    const cfxi_py_way_out *out;  /* a branch leaves the loop; or NULL */
} results;

/* ---- results ------------------------------------------------------------------------------- */

/* How many items both regions of a cond give, each written down; SIZE_MAX if that is not known. */
static size_t known_items(cfx_value a, cfx_value b)
{
    size_t n_a, n_b;
    cfx_value_items(a, &n_a);
    cfx_value_items(b, &n_b);
    return cfxi_emit_py_is_sequence(a) && cfxi_emit_py_is_sequence(b) && n_a == n_b ? n_a
                                                                                    : SIZE_MAX;
}

/* The nodes that read each item; they have no statements. */
static cfx_status find_readers(cfx_pycode *gen, const cfx_node *n, results *r, cfx_error *err)
{
    bool takes;
    size_t i;
    for (const cfx_use *use = n->users; use; use = cfx_use_next(use)) {
        CFX_TRY(cfxi_emit_py_takes_item(gen, use, r->size, &i, &takes, err));
        CFX_TRY(cfxi_emit_py_place_node(gen, use->user, CFXI_PY_SHARED, err));
        if (r->out && i == r->out->item)
            continue;  /* `break` says it */
        cfx_node *known = r->vars[i].node;
        if (use->user->n_users > 0 && (!known || use->user->order < known->order))
            r->vars[i].node = use->user;
    }
    return CFX_OK;
}

static bool is_auto_name(const cfx_node *n)
{
    return cfxi_emit_py_same_base(n->name, "cond", 4) ||
           cfxi_emit_py_same_base(n->name, "getitem", 7);
}

/* The operand that item `i` of a branch is, if the result can have its variable. */
static const cfx_node *passed_on(cfx_pycode *gen, cfxi_py_frame *frame, const results *r,
                                 size_t which, size_t i)
{
    size_t n;
    cfx_value v = r->given[which];
    const cfx_value *items = cfx_value_items(v, &n);
    v = r->whole ? v : i < n ? items[i] : cfx_value_invalid();
    if (v.kind != CFX_KIND_NODE || v.as.node->op != CFX_OP_PLACEHOLDER)
        return NULL;
    const cfx_node *d = cfxi_base_pointers_get(&gen->operands, v.as.node);
    const cfx_node *node = r->vars[i].node;
    if (!d || !cfxi_emit_py_may_take(gen, frame, d))
        return NULL;
    const cfxi_name *name = cfxi_emit_py_name(gen, d);
    return is_auto_name(node) || cfxi_emit_py_same_base(name, node->name->data, node->name->size)
               ? d
               : NULL;
}

/* The variable of a result: the one that it is wanted in, that of an operand which a branch gives
 * as it is, or a new one. */
static cfx_status name_result(cfx_pycode *gen, cfxi_py_frame *frame, results *r, size_t i,
                              cfx_error *err)
{
    result_var *var = &r->vars[i];
    var->name = cfxi_emit_py_wanted(gen, frame, var->node);
    for (size_t k = 2; !var->name && !var->taken && k-- > 0;) /* an `else` is what may be missing */
        var->taken = passed_on(gen, frame, r, k, i);
    if (var->taken)
        var->name = cfxi_emit_py_name(gen, var->taken);
    if (var->name) {
        var->shared = true;
        var->before = var->taken ? var->taken : cfxi_emit_py_holder(gen, var->name);
        CFX_TRY(
            cfxi_emit_py_hold(gen, var->name, var->node, err)); /* no other result may have it */
        return cfxi_emit_py_alias(gen, var->node, var->name, err);
    }
    CFX_TRY(cfxi_emit_py_name_own(gen, frame, var->node, err));
    var->name = cfxi_emit_py_name(gen, var->node);
    return CFX_OK;
}

/* What a cond gives, and where. */
static cfx_status find_results(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, results *r,
                               cfx_error *err)
{
    cfx_value then = cfxi_emit_py_output_value(cfxi_emit_py_region(n, 1));
    cfx_value otherwise = cfxi_emit_py_output_value(cfxi_emit_py_region(n, 2));
    size_t size = known_items(then, otherwise);
    bool only = size != SIZE_MAX && !cfxi_emit_py_has_type(n);
    if (only)
        CFX_TRY(cfxi_emit_py_only_items(gen, n, size, &only, err));
    *r = (results){.size = n->n_users == 0 ? 0 : only ? size : 1,
                   .given = {then, otherwise},
                   .whole = !only && n->n_users > 0,
                   .out = gen->way_out && gen->way_out->cond == n ? gen->way_out : NULL};
    if (r->out && r->out->item == SIZE_MAX) {
        r->size = 0;
        r->whole = false;
    }
    r->vars = cfxi_base_arena_alloc(&gen->memory->arena, (r->size + 1) * sizeof *r->vars);
    if (!r->vars)
        return cfxi_base_nomem(err);
    memset(r->vars, 0, (r->size + 1) * sizeof *r->vars);
    if (r->whole)
        r->vars[0].node = n;
    else if (r->size > 0)
        CFX_TRY(find_readers(gen, n, r, err));
    for (size_t i = 0; i < r->size; i++)
        if (r->vars[i].node)
            CFX_TRY(name_result(gen, frame, r, i, err));
    for (size_t i = 0; i < r->size; i++)
        if (r->vars[i].shared)
            CFX_TRY(cfxi_emit_py_hold(gen, r->vars[i].name, r->vars[i].before, err));
    return CFX_OK;
}

/* After the branches the variables are the results'. */
static cfx_status settle(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *n,
                         const results *r, cfx_error *err)
{
    bool takes;
    size_t i;
    cfxi_emit_py_refresh(frame);
    if (r->whole)
        return cfxi_emit_py_hold(gen, r->vars[0].name, n, err);
    for (i = 0; i < r->size; i++)
        if (r->vars[i].node)
            CFX_TRY(cfxi_emit_py_hold(gen, r->vars[i].name, NULL, err));
    for (const cfx_use *use = n->users; r->size && use; use = cfx_use_next(use)) {
        CFX_TRY(cfxi_emit_py_takes_item(gen, use, r->size, &i, &takes, err));
        if (use->user->n_users == 0 || (r->out && i == r->out->item))
            continue;
        CFX_TRY(cfxi_emit_py_alias(gen, use->user, r->vars[i].name, err));
        CFX_TRY(cfxi_emit_py_hold_longest(gen, r->vars[i].name, use->user, err));
    }
    return CFX_OK;
}

/* ---- cond ---------------------------------------------------------------------------------- */

static cfx_status bind_inputs(cfx_pycode *gen, cfx_graph *region, cfx_value operands,
                              const cfx_node *n, cfx_error *err)
{
    size_t count;
    const cfx_value *items = cfx_value_items(operands, &count);
    cfx_node *first = cfxi_ir_next_input(region, NULL);
    const size_t wanted = cfxi_emit_py_count_inputs(region);
    CFX_TRY(cfxi_emit_py_check_count(n, operands, wanted, "inputs of a branch", err));
    if (!cfxi_emit_py_is_sequence(operands)) {
        static const cfx_value unknown;
        for (cfx_node *input = first; input; input = cfxi_ir_next_input(region, input))
            CFX_TRY(cfxi_emit_py_bind_input(gen, input, &unknown, err));
        return CFX_OK;
    }
    for (cfx_node *input = first; input; input = cfxi_ir_next_input(region, input))
        CFX_TRY(cfxi_emit_py_bind_input(gen, input, items++, err));
    return CFX_OK;
}

/* Whether the inputs of a branch are there without a statement. */
static bool binds_silently(const cfx_pycode *gen, const cfx_graph *region)
{
    const cfx_node *in = cfxi_ir_next_input(region, NULL);
    while (in && !cfxi_emit_py_has_variable(gen, in))
        in = cfxi_ir_next_input(region, in);
    return in == NULL;
}

/* Statements for the inputs that have variables, and the loan of the others' variables. */
static cfx_status take_inputs(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *n,
                              cfxi_py_run *run, cfx_error *err)
{
    cfx_value operands = cfxi_emit_py_operands(n);
    size_t count;
    const cfx_value *items = cfx_value_items(operands, &count);
    cfx_node *first = cfxi_ir_next_input(run->region, NULL);
    if (!cfxi_emit_py_is_sequence(operands))
        return first ? cfxi_emit_py_unpack_inputs(gen, first, operands, n, err) : CFX_OK;
    for (cfx_node *in = first; in; in = cfxi_ir_next_input(run->region, in), items++) {
        const cfx_node *d = cfxi_base_pointers_get(&gen->operands, in);
        const cfxi_name *name = cfxi_emit_py_name(gen, in);
        cfx_node *holder = cfxi_emit_py_holder(gen, name);
        if (d && (cfxi_emit_py_may_take(gen, frame, d) || (holder && holder->graph == run->region)))
            CFX_TRY(cfxi_emit_py_lend(gen, run, name, in, err));
        else if (d && !holder)
            CFX_TRY(cfxi_emit_py_hold(gen, name, d, err));
        if (!cfxi_emit_py_has_variable(gen, in))
            continue;
        cfxi_emit_py_begin_line(gen);
        cfxi_emit_py_put_name(gen, in);
        CFXI_PY_LIT(gen, " = ");
        CFX_TRY(cfxi_emit_py_value(gen, *items, n, err));
        cfxi_emit_py_end_line(gen);
    }
    return CFX_OK;
}

/* What the branch is to put into the variables of the results. */
static cfx_status branch_items(cfx_pycode *gen, cfx_node *n, const cfxi_py_run *run,
                               const results *r, cfxi_py_assignment **items, cfx_error *err)
{
    size_t size;
    const cfx_value *value = &run->output->args->items[0];
    const cfx_value *values = cfx_value_items(*value, &size);
    *items = cfxi_emit_py_new_assignments(gen, r->size);
    if (!*items)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < r->size; i++) {
        const cfx_value *v = r->whole ? value : &values[i];
        const cfx_node *node = r->vars[i].node;
        cfx_node *typed = r->whole && cfxi_emit_py_has_type(n) ? n : NULL;
        (*items)[i] = (cfxi_py_assignment){r->vars[i].name, *v, typed};
        if (r->returns && node &&
            !cfxi_base_pointers_set(&gen->instead, node, (void *)(uintptr_t)v, gen->allocator))
            return cfxi_base_nomem(err);
        if (r->returns)
            (*items)[i].name = NULL;
    }
    return CFX_OK;
}

static cfx_status return_line(cfx_pycode *gen, cfx_error *err)
{
    const cfx_node *output = cfxi_emit_py_output_of(gen->graph);
    cfxi_emit_py_begin_line(gen);
    CFXI_PY_LIT(gen, "return ");
    CFX_TRY(cfxi_emit_py_value(gen, output->args->items[0], output, err));
    cfxi_emit_py_end_line(gen);
    gen->returned = true;
    return CFX_OK;
}

static cfx_status end_branch(cfx_pycode *gen, cfx_node *n, cfxi_py_run *run, const results *r,
                             const cfxi_py_assignment *items, cfx_error *err)
{
    if (r->returns) {
        if (!gen->returned)
            CFX_TRY(return_line(gen, err));
    } else {
        if (r->whole && cfxi_emit_py_has_type(n))
            CFX_TRY(cfxi_emit_py_type_text(gen, n, err));
        CFX_TRY(cfxi_emit_py_assign_results(gen, run, items, r->size, err));
    }
    return cfxi_emit_py_leave(gen, run, err);
}

/* What is behind the branch, as far as it is not there yet, and `break` or `continue`. */
static cfx_status leave_turn(cfx_pycode *gen, const cfxi_py_way_out *out, const char *word,
                             cfx_error *err)
{
    bool any;
    for (; out; out = out->outer) {
        CFX_TRY(cfxi_emit_py_put_assignment(gen, out->items, out->n, out->where, &any, err));
        if (any)
            cfxi_emit_py_end_line(gen);
    }
    cfxi_emit_py_put_line(gen, word);
    return CFX_OK;
}

static cfx_status branch(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, size_t which,
                         const results *r, cfx_error *err)
{
    cfxi_py_run run;
    cfxi_py_assignment *items;
    gen->returned = false;
    CFX_TRY(cfxi_emit_py_enter(gen, cfxi_emit_py_region(n, which), n, &run, err));
    run.frame.returns = r->returns;
    CFX_TRY(take_inputs(gen, frame, n, &run, err));
    CFX_TRY(branch_items(gen, n, &run, r, &items, err));
    CFX_TRY(cfxi_emit_py_want_all(gen, &run, items, r->size, err));
    cfxi_py_way_out inner = {.outer = gen->way_out, .items = items, .n = r->size,
                             .where = run.output};
    if (r->out)
        inner.cond = cfxi_emit_py_next_leaving(run.region, r->out->item, &inner.item);
    gen->way_out = inner.cond ? &inner : gen->way_out;
    const cfx_status status = cfxi_emit_py_region_body(gen, &run, err);
    gen->way_out = inner.outer;
    CFX_TRY(status);
    return end_branch(gen, n, &run, r, items, err);
}

/* `if pred:`, `elif not pred:` */
static cfx_status if_line(cfx_pycode *gen, cfx_node *n, const char *word, bool negated,
                          cfx_error *err)
{
    cfx_value pred = cfxi_emit_py_parameter(n, 0);
    bool parentheses = negated && cfxi_emit_py_is_compound(gen, pred);
    cfxi_emit_py_begin_line(gen);
    cfxi_emit_py_put(gen, word, strlen(word));
    if (negated)
        CFXI_PY_LIT(gen, "not ");
    if (parentheses)
        cfxi_emit_py_char(gen, '(');
    CFX_TRY(cfxi_emit_py_value(gen, pred, n, err));
    if (parentheses)
        cfxi_emit_py_char(gen, ')');
    cfxi_emit_py_char(gen, ':');
    cfxi_emit_py_end_line(gen);
    return CFX_OK;
}

static cfx_status if_chain(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, const char *word,
                           const results *r, cfx_error *err);

/* Whether `at` is a call of two arguments, the first being `n`. */
static bool is_item_of(const cfx_node *at, const cfx_node *n)
{
    return at->op == CFX_OP_CALL_FUNCTION && at->args && at->args->size == 2 &&
           at->args->items[0].kind == CFX_KIND_NODE && at->args->items[0].as.node == n;
}

/* The one cond of a region that has only its condition and items besides; *index is its place. */
static cfx_node *only_cond(const cfx_pycode *gen, const cfxi_py_run *run, uint32_t *index)
{
    uint32_t i = 0;
    for (cfx_node *n = run->region->root.next; n != run->output; n = n->next, i++) {
        if (n->op == CFX_OP_PLACEHOLDER || cfxi_emit_py_placed(gen, n) == CFXI_PY_INLINE)
            continue;
        *index = i;
        if (n->op != CFX_OP_CALL_FUNCTION || cfx_node_operator(n) != CFX_OPID_cond ||
            !cfxi_emit_py_has_regions(n))
            return NULL;
        for (const cfx_node *at = n->next; at != run->output; at = at->next)
            if (!is_item_of(at, n))
                return NULL;
        return n;
    }
    return NULL;
}

/* Whether the items between a cond and the output of its region have no statements. */
static bool is_last(const cfx_pycode *gen, const cfx_node *n)
{
    const cfx_node *next = n->next;
    while (cfxi_emit_py_placed(gen, next) == CFXI_PY_SHARED)
        next = next->next;
    return next->op == CFX_OP_OUTPUT;
}

static cfx_status bind_branches(cfx_pycode *gen, const cfx_node *n, cfx_error *err)
{
    cfx_value operands = cfxi_emit_py_operands(n);
    for (size_t i = 1; i <= 2; i++)
        CFX_TRY(bind_inputs(gen, cfxi_emit_py_region(n, i), operands, n, err));
    return CFX_OK;
}

/* `elif` for a branch that is nothing but another cond whose results are these. */
static cfx_status try_elif(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, const results *r,
                           bool *done, cfx_error *err)
{
    cfxi_py_run run;
    results inner;
    cfxi_py_assignment *items;
    cfx_graph *region = cfxi_emit_py_region(n, 2);
    *done = false;
    if (r->out || region == cfxi_emit_py_region(n, 1) || !binds_silently(gen, region) ||
        !cfxi_emit_py_is_sequence(cfxi_emit_py_operands(n)))
        return CFX_OK;
    CFX_TRY(cfxi_emit_py_enter(gen, region, n, &run, err));
    cfx_node *c = only_cond(gen, &run, &run.frame.index);
    if (!c || cfxi_emit_py_has_type(n))
        return CFX_OK;
    CFX_TRY(take_inputs(gen, frame, n, &run, err));
    CFX_TRY(branch_items(gen, n, &run, r, &items, err));
    CFX_TRY(cfxi_emit_py_want_all(gen, &run, items, r->size, err));
    CFX_TRY(bind_branches(gen, c, err));
    CFX_TRY(find_results(gen, &run.frame, c, &inner, err));
    bool fits = is_last(gen, c);
    for (size_t i = 0; i < r->size; i++)
        fits = fits && cfxi_emit_py_is_there(gen, &items[i]);
    if (fits) {
        *done = true;
        CFX_TRY(if_chain(gen, &run.frame, c, "elif ", &inner, err));
        CFX_TRY(settle(gen, &run.frame, c, &inner, err));
    }
    return cfxi_emit_py_leave(gen, &run, err);
}

static cfx_status else_part(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, const results *r,
                            cfx_error *err)
{
    bool done;
    CFX_TRY(try_elif(gen, frame, n, r, &done, err));
    if (done)
        return CFX_OK;
    cfxi_py_text_mark start = cfxi_emit_py_mark_text(gen);
    cfxi_emit_py_put_line(gen, "else:");
    size_t inside = gen->body.size;
    gen->indent += 4;
    CFX_TRY(branch(gen, frame, n, 2, r, err));
    gen->indent -= 4;
    if (gen->body.size == inside)
        cfxi_emit_py_go_back(gen, start);
    return CFX_OK;
}

/* `if pred:` with a branch that ends the turn; what the other one does follows it. */
static cfx_status if_leave(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, size_t which,
                           const results *r, cfx_error *err)
{
    const cfx_graph *region = cfxi_emit_py_region(n, which);
    const bool leaves = cfxi_emit_py_leaves(region, r->out->item) == CFXI_PY_LEAVES;
    CFX_TRY(if_line(gen, n, "if ", which == 2, err));
    gen->indent += 4;
    CFX_TRY(branch(gen, frame, n, which, r, err));
    CFX_TRY(leave_turn(gen, r->out, leaves ? "break" : "continue", err));
    gen->indent -= 4;
    return branch(gen, frame, n, 3 - which, r, err);
}

/* Which branch ends the turn where it ends: one that leaves the loop, else one that goes on with
 * the next turn while the other may leave; 0: neither, or this is about no loop. */
static size_t leaving_branch(const cfx_node *n, const results *r)
{
    static const cfxi_py_leaving kinds[] = {CFXI_PY_LEAVES, CFXI_PY_STAYS};
    for (size_t k = 0; r->out && k < 2; k++)
        for (size_t i = 1; i <= 2; i++)
            if (cfxi_emit_py_leaves(cfxi_emit_py_region(n, i), r->out->item) == kinds[k])
                return i;
    return 0;
}

static cfx_status if_chain(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, const char *word,
                           const results *r, cfx_error *err)
{
    const size_t leaving = leaving_branch(n, r);
    if (leaving)
        return if_leave(gen, frame, n, leaving, r, err);
    cfxi_py_text_mark start = cfxi_emit_py_mark_text(gen);
    CFX_TRY(if_line(gen, n, word, false, err));
    size_t inside = gen->body.size;
    gen->indent += 4;
    CFX_TRY(branch(gen, frame, n, 1, r, err));
    gen->indent -= 4;
    if (r->returns)
        return branch(gen, frame, n, 2, r, err);
    if (gen->body.size > inside)
        return else_part(gen, frame, n, r, err);
    cfxi_emit_py_go_back(gen, start);
    CFX_TRY(if_line(gen, n, word, true, err));
    inside = gen->body.size;
    gen->indent += 4;
    CFX_TRY(branch(gen, frame, n, 2, r, err));
    if (gen->body.size == inside)
        cfxi_emit_py_put_line(gen, "pass");
    gen->indent -= 4;
    return CFX_OK;
}

/* ---- early returns ------------------------------------------------------------------------- */

/* How many statements a region has, and whether it ends with a cond that is no `elif`. */
static size_t count_statements(const cfx_graph *region, bool *nested)
{
    size_t count = 0;
    const cfx_node *last = NULL;
    for (const cfx_node *n = region->root.next; n != &region->root; n = n->next) {
        if (n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_OUTPUT)
            continue;
        count++;
        if (!last || cfx_node_operator(n) != CFX_OPID_getitem)
            last = n;
    }
    *nested = last && cfx_node_operator(last) == CFX_OPID_cond && count > 2;
    return count;
}

/* Whether the branches of a cond are better off returning what the function returns: the function
 * ends with it and gives what it gives, and one branch is next to nothing, or they would nest ever
 * deeper. */
static bool should_return(const cfx_pycode *gen, const cfxi_py_frame *frame, const cfx_node *n)
{
    const cfx_pycode_options *options = gen->options;
    bool a_nested, b_nested;
    if (options->output || options->record_func || cfxi_emit_py_has_type(n) || n->n_users == 0 ||
        !is_last(gen, n) || !cfxi_emit_py_output_of(n->graph))
        return false;
    if (frame->region)
        return frame->returns;
    size_t a = count_statements(cfxi_emit_py_region(n, 1), &a_nested);
    size_t b = count_statements(cfxi_emit_py_region(n, 2), &b_nested);
    return a_nested || b_nested || (a < 2 && b > 3) || (b < 2 && a > 3);
}

cfx_status cfxi_emit_py_cond(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, cfx_error *err)
{
    results r;
    CFX_TRY(bind_branches(gen, n, err));
    CFX_TRY(find_results(gen, frame, n, &r, err));
    r.returns = should_return(gen, frame, n);
    CFX_TRY(if_chain(gen, frame, n, "if ", &r, err));
    if (r.returns)
        return CFX_OK;
    CFX_TRY(settle(gen, frame, n, &r, err));
    cfxi_emit_py_clear_line(gen, frame, n, NULL, 0);
    return r.out && r.out->item == SIZE_MAX
               ? cfxi_emit_py_place_node(gen, n, CFXI_PY_INLINE, err) : CFX_OK;
}
