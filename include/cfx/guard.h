/* guard.h - what a captured graph assumes of its inputs, checked before it runs.
 *
 * A program that is captured once asks for sizes and numbers: `if x.shape[0] > 1`. The graph holds
 * only for inputs that give the same answers. A guard is such a question, over the sizes of inputs
 * that are tensors and over inputs that are numbers; with the answer, and the line that asked:
 *
 *     x.shape[0] * 2 > 7    True    "model.py:12"
 *
 * Expressions mean what they mean in Python: floor division rounds down, integers and floats
 * compare exactly. But integers have 64 bits: a guard whose numbers need more does not hold.
 *
 *     cfx_guards *guards = cfx_guards_new(names, n, NULL, &err);
 *     cfx_guards_parse(guards, text, size, &err);
 *     for (size_t i = 0; i < cfx_guards_num_terms(guards); i++)
 *         values[i] = ...;                          what the terms are in this call
 *     if (!cfx_guards_hold(guards, values, &which, &err)) ...
 *
 * embed/guard.h makes guards from a graph.
 */
#ifndef CFX_GUARD_H
#define CFX_GUARD_H

#include <cfx/datum.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cfx_guard_kind {
#define CFX_GUARD_KIND(id, name) CFX_GUARD_##id,
#include <cfx/guard.def>
#undef CFX_GUARD_KIND
    CFX_GUARD_KIND_COUNT
} cfx_guard_kind;

typedef enum cfx_guard_asker {
#define CFX_GUARD_ASKER(id, name) CFX_GUARD_BY_##id,
#include <cfx/guard.def>
#undef CFX_GUARD_ASKER
    CFX_GUARD_ASKER_COUNT
} cfx_guard_asker;

/* What people are told of a guard. */
typedef struct cfx_guard {
    cfx_guard_kind kind;
    cfx_guard_asker asker;
    cfx_datum value;   /* the answer: BOOL of a comparison, else the INT or FLOAT asked for */
    const char *line;  /* who asked: "model.py:12"; "" if nobody knows. Borrowed */
} cfx_guard;

/* Guards over some inputs, in order. It is data: any number of threads may check one, nobody may
 * change it meanwhile. */
typedef struct cfx_guards cfx_guards;

/* No guards yet, over `n` inputs. `names` say how users reach them ("x", "cache.keys[0]"); they are
 * copied, must be UTF-8, and no two are equal. NULL with *err set: CFX_E_VALUE, CFX_E_NOMEM. */
CFX_API cfx_guards *cfx_guards_new(const char *const *names, size_t n,
                                   const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_guards_free(cfx_guards *guards);  /* NULL is allowed */
/* With the same allocator; NULL with CFX_E_NOMEM. */
CFX_API cfx_guards *cfx_guards_copy(const cfx_guards *guards, cfx_error *err);

CFX_API size_t cfx_guards_num_inputs(const cfx_guards *guards);  /* how many it is over */
/* The i-th input's name; NULL past the last. */
CFX_API const char *cfx_guards_input(const cfx_guards *guards, size_t i);

CFX_API size_t cfx_guards_count(const cfx_guards *guards);  /* how many guards there are */
/* Describes the i-th guard; false past the last. */
CFX_API bool cfx_guards_get(const cfx_guards *guards, size_t i, cfx_guard *out);
/* Writes what the i-th guard asks: "x.shape[0] * 2 > 7"; CFX_E_INDEX past the last. */
CFX_API cfx_status cfx_guards_print_question(const cfx_guards *guards, size_t i, cfx_sink out,
                                             cfx_error *err);

/* ---- text ---------------------------------------------------------------------------------- */

/* Writes the guards, one to a line, and reads them back, adding them to the set:
 *
 *     size program "model.py:12": x.shape[0] * 2 > 7 is True
 *     size torch "model.py:13": x.shape[1] is 5
 *
 * Reading fails with CFX_E_SYNTAX and the place (also for a name that is not an input's),
 * CFX_E_LIMIT for expressions that are too long or nest too deeply, CFX_E_NOMEM; the set is then as
 * it was. Empty lines are skipped. */
CFX_API cfx_status cfx_guards_print(const cfx_guards *guards, cfx_sink out, cfx_error *err);
CFX_API cfx_status cfx_guards_parse(cfx_guards *guards, const char *text, size_t size,
                                    cfx_error *err);

/* ---- checking ------------------------------------------------------------------------------ */

#define CFX_GUARD_NUMBER SIZE_MAX

/* What the guards ask for, each once: the size `*dim` of input `*input`, or with CFX_GUARD_NUMBER
 * for `*dim` the number that the input is. False past the last. */
CFX_API size_t cfx_guards_num_terms(const cfx_guards *guards);
CFX_API bool cfx_guards_term(const cfx_guards *guards, size_t i, size_t *input, size_t *dim);

/* Whether all guards hold if the terms have these values, one for each term: INT, FLOAT, or INVALID
 * for an integer that does not fit in 64 bits. If not, *which (may be NULL) is the first that does
 * not, and *err says so, with its line: CFX_E_ASSERTION for another answer, or the status of an
 * expression without a value (a division by zero, a number that does not fit in 64 bits). */
CFX_API bool cfx_guards_hold(const cfx_guards *guards, const cfx_datum *values, size_t *which,
                             cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
