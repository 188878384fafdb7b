/* promote.c - the type of a computation, by PyTorch's rules. */
#include "tensor_impl.h"

typedef enum category { BOOLEAN, INTEGER, FLOATING, COMPLEX } category;

static category category_of(cfx_dtype d)
{
    return d == CFX_DTYPE_BOOL       ? BOOLEAN
           : cfx_dtype_is_complex(d) ? COMPLEX
           : cfx_dtype_is_float(d)   ? FLOATING
                                     : INTEGER;
}

static cfx_dtype complex_of(cfx_dtype d)
{
    return d == CFX_DTYPE_FLOAT64 || d == CFX_DTYPE_COMPLEX128 ? CFX_DTYPE_COMPLEX128
                                                               : CFX_DTYPE_COMPLEX64;
}

/* uint8 and a signed type meet in the next wider signed type. */
static cfx_dtype promote_integers(cfx_dtype a, cfx_dtype b)
{
    if (a == CFX_DTYPE_UINT8)
        return b == CFX_DTYPE_INT8 ? CFX_DTYPE_INT16 : b;
    if (b == CFX_DTYPE_UINT8)
        return a == CFX_DTYPE_INT8 ? CFX_DTYPE_INT16 : a;
    return a > b ? a : b;
}

cfx_dtype cfxi_tensor_promote_types(cfx_dtype a, cfx_dtype b)
{
    category ca = category_of(a);
    category cb = category_of(b);
    if (a == b)
        return a;
    if (ca == COMPLEX || cb == COMPLEX)
        return complex_of(a) > complex_of(b) ? complex_of(a) : complex_of(b);
    if (ca != cb)
        return ca > cb ? a : b;
    if (ca == INTEGER)
        return promote_integers(a, b);
    if (cfxi_tensor_dtype_is_float8(a) || cfxi_tensor_dtype_is_float8(b))
        return cfxi_tensor_dtype_is_float8(a) ? b : a;
    bool halves = (a == CFX_DTYPE_FLOAT16 && b == CFX_DTYPE_BFLOAT16) ||
                  (b == CFX_DTYPE_FLOAT16 && a == CFX_DTYPE_BFLOAT16);
    return halves ? CFX_DTYPE_FLOAT32 : a > b ? a : b;
}

/* Numbers stand for the default types: a float is float32, not float64. */
static cfx_dtype number_type(cfx_dtype d)
{
    return d == CFX_DTYPE_FLOAT64      ? CFX_DTYPE_FLOAT32
           : d == CFX_DTYPE_COMPLEX128 ? CFX_DTYPE_COMPLEX64
                                       : d;
}

/* `lower` raises `upper` only by its category; a complex number keeps the precision of floats. */
static cfx_dtype combine(int upper, int lower)
{
    if (upper < 0)
        return (cfx_dtype)lower;
    if (lower < 0)
        return (cfx_dtype)upper;
    cfx_dtype u = (cfx_dtype)upper;
    cfx_dtype l = (cfx_dtype)lower;
    if (category_of(l) <= category_of(u))
        return u;
    if (category_of(l) == COMPLEX && category_of(u) == FLOATING)
        return complex_of(u);
    return l;
}

cfx_dtype cfxi_tensor_promote(const cfx_tensor *const *tensors, size_t n)
{
    int types[3] = {-1, -1, -1};  /* with dimensions, without, numbers */
    for (size_t i = 0; i < n; i++) {
        const cfx_tensor *t = tensors[i];
        if (!t)
            continue;
        int *type = &types[t->number ? 2 : t->ndim == 0];
        cfx_dtype d = t->number ? number_type((cfx_dtype)t->dtype) : (cfx_dtype)t->dtype;
        *type = *type < 0 ? (int)d : (int)cfxi_tensor_promote_types((cfx_dtype)*type, d);
    }
    int low = types[1] < 0 && types[2] < 0 ? -1 : (int)combine(types[1], types[2]);
    return combine(types[0], low);
}

bool cfxi_tensor_can_cast(cfx_dtype from, cfx_dtype to)
{
    return category_of(from) <= category_of(to);
}
