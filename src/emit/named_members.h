/* named_members.h - which modules, parameters and buffers a graph names: what a complete program
 * has to make before it can run. For the generators that write such programs. (named_members.c) */
#ifndef CFXI_NAMED_MEMBERS_H
#define CFXI_NAMED_MEMBERS_H

#include "ir/graph_impl.h"

#include <cfx/tree.h>

typedef enum cfxi_part_kind {
    CFXI_PART_HOLDER,  /* a module that is not called: "layers" of "layers.0" */
    CFXI_PART_MODULE,  /* one that is called: its constructor makes all that is below it */
    CFXI_PART_VALUE    /* what a get_attr reads */
} cfxi_part_kind;

typedef struct cfxi_part {
    cfxi_part_kind kind;
    struct cfxi_part *parent;  /* NULL: the root */
    const char *path;          /* "layers.0", terminated */
    const char *name;          /* "0": the end of `path` */
    const cfx_node *node;      /* the first that names it */
    uint32_t hash;             /* of its path */
    const char *label;         /* what the generator calls it; NULL at first */
    size_t known;              /* the generator's: the last function that has it as a variable */
    const char *store;         /* where it is to be found, if not under its name; NULL at first */
    const struct cfxi_part *twin;  /* an earlier one that is the same module or tensor, */
    const char *inside;            /* or that has it, under this name; "" if it is it */
    struct cfxi_tie *ties;         /* parameters of a module that others have, too */
} cfxi_part;

/* A parameter of a called module which an earlier part is, or has: a weight that is tied. */
typedef struct cfxi_tie {
    struct cfxi_tie *next;
    const char *name;       /* "weight": of the module's parameter */
    const cfxi_part *twin;  /* as in a part */
    const char *inside;
} cfxi_tie;

typedef struct cfxi_parts {
    const cfx_allocator *allocator;
    cfx_graph *graph;
    cfxi_arena arena;
    cfxi_hash_set table;  /* by path */
    cfxi_vec list;     /* of cfxi_part *, parents first, else in the order of their first use */
} cfxi_parts;

/* Of `g` and its regions. What is below a called module is not listed. Free it in any case. */
cfx_status cfxi_emit_parts_collect(cfxi_parts *parts, cfx_graph *g, const cfx_module_tree *modules,
                                   cfx_error *err);
void cfxi_emit_parts_free(cfxi_parts *parts);
/* The part at path[:size], or NULL. */
cfxi_part *cfxi_emit_parts_find(const cfxi_parts *parts, const char *path, size_t size);

/* Whether the module at a path is training (as it is if nobody knows), and whether the tensor there
 * is a buffer, not a parameter (as it is not if nobody knows). */
cfx_status cfxi_emit_is_training(const cfx_module_tree *modules, cfx_graph *g, const char *path,
                                 bool *answer, cfx_error *err);
cfx_status cfxi_emit_is_buffer(const cfx_module_tree *modules, cfx_graph *g, const char *path,
                               bool *answer, cfx_error *err);

static inline cfxi_part *cfxi_emit_part_at(const cfxi_parts *parts, size_t i)
{
    return ((cfxi_part **)parts->list.data)[i];
}

#endif
