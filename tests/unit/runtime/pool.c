/* pool.c - every piece is done once; nested, concurrent and repeated use; threads that sleep. */
#include "runtime/runtime_impl.h"

#include "test_alloc.h"

#include <pthread.h>
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

static void nested(void *ctx, int64_t begin, int64_t end)
{
    const counts *c = ctx;
    for (int64_t i = begin; i < end; i++) {
        counts inner = {.seen = c->seen + i * 100};
        cfxi_rt_parallel(c->rt, 100, 1, count, &inner);
    }
}

TEST(nested_use_runs_here)
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

/* At a fork() helpers may count as inside a job, or hold the mutex: nobody would end that in the
 * child. */
TEST(the_child_of_a_fork_works_alone)
{
    cfx_runtime *rt = runtime(4);
    REQUIRE(rt);
    for (int i = 0; i < 300; i++) {
        int status = 0;
        check_once(rt, 64, 1);
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);  /* ends it if it waits */
            use(rt);
            _exit(0);
        }
        REQUIRE(child > 0);
        waitpid(child, &status, 0);
        REQUIRE(status == 0);
    }
    cfx_runtime_free(rt);
}

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
