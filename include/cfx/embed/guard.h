/* For language bindings and back ends; may change between versions.
 *
 * embed/guard.h - makes guards from the numbers of a graph.
 */
#ifndef CFX_EMBED_GUARD_H
#define CFX_EMBED_GUARD_H

#include <cfx/guard.h>
#include <cfx/runtime.h>
#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cfx_guard_relation {
#define CFX_GUARD_RELATION(id, sign, opposite) CFX_GUARD_##id,
#include <cfx/guard.def>
#undef CFX_GUARD_RELATION
    CFX_GUARD_RELATION_COUNT
} cfx_guard_relation;

/* A question that was asked while a graph was recorded: two numbers of the graph (nodes, or
 * constants) compared like this gave this truth. */
typedef struct cfx_question {
    cfx_guard guard;  /* how it is told; `line` is borrowed until it is settled */
    cfx_guard_relation relation;
    cfx_value left;
    cfx_value right;
    bool truth;
    bool settled;     /* set by cfx_guards_settle: nothing in the graph needs to check it */
} cfx_question;

/* An input of the graph, as it was in the run that was recorded. */
typedef struct cfx_guard_input {
    cfx_datum number;      /* INT or FLOAT; INVALID: it is a tensor */
    cfx_dtype dtype;
    size_t ndim;
    const int64_t *sizes;
    const bool *fixed;     /* sizes that are the same in each call; NULL: none */
} cfx_guard_input;

typedef struct cfx_settle_options {
    const cfx_guard_input *inputs;   /* one for each placeholder, and each input of the set */
    const cfx_module_tree *modules;  /* that the graph calls and reads; NULL: none */
    cfx_runtime *rt;                 /* for shape rules */
    /* A new reference to a tensor with the type and sizes of the one that the graph reads at `path`
     * (it may be abstract); NULL if there is none, or with *err set. NULL: nothing is known of
     * them. */
    cfx_tensor *(*tensor)(void *ctx, const char *path, cfx_error *err);
    void *ctx;
} cfx_settle_options;

/* Adds the questions that the inputs decide to the set and marks them settled, in order. Sizes of
 * tensors inside of the graph are told by those of the inputs with the shape rules of operators, as
 * far as these are known; what follows an operator without a row, or depends on data, stays
 * unsettled; so does what broadcasting makes of sizes that may be 1.
 *
 * What always holds is settled and not added; likewise what follows from the other guards. Guards
 * that the set had before take part. A question whose answer cannot have been that in the run that
 * was recorded stays unsettled. The graph is not changed. Fails with CFX_E_VALUE if the set is for
 * another number of inputs than the graph has, CFX_E_NOMEM, CFX_E_HOST. */
CFX_API cfx_status cfx_guards_settle(cfx_guards *guards, cfx_graph *g, cfx_question *questions,
                                     size_t n, const cfx_settle_options *options, cfx_error *err);

/* Erases what nobody uses of the numbers that the graph computes or asks tensors for, and of the
 * attributes that it reads. `inputs` tells of each placeholder whether it is a number; NULL: none
 * is. */
CFX_API cfx_status cfx_graph_drop_numbers(cfx_graph *g, const bool *inputs, bool *changed,
                                          cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
