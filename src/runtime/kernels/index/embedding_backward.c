/* embedding_backward.c - the gradient of an embedding's table: rows are added where they came from.
 */
#include "runtime/kernels/reduce/float_rows.h"
#include "runtime/spatial.h"

enum { GRAD, INDICES, ROWS, PADDING, BY_COUNT };

cfx_status cfxi_rule_embedding_dense_backward(cfxi_call *c)
{
    const cfx_tensor *g = cfxi_rt_tensor(c, GRAD);
    const cfx_tensor *indices = cfxi_rt_tensor(c, INDICES);
    if (!cfx_dtype_is_float((cfx_dtype)g->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "not implemented for %s",
                         cfx_dtype_name((cfx_dtype)g->dtype));
    if (indices->dtype != CFX_DTYPE_INT64 && indices->dtype != CFX_DTYPE_INT32)
        return cfxi_fail(c, CFX_E_SHAPE, "Expected tensor for argument 'indices' to have one of "
                         "the following scalar types: Long, Int; but got %s instead",
                         cfx_dtype_name((cfx_dtype)indices->dtype));
    bool fits = g->ndim == indices->ndim + 1u;
    for (size_t d = 0; fits && d < indices->ndim; d++)
        fits = cfxi_rt_same_size(c, g->size[d], indices->size[d]);
    if (!fits)
        return cfxi_fail(c, CFX_E_SHAPE, "the gradient must have the sizes of the indices, [%s], "
                         "and one more dimension", cfxi_rt_shape_of(indices).text);
    const int64_t sizes[] = {cfxi_rt_int(c, ROWS), g->size[g->ndim - 1]};
    if (sizes[0] < 0 && !cfx_dim_is_symbol(sizes[0]))
        return cfxi_fail(c, CFX_E_SHAPE, "'num_weights' must not be negative, but is %lld",
                         (long long)sizes[0]);
    return cfxi_rt_result(c, 0, (cfx_dtype)g->dtype, sizes, 2);
}

typedef struct added {
    cfxi_float_rows rows;
    const char *g;
    const int64_t *indices;
    const int64_t *counts;  /* of each row of the table, or NULL */
    char *table;
    int64_t n;              /* indices */
    int64_t length;
    int64_t item;
    int64_t padding;
} added;

/* Rows [begin, end) of the table: each is added to in the order of the indices. */
static void some_rows(void *ctx, int64_t begin, int64_t end)
{
    const added *s = ctx;
    const cfxi_rows *rows = cfxi_reduce_rows(&s->rows);
    const int64_t row = s->length * s->item;
    memset(s->table + begin * row, 0, (size_t)((end - begin) * row));
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t at = s->indices[i];
        if (at < begin || at >= end || at == s->padding)
            continue;
        char *to = s->table + at * row;
        rows->blend(to, s->g + i * row, to, NULL, s->length, 0,
                    s->counts ? 1 / (double)s->counts[at] : 1, 1, 0);
    }
}

/* How often each row was read, as scratch memory; NULL if it is out. */
static int64_t *count_rows(cfxi_call *c, const int64_t *indices, int64_t n, int64_t rows)
{
    size_t size;
    if (!cfxi_base_mul_size((size_t)rows + 1, sizeof(int64_t), 0, &size))
        return NULL;
    int64_t *counts = cfxi_rt_scratch(c->rt, size);
    if (counts)
        memset(counts, 0, size);
    for (int64_t i = 0; counts && i < n; i++)
        if (indices[i] >= 0 && indices[i] < rows)
            counts[indices[i]]++;
    return counts;
}

cfx_status cfxi_kernel_embedding_dense_backward(cfxi_call *c)
{
    const cfx_tensor *grad = cfxi_rt_tensor(c, GRAD);
    const cfx_dtype type = cfxi_rt_compute_dtype((cfx_dtype)grad->dtype);
    added s = {.rows = {c->rt, type}, .item = (int64_t)cfx_dtype_size(type),
               .length = grad->size[grad->ndim - 1], .padding = cfxi_rt_int(c, PADDING)};
    const int64_t rows = cfxi_rt_result_at(c, 0)->size[0];
    cfx_tensor *g = cfxi_rt_contiguous(c, grad, type);
    cfx_tensor *at = g ? cfxi_rt_contiguous(c, cfxi_rt_tensor(c, INDICES), CFX_DTYPE_INT64) : NULL;
    cfx_tensor *table = at ? cfxi_rt_work(c, 0, type, true) : NULL;
    cfx_status status = table ? CFX_OK : c->err->status;
    int64_t *counts = NULL;
    if (table && cfxi_rt_bool(c, BY_COUNT)) {
        counts = count_rows(c, (const int64_t *)at->data, cfxi_tensor_numel(at), rows);
        status = counts ? CFX_OK : cfxi_base_nomem(c->err);
    }
    if (status == CFX_OK) {
        s.g = g->data;
        s.indices = (const int64_t *)at->data;
        s.counts = counts;
        s.n = cfxi_tensor_numel(at);
        s.table = table->data;
        /* Each piece looks at all indices, so it should have enough rows to do. */
        cfxi_rt_parallel(c->rt, rows, 1 + (32768 + s.n) / (s.length + 1), some_rows, &s);
    }
    if (counts)
        cfxi_rt_scratch_free(c->rt, counts);
    status = table ? cfxi_rt_work_done(c, 0, table, status) : status;
    cfx_tensor_release(at);
    cfx_tensor_release(g);
    return status;
}
