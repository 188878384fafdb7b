/* plan_before.c - what convolutions take over of what comes before them.
 *
 *     contiguous(picture, channels_last) -> conv2d            reads the picture as it lies
 *     mul(image, of_channel) -> conv2d, 1x1                   multiplies rows when it reads them
 *     batch_norm -> relu -> conv2d, 1x1                       likewise, and cuts them off
 *
 * A step is taken over if nobody else reads its result.
 */
#include "plan_fusion.h"

#include <math.h>

enum { FEW_CHANNELS = 4 };  /* of which a convolution takes planes */

/* ---- norms --------------------------------------------------------------------------------- */

bool cfxi_plan_find_norm(const cfxi_step *s, int64_t n, double *scale, double *bias)
{
    const cfx_tensor *all[4];
    for (size_t i = 0; i < 4; i++) {
        all[i] = cfxi_plan_tensor_arg(s, 1 + i);
        const bool may_lack = i < 2 && cfxi_plan_is_none(s, 1 + i);
        if (!may_lack &&
            (!cfxi_plan_is_constant(all[i]) || all[i]->ndim != 1 || all[i]->size[0] != n))
            return false;
    }
    if (s->args[5].as.b)
        return false;
    for (int64_t i = 0; i < n; i++) {
        scale[i] = (all[0] ? (double)cfxi_plan_element_of(all[0], i) : 1) /
                   sqrt((double)cfxi_plan_element_of(all[3], i) + s->args[7].as.f);
        bias[i] = (all[1] ? (double)cfxi_plan_element_of(all[1], i) : 0) -
                  (double)cfxi_plan_element_of(all[2], i) * scale[i];
    }
    return true;
}

/* ---- steps --------------------------------------------------------------------------------- */

/* The step that gives a tensor to `reader` alone; NULL if there is none such. */
static cfxi_step *only_source(const cfxi_fuser *f, uint32_t tensor, uint32_t reader,
                              uint32_t *number)
{
    const uint32_t memory = tensor != CFXI_NONE ? cfxi_plan_tensor(f->plan, tensor)->memory
                                                : CFXI_NONE;
    *number = memory != CFXI_NONE ? f->groups.writer[memory] : CFXI_NONE;
    cfxi_step *s = *number != CFXI_NONE ? cfxi_plan_step(f->plan, *number) : NULL;
    const bool alone = s && !s->removed && !s->kernel && s->num_results == 1 &&
                       cfxi_plan_only_reader(&f->groups, tensor) == reader &&
                       cfxi_plan_number(f->plan, s->results[0].as.tensor) == tensor;
    return alone ? s : NULL;
}

/* The kernel stands for a step before it, too. */
static void stand_for(cfxi_fusion *u, uint32_t step)
{
    memmove(u->steps + 1, u->steps, u->num_steps * sizeof *u->steps);
    u->steps[0] = step;
    u->num_steps++;
}

/* A picture whose channels were only brought together for this convolution. */
static void take_planes(const cfxi_fuser *f, cfxi_fusion *u, uint32_t first)
{
    cfxi_conv *c = &u->problem.conv;
    uint32_t number;
    const cfxi_step *s = u->problem.kind == CFXI_CONVOLUTION && c->groups == 1 &&
                                 c->in_channels <= FEW_CHANNELS && u->num_steps < CFXI_FUSED_STEPS
                             ? only_source(f, u->x, first, &number) : NULL;
    const cfx_tensor *from = s && s->op == CFX_OPID_contiguous ? cfxi_plan_tensor_arg(s, 0) : NULL;
    const cfxi_backend *backend =
        u->problem.integers.used ? &cfxi_backend_bytes : &cfxi_backend_convolution;
    if (!from || from->ndim != 4 || !cfxi_tensor_has_whole_strides(from) ||
        from->dtype != cfxi_plan_tensor(f->plan, u->x)->header->dtype ||
        cfxi_plan_number(f->plan, from) == CFXI_NONE)
        return;
    cfxi_problem tried = u->problem;
    double cost;
    const int64_t item = (int64_t)cfxi_tensor_itemsize(from);
    tried.conv.xs[0] = from->stride[0] / item;
    tried.conv.xs[1] = from->stride[1] / item;
    tried.conv.xs[3] = from->stride[2] / item;
    tried.conv.xs[4] = from->stride[3] / item;
    if (!backend->query(&tried, &cost))
        return;
    u->problem = tried;
    u->x = cfxi_plan_number(f->plan, from);
    stand_for(u, number);
}

/* A product over pixels that may multiply them first. */
static bool takes_factors(const cfxi_fusion *u)
{
    const cfxi_problem *p = &u->problem;
    return p->kind == CFXI_PRODUCT && p->conv.batch > 0 && p->m > p->conv.batch &&
           !p->factors.scaled && !cfxi_backend_rounds(p) && !p->integers.used &&
           u->num_steps + 2 <= CFXI_FUSED_STEPS;
}

/* Floats from pixel to pixel of an image that is like `as`, but for gaps between pixels; 0 if it is
 * another. */
static int64_t pixel_step(const cfx_tensor *image, const cfx_tensor *as)
{
    return image->ndim == 4 && cfxi_plan_lie_in_order(image, as)
               ? cfxi_rt_row_step(image, 1) / 4 : 0;
}

/* Factors of an image: [batch, channels, 1, 1], channels side by side. */
static bool are_factors(const cfx_tensor *t, const cfxi_conv *c)
{
    return t->dtype == CFX_DTYPE_FLOAT32 && t->ndim == 4 && t->size[0] == c->batch &&
           t->size[1] == c->in_channels && t->size[2] == 1 && t->size[3] == 1 &&
           t->stride[1] == 4 && cfxi_tensor_has_whole_strides(t);
}

/* A product over pixels multiplies them by what was computed for each channel of the image. */
static void take_factors_of_image(const cfxi_fuser *f, cfxi_fusion *u, uint32_t first)
{
    cfxi_problem *p = &u->problem;
    uint32_t number;
    const cfxi_step *s = takes_factors(u) && u->num_operands < CFXI_MOST_OPERANDS
                             ? only_source(f, u->x, first, &number) : NULL;
    const cfx_tensor *a = s && s->op == CFX_OPID_mul ? cfxi_plan_tensor_arg(s, 0) : NULL;
    const cfx_tensor *b = a ? cfxi_plan_tensor_arg(s, 1) : NULL;
    if (!b || f->groups.elements[number].group == CFXI_NONE)
        return;
    const cfx_tensor *image = are_factors(b, &p->conv) ? a : b;
    const cfx_tensor *factors = image == a ? b : a;
    cfxi_group *group = cfxi_plan_group(&f->groups, f->groups.elements[number].group);
    if (group->n != 1 || group->taken || !are_factors(factors, &p->conv) ||
        image->dtype != CFX_DTYPE_FLOAT32 ||
        pixel_step(image, s->results[0].as.tensor) == 0 ||
        cfxi_plan_number(f->plan, image) == CFXI_NONE ||
        cfxi_plan_number(f->plan, factors) == CFXI_NONE)
        return;
    p->factors.scaled = true;
    p->factors.operand = u->num_operands;
    p->factors.rows = p->m / p->conv.batch;
    p->factors.step = factors->stride[0] / 4;
    p->factors.low = -INFINITY;
    p->factors.high = INFINITY;
    u->operands[u->num_operands++] = cfxi_plan_number(f->plan, factors);
    p->x_row = pixel_step(image, s->results[0].as.tensor);
    u->x = cfxi_plan_number(f->plan, image);
    group->taken = true;
    stand_for(u, number);
}

/* The relu that gives x, if it is a step of its own. */
static const cfxi_step *relu_before(const cfxi_fuser *f, const cfxi_fusion *u, uint32_t first,
                                    uint32_t *number)
{
    const cfxi_step *s = only_source(f, u->x, first, number);
    const cfxi_element *e = s ? &f->groups.elements[*number] : NULL;
    const bool own = e && e->known && e->fn == CFXI_FN_relu && e->group != CFXI_NONE &&
                     cfxi_plan_group(&f->groups, e->group)->n == 1 &&
                     !cfxi_plan_group(&f->groups, e->group)->taken;
    return own ? s : NULL;
}

/* The factors and shifts of a norm, as floats of the fusion. */
static bool find_factors(const cfxi_fuser *f, cfxi_fusion *u, const cfxi_step *norm)
{
    const int64_t k = u->problem.k;
    const size_t n = 2 * (size_t)k;
    double *both = cfxi_base_alloc(f->plan->allocator, n * sizeof *both);
    u->factors = both ? cfxi_base_alloc(f->plan->allocator, n * sizeof *u->factors) : NULL;
    const bool found = u->factors && cfxi_plan_find_norm(norm, k, both, both + k);
    for (size_t i = 0; found && i < n; i++)
        u->factors[i] = (float)both[i];
    if (!found)
        cfxi_base_free(f->plan->allocator, u->factors, n * sizeof *u->factors);
    u->factors = found ? u->factors : NULL;
    u->shifts = found ? u->factors + k : NULL;
    cfxi_base_free(f->plan->allocator, both, n * sizeof *both);
    return found;
}

/* A norm whose statistics are known, and a relu after it. */
static void take_norm(const cfxi_fuser *f, cfxi_fusion *u, uint32_t first)
{
    cfxi_problem *p = &u->problem;
    uint32_t relu_at;
    uint32_t norm_at;
    if (!takes_factors(u))
        return;
    const cfxi_step *relu = relu_before(f, u, first, &relu_at);
    const cfx_tensor *between = relu ? cfxi_plan_tensor_arg(relu, 0) : NULL;
    const uint32_t given = relu ? (between ? cfxi_plan_number(f->plan, between) : CFXI_NONE) : u->x;
    const cfxi_step *norm = only_source(f, given, relu ? relu_at : first, &norm_at);
    const cfx_tensor *image =
        norm && norm->op == CFX_OPID_batch_norm ? cfxi_plan_tensor_arg(norm, 0) : NULL;
    const cfx_tensor *out = cfxi_plan_tensor(f->plan, u->x)->header;
    if (!image || image->dtype != CFX_DTYPE_FLOAT32 || pixel_step(image, out) == 0 ||
        (between && !cfxi_plan_lie_alike(between, out)) ||
        cfxi_plan_number(f->plan, image) == CFXI_NONE || !find_factors(f, u, norm))
        return;
    p->factors.scaled = true;
    p->factors.known = true;
    p->factors.rows = p->m;
    p->factors.low = relu ? 0 : -INFINITY;
    p->factors.high = INFINITY;
    p->x_row = pixel_step(image, out);
    u->x = cfxi_plan_number(f->plan, image);
    if (relu) {
        cfxi_plan_group(&f->groups, f->groups.elements[relu_at].group)->taken = true;
        stand_for(u, relu_at);
    }
    stand_for(u, norm_at);
}

void cfxi_plan_fuse_before(const cfxi_fuser *f, cfxi_fusion *u, uint32_t first)
{
    take_planes(f, u, first);
    take_factors_of_image(f, u, first);
    take_norm(f, u, first);
}
