/* module_users_impl.h - who else calls, reads or writes the modules and tensors of a graph
 * (module_users.c). */
#ifndef CFXI_MODULE_USERS_IMPL_H
#define CFXI_MODULE_USERS_IMPL_H

#include "effects_impl.h"

typedef struct cfxi_seen_facts {
    size_t calls;  /* how many nodes call it, if it is a module */
    bool read;     /* a get_attr leads to it, or to something directly in it */
    bool written;  /* a node may write to what a get_attr reads there, or to a module's state */
} cfxi_seen_facts;

typedef struct cfxi_survey {
    cfxi_effect_model *model;
    const cfx_module_tree *modules;  /* of the model */
    const cfx_allocator *allocator;
    cfxi_pointers seen;  /* memory of a tensor or identity of a module -> cfxi_seen_facts */
    bool wrote_any;      /* a node may write to anything that is visible outside the graph */
} cfxi_survey;

/* Looks at the graph and its regions. Linear in nodes and edges, except that the effect of an
 * operator is found by looking at its regions. End it even if it fails. */
cfx_status cfxi_analysis_survey_begin(cfxi_survey *s, cfx_graph *g, cfxi_effect_model *model,
                                      cfx_error *err);
void cfxi_analysis_survey_end(cfxi_survey *s);

/* What is known of the object at `path`: nothing, if there is none. */
cfxi_seen_facts cfxi_analysis_survey_find(const cfxi_survey *s, const char *path);
/* Whether the module at `path` is in one that is called as a whole; -1 if memory is out. */
int cfxi_analysis_survey_is_inside(const cfxi_survey *s, const char *path);
/* A new object stands at `path` now, and one node calls it. */
cfx_status cfxi_analysis_survey_note_call(cfxi_survey *s, const char *path, cfx_error *err);

#endif
