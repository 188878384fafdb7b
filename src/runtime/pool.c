/* pool.c - the threads that share a kernel's work.
 *
 * A job is cut into pieces; every thread has a span of them and takes from the others' spans once
 * its own is done, so a thread that the system holds back delays nobody for more than one piece.
 * The same part of an array goes to the same thread again and again, and is found in its cache.
 *
 * Nobody waits for helpers that have not come: a helper counts itself in (`inside`) and then looks
 * whether the job is still open; who started the job closes it when no piece is left, and then
 * waits until nobody is inside. Both sides write first and look then, with sequentially consistent
 * atomics, so one of them sees the other. The same holds for falling asleep: a helper says that it
 * sleeps, and then looks for a new job under the mutex. (The child of a fork() works alone: there
 * are no helpers, and what they held or counted at that moment stays so.)
 */
#include "runtime_impl.h"

#include <pthread.h>
#include <unistd.h>

enum {
    MOST_THREADS = 256,
    PIECES_EACH = 4,       /* of a job, for each thread, if the grain allows it */
    SPINS_AS_HELPER = 2000,  /* some 30 us: the next operator of a model comes sooner */
    SPINS_AS_CALLER = 20000
};

/* The pieces of one thread that nobody has taken; a line of the cache for each. */
typedef struct span {
    _Alignas(CFXI_ALIGN) _Atomic int64_t next;
    int64_t end;
} span;

typedef struct job {
    cfxi_range_fn *fn;
    void *ctx;
    int64_t n;
    int64_t piece;
} job;

typedef struct helper {
    cfxi_pool *pool;
    unsigned number;  /* 1, 2, ...; the caller is 0 */
    pthread_t thread;
} helper;

struct cfxi_pool {
    _Alignas(CFXI_ALIGN) atomic_bool busy;
    atomic_bool open;
    atomic_bool stop;
    atomic_bool caller_sleeps;
    _Alignas(CFXI_ALIGN) atomic_uint inside;   /* helpers that may look at the job */
    atomic_uint sleepers;
    _Alignas(CFXI_ALIGN) atomic_uint started;  /* how many jobs there were */
    job job;
    unsigned threads;
    pid_t process;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    pthread_cond_t done;
    void *raw;  /* the block that this struct lies in */
    size_t block;
    const cfx_allocator *allocator;
    span *spans;      /* one for each thread */
    helper *helpers;  /* threads - 1 */
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- working ------------------------------------------------------------------------------- */

static void work(cfxi_pool *p, unsigned number)
{
    const job j = p->job;
    for (unsigned i = 0; i < p->threads; i++) {
        span *s = &p->spans[(number + i) % p->threads];
        for (;;) {
            int64_t at = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
            if (at >= s->end)
                break;
            int64_t begin = at * j.piece;
            j.fn(j.ctx, begin, j.n - begin < j.piece ? j.n : begin + j.piece);
        }
    }
}

/* Takes part in the job if there is one. */
static void help(cfxi_pool *p, unsigned number)
{
    atomic_fetch_add(&p->inside, 1);
    if (atomic_load(&p->open))
        work(p, number);
    if (atomic_fetch_sub(&p->inside, 1) == 1 && atomic_load(&p->caller_sleeps)) {
        pthread_mutex_lock(&p->mutex);
        pthread_cond_signal(&p->done);
        pthread_mutex_unlock(&p->mutex);
    }
}

/* Returns when a job was started since `seen`, or the pool stops. */
static void await_job(cfxi_pool *p, unsigned seen)
{
    for (int i = 0; i < SPINS_AS_HELPER; i++) {
        if (atomic_load_explicit(&p->started, memory_order_acquire) != seen)
            return;
        relax();
    }
    pthread_mutex_lock(&p->mutex);
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(&p->started) == seen && !atomic_load(&p->stop))
        pthread_cond_wait(&p->wake, &p->mutex);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->mutex);
}

static void *helper_main(void *arg)
{
    const helper *self = arg;
    cfxi_pool *p = self->pool;
    unsigned seen = 0;
    while (!atomic_load(&p->stop)) {
        unsigned now = atomic_load(&p->started);
        if (now != seen) {
            seen = now;
            help(p, self->number);
        } else {
            await_job(p, seen);
        }
    }
    return NULL;
}

/* ---- a job --------------------------------------------------------------------------------- */

static void start_job(cfxi_pool *p, job j)
{
    int64_t pieces = (j.n - 1) / j.piece + 1;
    p->job = j;
    for (unsigned i = 0; i < p->threads; i++) {
        atomic_store_explicit(&p->spans[i].next, pieces * i / p->threads, memory_order_relaxed);
        p->spans[i].end = pieces * (i + 1) / p->threads;
    }
    atomic_store(&p->open, true);
    atomic_fetch_add(&p->started, 1);
    if (atomic_load(&p->sleepers) > 0) {
        pthread_mutex_lock(&p->mutex);
        pthread_cond_broadcast(&p->wake);
        pthread_mutex_unlock(&p->mutex);
    }
}

static void finish_job(cfxi_pool *p)
{
    atomic_store(&p->open, false);
    for (int i = 0; i < SPINS_AS_CALLER; i++) {
        if (atomic_load(&p->inside) == 0)
            return;
        relax();
    }
    pthread_mutex_lock(&p->mutex);
    atomic_store(&p->caller_sleeps, true);
    while (atomic_load(&p->inside) > 0)
        pthread_cond_wait(&p->done, &p->mutex);
    atomic_store(&p->caller_sleeps, false);
    pthread_mutex_unlock(&p->mutex);
}

void cfxi_rt_parallel(cfx_runtime *rt, int64_t n, int64_t grain, cfxi_range_fn *fn, void *ctx)
{
    cfxi_pool *p = rt->pool;
    if (n <= 0)
        return;
    if (!p || n <= grain || atomic_load_explicit(&p->busy, memory_order_relaxed) ||
        p->process != getpid() || atomic_exchange_explicit(&p->busy, true, memory_order_acquire)) {
        fn(ctx, 0, n);
        return;
    }
    int64_t most = (int64_t)p->threads * PIECES_EACH;
    int64_t piece = n / most + (n % most != 0);
    start_job(p, (job){fn, ctx, n, piece > grain ? piece : grain > 0 ? grain : 1});
    work(p, 0);
    finish_job(p);
    atomic_store_explicit(&p->busy, false, memory_order_release);
}

/* ---- life ---------------------------------------------------------------------------------- */

static size_t rounded(size_t size) { return (size + CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN; }

static cfxi_pool *pool_memory(unsigned threads, const cfx_allocator *allocator, cfx_error *err)
{
    size_t spans = rounded(sizeof(cfxi_pool));
    size_t helpers = spans + threads * sizeof(span);
    size_t block = helpers + (threads - 1) * sizeof(helper) + CFXI_ALIGN;
    char *raw = cfxi_base_alloc(allocator, block);
    if (!raw) {
        cfxi_base_nomem(err);
        return NULL;
    }
    memset(raw, 0, block);
    char *at = raw + (CFXI_ALIGN - (uintptr_t)raw % CFXI_ALIGN) % CFXI_ALIGN;
    cfxi_pool *p = (cfxi_pool *)at;
    p->raw = raw;
    p->block = block;
    p->allocator = allocator;
    p->spans = (span *)(at + spans);
    p->helpers = (helper *)(at + helpers);
    return p;
}

/* If the system gives fewer threads, the pool has fewer. */
cfxi_pool *cfxi_rt_pool_new(unsigned threads, const cfx_allocator *allocator, cfx_error *err)
{
    if (threads > MOST_THREADS)
        threads = MOST_THREADS;
    cfxi_pool *p = pool_memory(threads > 0 ? threads : 1, allocator, err);
    if (!p)
        return NULL;
    p->threads = 1;
    p->process = getpid();
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    for (unsigned i = 1; i < threads; i++, p->threads++) {
        helper *h = &p->helpers[i - 1];
        h->pool = p;
        h->number = i;
        if (pthread_create(&h->thread, NULL, helper_main, h) != 0)
            break;
    }
    return p;
}

/* In the child of a fork() there is nobody to join, and what the helpers held stays as it is. */
void cfxi_rt_pool_free(cfxi_pool *pool)
{
    if (!pool)
        return;
    if (pool->process == getpid()) {
        pthread_mutex_lock(&pool->mutex);
        atomic_store(&pool->stop, true);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->mutex);
        for (unsigned i = 1; i < pool->threads; i++)
            pthread_join(pool->helpers[i - 1].thread, NULL);
        pthread_cond_destroy(&pool->done);
        pthread_cond_destroy(&pool->wake);
        pthread_mutex_destroy(&pool->mutex);
    }
    cfxi_base_free(pool->allocator, pool->raw, pool->block);
}

unsigned cfxi_rt_pool_threads(const cfxi_pool *pool) { return pool ? pool->threads : 1; }
