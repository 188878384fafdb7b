/* backend_bf16.c - kernels of bfloat16 against plain loops in double over rounded operands, and
 * against float32: random problems with odd sizes, strides, padding, groups and posts, for each
 * instruction set of the machine, and with what it has for bfloat16. */
#include "backend/backend_impl.h"

#include "test_alloc.h"

#include <float.h>
#include <math.h>

static uint64_t state = 11;

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

static double rounded(float x)
{
    return (double)cfxi_tensor_bfloat_to_float(cfxi_tensor_float_to_bfloat(x));
}

/* What a result should be. */
typedef struct wanted {
    double rounded;  /* of rounded operands */
    double exact;
    double size;     /* the sum of all that is added, without signs */
    int64_t terms;
} wanted;

static void add_product(wanted *w, float a, float b)
{
    w->rounded += rounded(a) * rounded(b);
    w->exact += (double)a * (double)b;
    w->size += fabs((double)a * (double)b);
    w->terms++;
}

/* Sums differ by their order from those of rounded operands, and from exact ones by the error of
 * rounding both: a part in 2^8 each. */
static bool is_good(const wanted *w, double rest, float got)
{
    const double order = (double)(w->terms + 4) * FLT_EPSILON;
    const double all = w->size;
    const bool same = fabs(w->rounded + rest - (double)got) <= order * all;
    const bool near = fabs(w->exact + rest - (double)got) <= (order + 0x1.02p-7) * all;
    if (!same || !near)
        printf("    %.9g; rounded %.9g, exact %.9g, %lld terms of %g\n", (double)got,
               w->rounded + rest, w->exact + rest, (long long)w->terms, w->size);
    return same && near;
}

/* ---- one kernel ---------------------------------------------------------------------------- */

static const cfxi_backend *backend = &cfxi_backend_bf16;  /* that is tested */
static cfxi_onednn *onednn;

typedef struct operands {
    float *x, *w, *bias, *scale, *add, *out;
} operands;

static bool run_kernel(cfx_runtime *rt, const cfxi_problem *p, const operands *o)
{
    cfx_error err = {0};
    const cfxi_constants c = {.w = o->w, .bias = o->bias, .scale = o->scale};
    double cost = -1;
    const bool can = backend->query(p, &cost);
    if (!can && onednn && p->kind == CFXI_CONVOLUTION)  /* pixels that lie apart, and the like */
        return false;
    if (!CHECK(can && cost >= 0))
        return false;
    cfxi_kernel *k = backend->prepare(p, &c, cfxi_base_allocator(NULL), &err);
    if (!CHECK(k != NULL))
        return false;
    const cfxi_run r = {.rt = rt, .x = o->x, .out = o->out, .operands = {o->add}};
    const bool ran = CHECK(k->backend->run(k, &r, &err) == CFX_OK);
    k->backend->release(k);
    return ran;
}

static void free_operands(const operands *o)
{
    free(o->x), free(o->w), free(o->bias), free(o->scale), free(o->add), free(o->out);
}

/* A sum, a clamp that keeps negative numbers to -1, and a function, or none of them. */
static void add_posts(cfxi_problem *p, const int64_t rows[3])
{
    if (draw(2))
        p->posts[p->num_posts++] = (cfxi_post){.kind = CFXI_POST_ADD, .rows = {rows[0], rows[1],
                                                                               rows[2]}};
    if (draw(3) == 0)
        p->posts[p->num_posts++] = (cfxi_post){.kind = CFXI_POST_CLAMP, .low = -1, .high = 30};
    else if (draw(3) == 0)
        p->posts[p->num_posts++] = (cfxi_post){.kind = CFXI_POST_FN, .fn = CFXI_FN_neg};
}

/* Whether an element is what it should be, after the posts. */
static bool check_element(const cfxi_problem *p, wanted w, double bias, const float *add, float got)
{
    double rest = bias;
    w.size += fabs(bias);
    for (size_t i = 0; i < p->num_posts; i++) {
        const cfxi_post *post = &p->posts[i];
        if (post->kind == CFXI_POST_ADD)
            rest += (double)*add, w.size += fabs((double)*add);
        else if (post->kind == CFXI_POST_FN)
            got = -got;
        else if (got == post->low)
            return w.rounded + rest <= (double)post->low + 1e-3;
        else if (got == post->high)
            return w.rounded + rest >= (double)post->high - 1e-3;
    }
    return is_good(&w, rest, got);
}

static cfxi_problem problem_of(const cfx_runtime *rt, cfxi_problem_kind kind)
{
    return (cfxi_problem){.kind = kind, .isa = rt->isa, .precision = CFX_PRECISION_BF16,
                          .bf16 = cfxi_rt_bf16(rt), .threads = cfx_runtime_threads(rt),
                          .onednn = onednn, .has_bias = draw(2)};
}

static void check_product(cfx_runtime *rt, int64_t m, int64_t n, int64_t k)
{
    const int64_t gap = draw(3);
    const bool turned = draw(2);
    cfxi_problem p = problem_of(rt, CFXI_PRODUCT);
    p.m = m, p.n = n, p.k = k;
    p.x_row = k + gap, p.out_row = n + gap;
    p.w_k = turned ? 1 : n, p.w_n = turned ? k : 1;
    add_posts(&p, (int64_t[3]){p.out_row});
    const operands o = {numbers(m * p.x_row - gap), numbers(k * n), p.has_bias ? numbers(n) : NULL,
                        draw(2) ? numbers(n) : NULL, numbers(m * p.out_row - gap),
                        numbers(m * p.out_row - gap)};
    bool good = run_kernel(rt, &p, &o);
    for (int64_t i = 0; good && i < m; i++)
        for (int64_t j = 0; good && j < n; j++) {
            wanted w = {0};
            for (int64_t q = 0; q < k; q++)
                add_product(&w, o.x[i * p.x_row + q],
                            o.w[q * p.w_k + j * p.w_n] * (o.scale ? o.scale[j] : 1));
            good = check_element(&p, w, o.bias ? (double)o.bias[j] : 0, o.add + i * p.out_row + j,
                                 o.out[i * p.out_row + j]);
            if (!good)
                printf("    product %lld x %lld x %lld at %lld, %lld\n", (long long)m, (long long)n,
                       (long long)k, (long long)i, (long long)j);
        }
    CHECK(good);
    free_operands(&o);
}

static wanted conv_at(const cfxi_conv *c, const operands *o, int64_t image, int64_t channel,
                      int64_t y, int64_t z)
{
    wanted sum = {0};
    const int64_t g = channel / c->out_channels;
    const float scale = o->scale ? o->scale[channel] : 1;
    const float *w = o->w + g * c->wg + channel % c->out_channels * c->ws[0];
    for (int64_t i = 0; i < c->in_channels; i++)
        for (int64_t r = 0; r < c->kernel[1]; r++)
            for (int64_t s = 0; s < c->kernel[2]; s++) {
                const int64_t line = y * c->stride[1] - c->before[1] + r * c->dilation[1];
                const int64_t pixel = z * c->stride[2] - c->before[2] + s * c->dilation[2];
                if (line >= 0 && line < c->in[1] && pixel >= 0 && pixel < c->in[2])
                    add_product(&sum,
                                o->x[image * c->xs[0] + line * c->xs[3] + pixel * c->xs[4] +
                                     g * c->in_channels + i],
                                w[i * c->ws[1] + r * c->ws[3] + s * c->ws[4]] * scale);
            }
    return sum;
}

/* A random convolution; channels last, with gaps between pixels of the result now and then. */
static cfxi_problem draw_conv(const cfx_runtime *rt, int64_t channels, int64_t longest)
{
    cfxi_problem p = problem_of(rt, CFXI_CONVOLUTION);
    cfxi_conv *c = &p.conv;
    c->batch = 1 + draw(2);
    c->groups = 1 + (draw(3) == 0 ? draw(3) : 0);
    c->in_channels = channels;
    c->out_channels = 2 + draw(60);
    for (int d = 0; d < CFXI_SPATIAL; d++) {
        c->kernel[d] = d ? 1 + draw(4) : 1;
        c->stride[d] = d ? 1 + draw(2) : 1;
        c->dilation[d] = d ? 1 + (draw(4) == 0) : 1;
        c->before[d] = d ? draw(3) : 0;
        const int64_t window = (c->kernel[d] - 1) * c->dilation[d] + 1;
        c->out[d] = d == 2 ? 1 + draw(longest) : d ? 1 + draw(12) : 1;
        c->in[d] = d ? (c->out[d] - 1) * c->stride[d] + window - c->before[d] - draw(2) : 1;
        c->in[d] = c->in[d] < 1 ? 1 : c->in[d];
    }
    const int64_t in = c->in_channels * c->groups;
    const int64_t out = c->out_channels * c->groups + draw(2) * 3;
    const int64_t window = c->kernel[1] * c->kernel[2];
    const int64_t xs[] = {c->in[1] * c->in[2] * in, 1, 0, c->in[2] * in, in};
    const int64_t ys[] = {c->out[1] * c->out[2] * out, 1, 0, c->out[2] * out, out};
    const int64_t ws[] = {c->in_channels * window, window, 0, c->kernel[2], 1};
    memcpy(c->xs, xs, sizeof xs);
    memcpy(c->ys, ys, sizeof ys);
    memcpy(c->ws, ws, sizeof ws);
    c->wg = c->out_channels * c->in_channels * window;
    return p;
}

static void check_conv(cfx_runtime *rt, int64_t in_channels, int64_t longest)
{
    cfxi_problem p = draw_conv(rt, in_channels, longest);
    const cfxi_conv *c = &p.conv;
    const int64_t channels = c->groups * c->out_channels;
    add_posts(&p, (int64_t[3]){c->ys[0], c->ys[3], c->ys[4]});
    const operands o = {numbers(c->batch * c->xs[0]), numbers(c->groups * c->wg),
                        p.has_bias ? numbers(channels) : NULL, draw(2) ? numbers(channels) : NULL,
                        numbers(c->batch * c->ys[0]), numbers(c->batch * c->ys[0])};
    const bool ran = run_kernel(rt, &p, &o);
    bool good = true;
    for (int64_t i = 0; ran && good && i < c->batch * channels * c->out[1] * c->out[2]; i++) {
        const int64_t z = i % c->out[2];
        const int64_t y = i / c->out[2] % c->out[1];
        const int64_t channel = i / c->out[2] / c->out[1] % channels;
        const int64_t image = i / c->out[2] / c->out[1] / channels;
        const int64_t at = image * c->ys[0] + y * c->ys[3] + z * c->ys[4] + channel;
        good = check_element(&p, conv_at(c, &o, image, channel, y, z),
                             o.bias ? (double)o.bias[channel] : 0, o.add + at, o.out[at]);
    }
    CHECK(good);
    free_operands(&o);
}

/* ---- everything on a machine --------------------------------------------------------------- */

/* Infinities and NaN stay what they are, and only where they belong: k is odd, and the other
 * elements are zeros, or padding. */
static void check_specials(cfx_runtime *rt)
{
    enum { ROWS = 40, COLUMNS = 40, LENGTH = 33 };
    cfxi_problem p = problem_of(rt, CFXI_PRODUCT);
    p.m = ROWS, p.n = COLUMNS, p.k = LENGTH;
    p.x_row = LENGTH, p.out_row = COLUMNS, p.w_k = COLUMNS, p.w_n = 1, p.has_bias = false;
    p.num_posts = 1;
    p.posts[0] = (cfxi_post){.kind = CFXI_POST_CLAMP, .low = 0, .high = INFINITY};
    const operands o = {numbers(ROWS * LENGTH), numbers(LENGTH * COLUMNS), NULL, NULL, NULL,
                        numbers(ROWS * COLUMNS)};
    const float last[4] = {NAN, INFINITY, -INFINITY, 0x1.fffffep127f};
    for (int i = 0; i < ROWS * LENGTH; i++)
        o.x[i] = i % LENGTH == LENGTH - 1 && i / LENGTH < 4 ? last[i / LENGTH] : 0;
    for (int i = 0; i < LENGTH * COLUMNS; i++)
        o.w[i] = 1;
    if (run_kernel(rt, &p, &o))
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            const int row = i / COLUMNS;
            CHECK(row == 0                ? isnan(o.out[i])
                  : row == 1 || row == 3  ? isinf(o.out[i]) && o.out[i] > 0
                                          : o.out[i] == 0);
        }
    free_operands(&o);
}

/* In an image, too: every window but those that see the pixel has a number. */
static void check_special_pixel(cfx_runtime *rt)
{
    enum { SIDE = 9, CHANNELS = 3, COLUMNS = 18 };
    cfxi_problem p = problem_of(rt, CFXI_CONVOLUTION);
    p.has_bias = false;
    p.conv = (cfxi_conv){.batch = 1, .groups = 1, .in_channels = CHANNELS, .out_channels = COLUMNS,
                         .in = {1, SIDE, SIDE}, .out = {1, SIDE, SIDE}, .kernel = {1, 3, 3},
                         .stride = {1, 1, 1}, .before = {0, 1, 1}, .dilation = {1, 1, 1},
                         .xs = {SIDE * SIDE * CHANNELS, 1, 0, SIDE * CHANNELS, CHANNELS},
                         .ys = {SIDE * SIDE * COLUMNS, 1, 0, SIDE * COLUMNS, COLUMNS},
                         .ws = {CHANNELS * 9, 9, 0, 3, 1}};
    const operands o = {numbers(SIDE * SIDE * CHANNELS), numbers(COLUMNS * CHANNELS * 9), NULL,
                        NULL, NULL, numbers(SIDE * SIDE * COLUMNS)};
    o.x[(4 * SIDE + 5) * CHANNELS] = NAN;
    if (run_kernel(rt, &p, &o))
        for (int i = 0; i < SIDE * SIDE * COLUMNS; i++) {
            const int y = i / COLUMNS / SIDE;
            const int x = i / COLUMNS % SIDE;
            CHECK(!isnan(o.out[i]) == (y < 3 || y > 5 || x < 4 || x > 6));
        }
    free_operands(&o);
}

static void check_all(cfx_runtime *rt)
{
    for (int i = 0; i < 120; i++)
        check_product(rt, 1 + draw(i % 4 ? 20 : 90), 1 + draw(i % 3 ? 40 : 300), 1 + draw(70));
    for (int i = 0; i < 30; i++)  /* whole steps of AMX, and rows that lie 4 KiB apart */
        check_product(rt, 1 + draw(70), 1 + draw(i % 3 ? 70 : 300), 32 * (1 + draw(5)));
    check_product(rt, 9, 20, 2048);
    check_product(rt, 1, 1000, 512);
    check_product(rt, 1200, 17, 5);
    for (int i = 0; i < 80; i++)
        check_conv(rt, 1 + draw(20), 12);
    for (int i = 0; i < 12; i++)  /* more than the rows of a register of AMX */
        check_conv(rt, 32 * (1 + draw(2)), 40);
    check_conv(rt, 3, 700);
    check_specials(rt);
    check_special_pixel(rt);
}

/* With an instruction set, and at most this for bfloat16. */
static void check_isa(const char *name, cfx_isa isa, cfxi_bf16 most)
{
    const cfx_runtime_options options = {.threads = 2, .limit_isa = true, .isa = isa};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    if (!CHECK(rt != NULL))
        return;
    rt->most_bf16 = most;
    if (rt->isa == isa && cfxi_rt_bf16(rt) == most)
        check_all(rt);
    else
        printf("%s: 1 skipped, because this machine does not have it, or does not allow it\n",
               name);
    cfx_runtime_free(rt);
}

TEST(plain) { check_isa("plain", CFX_ISA_PLAIN, CFXI_BF16_NONE); }
TEST(avx2) { check_isa("avx2", CFX_ISA_AVX2, CFXI_BF16_NONE); }
TEST(avx512) { check_isa("avx512", CFX_ISA_AVX512, CFXI_BF16_NONE); }
TEST(neon) { check_isa("neon", CFX_ISA_NEON, CFXI_BF16_NONE); }
TEST(avx512_bf16) { check_isa("avx512_bf16", CFX_ISA_AVX512, CFXI_BF16_DOTS); }
TEST(amx) { check_isa("amx", CFX_ISA_AVX512, CFXI_BF16_TILES); }

/* The library that CFX_ONEDNN names, if there is one. */
TEST(onednn)
{
    cfx_error err = {0};
    const char *path = getenv("CFX_ONEDNN");
    if (!path) {
        printf("onednn: 1 skipped, because CFX_ONEDNN does not name libdnnl.so\n");
        return;
    }
    onednn = cfxi_backend_onednn_open(path, cfxi_base_allocator(NULL), &err);
    REQUIRE(onednn != NULL);
    backend = &cfxi_backend_onednn;
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.threads = 2}, NULL);
    cfxi_problem p = problem_of(rt, CFXI_PRODUCT);
    p.m = p.x_row = 1, p.n = p.out_row = p.w_n = 64, p.k = p.w_k = 64;
    double cost;
    if (backend->query(&p, &cost))
        check_all(rt);
    else
        printf("onednn: 1 skipped, because it has no bfloat16 for this machine\n");
    cfx_runtime_free(rt);
    backend = &cfxi_backend_bf16;
    cfxi_backend_onednn_release(onednn);
    onednn = NULL;
}

/* ---- what it is not for, and packed weights ------------------------------------------------ */

TEST(refuses)
{
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    cfxi_problem p = problem_of(rt, CFXI_PRODUCT);
    double cost;
    p.m = p.n = p.k = p.x_row = p.out_row = p.w_k = p.w_n = 1;
    CHECK(cfxi_backend_bf16.query(&p, &cost));
    CHECK(!cfxi_backend_product.query(&p, &cost));
    p.precision = CFX_PRECISION_FLOAT32;
    CHECK(!cfxi_backend_bf16.query(&p, &cost));
    CHECK(cfxi_backend_product.query(&p, &cost));
    p = draw_conv(rt, 4, 5);
    CHECK(cfxi_backend_bf16.query(&p, &cost));
    CHECK(!cfxi_backend_convolution.query(&p, &cost));
    p.conv.transposed = true;
    CHECK(!cfxi_backend_bf16.query(&p, &cost));
    p = draw_conv(rt, 1, 5);
    p.conv.groups = 8;
    p.conv.out_channels = 1;
    CHECK(!cfxi_backend_bf16.query(&p, &cost));
    CHECK(cfxi_backend_depthwise.query(&p, &cost));
    cfx_runtime_free(rt);
}

/* Kernels for other numbers of rows have the weights in common: two bytes for each. */
TEST(shares_weights)
{
    enum { N = 64, K = 32 };
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    const cfx_allocator *allocator = cfxi_base_allocator(NULL);
    cfxi_packs packs = {0};
    float *w = numbers(N * K);
    const cfxi_constants c = {.w = w, .packs = &packs};
    cfxi_problem p = problem_of(rt, CFXI_PRODUCT);
    p.m = 3, p.n = N, p.k = K, p.x_row = K, p.out_row = N, p.w_k = 1, p.w_n = K;
    p.has_bias = false;
    cfxi_kernel *a = cfxi_backend_bf16.prepare(&p, &c, allocator, NULL);
    p.m = 40;
    cfxi_kernel *b = cfxi_backend_bf16.prepare(&p, &c, allocator, NULL);
    if (CHECK(a && b)) {
        CHECK(a->packed == b->packed);
        CHECK_INT_EQ(a->packed->bytes, N * K * 2);
        cfxi_backend_bf16.release(a);
        cfxi_backend_bf16.release(b);
    }
    cfxi_backend_packs_free(&packs, allocator);
    free(w);
    cfx_runtime_free(rt);
}

static cfx_status work(const cfx_allocator *a, void *arg)
{
    static const float w[6 * 5] = {1};
    static const float x[2 * 5] = {1};
    const cfx_runtime_options options = {.threads = 1, .allocator = a};
    const cfxi_constants c = {.w = w};
    float out[2 * 6];
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    if (!rt)
        return CFX_E_NOMEM;
    cfx_error err = {0};
    cfxi_kernel *k = cfxi_backend_bf16.prepare(arg, &c, a, &err);
    const cfxi_run r = {.rt = rt, .x = x, .out = out};
    const cfx_status status = k ? cfxi_backend_bf16.run(k, &r, &err) : err.status;
    if (k)
        cfxi_backend_bf16.release(k);
    cfx_runtime_free(rt);
    return status;
}

TEST(every_allocation_may_fail)
{
    cfxi_problem p = {.kind = CFXI_PRODUCT, .precision = CFX_PRECISION_BF16, .m = 2, .n = 6, .k = 5,
                      .x_row = 5, .out_row = 6, .w_k = 6, .w_n = 1};
    CHECK(test_oom_sweep(work, &p) >= 3);
}
