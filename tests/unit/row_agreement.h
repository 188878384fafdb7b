/* row_agreement.h - rows of the operator table, computed by the reference and by every instruction
 * set of the machine, over random arguments: they must agree. */
#ifndef CFX_TESTS_ROW_AGREEMENT_H
#define CFX_TESTS_ROW_AGREEMENT_H

#include "runtime/runtime_impl.h"

#include "test_alloc.h"

#include <math.h>

static uint64_t draw_state = 11;
static float draw_scale = 1;  /* of random floats, which are up to 2.9 times that */

static inline int64_t draw(int64_t n)
{
    draw_state = draw_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(draw_state >> 33) % n;
}

/* How a tensor lies in memory: dimensions in this order, outermost first (NULL: as they come), and
 * `gap` elements between one row of the innermost and the next. */
typedef struct lie {
    const int *order;
    int64_t gap;
} lie;

/* Elements of `item` bytes from the first to the last of a tensor; its strides. */
static inline int64_t lay_out(const int64_t *sizes, size_t ndim, lie l, int64_t item,
                              int64_t *strides)
{
    int64_t next = 1;
    int64_t last = 0;
    for (size_t i = ndim; i-- > 0;) {
        const size_t d = l.order ? (size_t)l.order[i] : i;
        strides[d] = next * item;
        last += (sizes[d] - 1) * next;
        next = next * sizes[d] + (i == ndim - 1 ? l.gap : 0);
    }
    return last < 0 ? 1 : last + 1;
}

/* Floats in memory of exactly their size, so that reading past the end is caught. */
static inline cfx_datum random_floats(const int64_t *sizes, size_t ndim, lie l)
{
    int64_t strides[CFX_MAX_DIMS];
    const int64_t count = lay_out(sizes, ndim, l, (int64_t)sizeof(float), strides);
    float *data = malloc((size_t)count * sizeof *data);
    for (int64_t i = 0; i < count; i++)
        data[i] = draw_scale * (float)(draw(4001) - 2000) / 700;
    return cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, strides, ndim, data,
                                                   false, free, data, NULL, NULL));
}

/* Likewise all values of uint8 or int8. */
static inline cfx_datum random_bytes(cfx_dtype dtype, const int64_t *sizes, size_t ndim, lie l)
{
    int64_t strides[CFX_MAX_DIMS];
    const int64_t count = lay_out(sizes, ndim, l, 1, strides);
    uint8_t *data = malloc((size_t)count);
    for (int64_t i = 0; i < count; i++)
        data[i] = (uint8_t)draw(256);
    return cfx_datum_tensor(cfx_tensor_from_memory(dtype, sizes, strides, ndim, data, false, free,
                                                   data, NULL, NULL));
}

/* Puts `x` somewhere among the elements. */
static inline void spoil(cfx_datum d, float x)
{
    const cfx_tensor *t = d.as.tensor;
    char *at = t->data;
    for (size_t i = 0; i < t->ndim; i++)
        at += draw(t->size[i]) * t->stride[i];
    *(float *)at = x;
}

static inline cfx_datum random_bools(const int64_t *sizes, size_t ndim)
{
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_BOOL, sizes, ndim, NULL, NULL);
    for (int64_t i = 0; i < cfxi_tensor_numel(t); i++)
        t->data[i] = draw(4) > 0;
    return cfx_datum_tensor(t);
}

static inline cfx_datum int_list(const int64_t *x, size_t n)
{
    cfx_datum items[8];
    for (size_t i = 0; i < n; i++)
        items[i] = cfx_datum_int(x[i]);
    return cfx_datum_seq(CFX_DATUM_LIST, items, n, NULL, NULL);
}

static inline void drop_all(cfx_datum *args, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(args[i]);
}

/* Whether two results are equal, up to `within` relative to the greater of the element and 1. */
static inline bool results_agree(cfx_datum want, cfx_datum got, double within)
{
    const cfx_tensor *a = want.as.tensor;
    const cfx_tensor *b = got.as.tensor;
    if (want.kind != CFX_DATUM_TENSOR || got.kind != CFX_DATUM_TENSOR)
        return want.kind == got.kind;
    bool same = a->ndim == b->ndim && a->dtype == b->dtype;
    for (size_t d = 0; same && d < a->ndim; d++)
        same = a->size[d] == b->size[d] && a->stride[d] == b->stride[d];
    const int64_t n = same ? cfxi_tensor_numel(a) : 0;
    for (int64_t i = 0; same && i < n; i++) {
        const char *at[2] = {a->data, b->data};
        int64_t rest = i;
        for (size_t d = a->ndim; d-- > 0; rest /= a->size[d])
            for (int k = 0; k < 2; k++)
                at[k] += rest % a->size[d] * (k ? b : a)->stride[d];
        const double x = cfxi_tensor_load_float((cfx_dtype)a->dtype, at[0]);
        const double y = cfxi_tensor_load_float((cfx_dtype)b->dtype, at[1]);
        same = isnan(x) ? isnan(y) : x == y || fabs(x - y) <= within * (1 + fabs(x));
        if (!same)
            printf("    element %lld: want %.9g, got %.9g\n", (long long)i, x, y);
    }
    return same;
}

/* Runs a row in the reference, and on each instruction set with one thread and with three. */
static inline void check_row(cfx_operator op, const cfx_datum *args, size_t n, double within)
{
    const cfx_runtime_options plain = {.reference = true};
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(&plain, NULL);
    cfx_datum want = cfx_operator_run(rt, op, args, n, &err);
    cfx_runtime_free(rt);
    if (!CHECK(want.kind != CFX_DATUM_INVALID))
        printf("    %s\n", err.message);
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++)
        for (unsigned threads = 1; threads <= 3; threads += 2) {
            const cfx_runtime_options o = {.threads = threads, .limit_isa = true,
                                           .isa = (cfx_isa)isa};
            rt = cfx_runtime_new(&o, NULL);
            cfx_datum got = cfx_operator_run(rt, op, args, n, &err);
            bool same = got.kind != CFX_DATUM_INVALID;
            size_t count;
            const cfx_datum *items = cfx_datum_items(want, &count);
            for (size_t i = 0; same && want.kind == CFX_DATUM_TUPLE && i < count; i++)
                same = results_agree(items[i], cfx_datum_items(got, &count)[i], within);
            same = same && results_agree(want, got, within);
            if (!CHECK(same))
                printf("    %s on %s, %u threads\n", cfx_operator_name(op),
                       cfx_isa_name((cfx_isa)isa), threads);
            cfx_datum_release(got);
            cfx_runtime_free(rt);
        }
    cfx_datum_release(want);
}

#endif
