/* verify.c - whether a graph is well formed: names, targets, order of definitions, regions.
 *
 * What a user can get wrong is here; the structures that only our own mistakes can break are in
 * verify_links.c. Every finding is reported. Linear in nodes and edges.
 */
#include "verify_impl.h"
#include "walk_impl.h"

#include <cfx/embed/namespace.h>

#include <stdio.h>

/* ---- findings ------------------------------------------------------------------------------ */

void cfxi_ir_finding(cfxi_verifier *v, const cfx_node *n, const char *format, ...)
{
    char message[sizeof v->err->message];
    size_t used = 0;
    const char *file = n ? cfx_node_file(n) : NULL;
    if (file)
        used = (size_t)snprintf(message, 200, "%.180s:%u: ", file, cfx_node_line(n));
    if (n)
        used += (size_t)snprintf(message + used, 120, "node %%%.100s: ",
                                 n->name ? n->name->data : "?");
    va_list args;
    va_start(args, format);
    vsnprintf(message + used, sizeof message - used, format, args);
    va_end(args);
    if (v->status == CFX_OK)
        v->status = cfx_error_set(v->err, CFX_E_GRAPH, "%s", message);
    if (v->report)
        v->report(v->ctx, n, message);
}

void cfxi_ir_verify_nomem(cfxi_verifier *v)
{
    if (v->status == CFX_OK)
        v->status = cfxi_base_nomem(v->err);
}

/* ---- names and targets --------------------------------------------------------------------- */

cfx_status cfxi_ir_name_rival(cfx_node *n, cfx_node_map **names, const cfx_node **rival,
                              cfx_error *err)
{
    cfxi_name *name = n->name;
    const cfx_node *key = (const cfx_node *)name;
    *rival = NULL;
    if (name->owner == n)
        return CFX_OK;
    if (name->owner && name->owner->name == name) {
        *rival = name->owner;
        return CFX_OK;
    }
    if (!*names && !(*names = cfx_node_map_new(n->graph->allocator, err)))
        return CFX_E_NOMEM;
    if (cfx_node_map_get(*names, key).kind == CFX_KIND_NODE) {
        *rival = cfx_node_map_get(*names, key).as.node;
        return CFX_OK;
    }
    return cfx_node_map_set(*names, key, cfx_value_node(n), err);
}

static void check_unique(cfxi_verifier *v, cfx_node *n)
{
    const cfx_node *rival;
    if (cfxi_ir_name_rival(n, &v->names, &rival, NULL) != CFX_OK)
        cfxi_ir_verify_nomem(v);
    else if (rival)
        cfxi_ir_finding(v, n, "Node redefined name %s! Rename one of the two", n->name->data);
}

static void check_name(cfxi_verifier *v, cfx_node *n)
{
    check_unique(v, n);
    if (!v->strict)
        return;
    if (!cfxi_base_is_identifier(n->name->data, n->name->size))
        cfxi_ir_finding(v, n, "its name is not an identifier; rename it");
    cfxi_ir_verify_name_entry(v, n);
}

/* What is known by its name only comes from a file: the gate that generated code has, too. */
static void check_reference(cfxi_verifier *v, const cfx_node *n, const cfx_ref *ref)
{
    if (ref->kind != CFXI_REF_NAME)
        return;
    const cfx_str *name = ref->name;
    const cfx_ref **fine = &v->fine[((uintptr_t)ref >> 4) % CFXI_FINE_REFS];
    if (*fine == ref)
        return;
    const bool pasted = strncmp(name->data, "torch.", 6) == 0;  /* others become globals */
    if ((v->strict || pasted) && !cfxi_ir_is_type_text(name->data, name->size))
        cfxi_ir_finding(v, n, "'%.80s' is not the name of a function or type; use identifiers with "
                        "dots between them", name->data);
    else if (cfx_name_runs_code(name->data, name->size))
        cfxi_ir_finding(v, n, "'%.80s' can run code or reach files, and a graph from a file may "
                        "not name it; set the object itself", name->data);
    else
        *fine = ref;
}

/* The strict verifier takes only what can be a parameter; `for` and `a.b` are refused by Python. */
static void check_parameter(cfxi_verifier *v, const cfx_node *n, const cfx_str *name)
{
    const size_t stars = strspn(name->data, "*");
    const char *word = name->data + stars;
    if (cfxi_base_is_python_parameter(name->data, name->size) ||
        (!v->strict && stars <= 2 && (cfxi_base_is_keyword(word, name->size - stars) ||
                                      cfxi_base_is_python_path(word, name->size - stars))))
        return;
    cfxi_ir_finding(v, n, "'%.80s' cannot be the name of a parameter; set the target of the "
                    "placeholder to an identifier", name->data);
}

static void check_target(cfxi_verifier *v, const cfx_node *n)
{
    const cfx_ref *ref = n->callee->ref;
    if (n->op == CFX_OP_CALL_FUNCTION)
        check_reference(v, n, ref);
    else if (ref->kind != CFXI_REF_NAME)
        cfxi_ir_finding(v, n, "the target of a %s must be a name, not an object; set its target",
                        cfx_opcode_name((cfx_opcode)n->op));
    else if (n->op == CFX_OP_PLACEHOLDER)
        check_parameter(v, n, ref->name);
}

/* ---- arguments ----------------------------------------------------------------------------- */

/* The strict verifier does not trust order labels: it numbers the nodes. */
static bool comes_before(const cfxi_verifier *v, const cfx_node *a, const cfx_node *b)
{
    return v->strict ? a->mark < b->mark : cfx_node_before(a, b);
}

static bool is_gone(const cfxi_verifier *v, const cfx_node *n)
{
    return v->strict ? !cfxi_ir_is_listed(v, n) : cfxi_ir_node_erased(n);
}

static void check_node_arg(cfxi_verifier *v, const cfx_node *n, const cfx_node *arg)
{
    const char *name = arg->name ? arg->name->data : "?";
    const char *user = n->name->data;
    if (arg->graph != v->graph)
        cfxi_ir_finding(v, n,
                        "Argument '%.100s' of Node '%.100s' does not belong to this Graph, but "
                        "was used as an argument! Copy it into this graph and use the copy",
                        name, user);
    else if (is_gone(v, arg))
        cfxi_ir_finding(v, n, "Argument '%.100s' of Node '%.100s' was erased; replace it", name,
                        user);
    else if (!comes_before(v, arg, n))
        cfxi_ir_finding(v, n, "Argument '%.100s' of Node '%.100s' was used before it has been "
                        "defined! Please check that Nodes in the graph are topologically ordered",
                        name, user);
}

static void check_leaf(cfxi_verifier *v, const cfx_node *n, cfx_value value)
{
    if (value.kind == CFX_KIND_NODE) {
        check_node_arg(v, n, value.as.node);
    } else if (value.kind == CFX_KIND_GRAPH && value.as.ref->region->parent != v->graph) {
        cfxi_ir_finding(v, n, "a region among its arguments belongs to another graph; clone it");
    } else if (value.kind == CFX_KIND_INVALID || value.kind >= CFX_KIND_COUNT) {
        cfxi_ir_finding(v, n, "an argument is invalid; set its arguments again");
    } else if (value.kind == CFX_KIND_HOST) {
        check_reference(v, n, value.as.ref);
    }
}

static void check_items(cfxi_verifier *v, const cfx_node *n, const cfx_seq *seq)
{
    uint32_t i = 0;
    for (; seq && i < seq->size && !cfxi_ir_is_seq(seq->items[i]); i++)
        check_leaf(v, n, seq->items[i]);
    if (!seq || i == seq->size)
        return;
    cfxi_walk w;
    cfxi_ir_walk_begin(&w, v->graph->allocator);
    cfxi_ir_walk_items(&w, CFX_KIND_TUPLE, seq->items + i, seq->size - i);
    for (cfx_value value; cfxi_ir_walk_leaf(&w, &value);)
        check_leaf(v, n, value);
    if (cfxi_ir_walk_end(&w, NULL) != CFX_OK)
        cfxi_ir_verify_nomem(v);
}

static void check_args(cfxi_verifier *v, const cfx_node *n)
{
    check_items(v, n, n->args);
    check_items(v, n, n->kwargs);
    if (n->ext && n->ext->type.kind == CFX_KIND_HOST)
        check_reference(v, n, n->ext->type.as.ref);
    for (uint32_t i = 0; n->kwargs && i < n->kwargs->size; i += 2)
        if (n->kwargs->items[i].kind != CFX_KIND_STR)
            cfxi_ir_finding(v, n, "a key of its kwargs is a %s; keys must be strings",
                            cfx_kind_name((cfx_kind)n->kwargs->items[i].kind));
}

/* ---- order of the opcodes ------------------------------------------------------------------ */

static void check_opcodes(cfxi_verifier *v)
{
    const cfx_node *body = NULL;
    const cfx_node *output = NULL;
    for (const cfx_node *n = v->graph->root.next; n != &v->graph->root; n = n->next) {
        if (output)
            cfxi_ir_finding(v, n, "it comes after the output %%%s; move or erase it",
                            output->name->data);
        if (n->op == CFX_OP_PLACEHOLDER && body)
            cfxi_ir_finding(v, n, "this placeholder comes after %%%s; placeholders must come first",
                            body->name->data);
        if (n->op == CFX_OP_OUTPUT && cfx_node_num_args(n) != 1)
            cfxi_ir_finding(v, n, "an output must have one argument, not %zu",
                            cfx_node_num_args(n));
        if (n->op == CFX_OP_OUTPUT && !output)
            output = n;
        if (n->op != CFX_OP_PLACEHOLDER && !body)
            body = n;
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void check_node(cfxi_verifier *v, cfx_node *n)
{
    if (n->op >= CFX_OPCODE_COUNT || !n->callee || !n->name) {
        cfxi_ir_finding(v, n, "it has no valid opcode, target or name: the graph is corrupt");
        return;
    }
    check_name(v, n);
    check_target(v, n);
    check_args(v, n);
    if (v->strict)
        cfxi_ir_verify_inputs(v, n);
    cfxi_ir_verify_regions(v, n);
}

/* Scratch for matching uses, one number for each node and one for each edge of a node. */
static bool make_scratch(cfxi_verifier *v)
{
    size_t bytes = v->graph->size * 2 * sizeof *v->slot;
    v->slot = cfxi_base_alloc(v->graph->allocator, bytes);
    if (!v->slot) {
        cfxi_ir_verify_nomem(v);
        return false;
    }
    memset(v->slot, 0, bytes);
    v->left = v->slot + v->graph->size;
    return true;
}

/* Asks the host for the names of functions, where operators are told by them, before marks are in
 * use: its code may check this very graph. */
static void ask_operators(cfx_graph *g)
{
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next)
        if (n->op < CFX_OPCODE_COUNT && n->callee)
            cfxi_ir_node_form(n);
}

static void check_graph(cfxi_verifier *v)
{
    cfx_graph *g = v->graph;
    if (v->strict && (!cfxi_ir_verify_list(v) || !make_scratch(v)))
        return;
    if (v->strict) {
        ask_operators(g);
        v->stamp = cfxi_ir_graph_number(g);
    }
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next)
        check_node(v, n);
    if (v->strict) {
        check_opcodes(v);
        cfxi_ir_verify_users(v);
        cfxi_ir_verify_callees(v);
    }
    if (v->strict)
        cfxi_base_free(g->allocator, v->slot, g->size * 2 * sizeof *v->slot);
    cfx_node_map_free(v->names);
}

/* Regions are frozen with the graph that they are in. */
static cfx_status check_all(cfx_graph *g, bool strict, cfx_finding_fn *report, void *ctx,
                            cfx_error *err)
{
    cfx_status status = CFX_OK;
    cfxi_region_walk regions;
    cfxi_ir_regions_begin(&regions, g);
    cfxi_ir_graph_freeze(g);
    for (cfx_graph *at; (at = cfxi_ir_regions_next(&regions)) != NULL;) {
        cfxi_verifier v = {.graph = at, .report = report, .ctx = ctx, .strict = strict,
                           .err = status == CFX_OK ? err : NULL};
        check_graph(&v);
        status = status == CFX_OK ? v.status : status;
    }
    cfxi_ir_graph_thaw(g);
    return status;
}

cfx_status cfx_graph_verify(cfx_graph *g, cfx_finding_fn *report, void *ctx, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    return check_all(g, true, report, ctx, err);
}

cfx_status cfx_graph_lint(cfx_graph *g, cfx_finding_fn *report, void *ctx, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(g, "graph", err));
    return check_all(g, false, report, ctx, err);
}
