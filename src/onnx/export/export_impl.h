/* export_impl.h - operators of the table become ONNX nodes.
 *
 * The graph of a package is lowered and walked once. For each call the row's own rule describes the
 * result (types, sizes, numbers that are known), and an export rule writes nodes that compute it:
 *
 *     cfxi_ev *cfxi_export_silu(cfxi_export_call *c)
 *     {
 *         cfxi_ev *x = ARG(0);
 *         return NODE("Mul", x, NODE("Sigmoid", x));
 *     }
 *
 * A row of export.def names the rule: CFX_ONNX_EXPORT(silu, 1, silu). A row of ops.def that has an
 * "onnx:" spelling and no row there is written as that operator: its tensors are the inputs, the
 * rest attributes, as the list of the spelling says.
 *
 * Numbers that are known are constants; sizes that are not become Shape and Gather where somebody
 * needs them. A rule need not look after the type of its result: what differs from the row's own is
 * cast. Rules fail by cfxi_export_refuse, which writes a finding; the walk goes on, so that all
 * findings are reported at once.
 */
#ifndef CFXI_EXPORT_IMPL_H
#define CFXI_EXPORT_IMPL_H

#include "capture/capture_impl.h"
#include "format/format_impl.h"
#include "onnx/proto_impl.h"
#include "runtime/runtime_impl.h"

#include <cfx/onnx.h>

#define CFXI_PI 3.14159265358979323846
#define CFXI_ROOT_HALF 0.70710678118654752440  /* sqrt(1/2) */
#define CFXI_LN2 0.69314718055994530942

typedef struct cfxi_exporter cfxi_exporter;
typedef struct cfxi_export_scope cfxi_export_scope;
typedef struct cfxi_ev cfxi_ev;

/* How a tensor was made that shares memory with another: to write through it, and to make it anew
 * after someone else has. */
typedef struct cfxi_export_alias {
    cfxi_ev *base;
    cfx_operator op;
    cfxi_ev **args;      /* of the call; args[0] is `base` */
    size_t n;
    size_t item;         /* of a list of views; SIZE_MAX: the result itself */
    const cfx_node *node;
} cfxi_export_alias;

/* Another tensor that may be the same memory: what a branch has returned, and what it had of
 * outside. */
typedef struct cfxi_export_partner {
    cfxi_ev *of;
    const struct cfxi_export_partner *next;
} cfxi_export_partner;

/* A value of the graph, or one that a rule has made on its way. All are in the arena. */
struct cfxi_ev {
    const char *name;          /* of the ONNX value; NULL: a number or a list, or not yet made */
    const char *path;          /* of a tensor of the module; or NULL */
    cfx_graph *graph;          /* of a region; or NULL */
    cfx_dtype dtype;           /* of a tensor */
    int rank;                  /* -1: not known, as for what rules make on their way */
    const int64_t *sizes;      /* symbols (dim.h) among them; NULL: not known */
    cfx_datum datum;           /* of a value of the graph; INVALID for others */
    cfxi_ev **items;           /* of a container; a dict has keys and values in turn */
    size_t n;
    cfxi_ev *element;          /* of a list of unknown length, a sequence: the type of its items */
    const cfxi_export_scope *scope;  /* where `name` is defined; NULL: everywhere */
    cfxi_ev *shape;            /* Shape of it, once someone has asked; or NULL */
    cfxi_ev *of;               /* of a size: the tensor and the dimension that it is of */
    int64_t dim;
    cfxi_ev *dims[CFX_MAX_DIMS];  /* of a tensor: its sizes as numbers, once someone has asked */
    const cfxi_export_alias *view; /* or NULL */
    uint32_t version;          /* of the memory: how often it was written to, */
    uint32_t seen;             /*   and how often when `name` was made */
    bool broken;               /* what it is made of was refused: nobody is told again */
    bool unmade;               /* a result that its rule left out */
    bool maybe_none;           /* None on another way: a value that nobody uses stands for it */
    const cfx_node *source;    /* the branch or loop that gave it, or its operand; or NULL */
    bool viewed;               /* others are views of it */
    bool later;                /* a known tensor that is written when somebody needs it so */
    bool shared;               /* it is in a sequence: others may hold it */
    const cfxi_export_partner *partners;  /* of a tensor that is no view; NULL: none */
    bool stale;                /* a partner was written to: what it holds now is not known */
    cfxi_ev *origin;           /* the tensor of outside that this is a snapshot of; or NULL */
};

/* A tensor of the module that the graph writes to: an input with a default, and an output. */
typedef struct cfxi_export_kept {
    cfxi_ev *value;            /* as it is now */
    const char *name;          /* of the input */
    cfxi_onnx_type *type;
} cfxi_export_kept;

/* A tensor of outside that a graph writes to, and what it is there. */
typedef struct cfxi_export_written {
    cfxi_ev *root;
    cfxi_ev before;
} cfxi_export_written;

/* A graph that is being written: the model's, a branch, or the body of a loop. */
struct cfxi_export_scope {
    cfxi_export_scope *outer;
    cfxi_vec written;          /* cfxi_export_written */
    cfxi_vec nodes;            /* cfxi_onnx_node */
    cfxi_vec values;           /* cfxi_onnx_value: types and sizes of values inside */
};

struct cfxi_exporter {
    const cfx_allocator *allocator;
    cfxi_arena arena;
    cfx_runtime *rt;
    cfx_dims *dims;
    int opset;
    const cfx_onnx_write_options *options;
    cfx_module *root;          /* whose tensors the graph reads */
    cfxi_export_scope *scope;  /* nodes go here */
    cfxi_vec initializers;     /* cfxi_onnx_tensor */
    cfxi_vec owned;            /* cfx_datum: released at the end */
    cfxi_hash_set names;       /* of values: no two are the same */
    cfxi_hash_set constants;   /* by type and elements */
    cfxi_pointers weights;     /* const cfx_tensor * -> cfxi_ev * */
    cfxi_pointers reads;       /* likewise: tensors of the module that the graph reads */
    cfxi_vec kept;             /* cfxi_export_kept: tensors of the module that it writes to */
    cfxi_pointers nodes;       /* const cfx_node * -> cfxi_ev * */
    const cfx_node *at;        /* being exported: for names, lines and findings */
    size_t made;               /* nodes for it so far */
    size_t findings;
    bool unlowered;            /* some calls could not be lowered: there is a finding for each */
    char first[400];           /* of them */
    const char *checks;        /* that the program makes and ONNX does not, one to a line */
    cfx_error *err;
    bool failed;               /* memory is out: *err says so */
    cfxi_ev broken;            /* stands for what could not be made */
    int depth;                 /* of regions */
};

/* A call that is being exported. */
typedef struct cfxi_export_call {
    cfxi_exporter *x;
    const cfx_node *node;
    cfx_operator op;
    cfxi_ev **args;            /* one for each parameter; defaults are filled in */
    cfx_datum *full;           /* the same as the row's rule sees them */
    size_t n;
    cfx_datum result;          /* what the row's rule says of the results */
    bool refused;
} cfxi_export_call;

/* Returns the result; a tuple or list by cfxi_export_list. Never NULL. */
typedef cfxi_ev *cfxi_export_rule(cfxi_export_call *c);

/* ---- failing (export_build.c) -------------------------------------------------------------- */

/* A finding about the call: why it cannot be exported, and what to do. Returns a value that stands
 * for the result. */
cfxi_ev *cfxi_export_refuse(cfxi_export_call *c, const char *format, ...) CFX_PRINTF(2, 3);
/* Memory is out, or what *err says. */
cfxi_ev *cfxi_export_fail(cfxi_exporter *x);
/* Memory of the arena, zeroed; NULL, and the exporter fails. */
void *cfxi_export_room(cfxi_exporter *x, size_t n, size_t size);
const char *cfxi_export_text(cfxi_exporter *x, const char *format, ...) CFX_PRINTF(2, 3);
/* `wish`, or with a number behind it if a value has that name. */
const char *cfxi_export_unique(cfxi_exporter *x, const char *wish);
/* Keeps a datum until the end: takes over the reference. */
cfx_datum cfxi_export_own(cfxi_exporter *x, cfx_datum d);

/* ---- nodes (export_build.c) ---------------------------------------------------------------- */

/* A node with one output; NULL among the inputs: not given. The result has the type of the first
 * input, unless the operator always gives another one. */
cfxi_ev *cfxi_export_node(cfxi_exporter *x, const char *op, cfxi_ev *const *inputs, size_t n);
/* The same with several outputs, all of that type. */
bool cfxi_export_nodes(cfxi_exporter *x, const char *op, cfxi_ev *const *inputs, size_t n,
                       cfxi_ev **outputs, size_t num_outputs);
/* Attributes of the node that was made last. */
void cfxi_export_set_int(cfxi_exporter *x, const char *name, int64_t i);
void cfxi_export_set_ints(cfxi_exporter *x, const char *name, const int64_t *ints, size_t n);
void cfxi_export_set_float(cfxi_exporter *x, const char *name, double f);
void cfxi_export_set_text(cfxi_exporter *x, const char *name, const char *text);
void cfxi_export_set_texts(cfxi_exporter *x, const char *name, const char *const *texts, size_t n);
void cfxi_export_set_graph(cfxi_exporter *x, const char *name, cfxi_onnx_graph *graph);

#define CFXI_EVS(...) (cfxi_ev *[]){__VA_ARGS__}
#define CFXI_EV_COUNT(...) (sizeof((cfxi_ev *[]){__VA_ARGS__}) / sizeof(cfxi_ev *))
/* In a rule: the call is `c`. */
#define NODE(op, ...) cfxi_export_node(c->x, op, CFXI_EVS(__VA_ARGS__), CFXI_EV_COUNT(__VA_ARGS__))
#define SET_INT(name, i) cfxi_export_set_int(c->x, name, i)
#define SET_INTS(name, ints, n) cfxi_export_set_ints(c->x, name, ints, n)
#define SET_FLOAT(name, f) cfxi_export_set_float(c->x, name, f)
#define SET_TEXT(name, text) cfxi_export_set_text(c->x, name, text)

/* ---- constants (export_constants.c) -------------------------------------------------------- */

/* Elements of a type: a scalar (n is 1, rank 0) or a list; equal ones are written once. */
cfxi_ev *cfxi_export_constant(cfxi_exporter *x, cfx_dtype dtype, const void *elements, size_t n,
                              int rank);
cfxi_ev *cfxi_export_const_int(cfxi_exporter *x, int64_t i);             /* an int64 scalar */
cfxi_ev *cfxi_export_const_ints(cfxi_exporter *x, const int64_t *ints, size_t n);  /* a list */
cfxi_ev *cfxi_export_number(cfxi_exporter *x, cfx_dtype dtype, cfx_datum number);
/* A number of the type of `like`. */
cfxi_ev *cfxi_export_like(cfxi_exporter *x, const cfxi_ev *like, double value);
/* A tensor of the module, or a constant of the graph, under its name. */
cfxi_ev *cfxi_export_weight(cfxi_exporter *x, const char *name, cfx_tensor *t);
/* A weight in a type of ONNX that packs elements, of number `type`: `bytes` lie in the arena, sizes
 * are those of `like`, and cfx has it as `dtype`. */
cfxi_ev *cfxi_export_packed(cfxi_exporter *x, const char *name, int64_t type, cfx_dtype dtype,
                            const void *bytes, size_t size, const cfx_tensor *like);
#define INT(i) cfxi_export_const_int(c->x, i)
#define INTS(...)                                                                                  \
    cfxi_export_const_ints(c->x, (const int64_t[]){__VA_ARGS__},                                   \
                           sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define LIKE(like, value) cfxi_export_like(c->x, like, value)

/* ---- values (export_values.c) -------------------------------------------------------------- */

/* The ONNX name of a tensor or a number, made if need be. */
const char *cfxi_export_name(cfxi_exporter *x, cfxi_ev *v);
/* The type that it has as an ONNX value: numbers are bool, int64 and double. */
cfx_dtype cfxi_export_dtype(const cfxi_ev *v);
cfxi_ev *cfxi_export_cast(cfxi_exporter *x, cfxi_ev *v, cfx_dtype dtype);
bool cfxi_export_is_number(const cfxi_ev *v);
/* A number whose value is known. */
bool cfxi_export_is_known(const cfxi_ev *v);
bool cfxi_export_is_none(const cfxi_ev *v);
/* A value of the graph from what is known of it, without a name; containers item by item. */
cfxi_ev *cfxi_export_of_datum(cfxi_exporter *x, cfx_datum d);
/* A tensor of the graph, of which that is known, under the name that a node has given it. */
cfxi_ev *cfxi_export_made(cfxi_exporter *x, const cfxi_ev *made, cfx_dtype dtype,
                          const int64_t *sizes, int rank);
/* A list or tuple of values. */
cfxi_ev *cfxi_export_list(cfxi_exporter *x, cfxi_ev *const *items, size_t n);
/* The size of a dimension as a number; one that is known is a constant. */
cfxi_ev *cfxi_export_size(cfxi_exporter *x, cfxi_ev *v, int64_t dim);
/* Shape of a tensor as int64[]; a constant if all sizes are known. */
cfxi_ev *cfxi_export_shape(cfxi_exporter *x, cfxi_ev *v);
/* Numbers (known or not) as int64[]; a constant if all are known. */
cfxi_ev *cfxi_export_shape_of(cfxi_exporter *x, cfxi_ev *const *items, size_t n);
/* A number or a tensor of one element as int64[1]. */
cfxi_ev *cfxi_export_one(cfxi_exporter *x, cfxi_ev *v);
/* Whether a name of scope `s` can be used in the present one. */
bool cfxi_export_is_visible(const cfxi_exporter *x, const cfxi_export_scope *s);
/* The known size of a dimension, which may be counted from the end; -1 if it is not known. */
int64_t cfxi_export_known_size(const cfxi_exporter *x, const cfxi_ev *v, int64_t dim);
#define CAST(v, dtype) cfxi_export_cast(c->x, v, dtype)
#define SIZE(v, dim) cfxi_export_size(c->x, v, dim)
#define SHAPE(v) cfxi_export_shape(c->x, v)

/* ---- arguments (export_arguments.c) -------------------------------------------------------- */

/* Argument i: a tensor or a number; NULL if it is None. */
cfxi_ev *cfxi_export_arg(cfxi_export_call *c, size_t i);
/* The same in the type of the result. */
cfxi_ev *cfxi_export_in(cfxi_export_call *c, size_t i);
#define ARG(i) cfxi_export_arg(c, i)
#define IN(i) cfxi_export_in(c, i)
bool cfxi_export_given(const cfxi_export_call *c, size_t i);  /* whether it is not None */
/* A number that must be known: a finding if it is not. */
int64_t cfxi_export_int(cfxi_export_call *c, size_t i);
double cfxi_export_float(cfxi_export_call *c, size_t i);
bool cfxi_export_bool(cfxi_export_call *c, size_t i);
/* A text, or NULL. */
const char *cfxi_export_str(const cfxi_export_call *c, size_t i);
bool cfxi_export_is(const cfxi_export_call *c, size_t i, const char *word);
/* A list of integers that must be known, at most CFX_MAX_DIMS * 2; returns how many. */
size_t cfxi_export_ints(cfxi_export_call *c, size_t i, int64_t *out);
/* The items of a list argument: numbers, known or not. A single number stands for a list of one. */
size_t cfxi_export_items(cfxi_export_call *c, size_t i, cfxi_ev ***out);
/* A dimension of a tensor of that rank, counted from the front. */
int64_t cfxi_export_dim(cfxi_export_call *c, size_t i, int rank);
/* Dimensions in argument i; all of them if it is None or empty. Returns how many. */
size_t cfxi_export_axes(cfxi_export_call *c, size_t i, int rank, int64_t *out);
/* The type of the (first) result. */
cfx_dtype cfxi_export_result_dtype(const cfxi_export_call *c);
const cfx_tensor *cfxi_export_result(const cfxi_export_call *c, size_t i);  /* NULL: no tensor */
/* The type in which two arguments are compared or joined. */
cfx_dtype cfxi_export_common(cfxi_export_call *c, size_t i, size_t j);
/* The type to compute in where ONNX has no arithmetic on a type: bool and small integers. */
cfx_dtype cfxi_export_computes(cfx_dtype dtype);

/* ---- what is checked (export_checks.c) ----------------------------------------------------- */

/* Keeps what a call checks as a text of the file. */
void cfxi_export_note_check(cfxi_exporter *x, const cfx_node *n);
/* Does so with all assertions of a graph that is not lowered yet, and takes them away with what
 * only they use. */
cfx_status cfxi_export_drop_checks(cfxi_exporter *x, cfx_graph *g, const cfx_module_tree *modules,
                                   cfx_error *err);

/* ---- the walk (export_walk.c) -------------------------------------------------------------- */

/* Exports a call of a row with these arguments as if the node called it: one rule in terms of
 * another. Missing arguments take their defaults. */
cfxi_ev *cfxi_export_apply(cfxi_exporter *x, const cfx_node *node, cfx_operator op,
                           cfxi_ev *const *args, size_t n);
#define APPLY(op, ...)                                                                             \
    cfxi_export_apply(c->x, c->node, CFX_OPID_##op, CFXI_EVS(__VA_ARGS__),                         \
                      CFXI_EV_COUNT(__VA_ARGS__))
/* The result of a region with these arguments: nodes go to the present scope. */
cfxi_ev *cfxi_export_region(cfxi_exporter *x, cfx_graph *g, cfxi_ev *const *args, size_t n);
/* Exports all of the graph; its result. */
cfxi_ev *cfxi_export_graph(cfxi_exporter *x, cfx_graph *g, cfxi_ev *const *inputs, size_t n);
/* Begins and ends a graph inside the present one. */
void cfxi_export_scope_begin(cfxi_exporter *x, cfxi_export_scope *s);
cfxi_onnx_graph *cfxi_export_scope_end(cfxi_exporter *x, const char *name);
/* Writes the type of a value that has a name into the present graph. */
void cfxi_export_note_type(cfxi_exporter *x, const cfxi_ev *v);
/* The type of a value as ONNX has it; `sizes` false: its rank alone. */
cfxi_onnx_type *cfxi_export_type(cfxi_exporter *x, const cfxi_ev *v, bool sizes);

/* ---- parts (export_parts.c) ---------------------------------------------------------------- */

/* What is known of a call whose own rule needs to know sizes: of split and unbind, the parts that
 * the graph uses; of attention, its shape. Sets c->result, clears *err; false if that does not
 * help. */
bool cfxi_export_described(cfxi_export_call *c, cfxi_ev *const *given, size_t n, cfx_error *err);

/* ---- writing to tensors (export_writes.c) -------------------------------------------------- */

/* The value as it is now: made anew if memory that it shares was written to. */
cfxi_ev *cfxi_export_fresh(cfxi_exporter *x, cfxi_ev *v);
/* Notes that `v` shares memory with args[0]. */
void cfxi_export_note_view(cfxi_exporter *x, cfxi_ev *v, const cfxi_export_call *c, size_t item);
/* The tensor whose memory it is. */
cfxi_ev *cfxi_export_root(cfxi_ev *v);
/* `v` has these elements from now on, and so has what it is a view of. */
cfxi_ev *cfxi_export_write(cfxi_export_call *c, cfxi_ev *v, cfxi_ev *elements);
/* Says that two tensors may be one: what is written to one, the other may have. */
void cfxi_export_partner_with(cfxi_exporter *x, cfxi_ev *a, cfxi_ev *b);
/* The present graph, a branch or the body of a loop, writes to `root` of a graph around it: from
 * here to cfxi_export_restore it is that graph's own. */
void cfxi_export_note_written(cfxi_exporter *x, cfxi_ev *root);
/* Gives a tensor the value that has this name from now on. */
void cfxi_export_rename(cfxi_ev *root, const cfxi_ev *made);
/* `v` as it is now, as a value of its own. */
cfxi_ev *cfxi_export_snapshot(cfxi_exporter *x, cfxi_ev *v);
/* The same of all tensors in `v` that share memory with one that the present graph has noted. */
cfxi_ev *cfxi_export_freeze(cfxi_exporter *x, cfxi_ev *v);
/* What the present graph has noted is again as it is outside. */
void cfxi_export_restore(cfxi_exporter *x);
/* `v`, of which there are no other views, is this view of itself from now on: squeeze_, t_. */
cfxi_ev *cfxi_export_reshape_in_place(cfxi_exporter *x, cfxi_ev *v, const cfxi_ev *made);

/* ---- branches and loops (export_leaves.c) -------------------------------------------------- */

/* What is known of a value that is either of two, neither of them a container. Sizes that differ
 * are not known; refuses types or ranks that do. */
cfx_datum cfxi_export_either(cfxi_export_call *c, const cfxi_ev *a, const cfxi_ev *b);

/* ---- lists of unknown length (export_sequence.c) ------------------------------------------- */

/* Whether it is a sequence, or holds one. */
bool cfxi_export_has_sequence(const cfxi_ev *v);
/* Whether it is a list or a tuple, of known length or not. */
bool cfxi_export_is_list(const cfxi_ev *v);
/* A sequence of such elements, under the name that a node has given it; NULL: none yet. */
cfxi_ev *cfxi_export_new_sequence(cfxi_exporter *x, cfxi_ev *element, const cfxi_ev *made);
/* A list or sequence as a sequence of such elements. */
cfxi_ev *cfxi_export_as_sequence(cfxi_export_call *c, cfxi_ev *list, cfxi_ev *element);
/* The type of a sequence that is either of two lists or sequences. */
cfxi_ev *cfxi_export_either_list(cfxi_export_call *c, const cfxi_ev *a, const cfxi_ev *b);
/* The structure of `a`, with sequences where `b` has a list of another length; `a` itself if there
 * is none. */
cfxi_ev *cfxi_export_widen(cfxi_export_call *c, cfxi_ev *a, cfxi_ev *b);
/* What `other` has in the place of item i of `like`: dicts by keys. NULL: nothing. */
cfxi_ev *cfxi_export_twin(const cfxi_ev *like, size_t i, const cfxi_ev *other);
/* The type of all items of a list or sequence: NULL if it is empty, or after a finding. */
cfxi_ev *cfxi_export_item_type(cfxi_export_call *c, const cfxi_ev *list);
/* An item as a sequence of such elements has it. */
cfxi_ev *cfxi_export_as_item(cfxi_export_call *c, cfxi_ev *item, const cfxi_ev *element);
/* A value that a node has made, of which no more is known than that it is like this one. */
cfxi_ev *cfxi_export_value_like(cfxi_exporter *x, const cfxi_ev *like, const cfxi_ev *made);

/* ---- what Python does with them (export_lists.c) ------------------------------------------- */

/* A call that takes a sequence. */
cfxi_ev *cfxi_export_on_sequence(cfxi_export_call *c, cfxi_ev *const *given, size_t n);
/* A call whose row does not know how long a list is, or which item is meant: as a sequence. NULL:
 * it is none of those. */
cfxi_ev *cfxi_export_by_sequence(cfxi_export_call *c, cfxi_ev *const *given, size_t n);

/* ---- pieces that rules share --------------------------------------------------------------- */

/* A reduction: axes as an input or an attribute, as the opset has them. n is 0: all. (reduce) */
cfxi_ev *cfxi_export_reduce(cfxi_export_call *c, const char *op, cfxi_ev *x, const int64_t *axes,
                            size_t n, bool keepdim);
cfxi_ev *cfxi_export_unsqueeze(cfxi_export_call *c, cfxi_ev *x, int64_t axis);
cfxi_ev *cfxi_export_squeeze(cfxi_export_call *c, cfxi_ev *x, int64_t axis);
cfxi_ev *cfxi_export_transpose(cfxi_export_call *c, cfxi_ev *x, const int64_t *perm, size_t n);
/* Reshape to known sizes; 0 keeps a size, -1 is the rest. */
cfxi_ev *cfxi_export_reshape(cfxi_export_call *c, cfxi_ev *x, const int64_t *sizes, size_t n);
cfxi_ev *cfxi_export_concat(cfxi_export_call *c, cfxi_ev *const *parts, size_t n, int64_t axis);
/* Elements from start to end (NULL: the last) of one dimension. */
cfxi_ev *cfxi_export_slice(cfxi_export_call *c, cfxi_ev *x, int64_t axis, cfxi_ev *start,
                           cfxi_ev *end, int64_t step);
/* 0, 1, 2, ... as int64[]. */
cfxi_ev *cfxi_export_range(cfxi_export_call *c, cfxi_ev *end);
/* Each element of a shape is this number. */
cfxi_ev *cfxi_export_filled(cfxi_export_call *c, cfxi_ev *shape, cfx_dtype dtype, double value);
/* The one element of `v`, which has the sizes of `like`, or a number: without dimensions.
 * (numbers) */
cfxi_ev *cfxi_export_scalar(cfxi_export_call *c, cfxi_ev *v, const cfxi_ev *like);
/* Exchanges two of n dimensions. */
cfxi_ev *cfxi_export_swap(cfxi_export_call *c, cfxi_ev *x, size_t n, size_t a, size_t b);
/* a | b of two dicts. */
cfxi_ev *cfxi_export_merged(cfxi_export_call *c);
/* The place of an item of a list or dict; SIZE_MAX if it is not known. (items) */
size_t cfxi_export_item_place(const cfxi_ev *list, const cfxi_ev *index);
/* x[...] for an index of Python's: a number, a slice, a tensor, or a tuple of them. */
cfxi_ev *cfxi_export_index(cfxi_export_call *c, cfxi_ev *x, cfxi_ev *const *index, size_t n);

/* ---- the rules ----------------------------------------------------------------------------- */

#define CFX_ONNX_EXPORT(row, since, rule) cfxi_export_rule cfxi_export_##rule;
#include "export.def"

/* Rows that have an "onnx:" spelling and no rule. (export_spelled.c) */
cfxi_ev *cfxi_export_spelled(cfxi_export_call *c);
bool cfxi_export_has_spelling(cfx_operator op, char name[CFX_SPELLING_SIZE], const char **list);

/* ---- the file (export_file.c) -------------------------------------------------------------- */

/* Writes what was exported: to a path, with weights beside it if asked for, or to a sink (not
 * NULL). */
cfx_status cfxi_export_save(cfxi_exporter *x, cfxi_onnx_model *m, const char *path,
                            const cfx_sink *sink, cfx_error *err);

#endif
