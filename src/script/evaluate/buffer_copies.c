/* buffer_copies.c - buffers that are assigned to: whether a copy into them does the same, and
 * results that share their memory.
 *
 *     old = self.state
 *     self.state = new               # is recorded as self.state.copy_(new), at the end
 *     return old
 *
 * In Python the attribute is another tensor afterwards, and `old` stays what it was. In a graph the
 * buffer is written to (module_changes.c). So what is returned, or kept in another buffer, is
 * copied before the first of these writes if it may share the memory of one that is written to.
 */
#include "buffer_copies_impl.h"

#include "analysis/alias_impl.h"
#include "analysis/control_flow_impl.h"

#include <cfx/embed/script.h>
#include <cfx/embed/tensor.h>

/* ---- whether a value fits into a buffer ---------------------------------------------------- */

enum { DEEPEST_VALUE = 32 };  /* what is computed in more steps may be anything */

/* What an operator makes of the types and shapes of tensors, called without keywords. */
typedef enum fit_kind {
    FIT_ANY,
    FIT_COPY,      /* one of the same type */
    FIT_ADD,       /* element by element, of the types together */
    FIT_DIVIDE,    /* likewise, and never integers */
    FIT_MEAN,      /* of all elements, and never integers */
    FIT_SUM,       /* of all elements, of the same type or wider */
    FIT_TEST,      /* of all elements: a bool */
    FIT_FRACTION   /* never integers */
} fit_kind;

static fit_kind kind_of_call(const cfx_node *n)
{
    size_t named = 0;
    cfx_value_items(cfx_node_kwargs(n), &named);
    if (named > 0)
        return FIT_ANY;
    const bool whole = cfx_node_num_args(n) == 1;  /* a reduction without dimensions */
    switch ((int)cfx_node_operator(n)) {
    case CFX_OPID_clone:
    case CFX_OPID_detach: return FIT_COPY;
    case CFX_OPID_add:
    case CFX_OPID_sub:
    case CFX_OPID_mul:
    case CFX_OPID_neg:
    case CFX_OPID_abs: return FIT_ADD;
    case CFX_OPID_div:
    case CFX_OPID_sqrt:
    case CFX_OPID_rsqrt:
    case CFX_OPID_exp:
    case CFX_OPID_log:
    case CFX_OPID_sigmoid:
    case CFX_OPID_tanh: return FIT_DIVIDE;
    case CFX_OPID_mean:
    case CFX_OPID_std:
    case CFX_OPID_var:
    case CFX_OPID_norm: return whole ? FIT_MEAN : FIT_FRACTION;
    case CFX_OPID_sum:
    case CFX_OPID_prod:
    case CFX_OPID_median:
    case CFX_OPID_amax:
    case CFX_OPID_amin:
    case CFX_OPID_max:
    case CFX_OPID_min: return whole ? FIT_SUM : FIT_ANY;
    case CFX_OPID_all:
    case CFX_OPID_any: return whole ? FIT_TEST : FIT_ANY;
    case CFX_OPID_softmax:
    case CFX_OPID_cast_float:
    case CFX_OPID_cast_double: return FIT_FRACTION;
    default: return FIT_ANY;
    }
}

/* Whether it is surely a tensor without dimensions: x.sum() / 2. */
static bool is_single(const cfx_node *n, int depth)
{
    const fit_kind kind = kind_of_call(n);
    if (kind == FIT_MEAN || kind == FIT_SUM || kind == FIT_TEST)
        return true;
    const size_t inputs = cfx_node_num_inputs(n);
    bool all = inputs > 0 && depth < DEEPEST_VALUE &&
               (kind == FIT_COPY || kind == FIT_ADD || kind == FIT_DIVIDE);
    for (size_t i = 0; all && i < inputs; i++)
        all = is_single(cfx_node_input(n, i), depth + 1);
    return all;
}

/* Whether its elements are surely no integers. */
static bool is_fraction(const cfx_node *n, int depth)
{
    const fit_kind kind = kind_of_call(n);
    if (kind == FIT_DIVIDE || kind == FIT_MEAN || kind == FIT_FRACTION)
        return true;
    bool one = false;
    const bool keeps = depth < DEEPEST_VALUE &&
                       (kind == FIT_COPY || kind == FIT_ADD || kind == FIT_SUM);
    for (size_t i = 0; keeps && !one && i < cfx_node_num_args(n); i++) {
        const cfx_value v = cfx_node_arg(n, i);
        one = v.kind == CFX_KIND_FLOAT ||
              (v.kind == CFX_KIND_NODE && is_fraction(v.as.node, depth + 1));
    }
    return one;
}

/* Whether it surely has the shape and dtype of the buffer: it is computed from the buffer, which
 * may have been written to, and numbers alone. */
static bool is_alike(const cfx_node *buffer, const cfx_node *n, cfx_dtype dtype, int depth)
{
    const bool fractions = cfx_dtype_is_float(dtype);
    n = cfxi_eval_tensor_of(n);
    if (n->op == CFX_OP_GET_ATTR)
        return n->callee == buffer->callee;
    const fit_kind kind = kind_of_call(n);
    bool all = depth < DEEPEST_VALUE && cfx_node_num_inputs(n) > 0 &&
               (kind == FIT_COPY || (kind == FIT_DIVIDE && fractions) ||
                (kind == FIT_ADD && dtype != CFX_DTYPE_BOOL && !cfx_dtype_is_complex(dtype)));
    for (size_t i = 0; all && i < cfx_node_num_args(n); i++) {
        const cfx_value v = cfx_node_arg(n, i);
        all = v.kind == CFX_KIND_INT || (v.kind == CFX_KIND_FLOAT && fractions) ||
              (v.kind == CFX_KIND_NODE && is_alike(buffer, v.as.node, dtype, depth + 1));
    }
    return all;
}

cfx_status cfx_script_fit_buffer(cfx_node *buffer, cfx_node *value, size_t ndim, cfx_dtype dtype,
                                 cfx_error *err)
{
    if (ndim > 0 && is_single(value, 0))
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "this buffer has dimensions, but is assigned "
                             "a tensor that has none: the graph would copy it into every element; "
                             "register the buffer with the shape that it gets (torch.zeros(())), "
                             "or fill it (self.b.fill_(v))");
    if (!cfx_dtype_is_float(dtype) && !cfx_dtype_is_complex(dtype) && is_fraction(value, 0))
        return cfx_error_set(err, CFX_E_UNSUPPORTED, "this buffer has an integer dtype, but is "
                             "assigned fractions: the graph would round them; register the buffer "
                             "with the dtype that it gets, or convert the value "
                             "(v.to(self.b.dtype))");
    if (is_alike(buffer, value, dtype, 0))
        return CFX_OK;
    const cfx_value args[] = {cfx_value_node(buffer), cfx_value_node(value)};
    return cfxi_ir_call_by_name(buffer->graph, "cfx.check_buffer", args, 2, NULL, err)
               ? CFX_OK
               : err->status;
}

/* ---- values that a buffer loses ------------------------------------------------------------ */

/* A write to a buffer: buffer.copy_(v), or one in a branch that decides whether it is written. */
typedef struct keep {
    cfx_node *user;          /* what reads the value: the call, or the branch */
    const char *buffer;      /* its path */
    cfx_node *value;         /* NULL: what is computed in the branch */
} keep;

typedef struct keeper {
    cfx_graph *g;
    cfx_node *first;         /* the first node of the writes */
    cfxi_vec keeps;          /* of keep */
    cfx_error *err;
    /* of one search */
    cfx_node_map *seen[2];   /* nodes that were visited, with `except` and without */
    const char *except;      /* a buffer that does not matter; or NULL */
    bool plain;              /* data can choose a number, or a tuple, instead of a tensor */
} keeper;

const cfx_node *cfxi_eval_tensor_of(const cfx_node *n)
{
    for (const cfx_node *written; (written = cfxi_analysis_written(n, NULL)) != NULL;)
        n = written;
    return n;
}

const char *cfxi_eval_attribute_of(const cfx_node *n)
{
    n = cfxi_eval_tensor_of(n);
    return n->op == CFX_OP_GET_ATTR ? cfx_node_target(n, NULL, NULL) : NULL;
}

/* Whether a node behind the first writes to a buffer: buffer.copy_(v). */
static bool is_keep(const cfx_node *n)
{
    const char *target = cfx_node_target(n, NULL, NULL);
    return n->op == CFX_OP_CALL_METHOD && target && strcmp(target, "copy_") == 0 &&
           cfx_node_arg(n, 0).kind == CFX_KIND_NODE && cfx_node_arg(n, 1).kind == CFX_KIND_NODE;
}

/* What an input of a branch is outside; NULL: `n` is not one, or that is not a node. */
static cfx_node *operand_of(const cfxi_control *c, const cfx_node *n)
{
    size_t i = 0;
    const cfx_node *input = cfxi_ir_next_input(n->graph, NULL);
    for (; input && input != n; input = cfxi_ir_next_input(n->graph, input))
        i++;
    return input && i < c->n && c->operands[i].kind == CFX_KIND_NODE ? c->operands[i].as.node
                                                                     : NULL;
}

/* Notes the write `n`, in the branch if that is set. A buffer may be given the very tensor that it
 * is: self.state += x. */
static cfx_status note_keep(keeper *k, cfx_node *n, const cfxi_control *branch)
{
    cfx_node *value = cfx_node_arg(n, 1).as.node;
    keep found = {.user = n, .value = value};
    if (branch) {
        found.user = branch->node;
        found.value = operand_of(branch, value);
    }
    found.buffer = cfx_node_target(cfx_node_arg(n, 0).as.node, NULL, NULL);
    const char *given = cfxi_eval_attribute_of(found.value ? found.value : value);
    if (!found.buffer || (given && strcmp(found.buffer, given) == 0))
        return CFX_OK;
    if (!cfxi_base_vec_reserve(&k->keeps, 1, sizeof found, k->g->allocator))
        return cfxi_base_nomem(k->err);
    ((keep *)k->keeps.data)[k->keeps.size++] = found;
    return CFX_OK;
}

static cfx_status find_keeps(keeper *k)
{
    cfxi_control c;
    for (cfx_node *n = k->first; n != &k->g->root; n = n->next) {
        if (is_keep(n))
            CFX_TRY(note_keep(k, n, NULL));
        if (!cfxi_analysis_control_of(n, &c))
            continue;
        for (cfx_node *in = c.regions[0]->root.next; in != &c.regions[0]->root; in = in->next)
            if (is_keep(in))
                CFX_TRY(note_keep(k, in, &c));
    }
    return CFX_OK;
}

/* Whether the attribute that is read gets another tensor's elements. */
static bool is_lost(const keeper *k, const cfx_node *read)
{
    const char *path = cfx_node_target(read, NULL, NULL);
    const keep *keeps = k->keeps.data;
    if (!path || (k->except && strcmp(path, k->except) == 0))
        return false;
    for (size_t i = 0; i < k->keeps.size; i++)
        if (strcmp(keeps[i].buffer, path) == 0)
            return true;
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
    if (written || !cfxi_analysis_is_view(n))
        return written && comes_from(k, in, of.as.node, steps);
    const char *except = k->except;  /* a part of that buffer is not the buffer */
    k->except = NULL;
    const bool found = comes_from(k, in, of.as.node, steps);
    k->except = except;
    return found;
}

/* Whether the value of `n` may be a buffer that is lost, or a part of it. */
static bool comes_from(keeper *k, const inside *in, cfx_node *n, unsigned steps)
{
    cfx_node_map *seen = k->seen[k->except == NULL];
    if (k->err->status != CFX_OK || cfx_node_map_get(seen, n).kind != CFX_KIND_INVALID)
        return false;
    if (steps == MOST_STEPS)
        return true;
    if (cfx_node_map_set(seen, n, cfx_value_bool(true), k->err) != CFX_OK)
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

/* Whether `n` may be what a buffer loses; `except`: another than this, or a part of it. */
static bool may_be_lost(keeper *k, cfx_node *n, const char *except)
{
    k->plain = false;
    k->except = except;
    for (size_t i = 0; i < 2; i++)
        k->seen[i] = cfx_node_map_new(k->g->allocator, k->err);
    const bool found = k->seen[0] && k->seen[1] && comes_from(k, NULL, n, 0);
    cfx_node_map_free(k->seen[0]);
    cfx_node_map_free(k->seen[1]);
    return found;
}

/* Makes `user` read a copy of `n`, if that may be what a buffer loses. */
static cfx_status keep_apart(keeper *k, cfx_node *user, cfx_node *n, const char *except)
{
    if (!may_be_lost(k, n, except) || k->err->status != CFX_OK)
        return k->err->status;
    if (!k->plain)
        return copy_for(k, user, n);
    return cfx_error_set(k->err, CFX_E_UNSUPPORTED, "%s:%u: depending on data, this is a buffer "
                         "that is assigned to, or not a tensor; return buffer.clone(), and a "
                         "tensor in every branch",
                         cfx_node_file(n) ? cfx_node_file(n) : "", (unsigned)cfx_node_line(n));
}

/* What is copied into a buffer may be that buffer, where it is not assigned. */
static cfx_status copy_values(keeper *k)
{
    const keep *keeps = k->keeps.data;
    for (size_t i = 0; i < k->keeps.size; i++)
        if (keeps[i].value)
            CFX_TRY(keep_apart(k, keeps[i].user, keeps[i].value, keeps[i].buffer));
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
        status = keep_apart(k, output, results[i], NULL);
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
    cfx_status status = find_keeps(&k);
    if (status == CFX_OK)
        status = copy_values(&k);
    if (status == CFX_OK)
        status = copy_results(&k);
    cfxi_base_vec_free(&k.keeps, sizeof(keep), g->allocator);
    if (err && status != CFX_OK)
        *err = own;
    return status;
}
