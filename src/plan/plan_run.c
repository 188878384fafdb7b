/* plan_run.c - a session: memory for one run of a plan, and the run.
 *
 * A session has a copy of every planned header, whose data points to where it is in this session.
 * Headers over the caller's inputs and over results are pointed anew in each run, the others once.
 */
#include "plan_impl.h"

/* A step, ready to run. */
typedef struct ready_step {
    cfxi_call call;          /* of a row's kernel */
    cfx_datum *args;
    cfx_tensor *planned[CFXI_MOST_RESULTS];
} ready_step;

struct cfxi_plan_session {
    const cfxi_plan *plan;
    cfx_tensor *headers;     /* one for each planned tensor */
    cfxi_storage *storages;  /* one for each memory */
    char *arena;             /* aligned */
    void *raw;
    ready_step *steps;
    uint32_t *moving;        /* headers over inputs and results, by memory */
    size_t num_moving;
    cfx_tensor **results;    /* one for each RESULT memory, flat bytes: kept for the next run */
    cfx_tensor **inputs;     /* of this run, borrowed: the tensors in its inputs */
    cfx_datum *left;         /* what is put into slots */
    cfx_tensor **copies;     /* of the plan's shared constants, while that is done */
};

enum { FOREVER = 1 << 30 };  /* references that nobody gives back */

/* ---- making -------------------------------------------------------------------------------- */

static void point(cfxi_plan_session *s, uint32_t i, char *base)
{
    s->headers[i].data = base + cfxi_plan_tensor(s->plan, i)->offset;
}

static void make_headers(cfxi_plan_session *s)
{
    const cfxi_plan *plan = s->plan;
    for (uint32_t i = 0; i < plan->memories.size; i++) {
        const cfxi_memory *m = cfxi_plan_memory(plan, i);
        s->storages[i] = (cfxi_storage){.read_only = m->storage.read_only, .size = m->size,
                                        .data = s->arena + m->offset,
                                        .allocator = plan->allocator};
        atomic_init(&s->storages[i].refs, FOREVER);
    }
    for (uint32_t i = 0; i < plan->tensors.size; i++) {
        const cfxi_planned_tensor *t = cfxi_plan_tensor(plan, i);
        memcpy(&s->headers[i], t->header, sizeof *s->headers);
        atomic_init(&s->headers[i].refs, FOREVER);
        s->headers[i].storage = &s->storages[t->memory];
        if (cfxi_plan_memory(plan, t->memory)->kind == CFXI_MEMORY_ARENA)
            point(s, i, s->storages[t->memory].data);
        else
            s->moving[s->num_moving++] = i;
    }
}

/* A planned tensor as this session's header; constants are shared. */
static cfx_datum resolve(void *ctx, cfx_tensor *t, cfx_datum beside, cfx_error *err)
{
    const cfxi_plan_session *s = ctx;
    const uint32_t number = cfxi_plan_number(s->plan, t);
    (void)beside;
    (void)err;
    return cfx_datum_tensor(number != CFXI_NONE ? &s->headers[number] : cfx_tensor_retain(t));
}

static cfx_status make_step(cfxi_plan_session *s, const cfxi_step *from, ready_step *to,
                            cfx_error *err)
{
    to->args = cfxi_base_alloc(s->plan->allocator, CFXI_MOST_PARAMS * sizeof *to->args);
    if (!to->args)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < CFXI_MOST_PARAMS; i++)
        to->args[i] = cfx_datum_invalid();
    for (size_t i = 0; i < from->num_args; i++) {
        to->args[i] = cfxi_plan_map(from->args[i], cfx_datum_invalid(), resolve, s,
                                    s->plan->allocator, err);
        if (to->args[i].kind == CFX_DATUM_INVALID && from->args[i].kind != CFX_DATUM_INVALID)
            return CFX_E_NOMEM;
    }
    to->call = (cfxi_call){.op = from->op, .args = to->args};
    for (size_t i = 0; i < from->num_results; i++) {
        if (from->results[i].kind != CFX_DATUM_TENSOR)
            continue;  /* None */
        to->call.results[i] = resolve(s, from->results[i].as.tensor, cfx_datum_invalid(), err);
        to->planned[i] = to->call.results[i].as.tensor;
    }
    return CFX_OK;
}

static cfx_status fill(cfxi_plan_session *s, cfx_error *err)
{
    const cfxi_plan *plan = s->plan;
    const cfx_allocator *a = plan->allocator;
    s->headers = cfxi_base_alloc(a, (plan->tensors.size + 1) * sizeof *s->headers);
    s->storages = cfxi_base_alloc(a, (plan->memories.size + 1) * sizeof *s->storages);
    s->moving = cfxi_base_alloc(a, (plan->tensors.size + 1) * sizeof *s->moving);
    s->results = cfxi_base_alloc(a, (plan->num_results + 1) * sizeof *s->results);
    s->inputs = cfxi_base_alloc(a, (plan->num_inputs + 1) * sizeof *s->inputs);
    s->left = cfxi_base_alloc(a, (plan->outs.size + 1) * sizeof *s->left);
    s->copies = cfxi_base_alloc(a, (plan->shared.size + 1) * sizeof *s->copies);
    s->raw = cfxi_base_alloc(a, plan->arena + 2 * CFXI_ALIGN);
    if (s->raw)
        cfxi_base_prefer_large_pages(s->raw, plan->arena);
    s->steps = cfxi_base_alloc(a, (plan->steps.size + 1) * sizeof *s->steps);
    if (s->steps)
        memset(s->steps, 0, (plan->steps.size + 1) * sizeof *s->steps);
    for (uint32_t i = 0; s->results && i < plan->num_results; i++)
        s->results[i] = NULL;
    if (!s->raw)
        return cfx_error_set(err, CFX_E_NOMEM, "out of memory: the values of a run need %llu bytes "
                             "for these sizes", (unsigned long long)plan->arena);
    if (!s->headers || !s->storages || !s->moving || !s->results || !s->inputs || !s->left ||
        !s->copies || !s->steps)
        return cfxi_base_nomem(err);
    s->arena = (char *)(((uintptr_t)s->raw + CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN);
    make_headers(s);
    for (size_t i = 0; i < plan->steps.size; i++) {
        const cfxi_step *step = cfxi_plan_step(plan, i);
        if (!step->removed && !step->kernel)
            CFX_TRY(make_step(s, step, &s->steps[i], err));
    }
    return CFX_OK;
}

cfxi_plan_session *cfxi_plan_session_new(const cfxi_plan *plan, cfx_error *err)
{
    cfxi_plan_session *s = cfxi_base_alloc(plan->allocator, sizeof *s);
    if (!s)
        return cfxi_base_nomem(err), NULL;
    *s = (cfxi_plan_session){.plan = plan};
    if (fill(s, err) == CFX_OK)
        return s;
    cfxi_plan_session_free(s);
    return NULL;
}

void cfxi_plan_session_free(cfxi_plan_session *s)
{
    if (!s)
        return;
    const cfxi_plan *plan = s->plan;
    const cfx_allocator *a = plan->allocator;
    for (size_t i = 0; s->steps && i < plan->steps.size; i++) {
        for (size_t k = 0; s->steps[i].args && k < CFXI_MOST_PARAMS; k++)
            cfx_datum_release(s->steps[i].args[k]);
        if (s->steps[i].args)
            cfxi_base_free(a, s->steps[i].args, CFXI_MOST_PARAMS * sizeof(cfx_datum));
    }
    cfxi_base_free(a, s->steps, (plan->steps.size + 1) * sizeof *s->steps);
    cfxi_base_free(a, s->raw, plan->arena + 2 * CFXI_ALIGN);
    for (uint32_t i = 0; s->results && i < plan->num_results; i++)
        cfx_tensor_release(s->results[i]);
    cfxi_base_free(a, s->copies, (plan->shared.size + 1) * sizeof *s->copies);
    cfxi_base_free(a, s->left, (plan->outs.size + 1) * sizeof *s->left);
    cfxi_base_free(a, s->inputs, (plan->num_inputs + 1) * sizeof *s->inputs);
    cfxi_base_free(a, s->results, (plan->num_results + 1) * sizeof *s->results);
    cfxi_base_free(a, s->moving, (plan->tensors.size + 1) * sizeof *s->moving);
    cfxi_base_free(a, s->storages, (plan->memories.size + 1) * sizeof *s->storages);
    cfxi_base_free(a, s->headers, (plan->tensors.size + 1) * sizeof *s->headers);
    cfxi_base_free(a, s, sizeof *s);
}

/* ---- a run --------------------------------------------------------------------------------- */

/* Memory for what is returned: that of an earlier run, if its caller has given it up. */
static cfx_status make_results(cfxi_plan_session *s, cfx_error *err)
{
    const cfxi_plan *plan = s->plan;
    for (uint32_t i = 0; i < plan->memories.size; i++) {
        const cfxi_memory *m = cfxi_plan_memory(plan, i);
        if (m->kind != CFXI_MEMORY_RESULT || m->part_of != CFXI_NONE)
            continue;
        cfx_tensor **result = &s->results[m->index];
        if (*result && atomic_load_explicit(&(*result)->storage->refs, memory_order_acquire) == 1)
            continue;
        const int64_t bytes = (int64_t)m->size;
        cfx_tensor_release(*result);
        *result = cfx_tensor_new(CFX_DTYPE_UINT8, &bytes, 1, plan->allocator, err);
        if (!*result)
            return CFX_E_NOMEM;
    }
    return CFX_OK;
}

static void find_inputs(cfxi_plan_session *s, cfx_datum d, uint32_t *count)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        find_inputs(s, items[i], count);
    if (d.kind == CFX_DATUM_TENSOR) {
        cfxi_tensor_settle(d.as.tensor, NULL);  /* without memory it stays where it is */
        s->inputs[(*count)++] = d.as.tensor;
    }
}

/* Points headers over inputs and results to where they are in this run. */
static void point_moving(cfxi_plan_session *s, const cfx_datum *slots)
{
    const cfxi_plan *plan = s->plan;
    uint32_t count = 0;
    for (size_t i = 0; i < plan->inputs.size; i++)
        find_inputs(s, slots[cfxi_plan_input(plan, i)->slot], &count);
    for (uint32_t i = 0; i < plan->memories.size; i++) {
        const cfxi_memory *m = cfxi_plan_memory(plan, i);
        if (m->kind == CFXI_MEMORY_RESULT)
            s->storages[i].data = s->results[m->index]->data + m->offset;
        else if (m->kind == CFXI_MEMORY_INPUT)
            s->storages[i].data = s->inputs[m->index]->data - m->offset;
    }
    for (size_t i = 0; i < s->num_moving; i++)
        point(s, s->moving[i],
              s->storages[cfxi_plan_tensor(plan, s->moving[i])->memory].data);
}

static const float *floats(const cfxi_plan_session *s, uint32_t tensor)
{
    return (const float *)(const void *)s->headers[tensor].data;
}

static cfx_status run_kernel(const cfxi_plan_session *s, cfx_runtime *rt, const cfxi_step *step,
                             cfx_error *err)
{
    cfxi_run r = {.rt = rt, .x = step->x != CFXI_NONE ? floats(s, step->x) : NULL,
                  .out = (float *)(void *)s->headers[step->out].data,
                  .out_tensor = &s->headers[step->out]};
    for (size_t i = 0; i < step->num_operands; i++) {
        r.operands[i] = floats(s, step->operands[i]);
        if (i < CFXI_CHAIN_INPUTS)
            r.tensors[i] = &s->headers[step->operands[i]];
    }
    return step->kernel->backend->run(step->kernel, &r, err);
}

/* A kernel that chooses where its result is gets a header of its own for it. */
static cfx_status make_choices(ready_step *r, const cfxi_step *step)
{
    for (size_t i = 0; i < step->num_results; i++) {
        const cfx_tensor *planned = r->planned[i];
        if (!(step->chosen & 1u << i) || !planned)
            continue;
        cfx_tensor *t = cfxi_tensor_header((cfx_dtype)planned->dtype, planned->size, planned->ndim,
                                           planned->allocator, r->call.err);
        if (!t)
            return CFX_E_NOMEM;
        memcpy(t->stride, planned->stride, sizeof t->stride);
        r->call.results[i] = cfx_datum_tensor(t);
    }
    return CFX_OK;
}

static cfx_status run_row(ready_step *r, const cfxi_step *step)
{
    const cfxi_signature *s = cfxi_rt_signature_of(r->call.rt, step->op, r->call.err);
    r->call.planned = r->planned;
    if (!s)
        return CFX_E_NOMEM;
    if (step->chosen)
        CFX_TRY(make_choices(r, step));
    return cfxi_rt_call_kernel(&r->call, s);
}

/* ---- for who is told ----------------------------------------------------------------------- */

static uint64_t bytes_of(const cfxi_plan *plan, const cfxi_step *step)
{
    uint64_t bytes = 0;
    if (step->kernel) {
        bytes = cfxi_plan_weights(step) +
                cfxi_rt_bytes_of(cfx_datum_tensor(cfxi_plan_tensor(plan, step->out)->header));
        if (step->x != CFXI_NONE)
            bytes += cfxi_rt_bytes_of(cfx_datum_tensor(cfxi_plan_tensor(plan, step->x)->header));
        for (size_t i = 0; i < step->num_operands; i++)
            bytes += cfxi_rt_bytes_of(
                cfx_datum_tensor(cfxi_plan_tensor(plan, step->operands[i])->header));
        return bytes;
    }
    for (size_t i = 0; i < step->num_args; i++)
        bytes += cfxi_rt_bytes_of(step->args[i]);
    for (size_t i = 0; i < step->num_results; i++)
        bytes += cfxi_rt_bytes_of(step->results[i]);
    return bytes;
}

static double lstm_flops(const cfxi_lstm *l)
{
    const double inputs = (double)(l->input + (l->layers - 1) * l->hidden + l->layers * l->hidden);
    return 8.0 * (double)l->steps * (double)l->batch * (double)l->hidden * inputs;
}

static double flops_of(const cfxi_step *step, const ready_step *ready)
{
    const cfxi_problem *p = step->kernel ? &step->kernel->problem : NULL;
    if (!p)
        return (double)cfxi_rt_flops(&ready->call, step->op, step->num_args, step->results[0]);
    switch (p->kind) {
    case CFXI_PRODUCT: case CFXI_ATTENTION: case CFXI_WEIGHT_ONLY: case CFXI_DYNAMIC:
        return 2.0 * (double)p->m * (double)p->n * (double)p->k;
    case CFXI_MATMUL:
        return 2.0 * (double)(p->m * p->integers.batches) * (double)p->n * (double)p->k;
    case CFXI_CHAIN: return (double)p->m * (double)p->chain->num_ops;
    case CFXI_LSTM: return lstm_flops(&p->lstm);
    case CFXI_CONVOLUTION: break;
    }
    const cfxi_conv *c = &p->conv;
    return 2.0 * (double)(c->batch * c->groups * c->out_channels * c->in_channels) *
           (double)(c->out[0] * c->out[1] * c->out[2]) *
           (double)(c->kernel[0] * c->kernel[1] * c->kernel[2]);
}

static void tell(const cfxi_plan_session *s, cfx_runtime *rt, size_t i, uint64_t begin)
{
    const cfxi_step *step = cfxi_plan_step(s->plan, i);
    char kernel[80];
    cfx_step told = {.node = step->node, .file = step->file, .line = step->line, .begin = begin,
                     .kernel = kernel, .flops = flops_of(step, &s->steps[i]),
                     .bytes = bytes_of(s->plan, step)};
    cfxi_plan_kernel_text(step, kernel, sizeof kernel);
    cfxi_rt_tell_step(rt, told);
}

/* A kernel's message says what is wrong; here comes which operator it was, and where. */
static cfx_status locate(const cfxi_step *step, cfx_error *err)
{
    const cfx_error why = *err;
    if (why.status == CFX_E_NOMEM || strstr(why.message, "(node %"))
        return why.status;
    cfx_error_set(err, why.status, "%s: %.280s", cfx_operator_name(step->op), why.message);
    cfxi_rt_locate(step->node, step->file, step->line, err);
    return why.status;
}

static cfx_status run_steps(cfxi_plan_session *s, cfx_runtime *rt, cfx_error *err)
{
    const cfxi_plan *plan = s->plan;
    for (size_t i = 0; i < plan->steps.size; i++) {
        const cfxi_step *step = cfxi_plan_step(plan, i);
        cfx_status status = CFX_OK;
        if (step->removed)
            continue;
        CFX_TRY(cfxi_rt_go_on(rt, err));
        const uint64_t begin = rt->step ? cfxi_rt_clock() : 0;
        s->steps[i].call.err = err;
        s->steps[i].call.rt = rt;
        if (step->kernel)
            status = run_kernel(s, rt, step, err);
        else
            status = run_row(&s->steps[i], step);
        if (status != CFX_OK)
            return locate(step, err);
        if (rt->step)
            tell(s, rt, i, begin);
    }
    return CFX_OK;
}

/* ---- what is left in slots ----------------------------------------------------------------- */

/* A planned tensor as one of the caller's: over a result, or over an input. */
static cfx_datum leave_tensor(const cfxi_plan_session *s, uint32_t number, cfx_error *err)
{
    const cfxi_planned_tensor *t = cfxi_plan_tensor(s->plan, number);
    const cfxi_memory *m = cfxi_plan_memory(s->plan, t->memory);
    const bool is_input = m->kind == CFXI_MEMORY_INPUT;
    cfx_tensor *base = is_input ? s->inputs[m->index] : s->results[m->index];
    if (is_input && (size_t)t->offset == m->offset &&
        t->header == cfxi_plan_tensor(s->plan, m->own)->header)
        return cfx_datum_tensor(cfx_tensor_retain(base));  /* the input itself */
    cfx_tensor *made = cfxi_plan_header_like(s->plan, t->header, err);
    if (made && cfxi_tensor_share(made, base, t->offset - (is_input ? (int64_t)m->offset : 0),
                                  err) == CFX_OK)
        return cfx_datum_tensor(made);
    cfx_tensor_release(made);
    return cfx_datum_invalid();
}

typedef struct leaving {
    const cfxi_plan_session *s;
    cfx_runtime *rt;
    size_t count;  /* of the outs that are left already */
} leaving;

static cfx_datum leave(void *ctx, cfx_tensor *t, cfx_datum beside, cfx_error *err)
{
    const leaving *l = ctx;
    const cfxi_plan *plan = l->s->plan;
    (void)beside;
    const uint64_t *first = cfxi_base_map_find(&plan->first_out, t, sizeof *first);
    if (first && *first <= l->count)  /* slots that had one tensor have one again */
        return cfx_datum_retain(l->s->left[*first - 1]);
    const uint32_t number = cfxi_plan_number(plan, t);
    return number != CFXI_NONE
               ? leave_tensor(l->s, number, err)
               : cfx_datum_tensor(cfxi_plan_copy_constant(plan, l->rt, t, l->s->copies, err));
}

static cfx_status leave_all(cfxi_plan_session *s, cfx_runtime *rt, cfx_datum *slots, cfx_error *err)
{
    const cfxi_plan *plan = s->plan;
    leaving l = {.s = s, .rt = rt};
    for (size_t i = 0; i < plan->shared.size; i++)
        s->copies[i] = NULL;
    for (; l.count < plan->outs.size; l.count++) {
        s->left[l.count] = cfxi_plan_map(cfxi_plan_out(plan, l.count)->value, cfx_datum_invalid(),
                                         leave, &l, plan->allocator, err);
        if (s->left[l.count].kind == CFX_DATUM_INVALID)
            break;
    }
    for (size_t i = 0; i < plan->shared.size; i++)
        cfx_tensor_release(s->copies[i]);
    if (l.count < plan->outs.size) {
        while (l.count > 0)
            cfx_datum_release(s->left[--l.count]);
        return err->status;
    }
    for (size_t i = 0; i < plan->inputs.size; i++) {
        cfx_datum *slot = &slots[cfxi_plan_input(plan, i)->slot];
        if (!cfxi_plan_input(plan, i)->taken)
            continue;
        cfx_datum_release(*slot);
        *slot = cfx_datum_invalid();
    }
    for (size_t i = 0; i < plan->outs.size; i++)
        slots[cfxi_plan_out(plan, i)->slot] = s->left[i];
    return CFX_OK;
}

cfx_status cfxi_plan_run(cfxi_plan_session *s, cfx_runtime *rt, cfx_datum *slots, cfx_error *err)
{
    CFX_TRY(make_results(s, err));
    point_moving(s, slots);
    CFX_TRY(run_steps(s, rt, err));
    return leave_all(s, rt, slots, err);
}
