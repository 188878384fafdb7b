/* findings.c - reports what is wrong with a graph, at the lines where its nodes stand. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct finding {
    char *message;
    cfx_text_place place;  /* of its node in the text */
    bool placed;      /* else that is not known */
    size_t number;    /* in the order of the reports */
} finding;

typedef struct findings {
    finding *items;
    size_t n;
    size_t capacity;
    cfx_text_places *places;
    bool nomem;
} findings;

/* ---- collecting ---------------------------------------------------------------------------- */

static bool make_room(findings *all)
{
    if (all->n < all->capacity)
        return true;
    size_t capacity = all->capacity ? 2 * all->capacity : 16;
    finding *items = realloc(all->items, capacity * sizeof *items);
    if (!items)
        return false;
    all->items = items;
    all->capacity = capacity;
    return true;
}

static void collect(void *ctx, const cfx_node *n, const char *message)
{
    findings *all = ctx;
    size_t size = strlen(message) + 1;
    char *copy = make_room(all) ? malloc(size) : NULL;
    if (!copy) {
        all->nomem = true;
        return;
    }
    memcpy(copy, message, size);
    finding *f = &all->items[all->n];
    *f = (finding){.message = copy, .number = all->n};
    f->placed = n && cfx_text_places_find(all->places, n, &f->place);
    all->n++;
}

/* In the order of the text; those without a place last. */
static int compare_place(const void *a, const void *b)
{
    const finding *x = a;
    const finding *y = b;
    if (x->placed != y->placed)
        return x->placed ? -1 : 1;
    if (x->place.offset != y->place.offset)
        return x->place.offset < y->place.offset ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* ---- printing ------------------------------------------------------------------------------ */

static void print_line(const cli_input *in, const cfx_text_place *place)
{
    enum { WIDTH = 100 };
    const size_t at = place->column - 1;
    const size_t start = place->offset - at;
    const char *line = in->text + start;
    const char *newline = memchr(line, '\n', in->size - start);
    size_t size = newline ? (size_t)(newline - line) : in->size - start;
    const bool cut = size > WIDTH;
    if (cut)
        size = WIDTH;
    while (cut && size > 0 && ((unsigned char)line[size] & 0xc0) == 0x80)
        size--;
    fprintf(stderr, "  %.*s%s\n", (int)size, line, cut ? "..." : "");
    if (at < WIDTH)
        fprintf(stderr, "  %*s^\n", (int)at, "");
}

/* The line is shown once for all that is found at one place. */
static void print_findings(const cli_input *in, const findings *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const finding *f = &all->items[i];
        if (!f->placed) {
            fprintf(stderr, "%s: %s\n", in->name, f->message);
            continue;
        }
        fprintf(stderr, "%s%s:%u:%u:%s %s\n", cli_ink_on(stderr, CLI_BOLD), in->name,
                f->place.line, f->place.column, cli_ink_on(stderr, CLI_PLAIN), f->message);
        if (i + 1 == all->n || !f[1].placed || f[1].place.offset != f->place.offset)
            print_line(in, &f->place);
    }
}

size_t cli_findings(const cli_input *in, cli_check_fn *check)
{
    findings all = {.places = in->places};
    cfx_error err = {.status = CFX_OK};
    cli_progress("checking", in->size);
    cfx_status status = check(in->graph, collect, &all, &err);
    cli_progress_end();
    if (all.n > 0)
        qsort(all.items, all.n, sizeof *all.items, compare_place);
    print_findings(in, &all);
    for (size_t i = 0; i < all.n; i++)
        free(all.items[i].message);
    free(all.items);
    if (all.nomem || (status != CFX_OK && status != CFX_E_GRAPH)) {
        cfx_error_set(&err, CFX_E_NOMEM, "out of memory");
        cli_report(in, &err);
        return all.n + 1;
    }
    return all.n;
}
