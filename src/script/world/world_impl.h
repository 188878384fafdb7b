/* world_impl.h - cfx's own objects for the evaluator of scripts: what Python's are where there is
 * no Python.
 *
 *     object.c  memory and constructors        dict.c     dicts and sets
 *     object_operators.c  arithmetic, comparison, truth  sequence.c items, slices
 *     methods.c of lists, dicts, sets          deep_copy.c     deep copies
 *     str_methods.c    methods of str                 object_text.c   repr, str, format, %
 *     iterators.c iterators                      class.c    classes and their order
 *     attribute.c attributes, calls            exception.c   what is raised
 *     builtin*.c builtin functions             importable.c    torch and its operators, by name
 *     library_functions.c functions of Python's library  dataclass.c   @dataclass
 *     library_source.c, library.py  what of it is written in Python
 *     abstract_class.c isinstance(x, collections.abc.Sequence)
 *     itertools.c Python's itertools           enum.c     Enum and its kin
 *     layer*.c  nn.Module and its kin          init_functions.c     torch.nn.init
 *     known_tensor.c  tensors: computed now          record.c   graph values: noted in the graph
 *     world_table.c   the table cfx_world            model.c    a model from its source
 *
 * Objects are counted; all of a world's are on one list, by which those that refer to each other in
 * a circle are found when it ends. A function that gives an object gives a new reference, or NULL
 * with *err set; "borrowed" says that it does not. What Python would raise is CFX_E_HOST, and the
 * exception is in `pending`.
 */
#ifndef CFXI_WORLD_IMPL_H
#define CFXI_WORLD_IMPL_H

#include "nn/nn_impl.h"

#include <cfx/embed/script.h>

typedef enum cfxi_type {
#define CFX_TYPE(id, name, builtin) CFXI_TYPE_##id,
#include "type.def"
#undef CFX_TYPE
    CFXI_TYPES
} cfxi_type;

typedef enum cfxi_exception {
#define CFX_EXCEPTION(name, base) CFXI_##name,
#include "exception.def"
#undef CFX_EXCEPTION
    CFXI_EXCEPTIONS
} cfxi_exception;

typedef struct cfxi_world cfxi_world;

/* ---- objects ------------------------------------------------------------------------------- */

/* A builtin function or method; `self` is the object it is bound to, or the first argument. */
typedef cfx_object *cfxi_builtin_fn(cfxi_world *w, cfx_object *self, const cfx_call_args *a,
                                    cfx_error *err);
typedef struct cfxi_builtin {
    const char *name;
    cfxi_builtin_fn *fn;
} cfxi_builtin;

/* The head of one in a table: few need all that they are given. */
#define CFXI_BUILTIN(name)                                                                         \
    static cfx_object *name(cfxi_world *w __attribute__((unused)),                                 \
                            cfx_object *self __attribute__((unused)),                              \
                            const cfx_call_args *a __attribute__((unused)),                        \
                            cfx_error *err __attribute__((unused)))

typedef struct cfxi_entry {
    cfx_object *key;     /* NULL: it was removed */
    cfx_object *value;   /* NULL in a set */
    uint32_t hash;
} cfxi_entry;

typedef enum cfxi_step {   /* what an iterator does */
    CFXI_STEP_INDEX,       /* o[i] of a list or tuple */
    CFXI_STEP_TEXT,
    CFXI_STEP_RANGE,
    CFXI_STEP_KEYS,        /* of a dict, or the items of a set */
    CFXI_STEP_BACK,        /* o[i] from the last to the first */
    CFXI_STEP_ENUMERATE,
    CFXI_STEP_ZIP,
    CFXI_STEP_OWN          /* __next__ of a user-defined class */
} cfxi_step;

struct cfx_object {
    cfxi_world *world;
    cfx_object *prev, *next;  /* all objects of the world, in a ring */
    uint32_t refs;
    uint8_t type;             /* a cfxi_type */
    bool flag;                /* TENSOR: a parameter; BUILTIN: an operator; MODULE: __init__ ran */
    bool mark;                /* BUILTIN: a method, which takes its object first */
    bool outside;             /* it was there before the capture began */
    bool changed;             /* MODULE: an attribute was assigned in the capture */
    uint32_t version;         /* DICT: counts changes; LIST: of the dict that it shows */
    cfx_object *cls;          /* the class, if it is not a builtin one; of a class: only
                                 EnumType, whose methods are what one does with an Enum */
    cfx_object *attrs;        /* a dict of what was set; or NULL */
    union {
        bool b;
        int64_t i;            /* INT, DTYPE, LAYOUT, MEMORY_FORMAT */
        double f;
        double c[2];
        struct {              /* STR, BYTES, DEVICE; NAMESPACE: its name */
            char *data;       /* terminated */
            size_t size;
        } text;
        struct {              /* TUPLE, LIST; SLICE: three */
            cfx_object **items;
            size_t n, capacity;
            cfx_object *of;   /* LIST: the dict that it is a view of; or NULL */
            char part;        /* of that: 'k'eys, 'v'alues, 'i'tems */
        } seq;
        struct {              /* DICT, SET, FROZENSET */
            cfxi_entry *entries;
            cfxi_hash_set *index;  /* of the entries that have a key, by number; or NULL */
            size_t used, capacity, n;
        } dict;
        struct {
            int64_t start, step, n;
        } range;
        cfx_script_function *function;
        struct {              /* BUILTIN */
            cfxi_builtin_fn *fn;
            char *name;       /* qualified: "torch.relu", "builtins.len" */
            cfx_operator op;
            cfx_object *home; /* of a method: the class whose objects it takes; or NULL */
        } builtin;
        struct {              /* METHOD, ATTRIBUTE, PROPERTY, STATIC_METHOD, ..., SUPER, PARTIAL */
            cfx_object *a, *b, *c;
        } parts;
        struct {
            char *name;
            cfx_object *mro;  /* a tuple that begins with the class; not counted there */
            cfx_object *bases;
            cfx_nn nn;        /* of torch.nn, or what it derives from there */
            uint8_t layout;   /* cfxi_type of its instances */
            bool own;         /* user-defined */
            int16_t exception;    /* the builtin one that it is or derives from; -1: none */
            cfxi_builtin_fn *make;  /* what a call of a builtin one does */
        } cls;
        cfx_module *module;
        cfx_tensor *tensor;
        cfx_node *node;
        struct {
            cfx_object *a, *b;
            int64_t i;
            uint8_t step;
        } iterator;
    } as;
};

struct cfxi_world {
    cfx_world table;
    const cfx_allocator *allocator;
    cfx_scope *scope;         /* computes, and makes the modules of torch.nn */
    cfx_graph *graph;         /* nodes go to its end */
    cfx_evaluator *evaluator; /* NULL before there is one */
    cfx_sink out;             /* of print; write NULL: nowhere */
    cfx_object ring;          /* all objects */
    cfx_object *trash;        /* those that are being freed, by `next` */
    bool draining, recording;
    bool printing;            /* what is only read may show values of the graph */
    uint32_t depth;           /* of what goes into objects */
    uint32_t work;            /* how often it did */
    size_t bytes, most_bytes;
    cfx_object *pending;      /* the exception that was raised */
    cfx_object *none, *truths[2], *ellipsis, *not_implemented, *empty;
    cfx_object *classes[CFXI_TYPES];          /* made when they are asked for */
    cfx_object *exceptions[CFXI_EXCEPTIONS];
    cfx_object *dtypes[CFX_DTYPE_COUNT];      /* there is one of each: programs ask with `is` */
    cfx_object *spaces;       /* a dict of namespaces by name */
    cfx_object *builtins;     /* a dict of builtins that were asked for */
    cfx_object *root;         /* the module that is captured; or NULL */
    cfx_object *kept;         /* a list of what `callee` has lent */
    cfxi_places places;       /* of what is in it */
    size_t constants;
    const char *file;         /* of what is recorded now, and computed */
    uint32_t line;
    cfxi_vec entered;         /* of uint32_t: scopes of the graph */
    cfxi_vec scripts;         /* of cfx_script *: of the library */
    cfxi_pointers copies;     /* by what they are copies of, while a deep copy is made */
    bool copying;
    cfx_object *last;         /* the last object of the library, which may change in a capture */
};

enum {
    CFXI_DEEPEST = 100,       /* lists in lists: what prints and compares them is recursive */
    CFXI_MOST_WORK = 50000000, /* of that kind, in all */
    CFXI_MOST_ARGS = 64       /* of a builtin */
};

/* ---- memory (object.c) --------------------------------------------------------------------- */

void *cfxi_world_alloc(cfxi_world *w, size_t size, cfx_error *err);  /* NULL with *err set */
void cfxi_world_free(cfxi_world *w, void *p, size_t size);
cfx_status cfxi_world_begin(cfxi_world *w, const cfx_allocator *allocator, cfx_error *err);
void cfxi_world_end(cfxi_world *w);

/* An empty one of that layout, whose counted fields are NULL. */
cfx_object *cfxi_world_object_new(cfxi_world *w, cfxi_type type, cfx_error *err);
static inline cfx_object *cfxi_world_ref(cfx_object *o)  /* NULL is allowed */
{
    if (o)
        o->refs++;
    return o;
}
void cfxi_world_unref(cfx_object *o);  /* NULL is allowed */
/* A list, dict or set gets what `made`, one of its kind, holds; `made` is let go. NULL is a failure
 * of before, which *err tells. */
cfx_status cfxi_world_become(cfx_object *o, cfx_object *made, const cfx_error *err);
/* Lets go of *o and makes it NULL. */
static inline void cfxi_world_clear(cfx_object **o)
{
    cfx_object *old = *o;
    *o = NULL;
    cfxi_world_unref(old);
}

cfx_object *cfxi_world_none(cfxi_world *w);
/* None, for a builtin that only does something; NULL if that failed. */
static inline cfx_object *cfxi_world_done(cfxi_world *w, cfx_status status)
{
    return status == CFX_OK ? cfxi_world_none(w) : NULL;
}
cfx_object *cfxi_world_truth_object(cfxi_world *w, bool b);
cfx_object *cfxi_world_int_object(cfxi_world *w, int64_t i, cfx_error *err);
/* DTYPE, LAYOUT, MEMORY_FORMAT. */
cfx_object *cfxi_world_numbered(cfxi_world *w, cfxi_type type, int64_t i, cfx_error *err);
cfx_object *cfxi_world_float_object(cfxi_world *w, double f, cfx_error *err);
cfx_object *cfxi_world_complex_object(cfxi_world *w, double re, double im, cfx_error *err);
/* STR, BYTES, DEVICE, NAMESPACE. */
cfx_object *cfxi_world_text_object(cfxi_world *w, cfxi_type type, const char *text, size_t size,
                             cfx_error *err);
cfx_object *cfxi_world_str(cfxi_world *w, const char *text, cfx_error *err);  /* terminated */
/* A str of what was written, which is freed; NULL if writing it failed. */
cfx_object *cfxi_world_text_made(cfxi_world *w, cfx_status status, cfx_buffer *text,
                                 cfx_error *err);
/* TUPLE, LIST or SLICE of the items, which are retained. */
cfx_object *cfxi_world_seq_object(cfxi_world *w, cfxi_type type, cfx_object *const *items, size_t n,
                            cfx_error *err);
/* Likewise, but lets go of the items, also if it fails; a NULL among them is a failure of before.
 * */
cfx_object *cfxi_world_seq_take(cfxi_world *w, cfxi_type type, cfx_object **items, size_t n,
                          cfx_error *err);
cfx_status cfxi_world_list_append(cfx_object *list, cfx_object *item,
                                  cfx_error *err); /* retained */
/* METHOD, PROPERTY, ...: parts are retained. */
cfx_object *cfxi_world_parts_object(cfxi_world *w, cfxi_type type, cfx_object *a, cfx_object *b,
                              cfx_object *c, cfx_error *err);
/* An integer as Python's range: `n` numbers. */
cfx_object *cfxi_world_range_object(cfxi_world *w, int64_t start, int64_t stop, int64_t step,
                              cfx_error *err);

/* ---- failing (exception.c) ---------------------------------------------------------------------
 * */

/* Raises; always NULL. */
cfx_object *cfxi_world_raise(cfxi_world *w, cfx_error *err, cfxi_exception kind, const char *format,
                             ...)
    CFX_PRINTF(4, 5);
cfx_status cfxi_world_throw(cfxi_world *w, cfx_error *err, cfxi_exception kind, const char *format,
                            ...) CFX_PRINTF(4, 5);
cfx_status cfxi_world_throw_key(cfxi_world *w, cfx_object *key, cfx_error *err);  /* KeyError */
/* What something of cfx's failed with, as the exception that it is in Python. */
cfx_status cfxi_world_throw_error(cfxi_world *w, const cfx_error *why, cfx_error *err);
/* If the pending exception is one of that kind: it is no longer pending. */
bool cfxi_world_catch(cfxi_world *w, cfxi_exception kind, cfx_error *err);
/* CFX_E_LIMIT's exception, if what goes into objects goes too deep; else one level deeper. */
cfx_status cfxi_world_deeper(cfxi_world *w, cfx_error *err);

/* ---- changes (object_change.c) ------------------------------------------------------------- */

/* What there is now was there before the capture. */
void cfxi_world_freeze(cfxi_world *w);
void cfxi_world_change_entries(cfx_world *table);

/* ---- dicts and sets (dict.c) --------------------------------------------------------------- */

cfx_object *cfxi_world_dict_object(cfxi_world *w, cfxi_type type, cfx_error *err);  /* empty */
/* *value is borrowed, NULL if there is none. */
cfx_status cfxi_world_dict_find(cfx_object *d, cfx_object *key, cfx_object **value, cfx_error *err);
cfx_status cfxi_world_dict_set(cfx_object *d, cfx_object *key, cfx_object *value, cfx_error *err);
/* *removed (may be NULL): a new reference to what it was; NULL if there was none. */
cfx_status cfxi_world_dict_remove(cfx_object *d, cfx_object *key, cfx_object **removed,
                                  cfx_error *err);
/* Of texts, as attributes have them. The first is borrowed, NULL if there is none. */
cfx_object *cfxi_world_dict_get(const cfx_object *d, const char *name);
cfx_status cfxi_world_dict_put(cfx_object *d, const char *name, cfx_object *value, cfx_error *err);
cfx_status cfxi_world_dict_drop(cfx_object *d, const char *name, bool *there, cfx_error *err);
/* Entry by entry, from *at == 0: borrowed; false after the last. */
bool cfxi_world_dict_next(const cfx_object *d, size_t *at, cfx_object **key, cfx_object **value);
void cfxi_world_dict_clear(cfx_object *d);
cfx_status cfxi_world_dict_update(cfx_object *d, cfx_object *from, cfx_error *err);

/* ---- what objects do (object_operators.c) -------------------------------------------------- */

static inline bool cfxi_world_is_whole(const cfx_object *o)
{
    return o->type == CFXI_TYPE_INT || o->type == CFXI_TYPE_BOOL;
}
static inline int64_t cfxi_world_whole(const cfx_object *o)
{
    return o->type == CFXI_TYPE_BOOL ? o->as.b : o->as.i;
}
bool cfxi_world_is_real(const cfx_object *o);  /* BOOL, INT, FLOAT */
double cfxi_world_real(const cfx_object *o);
cfx_object *cfxi_world_unary(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_error *err);
cfx_object *cfxi_world_binary(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                              bool in_place, cfx_error *err);
cfx_object *cfxi_world_compare(cfxi_world *w, cfx_script_sign sign, cfx_object *a, cfx_object *b,
                         cfx_error *err);
/* A function of `operator` by its name ("add"), on objects that are known; *known: there is one. */
cfx_object *cfxi_world_operator(cfxi_world *w, const char *name, const cfx_call_args *a,
                                bool *known, cfx_error *err);
/* What __bool__ or __len__ of its class gives; *found false: it has neither. */
cfx_object *cfxi_world_truth_method(cfxi_world *w, cfx_object *o, bool *found, cfx_error *err);
int cfxi_world_truth_of(cfxi_world *w, cfx_object *o, cfx_error *err);
int cfxi_world_equal(cfxi_world *w, cfx_object *a, cfx_object *b, cfx_error *err);  /* -1 failed */
int cfxi_world_less(cfxi_world *w, cfx_object *a, cfx_object *b, cfx_error *err);
cfx_status cfxi_world_hash(cfxi_world *w, cfx_object *o, uint32_t *hash, cfx_error *err);
/* Same type and equal: either may stand for both. */
bool cfxi_world_same(cfxi_world *w, cfx_object *a, cfx_object *b);
/* An INT or BOOL, or what has __index__; `what` it is for, in messages. */
cfx_status cfxi_world_index_of(cfxi_world *w, cfx_object *o, const char *what, int64_t *i,
                         cfx_error *err);

/* ---- sequences (sequence.c, methods.c, str_methods.c) -------------------------------------- */

cfx_object *cfxi_world_item(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_error *err);
/* `v` NULL: deletes it. */
cfx_status cfxi_world_set_item(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_object *v,
                         cfx_error *err);
/* A view of a dict shows what the dict holds now; other objects are left alone. Whatever looks at a
 * list that may be one asks first. (methods.c) */
cfx_status cfxi_world_refresh(cfx_object *o, cfx_error *err);
/* Fails if a list or dict has become a graph value: what it holds is what it held before. Whatever
 * reads one of which the evaluator does not know asks first. (methods.c) */
cfx_status cfxi_world_check_known(cfx_object *o, cfx_error *err);
/* items[from:to] of a list become those of `with` (may be NULL: none). */
cfx_status cfxi_world_splice(cfxi_world *w, cfx_object *list, size_t from, size_t to,
                             cfx_object *with, cfx_error *err);
cfx_status cfxi_world_length(cfxi_world *w, cfx_object *o, int64_t *n, cfx_error *err);
int cfxi_world_contains(cfxi_world *w, cfx_object *in, cfx_object *o, cfx_error *err);
cfx_object *cfxi_world_concat(cfxi_world *w, cfx_object *a, cfx_object *b, cfx_error *err);
cfx_object *cfxi_world_repeat(cfxi_world *w, cfx_object *o, int64_t times, cfx_error *err);
/* What slice.indices(n) tells. */
cfx_status cfxi_world_slice_ends(cfxi_world *w, cfx_object *slice, int64_t n, int64_t *start,
                                 int64_t *stop, int64_t *step, cfx_error *err);
/* An index into `o`, which has n items, from the end if negative: *i. */
cfx_status cfxi_world_place_of(cfxi_world *w, cfx_object *o, cfx_object *key, int64_t n, int64_t *i,
                               cfx_error *err);
/* Where the part is in text[from:], in bytes; SIZE_MAX if nowhere. */
size_t cfxi_world_text_find(const cfx_object *text, const cfx_object *part, size_t from);
/* i-th character; the number of characters. */
size_t cfxi_world_text_length(const cfx_object *s);
cfx_object *cfxi_world_text_at(cfxi_world *w, cfx_object *s, int64_t i, cfx_error *err);
cfx_object *cfxi_world_text_slice(cfxi_world *w, cfx_object *s, int64_t start, int64_t step,
                                  int64_t n, cfx_error *err);
/* A method of a builtin type: NULL if there is none. */
const cfxi_builtin *cfxi_world_sequence_method(cfxi_type type, const char *name);
const cfxi_builtin *cfxi_world_text_method(cfxi_type type, const char *name);
const cfxi_builtin *cfxi_world_row_find(const cfxi_builtin *rows, const char *name);
/* A stable sort, by `key` if it is not NULL. */
cfx_status cfxi_world_sort(cfxi_world *w, cfx_object *list, cfx_object *key, bool reverse,
                     cfx_error *err);

/* ---- text (object_text.c) ------------------------------------------------------------------ */

cfx_status cfxi_world_repr(cfxi_world *w, cfx_object *o, cfx_buffer *out, cfx_error *err);
cfx_status cfxi_world_show(cfxi_world *w, cfx_object *o, cfx_buffer *out,
                           cfx_error *err); /* str() */
cfx_object *cfxi_world_shown(cfxi_world *w, cfx_object *o, bool repr, cfx_error *err);
/* format(o, how); NULL, or an object that is not a str, counts as "". */
cfx_object *cfxi_world_formatted(cfxi_world *w, cfx_object *o, const cfx_object *how,
                                 cfx_error *err);
cfx_status cfxi_world_format(cfxi_world *w, cfx_object *o, const char *spec, size_t size,
                       cfx_buffer *out, cfx_error *err);
cfx_object *cfxi_world_percent(cfxi_world *w, cfx_object *text, cfx_object *args, cfx_error *err);
cfx_object *cfxi_world_str_format(cfxi_world *w, cfx_object *self, const cfx_call_args *a,
                            cfx_error *err);
cfx_status cfxi_world_put(cfx_buffer *out, const char *text, cfx_error *err);

/* ---- iterators (iterators.c) --------------------------------------------------------------- */

cfx_object *cfxi_world_iterate(cfxi_world *w, cfx_object *o, cfx_error *err);
cfx_object *cfxi_world_next(cfxi_world *w, cfx_object *iterator, cfx_error *err);
cfx_object *cfxi_world_iterator(cfxi_world *w, cfxi_step step, cfx_object *a, cfx_object *b,
                                int64_t i, cfx_error *err);
/* All that it gives: a new LIST or TUPLE, SET, FROZENSET. */
cfx_object *cfxi_world_collect(cfxi_world *w, cfxi_type type, cfx_object *from, cfx_error *err);

/* ---- classes (class.c, attribute.c) -------------------------------------------------------- */

cfx_object *cfxi_world_class_of(cfxi_world *w, const cfx_object *o, cfx_error *err);
cfx_object *cfxi_world_type_class(cfxi_world *w, cfxi_type type, cfx_error *err);
cfx_object *cfxi_world_exception_class(cfxi_world *w, cfxi_exception kind, cfx_error *err);
/* That of a builtin name; CFXI_TYPES, CFXI_EXCEPTIONS if there is none. */
cfxi_type cfxi_world_type_named(const char *name);
cfxi_exception cfxi_world_exception_named(const char *name);
cfx_status cfxi_world_add_method(cfxi_world *w, cfx_object *cls, const char *name,
                                 cfxi_builtin_fn *fn, cfx_error *err);
/* A builtin class: `base` may be NULL. */
cfx_object *cfxi_world_builtin_class(cfxi_world *w, const char *name, cfx_object *base,
                                     cfxi_type layout,
                               cfxi_builtin_fn *make, cfx_error *err);
cfx_object *cfxi_world_make_class(cfxi_world *w, const char *name, cfx_object *const *bases,
                                  size_t n, const char *const *names, cfx_object *const *values,
                                  size_t m, cfx_error *err);
/* Methods that are functions of ours, but for those that the class has already. */
cfx_status cfxi_world_add_methods(cfxi_world *w, cfx_object *cls, const cfxi_builtin *rows,
                                  cfx_error *err);
bool cfxi_world_is_subclass(const cfx_object *cls, const cfx_object *of);
bool cfxi_world_is_named(const cfx_object *cls,
                         const char *name); /* or derives from such a builtin */
/* Whether a class is, or derives from, one of a class or a tuple of them, for that function: 1, 0,
 * -1. */
int cfxi_world_is_one_of(cfxi_world *w, const cfx_object *cls, cfx_object *classes,
                         const char *function, cfx_error *err);
/* Likewise for a class of collections.abc, numbers or typing, which is known by its name. Refuses
 * those that a script cannot decide. */
int cfxi_world_is_abstract(const cfx_object *cls, const cfx_object *abstract, const char *function,
                           cfx_error *err);
/* isinstance: likewise. */
int cfxi_world_is_instance(cfxi_world *w, cfx_object *o, cfx_object *classes, cfx_error *err);
/* The attribute of a class along its order: borrowed; NULL if there is none. Methods of builtin
 * classes are among them once they were asked for: cfxi_world_class_get. */
cfx_object *cfxi_world_class_find(const cfx_object *cls, const char *name);
/* The same, if it is a tuple of texts: programs can assign anything. `cls` may be NULL. */
const cfx_object *cfxi_world_class_texts(const cfx_object *cls, const char *name);
/* The names of the fields, of a class of named tuples; else NULL. */
const cfx_object *cfxi_world_named_fields(const cfx_object *cls);
cfx_status cfxi_world_class_get(cfxi_world *w, cfx_object *cls, const char *name,
                                cfx_object **found, cfx_error *err);
cfx_object *cfxi_world_make(cfxi_world *w, cfx_object *cls, cfx_error *err);
cfx_object *cfxi_world_get(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err);
cfx_status cfxi_world_set(cfxi_world *w, cfx_object *o, const char *name, cfx_object *v,
                          cfx_error *err);
cfx_object *cfxi_world_no_attribute(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err);
/* Calls a method of a user-defined class; NULL without an error, and *found false, if it has
 * none. */
cfx_object *cfxi_world_special(cfxi_world *w, cfx_object *o, const char *name,
                               cfx_object *const *args, size_t n, bool *found, cfx_error *err);
const char *cfxi_world_type_name(const cfx_object *o);
/* Calls anything: through the evaluator. */
cfx_object *cfxi_world_call_object(cfxi_world *w, cfx_object *f, cfx_call_args a, cfx_error *err);
cfx_object *cfxi_world_call_with(cfxi_world *w, cfx_object *f, cfx_object *const *args, size_t n,
                           cfx_error *err);

/* ---- builtins (builtin*.c, importable.c) --------------------------------------------------- */

/* Positional and named arguments in their places: out[i] is borrowed, NULL if it is not given.
 * `names` are those of the parameters, with a '*' before those that are given by name only. */
cfx_status cfxi_world_args(cfxi_world *w, const cfx_call_args *a, const char *function,
                     const char *const *names, size_t least, size_t most, cfx_object **out,
                     cfx_error *err);
cfx_object *cfxi_world_builtin_object(cfxi_world *w, const char *name, cfxi_builtin_fn *fn,
                                cfx_operator op, cfx_error *err);
/* A builtin of that name; NULL with err->status CFX_OK if there is none. */
cfx_object *cfxi_world_builtin_get(cfxi_world *w, const char *name, cfx_error *err);
/* What calling a builtin function or class of that name does; NULL if there is none. */
cfxi_builtin_fn *cfxi_world_builtin_function(const char *name);
/* Its tables, each of the file of its name. */
extern const cfxi_builtin cfxi_world_number_builtins[], cfxi_world_items_builtins[],
    cfxi_world_text_builtins[];
bool cfxi_world_is_word(const char *word, const char *const *words);  /* of a list with NULL last */
/* "torch.nn" and what is in it. */
cfx_object *cfxi_world_namespace(cfxi_world *w, const char *name, cfx_error *err);
cfx_object *cfxi_world_namespace_get(cfxi_world *w, cfx_object *space, const char *name,
                                     cfx_error *err);
/* A name of Python's library or torch that is not an operator. NULL without an error if there is
 * none. */
cfx_object *cfxi_world_library_get(cfxi_world *w, const char *space, const char *name,
                                   const char *full, cfx_error *err);
/* Runs the parts of the library that are written in Python, as far as a program names them. */
cfx_status cfxi_world_load_library(cfxi_world *w, const char *text, size_t size, cfx_error *err);
void cfxi_world_free_library(cfxi_world *w);
/* A function of one of these parts: borrowed; NULL if the part was not run. */
cfx_object *cfxi_world_library_function(const cfxi_world *w, const char *space, const char *name);
/* What is given for the i-th field: borrowed, or NULL. *used counts those that are. */
cfx_object *cfxi_world_given(const cfx_call_args *a, const char *name, size_t i, size_t *used);
const cfxi_builtin *cfxi_world_dataclass_function(const char *name);  /* of dataclasses */
bool cfxi_world_is_frozen(const cfx_object *o);  /* of a @dataclass(frozen=True) */
/* What is in `enum`; NULL without an error: it has none. */
cfx_object *cfxi_world_enum_get(cfxi_world *w, const char *name, cfx_error *err);
/* A class derived from an Enum, `meta` being the class of its base: attributes become members. */
cfx_status cfxi_world_enum_finish(cfxi_world *w, cfx_object *cls, cfx_object *meta, cfx_error *err);
/* A function of itertools that the world carries out, or chain, which has an attribute; NULL
 * without an error for any other. */
cfx_object *cfxi_world_itertools(cfxi_world *w, const char *name, const char *full, cfx_error *err);
extern const cfxi_builtin cfxi_world_named_methods[];  /* of named tuples */

/* ---- modules (layer*.c, init_functions.c) -------------------------------------------------- */

static inline bool cfxi_world_is_container(cfx_nn nn)
{
    return nn >= CFX_NN_Sequential && nn <= CFX_NN_ModuleDict;
}
/* nn.Module, or the class of a row of nn.def. */
cfx_object *cfxi_world_layer_class(cfxi_world *w, cfx_nn nn, cfx_error *err);
cfx_object *cfxi_world_layer_object(cfxi_world *w, cfx_module *m, cfx_error *err);  /* retained */
cfx_object *cfxi_world_layer_get(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err);
cfx_status cfxi_world_layer_set(cfxi_world *w, cfx_object *o, const char *name, cfx_object *v,
                           cfx_error *err);
cfx_object *cfxi_world_layer_item(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_error *err);
/* o[key] = v of a container; NULL: del o[key]. */
cfx_status cfxi_world_layer_set_item(cfxi_world *w, cfx_object *o, cfx_object *key, cfx_object *v,
                                     cfx_error *err);
/* a + b of lists of modules; NULL without an error if `a` is not one. */
cfx_object *cfxi_world_layer_plus(cfxi_world *w, cfx_object *a, cfx_object *b, bool in_place,
                                  cfx_error *err);
cfx_object *cfxi_world_layer_children(cfxi_world *w, cfx_object *o, cfx_error *err);  /* a list */
int64_t cfxi_world_layer_length(const cfx_object *o);  /* of a container; -1 for other modules */
const cfxi_builtin *cfxi_world_layer_method(cfx_nn nn, const char *name);
const cfxi_builtin *cfxi_world_list_method(cfx_nn nn, const char *name);  /* of containers */
cfx_object *cfxi_world_layer_init(cfxi_world *w, cfx_object *self, const cfx_call_args *a,
                                  cfx_error *err);
/* The object gets what the constructor of torch.nn makes. */
cfx_status cfxi_world_layer_adopt(cfxi_world *w, cfx_object *o, cfx_nn nn, const cfx_call_args *a,
                                  cfx_error *err);
/* A member of the module: a child, or of that kind. */
cfx_status cfxi_world_layer_put(cfxi_world *w, cfx_object *o, const char *name, cfx_object *v,
                                cfxi_member_kind kind, cfx_error *err);
/* Refuses to add, replace or remove parts of a module while a call is captured: an item, or what a
 * method of the module registers. */
cfx_status cfxi_world_layer_check(const cfxi_world *w, const cfx_object *o, cfx_error *err);
/* One by its number; those of a dict by their keys, of anything else by numbers from `first` on. */
cfx_status cfxi_world_layer_add_at(cfxi_world *w, cfx_object *o, size_t i, cfx_object *v,
                                   cfx_error *err);
cfx_status cfxi_world_layer_add_all(cfxi_world *w, cfx_object *o, cfx_object *from, size_t first,
                                    cfx_error *err);
/* A list of children ('c'), of pairs of their names and them ('n'), of names ('k'); `once`: without
 * those that stood there before under another name. */
cfx_object *cfxi_world_layer_list(cfxi_world *w, cfx_object *o, char what, bool once,
                                  cfx_error *err);
bool cfxi_world_is_named(const cfx_object *cls,
                         const char *name);               /* or derives from such a builtin */
bool cfxi_world_holds_parameters(const cfx_object *cls);  /* ParameterList, ParameterDict */
/* What makes modules says nothing of places: the evaluator does. */
static inline cfx_at cfxi_world_here(cfxi_world *w) { return cfx_at_make(w->scope, NULL, 0); }
/* What made the scope fail, as an exception; the scope goes on. */
cfx_status cfxi_world_scope_failed(cfxi_world *w, cfx_error *err);
/* A call of a module of torch.nn: a node, or computed. */
cfx_object *cfxi_world_call_module(cfxi_world *w, cfx_object *o, const cfx_call_args *a,
                                   cfx_error *err);
/* Of a user-defined class: with the same attributes, or copies of them. */
cfx_object *cfxi_world_copy_instance(cfxi_world *w, cfx_object *o, bool deep, cfx_error *err);
cfx_object *cfxi_world_deep_copy(cfxi_world *w, cfx_object *o, cfx_error *err);
cfx_object *cfxi_world_parameter_class(cfxi_world *w, const char *name, cfx_error *err);
cfx_object *cfxi_world_parameter(cfxi_world *w, cfx_object *self, const cfx_call_args *a,
                           cfx_error *err);
const cfxi_builtin *cfxi_world_init_function(const char *name);

/* ---- tensors (known_tensor.c) -------------------------------------------------------------- */

cfx_object *cfxi_world_tensor_object(cfxi_world *w, cfx_tensor *t, cfx_error *err);  /* retained */
/* A datum as an object, and back: the latter owned by the caller. */
cfx_object *cfxi_world_from_datum(cfxi_world *w, cfx_datum d, cfx_error *err);
cfx_datum cfxi_world_to_datum(cfxi_world *w, cfx_object *o, cfx_error *err);
/* Computes a call of a function (or of a method, with its object first) now. */
cfx_object *cfxi_world_compute(cfxi_world *w, cfx_opcode op, const char *target,
                               const cfx_call_args *a, cfx_error *err);
cfx_object *cfxi_world_tensor_get(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err);

/* ---- the graph (record.c) ------------------------------------------------------------------ */

/* Whether a graph value is in it, however deep; or a tensor, which becomes one. */
bool cfxi_world_has_value(const cfx_object *o, bool or_tensor);
static inline bool cfxi_world_is_value(const cfx_object *o)  /* of the graph, or of a tensor */
{
    return o->type == CFXI_TYPE_VALUE || o->type == CFXI_TYPE_ATTRIBUTE ||
           o->type == CFXI_TYPE_TENSOR;
}
bool cfxi_world_any_value(const cfx_call_args *a, bool or_tensor);
cfx_object *cfxi_world_value_object(cfxi_world *w, cfx_node *n, cfx_error *err);
/* Floating; INVALID with *err set. */
cfx_value cfxi_world_to_value(cfxi_world *w, cfx_object *o, cfx_error *err);
cfx_object *cfxi_world_record(cfxi_world *w, cfx_opcode op, const char *target,
                              const cfx_call_args *a, cfx_error *err);
/* A function or method of torch, Python or the graph: recorded, or computed. */
cfx_object *cfxi_world_perform(cfxi_world *w, cfx_opcode op, const char *target,
                               const cfx_call_args *a, cfx_error *err);
cfx_object *cfxi_world_perform_on(cfxi_world *w, const char *target, cfx_object *a, cfx_object *b,
                            cfx_error *err);
/* A constant of the graph's: the get_attr of a tensor that is in no module becomes one. */
cfx_object *cfxi_world_tensor_value(cfxi_world *w, cfx_object *o, cfx_error *err);

/* ---- the table (world_table.c) ------------------------------------------------------------- */

void cfxi_world_table(cfxi_world *w);
/* Takes over an object, which lives as long as the world now; NULL is a failure of before. */
cfx_status cfxi_world_lend(cfxi_world *w, cfx_object *o, cfx_error *err);
bool cfxi_world_is_special(const char *full);  /* whether the evaluator carries it out itself */
cfx_status cfxi_world_callee(cfxi_world *w, cfx_object *f, cfx_script_callee *out, cfx_error *err);
cfx_object *cfxi_world_call_direct(cfxi_world *w, cfx_object *f, const cfx_call_args *a,
                                   cfx_error *err);

#endif
