/* recycle.h - large blocks that wait for the next who asks, between a runtime and the allocator.
 *
 * Results of one run are given back while the next one computes its own, of the same sizes or a
 * little larger: a cache of keys. malloc gives such blocks back to the system, and a fresh one
 * costs a page fault for every 4 KiB.
 */
#ifndef CFXI_RECYCLE_H
#define CFXI_RECYCLE_H

#include "base_impl.h"

/* An allocator over another one, which must outlive it. NULL with *err set. Any number of threads
 * may use it. */
const cfx_allocator *cfxi_base_recycler_new(const cfx_allocator *from, cfx_error *err);
/* Keeps no block from now on. The allocator itself goes with the last block that came from it. */
void cfxi_base_recycler_close(const cfx_allocator *recycler);
/* The other one. */
const cfx_allocator *cfxi_base_recycler_from(const cfx_allocator *recycler);
/* Bytes that wait. */
size_t cfxi_base_recycler_kept(const cfx_allocator *recycler);

#endif
