/* program_impl.h - a graph made ready to run: instructions, and what their arguments are made of.
 *
 * Values live in numbered slots, which are used again after the last use of what is in them. The
 * arguments of an instruction are written as pieces, a list before what it is part of:
 *
 *     cat([%a, %b], 1)         SLOT a   TAKE b   SEQ list 2   CONSTANT 1
 *
 * A TAKE is the last use of a slot's value: it moves. Whatever has no node in it is one constant.
 */
#ifndef CFXI_PROGRAM_IMPL_H
#define CFXI_PROGRAM_IMPL_H

#include "library_impl.h"

#include "ir/graph_impl.h"

enum { CFXI_NO_SLOT = UINT32_MAX };

typedef enum cfxi_piece_kind {
    CFXI_PIECE_CONSTANT,
    CFXI_PIECE_SLOT,
    CFXI_PIECE_TAKE,
    CFXI_PIECE_SEQ
} cfxi_piece_kind;

typedef struct cfxi_piece {
    uint16_t kind;   /* cfxi_piece_kind */
    uint16_t datum;  /* SEQ: the cfx_datum_kind to make */
    uint32_t index;  /* CONSTANT, SLOT, TAKE: which; SEQ: of how many items */
} cfxi_piece;

typedef struct cfxi_instruction {
    cfx_operator op;
    const cfxi_custom *custom;  /* what is called instead of `op`; or NULL */
    uint32_t first;    /* of its pieces */
    uint32_t end;
    uint32_t num_args;
    uint32_t slot;     /* of its result; CFXI_NO_SLOT: nobody uses it */
    uint32_t line;
    const char *name;  /* of the node */
    const char *file;  /* or NULL */
} cfxi_instruction;

typedef struct cfxi_input {
    const char *name;
    uint32_t slot;
    cfx_datum value;   /* the default; INVALID: there is none */
} cfxi_input;

/* A get_attr: a constant from the start; the name is for who asks what each node gives. */
typedef struct cfxi_attribute {
    const char *name;
    cfx_datum value;
} cfxi_attribute;

/* Who runs stretches of a program at once, as they were planned (src/plan). */
typedef struct cfxi_stretches {
    /* Runs what it can from the instruction `first` on: takes the values that it needs from the
     * slots, and leaves in them what is read later. *end becomes the first instruction that it has
     * not run; `first` if it has run none. Before *again, which is after `first` then, it need not
     * be asked. */
    cfx_status (*run)(struct cfxi_stretches *self, cfx_runtime *rt, uint32_t first,
                      cfx_datum *slots, uint32_t *end, uint32_t *again, cfx_error *err);
    /* Calls instruction number `at` in a way of its own. INVALID without an error: it has none. */
    cfx_datum (*call)(struct cfxi_stretches *self, cfx_runtime *rt, uint32_t at,
                      const cfx_datum *args, size_t n, cfx_error *err);
    void (*free)(struct cfxi_stretches *self);
} cfxi_stretches;

struct cfx_program {
    const cfx_allocator *allocator;
    cfxi_stretches *stretches;   /* owned; NULL: instructions are run one by one */
    const cfx_library *library;  /* or NULL */
    cfxi_arena arena;        /* names, files */
    cfxi_vec inputs;         /* of cfxi_input */
    cfxi_vec attributes;     /* of cfxi_attribute */
    cfxi_vec instructions;   /* of cfxi_instruction */
    cfxi_vec pieces;         /* of cfxi_piece */
    cfxi_vec constants;      /* of cfx_datum, owned */
    cfxi_vec regions;        /* of cfx_program *, owned */
    uint32_t num_slots;
    uint32_t most_pieces;    /* that are on the stack at once: at most */
    uint32_t result;         /* the first piece of what is returned; CFXI_NO_SLOT: None is */
    bool partial;            /* some instructions call nothing: for inferring sizes alone */
};

/* A program of a graph that is lowered in part (lower.h): what cannot be run gives a value that is
 * not known. Only cfxi_rt_program_sizes takes it. Arguments and failures as cfx_program_new.
 * (program.c) */
cfx_program *cfxi_rt_program_partial(const cfx_graph *g, const cfx_state *state,
                                     const cfx_allocator *allocator, cfx_error *err);
/* Like cfx_program_infer, of a partial program. What depends on a value that is not known is not
 * known either, and None in the result. `strict`: an operator that fails ends it; otherwise its
 * result is not known. (program_run.c) */
cfx_datum cfxi_rt_program_sizes(const cfx_program *p, cfx_runtime *rt, cfx_dims *dims,
                                const cfx_datum *inputs, size_t n, bool strict, cfx_error *err);

/* A value of the graph without nodes, as a datum; INVALID with *err set if it has no meaning at run
 * time. (program_value.c) */
cfx_datum cfxi_rt_datum_from_value(cfx_value v, const cfx_allocator *allocator, cfx_error *err);
/* cfx_program_infer, watched. (program_run.c) */
cfx_datum cfxi_rt_program_watch(const cfx_program *p, cfx_runtime *rt, cfx_dims *dims,
                                const cfx_datum *inputs, size_t n, const cfxi_watch *watch,
                                cfx_error *err);
/* Says where an error happened: "model.py:12: matmul(...): inner sizes differ (node %mm)". `in` may
 * be NULL. What failed in a region has that already. (program_run.c) */
void cfxi_rt_locate(const char *node, const char *in, uint32_t line, cfx_error *err);
/* What a container is at run time; false if the kind is no container. */
bool cfxi_rt_seq_kind(cfx_kind kind, cfx_datum_kind *out);

#endif
