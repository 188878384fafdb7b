/* findings.c - reports what is wrong with a graph, at the lines where its nodes stand.
 *
 * A graph does not remember the lines of its text. But the text has one statement for each node, in
 * their order, regions behind the line that they belong to: a walk over both at once finds them.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct finding {
    const cfx_node *node;  /* or NULL */
    char *message;
    size_t at;      /* where the node stands in the text; SIZE_MAX if unknown */
    size_t number;  /* in the order of the reports */
} finding;

typedef struct findings {
    finding *items;
    size_t n;
    size_t capacity;
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
    all->items[all->n] = (finding){n, copy, SIZE_MAX, all->n};
    all->n++;
}

/* ---- the statements of a text -------------------------------------------------------------- */

/* Walks over a text that has been parsed, so it is known to be right. */
typedef struct scanner {
    const char *text;
    size_t size;
    size_t at;
    size_t level;                             /* how deep in regions */
    size_t depth[CFX_MAX_REGION_DEPTH + 2];   /* open brackets in the statement, for each level */
    size_t last;                              /* where the last token began */
    size_t last_size;
} scanner;

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_./~+-", c));
}

/* The size of the token at s->at: a comment, a string, a word, or one character. */
static size_t token_size(const scanner *s)
{
    const char *first = s->text + s->at;
    const char *end = s->text + s->size;
    const char *p = first + 1;
    if (*first == '#') {
        while (p < end && *p != '\n')
            p++;
    } else if (*first == '"') {
        while (p < end && *p != '"')
            p += *p == '\\' ? 2 : 1;
        p++;
    } else if (is_word_char(*first)) {
        while (p < end && is_word_char(*p))
            p++;
    }
    return (size_t)((p < end ? p : end) - first);
}

static bool last_is(const scanner *s, const char *word)
{
    return s->last_size == strlen(word) && memcmp(s->text + s->last, word, s->last_size) == 0;
}

/* A node's statement begins with %name, or with the word output; but that may also be a name behind
 * '%', an opcode behind '=', a file behind '@', or a scope behind "in" and '>'. */
static bool begins_statement(const scanner *s, size_t size)
{
    const char *token = s->text + s->at;
    if (s->depth[s->level] > 0)
        return false;
    if (*token == '%')
        return true;
    return size == 6 && memcmp(token, "output", 6) == 0 && !last_is(s, "%") && !last_is(s, "=") &&
           !last_is(s, "@") && !last_is(s, "in") && !last_is(s, ">");
}

static void count_bracket(scanner *s)
{
    const char c = s->text[s->at];
    size_t *depth = &s->depth[s->level];
    if (c == '{' && last_is(s, "graph"))
        s->depth[++s->level] = 0;
    else if (c == '}' && *depth == 0)
        s->level--;
    else if (c == '(' || c == '[' || c == '{')
        ++*depth;
    else if (c == ')' || c == ']' || c == '}')
        --*depth;
}

/* Where the next statement begins; SIZE_MAX after the last. */
static size_t next_statement(scanner *s)
{
    while (s->at < s->size) {
        const size_t at = s->at;
        const size_t size = token_size(s);
        const bool found = begins_statement(s, size);
        if (!strchr(" \t\r\n#", s->text[at])) {
            count_bracket(s);
            s->last = at;
            s->last_size = size;
        }
        s->at += size;
        if (found)
            return at;
    }
    return SIZE_MAX;
}

/* ---- finding the places -------------------------------------------------------------------- */

typedef struct search {
    scanner scan;
    findings *all;
} search;

static int compare_node(const void *a, const void *b)
{
    const cfx_node *x = ((const finding *)a)->node;
    const cfx_node *y = ((const finding *)b)->node;
    return (x > y) - (x < y);
}

static int compare_place(const void *a, const void *b)
{
    const finding *x = a;
    const finding *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static void place_findings(findings *all, const cfx_node *n, size_t at)
{
    const finding key = {.node = n};
    finding *found = bsearch(&key, all->items, all->n, sizeof key, compare_node);
    if (!found)
        return;
    while (found > all->items && found[-1].node == n)
        found--;
    for (; found < all->items + all->n && found->node == n; found++)
        found->at = at;
}

static void search_graph(search *s, const cfx_graph *g);

static void search_value(search *s, cfx_value v)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    const cfx_graph *region = cfx_value_graph(v);
    if (region)
        search_graph(s, region);
    for (size_t i = 0; i < n; i++)
        search_value(s, items[i]);
}

static void search_graph(search *s, const cfx_graph *g)
{
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        place_findings(s->all, n, next_statement(&s->scan));
        search_value(s, cfx_node_args(n));
        search_value(s, cfx_node_kwargs(n));
    }
}

static void sort_by_place(const cli_input *in, findings *all)
{
    search s = {.scan = {.text = in->text, .size = in->size}, .all = all};
    while (token_size(&s.scan) != 5 || memcmp(in->text + s.scan.at, "graph", 5) != 0)
        s.scan.at += token_size(&s.scan);
    qsort(all->items, all->n, sizeof *all->items, compare_node);
    search_graph(&s, in->graph);
    qsort(all->items, all->n, sizeof *all->items, compare_place);
}

/* ---- printing ------------------------------------------------------------------------------ */

static void print_line(const cli_input *in, size_t start, size_t at)
{
    enum { WIDTH = 100 };
    const char *line = in->text + start;
    const char *newline = memchr(line, '\n', in->size - start);
    size_t size = newline ? (size_t)(newline - line) : in->size - start;
    const bool cut = size > WIDTH;
    if (cut)
        size = WIDTH;
    while (cut && size > 0 && ((unsigned char)line[size] & 0xc0) == 0x80)
        size--;
    fprintf(stderr, "  %.*s%s\n", (int)size, line, cut ? "..." : "");
    if (at - start < WIDTH)
        fprintf(stderr, "  %*s^\n", (int)(at - start), "");
}

/* In the order of the text; the line is shown once for all that is found at one place. */
static void print_findings(const cli_input *in, const findings *all)
{
    size_t line = 1;
    size_t start = 0; /* of that line */
    for (size_t i = 0; i < all->n; i++) {
        const finding *f = &all->items[i];
        if (f->at == SIZE_MAX) {
            fprintf(stderr, "%s: %s\n", in->name, f->message);
            continue;
        }
        for (size_t at = start; at < f->at; at++) {
            if (in->text[at] == '\n') {
                line++;
                start = at + 1;
            }
        }
        fprintf(stderr, "%s%s:%zu:%zu:%s %s\n", cli_ink_on(stderr, CLI_BOLD), in->name, line,
                f->at - start + 1, cli_ink_on(stderr, CLI_PLAIN), f->message);
        if (i + 1 == all->n || f[1].at != f->at)
            print_line(in, start, f->at);
    }
}

size_t cli_findings(const cli_input *in, cli_check_fn *check)
{
    findings all = {0};
    cfx_error err = {.status = CFX_OK};
    cli_progress("checking", in->size);
    cfx_status status = check(in->graph, collect, &all, &err);
    cli_progress_end();
    if (all.n > 0)
        sort_by_place(in, &all);
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
