/* inputs.c - inputs of modules in C: names, defaults, those that are fixed, any number of them. */
#include "scope_test.h"

#include <cfx/cfx.h>

#include <stdio.h>
#include <string.h>

static const char here[] = "tests/unit/capture/inputs.c:";

/* Fails at a line of this file with that message; the scope can go on afterwards. */
static void check_fails(cfx_scope *s, cfx_status status, const char *message)
{
    CHECK_INT_EQ(status, cfx_scope_error(s)->status);
    CHECK(strncmp(cfx_scope_error(s)->message, here, strlen(here)) == 0);
    if (!CHECK(strstr(cfx_scope_error(s)->message, message) != NULL))
        printf("    got  %s\n", cfx_scope_error(s)->message);
    cfx_scope_clear_error(s);
}

static double first(cfx_scope *s, cfx_var v)
{
    return cfx_var_number(s, cfx_select(s, v, 0, 0));
}

/* ---- optional inputs ----------------------------------------------------------------------- */

static cfx_var masked(cfx_scope *s, cfx_module *self, cfx_var x, cfx_var mask, cfx_var scale)
{
    (void)self;
    if (!cfx_var_is_none(s, mask))
        x = cfx_add(s, x, mask);
    return cfx_mul(s, x, scale);
}

static const cfx_class masked_class = {
    .name = "Masked", .inputs = "x, mask = None, scale=0.5", .forward3 = masked};

static void check_nodes(cfx_scope *s, cfx_module *m, const char *want)
{
    char got[200] = "";
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    if (!CHECK(m != NULL))
        return;
    for (cfx_node *n = cfx_graph_first(cfx_module_graph(m)); n; n = cfx_node_next(n))
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s ", cfx_node_name(n, NULL));
    CHECK_STR_EQ(want, got);
}

TEST(an_optional_input_is_captured_as_left_out)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = cfx_module_new(s, &masked_class);
    cfx_var x = cfx_full(s, cfx_ints(s, 3), 8.0);
    CHECK(first(s, cfx_call(s, m, x)) == 4);
    CHECK(first(s, cfx_call(s, m, x, x)) == 8);
    CHECK(first(s, cfx_call(s, m, x, cfx_var_none(), cfx_v(2))) == 16);
    cfx_module *with = cfx_trace(s, m);
    check_nodes(s, with, "x mask scale add mul output ");
    cfx_module *without = cfx_trace(s, m, .concrete_args = "mask=None");
    check_nodes(s, without, "x scale mul output ");
    CHECK(first(s, cfx_call(s, without, x)) == 4);
    CHECK(first(s, cfx_call(s, without, x, cfx_v(2))) == 16);
    cfx_module *fixed = cfx_trace(s, m, .concrete_args = "scale = 3, mask= None ",
                                  .shapes = "x=float32[N]");
    check_nodes(s, fixed, "x mul output ");
    CHECK(first(s, cfx_call(s, fixed, x)) == 24);
    cfx_module *told = cfx_trace(s, m, .shapes = "x=float32[N], mask=None, scale=0.5");
    check_nodes(s, told, "x mask scale mul output "); /* it is an input, of which None is known */
    cfx_scope_free(s);
}

TEST(what_is_fixed_must_be_an_input)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = cfx_module_new(s, &masked_class);
    cfx_trace(s, m, .concrete_args = "maks=None");
    check_fails(s, CFX_E_KEY, "no input 'maks' (inputs: x, mask = None, scale=0.5)");
    cfx_trace(s, m, .concrete_args = "mask");
    check_fails(s, CFX_E_KEY, "concrete_args: 'mask=' has no value");
    cfx_trace(s, m, .concrete_args = "mask=yes");
    check_fails(s, CFX_E_VALUE, "'mask' must be None, a number, True or False, not 'yes'");
    cfx_trace(s, m, .shapes = "x=float32[3], y=int64[2]");
    check_fails(s, CFX_E_KEY, "shapes: there is no input 'y'");
    cfx_trace(s, m, .shapes = "x=float32[3], mask=None");
    check_fails(s, CFX_E_KEY, "the shape of the input 'scale' is missing");
    cfx_scope_free(s);
}

TEST(a_default_that_cannot_be_read_is_an_error)
{
    static const cfx_class classes[] = {
        {.name = "A", .inputs = "x, mode=mean, n=1", .forward3 = masked},
        {.name = "A", .inputs = "x, mask=, n=1", .forward3 = masked},
        {.name = "A", .inputs = "x, mask=None, n", .forward3 = masked},
        {.name = "A", .inputs = "x, =None, n=2", .forward3 = masked},
    };
    static const char *const messages[] = {
        "class A: the default of 'mode' must be None, a number, True or False, not 'mean'",
        "class A: the default of 'mask' must be None, a number, True or False, not ''",
        "class A: required input 'n' follows an optional input",
        "class A: an input in \"x, =None, n=2\" has no name",
    };
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        CHECK(cfx_module_new(s, &classes[i]) == NULL);
        check_fails(s, CFX_E_VALUE, messages[i]);
    }
    cfx_scope_free(s);
}

/* ---- any number ---------------------------------------------------------------------------- */

enum { MANY = 100 };

static cfx_var sum_of(cfx_scope *s, cfx_module *self, const cfx_var *in, size_t n)
{
    (void)self;
    cfx_var sum = in[0];
    for (size_t i = 1; i < n; i++)
        sum = cfx_add(s, sum, in[i]);
    return sum;
}

static cfx_var sum_more(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)ctx;
    return sum_of(s, NULL, in, MANY);
}

static cfx_var next_all(cfx_scope *s, void *ctx, cfx_var i, const cfx_var *in)
{
    cfx_var all[MANY];
    (void)ctx;
    for (size_t k = 0; k < MANY; k++)
        all[k] = cfx_add(s, in[k], i);
    return cfx_var_seq_at(CFX_HERE(s), CFX_DATUM_TUPLE, cfx_vars_make(all, MANY));
}

static cfx_var next_plain(cfx_scope *s, void *ctx, const cfx_var *in)
{
    return next_all(s, ctx, cfx_v(1), in);
}

static cfx_var is_small(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)ctx;
    return cfx_lt(s, cfx_sum(s, in[MANY - 1]), 10);
}

/* Branches, both kinds of loop, and a call of a leaf, each with as many variables as there are. */
static cfx_var busy(cfx_scope *s, cfx_module *self, const cfx_var *in, size_t n)
{
    cfx_var next[MANY];
    const cfx_at at = CFX_HERE(s);
    const cfx_vars all = cfx_vars_make(in, n);
    cfx_var sum = cfx_if_at(at, cfx_v(true), sum_more, sum_more, NULL, all);
    cfx_var rounds = cfx_for_at(at, cfx_v(3), next_all, NULL, all);
    for (size_t i = 0; i < n; i++)
        next[i] = cfx_getitem(s, rounds, i);
    rounds = cfx_while_at(at, is_small, next_plain, NULL, cfx_vars_make(next, n));
    sum = cfx_add(s, sum, cfx_getitem(s, rounds, n - 1));
    return cfx_add(s, sum, cfx_call_at(at, cfx_module_child(self, "leaf"), all));
}

/* "x0, x1, ..." and "x0=float32[2], x1=..." */
static void write_names(char *names, char *shapes, size_t size)
{
    size_t n = 0;
    size_t m = 0;
    for (int i = 0; i < MANY; i++) {
        n += (size_t)snprintf(names + n, size - n, "%sx%d", i ? ", " : "", i);
        m += (size_t)snprintf(shapes + m, size - m, "%sx%d=float32[2]", i ? ", " : "", i);
    }
}

static void call_many(cfx_scope *s)
{
    static char names[4000];
    static char shapes[4000];
    static cfx_class busy_class = {.name = "Busy", .inputs = names, .forward_n = busy};
    static cfx_class leaf_class = {.name = "Leaf", .inputs = names, .forward_n = sum_of,
                                   .leaf = true};
    cfx_var all[MANY];
    write_names(names, shapes, sizeof names);
    for (size_t i = 0; i < MANY; i++)
        all[i] = cfx_ones(s, cfx_ints(s, 2));
    cfx_module *m = cfx_module_new(s, &busy_class);
    cfx_module_add(s, m, "leaf", cfx_module_new(s, &leaf_class));
    const cfx_vars in = cfx_vars_make(all, MANY);
    const double want = cfx_scope_ok(s) ? first(s, cfx_call_at(CFX_HERE(s), m, in)) : 0;
    cfx_module *t = cfx_trace(s, m);
    const double got = first(s, cfx_call_at(CFX_HERE(s), t, in));
    cfx_module *known = cfx_trace(s, m, .shapes = shapes);
    if (cfx_scope_ok(s))
        CHECK(want == 100 + 5 + 100 && got == want && known != NULL);
}

TEST(there_is_any_number_of_inputs_and_variables)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    call_many(s);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

/* ---- memory -------------------------------------------------------------------------------- */

static void everything(cfx_scope *s, const cfx_allocator *a)
{
    (void)a;
    cfx_trace(s, cfx_module_new(s, &masked_class), .concrete_args = "mask=None");
}

/* All of it is too much for a sweep: some of its allocations fail, too. */
TEST(memory_may_run_out_anywhere)
{
    test_alloc ta;
    cfx_allocator a = test_alloc_init(&ta);
    CHECK(scope_oom_sweep(everything) > 20);
    for (size_t fail_at = 11; fail_at < 4000; fail_at += 97) {
        const cfx_scope_options options = {.allocator = &a, .threads = 1};
        ta.count = 0;
        ta.fail_at = fail_at;
        cfx_scope *s = cfx_scope_new(&options, NULL);
        if (s)
            call_many(s);
        cfx_scope_free(s);
        test_alloc_check(&ta);
    }
}
