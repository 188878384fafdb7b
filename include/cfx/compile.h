/* compile.h - programs that run as planned.
 *
 *     cfx_program_compile(p, NULL, &err);
 *     cfx_datum y = cfx_program_run(p, rt, inputs, n, &err);      plans it; later runs use the plan
 *
 * A compiled program is frozen: what it reads of its weights is taken as constant. The first run
 * with inputs of some types, sizes and strides makes a plan for them: sizes are computed, calls
 * fused, weights packed, and all intermediate results get a place in one block of memory. Later
 * runs with such inputs find it. Where sizes or branches depend on elements, the program is planned
 * stretch by stretch, and the interpreter runs what is between. Results are those of the
 * interpreter, with its strides; sums may be added up in another order.
 */
#ifndef CFX_COMPILE_H
#define CFX_COMPILE_H

#include <cfx/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All zero: as follows. */
typedef struct cfx_compile_options {
    size_t most_plans;   /* kept for one place in the program, those used last; 0: 8 */
    const char *onednn;  /* the path of libdnnl.so, oneDNN 3, whose kernels are used where they are
                            faster; NULL: the built-in ones alone */
    bool tune;           /* products and convolutions are measured with each back end, when a plan
                            is made; else estimates decide */
    const char *cache;   /* a folder that keeps what was measured; or NULL */
    cfx_precision precision; /* BF16: products and convolutions with constant weights round their
                                operands to bfloat16, and weights take half the memory; sums, and
                                everything else, stay float32 */
    bool append;         /* the result of a cat in which a tensor grows from run to run, such as a
                            cache of keys, lies in memory with room behind it, and has the strides
                            of a longer tensor. The next cat that is given it writes what is new
                            behind it, and copies nothing: its result has the same memory, so the
                            caller must not write to either. A second cat that is given the same
                            tensor copies it. Without effect in programs that write to tensors, or
                            have custom operators */
} cfx_compile_options;

/* Makes later runs of the program, and of its regions, planned ones. No thread may be running it.
 * Runs may then still be made by any number of threads, and with any runtime. The weights must not
 * change any more: a change may be seen by some calls and not by others. `options` may be NULL.
 * Compiling twice changes nothing. CFX_E_NOMEM, CFX_E_VALUE for a precision that there is not, or
 * an error of a oneDNN that is not there or cannot be used, leaves it as it was. */
CFX_API cfx_status cfx_program_compile(cfx_program *p, const cfx_compile_options *options,
                                       cfx_error *err);
/* Whether it is compiled. */
CFX_API bool cfx_program_is_compiled(const cfx_program *p);

/* Writes the plans that were made so far: a line for each step, with the memory that it writes,
 * the kernel, and the user's line. CFX_E_VALUE if it is not compiled. */
CFX_API cfx_status cfx_program_print_plans(const cfx_program *p, cfx_sink sink, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
