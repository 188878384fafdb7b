/* print.c - tensors as text. What torch prints for thousands of tensors is compared in Python. */
#include "runtime/runtime_impl.h"

#include "check.h"
#include "test_alloc.h"

#include <locale.h>
#include <math.h>

static void check_print(const char *want, const cfx_tensor *t)
{
    cfx_error err = {0};
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_tensor_print(t, cfx_buffer_sink(&text), &err));
    CHECK_STR_EQ(want, text.data);
    cfx_buffer_free(&text);
}

static void check_floats(const char *want, const float *data, const int64_t *sizes, size_t ndim)
{
    cfx_error err = {0};
    cfx_tensor *t = cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, NULL, ndim,
                                           (void *)(uintptr_t)data, true, NULL, NULL, NULL, &err);
    check_print(want, t);
    cfx_tensor_release(t);
}

TEST(numbers)
{
    const int64_t two[] = {2};
    const int64_t square[] = {2, 2};
    check_floats("tensor(1.5000)", (const float[]){1.5f}, NULL, 0);
    check_floats("tensor([1., 2.])", (const float[]){1, 2}, two, 1);
    check_floats("tensor([1.0000, 2.5000])", (const float[]){1, 2.5f}, two, 1);
    check_floats("tensor([1.0000e+00, 2.0000e+04])", (const float[]){1, 20000}, two, 1);
    check_floats("tensor([1.0000e-05, 2.0000e-05])", (const float[]){1e-5f, 2e-5f}, two, 1);
    check_floats("tensor([nan, -inf])", (const float[]){NAN, -INFINITY}, two, 1);
    check_floats("tensor([[ 1.0000, -2.5000],\n        [ 0.0000,  4.0000]])",
                 (const float[]){1, -2.5f, 0, 4}, square, 2);
}

TEST(types_and_sizes)
{
    cfx_error err = {0};
    const int64_t none[] = {0, 3};
    const int64_t two[] = {2};
    double complex_data[] = {1, -2, 0.5, 3};
    uint8_t flags[] = {1, 0};
    cfx_tensor *empty = cfx_tensor_new(CFX_DTYPE_INT64, none, 2, NULL, &err);
    check_print("tensor([], size=(0, 3), dtype=torch.int64)", empty);
    cfx_tensor *abstract = cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, two, 1, NULL, &err);
    check_print("tensor(..., size=(2,))", abstract);
    cfx_tensor *complex = cfx_tensor_from_memory(CFX_DTYPE_COMPLEX128, two, NULL, 1, complex_data,
                                                 false, NULL, NULL, NULL, &err);
    check_print("tensor([1.0000-2.j, 0.5000+3.j], dtype=torch.complex128)", complex);
    cfx_tensor *truth = cfx_tensor_from_memory(CFX_DTYPE_BOOL, two, NULL, 1, flags, false, NULL,
                                               NULL, NULL, &err);
    check_print("tensor([ True, False])", truth);
    cfx_tensor_release(empty);
    cfx_tensor_release(abstract);
    cfx_tensor_release(complex);
    cfx_tensor_release(truth);
}

TEST(the_middle_is_left_out)
{
    cfx_error err = {0};
    const int64_t sizes[] = {1001};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_INT32, sizes, 1, NULL, &err);
    REQUIRE(t);
    for (int i = 0; i < 1001; i++)
        ((int32_t *)cfx_tensor_data(t))[i] = i;
    check_print("tensor([   0,    1,    2,  ...,  998,  999, 1000], dtype=torch.int32)", t);
    cfx_tensor_release(t);
}

/* A locale with a comma must not change numbers; where none is installed this checks nothing. */
TEST(locales_do_not_matter)
{
    setlocale(LC_NUMERIC, "de_DE.UTF-8");
    check_floats("tensor(1.5000)", (const float[]){1.5f}, NULL, 0);
    setlocale(LC_NUMERIC, "C");
}

static cfx_status fail(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return CFX_E_IO;
}

TEST(a_sink_that_fails)
{
    cfx_error err = {0};
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT64, NULL, 0, NULL, &err);
    *(double *)cfx_tensor_data(t) = 1;
    CHECK_INT_EQ(CFX_E_IO, cfx_tensor_print(t, (cfx_sink){fail, NULL}, &err));
    cfx_tensor_release(t);
}
