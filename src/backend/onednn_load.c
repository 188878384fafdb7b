/* onednn_load.c - loading oneDNN, or saying why not. */
#include "onednn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

static cfxi_onednn *refuse(cfx_error *err, const char *path, const char *why, const char *what)
{
    cfx_error_set(err, CFX_E_UNSUPPORTED, "oneDNN is not available: %s%s: %.120s", why, what, path);
    return NULL;
}

/* Whether the library is one that we know how to call; fills in d->version. */
static bool has_version(cfxi_onednn *d, void *library, const char *path, cfx_error *err)
{
    const cfxi_dnn_version *(*version)(void);
    *(void **)&version = dlsym(library, "dnnl_version");
    if (!version)
        return refuse(err, path, "the library has no function ", "dnnl_version"), false;
    const cfxi_dnn_version *v = version();
    snprintf(d->version, sizeof d->version, "%d.%d.%d", v->major, v->minor, v->patch);
    if (v->major != CFXI_DNN_MAJOR)
        return refuse(err, path, "cfx needs version 3, not ", d->version), false;
    if (v->cpu_threads != CFXI_DNN_OPENMP)
        return refuse(err, path, "cfx needs a library built for ", "OpenMP"), false;
    return true;
}

static bool find_functions(cfxi_onednn *d, void *library, const char *path, cfx_error *err)
{
    const struct {
        const char *name;
        void *to;
    } all[] = {
#define X(result, name, parameters) {"dnnl_" #name, &d->name},
        CFXI_DNN_FUNCTIONS(X)
#undef X
#define X(result, name, parameters) {#name, &d->name},
        CFXI_DNN_THREADS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        void *found = dlsym(library, all[i].name);
        if (!found)
            return refuse(err, path, "the library has no function ", all[i].name), false;
        memcpy(all[i].to, &found, sizeof found);
    }
    return true;
}

cfxi_onednn *cfxi_backend_onednn_open(const char *path, const cfx_allocator *allocator,
                                      cfx_error *err)
{
    /* It stays in memory, because OpenMP's threads live on in it. */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *why = dlerror();
        return refuse(err, path, "it cannot be loaded: ", why ? why : "unknown");
    }
    cfxi_onednn *d = cfxi_base_alloc(allocator, sizeof *d);
    if (!d)
        return cfxi_base_nomem(err), NULL;
    memset(d, 0, sizeof *d);
    d->allocator = allocator;
    d->process = getpid();
    atomic_init(&d->owners, 1);
    bool ok = has_version(d, library, path, err) && find_functions(d, library, path, err);
    if (ok && d->engine_create(&d->engine, CFXI_DNN_CPU, 0) != 0) {
        refuse(err, path, "it has no engine for ", "the CPU");
        ok = false;
    }
    if (ok)
        return d;
    cfxi_base_free(allocator, d, sizeof *d);
    return NULL;
}

cfxi_onednn *cfxi_backend_onednn_retain(cfxi_onednn *d)
{
    atomic_fetch_add(&d->owners, 1);
    return d;
}

void cfxi_backend_onednn_release(cfxi_onednn *d)
{
    if (!d || atomic_fetch_sub(&d->owners, 1) != 1)
        return;
    d->engine_destroy(d->engine);
    cfxi_base_free(d->allocator, d, sizeof *d);
}

const char *cfxi_backend_onednn_version(const cfxi_onednn *d) { return d->version; }

int cfxi_backend_onednn_threads(const cfxi_onednn *d, int threads)
{
    const int before = d->omp_get_max_threads();
    if (before != threads)
        d->omp_set_num_threads(threads);
    return before;
}

bool cfxi_backend_onednn_is_lost(const cfxi_onednn *d) { return getpid() != d->process; }
