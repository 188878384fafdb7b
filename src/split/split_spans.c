/* split_spans.c - calls that set something for the nodes behind them, in the parts of a split.
 *
 * torch._C._set_grad_enabled holds until the next one, autocast from _enter_autocast to
 * _exit_autocast. A part that begins inside such a stretch gets copies of the calls that began it,
 * the outermost first, and leaves what it has not left itself at its end.
 */
#include "split_impl.h"

/* ---- which calls --------------------------------------------------------------------------- */

static uint8_t role_of_name(const char *name)
{
    static const char autocast[] = "torch.amp.autocast_mode.";
    if (strcmp(name, "torch._C._set_grad_enabled") == 0)
        return CFXI_SPAN_GRAD;
    if (strncmp(name, autocast, sizeof autocast - 1) != 0)
        return CFXI_SPAN_NONE;
    name += sizeof autocast - 1;
    if (strcmp(name, "_enter_autocast") == 0)
        return CFXI_SPAN_ENTER;
    return strcmp(name, "_exit_autocast") == 0 ? CFXI_SPAN_EXIT : CFXI_SPAN_NONE;
}

/* A function without a name is none of them. */
static cfx_status role_of(const cfxi_splitter *s, const cfx_node *n, uint8_t *role)
{
    cfx_error why = {.status = CFX_OK};
    const cfx_str *name = n->op == CFX_OP_CALL_FUNCTION
                              ? cfxi_ir_ref_qualified_name(s->g, n->callee->ref, &why) : NULL;
    *role = name ? role_of_name(name->data) : CFXI_SPAN_NONE;
    if (why.status == CFX_OK || why.status == CFX_E_KEY)
        return CFX_OK;
    *s->err = why;
    return why.status;
}

static cfx_status find_effect(cfxi_splitter *s, cfx_node *n)
{
    cfx_effect effect = CFX_EFFECT_NONE;
    if (!s->writes && (n->op == CFX_OP_CALL_FUNCTION || n->op == CFX_OP_CALL_METHOD))
        CFX_TRY(cfx_node_effect(n, NULL, &effect, s->err));
    s->writes = s->writes || effect == CFX_EFFECT_WRITES;
    return CFX_OK;
}

cfx_status cfxi_split_find_roles(cfxi_splitter *s)
{
    uint8_t *roles = cfxi_split_array(s, s->n, sizeof *roles);
    const cfxi_callee *last = NULL;  /* the host need not be asked twice in a row */
    uint8_t role = CFXI_SPAN_NONE;
    if (!roles)
        return CFX_E_NOMEM;
    for (size_t i = 0; i < s->n; i++) {
        if (s->nodes[i]->callee != last)
            CFX_TRY(role_of(s, s->nodes[i], &role));
        last = s->nodes[i]->callee;
        roles[i] = role;
        if (role != CFXI_SPAN_NONE)
            s->roles = roles;
        CFX_TRY(find_effect(s, s->nodes[i]));
    }
    return CFX_OK;
}

/* ---- what opens and closes a part ---------------------------------------------------------- */

typedef struct walker {
    cfxi_splitter *s;
    cfx_node *grad;      /* the setting that holds, or NULL */
    cfxi_vec open;       /* of cfx_node *: what was entered and not left, the outermost first */
    cfxi_vec copies[2];  /* of cfx_node *: of `before` and of `behind` */
    bool *seen;          /* parts that have been met */
    size_t current;      /* part, or SIZE_MAX */
} walker;

static cfx_status push(walker *w, cfxi_vec *nodes, cfx_node *n)
{
    return cfxi_analysis_nodes_push(nodes, n, w->s->g->allocator, w->s->err);
}

static cfx_node *exit_of(const walker *w, const cfx_node *enter)
{
    for (const cfx_use *use = cfx_node_first_use(enter); use; use = cfx_use_next(use))
        if (w->s->roles[cfxi_split_position(w->s, use->user)] == CFXI_SPAN_EXIT)
            return use->user;
    return NULL;
}

/* What is open is left at the end of the part, the innermost first. */
static cfx_status close_part(walker *w)
{
    w->s->behind.starts[w->current] = w->copies[1].size;
    for (size_t i = w->open.size; i > 0; i--) {
        cfx_node *leave = exit_of(w, ((cfx_node **)w->open.data)[i - 1]);
        if (leave)
            CFX_TRY(push(w, &w->copies[1], leave));
    }
    w->s->behind.ends[w->current] = w->copies[1].size;
    return CFX_OK;
}

static cfx_status open_part(walker *w, size_t part, const cfx_node *n)
{
    cfxi_splitter *s = w->s;
    if (w->seen[part])
        return cfx_error_set(s->err, CFX_E_VALUE, "autocast or set_grad_enabled require "
                             "monotonically increasing partitions: node %%%s goes back to %s after "
                             "%s", n->name->data, s->what->names[part],
                             s->what->names[w->current]);
    s->before.starts[part] = w->copies[0].size;
    for (size_t i = 0; i < w->open.size; i++)
        CFX_TRY(push(w, &w->copies[0], ((cfx_node **)w->open.data)[i]));
    if (w->grad && s->roles[cfxi_split_position(s, n)] != CFXI_SPAN_GRAD)
        CFX_TRY(push(w, &w->copies[0], w->grad));
    s->before.ends[part] = w->copies[0].size;
    w->seen[part] = true;
    w->current = part;
    return CFX_OK;
}

static void leave(walker *w, const cfx_node *n)
{
    cfx_node **open = w->open.data;
    for (size_t i = w->open.size; i > 0; i--) {
        if (cfx_node_num_inputs(n) == 0 || open[i - 1] != cfx_node_input(n, 0))
            continue;
        memmove(open + i - 1, open + i, (w->open.size - i) * sizeof *open);
        w->open.size--;
        return;
    }
}

static cfx_status walk(walker *w)
{
    cfxi_splitter *s = w->s;
    for (size_t i = 0; i < s->n; i++) {
        if (s->part_of[i] >= s->parts)
            continue;
        if (s->part_of[i] != w->current) {
            if (w->current != SIZE_MAX)
                CFX_TRY(close_part(w));
            CFX_TRY(open_part(w, s->part_of[i], s->nodes[i]));
        }
        if (s->roles[i] == CFXI_SPAN_GRAD)
            w->grad = s->nodes[i];
        else if (s->roles[i] == CFXI_SPAN_ENTER)
            CFX_TRY(push(w, &w->open, s->nodes[i]));
        else if (s->roles[i] == CFXI_SPAN_EXIT)
            leave(w, s->nodes[i]);
    }
    return w->current != SIZE_MAX ? close_part(w) : CFX_OK;
}

static bool make_ranges(cfxi_splitter *s, cfxi_ranges *ranges)
{
    ranges->starts = cfxi_split_array(s, s->parts, sizeof *ranges->starts);
    ranges->ends = ranges->starts ? cfxi_split_array(s, s->parts, sizeof *ranges->ends) : NULL;
    return ranges->ends != NULL;
}

static cfx_status keep(cfxi_splitter *s, cfxi_ranges *ranges, const cfxi_vec *copies)
{
    ranges->items = cfxi_split_array(s, copies->size, sizeof *ranges->items);
    if (!ranges->items)
        return CFX_E_NOMEM;
    if (copies->size > 0)
        memcpy(ranges->items, copies->data, copies->size * sizeof *ranges->items);
    return CFX_OK;
}

cfx_status cfxi_split_find_spans(cfxi_splitter *s)
{
    walker w = {.s = s, .current = SIZE_MAX};
    if (!s->roles)
        return CFX_OK;
    w.seen = cfxi_split_array(s, s->parts, sizeof *w.seen);
    bool ready = w.seen && make_ranges(s, &s->before) && make_ranges(s, &s->behind);
    cfx_status status = ready ? walk(&w) : CFX_E_NOMEM;
    if (status == CFX_OK)
        status = keep(s, &s->before, &w.copies[0]);
    if (status == CFX_OK)
        status = keep(s, &s->behind, &w.copies[1]);
    cfxi_base_vec_free(&w.open, sizeof(cfx_node *), s->g->allocator);
    cfxi_base_vec_free(&w.copies[0], sizeof(cfx_node *), s->g->allocator);
    cfxi_base_vec_free(&w.copies[1], sizeof(cfx_node *), s->g->allocator);
    return status;
}
