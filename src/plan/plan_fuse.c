/* plan_fuse.c - products and convolutions with constant weights go to back ends, and take over what
 * follows them:
 *
 *     conv2d -> batch_norm -> add(., shortcut) -> relu        becomes one step
 *
 * A step is taken over if nobody else reads what it is computed from. The fused step stands where
 * the last of them stood, so that all its operands are there.
 */
#include "plan_impl.h"

#include <math.h>

/* Who reads each memory: how many steps, and one of them. */
typedef struct readers {
    uint32_t count;
    uint32_t step;
} readers;

typedef struct fuser {
    cfxi_plan *plan;
    cfx_runtime *rt;
    readers *read;   /* by memory */
    cfx_error *err;
} fuser;

/* A kernel in the making. */
typedef struct fusion {
    cfxi_problem problem;
    const cfx_tensor *w;
    uint32_t x, out;         /* numbers of tensors */
    uint32_t last;           /* the step that it stands for */
    uint32_t operands[CFXI_MOST_POSTS];
    float *bias;             /* of all columns or channels: NULL if there is none */
    float *scale;
    int64_t columns;
} fusion;

/* ---- who reads what ------------------------------------------------------------------------ */

typedef struct reading {
    fuser *f;
    uint32_t step;
} reading;

static void note_reader(void *ctx, uint32_t tensor)
{
    const reading *r = ctx;
    readers *m = &r->f->read[cfxi_plan_tensor(r->f->plan, tensor)->memory];
    if (m->count == 0 || m->step != r->step)
        m->count++;
    m->step = r->step;
}

static void note_readers(fuser *f)
{
    const cfxi_plan *plan = f->plan;
    for (uint32_t i = 0; i < plan->steps.size; i++) {
        reading r = {f, i};
        for (size_t k = 0; k < cfxi_plan_step(plan, i)->num_args; k++)
            cfxi_plan_visit(plan, cfxi_plan_step(plan, i)->args[k], note_reader, &r);
    }
    reading result = {f, CFXI_NONE};
    for (size_t i = 0; i < plan->outs.size; i++)
        cfxi_plan_visit(plan, cfxi_plan_out(plan, i)->value, note_reader, &result);
}

/* The only step that reads a tensor; NULL if there is another, or it is returned. */
static cfxi_step *only_reader(const fuser *f, uint32_t tensor, uint32_t *step)
{
    const readers *m = &f->read[cfxi_plan_tensor(f->plan, tensor)->memory];
    if (m->count != 1 || m->step == CFXI_NONE)
        return NULL;
    *step = m->step;
    cfxi_step *found = cfxi_plan_step(f->plan, m->step);
    return found->removed || found->kernel || found->num_results != 1 || found->chosen ? NULL
                                                                                         : found;
}

/* ---- tensors ------------------------------------------------------------------------------- */

static const cfx_tensor *tensor_arg(const cfxi_step *s, size_t i)
{
    return i < s->num_args && s->args[i].kind == CFX_DATUM_TENSOR ? s->args[i].as.tensor : NULL;
}

static bool is_none(const cfxi_step *s, size_t i)
{
    return i >= s->num_args || s->args[i].kind == CFX_DATUM_NONE ||
           s->args[i].kind == CFX_DATUM_INVALID;
}

/* A float32 tensor whose elements are known while planning. */
static bool is_constant(const cfx_tensor *t)
{
    return t && t->dtype == CFX_DTYPE_FLOAT32 && cfxi_rt_can_read(t) &&
           cfxi_tensor_has_whole_strides(t);
}

static bool has_sizes_of(const cfx_tensor *a, const cfx_tensor *b)
{
    return a->ndim == b->ndim && memcmp(a->size, b->size, a->ndim * sizeof *a->size) == 0;
}

static float element_of(const cfx_tensor *t, int64_t i)
{
    return *(const float *)(const void *)(t->data + i * t->stride[0]);
}

/* ---- what can begin ------------------------------------------------------------------------ */

/* x [..., k] and out [..., n] as matrices of contiguous rows. */
static bool begin_product(fusion *u, const cfxi_step *s, const cfx_tensor *x, const cfx_tensor *w,
                          bool turned)
{
    const cfx_tensor *out = s->results[0].as.tensor;
    if (!x || x->dtype != CFX_DTYPE_FLOAT32 || !x->storage->planned || !is_constant(w) ||
        w->ndim != 2 || x->ndim < 1 || !cfx_tensor_is_contiguous(x) ||
        !cfx_tensor_is_contiguous(out) || out->ndim != x->ndim || cfxi_tensor_numel(out) == 0)
        return false;
    const size_t k = turned ? 1 : 0;  /* which dimension of w is summed over */
    u->w = w;
    u->problem.kind = CFXI_PRODUCT;
    u->problem.k = w->size[k];
    u->problem.n = w->size[1 - k];
    if (u->problem.k == 0 || x->size[x->ndim - 1] != u->problem.k)
        return false;
    u->problem.m = cfxi_tensor_numel(x) / u->problem.k;
    u->problem.x_row = u->problem.k;
    u->problem.out_row = u->problem.n;
    u->problem.w_k = w->stride[k] / 4;
    u->problem.w_n = w->stride[1 - k] / 4;
    u->columns = u->problem.n;
    return true;
}

static bool begin_conv(fusion *u, const cfxi_step *s, cfx_runtime *rt)
{
    const cfx_tensor *x = tensor_arg(s, 0);
    cfx_error err = {0};
    cfxi_call c = {.op = s->op, .args = s->args, .rt = rt, .err = &err};
    c.results[0] = s->results[0];
    if (!x || x->dtype != CFX_DTYPE_FLOAT32 || !x->storage->planned ||
        !is_constant(tensor_arg(s, 1)) || cfxi_tensor_numel(s->results[0].as.tensor) == 0 ||
        cfxi_conv_describe(&c, &u->problem.conv) != CFX_OK)
        return false;
    u->w = tensor_arg(s, 1);
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
    if (c->groups != 1 || c->transposed || c->xs[1] != 1 || c->ys[1] != 1 ||
        c->xs[4] < c->in_channels || c->xs[3] != c->in[2] * c->xs[4] ||
        c->ys[3] != c->out[2] * c->ys[4] ||
        (c->batch > 1 && (c->xs[0] != c->in[1] * c->xs[3] || c->ys[0] != c->out[1] * c->ys[3])))
        return;
    p->kind = CFXI_PRODUCT;
    p->m = c->batch * c->in[1] * c->in[2];
    p->n = c->out_channels;
    p->k = c->in_channels;
    p->x_row = c->xs[4];
    p->out_row = c->ys[4];
    p->w_k = c->ws[1];
    p->w_n = c->ws[0];
}

/* The bias of a call, as floats of its own. */
static bool take_bias(const fuser *f, fusion *u, const cfx_tensor *bias)
{
    if (!is_constant(bias) || bias->ndim != 1 || bias->size[0] != u->columns)
        return false;
    u->bias = cfxi_base_alloc(f->plan->allocator, (size_t)u->columns * sizeof(float));
    for (int64_t i = 0; u->bias && i < u->columns; i++)
        u->bias[i] = element_of(bias, i);
    return u->bias != NULL;
}

static bool begin(const fuser *f, fusion *u, const cfxi_step *s)
{
    size_t bias = 2;
    bool ok = false;
    switch ((int)s->op) {
    case CFX_OPID_linear:
        ok = begin_product(u, s, tensor_arg(s, 0), tensor_arg(s, 1), true);
        break;
    case CFX_OPID_addmm:
        ok = s->args[3].as.i == 1 && s->args[4].as.i == 1 &&
             begin_product(u, s, tensor_arg(s, 1), tensor_arg(s, 2), false);
        bias = 0;
        break;
    case CFX_OPID_matmul: case CFX_OPID_mm:
        ok = begin_product(u, s, tensor_arg(s, 0), tensor_arg(s, 1), false);
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
    u->problem.threads = cfx_runtime_threads(f->rt);
    const size_t x = s->op == CFX_OPID_addmm ? 1 : 0;
    u->x = cfxi_plan_number(f->plan, s->args[x].as.tensor);
    u->out = cfxi_plan_number(f->plan, s->results[0].as.tensor);
    return s->op == CFX_OPID_matmul || s->op == CFX_OPID_mm || is_none(s, bias) ||
           take_bias(f, u, tensor_arg(s, bias));
}

/* ---- what can follow ----------------------------------------------------------------------- */

/* Element-wise functions of one argument without numbers. */
static bool find_function(const cfxi_step *s, cfxi_post *post)
{
    static const struct {
        cfx_operator op;
        cfxi_fn fn;
    } functions[] = {
        {CFX_OPID_silu, CFXI_FN_silu},           {CFX_OPID_sigmoid, CFXI_FN_sigmoid},
        {CFX_OPID_tanh, CFXI_FN_tanh},           {CFX_OPID_hardswish, CFXI_FN_hardswish},
        {CFX_OPID_mish, CFXI_FN_mish},           {CFX_OPID_hardsigmoid, CFXI_FN_hardsigmoid},
        {CFX_OPID_exp, CFXI_FN_exp},             {CFX_OPID_neg, CFXI_FN_neg},
        {CFX_OPID_square, CFXI_FN_square},       {CFX_OPID_softsign, CFXI_FN_softsign},
    };
    const char *how = s->op == CFX_OPID_gelu ? cfx_datum_text(s->args[1], NULL) : NULL;
    post->kind = CFXI_POST_FN;
    if (s->op == CFX_OPID_gelu)
        post->fn = how && strcmp(how, "tanh") == 0 ? CFXI_FN_gelu_tanh : CFXI_FN_gelu;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i].op == s->op) {
            post->fn = functions[i].fn;
            return true;
        }
    return s->op == CFX_OPID_gelu;
}

static bool number_of(const cfxi_step *s, size_t i, float otherwise, float *out)
{
    const cfx_datum d = s->args[i];
    *out = d.kind == CFX_DATUM_INT ? (float)d.as.i : d.kind == CFX_DATUM_FLOAT ? (float)d.as.f
                                                                               : otherwise;
    return d.kind == CFX_DATUM_INT || d.kind == CFX_DATUM_FLOAT || is_none(s, i);
}

static bool find_clamp(const cfxi_step *s, cfxi_post *post)
{
    *post = (cfxi_post){.kind = CFXI_POST_CLAMP, .low = 0, .high = INFINITY};
    switch ((int)s->op) {
    case CFX_OPID_relu: return true;
    case CFX_OPID_relu6: post->high = 6; return true;
    case CFX_OPID_hardtanh: case CFX_OPID_clamp:
        return number_of(s, 1, -INFINITY, &post->low) && number_of(s, 2, INFINITY, &post->high);
    default: return false;
    }
}

/* Strides of an operand beside those of the result: both have columns or channels side by side. */
static bool find_rows(const fusion *u, const cfx_tensor *t, int64_t rows[3])
{
    if (u->problem.kind == CFXI_PRODUCT && t->ndim != 4) {
        rows[0] = u->problem.n;
        return cfx_tensor_is_contiguous(t);
    }
    if (t->ndim != 4 || (t->stride[1] != 4 && t->size[1] > 1))
        return false;
    rows[0] = t->stride[0] / 4;
    rows[1] = t->stride[2] / 4;
    rows[2] = t->stride[3] / 4;
    return true;
}

/* out = x + other or x * other, of the same sizes. */
static bool find_operand(const fuser *f, const fusion *u, const cfxi_step *s, cfxi_post *post,
                         uint32_t *operand)
{
    const cfx_tensor *out = s->results[0].as.tensor;
    const bool first = s->args[0].kind == CFX_DATUM_TENSOR &&
                       cfxi_plan_number(f->plan, s->args[0].as.tensor) == u->out;
    const cfx_tensor *other = tensor_arg(s, first ? 1 : 0);
    if ((s->op != CFX_OPID_add && s->op != CFX_OPID_mul) ||
        (s->op == CFX_OPID_add && s->args[2].as.i != 1) || !other ||
        other->dtype != CFX_DTYPE_FLOAT32 || !other->storage->planned ||
        !has_sizes_of(other, out))
        return false;
    *operand = cfxi_plan_number(f->plan, other);
    *post = (cfxi_post){.kind = s->op == CFX_OPID_add ? CFXI_POST_ADD : CFXI_POST_MUL};
    return *operand != u->out && find_rows(u, other, post->rows);
}

/* A norm with known statistics is a factor of the weights, and a bias. */
static bool take_norm(const fuser *f, fusion *u, const cfxi_step *s)
{
    const cfx_tensor *all[4];
    for (size_t i = 0; i < 4; i++) {
        all[i] = tensor_arg(s, 1 + i);
        const bool may_lack = i < 2 && is_none(s, 1 + i);
        if (!may_lack && (!is_constant(all[i]) || all[i]->ndim != 1 ||
                          all[i]->size[0] != u->columns))
            return false;
    }
    if (s->args[5].as.b || u->problem.num_posts > 0 || u->scale)
        return false;
    const size_t bytes = (size_t)u->columns * sizeof(float);
    float *bias = cfxi_base_alloc(f->plan->allocator, bytes);
    u->scale = cfxi_base_alloc(f->plan->allocator, bytes);
    if (!bias || !u->scale) {
        cfxi_base_free(f->plan->allocator, bias, bytes);
        return false;
    }
    for (int64_t i = 0; i < u->columns; i++) {
        const double scale = (all[0] ? (double)element_of(all[0], i) : 1) /
                             sqrt((double)element_of(all[3], i) + s->args[7].as.f);
        u->scale[i] = (float)scale;
        bias[i] = (float)(((u->bias ? (double)u->bias[i] : 0) - (double)element_of(all[2], i)) *
                              scale + (all[1] ? (double)element_of(all[1], i) : 0));
    }
    cfxi_base_free(f->plan->allocator, u->bias, bytes);
    u->bias = bias;
    return true;
}

/* Whether the result of a step can take the place of what was computed so far. */
static bool fits(const fuser *f, const fusion *u, const cfxi_step *s)
{
    const cfx_tensor *out = s->results[0].as.tensor;
    const cfx_tensor *so_far = cfxi_plan_tensor(f->plan, u->out)->header;
    return out->dtype == CFX_DTYPE_FLOAT32 && has_sizes_of(out, so_far) &&
           memcmp(out->stride, so_far->stride, out->ndim * sizeof *out->stride) == 0;
}

static bool follow(const fuser *f, fusion *u, const cfxi_step *s)
{
    cfxi_post post = {0};
    uint32_t operand = CFXI_NONE;
    if (!fits(f, u, s))
        return false;
    if (s->op == CFX_OPID_batch_norm)
        return u->problem.kind == CFXI_CONVOLUTION && take_norm(f, u, s);
    if (u->problem.num_posts == CFXI_MOST_POSTS ||
        (!find_clamp(s, &post) && !find_function(s, &post) &&
         !find_operand(f, u, s, &post, &operand)))
        return false;
    post.operand = u->problem.num_posts;
    u->operands[u->problem.num_posts] = operand;
    u->problem.posts[u->problem.num_posts++] = post;
    return true;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static const cfxi_backend *choose(const cfxi_problem *p)
{
    static const cfxi_backend *const all[] = {&cfxi_backend_product, &cfxi_backend_depthwise,
                                              &cfxi_backend_convolution};
    const cfxi_backend *best = NULL;
    double least = INFINITY;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double cost;
        if (all[i]->query(p, &cost) && cost < least) {
            least = cost;
            best = all[i];
        }
    }
    return best;
}

/* In a product over pixels, operands have a row for each pixel. */
static void flatten(fusion *u)
{
    const cfxi_problem before = u->problem;
    if (u->problem.kind != CFXI_CONVOLUTION)
        return;
    for (size_t i = 0; i < before.num_posts; i++) {
        const cfxi_post *post = &before.posts[i];
        const bool has = post->kind == CFXI_POST_ADD || post->kind == CFXI_POST_MUL;
        if (has && (post->rows[1] != before.conv.out[2] * post->rows[2] ||
                    (before.conv.batch > 1 &&
                     post->rows[0] != before.conv.out[1] * post->rows[1])))
            return;
    }
    flatten_conv(&u->problem);
    for (size_t i = 0; u->problem.kind == CFXI_PRODUCT && i < before.num_posts; i++)
        u->problem.posts[i].rows[0] = before.posts[i].rows[2];
}

static cfx_status fuse_from(fuser *f, uint32_t first)
{
    cfxi_plan *plan = f->plan;
    const size_t bytes_of_float = sizeof(float);
    fusion u = {.last = first};
    uint32_t steps[CFXI_MOST_POSTS + 2];
    size_t count = 0;
    cfx_status status = CFX_OK;
    if (begin(f, &u, cfxi_plan_step(plan, first))) {
        steps[count++] = first;
        uint32_t next;
        for (const cfxi_step *s; count < sizeof steps / sizeof *steps &&
                                 (s = only_reader(f, u.out, &next)) && follow(f, &u, s);) {
            steps[count++] = u.last = next;
            u.out = cfxi_plan_number(plan, s->results[0].as.tensor);
        }
        flatten(&u);
        u.problem.has_bias = u.bias != NULL;
        const cfxi_backend *backend = choose(&u.problem);
        const cfxi_constants constants = {(const float *)(const void *)u.w->data, u.bias, u.scale};
        cfxi_step *last = cfxi_plan_step(plan, u.last);
        if (backend) {
            last->kernel = backend->prepare(&u.problem, &constants, plan->allocator, f->err);
            status = last->kernel ? CFX_OK : CFX_E_NOMEM;
            for (size_t i = 0; last->kernel && i + 1 < count; i++)
                cfxi_plan_step(plan, steps[i])->removed = true;
            last->x = u.x;
            last->out = u.out;
            memcpy(last->operands, u.operands, sizeof last->operands);
        }
    }
    if (u.bias)
        cfxi_base_free(plan->allocator, u.bias, (size_t)u.columns * bytes_of_float);
    if (u.scale)
        cfxi_base_free(plan->allocator, u.scale, (size_t)u.columns * bytes_of_float);
    return status;
}

cfx_status cfxi_plan_fuse(cfxi_plan *plan, cfx_runtime *rt, cfx_error *err)
{
    const size_t bytes = (plan->memories.size + 1) * sizeof(readers);
    fuser f = {plan, rt, cfxi_base_alloc(plan->allocator, bytes), err};
    if (!f.read)
        return cfxi_base_nomem(err);
    memset(f.read, 0, bytes);
    note_readers(&f);
    cfx_status status = CFX_OK;
    for (uint32_t i = 0; status == CFX_OK && i < plan->steps.size; i++)
        if (!cfxi_plan_step(plan, i)->removed && !cfxi_plan_step(plan, i)->kernel)
            status = fuse_from(&f, i);
    cfxi_base_free(plan->allocator, f.read, bytes);
    return status;
}
