/* fork_locks.c - a fork() while another thread is inside one of the small locks: of a profile, of
 * caches that grow in place, of a tensor that is copied when it is needed, of a graph that is being
 * copied. The child goes on, and what it gets is right. */
#include "fork_gate.h"

#include "plan/plan_append.h"
#include "tensor/tensor_impl.h"

#include <cfx/cfx.h>
#include <cfx/profile.h>

/* ThreadSanitizer ends a child that starts threads where its parent had some. */
#if !defined(__SANITIZE_THREAD__)

/* ---- profiles ------------------------------------------------------------------------------ */

static bool add_steps(void *ctx)
{
    cfx_profile *p = ctx;
    cfx_runtime_options options = {0};
    cfx_profile_watch(p, &options);
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        const cfx_step step = {.node = name, .kernel = "k", .end = 5};
        options.step(options.step_ctx, &step);
    }
    return true;
}

/* What was half-added is forgotten; every step from now on is there. */
static bool profile_goes_on(void *ctx)
{
    cfx_error err = {0};
    cfx_buffer out;
    cfx_buffer_init(&out, NULL);
    add_steps(ctx);
    bool good = cfx_profile_print(ctx, CFX_PROFILE_JSON, cfx_buffer_sink(&out), &err) == CFX_OK;
    good = good && strstr(out.data, "\"n0\"") && strstr(out.data, "\"n39\"");
    cfx_buffer_free(&out);
    cfx_profile_free(ctx);
    return good;
}

TEST(a_fork_while_a_profile_is_added_to)
{
    bool passed = false;
    int n = 1;
    for (; !passed; n++) {
        gate g;
        gate_begin(&g, n);
        const cfx_allocator a = gate_allocator(&g);
        cfx_profile *p = cfx_profile_new(&a, NULL);
        REQUIRE(p != NULL);
        gate_fork(&g, add_steps, profile_goes_on, p);
        passed = atomic_load(&g.passed);
        cfx_profile_free(p);
        gate_end(&g);
    }
    CHECK(n > 5);
}

/* ---- caches that grow ---------------------------------------------------------------------- */

typedef struct cache {
    cfxi_appender *appender;
    cfx_runtime *rt;
    cfx_datum past;  /* two rows, already in memory with room */
} cache;

static cfx_datum rows_of(int64_t n, float from)
{
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, (int64_t[]){n, 2}, 2, NULL, NULL);
    for (int64_t i = 0; i < 2 * n; i++)
        ((float *)cfx_tensor_data(t))[i] = from + (float)i;
    return cfx_datum_tensor(t);
}

/* `past`, and a row behind it. */
static cfx_datum appended(const cache *c, cfx_datum past, float from)
{
    cfx_error err = {0};
    const cfx_datum row = rows_of(1, from);
    const cfx_datum items = cfx_datum_seq(CFX_DATUM_LIST, (cfx_datum[]){past, row}, 2, NULL, &err);
    const cfx_datum y = cfxi_plan_append(c->appender, c->rt, &items, 1, &err);
    cfx_datum_release(items);
    cfx_datum_release(row);
    return y;
}

static bool counts_up(cfx_datum d, int64_t rows)
{
    const float *at = d.kind == CFX_DATUM_TENSOR ? cfx_tensor_data(d.as.tensor) : NULL;
    bool good = at && d.as.tensor->size[0] == rows;
    for (int64_t i = 0; good && i < 2 * rows; i++)
        good = at[i] == (float)i;
    return good;
}

static bool grow(void *ctx)
{
    const cache *c = ctx;
    cfx_datum now = cfx_datum_retain(c->past);
    bool good = true;
    for (int64_t rows = 3; good && rows < 40; rows++) {
        const cfx_datum next = appended(c, now, (float)(2 * rows - 2));
        cfx_datum_release(now);
        now = next;
        good = counts_up(now, rows);
    }
    cfx_datum_release(now);
    return good;
}

TEST(a_fork_while_a_cache_grows)
{
    bool passed = false;
    int n = 1;
    for (; !passed; n++) {
        gate g;
        gate_begin(&g, n);
        const cfx_allocator a = gate_allocator(&g);
        cache c = {.appender = cfxi_plan_appender_new(&a, NULL),
                   .rt = cfx_runtime_new(&(cfx_runtime_options){.threads = 1}, NULL)};
        REQUIRE(c.appender && c.rt);
        c.past = rows_of(2, 0);
        gate_fork(&g, grow, grow, &c);
        passed = atomic_load(&g.passed);
        cfx_datum_release(c.past);
        cfxi_plan_appender_release(c.appender);
        cfx_runtime_free(c.rt);
        gate_end(&g);
    }
    CHECK(n > 5);
}

/* ---- elements that are copied when they are needed ------------------------------------------ */

static void fetch(void *ctx, char *to, const char *from, size_t size)
{
    gate_stop(ctx);
    memcpy(to, from, size);
    gate_stop(ctx);
}

static bool reads(void *ctx)
{
    const cfx_tensor *t = ctx;
    cfx_error err = {0};
    if (cfxi_tensor_settle(t, &err) != CFX_OK)
        return false;
    const float *at = (const float *)(const void *)t->data;
    return (uintptr_t)at % CFXI_ALIGN == 0 && at[0] == 1 && at[1] == 2 && at[2] == 3;
}

TEST(a_fork_while_elements_are_copied)
{
    static const float values[] = {1, 2, 3};
    char askew[sizeof values + 1];
    memcpy(askew + 1, values, sizeof values);
    bool passed = false;
    for (int n = 1; !passed; n++) {
        gate g;
        gate_begin(&g, n);
        const cfx_allocator a = gate_allocator(&g);
        cfx_tensor *t = cfxi_tensor_later(CFX_DTYPE_FLOAT32, (int64_t[]){3}, (int64_t[]){4}, 1,
                                          askew + 1, fetch, NULL, &g, &a, NULL);
        REQUIRE(t != NULL);
        gate_fork(&g, reads, reads, t);
        passed = atomic_load(&g.passed);
        cfx_tensor_release(t);
        gate_end(&g);
    }
}

/* ---- copies of graphs ---------------------------------------------------------------------- */

static const char text[] =
    "graph():\n"
    "  %x = placeholder[target=x]()\n"
    "  %a = call_function[target=torch.relu](%x)\n"
    "  %b = call_function[target=torch.add](%a, %a)\n"
    "  %c = call_method[target=neg](%b)\n"
    "  output((%a, %c))\n";

static bool copies(void *ctx)
{
    cfx_error err = {0};
    cfx_graph *copy = cfx_graph_clone(ctx, NULL, &err);
    const bool good = copy && cfx_graph_equal(ctx, copy, false);
    cfx_graph_release(copy);
    return good;
}

TEST(a_fork_while_a_graph_is_copied)
{
    bool passed = false;
    int n = 1;
    for (; !passed; n++) {
        gate g;
        gate_begin(&g, n);
        const cfx_allocator a = gate_allocator(&g);
        cfx_graph *graph = cfx_graph_parse(text, sizeof text - 1, &a, NULL, NULL);
        REQUIRE(graph != NULL);
        gate_fork(&g, copies, copies, graph);
        passed = atomic_load(&g.passed);
        cfx_graph_release(graph);
        gate_end(&g);
    }
    CHECK(n > 5);
}

#endif
