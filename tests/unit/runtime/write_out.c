/* write_out.c - results that go to a tensor that is there: what fits, what is resized, what is
 * not. */
#include <cfx/runtime.h>

#include "test_alloc.h"

typedef struct sample {
    cfx_dtype out;
    int64_t sizes[2];
    size_t ndim;
    bool same_dtype;
    bool resize;
    const char *want;  /* the message; "": it is `out` that comes back, "new": another tensor */
} sample;

/* Writes float32[2, 3] to the sample's tensor. */
static cfx_status write(const sample *s, const cfx_allocator *a, cfx_error *err)
{
    float data[] = {1, 2, 3, 4, 5, 6};
    int64_t sizes[] = {2, 3};
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.allocator = a, .threads = 1}, err);
    cfx_tensor *out = rt ? cfx_tensor_new(s->out, s->sizes, s->ndim, a, err) : NULL;
    cfx_tensor *result = out ? cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, NULL, 2, data,
                                                      false, NULL, NULL, a, err) : NULL;
    if (result) {
        const cfx_datum args[] = {cfx_datum_tensor(out), cfx_datum_tensor(result),
                                  cfx_datum_scalar(CFX_DATUM_BOOL, s->same_dtype),
                                  cfx_datum_scalar(CFX_DATUM_BOOL, s->resize)};
        cfx_datum y = cfx_operator_run(rt, CFX_OPID_write_out, args, 4, err);
        if (y.kind == CFX_DATUM_TENSOR) {
            CHECK_INT_EQ(*s->want == '\0', y.as.tensor == out);
            CHECK_INT_EQ(s->out, cfx_tensor_dtype(y.as.tensor));
            CHECK_INT_EQ(6, cfx_tensor_numel(y.as.tensor));
            if (s->out == CFX_DTYPE_FLOAT64)
                CHECK(((const double *)cfx_tensor_data(y.as.tensor))[5] == 6);
        }
        cfx_datum_release(y);
    }
    cfx_tensor_release(result);
    cfx_tensor_release(out);
    cfx_runtime_free(rt);
    return err->status;
}

TEST(what_fits_and_what_does_not)
{
    static const sample samples[] = {
        {CFX_DTYPE_FLOAT32, {2, 3}, 2, true, false, ""},
        {CFX_DTYPE_FLOAT64, {2, 3}, 2, false, false, ""},
        {CFX_DTYPE_FLOAT64,
         {2, 3},
         2,
         true,
         false,
         "Expected out tensor to have dtype float32, but got float64 instead"},
        {CFX_DTYPE_INT32,
         {2, 3},
         2,
         false,
         true,
         "result type float32 can't be cast to the desired output type int32"},
        {CFX_DTYPE_FLOAT64, {0}, 1, false, true, "new"},
        {CFX_DTYPE_FLOAT32, {0, 3}, 2, true, true, "new"},
        {CFX_DTYPE_FLOAT32,
         {0},
         1,
         false,
         false,
         "'out' has a different shape from the result and is an input, which cannot be resized; "
         "pass a tensor of the result's shape"},
        {CFX_DTYPE_FLOAT32,
         {1, 3},
         2,
         false,
         true,
         "'out' has a different shape from the result; pass a tensor of the result's shape"},
        {CFX_DTYPE_FLOAT32,
         {6},
         1,
         false,
         true,
         "'out' has a different shape from the result; pass a tensor of the result's shape"},
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        cfx_error err = {0};
        const bool fits = strlen(samples[i].want) < 4;
        CHECK_INT_EQ(fits ? CFX_OK : CFX_E_SHAPE, write(&samples[i], NULL, &err));
        CHECK(fits || strstr(err.message, samples[i].want) != NULL);
    }
}

static cfx_status write_new(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    return write(arg, a, &err);
}

TEST(every_allocation_may_fail)
{
    sample s = {CFX_DTYPE_FLOAT64, {0}, 1, false, true, "new"};
    CHECK(test_oom_sweep(write_new, &s) > 2);
}
