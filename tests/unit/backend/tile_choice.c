/* tile_choice.c - which tiles a matrix is cut into: there are such tiles, they cover it, and the
 * choice is a good one. Products are those of a plain loop, and do not depend on the number of
 * threads that share the work. */
#include "backend/backend_impl.h"
#include "runtime/kernels/tiles/bytes.h"
#include "runtime/kernels/tiles/dots.h"

#include "test_alloc.h"

#include <math.h>

static int vectors_of(cfx_isa isa)
{
    return isa == CFX_ISA_AVX512 ? 1 : isa == CFX_ISA_AVX2 ? 2 : 4;
}

/* Calls fn with a runtime of each instruction set of the machine. */
static void for_each_isa(void fn(cfx_isa isa))
{
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++)
        if (cfxi_rt_isa_at_most((cfx_isa)isa) == (cfx_isa)isa)
            fn((cfx_isa)isa);
}

/* Walks over all panels as kernels do. */
static bool covers(const cfxi_tiles *tiles, cfxi_tiling t, int64_t panels)
{
    int64_t at = 0;
    while (at < panels) {
        const int64_t n = cfxi_tiles_across(tiles->most_rows, t, panels - at);
        for (int rows = 1; rows <= t.rows; rows++)
            if (n < 1 || n > t.panels || !tiles->fn[n - 1][rows - 1])
                return false;
        at += n;
    }
    return at == panels;
}

static void check_choices(cfx_isa isa)
{
    const cfxi_tiles *tiles = cfxi_tiles_of(isa);
    for (int64_t rows = 1; rows < 220; rows += rows < 40 ? 1 : 13)
        for (int64_t panels = 1; panels < 100; panels += panels < 20 ? 1 : 7)
            for (int meet = 0; meet < 2; meet++) {
                const cfxi_tiling t = cfxi_tiles_tiling(isa, rows, panels, meet ? 1024 : 1000);
                const double sums = (double)(rows * panels * vectors_of(isa));
                CHECK(t.rows >= 1 && t.rows <= rows && t.panels >= 1 && t.panels <= panels);
                CHECK(covers(tiles, t, panels));
                CHECK(t.cycles >= sums / 2);
                /* No row or panel costs much more than what is added to its sums. */
                if (rows > 24 && panels > 3)
                    CHECK(t.cycles <= sums * 0.75);
            }
}

TEST(choices) { for_each_isa(check_choices); }

/* A matrix that is larger in one direction takes longer. (But two rows are computed while one
 * waits for its sums.) */
static void check_growth(cfx_isa isa)
{
    for (int64_t rows = 1; rows < 120; rows++) {
        const double cycles = cfxi_tiles_tiling(isa, rows, 24, 1000).cycles;
        CHECK(rows == 1 || cfxi_tiles_tiling(isa, 2 * rows, 24, 1000).cycles > cycles);
        CHECK(cfxi_tiles_tiling(isa, rows, 48, 1000).cycles > cycles);
    }
}

TEST(growth) { for_each_isa(check_growth); }

/* AMX takes lines of an image of 7 pixels, and one turn that is not full, but no single row; what
 * it leaves of bfloat16 is multiplied as floats there, since pairs are added more slowly. */
#if defined(__x86_64__)
TEST(amx)
{
    const cfxi_bytes *bytes = &cfxi_tiles_bytes_amx;
    const cfxi_dots *dots = &cfxi_tiles_dots_amx;
    const cfx_isa isa = CFX_ISA_AVX512;
    CHECK(cfxi_tiles_bytes_of(isa, CFXI_INT8_TILES, 7, 1536) == bytes);
    CHECK(cfxi_tiles_bytes_of(isa, CFXI_INT8_TILES, 112, 28) == bytes);
    CHECK(cfxi_tiles_bytes_of(isa, CFXI_INT8_TILES, 7, 1540) == &cfxi_tiles_bytes_vnni);
    CHECK(cfxi_tiles_bytes_of(isa, CFXI_INT8_TILES, 112, 8) == &cfxi_tiles_bytes_vnni);
    CHECK(cfxi_tiles_bytes_of(isa, CFXI_INT8_TILES, 1, 1536) == &cfxi_tiles_bytes_vnni);
    CHECK(cfxi_tiles_bytes_of(isa, CFXI_INT8_DOTS, 7, 1536) == &cfxi_tiles_bytes_vnni);
    CHECK(cfxi_tiles_dots_of(isa, CFXI_BF16_TILES, 7, 768) == dots);
    CHECK(cfxi_tiles_dots_of(isa, CFXI_BF16_TILES, 112, 8) == dots);
    CHECK(cfxi_tiles_dots_of(isa, CFXI_BF16_TILES, 14, 20) == cfxi_tiles_dots_of_isa(isa));
    CHECK(cfxi_tiles_dots_of(isa, CFXI_BF16_TILES, 1, 768) == &cfxi_tiles_dots_bf16);
    CHECK(cfxi_tiles_dots_of(isa, CFXI_BF16_DOTS, 14, 20) == &cfxi_tiles_dots_bf16);
}
#endif

static float *numbers(int64_t n, uint32_t state)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) / (float)(1 << 24) - 0.5f;
    }
    return x;
}

static void multiply(cfx_isa isa, unsigned threads, const int64_t sizes[3], const float *x,
                     const float *w, float *out)
{
    const cfx_runtime_options options = {.threads = threads, .limit_isa = true, .isa = isa};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    const cfxi_problem p = {.kind = CFXI_PRODUCT, .isa = isa, .threads = threads, .m = sizes[0],
                            .n = sizes[1], .k = sizes[2], .x_row = sizes[2], .out_row = sizes[1],
                            .w_k = 1, .w_n = sizes[2]};
    const cfxi_constants c = {.w = w};
    const cfxi_run r = {.rt = rt, .x = x, .out = out};
    cfxi_kernel *k = cfxi_backend_product.prepare(&p, &c, cfxi_base_allocator(NULL), NULL);
    if (CHECK(k != NULL) && CHECK(k->backend->run(k, &r, NULL) == CFX_OK))
        k->backend->release(k);
    cfx_runtime_free(rt);
}

/* Some elements of each row and column. */
static void check_product(const int64_t sizes[3], const float *x, const float *w, const float *out)
{
    const int64_t k = sizes[2];
    for (int64_t at = 0; at < sizes[0] * sizes[1]; at += 7) {
        double sum = 0;
        for (int64_t q = 0; q < k; q++)
            sum += (double)x[at / sizes[1] * k + q] * w[at % sizes[1] * k + q];
        CHECK(fabs(sum - out[at]) < 5e-5);
    }
}

/* With lines of 4096 bytes, several chunks of weights and blocks of rows, few rows, odd sizes. */
static void check_threads(cfx_isa isa)
{
    static const int64_t all[][3] = {{67, 300, 1024}, {29, 530, 771}, {3, 700, 260}, {1, 999, 130},
                                     {15, 17, 2048}, {200, 65, 90}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int64_t *sizes = all[i];
        const size_t floats = (size_t)(sizes[0] * sizes[1]);
        float *x = numbers(sizes[0] * sizes[2], 1);
        float *w = numbers(sizes[1] * sizes[2], 2);
        float *alone = malloc(floats * sizeof *alone);
        float *shared = malloc(floats * sizeof *shared);
        multiply(isa, 1, sizes, x, w, alone);
        for (unsigned threads = 2; threads <= 4; threads++) {
            multiply(isa, threads, sizes, x, w, shared);
            CHECK(memcmp(alone, shared, floats * sizeof *alone) == 0);
        }
        check_product(sizes, x, w, alone);
        free(x), free(w), free(alone), free(shared);
    }
}

TEST(threads) { for_each_isa(check_threads); }
