/* tabular.c - the table that torch.fx's print_tabular prints: one row for each node.
 *
 * torch.fx leaves the layout to the package tabulate. What of its rules can show here: columns are
 * two apart and at least two wider than their heading; blanks around a cell and at the end of a
 * line are dropped; a cell of several lines takes several lines; and a column in which every cell
 * reads as a number is aligned at the decimal point.
 */
#include "graph_impl.h"

#include <stdio.h>

enum { COLUMNS = 5, GAP = 2, HEADING_ROOM = 2 };

static const char *const headings[COLUMNS] = {"opcode", "name", "target", "args", "kwargs"};

typedef struct cell {
    size_t at;  /* in the table's text */
    size_t size;
} cell;

/* What all cells of a column read as; a later kind includes the earlier ones. */
typedef enum column_type { TYPE_EMPTY, TYPE_BOOL, TYPE_INT, TYPE_FLOAT, TYPE_TEXT } column_type;

typedef struct table {
    cfx_graph *graph;
    const cfx_allocator *allocator;
    cfx_buffer text;   /* of all cells, one after the other */
    cfxi_vec cells;    /* of cell: COLUMNS for each row */
    column_type types[COLUMNS];
    size_t widths[COLUMNS];
    size_t decimals[COLUMNS];  /* most characters from the point on, the point included */
} table;

/* ---- cells --------------------------------------------------------------------------------- */

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Ends the cell that began at `first`, without the blanks around it. */
static cfx_status cell_end(table *t, size_t first, cfx_error *err)
{
    size_t end = t->text.size;
    while (first < end && is_blank(t->text.data[first]))
        first++;
    while (end > first && is_blank(t->text.data[end - 1]))
        end--;
    if (!cfxi_base_vec_reserve(&t->cells, 1, sizeof(cell), t->allocator))
        return cfxi_base_nomem(err);
    ((cell *)t->cells.data)[t->cells.size++] = (cell){first, end - first};
    return CFX_OK;
}

static cfx_status add_text(table *t, const char *text, size_t size, cfx_error *err)
{
    const size_t first = t->text.size;
    if (cfx_buffer_append(&t->text, text, size) != CFX_OK)
        return cfxi_base_nomem(err);
    return cell_end(t, first, err);
}

static cfx_status add_repr(table *t, cfx_value v, cfx_error *err)
{
    const size_t first = t->text.size;
    CFX_TRY(cfxi_ir_value_repr(t->graph, v, cfx_buffer_sink(&t->text), err));
    return cell_end(t, first, err);
}

static cfx_status add_target(table *t, const cfx_node *n, cfx_error *err)
{
    const cfx_host *host = t->graph->host;
    const cfx_ref *ref = n->callee->ref;
    const size_t first = t->text.size;
    const cfx_sink sink = cfx_buffer_sink(&t->text);
    if (ref->kind != CFXI_REF_OBJECT)
        return add_text(t, ref->name->data, ref->name->size, err);
    if (host->show)
        CFX_TRY(host->show(host->ctx, ref->object, CFX_SHOW_STR, sink, err));
    else
        CFX_TRY(host->repr(host->ctx, ref->object, sink, err));
    return cell_end(t, first, err);
}

static cfx_status add_row(table *t, const cfx_node *n, cfx_error *err)
{
    const char *op = cfx_opcode_name((cfx_opcode)n->op);
    CFX_TRY(add_text(t, op, strlen(op), err));
    CFX_TRY(add_text(t, n->name->data, n->name->size, err));
    CFX_TRY(add_target(t, n, err));
    CFX_TRY(add_repr(t, cfx_node_args(n), err));
    return add_repr(t, cfx_node_kwargs(n), err);
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* Copies `text` without the underscores that Python allows between digits. 0 if one is elsewhere,
 * or if the text is too long to be worth a look. */
static size_t strip_underscores(const char *text, size_t size, char *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] != '_') {
            if (n == room)
                return 0;
            out[n++] = text[i];
        } else if (i == 0 || i + 1 == size || !cfxi_base_is_digit(text[i - 1]) ||
                   !cfxi_base_is_digit(text[i + 1])) {
            return 0;
        }
    }
    return n;
}

static bool is_word(const char *text, size_t size, const char *word)
{
    return strlen(word) == size && memcmp(word, text, size) == 0;
}

/* "inf", "-inf" and "nan" in any case, as tabulate reads them. */
static bool is_special(const char *text, size_t size, double *f)
{
    char lower[8];
    if (size > 4)
        return false;
    for (size_t i = 0; i < size; i++)
        lower[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
    if (!is_word(lower, size, "inf") && !is_word(lower, size, "-inf") &&
        !is_word(lower, size, "nan"))
        return false;
    return cfxi_base_parse_float(lower, size, f);
}

static column_type type_of(const char *text, size_t size, double *f)
{
    char plain[1024];
    if (size == 0)
        return TYPE_EMPTY;
    if (is_word(text, size, "True") || is_word(text, size, "False"))
        return TYPE_BOOL;
    if (is_special(text, size, f))
        return TYPE_FLOAT;
    const size_t n = strip_underscores(text, size, plain, sizeof plain);
    if (n == 0 || !cfxi_base_parse_float(plain, n, f))
        return TYPE_TEXT;
    size_t digits = plain[0] == '-' || plain[0] == '+';
    while (digits < n && cfxi_base_is_digit(plain[digits]))
        digits++;
    if (digits == n)
        return TYPE_INT;
    /* A spelled-out infinity is text, and so is a number that overflows to one. */
    return *f - *f == 0 ? TYPE_FLOAT : TYPE_TEXT;
}

/* The float as printf's %g, whatever the locale's decimal point. */
static size_t format_g(double f, char *out, size_t room)
{
    const int n = snprintf(out, room, "%g", f);
    size_t size = 0;
    for (int i = 0; i < n; i++) {
        const bool point = !cfxi_base_is_digit(out[i]) && out[i] != '-' && out[i] != '+' &&
                           !cfxi_base_is_ident_start(out[i]);
        if (!point)
            out[size++] = out[i];
        else if (size && out[size - 1] != '.') /* a point may have several bytes */
            out[size++] = '.';
    }
    return size;
}

/* Characters after the point (or the exponent's letter), and itself; 0 for whole numbers. */
static size_t decimals_of(const char *text, size_t size)
{
    double f;
    if (type_of(text, size, &f) != TYPE_FLOAT)
        return 0;
    const char *point = memchr(text, '.', size);
    const char *exponent = memchr(text, 'e', size);
    const char *from = point ? point : exponent;
    return from ? size - (size_t)(from - text) : 0;
}

/* Rewrites the numbers of a column of floats as %g, and finds how far decimals reach. */
static cfx_status align_numbers(table *t, size_t column, cfx_error *err)
{
    for (size_t i = column; i < t->cells.size; i += COLUMNS) {
        cell *c = (cell *)t->cells.data + i;
        char text[64];
        double f;
        const column_type type = type_of(t->text.data + c->at, c->size, &f);
        if (t->types[column] == TYPE_FLOAT && (type == TYPE_FLOAT || type == TYPE_INT)) {
            const size_t size = format_g(f, text, sizeof text);
            const size_t at = t->text.size;
            if (cfx_buffer_append(&t->text, text, size) != CFX_OK)
                return cfxi_base_nomem(err);
            *c = (cell){at, size};
        }
        const size_t decimals = decimals_of(t->text.data + c->at, c->size);
        if (decimals > t->decimals[column])
            t->decimals[column] = decimals;
    }
    return CFX_OK;
}

static bool is_numeric(const table *t, size_t column)
{
    return t->types[column] == TYPE_INT || t->types[column] == TYPE_FLOAT;
}

/* Only names and targets can read as numbers: arguments always have parentheses. */
static cfx_status find_types(table *t, cfx_error *err)
{
    for (size_t column = 0; column < COLUMNS; column++)
        t->types[column] = column == 1 || column == 2 ? TYPE_EMPTY : TYPE_TEXT;
    for (size_t i = 0; i < t->cells.size; i++) {
        const cell c = ((cell *)t->cells.data)[i];
        column_type *type = &t->types[i % COLUMNS];
        double f;
        const column_type found =
            *type == TYPE_TEXT ? TYPE_TEXT : type_of(t->text.data + c.at, c.size, &f);
        *type = found > *type ? found : *type;
    }
    for (size_t column = 0; column < COLUMNS; column++) {
        if (is_numeric(t, column))
            CFX_TRY(align_numbers(t, column, err));
    }
    return CFX_OK;
}

/* ---- widths -------------------------------------------------------------------------------- */

/* The size of the first line of a text, and of the line break after it. */
static size_t line_size(const char *text, size_t size, size_t *break_size)
{
    size_t n = 0;
    while (n < size && text[n] != '\n' && text[n] != '\r')
        n++;
    *break_size = n == size ? 0 : text[n] == '\r' && n + 1 < size && text[n + 1] == '\n' ? 2 : 1;
    return n;
}

static size_t cell_width(const table *t, size_t column, cell c)
{
    size_t width = 0;
    for (size_t done = 0, n, break_size; done < c.size; done += n + break_size) {
        const char *line = t->text.data + c.at + done;
        n = line_size(line, c.size - done, &break_size);
        const size_t w = cfxi_base_text_width(line, n);
        width = w > width ? w : width;
    }
    if (is_numeric(t, column))
        width += t->decimals[column] - decimals_of(t->text.data + c.at, c.size);
    return width;
}

/* Cuts the widest columns down to one width, so that the rest may stay as they are. */
static void fit_widths(table *t, size_t width)
{
    const size_t gaps = GAP * (COLUMNS - 1);
    const size_t room = width > gaps + COLUMNS ? width - gaps : COLUMNS;
    size_t most = 0;
    size_t used = 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        most = t->widths[i] > most ? t->widths[i] : most;
        used += t->widths[i];
    }
    while (used > room) { /* one level down at a time: as many steps as the widest has columns */
        used = 0;
        most = most > room ? room : most - 1;
        for (size_t i = 0; i < COLUMNS; i++)
            used += t->widths[i] < most ? t->widths[i] : most;
    }
    size_t spare = room > used ? room - used : 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        if (t->widths[i] <= most)
            continue;
        t->widths[i] = most + (spare > 0);
        spare -= spare > 0;
    }
}

static void find_widths(table *t, size_t width)
{
    for (size_t i = 0; i < COLUMNS; i++)
        t->widths[i] = strlen(headings[i]) + HEADING_ROOM;
    for (size_t i = 0; i < t->cells.size; i++) {
        const size_t column = i % COLUMNS;
        const size_t w = cell_width(t, column, ((cell *)t->cells.data)[i]);
        t->widths[column] = w > t->widths[column] ? w : t->widths[column];
    }
    if (width > 0)
        fit_widths(t, width);
}

/* ---- output -------------------------------------------------------------------------------- */

/* Blanks are written only when something follows them on the line. */
typedef struct line_out {
    cfxi_out out;
    size_t blanks;
} line_out;

static void line_write(line_out *line, const char *text, size_t size)
{
    while (size && text[0] == ' ') {
        line->blanks++;
        text++;
        size--;
    }
    size_t end = size;
    while (end && text[end - 1] == ' ')
        end--;
    if (end) {
        cfxi_base_out_spaces(&line->out, line->blanks);
        cfxi_base_out_write(&line->out, text, end);
        line->blanks = 0;
    }
    line->blanks += size - end;
}

static void line_end(line_out *line, bool last)
{
    line->blanks = 0;
    if (!last)
        cfxi_base_out_char(&line->out, '\n');
}

/* The first `width` - 1 characters and an ellipsis, if there are more than `width`. */
static size_t line_cut(line_out *line, const char *text, size_t size, size_t width)
{
    static const char ellipsis[] = "\xe2\x80\xa6";
    const size_t full = cfxi_base_text_width(text, size);
    if (full <= width) {
        line_write(line, text, size);
        return full;
    }
    size_t end = 0;
    for (size_t left = width; end < size; end++) {
        const bool starts = ((unsigned char)text[end] & 0xc0) != 0x80;
        if (starts && left-- == 1)
            break;
    }
    line_write(line, text, end);
    line_write(line, ellipsis, sizeof ellipsis - 1);
    return width;
}

static void write_cell(line_out *line, const table *t, size_t column, const char *text, size_t size,
                       size_t decimals)
{
    const size_t width = t->widths[column];
    const size_t after = is_numeric(t, column) ? t->decimals[column] - decimals : 0;
    const size_t full = cfxi_base_text_width(text, size) + after;
    if (is_numeric(t, column) && full < width)
        line->blanks += width - full;
    const size_t done = line_cut(line, text, size, width);
    if (!is_numeric(t, column) || full > width)
        line->blanks += width - done;
    else
        line->blanks += after;
    line->blanks += column + 1 < COLUMNS ? GAP : 0;
}

static void write_head(line_out *line, const table *t)
{
    for (size_t i = 0; i < COLUMNS; i++)
        write_cell(line, t, i, headings[i], strlen(headings[i]), t->decimals[i]);
    line_end(line, false);
    for (size_t i = 0; i < COLUMNS; i++) {
        for (size_t n = 0; n < t->widths[i]; n++)
            line_write(line, "-", 1);
        line->blanks += GAP;
    }
}

/* Writes the next line of each cell and takes it off; false if there was nothing left. */
static bool write_line(line_out *line, const table *t, cell row[COLUMNS], bool first)
{
    size_t left = 0;
    for (size_t i = 0; i < COLUMNS; i++)
        left += row[i].size;
    if (!first && left == 0)
        return false;
    line_end(line, false);
    for (size_t i = 0; i < COLUMNS; i++) {
        const char *text = t->text.data + row[i].at;
        size_t break_size;
        const size_t n = line_size(text, row[i].size, &break_size);
        write_cell(line, t, i, text, n, decimals_of(text, n));
        row[i].at += n + break_size;
        row[i].size -= n + break_size;
    }
    return true;
}

static cfx_status write_table(const table *t, cfx_sink sink, cfx_error *err)
{
    line_out line = {.blanks = 0};
    cfxi_base_out_begin(&line.out, sink);
    write_head(&line, t);
    for (size_t i = 0; i < t->cells.size; i += COLUMNS) {
        cell row[COLUMNS];
        memcpy(row, (cell *)t->cells.data + i, sizeof row);
        for (bool first = true; write_line(&line, t, row, first);)
            first = false;
    }
    line_end(&line, false);
    return cfxi_base_out_end(&line.out, err);
}

cfx_status cfx_graph_table(cfx_graph *g, size_t width, cfx_sink out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    table t = {.graph = g, .allocator = g->allocator};
    cfx_status status = CFX_OK;
    cfx_buffer_init(&t.text, g->allocator);
    cfxi_ir_graph_freeze(g);
    for (const cfx_node *n = g->root.next; n != &g->root && status == CFX_OK; n = n->next)
        status = add_row(&t, n, err);
    cfxi_ir_graph_thaw(g);
    if (status == CFX_OK)
        status = find_types(&t, err);
    if (status == CFX_OK) {
        find_widths(&t, width);
        status = write_table(&t, out, err);
    }
    cfx_buffer_free(&t.text);
    cfxi_base_vec_free(&t.cells, sizeof(cell), g->allocator);
    return status;
}
