/* recurrent_sequence.c - one recurrent layer as ONNX defines it: RNN, GRU and LSTM with activations
 * by name, peepholes, limits, and sequences of different lengths.
 *
 * recurrent.c has PyTorch's layers. Here, too, what the input adds to the gates is one product for
 * all steps. A sequence that has ended keeps its state, and its outputs are zero; the reversed
 * direction begins with the last step of each sequence. 16-bit floats compute in float32.
 */
#include "product_impl.h"
#include "runtime/kernels/elementwise/blocks.h"
#include "runtime/kernels/reduce/float_rows.h"

#include <ctype.h>
#include <math.h>

enum { CELL, INPUT, WEIGHT, RECURRENCE, BIAS, LENGTHS, FIRST_H, FIRST_C, PEEPHOLES, DIRECTION,
       ACTIVATIONS, ALPHA, BETA, CLIP, LINEAR_BEFORE_RESET, INPUT_FORGET };

typedef enum cell { RNN, GRU, LSTM } cell;
static const int64_t gates_of[] = {[RNN] = 1, [GRU] = 3, [LSTM] = 4};
static const size_t functions_of[] = {[RNN] = 1, [GRU] = 2, [LSTM] = 3};

/* name, what it computes of x with a and b, and what they are unless they are given. */
#define ACTIVATIONS_OF(X)                                                                          \
    X(relu, x > 0 ? x : 0, 0, 0, 0)                                                                \
    X(tanh, tanh(x), 0, 0, 0)                                                                      \
    X(sigmoid, 1 / (1 + exp(-x)), 0, 0, 0)                                                         \
    X(affine, a * x + b, 2, 1, 0)                                                                  \
    X(leakyrelu, x >= 0 ? x : a * x, 1, 0.01, 0)                                                   \
    X(thresholdedrelu, x >= a ? x : 0, 1, 1, 0)                                                    \
    X(scaledtanh, a * tanh(b * x), 2, 1, 1)                                                        \
    X(hardsigmoid, fmin(fmax(a * x + b, 0), 1), 2, 0.2, 0.5)                                       \
    X(elu, x >= 0 ? x : a * expm1(x), 1, 1, 0)                                                     \
    X(softsign, x / (1 + fabs(x)), 0, 0, 0)                                                        \
    X(softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)), 0, 0, 0)

#define NAMED(name, value, takes, first, second) ACT_##name,
typedef enum activation_kind { ACTIVATIONS_OF(NAMED) NUM_ACTIVATIONS } activation_kind;
#undef NAMED

typedef struct activation {
    activation_kind kind;
    double a, b;
    cfxi_block_fn *block;  /* or NULL: element by element */
} activation;

static double activate(const activation *f, double x)
{
    const double a = f->a, b = f->b;
    (void)a, (void)b;
#define CASE(name, value, takes, first, second) case ACT_##name: return value;
    switch (f->kind) {
        ACTIVATIONS_OF(CASE)
    case NUM_ACTIVATIONS: break;
    }
#undef CASE
    return x;
}

/* ---- arguments ----------------------------------------------------------------------------- */

typedef struct layer {
    cell cell;
    int64_t steps, batch, hidden, directions;
    bool backwards;  /* the first direction */
    activation functions[2][3];
} layer;

static bool same_word(const char *at, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (tolower((unsigned char)at[i]) != word[i])
            return false;
    return word[n] == '\0';
}

/* The numbers that activations take are listed in the order of the activations that take some. */
static double next_number(const cfxi_call *c, size_t list, size_t *used, double otherwise)
{
    size_t n;
    const cfx_datum *items = cfxi_rt_list(c, list, &n);
    return *used < n ? items[(*used)++].as.f : otherwise;
}

static cfx_status read_activation(cfxi_call *c, const char *at, size_t n, size_t used[2],
                                  activation *f)
{
    static const struct { const char *name; int takes; double a, b; } all[] = {
#define ROW(name, value, takes, first, second) {#name, takes, first, second},
        ACTIVATIONS_OF(ROW)
#undef ROW
    };
    for (int i = 0; i < NUM_ACTIVATIONS; i++) {
        if (!same_word(at, n, all[i].name))
            continue;
        f->kind = (activation_kind)i;
        f->a = all[i].takes > 0 ? next_number(c, ALPHA, &used[0], all[i].a) : 0;
        f->b = all[i].takes > 1 ? next_number(c, BETA, &used[1], all[i].b) : 0;
        return CFX_OK;
    }
    return cfxi_fail(c, CFX_E_VALUE, "'%.*s' is not an activation", (int)(n < 40 ? n : 40), at);
}

/* Their names with commas between, those of the second direction after those of the first. */
static cfx_status read_activations(cfxi_call *c, layer *l)
{
    static const char *const usual[] = {[RNN] = "Tanh", [GRU] = "Sigmoid,Tanh",
                                        [LSTM] = "Sigmoid,Tanh,Tanh"};
    const char *given = cfxi_rt_str(c, ACTIVATIONS);
    const char *at = *given ? given : usual[l->cell];
    size_t used[2] = {0, 0};
    for (int64_t d = 0; d < l->directions; d++) {
        for (size_t i = 0; i < functions_of[l->cell]; i++) {
            size_t n = strcspn(at, ",");
            CFX_TRY(read_activation(c, at, n, used, &l->functions[d][i]));
            at += n + (at[n] == ',');
        }
        at = *given ? at : usual[l->cell];
    }
    return CFX_OK;
}

/* Argument i, if it is given, has these sizes. */
static cfx_status check_sizes(cfxi_call *c, size_t i, const char *name, size_t n,
                              const int64_t *sizes)
{
    const cfx_tensor *t = cfxi_rt_tensor(c, i);
    bool fits = !t || (t->ndim == n &&
                       (i == LENGTHS || t->dtype == cfxi_rt_tensor(c, INPUT)->dtype));
    for (size_t d = 0; t && fits && d < n; d++)
        fits = cfxi_rt_same_size(c, t->size[d], sizes[d]);
    if (!fits)
        return cfxi_fail(c, CFX_E_SHAPE, "'%s' does not fit the other tensors in type or size",
                         name);
    return CFX_OK;
}

static cfx_status read_layer(cfxi_call *c, layer *l)
{
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const cfx_tensor *r = cfxi_rt_tensor(c, RECURRENCE);
    const char *kind = cfxi_rt_str(c, CELL);
    const char *direction = cfxi_rt_str(c, DIRECTION);
    *l = (layer){.cell = same_word(kind, strlen(kind), "lstm")  ? LSTM
                         : same_word(kind, strlen(kind), "gru") ? GRU : RNN};
    if (l->cell == RNN && !same_word(kind, strlen(kind), "rnn"))
        return cfxi_fail(c, CFX_E_VALUE, "'%s' is not one of RNN, GRU, LSTM", kind);
    l->directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
    l->backwards = strcmp(direction, "reverse") == 0;
    if (l->directions == 1 && !l->backwards && strcmp(direction, "forward") != 0)
        return cfxi_fail(c, CFX_E_VALUE, "'%s' is not one of forward, reverse, bidirectional",
                         direction);
    if (x->ndim != 3 || r->ndim != 3 || !cfx_dtype_is_float((cfx_dtype)x->dtype))
        return cfxi_fail(c, CFX_E_SHAPE, "input and weights must be floats of 3 dimensions");
    l->steps = x->size[0];
    l->batch = x->size[1];
    l->hidden = r->size[2];
    return read_activations(c, l);
}

cfx_status cfxi_rule_recurrent_sequence(cfxi_call *c)
{
    layer l;
    CFX_TRY(read_layer(c, &l));
    const cfx_tensor *x = cfxi_rt_tensor(c, INPUT);
    const int64_t d = l.directions, h = l.hidden;
    const int64_t gates = cfx_dim_mul(c->dims, gates_of[l.cell], h, c->err);
    const int64_t both = cfx_dim_mul(c->dims, 2, gates, c->err);
    const int64_t three = cfx_dim_mul(c->dims, 3, h, c->err);
    const cfx_dtype type = (cfx_dtype)x->dtype;
    CFX_TRY(check_sizes(c, WEIGHT, "weight", 3, (const int64_t[]){d, gates, x->size[2]}));
    CFX_TRY(check_sizes(c, RECURRENCE, "recurrence", 3, (const int64_t[]){d, gates, h}));
    CFX_TRY(check_sizes(c, BIAS, "bias", 2, (const int64_t[]){d, both}));
    CFX_TRY(check_sizes(c, LENGTHS, "lengths", 1, &l.batch));
    CFX_TRY(check_sizes(c, FIRST_H, "h", 3, (const int64_t[]){d, l.batch, h}));
    CFX_TRY(check_sizes(c, FIRST_C, "c", 3, (const int64_t[]){d, l.batch, h}));
    CFX_TRY(check_sizes(c, PEEPHOLES, "peepholes", 2, (const int64_t[]){d, three}));
    if (cfxi_rt_tensor(c, LENGTHS) &&
        !cfx_dtype_is_integer((cfx_dtype)cfxi_rt_tensor(c, LENGTHS)->dtype))
        return cfxi_fail(c, CFX_E_SHAPE, "'lengths' must be integers");
    CFX_TRY(cfxi_rt_result(c, 0, type, (const int64_t[]){l.steps, d, l.batch, h}, 4));
    CFX_TRY(cfxi_rt_result(c, 1, type, (const int64_t[]){d, l.batch, h}, 3));
    return cfxi_rt_result(c, 2, type, (const int64_t[]){d, l.batch, l.cell == LSTM ? h : 0}, 3);
}

/* ---- steps --------------------------------------------------------------------------------- */

/* One direction, in the type of the computation; all contiguous. */
typedef struct direction {
    cfxi_call *c;
    const layer *l;
    cfx_dtype dtype;
    size_t size;           /* of an element */
    const activation *f;
    double clip;           /* 0: none */
    bool linear_before_reset, input_forget;
    const char *w, *r, *b, *p;  /* b and p may be NULL */
    const int64_t *lengths;     /* or NULL */
    char *h, *state;       /* batch x hidden: state is c */
    char *of_input;        /* steps x batch x gates */
    char *of_state;        /* batch x gates */
    char *reset;           /* batch x hidden: what a GRU has reset */
} direction;

static void add(const direction *d, void *y, const void *x, int64_t n)
{
    const cfxi_float_rows rows = {d->c->rt, d->dtype};
    cfxi_reduce_rows(&rows)->add(y, x, n);
}

#define ELEMENTS(type)                                                                             \
    static void apply_##type(const direction *d, size_t which, type *x, int64_t n)                 \
    {                                                                                              \
        const activation *f = &d->f[which];                                                        \
        const cfxi_scalars none = {{0}, {0}, {0}, NULL};                                           \
        const void *args[] = {x};                                                                  \
        for (int64_t i = 0; d->clip > 0 && i < n; i++)                                             \
            x[i] = x[i] > (type)d->clip ? (type)d->clip                                            \
                   : x[i] < (type)-d->clip ? (type)-d->clip : x[i];                                \
        if (f->block)                                                                              \
            f->block(&none, n, args, x);                                                           \
        for (int64_t i = 0; !f->block && i < n; i++)                                               \
            x[i] = (type)activate(f, (double)x[i]);                                                \
    }                                                                                              \
    static void peep_##type(const direction *d, size_t which, type *y, const type *c)              \
    {                                                                                              \
        const type *p = (const type *)d->p + (int64_t)which * d->l->hidden;                        \
        for (int64_t i = 0; d->p && i < d->l->hidden; i++)                                         \
            y[i] += p[i] * c[i];                                                                   \
    }                                                                                              \
    /* Gates are input, output, forget, cell. */                                                   \
    static void lstm_##type(const direction *d, type *g, type *c, type *h)                         \
    {                                                                                              \
        int64_t n = d->l->hidden;                                                                  \
        peep_##type(d, 0, g, c);                                                                   \
        peep_##type(d, 2, g + 2 * n, c);                                                           \
        apply_##type(d, 0, g, n);                                                                  \
        apply_##type(d, 0, g + 2 * n, n);                                                          \
        for (int64_t i = 0; d->input_forget && i < n; i++)                                         \
            g[2 * n + i] = 1 - g[i];                                                               \
        apply_##type(d, 1, g + 3 * n, n);                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            h[i] = c[i] = g[2 * n + i] * c[i] + g[i] * g[3 * n + i];                               \
        peep_##type(d, 1, g + n, c);                                                               \
        apply_##type(d, 0, g + n, n);                                                              \
        apply_##type(d, 2, h, n);                                                                  \
        for (int64_t i = 0; i < n; i++)                                                            \
            h[i] *= g[n + i];                                                                      \
    }                                                                                              \
    /* Gates are update, reset, hidden. `reset` gets what the hidden gate multiplies. */           \
    static void gru_gates_##type(const direction *d, type *g, const type *s, const type *h,        \
                                 type *reset)                                                      \
    {                                                                                              \
        int64_t n = d->l->hidden;                                                                  \
        add(d, g, s, 2 * n);                                                                       \
        apply_##type(d, 0, g, 2 * n);                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            if (d->linear_before_reset)                                                            \
                g[2 * n + i] += g[n + i] * s[2 * n + i];                                           \
            else                                                                                   \
                reset[i] = g[n + i] * h[i];                                                        \
    }                                                                                              \
    static void gru_##type(const direction *d, type *g, const type *s, type *h)                    \
    {                                                                                              \
        int64_t n = d->l->hidden;                                                                  \
        if (!d->linear_before_reset)                                                               \
            add(d, g + 2 * n, s + 2 * n, n);                                                       \
        apply_##type(d, 1, g + 2 * n, n);                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            h[i] = (1 - g[i]) * g[2 * n + i] + g[i] * h[i];                                        \
    }                                                                                              \
    static void row_##type(const direction *d, type *g, const type *s, type *c, type *h)           \
    {                                                                                              \
        if (d->l->cell == GRU) {                                                                   \
            gru_##type(d, g, s, h);                                                                \
            return;                                                                                \
        }                                                                                          \
        add(d, g, s, gates_of[d->l->cell] * d->l->hidden);                                         \
        if (d->l->cell == LSTM) {                                                                  \
            lstm_##type(d, g, c, h);                                                               \
            return;                                                                                \
        }                                                                                          \
        apply_##type(d, 0, g, d->l->hidden);                                                       \
        memcpy(h, g, (size_t)d->l->hidden * sizeof *h);                                            \
    }
ELEMENTS(float)
ELEMENTS(double)

/* out[rows, from..to) = x[rows, k] w[from..to)^T + bias; rows of `out` are `width` apart. */
static cfx_status times(const direction *d, char *out, int64_t width, const char *x, int64_t rows,
                        const char *w, int64_t k, int64_t from, int64_t to, const char *bias)
{
    const size_t at = (size_t)from * d->size;
    const cfxi_gemm g = {.m = rows, .n = to - from, .k = k, .a = x, .a_row = k, .a_col = 1,
                         .b = w + at * (size_t)k, .b_row = 1, .b_col = k, .c = out + at,
                         .c_row = width, .c_col = 1, .alpha = 1, .bias = bias ? bias + at : NULL};
    return to > from && rows > 0 ? cfxi_linalg_gemm_run(d->c->rt, d->dtype, &g, d->c->err) : CFX_OK;
}

/* The step of the input that row b reads in the i-th round, or -1 if its sequence has ended. */
static int64_t step_at(const direction *d, bool back, int64_t i, int64_t b)
{
    int64_t length = d->lengths ? d->lengths[b] : d->l->steps;
    return i >= length ? -1 : back ? length - 1 - i : i;
}

/* The gates of a GRU whose reset comes before the product. */
static cfx_status reset_first(const direction *d, bool back, int64_t i)
{
    const int64_t n = d->l->hidden, width = 3 * n;
    for (int64_t b = 0; b < d->l->batch; b++) {
        int64_t t = step_at(d, back, i, b);
        if (t < 0)
            continue;
        char *g = d->of_input + (size_t)((t * d->l->batch + b) * width) * d->size;
        char *s = d->of_state + (size_t)(b * width) * d->size;
        size_t at = (size_t)(b * n) * d->size;
        if (d->dtype == CFX_DTYPE_FLOAT64)
            gru_gates_double(d, (double *)g, (double *)s, (double *)(d->h + at),
                             (double *)(d->reset + at));
        else
            gru_gates_float(d, (float *)g, (float *)s, (float *)(d->h + at),
                            (float *)(d->reset + at));
    }
    if (d->linear_before_reset)
        return CFX_OK;
    return times(d, d->of_state, width, d->reset, d->l->batch, d->r, n, 2 * n, width,
                 d->b ? d->b + (size_t)width * d->size : NULL);
}

static cfx_status run_step(const direction *d, bool back, int64_t i, char *out)
{
    const layer *l = d->l;
    const int64_t n = l->hidden, width = gates_of[l->cell] * n;
    const int64_t most = l->cell == GRU && !d->linear_before_reset ? 2 * n : width;
    CFX_TRY(times(d, d->of_state, width, d->h, l->batch, d->r, n, 0, most,
                  d->b ? d->b + (size_t)width * d->size : NULL));
    if (l->cell == GRU)
        CFX_TRY(reset_first(d, back, i));
    for (int64_t b = 0; b < l->batch; b++) {
        int64_t t = step_at(d, back, i, b);
        if (t < 0)
            continue;
        size_t at = (size_t)(b * n) * d->size;
        char *g = d->of_input + (size_t)((t * l->batch + b) * width) * d->size;
        char *s = d->of_state + (size_t)(b * width) * d->size;
        if (d->dtype == CFX_DTYPE_FLOAT64)
            row_double(d, (double *)g, (double *)s, (double *)(d->state + at),
                       (double *)(d->h + at));
        else
            row_float(d, (float *)g, (float *)s, (float *)(d->state + at), (float *)(d->h + at));
        memcpy(out + (size_t)((t * l->directions * l->batch + b) * n) * d->size, d->h + at,
               (size_t)n * d->size);
    }
    return CFX_OK;
}

/* All steps; `out` is zero, and [steps, directions, batch, hidden] from this direction on. */
static cfx_status run_direction(const direction *d, const cfx_tensor *x, bool back, char *out)
{
    const int64_t width = gates_of[d->l->cell] * d->l->hidden;
    CFX_TRY(times(d, d->of_input, width, x->data, d->l->steps * d->l->batch, d->w, x->size[2], 0,
                  width, d->b));
    for (int64_t i = 0; i < d->l->steps; i++) {
        CFX_TRY(cfxi_rt_go_on(d->c->rt, d->c->err));
        CFX_TRY(run_step(d, back, i, out));
    }
    return CFX_OK;
}

/* ---- memory -------------------------------------------------------------------------------- */

enum { NUM_TENSORS = 11 };

/* Contiguous copies of the arguments, by their numbers, and the results; lengths are int64. */
typedef struct memory {
    cfx_tensor *of[NUM_TENSORS + 1];
    cfx_tensor *out, *h, *state;
    char *scratch;
} memory;

/* A state that the steps write: a copy, or zeros. */
static cfx_tensor *state_of(cfxi_call *c, const layer *l, size_t i, cfx_dtype dtype)
{
    const int64_t sizes[] = {l->directions, l->batch, l->hidden};
    cfx_tensor *t = cfx_tensor_new(dtype, sizes, 3, c->rt->allocator, c->err);
    if (!t)
        return NULL;
    if (!cfxi_rt_tensor(c, i))
        memset(t->data, 0, (size_t)cfxi_tensor_numel(t) * cfx_dtype_size(dtype));
    else if (cfxi_rt_copy(c->rt, t, cfxi_rt_tensor(c, i), c->err) != CFX_OK) {
        cfx_tensor_release(t);
        return NULL;
    }
    return t;
}

static cfx_status prepare(cfxi_call *c, const layer *l, cfx_dtype dtype, memory *m)
{
    const int64_t sizes[] = {l->steps, l->directions, l->batch, l->hidden};
    const size_t item = cfx_dtype_size(dtype);
    size_t gates, bytes;
    for (size_t i = INPUT; i <= PEEPHOLES; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i);
        if (t && i != FIRST_H && i != FIRST_C &&
            !(m->of[i] = cfxi_rt_contiguous(c, t, i == LENGTHS ? CFX_DTYPE_INT64 : dtype)))
            return c->err->status;
    }
    m->out = cfx_tensor_new(dtype, sizes, 4, c->rt->allocator, c->err);
    m->h = m->out ? state_of(c, l, FIRST_H, dtype) : NULL;
    m->state = m->h ? state_of(c, l, FIRST_C, dtype) : NULL;
    if (!m->state)
        return c->err->status;
    memset(m->out->data, 0, (size_t)cfxi_tensor_numel(m->out) * item);
    if (!cfxi_base_mul_size((size_t)(gates_of[l->cell] * l->hidden), item, 0, &gates) ||
        !cfxi_base_mul_size((size_t)(l->batch * (l->steps + 2)), gates, 64, &bytes) ||
        !(m->scratch = cfxi_rt_scratch(c->rt, bytes)))
        return cfxi_base_nomem(c->err);
    return CFX_OK;
}

static cfx_status check_lengths(cfxi_call *c, const layer *l, const cfx_tensor *lengths)
{
    for (int64_t b = 0; lengths && b < l->batch; b++) {
        int64_t n = ((const int64_t *)lengths->data)[b];
        if (n < 0 || n > l->steps)
            return cfxi_fail(c, CFX_E_VALUE, "lengths[%lld] is %lld; there are %lld steps",
                             (long long)b, (long long)n, (long long)l->steps);
    }
    return CFX_OK;
}

/* The part of an argument that is direction i's. */
static const char *part(const cfx_tensor *t, int64_t i, size_t item)
{
    if (!t)
        return NULL;
    int64_t n = 1;
    for (size_t d = 1; d < t->ndim; d++)
        n *= t->size[d];
    return t->data + (size_t)(i * n) * item;
}

static cfx_status run_layer(cfxi_call *c, layer *l, cfx_dtype dtype, memory *m)
{
    const size_t item = cfx_dtype_size(dtype);
    const size_t gates = (size_t)(gates_of[l->cell] * l->hidden) * item;
    CFX_TRY(prepare(c, l, dtype, m));
    CFX_TRY(check_lengths(c, l, m->of[LENGTHS]));
    for (int64_t i = 0; i < l->directions; i++) {
        for (size_t k = 0; k < functions_of[l->cell]; k++) {
            activation *f = &l->functions[i][k];
            cfxi_compute in = dtype == CFX_DTYPE_FLOAT64 ? CFXI_IN_F64 : CFXI_IN_F32;
            if (f->kind == ACT_tanh)
                f->block = cfxi_elementwise_block_of(c->rt, CFXI_FN_tanh, in);
            else if (f->kind == ACT_sigmoid)
                f->block = cfxi_elementwise_block_of(c->rt, CFXI_FN_sigmoid, in);
        }
        const direction d = {
            .c = c, .l = l, .dtype = dtype, .size = item, .f = l->functions[i],
            .clip = cfxi_rt_float(c, CLIP),
            .linear_before_reset = cfxi_rt_bool(c, LINEAR_BEFORE_RESET),
            .input_forget = cfxi_rt_bool(c, INPUT_FORGET),
            .w = part(m->of[WEIGHT], i, item), .r = part(m->of[RECURRENCE], i, item),
            .b = part(m->of[BIAS], i, item), .p = part(m->of[PEEPHOLES], i, item),
            .lengths = m->of[LENGTHS] ? (const int64_t *)m->of[LENGTHS]->data : NULL,
            .h = (char *)part(m->h, i, item), .state = (char *)part(m->state, i, item),
            .of_input = m->scratch, .of_state = m->scratch + (size_t)(l->batch * l->steps) * gates,
            .reset = m->scratch + (size_t)(l->batch * (l->steps + 1)) * gates};
        CFX_TRY(run_direction(&d, m->of[INPUT], i == 1 || l->backwards, m->out->data +
                              (size_t)(i * l->batch * l->hidden) * item));
    }
    CFX_TRY(cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 0), m->out, c->err));
    CFX_TRY(cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 1), m->h, c->err));
    return l->cell == LSTM ? cfxi_rt_copy(c->rt, cfxi_rt_result_at(c, 2), m->state, c->err)
                           : CFX_OK;
}

cfx_status cfxi_kernel_recurrent_sequence(cfxi_call *c)
{
    layer l;
    memory m = {.scratch = NULL};
    CFX_TRY(read_layer(c, &l));
    cfx_dtype given = (cfx_dtype)cfxi_rt_tensor(c, INPUT)->dtype;
    cfx_dtype dtype = given == CFX_DTYPE_FLOAT64 ? CFX_DTYPE_FLOAT64 : CFX_DTYPE_FLOAT32;
    cfx_status status = run_layer(c, &l, dtype, &m);
    for (size_t i = 0; i <= NUM_TENSORS; i++)
        cfx_tensor_release(m.of[i]);
    cfx_tensor_release(m.state);
    cfx_tensor_release(m.h);
    cfx_tensor_release(m.out);
    cfxi_rt_scratch_free(c->rt, m.scratch);
    return status;
}
