/* value.h - the arguments of nodes: a 16-byte tagged union, immutable, shared by copies.
 *
 * Scalars live in the value. Everything else (strings, containers, host objects, regions) is made
 * by a graph, belongs to that graph and is counted inside it:
 *
 *   - A constructor returns a *floating* value: nobody owns it yet. Putting it into a container or
 *     a node takes a count; when the last holder lets go it is recycled. A floating value that is
 *     never used lives until its graph is freed, or until cfx_value_discard; what an edit that
 *     fails was given floats as before.
 *   - To keep a value past an edit of the node it came from, cfx_value_retain it.
 *   - A value of one graph cannot be used in another: cfx_value_copy it there first.
 *
 * A constructor that fails returns a value of kind INVALID and sets *err. INVALID is accepted
 * nowhere, so a chain of constructors needs one check at the end:
 *
 *     cfx_value pair[] = {cfx_value_node(x), cfx_value_str(g, "mean", 4, &err)};
 *     cfx_value args[] = {cfx_value_list(g, pair, 2, &err)};   (INVALID if the string failed)
 */
#ifndef CFX_VALUE_H
#define CFX_VALUE_H

#include <cfx/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_graph cfx_graph;
typedef struct cfx_node cfx_node;
typedef struct cfx_str cfx_str;  /* a counted string */
typedef struct cfx_seq cfx_seq;  /* a counted array of values */
typedef struct cfx_ref cfx_ref;  /* a host object, a name standing for one, or a region */

typedef enum cfx_kind {
#define CFX_KIND(id, name, payload) CFX_KIND_##id,
#include <cfx/kind.def>
#undef CFX_KIND
    CFX_KIND_COUNT
} cfx_kind;

typedef enum cfx_dtype {
#define CFX_DTYPE(id, name, size, brief) CFX_DTYPE_##id,
#include <cfx/dtype.def>
#undef CFX_DTYPE
    CFX_DTYPE_COUNT
} cfx_dtype;

typedef enum cfx_layout {
#define CFX_LAYOUT(id, name) CFX_LAYOUT_##id,
#define CFX_MEMORY_FORMAT(id, name)
#include <cfx/layout.def>
#undef CFX_LAYOUT
#undef CFX_MEMORY_FORMAT
    CFX_LAYOUT_COUNT
} cfx_layout;

typedef enum cfx_memory_format {
#define CFX_LAYOUT(id, name)
#define CFX_MEMORY_FORMAT(id, name) CFX_MEMORY_FORMAT_##id,
#include <cfx/layout.def>
#undef CFX_LAYOUT
#undef CFX_MEMORY_FORMAT
    CFX_MEMORY_FORMAT_COUNT
} cfx_memory_format;

typedef struct cfx_value {
    uint32_t kind;  /* a cfx_kind */
    uint32_t pad;   /* always 0 */
    union {
        bool b;
        int64_t i;  /* INT; also DTYPE, LAYOUT and MEMORY_FORMAT as their enum's number */
        double f;
        cfx_str *str;
        cfx_seq *seq;
        cfx_ref *ref;
        cfx_node *node;
    } as;
} cfx_value;

/* Deepest nesting of containers in one argument, and of regions in one graph. */
#define CFX_MAX_DEPTH 1000
#define CFX_MAX_REGION_DEPTH 100

/* ---- scalars ------------------------------------------------------------------------------- */

static inline cfx_value cfx_value_scalar(cfx_kind kind, int64_t i)
{
    cfx_value v;
    v.kind = (uint32_t)kind;
    v.pad = 0;
    v.as.i = i;
    return v;
}
static inline cfx_value cfx_value_invalid(void) { return cfx_value_scalar(CFX_KIND_INVALID, 0); }
static inline cfx_value cfx_value_none(void) { return cfx_value_scalar(CFX_KIND_NONE, 0); }
static inline cfx_value cfx_value_ellipsis(void) { return cfx_value_scalar(CFX_KIND_ELLIPSIS, 0); }
static inline cfx_value cfx_value_bool(bool b)
{
    cfx_value v = cfx_value_scalar(CFX_KIND_BOOL, 0);
    v.as.b = b;
    return v;
}
static inline cfx_value cfx_value_int(int64_t i) { return cfx_value_scalar(CFX_KIND_INT, i); }
static inline cfx_value cfx_value_float(double f)
{
    cfx_value v = cfx_value_scalar(CFX_KIND_FLOAT, 0);
    v.as.f = f;
    return v;
}
static inline cfx_value cfx_value_dtype(cfx_dtype d) { return cfx_value_scalar(CFX_KIND_DTYPE, d); }
static inline cfx_value cfx_value_layout(cfx_layout l)
{
    return cfx_value_scalar(CFX_KIND_LAYOUT, l);
}
static inline cfx_value cfx_value_memory_format(cfx_memory_format m)
{
    return cfx_value_scalar(CFX_KIND_MEMORY_FORMAT, m);
}
static inline cfx_value cfx_value_node(cfx_node *n)
{
    cfx_value v = cfx_value_scalar(CFX_KIND_NODE, 0);
    v.as.node = n;
    return v;
}

/* ---- values made by a graph ---------------------------------------------------------------- */

/* `text` need not be terminated; it is copied. A STR must be UTF-8 (CFX_E_VALUE otherwise). */
CFX_API cfx_value cfx_value_str(cfx_graph *g, const char *text, size_t size, cfx_error *err);
CFX_API cfx_value cfx_value_bytes(cfx_graph *g, const void *data, size_t size, cfx_error *err);

/* An integer from its decimal digits, with an optional '-': an INT if it fits, else a BIGINT. */
CFX_API cfx_value cfx_value_integer(cfx_graph *g, const char *digits, size_t size, cfx_error *err);

/* A device such as "cpu" or "cuda:1": letters, digits and '_', then an optional ":index". */
CFX_API cfx_value cfx_value_device(cfx_graph *g, const char *name, size_t size, cfx_error *err);

/* A COMPLEX. */
CFX_API cfx_value cfx_value_complex(cfx_graph *g, double re, double im, cfx_error *err);

/* The three parts of a slice may be any value (None, integers, nodes); of a range, integers. */
CFX_API cfx_value cfx_value_slice(cfx_graph *g, cfx_value start, cfx_value stop, cfx_value step,
                                  cfx_error *err);
CFX_API cfx_value cfx_value_range(cfx_graph *g, cfx_value start, cfx_value stop, cfx_value step,
                                  cfx_error *err);

/* Containers. `items` is copied; each item must be valid and of this graph (CFX_E_GRAPH if a node
 * is another graph's), nesting at most CFX_MAX_DEPTH (CFX_E_LIMIT). */
CFX_API cfx_value cfx_value_list(cfx_graph *g, const cfx_value *items, size_t n, cfx_error *err);
CFX_API cfx_value cfx_value_tuple(cfx_graph *g, const cfx_value *items, size_t n, cfx_error *err);
CFX_API cfx_value cfx_value_set(cfx_graph *g, const cfx_value *items, size_t n, cfx_error *err);

/* Any SEQ kind from its items in the layout that kind.def states; checks that layout.
 * `n` counts values: a dict of two entries has 4. Every other container goes through here. */
CFX_API cfx_value cfx_value_seq(cfx_graph *g, cfx_kind kind, const cfx_value *items, size_t n,
                                cfx_error *err);

/* An object of the embedding language. The graph retains it once, however often it is used.
 * CFX_E_TYPE on a graph without a host. */
CFX_API cfx_value cfx_value_host(cfx_graph *g, void *object, cfx_error *err);

/* A host object by its qualified name ("torch.Tensor"), resolved by the graph's host if it has one
 * and can; otherwise the name itself stands for the object. */
CFX_API cfx_value cfx_value_name(cfx_graph *g, const char *name, size_t size, cfx_error *err);

/* A region: `sub` becomes a part of `g` and is retained by it. A graph can be a region of one
 * graph only, and not of itself, however deep (CFX_E_GRAPH). */
CFX_API cfx_value cfx_value_region(cfx_graph *g, cfx_graph *sub, cfx_error *err);

/* ---- counting ------------------------------------------------------------------------------ */

/* One owner more or less; scalars have none. Retaining returns `v`. */
CFX_API cfx_value cfx_value_retain(cfx_value v);
CFX_API void cfx_value_release(cfx_graph *g, cfx_value v);

/* Recycles a floating value that was not used after all; a value somebody holds is left alone. */
CFX_API void cfx_value_discard(cfx_graph *g, cfx_value v);

/* ---- reading ------------------------------------------------------------------------------- */

/* "tuple", as kind.def calls it. */
CFX_API const char *cfx_kind_name(cfx_kind kind);
CFX_API const char *cfx_dtype_name(cfx_dtype dtype);              /* "float32" */
CFX_API size_t cfx_dtype_size(cfx_dtype dtype);                   /* bytes per element */
CFX_API const char *cfx_layout_name(cfx_layout layout);           /* "strided" */
CFX_API const char *cfx_memory_format_name(cfx_memory_format f);  /* "channels_last" */

/* The text of a STR, BYTES, BIGINT or DEVICE: borrowed, terminated, with its size in bytes. */
CFX_API const char *cfx_value_text(cfx_value v, size_t *size);

/* The items of any SEQ kind: borrowed. NULL and 0 for other kinds. */
CFX_API const cfx_value *cfx_value_items(cfx_value v, size_t *n);

/* The value of the string key `key` in a DICT; INVALID if there is none. */
CFX_API cfx_value cfx_value_get(cfx_value dict, const char *key);

CFX_API cfx_graph *cfx_value_graph(cfx_value region);   /* borrowed; NULL for other kinds */
CFX_API void *cfx_value_object(cfx_value host);         /* borrowed; NULL if it is only a name */

/* The qualified name of a HOST value, borrowed. For an object the host is asked once, and the
 * answer kept. NULL with *err set where the object has none. */
CFX_API const char *cfx_value_host_name(cfx_graph *g, cfx_value host, cfx_error *err);

/* ---- walking, comparing, copying ----------------------------------------------------------- */

/* Calls `fn` for each node in `v`, left to right, containers descended, regions not. Stops at the
 * first status that is not CFX_OK and returns it. */
typedef cfx_status cfx_node_fn(void *ctx, cfx_node *n);
CFX_API cfx_status cfx_value_each_node(cfx_value v, cfx_node_fn *fn, void *ctx);

/* Rebuilds `v` for graph `dst`, with every node replaced by what `fn` answers (an INVALID answer
 * stops it; `fn` then sets *err). Containers in which nothing changed are shared if `dst` is the
 * graph they came from (`src`); regions are shared then, and cloned otherwise. Floating. If it
 * fails, what `fn` answered so far is the caller's to discard: it may be in use elsewhere. */
typedef cfx_value cfx_map_fn(void *ctx, cfx_node *n, cfx_error *err);
CFX_API cfx_value cfx_value_map(cfx_graph *dst, cfx_graph *src, cfx_value v, cfx_map_fn *fn,
                                void *ctx, cfx_error *err);

/* Same kind and content; the items of a set in any order. Nodes compare by identity, floats bit by
 * bit (0.0 is not -0.0; but every nan equals every nan), host objects by identity or the host's
 * `equal`, a name and an object by the object's qualified name, regions by cfx_graph_equal. */
CFX_API bool cfx_value_equal(cfx_value a, cfx_value b);

#ifdef __cplusplus
}
#endif
#endif
