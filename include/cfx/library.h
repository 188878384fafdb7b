/* library.h - operators of your own: a row at run time, with its schema, rule and kernel.
 *
 *     static cfx_status swish_infer(cfx_kernel_call *c)
 *     {
 *         return cfx_kernel_describe_like(c, 0, 0);     result 0 is as argument 0
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
 * Nothing is registered anywhere: a library is given to whoever is to know its operators.
 *   - A runtime (cfx_runtime_options.library) calls them by name: cfx_operator_run_named, and
 *     cfx_apply_named in a scope (scope.h).
 *   - Passes and lowering (cfx_module_tree.library; a table with nothing else in it will do) keep a
 *     call_function with that target, bind its arguments by the schema, and know its effects:
 *     what it writes to, what it shares memory with, whether it draws random numbers.
 *   - A program (cfx_program_options.library) runs them as any other operator; it keeps the library
 *     alive.
 *
 * A library never changes once it is made, so any number of threads, runtimes and programs can
 * share it. Rules and kernels may then be called by several threads at once, and must bear that.
 */
#ifndef CFX_LIBRARY_H
#define CFX_LIBRARY_H

#include <cfx/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One call of an operator of yours, while its rule or kernel runs: not to be kept. */
typedef struct cfx_kernel_call cfx_kernel_call;

/* A rule or a kernel: CFX_OK, or a status, with cfx_kernel_fail for the message. What is reported
 * through cfx_kernel_error counts as a failure, too. */
typedef cfx_status cfx_kernel_fn(cfx_kernel_call *c);

typedef struct cfx_custom_operator {
    /* Dotted, as graphs spell it: "mylib.swish", "torchvision.ops.nms". No name of the table. */
    const char *name;

    /* As in ops.def: "(Tensor x, int[2] size, *, float? eps=None) -> (Tensor, int)". Types are
     * Tensor, int, float, bool, Scalar, str, ScalarType, MemoryFormat, Layout, Device, Generator
     * and Any, as lists with [] or [2] (a single number stands for two), with '?' if they may be
     * None. "Tensor(a!) x" is written to; a result "Tensor(a)" may share its memory, and a result
     * "Tensor(a!)" is the argument itself. Up to 28 parameters and 8 results. */
    const char *schema;

    unsigned flags;  /* cfx_operator_flag or'ed: what the schema cannot say */

    /* The rule: says what each result is, from the arguments' types and sizes. Tensors may be
     * abstract and sizes symbols (dim.h): it must not look at elements. It is asked before each
     * call of the kernel, and alone when shapes are propagated. NULL: they cannot be, and the
     * kernel describes its results itself. */
    cfx_kernel_fn *infer;

    /* Computes. NULL: the operator is known to passes, but cannot be run. */
    cfx_kernel_fn *kernel;

    void *ctx;                   /* yours: cfx_kernel_context */
    void (*release)(void *ctx);  /* called with it when the library is gone; may be NULL */
} cfx_custom_operator;

/* ---- libraries ----------------------------------------------------------------------------- */

typedef struct cfx_library cfx_library;

/* A library of `n` rows, and of all those of `base` (may be NULL), which it retains. Names and
 * schemas are copied. NULL with *err set, and no `release` is called: CFX_E_SYNTAX for a schema
 * that cannot be read (what is wrong with which parameter), CFX_E_VALUE for a name that is no
 * dotted name, is there twice or is the table's, CFX_E_NOMEM. The caller has one reference. */
CFX_API cfx_library *cfx_library_new(const cfx_custom_operator *rows, size_t n,
                                     const cfx_library *base, const cfx_allocator *allocator,
                                     cfx_error *err);
/* Counted; the count may be changed by several threads at once. NULL is allowed. */
CFX_API const cfx_library *cfx_library_retain(const cfx_library *lib);  /* returns `lib` */
CFX_API void cfx_library_release(const cfx_library *lib);

/* ---- calling ------------------------------------------------------------------------------- */

/* As cfx_operator_run and cfx_operator_infer, of an operator of the runtime's library. CFX_E_KEY if
 * it has none of that name. */
CFX_API cfx_datum cfx_operator_run_named(cfx_runtime *rt, const char *name, const cfx_datum *args,
                                         size_t n, cfx_error *err);
CFX_API cfx_datum cfx_operator_infer_named(cfx_runtime *rt, cfx_dims *dims, const char *name,
                                           const cfx_datum *args, size_t n, cfx_error *err);

/* ---- what rules and kernels are written with ----------------------------------------------- */

/* The arguments, one for each parameter, in the form that the schema promises: defaults filled in,
 * a number for a Tensor wrapped, 3 for int[2] made [3, 3], an int for a float converted, NONE only
 * where the type ends in '?'. Borrowed; INVALID past the last. Tensors have any strides and types
 * that the rule lets pass. (A Scalar may be a tensor of one element.) */
CFX_API cfx_datum cfx_kernel_arg(const cfx_kernel_call *c, size_t i);
CFX_API cfx_tensor *cfx_kernel_tensor(const cfx_kernel_call *c, size_t i);  /* NULL if it is none */

/* An argument that is a tensor, as a contiguous one of this type: itself, or a converted copy. A
 * new reference, or NULL with the error set. For kernels that read. */
CFX_API cfx_tensor *cfx_kernel_dense(cfx_kernel_call *c, size_t i, cfx_dtype dtype);

/* In a rule: result i is a tensor of this type and these sizes; or of the type and the sizes of
 * argument k. A kernel may say so again where the rule said CFX_DIM_UNKNOWN. */
CFX_API cfx_status cfx_kernel_describe(cfx_kernel_call *c, size_t i, cfx_dtype dtype,
                                       const int64_t *sizes, size_t ndim);
CFX_API cfx_status cfx_kernel_describe_like(cfx_kernel_call *c, size_t i, size_t k);

/* Result i is this, whose reference is taken over also if it fails: a number, a list, a view of an
 * argument whose letter it has, a tensor that another operator computed. It must be what the schema
 * says, and in a kernel what the rule said. */
CFX_API cfx_status cfx_kernel_set(cfx_kernel_call *c, size_t i, cfx_datum d);

/* In a kernel: the tensor that result i is, to be filled: borrowed. It gets memory of its own when
 * it is first asked for, contiguous and not initialised; a result "Tensor(a!)" is the argument, in
 * its strides. NULL with the error set. A result that nobody asked for or set is an error. */
CFX_API cfx_tensor *cfx_kernel_result(cfx_kernel_call *c, size_t i);

/* What to compute with: its threads and random numbers (below), and its allocator. Other
 * operators can be called: cfx_operator_run in a kernel, cfx_operator_infer in a rule, with
 * these `dims`. */
CFX_API cfx_runtime *cfx_kernel_runtime(const cfx_kernel_call *c);
CFX_API cfx_dims *cfx_kernel_dims(const cfx_kernel_call *c);    /* or NULL: sizes are numbers */
CFX_API void *cfx_kernel_context(const cfx_kernel_call *c);     /* the row's `ctx` */
CFX_API cfx_error *cfx_kernel_error(cfx_kernel_call *c);        /* to be passed on; never NULL */

/* Sets the message and returns the status; if something has failed already, that stays the reason,
 * so that one look at the end of a kernel is enough. It says what is wrong with the arguments: the
 * operator, their types and shapes, and the user's line are added to it. */
CFX_API cfx_status cfx_kernel_fail(cfx_kernel_call *c, cfx_status status, const char *format, ...)
    CFX_PRINTF(3, 4);

/* ---- threads and random numbers for kernels ------------------------------------------------ */

/* Calls fn(ctx, begin, end) for pieces of [0, n), each of at least `grain` elements except the
 * last, on the runtime's threads and this one; returns when all are done. Inside such a
 * function, and while another thread uses the runtime's threads, it runs on this thread alone. */
typedef void cfx_range_fn(void *ctx, int64_t begin, int64_t end);
CFX_API void cfx_runtime_parallel(cfx_runtime *rt, int64_t n, int64_t grain, cfx_range_fn *fn,
                                  void *ctx);

/* Random numbers: cfx_runtime_draw takes the next `n` of the runtime's generator. The i-th of them
 * depends only on what was drawn and on i, so any thread can ask for any of them, and the number of
 * threads makes no difference. */
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
