/* byte_rows.c - rows of 8-bit integers by vectors, against loops over the words of
 * docs/quantization.md: odd sizes, every layout, broadcast operands, zero points at both ends,
 * ranges that cut, NaN and infinities, on each instruction set. Every bit must be the same. */
#include "row_agreement.h"

static const int last[] = {0, 2, 3, 1};

/* A type, and what numbers of it mean. */
typedef struct form {
    cfx_dtype dtype;
    double scale;
    int64_t zero, low, high;
} form;

static form random_form(void)
{
    form f = {.dtype = draw(2) ? CFX_DTYPE_INT8 : CFX_DTYPE_UINT8,
              .scale = (double)(1 + draw(1000)) / 3000};
    const int64_t least = f.dtype == CFX_DTYPE_INT8 ? -128 : 0;
    const int64_t zeros[] = {least, least + 255, least + draw(256)};
    f.zero = zeros[draw(3)];
    f.low = draw(3) ? least : f.zero;  /* a relu */
    f.high = draw(4) ? least + 255 : f.low + draw(least + 256 - f.low);
    return f;
}

static int64_t element(const cfx_tensor *t, const int64_t at[4])
{
    const char *x = t->data;
    for (size_t d = 0; d < 4; d++)
        x += (t->size[d] > 1 ? at[d] : 0) * t->stride[d];
    return cfxi_tensor_load_int((cfx_dtype)t->dtype, x);
}

static int64_t requantized(float r, const form *f)
{
    if (isnan(r))
        return f->low;
    r = fminf(fmaxf(r, (float)(f->low - f->zero)), (float)(f->high - f->zero));
    return (int64_t)nearbyintf(r) + f->zero;
}

static cfx_datum bytes(const form *f, const int64_t sizes[4])
{
    return random_bytes(f->dtype, sizes, 4, (lie){draw(3) ? last : NULL, draw(3) ? 0 : 3});
}

static void put_form(cfx_datum *args, const form *f)
{
    args[0] = cfx_datum_float(f->scale);
    args[1] = cfx_datum_int(f->zero);
    args[2] = cfx_datum_int(f->low);
    args[3] = cfx_datum_int(f->high);
    args[4] = cfx_datum_dtype(f->dtype);
}

typedef int64_t expected_fn(const void *ctx, const int64_t at[4]);

/* Runs a row on each instruction set with one thread and with three. */
static void check_elements(cfx_operator op, const cfx_datum *args, size_t n, expected_fn *expected,
                           const void *ctx)
{
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++)
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            const cfx_runtime_options o = {.threads = threads, .limit_isa = true,
                                           .isa = (cfx_isa)isa};
            cfx_error err = {0};
            cfx_runtime *rt = cfx_runtime_new(&o, NULL);
            cfx_datum got = cfx_operator_run(rt, op, args, n, &err);
            if (!CHECK(got.kind == CFX_DATUM_TENSOR)) {
                printf("    %s\n", err.message);
                cfx_runtime_free(rt);
                return;
            }
            bool same = true;
            for (int64_t i = 0; same && i < cfxi_tensor_numel(got.as.tensor); i++) {
                int64_t at[4];
                int64_t rest = i;
                for (size_t d = 4; d-- > 0; rest /= got.as.tensor->size[d])
                    at[d] = rest % got.as.tensor->size[d];
                const int64_t want = expected(ctx, at);
                const int64_t have = element(got.as.tensor, at);
                same = want == have;
                if (!CHECK(same))
                    printf("    %s on %s, element %lld: want %lld, got %lld\n",
                           cfx_operator_name(op), cfx_isa_name((cfx_isa)isa), (long long)i,
                           (long long)want, (long long)have);
            }
            cfx_datum_release(got);
            cfx_runtime_free(rt);
        }
}

/* ---- two operands -------------------------------------------------------------------------- */

typedef struct pair {
    bool adds;
    form x, y, out;
    const cfx_tensor *a, *b;
} pair;

static int64_t of_pair(const void *ctx, const int64_t at[4])
{
    const pair *p = ctx;
    const int64_t x = element(p->a, at) - p->x.zero;
    const int64_t y = element(p->b, at) - p->y.zero;
    if (p->adds)
        return requantized(fmaf((float)x, (float)(p->x.scale / p->out.scale),
                                (float)y * (float)(p->y.scale / p->out.scale)), &p->out);
    return requantized((float)(x * y) * (float)(p->x.scale * p->y.scale / p->out.scale), &p->out);
}

TEST(sums_and_products)
{
    for (int i = 0; i < 80; i++) {
        pair p = {draw(2), random_form(), random_form(), random_form(), NULL, NULL};
        const int64_t s[4] = {1 + draw(2), 1 + draw(i < 20 ? 150 : 30), 1 + draw(9), 1 + draw(9)};
        int64_t other[4];
        for (int d = 0; d < 4; d++)
            other[d] = draw(5) ? s[d] : 1;
        cfx_datum args[11] = {bytes(&p.x, s), cfx_datum_float(p.x.scale), cfx_datum_int(p.x.zero),
                              bytes(&p.y, other), cfx_datum_float(p.y.scale),
                              cfx_datum_int(p.y.zero)};
        put_form(args + 6, &p.out);
        p.a = args[0].as.tensor;
        p.b = args[3].as.tensor;
        check_elements(p.adds ? CFX_OPID_integer_add : CFX_OPID_integer_mul, args, 11, of_pair, &p);
        drop_all(args, 4);
    }
}

/* ---- one operand --------------------------------------------------------------------------- */

typedef struct one {
    form x, out;
    const cfx_tensor *a, *table;
} one;

static int64_t of_table(const void *ctx, const int64_t at[4])
{
    const one *p = ctx;
    const int64_t i = element(p->a, at) - (p->x.dtype == CFX_DTYPE_INT8 ? -128 : 0);
    return cfxi_tensor_load_int((cfx_dtype)p->table->dtype, p->table->data + i);
}

TEST(tables)
{
    for (int i = 0; i < 40; i++) {
        one p = {random_form(), random_form(), NULL, NULL};
        const int64_t s[4] = {1 + draw(2), 1 + draw(200), 1 + draw(9), 1 + draw(9)};
        const int64_t all = 256;
        cfx_datum args[] = {bytes(&p.x, s), random_bytes(p.out.dtype, &all, 1, (lie){NULL, 0})};
        p.a = args[0].as.tensor;
        p.table = args[1].as.tensor;
        check_elements(CFX_OPID_integer_table, args, 2, of_table, &p);
        drop_all(args, 2);
    }
}

static int64_t of_floats(const void *ctx, const int64_t at[4])
{
    const one *p = ctx;
    const char *x = p->a->data;
    for (size_t d = 0; d < 4; d++)
        x += at[d] * p->a->stride[d];
    const float number = *(const float *)(const void *)x * (float)(1 / p->x.scale);
    return isnan(number) ? 0 : requantized(number, &p->x);
}

TEST(to_integers)
{
    const float special[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e38f, -1e38f};
    for (int i = 0; i < 80; i++) {
        one p = {.x = random_form()};
        const int64_t s[4] = {1 + draw(2), 1 + draw(i < 20 ? 150 : 30), 1 + draw(9), 1 + draw(9)};
        const lie l = {draw(3) ? last : NULL, draw(3) ? 0 : 3};
        cfx_datum args[6] = {random_floats(s, 4, l)};
        put_form(args + 1, &p.x);
        p.a = args[0].as.tensor;
        for (int64_t k = draw(4); k > 0; k--)
            spoil(args[0], special[draw(6)]);
        check_elements(CFX_OPID_quantize_per_tensor, args, 6, of_floats, &p);
        drop_all(args, 1);
    }
}

/* The floats are read as bits. */
static void check_from_integers(const form *f, cfx_datum x)
{
    const cfx_tensor *a = x.as.tensor;
    cfx_datum args[6] = {x};
    put_form(args + 1, f);
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++) {
        const cfx_runtime_options o = {.threads = 1, .limit_isa = true, .isa = (cfx_isa)isa};
        cfx_runtime *rt = cfx_runtime_new(&o, NULL);
        cfx_datum got = cfx_operator_run(rt, CFX_OPID_dequantize_per_tensor, args, 6, NULL);
        REQUIRE(got.kind == CFX_DATUM_TENSOR);
        const cfx_tensor *y = got.as.tensor;
        bool same = true;
        for (int64_t i = 0; same && i < cfxi_tensor_numel(y); i++) {
            int64_t at[4];
            int64_t rest = i;
            const char *there = y->data;
            for (size_t d = 4; d-- > 0; rest /= y->size[d]) {
                at[d] = rest % y->size[d];
                there += at[d] * y->stride[d];
            }
            const float want = (float)(element(a, at) - f->zero) * (float)f->scale;
            same = memcmp(&want, there, sizeof want) == 0;
        }
        CHECK(same);
        cfx_datum_release(got);
        cfx_runtime_free(rt);
    }
}

TEST(from_integers)
{
    for (int i = 0; i < 40; i++) {
        const form f = random_form();
        const int64_t s[4] = {1 + draw(2), 1 + draw(i < 20 ? 150 : 30), 1 + draw(9), 1 + draw(9)};
        cfx_datum x = bytes(&f, s);
        check_from_integers(&f, x);
        cfx_datum_release(x);
    }
}

/* ---- means --------------------------------------------------------------------------------- */

typedef struct window {
    form x, out;
    const cfx_tensor *a;
    int64_t kernel[2], stride[2], before[2];
    bool mean;  /* of whole planes */
    bool counts_padding;
    int64_t divisor;  /* or 0 */
} window;

static int64_t of_window(const void *ctx, const int64_t at[4])
{
    const window *w = ctx;
    int64_t sum = 0, inside = 0, begin[2], count = 1;
    for (int d = 0; d < 2; d++) {
        const int64_t size = w->a->size[2 + d];
        begin[d] = w->mean ? 0 : at[2 + d] * w->stride[d] - w->before[d];
        const int64_t end = begin[d] + w->kernel[d];
        count *= (end < size + w->before[d] ? end : size + w->before[d]) - begin[d];
    }
    for (int64_t y = begin[0]; y < begin[0] + w->kernel[0]; y++)
        for (int64_t x = begin[1]; x < begin[1] + w->kernel[1]; x++)
            if (y >= 0 && x >= 0 && y < w->a->size[2] && x < w->a->size[3]) {
                const int64_t from[4] = {at[0], at[1], y, x};
                sum += element(w->a, from) - w->x.zero;
                inside++;
            }
    if (!w->counts_padding)
        count = inside;
    if (w->divisor)
        count = w->divisor;
    return requantized((float)sum * (float)(w->x.scale / (w->out.scale * (double)count)), &w->out);
}

TEST(means)
{
    for (int i = 0; i < 60; i++) {
        window w = {.x = random_form(), .out = random_form(), .mean = true};
        const int64_t s[4] = {1 + draw(2), 1 + draw(i < 20 ? 600 : 30), 1 + draw(9), 1 + draw(40)};
        const int64_t planes[] = {2, 3};
        cfx_datum args[10] = {bytes(&w.x, s), cfx_datum_float(w.x.scale), cfx_datum_int(w.x.zero),
                              int_list(planes, 2), cfx_datum_bool(true)};
        put_form(args + 5, &w.out);
        w.a = args[0].as.tensor;
        w.kernel[0] = s[2];
        w.kernel[1] = s[3];
        check_elements(CFX_OPID_integer_mean, args, 10, of_window, &w);
        drop_all(args, 4);
    }
}

TEST(windows)
{
    for (int i = 0; i < 60; i++) {
        window w = {.x = random_form(), .out = random_form(), .counts_padding = draw(2),
                    .divisor = draw(3) ? 0 : 1 + draw(7)};
        const int64_t s[4] = {1 + draw(2), 1 + draw(i < 10 ? 600 : 40), 1 + draw(9), 1 + draw(12)};
        for (int d = 0; d < 2; d++) {
            w.kernel[d] = 1 + draw(s[2 + d] < 4 ? s[2 + d] : 4);
            w.stride[d] = 1 + draw(3);
            w.before[d] = draw(w.kernel[d] / 2 + 1);
        }
        cfx_datum args[14] = {bytes(&w.x, s), cfx_datum_float(w.x.scale), cfx_datum_int(w.x.zero),
                              int_list(w.kernel, 2), int_list(w.stride, 2), int_list(w.before, 2),
                              cfx_datum_bool(draw(2)), cfx_datum_bool(w.counts_padding),
                              w.divisor ? cfx_datum_int(w.divisor)
                                        : cfx_datum_scalar(CFX_DATUM_NONE, 0)};
        put_form(args + 9, &w.out);
        w.a = args[0].as.tensor;
        check_elements(CFX_OPID_integer_avg_pool, args, 14, of_window, &w);
        drop_all(args, 6);
    }
}

/* More elements than 32 bits can sum up. They are the same eight ones, again and again. */
static cfx_datum many(int64_t rows)
{
    const int64_t eight[] = {1, 8, 1, 1}, sizes[] = {1, 8, 1, rows}, strides[] = {0, 1, 0, 0};
    cfx_tensor *few = cfx_tensor_new(CFX_DTYPE_UINT8, eight, 4, NULL, NULL);
    memset(cfx_tensor_data(few), 255, 8);
    cfx_tensor *all = cfx_tensor_view(few, CFX_DTYPE_UINT8, sizes, strides, 4, 0, NULL);
    cfx_tensor_release(few);
    return cfx_datum_tensor(all);
}

static void check_all_255(cfx_operator op, const cfx_datum *args, size_t n)
{
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.threads = 1}, NULL);
    cfx_datum y = cfx_operator_run(rt, op, args, n, NULL);
    CHECK_INT_EQ(8, cfx_tensor_numel(y.as.tensor));
    for (int64_t i = 0; i < 8; i++)
        CHECK_INT_EQ(255, element(y.as.tensor, (int64_t[]){0, i, 0, 0}));
    cfx_datum_release(y);
    cfx_runtime_free(rt);
}

TEST(sums_beyond_32_bits)
{
    const form f = {CFX_DTYPE_UINT8, 1, 0, 0, 255};
    const int64_t rows = 8500000, last_dim = 3;
    const int64_t kernel[] = {1, rows}, ones[] = {1, 1}, none[] = {0, 0};
    cfx_datum mean[10] = {many(rows), cfx_datum_float(1), cfx_datum_int(0), int_list(&last_dim, 1),
                          cfx_datum_bool(true)};
    put_form(mean + 5, &f);
    check_all_255(CFX_OPID_integer_mean, mean, 10);
    cfx_datum pool[14] = {many(rows), cfx_datum_float(1), cfx_datum_int(0), int_list(kernel, 2),
                          int_list(ones, 2), int_list(none, 2), cfx_datum_bool(false),
                          cfx_datum_bool(true), cfx_datum_scalar(CFX_DATUM_NONE, 0)};
    put_form(pool + 9, &f);
    check_all_255(CFX_OPID_integer_avg_pool, pool, 14);
    drop_all(mean, 4);
    drop_all(pool, 6);
}
