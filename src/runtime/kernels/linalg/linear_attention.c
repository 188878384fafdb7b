/* linear_attention.c - attention by a state that each step updates, and a query reads.
 *
 *     linear        S += k v^T
 *     gated         S = exp(g) S + k v^T
 *     delta         S += b k (v - S^T k)^T
 *     gated_delta   S = exp(g) S, then as delta
 *     output        scale * S^T q
 *
 * One head of keys and values of one image is one piece of work: its steps follow one another.
 */
#include "runtime/spatial.h"

#include <math.h>

enum { QUERY, KEY, VALUE, STATE, DECAY, BETA, RULE, SCALE };
enum { NUM_TENSORS = BETA + 1 };

typedef struct job {
    const double *of[NUM_TENSORS];
    double *out, *state, *room;   /* `room`: one vector of `values` for each head */
    int64_t batch, steps, queries, heads, size, values;
    int64_t decays, betas;        /* numbers for each head (1 or size); heads that beta has */
    bool gated, delta;
    double scale;
} job;

cfx_status cfxi_rule_linear_attention(cfxi_call *c)
{
    static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
    const cfx_tensor *q = cfxi_rt_tensor(c, QUERY), *k = cfxi_rt_tensor(c, KEY);
    const cfx_tensor *v = cfxi_rt_tensor(c, VALUE), *state = cfxi_rt_tensor(c, STATE);
    const cfx_tensor *decay = cfxi_rt_tensor(c, DECAY), *beta = cfxi_rt_tensor(c, BETA);
    size_t rule = 0;
    while (rule < 4 && strcmp(rules[rule], cfxi_rt_str(c, RULE)) != 0)
        rule++;
    if (rule == 4)
        return cfxi_fail(c, CFX_E_VALUE, "'%s' is not a rule of linear attention",
                         cfxi_rt_str(c, RULE));
    if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4 || (state && state->ndim != 4) ||
        (decay && decay->ndim != 4) || (beta && beta->ndim != 3))
        return cfxi_fail(c, CFX_E_SHAPE, "query, key, value, state and decay must have 4 "
                         "dimensions, beta 3");
    if (!cfx_dtype_is_float((cfx_dtype)q->dtype) || k->dtype != q->dtype || v->dtype != q->dtype)
        return cfxi_fail(c, CFX_E_SHAPE, "query, key and value must be floats of one type");
    if ((rule % 2 == 1 && !decay) || (rule >= 2 && !beta))
        return cfxi_fail(c, CFX_E_VALUE, "'%s' needs %s", rules[rule], rule == 1 ? "decay"
                         : rule == 2 ? "beta" : "decay and beta");
    bool fits = q->size[2] < 0 || k->size[2] < 0 ||
                (k->size[2] > 0 && q->size[2] % k->size[2] == 0);
    for (size_t d = 0; d < 2; d++)
        fits = fits && cfxi_rt_same_size(c, q->size[d], k->size[d]) &&
               cfxi_rt_same_size(c, q->size[d], v->size[d]) &&
               (!decay || cfxi_rt_same_size(c, q->size[d], decay->size[d])) &&
               (!beta || cfxi_rt_same_size(c, q->size[d], beta->size[d]));
    fits = fits && cfxi_rt_same_size(c, k->size[2], v->size[2]) &&
           cfxi_rt_same_size(c, q->size[3], k->size[3]);
    if (decay)
        fits = fits && cfxi_rt_same_size(c, decay->size[2], k->size[2]) &&
               (decay->size[3] == 1 || cfxi_rt_same_size(c, decay->size[3], k->size[3]));
    if (beta)
        fits = fits && (beta->size[2] == 1 || cfxi_rt_same_size(c, beta->size[2], k->size[2]));
    const int64_t sizes[] = {q->size[0], k->size[2], k->size[3], v->size[3]};
    for (size_t d = 0; state && d < 4; d++)
        fits = fits && cfxi_rt_same_size(c, state->size[d], sizes[d]);
    if (!fits)
        return cfxi_fail(c, CFX_E_SHAPE, "the sizes of the tensors do not fit one another");
    const int64_t out[] = {q->size[0], q->size[1], q->size[2], v->size[3]};
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)q->dtype, out, 4));
    return cfxi_rt_result(c, 1, (cfx_dtype)(state ? state : q)->dtype, sizes, 4);
}

/* Step t of one head: S becomes that of the step. */
static void update(const job *j, int64_t image, int64_t t, int64_t head, double *s, double *seen)
{
    const int64_t at = (image * j->steps + t) * j->heads + head;
    const double *k = j->of[KEY] + at * j->size, *v = j->of[VALUE] + at * j->values;
    const double *g = j->gated ? j->of[DECAY] + at * j->decays : NULL;
    double rate = 1;
    if (j->delta)
        rate = j->of[BETA][j->betas == 1 ? image * j->steps + t : at];
    memcpy(seen, v, (size_t)j->values * sizeof *seen);
    for (int64_t i = 0; i < j->size; i++) {
        const double keep = g ? exp(g[j->decays == 1 ? 0 : i]) : 1;
        double *row = s + i * j->values;
        for (int64_t n = 0; n < j->values; n++) {
            row[n] *= keep;
            seen[n] -= j->delta ? row[n] * k[i] : 0;
        }
    }
    for (int64_t i = 0; i < j->size; i++)
        for (int64_t n = 0; n < j->values; n++)
            s[i * j->values + n] += rate * k[i] * seen[n];
}

/* What the queries of a head read. */
static void read_out(const job *j, int64_t image, int64_t t, int64_t head, const double *s)
{
    const int64_t each = j->queries / j->heads;
    for (int64_t h = head * each; h < (head + 1) * each; h++) {
        const int64_t at = (image * j->steps + t) * j->queries + h;
        const double *q = j->of[QUERY] + at * j->size;
        double *out = j->out + at * j->values;
        for (int64_t n = 0; n < j->values; n++)
            out[n] = 0;
        for (int64_t i = 0; i < j->size; i++)
            for (int64_t n = 0; n < j->values; n++)
                out[n] += j->scale * q[i] * s[i * j->values + n];
    }
}

static void run_heads(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    for (int64_t i = begin; i < end; i++) {
        double *s = j->state + i * j->size * j->values;
        for (int64_t t = 0; t < j->steps; t++) {
            update(j, i / j->heads, t, i % j->heads, s, j->room + i * j->values);
            read_out(j, i / j->heads, t, i % j->heads, s);
        }
    }
}

static cfx_status run(cfxi_call *c, job *j, cfx_tensor *out, cfx_tensor *state)
{
    const char *rule = cfxi_rt_str(c, RULE);
    const double scale = cfxi_rt_float(c, SCALE);
    size_t bytes;
    j->out = (double *)out->data;
    j->state = (double *)state->data;
    j->batch = out->size[0], j->steps = out->size[1];
    j->queries = out->size[2], j->values = out->size[3];
    j->heads = state->size[1], j->size = state->size[2];
    j->scale = scale != 0 ? scale : 1 / sqrt((double)j->size);
    j->gated = strncmp(rule, "gated", 5) == 0;
    j->delta = strstr(rule, "delta") != NULL;
    if (cfxi_rt_tensor(c, STATE))
        memcpy(state->data, j->of[STATE], (size_t)cfxi_tensor_numel(state) * sizeof(double));
    else
        memset(state->data, 0, (size_t)cfxi_tensor_numel(state) * sizeof(double));
    if (!cfxi_base_mul_size((size_t)(j->batch * j->heads), (size_t)j->values * sizeof(double), 8,
                            &bytes) || !(j->room = cfxi_rt_scratch(c->rt, bytes)))
        return cfxi_base_nomem(c->err);
    cfxi_rt_parallel(c->rt, j->batch * j->heads, 1, run_heads, j);
    cfxi_rt_scratch_free(c->rt, j->room);
    return CFX_OK;
}

cfx_status cfxi_kernel_linear_attention(cfxi_call *c)
{
    cfx_tensor *t[NUM_TENSORS] = {NULL}, *to[2] = {NULL, NULL};
    job j = {.room = NULL};
    cfx_status status = CFX_OK;
    for (size_t i = 0; i < NUM_TENSORS && status == CFX_OK; i++) {
        const cfx_tensor *given = cfxi_rt_tensor(c, i);
        if (given && !(t[i] = cfxi_rt_contiguous(c, given, CFX_DTYPE_FLOAT64)))
            status = c->err->status;
        j.of[i] = t[i] ? (const double *)t[i]->data : NULL;
    }
    j.decays = t[DECAY] ? t[DECAY]->size[3] : 0;
    j.betas = t[BETA] ? t[BETA]->size[2] : 0;
    for (size_t i = 0; i < 2 && status == CFX_OK; i++)
        if (!(to[i] = cfxi_rt_work(c, i, CFX_DTYPE_FLOAT64, true)))
            status = c->err->status;
    if (status == CFX_OK)
        status = run(c, &j, to[0], to[1]);
    for (size_t i = 0; i < 2; i++)
        if (to[i])
            status = cfxi_rt_work_done(c, i, to[i], status);
    for (size_t i = 0; i < NUM_TENSORS; i++)
        cfx_tensor_release(t[i]);
    return status;
}
