/* random_compare.h - whether two results are the same, but for what rounding does. */
#ifndef CFX_TESTS_RANDOM_COMPARE_H
#define CFX_TESTS_RANDOM_COMPARE_H

#include <cfx/datum.h>

/* `values`: the elements count. `b` may be abstract: then only types and sizes do, and numbers may
 * be unknown. */
bool random_same(cfx_datum a, cfx_datum b, bool values);

#endif
