/* index.c - ops_index.inc: every name of an operator, sorted, so that op_table.c finds its row. */
#include "generate.h"

#include <stdlib.h>
#include <string.h>

enum { IS_ID = 0xffff };  /* in the place of the offset: the name is the row's id */

typedef struct index_entry {
    const char *name;
    size_t size;
    size_t row;
    size_t offset;  /* in the row's spellings */
} index_entry;

static int compare_entries(const void *a, const void *b)
{
    const index_entry *x = a;
    const index_entry *y = b;
    const int order = memcmp(x->name, y->name, x->size < y->size ? x->size : y->size);
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Stores an entry for each name of a row, if `entries` is not NULL; returns how many there are. A
 * list of parameters in parentheses is not part of the name. */
static size_t add_entries(index_entry *entries, size_t row)
{
    size_t n = 0;
    const char *all = rows[row].spellings;
    if (entries)
        entries[n] = (index_entry){rows[row].id, strlen(rows[row].id), row, IS_ID};
    n++;
    for (const char *word = all + strspn(all, " "); *word; n++) {
        if (entries)
            entries[n] = (index_entry){word, strcspn(word, " ("), row, (size_t)(word - all)};
        word += strcspn(word, " ");
        word += strspn(word, " ");
    }
    return n;
}

static void expect_names_once(const index_entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const operator_row *row = &rows[entries[i].row];
        const operator_row *other = &rows[entries[i - 1].row];
        if (compare_entries(&entries[i], &entries[i - 1]) == 0)
            fail("%s:%d: '%.*s' is also a name of '%s', in line %d; a name belongs to one operator",
                 row->file, row->line, (int)entries[i].size, entries[i].name, other->id,
                 other->line);
    }
}

static void print_entries(FILE *out, const index_entry *entries, size_t count)
{
    size_t column = 3;
    fputs("   ", out);
    for (size_t i = 0; i < count; i++) {
        char item[64];
        const int size = snprintf(item, sizeof item, " {%zu, %zu},", entries[i].row + 1,
                                  entries[i].offset);
        if (column + (size_t)size > 100) {
            fputs("\n   ", out);
            column = 3;
        }
        fputs(item, out);
        column += (size_t)size;
    }
    fputc('\n', out);
}

char *ops_index_inc(void)
{
    text t;
    size_t count = 0;
    for (size_t i = 0; i < row_count; i++)
        count += add_entries(NULL, i);
    index_entry *entries = expect(calloc(count, sizeof *entries));
    for (size_t i = 0, n = 0; i < row_count; i++)
        n += add_entries(entries + n, i);
    qsort(entries, count, sizeof *entries, compare_entries);
    expect_names_once(entries, count);
    fputs("/* ops_index.inc - made by tools/generate: row and offset of each name of ops.def, "
          "sorted. */\n", begin(&t));
    print_entries(t.out, entries, count);
    return end(&t);
}
