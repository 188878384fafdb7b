/* apply.c - operators of a library in programs in C: computed, captured, transformed, mistaken. */
#include "test_alloc.h"

#include <cfx/cfx.h>

#include <stdio.h>

/* ---- a library ----------------------------------------------------------------------------- */

static cfx_status like_x(cfx_kernel_call *c) { return cfx_kernel_describe_like(c, 0, 0); }

static cfx_status scale(cfx_kernel_call *c)
{
    cfx_tensor *x = cfx_kernel_dense(c, 0, CFX_DTYPE_FLOAT32);
    cfx_tensor *y = cfx_kernel_result(c, 0);
    const float by = (float)cfx_kernel_arg(c, 1).as.f * (cfx_kernel_arg(c, 2).as.b ? -1 : 1);
    for (int64_t i = 0; x && y && i < cfx_tensor_numel(x); i++)
        ((float *)cfx_tensor_data(y))[i] = by * ((float *)cfx_tensor_data(x))[i];
    cfx_tensor_release(x);
    return CFX_OK;
}

static cfx_status vectors_only(cfx_kernel_call *c)
{
    if (cfx_tensor_ndim(cfx_kernel_tensor(c, 0)) != 1)
        return cfx_kernel_fail(c, CFX_E_SHAPE, "it wants a vector");
    return like_x(c);
}

static const cfx_custom_operator rows[] = {
    {"my.scale", "(Tensor x, float by=2.0, *, bool minus=False) -> Tensor", 0, like_x, scale, NULL,
     NULL},
    {"my.noise", "(Tensor x, float by=1.0, bool minus=False) -> Tensor", CFX_OPERATOR_RANDOM,
     vectors_only, scale, NULL, NULL},
};

static cfx_scope *scope(const cfx_allocator *a, cfx_error *err)
{
    cfx_library *lib = cfx_library_new(rows, 2, NULL, a, err);
    const cfx_scope_options options = {.allocator = a, .threads = 1, .library = lib};
    cfx_scope *s = lib ? cfx_scope_new(&options, err) : NULL;
    cfx_library_release(lib);
    return s;
}

/* 2x, -3x, and what nobody uses: once for nothing, once for its effect */
static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    cfx_apply_named(s, "my.scale", x);
    cfx_apply_named(s, "my.noise", x, cfx_v(1));
    cfx_var y = cfx_apply_named(s, "my.scale", x);
    cfx_var z = cfx_apply_named(s, "my.scale", x, cfx_v(3), cfx_v(true));
    return cfx_add(s, y, z);
}

static const cfx_class net_class = {.name = "Net", .forward = forward};

static cfx_var input(cfx_scope *s)
{
    const int64_t n = 2;
    static float data[] = {1, -5};
    cfx_tensor *t = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, &n, NULL, 1, data, true, NULL, NULL,
                                           NULL, NULL);
    cfx_var x = cfx_var_from_tensor(s, t);
    cfx_tensor_release(t);
    return x;
}

static void check_result(cfx_scope *s, cfx_var y)
{
    const cfx_tensor *t = cfx_var_tensor(s, y);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    CHECK(t && ((float *)cfx_tensor_data(t))[1] == 5);
}

static void check_text(cfx_graph *g, const char *want)
{
    cfx_error err = {0};
    cfx_buffer text;
    char *at;
    cfx_buffer_init(&text, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_text(g, cfx_buffer_sink(&text), &err));
    while ((at = strstr(text.data, "  @ ")) != NULL)  /* lines of this file */
        memmove(at, at + strcspn(at, "\n"), strlen(at + strcspn(at, "\n")) + 1);
    CHECK_STR_EQ(want, text.data);
    cfx_buffer_free(&text);
}

TEST(a_program_calls_them_both_ways)
{
    cfx_error err = {0};
    cfx_scope *s = scope(NULL, &err);
    REQUIRE(s);
    cfx_module *m = cfx_module_new(s, &net_class);
    check_result(s, cfx_call(s, m, input(s)));
    cfx_module *captured = cfx_trace(s, m, .shapes = "x=float32[N]");
    REQUIRE(captured);
    cfx_transform(s, captured, "cse,dce");
    check_text(cfx_module_graph(captured),
               "graph():\n"
               "  %x = placeholder[target=x]()\n"
               "  %scale = call_function[target=my.scale](%x)\n"
               "  %noise = call_function[target=my.noise](%x, 1)\n"
               "  %scale_2 = call_function[target=my.scale](%x, 3, minus=True)\n"
               "  %add = call_function[target=torch.add](%scale, %scale_2)\n"
               "  output(%add)\n");
    check_result(s, cfx_call(s, captured, input(s)));
    cfx_scope_free(s);
}

static void check_failure(cfx_scope *s, cfx_status status, const char *want)
{
    const cfx_error *err = cfx_scope_error(s);
    const char *message = strstr(err->message, ": ");  /* behind the line of this file */
    CHECK_INT_EQ(status, err->status);
    CHECK_STR_EQ(want, message ? message + 2 : err->message);
    cfx_scope_clear_error(s);
}

TEST(mistakes_are_said)
{
    cfx_error err = {0};
    cfx_scope *s = scope(NULL, &err);
    cfx_scope *without = cfx_scope_new(NULL, &err);
    REQUIRE(s && without);
    cfx_apply_named(s, "my.other", input(s));
    check_failure(s, CFX_E_KEY, "the scope's library has no operator 'my.other'");
    cfx_apply_named(without, "my.scale", input(without));
    check_failure(without, CFX_E_KEY, "the scope has no library with an operator 'my.scale' "
                  "(cfx_scope_options.library)");
    cfx_apply_named(s, "my.scale", cfx_v(1), cfx_v(2), cfx_v(true), cfx_v(4));
    check_failure(s, CFX_E_TYPE, "my.scale(Tensor x, float by=2.0, *, bool minus=False) -> Tensor: "
                  "too many arguments (4 given)");
    cfx_apply_named(s, "my.scale", cfx_var_empty());
    check_failure(s, CFX_E_VALUE, "my.scale: required argument 'x' is empty");
    cfx_apply_named(s, "my.noise", cfx_v(1.5));
    check_failure(s, CFX_E_SHAPE, "my.noise(float64[]): it wants a vector");
    cfx_module *m = cfx_module_new(s, &net_class);
    CHECK(!cfx_trace(s, m, .shapes = "x=float32[N, 2]"));
    check_failure(s, CFX_E_SHAPE, "my.noise(float32[N, 2]): it wants a vector");
    cfx_scope_free(without);
    cfx_scope_free(s);
}

static cfx_status everything(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    (void)arg;
    cfx_scope *s = scope(a, &err);
    if (!s)
        return err.status;
    cfx_module *m = cfx_module_new(s, &net_class);
    cfx_module *captured = cfx_trace(s, m);
    cfx_call(s, captured, input(s));
    const cfx_status status = cfx_scope_error(s)->status;
    cfx_scope_free(s);
    return status;
}

TEST(memory_may_run_out_anywhere)
{
    CHECK(test_oom_sweep(everything, NULL) > 50);
}
