/* plan_builder.h - a stretch that is being planned: what its files share while it is walked. */
#ifndef CFXI_PLAN_BUILDER_H
#define CFXI_PLAN_BUILDER_H

#include "plan_impl.h"

typedef struct cfxi_builder {
    cfxi_planner planner;  /* first: rows know the builder by it */
    cfxi_plan *plan;
    cfx_runtime *rt;
    uint32_t running;      /* the instruction */
    const cfx_datum *from; /* the values that the plan is for: slots */
    cfx_datum *slots;      /* those that were read or written; INVALID: not yet, or taken */
    uint32_t *input_of;    /* 1 + the number of the input that is in a slot; or 0 */
    cfx_datum *stack;
    size_t depth;
    /* What each instruction gives if images keep the layout that they have in the program; `was`
     * are the slots then. NULL while that is found out. */
    const cfx_datum *eager;
    cfx_datum *was;        /* borrowed from `eager` and the inputs */
    bool divides;          /* such images may be divided, too: see cfxi_plan_keeps_layout */
    cfxi_pointers turned;  /* cfx_tensor * -> the same, channels last: retained */
    cfxi_pointers back;    /* cfx_tensor * -> the same, as the program would have it: retained */
    const cfxi_cut *cuts;
    cfx_error *err;
} cfxi_builder;

/* Puts `d` into a slot: takes it over. */
void cfxi_plan_set_slot(cfxi_builder *b, uint32_t slot, cfx_datum d);

/* ---- layouts of images (plan_images.c) ----------------------------------------------------- */

/* Whether an operator gives the same elements for any strides of its arguments. Others get the
 * layout that the program would have. Of what `divides`, the result may be a part of an image,
 * which cannot be turned back by itself. */
bool cfxi_plan_keeps_layout(cfx_operator op, bool divides);
/* A value, or a container of some, in the layout of `was`, which the program would have it in.
 * Takes `d` over. INVALID with b->err set. */
cfx_datum cfxi_plan_restored(cfxi_builder *b, cfx_datum d, cfx_datum was);
/* On the stack, before a call: the image of a convolution with known weights gets its channels side
 * by side. */
cfx_status cfxi_plan_turn_image(cfxi_builder *b, cfx_operator op);
void cfxi_plan_forget_layouts(cfxi_builder *b);

/* ---- who sees what is written (plan_alias.c) ----------------------------------------------- */

/* The result of a call in place, whose arguments are on the stack: computed by the row `functional`
 * into a new tensor, which takes the place of the first argument. INVALID with b->err set. */
cfx_datum cfxi_plan_call_in_place(cfxi_builder *b, const cfxi_instruction *i,
                                  cfx_operator functional);
/* Whether a list would be in two places: what one of them writes to it, the other has to see, and a
 * plan leaves copies. */
bool cfxi_plan_shares_list(const cfxi_builder *b, cfx_datum result);
/* Whether the results of one plan share memory as those of another for the same stretch do: what is
 * written to one of them later, others may have to see. */
bool cfxi_plan_shares_alike(const cfxi_plan *a, const cfxi_plan *b);

/* ---- results (plan_results.c) -------------------------------------------------------------- */

/* Writes down what later instructions read of the slots. */
cfx_status cfxi_plan_leave_results(cfxi_builder *b);

#endif
