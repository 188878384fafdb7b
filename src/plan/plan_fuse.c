/* plan_fuse.c - products and convolutions with constant weights go to back ends, and take over what
 * follows them:
 *
 *     conv2d -> batch_norm -> add(., shortcut) -> relu        becomes one step
 *
 * A step is taken over if nobody else reads what it is computed from. The fused step stands where
 * the last of them stood, so that all its operands are there.
 */
#include "plan_fusion.h"
#include "runtime/isa.h"

#include <math.h>

/* ---- what can begin ------------------------------------------------------------------------ */

/* x [..., k] and out [..., n] as matrices. */
static bool begin_rows(cfxi_fusion *u, const cfxi_step *s, const cfx_tensor *x, int64_t n)
{
    const cfx_tensor *out = s->results[0].as.tensor;
    if (!x || x->dtype != CFX_DTYPE_FLOAT32 || !x->storage->planned || x->ndim < 1 ||
        cfxi_plan_row_of(x) == 0 || cfxi_plan_row_of(out) == 0 || out->ndim != x->ndim ||
        cfxi_tensor_numel(out) == 0 || x->size[x->ndim - 1] == 0)
        return false;
    u->problem.k = x->size[x->ndim - 1];
    u->problem.n = n;
    u->problem.m = cfxi_tensor_numel(x) / u->problem.k;
    u->problem.x_row = cfxi_plan_row_of(x);
    u->problem.out_row = cfxi_plan_row_of(out);
    u->columns = n;
    return true;
}

static bool begin_product(cfxi_fusion *u, const cfxi_step *s, const cfx_tensor *x,
                          const cfx_tensor *w, bool turned)
{
    const size_t k = turned ? 1 : 0;  /* which dimension of w is summed over */
    if (!cfxi_plan_is_constant(w) || w->ndim != 2 || !begin_rows(u, s, x, w->size[1 - k]) ||
        w->size[k] != u->problem.k)
        return false;
    u->w = w;
    u->problem.kind = CFXI_PRODUCT;
    u->problem.w_k = w->stride[k] / 4;
    u->problem.w_n = w->stride[1 - k] / 4;
    return true;
}

/* Weights of 8 or 4 bits, their scales and zero points. */
static bool begin_weight_only(cfxi_fusion *u, const cfxi_step *s)
{
    enum { X, CODES, GROUP = 5, SIZE };  /* scales, zero points and the bias follow the codes */
    for (size_t i = 0; i < 3; i++) {
        u->tensors[i] = cfxi_plan_tensor_arg(s, CODES + i);
        if (!(i == 2 && cfxi_plan_is_none(s, CODES + i)) && !cfxi_plan_is_known(u->tensors[i]))
            return false;
    }
    const cfx_tensor *scale = u->tensors[1];
    if (scale->dtype != CFX_DTYPE_FLOAT32 ||
        !begin_rows(u, s, cfxi_plan_tensor_arg(s, X), u->tensors[0]->size[0]))
        return false;
    const int64_t group = s->args[GROUP].as.i;
    u->w = u->tensors[0];
    u->problem.kind = CFXI_WEIGHT_ONLY;
    u->problem.weight_only = (cfxi_weight_only_form){
        .bits = s->args[SIZE].as.i > 0 ? 4 : 8,
        .group = scale->ndim > 1 && group < u->problem.k ? group : u->problem.k,
        .zeros = u->tensors[2] != NULL,
        .positive = s->args[SIZE].as.i == 0 && u->w->dtype == CFX_DTYPE_UINT8};
    return true;
}

static bool begin_conv(cfxi_fusion *u, const cfxi_step *s, cfx_runtime *rt)
{
    const cfx_tensor *x = cfxi_plan_tensor_arg(s, 0);
    cfx_error err = {0};
    cfxi_call c = {.op = s->op, .args = s->args, .rt = rt, .err = &err};
    c.results[0] = s->results[0];
    if (!x || x->dtype != CFX_DTYPE_FLOAT32 || !x->storage->planned ||
        !cfxi_plan_is_constant(cfxi_plan_tensor_arg(s, 1)) ||
        cfxi_tensor_numel(s->results[0].as.tensor) == 0 ||
        cfxi_conv_describe(&c, &u->problem.conv) != CFX_OK)
        return false;
    u->w = cfxi_plan_tensor_arg(s, 1);
    u->problem.kind = CFXI_CONVOLUTION;
    u->columns = u->problem.conv.groups * u->problem.conv.out_channels;
    return true;
}

/* A 1x1 convolution of dense images is a product over all pixels. */
static void flatten_conv(cfxi_problem *p)
{
    const cfxi_conv *c = &p->conv;
    for (int d = 0; d < CFXI_SPATIAL; d++)
        if (c->kernel[d] != 1 || c->stride[d] != 1 || c->before[d] != 0 || c->in[d] != c->out[d])
            return;
    if (c->groups != 1 || c->transposed || c->xs[1] != 1 || c->ys[1] != 1)
        return;
    const bool pixel = c->in[1] == 1 && c->in[2] == 1;  /* of each image: rows are images */
    if (!pixel &&
        (c->xs[4] < c->in_channels || c->xs[3] != c->in[2] * c->xs[4] ||
         c->ys[3] != c->out[2] * c->ys[4] ||
         (c->batch > 1 && (c->xs[0] != c->in[1] * c->xs[3] || c->ys[0] != c->out[1] * c->ys[3]))))
        return;
    p->kind = CFXI_PRODUCT;
    p->m = c->batch * c->in[1] * c->in[2];
    p->n = c->out_channels;
    p->k = c->in_channels;
    p->x_row = pixel ? c->xs[0] : c->xs[4];
    p->out_row = pixel ? c->ys[0] : c->ys[4];
    p->w_k = c->ws[1];
    p->w_n = c->ws[0];
}

/* The bias of a call, as floats of its own. */
static bool take_bias(const cfxi_fuser *f, cfxi_fusion *u, const cfx_tensor *bias)
{
    if (!cfxi_plan_is_constant(bias) || bias->ndim != 1 || bias->size[0] != u->columns)
        return false;
    u->bias = cfxi_base_alloc(f->plan->allocator, (size_t)u->columns * sizeof(float));
    for (int64_t i = 0; u->bias && i < u->columns; i++)
        u->bias[i] = cfxi_plan_element_of(bias, i);
    return u->bias != NULL;
}

static bool begin(const cfxi_fuser *f, cfxi_fusion *u, const cfxi_step *s)
{
    size_t bias = 2;
    bool ok = false;
    switch ((int)s->op) {
    case CFX_OPID_integer_linear: case CFX_OPID_integer_conv:
        ok = cfxi_plan_begin_integers(f, u, s);
        break;
    case CFX_OPID_dynamic_linear:
        ok = cfxi_plan_begin_dynamic(f, u, s);
        break;
    case CFX_OPID_linear:
        ok = begin_product(u, s, cfxi_plan_tensor_arg(s, 0), cfxi_plan_tensor_arg(s, 1), true);
        break;
    case CFX_OPID_addmm:
        ok = s->args[3].as.i == 1 && s->args[4].as.i == 1 &&
             begin_product(u, s, cfxi_plan_tensor_arg(s, 1), cfxi_plan_tensor_arg(s, 2), false);
        bias = 0;
        break;
    case CFX_OPID_matmul: case CFX_OPID_mm:
        ok = begin_product(u, s, cfxi_plan_tensor_arg(s, 0), cfxi_plan_tensor_arg(s, 1), false);
        break;
    case CFX_OPID_weight_linear:
        ok = begin_weight_only(u, s);
        bias = 4;
        break;
    case CFX_OPID_conv2d: case CFX_OPID_convolution:
        ok = begin_conv(u, s, f->rt);
        break;
    default:
        break;
    }
    if (!ok)
        return false;
    u->problem.isa = f->rt->isa;
    u->problem.precision = f->how->precision;
    u->problem.bf16 = f->bf16;
    u->problem.threads = cfx_runtime_threads(f->rt);
    const size_t x = s->op == CFX_OPID_addmm ? 1 : 0;
    u->x = cfxi_plan_number(f->plan, s->args[x].as.tensor);
    u->out = cfxi_plan_number(f->plan, s->results[0].as.tensor);
    return s->op == CFX_OPID_matmul || s->op == CFX_OPID_mm || u->problem.integers.used ||
           cfxi_plan_is_none(s, bias) ||
           take_bias(f, u, cfxi_plan_tensor_arg(s, bias));
}

/* ---- what can follow: constants ------------------------------------------------------------ */

/* Floats of the fusion, one for each column, made if they are not there yet. */
static float *own_floats(const cfxi_fuser *f, const cfxi_fusion *u, float **floats, float first)
{
    if (*floats)
        return *floats;
    *floats = cfxi_base_alloc(f->plan->allocator, (size_t)u->columns * sizeof(float));
    for (int64_t i = 0; *floats && i < u->columns; i++)
        (*floats)[i] = first;
    return *floats;
}

/* result = result * scale[i] + bias[i], in each column; either may be NULL. */
static bool take_factors(const cfxi_fuser *f, cfxi_fusion *u, const double *scale,
                         const double *bias)
{
    for (int64_t i = 0; u->problem.kind == CFXI_WEIGHT_ONLY && scale && i < u->columns; i++)
        if (scale[i] != 1)
            return false;
    if (u->problem.kind == CFXI_WEIGHT_ONLY)
        scale = NULL;
    if (u->problem.num_posts > 0 || (scale && !own_floats(f, u, &u->scale, 1)) ||
        !own_floats(f, u, &u->bias, 0))
        return false;
    for (int64_t i = 0; i < u->columns; i++) {
        if (scale)
            u->scale[i] = (float)((double)u->scale[i] * scale[i]);
        u->bias[i] = (float)((double)u->bias[i] * (scale ? scale[i] : 1) + (bias ? bias[i] : 0));
    }
    return true;
}

/* A sum or product with a constant that has one number for each column. */
static bool find_vector(const cfxi_fuser *f, const cfxi_fusion *u, const cfxi_step *s,
                        double *scale, double *bias)
{
    const cfx_tensor *out = s->results[0].as.tensor;
    const bool first = s->args[0].kind == CFX_DATUM_TENSOR &&
                       cfxi_plan_number(f->plan, s->args[0].as.tensor) != CFXI_NONE;
    const cfx_tensor *v = cfxi_plan_tensor_arg(s, first ? 1 : 0);
    const size_t column = u->problem.kind == CFXI_CONVOLUTION ? 1 : out->ndim - 1;
    if ((s->op != CFX_OPID_add && s->op != CFX_OPID_mul) || !cfxi_plan_is_constant(v) ||
        (s->op == CFX_OPID_add && s->args[2].as.i != 1) || v->ndim > out->ndim ||
        cfxi_tensor_numel(v) != u->columns || v->ndim + column < out->ndim)
        return false;
    const size_t at = column - (out->ndim - v->ndim);
    if (v->size[at] != u->columns)
        return false;
    for (int64_t i = 0; i < u->columns; i++) {
        const double number = (double)*(const float *)(const void *)(v->data + i * v->stride[at]);
        scale[i] = s->op == CFX_OPID_mul ? number : 1;
        bias[i] = s->op == CFX_OPID_add ? number : 0;
    }
    return true;
}

/* Whether two tensors have the same elements side by side, perhaps with other sizes. */
static bool is_flat(const cfx_tensor *a, const cfx_tensor *b)
{
    return cfx_tensor_is_contiguous(a) && cfx_tensor_is_contiguous(b) &&
           cfxi_tensor_numel(a) == cfxi_tensor_numel(b);
}

/* Whether a tensor has the elements that were computed so far, in the same order. There may be
 * other gaps between its rows. */
static bool fits(const cfxi_fuser *f, const cfxi_fusion *u, const cfx_tensor *t)
{
    const cfx_tensor *so_far = cfxi_plan_tensor(f->plan, u->out)->header;
    if (t->dtype != CFX_DTYPE_FLOAT32)
        return false;
    if (u->problem.kind != CFXI_CONVOLUTION)
        return is_flat(t, so_far) ||
               (cfxi_plan_lie_in_order(t, so_far) && t->size[t->ndim - 1] == u->problem.n &&
                cfxi_plan_row_of(t) > 0);
    return cfxi_plan_lie_alike(t, so_far) ||
           (cfxi_plan_lie_in_order(t, so_far) && t->ndim == 4 && t->stride[1] == 4);
}

/* Whether a step is one of several that are taken together: a sum with a number, beside one column.
 */
static bool has_company(const cfxi_fuser *f, uint32_t step)
{
    const uint32_t group = f->groups.elements[step].group;
    return group != CFXI_NONE && cfxi_plan_group(&f->groups, group)->n > 1;
}

static bool take_constants(const cfxi_fuser *f, cfxi_fusion *u, uint32_t step)
{
    const cfxi_step *s = cfxi_plan_step(f->plan, step);
    const size_t bytes = 2 * (size_t)u->columns * sizeof(double);
    if (s->removed || s->kernel || s->num_results != 1 || s->chosen || has_company(f, step) ||
        u->num_steps == CFXI_FUSED_STEPS || !fits(f, u, s->results[0].as.tensor))
        return false;
    double *scale = cfxi_base_alloc(f->plan->allocator, bytes);
    if (!scale)
        return false;
    double *bias = scale + u->columns;
    bool good = false;
    if (s->op == CFX_OPID_batch_norm)
        good = u->problem.kind == CFXI_CONVOLUTION &&
               cfxi_plan_find_norm(s, u->columns, scale, bias);
    else if (s->results[0].as.tensor->ndim == cfxi_plan_tensor(f->plan, u->out)->header->ndim)
        good = find_vector(f, u, s, scale, bias);
    good = good && take_factors(f, u, scale, bias);
    cfxi_base_free(f->plan->allocator, scale, bytes);
    if (good)
        u->steps[u->num_steps++] = step;
    return good;
}

/* ---- what can follow: element-wise functions ----------------------------------------------- */

/* Strides of an operand beside those of the result: both have columns or channels side by side. */
static bool find_rows(const cfxi_fusion *u, const cfx_tensor *t, int64_t rows[3])
{
    if (u->problem.kind != CFXI_CONVOLUTION) {
        rows[0] = cfx_tensor_is_contiguous(t) ? u->problem.n : cfxi_plan_row_of(t);
        return rows[0] > 0;
    }
    if (t->ndim != 4 || (t->stride[1] != 4 && t->size[1] > 1))
        return false;
    rows[0] = t->stride[0] / 4;
    rows[1] = t->stride[2] / 4;
    rows[2] = t->stride[3] / 4;
    return true;
}

/* What a clamp keeps; false if the function is none. */
static bool find_clamp(const cfxi_chain_op *op, cfxi_post *post)
{
    const bool low = op->fn == CFXI_FN_hardtanh || op->fn == CFXI_FN_clamp_min_s;
    const bool high = op->fn == CFXI_FN_hardtanh || op->fn == CFXI_FN_clamp_max_s;
    *post = (cfxi_post){.kind = CFXI_POST_CLAMP, .low = low ? (float)op->s.f[0] : -INFINITY,
                        .high = high ? (float)op->s.f[1] : INFINITY};
    if (op->fn == CFXI_FN_relu)
        post->low = 0;
    return low || high || op->fn == CFXI_FN_relu;
}

/* A function of what the one before it gave, and at most one operand, as a post. */
static bool find_post(const cfxi_chain *c, size_t i, cfxi_post *post)
{
    const cfxi_chain_op *op = &c->ops[i];
    size_t before = 0;
    size_t other = 0;
    for (size_t k = 0; k < op->n; k++) {
        const cfxi_chain_arg *arg = &op->args[k];
        const bool is_before = i == 0 ? arg->from == CFXI_FROM_INPUT && arg->index == 0
                                      : arg->from == CFXI_FROM_OP && arg->index == i - 1;
        before += is_before;
        if (!is_before && (arg->from != CFXI_FROM_INPUT || arg->index == 0))
            return false;
        if (!is_before)
            other = arg->index;
    }
    if (before != 1)
        return false;
    if (op->n == 1) {
        if (!find_clamp(op, post))
            *post = (cfxi_post){.kind = CFXI_POST_FN, .fn = op->fn, .s = op->s};
        return true;
    }
    *post = (cfxi_post){.kind = op->fn == CFXI_FN_add ? CFXI_POST_ADD : CFXI_POST_MUL,
                        .operand = other};
    return op->n == 2 && (op->fn == CFXI_FN_add || op->fn == CFXI_FN_mul);
}

/* A chain as simple posts, which tiles can do themselves; or as one post. `first` is what its input
 * 1 is among the operands. */
static bool add_posts(const cfxi_fuser *f, cfxi_fusion *u, const cfxi_chain *chain,
                      const int64_t rows[3], size_t first)
{
    cfxi_problem *p = &u->problem;
    cfxi_post posts[CFXI_MOST_POSTS];
    size_t n = 0;
    while (n < chain->num_ops && p->num_posts + n < CFXI_MOST_POSTS &&
           find_post(chain, n, &posts[n]))
        n++;
    if (n == chain->num_ops) {
        for (size_t i = 0; i < n; i++) {
            posts[i].operand += first - 1;
            memcpy(posts[i].rows, rows, sizeof posts[i].rows);
            p->posts[p->num_posts++] = posts[i];
        }
        return true;
    }
    if (u->chain || p->num_posts == CFXI_MOST_POSTS ||
        !(u->chain = cfxi_base_alloc(f->plan->allocator, sizeof *u->chain)))
        return false;
    *u->chain = *chain;
    cfxi_post *post = &p->posts[p->num_posts++];
    *post = (cfxi_post){.kind = CFXI_POST_CHAIN, .chain = u->chain};
    for (size_t i = 1; i < chain->num_inputs; i++)
        post->operands[i] = first + i - 1;
    memcpy(post->rows, rows, sizeof post->rows);
    return true;
}

/* Whether every step of a group that reads what was computed so far reads it as it lies. */
static bool reads_as_it_lies(const cfxi_fuser *f, const cfxi_fusion *u, const cfxi_group *group)
{
    const uint32_t memory = cfxi_plan_tensor(f->plan, u->out)->memory;
    const cfx_tensor *so_far = cfxi_plan_tensor(f->plan, u->out)->header;
    for (size_t i = 0; i < group->n; i++) {
        const cfxi_element *e = &f->groups.elements[group->steps[i]];
        for (size_t k = 0; k < e->n; k++) {
            const cfxi_planned_tensor *t =
                e->args[k] != CFXI_NONE ? cfxi_plan_tensor(f->plan, e->args[k]) : NULL;
            if (t && t->memory == memory &&
                (t->offset != 0 || !(cfxi_plan_lie_alike(t->header, so_far) ||
                                     (u->problem.kind != CFXI_CONVOLUTION &&
                                      is_flat(t->header, so_far)))))
                return false;
        }
    }
    return true;
}

/* The functions that are applied to what was computed so far. */
static bool take_group(cfxi_fuser *f, cfxi_fusion *u, uint32_t number)
{
    cfxi_group *group = cfxi_plan_group(&f->groups, number);
    const uint32_t last = group->steps[group->n - 1];
    const cfx_tensor *out = cfxi_plan_step(f->plan, last)->results[0].as.tensor;
    cfxi_chain chain;
    uint32_t inputs[CFXI_CHAIN_INPUTS];
    int64_t rows[3] = {0};
    if (group->taken || u->num_steps + group->n > CFXI_FUSED_STEPS || !fits(f, u, out) ||
        !reads_as_it_lies(f, u, group) ||
        !cfxi_plan_group_chain(&f->groups, group, u->out, &chain, inputs) ||
        u->num_operands + chain.num_inputs - 1 > CFXI_MOST_OPERANDS)
        return false;
    for (size_t i = 1; i < chain.num_inputs; i++) {
        const cfx_tensor *t = cfxi_plan_tensor(f->plan, inputs[i])->header;
        int64_t own[3] = {0};
        if (!fits(f, u, t) || !find_rows(u, t, own) || (i > 1 && memcmp(own, rows, sizeof own)))
            return false;
        memcpy(rows, own, sizeof own);
    }
    if (!add_posts(f, u, &chain, rows, u->num_operands))
        return false;
    for (size_t i = 1; i < chain.num_inputs; i++)
        u->operands[u->num_operands++] = inputs[i];
    for (size_t i = 0; i < group->n; i++)
        u->steps[u->num_steps++] = group->steps[i];
    group->taken = true;
    return true;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* In a product over pixels, operands have a row for each pixel. */
static void flatten(cfxi_fusion *u)
{
    const cfxi_problem before = u->problem;
    const bool pixel = before.conv.out[1] == 1 && before.conv.out[2] == 1;
    if (u->problem.kind != CFXI_CONVOLUTION)
        return;
    for (size_t i = 0; !pixel && i < before.num_posts; i++) {
        const cfxi_post *post = &before.posts[i];
        const bool has = post->kind == CFXI_POST_ADD || post->kind == CFXI_POST_MUL ||
                         (post->kind == CFXI_POST_CHAIN && post->chain->num_inputs > 1);
        if (has && (post->rows[1] != before.conv.out[2] * post->rows[2] ||
                    (before.conv.batch > 1 &&
                     post->rows[0] != before.conv.out[1] * post->rows[1])))
            return;
    }
    const int64_t *other = before.integers.other_rows;
    if (!pixel && before.integers.end.adds &&
        (other[1] != before.conv.out[2] * other[2] ||
         (before.conv.batch > 1 && other[0] != before.conv.out[1] * other[1])))
        return;
    flatten_conv(&u->problem);
    if (u->problem.kind == CFXI_PRODUCT)
        u->problem.integers.other_rows[0] = other[pixel ? 0 : 2];
    for (size_t i = 0; u->problem.kind == CFXI_PRODUCT && i < before.num_posts; i++)
        u->problem.posts[i].rows[0] = before.posts[i].rows[pixel ? 0 : 2];
}

/* The kernel writes where the last of the steps does. */
static void set_rows(const cfxi_fuser *f, cfxi_fusion *u, uint32_t begun)
{
    const cfx_tensor *out = cfxi_plan_tensor(f->plan, u->out)->header;
    cfxi_problem *p = &u->problem;
    const int64_t item = (int64_t)cfxi_tensor_itemsize(out);
    if (cfxi_plan_lie_alike(out, cfxi_plan_tensor(f->plan, begun)->header))
        return;
    if (p->kind != CFXI_CONVOLUTION) {
        p->out_row = cfx_tensor_is_contiguous(out) ? p->n : cfxi_plan_row_of(out);
        return;
    }
    p->conv.ys[0] = out->stride[0] / item;
    p->conv.ys[3] = out->stride[2] / item;
    p->conv.ys[4] = out->stride[3] / item;
}

/* Takes over what follows, as far as it can. */
static void follow(cfxi_fuser *f, cfxi_fusion *u)
{
    const uint32_t begun = u->out;
    const cfxi_integers *q = &u->problem.integers;
    for (bool more = true; more;) {
        const uint32_t step = cfxi_plan_only_reader(&f->groups, u->out);
        const uint32_t group = cfxi_plan_only_group(&f->groups, u->out);
        if (q->used && !q->end.to_float)
            more = cfxi_plan_take_integer_sum(f, u);
        else
            more = (step != CFXI_NONE && !q->used && take_constants(f, u, step)) ||
                   (group != CFXI_NONE && take_group(f, u, group));
        if (more)
            u->out = cfxi_plan_number(
                f->plan, cfxi_plan_step(f->plan, u->steps[u->num_steps - 1])->results[0].as.tensor);
    }
    set_rows(f, u, begun);
}

/* Puts a kernel in the place of the last step, and removes the others. */
static cfx_status replace(cfxi_fuser *f, cfxi_fusion *u, const cfxi_backend *backend,
                          const cfxi_constants *constants)
{
    cfxi_plan *plan = f->plan;
    cfxi_step *last = cfxi_plan_step(plan, u->steps[u->num_steps - 1]);
    const uint64_t begin = cfxi_rt_clock();
    last->kernel = backend->prepare(&u->problem, constants, plan->allocator, f->err);
    if (u->w)
        cfxi_tensor_give_back(u->w);  /* it is packed */
    plan->packing += cfxi_rt_clock() - begin;
    if (!last->kernel)
        return CFX_E_NOMEM;
    for (size_t i = 0; i + 1 < u->num_steps; i++)
        cfxi_plan_step(plan, u->steps[i])->removed = true;
    last->x = u->x;
    last->out = u->out;
    last->num_operands = u->num_operands;
    memcpy(last->operands, u->operands, sizeof last->operands);
    last->chain = u->chain;
    u->chain = NULL;
    return CFX_OK;
}

/* Whether its weights are some that all plans of the program have. */
static bool lasts(const cfxi_fuser *f, const cfxi_fusion *u)
{
    for (size_t i = 0; i < sizeof u->tensors / sizeof *u->tensors; i++)
        if (u->tensors[i] && !cfxi_base_pointers_get(f->how->weights, u->tensors[i]->storage))
            return false;
    return cfxi_base_pointers_get(f->how->weights, u->w->storage) != NULL;
}

static cfx_status fuse_from(cfxi_fuser *f, uint32_t first)
{
    const cfx_allocator *allocator = f->plan->allocator;
    cfxi_fusion u = {.steps = {first}, .num_steps = 1};
    cfx_error why = {0};
    cfx_status status = CFX_OK;
    if (begin(f, &u, cfxi_plan_step(f->plan, first))) {
        follow(f, &u);
        flatten(&u);
        cfxi_plan_fuse_before(f, &u, first);
        u.problem.has_bias = u.bias != NULL;
        const cfxi_choosing choosing = {.tuner = f->how->tuner, .rt = f->rt};
        u.problem.onednn = f->how->onednn;
        const cfxi_backend *backend = cfxi_backend_choose(&u.problem, &choosing, &why);
        const cfxi_constants constants = {.w = (const float *)(const void *)u.w->data,
                                          .bias = u.bias, .scale = u.scale,
                                          .w_zero = u.w_zero,
                                          .packs = lasts(f, &u) ? f->how->packs : NULL,
                                          .tensors = u.tensors, .factors = u.factors,
                                          .shifts = u.shifts, .rt = f->rt};
        if (backend)
            status = replace(f, &u, backend, &constants);
        else if (why.status != CFX_OK)  /* interrupted */
            status = cfx_error_set(f->err, why.status, "%s", why.message);
    }
    const size_t bytes = (size_t)u.columns * sizeof(float);
    cfxi_base_free(allocator, u.bias, bytes);
    cfxi_base_free(allocator, u.scale, bytes);
    cfxi_base_free(allocator, u.w_zero, bytes);
    cfxi_base_free(allocator, u.chain, sizeof *u.chain);
    cfxi_base_free(allocator, u.factors, 2 * (size_t)u.problem.k * sizeof *u.factors);
    return status;
}

/* A chain takes over quantize_per_tensor, if nothing else reads its result. */
static void follow_quantize(const cfxi_fuser *f, cfxi_fusion *u)
{
    enum { X, SCALE, ZERO, LOW, HIGH };
    const uint32_t step = cfxi_plan_only_reader(&f->groups, u->out);
    const cfxi_step *s = step != CFXI_NONE ? cfxi_plan_step(f->plan, step) : NULL;
    if (!s || s->op != CFX_OPID_quantize_per_tensor || s->removed || s->kernel ||
        cfxi_plan_only_giver(&f->groups, cfxi_plan_tensor_arg(s, X), step) !=
            u->steps[u->num_steps - 1])
        return;
    const cfx_tensor *out = s->results[0].as.tensor;
    cfxi_quantizing *q = &u->problem.quantizes;
    q->used = cfxi_integer_quantizing_of((cfx_dtype)out->dtype, (float)(1 / s->args[SCALE].as.f),
                                         (float)s->args[ZERO].as.i, (float)s->args[LOW].as.i,
                                         (float)s->args[HIGH].as.i, &q->by);
    if (q->used) {
        u->steps[u->num_steps++] = step;
        u->out = cfxi_plan_number(f->plan, out);
    }
}

/* Element-wise functions that no product has taken, but that belong together. */
static cfx_status fuse_group(cfxi_fuser *f, const cfxi_group *group)
{
    cfxi_chain chain;
    cfxi_fusion u = {.x = CFXI_NONE, .num_steps = group->n};
    if (group->taken || group->n == 0 ||
        !cfxi_plan_group_chain(&f->groups, group, CFXI_NONE, &chain, u.operands))
        return CFX_OK;
    for (size_t i = 0; i < group->n; i++)
        u.steps[i] = group->steps[i];
    const cfx_tensor *out = cfxi_plan_step(f->plan, u.steps[group->n - 1])->results[0].as.tensor;
    u.out = cfxi_plan_number(f->plan, out);
    u.num_operands = chain.num_inputs;
    u.problem = (cfxi_problem){.kind = CFXI_CHAIN, .isa = f->rt->isa, .chain = &chain,
                               .m = cfxi_tensor_numel(out)};
    follow_quantize(f, &u);
    return u.num_steps > 1 ? replace(f, &u, &cfxi_backend_chain, NULL) : CFX_OK;
}

/* What several steps are together, and what has a kernel of its own: readers and groups are others
 * afterwards. */
static cfx_status fuse_patterns(cfxi_fuser *f)
{
    cfx_status status = cfxi_plan_groups_find(&f->groups, f->plan, f->rt, f->err);
    if (status == CFX_OK)
        status = cfxi_plan_fuse_attention(f->plan, &f->groups, f->err);
    if (status == CFX_OK)
        status = cfxi_plan_fuse_norms(f->plan, &f->groups, f->err);
    cfxi_plan_groups_free(&f->groups);
    if (status == CFX_OK)
        status = cfxi_plan_integer_matmuls(f);
    return status == CFX_OK ? cfxi_plan_lstms(f->plan, f->err) : status;
}

cfx_status cfxi_plan_fuse(cfxi_plan *plan, cfx_runtime *rt, const cfxi_plan_how *how,
                          cfx_error *err)
{
    cfxi_fuser f = {.plan = plan, .rt = rt, .how = how, .int8 = cfxi_rt_int8(rt), .err = err};
    if (how->precision == CFX_PRECISION_BF16)
        f.bf16 = cfxi_rt_bf16(rt);
    CFX_TRY(fuse_patterns(&f));
    cfx_status status = cfxi_plan_groups_find(&f.groups, plan, rt, err);
    for (uint32_t i = 0; status == CFX_OK && i < plan->steps.size; i++)
        if (!cfxi_plan_step(plan, i)->removed && !cfxi_plan_step(plan, i)->kernel)
            status = fuse_from(&f, i);
    for (size_t i = 0; status == CFX_OK && i < f.groups.groups.size; i++)
        status = fuse_group(&f, cfxi_plan_group(&f.groups, i));
    cfxi_plan_groups_free(&f.groups);
    return status;
}
