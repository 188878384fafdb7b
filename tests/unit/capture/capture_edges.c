/* capture_edges.c - captured programs that were edited, mistaken or strange: nothing goes wrong
 * quietly. */
#include "scope_test.h"
#include "capture/capture_impl.h"

#include <cfx/cfx.h>

#include <stdio.h>
#include <string.h>

static const char *const three = "x=float32[3]";

/* Fails at a line of this file with that message; the scope can go on afterwards. */
static void check_fails(cfx_scope *s, cfx_status status, const char *message)
{
    CHECK_INT_EQ(status, cfx_scope_error(s)->status);
    CHECK(strncmp(cfx_scope_error(s)->message, "tests/unit/capture/capture_edges.c:", 35) == 0);
    if (!CHECK(strstr(cfx_scope_error(s)->message, message) != NULL))
        printf("    got  %s\n", cfx_scope_error(s)->message);
    cfx_scope_clear_error(s);
}

static void check_ok(cfx_scope *s)
{
    if (!CHECK(cfx_scope_ok(s)))
        printf("    got  %s\n", cfx_scope_error(s)->message);
    cfx_scope_clear_error(s);
}

static cfx_module *trace_of(cfx_scope *s, const cfx_class *type, const char *shapes)
{
    return cfx_trace(s, cfx_module_new(s, type), .shapes = shapes);
}

static void check_begins(cfx_scope *s, cfx_var y, float want)
{
    const cfx_tensor *t = cfx_var_tensor(s, y);
    if (CHECK(t != NULL && cfx_tensor_dtype(t) == CFX_DTYPE_FLOAT32))
        CHECK_INT_EQ((int64_t)want, (int64_t)*(const float *)cfx_tensor_data(t));
    check_ok(s);
}

static cfx_node *node_called(cfx_graph *g, const char *name)
{
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
        if (strcmp(cfx_node_name(n, NULL), name) == 0)
            return n;
    return NULL;
}

static void retarget(cfx_graph *g, const char *name, const char *target)
{
    cfx_node *n = node_called(g, name);
    if (CHECK(n != NULL))
        CHECK_INT_EQ(CFX_OK, cfx_node_set_target(n, (cfx_target){.name = target,
                                                                 .size = strlen(target)}, NULL));
}

/* ---- regions whose shapes are known -------------------------------------------------------- */

static cfx_var plus_constant(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)ctx;
    const int64_t size = 3;
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, &size, 1, cfx_scope_allocator(s), NULL);
    if (!t) {
        cfx_scope_fail(s, CFX_E_NOMEM, "out of memory");
        return cfx_var_empty();
    }
    for (int i = 0; i < 3; i++)
        ((float *)cfx_tensor_data(t))[i] = 5;
    cfx_var sum = cfx_add(s, in[0], cfx_var_from_tensor(s, t));
    cfx_tensor_release(t);
    return sum;
}

static cfx_var same(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)s;
    (void)ctx;
    return in[0];
}

static cfx_var constant_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_if(s, cfx_gt(s, cfx_sum(s, x), 0), plus_constant, same, self, x);
}

static const cfx_class constant_class = {.name = "Constant", .forward = constant_forward};

TEST(a_branch_has_constants_of_its_own)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_var x = cfx_ones(s, cfx_ints(s, 3));
    cfx_module *t = trace_of(s, &constant_class, three);
    check_begins(s, cfx_call(s, t, x), 6);
    check_begins(s, cfx_call(s, t, cfx_neg(s, x)), -1);
    cfx_scope_free(s);
}

static cfx_var first_and_last(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)ctx;
    return cfx_add(s, in[0], in[31]);
}

static cfx_var many_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var all[32];
    for (int i = 0; i < 32; i++)
        all[i] = cfx_add(s, x, i);
    return cfx_if_at(CFX_HERE(s), cfx_gt(s, cfx_sum(s, x), 0), first_and_last, first_and_last, self,
                     cfx_vars_make(all, 32));
}

TEST(a_branch_takes_as_many_variables_with_shapes_as_without)
{
    static const cfx_class many = {.name = "Many", .forward = many_forward};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_var x = cfx_ones(s, cfx_ints(s, 3));
    check_begins(s, cfx_call(s, trace_of(s, &many, NULL), x), 33);
    check_begins(s, cfx_call(s, trace_of(s, &many, three), x), 33);
    cfx_scope_free(s);
}

/* ---- variables whose nodes are gone -------------------------------------------------------- */

static cfx_var erasing_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    cfx_var gone = cfx_relu(s, x);
    cfx_graph_erase(cfxi_capture_scope_graph(s), cfxi_capture_var_node(s, gone), NULL);
    cfx_var other = cfx_neg(s, x);  /* a node that might get the memory of the one that is gone */
    return cfx_add(s, cfx_abs(s, gone), other);
}

static cfx_var erasing_block(cfx_scope *s, void *ctx, const cfx_var *in)
{
    return erasing_forward(s, ctx, in[0]);
}

static cfx_var erasing_inside_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_if(s, cfx_gt(s, x, 0), erasing_block, erasing_block, self, x);
}

/* Reads a parameter, erases the reader, and reads it again. */
static cfx_var rereading_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var w = cfx_module_param(s, self, "w");
    cfx_graph_erase(cfxi_capture_scope_graph(s), cfxi_capture_var_node(s, w), NULL);
    x = cfx_neg(s, x);
    return cfx_mul(s, x, cfx_module_param(s, self, "w"));
}

TEST(a_variable_whose_node_was_erased_is_not_another_one)
{
    static const cfx_class erasing = {.name = "Erasing", .forward = erasing_forward};
    static const cfx_class inside = {.name = "Inside", .forward = erasing_inside_forward};
    static const cfx_class rereading = {.name = "Rereading", .forward = rereading_forward};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    CHECK(trace_of(s, &erasing, NULL) == NULL);
    check_fails(s, CFX_E_GRAPH, "was erased");
    CHECK(trace_of(s, &inside, NULL) == NULL);
    check_fails(s, CFX_E_GRAPH, "was erased");
    cfx_module *m = cfx_module_new(s, &rereading);
    cfx_module_add_parameter(s, m, "w", cfx_var_tensor(s, cfx_full(s, cfx_ints(s, 3), 4.0)));
    check_begins(s, cfx_call(s, cfx_trace(s, m), cfx_ones(s, cfx_ints(s, 3))), -4);
    cfx_scope_free(s);
}

static cfx_var kept;

static cfx_var keeping_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    return kept = cfx_relu(s, x);
}

static cfx_var using_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    x = cfx_neg(s, x);
    return cfx_add(s, x, kept);
}

TEST(a_variable_of_an_earlier_trace_is_found_out)
{
    static const cfx_class keeping = {.name = "Keeping", .forward = keeping_forward};
    static const cfx_class using = {.name = "Using", .forward = using_forward};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *first = cfx_module_new(s, &keeping);
    cfx_module *second = cfx_module_new(s, &using);
    cfx_trace(s, first);
    check_ok(s);
    CHECK(cfx_trace(s, second) == NULL);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_scope_error(s)->status);
    cfx_scope_clear_error(s);
    cfx_scope_free(s);
}

/* ---- programs that are kept ---------------------------------------------------------------- */

static cfx_var leaf_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    return cfx_relu(s, x);
}

static cfx_var around_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_call(s, cfx_module_child(self, "leaf"), x);
}

/* Its capture has a captured module as its leaf. */
static cfx_module *around(cfx_scope *s)
{
    static const cfx_class leaf_class = {.name = "Leaf", .forward = leaf_forward, .leaf = true};
    static const cfx_class around_class = {.name = "Around", .forward = around_forward};
    cfx_module *m = cfx_module_new(s, &around_class);
    cfx_module_add(s, m, "leaf", cfx_module_new(s, &leaf_class));
    return m;
}

TEST(a_graph_inside_that_was_edited_is_run_as_it_is_now)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_var x = cfx_full(s, cfx_ints(s, 3), -2.0);
    cfx_module *t = cfx_trace(s, around(s));
    check_begins(s, cfx_call(s, t, x), 0);
    retarget(cfx_module_graph(cfx_module_child(t, "leaf")), "relu", "torch.neg");
    check_begins(s, cfx_call(s, t, x), 2);
    cfx_scope_free(s);
}

TEST(a_region_that_was_edited_is_run_as_it_is_now)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_var x = cfx_ones(s, cfx_ints(s, 3));
    cfx_module *t = trace_of(s, &constant_class, NULL);
    check_begins(s, cfx_call(s, t, x), 6);
    cfx_node *branch = t ? node_called(cfx_module_graph(t), "cond") : NULL;
    if (CHECK(branch != NULL))
        retarget(cfx_value_graph(cfx_node_arg(branch, 1)), "add", "torch.mul");
    check_begins(s, cfx_call(s, t, x), 5);
    cfx_scope_free(s);
}

/* ---- the same on tensors and captured ------------------------------------------------------ */

static cfx_var one_in_a_tuple(cfx_scope *s, void *ctx, cfx_var i, const cfx_var *in)
{
    (void)ctx;
    (void)i;
    return cfx_tuple(s, cfx_add(s, in[0], 1));
}

static cfx_var thrice_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_for(s, 3, one_in_a_tuple, self, x);
}

static cfx_var broken_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_for(s, 2.5, one_in_a_tuple, self, x);
}

TEST(a_loop_is_the_same_on_tensors_and_captured)
{
    static const cfx_class thrice = {.name = "Thrice", .forward = thrice_forward};
    static const cfx_class broken = {.name = "Broken", .forward = broken_forward};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_var x = cfx_ones(s, cfx_ints(s, 3));
    check_begins(s, cfx_call(s, cfx_module_new(s, &thrice), x), 4);
    check_begins(s, cfx_call(s, trace_of(s, &thrice, three), x), 4);
    cfx_call(s, cfx_module_new(s, &broken), x);
    check_fails(s, CFX_E_TYPE, "must be an integer, not 2.5");
    cfx_call(s, trace_of(s, &broken, NULL), x);
    check_fails(s, CFX_E_TYPE, "which must be int");
    cfx_scope_free(s);
}

static cfx_var crowded_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    const cfx_var args[] = {x, cfx_var_empty(), x, x};
    (void)self;
    return cfx_apply_at(CFX_HERE(s), CFX_OPID_relu, args, 4);
}

TEST(too_many_arguments_are_said_to_be)
{
    static const cfx_class crowded = {.name = "Crowded", .forward = crowded_forward};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_call(s, cfx_module_new(s, &crowded), cfx_ones(s, cfx_ints(s, 3)));
    check_fails(s, CFX_E_TYPE, "relu(Tensor self) -> Tensor: too many arguments (4 given)");
    trace_of(s, &crowded, NULL);
    check_fails(s, CFX_E_TYPE, "relu(Tensor self) -> Tensor: too many arguments (4 given)");
    cfx_apply_named(s, NULL, cfx_v(1));
    check_fails(s, CFX_E_KEY, "no library with an operator ''");
    cfx_scope_free(s);
}

TEST(what_a_region_reads_is_brought_along_however_it_is_passed)
{
    static const char text[] =
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %y = call_function[target=cfx.cond](True, graph {\n"
        "      %a = placeholder[target=a]()\n"
        "      output(%a)\n"
        "    }, otherwise=graph {\n"
        "      %b = placeholder[target=b]()\n"
        "      %w = get_attr[target=w]()\n"
        "      %s = call_function[target=torch.add](%b, %w)\n"
        "      output(%s)\n"
        "    }, operands=(%x,))\n"
        "  output(%y)\n";
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_parse(text, strlen(text), NULL, NULL, &err);
    CHECK_STR_EQ("", err.message);
    cfx_module *from = cfx_module_new(s, NULL);
    cfx_module_add_parameter(s, from, "w", cfx_var_tensor(s, cfx_ones(s, cfx_ints(s, 3))));
    cfx_module *m = cfx_module_from_graph(s, g, "Parsed", from);
    CHECK(cfx_module_attribute(m, "w").kind == CFX_DATUM_TENSOR);
    check_begins(s, cfx_call(s, m, cfx_ones(s, cfx_ints(s, 3))), 1);
    cfx_graph_release(g);
    cfx_scope_free(s);
}

/* ---- memory that runs out ------------------------------------------------------------------ */

static void everything(cfx_scope *s, const cfx_allocator *a)
{
    (void)a;
    cfx_var x = cfx_ones(s, cfx_ints(s, 3));
    cfx_call(s, trace_of(s, &constant_class, three), x);
    cfx_call(s, cfx_trace(s, around(s)), x);
}

TEST(memory_may_run_out_anywhere) { scope_oom_sweep(everything); }

/* ---- many, and deep ------------------------------------------------------------------------ */

/* Each below the one before; and each above it. */
TEST(modules_nest_so_deep_and_no_deeper)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    for (int upwards = 0; upwards < 2; upwards++) {
        cfx_module *last = cfx_module_new(s, NULL);
        int n = 0;
        for (; n < 100000 && cfx_scope_ok(s); n++) {
            cfx_module *next = cfx_module_new(s, NULL);
            if (upwards)
                cfx_module_add(s, next, "part", last);
            else
                cfx_module_add(s, last, "part", next);
            last = next;
        }
        CHECK_INT_EQ(CFX_MAX_REGION_DEPTH, n);
        check_fails(s, CFX_E_LIMIT, "modules nest more than");
    }
    cfx_scope_free(s);
}

TEST(a_module_in_many_places_is_added_once_for_each)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *below = cfx_module_new(s, NULL);
    cfx_module *part = below;
    for (int i = 0; i < 60; i++) {  /* 2 to the 60 paths */
        cfx_module *next = cfx_module_new(s, NULL);
        cfx_module_add(s, next, "a", below);
        cfx_module_add(s, next, "b", below);
        below = next;
    }
    check_ok(s);
    CHECK(cfx_module_child(below, "a.b.a.b") == cfx_module_child(below, "b.b.b.b"));
    cfx_module_add(s, part, "top", below);
    check_fails(s, CFX_E_VALUE, "would contain itself");
    cfx_module *deep = cfx_module_new(s, NULL);
    cfx_module_add(s, part, "deep", deep);  /* deeper than `other`, but not below it */
    cfx_module *other = cfx_module_new(s, NULL);
    cfx_module_add(s, other, "a", cfx_module_child(below, "a"));
    cfx_module_add(s, deep, "other", cfx_module_new(s, NULL));
    check_ok(s);
    cfx_module_add(s, cfx_module_child(part, "deep"), "back", other);
    check_fails(s, CFX_E_VALUE, "would contain itself");
    cfx_scope_free(s);
}

/* Names are found at once, in the order in which they were added. */
TEST(a_module_has_many_children)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = cfx_nn_sequential(s);
    char name[16];
    const char *third;
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "%d", i);
        cfx_module_add(s, m, name, cfx_module_new(s, NULL));
    }
    check_ok(s);
    CHECK_INT_EQ(20000, cfx_module_num_children(m));
    CHECK(cfx_module_child(m, "19999") != NULL && cfx_module_child(m, "20000") == NULL);
    CHECK(cfx_module_get_child(m, 3, &third) == cfx_module_child(m, "3"));
    CHECK_STR_EQ("3", third);
    const cfx_module_tree tree = cfx_module_as_tree(m);
    CHECK_INT_EQ(CFX_OK, tree.remove(tree.ctx, "3", NULL));
    CHECK_INT_EQ(CFX_E_KEY, tree.remove(tree.ctx, "3", NULL));
    CHECK(cfx_module_child(m, "3") == NULL &&
          cfx_module_get_child(m, 3, NULL) == cfx_module_child(m, "4"));
    cfx_scope_free(s);
}

TEST(training_is_no_attribute_like_others)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = cfx_nn_dropout(s);
    cfx_module_set(s, m, "training", false);
    check_fails(s, CFX_E_KEY, "set it with cfx_module_train");
    cfx_module_add(s, m, "training", cfx_module_new(s, NULL));
    check_fails(s, CFX_E_KEY, "set it with cfx_module_train");
    cfx_scope_free(s);
}

TEST(a_weight_stays_a_tensor)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = cfx_nn_linear(s, 2, 2);
    cfx_module_set(s, m, "weight", 5);
    check_fails(s, CFX_E_TYPE, "'weight' of torch.nn.Linear is a parameter or a buffer");
    cfx_module_set(s, m, "bias", cfx_var_none());
    cfx_call(s, m, cfx_ones(s, cfx_ints(s, 1, 2)));
    check_ok(s);
    cfx_scope_free(s);
}
