/* trace_facts.c - what a trace knows of its nodes: types and shapes, if those of the inputs were
 * given; and always which of them are numbers, because Python has other functions for those.
 *
 * A fact is a datum that stands for what the node gives when it runs: an abstract tensor, a number.
 */
#include "capture_impl.h"

#include "runtime/python_impl.h"

typedef struct cfxi_fact {
    cfx_datum known;  /* retained */
} cfxi_fact;

/* ---- the table ----------------------------------------------------------------------------- */

cfx_status cfxi_capture_fact_set(cfx_at at, const cfx_node *n, cfx_datum known)
{
    cfxi_trace *t = at.scope->trace;
    const cfx_allocator *allocator = at.scope->allocator;
    cfxi_fact *f = cfxi_base_pointers_get(&t->facts, n);  /* of one whose memory this one has now */
    if (!f && known.kind == CFX_DATUM_INVALID)
        return CFX_OK;
    if (f) {
        cfx_datum_release(f->known);
        f->known = cfx_datum_retain(known);
        return CFX_OK;
    }
    f = cfxi_base_alloc(allocator, sizeof *f);
    if (f)
        *f = (cfxi_fact){cfx_datum_retain(known)};
    if (f && cfxi_base_pointers_set(&t->facts, n, f, allocator))
        return CFX_OK;
    if (f)
        cfx_datum_release(f->known);
    cfxi_base_free(allocator, f, sizeof *f);
    return cfx_scope_fail_at(at, CFX_E_NOMEM, "out of memory");
}

cfx_datum cfxi_capture_fact_of(const cfxi_trace *t, const cfx_node *n)
{
    const cfxi_fact *f = cfxi_base_pointers_get(&t->facts, n);
    return f ? f->known : cfx_datum_invalid();
}

void cfxi_capture_facts_free(cfxi_trace *t, const cfx_allocator *allocator)
{
    size_t at = 0;
    for (cfxi_fact *f; (f = cfxi_base_pointers_next(&t->facts, &at)) != NULL;)
        cfx_datum_release(f->known);
    cfxi_base_pointers_free_all(&t->facts, sizeof(cfxi_fact), allocator);
}

/* ---- numbers ------------------------------------------------------------------------------- */

cfx_datum cfxi_capture_some_number(void) { return cfxi_rt_py_unknown(CFX_DATUM_FLOAT); }

static bool is_number(const cfxi_trace *t, cfx_value v)
{
    if (v.kind == CFX_KIND_NODE)
        return cfxi_rt_is_number(cfxi_capture_fact_of(t, v.as.node));
    return v.kind == CFX_KIND_BOOL || v.kind == CFX_KIND_INT || v.kind == CFX_KIND_FLOAT ||
           v.kind == CFX_KIND_COMPLEX;
}

/* What a region gives. */
static cfx_value result_of(cfx_value region)
{
    cfx_graph *g = cfx_value_graph(region);
    const cfx_node *last = g ? cfx_graph_last(g) : NULL;
    return last && last->op == CFX_OP_OUTPUT ? cfx_node_arg(last, 0) : cfx_value_invalid();
}

static bool is_shape(const cfx_node *n, cfx_operator op)
{
    const cfx_value name =
        op == CFX_OPID_getattr ? cfx_node_operand(n, "name") : cfx_value_invalid();
    const char *text = name.kind == CFX_KIND_STR ? cfx_value_text(name, NULL) : NULL;
    return op == CFX_OPID_size || (text && strcmp(text, "shape") == 0);
}

/* Whether item k of what a node gives is a number: what a loop carries, if it begins as one and its
 * body gives one; what both branches give; any size of a tensor. */
static bool item_is_number(const cfxi_trace *t, const cfx_node *n, cfx_value k)
{
    const cfx_operator op = cfx_node_operator(n);
    if (op == CFX_OPID_while_loop || op == CFX_OPID_for_loop)
        return is_number(t, cfxi_ir_seq_item(cfx_node_arg(n, 2), k)) &&
               is_number(t, cfxi_ir_seq_item(result_of(cfx_node_arg(n, 1)), k));
    if (op == CFX_OPID_cond)
        return is_number(t, cfxi_ir_seq_item(result_of(cfx_node_arg(n, 1)), k)) &&
               is_number(t, cfxi_ir_seq_item(result_of(cfx_node_arg(n, 2)), k));
    return is_shape(n, op);
}

static bool takes_number(const cfxi_trace *t, const cfx_node *call)
{
    const cfx_value from = cfx_node_arg(call, 0);
    const cfx_value at = cfx_node_arg(call, 1);
    if (at.kind != CFX_KIND_INT)
        return from.kind == CFX_KIND_NODE && at.kind == CFX_KIND_NODE &&
               is_shape(from.as.node, cfx_node_operator(from.as.node));
    return from.kind == CFX_KIND_NODE ? item_is_number(t, from.as.node, at)
                                      : is_number(t, cfxi_ir_seq_item(from, at));
}

cfx_datum cfxi_capture_number_of_call(const cfxi_trace *t, cfx_operator op, const cfx_node *call)
{
    bool yes = false;
    if (op == CFX_OPID_getitem)
        yes = takes_number(t, call);
    else if (op == CFX_OPID_cond)
        yes = is_number(t, result_of(cfx_node_arg(call, 1))) &&
              is_number(t, result_of(cfx_node_arg(call, 2)));
    else if (op == CFX_OPID_size || op == CFX_OPID_stride)
        yes = cfx_node_operand(call, "dim").kind == CFX_KIND_INT;
    return yes ? cfxi_capture_some_number() : cfx_datum_invalid();
}
