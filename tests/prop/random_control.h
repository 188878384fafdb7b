/* random_control.h - seeded random programs with branches and loops in one another.
 *
 * Every program can be lowered and run. It has four inputs: `x` and `y`, tensors of 2 by 3 floats,
 * the integer `n` and the bool `p`; it writes to some of its tensors in place. The same seed gives
 * the same text on every machine.
 */
#ifndef CFX_TESTS_RANDOM_CONTROL_H
#define CFX_TESTS_RANDOM_CONTROL_H

#include "random_graph.h"

/* The IR text, which the caller frees. Not all programs write (`seed` decides). */
cfx_status random_control_text(uint64_t seed, cfx_buffer *text);

#endif
