/* onednn_bytes.h - oneDNN's products and convolutions of 8-bit integers, for backends.c alone.
 *
 * cfx does not run them: they round in another order. They get what is easiest for them: no zero
 * points, images and rows without gaps, sums added in place, and scratch memory of their own.
 */
#include "backend/onednn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { INT32 = 4, SIGNED = 5, UNSIGNED = 6, SCALES = 4096, RELU = 0x20 };

typedef struct onednn_bytes {
    const cfxi_onednn *d;
    cfxi_dnn_recipe *recipe;
    cfxi_dnn_primitive *primitive;
    cfxi_dnn_stream *stream;
    cfxi_dnn_arg args[8];
    int count;
} onednn_bytes;

typedef struct onednn_bytes_functions {
    int (*scales)(cfxi_dnn_attr *attr, int which, int mask);
    int (*sum)(cfxi_dnn_posts *posts, float scale, int32_t zero, int dtype);
} onednn_bytes_functions;

/* Of the library that has been loaded from `path` already. */
static onednn_bytes_functions onednn_bytes_find(const char *path)
{
    onednn_bytes_functions f = {0};
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    void *scales = library ? dlsym(library, "dnnl_primitive_attr_set_scales_mask") : NULL;
    void *sum = library ? dlsym(library, "dnnl_post_ops_append_sum") : NULL;
    if (!scales || !sum)
        exit(fprintf(stderr, "%s: no functions for integers\n", path));
    memcpy(&f.scales, &scales, sizeof scales);
    memcpy(&f.sum, &sum, sizeof sum);
    return f;
}

static void onednn_bytes_ok(int status, const char *what)
{
    if (status != 0)
        exit(fprintf(stderr, "oneDNN: %s: status %d\n", what, status));
}

static cfxi_dnn_attr *onednn_bytes_attr(const cfxi_onednn *d, const onednn_bytes_functions *f,
                                        const cfxi_problem *p, bool adds, int then)
{
    cfxi_dnn_attr *attr;
    cfxi_dnn_posts *posts;
    const int channels = p->kind == CFXI_PRODUCT ? 2 : p->conv.groups > 1 ? 3 : 1;
    onednn_bytes_ok(d->primitive_attr_create(&attr), "attributes");
    onednn_bytes_ok(d->post_ops_create(&posts), "posts");
    onednn_bytes_ok(f->scales(attr, CFXI_DNN_SRC, 0), "scale of x");
    onednn_bytes_ok(f->scales(attr, CFXI_DNN_WEIGHTS, channels), "scales of weights");
    onednn_bytes_ok(f->scales(attr, CFXI_DNN_DST, 0), "scale of the result");
    if (adds)
        onednn_bytes_ok(f->sum(posts, 0.5f, 0, UNSIGNED), "sum");
    if (then)
        onednn_bytes_ok(d->post_ops_append_eltwise(posts, then, then == RELU ? 0 : 1, 0), "post");
    onednn_bytes_ok(d->primitive_attr_set_post_ops(attr, posts), "posts");
    d->post_ops_destroy(posts);
    return attr;
}

/* A layout of these sizes; strides NULL: as oneDNN likes it. */
static cfxi_dnn_layout *onednn_bytes_layout(const cfxi_onednn *d, int ndim, const int64_t *sizes,
                                            int dtype, const int64_t *strides)
{
    cfxi_dnn_layout *made;
    onednn_bytes_ok(strides ? d->memory_desc_create_with_strides(&made, ndim, sizes, dtype, strides)
                            : d->memory_desc_create_with_tag(&made, ndim, sizes, dtype,
                                                             CFXI_DNN_ANY), "layout");
    return made;
}

static void onednn_bytes_arg(onednn_bytes *o, int which, const cfxi_dnn_layout *layout, int fill)
{
    const size_t bytes = o->d->memory_desc_get_size(layout);
    void *data = aligned_alloc(64, (bytes + 63) / 64 * 64);
    cfxi_dnn_memory *made;
    if (!data)
        exit(1);
    if (fill < 0)
        for (size_t i = 0; i < bytes / sizeof(float); i++)
            ((float *)data)[i] = 1e-2f;
    else
        memset(data, fill, bytes);
    onednn_bytes_ok(o->d->memory_create(&made, layout, o->d->engine, data), "memory");
    o->args[o->count++] = (cfxi_dnn_arg){which, made};
}

static void onednn_bytes_args(onednn_bytes *o, int64_t columns)
{
    static const struct { int which, fill; } all[] = {
        {CFXI_DNN_SRC, 3}, {CFXI_DNN_WEIGHTS, 1}, {CFXI_DNN_DST, 0}};
    const cfxi_onednn *d = o->d;
    for (int i = 0; i < 3; i++) {
        const int ask = all[i].which == CFXI_DNN_SRC ? CFXI_DNN_ASK_WEIGHTS - 2
                        : all[i].which == CFXI_DNN_DST ? CFXI_DNN_ASK_WEIGHTS + 2
                                                       : CFXI_DNN_ASK_WEIGHTS;
        onednn_bytes_arg(o, all[i].which, d->primitive_desc_query_md(o->recipe, ask, 0),
                         all[i].fill);
    }
    onednn_bytes_arg(o, CFXI_DNN_BIAS,
                     d->primitive_desc_query_md(o->recipe, CFXI_DNN_ASK_WEIGHTS, 1), -1);
    for (int i = 0; i < 3; i++) {
        const int64_t one = all[i].which == CFXI_DNN_WEIGHTS ? columns : 1;
        const int64_t step = 1;
        onednn_bytes_arg(o, SCALES | all[i].which,
                         onednn_bytes_layout(d, 1, &one, CFXI_DNN_FLOAT32, &step), -1);
    }
}

/* The same problem, with bytes that are positive. `then`: the function that follows, or 0. */
static onednn_bytes onednn_bytes_prepare(const cfxi_problem *p, const onednn_bytes_functions *f,
                                         bool adds, int then, bool to_float)
{
    const cfxi_onednn *d = p->onednn;
    onednn_bytes o = {.d = d};
    const cfxi_dnn_shape s = cfxi_backend_onednn_shape(p);
    const bool product = p->kind == CFXI_PRODUCT;
    const int64_t columns[] = {1, s.columns};
    const int before = cfxi_backend_onednn_threads(d, (int)p->threads);
    cfxi_dnn_attr *attr = onednn_bytes_attr(d, f, p, adds, then);
    cfxi_dnn_layout *x = onednn_bytes_layout(d, s.ndim, s.x, UNSIGNED, s.x_stride);
    cfxi_dnn_layout *w = onednn_bytes_layout(d, s.w_ndim, s.w, SIGNED, NULL);
    cfxi_dnn_layout *bias = onednn_bytes_layout(d, product ? 2 : 1, columns + !product,
                                                CFXI_DNN_FLOAT32, NULL);
    cfxi_dnn_layout *out = onednn_bytes_layout(d, s.ndim, s.out,
                                               to_float ? CFXI_DNN_FLOAT32 : UNSIGNED,
                                               s.out_stride);
    if (product) {
        onednn_bytes_ok(d->matmul_primitive_desc_create(&o.recipe, d->engine, x, w, bias, out,
                                                        attr), "matmul");
    } else {
        const cfxi_conv *c = &p->conv;
        const int64_t gaps[2] = {0, 0};
        int64_t after[2];
        for (int i = 0; i < 2; i++)
            after[i] = (c->out[1 + i] - 1) * c->stride[1 + i] + c->kernel[1 + i] - c->in[1 + i] -
                       c->before[1 + i];
        onednn_bytes_ok(d->convolution_forward_primitive_desc_create(
            &o.recipe, d->engine, CFXI_DNN_INFERENCE, CFXI_DNN_CONVOLUTION, x, w, bias, out,
            &c->stride[1], gaps, &c->before[1], after, attr), "convolution");
    }
    onednn_bytes_ok(d->primitive_create(&o.primitive, o.recipe), "primitive");
    onednn_bytes_ok(d->stream_create(&o.stream, d->engine, CFXI_DNN_IN_ORDER), "stream");
    onednn_bytes_args(&o, s.columns);
    cfxi_backend_onednn_threads(d, before);
    return o;
}

static void onednn_bytes_free(onednn_bytes *o)
{
    for (int i = 0; i < o->count; i++)
        o->d->memory_destroy(o->args[i].memory);
    o->d->stream_destroy(o->stream);
    o->d->primitive_destroy(o->primitive);
    o->d->primitive_desc_destroy(o->recipe);
}

static void onednn_bytes_run(const onednn_bytes *o, int threads)
{
    const int before = cfxi_backend_onednn_threads(o->d, threads);
    onednn_bytes_ok(o->d->primitive_execute(o->primitive, o->stream, o->count, o->args) ||
                        o->d->stream_wait(o->stream), "run");
    cfxi_backend_onednn_threads(o->d, before);
}
