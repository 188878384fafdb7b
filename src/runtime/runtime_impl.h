/* runtime_impl.h - what rules and kernels are written with.
 *
 * An operator is computed in three steps, by cfxi_rt_call_watched (row_call.c):
 *
 *   1. arguments   are brought into the form that the schema promises: one datum for each
 *                  parameter, defaults filled in, a number for a Tensor parameter wrapped, 3 for
 *                  int[2] made [3, 3], an int for a float parameter converted, None only where
 *                  the type ends in '?'. (A `Scalar` may still be a tensor, and a padding or
 *                  reduction a str.)
 *   2. the rule    cfxi_rule_<rule>(c) checks types and sizes and describes the results: for each a
 *                  header without memory (cfxi_rt_result). It may not read elements. Sizes may be
 *                  symbols (dim.h) and tensors abstract, so it does arithmetic on sizes with
 *                  cfx_dim_* and compares them with cfxi_rt_same_size. A size that depends on
 *                  elements is CFX_DIM_UNKNOWN, or a fresh symbol if c->dims is there
 *                  (cfxi_rt_fresh).
 *   3. the kernel  cfxi_kernel_<id>(c) computes. Results have memory by then, of their own (dense,
 *                  strides as the rule left them), unless the schema says that the result may alias
 *                  an argument, or a size is unknown: those the kernel makes (cfxi_rt_result_view,
 *                  cfxi_rt_result_allocate). It may rely on what the rule checked. Arguments have
 *                  any strides (0 and negative ones, too) and any type that the rule accepts;
 *                  results are dense and never overlap an argument, except for ELEMENTWISE rows:
 *                  there a result may be exactly an argument (same memory, same strides; in place).
 *                  It is not asked where all results are without elements and a loop over what is
 *                  there would take for ever.
 *
 * Messages say what is wrong with the arguments ("inner sizes differ"): the caller adds the
 * operator, the types and shapes, and the user's line.
 */
#ifndef CFXI_RUNTIME_IMPL_H
#define CFXI_RUNTIME_IMPL_H

#include "tensor/tensor_impl.h"

#include <cfx/embed/ops.h>
#include <cfx/embed/runtime.h>
#include <cfx/library.h>

enum { CFXI_MOST_PARAMS = 28, CFXI_MOST_RESULTS = 8 };
enum { CFXI_SCRATCH_SIZES = 25, CFXI_SCRATCH_SLOTS = 4 };

/* ---- signatures (signature.c) -------------------------------------------------------------- */

typedef enum cfxi_param_type {
    CFXI_PARAM_TENSOR,
    CFXI_PARAM_INT,
    CFXI_PARAM_FLOAT,
    CFXI_PARAM_BOOL,
    CFXI_PARAM_SCALAR,
    CFXI_PARAM_STR,
    CFXI_PARAM_DTYPE, /* None is allowed from here on: x.to(device, None) */
    CFXI_PARAM_OTHER  /* device, Any, Graph, ...: taken as it is */
} cfxi_param_type;

typedef struct cfxi_signature_param {
    uint8_t type;      /* cfxi_param_type, of the items if it is a list */
    bool list;
    bool optional;     /* None is allowed */
    bool items_optional;
    bool words;        /* a str may stand for the numbers: padding="same", reduction="mean" */
    uint8_t length;    /* of a list that a single number may stand for: int[2]; else 0 */
    cfx_datum value;   /* the default; INVALID: there is none */
} cfxi_signature_param;

typedef struct cfxi_signature {
    const char *schema;         /* where it was read */
    uint8_t num_params;
    uint8_t num_results;
    uint8_t alias;              /* bit i: result i may share the memory of an argument */
    cfx_operator functional;    /* of an in-place row: the row that computes it; else NONE */
    cfxi_signature_param params[CFXI_MOST_PARAMS];
} cfxi_signature;

/* ---- runtime (runtime.c) ------------------------------------------------------------------- */

typedef struct cfxi_pool cfxi_pool;

/* What a processor with AVX-512 has for products of bfloat16, each more than the one before. */
typedef enum cfxi_bf16 {
    CFXI_BF16_NONE,
    CFXI_BF16_DOTS,  /* AVX512_BF16: dot products of pairs */
    CFXI_BF16_TILES  /* AMX as well: products of matrices */
} cfxi_bf16;

/* What an x86 processor has for products of 8-bit integers, each more than the one before. */
typedef enum cfxi_int8 {
    CFXI_INT8_NONE,
    CFXI_INT8_DOTS,  /* AVX512_VNNI, or with AVX2 alone AVX_VNNI: dot products of four */
    CFXI_INT8_TILES  /* AMX as well: products of matrices */
} cfxi_int8;

struct cfx_runtime {
    const cfx_allocator *allocator;
    cfxi_pool *pool;
    cfx_isa isa;
    cfxi_bf16 most_bf16;             /* kernels may use at most these: isa.h */
    cfxi_int8 most_int8;
    bool reference;
    bool (*interrupted)(void *ctx);  /* or NULL */
    void *interrupted_ctx;
    cfx_sink print;                  /* of the program; write NULL: it may not print */
    cfx_step_fn *step;               /* who is told what was computed; or NULL */
    void *step_ctx;
    _Atomic uint64_t seed;
    _Atomic uint64_t drawn;  /* how many blocks of random numbers were drawn since the seed */
    _Atomic(cfxi_signature *) signatures[CFX_OPERATOR_COUNT];  /* made when first asked for */
    _Atomic(void *) scratch[CFXI_SCRATCH_SIZES][CFXI_SCRATCH_SLOTS];  /* blocks given back, by log2
                                                                         of their size */
    const struct cfx_library *library;  /* or NULL */
};

/* Nanoseconds of a clock that only rises. (runtime.c) */
uint64_t cfxi_rt_clock(void);
/* Tells who wants to know that a step which began then has ended; all but `end` is filled in.
 * (runtime.c) */
void cfxi_rt_tell_step(const cfx_runtime *rt, cfx_step step);
/* Bytes of the tensors in a datum. (runtime.c) */
uint64_t cfxi_rt_bytes_of(cfx_datum d);

/* CFX_E_INTERRUPTED if who runs a program wants it to end. (runtime.c) */
cfx_status cfxi_rt_go_on(const cfx_runtime *rt, cfx_error *err);

/* The type of a parameter and its default, the caller's to release; *err is set if memory is out.
 * */
void cfxi_rt_signature_read(const cfx_schema_param *param, cfxi_signature_param *p,
                            const cfx_allocator *allocator, cfx_error *err);
/* NULL with *err set if memory is out. */
const cfxi_signature *cfxi_rt_signature_of(cfx_runtime *rt, cfx_operator op, cfx_error *err);
void cfxi_rt_signatures_free(cfx_runtime *rt);
/* Of a schema that lives as long as it; a default that cannot be read becomes INVALID. */
cfxi_signature *cfxi_rt_signature_new(const char *schema, const cfx_allocator *allocator,
                                      cfx_error *err);
void cfxi_rt_signature_free(cfxi_signature *s, const cfx_allocator *allocator);

/* Memory for a kernel's own use, aligned to 64 bytes; NULL if it is out. */
void *cfxi_rt_scratch(cfx_runtime *rt, size_t size);
void cfxi_rt_scratch_free(cfx_runtime *rt, void *scratch);

/* ---- threads (pool.c) ---------------------------------------------------------------------- */

/* fn(ctx, begin, end) over pieces of [0, n), each of at least `grain` (but the last), on the
 * threads of the pool and this one; returns when all are done. Pieces are claimed one by one, so
 * uneven ones balance. While other threads run programs or jobs with this runtime, each has its
 * share of the pool's threads; where nobody is left to help it runs here alone, and never waits for
 * another's job. A call from inside such a function gets the help of threads that are free. */
typedef cfx_range_fn cfxi_range_fn;
void cfxi_rt_parallel(cfx_runtime *rt, int64_t n, int64_t grain, cfxi_range_fn *fn, void *ctx);

/* A thread that takes part in a job. */
typedef struct cfxi_worker {
    unsigned index;          /* in this job: below cfxi_rt_pool_threads; the caller's thread is 0 */
    cfx_runtime *rt;
    struct cfxi_lane *lane;  /* of the pool; NULL: it works alone */
    void *scratch;
    size_t scratch_size;
} cfxi_worker;

/* Likewise, with the worker that does the piece. */
typedef void cfxi_work_fn(void *ctx, int64_t begin, int64_t end, cfxi_worker *self);
void cfxi_rt_parallel_work(cfx_runtime *rt, int64_t n, int64_t grain, cfxi_work_fn *fn, void *ctx);
/* At least `size` bytes of the worker's own, aligned to 64, until the end of the piece; a second
 * call gives the same block or a larger one instead. Nothing is freed, and from piece to piece and
 * job to job it is mostly the same memory. NULL if it is out. */
void *cfxi_rt_worker_scratch(cfxi_worker *self, size_t size);
/* No further piece of this job is begun: one of them failed. */
void cfxi_rt_worker_stop(cfxi_worker *self);

/* Around a run of many jobs on this thread: in between the helpers stay awake, after it they go to
 * sleep, and other callers leave it its share. Once for each run, not for the regions or programs
 * that it runs itself. The mark goes back to _end. */
typedef uint64_t cfxi_run_mark;
cfxi_run_mark cfxi_rt_run_begin(cfx_runtime *rt);
void cfxi_rt_run_end(cfx_runtime *rt, cfxi_run_mark mark);

unsigned cfxi_rt_pool_threads(const cfxi_pool *pool);  /* 1 for NULL */

/* ---- random numbers (random.c) ------------------------------------------------------------- */

/* The generator is a function of (seed, number of the block): any part of a tensor can be drawn by
 * any thread, and the result does not depend on how many there are. */
typedef cfx_draws cfxi_random;  /* `first` is the number of the first block */
/* One block: four numbers of 32 bits from the block's number and the seed. */
void cfxi_rt_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* Reserves blocks for `n` numbers. */
cfxi_random cfxi_rt_random_reserve(cfx_runtime *rt, int64_t n);
uint64_t cfxi_rt_random_bits(cfxi_random r, int64_t i);   /* the i-th number's 64 bits */
double cfxi_rt_random_uniform(cfxi_random r, int64_t i);  /* in [0, 1), 53 bits */
double cfxi_rt_random_normal(cfxi_random r, int64_t i);

/* ---- calls (row_call.c) -------------------------------------------------------------------- */

struct cfxi_call;

/* Who plans a program instead of computing it (src/plan). Calls whose arguments are all known are
 * computed at once. The others have tensors among their arguments whose memory is only planned: the
 * rule describes the results, as ever, and views of planned memory are views; what a kernel would
 * compute is noted. */
typedef struct cfxi_planner {
    /* Notes a call after its rule, and plans memory for the results that have none. */
    cfx_status (*note)(struct cfxi_planner *self, struct cfxi_call *c, const cfxi_signature *s);
    bool any_layout;     /* results may have other strides than they would have without a plan */
    bool finds_layouts;  /* set by a rule that could make use of that */
} cfxi_planner;

typedef struct cfxi_call {
    cfx_operator op;
    const cfx_datum *args;  /* one for each parameter of the row */
    cfx_datum results[CFXI_MOST_RESULTS];
    cfx_runtime *rt;
    cfx_dims *dims;         /* of symbols; may be NULL */
    bool infer;             /* only the rule is asked: tensors may be abstract */
    bool gives;             /* the caller's references to the arguments are dropped next */
    const struct cfxi_watch *watch;  /* who is told what the nodes of its regions give; or NULL */
    cfxi_planner *planner;           /* or NULL */
    cfx_tensor *const *planned;      /* for each result, where it is planned to be; or NULL */
    struct cfxi_map *described;      /* an element-wise kernel only says what it does; or NULL */
    cfx_error *err;
} cfxi_call;

/* A rule or a kernel. All of them are declared here, and must be there: a row without is not
 * linked. */
typedef cfx_status cfxi_op_fn(cfxi_call *c);
#define CFX_OPERATOR(id, schema, spellings, flags, rule)                                           \
    cfxi_op_fn cfxi_rule_##rule;                                                                   \
    cfxi_op_fn cfxi_kernel_##id;
#define CFX_BY_RULE(id, schema, spellings, flags, rule) cfxi_op_fn cfxi_rule_##rule;
#define CFX_IN_PLACE(id, schema, spellings, flags)
#define CFX_HOST_ONLY(id, schema, spellings, flags)
#include <cfx/ops.def>
#undef CFX_OPERATOR

/* What calls cost. (cost.c) */
typedef struct cfxi_meter cfxi_meter;
/* After a call: `args` are by the row's parameters, as rules see them. */
cfx_status cfxi_rt_meter_call(cfxi_meter *m, const cfxi_call *c, cfx_operator op, size_t n,
                              cfx_datum result);
/* Likewise of a row of a library: what it computes, nobody knows, but its results take memory. */
cfx_status cfxi_rt_meter_custom(cfxi_meter *m, const cfxi_call *c, const cfxi_signature *s,
                                cfx_datum result);
/* A program is run, and ends: slots 0, 1, ... are its own. What is in a slot is alive. */
cfx_status cfxi_rt_meter_enter(cfxi_meter *m, size_t num_slots, cfx_error *err);
void cfxi_rt_meter_leave(cfxi_meter *m);
cfx_status cfxi_rt_meter_set(cfxi_meter *m, uint32_t slot, cfx_datum value, cfx_error *err);
cfx_status cfxi_rt_meter_drop(cfxi_meter *m, uint32_t slot, cfx_error *err);
cfx_status cfxi_rt_meter_end_call(cfxi_meter *m, cfx_error *err);  /* its result is in its slot */
/* The operations of a call that went well, as a size: see cfxi_rt_operator_flops. (flops.c) */
int64_t cfxi_rt_flops(const cfxi_call *c, cfx_operator op, size_t n, cfx_datum result);
/* How many elements, as a size. (flops.c) */
int64_t cfxi_rt_elements(cfx_dims *dims, const cfx_tensor *t, cfx_error *err);

/* Who is told what each node gives, and the node that this is a region of. (program_run.c) */
typedef struct cfxi_watch {
    cfx_infer_fn *each;  /* or NULL */
    void *ctx;
    cfxi_meter *meter;   /* or NULL */
    const char *node;    /* NULL: it is no region */
    const struct cfxi_watch *outer;
} cfxi_watch;
/* Likewise; the regions among the arguments are watched by `watch` (may be NULL). */
cfx_datum cfxi_rt_call_watched(cfx_runtime *rt, cfx_dims *dims, bool infer, const cfxi_watch *watch,
                               cfx_operator op, const cfx_datum *args, size_t n, cfx_error *err);
/* Computes, and nobody watches. The caller drops its references to the arguments next: regions
 * may have what is in a tuple of operands for themselves. */
cfx_datum cfxi_rt_call_giving(cfx_runtime *rt, cfx_operator op, const cfx_datum *args, size_t n,
                              cfx_error *err);
/* Plans: see cfxi_planner. INVALID with CFX_E_UNSUPPORTED for what depends on elements: numbers,
 * sizes and branches. */
cfx_datum cfxi_rt_call_planned(cfx_runtime *rt, cfxi_planner *planner, cfx_operator op,
                               const cfx_datum *args, size_t n, cfx_error *err);
/* Computes a call that was noted: `c` has its arguments, and c->planned where results are to be. A
 * kernel that only fills its results finds these in c->results; one that chooses their memory (a
 * view, or a copy) finds headers without any. Afterwards c->results are c->planned, whose
 * references are the caller's. */
cfx_status cfxi_rt_call_kernel(cfxi_call *c, const cfxi_signature *s);
/* Whether the row has no kernel: its rule does all. */
bool cfxi_rt_is_by_rule(cfx_operator op);
/* Runs a REGION in c's mode: what it returns is the caller's; INVALID with c->err set. */
cfx_datum cfxi_rt_region_run(const cfxi_call *c, cfx_datum region, const cfx_datum *args, size_t n);
/* Likewise, with the caller's references to the arguments, which are gone afterwards, also if it
 * fails: what the region uses for the last time, nobody else holds. */
cfx_datum cfxi_rt_region_take(const cfxi_call *c, cfx_datum region, cfx_datum *args, size_t n);

/* Fills full[], one datum for each parameter, owned by the caller also if it fails. (arguments.c)
 * */
cfx_status cfxi_rt_arguments(cfxi_call *c, const cfxi_signature *s, const cfx_datum *args, size_t n,
                             cfx_datum *full);
/* Puts "matmul(float32[2, 3], float32[4, 5]): " before what c->err says; `name` is the operator's.
 * */
void cfxi_rt_call_explain(const cfxi_call *c, const char *name, const cfxi_signature *s);
/* Memory for result i, if it is a tensor without any whose sizes are known. */
cfx_status cfxi_rt_result_provide(cfxi_call *c, size_t i);
/* What the row returns, of the results: taken over. */
cfx_datum cfxi_rt_call_pack(cfxi_call *c, const cfxi_signature *s);
void cfxi_rt_call_drop_results(cfxi_call *c);
/* Whether all that earlier calls should have made is there; else *err keeps their reason. */
bool cfxi_rt_all_given(const cfx_runtime *rt, const cfx_datum *args, size_t n, cfx_error *err);

/* For a row that is made of others: computes `op` of tensors and numbers, inside a rule or kernel,
 * in c's mode. The result is the caller's; INVALID with c->err set. */
cfx_datum cfxi_rt_sub(cfxi_call *c, cfx_operator op, const cfx_datum *args, size_t n);
/* The same where the result is one tensor: a new reference, or NULL. */
cfx_tensor *cfxi_rt_sub_tensor(cfxi_call *c, cfx_operator op, const cfx_datum *args, size_t n);

/* Calls that chain (row_chain.c): the reference to x is given up, also if it fails, and NULL gives
 * NULL. `op` of x and up to 4 more arguments, */
cfx_tensor *cfxi_rt_then(cfxi_call *c, cfx_operator op, cfx_tensor *x, const cfx_datum *more,
                         size_t n);
/* of x and y, which is given up, too, */
cfx_tensor *cfxi_rt_then_with(cfxi_call *c, cfx_operator op, cfx_tensor *x, cfx_tensor *y);
/* or of x and a list of at most CFX_MAX_DIMS numbers. */
cfx_tensor *cfxi_rt_then_list(cfxi_call *c, cfx_operator op, cfx_tensor *x, const int64_t *numbers,
                              size_t n);

/* Sets the message and returns the status: what is wrong with the arguments. */
#define cfxi_fail(c, status, ...) cfx_error_set((c)->err, status, __VA_ARGS__)

/* ---- arguments ----------------------------------------------------------------------------- */

/* Whether a rule may compute, too: not if only types and sizes are asked for, or if it is planned,
 * when elements are not there yet. */
static inline bool cfxi_rt_computes(const cfxi_call *c) { return !c->infer && !c->planner; }
/* Whether the elements of a tensor are there. */
static inline bool cfxi_rt_can_read(const cfx_tensor *t)
{
    return t->storage && !t->storage->planned;
}

/* NULL if it is None. */
static inline cfx_tensor *cfxi_rt_tensor(const cfxi_call *c, size_t i)
{
    return c->args[i].kind == CFX_DATUM_TENSOR ? c->args[i].as.tensor : NULL;
}
/* A new reference to argument i; NULL if it is None. */
static inline cfx_tensor *cfxi_rt_hold(const cfxi_call *c, size_t i)
{
    return cfx_tensor_retain(cfxi_rt_tensor(c, i));
}
static inline bool cfxi_rt_is_none(const cfxi_call *c, size_t i)
{
    return c->args[i].kind == CFX_DATUM_NONE || c->args[i].kind == CFX_DATUM_INVALID;
}
static inline bool cfxi_rt_is_number(cfx_datum d)
{
    return d.kind == CFX_DATUM_BOOL || d.kind == CFX_DATUM_INT || d.kind == CFX_DATUM_FLOAT ||
           d.kind == CFX_DATUM_COMPLEX;
}
static inline bool cfxi_rt_bool(const cfxi_call *c, size_t i) { return c->args[i].as.b; }
static inline double cfxi_rt_float(const cfxi_call *c, size_t i) { return c->args[i].as.f; }
/* Of an INT that may be a symbol (sizes); cfxi_rt_number where it must be known. */
static inline int64_t cfxi_rt_int(const cfxi_call *c, size_t i) { return c->args[i].as.i; }
/* A number of any kind as a double: a Scalar. NAN if it is not known when a rule asks. */
double cfxi_rt_scalar(const cfxi_call *c, size_t i);
/* The type a Scalar has: bool, int64, float64, complex128. */
cfx_dtype cfxi_rt_scalar_dtype(cfx_datum d);
/* An INT that must not be a symbol. */
cfx_status cfxi_rt_number(cfxi_call *c, size_t i, int64_t *out);
/* An int[] (sizes may be symbols) into out[CFX_MAX_DIMS]; *n its length, 0 for None. */
cfx_status cfxi_rt_ints(cfxi_call *c, size_t i, int64_t out[], size_t *n);
/* Items of a Tensor[]: borrowed. */
static inline const cfx_datum *cfxi_rt_list(const cfxi_call *c, size_t i, size_t *n)
{
    return cfx_datum_items(c->args[i], n);
}
static inline const char *cfxi_rt_str(const cfxi_call *c, size_t i)  /* NULL if None */
{
    return cfx_datum_text(c->args[i], NULL);
}
/* The dtype given, or `otherwise` for None. */
static inline cfx_dtype cfxi_rt_dtype_or(const cfxi_call *c, size_t i, cfx_dtype otherwise)
{
    return c->args[i].kind == CFX_DATUM_DTYPE ? (cfx_dtype)c->args[i].as.i : otherwise;
}
/* A dimension counted from the end if negative, of a tensor with `ndim` (0 counts as 1):
 * CFX_E_INDEX in PyTorch's words if it is none. */
cfx_status cfxi_rt_dim(cfxi_call *c, int64_t dim, size_t ndim, size_t *out);

/* ---- results ------------------------------------------------------------------------------- */

/* In a rule: result i is a tensor of this type and these sizes, contiguous. */
cfx_status cfxi_rt_result(cfxi_call *c, size_t i, cfx_dtype dtype, const int64_t *sizes,
                          size_t ndim);
/* Likewise with the sizes of `t`, dense, in the order of its strides (as PyTorch's element-wise
 * functions and *_like keep it). (element_loop.c) */
cfx_status cfxi_rt_result_like(cfxi_call *c, size_t i, cfx_dtype dtype, const cfx_tensor *t);
/* Result i is this datum, whose reference is taken over (a number, a tensor that is an argument).
 * */
void cfxi_rt_result_datum(cfxi_call *c, size_t i, cfx_datum d);
/* The tensor that result i is. */
static inline cfx_tensor *cfxi_rt_result_at(const cfxi_call *c, size_t i)
{
    return c->results[i].as.tensor;
}

/* In a kernel: result i, whose header the rule has made, becomes a view of `base` with these
 * strides. */
cfx_status cfxi_rt_result_view(cfxi_call *c, size_t i, const cfx_tensor *base,
                               const int64_t *strides, int64_t offset);
/* Fails if `t`, an argument, cannot be written to: its memory is read-only, or it is expanded. */
cfx_status cfxi_rt_check_written(cfxi_call *c, const cfx_tensor *t);
/* Gives it memory of its own; its sizes must be known by now (set them in the header). */
cfx_status cfxi_rt_result_allocate(cfxi_call *c, size_t i);

/* ---- sizes --------------------------------------------------------------------------------- */

/* Whether two sizes are the same; of symbols it may be assumed (dim.h). */
static inline bool cfxi_rt_same_size(const cfxi_call *c, int64_t a, int64_t b)
{
    return a == b || ((cfx_dim_is_symbol(a) || cfx_dim_is_symbol(b)) &&
                      cfx_dim_expect_eq(c->dims, a, b));
}
/* Where sizes are broadcast: 1 becomes the other size. Symbols are larger than 1, as dim.h has it,
 * and so equal; but with cautious dims (dim_impl.h) nothing is assumed of one that may be 1: what
 * it becomes is then a size that nobody knows. (arguments.c) */
/* *a becomes the size that both have together; false if they do not fit. */
bool cfxi_rt_join_sizes(cfxi_call *c, int64_t *a, int64_t b);
/* Whether a size can be broadcast to `to`. */
bool cfxi_rt_broadcasts(cfxi_call *c, int64_t size, int64_t to);
/* Whether a dimension of this size is one of those that squeeze takes away; it fails if that cannot
 * be told. */
cfx_status cfxi_rt_is_one(cfxi_call *c, int64_t size, bool *out);
/* A size nobody knows yet: CFX_DIM_UNKNOWN when computing. */
int64_t cfxi_rt_fresh(cfxi_call *c);
/* An INT that nobody knows yet, and that may be negative: what item() gives. */
cfx_datum cfxi_rt_unknown_int(cfxi_call *c);
/* The sizes that the tensors have together, as PyTorch broadcasts them; CFX_E_SHAPE in its words.
 * */
cfx_status cfxi_rt_broadcast(cfxi_call *c, const cfx_tensor *const *tensors, size_t n,
                             int64_t sizes[CFX_MAX_DIMS], size_t *ndim);

/* In a rule: result i has the sizes of the tensors together and the layout that PyTorch's
 * element-wise functions give it: the order of dimensions is that of the operands' strides, where
 * they differ that of the first; broadcast ones have no say. NULL entries are skipped.
 * (element_loop.c) */
cfx_status cfxi_rt_result_broadcast(cfxi_call *c, size_t i, cfx_dtype dtype,
                                    const cfx_tensor *const *tensors, size_t n);

/* ---- loops over elements (element_loop.c) -------------------------------------------------- */

enum { CFXI_MOST_OPERANDS = 9 };

/* n elements of each operand, beginning at at[k], step[k] bytes apart (0 where it is broadcast). */
typedef void cfxi_loop_fn(void *ctx, int64_t n, char *const *at, const int64_t *step);
/* fn over all elements of operands[0], to whose sizes the others are broadcast, in as few and long
 * rows as the strides allow, on the pool: pieces have at least `grain` elements. */
void cfxi_rt_loop(cfx_runtime *rt, const cfx_tensor *const *operands, size_t n, int64_t grain,
                  cfxi_loop_fn *fn, void *ctx);

/* Likewise in planes: `rows` rows of n elements each, row_step[k] bytes from one to the next. */
typedef void cfxi_plane_fn(void *ctx, int64_t n, int64_t rows, char *const *at,
                           const int64_t *step, const int64_t *row_step);
void cfxi_rt_loop_planes(cfx_runtime *rt, const cfx_tensor *const *operands, size_t n,
                         int64_t grain, cfxi_plane_fn *fn, void *ctx);

/* ---- checks of types ----------------------------------------------------------------------- */

/* In a rule: CFX_E_SHAPE in PyTorch's words if cfxi_tensor_can_cast says no. (row_call.c) */
cfx_status cfxi_rt_check_cast(cfxi_call *c, cfx_dtype from, cfx_dtype to);

/* ---- copies (tensor_copy.c) ---------------------------------------------------------------- */

/* dst[...] = src, broadcast and converted. They may overlap only if they are the same. */
cfx_status cfxi_rt_copy(cfx_runtime *rt, cfx_tensor *dst, const cfx_tensor *src, cfx_error *err);
/* n elements of `size` bytes, at any distances (in bytes). */
void cfxi_rt_move(size_t size, int64_t n, const char *from, int64_t from_step, char *to,
                  int64_t to_step);
/* Makes n elements of `size` bytes of the first at `to`. */
void cfxi_rt_repeat(size_t size, int64_t n, char *to);
/* A matrix of elements of `size` bytes turned over: `to` has rows of `columns` elements, to_row
 * bytes apart; a column of it lies side by side in `from`, where columns are from_column bytes
 * apart. (transpose.c) */
void cfxi_rt_transpose(cfx_isa isa, size_t size, int64_t rows, int64_t columns, char *to,
                       int64_t to_row, const char *from, int64_t from_column);
/* `t` itself (retained) if it is contiguous and of that type, else a contiguous copy; NULL with
 * c->err set. */
cfx_tensor *cfxi_rt_contiguous(cfxi_call *c, const cfx_tensor *t, cfx_dtype dtype);

/* dst[0..n) = src[0..n), converted as PyTorch converts; both are without gaps. (convert_blocks.c)
 * */
void cfxi_rt_convert(cfx_isa isa, cfx_dtype to, void *dst, cfx_dtype from, const void *src,
                     int64_t n);

/* The runtime's library: borrowed, may be NULL. (runtime.c) */
const struct cfx_library *cfxi_rt_library(const cfx_runtime *rt);

/* How many operations a call takes, as a size (dim.h): see cfx_cost. The table is in flops.c.
 * Arguments and failures as cfx_operator_infer; CFX_DIM_UNKNOWN then. (cost.c) */
int64_t cfxi_rt_operator_flops(cfx_runtime *rt, cfx_dims *dims, cfx_operator op,
                               const cfx_datum *args, size_t n, cfx_error *err);

#endif
