/* signature.h - what a graph in a file takes and gives.
 *
 *     x   float32[n, 3, 224, 224]      ->      result.logits, result.loss
 *
 * A signature lists the inputs of a graph in order, what is known of each, and what the graph was
 * captured for (guards). Nested arguments are listed leaf by leaf, under the names by which Python
 * reaches them: "cache.keys[0]". Inputs that the model itself keeps from run to run are its state:
 * they follow the others. It is data: any number of threads may use one.
 */
#ifndef CFX_SIGNATURE_H
#define CFX_SIGNATURE_H

#include <cfx/graph.h>
#include <cfx/guard.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_signature cfx_signature;

/* One input. Text is borrowed from the signature. */
typedef struct cfx_signature_input {
    const char *name;
    cfx_datum_kind kind;    /* TENSOR, INT, FLOAT, BOOL; INVALID: anything */
    cfx_dtype dtype;        /* of a TENSOR; CFX_DTYPE_COUNT if it is not known */
    int rank;               /* and its number of dimensions; -1 if it is not known */
    const int64_t *sizes;   /* and its sizes, -1 for one that may differ from call to call */
    const char *const *dims;  /* and what those are called: "n"; NULL for one without a name */
    bool state;             /* kept by the model: a session has it */
} cfx_signature_input;

/* One result of the tuple that the graph returns. */
typedef struct cfx_signature_result {
    const char *name;       /* "result.logits" */
    bool state;             /* kept by the model under this name */
} cfx_signature_result;

/* Reads signature.ir of a package (docs/format.md). The allocator (NULL: malloc) must outlive the
 * result. NULL with *err set: CFX_E_SYNTAX; CFX_E_VALUE with the part that is wrong; CFX_E_NOMEM.
 */
CFX_API cfx_signature *cfx_signature_parse(const char *text, size_t size,
                                           const cfx_allocator *allocator, cfx_error *err);
/* The signature of a graph of which nothing else is known: names of placeholders. */
CFX_API cfx_signature *cfx_signature_of_graph(const cfx_graph *g, const cfx_allocator *allocator,
                                              cfx_error *err);
CFX_API void cfx_signature_free(cfx_signature *s);  /* NULL is allowed */

/* The i-th input or result; false past the last. A signature lists no results if the graph returns
 * one value as it is. */
CFX_API bool cfx_signature_input_at(const cfx_signature *s, size_t i, cfx_signature_input *out);
CFX_API bool cfx_signature_result_at(const cfx_signature *s, size_t i, cfx_signature_result *out);
/* How many inputs a caller gives: those that are not state. They come first. */
CFX_API size_t cfx_signature_num_arguments(const cfx_signature *s);

/* Whether values, one for each input, are what the graph was captured for: kinds, types, sizes, and
 * guards. INVALID values (defaults) are not looked at. CFX_E_ASSERTION with the input or the guard
 * and its line if not. */
CFX_API cfx_status cfx_signature_check(const cfx_signature *s, const cfx_datum *values, size_t n,
                                       cfx_error *err);

/* One line for each input, the results, and what the graph assumes. */
CFX_API cfx_status cfx_signature_print(const cfx_signature *s, cfx_sink out, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
