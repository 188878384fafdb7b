/* For language bindings and back ends; may change between versions.
 *
 * embed/script.h - captures Python from its source; control flow that depends on data becomes
 * regions.
 *
 * A cfx_script is a parsed source. The evaluator runs its functions on the objects of a *world*:
 * Python's own objects if Python is present, cfx's objects otherwise. It calls the world for every
 * operation on an object (addition, attribute access, calls), and handles the syntax itself: names,
 * statements, and calls of functions whose source is known.
 *
 * Some objects are *graph values*: they stand for the result of a node, and the world records
 * operations on them in the graph. Everything that is known is evaluated during capture. Where a
 * branch or loop depends on a graph value, the evaluator follows both paths and creates a cfx.cond,
 * cfx.while_loop or cfx.for_loop:
 *
 *     def f(x):                                %sum = call_method[target=sum](%x)
 *         if x.sum() > 0:                      %gt = call_function[target=operator.gt](%sum, 0)
 *             y = x * 2                        %cond = call_function[target=cfx.cond](%gt, graph {
 *         else:                                      ... %mul = ... output(%mul) }, graph {
 *             y = -x                                 ... %neg = ... output(%neg) }, (%x,))
 *         return y + 1                         %add = call_function[target=operator.add](%cond, 1)
 *
 * An evaluation uses one thread at a time; any number of threads may read a cfx_script.
 */
#ifndef CFX_EMBED_SCRIPT_H
#define CFX_EMBED_SCRIPT_H

#include <cfx/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sources ------------------------------------------------------------------------------- */

typedef struct cfx_script cfx_script;   /* reference-counted */
typedef struct cfx_script_def cfx_script_def;  /* a function in it; lives as long as the script */

/* The `file` of a source that is part of a world, as its library may be. Messages and nodes name
 * the place in the user's program that called it. */
#define CFX_SCRIPT_LIBRARY "<cfx>"

/* Parses a source, which is copied. `file` is used in messages and locations. `is_text`: the source
 * is UTF-8, even if a coding comment says otherwise. The caller gets one reference. NULL with *err
 * set: CFX_E_SYNTAX with line and column, and a message that shows the line with a caret;
 * CFX_E_LIMIT; CFX_E_UNSUPPORTED; CFX_E_NOMEM. */
CFX_API cfx_script *cfx_script_parse(const char *source, size_t size, const char *file,
                                     bool is_text, const cfx_allocator *allocator, cfx_error *err);
CFX_API cfx_script *cfx_script_retain(cfx_script *script);
CFX_API void cfx_script_release(cfx_script *script);  /* NULL is allowed */

/* The function of this name that begins on this line (that of its first decorator or of `def`, as
 * in Python). A lambda is named "<lambda>" and also needs the column of its body, from 0 (-1:
 * unknown). NULL if there is no such function, or if several could be meant. */
CFX_API const cfx_script_def *cfx_script_find(const cfx_script *script, uint32_t line,
                                              int64_t column, const char *name);

/* ---- objects ------------------------------------------------------------------------------- */

typedef struct cfx_object cfx_object;  /* defined by the world; identity is pointer equality */

/* The kind of an object, as far as the evaluator needs it. Also what is known about a graph value;
 * OTHER then means that nothing is known. */
typedef enum cfx_object_kind {
    CFX_OBJECT_OTHER,
    CFX_OBJECT_NONE,
    CFX_OBJECT_BOOL,
    CFX_OBJECT_INT,
    CFX_OBJECT_FLOAT,
    CFX_OBJECT_COMPLEX,
    CFX_OBJECT_STR,
    CFX_OBJECT_TUPLE,        /* including subclasses that are not named tuples */
    CFX_OBJECT_NAMED_TUPLE,
    CFX_OBJECT_LIST,         /* including subclasses, here and below */
    CFX_OBJECT_DICT,
    CFX_OBJECT_SET,
    CFX_OBJECT_TENSOR,       /* a real one: a parameter, a buffer, a constant */
    CFX_OBJECT_CLASS,
    CFX_OBJECT_MODULE,       /* an nn.Module */
    CFX_OBJECT_INSTANCE,     /* of a user-defined class, with attributes that can be set */
    CFX_OBJECT_KINDS
} cfx_object_kind;

typedef struct cfx_script_literal {
    cfx_object_kind kind;  /* NONE, BOOL, INT, FLOAT, COMPLEX (its imaginary part), STR; OTHER: see
                              `other` */
    enum { CFX_LITERAL_ELLIPSIS, CFX_LITERAL_BYTES } other;
    int64_t i;             /* BOOL; INT, if `text` is NULL */
    double f;
    const char *text;      /* STR (UTF-8, possibly with lone surrogates), BYTES: not terminated; an
                              INT that is too large for `i`: its digits ("0x1f...") */
    size_t size;
} cfx_script_literal;

typedef enum cfx_script_sign {
#define CFX_SIGN_UNARY(id, ...) CFX_SIGN_##id,
#define CFX_SIGN_BINARY(id, ...) CFX_SIGN_##id,
#define CFX_SIGN_COMPARE(id, ...) CFX_SIGN_##id,
#define CFX_SIGN_WORD(id, ...) CFX_SIGN_##id,
#include <cfx/embed/sign.def>
    CFX_SIGNS
} cfx_script_sign;

/* How an object can change during capture. Both ways of a branch are evaluated one after the other,
 * and a loop several times: what one of them changed is put back before the next. */
typedef enum cfx_script_change {
    CFX_CHANGE_NEVER,       /* it cannot change; also graph values, tensors and modules, whose
                               changes are recorded */
    CFX_CHANGE_ITEMS,       /* `contents` are its items, or keys and values; `refill` replaces them,
                               and two can be merged: list, dict, set, deque */
    CFX_CHANGE_WHOLE,       /* `contents` is one object that cannot change and holds everything;
                               `refill` puts it back, but two cannot be merged: bytearray, array */
    CFX_CHANGE_ATTRIBUTES,  /* `contents` are names and values; `set` puts them back */
    CFX_CHANGE_ITERATOR,    /* whoever reads it changes it, and it cannot be put back */
    CFX_CHANGE_UNKNOWN      /* it can change, and cannot be put back */
} cfx_script_change;

/* ---- functions ----------------------------------------------------------------------------- */

typedef enum cfx_script_special {
#define CFX_SPECIAL(id, name) CFX_SPECIAL_##id,
#include <cfx/embed/special.def>
#undef CFX_SPECIAL
    CFX_SPECIALS
} cfx_script_special;

/* A function that the evaluator created (`def`, `lambda`): reference-counted. It must not outlive
 * the script, nor be called after the evaluation has ended. */
typedef struct cfx_script_function cfx_script_function;

typedef enum cfx_script_callee_kind {
    CFX_CALLEE_DIRECT,    /* the world calls it: records a node, or computes a known result */
    CFX_CALLEE_SPECIAL,   /* `special` */
    CFX_CALLEE_OWN,       /* `own`, bound to `self` if that is set */
    CFX_CALLEE_SOURCE,    /* `def` and the fields after it */
    CFX_CALLEE_CLASS,     /* create an object with `make`; `function` is its __init__ */
    CFX_CALLEE_MODULE,    /* an nn.Module to enter; `function` is its forward */
    CFX_CALLEE_CHAIN,     /* an nn.Module that calls `parts` in sequence (Sequential) */
    CFX_CALLEE_PARTIAL    /* `function` with leading arguments `parts`, and `named` (a dict) */
} cfx_script_callee_kind;

/* How to call an object. Objects are borrowed: they live as long as the object asked about, or were
 * handed over by `keep`. */
typedef struct cfx_script_callee {
    cfx_script_callee_kind kind;
    cfx_script_special special;
    cfx_script_function *own;
    cfx_object *self;        /* the first argument of a bound method, or NULL; for DIRECT, set only
                                if it is an object that can change */
    cfx_object *function;
    const cfx_script_def *def;
    cfx_object *globals;
    cfx_object *defaults;    /* a tuple, or NULL */
    cfx_object *kw_defaults; /* a dict, or NULL */
    size_t n_free;           /* names from enclosing functions; a NULL value is not bound yet */
    const char *const *free_names;
    cfx_object *const *free_values;
    cfx_object *const *parts;
    size_t n_parts;
    cfx_object *named;
} cfx_script_callee;

/* ---- the world ----------------------------------------------------------------------------- */

typedef enum cfx_script_build {
    CFX_BUILD_TUPLE,
    CFX_BUILD_LIST,
    CFX_BUILD_SET,
    CFX_BUILD_DICT,   /* alternating keys and values */
    CFX_BUILD_SLICE,  /* three */
    CFX_BUILD_TEXT,   /* concatenates the pieces of an f-string; if there are graph values among
                         them, it is recorded as one call of str.format */
    CFX_BUILD_LIKE    /* an object like the first item, a tuple, named tuple, list, dict or
                         instance, with the other items as its contents, as from `contents` */
} cfx_script_build;

typedef struct cfx_call_args {
    cfx_object *const *args;
    size_t n;
    const char *const *names;    /* of the last n_named of them; "*args" and "**kwargs", with the
                                    stars, pass the whole tuple or dict of that parameter */
    size_t n_named;
} cfx_call_args;

/* Functions that return an object return a new reference, or NULL with *err set: CFX_E_HOST if the
 * world raised an exception, which it keeps. Any operand may be a graph value; if the operation
 * requires a node, the world records it. */
typedef struct cfx_world {
    void (*retain)(void *ctx, cfx_object *o);
    void (*release)(void *ctx, cfx_object *o);

    /* -- kinds and contents */
    cfx_object_kind (*kind)(void *ctx, cfx_object *o);  /* OTHER for a graph value */
    cfx_object *(*literal)(void *ctx, const cfx_script_literal *literal, cfx_error *err);
    cfx_object *(*build)(void *ctx, cfx_script_build what, cfx_object *const *items, size_t n,
                         cfx_error *err);
    /* The contents of a tuple, list, dict (alternating keys and values), set, instance (alternating
     * names and values) or any other object that is CFX_CHANGE_ITEMS, WHOLE or ATTRIBUTES: new
     * references in an array owned by the world; `drop` frees it. */
    cfx_status (*contents)(void *ctx, cfx_object *o, cfx_object ***items, size_t *n,
                           cfx_error *err);
    void (*drop)(void *ctx, cfx_object **items, size_t n);
    /* Replaces the contents of an object that is CFX_CHANGE_ITEMS or WHOLE; it keeps its
     * identity. */
    cfx_status (*refill)(void *ctx, cfx_object *o, cfx_object *const *items, size_t n,
                         cfx_error *err);
    /* The value of an INT or BOOL; false if it does not fit. */
    bool (*integer)(void *ctx, cfx_object *o, int64_t *i);
    /* The UTF-8 text of a STR, borrowed; NULL if it is not available. */
    const char *(*text)(void *ctx, cfx_object *o, size_t *size);
    /* If `o` is a view of a dict: the dict, borrowed, and the name of the method that gave it
     * ("keys", "values", "items"); else NULL. (may be NULL: there are none) */
    cfx_object *(*view_of)(void *ctx, cfx_object *o, const char **method);
    /* Whether two known, immutable objects have the same type and are equal, so that either can
     * replace the other. */
    bool (*equal)(void *ctx, cfx_object *a, cfx_object *b);
    /* The class name of an object ("int", "MyClass"), for messages: borrowed for a short time. */
    const char *(*type_name)(void *ctx, cfx_object *o);

    /* -- changes (each may be NULL: by the kind; never; never; unknown) */
    /* How *o can change. If it is a view, *o becomes the object that holds the contents. */
    cfx_script_change (*change)(void *ctx, cfx_object **o);
    /* Whether it was there before the program, which must not change it. */
    bool (*is_outside)(void *ctx, cfx_object *o);
    /* Whether an object that the world has just returned is referenced by nobody else. */
    bool (*is_new)(void *ctx, cfx_object *o);
    /* Whether o[key] may add the key, as that of a defaultdict does. */
    bool (*item_adds)(void *ctx, cfx_object *o, cfx_object *key);
    /* The qualified name of a callable ("builtins.len", "list.append"), of a partial function that
     * of what it calls; false: it has none. *self is the object whose method it is, borrowed, or
     * NULL. */
    bool (*call_name)(void *ctx, cfx_object *f, char *name, size_t size, cfx_object **self);

    /* -- operations */
    cfx_object *(*unary)(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_error *err);
    cfx_object *(*binary)(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                          bool in_place, cfx_error *err);
    cfx_object *(*compare)(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                           cfx_error *err);
    int (*truth)(void *ctx, cfx_object *o, cfx_error *err);  /* 1, 0; -1 with *err set */
    cfx_object *(*get)(void *ctx, cfx_object *o, const char *name, cfx_error *err);
    /* The same for an attribute that is called immediately and then dropped: `x.relu` in `x.relu()`
     * need not be a graph value, so the call becomes one node. (may be NULL: `get`) */
    cfx_object *(*get_method)(void *ctx, cfx_object *o, const char *name, cfx_error *err);
    /* Sets an attribute, or deletes it if `v` is NULL. */
    cfx_status (*set)(void *ctx, cfx_object *o, const char *name, cfx_object *v, cfx_error *err);
    /* Whether `set` runs code of the program (a property, __setattr__). What that code changes is
     * put back, not the attribute itself. (may be NULL: never) */
    bool (*is_computed)(void *ctx, cfx_object *o, const char *name);
    /* The same as `set`, without running code of the program: puts an attribute back. (may be NULL:
     * `set`) */
    cfx_status (*put)(void *ctx, cfx_object *o, const char *name, cfx_object *v, cfx_error *err);
    /* The same as `get`, for what `put` may put back: the program itself reads nothing. (may be
     * NULL: `get`) */
    cfx_object *(*peek)(void *ctx, cfx_object *o, const char *name, cfx_error *err);
    cfx_object *(*item)(void *ctx, cfx_object *o, cfx_object *key, cfx_error *err);
    /* Sets an item, or deletes it if `v` is NULL. */
    cfx_status (*set_item)(void *ctx, cfx_object *o, cfx_object *key, cfx_object *v,
                           cfx_error *err);
    /* An iterator, and its next object: NULL with err->status CFX_OK at the end. */
    cfx_object *(*iterate)(void *ctx, cfx_object *o, cfx_error *err);
    cfx_object *(*next)(void *ctx, cfx_object *iterator, cfx_error *err);
    /* A replacement field of an f-string; conversion is 's', 'r', 'a' or 0, spec may be NULL. */
    cfx_object *(*format)(void *ctx, cfx_object *o, int conversion, cfx_object *spec,
                          cfx_error *err);

    /* -- calls */
    cfx_status (*callee)(void *ctx, cfx_object *f, cfx_script_callee *out, cfx_error *err);
    cfx_object *(*call)(void *ctx, cfx_object *f, cfx_call_args args, cfx_error *err);
    cfx_object *(*make)(void *ctx, cfx_object *cls, cfx_error *err);  /* without __init__ */
    cfx_object *(*wrap)(void *ctx, cfx_script_function *f, cfx_error *err);  /* retains f */
    /* Creates a class. If its body annotates names, `__annotations__` is among `names`: a tuple of
     * those names, which is all that a dataclass needs. Annotations are not evaluated. */
    cfx_object *(*make_class)(void *ctx, const char *name, cfx_object *const *bases, size_t n,
                              const char *const *names, cfx_object *const *values, size_t m,
                              cfx_error *err);
    /* super(cls, self). */
    cfx_object *(*super)(void *ctx, cfx_object *cls, cfx_object *self, cfx_error *err);
    /* Marks everything up to the matching `leave` as part of a call of `module`. */
    cfx_status (*enter)(void *ctx, cfx_object *module, cfx_error *err);
    void (*leave)(void *ctx);

    /* -- names */
    /* A global or builtin: NULL with err->status CFX_OK if there is none. */
    cfx_object *(*global)(void *ctx, cfx_object *globals, const char *name, cfx_error *err);
    cfx_status (*set_global)(void *ctx, cfx_object *globals, const char *name, cfx_object *v,
                             cfx_error *err);
    /* `import name` returns the last module of the path, as `import a.b as c` binds it; `level` is
     * the number of leading dots of a relative import. */
    cfx_object *(*import)(void *ctx, cfx_object *globals, const char *name, int level,
                          cfx_error *err);

    /* -- graph values */
    cfx_node *(*node)(void *ctx, cfx_object *o);                      /* NULL for other objects */
    cfx_object *(*proxy)(void *ctx, cfx_node *n, cfx_error *err);
    /* Converts an object to an argument of a node: graph values in it become their nodes. */
    cfx_status (*value)(void *ctx, cfx_object *o, cfx_value *v, cfx_error *err);
    /* A tensor of the program as a graph value (a get_attr node), if it should become one;
     * otherwise NULL with err->status CFX_OK. */
    cfx_object *(*tensor)(void *ctx, cfx_object *o, cfx_error *err);
    /* Sets the source location of nodes recorded from now on. */
    void (*place)(void *ctx, const char *file, uint32_t line);
    /* The module stack of nodes recorded now (see cfx_graph_intern_stack). (may be NULL: 0) */
    uint32_t (*module_stack)(void *ctx);
    /* isinstance(a value of this kind, classes): 1, 0, or -1 with *err set. */
    int (*kind_is)(void *ctx, cfx_object_kind kind, cfx_object *classes, cfx_error *err);
    /* Whether hidden functions (see `hidden`) take a value of which nothing is known not to be of
     * this class: one that is fails later. (may be NULL) */
    bool (*never)(void *ctx, cfx_object *class_);
    /* The class of values of this kind: type(x). */
    cfx_object *(*kind_class)(void *ctx, cfx_object_kind kind, cfx_error *err);
    /* The program has assigned to an attribute of a module; `v` is its last value. The module has
     * been restored to its earlier state: records nodes with the same effect, or fails with the
     * reason. */
    cfx_status (*keep_attribute)(void *ctx, cfx_object *module, const char *name, cfx_object *v,
                                 cfx_error *err);

    /* -- exceptions */
    /* Raises `exc`, an exception or an exception class, from `cause` (may be NULL). Always returns
     * CFX_E_HOST, unless out of memory. */
    cfx_status (*raise)(void *ctx, cfx_object *exc, cfx_object *cause, cfx_error *err);
    /* Returns the pending exception and clears it; NULL if there is none. */
    cfx_object *(*caught)(void *ctx);
    int (*matches)(void *ctx, cfx_object *exc, cfx_object *classes, cfx_error *err);
    /* Whether a handler for `classes` would catch an exception that a call raises when the graph
     * runs: of the builtin class `name`, or of one that a library derives from it; `users`: or of
     * one that the program derives from it. 1, 0, or -1 with *err set. */
    int (*would_catch)(void *ctx, cfx_object *classes, const char *name, bool users,
                       cfx_error *err);
    /* What a context manager whose methods have no source catches: 1 if that may be anything, else
     * 0, and *classes becomes a class or a tuple of classes, a new reference, if it is those; -1
     * with *err set. (may be NULL: nothing) */
    int (*manager_catches)(void *ctx, cfx_object *manager, cfx_object **classes, cfx_error *err);
    /* The name of the builtin exception that `exc` is or derives from, and its message as a value
     * for a node; both borrowed. */
    cfx_status (*explain)(void *ctx, cfx_object *exc, const char **kind, cfx_object **message,
                          cfx_error *err);

    /* Whether functions of a source are not the user's: messages then give the line that called
     * them. (may be NULL: none are) */
    bool (*hidden)(void *ctx, const char *file);
    /* Whether to stop (Ctrl-C); called from time to time. (may be NULL) */
    cfx_status (*interrupted)(void *ctx, cfx_error *err);

    void *ctx;
} cfx_world;

/* When a world records a call of a function that it carries out itself: policy.def says it for both
 * worlds. */
typedef enum cfx_script_rule {
    CFX_RULE_NEVER,
    CFX_RULE_ITEM,    /* if an argument is a graph value or a tensor */
    CFX_RULE_VALUE,   /* if an argument is a graph value */
    CFX_RULE_DEEP,    /* if a graph value is in an argument, however deep */
    CFX_RULE_ALWAYS
} cfx_script_rule;

/* The rule of a function by its qualified name ("builtins.len"); NEVER if it has none. */
CFX_API cfx_script_rule cfx_script_rule_of(const char *name);
/* Whether an attribute or method of a tensor never changes, and is answered during capture. */
CFX_API bool cfx_script_is_fact(const char *name);

/* Whether the method of this name changes the list, dict or set that it is called on. */
CFX_API bool cfx_script_method_mutates(const char *method);

/* ---- evaluating ---------------------------------------------------------------------------- */

typedef struct cfx_script_options {
    uint32_t most_calls;     /* maximum call depth; 0: 200 */
    uint32_t most_rounds;    /* maximum iterations of an unrolled loop; 0: 100,000 */
} cfx_script_options;

typedef struct cfx_evaluator cfx_evaluator;

/* Creates an evaluator that appends nodes to `g`. `world` and `g` must outlive it. Most nodes
 * created along the way do not stay: all are named "_" until cfx_script_tidy_graph names them. NULL
 * with *err set. */
CFX_API cfx_evaluator *cfx_evaluator_new(const cfx_world *world, cfx_graph *g,
                                         const cfx_script_options *options, cfx_error *err);
/* Releases all objects that it holds. Functions that it created can no longer be called. */
CFX_API void cfx_evaluator_free(cfx_evaluator *ev);  /* NULL is allowed */

/* Calls a function and returns a new reference. NULL with *err set, and then the state of the graph
 * is unspecified. Messages give the file and line of the user's program, show the line with a
 * caret, and list the call stack. The world may call this during one of its own calls. */
CFX_API cfx_object *cfx_evaluator_call(cfx_evaluator *ev, cfx_object *f, cfx_call_args args,
                                       cfx_error *err);
/* Runs the statements of a whole source, with `globals` as its names. */
CFX_API cfx_status cfx_evaluator_run(cfx_evaluator *ev, cfx_script *script, cfx_object *globals,
                                     cfx_error *err);
/* The location of a failed call. Texts live as long as the script. */
typedef struct cfx_script_location {
    const char *file;
    uint32_t line;
    uint32_t column;       /* from 0, in bytes of UTF-8 */
    const char *function;
} cfx_script_location;
/* The i-th entry of the call stack of the last failure, innermost first; false past the end. For
 * CFX_E_HOST, whose exception does not contain the locations in the program. */
CFX_API bool cfx_evaluator_where(const cfx_evaluator *ev, size_t i, cfx_script_location *place);

/* What is known of an object, graph values included; for these OTHER means that nothing is. */
CFX_API cfx_object_kind cfx_evaluator_kind(cfx_evaluator *ev, cfx_object *o);
/* The number of the innermost way of a branch, or body of a loop, that is being evaluated; and
 * whether the one with that number still is, so that graph values made in it can be used. */
CFX_API uint32_t cfx_evaluator_region(const cfx_evaluator *ev);
CFX_API bool cfx_evaluator_in_region(const cfx_evaluator *ev, uint32_t number);

/* Whether a list or dict of the program's has become a graph value; NULL: whether any has. The
 * object itself has what it held before then, which the world must not read. */
CFX_API bool cfx_evaluator_is_value(const cfx_evaluator *ev, const cfx_object *o);

/* Accepts all changes so far: cfx_evaluator_finish then considers only later assignments. Call it
 * after the run that creates a model and before the call to capture. */
CFX_API void cfx_evaluator_accept(cfx_evaluator *ev);
/* Call after the last call: records assignments to modules, or fails with the reason if it
 * cannot. */
CFX_API cfx_status cfx_evaluator_finish(cfx_evaluator *ev, cfx_error *err);

/* For a world that keeps an assignment to a buffer as buffer.copy_(value). In Python the attribute
 * is the new tensor; the copy has the same effect only if the two have one shape and dtype. `ndim`
 * and `dtype` are the buffer's, `buffer` is the node that reads it. CFX_E_UNSUPPORTED with advice
 * if they surely differ. If only a run can tell, it appends cfx.check_buffer(buffer, value), which
 * then fails. */
CFX_API cfx_status cfx_script_fit_buffer(cfx_node *buffer, cfx_node *value, size_t ndim,
                                         cfx_dtype dtype, cfx_error *err);

/* Cleans up a graph that has its output: removes unused results of branches, and names all nodes
 * except inputs after their callees, numbered from scratch, also in regions. Names that
 * cfx_script_name_graph has given stay. It fails only if memory runs out; the graph can then only
 * be released. */
CFX_API cfx_status cfx_script_tidy_graph(cfx_graph *g, cfx_error *err);
/* For a graph to which others append, too, after an evaluation that has ended or failed: names the
 * nodes behind `last`, and nodes that are appended from now on have their names at once.
 * cfx_script_tidy_graph leaves these names as they are. It fails only if memory runs out. */
CFX_API cfx_status cfx_script_name_graph(cfx_graph *g, cfx_node *last, cfx_error *err);

CFX_API cfx_script_function *cfx_script_function_retain(cfx_script_function *f);  /* returns f */
CFX_API void cfx_script_function_release(cfx_script_function *f);  /* NULL is allowed */
CFX_API const char *
cfx_script_function_name(const cfx_script_function *f); /* "<lambda>"; lives as long as f */

typedef enum cfx_script_parameter_kind {
    CFX_PARAMETER_PLAIN,     /* by position or name */
    CFX_PARAMETER_POSITION,  /* by position only */
    CFX_PARAMETER_NAME,      /* by name only */
    CFX_PARAMETER_ARGS,      /* *args */
    CFX_PARAMETER_KWARGS     /* **kwargs */
} cfx_script_parameter_kind;

typedef struct cfx_script_parameter {
    const char *name;        /* borrowed from the script */
    cfx_script_parameter_kind kind;
    cfx_object *value;       /* its default, borrowed; NULL if it has none */
} cfx_script_parameter;

/* The i-th parameter, in the order of Python's co_varnames: positional, keyword-only, then *args
 * and **kwargs. False past the last. */
CFX_API bool cfx_script_function_parameter(const cfx_script_function *f, size_t i,
                                           cfx_script_parameter *out);

#ifdef __cplusplus
}
#endif
#endif
