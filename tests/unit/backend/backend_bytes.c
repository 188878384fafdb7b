/* backend_bytes.c - products and convolutions of 8-bit integers against plain loops, bit by bit:
 * random problems with odd sizes, strides, padding, groups, all kinds of integers, zero points at
 * both ends of their range, results that saturate, sums with another image; for each instruction
 * set of the machine, with and without what it has for bytes. */
#include "backend/backend_impl.h"

#include "test_alloc.h"

#include <math.h>

static uint64_t state = 7;

static int64_t draw(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(state >> 33) % n;
}

/* Memory of exactly the size, so that reading past the end is caught. */
static void *room(int64_t bytes) { return malloc((size_t)(bytes > 0 ? bytes : 1)); }

/* Now and then only numbers at the ends, so that what is added up in too few bits is noticed. */
static uint8_t *bytes(int64_t n)
{
    uint8_t *x = room(n);
    const int64_t kind = draw(4);
    for (int64_t i = 0; i < n; i++)
        x[i] = kind == 0   ? 255
               : kind == 1 ? (uint8_t)(draw(2) ? 127 : 128)
                           : (uint8_t)draw(256);
    return x;
}

static int32_t number(const uint8_t *x, bool is_signed) { return is_signed ? (int8_t)*x : *x; }

/* A zero point: at an end, or somewhere. */
static int32_t draw_zero(bool is_signed)
{
    const int64_t kind = draw(4);
    const int32_t z = kind == 0 ? 0 : kind == 1 ? 255 : (int32_t)draw(256);
    return is_signed ? z - 128 : z;
}

/* ---- what is wanted ------------------------------------------------------------------------ */

typedef struct operands {
    uint8_t *x, *w, *other;
    float *factor, *bias;
    int32_t *w_zero;
    void *out;
} operands;

static int32_t rounded(float r, float low, float high)
{
    const float least = r > low ? r : low;  /* NaN: low */
    return (int32_t)rintf(least < high ? least : high);
}

/* What becomes of a sum, as docs/quantization.md says. */
static int32_t wanted_bytes(const cfxi_byte_end *e, float r, const uint8_t *other)
{
    const int32_t q = rounded(r, e->low, e->high) + e->zero;
    if (!e->adds)
        return q;
    const float own = (float)(q - e->own_zero);
    const float another = (float)(number(other, e->other_signed) - e->other_zero);
    const float product = (e->other_first ? own : another) *
                          (e->other_first ? e->own_factor : e->other_factor);
    r = fmaf(e->other_first ? another : own, e->other_first ? e->other_factor : e->own_factor,
             product);
    return rounded(r, e->low2, e->high2) + e->zero2;
}

static bool is_good(const cfxi_problem *p, const operands *o, int64_t sum, int64_t column,
                    int64_t at, const uint8_t *other)
{
    const cfxi_byte_end *e = &p->integers.end;
    const float r = fmaf((float)(int32_t)sum, o->factor[column], o->bias ? o->bias[column] : 0);
    bool good;
    if (e->to_float) {
        const float wanted = p->num_posts > 0 ? -r : r;
        good = memcmp((const float *)o->out + at, &wanted, sizeof wanted) == 0;
    } else {
        good = ((const uint8_t *)o->out)[at] == (uint8_t)wanted_bytes(e, r, other);
    }
    if (!good)
        printf("    sum %lld, r %.9g, in bytes %d, got %d or %g\n", (long long)sum, (double)r,
               wanted_bytes(e, r, other), ((const uint8_t *)o->out)[at],
               e->to_float ? (double)((const float *)o->out)[at] : 0.);
    return good;
}

/* ---- problems ------------------------------------------------------------------------------ */

/* A range of results, some of which are outside of it. */
static void draw_range(float *low, float *high, int32_t *zero, bool is_signed)
{
    *zero = draw_zero(is_signed);
    const int32_t least = draw(3) ? is_signed ? -128 : 0 : *zero;  /* as after a relu */
    *low = (float)(least - *zero);
    *high = (float)((is_signed ? 127 : 255) - *zero);
}

static cfxi_problem draw_problem(const cfx_runtime *rt, cfxi_problem_kind kind)
{
    cfxi_problem p = {.kind = kind, .isa = rt->isa, .int8 = cfxi_rt_int8(rt),
                      .threads = cfx_runtime_threads(rt), .has_bias = draw(2)};
    cfxi_integers *q = &p.integers;
    *q = (cfxi_integers){.used = true, .x_signed = draw(2), .w_signed = draw(4) > 0};
    q->x_zero = draw_zero(q->x_signed);
    q->end.to_float = draw(4) == 0;
    draw_range(&q->end.low, &q->end.high, &q->end.zero, draw(2));
    if (q->end.to_float && draw(2))
        p.posts[p.num_posts++] = (cfxi_post){.kind = CFXI_POST_FN, .fn = CFXI_FN_neg};
    if (q->end.to_float || draw(3) > 0)
        return p;
    q->end.adds = true;
    q->end.other_signed = draw(2);
    q->end.other_first = draw(2);
    q->end.own_zero = draw(2) ? q->end.zero : draw_zero(false);
    q->end.other_zero = draw_zero(q->end.other_signed);
    q->end.own_factor = 0.37f;
    q->end.other_factor = 0.81f;
    draw_range(&q->end.low2, &q->end.high2, &q->end.zero2, draw(2));
    return p;
}

/* Factors with which a sum of so many products is about as large as the range; some are far too
 * large, and one is NaN. */
static operands draw_operands(const cfxi_problem *p, int64_t x, int64_t w, int64_t out,
                              int64_t columns, int64_t products)
{
    operands o = {.x = bytes(x), .w = bytes(w), .other = bytes(out),
                  .out = room(out * (p->integers.end.to_float ? 4 : 1))};
    o.factor = room(columns * 4);
    o.bias = p->has_bias ? room(columns * 4) : NULL;
    o.w_zero = draw(3) == 0 ? room(columns * 4) : NULL;
    for (int64_t i = 0; i < columns; i++) {
        o.factor[i] = (float)(1 + draw(1000)) / 5e5f / sqrtf((float)products) *
                      (draw(20) == 0 ? 1e9f : 1);
        if (draw(200) == 0)
            o.factor[i] = NAN;
        if (p->has_bias)
            o.bias[i] = (float)(draw(2001) - 1000) / 30;
        if (o.w_zero)
            o.w_zero[i] = draw_zero(p->integers.w_signed);
    }
    if (p->integers.end.to_float)  /* a NaN has many bits */
        for (int64_t i = 0; i < columns; i++)
            o.factor[i] = isnan(o.factor[i]) ? 1 : o.factor[i];
    return o;
}

static void free_operands(const operands *o)
{
    free(o->x), free(o->w), free(o->other), free(o->out);
    free(o->factor), free(o->bias), free(o->w_zero);
}

static bool run_kernel(cfx_runtime *rt, const cfxi_problem *p, const operands *o)
{
    cfx_error err = {0};
    const cfxi_constants c = {.w = (const float *)(const void *)o->w, .bias = o->bias,
                              .scale = o->factor, .w_zero = o->w_zero, .rt = rt};
    const cfxi_choosing how = {.allowed = CFXI_ALLOW_BUILT_IN};
    const cfxi_backend *backend = cfxi_backend_choose(p, &how, &err);
    if (!CHECK(backend != NULL))
        return false;
    cfxi_kernel *k = backend->prepare(p, &c, cfxi_base_allocator(NULL), &err);
    if (!CHECK(k != NULL))
        return false;
    const cfxi_run r = {.rt = rt, .x = (const float *)(const void *)o->x, .out = o->out,
                        .operands = {(const float *)(const void *)o->other}};
    const bool ran = CHECK(k->backend->run(k, &r, &err) == CFX_OK);
    k->backend->release(k);
    return ran;
}

static void check_product(cfx_runtime *rt, int64_t m, int64_t n, int64_t k)
{
    const int64_t gap = draw(3);
    const bool turned = draw(2);
    cfxi_problem p = draw_problem(rt, CFXI_PRODUCT);
    const cfxi_integers *q = &p.integers;
    p.m = m, p.n = n, p.k = k;
    p.x_row = k + gap, p.out_row = n + gap;
    p.w_k = turned ? 1 : n, p.w_n = turned ? k : 1;
    p.integers.other_rows[0] = p.out_row;
    const operands o =
        draw_operands(&p, m * p.x_row - gap, k * n, m * p.out_row - gap, n, k);
    bool good = run_kernel(rt, &p, &o);
    for (int64_t i = 0; good && i < m; i++)
        for (int64_t j = 0; good && j < n; j++) {
            int64_t sum = 0;
            for (int64_t s = 0; s < k; s++)
                sum += (int64_t)(number(&o.x[i * p.x_row + s], q->x_signed) - q->x_zero) *
                       (number(&o.w[s * p.w_k + j * p.w_n], q->w_signed) -
                        (o.w_zero ? o.w_zero[j] : 0));
            const int64_t at = i * p.out_row + j;
            good = is_good(&p, &o, sum, j, at, o.other + at);
            if (!good)
                printf("    product %lld x %lld x %lld at %lld, %lld\n", (long long)m, (long long)n,
                       (long long)k, (long long)i, (long long)j);
        }
    CHECK(good);
    free_operands(&o);
}

static int64_t sum_at(const cfxi_problem *p, const operands *o, int64_t image, int64_t channel,
                      int64_t y, int64_t z)
{
    const cfxi_conv *c = &p->conv;
    const int64_t g = channel / c->out_channels;
    const uint8_t *w = o->w + g * c->wg + channel % c->out_channels * c->ws[0];
    int64_t sum = 0;
    for (int64_t i = 0; i < c->in_channels; i++)
        for (int64_t r = 0; r < c->kernel[1]; r++)
            for (int64_t s = 0; s < c->kernel[2]; s++) {
                const int64_t line = y * c->stride[1] - c->before[1] + r * c->dilation[1];
                const int64_t pixel = z * c->stride[2] - c->before[2] + s * c->dilation[2];
                if (line < 0 || line >= c->in[1] || pixel < 0 || pixel >= c->in[2])
                    continue;
                const uint8_t *x = o->x + image * c->xs[0] + line * c->xs[3] + pixel * c->xs[4] +
                                   (g * c->in_channels + i) * c->xs[1];
                sum += (int64_t)(number(x, p->integers.x_signed) - p->integers.x_zero) *
                       (number(w + i * c->ws[1] + r * c->ws[3] + s * c->ws[4],
                               p->integers.w_signed) -
                        (o->w_zero ? o->w_zero[channel] : 0));
            }
    return sum;
}

typedef enum layout { DENSE, DEPTHWISE, PLANES } layout;

/* Channels last, with gaps between pixels now and then; or planes. */
static cfxi_problem draw_conv(const cfx_runtime *rt, layout kind, int64_t channels, int64_t longest)
{
    cfxi_problem p = draw_problem(rt, CFXI_CONVOLUTION);
    cfxi_conv *c = &p.conv;
    c->batch = 1 + draw(2);
    c->groups = kind == DEPTHWISE ? channels : 1 + (kind == DENSE && draw(3) == 0 ? draw(3) : 0);
    c->in_channels = kind == DEPTHWISE ? 1 : channels;
    c->out_channels = kind == DEPTHWISE ? 1 : 2 + draw(60);
    if (kind == DENSE && draw(4) == 0) {  /* small groups */
        c->groups = 2 + draw(14);
        c->in_channels = 1 + draw(8);
        c->out_channels = 2 + draw(7);
    }
    for (int d = 0; d < CFXI_SPATIAL; d++) {
        c->kernel[d] = d ? 1 + draw(kind == DEPTHWISE ? 6 : 4) : 1;
        c->stride[d] = d ? 1 + draw(2) : 1;
        c->dilation[d] = d ? 1 + (draw(4) == 0) : 1;
        c->before[d] = d && draw(2) ? draw(3) : 0;
        const int64_t window = (c->kernel[d] - 1) * c->dilation[d] + 1;
        c->out[d] = d == 2 ? 1 + draw(longest) : d ? 1 + draw(12) : 1;
        c->in[d] = d ? (c->out[d] - 1) * c->stride[d] + window - c->before[d] - draw(2) : 1;
        c->in[d] = c->in[d] < 1 ? 1 : c->in[d];
    }
    const int64_t in = c->in_channels * c->groups + (kind == PLANES ? 0 : draw(2) * 5);
    const int64_t out = c->out_channels * c->groups + draw(2) * 3;
    const int64_t window = c->kernel[1] * c->kernel[2];
    const int64_t pixels = c->in[1] * c->in[2];
    const bool planes = kind == PLANES;
    const int64_t xs[] = {pixels * in, planes ? pixels : 1, 0, planes ? c->in[2] : c->in[2] * in,
                          planes ? 1 : in};
    const int64_t ys[] = {c->out[1] * c->out[2] * out, 1, 0, c->out[2] * out, out};
    const int64_t ws[] = {c->in_channels * window, window, 0, c->kernel[2], 1};
    memcpy(c->xs, xs, sizeof xs);
    memcpy(c->ys, ys, sizeof ys);
    memcpy(c->ws, ws, sizeof ws);
    c->wg = c->out_channels * c->in_channels * window;
    const int64_t rows[3] = {c->ys[0], c->ys[3], c->ys[4]};
    memcpy(p.integers.other_rows, rows, sizeof rows);
    return p;
}

/* Runs a convolution, looks at its result, and frees the operands. */
static void check_operands(cfx_runtime *rt, const cfxi_problem *p, const operands *o)
{
    const cfxi_conv *c = &p->conv;
    const int64_t channels = c->groups * c->out_channels;
    bool good = run_kernel(rt, p, o);
    for (int64_t i = 0; good && i < c->batch * channels * c->out[1] * c->out[2]; i++) {
        const int64_t z = i % c->out[2];
        const int64_t y = i / c->out[2] % c->out[1];
        const int64_t channel = i / c->out[2] / c->out[1] % channels;
        const int64_t image = i / c->out[2] / c->out[1] / channels;
        const int64_t at = image * c->ys[0] + y * c->ys[3] + z * c->ys[4] + channel;
        good = is_good(p, o, sum_at(p, o, image, channel, y, z), channel, at, o->other + at);
    }
    CHECK(good);
    free_operands(o);
}

static void check_conv(cfx_runtime *rt, layout kind, int64_t in_channels, int64_t longest)
{
    const cfxi_problem p = draw_conv(rt, kind, in_channels, longest);
    const cfxi_conv *c = &p.conv;
    const operands o = draw_operands(&p, c->batch * c->xs[0], c->groups * c->wg,
                                     c->batch * c->ys[0], c->groups * c->out_channels,
                                     c->in_channels * c->kernel[1] * c->kernel[2]);
    check_operands(rt, &p, &o);
}

/* A depthwise convolution that blocks of channels are made for: unsigned by signed, without zero
 * points of weights, to bytes. */
static void check_blocks(cfx_runtime *rt, int64_t channels)
{
    cfxi_problem p = draw_conv(rt, DEPTHWISE, channels < 4 ? 4 : channels, 20);
    cfxi_conv *c = &p.conv;
    p.integers.x_signed = p.integers.end.to_float = p.integers.end.adds = false;
    p.integers.w_signed = true;
    p.integers.x_zero = (int32_t)draw(256);
    p.num_posts = 0;
    c->dilation[1] = c->dilation[2] = 1;
    operands o = draw_operands(&p, c->batch * c->xs[0], c->groups * c->wg, c->batch * c->ys[0],
                               c->groups, c->kernel[1] * c->kernel[2]);
    free(o.w_zero);
    o.w_zero = NULL;
    check_operands(rt, &p, &o);
}

/* ---- everything on a machine --------------------------------------------------------------- */

static void check_all(cfx_runtime *rt)
{
    for (int i = 0; i < 150; i++)
        check_product(rt, 1 + draw(i % 4 ? 20 : 90), 1 + draw(i % 3 ? 40 : 300), 1 + draw(70));
    for (int i = 0; i < 30; i++)  /* whole steps of AMX */
        check_product(rt, 1 + draw(70), 1 + draw(i % 3 ? 70 : 300), 64 * (1 + draw(5)));
    check_product(rt, 9, 20, 4096);
    check_product(rt, 1, 1000, 512);
    check_product(rt, 1300, 17, 5);
    for (int i = 0; i < 150; i++)
        check_conv(rt, DENSE, 1 + draw(20), 12);
    for (int i = 0; i < 12; i++)
        check_conv(rt, DENSE, 64 * (1 + draw(2)), 40);
    for (int i = 0; i < 20; i++)
        check_conv(rt, PLANES, 2 + draw(3), 30);
    check_conv(rt, DENSE, 3, 700);
    for (int i = 0; i < 60; i++)
        check_conv(rt, DEPTHWISE, 4 + draw(i % 3 ? 30 : 140), 30);
    for (int i = 0; i < 60; i++)
        check_blocks(rt, 1 + draw(200));
}

/* With an instruction set, and at most this for bytes. */
static void check_isa(const char *name, cfx_isa isa, cfxi_int8 most)
{
    const cfx_runtime_options options = {.threads = 2, .limit_isa = true, .isa = isa};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    if (!CHECK(rt != NULL))
        return;
    rt->most_int8 = most;
    if (rt->isa == isa && cfxi_rt_int8(rt) == most)
        check_all(rt);
    else
        printf("%s: 1 skipped, because this machine does not have it, or does not allow it\n",
               name);
    cfx_runtime_free(rt);
}

TEST(plain) { check_isa("plain", CFX_ISA_PLAIN, CFXI_INT8_NONE); }
TEST(avx2) { check_isa("avx2", CFX_ISA_AVX2, CFXI_INT8_NONE); }
TEST(avx_vnni) { check_isa("avx_vnni", CFX_ISA_AVX2, CFXI_INT8_DOTS); }
TEST(avx512) { check_isa("avx512", CFX_ISA_AVX512, CFXI_INT8_NONE); }
TEST(avx512_vnni) { check_isa("avx512_vnni", CFX_ISA_AVX512, CFXI_INT8_DOTS); }
TEST(amx) { check_isa("amx", CFX_ISA_AVX512, CFXI_INT8_TILES); }
TEST(neon) { check_isa("neon", CFX_ISA_NEON, CFXI_INT8_NONE); }
