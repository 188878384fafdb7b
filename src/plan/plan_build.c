/* plan_build.c - runs a program on tensors without bytes, and writes down what kernels would do. */
#include "plan_impl.h"

#include <stdio.h>

typedef struct builder {
    cfxi_planner planner;  /* first: rows know the builder by it */
    cfxi_plan *plan;
    cfx_runtime *rt;
    uint32_t running;      /* the instruction */
    const cfx_datum *from; /* the values that the plan is for: slots */
    cfx_datum *slots;      /* those that were read or written; INVALID: not yet, or taken */
    uint32_t *input_of;    /* 1 + the number of the input that is in a slot; or 0 */
    cfx_datum *stack;
    size_t depth;
    /* What each instruction gives if images keep the layout that they have in the program; `was`
     * are the slots then. NULL while that is found out. */
    const cfx_datum *eager;
    cfx_datum *was;        /* borrowed from `eager` and the inputs */
    bool divides;          /* such images may be divided, too: see divides_layout */
    cfxi_pointers turned;  /* cfx_tensor * -> the same, channels last: retained */
    cfxi_pointers back;    /* cfx_tensor * -> the same, as the program would have it: retained */
    const cfxi_cut *cuts;
    cfx_error *err;
} builder;

/* ---- steps --------------------------------------------------------------------------------- */

static cfx_status keep_call(builder *b, cfxi_step *step, cfxi_call *c, const cfxi_signature *s)
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
    builder *b = (builder *)planner;
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
    if (d.kind == CFX_DATUM_TENSOR && d.as.tensor->storage && d.as.tensor->storage->planned)
        cfxi_plan_memory_with(d.as.tensor->storage)->slots += by;
}

/* Takes `d` over. */
static void set_slot(builder *b, uint32_t slot, cfx_datum d)
{
    count_slots(d, 1);
    count_slots(b->slots[slot], UINT32_MAX);  /* one less */
    cfx_datum_release(b->slots[slot]);
    b->slots[slot] = d;
}

/* ---- inputs -------------------------------------------------------------------------------- */

/* A tensor of the same layout over planned memory, which begins with its lowest element. */
static cfx_datum plan_input(void *ctx, cfx_tensor *given, cfx_error *err)
{
    builder *b = ctx;
    int64_t low = 0;
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
static cfx_datum read_slot(builder *b, uint32_t slot)
{
    const cfx_datum given = b->from[slot];
    if (b->slots[slot].kind != CFX_DATUM_INVALID)
        return b->slots[slot];
    if (!cfxi_plan_can_take(given)) {
        cfx_error_set(b->err, CFX_E_UNSUPPORTED, "a value of this kind has no plan");
        return cfx_datum_invalid();
    }
    const cfx_datum planned = cfxi_plan_map(given, plan_input, b, b->plan->allocator, b->err);
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
    set_slot(b, slot, cfx_datum_retain(planned));
    if (b->eager)
        b->was[slot] = planned;
    return planned;
}

/* ---- the program --------------------------------------------------------------------------- */

static void drop(builder *b, size_t depth)
{
    while (b->depth > depth)
        cfx_datum_release(b->stack[--b->depth]);
}

/* ---- layouts of images --------------------------------------------------------------------- */

/* Whether an operator gives the same elements for any strides of its arguments. Others get the
 * layout that the program would have. */
static bool keeps_layout(cfx_operator op)
{
    switch ((int)op) {
    case CFX_OPID_conv1d: case CFX_OPID_conv2d: case CFX_OPID_convolution:
    case CFX_OPID_batch_norm:
    case CFX_OPID_max_pool2d: case CFX_OPID_avg_pool2d: case CFX_OPID_adaptive_avg_pool2d:
    case CFX_OPID_dropout: case CFX_OPID_cat: case CFX_OPID_mean:
    case CFX_OPID_transpose: case CFX_OPID_permute: case CFX_OPID_layer_norm:
    case CFX_OPID_linear: case CFX_OPID_getitem: case CFX_OPID_interpolate: case CFX_OPID_pad:
    case CFX_OPID_size: case CFX_OPID_conv_transpose2d:
        return true;
    default:
        return cfx_operator_flags(op) & CFX_OPERATOR_ELEMENTWISE;
    }
}

/* Likewise, but what it gives may be a part of an image, which cannot be turned back by itself. */
static bool divides_layout(cfx_operator op)
{
    switch ((int)op) {
    case CFX_OPID_reshape: case CFX_OPID_view: case CFX_OPID_alias: case CFX_OPID_chunk:
    case CFX_OPID_split: case CFX_OPID_len:
        return true;
    default:
        return false;
    }
}

static bool is_planned(cfx_datum d)
{
    return d.kind == CFX_DATUM_TENSOR && d.as.tensor->storage && d.as.tensor->storage->planned;
}

/* Another layout of a tensor, which was made before or is made now and noted in `made`: borrowed.
 * NULL with b->err set. */
static cfx_tensor *other_layout(builder *b, cfxi_pointers *made, cfx_tensor *t,
                                cfx_memory_format format)
{
    cfx_tensor *other = cfxi_base_pointers_get(made, t);
    if (other)
        return other;
    const cfx_datum d = cfxi_plan_lay_as(b->rt, &b->planner, t, format, b->err);
    if (d.kind != CFX_DATUM_TENSOR)
        return NULL;
    if (cfxi_base_pointers_set(made, t, d.as.tensor, b->plan->allocator))
        return d.as.tensor;
    cfx_datum_release(d);
    return cfxi_base_nomem(b->err), NULL;
}

static cfx_datum permuted(builder *b, cfx_datum d, const int64_t *order)
{
    cfx_datum args[2] = {d};
    cfx_datum items[CFX_MAX_DIMS];
    const size_t n = d.as.tensor->ndim;
    for (size_t i = 0; i < n; i++)
        items[i] = cfx_datum_int(order[i]);
    args[1] = cfx_datum_seq(CFX_DATUM_LIST, items, n, b->plan->allocator, b->err);
    const cfx_datum result =
        args[1].kind == CFX_DATUM_INVALID
            ? args[1]
            : cfxi_rt_call_planned(b->rt, &b->planner, CFX_OPID_permute, args, 2, b->err);
    cfx_datum_release(args[1]);
    return result;
}

/* Dimensions from that with the largest stride on, and where each of them is then. */
static void order_of(const cfx_tensor *t, int64_t *order, int64_t *back)
{
    for (size_t i = 0; i < t->ndim; i++) {
        size_t at = i;
        for (; at > 0 && t->stride[order[at - 1]] < t->stride[i]; at--)
            order[at] = order[at - 1];
        order[at] = (int64_t)i;
    }
    for (size_t i = 0; i < t->ndim; i++)
        back[order[i]] = (int64_t)i;
}

/* A copy of a tensor with the strides of `was`: dense, with its dimensions in any order. */
static cfx_datum laid_out_as(builder *b, cfx_tensor *t, const cfx_tensor *was)
{
    int64_t order[CFX_MAX_DIMS];
    int64_t back[CFX_MAX_DIMS];
    order_of(was, order, back);
    const cfx_datum turned = permuted(b, cfx_datum_tensor(t), order);
    if (turned.kind == CFX_DATUM_INVALID)
        return turned;
    cfx_tensor *dense = other_layout(b, &b->back, turned.as.tensor, CFX_MEMORY_FORMAT_CONTIGUOUS);
    cfx_datum_release(turned);
    return dense ? permuted(b, cfx_datum_tensor(dense), back) : cfx_datum_invalid();
}

/* A tensor of the same memory, with these strides: those of dimensions of size 1 differ, which tell
 * formats of images. Made before, or now and noted: borrowed. NULL with b->err set. */
static cfx_tensor *other_strides(builder *b, cfx_tensor *t, const cfx_tensor *was)
{
    cfx_tensor *other = cfxi_base_pointers_get(&b->back, t);
    if (other || cfxi_plan_list(b->plan, cfx_datum_tensor(t), b->err) != CFX_OK)
        return other;
    other = cfxi_tensor_header((cfx_dtype)t->dtype, t->size, t->ndim, b->plan->allocator, b->err);
    if (!other)
        return NULL;
    memcpy(other->stride, was->stride, sizeof other->stride);
    other->number = t->number;
    if (cfxi_tensor_share(other, t, 0, b->err) == CFX_OK) {
        if (cfxi_base_pointers_set(&b->back, t, other, b->plan->allocator))
            return other;
        cfxi_base_nomem(b->err);
    }
    cfx_tensor_release(other);
    return NULL;
}

static bool has_strides(const cfx_tensor *t, const cfx_tensor *was)
{
    return memcmp(t->stride, was->stride, was->ndim * sizeof *was->stride) == 0;
}

/* A tensor that lies as the program would have it. Takes `d` over. */
static cfx_datum with_strides(builder *b, cfx_datum d, const cfx_tensor *was)
{
    if (has_strides(d.as.tensor, was))
        return d;
    cfx_tensor *other = other_strides(b, d.as.tensor, was);
    cfx_datum_release(d);
    if (other && has_strides(other, was))
        return cfx_datum_tensor(cfx_tensor_retain(other));
    if (other)
        cfx_error_set(b->err, CFX_E_UNSUPPORTED, "strides that are not kept");
    return cfx_datum_invalid();
}

static cfx_datum restored(builder *b, cfx_datum d, cfx_datum was);

/* Whether a tensor, or one in a container, lies otherwise than `was`, which is the same. */
static bool lies_otherwise(cfx_datum d, cfx_datum was)
{
    size_t n;
    size_t m;
    const cfx_datum *items = cfx_datum_items(d, &n);
    const cfx_datum *others = cfx_datum_items(was, &m);
    for (size_t i = 0; n == m && i < n; i++)
        if (lies_otherwise(items[i], others[i]))
            return true;
    return is_planned(d) && was.kind == CFX_DATUM_TENSOR &&
           !has_strides(d.as.tensor, was.as.tensor);
}

/* The parts of a split, each as the program would have it. Takes `d` over. */
static cfx_datum restored_items(builder *b, cfx_datum d, cfx_datum was)
{
    size_t n;
    const cfx_allocator *allocator = b->plan->allocator;
    const cfx_datum *items = cfx_datum_items(d, &n);
    const cfx_datum *others = cfx_datum_items(was, &n);
    cfx_datum *made = cfxi_base_alloc(allocator, n * sizeof *made);
    cfx_datum result = cfx_datum_invalid();
    size_t count = 0;
    for (bool good = made != NULL; good && count < n; count++) {
        made[count] = restored(b, cfx_datum_retain(items[count]), others[count]);
        good = made[count].kind != CFX_DATUM_INVALID;
    }
    if (!made)
        cfxi_base_nomem(b->err);
    else if (count == n && made[n - 1].kind != CFX_DATUM_INVALID)
        result = cfx_datum_seq((cfx_datum_kind)d.kind, made, n, allocator, b->err);
    cfx_datum_set_row(result, cfx_datum_row(d));
    while (count > 0)
        cfx_datum_release(made[--count]);
    cfxi_base_free(allocator, made, n * sizeof *made);
    cfx_datum_release(d);
    return result;
}

/* A tensor, or a container of some, in the layout that the program would have. Takes `d` over. */
static cfx_datum restored(builder *b, cfx_datum d, cfx_datum was)
{
    if (cfxi_tensor_is_seq(d))
        return lies_otherwise(d, was) ? restored_items(b, d, was) : d;
    if (!is_planned(d) || was.kind != CFX_DATUM_TENSOR)
        return d;
    if (cfxi_plan_lie_alike(d.as.tensor, was.as.tensor))
        return with_strides(b, d, was.as.tensor);
    cfx_datum result = cfx_datum_invalid();
    if (cfx_tensor_is_contiguous(was.as.tensor)) {
        cfx_tensor *back = other_layout(b, &b->back, d.as.tensor, CFX_MEMORY_FORMAT_CONTIGUOUS);
        result = back ? cfx_datum_tensor(cfx_tensor_retain(back)) : result;
    } else {
        result = laid_out_as(b, d.as.tensor, was.as.tensor);
    }
    if (is_planned(result) && !cfxi_plan_lie_alike(result.as.tensor, was.as.tensor)) {
        cfx_datum_release(result);
        result = cfx_datum_invalid();
        cfx_error_set(b->err, CFX_E_UNSUPPORTED, "strides that are not kept");
    }
    cfx_datum_release(d);  /* its header stays: a step has it */
    return is_planned(result) ? with_strides(b, result, was.as.tensor) : result;
}

/* The image of a convolution with known weights, with its channels side by side. */
static cfx_status turn_image(builder *b, cfx_operator op)
{
    const cfx_datum x = b->stack[0];
    const bool is_conv = (op == CFX_OPID_conv2d || op == CFX_OPID_convolution) && b->depth > 1 &&
                         is_planned(x) && x.as.tensor->ndim == 4 &&
                         x.as.tensor->dtype == CFX_DTYPE_FLOAT32 && !is_planned(b->stack[1]);
    b->planner.finds_layouts = b->planner.finds_layouts || is_conv;
    if (!is_conv || !b->eager || x.as.tensor->stride[1] == 4)
        return CFX_OK;
    cfx_tensor *turned =
        other_layout(b, &b->turned, x.as.tensor, CFX_MEMORY_FORMAT_CHANNELS_LAST);
    if (!turned)
        return b->err->status;
    cfx_datum_release(x);
    b->stack[0] = cfx_datum_tensor(cfx_tensor_retain(turned));
    return CFX_OK;
}

static void forget(builder *b, cfxi_pointers *made)
{
    size_t at = 0;
    for (cfx_tensor *t; (t = cfxi_base_pointers_next(made, &at)) != NULL;)
        cfx_tensor_release(t);
    cfxi_base_pointers_free(made, b->plan->allocator);
}

static void forget_layouts(builder *b)
{
    forget(b, &b->turned);
    forget(b, &b->back);
}

/* ---- values -------------------------------------------------------------------------------- */

/* The row that computes an instruction: of a call in place, that which gives a new tensor. */
static cfx_operator computed_op(const cfxi_instruction *i)
{
    const cfx_operator functional = cfx_operator_functional(i->op);
    return functional == CFX_OPID_NONE ? i->op : functional;
}

/* Puts what the pieces say on the stack. Slots keep their values until the instruction is planned.
 */
static cfx_status evaluate(builder *b, const cfxi_instruction *instruction)
{
    const cfx_program *p = b->plan->program;
    const cfxi_piece *pieces = p->pieces.data;
    const cfx_datum *constants = p->constants.data;
    const cfx_operator op = computed_op(instruction);
    const bool any_layout = keeps_layout(op) || (b->divides && divides_layout(op));
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
                d = restored(b, d, b->was[piece->index]);
        }
        b->stack[b->depth++] = d;
        if (d.kind == CFX_DATUM_INVALID)
            return b->err->status;
    }
    return CFX_OK;
}

/* What was used for the last time. */
static void take_slots(builder *b, const cfxi_instruction *instruction)
{
    const cfxi_piece *pieces = b->plan->program->pieces.data;
    for (uint32_t i = instruction->first; i < instruction->end; i++) {
        const uint32_t slot = pieces[i].index;
        if (pieces[i].kind != CFXI_PIECE_TAKE)
            continue;
        set_slot(b, slot, cfx_datum_invalid());
        if (b->input_of[slot] > 0)
            cfxi_plan_input(b->plan, b->input_of[slot] - 1)->taken = true;
        b->input_of[slot] = 0;
    }
}

/* ---- in place ------------------------------------------------------------------------------ */

static bool has_memory_of(cfx_datum d, const cfx_tensor *t)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        if (has_memory_of(items[i], t))
            return true;
    return d.kind == CFX_DATUM_TENSOR && d.as.tensor->storage == t->storage;
}

/* A range of slots. */
typedef struct range {
    uint32_t first, end;
} range;

/* Whether the program has one tensor in both slots: here it may lie in two ways. */
static bool has_same(const builder *b, uint32_t a, uint32_t c)
{
    const cfx_datum *values = b->eager ? b->was : b->slots;
    return b->slots[a].kind == CFX_DATUM_TENSOR && values[a].kind == CFX_DATUM_TENSOR &&
           values[c].kind == CFX_DATUM_TENSOR && values[a].as.tensor == values[c].as.tensor;
}

/* The slots that may see the memory of the tensor in one of them. */
static range slots_with(const builder *b, uint32_t slot)
{
    if (!b->eager && cfxi_plan_memory_with(b->slots[slot].as.tensor->storage)->slots == 1)
        return (range){slot, slot + 1};
    return (range){0, b->plan->program->num_slots};
}

/* The slot that a planned tensor on the stack, the first argument, was read from: it may have
 * another layout there. */
static uint32_t slot_of_self(const builder *b, const cfxi_instruction *i)
{
    const cfxi_piece *piece = (const cfxi_piece *)b->plan->program->pieces.data + i->first;
    const bool is_slot = piece->kind == CFXI_PIECE_SLOT || piece->kind == CFXI_PIECE_TAKE;
    return is_slot && is_planned(b->stack[0]) && is_planned(b->slots[piece->index]) ? piece->index
                                                                                      : CFXI_NONE;
}

/* Whether only slots with this very tensor can see its memory: then a call in place is one that
 * gives a new tensor, which takes the place of the old one. */
static bool is_alone(const builder *b, range slots, uint32_t slot)
{
    const cfx_tensor *t = b->slots[slot].as.tensor;
    if (cfxi_plan_number(b->plan, t) == CFXI_NONE ||
        cfxi_plan_memory_with(t->storage)->kind != CFXI_MEMORY_ARENA)
        return false;
    for (uint32_t i = slots.first; i < slots.end; i++)
        if (has_memory_of(b->slots[i], t) && !has_same(b, i, slot))
            return false;
    return true;
}

/* What a call in place has given takes the place of its argument. */
static void replace_slot(builder *b, uint32_t slot, cfx_datum result)
{
    set_slot(b, slot, cfx_datum_retain(result));
    if (b->eager)
        b->was[slot] = b->eager[b->running - b->plan->first];
}

static cfx_datum call_in_place(builder *b, const cfxi_instruction *i)
{
    const uint32_t slot = slot_of_self(b, i);
    const cfx_tensor *self = slot != CFXI_NONE ? b->stack[0].as.tensor : NULL;
    const range slots = self ? slots_with(b, slot) : (range){0, 0};
    cfx_datum result = cfx_datum_invalid();
    if (!self || !is_alone(b, slots, slot)) {
        cfx_error_set(b->err, CFX_E_UNSUPPORTED, "a call in place has no plan");
        return result;
    }
    result = cfxi_rt_call_planned(b->rt, &b->planner, computed_op(i), b->stack, i->num_args,
                                  b->err);
    if (result.kind == CFX_DATUM_INVALID)
        return result;
    if (!is_planned(result) || result.as.tensor->dtype != self->dtype ||
        result.as.tensor->storage == self->storage ||
        !cfxi_plan_lie_alike(result.as.tensor, self)) {
        cfx_datum_release(result);
        cfx_error_set(b->err, CFX_E_UNSUPPORTED, "a call in place has no plan");
        return cfx_datum_invalid();
    }
    /* strides of dimensions of size 1, too: formats of images are told by them */
    memcpy(result.as.tensor->stride, self->stride, sizeof self->stride);
    for (uint32_t k = slots.first; k < slots.end; k++)
        if (k != slot && has_same(b, k, slot))
            replace_slot(b, k, result);
    replace_slot(b, slot, result);  /* last: others are compared with it */
    return result;
}

/* ---- lists --------------------------------------------------------------------------------- */

static bool is_list(cfx_datum d) { return d.kind == CFX_DATUM_LIST || d.kind == CFX_DATUM_DICT; }

static bool has_list(cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        if (has_list(items[i]))
            return true;
    return is_list(d);
}

/* Whether a list would be in two places: what one of them writes to it, the other has to see, and a
 * plan leaves copies. */
static bool shares_list(const builder *b, cfx_datum result)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(result, &n);
    for (size_t i = 0; i < n; i++)
        if (has_list(items[i]))
            return true;
    for (size_t i = 0; is_list(result) && i < b->plan->program->num_slots; i++)
        if (is_list(b->slots[i]) && b->slots[i].as.seq == result.as.seq)
            return true;
    return false;
}

/* ---- instructions -------------------------------------------------------------------------- */

/* Whether it writes to an argument of its own: to a list, to statistics. Calls in place are another
 * matter. */
static bool writes(builder *b, const cfxi_instruction *i)
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
static cfx_datum call(builder *b, const cfxi_instruction *i)
{
    if (computed_op(i) != i->op)
        return call_in_place(b, i);
    const bool line = cfxi_plan_is_line(i->op, b->stack, i->num_args);
    b->planner.finds_layouts = b->planner.finds_layouts || line;
    if (line && b->eager)
        return cfxi_plan_call_line(b->rt, &b->planner, b->stack, i->num_args, b->err);
    /* strides of another layout may not allow a view */
    const cfx_operator op = i->op == CFX_OPID_view && b->divides ? CFX_OPID_reshape : i->op;
    const cfx_datum result =
        cfxi_rt_call_planned(b->rt, &b->planner, op, b->stack, i->num_args, b->err);
    if (result.kind == CFX_DATUM_INVALID || !shares_list(b, result))
        return result;
    cfx_datum_release(result);
    cfx_error_set(b->err, CFX_E_UNSUPPORTED, "a list in several places has no plan");
    return cfx_datum_invalid();
}

static cfx_status give(builder *b, const cfxi_instruction *i, cfx_datum result)
{
    cfx_datum *given =
        cfxi_plan_push(&b->plan->given, sizeof *given, b->plan->allocator, b->err);
    if (given)
        *given = cfx_datum_retain(result);
    if (!given || i->slot == CFXI_NO_SLOT) {
        cfx_datum_release(result);
        return given ? CFX_OK : CFX_E_NOMEM;
    }
    set_slot(b, i->slot, result);
    if (b->eager)
        b->was[i->slot] = b->eager[b->running - b->plan->first];
    return CFX_OK;
}

static cfx_status run_instruction(builder *b, const cfxi_instruction *i)
{
    if (i->custom || asks_identity(i) || writes(b, i))
        return cfx_error_set(b->err, CFX_E_UNSUPPORTED, "the call has no plan");
    CFX_TRY(evaluate(b, i));
    CFX_TRY(turn_image(b, i->op));
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
static void go_back(builder *b, mark to)
{
    cfxi_plan *plan = b->plan;
    drop(b, 0);
    while (plan->steps.size > to.steps)
        free_step(plan, cfxi_plan_step(plan, --plan->steps.size));
    while (plan->inputs.size > to.inputs) {
        const cfxi_slot_value *input = cfxi_plan_input(plan, --plan->inputs.size);
        set_slot(b, input->slot, cfx_datum_invalid());
        b->input_of[input->slot] = 0;
        cfx_datum_release(input->value);
    }
    forget_layouts(b);
    cfxi_plan_cut(plan, to.memories, to.tensors);
    plan->num_inputs = to.num_inputs;
}

static bool is_result(const builder *b, uint32_t slot)
{
    return b->slots[slot].kind != CFX_DATUM_INVALID && b->input_of[slot] == 0;
}

/* Notes in `wholes` the results that are all of their memory, in the program's layout: cfxi_storage
 * * -> 1 + the slot. */
static cfx_status find_wholes(const builder *b, cfxi_hash_map *wholes)
{
    for (uint32_t i = 0; i < b->plan->program->num_slots; i++) {
        if (!is_result(b, i) || !is_planned(b->was[i]) || !is_planned(b->slots[i]))
            continue;
        const cfx_tensor *t = b->was[i].as.tensor;
        if (t->data != t->storage->data ||
            (size_t)cfxi_tensor_numel(t) * cfxi_tensor_itemsize(t) != t->storage->size)
            continue;
        uint64_t *whole =
            cfxi_base_map_add(wholes, t->storage, sizeof *whole, b->plan->allocator);
        if (!whole)
            return cfxi_base_nomem(b->err);
        *whole = *whole ? *whole : 1 + (uint64_t)i;
    }
    return CFX_OK;
}

/* A view like `was` of the memory of `base`, which the program has it of. */
static cfx_datum view_of(builder *b, const cfx_tensor *was, const cfx_tensor *base)
{
    cfx_tensor *t = cfxi_tensor_header((cfx_dtype)was->dtype, was->size, was->ndim,
                                       b->plan->allocator, b->err);
    if (!t)
        return cfx_datum_invalid();
    memcpy(t->stride, was->stride, sizeof t->stride);
    t->number = was->number;
    if (cfxi_tensor_share(t, base, was->data - was->storage->data, b->err) == CFX_OK)
        return cfx_datum_tensor(t);
    cfx_tensor_release(t);
    return cfx_datum_invalid();
}

/* What a slot has, in the layout that the program would have it in. Tensors that share memory there
 * do so here, if one of them is all of it. */
static cfx_datum restored_slot(builder *b, uint32_t slot, const cfxi_hash_map *wholes)
{
    const cfx_datum d = b->slots[slot];
    const cfx_datum was = b->was[slot];
    const uint64_t *found =
        is_planned(was) && is_planned(d)
            ? cfxi_base_map_find(wholes, was.as.tensor->storage, sizeof *found) : NULL;
    const uint32_t whole = found ? (uint32_t)(*found - 1) : slot;
    if (whole == slot || b->slots[whole].as.tensor == d.as.tensor)
        return restored(b, cfx_datum_retain(d), was);
    const cfx_datum base = restored(b, cfx_datum_retain(b->slots[whole]), b->was[whole]);
    if (base.kind == CFX_DATUM_INVALID)
        return base;
    const cfx_datum view = view_of(b, was.as.tensor, base.as.tensor);
    cfx_datum_release(base);
    return view;
}

/* What later instructions read. */
static cfx_status leave_slots(builder *b, const cfxi_hash_map *wholes)
{
    cfxi_plan *plan = b->plan;
    for (uint32_t i = 0; i < plan->program->num_slots; i++) {
        if (!is_result(b, i))
            continue;
        const cfx_datum d = b->eager ? restored_slot(b, i, wholes) : cfx_datum_retain(b->slots[i]);
        cfxi_slot_value *out =
            d.kind != CFX_DATUM_INVALID
                ? cfxi_plan_push(&plan->outs, sizeof *out, plan->allocator, b->err) : NULL;
        if (!out) {
            cfx_datum_release(d);
            return b->err->status;
        }
        *out = (cfxi_slot_value){i, false, d};
        CFX_TRY(cfxi_plan_list(plan, d, b->err));
    }
    return CFX_OK;
}

static cfx_status leave_results(builder *b)
{
    cfxi_hash_map wholes = {0};
    cfx_status status = b->eager ? find_wholes(b, &wholes) : CFX_OK;
    if (status == CFX_OK)
        status = leave_slots(b, &wholes);
    cfxi_base_map_free(&wholes, sizeof(uint64_t), b->plan->allocator);
    return status;
}

static cfx_status note_first(cfxi_plan *plan, const void *key, uint64_t number, cfx_error *err)
{
    uint64_t *first =
        cfxi_base_map_add(&plan->first_out, key, sizeof *first, plan->allocator);
    if (first && *first == 0)
        *first = number;
    return first ? CFX_OK : cfxi_base_nomem(err);
}

/* Which outs are one tensor, or share memory that is copied. */
static cfx_status find_first_outs(cfxi_plan *plan, cfx_error *err)
{
    for (size_t i = 0; i < plan->outs.size; i++) {
        const cfx_datum d = cfxi_plan_out(plan, i)->value;
        if (d.kind != CFX_DATUM_TENSOR)
            continue;
        CFX_TRY(note_first(plan, d.as.tensor, i + 1, err));
        if (!is_planned(d) && cfxi_plan_copies_memory(d.as.tensor))
            CFX_TRY(note_first(plan, d.as.tensor->storage, i + 1, err));
    }
    return CFX_OK;
}

static cfx_status run_stretch(builder *b)
{
    cfxi_plan *plan = b->plan;
    const cfx_program *p = plan->program;
    for (b->running = plan->first; b->running < p->instructions.size; b->running++) {
        const mark before = mark_of(plan);
        if (atomic_load_explicit(&b->cuts[b->running], memory_order_relaxed))
            break;
        const cfx_status status =
            run_instruction(b, (const cfxi_instruction *)p->instructions.data + b->running);
        if (status == CFX_E_NOMEM)
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
    CFX_TRY(leave_results(b));
    return find_first_outs(plan, b->err);
}

/* What a plan begins with. */
typedef struct start {
    const cfx_program *p;
    cfx_runtime *rt;
    uint32_t first;
    const cfx_datum *slots;
    const cfxi_cut *cuts;
} start;

/* `eager` and `divides` as in builder. *finds_layouts becomes whether to build once more. */
static cfx_status build(cfxi_plan *plan, const start *s, const cfx_datum *eager, bool divides,
                        bool *finds_layouts, cfx_error *err)
{
    const cfx_program *p = plan->program;
    builder b = {.planner = {.note = note, .any_layout = eager != NULL}, .plan = plan,
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
    forget_layouts(&b);
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

/* Memories of two plans for one stretch that correspond: by number, 1 + that of the other. */
typedef struct matching {
    const cfxi_plan *plans[2];
    uint32_t *others[2];
} matching;

static bool match_tensors(const matching *m, const cfx_tensor *a, const cfx_tensor *b)
{
    const uint32_t numbers[] = {cfxi_plan_number(m->plans[0], a), cfxi_plan_number(m->plans[1], b)};
    if (numbers[0] == CFXI_NONE || numbers[1] == CFXI_NONE)
        return numbers[0] == numbers[1];
    const uint32_t one = cfxi_plan_tensor(m->plans[0], numbers[0])->memory;
    const uint32_t other = cfxi_plan_tensor(m->plans[1], numbers[1])->memory;
    if (m->others[0][one] == 0 && m->others[1][other] == 0) {
        m->others[0][one] = other + 1;
        m->others[1][other] = one + 1;
    }
    return m->others[0][one] == other + 1 && m->others[1][other] == one + 1 &&
           cfxi_plan_memory(m->plans[0], one)->kind == cfxi_plan_memory(m->plans[1], other)->kind &&
           cfxi_plan_memory(m->plans[0], one)->index == cfxi_plan_memory(m->plans[1], other)->index;
}

static bool match_values(const matching *m, cfx_datum a, cfx_datum b)
{
    size_t n;
    size_t k;
    const cfx_datum *items = cfx_datum_items(a, &n);
    const cfx_datum *others = cfx_datum_items(b, &k);
    if (a.kind != b.kind || n != k)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!match_values(m, items[i], others[i]))
            return false;
    return a.kind != CFX_DATUM_TENSOR || match_tensors(m, a.as.tensor, b.as.tensor);
}

/* Whether the results of one plan share memory as those of the other do: what is written to one of
 * them later, others may have to see. */
static bool shares_alike(const cfxi_plan *a, const cfxi_plan *b)
{
    const size_t n = a->memories.size + b->memories.size + 1;
    uint32_t *others = cfxi_base_alloc(a->allocator, n * sizeof *others);
    if (!others)
        return false;
    memset(others, 0, n * sizeof *others);
    const matching m = {{a, b}, {others, others + a->memories.size}};
    bool alike = a->outs.size == b->outs.size;
    for (size_t i = 0; alike && i < a->outs.size; i++)
        alike = match_values(&m, cfxi_plan_out(a, i)->value, cfxi_plan_out(b, i)->value);
    cfxi_base_free(a->allocator, others, n * sizeof *others);
    return alike;
}

/* The plan built again, with the channels of images side by side as far as the program cannot tell,
 * and in the program's own layout wherever it can; NULL if it would not do the same. */
static cfxi_plan *turned_plan(const start *s, const cfxi_plan *plan, bool divides, cfx_error *why)
{
    bool ignored;
    *why = (cfx_error){0};
    cfxi_plan *turned = plan_with(s, plan->given.data, divides, &ignored, why);
    if (turned && turned->end == plan->end && shares_alike(plan, turned))
        return turned;
    cfxi_plan_free(turned);
    return NULL;
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
        if (!turned && why.status != CFX_E_NOMEM)
            turned = turned_plan(&from, plan, false, &why);
        if (turned) {
            cfxi_plan_free(plan);
            plan = turned;
        }
        if (why.status == CFX_E_NOMEM) {
            cfxi_plan_free(plan);
            return cfxi_base_nomem(err), NULL;
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
    cfxi_base_vec_free(&plan->given, sizeof(cfx_datum), plan->allocator);
    cfxi_base_vec_free(&plan->memories, sizeof(cfxi_memory *), plan->allocator);
    cfxi_base_vec_free(&plan->tensors, sizeof(cfxi_planned_tensor), plan->allocator);
    cfxi_base_vec_free(&plan->steps, sizeof(cfxi_step), plan->allocator);
    cfxi_base_free(plan->allocator, plan, sizeof *plan);
}
