/* observing_impl.h - modules that observe, and programs that show values while they run. */
#ifndef CFXI_OBSERVING_IMPL_H
#define CFXI_OBSERVING_IMPL_H

#include "capture_impl.h"

#include <cfx/quantize.h>

/* ---- modules that observe (observing.c) ----------------------------------------------------- */

/* An observer, which copies of its module share. One thread at a time may run what it is part
 * of. */
struct cfxi_observing {
    atomic_int refs;
    const cfx_allocator *allocator;
    cfx_observer *observer;
    bool whole;  /* it was shown integers or truth values, which stay so */
};

/* What preparing and converting ask of the modules below `root`, which it borrows. */
cfx_quantize_host cfxi_capture_quantize_host(cfx_module *root);

/* A copy with a graph of its own, which shares its parts with `m`; NULL, and the scope fails.
 * (calibrate.c) */
cfx_module *cfxi_capture_own_copy(cfx_at at, cfx_module *m);

/* ---- programs that show values (showing.c) --------------------------------------------------- */

/* Receives a value while a program runs: borrowed. */
typedef cfx_status cfxi_show_fn(void *ctx, size_t place, cfx_datum value, cfx_error *err);

/* Who is shown values, and what to call when the last program is gone (may be NULL). */
typedef struct cfxi_viewer {
    cfxi_show_fn *show;
    void *ctx;
    void (*release)(void *ctx);
} cfxi_viewer;

/* A library with what cfxi_capture_show calls, and the operators of `base` (or NULL): one
 * reference; NULL with *err set, and `release` is not called. */
const cfx_library *cfxi_capture_viewing(const cfxi_viewer *viewer, const cfx_library *base,
                                        const cfx_allocator *allocator, cfx_error *err);
/* Lets a program of the graph show the value of `n`, right after it has computed it. */
cfx_status cfxi_capture_show(cfx_node *n, size_t place, cfx_error *err);

/* Lets a program of `g` show its observers what they observe: their calls are replaced. *library
 * becomes one with that, retained; it stays as it is if there are no observers. */
cfx_status cfxi_capture_show_observers(cfx_graph *g, const cfx_module *root,
                                       const cfx_library **library, cfx_error *err);

#endif
