/* pool.c - every piece is done once; nested, concurrent and repeated use; threads that sleep. */
#define _GNU_SOURCE  /* processors */
#include "runtime/pool_impl.h"

#include "test_alloc.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 100000 };

typedef struct counts {
    cfx_runtime *rt;
    int64_t grain;
    atomic_int small;  /* pieces below the grain */
    uint8_t *seen;
} counts;

static cfx_runtime *runtime(unsigned threads)
{
    const cfx_runtime_options options = {.threads = threads};
    return cfx_runtime_new(&options, NULL);
}

static void count(void *ctx, int64_t begin, int64_t end)
{
    counts *c = ctx;
    if (end - begin < c->grain)
        atomic_fetch_add(&c->small, 1);
    for (int64_t i = begin; i < end; i++)
        c->seen[i]++;
}

static void check_once(cfx_runtime *rt, int64_t n, int64_t grain)
{
    static uint8_t seen[MOST];
    counts c = {.rt = rt, .grain = 0, .seen = seen};
    memset(seen, 0, sizeof seen);
    cfxi_rt_parallel(rt, n, grain, count, &c);
    for (int64_t i = 0; i < MOST; i++)
        if (seen[i] != (i < n)) {
            CHECK_INT_EQ(i < n, seen[i]);
            return;
        }
}

TEST(every_index_is_visited_once)
{
    for (unsigned threads = 1; threads <= 5; threads++) {
        cfx_runtime *rt = runtime(threads);
        REQUIRE(rt);
        CHECK_INT_EQ(threads, cfx_runtime_threads(rt));
        for (int64_t n = 0; n <= 70; n++)
            check_once(rt, n, n % 5);
        check_once(rt, MOST, 1);
        check_once(rt, MOST, 1024);
        check_once(rt, MOST - 1, 77777);
        cfx_runtime_free(rt);
    }
}

TEST(pieces_keep_the_grain)
{
    static uint8_t seen[MOST];
    cfx_runtime *rt = runtime(3);
    counts c = {.rt = rt, .grain = 7000, .seen = seen};
    REQUIRE(rt);
    memset(seen, 0, sizeof seen);
    cfxi_rt_parallel(rt, MOST, 7000, count, &c);
    CHECK(c.small <= 1);
    cfx_runtime_free(rt);
}

static void note_crossing(void *ctx, int64_t begin, int64_t end)
{
    atomic_int *crossings = ctx;
    if (begin < 7 && end > 7)
        atomic_fetch_add(crossings, 1);
}

/* Of 14 things each of two threads has 7, although 8 pieces would be 2 things each. */
TEST(threads_have_equal_shares)
{
    cfx_runtime *rt = runtime(2);
    atomic_int crossings = 0;
    REQUIRE(rt);
    for (int i = 0; i < 100; i++)
        cfxi_rt_parallel(rt, 14, 1, note_crossing, &crossings);
    CHECK_INT_EQ(0, atomic_load(&crossings));
    cfx_runtime_free(rt);
}

static void nested(void *ctx, int64_t begin, int64_t end)
{
    const counts *c = ctx;
    for (int64_t i = begin; i < end; i++) {
        counts inner = {.seen = c->seen + i * 100};
        cfxi_rt_parallel(c->rt, 100, 1, count, &inner);
    }
}

TEST(nested_use)
{
    static uint8_t seen[MOST];
    cfx_runtime *rt = runtime(4);
    counts c = {.rt = rt, .seen = seen};
    REQUIRE(rt);
    memset(seen, 0, sizeof seen);
    cfxi_rt_parallel(rt, MOST / 100, 1, nested, &c);
    int64_t wrong = 0;
    for (int64_t i = 0; i < MOST; i++)
        wrong += seen[i] != 1;
    CHECK_INT_EQ(0, wrong);
    cfx_runtime_free(rt);
}

static void *use(void *arg)
{
    uint8_t seen[64] = {0};
    counts c = {.seen = seen};
    uintptr_t wrong = 0;
    for (int round = 0; round < 500; round++) {
        memset(seen, 0, sizeof seen);
        cfxi_rt_parallel(arg, 64, 1, count, &c);
        for (int i = 0; i < 64; i++)
            wrong += seen[i] != 1;
    }
    return (void *)wrong;
}

TEST(threads_share_a_runtime)
{
    pthread_t threads[3];
    cfx_runtime *rt = runtime(3);
    REQUIRE(rt);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, use, rt) == 0);
    for (int i = 0; i < 3; i++) {
        void *wrong = rt;
        pthread_join(threads[i], &wrong);
        CHECK(wrong == NULL);
    }
    cfx_runtime_free(rt);
}

/* Between the jobs the helpers fall asleep, or are just about to. */
TEST(sleepers_wake)
{
    cfx_runtime *rt = runtime(2);
    REQUIRE(rt);
    for (long us = 0; us < 150; us += 5) {
        const struct timespec pause = {0, us * 1000};
        check_once(rt, 64, 1);
        nanosleep(&pause, NULL);
    }
    cfx_runtime_free(rt);
}

/* ---- who works ----------------------------------------------------------------------------- */

static bool has_come(const atomic_int *n, int wanted)
{
    for (int i = 0; i < 20000; i++) {
        const struct timespec pause = {0, 500000};
        if (atomic_load(n) >= wanted)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

typedef struct uneven {
    atomic_int done;
    atomic_int waited_in_vain;
    int64_t slow;  /* this piece is done when all others are */
    int64_t n;
} uneven;

static void uneven_piece(void *ctx, int64_t begin, int64_t end)
{
    uneven *u = ctx;
    for (int64_t i = begin; i < end; i++) {
        if (i == u->slow && !has_come(&u->done, (int)u->n - 1))
            atomic_fetch_add(&u->waited_in_vain, 1);
        atomic_fetch_add(&u->done, 1);
    }
}

/* Whichever thread has the slow piece, another one does all the rest. */
static bool rest_is_done_meanwhile(cfx_runtime *rt, int64_t slow)
{
    uneven u = {.slow = slow, .n = 8};
    cfxi_rt_parallel(rt, u.n, 1, uneven_piece, &u);
    return atomic_load(&u.waited_in_vain) == 0 && atomic_load(&u.done) == u.n;
}

TEST(a_slow_piece_delays_no_other)
{
    cfx_runtime *rt = runtime(2);
    REQUIRE(rt);
    for (int64_t slow = 0; slow < 8; slow++)
        CHECK(rest_is_done_meanwhile(rt, slow));
    cfx_runtime_free(rt);
}

typedef struct watched {
    cfx_runtime *rt;
    unsigned threads;
    size_t scratch;
    atomic_bool busy[8];  /* whether the worker of this number is in a piece */
    void *block[8];
    atomic_int wrong;
    atomic_int pieces;
    atomic_int helped;    /* pieces of other threads than the caller's */
} watched;

static void watched_piece(void *ctx, int64_t begin, int64_t end, cfxi_worker *self)
{
    watched *w = ctx;
    (void)begin;
    (void)end;
    atomic_fetch_add(&w->pieces, 1);
    atomic_fetch_add(&w->helped, self->index > 0);
    if (self->index >= w->threads || atomic_exchange(&w->busy[self->index], true)) {
        atomic_fetch_add(&w->wrong, 1);
        return;
    }
    unsigned char *block = cfxi_rt_worker_scratch(self, w->scratch);
    if (!block || (uintptr_t)block % CFXI_ALIGN) {
        atomic_fetch_add(&w->wrong, 1);
    } else {
        memset(block, (int)self->index + 1, w->scratch);
        sched_yield();
        for (size_t i = 0; i < w->scratch; i++)
            if (block[i] != self->index + 1) {
                atomic_fetch_add(&w->wrong, 1);
                break;
            }
    }
    w->block[self->index] = block;
    atomic_store(&w->busy[self->index], false);
}

TEST(workers_have_a_number_and_scratch_of_their_own)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    const cfx_runtime_options options = {.allocator = &a, .threads = 4};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    REQUIRE(rt);
    watched w = {.rt = rt, .threads = 4, .scratch = 1000};
    for (int round = 0; round < 100; round++)
        cfxi_rt_parallel_work(rt, 16, 1, watched_piece, &w);
    w.scratch = 40000;
    for (int round = 0; round < 100; round++)
        cfxi_rt_parallel_work(rt, 16, 1, watched_piece, &w);
    CHECK_INT_EQ(0, atomic_load(&w.wrong));
    CHECK_INT_EQ(2 * 100 * 16, atomic_load(&w.pieces));
    const size_t most = 3 + 4 * 2;  /* runtime, recycler, pool; each worker grew once */
    CHECK(atomic_load(&ta.count) <= most);
    CHECK(w.block[0] != w.block[1] || !w.block[0]);
    cfx_runtime_free(rt);
    test_alloc_check(&ta);
}

static void *watched_caller(void *arg)
{
    watched w = {.rt = arg, .threads = 4, .scratch = 3000};
    for (int round = 0; round < 300; round++)
        cfxi_rt_parallel_work(w.rt, 12, 1, watched_piece, &w);
    return atomic_load(&w.wrong) || atomic_load(&w.pieces) < 300 ? arg : NULL;
}

TEST(callers_side_by_side_do_not_mix)
{
    pthread_t threads[6];
    cfx_runtime *rt = runtime(4);
    REQUIRE(rt);
    for (int i = 0; i < 6; i++)
        CHECK(pthread_create(&threads[i], NULL, watched_caller, rt) == 0);
    for (int i = 0; i < 6; i++) {
        void *wrong = rt;
        pthread_join(threads[i], &wrong);
        CHECK(wrong == NULL);
    }
    cfx_runtime_free(rt);
}

typedef struct blocked {
    cfx_runtime *rt;
    atomic_int inside;
    atomic_int released;
    atomic_int in_vain;
} blocked;

static void blocked_piece(void *ctx, int64_t begin, int64_t end)
{
    blocked *b = ctx;
    (void)begin;
    (void)end;
    atomic_fetch_add(&b->inside, 1);
    if (!has_come(&b->released, 1))
        atomic_fetch_add(&b->in_vain, 1);
}

static void *blocked_caller(void *arg)
{
    blocked *b = arg;
    cfxi_rt_parallel(b->rt, 4, 1, blocked_piece, b);
    return NULL;
}

/* The first caller and all helpers hang in its job; others go on. */
TEST(nobody_waits_for_the_job_of_another)
{
    pthread_t other;
    for (unsigned threads = 2; threads <= 4; threads++) {
        blocked b = {.rt = runtime(threads)};
        REQUIRE(b.rt && pthread_create(&other, NULL, blocked_caller, &b) == 0);
        CHECK(has_come(&b.inside, 1));
        check_once(b.rt, 64, 1);
        check_once(b.rt, MOST, 1024);
        atomic_store(&b.released, 1);
        pthread_join(other, NULL);
        CHECK_INT_EQ(0, atomic_load(&b.in_vain));
        cfx_runtime_free(b.rt);
    }
}

/* As many runs as threads: each has its own, and nobody helps. */
TEST(runs_share_the_threads)
{
    cfx_runtime *rt = runtime(2);
    REQUIRE(rt);
    watched w = {.rt = rt, .threads = 2, .scratch = 16};
    const cfxi_run_mark one = cfxi_rt_run_begin(rt);
    const cfxi_run_mark two = cfxi_rt_run_begin(rt);
    for (int i = 0; i < 100; i++)
        cfxi_rt_parallel_work(rt, 16, 1, watched_piece, &w);
    CHECK_INT_EQ(100, atomic_load(&w.pieces));
    CHECK_INT_EQ(0, atomic_load(&w.helped));
    cfxi_rt_run_end(rt, two);
    CHECK(rest_is_done_meanwhile(rt, 0));
    cfxi_rt_run_end(rt, one);
    CHECK(rest_is_done_meanwhile(rt, 0));
    cfx_runtime_free(rt);
}

static void stopping_piece(void *ctx, int64_t begin, int64_t end, cfxi_worker *self)
{
    atomic_int *pieces = ctx;
    (void)begin;
    (void)end;
    atomic_fetch_add(pieces, 1);
    cfxi_rt_worker_stop(self);
}

TEST(a_piece_can_stop_the_job)
{
    cfx_runtime *rt = runtime(3);
    REQUIRE(rt);
    for (int i = 0; i < 200; i++) {
        atomic_int pieces = 0;
        cfxi_rt_parallel_work(rt, 12, 1, stopping_piece, &pieces);
        CHECK(atomic_load(&pieces) >= 1 && atomic_load(&pieces) <= 3);
    }
    check_once(rt, MOST, 1);
    cfx_runtime_free(rt);
}

/* ---- sleeping ------------------------------------------------------------------------------ */

static bool all_sleep(const cfx_runtime *rt, unsigned helpers)
{
    for (int i = 0; i < 20000 && cfxi_rt_pool_sleepers(rt->pool) < helpers; i++) {
        const struct timespec pause = {0, 500000};
        nanosleep(&pause, NULL);
    }
    return cfxi_rt_pool_sleepers(rt->pool) == helpers;
}

static int64_t nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void nothing(void *ctx, int64_t begin, int64_t end)
{
    (void)ctx;
    (void)begin;
    (void)end;
}

/* A run of 100 jobs; false if the system held this thread back for so long in between that helpers
 * were right to fall asleep. */
static bool steady_run(cfx_runtime *rt)
{
    bool steady = true;
    const cfxi_run_mark mark = cfxi_rt_run_begin(rt);
    for (int i = 0; i < 100; i++) {
        const int64_t begin = nanoseconds();
        cfxi_rt_parallel(rt, 8, 1, nothing, NULL);
        while (nanoseconds() - begin < 30000)
            continue;
        steady = steady && nanoseconds() - begin < 300000;
    }
    cfxi_rt_run_end(rt, mark);
    return steady;
}

TEST(a_run_wakes_each_helper_once_at_the_most)
{
    cfx_runtime *rt = runtime(1);
    REQUIRE(rt);
    rt->pool = cfxi_rt_pool_new(rt, &(cfxi_pool_options){.threads = 2, .cores = 2}, NULL);
    REQUIRE(rt->pool);
    int steady = 0;
    for (int i = 0; i < 200 && steady < 3; i++) {
        CHECK(all_sleep(rt, 1));
        const unsigned before = cfxi_rt_pool_wakes(rt->pool);
        if (!steady_run(rt))
            continue;
        steady++;
        CHECK_INT_EQ(1, cfxi_rt_pool_wakes(rt->pool) - before);
    }
    CHECK(steady > 0);
    cfx_runtime_free(rt);
}

/* ---- starting ------------------------------------------------------------------------------ */

static int start_some(void *ctx, pthread_t *thread, void *(*fn)(void *), void *arg)
{
    int *left = ctx;
    return (*left)-- > 0 ? pthread_create(thread, NULL, fn, arg) : EAGAIN;
}

TEST(threads_that_cannot_start_are_missing)
{
    for (int some = 0; some <= 3; some++) {
        int left = some;
        cfx_runtime *rt = runtime(1);
        REQUIRE(rt);
        rt->pool = cfxi_rt_pool_new(rt, &(cfxi_pool_options){.threads = 4, .cores = 4,
                                                             .start = start_some,
                                                             .start_ctx = &left}, NULL);
        REQUIRE(rt->pool);
        CHECK_INT_EQ(some + 1, cfx_runtime_threads(rt));
        check_once(rt, MOST, 1);
        check_once(rt, 5, 1);
        if (some)
            CHECK(rest_is_done_meanwhile(rt, 0));
        cfx_runtime_free(rt);
    }
}

/* ---- processors ---------------------------------------------------------------------------- */

/* Two processors that this thread may run on; false if there is one alone. */
static bool two_processors(int found[2])
{
    cpu_set_t set;
    int n = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return false;
    for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
        if (CPU_ISSET(i, &set))
            found[n++] = i;
    return n == 2;
}

TEST(a_thread_avoids_one_processor_at_a_time)
{
    int two[2];
    int avoided = -1;
    cpu_set_t before;
    cpu_set_t set;
    if (!two_processors(two))
        return;
    sched_getaffinity(0, sizeof before, &before);
    for (int i = 0; i < 4; i++) {
        cfxi_rt_avoid(pthread_self(), &avoided, two[i % 2]);
        sched_getaffinity(0, sizeof set, &set);
        CHECK_INT_EQ(two[i % 2], avoided);
        CHECK(!CPU_ISSET(two[i % 2], &set) && CPU_ISSET(two[1 - i % 2], &set));
        CHECK(cfxi_rt_processor() != two[i % 2]);
    }
    CPU_ZERO(&set);
    CPU_SET(two[0], &set);
    avoided = -1;
    CHECK_INT_EQ(0, sched_setaffinity(0, sizeof set, &set));
    cfxi_rt_avoid(pthread_self(), &avoided, two[0]);  /* it has no other */
    cfxi_rt_avoid(pthread_self(), &avoided, -1);
    CHECK_INT_EQ(-1, avoided);
    cfxi_rt_avoid(pthread_self(), &avoided, two[1]);  /* where it may not be: it never may be */
    CHECK_INT_EQ(-1, avoided);
    sched_getaffinity(0, sizeof set, &set);
    CHECK(CPU_ISSET(two[0], &set) && !CPU_ISSET(two[1], &set));
    CHECK_INT_EQ(0, sched_setaffinity(0, sizeof before, &before));
}

typedef struct places {
    pthread_t caller;
    int processor;      /* of the caller */
    atomic_int beside;  /* pieces of helpers elsewhere, */
    atomic_int same;    /* and there */
} places;

static void note_place(void *ctx, int64_t begin, int64_t end)
{
    places *p = ctx;
    (void)begin, (void)end;
    for (int i = 0; i < 20; i++)
        sched_yield();
    if (!pthread_equal(pthread_self(), p->caller))
        atomic_fetch_add(cfxi_rt_processor() == p->processor ? &p->same : &p->beside, 1);
}

TEST(helpers_run_beside_their_caller)
{
    int two[2];
    cpu_set_t before;
    cfx_runtime *rt = runtime(2);
    REQUIRE(rt);
    if (!two_processors(two)) {
        cfx_runtime_free(rt);
        return;
    }
    sched_getaffinity(0, sizeof before, &before);
    for (int i = 0; i < 2; i++) {
        places p = {.caller = pthread_self(), .processor = two[i]};
        cpu_set_t own;
        CPU_ZERO(&own);
        CPU_SET(two[i], &own);
        CHECK_INT_EQ(0, sched_setaffinity(0, sizeof own, &own));
        for (int k = 0; k < 2000 && atomic_load(&p.beside) == 0; k++)
            cfxi_rt_parallel(rt, 64, 1, note_place, &p);
        CHECK(atomic_load(&p.beside) > 0);
        CHECK_INT_EQ(0, atomic_load(&p.same));
    }
    CHECK_INT_EQ(0, sched_setaffinity(0, sizeof before, &before));
    cfx_runtime_free(rt);
}

/* ---- threads ------------------------------------------------------------------------------- */

static int tasks(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

TEST(one_thread_needs_no_other)
{
    const int before = tasks();
    REQUIRE(before > 0);
    cfx_runtime *rt = runtime(1);
    cfx_runtime *plain = cfx_runtime_new(&(cfx_runtime_options){.reference = true, .threads = 8},
                                         NULL);
    REQUIRE(rt && plain);
    CHECK(!rt->pool && !plain->pool);
    check_once(rt, MOST, 1);
    CHECK_INT_EQ(before, tasks());
    cfx_runtime_free(plain);
    cfx_runtime_free(rt);
}

/* ---- forks --------------------------------------------------------------------------------- */

/* ThreadSanitizer ends a child that starts a thread where its parent had some: "starting new
 * threads after multi-threaded fork is not supported". So it is not asked about these. */
#if !defined(__SANITIZE_THREAD__)

/* At a fork() helpers may count as inside a job, or hold a lane: nobody would end that in the
 * child. */
TEST(the_child_of_a_fork_has_helpers_of_its_own)
{
    cfx_runtime *rt = runtime(4);
    REQUIRE(rt);
    for (int i = 0; i < 100; i++) {
        int status = 0;
        check_once(rt, 64, 1);
        const cfxi_run_mark mark = cfxi_rt_run_begin(rt);
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);  /* ends it if it waits */
            cfxi_rt_run_end(rt, mark);
            use(rt);
            const bool good = rest_is_done_meanwhile(rt, 0) && cfx_runtime_threads(rt) == 4;
            cfx_runtime_free(rt);
            _exit(good ? 0 : 1);
        }
        cfxi_rt_run_end(rt, mark);
        REQUIRE(child > 0);
        waitpid(child, &status, 0);
        REQUIRE(status == 0);
    }
    cfx_runtime_free(rt);
}

static void *fork_often(void *arg)
{
    cfx_runtime *rt = arg;
    for (int i = 0; i < 50; i++) {
        int status = 1;
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            use(rt);
            cfx_runtime_free(rt);
            _exit(0);
        }
        waitpid(child, &status, 0);
        if (child < 0 || status)
            return arg;
    }
    return NULL;
}

/* The lanes and runs of threads that the child does not have. */
TEST(others_may_be_at_work_during_a_fork)
{
    pthread_t forking;
    void *wrong = NULL;
    cfx_runtime *rt = runtime(4);
    REQUIRE(rt && pthread_create(&forking, NULL, fork_often, rt) == 0);
    for (int i = 0; i < 300; i++) {
        const cfxi_run_mark mark = cfxi_rt_run_begin(rt);
        check_once(rt, 1000, 1);
        cfxi_rt_run_end(rt, mark);
    }
    pthread_join(forking, &wrong);
    CHECK(wrong == NULL);
    cfx_runtime_free(rt);
}

#endif

/* ---- memory -------------------------------------------------------------------------------- */

TEST(scratch_is_kept_and_freed)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    const cfx_runtime_options options = {.allocator = &a, .threads = 2};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    REQUIRE(rt);
    void *first = cfxi_rt_scratch(rt, 100000);
    cfxi_rt_scratch_free(rt, first);
    void *again = cfxi_rt_scratch(rt, 120000);
    CHECK(again == first && (uintptr_t)first % CFXI_ALIGN == 0);
    void *other = cfxi_rt_scratch(rt, 120000);
    CHECK(other && other != again);
    cfxi_rt_scratch_free(rt, other);
    cfxi_rt_scratch_free(rt, again);
    cfxi_rt_scratch_free(rt, cfxi_rt_scratch(rt, 10));
    cfxi_rt_scratch_free(rt, cfxi_rt_scratch(rt, (size_t)40 << 20));
    CHECK(!cfxi_rt_scratch(rt, SIZE_MAX - 3));
    cfx_runtime_free(rt);
    test_alloc_check(&ta);
}

static cfx_status make_pool(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    const cfx_runtime_options options = {.allocator = a, .threads = 3};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    (void)arg;
    cfx_runtime_free(rt);
    return err.status;
}

TEST(no_memory_for_the_pool)
{
    test_oom_sweep(make_pool, NULL);
}
