/* cost.c - what a program costs: operations, and the memory that is alive at each moment.
 *
 * Types and shapes are propagated as in cfx_program_infer. A tensor that is made has a buffer of
 * its own, unless the schema says that it may share the memory of an argument: then it has that
 * one's. A buffer is alive while a tensor that has it is in a slot of a running program; those of
 * the inputs always are, and those of parameters count nowhere.
 */
#include "ops/ops_impl.h"
#include "program_impl.h"

typedef struct buffer {
    int64_t bytes;
    size_t tensors;  /* alive, that have it */
} buffer;

/* A tensor that is alive. */
typedef struct holder {
    const cfx_tensor *tensor;
    buffer *buffer;  /* NULL: of a parameter */
    size_t refs;     /* how often it is in slots */
} holder;

typedef struct frame {
    cfx_datum *slots;  /* retained */
    size_t n;
} frame;

struct cfxi_meter {
    cfx_dims *dims;
    const cfx_allocator *allocator;
    cfxi_arena arena;       /* holders and buffers */
    cfxi_pointers holders;  /* tensor -> holder */
    cfxi_vec frames;        /* of frame */
    cfxi_vec fresh;         /* of holder *: what the call gave, held until it is in its slot */
    int64_t live;
    cfx_cost cost;          /* of the last call */
    bool flops_only;
    cfx_cost_fn *each;
    void *ctx;
};

/* ---- tensors and their buffers ------------------------------------------------------------- */

static holder *find(const cfxi_meter *m, const cfx_tensor *t)
{
    return cfxi_base_pointers_get(&m->holders, t);
}

static holder *add_holder(cfxi_meter *m, const cfx_tensor *t, buffer *b, cfx_error *err)
{
    holder *h = cfxi_base_arena_alloc(&m->arena, sizeof *h);
    if (!h || !cfxi_base_pointers_set(&m->holders, t, h, m->allocator)) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *h = (holder){.tensor = t, .buffer = b};
    if (b)
        b->tensors++;
    return h;
}

static cfx_status bytes_of(const cfxi_meter *m, const cfx_tensor *t, int64_t *bytes, cfx_error *err)
{
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    *bytes = cfx_dim_mul(m->dims, cfxi_rt_elements(m->dims, t, err),
                         (int64_t)cfx_dtype_size((cfx_dtype)t->dtype), err);
    return err->status;
}

static buffer *new_buffer(cfxi_meter *m, const cfx_tensor *t, cfx_error *err)
{
    int64_t bytes;
    if (bytes_of(m, t, &bytes, err) != CFX_OK)
        return NULL;
    buffer *b = cfxi_base_arena_alloc(&m->arena, sizeof *b);
    if (!b) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *b = (buffer){.bytes = bytes};
    m->live = cfx_dim_add(m->dims, m->live, bytes, err);
    return b;
}

/* Forgets a tensor that is in no slot any more. */
static void forget(cfxi_meter *m, holder *h, cfx_error *err)
{
    cfxi_base_pointers_set(&m->holders, h->tensor, NULL, m->allocator);
    if (h->buffer && --h->buffer->tensors == 0) {
        m->live = cfx_dim_sub(m->dims, m->live, h->buffer->bytes, err);
        cfxi_base_arena_free(&m->arena, h->buffer, sizeof *h->buffer);
    }
    cfxi_base_arena_free(&m->arena, h, sizeof *h);
}

/* Adds `more` (1 or -1) to the references of each tensor in `d` that is known. */
static void refer(cfxi_meter *m, cfx_datum d, int more, cfx_error *err)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; items && i < n; i++)
        refer(m, items[i], more, err);
    holder *h = d.kind == CFX_DATUM_TENSOR ? find(m, d.as.tensor) : NULL;
    if (!h)
        return;
    h->refs += (size_t)more;
    if (h->refs == 0)
        forget(m, h, err);
}

/* ---- programs ------------------------------------------------------------------------------ */

cfx_status cfxi_rt_meter_enter(cfxi_meter *m, size_t num_slots, cfx_error *err)
{
    size_t bytes;
    cfx_datum *slots = NULL;
    if (cfxi_base_vec_reserve(&m->frames, 1, sizeof(frame), m->allocator) &&
        cfxi_base_mul_size(num_slots + 1, sizeof *slots, 0, &bytes))
        slots = cfxi_base_alloc(m->allocator, bytes);
    if (!slots)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < num_slots; i++)
        slots[i].kind = CFX_DATUM_INVALID;
    ((frame *)m->frames.data)[m->frames.size++] = (frame){slots, num_slots};
    return CFX_OK;
}

static frame *top(cfxi_meter *m) { return (frame *)m->frames.data + m->frames.size - 1; }

cfx_status cfxi_rt_meter_drop(cfxi_meter *m, uint32_t slot, cfx_error *err)
{
    cfx_error own;
    cfx_datum *at = &top(m)->slots[slot];
    err = cfxi_base_error_or(err, &own);
    refer(m, *at, -1, err);
    cfx_datum_release(*at);
    at->kind = CFX_DATUM_INVALID;
    return err->status;
}

cfx_status cfxi_rt_meter_end_call(cfxi_meter *m, cfx_error *err)
{
    holder **fresh = m->fresh.data;
    for (size_t i = 0; i < m->fresh.size; i++)
        if (--fresh[i]->refs == 0)
            forget(m, fresh[i], err);
    m->fresh.size = 0;
    return err->status;
}

cfx_status cfxi_rt_meter_set(cfxi_meter *m, uint32_t slot, cfx_datum value, cfx_error *err)
{
    CFX_TRY(cfxi_rt_meter_drop(m, slot, err));
    top(m)->slots[slot] = cfx_datum_retain(value);
    refer(m, value, 1, err);
    return CFX_OK;
}

void cfxi_rt_meter_leave(cfxi_meter *m)
{
    const frame f = *top(m);
    for (size_t i = 0; i < f.n; i++)
        cfxi_rt_meter_drop(m, (uint32_t)i, NULL);
    m->frames.size--;
    cfxi_base_free(m->allocator, f.slots, (f.n + 1) * sizeof *f.slots);
}

/* ---- calls --------------------------------------------------------------------------------- */

/* The buffer of the first tensor in an argument; NULL for a parameter's. */
static bool buffer_in(const cfxi_meter *m, cfx_datum d, buffer **b)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; items && i < n; i++)
        if (buffer_in(m, items[i], b))
            return true;
    if (d.kind != CFX_DATUM_TENSOR)
        return false;
    const holder *h = find(m, d.as.tensor);
    *b = h ? h->buffer : NULL;
    return true;
}

/* The buffer that results with this letter share. */
static bool shared_buffer(const cfxi_meter *m, const cfxi_call *c, const char *schema, size_t n,
                          char alias, buffer **b)
{
    cfx_schema_param param;
    for (size_t i = 0; alias && i < n && cfxi_ops_schema_param(schema, i, &param); i++)
        if (param.alias == alias && buffer_in(m, c->args[i], b))
            return true;
    return false;
}

/* Notes the tensors of a result: each is there already, shares a buffer, or has a new one. */
static cfx_status note_result(cfxi_meter *m, cfx_datum d, bool shared, buffer *b, cfx_error *err)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; items && i < n; i++)
        CFX_TRY(note_result(m, items[i], shared, b, err));
    if (d.kind != CFX_DATUM_TENSOR || d.as.tensor->storage)
        return CFX_OK;
    if (!cfxi_base_vec_reserve(&m->fresh, 1, sizeof(holder *), m->allocator))
        return cfxi_base_nomem(err);
    holder *h = find(m, d.as.tensor);
    if (!h && !shared && !(b = new_buffer(m, d.as.tensor, err)))
        return err->status;
    if (!h && !shared)
        m->cost.bytes = cfx_dim_add(m->dims, m->cost.bytes, b->bytes, err);
    if (!h && !(h = add_holder(m, d.as.tensor, b, err)))
        return CFX_E_NOMEM;
    h->refs++;
    ((holder **)m->fresh.data)[m->fresh.size++] = h;
    return err->status;
}

/* What a region gives is made anew, as far as anybody knows. */
static cfx_status note_results(cfxi_meter *m, const cfxi_call *c, const char *schema, size_t n,
                               bool regions, cfx_datum result)
{
    size_t count;
    cfx_schema_param param;
    const bool several = cfxi_ops_schema_result(schema, 1, &param);
    const cfx_datum *items = several ? cfx_datum_items(result, &count) : &result;
    const size_t results = several ? (items ? count : 0) : 1;
    for (size_t i = 0; i < results; i++) {
        buffer *b = NULL;
        const char alias = cfxi_ops_schema_result(schema, i, &param) ? param.alias : '\0';
        const bool shared = !regions && shared_buffer(m, c, schema, n, alias, &b);
        CFX_TRY(note_result(m, items[i], shared, b, c->err));
    }
    return CFX_OK;
}

cfx_status cfxi_rt_meter_call(cfxi_meter *m, const cfxi_call *c, cfx_operator op, size_t n,
                              cfx_datum result)
{
    m->cost = (cfx_cost){.op = op, .flops = cfxi_rt_flops(c, op, n, result)};
    if (c->err->status != CFX_OK || m->flops_only)
        return c->err->status;
    cfx_status status = note_results(m, c, cfx_operator_schema(op), n,
                                     cfx_operator_regions(op) > 0, result);
    m->cost.live = m->live;
    return status == CFX_OK ? c->err->status : status;
}

cfx_status cfxi_rt_meter_custom(cfxi_meter *m, const cfxi_call *c, const cfxi_signature *s,
                                cfx_datum result)
{
    m->cost = (cfx_cost){.op = CFX_OPID_NONE};
    cfx_status status = m->flops_only ? CFX_OK
                                      : note_results(m, c, s->schema, s->num_params, false, result);
    return status == CFX_OK ? c->err->status : status;
}

/* ---- for the caller ------------------------------------------------------------------------ */

/* Inputs and attributes are told, too: they are no calls. */
static cfx_status tell_cost(void *ctx, const char *node, cfx_datum result)
{
    cfxi_meter *m = ctx;
    cfx_status status = CFX_OK;
    (void)result;
    if (m->cost.op == CFX_OPID_NONE)
        return CFX_OK;
    m->cost.node = node;
    if (m->each)
        status = m->each(m->ctx, &m->cost);
    m->cost.op = CFX_OPID_NONE;
    return status;
}

/* They are alive from the first call to the last. */
static cfx_status hold_inputs(cfxi_meter *m, cfx_datum d, cfx_error *err)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; items && i < n; i++)
        CFX_TRY(hold_inputs(m, items[i], err));
    if (d.kind != CFX_DATUM_TENSOR || find(m, d.as.tensor))
        return CFX_OK;
    buffer *b = new_buffer(m, d.as.tensor, err);
    holder *h = b ? add_holder(m, d.as.tensor, b, err) : NULL;
    if (!h)
        return err->status;
    h->refs = 1;
    return CFX_OK;
}

static void meter_free(cfxi_meter *m)
{
    while (m->frames.size > 0)
        cfxi_rt_meter_leave(m);
    cfxi_base_vec_free(&m->frames, sizeof(frame), m->allocator);
    cfxi_base_vec_free(&m->fresh, sizeof(holder *), m->allocator);
    cfxi_base_pointers_free(&m->holders, m->allocator);
    cfxi_base_arena_release(&m->arena);
}

cfx_status cfx_program_cost(const cfx_program *p, cfx_runtime *rt, cfx_dims *dims,
                            const cfx_datum *inputs, size_t n, cfx_cost_fn *each, void *ctx,
                            cfx_error *err)
{
    cfx_error own = {0};
    CFX_TRY(cfxi_base_expect(p, "program", err));
    CFX_TRY(cfxi_base_expect(rt, "runtime", err));
    CFX_TRY(cfxi_base_expect(dims, "dims argument", err));
    cfxi_meter m = {.dims = dims, .allocator = rt->allocator, .each = each, .ctx = ctx};
    const cfxi_watch watch = {.each = tell_cost, .ctx = &m, .meter = &m};
    cfxi_base_arena_init(&m.arena, rt->allocator);
    cfx_status status = CFX_OK;
    for (size_t i = 0; i < n && status == CFX_OK; i++)
        status = hold_inputs(&m, inputs[i], &own);
    if (status == CFX_OK) {
        cfx_datum result = cfxi_rt_program_watch(p, rt, dims, inputs, n, &watch, &own);
        status = result.kind == CFX_DATUM_INVALID ? own.status : CFX_OK;
        cfx_datum_release(result);
    }
    meter_free(&m);
    if (status != CFX_OK && err)
        *err = own;
    return status;
}

int64_t cfxi_rt_operator_flops(cfx_runtime *rt, cfx_dims *dims, cfx_operator op,
                               const cfx_datum *args, size_t n, cfx_error *err)
{
    cfx_error own = {0};
    if (cfxi_base_expect(rt, "runtime", err) != CFX_OK)
        return CFX_DIM_UNKNOWN;
    cfxi_meter m = {.dims = dims, .allocator = rt->allocator, .flops_only = true};
    const cfxi_watch watch = {.meter = &m};
    cfx_datum result = cfxi_rt_call_watched(rt, dims, true, &watch, op, args, n, &own);
    const bool good = result.kind != CFX_DATUM_INVALID;
    cfx_datum_release(result);
    if (!good && err)
        *err = own;
    return good ? m.cost.flops : CFX_DIM_UNKNOWN;
}
