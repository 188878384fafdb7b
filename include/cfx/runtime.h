/* runtime.h - operators that compute, and graphs that run.
 *
 *     cfx_runtime *rt = cfx_runtime_new(NULL, &err);
 *     cfx_datum args[] = {a, b};
 *     cfx_datum sum = cfx_operator_run(rt, CFX_OPID_add, args, 2, &err);      one operator
 *
 *     cfx_program *p = cfx_program_new(g, state, NULL, &err);                 a graph
 *     cfx_datum y = cfx_program_run(p, rt, inputs, n, &err);
 *
 * Every operator has a rule that says what its results are (type, shape, whether the arguments
 * fit), and a kernel that computes them. Single calls and programs share both.
 */
#ifndef CFX_RUNTIME_H
#define CFX_RUNTIME_H

#include <cfx/datum.h>
#include <cfx/dim.h>
#include <cfx/ops.h>
#include <cfx/state.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- runtime ------------------------------------------------------------------------------- */

/* What computing needs: threads, a random generator, memory. Nothing else is global, so any number
 * of runtimes work side by side; one can be used by several threads at once (they share its
 * threads, and draw from one generator). */
typedef struct cfx_runtime cfx_runtime;
struct cfx_library;

typedef enum cfx_isa { CFX_ISA_PLAIN, CFX_ISA_AVX2, CFX_ISA_AVX512, CFX_ISA_COUNT } cfx_isa;

typedef struct cfx_runtime_options {
    const cfx_allocator *allocator;
    unsigned threads;  /* 0: as many as the machine has */
    uint64_t seed;
    bool reference;    /* the plain kernels only, in one thread: the oracle */
    bool limit_isa;    /* use at most `isa`; else what the machine has */
    cfx_isa isa;
    const struct cfx_library *library;  /* operators of one's own (library.h): retained; or NULL */
    /* Whether a program that runs is to end with CFX_E_INTERRUPTED; NULL: never. Asked by the
     * thread that runs it, before every instruction and every turn of a loop, so it should be
     * quick; an instruction that has begun is done to its end. */
    bool (*interrupted)(void *ctx);
    void *interrupted_ctx;
} cfx_runtime_options;

/* `options` NULL, or all zero: malloc, all threads of the machine, seed 0, its best instructions.
 * NULL with CFX_E_NOMEM. The allocator must outlive the runtime and what is computed with it. */
CFX_API cfx_runtime *cfx_runtime_new(const cfx_runtime_options *options, cfx_error *err);
/* Ends its threads; nobody may be computing with it. Results live on. NULL is allowed. */
CFX_API void cfx_runtime_free(cfx_runtime *rt);
CFX_API unsigned cfx_runtime_threads(const cfx_runtime *rt);  /* the caller's own is one of them */
/* Random numbers from here on are those that follow `seed`. */
CFX_API void cfx_runtime_seed(cfx_runtime *rt, uint64_t seed);
CFX_API const cfx_allocator *cfx_runtime_allocator(const cfx_runtime *rt);    /* never NULL */

/* ---- one operator -------------------------------------------------------------------------- */

/* Whether the runtime computes it. */
CFX_API bool cfx_operator_has_kernel(cfx_operator op);

/* Computes `op`. `args` are by the row's parameters, in order; missing or INVALID ones take their
 * defaults. Returns what the row returns, the caller's to release: a TUPLE if it has several
 * results. INVALID with *err set if it fails: the message names the operator, the types and shapes
 * it was given, and what is wrong. Arguments are borrowed; a row that writes in place writes to
 * them, and a view shares their memory. */
CFX_API cfx_datum cfx_operator_run(cfx_runtime *rt, cfx_operator op, const cfx_datum *args,
                                   size_t n, cfx_error *err);

/* The types and shapes of the results, from those of the arguments: nothing is computed or written,
 * tensors may be abstract and come back abstract. `dims` holds the symbols of their sizes, and
 * notes what had to be assumed; NULL if all sizes are numbers. Fails as cfx_operator_run. */
CFX_API cfx_datum cfx_operator_infer(cfx_runtime *rt, cfx_dims *dims, cfx_operator op,
                                     const cfx_datum *args, size_t n, cfx_error *err);

/* ---- graphs -------------------------------------------------------------------------------- */

/* A graph made ready to run: a flat list of instructions, with the constants converted, the
 * parameters looked up, and for every value the instruction after which nobody needs it. Immutable:
 * any number of threads can run it, each with its own values. */
typedef struct cfx_program cfx_program;

typedef struct cfx_program_options {
    const cfx_allocator *allocator;     /* must outlive the program */
    const struct cfx_library *library;  /* operators of one's own (library.h): retained; or NULL */
} cfx_program_options;

/* Of a lowered graph (lower.h): every call is an operator with its arguments by the row's
 * parameters. The program keeps the tensors of `state` that the graph reads (NULL: it reads none),
 * but neither `g` nor `state`. `options` may be NULL. Fails with CFX_E_KEY if a parameter is
 * missing, CFX_E_TYPE for a call that is no operator with a kernel: all of them are named. */
CFX_API cfx_program *cfx_program_new(const cfx_graph *g, const cfx_state *state,
                                     const cfx_program_options *options, cfx_error *err);
CFX_API void cfx_program_free(cfx_program *p);  /* nobody may be running it; NULL is allowed */

/* One for each placeholder. */
CFX_API size_t cfx_program_num_inputs(const cfx_program *p);
/* The i-th input's name; NULL past the last. */
CFX_API const char *cfx_program_input(const cfx_program *p, size_t i);

/* Runs it, and returns what the graph's output is, the caller's to release. `inputs` are by
 * placeholder, and borrowed; those past `n`, and INVALID ones, take the placeholders' defaults. If
 * it fails, INVALID: the message has the user's line and the node's name. */
CFX_API cfx_datum cfx_program_run(const cfx_program *p, cfx_runtime *rt, const cfx_datum *inputs,
                                  size_t n, cfx_error *err);

/* Propagates types and shapes. `each` (may be NULL) is told what each node of the graph gives, by
 * its name; inside regions with the path of the nodes around it ("cond/add"). The name and the
 * result are borrowed; a status other than CFX_OK ends it with that status. `dims` as in
 * cfx_operator_infer. */
typedef cfx_status cfx_infer_fn(void *ctx, const char *node, cfx_datum result);
CFX_API cfx_datum cfx_program_infer(const cfx_program *p, cfx_runtime *rt, cfx_dims *dims,
                                    const cfx_datum *inputs, size_t n, cfx_infer_fn *each,
                                    void *ctx, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
