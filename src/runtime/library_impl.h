/* library_impl.h - the structs behind library.h, and what programs and passes ask of them. */
#ifndef CFXI_LIBRARY_IMPL_H
#define CFXI_LIBRARY_IMPL_H

#include "library_rows.h"
#include "runtime_impl.h"

/* A row, with its schema read. What users see is its beginning. */
typedef struct cfxi_custom {
    cfx_custom_operator row;  /* its texts are the library's */
    cfxi_signature *signature;
} cfxi_custom;

struct cfx_library {
    atomic_int refs;
    const cfx_allocator *allocator;
    const cfx_library *base;    /* or NULL */
    cfxi_arena arena;           /* names, schemas */
    size_t n;
    cfxi_custom *rows;          /* as they were given */
    const cfxi_custom **sorted; /* by name */
};

/* The row of a name; NULL if there is none, or no library. (library.c) */
const cfxi_custom *cfxi_rt_library_find(const cfx_library *lib, const char *name);

/* As cfxi_rt_call_watched, of a row of a library. (library_call.c) */
cfx_datum cfxi_rt_custom_call(cfx_runtime *rt, cfx_dims *dims, bool infer, const cfxi_watch *watch,
                              const cfxi_custom *f, const cfx_datum *args, size_t n,
                              cfx_error *err);

#endif
