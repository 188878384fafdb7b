/* buffer_copies.c - results that share the memory of a buffer which is assigned to.
 *
 *     old = self.state
 *     self.state = new               # is recorded as self.state.copy_(new), at the end
 *     return old
 *
 * In Python the attribute is another tensor afterwards, and `old` stays what it was. In a graph the
 * buffer is written to. So what is returned, or kept in another buffer, is copied before the first
 * of these writes if it may share the memory of one that is written to.
 */
#include "buffer_copies_impl.h"

#include "analysis/alias_impl.h"
#include "analysis/control_flow_impl.h"

typedef struct keeper {
    cfx_graph *g;
    cfx_node *first;         /* the first of the writes */
    cfx_error *err;
    /* of one search */
    cfx_node_map *seen;      /* nodes that it has come to */
    bool plain;              /* data can choose a number, or a tuple, instead of a tensor */
} keeper;

/* Whether a node behind the first writes to a buffer: buffer.copy_(v). */
static bool is_keep(const cfx_node *n)
{
    const char *target = cfx_node_target(n, NULL, NULL);
    return n->op == CFX_OP_CALL_METHOD && target && strcmp(target, "copy_") == 0 &&
           cfx_node_arg(n, 0).kind == CFX_KIND_NODE && cfx_node_arg(n, 1).kind == CFX_KIND_NODE;
}

const char *cfxi_eval_attribute_of(const cfx_node *n)
{
    for (const cfx_node *written; (written = cfxi_analysis_written(n, NULL)) != NULL;)
        n = written;
    return n->op == CFX_OP_GET_ATTR ? cfx_node_target(n, NULL, NULL) : NULL;
}

/* Whether a buffer is given the very tensor that it is: self.state += x. */
static bool is_itself(const cfx_node *keep)
{
    const char *buffer = cfx_node_target(cfx_node_arg(keep, 0).as.node, NULL, NULL);
    const char *given = cfxi_eval_attribute_of(cfx_node_arg(keep, 1).as.node);
    return buffer && given && strcmp(buffer, given) == 0;
}

/* Whether the attribute that is read gets another tensor's elements. */
static bool is_lost(const keeper *k, const cfx_node *read)
{
    const char *path = cfx_node_target(read, NULL, NULL);
    for (const cfx_node *n = k->first; path && n != &k->g->root; n = n->next) {
        if (!is_keep(n) || is_itself(n))
            continue;
        const char *lost = cfx_node_target(cfx_node_arg(n, 0).as.node, NULL, NULL);
        if (lost && strcmp(lost, path) == 0)
            return true;
    }
    return false;
}

/* ---- where a value comes from -------------------------------------------------------------- */

/* The region that a node is in; NULL: none. */
typedef struct inside {
    const struct inside *outer;
    cfxi_control *control;
    size_t region;
} inside;

enum { MOST_STEPS = 1000 };  /* beyond that it may come from anywhere */

static bool comes_from(keeper *k, const inside *in, cfx_node *n, unsigned steps);

static bool value_comes_from(keeper *k, const inside *in, cfx_value v, unsigned steps)
{
    k->plain = k->plain || v.kind != CFX_KIND_NODE;
    return v.kind == CFX_KIND_NODE && comes_from(k, in, v.as.node, steps);
}

/* Result i of a branch or loop: of either branch; of the body, or what goes in. All are looked at,
 * for `plain`. */
static bool result_comes_from(keeper *k, const inside *in, cfxi_control *c, size_t i,
                              unsigned steps)
{
    const bool loop = cfxi_analysis_control_is_loop(c);
    bool found = loop && i < c->n && value_comes_from(k, in, c->operands[i], steps);
    for (size_t r = loop ? cfxi_analysis_control_body(c) : 0; r < c->n_regions; r++) {
        const inside region = {in, c, r};
        if (value_comes_from(k, &region, cfxi_analysis_control_result(c, r, i), steps))
            found = true;
    }
    return found;
}

/* An input of a region: the operand; of a loop also what the round before gave. */
static bool input_comes_from(keeper *k, const inside *in, const cfx_node *n, unsigned steps)
{
    cfxi_control *c = in->control;
    const size_t extra = cfxi_analysis_control_extra(c);
    size_t i = 0;
    for (const cfx_node *input = cfxi_ir_next_input(n->graph, NULL); input && input != n;
         input = cfxi_ir_next_input(n->graph, input))
        i++;
    if (i < extra)
        return false;
    if (cfxi_analysis_control_is_loop(c))
        return result_comes_from(k, in->outer, c, i - extra, steps);
    return i < c->n && value_comes_from(k, in->outer, c->operands[i], steps);
}

/* A call: of a branch or loop, of what takes one result of it, or of what shares its memory. */
static bool call_comes_from(keeper *k, const inside *in, cfx_node *n, unsigned steps)
{
    cfxi_control c;
    const cfx_value of = cfx_node_arg(n, 0);
    const cfx_node *written = cfxi_analysis_written(n, NULL);
    if (cfxi_analysis_control_of(n, &c)) {
        bool found = false;
        for (size_t i = 0; i < c.n_results; i++)
            found = result_comes_from(k, in, &c, i, steps) || found;
        return found;
    }
    if (of.kind != CFX_KIND_NODE || n->op == CFX_OP_CALL_MODULE)
        return false;
    if (cfxi_analysis_control_of(of.as.node, &c) && cfxi_analysis_control_taken(&c, n) != SIZE_MAX)
        return result_comes_from(k, in, &c, cfxi_analysis_control_taken(&c, n), steps);
    return (written || cfxi_analysis_is_view(n)) && comes_from(k, in, of.as.node, steps);
}

/* Whether the value of `n` may be a buffer that is lost, or a part of it. */
static bool comes_from(keeper *k, const inside *in, cfx_node *n, unsigned steps)
{
    if (k->err->status != CFX_OK || cfx_node_map_get(k->seen, n).kind != CFX_KIND_INVALID)
        return false;
    if (steps == MOST_STEPS)
        return true;
    if (cfx_node_map_set(k->seen, n, cfx_value_bool(true), k->err) != CFX_OK)
        return false;
    switch ((cfx_opcode)n->op) {
    case CFX_OP_GET_ATTR: return is_lost(k, n);
    case CFX_OP_PLACEHOLDER: return in && input_comes_from(k, in, n, steps + 1);
    default: return call_comes_from(k, in, n, steps + 1);
    }
}

bool cfxi_eval_may_share(const cfx_node *n)
{
    cfxi_control c;
    const cfx_value of = cfx_node_arg(n, 0);
    if (n->op != CFX_OP_CALL_FUNCTION && n->op != CFX_OP_CALL_METHOD)
        return true;
    return cfxi_analysis_control_of((cfx_node *)(uintptr_t)n, &c) ||
           (of.kind == CFX_KIND_NODE && cfxi_analysis_control_of(of.as.node, &c)) ||
           cfxi_analysis_written(n, NULL) || cfxi_analysis_is_view(n);
}

/* ---- copies -------------------------------------------------------------------------------- */

/* A copy of `n` before the first of the writes. An attribute may be read behind that: it is read
 * there once more. */
static cfx_node *copy_of(keeper *k, cfx_node *n)
{
    const char *path = n->op == CFX_OP_GET_ATTR ? cfx_node_target(n, NULL, NULL) : NULL;
    cfx_node *from = path ? cfx_graph_get_attr(k->g, path, k->err) : n;
    const cfx_value args[] = {from ? cfx_value_node(from) : cfx_value_invalid()};
    cfx_node *copy = from ? cfx_graph_call(k->g, CFX_OP_CALL_METHOD, "clone", args, 1, NULL, 0,
                                           k->err) : NULL;
    if (copy)
        copy->location = n->location;
    if (copy && from != n)
        from->location = n->location;
    return copy;
}

/* Makes `user` read a copy of `n`. */
static cfx_status copy_for(keeper *k, cfx_node *user, cfx_node *n)
{
    const cfx_insert_point was = cfx_graph_insert_point(k->g);
    const cfx_insert_point here = {.node = k->first};
    CFX_TRY(cfx_graph_set_insert_point(k->g, here, k->err));
    cfx_node *copy = copy_of(k, n);
    CFX_TRY(cfx_graph_set_insert_point(k->g, was, k->err));
    if (!copy)
        return k->err->status;
    CFX_TRY(cfx_node_replace_input(user, n, cfx_value_node(copy), k->err));
    const bool gone = n->op == CFX_OP_GET_ATTR && n->n_users == 0 && n != k->first;
    return gone ? cfx_graph_erase(k->g, n, k->err) : CFX_OK;
}

/* Makes `user` read a copy of `n`, if that may be what a buffer loses. */
static cfx_status keep_apart(keeper *k, cfx_node *user, cfx_node *n)
{
    k->plain = false;
    k->seen = cfx_node_map_new(k->g->allocator, k->err);
    if (!k->seen)
        return CFX_E_NOMEM;
    const bool found = comes_from(k, NULL, n, 0);
    cfx_node_map_free(k->seen);
    if (!found || k->err->status != CFX_OK)
        return k->err->status;
    if (!k->plain)
        return copy_for(k, user, n);
    return cfx_error_set(k->err, CFX_E_UNSUPPORTED, "%s:%u: depending on data, this is a buffer "
                         "that is assigned to, or not a tensor; return buffer.clone(), and a "
                         "tensor in every branch",
                         cfx_node_file(n) ? cfx_node_file(n) : "", (unsigned)cfx_node_line(n));
}

static cfx_status copy_values(keeper *k)
{
    for (cfx_node *n = k->first; n != &k->g->root; n = n->next)
        if (is_keep(n) && !is_itself(n))
            CFX_TRY(keep_apart(k, n, cfx_node_arg(n, 1).as.node));
    return CFX_OK;
}

static cfx_status copy_results(keeper *k)
{
    cfx_node *output = k->g->root.prev;
    const uint32_t n = output->op == CFX_OP_OUTPUT ? output->n_inputs : 0;
    cfx_node **results = cfxi_base_alloc(k->g->allocator, (n + (size_t)1) * sizeof *results);
    cfx_status status = results ? CFX_OK : cfxi_base_nomem(k->err);
    for (uint32_t i = 0; results && i < n; i++)  /* they change */
        results[i] = output->inputs[i].def;
    for (uint32_t i = 0; status == CFX_OK && i < n; i++)
        status = keep_apart(k, output, results[i]);
    cfxi_base_free(k->g->allocator, results, (n + (size_t)1) * sizeof *results);
    return status;
}

cfx_status cfxi_eval_keep_apart(cfx_graph *g, cfx_error *err)
{
    cfx_error own = {0};
    keeper k = {.g = g, .first = g->kept, .err = &own};
    g->kept = NULL;
    if (!k.first)
        return CFX_OK;
    cfx_status status = copy_values(&k);
    if (status == CFX_OK)
        status = copy_results(&k);
    if (err && status != CFX_OK)
        *err = own;
    return status;
}
