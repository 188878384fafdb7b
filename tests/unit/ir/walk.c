/* walk.c - the walk over values and regions, and whatever is built on it, as deep as it goes. */
#include "graph_test.h"

#include <cfx/codegen.h>
#include <cfx/embed/copy.h>
#include <cfx/pass.h>
#include <ir/walk_impl.h>
#include <pthread.h>

/* ---- the walk itself ----------------------------------------------------------------------- */

/* Lists in tuples, `depth` of them, around `v`. */
static cfx_value nest(cfx_graph *g, cfx_value v, int depth, cfx_error *err)
{
    for (int i = 0; i < depth; i++)
        v = i % 2 ? cfx_value_tuple(g, &v, 1, err) : cfx_value_list(g, &v, 1, err);
    return v;
}

/* Every event, as text: "(1 [2 ] )" for (1, [2]). */
static void note_events(cfxi_walk *w, dump_text *d)
{
    cfxi_walk_frame *f;
    d->size = 0;
    for (cfxi_walk_event e; (e = cfxi_ir_walk_next(w, &f)) != CFXI_WALK_END;) {
        if (e == CFXI_WALK_LEAVE) {
            dump_add(d, f->kind == CFX_KIND_LIST ? "]" : ")");
            continue;
        }
        const cfx_value v = f->items[f->i - 1];
        if (cfxi_ir_is_seq(v) && CHECK(cfxi_ir_walk_into(w, v) != NULL))
            dump_add(d, v.kind == CFX_KIND_LIST ? "[" : "(");
        else
            dump_add(d, "%d", (int)v.as.i);
    }
}

TEST(events_come_depth_first_and_left_to_right)
{
    static dump_text d;
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value list[] = {cfx_value_int(2), tuple_of(g, 0), cfx_value_int(3)};
    cfx_value v =
        tuple_of(g, 3, cfx_value_int(1), cfx_value_list(g, list, 3, NULL), cfx_value_int(4));
    cfxi_walk w;
    cfxi_ir_walk_begin(&w, NULL);
    CHECK(!cfxi_ir_walk_top(&w));
    cfxi_ir_walk_into(&w, v);
    note_events(&w, &d);
    CHECK_STR_EQ("1[2()3]4)", d.data);
    CHECK_INT_EQ(CFX_OK, cfxi_ir_walk_end(&w, NULL));
    int sum = 0;
    cfxi_ir_walk_begin(&w, NULL);
    cfxi_ir_walk_into(&w, v);
    for (cfx_value leaf; cfxi_ir_walk_leaf(&w, &leaf);)
        sum = 10 * sum + (int)leaf.as.i;
    CHECK_INT_EQ(1234, sum);
    CHECK_INT_EQ(CFX_OK, cfxi_ir_walk_end(&w, NULL));
    cfx_graph_release(g);
}

TEST(a_walk_can_end_anywhere)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value v = nest(g, cfx_value_int(7), 50, NULL);
    cfxi_walk w;
    cfx_value leaf = cfx_value_none();
    cfxi_ir_walk_begin(&w, &a);
    cfxi_ir_walk_into(&w, v);
    CHECK(cfxi_ir_walk_leaf(&w, &leaf));
    CHECK_INT_EQ(7, leaf.as.i);
    CHECK_INT_EQ(50, w.depth);
    CHECK(ta.live_blocks == 1);
    CHECK_INT_EQ(CFX_OK, cfxi_ir_walk_end(&w, NULL));
    test_alloc_check(&ta);
    cfx_graph_release(g);
}

TEST(shallow_values_need_no_memory)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value v = nest(g, cfx_value_int(7), CFXI_WALK_FEW, NULL);
    cfxi_walk w;
    cfx_value leaf = cfx_value_none();
    cfxi_ir_walk_begin(&w, &a);
    cfxi_ir_walk_into(&w, v);
    CHECK(cfxi_ir_walk_leaf(&w, &leaf) && !cfxi_ir_walk_leaf(&w, &leaf));
    CHECK_INT_EQ(CFX_OK, cfxi_ir_walk_end(&w, NULL));
    CHECK_INT_EQ(0, ta.count);
    cfx_graph_release(g);
}

static cfx_status walk_deep(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    size_t leaves = 0;
    cfxi_walk w;
    cfxi_ir_walk_begin(&w, a);
    cfxi_ir_walk_into(&w, *(const cfx_value *)arg);
    for (cfx_value leaf; cfxi_ir_walk_leaf(&w, &leaf);)
        leaves++;
    const cfx_status status = cfxi_ir_walk_end(&w, &err);
    CHECK_INT_EQ(status, err.status);
    CHECK(status != CFX_OK || leaves == 1);
    return status;
}

TEST(a_walk_says_when_memory_is_out)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value v = nest(g, cfx_value_int(7), 100, NULL);
    CHECK_INT_EQ(4, test_oom_sweep(walk_deep, &v));  /* room for 16, 32, 64, 128 frames */
    cfx_graph_release(g);
}

/* A graph with two regions, the first of which has one; all hold a region in a list. */
static cfx_graph *with_region(cfx_graph *inner, cfx_graph *second)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_value args[3] = {cfx_value_node(x), cfx_value_none(), cfx_value_none()};
    if (inner)
        args[1] = nest(g, cfx_value_region(g, inner, NULL), 3, NULL);
    if (second)
        args[2] = cfx_value_region(g, second, NULL);
    cfx_node *n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.relu", args, 3, NULL, 0, NULL);
    cfx_graph_output(g, cfx_value_node(n), NULL);
    cfx_graph_release(inner);
    cfx_graph_release(second);
    return g;
}

TEST(graphs_and_steps_are_frames_as_well)
{
    cfx_graph *g = with_region(with_region(NULL, NULL), NULL);
    cfxi_walk w;
    cfxi_walk_frame *f;
    int nodes = 0;
    int steps = 0;
    int deepest = 0;
    cfxi_ir_walk_begin(&w, NULL);
    CHECK(!cfxi_ir_walk_graph(&w));
    cfxi_ir_walk_nodes(&w, g);
    for (cfxi_walk_event e; (e = cfxi_ir_walk_next(&w, &f)) != CFXI_WALK_END;) {
        if (e == CFXI_WALK_LEAVE)
            continue;
        if (f->what == CFXI_WALK_NODES) {
            nodes++;
            cfxi_ir_walk_steps(&w, 5, f->node, 1);
        } else if (f->what == CFXI_WALK_STEPS) {
            steps += f->kind == 5;
            cfxi_ir_walk_into(&w, cfx_node_args(f->node));
        } else if (cfxi_ir_is_seq(f->items[f->i - 1])) {
            cfxi_ir_walk_into(&w, f->items[f->i - 1]);
        } else if (f->items[f->i - 1].kind == CFX_KIND_GRAPH) {
            CHECK(cfxi_ir_walk_graph(&w)->node->graph == g);
            cfxi_ir_walk_nodes(&w, cfx_value_graph(f->items[f->i - 1]));
            CHECK(cfxi_ir_walk_graph(&w)->node->graph != g);
        }
        deepest = (int)w.depth > deepest ? (int)w.depth : deepest;
    }
    CHECK_INT_EQ(6, nodes);
    CHECK_INT_EQ(6, steps);
    CHECK_INT_EQ(9, deepest);
    CHECK(!cfxi_ir_walk_graph(&w));
    CHECK_INT_EQ(CFX_OK, cfxi_ir_walk_end(&w, NULL));
    cfx_graph_release(g);
}

static cfx_status count_region(cfx_graph *region, void *ctx, cfx_error *err)
{
    (void)region;
    return ++*(int *)ctx == 2 ? cfx_error_set(err, CFX_E_VALUE, "enough") : CFX_OK;
}

TEST(regions_are_found_wherever_they_are)
{
    cfx_graph *g = with_region(with_region(with_region(NULL, NULL), NULL),
                               with_region(NULL, NULL));
    cfxi_region_walk w;
    int regions = 0;
    cfxi_ir_regions_begin(&w, g);
    CHECK(cfxi_ir_regions_next(&w) == g);
    for (cfx_graph *at; (at = cfxi_ir_regions_next(&w)) != NULL; regions++)
        CHECK(cfx_graph_parent(at) != NULL);
    CHECK_INT_EQ(3, regions);
    const cfx_node *call = cfx_node_next(cfx_graph_first(g));
    cfx_error err = {.status = CFX_OK};
    regions = 0;
    const cfx_value args = cfx_node_args(call);
    CHECK_INT_EQ(CFX_E_VALUE, cfxi_ir_each_region(args, count_region, &regions, &err));
    CHECK_INT_EQ(2, regions);
    CHECK(cfxi_ir_value_has(args, CFXI_KIND_BIT(CFX_KIND_GRAPH)));
    CHECK(cfxi_ir_value_has(args, CFXI_KIND_BIT(CFX_KIND_TUPLE)));
    CHECK(!cfxi_ir_value_has(args, CFXI_KIND_BIT(CFX_KIND_SET)));
    cfx_graph_release(g);
}

/* ---- sets in sets -------------------------------------------------------------------------- */

static cfx_value set_of(cfx_graph *g, bool swap, cfx_value a, cfx_value b)
{
    const cfx_value items[] = {swap ? b : a, swap ? a : b};
    return cfx_value_seq(g, CFX_KIND_SET, items, 2, NULL);
}

/* {{1, 2}, {3, {4, 5}}}, or the same with each pair the other way round. */
static cfx_value pairs(cfx_graph *g, bool swap, int last)
{
    cfx_value inner = set_of(g, swap, cfx_value_int(4), cfx_value_int(last));
    cfx_value right = set_of(g, swap, cfx_value_int(3), inner);
    return set_of(g, swap, set_of(g, swap, cfx_value_int(1), cfx_value_int(2)), right);
}

TEST(sets_in_sets_are_equal_in_any_order)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    CHECK(cfx_value_equal(pairs(g, false, 5), pairs(g, false, 5)));
    CHECK(cfx_value_equal(pairs(g, false, 5), pairs(g, true, 5)));
    CHECK(cfx_value_equal(pairs(g, true, 5), pairs(g, false, 5)));
    CHECK(!cfx_value_equal(pairs(g, false, 5), pairs(g, true, 6)));
    CHECK(!cfx_value_equal(pairs(g, false, 5), pairs(g, false, 6)));
    cfx_value twice[] = {cfx_value_int(1), cfx_value_int(1), cfx_value_int(2)};
    cfx_value other[] = {cfx_value_int(2), cfx_value_int(2), cfx_value_int(1)};
    CHECK(!cfx_value_equal(cfx_value_seq(g, CFX_KIND_SET, twice, 3, NULL),
                           cfx_value_seq(g, CFX_KIND_SET, other, 3, NULL)));
    cfx_graph_release(g);
}

/* Sets of one, a thousand deep: once two ways at every level. */
TEST(sets_of_one_are_compared_in_linear_time)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value a = cfx_value_int(1);
    cfx_value b = cfx_value_int(2);
    for (int i = 0; i < CFX_MAX_DEPTH; i++) {
        a = cfx_value_seq(g, CFX_KIND_SET, &a, 1, NULL);
        b = cfx_value_seq(g, CFX_KIND_SET, &b, 1, NULL);
    }
    CHECK(cfx_value_equal(a, a));
    CHECK(!cfx_value_equal(a, b));
    cfx_graph_release(g);
}

/* ---- freeing ------------------------------------------------------------------------------- */

TEST(what_is_shared_is_freed_once)
{
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfx_graph *g = cfx_graph_new(&a, NULL, NULL);
    cfx_value text = text_value(g, "a text");
    cfx_value v = cfx_value_retain(tuple_of(g, 3, text, nest(g, text, 30, NULL), text));
    cfx_value pair = cfx_value_retain(tuple_of(g, 4, v, v, nest(g, v, 5, NULL), cfx_value_int(1)));
    const size_t before = cfx_graph_memory(g);
    cfx_value_release(g, pair);
    CHECK_STR_EQ("a text", cfx_value_text(cfx_value_items(v, NULL)[2], NULL));
    cfx_value_release(g, v);
    for (int i = 0; i < 100; i++) {  /* from what was freed */
        cfx_value again = text_value(g, "a text");
        cfx_value_discard(g, tuple_of(g, 3, again, nest(g, again, 30, NULL), again));
    }
    CHECK_INT_EQ(before, cfx_graph_memory(g));
    cfx_graph_release(g);
    test_alloc_check(&ta);
}

/* ---- as deep as it goes -------------------------------------------------------------------- */

enum {
    DEEP = CFX_MAX_DEPTH - 1,          /* the arguments are a container too */
    GRAPHS = CFX_MAX_REGION_DEPTH - 1, /* one in the other, around the innermost */
#if defined(__SANITIZE_ADDRESS__)
    STACK = 2 * 1024 * 1024  /* its frames are many times as large */
#else
    STACK = 256 * 1024
#endif
};

/* Graphs in graphs: each calls a function with the next one, `depth` lists inside, and with itself
 * no less deep. NULL with *err set. */
static cfx_graph *deep_graph(const cfx_allocator *a, int graphs, int depth, cfx_error *err)
{
    cfx_graph *inner = NULL;
    for (int i = 0; i <= graphs; i++) {
        cfx_graph *g = cfx_graph_new(a, NULL, err);
        cfx_node *x = g ? cfx_graph_placeholder(g, "x", err) : NULL;
        cfx_value args[2] = {cfx_value_node(x), cfx_value_none()};
        cfx_node *n = NULL;
        if (x) {
            cfx_value core = inner ? cfx_value_region(g, inner, err) : cfx_value_node(x);
            args[1] = nest(g, core, depth, err);
            cfx_kwarg key = {"key", nest(g, cfx_value_node(x), depth, err)};
            n = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.relu", args, 2, &key, 1, err);
        }
        cfx_graph_release(inner);
        inner = g;
        if (!n || !cfx_graph_output(g, nest(g, cfx_value_node(n), depth, err), err)) {
            cfx_graph_release(inner);
            return NULL;
        }
    }
    return inner;
}

/* Runs `fn` on a thread with a small stack. */
static void on_small_stack(void *(*fn)(void *))
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    REQUIRE(pthread_attr_setstacksize(&attr, STACK) == 0);
    REQUIRE(pthread_create(&thread, &attr, fn, NULL) == 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
}

static void check_texts(cfx_graph *g)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_print(g, cfx_buffer_sink(&text), &err));
    CHECK(text.size > 3 * DEEP);
    CHECK_INT_EQ(CFX_OK, cfx_graph_table(g, 0, cfx_buffer_sink(&text), &err));
    CHECK_INT_EQ(CFX_OK, cfx_codegen_json(g, cfx_buffer_sink(&text), &err));
    CHECK_INT_EQ(CFX_OK, cfx_node_text(cfx_graph_last(g), cfx_buffer_sink(&text), &err));
    text.size = 0;
    CHECK_INT_EQ(CFX_OK, cfx_graph_text(g, cfx_buffer_sink(&text), &err));
    cfx_graph *again = cfx_graph_parse(text.data, text.size, NULL, NULL, &err);
    CHECK_STR_EQ("", err.message);
    CHECK(again && cfx_graph_equal(g, again, false));
    cfx_graph_release(again);
    cfx_buffer_free(&text);
}

static void check_copies(cfx_graph *g)
{
    uint64_t hash[3] = {0};
    cfx_error err = {.status = CFX_OK};
    cfx_graph *copy = cfx_graph_clone(g, NULL, &err);
    REQUIRE(copy != NULL);
    CHECK(cfx_graph_equal(g, copy, false) && cfx_graph_equal(g, copy, true));
    CHECK_INT_EQ(CFX_OK, cfx_graph_hash(g, false, &hash[0], &err));
    CHECK_INT_EQ(CFX_OK, cfx_graph_hash(copy, false, &hash[1], &err));
    CHECK(hash[0] == hash[1]);
    cfx_graph *innermost = copy;
    for (int i = 0; i < GRAPHS; i++) {
        cfx_value v = cfx_node_arg(cfx_node_next(cfx_graph_first(innermost)), 1);
        while (cfx_value_items(v, NULL))
            v = cfx_value_items(v, NULL)[0];
        innermost = cfx_value_graph(v);
    }
    CHECK_INT_EQ(CFX_OK, cfx_node_rename(cfx_graph_first(innermost), "other", &err));
    CHECK(!cfx_graph_equal(g, copy, false) && cfx_graph_equal(g, copy, true));
    CHECK_INT_EQ(CFX_OK, cfx_graph_hash(copy, false, &hash[2], &err));
    CHECK(hash[0] != hash[2]);
    cfx_graph_release(copy);
}

static cfx_value to_first(void *ctx, cfx_node *n, cfx_error *err)
{
    (void)n;
    (void)err;
    return cfx_value_node(cfx_graph_first(ctx));
}

static cfx_status count_node(void *ctx, cfx_node *n)
{
    (void)n;
    ++*(int *)ctx;
    return CFX_OK;
}

static void check_edits(cfx_graph *g)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *other = cfx_graph_new(NULL, NULL, &err);
    cfx_node *x = cfx_graph_placeholder(other, "x", &err);
    cfx_node *call = cfx_node_next(cfx_graph_first(g));
    cfx_node *copy = cfx_graph_copy_node(other, call, to_first, other, &err);
    REQUIRE(copy != NULL);
    CHECK_INT_EQ(1, cfx_node_num_inputs(copy));
    CHECK_INT_EQ(CFX_OK, cfx_node_replace_uses(x, cfx_value_int(3), NULL, NULL, NULL, &err));
    CHECK_INT_EQ(0, cfx_node_num_inputs(copy));
    int nodes = 0;
    CHECK_INT_EQ(CFX_OK, cfx_value_each_node(cfx_node_kwargs(call), count_node, &nodes));
    CHECK_INT_EQ(1, nodes);
    CHECK_INT_EQ(CFX_OK, cfx_graph_erase(other, copy, &err));
    cfx_graph_release(other);
}

static void *go_deep(void *unused)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = deep_graph(NULL, GRAPHS, DEEP, &err);
    CHECK_STR_EQ("", err.message);
    if (!CHECK(g != NULL))
        return unused;
    check_texts(g);
    check_copies(g);
    check_edits(g);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, &err));
    CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, &err));
    cfx_graph_release(g);
    return unused;
}

TEST(the_deepest_graph_needs_little_stack) { on_small_stack(go_deep); }

static void *run_passes(void *unused)
{
    for (size_t i = 0; cfx_pass_get(i); i++) {
        cfx_error err = {.status = CFX_OK};
        bool changed;
        cfx_graph *g = deep_graph(NULL, GRAPHS, DEEP, &err);
        const cfx_status status = cfx_pass_run(cfx_pass_get(i), g, NULL, NULL, &changed, &err);
        CHECK(status == CFX_OK || err.message[0] != '\0');
        cfx_graph_release(g);
    }
    return unused;
}

TEST(passes_take_the_deepest_graph) { on_small_stack(run_passes); }

TEST(deeper_graphs_are_refused)
{
    cfx_error err = {.status = CFX_OK};
    CHECK(!deep_graph(NULL, GRAPHS + 1, 1, &err));
    CHECK_INT_EQ(CFX_E_LIMIT, err.status);
    CHECK_STR_EQ("regions nest more than 100 deep", err.message);
    err = (cfx_error){.status = CFX_OK};
    CHECK(!deep_graph(NULL, 0, DEEP + 1, &err));
    CHECK_INT_EQ(CFX_E_LIMIT, err.status);
    CHECK_STR_EQ("an argument nests containers more than 1000 deep", err.message);
}

/* ---- out of memory ------------------------------------------------------------------------- */

typedef cfx_status work(cfx_graph *g, cfx_error *err);

static cfx_status do_print(cfx_graph *g, cfx_error *err)
{
    cfx_buffer text;
    cfx_buffer_init(&text, cfx_graph_allocator(g));
    cfx_status status = cfx_graph_print(g, cfx_buffer_sink(&text), err);
    cfx_buffer_free(&text);
    return status;
}

static cfx_status do_text(cfx_graph *g, cfx_error *err)
{
    cfx_buffer text;
    cfx_buffer_init(&text, cfx_graph_allocator(g));
    cfx_status status = cfx_graph_text(g, cfx_buffer_sink(&text), err);
    cfx_buffer_free(&text);
    return status;
}

static cfx_status do_json(cfx_graph *g, cfx_error *err)
{
    cfx_buffer text;
    cfx_buffer_init(&text, cfx_graph_allocator(g));
    cfx_status status = cfx_codegen_json(g, cfx_buffer_sink(&text), err);
    cfx_buffer_free(&text);
    return status;
}

static cfx_status do_hash(cfx_graph *g, cfx_error *err)
{
    uint64_t hash;
    return cfx_graph_hash(g, false, &hash, err);
}

static cfx_status do_clone(cfx_graph *g, cfx_error *err)
{
    cfx_graph *copy = cfx_graph_clone(g, NULL, err);
    CHECK(!copy || cfx_graph_equal(g, copy, false));
    cfx_graph_release(copy);
    return copy ? CFX_OK : err->status;
}

static cfx_status do_copy_node(cfx_graph *g, cfx_error *err)
{
    cfx_graph *other = cfx_graph_new(cfx_graph_allocator(g), NULL, err);
    cfx_node *x = other ? cfx_graph_placeholder(other, "x", err) : NULL;
    cfx_node *call = cfx_node_next(cfx_graph_first(g));
    cfx_node *copy = x ? cfx_graph_copy_node(other, call, to_first, other, err) : NULL;
    cfx_graph_release(other);
    return copy ? CFX_OK : err->status;
}

static cfx_status do_lint(cfx_graph *g, cfx_error *err)
{
    return cfx_graph_lint(g, NULL, NULL, err);
}

static cfx_status build_and_do(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = deep_graph(a, 2, 30, &err);
    if (!g)
        return err.status;
    const cfx_status status = (*(work **)arg)(g, &err);
    CHECK_INT_EQ(status, err.status);
    cfx_graph_release(g);
    return status;
}

TEST(nothing_is_lost_when_memory_is_out)
{
    static work *const all[] = {do_print, do_text,      do_json, do_hash,
                                do_clone, do_copy_node, do_lint};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(test_oom_sweep(build_and_do, (void *)(uintptr_t)&all[i]) > 10);
}
