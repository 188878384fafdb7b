/* runtime.h - runs single operators and whole graphs.
 *
 *     cfx_runtime *rt = cfx_runtime_new(NULL, &err);
 *     cfx_datum args[] = {a, b};
 *     cfx_datum sum = cfx_operator_run(rt, CFX_OPID_add, args, 2, &err);      one operator
 *
 *     cfx_program *p = cfx_program_new(g, state, NULL, &err);                 a graph
 *     cfx_datum y = cfx_program_run(p, rt, inputs, n, &err);
 *
 * Every operator has a rule that describes its results (types, shapes, and whether the arguments
 * fit), and a kernel that computes them. Single calls and programs use the same rules and kernels.
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

/* Threads, a random generator and memory. Nothing else is global, so any number of runtimes can
 * exist side by side. Several threads may use one runtime at once; they share its threads and its
 * random generator. */
typedef struct cfx_runtime cfx_runtime;
struct cfx_library;

typedef enum cfx_isa {
    CFX_ISA_PLAIN,  /* any machine */
    CFX_ISA_AVX2,   /* x86-64 */
    CFX_ISA_AVX512,
    CFX_ISA_NEON,   /* 64-bit ARM */
    CFX_ISA_COUNT
} cfx_isa;

/* What the operands of products are rounded to; sums are always float32. */
typedef enum cfx_precision {
    CFX_PRECISION_FLOAT32,
    CFX_PRECISION_BF16,
    CFX_PRECISION_COUNT
} cfx_precision;

/* A part of a program that was computed: a call, or several that a plan computes at once. Plans are
 * told as well when they are made: the kernels "plan of 7 nodes" and "packing". Texts are valid
 * while it is reported. */
typedef struct cfx_step {
    const char *node;     /* the last node that it computes */
    const char *file;     /* the user's line; or NULL */
    uint32_t line;
    const char *kernel;   /* how: "conv2d", "product, tiles of 8 x 48" */
    uint64_t begin, end;  /* in nanoseconds of a clock that only rises */
    double flops;         /* operations; 0 if it is not known */
    uint64_t bytes;       /* of the tensors that it reads and writes */
} cfx_step;
typedef void cfx_step_fn(void *ctx, const cfx_step *step);

typedef struct cfx_runtime_options {
    const cfx_allocator *allocator;
    unsigned threads;  /* with the caller's; 0: as many as this process may use (processors that it
                          may run on, and its container's quota, rounded up); 1: no other thread */
    uint64_t seed;
    bool reference;    /* only the plain reference kernels, single-threaded */
    bool limit_isa;    /* use at most `isa`; else the best of the machine */
    cfx_isa isa;
    const struct cfx_library *library;  /* custom operators (library.h): retained; or NULL */
    /* Whether a running program should stop with CFX_E_INTERRUPTED; NULL: never. Called by the
     * thread that runs the program, before every instruction and every loop iteration, so it should
     * be fast. An instruction that has started is completed. */
    bool (*interrupted)(void *ctx);
    void *interrupted_ctx;
    /* Where the program's print(...) goes: text in UTF-8, one call for each print. Called by the
     * thread that runs the program. write NULL: a program that prints fails. */
    cfx_sink print;
    /* Is told what was computed, by the thread that runs the program; NULL: nobody (profile.h). */
    cfx_step_fn *step;
    void *step_ctx;
} cfx_runtime_options;

/* `options` NULL or all zero: malloc, as many threads as this process may use, seed 0, the best
 * instruction set. The allocator must outlive the runtime and everything computed with it. NULL
 * with CFX_E_NOMEM. */
CFX_API cfx_runtime *cfx_runtime_new(const cfx_runtime_options *options, cfx_error *err);
/* Stops its threads; no thread may be using it. Results stay valid. NULL is allowed. */
CFX_API void cfx_runtime_free(cfx_runtime *rt);
/* How many there are, the caller's included: fewer than asked for if the system did not give more.
 * In the child of a fork() its first parallel work starts them anew. */
CFX_API unsigned cfx_runtime_threads(const cfx_runtime *rt);
/* Restarts the random generator from `seed`. */
CFX_API void cfx_runtime_seed(cfx_runtime *rt, uint64_t seed);
CFX_API const cfx_allocator *cfx_runtime_allocator(const cfx_runtime *rt);    /* never NULL */

/* ---- one operator -------------------------------------------------------------------------- */

/* Whether the runtime can compute this operator. */
CFX_API bool cfx_operator_has_kernel(cfx_operator op);

/* Computes `op`. `args` are in the order of the row's parameters; missing or INVALID ones take
 * their defaults. Returns the result, owned by the caller: a TUPLE if the row has several. INVALID
 * with *err set on failure: the message names the operator, the types and shapes of the arguments,
 * and what is wrong. Arguments are borrowed; an in-place operator writes to them, and a view
 * aliases their memory. */
CFX_API cfx_datum cfx_operator_run(cfx_runtime *rt, cfx_operator op, const cfx_datum *args,
                                   size_t n, cfx_error *err);

/* The types and shapes of the results, from those of the arguments. Nothing is computed or written;
 * tensors may be abstract, and results are abstract. `dims` holds the symbols of their sizes and
 * records assumptions; NULL if all sizes are numbers. Fails like cfx_operator_run. */
CFX_API cfx_datum cfx_operator_infer(cfx_runtime *rt, cfx_dims *dims, cfx_operator op,
                                     const cfx_datum *args, size_t n, cfx_error *err);

/* ---- graphs -------------------------------------------------------------------------------- */

/* A graph prepared for running: a flat list of instructions, with converted constants, resolved
 * parameters and, for every value, its last use. Immutable: any number of threads can run it, each
 * with its own values. */
typedef struct cfx_program cfx_program;

typedef struct cfx_program_options {
    const cfx_allocator *allocator;     /* must outlive the program */
    const struct cfx_library *library;  /* custom operators (library.h): retained; or NULL */
} cfx_program_options;

/* Prepares a lowered graph (lower.h), in which every call is an operator with its arguments in the
 * order of the row's parameters. The program retains the tensors of `state` that the graph reads
 * (NULL: it reads none), but neither `g` nor `state`. `options` may be NULL. NULL with *err set:
 * CFX_E_KEY if a parameter is missing; CFX_E_TYPE for calls that are not operators with a kernel
 * (the message names all of them). */
CFX_API cfx_program *cfx_program_new(const cfx_graph *g, const cfx_state *state,
                                     const cfx_program_options *options, cfx_error *err);
CFX_API void cfx_program_free(cfx_program *p);  /* must not be running; NULL is allowed */

/* The number of inputs: one for each placeholder. */
CFX_API size_t cfx_program_num_inputs(const cfx_program *p);
/* The i-th input's name; NULL past the last. */
CFX_API const char *cfx_program_input(const cfx_program *p, size_t i);

/* Runs the program and returns the value of the graph's output, owned by the caller. `inputs` are
 * borrowed, one for each placeholder; those past `n`, and INVALID ones, take the placeholders'
 * defaults. INVALID with *err set on failure; the message has the user's line and the name of the
 * node. */
CFX_API cfx_datum cfx_program_run(const cfx_program *p, cfx_runtime *rt, const cfx_datum *inputs,
                                  size_t n, cfx_error *err);

/* Propagates types and shapes without computing, and returns the result, owned by the caller.
 * `each` (may be NULL) receives the name and the result of each node; a node in a region has a path
 * of names ("cond/add"). Both are borrowed. A status other than CFX_OK from it stops the call and
 * is returned. `dims` as in cfx_operator_infer. */
typedef cfx_status cfx_infer_fn(void *ctx, const char *node, cfx_datum result);
CFX_API cfx_datum cfx_program_infer(const cfx_program *p, cfx_runtime *rt, cfx_dims *dims,
                                    const cfx_datum *inputs, size_t n, cfx_infer_fn *each,
                                    void *ctx, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
