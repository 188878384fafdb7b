/* scope.h - models as C functions, which compute on tensors or record a graph.
 *
 *     static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
 *     {
 *         x = cfx_relu(s, cfx_call_child(s, self, "fc1", x));
 *         x = cfx_call_child(s, self, "fc2", x);
 *         return cfx_softmax(s, cfx_mul(s, x, 0.5), -1);
 *     }
 *
 * The same function computes if its variables are tensors, and is captured if they stand for nodes
 * of a graph; the scope knows which. There is one function for each operator (operators.h). All
 * have the same form: required arguments by position, optional ones by name,
 *
 *     y = cfx_conv2d(s, x, weight, .bias = bias, .stride = cfx_ints(s, 2, 2), .padding = cfx_v(1));
 *
 * A scope owns the variables created in it. Variables that a module creates during a call are freed
 * when it returns, except its result; all others are freed with the scope. A variable is a small
 * value, passed by copy. Using one after its call or trace has ended, or in another scope, is an
 * error, not undefined behaviour. (The exception is a variable of a freed scope: a new scope at the
 * same address cannot recognise it.)
 *
 * Errors are sticky: after the first one nothing is computed, every call returns an empty variable,
 * and one check at the end is enough (cfx_scope_ok). The message begins with the user's file and
 * line: most names here are macros that pass their location.
 *
 * Only one thread at a time may use a scope.
 */
#ifndef CFX_SCOPE_H
#define CFX_SCOPE_H

/* Macros may be called without options, f(s, x) for f(s, x, ...), which -Wpedantic rejects. */
#pragma GCC system_header

#include <cfx/options.h>
#include <cfx/runtime.h>

#ifdef __cplusplus
#include <initializer_list>
extern "C" {
#endif

typedef struct cfx_scope cfx_scope;

/* ---- scopes -------------------------------------------------------------------------------- */

typedef struct cfx_scope_options {
    const cfx_allocator *allocator;  /* must outlive the scope and the modules created in it */
    cfx_runtime *runtime;            /* borrowed; NULL: the scope creates one */
    uint64_t seed;                   /* for that runtime */
    unsigned threads;                /* for that runtime; 0: as many as it may use */
    const struct cfx_library *library;  /* for that runtime: custom operators; or NULL */
    cfx_sink print;                  /* for that runtime: where programs print to */
} cfx_scope_options;

/* A scope that computes. `options` may be NULL. The caller frees it; NULL with *err set. */
CFX_API cfx_scope *cfx_scope_new(const cfx_scope_options *options, cfx_error *err);
/* Frees its variables and releases the modules created in it. NULL is allowed. */
CFX_API void cfx_scope_free(cfx_scope *s);

/* True until something fails. */
CFX_API bool cfx_scope_ok(const cfx_scope *s);
/* The first error; its status is CFX_OK if there is none. */
CFX_API const cfx_error *cfx_scope_error(const cfx_scope *s);
/* An error to pass to functions that take a `cfx_error *`, so that a program has one place to
 * check: cfx_graph_text(g, out, cfx_scope_err(s)). The first error is kept. Valid until the next
 * call with this scope. */
CFX_API cfx_error *cfx_scope_err(cfx_scope *s);
/* Clears the error; the scope can be used again. */
CFX_API void cfx_scope_clear_error(cfx_scope *s);

/* True if calls are recorded in a graph; false if they are computed. */
CFX_API bool cfx_scope_is_tracing(const cfx_scope *s);
CFX_API cfx_runtime *cfx_scope_runtime(cfx_scope *s);  /* borrowed */
CFX_API const cfx_allocator *cfx_scope_allocator(const cfx_scope *s);

/* The location of a call in the source, which the macros pass. */
typedef struct cfx_at {
    cfx_scope *scope;
    const char *file;
    uint32_t line;
} cfx_at;
static inline cfx_at cfx_at_make(cfx_scope *s, const char *file, uint32_t line)
{
    cfx_at at;
    at.scope = s;
    at.file = file;
    at.line = line;
    return at;
}
#define CFX_HERE(s) cfx_at_make(s, __FILE__, __LINE__)

/* Makes the scope fail with "file:line: " and the message, unless it has failed already. */
CFX_API cfx_status cfx_scope_fail_at(cfx_at at, cfx_status status, const char *format, ...)
    CFX_PRINTF(3, 4);
#define cfx_scope_fail(s, status, ...) cfx_scope_fail_at(CFX_HERE(s), status, __VA_ARGS__)

/* ---- variables ----------------------------------------------------------------------------- */

typedef enum cfx_var_kind {
    CFX_VAR_EMPTY,  /* not given: an option takes its default. Also the result of a failed call */
    CFX_VAR_NONE,
    CFX_VAR_BOOL,
    CFX_VAR_INT,
    CFX_VAR_FLOAT,
    CFX_VAR_DTYPE,
    CFX_VAR_STR,    /* borrowed from the caller */
    CFX_VAR_VALUE,  /* owned by a scope: a tensor, a number, a container, or a node */
    CFX_VAR_ELLIPSIS,
    CFX_VAR_LAYOUT,
    CFX_VAR_MEMORY_FORMAT,
    CFX_VAR_DEVICE  /* text, like STR */
} cfx_var_kind;

/* Treat it as opaque. All zero is empty. */
typedef struct cfx_var {
    uint32_t kind;
    uint32_t count;  /* of a VALUE: detects one that is no longer alive */
    union {
        bool b;
        int64_t i;
        double f;
        const char *text;
        struct {
            uint32_t slot, scope;
        } value;
    } as;
} cfx_var;

static inline cfx_var cfx_var_make(cfx_var_kind kind, int64_t i)
{
    cfx_var v;
    v.kind = (uint32_t)kind;
    v.count = 0;
    v.as.i = i;
    return v;
}
static inline cfx_var cfx_var_empty(void) { return cfx_var_make(CFX_VAR_EMPTY, 0); }
static inline cfx_var cfx_var_none(void) { return cfx_var_make(CFX_VAR_NONE, 0); }
static inline cfx_var cfx_var_int(int64_t i) { return cfx_var_make(CFX_VAR_INT, i); }
static inline cfx_var cfx_var_uint(uint64_t i) { return cfx_var_int((int64_t)i); } /* a size_t */
static inline cfx_var cfx_var_dtype(cfx_dtype t) { return cfx_var_make(CFX_VAR_DTYPE, t); }
static inline cfx_var cfx_var_layout(cfx_layout l) { return cfx_var_make(CFX_VAR_LAYOUT, l); }
static inline cfx_var cfx_var_memory_format(cfx_memory_format f)
{
    return cfx_var_make(CFX_VAR_MEMORY_FORMAT, f);
}
/* x[..., 0] is cfx_getitem(s, x, cfx_tuple(s, cfx_var_ellipsis(), cfx_v(0))). */
static inline cfx_var cfx_var_ellipsis(void) { return cfx_var_make(CFX_VAR_ELLIPSIS, 0); }
static inline cfx_var cfx_var_bool(bool b)
{
    cfx_var v = cfx_var_make(CFX_VAR_BOOL, 0);
    v.as.b = b;
    return v;
}
static inline cfx_var cfx_var_float(double f)
{
    cfx_var v = cfx_var_make(CFX_VAR_FLOAT, 0);
    v.as.f = f;
    return v;
}
/* The text is borrowed, and must stay valid while the variable is used. */
static inline cfx_var cfx_var_str(const char *text)
{
    cfx_var v = cfx_var_make(CFX_VAR_STR, 0);
    v.as.text = text;
    return v;
}
static inline cfx_var cfx_var_device(const char *name)  /* "cpu"; borrowed too */
{
    cfx_var v = cfx_var_make(CFX_VAR_DEVICE, 0);
    v.as.text = name;
    return v;
}
static inline cfx_var cfx_var_same(cfx_var v) { return v; }

typedef struct cfx_vars {
    const cfx_var *items;
    size_t n;
} cfx_vars;
static inline cfx_vars cfx_vars_make(const cfx_var *items, size_t n)
{
    cfx_vars all;
    all.items = items;
    all.n = n;
    return all;
}

/* cfx_v(2), cfx_v(0.5), cfx_v("mean"), cfx_v(x): makes a variable from a number, a string or a
 * variable. In C `true` is the int 1; parameters of type bool accept it. */
#ifndef __cplusplus
#define cfx_v(x)                                                                                   \
    _Generic((x), cfx_var: cfx_var_same, bool: cfx_var_bool, char *: cfx_var_str,                  \
             const char *: cfx_var_str, float: cfx_var_float, double: cfx_var_float,               \
             unsigned long: cfx_var_uint, unsigned long long: cfx_var_uint, default: cfx_var_int)(x)
#define cfx_ints(s, ...)                                                                           \
    cfx_ints_at(CFX_HERE(s), (const int64_t[]){__VA_ARGS__},                                       \
                sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
/* Variables as one argument, up to 256; numbers and texts among the first 32 become variables. The
 * last item, which does not count, is there so that the array is never empty. */
#define CFX_VARS(...)                                                                              \
    cfx_vars_make((const cfx_var[]){__VA_OPT__(CFX_EACH_VAR(__VA_ARGS__),) {0}},                   \
                  0 __VA_OPT__(+ CFX_COUNT_VARS(__VA_ARGS__)))
#endif

/* ---- lists --------------------------------------------------------------------------------- */

/* A list, tuple, dict or slice of variables. Use the macros below. */
CFX_API cfx_var cfx_var_seq_at(cfx_at at, cfx_datum_kind kind, cfx_vars items);
/* cfx_list(s, x, y) is what cat and stack take; cfx_tuple(s, x, y) is what a function with several
 * results returns. cfx_getitem(s, v, i) reads one item. */
#define cfx_list(s, ...) cfx_var_seq_at(CFX_HERE(s), CFX_DATUM_LIST, CFX_VARS(__VA_ARGS__))
#define cfx_tuple(s, ...) cfx_var_seq_at(CFX_HERE(s), CFX_DATUM_TUPLE, CFX_VARS(__VA_ARGS__))
/* cfx_dict(s, cfx_v("a"), x, cfx_v("b"), y): alternating keys and values. cfx_slice_of(s, 0, 5,
 * cfx_var_none()) is the slice 0:5; any part may be None. */
#define cfx_dict(s, ...) cfx_var_seq_at(CFX_HERE(s), CFX_DATUM_DICT, CFX_VARS(__VA_ARGS__))
#define cfx_slice_of(s, start, stop, step)                                                         \
    cfx_var_seq_at(CFX_HERE(s), CFX_DATUM_SLICE, CFX_VARS(cfx_v(start), cfx_v(stop), cfx_v(step)))

/* cfx_ints(s, 2, 3) is a tuple of integers, for sizes, strides or dimensions. cfx_var_ints(s,
 * sizes, n) copies them from an array. */
CFX_API cfx_var cfx_ints_at(cfx_at at, const int64_t *ints, size_t n);
#define cfx_var_ints(s, ints, n) cfx_ints_at(CFX_HERE(s), ints, n)

/* ---- operators ----------------------------------------------------------------------------- */

/* Calls an operator: computes it, or appends a node. `args` are in the order of the row's
 * parameters; empty ones take their defaults. The functions of operators.h call this. */
CFX_API cfx_var cfx_apply_at(cfx_at at, cfx_operator op, const cfx_var *args, size_t n);

/* Calls a custom operator of the library of the scope's runtime (library.h) by name:
 * cfx_apply_named(s, "mylib.swish", x, cfx_v(2.0)). A captured graph calls it by that name, and
 * needs that library to run. */
CFX_API cfx_var cfx_apply_named_at(cfx_at at, const char *name, cfx_vars args);
#define cfx_apply_named(s, name, ...)                                                              \
    cfx_apply_named_at(CFX_HERE(s), name, CFX_VARS(__VA_ARGS__))

/* ---- in and out ---------------------------------------------------------------------------- */

/* Makes a variable from a tensor and retains the tensor. While tracing it becomes a constant of the
 * captured module. */
CFX_API cfx_var cfx_var_from_tensor_at(cfx_at at, cfx_tensor *t);
#define cfx_var_from_tensor(s, t) cfx_var_from_tensor_at(CFX_HERE(s), t)
/* The same for any datum that an operator can return. While tracing only numbers are allowed. */
CFX_API cfx_var cfx_var_from_datum_at(cfx_at at, cfx_datum d);
#define cfx_var_from_datum(s, d) cfx_var_from_datum_at(CFX_HERE(s), d)

/* The tensor of a variable: borrowed while the variable lives. If the variable is not a tensor,
 * which is always the case while tracing, returns NULL and the scope fails. */
CFX_API cfx_tensor *cfx_var_tensor_at(cfx_at at, cfx_var v);
#define cfx_var_tensor(s, v) cfx_var_tensor_at(CFX_HERE(s), v)
/* The value of a variable, as a new reference. While tracing returns INVALID and the scope
 * fails. */
CFX_API cfx_datum cfx_var_datum_at(cfx_at at, cfx_var v);
#define cfx_var_datum(s, v) cfx_var_datum_at(CFX_HERE(s), v)

/* Whether a variable is None, such as an optional input that was not passed. While tracing this is
 * false unless the trace was told otherwise (cfx_trace_options: concrete_args, shapes). */
CFX_API bool cfx_var_is_none(cfx_scope *s, cfx_var v);

/* The value of a number or of a tensor with one element. While tracing returns 0 and the scope
 * fails: a program that reads its data cannot be captured; see cfx_if in capture.h. */
CFX_API double cfx_var_number_at(cfx_at at, cfx_var v);
#define cfx_var_number(s, v) cfx_var_number_at(CFX_HERE(s), v)

/* Shapes and types. While tracing they are known if the trace was given the shapes of the inputs. A
 * symbolic size is not a number: use the operator `size`, whose result is a variable. Negative
 * dimensions count from the end. If the answer is not known, the scope fails. */
CFX_API int64_t cfx_var_size_at(cfx_at at, cfx_var v, int64_t dim);
CFX_API size_t cfx_var_ndim_at(cfx_at at, cfx_var v);
CFX_API cfx_dtype cfx_var_dtype_of_at(cfx_at at, cfx_var v);
#define cfx_var_size(s, v, dim) cfx_var_size_at(CFX_HERE(s), v, dim)
#define cfx_var_ndim(s, v) cfx_var_ndim_at(CFX_HERE(s), v)
#define cfx_var_dtype_of(s, v) cfx_var_dtype_of_at(CFX_HERE(s), v)

/* Writes what Python would print: a tensor's elements, or a node's name. */
CFX_API cfx_status cfx_var_print(cfx_scope *s, cfx_var v, cfx_sink out);

/* ---- memory -------------------------------------------------------------------------------- */

/* For long eager loops: reset frees the variables created since the mark, except `keep` (may be
 * empty), and returns `keep` as a variable that stays valid. A module call does this
 * automatically. */
CFX_API size_t cfx_scope_mark(const cfx_scope *s);
CFX_API cfx_var cfx_scope_reset(cfx_scope *s, size_t mark, cfx_var keep);

#ifdef __cplusplus
}
static inline cfx_var cfx_v(cfx_var v) { return v; }
static inline cfx_var cfx_v(bool b) { return cfx_var_bool(b); }
static inline cfx_var cfx_v(int i) { return cfx_var_int(i); }
static inline cfx_var cfx_v(long i) { return cfx_var_int(i); }
static inline cfx_var cfx_v(long long i) { return cfx_var_int(i); }
static inline cfx_var cfx_v(unsigned i) { return cfx_var_int((int64_t)i); }
static inline cfx_var cfx_v(unsigned long i) { return cfx_var_uint(i); }
static inline cfx_var cfx_v(unsigned long long i) { return cfx_var_uint(i); }
static inline cfx_var cfx_v(float f) { return cfx_var_float(f); }
static inline cfx_var cfx_v(double f) { return cfx_var_float(f); }
static inline cfx_var cfx_v(const char *text) { return cfx_var_str(text); }
static inline cfx_var cfx_ints_of(cfx_at at, std::initializer_list<int64_t> l)
{
    return cfx_ints_at(at, l.begin(), l.size());
}
#define cfx_ints(s, ...) cfx_ints_of(CFX_HERE(s), {__VA_ARGS__})
static inline cfx_vars cfx_vars_of(std::initializer_list<cfx_var> l)
{
    return cfx_vars_make(l.begin(), l.size());
}
#define CFX_VARS(...) cfx_vars_of({__VA_ARGS__})
#endif
#endif
