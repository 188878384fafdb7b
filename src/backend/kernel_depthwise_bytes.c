/* kernel_depthwise_bytes.c - convolutions of each channel on its own, of 8-bit integers.
 *
 * As in kernel_depthwise.c nothing is copied: at the edges of the image the window of a pixel has
 * fewer lines and places. With AVX512_VNNI, blocks of 64 channels are multiplied as bytes, where
 * x is unsigned and weights have no zero points; what is left, and all else, in floats.
 */
#include "pieces.h"

#include "runtime/kernels/depthwise/depthwise_bytes.h"
#include "runtime/kernels/depthwise/depthwise_vnni.h"

enum {
    MOST_PLACES = (1 << 24) / (255 * 255),  /* of a window whose sums floats have */
    LEAST_BLOCK = 17                        /* channels for which one is worthwhile */
};

typedef struct depthwise_kernel {
    cfxi_kernel head;
    void (*line)(const cfxi_byte_line *t);
    const float *factor, *bias;
    float *packed;  /* [line of the window][place][channel] */
    int64_t blocks; /* of channels, each with */
    int64_t block;  /* so many bytes of */
    char *blocked;  /* weights, what sums begin with, factors and biases */
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

/* ---- blocks of channels -------------------------------------------------------------------- */

static bool takes_blocks(const cfxi_problem *p, const cfxi_constants *from)
{
    const cfxi_conv *c = &p->conv;
    const cfxi_integers *q = &p->integers;
    for (int64_t g = 0; from->w_zero && g < c->groups; g++)
        if (from->w_zero[g] != 0)
            return false;
    return p->isa == CFX_ISA_AVX512 && p->int8 >= CFXI_INT8_DOTS && !q->x_signed && q->w_signed &&
           !q->end.to_float && !q->end.adds && c->dilation[1] == 1 && c->dilation[2] == 1 &&
           c->stride[2] <= 2 && c->kernel[2] >= 3 && c->kernel[2] <= 7 && c->kernel[2] % 2 == 1 &&
           c->kernel[1] <= CFXI_BLOCK_MOST_LINES;
}

/* How many blocks there are, and how large each is. */
static void shape_blocks(depthwise_kernel *k)
{
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t fours = (c->kernel[1] + CFXI_BLOCK_LINES - 1) / CFXI_BLOCK_LINES;
    const int64_t rest = c->groups % CFXI_BLOCK;
    k->blocks = c->groups / CFXI_BLOCK + (rest >= LEAST_BLOCK);
    k->block = CFXI_BLOCK * (fours * CFXI_BLOCK_LINES * c->kernel[2] + 3 * (int64_t)sizeof(float));
}

static void pack_block(depthwise_kernel *k, const cfxi_constants *from, int64_t block)
{
    const cfxi_problem *p = &k->head.problem;
    const cfxi_conv *c = &p->conv;
    const int8_t *w = (const int8_t *)(const void *)from->w;
    char *at = k->blocked + block * k->block;
    int8_t *to = (int8_t *)at;
    int32_t *first = (int32_t *)(void *)(at + k->block - 3 * CFXI_BLOCK * sizeof(float));
    float *factor = (float *)(first + CFXI_BLOCK);
    memset(at, 0, (size_t)k->block);
    for (int64_t n = 0; n < CFXI_BLOCK; n++) {
        const int64_t v = n / (CFXI_BLOCK / CFXI_BLOCK_VECTORS);
        const int64_t i = n % (CFXI_BLOCK / CFXI_BLOCK_VECTORS);
        const int64_t g = block * CFXI_BLOCK + cfxi_depthwise_channel_at(v, i);
        if (g >= c->groups)
            continue;
        factor[n] = k->factor[g];
        factor[CFXI_BLOCK + n] = k->bias[g];
        for (int64_t r = 0; r < c->kernel[1]; r++)
            for (int64_t s = 0; s < c->kernel[2]; s++) {
                const int8_t one = w[g * c->wg + r * c->ws[3] + s * c->ws[4]];
                const int64_t four = r / CFXI_BLOCK_LINES * c->kernel[2] + s;
                to[(four * CFXI_BLOCK + n) * CFXI_BLOCK_LINES + r % CFXI_BLOCK_LINES] = one;
                first[n] -= p->integers.x_zero * one;
            }
    }
}

/* A line of the result, as far as there are blocks. */
static void run_blocks(const depthwise_kernel *k, const uint8_t *image, int64_t y, uint8_t *out)
{
    const cfxi_conv *c = &k->head.problem.conv;
    const int64_t top = y * c->stride[1] - c->before[1];
    uint8_t zeros[CFXI_BLOCK];
    cfxi_byte_block t = {.pixels = c->out[2], .x_zero = (uint8_t)k->head.problem.integers.x_zero,
                         .columns = c->in[2], .left = -c->before[2], .step = c->stride[2],
                         .lines = c->kernel[1], .places = c->kernel[2],
                         .end = &k->head.problem.integers.end, .y_pixel = c->ys[4]};
    memset(zeros, t.x_zero, sizeof zeros);
    for (int64_t b = 0; b < k->blocks; b++) {
        const int64_t channel = b * CFXI_BLOCK;
        const int64_t left = c->groups - channel;
        const char *at = k->blocked + b * k->block;
        for (int64_t r = 0; r < CFXI_BLOCK_MOST_LINES; r++) {
            const bool inside = r < c->kernel[1] && top + r >= 0 && top + r < c->in[1];
            t.x[r] = inside ? image + (top + r) * c->xs[3] + channel : zeros;
            t.x_column[r] = inside ? c->xs[4] : 0;
        }
        t.channels = left < CFXI_BLOCK ? left : CFXI_BLOCK;
        t.w = (const int8_t *)at;
        t.first =
            (const int32_t *)(const void *)(at + k->block - 3 * CFXI_BLOCK * sizeof(float));
        t.factor = (const float *)(t.first + CFXI_BLOCK);
        t.bias = t.factor + CFXI_BLOCK;
        t.y = out + channel;
        cfxi_depthwise_vnni_line(&t);
    }
}

/* ---- preparing ----------------------------------------------------------------------------- */

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *from,
                            const cfx_allocator *allocator, cfx_error *err)
{
    const cfxi_conv *c = &p->conv;
    depthwise_kernel made = {.head = {&cfxi_backend_depthwise_bytes, allocator, *p, 0, NULL}};
    size_t places, floats, blocks, room;
    if (takes_blocks(p, from))
        shape_blocks(&made);
    if (!cfxi_base_mul_size((size_t)c->kernel[1], (size_t)c->kernel[2], 2, &places) ||
        !cfxi_base_mul_size((size_t)c->groups, places * sizeof(float), 0, &floats) ||
        !cfxi_base_mul_size((size_t)made.blocks, (size_t)made.block, 2 * CFXI_ALIGN, &blocks) ||
        !cfxi_base_mul_size(1, floats, sizeof(depthwise_kernel) + blocks, &room))
        return cfxi_base_nomem(err), NULL;
    depthwise_kernel *k = cfxi_base_alloc(allocator, room);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    *k = made;
    k->head.bytes = room;
    k->line = cfxi_depthwise_bytes_of(p->isa)->line;
    k->packed = (float *)(((uintptr_t)(k + 1) + CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN);
    pack(k, from);
    k->blocked = (char *)(((uintptr_t)k->packed + floats + CFXI_ALIGN - 1) / CFXI_ALIGN *
                          CFXI_ALIGN);
    for (int64_t b = 0; b < k->blocks; b++)
        pack_block(k, from, b);
    return &k->head;
}

/* ---- running ------------------------------------------------------------------------------- */

static void run_line(const cfxi_kernel *kernel, const cfxi_run *r, int64_t image, int64_t y)
{
    const depthwise_kernel *k = (const depthwise_kernel *)kernel;
    const cfxi_problem *p = &kernel->problem;
    const cfxi_conv *c = &p->conv;
    const cfxi_integers *q = &p->integers;
    const cfxi_span lines = cfxi_backend_lines_inside(c, y);
    const int64_t top = y * c->stride[1] - c->before[1] + lines.first * c->dilation[1];
    const int64_t out = image * c->ys[0] + y * c->ys[3];
    const uint8_t *x = (const uint8_t *)(const void *)r->x + image * c->xs[0];
    const uint8_t *other =
        q->end.adds ? (const uint8_t *)(const void *)r->operands[q->other] : NULL;
    const int64_t done = k->blocks * CFXI_BLOCK;  /* channels */
    if (k->blocks > 0)
        run_blocks(k, x, y, (uint8_t *)(void *)r->out + out);
    if (done >= c->groups)
        return;
    const cfxi_byte_line t = {
        .pixels = c->out[2],
        .channels = c->groups - done,
        .x = x + done + (lines.first < lines.last ? top * c->xs[3] : 0),
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
        .w = k->packed + lines.first * c->kernel[2] * c->groups + done,
        .w_line = c->kernel[2] * c->groups,
        .w_place = c->groups,
        .factor = k->factor + done,
        .bias = k->bias + done,
        .end = &q->end,
        .y = q->end.to_float ? (void *)(r->out + out) : (char *)r->out + out + done,
        .y_pixel = c->ys[4],
        .other = other ? other + image * q->other_rows[0] + y * q->other_rows[1] : NULL,
        .other_pixel = q->other_rows[2],
    };
    k->line(&t);
    cfxi_backend_finish_line(p, r, 0, image, y, r->out + out);
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
    const depthwise_kernel *k = (const depthwise_kernel *)kernel;
    cfxi_base_out_printf(out, "integer depthwise convolution %lldx%lld%s", (long long)c->kernel[1],
                         (long long)c->kernel[2], k->blocks > 0 ? ", avx512_vnni" : "");
}

const cfxi_backend cfxi_backend_depthwise_bytes = {"built-in, int8", query, prepare,
                                                   run,              release, print};
