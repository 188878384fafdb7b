/* bag_sums.c - tests of src/runtime/kernels/index/bag_sums*: each instruction set gives the bits of
 * plain loops. */
#include "check.h"
#include "runtime/kernels/index/bag_sums.h"
#include "runtime/runtime_impl.h"

#include <string.h>

enum { ROWS = 9, MOST = 150, GAP = 3 };

static float table[ROWS][MOST + GAP];

static void fill(void)
{
    uint32_t state = 1;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < MOST + GAP; k++) {
            state = state * 1664525u + 1013904223u;
            table[i][k] = (float)(state >> 8) / (1 << 23) - 1;
        }
}

static void by_loops(const cfxi_bag_rows *r, int64_t from, int64_t columns, double *sum)
{
    for (int64_t k = 0; k < columns; k++) {
        sum[k] = 0;
        for (int64_t i = 0; i < r->n; i++)
            if (r->indices[i] != r->padding)
                sum[k] += (r->samples ? r->samples[i] : 1) *
                          (double)table[r->indices[i]][from + k];
    }
}

static void compare(const cfxi_bag_sums *fast, const cfxi_bag_rows *r, int64_t from,
                    int64_t columns)
{
    double want[MOST];
    double got[MOST];
    by_loops(r, from, columns, want);
    fast->rows(r, columns, got);
    CHECK(memcmp(want, got, (size_t)columns * sizeof *want) == 0);
    memset(got, 0, sizeof got);
    for (int64_t i = 0; i < r->n; i++)
        if (r->indices[i] != r->padding)
            fast->add(got, r->samples ? r->samples[i] : 1, &table[r->indices[i]][from], columns);
    CHECK(memcmp(want, got, (size_t)columns * sizeof *want) == 0);
}

TEST(every_instruction_set_gives_the_bits_of_loops)
{
    static const int64_t indices[] = {3, 0, 8, 3, 5, 1, 7, 2, 6, 4, 0, 0, 8, 1, 3, 5, 2, 7, 6, 4};
    static const double samples[] = {1, -2, 0.25, 3, 1e-3, 7, 0, -1, 2, 5,
                                     1, -2, 0.25, 3, 1e-3, 7, 0, -1, 2, 5};
    fill();
    for (int isa = 0; isa < CFX_ISA_COUNT; isa++) {
        const cfxi_bag_sums *fast = (cfx_isa)isa <= cfxi_rt_isa_of_machine()
                                        ? cfxi_index_bag_sums_of((cfx_isa)isa) : NULL;
        for (int64_t columns = 0; fast && columns < MOST; columns++)
            for (int way = 0; way < 8; way++) {
                const int64_t from = columns % 2 ? GAP : 0;
                const cfxi_bag_rows r = {
                    .table = (const char *)&table[0][from], .stride = sizeof table[0],
                    .indices = indices, .n = way & 4 ? columns % 4 : 20, .known = 20,
                    .samples = way & 1 ? samples : NULL, .padding = way & 2 ? 3 : -1};
                compare(fast, &r, from, columns);
            }
    }
}
