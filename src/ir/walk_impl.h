/* walk_impl.h - how everything goes through values and graphs: without recursion.
 *
 * Containers nest in containers up to CFX_MAX_DEPTH, regions in regions up to
 * CFX_MAX_REGION_DEPTH, and each in the other: 100,000 levels, more than a C stack has room for.
 * So a walk keeps its own stack. A frame of it is something half visited: the items of a container,
 * the nodes of a graph, or steps that mean something to the caller, such as the fields of a node.
 *
 *     cfxi_walk w;
 *     cfxi_walk_frame *f;
 *     cfxi_ir_walk_begin(&w, g->allocator);
 *     cfxi_ir_walk_into(&w, v);
 *     for (cfxi_walk_event e; (e = cfxi_ir_walk_next(&w, &f)) != CFXI_WALK_END;)
 *         if (e == CFXI_WALK_LEAVE)
 *             ...close what `f` was...
 *         else if (cfxi_ir_is_seq(f->items[f->i - 1]))
 *             cfxi_ir_walk_into(&w, f->items[f->i - 1]);
 *         else
 *             ...a value that holds no others...
 *     status = cfxi_ir_walk_end(&w, err);
 *
 * The caller decides what to enter, so it can leave out what it wants, and stop at any time. What
 * is not a container (nodes, host values, regions) is the caller's to handle; it may enter a region
 * with cfxi_ir_walk_nodes. Order is depth first, left to right, which is torch.fx's.
 *
 * The first frames are part of the struct: arguments that nest no deeper than CFXI_WALK_FEW need no
 * memory. If memory runs out, the push returns NULL, the walk is at its end, and cfxi_ir_walk_end
 * returns CFX_E_NOMEM.
 *
 * Three forms build on this stack: over one value (the events above, or cfxi_ir_walk_leaf), over
 * two in step (cfxi_ir_walk_pair; equal.c), and one that makes a new value (value_map.c, clone.c,
 * with the new items in the frame's `own`).
 */
#ifndef CFXI_WALK_IMPL_H
#define CFXI_WALK_IMPL_H

#include "graph_impl.h"

enum { CFXI_WALK_FEW = 8 };

typedef enum cfxi_walk_what { CFXI_WALK_ITEMS, CFXI_WALK_STEPS, CFXI_WALK_NODES } cfxi_walk_what;

typedef enum cfxi_walk_event {
    CFXI_WALK_END,   /* nothing is left, or memory ran out */
    CFXI_WALK_NEXT,  /* ITEMS: item f->i - 1; STEPS: step f->i - 1; NODES: the node f->node */
    CFXI_WALK_LEAVE  /* `f` is done, and off the stack: valid until the next push */
} cfxi_walk_event;

typedef struct cfxi_walk_frame {
    const cfx_value *items;      /* ITEMS */
    union {
        const cfx_value *other;  /* ITEMS of two values in step: the second's */
        cfx_node *twin;          /* NODES of two graphs in step: the second's node */
    };
    cfx_node *node;     /* NODES: the last that was handed out, at first the root; STEPS: whose */
    uint32_t n;         /* items or steps; NODES: the place of the next graph outwards */
    uint32_t i;         /* of them handed out */
    uint32_t mark;      /* the caller's */
    uint16_t mode;      /* the caller's */
    uint8_t kind;       /* ITEMS: of the container, a cfx_kind; STEPS, NODES: the caller's */
    uint8_t what;       /* a cfxi_walk_what */
    union {
        uint64_t number;
        void *data;
    } own;              /* the caller's; zero at first */
} cfxi_walk_frame;

typedef struct cfxi_walk {
    cfxi_walk_frame *frames;  /* `few`, or memory of the allocator */
    uint32_t depth;
    uint32_t capacity;
    uint32_t graph;           /* 1 + the place of the innermost NODES frame; 0: there is none */
    cfx_status status;        /* CFX_E_NOMEM once memory has run out */
    const cfx_allocator *allocator;
    cfxi_walk_frame few[CFXI_WALK_FEW];
} cfxi_walk;

/* ---- beginning and ending ------------------------------------------------------------------ */

/* `allocator` may be NULL for malloc. */
static inline void cfxi_ir_walk_begin(cfxi_walk *w, const cfx_allocator *allocator)
{
    w->frames = w->few;
    w->depth = 0;
    w->capacity = CFXI_WALK_FEW;
    w->graph = 0;
    w->status = CFX_OK;
    w->allocator = allocator;
}

/* Frees the stack, wherever the walk is. CFX_OK, or CFX_E_NOMEM with *err set. What frames `own` is
 * the caller's to free before. */
cfx_status cfxi_ir_walk_end(cfxi_walk *w, cfx_error *err);

/* ---- entering ------------------------------------------------------------------------------ */

bool cfxi_ir_walk_grow(cfxi_walk *w);  /* room for one frame more */

/* A new frame on top, all zero but for `what`. Frames move: take others from the walk again. */
static inline cfxi_walk_frame *cfxi_ir_walk_push(cfxi_walk *w, cfxi_walk_what what)
{
    if (w->depth == w->capacity && !cfxi_ir_walk_grow(w))
        return NULL;
    cfxi_walk_frame *f = &w->frames[w->depth++];
    *f = (cfxi_walk_frame){.what = (uint8_t)what};
    return f;
}

static inline cfxi_walk_frame *cfxi_ir_walk_items(cfxi_walk *w, uint32_t kind,
                                                  const cfx_value *items, size_t n)
{
    cfxi_walk_frame *f = cfxi_ir_walk_push(w, CFXI_WALK_ITEMS);
    if (!f)
        return NULL;
    f->items = items;
    f->n = (uint32_t)n;
    f->kind = (uint8_t)kind;
    return f;
}

/* The items of a container. */
static inline cfxi_walk_frame *cfxi_ir_walk_into(cfxi_walk *w, cfx_value v)
{
    const cfx_seq *seq = v.as.seq;
    return cfxi_ir_walk_items(w, v.kind, seq ? seq->items : NULL, seq ? seq->size : 0);
}

/* The items of two arrays in step. */
static inline cfxi_walk_frame *cfxi_ir_walk_pair(cfxi_walk *w, uint32_t kind, const cfx_value *a,
                                                 const cfx_value *b, size_t n)
{
    cfxi_walk_frame *f = cfxi_ir_walk_items(w, kind, a, n);
    if (f)
        f->other = b;
    return f;
}

/* `n` steps of the caller's, about `node` (may be NULL); `kind` tells the caller which. */
static inline cfxi_walk_frame *cfxi_ir_walk_steps(cfxi_walk *w, uint8_t kind, cfx_node *node,
                                                  size_t n)
{
    cfxi_walk_frame *f = cfxi_ir_walk_push(w, CFXI_WALK_STEPS);
    if (!f)
        return NULL;
    f->node = node;
    f->n = (uint32_t)n;
    f->kind = kind;
    return f;
}

/* The nodes of a graph, in their order. The graph must not be edited meanwhile. */
static inline cfxi_walk_frame *cfxi_ir_walk_nodes(cfxi_walk *w, cfx_graph *g)
{
    cfxi_walk_frame *f = cfxi_ir_walk_push(w, CFXI_WALK_NODES);
    if (!f)
        return NULL;
    f->node = &g->root;
    f->n = w->graph;
    w->graph = w->depth;
    return f;
}

/* ---- where it is --------------------------------------------------------------------------- */

/* The innermost frame; NULL at the end. */
static inline cfxi_walk_frame *cfxi_ir_walk_top(cfxi_walk *w)
{
    return w->depth > 0 ? &w->frames[w->depth - 1] : NULL;
}

/* The frame of the innermost graph; NULL outside of one. */
static inline cfxi_walk_frame *cfxi_ir_walk_graph(cfxi_walk *w)
{
    return w->graph > 0 ? &w->frames[w->graph - 1] : NULL;
}

/* Leaves the innermost frame before its end; returns it, valid until the next push. */
static inline cfxi_walk_frame *cfxi_ir_walk_pop(cfxi_walk *w)
{
    cfxi_walk_frame *f = &w->frames[--w->depth];
    if (f->what == CFXI_WALK_NODES)
        w->graph = f->n;
    return f;
}

/* ---- going on ------------------------------------------------------------------------------ */

static inline cfxi_walk_event cfxi_ir_walk_next(cfxi_walk *w, cfxi_walk_frame **frame)
{
    if (w->depth == 0 || w->status != CFX_OK)
        return CFXI_WALK_END;
    cfxi_walk_frame *f = *frame = &w->frames[w->depth - 1];
    if (f->what == CFXI_WALK_NODES) {
        f->node = f->node->next;
        if (f->node->op != CFX_OPCODE_COUNT)  /* the root's */
            return CFXI_WALK_NEXT;
    } else if (f->i < f->n) {
        f->i++;
        return CFXI_WALK_NEXT;
    }
    cfxi_ir_walk_pop(w);
    return CFXI_WALK_LEAVE;
}

/* The next value that is not a container, of what was entered; containers are entered on the way.
 * False at the end. For walks over ITEMS alone. */
static inline bool cfxi_ir_walk_leaf(cfxi_walk *w, cfx_value *v)
{
    while (w->depth > 0) {
        cfxi_walk_frame *f = &w->frames[w->depth - 1];
        if (f->i == f->n) {
            w->depth--;
            continue;
        }
        *v = f->items[f->i++];
        if (!cfxi_ir_is_seq(*v))
            return true;
        if (!cfxi_ir_walk_into(w, *v))
            return false;
    }
    return false;
}

/* ---- questions ----------------------------------------------------------------------------- */

#define CFXI_KIND_BIT(kind) ((uint32_t)1 << (kind))

/* Whether `v`, or anything in it, is of one of these kinds, a sum of CFXI_KIND_BIT. Regions are not
 * entered. Also true where there is no memory to look deeper. */
bool cfxi_ir_value_has(cfx_value v, uint32_t kinds);

/* Calls `fn` for each region in `v`, left to right; the regions inside of them are left to `fn`.
 * Stops at the first status that is not CFX_OK and returns it. */
cfx_status cfxi_ir_each_region(cfx_value v,
                               cfx_status (*fn)(cfx_graph *region, void *ctx, cfx_error *err),
                               void *ctx, cfx_error *err);

/* ---- regions ------------------------------------------------------------------------------- */

/* A graph and the regions in it, each once, a graph before its regions. Regions that no value holds
 * any more are left out. Needs no memory. */
typedef struct cfxi_region_walk {
    struct {
        cfx_graph *graph;
        size_t at;  /* in its table of references */
    } above[CFX_MAX_REGION_DEPTH + 1];
    uint32_t depth;
} cfxi_region_walk;

void cfxi_ir_regions_begin(cfxi_region_walk *w, cfx_graph *g);
/* NULL at the end. A graph is `above` its regions until they are done. */
cfx_graph *cfxi_ir_regions_next(cfxi_region_walk *w);

#endif
