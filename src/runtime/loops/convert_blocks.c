/* convert_blocks.c - many elements from one type to another.
 *
 * Pairs that matter have a loop of their own (convert_vector.h); the others go through a type in
 * between, a block at a time.
 */
#include "convert.h"

static CFXI_ISA_CHOICE(cfxi_converts, converts_of, cfxi_rt_converts)

static cfxi_convert_fn *direct(cfx_isa isa, cfx_dtype to, cfx_dtype from)
{
    return to <= CFX_DTYPE_COMPLEX128 && from <= CFX_DTYPE_COMPLEX128
               ? converts_of(isa)->fn[from][to] : NULL;
}

/* Where a pair without a loop goes through. */
static cfx_dtype between(cfx_dtype to, cfx_dtype from)
{
    bool half_to = to == CFX_DTYPE_FLOAT16 || to == CFX_DTYPE_BFLOAT16;
    if (from == CFX_DTYPE_FLOAT16 || from == CFX_DTYPE_BFLOAT16)
        return CFX_DTYPE_FLOAT32;
    if (from == CFX_DTYPE_COMPLEX64)
        return CFX_DTYPE_COMPLEX128;
    if (from == CFX_DTYPE_COMPLEX128)
        return CFX_DTYPE_FLOAT64;
    return half_to                       ? CFX_DTYPE_FLOAT32
           : to == CFX_DTYPE_COMPLEX64   ? CFX_DTYPE_COMPLEX128
           : to == CFX_DTYPE_COMPLEX128  ? CFX_DTYPE_FLOAT64
                                         : CFX_DTYPE_INT64;
}

enum { BLOCK = 256 };

/* Types that are seldom: element by element. */
static void convert_each(cfx_dtype to, char *dst, cfx_dtype from, const char *src, int64_t n)
{
    const int64_t in = (int64_t)cfx_dtype_size(from);
    const int64_t out = (int64_t)cfx_dtype_size(to);
    const bool whole = !cfx_dtype_is_float(from) && !cfx_dtype_is_float(to);
    for (int64_t i = 0; i < n; i++) {
        if (whole)
            cfxi_tensor_store_int(to, dst + i * out, cfxi_tensor_load_int(from, src + i * in));
        else
            cfxi_tensor_store_float(to, dst + i * out, cfxi_tensor_load_float(from, src + i * in));
    }
}

void cfxi_rt_convert(cfx_isa isa, cfx_dtype to, void *dst, cfx_dtype from, const void *src,
                     int64_t n)
{
    _Alignas(CFXI_ALIGN) char middle[BLOCK * 2 * sizeof(double)];
    if (to == from) {
        memmove(dst, src, (size_t)n * cfx_dtype_size(to));
        return;
    }
    cfxi_convert_fn *fn = direct(isa, to, from);
    if (fn) {
        fn(n, src, dst);
        return;
    }
    if ((cfxi_tensor_dtype_is_rare(to) || cfxi_tensor_dtype_is_rare(from)) &&
        !cfx_dtype_is_complex(from) && !cfx_dtype_is_complex(to)) {
        convert_each(to, dst, from, src, n);
        return;
    }
    cfx_dtype mid = between(to, from);
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t some = n - i < BLOCK ? n - i : BLOCK;
        cfxi_rt_convert(isa, mid, middle, from,
                        (const char *)src + (size_t)i * cfx_dtype_size(from), some);
        cfxi_rt_convert(isa, to, (char *)dst + (size_t)i * cfx_dtype_size(to), mid, middle, some);
    }
}
