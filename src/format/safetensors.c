/* safetensors.c - named tensors in a .safetensors file.
 *
 *     8 bytes     the size of the header, little-endian
 *     header      JSON: {"__metadata__": {"k": "v"}, "fc.weight": {"dtype": "F32",
 *                 "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *     elements    little-endian, row by row; offsets count from here, without gaps or overlaps
 *
 * The format has no complex128. Such a tensor is stored as F64 with a last dimension of 2, and
 * "complex128 NAME" is in __metadata__: other programs see its parts.
 */
#include "format_impl.h"

#include <cfx/embed/base.h>
#include <stdlib.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are taken as they are");

enum { HEADER_MOST = 100 * 1000 * 1000 };

typedef struct type_name {
    const char *name;
    cfx_dtype dtype;
} type_name;

static const type_name types[] = {
    {"BOOL", CFX_DTYPE_BOOL},         {"U8", CFX_DTYPE_UINT8},
    {"I8", CFX_DTYPE_INT8},           {"U16", CFX_DTYPE_UINT16},
    {"I16", CFX_DTYPE_INT16},         {"U32", CFX_DTYPE_UINT32},
    {"I32", CFX_DTYPE_INT32},         {"U64", CFX_DTYPE_UINT64},
    {"I64", CFX_DTYPE_INT64},         {"F16", CFX_DTYPE_FLOAT16},
    {"BF16", CFX_DTYPE_BFLOAT16},     {"F32", CFX_DTYPE_FLOAT32},
    {"F64", CFX_DTYPE_FLOAT64},       {"C64", CFX_DTYPE_COMPLEX64},
    {"F8_E4M3", CFX_DTYPE_FLOAT8_E4M3FN}, {"F8_E5M2", CFX_DTYPE_FLOAT8_E5M2},
};
enum { NUM_TYPES = sizeof types / sizeof *types };

/* ---- reading ------------------------------------------------------------------------------- */

typedef struct record {
    cfxi_layout layout;
    int64_t from;
    int64_t to;
    size_t at;         /* of its name in the header */
    cfx_tensor *tensor;
} record;

typedef struct reading {
    cfxi_json json;
    cfxi_bytes *bytes;
    size_t data;       /* where elements begin */
    cfx_state *state;
    cfx_buffer name;
    cfx_buffer text;
    cfx_buffer wide;   /* names of tensors that are complex128, each terminated */
    cfxi_vec spans;    /* record, of every tensor */
} reading;

#define WIDE_MARK "complex128 "
enum { WIDE_MARK_SIZE = sizeof WIDE_MARK - 1 };

static cfx_status complain(reading *r, const char *what)
{
    char message[200];
    size_t n = r->name.size > 80 ? 80 : r->name.size;
    while (n > 0 && n < r->name.size && ((unsigned char)r->name.data[n] & 0xc0) == 0x80)
        n--;
    cfx_error text;
    cfx_error_set(&text, CFX_E_VALUE, "tensor '%.*s' %s", (int)n, r->name.data, what);
    memcpy(message, text.message, sizeof message);
    message[sizeof message - 1] = '\0';
    return cfxi_format_json_complain(&r->json, CFX_E_VALUE, message);
}

static cfx_status read_type(reading *r, record *one)
{
    CFX_TRY(cfxi_format_json_string(&r->json, &r->text));
    for (size_t i = 0; i < NUM_TYPES; i++) {
        if (strcmp(types[i].name, r->text.data) != 0)
            continue;
        one->layout.dtype = types[i].dtype;
        if (cfxi_tensor_dtype_is_computable(types[i].dtype))
            return CFX_OK;
    }
    return cfxi_format_json_complain(&r->json, CFX_E_UNSUPPORTED,
                                     "the dtype is not supported");
}

static cfx_status read_shape(reading *r, record *one)
{
    cfxi_layout *l = &one->layout;
    for (bool first = cfxi_format_json_open(&r->json, '[');
         cfxi_format_json_more(&r->json, ']', &first);) {
        if (l->ndim == CFX_MAX_DIMS)
            return cfxi_format_json_complain(&r->json, CFX_E_UNSUPPORTED,
                                             "tensors with more than 8 dimensions are not "
                                             "supported");
        CFX_TRY(cfxi_format_json_size(&r->json, &l->sizes[l->ndim++]));
    }
    return r->json.status;
}

static cfx_status read_offsets(reading *r, record *one)
{
    int64_t *both[] = {&one->from, &one->to};
    size_t n = 0;
    for (bool first = cfxi_format_json_open(&r->json, '[');
         cfxi_format_json_more(&r->json, ']', &first);) {
        if (n == 2)
            return complain(r, "has more than two data_offsets");
        CFX_TRY(cfxi_format_json_size(&r->json, both[n++]));
    }
    if (r->json.status == CFX_OK && n < 2)
        return complain(r, "has fewer than two data_offsets");
    return r->json.status;
}

static cfx_status check_record(reading *r, const record *one)
{
    size_t bytes;
    if (one->from > one->to || (uint64_t)one->to > r->bytes->size - r->data)
        return complain(r, "has data_offsets outside the file");
    if (!cfxi_format_layout_bytes(&one->layout, &bytes))
        return complain(r, "has more bytes than memory can hold");
    if (bytes != (size_t)(one->to - one->from))
        return complain(r, "has data_offsets that do not match its shape and dtype");
    return CFX_OK;
}

/* {"dtype": ..., "shape": ..., "data_offsets": ...}, in any order. */
static cfx_status read_record(reading *r, record *one)
{
    static const char *const fields[] = {"dtype", "shape", "data_offsets"};
    bool seen[3] = {false};
    for (bool first = cfxi_format_json_open(&r->json, '{');
         cfxi_format_json_more(&r->json, '}', &first);) {
        size_t i = 0;
        CFX_TRY(cfxi_format_json_key(&r->json, &r->text));
        while (i < 3 && strcmp(fields[i], r->text.data) != 0)
            i++;
        if (i == 3)
            return complain(r, "has a field other than dtype, shape and data_offsets");
        if (seen[i])
            return complain(r, "has the same field twice");
        seen[i] = true;
        CFX_TRY(i == 0 ? read_type(r, one) : i == 1 ? read_shape(r, one) : read_offsets(r, one));
    }
    CFX_TRY(r->json.status);
    if (!seen[0] || !seen[1] || !seen[2])
        return complain(r, "lacks one of dtype, shape and data_offsets");
    return check_record(r, one);
}

/* Texts by name; of them, only the marks of complex128 matter. */
static cfx_status read_metadata(reading *r)
{
    for (bool first = cfxi_format_json_open(&r->json, '{');
         cfxi_format_json_more(&r->json, '}', &first);) {
        CFX_TRY(cfxi_format_json_key(&r->json, &r->text));
        if (strncmp(r->text.data, WIDE_MARK, WIDE_MARK_SIZE) == 0 &&
            cfx_buffer_append(&r->wide, r->text.data + WIDE_MARK_SIZE,
                              r->text.size - WIDE_MARK_SIZE + 1) != CFX_OK)
            return r->json.status = cfxi_base_nomem(r->json.err);
        CFX_TRY(cfxi_format_json_string(&r->json, &r->text));
    }
    return r->json.status;
}

static void release_parts(void *ctx) { cfx_tensor_release(ctx); }

/* Replaces a tensor by the complex one that its elements are the parts of. */
static cfx_status join_parts(reading *r, const char *name)
{
    cfx_tensor *parts = cfx_state_get(r->state, name);
    const size_t ndim = parts ? parts->ndim : 0;
    if (ndim == 0 || parts->dtype != CFX_DTYPE_FLOAT64 || parts->size[ndim - 1] != 2)
        return cfx_error_set(r->json.err, CFX_E_VALUE, "safetensors: '%.100s' is said to be "
                             "complex128, and is not F64 with a last dimension of 2", name);
    CFX_TRY(cfxi_tensor_settle(parts, r->json.err));
    cfx_tensor *t = cfx_tensor_from_memory(CFX_DTYPE_COMPLEX128, parts->size, NULL, ndim - 1,
                                           parts->data, false, release_parts, parts,
                                           r->bytes->allocator, r->json.err);
    if (!t)
        return r->json.err->status;
    cfx_tensor_retain(parts);
    const cfx_status status = cfx_state_set(r->state, name, t, r->json.err);
    cfx_tensor_release(t);
    return status;
}

static cfx_status join_all(reading *r)
{
    for (size_t at = 0; at < r->wide.size; at += strlen(r->wide.data + at) + 1)
        CFX_TRY(join_parts(r, r->wide.data + at));
    return CFX_OK;
}

static cfx_status read_tensor(reading *r)
{
    record one = {0};
    if (cfx_state_get(r->state, r->name.data))
        return complain(r, "occurs twice");
    CFX_TRY(read_record(r, &one));
    if (!cfxi_base_vec_reserve(&r->spans, 1, sizeof one, r->bytes->allocator))
        return cfxi_base_nomem(r->json.err);
    ((record *)r->spans.data)[r->spans.size++] = one;
    cfx_tensor *t = cfxi_format_bytes_tensor(r->bytes, r->data + (size_t)one.from, &one.layout,
                                             r->json.err);
    if (!t)
        return r->json.err->status;
    cfx_status status = cfx_state_set(r->state, r->name.data, t, r->json.err);
    cfx_tensor_release(t);
    return status;
}

static int by_place(const void *a, const void *b)
{
    const record *x = a;
    const record *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

/* Every byte of the file belongs to one tensor. */
static cfx_status check_spans(reading *r)
{
    record *all = r->spans.data;
    int64_t end = 0;
    if (r->spans.size)
        qsort(all, r->spans.size, sizeof *all, by_place);
    for (size_t i = 0; i < r->spans.size; i++) {
        if (all[i].from != end)
            return cfx_error_set(r->json.err, CFX_E_VALUE,
                                 "safetensors: byte %lld of the elements belongs to %s tensor",
                                 (long long)(all[i].from < end ? all[i].from : end),
                                 all[i].from < end ? "more than one" : "no");
        end = all[i].to;
    }
    if ((uint64_t)end != r->bytes->size - r->data)
        return cfx_error_set(r->json.err, CFX_E_VALUE,
                             "safetensors: byte %lld of the elements belongs to no tensor",
                             (long long)end);
    return CFX_OK;
}

static cfx_status read_header(reading *r)
{
    for (bool first = cfxi_format_json_open(&r->json, '{');
         cfxi_format_json_more(&r->json, '}', &first);) {
        CFX_TRY(cfxi_format_json_key(&r->json, &r->name));
        CFX_TRY(strcmp(r->name.data, "__metadata__") == 0 ? read_metadata(r) : read_tensor(r));
    }
    CFX_TRY(cfxi_format_json_end(&r->json));
    CFX_TRY(check_spans(r));
    return join_all(r);
}

/* It begins with the size of its header, which fits into the file. */
bool cfxi_format_safetensors_is(const char *data, size_t size)
{
    const uint64_t header = size < 8 ? UINT64_MAX : cfxi_format_little(data, 8);
    return header <= HEADER_MOST && header <= size - 8;
}

cfx_status cfxi_format_safetensors_read(cfxi_bytes *b, cfx_state *s, cfx_error *err)
{
    if (b->size < 8)
        return cfx_error_set(err, CFX_E_VALUE, "not a safetensors file: it has only %zu bytes",
                             b->size);
    uint64_t header = cfxi_format_little(b->data, 8);
    if (header > HEADER_MOST || header > b->size - 8)
        return cfx_error_set(err, CFX_E_VALUE,
                             "not a safetensors file: a header of %llu bytes in a file of %zu",
                             (unsigned long long)header, b->size);
    reading r = {.bytes = b, .data = 8 + (size_t)header, .state = s,
                 .json = {.text = b->data + 8, .size = (size_t)header,
                          .what = "safetensors header", .err = err}};
    cfx_buffer_init(&r.name, b->allocator);
    cfx_buffer_init(&r.text, b->allocator);
    cfx_buffer_init(&r.wide, b->allocator);
    cfx_status status = read_header(&r);
    cfx_buffer_free(&r.name);
    cfx_buffer_free(&r.text);
    cfx_buffer_free(&r.wide);
    cfxi_base_vec_free(&r.spans, sizeof(record), b->allocator);
    return status;
}

/* ---- writing ------------------------------------------------------------------------------- */

static bool is_wide(const cfx_tensor *t) { return t->dtype == CFX_DTYPE_COMPLEX128; }

static const char *type_of(const cfx_tensor *t)
{
    if (is_wide(t))
        return "F64";
    for (size_t i = 0; i < NUM_TYPES; i++)
        if (types[i].dtype == (cfx_dtype)t->dtype)
            return types[i].name;
    return NULL;
}

/* Wide elements first, so that every tensor is aligned to its own; else in the order given. */
static int by_width(const void *a, const void *b)
{
    const record *x = a;
    const record *y = b;
    size_t wide = cfxi_tensor_itemsize(x->tensor);
    size_t wide_too = cfxi_tensor_itemsize(y->tensor);
    if (wide != wide_too)
        return wide > wide_too ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

static cfx_status collect(const cfx_state *s, cfxi_vec *all, cfx_error *err)
{
    int64_t offset = 0;
    if (!cfxi_base_vec_reserve(all, cfx_state_size(s) + 1, sizeof(record),
                               cfxi_base_allocator(NULL)))
        return cfxi_base_nomem(err);
    record *records = all->data;
    for (size_t i = 0; i < cfx_state_size(s); i++) {
        record *one = &records[all->size++];
        *one = (record){.at = i};
        const char *name = cfx_state_entry(s, i, &one->tensor);
        if (cfx_tensor_is_abstract(one->tensor) || !type_of(one->tensor) ||
            (is_wide(one->tensor) && one->tensor->ndim == CFX_MAX_DIMS))
            return cfx_error_set(err, CFX_E_UNSUPPORTED,
                                 "'%.100s' is %s, which safetensors does not support", name,
                                 cfx_dtype_name(cfx_tensor_dtype(one->tensor)));
        if (strcmp(name, "__metadata__") == 0 || !cfxi_base_utf8_valid(name, strlen(name)))
            return cfx_error_set(err, CFX_E_VALUE, "'%.100s' is not a valid tensor name for a file",
                                 name);
    }
    qsort(records, all->size, sizeof *records, by_width);
    for (size_t i = 0; i < all->size; i++) {
        records[i].from = offset;
        offset +=
            cfxi_tensor_numel(records[i].tensor) * (int64_t)cfxi_tensor_itemsize(records[i].tensor);
        records[i].to = offset;
    }
    return CFX_OK;
}

static void write_record(cfx_json *j, const char *name, const record *r)
{
    const cfx_tensor *t = r->tensor;
    cfx_json_field(j, name);
    cfx_json_open(j, '{');
    cfx_json_field(j, "dtype");
    cfx_json_text(j, type_of(t));
    cfx_json_field(j, "shape");
    cfx_json_open(j, '[');
    for (size_t d = 0; d < t->ndim; d++)
        cfx_json_int(j, t->size[d]);
    if (is_wide(t))
        cfx_json_int(j, 2);
    cfx_json_close(j, ']');
    cfx_json_field(j, "data_offsets");
    cfx_json_open(j, '[');
    cfx_json_int(j, r->from);
    cfx_json_int(j, r->to);
    cfx_json_close(j, ']');
    cfx_json_close(j, '}');
}

static cfx_status write_marks(const cfx_state *s, const record *records, size_t n, cfx_json *j)
{
    cfx_buffer mark;
    cfx_status status = CFX_OK;
    cfx_buffer_init(&mark, NULL);
    for (size_t i = 0; i < n && status == CFX_OK; i++) {
        const char *name = cfx_state_entry(s, records[i].at, NULL);
        if (!is_wide(records[i].tensor))
            continue;
        mark.size = 0;
        if (cfx_buffer_append(&mark, WIDE_MARK, WIDE_MARK_SIZE) != CFX_OK ||
            (status = cfx_buffer_append(&mark, name, strlen(name))) != CFX_OK)
            status = CFX_E_NOMEM;
        cfx_json_field(j, mark.data);
        cfx_json_text(j, "F64 [..., 2]");
    }
    cfx_buffer_free(&mark);
    return status;
}

static cfx_status write_header(const cfx_state *s, const cfxi_vec *all, cfx_buffer *header)
{
    cfx_json j;
    const record *records = all->data;
    cfx_json_begin(&j, cfx_buffer_sink(header), true);
    cfx_json_open(&j, '{');
    cfx_json_field(&j, "__metadata__");
    cfx_json_open(&j, '{');
    cfx_json_field(&j, "format");
    cfx_json_text(&j, "pt");
    CFX_TRY(write_marks(s, records, all->size, &j));
    cfx_json_close(&j, '}');
    for (size_t i = 0; i < all->size; i++)
        write_record(&j, cfx_state_entry(s, records[i].at, NULL), &records[i]);
    cfx_json_close(&j, '}');
    CFX_TRY(j.status);
    while ((header->size + 8) % CFXI_ALIGN)
        CFX_TRY(cfx_buffer_append(header, " ", 1));
    return CFX_OK;
}

cfx_status cfxi_format_safetensors_write(const cfx_state *s, cfx_sink sink, cfx_error *err)
{
    cfxi_out out;
    cfx_buffer header;
    cfxi_vec all = {0};
    cfx_buffer_init(&header, NULL);
    cfx_status status = collect(s, &all, err);
    if (status == CFX_OK && (status = write_header(s, &all, &header)) == CFX_E_NOMEM)
        cfxi_base_nomem(err);
    if (status == CFX_OK) {
        uint64_t size = header.size;
        cfxi_base_out_begin(&out, sink);
        cfxi_base_out_write(&out, (const char *)&size, sizeof size);
        cfxi_base_out_write(&out, header.data, header.size);
        for (size_t i = 0; i < all.size && out.status == CFX_OK; i++)
            cfxi_format_out_elements(&out, ((const record *)all.data)[i].tensor);
        status = cfxi_base_out_end(&out, err);
    }
    cfxi_base_vec_free(&all, sizeof(record), cfxi_base_allocator(NULL));
    cfx_buffer_free(&header);
    return status;
}
