/* alias_impl.h - which values may share memory, and until when each is needed.
 *
 * Values that may share memory are in one set (union-find): by the operator table a view is in that
 * of its operand, the result of an in-place call in that of what it writes to, and a call that
 * nothing is known of joins all its arguments. A set is *outside* if something beyond the graph may
 * hold its memory: inputs, attributes, and what unknown calls had in their hands. Attributes are
 * told apart by the memory of their tensors, if the tree of modules knows it; an input may be any
 * of them.
 *
 * Not known is whether an input is a tuple: operator.add is taken to make a new tensor unless its
 * operands are seen to be something else.
 */
#ifndef CFXI_ALIAS_IMPL_H
#define CFXI_ALIAS_IMPL_H

#include "effects_impl.h"

enum { CFXI_NOBODY = UINT32_MAX };

/* Why a set is outside: flags or'ed. */
enum {
    CFXI_OUTSIDE_ATTRIBUTE = 1,  /* it is the memory of an attribute, and of no other */
    CFXI_OUTSIDE_FOREIGN = 2     /* it may be any memory that is outside */
};

/* A position, and if it leads its set, the set. */
typedef struct cfxi_alias {
    uint32_t parent;
    uint32_t next;     /* of the set, circular */
    uint32_t object;   /* the first node that is this very tensor: in-place calls return it */
    uint8_t outside;   /* CFXI_OUTSIDE_... or'ed; 0 inside */
    bool written;      /* a call may write to it: see cfxi_analysis_aliases_note_writes */
    bool returned;     /* the graph returns a member: for a pass to say */
    bool scattered;    /* a member is written to by a scatter (cfxi_analysis_is_scatter) */
    uint32_t last;     /* 1 + the place of the last use of a member, 0 if there is none */
    uint32_t owner;    /* the object of that member */
    uint32_t second;   /* likewise of all members that are other objects */
} cfxi_alias;

/* Which uses count. */
typedef enum cfxi_alias_uses {
    CFXI_USES_ALL,
    CFXI_USES_REAL  /* neither views, which are members themselves, nor the bases of scatters */
} cfxi_alias_uses;

typedef struct cfxi_aliases {
    cfx_graph *graph;
    cfxi_effect_model *model;
    cfxi_alias *sets;     /* by position */
    size_t n;
    cfx_node_map *places; /* of nodes, as integers; not marks, which edits and hosts use up */
    cfxi_hash_map memories;  /* of attributes: the first node that reads each (cfx_node *) */
} cfxi_aliases;

/* Every node is alone at first; cfxi_analysis_alias_join, in the order of the nodes, says what
 * each shares. */
cfx_status cfxi_analysis_aliases_begin(cfxi_aliases *a, cfx_graph *g, cfxi_effect_model *model,
                                       cfxi_alias_uses uses, cfx_error *err);
void cfxi_analysis_aliases_end(cfxi_aliases *a);

/* Gives a new node the place of another. */
static inline cfx_status cfxi_analysis_take_place(cfxi_aliases *a, const cfx_node *n,
                                                  const cfx_node *of, cfx_error *err)
{
    return cfx_node_map_set(a->places, n, cfx_node_map_get(a->places, of), err);
}

static inline uint32_t cfxi_analysis_alias_place(const cfxi_aliases *a, const cfx_node *n)
{
    return (uint32_t)cfx_node_map_get(a->places, n).as.i;
}

cfxi_alias *cfxi_analysis_alias_set(const cfxi_aliases *a,
                                    const cfx_node *n); /* the leader of its set */
/* Puts `n` into the sets of what it may share memory with. Asks the modules, with the graph frozen;
 * fails if they do. */
cfx_status cfxi_analysis_alias_join(cfxi_aliases *a, cfx_node *n, cfx_error *err);
cfx_status cfxi_analysis_alias_join_all(cfxi_aliases *a, cfx_error *err);
/* Joins all nodes, then says of each set whether a call of the graph may write to it, by any way.
 * (memory.c) */
cfx_status cfxi_analysis_aliases_note_writes(cfxi_aliases *a, cfx_error *err);
void cfxi_analysis_alias_union(cfxi_aliases *a, const cfx_node *x, const cfx_node *y);
/* 1 + the place of the last use of a member of the set of `n` that is another tensor than `n`. */
uint32_t cfxi_analysis_alias_last_other(const cfxi_aliases *a, const cfx_node *n);

/* ---- reads and writes (memory.c) ------------------------------------------------------------ */

/* What a call may disturb or be disturbed by is a set of channels: two calls must keep their order
 * if they have a channel in common and one of them writes to it. The channel of a set is the place
 * of its leader; these come after the last place. */
typedef enum cfxi_channel {
    CFXI_CHANNEL_FOREIGN,     /* read by what may be any memory outside */
    CFXI_CHANNEL_ANY,         /* written by what may be any memory outside */
    CFXI_CHANNEL_ATTRIBUTES,  /* what modules read: all attributes */
    CFXI_CHANNEL_STATISTICS,  /* running statistics of norms */
    CFXI_CHANNEL_RANDOM,      /* the state of the random number generators */
    CFXI_CHANNEL_COUNT
} cfxi_channel;

typedef bool cfxi_channel_fn(void *ctx, uint32_t channel, bool writes);

/* Calls `fn` for each channel of a call that does `does`; the same one may come several times. All
 * nodes must have been joined. False as soon as `fn` answers false. Asks nothing of the host, if
 * the model has been asked about the node before. */
bool cfxi_analysis_each_channel(const cfxi_aliases *a, cfx_node *n, unsigned does,
                                cfxi_channel_fn *fn, void *ctx);

/* Whether a value may be changed after it was made, if `written` tells of channels whether
 * anybody writes to them. */
bool cfxi_analysis_is_disturbed(const cfxi_aliases *a, const cfx_node *n, const bool *written);

/* What a call writes to in place and returns: `x` of x.add_(1), F.relu(x, inplace=True); NULL if
 * it is not such a call, or if that is unknown. *op (may be NULL) is the operator that does not
 * write. */
cfx_node *cfxi_analysis_written(const cfx_node *n, cfx_operator *op);

/* Whether a call only makes another view of its first argument. */
bool cfxi_analysis_is_view(const cfx_node *n);
/* The view operator that a call like select_scatter(base, src, ...) is the inverse of; else NONE.
 * */
cfx_operator cfxi_analysis_is_scatter(const cfx_node *n);

#endif
