/* plan_impl.h - a stretch of a program planned for values of given types, sizes and strides.
 *
 * Planning runs the program on tensors whose memory has an address and a size, but no bytes. Rules
 * run unchanged: views are views, and arithmetic on sizes is done for good. Calls whose arguments
 * are known are computed, and their results are constants. What is left is a list of steps.
 *
 * A stretch begins with any instruction, and ends before one whose result depends on elements, that
 * runs regions, writes to memory that others may see, or has other sizes in each run: the
 * interpreter runs that one, and the next stretch is planned when its sizes are known. What a
 * stretch reads of the slots are its inputs, what it leaves there are its results.
 *
 * A plan is immutable and shared by any number of threads. What one run needs is in a session:
 * memory for intermediate results, and headers and arguments that point into it.
 */
#ifndef CFXI_PLAN_IMPL_H
#define CFXI_PLAN_IMPL_H

#include "backend/backend_impl.h"
#include "runtime/program_impl.h"

enum { CFXI_NONE = UINT32_MAX };

/* Where planned memory comes from in a run. */
typedef enum cfxi_memory_kind {
    CFXI_MEMORY_ARENA,   /* of the session */
    CFXI_MEMORY_INPUT,   /* of the tensor number `index` among the inputs */
    CFXI_MEMORY_RESULT   /* new for each run: what is returned points into it */
} cfxi_memory_kind;

typedef struct cfxi_memory {
    cfxi_memory_kind kind;
    uint32_t index;      /* INPUT: which; RESULT: counted from 0 */
    uint32_t own;        /* INPUT: the number of the tensor that is the input itself */
    size_t size;
    size_t offset;       /* ARENA, RESULT: in it. INPUT: of the tensor's first element */
    uint32_t first;      /* the steps that write it first, */
    uint32_t last;       /* and read it last */
    uint32_t same;       /* the memory whose place it takes over (in place), which took over
                            none itself; or CFXI_NONE */
    uint32_t part_of;    /* another memory in which it lies, spread: plan_join.h; or CFXI_NONE */
    int64_t part_at;     /* and where it begins there */
    uint32_t slots;      /* while it is planned: how many tensors in slots see it */
    cfxi_storage storage; /* what planned tensors point to: `planned`, with an address */
} cfxi_memory;

/* A tensor with planned memory. */
typedef struct cfxi_planned_tensor {
    cfx_tensor *header;  /* retained */
    uint32_t memory;
    int64_t offset;      /* of its first element, in bytes from that of the memory */
} cfxi_planned_tensor;

/* One call of a kernel: of a row, or of a back end. */
typedef struct cfxi_step {
    cfx_operator op;
    const char *node;        /* where it comes from: texts of the program */
    const char *file;        /* or NULL */
    uint32_t line;
    uint8_t num_args;
    uint8_t num_results;
    uint8_t chosen;          /* bit i: the kernel chooses the memory of result i */
    cfx_datum *args;         /* with planned tensors: owned by the plan */
    cfx_datum results[CFXI_MOST_RESULTS];
    cfxi_kernel *kernel;     /* of a back end, instead of the row's; or NULL */
    uint32_t x, out;         /* its operands: numbers of tensors */
    uint32_t operands[CFXI_MOST_OPERANDS];
    size_t num_operands;
    cfxi_chain *chain;       /* of a post: owned; or NULL */
    bool removed;            /* became a part of another step */
} cfxi_step;

/* Bytes of constants that tensors among the outs have in common. */
typedef struct cfxi_shared {
    const char *begin;
    size_t size;
} cfxi_shared;

/* A value in a slot, with planned tensors. */
typedef struct cfxi_slot_value {
    uint32_t slot;
    bool taken;          /* of an input: nothing after the stretch reads it */
    cfx_datum value;
} cfxi_slot_value;

typedef struct cfxi_plan {
    const cfx_allocator *allocator;
    const cfx_program *program;  /* borrowed */
    uint32_t first, end;     /* instructions */
    cfx_isa isa;             /* and threads of the runtimes that it is for */
    unsigned threads;
    uintptr_t address;       /* of the next memory */
    cfxi_vec memories;       /* of cfxi_memory *, each allocated: tensors point to their storages */
    cfxi_vec tensors;        /* of cfxi_planned_tensor */
    cfxi_hash_map by_header; /* cfx_tensor * -> 1 + number */
    cfxi_vec steps;          /* of cfxi_step */
    cfxi_vec inputs;         /* of cfxi_slot_value */
    cfxi_vec outs;           /* of cfxi_slot_value */
    cfxi_hash_map first_out; /* cfx_tensor * -> 1 + the first of the outs that is it */
    cfxi_vec shared;         /* of cfxi_shared: constant memory that several outs see */
    cfxi_hash_map shared_by; /* cfx_tensor *, a constant -> 1 + which of them it sees */
    uint32_t num_inputs;     /* tensors in inputs */
    uint32_t num_results;    /* memories of kind RESULT */
    size_t arena;            /* bytes */
    uint64_t packing;        /* nanoseconds in which kernels were prepared */
    cfxi_vec given;          /* what each instruction has given, for a second build: cfx_datum */
} cfxi_plan;

static inline cfxi_memory *cfxi_plan_memory(const cfxi_plan *p, uint32_t i)
{
    return ((cfxi_memory **)p->memories.data)[i];
}
/* Of planned storage. */
static inline cfxi_memory *cfxi_plan_memory_with(cfxi_storage *s)
{
    return (cfxi_memory *)(void *)((char *)s - offsetof(cfxi_memory, storage));
}
static inline cfxi_planned_tensor *cfxi_plan_tensor(const cfxi_plan *p, uint32_t i)
{
    return &((cfxi_planned_tensor *)p->tensors.data)[i];
}
static inline cfxi_step *cfxi_plan_step(const cfxi_plan *p, size_t i)
{
    return &((cfxi_step *)p->steps.data)[i];
}

static inline cfxi_slot_value *cfxi_plan_input(const cfxi_plan *p, size_t i)
{
    return &((cfxi_slot_value *)p->inputs.data)[i];
}
static inline cfxi_slot_value *cfxi_plan_out(const cfxi_plan *p, size_t i)
{
    return &((cfxi_slot_value *)p->outs.data)[i];
}

/* ---- tensors and memory (plan_tensors.c) --------------------------------------------------- */

/* Memory of its own, with an address; NULL with *err set. */
cfxi_memory *cfxi_plan_add_memory(cfxi_plan *plan, cfxi_memory_kind kind, size_t size,
                                  cfx_error *err);
/* Gives a header without memory some of the arena. */
cfx_status cfxi_plan_give_memory(cfxi_plan *plan, cfx_tensor *t, cfx_error *err);
/* Enters the planned tensors of a datum into the table, once. */
cfx_status cfxi_plan_list(cfxi_plan *plan, cfx_datum d, cfx_error *err);
/* Argument i of a step, if it is a tensor; else NULL. */
static inline cfx_tensor *cfxi_plan_tensor_arg(const cfxi_step *s, size_t i)
{
    return i < s->num_args && s->args[i].kind == CFX_DATUM_TENSOR ? s->args[i].as.tensor : NULL;
}
/* Whether it is a tensor with planned memory. */
static inline bool cfxi_plan_is_planned(cfx_datum d)
{
    return d.kind == CFX_DATUM_TENSOR && d.as.tensor->storage && d.as.tensor->storage->planned;
}
/* The number of a planned tensor; CFXI_NONE if its memory is not planned. */
uint32_t cfxi_plan_number(const cfxi_plan *plan, const cfx_tensor *t);
/* A view of the same elements whose strides are these: those of dimensions of size 1 may differ,
 * which tell formats of images. NULL with *err set. */
cfx_tensor *cfxi_plan_with_strides(cfx_tensor *t, const int64_t *stride, cfx_error *err);
/* The same elements in a layout: itself if it has that. Where it has both, because there is one
 * channel, the strides of the result say that channels are last. INVALID with *err set. */
cfx_datum cfxi_plan_lay_as(cfx_runtime *rt, cfxi_planner *planner, cfx_tensor *t,
                           cfx_memory_format format, cfx_error *err);
/* The memory that a memory is a part of, in the end; or itself. */
static inline uint32_t cfxi_plan_root(const cfxi_plan *p, uint32_t memory)
{
    while (cfxi_plan_memory(p, memory)->part_of != CFXI_NONE)
        memory = cfxi_plan_memory(p, memory)->part_of;
    return memory;
}
/* Whether two tensors lie alike: sizes, and strides where they matter. */
bool cfxi_plan_lie_alike(const cfx_tensor *a, const cfx_tensor *b);
/* Likewise, but for gaps between rows: dimensions follow each other in the same order. */
bool cfxi_plan_lie_in_order(const cfx_tensor *a, const cfx_tensor *b);
/* Calls fn(ctx, tensor) for each planned tensor in a datum. */
typedef void cfxi_plan_visit_fn(void *ctx, uint32_t tensor);
void cfxi_plan_visit(const cfxi_plan *plan, cfx_datum d, cfxi_plan_visit_fn *fn, void *ctx);
/* A datum in which each tensor is what fn makes of it, and of what stands at the same place in
 * `beside`, which has the same containers (or is INVALID): the caller's. INVALID with *err set. */
typedef cfx_datum cfxi_plan_map_fn(void *ctx, cfx_tensor *t, cfx_datum beside, cfx_error *err);
cfx_datum cfxi_plan_map(cfx_datum d, cfx_datum beside, cfxi_plan_map_fn *fn, void *ctx,
                        const cfx_allocator *allocator, cfx_error *err);
/* Forgets memories and tensors from these numbers on. */
void cfxi_plan_cut(cfxi_plan *plan, size_t memories, size_t tensors);
/* For a vector of the plan: room for one more item at its end; NULL with *err set. */
void *cfxi_plan_push(cfxi_vec *vec, size_t size, const cfx_allocator *allocator, cfx_error *err);

/* ---- making (plan_build.c) ----------------------------------------------------------------- */

/* For each instruction of a program, whether plans leave it to the interpreter (plan_cuts.c). */
typedef atomic_uchar cfxi_cut;

/* Who computes products and convolutions. */
typedef struct cfxi_plan_how {
    cfxi_onednn *onednn;  /* or NULL */
    cfxi_tuner *tuner;    /* or NULL */
    cfx_precision precision;
    cfxi_packs *packs;    /* weights that the plans of a program have in common, */
    const cfxi_pointers *weights;  /* which are in these memories: cfxi_storage * -> not NULL */
    const cfxi_cut *cuts;
    struct cfxi_appender *appender;  /* or NULL: plan_append.h */
} cfxi_plan_how;

/* Plans the stretch that begins with the instruction `first`, for values like those in the slots
 * (elements are not looked at). It may have no instruction at all. `p` must outlive the plan. NULL
 * with *err set if memory is out, or if the run is interrupted. */
cfxi_plan *cfxi_plan_new(const cfx_program *p, cfx_runtime *rt, uint32_t first,
                         const cfx_datum *slots, const cfxi_plan_how *how, cfx_error *err);
void cfxi_plan_free(cfxi_plan *plan);

/* ---- convolutions over lines (plan_line.c) ------------------------------------------------- */

/* Whether a call is one with known weights, which can be planned as one over images. */
bool cfxi_plan_is_line(cfx_operator op, const cfx_datum *args, size_t n);
/* Its result, whose channels lie side by side. INVALID with *err set. */
cfx_datum cfxi_plan_call_line(cfx_runtime *rt, cfxi_planner *planner, const cfx_datum *args,
                              size_t n, cfx_error *err);

/* ---- constants that are left in slots (plan_constants.c) ----------------------------------- */

/* A run copies the constants that it leaves, since others may write to them. Finds which of them
 * overlap: these are copied together, and what is written to one is then seen in the others. */
cfx_status cfxi_plan_share_constants(cfxi_plan *plan, cfx_error *err);
/* A copy of a constant among the outs. copies[i], NULL at first, becomes the bytes of the plan's
 * shared memory i. NULL with *err set. */
cfx_tensor *cfxi_plan_copy_constant(const cfxi_plan *plan, cfx_runtime *rt, const cfx_tensor *t,
                                    cfx_tensor **copies, cfx_error *err);
/* A tensor of these sizes and strides, without memory; NULL with *err set. */
cfx_tensor *cfxi_plan_header_like(const cfxi_plan *plan, const cfx_tensor *t, cfx_error *err);

/* ---- which values it is for (plan_key.c) --------------------------------------------------- */

/* Whether it is for values like those in the slots: kinds, types, sizes, strides, numbers. */
bool cfxi_plan_takes(const cfxi_plan *plan, const cfx_runtime *rt, const cfx_datum *slots);
/* Whether a datum is one that plans can take: tensors, numbers, tuples of them. */
bool cfxi_plan_can_take(cfx_datum d);

/* ---- sizes that differ from run to run (plan_cuts.c) --------------------------------------- */

/* Compares two plans of a program that begin alike, for values of other sizes: if plans keep at
 * least half of the weights without the instructions whose arguments differ, these are cut. Returns
 * whether they are. */
bool cfxi_plan_find_cuts(const cfxi_plan *a, const cfxi_plan *b, cfxi_cut *cuts);

/* ---- joins (plan_place.c) ------------------------------------------------------------------- */

/* Lets steps write what is joined where it belongs: plan_join.h. */
cfx_status cfxi_plan_place(cfxi_plan *plan, cfx_error *err);
/* A join that has the items of an earlier one, and more, has its result instead: what grows from
 * layer to layer is a chain. Not those in memories that are `seen`. (plan_join.c) */
cfx_status cfxi_plan_shorten_joins(cfxi_plan *plan, const bool *seen, cfx_error *err);
/* Removes the joins whose items are all in place. After fusing. */
void cfxi_plan_drop_joins(cfxi_plan *plan);

/* ---- fusing (plan_fuse.c) ------------------------------------------------------------------ */

/* Gives products and convolutions with constant weights to back ends, with what follows them. */
cfx_status cfxi_plan_fuse(cfxi_plan *plan, cfx_runtime *rt, const cfxi_plan_how *how,
                          cfx_error *err);

/* Gives layers of LSTMs with constant weights to their kernel. (plan_lstm.c) */
cfx_status cfxi_plan_lstms(cfxi_plan *plan, cfx_error *err);

/* ---- memory (plan_memory.c) ---------------------------------------------------------------- */

/* Finds out how long each memory lives, and gives each a place. */
cfx_status cfxi_plan_lay_out(cfxi_plan *plan, cfx_error *err);

/* ---- running (plan_run.c) ------------------------------------------------------------------ */

typedef struct cfxi_plan_session cfxi_plan_session;

cfxi_plan_session *cfxi_plan_session_new(const cfxi_plan *plan, cfx_error *err);
void cfxi_plan_session_free(cfxi_plan_session *s);
/* Runs with values that cfxi_plan_takes: takes those that nobody reads later from the slots, and
 * leaves its results there. */
cfx_status cfxi_plan_run(cfxi_plan_session *s, cfx_runtime *rt, cfx_datum *slots, cfx_error *err);

/* ---- for people (plan_print.c) ------------------------------------------------------------- */

void cfxi_plan_print(const cfxi_plan *plan, cfxi_out *out);
/* Bytes of the packed weights of a step. */
size_t cfxi_plan_weights(const cfxi_step *step);
/* "product, tiles of 8 x 48", as far as there is room. */
void cfxi_plan_kernel_text(const cfxi_step *step, char *text, size_t size);

#endif
