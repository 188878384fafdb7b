/* packing.c - what the built-in kernels share: weights in panels, posts. */
#include "backend_impl.h"

#include <math.h>

/* ---- weights ------------------------------------------------------------------------------- */

/* Weights on their way into panels: see cfxi_backend_pack. */
typedef struct packing {
    float *to;
    int64_t n, count, k;
    const float *w;
    int64_t step;
    const float *scale;
    cfxi_line_at *at;
    const void *ctx;
} packing;

enum {
    MANY_FLOATS = 1 << 16,  /* that another thread takes at a time */
    LINES = 16              /* that are turned at a time */
};

/* The lines that begin at w + at[0], w + at[1] ..., turned: weights of one column often lie side by
 * side, and columns so far apart that no cache would hold a piece of each until the next line. */
static void pack_lines(const packing *s, int64_t column, const int64_t *at, int64_t lines,
                       float *to)
{
    const int64_t columns = s->n - column < CFXI_PANEL ? s->n - column : CFXI_PANEL;
    for (int64_t i = 0; i < columns; i++) {
        const float *w = s->w + (column + i) * s->step;
        const float scale = s->scale ? s->scale[column + i] : 1;
        for (int64_t p = 0; p < lines; p++)
            to[p * CFXI_PANEL + i] = w[at[p]] * scale;
    }
    for (int64_t i = columns; i < CFXI_PANEL; i++)
        for (int64_t p = 0; p < lines; p++)
            to[p * CFXI_PANEL + i] = 0;
}

static void pack_panels(void *ctx, int64_t begin, int64_t end)
{
    const packing *s = ctx;
    const int64_t lines = s->count * s->k;
    float *to = s->to + begin * lines * CFXI_PANEL;
    for (int64_t panel = begin; panel < end; panel++) {
        int64_t at[LINES];
        for (int64_t line = 0; line < lines; line += LINES) {
            const int64_t some = lines - line < LINES ? lines - line : LINES;
            for (int64_t p = 0; p < some; p++)
                at[p] = s->at(s->ctx, (line + p) / s->k, (line + p) % s->k);
            pack_lines(s, panel * CFXI_PANEL, at, some, to);
            to += some * CFXI_PANEL;
        }
    }
}

void cfxi_backend_each_panel(cfx_runtime *rt, int64_t panels, int64_t floats,
                             cfxi_range_fn *fn, void *ctx)
{
    if (rt)
        cfxi_rt_parallel(rt, panels, floats < MANY_FLOATS ? MANY_FLOATS / (floats + 1) + 1 : 1, fn,
                         ctx);
    else
        fn(ctx, 0, panels);
}

void cfxi_backend_pack(cfx_runtime *rt, float *to, int64_t n, int64_t count, int64_t k,
                       const float *w, int64_t step, const float *scale, cfxi_line_at *at,
                       const void *ctx)
{
    packing s = {to, n, count, k, w, step, scale, at, ctx};
    cfxi_backend_each_panel(rt, cfxi_tiles_panels(n), count * k * CFXI_PANEL, pack_panels, &s);
}

double cfxi_backend_weight_cost(int64_t floats)
{
    enum { CACHED = 1 << 18 };  /* floats */
    const double per_float = 0.03;  /* most of the time, arithmetic goes on meanwhile */
    return floats > CACHED ? per_float * (double)(floats - CACHED) : 0;
}

void cfxi_backend_pack_bias(float *to, int64_t n, const float *bias)
{
    const int64_t room = cfxi_tiles_panels(n) * CFXI_PANEL;
    for (int64_t i = 0; i < room; i++)
        to[i] = bias && i < n ? bias[i] : 0;
}

/* ---- work ---------------------------------------------------------------------------------- */

static int64_t parts(int64_t n, int64_t size) { return (n + size - 1) / size; }

int64_t cfxi_backend_even_lines(unsigned threads, int64_t all, int64_t most, int64_t times)
{
    int64_t best = most;
    double least = INFINITY;
    for (int64_t lines = most; lines > 0; lines--) {
        const double own = (double)parts(parts(all, lines) * times, threads);
        const double cost = own * ((double)lines + 0.3);
        if (cost < least) {
            least = cost;
            best = lines;
        }
    }
    return best;
}

/* ---- posts --------------------------------------------------------------------------------- */

cfxi_fused_posts cfxi_backend_fuse_posts(const cfxi_problem *p)
{
    cfxi_fused_posts f = {.low = -INFINITY, .high = INFINITY};
    if (f.rest < p->num_posts && p->posts[f.rest].kind == CFXI_POST_ADD)
        f.adds = ++f.rest;
    if (f.rest < p->num_posts && p->posts[f.rest].kind == CFXI_POST_CLAMP) {
        f.low = p->posts[f.rest].low;
        f.high = p->posts[f.rest++].high;
    }
    return f;
}

static void apply_chain(const cfxi_post *post, const cfxi_run *r, float *x, int64_t n,
                        int64_t offset)
{
    const float *inputs[CFXI_CHAIN_INPUTS] = {x};
    for (size_t i = 1; i < post->chain->num_inputs; i++)
        inputs[i] = r->operands[post->operands[i]] + offset;
    cfxi_backend_chain_run(post->chain, r->rt, n, inputs, x);
}

void cfxi_backend_apply_posts(const cfxi_problem *p, const cfxi_run *r, size_t first, float *x,
                              int64_t n, const int64_t offset[CFXI_MOST_POSTS])
{
    for (size_t i = first; i < p->num_posts; i++) {
        const cfxi_post *post = &p->posts[i];
        const float *other = post->kind == CFXI_POST_ADD || post->kind == CFXI_POST_MUL
                                 ? r->operands[post->operand] + offset[i] : NULL;
        const void *one[] = {x};
        const void *two[] = {x, other};
        const cfxi_scalars bounds = {.f = {post->low, post->high}};
        switch (post->kind) {
        case CFXI_POST_ADD:
            cfxi_elementwise_block_of(r->rt, CFXI_FN_add, CFXI_IN_F32)(&post->s, n, two, x);
            break;
        case CFXI_POST_MUL:
            cfxi_elementwise_block_of(r->rt, CFXI_FN_mul, CFXI_IN_F32)(&post->s, n, two, x);
            break;
        case CFXI_POST_CLAMP:
            cfxi_elementwise_block_of(r->rt, CFXI_FN_hardtanh, CFXI_IN_F32)(&bounds, n, one, x);
            break;
        case CFXI_POST_FN:
            cfxi_elementwise_block_of(r->rt, post->fn, CFXI_IN_F32)(&post->s, n, one, x);
            break;
        case CFXI_POST_CHAIN:
            apply_chain(post, r, x, n, offset[i]);
            break;
        }
    }
}

/* Whether n elements of a row are followed by the next row, in all operands too. */
static bool lie_without_gaps(const cfxi_problem *p, size_t first, int64_t n, int dim)
{
    for (size_t i = first; i < p->num_posts; i++) {
        const cfxi_post *post = &p->posts[i];
        const bool has = post->kind == CFXI_POST_ADD || post->kind == CFXI_POST_MUL ||
                         (post->kind == CFXI_POST_CHAIN && post->chain->num_inputs > 1);
        if (has && post->rows[dim] != n)
            return false;
    }
    return true;
}

void cfxi_backend_finish_rows(const cfxi_problem *p, const cfxi_run *r, size_t first, float *x,
                              int64_t rows, int64_t step, int64_t n, int dim,
                              const int64_t offset[CFXI_MOST_POSTS])
{
    int64_t at[CFXI_MOST_POSTS] = {0};
    for (size_t s = first; s < p->num_posts; s++)
        at[s] = offset[s];
    if (step == n && lie_without_gaps(p, first, n, dim)) {
        cfxi_backend_apply_posts(p, r, first, x, rows * n, at);
        return;
    }
    for (int64_t i = 0; i < rows; i++, x += step) {
        cfxi_backend_apply_posts(p, r, first, x, n, at);
        for (size_t s = first; s < p->num_posts; s++)
            at[s] += p->posts[s].rows[dim];
    }
}
