/* library_rows.h - the rows of a library, as passes and captures look them up. */
#ifndef CFXI_LIBRARY_ROWS_H
#define CFXI_LIBRARY_ROWS_H

#include <cfx/library.h>

/* The rows, in the order in which they were given, those of the base first: borrowed. NULL past the
 * last, or if there is none of that name. (library.c) */
size_t cfxi_rt_library_size(const cfx_library *lib);
const cfx_custom_operator *cfxi_rt_library_at(const cfx_library *lib, size_t i);
const cfx_custom_operator *cfxi_rt_library_get(const cfx_library *lib, const char *name);
/* The row that a call_function calls, as cfx_node_operator is that of the table. `lib` may be NULL.
 * (library.c) */
const cfx_custom_operator *cfxi_rt_node_custom(const cfx_node *n, const cfx_library *lib);

#endif
