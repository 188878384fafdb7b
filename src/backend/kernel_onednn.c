/* kernel_onednn.c - products and convolutions by oneDNN (onednn.h).
 *
 * A kernel has the compiled primitive and the weights in oneDNN's layout. What a run needs besides
 * (a stream, memory objects with this run's addresses) is a `call`: made by the first run of each
 * thread, and kept for later ones. Posts that oneDNN does not take are done afterwards, by the same
 * OpenMP threads: ours would have to share the processors with theirs, which wait actively.
 */
#include "onednn.h"

enum {
    CALLS = 8,              /* that are kept */
    MOST_ARGS = 5 + CFXI_MOST_POSTS,
    LEAST_POSTS = 1 << 14   /* elements for which another thread is worth waking */
};

typedef struct call {
    cfxi_dnn_stream *stream;
    cfxi_dnn_arg args[MOST_ARGS];
    int count;
    cfxi_dnn_memory *x, *out, *scratch;  /* scratch: or NULL */
    cfxi_dnn_memory *posts[CFXI_MOST_POSTS];
} call;

typedef struct onednn_kernel {
    cfxi_kernel head;
    cfxi_onednn *d;
    cfxi_dnn_recipe *recipe;
    cfxi_dnn_primitive *primitive;
    cfxi_dnn_memory *w, *bias;  /* bias: or NULL */
    size_t fused;               /* posts that oneDNN does */
    size_t scratch;             /* bytes of a run, */
    size_t rounded;             /* and of a rounded copy of x after them */
    float *packed;
    _Atomic(call *) calls[CALLS];
} onednn_kernel;

/* ---- asking -------------------------------------------------------------------------------- */

static double multiplications(const cfxi_problem *p)
{
    const cfxi_conv *c = &p->conv;
    if (p->kind == CFXI_PRODUCT)
        return (double)p->m * (double)p->n * (double)p->k;
    return (double)(c->batch * c->groups * c->out_channels) * (double)(c->out[1] * c->out[2]) *
           (double)(c->in_channels * c->kernel[1] * c->kernel[2]);
}

static bool has_form(const cfxi_problem *p)
{
    const cfxi_conv *c = &p->conv;
    if (!p->onednn || cfxi_backend_onednn_is_lost(p->onednn))
        return false;
    if (p->kind == CFXI_PRODUCT)
        return p->m > 0 && p->n > 0 && p->k > 0 && !p->factors.scaled;
    return !c->transposed && c->in[0] == 1 && c->kernel[0] == 1 && c->xs[1] == 1 &&
           c->ys[1] == 1 && c->batch > 0 && c->out[1] > 0 && c->out[2] > 0;
}

static int threads_of(const cfxi_problem *p) { return p->threads > 0 ? (int)p->threads : 1; }

static bool query(const cfxi_problem *p, double *cost)
{
    if (!has_form(p))
        return false;
    size_t fused = 0;
    const cfxi_onednn *d = p->onednn;
    const int before = cfxi_backend_onednn_threads(d, threads_of(p));
    cfxi_dnn_recipe *recipe = cfxi_backend_onednn_recipe(d, p, &fused);
    cfxi_backend_onednn_threads(d, before);
    if (!recipe)
        return false;
    d->primitive_desc_destroy(recipe);
    double lanes = p->isa == CFX_ISA_AVX512 ? 16 : p->isa == CFX_ISA_AVX2 ? 8 : 1;
    if (cfxi_backend_rounds(p))
        lanes *= p->bf16 == CFXI_BF16_TILES ? 16 : p->bf16 == CFXI_BF16_DOTS ? 2 : 1;
    /* Nanoseconds: objects; and OpenMP's threads, which keep our helpers from their processors
     * until they fall asleep. */
    const double start = p->threads > 1 ? 100000 : 2000;
    *cost = start + 1.05 * multiplications(p) / lanes / 3.0 / threads_of(p);
    return true;
}

/* ---- preparing ----------------------------------------------------------------------------- */

/* The weights, dense and scaled. */
static void copy_weights(float *to, const cfxi_problem *p, const cfxi_constants *from)
{
    const cfxi_conv *c = &p->conv;
    if (p->kind == CFXI_PRODUCT) {
        for (int64_t k = 0; k < p->k; k++)
            for (int64_t n = 0; n < p->n; n++)
                *to++ = from->w[k * p->w_k + n * p->w_n] * (from->scale ? from->scale[n] : 1);
        return;
    }
    for (int64_t o = 0; o < c->groups * c->out_channels; o++) {
        const float *w = from->w + o / c->out_channels * c->wg + o % c->out_channels * c->ws[0];
        const float scale = from->scale ? from->scale[o] : 1;
        for (int64_t i = 0; i < c->in_channels; i++)
            for (int64_t r = 0; r < c->kernel[1]; r++)
                for (int64_t s = 0; s < c->kernel[2]; s++)
                    *to++ = w[i * c->ws[1] + r * c->ws[3] + s * c->ws[4]] * scale;
    }
}

static size_t count_weights(const cfxi_dnn_shape *s)
{
    size_t n = 1;
    for (int i = 0; i < s->w_ndim; i++)
        n *= (size_t)s->w[i];
    return n;
}

static size_t count_elements(const cfxi_problem *p)
{
    const cfxi_dnn_shape s = cfxi_backend_onednn_shape(p);
    size_t n = 1;
    for (int i = 0; i < s.ndim; i++)
        n *= (size_t)s.x[i];
    return n;
}

static bool execute(const cfxi_onednn *d, const cfxi_dnn_primitive *primitive,
                    cfxi_dnn_stream *stream, int count, const cfxi_dnn_arg *args)
{
    return d->primitive_execute(primitive, stream, count, args) == 0 && d->stream_wait(stream) == 0;
}

/* From one layout to the other. */
static bool reorder(const cfxi_onednn *d, const cfxi_dnn_layout *from_layout,
                    cfxi_dnn_memory *from, const cfxi_dnn_layout *to_layout, cfxi_dnn_memory *to)
{
    cfxi_dnn_recipe *recipe = NULL;
    cfxi_dnn_primitive *primitive = NULL;
    cfxi_dnn_stream *stream = NULL;
    const cfxi_dnn_arg args[] = {{CFXI_DNN_SRC, from}, {CFXI_DNN_DST, to}};
    bool ok = d->reorder_primitive_desc_create(&recipe, from_layout, d->engine, to_layout,
                                               d->engine, NULL) == 0 &&
              d->primitive_create(&primitive, recipe) == 0 &&
              d->stream_create(&stream, d->engine, CFXI_DNN_IN_ORDER) == 0 &&
              execute(d, primitive, stream, 2, args);
    if (stream)
        d->stream_destroy(stream);
    if (primitive)
        d->primitive_destroy(primitive);
    if (recipe)
        d->primitive_desc_destroy(recipe);
    return ok;
}

/* Weights as oneDNN wants them, in k->packed. */
static bool pack(onednn_kernel *k, const cfxi_constants *from)
{
    const cfxi_onednn *d = k->d;
    const cfxi_problem *p = &k->head.problem;
    const cfxi_dnn_shape s = cfxi_backend_onednn_shape(p);
    const cfxi_dnn_layout *wanted = d->primitive_desc_query_md(k->recipe, CFXI_DNN_ASK_WEIGHTS, 0);
    const size_t bytes = count_weights(&s) * sizeof(float);
    int64_t strides[CFXI_DNN_DIMS] = {0};
    int64_t step = 1;
    for (int i = s.w_ndim; i-- > 0; step *= s.w[i])
        strides[i] = step;
    cfxi_dnn_layout *dense = NULL;
    cfxi_dnn_memory *given = NULL;
    float *copy = cfxi_base_alloc(k->head.allocator, bytes);
    bool ok = copy && d->memory_desc_create_with_strides(&dense, s.w_ndim, s.w, CFXI_DNN_FLOAT32,
                                                         strides) == 0;
    if (ok) {
        copy_weights(copy, p, from);
        ok = d->memory_create(&given, dense, d->engine, copy) == 0 &&
             d->memory_create(&k->w, wanted, d->engine, k->packed) == 0 &&
             reorder(d, dense, given, wanted, k->w);
    }
    if (given)
        d->memory_destroy(given);
    if (dense)
        d->memory_desc_destroy(dense);
    cfxi_base_free(k->head.allocator, copy, bytes);
    return ok;
}

static bool pack_bias(onednn_kernel *k, const float *bias, float *to)
{
    const cfxi_onednn *d = k->d;
    if (!bias)
        return true;
    memcpy(to, bias, (size_t)cfxi_backend_onednn_shape(&k->head.problem).columns * sizeof *to);
    const cfxi_dnn_layout *wanted = d->primitive_desc_query_md(k->recipe, CFXI_DNN_ASK_WEIGHTS, 1);
    return d->memory_create(&k->bias, wanted, d->engine, to) == 0;
}

static void free_call(const cfxi_onednn *d, call *c, const cfx_allocator *allocator)
{
    cfxi_dnn_memory *const own[] = {c->x, c->out, c->scratch};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i])
            d->memory_destroy(own[i]);
    for (size_t i = 0; i < CFXI_MOST_POSTS; i++)
        if (c->posts[i])
            d->memory_destroy(c->posts[i]);
    if (c->stream)
        d->stream_destroy(c->stream);
    cfxi_base_free(allocator, c, sizeof *c);
}

static void release(cfxi_kernel *kernel)
{
    onednn_kernel *k = (onednn_kernel *)kernel;
    cfxi_onednn *d = k->d;
    for (size_t i = 0; i < CALLS; i++) {
        call *c = atomic_load(&k->calls[i]);
        if (c)
            free_call(d, c, kernel->allocator);
    }
    if (k->w)
        d->memory_destroy(k->w);
    if (k->bias)
        d->memory_destroy(k->bias);
    if (k->primitive)
        d->primitive_destroy(k->primitive);
    d->primitive_desc_destroy(k->recipe);
    cfxi_base_free(kernel->allocator, k, kernel->bytes);
    cfxi_backend_onednn_release(d);
}

static onednn_kernel *new_kernel(const cfxi_problem *p, cfxi_dnn_recipe *recipe,
                                 const cfx_allocator *allocator, cfx_error *err)
{
    const cfxi_onednn *d = p->onednn;
    const size_t columns = (size_t)cfxi_backend_onednn_shape(p).columns;
    const size_t packed = d->memory_desc_get_size(
        d->primitive_desc_query_md(recipe, CFXI_DNN_ASK_WEIGHTS, 0));
    const size_t room = sizeof(onednn_kernel) + 2 * CFXI_ALIGN + packed + columns * sizeof(float);
    onednn_kernel *k = cfxi_base_alloc(allocator, room);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    memset(k, 0, sizeof *k);
    k->head = (cfxi_kernel){&cfxi_backend_onednn, allocator, *p, room, NULL};
    k->d = cfxi_backend_onednn_retain(p->onednn);
    k->recipe = recipe;
    k->packed = (float *)(((uintptr_t)(k + 1) + CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN);
    const cfxi_dnn_layout *scratch = d->primitive_desc_query_md(recipe, CFXI_DNN_ASK_SCRATCH, 0);
    k->scratch = scratch ? d->memory_desc_get_size(scratch) : 0;
    k->rounded = cfxi_backend_rounds(p) ? 2 * count_elements(p) : 0;
    return k;
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *c,
                            const cfx_allocator *allocator, cfx_error *err)
{
    const cfxi_onednn *d = p->onednn;
    const int before = cfxi_backend_onednn_threads(d, threads_of(p));
    size_t fused = 0;
    cfxi_dnn_recipe *recipe = cfxi_backend_onednn_recipe(d, p, &fused);
    onednn_kernel *k = recipe ? new_kernel(p, recipe, allocator, err) : NULL;
    bool ok = false;
    if (k) {
        const size_t packed = d->memory_desc_get_size(
            d->primitive_desc_query_md(recipe, CFXI_DNN_ASK_WEIGHTS, 0));
        const size_t at = (packed + CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN;
        k->fused = fused;
        ok = d->primitive_create(&k->primitive, recipe) == 0 && pack(k, c) &&
             pack_bias(k, c->bias, (float *)(void *)((char *)k->packed + at));
        if (!ok)
            release(&k->head);
    } else if (recipe) {
        d->primitive_desc_destroy(recipe);
    }
    cfxi_backend_onednn_threads(d, before);
    if (!ok && (!err || err->status != CFX_E_NOMEM))
        cfx_error_set(err, CFX_E_NOMEM, "oneDNN could not prepare a kernel");
    return ok ? &k->head : NULL;
}

/* ---- running ------------------------------------------------------------------------------- */

static bool add_memory(const cfxi_onednn *d, call *c, int which, const cfxi_dnn_layout *layout,
                       cfxi_dnn_memory **made)
{
    if (!layout || d->memory_create(made, layout, d->engine, NULL) != 0)
        return false;
    c->args[c->count++] = (cfxi_dnn_arg){which, *made};
    return true;
}

static bool add_operands(const onednn_kernel *k, call *c)
{
    const cfxi_onednn *d = k->d;
    const cfxi_problem *p = &k->head.problem;
    bool ok = true;
    for (size_t i = 0; ok && i < k->fused; i++) {
        if (p->posts[i].kind != CFXI_POST_ADD && p->posts[i].kind != CFXI_POST_MUL)
            continue;
        cfxi_dnn_layout *layout = cfxi_backend_onednn_operand(d, p, &p->posts[i]);
        ok = add_memory(d, c, CFXI_DNN_POST * ((int)i + 1) | CFXI_DNN_SRC_1, layout, &c->posts[i]);
        if (layout)
            d->memory_desc_destroy(layout);
    }
    return ok;
}

static call *new_call(const onednn_kernel *k)
{
    const cfxi_onednn *d = k->d;
    const cfxi_dnn_shape s = cfxi_backend_onednn_shape(&k->head.problem);
    call *c = cfxi_base_alloc(k->head.allocator, sizeof *c);
    cfxi_dnn_layout *x = NULL;
    cfxi_dnn_layout *out = NULL;
    if (!c)
        return NULL;
    *c = (call){.count = 0};
    c->args[c->count++] = (cfxi_dnn_arg){CFXI_DNN_WEIGHTS, k->w};
    if (k->bias)
        c->args[c->count++] = (cfxi_dnn_arg){CFXI_DNN_BIAS, k->bias};
    const cfxi_dnn_layout *scratch =
        k->scratch ? d->primitive_desc_query_md(k->recipe, CFXI_DNN_ASK_SCRATCH, 0) : NULL;
    const bool ok =
        d->memory_desc_create_with_strides(&x, s.ndim, s.x, s.type, s.x_stride) == 0 &&
        d->memory_desc_create_with_strides(&out, s.ndim, s.out, CFXI_DNN_FLOAT32,
                                           s.out_stride) == 0 &&
        d->stream_create(&c->stream, d->engine, CFXI_DNN_IN_ORDER) == 0 &&
        add_memory(d, c, CFXI_DNN_SRC, x, &c->x) && add_memory(d, c, CFXI_DNN_DST, out, &c->out) &&
        (!k->scratch || add_memory(d, c, CFXI_DNN_SCRATCH, scratch, &c->scratch)) &&
        add_operands(k, c);
    if (x)
        d->memory_desc_destroy(x);
    if (out)
        d->memory_desc_destroy(out);
    if (!ok)
        free_call(d, c, k->head.allocator);
    return ok ? c : NULL;
}

/* Calls are the kernel's, but not part of what it computes: taken and put back by exchanging
 * pointers, so threads need no lock. */
static call *take_call(const onednn_kernel *kernel)
{
    onednn_kernel *k = (onednn_kernel *)(uintptr_t)kernel;
    for (size_t i = 0; i < CALLS; i++) {
        call *c = atomic_exchange(&k->calls[i], NULL);
        if (c)
            return c;
    }
    return new_call(kernel);
}

static void put_back(const onednn_kernel *kernel, call *c)
{
    onednn_kernel *k = (onednn_kernel *)(uintptr_t)kernel;
    for (size_t i = 0; i < CALLS; i++) {
        call *none = NULL;
        if (atomic_compare_exchange_strong(&k->calls[i], &none, c))
            return;
    }
    free_call(k->d, c, k->head.allocator);
}

static size_t scratch_bytes(const onednn_kernel *k)
{
    return (k->scratch + CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN;
}

/* The other posts, a row or a line of the result at a time. */
typedef struct finishing {
    const onednn_kernel *k;
    const cfxi_run *r;
    int64_t units;
} finishing;

static void finish_unit(const finishing *f, int64_t unit)
{
    const cfxi_problem *p = &f->k->head.problem;
    const cfxi_conv *c = &p->conv;
    const bool product = p->kind == CFXI_PRODUCT;
    const int64_t image = product ? unit : unit / c->out[1];
    const int64_t y = product ? 0 : unit % c->out[1];
    const int64_t pixels = product ? 1 : c->out[2];
    const int64_t at = product ? unit * p->out_row : image * c->ys[0] + y * c->ys[3];
    int64_t offset[CFXI_MOST_POSTS];
    for (int64_t i = 0; i < pixels; i++) {
        for (size_t s = f->k->fused; s < p->num_posts; s++)
            offset[s] = image * p->posts[s].rows[0] + y * p->posts[s].rows[1] +
                        i * p->posts[s].rows[2];
        float *pixel = f->r->out + at + (product ? 0 : i * c->ys[4]);
        cfxi_backend_apply_posts(p, f->r, f->k->fused, pixel,
                                 product ? p->n : c->groups * c->out_channels, offset);
    }
}

static void finish_part(void *ctx)
{
    const finishing *f = ctx;
    const int64_t threads = f->k->d->omp_get_num_threads();
    const int64_t number = f->k->d->omp_get_thread_num();
    for (int64_t i = f->units * number / threads; i < f->units * (number + 1) / threads; i++)
        finish_unit(f, i);
}

static void finish(const onednn_kernel *k, const cfxi_run *r)
{
    const cfxi_problem *p = &k->head.problem;
    const cfxi_conv *c = &p->conv;
    const bool product = p->kind == CFXI_PRODUCT;
    finishing f = {k, r, product ? p->m : c->batch * c->out[1]};
    const int64_t elements =
        product ? p->m * p->n : f.units * c->out[2] * c->groups * c->out_channels;
    if (k->fused < p->num_posts)
        k->d->GOMP_parallel(finish_part, &f,
                            elements < LEAST_POSTS ? 1 : (unsigned)threads_of(p), 0);
}

/* A copy of x in bfloat16, a row or a line of an image at a time. */
typedef struct rounding {
    const onednn_kernel *k;
    const cfxi_run *r;
    int64_t units;
    uint16_t *to;
} rounding;

static void round_unit(const rounding *w, int64_t unit)
{
    const cfxi_problem *p = &w->k->head.problem;
    const cfxi_conv *c = &p->conv;
    const bool product = p->kind == CFXI_PRODUCT;
    const int64_t size = product ? p->k : c->groups * c->in_channels;
    const int64_t pixels = product ? 1 : c->in[2];
    const float *from = w->r->x;
    from += product ? unit * p->x_row : unit / c->in[1] * c->xs[0] + unit % c->in[1] * c->xs[3];
    const bool whole = product || c->xs[4] == size;
    for (int64_t i = 0; i < (whole ? 1 : pixels); i++)
        cfxi_rt_convert(p->isa, CFX_DTYPE_BFLOAT16, w->to + (unit * pixels + i) * size,
                        CFX_DTYPE_FLOAT32, from + (whole ? 0 : i * c->xs[4]),
                        whole ? pixels * size : size);
}

static void round_part(void *ctx)
{
    const rounding *w = ctx;
    const int64_t threads = w->k->d->omp_get_num_threads();
    const int64_t number = w->k->d->omp_get_thread_num();
    for (int64_t i = w->units * number / threads; i < w->units * (number + 1) / threads; i++)
        round_unit(w, i);
}

/* x as the primitive reads it: as it is, or rounded into the scratch memory. */
static const void *take_x(const onednn_kernel *k, const cfxi_run *r, char *scratch)
{
    const cfxi_problem *p = &k->head.problem;
    if (k->rounded == 0)
        return r->x;
    rounding w = {k, r, p->kind == CFXI_PRODUCT ? p->m : p->conv.batch * p->conv.in[1],
                  (uint16_t *)(void *)(scratch + scratch_bytes(k))};
    k->d->GOMP_parallel(round_part, &w,
                        k->rounded < 2 * LEAST_POSTS ? 1 : (unsigned)threads_of(p), 0);
    return w.to;
}

static bool set_addresses(const onednn_kernel *k, const call *c, const cfxi_run *r, void *scratch)
{
    const cfxi_onednn *d = k->d;
    const void *x = take_x(k, r, scratch);
    bool ok = d->memory_set_data_handle(c->x, (void *)(uintptr_t)x) == 0 &&
              d->memory_set_data_handle(c->out, r->out) == 0 &&
              (!c->scratch || d->memory_set_data_handle(c->scratch, scratch) == 0);
    for (size_t i = 0; i < k->fused; i++)
        if (c->posts[i]) {
            const float *other = r->operands[k->head.problem.posts[i].operand];
            ok = ok && d->memory_set_data_handle(c->posts[i], (void *)(uintptr_t)other) == 0;
        }
    return ok;
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    const onednn_kernel *k = (const onednn_kernel *)kernel;
    const cfxi_onednn *d = k->d;
    if (cfxi_backend_onednn_is_lost(d))
        return cfx_error_set(err, CFX_E_UNSUPPORTED,
                             "oneDNN cannot run in a child of fork(): prepare the model there "
                             "again, or choose the built-in back end");
    const int before = cfxi_backend_onednn_threads(d, threads_of(&kernel->problem));
    const size_t bytes = scratch_bytes(k) + k->rounded;
    void *scratch = bytes ? cfxi_rt_scratch(r->rt, bytes) : NULL;
    call *c = !bytes || scratch ? take_call(k) : NULL;
    cfx_status status = c ? CFX_OK : cfxi_base_nomem(err);
    if (c) {
        if (!set_addresses(k, c, r, scratch) ||
            !execute(d, k->primitive, c->stream, c->count, c->args))
            status = cfx_error_set(err, CFX_E_UNSUPPORTED, "oneDNN failed to run a kernel");
        put_back(k, c);
    }
    if (status == CFX_OK)
        finish(k, r);
    cfxi_rt_scratch_free(r->rt, scratch);
    cfxi_backend_onednn_threads(d, before);
    return status;
}

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    const onednn_kernel *k = (const onednn_kernel *)kernel;
    cfxi_base_out_printf(out, "oneDNN: %s", cfxi_backend_onednn_name(k->d, k->recipe));
    if (k->fused < kernel->problem.num_posts)
        cfxi_base_out_printf(out, ", %zu posts after it", kernel->problem.num_posts - k->fused);
}

const cfxi_backend cfxi_backend_onednn = {"oneDNN", query, prepare, run, release, print};
