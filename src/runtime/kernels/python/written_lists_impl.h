/* written_lists_impl.h - lists and dicts that regions may write to while shapes are inferred. */
#ifndef CFXI_WRITTEN_LISTS_IMPL_H
#define CFXI_WRITTEN_LISTS_IMPL_H

#include "runtime/runtime_impl.h"

/* A list or dict, and another that holds what it held when it was noted. */
typedef struct cfxi_written {
    cfx_datum container;
    cfx_datum items;
} cfxi_written;

/* Adds the lists and dicts among the items, and in them, to `lists`: of cfxi_written. Fails with
 * CFX_E_NOMEM. */
cfx_status cfxi_python_note_lists(cfxi_call *c, const cfx_datum *items, size_t n, cfxi_vec *lists);
/* The same containers with what they hold now, added to `now`. */
cfx_status cfxi_python_note_again(cfxi_call *c, const cfxi_vec *lists, cfxi_vec *now);
/* The containers hold again what they held when they were noted. */
cfx_status cfxi_python_put_back(cfxi_call *c, const cfxi_vec *lists);
/* The container holds what another one holds. */
cfx_status cfxi_python_fill_list(cfxi_call *c, cfx_datum container, cfx_datum from);
void cfxi_python_lists_free(const cfxi_call *c, cfxi_vec *lists);

#endif
