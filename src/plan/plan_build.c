/* plan_build.c - runs a program on tensors without bytes, and writes down what kernels would do. */
#include "plan_builder.h"

#include <stdio.h>

/* ---- steps --------------------------------------------------------------------------------- */

static cfx_status keep_call(cfxi_builder *b, cfxi_step *step, cfxi_call *c, const cfxi_signature *s)
{
    for (size_t i = 0; i < s->num_params; i++) {
        step->args[i] = cfx_datum_retain(c->args[i]);
        CFX_TRY(cfxi_plan_list(b->plan, c->args[i], b->err));
    }
    for (size_t i = 0; i < s->num_results; i++) {
        cfx_tensor *t = c->results[i].kind == CFX_DATUM_TENSOR ? cfxi_rt_result_at(c, i) : NULL;
        if (t && !t->storage) {
            step->chosen |= (cfxi_rt_is_by_rule(c->op) ? 1u << i : s->alias & 1u << i);
            CFX_TRY(cfxi_plan_give_memory(b->plan, t, b->err));
        }
        CFX_TRY(cfxi_plan_list(b->plan, c->results[i], b->err));
        step->results[i] = cfx_datum_retain(c->results[i]);
    }
    return CFX_OK;
}

/* What rows call: see cfxi_planner. */
static cfx_status note(cfxi_planner *planner, cfxi_call *c, const cfxi_signature *s)
{
    cfxi_builder *b = (cfxi_builder *)planner;
    cfxi_plan *plan = b->plan;
    const cfxi_instruction *at =
        (const cfxi_instruction *)plan->program->instructions.data + b->running;
    cfx_datum *args = cfxi_base_alloc(plan->allocator, CFXI_MOST_PARAMS * sizeof *args);
    cfxi_step *step =
        args ? cfxi_plan_push(&plan->steps, sizeof *step, plan->allocator, b->err) : NULL;
    if (!step) {
        cfxi_base_free(plan->allocator, args, CFXI_MOST_PARAMS * sizeof *args);
        return cfxi_base_nomem(c->err);
    }
    *step = (cfxi_step){.op = c->op, .node = at->name, .file = at->file, .line = at->line,
                        .num_args = s->num_params, .num_results = s->num_results, .args = args,
                        .x = CFXI_NONE, .out = CFXI_NONE};
    for (size_t i = 0; i < CFXI_MOST_PARAMS; i++)
        args[i] = cfx_datum_invalid();
    const cfx_status status = keep_call(b, step, c, s);
    return status == CFX_OK || b->err == c->err ? status
                                                : cfx_error_set(c->err, status, "out of memory");
}

static void free_step(const cfxi_plan *plan, cfxi_step *step)
{
    for (size_t i = 0; i < CFXI_MOST_PARAMS; i++)
        cfx_datum_release(step->args[i]);
    for (size_t i = 0; i < CFXI_MOST_RESULTS; i++)
        cfx_datum_release(step->results[i]);
    cfxi_base_free(plan->allocator, step->args, CFXI_MOST_PARAMS * sizeof *step->args);
    if (step->kernel)
        step->kernel->backend->release(step->kernel);
    cfxi_base_free(plan->allocator, step->chain, sizeof *step->chain);
}

/* ---- slots --------------------------------------------------------------------------------- */

static void count_slots(cfx_datum d, uint32_t by)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        count_slots(items[i], by);
    if (cfxi_plan_is_planned(d))
        cfxi_plan_memory_with(d.as.tensor->storage)->slots += by;
}

void cfxi_plan_set_slot(cfxi_builder *b, uint32_t slot, cfx_datum d)
{
    count_slots(d, 1);
    count_slots(b->slots[slot], UINT32_MAX);  /* one less */
    cfx_datum_release(b->slots[slot]);
    b->slots[slot] = d;
}

/* ---- inputs -------------------------------------------------------------------------------- */

/* A tensor of the same layout over planned memory, which begins with its lowest element. */
static cfx_datum plan_input(void *ctx, cfx_tensor *given, cfx_datum beside, cfx_error *err)
{
    cfxi_builder *b = ctx;
    int64_t low = 0;
    (void)beside;
    int64_t high = (int64_t)cfxi_tensor_itemsize(given);
    for (size_t i = 0; i < given->ndim; i++) {
        const int64_t reach = given->size[i] > 0 ? (given->size[i] - 1) * given->stride[i] : 0;
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    cfx_tensor *t = cfxi_tensor_header((cfx_dtype)given->dtype, given->size, given->ndim,
                                       b->plan->allocator, err);
    cfxi_memory *m = t ? cfxi_plan_add_memory(b->plan, CFXI_MEMORY_INPUT,
                                              cfxi_tensor_numel(given) ? (size_t)(high - low) : 0,
                                              err)
                       : NULL;
    if (!m) {
        cfx_tensor_release(t);
        return cfx_datum_invalid();
    }
    memcpy(t->stride, given->stride, sizeof t->stride);
    t->number = given->number;
    m->index = b->plan->num_inputs++;
    m->offset = (size_t)-low;
    m->storage.read_only = given->storage->read_only;
    t->storage = &m->storage;
    t->data = m->storage.data - low;
    return cfx_datum_tensor(t);
}

/* The value of a slot: an input, if no instruction of the stretch has left one there. Borrowed;
 * INVALID with b->err set. */
static cfx_datum read_slot(cfxi_builder *b, uint32_t slot)
{
    const cfx_datum given = b->from[slot];
    if (b->slots[slot].kind != CFX_DATUM_INVALID)
        return b->slots[slot];
    if (!cfxi_plan_can_take(given)) {
        cfx_error_set(b->err, CFX_E_UNSUPPORTED, "a value of this kind has no plan");
        return cfx_datum_invalid();
    }
    const cfx_datum planned =
        cfxi_plan_map(given, cfx_datum_invalid(), plan_input, b, b->plan->allocator, b->err);
    cfxi_slot_value *input = planned.kind == CFX_DATUM_INVALID
                                 ? NULL
                                 : cfxi_plan_push(&b->plan->inputs, sizeof *input,
                                                  b->plan->allocator, b->err);
    if (!input) {
        cfx_datum_release(planned);
        return cfx_datum_invalid();
    }
    *input = (cfxi_slot_value){slot, false, planned};
    b->input_of[slot] = (uint32_t)b->plan->inputs.size;
    if (cfxi_plan_list(b->plan, planned, b->err) != CFX_OK)
        return cfx_datum_invalid();
    cfxi_plan_set_slot(b, slot, cfx_datum_retain(planned));
    if (b->eager)
        b->was[slot] = planned;
    return planned;
}

/* ---- values -------------------------------------------------------------------------------- */

/* The row that computes an instruction: of a call in place, that which gives a new tensor. */
static cfx_operator computed_op(const cfxi_instruction *i)
{
    const cfx_operator functional = cfx_operator_functional(i->op);
    return functional == CFX_OPID_NONE ? i->op : functional;
}

static void drop(cfxi_builder *b, size_t depth)
{
    while (b->depth > depth)
        cfx_datum_release(b->stack[--b->depth]);
}

/* Puts what the pieces say on the stack. Slots keep their values until the instruction is planned.
 */
static cfx_status evaluate(cfxi_builder *b, const cfxi_instruction *instruction)
{
    const cfx_program *p = b->plan->program;
    const cfxi_piece *pieces = p->pieces.data;
    const cfx_datum *constants = p->constants.data;
    const bool any_layout = cfxi_plan_keeps_layout(computed_op(instruction), b->divides);
    for (uint32_t i = instruction->first; i < instruction->end; i++) {
        const cfxi_piece *piece = &pieces[i];
        cfx_datum d;
        if (piece->kind == CFXI_PIECE_SEQ) {
            const size_t from = b->depth - piece->index;
            d = cfx_datum_seq((cfx_datum_kind)piece->datum, b->stack + from, piece->index,
                              b->plan->allocator, b->err);
            drop(b, from);
        } else if (piece->kind == CFXI_PIECE_CONSTANT) {
            d = cfx_datum_retain(constants[piece->index]);
        } else {
            d = cfx_datum_retain(read_slot(b, piece->index));
            if (d.kind != CFX_DATUM_INVALID && b->eager && !any_layout)
                d = cfxi_plan_restored(b, d, b->was[piece->index]);
        }
        b->stack[b->depth++] = d;
        if (d.kind == CFX_DATUM_INVALID)
            return b->err->status;
    }
    return CFX_OK;
}

/* What was used for the last time. */
static void take_slots(cfxi_builder *b, const cfxi_instruction *instruction)
{
    const cfxi_piece *pieces = b->plan->program->pieces.data;
    for (uint32_t i = instruction->first; i < instruction->end; i++) {
        const uint32_t slot = pieces[i].index;
        if (pieces[i].kind != CFXI_PIECE_TAKE)
            continue;
        cfxi_plan_set_slot(b, slot, cfx_datum_invalid());
        if (b->input_of[slot] > 0)
            cfxi_plan_input(b->plan, b->input_of[slot] - 1)->taken = true;
        b->input_of[slot] = 0;
    }
}

/* ---- instructions -------------------------------------------------------------------------- */

/* Whether it writes to an argument of its own: to a list, to statistics. Calls in place are another
 * matter. */
static bool writes(cfxi_builder *b, const cfxi_instruction *i)
{
    const cfxi_signature *s = cfxi_rt_signature_of(b->rt, i->op, b->err);
    return !s || (computed_op(i) == i->op && strchr(s->schema, '!') != NULL);
}

/* Whether it asks which object a value is: planned tensors stand for others. */
static bool asks_identity(const cfxi_instruction *i)
{
    return i->op == CFX_OPID_is || i->op == CFX_OPID_is_not;
}

/* The result of the call on the stack; INVALID with b->err set. */
static cfx_datum call(cfxi_builder *b, const cfxi_instruction *i)
{
    if (computed_op(i) != i->op)
        return cfxi_plan_call_in_place(b, i, computed_op(i));
    const bool line = cfxi_plan_is_line(i->op, b->stack, i->num_args);
    b->planner.finds_layouts = b->planner.finds_layouts || line;
    if (line && b->eager)
        return cfxi_plan_call_line(b->rt, &b->planner, b->stack, i->num_args, b->err);
    /* strides of another layout may not allow a view */
    const cfx_operator op = i->op == CFX_OPID_view && b->divides ? CFX_OPID_reshape : i->op;
    const cfx_datum result =
        cfxi_rt_call_planned(b->rt, &b->planner, op, b->stack, i->num_args, b->err);
    if (result.kind == CFX_DATUM_INVALID || !cfxi_plan_shares_list(b, result))
        return result;
    cfx_datum_release(result);
    cfx_error_set(b->err, CFX_E_UNSUPPORTED, "a list in several places has no plan");
    return cfx_datum_invalid();
}

static cfx_status give(cfxi_builder *b, const cfxi_instruction *i, cfx_datum result)
{
    cfx_datum *given =
        cfxi_plan_push(&b->plan->given, sizeof *given, b->plan->allocator, b->err);
    if (given)
        *given = cfx_datum_retain(result);
    if (!given || i->slot == CFXI_NO_SLOT) {
        cfx_datum_release(result);
        return given ? CFX_OK : CFX_E_NOMEM;
    }
    cfxi_plan_set_slot(b, i->slot, result);
    if (b->eager)
        b->was[i->slot] = b->eager[b->running - b->plan->first];
    return CFX_OK;
}

static cfx_status run_instruction(cfxi_builder *b, const cfxi_instruction *i)
{
    if (i->custom || asks_identity(i) || writes(b, i))
        return cfx_error_set(b->err, CFX_E_UNSUPPORTED, "the call has no plan");
    CFX_TRY(evaluate(b, i));
    CFX_TRY(cfxi_plan_turn_image(b, i->op));
    const cfx_datum result = call(b, i);
    drop(b, 0);
    if (result.kind == CFX_DATUM_INVALID)
        return b->err->status;
    take_slots(b, i);
    return give(b, i, result);
}

/* How far a plan has got, to come back to. */
typedef struct mark {
    size_t memories, tensors, steps, inputs;
    uint32_t num_inputs;
} mark;

static mark mark_of(const cfxi_plan *plan)
{
    return (mark){plan->memories.size, plan->tensors.size, plan->steps.size, plan->inputs.size,
                  plan->num_inputs};
}

/* Forgets what an instruction without a plan has left. */
static void go_back(cfxi_builder *b, mark to)
{
    cfxi_plan *plan = b->plan;
    drop(b, 0);
    while (plan->steps.size > to.steps)
        free_step(plan, cfxi_plan_step(plan, --plan->steps.size));
    while (plan->inputs.size > to.inputs) {
        const cfxi_slot_value *input = cfxi_plan_input(plan, --plan->inputs.size);
        cfxi_plan_set_slot(b, input->slot, cfx_datum_invalid());
        b->input_of[input->slot] = 0;
        cfx_datum_release(input->value);
    }
    cfxi_plan_forget_layouts(b);
    cfxi_plan_cut(plan, to.memories, to.tensors);
    plan->num_inputs = to.num_inputs;
}

static cfx_status run_stretch(cfxi_builder *b)
{
    cfxi_plan *plan = b->plan;
    const cfx_program *p = plan->program;
    for (b->running = plan->first; b->running < p->instructions.size; b->running++) {
        const mark before = mark_of(plan);
        if (atomic_load_explicit(&b->cuts[b->running], memory_order_relaxed))
            break;
        const cfx_status status =
            run_instruction(b, (const cfxi_instruction *)p->instructions.data + b->running);
        if (status == CFX_E_NOMEM || status == CFX_E_INTERRUPTED)
            return status;
        if (status != CFX_OK) {
            go_back(b, before);
            *b->err = (cfx_error){0};
            break;
        }
    }
    plan->end = b->running;
    if (plan->end == plan->first)
        return CFX_OK;
    b->running--;  /* results that are turned back belong to the last instruction */
    return cfxi_plan_leave_results(b);
}

/* What a plan begins with. */
typedef struct start {
    const cfx_program *p;
    cfx_runtime *rt;
    uint32_t first;
    const cfx_datum *slots;
    const cfxi_cut *cuts;
} start;

/* `eager` and `divides` as in cfxi_builder. *finds_layouts becomes whether to build once more. */
static cfx_status build(cfxi_plan *plan, const start *s, const cfx_datum *eager, bool divides,
                        bool *finds_layouts, cfx_error *err)
{
    const cfx_program *p = plan->program;
    cfxi_builder b = {.planner = {.note = note, .any_layout = eager != NULL}, .plan = plan,
                      .rt = s->rt, .from = s->slots, .eager = eager, .divides = divides,
                      .cuts = s->cuts, .err = err};
    const size_t count = 2 * (size_t)p->num_slots + p->most_pieces + 1;
    const size_t bytes = count * sizeof *b.slots + p->num_slots * sizeof *b.input_of;
    b.slots = cfxi_base_alloc(plan->allocator, bytes);
    if (!b.slots)
        return cfxi_base_nomem(err);
    b.input_of = (uint32_t *)(void *)(b.slots + count);
    memset(b.input_of, 0, p->num_slots * sizeof *b.input_of);
    for (size_t i = 0; i < count; i++)
        b.slots[i] = cfx_datum_invalid();
    b.was = b.slots + p->num_slots;
    b.stack = b.was + p->num_slots;
    const cfx_status status = run_stretch(&b);
    *finds_layouts = b.planner.finds_layouts;
    drop(&b, 0);
    cfxi_plan_forget_layouts(&b);
    for (size_t i = 0; i < p->num_slots; i++)
        cfx_datum_release(b.slots[i]);
    cfxi_base_free(plan->allocator, b.slots, bytes);
    return status;
}

/* ---- the plan ------------------------------------------------------------------------------ */

static cfxi_plan *plan_with(const start *s, const cfx_datum *eager, bool divides,
                            bool *finds_layouts, cfx_error *err)
{
    const cfx_allocator *allocator = s->p->allocator;
    cfxi_plan *plan = cfxi_base_alloc(allocator, sizeof *plan);
    if (!plan)
        return cfxi_base_nomem(err), NULL;
    *plan = (cfxi_plan){.allocator = allocator, .program = s->p, .first = s->first,
                        .isa = s->rt->isa, .threads = cfx_runtime_threads(s->rt)};
    if (build(plan, s, eager, divides, finds_layouts, err) == CFX_OK)
        return plan;
    cfxi_plan_free(plan);
    return NULL;
}

/* Tells who watches the runtime what planning took, beside packing, and then that. */
static void tell(const cfxi_plan *plan, const cfx_runtime *rt, uint64_t begin)
{
    char kernel[40];
    const uint64_t end = cfxi_rt_clock();
    if (!rt->step || plan->end == plan->first)
        return;
    const cfxi_instruction *last =
        (const cfxi_instruction *)plan->program->instructions.data + plan->end - 1;
    cfx_step step = {.node = last->name, .kernel = kernel, .begin = begin,
                     .end = end - plan->packing};
    snprintf(kernel, sizeof kernel, "plan of %u nodes", plan->end - plan->first);
    rt->step(rt->step_ctx, &step);
    step.kernel = "packing";
    step.begin = step.end;
    step.end = end;
    rt->step(rt->step_ctx, &step);
}

/* The plan built again, with the channels of images side by side as far as the program cannot tell,
 * and in the program's own layout wherever it can; NULL if it would not do the same. */
static cfxi_plan *turned_plan(const start *s, const cfxi_plan *plan, bool divides, cfx_error *why)
{
    bool ignored;
    *why = (cfx_error){0};
    cfxi_plan *turned = plan_with(s, plan->given.data, divides, &ignored, why);
    if (turned && turned->end == plan->end && cfxi_plan_shares_alike(plan, turned))
        return turned;
    cfxi_plan_free(turned);
    return NULL;
}

/* Whether nothing can be planned any more. */
static bool is_final(const cfx_error *why)
{
    return why->status == CFX_E_NOMEM || why->status == CFX_E_INTERRUPTED;
}

/* Where there are images, the plan is built again with their channels side by side; with views and
 * parts of images lying so, too, if that can be. */
cfxi_plan *cfxi_plan_new(const cfx_program *p, cfx_runtime *rt, uint32_t first,
                         const cfx_datum *slots, const cfxi_plan_how *how, cfx_error *err)
{
    cfx_error own;
    bool finds_layouts = false;
    err = cfxi_base_error_or(err, &own);
    const start from = {p, rt, first, slots, how->cuts};
    const uint64_t begin = cfxi_rt_clock();
    cfxi_plan *plan = plan_with(&from, NULL, false, &finds_layouts, err);
    if (plan && finds_layouts) {
        cfx_error why = {0};
        cfxi_plan *turned = turned_plan(&from, plan, true, &why);
        if (!turned && !is_final(&why))
            turned = turned_plan(&from, plan, false, &why);
        if (turned) {
            cfxi_plan_free(plan);
            plan = turned;
        }
        if (is_final(&why)) {
            cfxi_plan_free(plan);
            cfx_error_set(err, why.status, "%s", why.message);
            return NULL;
        }
    }
    if (plan && cfxi_plan_place(plan, err) == CFX_OK &&
        cfxi_plan_fuse(plan, rt, how, err) == CFX_OK) {
        cfxi_plan_drop_joins(plan);
        if (cfxi_plan_lay_out(plan, err) == CFX_OK) {
            tell(plan, rt, begin);
            return plan;
        }
    }
    cfxi_plan_free(plan);
    return NULL;
}

static void free_values(cfxi_vec *values, const cfx_allocator *allocator)
{
    for (size_t i = 0; i < values->size; i++)
        cfx_datum_release(((cfxi_slot_value *)values->data)[i].value);
    cfxi_base_vec_free(values, sizeof(cfxi_slot_value), allocator);
}

void cfxi_plan_free(cfxi_plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->steps.size; i++)
        free_step(plan, cfxi_plan_step(plan, i));
    free_values(&plan->inputs, plan->allocator);
    free_values(&plan->outs, plan->allocator);
    for (size_t i = 0; i < plan->given.size; i++)
        cfx_datum_release(((cfx_datum *)plan->given.data)[i]);
    cfxi_plan_cut(plan, 0, 0);
    cfxi_base_map_free(&plan->by_header, sizeof(uint64_t), plan->allocator);
    cfxi_base_map_free(&plan->first_out, sizeof(uint64_t), plan->allocator);
    cfxi_base_map_free(&plan->shared_by, sizeof(uint64_t), plan->allocator);
    cfxi_base_vec_free(&plan->shared, sizeof(cfxi_shared), plan->allocator);
    cfxi_base_vec_free(&plan->given, sizeof(cfx_datum), plan->allocator);
    cfxi_base_vec_free(&plan->memories, sizeof(cfxi_memory *), plan->allocator);
    cfxi_base_vec_free(&plan->tensors, sizeof(cfxi_planned_tensor), plan->allocator);
    cfxi_base_vec_free(&plan->steps, sizeof(cfxi_step), plan->allocator);
    cfxi_base_free(plan->allocator, plan, sizeof *plan);
}
