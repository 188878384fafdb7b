/* plan_fork.c - a fork() while other threads plan, measure or look for plans: the child goes on.
 * And who measures can be interrupted. */
#include "fork_gate.h"
#include "plan_fixture.h"

/* A convolution that several back ends solve, so that they are measured; and a product. */
static const char text[] =
    "graph():\n"
    "  %x = placeholder[target=x]()\n"
    "  %w = get_attr[target=w]()\n"
    "  %v = get_attr[target=v]()\n"
    "  %c = call_function[target=cfx.ops.conv2d](%x, %w, None, [1, 1], [1, 1], [1, 1], 8)\n"
    "  %r = call_function[target=cfx.ops.relu](%c)\n"
    "  %y = call_function[target=cfx.ops.matmul](%r, %v)\n"
    "  output(%y)\n";

typedef struct fixture {
    cfx_runtime *rt;
    cfx_program *plain, *p;
} fixture;

static bool begin(fixture *f, const cfx_runtime_options *how, const cfx_allocator *a,
                  const cfx_compile_options *options)
{
    cfx_error err = {0};
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "w", 8, 1, 3, 3);
    WEIGHT(weights, "v", 9, 16);
    f->rt = cfx_runtime_new(how, &err);
    f->plain = program_of(text, weights, NULL, &err);
    f->p = program_of(text, weights, a, &err);
    cfx_state_free(weights);
    return f->rt && f->plain && f->p && cfx_program_compile(f->p, options, &err) == CFX_OK;
}

static void end(const fixture *f)
{
    cfx_program_free(f->p);
    cfx_program_free(f->plain);
    cfx_runtime_free(f->rt);
}

static cfx_datum image(int64_t height)
{
    const int64_t sizes[] = {1, 8, height, 9};
    return cfx_datum_tensor(random_tensor(sizes, 4, false));
}

/* Whether an image of this height gives what the interpreter does. */
static bool runs(const fixture *f, int64_t height)
{
    cfx_error err = {0};
    const cfx_datum x = image(height);
    const cfx_datum want = cfx_program_run(f->plain, f->rt, &x, 1, &err);
    const cfx_datum got = cfx_program_run(f->p, f->rt, &x, 1, &err);
    const bool same = want.kind == CFX_DATUM_TENSOR && is_same(want, got);
    cfx_datum_release(want);
    cfx_datum_release(got);
    cfx_datum_release(x);
    return same;
}

/* ---- interrupting -------------------------------------------------------------------------- */

static bool count_down(void *ctx) { return --*(int *)ctx == 0; }

TEST(measuring_can_be_interrupted)
{
    fixture f;
    cfx_error err = {0};
    int left = 0;
    const cfx_runtime_options how = {.threads = 1, .interrupted = count_down,
                                     .interrupted_ctx = &left};
    const cfx_compile_options tuned = {.tune = true};
    REQUIRE(begin(&f, &how, NULL, &tuned));
    for (int questions = 1; questions < 3; questions++) {
        const cfx_datum x = image(5);
        left = questions;
        const cfx_datum got = cfx_program_run(f.p, f.rt, &x, 1, &err);
        CHECK(got.kind == CFX_DATUM_INVALID);
        CHECK_INT_EQ(CFX_E_INTERRUPTED, err.status);
        CHECK_INT_EQ(0, left);  /* nothing was measured after that */
        CHECK_INT_EQ(0, (int)count_steps(f.p));
        err = (cfx_error){0};
        cfx_datum_release(x);
    }
    CHECK(runs(&f, 5));
    CHECK(count_steps(f.p) > 0);
    end(&f);
}

/* ---- forks --------------------------------------------------------------------------------- */

/* ThreadSanitizer ends a child that starts threads where its parent had some. */
#if !defined(__SANITIZE_THREAD__)

static bool plan(void *ctx) { return runs(ctx, 5); }

/* In the child: another size, that which was being planned, and both again. */
static bool goes_on(void *ctx)
{
    const fixture *f = ctx;
    const bool good = runs(f, 6) && runs(f, 5) && runs(f, 6) && runs(f, 5) && count_steps(f->p) > 0;
    end(f);
    return good;
}

/* Forks while a thread is at its allocation number `n`; *passed: it has not so many. */
static void fork_at(int n, const cfx_compile_options *options, bool *passed)
{
    fixture f;
    gate g;
    gate_begin(&g, n);
    const cfx_allocator a = gate_allocator(&g);
    REQUIRE(begin(&f, &(cfx_runtime_options){.threads = 1}, &a, options));
    if (!gate_fork(&g, plan, goes_on, &f))
        printf("    at allocation %d\n", n);
    *passed = atomic_load(&g.passed);
    end(&f);
    gate_end(&g);
}

TEST(a_fork_while_another_thread_plans)
{
    const cfx_compile_options none = {0};
    bool passed = false;
    int n = 1;
    for (; !passed; n += 2)
        fork_at(n, &none, &passed);
    CHECK(n > 50);
}

TEST(a_fork_while_another_thread_measures)
{
    const cfx_compile_options tuned = {.tune = true};
    bool passed = false;
    int n = 1;
    for (; !passed; n += 7)
        fork_at(n, &tuned, &passed);
    CHECK(n > 50);
}

/* The allocator of gcc 12's AddressSanitizer may be left locked in the child, whose first malloc
 * then waits for ever: so no thread may be in a malloc at a fork(). */
#if !defined(__SANITIZE_ADDRESS__)

typedef struct runner {
    const fixture *f;
    atomic_bool stop;
} runner;

static void *run_often(void *arg)
{
    runner *r = arg;
    cfx_error err = {0};
    const cfx_datum x = image(5);
    while (!atomic_load(&r->stop))
        cfx_datum_release(cfx_program_run(r->f->p, r->f->rt, &x, 1, &err));
    cfx_datum_release(x);
    return err.status == CFX_OK ? NULL : arg;
}

/* A plan that is thrown away in the child waits for those who look at it: for nobody else. */
TEST(a_fork_while_others_look_for_plans)
{
    fixture f;
    pthread_t threads[3];
    const cfx_compile_options one = {.most_plans = 1};
    REQUIRE(begin(&f, &(cfx_runtime_options){.threads = 1}, NULL, &one));
    CHECK(runs(&f, 5));
    runner r = {.f = &f};
    for (int i = 0; i < 3; i++)
        REQUIRE(pthread_create(&threads[i], NULL, run_often, &r) == 0);
    for (int i = 0; i < 60; i++) {
        const pid_t child = fork();
        if (child == 0) {
            bool good = true;
            alarm(20);
            for (int k = 0; good && k < 40; k++)
                good = runs(&f, 5);
            for (int k = 0; good && k < 4; k++)
                good = runs(&f, 6);
            _exit(good ? 0 : 1);
        }
        CHECK_INT_EQ(0, status_of(child));
    }
    atomic_store(&r.stop, true);
    for (int i = 0; i < 3; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        CHECK(wrong == NULL);
    }
    end(&f);
}

#endif
#endif
