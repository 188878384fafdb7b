/* quantize_impl.h - what the files of src/quantize share. */
#ifndef CFXI_QUANTIZE_IMPL_H
#define CFXI_QUANTIZE_IMPL_H

#include "ir/graph_impl.h"
#include "runtime/named_impl.h"

#include <cfx/quantize.h>

/* Whether two values become integers in the same way. (observer.c) */
bool cfxi_quantize_same_spec(const cfx_quantize_spec *a, const cfx_quantize_spec *b);

/* The node that alone reads `n`, in one place; NULL if there is none. */
static inline cfx_node *cfxi_quantize_only_user(const cfx_node *n)
{
    return n->n_users == 1 && n->users->count == 1 ? n->users->user : NULL;
}

/* ---- which configuration a node has (rules.c, rules_node.c) --------------------------------- */

/* What is called, and where: all that a rule looks at. */
typedef struct cfxi_quantize_call {
    cfx_opcode op;       /* CALL_FUNCTION, CALL_METHOD, CALL_MODULE or GET_ATTR */
    const char *like;    /* what it computes, if that is not the row of `type`; or NULL */
    const char *type;    /* the function, the method, or the module's class; NULL: not known */
    const char *path;    /* CALL_MODULE: the module's; else of the module whose forward calls, or
                            has the attribute. "" is the root */
    const char *around;  /* the class of that module, not for CALL_MODULE; NULL: not known */
    size_t index;        /* which call of `type` it is directly in its module */
} cfxi_quantize_call;

/* The configuration of a call, borrowed from the rules; NULL if it stays float. Fails with
 * CFX_E_NOMEM, or as the matcher of regular expressions does. */
cfx_status cfxi_quantize_rules_find(const cfx_qrules *r, const cfxi_quantize_call *call,
                                    const cfx_qconfig **config, cfx_error *err);
/* Whether a type has a rule of its own, and what it says (NULL: float). The classes of calls that
 * count as one, as fused modules do, should agree on it; the first of them is the call's type. */
cfx_status cfxi_quantize_rules_of_type(const cfx_qrules *r, const char *type, bool *has,
                                       const cfx_qconfig **config, cfx_error *err);

/* The operator that a type computes, by its name; NONE if that is not known. */
cfx_operator cfxi_quantize_type_operator(const char *type);
/* As cfxi_quantize_rules_of_type for what a node calls, by its target and the classes of `modules`
 * (NULL: not known). */
cfx_status cfxi_quantize_rules_of_node(const cfx_qrules *r, const cfx_node *n,
                                       const cfx_module_tree *modules, bool *has,
                                       const cfx_qconfig **config, cfx_error *err);

/* Counts the calls of each type in each module: the numbers that cfx_qrules_set_order has. One
 * counter serves one walk over a graph, in its order. */
typedef cfxi_named cfxi_quantize_order;
static inline cfxi_quantize_order cfxi_quantize_order_new(const cfx_allocator *allocator)
{
    return cfxi_rt_named_new(cfxi_base_allocator(allocator));
}
static inline void cfxi_quantize_order_free(cfxi_quantize_order *order)
{
    cfxi_rt_named_free(order);
}
/* Sets call->index, and counts the call. Methods and attributes are not counted. */
cfx_status cfxi_quantize_order_count(cfxi_quantize_order *order, cfxi_quantize_call *call,
                                     cfx_error *err);

/* All of it for a node: what it calls and where, by its target, its module stack and the classes of
 * `modules` (NULL: not known), and what it is `like` (or NULL); counts it in `order`; sets *config
 * as cfxi_quantize_rules_find does. Placeholders and outputs have no configuration. */
cfx_status cfxi_quantize_rules_node(const cfx_qrules *r, const cfx_node *n, const char *like,
                                    const cfx_module_tree *modules, cfxi_quantize_order *order,
                                    const cfx_qconfig **config, cfx_error *err);

#endif
