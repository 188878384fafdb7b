/* timing.c - how long runs take: for cfx run --time and cfx bench. */
#include "cli.h"

#include <stdlib.h>
#include <time.h>

enum { MOST_RUNS = 1000 };

double cli_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

cfx_status cli_measure(const cli_program *p, double seconds, cli_times *out, cfx_error *err)
{
    double times[MOST_RUNS];
    const double begin = cli_seconds();
    size_t graph;
    size_t runs = 0;
    do {
        const double start = cli_seconds();
        const cfx_datum d = cli_program_run(p, &graph, err);
        times[runs++] = cli_seconds() - start;
        if (d.kind == CFX_DATUM_INVALID)
            return err->status;
        cfx_datum_release(d);
    } while (cli_seconds() - begin < seconds && runs < MOST_RUNS);
    qsort(times, runs, sizeof *times, compare_times);
    *out = (cli_times){times[0], times[runs / 2], (times[3 * runs / 4] - times[runs / 4]) / 2,
                       runs};
    return CFX_OK;
}
