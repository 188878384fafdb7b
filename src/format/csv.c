/* csv.c - one tensor as text: a line for each row, numbers with commas between them.
 *
 *     1, 2.5, 3
 *     4, 5, 6
 *
 * What is read has two dimensions. It is int64 if no number has a point, an exponent, or is nan or
 * inf; else float32. Tensors with at most two dimensions can be written; fewer give one line.
 */
#include "format_impl.h"

typedef struct csv {
    const char *name;
    const char *text;
    size_t size;
    size_t at;
    int64_t rows;
    int64_t columns;
    bool is_float;
    cfx_error *err;
} csv;

static bool is_number_char(char c) { return c && strchr("0123456789+-.eEnaifNI", c); }

/* The first line has numbers, commas and blanks only. Eight bytes without a zero tell it from the
 * size of a safetensors header, which can begin with a digit and a line feed. */
bool cfxi_format_csv_is(const char *data, size_t size)
{
    size_t at = 0;
    if (size >= 8 && memchr(data, '\0', 8))
        return false;
    while (at < size && (is_number_char(data[at]) || (data[at] && strchr(", \t\r", data[at]))))
        at++;
    return at > 0 && (at == size || data[at] == '\n') && memchr("0123456789+-.nNiI", data[0], 17);
}

static cfx_status complain(const csv *c, const char *what)
{
    return cfx_error_set(c->err, CFX_E_VALUE, "%s: line %lld: %s", c->name,
                         (long long)c->rows + 1, what);
}

static void skip_blanks(csv *c)
{
    while (c->at < c->size && c->text[c->at] && strchr(" \t\r", c->text[c->at]))
        c->at++;
}

/* Reads a number; `out` is NULL when it is only counted, else one element of the tensor. */
static cfx_status read_number(csv *c, char *out)
{
    double f;
    int64_t i;
    skip_blanks(c);
    const size_t start = c->at;
    while (c->at < c->size && is_number_char(c->text[c->at]))
        c->at++;
    const char *text = c->text + start;
    const size_t size = c->at - start;
    const bool is_int = size && cfxi_base_parse_int(text, size, &i);
    if (!is_int && (!size || !cfxi_base_parse_float(text, size, &f)))
        return complain(c, "expected a number");
    if (is_int)
        f = (double)i;
    const float element = (float)f;
    c->is_float |= !is_int;
    if (out && c->is_float)
        memcpy(out, &element, sizeof element);
    else if (out)
        memcpy(out, &i, sizeof i);
    skip_blanks(c);
    return CFX_OK;
}

/* Reads a line, and its end; sets *n to how many numbers it has. */
static cfx_status read_line(csv *c, char *out, size_t item, int64_t *n)
{
    *n = 0;
    for (;;) {
        CFX_TRY(read_number(c, out));
        out = out ? out + item : NULL;
        ++*n;
        if (c->at < c->size && c->text[c->at] == ',')
            c->at++;
        else if (c->at == c->size || c->text[c->at++] == '\n')
            return CFX_OK;
        else
            return complain(c, "expected ',' or the end of the line");
    }
}

/* All lines: into `out`, or if that is NULL only counted. */
static cfx_status read_lines(csv *c, char *out, size_t item)
{
    int64_t n;
    c->at = 0;
    for (c->rows = 0; c->at < c->size; c->rows++) {
        CFX_TRY(read_line(c, out, item, &n));
        if (c->rows && n != c->columns)
            return complain(c, "not as many numbers as in the first line");
        c->columns = n;
        out = out ? out + (size_t)n * item : NULL;
    }
    return CFX_OK;
}

cfx_tensor *cfxi_format_csv_read(cfxi_bytes *b, const char *name, cfx_error *err)
{
    csv c = {.name = name, .text = b->data, .size = b->size, .err = err};
    if (read_lines(&c, NULL, 0) != CFX_OK)
        return NULL;
    const int64_t sizes[] = {c.rows, c.columns};
    cfx_tensor *t = cfx_tensor_new(c.is_float ? CFX_DTYPE_FLOAT32 : CFX_DTYPE_INT64, sizes, 2,
                                   b->allocator, err);
    if (t)
        read_lines(&c, cfx_tensor_data(t), cfxi_tensor_itemsize(t));
    return t;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void write_element(cfxi_out *out, const cfx_tensor *t, int64_t row, int64_t column)
{
    char text[CFXI_NUMBER_SIZE];
    const char *at = cfx_tensor_data(t);
    at += t->ndim == 2 ? row * t->stride[0] : 0;
    at += t->ndim ? column * t->stride[t->ndim - 1] : 0;
    const cfx_datum d = cfx_datum_load((cfx_dtype)t->dtype, at);
    const size_t size = d.kind == CFX_DATUM_FLOAT  ? cfxi_base_format_float(d.as.f, text)
                        : d.kind == CFX_DATUM_BOOL ? cfxi_base_format_int(d.as.b, text)
                                                   : cfxi_base_format_int(d.as.i, text);
    cfxi_base_out_write(out, text, size);
}

cfx_status cfxi_format_csv_write(const cfx_tensor *t, cfx_sink sink, cfx_error *err)
{
    cfxi_out out;
    const cfx_dtype dtype = (cfx_dtype)t->dtype;
    if (t->ndim > 2 || cfx_dtype_is_complex(dtype) || cfx_tensor_is_abstract(t))
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "a tensor of %s with %zu dimensions cannot be "
                             "written to a .csv file: it holds rows of real numbers",
                             cfx_dtype_name(dtype), (size_t)t->ndim);
    const int64_t rows = t->ndim == 2 ? t->size[0] : 1;
    const int64_t columns = t->ndim ? t->size[t->ndim - 1] : 1;
    cfxi_base_out_begin(&out, sink);
    for (int64_t i = 0; i < rows && columns > 0; i++) {
        for (int64_t k = 0; k < columns; k++) {
            cfxi_base_out_str(&out, k ? "," : "");
            write_element(&out, t, i, k);
        }
        cfxi_base_out_char(&out, '\n');
    }
    return cfxi_base_out_end(&out, err);
}
