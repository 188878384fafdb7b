/* plan_groups.c - finds readers, functions on blocks, and groups of them: plan_groups.h. */
#include "plan_groups.h"

/* ---- who reads what ------------------------------------------------------------------------ */

typedef struct reading {
    cfxi_groups *g;
    uint32_t step;
    bool counts;  /* how many, or which */
} reading;

static void note_reader(void *ctx, uint32_t tensor)
{
    const reading *r = ctx;
    const uint32_t memory = cfxi_plan_tensor(r->g->plan, tensor)->memory;
    if (r->counts)
        r->g->first_reader[memory + 1]++;
    else
        r->g->readers[r->g->first_reader[memory]++] = r->step;
}

static void note_readers(cfxi_groups *g, bool counts)
{
    const cfxi_plan *plan = g->plan;
    for (uint32_t i = 0; i < plan->steps.size; i++) {
        reading r = {g, i, counts};
        const cfxi_step *s = cfxi_plan_step(plan, i);
        for (size_t k = 0; k < s->num_args && !s->removed; k++)
            cfxi_plan_visit(plan, s->args[k], note_reader, &r);
    }
    reading result = {g, CFXI_NONE, counts};
    for (size_t i = 0; i < plan->outs.size; i++)
        cfxi_plan_visit(plan, cfxi_plan_out(plan, i)->value, note_reader, &result);
}

/* Lists of readers, one after the other: how long each is, where each begins, and then its items.
 */
static cfx_status find_readers(cfxi_groups *g, cfx_error *err)
{
    const cfxi_plan *plan = g->plan;
    const size_t n = plan->memories.size;
    note_readers(g, true);
    for (size_t i = 0; i < n; i++)
        g->first_reader[i + 1] += g->first_reader[i];
    g->num_readers = g->first_reader[n];
    g->readers = cfxi_base_alloc(plan->allocator, (g->num_readers + 1) * sizeof *g->readers);
    if (!g->readers)
        return cfxi_base_nomem(err);
    note_readers(g, false);
    memmove(g->first_reader + 1, g->first_reader, n * sizeof *g->first_reader);
    g->first_reader[0] = 0;
    for (uint32_t i = 0; i < n; i++)
        g->writer[i] = CFXI_NONE;
    for (uint32_t i = 0; i < plan->steps.size; i++) {
        const cfxi_step *s = cfxi_plan_step(plan, i);
        for (size_t k = 0; k < s->num_results && !s->removed; k++) {
            const uint32_t t = s->results[k].kind == CFX_DATUM_TENSOR
                                   ? cfxi_plan_number(plan, s->results[k].as.tensor) : CFXI_NONE;
            if (t != CFXI_NONE)
                g->writer[cfxi_plan_tensor(plan, t)->memory] = i;
        }
    }
    return CFX_OK;
}

uint32_t cfxi_plan_only_reader(const cfxi_groups *g, uint32_t tensor)
{
    const uint32_t memory = cfxi_plan_tensor(g->plan, tensor)->memory;
    const uint32_t first = g->first_reader[memory];
    const uint32_t end = g->first_reader[memory + 1];
    for (uint32_t i = first; i < end; i++)
        if (g->readers[i] != g->readers[first])
            return CFXI_NONE;
    return first < end ? g->readers[first] : CFXI_NONE;
}

uint32_t cfxi_plan_only_giver(const cfxi_groups *g, const cfx_tensor *t, uint32_t reader)
{
    const uint32_t number = t ? cfxi_plan_number(g->plan, t) : CFXI_NONE;
    if (number == CFXI_NONE || cfxi_plan_only_reader(g, number) != reader)
        return CFXI_NONE;
    const uint32_t step = g->writer[cfxi_plan_tensor(g->plan, number)->memory];
    const cfxi_step *s = step != CFXI_NONE ? cfxi_plan_step(g->plan, step) : NULL;
    const bool lies = s && s->num_results == 1 && !s->kernel && !s->removed &&
                      cfxi_plan_tensor(g->plan, number)->offset == 0 &&
                      cfxi_plan_lie_alike(t, s->results[0].as.tensor);
    return lies ? step : CFXI_NONE;
}

uint32_t cfxi_plan_only_group(const cfxi_groups *g, uint32_t tensor)
{
    const uint32_t memory = cfxi_plan_tensor(g->plan, tensor)->memory;
    uint32_t group = CFXI_NONE;
    for (uint32_t i = g->first_reader[memory]; i < g->first_reader[memory + 1]; i++) {
        const uint32_t step = g->readers[i];
        const uint32_t other = step == CFXI_NONE ? CFXI_NONE : g->elements[step].group;
        if (other == CFXI_NONE || (group != CFXI_NONE && other != group))
            return CFXI_NONE;
        group = other;
    }
    return group;
}

/* ---- functions ----------------------------------------------------------------------------- */

/* A tensor of one element that stands for another of its type. A number is itself: a power looks at
 * its exponent. */
typedef struct stand_in {
    cfx_tensor header;
    cfxi_storage storage;
    double element[2];
} stand_in;

static void stand_for(stand_in *s, const cfx_tensor *t)
{
    memset(s, 0, sizeof *s);
    s->header.dtype = t->dtype;
    s->header.ndim = t->ndim;
    s->header.number = t->number;
    s->header.storage = &s->storage;
    s->header.data = (char *)s->element;
    s->storage.data = (char *)s->element;
    s->storage.size = sizeof s->element;
    atomic_init(&s->header.refs, 1 << 30);
    atomic_init(&s->storage.refs, 1 << 30);
    if (cfxi_rt_can_read(t) && cfxi_tensor_numel(t) == 1)
        memcpy(s->element, t->data, cfxi_tensor_itemsize(t));
    for (size_t i = 0; i < t->ndim; i++) {
        s->header.size[i] = 1;
        s->header.stride[i] = (int64_t)cfxi_tensor_itemsize(t);
    }
}

enum { MOST_ARGS = 8 };

/* The kernel says which function it would apply, asked with arguments of one element. */
static bool ask_kernel(const cfxi_step *s, cfx_runtime *rt, stand_in *args, stand_in *out,
                       cfxi_map *map)
{
    cfx_error err = {0};
    cfx_datum data[CFXI_MOST_PARAMS];
    cfx_tensor *planned[CFXI_MOST_RESULTS] = {&out->header};
    cfxi_call c = {.op = s->op, .args = data, .rt = rt, .planned = planned, .described = map,
                   .err = &err};
    const cfxi_signature *signature = cfxi_rt_signature_of(rt, s->op, &err);
    if (s->num_args > MOST_ARGS || !signature)
        return false;
    for (size_t i = 0; i < CFXI_MOST_PARAMS; i++)
        data[i] = i < s->num_args ? s->args[i] : cfx_datum_invalid();
    for (size_t i = 0; i < s->num_args; i++) {
        if (data[i].kind != CFX_DATUM_TENSOR)
            continue;
        if (signature->params[i].type != CFXI_PARAM_TENSOR)
            return false;  /* a number of the function's that is a tensor */
        stand_for(&args[i], data[i].as.tensor);
        data[i] = cfx_datum_tensor(&args[i].header);
    }
    stand_for(out, s->results[0].as.tensor);
    c.results[0] = cfx_datum_tensor(&out->header);
    map->fn = CFXI_FN_COUNT;
    return cfxi_rt_call_kernel(&c, signature) == CFX_OK && map->fn != CFXI_FN_COUNT &&
           map->common == CFX_DTYPE_FLOAT32 && map->gives == CFXI_GIVES_SAME;
}

/* An argument of the function: a float32 tensor, or a number. */
static bool take_argument(const cfxi_plan *plan, const cfx_tensor *t, cfxi_element *e, size_t k)
{
    if (cfxi_rt_can_read(t) && cfxi_tensor_numel(t) == 1 && !cfx_dtype_is_complex(t->dtype)) {
        e->args[k] = CFXI_NONE;
        e->numbers[k] = (float)cfxi_tensor_load_float((cfx_dtype)t->dtype, t->data);
        return true;
    }
    e->args[k] = cfxi_plan_number(plan, t);
    return t->dtype == CFX_DTYPE_FLOAT32 && e->args[k] != CFXI_NONE;
}

static bool describe(const cfxi_plan *plan, cfx_runtime *rt, const cfxi_step *s, cfxi_element *e)
{
    stand_in args[MOST_ARGS];
    stand_in out;
    cfxi_map map = {.n = 0};
    if (s->removed || s->kernel || !(cfx_operator_flags(s->op) & CFX_OPERATOR_ELEMENTWISE) ||
        cfxi_rt_is_by_rule(s->op) ||
        s->num_results != 1 || s->chosen || s->results[0].kind != CFX_DATUM_TENSOR ||
        s->results[0].as.tensor->dtype != CFX_DTYPE_FLOAT32 ||
        cfxi_tensor_numel(s->results[0].as.tensor) == 0 || !ask_kernel(s, rt, args, &out, &map))
        return false;
    e->fn = map.fn;
    e->n = map.n;
    e->s = map.s;
    e->s.bad = NULL;
    for (size_t k = 0; k < map.n; k++) {
        bool found = false;
        for (size_t i = 0; i < s->num_args && !found; i++)
            found = s->args[i].kind == CFX_DATUM_TENSOR && map.args[k] == &args[i].header &&
                    take_argument(plan, s->args[i].as.tensor, e, k);
        if (!found)
            return false;
    }
    return true;
}

/* ---- groups -------------------------------------------------------------------------------- */

static const cfx_tensor *result_of(const cfxi_plan *plan, uint32_t step)
{
    return cfxi_plan_step(plan, step)->results[0].as.tensor;
}

/* The step before `of` that gives its argument k exactly as it lies; CFXI_NONE. */
static uint32_t giver(const cfxi_groups *g, uint32_t of, size_t k)
{
    const uint32_t t = g->elements[of].args[k];
    if (t == CFXI_NONE)
        return CFXI_NONE;
    const cfxi_planned_tensor *arg = cfxi_plan_tensor(g->plan, t);
    const uint32_t step = g->writer[arg->memory];
    return step != CFXI_NONE && g->elements[step].known && arg->offset == 0 &&
                   cfxi_plan_lie_alike(arg->header, result_of(g->plan, step))
               ? step : CFXI_NONE;
}

/* Whether a step reads what another gives only as it lies: of rows, no block has all. */
static bool reads_exactly(const cfxi_groups *g, uint32_t reader, uint32_t memory)
{
    const cfxi_element *e = &g->elements[reader];
    for (size_t k = 0; k < e->n; k++)
        if (e->args[k] != CFXI_NONE && cfxi_plan_tensor(g->plan, e->args[k])->memory == memory &&
            giver(g, reader, k) == CFXI_NONE)
            return false;
    return true;
}

static bool reads_stay_inside(const cfxi_groups *g, uint32_t step, uint32_t group)
{
    const uint32_t t = cfxi_plan_number(g->plan, result_of(g->plan, step));
    const uint32_t memory = cfxi_plan_tensor(g->plan, t)->memory;
    for (uint32_t i = g->first_reader[memory]; i < g->first_reader[memory + 1]; i++)
        if (g->readers[i] == CFXI_NONE || g->elements[g->readers[i]].group != group ||
            !reads_exactly(g, g->readers[i], memory))
            return false;
    return true;
}

/* Steps that can be computed with a group: what gives arguments of its steps. */
typedef struct candidates {
    uint32_t steps[3 * CFXI_CHAIN_OPS];
    size_t n;
} candidates;

static void add_candidates(const cfxi_groups *g, uint32_t step, candidates *c)
{
    for (size_t k = 0; k < g->elements[step].n; k++) {
        const uint32_t from = giver(g, step, k);
        bool known = from == CFXI_NONE;
        for (size_t i = 0; i < c->n; i++)
            known = known || c->steps[i] == from;
        if (!known)
            c->steps[c->n++] = from;
    }
}

/* The latest of them: whoever reads it has been considered before. */
static uint32_t take_latest(candidates *c)
{
    size_t at = 0;
    for (size_t i = 1; i < c->n; i++)
        if (c->steps[i] > c->steps[at])
            at = i;
    const uint32_t step = c->steps[at];
    c->steps[at] = c->steps[--c->n];
    return step;
}

/* The tensors that a group reads, at most one more than there may be. */
static size_t count_inputs(const cfxi_groups *g, const cfxi_group *group, uint32_t more,
                           uint32_t number)
{
    uint32_t found[CFXI_CHAIN_INPUTS + 1];
    size_t n = 0;
    for (size_t i = 0; i <= group->n; i++) {
        const cfxi_element *e = &g->elements[i < group->n ? group->steps[i] : more];
        for (size_t k = 0; k < e->n && n <= CFXI_CHAIN_INPUTS; k++) {
            const uint32_t memory =
                e->args[k] == CFXI_NONE ? CFXI_NONE : cfxi_plan_tensor(g->plan, e->args[k])->memory;
            const uint32_t from = memory == CFXI_NONE ? CFXI_NONE : g->writer[memory];
            bool known = memory == CFXI_NONE || from == more ||
                         (from != CFXI_NONE && g->elements[from].group == number);
            for (size_t j = 0; j < n; j++)
                known = known || found[j] == e->args[k];
            if (!known)
                found[n++] = e->args[k];
        }
    }
    return n;
}

static bool can_join(const cfxi_groups *g, const cfxi_group *group, uint32_t step, uint32_t number)
{
    const cfxi_element *e = &g->elements[step];
    return e->group == CFXI_NONE && group->n < CFXI_CHAIN_OPS &&
           cfxi_plan_lie_in_order(result_of(g->plan, step),
                                  result_of(g->plan, group->steps[0])) &&
           reads_stay_inside(g, step, number) &&
           count_inputs(g, group, step, number) <= CFXI_CHAIN_INPUTS;
}

static void sort_steps(cfxi_group *group)
{
    for (size_t i = 0; i < group->n / 2; i++) {  /* they were found latest first */
        const uint32_t step = group->steps[i];
        group->steps[i] = group->steps[group->n - 1 - i];
        group->steps[group->n - 1 - i] = step;
    }
}

static cfx_status find_group(cfxi_groups *g, uint32_t last, cfx_error *err)
{
    const uint32_t number = (uint32_t)g->groups.size;
    candidates c = {.n = 0};
    cfxi_group *group =
        cfxi_plan_push(&g->groups, sizeof *group, g->plan->allocator, err);
    if (!group)
        return CFX_E_NOMEM;
    *group = (cfxi_group){.n = 1, .steps = {last}};
    g->elements[last].group = number;
    add_candidates(g, last, &c);
    while (c.n > 0) {
        const uint32_t step = take_latest(&c);
        if (!can_join(g, group, step, number))
            continue;
        group->steps[group->n++] = step;
        g->elements[step].group = number;
        add_candidates(g, step, &c);
    }
    sort_steps(group);
    return CFX_OK;
}

/* ---- all of it ----------------------------------------------------------------------------- */

cfx_status cfxi_plan_groups_find(cfxi_groups *g, const cfxi_plan *plan, cfx_runtime *rt,
                                 cfx_error *err)
{
    const cfx_allocator *a = plan->allocator;
    const size_t memories = plan->memories.size + 2;
    const size_t steps = plan->steps.size;
    *g = (cfxi_groups){.plan = plan};
    g->first_reader = cfxi_base_alloc(a, memories * sizeof *g->first_reader);
    g->writer = cfxi_base_alloc(a, memories * sizeof *g->writer);
    g->elements = cfxi_base_alloc(a, (steps + 1) * sizeof *g->elements);
    if (!g->first_reader || !g->writer || !g->elements)
        return cfxi_base_nomem(err);
    memset(g->first_reader, 0, memories * sizeof *g->first_reader);
    CFX_TRY(find_readers(g, err));
    for (uint32_t i = 0; i < steps; i++) {
        cfxi_element *e = &g->elements[i];
        *e = (cfxi_element){.group = CFXI_NONE};
        e->known = describe(plan, rt, cfxi_plan_step(plan, i), e);
    }
    for (uint32_t i = (uint32_t)steps; i-- > 0;)
        if (g->elements[i].known && g->elements[i].group == CFXI_NONE)
            CFX_TRY(find_group(g, i, err));
    return CFX_OK;
}

void cfxi_plan_groups_free(cfxi_groups *g)
{
    const cfx_allocator *a = g->plan->allocator;
    const size_t memories = g->plan->memories.size + 2;
    cfxi_base_free(a, g->first_reader, memories * sizeof *g->first_reader);
    cfxi_base_free(a, g->writer, memories * sizeof *g->writer);
    cfxi_base_free(a, g->elements, (g->plan->steps.size + 1) * sizeof *g->elements);
    cfxi_base_free(a, g->readers, (g->num_readers + 1) * sizeof *g->readers);
    cfxi_base_vec_free(&g->groups, sizeof(cfxi_group), a);
}

/* ---- chains -------------------------------------------------------------------------------- */

/* Where an argument of a function comes from. */
static bool find_source(const cfxi_groups *g, const cfxi_group *group, uint32_t x, uint32_t tensor,
                        cfxi_chain *chain, uint32_t *inputs, cfxi_chain_arg *arg)
{
    const uint32_t memory = cfxi_plan_tensor(g->plan, tensor)->memory;
    for (size_t i = 0; i < chain->num_ops; i++)
        if (g->writer[memory] == group->steps[i]) {
            *arg = (cfxi_chain_arg){.from = CFXI_FROM_OP, .index = i};
            return true;
        }
    size_t at = 0;
    if (x == CFXI_NONE || memory != cfxi_plan_tensor(g->plan, x)->memory) {
        at = x == CFXI_NONE ? 0 : 1;
        while (at < chain->num_inputs && inputs[at] != tensor)
            at++;
        if (at == CFXI_CHAIN_INPUTS)
            return false;
        inputs[at] = tensor;
    }
    if (at >= chain->num_inputs)
        chain->num_inputs = at + 1;
    *arg = (cfxi_chain_arg){.from = CFXI_FROM_INPUT, .index = at};
    return true;
}

bool cfxi_plan_group_chain(const cfxi_groups *g, const cfxi_group *group, uint32_t x,
                           cfxi_chain *chain, uint32_t inputs[CFXI_CHAIN_INPUTS])
{
    *chain = (cfxi_chain){.num_inputs = x == CFXI_NONE ? 0 : 1};
    inputs[0] = x;
    for (size_t i = 0; i < group->n; i++) {
        const cfxi_element *e = &g->elements[group->steps[i]];
        cfxi_chain_op op = {.fn = e->fn, .n = e->n, .s = e->s};
        for (size_t k = 0; k < e->n; k++) {
            if (e->args[k] == CFXI_NONE)
                op.args[k] = (cfxi_chain_arg){.from = CFXI_FROM_NUMBER, .number = e->numbers[k]};
            else if (!find_source(g, group, x, e->args[k], chain, inputs, &op.args[k]))
                return false;
        }
        chain->ops[chain->num_ops++] = op;
    }
    cfxi_backend_chain_recognise(chain);
    cfxi_backend_chain_assign(chain);
    return true;
}
