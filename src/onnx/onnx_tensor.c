/* onnx_tensor.c - tensors of ONNX files: raw bytes, lists of numbers, parts of other files, sparse
 * ones. */
#include "proto_impl.h"

#include "format/package_impl.h"

/* ---- element types ------------------------------------------------------------------------- */

typedef struct dtype_row {
    int64_t number;
    const char *name;
    cfx_dtype dtype;
    int bits;  /* of a narrow one; else 0 */
} dtype_row;

static const dtype_row dtypes[] = {
#define CFX_ONNX_DTYPE(number, name, dtype) {number, name, CFX_DTYPE_##dtype, 0},
#define CFX_ONNX_NARROW(number, name, dtype, bits) {number, name, CFX_DTYPE_##dtype, bits},
#include "onnx_dtype.def"
};

enum { FLOAT4 = 23, INT4 = 22, INT2 = 26, STRING = 8 };

static const dtype_row *row_of(int64_t number)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i].number == number)
            return &dtypes[i];
    return NULL;
}

cfx_dtype cfxi_onnx_dtype(int64_t number)
{
    const dtype_row *row = row_of(number);
    return row ? row->dtype : CFX_DTYPE_COUNT;
}

int64_t cfxi_onnx_dtype_number(cfx_dtype dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i].dtype == dtype && dtypes[i].bits == 0)
            return dtypes[i].number;
    return 0;
}

const char *cfxi_onnx_dtype_name(int64_t number)
{
    const dtype_row *row = row_of(number);
    return row ? row->name : number == STRING ? "string" : "unknown";
}

int cfxi_onnx_narrow_bits(int64_t number)
{
    const dtype_row *row = row_of(number);
    return row ? row->bits : 0;
}

/* ---- files beside the model ---------------------------------------------------------------- */

typedef struct open_file {
    struct open_file *next;
    cfxi_text name;
    cfxi_bytes *bytes;
} open_file;

struct cfxi_onnx_files {
    open_file *first;
};

void cfxi_onnx_source_close(cfxi_onnx_source *s)
{
    for (open_file *f = s->files ? s->files->first : NULL, *next; f; f = next) {
        next = f->next;
        cfxi_format_bytes_release(f->bytes);
        cfxi_base_free(s->allocator, f, sizeof *f);
    }
    cfxi_base_free(s->allocator, s->files, sizeof *s->files);
    s->files = NULL;
}

static cfxi_bytes *map_file(const cfxi_onnx_source *s, cfxi_text name, cfx_error *err)
{
    cfx_buffer path;
    cfxi_bytes *bytes = NULL;
    cfx_buffer_init(&path, s->allocator);
    if (cfx_buffer_append(&path, s->folder, strlen(s->folder)) != CFX_OK ||
        cfx_buffer_append(&path, "/", 1) != CFX_OK ||
        cfx_buffer_append(&path, name.data, name.size) != CFX_OK ||
        cfx_buffer_append(&path, "", 1) != CFX_OK)
        cfxi_base_nomem(err);
    else
        bytes = cfxi_format_bytes_map(path.data, s->allocator, err);
    cfx_buffer_free(&path);
    return s->read_only ? cfxi_format_bytes_protect(bytes) : bytes;
}

/* The bytes of a file of the folder, borrowed; each file is opened once. */
static cfxi_bytes *file_named(cfxi_onnx_source *s, cfxi_text name, cfx_error *err)
{
    if (!s->folder || !cfxi_format_package_is_name(name.data, name.size)) {
        cfx_error_set(err, CFX_E_VALUE, "external data in '%.*s', which is not in the folder of "
                      "the model", (int)(name.size < 100 ? name.size : 100), name.data);
        return NULL;
    }
    if (!s->files) {
        s->files = cfxi_base_alloc(s->allocator, sizeof *s->files);
        if (!s->files)
            return cfxi_base_nomem(err), NULL;
        s->files->first = NULL;
    }
    for (open_file *f = s->files->first; f; f = f->next)
        if (cfxi_onnx_same(f->name, name))
            return f->bytes;
    open_file *f = cfxi_base_alloc(s->allocator, sizeof *f);
    if (!f)
        return cfxi_base_nomem(err), NULL;
    *f = (open_file){s->files->first, name, map_file(s, name, err)};
    if (!f->bytes) {
        cfxi_base_free(s->allocator, f, sizeof *f);
        return NULL;
    }
    s->files->first = f;
    return f->bytes;
}

/* ---- where the bytes of a tensor are ------------------------------------------------------- */

/* A run of bytes in a file. */
typedef struct run {
    cfxi_bytes *bytes;
    size_t at;
    size_t size;
} run;

static bool read_size(cfxi_text text, size_t *out)
{
    int64_t i;
    if (!cfxi_base_parse_int(text.data, text.size, &i) || i < 0)
        return false;
    *out = (size_t)i;
    return true;
}

static cfx_status find_external(cfxi_onnx_source *s, const cfxi_onnx_tensor *t, run *r,
                                cfx_error *err)
{
    cfxi_text name = {0};
    size_t length = SIZE_MAX;
    for (size_t i = 0; i < t->external.n; i++) {
        const cfxi_onnx_entry *e = &t->external.items[i];
        const bool ok = cfxi_onnx_is(e->key, "offset")   ? read_size(e->value, &r->at)
                        : cfxi_onnx_is(e->key, "length") ? read_size(e->value, &length)
                                                         : true;
        if (!ok)
            return cfx_error_set(err, CFX_E_VALUE, "the %.*s of its external data is not a number",
                                 (int)e->key.size, e->key.data);
        if (cfxi_onnx_is(e->key, "location"))
            name = e->value;
    }
    r->bytes = file_named(s, name, err);
    if (!r->bytes)
        return err && err->status != CFX_OK ? err->status : CFX_E_IO;
    if (r->at > r->bytes->size || (length != SIZE_MAX && length > r->bytes->size - r->at))
        return cfx_error_set(err, CFX_E_VALUE, "its external data goes past the end of '%.*s'",
                             (int)(name.size < 100 ? name.size : 100), name.data);
    r->size = length != SIZE_MAX ? length : r->bytes->size - r->at;
    return CFX_OK;
}

static bool is_external(const cfxi_onnx_tensor *t) { return t->location == 1; }

static cfx_status find_bytes(cfxi_onnx_source *s, const cfxi_onnx_tensor *t, run *r,
                             cfx_error *err)
{
    if (is_external(t))
        return find_external(s, t, r, err);
    *r = (run){s->bytes, (size_t)(t->raw.data - s->bytes->data), t->raw.size};
    return CFX_OK;
}

/* ---- lists of numbers ---------------------------------------------------------------------- */

/* Which list of the message has the elements of a type. */
typedef enum list_kind {
    LIST_FLOATS,
    LIST_DOUBLES,
    LIST_INT32S,
    LIST_INT64S,
    LIST_UINT64S
} list_kind;

static list_kind list_of(cfx_dtype dtype)
{
    switch (dtype) {
    case CFX_DTYPE_FLOAT32: case CFX_DTYPE_COMPLEX64: return LIST_FLOATS;
    case CFX_DTYPE_FLOAT64: case CFX_DTYPE_COMPLEX128: return LIST_DOUBLES;
    case CFX_DTYPE_INT64: return LIST_INT64S;
    case CFX_DTYPE_UINT32: case CFX_DTYPE_UINT64: return LIST_UINT64S;
    default: return LIST_INT32S;  /* the others are bits of an int32 */
    }
}

static size_t list_length(const cfxi_onnx_tensor *t, list_kind kind)
{
    switch (kind) {
    case LIST_FLOATS: return t->floats.n;
    case LIST_DOUBLES: return t->doubles.n;
    case LIST_INT32S: return t->int32s.n;
    case LIST_INT64S: return t->int64s.n;
    case LIST_UINT64S: return t->uint64s.n;
    }
    return 0;
}

static void copy_ints(char *to, const int64_t *items, size_t n, size_t each)
{
    for (size_t i = 0; i < n; i++)
        for (size_t byte = 0; byte < each; byte++)
            to[i * each + byte] = (char)((uint64_t)items[i] >> 8 * byte);
}

static void copy_list(const cfxi_onnx_tensor *t, list_kind kind, char *to, size_t each)
{
    const size_t n = list_length(t, kind);
    if (n == 0)
        return;
    switch (kind) {
    case LIST_FLOATS: memcpy(to, t->floats.items, n * sizeof(float)); return;
    case LIST_DOUBLES: memcpy(to, t->doubles.items, n * sizeof(double)); return;
    case LIST_INT32S: copy_ints(to, t->int32s.items, n, each); return;
    case LIST_INT64S: copy_ints(to, t->int64s.items, n, each); return;
    case LIST_UINT64S: copy_ints(to, t->uint64s.items, n, each); return;
    }
}

static cfx_status wrong_count(cfx_error *err, const char *of, size_t has, uint64_t wants)
{
    return cfx_error_set(err, CFX_E_VALUE, "it has %zu %s, and its sizes say %llu", has, of,
                         (unsigned long long)wants);
}

static cfx_tensor *from_list(cfxi_onnx_source *s, const cfxi_onnx_tensor *t, const cfxi_layout *l,
                             uint64_t numel, cfx_error *err)
{
    const list_kind kind = list_of(l->dtype);
    const bool is_complex = l->dtype == CFX_DTYPE_COMPLEX64 || l->dtype == CFX_DTYPE_COMPLEX128;
    const size_t has = list_length(t, kind);
    if (has != (is_complex ? 2 * numel : numel))
        return wrong_count(err, "numbers", has, is_complex ? 2 * numel : numel), NULL;
    cfx_tensor *made = cfx_tensor_new(l->dtype, l->sizes, l->ndim, s->allocator, err);
    if (made)
        copy_list(t, kind, cfx_tensor_data(made), cfx_dtype_size(l->dtype));
    return made;
}

/* ---- narrow types -------------------------------------------------------------------------- */

static float float4(unsigned bits)
{
    static const float values[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    return bits & 8 ? -values[bits & 7] : values[bits & 7];
}

/* Element i of packed bytes: the lowest bits come first. */
static void unpack(cfx_tensor *t, int64_t number, int bits, size_t i, unsigned char byte)
{
    const int per = 8 / bits;
    const unsigned v = (unsigned)byte >> (int)(i % (size_t)per) * bits & ((1u << bits) - 1);
    const bool is_signed = number == INT4 || number == INT2;
    if (number == FLOAT4)
        ((float *)cfx_tensor_data(t))[i] = float4(v);
    else
        ((unsigned char *)cfx_tensor_data(t))[i] =
            (unsigned char)(is_signed && v >> (bits - 1) ? v | ~0u << bits : v);
}

static cfx_tensor *from_packed(cfxi_onnx_source *s, const cfxi_onnx_tensor *t, const cfxi_layout *l,
                               const run *r, uint64_t numel, cfx_error *err)
{
    const int bits = cfxi_onnx_narrow_bits(t->dtype);
    const size_t per = 8 / (size_t)bits;
    const uint64_t wants = numel / per + (numel % per > 0);
    const size_t has = r->bytes ? r->size : t->int32s.n;
    if (has != wants)
        return wrong_count(err, "packed bytes", has, wants), NULL;
    cfx_tensor *made = cfx_tensor_new(l->dtype, l->sizes, l->ndim, s->allocator, err);
    for (size_t i = 0; made && i < numel; i++)
        unpack(made, t->dtype, bits, i, (unsigned char)(r->bytes ? r->bytes->data[r->at + i / per]
                                                     : (char)t->int32s.items[i / per]));
    return made;
}

/* ---- all of them --------------------------------------------------------------------------- */

static cfx_status read_layout(const cfxi_onnx_tensor *t, cfxi_layout *l, uint64_t *numel,
                              cfx_error *err)
{
    *l = (cfxi_layout){.dtype = cfxi_onnx_dtype(t->dtype), .ndim = t->sizes.n};
    if (l->dtype == CFX_DTYPE_COUNT)
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "its elements are of type %s (%lld), which "
                             "cfx does not have", cfxi_onnx_dtype_name(t->dtype),
                             (long long)t->dtype);
    if (l->ndim > CFX_MAX_DIMS)
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "it has %zu dimensions; cfx has at most %d",
                             l->ndim, CFX_MAX_DIMS);
    size_t bytes;
    for (size_t i = 0; i < l->ndim; i++) {
        l->sizes[i] = t->sizes.items[i];
        if (l->sizes[i] < 0)
            return cfx_error_set(err, CFX_E_VALUE, "it has a size of %lld",
                                 (long long)l->sizes[i]);
    }
    if (!cfxi_format_layout_bytes(l, &bytes))
        return cfx_error_set(err, CFX_E_VALUE, "its sizes are too large");
    *numel = bytes / cfx_dtype_size(l->dtype);
    return CFX_OK;
}

static cfx_tensor *from_message(cfxi_onnx_source *s, const cfxi_onnx_tensor *t, cfx_error *err)
{
    cfxi_layout l;
    uint64_t numel;
    run r = {0};
    const bool has_bytes = is_external(t) || t->raw.data;
    if (read_layout(t, &l, &numel, err) != CFX_OK ||
        (has_bytes && find_bytes(s, t, &r, err) != CFX_OK))
        return NULL;
    if (cfxi_onnx_narrow_bits(t->dtype))
        return from_packed(s, t, &l, &r, numel, err);
    if (!has_bytes)
        return from_list(s, t, &l, numel, err);
    if (r.size != numel * cfx_dtype_size(l.dtype))
        return wrong_count(err, "bytes", r.size, numel * cfx_dtype_size(l.dtype)), NULL;
    return cfxi_format_bytes_tensor(r.bytes, r.at, &l, err);
}

/* Puts the tensor's name before a message. */
static void name_tensor(cfx_error *err, cfxi_text name)
{
    if (!err || err->status == CFX_OK || err->status == CFX_E_NOMEM)
        return;
    const cfx_error why = *err;
    cfx_error_set(err, why.status, "tensor '%.*s': %.380s",
                  (int)(name.size < 100 ? name.size : 100), name.data ? name.data : "",
                  why.message);
}

cfx_tensor *cfxi_onnx_tensor_of(cfxi_onnx_source *s, const cfxi_onnx_tensor *t, cfx_error *err)
{
    cfx_tensor *made = from_message(s, t, err);
    if (!made)
        name_tensor(err, t->name);
    return made;
}

/* ---- sparse tensors ------------------------------------------------------------------------ */

/* Where in the dense tensor the k-th value goes; false if that is outside of it. Indices are of
 * elements in row order, [n], or of dimensions, [n, rank]. */
static bool place_of(const cfx_tensor *indices, const cfxi_layout *l, size_t k, uint64_t numel,
                     size_t *at)
{
    const int64_t *all = cfx_tensor_data(indices);
    if (cfx_tensor_ndim(indices) == 1) {
        *at = (size_t)all[k];
        return all[k] >= 0 && (uint64_t)all[k] < numel;
    }
    *at = 0;
    for (size_t i = 0; i < l->ndim; i++) {
        const int64_t one = all[k * l->ndim + i];
        if (one < 0 || one >= l->sizes[i])
            return false;
        *at = *at * (size_t)l->sizes[i] + (size_t)one;
    }
    return true;
}

static cfx_status check_sparse(const cfx_tensor *values, const cfx_tensor *indices,
                               const cfxi_layout *l, cfx_error *err)
{
    const int64_t *shape = cfx_tensor_sizes(indices);
    const size_t rank = cfx_tensor_ndim(indices);
    const bool fits = cfx_tensor_dtype(indices) == CFX_DTYPE_INT64 &&
                      cfx_tensor_ndim(values) == 1 &&
                      (rank == 1 || (rank == 2 && shape[1] == (int64_t)l->ndim)) &&
                      shape[0] == cfx_tensor_numel(values) && cfx_tensor_is_contiguous(values) &&
                      cfx_tensor_is_contiguous(indices);
    return fits ? CFX_OK
                : cfx_error_set(err, CFX_E_VALUE, "its indices do not fit its values and sizes");
}

static cfx_status scatter(cfx_tensor *to, const cfx_tensor *values, const cfx_tensor *indices,
                          const cfxi_layout *l, uint64_t numel, cfx_error *err)
{
    const size_t each = cfx_dtype_size(l->dtype);
    memset(cfx_tensor_data(to), 0, numel * each);
    for (size_t k = 0; k < (size_t)cfx_tensor_numel(values); k++) {
        size_t at;
        if (!place_of(indices, l, k, numel, &at))
            return cfx_error_set(err, CFX_E_VALUE, "an index is outside of its sizes");
        memcpy((char *)cfx_tensor_data(to) + at * each,
               (const char *)cfx_tensor_data(values) + k * each, each);
    }
    return CFX_OK;
}

cfx_tensor *cfxi_onnx_tensor_of_sparse(cfxi_onnx_source *s, const cfxi_onnx_sparse *t,
                                       cfx_error *err)
{
    cfxi_layout l;
    uint64_t numel;
    if (!t->values || !t->indices)
        return cfx_error_set(err, CFX_E_VALUE, "a sparse tensor has no values or no indices"), NULL;
    const cfxi_onnx_tensor shape = {.dtype = t->values->dtype,
                                    .sizes = {t->sizes.items, t->sizes.n}};
    cfx_tensor *values = cfxi_onnx_tensor_of(s, t->values, err);
    cfx_tensor *indices = values ? cfxi_onnx_tensor_of(s, t->indices, err) : NULL;
    cfx_tensor *made = NULL;
    cfx_status status = indices ? read_layout(&shape, &l, &numel, err) : CFX_E_VALUE;
    if (status == CFX_OK)
        status = check_sparse(values, indices, &l, err);
    if (status == CFX_OK)
        made = cfx_tensor_new(l.dtype, l.sizes, l.ndim, s->allocator, err);
    if (made && numel > 0)
        status = scatter(made, values, indices, &l, numel, err);
    cfx_tensor_release(indices);
    cfx_tensor_release(values);
    if (made && status == CFX_OK)
        return made;
    cfx_tensor_release(made);
    name_tensor(err, t->values->name);
    return NULL;
}
