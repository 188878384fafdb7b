/* picked_slices_impl.h - slices of a tensor that indices pick, beside those of another in order.
 * (picked_slices.c)
 *
 * x[:, [2, 0, 2]] picks slices 2, 0, 2 of x along dimension 1, and the result holds them one after
 * the other. The dimensions before the picked ones are outer, those after inner; where picked
 * dimensions do not lie side by side, all others are inner.
 */
#ifndef CFXI_PICKED_SLICES_IMPL_H
#define CFXI_PICKED_SLICES_IMPL_H

#include "runtime/view_impl.h"

/* Dimensions that are walked on both sides; adjacent ones joined. */
typedef struct cfxi_walk {
    size_t n;
    int64_t size[CFX_MAX_DIMS];
    int64_t own[CFX_MAX_DIMS];    /* strides in the tensor that is picked from */
    int64_t other[CFX_MAX_DIMS];  /* and in the other one */
} cfxi_walk;

typedef struct cfxi_picks {
    cfx_dtype dtype;
    int64_t n;       /* how many slices */
    int64_t *at;     /* where each begins, in bytes; scratch */
    int64_t step;    /* from one slice to the next in the other tensor, in bytes */
    cfxi_walk outer;
    cfxi_walk inner;
} cfxi_picks;

typedef enum cfxi_pick_action {
    CFXI_PICK_GET,  /* other = own */
    CFXI_PICK_PUT,  /* own = other */
    CFXI_PICK_ADD   /* own += other; of bools: or */
} cfxi_pick_action;

/* Adds a dimension to a walk, from the outermost on. */
void cfxi_index_walk_add(cfxi_walk *w, int64_t size, int64_t own, int64_t other);
/* Does it for all slices, in order; GET on the pool. */
void cfxi_index_picks_run(cfx_runtime *rt, const cfxi_picks *p, cfxi_pick_action action, char *own,
                          char *other);

/* Fills p->at for slices along dimension `dim` of `x` by a contiguous list of int64 indices; those
 * below 0 count from the end if `wraps`, else they are refused like those past it, with `refusal`.
 * */
cfx_status cfxi_index_pick_along(cfxi_call *c, cfxi_picks *p, const cfx_tensor *x, size_t dim,
                                 const int64_t *indices, bool wraps, cfx_status refusal);

/* Result 0, which has the sizes of argument 0, receives its elements, unless it is the argument
 * itself (in place). (index.c) */
cfx_status cfxi_index_begin_from_self(cfxi_call *c);

/* *a += *b, and other ways to join two elements; n of them at these strides. */
typedef enum cfxi_join { CFXI_JOIN_SET, CFXI_JOIN_ADD, CFXI_JOIN_MUL, CFXI_JOIN_MAX, CFXI_JOIN_MIN
} cfxi_join;
void cfxi_index_join_run(cfx_dtype dtype, cfxi_join how, int64_t n, char *a, int64_t a_step,
                         const char *b, int64_t b_step);

#endif
