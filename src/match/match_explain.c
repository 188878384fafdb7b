/* match_explain.c - why a pattern was not found: the attempts that came furthest, in words. */
#include "match_impl.h"

#include <cfx/embed/ops.h>

#include <stdio.h>

static size_t score(const cfx_miss *miss) { return 2 * miss->n_bound + miss->complete; }

/* The place of a new miss among those that are kept, or max_misses. */
static size_t rank(const cfxi_search *s, const cfx_miss *miss)
{
    size_t at = *s->n_misses;
    while (at > 0 && score(&s->misses[at - 1]) < score(miss))
        at--;
    return at;
}

static void keep(cfxi_search *s, const cfx_miss *miss)
{
    size_t at = rank(s, miss);
    if (at >= s->max_misses)
        return;
    size_t last = *s->n_misses < s->max_misses ? (*s->n_misses)++ : s->max_misses - 1;
    memmove(s->misses + at + 1, s->misses + at, (last - at) * sizeof *s->misses);
    s->misses[at] = *miss;
}

void cfxi_match_miss_begin(cfxi_search *s, const cfx_node *candidate, bool match)
{
    if (s->misses && s->near.wanted && !match)
        keep(s, &s->near);
    s->near = (cfx_miss){.pattern = s->pattern->number, .n_nodes = s->pattern->n - 1,
                         .anchor = candidate};
}

/* Room for a miss; NULL if nobody wants to know, or this candidate came further before. */
static cfx_miss *new_miss(cfxi_search *s, const cfx_node *wanted, const cfx_node *n)
{
    if (!s->misses || (s->near.wanted && s->near.n_bound >= s->trail.size))
        return NULL;
    s->near.n_bound = s->trail.size;
    s->near.node = n;
    s->near.wanted = wanted;
    return &s->near;
}

bool cfxi_match_miss_node(cfxi_search *s, const cfx_node *wanted, const cfx_node *n,
                          const char *format, ...)
{
    cfx_miss *miss = new_miss(s, wanted, n);
    va_list list;
    va_start(list, format);
    if (miss)
        vsnprintf(miss->reason, sizeof miss->reason, format, list);
    va_end(list);
    return false;
}

/* What was found completely came further than whatever was tried before. */
bool cfxi_match_miss_way(cfxi_search *s, const cfx_node *n, const char *format, ...)
{
    if (!s->near.complete)
        s->near.wanted = NULL;
    cfx_miss *miss = new_miss(s, s->pattern->outputs[0], n);
    va_list list;
    va_start(list, format);
    if (miss)
        vsnprintf(miss->reason, sizeof miss->reason, format, list);
    va_end(list);
    s->near.complete = true;
    return false;
}

/* Whether any_spelling would take `n` for it. */
static bool is_respelled(cfxi_search *s, const cfx_node *wanted, const cfx_node *n)
{
    const cfx_operator op = cfx_node_operator(wanted);
    cfx_operator other = CFX_OPID_NONE;
    if (!s->opts->any_spelling && op && s->status == CFX_OK)
        s->status = cfx_node_operator_of(n, s->opts->modules, &other, s->err);
    return op && op == other;
}

void cfxi_match_miss_none(cfxi_search *s, const cfx_node *anchor)
{
    const cfx_node *other = NULL;
    const char *target = s->misses ? cfx_node_target(anchor, NULL, NULL) : NULL;
    for (int op = 0; s->misses && op < CFX_OPCODE_COUNT; op++)
        for (const cfxi_callee *c = s->graph->callees[op]; c && !other; c = c->next)
            if (c->first && is_respelled(s, anchor, c->first))
                other = c->first;
    cfxi_match_miss_begin(s, other, false);
    if (other)
        cfxi_match_miss_node(s, anchor, other,
                             "it calls the same operator, %s, under another name: see any_spelling",
                             cfx_operator_name(cfx_node_operator(anchor)));
    else if (target && anchor->op == CFX_OP_CALL_MODULE)
        cfxi_match_miss_node(s, anchor, NULL,
                             "no node of the graph calls the module '%s' (modules are compared by "
                             "path)",
                             target);
    else if (target && anchor->op != CFX_OP_OUTPUT && anchor->op != CFX_OP_PLACEHOLDER)
        cfxi_match_miss_node(s, anchor, NULL, "no node of the graph %s %s%s",
                             anchor->op == CFX_OP_GET_ATTR ? "reads the attribute" : "calls",
                             anchor->op == CFX_OP_CALL_METHOD ? "the method " : "", target);
    else
        cfxi_match_miss_node(s, anchor, NULL, "no node of the graph matches it");
}

/* The first keyword of `a` that `b` does not have, or NULL. */
static const char *only_key(const cfx_node *a, const cfx_node *b)
{
    for (uint32_t i = 0; a->kwargs && i < a->kwargs->size; i += 2) {
        const char *key = a->kwargs->items[i].as.str->data;
        if (cfx_node_kwarg(b, key).kind == CFX_KIND_INVALID)
            return key;
    }
    return NULL;
}

bool cfxi_match_miss_arguments(cfxi_search *s, const cfx_node *pn, const cfx_node *gn)
{
    const size_t np = cfx_node_num_args(pn);
    const size_t ng = cfx_node_num_args(gn);
    const char *mine = only_key(pn, gn);
    const char *other = only_key(gn, pn);
    if (np != ng)
        return cfxi_match_miss_node(s, pn, gn,
                                    "the pattern passes %zu positional arguments, the graph %zu",
                                    np, ng);
    if (mine || other)
        return cfxi_match_miss_node(s, pn, gn, "only %s passes the keyword '%s'",
                                    mine ? "the pattern" : "the graph", mine ? mine : other);
    return cfxi_match_miss_node(s, pn, gn, "the keywords are in a different order");
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
        append(out, target ? target : "of an unnamed function");
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
    cfx_buffer_append(out, text, cfxi_base_format_int(i, text));
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
    cfx_schema_param param;
    if (goal->parent == CFXI_GOAL_OPERAND &&
        cfx_operator_param(cfx_node_operator(goal->pn), goal->index, &param)) {
        cfx_buffer_append(out, param.name.text, param.name.size);
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

bool cfxi_match_miss_values(cfxi_search *s, const cfxi_goal *goal)
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
    if (goal->p.kind == CFX_KIND_NODE && goal->g.kind == CFX_KIND_NODE &&
        is_respelled(s, goal->p.as.node, goal->g.as.node))
        append(&text, "; they are the same operator: see any_spelling");
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
    cfxi_base_out_begin(&out, sink);
    const char *file = miss->node ? cfx_node_file(miss->node) : NULL;
    if (file)
        cfxi_base_out_printf(&out, "%s:%u: ", file, cfx_node_line(miss->node));
    if (miss->complete)
        cfxi_base_out_printf(&out, "the pattern was found at %%%s, but %%%s prevents the match: %s",
                             miss->anchor->name->data, miss->node->name->data, miss->reason);
    else if (miss->node)
        cfxi_base_out_printf(&out, "%%%s is not %%%s of the pattern (%zu of %zu nodes matched): %s",
                             miss->node->name->data, miss->wanted->name->data, miss->n_bound,
                             miss->n_nodes, miss->reason);
    else
        cfxi_base_out_printf(&out, "%%%s of the pattern was not found: %s",
                             miss->wanted->name->data, miss->reason);
    return cfxi_base_out_end(&out, err);
}
