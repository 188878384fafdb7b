/* loop_impl.h - loops: what loop.c and loop_items.c share. */
#ifndef CFXI_LOOP_IMPL_H
#define CFXI_LOOP_IMPL_H

#include "graph_control_impl.h"

typedef enum cfxi_sequence_kind {
    CFXI_SEQUENCE_ITEMS,      /* `object` */
    CFXI_SEQUENCE_RANGE,      /* parts: one to three numbers */
    CFXI_SEQUENCE_ENUMERATE,  /* parts: a sequence, and perhaps a number */
    CFXI_SEQUENCE_ZIP,
    CFXI_SEQUENCE_REVERSED
} cfxi_sequence_kind;

/* What a `for` goes over. */
typedef struct cfxi_sequence {
    cfxi_sequence_kind kind;
    bool graph;               /* how many there are is a graph value; else `object` gives them */
    cfx_object *object;
    cfx_object *function;     /* that made it */
    struct cfxi_sequence *parts;
    size_t n;
} cfxi_sequence;

bool cfxi_eval_sequence_of(cfx_evaluator *ev, const cfxi_ast *expr, cfxi_sequence *s);
bool cfxi_eval_sequence_known(cfx_evaluator *ev, cfxi_sequence *s);
cfx_object *cfxi_eval_sequence_count(cfx_evaluator *ev, const cfxi_sequence *s);
cfx_object *cfxi_eval_sequence_item(cfx_evaluator *ev, const cfxi_sequence *s, cfx_object *i);

/* Runs `round` for each item, as cfxi_eval_each. (loop.c) */
cfxi_flow cfxi_eval_go_over(cfx_evaluator *ev, const cfxi_ast *at, const cfxi_sequence *s,
                            cfxi_round *round, void *ctx);

/* A loop that a graph value ends. Either `test` is set, or `over`. */
typedef struct cfxi_loop {
    const cfxi_ast *at;
    cfx_object *(*test)(cfx_evaluator *ev, void *ctx);  /* whether there is another round */
    const cfxi_sequence *over;
    cfxi_round *round;        /* `item` is NULL with a test */
    void *ctx;
    const cfxi_ast_list *orelse;  /* run if nothing breaks it; or NULL */
    bool runs;                /* it has one round at least */
    uint32_t may_exit;        /* flows that leave it, as the body is written: bits */
    uint64_t test_end; /* where the test ends (as cfx_script_def.last_read): a variable that is not
                          read behind it, and has no value before, is the test's own */
} cfxi_loop;

/* A loop that begins with statements for its test, and a `break`. (loop_test.c) */
typedef struct cfxi_head {
    const cfxi_While *loop;
    size_t n;                 /* statements of the body before the one that breaks */
    const cfxi_ast *test;
    bool ends;                /* the loop ends if the test holds; else if it does not */
} cfxi_head;

/* Whether a loop is one, whose statements compute nothing but variables of the test's own. */
bool cfxi_eval_find_head(const cfx_evaluator *ev, const cfxi_While *s, cfxi_head *head);
cfx_object *cfxi_eval_head_test(cfx_evaluator *ev, void *head);
cfxi_flow cfxi_eval_head_round(cfx_evaluator *ev, void *head, cfx_object *item);

/* The loops over graph values around what is evaluated, innermost first. */
typedef struct cfxi_going {
    const struct cfxi_going *outer;
    const cfxi_sequence *over;
    const struct attempt *attempt;
} cfxi_going;

/* What a variable of the loop was before it; `o` if the loop does not carry it. (data_loop.c) */
cfx_object *cfxi_eval_before_loop(const struct attempt *a, cfx_object *o);

/* Whether a method that changes the length of `o`, or `del`, is called while a loop goes over it:
 * such a loop counts to the length at its start. Refuses it. (loop_items.c) */
bool cfxi_eval_check_going(cfx_evaluator *ev, cfx_object *o, const char *method);

/* Whether the lists that an unrolled loop goes over are still known. Refuses it if data decide how
 * many items one of them has now: then they decide how many rounds there are. (loop_items.c) */
bool cfxi_eval_check_known(cfx_evaluator *ev, const cfxi_sequence *s);

/* Captures it, without its else. The flow behind it; what broke it is pending if there is an else.
 * (data_loop.c) */
cfxi_flow cfxi_eval_loop_run(cfx_evaluator *ev, const cfxi_loop *loop);

#endif
