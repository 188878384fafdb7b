/* sort.c - ranks of elements, and a stable sort by them: by digits, or by insertion if they are
 * few. */
#include "sort_impl.h"

/* ---- ranks --------------------------------------------------------------------------------- */

static uint64_t key_f32(float f)
{
    union { float f; uint32_t u; } bits = {f};
    if (f != f)
        return UINT32_MAX;
    if (f == 0)
        bits.u = 0;
    return bits.u ^ (bits.u >> 31 ? UINT32_MAX : UINT32_C(1) << 31);
}

static uint64_t key_f64(double f)
{
    union { double f; uint64_t u; } bits = {f};
    if (f != f)
        return UINT64_MAX;
    if (f == 0)
        bits.u = 0;
    return bits.u ^ (bits.u >> 63 ? UINT64_MAX : UINT64_C(1) << 63);
}

bool cfxi_reduce_key_is_nan(cfx_dtype dtype, uint64_t key)
{
    return cfx_dtype_is_float(dtype) &&
           key == (dtype == CFX_DTYPE_FLOAT64 ? UINT64_MAX : UINT32_MAX);
}

void cfxi_reduce_rank(cfx_runtime *rt, cfxi_ranked *out, cfx_dtype dtype, const char *at,
                      int64_t stride, int64_t n, bool descending)
{
    _Alignas(64) double buf[CFXI_RUN];
    cfxi_run_type type = cfxi_reduce_run_type_of(dtype);
    uint64_t flip = !descending ? 0 : type == CFXI_F32 ? UINT32_MAX : UINT64_MAX;
    for (int64_t first = 0; first < n; first += CFXI_RUN) {
        int64_t count = n - first < CFXI_RUN ? n - first : CFXI_RUN;
        const void *x = cfxi_reduce_read_run(rt->isa, type, buf, dtype, at + first * stride, stride,
                                             count);
        for (int64_t i = 0; i < count; i++) {
            uint64_t key = type == CFXI_F32   ? key_f32(((const float *)x)[i])
                           : type == CFXI_F64 ? key_f64(((const double *)x)[i])
                                              : ((const uint64_t *)x)[i] ^ UINT64_C(1) << 63;
            out[first + i] = (cfxi_ranked){key ^ flip, first + i};
        }
    }
}

/* ---- sorting ------------------------------------------------------------------------------- */

enum { FEW = 40, DIGIT = 8, DIGITS = 1 << DIGIT };

static void insert_sort(cfxi_ranked *x, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        cfxi_ranked one = x[i];
        int64_t at = i;
        for (; at > 0 && x[at - 1].key > one.key; at--)
            x[at] = x[at - 1];
        x[at] = one;
    }
}

/* Elements in the order of one digit, from `from` to `to`. */
static void sort_digit(cfxi_ranked *to, const cfxi_ranked *from, int64_t n, int shift)
{
    int64_t first[DIGITS] = {0};
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++)
        first[from[i].key >> shift & (DIGITS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        int64_t count = first[d];
        first[d] = at;
        at += count;
    }
    for (int64_t i = 0; i < n; i++)
        to[first[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
}

cfxi_ranked *cfxi_reduce_sort_ranked(cfxi_ranked *x, cfxi_ranked *spare, int64_t n)
{
    uint64_t differ = 0;
    bool sorted = true;
    for (int64_t i = 1; i < n; i++) {
        differ |= x[i].key ^ x[0].key;
        sorted = sorted && x[i - 1].key <= x[i].key;
    }
    if (sorted)
        return x;
    if (n <= FEW) {
        insert_sort(x, n);
        return x;
    }
    for (int shift = 0; shift < 64; shift += DIGIT) {
        if (!(differ >> shift & (DIGITS - 1)))
            continue;
        sort_digit(spare, x, n, shift);
        cfxi_ranked *swap = x;
        x = spare;
        spare = swap;
    }
    return x;
}
