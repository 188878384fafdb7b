/* export_branches.c - branches: If, whose two graphs use values of outside.
 *
 * A tensor of outside that a branch writes to is one more result, which that tensor has from then
 * on.
 */
#include "export_control_impl.h"

#include "dim/dim_impl.h"

typedef struct branch {
    cfxi_export_scope scope;
    cfxi_ev *result;
    cfxi_export_leaves found;
    cfxi_ev **written;         /* tensors of outside, */
    cfxi_ev **now;             /* and what they are at the end of the branch */
    size_t num_written;
} branch;

/* `if returned: value = result`: what a branch gives beside its flag is there where the flag says
 * so. The other way is the one on which it is None. */
static void trust_flag(const cfxi_export_call *c, const cfxi_ev *pred, cfxi_export_leaves *found)
{
    for (size_t i = 0; i < found->n; i++) {
        cfxi_ev *v = found->at[i];
        if (!v->maybe_none || !pred->source || v->source != pred->source)
            continue;
        cfxi_ev *own = cfxi_export_room(c->x, 1, sizeof *own);
        if (!own)
            return;
        *own = *v;
        own->maybe_none = false;
        found->at[i] = own;
    }
}

/* What the branch has written to of outside, which is then as before. */
static void take_written(cfxi_exporter *x, branch *b)
{
    const size_t n = b->scope.written.size;
    const cfxi_export_written *written = b->scope.written.data;
    b->written = cfxi_export_room(x, n, sizeof *b->written);
    b->now = cfxi_export_room(x, n, sizeof *b->now);
    for (size_t i = 0; b->written && b->now && i < n; i++) {
        b->written[i] = written[i].root;
        b->now[i] = cfxi_export_snapshot(x, written[i].root);
        b->num_written++;
    }
    if (!b->result->broken)
        b->result = cfxi_export_freeze(x, b->result);
    cfxi_export_restore(x);
}

static void run_branch(cfxi_export_call *c, cfx_graph *region, const cfxi_ev *operands, branch *b)
{
    cfxi_exporter *x = c->x;
    const cfxi_dim_state before = cfxi_dim_mark(x->dims);
    cfxi_export_scope_begin(x, &b->scope);
    b->result = cfxi_export_region(x, region, operands->items, operands->n);
    if (b->result->broken)
        c->refused = true;
    take_written(x, b);
    cfxi_dim_undo(x->dims, before);  /* what its sizes must be, they need not be elsewhere */
    x->scope = b->scope.outer;  /* outputs follow when the other branch is known */
}

static cfxi_onnx_graph *end_branch(cfxi_export_call *c, branch *b, const cfxi_export_leaves *both,
                                   const char *name)
{
    cfxi_exporter *x = c->x;
    x->scope = &b->scope;
    cfxi_onnx_value *outputs = cfxi_export_room(x, b->found.n, sizeof *outputs);
    size_t n = 0;
    if (outputs && both && !c->refused)
        n = cfxi_export_set_outputs(c, outputs, b->found.at, both->at, both->n);
    cfxi_onnx_graph *g = cfxi_export_scope_end(x, name);
    if (g) {
        g->outputs.items = outputs;
        g->outputs.n = n;
    }
    return g;
}

/* A branch that is known to be taken is part of the graph around it. */
static cfxi_ev *known_branch(cfxi_export_call *c, bool yes, const cfxi_ev *operands)
{
    return cfxi_export_region(c->x, c->args[yes ? 1 : 2]->graph, operands->items, operands->n);
}

/* The leaves of what both branches return. */
static bool join_results(cfxi_export_call *c, const cfxi_ev *like, branch *b,
                         cfxi_export_leaves *both)
{
    for (int i = 0; i < 2 && !c->refused; i++) {
        if (!cfxi_export_collect(like, b[i].result, &b[i].found))
            cfxi_export_refuse(c, "its ways return different things, or something that is neither "
                               "a tensor nor a number; return the same from both");
        trust_flag(c, c->args[0], &b[i].found);
    }
    return !c->refused && cfxi_export_join(c, &b[0].found, &b[1].found, both);
}

/* What the branch makes of a tensor of outside: that itself, if it leaves it as it is. */
static cfxi_ev *value_after(const branch *b, cfxi_ev *root)
{
    for (size_t i = 0; i < b->num_written; i++)
        if (b->written[i] == root)
            return b->now[i];
    return root;
}

/* Leaves for what either branch has written to; false if there are too many. */
static bool add_written(cfxi_exporter *x, branch *b, cfxi_ev **roots, cfxi_export_leaves *both)
{
    const size_t first = both->n;
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < b[i].num_written; k++) {
            cfxi_ev *root = b[i].written[k];
            if (i == 1 && value_after(&b[0], root) != root)
                continue;
            if (both->n == CFXI_MOST_LEAVES)
                return false;
            roots[both->n - first] = root;
            for (int j = 0; j < 2; j++)
                b[j].found.at[b[j].found.n++] = value_after(&b[j], root);
            both->at[both->n++] = cfxi_export_of_datum(x, root->datum);
        }
    }
    return true;
}

static cfxi_ev *make_if(cfxi_export_call *c, cfxi_ev *test, branch *b, cfxi_export_leaves *both)
{
    cfxi_exporter *x = c->x;
    const cfxi_ev *like = c->refused ? &x->broken
                                     : cfxi_export_widen(c, b[0].result, b[1].result);
    cfxi_ev **roots = cfxi_export_room(x, CFXI_MOST_LEAVES, sizeof *roots);
    bool good = roots && join_results(c, like, b, both);
    const size_t num_results = both->n;
    if (good && !add_written(x, b, roots, both))
        good = false, cfxi_export_refuse(c, "it writes to more than %d tensors", CFXI_MOST_LEAVES);
    cfxi_onnx_graph *yes = end_branch(c, &b[0], good ? both : NULL, "then");
    cfxi_onnx_graph *no = end_branch(c, &b[1], good ? both : NULL, "otherwise");
    if (!good || c->refused || x->failed)
        return &x->broken;
    const size_t n = cfxi_export_count_outputs(both);
    cfxi_ev **outputs = cfxi_export_room(x, n, sizeof *outputs);
    if (!outputs || n == 0)
        return b[0].result;
    cfxi_export_nodes(x, "If", &test, 1, outputs, n);
    cfxi_export_set_graph(x, "then_branch", yes);
    cfxi_export_set_graph(x, "else_branch", no);
    cfxi_ev *result = cfxi_export_take_outputs(c, like, both, outputs);
    for (size_t i = num_results; i < both->n; i++)
        cfxi_export_write(c, roots[i - num_results], both->at[i]);
    for (int i = 0; i < 2; i++) {
        b[i].found.n = num_results;
        cfxi_export_note_partners(x, &b[i].scope, &b[i].found, both);
    }
    return c->refused ? &x->broken : result;
}

cfxi_ev *cfxi_export_cond(cfxi_export_call *c)
{
    cfxi_exporter *x = c->x;
    static const cfxi_ev nothing = {.n = 0};
    const cfxi_ev *operands = c->n > 3 ? c->args[3] : &nothing;
    const cfxi_ev *pred = c->args[0];
    branch *b = cfxi_export_room(x, 2, sizeof *b);
    cfxi_export_leaves *both = cfxi_export_room(x, 1, sizeof *both);
    if (!b || !both)
        return &x->broken;
    if (pred->datum.kind == CFX_DATUM_NONE || cfxi_export_is_known(pred))
        return known_branch(c, pred->datum.kind == CFX_DATUM_BOOL ? pred->datum.as.b
                               : pred->datum.kind == CFX_DATUM_FLOAT ? pred->datum.as.f != 0
                               : pred->datum.kind == CFX_DATUM_INT && pred->datum.as.i != 0,
                            operands);
    if (pred->items || pred->maybe_none)
        return cfxi_export_refuse(c, "a branch depends on a value that is neither a tensor nor a "
                                  "number");
    cfxi_ev *test = cfxi_export_condition(c, c->args[0]);
    run_branch(c, c->args[1]->graph, operands, &b[0]);
    run_branch(c, c->args[2]->graph, operands, &b[1]);
    return make_if(c, test, b, both);
}

