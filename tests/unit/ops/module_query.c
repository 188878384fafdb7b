/* module_query.c - trees of modules: in many places at once, and changed for one owner only. */
#include "scope_test.h"

#include <cfx/cfx.h>

#include <stdio.h>
#include <string.h>

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_call(s, cfx_module_child(self, "fc"), x);
}

static const cfx_class net_class = {.name = "Net", .forward = forward};

static cfx_module *net(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &net_class);
    cfx_module_add(s, m, "fc", cfx_nn_linear(s, 2, 2));
    return m;
}

/* ---- in many places ------------------------------------------------------------------------ */

enum { LEVELS = 40 };

/* Each has the next one twice: there are 2^40 ways to the last. */
static cfx_module *diamonds(cfx_scope *s, cfx_module *last)
{
    cfx_module *below = last;
    for (int i = 0; i < LEVELS; i++) {
        cfx_module *m = cfx_module_new(s, NULL);
        cfx_module_add(s, m, "left", below);
        cfx_module_add(s, m, "right", below);
        below = m;
    }
    return below;
}

TEST(a_module_is_visited_once_in_however_many_places_it_is)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *last = cfx_trace(s, net(s)); /* it has a graph: whoever lowers it needs a copy */
    cfx_module *t = cfx_trace(s, net(s));
    cfx_module_add(s, t, "many", diamonds(s, last));
    cfx_module_train(t, false);
    CHECK(!cfx_module_is_training(last) &&
          !cfx_module_is_training(cfx_module_child(t, "many.left")));
    cfx_module_train(t, true);
    CHECK(cfx_module_is_training(last));
    cfx_module_train(last, false);
    CHECK(!cfx_module_is_training(last) && cfx_module_is_training(t));
    cfx_var x = cfx_ones(s, cfx_ints(1, 2));
    cfx_var y = cfx_call(s, t, x);
    cfx_call(s, t, x);
    cfx_transform(s, t, "dce");
    CHECK(cfx_module_child(t, "many") == NULL);
    CHECK(cfx_var_number(s, cfx_sum(s, cfx_sub(s, y, cfx_call(s, t, x)))) == 0);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

TEST(a_change_far_below_is_seen)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *inner = net(s);
    cfx_module *t = cfx_trace(s, inner);
    cfx_module *last = cfx_module_new(s, NULL);
    cfx_module_add(s, t, "many", diamonds(s, last));
    cfx_var x = cfx_ones(s, cfx_ints(1, 2));
    const double before = cfx_var_number(s, cfx_sum(s, cfx_call(s, t, x)));
    cfx_module *fc = cfx_module_child(t, "fc");
    cfx_module_set(s, fc, "bias", cfx_full(s, cfx_ints(2), 100.0));
    CHECK(cfx_var_number(s, cfx_sum(s, cfx_call(s, t, x))) > before + 100);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

TEST(what_has_no_weights_is_looked_into_once)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = net(s);
    cfx_module_add(s, m, "many", diamonds(s, cfx_nn_relu(s)));
    cfx_state *state = cfx_module_state(s, m);
    CHECK(state != NULL && cfx_state_size(state) == 2);
    cfx_module_load_state(s, m, state, 0);
    cfx_state_free(state);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

/* ---- tied weights -------------------------------------------------------------------------- */

static cfx_tensor *weight_of(const cfx_module *m, const char *name)
{
    const cfx_datum d = cfx_module_attribute(m, name);
    return CHECK_INT_EQ(CFX_DATUM_TENSOR, d.kind) ? d.as.tensor : NULL;
}

static cfx_module *tied(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, NULL);
    cfx_module *a = cfx_module_add(s, m, "a", cfx_nn_linear(s, 3, 2));
    cfx_module_set(s, cfx_module_add(s, m, "b", cfx_nn_linear(s, 3, 2)), "weight",
                   cfx_module_param(s, a, "weight"));
    return m;
}

/* A copy of the state in which every name has a tensor of its own; the last one's first element is
 * another if `differs`. */
static cfx_state *copies(cfx_scope *s, const cfx_state *from, const char *differs)
{
    cfx_state *to = cfx_state_new(NULL, NULL);
    for (size_t i = 0; i < cfx_state_size(from); i++) {
        cfx_tensor *t;
        const char *name = cfx_state_entry(from, i, &t);
        cfx_var copy = cfx_add(s, cfx_var_from_tensor(s, t), 1);
        cfx_tensor *own = cfx_var_tensor(s, copy);
        if (strcmp(name, differs) == 0)
            *(float *)cfx_tensor_data(own) += 1;
        CHECK_INT_EQ(CFX_OK, cfx_state_set(to, name, own, NULL));
    }
    return to;
}

TEST(weights_stay_tied_if_what_is_loaded_is_the_same)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = tied(s);
    cfx_state *was = cfx_module_state(s, m);
    cfx_state *same = copies(s, was, "");
    cfx_module_load_state(s, m, same, 0);
    CHECK(weight_of(m, "a.weight") == weight_of(m, "b.weight"));
    CHECK(weight_of(m, "a.weight") == cfx_state_get(same, "a.weight"));
    CHECK(weight_of(m, "a.bias") != weight_of(m, "b.bias"));
    cfx_state *other = copies(s, was, "b.weight");
    cfx_module_load_state(s, m, other, 0);
    CHECK(weight_of(m, "b.weight") == cfx_state_get(other, "b.weight"));
    CHECK(weight_of(m, "a.weight") == cfx_state_get(other, "a.weight"));
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_state_free(was);
    cfx_state_free(same);
    cfx_state_free(other);
    cfx_scope_free(s);
}

/* ---- one owner ----------------------------------------------------------------------------- */

static float bias_of(const cfx_module *m)
{
    const cfx_datum d = cfx_module_attribute(m, "fc.bias");
    return CHECK_INT_EQ(CFX_DATUM_TENSOR, d.kind) ? *(float *)cfx_tensor_data(d.as.tensor) : -1;
}

/* As a pass does it. */
static void set_bias(cfx_scope *s, cfx_module *m, float to)
{
    cfx_graph *g = cfx_module_graph(m);
    const cfx_module_tree tree = cfx_module_as_tree(m);
    const cfx_value args[] = {cfx_value_int(2)};
    cfx_value size = cfx_value_tuple(g, args, 1, NULL);
    const cfx_value call[] = {size, cfx_value_float(to)};
    cfx_value full = tree.call(tree.ctx, g, CFX_OPID_full, call, 2, NULL);
    CHECK_INT_EQ(CFX_OK, tree.set(tree.ctx, g, "fc.bias", full, NULL));
    cfx_value_discard(g, full);
    cfx_value_discard(g, size);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
}

TEST(a_pass_changes_no_module_that_others_have)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = net(s);
    const float original = bias_of(m);
    cfx_module *t = cfx_trace(s, m);
    set_bias(s, t, 1);
    CHECK(bias_of(m) == original && bias_of(t) == 1);
    const cfx_module *own = cfx_module_child(t, "fc");
    set_bias(s, t, 2);
    CHECK(cfx_module_child(t, "fc") == own && bias_of(t) == 2);
    cfx_module *same = cfx_module_from_graph(s, cfx_module_graph(t), "Same", t);
    cfx_module *holder = cfx_module_new(s, NULL);
    cfx_module_add(s, holder, "fc", cfx_module_child(t, "fc"));
    set_bias(s, t, 3);
    CHECK(bias_of(t) == 3 && bias_of(same) == 2 && bias_of(holder) == 2);
    set_bias(s, same, 4);
    CHECK(bias_of(t) == 3 && bias_of(same) == 4 && bias_of(holder) == 2);
    cfx_scope_free(s);
}

/* What a tree left behind is not taken for its own by the next one, which may lie where it lay. */
TEST(a_part_that_outlived_its_tree_is_nobodys)
{
    cfx_scope *outer = cfx_scope_new(NULL, NULL);
    cfx_module *kept = NULL;
    cfx_module *heirs[20] = {0};
    for (int i = 0; i < 20; i++) {
        cfx_scope *s = cfx_scope_new(NULL, NULL);
        cfx_module *m = net(s);
        if (kept) {
            m = cfx_module_new(s, &net_class);
            cfx_module_add(s, m, "fc", kept);
        }
        cfx_module *t = cfx_trace(s, m);
        set_bias(s, t, (float)i);
        for (int k = 0; k < i; k++)
            CHECK(bias_of(heirs[k]) == (float)k);
        kept = cfx_module_child(t, "fc");
        heirs[i] = cfx_module_new(outer, NULL);
        cfx_module_add(outer, heirs[i], "fc", kept);
        cfx_scope_free(s);
    }
    CHECK_STR_EQ("", cfx_scope_error(outer)->message);
    cfx_scope_free(outer);
}

/* ---- memory -------------------------------------------------------------------------------- */

static void everything(cfx_scope *s, const cfx_allocator *a)
{
    (void)a;
    cfx_module *t = cfx_trace(s, net(s));
    cfx_module *last = cfx_trace(s, net(s));
    cfx_module *m = cfx_module_new(s, NULL);
    cfx_module_add(s, m, "left", last);
    cfx_module_add(s, m, "right", last);
    cfx_module_add(s, t, "many", m);
    cfx_var x = cfx_ones(s, cfx_ints(1, 2));
    cfx_call(s, t, x);
    cfx_call(s, t, x);
    cfx_state *state = cfx_module_state(s, tied(s));
    if (state)
        cfx_module_load_state(s, tied(s), state, 0);
    cfx_state_free(state);
}

TEST(memory_may_run_out_anywhere) { CHECK(scope_oom_sweep(everything) > 50); }
