/* quantize.c - models in 8-bit integers against the same in float32: ResNet-18, ResNet-50,
 * MobileNetV3-small, BERT-base, and six wide linear layers, with random weights.
 *
 *     quantize [--threads N] [--rounds N] [--steps] [MODEL]
 *
 * Both forms of a model are written as IR text, compiled, and run in turns; milliseconds of the
 * median of all rounds (15), of which each is the fastest of some runs. --steps prints what each
 * step of the integers takes. The integers are those that freezing makes of the reference form:
 * images stay 8 bits from the first convolution to the last; BERT's norms and softmax are floats.
 */
#include <cfx/cfx.h>
#include <cfx/compile.h>
#include <cfx/embed/runtime.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A model that is written. Every value is in units of 1/SCALES, zero point ZERO. */
typedef struct writer {
    bool integers;
    cfx_buffer text;
    cfx_state *state;
    int made;         /* values and weights so far */
} writer;

#define UNITS "0.02, 128"
#define RESULT "0.02, 128, 0, 255, torch.uint8"
#define RELU_RESULT "0.02, 128, 128, 255, torch.uint8"
#define FLOAT_RESULT "1.0, 0, 0, 255, torch.float32"

static void emit(writer *w, const char *format, ...)
{
    char line[400];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n < 0 || cfx_buffer_append(&w->text, line, (size_t)n) != CFX_OK)
        exit(1);
}

/* Random numbers whose sums of `k` products stay about as large as what is multiplied. */
static int add_tensor(writer *w, cfx_dtype dtype, const int64_t *sizes, size_t ndim, double scale)
{
    static uint32_t state = 1;
    char name[16];
    cfx_tensor *t = cfx_tensor_new(dtype, sizes, ndim, NULL, NULL);
    if (!t)
        exit(1);
    for (int64_t i = 0; i < cfx_tensor_numel(t); i++) {
        state = state * 1664525u + 1013904223u;
        const double x = ((double)(state >> 8) / (1 << 24) - 0.5) * 2;
        if (dtype == CFX_DTYPE_FLOAT32)
            ((float *)cfx_tensor_data(t))[i] = (float)(x * scale);
        else
            ((int8_t *)cfx_tensor_data(t))[i] = (int8_t)(x * 127);
    }
    snprintf(name, sizeof name, "t%d", w->made);
    cfx_state_set(w->state, name, t, NULL);
    cfx_tensor_release(t);
    emit(w, "  %%v%d = get_attr[target=%s]()\n", w->made, name);
    return w->made++;
}

/* Weights of n columns and sums of k products, and what belongs to them. */
typedef struct weights {
    int w, scale, bias;
} weights;

static weights add_weights(writer *w, const int64_t *sizes, size_t ndim, int64_t n, int64_t k)
{
    weights all = {0};
    const double size = 1.7 / sqrt((double)k);
    all.w = add_tensor(w, w->integers ? CFX_DTYPE_INT8 : CFX_DTYPE_FLOAT32, sizes, ndim, size);
    all.bias = add_tensor(w, CFX_DTYPE_FLOAT32, &n, 1, 0.1);
    if (!w->integers)
        return all;
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, &n, 1, NULL, NULL);
    char name[16];
    for (int64_t i = 0; t && i < n; i++)
        ((float *)cfx_tensor_data(t))[i] = (float)(size / 127);
    snprintf(name, sizeof name, "t%d", w->made);
    cfx_state_set(w->state, name, t, NULL);
    cfx_tensor_release(t);
    emit(w, "  %%v%d = get_attr[target=%s]()\n", w->made, name);
    all.scale = w->made++;
    return all;
}

/* ---- what models are made of --------------------------------------------------------------- */

typedef enum after { NOTHING, RELU, HARDSWISH, HARDSIGMOID } after;

/* A function by its table of 256, or as it is. */
static int apply(writer *w, int x, after f)
{
    const int y = w->made;
    if (f == NOTHING)
        return x;
    if (!w->integers) {
        emit(w, "  %%v%d = call_function[target=cfx.ops.%s](%%v%d)\n", w->made++,
             f == RELU ? "relu" : f == HARDSWISH ? "hardswish" : "hardsigmoid", x);
        return y;
    }
    if (f == RELU)  /* in the range of what gave x */
        return x;
    const int64_t n = 256;
    char name[16];
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_UINT8, &n, 1, NULL, NULL);
    for (int i = 0; t && i < n; i++) {
        const double r = (i - 128) * 0.02;
        const double gate = fmin(fmax(r / 6 + 0.5, 0), 1);
        ((uint8_t *)cfx_tensor_data(t))[i] =
            (uint8_t)rint(fmin((f == HARDSWISH ? r * gate : gate) / 0.02 + 128, 255));
    }
    snprintf(name, sizeof name, "t%d", w->made);
    cfx_state_set(w->state, name, t, NULL);
    cfx_tensor_release(t);
    emit(w, "  %%v%d = get_attr[target=%s]()\n", w->made, name);
    const int table = w->made++;
    emit(w, "  %%v%d = call_function[target=cfx.ops.integer_table](%%v%d, %%v%d)\n", w->made, x,
         table);
    return w->made++;
}

typedef struct conv_form {
    int64_t in, out, window, stride, groups;
    after then;
} conv_form;

static int conv(writer *w, int x, conv_form c)
{
    const int64_t sizes[] = {c.out, c.in / c.groups, c.window, c.window};
    const weights all =
        add_weights(w, sizes, 4, c.out, c.in / c.groups * c.window * c.window);
    const int pad = (int)c.window / 2;
    char form[120];
    snprintf(form, sizeof form, "[%d, %d], [%d, %d], [1, 1], %d", (int)c.stride, (int)c.stride,
             pad, pad, (int)c.groups);
    if (w->integers)
        emit(w, "  %%v%d = call_function[target=cfx.ops.integer_conv](%%v%d, " UNITS
             ", %%v%d, %%v%d, None, %%v%d, %s, %s)\n", w->made, x, all.w, all.scale, all.bias,
             form, c.then == RELU ? RELU_RESULT : RESULT);
    else
        emit(w, "  %%v%d = call_function[target=cfx.ops.conv2d](%%v%d, %%v%d, %%v%d, %s)\n",
             w->made, x, all.w, all.bias, form);
    return apply(w, w->made++, c.then);
}

static int linear(writer *w, int x, int64_t in, int64_t out, bool to_float, after then)
{
    const int64_t sizes[] = {out, in};
    const weights all = add_weights(w, sizes, 2, out, in);
    if (w->integers)
        emit(w, "  %%v%d = call_function[target=cfx.ops.integer_linear](%%v%d, " UNITS
             ", %%v%d, %%v%d, None, %%v%d, %s)\n", w->made, x, all.w, all.scale, all.bias,
             to_float ? FLOAT_RESULT : then == RELU ? RELU_RESULT : RESULT);
    else
        emit(w, "  %%v%d = call_function[target=cfx.ops.linear](%%v%d, %%v%d, %%v%d)\n", w->made,
             x, all.w, all.bias);
    return apply(w, w->made++, then);
}

/* A sum or a product, of integers or of floats. */
static int combine(writer *w, const char *what, int x, int y, after then)
{
    if (w->integers)
        emit(w, "  %%v%d = call_function[target=cfx.ops.integer_%s](%%v%d, " UNITS ", %%v%d, " UNITS
             ", %s)\n", w->made, what, x, y, then == RELU ? RELU_RESULT : RESULT);
    else
        emit(w, "  %%v%d = call_function[target=cfx.ops.%s](%%v%d, %%v%d)\n", w->made, what, x, y);
    return apply(w, w->made++, then);
}

static int mean_of_image(writer *w, int x)
{
    if (w->integers)
        emit(w, "  %%v%d = call_function[target=cfx.ops.integer_mean](%%v%d, " UNITS
             ", [2, 3], True, " RESULT ")\n", w->made, x);
    else
        emit(w, "  %%v%d = call_function[target=cfx.ops.mean](%%v%d, [2, 3], True)\n", w->made, x);
    return w->made++;
}

static int quantize(writer *w, int x)
{
    if (!w->integers)
        return x;
    emit(w, "  %%v%d = call_function[target=cfx.ops.quantize_per_tensor](%%v%d, " RESULT ")\n",
         w->made, x);
    return w->made++;
}

/* A call with one argument and some more text. */
static int call(writer *w, const char *what, int x, const char *more)
{
    emit(w, "  %%v%d = call_function[target=cfx.ops.%s](%%v%d%s)\n", w->made, what, x, more);
    return w->made++;
}

/* ---- models -------------------------------------------------------------------------------- */

static int begin(writer *w)
{
    emit(w, "graph():\n  %%v%d = placeholder[target=x]()\n", w->made);
    return w->made++;
}

static int basic_block(writer *w, int x, int64_t in, int64_t out, int64_t stride)
{
    const int a = conv(w, x, (conv_form){in, out, 3, stride, 1, RELU});
    const int b = conv(w, a, (conv_form){out, out, 3, 1, 1, NOTHING});
    const int c = in != out ? conv(w, x, (conv_form){in, out, 1, stride, 1, NOTHING}) : x;
    return combine(w, "add", b, c, RELU);
}

static int bottleneck(writer *w, int x, int64_t in, int64_t middle, int64_t stride)
{
    const int64_t out = 4 * middle;
    const int a = conv(w, x, (conv_form){in, middle, 1, 1, 1, RELU});
    const int b = conv(w, a, (conv_form){middle, middle, 3, stride, 1, RELU});
    const int c = conv(w, b, (conv_form){middle, out, 1, 1, 1, NOTHING});
    const int d = in != out ? conv(w, x, (conv_form){in, out, 1, stride, 1, NOTHING}) : x;
    return combine(w, "add", c, d, RELU);
}

static void resnet(writer *w, bool deep)
{
    static const int64_t blocks[2][4] = {{2, 2, 2, 2}, {3, 4, 6, 3}};
    int x = quantize(w, begin(w));
    x = conv(w, x, (conv_form){3, 64, 7, 2, 1, RELU});
    x = call(w, "max_pool2d", x, ", [3, 3], [2, 2], [1, 1]");
    int64_t in = 64;
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < blocks[deep][stage]; i++) {
            const int64_t size = 64 << stage;
            const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
            x = deep ? bottleneck(w, x, in, size, stride) : basic_block(w, x, in, size, stride);
            in = deep ? 4 * size : size;
        }
    x = call(w, "flatten", mean_of_image(w, x), ", 1");
    x = linear(w, x, in, 1000, true, NOTHING);
    emit(w, "  output(%%v%d)\n", x);
}

static void resnet18(writer *w) { resnet(w, false); }
static void resnet50(writer *w) { resnet(w, true); }

typedef struct inverted {
    int64_t window, wide, out, stride;
    bool squeezes;
    after then;
} inverted;

static int inverted_block(writer *w, int x, int64_t in, const inverted *b)
{
    int y = b->wide != in ? conv(w, x, (conv_form){in, b->wide, 1, 1, 1, b->then}) : x;
    y = conv(w, y, (conv_form){b->wide, b->wide, b->window, b->stride, b->wide, b->then});
    if (b->squeezes) {
        const int64_t few = (b->wide / 4 + 4) / 8 * 8;
        int z = conv(w, mean_of_image(w, y), (conv_form){b->wide, few, 1, 1, 1, RELU});
        z = conv(w, z, (conv_form){few, b->wide, 1, 1, 1, HARDSIGMOID});
        y = combine(w, "mul", z, y, NOTHING);
    }
    y = conv(w, y, (conv_form){b->wide, b->out, 1, 1, 1, NOTHING});
    return b->stride == 1 && in == b->out ? combine(w, "add", y, x, NOTHING) : y;
}

static void mobilenet(writer *w)
{
    static const inverted blocks[] = {
        {3, 16, 16, 2, true, RELU},        {3, 72, 24, 2, false, RELU},
        {3, 88, 24, 1, false, RELU},       {5, 96, 40, 2, true, HARDSWISH},
        {5, 240, 40, 1, true, HARDSWISH},  {5, 240, 40, 1, true, HARDSWISH},
        {5, 120, 48, 1, true, HARDSWISH},  {5, 144, 48, 1, true, HARDSWISH},
        {5, 288, 96, 2, true, HARDSWISH},  {5, 576, 96, 1, true, HARDSWISH},
        {5, 576, 96, 1, true, HARDSWISH}};
    int x = quantize(w, begin(w));
    int64_t in = 16;
    x = conv(w, x, (conv_form){3, 16, 3, 2, 1, HARDSWISH});
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        x = inverted_block(w, x, in, &blocks[i]);
        in = blocks[i].out;
    }
    x = conv(w, x, (conv_form){96, 576, 1, 1, 1, HARDSWISH});
    x = call(w, "flatten", mean_of_image(w, x), ", 1");
    x = linear(w, x, 576, 1024, false, HARDSWISH);
    x = linear(w, x, 1024, 1000, true, NOTHING);
    emit(w, "  output(%%v%d)\n", x);
}

enum { WIDE = 768, HEADS = 12 };

static int heads_of(writer *w, int x, const char *order)
{
    return call(w, "permute", call(w, "reshape", x, ", [1, -1, 12, 64]"), order);
}

static int matmul(writer *w, int x, int y, bool to_float)
{
    if (w->integers)
        emit(w, "  %%v%d = call_function[target=cfx.ops.integer_matmul](%%v%d, " UNITS ", %%v%d, "
             UNITS ", %s)\n", w->made, x, y, to_float ? FLOAT_RESULT : RESULT);
    else
        emit(w, "  %%v%d = call_function[target=cfx.ops.matmul](%%v%d, %%v%d)\n", w->made, x, y);
    return w->made++;
}

/* x + y and its norm, in floats. */
static int add_and_norm(writer *w, int x, int y)
{
    emit(w, "  %%v%d = call_function[target=cfx.ops.add](%%v%d, %%v%d)\n", w->made, x, y);
    return call(w, "layer_norm", w->made++, ", [768]");
}

static int encoder(writer *w, int x)
{
    const int in = quantize(w, x);
    const int q = heads_of(w, linear(w, in, WIDE, WIDE, false, NOTHING), ", [0, 2, 1, 3]");
    const int k = heads_of(w, linear(w, in, WIDE, WIDE, false, NOTHING), ", [0, 2, 3, 1]");
    const int v = heads_of(w, linear(w, in, WIDE, WIDE, false, NOTHING), ", [0, 2, 1, 3]");
    const int scores = call(w, "mul", matmul(w, q, k, true), ", 0.125");
    const int p = quantize(w, call(w, "softmax", scores, ", -1"));
    int y = call(w, "permute", matmul(w, p, v, false), ", [0, 2, 1, 3]");
    y = linear(w, call(w, "reshape", y, ", [1, -1, 768]"), WIDE, WIDE, true, NOTHING);
    const int sum = add_and_norm(w, y, x);
    y = linear(w, quantize(w, sum), WIDE, 4 * WIDE, true, NOTHING);
    y = linear(w, quantize(w, call(w, "gelu", y, "")), 4 * WIDE, WIDE, true, NOTHING);
    return add_and_norm(w, y, sum);
}

static void bert(writer *w)
{
    int x = begin(w);
    for (int i = 0; i < 12; i++)
        x = encoder(w, x);
    emit(w, "  output(%%v%d)\n", x);
}

static void wide_layers(writer *w)
{
    int x = quantize(w, begin(w));
    for (int i = 0; i < 6; i++)
        x = linear(w, x, 1024, 1024, i == 5, i < 5 ? RELU : NOTHING);
    emit(w, "  output(%%v%d)\n", x);
}

typedef struct model {
    const char *name;
    void (*write)(writer *w);
    int64_t sizes[4];
    size_t ndim;
} model;

static const model models[] = {{"ResNet-18", resnet18, {1, 3, 224, 224}, 4},
                               {"ResNet-50", resnet50, {1, 3, 224, 224}, 4},
                               {"MobileNetV3-small", mobilenet, {1, 3, 224, 224}, 4},
                               {"BERT-base, 128", bert, {1, 128, WIDE}, 3},
                               {"six linear layers, 256 rows", wide_layers, {256, 1024}, 2}};

/* ---- measuring ----------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void must(bool good, const cfx_error *err)
{
    if (good)
        return;
    fprintf(stderr, "quantize: %s\n", err->message);
    exit(1);
}

static cfx_program *program_of(const model *m, bool integers)
{
    cfx_error err = {0};
    writer w = {.integers = integers, .state = cfx_state_new(NULL, &err)};
    cfx_buffer_init(&w.text, NULL);
    m->write(&w);
    cfx_graph *g = cfx_graph_parse(w.text.data, w.text.size, NULL, NULL, &err);
    must(g != NULL, &err);
    cfx_program *p = cfx_program_new(g, w.state, NULL, &err);
    must(p && cfx_program_compile(p, NULL, &err) == CFX_OK, &err);
    cfx_graph_release(g);
    cfx_state_free(w.state);
    cfx_buffer_free(&w.text);
    return p;
}

static void run(cfx_program *p, cfx_runtime *rt, cfx_datum x)
{
    cfx_error err = {0};
    const cfx_datum y = cfx_program_run(p, rt, &x, 1, &err);
    must(y.kind == CFX_DATUM_TENSOR, &err);
    cfx_datum_release(y);
}

/* The fastest of as many runs as fit into 40 ms, and at least two. */
static double fastest(cfx_program *p, cfx_runtime *rt, cfx_datum x)
{
    const double end = now() + 40;
    double best = INFINITY;
    for (int i = 0; i < 2 || now() < end; i++) {
        const double from = now();
        run(p, rt, x);
        best = fmin(best, now() - from);
    }
    return best;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_step(void *ctx, const cfx_step *s)
{
    (void)ctx;
    printf("  %-10s %8.1f us %7.0f GOP/s  %s\n", s->node, (double)(s->end - s->begin) * 1e-3,
           s->flops / (double)(s->end - s->begin), s->kernel);
}

static double measure(const model *m, cfx_runtime *rt, cfx_runtime *told, int rounds)
{
    enum { MOST = 100 };
    double took[2][MOST];
    cfx_program *p[2] = {program_of(m, false), program_of(m, true)};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, m->sizes, m->ndim, NULL, NULL);
    for (int64_t i = 0; t && i < cfx_tensor_numel(t); i++)
        ((float *)cfx_tensor_data(t))[i] = (float)(i % 251) / 125 - 1;
    const cfx_datum x = cfx_datum_tensor(t);
    rounds = rounds < MOST ? rounds : MOST;
    for (int i = 0; i < 2; i++)
        run(p[i], rt, x);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < 2; i++)
            took[i][round] = fastest(p[i], rt, x);
    for (int i = 0; i < 2; i++)
        qsort(took[i], (size_t)rounds, sizeof **took, by_size);
    const double ratio = took[0][rounds / 2] / took[1][rounds / 2];
    printf("| %s | %.2f | %.2f | %.2fx |\n", m->name, took[0][rounds / 2], took[1][rounds / 2],
           ratio);
    for (int i = 0; told && i < 2; i++) {
        if (i == 1)
            printf("\n");
        run(p[1], told, x);
    }
    fflush(stdout);
    cfx_datum_release(x);
    cfx_program_free(p[0]);
    cfx_program_free(p[1]);
    return ratio;
}

int main(int argc, char **argv)
{
    unsigned threads = 2;
    int rounds = 15;
    bool steps = false;
    const char *only = "";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            threads = (unsigned)atoi(argv[++i]);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--steps") == 0)
            steps = true;
        else
            only = argv[i];
    }
    if (threads < 1 || rounds < 1)
        return fprintf(stderr, "quantize: threads, rounds: 1 or more\n"), 2;
    cfx_runtime_options options = {.threads = threads};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    options.step = print_step;
    cfx_runtime *told = steps ? cfx_runtime_new(&options, NULL) : NULL;
    double product = 1;
    int count = 0;
    printf("%u threads, %s; milliseconds\n\n| model | float32 | integers | |\n|---|---|---|---|\n",
           threads, cfx_isa_name(cfx_runtime_isa(rt)));
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strstr(models[i].name, only)) {
            product *= measure(&models[i], rt, told, rounds);
            count++;
        }
    if (count > 1)
        printf("\ngeometric mean: %.2fx\n", pow(product, 1.0 / count));
    cfx_runtime_free(told);
    cfx_runtime_free(rt);
    return 0;
}
