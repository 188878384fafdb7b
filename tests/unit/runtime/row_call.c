/* row_call.c - one operator: arguments, rule, kernel, messages. */
#include "runtime/runtime_impl.h"

#include "check.h"

#include <cfx/embed/dlpack.h>
#include <cfx/lower.h>

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
    CHECK_STR_EQ("relu(): argument 'self' must be Tensor, not None", err.message);
    cfx_datum_release(same);
    cfx_datum_release(y);
    cfx_datum_release(x);
    cfx_runtime_free(rt);
}

/* As everywhere in the library: who is given what a failed call returned fails, and the error has
 * the first reason. */
TEST(a_chain_of_calls_keeps_the_first_reason)
{
    cfx_error err = {0};
    int64_t huge[] = {INT64_MAX, 2};
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    cfx_tensor *none = cfx_tensor_new(CFX_DTYPE_FLOAT32, huge, 2, NULL, &err);
    const cfx_error first = err;
    cfx_datum x = cfx_datum_tensor(none);
    CHECK(first.status == CFX_E_SHAPE);
    CHECK(cfx_operator_run(rt, CFX_OPID_relu, &x, 1, &err).kind == CFX_DATUM_INVALID);
    CHECK(cfx_program_run(NULL, rt, &x, 1, &err).kind == CFX_DATUM_INVALID);
    CHECK(!cfx_program_new(NULL, NULL, NULL, &err));
    CHECK(!cfx_tensor_view(none, CFX_DTYPE_BOOL, NULL, NULL, 0, 0, &err));
    CHECK(!cfx_tensor_to_dlpack(none, &err));
    CHECK(cfx_state_set(NULL, "x", none, &err) == CFX_E_SHAPE);
    CHECK(cfx_graph_lower(NULL, NULL, NULL, &err) == CFX_E_SHAPE);
    CHECK_STR_EQ(first.message, err.message);
    cfx_datum two = cfx_datum_int(2);  /* a call that goes well leaves it, too */
    cfx_datum root = cfx_operator_run(rt, CFX_OPID_math_sqrt, &two, 1, &err);
    CHECK(root.kind == CFX_DATUM_FLOAT);
    CHECK_STR_EQ(first.message, err.message);
    err = (cfx_error){0};
    CHECK(cfx_operator_run(NULL, CFX_OPID_relu, &x, 1, &err).kind == CFX_DATUM_INVALID);
    CHECK(strstr(err.message, "the runtime is NULL"));
    cfx_runtime_free(rt);
}
