/* pool_impl.h - making a pool of threads, and how many the machine is good for.
 *
 * Kernels need the "threads" section of runtime_impl.h alone.
 */
#ifndef CFXI_POOL_IMPL_H
#define CFXI_POOL_IMPL_H

#include "runtime_impl.h"

#include <pthread.h>

enum { CFXI_MOST_THREADS = 256 };

typedef int cfxi_start_fn(void *ctx, pthread_t *thread, void *(*fn)(void *), void *arg);

typedef struct cfxi_pool_options {
    unsigned threads;      /* with the caller's; at most CFXI_MOST_THREADS */
    unsigned cores;        /* threads beyond them never wait by spinning */
    cfxi_start_fn *start;  /* NULL: pthread_create. Another one may fail, for tests */
    void *start_ctx;
} cfxi_pool_options;

/* A thread that cannot be started is not an error: the pool then has fewer (cfxi_rt_pool_threads).
 * `rt` is what workers take their scratch from; it outlives the pool. NULL with CFX_E_NOMEM. */
cfxi_pool *cfxi_rt_pool_new(cfx_runtime *rt, const cfxi_pool_options *options, cfx_error *err);
/* Nobody may be using it. NULL is allowed. */
void cfxi_rt_pool_free(cfxi_pool *pool);

/* For tests: how often a sleeping helper was woken so far, and how many sleep now. */
unsigned cfxi_rt_pool_wakes(const cfxi_pool *pool);
unsigned cfxi_rt_pool_sleepers(const cfxi_pool *pool);

/* ---- the machine (cores.c) ----------------------------------------------------------------- */

/* How many threads can run at once in this process: those that it may be scheduled on, and no more
 * than the quota of its control group pays for, rounded up. At least 1. */
unsigned cfxi_rt_cores(void);
/* Likewise, of a process that may be scheduled on `allowed` processors, where the files of the
 * system lie under `root` ("" for the system's own). */
unsigned cfxi_rt_cores_under(const char *root, unsigned allowed);

/* ---- which processor a thread runs on (cores.c) --------------------------------------------- */

/* The processor that this thread runs on; -1 if the system does not say. */
int cfxi_rt_processor(void);
/* Keeps a thread away from `processor`, where it may run on another one, and lets it run again on
 * *avoided (-1: none), which becomes the processor that it avoids now; -1 if it may not run there
 * anyway. */
void cfxi_rt_avoid(pthread_t thread, int *avoided, int processor);

#endif
