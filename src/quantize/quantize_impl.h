/* quantize_impl.h - what the files of src/quantize share. */
#ifndef CFXI_QUANTIZE_IMPL_H
#define CFXI_QUANTIZE_IMPL_H

#include "runtime/named_impl.h"

#include <cfx/quantize.h>

/* ---- observers ------------------------------------------------------------------------------ */

/* What was seen of one value. One thread at a time. */
typedef struct cfx_observer cfx_observer;

/* NULL with *err set: CFX_E_VALUE for a spec that contradicts itself, with the field; CFX_E_NOMEM.
 * The allocator (NULL: malloc) must outlive it. */
CFX_API cfx_observer *cfx_observer_new(const cfx_quantize_spec *spec,
                                       const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_observer_free(cfx_observer *o);  /* NULL is allowed */
CFX_API const cfx_quantize_spec *cfx_observer_spec(const cfx_observer *o);

/* Takes the elements of a tensor of floats into account, whatever its strides. Elements that are
 * not finite are counted and otherwise ignored; an empty tensor changes nothing. CFX_E_TYPE for
 * other types; CFX_E_SHAPE if the channels are not as many as before. */
CFX_API cfx_status cfx_observer_observe(cfx_observer *o, const cfx_tensor *x, cfx_error *err);
/* How many elements it has seen, and how many of them were not finite. */
CFX_API int64_t cfx_observer_seen(const cfx_observer *o);
CFX_API int64_t cfx_observer_not_finite(const cfx_observer *o);

/* As if it had also seen what `from` has, which has the same spec: that of another process or
 * thread. A moving average becomes the mean, weighted by calls. */
CFX_API cfx_status cfx_observer_merge(cfx_observer *o, const cfx_observer *from, cfx_error *err);

/* The scales (float32) and zero points (int64), of one element or one for each channel; of groups,
 * [channels, groups]. CFX_E_VALUE if nothing was observed. A channel that is constant, or 0, has a
 * scale of at least eps. */
CFX_API cfx_status cfx_observer_scales(const cfx_observer *o, cfx_tensor **scale,
                                       cfx_tensor **zero, cfx_error *err);

/* What it has seen, as tensors by name ("min_val", "max_val", "histogram", as PyTorch's observers
 * name them), and back: CFX_E_KEY, CFX_E_TYPE or CFX_E_SHAPE for what does not belong to its
 * spec. */
CFX_API cfx_state *cfx_observer_save(const cfx_observer *o, cfx_error *err);
CFX_API cfx_status cfx_observer_load(cfx_observer *o, const cfx_state *state, cfx_error *err);

/* ---- which configuration a node has (rules.c, rules_node.c) --------------------------------- */

/* What is called, and where: all that a rule looks at. */
typedef struct cfxi_quantize_call {
    cfx_opcode op;       /* CALL_FUNCTION, CALL_METHOD, CALL_MODULE or GET_ATTR */
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
 * `modules` (NULL: not known); counts it in `order`; sets *config as cfxi_quantize_rules_find does.
 * Placeholders and outputs have no configuration. */
cfx_status cfxi_quantize_rules_node(const cfx_qrules *r, const cfx_node *n,
                                    const cfx_module_tree *modules, cfxi_quantize_order *order,
                                    const cfx_qconfig **config, cfx_error *err);

#endif
