/* run_probe.c - counts what runs of a model ask of the system; tests/python/test_quiet_runs.py says
 * how much that may be.
 *
 *     run_probe MODEL.cfx THREADS RUNS X0.npy X1.npy ... [-- Y0.npy Y1.npy ...]...
 *
 * Runs the model WARM times, by when every thread has mostly taken part and has scratch of its own,
 * and then RUNS times more, of which it prints what the worst one did.
 * Several lists of inputs take turns:
 *
 *     blocks 0       (allocations of a KiB or more)
 *     headers 3      (smaller ones)
 *     locks 0
 *     sleeps 0
 *     wakes 1
 *     maps 0
 *
 * Functions of the C library that lock, sleep, wake and map memory are defined here once more: they
 * count, and then do what they did.
 */
#include <cfx/executable.h>
#include <cfx/embed/weights.h>
#include <cfx/weights.h>

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST_INPUTS = 16, MOST_LISTS = 4, WARM = 30, COUNTS = 6, BLOCK = 1024 };

static atomic_long blocks, headers, locks, sleeps, wakes, maps;

/* ---- what is counted ----------------------------------------------------------------------- */

#define COUNTED(result, name, counter, parameters, ...)                                            \
    result name parameters                                                                         \
    {                                                                                              \
        static result(*_Atomic real) parameters;                                                   \
        result(*found) parameters = atomic_load(&real);                                            \
        if (!found) {                                                                              \
            void *symbol = dlsym(RTLD_NEXT, #name);                                                \
            memcpy(&found, &symbol, sizeof found);                                                 \
            atomic_store(&real, found);                                                            \
        }                                                                                          \
        atomic_fetch_add(&counter, 1);                                                             \
        return found(__VA_ARGS__);                                                                 \
    }

COUNTED(int, pthread_mutex_lock, locks, (pthread_mutex_t * m), m)
COUNTED(int, pthread_cond_wait, sleeps, (pthread_cond_t * c, pthread_mutex_t *m), c, m)
COUNTED(int, sem_wait, sleeps, (sem_t * s), s)
COUNTED(int, sem_post, wakes, (sem_t * s), s)
COUNTED(void *, mmap, maps, (void *at, size_t n, int p, int f, int fd, off_t o), at, n, p, f, fd, o)
COUNTED(int, munmap, maps, (void *at, size_t n), at, n)

static void *counting_alloc(void *ctx, size_t size)
{
    (void)ctx;
    atomic_fetch_add(size >= BLOCK ? &blocks : &headers, 1);
    return malloc(size);
}

static void counting_free(void *ctx, void *p, size_t size)
{
    (void)ctx;
    (void)size;
    free(p);
}

static const cfx_allocator counting = {counting_alloc, counting_free, NULL};

typedef struct counts {
    long values[COUNTS];
} counts;

static const char *const names[COUNTS] = {"blocks", "headers", "locks", "sleeps", "wakes", "maps"};

static counts counted(void)
{
    return (counts){{atomic_load(&blocks), atomic_load(&headers), atomic_load(&locks),
                     atomic_load(&sleeps), atomic_load(&wakes), atomic_load(&maps)}};
}

/* ---- running ------------------------------------------------------------------------------- */

typedef struct list {
    cfx_datum items[MOST_INPUTS];
    size_t n;
} list;

typedef struct model {
    cfx_executable *e;
    cfx_runtime *rt;
    list inputs[MOST_LISTS];
    size_t lists;
} model;

static bool fail(const char *what, const cfx_error *err)
{
    fprintf(stderr, "run_probe: %s: %s\n", what, err->message);
    return false;
}

static bool load(model *m, int argc, char **argv)
{
    cfx_error err = {0};
    const cfx_executable_options options = {.package = {.allocator = &counting}};
    const cfx_runtime_options how = {.allocator = &counting, .threads = (unsigned)atoi(argv[2])};
    m->e = cfx_executable_load(argv[1], &options, &err);
    m->rt = m->e ? cfx_runtime_new(&how, &err) : NULL;
    if (!m->rt)
        return fail(argv[1], &err);
    m->lists = 1;
    for (int i = 4; i < argc; i++) {
        list *l = &m->inputs[m->lists - 1];
        const bool next = strcmp(argv[i], "--") == 0;
        if (next ? m->lists == MOST_LISTS : l->n == MOST_INPUTS)
            return fail("too many inputs", &err);
        cfx_tensor *t = next ? NULL : cfx_tensor_load_npy(argv[i], &counting, &err);
        if (next)
            m->lists++;
        else if (t)
            l->items[l->n++] = cfx_datum_tensor(t);
        else
            return fail(argv[i], &err);
    }
    return true;
}

static bool run(const model *m, const list *l)
{
    cfx_error err = {0};
    const cfx_datum result = cfx_executable_run(m->e, NULL, m->rt, l->items, l->n, NULL, &err);
    if (result.kind == CFX_DATUM_INVALID)
        return fail("run", &err);
    cfx_datum_release(result);
    return true;
}

static void unload(model *m)
{
    for (list *l = m->inputs; l < m->inputs + MOST_LISTS; l++)
        while (l->n > 0)
            cfx_datum_release(l->items[--l->n]);
    cfx_runtime_free(m->rt);
    cfx_executable_free(m->e);
}

int main(int argc, char **argv)
{
    model m = {0};
    counts worst = {0};
    if (argc < 4)
        return fprintf(stderr, "usage: run_probe MODEL.cfx THREADS RUNS X.npy...\n"), 2;
    bool good = load(&m, argc, argv);
    for (size_t i = 0; good && i < WARM * m.lists; i++)
        good = run(&m, &m.inputs[i % m.lists]);
    for (int i = 0; good && i < atoi(argv[3]); i++) {
        const counts before = counted();
        good = run(&m, &m.inputs[(size_t)i % m.lists]);
        const counts after = counted();
        for (int k = 0; k < COUNTS; k++)
            if (after.values[k] - before.values[k] > worst.values[k])
                worst.values[k] = after.values[k] - before.values[k];
    }
    unload(&m);
    for (int k = 0; good && k < COUNTS; k++)
        printf("%s %ld\n", names[k], worst.values[k]);
    return good ? 0 : 1;
}
