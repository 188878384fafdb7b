/* capture_impl.h - what the files of src/capture share: modules, scopes, a trace.
 *
 *     module.c            a module and its members
 *     module_state.c      its weights, by name
 *     module_tree.c       the tree of modules as passes see it
 *     module_paths.c      paths of modules and tensors in that tree
 *     weight_access.c     tensors and modules as objects of a graph
 *     inputs.c            the inputs of users' classes
 *     scope.c             scopes and their variables
 *     var.c               variables in and out
 *     operator_cache.c    what a call needs from an operator's row
 *     apply.c             an operator: computed now or recorded
 *     module_call.c       a module: computed now or recorded
 *     module_program.c    graphs of modules made ready to run
 *     control_capture.c   branches and loops
 *     trace.c             capturing
 *     trace_facts.c       what is known of the nodes of a trace
 *     captured_parts.c    what a captured module owns
 *     module_file.c       captured modules as IR text and weights beside it
 *     module_package.c    captured modules in .cfx files
 *     package_signature.c what the graph of a file takes and gives
 *     executable.c        .cfx files made ready to run
 *     observing.c, showing.c  modules that observe, programs that show values (observing_impl.h)
 *     calibrate.c, quantize_rules.c  modules in integers
 *     trial.c             two modules side by side: compared, or corrected
 */
#ifndef CFXI_CAPTURE_IMPL_H
#define CFXI_CAPTURE_IMPL_H

#include "ir/graph_impl.h"
#include "ops/ops_impl.h"
#include "runtime/runtime_impl.h"

#include <cfx/capture.h>
#include <cfx/compile.h>
#include <cfx/library.h>
#include <cfx/lower.h>
#include <cfx/nn.h>
#include <cfx/signature.h>

#include <stdatomic.h>

/* ---- modules (module.c) -------------------------------------------------------------------- */

typedef enum cfxi_member_kind {
    CFXI_MEMBER_CHILD,
    CFXI_MEMBER_PARAMETER,  /* a tensor, or None */
    CFXI_MEMBER_BUFFER,     /* likewise */
    CFXI_MEMBER_ATTRIBUTE
} cfxi_member_kind;

typedef struct cfxi_member {
    char *name;
    cfxi_member_kind kind;
    uint32_t hash;      /* of its name */
    cfx_module *child;  /* retained */
    cfx_datum value;    /* retained */
} cfxi_member;

/* An observer (observing_impl.h), and how it is told of a value. */
typedef struct cfxi_observing cfxi_observing;
cfxi_observing *cfxi_capture_observing_retain(cfxi_observing *w);  /* `w`, or NULL */
void cfxi_capture_observing_release(cfxi_observing *w);
cfx_status cfxi_capture_observing_see(cfxi_observing *w, cfx_datum value, cfx_error *err);

struct cfx_module {
    atomic_int refs;
    const cfx_allocator *allocator;
    const cfx_class *type;     /* of a user's; or NULL */
    cfx_nn nn;                 /* of torch.nn's; or NONE */
    char *name;                /* of the class of a captured one; or NULL */
    cfx_graph *graph;          /* of a captured one; or NULL */
    cfxi_observing *observing; /* of one that observes; or NULL */
    void *data;
    bool training;
    bool visited;              /* while cfx_module_train goes through the tree */
    uint64_t version;          /* grows with every change of a member */
    int32_t level;             /* less than that of any child: trees have an end */
    cfxi_vec members;          /* of cfxi_member *, in the order in which they were added */
    cfxi_hash_set by_name;     /* the same */
    cfxi_hash_key key;         /* of its names there */
    _Atomic(cfx_runtime *) runtime; /* of one thread, for what passes compute; NULL: none yet */
};

static inline cfxi_member *cfxi_capture_member_at(const cfx_module *m, size_t i)
{
    return ((cfxi_member **)m->members.data)[i];
}

/* One reference, the caller's; NULL with *err set. */
cfx_module *cfxi_capture_module_make(const cfx_allocator *allocator, cfx_error *err);
/* Whether nobody has it but the module that it is part of, which so may change it. */
static inline bool cfxi_capture_module_is_own(const cfx_module *m)
{
    return atomic_load_explicit(&m->refs, memory_order_acquire) == 1;
}
/* Shares the members' values; children are the same. */
cfx_module *cfxi_capture_module_copy(const cfx_module *m, cfx_error *err);
/* The member called name[:size], or NULL. */
cfxi_member *cfxi_capture_module_find(const cfx_module *m, const char *name, size_t size);
/* Sets or adds a member: `child` or `value` is retained. A tensor (or None) that takes the place of
 * a parameter or a buffer becomes one, whatever `kind` says. CFX_E_LIMIT if modules nest too deep.
 */
cfx_status cfxi_capture_module_put(cfx_module *m, const char *name, size_t size,
                                   cfxi_member_kind kind, cfx_module *child, cfx_datum value,
                                   cfx_error *err);
bool cfxi_capture_module_drop(cfx_module *m, const char *name,
                              size_t size); /* false if there is none */
/* The module in which the last name of `path` is to be found: *last is that name, at the end of
 * `path`. NULL if there is no such module. */
cfx_module *cfxi_capture_module_owner(const cfx_module *m, const char *path, const char **last);
/* The member at a path, or NULL. */
cfxi_member *cfxi_capture_module_at(const cfx_module *m, const char *path);
/* A number that is another one when anything below `m` has changed: members, whether it is
 * training, graphs and their regions. False if memory is out. */
bool cfxi_capture_module_stamp(const cfx_module *m, uint64_t *out);
/* How messages call it: its class, or "module". */
const char *cfxi_capture_module_title(const cfx_module *m);

/* Places a module at a path below `root`; what many have is copied on the way. (module_tree.c) */
cfx_status cfxi_capture_tree_put(cfx_module *root, const char *path, cfx_module *m, cfx_error *err);

/* Calls `fn` for `m` and everything below it, parents first, each module once, with the first path
 * that leads there. CFX_E_LIMIT if they nest too deep; else what `fn` returned. */
typedef cfx_status cfxi_module_fn(void *ctx, cfx_module *m, const char *path, cfx_error *err);
cfx_status cfxi_capture_module_each(cfx_module *m, cfxi_module_fn *fn, void *ctx, cfx_error *err);

/* ---- files (module_package.c, package_signature.c) ----------------------------------------- */

/* Saves a captured module as a .cfx file. */
cfx_status cfxi_capture_package_save(cfx_module *m, const char *path, cfx_error *err);
/* Fills an empty module with those of module.ir; its tensors are those of `weights`. */
cfx_status cfxi_capture_package_modules(cfx_module *root, const cfx_package *p,
                                        const cfx_state *weights, cfx_error *err);
/* A graph of a file by the name of its entry: one reference; NULL with *err set. */
cfx_graph *cfxi_capture_package_graph(const cfx_package *p, const char *name,
                                      const cfx_allocator *allocator, cfx_error *err);
/* The dict that a graph of nothing but values returns: borrowed; false if it returns none. */
bool cfxi_capture_returned_dict(const cfx_graph *g, cfx_value *dict);
/* The item of a dict whose key is a text: borrowed; INVALID if there is none. */
cfx_value cfxi_capture_field(cfx_value dict, const char *key);

/* How many inputs a signature has, with state. */
size_t cfxi_capture_signature_size(const cfx_signature *s);
/* Whether it lists results, and how many. */
bool cfxi_capture_signature_lists(const cfx_signature *s, size_t *n);
/* The first value of a number that is state; INVALID for other inputs. */
cfx_datum cfxi_capture_signature_value(const cfx_signature *s, size_t i);
/* Why the graph cannot run in C (it is for another mode); NULL if it can. */
const char *cfxi_capture_signature_refused(const cfx_signature *s);
/* An attribute that a graph keeps: a text that tells how it must be nested before a run (NULL: the
 * graph does not read it), and how it is nested afterwards. */
typedef struct cfxi_nesting {
    const char *path;
    const char *before;
    const char *after;
} cfxi_nesting;
const cfxi_nesting *cfxi_capture_signature_slots(const cfx_signature *s, size_t *n);
/* How attributes are nested in the file: `after` tells. */
const cfxi_nesting *cfxi_capture_signature_present(const cfx_signature *s, size_t *n);
/* State that becomes the same number in each run. */
typedef struct cfxi_literal {
    const char *name;
    cfx_datum value;
} cfxi_literal;
const cfxi_literal *cfxi_capture_signature_literals(const cfx_signature *s, size_t *n);

/* Lowers `g` in place and prepares it, with the tensors of `root` that it reads; `frozen`, or NULL:
 * for runs that are planned so (freeze.h). `options` may be NULL. (module_program.c) */
cfx_program *cfxi_capture_program(cfx_graph *g, cfx_module *root, const cfx_library *library,
                                  const cfx_lower_options *options,
                                  const cfx_compile_options *frozen,
                                  const cfx_allocator *allocator, cfx_error *err);
/* The tensors of `root` that a graph and its regions read: the caller's; NULL with *err set. */
cfx_state *cfxi_capture_state_read(cfx_graph *g, const cfx_module *root, cfx_error *err);

/* ---- tensors and modules in graphs (weight_access.c) --------------------------------------- */

/* The host of graphs that are captured here: its objects are tensors and modules. */
extern const cfx_host cfxi_capture_object_host;

/* Whatever a module has as an attribute, as a value of `g`: floating; INVALID with *err set. */
cfx_value cfxi_capture_value_from_datum(cfx_graph *g, cfx_datum d, cfx_error *err);
cfx_value cfxi_capture_value_from_module(cfx_graph *g, cfx_module *m, cfx_error *err);
/* And back: the caller's to release; INVALID with *err set for nodes and what is no object here. */
cfx_datum cfxi_capture_datum_of_value(cfx_value v, const cfx_allocator *allocator, cfx_error *err);

/* ---- scopes (scope.c) ---------------------------------------------------------------------- */

/* What a variable is. */
typedef struct cfxi_slot {
    uint32_t serial;
    cfx_datum datum;   /* what it is; while tracing what is known of its type and shape */
    cfx_value value;   /* while tracing: of `graph`, retained */
    cfx_graph *graph;
} cfxi_slot;

/* Programs of modules that were called, by module. */
typedef struct cfxi_ready {
    cfx_module *module;     /* retained */
    uint64_t stamp;
    cfx_var *pattern;       /* of a module of torch.nn: the arguments that are part of it */
    size_t n;
    cfx_program *program;
} cfxi_ready;

typedef struct cfxi_trace cfxi_trace;
typedef struct cfxi_rows cfxi_rows;

/* Where a call stands in a program that is not C, such as the file of an importer: nodes and
 * messages have it instead of the line of C that makes them. */
typedef struct cfxi_place {
    const char *file;  /* of nodes; NULL: they have no location */
    uint32_t line;
    const char *what;  /* begins messages: "model.onnx: node 'Conv_3' (Conv)" */
} cfxi_place;

struct cfx_scope {
    const cfx_allocator *allocator;
    cfx_runtime *rt;
    bool owns_runtime;
    cfx_error error;
    cfx_error later;       /* what cfx_scope_err gives after a failure */
    uint32_t id;
    uint32_t serial;       /* of the variable made last */
    uint32_t depth;        /* of calls */
    cfxi_vec slots;        /* of cfxi_slot */
    cfxi_vec modules;      /* of cfx_module *, retained */
    cfxi_pointers ready;   /* module -> cfxi_ready */
    cfxi_rows *rows;       /* of operators that were called; NULL: none yet, */
    bool borrows_rows;     /* or those of the scope that traces */
    cfxi_trace *trace;     /* NULL: it computes */
    const cfxi_place *place;  /* of the program, instead of lines of C; NULL: lines of C */
};

enum {
    CFXI_MOST_CALLS = 400,  /* of modules in modules: the C stack is not endless */
    CFXI_FEW = 16           /* items that a room has on the stack */
};

/* Room for any number of items: few have it on the stack. */
typedef struct cfxi_room {
    void *here;       /* for so many of so many bytes */
    size_t fits;
    size_t item;
    cfxi_vec memory;  /* for more */
} cfxi_room;

/* Room for n items, once; NULL, and the scope fails, if memory is out. (scope.c) */
void *cfxi_capture_room_for(cfx_at at, cfxi_room *room, size_t n);
void cfxi_capture_room_free(cfx_at at, cfxi_room *room);

/* New variables; the datum is taken over, the value retained. EMPTY if memory is out. */
cfx_var cfxi_capture_var_of_datum(cfx_at at, cfx_datum d);
cfx_var cfxi_capture_var_of_value(cfx_at at, cfx_value v, cfx_graph *g, cfx_datum known);
/* What a VALUE is; NULL, and the scope fails, if it is none of this scope's, or gone. */
const cfxi_slot *cfxi_capture_var_slot(cfx_at at, cfx_var v);
/* The variable as a datum, a new reference; numbers and texts too. While tracing what is known of
 * it: INVALID, without a failure, if nothing is. EMPTY gives INVALID. */
cfx_datum cfxi_capture_var_datum(cfx_at at, cfx_var v);
/* Whether it is a number, or while tracing known to be one. */
bool cfxi_capture_var_is_number(cfx_at at, cfx_var v);
/* The variable as a value of the graph that is being made: floating or borrowed. INVALID, and the
 * scope fails, if it is another graph's. */
cfx_value cfxi_capture_var_value(cfx_at at, cfx_var v);
/* Likewise all of them, into `out`; false, and the scope fails. */
bool cfxi_capture_var_values(cfx_at at, cfx_vars in, cfx_value *out);
/* Makes the scope fail with what *err says, behind the user's line. (A line in *err is that of the
 * captured program which this line runs.) */
cfx_status cfxi_capture_scope_take(cfx_at at, const cfx_error *err);
/* From now on calls stand at this place, which is borrowed; NULL: at lines of C again. Returns the
 * place before. */
const cfxi_place *cfxi_capture_scope_place(cfx_scope *s, const cfxi_place *place);
/* A module that the scope owns from now on: takes over the reference. NULL for NULL, or if memory
 * is out. */
cfx_module *cfxi_capture_scope_own(cfx_at at, cfx_module *m);
/* Releases the modules that the scope owns since it owned `mark` of them, except `keep` (may be
 * NULL): what a call made on the way to its result. */
void cfxi_capture_scope_keep(cfx_at at, size_t mark, const cfx_module *keep);

/* ---- what is where (module_paths.c) -------------------------------------------------------- */

typedef struct cfxi_path {  /* where a module or a parameter of it is, below the root */
    char *path;
    size_t size;             /* of its memory */
    cfx_node *reader;        /* of a parameter: its get_attr in the outermost graph */
} cfxi_path;

typedef struct cfxi_places {
    cfxi_pointers table;     /* object -> cfxi_path */
    const cfx_allocator *allocator;
} cfxi_places;

/* Adds `root`, all modules below it, and all tensors of those: each by the first path that leads
 * there. A module is known by its address; a parameter by that of its tensor. */
cfx_status cfxi_capture_places_fill(cfxi_places *places, cfx_module *root, cfx_error *err);
/* Adds one, `name` in the module at `path`; what is there already stays. */
cfx_status cfxi_capture_places_add(cfxi_places *places, const void *object, const char *path,
                                   const char *name, cfx_error *err);
cfxi_path *cfxi_capture_places_find(const cfxi_places *places, const void *object);  /* or NULL */
void cfxi_capture_places_free(cfxi_places *places);

/* ---- a trace (trace.c) --------------------------------------------------------------------- */

struct cfxi_trace {
    cfx_graph *graph;        /* nodes go here: the graph, or a region */
    cfx_graph *top;
    cfx_module *root;        /* what is being captured */
    cfx_module *made;        /* what it becomes */
    cfx_dims *dims;          /* symbols of shapes; NULL: nothing is known of shapes */
    const cfx_trace_options *options;
    uint32_t scope;          /* of the graph: the modules that are being called */
    cfxi_places places;
    cfxi_pointers facts;     /* node -> cfxi_fact */
    size_t constants;
    bool lenient;            /* branches and loops need not have shapes that can be inferred */
};

/* A path of the module below the root, or NULL. */
const char *cfxi_capture_trace_path(const cfxi_trace *t, const cfx_module *m);
/* What is known of a tensor while tracing: its type and shape, if shapes are; the caller's. */
cfx_datum cfxi_capture_known_of_tensor(cfx_at at, const cfx_tensor *t);
/* A call as a variable; `known` (taken over) is what is known of its result. EMPTY if it fails. */
cfx_var cfxi_capture_trace_node(cfx_at at, cfx_node *n, cfx_datum known);

/* Adds a tensor to the tree that is being captured, at a path of names with dots between them;
 * modules on the way are made. False if the path is taken, by a tensor or by part of a tensor's
 * path. (captured_parts.c) */
bool cfxi_capture_trace_adopt(cfx_at at, const char *path, cfx_tensor *t, cfxi_member_kind kind);

/* ---- what is known of nodes (trace_facts.c) ------------------------------------------------ */

/* Notes what is known of a node, in the place of what was; INVALID: nothing. */
cfx_status cfxi_capture_fact_set(cfx_at at, const cfx_node *n, cfx_datum known);
/* Borrowed; INVALID if nothing is known. */
cfx_datum cfxi_capture_fact_of(const cfxi_trace *t, const cfx_node *n);
void cfxi_capture_facts_free(cfxi_trace *t, const cfx_allocator *allocator);
/* What is known of a number if shapes are not: that it is one, of whichever kind. */
cfx_datum cfxi_capture_some_number(void);
/* That, if a call of an operator whose row does not say so gives one: getitem, size, stride, cond;
 * else INVALID. */
cfx_datum cfxi_capture_number_of_call(const cfxi_trace *t, cfx_operator op, const cfx_node *call);

/* Gives `to` the parts of `from` that the graph names; `options` (may be NULL) are those of the
 * trace that made it. (captured_parts.c) */
cfx_status cfxi_capture_graft(cfx_at at, cfx_module *to, const cfx_module *from, cfx_graph *graph,
                              const cfx_trace_options *options, cfx_error *err);
/* Likewise those that `to` has nothing for. */
cfx_status cfxi_capture_graft_missing(cfx_at at, cfx_module *to, const cfx_module *from,
                                      cfx_graph *graph, cfx_error *err);

/* ---- rows of operators (operator_cache.c) -------------------------------------------------- */

typedef struct cfxi_row {
    uint32_t needed;   /* bit i: parameter i must be given */
    uint32_t is_bool;  /*   it is a bool */
    uint32_t by_name;  /*   it can only be given by name */
    bool method;       /* `spelled` is a method's name */
    bool gives_number; /* whatever it gets */
    char spelled[CFX_SPELLING_SIZE];  /* how a captured call names it; "" for one of a library */
    char number[CFX_SPELLING_SIZE];   /* and one without tensors: "operator.mod"; "" if nothing */
} cfxi_row;

/* Notes a parameter in `row`. */
void cfxi_capture_row_param(cfxi_row *row, size_t i, const cfx_schema_param *param, bool needed);
/* Of an operator of the table: the scope's. NULL if memory is out. */
const cfxi_row *cfxi_capture_row_of(cfx_scope *s, cfx_operator op);
cfxi_rows *cfxi_capture_rows_new(const cfx_allocator *allocator);
void cfxi_capture_rows_free(cfxi_rows *rows, const cfx_allocator *allocator);  /* NULL is allowed */

/* ---- inputs (inputs.c) --------------------------------------------------------------------- */

/* Whether the names and defaults of a class can be read: the scope fails if not. */
bool cfxi_capture_inputs_are_good(cfx_at at, const cfx_class *type);
/* `in` with the defaults of what is not given, *n in all; NULL, and the scope fails, if they do not
 * fit. */
const cfx_var *cfxi_capture_fill_inputs(cfx_at at, const cfx_module *m, cfx_vars in,
                                        cfxi_room *room, size_t *n);
/* What stands for the inputs in the trace: placeholders, but for those that it fixes. NULL, and the
 * scope fails. */
const cfx_var *cfxi_capture_trace_inputs(cfx_at at, const cfx_class *type, cfxi_room *room,
                                         size_t *n);

/* ---- calls (module_call.c) ----------------------------------------------------------------- */

/* Calls the forward of a user's module. What it made is gone afterwards, but for the result. */
cfx_var cfxi_capture_call_forward(cfx_at at, cfx_module *m, cfx_vars in);

/* The tree of `m` as passes and lowering ask for it, with the operators that the scope's runtime
 * knows. */
static inline cfx_module_tree cfxi_capture_scope_tree(const cfx_scope *s, cfx_module *m)
{
    cfx_module_tree tree = cfx_module_as_tree(m);
    tree.library = cfxi_rt_library(s->rt);
    return tree;
}

/* ---- running (module_program.c) ------------------------------------------------------------ */

/* What computes a call of the module with these arguments: borrowed from the scope. Its inputs are
 * those arguments that are VALUEs, in order. NULL, and the scope fails. */
const cfx_program *cfxi_capture_ready_program(cfx_at at, cfx_module *m, cfx_vars in);
void cfxi_capture_ready_free(cfx_scope *s);
/* Lets go of the programs of a module and of all below it. If the scope fails (memory), some stay
 * until it is freed. */
void cfxi_capture_ready_forget(cfx_at at, cfx_module *m);
/* What is known of the result of a call with regions while tracing: INVALID if nothing is, or if
 * the scope fails. */
cfx_datum cfxi_capture_infer_node(cfx_at at, cfx_node *n);

/* The graph that is being recorded, borrowed; NULL while computing. (scope.c) */
cfx_graph *cfxi_capture_scope_graph(cfx_scope *s);
/* The node that a variable stands for while tracing; NULL if it is none. (var.c) */
cfx_node *cfxi_capture_var_node(cfx_scope *s, cfx_var v);

#endif
