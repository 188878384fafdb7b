/* fft.c - Fourier transforms: values of lengths with small and large factors, sizes with names,
 * memory that runs out. */
#include "runtime/runtime_impl.h"

#include "test_alloc.h"

#include <math.h>
#include <string.h>

enum { LONGEST = 74 };  /* 74 = 2 x 37: a factor that is not split */

/* One at place 1, transformed: the roots of one. */
static cfx_status run(const cfx_allocator *a, void *length)
{
    cfx_error err = {0};
    double x[LONGEST] = {0, 1};
    const int64_t n = *(int64_t *)length;
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.allocator = a, .threads = 1}, &err);
    cfx_datum arg = cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT64, &n, NULL, 1, x,
                                                            false, NULL, NULL, a, &err));
    cfx_datum y = cfx_operator_run(rt, CFX_OPID_fft_fft, &arg, 1, &err);
    if (y.kind == CFX_DATUM_TENSOR) {
        const double *got = cfx_tensor_data(y.as.tensor);
        for (int64_t k = 0; k < n; k++) {
            const double angle = -6.283185307179586 * (double)k / (double)n;
            CHECK(fabs(got[2 * k] - cos(angle)) < 1e-13);
            CHECK(fabs(got[2 * k + 1] - sin(angle)) < 1e-13);
        }
    }
    cfx_datum_release(y);
    cfx_datum_release(arg);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(values_and_memory)
{
    for (int64_t n = 2; n <= LONGEST; n++)
        CHECK_INT_EQ(CFX_OK, run(NULL, &n));
    int64_t lengths[] = {12, 74};
    for (size_t i = 0; i < 2; i++)
        CHECK(test_oom_sweep(run, &lengths[i]) > 3);
}

static void check_sizes(cfx_operator op, const char *input, const char *want)
{
    cfx_dims *dims = cfx_dims_new(NULL, NULL);
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    cfx_datum arg = cfx_datum_parse(dims, input, strlen(input), NULL, NULL);
    cfx_datum y = cfx_operator_infer(rt, dims, op, &arg, 1, NULL);
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    cfx_datum_print(y, dims, cfx_buffer_sink(&text), NULL);
    CHECK_STR_EQ(want, text.data);
    cfx_buffer_free(&text);
    cfx_datum_release(y);
    cfx_datum_release(arg);
    cfx_runtime_free(rt);
    cfx_dims_free(dims);
}

TEST(sizes_with_names)
{
    check_sizes(CFX_OPID_fft_fftn, "float32[N, M]", "complex64[N, M]");
    check_sizes(CFX_OPID_fft_rfft, "float64[N, M]", "complex128[N, M//2 + 1]");
    check_sizes(CFX_OPID_fft_irfft, "complex64[N, M]", "float32[N, 2*M - 2]");
    check_sizes(CFX_OPID_fft_fftshift, "int64[N, 3]", "int64[N, 3]");
}
