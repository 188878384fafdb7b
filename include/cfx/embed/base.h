/* For language bindings and back ends; may change between versions.
 *
 * embed/base.h - status codes as Python exceptions, and spelling suggestions.
 */
#ifndef CFX_EMBED_BASE_H
#define CFX_EMBED_BASE_H

#include <cfx/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name of the Python exception for a status; NULL for OK and HOST. Any int is accepted. */
CFX_API const char *cfx_status_exception(cfx_status status);

/* ---- misspelled words ---------------------------------------------------------------------- */

/* Finds the word nearest to a misspelled one, for "did you mean": begin, add each candidate, then
 * read `best`, which is NULL if none is close. The words are borrowed until then. */
typedef struct cfx_nearest {
    const char *word;
    const char *best;
    size_t limit;  /* edit distance that a better word must stay below */
} cfx_nearest;
CFX_API void cfx_nearest_begin(cfx_nearest *near, const char *word);
CFX_API void cfx_nearest_add(cfx_nearest *near, const char *candidate);

#ifdef __cplusplus
}
#endif
#endif
