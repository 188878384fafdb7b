/* kernel_depthwise.c - convolutions of each channel on its own (groups = channels), or of small
 * groups of channels, channels last.
 *
 * Nothing is copied: at the edges of the image the window of a pixel has fewer lines and places.
 */
#include "pieces.h"

#include "runtime/kernels/depthwise/depthwise.h"

typedef struct depthwise_kernel {
    cfxi_kernel head;
    cfxi_fused_posts posts;
    void (*line)(const cfxi_depthwise_line *t);
    const float *bias;
    float *packed;  /* [line of the window][place][tap][channel] */
} depthwise_kernel;

static int64_t channels_of(const cfxi_conv *c) { return c->groups * c->out_channels; }

/* NULL if there are none. */
static const cfxi_depthwise *lines_for(const cfxi_problem *p)
{
    const cfxi_conv *c = &p->conv;
    if (cfxi_backend_is_depthwise(p))
        return cfxi_depthwise_of(p->isa);
    if (c->groups < 2 || c->in_channels != c->out_channels || cfxi_backend_rounds(p))
        return NULL;
    return cfxi_depthwise_groups_of(p->isa, c->in_channels);
}

static bool query(const cfxi_problem *p, double *cost)
{
    const cfxi_conv *c = &p->conv;
    if (p->kind != CFXI_CONVOLUTION || c->transposed || c->in[0] != 1 || c->kernel[0] != 1 ||
        !lines_for(p) || c->xs[1] != 1 || c->ys[1] != 1)
        return false;
    const double work = (double)(c->batch * channels_of(c) * c->out[1] * c->out[2]) *
                        (double)(c->in_channels * c->kernel[1] * c->kernel[2]);
    *cost = work / 16 / 3.0 / (p->threads > 0 ? p->threads : 1);
    return true;
}

static void pack(depthwise_kernel *k, const cfxi_constants *from)
{
    const cfxi_conv *c = &k->head.problem.conv;
    float *to = k->packed;
    for (int64_t r = 0; r < c->kernel[1]; r++)
        for (int64_t s = 0; s < c->kernel[2]; s++)
            for (int64_t tap = 0; tap < c->in_channels; tap++)
                for (int64_t o = 0; o < channels_of(c); o++)
                    *to++ = from->w[o / c->out_channels * c->wg + o % c->out_channels * c->ws[0] +
                                    tap * c->ws[1] + r * c->ws[3] + s * c->ws[4]] *
                            (from->scale ? from->scale[o] : 1);
    for (int64_t o = 0; o < channels_of(c); o++)
        to[o] = from->bias ? from->bias[o] : 0;
    k->bias = from->bias ? to : NULL;
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *from,
                            const cfx_allocator *allocator, cfx_error *err)
{
    const cfxi_conv *c = &p->conv;
    size_t places, room;
    if (!cfxi_base_mul_size((size_t)(c->kernel[1] * c->kernel[2]), (size_t)c->in_channels, 1,
                            &places) ||
        !cfxi_base_mul_size((size_t)channels_of(c), places * sizeof(float),
                            sizeof(depthwise_kernel) + CFXI_ALIGN, &room))
        return cfxi_base_nomem(err), NULL;
    depthwise_kernel *k = cfxi_base_alloc(allocator, room);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    *k = (depthwise_kernel){.head = {&cfxi_backend_depthwise, allocator, *p, room, NULL}};
    k->posts = cfxi_backend_fuse_posts(p);
    k->line = lines_for(p)->line;
    k->packed = (float *)(((uintptr_t)(k + 1) + CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN);
    pack(k, from);
    return &k->head;
}

/* ---- running ------------------------------------------------------------------------------- */

static void run_line(const cfxi_kernel *kernel, const cfxi_run *r, int64_t image, int64_t y)
{
    const depthwise_kernel *k = (const depthwise_kernel *)kernel;
    const cfxi_problem *p = &kernel->problem;
    const cfxi_conv *c = &p->conv;
    const cfxi_post *add = k->posts.adds ? &p->posts[0] : NULL;
    const cfxi_span lines = cfxi_backend_lines_inside(c, y);
    const int64_t place = c->in_channels * channels_of(c);
    const int64_t top = y * c->stride[1] - c->before[1] + lines.first * c->dilation[1];
    const cfxi_depthwise_line t = {
        .pixels = c->out[2],
        .channels = channels_of(c),
        .taps = c->in_channels,
        .x = r->x + image * c->xs[0] + (lines.first < lines.last ? top * c->xs[3] : 0),
        .x_column = c->xs[4],
        .x_line = c->dilation[1] * c->xs[3],
        .columns = c->in[2],
        .left = -c->before[2],
        .step = c->stride[2],
        .gap = c->dilation[2],
        .lines = lines.last - lines.first,
        .places = c->kernel[2],
        .w = k->packed + lines.first * c->kernel[2] * place,
        .w_line = c->kernel[2] * place,
        .w_place = place,
        .y = r->out + image * c->ys[0] + y * c->ys[3],
        .y_pixel = c->ys[4],
        .bias = k->bias,
        .add = add ? r->operands[add->operand] + image * add->rows[0] + y * add->rows[1] : NULL,
        .add_pixel = add ? add->rows[2] : 0,
        .low = k->posts.low,
        .high = k->posts.high,
    };
    k->line(&t);
    cfxi_backend_finish_line(p, r, k->posts.rest, image, y, t.y);
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    (void)err;
    cfxi_backend_each_line(kernel, r, run_line);
    return CFX_OK;
}

static void release(cfxi_kernel *k) { cfxi_base_free(k->allocator, k, k->bytes); }

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    const cfxi_conv *c = &kernel->problem.conv;
    cfxi_base_out_printf(out, "depthwise convolution %lldx%lld", (long long)c->kernel[1],
                         (long long)c->kernel[2]);
    if (c->in_channels > 1)
        cfxi_base_out_printf(out, ", groups of %lld", (long long)c->in_channels);
}

const cfxi_backend cfxi_backend_depthwise = {"built-in", query, prepare, run, release, print};
