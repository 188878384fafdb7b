/* plan_lstm.c - layers of an LSTM with constant weights go to their kernel: those in one direction,
 * without projections, in float32.
 */
#include "plan_impl.h"

enum { INPUT, STATES, PARAMS, HAS_BIASES, NUM_LAYERS, DROPOUT, TRAIN, BIDIRECTIONAL, BATCH_FIRST };
enum { MOST_LAYERS = 16, EACH = 4 };

static bool is_plain(const cfx_tensor *t)
{
    return t->dtype == CFX_DTYPE_FLOAT32 && cfx_tensor_is_contiguous(t) &&
           cfxi_tensor_numel(t) > 0;
}

static cfx_tensor *tensor_of(cfx_datum d)
{
    return d.kind == CFX_DATUM_TENSOR && is_plain(d.as.tensor) ? d.as.tensor : NULL;
}

static bool takes(const cfxi_step *s)
{
    return s->op == CFX_OPID_lstm && !s->args[BIDIRECTIONAL].as.b && !s->args[BATCH_FIRST].as.b &&
           !(s->args[TRAIN].as.b && s->args[DROPOUT].as.f > 0) &&
           s->args[NUM_LAYERS].as.i <= MOST_LAYERS;
}

/* Where an operand is that is not constant; NULL in `constant` then. */
static bool find_state(const cfxi_plan *plan, cfx_tensor *t, cfx_tensor **constant, cfxi_step *s)
{
    const uint32_t number = cfxi_plan_number(plan, t);
    *constant = number == CFXI_NONE ? t : NULL;
    if (number != CFXI_NONE)
        s->operands[s->num_operands++] = number;
    return number != CFXI_NONE || cfxi_rt_can_read(t);
}

/* The weights of all layers, as the kernel takes them. */
static bool find_weights(const cfxi_step *s, int64_t layers, cfx_tensor **weights)
{
    size_t n;
    const cfx_datum *params = cfx_datum_items(s->args[PARAMS], &n);
    const size_t each = s->args[HAS_BIASES].as.b ? 4 : 2;
    if (n != (size_t)layers * each)
        return false;
    for (size_t i = 0; i < n; i++) {
        cfx_tensor *t = tensor_of(params[i]);
        if (!t || !cfxi_rt_can_read(t) || !cfxi_tensor_has_whole_strides(t))
            return false;
        weights[i / each * EACH + i % each] = t;
    }
    return true;
}

static cfx_status plan_lstm(cfxi_plan *plan, cfxi_step *s, cfx_error *err)
{
    cfx_tensor *constants[2 + MOST_LAYERS * EACH] = {NULL};
    cfx_tensor *x = tensor_of(s->args[INPUT]);
    size_t n;
    const cfx_datum *states = cfx_datum_items(s->args[STATES], &n);
    cfx_tensor *h = n == 2 ? tensor_of(states[0]) : NULL;
    cfx_tensor *c = n == 2 ? tensor_of(states[1]) : NULL;
    const int64_t layers = s->args[NUM_LAYERS].as.i;
    s->num_operands = 0;
    for (size_t i = 1; i < 3; i++)
        s->operands[s->num_operands++] = cfxi_plan_number(plan, s->results[i].as.tensor);
    if (!x || !h || !c || !is_plain(s->results[0].as.tensor) || s->chosen ||
        cfxi_plan_number(plan, x) == CFXI_NONE || h->size[2] != c->size[2] ||
        !find_state(plan, h, &constants[0], s) || !find_state(plan, c, &constants[1], s) ||
        !find_weights(s, layers, constants + 2))
        return CFX_OK;
    const cfxi_problem problem = {
        .kind = CFXI_LSTM, .isa = plan->isa, .threads = plan->threads,
        .lstm = {x->size[0], x->size[1], x->size[2], h->size[2], layers}};
    const cfxi_constants all = {.tensors = constants};
    s->kernel = cfxi_backend_lstm.prepare(&problem, &all, plan->allocator, err);
    for (size_t i = 2; i < sizeof constants / sizeof *constants; i++)
        if (constants[i])
            cfxi_tensor_give_back(constants[i]);
    s->x = cfxi_plan_number(plan, x);
    s->out = cfxi_plan_number(plan, s->results[0].as.tensor);
    return s->kernel ? CFX_OK : CFX_E_NOMEM;
}

cfx_status cfxi_plan_lstms(cfxi_plan *plan, cfx_error *err)
{
    for (size_t i = 0; i < plan->steps.size; i++)
        if (takes(cfxi_plan_step(plan, i)))
            CFX_TRY(plan_lstm(plan, cfxi_plan_step(plan, i), err));
    return CFX_OK;
}
