/* graph_control_impl.h - control flow on graph values: what journal.c, merge.c, region_build.c,
 * branch.c and loop.c share. See evaluate_impl.h for how it works. */
#ifndef CFXI_GRAPH_CONTROL_IMPL_H
#define CFXI_GRAPH_CONTROL_IMPL_H

#include "evaluate_impl.h"

/* ---- the journal (journal.c) --------------------------------------------------------------- */

typedef enum cfxi_place_kind {
    CFXI_PLACE_LOCAL,      /* a slot of a frame */
    CFXI_PLACE_ATTRIBUTE,  /* of an object */
    CFXI_PLACE_CONTENTS,   /* of a list, dict, set or another object that can be refilled */
    CFXI_PLACE_ASSIGNED    /* whether an attribute of a module was: a bool, known or not */
} cfxi_place_kind;

/* Something that a program can change. */
typedef struct cfxi_place {
    cfxi_place_kind kind;
    cfxi_frame *frame;     /* of others: the call that first changed it, for messages; or NULL */
    uint32_t slot;
    cfx_object *object;
    const char *name;
    const cfxi_ast *at;    /* of others: where in that call */
} cfxi_place;

/* What is in a place. */
typedef struct cfxi_state {
    cfx_object *value;          /* of a slot or attribute: NULL if it is not bound; of contents: the
                                   graph value, if the list is growing */
    const cfxi_poison *poison;  /* of a slot */
    uint32_t line;              /* of a slot: where it was bound */
    cfx_object **items;         /* of contents */
    size_t n;
} cfxi_state;

typedef struct cfxi_change {
    cfxi_place place;
    cfxi_state before;
    cfxi_state after;    /* once the region is closed */
    uint32_t noted;      /* of a slot: the region that had noted it before this one */
    uint32_t hash;       /* of the place */
} cfxi_change;

/* What happens between open and close, or until now: nodes behind the marker, and changes. */
struct cfxi_region {
    cfxi_region *parent;
    uint32_t number;
    cfx_node *marker;    /* NULL in the outermost */
    cfxi_change *changes;  /* in the arena */
    size_t n, capacity;
    cfxi_hash_set places;  /* numbers of changes, by their places; in the arena */
    bool trial;            /* it is committed unless it turns out to depend on data */
    cfx_object *stays;     /* what it changed for good: the region cannot be discarded */
};

/* Opens a region at the end of the graph; NULL: memory is out. It lies in the arena. */
cfxi_region *cfxi_eval_region_open(cfx_evaluator *ev);
/* Closes the innermost one: everything is as it was before it, and its changes say what it had
 * become; its nodes stay where they are, up to the next marker. */
bool cfxi_eval_region_close(cfx_evaluator *ev);
/* Opens it again: all is as it was when it was closed. Its nodes must be the last of the graph. */
bool cfxi_eval_region_reopen(cfx_evaluator *ev, cfxi_region *r);
/* Ends the innermost one and keeps what it did: its changes become its parent's. */
bool cfxi_eval_region_commit(cfx_evaluator *ev);
/* Ends it as if it had never been. */
bool cfxi_eval_region_discard(cfx_evaluator *ev);

bool cfxi_eval_place_read(cfx_evaluator *ev, const cfxi_place *p, cfxi_state *state);
/* Whether the place was in the same state. */
bool cfxi_eval_state_is(cfx_evaluator *ev, const cfxi_place *p, const cfxi_state *a,
                        const cfxi_state *b);
/* Writes without a journal. */
bool cfxi_eval_place_write(cfx_evaluator *ev, const cfxi_place *p, const cfxi_state *state);
/* Notes it in the innermost region, which is about to change it. */
bool cfxi_eval_place_note(cfx_evaluator *ev, const cfxi_place *p);
/* The same for one that has changed since; `before` is what it was. */
bool cfxi_eval_place_note_late(cfx_evaluator *ev, const cfxi_place *p, const cfxi_state *before);
/* Opens a region that is committed or discarded. */
cfxi_region *cfxi_eval_trial_open(cfx_evaluator *ev);
/* What the region has noted of it, or NULL. */
cfxi_change *cfxi_eval_region_change(const cfxi_region *r, const cfxi_place *p);
/* What holds the contents of a list or dict: the graph value, or a new one of that kind. */
cfx_object *cfxi_eval_whole(cfx_evaluator *ev, const cfxi_state *contents, cfx_object_kind kind);
/* Whether it is not read again after `here` (line << 32 | column, as
 * cfx_script_def.last_read; 0: at the end of its call): a slot whose last use is over. */
bool cfxi_eval_place_is_dead(const cfx_evaluator *ev, const cfxi_place *p, uint64_t here);
/* The same of a slot, `here` being where its call is. */
bool cfxi_eval_slot_is_dead(const cfxi_frame *f, uint32_t slot, uint64_t here);
/* Whether a statement behind the one that runs, in the same block, assigns a slot before anybody
 * reads it, and nothing leaves the block before that. (loop.c) */
bool cfxi_eval_slot_is_rewritten(const cfx_evaluator *ev, const cfxi_frame *f, uint32_t slot);

static inline uint64_t cfxi_eval_end_of(const cfxi_ast *a)
{
    return (uint64_t)a->end_line << 32 | a->end_column;
}
static inline uint64_t cfxi_eval_start_of(const cfxi_ast *a)
{
    return (uint64_t)a->line << 32 | a->column;
}

/* Fails: a change of `o` could not be undone. Returns false. (change.c) */
bool cfxi_eval_fail_stays(cfx_evaluator *ev, cfx_object *o);

/* ---- lists and dicts that became graph values (growing_list.c, growing_dict.c) --------------- */

/* `o` is the graph value `now` from now on, with its journal; now NULL: false. */
bool cfxi_eval_become(cfx_evaluator *ev, cfx_object *o, cfx_object *now);
/* What a graph value is to hold of `v`: containers in it are made whenever it is computed. */
cfx_object *cfxi_eval_handed_over(cfx_evaluator *ev, cfx_object *v);
/* o.clear() */
cfx_object *cfxi_eval_clear_contents(cfx_evaluator *ev, cfx_object *o);
/* Raises an exception of that builtin class if the graph value holds; wrong NULL: false. */
bool cfxi_eval_raise_if(cfx_evaluator *ev, cfx_object *wrong, const char *class, const char *words);
/* Of dicts: as cfxi_eval_growing_method and cfxi_eval_growing_set_item. */
cfx_object *cfxi_eval_dict_method(cfx_evaluator *ev, cfx_object *o, const char *name,
                                  cfx_call_args args, bool *done);
bool cfxi_eval_dict_set_item(cfx_evaluator *ev, cfx_object *o, cfx_object *key, cfx_object *v,
                             bool *done);

/* ---- objects that may be one (object_alias.c) ---------------------------------------------- */

/* Notes that `o`, which is new, stands for `a` or for `b` (NULL: for the other one). Objects of the
 * same `merge` stand for their first, or all for their second. */
bool cfxi_eval_note_origin(cfx_evaluator *ev, cfx_object *o, cfx_object *a, cfx_object *b,
                           uint64_t merge);
/* Whether it can be changed: fails if the program sees another that may be the same. */
bool cfxi_eval_check_alias(cfx_evaluator *ev, cfx_object *o);
/* Notes that a graph value is to hold what is known of `o`, a container, and of those in it: once
 * more than before, unless it is a list that already held it which becomes one. */
bool cfxi_eval_escape(cfx_evaluator *ev, cfx_object *o, bool once_more);
/* The same of all that a list or dict holds which becomes a graph value. */
bool cfxi_eval_escape_items(cfx_evaluator *ev, cfx_object **items, size_t n);
/* Notes the same of the lists and dicts that are growing in `o`: something has got their graph
 * values as they are now. */
bool cfxi_eval_lend(cfx_evaluator *ev, cfx_object *o);

/* What to do about two that no graph value can stand for: of one type, or `otherwise`. (frame.c) */
const char *cfxi_eval_kinds_advice(const cfxi_poison *p, const char *otherwise);

/* ---- what a raise meets (may_raise.c) ------------------------------------------------------ */

/* A `try` or `with` that is being run. A raise that data decide becomes a node, which no handler
 * catches and behind which nothing is run. So all that is around it has its say when it is
 * recorded. */
struct cfxi_guard {
    const cfxi_guard *outer;
    cfxi_frame *frame;
    const cfxi_Try *handlers;   /* set: its handlers are tried */
    const cfxi_Try *final;      /* set: its `finally` is run */
    cfx_object *exit;           /* set: a method of a context manager, which has a source */
    cfxi_catcher catches;       /* else: what the context manager catches */
};

/* The exception `exc` leaves all that is around it: runs what is written behind it, in the way that
 * raises. Fails if something would catch it, or cannot be run there. */
bool cfxi_eval_pass_guards(cfx_evaluator *ev, const cfxi_ast *at, cfx_object *exc);
/* Whether an exception would do nothing but leave the call: nothing is run behind it, and no
 * attribute of a module has been assigned to. */
bool cfxi_eval_leaves_nothing(cfx_evaluator *ev);
/* Fails if a handler around here would catch an exception of this builtin class. */
bool cfxi_eval_check_uncaught(cfx_evaluator *ev, const cfxi_ast *at, const char *name);

/* 1, 0, or -1 with ev->err set: whether the handler is for the exception. (try_with.c) */
int cfxi_eval_handles(cfx_evaluator *ev, const cfxi_ExceptHandler *h, cfx_object *exc);
/* Calls an __exit__; exc NULL: nothing was raised. (try_with.c) */
cfx_object *cfxi_eval_call_exit(cfx_evaluator *ev, cfx_object *exit, cfx_object *exc);

/* ---- attributes of modules (module_changes.c) ---------------------------------------------- */

/* The program assigns `v` to an attribute, which the journal has noted and which still has its old
 * value; NULL: deletes it. */
bool cfxi_eval_note_assigned(cfx_evaluator *ev, cfx_object *module, const char *name,
                             cfx_object *v);
/* What is in a place of that kind. */
cfx_object *cfxi_eval_is_assigned(const cfx_evaluator *ev, const cfxi_place *p);
bool cfxi_eval_put_assigned(cfx_evaluator *ev, const cfxi_place *p, cfx_object *value);

/* The call ends: puts attributes back that have been assigned to, and records nodes that write
 * them, each in the ways that assign it. */
bool cfxi_eval_keep_changes(cfx_evaluator *ev);
/* It is left here by an exception: records such nodes, and changes nothing. Fails if a graph cannot
 * keep one; not if the exception is `hidden`, a check in a library: as with any other call that
 * fails, a setting that the program would put back later is then as it was. */
bool cfxi_eval_keep_early(cfx_evaluator *ev, bool hidden);
/* Whether there is anything for it to write. */
bool cfxi_eval_has_changes(cfx_evaluator *ev);

/* ---- merging (merge.c) --------------------------------------------------------------------- */

/* Values that come out of a region, or go round a loop: pairs of which one or the other will be
 * the result. */
typedef struct cfxi_outlet {
    cfx_object *a, *b;       /* NULL: whatever */
    cfx_object_kind kind;
    cfx_object *result;      /* what stands for it afterwards, once there is a node */
} cfxi_outlet;

typedef struct cfxi_merge {
    cfx_evaluator *ev;
    cfxi_vec outlets;        /* of cfxi_outlet */
    cfxi_pointers built;     /* containers: of the first of the pair -> cfxi_form */
    uint32_t number;         /* counts merges */
    unsigned results;        /* how often the outlets have got results */
    const cfxi_pointers *always;  /* objects that come out even if they stay the same; or NULL */
    const cfxi_region *in_a, *in_b;  /* closed ones that the values come from: lists and dicts had
                                        the contents then that these have noted; or NULL */
    cfx_object *flag;        /* what decides, if it is the mode of a module or its opposite: True
                                where the first value counts; or NULL */
    cfxi_poison why;         /* if a merge failed by kinds: types of both */
} cfxi_merge;

/* Whether values of the kind are merged by what is in them. */
bool cfxi_eval_is_container(cfx_object_kind kind);
/* How a merged value is made up of results: a tree in the arena. */
typedef struct cfxi_form cfxi_form;
typedef enum cfxi_merged {
    CFXI_MERGED_FAIL = -1,   /* ev->err is set */
    CFXI_MERGED,
    CFXI_MERGED_NOT          /* of other types: merge->why */
} cfxi_merged;

void cfxi_eval_merge_begin(cfxi_merge *m, cfx_evaluator *ev);
void cfxi_eval_merge_end(cfxi_merge *m);
/* One of `a` and `b`, or either if it is NULL. Containers of the same form are merged item by item;
 * what is known and equal stays known. */
cfxi_merged cfxi_eval_merge_values(cfxi_merge *m, cfx_object *a, cfx_object *b, cfxi_form **form);
/* The same of what decides whether attributes are written: those that are assigned in the same ways
 * share a result. */
cfxi_merged cfxi_eval_merge_assigned(cfxi_merge *m, cfx_object *a, cfx_object *b, cfxi_form **form);
/* An outlet in any case: for what is to be a graph value. */
cfxi_form *cfxi_eval_merge_outlet(cfxi_merge *m, cfx_object *a, cfx_object *b,
                                  cfx_object_kind kind);
/* A value of that form, all outlets having their results; NULL: failed. */
cfx_object *cfxi_eval_form_value(cfx_evaluator *ev, const cfxi_merge *m, cfxi_form *form);
/* Takes back all merges since there were so many outlets; their forms are gone. */
void cfxi_eval_merge_take_back(cfxi_merge *m, size_t outlets);

/* Merges what two ways made of the places that either has changed: `a` and `b` are lists of
 * changes; with `dead` bit 1 or 2 the one or the other way never gets behind the branch, with bit 4
 * or 8 it leaves the call, so that its variables do not matter. Then, all outlets having results,
 * writes it. */
typedef struct cfxi_merged_places cfxi_merged_places;
cfxi_merged_places *cfxi_eval_merge_places(cfxi_merge *m, const cfxi_region *a,
                                           const cfxi_region *b, unsigned dead, uint64_t here);
bool cfxi_eval_write_places(cfxi_merge *m, const cfxi_merged_places *places);

/* ---- regions of the graph (region_build.c) ------------------------------------------------- */

/* The nodes behind `first`, a marker, up to before `last` (NULL: all), and what they give. */
typedef struct cfxi_span {
    cfx_node *first;
    cfx_node *last;
    cfx_object **results;    /* n_results; NULL entries are None */
    cfx_node *const *inputs; /* nodes of the span that become the first inputs of the region */
} cfxi_span;

/* Makes a cond of two spans that lie one behind the other, in any order, in their place; n results,
 * each read by a node of its own: out[i]. With no results the cond is made for its effects. */
bool cfxi_eval_make_cond(cfx_evaluator *ev, cfx_object *pred, const cfxi_span *then,
                         const cfxi_span *otherwise, size_t n, cfx_object **out);
/* cfx.while_loop of a test and a body, the second behind the first; or cfx.for_loop if count is
 * set, of a body alone, whose first input is the index. `state` are the n values that it begins
 * with. */
bool cfxi_eval_make_loop(cfx_evaluator *ev, cfx_object *count, const cfxi_span *test,
                         const cfxi_span *body, cfx_object *const *state, size_t n,
                         cfx_object **out);
/* Takes all nodes from `first` on out of the graph. */
bool cfxi_eval_erase_from(cfx_evaluator *ev, cfx_node *first);
/* A node that stands for something that comes in later: an input of a region, or a marker. */
cfx_node *cfxi_eval_stand_in(cfx_evaluator *ev, const char *name);

/* ---- the order of values (result_order.c) -------------------------------------------------- */

/* In which order the n results of two branches are to come, `results` being what each gives:
 * (*order)[i] is the number of the i-th. It depends on the nodes of the spans only. */
bool cfxi_eval_order_results(cfx_evaluator *ev, const cfxi_span *const *sides,
                             cfx_value *const *results, size_t n, size_t **order);
/* Likewise of the state of a loop, `inputs` being the nodes that stand for it, and `next` what the
 * body makes of it. */
bool cfxi_eval_order_state(cfx_evaluator *ev, const cfxi_span *test, const cfxi_span *body,
                           cfx_node *const *inputs, const cfx_value *next, size_t n,
                           size_t **order);

/* ---- ways (branch.c) ----------------------------------------------------------------------- */

/* How a part of the program ended. */
typedef struct cfxi_outcome {
    uint32_t mask;       /* bits of the flows that are possible; none: it never ends */
    cfx_object *code;    /* a graph value, which of them, if there are several */
    cfx_object *result;  /* of RETURN */
} cfxi_outcome;

/* Merges all that is pending since `base` into the region that it began in, evaluation being at the
 * end of it with `flow`. Flows up to `upto` are one: ON. */
bool cfxi_eval_join(cfx_evaluator *ev, size_t base, cfxi_flow flow, cfxi_flow upto,
                    cfxi_outcome *out);
/* Goes on after that: the flow of the way that leaves least; the others are pending. */
cfxi_flow cfxi_eval_resume(cfx_evaluator *ev, const cfxi_outcome *out, cfxi_flow upto);
/* The same; `left` (may be NULL) runs in the ways that are pending: what only they have. */
cfxi_flow cfxi_eval_resume_with(cfx_evaluator *ev, const cfxi_outcome *out, cfxi_flow upto,
                                cfxi_way *left, void *ctx);
/* Runs a way for what has not left since `base` by a flow up to `upto`; what has is behind it. */
cfxi_flow cfxi_eval_unless_left(cfx_evaluator *ev, size_t base, cfxi_flow upto, cfxi_way *run,
                                void *ctx);
/* Adds a node that raises ev->raised, which is done with then. */
bool cfxi_eval_record_raise(cfx_evaluator *ev);

/* ---- loops (loop.c, loop_items.c) ----------------------------------------------------------- */

typedef enum cfxi_sequence_kind {
    CFXI_SEQUENCE_ITEMS,      /* `object` */
    CFXI_SEQUENCE_RANGE,      /* parts: one to three numbers */
    CFXI_SEQUENCE_ENUMERATE,  /* parts: a sequence, and perhaps a number */
    CFXI_SEQUENCE_ZIP,
    CFXI_SEQUENCE_REVERSED
} cfxi_sequence_kind;

/* A list or dict of the program's that is a graph value, and that a `for` goes over. */
typedef struct cfxi_owner {
    cfx_object *object;
    const char *part;         /* of a dict: "keys", "values" or "items" */
    cfx_object *start;        /* its graph value at the start of the round */
} cfxi_owner;

/* What a `for` goes over. */
typedef struct cfxi_sequence {
    cfxi_sequence_kind kind;
    bool graph;               /* how many there are is a graph value; else `object` gives them */
    cfx_object *object;
    cfxi_owner *owner;        /* whose items are read when their round comes; or NULL */
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
/* The same for a list or dict that is growing. */
bool cfxi_eval_check_owner(cfx_evaluator *ev, cfx_object *o, const char *method);
/* Around a round of a loop over dicts that are growing: if it added keys, the graph raises what
 * Python does. */
bool cfxi_eval_has_keyed(const cfxi_sequence *s);
void cfxi_eval_begin_round(cfx_evaluator *ev, const cfxi_sequence *s);
bool cfxi_eval_end_round(cfx_evaluator *ev, const cfxi_sequence *s);

/* Whether the lists that an unrolled loop goes over are still known. Refuses it if data decide how
 * many items one of them has now: then they decide how many rounds there are. (loop_items.c) */
bool cfxi_eval_check_known(cfx_evaluator *ev, const cfxi_sequence *s);

/* Captures it, without its else. The flow behind it; what broke it is pending if there is an else.
 * (data_loop.c) */
cfxi_flow cfxi_eval_loop_run(cfx_evaluator *ev, const cfxi_loop *loop);

#endif
