/* backend_kernels.c - kernels against plain loops in double: random problems with odd sizes,
 * strides, padding, groups and posts, for each instruction set of the machine, and for oneDNN where
 * CFX_ONEDNN names libdnnl.so. */
#include "backend/backend_impl.h"
#include "runtime/kernels/depthwise/depthwise.h"

#include "test_alloc.h"

#include <math.h>

static uint64_t state = 7;

static int64_t draw(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(state >> 33) % n;
}

/* Floats in memory of exactly their size, so that reading past the end is caught. */
static float *numbers(int64_t n)
{
    float *x = malloc((size_t)(n > 0 ? n : 1) * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(draw(2001) - 1000) / 500;
    return x;
}

/* max((x + operand) * 0.5, x) */
static const cfxi_chain chain = {
    .num_inputs = 2,
    .num_ops = 3,
    .ops = {{.fn = CFXI_FN_add, .n = 2,
             .args = {{.from = CFXI_FROM_INPUT}, {.from = CFXI_FROM_INPUT, .index = 1}}},
            {.fn = CFXI_FN_mul, .n = 2, .buffer = 1,
             .args = {{.from = CFXI_FROM_OP}, {.from = CFXI_FROM_NUMBER, .number = 0.5f}}},
            {.fn = CFXI_FN_maximum, .n = 2, .buffer = 2,
             .args = {{.from = CFXI_FROM_OP, .index = 1}, {.from = CFXI_FROM_INPUT}}}}};

/* Some posts of the first kinds in random order, over operands of `elements` floats. */
enum { ALL_KINDS = CFXI_POST_CHAIN + 1, ARITHMETIC = CFXI_POST_CLAMP + 1 };

static void add_posts(cfxi_problem *p, float **operands, int64_t elements, const int64_t rows[3],
                      int64_t kinds)
{
    p->num_posts = (size_t)draw(4);
    for (size_t i = 0; i < p->num_posts; i++) {
        cfxi_post *post = &p->posts[i];
        *post = (cfxi_post){.kind = (cfxi_post_kind)draw(kinds), .operand = i, .low = 0,
                            .high = 1.5f, .fn = CFXI_FN_silu, .chain = &chain, .operands = {0, i}};
        memcpy(post->rows, rows, sizeof post->rows);
        operands[i] = numbers(elements);
    }
}

static double after_posts(const cfxi_problem *p, float *const *operands, double x, int64_t at)
{
    for (size_t i = 0; i < p->num_posts; i++) {
        const cfxi_post *post = &p->posts[i];
        switch (post->kind) {
        case CFXI_POST_ADD: x += operands[i][at]; break;
        case CFXI_POST_MUL: x *= operands[i][at]; break;
        case CFXI_POST_CLAMP:  /* NaN stays */
            x = x < post->low ? post->low : x > post->high ? post->high : x;
            break;
        case CFXI_POST_FN: x = x / (1 + exp(-x)); break;
        case CFXI_POST_CHAIN: x = fmax((x + (double)operands[i][at]) * 0.5, x); break;
        }
    }
    return x;
}

/* oneDNN has no fast convolutions whose pixels lie apart, or with windows that see only padding. */
static bool onednn_may_refuse(const cfxi_problem *p)
{
    const cfxi_conv *c = &p->conv;
    bool outside = false;
    for (int d = 1; d < CFXI_SPATIAL; d++)
        outside = outside || c->before[d] > (c->kernel[d] - 1) * c->dilation[d];
    return p->onednn && p->kind == CFXI_CONVOLUTION &&
           (outside || c->ys[4] != c->groups * c->out_channels);
}

/* False if the back end does not take the problem, which only oneDNN may do. */
static bool run_kernel(const cfxi_backend *b, cfx_runtime *rt, const cfxi_problem *p,
                       const cfxi_constants *c, const float *x, float *out, float *const *operands)
{
    cfx_error err = {0};
    double cost = -1;
    const bool can = b->query(p, &cost);
    CHECK(can ? cost >= 0 : onednn_may_refuse(p));
    if (!can)
        return false;
    cfxi_kernel *k = b->prepare(p, c, cfxi_base_allocator(NULL), &err);
    CHECK(k != NULL);
    cfxi_run r = {.rt = rt, .x = x, .out = out};
    for (size_t i = 0; i < CFXI_MOST_POSTS; i++)
        r.operands[i] = operands[i];
    CHECK(k && k->backend->run(k, &r, &err) == CFX_OK);
    if (k)
        k->backend->release(k);
    return true;
}

static bool close_to(double want, float got, int64_t terms)
{
    if (!isfinite(want))
        return isnan(want) ? isnan(got) : want == got;
    return fabs(want - got) <= 2e-6 * (20 + (double)terms * 2);
}

static cfxi_onednn *onednn;  /* while it is being tested */

static bool check_product(cfx_runtime *rt, const cfxi_backend *b, int64_t m, int64_t n, int64_t k)
{
    const int64_t gap = draw(3);
    const bool turned = draw(2);
    cfxi_problem p = {.kind = CFXI_PRODUCT, .isa = rt->isa, .threads = cfx_runtime_threads(rt),
                      .onednn = onednn, .m = m, .n = n, .k = k,
                      .x_row = k + gap, .out_row = n + gap,
                      .w_k = turned ? 1 : n, .w_n = turned ? k : 1, .has_bias = draw(2)};
    const int64_t rows[3] = {p.out_row, 0, 0};
    float *x = numbers(m * p.x_row - gap);
    float *w = numbers(k * n);
    float *bias = p.has_bias ? numbers(n) : NULL;
    float *scale = draw(2) ? numbers(n) : NULL;
    float *out = numbers(m * p.out_row - gap);
    float *operands[CFXI_MOST_POSTS] = {0};
    add_posts(&p, operands, m * p.out_row - gap, rows, ALL_KINDS);
    const bool scaled = !onednn && draw(3) == 0;
    float *shifts = NULL;
    if (scaled) {
        p.factors.scaled = true;
        p.factors.known = draw(2);
        p.factors.operand = p.num_posts;
        p.factors.rows = 1 + draw(m);
        p.factors.step = p.factors.known ? 0 : k + draw(3);
        p.factors.low = draw(2) ? 0 : -INFINITY;
        p.factors.high = draw(2) ? 1 : INFINITY;
        operands[p.num_posts] = numbers(m / p.factors.rows * p.factors.step + k);
        shifts = p.factors.known ? numbers(k) : NULL;
    }
    const float *factors = scaled ? operands[p.num_posts] : NULL;
    const cfxi_constants c = {.w = w, .bias = bias, .scale = scale, .factors = factors,
                              .shifts = shifts, .rt = draw(2) ? rt : NULL};
    const bool ran = run_kernel(b, rt, &p, &c, x, out, operands);
    bool same = true;
    for (int64_t i = 0; ran && i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t q = 0; q < k; q++) {
                double one = x[i * p.x_row + q];
                if (scaled)
                    one = fmax(p.factors.low,
                               fmin(p.factors.high,
                                    one * factors[i / p.factors.rows * p.factors.step + q] +
                                        (shifts ? (double)shifts[q] : 0)));
                sum += one * w[q * p.w_k + j * p.w_n];
            }
            sum = sum * (scale ? scale[j] : 1) + (bias ? bias[j] : 0);
            const int64_t at = i * p.out_row + j;
            same = same && close_to(after_posts(&p, operands, sum, at), out[at], k);
        }
    CHECK(same);
    for (size_t i = 0; i < CFXI_MOST_POSTS; i++)
        free(operands[i]);
    free(x), free(w), free(bias), free(scale), free(out), free(shifts);
    return ran;
}

/* Pixels outside of the image are zeros: what they give with a weight that is not finite is left to
 * the kernel, and `outside` says whether they count. */
static double conv_at(const cfxi_conv *c, const float *x, const float *w, int64_t b, int64_t g,
                      int64_t o, int64_t y, int64_t z, bool outside)
{
    double sum = 0;
    for (int64_t i = 0; i < c->in_channels; i++)
        for (int64_t r = 0; r < c->kernel[1]; r++)
            for (int64_t s = 0; s < c->kernel[2]; s++) {
                const int64_t line = y * c->stride[1] - c->before[1] + r * c->dilation[1];
                const int64_t pixel = z * c->stride[2] - c->before[2] + s * c->dilation[2];
                const double weight =
                    w[g * c->wg + o * c->ws[0] + i * c->ws[1] + r * c->ws[3] + s * c->ws[4]];
                if (line >= 0 && line < c->in[1] && pixel >= 0 && pixel < c->in[2])
                    sum += (double)x[b * c->xs[0] + line * c->xs[3] + pixel * c->xs[4] +
                                     (g * c->in_channels + i) * c->xs[1]] * weight;
                else if (outside)
                    sum += 0 * weight;
            }
    return sum;
}

typedef enum form {
    ANY_FORM, DEPTHWISE, GROUPS, DENSE_3X3, LONG_LINE, MEETING_ROWS, PLANES
} form;

/* A random convolution; channels last, with gaps between pixels of the result now and then. */
static cfxi_problem draw_conv(const cfx_runtime *rt, form f)
{
    const bool depthwise = f == DEPTHWISE;
    const bool dense = f == DENSE_3X3;
    cfxi_problem p = {.kind = CFXI_CONVOLUTION, .isa = rt->isa, .onednn = onednn,
                      .threads = cfx_runtime_threads(rt), .has_bias = draw(2)};
    cfxi_conv *c = &p.conv;
    c->batch = 1 + draw(2);
    c->groups = depthwise ? 4 + draw(40) : 1 + (!dense && draw(3) == 0 ? draw(3) : 0);
    c->in_channels = depthwise ? 1 : dense ? 8 + draw(60) : 1 + draw(20);
    c->out_channels = depthwise ? 1 : 1 + draw(70);
    for (int d = 0; d < CFXI_SPATIAL; d++) {
        c->kernel[d] = dense && d ? 3 : d ? 1 + draw(depthwise ? 7 : 4) : 1;
        c->stride[d] = d && !dense ? 1 + draw(2) : 1;
        c->dilation[d] = d && !dense ? 1 + (draw(4) == 0) : 1;
        c->before[d] = d ? draw(3) : 0;
        const int64_t window = (c->kernel[d] - 1) * c->dilation[d] + 1;
        c->out[d] = d ? 1 + draw(depthwise ? 24 : 17) : 1;
        c->in[d] = d ? (c->out[d] - 1) * c->stride[d] + window - c->before[d] - draw(2) : 1;
        c->in[d] = c->in[d] < 1 ? 1 : c->in[d];
    }
    if (f == LONG_LINE) {  /* cut into stretches */
        c->out[1] = c->in[1] = c->kernel[1] = 1;
        c->before[1] = 0;
        c->out[2] = 600 + draw(600);
        c->in_channels += 60;
        c->out_channels = 1 + draw(20);
        c->in[2] = (c->out[2] - 1) * c->stride[2] + (c->kernel[2] - 1) * c->dilation[2] + 1 -
                   c->before[2];
    }
    if (f == MEETING_ROWS) {  /* rows of a tile are some 4096 bytes apart */
        c->in_channels = 512 * (1 + draw(2));
        c->out_channels = 1 + draw(20);
        c->groups = 1;
    }
    if (f == GROUPS) {  /* small ones */
        c->groups = 2 + draw(20);
        c->in_channels = c->out_channels = 2 << draw(3);
    }
    if (f == PLANES) {
        c->in_channels = 2 + draw(3);
        c->groups = 1;
    }
    const int64_t in = c->in_channels * c->groups;
    const int64_t out = c->out_channels * c->groups + draw(2) * 3;
    const int64_t window = c->kernel[1] * c->kernel[2];
    const int64_t xs[] = {c->in[1] * c->in[2] * in, 1, 0, c->in[2] * in, in};
    const int64_t ys[] = {c->out[1] * c->out[2] * out, 1, 0, c->out[2] * out, out};
    const int64_t ws[] = {c->in_channels * window, window, 0, c->kernel[2], 1};
    const int64_t planes[] = {xs[0], c->in[1] * c->in[2], 0, c->in[2], 1};
    memcpy(c->xs, f == PLANES ? planes : xs, sizeof xs);
    memcpy(c->ys, ys, sizeof ys);
    memcpy(c->ws, ws, sizeof ws);
    c->wg = c->out_channels * c->in_channels * window;
    return p;
}

/* Numbers among which are some that are not finite. */
static void spoil(float *x, int64_t n)
{
    for (int64_t i = 1 + draw(3); i > 0; i--)
        x[draw(n)] = draw(3) == 0 ? NAN : draw(2) ? INFINITY : -INFINITY;
}

static bool check_conv(cfx_runtime *rt, const cfxi_backend *b, form f, bool spoilt)
{
    cfxi_problem p = draw_conv(rt, f);
    const cfxi_conv *c = &p.conv;
    const int64_t channels = c->groups * c->out_channels;
    const int64_t rows[3] = {c->ys[0], c->ys[3], c->ys[4]};
    float *x = numbers(c->batch * c->xs[0]);
    float *w = numbers(c->groups * c->wg);
    float *bias = p.has_bias ? numbers(channels) : NULL;
    float *scale = draw(2) ? numbers(channels) : NULL;
    float *out = numbers(c->batch * c->ys[0]);
    float *operands[CFXI_MOST_POSTS] = {0};
    add_posts(&p, operands, c->batch * c->ys[0], rows, spoilt ? ARITHMETIC : ALL_KINDS);
    if (spoilt && draw(8))
        spoil(x, c->batch * c->xs[0]);
    else if (spoilt)
        spoil(w, c->groups * c->wg);
    const cfxi_constants constants = {.w = w, .bias = bias, .scale = scale,
                                      .rt = draw(2) ? rt : NULL};
    const bool ran = run_kernel(b, rt, &p, &constants, x, out, operands);
    bool same = true;
    for (int64_t i = 0; ran && i < c->batch * channels * c->out[1] * c->out[2]; i++) {
        const int64_t z = i % c->out[2];
        const int64_t y = i / c->out[2] % c->out[1];
        const int64_t o = i / c->out[2] / c->out[1] % channels;
        const int64_t image = i / c->out[2] / c->out[1] / channels;
        const int64_t at = image * c->ys[0] + y * c->ys[3] + z * c->ys[4] + o;
        bool one_is = false;
        for (int k = 0; k < 2; k++) {
            double sum =
                conv_at(c, x, w, image, o / c->out_channels, o % c->out_channels, y, z, k);
            sum = sum * (scale ? scale[o] : 1) + (bias ? bias[o] : 0);
            one_is = one_is || close_to(after_posts(&p, operands, sum, at), out[at],
                                        c->in_channels * c->kernel[1] * c->kernel[2]);
        }
        same = same && one_is;
    }
    CHECK(same);
    for (size_t i = 0; i < p.num_posts; i++)
        free(operands[i]);
    free(x), free(w), free(bias), free(scale), free(out);
    return ran;
}

static void check_isa(cfx_isa isa)
{
    const cfx_runtime_options options = {.threads = 2, .limit_isa = true, .isa = isa};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    CHECK(rt != NULL);
    if (!rt || rt->isa != isa) {  /* not of this machine */
        cfx_runtime_free(rt);
        return;
    }
    for (int i = 0; i < 120; i++)
        check_product(rt, &cfxi_backend_product, 1 + draw(i % 4 ? 20 : 90),
                      1 + draw(i % 3 ? 40 : 300), 1 + draw(70));
    for (int i = 0; i < 150; i++)
        check_conv(rt, &cfxi_backend_convolution, ANY_FORM, i % 5 == 4);
    for (int i = 0; i < 20; i++)
        check_conv(rt, &cfxi_backend_convolution, PLANES, i % 5 == 4);
    for (int i = 0; i < 8; i++)
        check_conv(rt, &cfxi_backend_convolution, i % 2 ? LONG_LINE : MEETING_ROWS, false);
    for (int i = 0; i < 300; i++)
        check_conv(rt, &cfxi_backend_depthwise, DEPTHWISE, i % 5 == 4);
    for (int i = 0; i < 200 && cfxi_depthwise_groups_of(isa, 2); i++)
        check_conv(rt, &cfxi_backend_depthwise, GROUPS, i % 5 == 4);
    for (int i = 0; i < 60; i++)
        check_conv(rt, &cfxi_backend_winograd, DENSE_3X3, i % 3 == 2);
    cfx_runtime_free(rt);
}

/* NaN and infinities go through the clamp as through PyTorch's relu. */
static void check_specials(const cfxi_backend *b)
{
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    enum { ROWS = 4, COLUMNS = 40 };
    const float x[ROWS] = {NAN, INFINITY, -INFINITY, -1};
    float w[COLUMNS];
    float out[ROWS * COLUMNS];
    for (int i = 0; i < COLUMNS; i++)
        w[i] = 1;
    const cfxi_problem p = {.kind = CFXI_PRODUCT, .isa = rt->isa, .threads = 1, .onednn = onednn,
                            .m = ROWS, .n = COLUMNS, .k = 1, .x_row = 1, .out_row = COLUMNS,
                            .w_k = COLUMNS, .w_n = 1, .num_posts = 1,
                            .posts = {{.kind = CFXI_POST_CLAMP, .low = 0, .high = INFINITY}}};
    const cfxi_constants c = {.w = w};
    CHECK(run_kernel(b, rt, &p, &c, x, out, (float *const[CFXI_MOST_POSTS]){0}));
    for (int i = 0; i < COLUMNS; i++)
        CHECK(isnan(out[i]) && isinf(out[COLUMNS + i]) && out[2 * COLUMNS + i] == 0 &&
              out[3 * COLUMNS + i] == 0);
    cfx_runtime_free(rt);
}

static int64_t line_of(const void *ctx, int64_t q, int64_t p)
{
    return q * *(const int64_t *)ctx + p;
}

/* Threads that share the packing give what one gives: with whole and with broken panels. */
TEST(packing_is_shared)
{
    const int64_t block = 700;
    const int64_t count = 3;
    const cfx_runtime_options options = {.threads = 2};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    for (int64_t n = 1; n < 200; n += 37) {
        const int64_t floats = cfxi_tiles_panels(n) * count * block * CFXI_PANEL;
        float *w = numbers(n * count * block);
        float *scale = numbers(n);
        float *alone = numbers(floats);
        float *shared = numbers(floats);
        cfxi_backend_pack(NULL, alone, n, count, block, w, count * block, scale, line_of, &block);
        cfxi_backend_pack(rt, shared, n, count, block, w, count * block, scale, line_of, &block);
        CHECK(memcmp(alone, shared, (size_t)floats * sizeof *alone) == 0);
        free(w);
        free(scale);
        free(alone);
        free(shared);
    }
    cfx_runtime_free(rt);
}

/* Weights that are not finite leave nothing behind: not for another plan, and not for other weights
 * in the same place. */
TEST(weights_that_are_not_finite_are_not_kept)
{
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    const cfx_allocator *allocator = cfxi_base_allocator(NULL);
    cfxi_packs packs = {0};
    cfxi_problem p = draw_conv(rt, DENSE_3X3);
    float *w = numbers(p.conv.groups * p.conv.wg);
    const float before = w[5];
    const cfxi_constants c = {.w = w, .packs = &packs, .rt = rt};
    p.has_bias = false;
    for (int i = 0; i < 4; i++) {
        w[5] = i < 2 ? INFINITY : before;
        cfxi_kernel *k = cfxi_backend_winograd.prepare(&p, &c, allocator, NULL);
        REQUIRE(k != NULL);
        CHECK(k->backend == (i < 2 ? &cfxi_backend_convolution : &cfxi_backend_winograd));
        CHECK_INT_EQ(i < 2 ? 1 : 2, packs.items.size);
        k->backend->release(k);
    }
    cfxi_backend_packs_free(&packs, allocator);
    free(w);
    cfx_runtime_free(rt);
}

TEST(specials) { check_specials(&cfxi_backend_product); }

/* The library that CFX_ONEDNN names; NULL, and a line that says so, if there is none. */
static cfxi_onednn *open_onednn(void)
{
    cfx_error err = {0};
    const char *path = getenv("CFX_ONEDNN");
    cfxi_onednn *d =
        path ? cfxi_backend_onednn_open(path, cfxi_base_allocator(NULL), &err) : NULL;
    if (!path)
        printf("onednn: 1 skipped, because CFX_ONEDNN does not name libdnnl.so\n");
    else if (!CHECK(d != NULL))
        printf("    %s\n", err.message);
    return d;
}

static void check_onednn(unsigned threads)
{
    const cfx_runtime_options options = {.threads = threads};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    for (int i = 0; i < 120; i++)
        CHECK(check_product(rt, &cfxi_backend_onednn, 1 + draw(i % 4 ? 20 : 90),
                            1 + draw(i % 3 ? 40 : 300), 1 + draw(70)));
    for (int i = 0; i < 150; i++)
        check_conv(rt, &cfxi_backend_onednn, ANY_FORM, false);
    for (int i = 0; i < 100; i++)
        check_conv(rt, &cfxi_backend_onednn, DEPTHWISE, false);
    cfx_runtime_free(rt);
}

TEST(onednn)
{
    onednn = open_onednn();
    if (!onednn)
        return;
    check_specials(&cfxi_backend_onednn);
    check_onednn(1);
    check_onednn(2);
    cfxi_backend_onednn_release(onednn);
    onednn = NULL;
}

TEST(plain) { check_isa(CFX_ISA_PLAIN); }
TEST(avx2) { check_isa(CFX_ISA_AVX2); }
TEST(avx512) { check_isa(CFX_ISA_AVX512); }
TEST(neon) { check_isa(CFX_ISA_NEON); }
