/* onnx_model.h - small ONNX models for tests, built from structs and written as bytes.
 *
 *     cfxi_onnx_node nodes[] = {NODE("Relu", (T("x")), (T("y")))};
 *     cfxi_onnx_value in[] = {FLOATS("x", 2, 3)};
 *     ...
 */
#ifndef CFX_TESTS_ONNX_MODEL_H
#define CFX_TESTS_ONNX_MODEL_H

#include "onnx/proto_impl.h"

#include <cfx/cfx.h>

#define T(text) {text, sizeof(text) - 1}
#define UNPACK(...) __VA_ARGS__
#define LIST(type, ...) {(type[]){__VA_ARGS__}, sizeof((type[]){__VA_ARGS__}) / sizeof(type)}
#define NODE(type, in, out, ...)                                                                   \
    {.op = T(type), .inputs = LIST(cfxi_text, UNPACK in), .outputs = LIST(cfxi_text, UNPACK out),  \
     __VA_ARGS__}
#define BIT(message, member) (1u << CFXI_ONNX_ROW_##message##_##member)
#define DIM(n) {.has = BIT(dim, size), .size = n}
#define TYPED(text, number, ...)                                                                   \
    {.name = T(text), .type = &(cfxi_onnx_type){.tensor = &(cfxi_onnx_tensor_type){                \
        .has = BIT(tensor_type, dtype), .dtype = number,                                           \
        .shape = &(cfxi_onnx_shape){.dims = LIST(cfxi_onnx_dim, __VA_ARGS__)}}}}

static const cfxi_onnx_opset opset_18 = {.has = BIT(opset, version), .version = 18};

/* The bytes of a model with this graph; the caller frees them. */
static inline cfx_buffer model_bytes(cfxi_onnx_graph *g, int64_t opset)
{
    cfxi_onnx_opset set = opset_18;
    cfxi_onnx_model m = {.has = BIT(model, ir_version), .ir_version = 10, .graph = g};
    cfx_buffer out;
    set.version = opset;
    m.opsets.items = &set;
    m.opsets.n = 1;
    cfx_buffer_init(&out, NULL);
    cfxi_onnx_measure(&m);
    cfxi_onnx_write_model(&m, cfx_buffer_sink(&out), NULL);
    return out;
}

#endif
