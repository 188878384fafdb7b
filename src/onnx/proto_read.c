/* proto_read.c - reads ONNX files: the wire format of protobuf, by the rows of proto.def.
 *
 * A message is a run of fields, each a tag (number and wire type) and a value. It is walked twice:
 * to count the items of its lists, and to fill them in. So a list has exactly the memory that its
 * items need, and a file cannot ask for more than its size justifies.
 */
#include "proto_impl.h"

#include <stdio.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_SIZED = 2, WIRE_32 = 5 };

typedef struct reader {
    const char *data;   /* of the file */
    cfxi_arena *arena;
    int depth;
    cfx_error *err;
    cfx_status status;  /* of the first failure */
} reader;

/* A part of the file that is being walked. */
typedef struct part {
    const char *at;
    const char *end;
} part;

/* A field of a message. */
typedef struct field {
    uint32_t number;
    int wire;
    uint64_t number_value;  /* of a VARINT, 64 or 32: its bits */
    part sized;             /* of a SIZED one: its contents */
} field;

static cfx_status complain(reader *r, const char *at, const char *what)
{
    if (r->status == CFX_OK)
        r->status = cfx_error_set(r->err, CFX_E_VALUE, "the ONNX file is damaged at byte %zu: %s",
                                  (size_t)(at - r->data), what);
    return r->status;
}

static cfx_status no_memory(reader *r)
{
    return r->status = r->status == CFX_OK ? cfxi_base_nomem(r->err) : r->status;
}

/* ---- the wire format ----------------------------------------------------------------------- */

static bool read_varint(part *p, uint64_t *v)
{
    *v = 0;
    for (unsigned shift = 0; p->at < p->end && shift < 64; shift += 7) {
        const uint64_t byte = (unsigned char)*p->at++;
        *v |= (byte & 127) << shift;
        if (byte < 128)
            return shift < 63 || byte < 2;
    }
    return false;
}

static bool read_fixed(part *p, size_t size, uint64_t *v)
{
    if ((size_t)(p->end - p->at) < size)
        return false;
    *v = 0;
    for (size_t i = size; i-- > 0;)
        *v = *v << 8 | (unsigned char)p->at[i];
    p->at += size;
    return true;
}

static bool read_sized(part *p, part *out)
{
    uint64_t size;
    if (!read_varint(p, &size) || size > (uint64_t)(p->end - p->at))
        return false;
    *out = (part){p->at, p->at + size};
    p->at += size;
    return true;
}

/* The next field of a message; false at its end, or if the reader fails. */
static bool next_field(reader *r, part *p, field *f)
{
    const char *begin = p->at;
    uint64_t tag;
    if (p->at == p->end || r->status != CFX_OK)
        return false;
    if (!read_varint(p, &tag) || tag >> 3 == 0 || tag >> 3 > (1u << 29) - 1)
        return complain(r, begin, "a field has no valid number"), false;
    f->number = (uint32_t)(tag >> 3);
    f->wire = (int)(tag & 7);
    bool ok = false;
    if (f->wire == WIRE_VARINT)
        ok = read_varint(p, &f->number_value);
    else if (f->wire == WIRE_64 || f->wire == WIRE_32)
        ok = read_fixed(p, f->wire == WIRE_64 ? 8 : 4, &f->number_value);
    else if (f->wire == WIRE_SIZED)
        ok = read_sized(p, &f->sized);
    else
        return complain(r, begin, "a field has an unknown wire type"), false;
    if (!ok)
        complain(r, begin, "a value goes past the end of its message");
    return ok;
}

/* ---- values -------------------------------------------------------------------------------- */

static size_t item_size(const cfxi_proto_row *row)
{
    switch (row->kind) {
    case CFXI_PROTO_INTS: return sizeof(int64_t);
    case CFXI_PROTO_FLOATS: return sizeof(float);
    case CFXI_PROTO_DOUBLES: return sizeof(double);
    case CFXI_PROTO_TEXTS: case CFXI_PROTO_DATAS: return sizeof(cfxi_text);
    case CFXI_PROTO_MESSAGES: return row->of->size;
    case CFXI_PROTO_INT: case CFXI_PROTO_FLOAT: case CFXI_PROTO_TEXT: case CFXI_PROTO_DATA:
    case CFXI_PROTO_ELEMENTS: case CFXI_PROTO_MESSAGE: break;
    }
    return 0;
}

/* The wire type of one number of the row; -1 if it is not a number. */
static int wire_of_number(const cfxi_proto_row *row)
{
    switch (row->kind) {
    case CFXI_PROTO_INT: case CFXI_PROTO_INTS: return WIRE_VARINT;
    case CFXI_PROTO_FLOAT: case CFXI_PROTO_FLOATS: return WIRE_32;
    case CFXI_PROTO_DOUBLES: return WIRE_64;
    case CFXI_PROTO_TEXT: case CFXI_PROTO_DATA: case CFXI_PROTO_ELEMENTS: case CFXI_PROTO_MESSAGE:
    case CFXI_PROTO_TEXTS: case CFXI_PROTO_DATAS: case CFXI_PROTO_MESSAGES: break;
    }
    return -1;
}

static void put_number(const cfxi_proto_row *row, void *to, uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    if (row->kind == CFXI_PROTO_FLOAT || row->kind == CFXI_PROTO_FLOATS)
        memcpy(to, &low, sizeof low);
    else
        memcpy(to, &bits, sizeof bits);
}

/* How many numbers a packed run has; its end is the end of a number. */
static size_t count_packed(reader *r, const cfxi_proto_row *row, part p)
{
    const size_t size = (size_t)(p.end - p.at);
    const size_t each = row->kind == CFXI_PROTO_INTS ? 0 : item_size(row);
    size_t n = 0;
    if (each > 0 && size % each == 0)
        return size / each;
    for (const char *at = p.at; each == 0 && at < p.end; at++)
        n += (unsigned char)*at < 128;
    if (each > 0 || (size > 0 && (unsigned char)p.end[-1] >= 128))
        complain(r, p.at, "a list of numbers is cut off");
    return n;
}

static void read_packed(reader *r, const cfxi_proto_row *row, part p, cfxi_proto_list *list)
{
    const size_t each = item_size(row);
    uint64_t bits;
    while (p.at < p.end && r->status == CFX_OK) {
        const char *at = p.at;
        const bool ok = row->kind == CFXI_PROTO_INTS ? read_varint(&p, &bits)
                                                     : read_fixed(&p, each, &bits);
        if (ok)
            put_number(row, (char *)list->items + list->n++ * each, bits);
        else
            complain(r, at, "a number has too many bytes");
    }
}

static cfxi_text read_text(reader *r, const cfxi_proto_row *row, part p)
{
    const cfxi_text t = {p.at, (size_t)(p.end - p.at)};
    const bool is_text = row->kind == CFXI_PROTO_TEXT || row->kind == CFXI_PROTO_TEXTS;
    if (is_text && (!cfxi_base_utf8_valid(t.data, t.size) || memchr(t.data, '\0', t.size)))
        complain(r, p.at, "text is not UTF-8");
    return t;
}

/* ---- messages ------------------------------------------------------------------------------ */

static void read_message(reader *r, const cfxi_proto_table *table, part p, void *to);

static int row_index(const cfxi_proto_table *table, uint32_t number)
{
    for (uint32_t i = 0; i < table->num_rows; i++)
        if (table->rows[i].number == number)
            return (int)i;
    return -1;
}

/* Whether a field is encoded as its row says: complains if not. */
static bool fits(reader *r, const cfxi_proto_row *row, const field *f, const char *at)
{
    const int number = wire_of_number(row);
    const bool packs = row->kind == CFXI_PROTO_INTS || row->kind == CFXI_PROTO_FLOATS ||
                       row->kind == CFXI_PROTO_DOUBLES;
    if (number < 0 ? f->wire == WIRE_SIZED : f->wire == number || (packs && f->wire == WIRE_SIZED))
        return true;
    complain(r, at, "a field has the wrong wire type");
    return false;
}

static void count_items(reader *r, const cfxi_proto_table *table, part p, void *to)
{
    field f;
    for (const char *at = p.at; next_field(r, &p, &f); at = p.at) {
        const int i = row_index(table, f.number);
        const cfxi_proto_row *row = i < 0 ? NULL : &table->rows[i];
        if (!row || !fits(r, row, &f, at) || item_size(row) == 0)
            continue;
        cfxi_proto_list *list = (cfxi_proto_list *)((char *)to + row->offset);
        list->n += f.wire == WIRE_SIZED && wire_of_number(row) >= 0
                       ? count_packed(r, row, f.sized) : 1;
    }
    for (uint32_t i = 0; i < table->num_rows && r->status == CFX_OK; i++) {
        const size_t each = item_size(&table->rows[i]);
        cfxi_proto_list *list = (cfxi_proto_list *)((char *)to + table->rows[i].offset);
        if (each == 0 || list->n == 0)
            continue;
        list->items = cfxi_base_arena_zeros(r->arena, list->n, each);
        list->n = 0;  /* counted again while items are filled in */
        if (!list->items)
            no_memory(r);
    }
}

static void read_item(reader *r, const cfxi_proto_row *row, const field *f, void *member)
{
    cfxi_proto_list *list = member;
    char *next = item_size(row) ? (char *)list->items + list->n * item_size(row) : NULL;
    switch (row->kind) {
    case CFXI_PROTO_INT: case CFXI_PROTO_FLOAT:
        put_number(row, member, f->number_value);
        return;
    case CFXI_PROTO_TEXT: case CFXI_PROTO_DATA:
        *(cfxi_text *)member = read_text(r, row, f->sized);
        return;
    case CFXI_PROTO_ELEMENTS:
        *(cfxi_onnx_elements *)member =
            (cfxi_onnx_elements){f->sized.at, (size_t)(f->sized.end - f->sized.at), NULL};
        return;
    case CFXI_PROTO_MESSAGE: {
        void *made = cfxi_base_arena_zeros(r->arena, 1, row->of->size);
        if (!made)
            no_memory(r);
        else
            read_message(r, row->of, f->sized, made);
        *(void **)member = made;
        return;
    }
    case CFXI_PROTO_INTS: case CFXI_PROTO_FLOATS: case CFXI_PROTO_DOUBLES:
        if (f->wire == WIRE_SIZED) {
            read_packed(r, row, f->sized, list);
            return;
        }
        put_number(row, next, f->number_value);
        break;
    case CFXI_PROTO_TEXTS: case CFXI_PROTO_DATAS:
        *(cfxi_text *)(void *)next = read_text(r, row, f->sized);
        break;
    case CFXI_PROTO_MESSAGES:
        read_message(r, row->of, f->sized, next);
        break;
    }
    list->n++;
}

/* Says which node a failure is in, once: the innermost. */
static void name_node(reader *r, const cfxi_onnx_node *n)
{
    cfx_error *err = r->err;
    if (!err || r->status != CFX_E_VALUE || strstr(err->message, " (in "))
        return;
    const cfxi_text name = n->name.size ? n->name : n->op;
    const size_t used = strlen(err->message);
    if (name.size > 0)
        snprintf(err->message + used, sizeof err->message - used, " (in node '%.*s')",
                 (int)(name.size < 80 ? name.size : 80), name.data);
}

static void read_message(reader *r, const cfxi_proto_table *table, part p, void *to)
{
    cfxi_proto_head *head = to;
    field f;
    if (++r->depth > CFXI_ONNX_DEPTH)
        complain(r, p.at, "messages are nested too deep");
    count_items(r, table, p, to);
    while (next_field(r, &p, &f)) {
        const int i = row_index(table, f.number);
        if (i < 0)
            continue;
        head->has |= 1u << i;
        read_item(r, &table->rows[i], &f, (char *)to + table->rows[i].offset);
    }
    if (r->status != CFX_OK && table == &cfxi_onnx_table_node)
        name_node(r, to);
    r->depth--;
}

cfxi_onnx_model *cfxi_onnx_read_model(const char *data, size_t size, cfxi_arena *arena,
                                      cfx_error *err)
{
    cfx_error own;
    reader r = {.data = data, .arena = arena, .err = cfxi_base_error_or(err, &own)};
    cfxi_onnx_model *m = cfxi_base_arena_zeros(arena, 1, sizeof *m);
    if (!m)
        return cfxi_base_nomem(err), NULL;
    read_message(&r, &cfxi_onnx_table_model, (part){data, data + size}, m);
    if (r.status == CFX_OK && !m->graph)
        complain(&r, data, "there is no graph; is this an ONNX file?");
    return r.status == CFX_OK ? m : NULL;
}
