/* proto_table.c - proto.def as data: what the reader and the writer go by. */
#include "proto_impl.h"

#include <stddef.h>

#define CFX_ONNX_MESSAGE(message)                                                                  \
    extern const cfxi_proto_table cfxi_onnx_table_##message;                                       \
    _Static_assert(offsetof(cfxi_onnx_##message, bytes) == offsetof(cfxi_proto_head, bytes), "");  \
    _Static_assert(CFXI_ONNX_ROWS_##message <= 32, "a bit of `has` for each row");
#define CFX_ONNX_FIELD(message, number, kind, member, of)
#include "proto.def"

#define TABLE_OF(of) TABLE_OF_##of
#define TABLE_OF_none NULL
#define TABLE_OF_entry &cfxi_onnx_table_entry
#define TABLE_OF_opset &cfxi_onnx_table_opset
#define TABLE_OF_dim &cfxi_onnx_table_dim
#define TABLE_OF_shape &cfxi_onnx_table_shape
#define TABLE_OF_tensor_type &cfxi_onnx_table_tensor_type
#define TABLE_OF_item_type &cfxi_onnx_table_item_type
#define TABLE_OF_type &cfxi_onnx_table_type
#define TABLE_OF_value &cfxi_onnx_table_value
#define TABLE_OF_tensor &cfxi_onnx_table_tensor
#define TABLE_OF_sparse &cfxi_onnx_table_sparse
#define TABLE_OF_attribute &cfxi_onnx_table_attribute
#define TABLE_OF_node &cfxi_onnx_table_node
#define TABLE_OF_graph &cfxi_onnx_table_graph
#define TABLE_OF_function &cfxi_onnx_table_function

#define CFX_ONNX_MESSAGE(message) static const cfxi_proto_row rows_of_##message[] = {
#define CFX_ONNX_FIELD(message, number, kind, member, of)                                          \
    {number, CFXI_PROTO_##kind, offsetof(cfxi_onnx_##message, member), TABLE_OF(of)},
#define CFX_ONNX_END(message) };
#include "proto.def"

#define CFX_ONNX_MESSAGE(message)                                                                  \
    const cfxi_proto_table cfxi_onnx_table_##message = {                                           \
        #message, rows_of_##message, CFXI_ONNX_ROWS_##message, sizeof(cfxi_onnx_##message)};
#define CFX_ONNX_FIELD(message, number, kind, member, of)
#include "proto.def"
