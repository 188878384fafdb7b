/* split_order.c - the order in which the parts of a split are called, and what is wrong where there
 * is none.
 */
#include "split_impl.h"

#include <stdio.h>

typedef struct sorter {
    cfxi_splitter *s;
    size_t *starts, *next;  /* next[starts[p]] .. next[starts[p + 1]]: parts that need part p */
    size_t *missing;        /* how many parts each still waits for */
    size_t *ready;          /* parts that wait for none: a stack, or a heap with the least on top */
    size_t n_ready;
    bool by_number;
} sorter;

/* ---- who needs whom ------------------------------------------------------------------------ */

/* The parts that need each part, as often as a value says so; in the order of the cuts. */
static cfx_status list_needs(sorter *t)
{
    cfxi_splitter *s = t->s;
    const cfx_cut *cuts = s->result->cuts;
    size_t *fill = cfxi_split_array(s, s->parts + 1, sizeof *fill);
    t->starts = fill ? cfxi_split_array(s, s->parts + 1, sizeof *t->starts) : NULL;
    t->next = t->starts ? cfxi_split_array(s, s->result->n_cuts, sizeof *t->next) : NULL;
    if (!t->next)
        return CFX_E_NOMEM;
    for (size_t i = 0; i < s->result->n_cuts; i++)
        if (cuts[i].from != CFX_SPLIT_BASE && cuts[i].to != CFX_SPLIT_BASE)
            t->starts[cuts[i].from + 1]++;
    for (size_t p = 0; p < s->parts; p++)
        t->starts[p + 1] += t->starts[p];
    memcpy(fill, t->starts, (s->parts + 1) * sizeof *fill);
    for (size_t i = 0; i < s->result->n_cuts; i++)
        if (cuts[i].from != CFX_SPLIT_BASE && cuts[i].to != CFX_SPLIT_BASE)
            t->next[fill[cuts[i].from]++] = cuts[i].to;
    return CFX_OK;
}

/* Leaves each pair of parts once, in place: what is dropped becomes SIZE_MAX. */
static cfx_status drop_repeats(sorter *t)
{
    size_t *last = cfxi_split_array(t->s, t->s->parts, sizeof *last);
    t->missing = last ? cfxi_split_array(t->s, t->s->parts, sizeof *t->missing) : NULL;
    if (!t->missing)
        return CFX_E_NOMEM;
    for (size_t p = 0; p < t->s->parts; p++) {
        for (size_t i = t->starts[p]; i < t->starts[p + 1]; i++) {
            size_t to = t->next[i];
            if (last[to] == p + 1) {
                t->next[i] = SIZE_MAX;
                continue;
            }
            last[to] = p + 1;
            t->missing[to]++;
        }
    }
    return CFX_OK;
}

/* ---- parts that can be called -------------------------------------------------------------- */

static void swap(size_t *a, size_t *b)
{
    size_t old = *a;
    *a = *b;
    *b = old;
}

static void put(sorter *t, size_t part)
{
    size_t i = t->n_ready++;
    t->ready[i] = part;
    for (; t->by_number && i > 0 && t->ready[(i - 1) / 2] > t->ready[i]; i = (i - 1) / 2)
        swap(&t->ready[(i - 1) / 2], &t->ready[i]);
}

static size_t take(sorter *t)
{
    size_t *heap = t->ready;
    size_t n = --t->n_ready;
    if (!t->by_number)
        return heap[n];
    swap(&heap[0], &heap[n]);
    for (size_t i = 0, child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[i] <= heap[child])
            break;
        swap(&heap[i], &heap[child]);
    }
    return heap[n];
}

static size_t sort(sorter *t)
{
    size_t done = 0;
    for (size_t p = 0; p < t->s->parts; p++)
        if (t->missing[p] == 0)
            put(t, p);
    while (t->n_ready > 0) {
        size_t p = take(t);
        t->s->result->order[done++] = p;
        for (size_t i = t->starts[p]; i < t->starts[p + 1]; i++)
            if (t->next[i] != SIZE_MAX && --t->missing[t->next[i]] == 0)
                put(t, t->next[i]);
    }
    return done;
}

/* ---- what is wrong ------------------------------------------------------------------------- */

/* "b needs %add of a (for %mul at model.py:3)": how much was written, never more than `room`. */
static size_t say_need(const cfxi_splitter *s, size_t cut, char *out, size_t room)
{
    const cfx_cut *c = &s->result->cuts[cut];
    const cfx_node *reader = s->readers[cut];
    const char *file = cfx_node_file(reader);
    int n = snprintf(out, room, "%.40s needs %%%.40s of %.40s (for %%%.40s", s->what->names[c->to],
                     c->value->name->data, s->what->names[c->from], reader->name->data);
    if (file && (size_t)n < room)
        n += snprintf(out + n, room - (size_t)n, " at %.100s:%u", file, cfx_node_line(reader));
    if ((size_t)n < room)
        n += snprintf(out + n, room - (size_t)n, ")");
    return (size_t)n < room ? (size_t)n : room - 1;
}

/* Of each part that waits for ever, the first cut by which it waits for another such. */
static size_t *find_waits(sorter *t)
{
    cfxi_splitter *s = t->s;
    size_t *waits = cfxi_split_array(s, s->parts, sizeof *waits);
    for (size_t i = s->result->n_cuts; waits && i > 0; i--) {
        const cfx_cut *c = &s->result->cuts[i - 1];
        if (c->from != CFX_SPLIT_BASE && c->to != CFX_SPLIT_BASE && t->missing[c->from] > 0)
            waits[c->to] = i - 1;
    }
    return waits;
}

static cfx_status report_cycle(sorter *t)
{
    cfxi_splitter *s = t->s;
    char text[360] = "";
    size_t used = 0, at = 0;
    size_t *waits = find_waits(t);
    bool *seen = waits ? cfxi_split_array(s, s->parts, sizeof *seen) : NULL;
    if (!seen)
        return CFX_E_NOMEM;
    while (t->missing[at] == 0)
        at++;
    for (; !seen[at]; at = s->result->cuts[waits[at]].from)
        seen[at] = true;
    for (size_t first = at, more = 1; more && used + 80 < sizeof text;) {
        used += say_need(s, waits[at], text + used, sizeof text - used);
        at = s->result->cuts[waits[at]].from;
        more = at != first;
        if (more && used + 2 < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, ", ");
    }
    return cfx_error_set(s->err, CFX_E_GRAPH, "cycle exists between partitions! %s; add the nodes "
                         "that lie between two nodes of a partition to that partition", text);
}

static cfx_status check_fixed(sorter *t)
{
    cfxi_splitter *s = t->s;
    for (size_t i = 0; i < s->result->n_cuts; i++) {
        const cfx_cut *c = &s->result->cuts[i];
        char text[360];
        if (c->from == CFX_SPLIT_BASE || c->to == CFX_SPLIT_BASE || c->from < c->to)
            continue;
        say_need(s, i, text, sizeof text);
        return cfx_error_set(s->err, CFX_E_GRAPH, "the parts cannot be called in the given order: "
                             "%s", text);
    }
    return CFX_OK;
}

cfx_status cfxi_split_order(cfxi_splitter *s)
{
    const unsigned flags = s->what->flags;
    sorter t = {.s = s, .by_number = s->writes || s->roles || (flags & (CFX_SPLIT_KEEP_ORDER |
                                                                        CFX_SPLIT_FIXED_ORDER))};
    if (flags & CFX_SPLIT_FIXED_ORDER)
        CFX_TRY(check_fixed(&t));
    CFX_TRY(list_needs(&t));
    CFX_TRY(drop_repeats(&t));
    t.ready = cfxi_split_array(s, s->parts, sizeof *t.ready);
    if (!t.ready)
        return CFX_E_NOMEM;
    return sort(&t) == s->parts ? CFX_OK : report_cycle(&t);
}
