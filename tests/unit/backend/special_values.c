/* special_values.c - NaN, infinities, zeros of both signs and numbers below the normal range
 * through the fast functions of every instruction set of the machine, and the built-in back ends,
 * at odd addresses and in place: results are those of plain C. */
#include "backend/backend_impl.h"
#include "runtime/kernels/conv/pixels.h"
#include "runtime/kernels/depthwise/depthwise.h"
#include "runtime/kernels/linalg/attention_impl.h"
#include "runtime/kernels/linalg/gemm_impl.h"
#include "runtime/kernels/reduce/reduce_impl.h"

#include "test_alloc.h"

#include <float.h>
#include <math.h>

static const float specials[] = {NAN, INFINITY, -INFINITY, 0, -0.f, 1e-40f, -1e-45f, FLT_MIN};
static const float usual[] = {1, -1, 0.5f, -2.25f, 3, 17.5f, -90, 1e4f};
enum { SPECIALS = sizeof specials / sizeof *specials, USUAL = sizeof usual / sizeof *usual };

static float value_of(int64_t i)
{
    return i % 2 ? usual[i / 2 % USUAL] : specials[i / 2 % SPECIALS];
}

/* The same number, or near; below the normal range all are. */
static bool is_same(float want, float got)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return want == got;
    return fabsf(want - got) <= 1e-5f * fabsf(want) + FLT_MIN;
}

static bool are_same(const float *want, const float *got, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!is_same(want[i], got[i])) {
            printf("    element %lld: %g, not %g\n", (long long)i, (double)got[i], (double)want[i]);
            return false;
        }
    return true;
}

/* Calls fn with a runtime of each instruction set of the machine. */
static void for_each_isa(void fn(cfx_runtime *rt))
{
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++) {
        const cfx_runtime_options o = {.threads = 1, .limit_isa = true, .isa = (cfx_isa)isa};
        cfx_runtime *rt = cfx_runtime_new(&o, NULL);
        if (CHECK(rt != NULL) && rt->isa == (cfx_isa)isa)
            fn(rt);
        cfx_runtime_free(rt);
    }
}

/* ---- element-wise functions ---------------------------------------------------------------- */

typedef struct function {
    cfxi_fn fn;
    const char *name;
    int arguments;
    bool tells;  /* bytes of truth instead of floats */
} function;

static const function functions[] = {
#define X(id, expr) {CFXI_FN_##id, #id, 1, false},
    CFXI_CHEAP_UNARY(X) CFXI_VECTOR_UNARY(X)
#undef X
#define X(id, expr) {CFXI_FN_##id, #id, 1, true},
    CFXI_PREDICATES(X)
#undef X
#define X(id, expr) {CFXI_FN_##id, #id, 2, false},
    CFXI_CHEAP_BINARY(X) CFXI_VECTOR_BINARY(X)
#undef X
#define X(id, expr) {CFXI_FN_##id, #id, 2, true},
    CFXI_EQUALITIES(X) CFXI_ORDERS(X)
#undef X
#define X(id, expr) {CFXI_FN_##id, #id, 3, false},
    CFXI_CHEAP_TERNARY(X)
#undef X
};

enum { VALUES = 2 * SPECIALS, MOST = VALUES * VALUES * VALUES + 3 };
static float arguments[3][MOST];
static float results[2][MOST];

/* All combinations of values, from an odd address on. */
static int64_t fill_arguments(int count)
{
    int64_t n = 1;
    for (int k = 0; k < count; k++)
        n *= VALUES;
    for (int64_t i = 0, step = 1; step < n || i == 0; step *= VALUES, i++)
        for (int64_t at = 0; at < n; at++)
            arguments[i][1 + at] = value_of(at / step % VALUES);
    return n;
}

/* `place`: the argument that the result is written over; or -1. */
static bool check_function(cfx_runtime *rt, const function *f, int place)
{
    const cfxi_scalars s = {.f = {0.5, 2, 1.5}};
    const int64_t n = fill_arguments(f->arguments);
    const void *x[] = {arguments[0] + 1, arguments[1] + 1, arguments[2] + 1};
    cfxi_elementwise_blocks_plain.fn[f->fn](&s, n, x, results[0]);
    float *to = place < 0 ? results[1] + 3 : arguments[place] + 1;
    cfxi_elementwise_block_of(rt, f->fn, CFXI_IN_F32)(&s, n, x, to);
    return f->tells ? memcmp(results[0], to, (size_t)n) == 0 : are_same(results[0], to, n);
}

static void check_functions(cfx_runtime *rt)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const function *f = &functions[i];
        for (int place = -1; place < (f->tells ? 0 : f->arguments); place++)
            if (!CHECK(check_function(rt, f, place)))
                printf("    %s on %s, result over argument %d\n", f->name, cfx_isa_name(rt->isa),
                       place);
    }
}

TEST(functions_of_elements) { for_each_isa(check_functions); }

/* ---- runs of floats ------------------------------------------------------------------------ */

enum { RUN = 117 };

/* Each special value at each place, among usual ones. */
static void fill_run(float *x, int64_t at, float special)
{
    for (int64_t i = 0; i < RUN; i++)
        x[i] = i == at ? special : usual[i % USUAL];
}

typedef void row_fn(float *y, const float *x, int64_t n);

static void check_row(const char *name, row_fn *plain, row_fn *fast, const float *x)
{
    float want[RUN + 1];
    float got[RUN + 1];
    for (int i = 0; i < RUN; i++)
        want[1 + i] = got[1 + i] = value_of(i);
    plain(want + 1, x, RUN);
    fast(got + 1, x, RUN);
    if (!CHECK(are_same(want + 1, got + 1, RUN)))
        printf("    %s\n", name);
}

static void check_runs(cfx_runtime *rt)
{
    const cfxi_floats *plain = cfxi_reduce_floats_of(CFX_ISA_PLAIN);
    const cfxi_floats *fast = cfxi_reduce_floats_of(rt->isa);
    float memory[RUN + 1];
    float *x = memory + 1;
    for (int64_t at = 0; at < RUN; at++)
        for (size_t i = 0; i < SPECIALS; i++) {
            float y[RUN], z[RUN];
            fill_run(x, at, specials[i]);
            const float sum = (float)plain->rows.sum(x, RUN);
            CHECK(is_same(sum, (float)fast->rows.sum(x, RUN)));
            CHECK(is_same(plain->most(x, RUN), fast->most(x, RUN)));
            CHECK(is_same(plain->least(x, RUN), fast->least(x, RUN)));
            CHECK(is_same((float)plain->spread(x, RUN, sum), (float)fast->spread(x, RUN, sum)));
            const double total = plain->exponentials(y, x, RUN, 0.5f, 8.75f);
            CHECK(is_same((float)total, (float)fast->exponentials(z, x, RUN, 0.5f, 8.75f)));
            CHECK(are_same(y, z, RUN));
            if (at % 16)
                continue;
            check_row("most_row", plain->most_row, fast->most_row, x);
            check_row("least_row", plain->least_row, fast->least_row, x);
            check_row("shift_each", plain->shift_each, fast->shift_each, x);
            check_row("scale_each", plain->scale_each, fast->scale_each, x);
        }
}

TEST(runs_of_floats) { for_each_isa(check_runs); }

/* ---- pixels, attention, depthwise convolutions --------------------------------------------- */

static void check_pixels(cfx_runtime *rt)
{
    enum { COUNT = 5 };
    const cfxi_pixels *plain = cfxi_conv_pixels_of(CFX_ISA_PLAIN);
    const cfxi_pixels *fast = cfxi_conv_pixels_of(rt->isa);
    static const float weights[COUNT] = {0.5f, -1, 0, 2, 0.25f};
    float all[COUNT][RUN + 1];
    const float *x[COUNT];
    const char *bytes[COUNT];
    for (int p = 0; p < COUNT; p++) {
        x[p] = all[p] + 1;
        bytes[p] = (const char *)x[p];
        for (int i = 0; i < RUN; i++)
            all[p][1 + i] = value_of(i / (p + 1) + 3 * p);
    }
    for (int more = 0; more < 2; more++) {
        float y[RUN + 1], z[RUN + 1];
        fill_run(y + 1, 40, NAN);
        fill_run(z + 1, 40, NAN);
        const cfxi_windows want = {.x = bytes, .count = COUNT, .n = RUN, .more = more,
                                   .y = (char *)(y + 1), .windows = 1};
        cfxi_windows got = want;
        got.y = (char *)(z + 1);
        plain->most(&want);
        fast->most(&got);
        CHECK(are_same(y + 1, z + 1, RUN));
        plain->mean(&want, 4);
        fast->mean(&got, 4);
        CHECK(are_same(y + 1, z + 1, RUN));
        plain->mix(x, weights, COUNT, RUN, y + 1);
        fast->mix(x, weights, COUNT, RUN, z + 1);
        CHECK(are_same(y + 1, z + 1, RUN));
    }
}

TEST(pixels) { for_each_isa(check_pixels); }

static void check_weighing(cfx_runtime *rt)
{
    uint8_t seen[RUN];
    float added[RUN];
    for (int i = 0; i < RUN; i++) {
        seen[i] = i % 3 != 0;
        added[i] = i % 5 ? 0.25f : -INFINITY;
    }
    for (int64_t at = 0; at < RUN; at += 13)
        for (size_t i = 0; i < SPECIALS; i++)
            for (int kind = 0; kind < 4; kind++) {  /* 3: nothing is seen */
                float y[RUN + 1], z[RUN + 1];
                cfxi_weighed before = {kind ? 2.f : -INFINITY, kind ? 3.f : 0};
                cfxi_weighed after = before;
                fill_run(y + 1, at, specials[i]);
                for (int64_t j = 0; kind == 3 && j < RUN; j++)
                    y[1 + j] = -INFINITY;
                memcpy(z, y, sizeof y);
                const uint8_t *mask = kind == 1 ? seen : NULL;
                const float *more = kind == 2 ? added : NULL;
                const float scale = kind ? 0.125f : -0.125f;
                const float want = cfxi_linalg_weigh(CFX_ISA_PLAIN, y + 1, RUN, scale, mask, more,
                                                     &before);
                CHECK(is_same(want, cfxi_linalg_weigh(rt->isa, z + 1, RUN, scale, mask, more,
                                                      &after)));
                CHECK(are_same(y + 1, z + 1, RUN));
                CHECK(is_same(before.most, after.most) && is_same(before.total, after.total));
            }
}

static void check_queries(cfx_runtime *rt)
{
    enum { KEYS = 7, SIZE = 19, ROWS = 3 };
    const cfxi_attention_rows *plain = cfxi_linalg_attention_rows_of(CFX_ISA_PLAIN);
    const cfxi_attention_rows *fast = cfxi_linalg_attention_rows_of(rt->isa);
    float q[ROWS * SIZE + 1], k[KEYS * SIZE + 1];
    for (int i = 0; i < ROWS * SIZE; i++)
        q[1 + i] = i % 11 == 4 ? value_of(i) : usual[i % 5];
    for (int i = 0; i < KEYS * SIZE; i++)
        k[1 + i] = i % 37 == 5 ? value_of(i / 37 * 2) : usual[i % 7];
    float want[ROWS * SIZE + 1] = {0}, got[ROWS * SIZE + 1] = {0};
    cfxi_linalg_gemm_of(CFX_ISA_PLAIN)->f32->dots(ROWS, KEYS, SIZE, q + 1, SIZE, k + 1, SIZE,
                                                  want + 1, KEYS);
    cfxi_linalg_gemm_of(rt->isa)->f32->dots(ROWS, KEYS, SIZE, q + 1, SIZE, k + 1, SIZE, got + 1,
                                            KEYS);
    CHECK(are_same(want, got, ROWS * KEYS + 1));
    plain->mix(ROWS, q + 1, SIZE, k + 1, SIZE, KEYS, SIZE, want + 1, SIZE);
    fast->mix(ROWS, q + 1, SIZE, k + 1, SIZE, KEYS, SIZE, got + 1, SIZE);
    CHECK(are_same(want, got, ROWS * SIZE + 1));
}

TEST(attention)
{
    for_each_isa(check_weighing);
    for_each_isa(check_queries);
}

static void check_depthwise(cfx_runtime *rt)
{
    enum { PIXELS = 11, LINES = 2, PLACES = 3, CHANNELS = 37 };
    static float x[LINES * (PIXELS + PLACES) * CHANNELS + 1];
    static float w[LINES * PLACES * CHANNELS + 1];
    static float want[PIXELS * CHANNELS + 1], got[PIXELS * CHANNELS + 1];
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = i % 29 == 4 ? value_of((int64_t)i / 29 * 2) : usual[i % 7];
    for (size_t i = 0; i < sizeof w / sizeof *w; i++)
        w[i] = i % 61 == 4 ? value_of((int64_t)i / 61 * 2) : usual[i % 5];
    for (int clamps = 0; clamps < 2; clamps++) {
        cfxi_depthwise_line t = {
            .pixels = PIXELS, .channels = CHANNELS, .x = x + 1, .x_column = CHANNELS,
            .x_line = (PIXELS + PLACES) * CHANNELS, .columns = PIXELS, .left = -1, .step = 1,
            .gap = 1, .lines = LINES, .places = PLACES, .w = w + 1,
            .w_line = PLACES * CHANNELS, .w_place = CHANNELS,
            .y = want + 1, .y_pixel = CHANNELS, .bias = x, .add = want + 1, .add_pixel = CHANNELS,
            .low = clamps ? 0 : -INFINITY, .high = clamps ? 6 : INFINITY};
        for (int i = 0; i < PIXELS * CHANNELS; i++)
            want[1 + i] = got[1 + i] = i % 7 ? 1 : value_of(i);
        cfxi_depthwise_of(CFX_ISA_PLAIN)->line(&t);
        t.y = got + 1;
        t.add = got + 1;
        cfxi_depthwise_of(rt->isa)->line(&t);
        CHECK(are_same(want + 1, got + 1, PIXELS * CHANNELS));
    }
}

TEST(depthwise) { for_each_isa(check_depthwise); }

/* ---- tiles --------------------------------------------------------------------------------- */

enum { LENGTH = 9, MOST_COLUMNS = CFXI_TILE_MOST_PANELS * CFXI_PANEL };

typedef struct tile_memory {
    float a[CFXI_DOTS_MOST_ROWS * LENGTH * 2 + 1];
    float b[CFXI_TILE_MOST_PANELS * LENGTH * CFXI_PANEL + 1];
    float bias[MOST_COLUMNS];
    float want[CFXI_DOTS_MOST_ROWS * MOST_COLUMNS], got[CFXI_DOTS_MOST_ROWS * MOST_COLUMNS + 1];
} tile_memory;

/* Few enough that most results are numbers. */
static float tile_value(int64_t i, int64_t every)
{
    return i % every == 3 ? value_of(i / every * 2) : usual[i % 6];
}

static float clamped(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

/* What a tile of one block should be, before its results are there. */
static void want_tile(tile_memory *m, const cfxi_sum_tile *t, int rows)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < t->columns; j++) {
            const float *b = t->b + j / CFXI_PANEL * t->b_panel + j % CFXI_PANEL;
            double sum = t->bias ? t->bias[j] : 0;
            for (int64_t p = 0; p < t->k; p++)
                sum += (double)t->a[i * t->a_row + p] * b[p * CFXI_PANEL];
            if (t->add)
                sum += t->add[i * t->add_row + j];
            m->want[i * MOST_COLUMNS + j] = clamped((float)sum, t->low, t->high);
        }
}

static cfxi_sum_tile tile_of(tile_memory *m, int panels, bool full)
{
    static const int64_t at = 0;
    for (size_t i = 0; i < sizeof m->a / sizeof *m->a; i++)
        m->a[i] = tile_value((int64_t)i, 53);
    for (size_t i = 0; i < sizeof m->b / sizeof *m->b; i++)
        m->b[i] = tile_value((int64_t)i, 71);
    for (size_t i = 0; i < MOST_COLUMNS; i++)
        m->bias[i] = tile_value((int64_t)i, 31);
    for (size_t i = 0; i < sizeof m->got / sizeof *m->got; i++)
        m->got[i] = tile_value((int64_t)i, 41);
    return (cfxi_sum_tile){
        .a = m->a + 1, .a_row = LENGTH, .a_at = &at, .b = m->b + 1,
        .b_panel = LENGTH * CFXI_PANEL, .b_at = &at, .count = 1, .k = LENGTH, .c = m->got + 1,
        .c_row = MOST_COLUMNS, .columns = panels * CFXI_PANEL - (full ? 0 : 5),
        .bias = full ? m->bias : NULL, .add = full ? m->got + 1 : NULL, .add_row = MOST_COLUMNS,
        .low = full ? -INFINITY : 0, .high = full ? INFINITY : 6};
}

static bool is_tile(const tile_memory *m, const cfxi_sum_tile *t, int rows)
{
    bool good = true;
    for (int64_t i = 0; i < rows; i++)
        good = good && are_same(m->want + i * MOST_COLUMNS, t->c + i * t->c_row, t->columns);
    return good;
}

static void check_tiles(cfx_runtime *rt)
{
    static tile_memory m;
    const cfxi_tiles *tiles = cfxi_tiles_of(rt->isa);
    for (int panels = 1; panels <= CFXI_TILE_MOST_PANELS; panels++)
        for (int rows = 1; rows <= tiles->most_rows[panels - 1]; rows++)
            for (int full = 0; full < 2; full++) {
                const cfxi_sum_tile t = tile_of(&m, panels, full);
                want_tile(&m, &t, rows);
                tiles->fn[panels - 1][rows - 1](&t);
                CHECK(is_tile(&m, &t, rows));
            }
}

TEST(tiles) { for_each_isa(check_tiles); }

static void round_all(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = cfxi_tensor_bfloat_to_float(cfxi_tensor_float_to_bfloat(x[i]));
}

/* The same with operands of bfloat16. Zeros fill an odd number of elements up. */
static void check_dots_of(const cfxi_dots *dots)
{
    enum { PAIRS = (LENGTH + 1) / 2 };
    static tile_memory m;
    static float a[CFXI_DOTS_MOST_ROWS * PAIRS * 2];
    static float b[CFXI_TILE_MOST_PANELS * PAIRS * CFXI_PANEL];
    for (int panels = 1; panels <= CFXI_TILE_MOST_PANELS; panels++)
        for (int rows = 1; rows <= dots->most_rows[panels - 1]; rows++)
            for (int full = 0; full < 2; full++) {
                cfxi_sum_tile t = tile_of(&m, panels, full);
                memset(a, 0, sizeof a);
                memset(b, 0, sizeof b);
                for (int i = 0; i < rows; i++)
                    dots->round(LENGTH, t.a + i * t.a_row, a + i * PAIRS * dots->width);
                for (int64_t i = 0; i < panels * PAIRS * CFXI_PANEL; i++)
                    for (int64_t half = 0; half < 2; half++) {
                        const int64_t p = i / CFXI_PANEL % PAIRS * 2 + half;
                        const int64_t panel = i / CFXI_PANEL / PAIRS;
                        const uint16_t bits = p >= LENGTH ? 0 : cfxi_tensor_float_to_bfloat(
                            t.b[panel * t.b_panel + p * CFXI_PANEL + i % CFXI_PANEL]);
                        memcpy((char *)&b[i] + 2 * half, &bits, sizeof bits);
                    }
                round_all(m.a, sizeof m.a / sizeof *m.a);
                round_all(m.b, sizeof m.b / sizeof *m.b);
                want_tile(&m, &t, rows);
                t.a = a;
                t.a_row = PAIRS * dots->width;
                t.b = b;
                t.b_panel = PAIRS * CFXI_PANEL;
                t.k = PAIRS;
                dots->tile(&t, rows, panels);
                CHECK(is_tile(&m, &t, rows));
            }
}

static void check_dots(cfx_runtime *rt)
{
    check_dots_of(cfxi_tiles_dots_of_isa(rt->isa));
    if (cfxi_rt_bf16(rt) >= CFXI_BF16_DOTS)
        check_dots_of(cfxi_tiles_dots_of(rt->isa, CFXI_BF16_DOTS, 1, LENGTH));
}

TEST(dots) { for_each_isa(check_dots); }

/* ---- back ends ----------------------------------------------------------------------------- */

typedef struct window {
    int64_t groups, in, out, side, size, stride, before;
} window;

/* Of pixels, of lines, with gaps; groups, and each channel alone. */
static const window windows[] = {
    {1, 7, 20, 9, 1, 1, 0}, {1, 8, 33, 8, 3, 1, 1}, {1, 3, 17, 11, 3, 2, 1}, {2, 5, 4, 7, 3, 1, 1},
    {1, 8, 16, 5, 5, 1, 2}, {19, 1, 1, 9, 3, 1, 1},
};

static cfxi_problem problem_of(const cfx_runtime *rt, const window *w, cfx_precision precision)
{
    const int64_t out = (w->side + 2 * w->before - w->size) / w->stride + 1;
    const int64_t x = w->groups * w->in;
    const int64_t y = w->groups * w->out;
    return (cfxi_problem){
        .kind = CFXI_CONVOLUTION, .isa = rt->isa, .precision = precision, .bf16 = cfxi_rt_bf16(rt),
        .threads = 1, .has_bias = true, .num_posts = 2,
        .posts = {{.kind = CFXI_POST_ADD, .rows = {out * out * y, out * y, y}},
                  {.kind = CFXI_POST_CLAMP, .low = 0, .high = INFINITY}},
        .conv = {.batch = 1, .groups = w->groups, .in_channels = w->in, .out_channels = w->out,
                 .in = {1, w->side, w->side}, .out = {1, out, out},
                 .kernel = {1, w->size, w->size}, .stride = {1, w->stride, w->stride},
                 .before = {0, w->before, w->before}, .dilation = {1, 1, 1},
                 .xs = {w->side * w->side * x, 1, 0, w->side * x, x},
                 .ys = {out * out * y, 1, 0, out * y, y}, .wg = w->out * w->in * w->size * w->size,
                 .ws = {w->in * w->size * w->size, w->size * w->size, 0, w->size, 1}}};
}

/* One result by plain loops; NaN in each post stays. */
static float want_pixel(const cfxi_conv *c, const float *x, const float *w, int64_t channel,
                        int64_t y, int64_t z)
{
    double sum = 0;
    for (int64_t i = 0; i < c->in_channels; i++)
        for (int64_t r = 0; r < c->kernel[1]; r++)
            for (int64_t s = 0; s < c->kernel[2]; s++) {
                const int64_t line = y * c->stride[1] - c->before[1] + r;
                const int64_t pixel = z * c->stride[2] - c->before[2] + s;
                if (line < 0 || line >= c->in[1] || pixel < 0 || pixel >= c->in[2])
                    continue;
                sum += (double)x[line * c->xs[3] + pixel * c->xs[4] +
                                 channel / c->out_channels * c->in_channels + i] *
                       w[channel * c->ws[0] + i * c->ws[1] + r * c->ws[3] + s];
            }
    return (float)sum;
}

enum { ROOM = 11 * 11 * 40 };

/* All operands begin at odd addresses; the sum is with what is written over. Numbers of all
 * operands have few bits, so that rounding them changes nothing. */
static void check_back_end(cfx_runtime *rt, const cfxi_backend *b, const cfxi_problem *p)
{
    static float x[ROOM + 1], w[ROOM], bias[40], out[ROOM + 1], want[ROOM];
    const cfxi_conv *c = &p->conv;
    const int64_t channels = c->groups * c->out_channels;
    double cost;
    for (int i = 0; i < ROOM; i++) {
        x[1 + i] = i % 91 == 7 ? value_of(i / 91 * 2) : usual[i % 6];
        out[1 + i] = i % 57 == 7 ? value_of(i / 57 * 2) : usual[i % 5];
        w[i] = usual[(i * 7) % 6];
    }
    for (int i = 0; i < 40; i++)
        bias[i] = i == 3 ? INFINITY : usual[i % 4];
    for (int64_t i = 0; i < c->out[1] * c->out[2] * channels; i++) {
        const int64_t pixel = i / channels;
        const float sum = want_pixel(c, x + 1, w, i % channels, pixel / c->out[2],
                                     pixel % c->out[2]) + bias[i % channels] + out[1 + i];
        want[i] = clamped(sum, 0, INFINITY);
    }
    if (!b->query(p, &cost))
        return;
    const cfxi_constants constants = {.w = w, .bias = bias};
    cfxi_kernel *k = b->prepare(p, &constants, cfxi_base_allocator(NULL), NULL);
    const cfxi_run r = {.rt = rt, .x = x + 1, .out = out + 1, .operands = {out + 1}};
    if (CHECK(k != NULL)) {
        CHECK(b->run(k, &r, NULL) == CFX_OK);
        if (!CHECK(are_same(want, out + 1, c->out[1] * c->out[2] * channels)))
            printf("    %s\n", b->name);
        b->release(k);
    }
}

static void check_back_ends(cfx_runtime *rt)
{
    const cfxi_candidate *c;
    for (size_t i = 0; (c = cfxi_backend_candidate(i)); i++)
        for (size_t k = 0; k < sizeof windows / sizeof *windows; k++)
            for (int precision = 0; precision < CFX_PRECISION_COUNT; precision++) {
                const cfxi_problem p = problem_of(rt, &windows[k], (cfx_precision)precision);
                check_back_end(rt, c->backend, &p);
            }
}

TEST(back_ends) { for_each_isa(check_back_ends); }
