/* For language bindings and back ends; may change between versions.
 *
 * embed/host.h - callbacks to the embedding language.
 *
 * A host lets a graph hold objects that the core knows nothing about (Python functions, classes,
 * tensors). The core holds them by pointer, compares them by identity and calls this table for
 * everything else. A C program needs no host: functions are then known by their names.
 *
 * A callback that fails returns CFX_E_HOST, and the host keeps its own exception: the core only
 * unwinds and leaves the graph unchanged. `release` is called only when the graph is consistent,
 * never in the middle of an edit, so it may run arbitrary code. Entries marked (optional) may be
 * NULL.
 */
#ifndef CFX_EMBED_HOST_H
#define CFX_EMBED_HOST_H

#include <cfx/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The purpose of a text: torch.fx spells an object differently in each context. */
typedef enum cfx_show {
    CFX_SHOW_ARG,    /* an argument in str(graph): str(object), or its own spelling */
    CFX_SHOW_STR,    /* str(object): the returned value, a default, a target in a table */
    CFX_SHOW_TYPE,   /* the type of a node ("torch.Tensor") */
    CFX_SHOW_TARGET  /* the target of a call_function ("operator.add") */
} cfx_show;

struct cfx_host {
    void (*retain)(void *ctx, void *object);
    void (*release)(void *ctx, void *object);

    /* Writes repr(object). */
    cfx_status (*repr)(void *ctx, void *object, cfx_sink out, cfx_error *err);

    /* Writes `object` as torch.fx's printers show it in the context `where`. Not called for targets
     * with a known qualified name. (optional; default: the repr, or for types the qualified
     * name) */
    cfx_status (*show)(void *ctx, void *object, cfx_show where, cfx_sink out, cfx_error *err);

    /* Writes the dotted name by which `object` can be found again ("torch.nn.functional.relu"), or
     * fails with CFX_E_KEY if it has none. The core may continue without the name, so the failure
     * must leave nothing but the status (no pending exception). */
    cfx_status (*qualified_name)(void *ctx, void *object, cfx_sink out, cfx_error *err);

    /* Finds the object of a qualified name: a new reference in *object, or NULL with CFX_OK if the
     * host does not know it. Must not execute code from the name. (optional) */
    cfx_status (*resolve)(void *ctx, const char *name, void **object, cfx_error *err);

    /* Writes the short name from which a node that calls `object` gets its name ("relu"). */
    cfx_status (*name_hint)(void *ctx, void *object, cfx_sink out, cfx_error *err);

    /* 1 equal, 0 different, -1 on failure. (optional; default: identity) */
    int (*equal)(void *ctx, void *a, void *b);

    /* Returns a new reference to the host's object for a region of a graph that it holds. The
     * object keeps the region alive. (optional; default: the core keeps the region alive) */
    void *(*bind_region)(void *ctx, cfx_graph *region);

    /* A node with a binding has left its graph: release what the graph held for it. Like `release`,
     * called only when the graph is consistent. (optional) */
    void (*unbind)(void *ctx, void *binding);

    /* The opcode or target of a node with a binding has changed. Must not edit the graph.
     * (optional) */
    void (*retarget)(void *ctx, cfx_node *n);

    /* A node with a binding now returns a different tuple, or the output of a region does: discard
     * what the host has cached about its value. Must not edit the graph. (optional) */
    void (*outdate)(void *ctx, cfx_node *n);

    /* Whether a call of this node has an effect besides its result, as far as the host knows: 1, 0,
     * or -1 on failure. The model of effects (effect.h) adds what it knows itself. Called for
     * call_function with a host target, and for call_module where no tree of modules is given.
     * (optional; default: no effect) */
    int (*is_impure)(void *ctx, cfx_node *n);

    /* If `object` is a number of another class than the language's own (numpy.float64), *number
     * becomes that BOOL, INT or FLOAT; else it stays. Lowering asks for arguments. (optional) */
    cfx_status (*number)(void *ctx, void *object, cfx_value *number, cfx_error *err);

    void *ctx;
};

/* ---- host values --------------------------------------------------------------------------- */

/* An object of the embedding language as a floating value. The graph retains the object once,
 * however often it is used. INVALID with CFX_E_TYPE if the graph has no host. */
CFX_API cfx_value cfx_value_host(cfx_graph *g, void *object, cfx_error *err);
/* The object of a HOST value: borrowed; NULL if the value is only a name. */
CFX_API void *cfx_value_object(cfx_value host);
/* The qualified name of a HOST value: borrowed. For an object the host is asked once, and the
 * answer is cached. NULL with *err set if the object has no name. */
CFX_API const char *cfx_value_host_name(cfx_graph *g, cfx_value host, cfx_error *err);

/* Calls `fn` once for each distinct host object and bound region that `g` references. Stops at the
 * first result other than 0 and returns it. */
CFX_API int cfx_graph_visit_hosts(cfx_graph *g, int (*fn)(void *object, void *ctx), void *ctx);

/* ---- bindings ------------------------------------------------------------------------------ */

/* One host pointer for each graph and each node, for the host's object that represents it.
 * Initially NULL. */
CFX_API void *cfx_graph_binding(const cfx_graph *g);
CFX_API void cfx_graph_set_binding(cfx_graph *g, void *binding);
CFX_API void *cfx_node_binding(const cfx_node *n);
CFX_API void cfx_node_set_binding(cfx_node *n, void *binding);

/* Whether args or kwargs have been assigned since the last call of this function, for hosts that
 * cache them. */
CFX_API bool cfx_node_args_changed(cfx_node *n);

#ifdef __cplusplus
}
#endif
#endif
