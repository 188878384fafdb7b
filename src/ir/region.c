/* region.c - operators that take regions: whether those of a node fit. */
#include "verify_impl.h"

/* ---- whether the regions fit --------------------------------------------------------------- */

/* In the operator table these are the rows with a Graph among their parameters; this layer needs
 * no more of it. */
static const cfxi_region_form forms[] = {
    {"cfx.cond", {"pred", "then", "otherwise", "operands"}, 1, 2, 3, 0, -1},
    {"cfx.while_loop", {"test", "body", "state"}, 0, 2, 2, 0, 1},
    {"cfx.for_loop", {"count", "body", "state"}, 1, 1, 2, 1, 1},
};

/* "cfx.cond", and "cfx.ops.cond" in a lowered graph. */
static const cfxi_region_form *find_form(const cfx_str *name)
{
    for (size_t i = 0; name && i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, name->data) == 0 ||
            (strncmp(name->data, "cfx.ops.", 8) == 0 &&
             strcmp(forms[i].name + 4, name->data + 8) == 0))
            return &forms[i];
    return NULL;
}

/* The answer is kept with the callee: 2 + the form, 1 none; 0 says that nobody has asked yet. */
const cfxi_region_form *cfxi_ir_node_form(const cfx_node *n)
{
    cfxi_callee *callee = n->callee;
    if (n->op != CFX_OP_CALL_FUNCTION)
        return NULL;
    if (!callee->form) {
        const cfx_str *name = cfxi_ir_ref_qualified_name(n->graph, callee->ref, NULL);
        const cfxi_region_form *form = find_form(name);
        callee->form = (uint8_t)(form ? 2 + (form - forms) : 1);
    }
    return callee->form > 1 ? &forms[callee->form - 2] : NULL;
}

cfx_value cfxi_ir_region_arg(const cfxi_region_form *form, const cfx_node *n, size_t i)
{
    const cfx_value v = cfx_node_arg(n, i);
    return v.kind != CFX_KIND_INVALID ? v : cfx_node_kwarg(n, form->parameters[i]);
}

static size_t count_placeholders(const cfx_graph *g)
{
    size_t count = 0;
    for (const cfx_node *n = g->root.next; n != &g->root; n = n->next)
        count += n->op == CFX_OP_PLACEHOLDER;
    return count;
}

/* How many values a region returns, or -1 if that is not written down. */
static long count_results(const cfx_graph *g)
{
    const cfx_node *last = g->root.prev;
    cfx_value v = last->op == CFX_OP_OUTPUT ? cfx_node_arg(last, 0) : cfx_value_invalid();
    return v.kind == CFX_KIND_TUPLE ? (long)v.as.seq->size : -1;
}

static void check_inputs(cfxi_verifier *v, const cfx_node *n, const cfxi_region_form *form,
                         unsigned i, size_t operands)
{
    size_t has = count_placeholders(cfxi_ir_region_arg(form, n, i).as.ref->region);
    size_t needs = operands + form->extra_inputs;
    if (has != needs)
        cfxi_ir_finding(v, n,
                        "its region '%s' has %zu placeholders, but is called with %zu values; "
                        "give it one placeholder for each",
                        form->parameters[i], has, needs);
}

static void check_results(cfxi_verifier *v, const cfx_node *n, const cfxi_region_form *form,
                          size_t operands)
{
    if (form->state_region >= 0) {
        unsigned i = (unsigned)form->state_region;
        long has = count_results(cfxi_ir_region_arg(form, n, i).as.ref->region);
        if (has >= 0 && (size_t)has != operands)
            cfxi_ir_finding(v, n,
                            "its region '%s' returns %ld values, but the state has %zu; return "
                            "the whole state",
                            form->parameters[i], has, operands);
        return;
    }
    long a = count_results(cfxi_ir_region_arg(form, n, form->first).as.ref->region);
    long b = count_results(cfxi_ir_region_arg(form, n, form->first + 1).as.ref->region);
    if (a >= 0 && b >= 0 && a != b)
        cfxi_ir_finding(v, n, "its regions return %ld and %ld values; both must return the same "
                        "number", a, b);
}

static bool check_kinds(cfxi_verifier *v, const cfx_node *n, const cfxi_region_form *form)
{
    bool good = true;
    for (unsigned i = 0; form->parameters[i]; i++) {
        cfx_value value = cfxi_ir_region_arg(form, n, i);
        bool region = i >= form->first && i < form->first + form->regions;
        if (value.kind == CFX_KIND_INVALID) {
            cfxi_ir_finding(v, n, "its argument '%s' is missing", form->parameters[i]);
            good = false;
        } else if (region && value.kind != CFX_KIND_GRAPH) {
            cfxi_ir_finding(v, n, "its argument '%s' is a %s; it must be a region",
                            form->parameters[i], cfx_kind_name((cfx_kind)value.kind));
            good = false;
        }
    }
    return good;
}

void cfxi_ir_verify_regions(cfxi_verifier *v, const cfx_node *n)
{
    const cfxi_region_form *form = cfxi_ir_node_form(n);
    if (!form || !check_kinds(v, n, form))
        return;
    cfx_value operands = cfxi_ir_region_arg(form, n, form->operands);
    size_t count;
    cfx_value_items(operands, &count);
    if (operands.kind != CFX_KIND_TUPLE && operands.kind != CFX_KIND_LIST) {
        if (operands.kind != CFX_KIND_NODE)  /* a node may stand for any number of values */
            cfxi_ir_finding(v, n, "its argument '%s' is a %s; it must be a tuple",
                            form->parameters[form->operands],
                            cfx_kind_name((cfx_kind)operands.kind));
        return;
    }
    for (unsigned i = form->first; i < form->first + form->regions; i++)
        check_inputs(v, n, form, i, count);
    check_results(v, n, form, count);
}
