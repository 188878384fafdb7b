/* pyregion.c - control flow: cond, while_loop and for_loop as if, while and for.
 *
 * The nodes of a region become statements of the function. An input of a branch goes by the name of
 * the value outside; a loop's state has variables. What a region gives is computed in the variable
 * that it is wanted in, where nobody else needs that one (pyvar.c); what is not is assigned at the
 * end of the branch or turn, all at once. Results that are only unpacked need no tuple.
 *
 *     %cond = cfx.cond(%pred, then, else, (%x,))       if pred:
 *                                                          x = torch.relu(x)
 */
#include "pyregion_impl.h"

cfx_value cfxi_emit_py_parameter(const cfx_node *n, size_t i)
{
    return cfxi_ir_region_arg(cfxi_ir_node_form(n), n, i);
}

cfx_graph *cfxi_emit_py_region(const cfx_node *n, size_t i)
{
    return cfx_value_graph(cfxi_emit_py_parameter(n, i));
}

cfx_value cfxi_emit_py_operands(const cfx_node *n)
{
    const cfx_value v = cfxi_emit_py_parameter(n, cfxi_ir_node_form(n)->operands);
    return v.kind != CFX_KIND_INVALID ? v : cfxi_ir_seq_value(CFX_KIND_TUPLE, NULL, 0);
}

bool cfxi_emit_py_has_regions(const cfx_node *n)
{
    const cfxi_region_form *form = cfxi_ir_node_form(n);
    if (!form)
        return false;
    for (size_t i = 0; i < form->regions; i++)
        if (!cfxi_emit_py_region(n, form->first + i))
            return false;
    return true;
}

/* ---- inputs -------------------------------------------------------------------------------- */

size_t cfxi_emit_py_count_inputs(const cfx_graph *region)
{
    size_t count = 0;
    for (const cfx_node *n = cfxi_ir_next_input(region, NULL); n; n = cfxi_ir_next_input(region, n))
        count++;
    return count;
}

cfx_status cfxi_emit_py_check_count(const cfx_node *n, cfx_value values, size_t wanted,
                                    const char *what, cfx_error *err)
{
    size_t given;
    cfx_value_items(values, &given);
    if (!cfxi_emit_py_is_sequence(values) || given == wanted)
        return CFX_OK;
    return cfxi_emit_py_fail(n, CFX_E_GRAPH, err, "%s: the region has %zu, but %zu are given", what,
                             wanted, given);
}

void cfxi_emit_py_put_line(cfx_pycode *gen, const char *text)
{
    cfxi_emit_py_begin_line(gen);
    cfxi_emit_py_put(gen, text, strlen(text));
    cfxi_emit_py_end_line(gen);
}

cfxi_py_text_mark cfxi_emit_py_mark_text(const cfx_pycode *gen)
{
    return (cfxi_py_text_mark){gen->body.size, gen->memory->lines.size, gen->pieces.size};
}

void cfxi_emit_py_go_back(cfx_pycode *gen, cfxi_py_text_mark mark)
{
    if (gen->nomem)
        return;
    gen->body.size = mark.body;
    gen->memory->lines.size = mark.lines;
    gen->pieces.size = mark.pieces;
}

const cfx_node *cfxi_emit_py_output_of(const cfx_graph *region)
{
    const cfx_node *n = region->root.next;
    while (n != &region->root && n->op != CFX_OP_OUTPUT)
        n = n->next;
    return n == &region->root || !n->args || n->args->size == 0 ? NULL : n;
}

cfx_value cfxi_emit_py_output_value(const cfx_graph *region)
{
    const cfx_node *output = cfxi_emit_py_output_of(region);
    return output ? output->args->items[0] : cfx_value_invalid();
}

/* ---- entering and leaving a region --------------------------------------------------------- */

cfx_status cfxi_emit_py_enter(cfx_pycode *gen, cfx_graph *region, const cfx_node *n,
                              cfxi_py_run *run, cfx_error *err)
{
    size_t inputs = cfxi_emit_py_count_inputs(region);
    *run = (cfxi_py_run){.region = region, .output = cfxi_emit_py_output_of(region)};
    for (const cfx_node *at = region->root.next; !run->output && at != &region->root; at = at->next)
        if (at->op == CFX_OP_OUTPUT)
            return cfxi_emit_py_fail(at, CFX_E_INDEX, err, "the output has no value");
    if (!run->output)
        return cfxi_emit_py_fail(n, CFX_E_GRAPH, err, "a region has no output");
    run->names = cfxi_base_arena_alloc(&gen->memory->arena, (inputs + 1) * sizeof *run->names);
    run->holders = cfxi_base_arena_alloc(&gen->memory->arena, (inputs + 1) * sizeof *run->holders);
    if (!run->names || !run->holders)
        return cfxi_base_nomem(err);
    run->frame = cfxi_emit_py_frame_of(region, true);
    CFX_TRY(
        cfxi_emit_py_give_back(gen, region, err)); /* elsewhere it may have been an expression */
    return cfxi_emit_py_plan(gen, &run->frame, err);
}

cfx_status cfxi_emit_py_lend(cfx_pycode *gen, cfxi_py_run *run, const cfxi_name *name,
                       const cfx_node *input, cfx_error *err)
{
    const cfx_node *holder = cfxi_emit_py_holder(gen, name);
    run->names[run->n_names] = name;
    run->holders[run->n_names++] = (cfx_node *)(uintptr_t)holder;
    if (holder && holder->graph == run->region)
        return cfxi_emit_py_hold_longest(gen, name, input, err);
    return cfxi_emit_py_hold(gen, name, input, err);
}

cfx_status cfxi_emit_py_leave(cfx_pycode *gen, cfxi_py_run *run, cfx_error *err)
{
    while (run->n_names > 0) {
        run->n_names--;
        CFX_TRY(cfxi_emit_py_hold(gen, run->names[run->n_names], run->holders[run->n_names], err));
    }
    return CFX_OK;
}

cfx_status cfxi_emit_py_region_body(cfx_pycode *gen, cfxi_py_run *run, cfx_error *err)
{
    size_t comments = 0;
    const size_t start = gen->body.size;
    for (cfx_node *at = run->region->root.next; at != run->output;
         at = at->next, run->frame.index++) {
        const size_t before = gen->body.size;
        if (at->op != CFX_OP_PLACEHOLDER)
            CFX_TRY(cfxi_emit_py_comment(gen, at, err));
        comments += gen->body.size - before;
        if (at->op != CFX_OP_PLACEHOLDER)
            CFX_TRY(cfxi_emit_py_statement(gen, &run->frame, at, err));
        if (gen->nomem)
            return cfxi_base_nomem(err);
    }
    if (comments > 0 && gen->body.size == start + comments)  /* comments alone are not a block */
        cfxi_emit_py_put_line(gen, "pass");
    return CFX_OK;
}

/* ---- assignments --------------------------------------------------------------------------- */

bool cfxi_emit_py_is_there(cfx_pycode *gen, const cfxi_py_assignment *a)
{
    if (!a->name)
        return true;
    return a->value.kind == CFX_KIND_NODE &&
           !cfxi_base_pointers_get(&gen->instead, a->value.as.node) &&
           cfxi_emit_py_placed(gen, a->value.as.node) != CFXI_PY_INLINE &&
           cfxi_emit_py_name(gen, a->value.as.node) == a->name;
}

cfx_status cfxi_emit_py_put_assignment(cfx_pycode *gen, const cfxi_py_assignment *items, size_t n,
                                 const cfx_node *where, bool *any, cfx_error *err)
{
    size_t done = 0;
    *any = false;
    for (size_t i = 0; i < n; i++) {
        if (cfxi_emit_py_is_there(gen, &items[i]))
            continue;
        if (done++)
            CFXI_PY_LIT(gen, ", ");
        else
            cfxi_emit_py_begin_line(gen);
        if (items[i].node)
            CFX_TRY(cfxi_emit_py_assigned_name(gen, items[i].node, err));
        else
            cfxi_emit_py_put(gen, items[i].name->data, items[i].name->size);
    }
    if (!done)
        return CFX_OK;
    *any = true;
    CFXI_PY_LIT(gen, " = ");
    done = 0;
    for (size_t i = 0; i < n; i++) {
        if (cfxi_emit_py_is_there(gen, &items[i]))
            continue;
        cfxi_emit_py_put(gen, ", ", done++ ? 2 : 0);
        CFX_TRY(cfxi_emit_py_value(gen, items[i].value, where, err));
    }
    return CFX_OK;
}

cfxi_py_assignment *cfxi_emit_py_new_assignments(cfx_pycode *gen, size_t n)
{
    return cfxi_base_arena_alloc(&gen->memory->arena, (n + 1) * sizeof(cfxi_py_assignment));
}

/* "a, b" or, to be unpacked, "a,". */
static void put_input_names(cfx_pycode *gen, const cfx_node *first, bool unpack)
{
    size_t count = 0;
    for (const cfx_node *n = first; n; n = cfxi_ir_next_input(first->graph, n), count++) {
        if (count > 0)
            CFXI_PY_LIT(gen, ", ");
        cfxi_emit_py_put_name(gen, n);
    }
    if (unpack && count == 1)
        cfxi_emit_py_char(gen, ',');
}

cfx_status cfxi_emit_py_unpack_inputs(cfx_pycode *gen, const cfx_node *first, cfx_value values,
                                const cfx_node *n, cfx_error *err)
{
    cfxi_emit_py_begin_line(gen);
    put_input_names(gen, first, true);
    CFXI_PY_LIT(gen, " = ");
    CFX_TRY(cfxi_emit_py_value(gen, values, n, err));
    cfxi_emit_py_end_line(gen);
    return CFX_OK;
}

cfx_status cfxi_emit_py_want_all(cfx_pycode *gen, const cfxi_py_run *run,
                                 const cfxi_py_assignment *items, size_t n, cfx_error *err)
{
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            cfx_value v = items[i].value;
            if (!items[i].name || items[i].node || !cfxi_emit_py_is_node_of(v, run->region) ||
                v.as.node->op == CFX_OP_PLACEHOLDER)
                continue;
            if (pass == 0)
                CFX_TRY(cfxi_emit_py_want(gen, v.as.node, NULL, err));
            else if (!cfxi_base_pointers_get(&gen->wanted, v.as.node))
                CFX_TRY(cfxi_emit_py_want(gen, v.as.node, items[i].name, err));
        }
    }
    return CFX_OK;
}

cfx_status cfxi_emit_py_assign_results(cfx_pycode *gen, cfxi_py_run *run,
                                       const cfxi_py_assignment *items, size_t n, cfx_error *err)
{
    bool any;
    CFX_TRY(cfxi_emit_py_put_assignment(gen, items, n, run->output, &any, err));
    for (size_t i = 0; i < n; i++)
        if (items[i].name)
            CFX_TRY(cfxi_emit_py_hold(gen, items[i].name, run->output, err));
    cfxi_py_text_mark start = cfxi_emit_py_mark_text(gen);
    if (any)
        CFXI_PY_LIT(gen, ";  ");
    else
        cfxi_emit_py_begin_line(gen);
    const size_t dead = cfxi_emit_py_dead_inputs(gen, &run->frame, run->output);
    if (dead)
        CFXI_PY_LIT(gen, "None");
    else
        cfxi_emit_py_go_back(gen, start);
    if (dead || any)
        cfxi_emit_py_end_line(gen);
    return CFX_OK;
}

size_t cfxi_emit_py_put_dead(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                             const cfxi_py_assignment *own, size_t n_own)
{
    size_t dead = 0;
    const cfx_node *next = n->next;
    while (cfxi_emit_py_placed(gen, next) == CFXI_PY_SHARED)
        next = next->next;
    if (!frame->region && next->op == CFX_OP_OUTPUT)
        return 0;
    for (size_t i = 0; i < n_own; i++) {
        if (!own[i].name || cfxi_emit_py_holder(gen, own[i].name))
            continue;
        cfxi_emit_py_put(gen, own[i].name->data, own[i].name->size);
        CFXI_PY_LIT(gen, " = ");
        dead++;
    }
    cfxi_emit_py_refresh(frame);
    const uint32_t index = frame->index;
    for (const cfx_node *at = n; at == n || cfxi_emit_py_placed(gen, at) == CFXI_PY_INLINE;
         at = at->prev, frame->index--)
        dead += cfxi_emit_py_dead_inputs(gen, frame, at);
    frame->index = index;
    return dead;
}

void cfxi_emit_py_clear_line(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                             const cfxi_py_assignment *own, size_t n_own)
{
    cfxi_py_text_mark start = cfxi_emit_py_mark_text(gen);
    cfxi_emit_py_begin_line(gen);
    if (cfxi_emit_py_put_dead(gen, frame, n, own, n_own) == 0) {
        cfxi_emit_py_go_back(gen, start);
        return;
    }
    CFXI_PY_LIT(gen, "None");
    cfxi_emit_py_end_line(gen);
}

/* Whether the value can stand wherever its name does. */
static bool is_literal(cfx_value v)
{
    return cfxi_ir_is_plain(v) && !cfxi_ir_is_seq(v) && v.kind != CFX_KIND_GRAPH;
}

cfx_status cfxi_emit_py_bind_input(cfx_pycode *gen, cfx_node *input, const cfx_value *v,
                                   cfx_error *err)
{
    cfx_node *d = v->kind == CFX_KIND_NODE ? v->as.node : NULL;
    const cfx_value *instead = is_literal(*v) ? v : NULL;
    if (d && cfxi_base_pointers_get(&gen->instead, d)) {
        instead = cfxi_base_pointers_get(&gen->instead, d);
        d = NULL;
    }
    if (!cfxi_base_pointers_set(&gen->operands, input, d, gen->allocator) ||
        !cfxi_base_pointers_set(&gen->instead, input, (void *)(uintptr_t)instead, gen->allocator))
        return cfxi_base_nomem(err);
    if (d)
        return cfxi_emit_py_alias(gen, input, cfxi_emit_py_name(gen, d), err);
    return instead ? CFX_OK : cfxi_emit_py_define_local(gen, input, err);
}

bool cfxi_emit_py_has_variable(const cfx_pycode *gen, const cfx_node *input)
{
    return !cfxi_base_pointers_get(&gen->operands, input) &&
           !cfxi_base_pointers_get(&gen->instead, input);
}

cfx_status cfxi_emit_py_only_items(cfx_pycode *gen, const cfx_node *n, size_t size, bool *only,
                             cfx_error *err)
{
    size_t item;
    *only = true;
    for (const cfx_use *use = n->users; *only && use; use = cfx_use_next(use))
        CFX_TRY(cfxi_emit_py_takes_item(gen, use, size, &item, only, err));
    return CFX_OK;
}

/* ---- looking ahead ------------------------------------------------------------------------- */

static cfx_status plan_node(cfx_pycode *gen, const cfxi_py_frame *frame, cfx_node *n,
                            cfx_error *err)
{
    const cfxi_py_callee *callee;
    CFX_TRY(cfxi_emit_py_callee_of(gen, n, &callee, err));
    if (!cfxi_emit_py_has_regions(n))
        return CFX_OK;
    if (!gen->all_named)
        CFX_TRY(cfxi_emit_py_go_exact(gen, true, err));
    if (callee->form == CFXI_PY_COND)
        return cfxi_emit_py_take_in(gen, cfxi_emit_py_parameter(n, 0), n, false, err);
    return cfxi_emit_py_plan_loop(gen, frame, n, callee->form, err);
}

cfx_status cfxi_emit_py_plan(cfx_pycode *gen, cfxi_py_frame *frame, cfx_error *err)
{
    if (frame->graph->height == 0)
        return CFX_OK;
    for (cfx_node *n = frame->graph->root.next; n != &frame->graph->root; n = n->next) {
        if (cfxi_ir_node_form(n))
            CFX_TRY(plan_node(gen, frame, n, err));
        frame->index++;
    }
    frame->index = 0;
    return CFX_OK;
}

cfx_status cfxi_emit_py_control_flow(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                                     cfxi_py_form form, cfx_error *err)
{
    if (form == CFXI_PY_COND)
        return cfxi_emit_py_cond(gen, frame, n, err);
    return form == CFXI_PY_WHILE ? cfxi_emit_py_while_loop(gen, frame, n, err)
                                 : cfxi_emit_py_for_loop(gen, frame, n, err);
}
