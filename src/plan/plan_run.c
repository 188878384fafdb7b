/* plan_run.c - a session: memory for one run of a plan, and the run.
 *
 * A session has a copy of every planned header, whose data points to where it is in this session.
 * Headers over the caller's inputs and over results are pointed anew in each run, the others once.
 */
#include "plan_impl.h"

#include <stdio.h>

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
    cfx_tensor **results;    /* of this run: one for each RESULT memory, flat bytes */
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

/* A copy of a datum in which planned tensors are this session's; constants are shared. */
static cfx_datum resolved(const cfxi_plan_session *s, cfx_datum d, cfx_error *err)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    const uint32_t number =
        d.kind == CFX_DATUM_TENSOR ? cfxi_plan_number(s->plan, d.as.tensor) : CFXI_NONE;
    if (number != CFXI_NONE) {
        d.as.tensor = &s->headers[number];
        return d;
    }
    if (!items)
        return cfx_datum_retain(d);
    cfx_datum few[8];
    cfx_datum *room =
        n <= 8 ? few : cfxi_base_alloc(s->plan->allocator, n * sizeof *room);
    size_t made = 0;
    cfx_datum result = cfx_datum_invalid();
    for (; room && made < n; made++) {
        room[made] = resolved(s, items[made], err);
        if (room[made].kind == CFX_DATUM_INVALID && items[made].kind != CFX_DATUM_INVALID)
            break;
    }
    if (room && made == n) {
        result = cfx_datum_seq((cfx_datum_kind)d.kind, room, n, s->plan->allocator, err);
        if (result.kind != CFX_DATUM_INVALID)
            result.as.seq->op = d.as.seq->op;
    } else if (!room) {
        cfxi_base_nomem(err);
    }
    for (size_t i = 0; i < made; i++)
        cfx_datum_release(room[i]);
    if (room && room != few)
        cfxi_base_free(s->plan->allocator, room, n * sizeof *room);
    return result;
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
        to->args[i] = resolved(s, from->args[i], err);
        if (to->args[i].kind == CFX_DATUM_INVALID && from->args[i].kind != CFX_DATUM_INVALID)
            return CFX_E_NOMEM;
    }
    to->call = (cfxi_call){.op = from->op, .args = to->args, .rt = s->plan->rt};
    for (size_t i = 0; i < from->num_results; i++) {
        to->call.results[i] = resolved(s, from->results[i], err);
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
    s->raw = cfxi_base_alloc(a, plan->arena + 2 * CFXI_ALIGN);
    s->steps = cfxi_base_alloc(a, (plan->steps.size + 1) * sizeof *s->steps);
    if (s->steps)
        memset(s->steps, 0, (plan->steps.size + 1) * sizeof *s->steps);
    if (!s->headers || !s->storages || !s->moving || !s->results || !s->raw || !s->steps)
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
    cfxi_base_free(a, s->results, (plan->num_results + 1) * sizeof *s->results);
    cfxi_base_free(a, s->moving, (plan->tensors.size + 1) * sizeof *s->moving);
    cfxi_base_free(a, s->storages, (plan->memories.size + 1) * sizeof *s->storages);
    cfxi_base_free(a, s->headers, (plan->tensors.size + 1) * sizeof *s->headers);
    cfxi_base_free(a, s, sizeof *s);
}

/* ---- a run --------------------------------------------------------------------------------- */

/* Memory for what is returned. */
static cfx_status make_results(cfxi_plan_session *s, cfx_error *err)
{
    const cfxi_plan *plan = s->plan;
    for (uint32_t i = 0; i < plan->memories.size; i++) {
        const cfxi_memory *m = cfxi_plan_memory(plan, i);
        if (m->kind != CFXI_MEMORY_RESULT)
            continue;
        const int64_t bytes = (int64_t)m->size;
        cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_UINT8, &bytes, 1, plan->allocator, err);
        if (!t)
            return CFX_E_NOMEM;
        s->results[m->index] = t;
    }
    return CFX_OK;
}

/* Points headers over inputs and results to where they are in this run. */
static void point_moving(cfxi_plan_session *s, const cfx_datum *inputs, size_t n)
{
    const cfxi_plan *plan = s->plan;
    for (uint32_t i = 0; i < plan->memories.size; i++) {
        const cfxi_memory *m = cfxi_plan_memory(plan, i);
        if (m->kind == CFXI_MEMORY_RESULT) {
            s->storages[i].data = s->results[m->index]->data;
        } else if (m->kind == CFXI_MEMORY_INPUT) {
            const cfxi_input *input = (const cfxi_input *)plan->program->inputs.data + m->index;
            const cfx_datum d = m->index < n && inputs[m->index].kind != CFX_DATUM_INVALID
                                    ? inputs[m->index] : input->value;
            cfxi_tensor_settle(d.as.tensor, NULL);  /* without memory it stays where it is */
            s->storages[i].data = d.as.tensor->storage->data;
        }
    }
    for (size_t i = 0; i < s->num_moving; i++)
        point(s, s->moving[i],
              s->storages[cfxi_plan_tensor(plan, s->moving[i])->memory].data);
}

static const float *floats(const cfxi_plan_session *s, uint32_t tensor)
{
    return (const float *)(const void *)s->headers[tensor].data;
}

static cfx_status run_kernel(const cfxi_plan_session *s, const cfxi_step *step, cfx_error *err)
{
    cfxi_run r = {.rt = s->plan->rt, .x = floats(s, step->x),
                  .out = (float *)(void *)s->headers[step->out].data};
    for (size_t i = 0; i < step->kernel->problem.num_posts; i++)
        if (step->operands[i] != CFXI_NONE)
            r.operands[i] = floats(s, step->operands[i]);
    return step->kernel->backend->run(step->kernel, &r, err);
}

/* A kernel that chooses where its result is gets a header of its own for it. */
static cfx_status make_choices(ready_step *r, const cfxi_step *step)
{
    for (size_t i = 0; i < step->num_results; i++) {
        const cfx_tensor *planned = r->planned[i];
        if (!(step->chosen & 1u << i))
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
    r->call.planned = r->planned;
    if (step->chosen)
        CFX_TRY(make_choices(r, step));
    return cfxi_rt_call_kernel(&r->call, step->signature);
}

/* "model.py:12: ... (node %mm)" */
static cfx_status locate(const cfxi_step *step, cfx_error *err)
{
    const cfx_error why = *err;
    char file[160] = "";
    if (why.status == CFX_E_NOMEM || strstr(why.message, "(node %"))
        return why.status;
    if (step->file)
        snprintf(file, sizeof file, "%.120s:%u: ", step->file, step->line);
    return cfx_error_set(err, why.status, "%s%s: %.280s (node %%%.60s)", file,
                         cfx_operator_name(step->op), why.message, step->node);
}

static cfx_status run_steps(cfxi_plan_session *s, cfx_error *err)
{
    const cfxi_plan *plan = s->plan;
    for (size_t i = 0; i < plan->steps.size; i++) {
        const cfxi_step *step = cfxi_plan_step(plan, i);
        cfx_status status = CFX_OK;
        if (step->removed)
            continue;
        CFX_TRY(cfxi_rt_go_on(plan->rt, err));
        s->steps[i].call.err = err;
        if (step->kernel)
            status = run_kernel(s, step, err);
        else
            status = run_row(&s->steps[i], step);
        if (status != CFX_OK)
            return locate(step, err);
    }
    return CFX_OK;
}

/* ---- what is returned ---------------------------------------------------------------------- */

/* A planned tensor as one of the caller's: over a result, or over an input. */
static cfx_datum returned_tensor(const cfxi_plan_session *s, uint32_t number,
                                 const cfx_datum *inputs, size_t n, cfx_error *err)
{
    const cfxi_planned_tensor *t = cfxi_plan_tensor(s->plan, number);
    const cfxi_memory *m = cfxi_plan_memory(s->plan, t->memory);
    cfx_tensor *base;
    if (m->kind == CFXI_MEMORY_RESULT) {
        base = s->results[m->index];
    } else {
        const cfxi_input *input = (const cfxi_input *)s->plan->program->inputs.data + m->index;
        base = m->index < n && inputs[m->index].kind != CFX_DATUM_INVALID
                   ? inputs[m->index].as.tensor : input->value.as.tensor;
    }
    if (m->kind == CFXI_MEMORY_INPUT && t->header == s->plan->inputs[m->index].as.tensor)
        return cfx_datum_tensor(cfx_tensor_retain(base));  /* the input itself */
    cfx_tensor *made = cfxi_tensor_header((cfx_dtype)t->header->dtype, t->header->size,
                                          t->header->ndim, s->plan->allocator, err);
    if (!made)
        return cfx_datum_invalid();
    memcpy(made->stride, t->header->stride, sizeof made->stride);
    if (cfxi_tensor_share(made, base, t->offset - (base->data - base->storage->data), err) ==
        CFX_OK)
        return cfx_datum_tensor(made);
    cfx_tensor_release(made);
    return cfx_datum_invalid();
}

/* A constant of the plan is copied: the caller may write to what is returned. */
static cfx_datum copied_constant(const cfxi_plan_session *s, const cfx_tensor *t, cfx_error *err)
{
    cfx_tensor *made = cfxi_tensor_header((cfx_dtype)t->dtype, t->size, t->ndim, s->plan->allocator,
                                          err);
    if (!made)
        return cfx_datum_invalid();
    bool dense = true;
    for (size_t i = 0; i < t->ndim; i++)
        dense = dense && t->stride[i] >= 0;
    if (dense)
        memcpy(made->stride, t->stride, sizeof made->stride);
    if (cfxi_tensor_allocate(made, err) == CFX_OK &&
        cfxi_rt_copy(s->plan->rt, made, t, err) == CFX_OK)
        return cfx_datum_tensor(made);
    cfx_tensor_release(made);
    return cfx_datum_invalid();
}

static cfx_datum returned(const cfxi_plan_session *s, cfx_datum d, const cfx_datum *inputs,
                          size_t n, cfx_error *err)
{
    size_t count;
    const cfx_datum *items = cfx_datum_items(d, &count);
    if (d.kind == CFX_DATUM_TENSOR) {
        const uint32_t number = cfxi_plan_number(s->plan, d.as.tensor);
        return number != CFXI_NONE ? returned_tensor(s, number, inputs, n, err)
                                   : copied_constant(s, d.as.tensor, err);
    }
    if (!items)
        return cfx_datum_retain(d);
    cfx_datum *room = cfxi_base_alloc(s->plan->allocator, (count + 1) * sizeof *room);
    size_t made = 0;
    cfx_datum result = cfx_datum_invalid();
    for (; room && made < count; made++) {
        room[made] = returned(s, items[made], inputs, n, err);
        if (room[made].kind == CFX_DATUM_INVALID)
            break;
    }
    if (room && made == count) {
        result = cfx_datum_seq((cfx_datum_kind)d.kind, room, count, s->plan->allocator, err);
        if (result.kind != CFX_DATUM_INVALID)
            result.as.seq->op = d.as.seq->op;
    } else if (!room) {
        cfxi_base_nomem(err);
    }
    for (size_t i = 0; i < made; i++)
        cfx_datum_release(room[i]);
    if (room)
        cfxi_base_free(s->plan->allocator, room, (count + 1) * sizeof *room);
    return result;
}

cfx_datum cfxi_plan_run(cfxi_plan_session *s, const cfx_datum *inputs, size_t n, cfx_error *err)
{
    cfx_error own = {0};
    cfx_datum result = cfx_datum_invalid();
    for (uint32_t i = 0; i < s->plan->num_results; i++)
        s->results[i] = NULL;
    if (make_results(s, &own) == CFX_OK) {
        point_moving(s, inputs, n);
        if (run_steps(s, &own) == CFX_OK)
            result = returned(s, s->plan->result, inputs, n, &own);
    }
    for (uint32_t i = 0; i < s->plan->num_results; i++)
        cfx_tensor_release(s->results[i]);
    if (result.kind == CFX_DATUM_INVALID && err)
        *err = own;
    return result;
}
