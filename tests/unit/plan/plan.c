/* plan.c - planned programs against the interpreter: fusion, layouts, memory, what has no plan. */
#include "plan/plan_impl.h"

#include "plan_fixture.h"
#include "test_alloc.h"

#include <pthread.h>

/* A block of a residual network, with a shortcut that has a convolution of its own. */
static const char block[] =
    "graph():\n"
    "  %x = placeholder[target=x]()\n"
    "  %w1 = get_attr[target=w1]()\n"
    "  %w2 = get_attr[target=w2]()\n"
    "  %w3 = get_attr[target=w3]()\n"
    "  %gamma = get_attr[target=gamma]()\n"
    "  %beta = get_attr[target=beta]()\n"
    "  %mean = get_attr[target=mean]()\n"
    "  %var = get_attr[target=var]()\n"
    "  %c1 = call_function[target=cfx.ops.conv2d](%x, %w1, None, [1, 1], [1, 1])\n"
    "  %b1 = call_function[target=cfx.ops.batch_norm](%c1, %gamma, %beta, %mean, %var, False)\n"
    "  %r1 = call_function[target=cfx.ops.relu](%b1)\n"
    "  %c2 = call_function[target=cfx.ops.conv2d](%r1, %w2, %beta)\n"
    "  %c3 = call_function[target=cfx.ops.conv2d](%x, %w3)\n"
    "  %b3 = call_function[target=cfx.ops.batch_norm](%c3, %gamma, %beta, %mean, %var, False)\n"
    "  %sum = call_function[target=cfx.ops.add](%c2, %b3)\n"
    "  %r2 = call_function[target=cfx.ops.relu](%sum)\n"
    "  %p = call_function[target=cfx.ops.max_pool2d](%r2, [3, 3], [2, 2], [1, 1])\n"
    "  %y = call_function[target=cfx.ops.silu](%p)\n"
    "  output(%y)\n";

static cfx_state *block_weights(void)
{
    cfx_state *s = cfx_state_new(NULL, NULL);
    WEIGHT(s, "w1", 20, 3, 3, 3);
    WEIGHT(s, "w2", 20, 20, 1, 1);
    WEIGHT(s, "w3", 20, 3, 1, 1);
    WEIGHT(s, "w4", 10, 10, 1, 1);
    WEIGHT(s, "gamma", 20);
    WEIGHT(s, "beta", 20);
    WEIGHT(s, "mean", 20);
    WEIGHT(s, "var", 20);
    return s;
}

TEST(a_residual_block_is_seven_steps)
{
    static const int64_t sizes[] = {2, 3, 9, 13};
    cfx_state *weights = block_weights();
    /* the image turned, three convolutions, the pool, the function, the result turned back */
    CHECK_INT_EQ(7, (int)check_plan(block, weights, sizes, 4));
    cfx_state_free(weights);
}

/* A picture is not turned first; what a pool has found of each channel is a part of the product. */
TEST(what_comes_before_is_part_of_a_convolution)
{
    static const int64_t sizes[] = {2, 3, 8, 9};
    static const char begin[] =
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %w1 = get_attr[target=w1]()\n"
        "  %w2 = get_attr[target=w2]()\n"
        "  %c = call_function[target=cfx.ops.conv2d](%x, %w1)\n"
        "  %p = call_function[target=cfx.ops.adaptive_avg_pool2d](%c, 1)\n"
        "  %s = call_function[target=cfx.ops.sigmoid](%p)\n"
        "  %m = call_function[target=cfx.ops.mul](%s, %c)\n"
        "  %d = call_function[target=cfx.ops.conv2d](%m, %w2)\n";
    cfx_state *weights = block_weights();
    char text[sizeof begin + 40];
    snprintf(text, sizeof text, "%s  output(%%d)\n", begin);
    /* two convolutions, the pool, the function, the result turned back */
    CHECK_INT_EQ(5, (int)check_plan(text, weights, sizes, 4));
    snprintf(text, sizeof text, "%s  output((%%d, %%m))\n", begin);
    /* somebody else reads the product: it stays, and is turned back */
    CHECK_INT_EQ(7, (int)check_plan(text, weights, sizes, 4));
    cfx_state_free(weights);
}

/* Before a convolution of single pixels, a norm and a relu are a part of it; not where another step
 * reads what they give. */
TEST(a_norm_before_a_convolution)
{
    static const int64_t sizes[] = {2, 20, 5, 6};
    static const char *const ends[] = {"output(%d)", "output((%d, %r))", "output((%d, %b))"};
    static const int steps[] = {4, 7, 7};  /* the image turned, two convolutions, turned back */
    cfx_state *weights = block_weights();
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char text[1000];
        snprintf(text, sizeof text,
                 "graph():\n"
                 "  %%x = placeholder[target=x]()\n"
                 "  %%w2 = get_attr[target=w2]()\n"
                 "  %%gamma = get_attr[target=gamma]()\n"
                 "  %%beta = get_attr[target=beta]()\n"
                 "  %%mean = get_attr[target=mean]()\n"
                 "  %%var = get_attr[target=var]()\n"
                 "  %%c = call_function[target=cfx.ops.conv2d](%%x, %%w2)\n"
                 "  %%s = call_function[target=cfx.ops.silu](%%c)\n"
                 "  %%b = call_function[target=cfx.ops.batch_norm](%%s, %%gamma, %%beta, %%mean, "
                 "%%var, False)\n"
                 "  %%r = call_function[target=cfx.ops.relu](%%b)\n"
                 "  %%d = call_function[target=cfx.ops.conv2d](%%r, %%w2)\n"
                 "  %s\n", ends[i]);
        CHECK_INT_EQ(steps[i], (int)check_plan(text, weights, sizes, 4));
    }
    cfx_state_free(weights);
}

TEST(what_keeps_the_layout_of_images)
{
    static const int64_t sizes[] = {1, 3, 7, 6};
    cfx_state *weights = block_weights();
    /* five that compute, the result turned back; a size needs no layout */
    CHECK_INT_EQ(6, (int)check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %w1 = get_attr[target=w1]()\n"
        "  %w2 = get_attr[target=w2]()\n"
        "  %c = call_function[target=cfx.ops.conv2d](%x, %w1)\n"
        "  %n = call_function[target=cfx.ops.size](%c, 2)\n"
        "  %t = call_function[target=cfx.ops.conv_transpose2d](%c, %w2, None, [2, 2])\n"
        "  %p = call_function[target=cfx.ops.pad](%t, [1, 0, 0, 1])\n"
        "  %i = call_function[target=cfx.ops.interpolate](%p, [%n, %n], None, \"bilinear\")\n"
        "  %d = call_function[target=cfx.ops.conv2d](%i, %w2)\n"
        "  output(%d)\n", weights, sizes, 4));
    cfx_state_free(weights);
}

/* The number of steps for images whose channels are shuffled and divided, and what follows. */
static size_t check_shuffle(int images, const char *end, const cfx_state *weights)
{
    const int64_t sizes[] = {images, 3, 7, 6};
    char text[1200];
    snprintf(text, sizeof text,
             "graph():\n"
             "  %%x = placeholder[target=x]()\n"
             "  %%w1 = get_attr[target=w1]()\n"
             "  %%w4 = get_attr[target=w4]()\n"
             "  %%c = call_function[target=cfx.ops.conv2d](%%x, %%w1)\n"
             "  %%v = call_function[target=cfx.ops.view](%%c, [%d, 2, 10, 5, 4])\n"
             "  %%t = call_function[target=cfx.ops.transpose](%%v, 1, 2)\n"
             "  %%r = call_function[target=cfx.ops.reshape](%%t, [%d, 20, 5, 4])\n"
             "  %%k = call_function[target=cfx.ops.chunk](%%r, 2, 1)\n"
             "  %%a = call_function[target=cfx.ops.getitem](%%k, 0)\n"
             "  %%b = call_function[target=cfx.ops.getitem](%%k, 1)\n"
             "  %%d = call_function[target=cfx.ops.conv2d](%%b, %%w4)\n%s", images, images, end);
    return check_plan(text, weights, sizes, 4);
}

TEST(shuffled_channels)
{
    static const char *const ends[] = {
        "  %y = call_function[target=cfx.ops.cat]((%a, %d), 1)\n"
        "  output(%y)\n",
        "  output((%d, %k))\n",
        "  %y = call_function[target=cfx.ops.stack](%k, 1)\n"
        "  output((%d, %y))\n",
        "  %y = call_function[target=cfx.ops.softmax](%b, 1)\n"
        "  output((%d, %y, %r))\n",
    };
    cfx_state *weights = block_weights();
    for (int images = 1; images <= 2; images++) {
        /* a convolution, the shuffle, a convolution, the halves joined, turned back */
        CHECK_INT_EQ(5, (int)check_shuffle(images, ends[0], weights));
        /* the halves of one image are turned back; those of several cannot be, so all of it is
         * before the shuffle */
        CHECK_INT_EQ(6, (int)check_shuffle(images, ends[1], weights));
        CHECK_INT_EQ(7, (int)check_shuffle(images, ends[2], weights));
        CHECK_INT_EQ(7, (int)check_shuffle(images, ends[3], weights));
    }
    cfx_state_free(weights);
}

TEST(a_program_sees_its_own_layout)
{
    static const int64_t sizes[] = {1, 3, 6, 6};
    cfx_state *weights = block_weights();
    CHECK(check_plan("graph():\n"
                     "  %x = placeholder[target=x]()\n"
                     "  %w = get_attr[target=w1]()\n"
                     "  %c = call_function[target=cfx.ops.conv2d](%x, %w)\n"
                     "  %r = call_function[target=cfx.ops.relu](%c)\n"
                     "  %v = call_function[target=cfx.ops.view](%r, [1, 20, 16])\n"
                     "  %t = call_function[target=cfx.ops.transpose](%v, 1, 2)\n"
                     "  %s = call_function[target=cfx.ops.softmax](%t, -1)\n"
                     "  output(%s)\n", weights, sizes, 4) > 0);
    cfx_state_free(weights);
}

/* Convolutions over lines, of all forms that their arguments have. */
static const char lines[] =
    "graph():\n"
    "  %x = placeholder[target=x]()\n"
    "  %w1 = get_attr[target=w1]()\n"
    "  %w2 = get_attr[target=w2]()\n"
    "  %w3 = get_attr[target=w3]()\n"
    "  %b = get_attr[target=b]()\n"
    "  %c1 = call_function[target=cfx.ops.conv1d](%x, %w1, %b, [2], [1])\n"
    "  %t1 = call_function[target=cfx.ops.transpose](%c1, 1, 2)\n"
    "  %n1 = call_function[target=cfx.ops.layer_norm](%t1, [24])\n"
    "  %t2 = call_function[target=cfx.ops.transpose](%n1, 1, 2)\n"
    "  %c2 = call_function[target=cfx.ops.conv1d](%t2, %w2, %b, 1, \"same\", 2)\n"
    "  %r = call_function[target=cfx.ops.relu](%c2)\n"
    "  %c3 = call_function[target=cfx.ops.conv1d](%r, %w3, None, [3], 2, [1], 4)\n"
    "  output(%c3)\n";

static cfx_state *line_weights(void)
{
    cfx_state *s = cfx_state_new(NULL, NULL);
    WEIGHT(s, "w1", 24, 5, 3);
    WEIGHT(s, "w2", 24, 24, 3);
    WEIGHT(s, "w3", 24, 6, 4);
    WEIGHT(s, "b", 24);
    return s;
}

TEST(convolutions_over_lines)
{
    static const int64_t sizes[] = {2, 5, 41};
    cfx_state *weights = line_weights();
    /* the line turned, three convolutions, the norm, the function, the result turned back */
    CHECK_INT_EQ(7, (int)check_plan(lines, weights, sizes, 3));
    static const int64_t alone[] = {5, 41};  /* without a batch it is not planned so */
    CHECK(check_plan("graph():\n"
                     "  %x = placeholder[target=x]()\n"
                     "  %w = get_attr[target=w1]()\n"
                     "  %c = call_function[target=cfx.ops.conv1d](%x, %w)\n"
                     "  output(%c)\n", weights, alone, 2) == 1);
    cfx_state_free(weights);
}

TEST(layers_of_a_transformer)
{
    static const int64_t sizes[] = {2, 5, 12};
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "a", 40, 12);
    WEIGHT(weights, "b", 40);
    WEIGHT(weights, "c", 12, 40);
    WEIGHT(weights, "n", 12);
    CHECK_INT_EQ(3, (int)check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %a = get_attr[target=a]()\n"
        "  %b = get_attr[target=b]()\n"
        "  %c = get_attr[target=c]()\n"
        "  %n = get_attr[target=n]()\n"
        "  %norm = call_function[target=cfx.ops.layer_norm](%x, [12], %n, %n)\n"
        "  %h = call_function[target=cfx.ops.linear](%norm, %a, %b)\n"
        "  %g = call_function[target=cfx.ops.gelu](%h)\n"
        "  %o = call_function[target=cfx.ops.linear](%g, %c, %n)\n"
        "  %y = call_function[target=cfx.ops.add](%o, %x)\n"
        "  output(%y)\n", weights, sizes, 3));
    cfx_state_free(weights);
}

/* Functions that share an argument are one step, of the product that gives it. */
TEST(a_gelu_written_out_is_part_of_the_product)
{
    static const int64_t sizes[] = {5, 12};
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "a", 12, 40);
    WEIGHT(weights, "b", 40);
    CHECK_INT_EQ(1, (int)check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %a = get_attr[target=a]()\n"
        "  %b = get_attr[target=b]()\n"
        "  %m = call_function[target=cfx.ops.matmul](%x, %a)\n"
        "  %h = call_function[target=cfx.ops.add](%m, %b)\n"
        "  %p = call_function[target=cfx.ops.pow](%h, 3)\n"
        "  %c = call_function[target=cfx.ops.mul](%p, 0.044715)\n"
        "  %i = call_function[target=cfx.ops.add](%h, %c)\n"
        "  %k = call_function[target=cfx.ops.mul](%i, 0.797884)\n"
        "  %t = call_function[target=cfx.ops.tanh](%k)\n"
        "  %o = call_function[target=cfx.ops.add](%t, 1.0)\n"
        "  %d = call_function[target=cfx.ops.mul](%h, 0.5)\n"
        "  %y = call_function[target=cfx.ops.mul](%d, %o)\n"
        "  output(%y)\n", weights, sizes, 2));
    cfx_state_free(weights);
}

/* Operands that are broadcast, and strides of a view. */
TEST(a_chain_of_functions)
{
    static const int64_t sizes[] = {6, 40};
    CHECK_INT_EQ(2, (int)check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %m = call_function[target=cfx.ops.mean](%x, [1], True)\n"
        "  %s = call_function[target=cfx.ops.sub](%x, %m)\n"
        "  %t = call_function[target=cfx.ops.transpose](%x, 0, 1)\n"
        "  %u = call_function[target=cfx.ops.transpose](%t, 0, 1)\n"
        "  %e = call_function[target=cfx.ops.exp](%s)\n"
        "  %y = call_function[target=cfx.ops.mul](%e, %u)\n"
        "  %z = call_function[target=cfx.ops.relu](%y)\n"
        "  output(%z)\n", NULL, sizes, 2));
}

/* GPT-2 adds what a product gave through a view of it. */
TEST(a_sum_through_a_view_is_part_of_the_product)
{
    static const int64_t sizes[] = {2, 5, 12};
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "a", 12, 12);
    WEIGHT(weights, "b", 12);
    CHECK_INT_EQ(1, (int)check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %a = get_attr[target=a]()\n"
        "  %b = get_attr[target=b]()\n"
        "  %v = call_function[target=cfx.ops.view](%x, [10, 12])\n"
        "  %m = call_function[target=cfx.ops.addmm](%b, %v, %a)\n"
        "  %w = call_function[target=cfx.ops.view](%m, [2, 5, 12])\n"
        "  %y = call_function[target=cfx.ops.add](%w, %x)\n"
        "  output(%y)\n", weights, sizes, 3));
    cfx_state_free(weights);
}

/* A product with a number is one with a constant of one column, too. */
/* A function that reads other elements, too, of what another gives is not computed with it. */
TEST(functions_of_rows)
{
    static const int64_t sizes[] = {9, 9};
    static const char *const rows[] = {"select](%s, 0, 7)", "transpose](%s, 0, 1)",
                                       "narrow](%s, 1, 0, 1)"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[500];
        snprintf(text, sizeof text,
                 "graph():\n  %%x = placeholder[target=x]()\n"
                 "  %%s = call_function[target=cfx.ops.sigmoid](%%x)\n"
                 "  %%r = call_function[target=cfx.ops.%s\n"
                 "  %%d = call_function[target=cfx.ops.sub](%%r, %%s)\n"
                 "  %%y = call_function[target=cfx.ops.tanh](%%d)\n  output(%%y)\n", rows[i]);
        CHECK(check_plan(text, NULL, sizes, 2) > 1);
    }
}

/* They have one row in memory, however many there are. */
TEST(rows_that_are_repeated)
{
    static const int64_t sizes[] = {2, 1, 7};
    static const char *const shapes[] = {"[2, 5, 7]", "[2, 1, 7]", "[3, 2, 1, 7]", "[2, 2, 4, 7]"};
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "w", 7, 16);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        char text[500];
        snprintf(text, sizeof text,
                 "graph():\n  %%x = placeholder[target=x]()\n  %%w = get_attr[target=w]()\n"
                 "  %%a = call_function[target=cfx.ops.cumsum](%%x, 2)\n"
                 "  %%e = call_function[target=cfx.ops.expand](%%a, %s)\n"
                 "  %%y = call_function[target=cfx.ops.matmul](%%e, %%w)\n  output(%%y)\n",
                 shapes[i]);
        check_plan(text, weights, sizes, 3);
    }
    cfx_state_free(weights);
}

TEST(one_column)
{
    static const int64_t sizes[] = {3, 16};
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "w", 1, 16);
    WEIGHT(weights, "p", 1, 1);
    CHECK_INT_EQ(1, (int)check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %w = get_attr[target=w]()\n"
        "  %p = get_attr[target=p]()\n"
        "  %l = call_function[target=cfx.ops.linear](%x, %w)\n"
        "  %m = call_function[target=cfx.ops.mul](%l, %p)\n"
        "  %y = call_function[target=cfx.ops.sigmoid](%m)\n"
        "  output(%y)\n", weights, sizes, 2));
    CHECK_INT_EQ(1, (int)check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %w = get_attr[target=w]()\n"
        "  %p = get_attr[target=p]()\n"
        "  %l = call_function[target=cfx.ops.linear](%x, %w)\n"
        "  %y = call_function[target=cfx.ops.add](%l, %p)\n"
        "  output(%y)\n", weights, sizes, 2));
    cfx_state_free(weights);
}

TEST(what_is_known_is_computed_once)
{
    static const int64_t sizes[] = {4, 3};
    /* the mask and its sum are constants: only the product is left */
    CHECK_INT_EQ(1, (int)check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %n = call_function[target=cfx.ops.size](%x, 0)\n"
        "  %o = call_function[target=cfx.ops.ones]([%n, 3])\n"
        "  %t = call_function[target=cfx.ops.tril](%o)\n"
        "  %y = call_function[target=cfx.ops.mul](%x, %t)\n"
        "  output(%y)\n", NULL, sizes, 2));
}

TEST(inputs_that_come_back_are_themselves)
{
    cfx_error err = {0};
    const int64_t sizes[] = {3};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = program_of("graph():\n"
                                "  %x = placeholder[target=x]()\n"
                                "  %v = call_function[target=cfx.ops.slice](%x, 0, 1, 3)\n"
                                "  output((%x, %v))\n", NULL, NULL, &err);
    const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 1, false));
    CHECK_INT_EQ(CFX_OK, cfx_program_compile(p, NULL, &err));
    const cfx_datum y = cfx_program_run(p, rt, &x, 1, &err);
    size_t n;
    const cfx_datum *items = cfx_datum_items(y, &n);
    REQUIRE(n == 2);
    CHECK(items[0].as.tensor == x.as.tensor);
    CHECK(items[1].as.tensor->data == x.as.tensor->data + 4);
    cfx_datum_release(y);
    cfx_program_free(p);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
}

/* What depends on elements is run between two plans. */
TEST(a_size_that_depends_on_elements_ends_a_stretch)
{
    static const int64_t sizes[] = {6, 5};
    CHECK_INT_EQ(4, (int)check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %e = call_function[target=cfx.ops.exp](%x)\n"
        "  %s = call_function[target=cfx.ops.sin](%e)\n"
        "  %n = call_function[target=cfx.ops.nonzero](%s)\n"
        "  %m = call_function[target=cfx.ops.sum](%n)\n"
        "  %i = call_function[target=cfx.ops.item](%m)\n"
        "  %y = call_function[target=cfx.ops.add](%e, %m)\n"
        "  output((%y, %i, %n))\n", NULL, sizes, 2));
}

TEST(tensors_in_lists_cross_stretches)
{
    static const int64_t sizes[] = {6, 4};
    CHECK(check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %p = call_function[target=cfx.ops.split](%x, 2)\n"
        "  %s = call_function[target=cfx.ops.sum](%x)\n"
        "  %i = call_function[target=cfx.ops.item](%s)\n"
        "  %c = call_function[target=cfx.ops.cat](%p, 1)\n"
        "  %y = call_function[target=cfx.ops.exp](%c)\n"
        "  output((%y, %i, %p))\n", NULL, sizes, 2) >= 2);
}

/* A call in place that nobody else sees is one of its own: it can be fused. */
/* A result takes over the memory of an argument only if no argument reads that in another way. */
TEST(arguments_that_are_read_in_two_ways)
{
    static const int64_t sizes[] = {150, 150};
    static const char *const calls[] = {
        "addcmul](%a, %at, %ct)", "addcmul](%a, %ct, %at)", "addcmul](%at, %a, %ct)",
        "addcmul](%c, %at, %ct)", "addcmul](%at, %ct, %a)", "where](%m, %a, %at)",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char text[1000];
        snprintf(text, sizeof text,
                 "graph():\n  %%x = placeholder[target=x]()\n"
                 "  %%a = call_function[target=cfx.ops.cumsum](%%x, 0)\n"
                 "  %%c = call_function[target=cfx.ops.cumsum](%%x, 1)\n"
                 "  %%at = call_function[target=cfx.ops.transpose](%%a, 0, 1)\n"
                 "  %%ct = call_function[target=cfx.ops.transpose](%%c, 0, 1)\n"
                 "  %%m = call_function[target=cfx.ops.gt](%%ct, 0)\n"
                 "  %%y = call_function[target=cfx.ops.%s\n"
                 "  %%z = call_function[target=cfx.ops.cumsum](%%y, 0)\n  output(%%z)\n", calls[i]);
        CHECK(check_plan(text, NULL, sizes, 2) > 0);
    }
}

TEST(calls_in_place)
{
    static const int64_t sizes[] = {1, 3, 6, 6};
    cfx_state *weights = block_weights();
    CHECK_INT_EQ(2, (int)check_plan(  /* the convolution, turned back */
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %w = get_attr[target=w1]()\n"
        "  %c = call_function[target=cfx.ops.conv2d](%x, %w)\n"
        "  %r = call_function[target=cfx.ops.relu_](%c)\n"
        "  output((%r, %c))\n", weights, sizes, 4));
    cfx_state_free(weights);
    CHECK(check_plan(  /* the view sees it, and so does the caller */
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %e = call_function[target=cfx.ops.exp](%x)\n"
        "  %v = call_function[target=cfx.ops.select](%e, 0, 0)\n"
        "  %m = call_function[target=cfx.ops.mul_](%v, 3)\n"
        "  %r = call_function[target=cfx.ops.relu_](%x)\n"
        "  %y = call_function[target=cfx.ops.sin](%e)\n"
        "  output((%y, %m))\n", NULL, sizes, 4) >= 2);
}

/* What a call in place gives has the strides of its argument, those of one channel included: a
 * transposed convolution asks which format they tell. */
TEST(a_call_in_place_keeps_the_format)
{
    static const int64_t sizes[] = {2, 5, 6, 4};
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "w", 1, 4, 2, 2);
    WEIGHT(weights, "t", 1, 3, 2, 2);
    CHECK(check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %w = get_attr[target=w]()\n"
        "  %t = get_attr[target=t]()\n"
        "  %l = call_function[target=cfx.ops.permute](%x, [0, 3, 1, 2])\n"
        "  %c = call_function[target=cfx.ops.conv2d](%l, %w)\n"
        "  %s = call_function[target=cfx.ops.sigmoid_](%c)\n"
        "  %y = call_function[target=cfx.ops.conv_transpose2d](%s, %t)\n"
        "  output(%y)\n", weights, sizes, 4) >= 2);
    CHECK(check_plan(  /* so has what one plan leaves to the next */
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %w = get_attr[target=w]()\n"
        "  %t = get_attr[target=t]()\n"
        "  %l = call_function[target=cfx.ops.permute](%x, [0, 3, 1, 2])\n"
        "  %k = call_function[target=cfx.ops.contiguous](%l)\n"
        "  %c = call_function[target=cfx.ops.conv2d](%k, %w)\n"
        "  %n = call_function[target=cfx.ops.nonzero](%x)\n"
        "  %y = call_function[target=cfx.ops.conv_transpose2d](%c, %t)\n"
        "  output((%y, %n))\n", weights, sizes, 4) >= 2);
    cfx_state_free(weights);
}

/* A call in place on a result that lies otherwise than the program has it, also through views and
 * between stretches: whoever shares its memory sees it. */
TEST(calls_in_place_and_layouts)
{
    static const int64_t sizes[] = {1, 3, 6, 6};
    static const char *const programs[] = {
        "  %a = call_function[target=cfx.ops.tril_](%c)\n"
        "  output((%c, %a))\n",
        "  %a = call_function[target=cfx.ops.cumsum_](%c, 3)\n"
        "  %y = call_function[target=cfx.ops.sin](%c)\n"
        "  output((%c, %y))\n",
        "  %v = call_function[target=cfx.ops.narrow](%c, 1, 4, 9)\n"
        "  %a = call_function[target=cfx.ops.mul_](%v, 3)\n"
        "  output(%c)\n",
        "  %v = call_function[target=cfx.ops.flatten](%c, 1)\n"
        "  %a = call_function[target=cfx.ops.tril_](%c)\n"
        "  %y = call_function[target=cfx.ops.sin](%v)\n"
        "  output((%c, %y))\n",
        "  %v = call_function[target=cfx.ops.flatten](%c, 1)\n"
        "  %a = call_function[target=cfx.ops.relu_](%v)\n"
        "  output(%c)\n",
        "  %v = call_function[target=cfx.ops.contiguous](%c)\n"
        "  %a = call_function[target=cfx.ops.relu_](%v)\n"
        "  %y = call_function[target=cfx.ops.sin](%c)\n"
        "  output((%c, %y))\n",
        "  %v = call_function[target=cfx.ops.view](%c, [1, 4, 5, 4, 4])\n"
        "  %a = call_function[target=cfx.ops.relu_](%v)\n"
        "  output(%c)\n",
        "  %v = call_function[target=cfx.ops.view](%c, [1, 20, 16])\n"
        "  %a = call_function[target=cfx.ops.relu_](%c)\n"
        "  %y = call_function[target=cfx.ops.sin](%v)\n"
        "  output((%a, %y))\n",
        "  %v = call_function[target=cfx.ops.chunk](%c, 2, 1)\n"
        "  %t = call_function[target=cfx.ops.getitem](%v, 1)\n"
        "  %a = call_function[target=cfx.ops.relu_](%t)\n"
        "  output((%c, %v))\n",
        /* a copy in the program, which could be a view of what lies otherwise */
        "  %p = call_function[target=cfx.ops.permute](%c, [0, 2, 3, 1])\n"
        "  %v = call_function[target=cfx.ops.reshape](%p, [1, 16, 20])\n"
        "  %a = call_function[target=cfx.ops.relu_](%v)\n"
        "  output((%c, %a))\n",
        "  %p = call_function[target=cfx.ops.permute](%c, [0, 2, 3, 1])\n"
        "  %v = call_function[target=cfx.ops.reshape](%p, [1, 16, 20])\n"
        "  %a = call_function[target=cfx.ops.relu_](%c)\n"
        "  output((%c, %v))\n",
        "  %v = call_function[target=cfx.ops.permute](%c, [0, 2, 3, 1])\n"
        "  %t = call_function[target=cfx.ops.select](%v, 0, 0)\n"
        "  %a = call_function[target=cfx.ops.relu_](%t)\n"
        "  output((%c, %v))\n",
    };
    cfx_state *weights = block_weights();
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        char text[1024];
        snprintf(text, sizeof text, "graph():\n"
                 "  %%x = placeholder[target=x]()\n"
                 "  %%w = get_attr[target=w1]()\n"
                 "  %%c = call_function[target=cfx.ops.conv2d](%%x, %%w)\n%s", programs[i]);
        CHECK(check_plan(text, weights, sizes, 4) >= 1);
    }
    cfx_state_free(weights);
}

/* Results have the strides that the kernel chooses, and views are views: what is written to one is
 * seen. */
TEST(sums_by_letters)
{
    static const int64_t sizes[] = {3, 3};
    CHECK(check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %e = call_function[target=cfx.ops.exp](%x)\n"
        "  %t = call_function[target=cfx.ops.einsum](\"ij->ji\", [%e])\n"
        "  %d = call_function[target=cfx.ops.einsum](\"ii->i\", [%e])\n"
        "  %m = call_function[target=cfx.ops.chain_matmul]([%e])\n"
        "  %a = call_function[target=cfx.ops.mul_](%t, 3)\n"
        "  %b = call_function[target=cfx.ops.add_](%d, 1)\n"
        "  %y = call_function[target=cfx.ops.sin](%e)\n"
        "  output((%y, %m))\n", NULL, sizes, 2) >= 1);
    CHECK(check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %e = call_function[target=cfx.ops.exp](%x)\n"
        "  %a = call_function[target=cfx.ops.einsum](\"bi,bj->jbi\", [%e, %e])\n"
        "  %b = call_function[target=cfx.ops.einsum](\"ab,bc,cd->da\", [%e, %e, %e])\n"
        "  %c = call_function[target=cfx.ops.einsum](\"ij,kl->i\", [%e, %e])\n"
        "  %d = call_function[target=cfx.ops.einsum](\"ij->\", [%e])\n"
        "  output((%a, %b, %c, %d))\n", NULL, sizes, 2) >= 5);
}

TEST(branches_and_loops)
{
    static const int64_t sizes[] = {4, 3};
    CHECK(check_plan(
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %s = call_function[target=cfx.ops.sum](%x)\n"
        "  %p = call_function[target=cfx.ops.gt](%s, 0)\n"
        "  %c = call_function[target=cfx.ops.cond](%p, graph {\n"
        "    %a = placeholder[target=a]()\n"
        "    %b = call_function[target=cfx.ops.exp](%a)\n"
        "    %d = call_function[target=cfx.ops.mul](%b, 2)\n"
        "    output((%d,))\n"
        "  }, graph {\n"
        "    %a = placeholder[target=a]()\n"
        "    %b = call_function[target=cfx.ops.sin](%a)\n"
        "    output((%b,))\n"
        "  }, (%x,))\n"
        "  output(%c)\n", NULL, sizes, 2) >= 3);
}

/* More kinds of inputs than plans are kept: old plans go, and results stay right. */
TEST(plans_are_bounded)
{
    cfx_error err = {0};
    const cfx_compile_options two = {.most_plans = 2};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = program_of("graph():\n  %x = placeholder[target=x]()\n"
                                "  %y = call_function[target=cfx.ops.neg](%x)\n"
                                "  output(%y)\n", NULL, NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_program_compile(p, &two, &err));
    for (int run = 0; run < 60; run++) {
        const int64_t sizes[] = {1 + run % 5, 2};
        const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 2, false));
        const cfx_datum y = cfx_program_run(p, rt, &x, 1, &err);
        REQUIRE(y.kind == CFX_DATUM_TENSOR);
        const float *in = cfx_tensor_data(x.as.tensor);
        const float *out = cfx_tensor_data(y.as.tensor);
        for (int64_t i = 0; i < 2 * sizes[0]; i++)
            CHECK(out[i] == -in[i]);
        CHECK(count_steps(p) <= 2);
        cfx_datum_release(x);
        cfx_datum_release(y);
    }
    CHECK_INT_EQ(2, (int)count_steps(p));
    cfx_program_free(p);
    cfx_runtime_free(rt);
}

/* An allocator whose memory ends at 1 GiB: sanitizers do not like to be asked for more. */
static void *few_alloc(void *ctx, size_t size)
{
    (void)ctx;
    return size >> 30 ? NULL : malloc(size);
}

static void few_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    (void)size;
    free(ptr);
}

/* Together they have more bytes than there are addresses: 66 intermediate results of 2^58. */
TEST(results_beyond_all_addresses)
{
    cfx_error err = {0};
    cfx_buffer text;
    const cfx_allocator few = {few_alloc, few_free, NULL};
    const cfx_runtime_options options = {.allocator = &few};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    cfx_buffer_init(&text, NULL);
    cfxi_out out;
    cfxi_base_out_begin(&out, cfx_buffer_sink(&text));
    cfxi_base_out_str(&out, "graph():\n  %x = placeholder[target=x]()\n"
                      "  %v0 = call_function[target=cfx.ops.expand](%x, [68719476736, 1048576])\n");
    for (int i = 0; i < 66; i++)
        cfxi_base_out_printf(&out, "  %%v%d = call_function[target=cfx.ops.%s](%%v%d)\n", i + 1,
                             i % 2 ? "sin" : "cos", i);
    cfxi_base_out_str(&out, "  %y = call_function[target=cfx.ops.sum](%v66)\n  output(%y)\n");
    CHECK_INT_EQ(CFX_OK, cfxi_base_out_end(&out, &err));
    CHECK_INT_EQ(CFX_OK, cfx_buffer_append(&text, "", 1));
    cfx_program *p = program_of(text.data, NULL, &few, &err);
    CHECK_INT_EQ(CFX_OK, cfx_program_compile(p, NULL, &err));
    const cfx_datum x = cfx_datum_tensor(random_tensor(NULL, 0, false));
    CHECK_INT_EQ(CFX_DATUM_INVALID, (int)cfx_program_run(p, rt, &x, 1, &err).kind);
    CHECK_INT_EQ(CFX_E_NOMEM, err.status);
    cfx_datum_release(x);
    cfx_program_free(p);
    cfx_buffer_free(&text);
    cfx_runtime_free(rt);
}

/* Memory of results that the caller has given up is used again; what it holds is not. */
TEST(results_are_recycled)
{
    cfx_error err = {0};
    const int64_t sizes[] = {100};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = program_of("graph():\n  %x = placeholder[target=x]()\n"
                                "  %y = call_function[target=cfx.ops.neg](%x)\n"
                                "  output(%y)\n", NULL, NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_program_compile(p, NULL, &err));
    const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 1, false));
    const cfx_datum a = cfx_program_run(p, rt, &x, 1, &err);
    const cfx_datum b = cfx_program_run(p, rt, &x, 1, &err);
    CHECK(a.as.tensor->data != b.as.tensor->data);
    const char *at = b.as.tensor->data;
    cfx_datum_release(b);
    const cfx_datum c = cfx_program_run(p, rt, &x, 1, &err);
    CHECK(c.as.tensor->data == at);
    cfx_datum_release(a);
    cfx_datum_release(c);
    cfx_datum_release(x);
    cfx_program_free(p);
    cfx_runtime_free(rt);
}

typedef struct client {
    cfx_program *p;
    cfx_runtime *rt;
    int64_t rows;
    bool ok;
} client;

static void *run_client(void *arg)
{
    client *c = arg;
    const int64_t sizes[] = {c->rows, 12};
    c->ok = true;
    for (int i = 0; i < 200; i++) {
        cfx_error err = {0};
        const cfx_datum x = cfx_datum_tensor(cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, 2, NULL,
                                                            &err));
        float *in = cfx_tensor_data(x.as.tensor);
        for (int64_t k = 0; k < 12 * c->rows; k++)
            in[k] = (float)(k % 7 - 3 + i % 5);
        const cfx_datum y = cfx_program_run(c->p, c->rt, &x, 1, &err);
        const float *out = y.kind == CFX_DATUM_TENSOR ? cfx_tensor_data(y.as.tensor) : NULL;
        for (int64_t k = 0; k < 12 * c->rows; k++)
            c->ok = c->ok && out && out[k] == (in[k] > 0 ? in[k] : 0) * 2;
        cfx_datum_release(x);
        cfx_datum_release(y);
    }
    return NULL;
}

/* Threads with other sizes throw each other's plans away all the time. */
TEST(threads_share_a_program)
{
    enum { CLIENTS = 6 };
    cfx_error err = {0};
    const cfx_compile_options two = {.most_plans = 2};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_program *p = program_of("graph():\n  %x = placeholder[target=x]()\n"
                                "  %y = call_function[target=cfx.ops.relu](%x)\n"
                                "  %z = call_function[target=cfx.ops.mul](%y, 2)\n"
                                "  output(%z)\n", NULL, NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_program_compile(p, &two, &err));
    client clients[CLIENTS];
    pthread_t threads[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (client){p, rt, 1 + i % 4, false};
        REQUIRE(pthread_create(&threads[i], NULL, run_client, &clients[i]) == 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(clients[i].ok);
    }
    cfx_program_free(p);
    cfx_runtime_free(rt);
}

TEST(a_program_that_is_not_compiled_has_no_plans)
{
    cfx_error err = {0};
    cfx_buffer text;
    cfx_program *p = program_of("graph():\n  %x = placeholder[target=x]()\n  output(%x)\n", NULL,
                                NULL, &err);
    cfx_buffer_init(&text, NULL);
    CHECK(!cfx_program_is_compiled(p));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_program_print_plans(p, cfx_buffer_sink(&text), &err));
    cfx_buffer_free(&text);
    cfx_program_free(p);
}

static size_t count_of(const cfx_buffer *text, const char *what)
{
    size_t count = 0;
    for (const char *at = text->data; (at = strstr(at, what)) != NULL; at++)
        count++;
    return count;
}

/* Steps of two runs, in each format; what the plan does not have, the interpreter tells. */
TEST(a_profile_has_every_step)
{
    cfx_error err = {0};
    const int64_t sizes[] = {4, 3};
    cfx_profile *profile = cfx_profile_new(NULL, &err);
    cfx_runtime_options options = {.threads = 1};
    cfx_profile_watch(profile, &options);
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    cfx_program *p = program_of("graph():\n  %x = placeholder[target=x]()\n"
                                "  %e = call_function[target=cfx.ops.exp](%x)\n"
                                "  %n = call_function[target=cfx.ops.nonzero](%e)\n"
                                "  output(%n)\n", NULL, NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_program_compile(p, NULL, &err));
    const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 2, false));
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            cfx_profile_clear(profile);
        cfx_datum_release(cfx_program_run(p, rt, &x, 1, &err));
    }
    for (int format = CFX_PROFILE_TABLE; format <= CFX_PROFILE_TRACE; format++) {
        cfx_buffer text;
        cfx_buffer_init(&text, NULL);
        CHECK_INT_EQ(CFX_OK, cfx_profile_print(profile, (cfx_profile_format)format,
                                               cfx_buffer_sink(&text), &err));
        CHECK_INT_EQ(format == CFX_PROFILE_TRACE ? 2 : 1,
                     (int)count_of(&text, format == CFX_PROFILE_TABLE ? "nonzero " : "\"n\""));
        cfx_buffer_free(&text);
    }
    cfx_datum_release(x);
    cfx_program_free(p);
    cfx_runtime_free(rt);
    cfx_profile_free(profile);
}

typedef struct told {
    unsigned plans, packings, others;
    uint64_t last;  /* when the latest of them ended */
    bool in_order;
} told;

static void note_step(void *ctx, const cfx_step *step)
{
    told *t = ctx;
    t->in_order = t->in_order && step->begin >= t->last && step->end >= step->begin;
    t->last = step->end;
    if (strcmp(step->kernel, "plan of 2 nodes") == 0)
        t->plans++;
    else if (strcmp(step->kernel, "packing") == 0)
        t->packings++;
    else
        t->others++;
}

/* Each plan is told once, before its steps. */
TEST(planning_is_told)
{
    cfx_error err = {0};
    told t = {.in_order = true};
    const cfx_runtime_options options = {.threads = 1, .step = note_step, .step_ctx = &t};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    cfx_program *p = program_of("graph():\n  %x = placeholder[target=x]()\n"
                                "  %y = call_function[target=cfx.ops.softmax](%x, -1)\n"
                                "  %z = call_function[target=cfx.ops.exp](%y)\n"
                                "  output(%z)\n", NULL, NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_program_compile(p, NULL, &err));
    for (int64_t i = 0; i < 4; i++) {
        const int64_t sizes[] = {1 + i / 2, 3};
        const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 2, false));
        cfx_datum_release(cfx_program_run(p, rt, &x, 1, &err));
        cfx_datum_release(x);
        CHECK_INT_EQ(1 + i / 2, t.plans);
        CHECK_INT_EQ(1 + i / 2, t.packings);
        CHECK_INT_EQ(2 * (i + 1), t.others);
    }
    CHECK(t.in_order);
    cfx_program_free(p);
    cfx_runtime_free(rt);
}

/* A runtime that is gone leaves nothing in a plan that another one uses. */
TEST(plans_outlive_runtimes)
{
    cfx_error err = {0};
    const int64_t sizes[] = {5, 4};
    cfx_program *p = program_of("graph():\n  %x = placeholder[target=x]()\n"
                                "  %y = call_function[target=cfx.ops.softmax](%x, -1)\n"
                                "  output(%y)\n", NULL, NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_program_compile(p, NULL, &err));
    const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 2, false));
    for (int i = 0; i < 3; i++) {
        const cfx_runtime_options options = {.threads = 1};
        cfx_runtime *rt = cfx_runtime_new(&options, &err);
        const cfx_datum y = cfx_program_run(p, rt, &x, 1, &err);
        CHECK(y.kind == CFX_DATUM_TENSOR);
        cfx_datum_release(y);
        cfx_runtime_free(rt);
    }
    CHECK_INT_EQ(1, (int)count_steps(p));
    cfx_datum_release(x);
    cfx_program_free(p);
}

/* Weights are packed once for all sizes; so are weights that two calls have in common. */
TEST(plans_share_packed_weights)
{
    cfx_error err = {0};
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "w", 500, 500);
    cfx_program *p = program_of("graph():\n  %x = placeholder[target=x]()\n"
                                "  %w = get_attr[target=w]()\n"
                                "  %y = call_function[target=cfx.ops.linear](%x, %w)\n"
                                "  %z = call_function[target=cfx.ops.linear](%y, %w)\n"
                                "  output(%z)\n", weights, &a, &err);
    CHECK_INT_EQ(CFX_OK, cfx_program_compile(p, NULL, &err));
    for (int64_t rows = 1; rows < 8; rows++) {
        const int64_t sizes[] = {rows, 500};
        const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 2, false));
        cfx_datum_release(cfx_program_run(p, rt, &x, 1, &err));
        cfx_datum_release(x);
    }
    CHECK_INT_EQ(14, (int)count_steps(p));
    CHECK(atomic_load(&ta.live_bytes) < 2 * 500 * 512 * sizeof(float));
    cfx_program_free(p);
    cfx_state_free(weights);
    cfx_runtime_free(rt);
    test_alloc_check(&ta);
}

/* A oneDNN that is not there is an error that says so, and nothing is compiled. */
TEST(a_back_end_that_is_missing)
{
    cfx_error err = {0};
    const cfx_compile_options options = {.onednn = "/no/such/libdnnl.so"};
    cfx_program *p = program_of("graph():\n  %x = placeholder[target=x]()\n  output(%x)\n", NULL,
                                NULL, &err);
    CHECK(cfx_program_compile(p, &options, &err) != CFX_OK);
    CHECK(strstr(err.message, "libdnnl") != NULL);
    CHECK(!cfx_program_is_compiled(p));
    cfx_program_free(p);
}

static cfx_program *compiled_with(const char *text, const cfx_state *weights,
                                  cfx_precision precision)
{
    const cfx_compile_options options = {.precision = precision};
    cfx_program *p = program_of(text, weights, NULL, NULL);
    CHECK(p && cfx_program_compile(p, &options, NULL) == CFX_OK);
    return p;
}

static bool plans_have(const cfx_program *p, const char *text)
{
    cfx_buffer plans;
    cfx_buffer_init(&plans, NULL);
    bool found = cfx_program_print_plans(p, cfx_buffer_sink(&plans), NULL) == CFX_OK &&
                 cfx_buffer_append(&plans, "", 1) == CFX_OK && strstr(plans.data, text);
    cfx_buffer_free(&plans);
    return found;
}

/* Products and convolutions round their operands, and nothing else: results are near, and not the
 * same. Weights take half the memory. */
TEST(a_precision)
{
    static const int64_t sizes[] = {1, 3, 9, 13};
    cfx_state *weights = cfx_state_new(NULL, NULL);
    WEIGHT(weights, "w", 32, 3, 3, 3);
    WEIGHT(weights, "a", 16, 32);
    static const char text[] =
        "graph():\n"
        "  %x = placeholder[target=x]()\n"
        "  %w = get_attr[target=w]()\n"
        "  %a = get_attr[target=a]()\n"
        "  %c = call_function[target=cfx.ops.conv2d](%x, %w, None, [1, 1], [1, 1])\n"
        "  %m = call_function[target=cfx.ops.mean](%c, [2, 3])\n"
        "  %y = call_function[target=cfx.ops.linear](%m, %a)\n"
        "  output(%y)\n";
    const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 4, false));
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    cfx_datum y[CFX_PRECISION_COUNT];
    for (int i = 0; i < CFX_PRECISION_COUNT; i++) {
        cfx_program *p = compiled_with(text, weights, (cfx_precision)i);
        y[i] = cfx_program_run(p, rt, &x, 1, NULL);
        /* 32 x 4 x 9 (a channel is added) and 16 x 32 weights */
        CHECK(plans_have(p, i == CFX_PRECISION_BF16 ? "3.3 kB of packed" : "5.5 kB of packed"));
        cfx_program_free(p);
    }
    if (CHECK(y[0].kind == CFX_DATUM_TENSOR && y[1].kind == CFX_DATUM_TENSOR)) {
        const float *exact = cfx_tensor_data(y[0].as.tensor);
        const float *low = cfx_tensor_data(y[1].as.tensor);
        int same = 0;
        for (int i = 0; i < 16; i++) {
            CHECK(fabsf(exact[i] - low[i]) < 0.02f);
            same += exact[i] == low[i];
        }
        CHECK(same < 8);
    }
    for (int i = 0; i < CFX_PRECISION_COUNT; i++)
        cfx_datum_release(y[i]);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
    cfx_state_free(weights);
}

TEST(a_precision_that_there_is_not)
{
    cfx_error err = {0};
    const cfx_compile_options options = {.precision = CFX_PRECISION_COUNT};
    cfx_program *p = program_of("graph():\n  %x = placeholder[target=x]()\n  output(%x)\n", NULL,
                                NULL, &err);
    CHECK(cfx_program_compile(p, &options, &err) == CFX_E_VALUE);
    CHECK(!cfx_program_is_compiled(p));
    cfx_program_free(p);
}

typedef struct sweep {
    const char *text;
    cfx_state *weights;
    cfx_datum x;
} sweep;

/* Without memory for a plan, the program runs without one; without any, it fails. */
static cfx_status compile_and_run(const cfx_allocator *a, void *arg)
{
    const sweep *w = arg;
    cfx_error err = {0};
    const cfx_runtime_options options = {.allocator = a, .threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    cfx_program *p = rt ? program_of(w->text, w->weights, a, &err) : NULL;
    if (p && cfx_program_compile(p, NULL, &err) == CFX_OK)
        cfx_datum_release(cfx_program_run(p, rt, &w->x, 1, &err));
    cfx_program_free(p);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(every_allocation_can_fail)
{
    static const int64_t image[] = {1, 3, 5, 5};
    static const int64_t line[] = {1, 5, 17};
    sweep all[] = {{block, block_weights(), cfx_datum_tensor(random_tensor(image, 4, false))},
                   {lines, line_weights(), cfx_datum_tensor(random_tensor(line, 3, false))}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        CHECK(test_oom_sweep(compile_and_run, &all[i]) > 20);
        cfx_datum_release(all[i].x);
        cfx_state_free(all[i].weights);
    }
}
