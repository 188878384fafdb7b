/* c_door.c - what a C program does first: mistakes are named, files are written and read, one place
 * has the error. */
#include "scope_test.h"

#include <cfx/cfx.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void check_fails(cfx_scope *s, cfx_status status, const char *message)
{
    CHECK_INT_EQ(status, cfx_scope_error(s)->status);
    if (!CHECK(strstr(cfx_scope_error(s)->message, message) != NULL))
        printf("    got  %s\n", cfx_scope_error(s)->message);
    cfx_scope_clear_error(s);
}

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_softmax(s, cfx_relu(s, cfx_call_child(s, self, "fc1", x)), -1);
}

static cfx_var wrong_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_call_child(s, self, "fc7", x);
}

static const cfx_class net_class = {.name = "Net", .inputs = "x", .forward = forward};
static const cfx_class wrong_class = {.name = "Wrong", .inputs = "x", .forward = wrong_forward};

static cfx_module *make(cfx_scope *s, const cfx_class *type)
{
    cfx_module *m = cfx_module_new(s, type);
    cfx_module_add(s, m, "fc1", cfx_nn_linear(s, 4, 3));
    cfx_module_train(m, false);
    return m;
}

static cfx_var pattern_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    return cfx_softmax(s, cfx_relu(s, x), -1);
}

static cfx_var replacement_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    return cfx_mul(s, cfx_gelu(s, x), 2);
}

TEST(a_missing_child_is_named)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_var x = cfx_ones(s, cfx_ints(s, 2, 4));
    cfx_module *m = make(s, &wrong_class);
    cfx_call(s, m, x);
    CHECK(strstr(cfx_scope_error(s)->message, "c_door.c:26: ") != NULL);  /* in wrong_forward */
    check_fails(s, CFX_E_KEY, "Wrong has no child 'fc7'; did you mean 'fc1'?");
    cfx_module *outer = cfx_module_new(s, NULL);
    cfx_module_add(s, outer, "net", m);
    cfx_call_child(s, outer, "net.fc2", x);
    check_fails(s, CFX_E_KEY, "has no child 'net.fc2'; did you mean 'net.fc1'?");
    cfx_call_child(s, outer, "body.fc2", x);
    check_fails(s, CFX_E_KEY, "has no child 'body.fc2'");
    cfx_call_child(s, NULL, "fc1", x);
    check_fails(s, CFX_E_VALUE, "got NULL for the module");
    cfx_call(s, cfx_module_child(m, "fc9"), x);
    check_fails(s, CFX_E_VALUE, "cfx_call_child names it");
    cfx_scope_free(s);
}

/* What an options struct holds is the scope's: it does not dangle behind its block. */
TEST(lists_outlive_their_block)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_var x = cfx_ones(s, cfx_ints(s, 2, 3, 4));
    cfx_sum_args o = {.keepdim = cfx_v(true)};
    for (int64_t i = 0; i < 2; i++) {
        const int64_t dims[] = {i, i + 1};
        if (i == 1)
            o.dim = cfx_var_ints(s, dims, 2);
    }
    cfx_var y = cfx_sum_at(CFX_HERE(s), x, o);
    CHECK_INT_EQ(2, cfx_var_size(s, y, 0));
    CHECK_INT_EQ(1, cfx_var_size(s, y, 1));
    CHECK_INT_EQ(1, cfx_var_size(s, y, 2));
    CHECK(cfx_scope_ok(s));
    cfx_scope_free(s);
}

TEST(modules_can_be_dropped_early)
{
    test_alloc ta;
    cfx_allocator a = test_alloc_init(&ta);
    const cfx_scope_options options = {.allocator = &a, .threads = 1};
    cfx_scope *s = cfx_scope_new(&options, NULL);
    cfx_var x = cfx_ones(s, cfx_ints(s, 2, 4));
    cfx_module *m = make(s, &net_class);
    const size_t mark = cfx_scope_mark(s);
    size_t after_ten = 0;
    for (int i = 0; i < 100; i++) {
        cfx_module *t = cfx_trace(s, m);
        cfx_call(s, t, x);
        cfx_module_drop(s, t);
        cfx_scope_reset(s, mark, cfx_var_empty());
        if (i == 10)
            after_ten = ta.live_bytes;
    }
    CHECK(cfx_scope_ok(s));
    CHECK_INT_EQ((int64_t)after_ten, (int64_t)ta.live_bytes);
    CHECK(cfx_var_size(s, cfx_call(s, m, x), 1) == 3);  /* what it was traced from is still there */
    cfx_module_drop(s, m);  /* with what is below it */
    cfx_module_drop(s, NULL);
    CHECK(cfx_scope_ok(s));
    cfx_module_drop(s, m);
    check_fails(s, CFX_E_VALUE, "was not made in this scope, or has been dropped");
    cfx_scope_free(s);
    test_alloc_check(&ta);
    cfx_scope *other = cfx_scope_new(NULL, NULL);
    s = cfx_scope_new(NULL, NULL);
    cfx_module_drop(other, make(s, &net_class));
    check_fails(other, CFX_E_VALUE, "the module was not made in this scope");
    m = make(other, &net_class);
    cfx_module_drop(other, m);
    cfx_module_drop(other, m);
    check_fails(other, CFX_E_VALUE, "or has been dropped");
    cfx_scope_free(other);
    cfx_scope_free(s);
}

static cfx_var leaf_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    (void)self;
    return cfx_relu(s, x);
}

static cfx_var outer_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_relu(s, cfx_call_child(s, self, "leaf", cfx_call_child(s, self, "fc1", x)));
}

/* What tracing, writing, reading and replacing make on the way does not stay in the scope. */
TEST(loops_do_not_grow)
{
    static const cfx_class leaf = {.name = "Leaf", .forward = leaf_forward, .leaf = true};
    static const cfx_class outer = {.name = "Outer", .forward = outer_forward};
    static const cfx_class relu = {.name = "Relu", .forward = leaf_forward};
    test_alloc ta;
    cfx_allocator a = test_alloc_init(&ta);
    const cfx_scope_options options = {.allocator = &a, .threads = 1};
    cfx_scope *s = cfx_scope_new(&options, NULL);
    cfx_module *m = make(s, &outer);
    cfx_module *pattern = cfx_module_new(s, &relu);
    cfx_module_add(s, m, "leaf", cfx_module_new(s, &leaf));
    char path[80];
    char weights[80];
    size_t after_three = 0;
    snprintf(path, sizeof path, "/tmp/cfx_loops_%d.ir", (int)getpid());
    snprintf(weights, sizeof weights, "/tmp/cfx_loops_%d.safetensors", (int)getpid());
    for (int i = 0; i < 10; i++) {
        cfx_module *t = cfx_trace(s, m);
        CHECK_INT_EQ(1, (int64_t)cfx_replace_pattern(s, t, pattern, pattern));
        cfx_module_write(s, t, path);
        cfx_module_drop(s, cfx_module_read(s, path));
        cfx_module_drop(s, t);
        if (i == 2)
            after_three = ta.live_bytes;
    }
    CHECK(cfx_scope_ok(s));
    CHECK_INT_EQ((int64_t)after_three, (int64_t)ta.live_bytes);
    remove(path);
    remove(weights);
    cfx_scope_free(s);
    test_alloc_check(&ta);
}

/* What a call makes on the way to its result is gone with it. */
TEST(reading_and_replacing_leave_nothing)
{
    static const cfx_class pattern = {.name = "Pattern", .forward = pattern_forward};
    static const cfx_class replacement = {.name = "New", .forward = replacement_forward};
    static const char source[] = "from torch import nn\nclass M(nn.Module):\n"
                                 "    def __init__(self):\n        super().__init__()\n"
                                 "        self.fc = nn.Linear(4, 4)\n"
                                 "    def forward(self, x): return self.fc(x)\n";
    test_alloc ta;
    cfx_allocator a = test_alloc_init(&ta);
    const cfx_scope_options options = {.allocator = &a, .threads = 1};
    cfx_scope *s = cfx_scope_new(&options, NULL);
    char path[80];
    char weights[80];
    snprintf(path, sizeof path, "/tmp/cfx_c_door_loop_%d.ir", (int)getpid());
    snprintf(weights, sizeof weights, "/tmp/cfx_c_door_loop_%d.safetensors", (int)getpid());
    cfx_module_write(s, make(s, &net_class), path);
    cfx_module *from = cfx_module_new(s, &pattern);
    cfx_module *to = cfx_module_new(s, &replacement);
    const size_t mark = cfx_scope_mark(s);
    size_t after_ten = 0;
    for (int i = 0; i < 30; i++) {
        cfx_module *m = cfx_module_read(s, path);
        CHECK_INT_EQ(1, (int64_t)cfx_replace_pattern(s, m, from, to));
        cfx_module_drop(s, m);
        cfx_module_drop(s, make(s, &net_class));
        cfx_module_drop(s, cfx_script_model(s, source, sizeof source - 1, "m.py"));
        cfx_scope_reset(s, mark, cfx_var_empty());
        if (i == 10)
            after_ten = ta.live_bytes;
    }
    if (!CHECK(cfx_scope_ok(s)))
        printf("    got  %s\n", cfx_scope_error(s)->message);
    CHECK_INT_EQ((int64_t)after_ten, (int64_t)ta.live_bytes);
    remove(path);
    remove(weights);
    cfx_scope_free(s);
    test_alloc_check(&ta);
}

/* Numbers among variables are variables: C would take them for members of a struct. */
TEST(numbers_in_lists_are_variables)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    cfx_var x = cfx_ones(s, cfx_ints(s, 1));
    cfx_var all = cfx_tuple(s, x, 3, 4.5, "a", cfx_tuple(s, 0), cfx_tuple(s), cfx_list(s, x, 7));
    cfx_var_print(s, all, cfx_buffer_sink(&text));
    CHECK_STR_EQ("(tensor([1.]), 3, 4.5, 'a', (0,), (), [tensor([1.]), 7])", text.data);
    cfx_buffer_free(&text);
    cfx_scope_free(s);
}

/* The lists of options.h, by which the compiler counts. */
#define EIGHT(x) x, x, x, x, x, x, x, x
#define LENGTH(...) (sizeof((cfx_var[]){CFX_EACH_VAR(__VA_ARGS__)}) / sizeof(cfx_var))
_Static_assert(CFX_COUNT_VARS(1) == 1, "one variable");
_Static_assert(CFX_COUNT_VARS(EIGHT(EIGHT(1))) == 64, "64 variables");
_Static_assert(CFX_COUNT_VARS(EIGHT(EIGHT(1)), EIGHT(EIGHT(1)), EIGHT(EIGHT(1)),
                              EIGHT(EIGHT(1))) == 256, "256 variables");

TEST(lists_are_counted)
{
    static const int counts[] = {CFX_VAR_COUNTS};
    CHECK_INT_EQ(1, LENGTH(1));
    CHECK_INT_EQ(9, LENGTH(EIGHT(1), 1));
    CHECK_INT_EQ(32, LENGTH(EIGHT(1), EIGHT(1), EIGHT(1), EIGHT(1)));
    CHECK_INT_EQ(256, sizeof counts / sizeof *counts);
    for (int i = 0; i < 256; i++)
        CHECK_INT_EQ(256 - i, counts[i]);
}

/* Options are checked in the order of CFX_CHECK_OPTION_16 to CFX_CHECK_OPTION_1. */
TEST(options_are_counted)
{
    typedef struct wide {
        int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
    } wide;
    const wide all = CFX_OPTIONS(wide, .a = 1, .b = 2, .c = 3, .d = 4, .e = 5, .f = 6, .g = 7,
                                 .h = 8, .i = 9, .j = 10, .k = 11, .l = 12, .m = 13, .n = 14,
                                 .o = 15, .p = 16);
    const wide one = CFX_OPTIONS(wide, .p = 16);
    CHECK(all.a == 1 && all.i == 9 && all.p == 16 && one.a == 0 && one.p == 16);
}

TEST(inputs_and_forward_agree)
{
    static const cfx_class two = {.name = "Two", .inputs = "x, y", .forward = forward};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module_new(s, &two);
    check_fails(s, CFX_E_VALUE, "class Two names 2 inputs (\"x, y\"), but its forward takes 1");
    cfx_scope_free(s);
}

TEST(transforms_take_options_and_suggest_names)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *t = cfx_trace(s, make(s, &net_class));
    cfx_transform(s, t, "unroll=4, dce:like_torch_fx=0,unroll:max_turns=2:max_nodes=9");
    CHECK(cfx_scope_ok(s));
    cfx_transform(s, t, "fuse_nb");
    check_fails(s, CFX_E_KEY, "there is no pass 'fuse_nb'; did you mean fuse_bn?");
    cfx_transform(s, t, "unroll:limit=4");
    check_fails(s, CFX_E_KEY, "the pass unroll has no option 'limit'; it has max_turns, max_nodes");
    cfx_transform(s, t, "dce:like_torch_fx=2");
    check_fails(s, CFX_E_VALUE, "the option like_torch_fx of the pass dce is a flag (0 or 1)");
    cfx_transform(s, t, "dce,");
    check_fails(s, CFX_E_SYNTAX, "the list of passes ends with a comma");
    cfx_transform(s, t, "");
    CHECK(cfx_scope_ok(s));
    cfx_scope_free(s);
}

TEST(a_dtype_is_not_a_word_or_a_number)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_zeros(s, cfx_ints(s, 2), .dtype = cfx_v("int64"));
    check_fails(s, CFX_E_TYPE, "argument 'dtype' must be ScalarType?, not str");
    cfx_zeros(s, cfx_ints(s, 2), .dtype = cfx_v(CFX_DTYPE_INT64));
    check_fails(s, CFX_E_TYPE, "argument 'dtype' must be ScalarType?, not int");
    cfx_scope_free(s);
}

TEST(a_pattern_is_replaced_in_one_call)
{
    static const cfx_class pattern = {.name = "Pattern", .forward = pattern_forward};
    static const cfx_class replacement = {.name = "New", .forward = replacement_forward};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = make(s, &net_class);
    cfx_module *t = cfx_trace(s, m);
    cfx_module *from = cfx_module_new(s, &pattern);
    cfx_module *to = cfx_module_new(s, &replacement);
    CHECK_INT_EQ(1, (int64_t)cfx_replace_pattern(s, t, from, to));
    CHECK_INT_EQ(0, (int64_t)cfx_replace_pattern(s, t, from, to));
    cfx_var x = cfx_ones(s, cfx_ints(s, 2, 4));
    cfx_var want = cfx_mul(s, cfx_gelu(s, cfx_call_child(s, m, "fc1", x)), 2);
    CHECK(cfx_var_number(s, cfx_max(s, cfx_abs(s, cfx_sub(s, cfx_call(s, t, x), want)))) < 1e-6);
    CHECK(cfx_scope_ok(s));
    cfx_replace_pattern(s, m, from, to);
    check_fails(s, CFX_E_VALUE, "needs a captured module; call cfx_trace first");
    cfx_replace_pattern(s, t, NULL, to);
    check_fails(s, CFX_E_VALUE, "got NULL for the pattern");
    cfx_scope_free(s);
}

static cfx_var scaled_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    return cfx_call_child(s, self, "parts.fc2", cfx_mul(s, x, cfx_module_param(s, self, "scale")));
}

TEST(a_replacement_brings_its_parts)
{
    static const cfx_class pattern = {.name = "Pattern", .forward = pattern_forward};
    static const cfx_class scaled = {.name = "Scaled", .forward = scaled_forward};
    cfx_error err = {0};
    const int64_t sizes[] = {3};
    const float values[] = {1, 2, 3};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = make(s, &net_class);
    cfx_module *t = cfx_trace(s, m);
    cfx_module *to = cfx_module_new(s, &scaled);
    cfx_tensor *scale = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, 1, NULL, &err);
    REQUIRE(scale != NULL);
    memcpy(cfx_tensor_data(scale), values, sizeof values);
    cfx_module_add_parameter(s, to, "scale", scale);
    cfx_module_add(s, cfx_module_add(s, to, "parts", cfx_module_new(s, NULL)), "fc2",
                   cfx_nn_linear(s, 3, 5));
    CHECK_INT_EQ(1, (int64_t)cfx_replace_pattern(s, t, cfx_module_new(s, &pattern), to));
    cfx_var x = cfx_ones(s, cfx_ints(s, 2, 4));
    cfx_var want = cfx_call(s, to, cfx_call_child(s, m, "fc1", x));
    CHECK(cfx_var_number(s, cfx_max(s, cfx_abs(s, cfx_sub(s, cfx_call(s, t, x), want)))) < 1e-6);
    if (!CHECK(cfx_scope_ok(s)))
        printf("    got  %s\n", cfx_scope_error(s)->message);
    cfx_tensor_release(scale);
    cfx_scope_free(s);
}

TEST(one_place_has_the_error)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_sink nowhere = {0};
    cfx_module *t = cfx_trace(s, make(s, &net_class));
    cfx_graph_text(cfx_module_graph(t), nowhere, cfx_scope_err(s));
    CHECK(!cfx_scope_ok(s));
    cfx_state_load("/no/such/file", NULL, cfx_scope_err(s));
    check_fails(s, CFX_E_VALUE, "the sink has no write function");  /* the first reason */
    cfx_state_load("/no/such/file", NULL, cfx_scope_err(s));
    check_fails(s, CFX_E_IO, "/no/such/file");
    CHECK(cfx_scope_err(NULL) == NULL);
    CHECK(!cfx_tensor_load(NULL, NULL, cfx_scope_err(s)));
    check_fails(s, CFX_E_VALUE, "the path is NULL");
    CHECK(cfx_tensor_save(cfx_var_tensor(s, cfx_ones(s, cfx_ints(s, 1))), NULL, cfx_scope_err(s)));
    check_fails(s, CFX_E_VALUE, "the path is NULL");
    CHECK(!cfx_library_new(NULL, 1, NULL, NULL, cfx_scope_err(s)));
    check_fails(s, CFX_E_VALUE, "the array of rows is NULL");
    CHECK(!cfx_matches_find(cfx_module_graph(t), NULL, 1, NULL, cfx_scope_err(s)));
    check_fails(s, CFX_E_VALUE, "the array of patterns is NULL");
    CHECK(!cfx_pass_find(NULL));
    const cfx_pass empty = {.name = "mine"};
    cfx_pass_run(&empty, cfx_module_graph(t), NULL, NULL, NULL, cfx_scope_err(s));
    check_fails(s, CFX_E_VALUE, "the pass mine has no function");
    cfx_scope_free(s);
}

TEST(a_module_is_written_and_read)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = make(s, &net_class);
    cfx_var x = cfx_ones(s, cfx_ints(s, 2, 4));
    char path[80];
    char weights[80];
    snprintf(path, sizeof path, "/tmp/cfx_c_door_%d.ir", (int)getpid());
    snprintf(weights, sizeof weights, "/tmp/cfx_c_door_%d.safetensors", (int)getpid());
    cfx_module_write(s, m, path);
    cfx_module *again = cfx_module_read(s, path);
    cfx_var off = cfx_sub(s, cfx_call(s, m, x), cfx_call(s, again, x));
    CHECK(cfx_var_number(s, cfx_max(s, cfx_abs(s, off))) == 0);
    if (!CHECK(cfx_scope_ok(s)))
        printf("    got  %s\n", cfx_scope_error(s)->message);
    cfx_module_write(s, cfx_trace(s, m), path);  /* a captured one, over the file that is there */
    CHECK(cfx_scope_ok(s));
    remove(weights);
    cfx_module_read(s, path);
    check_fails(s, CFX_E_IO, weights);
    FILE *broken = fopen(path, "w");
    REQUIRE(broken && fputs("graph {\n  nonsense\n", broken) >= 0 && fclose(broken) == 0);
    cfx_module_read(s, path);
    check_fails(s, CFX_E_SYNTAX, path);
    remove(path);
    cfx_module_read(s, path);
    check_fails(s, CFX_E_IO, path);
    cfx_module_write(s, m, "/no/such/folder/m.ir");
    check_fails(s, CFX_E_IO, "/no/such/folder");
    cfx_module_write(s, NULL, path);
    check_fails(s, CFX_E_VALUE, "got NULL for the module");
    cfx_module_write(s, m, "/tmp/w.safetensors");
    check_fails(s, CFX_E_VALUE, "'/tmp/w.safetensors' is not a name for a model");
    cfx_module_write(s, m, "");
    check_fails(s, CFX_E_VALUE, "'' is not a name for a model");
    cfx_scope_free(s);
}

TEST(containers_print_their_tensors)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    cfx_var x = cfx_ones(s, cfx_ints(s, 2));
    cfx_var pair = cfx_tuple(s, x, cfx_list(s, cfx_v(1), x), cfx_dict(s, cfx_v("a"), x));
    cfx_var_print(s, pair, cfx_buffer_sink(&text));
    CHECK_STR_EQ("(tensor([1., 1.]), [1, tensor([1., 1.])], {'a': tensor([1., 1.])})", text.data);
    cfx_buffer_free(&text);
    cfx_var_print(s, cfx_tuple(s, x), cfx_buffer_sink(&text));
    CHECK_STR_EQ("(tensor([1., 1.]),)", text.data);
    cfx_buffer_free(&text);
    cfx_scope_free(s);
}

TEST(a_module_in_one_file)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_error err = {0};
    cfx_module *m = make(s, &net_class);
    cfx_module_train(m, false);
    cfx_var x = cfx_ones(s, cfx_ints(s, 2, 4));
    char path[80];
    snprintf(path, sizeof path, "/tmp/cfx_c_door_%d.cfx", (int)getpid());
    cfx_module_write(s, m, path);
    cfx_module *again = cfx_module_read(s, path);
    CHECK(!cfx_module_is_training(again));
    cfx_var off = cfx_sub(s, cfx_call(s, m, x), cfx_call(s, again, x));
    CHECK(cfx_var_number(s, cfx_max(s, cfx_abs(s, off))) == 0);
    if (!CHECK(cfx_scope_ok(s)))
        printf("    got  %s\n", cfx_scope_error(s)->message);
    cfx_package *p = cfx_package_load(path, NULL, &err);
    REQUIRE(p != NULL);
    cfx_module *third = cfx_module_from_package(s, p);
    cfx_package_free(p);  /* the module keeps what it needs */
    off = cfx_sub(s, cfx_call(s, m, x), cfx_call(s, third, x));
    CHECK(cfx_var_number(s, cfx_max(s, cfx_abs(s, off))) == 0);
    const cfx_package_contents empty = {.model = "M", .weights = cfx_module_state(s, m)};
    CHECK_INT_EQ(CFX_OK, cfx_package_save(path, &empty, &err));
    cfx_module_read(s, path);
    check_fails(s, CFX_E_VALUE, "the file has no entry module.ir");
    cfx_state_free((cfx_state *)(uintptr_t)empty.weights);
    remove(path);
    cfx_module_read(s, path);
    check_fails(s, CFX_E_IO, path);
    cfx_scope_free(s);
}

TEST(a_module_as_the_parts_of_a_file)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_error err = {0};
    cfx_buffer graph;
    cfx_buffer modules;
    cfx_buffer_init(&graph, NULL);
    cfx_buffer_init(&modules, NULL);
    cfx_module *m = cfx_trace(s, make(s, &net_class));
    cfx_state *weights = cfx_state_new(NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_module_describe(m, cfx_buffer_sink(&graph), cfx_buffer_sink(&modules),
                                             weights, &err));
    CHECK(strstr(graph.data, "call_module") != NULL);
    CHECK(strstr(modules.data, "torch.nn.Linear") != NULL);
    CHECK(cfx_state_size(weights) > 0);
    cfx_buffer_free(&graph);
    cfx_buffer_free(&modules);
    cfx_state_free(weights);
    cfx_scope_free(s);
}

TEST(a_module_of_a_graph_and_its_weights)
{
    static const char text[] = "graph():\n  %x = placeholder[target=x]()\n"
                               "  %w = get_attr[target=w]()\n"
                               "  %add = call_function[target=torch.add](%x, %w)\n"
                               "  output(%add)\n";
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_parse(text, sizeof text - 1, NULL, NULL, &err);
    REQUIRE(g != NULL);
    cfx_state *weights = cfx_state_new(NULL, &err);
    const int64_t sizes[] = {2};
    float two[] = {2, 2};
    cfx_tensor *w = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, NULL, 1, two, true, NULL, NULL,
                                           NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_state_set(weights, "w", w, &err));
    cfx_module *m = cfx_module_from_weights(s, g, "Net", weights);
    cfx_tensor_release(w);
    cfx_state_free(weights);
    cfx_graph_release(g);
    cfx_var y = cfx_call(s, m, cfx_ones(s, cfx_ints(s, 2)));
    CHECK(cfx_var_number(s, cfx_sum(s, y)) == 6);
    CHECK_STR_EQ("Net", cfx_module_class_name(m));
    cfx_scope_free(s);
}

TEST(a_file_is_a_sink)
{
    FILE *file = tmpfile();
    char line[16] = "";
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    if (!CHECK(file != NULL))
        return;
    CHECK_INT_EQ(CFX_OK, cfx_var_print(s, cfx_ones(s, cfx_ints(s, 1)), cfx_file_sink(file)));
    rewind(file);
    CHECK(fgets(line, sizeof line, file) != NULL);
    CHECK_STR_EQ("tensor([1.])", line);
    fclose(file);
    cfx_var_print(s, cfx_v(1), cfx_file_sink(NULL));
    check_fails(s, CFX_E_IO, "writing");
    cfx_scope_free(s);
}

/* ---- memory -------------------------------------------------------------------------------- */

static void everything(cfx_scope *s, const cfx_allocator *a)
{
    static const cfx_class pattern = {.name = "Pattern", .forward = pattern_forward};
    static const cfx_class replacement = {.name = "New", .forward = replacement_forward};
    (void)a;
    cfx_module *t = cfx_trace(s, make(s, &net_class));
    cfx_replace_pattern(s, t, cfx_module_new(s, &pattern), cfx_module_new(s, &replacement));
    cfx_module_drop(s, t);
}

TEST(memory_may_run_out_anywhere)
{
    CHECK(scope_oom_sweep(everything) > 20);
}
