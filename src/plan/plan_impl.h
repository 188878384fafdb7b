/* plan_impl.h - a program planned for inputs of given types, sizes and strides.
 *
 * Planning runs the program on tensors whose memory has an address and a size, but no bytes. Rules
 * run unchanged: views are views, and arithmetic on sizes is done for good. Calls whose arguments
 * are known are computed, and their results are constants. What is left is a list of steps.
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
    CFXI_MEMORY_INPUT,   /* of the caller's argument number `index` */
    CFXI_MEMORY_RESULT   /* new for each run: what is returned points into it */
} cfxi_memory_kind;

typedef struct cfxi_memory {
    cfxi_memory_kind kind;
    uint32_t index;      /* INPUT: which; RESULT: counted from 0 */
    size_t size;
    size_t offset;       /* ARENA: in it */
    uint32_t first;      /* the steps that write it first, */
    uint32_t last;       /* and read it last */
    uint32_t same;       /* another memory whose place it takes over (in place); or CFXI_NONE */
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
    const cfxi_signature *signature;
    cfxi_kernel *kernel;     /* of a back end, instead of the row's; or NULL */
    uint32_t x, out;         /* its operands: numbers of tensors */
    uint32_t operands[CFXI_MOST_POSTS];
    bool removed;            /* became a part of another step */
} cfxi_step;

typedef struct cfxi_plan {
    const cfx_allocator *allocator;
    cfx_runtime *rt;         /* that it was planned with: borrowed */
    const cfx_program *program;  /* borrowed */
    cfxi_vec memories;       /* of cfxi_memory *, each allocated: tensors point to their storages */
    cfxi_vec tensors;        /* of cfxi_planned_tensor */
    cfxi_hash_map by_header; /* cfx_tensor * -> 1 + number */
    cfxi_vec steps;          /* of cfxi_step */
    cfx_datum result;        /* with planned tensors */
    size_t num_inputs;
    cfx_datum *inputs;       /* planned tensors, and other values as they were given */
    uint32_t num_results;    /* memories of kind RESULT */
    size_t arena;            /* bytes */
    uint32_t running;        /* while it is built: the instruction, */
    cfxi_vec given;          /* and what instructions have given, for a second build: cfx_datum */
} cfxi_plan;

static inline cfxi_memory *cfxi_plan_memory(const cfxi_plan *p, uint32_t i)
{
    return ((cfxi_memory **)p->memories.data)[i];
}
static inline cfxi_planned_tensor *cfxi_plan_tensor(const cfxi_plan *p, uint32_t i)
{
    return &((cfxi_planned_tensor *)p->tensors.data)[i];
}
static inline cfxi_step *cfxi_plan_step(const cfxi_plan *p, size_t i)
{
    return &((cfxi_step *)p->steps.data)[i];
}

/* ---- making (plan_build.c) ----------------------------------------------------------------- */

/* Plans a program for inputs like these (their elements are not looked at). `p` and `rt` must
 * outlive the plan. NULL with *err set: CFX_E_UNSUPPORTED if something depends on elements, or the
 * errors that a run would give. */
cfxi_plan *cfxi_plan_new(const cfx_program *p, cfx_runtime *rt, const cfx_datum *inputs, size_t n,
                         cfx_error *err);
void cfxi_plan_free(cfxi_plan *plan);
/* Whether inputs are like those that it was made for: kinds, types, sizes, strides, numbers. */
bool cfxi_plan_takes(const cfxi_plan *plan, const cfx_datum *inputs, size_t n);
/* The number of a planned tensor; CFXI_NONE if its memory is not planned. */
uint32_t cfxi_plan_number(const cfxi_plan *plan, const cfx_tensor *t);
/* Calls fn(ctx, tensor) for each planned tensor in a datum. */
typedef void cfxi_plan_visit_fn(void *ctx, uint32_t tensor);
void cfxi_plan_visit(const cfxi_plan *plan, cfx_datum d, cfxi_plan_visit_fn *fn, void *ctx);

/* ---- fusing (plan_fuse.c) ------------------------------------------------------------------ */

/* Gives products and convolutions with constant weights to back ends, with what follows them. */
cfx_status cfxi_plan_fuse(cfxi_plan *plan, cfx_error *err);

/* ---- memory (plan_memory.c) ---------------------------------------------------------------- */

/* Finds out how long each memory lives, and gives each a place. */
cfx_status cfxi_plan_lay_out(cfxi_plan *plan, cfx_error *err);

/* ---- running (plan_run.c) ------------------------------------------------------------------ */

typedef struct cfxi_plan_session cfxi_plan_session;

cfxi_plan_session *cfxi_plan_session_new(const cfxi_plan *plan, cfx_error *err);
void cfxi_plan_session_free(cfxi_plan_session *s);
/* Runs with inputs that cfxi_plan_takes. The result is the caller's. */
cfx_datum cfxi_plan_run(cfxi_plan_session *s, const cfx_datum *inputs, size_t n, cfx_error *err);

#endif
