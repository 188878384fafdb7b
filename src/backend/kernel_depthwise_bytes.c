/* kernel_depthwise_bytes.c - convolutions of each channel on its own, of 8-bit integers.
 *
 * As in kernel_depthwise.c nothing is copied: at the edges of the image the window of a pixel has
 * fewer lines and places.
 */
#include "backend_impl.h"

#include "runtime/kernels/depthwise/depthwise_bytes.h"

enum { MOST_PLACES = (1 << 24) / (255 * 255) };  /* of a window whose sums floats have */

typedef struct depthwise_kernel {
    cfxi_kernel head;
    void (*line)(const cfxi_byte_line *t);
    const float *factor, *bias;
    float *packed;  /* [line of the window][place][channel] */
} depthwise_kernel;

static bool query(const cfxi_problem *p, double *cost)
{
    const cfxi_conv *c = &p->conv;
    if (!cfxi_backend_is_depthwise(p) || !p->integers.used || c->transposed || c->in[0] != 1 ||
        c->kernel[0] != 1 || c->xs[1] != 1 || c->ys[1] != 1 ||
        c->kernel[1] * c->kernel[2] > MOST_PLACES ||
        (p->num_posts > 0 && !p->integers.end.to_float))
        return false;
    const double work = (double)(c->batch * c->groups * c->out[1] * c->out[2]) *
                        (double)(c->kernel[1] * c->kernel[2]);
    *cost = work / 16 / 3.0 / (p->threads > 0 ? p->threads : 1);
    return true;
}

static void pack(depthwise_kernel *k, const cfxi_constants *from)
{
    const cfxi_problem *p = &k->head.problem;
    const cfxi_conv *c = &p->conv;
    const uint8_t *w = (const uint8_t *)(const void *)from->w;
    float *to = k->packed;
    for (int64_t r = 0; r < c->kernel[1]; r++)
        for (int64_t s = 0; s < c->kernel[2]; s++)
            for (int64_t g = 0; g < c->groups; g++) {
                const uint8_t *one = w + g * c->wg + r * c->ws[3] + s * c->ws[4];
                const int32_t zero = from->w_zero ? from->w_zero[g] : 0;
                *to++ = (float)((p->integers.w_signed ? (int8_t)*one : *one) - zero);
            }
    k->factor = memcpy(to, from->scale, (size_t)c->groups * sizeof *to);
    to += c->groups;
    for (int64_t g = 0; g < c->groups; g++)
        to[g] = from->bias ? from->bias[g] : 0;
    k->bias = to;
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *from,
                            const cfx_allocator *allocator, cfx_error *err)
{
    const cfxi_conv *c = &p->conv;
    size_t places, room;
    if (!cfxi_base_mul_size((size_t)c->kernel[1], (size_t)c->kernel[2], 2, &places) ||
        !cfxi_base_mul_size((size_t)c->groups, places * sizeof(float),
                            sizeof(depthwise_kernel) + CFXI_ALIGN, &room))
        return cfxi_base_nomem(err), NULL;
    depthwise_kernel *k = cfxi_base_alloc(allocator, room);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    *k = (depthwise_kernel){.head = {&cfxi_backend_depthwise_bytes, allocator, *p, room, NULL}};
    k->line = cfxi_depthwise_bytes_of(p->isa)->line;
    k->packed = (float *)(((uintptr_t)(k + 1) + CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN);
    pack(k, from);
    return &k->head;
}

/* ---- running ------------------------------------------------------------------------------- */

/* The posts, on a line. */
static void finish_line(const depthwise_kernel *k, const cfxi_run *r, int64_t image, int64_t y,
                        float *line)
{
    const cfxi_problem *p = &k->head.problem;
    int64_t offset[CFXI_MOST_POSTS];
    for (size_t s = 0; s < p->num_posts; s++)
        offset[s] = image * p->posts[s].rows[0] + y * p->posts[s].rows[1];
    cfxi_backend_finish_rows(p, r, 0, line, p->conv.out[2], p->conv.ys[4], p->conv.groups, 2,
                             offset);
}

static void run_line(const depthwise_kernel *k, const cfxi_run *r, int64_t image, int64_t y)
{
    const cfxi_problem *p = &k->head.problem;
    const cfxi_conv *c = &p->conv;
    const cfxi_integers *q = &p->integers;
    const cfxi_span lines = cfxi_backend_lines_inside(c, y);
    const int64_t top = y * c->stride[1] - c->before[1] + lines.first * c->dilation[1];
    const int64_t out = image * c->ys[0] + y * c->ys[3];
    const uint8_t *x = (const uint8_t *)(const void *)r->x + image * c->xs[0];
    const uint8_t *other =
        q->end.adds ? (const uint8_t *)(const void *)r->operands[q->other] : NULL;
    const cfxi_byte_line t = {
        .pixels = c->out[2],
        .channels = c->groups,
        .x = x + (lines.first < lines.last ? top * c->xs[3] : 0),
        .x_column = c->xs[4],
        .x_line = c->dilation[1] * c->xs[3],
        .x_signed = q->x_signed,
        .x_zero = q->x_zero,
        .columns = c->in[2],
        .left = -c->before[2],
        .step = c->stride[2],
        .gap = c->dilation[2],
        .lines = lines.last - lines.first,
        .places = c->kernel[2],
        .w = k->packed + lines.first * c->kernel[2] * c->groups,
        .w_line = c->kernel[2] * c->groups,
        .w_place = c->groups,
        .factor = k->factor,
        .bias = k->bias,
        .end = &q->end,
        .y = q->end.to_float ? (void *)(r->out + out) : (char *)r->out + out,
        .y_pixel = c->ys[4],
        .other = other ? other + image * q->other_rows[0] + y * q->other_rows[1] : NULL,
        .other_pixel = q->other_rows[2],
    };
    k->line(&t);
    if (p->num_posts > 0)
        finish_line(k, r, image, y, r->out + out);
}

typedef struct running {
    const depthwise_kernel *k;
    const cfxi_run *r;
} running;

static void run_lines(void *ctx, int64_t begin, int64_t end)
{
    const running *w = ctx;
    const int64_t lines = w->k->head.problem.conv.out[1];
    for (int64_t i = begin; i < end; i++)
        run_line(w->k, w->r, i / lines, i % lines);
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    const cfxi_conv *c = &kernel->problem.conv;
    running w = {(const depthwise_kernel *)kernel, r};
    const int64_t line = c->out[2] * c->groups * c->kernel[1] * c->kernel[2];
    const int64_t grain = (1 << 16) / (line > 0 ? line : 1) + 1;  /* worth waking a thread */
    (void)err;
    cfxi_rt_parallel(r->rt, c->batch * c->out[1], grain, run_lines, &w);
    return CFX_OK;
}

static void release(cfxi_kernel *k) { cfxi_base_free(k->allocator, k, k->bytes); }

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    const cfxi_conv *c = &kernel->problem.conv;
    cfxi_base_out_printf(out, "integer depthwise convolution %lldx%lld", (long long)c->kernel[1],
                         (long long)c->kernel[2]);
}

const cfxi_backend cfxi_backend_depthwise_bytes = {"built-in, int8", query, prepare,
                                                   run,              release, print};
