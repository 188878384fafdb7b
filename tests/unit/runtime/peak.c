/* peak.c - measured peaks are numbers that a machine can have. */
#include "test_alloc.h"

#include <cfx/embed/runtime.h>
#include <math.h>

static cfx_peak peak(unsigned threads, cfx_isa isa)
{
    const cfx_runtime_options options = {.threads = threads, .limit_isa = true, .isa = isa};
    cfx_error err = {0};
    cfx_peak found = {0};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    CHECK(rt && cfx_runtime_peak(rt, &found, &err) == CFX_OK);
    CHECK_INT_EQ(cfx_runtime_isa(rt), found.isa);
    CHECK_INT_EQ(cfx_runtime_threads(rt), found.threads);
    cfx_runtime_free(rt);
    return found;
}

TEST(every_instruction_set)
{
    for (int isa = 0; isa < CFX_ISA_COUNT; isa++) {
        const cfx_peak one = peak(1, (cfx_isa)isa);
        CHECK(isfinite(one.gflops) && one.gflops > 0.01 && one.gflops < 1e5);
        CHECK(isfinite(one.gbytes) && one.gbytes > 0.01 && one.gbytes < 1e4);
        printf("%s: %.1f GFLOP/s, %.1f GB/s\n", cfx_isa_name(one.isa), one.gflops, one.gbytes);
    }
}

static double larger(double a, double b) { return a > b ? a : b; }

/* The best of some measurements of each: whatever else the machine does slows single ones down. */
TEST(more_threads_are_not_much_slower)
{
    cfx_peak one = {0};
    cfx_peak two = {0};
    for (int i = 0; i < 2 || (i < 10 && (two.gflops < 0.5 * one.gflops ||
                                         two.gbytes < 0.5 * one.gbytes)); i++) {
        const cfx_peak single = peak(1, CFX_ISA_AVX512);
        const cfx_peak both = peak(2, CFX_ISA_AVX512);
        one.gflops = larger(one.gflops, single.gflops);
        one.gbytes = larger(one.gbytes, single.gbytes);
        two.gflops = larger(two.gflops, both.gflops);
        two.gbytes = larger(two.gbytes, both.gbytes);
    }
    printf("1 thread: %.1f GFLOP/s, %.1f GB/s\n", one.gflops, one.gbytes);
    printf("2 threads: %.1f GFLOP/s, %.1f GB/s\n", two.gflops, two.gbytes);
    CHECK(two.gflops >= 0.5 * one.gflops);
    CHECK(two.gbytes >= 0.5 * one.gbytes);
}

static cfx_status measure(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    cfx_peak found;
    (void)arg;
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.allocator = a, .threads = 2}, &err);
    if (rt)
        cfx_runtime_peak(rt, &found, &err);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(no_memory) { test_oom_sweep(measure, NULL); }
