/* capture.c - programs in C: run on tensors, captured, transformed and run again; and mistakes. */
#include "scope_test.h"

#include <cfx/cfx.h>

#include <stdio.h>
#include <string.h>

/* ---- a module with parameters of its own --------------------------------------------------- */

static cfx_tensor *numbers(cfx_scope *s, const float *from, int64_t rows, int64_t columns)
{
    const int64_t sizes[] = {rows, columns};
    cfx_error err = {0};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, rows ? sizes : sizes + 1, rows ? 2 : 1,
                                   cfx_scope_allocator(s), &err);
    if (!t)
        cfx_scope_fail(s, err.status, "%s", err.message);
    else
        memcpy(cfx_tensor_data(t), from, (size_t)((rows ? rows : 1) * columns) * sizeof *from);
    return t;
}

static cfx_var affine_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var weight = cfx_module_param(s, self, "weight");
    return cfx_relu(s, cfx_linear(s, x, weight, .bias = cfx_module_param(s, self, "bias")));
}

static const cfx_class affine_class = {.name = "Affine", .forward = affine_forward};

static cfx_module *affine(cfx_scope *s)
{
    static const float weight[] = {1, 2, 3, 4, 5, 6};
    static const float bias[] = {-6, 1};
    cfx_module *m = cfx_module_new(s, &affine_class);
    cfx_tensor *w = numbers(s, weight, 2, 3);
    cfx_tensor *b = numbers(s, bias, 0, 2);
    cfx_module_add_parameter(s, m, "weight", w);
    cfx_module_add_parameter(s, m, "bias", b);
    cfx_tensor_release(w);
    cfx_tensor_release(b);
    return m;
}

static cfx_var net_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var y = cfx_call(s, cfx_module_child(self, "body.0"), x);
    cfx_var twice = cfx_mul(s, y, 2);
    return cfx_add(s, twice, cfx_sum(s, y), .alpha = cfx_v(0.5));
}

static const cfx_class net_class = {.name = "Net", .inputs = "x", .forward = net_forward};

static cfx_module *net(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &net_class);
    cfx_module *body = cfx_module_add(s, m, "body", cfx_module_new(s, NULL));
    cfx_module_add(s, body, "0", affine(s));
    return m;
}

static cfx_var input(cfx_scope *s)
{
    static const float x[] = {1, 0, 1, 0, 1, 0};
    cfx_tensor *t = numbers(s, x, 2, 3);
    cfx_var v = cfx_var_from_tensor(s, t);
    cfx_tensor_release(t);
    return v;
}

static const float *floats(cfx_scope *s, cfx_var v)
{
    const cfx_tensor *t = cfx_var_tensor(s, v);
    CHECK(t != NULL && cfx_tensor_dtype(t) == CFX_DTYPE_FLOAT32);
    return cfx_tensor_data(t);
}

static void check_net(cfx_scope *s, cfx_var y)
{
    /* linear: (4 - 6, 10 + 1), (2 - 6, 5 + 1); relu; twice it plus half of the sum 17 */
    static const float want[] = {8.5f, 30.5f, 8.5f, 20.5f};
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    const float *got = floats(s, y);
    for (int i = 0; i < 4; i++)
        CHECK(got[i] == want[i]);
}

/* ---- text ---------------------------------------------------------------------------------- */

static void check_text(cfx_graph *g, const char *want)
{
    cfx_buffer text;
    cfx_error err = {0};
    cfx_buffer_init(&text, NULL);
    CHECK(cfx_graph_print(g, cfx_buffer_sink(&text), &err) == CFX_OK);
    CHECK_STR_EQ(want, text.data);
    cfx_buffer_free(&text);
}

/* ---- eager, traced, transformed ------------------------------------------------------------ */

TEST(a_module_runs_and_is_captured)
{
    cfx_error err = {0};
    cfx_scope *s = cfx_scope_new(NULL, &err);
    cfx_module *m = net(s);
    cfx_var x = input(s);
    check_net(s, cfx_call(s, m, x));
    cfx_module *t = cfx_trace(s, m);
    check_text(cfx_module_graph(t),
               "graph():\n"
               "    %x : [num_users=1] = placeholder[target=x]\n"
               "    %body_0_weight : [num_users=1] = get_attr[target=body.0.weight]\n"
               "    %body_0_bias : [num_users=1] = get_attr[target=body.0.bias]\n"
               "    %linear : [num_users=1] = call_function[target=torch.nn.functional.linear]"
               "(args = (%x, %body_0_weight, %body_0_bias), kwargs = {})\n"
               "    %relu : [num_users=2] = call_function[target=torch.relu](args = (%linear,), "
               "kwargs = {})\n"
               "    %mul : [num_users=1] = call_function[target=torch.mul](args = (%relu, 2), "
               "kwargs = {})\n"
               "    %sum_1 : [num_users=1] = call_function[target=torch.sum](args = (%relu,), "
               "kwargs = {})\n"
               "    %add : [num_users=1] = call_function[target=torch.add](args = (%mul, %sum_1), "
               "kwargs = {alpha: 0.5})\n"
               "    return add");
    check_net(s, cfx_call(s, t, x));
    cfx_transform(s, t, "cse, dce");
    check_net(s, cfx_call(s, t, x));
    cfx_scope_free(s);
}

static cfx_var last_but_one_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_add(s, cfx_call(s, cfx_module_child(self, "all"), x), 1);
}

static const cfx_class last_class = {.name = "Last", .forward = last_but_one_forward};

TEST(a_sequential_is_called_and_looked_into)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = cfx_module_new(s, &last_class);
    cfx_module *all = cfx_module_add(s, m, "all", cfx_nn_sequential(s));
    cfx_module_add(s, all, "0", net(s));
    cfx_module *inner = cfx_module_add(s, all, "1", cfx_nn_sequential(s));
    cfx_module_add(s, inner, "0", cfx_nn_relu(s));
    cfx_var x = input(s);
    CHECK(floats(s, cfx_call(s, m, x))[1] == 31.5f);
    cfx_module *t = cfx_trace(s, m);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_node *relu = cfx_graph_find(cfx_module_graph(t), "all_1_0");
    CHECK(relu != NULL && strcmp(cfx_node_target(relu, NULL, NULL), "all.1.0") == 0);
    CHECK_STR_EQ(__FILE__, cfx_node_file(relu));
    CHECK(floats(s, cfx_call(s, t, x))[1] == 31.5f);
    check_net(s, cfx_call(s, cfx_trace(s, all), x));
    cfx_module *none = cfx_nn_sequential(s);
    check_net(s, cfx_call(s, none, cfx_call(s, all, x)));
    cfx_scope_free(s);
}

static cfx_var bare_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var unused = cfx_mul(s, cfx_module_param(s, self, "body.0.bias"), 2);
    (void)unused;
    return cfx_matmul(s, x, cfx_transpose(s, cfx_module_param(s, self, "body.0.weight"), 0, 1));
}

TEST(a_transform_leaves_what_the_graph_names)
{
    static const cfx_class bare_class = {.name = "Bare", .forward = bare_forward};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = cfx_module_new(s, &bare_class);
    cfx_module_add(s, cfx_module_add(s, m, "body", cfx_module_new(s, NULL)), "0", affine(s));
    cfx_module *t = cfx_trace(s, m);
    CHECK_INT_EQ(CFX_DATUM_TENSOR, cfx_module_attribute(t, "body.0.bias").kind);
    cfx_var x = input(s);
    CHECK(floats(s, cfx_call(s, t, x))[0] == 4);
    cfx_transform(s, t, "dce");
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_module_attribute(t, "body.0.bias").kind);
    CHECK_INT_EQ(CFX_DATUM_TENSOR, cfx_module_attribute(t, "body.0.weight").kind);
    CHECK(floats(s, cfx_call(s, t, x))[0] == 4);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

/* ---- modules of torch.nn ------------------------------------------------------------------- */

static cfx_module *layers(cfx_scope *s)
{
    cfx_module *m = cfx_nn_sequential(s);
    cfx_module_add(s, m, "0", cfx_nn_conv2d(s, 3, 4, 3, .padding = cfx_v(1)));
    cfx_module_add(s, m, "1", cfx_nn_batch_norm2d(s, 4));
    cfx_module_add(s, m, "2", cfx_nn_relu(s, .inplace = cfx_v(true)));
    cfx_module_add(s, m, "3", cfx_nn_dropout(s));
    cfx_module_train(m, false);
    return m;
}

static float farthest(cfx_scope *s, cfx_var a, cfx_var b)
{
    return (float)cfx_var_number(s, cfx_max(s, cfx_abs(s, cfx_sub(s, a, b))));
}

TEST(layers_run_and_are_fused)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = layers(s);
    cfx_var x = cfx_randn(s, cfx_ints(s, 2, 3, 8, 8));
    cfx_var want = cfx_call(s, m, x);
    cfx_module *t = cfx_trace(s, m, .shapes = "input=float32[N, 3, H, W]");
    CHECK_STR_EQ("torch.nn.Sequential", cfx_module_class_name(t));
    CHECK(cfx_module_child(t, "1") == cfx_module_child(m, "1"));
    CHECK(farthest(s, want, cfx_call(s, t, x)) == 0);
    cfx_transform(s, t, "remove_dropout,fuse_bn,dce");
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    CHECK(farthest(s, want, cfx_call(s, t, x)) < 1e-5);
    CHECK_INT_EQ(4, cfx_graph_size(cfx_module_graph(t)));
    CHECK(cfx_module_child(t, "0") != cfx_module_child(m, "0")); /* the original is as it was */
    CHECK(farthest(s, want, cfx_call(s, m, x)) == 0);
    cfx_call(s, m, x, x);
    CHECK(strstr(cfx_scope_error(s)->message, "torch.nn.Sequential takes 1 input, not 2"));
    cfx_scope_free(s);
}

static cfx_var double_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_mul(s, cfx_call(s, cfx_module_child(self, "fc"), x), 2);
}

static cfx_var outer_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    x = cfx_call(s, cfx_module_child(self, "inner"), x);
    return cfx_call(s, cfx_module_child(self, "inner"), x);
}

TEST(a_leaf_of_the_users_is_captured_in_turn)
{
    static const cfx_class doubled = {.name = "Double", .forward = double_forward, .leaf = true};
    static const cfx_class outer = {.name = "Outer", .forward = outer_forward};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = cfx_module_new(s, &outer);
    cfx_module *inner = cfx_module_add(s, m, "inner", cfx_module_new(s, &doubled));
    cfx_module_add(s, inner, "fc", cfx_nn_linear(s, 3, 3));
    cfx_var x = cfx_randn(s, cfx_ints(s, 2, 3));
    cfx_module *t = cfx_trace(s, m);
    CHECK_INT_EQ(4, cfx_graph_size(cfx_module_graph(t)));
    CHECK_INT_EQ(4, cfx_graph_size(cfx_module_graph(cfx_module_child(t, "inner"))));
    CHECK(farthest(s, cfx_call(s, m, x), cfx_call(s, t, x)) == 0);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

/* ---- control flow -------------------------------------------------------------------------- */

static cfx_var halve(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)ctx;
    return cfx_tuple(s, cfx_div(s, in[0], 2), cfx_add(s, in[1], 1));
}

static cfx_var is_large(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)ctx;
    return cfx_gt(s, cfx_max(s, in[0]), 1);
}

static cfx_var twice(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)ctx;
    return cfx_mul(s, in[0], 2);
}

static cfx_var weighted(cfx_scope *s, void *self, const cfx_var *in)
{
    return cfx_mul(s, in[0], cfx_module_param(s, self, "factor"));
}

static cfx_var add_index(cfx_scope *s, void *ctx, cfx_var i, const cfx_var *in)
{
    (void)ctx;
    return cfx_add(s, in[0], i);
}

static cfx_var flow_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var loop = cfx_while(s, is_large, halve, NULL, x, cfx_zeros(s, cfx_ints(s, 1)));
    cfx_var y = cfx_getitem(s, loop, 0);
    cfx_var turns = cfx_getitem(s, loop, 1);
    y = cfx_if(s, cfx_gt(s, turns, 2), twice, weighted, self, y);
    y = cfx_for(s, 4, add_index, NULL, y);
    return cfx_tuple(s, y, turns);
}

static const cfx_class flow_class = {.name = "Flow", .forward = flow_forward};

static cfx_module *flow(cfx_scope *s)
{
    static const float ten[] = {10};
    cfx_module *m = cfx_module_new(s, &flow_class);
    cfx_tensor *t = numbers(s, ten, 0, 1);
    cfx_module_add_buffer(s, m, "factor", t);
    cfx_tensor_release(t);
    return m;
}

static void check_flow(cfx_scope *s, cfx_module *m, float largest, float want, float turns)
{
    const float data[] = {largest, 0};
    const size_t mark = cfx_scope_mark(s);
    cfx_tensor *t = numbers(s, data, 0, 2);
    cfx_var result = cfx_call(s, m, cfx_var_from_tensor(s, t));
    cfx_tensor_release(t);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    CHECK(floats(s, cfx_getitem(s, result, 0))[0] == want);
    CHECK(floats(s, cfx_getitem(s, result, 1))[0] == turns);
    cfx_scope_reset(s, mark, cfx_var_empty());
}

TEST(branches_and_loops_run_and_are_captured)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = flow(s);
    cfx_module *t = cfx_trace(s, m);
    cfx_module *shaped = cfx_trace(s, m, .shapes = "x=float32[N]");
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_module *const all[] = {m, t, shaped};
    for (int i = 0; i < 3; i++) {
        check_flow(s, all[i], 8, 2 + 6, 3);
        check_flow(s, all[i], 2, 10 + 6, 1);
        check_flow(s, all[i], 0.5f, 5 + 6, 0);
    }
    CHECK_INT_EQ(CFX_DATUM_TENSOR, cfx_module_attribute(t, "factor").kind);
    cfx_scope_free(s);
}

/* ---- how calls are spelled ----------------------------------------------------------------- */

static cfx_var spelled_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    x = cfx_view(s, x, cfx_ints(s, -1));
    x = cfx_masked_fill_(s, x, cfx_lt(s, x, 0), 0);
    return cfx_add(s, cfx_softplus(s, x), cfx_size(s, x, .dim = cfx_v(0)));
}

/* So that PyTorch takes them, with numbers in the place of tensors, too. */
TEST(calls_are_spelled_as_people_do)
{
    static const cfx_class spelled_class = {.name = "Spelled", .forward = spelled_forward};
    static const struct {
        const char *name, *target;
        cfx_opcode op;
    } want[] = {
        {"view", "view", CFX_OP_CALL_METHOD},
        {"masked_fill_", "masked_fill_", CFX_OP_CALL_METHOD},
        {"size", "size", CFX_OP_CALL_METHOD},
        {"lt", "torch.lt", CFX_OP_CALL_FUNCTION},
        {"softplus", "torch.nn.functional.softplus", CFX_OP_CALL_FUNCTION},
    };
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *t = cfx_trace(s, cfx_module_new(s, &spelled_class));
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const cfx_node *n = cfx_graph_find(cfx_module_graph(t), want[i].name);
        if (CHECK(n != NULL)) {
            CHECK_INT_EQ(want[i].op, cfx_node_op(n));
            CHECK_STR_EQ(want[i].target, cfx_node_target(n, NULL, NULL));
        }
    }
    cfx_var y = cfx_call(s, t, cfx_ones(s, cfx_ints(s, 2, 3)));
    CHECK_INT_EQ(6, cfx_var_size(s, y, 0));
    cfx_scope_free(s);
}

/* ---- shapes while tracing ------------------------------------------------------------------ */

static cfx_var sizes_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    const int64_t width = cfx_var_size(s, x, -1);
    return cfx_reshape(s, x, cfx_list(s, cfx_size(s, x, .dim = cfx_v(0)), cfx_v(2),
                                      cfx_v(width / 2)));
}

static const cfx_class sizes_class = {.name = "Sizes", .forward = sizes_forward};

TEST(sizes_are_known_if_shapes_are_given)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = cfx_module_new(s, &sizes_class);
    cfx_module *t = cfx_trace(s, m, .shapes = "x=float32[N, 6]");
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_var y = cfx_call(s, t, cfx_ones(s, cfx_ints(s, 5, 6)));
    CHECK_INT_EQ(3, cfx_var_ndim(s, y));
    CHECK_INT_EQ(5, cfx_var_size(s, y, 0));
    CHECK_INT_EQ(3, cfx_var_size(s, y, 2));
    CHECK(cfx_trace(s, m) == NULL);
    CHECK(strstr(cfx_scope_error(s)->message, "capture.c:") != NULL);
    CHECK(strstr(cfx_scope_error(s)->message, "the shape is not known while tracing") != NULL);
    cfx_scope_free(s);
}

/* ---- mistakes ------------------------------------------------------------------------------ */

static cfx_var leaked;

static cfx_var leaking_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    leaked = cfx_neg(s, x);
    return cfx_relu(s, x);
}

static cfx_var using_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    return cfx_add(s, x, leaked);
}

static cfx_var nothing_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)s;
    (void)self;
    (void)x;
    return cfx_var_empty();
}

static cfx_var ints_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    (void)x;
    return cfx_ints(s, 1, 2);
}

static cfx_var looking_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    return cfx_var_number(s, cfx_sum(s, x)) > 0 ? x : cfx_neg(s, x);
}

static cfx_var one_value(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)s;
    (void)ctx;
    return in[0];
}

static cfx_var two_values(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)ctx;
    return cfx_tuple(s, in[0], in[0]);
}

static cfx_var three_long(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)ctx;
    (void)in;
    return cfx_zeros(s, cfx_ints(s, 2, 2, 2), .dtype = cfx_var_dtype(CFX_DTYPE_INT64));
}

static cfx_var uneven_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    return cfx_if(s, cfx_gt(s, cfx_sum(s, x), 0), one_value, two_values, NULL, x);
}

static cfx_var shapes_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    return cfx_if(s, cfx_gt(s, cfx_sum(s, x), 0), one_value, three_long, NULL, x);
}

static cfx_var endless_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_call(s, self, x);
}

/* Fails at a line of this file with that message; the scope can go on afterwards. */
static void check_fails(cfx_scope *s, cfx_status status, const char *message)
{
    CHECK_INT_EQ(status, cfx_scope_error(s)->status);
    CHECK(strstr(cfx_scope_error(s)->message, "capture.c:") != NULL);
    if (!CHECK(strstr(cfx_scope_error(s)->message, message) != NULL))
        printf("    got  %s\n", cfx_scope_error(s)->message);
    cfx_scope_clear_error(s);
}

TEST(mistakes_are_said_at_their_lines)
{
    static const cfx_class leaking = {.name = "Leaking", .forward = leaking_forward};
    static const cfx_class using = {.name = "Using", .forward = using_forward};
    static const cfx_class nothing = {.name = "Nothing", .forward = nothing_forward};
    static const cfx_class ints = {.name = "Ints", .forward = ints_forward};
    static const cfx_class looking = {.name = "Looking", .forward = looking_forward};
    static const cfx_class uneven = {.name = "Uneven", .forward = uneven_forward};
    static const cfx_class shapes = {.name = "Shapes", .forward = shapes_forward};
    static const cfx_class endless = {.name = "Endless", .forward = endless_forward};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_var x = cfx_ones(s, cfx_ints(s, 2, 3));
    cfx_call(s, cfx_module_new(s, &nothing), x);
    check_fails(s, CFX_E_VALUE, "forward of Nothing returned nothing");
    cfx_var pair = cfx_call(s, cfx_module_new(s, &ints), x);  /* the scope owns lists */
    CHECK(cfx_var_number(s, cfx_getitem(s, pair, 1)) == 2);
    cfx_call(s, cfx_module_new(s, &leaking), x);
    cfx_neg(s, leaked);
    check_fails(s, CFX_E_VALUE, "this variable is no longer alive");
    leaked = x;
    cfx_trace(s, cfx_module_new(s, &using));
    check_fails(s, CFX_E_VALUE, "this variable belongs to another scope");
    cfx_trace(s, cfx_module_new(s, &looking));
    check_fails(s, CFX_E_TYPE, "tensors have no values while tracing");
    cfx_trace(s, cfx_module_new(s, &uneven));
    check_fails(s, CFX_E_VALUE, "one branch returns 1 values, the other 2");
    cfx_trace(s, cfx_module_new(s, &shapes), .shapes = "x=float32[N, 3]");
    check_fails(s, CFX_E_SHAPE, "one path returns");
    cfx_trace(s, cfx_module_new(s, &endless));
    check_fails(s, CFX_E_LIMIT, "deep");
    cfx_matmul(s, x, x);
    check_fails(s, CFX_E_SHAPE, "matmul");
    cfx_call(s, NULL, x);
    check_fails(s, CFX_E_VALUE, "the module to call is NULL");
    cfx_call(s, cfx_module_new(s, NULL), x);
    check_fails(s, CFX_E_TYPE, "only holds other modules");
    cfx_call(s, cfx_nn_module_list(s), x);
    check_fails(s, CFX_E_TYPE, "only holds other modules");
    cfx_call(s, net(s), x, x);
    check_fails(s, CFX_E_VALUE, "Net takes 1 input (x), not 2");
    cfx_trace(s, net(s), .shapes = "x=float32[N, 4]");
    check_fails(s, CFX_E_SHAPE, "linear");
    cfx_trace(s, net(s), .shapes = "y=float32[N, 4]");
    check_fails(s, CFX_E_KEY, "there is no input 'y' (inputs: x)");
    cfx_transform(s, cfx_trace(s, net(s)), "dce,nosuch");
    check_fails(s, CFX_E_KEY, "there is no pass 'nosuch'");
    cfx_scope_free(s);
}

TEST(a_tree_has_no_cycles_and_no_name_twice)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *a = cfx_module_new(s, NULL);
    cfx_module *b = cfx_module_add(s, a, "b", cfx_module_new(s, NULL));
    cfx_module_add(s, b, "a", a);
    check_fails(s, CFX_E_VALUE, "would contain itself");
    cfx_module_add(s, a, "b", cfx_module_new(s, NULL));
    check_fails(s, CFX_E_KEY, "already has a member 'b'");
    cfx_module_add(s, a, "c.d", cfx_module_new(s, NULL));
    check_fails(s, CFX_E_VALUE, "is not a valid name");
    cfx_module_set(s, a, "eps", 1e-5);
    CHECK(cfx_module_attribute(a, "eps").as.f == 1e-5);
    CHECK(cfx_module_child(a, "nosuch") == NULL);
    cfx_scope_free(s);
}

TEST(classes_are_checked)
{
    static const cfx_class bad[] = {
        {.name = "B C", .forward = net_forward},
        {.forward = net_forward},
        {.name = "None"},
    };
    static const char *const words[] = {"be an identifier, not 'B C'", "be an identifier, not ''",
                                        "forward_n, not 0"};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(cfx_module_new(s, &bad[i]) == NULL);
        check_fails(s, CFX_E_VALUE, words[i]);
    }
    cfx_scope_free(s);
}

/* ---- a loop that never ends ---------------------------------------------------------------- */

static cfx_var always(cfx_scope *s, void *ctx, const cfx_var *in)
{
    (void)s;
    (void)ctx;
    (void)in;
    return cfx_v(true);
}

static bool after_a_thousand(void *ctx) { return ++*(int *)ctx > 1000; }

TEST(a_loop_that_never_ends_is_interrupted)
{
    int asked = 0;
    const cfx_runtime_options options = {.interrupted = after_a_thousand,
                                         .interrupted_ctx = &asked};
    cfx_runtime *rt = cfx_runtime_new(&options, NULL);
    const cfx_scope_options with = {.runtime = rt};
    cfx_scope *s = cfx_scope_new(&with, NULL);
    cfx_while(s, always, one_value, NULL, cfx_ones(s, cfx_ints(s, 2)));
    check_fails(s, CFX_E_INTERRUPTED, "interrupted");
    CHECK(cfx_scope_mark(s) < 10);
    cfx_scope_free(s);
    cfx_runtime_free(rt);
}

/* A program that did not look whether it has a scope gets nothing, and no crash. */
TEST(without_a_scope_nothing_happens)
{
    CHECK(!cfx_scope_ok(NULL));
    CHECK_STR_EQ("the scope is NULL", cfx_scope_error(NULL)->message);
    cfx_module *m = cfx_module_new(NULL, NULL);
    cfx_var y = cfx_call(NULL, m, cfx_relu(NULL, cfx_randn(NULL, cfx_ints(NULL, 2))));
    CHECK_INT_EQ(CFX_VAR_EMPTY, y.kind);
    CHECK_INT_EQ(CFX_VAR_EMPTY, cfx_scope_reset(NULL, cfx_scope_mark(NULL), cfx_v(1)).kind);
    CHECK(!m && !cfx_trace(NULL, m) && !cfx_scope_runtime(NULL) && !cfx_scope_allocator(NULL));
    cfx_transform(NULL, m, "dce");
    cfx_scope_clear_error(NULL);
    cfx_scope_free(NULL);
}

TEST(a_list_without_integers_is_an_error)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_zeros(s, cfx_var_ints(s, NULL, 2));
    check_fails(s, CFX_E_VALUE, "got NULL for 2 integers");
    CHECK_INT_EQ(0, cfx_var_ndim(s, cfx_zeros(s, cfx_var_ints(s, NULL, 0))));
    cfx_scope_free(s);
}

/* ---- memory that runs out ------------------------------------------------------------------ */

static void everything(cfx_scope *s, const cfx_allocator *a)
{
    (void)a;
    cfx_module *t = cfx_trace(s, net(s), .shapes = "x=float32[N, 3]");
    cfx_transform(s, t, "dce");
    cfx_call(s, t, input(s));
    cfx_call(s, cfx_trace(s, flow(s)), cfx_ones(s, cfx_ints(s, 2)));
    t = cfx_trace(s, layers(s));
    cfx_transform(s, t, "fuse_bn");
    cfx_call(s, t, cfx_ones(s, cfx_ints(s, 1, 3, 2, 2)));
    cfx_state *state = cfx_module_state(s, t);
    cfx_module_load_state(s, t, state, 0);
    cfx_state_free(state);
}

TEST(memory_may_run_out_anywhere) { scope_oom_sweep(everything); }
