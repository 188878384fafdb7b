/* proto_write.c - writes ONNX files: the wire format of protobuf, by the rows of proto.def.
 *
 * The size of a message stands before it, so sizes are measured first, from the inside out, and
 * kept in the messages. Elements of tensors go to the sink from where they are.
 */
#include "proto_impl.h"

#include "format/format_impl.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_SIZED = 2, WIRE_32 = 5 };

static uint64_t varint_size(uint64_t v)
{
    uint64_t n = 1;
    for (; v >= 128; v >>= 7)
        n++;
    return n;
}

static uint64_t tag_size(const cfxi_proto_row *row)
{
    return varint_size((uint64_t)row->number << 3);
}

/* A value of `size` bytes with its tag and its size. */
static uint64_t sized(const cfxi_proto_row *row, uint64_t size)
{
    return tag_size(row) + varint_size(size) + size;
}

static uint64_t elements_size(const cfxi_onnx_elements *e)
{
    return e->from ? (uint64_t)cfx_tensor_numel(e->from) * cfx_dtype_size(cfx_tensor_dtype(e->from))
                   : e->size;
}

/* The bytes of a list of numbers when they are packed. */
static uint64_t packed_size(const cfxi_proto_row *row, const cfxi_proto_list *list)
{
    uint64_t size = 0;
    if (row->kind == CFXI_PROTO_FLOATS)
        return 4 * (uint64_t)list->n;
    if (row->kind == CFXI_PROTO_DOUBLES)
        return 8 * (uint64_t)list->n;
    for (size_t i = 0; i < list->n; i++)
        size += varint_size((uint64_t)((const int64_t *)list->items)[i]);
    return size;
}

/* Whether a member is written: lists that have items, and what is there. */
static bool is_given(const cfxi_proto_row *row, const void *member, bool has)
{
    switch (row->kind) {
    case CFXI_PROTO_INT: return has || *(const int64_t *)member != 0;
    case CFXI_PROTO_FLOAT: return has || *(const float *)member != 0;
    case CFXI_PROTO_TEXT: case CFXI_PROTO_DATA: return has || ((const cfxi_text *)member)->size > 0;
    case CFXI_PROTO_ELEMENTS: return has || elements_size(member) > 0;
    case CFXI_PROTO_MESSAGE: return *(void *const *)member != NULL;
    case CFXI_PROTO_INTS: case CFXI_PROTO_FLOATS: case CFXI_PROTO_DOUBLES:
    case CFXI_PROTO_TEXTS: case CFXI_PROTO_DATAS: case CFXI_PROTO_MESSAGES:
        return ((const cfxi_proto_list *)member)->n > 0;
    }
    return false;
}

/* ---- measuring ----------------------------------------------------------------------------- */

static uint64_t measure(const cfxi_proto_table *table, void *message);

static uint64_t measure_list(const cfxi_proto_row *row, const cfxi_proto_list *list)
{
    uint64_t size = 0;
    for (size_t i = 0; i < list->n; i++)
        size += sized(row, row->kind == CFXI_PROTO_MESSAGES
                               ? measure(row->of, (char *)list->items + i * row->of->size)
                               : ((const cfxi_text *)list->items)[i].size);
    return size;
}

static uint64_t measure_member(const cfxi_proto_row *row, void *member)
{
    switch (row->kind) {
    case CFXI_PROTO_INT: return tag_size(row) + varint_size((uint64_t)*(int64_t *)member);
    case CFXI_PROTO_FLOAT: return tag_size(row) + 4;
    case CFXI_PROTO_TEXT: case CFXI_PROTO_DATA: return sized(row, ((cfxi_text *)member)->size);
    case CFXI_PROTO_ELEMENTS: return sized(row, elements_size(member));
    case CFXI_PROTO_MESSAGE: return sized(row, measure(row->of, *(void **)member));
    case CFXI_PROTO_INTS: case CFXI_PROTO_FLOATS: case CFXI_PROTO_DOUBLES:
        return sized(row, packed_size(row, member));
    case CFXI_PROTO_TEXTS: case CFXI_PROTO_DATAS: case CFXI_PROTO_MESSAGES:
        return measure_list(row, member);
    }
    return 0;
}

static uint64_t measure(const cfxi_proto_table *table, void *message)
{
    cfxi_proto_head *head = message;
    head->bytes = 0;
    for (uint32_t i = 0; i < table->num_rows; i++) {
        const cfxi_proto_row *row = &table->rows[i];
        void *member = (char *)message + row->offset;
        if (is_given(row, member, head->has >> i & 1))
            head->bytes += measure_member(row, member);
    }
    return head->bytes;
}

uint64_t cfxi_onnx_measure(cfxi_onnx_model *m) { return measure(&cfxi_onnx_table_model, m); }

/* ---- alignment ----------------------------------------------------------------------------- */

/* Elements can be used where they are in a mapped file only if they are aligned, and protobuf has
 * no padding. So the description of a tensor, which stands before its elements, is made of as many
 * spaces as they need. Every reader takes that. */
static const char spaces[] = "                                                                 "
                             "                                                               ";
enum { MOST_SPACES = sizeof spaces - 1 };  /* their number takes one byte */

/* Bytes of a description of `n` spaces. */
static uint64_t padding(size_t n) { return n ? 2 + n : 0; }

static uint64_t members_before(const cfxi_proto_table *table, void *message, uint32_t row)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < row; i++) {
        void *member = (char *)message + table->rows[i].offset;
        if (is_given(&table->rows[i], member, ((cfxi_proto_head *)message)->has >> i & 1))
            size += measure_member(&table->rows[i], member);
    }
    return size;
}

/* A tensor that was measured and is written at byte `at`; returns where the next one is. */
static uint64_t align_tensor(const cfxi_proto_row *row, cfxi_onnx_tensor *t, uint64_t at)
{
    const uint64_t elements = elements_size(&t->raw);
    const uint64_t bare = t->bytes - padding(t->doc.size);
    if (elements < CFXI_ONNX_SMALL)
        return at + sized(row, t->bytes);
    for (size_t n = 0; n <= MOST_SPACES; n++) {
        const uint64_t end = at + sized(row, bare + padding(n));
        if ((end - elements) % CFXI_ONNX_ALIGNMENT != 0)
            continue;
        t->doc = (cfxi_text){spaces, n};
        return end;
    }
    return at + sized(row, t->bytes);
}

/* Elements are the last of a tensor, and the graph is the last of a model. The width of the graph's
 * size stands before all of them, and may grow with what they need: then it is done once more. */
uint64_t cfxi_onnx_align(cfxi_onnx_model *m)
{
    const uint32_t number = CFXI_ONNX_ROW_graph_initializers;
    const cfxi_proto_row *row = &cfxi_onnx_table_graph.rows[number];
    uint64_t size = cfxi_onnx_measure(m);
    uint64_t start = 0;
    for (int round = 0; round < 3 && start != size - m->graph->bytes; round++) {
        start = size - m->graph->bytes;
        uint64_t at = start + members_before(&cfxi_onnx_table_graph, m->graph, number);
        for (size_t i = 0; i < m->graph->initializers.n; i++)
            at = align_tensor(row, &m->graph->initializers.items[i], at);
        size = cfxi_onnx_measure(m);
    }
    return size;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void write_message(cfxi_out *out, const cfxi_proto_table *table, const void *message);

static void write_varint(cfxi_out *out, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        cfxi_base_out_char(out, (char)(v | 128));
    cfxi_base_out_char(out, (char)v);
}

static void write_fixed(cfxi_out *out, uint64_t bits, int bytes)
{
    for (int i = 0; i < bytes; i++)
        cfxi_base_out_char(out, (char)(bits >> 8 * i));
}

static void write_tag(cfxi_out *out, const cfxi_proto_row *row, int wire)
{
    write_varint(out, (uint64_t)row->number << 3 | (uint64_t)wire);
}

static void write_size(cfxi_out *out, const cfxi_proto_row *row, uint64_t size)
{
    write_tag(out, row, WIRE_SIZED);
    write_varint(out, size);
}

static uint64_t float_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static void write_packed(cfxi_out *out, const cfxi_proto_row *row, const cfxi_proto_list *list)
{
    write_size(out, row, packed_size(row, list));
    for (size_t i = 0; i < list->n; i++) {
        uint64_t bits;
        if (row->kind == CFXI_PROTO_INTS) {
            write_varint(out, (uint64_t)((const int64_t *)list->items)[i]);
        } else if (row->kind == CFXI_PROTO_FLOATS) {
            write_fixed(out, float_bits(((const float *)list->items)[i]), 4);
        } else {
            memcpy(&bits, &((const double *)list->items)[i], sizeof bits);
            write_fixed(out, bits, 8);
        }
    }
}

static void write_text(cfxi_out *out, const cfxi_proto_row *row, cfxi_text t)
{
    write_size(out, row, t.size);
    cfxi_base_out_write(out, t.data, t.size);
}

static void write_inner(cfxi_out *out, const cfxi_proto_row *row, const void *message)
{
    write_size(out, row, ((const cfxi_proto_head *)message)->bytes);
    write_message(out, row->of, message);
}

static void write_member(cfxi_out *out, const cfxi_proto_row *row, const void *member)
{
    const cfxi_proto_list *list = member;
    const cfxi_onnx_elements *elements = member;
    switch (row->kind) {
    case CFXI_PROTO_INT:
        write_tag(out, row, WIRE_VARINT);
        write_varint(out, (uint64_t)*(const int64_t *)member);
        return;
    case CFXI_PROTO_FLOAT:
        write_tag(out, row, WIRE_32);
        write_fixed(out, float_bits(*(const float *)member), 4);
        return;
    case CFXI_PROTO_TEXT: case CFXI_PROTO_DATA:
        write_text(out, row, *(const cfxi_text *)member);
        return;
    case CFXI_PROTO_ELEMENTS:
        write_size(out, row, elements_size(elements));
        if (elements->from)
            cfxi_format_out_elements(out, elements->from);
        else
            cfxi_base_out_write(out, elements->data, elements->size);
        return;
    case CFXI_PROTO_MESSAGE:
        write_inner(out, row, *(void *const *)member);
        return;
    case CFXI_PROTO_INTS: case CFXI_PROTO_FLOATS: case CFXI_PROTO_DOUBLES:
        write_packed(out, row, list);
        return;
    case CFXI_PROTO_TEXTS: case CFXI_PROTO_DATAS:
        for (size_t i = 0; i < list->n; i++)
            write_text(out, row, ((const cfxi_text *)list->items)[i]);
        return;
    case CFXI_PROTO_MESSAGES:
        for (size_t i = 0; i < list->n; i++)
            write_inner(out, row, (const char *)list->items + i * row->of->size);
        return;
    }
}

static void write_message(cfxi_out *out, const cfxi_proto_table *table, const void *message)
{
    const cfxi_proto_head *head = message;
    for (uint32_t i = 0; i < table->num_rows; i++) {
        const cfxi_proto_row *row = &table->rows[i];
        const void *member = (const char *)message + row->offset;
        if (is_given(row, member, head->has >> i & 1))
            write_member(out, row, member);
    }
}

cfx_status cfxi_onnx_write_model(const cfxi_onnx_model *m, cfx_sink sink, cfx_error *err)
{
    cfxi_out out;
    cfxi_base_out_begin(&out, sink);
    write_message(&out, &cfxi_onnx_table_model, m);
    return cfxi_base_out_end(&out, err);
}
