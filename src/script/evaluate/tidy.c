/* tidy.c - puts a graph in order that has just been captured.
 *
 * A branch gives all that its ways assign and that may be read later, and a loop carries it; what
 * is not read is dropped when all is known. And while a program is evaluated, nodes come and go:
 * rounds of a loop are tried until it is known what they carry, and what becomes a region is made
 * outside first. Names would show how often, and be others if the same program were written
 * differently.
 */
#include "analysis/control_flow_impl.h"
#include "analysis/splice_impl.h"
#include "evaluate_impl.h"
#include "buffer_copies_impl.h"

/* ---- what is not read ---------------------------------------------------------------------- */

/* Takes out nodes that read a result and are not read themselves. */
static cfx_status erase_unread(const cfxi_control *c, cfx_error *err)
{
    const cfx_use *next;
    for (const cfx_use *use = cfx_node_first_use(c->node); use; use = next) {
        next = cfx_use_next(use);
        if (use->user->n_users == 0 && cfxi_analysis_control_taken(c, use->user) != SIZE_MAX)
            CFX_TRY(cfx_graph_erase(c->node->graph, use->user, err));
    }
    return CFX_OK;
}

static bool is_sequence(cfx_value v)
{
    return v.kind == CFX_KIND_TUPLE || v.kind == CFX_KIND_LIST;
}

/* What reads the one result of a branch reads the branch itself. */
static cfx_status read_directly(const cfxi_control *c, cfx_error *err)
{
    const cfx_allocator *allocator = cfx_graph_allocator(c->node->graph);
    const size_t size = (c->node->n_users + 1) * sizeof(cfx_node *);
    cfx_node **readers = cfxi_base_alloc(allocator, size);
    cfx_status status = readers ? CFX_OK : cfxi_base_nomem(err);
    size_t n = 0;
    for (const cfx_use *use = cfx_node_first_use(c->node); readers && use; use = cfx_use_next(use))
        readers[n++] = use->user;  /* all of them first: others come to read the branch */
    for (size_t i = 0; status == CFX_OK && i < n; i++) {
        status = cfx_node_replace_uses(readers[i], cfx_value_node(c->node), NULL, NULL, NULL, err);
        if (status == CFX_OK)
            status = cfx_graph_erase(c->node->graph, readers[i], err);
    }
    cfxi_base_free(allocator, readers, size);
    return status;
}

/* A branch that gives one value gives that, not a tuple of it; one that gives none, None. */
static cfx_status unpack_result(cfxi_control *c, cfx_error *err)
{
    const bool one = !c->whole && c->n_results == 1;
    if ((c->whole && c->node->n_users > 0) || (!c->whole && c->n_results > 1) ||
        (one && (is_sequence(cfxi_analysis_control_result(c, 0, 0)) ||
                 is_sequence(cfxi_analysis_control_result(c, 1, 0)))))
        return CFX_OK;
    if (one)
        CFX_TRY(read_directly(c, err));
    for (size_t i = 0; i < 2; i++) {
        const cfx_value v = one ? cfxi_analysis_control_result(c, i, 0) : cfx_value_none();
        CFX_TRY(cfx_node_set_arg(c->outputs[i], 0, v, err));
    }
    cfxi_analysis_control_of(c->node, c);
    return CFX_OK;
}

static cfx_status drop_results(cfxi_control *c, bool *keep, cfx_error *err)
{
    size_t kept = 0;
    memset(keep, 0, c->n_results * sizeof *keep);
    for (const cfx_use *use = cfx_node_first_use(c->node); use; use = cfx_use_next(use)) {
        bool *here = &keep[cfxi_analysis_control_taken(c, use->user)];
        kept += !*here;
        *here = true;
    }
    return kept < c->n_results ? cfxi_analysis_control_drop_results(c, keep, err) : CFX_OK;
}

static cfx_status drop_inputs(cfxi_control *c, bool *keep, cfx_error *err)
{
    size_t kept = 0;
    const cfx_node *a = cfxi_ir_next_input(c->regions[0], NULL);
    const cfx_node *b = cfxi_ir_next_input(c->regions[1], NULL);
    for (size_t k = 0; k < c->n; k++) {
        keep[k] = a->n_users > 0 || b->n_users > 0;
        kept += keep[k];
        a = cfxi_ir_next_input(c->regions[0], a);
        b = cfxi_ir_next_input(c->regions[1], b);
    }
    return kept < c->n ? cfxi_analysis_control_drop_inputs(c, keep, err) : CFX_OK;
}

typedef cfx_status drop_fn(cfxi_control *c, bool *keep, cfx_error *err);

/* Calls it with room for one answer for each operand or result. */
static cfx_status with_room(cfxi_control *c, drop_fn *drop, cfx_error *err)
{
    const cfx_allocator *allocator = cfx_graph_allocator(c->node->graph);
    const size_t size = c->n + c->n_results + 1;
    bool *keep = cfxi_base_alloc(allocator, size);
    const cfx_status status = keep ? drop(c, keep, err) : cfxi_base_nomem(err);
    cfxi_base_free(allocator, keep, size);
    return status;
}

/* ---- loops --------------------------------------------------------------------------------- */

/* What of the state is read: in a round, behind the loop, or as another one of it. What only comes
 * back as it went in is not. */
static size_t find_state(const cfxi_control *c, bool *keep)
{
    const size_t body = cfxi_analysis_control_body(c);
    size_t kept = 0;
    memset(keep, 0, c->n * sizeof *keep);
    for (const cfx_use *use = cfx_node_first_use(c->node); use; use = cfx_use_next(use))
        keep[cfxi_analysis_control_taken(c, use->user)] = true;
    for (size_t i = 0; i < c->n_regions; i++) {
        const cfx_node *in = cfxi_analysis_control_input(c, i, 0);
        for (size_t k = 0; k < c->n; k++, in = cfxi_ir_next_input(c->regions[i], in)) {
            const cfx_value next = cfxi_analysis_control_result(c, body, k);
            const bool comes_back = i == body && next.kind == CFX_KIND_NODE && next.as.node == in;
            keep[k] = keep[k] || in->n_users > 1 ||
                      (in->n_users == 1 && (!comes_back || in->users->count > 1));
        }
    }
    for (size_t k = 0; k < c->n; k++)
        kept += keep[k];
    return kept;
}

/* Removes the variables of a loop that are not read. */
static cfx_status drop_state(cfxi_control *c, bool *keep, cfx_error *err)
{
    bool changed;
    if (find_state(c, keep) == c->n)
        return CFX_OK;
    CFX_TRY(cfxi_analysis_control_hand_on(c, keep, &changed, err));
    return cfxi_analysis_control_drop_inputs(c, keep, err);
}

/* ---- the order of what comes in ------------------------------------------------------------ */

/* Who reads the inputs of a branch, in order. */
typedef struct sighting {
    cfx_node_map *places;  /* of both branches' inputs: their numbers */
    size_t *order;         /* the numbers, as they are first read */
    bool *seen;
    size_t n;
} sighting;

static cfx_status see(void *ctx, cfx_node *n)
{
    sighting *s = ctx;
    const cfx_value at = cfx_node_map_get(s->places, n);
    if (at.kind == CFX_KIND_INT && !s->seen[at.as.i]) {
        s->seen[at.as.i] = true;
        s->order[s->n++] = (size_t)at.as.i;
    }
    return CFX_OK;
}

static void look_at(sighting *s, cfx_graph *region)
{
    for (cfx_node *n = region->root.next; n != &region->root; n = n->next)
        for (uint32_t i = 0; n->op != CFX_OP_OUTPUT && i < n->n_inputs; i++)
            see(s, n->inputs[i].def);
    cfx_value_each_node(cfx_node_arg(region->root.prev, 0), see, s);
}

static cfx_status number_inputs(const cfxi_control *c, sighting *s, cfx_error *err)
{
    for (size_t i = 0; i < 2; i++) {
        int64_t k = 0;
        for (cfx_node *in = cfxi_ir_next_input(c->regions[i], NULL); in;
             in = cfxi_ir_next_input(c->regions[i], in))
            CFX_TRY(cfx_node_map_set(s->places, in, cfx_value_int(k++), err));
    }
    return CFX_OK;
}

/* Brings operands and inputs into that order. */
static cfx_status permute(cfxi_control *c, const size_t *order, cfx_node **nodes, cfx_value *values,
                          cfx_error *err)
{
    for (size_t i = 0; i < 2; i++) {
        size_t k = 0;
        cfx_node *in = cfxi_ir_next_input(c->regions[i], NULL);
        for (; in; in = cfxi_ir_next_input(c->regions[i], in))
            nodes[k++] = in;
        cfx_node *behind = nodes[k - 1]->next;
        for (k = 0; k < c->n; k++)
            CFX_TRY(cfx_node_prepend(behind, nodes[order[k]], err));
    }
    for (size_t k = 0; k < c->n; k++)
        values[k] = c->operands[order[k]];
    const cfx_value all = cfx_value_tuple(c->node->graph, values, c->n, err);
    if (all.kind == CFX_KIND_INVALID)
        return CFX_E_NOMEM;
    return cfx_node_set_arg(c->node, 3, all, err);
}

static bool is_in_order(const size_t *order, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (order[k] != k)
            return false;
    return true;
}

/* Operands of a branch come as they are first read, though some readers are gone by now. */
static cfx_status arrange_inputs(cfxi_control *c, cfx_error *err)
{
    if (cfx_node_num_args(c->node) != 4)
        return CFX_OK;
    const cfx_allocator *allocator = cfx_graph_allocator(c->node->graph);
    const size_t each = sizeof(size_t) + sizeof(cfx_node *) + sizeof(cfx_value) + sizeof(bool);
    char *room = cfxi_base_alloc(allocator, (c->n + 1) * each);
    cfx_value *values = (cfx_value *)room;
    cfx_node **nodes = (cfx_node **)(values + c->n + 1);
    sighting s = {.places = room ? cfx_node_map_new(allocator, err) : NULL};
    cfx_status status = s.places ? CFX_OK : cfxi_base_nomem(err);
    if (s.places) {
        s.order = (size_t *)(nodes + c->n + 1);
        s.seen = (bool *)(s.order + c->n + 1);
        memset(s.seen, 0, (c->n + 1) * sizeof(bool));
        status = number_inputs(c, &s, err);
    }
    for (size_t i = 0; status == CFX_OK && i < 2; i++)
        look_at(&s, c->regions[i]);
    if (status == CFX_OK && s.n == c->n && !is_in_order(s.order, s.n))
        status = permute(c, s.order, nodes, values, err);
    cfx_node_map_free(s.places);
    cfxi_base_free(allocator, room, (c->n + 1) * each);
    return status;
}

/* ---- all of them --------------------------------------------------------------------------- */

/* Whether a branch is left without anything in it. */
static bool does_nothing(const cfxi_control *c)
{
    return c->node->n_users == 0 && !cfxi_analysis_control_is_loop(c) && c->n == 0 &&
           c->regions[0]->root.next == c->outputs[0] && c->regions[1]->root.next == c->outputs[1];
}

static cfx_status trim(cfx_graph *g, cfx_error *err);

/* What is not read of it afterwards; then inside; then what is not read there any more. */
static cfx_status trim_control(cfxi_control *c, cfx_error *err)
{
    const bool loop = cfxi_analysis_control_is_loop(c);
    const bool ours =
        cfxi_analysis_control_is_alone(c) && (c->whole || cfxi_analysis_control_is_apart(c));
    if (ours && !c->whole)
        CFX_TRY(with_room(c, loop ? drop_state : drop_results, err));
    if (ours && !loop)
        CFX_TRY(unpack_result(c, err));
    for (size_t i = 0; i < c->n_regions; i++)
        CFX_TRY(trim(c->regions[i], err));
    if (!ours || !cfxi_analysis_control_of(c->node, c))
        return CFX_OK;
    CFX_TRY(with_room(c, loop ? drop_state : drop_inputs, err));
    return loop ? CFX_OK : arrange_inputs(c, err);
}

/* The last first: what an earlier one gives may be read no more then. */
static cfx_status trim(cfx_graph *g, cfx_error *err)
{
    cfxi_control c;
    for (cfx_node *n = g->root.prev, *before; n != &g->root; n = before) {
        before = n->prev;
        if (!cfxi_analysis_control_of(n, &c)) {
            if (n->op == CFX_OP_GET_ATTR && n->n_users == 0)
                CFX_TRY(cfx_graph_erase(g, n, err));
            continue;
        }
        CFX_TRY(erase_unread(&c, err));
        CFX_TRY(trim_control(&c, err));
        if (does_nothing(&c))
            CFX_TRY(cfx_graph_erase(g, n, err));
    }
    return CFX_OK;
}

/* ---- names --------------------------------------------------------------------------------- */

/* What goes in, if a region has it unchanged: of a branch all; of a loop what the body hands on. */
static const cfx_node *comes_in(const cfxi_control *c, size_t k, const cfx_node *input)
{
    const cfx_value v = c->operands[k];
    const cfx_value next = cfxi_analysis_control_is_loop(c)
                               ? cfxi_analysis_control_result(c, cfxi_analysis_control_body(c), k)
                               : cfx_value_invalid();
    if (v.kind != CFX_KIND_NODE ||
        (cfxi_analysis_control_is_loop(c) && (next.kind != CFX_KIND_NODE || next.as.node != input)))
        return NULL;
    return v.as.node;
}

/* What the inputs of region i are to be called; `body` is at those of the loop's body. */
static cfx_status wishes_of(const cfxi_control *c, size_t i, const char **wishes, cfx_error *err)
{
    const size_t extra = cfxi_analysis_control_extra(c);
    cfx_graph *last = c->regions[cfxi_analysis_control_body(c)];
    cfx_node *body = cfxi_ir_next_input(last, NULL);
    size_t k = 0;
    for (cfx_node *n = cfxi_ir_next_input(c->regions[i], NULL); n;
         n = cfxi_ir_next_input(c->regions[i], n), body = cfxi_ir_next_input(last, body), k++) {
        const cfx_node *from = k < extra ? NULL : comes_in(c, k - extra, body);
        if (from) {
            const cfx_target target = {.name = from->name->data, .size = from->name->size};
            CFX_TRY(cfx_node_set_target(n, target, err));
        }
        wishes[k] = cfx_node_target(n, NULL, err);
        if (!wishes[k])
            return CFX_E_NOMEM;
    }
    return CFX_OK;
}

static cfx_status name_inside(cfx_graph *g, cfx_error *err);

static cfx_status name_region(const cfxi_control *c, size_t i, cfx_error *err)
{
    const cfx_allocator *allocator = cfx_graph_allocator(c->node->graph);
    const size_t size = (c->n + 2) * sizeof(const char *);
    const char **wishes = cfxi_base_alloc(allocator, size);
    if (!wishes)
        return cfxi_base_nomem(err);
    cfx_status status = wishes_of(c, i, wishes, err);
    if (status == CFX_OK)
        status = cfxi_ir_graph_name_anew(c->regions[i], wishes, err);
    cfxi_base_free(allocator, wishes, size);
    return status == CFX_OK ? name_inside(c->regions[i], err) : status;
}

static cfx_status name_inside(cfx_graph *g, cfx_error *err)
{
    cfxi_control c;
    for (cfx_node *n = g->root.next; g->height > 0 && n != &g->root; n = n->next)
        if (cfxi_analysis_control_of(n, &c))
            for (size_t i = 0; i < c.n_regions; i++)
                CFX_TRY(name_region(&c, i, err));
    return CFX_OK;
}

/* ---- modes --------------------------------------------------------------------------------- */

/* A branch on the mode whose ways do the same gives way to one of them. */
static cfx_status take_either(cfxi_control *c, cfxi_vec *taken, cfx_error *err)
{
    cfx_graph *g = c->node->graph;
    cfx_value result = cfx_value_invalid();
    cfx_node_map *map = cfx_node_map_new(g->allocator, err);
    cfx_status status = map ? CFX_OK : CFX_E_NOMEM;
    cfx_node *in = cfxi_ir_next_input(c->regions[0], NULL);
    for (size_t k = 0; status == CFX_OK && k < c->n; k++) {
        status = cfx_node_map_set(map, in, c->operands[k], err);
        in = cfxi_ir_next_input(c->regions[0], in);
    }
    if (status == CFX_OK)
        status = cfxi_analysis_splice(c->node, c->regions[0], map, NULL, NULL, &result, err);
    cfx_node_map_free(map);
    CFX_TRY(status);
    status = cfxi_analysis_splice_result(c->node, result, taken, err);
    cfx_value_release(g, result);
    CFX_TRY(status);
    return cfx_graph_erase(g, c->node, err);
}

static cfx_status join_equal(cfx_graph *g, void *taken, cfx_error *err)
{
    cfxi_control c;
    CFX_TRY(cfxi_analysis_each_region(g, join_equal, taken, err));
    for (cfx_node *n = g->root.next, *next; g->height > 0 && n != &g->root; n = next) {
        next = n->next;
        if (!cfxi_analysis_control_of(n, &c) || cfxi_analysis_control_is_loop(&c))
            continue;
        const cfx_value by = cfxi_analysis_control_subject(&c);
        if (by.kind == CFX_KIND_NODE && cfxi_eval_is_flag(by.as.node) &&
            cfxi_ir_region_equal(c.regions[0], c.regions[1]))
            CFX_TRY(take_either(&c, taken, err));
    }
    return CFX_OK;
}

/* What was asked for, and nobody needs. */
static cfx_status drop_flags(cfx_graph *g, void *ctx, cfx_error *err)
{
    for (cfx_node *n = g->root.prev, *before; n != &g->root; n = before) {
        before = n->prev;
        if (n->n_users == 0 && cfxi_eval_is_flag(n))
            CFX_TRY(cfx_graph_erase(g, n, err));
    }
    return cfxi_analysis_each_region(g, drop_flags, ctx, err);
}

static cfx_status tidy_flags(cfx_graph *g, cfx_error *err)
{
    cfxi_vec taken = {0};
    cfx_status status = join_equal(g, &taken, err);
    if (status == CFX_OK)
        status = cfxi_analysis_erase_taken(&taken, err);
    cfxi_base_vec_free(&taken, sizeof(cfx_node *), g->allocator);
    return status == CFX_OK ? drop_flags(g, NULL, err) : status;
}

cfx_status cfx_script_tidy_graph(cfx_graph *g, cfx_error *err)
{
    CFX_TRY(cfxi_eval_keep_apart(g, err));
    CFX_TRY(trim(g, err));
    CFX_TRY(tidy_flags(g, err));
    if (g->nameless)
        CFX_TRY(cfxi_ir_graph_name_anew(g, NULL, err));
    return name_inside(g, err);
}

cfx_status cfx_script_name_graph(cfx_graph *g, cfx_node *last, cfx_error *err)
{
    return cfxi_ir_graph_name_rest(g, last, err);
}
