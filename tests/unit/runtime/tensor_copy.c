/* tensor_copy.c - copies: converted, broadcast, transposed; the rows that loops are made of. */
#include "runtime/isa.h"

#include "check.h"

#include <stdlib.h>

/* Plain, one element at a time: what a copy must be. */
static bool is_copy(const cfx_tensor *dst, const cfx_tensor *src)
{
    int64_t at[CFX_MAX_DIMS] = {0};
    for (int64_t n = cfxi_tensor_numel(dst); n > 0; n--) {
        const char *to = dst->data;
        const char *from = src->data;
        for (size_t d = 0; d < dst->ndim; d++) {
            size_t skip = (size_t)(dst->ndim - src->ndim);
            to += at[d] * dst->stride[d];
            if (d >= skip && src->size[d - skip] > 1)
                from += at[d] * src->stride[d - skip];
        }
        if (cfxi_tensor_load_float((cfx_dtype)dst->dtype, to) !=
            cfxi_tensor_load_float((cfx_dtype)src->dtype, from))
            return false;
        for (size_t d = dst->ndim; d-- > 0 && ++at[d] == dst->size[d];)
            at[d] = 0;
    }
    return true;
}

static cfx_tensor *counting(cfx_dtype dtype, const int64_t *sizes, size_t ndim)
{
    cfx_tensor *t = cfx_tensor_new(dtype, sizes, ndim, NULL, NULL);
    for (int64_t i = 0; i < cfxi_tensor_numel(t); i++)
        cfxi_tensor_store_int(dtype, t->data + i * (int64_t)cfxi_tensor_itemsize(t), i % 100);
    return t;
}

TEST(every_type_becomes_every_other)
{
    static const cfx_dtype types[] = {
        CFX_DTYPE_UINT8, CFX_DTYPE_INT8, CFX_DTYPE_INT16, CFX_DTYPE_INT32, CFX_DTYPE_INT64,
        CFX_DTYPE_FLOAT16, CFX_DTYPE_BFLOAT16, CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT64,
        CFX_DTYPE_COMPLEX64, CFX_DTYPE_COMPLEX128};
    int64_t n = 700;
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    for (size_t a = 0; a < sizeof types / sizeof *types; a++) {
        for (size_t b = 0; b < sizeof types / sizeof *types; b++) {
            cfx_tensor *src = counting(types[a], &n, 1);
            cfx_tensor *dst = cfx_tensor_new(types[b], &n, 1, NULL, NULL);
            CHECK_INT_EQ(CFX_OK, cfxi_rt_copy(rt, dst, src, NULL));
            CHECK(is_copy(dst, src));
            cfx_tensor_release(src);
            cfx_tensor_release(dst);
        }
    }
    cfx_runtime_free(rt);
}

/* Sizes around the tiles of a transpose, each order of dimensions. */
TEST(permuted_copies)
{
    static const uint8_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1},
                                         {2, 1, 0}};
    static const cfx_dtype types[] = {CFX_DTYPE_UINT8, CFX_DTYPE_INT16, CFX_DTYPE_FLOAT32,
                                      CFX_DTYPE_FLOAT64, CFX_DTYPE_COMPLEX128};
    int64_t sizes[] = {3, 33, 70};
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        for (size_t o = 0; o < 6; o++) {
            cfx_tensor *src = counting(types[k], sizes, 3);
            cfxi_tensor_ordered_strides(sizes, 3, cfxi_tensor_itemsize(src), orders[o],
                                        src->stride);
            cfx_tensor *dst = cfx_tensor_new(types[k], sizes, 3, NULL, NULL);
            CHECK_INT_EQ(CFX_OK, cfxi_rt_copy(rt, dst, src, NULL));
            CHECK(is_copy(dst, src));
            cfx_tensor_release(src);
            cfx_tensor_release(dst);
        }
    }
    cfx_runtime_free(rt);
}

/* Memory of exactly its size, all bytes different from their neighbours. */
static char *bytes(size_t n)
{
    char *made = malloc(n);
    for (size_t i = 0; i < n; i++)
        made[i] = (char)(i * 37 + i / 256);
    return made;
}

/* A matrix turned over, with gaps between rows and between columns; the gaps stay as they were. */
static void check_turned(cfx_isa isa, int64_t size, int64_t rows, int64_t columns, int64_t gap)
{
    const int64_t to_row = (columns + gap) * size;
    const int64_t from_column = (rows + 2 * gap) * size;
    const size_t all = (size_t)(((rows - 1) * (columns + gap) + columns) * size);
    char *from = bytes((size_t)(((columns - 1) * (rows + 2 * gap) + rows) * size));
    char *got = bytes(all);
    char *want = bytes(all);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t k = 0; k < columns; k++)
            memcpy(want + r * to_row + k * size, from + k * from_column + r * size, (size_t)size);
    cfxi_rt_transpose(isa, (size_t)size, rows, columns, got, to_row, from, from_column);
    CHECK(memcmp(got, want, all) == 0);
    free(from);
    free(got);
    free(want);
}

/* Squares of every vector, and all that is left over at their edges. */
TEST(matrices_are_turned_over)
{
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++)
        for (int64_t size = 1; size <= 16; size *= 2)
            for (int64_t rows = 1; rows <= 35; rows++)
                for (int64_t columns = 1; columns <= 35; columns++)
                    if (cfxi_rt_isa_at_most((cfx_isa)isa) == (cfx_isa)isa)
                        check_turned((cfx_isa)isa, size, rows, columns, (rows + columns) % 3);
}

/* Two groups of channels that lie side by side are shuffled. */
TEST(pairs)
{
    static const int64_t channels[] = {7, 8, 31, 58, 520};
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    for (size_t k = 0; k < sizeof channels / sizeof *channels; k++) {
        const int64_t sizes[] = {41, channels[k], 2};
        cfx_tensor *src = counting(CFX_DTYPE_FLOAT32, sizes, 3);
        src->stride[1] = 4;
        src->stride[2] = 4 * channels[k];
        cfx_tensor *dst = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, 3, NULL, NULL);
        CHECK_INT_EQ(CFX_OK, cfxi_rt_copy(rt, dst, src, NULL));
        CHECK(is_copy(dst, src));
        cfx_tensor_release(src);
        cfx_tensor_release(dst);
    }
    cfx_runtime_free(rt);
}

TEST(broadcast_copies)
{
    int64_t sizes[] = {4, 5, 6};
    int64_t some[] = {5, 1};
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    cfx_tensor *src = counting(CFX_DTYPE_INT32, some, 2);
    cfx_tensor *dst = cfx_tensor_new(CFX_DTYPE_INT32, sizes, 3, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfxi_rt_copy(rt, dst, src, NULL));
    CHECK(is_copy(dst, src));
    CHECK_INT_EQ(CFX_E_SHAPE, cfxi_rt_copy(rt, src, dst, NULL));
    cfx_tensor_release(src);
    cfx_tensor_release(dst);
    cfx_runtime_free(rt);
}

typedef struct seen {
    atomic_llong elements;
    atomic_llong rows;
} seen;

static void count(void *ctx, int64_t n, char *const *at, const int64_t *step)
{
    seen *s = ctx;
    (void)at;
    (void)step;
    atomic_fetch_add(&s->elements, n);
    atomic_fetch_add(&s->rows, 1);
}

TEST(dense_operands_are_one_row)
{
    int64_t sizes[] = {3, 4, 5};
    int64_t strides[] = {4, 60, 12};  /* permuted, but without gaps */
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    cfx_tensor *t = cfx_tensor_new_strided(CFX_DTYPE_FLOAT32, sizes, strides, 3, NULL, NULL);
    const cfx_tensor *operands[2] = {t, t};
    seen s = {0};
    cfxi_rt_loop(rt, operands, 2, 1000, count, &s);
    CHECK_INT_EQ(60, s.elements);
    CHECK_INT_EQ(1, s.rows);
    cfx_tensor_release(t);
    cfx_runtime_free(rt);
}
