/* trial.c - two modules run on the same inputs, and their layers compared, or corrected.
 *
 * Both run as the interpreter runs them, each layer by itself: a plan would compute several at
 * once. Values of the first are kept until the second has computed its own. A trial that corrects
 * keeps their means instead, and changes what the second has computed before anything reads it.
 */
#include "observing_impl.h"

#include <cfx/calibrate.h>
#include <cfx/embed/copy.h>

struct cfx_trial {
    const cfx_allocator *allocator;
    cfx_runtime *rt;            /* borrowed from the scope */
    cfx_comparison *comparison; /* this, */
    cfx_correction *correction; /* or this */
    cfx_module *corrected;      /* the second, with a graph of its own; borrowed from the scope */
    cfx_program *programs[2];
    cfx_datum *kept;            /* what the first one's layers gave: by pair */
    size_t n;
};

static bool pair_at(const cfx_trial *t, size_t i, cfx_node *pair[2])
{
    return t->comparison ? cfx_comparison_pair(t->comparison, i, &pair[0], &pair[1])
                         : cfx_correction_pair(t->correction, i, &pair[0], &pair[1]);
}

/* ---- values -------------------------------------------------------------------------------- */

/* A copy: the program may write to the value later. */
static cfx_status keep_value(void *ctx, size_t place, cfx_datum value, cfx_error *err)
{
    cfx_trial *t = ctx;
    cfx_datum_release(t->kept[place]);
    t->kept[place] = cfx_datum_none();
    if (value.kind != CFX_DATUM_TENSOR)
        return CFX_OK;
    t->kept[place] = cfx_operator_run(t->rt, CFX_OPID_clone, &value, 1, err);
    return t->kept[place].kind == CFX_DATUM_INVALID ? cfxi_base_failed(err, err->status) : CFX_OK;
}

static const cfx_tensor *tensor_of(cfx_datum d)
{
    return d.kind == CFX_DATUM_TENSOR ? d.as.tensor : NULL;
}

/* A value of a branch that the first one did not take has no counterpart. */
static cfx_status compare_value(void *ctx, size_t place, cfx_datum value, cfx_error *err)
{
    cfx_trial *t = ctx;
    if (t->kept[place].kind == CFX_DATUM_INVALID)
        return CFX_OK;
    const cfx_status status = cfx_comparison_add(t->comparison, place, tensor_of(t->kept[place]),
                                                 tensor_of(value), err);
    cfx_datum_release(t->kept[place]);
    t->kept[place] = cfx_datum_invalid();
    return status;
}

static cfx_status expect_value(void *ctx, size_t place, cfx_datum value, cfx_error *err)
{
    const cfx_trial *t = ctx;
    return cfx_correction_expect(t->correction, place, tensor_of(value), err);
}

/* The value is the result of a layer, which nothing else has: it is written to. */
static cfx_status correct_value(void *ctx, size_t place, cfx_datum value, cfx_error *err)
{
    const cfx_trial *t = ctx;
    cfx_tensor *shift = NULL;
    CFX_TRY(cfx_correction_meet(t->correction, place, tensor_of(value), &shift, err));
    if (!shift)
        return CFX_OK;
    const cfx_datum args[] = {value, cfx_datum_tensor(shift)};
    const cfx_datum result = cfx_operator_run(t->rt, CFX_OPID_sub_, args, 2, err);
    const bool ok = result.kind != CFX_DATUM_INVALID;
    cfx_datum_release(result);
    cfx_tensor_release(shift);
    return ok ? CFX_OK : cfxi_base_failed(err, err->status);
}

static void forget_values(cfx_trial *t)
{
    for (size_t i = 0; i < t->n; i++) {
        cfx_datum_release(t->kept[i]);
        t->kept[i] = cfx_datum_invalid();
    }
}

/* ---- programs ------------------------------------------------------------------------------ */

/* Lets the copy of the graph show what is compared. */
static cfx_status show_layers(const cfx_trial *t, size_t which, const cfx_node_map *copies,
                              cfx_error *err)
{
    cfx_node *pair[2];
    for (size_t i = 0; pair_at(t, i, pair); i++) {
        const cfx_value copy = cfx_node_map_get(copies, pair[which]);
        if (copy.kind == CFX_KIND_NODE)
            CFX_TRY(cfxi_capture_show(copy.as.node, i, err));
    }
    return CFX_OK;
}

static cfx_program *make_program(cfx_trial *t, size_t which, cfx_module *m,
                                 const cfx_library *library, cfx_error *err)
{
    static cfxi_show_fn *const show[2][2] = {{keep_value, compare_value},
                                             {expect_value, correct_value}};
    const cfxi_viewer viewer = {show[t->correction != NULL][which], t, NULL};
    cfx_program *p = NULL;
    cfx_node_map *copies = cfx_node_map_new(t->allocator, err);
    cfx_graph *g = copies ? cfx_graph_clone(m->graph, copies, err) : NULL;
    const cfx_library *lib = g ? cfxi_capture_viewing(&viewer, library, t->allocator, err) : NULL;
    if (lib && show_layers(t, which, copies, err) == CFX_OK)
        p = cfxi_capture_program(g, m, lib, NULL, NULL, t->allocator, err);
    cfx_library_release(lib);
    cfx_graph_release(g);
    cfx_node_map_free(copies);
    return p;
}

static bool fill(cfx_trial *t, cfx_at at, cfx_module *a, cfx_module *b, bool corrects,
                 cfx_error *err)
{
    cfx_module *const both[] = {a, b};
    cfx_node *pair[2];
    if (corrects)
        t->correction = cfx_correction_new(a->graph, b->graph, t->allocator, err);
    else
        t->comparison = cfx_comparison_new(a->graph, b->graph, t->allocator, err);
    if (!t->comparison && !t->correction)
        return false;
    while (pair_at(t, t->n, pair))
        t->n++;
    t->kept = cfxi_base_alloc(t->allocator, (t->n + 1) * sizeof *t->kept);
    if (!t->kept) {
        cfxi_base_nomem(err);
        return false;
    }
    for (size_t i = 0; i < t->n; i++)
        t->kept[i] = cfx_datum_invalid();
    for (size_t i = 0; i < 2; i++)
        if (!(t->programs[i] = make_program(t, i, both[i], cfxi_rt_library(at.scope->rt), err)))
            return false;
    return true;
}

/* ---- a trial ------------------------------------------------------------------------------- */

static bool expect_captured(cfx_at at, const cfx_module *a, const cfx_module *b)
{
    if (cfx_scope_ok(at.scope) && (!a || !b || !a->graph || !b->graph))
        cfx_scope_fail_at(at, CFX_E_VALUE, "a trial needs two captured modules");
    return cfx_scope_ok(at.scope);
}

static cfx_trial *new_trial(cfx_at at, cfx_module *a, cfx_module *b, bool corrects)
{
    cfx_error err = {0};
    cfx_trial *t = cfxi_base_alloc(at.scope->allocator, sizeof *t);
    if (t) {
        *t = (cfx_trial){.allocator = at.scope->allocator, .rt = at.scope->rt};
        if (fill(t, at, a, b, corrects, &err))
            return t;
        cfx_trial_free(t);
    } else {
        cfxi_base_nomem(&err);
    }
    cfxi_capture_scope_take(at, &err);
    return NULL;
}

cfx_trial *cfx_trial_new_at(cfx_at at, cfx_module *a, cfx_module *b)
{
    return expect_captured(at, a, b) ? new_trial(at, a, b, false) : NULL;
}

cfx_trial *cfx_trial_correct_at(cfx_at at, cfx_module *model, cfx_module *quantized)
{
    cfx_module *copy = expect_captured(at, model, quantized)
                           ? cfxi_capture_own_copy(at, quantized) : NULL;
    cfx_trial *t = copy ? new_trial(at, model, copy, true) : NULL;
    if (t)
        t->corrected = copy;
    return t;
}

void cfx_trial_free(cfx_trial *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < 2; i++)
        cfx_program_free(t->programs[i]);
    if (t->kept) {
        forget_values(t);
        cfxi_base_free(t->allocator, t->kept, (t->n + 1) * sizeof *t->kept);
    }
    cfx_comparison_free(t->comparison);
    cfx_correction_free(t->correction);
    cfxi_base_free(t->allocator, t, sizeof *t);
}

cfx_status cfx_trial_run(cfx_trial *t, const cfx_datum *inputs, size_t n, cfx_error *err)
{
    cfx_error own;
    cfx_status status = cfxi_base_expect(t, "trial", err);
    err = cfxi_base_error_or(err, &own);
    for (size_t i = 0; status == CFX_OK && i < 2; i++) {
        const cfx_datum result = cfx_program_run(t->programs[i], t->rt, inputs, n, err);
        status = result.kind == CFX_DATUM_INVALID ? cfxi_base_failed(err, err->status) : CFX_OK;
        cfx_datum_release(result);
    }
    if (t)
        forget_values(t);
    return status;
}

cfx_comparison *cfx_trial_comparison(cfx_trial *t) { return t ? t->comparison : NULL; }

static cfx_status finish(cfx_at at, cfx_trial *t, cfx_error *err)
{
    if (!t || !t->correction)
        return cfx_error_set(err, CFX_E_VALUE, "cfx_trial_corrected needs a trial that "
                             "cfx_trial_correct has made");
    const cfx_module_tree tree = cfxi_capture_scope_tree(at.scope, t->corrected);
    return cfx_correction_finish(t->correction, &tree, NULL, err);
}

cfx_module *cfx_trial_corrected_at(cfx_at at, cfx_trial *t)
{
    cfx_error err = {0};
    if (!cfx_scope_ok(at.scope))
        return NULL;
    if (finish(at, t, &err) != CFX_OK) {
        cfxi_capture_scope_take(at, &err);
        return NULL;
    }
    cfx_transform_at(at, t->corrected, "");  /* drops what the graph no longer names */
    return cfx_scope_ok(at.scope) ? t->corrected : NULL;
}
