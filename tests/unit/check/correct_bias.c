/* correct_bias.c - tests of src/check/correct_bias.c: which layers are corrected, and what is
 * measured. What becomes of it is in capture/calibrate.c and in the Python tests. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"

#include <cfx/correct.h>
#include <math.h>
#include <string.h>

static const char before[] =
    "graph():\n"
    " %x = placeholder[target=x]()\n"
    " %w = get_attr[target=w]()\n"
    " %conv = call_function[target=torch.conv2d](%x, %w)\n"
    " %bn = call_function[target=torch.batch_norm](%conv, %w, %w, %w, %w, False, 0.1, 1e-05, "
    "False)\n"
    " %relu = call_function[target=torch.relu](%bn)\n"
    " %kept = call_function[target=torch.conv2d](%relu, %w)\n"
    " %fc = call_function[target=torch.nn.functional.linear](%kept, %w)\n"
    " output(%fc)\n";

static const char after[] =
    "graph():\n"
    " %x = placeholder[target=x]()\n"
    " %w = get_attr[target=w_int8]()\n"
    " %wd = call_function[target=cfx.ops.dequantize_per_tensor](%w, 0.5, 0, -128, 127, "
    "torch.int8)\n"
    " %conv = call_function[target=torch.conv2d](%x, %wd)\n"
    " %relu = call_function[target=torch.relu](%conv)\n"
    " %q = call_function[target=cfx.ops.quantize_per_tensor](%relu, 0.5, 0, 0, 255, torch.uint8)\n"
    " %d = call_function[target=cfx.ops.dequantize_per_tensor](%q, 0.5, 0, 0, 255, torch.uint8)\n"
    " %v = get_attr[target=w]()\n"
    " %kept = call_function[target=torch.conv2d](%d, %v)\n"
    " %fc = call_function[target=torch.nn.functional.linear](%kept, %wd)\n"
    " %fq = call_function[target=cfx.ops.quantize_per_tensor](%fc, 0.5, 0, 0, 255, torch.uint8)\n"
    " %fd = call_function[target=cfx.ops.dequantize_per_tensor](%fq, 0.5, 0, 0, 255, torch.uint8)\n"
    " output(%fd)\n";

static cfx_graph *parse(const char *text, const cfx_allocator *allocator, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), allocator, NULL, err);
}

static cfx_correction *correction(const cfx_allocator *allocator, cfx_error *err)
{
    cfx_graph *x = parse(before, allocator, err);
    cfx_graph *y = x ? parse(after, allocator, err) : NULL;
    cfx_correction *c = y ? cfx_correction_new(x, y, allocator, err) : NULL;
    cfx_graph_release(x);
    cfx_graph_release(y);
    return c;
}

/* [2, 2, 1, 2]: two channels, four elements of each. */
static cfx_tensor *image(const float *data)
{
    static const int64_t sizes[] = {2, 2, 1, 2};
    return cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, NULL, 4, (void *)data, true, NULL, NULL,
                                  NULL, NULL);
}

/* The shift that was measured for layer 0: its channels in `out`, or 0 of them. */
static size_t meet(cfx_correction *c, const float *a, const float *b, float out[2])
{
    cfx_error err = {0};
    cfx_tensor *x = image(a);
    cfx_tensor *y = image(b);
    cfx_tensor *shift = NULL;
    CHECK_INT_EQ(CFX_OK, cfx_correction_expect(c, 0, x, &err));
    CHECK_INT_EQ(CFX_OK, cfx_correction_meet(c, 0, y, &shift, &err));
    const size_t n = shift ? (size_t)cfx_tensor_numel(shift) : 0;
    if (shift) {
        CHECK_INT_EQ(3, (long long)cfx_tensor_ndim(shift));
        memcpy(out, cfx_tensor_data(shift), n * sizeof *out);
    }
    cfx_tensor_release(shift);
    cfx_tensor_release(y);
    cfx_tensor_release(x);
    return n;
}

TEST(layers_with_integers_are_corrected_before_activations)
{
    cfx_error err = {0};
    cfx_node *a;
    cfx_node *b;
    cfx_correction *c = correction(NULL, &err);
    CHECK(cfx_correction_pair(c, 0, &a, &b));
    CHECK_STR_EQ("bn", cfx_node_name(a, NULL));
    CHECK_STR_EQ("conv", cfx_node_name(b, NULL));
    CHECK(cfx_correction_pair(c, 1, &a, &b));
    CHECK_STR_EQ("fc", cfx_node_name(a, NULL));
    CHECK_STR_EQ("fc", cfx_node_name(b, NULL));
    CHECK(!cfx_correction_pair(c, 2, &a, &b));
    cfx_correction_free(c);
}

TEST(means_of_channels_are_measured)
{
    static const float a[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const float b[] = {2, 3, 3, 4, 6, 7, 6, 7};
    static const float bad[] = {1, 2, NAN, 4, 5, 6, 7, 8};
    float out[2];
    cfx_error err = {0};
    cfx_correction *c = correction(NULL, &err);
    CHECK_INT_EQ(2, (long long)meet(c, a, b, out));
    CHECK(out[0] == 1.0F && out[1] == -0.5F);
    CHECK_INT_EQ(0, (long long)meet(c, bad, b, out));
    CHECK_INT_EQ(0, (long long)meet(c, a, bad, out));
    cfx_correction_free(c);
}

TEST(what_does_not_fit_is_not_measured)
{
    static const float a[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const int64_t short_size[] = {4, 1, 1};
    cfx_error err = {0};
    cfx_correction *c = correction(NULL, &err);
    cfx_tensor *x = image(a);
    cfx_tensor *other = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, short_size, NULL, 3, (void *)a,
                                               true, NULL, NULL, NULL, NULL);
    cfx_tensor *shift = NULL;
    CHECK_INT_EQ(CFX_OK, cfx_correction_meet(c, 0, x, &shift, &err));  /* not expected */
    CHECK(shift == NULL);
    CHECK_INT_EQ(CFX_OK, cfx_correction_expect(c, 0, x, &err));
    CHECK_INT_EQ(CFX_OK, cfx_correction_meet(c, 0, other, &shift, &err));
    CHECK(shift == NULL);
    CHECK_INT_EQ(CFX_OK, cfx_correction_expect(c, 0, NULL, &err));
    CHECK_INT_EQ(CFX_OK, cfx_correction_expect(c, 0, other, &err));  /* four channels now */
    CHECK_INT_EQ(CFX_OK, cfx_correction_meet(c, 0, other, &shift, &err));
    CHECK(shift == NULL);
    CHECK_INT_EQ(CFX_E_INDEX, cfx_correction_expect(c, 2, x, &err));
    CHECK_INT_EQ(CFX_E_INDEX, cfx_correction_meet(c, 2, x, &shift, &err));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_correction_expect(NULL, 0, x, NULL));
    cfx_tensor_release(other);
    cfx_tensor_release(x);
    cfx_correction_free(c);
}

TEST(a_correction_needs_modules_and_a_run)
{
    cfx_error err = {0};
    const cfx_module_tree none = {0};
    cfx_correction *c = correction(NULL, &err);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_correction_finish(c, NULL, NULL, &err));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_correction_finish(c, &none, NULL, &err));
    CHECK(strstr(err.message, "no layer was run") != NULL);
    cfx_correction_free(c);
    cfx_correction_free(NULL);
    CHECK(cfx_correction_new(NULL, NULL, NULL, &err) == NULL);
}

static cfx_status whole(const cfx_allocator *allocator, void *arg)
{
    static const float a[] = {1, 2, 3, 4, 5, 6, 7, 8};
    cfx_error err = {0};
    cfx_tensor *shift = NULL;
    cfx_correction *c = correction(allocator, &err);
    cfx_tensor *x = image(a);
    (void)arg;
    cfx_status status = c ? cfx_correction_expect(c, 0, x, &err) : err.status;
    if (status == CFX_OK)
        status = cfx_correction_meet(c, 0, x, &shift, &err);
    cfx_tensor_release(shift);
    cfx_tensor_release(x);
    cfx_correction_free(c);
    return status;
}

TEST(memory_may_run_out_anywhere)
{
    CHECK(test_oom_sweep(whole, NULL) > 10);
}
