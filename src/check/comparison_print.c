/* comparison_print.c - a comparison as a table and as JSON.
 *
 *     the result: 31.4 dB, cosine 0.99964, 2.7 % off
 *     layer  operator   dB  from  cosine   off     advice                                line
 *     conv1  conv2d   22.1  41.0  0.99691   7.8 %  use weights per channel, or equalize  net.py:12
 */
#include "comparison_impl.h"

#include <cfx/embed/base.h>
#include <math.h>
#include <stdio.h>

/* ---- the table ----------------------------------------------------------------------------- */

enum { COLUMNS = 8, CELL = 200, GAP = 2, LEAST_WIDTH = 12 };

enum { LAYER, OPERATOR, DB, FROM, COSINE, OFF, ADVICE, LINE };

static const char *const headings[COLUMNS] = {"layer", "operator", "dB", "from", "cosine", "off",
                                              "advice", "line"};

typedef struct cells {
    char text[COLUMNS][CELL];
} cells;

static bool is_number(size_t column) { return column >= DB && column <= OFF; }

static void decibels(double f, char out[CELL])
{
    if (isinf(f))
        snprintf(out, CELL, "%s", f > 0 ? "equal" : "none");
    else
        snprintf(out, CELL, "%.1f", f);
}

static void percent(double f, char out[CELL])
{
    if (isinf(f))
        snprintf(out, CELL, "all");
    else
        snprintf(out, CELL, "%.*f %%", f < 0.01 ? 2 : 1, 100 * f);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void fill_cells(const cfx_compared *row, cells *c)
{
    snprintf(c->text[LAYER], CELL, "%s", row->name);
    snprintf(c->text[OPERATOR], CELL, "%s", row->operation);
    decibels(row->close.sqnr, c->text[DB]);
    if (isinf(row->input_sqnr))
        snprintf(c->text[FROM], CELL, "-");
    else
        decibels(row->input_sqnr, c->text[FROM]);
    snprintf(c->text[COSINE], CELL, "%.5f", row->close.cosine);
    percent(row->close.error, c->text[OFF]);
    snprintf(c->text[ADVICE], CELL, "%s", row->advice ? row->advice : "");
    c->text[LINE][0] = '\0';
    if (row->file)
        snprintf(c->text[LINE], CELL, "%s:%u", base_name(row->file), row->line);
}

static void measure(const cells *c, size_t widths[COLUMNS])
{
    for (size_t k = 0; k < COLUMNS; k++) {
        const size_t size = strlen(c->text[k]);
        widths[k] = size > widths[k] ? size : widths[k];
    }
}

/* Makes columns narrower, in this order, down to `least`, until the table has `width`. */
static void squeeze_to(size_t widths[COLUMNS], size_t width, size_t least)
{
    static const size_t order[] = {ADVICE, LINE, OPERATOR, LAYER};
    size_t all = 0;
    for (size_t k = 0; k < COLUMNS; k++)
        all += widths[k] ? widths[k] + GAP : 0;
    for (size_t i = 0; width && i < sizeof order / sizeof *order && all > width + GAP; i++) {
        size_t *w = &widths[order[i]];
        const size_t over = all - width - GAP;
        const size_t spare = *w > least ? *w - least : 0;
        const size_t less = over < spare ? over : spare;
        *w -= less;
        all -= less;
    }
}

/* Makes the table narrow enough: the words first, then names; numbers stay. */
static void squeeze(size_t widths[COLUMNS], size_t width)
{
    squeeze_to(widths, width, LEAST_WIDTH);
    squeeze_to(widths, width, LEAST_WIDTH / 2);
}

static void write_cell(cfxi_out *out, const char *text, size_t column, size_t width)
{
    const size_t size = strlen(text);
    if (is_number(column))
        cfxi_base_out_spaces(out, width - size);
    if (size <= width) {
        cfxi_base_out_write(out, text, size);
    } else {
        cfxi_base_out_write(out, text, width - 2);
        cfxi_base_out_str(out, "..");
    }
    if (!is_number(column) && size < width)
        cfxi_base_out_spaces(out, width - size);
}

/* Without blanks at its end. */
static void write_line(cfxi_out *out, const cells *c, const size_t widths[COLUMNS])
{
    size_t last = COLUMNS - 1;
    while (last > 0 && (!c->text[last][0] || !widths[last]))
        last--;
    for (size_t k = 0; k <= last; k++) {
        const bool is_last = k == last && !is_number(k) && strlen(c->text[k]) < widths[k];
        if (!widths[k])
            continue;
        write_cell(out, c->text[k], k, is_last ? strlen(c->text[k]) : widths[k]);
        if (k < last)
            cfxi_base_out_spaces(out, GAP);
    }
    cfxi_base_out_char(out, '\n');
}

static void write_result(const cfx_comparison *c, cfxi_out *out)
{
    cfx_closeness close;
    char db[CELL];
    char off[CELL];
    if (!cfx_comparison_result(c, &close))
        return;
    decibels(close.sqnr, db);
    percent(close.error, off);
    if (isinf(close.sqnr) && close.sqnr > 0)
        cfxi_base_out_str(out, "the result: equal\n");
    else
        cfxi_base_out_printf(out, "the result: %s dB, cosine %.5f, %s off\n", db, close.cosine,
                             off);
}

static void write_table(cfx_comparison *c, size_t width, size_t most, cfxi_out *out)
{
    cfx_compared row;
    cells line;
    size_t widths[COLUMNS] = {0};
    const size_t n = most && most < c->n_order ? most : c->n_order;
    write_result(c, out);
    for (size_t k = 0; k < n && cfx_comparison_row(c, k, &row); k++) {
        fill_cells(&row, &line);
        measure(&line, widths);
    }
    for (size_t k = 0; k < COLUMNS; k++) {
        snprintf(line.text[k], CELL, "%s", headings[k]);
        if (widths[k] && widths[k] < strlen(headings[k]))
            widths[k] = strlen(headings[k]);
    }
    squeeze(widths, width);
    if (n > 0)
        write_line(out, &line, widths);
    for (size_t k = 0; k < n && cfx_comparison_row(c, k, &row); k++) {
        fill_cells(&row, &line);
        write_line(out, &line, widths);
    }
    if (n < c->n_order)
        cfxi_base_out_printf(out, "and %zu more layers\n", c->n_order - n);
    if (c->n_order == 0)
        cfxi_base_out_str(out, "no layers to compare\n");
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void json_number(cfx_json *j, const char *key, double f)
{
    cfx_json_field(j, key);
    cfx_json_float(j, f);
}

static void json_word(cfx_json *j, const char *key, const char *text)
{
    cfx_json_field(j, key);
    cfx_json_text(j, text);
}

static void json_closeness(cfx_json *j, const cfx_closeness *close)
{
    json_number(j, "sqnr", close->sqnr);
    json_number(j, "cosine", close->cosine);
    json_number(j, "error", close->error);
    json_number(j, "largest", close->largest);
    cfx_json_field(j, "elements");
    cfx_json_int(j, close->elements);
    cfx_json_field(j, "not_finite");
    cfx_json_int(j, close->not_finite);
}

static void json_row(cfx_json *j, const cfx_compared *row)
{
    cfx_json_line(j);
    cfx_json_open(j, '{');
    json_word(j, "name", row->name);
    json_word(j, "partner", row->partner);
    json_word(j, "module", row->module);
    json_word(j, "operation", row->operation);
    json_closeness(j, &row->close);
    json_number(j, "input_sqnr", row->input_sqnr);
    json_number(j, "own_error", row->own_error);
    json_word(j, "advice", row->advice);
    json_word(j, "file", row->file);
    cfx_json_field(j, "line");
    cfx_json_uint(j, row->line);
    cfx_json_close(j, '}');
}

static cfx_status write_json(cfx_comparison *c, size_t most, cfxi_out *out, cfx_error *err)
{
    cfx_json j;
    cfx_closeness result;
    cfx_compared row;
    cfx_json_begin(&j, cfxi_base_out_sink(out), false);
    cfx_json_open(&j, '{');
    cfx_json_field(&j, "result");
    if (cfx_comparison_result(c, &result)) {
        cfx_json_open(&j, '{');
        json_closeness(&j, &result);
        cfx_json_close(&j, '}');
    } else {
        cfx_json_null(&j);
    }
    cfx_json_field(&j, "layers");
    cfx_json_open(&j, '[');
    for (size_t k = 0; (!most || k < most) && cfx_comparison_row(c, k, &row); k++)
        json_row(&j, &row);
    cfx_json_close(&j, ']');
    cfx_json_close(&j, '}');
    cfxi_base_out_char(out, '\n');
    return j.status == CFX_OK ? CFX_OK : cfxi_base_failed(err, j.status);
}

cfx_status cfx_comparison_print(cfx_comparison *c, cfx_comparison_format format, size_t width,
                                size_t most, cfx_sink sink, cfx_error *err)
{
    cfxi_out out;
    cfx_compared row;
    cfx_status status = CFX_OK;
    CFX_TRY(cfxi_base_expect(c, "comparison", err));
    cfx_comparison_row(c, 0, &row);  /* sorts them */
    if (!c->is_sorted)
        return cfxi_base_nomem(err);
    cfxi_base_out_begin(&out, sink);
    if (format == CFX_COMPARISON_JSON)
        status = write_json(c, most, &out, err);
    else
        write_table(c, width, most, &out);
    return status == CFX_OK ? cfxi_base_out_end(&out, err) : status;
}
