/* effects_impl.h - the one model of what a call does besides returning its result.
 *
 * Every pass asks it. It knows operators by their rows and the arguments of the call, modules by
 * the rows of their classes, their settings and `training`, other functions by their names and by
 * what the host says. What a call does to its arguments: cfxi_analysis_node_touches; which values
 * share memory: alias_impl.h.
 *
 * Nothing may change the modules while a model is in use, except by storing new attributes.
 */
#ifndef CFXI_EFFECTS_IMPL_H
#define CFXI_EFFECTS_IMPL_H

#include "analysis_impl.h"

/* What a call does: flags or'ed. */
typedef enum cfxi_does {
    CFXI_DRAWS = 1,             /* draws random numbers */
    CFXI_REPORTS = 2,           /* prints, reads, or fails on purpose */
    CFXI_WRITES_ARGUMENTS = 4,  /* or what they share memory with */
    CFXI_WRITES_STATE = 8,      /* the state of the module that is called */
    CFXI_WRITES_ALL = 16,       /* its arguments, and anything that is visible outside the graph */
    CFXI_UNKNOWN = 32,          /* nothing is known about what is called */
    CFXI_KEPT = 64              /* dead-code elimination keeps it, also where it is to be like
                                 * torch.fx: it does so itself, or the writes are to state */
} cfxi_does;

enum {
    CFXI_WRITES_ANY = CFXI_WRITES_ARGUMENTS | CFXI_WRITES_STATE | CFXI_WRITES_ALL
};

/* What is known about the module at a path, and all modules below it. */
typedef struct cfxi_module_facts {
    char *path;
    size_t size;             /* of the path */
    uint32_t hash;
    cfx_operator op;         /* as cfx_node_operator_of says */
    unsigned does;
    bool statistics;         /* it has running statistics, which it reads or writes */
    bool state_unnamed;      /* it writes to state that `written` does not name */
    cfx_buffer written;      /* paths of tensors that it writes to, each terminated */
    cfxi_vec memories;       /* of const void *: their memory, if the tree knows it */
} cfxi_module_facts;

typedef struct cfxi_effect_model {
    const cfx_module_tree *modules;      /* or NULL */
    bool strict;                         /* what is unknown may do anything */
    const char *prefix;                  /* where the paths of the graph begin; NULL: at the root */
    unsigned depth;                      /* how many captured modules lead to it */
    const cfx_allocator *allocator;      /* set when it is first needed, */
    cfxi_hash_key key;                   /* and this with it: of paths in `known` */
    cfxi_hash_set known;                 /* of cfxi_module_facts *, by path */
} cfxi_effect_model;

/* {.modules = ..., .strict = ...} begins a model. */
void cfxi_analysis_model_end(cfxi_effect_model *m);

/* *does becomes what a node does, regions included. Asks the host, with the graph frozen. */
cfx_status cfxi_analysis_does(cfxi_effect_model *m, cfx_node *n, unsigned *does, cfx_error *err);
/* The same as a cfx_effect. */
cfx_status cfxi_analysis_effect(cfxi_effect_model *m, cfx_node *n, cfx_effect *effect,
                                cfx_error *err);
cfx_effect cfxi_analysis_kind(const cfx_node *n, unsigned does);

/* Whether dead-code elimination must keep a call that does this. `like_torch_fx`: unless all it
 * does is to write to its arguments, and torch.fx drops it. */
bool cfxi_analysis_must_stay(unsigned does, bool like_torch_fx);

/* cfx_node_operator_of, remembered for modules. */
cfx_status cfxi_analysis_model_operator(cfxi_effect_model *m, const cfx_node *n, cfx_operator *op,
                                        cfx_error *err);
/* *facts becomes what is known about the module at `path`: borrowed until the model ends. Found out
 * once for each path; `g` holds the values of attributes meanwhile. (module_effect.c) */
cfx_status cfxi_analysis_module_facts(cfxi_effect_model *m, cfx_graph *g, const char *path,
                                      const cfxi_module_facts **facts, cfx_error *err);
/* *does becomes what the functions and methods of the graph that was captured from the module at
 * `path` do that is visible outside of it; not what the modules do that it calls. (memory.c) */
cfx_status cfxi_analysis_graph_does(const cfxi_effect_model *m, cfx_graph *g, const char *path,
                                    unsigned *does, cfx_error *err);

/* Calls `memory` of the tree for a path of the graph; NULL if nothing is known.
 * (module_effect.c) */
const void *cfxi_analysis_memory_at(const cfxi_effect_model *m, const char *path);

static inline const cfx_library *cfxi_analysis_model_library(const cfxi_effect_model *m)
{
    return cfxi_analysis_library_of(m->modules);
}

/* As cfx_node_each_touch, for a node whose operator and doings are known; asks nothing of the host.
 * (argument_effects.c) */
cfx_status cfxi_analysis_node_touches(cfx_node *n, cfx_operator op, const cfx_library *library,
                                      unsigned does, cfx_touch_fn *fn, void *ctx);
/* Whether it is not known what such a call shares, or writes to. (argument_effects.c) */
bool cfxi_analysis_is_opaque(const cfx_node *n, cfx_operator op, const cfx_library *library,
                             unsigned does);

#endif
