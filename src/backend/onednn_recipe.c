/* onednn_recipe.c - a problem in oneDNN's words: layouts, post-operations, a primitive descriptor.
 *
 * Activations have the strides of the problem; the layout of weights is oneDNN's choice.
 */
#include "onednn.h"

/* ---- layouts ------------------------------------------------------------------------------- */

static void set2(int64_t *to, int64_t a, int64_t b)
{
    to[0] = a;
    to[1] = b;
}

static void set4(int64_t *to, int64_t a, int64_t b, int64_t c, int64_t d)
{
    set2(to, a, b);
    set2(to + 2, c, d);
}

cfxi_dnn_shape cfxi_backend_onednn_shape(const cfxi_problem *p)
{
    const bool rounds = cfxi_backend_rounds(p);
    cfxi_dnn_shape s = {.ndim = 2, .type = rounds ? CFXI_DNN_BFLOAT16 : CFXI_DNN_FLOAT32,
                        .w_ndim = 2, .columns = p->n};
    const cfxi_conv *c = &p->conv;
    if (p->kind == CFXI_PRODUCT) {
        set2(s.x, p->m, p->k);
        set2(s.x_stride, rounds ? p->k : p->x_row, 1);
        set2(s.out, p->m, p->n);
        set2(s.out_stride, p->out_row, 1);
        set2(s.w, p->k, p->n);
        return s;
    }
    s.ndim = 4;
    s.columns = c->groups * c->out_channels;
    set4(s.x, c->batch, c->groups * c->in_channels, c->in[1], c->in[2]);
    if (rounds)
        set4(s.x_stride, s.x[1] * s.x[2] * s.x[3], 1, s.x[1] * s.x[3], s.x[1]);
    else
        set4(s.x_stride, c->xs[0], 1, c->xs[3], c->xs[4]);
    set4(s.out, c->batch, s.columns, c->out[1], c->out[2]);
    set4(s.out_stride, c->ys[0], 1, c->ys[3], c->ys[4]);
    const int grouped = c->groups > 1;
    s.w_ndim = 4 + grouped;
    s.w[0] = c->groups;
    set4(s.w + grouped, c->out_channels, c->in_channels, c->kernel[1], c->kernel[2]);
    return s;
}

static cfxi_dnn_layout *layout(const cfxi_onednn *d, int type, int ndim, const int64_t *sizes,
                               const int64_t *strides)
{
    cfxi_dnn_layout *made = NULL;
    return d->memory_desc_create_with_strides(&made, ndim, sizes, type, strides) == 0
               ? made : NULL;
}

static cfxi_dnn_layout *any_layout(const cfxi_onednn *d, int type, int ndim, const int64_t *sizes)
{
    cfxi_dnn_layout *made = NULL;
    return d->memory_desc_create_with_tag(&made, ndim, sizes, type, CFXI_DNN_ANY) == 0
               ? made : NULL;
}

cfxi_dnn_layout *cfxi_backend_onednn_operand(const cfxi_onednn *d, const cfxi_problem *p,
                                             const cfxi_post *post)
{
    const cfxi_dnn_shape s = cfxi_backend_onednn_shape(p);
    int64_t strides[CFXI_DNN_DIMS] = {0};
    if (p->kind == CFXI_PRODUCT)
        set2(strides, post->rows[0], 1);
    else
        set4(strides, post->rows[0], 1, post->rows[1], post->rows[2]);
    return layout(d, CFXI_DNN_FLOAT32, s.ndim, s.out, strides);
}

/* ---- posts --------------------------------------------------------------------------------- */

typedef struct function {
    cfxi_fn fn;
    int kind;
    float alpha, beta;
} function;

static const function functions[] = {
    {CFXI_FN_gelu, CFXI_DNN_GELU_ERF, 0, 0},
    {CFXI_FN_gelu_tanh, CFXI_DNN_GELU_TANH, 0, 0},
    {CFXI_FN_silu, CFXI_DNN_SWISH, 1, 0},
    {CFXI_FN_sigmoid, CFXI_DNN_LOGISTIC, 0, 0},
    {CFXI_FN_tanh, CFXI_DNN_TANH, 0, 0},
    {CFXI_FN_mish, CFXI_DNN_MISH, 0, 0},
    {CFXI_FN_hardswish, CFXI_DNN_HARDSWISH, 1.0f / 6, 0.5f},
    {CFXI_FN_hardsigmoid, CFXI_DNN_HARDSIGMOID, 1.0f / 6, 0.5f},
};

static const function *function_of(const cfxi_post *post)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i].fn == post->fn)
            return &functions[i];
    return NULL;
}

/* Whether oneDNN has the same operation. Its relu and clip turn NaN into a bound; ours keep it. */
static bool has_twin(const cfxi_post *post)
{
    switch (post->kind) {
    case CFXI_POST_ADD: case CFXI_POST_MUL: return true;
    case CFXI_POST_CLAMP: case CFXI_POST_CHAIN: return false;
    case CFXI_POST_FN: return function_of(post) != NULL;
    }
    return false;
}

static bool append(const cfxi_onednn *d, const cfxi_problem *p, const cfxi_post *post,
                   cfxi_dnn_posts *to)
{
    if (post->kind == CFXI_POST_FN) {
        const function *f = function_of(post);
        return d->post_ops_append_eltwise(to, f->kind, f->alpha, f->beta) == 0;
    }
    cfxi_dnn_layout *other = cfxi_backend_onednn_operand(d, p, post);
    const int kind = post->kind == CFXI_POST_ADD ? CFXI_DNN_ADD : CFXI_DNN_MUL;
    const bool ok = other && d->post_ops_append_binary(to, kind, other) == 0;
    if (other)
        d->memory_desc_destroy(other);
    return ok;
}

/* With the first `fused` posts; NULL if they are refused. */
static cfxi_dnn_attr *attributes(const cfxi_onednn *d, const cfxi_problem *p, size_t fused)
{
    cfxi_dnn_attr *attr = NULL;
    cfxi_dnn_posts *posts = NULL;
    bool ok = d->primitive_attr_create(&attr) == 0 && d->post_ops_create(&posts) == 0 &&
              d->primitive_attr_set_scratchpad_mode(attr, CFXI_DNN_SCRATCH_BY_USER) == 0;
    for (size_t i = 0; ok && i < fused; i++)
        ok = append(d, p, &p->posts[i], posts);
    ok = ok && d->primitive_attr_set_post_ops(attr, posts) == 0;
    if (posts)
        d->post_ops_destroy(posts);
    if (!ok && attr)
        d->primitive_attr_destroy(attr);
    return ok ? attr : NULL;
}

/* ---- recipes ------------------------------------------------------------------------------- */

typedef struct layouts {
    cfxi_dnn_layout *x, *w, *bias, *out;
} layouts;

static cfxi_dnn_recipe *conv_recipe(const cfxi_onednn *d, const cfxi_conv *c, const layouts *l,
                                    const cfxi_dnn_attr *attr)
{
    int64_t gaps[2], after[2];
    for (int i = 0; i < 2; i++) {
        gaps[i] = c->dilation[1 + i] - 1;
        after[i] = (c->out[1 + i] - 1) * c->stride[1 + i] +
                   (c->kernel[1 + i] - 1) * c->dilation[1 + i] + 1 - c->in[1 + i] -
                   c->before[1 + i];
    }
    cfxi_dnn_recipe *made = NULL;
    const int status = d->convolution_forward_primitive_desc_create(
        &made, d->engine, CFXI_DNN_INFERENCE, CFXI_DNN_CONVOLUTION, l->x, l->w, l->bias, l->out,
        &c->stride[1], gaps, &c->before[1], after, attr);
    return status == 0 ? made : NULL;
}

static cfxi_dnn_recipe *recipe_with(const cfxi_onednn *d, const cfxi_problem *p, const layouts *l,
                                    size_t fused)
{
    cfxi_dnn_attr *attr = attributes(d, p, fused);
    cfxi_dnn_recipe *made = NULL;
    if (!attr)
        return NULL;
    if (p->kind == CFXI_CONVOLUTION)
        made = conv_recipe(d, &p->conv, l, attr);
    else if (d->matmul_primitive_desc_create(&made, d->engine, l->x, l->w, l->bias, l->out,
                                             attr) != 0)
        made = NULL;
    d->primitive_attr_destroy(attr);
    return made;
}

const char *cfxi_backend_onednn_name(const cfxi_onednn *d, const cfxi_dnn_recipe *recipe)
{
    const char *name = NULL;
    return d->primitive_desc_query(recipe, CFXI_DNN_ASK_NAME, 0, &name) == 0 && name ? name : "";
}

/* Not plain loops, and no instructions that the runtime may not use. */
static bool is_fast(const char *name, cfx_isa isa)
{
    const bool plain = strncmp(name, "ref", 3) == 0 || strstr(name, ":ref");
    return !plain && (isa == CFX_ISA_AVX512 || !strstr(name, "avx512")) &&
           (isa != CFX_ISA_PLAIN || !strstr(name, "avx"));
}

cfxi_dnn_recipe *cfxi_backend_onednn_recipe(const cfxi_onednn *d, const cfxi_problem *p,
                                            size_t *fused)
{
    const cfxi_dnn_shape s = cfxi_backend_onednn_shape(p);
    const int64_t columns[] = {1, s.columns};
    const bool product = p->kind == CFXI_PRODUCT;
    const layouts l = {
        layout(d, s.type, s.ndim, s.x, s.x_stride),
        any_layout(d, s.type, s.w_ndim, s.w),
        p->has_bias ? any_layout(d, CFXI_DNN_FLOAT32, product ? 2 : 1,
                                 product ? columns : columns + 1) : NULL,
        layout(d, CFXI_DNN_FLOAT32, s.ndim, s.out, s.out_stride),
    };
    cfxi_dnn_recipe *made = NULL;
    size_t most = 0;
    while (most < p->num_posts && has_twin(&p->posts[most]))
        most++;
    if (l.x && l.w && l.out && (l.bias || !p->has_bias))
        for (size_t n = most + 1; !made && n-- > 0;) {
            made = recipe_with(d, p, &l, n);
            if (made && !is_fast(cfxi_backend_onednn_name(d, made), p->isa)) {
                d->primitive_desc_destroy(made);
                made = NULL;
            }
            *fused = n;
        }
    cfxi_dnn_layout *const all[] = {l.x, l.w, l.bias, l.out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            d->memory_desc_destroy(all[i]);
    return made;
}
