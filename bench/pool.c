/* pool.c - what a job on the thread pool costs: hot, after a pause, and how uneven work balances.
 *
 *     build/bench/pool [THREADS]
 *
 * Microseconds, medians of 2,000 jobs (500 after pauses). "hot": jobs of 64 empty pieces one after
 * the other inside a run. "asleep": the first job after 2 ms, when all helpers sleep. "uneven": 64
 * units of work, all of it in the last quarter, against the same work evenly spread; 1.00 is a
 * perfect balance.
 */
#include "runtime/runtime_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { HOT = 2000, COLD = 500, UNIT = 20000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *times, size_t n)
{
    qsort(times, n, sizeof *times, compare);
    return times[n / 2];
}

static void empty(void *ctx, int64_t begin, int64_t end)
{
    (void)ctx;
    (void)begin;
    (void)end;
}

static double hot(cfx_runtime *rt)
{
    static double times[HOT];
    const cfxi_run_mark mark = cfxi_rt_run_begin(rt);
    for (int i = 0; i < HOT; i++) {
        const double begin = now();
        cfxi_rt_parallel(rt, 64, 1, empty, NULL);
        times[i] = now() - begin;
    }
    cfxi_rt_run_end(rt, mark);
    return median(times, HOT);
}

static double cold(cfx_runtime *rt)
{
    static double times[COLD];
    const struct timespec pause = {0, 2000000};
    for (int i = 0; i < COLD; i++) {
        nanosleep(&pause, NULL);
        const double begin = now();
        cfxi_rt_parallel(rt, 64, 1, empty, NULL);
        times[i] = now() - begin;
    }
    return median(times, COLD);
}

/* Units [*ctx, 64) cost something. */
static void units(void *ctx, int64_t begin, int64_t end)
{
    const int64_t *first = ctx;
    volatile float sum = 0;
    for (int64_t i = begin; i < end; i++)
        for (int k = 0; i >= *first && k < UNIT * 64 / (64 - *first); k++)
            sum = sum + 1.0f;
}

static double spread(cfx_runtime *rt, int64_t first)
{
    double times[51];
    for (int i = 0; i < 51; i++) {
        const double begin = now();
        cfxi_rt_parallel(rt, 64, 1, units, &first);
        times[i] = now() - begin;
    }
    return median(times, 51);
}

int main(int argc, char **argv)
{
    const cfx_runtime_options options = {.threads = argc > 1 ? (unsigned)atoi(argv[1]) : 0};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    if (!rt)
        return 1;
    printf("%u threads: hot %.2f, asleep %.2f, uneven %.2f\n", cfx_runtime_threads(rt), hot(rt),
           cold(rt), spread(rt, 48) / spread(rt, 0));
    cfx_runtime_free(rt);
    return 0;
}
