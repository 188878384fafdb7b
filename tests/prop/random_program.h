/* random_program.h - seeded random graphs that can be run, and the modules that they call.
 *
 * Every tensor is float32 of shape (2, 4), so that any statement can follow any other: operators in
 * several spellings, literals, slices, views, sizes, parts of a tensor, calls of modules, readings
 * of parameters, branches and loops (up to three deep), code that nobody uses. Nodes and modules
 * have the names that are the hardest to keep: words of C, of Python, of the library and of the
 * files that are generated.
 */
#ifndef CFX_TESTS_RANDOM_PROGRAM_H
#define CFX_TESTS_RANDOM_PROGRAM_H

#include "random_graph.h"

#include <cfx/capture.h>

enum { RANDOM_PROGRAM_INPUTS = 6 };

/* The modules that the graphs call; NULL if the scope fails. */
cfx_module *random_program_modules(cfx_scope *s);

/* A graph of about `nodes` nodes, not counting its regions; NULL with *err set. */
cfx_graph *random_program_new(uint64_t seed, size_t nodes, cfx_error *err);

/* As many tensors as the graph has inputs; returns how many. */
size_t random_program_inputs(cfx_scope *s, const cfx_graph *g, uint64_t seed,
                             cfx_var in[RANDOM_PROGRAM_INPUTS]);

#endif
