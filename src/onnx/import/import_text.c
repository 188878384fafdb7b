/* import_text.c - TfIdfVectorizer: how often given runs of integers occur in a sequence.
 *
 * Runs of one length are compared with all windows of that length at once. A window may leave out
 * elements: as many between each two, up to the most that the node gives.
 */
#include "rules_impl.h"

typedef struct vocabulary {
    const int64_t *pool, *counts, *places;  /* the runs, where each length begins, their outputs */
    size_t num_pool, num_counts, num_places;
    const float *weights;  /* or NULL */
    int64_t shortest, longest, skips;
    int64_t width;         /* of the result */
} vocabulary;

static bool read_vocabulary(cfxi_import_call *c, vocabulary *v)
{
    size_t weights;
    const cfxi_onnx_attribute *a = cfxi_import_attribute(c, "weights");
    v->pool = cfxi_import_ints(c, "pool_int64s", &v->num_pool);
    v->counts = cfxi_import_ints(c, "ngram_counts", &v->num_counts);
    v->places = cfxi_import_ints(c, "ngram_indexes", &v->num_places);
    v->shortest = cfxi_import_int(c, "min_gram_length", 1);
    v->longest = cfxi_import_int(c, "max_gram_length", 1);
    v->skips = cfxi_import_int(c, "max_skip_count", 0);
    v->weights = a && a->floats.n ? a->floats.items : NULL;
    weights = a ? a->floats.n : 0;
    if (cfxi_import_attribute(c, "pool_strings"))
        return cfxi_import_fail(c, CFX_E_UNSUPPORTED, "words; cfx has no tensors of strings"),
               false;
    bool fits = v->shortest >= 1 && v->longest >= v->shortest && v->longest <= 1000 &&
                v->skips >= 0 && v->skips <= 1000 && v->num_counts >= 1 &&
                (!v->weights || weights == v->num_places);
    for (size_t i = 0; fits && i < v->num_counts; i++)
        fits = v->counts[i] >= (i ? v->counts[i - 1] : 0) &&
               v->counts[i] <= (int64_t)v->num_pool;
    v->width = 0;
    for (size_t i = 0; fits && i < v->num_places; i++) {
        fits = v->places[i] >= 0 && v->places[i] < INT32_MAX;
        v->width = v->places[i] >= v->width ? v->places[i] + 1 : v->width;
    }
    return fits ? true
                : (cfxi_import_fail(c, CFX_E_VALUE, "the runs of the pool do not fit one another"),
                   false);
}

/* Integers as a tensor [rows, columns], or [rows] for columns 0. */
static cfx_var constant(cfx_scope *s, const int64_t *data, int64_t rows, int64_t columns)
{
    const int64_t sizes[] = {rows, columns};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_INT64, sizes, columns ? 2 : 1, NULL, cfx_scope_err(s));
    if (!t)
        return cfx_var_empty();
    if (rows > 0)
        memcpy(cfx_tensor_data(t), data, (size_t)(rows * (columns ? columns : 1)) * sizeof *data);
    const cfx_var v = cfx_var_from_tensor(s, t);
    cfx_tensor_release(t);
    return v;
}

/* How often each of the runs, [number, n], occurs; EMPTY if the sequence is shorter. */
static cfx_var count_runs(cfxi_import_call *c, const vocabulary *v, cfx_var runs, int64_t n)
{
    cfx_scope *s = c->scope;
    cfx_var sum = cfx_var_empty();
    const cfx_var length = cfxi_import_size(c, 0, cfxi_import_rank(c, 0) - 1);
    for (int64_t skip = 0; skip <= (n == 1 ? 0 : v->skips); skip++) {
        const int64_t reach = (n - 1) * (skip + 1) + 1;
        if (length.kind == CFX_VAR_INT && length.as.i < reach)
            break;
        const cfx_var all = cfx_unfold(s, cfxi_import_in(c, 0), -1, reach, 1);
        const cfx_var windows = cfx_slice(s, all, .dim = cfx_v(-1), .step = cfx_v(skip + 1));
        const cfx_var same = cfx_all(s, cfx_eq(s, cfx_unsqueeze(s, windows, -2), runs),
                                     .dim = cfx_ints(s, -1));
        const cfx_var found = cfx_sum(s, same, .dim = cfx_ints(s, -2));
        sum = sum.kind == CFX_VAR_EMPTY ? found : cfx_add(s, sum, found);
    }
    return sum;
}

/* Counts as the node weighs them; `first` is the number of the first run. */
static cfx_var weigh(cfxi_import_call *c, const vocabulary *v, cfx_var counts, int64_t first,
                     int64_t n)
{
    cfx_scope *s = c->scope;
    cfx_var y = cfx_to(s, counts, cfx_var_dtype(CFX_DTYPE_FLOAT32));
    if (cfxi_import_is(c, "mode", "TF", "IDF"))
        y = cfx_clamp(s, y, .max = cfx_v(1.0));
    if (!v->weights || cfxi_import_is(c, "mode", "TF", "TF"))
        return y;
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, &n, 1, NULL, cfx_scope_err(s));
    if (!t)
        return cfx_var_empty();
    memcpy(cfx_tensor_data(t), v->weights + first, (size_t)n * sizeof *v->weights);
    y = cfx_mul(s, y, cfx_var_from_tensor(s, t));
    cfx_tensor_release(t);
    return y;
}

cfx_var cfxi_import_tfidf(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    vocabulary v;
    const int rank = cfxi_import_need_rank(c, 0);
    if (rank < 0 || !read_vocabulary(c, &v))
        return cfx_var_empty();
    const cfx_var sizes[] = {rank == 2 ? cfxi_import_size(c, 0, 0) : cfx_v(v.width),
                             cfx_v(v.width)};
    cfx_var y = cfx_zeros(s, cfxi_import_tuple(s, sizes, rank == 2 ? 2 : 1),
                          .dtype = cfx_var_dtype(CFX_DTYPE_FLOAT32));
    int64_t first = 0;
    for (int64_t n = 1; n <= (int64_t)v.num_counts; n++) {
        const bool last = n == (int64_t)v.num_counts;
        const int64_t begin = v.counts[n - 1], end = last ? (int64_t)v.num_pool : v.counts[n];
        const int64_t number = (end - begin) / n;
        if (first + number > (int64_t)v.num_places)
            return cfxi_import_fail(c, CFX_E_VALUE, "there are more runs than ngram_indexes");
        const cfx_var counts = number > 0 && n >= v.shortest && n <= v.longest
                                   ? count_runs(c, &v, constant(s, v.pool + begin, number, n), n)
                                   : cfx_var_empty();
        if (counts.kind != CFX_VAR_EMPTY)
            y = cfx_index_copy(s, y, -1, constant(s, v.places + first, number, 0),
                               weigh(c, &v, counts, first, number));
        first += number;
    }
    return y;
}
