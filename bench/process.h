/* process.h - the time, and the memory of this process, for the programs that scripts here run. */
#ifndef CFX_BENCH_PROCESS_H
#define CFX_BENCH_PROCESS_H

#include <stdio.h>
#include <time.h>

/* Seconds of a clock that all processes have in common. */
static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Bytes of memory that the process has in RAM. */
static inline double resident(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    char line[200];
    double kilobytes = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Rss: %lf", &kilobytes) == 1)
            break;
    if (f)
        fclose(f);
    return kilobytes * 1024;
}

#endif
