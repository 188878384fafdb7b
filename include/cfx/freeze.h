/* freeze.h - programs that are simplified before they are compiled.
 *
 *     cfx_program *p = cfx_program_freeze(g, state, NULL, NULL, &err);
 *     cfx_datum y = cfx_program_run(p, rt, inputs, n, &err);
 *
 * For inference: the weights are constants. What depends on nothing else is computed once, what
 * is computed twice is computed once, and what nobody needs is not computed at all. Whoever wants
 * a program that follows its weights uses cfx_program_new.
 */
#ifndef CFX_FREEZE_H
#define CFX_FREEZE_H

#include <cfx/compile.h>
#include <cfx/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A compiled program of a copy of the lowered graph `g`, which went through these passes: dropout
 * that drops nothing is removed, the reference form of a quantized model becomes integer operators
 * (quantize.h), constants are folded, reshapes collapsed, common subexpressions merged, dead code
 * is erased. Results are those of `g`, up to where integer operators round (docs/quantization.md);
 * tensors that it returns stay apart. Where a pass fails, because a call with constant arguments
 * does, the program is that of `g`, and fails when it runs. Nodes keep their names and locations.
 * `state` and both options (may be NULL) are as in cfx_program_new and cfx_program_compile, as are
 * the errors. */
CFX_API cfx_program *cfx_program_freeze(cfx_graph *g, const cfx_state *state,
                                        const cfx_program_options *options,
                                        const cfx_compile_options *compile, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
