/* named_impl.h - data by name, in the order in which names were first set: states and sessions. */
#ifndef CFXI_NAMED_IMPL_H
#define CFXI_NAMED_IMPL_H

#include "runtime_impl.h"

#include "base/map_impl.h"

typedef struct cfxi_named {
    const cfx_allocator *allocator;
    cfxi_hash_set table;
    cfxi_hash_key key; /* of the table */
    cfxi_vec entries;  /* of what named.c makes for each name */
} cfxi_named;

/* An empty one. */
cfxi_named cfxi_rt_named_new(const cfx_allocator *allocator);
/* Copies the name and retains the datum; the datum that had this name is released. */
cfx_status cfxi_rt_named_set(cfxi_named *d, const char *name, cfx_datum value, cfx_error *err);
/* Borrowed; INVALID if there is none. */
cfx_datum cfxi_rt_named_get(const cfxi_named *d, const char *name);
/* The i-th name, and its datum through *value (may be NULL), both borrowed; NULL past the last. */
const char *cfxi_rt_named_entry(const cfxi_named *d, size_t i, cfx_datum *value);
/* Releases everything in it, not `d` itself. */
void cfxi_rt_named_free(cfxi_named *d);

#endif
