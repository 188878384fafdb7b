/* float_rows.c - loops over rows of floats and doubles against loops in long double that share
 * nothing with them: every instruction set of the machine, lengths around those of vectors, rows
 * that begin at any element and end where their memory ends. Conversions likewise. */
#include "runtime/kernels/reduce/reduce_impl.h"

#include "check.h"

#include <math.h>
#include <stdlib.h>

static const int64_t lengths[] = {1,  2,  3,  4,  5,  7,   8,   9,   15,   16,   17,   31,  32,
                                  33, 47, 63, 64, 65, 127, 129, 257, 1023, 1025, 2049, 5000};
enum { LENGTHS = sizeof lengths / sizeof *lengths, LONGEST = 5000, ROWS = 6, OFFSET = 1 };

static uint32_t state = 7;

/* From -2 to 2. */
static double number(void)
{
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) * (4.0 / (1 << 24)) - 2;
}

/* ---- rows of either type ------------------------------------------------------------------- */

typedef struct rows_case {
    const cfxi_rows *loops;
    cfx_dtype type;
    int64_t n;
    char *memory[ROWS];  /* of exactly its size */
    void *row[ROWS];     /* at an odd element of it */
} rows_case;

static double get(const rows_case *t, int which, int64_t i)
{
    return t->type == CFX_DTYPE_FLOAT32 ? (double)((float *)t->row[which])[i]
                                        : ((double *)t->row[which])[i];
}

static void fill(rows_case *t)
{
    const int64_t size = (int64_t)cfx_dtype_size(t->type);
    for (int r = 0; r < ROWS; r++) {
        for (int64_t i = 0; i < t->n; i++)
            cfxi_tensor_store_float(t->type, (char *)t->row[r] + i * size, number());
    }
}

static void check_near(const rows_case *t, const char *name, double want, double got, double sizes)
{
    const double within = t->type == CFX_DTYPE_FLOAT32 ? 1e-6 : 1e-14;
    if (!CHECK(fabs(want - got) <= within * (1 + sizes)))
        printf("    %s of %lld %s: %.17g, not %.17g\n", name, (long long)t->n,
               cfx_dtype_name(t->type), got, want);
}

static void check_sums(rows_case *t)
{
    long double sum = 0, squares = 0, sizes = 0, dots[2][2] = {{0}};
    const double mean = (double)(float)number();
    fill(t);
    for (int64_t i = 0; i < t->n; i++) {
        const long double x = get(t, 0, i);
        const long double g = get(t, 1, i);
        const long double w = get(t, 2, i);
        sum += x;
        squares += (x - mean) * (x - mean);
        sizes += fabsl(x) + (x - mean) * (x - mean) + fabsl(g) * (1 + fabsl(w)) * 4;
        dots[0][0] += g;
        dots[0][1] += g * (x - mean);
        dots[1][0] += g * w;
        dots[1][1] += g * w * (x - mean);
    }
    const double all = (double)sizes;
    check_near(t, "sum", (double)sum, t->loops->sum(t->row[0], t->n), all);
    check_near(t, "squares", (double)squares, t->loops->squares(t->row[0], t->n, mean), all);
    for (int weighted = 0; weighted < 2; weighted++) {
        double got[2] = {3, -5};
        t->loops->dots(t->row[1], t->row[0], weighted ? t->row[2] : NULL, t->n, mean, got);
        check_near(t, "dots, 0", (double)dots[weighted][0] + 3, got[0], all);
        check_near(t, "dots, 1", (double)dots[weighted][1] - 5, got[1], all);
    }
}

/* Results replace row 0; rows 1 to 3 are x, w, b. */
static void check_maps(rows_case *t)
{
    const double mean = 0.75, a = -1.5, b = 0.375, c = 2.25;
    void *y = t->row[0], *x = t->row[1];
    fill(t);
    t->loops->scale(y, x, t->n, a, b);
    for (int64_t i = 0; i < t->n; i++)
        check_near(t, "scale", get(t, 1, i) * a + b, get(t, 0, i), 5);
    memcpy(y, t->row[4], (size_t)t->n * cfx_dtype_size(t->type));
    t->loops->add(y, x, t->n);
    for (int64_t i = 0; i < t->n; i++)
        check_near(t, "add", get(t, 4, i) + get(t, 1, i), get(t, 0, i), 5);
    for (int with = 0; with < 4; with++) {
        void *w = with & 1 ? t->row[2] : NULL, *bias = with & 2 ? t->row[3] : NULL;
        t->loops->affine(y, x, t->n, mean, a, w, bias);
        for (int64_t i = 0; i < t->n; i++)
            check_near(t, "affine",
                       (get(t, 1, i) - mean) * a * (w ? get(t, 2, i) : 1) +
                           (bias ? get(t, 3, i) : 0), get(t, 0, i), 10);
        t->loops->blend(y, t->row[3], x, w, t->n, mean, a, b, c);
        for (int64_t i = 0; i < t->n; i++)
            check_near(t, "blend",
                       get(t, 3, i) * (w ? get(t, 2, i) : 1) * a + (get(t, 1, i) - mean) * b + c,
                       get(t, 0, i), 10);
    }
    memcpy(y, t->row[4], (size_t)t->n * cfx_dtype_size(t->type));
    memcpy(t->row[2], t->row[5], (size_t)t->n * cfx_dtype_size(t->type));
    t->loops->gather(y, t->row[2], t->row[3], x, t->n, mean, a);
    for (int64_t i = 0; i < t->n; i++) {
        check_near(t, "gather, weight", get(t, 4, i) + get(t, 3, i) * (get(t, 1, i) - mean) * a,
                   get(t, 0, i), 15);
        check_near(t, "gather, bias", get(t, 5, i) + get(t, 3, i), get(t, 2, i), 5);
    }
}

/* The row as a matrix of some rows, the rest of it left out. */
static void check_columns(rows_case *t)
{
    static const int64_t heights[] = {1, 3, 64, 65, 130};
    fill(t);
    for (size_t h = 0; h < sizeof heights / sizeof *heights; h++) {
        const int64_t rows = heights[h];
        const int64_t n = t->n / rows;
        double *sums = calloc((size_t)n + 1, sizeof *sums);
        for (int means = 0; means < 2; means++) {
            memset(sums, 0, (size_t)n * sizeof *sums);
            t->loops->columns(sums, t->row[0], rows, n, means ? t->row[1] : NULL);
            for (int64_t j = 0; j < n; j++) {
                long double want = 0;
                for (int64_t i = 0; i < rows; i++) {
                    const long double x = get(t, 0, i * n + j);
                    const long double d = x - get(t, 1, j);
                    want += means ? d * d : x;
                }
                check_near(t, "columns", (double)want, sums[j], 16 * (double)rows);
            }
        }
        free(sums);
    }
}

static void check_rows(cfx_runtime *rt, cfx_dtype type, int64_t n)
{
    const cfxi_float_rows of = {rt, type};
    rows_case t = {.loops = cfxi_reduce_rows(&of), .type = type, .n = n};
    for (int r = 0; r < ROWS; r++) {
        t.memory[r] = malloc((size_t)(n + OFFSET) * cfx_dtype_size(type));
        t.row[r] = t.memory[r] + OFFSET * cfx_dtype_size(type);
    }
    check_sums(&t);
    check_maps(&t);
    check_columns(&t);
    for (int r = 0; r < ROWS; r++)
        free(t.memory[r]);
}

static void for_each_isa(void (*check)(cfx_runtime *rt, int64_t n))
{
    for (int isa = 0; isa < CFX_ISA_COUNT; isa++) {
        const cfx_runtime_options o = {.threads = 1, .limit_isa = true, .isa = (cfx_isa)isa};
        cfx_runtime *rt = cfx_runtime_new(&o, NULL);
        REQUIRE(rt);
        const int before = check_failures;
        for (size_t i = 0; i < LENGTHS && check_failures == before; i++)
            check(rt, lengths[i]);
        if (check_failures != before)
            printf("    on %s\n", cfx_isa_name(cfx_runtime_isa(rt)));
        cfx_runtime_free(rt);
    }
}

static void check_floats_and_doubles(cfx_runtime *rt, int64_t n)
{
    check_rows(rt, CFX_DTYPE_FLOAT32, n);
    check_rows(rt, CFX_DTYPE_FLOAT64, n);
}

TEST(rows_of_both_types) { for_each_isa(check_floats_and_doubles); }

/* ---- loops over floats --------------------------------------------------------------------- */

static float *floats_of(int64_t n)
{
    float *x = malloc((size_t)(n + OFFSET) * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[OFFSET + i] = (float)number();
    return x;
}

static bool is_near(double want, double got, double sizes)
{
    return fabs(want - got) <= 1e-6 * (1 + sizes);
}

static void check_extremes(const cfxi_floats *f, const float *x, int64_t n)
{
    float most = x[0], least = x[0];
    double mean = 0.5, spread = 0;
    for (int64_t i = 0; i < n; i++) {
        most = x[i] > most ? x[i] : most;
        least = x[i] < least ? x[i] : least;
        spread += (x[i] - mean) * (x[i] - mean);
    }
    CHECK(f->most(x, n) == most);
    CHECK(f->peak(x, n) == most);
    CHECK(f->least(x, n) == least);
    CHECK(fabs(f->spread(x, n, mean) - spread) <= 1e-13 * (1 + spread));
}

static void check_exponentials(const cfxi_floats *f, const float *x, float *y, int64_t n)
{
    const float scale = 1.75f, less = 0.625f;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)x[i] * scale - less);
    CHECK(is_near(sum, f->exponentials(NULL, x, n, scale, less), sum));
    CHECK(is_near(sum, f->exponentials(y, x, n, scale, less), sum));
    for (int64_t i = 0; i < n; i++) {
        const double want = exp((double)x[i] * scale - less);
        if (!CHECK(is_near(want, y[i], want)))
            return;
    }
}

static void check_elements(const cfxi_floats *f, const float *x, float *y, int64_t n)
{
    static double sums[LONGEST];
    memset(sums, 0, sizeof sums);
    memset(y, 0, (size_t)n * sizeof *y);
    f->most_row(y, x, n);
    for (int64_t i = 0; i < n; i++)
        CHECK(y[i] == (x[i] > 0 ? x[i] : 0));
    f->least_row(y, x, n);
    for (int64_t i = 0; i < n; i++)
        CHECK(y[i] == x[i]);
    f->scale_each(y, x, n);
    f->shift_each(y, x, n);
    f->add(sums, x, n);
    f->add_four(sums, x, y, x, y, n);
    for (int64_t i = 0; i < n; i++) {
        const double want = (double)x[i] * x[i] - x[i];
        CHECK(is_near(want, y[i], 6));
        CHECK(is_near(3.0 * x[i] + 2 * want, sums[i], 24));
    }
}

static void check_floats(cfx_runtime *rt, int64_t n)
{
    const cfxi_floats *f = cfxi_reduce_floats_of(cfx_runtime_isa(rt));
    float *x = floats_of(n);
    float *y = floats_of(n);
    check_extremes(f, x + OFFSET, n);
    check_exponentials(f, x + OFFSET, y + OFFSET, n);
    check_elements(f, x + OFFSET, y + OFFSET, n);
    free(x);
    free(y);
}

TEST(loops_over_floats) { for_each_isa(check_floats); }

/* ---- conversions --------------------------------------------------------------------------- */

/* Numbers between which types differ: fractions, ends of their ranges, and what is beyond. */
static double of_range(int64_t i)
{
    static const double numbers[] = {0, -0.0, 1, -1, 0.5, 1.5, -2.5, 100.7, -100.7, 255, 256, -129,
                                     32767, -32769, 65504, 65520, 1e-7, 6e-8, 1e-40, 2147483647.0,
                                     2147483648.0, -2147483649.0, 1e15, 1e19, -1e19, 3e38, 1e39,
                                     INFINITY, -INFINITY};
    return i % 2 ? number() * 1000 : numbers[i / 2 % (int64_t)(sizeof numbers / sizeof *numbers)];
}

/* Element i as `to` has it, by what C does with numbers in range, and x86 beyond. */
static void convert_one(cfx_dtype to, void *dst, cfx_dtype from, const void *src)
{
    const double x = cfxi_tensor_load_float(from, src);
    if (cfx_dtype_is_float(to))
        cfxi_tensor_store_float(to, dst, x);
    else if (to == CFX_DTYPE_BOOL)
        *(uint8_t *)dst = x != 0;
    else if (!cfx_dtype_is_float(from))
        cfxi_tensor_store_int(to, dst, cfxi_tensor_load_int(from, src));
    else if (to == CFX_DTYPE_INT64)
        *(int64_t *)dst = x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
    else
        cfxi_tensor_store_int(to, dst, x >= -0x1p31 && x < 0x1p31 ? (int64_t)x : INT32_MIN);
}

static const cfx_dtype types[] = {
    CFX_DTYPE_BOOL, CFX_DTYPE_UINT8, CFX_DTYPE_INT8, CFX_DTYPE_INT16, CFX_DTYPE_INT32,
    CFX_DTYPE_INT64, CFX_DTYPE_FLOAT16, CFX_DTYPE_BFLOAT16, CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT64};
enum { TYPES = sizeof types / sizeof *types };

static void check_pair(cfx_isa isa, cfx_dtype to, cfx_dtype from, int64_t n)
{
    const size_t in = cfx_dtype_size(from), out = cfx_dtype_size(to);
    char *src = malloc((size_t)(n + OFFSET) * in);
    char *got = malloc((size_t)(n + OFFSET) * out);
    for (int64_t i = 0; i < n; i++) {
        char *at = src + (size_t)(i + OFFSET) * in;
        const double x = of_range(i);
        if (cfx_dtype_is_float(from))
            cfxi_tensor_store_float(from, at, x);
        else
            cfxi_tensor_store_int(from, at, fabs(x) < 1e18 ? (int64_t)x : i);
        if (from == CFX_DTYPE_BOOL)
            *at = i % 3 == 0;
    }
    cfxi_rt_convert(isa, to, got + OFFSET * out, from, src + OFFSET * in, n);
    for (int64_t i = 0; i < n; i++) {
        char want[8];
        convert_one(to, want, from, src + (size_t)(i + OFFSET) * in);
        if (!CHECK(memcmp(want, got + (size_t)(i + OFFSET) * out, out) == 0)) {
            printf("    %s to %s, %.17g\n", cfx_dtype_name(from), cfx_dtype_name(to),
                   cfxi_tensor_load_float(from, src + (size_t)(i + OFFSET) * in));
            break;
        }
    }
    free(src);
    free(got);
}

static void check_conversions(cfx_runtime *rt, int64_t n)
{
    for (size_t to = 0; to < TYPES && n < 1000; to++)
        for (size_t from = 0; from < TYPES; from++)
            if (to != from)
                check_pair(cfx_runtime_isa(rt), types[to], types[from], n);
}

TEST(conversions) { for_each_isa(check_conversions); }
