/* comparison.c - tests of src/check/comparison*.c: pairs of layers, sums, what they say. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"

#include <cfx/compare.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char before[] =
    "graph():\n"
    " %x = placeholder[target=x]()\n"
    " %w = get_attr[target=w]()\n"
    " %conv = call_function[target=torch.conv2d](%x, %w)\n"
    " %bn = call_function[target=torch.batch_norm](%conv, %w, %w, %w, %w, False, 0.1, 1e-05, "
    "False)\n"
    " %relu = call_function[target=torch.relu](%bn)\n"
    " %fc = call_function[target=torch.matmul](%relu, %relu)\n"
    " output(%fc)\n";

static const char after[] =
    "graph():\n"
    " %x = placeholder[target=x]()\n"
    " %xq = call_function[target=cfx.ops.quantize_per_tensor](%x, 0.5, 0, 0, 255, torch.uint8)\n"
    " %xd = call_function[target=cfx.ops.dequantize_per_tensor](%xq, 0.5, 0, 0, 255, "
    "torch.uint8)\n"
    " %w = get_attr[target=w_int8]()\n"
    " %wd = call_function[target=cfx.ops.dequantize_per_tensor](%w, 0.5, 0, -128, 127, "
    "torch.int8)\n"
    " %conv = call_function[target=torch.conv2d](%xd, %wd)\n"
    " %relu = call_function[target=torch.relu](%conv)\n"
    " %q = call_function[target=cfx.ops.quantize_per_tensor](%relu, 0.5, 0, 0, 255, torch.uint8)\n"
    " %d = call_function[target=cfx.ops.dequantize_per_tensor](%q, 0.5, 0, 0, 255, torch.uint8)\n"
    " %fc = call_function[target=torch.matmul](%d, %d)\n"
    " output(%fc)\n";

static cfx_graph *parse(const char *text, const cfx_allocator *allocator, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), allocator, NULL, err);
}

static cfx_comparison *compare(const char *a, const char *b, const cfx_allocator *allocator,
                               cfx_error *err)
{
    cfx_graph *x = parse(a, allocator, err);
    cfx_graph *y = x ? parse(b, allocator, err) : NULL;
    cfx_comparison *c = y ? cfx_comparison_new(x, y, allocator, err) : NULL;
    cfx_graph_release(x);
    cfx_graph_release(y);
    return c;
}

static const char *pairs_of(const cfx_comparison *c)
{
    static char text[400];
    cfx_node *a;
    cfx_node *b;
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; cfx_comparison_pair(c, i, &a, &b); i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s-%s", i ? " " : "",
                                 cfx_node_name(a, NULL), cfx_node_name(b, NULL));
    return text;
}

static cfx_tensor *row_of(const float *data, int64_t n)
{
    return cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, &n, NULL, 1, (void *)data, true, NULL, NULL,
                                  NULL, NULL);
}

static cfx_status add(cfx_comparison *c, size_t i, const float *a, const float *b, int64_t n)
{
    cfx_error err = {0};
    cfx_tensor *x = row_of(a, n);
    cfx_tensor *y = row_of(b, n);
    const cfx_status status = cfx_comparison_add(c, i, x, y, &err);
    cfx_tensor_release(x);
    cfx_tensor_release(y);
    return status;
}

/* ---- pairs --------------------------------------------------------------------------------- */

TEST(layers_are_paired_behind_their_integers_and_norms)
{
    cfx_error err = {0};
    cfx_comparison *c = compare(before, after, NULL, &err);
    CHECK_STR_EQ("x-xd bn-conv relu-d fc-fc", pairs_of(c));
    cfx_comparison_free(c);
}

TEST(a_graph_is_compared_with_itself)
{
    cfx_error err = {0};
    cfx_graph *g = parse(before, NULL, &err);
    cfx_comparison *c = cfx_comparison_new(g, g, NULL, &err);
    cfx_graph_release(g);
    CHECK_STR_EQ("conv-conv bn-bn relu-relu fc-fc", pairs_of(c));
    cfx_comparison_free(c);
}

/* ---- sums ---------------------------------------------------------------------------------- */

TEST(closeness_is_of_all_elements_of_all_calls)
{
    const float a[] = {3, 0, -1, 2};
    const float b[] = {3, 1, -1, 4};
    cfx_compared row;
    cfx_error err = {0};
    cfx_comparison *c = compare(before, after, NULL, &err);
    CHECK_INT_EQ(CFX_OK, add(c, 3, a, b, 2));
    CHECK_INT_EQ(CFX_OK, add(c, 3, a + 2, b + 2, 2));
    CHECK_INT_EQ(1, (long long)cfx_comparison_size(c));
    CHECK(cfx_comparison_row(c, 0, &row));
    CHECK_STR_EQ("fc", row.name);
    CHECK_INT_EQ(4, row.close.elements);
    CHECK(fabs(row.close.sqnr - 10 * log10(14.0 / 5.0)) < 1e-12);
    CHECK(fabs(row.close.cosine - 18.0 / sqrt(14.0 * 27.0)) < 1e-12);
    CHECK(fabs(row.close.error - sqrt(5.0 / 14.0)) < 1e-12);
    CHECK(row.close.largest == 2);
    CHECK(isinf(row.input_sqnr) && fabs(row.own_error - row.close.error) < 1e-12);
    CHECK(!cfx_comparison_row(c, 1, &row));
    cfx_comparison_free(c);
}

TEST(what_is_not_finite_is_counted_apart)
{
    const float a[] = {1, INFINITY, NAN, 2};
    const float b[] = {1, INFINITY, 1, 2};
    cfx_closeness close;
    cfx_error err = {0};
    cfx_comparison *c = compare(before, after, NULL, &err);
    CHECK(!cfx_comparison_result(c, &close));
    CHECK_INT_EQ(CFX_OK, add(c, 3, a, b, 4));
    CHECK(cfx_comparison_result(c, &close));
    CHECK_INT_EQ(2, close.elements);
    CHECK_INT_EQ(2, close.not_finite);
    CHECK(isinf(close.sqnr) && close.sqnr > 0 && close.cosine == 1 && close.error == 0);
    cfx_comparison_free(c);
}

TEST(nothing_that_should_be_zero_but_is_not)
{
    const float a[] = {0, 0};
    const float b[] = {0, 1};
    cfx_compared row;
    cfx_error err = {0};
    cfx_comparison *c = compare(before, after, NULL, &err);
    CHECK_INT_EQ(CFX_OK, add(c, 3, a, b, 2));
    CHECK(cfx_comparison_row(c, 0, &row));
    CHECK(isinf(row.close.sqnr) && row.close.sqnr < 0 && row.close.cosine == 0);
    cfx_comparison_free(c);
}

TEST(tensors_of_any_strides_and_types)
{
    const int64_t sizes[] = {2, 3};
    const int64_t columns[] = {8, 16};
    const double a[] = {1, 4, 2, 5, 3, 6};  /* by columns: 1 2 3 4 5 6 */
    const float b[] = {1, 2, 3, 4, 5, 7};
    cfx_closeness close;
    cfx_error err = {0};
    cfx_comparison *c = compare(before, after, NULL, &err);
    cfx_tensor *x = cfx_tensor_from_memory(CFX_DTYPE_FLOAT64, sizes, columns, 2, (void *)a, true,
                                           NULL, NULL, NULL, &err);
    cfx_tensor *y = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, NULL, 2, (void *)b, true,
                                           NULL, NULL, NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_comparison_add(c, 3, x, y, &err));
    CHECK(cfx_comparison_result(c, &close));
    CHECK_INT_EQ(6, close.elements);
    CHECK(fabs(close.error - sqrt(1.0 / 91.0)) < 1e-12);
    CHECK_INT_EQ(CFX_OK, cfx_comparison_add(c, 2, x, x, &err));
    cfx_tensor *flat = row_of(b, 6);
    CHECK_INT_EQ(CFX_OK, cfx_comparison_add(c, 2, x, flat, &err));
    CHECK_INT_EQ(1, (long long)cfx_comparison_size(c));
    CHECK_INT_EQ(CFX_E_INDEX, cfx_comparison_add(c, 4, x, y, &err));
    cfx_tensor_release(flat);
    cfx_tensor_release(x);
    cfx_tensor_release(y);
    cfx_comparison_free(c);
}

/* ---- rows ---------------------------------------------------------------------------------- */

static bool is_fc(void *ctx, const char *name)
{
    (void)ctx;
    return strcmp(name, "fc") == 0;
}

TEST(the_worst_first_with_what_it_began_with)
{
    const float a[] = {10, 10};
    const float good[] = {10, 10.1f};
    const float bad[] = {10, 12};
    const float worse[] = {10, 12.1f};
    cfx_compared row;
    cfx_error err = {0};
    cfx_comparison *c = compare(before, after, NULL, &err);
    CHECK_INT_EQ(CFX_OK, add(c, 0, a, good, 2));
    CHECK_INT_EQ(CFX_OK, add(c, 1, a, bad, 2));
    CHECK_INT_EQ(CFX_OK, add(c, 2, a, bad, 2));
    CHECK_INT_EQ(CFX_OK, add(c, 3, a, worse, 2));
    CHECK(cfx_comparison_row(c, 0, &row));
    CHECK_STR_EQ("fc", row.name);
    CHECK(cfx_comparison_row(c, 1, &row));
    CHECK_STR_EQ("conv", row.name);
    CHECK_STR_EQ("conv2d", row.operation);
    CHECK_STR_EQ("use weights per channel, or equalize", row.advice);
    CHECK(fabs(row.input_sqnr - 10 * log10(200 / 0.01)) < 0.01);
    CHECK(cfx_comparison_row(c, 2, &row));
    CHECK_STR_EQ("relu", row.name);
    CHECK(row.own_error == 0 && row.advice == NULL);
    CHECK(cfx_comparison_row(c, 3, &row));
    CHECK_STR_EQ("input", row.operation);
    CHECK(row.advice == NULL);
    CHECK(cfx_comparison_worst_own(c, NULL, NULL, &row));
    CHECK_STR_EQ("conv", row.name);
    CHECK(cfx_comparison_worst_own(c, is_fc, NULL, &row));
    CHECK_STR_EQ("conv", row.name);
    cfx_comparison_free(c);
}

TEST(advice_tells_what_happened)
{
    float a[2000];
    float b[2000];
    cfx_compared row;
    cfx_error err = {0};
    for (int i = 0; i < 2000; i++) {
        a[i] = 1;
        b[i] = 1.1f;
    }
    cfx_comparison *c = compare(before, after, NULL, &err);
    CHECK_INT_EQ(CFX_OK, add(c, 2, a, b, 2000));
    CHECK(cfx_comparison_row(c, 0, &row));
    CHECK_STR_EQ("keep it in float", row.advice);
    a[0] = b[0] = 100;
    CHECK_INT_EQ(CFX_OK, add(c, 2, a, b, 2000));
    CHECK(cfx_comparison_row(c, 0, &row));
    CHECK_STR_EQ("few values are far out: observe with histogram or percentile", row.advice);
    a[0] = 200;
    CHECK_INT_EQ(CFX_OK, add(c, 2, a, b, 2000));
    CHECK(cfx_comparison_row(c, 0, &row));
    CHECK_STR_EQ("values are cut off: calibrate with more data, or with minmax", row.advice);
    cfx_comparison_free(c);
}

/* ---- printing ------------------------------------------------------------------------------ */

static const char *printed(cfx_comparison *c, cfx_comparison_format format, size_t width,
                           size_t most)
{
    static cfx_buffer text;
    cfx_error err = {0};
    cfx_buffer_free(&text);
    cfx_buffer_init(&text, NULL);
    const cfx_sink out = cfx_buffer_sink(&text);
    CHECK_INT_EQ(CFX_OK, cfx_comparison_print(c, format, width, most, out, &err));
    cfx_buffer_append(&text, "", 1);
    return text.data;
}

static cfx_comparison *two_layers(void)
{
    const float a[] = {10, 10};
    const float bad[] = {10, 12};
    cfx_error err = {0};
    cfx_comparison *c = compare(before, after, NULL, &err);
    CHECK_STR_EQ("no layers to compare\n", printed(c, CFX_COMPARISON_TABLE, 0, 0));
    CHECK_INT_EQ(CFX_OK, add(c, 1, a, bad, 2));
    CHECK_INT_EQ(CFX_OK, add(c, 2, a, bad, 2));
    CHECK_INT_EQ(CFX_OK, add(c, 3, a, a, 2));
    return c;
}

TEST(a_table)
{
    cfx_comparison *c = two_layers();
    CHECK_STR_EQ("the result: equal\n"
                 "layer  operator     dB  from   cosine     off  advice\n"
                 "conv   conv2d     17.0     -  0.99589  14.1 %  use weights per channel, or "
                 "equalize\n"
                 "relu   relu       17.0  17.0  0.99589  14.1 %\n"
                 "fc     matmul    equal  17.0  1.00000  0.00 %\n",
                 printed(c, CFX_COMPARISON_TABLE, 0, 0));
    cfx_comparison_free(c);
}

TEST(a_table_that_fits)
{
    cfx_comparison *c = two_layers();
    CHECK_STR_EQ("the result: equal\n"
                 "layer  operator    dB  from   cosine     off  advice\n"
                 "conv   conv2d    17.0     -  0.99589  14.1 %  use weights ..\n"
                 "and 2 more layers\n",
                 printed(c, CFX_COMPARISON_TABLE, 60, 1));
    cfx_comparison_free(c);
}

TEST(json)
{
    cfx_comparison *c = two_layers();
    const char *text = printed(c, CFX_COMPARISON_JSON, 0, 1);
    CHECK(strstr(text, "{\"result\": {\"sqnr\": null, \"cosine\": 1.0, \"error\": 0.0, ") == text);
    CHECK(strstr(text, "\"layers\": [\n {\"name\": \"conv\", \"partner\": \"conv\", \"module\": "
                       "\"\", \"operation\": \"conv2d\", \"sqnr\": 16.989"));
    CHECK(strstr(text, "\"input_sqnr\": null, "));
    CHECK(strstr(text, "\"advice\": \"use weights per channel, or equalize\", \"file\": null, "
                       "\"line\": 0}]}\n"));
    cfx_comparison_free(c);
}

/* ---- memory -------------------------------------------------------------------------------- */

static cfx_status whole(const cfx_allocator *a, void *arg)
{
    const float x[] = {10, 10};
    const float y[] = {10, 12};
    cfx_error err = {0};
    cfx_buffer text;
    (void)arg;
    cfx_buffer_init(&text, a);
    cfx_comparison *c = compare(before, after, a, &err);
    cfx_status status = c ? add(c, 1, x, y, 2) : err.status;
    if (status == CFX_OK)
        status = cfx_comparison_print(c, CFX_COMPARISON_JSON, 0, 0, cfx_buffer_sink(&text), &err);
    cfx_comparison_free(c);
    cfx_buffer_free(&text);
    return status;
}

TEST(memory_may_run_out_anywhere)
{
    CHECK(test_oom_sweep(whole, NULL) > 10);
}
