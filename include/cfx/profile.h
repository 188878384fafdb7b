/* profile.h - where the time of a program goes.
 *
 *     cfx_profile *profile = cfx_profile_new(NULL, &err);
 *     cfx_runtime_options options = {.threads = 2};
 *     cfx_profile_watch(profile, &options);
 *     cfx_runtime *rt = cfx_runtime_new(&options, &err);
 *     ...                                        what is run with `rt` is measured
 *     cfx_profile_print(profile, CFX_PROFILE_TABLE, sink, &err);
 */
#ifndef CFX_PROFILE_H
#define CFX_PROFILE_H

#include <cfx/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cfx_profile cfx_profile;

typedef enum cfx_profile_format {
    CFX_PROFILE_TABLE,  /* for people: the most expensive steps first */
    CFX_PROFILE_JSON,   /* the same numbers for programs: {"steps": [...]} in the order of the
                           program */
    CFX_PROFILE_TRACE   /* every step of every run, for Chrome's and Perfetto's trace viewer */
} cfx_profile_format;

/* NULL with CFX_E_NOMEM. */
CFX_API cfx_profile *cfx_profile_new(const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_profile_free(cfx_profile *p);  /* no runtime may report to it; NULL is allowed */
/* Makes runtimes of these options report to the profile, from any number of threads. */
CFX_API void cfx_profile_watch(cfx_profile *p, cfx_runtime_options *options);
/* Forgets what was measured: the first runs, say, which make plans. */
CFX_API void cfx_profile_clear(cfx_profile *p);
/* CFX_E_NOMEM if a step could not be kept, because memory was out. */
CFX_API cfx_status cfx_profile_print(cfx_profile *p, cfx_profile_format format, cfx_sink sink,
                                     cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
