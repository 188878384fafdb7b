/* evaluate_impl.h - evaluating the tree of a script (script.h) over the objects of a world.
 *
 * How the parts fit together, in the order of the data's path:
 *
 *     function_scopes.c   functions of a source, and which names are local to them
 *     world_calls.c       questions to the world, and the pool of its answers
 *     frame.c             active calls and their names
 *     script_error.c      errors, with the line, a caret and the call stack
 *     evaluator.c         the public functions; what worlds record, by name
 *     statement.c         statements
 *     expr.c              expressions
 *     display.c           tuples, lists, sets, dicts
 *     comprehend.c        comprehensions
 *     assign.c            targets of assignments
 *     evaluate_call.c     calls
 *     special_builtins.c  builtin functions that need the evaluator
 *     type_questions.c    those that ask for types and attributes
 *     chosen_call.c       calls of an item that data selects
 *     function.c          def, lambda, class; arguments bound to parameters
 *     match_statement.c   match
 *     try_with.c          try, with, raise, assert
 *     may_raise.c         what nodes may raise when the graph runs
 *     branch.c            if on graph values
 *     merge.c             two values that become one
 *     merge_places.c      what both branches changed
 *     value_kind.c        what is known of a graph value
 *     result_order.c      the order of results and loop state
 *     loop.c              while and for
 *     loop_items.c        what a for iterates over
 *     data_loop.c         loops that data ends
 *     growing_list.c      lists that became graph values
 *     growing_dict.c      dicts that did
 *     object_alias.c      lists that may be the same object after a branch
 *     journal.c           what a branch changed, and undoing it
 *     change.c            what may be changed, and calls that change their arguments
 *     iterator_rest.c     all items of an iterator of the prelude
 *     prelude.c           iterators and other functions of Python that are written in Python
 *     region_build.c      nodes that become regions
 *     module_changes.c    attributes of modules that are assigned to
 *     buffer_copies.c     results that share the memory of such buffers
 *     tidy.c              the finished graph put in order
 *
 * Objects are pooled: every function here returns borrowed objects that live until the evaluator is
 * freed, so that nobody counts. A function that returns an object returns NULL if it failed, and
 * ev->err says why (CFX_E_HOST: the world has an exception pending).
 *
 * Branches. All nodes go to the end of one graph. Where a graph value decides, both ways are run
 * one after the other, with a journal of what each changed (variables, attributes, contents of
 * lists and dicts), which is put back in between; then their nodes are cut out into regions, and
 * what differs after them is merged into results of a cond.
 * A way that ends early (return, break, continue) while the other falls through is not merged at
 * once: evaluation stays inside the way that falls through, and the branch is *pending* until the
 * call or the loop ends where the other way went to; then all that is pending is merged from the
 * inside out. So
 *     if a: return x                       cond(a, {x}, {rest of the function})
 * needs no flags. Only where several ways fall through after one of them has lost a part by an
 * early exit is there a number that says which way was taken (settle in branch.c).
 */
#ifndef CFXI_EVALUATE_IMPL_H
#define CFXI_EVALUATE_IMPL_H

#include <cfx/embed/script.h>

#include "ir/graph_impl.h"
#include "script/syntax/parse.h"

#include <stdatomic.h>

/* ---- sources and their functions (function_scopes.c) --------------------------------------- */

typedef enum cfxi_def_kind {
    CFXI_DEF_MODULE,
    CFXI_DEF_FUNCTION,
    CFXI_DEF_LAMBDA,
    CFXI_DEF_CLASS,
    CFXI_DEF_COMPREHENSION
} cfxi_def_kind;

enum { CFXI_NO_SLOT = UINT32_MAX };

/* Names of one script, each a pointer of the script's own, with a number. */
typedef struct cfxi_name_set {
    const char **items;
    uint32_t count;
    uint32_t capacity;             /* of `items` */
    cfxi_hash_map numbers;         /* from items to uint64_t */
} cfxi_name_set;

/* Where a local is assigned to. */
typedef struct cfxi_write {
    uint64_t place;                /* line << 32 | column */
    uint32_t slot;
} cfxi_write;

/* Something that has names of its own. */
struct cfx_script_def {
    cfxi_def_kind kind;
    const cfxi_ast *ast;
    const char *name;              /* "<lambda>", "<listcomp>" */
    const cfx_script *script;
    const cfx_script_def *outer;   /* NULL: the module */
    const cfxi_arguments *params;  /* of functions and lambdas */
    uint32_t line;                 /* where Python says that it begins */
    uint32_t n_params;             /* positional, keyword-only, *args, **kwargs */
    uint32_t n_locals;             /* parameters first */
    const char **locals;
    uint64_t *last_read;           /* of each local: line << 32 | column of the last place that
                                      reads it, in this or an inner def; 0: none does */
    uint64_t *first_read;          /* ... of the first */
    cfxi_write *writes;            /* of locals, but for those of literals, in the source's order */
    size_t n_writes;
    cfxi_name_set names;           /* the locals */
    cfxi_name_set globals;         /* declared `global` */
    cfxi_name_set nonlocals;
    const cfxi_ast *yields;        /* a yield or await in it, or NULL */
};

struct cfx_script {
    atomic_int count;
    cfxi_script *tree;
    const char *file;
    cfx_script_def *module;
    cfx_script_def **defs;         /* all, in the order of the source */
    size_t n_defs;
    cfxi_pointers by_ast;          /* cfxi_ast -> its cfx_script_def */
    cfxi_pointers keyed;           /* the d of each `for k in d` that has d[k] in it: a cfxi_ast */
};

/* The def of a FunctionDef, Lambda, ClassDef or comprehension. */
const cfx_script_def *cfxi_eval_def_of(const cfx_script *script, const cfxi_ast *ast);
/* The number of a name, which is of the script's own, or CFXI_NO_SLOT if it is not in the set. */
uint32_t cfxi_eval_name_set_find(const cfxi_name_set *set, const char *name);
/* The slot of a name, or CFXI_NO_SLOT if it is not local here. `name` is of the script's own. */
static inline uint32_t cfxi_eval_def_slot(const cfx_script_def *def, const char *name)
{
    return cfxi_eval_name_set_find(&def->names, name);
}
/* The number of the first write at a place or behind it, at most def->n_writes. */
size_t cfxi_eval_first_write(const cfx_script_def *def, uint64_t from);
/* The script's own pointer for a name; NULL if it does not have it. */
const char *cfxi_eval_script_name(const cfx_script *script, const char *name);

/* ---- frames (frame.c) ---------------------------------------------------------------------- */

/* Why a variable cannot be read, said at its use. */
typedef struct cfxi_poison {
    enum {
        CFXI_POISON_ONE_SIDE,   /* bound on one side of a branch only: `line` */
        CFXI_POISON_KINDS,      /* of other types on both: lines and types */
        CFXI_POISON_LOOP        /* bound in a loop that may run no round: `line` */
    } why;
    uint32_t line[2];
    char type[2][32];
} cfxi_poison;

typedef struct cfxi_local {
    cfx_object *value;          /* NULL: not bound, or poisoned */
    const cfxi_poison *poison;
    uint32_t line;              /* where it was bound */
    uint32_t journal;           /* number of the last region that has noted it */
} cfxi_local;

typedef struct cfxi_frame {
    const cfx_script_def *def;
    struct cfxi_frame *caller;  /* NULL: called by the world */
    struct cfxi_frame *outer;   /* the frame that the function was made in, or NULL */
    cfx_object *globals;
    cfxi_local *slots;           /* def->n_locals */
    size_t n_free;              /* as in cfx_script_callee */
    const char *const *free_names;
    cfx_object *const *free_values;
    cfx_object *class_cell;     /* for super(): the class that the function stands in, or NULL */
    const cfxi_ast *at;         /* the node that is evaluated, for messages and locations */
    cfx_object *result;         /* what `return` gave */
    uint32_t region;            /* ev->region->number when it was made: no journal needed there */
    size_t pendings;            /* how many there were then */
    uint64_t loop;              /* where the outermost loop that runs in it begins (as last_read);
                                   0: none runs */
    const cfxi_ast_list *block; /* the innermost block of statements that runs, or NULL */
    size_t statement;           /* which of them */
    bool captured;              /* a function was made in it, which may read its slots later */
    bool outside;               /* the call was over before the capture began */
    uint32_t finals;            /* those with `finally`, which reads variables behind a return */
} cfxi_frame;

/* ---- the evaluator ------------------------------------------------------------------------- */

typedef enum cfxi_flow {
    CFXI_FLOW_FAIL = -1,  /* ev->err is set */
    CFXI_FLOW_ON,         /* the order says how far a way leaves: out of a round, a loop, a call */
    CFXI_FLOW_CONTINUE,
    CFXI_FLOW_BREAK,
    CFXI_FLOW_RETURN,     /* frame->result */
    CFXI_FLOW_RAISE,      /* ev->raised: by a `raise` in the program, not by the world */
    CFXI_FLOWS
} cfxi_flow;

typedef struct cfxi_region cfxi_region;      /* journal.c */
typedef struct cfxi_guard cfxi_guard;        /* may_raise.c */
typedef struct cfxi_pending cfxi_pending;    /* branch.c */
typedef struct cfxi_assigned cfxi_assigned;  /* module_changes.c */

struct cfx_evaluator {
    const cfx_world *w;
    cfx_graph *g;
    const cfx_allocator *allocator;
    cfx_error *err;             /* of the call that runs; never NULL then */
    cfx_error own_err;
    cfxi_arena arena;
    cfxi_vec pool;              /* of cfx_object *: released at the end */
    cfxi_frame *frame;          /* the innermost call */
    uint32_t calls;             /* how deep they are */
    uint32_t nesting;           /* of cfxi_eval and cfxi_eval_exec, which bounds the stack */
    uint32_t copies; /* how often the statement that runs may be evaluated (cfxi_eval_if) */
    uint32_t steps;             /* to ask now and then whether to stop */
    size_t writes;              /* assignments to attributes of modules, but for settings */
    const cfx_node *since;      /* while an assignment binds its targets: the last node before it */
    const struct cfxi_going *going;  /* loops over graph values that are captured; or NULL */
    const cfxi_guard *guards;   /* what a raise here meets on its way out, innermost first */
    cfx_script_options options;
    cfx_iter open;              /* erased nodes are not used for others: see kinds */
    cfxi_region *region;        /* the innermost open one; the outermost has no parent */
    uint32_t round;             /* the region of the innermost loop that is captured; 0: none */
    uint32_t depth;             /* of open regions */
    uint32_t regions;           /* how many there were so far */
    uint32_t merges;            /* likewise */
    cfxi_vec pending;           /* of cfxi_pending */
    cfxi_pointers growing;      /* lists and dicts that are graph values now (growing_list.c) */
    cfxi_pointers births;       /* of objects that can change: how many regions there were then */
    cfxi_pointers *starts;      /* set while a loop makes what a round begins with: gets them all */
    cfxi_pointers loops;        /* what is known of loops from earlier attempts (data_loop.c) */
    cfxi_pointers origins;      /* of merged objects: what they may be (object_alias.c) */
    cfxi_pointers originals;    /* what others may be: object -> an origin that has it */
    cfxi_pointers escaped;      /* known containers that graph values hold: object -> its line */
    uint32_t shared;            /* the line in which one was put in more than once, or 0 */
    cfxi_pointers lazy;         /* lists that stand for generator expressions */
    cfxi_pointers pulled;       /* iterators of the world: the items taken so far (prelude.c) */
    cfx_script *prelude;        /* NULL: it was not needed yet */
    cfx_object *prelude_names;  /* a dict of what it defines */
    cfxi_pointers iterators;    /* the classes among them */
    cfxi_pointers assigned;     /* of modules: cfxi_assigned (module_changes.c) */
    const cfxi_frame *entered;  /* the call that runs while the world calls back, or NULL */
    cfxi_pointers kinds;        /* graph values of which more is known than the table says: node */
    cfx_object *raised;
    cfx_object *raised_cause;   /* of `raise ... from`, or NULL */
    const cfxi_ast *raised_at;
    cfxi_frame *raised_in;
    cfx_object *handled;        /* the exception of the `except` that is being run, or NULL */
    const cfx_script *placed;   /* what the world was told last: the place of what it records */
    uint32_t placed_line;
    cfx_object *none, *true_, *false_;
    cfx_script_function *functions;  /* all that it made */
    bool failed;                /* a message has been given its place */
    bool making;                /* a module's statements are run: nothing is captured yet */
    bool traced;                /* `trace` says where it was */
    cfx_script_location *trace;
    size_t n_trace, trace_capacity;
};

struct cfx_script_function {
    atomic_int count;
    const cfx_allocator *allocator;
    cfx_evaluator *ev;          /* NULL once that is gone */
    cfx_script_function *next;  /* of ev->functions */
    const cfx_script_def *def;
    cfxi_frame *outer;
    cfx_object *globals;
    cfx_object **defaults;      /* of the last positional parameters; pooled, the array too */
    size_t n_defaults;
    cfx_object **kw_defaults;   /* one for each keyword-only parameter, or NULL */
    cfx_object *class_cell;     /* set when the class around it is made */
};

/* ---- objects ------------------------------------------------------------------------------- */

/* Puts a new reference of the world's into the pool and returns it; NULL stays NULL. */
cfx_object *cfxi_eval_pool(cfx_evaluator *ev, cfx_object *o);
void *cfxi_eval_ev_alloc(cfx_evaluator *ev,
                         size_t size); /* of the arena, zeroed; NULL: err is set */

/* Notes that an object is new: what a branch does to its own objects needs no journal. What a round
 * of a loop begins with is older than the round (ev->starts). */
bool cfxi_eval_born(cfx_evaluator *ev, cfx_object *o);
cfx_object *cfxi_eval_build(cfx_evaluator *ev, cfx_script_build what, cfx_object *const *items,
                            size_t n);
cfx_object *cfxi_eval_int(cfx_evaluator *ev, int64_t i);
cfx_object *cfxi_eval_str(cfx_evaluator *ev, const char *text);
cfx_object *cfxi_eval_bool(cfx_evaluator *ev, bool b);  /* never fails */
cfx_object *cfxi_eval_tuple(cfx_evaluator *ev, cfx_object *const *items, size_t n);
cfx_object *cfxi_eval_new_list(cfx_evaluator *ev, cfx_object *const *items, size_t n);
/* What is in a container, as cfx_world.contents gives it, in the arena; false: failed. */
bool cfxi_eval_contents(cfx_evaluator *ev, cfx_object *o, cfx_object ***items, size_t *n);
/* All that an iterable gives that is known (a graph value: fails and says so). */
bool cfxi_eval_items(cfx_evaluator *ev, cfx_object *o, cfx_object ***items, size_t *n);
/* Fails: the number of items of the graph value `o` depends on data. Returns NULL. */
void *cfxi_eval_fail_count(cfx_evaluator *ev, cfx_object *o);
/* The text of a str, in the arena, so that it outlives the object. NULL if `o` has no text, or with
 * ev->err set if memory is out. */
const char *cfxi_eval_text(cfx_evaluator *ev, cfx_object *o);
/* The node of a graph value, or NULL. */
static inline cfx_node *cfxi_eval_node(cfx_evaluator *ev, cfx_object *o)
{
    return ev->w->node(ev->w->ctx, o);
}
cfx_object *cfxi_eval_proxy(cfx_evaluator *ev, cfx_node *n);
/* The world's operations, pooled. Where a list that is growing stands among the operands, its graph
 * value is meant. */
cfx_object *cfxi_eval_unary(cfx_evaluator *ev, cfx_script_sign sign, cfx_object *a);
cfx_object *cfxi_eval_binary(cfx_evaluator *ev, cfx_script_sign sign, cfx_object *a, cfx_object *b);
cfx_object *cfxi_eval_compare(cfx_evaluator *ev, cfx_script_sign sign, cfx_object *a,
                              cfx_object *b);
cfx_object *cfxi_eval_get(cfx_evaluator *ev, cfx_object *o, const char *name);
cfx_object *cfxi_eval_get_method(cfx_evaluator *ev, cfx_object *o, const char *name);
cfx_object *cfxi_eval_item(cfx_evaluator *ev, cfx_object *o, cfx_object *key);
cfx_object *cfxi_eval_world_call(cfx_evaluator *ev, cfx_object *f, cfx_call_args args);
/* The same of a method of `self`, a builtin container. */
cfx_object *cfxi_eval_world_call_bound(cfx_evaluator *ev, cfx_object *f, cfx_object *self,
                                       cfx_call_args args);
/* A call without names of arguments. */
static inline cfx_call_args cfxi_eval_args(cfx_object *const *args, size_t n)
{
    return (cfx_call_args){.args = args, .n = n};
}
/* The attribute; NULL with *missing set if that is all that is wrong (AttributeError). */
cfx_object *cfxi_eval_try_get(cfx_evaluator *ev, cfx_object *o, const char *name, bool *missing);
/* What a builtin name means; NULL with nothing said if the world does not have it. */
cfx_object *cfxi_eval_builtin(cfx_evaluator *ev, const char *name);
/* A node that calls a function of a qualified name ("operator.add", "builtins.len").
 * (region_build.c) */
cfx_object *cfxi_eval_record(cfx_evaluator *ev, const char *target, cfx_object *const *args,
                             size_t n);

/* Calls the node of a graph value after the variable that it is bound to. (region_build.c) */
bool cfxi_eval_name_after(cfx_evaluator *ev, cfx_object *v, const char *name);

/* ---- messages (frame.c) -------------------------------------------------------------------- */

/* Sets ev->err: the file and line of the node, what is wrong, the line with a caret, and the
 * call stack. Returns CFXI_FLOW_FAIL / NULL. A status of the world's own errors
 * (CFX_E_HOST) is left alone. */
void *cfxi_eval_fail(cfx_evaluator *ev, const cfxi_ast *at, cfx_status status, const char *format,
                     ...) CFX_PRINTF(4, 5);
/* The same for what Python would raise: with an exception of that builtin class, if the world has
 * it, which the program can catch; else with `status`. */
void *cfxi_eval_fail_as(cfx_evaluator *ev, const cfxi_ast *at, cfx_status status,
                        const char *exception, const char *format, ...) CFX_PRINTF(5, 6);
/* Something has failed here: gives the message its place if it has none, and notes the calls. */
void cfxi_eval_note_failure(cfx_evaluator *ev);
/* It was caught. */
void cfxi_eval_forget_failure(cfx_evaluator *ev);
/* The innermost call in the user's program: what the prelude, a library (CFX_SCRIPT_LIBRARY) or a
 * helper of the world's does happens at the place that called it. `f` itself if there is none; NULL
 * is allowed. */
cfxi_frame *cfxi_eval_visible_frame(const cfx_evaluator *ev, cfxi_frame *f);
/* The line of the innermost call. */
uint32_t cfxi_eval_line(const cfx_evaluator *ev);
/* Says which node is being evaluated: new nodes of the graph come from there. */
void cfxi_eval_at(cfx_evaluator *ev, const cfxi_ast *node);

cfxi_frame *cfxi_eval_frame_push(cfx_evaluator *ev, const cfx_script_def *def, cfxi_frame *outer,
                                 cfx_object *globals);  /* NULL: too deep, or memory is out */
void cfxi_eval_frame_pop(cfx_evaluator *ev);
/* One that is not pushed: for comprehensions, which evaluate a part of themselves outside. */
cfxi_frame *cfxi_eval_frame_new(cfx_evaluator *ev, const cfx_script_def *def, cfxi_frame *outer,
                                cfx_object *globals);
/* What Python makes of `__x` in a class, in the arena; NULL: memory is out. */
const char *cfxi_eval_mangle(cfx_evaluator *ev, const char *name);

/* Reads a name as Python does: slots of this and the outer frames, free variables, globals. NULL:
 * it is not bound, or cannot be read, and that is said. */
cfx_object *cfxi_eval_load(cfx_evaluator *ev, const char *name);
/* Binds it where Python would; v NULL: deletes it. With its journal. */
bool cfxi_eval_bind_name(cfx_evaluator *ev, const char *name, cfx_object *v);

/* ---- running the tree ---------------------------------------------------------------------- */

cfx_object *cfxi_eval(cfx_evaluator *ev, const cfxi_ast *expr);
/* The same, but a list that is growing is given as itself: for what changes it. */
cfx_object *cfxi_eval_raw(cfx_evaluator *ev, const cfxi_ast *expr);
/* Objects that are being collected, in the arena. */
typedef struct cfxi_objects {
    cfx_object **items;
    size_t n, capacity;
} cfxi_objects;
bool cfxi_eval_push(cfx_evaluator *ev, cfxi_objects *list, cfx_object *o);  /* o NULL: false */
/* The arguments of a call, with what stands behind stars. `may_join`: a graph value may stand
 * there; then all are one tuple, which is a graph value. */
bool cfxi_eval_list(cfx_evaluator *ev, cfxi_ast_list list, bool may_join, cfxi_objects *out);
/* A tuple, list or set; a dict. */
cfx_object *cfxi_eval_display(cfx_evaluator *ev, const cfxi_ast *node, cfxi_ast_list elts,
                              cfx_script_build what);
cfx_object *cfxi_eval_display_dict(cfx_evaluator *ev, const cfxi_Dict *d);
/* What stands behind **: keys and values in turn. */
bool cfxi_eval_mapping(cfx_evaluator *ev, cfx_object *o, cfxi_objects *out);
cfx_object *cfxi_eval_constant_of(cfx_evaluator *ev, const cfxi_constant *c);
cfx_script_sign cfxi_eval_sign_of(cfxi_ast_kind op);
/* A comparison; of `is`, also what can be told from the kinds of graph values. */
cfx_object *cfxi_eval_compare_sign(cfx_evaluator *ev, cfx_script_sign sign, cfx_object *a,
                                   cfx_object *b);
cfx_object *cfxi_eval_call_expr(cfx_evaluator *ev, const cfxi_Call *c);
/* Counts the nesting, which ev->nesting-- ends, and notes the place; false: it is too deep. */
bool cfxi_eval_enter(cfx_evaluator *ev, const cfxi_ast *node);
cfxi_flow cfxi_eval_exec(cfx_evaluator *ev, const cfxi_ast *statement);
cfxi_flow cfxi_eval_exec_block(cfx_evaluator *ev, cfxi_ast_list statements);
/* Assigns to a target: a name, attribute, item, slice, or a tuple or list of them with stars. */
bool cfxi_eval_assign(cfx_evaluator *ev, const cfxi_ast *target, cfx_object *v);
/* Deletes it. */
bool cfxi_eval_delete(cfx_evaluator *ev, const cfxi_ast *target);
/* Attributes and items, with their journal; v NULL: deletes. */
bool cfxi_eval_set(cfx_evaluator *ev, cfx_object *o, const char *name, cfx_object *v);
bool cfxi_eval_set_item(cfx_evaluator *ev, cfx_object *o, cfx_object *key, cfx_object *v);
/* The i-th item, from the end if i < 0; a list of all but some of the first and last. */
cfx_object *cfxi_eval_item_at(cfx_evaluator *ev, cfx_object *o, int64_t i);
cfx_object *cfxi_eval_item_rest(cfx_evaluator *ev, cfx_object *o, size_t before, size_t after);
bool cfxi_eval_augment(cfx_evaluator *ev, const cfxi_AugAssign *a);

/* What a call asks of a generator that stands in it: no item behind the one that decides is
 * computed. */
typedef enum cfxi_ask {
    CFXI_ASK_ANY,
    CFXI_ASK_ALL,
    CFXI_ASK_FIRST    /* next(generator, otherwise) */
} cfxi_ask;
cfx_object *cfxi_eval_ask_generator(cfx_evaluator *ev, const cfxi_ast *ast, cfxi_ask what,
                                    cfx_object *otherwise);
cfx_object *cfxi_eval_comprehend(cfx_evaluator *ev, const cfxi_ast *comprehension);
/* A generator expression that the program may keep: it is consumed once. For one that is consumed
 * at once, cfxi_eval_comprehend makes a list. */
cfx_object *cfxi_eval_generator(cfx_evaluator *ev, const cfxi_ast *generator);
/* The same of a list that cfxi_eval_comprehend made of one; any other object itself. */
cfx_object *cfxi_eval_keep_generator(cfx_evaluator *ev, cfx_object *o);
/* What is left of one whose number of items depends on data, as a graph value: it is consumed. Any
 * other object as cfxi_eval_current gives it. */
cfx_object *cfxi_eval_drained(cfx_evaluator *ev, cfx_object *o);
/* What it computes of an item: f is the step of one. */
cfx_object *cfxi_eval_generator_step(cfx_evaluator *ev, const cfx_script_function *f,
                                     cfx_call_args args);
cfx_object *cfxi_eval_function(cfx_evaluator *ev, const cfxi_ast *def_or_lambda);
/* `def`: makes the function, decorates and binds it. */
cfxi_flow cfxi_eval_define(cfx_evaluator *ev, const cfxi_ast *def);
cfxi_flow cfxi_eval_class(cfx_evaluator *ev, const cfxi_ClassDef *c);
cfxi_flow cfxi_eval_match(cfx_evaluator *ev, const cfxi_Match *m);
cfxi_flow cfxi_eval_try(cfx_evaluator *ev, const cfxi_Try *t);
cfxi_flow cfxi_eval_with(cfx_evaluator *ev, const cfxi_With *w);
cfxi_flow cfxi_eval_raise(cfx_evaluator *ev, const cfxi_Raise *r);

/* What the nodes behind `last` (NULL: all) may raise when they run: a set of classes, 0 if they
 * cannot raise. A `raise` of the program's counts only if `own` is set: what is around it had its
 * say when it was recorded (cfxi_eval_pass_guards). (may_raise.c) */
unsigned cfxi_eval_raised_since(cfx_evaluator *ev, const cfx_node *last, bool own);
/* 1, 0, or -1 with ev->err set: whether a handler for `classes` would catch one of that set. */
int cfxi_eval_would_catch(cfx_evaluator *ev, cfx_object *classes, unsigned raised);
/* *has: whether the nodes behind `last` have an effect, apart from leaving contexts. False: failed,
 * and ev->err is set. */
bool cfxi_eval_has_effect_since(cfx_evaluator *ev, const cfx_node *last, bool *has);
/* What a context manager may catch: those classes, or any exception. */
typedef struct cfxi_catcher {
    cfx_object *classes;
    bool all;
} cfxi_catcher;
/* `exit` is its method. False: failed, and ev->err is set. */
bool cfxi_eval_manager_catches(cfx_evaluator *ev, cfx_object *manager, cfx_object *exit,
                               cfxi_catcher *out);
/* Whether the evaluator runs a function from its source. */
bool cfxi_eval_has_source(cfx_evaluator *ev, cfx_object *f);
cfxi_flow cfxi_eval_assert(cfx_evaluator *ev, const cfxi_Assert *a);

/* ---- calls (evaluate_call.c, function.c, special_builtins.c) ------------------------------- */

/* Calls anything. NULL: failed, or ev->raised is set by a `raise` inside. */
cfx_object *cfxi_eval_call(cfx_evaluator *ev, cfx_object *f, cfx_call_args args);
/* o.name(args): also the methods that change lists, dicts and sets, with their journal. */
cfx_object *cfxi_eval_call_method(cfx_evaluator *ev, cfx_object *o, const char *name,
                                  cfx_call_args args);
/* Runs the body of a function in a frame whose parameters are bound, and pops the frame: its value,
 * all that was pending in it merged. */
cfx_object *cfxi_eval_run_function(cfx_evaluator *ev);
/* Functions, classes or modules of which data choose one to call. */
typedef struct cfxi_chosen {
    cfx_object **items;
    cfx_object **keys;          /* NULL: by index */
    size_t n;                   /* 0: it is not such a choice */
} cfxi_chosen;
/* Whether o[key] is such a choice. False: ev->err is set. (chosen_call.c) */
bool cfxi_eval_find_chosen(cfx_evaluator *ev, cfx_object *o, cfx_object *key, cfxi_chosen *c);
cfx_object *cfxi_eval_call_chosen(cfx_evaluator *ev, const cfxi_chosen *c, cfx_object *key,
                                  cfx_call_args args);
/* Fills the slots of ev->frame's parameters. `self` may be NULL; defaults as in
 * cfx_script_callee and cfx_script_function. */
typedef struct cfxi_defaults {
    cfx_object *const *items;   /* of the last positional parameters */
    size_t n;
    cfx_object *const *named;   /* one for each keyword-only parameter (NULL: none), or NULL */
} cfxi_defaults;
bool cfxi_eval_bind_call(cfx_evaluator *ev, cfx_object *self, cfx_call_args args,
               const cfxi_defaults *defaults);
/* A function of special.def: `f` is it, for what the world can do. */
cfx_object *cfxi_eval_call_special(cfx_evaluator *ev, cfx_script_special which, cfx_object *f,
                                   cfx_call_args args);
/* Functions of special.def that ask for types and attributes. (type_questions.c) */
cfx_object *cfxi_eval_call_isinstance(cfx_evaluator *ev, cfx_object *f, cfx_call_args args);
cfx_object *cfxi_eval_call_type(cfx_evaluator *ev, cfx_object *f, cfx_call_args args);
cfx_object *cfxi_eval_call_callable(cfx_evaluator *ev, cfx_object *f, cfx_call_args args);
cfx_object *cfxi_eval_call_getattr(cfx_evaluator *ev, cfx_object *f, cfx_call_args args);
cfx_object *cfxi_eval_call_hasattr(cfx_evaluator *ev, cfx_object *f, cfx_call_args args);
/* setattr with n = 3 arguments, delattr with 2. */
cfx_object *cfxi_eval_call_setattr(cfx_evaluator *ev, cfx_object *f, cfx_call_args args, size_t n);
cfx_object *cfxi_eval_call_own(cfx_evaluator *ev, cfx_script_function *f, cfx_object *self,
                               cfx_call_args args);

/* ---- truth, kinds and merging -------------------------------------------------------------- */

typedef enum cfxi_eval_truth {
    CFXI_TRUTH_FAIL = -1,
    CFXI_FALSE,
    CFXI_TRUE,
    CFXI_TRUTH_GRAPH  /* a graph value: *o is it (a tensor of the program became one) */
} cfxi_eval_truth;
cfxi_eval_truth cfxi_eval_truth_of(cfx_evaluator *ev, cfx_object **o);

/* What is known of any object, graph values included (value_kind.c). */
cfx_object_kind cfxi_eval_kind(cfx_evaluator *ev, cfx_object *o);
cfx_object_kind cfxi_eval_value_kind(cfx_evaluator *ev, cfx_value v);
/* How many items a graph value has, if that is known; else SIZE_MAX. */
size_t cfxi_eval_length(cfx_evaluator *ev, cfx_object *o);
bool cfxi_eval_note_kind(cfx_evaluator *ev, const cfx_node *n, cfx_object_kind kind);
/* Whether `n` reads an attribute that every tensor has. */
bool cfxi_eval_is_attribute(cfx_evaluator *ev, const cfx_node *n);
/* "a tensor", "int": for messages. */
const char *cfxi_eval_kind_name(cfx_evaluator *ev, cfx_object *o);

/* ---- changes (change.c) -------------------------------------------------------------------- */

/* The rule. The program may change an object
 *   - freely, if it was made in the innermost open region;
 *   - with a note in the journal, if it was made earlier and can be put back;
 *   - never, if it was there before the program.
 * Everything else is refused. */

/* How *o can change, as cfx_world.change says. */
cfx_script_change cfxi_eval_change(cfx_evaluator *ev, cfx_object **o);
/* `o` is about to change: notes its contents, or fails. Attributes are noted where they are set. */
bool cfxi_eval_will_change(cfx_evaluator *ev, cfx_object *o);
/* Notes that the world has made `o` if it holds the only reference. NULL stays NULL. */
cfx_object *cfxi_eval_note_new(cfx_evaluator *ev, cfx_object *o);

/* What a call does to its arguments during capture: see policy.def. From READS on, it changes
 * nothing but iterators. */
typedef enum cfxi_call_changes {
    CFXI_CHANGES_ANY,
    CFXI_CHANGES_OWN,
    CFXI_CHANGES_READS,
    CFXI_CHANGES_TAKES,
    CFXI_CHANGES_NONE,
    CFXI_CHANGES_LATER
} cfxi_call_changes;
/* By the name that the world's call_name gives. */
cfxi_call_changes cfxi_eval_call_changes(const char *name);
/* Whether the function reads all items of an iterator that it is given, and nothing else of it. */
bool cfxi_eval_takes_all(cfx_evaluator *ev, cfx_object *f);

/* What a call of the world may change, as it was before. */
typedef struct cfxi_watched {
    cfx_object *object;
    cfx_script_change how;
    bool outside;
    cfx_object **items;
    size_t n;
} cfxi_watched;
typedef struct cfxi_watch {
    cfxi_watched *all;       /* in the arena */
    size_t n, capacity;
    cfxi_pointers seen;      /* of cfx_object: what was looked at */
} cfxi_watch;
/* Whether a method of a builtin container changes only `self`, which is new in this region. */
bool cfxi_eval_changes_own(cfx_evaluator *ev, cfx_object *self, cfx_call_args args);
/* Before the world calls `f`: notes what is reachable from its arguments, and refuses what cannot
 * be put back. cfxi_eval_watch_end is called in any case. */
bool cfxi_eval_watch_begin(cfx_evaluator *ev, cfx_object *f, cfx_call_args args, cfxi_watch *watch);
/* The same before the world does something else to `o`, an object with attributes: o[k] = v. */
bool cfxi_eval_watch_object(cfx_evaluator *ev, cfx_object *o, cfxi_watch *watch);
/* After it: what the call changed goes into the journal. An object from outside is put back, and
 * that fails. */
bool cfxi_eval_watch_end(cfx_evaluator *ev, cfxi_watch *watch);

/* ---- the prelude (prelude.c) --------------------------------------------------------------- */

/* Calls a function or class of prelude.py. */
cfx_object *cfxi_eval_call_prelude(cfx_evaluator *ev, const char *name, cfx_call_args args);
/* The same for one of special.def. */
cfx_object *cfxi_eval_call_evaluated(cfx_evaluator *ev, cfx_script_special which,
                                     cfx_call_args args);
/* Whether an object of the prelude's stands for one of the class, or of a tuple's: map, zip. */
bool cfxi_eval_stands_for(cfx_evaluator *ev, cfx_object *o, cfx_object *classes);
/* Whether the frame is of a call in it. */
bool cfxi_eval_is_prelude(const cfx_evaluator *ev, const cfxi_frame *f);
/* Implements the functions that prelude.py only declares; *done is false for any other. */
cfx_object *cfxi_eval_prelude_own(cfx_evaluator *ev, const cfx_script_def *def, cfx_call_args args,
                                  bool *done);
/* What the program gets for a result of the world: for a new iterator, one of the prelude. NULL
 * stays NULL. */
cfx_object *cfxi_eval_kept_iterator(cfx_evaluator *ev, cfx_object *o);
/* iter(o); next(o) of an object with __next__, `otherwise` may be NULL. */
cfx_object *cfxi_eval_iter(cfx_evaluator *ev, cfx_object *o);
cfx_object *cfxi_eval_next(cfx_evaluator *ev, cfx_object *o, cfx_object *otherwise);
/* Whether it is an iterator of the prelude; and its remaining items. (iterator_rest.c) */
bool cfxi_eval_is_iterator(cfx_evaluator *ev, cfx_object *o);
bool cfxi_eval_rest(cfx_evaluator *ev, cfx_object *o, cfx_object ***items, size_t *n);
/* Whether the world asks for the next item: a StopIteration that depends on data would have to end
 * a loop that is being unrolled. */
bool cfxi_eval_ends_by_data(const cfx_evaluator *ev);

/* ---- the journal (journal.c) --------------------------------------------------------------- */

/* Opens the outermost region; false: memory is out. And the end of it, also if that failed. */
bool cfxi_eval_journal_begin(cfx_evaluator *ev);
void cfxi_eval_journal_end(cfx_evaluator *ev);
/* To be called before each write, with the place that is written to. False: memory is out. */
bool cfxi_eval_journal_slot(cfx_evaluator *ev, cfxi_frame *frame, uint32_t slot);
bool cfxi_eval_journal_attribute(cfx_evaluator *ev, cfx_object *o, const char *name);
bool cfxi_eval_journal_contents(cfx_evaluator *ev, cfx_object *o);

/* ---- control flow on graph values (branch.c, loop.c, loop_items.c) ------------------------- */

/* One way of a branch: runs it; *value is what it gives, if it is an expression. */
typedef cfxi_flow cfxi_way(cfx_evaluator *ev, void *ctx, cfx_object **value);
cfxi_way cfxi_eval_way_on;  /* does nothing */
cfxi_way cfxi_eval_way_false;  /* gives False */

/* Whether a node (may be NULL) is the mode of a module, or `not` of one. */
bool cfxi_eval_is_flag(const cfx_node *n);
/* Goes both ways. *value (may be NULL) is what they give, merged. */
cfxi_flow cfxi_eval_branch(cfx_evaluator *ev, cfx_object *pred, cfxi_way *then, cfxi_way *otherwise,
                           void *ctx, cfx_object **value);
/* `then if test else otherwise` of expressions, and the statement. */
cfx_object *cfxi_eval_choose(cfx_evaluator *ev, const cfxi_IfExp *e);
cfxi_flow cfxi_eval_if(cfx_evaluator *ev, const cfxi_If *s);

/* Evaluation has come, with `flow`, to where ways of branches that are pending since `base` may
 * have gone: the end of a round (`upto` is CONTINUE), of a loop (BREAK) or of a call (RETURN).
 * Merges those; what goes further stays pending. The flow afterwards: ON if any way is to go on
 * behind this place, and evaluation is then in it. */
cfxi_flow cfxi_eval_settle(cfx_evaluator *ev, size_t base, cfxi_flow flow, cfxi_flow upto);
size_t cfxi_eval_pendings(const cfx_evaluator *ev);
void cfxi_eval_pending_free(cfx_evaluator *ev);  /* their array, at the end */

/* Runs `last` at the end of a statement on every way that leaves it (`with`, `finally`): `flow` is
 * how the block ended whose first pending branch was `base`. If `last` gives ON, the block's own
 * flow goes on. A RAISE or FAIL of the block is the caller's to handle first. */
cfxi_flow cfxi_eval_finally(cfx_evaluator *ev, size_t base, cfxi_flow flow, cfxi_way *last,
                            void *ctx);

/* What a failed expression means for the statement: RAISE if ev->raised is set, else FAIL. */
static inline cfxi_flow cfxi_eval_failed_flow(const cfx_evaluator *ev)
{
    return ev->raised ? CFXI_FLOW_RAISE : CFXI_FLOW_FAIL;
}

cfxi_flow cfxi_eval_while(cfx_evaluator *ev, const cfxi_While *s);
cfxi_flow cfxi_eval_for(cfx_evaluator *ev, const cfxi_For *s);
/* Runs `round` for each item of an iterable expression, known or a graph value (a loop is captured
 * then): for comprehensions. A round may leave it as one of a `for` may. */
typedef cfxi_flow cfxi_round(cfx_evaluator *ev, void *ctx, cfx_object *item);
cfxi_flow cfxi_eval_each(cfx_evaluator *ev, const cfxi_ast *iterable, cfxi_round *round, void *ctx);
/* What range, enumerate, zip or reversed gives, as it stands in list(...): the world's own iterable
 * if all is known, else a list: *is_new. */
cfx_object *cfxi_eval_listed(cfx_evaluator *ev, const cfxi_ast *iterable, bool *is_new);
/* range(...), enumerate, zip, reversed where an argument is a graph value: for
 * special_builtins.c. What a `for` finds directly in its head it takes apart itself. */
cfx_object *cfxi_eval_lazy_sequence(cfx_evaluator *ev, cfx_script_special which,
                                    cfx_call_args args);
/* torch.while_loop(test, body, carried). */
cfx_object *cfxi_eval_while_call(cfx_evaluator *ev, cfx_object *test, cfx_object *body,
                                 cfx_object *carried);

/* ---- lists that became graph values (growing_list.c) --------------------------------------- */

/* The graph value of a list that has become one, or `o` itself. */
cfx_object *cfxi_eval_current(cfx_evaluator *ev, cfx_object *o);
/* The same; and of a view of a dict that has become one, a view of the graph value: whoever reads
 * it reads it as it is now. NULL: failed. (growing_dict.c) */
cfx_object *cfxi_eval_shown(cfx_evaluator *ev, cfx_object *o);
/* The same inside containers, which are copied if need be; NULL: failed. */
cfx_object *cfxi_eval_current_deep(cfx_evaluator *ev, cfx_object *o);
/* The dict that `o` is a view of, and the method that gives it; or NULL. */
cfx_object *cfxi_eval_view_owner(cfx_evaluator *ev, cfx_object *o, const char **part);
/* A dict with this one key: if data choose it, dict([(key, v)]) is recorded. */
cfx_object *cfxi_eval_one_key(cfx_evaluator *ev, cfx_object *key, cfx_object *v);
/* Whether data choose a key: it is a graph value, or a tuple with one in it. */
bool cfxi_eval_is_chosen(cfx_evaluator *ev, cfx_object *key);
/* A new dict of the program's that is this graph value; NULL stays NULL. */
cfx_object *cfxi_eval_adopt_dict(cfx_evaluator *ev, cfx_object *value);
/* dict(...): `f` is dict, for what the world can do. */
cfx_object *cfxi_eval_call_dict(cfx_evaluator *ev, cfx_object *f, cfx_call_args args);
/* Whether it is a dict, and of no class derived from that. */
bool cfxi_eval_is_plain_dict(cfx_evaluator *ev, cfx_object *o);
/* Whether a known object can become a graph value: a list, or a dict that is of no other class. */
bool cfxi_eval_can_grow(cfx_evaluator *ev, cfx_object *o);
/* Makes a list or dict one that is growing: from now on it is the graph value `now`. No journal. */
bool cfxi_eval_grow_from(cfx_evaluator *ev, cfx_object *o, cfx_object *now);
/* o.name(args) on a list or dict that is growing, or that this makes so; *done is false if `o` is
 * not one. */
cfx_object *cfxi_eval_growing_method(cfx_evaluator *ev, cfx_object *o, const char *name,
                                     cfx_call_args args, bool *done);
/* Before a + b of a known list and a graph value: what the known one holds, that will hold, too. */
bool cfxi_eval_join_lists(cfx_evaluator *ev, cfx_object **a, cfx_object **b);
bool cfxi_eval_growing_set_item(cfx_evaluator *ev, cfx_object *o, cfx_object *key, cfx_object *v,
                                bool *done);

/* What was given to cfx_script_parse. (function_scopes.c) */
const char *cfxi_eval_script_file(const cfx_script *script);
/* Where a function begins, and its name. */
uint32_t cfxi_eval_def_line(const cfx_script_def *def);
const char *cfxi_eval_def_name(const cfx_script_def *def);
/* The i-th parameter in the order of Python's co_varnames; NULL past the last. */
const char *cfxi_eval_def_parameter(const cfx_script_def *def, size_t i);

#endif
