/* fork_gate.h - forks while another thread is held up in the middle of something, at one of its
 * allocations or wherever else a test calls gate_stop(). */
#ifndef FORK_GATE_H
#define FORK_GATE_H

#include "check.h"

#include <cfx/base.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct gate {
    atomic_int left;     /* stops until the thread is held up */
    atomic_bool passed;  /* there were not so many */
    sem_t reached, open;
    bool (*work)(void *ctx);
    void *ctx;
} gate;

static _Thread_local bool is_held_up;

static inline void wait_for(sem_t *s)
{
    while (sem_wait(s) != 0)
        continue;
}

static inline void gate_stop(gate *g)
{
    if (is_held_up && atomic_fetch_sub(&g->left, 1) == 1) {
        sem_post(&g->reached);
        wait_for(&g->open);
    }
}

static void *gate_alloc(void *ctx, size_t size)
{
    gate_stop(ctx);
    return malloc(size);
}

static void gate_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    (void)size;
    free(ptr);
}

static inline cfx_allocator gate_allocator(gate *g)
{
    return (cfx_allocator){gate_alloc, gate_free, g};
}

/* For a thread that is held up at its stop number `n`. */
static inline void gate_begin(gate *g, int n)
{
    *g = (gate){.left = n};
    sem_init(&g->reached, 0, 0);
    sem_init(&g->open, 0, 0);
}

static inline void gate_end(gate *g)
{
    sem_destroy(&g->reached);
    sem_destroy(&g->open);
}

static void *gate_work(void *arg)
{
    gate *g = arg;
    is_held_up = true;
    const bool good = g->work(g->ctx);
    if (atomic_load(&g->left) > 0) {
        atomic_store(&g->passed, true);
        sem_post(&g->reached);
    }
    return good ? NULL : arg;
}

static inline int status_of(pid_t child)
{
    int status = -1;
    if (child > 0)
        waitpid(child, &status, 0);
    return status;
}

/* `work` is held up in a thread, while `goes_on` runs in a child; then it ends here. Both return
 * whether all is well. */
static inline bool gate_fork(gate *g, bool (*work)(void *), bool (*goes_on)(void *), void *ctx)
{
    pthread_t thread;
    void *wrong = g;
    g->work = work;
    g->ctx = ctx;
    if (!CHECK(pthread_create(&thread, NULL, gate_work, g) == 0))
        return false;
    wait_for(&g->reached);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);  /* ends it if it waits */
        _exit(goes_on(ctx) ? 0 : 1);
    }
    sem_post(&g->open);
    pthread_join(thread, &wrong);
    return CHECK(wrong == NULL) && CHECK_INT_EQ(0, status_of(child));
}

#endif
