/* container_items_impl.h - a[b], a[b] = c and del a[b] of lists, tuples, dicts and strings.
 * (container_items.c) */
#ifndef CFXI_CONTAINER_ITEMS_IMPL_H
#define CFXI_CONTAINER_ITEMS_IMPL_H

#include "runtime/python_impl.h"

/* Result 0 is container[key]: the item itself, or a new sequence if `key` is a slice. */
cfx_status cfxi_index_container_item(cfxi_call *c, cfx_datum container, cfx_datum key);
/* container[key] = value and del container[key], of a list or dict: all who hold it see that. They
 * fail where Python raises; nothing has changed then. */
cfx_status cfxi_index_set_container_item(cfxi_call *c, cfx_datum container, cfx_datum key,
                                         cfx_datum value);
cfx_status cfxi_index_delete_item(cfxi_call *c, cfx_datum container, cfx_datum key);

#endif
