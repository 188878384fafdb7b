/* collapse_reshapes.c - takes out reshapes of reshapes, and transposes of transposes.
 *
 *     before                                                after
 *     %x = placeholder[target=x]()                          %x = placeholder[target=x]()
 *     %a = call_method[target=view](%x, 2, 3, 4)            %b = call_method[target=view](%x, 6, 4)
 *     %b = call_method[target=view](%a, 6, 4)               output(%b)
 *     %c = call_function[target=torch.transpose](%b, 0, 1)
 *     %d = call_method[target=transpose](%c, 1, 0)
 *     output(%d)
 *
 * The result has the same elements, in the same memory and strides, without anything being known of
 * the sizes of %x. Whether reshape copies depends on the strides of its operand and on where the
 * new sizes cut it. So a view between the two never matters; and a reshape that may copy does not
 * if the outer one cuts nowhere else (`merges`): then that copies if the inner one did. But
 * reshape(reshape(x, [2, 6]), [3, 4]) stays: where the inner one copies the outer one alone might
 * not, and a later `view` of the result could fail. A view of a reshape becomes a reshape.
 *
 * Left alone is what shares memory with something that is written to: a copy would be made at
 * another time, and x.squeeze_() changes one of two tensors that share memory.
 *
 * Needs: nodes in topological order; others are left alone.
 * Keeps: names, order and locations of remaining nodes; every effect. But what fails may run: an
 * inner call that is wrong (x.view(7, -1)) is gone. Linear in nodes and edges, but for calls that
 * read many results of this: each replacement sets all their arguments.
 */
#include "respell_impl.h"
#include "pass_impl.h"

typedef struct collapse_job {
    cfxi_effect_model model;
    cfxi_aliases aliases;  /* of the graph that is being changed */
    bool outside_written;  /* so is some memory from beyond the graph, which has many names there */
    bool changed;
} collapse_job;

/* What to do with a node. */
typedef struct step {
    cfx_node *inner, *x;  /* what it reads, and what that reads */
    cfx_node *same;       /* replace it by this; or NULL: let it read `x` */
    bool respell;         /* make it a reshape */
} step;

/* ---- sizes --------------------------------------------------------------------------------- */

typedef struct sizes {
    const cfx_value *items;
    size_t n;
} sizes;

static const cfx_value rest = {.kind = CFX_KIND_INT, .as.i = -1};

static bool has_one_argument(const cfx_node *n) { return cfx_node_num_args(n) == 1 && !n->kwargs; }

/* The numbers of a list argument, be it a list or loose. A lone node may be anything: a list, or in
 * x.view(y.dtype) no size at all. */
static bool read_sizes(const cfx_node *n, const char *param, sizes *s)
{
    const cfx_value v = cfx_node_operand(n, param);
    const bool loose = v.kind != CFX_KIND_LIST && v.kind != CFX_KIND_TUPLE;
    s->items = cfx_value_items(loose ? cfx_node_args(n) : v, &s->n);
    if (loose && (s->n < 2 || n->kwargs || (s->n == 2 && s->items[1].kind == CFX_KIND_NODE)))
        return false;
    *s = (sizes){s->items + loose, s->n - loose};
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i].kind != CFX_KIND_INT && s->items[i].kind != CFX_KIND_NODE)
            return false;
    return true;
}

/* Whether a call arranges its operand, of whatever sizes, in these sizes. */
static bool is_reshape(const cfx_node *n, sizes *s)
{
    const cfx_operator op = cfx_node_operator(n);
    if (op == CFX_OPID_reshape || op == CFX_OPID_view)
        return read_sizes(n, op == CFX_OPID_view ? "size" : "shape", s);
    *s = (sizes){&rest, 1};
    if (op == CFX_OPID_flatten && cfx_node_num_args(n) == 2 && !n->kwargs)
        return cfx_value_equal(cfx_node_arg(n, 1), cfx_value_int(0));
    return (op == CFX_OPID_ravel || op == CFX_OPID_flatten) && has_one_argument(n);
}

/* Whether the sizes `b` are the first of `a`, and then what remains of it. A node may stand for -1,
 * which need not be the same in both, unless there is another -1. */
static bool merges(sizes a, sizes b)
{
    bool known = true;
    for (size_t i = 0; i + 1 < b.n; i++) {
        if (i >= a.n || !cfx_value_equal(a.items[i], b.items[i]) ||
            (a.items[i].kind == CFX_KIND_INT && a.items[i].as.i <= 0))
            return false;
        known = known && a.items[i].kind == CFX_KIND_INT;
    }
    return known || cfx_value_equal(b.items[b.n - 1], rest);
}

/* ---- pairs of calls ------------------------------------------------------------------------ */

/* Whether `n`, a reshape to `b`, can read what `inner` reads. */
static bool may_skip(const cfx_node *n, sizes b, const cfx_node *inner, bool *copies)
{
    sizes a;
    *copies = false;
    switch (cfx_node_operator(inner)) {
    case CFX_OPID_view:
        return read_sizes(inner, "size", &a);
    case CFX_OPID_view_as:
    case CFX_OPID_unflatten:
    case CFX_OPID_squeeze:
    case CFX_OPID_squeeze_dim:
    case CFX_OPID_unsqueeze:
        return true;
    case CFX_OPID_reshape:
    case CFX_OPID_reshape_as:
    case CFX_OPID_flatten:
        *copies = true;
        return b.n <= 1 || (read_sizes(inner, "shape", &a) && merges(a, b));
    case CFX_OPID_ravel:  /* copies what has strides, which a reshape does not always */
        return cfx_node_operator(n) == CFX_OPID_ravel;
    default:
        return false;
    }
}

static bool same_dims(const cfx_node *a, const cfx_node *b)
{
    const cfx_value a0 = cfx_node_operand(a, "dim0"), a1 = cfx_node_operand(a, "dim1");
    const cfx_value b0 = cfx_node_operand(b, "dim0"), b1 = cfx_node_operand(b, "dim1");
    if (a0.kind == CFX_KIND_INVALID || a1.kind == CFX_KIND_INVALID)
        return false;
    return (cfx_value_equal(a0, b0) && cfx_value_equal(a1, b1)) ||
           (cfx_value_equal(a0, b1) && cfx_value_equal(a1, b0));
}

/* Of a permutation, which names all dimensions, so that their number is known. */
static int64_t dim_at(sizes dims, int64_t i)
{
    const cfx_value v = i < 0 || i >= (int64_t)dims.n ? rest : dims.items[i];
    return v.kind != CFX_KIND_INT ? -1 : v.as.i < 0 ? v.as.i + (int64_t)dims.n : v.as.i;
}

static bool permutes_back(const cfx_node *a, const cfx_node *b)
{
    sizes p, q;
    if (!read_sizes(a, "dims", &p) || !read_sizes(b, "dims", &q) || p.n != q.n)
        return false;
    for (int64_t i = 0; i < (int64_t)p.n; i++)
        if (dim_at(q, i) < 0 || dim_at(q, i) >= (int64_t)p.n || dim_at(p, dim_at(q, i)) != i)
            return false;
    return true;
}

/* What `n`, which reads `inner`, which reads `x`, gives again: one of them, or NULL. */
static cfx_node *stands_for(const cfx_node *n, cfx_node *inner, cfx_node *x)
{
    const cfx_operator op = cfx_node_operator(n);
    const bool twice = cfx_node_operator(inner) == op;
    const bool flat = cfx_node_operator(inner) == CFX_OPID_ravel;
    if (op == CFX_OPID_contiguous)  /* without a memory_format */
        return (flat || twice) && has_one_argument(n) && has_one_argument(inner) ? inner : NULL;
    if (twice && (op == CFX_OPID_transpose ? same_dims(n, inner)
                  : op == CFX_OPID_permute ? permutes_back(inner, n) : op == CFX_OPID_t))
        return x;
    return NULL;
}

/* ---- one step ------------------------------------------------------------------------------ */

static cfx_node *read_by(const cfx_node *n)
{
    const cfx_value v = cfx_node_operand(n, "self");
    return v.kind == CFX_KIND_NODE && cfx_node_before(v.as.node, n) ? v.as.node : NULL;
}

static bool is_written(const collapse_job *job, const cfx_node *n)
{
    if (cfx_node_map_get(job->aliases.places, n).kind == CFX_KIND_INVALID)
        return true;  /* made meanwhile, by a hook */
    const cfxi_alias *set = cfxi_analysis_alias_set(&job->aliases, n);
    return set->written || (set->outside && job->outside_written);
}

static bool find_step(const collapse_job *job, const cfx_node *n, step *s)
{
    sizes b;
    bool copies;
    *s = (step){.inner = read_by(n)};
    s->x = s->inner ? read_by(s->inner) : NULL;
    if (!s->x || is_written(job, n))
        return false;
    /* What nobody uses stays: it would be gone as a user, and one run would not be enough. */
    s->same = n->n_users > 0 ? stands_for(n, s->inner, s->x) : NULL;
    if (s->same)
        return true;
    if (s->inner->n_users > 1 || cfx_node_find_use(n, s->inner)->count > 1 || !is_reshape(n, &b) ||
        !may_skip(n, b, s->inner, &copies))
        return false;
    s->respell = copies && cfx_node_operator(n) == CFX_OPID_view;
    return !s->respell || !n->kwargs;  /* `size`, which reshape calls `shape` */
}

static cfx_status erase_unused(cfx_node *n, cfx_error *err)
{
    return n->n_users || cfxi_ir_node_erased(n) ? CFX_OK : cfx_graph_erase(n->graph, n, err);
}

/* *done is false if there is nothing to do for `n`, or no more. */
static cfx_status take_step(collapse_job *job, cfx_node *n, bool *done, cfx_error *err)
{
    step s;
    cfxi_ir_graph_freeze(n->graph);  /* the host may compare arguments */
    *done = find_step(job, n, &s);
    cfxi_ir_graph_thaw(n->graph);
    if (*done && s.respell)
        CFX_TRY(cfxi_pass_respell(n, CFX_OPID_reshape, done, err));
    if (!*done)
        return CFX_OK;
    job->changed = true;
    if (s.same) {
        CFX_TRY(cfx_node_replace_uses(n, cfx_value_node(s.same), NULL, NULL, NULL, err));
        *done = false;
        CFX_TRY(erase_unused(n, err));
    } else {
        CFX_TRY(cfx_node_replace_input(n, s.inner, cfx_value_node(s.x), err));
    }
    return erase_unused(s.inner, err);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static cfx_status find_writes(collapse_job *job, cfx_graph *g, cfx_error *err)
{
    CFX_TRY(cfxi_analysis_aliases_note_writes(&job->aliases, err));
    for (cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        cfxi_alias *set = cfxi_analysis_alias_set(&job->aliases, n);
        cfx_effect effect;
        CFX_TRY(cfxi_analysis_effect(&job->model, n, &effect, err));
        if (effect != CFX_EFFECT_NONE &&
            cfxi_analysis_is_view(n)) /* the host says that it must stay */
            set->written = true;
        if (set->written && set->outside)
            job->outside_written = true;
    }
    return CFX_OK;
}

static cfx_status collapse(cfx_graph *g, void *ctx, cfx_error *err)
{
    collapse_job *job = ctx;
    cfx_iter it;
    job->outside_written = false;
    cfx_iter_begin(&it, g, false);
    cfxi_ir_graph_freeze(g);
    cfx_status status =
        cfxi_analysis_aliases_begin(&job->aliases, g, &job->model, CFXI_USES_ALL, err);
    if (status == CFX_OK)
        status = find_writes(job, g, err);
    cfxi_ir_graph_thaw(g);
    for (cfx_node *n; status == CFX_OK && (n = cfx_iter_next(&it));)
        for (bool again = true; status == CFX_OK && again;)
            status = take_step(job, n, &again, err);
    cfx_iter_end(&it);
    cfxi_analysis_aliases_end(&job->aliases);
    return status == CFX_OK ? cfxi_analysis_each_region(g, collapse, job, err) : status;
}

cfx_status cfxi_pass_collapse_reshapes(cfx_graph *g, const cfx_module_tree *modules,
                                       const void *opts, bool *changed, cfx_error *err)
{
    const cfx_collapse_reshapes_options *o = opts;
    collapse_job job = {.model = {.modules = modules, .strict = o && o->strict}};
    cfx_status status = collapse(g, &job, err);
    cfxi_analysis_model_end(&job.model);
    if (changed)
        *changed = job.changed;
    return status;
}
