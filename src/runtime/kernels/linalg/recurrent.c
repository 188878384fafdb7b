/* recurrent.c - LSTM, GRU and simple recurrent layers, and their cells.
 *
 * What the input adds to the gates is one matrix product for all steps; each step then multiplies
 * the last state, adds the two, and applies the gates. Layers run one after the other, the reversed
 * direction of a bidirectional layer after the forward one. 16-bit floats compute in float32.
 */
#include "product_impl.h"
#include "runtime/kernels/elementwise/blocks.h"
#include "runtime/kernels/reduce/float_rows.h"

#include <math.h>

typedef enum cell { LSTM, GRU, TANH, RELU } cell;

static const int64_t gates_of[] = {[LSTM] = 4, [GRU] = 3, [TANH] = 1, [RELU] = 1};

/* One direction of one layer: contiguous weights in the type of the computation. */
typedef struct direction {
    const cfx_tensor *w_ih, *w_hh, *b_ih, *b_hh, *w_hr;  /* b_*, w_hr may be NULL */
} direction;

typedef struct recurrent {
    cfxi_call *c;
    cell cell;
    cfx_dtype dtype;    /* float32 or float64 */
    int64_t steps, batch, hidden;
    int64_t state;      /* size of h: `hidden`, or less if an LSTM projects it */
    bool wide;          /* dtype is float64 */
    cfxi_block_fn *sigmoid, *tanh;
    char *of_input;     /* steps x batch x gates */
    char *of_state;     /* batch x gates */
    char *unprojected;  /* batch x hidden */
    size_t size;        /* of an element */
} recurrent;

/* ---- one step ------------------------------------------------------------------------------ */

static void apply(const recurrent *r, cfxi_block_fn *fn, void *x, int64_t n)
{
    const cfxi_scalars none = {{0}, {0}, {0}, NULL};
    const void *args[] = {x};
    (void)r;
    fn(&none, n, args, x);
}

static void add(const recurrent *r, void *y, const void *x, int64_t n)
{
    const cfxi_float_rows rows = {r->c->rt, r->dtype};
    cfxi_reduce_rows(&rows)->add(y, x, n);
}

/* y = max(y, 0); the gates of one row of the batch. */
#define STEP(type)                                                                                 \
    static void relu_##type(type *y, int64_t n)                                                    \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = y[i] < 0 ? 0 : y[i];                                                            \
    }                                                                                              \
    static void lstm_##type(const recurrent *r, type *g, type *c, type *h)                         \
    {                                                                                              \
        int64_t n = r->hidden;                                                                     \
        apply(r, r->sigmoid, g, 2 * n);                                                            \
        apply(r, r->tanh, g + 2 * n, n);                                                           \
        apply(r, r->sigmoid, g + 3 * n, n);                                                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            h[i] = c[i] = g[n + i] * c[i] + g[i] * g[2 * n + i];                                   \
        apply(r, r->tanh, h, n);                                                                   \
        for (int64_t i = 0; i < n; i++)                                                            \
            h[i] *= g[3 * n + i];                                                                  \
    }                                                                                              \
    static void gru_##type(const recurrent *r, type *g, const type *s, type *h)                    \
    {                                                                                              \
        int64_t n = r->hidden;                                                                     \
        add(r, g, s, 2 * n);                                                                       \
        apply(r, r->sigmoid, g, 2 * n);                                                            \
        for (int64_t i = 0; i < n; i++)                                                            \
            g[2 * n + i] += g[i] * s[2 * n + i];                                                   \
        apply(r, r->tanh, g + 2 * n, n);                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            h[i] = g[2 * n + i] + g[n + i] * (h[i] - g[2 * n + i]);                                \
    }                                                                                              \
    static void row_##type(const recurrent *r, type *g, const type *s, type *c, type *h)           \
    {                                                                                              \
        if (r->cell == GRU) {                                                                      \
            gru_##type(r, g, s, h);                                                                \
            return;                                                                                \
        }                                                                                          \
        add(r, g, s, gates_of[r->cell] * r->hidden);                                               \
        if (r->cell == LSTM) {                                                                     \
            lstm_##type(r, g, c, h);                                                               \
            return;                                                                                \
        }                                                                                          \
        memcpy(h, g, (size_t)r->hidden * sizeof *h);                                               \
        if (r->cell == TANH)                                                                       \
            apply(r, r->tanh, h, r->hidden);                                                       \
        else                                                                                       \
            relu_##type(h, r->hidden);                                                             \
    }
STEP(float)
STEP(double)

/* out (rows x columns) = x (rows x k) w^T + bias; all contiguous. */
static cfx_status times_weight(const recurrent *r, char *out, const char *x, int64_t rows,
                               const cfx_tensor *w, const cfx_tensor *bias)
{
    int64_t k = w->size[1];
    const cfxi_gemm g = {.m = rows, .n = w->size[0], .k = k, .a = x, .a_row = k, .a_col = 1,
                         .b = w->data, .b_row = 1, .b_col = k, .c = out, .c_row = w->size[0],
                         .c_col = 1, .alpha = 1, .bias = bias ? bias->data : NULL};
    return cfxi_linalg_gemm_run(r->c->rt, r->dtype, &g, r->c->err);
}

/* h (batch x state) and c (batch x hidden) become those after a step whose input added `gates`. */
static cfx_status step(const recurrent *r, const direction *d, char *gates, char *h, char *c)
{
    const int64_t width = gates_of[r->cell] * r->hidden;
    CFX_TRY(times_weight(r, r->of_state, h, r->batch, d->w_hh, d->b_hh));
    char *to = d->w_hr ? r->unprojected : h;
    for (int64_t i = 0; i < r->batch; i++) {
        size_t at = (size_t)(i * r->hidden) * r->size;
        char *g = gates + (size_t)(i * width) * r->size;
        const char *s = r->of_state + (size_t)(i * width) * r->size;
        if (r->wide)
            row_double(r, (double *)g, (const double *)s, (double *)(c + at), (double *)(to + at));
        else
            row_float(r, (float *)g, (const float *)s, (float *)(c + at), (float *)(to + at));
    }
    return d->w_hr ? times_weight(r, h, to, r->batch, d->w_hr, NULL) : CFX_OK;
}

/* All steps of a direction, from x (steps x batch x input); states go to `out`, whose rows are
 * `row` elements apart. h and c hold the first state, and the last afterwards. */
static cfx_status run_direction(const recurrent *r, const direction *d, const char *x, bool back,
                                char *h, char *c, char *out, int64_t row)
{
    const int64_t width = gates_of[r->cell] * r->hidden;
    CFX_TRY(times_weight(r, r->of_input, x, r->steps * r->batch, d->w_ih, d->b_ih));
    for (int64_t i = 0; i < r->steps; i++) {
        int64_t t = back ? r->steps - 1 - i : i;
        char *gates = r->of_input + (size_t)(t * r->batch * width) * r->size;
        CFX_TRY(step(r, d, gates, h, c));
        for (int64_t b = 0; b < r->batch; b++)
            memcpy(out + (size_t)((t * r->batch + b) * row) * r->size,
                   h + (size_t)(b * r->state) * r->size, (size_t)r->state * r->size);
    }
    return CFX_OK;
}

/* ---- memory -------------------------------------------------------------------------------- */

static cfx_dtype compute_type(cfx_dtype d)
{
    return d == CFX_DTYPE_FLOAT64 ? CFX_DTYPE_FLOAT64 : CFX_DTYPE_FLOAT32;
}

static cfx_status prepare(recurrent *r, cfxi_call *c, cell kind, const cfx_tensor *like)
{
    r->c = c;
    r->cell = kind;
    r->dtype = compute_type((cfx_dtype)like->dtype);
    r->wide = r->dtype == CFX_DTYPE_FLOAT64;
    r->size = cfx_dtype_size(r->dtype);
    cfxi_compute in = r->wide ? CFXI_IN_F64 : CFXI_IN_F32;
    r->sigmoid = cfxi_elementwise_block_of(c->rt, CFXI_FN_sigmoid, in);
    r->tanh = cfxi_elementwise_block_of(c->rt, CFXI_FN_tanh, in);
    size_t row = (size_t)(gates_of[kind] * r->hidden) * r->size;
    size_t size;
    if (!cfxi_base_mul_size((size_t)(r->steps * r->batch + r->batch), row,
                            (size_t)(r->batch * r->hidden) * r->size + 1, &size))
        return cfxi_base_nomem(c->err);
    r->of_input = cfxi_rt_scratch(c->rt, size);
    if (!r->of_input)
        return cfxi_base_nomem(c->err);
    r->of_state = r->of_input + (size_t)(r->steps * r->batch) * row;
    r->unprojected = r->of_state + (size_t)r->batch * row;
    return CFX_OK;
}

/* A contiguous copy that is ours to write. */
static cfx_tensor *copy_of(cfxi_call *c, const cfx_tensor *t, cfx_dtype dtype)
{
    cfx_tensor *copy = cfx_tensor_new(dtype, t->size, t->ndim, c->rt->allocator, c->err);
    if (copy && cfxi_rt_copy(c->rt, copy, t, c->err) != CFX_OK) {
        cfx_tensor_release(copy);
        return NULL;
    }
    return copy;
}

/* ---- layers -------------------------------------------------------------------------------- */

/* Where things are among the arguments: lstm, gru and rnn_* differ only in hx. */
enum { INPUT, HX, PARAMS, HAS_BIASES, NUM_LAYERS, DROPOUT, TRAIN, BIDIRECTIONAL, BATCH_FIRST };

static cell cell_of(cfx_operator op)
{
    switch ((int)op) {
    case CFX_OPID_lstm:
    case CFX_OPID_lstm_cell: return LSTM;
    case CFX_OPID_gru:
    case CFX_OPID_gru_cell: return GRU;
    case CFX_OPID_rnn_relu:
    case CFX_OPID_rnn_relu_cell: return RELU;
    default: return TANH;
    }
}

static const cfx_tensor *first_state(const cfxi_call *c, size_t i)
{
    if (c->args[HX].kind == CFX_DATUM_TENSOR)
        return i == 0 ? c->args[HX].as.tensor : NULL;
    size_t n;
    const cfx_datum *items = cfxi_rt_list(c, HX, &n);
    return i < n ? items[i].as.tensor : NULL;
}

static size_t params_each(const cfxi_call *c, bool projects)
{
    return (cfxi_rt_bool(c, HAS_BIASES) ? 4 : 2) + (projects ? 1 : 0);
}

static cfx_status check_layers(cfxi_call *c, cell kind, int64_t *hidden, int64_t *directions)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_tensor *h = first_state(c, 0);
    const cfx_tensor *cells = kind == LSTM ? first_state(c, 1) : h;
    int64_t layers;
    size_t n;
    const cfx_datum *params = cfxi_rt_list(c, PARAMS, &n);
    CFX_TRY(cfxi_rt_number(c, NUM_LAYERS, &layers));
    *directions = cfxi_rt_bool(c, BIDIRECTIONAL) ? 2 : 1;
    if (!cells)
        return cfxi_fail(c, CFX_E_SHAPE, "lstm expects two hidden states");
    if (x->ndim != 3 || h->ndim != 3 || cells->ndim != 3)
        return cfxi_fail(c, CFX_E_SHAPE, "input and hidden states must have 3 dimensions");
    if (!cfx_dtype_is_float((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "recurrent layers are not implemented for %s",
                         cfx_dtype_name((cfx_dtype)x->dtype));
    *hidden = cells->size[2];
    bool projects = kind == LSTM && h->size[2] != *hidden;
    if (layers < 1 || (size_t)layers > n ||
        n != (size_t)(layers * *directions) * params_each(c, projects))
        return cfxi_fail(c, CFX_E_SHAPE, "got an incorrect number of RNN parameters");
    int64_t batch = x->size[cfxi_rt_bool(c, BATCH_FIRST) ? 0 : 1];
    for (size_t i = 0; i < 2; i++) {
        const cfx_tensor *s = i ? cells : h;
        if (!cfxi_rt_same_size(c, s->size[0], layers * *directions) ||
            !cfxi_rt_same_size(c, s->size[1], batch))
            return cfxi_fail(c, CFX_E_SHAPE, "Expected hidden size (%lld, %lld, ...)",
                             (long long)(layers * *directions), (long long)batch);
    }
    const int64_t gates = cfx_dim_mul(c->dims, gates_of[kind], *hidden, c->err);
    const int64_t outputs = cfx_dim_mul(c->dims, h->size[2], *directions, c->err);
    for (size_t i = 0; i < n; i++) {
        const cfx_tensor *w = params[i].as.tensor;
        size_t role = i % params_each(c, projects);
        bool input = role == 0 && i / params_each(c, projects) < (size_t)*directions;
        int64_t in = input ? x->size[2] : role == 0 ? outputs : h->size[2];
        bool is_bias = cfxi_rt_bool(c, HAS_BIASES) && (role == 2 || role == 3);
        bool is_projection = projects && role + 1 == params_each(c, projects);
        bool fits = w->dtype == x->dtype;
        if (is_bias)
            fits =
                fits && w->ndim == 1 && cfxi_rt_same_size(c, w->size[0], gates);
        else if (is_projection)
            fits = fits && w->ndim == 2 && cfxi_rt_same_size(c, w->size[0], h->size[2]) &&
                   cfxi_rt_same_size(c, w->size[1], *hidden);
        else
            fits = fits && w->ndim == 2 && cfxi_rt_same_size(c, w->size[1], in) &&
                   cfxi_rt_same_size(c, w->size[0], gates);
        if (!fits)
            return cfxi_fail(c, CFX_E_SHAPE, "parameter %zu does not match the input and the "
                             "hidden states in dtype or size", i);
    }
    return c->err->status;
}

cfx_status cfxi_rule_recurrent(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    cell kind = cell_of(c->op);
    int64_t hidden, directions;
    CFX_TRY(check_layers(c, kind, &hidden, &directions));
    const cfx_tensor *h = first_state(c, 0);
    cfx_dtype dtype = (cfx_dtype)x->dtype;
    const int64_t sizes[] = {x->size[0], x->size[1],
                             cfx_dim_mul(c->dims, h->size[2], directions, c->err)};
    CFX_TRY(cfxi_rt_result(c, 0, dtype, sizes, 3));
    if (cfxi_rt_bool(c, BATCH_FIRST) && !c->infer) {  /* steps are outermost in memory */
        int64_t *strides = cfxi_rt_result_at(c, 0)->stride;
        strides[0] = strides[1];
        strides[1] = strides[0] * (sizes[0] > 1 ? sizes[0] : 1);
    }
    CFX_TRY(cfxi_rt_result(c, 1, dtype, h->size, 3));
    return kind == LSTM ? cfxi_rt_result(c, 2, dtype, first_state(c, 1)->size, 3) : CFX_OK;
}

/* Weights of direction number `i` (counted over layers and directions). */
static direction direction_of(const cfxi_call *c, cfx_tensor *const *params, size_t i,
                              bool projects)
{
    cfx_tensor *const *own = params + i * params_each(c, projects);
    bool biases = cfxi_rt_bool(c, HAS_BIASES);
    return (direction){own[0], own[1], biases ? own[2] : NULL, biases ? own[3] : NULL,
                       projects ? own[params_each(c, projects) - 1] : NULL};
}

/* What a layer gives, as the next one reads it in training: with gaps. Takes `x` over; NULL with
 * the error set. */
static cfx_tensor *drop_some(cfxi_call *c, cfx_tensor *x)
{
    const cfx_datum args[] = {cfx_datum_tensor(x), c->args[DROPOUT], cfx_datum_bool(true)};
    cfx_tensor *y = cfxi_rt_sub_tensor(c, CFX_OPID_dropout, args, 3);
    cfx_tensor_release(x);
    return y;
}

/* Every layer reads the output of the one before; `ends` are the states, first and then last. */
static cfx_status run_layers(recurrent *r, cfx_tensor *const *params, const cfx_tensor *x,
                             cfx_tensor **ends, cfx_tensor **result)
{
    cfxi_call *c = r->c;
    const int64_t directions = cfxi_rt_bool(c, BIDIRECTIONAL) ? 2 : 1;
    const int64_t sizes[] = {r->steps, r->batch, r->state * directions};
    const size_t one = (size_t)(r->batch * r->state) * r->size;
    const size_t one_cell = (size_t)(r->batch * r->hidden) * r->size;
    const bool drops = cfxi_rt_bool(c, TRAIN) && cfxi_rt_float(c, DROPOUT) > 0;
    cfx_tensor *last = cfx_tensor_retain((cfx_tensor *)x);
    for (int64_t layer = 0; layer < cfxi_rt_int(c, NUM_LAYERS); layer++) {
        cfx_tensor *out = cfx_tensor_new(r->dtype, sizes, 3, c->rt->allocator, c->err);
        cfx_status status = out ? CFX_OK : c->err->status;
        for (int64_t d = 0; d < directions && status == CFX_OK; d++) {
            size_t i = (size_t)(layer * directions + d);
            direction w = direction_of(c, params, i, r->state != r->hidden);
            status = run_direction(r, &w, last->data, d == 1, ends[0]->data + i * one,
                                   ends[1] ? ends[1]->data + i * one_cell : r->of_state,
                                   out->data + (size_t)(d * r->state) * r->size, sizes[2]);
        }
        cfx_tensor_release(last);
        last = out;
        if (status != CFX_OK) {
            cfx_tensor_release(out);
            return status;
        }
        if (drops && layer + 1 < cfxi_rt_int(c, NUM_LAYERS) && !(last = drop_some(c, last)))
            return c->err->status;
    }
    *result = last;
    return CFX_OK;
}

/* [steps, batch, ...], contiguous. */
static cfx_tensor *steps_first(cfxi_call *c, cfx_dtype dtype)
{
    cfx_tensor x = cfxi_linalg_shown(cfxi_rt_tensor(c, INPUT));
    if (cfxi_rt_bool(c, BATCH_FIRST)) {
        int64_t size = x.size[0];
        int64_t stride = x.stride[0];
        x.size[0] = x.size[1], x.stride[0] = x.stride[1];
        x.size[1] = size, x.stride[1] = stride;
        return copy_of(c, &x, dtype);
    }
    return cfxi_rt_contiguous(c, cfxi_rt_tensor(c, INPUT), dtype);
}

static cfx_status deliver(cfxi_call *c, const cfx_tensor *out, cfx_tensor *const *ends)
{
    cfx_tensor to = cfxi_linalg_shown(cfxi_rt_result_at(c, 0));
    if (cfxi_rt_bool(c, BATCH_FIRST)) {
        to.size[0] = out->size[0], to.size[1] = out->size[1];
        int64_t stride = to.stride[0];
        to.stride[0] = to.stride[1];
        to.stride[1] = stride;
    }
    CFX_TRY(cfxi_rt_copy(c->rt, &to, out, c->err));
    CFX_TRY(cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 1), ends[0], c->err));
    return ends[1] ? cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 2), ends[1], c->err) : CFX_OK;
}

static cfx_status run_recurrent(cfxi_call *c, cfx_tensor **params, size_t n)
{
    const cell kind = cell_of(c->op);
    const cfx_tensor *h = first_state(c, 0);
    const cfx_tensor *cells = kind == LSTM ? first_state(c, 1) : h;
    size_t count;
    const cfx_datum *given = cfxi_rt_list(c, PARAMS, &count);
    recurrent r = {.batch = h->size[1], .hidden = cells->size[2], .state = h->size[2]};
    r.steps = cfxi_rt_tensor(c, INPUT)->size[cfxi_rt_bool(c, BATCH_FIRST) ? 1 : 0];
    cfx_tensor *x = NULL, *out = NULL, *ends[2] = {NULL, NULL};
    CFX_TRY(prepare(&r, c, kind, h));
    cfx_status status = CFX_OK;
    for (size_t i = 0; i < n && status == CFX_OK; i++)
        if (!(params[i] = cfxi_rt_contiguous(c, given[i].as.tensor, r.dtype)))
            status = c->err->status;
    if (status == CFX_OK) {
        x = steps_first(c, r.dtype);
        ends[0] = x ? copy_of(c, h, r.dtype) : NULL;
        ends[1] = ends[0] && kind == LSTM ? copy_of(c, cells, r.dtype) : NULL;
        status = ends[kind == LSTM] ? CFX_OK : c->err->status;
    }
    if (status == CFX_OK)
        status = run_layers(&r, params, x, ends, &out);
    if (status == CFX_OK)
        status = deliver(c, out, ends);
    cfx_tensor_release(out);
    cfx_tensor_release(ends[1]);
    cfx_tensor_release(ends[0]);
    cfx_tensor_release(x);
    cfxi_rt_scratch_free(c->rt, r.of_input);
    return status;
}

cfx_status cfxi_kernel_lstm(cfxi_call *c)
{
    size_t n;
    cfxi_rt_list(c, PARAMS, &n);
    cfx_tensor **params = cfxi_rt_scratch(c->rt, n * sizeof *params);
    if (!params)
        return cfxi_base_nomem(c->err);
    memset(params, 0, n * sizeof *params);
    cfx_status status = run_recurrent(c, params, n);
    for (size_t i = 0; i < n; i++)
        cfx_tensor_release(params[i]);
    cfxi_rt_scratch_free(c->rt, params);
    return status;
}
cfx_status cfxi_kernel_gru(cfxi_call *c) { return cfxi_kernel_lstm(c); }
cfx_status cfxi_kernel_rnn_tanh(cfxi_call *c) { return cfxi_kernel_lstm(c); }
cfx_status cfxi_kernel_rnn_relu(cfxi_call *c) { return cfxi_kernel_lstm(c); }

/* ---- cells --------------------------------------------------------------------------------- */

enum { W_IH = 2, W_HH, B_IH, B_HH };

/* Arguments: input, hx, w_ih, w_hh, b_ih, b_hh. */
cfx_status cfxi_rule_recurrent_cell(cfxi_call *c)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cell kind = cell_of(c->op);
    for (size_t i = 0; i < (kind == LSTM ? 2u : 1u); i++) {
        const cfx_tensor *s = first_state(c, i);
        if (!s)
            return cfxi_fail(c, CFX_E_SHAPE, "lstm_cell expects two hidden states");
        if (s->ndim != x->ndim || x->ndim < 1 || x->ndim > 2 ||
            (x->ndim == 2 && !cfxi_rt_same_size(c, s->size[0], x->size[0])))
            return cfxi_fail(c, CFX_E_SHAPE, "Input batch size and hidden batch size must match");
        if (!cfxi_rt_same_size(c, s->size[s->ndim - 1], first_state(c, 0)->size[s->ndim - 1]))
            return cfxi_fail(c, CFX_E_SHAPE, "the hidden states must have the same size");
    }
    const cfx_tensor *h = first_state(c, 0);
    const int64_t hidden = h->size[h->ndim - 1];
    const int64_t gates = cfx_dim_mul(c->dims, gates_of[kind], hidden, c->err);
    for (size_t i = W_IH; i <= B_HH; i++) {
        const cfx_tensor *w = cfxi_rt_tensor(c, i);
        if (!w && i >= B_IH)
            continue;
        int64_t in = i == W_IH ? x->size[x->ndim - 1] : hidden;
        bool fits = w->dtype == x->dtype && w->ndim == (i < B_IH ? 2 : 1) &&
                    cfxi_rt_same_size(c, w->size[0], gates) &&
                    (i >= B_IH || cfxi_rt_same_size(c, w->size[1], in));
        if (!fits)
            return cfxi_fail(c, CFX_E_SHAPE, "a weight does not match the input and the hidden "
                             "state in dtype or size");
    }
    if (!cfx_dtype_is_float((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "recurrent cells are not implemented for %s",
                         cfx_dtype_name((cfx_dtype)x->dtype));
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)x->dtype, h->size, h->ndim));
    return kind == LSTM ? cfxi_rt_result(c, 1, (cfx_dtype)x->dtype, h->size, h->ndim) : CFX_OK;
}

cfx_status cfxi_kernel_lstm_cell(cfxi_call *c)
{
    const cell kind = cell_of(c->op);
    const cfx_tensor *h0 = first_state(c, 0);
    recurrent r = {.batch = h0->ndim == 2 ? h0->size[0] : 1, .hidden = h0->size[h0->ndim - 1],
                   .steps = 1};
    cfx_tensor *own[7] = {NULL};  /* x, w_ih, w_hh, b_ih, b_hh, h, c */
    r.state = r.hidden;
    CFX_TRY(prepare(&r, c, kind, h0));
    cfx_status status = CFX_OK;
    for (size_t i = 0; i < 5 && status == CFX_OK; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i ? i + 1 : 0);
        if (t && !(own[i] = cfxi_rt_contiguous(c, t, r.dtype)))
            status = c->err->status;
    }
    for (size_t i = 0; i < 2 && status == CFX_OK; i++) {
        const cfx_tensor *t = first_state(c, i);
        if (t && !(own[5 + i] = copy_of(c, t, r.dtype)))
            status = c->err->status;
    }
    if (status == CFX_OK) {
        const direction d = {own[1], own[2], own[3], own[4], NULL};
        status = times_weight(&r, r.of_input, own[0]->data, r.batch, d.w_ih, d.b_ih);
        if (status == CFX_OK)
            status = step(&r, &d, r.of_input, own[5]->data, own[6] ? own[6]->data : r.of_state);
    }
    if (status == CFX_OK)
        status = cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), own[5], c->err);
    if (status == CFX_OK && kind == LSTM)
        status = cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 1), own[6], c->err);
    for (size_t i = 0; i < 7; i++)
        cfx_tensor_release(own[i]);
    cfxi_rt_scratch_free(c->rt, r.of_input);
    return status;
}
cfx_status cfxi_kernel_gru_cell(cfxi_call *c) { return cfxi_kernel_lstm_cell(c); }
cfx_status cfxi_kernel_rnn_tanh_cell(cfxi_call *c) { return cfxi_kernel_lstm_cell(c); }
cfx_status cfxi_kernel_rnn_relu_cell(cfxi_call *c) { return cfxi_kernel_lstm_cell(c); }
