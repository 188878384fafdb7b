/* prop_ops.c - properties of every operator on random arguments, good and bad.
 *
 *     prop_ops [FIRST [COUNT [ROW]]]     (a failure again: prop_ops SEED 1 ROW)
 *
 * Nothing crashes (run it with SAN=1); a call gives a result or an error that names the operator;
 * results lie within their memory; arguments stay as they were unless the row writes to them; the
 * rule alone gives the same types and sizes as computing; every instruction set and number of
 * threads gives what the reference kernels give; memory that runs out is reported, and nothing
 * leaks.
 */
#include "random_call.h"
#include "random_compare.h"
#include "tensor/tensor_impl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory -------------------------------------------------------------------------------- */

enum { LARGEST = 1 << 21, HEAD = 16 };  /* more than LARGEST bytes at once are refused */

/* Counts, fails on demand, and places blocks so that elements end near the end of a block of
 * malloc: 16 bytes after a multiple of 64. */
typedef struct guard {
    atomic_size_t live, count, failed;
    size_t fail_at;
} guard;

static void *guard_alloc(void *ctx, size_t size)
{
    guard *g = ctx;
    char *block = NULL;
    if (atomic_fetch_add(&g->count, 1) >= g->fail_at || size > LARGEST ||
        posix_memalign((void **)&block, 64, HEAD + size) != 0) {
        atomic_fetch_add(&g->failed, 1);
        return NULL;
    }
    memcpy(block, &size, sizeof size);
    memset(block + HEAD, 0xa5, size);
    atomic_fetch_add(&g->live, 1);
    return block + HEAD;
}

static void guard_free(void *ctx, void *at, size_t size)
{
    guard *g = ctx;
    size_t was;
    if (!at)
        return;
    memcpy(&was, (char *)at - HEAD, sizeof was);
    if (was != size) {
        printf("freed with size %zu, allocated with %zu\n", size, was);
        abort();
    }
    atomic_fetch_sub(&g->live, 1);
    free((char *)at - HEAD);
}

/* ---- one run ------------------------------------------------------------------------------- */

typedef struct outcome {
    cfx_datum result;
    cfx_error err;
    random_call call;
    cfx_runtime *rt;
    guard memory;
    cfx_allocator allocator;
    char *before[RANDOM_CALL_BLOCKS];  /* what the arguments' memory held */
} outcome;

typedef struct mode {
    bool reference;
    cfx_isa isa;
    unsigned threads;
    size_t fail_at;
} mode;

static void snapshot(outcome *o)
{
    for (size_t i = 0; i < o->call.num_blocks; i++) {
        o->before[i] = malloc(o->call.blocks[i].size + 1);
        if (o->before[i])
            memcpy(o->before[i], o->call.blocks[i].data, o->call.blocks[i].size);
    }
}

static void run(outcome *o, uint64_t seed, cfx_operator op, mode how)
{
    *o = (outcome){.memory.fail_at = SIZE_MAX};
    o->allocator = (cfx_allocator){guard_alloc, guard_free, &o->memory};
    random_call_new(&o->call, seed, op);
    snapshot(o);
    cfx_runtime_options options = {.allocator = &o->allocator, .threads = how.threads,
                                   .seed = seed, .reference = how.reference, .limit_isa = true,
                                   .isa = how.isa};
    o->rt = cfx_runtime_new(&options, &o->err);
    if (!o->rt)
        return;
    if (how.fail_at != SIZE_MAX)
        o->memory.fail_at = o->memory.count + how.fail_at;
    o->result = cfx_operator_run(o->rt, op, o->call.args, o->call.n, &o->err);
}

/* Lets go of everything; whether nothing leaked. */
static bool finish(outcome *o)
{
    cfx_datum_release(o->result);
    random_call_free(&o->call);
    cfx_runtime_free(o->rt);
    for (size_t i = 0; i < o->call.num_blocks; i++)
        free(o->before[i]);
    return o->memory.live == 0;
}

/* ---- results ------------------------------------------------------------------------------- */

/* Walks all tensors of a datum. */
typedef const char *tensor_fn(const cfx_tensor *t);

static const char *each_tensor(cfx_datum d, tensor_fn *fn)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    const char *failed = d.kind == CFX_DATUM_TENSOR ? fn(d.as.tensor) : NULL;
    for (size_t i = 0; !failed && i < n; i++)
        failed = each_tensor(items[i], fn);
    return failed;
}

static volatile char touched;

static const char *check_header(const cfx_tensor *t)
{
    int64_t first = 0;
    int64_t last = (int64_t)cfx_dtype_size((cfx_dtype)t->dtype);
    if (!t->storage || !t->data || t->ndim > CFX_MAX_DIMS)
        return "a result has memory";
    for (size_t i = 0; i < t->ndim; i++) {
        if (t->size[i] < 0)
            return "a size of a result is not negative";
        if (t->size[i] == 0)
            return NULL;
    }
    for (size_t i = 0; i < t->ndim; i++)
        *(t->stride[i] < 0 ? &first : &last) += (t->size[i] - 1) * t->stride[i];
    if (t->data + first < t->storage->data ||
        t->data + last > t->storage->data + t->storage->size)
        return "a result lies within its memory";
    for (int64_t i = first; i < last; i++)
        touched ^= t->data[i];
    return NULL;
}

/* Whether a number says how much there is of what no memory can hold. */
static bool has_huge(const random_call *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->args[i].kind == CFX_DATUM_INT && c->args[i].as.i > INT32_MAX)
            return true;
    return false;
}

static const char *check_error(const outcome *o)
{
    const char *name = cfx_operator_name(o->call.op);
    if (o->result.kind != CFX_DATUM_INVALID)
        return o->err.status == CFX_OK ? NULL : "a result comes without an error";
    if (o->err.status == CFX_OK)
        return "no result, and no error";
    if (o->err.status == CFX_E_NOMEM)
        return o->memory.failed || has_huge(&o->call) ? NULL : "memory was not out";
    return strstr(o->err.message, name) ? NULL : "a message names the operator";
}

static bool writes_to(cfx_operator op, size_t i)
{
    cfx_schema_param p;
    return cfx_operator_param(op, i, &p) && p.writes;
}

/* Arguments that are the same tensor as one that is written to are changed with it: the first. */
static const char *check_arguments(const outcome *o)
{
    if (cfx_operator_flags(o->call.op) & CFX_OPERATOR_STATE)
        return NULL;
    for (size_t i = 0; i < o->call.num_blocks; i++)
        if (!writes_to(o->call.op, o->call.blocks[i].param) && o->before[i] &&
            memcmp(o->before[i], o->call.blocks[i].data, o->call.blocks[i].size) != 0)
            return "arguments stay as they are";
    return NULL;
}

/* ---- comparing ----------------------------------------------------------------------------- */

/* Rows whose elements mean nothing, or where a little noise in means a lot out. */
static bool is_comparable(const outcome *o)
{
    static const cfx_operator loose[] = {
        CFX_OPID_empty, CFX_OPID_empty_like, CFX_OPID_new_empty, CFX_OPID_linalg_inv,
        CFX_OPID_linalg_solve, CFX_OPID_linalg_svd, CFX_OPID_linalg_eigh, CFX_OPID_linalg_qr,
        CFX_OPID_linalg_det, CFX_OPID_linalg_cholesky,
    };
    for (size_t i = 0; i < sizeof loose / sizeof *loose; i++)
        if (o->call.op == loose[i])
            return false;
    return o->call.tame;
}

/* ---- the rule alone ------------------------------------------------------------------------ */

static cfx_datum abstract_of(cfx_datum d)
{
    cfx_datum items[16];
    size_t n;
    const cfx_datum *from = cfx_datum_items(d, &n);
    if (d.kind == CFX_DATUM_TENSOR) {
        const cfx_tensor *t = d.as.tensor;
        cfx_tensor *copy = cfx_tensor_new_abstract((cfx_dtype)t->dtype, t->size, t->ndim, NULL,
                                                   NULL);
        for (size_t i = 0; copy && i < t->ndim; i++)
            copy->stride[i] = t->stride[i];
        return cfx_datum_tensor(copy);
    }
    if (!from || n > 16)
        return cfx_datum_retain(d);
    for (size_t i = 0; i < n; i++)
        items[i] = abstract_of(from[i]);
    cfx_datum made = cfx_datum_seq((cfx_datum_kind)d.kind, items, n, NULL, NULL);
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(items[i]);
    return made;
}

/* Whether a rule refused because it asks for elements: it says so, or shows CFX_DIM_UNKNOWN. */
static bool depends_on_elements(const char *message)
{
    return strstr(message, "known") || strstr(message, "-4611686018427387904");
}

static const char *check_rule(const outcome *o, uint64_t seed, bool symbols)
{
    random_call c;
    cfx_error err = {0};
    const char *failed = NULL;
    cfx_datum args[RANDOM_CALL_PARAMS];
    cfx_dims *dims = symbols ? cfx_dims_new(NULL, NULL) : NULL;
    random_call_new(&c, seed, o->call.op);  /* anew: what is written to has changed */
    for (size_t i = 0; i < c.n; i++)
        args[i] = abstract_of(c.args[i]);
    cfx_datum said = cfx_operator_infer(o->rt, dims, o->call.op, args, c.n, &err);
    if ((said.kind == CFX_DATUM_INVALID) != (err.status != CFX_OK))
        failed = "the rule gives a result or an error";
    else if (o->result.kind != CFX_DATUM_INVALID && said.kind == CFX_DATUM_INVALID &&
             !depends_on_elements(err.message))
        failed = "the rule allows what was computed";
    else if (o->result.kind != CFX_DATUM_INVALID && said.kind != CFX_DATUM_INVALID &&
             !random_same(o->result, said, false))
        failed = "the rule gives the types and sizes that were computed";
    if (failed)
        printf("    the rule: %s\n", err.message);
    cfx_datum_release(said);
    for (size_t i = 0; i < c.n; i++)
        cfx_datum_release(args[i]);
    random_call_free(&c);
    cfx_dims_free(dims);
    return failed;
}

/* ---- one case ------------------------------------------------------------------------------ */

static const char *check_one(const outcome *o)
{
    const char *failed = check_error(o);
    failed = failed ? failed : each_tensor(o->result, check_header);
    return failed ? failed : check_arguments(o);
}

static const char *check_same(const outcome *want, const outcome *got)
{
    bool compare = is_comparable(want);
    if (want->err.status == CFX_E_NOMEM || got->err.status == CFX_E_NOMEM)
        return NULL;  /* which of them need more than there is may differ */
    if (want->err.status != got->err.status)
        return "the fast kernel fails as the reference does";
    if (want->result.kind == CFX_DATUM_INVALID)
        return NULL;
    if (!random_same(want->result, got->result, false))
        return "the fast kernel gives the types and sizes of the reference";
    if (compare && !random_same(want->result, got->result, true))
        return "the fast kernel gives the numbers of the reference";
    return NULL;
}

static const char *check_short(const outcome *want, const outcome *got)
{
    if (got->memory.failed == 0 || got->err.status == CFX_E_NOMEM)
        return NULL;
    return got->err.status == want->err.status ? NULL : "memory that is out is reported";
}

static void print_case(uint64_t seed, const outcome *o, const char *failed, const char *which)
{
    printf("seed %llu: %s%s: failed: %s\n", (unsigned long long)seed, cfx_operator_name(o->call.op),
           which, failed);
    printf("    status %d %s\n", o->err.status, o->err.message);
    random_call_print(&o->call);
}

static bool check_case(uint64_t seed, cfx_operator op, size_t *computed)
{
    static outcome plain;
    static outcome fast;
    random_source r = {seed ^ 0x5bd1e995};
    random_next(&r);
    run(&plain, seed, op, (mode){.reference = true, .threads = 1, .fail_at = SIZE_MAX});
    *computed += plain.result.kind != CFX_DATUM_INVALID;
    const char *failed = check_one(&plain);
    if (!failed && plain.err.status != CFX_E_NOMEM)
        failed = check_rule(&plain, seed, random_chance(&r, 50));
    if (failed)
        print_case(seed, &plain, failed, "");
    mode how = {.isa = (cfx_isa)random_below(&r, CFX_ISA_COUNT), .fail_at = SIZE_MAX,
                .threads = random_chance(&r, 20) ? 2 : 1};
    for (int again = 0; !failed && again < 2; again++) {
        run(&fast, seed, op, how);
        failed = check_one(&fast);
        failed = failed ? failed : again ? check_short(&plain, &fast) : check_same(&plain, &fast);
        if (failed)
            print_case(seed, &fast, failed, again ? " (short of memory)" : " (fast)");
        how.fail_at = random_below(&r, fast.memory.count + 1);
        how.threads = 1;
        if (!finish(&fast) && !failed) {
            failed = "nothing leaks";
            print_case(seed, &plain, failed, again ? " (short of memory)" : "");
        }
    }
    if (!finish(&plain) && !failed) {
        printf("seed %llu: %s: failed: nothing leaks\n", (unsigned long long)seed,
               cfx_operator_name(op));
        failed = "nothing leaks";
    }
    return !failed;
}

/* ---- all ----------------------------------------------------------------------------------- */

static char current[128];  /* what is running, for when it crashes */

static void on_signal(int number)
{
    if (write(STDOUT_FILENO, current, strlen(current)) < 0)
        _exit(2);
    signal(number, SIG_DFL);
    raise(number);
}

/* Sanitizers end by abort, so that what was running is told. */
#define SEEN __attribute__((visibility("default")))
SEEN const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "abort_on_error=1:handle_abort=0"; }
SEEN const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "abort_on_error=1:print_stacktrace=1"; }

static void watch_crashes(void)
{
    signal(SIGFPE, on_signal);
    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);
}

/* The rows of which no call was valid: then their patterns are missing. */
static void print_never(const cfx_operator *rows, size_t n, const size_t *computed)
{
    size_t any = 0;
    for (size_t i = 0; i < n; i++)
        if (computed[i] == 0)
            printf("%s%s", any++ ? " " : "never valid: ", cfx_operator_name(rows[i]));
    if (any)
        printf("\n");
}

int main(int argc, char **argv)
{
    const char *full = getenv("CFX_FULL");
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = full && strcmp(full, "1") == 0 ? 200000 : 12000;
    cfx_operator only = argc > 3 ? cfx_operator_parse(argv[3]) : CFX_OPID_NONE;
    static cfx_operator rows[CFX_OPERATOR_COUNT];
    static size_t computed[CFX_OPERATOR_COUNT];
    size_t n = 0;
    size_t passed = 0;
    size_t failed = 0;
    size_t valid = 0;
    if (argc > 2)
        count = strtoull(argv[2], NULL, 10);
    else if (argc > 1)
        count = 1;
    for (int op = 1; op < CFX_OPERATOR_COUNT; op++)
        if (random_call_possible((cfx_operator)op) && (!only || only == (cfx_operator)op))
            rows[n++] = (cfx_operator)op;
    setvbuf(stdout, NULL, _IOLBF, 0);  /* what was printed survives a crash */
    watch_crashes();
    for (uint64_t seed = first; n && seed < first + count; seed++) {
        cfx_operator op = rows[seed % n];
        snprintf(current, sizeof current, "seed %llu: %s: crashed\n", (unsigned long long)seed,
                 cfx_operator_name(op));
        alarm(60);
        ++*(check_case(seed, op, &computed[seed % n]) ? &passed : &failed);
    }
    for (size_t i = 0; i < n; i++)
        valid += computed[i];
    if (count >= 10 * n)
        print_never(rows, n, computed);
    printf("%zu rows; %zu of %zu calls were valid\n", n, valid, passed + failed);
    printf("prop_ops: %zu passed, %zu failed\n", passed, failed);
    return failed != 0;
}
