/* backends.c - products and convolutions of ResNet-50, EfficientNet-B0 and BERT-base, by each back
 * end.
 *
 *     backends [--threads N] [--batch N] [--rounds N] [--rows N] [--bf16 dots|none] [LIBDNNL]
 *
 * Back ends take turns of 20 ms; microseconds of the fastest run in all rounds (10). Padding counts
 * as work, which oneDNN leaves out at the edges. Without the path of libdnnl.so only the built-in
 * kernels are measured. Results must agree. --rows has so many in the products of BERT (128): with
 * 1 they are those of a decoder, and a line at the end says how fast weights are read. --bf16 keeps
 * the kernels of bfloat16 from AMX (dots), or from all that is made for it (none). The column int8
 * has 8-bit integers, whose sums are of integers and whose results are bytes, but for functions.
 */
#include "onednn_bytes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct shape {
    const char *name;
    int times;                           /* in the model */
    int64_t k, n;                        /* channels */
    int64_t in, window, stride, before;  /* of a convolution; window 1: a product of in * in rows */
    unsigned has;                        /* of what follows */
} shape;
enum { ADDS = 1, CLAMPS = 2, GELU = 4, SILU = 8, DEPTHWISE = 16 };

/* A window of 1 is a product; `in` is then the side of the image, or 0 for BERT's 128 rows. */
static const shape shapes[] = {
    {"conv1 7x7/2", 1, 3, 64, 224, 7, 2, 3, CLAMPS},
    {"stage 1: 1x1, first", 1, 64, 64, 56, 1, 1, 0, CLAMPS},
    {"stage 1: 1x1 down", 2, 256, 64, 56, 1, 1, 0, CLAMPS},
    {"stage 1: 3x3", 3, 64, 64, 56, 3, 1, 1, CLAMPS},
    {"stage 1: 1x1 up, add", 3, 64, 256, 56, 1, 1, 0, ADDS | CLAMPS},
    {"stage 2: 1x1 down, first", 1, 256, 128, 56, 1, 1, 0, CLAMPS},
    {"stage 2: 3x3/2", 1, 128, 128, 56, 3, 2, 1, CLAMPS},
    {"stage 2: 1x1/2 shortcut", 1, 256, 512, 56, 1, 2, 0, 0},
    {"stage 2: 1x1 down", 3, 512, 128, 28, 1, 1, 0, CLAMPS},
    {"stage 2: 3x3", 3, 128, 128, 28, 3, 1, 1, CLAMPS},
    {"stage 2: 1x1 up, add", 4, 128, 512, 28, 1, 1, 0, ADDS | CLAMPS},
    {"stage 3: 1x1 down, first", 1, 512, 256, 28, 1, 1, 0, CLAMPS},
    {"stage 3: 3x3/2", 1, 256, 256, 28, 3, 2, 1, CLAMPS},
    {"stage 3: 1x1/2 shortcut", 1, 512, 1024, 28, 1, 2, 0, 0},
    {"stage 3: 1x1 down", 5, 1024, 256, 14, 1, 1, 0, CLAMPS},
    {"stage 3: 3x3", 5, 256, 256, 14, 3, 1, 1, CLAMPS},
    {"stage 3: 1x1 up, add", 6, 256, 1024, 14, 1, 1, 0, ADDS | CLAMPS},
    {"stage 4: 1x1 down, first", 1, 1024, 512, 14, 1, 1, 0, CLAMPS},
    {"stage 4: 3x3/2", 1, 512, 512, 14, 3, 2, 1, CLAMPS},
    {"stage 4: 1x1/2 shortcut", 1, 1024, 2048, 14, 1, 2, 0, 0},
    {"stage 4: 1x1 down", 2, 2048, 512, 7, 1, 1, 0, CLAMPS},
    {"stage 4: 3x3", 2, 512, 512, 7, 3, 1, 1, CLAMPS},
    {"stage 4: 1x1 up, add", 3, 512, 2048, 7, 1, 1, 0, ADDS | CLAMPS},
    {"expand 16 to 96", 1, 16, 96, 112, 1, 1, 0, SILU},
    {"expand 24 to 144", 1, 24, 144, 56, 1, 1, 0, SILU},
    {"expand 40 to 240", 1, 40, 240, 28, 1, 1, 0, SILU},
    {"expand 80 to 480", 1, 80, 480, 14, 1, 1, 0, SILU},
    {"expand 192 to 1152", 1, 192, 1152, 7, 1, 1, 0, SILU},
    {"reduce 96 to 24", 1, 96, 24, 56, 1, 1, 0, 0},
    {"reduce 1152 to 192", 1, 1152, 192, 7, 1, 1, 0, 0},
    {"stem 3x3/2", 1, 3, 32, 224, 3, 2, 1, CLAMPS},
    {"depthwise 3x3, 96", 1, 96, 96, 56, 3, 1, 1, CLAMPS | DEPTHWISE},
    {"depthwise 3x3/2, 72", 1, 72, 72, 56, 3, 2, 1, CLAMPS | DEPTHWISE},
    {"depthwise 5x5, 240", 1, 240, 240, 14, 5, 1, 2, CLAMPS | DEPTHWISE},
    {"depthwise 5x5, 576", 1, 576, 576, 7, 5, 1, 2, CLAMPS | DEPTHWISE},
    {"one row, 784 to 512", 1, 784, 512, 1, 1, 1, 0, CLAMPS},
    {"one row, 512 to 512", 1, 512, 512, 1, 1, 1, 0, CLAMPS},
    {"BERT: q, k, v", 36, 768, 768, 0, 1, 1, 0, 0},
    {"BERT: dense, add", 12, 768, 768, 0, 1, 1, 0, ADDS},
    {"BERT: up, gelu", 12, 768, 3072, 0, 1, 1, 0, GELU},
    {"BERT: down, add", 12, 3072, 768, 0, 1, 1, 0, ADDS},
    {"GPT-2: words", 0, 768, 50257, 0, 1, 1, 0, 0},
};

/* Who takes part. */
enum { FLOAT32, BF16, INT8, ONEDNN, ONEDNN_BF16, ONEDNN_INT8, ALL };
static const char *const names[ALL] = {"built-in", "bf16", "int8", "oneDNN", "oneDNN bf16",
                                       "oneDNN int8"};

typedef struct settings {
    unsigned threads;
    int64_t batch;
    int64_t rows;
    int rounds;
    cfxi_onednn *onednn;
    onednn_bytes_functions bytes;
    cfx_runtime *rt;
} settings;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static float *numbers(int64_t n, float scale)
{
    float *x = aligned_alloc(64, ((size_t)n * sizeof *x + 63) / 64 * 64);
    uint32_t state = 1;
    if (!x)
        exit(1);
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = ((float)(state >> 8) / (float)(1 << 24) - 0.5f) * scale;
    }
    return x;
}

/* ---- the problem --------------------------------------------------------------------------- */

static void describe_conv(cfxi_problem *p, const shape *s, int64_t batch)
{
    const int64_t out = (s->in + 2 * s->before - s->window) / s->stride + 1;
    p->kind = CFXI_CONVOLUTION;
    p->conv = (cfxi_conv){
        .batch = batch, .groups = 1, .in_channels = s->k, .out_channels = s->n,
        .in = {1, s->in, s->in}, .out = {1, out, out}, .kernel = {1, s->window, s->window},
        .stride = {1, s->stride, s->stride}, .before = {0, s->before, s->before},
        .dilation = {1, 1, 1}, .xs = {s->in * s->in * s->k, 1, 0, s->in * s->k, s->k},
        .ys = {out * out * s->n, 1, 0, out * s->n, s->n},
        .ws = {s->window * s->window * s->k, s->window * s->window, 0, s->window, 1}};
    if (s->has & DEPTHWISE) {
        p->conv.groups = s->n;
        p->conv.in_channels = p->conv.out_channels = 1;
        p->conv.wg = p->conv.ws[0] = s->window * s->window;
    }
    p->m = batch * out * out;
}

static cfxi_problem describe(const shape *s, const settings *o)
{
    cfxi_problem p = {.kind = CFXI_PRODUCT, .isa = o->rt->isa, .threads = o->threads,
                      .onednn = o->onednn, .n = s->n, .k = s->k, .x_row = s->k, .out_row = s->n,
                      .w_k = 1, .w_n = s->k, .has_bias = true};
    p.m = o->batch * (s->in ? s->in * s->in : o->rows);
    if (s->window > 1 || s->stride > 1)
        describe_conv(&p, s, o->batch);
    if (s->has & ADDS)
        p.posts[p.num_posts++] = (cfxi_post){.kind = CFXI_POST_ADD, .rows = {s->n}};
    if (s->has & CLAMPS)
        p.posts[p.num_posts++] =
            (cfxi_post){.kind = CFXI_POST_CLAMP, .low = 0, .high = INFINITY};
    if (s->has & SILU)
        p.posts[p.num_posts++] = (cfxi_post){.kind = CFXI_POST_FN, .fn = CFXI_FN_silu};
    if (s->has & GELU)
        p.posts[p.num_posts++] = (cfxi_post){.kind = CFXI_POST_FN, .fn = CFXI_FN_gelu};
    return p;
}

static double flops(const shape *s, const cfxi_problem *p)
{
    const int64_t channels = s->has & DEPTHWISE ? 1 : s->k;
    return 2.0 * (double)p->m * (double)s->n * (double)(channels * s->window * s->window);
}

/* ---- measuring ----------------------------------------------------------------------------- */

typedef struct contender {
    bool there;
    cfxi_kernel *kernel;  /* or NULL: */
    onednn_bytes bytes;
    float *out;
    double best;  /* microseconds */
    char text[80];
} contender;

/* For 20 ms: a thread that was just woken may share the caller's processor for some of them. */
static void run_often(contender *c, const settings *o, const float *x, const float *other)
{
    const cfxi_run r = {.rt = o->rt, .x = x, .out = c->out, .operands = {other}};
    const double end = now() + 0.02;
    while (now() < end) {
        const double start = now();
        if (!c->kernel)
            onednn_bytes_run(&c->bytes, (int)o->threads);
        else if (c->kernel->backend->run(c->kernel, &r, NULL) != CFX_OK)
            exit(1);
        const double took = (now() - start) * 1e6;
        c->best = c->best == 0 || took < c->best ? took : c->best;
    }
}

static void pause_briefly(void)
{
    const struct timespec t = {.tv_nsec = 20000000};  /* OpenMP's threads fall asleep */
    nanosleep(&t, NULL);
}

static void check_same(const shape *s, const contender *a, const contender *b, double bound,
                       int64_t n)
{
    double most = 0;
    double far = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(a->out[i]));
        far = fmax(far, fabs(a->out[i] - b->out[i]));
    }
    if (!(far <= bound * most)) {
        fprintf(stderr, "%s: the results differ by %g\n", s->name, far);
        exit(1);
    }
}

static void prepare(contender *c, const cfxi_backend *b, const cfxi_problem *p,
                    const cfxi_constants *constants, int64_t n)
{
    cfx_error err = {0};
    double cost;
    if (!b || !b->query(p, &cost))
        return;
    c->kernel = b->prepare(p, constants, cfxi_base_allocator(NULL), &err);
    if (!c->kernel)
        exit(fprintf(stderr, "%s\n", err.message));
    c->there = true;
    c->out = numbers(n, 0);
    cfx_buffer text;
    cfxi_out out;
    cfx_buffer_init(&text, NULL);
    cfxi_base_out_begin(&out, cfx_buffer_sink(&text));
    b->print(c->kernel, &out);
    cfxi_base_out_end(&out, NULL);
    snprintf(c->text, sizeof c->text, "%.*s", (int)text.size, text.data);
    cfx_buffer_free(&text);
}

static int64_t columns_of(const cfxi_problem *p)
{
    return p->kind == CFXI_CONVOLUTION ? p->conv.groups * p->conv.out_channels : p->n;
}

/* The same problem with bytes: a sum is one of integers, a clamp is the range of the result. */
static cfxi_problem of_integers(const cfxi_problem *p, const cfx_runtime *rt)
{
    cfxi_problem q = *p;
    q.num_posts = 0;
    q.int8 = cfxi_rt_int8(rt);
    q.integers = (cfxi_integers){.used = true, .w_signed = true, .x_zero = 128,
                                 .end = {.high = 255, .high2 = 255, .own_factor = 0.5f,
                                         .other_factor = 0.5f}};
    for (size_t i = 0; i < p->num_posts; i++)
        if (p->posts[i].kind == CFXI_POST_ADD) {
            q.integers.end.adds = true;
            memcpy(q.integers.other_rows, p->posts[i].rows, sizeof q.integers.other_rows);
        } else if (p->posts[i].kind == CFXI_POST_FN) {
            q.integers.end.to_float = true;
            q.posts[q.num_posts++] = p->posts[i];
        }
    return q;
}

/* What makes sums of random bytes, which are some 5000 sqrt(k) large, numbers around 1, as layers
 * have them: functions of far numbers have results below the normal range, which are slow. */
static float factor_of(const cfxi_problem *p)
{
    const bool conv = p->kind == CFXI_CONVOLUTION;
    const int64_t k = conv ? p->conv.in_channels * p->conv.kernel[1] * p->conv.kernel[2] : p->k;
    return (float)(2e-4 / sqrt((double)k));
}

static void prepare_bytes(contender *c, const settings *o, const cfxi_problem *p)
{
    bool adds = false;
    bool to_float = false;
    int then = 0;
    for (size_t i = 0; i < p->num_posts; i++) {
        const cfxi_post *post = &p->posts[i];
        adds = adds || post->kind == CFXI_POST_ADD;
        to_float = to_float || post->kind == CFXI_POST_FN;
        if (post->kind == CFXI_POST_CLAMP)
            then = RELU;
        else if (post->kind == CFXI_POST_FN)
            then = post->fn == CFXI_FN_silu ? CFXI_DNN_SWISH : CFXI_DNN_GELU_ERF;
    }
    c->bytes = onednn_bytes_prepare(p, &o->bytes, adds, then, to_float);
    c->there = true;
}

/* Each back end with the problem as it takes it. */
static void prepare_all(contender all[ALL], const settings *o, const cfxi_problem *p,
                        const cfxi_constants *constants, int64_t n)
{
    cfxi_problem low = *p;
    low.precision = CFX_PRECISION_BF16;
    low.bf16 = cfxi_rt_bf16(o->rt);
    const cfxi_backend *built_in = cfxi_backend_is_depthwise(p) ? &cfxi_backend_depthwise
                                   : p->kind == CFXI_CONVOLUTION ? &cfxi_backend_convolution
                                                                 : &cfxi_backend_product;
    prepare(&all[FLOAT32], built_in, p, constants, n);
    prepare(&all[BF16], &cfxi_backend_bf16, &low, constants, n);
    const cfxi_problem integers = of_integers(p, o->rt);
    float *factors = numbers(columns_of(p), 0);
    for (int64_t i = 0; i < columns_of(p); i++)
        factors[i] = factor_of(p);
    const cfxi_constants bytes = {.w = constants->w, .bias = constants->bias, .scale = factors};
    prepare(&all[INT8], cfxi_backend_is_depthwise(p) ? &cfxi_backend_depthwise_bytes
                                                     : &cfxi_backend_bytes,
            &integers, &bytes, n);
    free(factors);
    prepare(&all[ONEDNN], o->onednn ? &cfxi_backend_onednn : NULL, p, constants, n);
    prepare(&all[ONEDNN_BF16], o->onednn ? &cfxi_backend_onednn : NULL, &low, constants, n);
    if (o->onednn)
        prepare_bytes(&all[ONEDNN_INT8], o, p);
}

static void measure(const shape *s, const settings *o, double total[ALL])
{
    static contender all[ALL];
    const cfxi_problem p = describe(s, o);
    const bool conv = p.kind == CFXI_CONVOLUTION;
    const int64_t outputs = p.m * s->n;
    float *x = numbers(conv ? o->batch * p.conv.xs[0] : p.m * s->k, 2);
    float *w = numbers(s->k * s->n * s->window * s->window, 0.2f);
    float *bias = numbers(s->n, 1);
    float *other = numbers(outputs, 2);
    const cfxi_constants constants = {.w = w, .bias = bias};
    memset(all, 0, sizeof all);
    prepare_all(all, o, &p, &constants, outputs);
    for (int round = 0; round < o->rounds; round++)
        for (int i = 0; i < ALL; i++)
            if (all[i].there) {
                run_often(&all[i], o, x, other);
                pause_briefly();
            }
    printf("| %s | %d |", s->name, s->times);
    for (int i = 0; i < ALL; i++) {
        if (!all[i].there) {
            printf(" - | - |");
            continue;
        }
        total[i] += all[i].best * s->times;
        printf(" %.0f | %.0f |", all[i].best, flops(s, &p) / all[i].best * 1e-3);
    }
    printf(" %.2fx | %.2fx |", all[FLOAT32].best / all[BF16].best,
           all[FLOAT32].best / all[INT8].best);
    if (all[ONEDNN].kernel)
        printf(" %.2fx |", all[ONEDNN].best / all[FLOAT32].best);
    else
        printf(" - |");
    if (all[ONEDNN_INT8].there)
        printf(" %.2fx |", all[ONEDNN_INT8].best / all[INT8].best);
    else
        printf(" - |");
    printf(" %s |\n", all[BF16].text);
    fflush(stdout);
    for (int i = 1; i < ALL; i++)
        if (all[i].kernel && i != INT8)
            check_same(s, &all[0], &all[i], i == ONEDNN ? 1e-4 : 2e-2, outputs);
    for (int i = 0; i < ALL; i++)
        if (all[i].kernel) {
            all[i].kernel->backend->release(all[i].kernel);
            free(all[i].out);
        } else if (all[i].there) {
            onednn_bytes_free(&all[i].bytes);
        }
    if (p.m < 16)
        printf("  weights are read at %.1f GB/s, in bf16 at %.1f GB/s\n",
               (double)(s->k * s->n) * 4e-3 / all[FLOAT32].best,
               (double)(s->k * s->n) * 2e-3 / all[BF16].best);
    free(x), free(w), free(bias), free(other);
}

static void print_totals(const char *model, const double total[ALL])
{
    printf("%s:", model);
    for (int i = 0; i < ALL; i++)
        if (total[i] > 0)
            printf(" %s %.1f ms", names[i], total[i] * 1e-3);
    printf("\n");
}

int main(int argc, char **argv)
{
    settings o = {.threads = 2, .batch = 1, .rows = 128, .rounds = 10};
    cfxi_bf16 most = CFXI_BF16_TILES;
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--threads") == 0 && more)
            o.threads = (unsigned)atoi(argv[++i]);
        else if (strcmp(argv[i], "--batch") == 0 && more)
            o.batch = atoi(argv[++i]);
        else if (strcmp(argv[i], "--rounds") == 0 && more)
            o.rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--rows") == 0 && more)
            o.rows = atoi(argv[++i]);
        else if (strcmp(argv[i], "--bf16") == 0 && more)
            most = strcmp(argv[++i], "dots") == 0 ? CFXI_BF16_DOTS : CFXI_BF16_NONE;
        else {
            cfx_error err = {0};
            o.onednn = cfxi_backend_onednn_open(argv[i], cfxi_base_allocator(NULL), &err);
            if (!o.onednn)
                return fprintf(stderr, "%s\n", err.message), 1;
            o.bytes = onednn_bytes_find(argv[i]);
        }
    }
    if (o.threads < 1 || o.batch < 1 || o.rounds < 1 || o.rows < 1)
        return fprintf(stderr, "backends: threads, batch, rounds, rows: 1 or more\n"), 2;
    const cfx_runtime_options options = {.threads = o.threads};
    o.rt = cfx_runtime_new(&options, NULL);
    o.rt->most_bf16 = most;
    double images[ALL] = {0}, bert[ALL] = {0};
    printf("%u threads, batch %lld; microseconds and GFLOP/s\n\n| problem | times |", o.threads,
           (long long)o.batch);
    for (int i = 0; i < ALL; i++)
        printf(" %s | GFLOP/s |", names[i]);
    printf(" bf16 | int8 | to oneDNN | int8 to oneDNN | kernel of bf16 |\n|---|---|---|---|---|---|"
           "---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!shapes[i].in || o.rows == 128)
            measure(&shapes[i], &o, shapes[i].in ? images : bert);
    printf("\n");
    print_totals("Images", images);
    print_totals("BERT-base", bert);
    cfx_runtime_free(o.rt);
    cfxi_backend_onednn_release(o.onednn);
    return 0;
}
