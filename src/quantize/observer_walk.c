/* observer_walk.c - the elements of a tensor of any strides and type of float, as blocks of float32
 * in the order of memory.
 */
#include "observer_impl.h"

#include <math.h>

/* A run that is shorter is copied behind the one before it. A block stays in the first cache. */
enum { SHORT_RUN = 64, GATHERED = 1024, BLOCK = 4096 };

CFXI_ISA_CHOICE(cfxi_observes, cfxi_quantize_observes_of, cfxi_quantize_observes)

/* ---- parts ---------------------------------------------------------------------------------- */

/* Puts a dimension where its stride belongs: larger strides first. */
static void add_dim(cfxi_part *p, int64_t size, int64_t stride)
{
    if (size == 1)
        return;
    if (stride < 0) {
        p->data += (size - 1) * stride;
        stride = -stride;
    }
    size_t at = p->ndim++;
    for (; at > 0 && p->stride[at - 1] < stride; at--) {
        p->size[at] = p->size[at - 1];
        p->stride[at] = p->stride[at - 1];
    }
    p->size[at] = size;
    p->stride[at] = stride;
}

/* Neighbours without a gap between them become one dimension. */
static void join_dims(cfxi_part *p)
{
    size_t kept = 0;
    for (size_t i = 1; i < p->ndim; i++) {
        if (p->stride[kept] == p->stride[i] * p->size[i]) {
            p->size[kept] *= p->size[i];
        } else {
            kept++;
            p->size[kept] = p->size[i];
        }
        p->stride[kept] = p->stride[i];
    }
    p->ndim = p->ndim > 0 ? kept + 1 : 0;
}

static cfxi_part without_axis(const cfx_tensor *t, size_t axis, int64_t offset)
{
    cfxi_part p = {.data = t->data + offset, .dtype = (cfx_dtype)t->dtype};
    for (size_t i = 0; i < t->ndim; i++)
        if (i != axis)
            add_dim(&p, t->size[i], t->stride[i]);
    join_dims(&p);
    return p;
}

cfxi_part cfxi_quantize_part(const cfx_tensor *t) { return without_axis(t, SIZE_MAX, 0); }

cfxi_part cfxi_quantize_part_at(const cfx_tensor *t, size_t axis, int64_t index)
{
    return without_axis(t, axis, index * t->stride[axis]);
}

cfxi_part cfxi_quantize_part_line(const char *data, cfx_dtype dtype, int64_t n, int64_t stride)
{
    cfxi_part p = {.data = data, .dtype = dtype};
    add_dim(&p, n, stride);
    return p;
}

/* ---- walking -------------------------------------------------------------------------------- */

typedef struct walk {
    const cfxi_part *part;
    cfx_isa isa;
    cfxi_elements_fn *fn;
    void *ctx;
    int64_t used;  /* of `gathered` */
    float gathered[GATHERED];
} walk;

static void flush(walk *w)
{
    if (w->used > 0)
        w->fn(w->ctx, w->gathered, w->used);
    w->used = 0;
}

/* n elements, behind those that were gathered before. */
static void gather(walk *w, const char *from, int64_t n, int64_t stride)
{
    const cfx_dtype dtype = w->part->dtype;
    float *to = w->gathered + w->used;
    w->used += n;
    if (stride == (int64_t)cfx_dtype_size(dtype)) {
        cfxi_rt_convert(w->isa, CFX_DTYPE_FLOAT32, to, dtype, from, n);
        return;
    }
    for (int64_t i = 0; i < n; i++, from += stride) {
        if (dtype == CFX_DTYPE_FLOAT32)
            memcpy(&to[i], from, sizeof *to);
        else
            to[i] = (float)cfxi_tensor_load_float(dtype, from);
    }
}

static void walk_run(walk *w, const char *from, int64_t n, int64_t stride)
{
    const bool as_it_is = w->part->dtype == CFX_DTYPE_FLOAT32 && stride == sizeof(float);
    if (as_it_is && n >= SHORT_RUN) {
        for (int64_t i = 0; i < n; i += BLOCK)
            w->fn(w->ctx, (const float *)(const void *)from + i, n - i < BLOCK ? n - i : BLOCK);
        return;
    }
    while (n > 0) {
        const int64_t some = n < GATHERED - w->used ? n : GATHERED - w->used;
        gather(w, from, some, stride);
        from += some * stride;
        n -= some;
        if (w->used == GATHERED)
            flush(w);
    }
}

void cfxi_quantize_walk(const cfxi_part *p, cfx_isa isa, cfxi_elements_fn *fn, void *ctx)
{
    walk w = {.part = p, .isa = isa, .fn = fn, .ctx = ctx};
    int64_t index[CFX_MAX_DIMS] = {0};
    const size_t inner = p->ndim > 0 ? p->ndim - 1 : 0;
    const int64_t n = p->ndim > 0 ? p->size[inner] : 1;
    const int64_t stride = p->ndim > 0 ? p->stride[inner] : (int64_t)cfx_dtype_size(p->dtype);
    const char *at = p->data;
    for (;;) {
        walk_run(&w, at, n, stride);
        size_t d = inner;
        for (; d > 0 && ++index[d - 1] == p->size[d - 1]; d--) {
            at -= (p->size[d - 1] - 1) * p->stride[d - 1];
            index[d - 1] = 0;
        }
        if (d == 0)
            break;
        at += p->stride[d - 1];
    }
    flush(&w);
}

/* ---- ranges of elements --------------------------------------------------------------------- */

int64_t cfxi_quantize_range(const cfxi_observes *loops, const float *x, int64_t n, float range[2])
{
    float now[2];
    int64_t bad = 0;
    if (!loops->range(x, n, now)) {
        now[0] = INFINITY;
        now[1] = -INFINITY;
        for (int64_t i = 0; i < n; i++) {
            if (!isfinite(x[i])) {
                bad++;
                continue;
            }
            now[0] = x[i] < now[0] ? x[i] : now[0];
            now[1] = x[i] > now[1] ? x[i] : now[1];
        }
    }
    range[0] = now[0] < range[0] ? now[0] : range[0];
    range[1] = now[1] > range[1] ? now[1] : range[1];
    return bad;
}
