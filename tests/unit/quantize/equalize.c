/* equalize.c - tests of src/quantize/equalize.c: channels evened out between layers. */
#include "check.h"
#include "scope_test.h"

#include <cfx/cfx.h>
#include <math.h>
#include <string.h>

static cfx_scope *new_scope(void)
{
    const cfx_scope_options options = {.threads = 1, .seed = 5};
    return cfx_scope_new(&options, NULL);
}

/* ---- networks ------------------------------------------------------------------------------ */

static cfx_var chain(cfx_scope *s, cfx_module *self, cfx_var x)
{
    x = cfx_relu(s, cfx_call_child(s, self, "a", x));
    x = cfx_max_pool2d(s, cfx_relu(s, cfx_call_child(s, self, "deep", x)), cfx_v(2));
    x = cfx_leaky_relu(s, cfx_call_child(s, self, "b", x));
    x = cfx_flatten(s, cfx_adaptive_avg_pool2d(s, x, cfx_v(1)), .start_dim = cfx_v(1));
    return cfx_call_child(s, self, "c", x);
}

static const cfx_class chain_class = {.name = "Chain", .forward = chain};

/* Channel i of a layer's weights times 10 to the power of 2 sin(i). */
static void distort(cfx_scope *s, cfx_module *layer)
{
    cfx_tensor *w = cfx_var_tensor(s, cfx_module_param(s, layer, "weight"));
    if (!w)
        return;
    const int64_t channels = cfx_tensor_sizes(w)[0];
    const int64_t row = cfx_tensor_numel(w) / channels;
    float *data = cfx_tensor_data(w);
    for (int64_t i = 0; i < channels * row; i++)
        data[i] *= (float)pow(10, 2 * sin((double)(i / row)));
}

static cfx_module *make_chain(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &chain_class);
    distort(s, cfx_module_add(s, m, "a", cfx_nn_conv2d(s, 3, 8, cfx_v(3))));
    cfx_module_add(s, m, "deep", cfx_nn_conv2d(s, 8, 8, cfx_v(3), .groups = cfx_v(8)));
    cfx_module_add(s, m, "b", cfx_nn_conv2d(s, 8, 6, cfx_v(3), .bias = cfx_v(false)));
    cfx_module_add(s, m, "c", cfx_nn_linear(s, 6, 4));
    return m;
}

static double off(cfx_scope *s, cfx_var a, cfx_var b)
{
    return cfx_var_number(s, cfx_div(s, cfx_norm(s, cfx_sub(s, a, b)), cfx_norm(s, b)));
}

/* The greatest weight of a channel of a layer, divided by the least of these. */
static double spread(cfx_scope *s, cfx_module *m, const char *path)
{
    cfx_var w = cfx_abs(s, cfx_module_param(s, m, path));
    cfx_var reach = cfx_amax(s, cfx_flatten(s, w, .start_dim = cfx_v(1)), .dim = cfx_ints(s, 1));
    return cfx_var_number(s, cfx_div(s, cfx_amax(s, reach), cfx_amin(s, reach)));
}

/* ---- what it does -------------------------------------------------------------------------- */

TEST(channels_reach_equally_far_and_results_are_the_same)
{
    cfx_scope *s = new_scope();
    cfx_module *net = make_chain(s);
    cfx_var x = cfx_randn(s, cfx_ints(s, 2, 3, 12, 12));
    cfx_module *t = cfx_trace(s, net);
    cfx_var y = cfx_call(s, t, x);
    const double before = spread(s, t, "a.weight");
    cfx_transform(s, t, "equalize");
    CHECK(before > 1000);
    CHECK(spread(s, t, "a.weight") < before / 20);
    CHECK(off(s, cfx_call(s, t, x), y) < 1e-5);
    CHECK(off(s, cfx_call(s, net, x), y) == 0);
    CHECK(spread(s, net, "a.weight") == before);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

TEST(functions_with_weights_too)
{
    cfx_scope *s = new_scope();
    cfx_module *net = make_chain(s);
    cfx_var x = cfx_randn(s, cfx_ints(s, 2, 3, 12, 12));
    cfx_module *t = cfx_trace(s, net);
    cfx_transform(s, t, "lower");
    cfx_var y = cfx_call(s, t, x);
    const double before = spread(s, t, "a.weight");
    cfx_transform(s, t, "equalize");
    CHECK(spread(s, t, "a.weight_equalized") < before / 20);
    CHECK(off(s, cfx_call(s, t, x), y) < 1e-5);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

TEST(a_channel_of_zeros_stays)
{
    cfx_scope *s = new_scope();
    cfx_module *net = make_chain(s);
    cfx_tensor *w = cfx_var_tensor(s, cfx_module_param(s, net, "a.weight"));
    memset(cfx_tensor_data(w), 0, 27 * sizeof(float));
    cfx_module *t = cfx_trace(s, net);
    cfx_var x = cfx_randn(s, cfx_ints(s, 2, 3, 12, 12));
    cfx_var y = cfx_call(s, t, x);
    cfx_transform(s, t, "equalize");
    CHECK(off(s, cfx_call(s, t, x), y) < 1e-5);
    const float *after = cfx_tensor_data(cfx_var_tensor(s, cfx_module_param(s, t, "a.weight")));
    CHECK(after[0] == 0);
    cfx_scope_free(s);
}

/* ---- where it does not apply --------------------------------------------------------------- */

static cfx_var tanh_between(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_call_child(s, self, "b", cfx_tanh(s, cfx_call_child(s, self, "a", x)));
}
static cfx_var used_twice(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var y = cfx_relu(s, cfx_call_child(s, self, "a", x));
    return cfx_add(s, cfx_call_child(s, self, "b", y), y);
}
static cfx_var called_twice(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_call_child(s, self, "a", cfx_relu(s, cfx_call_child(s, self, "a", x)));
}
static cfx_var last_dimension(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_call_child(s, self, "a", cfx_relu(s, cfx_call_child(s, self, "conv", x)));
}

static void stays(cfx_var (*forward)(cfx_scope *s, cfx_module *self, cfx_var x))
{
    const cfx_class type = {.name = "Net", .forward = forward};
    cfx_scope *s = new_scope();
    cfx_module *net = cfx_module_new(s, &type);
    cfx_module_add(s, net, "a", cfx_nn_linear(s, 4, 4));
    cfx_module_add(s, net, "b", cfx_nn_linear(s, 4, 4));
    cfx_module_add(s, net, "conv", cfx_nn_conv2d(s, 3, 4, cfx_v(1)));
    cfx_module *t = cfx_trace(s, net);
    const cfx_module_tree tree = cfx_module_as_tree(t);
    bool changed = true;
    cfx_error err = {0};
    CHECK_INT_EQ(CFX_OK, cfx_pass_run(cfx_pass_find("equalize"), cfx_module_graph(t), &tree, NULL,
                                      &changed, &err));
    CHECK(!changed);
    CHECK(cfx_module_child(t, "a") == cfx_module_child(net, "a"));
    cfx_scope_free(s);
}

TEST(nothing_changes_where_it_does_not_apply)
{
    stays(tanh_between);
    stays(used_twice);
    stays(called_twice);
    stays(last_dimension);
}

/* ---- memory -------------------------------------------------------------------------------- */

static cfx_var two(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_call_child(s, self, "b", cfx_relu(s, cfx_call_child(s, self, "a", x)));
}

static void whole(cfx_scope *s, const cfx_allocator *a)
{
    static const cfx_class type = {.name = "Two", .forward = two};
    cfx_module *m = cfx_module_new(s, &type);
    (void)a;
    cfx_module_add(s, m, "a", cfx_nn_linear(s, 2, 2));
    cfx_module_add(s, m, "b", cfx_nn_linear(s, 2, 2, .bias = cfx_v(false)));
    cfx_transform(s, cfx_trace(s, m), "equalize");
}

TEST(memory_may_run_out_anywhere)
{
    CHECK(scope_oom_sweep(whole) > 100);
}
