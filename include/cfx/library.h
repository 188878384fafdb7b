/* library.h - custom operators: a schema, a shape rule and a kernel, added at run time.
 *
 *     static cfx_status swish_infer(cfx_kernel_call *c)
 *     {
 *         return cfx_kernel_describe_like(c, 0, 0);     result 0 is like argument 0
 *     }
 *
 *     static cfx_status swish_kernel(cfx_kernel_call *c)
 *     {
 *         cfx_tensor *x = cfx_kernel_dense(c, 0, CFX_DTYPE_FLOAT32);
 *         cfx_tensor *y = cfx_kernel_result(c, 0);
 *         ...
 *     }
 *
 *     static const cfx_custom_operator rows[] = {
 *         {.name = "mylib.swish", .schema = "(Tensor x, float beta=1.0) -> Tensor",
 *          .infer = swish_infer, .kernel = swish_kernel},
 *     };
 *     cfx_library *lib = cfx_library_new(rows, 1, NULL, NULL, &err);
 *
 * There is no global registry. Pass a library to everything that should know its operators:
 *   - A runtime (cfx_runtime_options.library) calls them by name: cfx_operator_run_named, and
 *     cfx_apply_named in a scope (scope.h).
 *   - Passes and lowering (cfx_module_tree.library; a tree with no other field set will do) keep a
 *     call_function with that target, bind its arguments by the schema, and know its effects: what
 *     it writes to, what it aliases, whether it draws random numbers.
 *   - A program (cfx_program_options.library) runs them like any other operator, and keeps the
 *     library alive.
 *
 * A library is immutable, so any number of threads, runtimes and programs can share it. Several
 * threads may call a rule or kernel at once; both must be thread-safe.
 */
#ifndef CFX_LIBRARY_H
#define CFX_LIBRARY_H

#include <cfx/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One call of a custom operator. Valid only while its rule or kernel runs. */
typedef struct cfx_kernel_call cfx_kernel_call;

/* A rule or a kernel. Returns CFX_OK, or a status; cfx_kernel_fail sets the message. An error
 * reported through cfx_kernel_error also counts as a failure. */
typedef cfx_status cfx_kernel_fn(cfx_kernel_call *c);

typedef struct cfx_custom_operator {
    /* Dotted, as graphs spell it: "mylib.swish", "torchvision.ops.nms". Must not be a name of the
     * operator table. */
    const char *name;

    /* As in ops.def: "(Tensor x, int[2] size, *, float? eps=None) -> (Tensor, int)". Types are
     * Tensor, int, float, bool, Scalar, str, ScalarType, MemoryFormat, Layout, Device, Generator
     * and Any. [] makes a list, [2] a list of two (a single number stands for both), and '?' allows
     * None. The operator writes to "Tensor(a!) x"; a result "Tensor(a)" may alias it, and a result
     * "Tensor(a!)" is the argument itself. Up to 28 parameters and 8 results. */
    const char *schema;

    unsigned flags;  /* cfx_operator_flag or'ed: what the schema cannot express */

    /* The rule: describes each result from the types and sizes of the arguments. Tensors may be
     * abstract and sizes symbolic (dim.h), so it must not read elements. It runs before each call
     * of the kernel, and alone when shapes are propagated. NULL: shapes cannot be propagated, and
     * the kernel describes its own results. */
    cfx_kernel_fn *infer;

    /* The kernel: computes the results. NULL: passes know the operator, but it cannot run. */
    cfx_kernel_fn *kernel;

    void *ctx;                   /* for the rule and the kernel: cfx_kernel_context */
    void (*release)(void *ctx);  /* called when the library is freed; may be NULL */
} cfx_custom_operator;

/* ---- libraries ----------------------------------------------------------------------------- */

typedef struct cfx_library cfx_library;

/* A library of `n` rows and all rows of `base` (may be NULL), which it retains. Names and schemas
 * are copied. The caller gets one reference. NULL with *err set, and without any call of `release`:
 * CFX_E_SYNTAX for a schema that cannot be parsed (the message says which parameter is wrong, and
 * why); CFX_E_VALUE for a name that is not dotted, occurs twice or is in the operator table;
 * CFX_E_NOMEM. */
CFX_API cfx_library *cfx_library_new(const cfx_custom_operator *rows, size_t n,
                                     const cfx_library *base, const cfx_allocator *allocator,
                                     cfx_error *err);
/* Reference-counted; thread-safe. NULL is allowed. */
CFX_API const cfx_library *cfx_library_retain(const cfx_library *lib);  /* returns `lib` */
CFX_API void cfx_library_release(const cfx_library *lib);

/* ---- calling ------------------------------------------------------------------------------- */

/* Like cfx_operator_run and cfx_operator_infer, for an operator of the runtime's library. CFX_E_KEY
 * if the library has no operator of this name. */
CFX_API cfx_datum cfx_operator_run_named(cfx_runtime *rt, const char *name, const cfx_datum *args,
                                         size_t n, cfx_error *err);
CFX_API cfx_datum cfx_operator_infer_named(cfx_runtime *rt, cfx_dims *dims, const char *name,
                                           const cfx_datum *args, size_t n, cfx_error *err);

/* ---- for rules and kernels ------------------------------------------------------------------ */

/* Argument i, one for each parameter, converted as the schema promises: defaults are filled in, a
 * number for a Tensor is wrapped in a tensor, 3 for int[2] becomes [3, 3], an int for a float is
 * converted, and NONE occurs only if the type ends in '?'. Borrowed; INVALID past the last. Tensors
 * may have any strides, and any type that the rule accepts. (A Scalar may be a tensor of one
 * element.) */
CFX_API cfx_datum cfx_kernel_arg(const cfx_kernel_call *c, size_t i);
CFX_API cfx_tensor *cfx_kernel_tensor(const cfx_kernel_call *c, size_t i);  /* or NULL */

/* A tensor argument as a contiguous tensor of this type: the argument itself, or a converted copy.
 * A new reference, or NULL with the error set. For kernels that only read it. */
CFX_API cfx_tensor *cfx_kernel_dense(cfx_kernel_call *c, size_t i, cfx_dtype dtype);

/* In a rule: declares result i as a tensor of this type and these sizes; or of the type and sizes
 * of argument k. A kernel may call it again for sizes that the rule left as CFX_DIM_UNKNOWN. */
CFX_API cfx_status cfx_kernel_describe(cfx_kernel_call *c, size_t i, cfx_dtype dtype,
                                       const int64_t *sizes, size_t ndim);
CFX_API cfx_status cfx_kernel_describe_like(cfx_kernel_call *c, size_t i, size_t k);

/* Sets result i to `d` and takes its reference, even if it fails: a number, a list, a view of an
 * argument with the same alias letter, or a tensor that another operator computed. It must match
 * the schema, and in a kernel what the rule declared. */
CFX_API cfx_status cfx_kernel_set(cfx_kernel_call *c, size_t i, cfx_datum d);

/* In a kernel: the tensor of result i, to fill in; borrowed. The first call allocates it,
 * contiguous and uninitialised; a result "Tensor(a!)" is the argument itself, with its strides.
 * NULL with the error set. Every result must be requested or set; otherwise the call fails. */
CFX_API cfx_tensor *cfx_kernel_result(cfx_kernel_call *c, size_t i);

/* The runtime of the call: its threads and random numbers (below), and its allocator. It can call
 * other operators: cfx_operator_run in a kernel, cfx_operator_infer in a rule, with these
 * `dims`. */
CFX_API cfx_runtime *cfx_kernel_runtime(const cfx_kernel_call *c);
CFX_API cfx_dims *cfx_kernel_dims(const cfx_kernel_call *c);    /* NULL: all sizes are numbers */
CFX_API void *cfx_kernel_context(const cfx_kernel_call *c);     /* the row's `ctx` */
CFX_API cfx_error *cfx_kernel_error(cfx_kernel_call *c);        /* for other calls; never NULL */

/* Sets the message and returns the status. The first failure wins, so a kernel needs only one check
 * at the end. The message says what is wrong with the arguments; cfx adds the operator, their types
 * and shapes, and the user's line. */
CFX_API cfx_status cfx_kernel_fail(cfx_kernel_call *c, cfx_status status, const char *format, ...)
    CFX_PRINTF(3, 4);

/* ---- threads and random numbers for kernels ------------------------------------------------ */

/* Calls fn(ctx, begin, end) for chunks of [0, n), each of at least `grain` elements except the
 * last, on the runtime's threads and the calling thread. Returns when all chunks are done. Threads
 * that call it at the same time, or run programs with the same runtime, share the runtime's threads
 * and never wait for each other; a call that finds no thread free, a nested one too, runs on the
 * calling thread alone. */
typedef void cfx_range_fn(void *ctx, int64_t begin, int64_t end);
CFX_API void cfx_runtime_parallel(cfx_runtime *rt, int64_t n, int64_t grain, cfx_range_fn *fn,
                                  void *ctx);

/* cfx_runtime_draw takes the next `n` numbers of the runtime's random generator. The i-th of them
 * depends only on the draw and on i, so any thread can compute any of them, and the result does not
 * depend on the number of threads. */
typedef struct cfx_draws {
    uint64_t seed;
    uint64_t first;
} cfx_draws;
CFX_API cfx_draws cfx_runtime_draw(cfx_runtime *rt, int64_t n);
CFX_API uint64_t cfx_draws_bits(cfx_draws r, int64_t i);
CFX_API double cfx_draws_uniform(cfx_draws r, int64_t i);  /* in [0, 1) */
CFX_API double cfx_draws_normal(cfx_draws r, int64_t i);   /* mean 0, variance 1 */

#ifdef __cplusplus
}
#endif
#endif
