/* proto_impl.h - ONNX files in memory: the messages of proto.def, read and written.
 *
 * A message is a struct cfxi_onnx_<message> with one member for each row. What is absent is zero,
 * an empty list or NULL; CFXI_ONNX_HAS tells an absent number from 0. Text points into the bytes
 * that were read. Everything else is in one arena, so that a model is freed as a whole.
 */
#ifndef CFXI_ONNX_PROTO_IMPL_H
#define CFXI_ONNX_PROTO_IMPL_H

#include "base/base_impl.h"

#include <cfx/tensor.h>

/* Text of a file: not terminated, valid UTF-8 where the standard wants that. */
typedef struct cfxi_text {
    const char *data;
    size_t size;
} cfxi_text;

#define CFXI_TEXT(literal) ((cfxi_text){literal, sizeof(literal) - 1})
static inline bool cfxi_onnx_is(cfxi_text t, const char *word)
{
    return t.size == strlen(word) && memcmp(t.data, word, t.size) == 0;
}
static inline bool cfxi_onnx_same(cfxi_text a, cfxi_text b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Elements of a tensor: bytes of the file; or, to be written, a tensor, which is borrowed. */
typedef struct cfxi_onnx_elements {
    const char *data;
    size_t size;
    const cfx_tensor *from;
} cfxi_onnx_elements;

#define CFX_ONNX_MESSAGE(message) typedef struct cfxi_onnx_##message cfxi_onnx_##message;
#define CFX_ONNX_FIELD(message, number, kind, member, of)
#include "proto.def"

/* The C type of each kind of member. */
#define CFXI_ONNX_LIST(type) struct { type *items; size_t n; }
#define CFXI_ONNX_INT(of) int64_t
#define CFXI_ONNX_FLOAT(of) float
#define CFXI_ONNX_TEXT(of) cfxi_text
#define CFXI_ONNX_DATA(of) cfxi_text
#define CFXI_ONNX_ELEMENTS(of) cfxi_onnx_elements
#define CFXI_ONNX_MESSAGE(of) cfxi_onnx_##of *
#define CFXI_ONNX_INTS(of) CFXI_ONNX_LIST(int64_t)
#define CFXI_ONNX_FLOATS(of) CFXI_ONNX_LIST(float)
#define CFXI_ONNX_DOUBLES(of) CFXI_ONNX_LIST(double)
#define CFXI_ONNX_TEXTS(of) CFXI_ONNX_LIST(cfxi_text)
#define CFXI_ONNX_DATAS(of) CFXI_ONNX_LIST(cfxi_text)
#define CFXI_ONNX_MESSAGES(of) CFXI_ONNX_LIST(cfxi_onnx_##of)

/* `has` has a bit for each row that was read or is to be written, in their order; `bytes` is the
 * size in the file. */
#define CFX_ONNX_MESSAGE(message) struct cfxi_onnx_##message { uint32_t has; uint64_t bytes;
#define CFX_ONNX_FIELD(message, number, kind, member, of) CFXI_ONNX_##kind(of) member;
#define CFX_ONNX_END(message) };
#include "proto.def"

/* The row of a member within its message. */
#define CFX_ONNX_MESSAGE(message) enum {
#define CFX_ONNX_FIELD(message, number, kind, member, of) CFXI_ONNX_ROW_##message##_##member,
#define CFX_ONNX_END(message) CFXI_ONNX_ROWS_##message };
#include "proto.def"

#define CFXI_ONNX_HAS(what, message, member)                                                       \
    (((what)->has >> CFXI_ONNX_ROW_##message##_##member & 1) != 0)
/* Sets an INT or FLOAT so that it is written even if it is 0. */
#define CFXI_ONNX_SET(what, message, member, x)                                                    \
    ((what)->member = (x), (what)->has |= 1u << CFXI_ONNX_ROW_##message##_##member)

typedef enum cfxi_onnx_attribute_kind {
    CFXI_ONNX_ATTR_FLOAT = 1,
    CFXI_ONNX_ATTR_INT = 2,
    CFXI_ONNX_ATTR_TEXT = 3,
    CFXI_ONNX_ATTR_TENSOR = 4,
    CFXI_ONNX_ATTR_GRAPH = 5,
    CFXI_ONNX_ATTR_FLOATS = 6,
    CFXI_ONNX_ATTR_INTS = 7,
    CFXI_ONNX_ATTR_TEXTS = 8,
    CFXI_ONNX_ATTR_TENSORS = 9,
    CFXI_ONNX_ATTR_GRAPHS = 10,
    CFXI_ONNX_ATTR_SPARSE = 11,
    CFXI_ONNX_ATTR_SPARSES = 12,
    CFXI_ONNX_ATTR_TYPE = 13,
    CFXI_ONNX_ATTR_TYPES = 14
} cfxi_onnx_attribute_kind;

/* ---- the rows as data (proto_table.c) ------------------------------------------------------ */

typedef enum cfxi_proto_kind {
    CFXI_PROTO_INT, CFXI_PROTO_FLOAT, CFXI_PROTO_TEXT, CFXI_PROTO_DATA, CFXI_PROTO_ELEMENTS,
    CFXI_PROTO_MESSAGE,
    CFXI_PROTO_INTS, CFXI_PROTO_FLOATS, CFXI_PROTO_DOUBLES,  /* lists, packed or item by item */
    CFXI_PROTO_TEXTS, CFXI_PROTO_DATAS, CFXI_PROTO_MESSAGES
} cfxi_proto_kind;

typedef struct cfxi_proto_row {
    uint32_t number;
    cfxi_proto_kind kind;
    uint32_t offset;                    /* of the member */
    const struct cfxi_proto_table *of;  /* NULL if it is not a message */
} cfxi_proto_row;

typedef struct cfxi_proto_table {
    const char *name;
    const cfxi_proto_row *rows;
    uint32_t num_rows;  /* at most 32 */
    uint32_t size;      /* of the struct */
} cfxi_proto_table;

/* What every message begins with. */
typedef struct cfxi_proto_head {
    uint32_t has;
    uint64_t bytes;
} cfxi_proto_head;

/* What every list is. */
typedef struct cfxi_proto_list {
    void *items;
    size_t n;
} cfxi_proto_list;

extern const cfxi_proto_table cfxi_onnx_table_model, cfxi_onnx_table_node, cfxi_onnx_table_graph;

/* ---- reading (proto_read.c) ---------------------------------------------------------------- */

/* Messages nested deeper than this are refused: 80 graphs in one another. */
enum { CFXI_ONNX_DEPTH = 250 };

/* Reads a model; text points into `data`, which must outlive it, and everything else is in the
 * arena. NULL with *err set: CFX_E_VALUE with the byte, and the node if it is in one, for what is
 * cut off, damaged, nested too deep, or text that is not UTF-8; CFX_E_NOMEM. Memory is at most some
 * 20 times `size`. */
cfxi_onnx_model *cfxi_onnx_read_model(const char *data, size_t size, cfxi_arena *arena,
                                      cfx_error *err);

/* ---- writing (proto_write.c) --------------------------------------------------------------- */

/* The bytes of a model in a file; sets `bytes` of each message. */
uint64_t cfxi_onnx_measure(cfxi_onnx_model *m);
/* The same, after elements of initializers were aligned: those of CFXI_ONNX_SMALL bytes and more.
 * They have no descriptions but those that this gives them. */
uint64_t cfxi_onnx_align(cfxi_onnx_model *m);
enum { CFXI_ONNX_ALIGNMENT = 64, CFXI_ONNX_SMALL = 1024 };
/* Writes a model that was measured and has not changed since. Elements go from their tensors to the
 * sink. */
cfx_status cfxi_onnx_write_model(const cfxi_onnx_model *m, cfx_sink out, cfx_error *err);

/* ---- tensors (onnx_tensor.c) --------------------------------------------------------------- */

/* The type of cfx for a number of the standard; CFX_DTYPE_COUNT if there is none (strings). */
cfx_dtype cfxi_onnx_dtype(int64_t number);
/* The number for a type of cfx; 0 if ONNX has none. */
int64_t cfxi_onnx_dtype_number(cfx_dtype dtype);
/* "float", "int4"; "type 99" is "unknown". */
const char *cfxi_onnx_dtype_name(int64_t number);
/* Bits of one element of a type that ONNX packs (int4); 0 for the others. */
int cfxi_onnx_narrow_bits(int64_t number);

/* Where elements come from: the bytes of the model, and the folder for external files. */
typedef struct cfxi_onnx_source {
    struct cfxi_bytes *bytes;   /* that the model was read from: tensors may point into them */
    const char *folder;         /* of external files; NULL: there are none */
    bool read_only;             /* files that are mapped */
    struct cfxi_onnx_files *files;  /* those that are open */
    const cfx_allocator *allocator;
} cfxi_onnx_source;

void cfxi_onnx_source_close(cfxi_onnx_source *s);

/* A new reference to the elements of a message, in whichever way it has them. They are not copied
 * where their alignment allows it. NULL with *err set: CFX_E_VALUE for elements that do not fit the
 * sizes, a type that cfx lacks, or a file outside the folder; CFX_E_IO; CFX_E_NOMEM. The message
 * names the tensor. */
cfx_tensor *cfxi_onnx_tensor_of(cfxi_onnx_source *s, const cfxi_onnx_tensor *t, cfx_error *err);
cfx_tensor *cfxi_onnx_tensor_of_sparse(cfxi_onnx_source *s, const cfxi_onnx_sparse *t,
                                       cfx_error *err);

#endif
