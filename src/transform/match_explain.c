/* match_explain.c - why a pattern was not found: the attempts that came furthest, in words. */
#include "match_impl.h"

#include <stdio.h>

/* The place of a new miss among those that are kept, or max_misses. */
static size_t rank(const cfxi_search *s, size_t n_bound)
{
    size_t at = *s->n_misses;
    while (at > 0 && s->misses[at - 1].n_bound < n_bound)
        at--;
    return at;
}

/* Room for a miss; NULL if better ones fill the list. */
static cfx_miss *new_miss(cfxi_search *s, const cfx_node *wanted, const cfx_node *n)
{
    size_t at = s->misses ? rank(s, s->trail.size) : 0;
    if (!s->misses || at >= s->max_misses)
        return NULL;
    size_t last = *s->n_misses < s->max_misses ? (*s->n_misses)++ : s->max_misses - 1;
    memmove(s->misses + at + 1, s->misses + at, (last - at) * sizeof *s->misses);
    s->misses[at] = (cfx_miss){.pattern = s->pattern->number, .n_bound = s->trail.size,
                               .node = n, .wanted = wanted};
    return &s->misses[at];
}

bool cfxi_miss_node(cfxi_search *s, const cfx_node *wanted, const cfx_node *n, const char *format,
                    ...)
{
    cfx_miss *miss = new_miss(s, wanted, n);
    if (miss) {
        va_list list;
        va_start(list, format);
        vsnprintf(miss->reason, sizeof miss->reason, format, list);
        va_end(list);
    }
    return false;
}

/* ---- values -------------------------------------------------------------------------------- */

enum { SHORT = 60 };

static void append(cfx_buffer *out, const char *text)
{
    cfx_buffer_append(out, text, strlen(text));
}

/* At most SHORT bytes of a value's text. */
static void print_short(cfx_graph *g, cfx_value v, cfx_buffer *out)
{
    size_t before = out->size;
    if (v.kind == CFX_KIND_NODE) {
        const char *target = cfx_node_target(v.as.node, NULL, NULL);
        append(out, "%");
        append(out, v.as.node->name->data);
        append(out, " (");
        append(out, cfx_opcode_name((cfx_opcode)v.as.node->op));
        append(out, " ");
        append(out, target ? target : "of something without a name");
        append(out, ")");
    } else {
        cfx_value_print(g, v, cfx_buffer_sink(out), NULL);
    }
    if (out->size - before <= SHORT)
        return;
    out->size = before + SHORT;
    cfx_buffer_append(out, "...", 3);
}

static void append_number(cfx_buffer *out, uint32_t i)
{
    char text[CFXI_NUMBER_SIZE];
    cfx_buffer_append(out, text, cfxi_format_int(i, text));
}

/* "args[1]" or "kwargs['dim']", and the items in it on the way to a goal. */
static void print_path(const cfxi_search *s, const cfxi_goal *goal, cfx_buffer *out)
{
    if (goal->parent >= 0) {
        print_path(s, &((const cfxi_goal *)s->goals.data)[goal->parent], out);
        append(out, "[");
        append_number(out, goal->index);
        append(out, "]");
        return;
    }
    size_t n_args = cfx_node_num_args(goal->pn);
    size_t key = goal->index < n_args ? 0 : 2 * (goal->index - n_args);
    if (goal->index < n_args || !goal->pn->kwargs || key >= goal->pn->kwargs->size) {
        append(out, "args[");
        append_number(out, goal->index);
        append(out, "]");
    } else {
        append(out, "kwargs['");
        append(out, goal->pn->kwargs->items[key].as.str->data);
        append(out, "']");
    }
}

bool cfxi_miss_values(cfxi_search *s, const cfxi_goal *goal)
{
    cfx_buffer text;
    const cfx_node *wanted = goal->pn ? goal->pn : goal->p.as.node;
    const cfx_node *n = goal->gn ? goal->gn : goal->g.as.node;
    cfx_miss *miss = new_miss(s, wanted, n);
    if (!miss)
        return false;
    cfx_buffer_init(&text, s->graph->allocator);
    if (goal->pn)
        print_path(s, goal, &text);
    append(&text, goal->pn ? ": the pattern has " : "the pattern has ");
    print_short(s->pattern->graph, goal->p, &text);
    append(&text, ", the graph ");
    print_short(s->graph, goal->g, &text);
    size_t size = text.size < sizeof miss->reason - 1 ? text.size : sizeof miss->reason - 1;
    memcpy(miss->reason, text.data, size);
    miss->reason[size] = '\0';
    cfx_buffer_free(&text);
    return false;
}

/* ---- printing ------------------------------------------------------------------------------ */

cfx_status cfx_miss_print(const cfx_miss *miss, cfx_sink sink, cfx_error *err)
{
    cfxi_out out;
    cfxi_out_begin(&out, sink);
    const char *file = miss->node ? cfx_node_file(miss->node) : NULL;
    if (file)
        cfxi_out_printf(&out, "%s:%u: ", file, cfx_node_line(miss->node));
    if (miss->node)
        cfxi_out_printf(&out, "%%%s is not %%%s of the pattern", miss->node->name->data,
                        miss->wanted->name->data);
    else
        cfxi_out_printf(&out, "%%%s of the pattern was not found", miss->wanted->name->data);
    cfxi_out_printf(&out, " (%zu matched): %s", miss->n_bound, miss->reason);
    return cfxi_out_end(&out, err);
}
