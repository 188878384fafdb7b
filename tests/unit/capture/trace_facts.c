/* trace_facts.c - a trace knows which of its variables are numbers, and calls Python's functions
 * then. */
#include "scope_test.h"

#include <cfx/cfx.h>

#include <stdio.h>
#include <string.h>

/* ---- what is called ------------------------------------------------------------------------ */

/* The targets of a graph's calls, one after the other: "mod, torch.add". */
static void append_targets(const cfx_graph *g, char *out, size_t size)
{
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        const cfx_opcode op = cfx_node_op(n);
        if (op != CFX_OP_CALL_FUNCTION && op != CFX_OP_CALL_METHOD)
            continue;
        const size_t used = strlen(out);
        snprintf(out + used, size - used, "%s%s", used ? " " : "", cfx_node_target(n, NULL, NULL));
    }
}

static void check_calls(cfx_scope *s, const cfx_graph *g, const char *want)
{
    char got[2000] = "";
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    if (CHECK(g != NULL))
        append_targets(g, got, sizeof got);
    CHECK_STR_EQ(want, got);
}

static cfx_graph *region_of(cfx_module *m, const char *name, size_t arg)
{
    cfx_node *n = m ? cfx_graph_find(cfx_module_graph(m), name) : NULL;
    size_t size = 0;
    const cfx_value *args = n ? cfx_value_items(cfx_node_args(n), &size) : NULL;
    return arg < size ? cfx_value_graph(args[arg]) : NULL;
}

/* ---- of the index of a loop, and of what it carries ---------------------------------------- */

static cfx_var body(cfx_scope *s, void *ctx, cfx_var i, const cfx_var *in)
{
    (void)ctx;
    cfx_var n = cfx_add(s, cfx_mul(s, 2, i), in[1]);
    n = cfx_remainder(s, cfx_floor_divide(s, n, 3), cfx_sub(s, n, -7));
    n = cfx_minimum(s, cfx_abs(s, n), cfx_bitwise_and(s, i, 3));
    n = cfx_add_(s, n, cfx_ceil(s, cfx_log(s, cfx_add(s, i, 1))));
    n = cfx_neg_(s, n);
    cfx_var x = cfx_add(s, in[0], n);
    x = cfx_where(s, cfx_lt(s, 0, x), x, cfx_sub(s, 1, x));
    return cfx_tuple(s, cfx_add(s, x, n, .alpha = cfx_v(2)), cfx_add(s, n, 1));
}

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    cfx_var rows = cfx_size(s, x, .dim = cfx_v(0));
    cfx_var all = cfx_for(s, cfx_add(s, rows, 1), body, NULL, x, rows);
    cfx_var n = cfx_mul(s, cfx_getitem(s, all, 1), cfx_getitem(s, all, -1));
    cfx_var x_again = cfx_mul(s, cfx_getitem(s, all, 0), n);
    cfx_var shape = cfx_getattr(s, x, "shape");
    cfx_var last = cfx_remainder(s, cfx_getitem(s, shape, -1), cfx_numel(s, x));
    cfx_var one = cfx_div(s, cfx_item(s, cfx_sum(s, x)), last);
    return cfx_add(s, x_again, one);
}

static const cfx_class numbers_class = {.name = "Numbers", .forward = forward};

static const char *const calls_outside =
    "size operator.add cfx.for_loop operator.getitem operator.getitem operator.mul "
    "operator.getitem torch.mul builtins.getattr operator.getitem "
    "torch.numel operator.mod torch.sum item operator.truediv torch.add";
static const char *const calls_inside =
    "operator.mul operator.add operator.floordiv operator.sub operator.mod builtins.abs "
    "operator.and_ torch.sym_min operator.add math.log math.ceil operator.iadd operator.neg "
    "torch.add operator.lt operator.sub torch.where torch.add operator.add";

/* C leaves the order of the arguments of one call to the compiler: they are compared in any. */
static void sort_words(char *text)
{
    char *words[100];
    char copy[2000];
    size_t n = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *w = strtok(copy, " "); w && n < 100; w = strtok(NULL, " ")) {
        size_t at = n++;
        for (; at > 0 && strcmp(words[at - 1], w) > 0; at--)
            words[at] = words[at - 1];
        words[at] = w;
    }
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        used += (size_t)sprintf(text + used, "%s%s", i ? " " : "", words[i]);
}

static void check_same_calls(cfx_scope *s, const cfx_graph *g, const char *want)
{
    char got[2000] = "";
    char sorted[2000];
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    if (CHECK(g != NULL))
        append_targets(g, got, sizeof got);
    snprintf(sorted, sizeof sorted, "%s", want);
    sort_words(got);
    sort_words(sorted);
    CHECK_STR_EQ(sorted, got);
}

static float first(cfx_scope *s, cfx_var v)
{
    const cfx_tensor *t = cfx_var_tensor(s, v);
    return t ? *(const float *)cfx_tensor_data(t) : -1;
}

TEST(calls_without_tensors_are_pythons)
{
    static const char *const shapes[] = {NULL, "x=float32[N, 2]"};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = cfx_module_new(s, &numbers_class);
    cfx_var x = cfx_ones(s, cfx_ints(s, 3, 2));
    const float want = first(s, cfx_call(s, m, x));
    for (size_t i = 0; i < 2; i++) {
        cfx_module *t = cfx_trace(s, m, .shapes = shapes[i]);
        check_same_calls(s, cfx_module_graph(t), calls_outside);
        check_same_calls(s, region_of(t, "for_loop", 1), calls_inside);
        CHECK(first(s, cfx_call(s, t, x)) == want);
    }
    cfx_scope_free(s);
}

static cfx_var add_x(cfx_scope *s, void *ctx, cfx_var i, const cfx_var *in)
{
    (void)ctx;
    (void)i;
    return cfx_tuple(s, in[0], cfx_add(s, in[1], in[0]));
}

static cfx_var sums(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    return cfx_sqrt(s, cfx_getitem(s, cfx_for(s, 2, add_x, NULL, x, cfx_v(0)), 1));
}

TEST(what_begins_as_a_number_and_becomes_a_tensor_is_added_as_python_does)
{
    static const cfx_class type = {.name = "Sums", .forward = sums};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *t = cfx_trace(s, cfx_module_new(s, &type));
    check_calls(s, cfx_module_graph(t), "cfx.for_loop operator.getitem torch.sqrt");
    check_calls(s, region_of(t, "for_loop", 1), "operator.add");
    CHECK(first(s, cfx_call(s, t, cfx_full(s, cfx_ints(s, 2), 8.0))) == 4);
    cfx_scope_free(s);
}

/* ---- of branches and inputs ---------------------------------------------------------------- */

static cfx_var more(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)ctx;
    return cfx_add(s, in[0], 1);
}

static cfx_var both(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)ctx;
    return cfx_tuple(s, cfx_add(s, in[0], 1), in[1]);
}

static cfx_var branching(cfx_scope *s, cfx_module *self, cfx_var x, cfx_var n)
{
    (void)self;
    cfx_var yes = cfx_gt(s, n, 2);
    cfx_var one = cfx_sqrt(s, cfx_if(s, yes, more, more, NULL, n));
    cfx_var two = cfx_if(s, yes, both, both, NULL, n, x);
    cfx_var three = cfx_sqrt(s, cfx_getitem(s, two, 0));
    cfx_var four = cfx_sqrt(s, cfx_getitem(s, two, 1));
    return cfx_tuple(s, one, three, four);
}

TEST(what_both_branches_give_is_a_number_if_it_is_for_both)
{
    static const cfx_class type = {.name = "B", .inputs = "x, n=3", .forward2 = branching};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *t = cfx_trace(s, cfx_module_new(s, &type));
    check_calls(s, cfx_module_graph(t),
                "operator.gt cfx.cond math.sqrt cfx.cond operator.getitem math.sqrt "
                "operator.getitem torch.sqrt");
    check_calls(s, region_of(t, "cond", 1), "operator.add");
    cfx_scope_free(s);
}

static cfx_var asks_for_size(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    return cfx_v(cfx_var_size(s, cfx_numel(s, x), 0));
}

TEST(a_number_has_no_sizes)
{
    static const cfx_class type = {.name = "A", .forward = asks_for_size};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_trace(s, cfx_module_new(s, &type));
    CHECK(strstr(cfx_scope_error(s)->message, "expected a tensor, not a number") != NULL);
    cfx_scope_free(s);
}

/* ---- memory -------------------------------------------------------------------------------- */

static void everything(cfx_scope *s, const cfx_allocator *a)
{
    (void)a;
    cfx_module *m = cfx_module_new(s, &numbers_class);
    cfx_trace(s, m);
    cfx_trace(s, m, .shapes = "x=float32[N, 2]");
}

TEST(memory_may_run_out_anywhere) { CHECK(scope_oom_sweep(everything) > 50); }
