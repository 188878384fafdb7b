/* plan_build.c - runs a program on tensors without bytes, and writes down what kernels would do. */
#include "plan_impl.h"

/* Planned memory has addresses that no process has: beyond 47 bits. */
#define FIRST_ADDRESS ((uintptr_t)1 << 52)

typedef struct builder {
    cfxi_planner planner;  /* first: rows know the builder by it */
    cfxi_plan *plan;
    uintptr_t address;     /* of the next memory */
    cfx_datum *slots;
    cfx_datum *stack;
    size_t depth;
    /* What each instruction gives if images keep the layout that they have in the program; `was`
     * are the slots then. NULL while that is found out. */
    const cfx_datum *eager;
    cfx_datum *was;        /* borrowed from `eager` and the inputs */
    bool finds_images;     /* whether a second build can be better */
    cfxi_pointers turned;  /* cfx_tensor * -> the same, channels last: retained */
    cfx_error *err;
} builder;

/* ---- memory and tensors -------------------------------------------------------------------- */

static void *push(cfxi_vec *vec, size_t size, const cfx_allocator *allocator, cfx_error *err)
{
    if (vec->size >= UINT32_MAX - 1 || !cfxi_base_vec_reserve(vec, 1, size, allocator))
        return cfxi_base_nomem(err), NULL;
    return (char *)vec->data + size * vec->size++;
}

static cfxi_memory *new_memory(builder *b, cfxi_memory_kind kind, size_t size)
{
    const cfx_allocator *allocator = b->plan->allocator;
    cfxi_memory *m = cfxi_base_alloc(allocator, sizeof *m);
    cfxi_memory **place = m ? push(&b->plan->memories, sizeof *place, allocator, b->err) : NULL;
    if (!place) {
        cfxi_base_free(allocator, m, sizeof *m);
        return cfxi_base_nomem(b->err), NULL;
    }
    *m = (cfxi_memory){.kind = kind, .index = CFXI_NONE, .size = size, .same = CFXI_NONE,
                       .first = CFXI_NONE};
    m->storage = (cfxi_storage){.planned = true, .data = (char *)b->address, .size = size,
                                .allocator = allocator, .block = 0};
    atomic_init(&m->storage.refs, 1 << 30);  /* the plan's: never released by tensors */
    b->address += (size + 2 * CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN;
    *place = m;
    return m;
}

/* The memory that a storage belongs to: memories have rising addresses. */
static uint32_t memory_of(const cfxi_plan *plan, const cfxi_storage *s)
{
    size_t low = 0;
    size_t high = plan->memories.size;
    while (high - low > 1) {
        const size_t middle = (low + high) / 2;
        if ((uintptr_t)cfxi_plan_memory(plan, (uint32_t)middle)->storage.data <=
            (uintptr_t)s->data)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

/* Gives a header without memory some that is planned. */
static cfx_status plan_memory(builder *b, cfx_tensor *t, cfxi_memory_kind kind)
{
    size_t bytes = cfxi_tensor_itemsize(t);
    for (size_t i = 0; i < t->ndim; i++) {
        if (t->size[i] == 0)
            bytes = 0;
        else if (bytes)
            bytes += (size_t)(t->size[i] - 1) * (size_t)t->stride[i];
    }
    cfxi_memory *m = new_memory(b, kind, bytes);
    if (!m)
        return CFX_E_NOMEM;
    t->storage = &m->storage;
    t->data = m->storage.data;
    return CFX_OK;
}

uint32_t cfxi_plan_number(const cfxi_plan *plan, const cfx_tensor *t)
{
    const uint64_t *found = cfxi_base_map_find(&plan->by_header, t, sizeof *found);
    return found ? (uint32_t)(*found - 1) : CFXI_NONE;
}

/* Enters a planned tensor into the table, once. */
static cfx_status list_tensor(builder *b, cfx_tensor *t)
{
    cfxi_plan *plan = b->plan;
    if (!t->storage || !t->storage->planned)
        return CFX_OK;
    uint64_t *number = cfxi_base_map_add(&plan->by_header, t, sizeof *number, plan->allocator);
    if (!number)
        return cfxi_base_nomem(b->err);
    if (*number > 0)
        return CFX_OK;
    cfxi_planned_tensor *p = push(&plan->tensors, sizeof *p, plan->allocator, b->err);
    if (!p)
        return CFX_E_NOMEM;
    *p = (cfxi_planned_tensor){cfx_tensor_retain(t), memory_of(plan, t->storage),
                               t->data - t->storage->data};
    *number = plan->tensors.size;
    return CFX_OK;
}

static cfx_status list_tensors(builder *b, cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        CFX_TRY(list_tensors(b, items[i]));
    return d.kind == CFX_DATUM_TENSOR ? list_tensor(b, d.as.tensor) : CFX_OK;
}

void cfxi_plan_visit(const cfxi_plan *plan, cfx_datum d, cfxi_plan_visit_fn *fn, void *ctx)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        cfxi_plan_visit(plan, items[i], fn, ctx);
    if (d.kind == CFX_DATUM_TENSOR && d.as.tensor->storage && d.as.tensor->storage->planned)
        fn(ctx, cfxi_plan_number(plan, d.as.tensor));
}

/* ---- steps --------------------------------------------------------------------------------- */

static cfx_status keep_call(builder *b, cfxi_step *step, cfxi_call *c, const cfxi_signature *s)
{
    for (size_t i = 0; i < s->num_params; i++) {
        step->args[i] = cfx_datum_retain(c->args[i]);
        CFX_TRY(list_tensors(b, c->args[i]));
    }
    for (size_t i = 0; i < s->num_results; i++) {
        cfx_tensor *t = cfxi_rt_result_at(c, i);
        if (!t->storage) {
            step->chosen |= (cfxi_rt_is_by_rule(c->op) ? 1u << i : s->alias & 1u << i);
            CFX_TRY(plan_memory(b, t, CFXI_MEMORY_ARENA));
        }
        CFX_TRY(list_tensor(b, t));
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
        (const cfxi_instruction *)plan->program->instructions.data + plan->running;
    cfx_datum *args = cfxi_base_alloc(plan->allocator, CFXI_MOST_PARAMS * sizeof *args);
    cfxi_step *step = args ? push(&plan->steps, sizeof *step, plan->allocator, b->err) : NULL;
    if (!step) {
        cfxi_base_free(plan->allocator, args, CFXI_MOST_PARAMS * sizeof *args);
        return cfxi_base_nomem(c->err);
    }
    *step = (cfxi_step){.op = c->op, .node = at->name, .file = at->file, .line = at->line,
                        .num_args = s->num_params, .num_results = s->num_results, .args = args,
                        .signature = s, .x = CFXI_NONE, .out = CFXI_NONE};
    for (size_t i = 0; i < CFXI_MOST_PARAMS; i++)
        args[i] = cfx_datum_invalid();
    const cfx_status status = keep_call(b, step, c, s);
    return status == CFX_OK || b->err == c->err ? status
                                                : cfx_error_set(c->err, status, "out of memory");
}

/* ---- the program --------------------------------------------------------------------------- */

static void drop(builder *b, size_t depth)
{
    while (b->depth > depth)
        cfx_datum_release(b->stack[--b->depth]);
}

/* ---- layouts of images --------------------------------------------------------------------- */

/* Whether an operator gives the same elements for any strides of its arguments, and its result the
 * layout of its first argument. Others get the layout that the program would have. */
static bool keeps_layout(cfx_operator op)
{
    switch ((int)op) {
    case CFX_OPID_conv2d: case CFX_OPID_convolution: case CFX_OPID_batch_norm:
    case CFX_OPID_max_pool2d: case CFX_OPID_avg_pool2d: case CFX_OPID_adaptive_avg_pool2d:
    case CFX_OPID_dropout: case CFX_OPID_cat: case CFX_OPID_mean:
        return true;
    default:
        return cfx_operator_flags(op) & CFX_OPERATOR_ELEMENTWISE;
    }
}

static bool has_strides_of(const cfx_tensor *a, const cfx_tensor *b)
{
    for (size_t i = 0; i < a->ndim && i < b->ndim; i++)
        if (a->size[i] > 1 && a->stride[i] != b->stride[i])
            return false;
    return a->ndim == b->ndim;
}

static bool is_planned(cfx_datum d)
{
    return d.kind == CFX_DATUM_TENSOR && d.as.tensor->storage && d.as.tensor->storage->planned;
}

/* A tensor in the layout that the program would have it in. Takes `d` over. */
static cfx_datum restored(builder *b, cfx_datum d, cfx_datum was)
{
    if (!is_planned(d) || was.kind != CFX_DATUM_TENSOR ||
        has_strides_of(d.as.tensor, was.as.tensor))
        return d;
    cfx_datum result = cfx_datum_invalid();
    if (cfx_tensor_is_contiguous(was.as.tensor))
        result = cfxi_rt_call_planned(b->plan->rt, &b->planner, CFX_OPID_contiguous, &d, 1, b->err);
    else
        cfx_error_set(b->err, CFX_E_UNSUPPORTED, "strides that are not kept");
    cfx_datum_release(d);
    return result;
}

/* The image of a convolution with known weights, with its channels side by side. */
static cfx_status turn_image(builder *b, cfx_operator op)
{
    const cfx_datum x = b->stack[0];
    const bool is_conv = (op == CFX_OPID_conv2d || op == CFX_OPID_convolution) && b->depth > 1 &&
                         is_planned(x) && x.as.tensor->ndim == 4 &&
                         x.as.tensor->dtype == CFX_DTYPE_FLOAT32 && !is_planned(b->stack[1]);
    b->finds_images = b->finds_images || is_conv;
    if (!is_conv || !b->eager || x.as.tensor->stride[1] == 4)
        return CFX_OK;
    cfx_tensor *turned = cfxi_base_pointers_get(&b->turned, x.as.tensor);
    if (!turned) {
        const cfx_datum args[] = {
            x, cfx_datum_scalar(CFX_DATUM_MEMORY_FORMAT, CFX_MEMORY_FORMAT_CHANNELS_LAST)};
        turned = cfxi_rt_call_planned(b->plan->rt, &b->planner, CFX_OPID_contiguous, args, 2,
                                      b->err).as.tensor;
        if (b->err->status != CFX_OK)
            return b->err->status;
        if (!cfxi_base_pointers_set(&b->turned, x.as.tensor, turned, b->plan->allocator)) {
            cfx_tensor_release(turned);
            return cfxi_base_nomem(b->err);
        }
    }
    cfx_datum_release(x);  /* its header stays: a step has it */
    b->stack[0] = cfx_datum_tensor(cfx_tensor_retain(turned));
    return CFX_OK;
}

static void forget_turned(builder *b)
{
    size_t at = 0;
    for (cfx_tensor *t; (t = cfxi_base_pointers_next(&b->turned, &at)) != NULL;)
        cfx_tensor_release(t);
    cfxi_base_pointers_free(&b->turned, b->plan->allocator);
}

/* ---- values -------------------------------------------------------------------------------- */

/* Puts what the pieces say on the stack. Slots keep their values: they are only headers. */
static cfx_status evaluate(builder *b, uint32_t first, uint32_t end, bool any_layout)
{
    const cfx_program *p = b->plan->program;
    const cfxi_piece *pieces = p->pieces.data;
    const cfx_datum *constants = p->constants.data;
    for (uint32_t i = first; i < end; i++) {
        const cfxi_piece *piece = &pieces[i];
        cfx_datum d;
        if (piece->kind == CFXI_PIECE_SEQ) {
            const size_t from = b->depth - piece->index;
            d = cfx_datum_seq((cfx_datum_kind)piece->datum, b->stack + from, piece->index,
                              b->plan->allocator, b->err);
            drop(b, from);
        } else {
            const bool constant = piece->kind == CFXI_PIECE_CONSTANT;
            d = cfx_datum_retain(constant ? constants[piece->index] : b->slots[piece->index]);
            if (!constant && b->eager && !any_layout)
                d = restored(b, d, b->was[piece->index]);
        }
        b->stack[b->depth++] = d;
        if (d.kind == CFX_DATUM_INVALID)
            return b->err->status;
    }
    return CFX_OK;
}

static cfx_status run_instruction(builder *b, const cfxi_instruction *i)
{
    if (i->custom)
        return cfx_error_set(b->err, CFX_E_UNSUPPORTED, "custom operators have no plan");
    CFX_TRY(evaluate(b, i->first, i->end, keeps_layout(i->op)));
    CFX_TRY(turn_image(b, i->op));
    cfx_datum result = cfxi_rt_call_planned(b->plan->rt, &b->planner, i->op, b->stack, i->num_args,
                                            b->err);
    drop(b, 0);
    if (result.kind == CFX_DATUM_INVALID)
        return b->err->status;
    cfx_datum *given = push(&b->plan->given, sizeof *given, b->plan->allocator, b->err);
    if (given)
        *given = cfx_datum_retain(result);
    if (i->slot == CFXI_NO_SLOT) {
        cfx_datum_release(result);
        return CFX_OK;
    }
    cfx_datum_release(b->slots[i->slot]);
    b->slots[i->slot] = result;
    if (b->eager)
        b->was[i->slot] = b->eager[b->plan->running];
    return given ? CFX_OK : CFX_E_NOMEM;
}

/* An input with planned memory of the same layout. */
static cfx_datum plan_input(builder *b, const cfx_tensor *given, uint32_t index)
{
    cfx_tensor *t = cfxi_tensor_header((cfx_dtype)given->dtype, given->size, given->ndim,
                                       b->plan->allocator, b->err);
    if (!t)
        return cfx_datum_invalid();
    memcpy(t->stride, given->stride, sizeof t->stride);
    cfxi_memory *m = new_memory(b, CFXI_MEMORY_INPUT, given->storage->size);
    if (!m) {
        cfx_tensor_release(t);
        return cfx_datum_invalid();
    }
    m->index = index;
    m->storage.read_only = given->storage->read_only;
    t->storage = &m->storage;
    t->data = m->storage.data + (given->data - given->storage->data);
    return cfx_datum_tensor(t);
}

/* Lists may be changed by the program, and tensors in them are not looked for: not planned. */
static bool is_plain(cfx_datum d)
{
    return d.kind != CFX_DATUM_LIST && d.kind != CFX_DATUM_DICT && d.kind != CFX_DATUM_TUPLE &&
           d.kind != CFX_DATUM_REGION;
}

static cfx_status set_inputs(builder *b, const cfx_datum *inputs, size_t n)
{
    const cfx_program *p = b->plan->program;
    for (size_t i = 0; i < p->inputs.size; i++) {
        const cfxi_input *input = (const cfxi_input *)p->inputs.data + i;
        const cfx_datum d = i < n && inputs[i].kind != CFX_DATUM_INVALID ? inputs[i] : input->value;
        if (d.kind == CFX_DATUM_INVALID)
            return cfx_error_set(b->err, CFX_E_TYPE, "the input '%s' is missing", input->name);
        if (!is_plain(d) || (d.kind == CFX_DATUM_TENSOR && !d.as.tensor->storage))
            return cfx_error_set(b->err, CFX_E_UNSUPPORTED, "the input '%s' has no plan",
                                 input->name);
        cfx_datum planned = d.kind == CFX_DATUM_TENSOR ? plan_input(b, d.as.tensor, (uint32_t)i)
                                                       : cfx_datum_retain(d);
        if (planned.kind == CFX_DATUM_INVALID)
            return b->err->status;
        b->plan->inputs[i] = planned;
        CFX_TRY(list_tensors(b, planned));
        if (input->slot != CFXI_NO_SLOT)
            b->slots[input->slot] = cfx_datum_retain(planned);
        if (input->slot != CFXI_NO_SLOT && b->eager)
            b->was[input->slot] = planned;
    }
    return CFX_OK;
}

static cfx_status run_program(builder *b, const cfx_datum *inputs, size_t n)
{
    const cfx_program *p = b->plan->program;
    CFX_TRY(set_inputs(b, inputs, n));
    for (size_t i = 0; i < p->instructions.size; i++) {
        b->plan->running = (uint32_t)i;
        CFX_TRY(run_instruction(b, (const cfxi_instruction *)p->instructions.data + i));
    }
    if (p->result == CFXI_NO_SLOT) {
        b->plan->result = cfx_datum_none();
        return CFX_OK;
    }
    CFX_TRY(evaluate(b, p->result, (uint32_t)p->pieces.size, false));
    b->plan->result = b->stack[--b->depth];
    return list_tensors(b, b->plan->result);
}

/* `eager` as in builder. *finds_images becomes whether to build once more. */
static cfx_status build(cfxi_plan *plan, const cfx_datum *inputs, size_t n, const cfx_datum *eager,
                        bool *finds_images, cfx_error *err)
{
    const cfx_program *p = plan->program;
    builder b = {.planner = {note}, .plan = plan, .address = FIRST_ADDRESS, .eager = eager,
                 .err = err};
    const size_t count = 2 * (size_t)p->num_slots + p->most_pieces + 1;
    b.slots = cfxi_base_alloc(plan->allocator, count * sizeof *b.slots);
    if (!b.slots)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < count; i++)
        b.slots[i] = cfx_datum_invalid();
    b.was = b.slots + p->num_slots;
    b.stack = b.was + p->num_slots;
    const cfx_status status = run_program(&b, inputs, n);
    *finds_images = b.finds_images;
    drop(&b, 0);
    forget_turned(&b);
    for (size_t i = 0; i < p->num_slots; i++)
        cfx_datum_release(b.slots[i]);
    cfxi_base_free(plan->allocator, b.slots, count * sizeof *b.slots);
    return status;
}

/* ---- the plan ------------------------------------------------------------------------------ */

static cfxi_plan *plan_with(const cfx_program *p, cfx_runtime *rt, const cfx_datum *inputs,
                            size_t n, const cfx_datum *eager, bool *finds_images, cfx_error *err)
{
    cfxi_plan *plan = cfxi_base_alloc(p->allocator, sizeof *plan);
    if (!plan)
        return cfxi_base_nomem(err), NULL;
    *plan = (cfxi_plan){.allocator = p->allocator, .rt = rt, .program = p,
                        .num_inputs = p->inputs.size, .result = cfx_datum_invalid()};
    plan->inputs = cfxi_base_alloc(p->allocator, (p->inputs.size + 1) * sizeof *plan->inputs);
    for (size_t i = 0; plan->inputs && i < p->inputs.size; i++)
        plan->inputs[i] = cfx_datum_invalid();
    if (!plan->inputs)
        cfxi_base_nomem(err);
    else if (build(plan, inputs, n, eager, finds_images, err) == CFX_OK)
        return plan;
    cfxi_plan_free(plan);
    return NULL;
}

/* Where there are images, the plan is built again: with their channels side by side as far as the
 * program cannot tell, and in the program's own layout wherever it can. */
cfxi_plan *cfxi_plan_new(const cfx_program *p, cfx_runtime *rt, const cfx_datum *inputs, size_t n,
                         cfx_error *err)
{
    cfx_error own;
    bool finds_images = false;
    err = cfxi_base_error_or(err, &own);
    cfxi_plan *plan = plan_with(p, rt, inputs, n, NULL, &finds_images, err);
    if (plan && finds_images) {
        cfx_error why = {0};
        cfxi_plan *turned = plan_with(p, rt, inputs, n, plan->given.data, &finds_images, &why);
        if (turned) {
            cfxi_plan_free(plan);
            plan = turned;
        } else if (why.status == CFX_E_NOMEM) {
            cfxi_plan_free(plan);
            return cfxi_base_nomem(err), NULL;
        }
    }
    if (plan && cfxi_plan_fuse(plan, err) == CFX_OK && cfxi_plan_lay_out(plan, err) == CFX_OK)
        return plan;
    cfxi_plan_free(plan);
    return NULL;
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
}

void cfxi_plan_free(cfxi_plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->steps.size; i++)
        free_step(plan, cfxi_plan_step(plan, i));
    for (size_t i = 0; plan->inputs && i < plan->num_inputs; i++)
        cfx_datum_release(plan->inputs[i]);
    cfx_datum_release(plan->result);
    for (size_t i = 0; i < plan->given.size; i++)
        cfx_datum_release(((cfx_datum *)plan->given.data)[i]);
    for (uint32_t i = 0; i < plan->tensors.size; i++)
        cfx_tensor_release(cfxi_plan_tensor(plan, i)->header);
    for (uint32_t i = 0; i < plan->memories.size; i++)
        cfxi_base_free(plan->allocator, cfxi_plan_memory(plan, i), sizeof(cfxi_memory));
    if (plan->inputs)
        cfxi_base_free(plan->allocator, plan->inputs,
                       (plan->num_inputs + 1) * sizeof *plan->inputs);
    cfxi_base_map_free(&plan->by_header, sizeof(uint64_t), plan->allocator);
    cfxi_base_vec_free(&plan->given, sizeof(cfx_datum), plan->allocator);
    cfxi_base_vec_free(&plan->memories, sizeof(cfxi_memory *), plan->allocator);
    cfxi_base_vec_free(&plan->tensors, sizeof(cfxi_planned_tensor), plan->allocator);
    cfxi_base_vec_free(&plan->steps, sizeof(cfxi_step), plan->allocator);
    cfxi_base_free(plan->allocator, plan, sizeof *plan);
}

/* ---- which inputs it is for ---------------------------------------------------------------- */

static bool is_like(const cfx_tensor *a, const cfx_tensor *b)
{
    const size_t bytes = a->ndim * sizeof *a->size;
    return b->storage && a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->size, b->size, bytes) == 0 && memcmp(a->stride, b->stride, bytes) == 0 &&
           a->data - a->storage->data == b->data - b->storage->data &&
           a->storage->size <= b->storage->size;
}

static bool is_same(cfx_datum planned, cfx_datum given)
{
    if (planned.kind != given.kind)
        return false;
    switch ((cfx_datum_kind)planned.kind) {
    case CFX_DATUM_TENSOR: return is_like(planned.as.tensor, given.as.tensor);
    case CFX_DATUM_BOOL: return planned.as.b == given.as.b;
    case CFX_DATUM_FLOAT: return planned.as.f == given.as.f;
    case CFX_DATUM_NONE: return true;
    case CFX_DATUM_INT: case CFX_DATUM_DTYPE: case CFX_DATUM_LAYOUT:
    case CFX_DATUM_MEMORY_FORMAT: return planned.as.i == given.as.i;
    default: return false;
    }
}

bool cfxi_plan_takes(const cfxi_plan *plan, const cfx_datum *inputs, size_t n)
{
    for (size_t i = 0; i < plan->num_inputs; i++) {
        const cfxi_input *input = (const cfxi_input *)plan->program->inputs.data + i;
        const cfx_datum d = i < n && inputs[i].kind != CFX_DATUM_INVALID ? inputs[i] : input->value;
        if (!is_same(plan->inputs[i], d))
            return false;
    }
    return n <= plan->num_inputs;
}
