/* For language bindings and back ends; may change between versions.
 *
 * embed/script.h - capturing Python from its source: control flow that depends on data becomes
 * regions.
 *
 * A cfx_script is a parsed source. The evaluator runs functions of it on the objects of a
 * *world*: Python's own objects where Python is there, objects of cfx's where it is not. It asks
 * the world for everything that an object does (add two of them, read an attribute, call one), and
 * does itself what is syntax: names, statements, calls of functions that have a source.
 *
 * Some objects are *graph values*: they stand for the result of a node, and what the world does
 * with them it records in the graph. Whatever is known is so evaluated away; and where the program
 * asks a graph value which way to go, the evaluator goes both, and makes a cfx.cond, cfx.while_loop
 * or cfx.for_loop of it:
 *
 *     def f(x):                                %sum = call_method[target=sum](%x)
 *         if x.sum() > 0:                      %gt = call_function[target=operator.gt](%sum, 0)
 *             y = x * 2                        %cond = call_function[target=cfx.cond](%gt, graph {
 *         else:                                      ... %mul = ... output(%mul) }, graph {
 *             y = -x                                 ... %neg = ... output(%neg) }, (%x,))
 *         return y + 1                         %add = call_function[target=operator.add](%cond, 1)
 *
 * All is done by one thread at a time; a cfx_script can be read by any number of them.
 */
#ifndef CFX_EMBED_SCRIPT_H
#define CFX_EMBED_SCRIPT_H

#include <cfx/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sources ------------------------------------------------------------------------------- */

typedef struct cfx_script cfx_script;   /* counted */
typedef struct cfx_script_def cfx_script_def;  /* a function in it; lives as long as the script */

/* The tree of a source, which is copied. `file` is for messages and locations. `is_text`: it is
 * UTF-8 whatever a coding comment says. NULL with *err set: CFX_E_SYNTAX with line and column, and
 * a message that shows the line with a caret; CFX_E_LIMIT; CFX_E_UNSUPPORTED; CFX_E_NOMEM. */
CFX_API cfx_script *cfx_script_parse(const char *source, size_t size, const char *file,
                                     bool is_text, const cfx_allocator *allocator, cfx_error *err);
CFX_API cfx_script *cfx_script_retain(cfx_script *script);
CFX_API void cfx_script_release(cfx_script *script);  /* NULL is allowed */

/* The function that begins in a line (of its first decorator or of `def`, as Python counts), with
 * that name; "<lambda>" for a lambda, which also needs the column of its body, from 0 (-1: it is
 * not known). NULL if there is none, or there are several that could be meant. */
CFX_API const cfx_script_def *cfx_script_find(const cfx_script *script, uint32_t line,
                                              int64_t column, const char *name);

/* ---- objects ------------------------------------------------------------------------------- */

typedef struct cfx_object cfx_object;  /* whatever the world says; two are the same if equal */

/* What an object is, as far as the evaluator must know. Also what is known of a graph value, where
 * OTHER is that nothing is. */
typedef enum cfx_object_kind {
    CFX_OBJECT_OTHER,
    CFX_OBJECT_NONE,
    CFX_OBJECT_BOOL,
    CFX_OBJECT_INT,
    CFX_OBJECT_FLOAT,
    CFX_OBJECT_COMPLEX,
    CFX_OBJECT_STR,
    CFX_OBJECT_TUPLE,        /* and subclasses that are not named tuples */
    CFX_OBJECT_NAMED_TUPLE,
    CFX_OBJECT_LIST,         /* and subclasses, here and below */
    CFX_OBJECT_DICT,
    CFX_OBJECT_SET,
    CFX_OBJECT_TENSOR,       /* a real one: a parameter, a buffer, a constant */
    CFX_OBJECT_CLASS,
    CFX_OBJECT_MODULE,       /* an nn.Module */
    CFX_OBJECT_INSTANCE,     /* of a class of the user's, with attributes that can be set */
    CFX_OBJECT_KINDS
} cfx_object_kind;

typedef struct cfx_script_literal {
    cfx_object_kind kind;  /* NONE, BOOL, INT, FLOAT, COMPLEX (its imaginary part), STR; OTHER: see
                              `other` */
    enum { CFX_LITERAL_ELLIPSIS, CFX_LITERAL_BYTES } other;
    int64_t i;             /* BOOL; INT, if `text` is NULL */
    double f;
    const char *text;      /* STR (UTF-8, lone surrogates may stand in it), BYTES: not terminated;
                              an INT that is too large for `i`: its digits ("0x1f...") */
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

/* ---- functions ----------------------------------------------------------------------------- */

typedef enum cfx_script_special {
#define CFX_SPECIAL(id, name) CFX_SPECIAL_##id,
#include <cfx/embed/special.def>
#undef CFX_SPECIAL
    CFX_SPECIALS
} cfx_script_special;

/* A function that the evaluator made (`def`, `lambda`): counted. What holds one outlives neither
 * the script nor, if it is called, the evaluation. */
typedef struct cfx_script_function cfx_script_function;

typedef enum cfx_script_callee_kind {
    CFX_CALLEE_DIRECT,    /* the world calls it: it records a node, or computes something known */
    CFX_CALLEE_SPECIAL,   /* `special` */
    CFX_CALLEE_OWN,       /* `own`, bound to `self` if that is set */
    CFX_CALLEE_SOURCE,    /* `def` and what follows it */
    CFX_CALLEE_CLASS,     /* make an object with `make`, then call its __init__: `function` */
    CFX_CALLEE_MODULE,    /* an nn.Module to look into: enter it, call its `forward`: `function` */
    CFX_CALLEE_CHAIN,     /* an nn.Module that calls those of `parts` in turn (Sequential) */
    CFX_CALLEE_PARTIAL    /* `function` with `parts` before the arguments, and `named` (a dict) */
} cfx_script_callee_kind;

/* How an object is called. Objects are borrowed, and live as long as the object asked about, or
 * were handed over by `keep`. */
typedef struct cfx_script_callee {
    cfx_script_callee_kind kind;
    cfx_script_special special;
    cfx_script_function *own;
    cfx_object *self;        /* the first argument of a bound method, or NULL; of a DIRECT one only
                                if it is a list, dict or set, which the call may change */
    cfx_object *function;
    const cfx_script_def *def;
    cfx_object *globals;
    cfx_object *defaults;    /* a tuple, or NULL */
    cfx_object *kw_defaults; /* a dict, or NULL */
    size_t n_free;           /* names of functions around it: NULL values are not bound yet */
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
    CFX_BUILD_DICT,   /* keys and values in turn */
    CFX_BUILD_SLICE,  /* three */
    CFX_BUILD_TEXT,   /* the texts of an f-string, one behind the other; graph values among them are
                         recorded as one call of str.format */
    CFX_BUILD_LIKE    /* an object like the first of them, a tuple, named tuple, list, dict or
                         instance, with the contents that follow, as `contents` gives them */
} cfx_script_build;

typedef struct cfx_call_args {
    cfx_object *const *args;
    size_t n;
    const char *const *names;    /* of the last n_named of them; "*args" and "**kwargs", with the
                                    stars, stand for what these parameters are as a whole */
    size_t n_named;
} cfx_call_args;

/* Functions that return an object return a new reference, or NULL with *err set: CFX_E_HOST where
 * the world raised, and keeps its exception. Graph values may be among the operands of all; where
 * that means a node, the world records it. */
typedef struct cfx_world {
    void (*retain)(void *ctx, cfx_object *o);
    void (*release)(void *ctx, cfx_object *o);

    /* -- what objects are */
    cfx_object_kind (*kind)(void *ctx, cfx_object *o);  /* OTHER for a graph value */
    cfx_object *(*literal)(void *ctx, const cfx_script_literal *literal, cfx_error *err);
    cfx_object *(*build)(void *ctx, cfx_script_build what, cfx_object *const *items, size_t n,
                         cfx_error *err);
    /* What is in a tuple, list, dict (keys and values in turn), set or instance (names and values
     * in turn): new references in an array of the world's, which `drop` frees. */
    cfx_status (*contents)(void *ctx, cfx_object *o, cfx_object ***items, size_t *n,
                           cfx_error *err);
    void (*drop)(void *ctx, cfx_object **items, size_t n);
    /* Gives a list, dict or set other contents; the object stays the same. */
    cfx_status (*refill)(void *ctx, cfx_object *o, cfx_object *const *items, size_t n,
                         cfx_error *err);
    /* The value of an INT or BOOL that fits; else false. */
    bool (*integer)(void *ctx, cfx_object *o, int64_t *i);
    /* The UTF-8 of a STR, borrowed; NULL if it cannot be had. */
    const char *(*text)(void *ctx, cfx_object *o, size_t *size);
    /* Whether two that are known are of the same type and equal, so that either may stand for both:
     * immutable ones only. */
    bool (*equal)(void *ctx, cfx_object *a, cfx_object *b);
    /* The class of an object ("int", "MyClass"), for messages: borrowed for a while. */
    const char *(*type_name)(void *ctx, cfx_object *o);

    /* -- what they do */
    cfx_object *(*unary)(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_error *err);
    cfx_object *(*binary)(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                          bool in_place, cfx_error *err);
    cfx_object *(*compare)(void *ctx, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                           cfx_error *err);
    int (*truth)(void *ctx, cfx_object *o, cfx_error *err);  /* 1, 0; -1 with *err set */
    cfx_object *(*get)(void *ctx, cfx_object *o, const char *name, cfx_error *err);
    /* The same for an attribute that is called at once, and then dropped: `x.relu` in `x.relu()`
     * need not be a graph value, so that the call is one node. (may be NULL: `get`) */
    cfx_object *(*get_method)(void *ctx, cfx_object *o, const char *name, cfx_error *err);
    /* `v` NULL: deletes it. */
    cfx_status (*set)(void *ctx, cfx_object *o, const char *name, cfx_object *v, cfx_error *err);
    cfx_object *(*item)(void *ctx, cfx_object *o, cfx_object *key, cfx_error *err);
    /* `v` NULL: deletes it. */
    cfx_status (*set_item)(void *ctx, cfx_object *o, cfx_object *key, cfx_object *v,
                           cfx_error *err);
    /* An iterator, and what it gives next: NULL with err->status CFX_OK at its end. */
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
    /* If the body annotates names, `__annotations__` is among `names`: a tuple of those names,
     * which is all that a dataclass needs; annotations are not evaluated. */
    cfx_object *(*make_class)(void *ctx, const char *name, cfx_object *const *bases, size_t n,
                              const char *const *names, cfx_object *const *values, size_t m,
                              cfx_error *err);
    /* super(cls, self). */
    cfx_object *(*super)(void *ctx, cfx_object *cls, cfx_object *self, cfx_error *err);
    /* What an nn.Module does until `leave` comes from there. */
    cfx_status (*enter)(void *ctx, cfx_object *module, cfx_error *err);
    void (*leave)(void *ctx);

    /* -- names */
    /* A global or builtin: NULL with err->status CFX_OK if there is none. */
    cfx_object *(*global)(void *ctx, cfx_object *globals, const char *name, cfx_error *err);
    cfx_status (*set_global)(void *ctx, cfx_object *globals, const char *name, cfx_object *v,
                             cfx_error *err);
    /* `import name` gives the last module of the path, as `import a.b as c` binds it; `level`
     * counts the dots of a relative one. */
    cfx_object *(*import)(void *ctx, cfx_object *globals, const char *name, int level,
                          cfx_error *err);

    /* -- graph values */
    cfx_node *(*node)(void *ctx, cfx_object *o);                      /* NULL if it is none */
    cfx_object *(*proxy)(void *ctx, cfx_node *n, cfx_error *err);
    /* An object as an argument of a node: graph values inside stand for their nodes. */
    cfx_status (*value)(void *ctx, cfx_object *o, cfx_value *v, cfx_error *err);
    /* A tensor of the program's as a graph value, if it is to be one: a get_attr; else NULL with
     * err->status CFX_OK. */
    cfx_object *(*tensor)(void *ctx, cfx_object *o, cfx_error *err);
    /* What is recorded from now on comes from there. */
    void (*place)(void *ctx, const char *file, uint32_t line);
    /* The module stack of what is recorded now (see cfx_graph_intern_stack). (may be NULL: 0) */
    uint32_t (*module_stack)(void *ctx);
    /* isinstance(a value of that kind, classes): 1, 0, -1 with *err set. */
    int (*kind_is)(void *ctx, cfx_object_kind kind, cfx_object *classes, cfx_error *err);
    /* The class of values of a kind: type(x). */
    cfx_object *(*kind_class)(void *ctx, cfx_object_kind kind, cfx_error *err);
    /* The program has assigned to an attribute of a module; `v` is its last value. The module has
     * been put back as it was: records what does the same, or fails and says why it cannot. */
    cfx_status (*keep_attribute)(void *ctx, cfx_object *module, const char *name, cfx_object *v,
                                 cfx_error *err);

    /* -- exceptions */
    /* Raises `exc`, an exception or a class of them, from `cause` (may be NULL): always CFX_E_HOST
     * unless memory is out. */
    cfx_status (*raise)(void *ctx, cfx_object *exc, cfx_object *cause, cfx_error *err);
    /* The exception that was raised, which is no longer pending. NULL if there is none. */
    cfx_object *(*caught)(void *ctx);
    int (*matches)(void *ctx, cfx_object *exc, cfx_object *classes, cfx_error *err);
    /* The name of the builtin exception that `exc` is or derives from, and its message, as a value
     * for a node; both borrowed. */
    cfx_status (*explain)(void *ctx, cfx_object *exc, const char **kind, cfx_object **message,
                          cfx_error *err);

    /* Whether it shall stop (Ctrl-C): asked now and then. (may be NULL) */
    cfx_status (*interrupted)(void *ctx, cfx_error *err);

    void *ctx;
} cfx_world;

/* Whether the method of that name changes the list, dict or set that it is called on. */
CFX_API bool cfx_script_method_mutates(const char *method);

/* ---- evaluating ---------------------------------------------------------------------------- */

typedef struct cfx_script_options {
    uint32_t most_calls;     /* how deep calls may be nested; 0: 200 */
    uint32_t most_rounds;    /* of one loop that is unrolled; 0: 100,000 */
} cfx_script_options;

typedef struct cfx_evaluator cfx_evaluator;

/* Evaluates into `g`, whose end is where nodes go. `world` and `g` outlive it. Most nodes that are
 * made on the way do not stay: all are called "_" until cfx_script_tidy_graph gives them names. */
CFX_API cfx_evaluator *cfx_evaluator_new(const cfx_world *world, cfx_graph *g,
                                         const cfx_script_options *options, cfx_error *err);
/* Releases all objects that it holds. Functions that it made can no longer be called. */
CFX_API void cfx_evaluator_free(cfx_evaluator *ev);  /* NULL is allowed */

/* Calls a function: a new reference, or NULL with *err set, the graph then being in no particular
 * state. Messages say the file and line of the user's program, show it with a caret, and name the
 * calls it came through. The world may call this while it is in a call of its own. */
CFX_API cfx_object *cfx_evaluator_call(cfx_evaluator *ev, cfx_object *f, cfx_call_args args,
                                       cfx_error *err);
/* Runs the statements of a whole source, whose names are those of `globals`. */
CFX_API cfx_status cfx_evaluator_run(cfx_evaluator *ev, cfx_script *script, cfx_object *globals,
                                     cfx_error *err);
/* Where a call was that failed. Texts live as long as the script. */
typedef struct cfx_script_location {
    const char *file;
    uint32_t line;
    uint32_t column;       /* from 0, in bytes of UTF-8 */
    const char *function;
} cfx_script_location;
/* The i-th of the calls in which the last failure was found, the innermost first; false if there
 * are not so many. For CFX_E_HOST, whose exception knows nothing of the program. */
CFX_API bool cfx_evaluator_where(const cfx_evaluator *ev, size_t i, cfx_script_location *place);

/* Whatever was changed so far stays: cfx_evaluator_finish asks for what is assigned from now on. To
 * be called between a run that makes a model and the call that is captured. */
CFX_API void cfx_evaluator_accept(cfx_evaluator *ev);
/* After the last call: what was assigned to modules is kept, or an error says why it cannot be. */
CFX_API cfx_status cfx_evaluator_finish(cfx_evaluator *ev, cfx_error *err);

/* Puts the graph in order, which has its output by then: what branches give and nobody reads goes,
 * and all nodes but inputs are named by what they call, counted anew, in regions, too. If it fails,
 * for want of memory, the graph can only be released. */
CFX_API cfx_status cfx_script_tidy_graph(cfx_graph *g, cfx_error *err);

CFX_API cfx_script_function *cfx_script_function_retain(cfx_script_function *f);  /* f */
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

/* The i-th parameter in the order of Python's co_varnames: positional ones, keyword-only ones, then
 * *args and **kwargs. False past the last. */
CFX_API bool cfx_script_function_parameter(const cfx_script_function *f, size_t i,
                                           cfx_script_parameter *out);

#ifdef __cplusplus
}
#endif
#endif
