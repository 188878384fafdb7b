/* reduce_impl.h - what reductions, scans, orders and losses share: runs of elements in one of four
 * types to compute with, reductions over any dimensions, lanes along one. */
#ifndef CFXI_REDUCE_IMPL_H
#define CFXI_REDUCE_IMPL_H

#include "float_rows.h"
#include "runtime/isa.h"

/* ---- runs (element_run.c) ------------------------------------------------------------------ */

/* Elements are computed with as one of these: 16-bit floats as float, all integers and bool as
 * int64, complex numbers as a pair of doubles. */
typedef enum cfxi_run_type { CFXI_F32, CFXI_F64, CFXI_I64, CFXI_C128 } cfxi_run_type;

enum { CFXI_RUN = 1024 };  /* elements converted at once; 16 bytes each at most */

cfxi_run_type cfxi_reduce_run_type_of(cfx_dtype dtype);
cfx_dtype cfxi_reduce_run_dtype(cfxi_run_type compute);  /* float32, float64, int64, complex128 */
static inline size_t cfxi_reduce_run_size(cfxi_run_type k)
{
    return k == CFXI_F32 ? 4 : k == CFXI_C128 ? 16 : 8;
}
/* n elements from `at`, `stride` bytes apart, into buf. */
void cfxi_reduce_load_run(cfx_isa isa, cfxi_run_type k, void *buf, cfx_dtype dtype, const char *at,
                          int64_t stride, int64_t n);
void cfxi_reduce_store_run(cfx_isa isa, cfxi_run_type k, const void *buf, cfx_dtype dtype, char *at,
                           int64_t stride, int64_t n);
/* The elements where they are, if they are of that type and adjacent; else loaded into buf. */
static inline const void *cfxi_reduce_read_run(cfx_isa isa, cfxi_run_type k, void *buf,
                                               cfx_dtype dtype, const char *at, int64_t stride,
                                               int64_t n)
{
    if (dtype == cfxi_reduce_run_dtype(k) && stride == (int64_t)cfx_dtype_size(dtype))
        return at;
    cfxi_reduce_load_run(isa, k, buf, dtype, at, stride, n);
    return buf;
}

/* ---- shapes (reduce.c) --------------------------------------------------------------------- */

/* Which dimensions argument `arg` (int, int[], None: all; an empty list: all if `empty_is_all`)
 * names of a tensor with ndim: bit d. */
cfx_status cfxi_reduce_reduced_dims(cfxi_call *c, size_t arg, size_t ndim, bool empty_is_all,
                                    uint32_t *mask);
/* Result i: `x` without the dimensions of the mask (of size 1 if keepdim). */
cfx_status cfxi_reduce_reduced_result(cfxi_call *c, size_t i, cfx_dtype dtype, const cfx_tensor *x,
                                      uint32_t mask, bool keepdim);
/* CFX_E_INDEX in PyTorch's words if a dimension of the mask has no elements, so that there is
 * nothing to choose from. */
cfx_status cfxi_reduce_reduced_not_empty(cfxi_call *c, const cfx_tensor *x, uint32_t mask,
                                         const char *name);

/* ---- loops over floats (floats.h) ---------------------------------------------------------- */

/* Of n adjacent floats, by the machine. */
typedef struct cfxi_floats {
    cfxi_rows rows, rows_of_doubles;
    void (*add)(double *acc, const float *x, int64_t n);  /* acc[i] += x[i] */
    void (*add_four)(double *acc, const float *x, const float *y, const float *z, const float *w,
                     int64_t n);                          /* acc[i] += x[i] + y[i] + z[i] + w[i] */
    float (*most)(const float *x, int64_t n);             /* n >= 1; NaN if there is one */
    float (*least)(const float *x, int64_t n);
    void (*most_row)(float *acc, const float *x, int64_t n);  /* element by element */
    void (*least_row)(float *acc, const float *x, int64_t n);
    /* The sum of (x - mean)^2 as double has it: rows.squares is of float. */
    double (*spread)(const float *x, int64_t n, double mean);
    void (*shift_each)(float *y, const float *by, int64_t n);
    void (*scale_each)(float *y, const float *by, int64_t n);
    float (*peak)(const float *x, int64_t n);  /* the greatest; NaN may be passed over */
    /* y = e^(x * scale - less), and their sum; y may be x, and NULL: only the sum. */
    double (*exponentials)(float *y, const float *x, int64_t n, float scale, float less);
} cfxi_floats;

CFXI_ISA_TABLES(cfxi_floats, cfxi_reduce_floats)
const cfxi_floats *cfxi_reduce_floats_of(cfx_isa isa);  /* (element_run.c) */

/* ---- reductions (reduce.c) ----------------------------------------------------------------- */

typedef struct cfxi_reduction cfxi_reduction;

/* How elements become one number. Accumulators are plain memory; elements come in the order of
 * the reduced dimension if there is one, and in no order if there are several. */
typedef struct cfxi_reducer {
    size_t size;       /* bytes of an accumulator, at most CFXI_ACCUMULATOR */
    void (*begin)(const cfxi_reduction *k, void *acc);
    /* n elements into one accumulator; `first` is the number of the first. */
    void (*run)(const cfxi_reduction *k, void *acc, const void *x, int64_t n, int64_t first);
    /* One element into each of n accumulators, side by side; `first` is their number. */
    void (*row)(const cfxi_reduction *k, void *acc, const void *x, int64_t n, int64_t first);
    /* Four rows at once, `stride` bytes apart, of elements that are not converted; NULL: none. */
    void (*four)(const cfxi_reduction *k, void *acc, const char *x, int64_t stride, int64_t n);
    void (*merge)(const cfxi_reduction *k, void *acc, const void *later);
    void (*store)(const cfxi_reduction *k, const void *acc, int64_t i);  /* to result element i */
} cfxi_reducer;

enum { CFXI_ACCUMULATOR = 32 };

struct cfxi_reduction {
    const cfxi_reducer *reducer;
    cfxi_run_type compute;
    cfx_runtime *rt;
    const cfxi_floats *floats;
    cfx_tensor *out[2];  /* contiguous */
    int64_t count;       /* elements for each result */
    double number;       /* what the reducer wants to know: correction, sign */
};

/* Reduces the dimensions of the mask; results are written by the reducer. k->count, k->rt and
 * k->floats are set here. */
cfx_status cfxi_reduce(cfxi_call *c, const cfx_tensor *x, uint32_t mask, cfxi_reduction *k);

/* ---- lanes (reduce.c) ---------------------------------------------------------------------- */

/* fn is told where lane number `i` along dimension `dim` of each tensor begins (at[t], strides are
 * the tensors' own), on the pool. Tensors differ in size only along `dim`; `scratch` is memory of
 * `scratch_size` bytes that no other thread uses meanwhile. */
typedef void cfxi_lane_fn(void *ctx, char *const at[], void *scratch, int64_t i);
cfx_status cfxi_reduce_lanes(cfxi_call *c, cfx_tensor *const *tensors, size_t n, size_t dim,
                             int64_t cost, size_t scratch_size, cfxi_lane_fn *fn, void *ctx);

#endif
