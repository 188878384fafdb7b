/* gemm_tiles.c - products of float32 whose left rows lie side by side: through tiles (tiles.h).
 *
 * A is read in place; of B some panels at a time are packed, so many that they stay in the
 * second-level cache while the rows of A pass by. Threads have rectangles of C of their own, and
 * pack what they need of B.
 */
#include "gemm_impl.h"
#include "runtime/kernels/tiles/tiles.h"

#include <math.h>

enum {
    CHUNK_BYTES = 256 << 10,      /* of packed B */
    WORK_FOR_A_THREAD = 1 << 18   /* multiplications worth waking another thread */
};

typedef struct tiled {
    cfx_runtime *rt;
    const cfxi_gemm *g;
    const cfxi_gemm_kernel *kernel;  /* packs */
    const cfxi_tiles *tiles;
    int64_t panels;
    int64_t chunk;         /* panels that are packed together */
    int64_t across, down;  /* rectangles */
    atomic_bool no_memory;
} tiled;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/* Panels [first, first + n) of B, and their part of the bias, padded with zeros. */
static void pack_panels(const tiled *t, int64_t first, int64_t n, float *to, float *bias)
{
    const cfxi_gemm *g = t->g;
    for (int64_t i = 0; i < n; i++) {
        const int64_t column = (first + i) * CFXI_PANEL;
        t->kernel->pack(to + i * CFXI_PANEL * g->k, CFXI_PANEL,
                        (const float *)g->b + column * g->b_col, g->b_col, g->b_row,
                        smaller(CFXI_PANEL, g->n - column), g->k);
    }
    const int64_t column = first * CFXI_PANEL;
    for (int64_t i = 0; g->bias && i < n * CFXI_PANEL; i++)
        bias[i] = column + i < g->n ? ((const float *)g->bias)[column + i] : 0;
}

/* Rows [row, row + rows) by the panels that are packed, which begin with `first`. */
static void multiply_chunk(const tiled *t, int64_t row, int64_t rows, int64_t first, int64_t panels,
                           const float *packed, const float *bias)
{
    static const int64_t at = 0;
    const cfxi_gemm *g = t->g;
    const cfxi_tiling tiling = cfxi_tiles_tiling(t->rt->isa, rows, panels, g->a_row);
    cfxi_sum_tile s = {.a_row = g->a_row, .a_at = &at, .b_panel = CFXI_PANEL * g->k, .b_at = &at,
                       .count = 1, .k = g->k, .c_row = g->c_row, .add_row = g->c_row,
                       .low = -INFINITY, .high = INFINITY};
    for (int64_t panel = 0, n; panel < panels; panel += n) {
        n = cfxi_tiles_across(t->tiles->most_rows, tiling, panels - panel);
        const int64_t column = (first + panel) * CFXI_PANEL;
        s.b = packed + panel * CFXI_PANEL * g->k;
        s.bias = g->bias ? bias + panel * CFXI_PANEL : NULL;
        s.columns = smaller(n * CFXI_PANEL, g->n - column);
        for (int64_t i = row; i < row + rows; i += tiling.rows) {
            s.a = (const float *)g->a + i * g->a_row;
            s.c = (float *)g->c + i * g->c_row + column;
            s.add = g->beta == 1 ? s.c : NULL;
            t->tiles->fn[n - 1][smaller(tiling.rows, row + rows - i) - 1](&s);
        }
    }
}

static void multiply_rectangles(void *ctx, int64_t begin, int64_t end)
{
    tiled *t = ctx;
    const cfxi_gemm *g = t->g;
    float *packed = cfxi_rt_scratch(t->rt, (size_t)(t->chunk * CFXI_PANEL) * (size_t)(g->k + 1) *
                                               sizeof *packed);
    if (!packed) {
        atomic_store(&t->no_memory, true);
        return;
    }
    float *bias = packed + t->chunk * CFXI_PANEL * g->k;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = g->m * (i / t->across) / t->down;
        const int64_t rows = g->m * (i / t->across + 1) / t->down - row;
        const int64_t last = t->panels * (i % t->across + 1) / t->across;
        for (int64_t panel = t->panels * (i % t->across) / t->across, n; panel < last; panel += n) {
            n = smaller(t->chunk, last - panel);
            pack_panels(t, panel, n, packed, bias);
            multiply_chunk(t, row, rows, panel, n, packed, bias);
        }
    }
    cfxi_rt_scratch_free(t->rt, packed);
}

bool cfxi_linalg_gemm_takes_tiles(const cfxi_gemm *g)
{
    return g->a_col == 1 && g->c_col == 1 && g->alpha == 1 && (g->beta == 0 || g->beta == 1) &&
           !(g->bias && g->bias_rows);
}

cfx_status cfxi_linalg_gemm_tiles(cfx_runtime *rt, const cfxi_gemm *g, cfx_error *err)
{
    tiled t = {.rt = rt, .g = g, .panels = cfxi_tiles_panels(g->n), .across = 1, .down = 1,
               .kernel = cfxi_linalg_gemm_of(rt->isa)->f32,
               .tiles = cfxi_tiles_of(rt->isa)};
    const int64_t threads = (int64_t)cfxi_rt_pool_threads(rt->pool);
    const double work = (double)g->m * (double)g->n * (double)g->k;
    if (work >= 2.0 * WORK_FOR_A_THREAD && threads > 1) {
        /* By columns, so that B is packed once; by rows where there are few columns. */
        t.across = smaller(2 * threads, t.panels / 4 > 0 ? t.panels / 4 : 1);
        t.down = t.across >= threads ? 1 : smaller(threads, (g->m + 13) / 14);
    }
    const int64_t panel_bytes = g->k * CFXI_PANEL * (int64_t)sizeof(float);
    t.chunk = CHUNK_BYTES / panel_bytes / 4 * 4;
    t.chunk = smaller(t.chunk < 4 ? 4 : t.chunk, (t.panels + t.across - 1) / t.across);
    cfxi_rt_parallel(rt, t.across * t.down, 1, multiply_rectangles, &t);
    return atomic_load(&t.no_memory) ? cfxi_base_nomem(err) : CFX_OK;
}
