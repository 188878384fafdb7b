/* plan_integers.c - products and convolutions of integers go to back ends, and take over a sum of
 * integers that follows them:
 *
 *     integer_conv -> integer_add(., shortcut)        becomes one step
 */
#include "plan_fusion.h"
#include "runtime/kernels/quantize/integer_impl.h"

enum { INPUT, WEIGHT = 3, LINEAR_RESULT = 7, CONV_STRIDE = 7, CONV_RESULT = 11 };
enum { OTHER = 3, SUM_RESULT = 6 };  /* of a sum */

static cfxi_call call_of(const cfxi_fuser *f, const cfxi_step *s, cfx_error *err)
{
    cfxi_call c = {.op = s->op, .args = s->args, .rt = f->rt, .err = err};
    c.results[0] = s->results[0];
    return c;
}

static bool has_bytes(const cfx_tensor *t)
{
    return t && (t->dtype == CFX_DTYPE_UINT8 || t->dtype == CFX_DTYPE_INT8);
}

/* Whether the numbers of a range are such that floats, and 32 bits, have all of them. */
static bool is_near(int64_t x) { return x >= -(1 << 16) && x <= 1 << 16; }

/* ---- what begins --------------------------------------------------------------------------- */

/* x [..., k] and out [..., n] as matrices. */
static bool begin_product(cfxi_problem *p, const cfx_tensor *x, const cfx_tensor *w,
                          const cfx_tensor *out)
{
    if (w->ndim != 2 || x->ndim < 1 || cfxi_plan_row_of(x) == 0 || cfxi_plan_row_of(out) == 0)
        return false;
    p->kind = CFXI_PRODUCT;
    p->n = w->size[0];
    p->k = w->size[1];
    if (p->k == 0)
        return false;
    p->m = cfxi_tensor_numel(x) / p->k;
    p->x_row = cfxi_plan_row_of(x);
    p->out_row = cfxi_plan_row_of(out);
    p->w_n = w->stride[0];
    p->w_k = w->stride[1];
    return true;
}

/* The arguments are those of conv2d, whose operands have one type. */
static bool begin_conv(const cfxi_fuser *f, cfxi_problem *p, const cfxi_step *s,
                       const cfx_tensor *x, const cfx_tensor *w)
{
    cfx_error err = {0};
    cfx_tensor weight;
    memcpy(&weight, w, sizeof weight);
    weight.dtype = x->dtype;
    cfx_datum args[] = {s->args[INPUT], cfx_datum_tensor(&weight), cfx_datum_none(),
                        s->args[CONV_STRIDE], s->args[CONV_STRIDE + 1], s->args[CONV_STRIDE + 2],
                        s->args[CONV_STRIDE + 3]};
    cfxi_call c = {.op = CFX_OPID_conv2d, .args = args, .rt = f->rt, .err = &err};
    c.results[0] = s->results[0];
    p->kind = CFXI_CONVOLUTION;
    return w->ndim == 4 && x->ndim == 4 && cfxi_conv_describe(&c, &p->conv) == CFX_OK;
}

/* Copies of them; gives the others back. */
static bool keep_channels(const cfxi_fuser *f, cfxi_fusion *u, cfxi_integer_channels *ch)
{
    const size_t n = (size_t)u->columns;
    u->scale = cfxi_base_alloc(f->plan->allocator, n * sizeof *u->scale);
    u->bias = cfxi_base_alloc(f->plan->allocator, n * sizeof *u->bias);
    u->w_zero = cfxi_base_alloc(f->plan->allocator, n * sizeof *u->w_zero);
    const bool good = u->scale && u->bias && u->w_zero;
    if (good) {
        memcpy(u->scale, ch->factor, n * sizeof *u->scale);
        memcpy(u->bias, ch->bias, n * sizeof *u->bias);
        memcpy(u->w_zero, ch->zero, n * sizeof *u->w_zero);
    }
    cfxi_rt_scratch_free(f->rt, ch->factor);
    return good;
}

/* Factors, biases and zero points of the columns, as the row has them. */
static bool take_channels(const cfxi_fuser *f, cfxi_fusion *u, cfxi_call *c, size_t result)
{
    cfxi_integer_channels ch;
    return cfxi_integer_channels_new(c, u->columns, cfxi_rt_float(c, INPUT + 1),
                                     cfxi_integer_scale_of(c, result), &ch) == CFX_OK &&
           keep_channels(f, u, &ch);
}

/* Whether what belongs to the channels is known while planning. */
static bool knows_channels(const cfxi_step *s)
{
    for (size_t i = WEIGHT; i < WEIGHT + 4; i++) {
        const cfx_tensor *t = cfxi_plan_tensor_arg(s, i);
        if (t && (!cfxi_rt_can_read(t) || !cfxi_tensor_has_whole_strides(t)))
            return false;
    }
    return true;
}

bool cfxi_plan_begin_integers(const cfxi_fuser *f, cfxi_fusion *u, const cfxi_step *s)
{
    cfx_error err = {0};
    cfxi_call c = call_of(f, s, &err);
    const bool linear = s->op == CFX_OPID_integer_linear;
    const size_t result = linear ? LINEAR_RESULT : CONV_RESULT;
    const cfx_tensor *x = cfxi_plan_tensor_arg(s, INPUT);
    const cfx_tensor *w = cfxi_plan_tensor_arg(s, WEIGHT);
    const cfx_tensor *out = s->results[0].as.tensor;
    cfxi_problem *p = &u->problem;
    if (!has_bytes(x) || !has_bytes(w) || !x->storage->planned || !knows_channels(s) ||
        cfxi_tensor_numel(out) == 0 || cfxi_tensor_numel(w) == 0 ||
        !is_near(cfxi_rt_int(&c, INPUT + 2)))
        return false;
    for (size_t i = result + 1; i < result + 4; i++)
        if (!is_near(cfxi_rt_int(&c, i)))
            return false;
    if (!(linear ? begin_product(p, x, w, out) : begin_conv(f, p, s, x, w)))
        return false;
    const cfxi_integer_range range = cfxi_integer_range_of(&c, result);
    u->w = w;
    u->columns = linear ? p->n : p->conv.groups * p->conv.out_channels;
    p->int8 = f->int8;
    p->integers = (cfxi_integers){
        .used = true, .x_signed = cfxi_integer_is_signed(x), .w_signed = cfxi_integer_is_signed(w),
        .x_zero = (int32_t)cfxi_rt_int(&c, INPUT + 2),
        .end = {.to_float = out->dtype == CFX_DTYPE_FLOAT32, .low = range.low,
                .high = range.high, .zero = range.zero}};
    return take_channels(f, u, &c, result);
}

/* A linear layer whose input becomes integers in each run. Its weights are arguments as those of
 * integer_linear, from another place on. */
bool cfxi_plan_begin_dynamic(const cfxi_fuser *f, cfxi_fusion *u, const cfxi_step *s)
{
    enum { FIRST = 1, LOW = 5, HIGH, EPS };
    cfx_error err = {0};
    cfx_datum args[CFXI_MOST_PARAMS];
    cfxi_step as_static = *s;
    for (size_t i = 0; i < CFXI_MOST_PARAMS; i++)
        args[i] = i >= WEIGHT && i < WEIGHT + 4 ? s->args[i - WEIGHT + FIRST] : cfx_datum_invalid();
    args[INPUT] = s->args[INPUT];
    as_static.args = args;
    as_static.num_args = WEIGHT + 4;
    cfxi_call c = call_of(f, &as_static, &err);
    const cfx_tensor *x = cfxi_plan_tensor_arg(s, INPUT);
    const cfx_tensor *w = cfxi_plan_tensor_arg(s, FIRST);
    const cfx_tensor *scale = cfxi_plan_tensor_arg(s, FIRST + 1);
    const cfx_tensor *out = s->results[0].as.tensor;
    cfxi_problem *p = &u->problem;
    cfxi_integer_channels ch;
    if (!x || x->dtype != CFX_DTYPE_FLOAT32 || !x->storage->planned || !has_bytes(w) ||
        !knows_channels(&as_static) || scale->dtype != CFX_DTYPE_FLOAT32 ||
        cfxi_tensor_numel(out) == 0 || cfxi_tensor_numel(w) == 0 || !begin_product(p, x, w, out))
        return false;
    p->kind = CFXI_DYNAMIC;
    p->dynamic.low = s->args[LOW].as.i;
    p->dynamic.high = s->args[HIGH].as.i;
    p->dynamic.eps = (float)s->args[EPS].as.f;
    p->int8 = f->int8;
    p->integers = (cfxi_integers){.used = true, .w_signed = cfxi_integer_is_signed(w),
                                  .end = {.to_float = true}};
    u->w = w;
    u->columns = p->n;
    return cfxi_integer_channels_new(&c, u->columns, 1, 1, &ch) == CFX_OK &&
           keep_channels(f, u, &ch);
}

/* ---- what follows -------------------------------------------------------------------------- */

/* Strides of the other operand of a sum, which has columns or channels side by side. */
static bool find_other_rows(cfxi_fusion *u, const cfx_tensor *other, const cfx_tensor *so_far)
{
    int64_t *rows = u->problem.integers.other_rows;
    if (!cfxi_plan_lie_in_order(other, so_far))
        return false;
    if (u->problem.kind == CFXI_PRODUCT) {
        rows[0] = cfxi_plan_row_of(other);
        return rows[0] > 0;
    }
    rows[0] = other->stride[0];
    rows[1] = other->stride[2];
    rows[2] = other->stride[3];
    return other->stride[1] == 1 || other->size[1] == 1;
}

/* Which operand of a sum is what was computed so far; -1 if none is, or both. */
static int own_operand(const cfxi_fuser *f, const cfxi_fusion *u, const cfxi_step *s)
{
    const cfxi_planned_tensor *so_far = cfxi_plan_tensor(f->plan, u->out);
    int own = -1;
    for (int i = 0; i < 2; i++) {
        const cfx_tensor *t = cfxi_plan_tensor_arg(s, (size_t)i * OTHER);
        const uint32_t number = t ? cfxi_plan_number(f->plan, t) : CFXI_NONE;
        if (number == CFXI_NONE)
            return -1;
        if (cfxi_plan_tensor(f->plan, number)->memory != so_far->memory)
            continue;
        if (own >= 0 || cfxi_plan_tensor(f->plan, number)->offset != so_far->offset ||
            !cfxi_plan_lie_alike(t, so_far->header))
            return -1;
        own = i;
    }
    return own;
}

bool cfxi_plan_take_integer_sum(const cfxi_fuser *f, cfxi_fusion *u)
{
    cfx_error err = {0};
    cfxi_byte_end *e = &u->problem.integers.end;
    const uint32_t step = cfxi_plan_only_reader(&f->groups, u->out);
    const cfxi_step *s = step != CFXI_NONE ? cfxi_plan_step(f->plan, step) : NULL;
    if (!s || s->op != CFX_OPID_integer_add || s->removed || s->kernel || s->chosen ||
        s->num_results != 1 || e->to_float || e->adds || u->num_steps == CFXI_FUSED_STEPS ||
        u->num_operands == CFXI_MOST_OPERANDS)
        return false;
    const int own = own_operand(f, u, s);
    if (own < 0)
        return false;
    cfxi_call c = call_of(f, s, &err);
    const cfxi_integer_operand mine = cfxi_integer_operand_of(&c, (size_t)own * OTHER);
    const cfxi_integer_operand other = cfxi_integer_operand_of(&c, (size_t)(1 - own) * OTHER);
    const cfx_tensor *so_far = cfxi_plan_tensor(f->plan, u->out)->header;
    const cfx_tensor *out = s->results[0].as.tensor;
    for (size_t i = SUM_RESULT + 1; i < SUM_RESULT + 4; i++)
        if (!is_near(cfxi_rt_int(&c, i)))
            return false;
    if (!has_bytes(out) || !cfxi_plan_lie_in_order(out, so_far) ||
        !find_other_rows(u, other.t, so_far))
        return false;
    const cfxi_integer_range range = cfxi_integer_range_of(&c, SUM_RESULT);
    const double scale = cfxi_rt_float(&c, SUM_RESULT);
    e->adds = true;
    e->other_signed = cfxi_integer_is_signed(other.t);
    e->other_first = own == 1;
    e->own_zero = mine.zero;
    e->other_zero = other.zero;
    e->own_factor = (float)(mine.scale / scale);
    e->other_factor = (float)(other.scale / scale);
    e->low2 = range.low;
    e->high2 = range.high;
    e->zero2 = range.zero;
    u->problem.integers.other = u->num_operands;
    u->operands[u->num_operands++] = cfxi_plan_number(f->plan, other.t);
    u->steps[u->num_steps++] = step;
    return true;
}

/* ---- products of two matrices -------------------------------------------------------------- */

static cfx_status plan_matmul(cfxi_fuser *f, cfxi_step *s)
{
    cfx_error err = {0};
    double cost;
    cfxi_call c = call_of(f, s, &err);
    const cfxi_integer_operand a = cfxi_integer_operand_of(&c, INPUT);
    const cfxi_integer_operand b = cfxi_integer_operand_of(&c, OTHER);
    const cfx_tensor *out = s->results[0].as.tensor;
    const uint32_t numbers[] = {cfxi_plan_number(f->plan, a.t), cfxi_plan_number(f->plan, b.t)};
    if (s->chosen || numbers[0] == CFXI_NONE || numbers[1] == CFXI_NONE || a.t->ndim < 2 ||
        b.t->ndim < 2 || cfxi_tensor_numel(out) == 0 ||
        out->stride[out->ndim - 1] != (int64_t)cfxi_tensor_itemsize(out))
        return CFX_OK;
    for (size_t i = SUM_RESULT + 1; i < SUM_RESULT + 4; i++)
        if (!is_near(cfxi_rt_int(&c, i)))
            return CFX_OK;
    const cfxi_integer_range range = cfxi_integer_range_of(&c, SUM_RESULT);
    const float factor = (float)(a.scale * b.scale / cfxi_integer_scale_of(&c, SUM_RESULT));
    cfxi_problem p = {
        .kind = CFXI_MATMUL, .isa = f->rt->isa, .int8 = f->int8,
        .threads = cfx_runtime_threads(f->rt), .m = out->size[out->ndim - 2],
        .n = out->size[out->ndim - 1], .k = a.t->size[a.t->ndim - 1],
        .integers = {.used = true, .x_signed = cfxi_integer_is_signed(a.t),
                     .w_signed = cfxi_integer_is_signed(b.t), .x_zero = a.zero, .w_zero = b.zero,
                     .end = {.to_float = out->dtype == CFX_DTYPE_FLOAT32, .low = range.low,
                             .high = range.high, .zero = range.zero}}};
    p.integers.batches = cfxi_tensor_numel(out) / (p.m * p.n);
    if (!cfxi_backend_matmul_bytes.query(&p, &cost))
        return CFX_OK;
    const cfxi_constants constants = {.scale = &factor};
    s->kernel = cfxi_backend_matmul_bytes.prepare(&p, &constants, f->plan->allocator, f->err);
    s->out = cfxi_plan_number(f->plan, out);
    s->num_operands = 2;
    memcpy(s->operands, numbers, sizeof numbers);
    return s->kernel ? CFX_OK : CFX_E_NOMEM;
}

cfx_status cfxi_plan_integer_matmuls(cfxi_fuser *f)
{
    for (size_t i = 0; i < f->plan->steps.size; i++) {
        cfxi_step *s = cfxi_plan_step(f->plan, i);
        if (s->op == CFX_OPID_integer_matmul && !s->removed && !s->kernel)
            CFX_TRY(plan_matmul(f, s));
    }
    return CFX_OK;
}
