/* datum.h - the values of a running graph: tensors, numbers and containers of them.
 *
 * A datum is the run-time counterpart of a value (value.h). It does not belong to a graph, so any
 * number of threads can run one graph. Strings, containers and tensors are reference-counted. A
 * returned datum is owned by the caller (cfx_datum_release); an argument is borrowed. Numbers, None
 * and INVALID own nothing, and releasing them does nothing. A function that fails returns INVALID.
 *
 * Lists and dicts are objects, as in Python: a program that writes to one changes it for everybody
 * who holds it, also for a caller who passed it in. A container never comes to hold itself.
 */
#ifndef CFX_DATUM_H
#define CFX_DATUM_H

#include <cfx/dim.h>
#include <cfx/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cfx_datum_kind {
    CFX_DATUM_INVALID,  /* no value: a parameter with neither argument nor default */
    CFX_DATUM_NONE,
    CFX_DATUM_ELLIPSIS,
    CFX_DATUM_BOOL,
    CFX_DATUM_INT,
    CFX_DATUM_FLOAT,
    CFX_DATUM_COMPLEX,
    CFX_DATUM_DTYPE,          /* as.i */
    CFX_DATUM_LAYOUT,         /* as.i */
    CFX_DATUM_MEMORY_FORMAT,  /* as.i */
    CFX_DATUM_STR,
    CFX_DATUM_DEVICE,         /* text, like STR */
    CFX_DATUM_TENSOR,
    CFX_DATUM_LIST,
    CFX_DATUM_TUPLE,
    CFX_DATUM_DICT,           /* key, value, key, value, ... */
    CFX_DATUM_SLICE,          /* start, stop, step */
    CFX_DATUM_REGION          /* a program (runtime.h), borrowed from the enclosing program */
} cfx_datum_kind;

typedef struct cfx_data cfx_data;          /* a counted array of data */
typedef struct cfx_text cfx_text;          /* a counted string */
struct cfx_program;

typedef struct cfx_datum {
    uint32_t kind;      /* a cfx_datum_kind */
    uint32_t symbolic;  /* 1: an INT that holds a symbolic size (dim.h) */
    union {
        bool b;
        int64_t i;
        double f;
        double c[2];  /* real, imaginary */
        cfx_text *text;
        cfx_tensor *tensor;
        cfx_data *seq;
        const struct cfx_program *region;
    } as;
} cfx_datum;

/* ---- scalars ------------------------------------------------------------------------------- */

static inline cfx_datum cfx_datum_scalar(cfx_datum_kind kind, int64_t i)
{
    cfx_datum d;
    d.kind = (uint32_t)kind;
    d.symbolic = 0;
    d.as.c[1] = 0;
    d.as.i = i;
    return d;
}
static inline cfx_datum cfx_datum_invalid(void) { return cfx_datum_scalar(CFX_DATUM_INVALID, 0); }
static inline cfx_datum cfx_datum_none(void) { return cfx_datum_scalar(CFX_DATUM_NONE, 0); }
static inline cfx_datum cfx_datum_int(int64_t i) { return cfx_datum_scalar(CFX_DATUM_INT, i); }
static inline cfx_datum cfx_datum_bool(bool b)
{
    cfx_datum d = cfx_datum_scalar(CFX_DATUM_BOOL, 0);
    d.as.b = b;
    return d;
}
static inline cfx_datum cfx_datum_float(double f)
{
    cfx_datum d = cfx_datum_scalar(CFX_DATUM_FLOAT, 0);
    d.as.f = f;
    return d;
}
static inline cfx_datum cfx_datum_complex(double re, double im)
{
    cfx_datum d = cfx_datum_scalar(CFX_DATUM_COMPLEX, 0);
    d.as.c[0] = re;
    d.as.c[1] = im;
    return d;
}
static inline cfx_datum cfx_datum_dtype(cfx_dtype dtype)
{
    return cfx_datum_scalar(CFX_DATUM_DTYPE, dtype);
}
/* Takes ownership of the caller's reference; NULL gives an INVALID datum. */
static inline cfx_datum cfx_datum_tensor(cfx_tensor *t)
{
    cfx_datum d = cfx_datum_scalar(t ? CFX_DATUM_TENSOR : CFX_DATUM_INVALID, 0);
    d.as.tensor = t;
    return d;
}

/* ---- strings and containers ---------------------------------------------------------------- */

/* A string or a device (`kind` is STR or DEVICE) of `size` bytes, which are copied. INVALID with
 * CFX_E_NOMEM. */
CFX_API cfx_datum cfx_datum_from_text(cfx_datum_kind kind, const char *text, size_t size,
                                      const cfx_allocator *allocator, cfx_error *err);
/* The text of a STR or DEVICE: borrowed, NUL-terminated; NULL for other kinds. */
CFX_API const char *cfx_datum_text(cfx_datum d, size_t *size);

/* A LIST, TUPLE, DICT (alternating keys and values) or SLICE (three items). The items are retained:
 * the caller still releases its own references. INVALID with *err set: CFX_E_VALUE if an item is
 * INVALID or the number of items does not fit the kind; CFX_E_LIMIT if containers nest deeper than
 * about CFX_MAX_DEPTH; CFX_E_NOMEM. */
CFX_API cfx_datum cfx_datum_seq(cfx_datum_kind kind, const cfx_datum *items, size_t n,
                                const cfx_allocator *allocator, cfx_error *err);
/* The items of a container: borrowed, until it changes. NULL and 0 for other kinds. Items of a LIST
 * or DICT that are not containers may be replaced in place, but only by the sole holder. */
CFX_API cfx_datum *cfx_datum_items(cfx_datum d, size_t *n);

CFX_API cfx_datum cfx_datum_retain(cfx_datum d);  /* returns `d` */
CFX_API void cfx_datum_release(cfx_datum d);

/* "tensor", "int", ...: the names of Python's types. */
CFX_API const char *cfx_datum_kind_name(cfx_datum_kind kind);

/* Writes a datum as messages show it: "float32[2, 3]" for a tensor (`dims`, which may be NULL,
 * names the symbolic sizes); numbers and containers as Python's repr writes them. */
CFX_API cfx_status cfx_datum_print(cfx_datum d, const cfx_dims *dims, cfx_sink out,
                                   cfx_error *err);

/* Reads what cfx_datum_print writes: "float32[N, 3]" is an abstract tensor (float32 if the type is
 * omitted), "N + 1" and "3" are numbers; True, False, None and floats are accepted too. New names
 * become symbols of `dims`. INVALID with CFX_E_SYNTAX. */
CFX_API cfx_datum cfx_datum_parse(cfx_dims *dims, const char *text, size_t size,
                                  const cfx_allocator *allocator, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
