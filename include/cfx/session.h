/* session.h - values that a program keeps from one run to the next.
 *
 * A model may change attributes of its own: a counter, a cache that grows. A program has no memory,
 * so such attributes are inputs of the graph, and their new values are results of it. A session
 * holds the present values by name; each run takes them, and replaces them by what it computed:
 *
 *     static const cfx_kept_input takes[] = {{.name = "calls", .input = 1, .kind = CFX_DATUM_INT}};
 *     static const cfx_kept_result keeps[] = {{.name = "calls", .result = 0}};
 *     const cfx_keeping keeping = {takes, 1, keeps, 1};
 *
 *     cfx_session *s = cfx_session_new(NULL, &err);
 *     cfx_session_set(s, "calls", cfx_datum_int(0), &err);
 *     cfx_datum y = cfx_session_run(s, p, &keeping, rt, &x, 1, &err);       calls is 1 now
 *
 * Several programs may share a session: the graphs of one model. Only one thread may use a session
 * at a time.
 */
#ifndef CFX_SESSION_H
#define CFX_SESSION_H

#include <cfx/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_session cfx_session;

/* A session without values; NULL with CFX_E_NOMEM. The allocator (NULL: malloc) must outlive it. */
CFX_API cfx_session *cfx_session_new(const cfx_allocator *allocator, cfx_error *err);
/* Releases its values. NULL is allowed. */
CFX_API void cfx_session_free(cfx_session *s);

/* Adds a value, or replaces the value of this name. Copies the name and retains the value. */
CFX_API cfx_status cfx_session_set(cfx_session *s, const char *name, cfx_datum value,
                                   cfx_error *err);
/* The value of this name: borrowed, until it is replaced; INVALID if there is none. */
CFX_API cfx_datum cfx_session_get(const cfx_session *s, const char *name);

CFX_API size_t cfx_session_size(const cfx_session *s);  /* the number of values */
/* The i-th name, in the order in which names were first set: borrowed; NULL past the last. */
CFX_API const char *cfx_session_name(const cfx_session *s, size_t i);

/* An input of a program that is taken from a session, and what the program was made for. */
typedef struct cfx_kept_input {
    const char *name;
    size_t input;         /* which input of the program */
    cfx_datum_kind kind;  /* that the value must have */
    cfx_dtype dtype;      /* and, of a TENSOR, its type; CFX_DTYPE_COUNT: any */
    int rank;             /* and its number of dimensions; -1: any */
} cfx_kept_input;

/* A result of a program that a session keeps. */
typedef struct cfx_kept_result {
    const char *name;
    size_t result;  /* which item of the tuple or list that the program returns */
} cfx_kept_result;

/* What a program takes from a session and what it leaves there. */
typedef struct cfx_keeping {
    const cfx_kept_input *takes;
    size_t num_takes;
    const cfx_kept_result *keeps;
    size_t num_keeps;
} cfx_keeping;

/* Runs `p`. Its inputs are those of `keeping`, from the session, and between them `inputs`, in the
 * order of the program. Returns a TUPLE of the results that the session does not keep, owned by the
 * caller. A value is replaced only when the run has succeeded; but what a program writes into a
 * tensor that the session holds stays written.
 * INVALID with *err set on failure: CFX_E_KEY if the session lacks a value; CFX_E_TYPE if a value
 * is not what the program was made for, or if the program has no such result; else as
 * cfx_program_run. */
CFX_API cfx_datum cfx_session_run(cfx_session *s, const cfx_program *p, const cfx_keeping *keeping,
                                  cfx_runtime *rt, const cfx_datum *inputs, size_t n,
                                  cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
