/* random_impl.h - what the files of the generator share. */
#ifndef CFX_TESTS_RANDOM_IMPL_H
#define CFX_TESTS_RANDOM_IMPL_H

#include "random_graph.h"

/* What is being built. Values that fail are INVALID and *err says why, so checks are few. */
typedef struct builder {
    random_source *r;
    cfx_graph *g;
    cfx_node **nodes;  /* those that may be used as arguments */
    size_t n;
    cfx_error *err;    /* never NULL */
} builder;

cfx_value random_leaf(builder *b);                    /* no list, tuple, set or dict */
cfx_value random_value(builder *b, size_t nesting);   /* `nesting` containers around it already */
cfx_value random_constant(builder *b);                /* without nodes */
cfx_value random_args(builder *b);
cfx_value random_kwargs(builder *b);
cfx_target random_target(builder *b, cfx_opcode op);
cfx_node *random_call(builder *b);                    /* at the insertion point */

#endif
