/* tensor_print.c - a tensor as torch.Tensor's repr shows it: four digits, one format for all
 * elements, the middle left out of what has more than 1000 elements, lines of 80 columns. */
#include "tensor_impl.h"

#include <math.h>
#include <stdio.h>

enum {
    DIGITS = 4,
    EDGE = 3,          /* elements shown at each end of a dimension that is cut */
    THRESHOLD = 1000,  /* elements that are all shown */
    COLUMNS = 80,
    NUMBER_ROOM = 64
};

/* How all real (or imaginary) parts are written. */
typedef struct format {
    bool whole;       /* all finite ones are whole numbers: "1." */
    bool scientific;
    int width;
} format;

typedef struct printer {
    cfxi_out out;
    const cfx_tensor *t;
    bool cut;         /* too many elements to show */
    size_t column;
    format parts[2];
} printer;

/* ---- text ---------------------------------------------------------------------------------- */

static void put(printer *p, const char *text)
{
    cfxi_base_out_str(&p->out, text);
    p->column += strlen(text);
}

static void put_spaces(printer *p, size_t n)
{
    cfxi_base_out_spaces(&p->out, n);
    p->column += n;
}

/* Ends the line `n` times and indents. */
static void put_lines(printer *p, size_t n, size_t indent)
{
    while (n-- > 0)
        cfxi_base_out_char(&p->out, '\n');
    p->column = 0;
    put_spaces(p, indent);
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* snprintf writes the locale's decimal point: whatever it is, one '.' comes out. */
static void plain_point(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        bool part = cfxi_base_is_digit(*at) || strchr("+-e", *at);
        if (part)
            *to++ = *at;
        else if (to == text || to[-1] != '.')
            *to++ = '.';
    }
    *to = '\0';
}

static int write_float(const format *f, double value, char out[NUMBER_ROOM])
{
    if (isnan(value))
        return snprintf(out, NUMBER_ROOM, "nan");
    if (isinf(value))
        return snprintf(out, NUMBER_ROOM, value < 0 ? "-inf" : "inf");
    if (f->scientific)
        snprintf(out, NUMBER_ROOM, "%.*e", DIGITS, value);
    else if (f->whole)
        snprintf(out, NUMBER_ROOM, "%.0f.", value);
    else
        snprintf(out, NUMBER_ROOM, "%.*f", DIGITS, value);
    plain_point(out);
    return (int)strlen(out);
}

/* ---- choosing the format ------------------------------------------------------------------- */

/* What all elements that are shown have in common, for each part. */
typedef struct survey {
    printer *p;
    bool measuring;  /* the second time: formats are chosen, widths are taken */
    bool any[2];     /* a number that is finite and not 0 */
    double least[2], most[2];
} survey;

static bool is_cut(const printer *p, size_t dim) { return p->cut && p->t->size[dim] > 2 * EDGE; }

/* Calls fn for each element that is shown. */
static void each_shown(survey *s, size_t dim, const char *at, void fn(survey *s, const char *at))
{
    const cfx_tensor *t = s->p->t;
    if (dim == t->ndim) {
        fn(s, at);
        return;
    }
    for (int64_t i = 0; i < t->size[dim]; i++) {
        if (i == EDGE && is_cut(s->p, dim))
            i = t->size[dim] - EDGE;
        each_shown(s, dim + 1, at + i * t->stride[dim], fn);
    }
}

static void look_at(survey *s, const char *at)
{
    cfx_dtype dtype = (cfx_dtype)s->p->t->dtype;
    double parts[2];
    cfxi_tensor_load_complex(dtype, at, parts);
    for (int i = 0; i < 2; i++) {
        double size = fabs(parts[i]);
        if (!isfinite(size) || size == 0)
            continue;
        format *f = &s->p->parts[i];
        if (s->measuring) {
            char text[NUMBER_ROOM];
            int width = write_float(f, parts[i], text);
            f->width = width > f->width ? width : f->width;
            continue;
        }
        f->whole = f->whole && parts[i] == ceil(parts[i]);
        s->least[i] = s->any[i] && s->least[i] < size ? s->least[i] : size;
        s->most[i] = s->any[i] && s->most[i] > size ? s->most[i] : size;
        s->any[i] = true;
    }
}

static void measure_integer(survey *s, const char *at)
{
    char text[CFXI_NUMBER_SIZE];
    cfx_dtype dtype = (cfx_dtype)s->p->t->dtype;
    int64_t value = cfxi_tensor_load_int(dtype, at);
    int width = dtype == CFX_DTYPE_BOOL ? (value ? 4 : 5) : (int)cfxi_base_format_int(value, text);
    format *f = &s->p->parts[0];
    f->width = width > f->width ? width : f->width;
}

static void choose_formats(printer *p)
{
    cfx_dtype dtype = (cfx_dtype)p->t->dtype;
    survey s = {.p = p};
    if (!cfx_dtype_is_float(dtype) && !cfx_dtype_is_complex(dtype)) {
        each_shown(&s, 0, p->t->data, measure_integer);
        return;
    }
    each_shown(&s, 0, p->t->data, look_at);
    for (int i = 0; i < 2; i++)
        p->parts[i].scientific = s.any[i] && (s.most[i] / s.least[i] > 1000 || s.most[i] > 1e8 ||
                                              (!p->parts[i].whole && s.least[i] < 1e-4));
    s.measuring = true;
    each_shown(&s, 0, p->t->data, look_at);
}

/* ---- elements ------------------------------------------------------------------------------ */

static void put_padded(printer *p, const char *text, int width)
{
    int length = (int)strlen(text);
    put_spaces(p, width > length ? (size_t)(width - length) : 0);
    put(p, text);
}

static void put_element(printer *p, const char *at)
{
    char text[NUMBER_ROOM];
    double parts[2];
    cfx_dtype dtype = (cfx_dtype)p->t->dtype;
    if (dtype == CFX_DTYPE_BOOL) {
        put_padded(p, cfxi_tensor_load_int(dtype, at) ? "True" : "False", p->parts[0].width);
        return;
    }
    if (cfx_dtype_is_integer(dtype)) {
        cfxi_base_format_int(cfxi_tensor_load_int(dtype, at), text);
        put_padded(p, text, p->parts[0].width);
        return;
    }
    cfxi_tensor_load_complex(dtype, at, parts);
    write_float(&p->parts[0], parts[0], text);
    put_padded(p, text, p->parts[0].width);
    if (!cfx_dtype_is_complex(dtype))
        return;
    write_float(&p->parts[1], parts[1], text);
    put(p, text[0] == '-' ? "" : "+");
    put(p, text);
    put(p, "j");
}

/* ---- dimensions ---------------------------------------------------------------------------- */

static size_t per_line(const printer *p, size_t indent)
{
    bool complex = cfx_dtype_is_complex((cfx_dtype)p->t->dtype);
    size_t length = (size_t)p->parts[0].width + 2;
    if (complex)
        length += (size_t)p->parts[1].width + 1;
    size_t n = indent < COLUMNS ? (COLUMNS - indent) / length : 0;
    return n ? n : 1;
}

static void put_row(printer *p, size_t dim, const char *at, size_t indent)
{
    const cfx_tensor *t = p->t;
    size_t line = per_line(p, indent);
    size_t n = 0;
    for (int64_t i = 0; i < t->size[dim]; i++, n++) {
        if (n > 0 && n % line == 0) {
            put(p, ",");
            put_lines(p, 1, indent + 1);
        } else if (n > 0) {
            put(p, ", ");
        }
        if (i == EDGE && is_cut(p, dim)) {
            put(p, " ...");
            i = t->size[dim] - EDGE - 1;
        } else {
            put_element(p, at + i * t->stride[dim]);
        }
    }
}

static void put_dim(printer *p, size_t dim, const char *at, size_t indent)
{
    const cfx_tensor *t = p->t;
    if (dim == t->ndim) {
        put_element(p, at);
        return;
    }
    put(p, "[");
    if (dim + 1 == t->ndim) {
        put_row(p, dim, at, indent);
    } else {
        for (int64_t i = 0; i < t->size[dim]; i++) {
            if (i > 0) {
                put(p, ",");
                put_lines(p, t->ndim - dim - 1, indent + 1);
            }
            if (i == EDGE && is_cut(p, dim)) {
                put(p, "...,");
                put_lines(p, t->ndim - dim - 1, indent + 1);
                i = t->size[dim] - EDGE;
            }
            put_dim(p, dim + 1, at + i * t->stride[dim], indent + 1);
        }
    }
    put(p, "]");
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void put_suffix(printer *p, const char *text)
{
    const size_t indent = strlen("tensor(");
    if (p->column + 2 + strlen(text) + 2 > COLUMNS) {
        put(p, ",");
        put_lines(p, 1, indent);
    } else {
        put(p, ", ");
    }
    put(p, text);
}

static void put_size(printer *p, bool always)
{
    char text[32 * CFX_MAX_DIMS] = "size=(";
    char digits[CFXI_NUMBER_SIZE];
    if (!always && p->t->ndim == 1)
        return;
    for (size_t i = 0; i < p->t->ndim; i++) {
        cfxi_base_format_int(p->t->size[i], digits);
        strcat(text, i ? ", " : "");
        strcat(text, digits);
    }
    strcat(text, p->t->ndim == 1 ? ",)" : ")");
    put_suffix(p, text);
}

cfx_status cfx_tensor_print(const cfx_tensor *t, cfx_sink sink, cfx_error *err)
{
    printer p = {.t = t, .parts = {{true, false, 1}, {true, false, 1}}};
    char dtype[40];
    CFX_TRY(cfxi_base_expect(t, "tensor", err));
    CFX_TRY(cfxi_tensor_settle(t, err));
    bool known = t->storage != NULL;
    bool empty = known && cfxi_tensor_numel(t) == 0;
    bool usual = t->dtype == CFX_DTYPE_FLOAT32 ||
                 (known && !empty && (t->dtype == CFX_DTYPE_COMPLEX64 ||
                                      t->dtype == CFX_DTYPE_INT64 || t->dtype == CFX_DTYPE_BOOL));
    cfxi_base_out_begin(&p.out, sink);
    put(&p, "tensor(");
    if (!known) {
        put(&p, "...");
        put_size(&p, true);
    } else if (empty) {
        put(&p, "[]");
        put_size(&p, false);
    } else {
        p.cut = cfxi_tensor_numel(t) > THRESHOLD;
        choose_formats(&p);
        put_dim(&p, 0, t->data, strlen("tensor("));
    }
    snprintf(dtype, sizeof dtype, "dtype=torch.%s", cfx_dtype_name((cfx_dtype)t->dtype));
    if (!usual)
        put_suffix(&p, dtype);
    put(&p, ")");
    return cfxi_base_out_end(&p.out, err);
}

/* ---- values with tensors in them ----------------------------------------------------------- */

enum { DEEPEST = 100 };  /* containers in containers: what is deeper is only described */

static bool is_container(cfx_datum d)
{
    return d.kind == CFX_DATUM_LIST || d.kind == CFX_DATUM_TUPLE || d.kind == CFX_DATUM_DICT;
}

static cfx_status show(cfx_datum d, unsigned depth, cfx_sink out, cfx_error *err);

static cfx_status show_items(cfx_datum d, unsigned depth, cfx_sink out, cfx_error *err)
{
    const char *pair = d.kind == CFX_DATUM_LIST ? "[]" : d.kind == CFX_DATUM_TUPLE ? "()" : "{}";
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    CFX_TRY(cfxi_base_failed(err, cfxi_base_sink_write(out, pair, 1)));
    for (size_t i = 0; i < n; i++) {
        const char *between = d.kind == CFX_DATUM_DICT && i % 2 ? ": " : ", ";
        if (i > 0)
            CFX_TRY(cfxi_base_failed(err, cfxi_base_sink_write(out, between, 2)));
        CFX_TRY(show(items[i], depth + 1, out, err));
    }
    if (d.kind == CFX_DATUM_TUPLE && n == 1)
        CFX_TRY(cfxi_base_failed(err, cfxi_base_sink_write(out, ",", 1)));
    return cfxi_base_failed(err, cfxi_base_sink_write(out, pair + 1, 1));
}

static cfx_status show(cfx_datum d, unsigned depth, cfx_sink out, cfx_error *err)
{
    if (d.kind == CFX_DATUM_TENSOR)
        return cfx_tensor_print(d.as.tensor, out, err);
    if (is_container(d) && depth < DEEPEST)
        return show_items(d, depth, out, err);
    return cfx_datum_print(d, NULL, out, err);
}

cfx_status cfxi_tensor_show(cfx_datum d, cfx_sink out, cfx_error *err)
{
    return show(d, 0, out, err);
}
