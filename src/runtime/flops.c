/* flops.c - how many operations a call takes: one formula for each family of operators.
 *
 * A multiplication and an addition are two. What has no row costs one for each element of its
 * result if it is ELEMENTWISE, else nothing: views, copies, gathers and sorts do no arithmetic.
 */
#include "dim/dim_impl.h"
#include "runtime_impl.h"

typedef enum formula {
    BY_FLAG,      /* no row */
    NOTHING,
    RESULT,       /* factor for each element of the result */
    INPUT,        /* factor for each element of the first argument */
    WINDOW,       /* pooling: the window's size for each element of the result */
    INNER,        /* products: the last size of argument `factor` for each element of the result */
    GROUPED,      /* _grouped_mm */
    SUM_OF_BATCH, /* addbmm */
    BILINEAR,
    CONTRACTED,   /* tensordot */
    CHAIN,        /* chain_matmul, from the left */
    EINSUM,
    CONVOLUTION,
    TRANSPOSED,
    EITHER,       /* convolution: one or the other, as argument 6 says */
    ATTENTION,
    HEADS,        /* multi_head_attention_forward */
    RECURRENT,
    CELL,
    SEQUENCE,     /* recurrent_sequence */
    STATES        /* linear_attention */
} formula;

typedef struct row {
    uint8_t formula;
    uint8_t factor;
} row;

#define ROW(id, formula, factor) [CFX_OPID_##id] = {formula, factor}
static const row rows[CFX_OPERATOR_COUNT] = {
    ROW(mm, INNER, 0), ROW(matmul, INNER, 0), ROW(bmm, INNER, 0), ROW(mv, INNER, 0),
    ROW(dot, INNER, 0), ROW(vdot, INNER, 0), ROW(addmm, INNER, 1), ROW(addmv, INNER, 1),
    ROW(_grouped_mm, GROUPED, 0), ROW(grouped_mm_fallback, GROUPED, 0),
    ROW(baddbmm, INNER, 1), ROW(linear, INNER, 1), ROW(addbmm, SUM_OF_BATCH, 0),
    ROW(bilinear, BILINEAR, 0), ROW(tensordot, CONTRACTED, 0), ROW(chain_matmul, CHAIN, 0),
    ROW(einsum, EINSUM, 0), ROW(outer, RESULT, 1), ROW(kron, RESULT, 1), ROW(cross, RESULT, 3),
    ROW(trace, INPUT, 1),
    ROW(conv1d, CONVOLUTION, 0), ROW(conv2d, CONVOLUTION, 0), ROW(conv3d, CONVOLUTION, 0),
    ROW(conv_transpose1d, TRANSPOSED, 0), ROW(conv_transpose2d, TRANSPOSED, 0),
    ROW(conv_transpose3d, TRANSPOSED, 0), ROW(convolution, EITHER, 0),
    ROW(scaled_dot_product_attention, ATTENTION, 0),
    ROW(_scaled_dot_product_flash_attention_for_cpu, ATTENTION, 0),
    ROW(multi_head_attention_forward, HEADS, 0),
    ROW(lstm, RECURRENT, 0), ROW(gru, RECURRENT, 0), ROW(rnn_tanh, RECURRENT, 0),
    ROW(rnn_relu, RECURRENT, 0), ROW(lstm_cell, CELL, 0), ROW(gru_cell, CELL, 0),
    ROW(rnn_tanh_cell, CELL, 0), ROW(rnn_relu_cell, CELL, 0),
    ROW(recurrent_sequence, SEQUENCE, 0), ROW(linear_attention, STATES, 0),
    ROW(deform_conv2d, CONVOLUTION, 0),
    /* max, subtract, exp, sum, divide */
    ROW(softmax, RESULT, 5), ROW(log_softmax, RESULT, 5), ROW(_softmax, RESULT, 5),
    ROW(_log_softmax, RESULT, 5), ROW(softmin, RESULT, 5), ROW(logsumexp, INPUT, 4),
    /* running statistics are given: scale and shift; the others compute them */
    ROW(batch_norm, INPUT, 2), ROW(native_batch_norm, INPUT, 2), ROW(layer_norm, INPUT, 8),
    ROW(native_layer_norm, INPUT, 8), ROW(group_norm, INPUT, 8), ROW(native_group_norm, INPUT, 8),
    ROW(instance_norm, INPUT, 8), ROW(rms_norm, INPUT, 4), ROW(normalize, INPUT, 3),
    ROW(max_pool1d, WINDOW, 0), ROW(max_pool2d, WINDOW, 0), ROW(max_pool3d, WINDOW, 0),
    ROW(max_pool1d_with_indices, WINDOW, 0), ROW(max_pool2d_with_indices, WINDOW, 0),
    ROW(max_pool3d_with_indices, WINDOW, 0), ROW(avg_pool1d, WINDOW, 0),
    ROW(avg_pool2d, WINDOW, 0), ROW(avg_pool3d, WINDOW, 0),
    ROW(adaptive_avg_pool1d, INPUT, 1), ROW(adaptive_avg_pool2d, INPUT, 1),
    ROW(adaptive_avg_pool3d, INPUT, 1), ROW(adaptive_max_pool1d, INPUT, 1),
    ROW(adaptive_max_pool2d, INPUT, 1), ROW(adaptive_max_pool1d_with_indices, INPUT, 1),
    ROW(adaptive_max_pool2d_with_indices, INPUT, 1),
    ROW(sum, INPUT, 1), ROW(mean, INPUT, 1), ROW(prod, INPUT, 1), ROW(nansum, INPUT, 1),
    ROW(nanmean, INPUT, 1), ROW(amax, INPUT, 1), ROW(amin, INPUT, 1), ROW(max, INPUT, 1),
    ROW(min, INPUT, 1), ROW(max_dim, INPUT, 1), ROW(min_dim, INPUT, 1), ROW(aminmax, INPUT, 2),
    ROW(argmax, INPUT, 1), ROW(argmin, INPUT, 1), ROW(any, INPUT, 1), ROW(all, INPUT, 1),
    ROW(std, INPUT, 4), ROW(var, INPUT, 4), ROW(std_dim, INPUT, 4), ROW(var_dim, INPUT, 4),
    ROW(std_mean, INPUT, 4), ROW(var_mean, INPUT, 4), ROW(norm, INPUT, 2),
    ROW(linalg_norm, INPUT, 2), ROW(linalg_vector_norm, INPUT, 2),
    ROW(linalg_matrix_norm, INPUT, 2), ROW(cumsum, INPUT, 1), ROW(cumprod, INPUT, 1),
    ROW(cosine_similarity, INPUT, 6), ROW(pairwise_distance, INPUT, 3),
    ROW(mse_loss, INPUT, 3), ROW(l1_loss, INPUT, 3), ROW(smooth_l1_loss, INPUT, 4),
    ROW(huber_loss, INPUT, 4), ROW(cross_entropy, INPUT, 5),
    ROW(binary_cross_entropy, INPUT, 5), ROW(binary_cross_entropy_with_logits, INPUT, 6),
    ROW(kl_div, INPUT, 4),
    ROW(upsample_linear1d, RESULT, 3), ROW(upsample_bilinear2d, RESULT, 7),
    ROW(upsample_trilinear3d, RESULT, 15), ROW(upsample_bicubic2d, RESULT, 31),
    ROW(positive, NOTHING, 0), ROW(fill, NOTHING, 0), ROW(zero, NOTHING, 0),
    ROW(where, RESULT, 1), ROW(masked_fill, RESULT, 1), ROW(tanhshrink, RESULT, 2),
};

/* ---- sizes --------------------------------------------------------------------------------- */

typedef struct counting {
    const cfxi_call *c;
    const cfx_datum *args;
    size_t n;
    const cfx_tensor *result;
} counting;

static int64_t times(const counting *k, int64_t a, int64_t b)
{
    return cfx_dim_mul(k->c->dims, a, b, k->c->err);
}

static int64_t plus(const counting *k, int64_t a, int64_t b)
{
    return cfx_dim_add(k->c->dims, a, b, k->c->err);
}

int64_t cfxi_rt_elements(cfx_dims *dims, const cfx_tensor *t, cfx_error *err)
{
    int64_t n = 1;
    for (size_t i = 0; i < t->ndim; i++)
        n = cfx_dim_mul(dims, n, t->size[i], err);
    return n;
}

/* Of a tensor's sizes from number `first` on; 0 for none. */
static int64_t product(const counting *k, const cfx_tensor *t, size_t first)
{
    int64_t n = t ? 1 : 0;
    for (size_t i = first; t && i < t->ndim; i++)
        n = times(k, n, t->size[i]);
    return n;
}

static const cfx_tensor *tensor_at(const counting *k, size_t i)
{
    return i < k->n && k->args[i].kind == CFX_DATUM_TENSOR ? k->args[i].as.tensor : NULL;
}

/* A size of argument i, counted from the end, from 1; 1 where it has not so many. */
static int64_t size_from_end(const cfx_tensor *t, size_t i)
{
    return t && t->ndim >= i ? t->size[t->ndim - i] : 1;
}

/* ---- formulas ------------------------------------------------------------------------------ */

static int64_t window(const counting *k)
{
    int64_t area = 1;
    size_t n = 0;
    const cfx_datum *sizes = k->n > 1 ? cfx_datum_items(k->args[1], &n) : NULL;
    for (size_t i = 0; sizes && i < n; i++)
        area = times(k, area, sizes[i].as.i);
    return times(k, area, product(k, k->result, 0));
}

static int64_t contracted(const counting *k)
{
    int64_t inner = 1;
    size_t n = 0;
    const cfx_tensor *a = tensor_at(k, 0);
    const cfx_datum *dims = k->n > 2 ? cfx_datum_items(k->args[2], &n) : NULL;
    for (size_t i = 0; a && dims && i < n; i++) {
        const int64_t at = dims[i].as.i < 0 ? dims[i].as.i + a->ndim : dims[i].as.i;
        if (at >= 0 && at < a->ndim)
            inner = times(k, inner, a->size[at]);
    }
    return times(k, 2, times(k, inner, product(k, k->result, 0)));
}

static int64_t chain(const counting *k)
{
    int64_t sum = 0;
    size_t n = 0;
    const cfx_datum *all = cfx_datum_items(k->args[0], &n);
    for (size_t i = 1; i < n; i++) {
        if (all[0].kind != CFX_DATUM_TENSOR || all[i].kind != CFX_DATUM_TENSOR)
            return 0;
        const int64_t rows_of_first = size_from_end(all[0].as.tensor, 2);
        sum = plus(k, sum, times(k, rows_of_first, product(k, all[i].as.tensor, 0)));
    }
    return times(k, 2, sum);
}

/* Every letter of the equation is a loop; inside, all operands are multiplied and one is added. */
static int64_t einsum(const counting *k)
{
    int64_t sizes[128] = {0};
    int64_t loops = 1;
    int64_t dots = 1;
    size_t n = 0;
    size_t i = 0;
    size_t at = 0;  /* dimension of operand i */
    const char *text = cfx_datum_text(k->args[0], NULL);
    const cfx_datum *all = k->n > 1 ? cfx_datum_items(k->args[1], &n) : NULL;
    for (; text && all && i < n && *text && *text != '-'; text++) {
        const cfx_tensor *t = all[i].kind == CFX_DATUM_TENSOR ? all[i].as.tensor : NULL;
        size_t letters = 0;
        for (const char *p = text; *p && *p != ',' && *p != '-'; p++)
            letters += (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        if (*text == ',') {
            i++;
            at = 0;
        } else if (*text == '.' && t && t->ndim >= at + letters) {
            int64_t some = 1;
            for (; at < t->ndim - letters; at++)
                some = times(k, some, t->size[at]);
            dots = cfx_dim_max(k->c->dims, dots, some, k->c->err);
        } else if (letters > 0 && *text > 0 && *text != ' ' && t && at < t->ndim) {
            sizes[(unsigned char)*text] = t->size[at++];
        }
    }
    for (size_t letter = 0; letter < 128; letter++)
        loops = sizes[letter] ? times(k, loops, sizes[letter]) : loops;
    return times(k, (int64_t)n, times(k, dots, loops));
}

/* Scores, and their products with the values. */
static int64_t attention(const counting *k)
{
    const cfx_tensor *key = tensor_at(k, 1);
    const int64_t both = plus(k, product(k, tensor_at(k, 0), 0), product(k, k->result, 0));
    return times(k, 2, times(k, both, size_from_end(key, 2)));
}

/* Three projections of the inputs, attention, one of the result; the length is the first size. */
static int64_t heads(const counting *k)
{
    const cfx_tensor *query = tensor_at(k, 0);
    const cfx_tensor *key = tensor_at(k, 1);
    const int64_t width = size_from_end(query, 1);
    const int64_t q = product(k, query, 0);
    int64_t in = plus(k, q, product(k, key, 0));
    in = plus(k, in, product(k, tensor_at(k, 2), 0));
    const int64_t projections = times(k, width, plus(k, in, q));
    const int64_t products = times(k, 2, times(k, q, key && key->ndim ? key->size[0] : 0));
    return times(k, 2, plus(k, projections, products));
}

/* Each matrix of weights meets each step of each sequence. */
static int64_t recurrent(const counting *k)
{
    int64_t weights = 0;
    int64_t steps = 1;
    size_t n = 0;
    const cfx_tensor *input = tensor_at(k, 0);
    const cfx_datum *all = k->n > 2 ? cfx_datum_items(k->args[2], &n) : NULL;
    for (size_t i = 0; input && i + 1 < input->ndim; i++)
        steps = times(k, steps, input->size[i]);
    for (size_t i = 0; all && i < n; i++)
        if (all[i].kind == CFX_DATUM_TENSOR && all[i].as.tensor->ndim == 2)
            weights = plus(k, weights, product(k, all[i].as.tensor, 0));
    return times(k, 2, times(k, steps, weights));
}

static int64_t cell(const counting *k)
{
    const cfx_tensor *input = tensor_at(k, 0);
    const int64_t weights = plus(k, product(k, tensor_at(k, 2), 0), product(k, tensor_at(k, 3), 0));
    return times(k, 2, times(k, input && input->ndim > 1 ? input->size[0] : 1, weights));
}

/* Every step multiplies what it reads and the last state by all weights. */
static int64_t sequence(const counting *k)
{
    const cfx_tensor *x = tensor_at(k, 1);
    const int64_t weights = plus(k, product(k, tensor_at(k, 2), 0), product(k, tensor_at(k, 3), 0));
    const int64_t steps = x && x->ndim == 3 ? times(k, x->size[0], x->size[1]) : 0;
    return times(k, 2, times(k, steps, weights));
}

/* Every step writes the state of each head of keys, and reads it for each head of queries. */
static int64_t states(const counting *k)
{
    const cfx_tensor *v = tensor_at(k, 2);
    const int64_t both = plus(k, product(k, tensor_at(k, 0), 0), product(k, tensor_at(k, 1), 0));
    return times(k, 2, times(k, both, v && v->ndim == 4 ? v->size[3] : 0));
}

static int64_t evaluate(const counting *k, row r)
{
    const int64_t result = product(k, k->result, 0);
    const int64_t input = product(k, tensor_at(k, 0), 0);
    const cfx_tensor *weight = tensor_at(k, 1);
    const bool transposed = r.formula == TRANSPOSED ||
                            (r.formula == EITHER && k->n > 6 && k->args[6].as.b);
    switch ((formula)r.formula) {
    case BY_FLAG:
    case NOTHING:
        return 0;
    case RESULT:
        return times(k, r.factor, result);
    case INPUT:
        return times(k, r.factor, input);
    case WINDOW:
        return window(k);
    case INNER:
        return times(k, 2, times(k, result, size_from_end(tensor_at(k, r.factor), 1)));
    case GROUPED:  /* of two matrices the groups share what is summed over */
        if (k->result && tensor_at(k, 0) && k->result->ndim > tensor_at(k, 0)->ndim)
            return times(k, 2, times(k, input, size_from_end(weight, 1)));
        return times(k, 2, times(k, result, size_from_end(tensor_at(k, 0), 1)));
    case SUM_OF_BATCH:
        return times(k, 2, times(k, product(k, weight, 0), size_from_end(tensor_at(k, 2), 1)));
    case BILINEAR:
        return times(k, 2, times(k, result, product(k, tensor_at(k, 2), 1)));
    case CONTRACTED:
        return contracted(k);
    case CHAIN:
        return chain(k);
    case EINSUM:
        return einsum(k);
    case CONVOLUTION:
    case TRANSPOSED:
    case EITHER:
        return times(k, 2, times(k, transposed ? input : result, product(k, weight, 1)));
    case ATTENTION:
        return attention(k);
    case HEADS:
        return heads(k);
    case RECURRENT:
        return recurrent(k);
    case CELL:
        return cell(k);
    case SEQUENCE:
        return sequence(k);
    case STATES:
        return states(k);
    }
    return 0;
}

/* The first tensor among the results. */
static const cfx_tensor *first_tensor(cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    if (items && n > 0 && d.kind == CFX_DATUM_TUPLE)
        d = items[0];
    return d.kind == CFX_DATUM_TENSOR ? d.as.tensor : NULL;
}

int64_t cfxi_rt_flops(const cfxi_call *c, cfx_operator op, size_t n, cfx_datum result)
{
    const cfx_operator plain = cfx_operator_functional(op) ? cfx_operator_functional(op) : op;
    const counting k = {c, c->args, n, first_tensor(result)};
    row r = rows[plain];
    if (!k.result)
        return 0;
    if (r.formula == BY_FLAG && cfx_operator_flags(plain) & CFX_OPERATOR_ELEMENTWISE)
        r = (row){RESULT, 1};
    return evaluate(&k, r);
}
