/* npy.c - one tensor in a .npy file.
 *
 *     "\x93NUMPY", version (1.0, 2.0 or 3.0), the size of the header (2 bytes, from 2.0 on 4)
 *     header      {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  spaces, newline
 *     elements
 */
#include "format_impl.h"

#include <stdio.h>

enum { HEADER_MOST = 1000 * 1000 };

/* ---- element types ------------------------------------------------------------------------- */

typedef struct code {
    const char *text;  /* without the byte order */
    cfx_dtype dtype;
    uint8_t unit;      /* bytes whose order the machine decides */
} code;

static const code codes[] = {
    {"b1", CFX_DTYPE_BOOL, 1},      {"u1", CFX_DTYPE_UINT8, 1},     {"u2", CFX_DTYPE_UINT16, 2},
    {"u4", CFX_DTYPE_UINT32, 4},    {"u8", CFX_DTYPE_UINT64, 8},    {"i1", CFX_DTYPE_INT8, 1},
    {"i2", CFX_DTYPE_INT16, 2},     {"i4", CFX_DTYPE_INT32, 4},     {"i8", CFX_DTYPE_INT64, 8},
    {"f2", CFX_DTYPE_FLOAT16, 2},   {"f4", CFX_DTYPE_FLOAT32, 4},   {"f8", CFX_DTYPE_FLOAT64, 8},
    {"c8", CFX_DTYPE_COMPLEX64, 4}, {"c16", CFX_DTYPE_COMPLEX128, 8},
};
enum { NUM_CODES = sizeof codes / sizeof *codes };

/* ---- reading ------------------------------------------------------------------------------- */

/* The header is a display of a Python dict; exactly what NumPy writes is read. */
typedef struct reader {
    const char *name;
    const char *text;
    size_t size;
    size_t at;
    cfxi_layout layout;
    bool seen[3];  /* descr, fortran_order, shape */
    cfx_error *err;
} reader;

static cfx_status complain(const reader *r, cfx_status status, const char *what)
{
    return cfx_error_set(r->err, status, "%s, byte %zu of the header: %s", r->name, r->at, what);
}

static bool take(reader *r, const char *word)
{
    size_t size = strlen(word);
    while (r->at < r->size && (r->text[r->at] == ' ' || r->text[r->at] == '\n'))
        r->at++;
    if (r->size - r->at < size || memcmp(r->text + r->at, word, size) != 0)
        return false;
    r->at += size;
    return true;
}

static cfx_status expect(reader *r, const char *word)
{
    char what[20];
    snprintf(what, sizeof what, "expected '%s'", word);
    return take(r, word) ? CFX_OK : complain(r, CFX_E_VALUE, what);
}

static cfx_status read_string(reader *r, char *out, size_t room)
{
    size_t n = 0;
    bool single = take(r, "'");
    if (!single)
        CFX_TRY(expect(r, "\""));
    while (r->at < r->size && r->text[r->at] != (single ? '\'' : '"')) {
        if (n + 1 == room)
            return complain(r, CFX_E_VALUE, "a string is too long");
        out[n++] = r->text[r->at++];
    }
    out[n] = '\0';
    return expect(r, single ? "'" : "\"");
}

static cfx_status read_descr(reader *r)
{
    char descr[40];
    take(r, "");
    if (r->at < r->size && r->text[r->at] == '[')
        return complain(r, CFX_E_UNSUPPORTED, "structured dtypes are not supported");
    CFX_TRY(read_string(r, descr, sizeof descr));
    char order = descr[0];
    if (order != '\0' && strchr("<>=|", order)) {
        for (size_t i = 0; i < NUM_CODES; i++) {
            if (strcmp(codes[i].text, descr + 1) != 0 ||
                !cfxi_tensor_dtype_is_computable(codes[i].dtype))
                continue;
            r->layout.dtype = codes[i].dtype;
            r->layout.swap = order == '>' ? codes[i].unit : 0;
            return CFX_OK;
        }
    }
    char what[100];
    snprintf(what, sizeof what, "the dtype '%.20s' is not supported",
             cfxi_base_utf8_valid(descr, strlen(descr)) ? descr : "?");
    return complain(r, CFX_E_UNSUPPORTED, what);
}

static cfx_status read_order(reader *r)
{
    if (take(r, "True"))
        r->layout.fortran = true;
    else if (!take(r, "False"))
        return complain(r, CFX_E_VALUE, "expected True or False");
    return CFX_OK;
}

static cfx_status read_size(reader *r)
{
    take(r, "");
    size_t from = r->at;
    while (r->at < r->size && cfxi_base_is_digit(r->text[r->at]))
        r->at++;
    if (r->layout.ndim == CFX_MAX_DIMS)
        return complain(r, CFX_E_UNSUPPORTED, "tensors with more than 8 dimensions are not "
                        "supported");
    if (!cfxi_base_parse_int(r->text + from, r->at - from, &r->layout.sizes[r->layout.ndim++]))
        return complain(r, CFX_E_VALUE, "expected a size");
    if (r->at < r->size && r->text[r->at] == 'L')  /* of Python 2 */
        r->at++;
    return CFX_OK;
}

static cfx_status read_shape(reader *r)
{
    CFX_TRY(expect(r, "("));
    while (!take(r, ")")) {
        CFX_TRY(read_size(r));
        if (take(r, ","))
            continue;
        if (r->layout.ndim == 1)
            return complain(r, CFX_E_VALUE, "expected ','");
        CFX_TRY(expect(r, ")"));
        break;
    }
    return CFX_OK;
}

static cfx_status read_header(reader *r)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    CFX_TRY(expect(r, "{"));
    while (!take(r, "}")) {
        char key[20];
        size_t i = 0;
        CFX_TRY(read_string(r, key, sizeof key));
        CFX_TRY(expect(r, ":"));
        while (i < 3 && strcmp(keys[i], key) != 0)
            i++;
        if (i == 3 || r->seen[i])
            return complain(r, CFX_E_VALUE, "expected descr, fortran_order and shape, each once");
        r->seen[i] = true;
        CFX_TRY(i == 0 ? read_descr(r) : i == 1 ? read_order(r) : read_shape(r));
        if (take(r, ","))
            continue;
        CFX_TRY(expect(r, "}"));
        break;
    }
    if (!r->seen[0] || !r->seen[1] || !r->seen[2])
        return complain(r, CFX_E_VALUE, "one of descr, fortran_order and shape is missing");
    take(r, "");
    return r->at == r->size ? CFX_OK : complain(r, CFX_E_VALUE, "unexpected text after the header");
}

/* Finds the header: r->text and r->size; *data is where elements begin, in the file. */
static cfx_status find_header(reader *r, const char *file, size_t size, size_t *data)
{
    if (size < 10 || memcmp(file, "\x93NUMPY", 6) != 0)
        return cfx_error_set(r->err, CFX_E_VALUE, "%s: not a .npy file", r->name);
    unsigned char major = (unsigned char)file[6];
    if (major < 1 || major > 3 || file[7] != 0)
        return cfx_error_set(r->err, CFX_E_UNSUPPORTED, "%s: version %u.%u of .npy files is not "
                             "supported", r->name,
                             major, (unsigned char)file[7]);
    size_t begin = major == 1 ? 10 : 12;
    uint64_t header = size < begin ? 0 : cfxi_format_little(file + 8, begin - 8);
    if (size < begin || header > HEADER_MOST || header > size - begin)
        return cfx_error_set(r->err, CFX_E_VALUE, "%s: the file ends inside its header", r->name);
    r->text = file + begin;
    r->size = (size_t)header;
    *data = begin + r->size;
    return CFX_OK;
}

cfx_tensor *cfxi_format_npy_parse(cfxi_bytes *b, size_t at, size_t size, const char *name,
                                  cfx_error *err)
{
    size_t data = 0;
    size_t bytes;
    reader r = {.name = name, .err = err};
    if (find_header(&r, b->data ? b->data + at : "", size, &data) != CFX_OK ||
        read_header(&r) != CFX_OK)
        return NULL;
    if (!cfxi_format_layout_bytes(&r.layout, &bytes) || bytes > size - data) {
        cfx_error_set(err, CFX_E_VALUE, "%s: the file ends before the end of its elements", name);
        return NULL;
    }
    return cfxi_format_bytes_tensor(b, at + data, &r.layout, err);
}

bool cfxi_format_npy_is(const char *data, size_t size)
{
    return size >= 6 && memcmp(data, "\x93NUMPY", 6) == 0;
}

cfx_tensor *cfxi_format_npy_read(cfxi_bytes *b, const char *name, cfx_error *err)
{
    return cfxi_format_npy_parse(b, 0, b->size, name, err);
}

/* ---- writing ------------------------------------------------------------------------------- */

/* As NumPy writes it: elements begin at a multiple of 64. */
static void write_header(cfxi_out *out, const cfx_tensor *t, const code *c)
{
    char text[400];
    int n = snprintf(text, sizeof text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                     c->unit > 1 ? '<' : '|', c->text);
    for (size_t i = 0; i < t->ndim; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, i ? " %lld," : "%lld,",
                      (long long)t->size[i]);
    if (t->ndim > 1)
        n--;  /* only (3,) has a comma at its end */
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    size_t size = ((size_t)n + 1 + 10 + 63) / 64 * 64 - 10;
    cfxi_base_out_write(out, "\x93NUMPY\x01\x00", 8);
    cfxi_base_out_char(out, (char)(size & 0xff));
    cfxi_base_out_char(out, (char)(size >> 8));
    cfxi_base_out_write(out, text, (size_t)n);
    cfxi_base_out_spaces(out, size - (size_t)n - 1);
    cfxi_base_out_char(out, '\n');
}

cfx_status cfxi_format_npy_write(const cfx_tensor *t, cfx_sink sink, cfx_error *err)
{
    cfxi_out out;
    size_t i = 0;
    while (i < NUM_CODES && codes[i].dtype != (cfx_dtype)t->dtype)
        i++;
    if (i == NUM_CODES || cfx_tensor_is_abstract(t))
        return cfx_error_set(err, CFX_E_UNSUPPORTED,
                             "a tensor of %s%s cannot be written to a .npy file",
                             cfx_dtype_name((cfx_dtype)t->dtype),
                             cfx_tensor_is_abstract(t) ? " without data" : "");
    cfxi_base_out_begin(&out, sink);
    write_header(&out, t, &codes[i]);
    cfxi_format_out_elements(&out, t);
    return cfxi_base_out_end(&out, err);
}
