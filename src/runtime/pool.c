/* pool.c - the threads that share a kernel's work.
 *
 * A job is cut into spans of one size, one for each thread, and these into pieces. A thread takes
 * from the others' spans once its own is done, so a thread that the system holds back delays nobody
 * for more than one piece. The same part of an array goes to the same thread again and again, and
 * is found in its cache.
 *
 * Lanes. Whoever starts a job takes a lane for it: several callers have their jobs side by side.
 * Together with the helpers there should be no more threads at work than the pool has, so the
 * helpers that are left over (threads - callers) are dealt among the lanes; a caller for whom none
 * is left works alone. A helper that is free joins the open lane with the fewest.
 *
 * Nobody waits for helpers that have not come: a helper counts itself in (`inside`) and then looks
 * whether the lane is still open; who finds no piece left closes it, and who started the job waits
 * until nobody is inside. Both sides write first and look then, with sequentially consistent
 * atomics, so one of them sees the other. The same holds for falling asleep: a helper says that it
 * sleeps, and then looks for a new job; exactly one thread takes that word back, and who is not the
 * sleeper itself posts its semaphore.
 *
 * Waiting. A helper looks for the next job without a system call for some microseconds, during a
 * run for longer but giving way to other threads, and then sleeps: waking it costs its caller one
 * system call (5 us on the machine this was measured on), and it comes 3 to 8 us later. Where there
 * are more threads than cores nobody spins: it would keep from the core whoever it waits for.
 *
 * The child of a fork() has no helpers, and what they held or counted at that moment would stay so
 * for ever: the first job there sets everything back and starts new ones.
 */
#include "pool_impl.h"

#include "base/forks.h"

#include <sched.h>
#include <semaphore.h>

enum {
    PIECES_EACH = 4,     /* of a job, for each thread, if the grain allows it */
    SPINS_A_LOOK = 32,   /* between looks at the clock: under 1 us */
    SPIN_US = 50,        /* helpers: without giving way; and in all, if there is no run */
    RUN_US = 500,        /* in a run: most of its steps that have no job are shorter */
    CALLER_SPIN_US = 200
};

/* What is one thread's and nobody has taken; a line of the cache for each. */
typedef struct span {
    _Alignas(CFXI_ALIGN) _Atomic int64_t next;
    int64_t end;
} span;

typedef struct job {
    cfxi_work_fn *fn;
    void *ctx;
    int64_t n;
    int64_t grain;
    int64_t piece;  /* a multiple of the grain */
} job;

/* Room for one job. What is not atomic is written by its caller while the lane is closed and nobody
 * is inside, and read by who is inside while it is open. */
typedef struct cfxi_lane {
    _Alignas(CFXI_ALIGN) atomic_bool taken;
    atomic_bool caller_sleeps;
    _Alignas(CFXI_ALIGN) atomic_bool open;
    atomic_uint inside;  /* helpers that may look at the job */
    atomic_uint room;    /* for so many */
    job job;
    unsigned threads;
    span *spans;         /* one for each thread */
    cfxi_worker caller;
    sem_t done;
} lane;

typedef struct helper {
    _Alignas(CFXI_ALIGN) atomic_bool asleep;
    sem_t wake;
    cfxi_worker worker;
    cfxi_pool *pool;
    pthread_t thread;
    int avoided;         /* the processor of its caller */
} helper;

struct cfxi_pool {
    _Alignas(CFXI_ALIGN) atomic_uint started;  /* how many jobs there were: helpers watch it */
    atomic_bool stop;
    _Alignas(CFXI_ALIGN) atomic_int runs;
    atomic_int callers;        /* with a lane */
    atomic_int processor;      /* that helpers keep away from: the caller's; -1: none */
    atomic_int sleepers;
    atomic_uint wakes;
    atomic_uint ready_for;     /* the number of forks that this is right for, */
    atomic_uint claimed_for;   /* and that some thread makes it right for */
    atomic_uint threads;
    bool spins;
    unsigned lanes_size;
    cfxi_pool_options options;
    cfx_runtime *rt;
    void *raw;  /* the block that this struct lies in */
    size_t block;
    lane *lanes;
    helper *helpers;  /* threads - 1 */
};

/* ---- forks --------------------------------------------------------------------------------- */

static bool is_ready(const cfxi_pool *p)
{
    return atomic_load_explicit(&p->ready_for, memory_order_acquire) == cfxi_base_forks();
}

/* ---- time ---------------------------------------------------------------------------------- */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t microseconds(void) { return (int64_t)(cfxi_rt_clock() / 1000); }

/* A signal that arrives meanwhile ends sem_wait. */
static void wait_for(sem_t *s)
{
    while (sem_wait(s) != 0)
        continue;
}

/* ---- working ------------------------------------------------------------------------------- */

static void work(lane *l, cfxi_worker *self)
{
    const job j = l->job;
    const unsigned n = l->threads;
    for (unsigned i = 0; i < n; i++) {
        span *s = &l->spans[(self->index + i) % n];
        for (;;) {
            int64_t begin = atomic_fetch_add_explicit(&s->next, j.piece, memory_order_relaxed);
            if (begin >= s->end)
                break;
            j.fn(j.ctx, begin, s->end - begin < j.piece ? s->end : begin + j.piece, self);
        }
    }
    atomic_store(&l->open, false);
}

/* Takes part in the job of a lane if there is one, and room. */
static void help(lane *l, cfxi_worker *self)
{
    const unsigned before = atomic_fetch_add(&l->inside, 1);
    if (atomic_load(&l->open) && before < atomic_load(&l->room)) {
        self->lane = l;
        work(l, self);
    }
    if (atomic_fetch_sub(&l->inside, 1) == 1 && atomic_exchange(&l->caller_sleeps, false))
        sem_post(&l->done);
}

/* The open lane with the fewest helpers that still has room; or NULL. */
static lane *neediest(const cfxi_pool *p)
{
    lane *best = NULL;
    unsigned least = CFXI_MOST_THREADS;
    for (unsigned i = 0; i < p->lanes_size; i++) {
        lane *l = &p->lanes[i];
        if (!atomic_load_explicit(&l->open, memory_order_relaxed))
            continue;
        const unsigned inside = atomic_load_explicit(&l->inside, memory_order_relaxed);
        if (inside < least && inside < atomic_load_explicit(&l->room, memory_order_relaxed)) {
            best = l;
            least = inside;
        }
    }
    return best;
}

/* ---- helpers ------------------------------------------------------------------------------- */

/* Whether there is news for a helper: a job since `seen`, or the end. */
static bool has_news(const cfxi_pool *p, unsigned seen)
{
    return atomic_load_explicit(&p->started, memory_order_acquire) != seen ||
           atomic_load_explicit(&p->stop, memory_order_relaxed);
}

/* Looks out for news; false if none came for so long that it is time to sleep. */
static bool watch(const cfxi_pool *p, unsigned seen)
{
    const int64_t begin = p->spins ? microseconds() : 0;
    for (unsigned i = 1; p->spins; i++) {
        if (has_news(p, seen))
            return true;
        relax();
        if (i % SPINS_A_LOOK)
            continue;
        const int64_t passed = microseconds() - begin;
        const bool run = atomic_load_explicit(&p->runs, memory_order_relaxed) > 0;
        if (passed > (run ? RUN_US : SPIN_US))
            return false;
        if (passed > SPIN_US)
            sched_yield();
    }
    return has_news(p, seen);
}

static void fall_asleep(helper *self, unsigned seen)
{
    cfxi_pool *p = self->pool;
    atomic_fetch_add(&p->sleepers, 1);
    atomic_store(&self->asleep, true);
    if ((atomic_load(&p->started) != seen || atomic_load(&p->stop)) &&
        atomic_exchange(&self->asleep, false))
        atomic_fetch_sub(&p->sleepers, 1);
    else
        wait_for(&self->wake);
}

/* Whether it was this call that ended its sleep. */
static bool wake(helper *h)
{
    if (!atomic_load(&h->asleep) || !atomic_exchange(&h->asleep, false))
        return false;
    atomic_fetch_sub(&h->pool->sleepers, 1);
    sem_post(&h->wake);
    return true;
}

static void *helper_main(void *arg)
{
    helper *self = arg;
    cfxi_pool *p = self->pool;
    unsigned seen = 0;
    while (!atomic_load(&p->stop)) {
        const unsigned now = atomic_load(&p->started);
        lane *l;
        if (now == seen && !watch(p, seen))
            fall_asleep(self, seen);
        seen = atomic_load(&p->started);
        while ((l = neediest(p)) != NULL)
            help(l, &self->worker);
    }
    return NULL;
}

/* ---- life ---------------------------------------------------------------------------------- */

static size_t rounded(size_t size) { return (size + CFXI_ALIGN - 1) / CFXI_ALIGN * CFXI_ALIGN; }

/* More callers than that leave nobody to help. */
static unsigned lanes_for(unsigned threads) { return threads - 1; }

static cfxi_pool *pool_memory(cfx_runtime *rt, unsigned threads, cfx_error *err)
{
    const size_t lanes = rounded(sizeof(cfxi_pool));
    const size_t spans = lanes + lanes_for(threads) * sizeof(lane);
    const size_t helpers = spans + lanes_for(threads) * threads * sizeof(span);
    const size_t block = helpers + (threads - 1) * sizeof(helper) + CFXI_ALIGN;
    char *raw = cfxi_base_alloc(rt->allocator, block);
    if (!raw)
        return cfxi_base_nomem(err), NULL;
    memset(raw, 0, block);
    char *at = raw + (CFXI_ALIGN - (uintptr_t)raw % CFXI_ALIGN) % CFXI_ALIGN;
    cfxi_pool *p = (cfxi_pool *)at;
    p->rt = rt;
    p->raw = raw;
    p->block = block;
    p->lanes = (lane *)(at + lanes);
    p->lanes_size = lanes_for(threads);
    for (unsigned i = 0; i < p->lanes_size; i++)
        p->lanes[i].spans = (span *)(at + spans) + i * threads;
    p->helpers = (helper *)(at + helpers);
    return p;
}

static int start_thread(void *ctx, pthread_t *thread, void *(*fn)(void *), void *arg)
{
    (void)ctx;
    return pthread_create(thread, NULL, fn, arg);
}

/* Sets everything back to how it is before the first job, and starts the helpers. Scratch that was
 * there is forgotten: its owner may have been just about to replace it. */
static void begin(cfxi_pool *p)
{
    const unsigned most = atomic_load(&p->threads);
    unsigned made = 1;
    atomic_store(&p->started, 0);
    atomic_store(&p->runs, 0);
    atomic_store(&p->callers, 0);
    atomic_store(&p->processor, -1);
    atomic_store(&p->sleepers, 0);
    for (unsigned i = 0; i < p->lanes_size; i++) {
        span *spans = p->lanes[i].spans;
        p->lanes[i] = (lane){.spans = spans, .caller = {.rt = p->rt, .lane = &p->lanes[i]}};
        sem_init(&p->lanes[i].done, 0, 0);
    }
    for (; made < most; made++) {
        helper *h = &p->helpers[made - 1];
        *h = (helper){.pool = p, .worker = {.index = made, .rt = p->rt}, .avoided = -1};
        sem_init(&h->wake, 0, 0);
        if (p->options.start(p->options.start_ctx, &h->thread, helper_main, h) != 0)
            break;
    }
    atomic_store(&p->threads, made);
}

/* In the child of a fork: one thread begins anew, the others go without helpers meanwhile. */
static bool begin_again(cfxi_pool *p)
{
    const unsigned now = cfxi_base_forks();
    unsigned claimed = atomic_load(&p->claimed_for);
    if (claimed == now || !atomic_compare_exchange_strong(&p->claimed_for, &claimed, now))
        return false;
    begin(p);
    atomic_store_explicit(&p->ready_for, now, memory_order_release);
    return true;
}

cfxi_pool *cfxi_rt_pool_new(cfx_runtime *rt, const cfxi_pool_options *options, cfx_error *err)
{
    const unsigned wanted = options->threads;
    const unsigned threads =
        wanted < 2 ? 2 : wanted > CFXI_MOST_THREADS ? CFXI_MOST_THREADS : wanted;
    cfxi_pool *p = cfxi_base_watch_forks() ? pool_memory(rt, threads, err) : NULL;
    if (!p)
        return cfxi_base_nomem(err), NULL;
    p->options = *options;
    if (!p->options.start)
        p->options.start = start_thread;
    p->spins = threads <= options->cores;
    atomic_init(&p->threads, wanted < 2 ? 1 : threads);
    atomic_init(&p->ready_for, cfxi_base_forks());
    atomic_init(&p->claimed_for, cfxi_base_forks());
    begin(p);
    return p;
}

/* In the child of a fork() there is nobody to join, and what the helpers held stays as it is. */
void cfxi_rt_pool_free(cfxi_pool *p)
{
    if (!p)
        return;
    if (is_ready(p)) {
        const unsigned helpers = atomic_load(&p->threads) - 1;
        atomic_store(&p->stop, true);
        for (unsigned i = 0; i < helpers; i++)
            wake(&p->helpers[i]);
        for (unsigned i = 0; i < helpers; i++) {
            pthread_join(p->helpers[i].thread, NULL);
            sem_destroy(&p->helpers[i].wake);
            cfxi_rt_scratch_free(p->rt, p->helpers[i].worker.scratch);
        }
        for (unsigned i = 0; i < p->lanes_size; i++) {
            sem_destroy(&p->lanes[i].done);
            cfxi_rt_scratch_free(p->rt, p->lanes[i].caller.scratch);
        }
    }
    cfxi_base_free(p->rt->allocator, p->raw, p->block);
}

unsigned cfxi_rt_pool_threads(const cfxi_pool *p) { return p ? atomic_load(&p->threads) : 1; }
unsigned cfxi_rt_pool_wakes(const cfxi_pool *p) { return atomic_load(&p->wakes); }
unsigned cfxi_rt_pool_sleepers(const cfxi_pool *p) { return (unsigned)atomic_load(&p->sleepers); }

/* ---- runs ---------------------------------------------------------------------------------- */

/* 0: it was not counted; else 1 + the number of forks until then. */
cfxi_run_mark cfxi_rt_run_begin(cfx_runtime *rt)
{
    cfxi_pool *p = rt->pool;
    if (!p || !is_ready(p))
        return 0;
    atomic_fetch_add_explicit(&p->runs, 1, memory_order_relaxed);
    return (cfxi_run_mark)cfxi_base_forks() + 1;
}

void cfxi_rt_run_end(cfx_runtime *rt, cfxi_run_mark mark)
{
    if (mark && mark == (cfxi_run_mark)cfxi_base_forks() + 1)
        atomic_fetch_sub_explicit(&rt->pool->runs, 1, memory_order_relaxed);
}

/* ---- a job --------------------------------------------------------------------------------- */

/* How many helpers a caller may have, with `callers` that have a lane, itself included. */
static unsigned share(const cfxi_pool *p, int callers)
{
    const int runs = atomic_load_explicit(&p->runs, memory_order_relaxed);
    const int spare = (int)atomic_load_explicit(&p->threads, memory_order_relaxed) -
                      (runs > callers ? runs : callers);
    return spare <= 0 ? 0 : (unsigned)((spare + callers - 1) / callers);
}

/* A lane with room for some helpers; NULL if there is none. */
static lane *take_lane(cfxi_pool *p)
{
    if (!is_ready(p) && !begin_again(p))
        return NULL;
    if (share(p, atomic_load_explicit(&p->callers, memory_order_relaxed) + 1) == 0)
        return NULL;
    for (unsigned i = 0; i < p->lanes_size; i++) {
        lane *l = &p->lanes[i];
        if (atomic_load_explicit(&l->taken, memory_order_relaxed) ||
            atomic_exchange_explicit(&l->taken, true, memory_order_acquire))
            continue;
        const unsigned room = share(p, atomic_fetch_add(&p->callers, 1) + 1);
        atomic_store_explicit(&l->room, room, memory_order_relaxed);
        return l;
    }
    return NULL;
}

static void give_lane_back(cfxi_pool *p, lane *l)
{
    atomic_fetch_sub(&p->callers, 1);
    atomic_store_explicit(&l->taken, false, memory_order_release);
}

/* Wakes as many helpers as a job has room for beyond those that are awake and free. */
static void wake_some(cfxi_pool *p, unsigned room)
{
    const unsigned helpers = atomic_load(&p->threads) - 1;
    const int sleepers = atomic_load(&p->sleepers);
    int wanted = (int)room - ((int)helpers - sleepers);
    if (sleepers <= 0)
        return;
    for (unsigned i = 0; i < p->lanes_size; i++)
        wanted += (int)atomic_load_explicit(&p->lanes[i].inside, memory_order_relaxed);
    for (unsigned i = 0; i < helpers && wanted > 0; i++)
        if (wake(&p->helpers[i])) {
            atomic_fetch_add_explicit(&p->wakes, 1, memory_order_relaxed);
            wanted--;
        }
}

/* Sees to it that helpers run beside their caller, if there is only one: it has a lane, so that no
 * other gets here before it gives that back. */
static void place_helpers(cfxi_pool *p)
{
    const int here = p->spins ? cfxi_rt_processor() : -1;
    if (here < 0 || here == atomic_load_explicit(&p->processor, memory_order_relaxed) ||
        atomic_load(&p->callers) != 1)
        return;
    for (unsigned i = 0; i + 1 < atomic_load(&p->threads); i++)
        cfxi_rt_avoid(p->helpers[i].thread, &p->helpers[i].avoided, here);
    atomic_store_explicit(&p->processor, here, memory_order_relaxed);
}

static void open_lane(cfxi_pool *p, lane *l, job j)
{
    const int64_t pieces = (j.n - 1) / j.piece + 1;
    unsigned room = atomic_load_explicit(&l->room, memory_order_relaxed);
    if (pieces <= room) {
        room = (unsigned)pieces - 1;
        atomic_store_explicit(&l->room, room, memory_order_relaxed);
    }
    l->job = j;
    l->threads = atomic_load(&p->threads);
    const int64_t grains = (j.n - 1) / j.grain + 1;
    for (unsigned i = 0; i < l->threads; i++) {
        const int64_t end = grains * (i + 1) / l->threads * j.grain;
        atomic_store_explicit(&l->spans[i].next, grains * i / l->threads * j.grain,
                              memory_order_relaxed);
        l->spans[i].end = end < j.n ? end : j.n;
    }
    atomic_store(&l->open, true);
    atomic_fetch_add(&p->started, 1);
    wake_some(p, room);
}

/* A helper that left an earlier job of the lane may post late: so `inside` is looked at again. */
static void sleep_until_done(lane *l)
{
    for (;;) {
        atomic_store(&l->caller_sleeps, true);
        const bool done = atomic_load(&l->inside) == 0;
        if (!done || !atomic_exchange(&l->caller_sleeps, false))
            wait_for(&l->done);
        if (done || atomic_load(&l->inside) == 0)
            return;
    }
}

static void close_lane(const cfxi_pool *p, lane *l)
{
    const int64_t begin = p->spins ? microseconds() : 0;
    for (unsigned i = 1;; i++) {
        if (atomic_load(&l->inside) == 0)
            return;
        relax();
        if (i % SPINS_A_LOOK == 0 && (!p->spins || microseconds() - begin > CALLER_SPIN_US))
            break;
    }
    sleep_until_done(l);
}

static void work_alone(cfx_runtime *rt, int64_t n, cfxi_work_fn *fn, void *ctx)
{
    cfxi_worker self = {.rt = rt};
    fn(ctx, 0, n, &self);
    cfxi_rt_scratch_free(rt, self.scratch);
}

void cfxi_rt_parallel_work(cfx_runtime *rt, int64_t n, int64_t grain, cfxi_work_fn *fn, void *ctx)
{
    cfxi_pool *p = rt->pool;
    lane *l = p && n > 1 && n > grain ? take_lane(p) : NULL;
    if (n <= 0)
        return;
    if (!l) {
        work_alone(rt, n, fn, ctx);
        return;
    }
    const int64_t most = (int64_t)atomic_load(&p->threads) * PIECES_EACH;
    const int64_t least = grain > 0 ? grain : 1;
    const int64_t grains = (n - 1) / least + 1;
    const int64_t piece = ((grains - 1) / most + 1) * least;
    place_helpers(p);
    open_lane(p, l, (job){fn, ctx, n, least, piece});
    work(l, &l->caller);
    close_lane(p, l);
    give_lane_back(p, l);
}

/* ---- what a job may ask -------------------------------------------------------------------- */

typedef struct plain_job {
    cfxi_range_fn *fn;
    void *ctx;
} plain_job;

static void run_plain(void *ctx, int64_t begin_at, int64_t end, cfxi_worker *self)
{
    const plain_job *j = ctx;
    (void)self;
    j->fn(j->ctx, begin_at, end);
}

void cfxi_rt_parallel(cfx_runtime *rt, int64_t n, int64_t grain, cfxi_range_fn *fn, void *ctx)
{
    plain_job j = {fn, ctx};
    cfxi_rt_parallel_work(rt, n, grain, run_plain, &j);
}

void *cfxi_rt_worker_scratch(cfxi_worker *self, size_t size)
{
    if (self->scratch && self->scratch_size >= size)
        return self->scratch;
    cfxi_rt_scratch_free(self->rt, self->scratch);
    self->scratch = cfxi_rt_scratch(self->rt, size);
    self->scratch_size = self->scratch ? size : 0;
    return self->scratch;
}

void cfxi_rt_worker_stop(cfxi_worker *self)
{
    lane *l = self->lane;
    for (unsigned i = 0; l && i < l->threads; i++)
        atomic_store_explicit(&l->spans[i].next, l->spans[i].end, memory_order_relaxed);
}
