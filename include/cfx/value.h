/* value.h - arguments of nodes: 16-byte tagged unions, immutable and shared by copies.
 *
 * Scalars live in the value itself. Strings, containers, host objects and regions are created by a
 * graph, belong to that graph and are reference-counted within it:
 *
 *   - A constructor returns a *floating* value, which has no owner yet. Adding it to a container or
 *     a node takes a reference; when the last owner releases it, its memory is reused. An unused
 *     floating value lives until its graph is freed, or until cfx_value_discard. An edit that fails
 *     leaves the values it was given floating.
 *   - To keep a value after an edit of the node it came from, call cfx_value_retain.
 *   - A value of one graph cannot be used in another.
 *
 * A constructor that fails returns a value of kind INVALID and sets *err. No function accepts
 * INVALID as an argument, so a chain of constructors needs one check at the end:
 *
 *     cfx_value pair[] = {cfx_value_node(x), cfx_value_str(g, "mean", 4, &err)};
 *     cfx_value args[] = {cfx_value_list(g, pair, 2, &err)};   (INVALID if the string failed)
 */
#ifndef CFX_VALUE_H
#define CFX_VALUE_H

#include <cfx/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_graph cfx_graph;
typedef struct cfx_node cfx_node;
typedef struct cfx_str cfx_str;  /* a counted string */
typedef struct cfx_seq cfx_seq;  /* a counted array of values */
typedef struct cfx_ref cfx_ref;  /* a host object, a name that stands for one, or a region */

typedef enum cfx_kind {
#define CFX_KIND(id, name, payload) CFX_KIND_##id,
#include <cfx/kind.def>
#undef CFX_KIND
    CFX_KIND_COUNT
} cfx_kind;

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

/* The maximum nesting of containers in one argument, and of regions in one graph. */
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
/* The result of a node, for use as an argument of another node. */
static inline cfx_value cfx_value_node(cfx_node *n)
{
    cfx_value v = cfx_value_scalar(CFX_KIND_NODE, 0);
    v.as.node = n;
    return v;
}

/* ---- values created by a graph -------------------------------------------------------------- */

/* Each of these returns a floating value, or INVALID with *err set. Each can fail with
 * CFX_E_NOMEM. */

/* A string of `size` bytes, which are copied and need no terminator. CFX_E_VALUE if it is not
 * UTF-8. */
CFX_API cfx_value cfx_value_str(cfx_graph *g, const char *text, size_t size, cfx_error *err);

/* A device such as "cpu" or "cuda:1": letters, digits and '_', then an optional ":index". */
CFX_API cfx_value cfx_value_device(cfx_graph *g, const char *name, size_t size, cfx_error *err);

/* start:stop:step of an index. Each part is any value: None, an integer, a node. */
CFX_API cfx_value cfx_value_slice(cfx_graph *g, cfx_value start, cfx_value stop, cfx_value step,
                                  cfx_error *err);

/* A list or a tuple of `n` items, which are copied. Each item must be valid and belong to this
 * graph: CFX_E_GRAPH for a node of another graph, CFX_E_LIMIT if containers nest deeper than
 * CFX_MAX_DEPTH. */
CFX_API cfx_value cfx_value_list(cfx_graph *g, const cfx_value *items, size_t n, cfx_error *err);
CFX_API cfx_value cfx_value_tuple(cfx_graph *g, const cfx_value *items, size_t n, cfx_error *err);

/* A container of any kind (dict, set, range, ...), with its items in the order that kind.def
 * states; CFX_E_VALUE if they do not fit the kind. `n` counts values: a dict of two entries has 4.
 */
CFX_API cfx_value cfx_value_seq(cfx_graph *g, cfx_kind kind, const cfx_value *items, size_t n,
                                cfx_error *err);

/* An object of the embedding language by its qualified name ("torch.Tensor"). If the graph has no
 * host, or the host does not know the name, the value holds only the name. */
CFX_API cfx_value cfx_value_name(cfx_graph *g, const char *name, size_t size, cfx_error *err);

/* A region: `sub` becomes part of `g`, which retains it. CFX_E_GRAPH if `sub` is already a region
 * of another graph, or contains `g`. */
CFX_API cfx_value cfx_value_region(cfx_graph *g, cfx_graph *sub, cfx_error *err);

/* ---- ownership ----------------------------------------------------------------------------- */

/* Takes or drops one reference; scalars have none. cfx_value_retain returns `v`. */
CFX_API cfx_value cfx_value_retain(cfx_value v);
CFX_API void cfx_value_release(cfx_graph *g, cfx_value v);

/* Frees a floating value that is not needed. Does nothing if the value has an owner. */
CFX_API void cfx_value_discard(cfx_graph *g, cfx_value v);

/* ---- reading ------------------------------------------------------------------------------- */

/* "tuple", as kind.def calls it; static text. */
CFX_API const char *cfx_kind_name(cfx_kind kind);

/* The text of a STR, BYTES, BIGINT or DEVICE: borrowed and NUL-terminated; NULL for other kinds.
 * *size (may be NULL) receives its length in bytes. */
CFX_API const char *cfx_value_text(cfx_value v, size_t *size);

/* The items of a container: borrowed. NULL and *n = 0 for other kinds. */
CFX_API const cfx_value *cfx_value_items(cfx_value v, size_t *n);

/* The graph of a region: borrowed. NULL for other kinds. */
CFX_API cfx_graph *cfx_value_graph(cfx_value region);

/* Whether two values have the same kind and content. Sets compare in any order; nodes and host
 * objects by identity (a host may define more as equal); regions by cfx_graph_equal. Floats compare
 * bit by bit: 0.0 does not equal -0.0, and every nan equals every nan. Also returns false if
 * containers and regions nest more than 8 deep and there is no memory to walk them. */
CFX_API bool cfx_value_equal(cfx_value a, cfx_value b);

/* Writes a value as torch.fx prints it in str(graph): %x, 1, 'text', (%a, [1, 2]). Fails if the
 * sink or the host fails. */
CFX_API cfx_status cfx_value_print(cfx_graph *g, cfx_value v, cfx_sink out, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
