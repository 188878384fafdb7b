/* reference_recurrent.c - recurrent layers and cells with integer weights.
 *
 *     before                              after
 *     %l = call_module[target=l](%x)      %w = get_attr[target=l.weight_ih_l0_int8]()
 *                                         %wdq = ...dequantize_per_tensor.default(%w, ...)
 *                                         ...
 *                                         %lstm = call_function[target=torch.lstm](
 *                                             %x, %states, [%wdq, ...], ...)
 *                                         %l = call_function[target=builtins.tuple](...)
 *
 * Each matrix has an observer of its own beside it, weight_ih_l0_observer. Biases stay float, and
 * so do states: the input alone is rounded in each run.
 */
#include "lower/recurrent.h"
#include "reference_impl.h"

/* ---- the matrices of a module --------------------------------------------------------------- */

/* One of them and its observer, by their paths. */
typedef cfx_status matrix_fn(void *ctx, const char *matrix, const char *observer);

static cfx_status visit(const cfx_module_tree *modules, const char *layer, const char *name,
                        matrix_fn *fn, void *ctx, bool *there)
{
    char matrix[CFXI_QUANTIZE_MAX_PATH];
    char observer[CFXI_QUANTIZE_MAX_PATH];
    *there = cfxi_quantize_join(matrix, layer, ".", name) &&
             cfxi_quantize_join(observer, matrix, "_observer", "") &&
             modules->identity(modules->ctx, matrix);
    return *there ? fn(ctx, matrix, observer) : CFX_OK;
}

/* Cells have weight_ih and weight_hh, layers weight_ih_l0, weight_ih_l0_reverse and so on. */
static cfx_status each_matrix(const cfx_module_tree *modules, const char *layer, matrix_fn *fn,
                              void *ctx)
{
    static const char *const kinds[] = {"weight_ih", "weight_hh", "weight_hr"};
    char name[64];
    bool there = false, any = true;
    for (size_t k = 0; k < 2; k++)
        CFX_TRY(visit(modules, layer, kinds[k], fn, ctx, &there));
    for (int i = 0; !there && any; i++) {
        any = false;
        for (int k = 0; k < 6; k++) {
            bool one;
            snprintf(name, sizeof name, "%s_l%d%s", kinds[k % 3], i, k < 3 ? "" : "_reverse");
            CFX_TRY(visit(modules, layer, name, fn, ctx, &one));
            any = any || one;
        }
    }
    return CFX_OK;
}

/* ---- preparing ------------------------------------------------------------------------------ */

typedef struct observing {
    cfxi_prepare *p;
    const cfx_qconfig *config;
} observing;

static cfx_status observe(void *ctx, const char *matrix, const char *observer)
{
    const observing *o = ctx;
    cfxi_prepare *p = o->p;
    if (p->modules->identity(p->modules->ctx, observer))
        return CFX_OK;  /* the module is called more than once */
    CFX_TRY(cfxi_quantize_check_dtype(p, matrix));
    return p->host->observe(p->host->ctx, observer, o->config, true, p->err);
}

cfx_status cfxi_quantize_observe_recurrent(cfxi_prepare *p, const cfx_node *n,
                                           const cfx_qconfig *config)
{
    observing o = {p, config};
    return each_matrix(p->modules, cfxi_quantize_path(n), observe, &o);
}

/* ---- converting ----------------------------------------------------------------------------- */

typedef struct looking {
    cfxi_convert *c;
    size_t observers;
    const char *why;
} looking;

static cfx_status look(void *ctx, const char *matrix, const char *observer)
{
    looking *l = ctx;
    cfxi_convert *c = l->c;
    cfx_quantize_spec spec;
    const char *why = NULL;
    if (!c->modules->identity(c->modules->ctx, observer))
        return CFX_OK;
    l->observers++;
    CFX_TRY(cfxi_quantize_push_path(c, &c->observers, observer));
    CFX_TRY(c->host->spec(c->host->ctx, observer, &spec, c->err));
    CFX_TRY(cfxi_quantize_group_refusal(c, (cfxi_weight){matrix, false}, &spec, &why));
    l->why = why ? why : l->why;
    return CFX_OK;
}

cfx_status cfxi_quantize_look_at_recurrent(cfxi_convert *c, cfx_node *n, bool *is)
{
    looking l = {.c = c};
    CFX_TRY(each_matrix(c->modules, cfxi_quantize_path(n), look, &l));
    c->n_observers += l.observers;
    *is = l.observers > 0 && !l.why;
    return l.why ? cfxi_quantize_keep(c, n, l.why) : CFX_OK;
}

/* A get_attr of a matrix that has an observer becomes dequantized integers. */
static cfx_status convert_matrix(cfxi_convert *c, cfx_node *n)
{
    char observer[CFXI_QUANTIZE_MAX_PATH];
    const char *matrix = cfxi_quantize_path(n);
    if (!cfxi_quantize_join(observer, matrix, "_observer", "") ||
        !c->modules->identity(c->modules->ctx, observer))
        return CFX_OK;
    cfx_node *with = cfxi_quantize_weight(c, n, (cfxi_weight){matrix, false}, observer, true);
    if (!with)
        return cfxi_base_failed(c->err, c->err->status);
    CFX_TRY(cfx_node_replace_uses(n, cfx_value_node(with), NULL, NULL, NULL, c->err));
    return cfx_graph_erase(c->g, n, c->err);
}

cfx_status cfxi_quantize_recurrent(cfxi_convert *c, cfx_node *n, cfx_operator op)
{
    cfx_node *before = cfx_node_prev(n);
    CFX_TRY(cfxi_lower_recurrent(c->g, c->modules, n, op, c->err));
    cfx_node *at = before ? cfx_node_next(before) : cfx_graph_first(c->g);
    while (at != n) {
        cfx_node *next = cfx_node_next(at);
        if (at->op == CFX_OP_GET_ATTR)
            CFX_TRY(convert_matrix(c, at));
        at = next;
    }
    return CFX_OK;
}
