/* compare.h - how far the values of one version of a model are from those of another.
 *
 *     cfx_comparison *c = cfx_comparison_new(model, quantized, NULL, &err);
 *     for each call of both:
 *         for (size_t i = 0; cfx_comparison_pair(c, i, &a, &b); i++)
 *             cfx_comparison_add(c, i, what %a gave, what %b gave, &err);
 *     cfx_comparison_print(c, CFX_COMPARISON_TABLE, 0, 0, sink, &err);       worst first
 *
 * For each pair of nodes it keeps sums over all elements of all calls, nothing else, so the data
 * may be of any length. The core does not run anything here: the caller does, in C or in PyTorch.
 */
#ifndef CFX_COMPARE_H
#define CFX_COMPARE_H

#include <cfx/graph.h>
#include <cfx/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One thread at a time. */
typedef struct cfx_comparison cfx_comparison;

/* How far one value is from its counterpart, over all elements that were added. */
typedef struct cfx_closeness {
    int64_t elements;    /* that were finite in both */
    int64_t not_finite;  /* the others, which count for nothing else here */
    double sqnr;         /* 10 log10(sum a^2 / sum (a - b)^2), in dB: infinite if they are equal */
    double cosine;       /* of the angle between them; 1 if both are 0 */
    double error;        /* sqrt(sum (a - b)^2 / sum a^2) */
    double largest;      /* the greatest |a - b| */
} cfx_closeness;

/* A layer: a node of the first graph, with its counterpart in the second. All texts are borrowed
 * from the comparison or its graphs. */
typedef struct cfx_compared {
    const char *name;      /* of the node in the first graph */
    const char *partner;   /* whose value is compared: where a value is quantized, that behind it */
    const char *module;    /* of a call_module: its path; else of the module that calls; or "" */
    const char *operation; /* the operator ("conv2d"), or else the target */
    const char *file;      /* the user's line; or NULL */
    uint32_t line;
    cfx_closeness close;
    double input_sqnr;     /* of the worst of its inputs: what it began with; infinite if unknown */
    double own_error;      /* what it adds: as `error`, without that of its inputs */
    const char *advice;    /* what may help; or NULL if there is little to gain */
} cfx_compared;

/* Pairs the nodes of two graphs as cfx diff does, by structure, names and uses. A batch-norm or an
 * activation that the second graph has no more is paired with what took it over. Regions are not
 * looked into. Retains both graphs, which must not be changed meanwhile. The allocator (NULL:
 * malloc) must outlive it. NULL with *err set. Linear in nodes and edges. */
CFX_API cfx_comparison *cfx_comparison_new(cfx_graph *a, cfx_graph *b,
                                           const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_comparison_free(cfx_comparison *c);  /* NULL is allowed */

/* The i-th pair, in the order of the first graph; false past the last. Several may have the same
 * node of `b`. */
CFX_API bool cfx_comparison_pair(const cfx_comparison *c, size_t i, cfx_node **a, cfx_node **b);

/* Takes values of the i-th pair into account: floating-point tensors of one shape, whatever their
 * strides and types. For tensors of other types or of different shapes the pair is left out from
 * now on. CFX_E_INDEX past the last pair; CFX_E_NOMEM. */
CFX_API cfx_status cfx_comparison_add(cfx_comparison *c, size_t i, const cfx_tensor *a,
                                      const cfx_tensor *b, cfx_error *err);

/* How many layers something was added for, and the k-th of them, the worst SQNR first: false past
 * the last. */
CFX_API size_t cfx_comparison_size(const cfx_comparison *c);
CFX_API bool cfx_comparison_row(cfx_comparison *c, size_t k, cfx_compared *out);
/* The worst of what the first graph returns. False if nothing of that was compared. */
CFX_API bool cfx_comparison_result(const cfx_comparison *c, cfx_closeness *out);
/* The layer that adds the greatest error of its own, of those for which `skip` (may be NULL) is
 * false: the one to keep in float next. What is skipped is kept already: where its value is rounded
 * all the same, those that read it as integers add that. False if there is none. */
CFX_API bool cfx_comparison_worst_own(cfx_comparison *c, bool (*skip)(void *ctx, const char *name),
                                      void *ctx, cfx_compared *out);

typedef enum cfx_comparison_format {
    CFX_COMPARISON_TABLE,  /* for people, the worst first, with a line about the result */
    CFX_COMPARISON_JSON    /* the same for programs: {"result": {...}, "layers": [...]} */
} cfx_comparison_format;

/* Prints at most `most` layers (0: all), in lines of at most `width` columns (0: any). */
CFX_API cfx_status cfx_comparison_print(cfx_comparison *c, cfx_comparison_format format,
                                        size_t width, size_t most, cfx_sink sink, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
