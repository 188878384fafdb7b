/* peak.c - what the machine can do at best: multiply-adds in registers, and reading memory.
 *
 * A kernel is compared with these. They are measured with the runtime's instruction set and
 * threads, on the pool, so that what the system gives to others meanwhile counts for both.
 */
#include "peak.h"

#include "runtime/pool_impl.h"

#include <unistd.h>

enum {
    MULTIPLY_ROUNDS = 12,      /* the best of them counts: the others were disturbed */
    READ_ROUNDS = 24,          /* of an eighth of the memory each, one after the other */
    PARTS = 8,
    PIECES = 16,               /* for each thread */
    SUMS = 1 << 12,            /* multiply-adds of each chain in a piece: some 20 us */
    SMALLEST_BLOCK = 64 << 20, /* bytes of memory that is read, */
    LARGEST_BLOCK = 512 << 20  /* if caches are as large as that */
};

static CFXI_ISA_CHOICE(cfxi_peak_loops, loops_of, cfxi_rt_peak_loops)

/* ---- jobs ---------------------------------------------------------------------------------- */

typedef struct measured {
    const cfxi_peak_loops *loops;
    const float *memory;
    int64_t floats;      /* of memory in a piece, */
    int64_t part;        /* and in one of PARTS */
    int round;
    _Atomic float kept;  /* so that the compiler leaves nothing out */
} measured;

static void multiply(void *ctx, int64_t begin, int64_t end)
{
    measured *m = ctx;
    for (int64_t i = begin; i < end; i++)
        atomic_store(&m->kept, m->loops->multiply(SUMS, 0.5f));
}

static void read_memory(void *ctx, int64_t begin, int64_t end)
{
    measured *m = ctx;
    const float *from = m->memory + m->round % PARTS * m->part + begin * m->floats;
    atomic_store(&m->kept, m->loops->read(from, (end - begin) * m->floats));
}

static double seconds(void) { return (double)cfxi_rt_clock() * 1e-9; }

/* Seconds of the fastest of some rounds of `pieces`, after one that wakes the helpers. */
static double fastest(cfx_runtime *rt, int rounds, int64_t pieces, cfxi_range_fn *fn, measured *m)
{
    double best = 0;
    const cfxi_run_mark mark = cfxi_rt_run_begin(rt);
    for (int i = 0; i <= rounds; i++) {
        m->round = i;
        const double begin = seconds();
        cfxi_rt_parallel(rt, pieces, 1, fn, m);
        const double took = seconds() - begin;
        if (i > 0 && (best == 0 || took < best))
            best = took;
    }
    cfxi_rt_run_end(rt, mark);
    return best > 0 ? best : 1e-9;  /* a clock that stood still */
}

/* Bytes that no cache holds. */
static size_t block_size(void)
{
    size_t size = SMALLEST_BLOCK;
#if defined(_SC_LEVEL3_CACHE_SIZE)
    const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (cache > 0 && (size_t)cache > size / 4)
        size = (size_t)cache < (size_t)LARGEST_BLOCK / 4 ? 4 * (size_t)cache : LARGEST_BLOCK;
#endif
    return size;
}

static cfx_status measure_memory(cfx_runtime *rt, measured *m, double *out, cfx_error *err)
{
    const int64_t pieces = (int64_t)cfx_runtime_threads(rt) * PIECES;
    const size_t size = block_size();
    float *memory = cfxi_base_alloc(rt->allocator, size);
    if (!memory)
        return cfxi_base_nomem(err);
    memset(memory, 0, size);  /* so that every page is there */
    m->memory = memory;
    m->part = (int64_t)(size / sizeof(float)) / PARTS;
    m->floats = m->part / pieces / CFXI_PEAK_READS * CFXI_PEAK_READS;
    const double took = fastest(rt, READ_ROUNDS, pieces, read_memory, m);
    *out = (double)(m->floats * pieces) * sizeof(float) / took / 1e9;
    cfxi_base_free(rt->allocator, memory, size);
    return CFX_OK;
}

cfx_status cfx_runtime_peak(cfx_runtime *rt, cfx_peak *out, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(rt, "runtime", err));
    CFX_TRY(cfxi_base_expect(out, "out", err));
    measured m = {.loops = loops_of(rt->isa)};
    const int64_t pieces = (int64_t)cfx_runtime_threads(rt) * PIECES;
    *out = (cfx_peak){.isa = rt->isa, .threads = cfx_runtime_threads(rt)};
    CFX_TRY(measure_memory(rt, &m, &out->gbytes, err));
    const double operations = 2.0 * (double)m.loops->floats * SUMS * (double)pieces;
    out->gflops = operations / fastest(rt, MULTIPLY_ROUNDS, pieces, multiply, &m) / 1e9;
    return CFX_OK;
}
