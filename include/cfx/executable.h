/* executable.h - a model from a file, ready to run.
 *
 *     cfx_executable *e = cfx_executable_load("resnet18.cfx", NULL, &err);
 *     cfx_datum y = cfx_executable_run(e, NULL, rt, &x, 1, NULL, &err);
 *     cfx_executable_free(e);
 *
 * An executable has the graphs of a .cfx file as compiled programs (compile.h), with their weights
 * and signatures. It is immutable: any number of threads may run it at once, without a lock. What a
 * model keeps from one run to the next, a cache or a counter, is in a session that the caller has
 * for each user.
 */
#ifndef CFX_EXECUTABLE_H
#define CFX_EXECUTABLE_H

#include <cfx/compile.h>
#include <cfx/package.h>
#include <cfx/session.h>
#include <cfx/signature.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_executable cfx_executable;

/* All zero: map the file, check its structure alone. */
typedef struct cfx_executable_options {
    cfx_package_options package;        /* how the file is read */
    const cfx_state *weights;           /* of a file whose weights are kept elsewhere; or NULL */
    const struct cfx_library *library;  /* custom operators (library.h): retained; or NULL */
    const cfx_compile_options *compile; /* or NULL */
} cfx_executable_options;

/* Loads a file and prepares it. NULL with *err set: as cfx_package_load; CFX_E_SYNTAX or
 * CFX_E_VALUE with the entry for a text that is wrong; CFX_E_TYPE for calls that have no kernel
 * (the message names them); CFX_E_UNSUPPORTED for a graph that writes to its weights, as norms do
 * in training. `options` may be NULL. */
CFX_API cfx_executable *cfx_executable_load(const char *path, const cfx_executable_options *options,
                                            cfx_error *err);
/* The same from a package, which may be freed afterwards. */
CFX_API cfx_executable *cfx_executable_new(const cfx_package *p,
                                           const cfx_executable_options *options, cfx_error *err);
CFX_API void cfx_executable_free(cfx_executable *e);  /* must not be running; NULL is allowed */

CFX_API const char *cfx_executable_model(const cfx_executable *e);  /* the name of its class */
/* How many graphs it has: one for each kind of inputs that the model was captured for. */
CFX_API size_t cfx_executable_num_graphs(const cfx_executable *e);
/* What the i-th graph takes and gives: borrowed; NULL past the last. */
CFX_API const cfx_signature *cfx_executable_signature(const cfx_executable *e, size_t i);

/* A session with the values that the model had when it was saved; empty for a model without state.
 * NULL with CFX_E_NOMEM. */
CFX_API cfx_session *cfx_executable_session(const cfx_executable *e, cfx_error *err);

/* Runs the first graph whose signature the inputs and the session agree with, and returns its
 * results, owned by the caller: those that the signature lists and the session does not keep, as a
 * TUPLE; or, of a graph whose signature lists none, what the graph returns. `inputs` are borrowed,
 * in the order of the signature; those past `n`, and INVALID ones, take the defaults of the graph.
 * `session` may be NULL for a model without state. *graph (may be NULL) is the graph that ran.
 * INVALID with *err set on failure: CFX_E_ASSERTION with what the first graph said if none agrees;
 * else as cfx_program_run. */
CFX_API cfx_datum cfx_executable_run(const cfx_executable *e, cfx_session *session, cfx_runtime *rt,
                                     const cfx_datum *inputs, size_t n, size_t *graph,
                                     cfx_error *err);

/* The same with the i-th graph alone. *agrees becomes whether its signature agrees with the inputs;
 * if not, nothing has run, and *err says why. CFX_E_INDEX past the last. */
CFX_API cfx_datum cfx_executable_run_graph(const cfx_executable *e, size_t i, cfx_session *session,
                                           cfx_runtime *rt, const cfx_datum *inputs, size_t n,
                                           bool *agrees, cfx_error *err);

/* Writes the plans that runs have made so far (compile.h): one for each kind of inputs. */
CFX_API cfx_status cfx_executable_print_plans(const cfx_executable *e, cfx_sink sink,
                                              cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
