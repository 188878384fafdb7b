/* packing.c - what the built-in kernels share: weights in panels, posts, the choice of tiles. */
#include "backend_impl.h"
#include "tiles.h"

#include <math.h>

/* ---- weights ------------------------------------------------------------------------------- */

void cfxi_backend_pack(float *to, int64_t n, int64_t count, int64_t k, const float *w, int64_t step,
                       const float *scale, cfxi_line_at *at, const void *ctx)
{
    for (int64_t j = 0; j < n; j += CFXI_PANEL) {
        const int64_t columns = n - j < CFXI_PANEL ? n - j : CFXI_PANEL;
        for (int64_t q = 0; q < count; q++)
            for (int64_t p = 0; p < k; p++, to += CFXI_PANEL) {
                const float *line = w + at(ctx, q, p) + j * step;
                for (int64_t i = 0; i < CFXI_PANEL; i++)
                    to[i] = i >= columns ? 0 : scale ? line[i * step] * scale[j + i]
                                                     : line[i * step];
            }
    }
}

void cfxi_backend_pack_bias(float *to, int64_t n, const float *bias)
{
    const int64_t room = cfxi_backend_panels(n) * CFXI_PANEL;
    for (int64_t i = 0; i < room; i++)
        to[i] = bias && i < n ? bias[i] : 0;
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
        }
    }
}

/* ---- tiles --------------------------------------------------------------------------------- */

enum {
    LATENCY = 4,    /* cycles until a sum can be added to again */
    WAY = 4096,     /* bytes after which lines meet in the first-level cache, */
    MOST_MEET = 7   /* and how many of them it holds beside others */
};

/* Cycles of one step of k: a multiply-add for each vector of sums, loads of both operands two at a
 * time, and never less than what a sum takes. */
static double cycles_of(double rows, int panels, int vectors)
{
    const double adds = rows * panels * vectors * (vectors > 1 ? 0.5 : 1);
    const double loads = (rows + panels * vectors) * 0.5;
    const double most = adds > loads ? adds : loads;
    return most > LATENCY ? most : LATENCY;
}

cfxi_tiling cfxi_backend_tiling(cfx_isa isa, int64_t rows, int64_t panels, int64_t a_row)
{
    const cfxi_tiles *tiles = cfxi_backend_tiles(isa);
    const int vectors = isa == CFX_ISA_AVX512 ? 1 : isa == CFX_ISA_AVX2 ? 2 : 4;
    const bool meet = a_row * (int64_t)sizeof(float) % WAY == 0;
    cfxi_tiling best = {1, 1, INFINITY};
    for (int n = 1; n <= CFXI_TILE_MOST_PANELS; n++) {
        const int there = tiles->most_rows[n - 1];
        const int most = meet && there > MOST_MEET ? MOST_MEET : there;
        if (most == 0 || (n > panels && n > 1))
            continue;
        const int64_t down = (rows + most - 1) / most;
        const int64_t across = (panels + n - 1) / n;
        const int64_t each = (rows + down - 1) / down;
        const double cycles = (double)(down * across) * cycles_of((double)each, n, vectors);
        if (cycles < best.cycles)
            best = (cfxi_tiling){(int)each, n, cycles};
    }
    return best;
}
