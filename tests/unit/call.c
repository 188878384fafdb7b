/* call.c - one operator: arguments, rule, kernel, messages. */
#include "runtime/runtime_impl.h"

#include "check.h"

TEST(an_operator_runs)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    int64_t sizes[] = {2, 2};
    float data[] = {-1, 2, -3, 4};
    cfx_datum x = cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, NULL, 2, data,
                                                          false, NULL, NULL, NULL, &err));
    cfx_datum y = cfx_operator_run(rt, CFX_OPID_relu, &x, 1, &err);
    CHECK(y.kind == CFX_DATUM_TENSOR);
    const float *got = cfx_tensor_data(y.as.tensor);
    CHECK(got[0] == 0 && got[1] == 2 && got[2] == 0 && got[3] == 4);
    cfx_datum n = cfx_operator_run(rt, CFX_OPID_numel, &x, 1, &err);
    CHECK(n.kind == CFX_DATUM_INT && n.as.i == 4);
    cfx_datum same = cfx_operator_run(rt, CFX_OPID_relu_, &x, 1, &err);
    CHECK(same.as.tensor == x.as.tensor && data[0] == 0);
    cfx_datum none = cfx_datum_none();
    cfx_datum bad = cfx_operator_run(rt, CFX_OPID_relu, &none, 1, &err);
    CHECK(bad.kind == CFX_DATUM_INVALID);
    CHECK_STR_EQ("relu(): 'self' must be Tensor, not None", err.message);
    cfx_datum_release(same);
    cfx_datum_release(y);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
}
