/* concurrent.c - one program run, one module called by several threads; loops when memory is
 * short. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <cfx/embed/embed.h>
#include <cfx/runtime.h>
#include <pthread.h>

/* Products large enough for the pool, a loop around them, a branch, and random numbers. */
static const char text[] =
    "graph():\n"
    "  %x = placeholder[target=x]()\n"
    "  %w = get_attr[target=w]()\n"
    "  %f = call_function[target=cfx.ops.for_loop](3, graph {\n"
    "      %i = placeholder[target=i]()\n"
    "      %h = placeholder[target=h]()\n"
    "      %v = placeholder[target=v]()\n"
    "      %m = call_function[target=cfx.ops.matmul](%h, %v)\n"
    "      %t = call_function[target=cfx.ops.tanh](%m)\n"
    "      %c = call_function[target=cfx.ops.cond](%i, graph {\n"
    "          %a = placeholder[target=a]()\n"
    "          %r = call_function[target=cfx.ops.relu](%a)\n"
    "          output(%r)\n"
    "        }, graph {\n"
    "          %b = placeholder[target=b]()\n"
    "          output(%b)\n"
    "        }, [%t])\n"
    "      output((%c, %v))\n"
    "    }, [%x, %w])\n"
    "  %y = call_function[target=cfx.ops.getitem](%f, 0)\n"
    "  %s = call_function[target=cfx.ops.softmax](%y, -1)\n"
    "  %d = call_function[target=cfx.ops.dropout](%s, 0.5, True)\n"
    "  %k = call_function[target=cfx.ops.topk](%s, 3)\n"
    "  output((%s, %d, %k))\n";

static cfx_tensor *square(int64_t n, const cfx_allocator *a)
{
    const int64_t sizes[] = {n, n};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, 2, a, NULL);
    float *data = t ? cfx_tensor_data(t) : NULL;
    for (int64_t i = 0; data && i < n * n; i++)
        data[i] = (float)((i * 7 + i / n) % 13 - 6) / 8;
    return t;
}

static cfx_program *program(int64_t n, const cfx_allocator *a, cfx_error *err)
{
    cfx_state *state = cfx_state_new(NULL, err);
    cfx_tensor *w = square(n, NULL);
    cfx_graph *g = cfx_graph_parse(text, strlen(text), NULL, NULL, err);
    cfx_program *p = NULL;
    if (state && w && g && cfx_state_set(state, "w", w, err) == CFX_OK)
        p = cfx_program_new(g, state, &(cfx_program_options){.allocator = a}, err);
    cfx_graph_release(g);
    cfx_tensor_release(w);
    cfx_state_free(state);
    return p;
}

/* ---- threads ------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 5, SIZE = 150 };

typedef struct job {
    const cfx_program *p;
    cfx_runtime *rt;
    cfx_datum x;
    const float *want;
    int wrong;
} job;

static void *work(void *arg)
{
    job *j = arg;
    for (int round = 0; round < ROUNDS; round++) {
        cfx_error err = {0};
        size_t n;
        cfx_datum y = cfx_program_run(j->p, j->rt, &j->x, 1, &err);
        const cfx_datum *items = cfx_datum_items(y, &n);
        j->wrong += n != 3 || memcmp(cfx_tensor_data(items[0].as.tensor), j->want,
                                     SIZE * SIZE * sizeof(float)) != 0;
        cfx_datum_release(y);
    }
    return NULL;
}

TEST(threads_share_a_program_and_a_runtime)
{
    cfx_error err = {0};
    const cfx_runtime_options options = {.threads = 2};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    cfx_program *p = program(SIZE, NULL, &err);
    CHECK_STR_EQ("", err.message);
    REQUIRE(rt && p);
    cfx_datum x = cfx_datum_tensor(square(SIZE, NULL));
    cfx_datum y = cfx_program_run(p, rt, &x, 1, &err);
    CHECK_STR_EQ("", err.message);
    REQUIRE(y.kind == CFX_DATUM_TUPLE);
    size_t n;
    const float *want = cfx_tensor_data(cfx_datum_items(y, &n)[0].as.tensor);
    pthread_t threads[THREADS];
    job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){p, rt, x, want, 0};
        REQUIRE(pthread_create(&threads[i], NULL, work, &jobs[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT_EQ(0, jobs[i].wrong);
    }
    cfx_datum_release(y);
    cfx_datum_release(x);
    cfx_program_free(p);
    cfx_runtime_free(rt);
}

/* ---- captured modules ---------------------------------------------------------------------- */

static cfx_var branch(cfx_scope *s, void *ctx, const cfx_var *in)
{
    return cfx_mul(s, in[0], cfx_module_param(s, ctx, "w"));
}

static cfx_var other_branch(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)ctx;
    return cfx_neg(s, in[0]);
}

static cfx_var leaf_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_if(s, cfx_gt(s, cfx_sum(s, x), 0), branch, other_branch, self, x);
}

static cfx_var around_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    x = cfx_if(s, cfx_gt(s, cfx_sum(s, x), 0), other_branch, other_branch, self, x);
    return cfx_call(s, cfx_module_child(self, "leaf"), cfx_neg(s, x));
}

static const cfx_class leaf_class = {.name = "Leaf", .forward = leaf_forward, .leaf = true};
static const cfx_class around_class = {.name = "Around", .forward = around_forward};

/* With a scope of its own; the first call makes the program. */
static void *call_module(void *arg)
{
    cfx_module *m = arg;
    cfx_scope *s = cfx_scope_new(&(cfx_scope_options){.threads = 1}, NULL);
    cfx_var y = cfx_call(s, m, cfx_ones(s, cfx_ints(s, 3)));
    const bool good = cfx_var_number(s, cfx_sum(s, y)) == 12 && cfx_scope_ok(s);
    cfx_scope_free(s);
    return good ? NULL : arg;
}

/* Two modules that have a captured one in common, each called by every other thread. */
TEST(threads_call_captured_modules)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *leaf = cfx_module_new(s, &leaf_class);
    cfx_module *m = cfx_module_new(s, &around_class);
    cfx_module_add_parameter(s, leaf, "w", cfx_var_tensor(s, cfx_full(s, cfx_ints(s, 3), 4.0)));
    cfx_module_add(s, m, "leaf", leaf);
    cfx_module *one = cfx_trace(s, m);
    cfx_module *two = cfx_module_from_graph(s, cfx_module_graph(one), "Two", one);
    REQUIRE(cfx_scope_ok(s));
    CHECK(cfx_module_child(one, "leaf") == cfx_module_child(two, "leaf"));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, call_module, i % 2 ? one : two) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        CHECK(failed == NULL);
    }
    cfx_scope_free(s);
}

/* ---- want of memory ------------------------------------------------------------------------ */

static cfx_status run_loops(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    const bool infer = arg != NULL;
    const cfx_runtime_options options = {.allocator = a, .threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    cfx_program *p = rt ? program(5, a, &err) : NULL;
    cfx_dims *dims = p && infer ? cfx_dims_new(a, &err) : NULL;
    int64_t sizes[] = {0, 5};
    cfx_datum x = cfx_datum_scalar(CFX_DATUM_INVALID, 0);
    cfx_datum y = x;
    if (dims) {
        sizes[0] = cfx_dims_symbol(dims, "N", 3, &err);
        x = cfx_datum_tensor(cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, sizes, 2, NULL, NULL));
        if (err.status == CFX_OK)
            y = cfx_program_infer(p, rt, dims, &x, 1, NULL, NULL, &err);
    } else if (p && !infer) {
        x = cfx_datum_tensor(square(5, NULL));
        y = cfx_program_run(p, rt, &x, 1, &err);
    }
    cfx_datum_release(y);
    cfx_datum_release(x);
    cfx_dims_free(dims);
    cfx_program_free(p);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(every_allocation_of_a_run_can_fail) { CHECK(test_oom_sweep(run_loops, NULL) > 30); }

TEST(every_allocation_of_shapes_can_fail)
{
    char yes = 1;
    CHECK(test_oom_sweep(run_loops, &yes) > 30);
}
