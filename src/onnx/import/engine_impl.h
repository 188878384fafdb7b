/* engine_impl.h - what the files of the import engine share; rules need import_impl.h alone.
 *
 *     import.c             the doors: a file becomes a package
 *     import_check.c       what is looked at before anything is made: opsets, operators, types
 *     import_table.c       which rule an operator has
 *     import_graph.c       the walk: names, nodes, functions
 *     import_declared.c    types that the file declares
 *     import_call.c        one node: its rule traced, or computed at once
 *     import_sizes.c       nodes that compute with lists of sizes
 *     import_weights.c     tensors that are known become weights
 *     import_values.c      what rules ask of inputs, and say of outputs
 *     import_attributes.c  attributes
 *     import_spelled.c     the rule of operators that ops.def spells
 *     import_control.c     If, Loop, Scan, SequenceMap
 *     import_signature.c   signature.ir
 *     import_defaults.c    inputs that an initializer gives a value
 */
#ifndef CFXI_IMPORT_ENGINE_IMPL_H
#define CFXI_IMPORT_ENGINE_IMPL_H

#include "import_impl.h"

#include "capture/capture_impl.h"

/* What a name of the file stands for. */
typedef enum cfxi_imported_kind {
    CFXI_IMPORTED_NONE,    /* an output that nobody has set, or an optional without a value */
    CFXI_IMPORTED_VAR,     /* a variable of the trace */
    CFXI_IMPORTED_KNOWN,   /* a tensor with its elements */
    CFXI_IMPORTED_ITEMS,   /* a list of sizes */
    CFXI_IMPORTED_FAILED   /* a node that cannot be read should have given it */
} cfxi_imported_kind;

typedef struct cfxi_imported {
    cfxi_imported_kind kind;
    uint32_t hash;
    cfxi_text name;
    cfx_var var;           /* of a VAR; of others the variable that was made of them last, */
    cfx_graph *graph;      /* for this graph; NULL: none */
    cfx_tensor *known;     /* retained by the import; NULL until an initializer is asked for */
    const cfxi_onnx_tensor *tensor;  /* of an initializer */
    const cfxi_onnx_sparse *sparse;
    cfxi_items items;
    cfx_dtype items_dtype; /* as a tensor */
    int64_t type;          /* of ONNX, if cfx holds elements in a wider type; else 0 */
    bool fixed;            /* an initializer that is a buffer: nobody trains it */
} cfxi_imported;

/* Names of a graph or function. */
typedef struct cfxi_import_frame {
    struct cfxi_import_frame *outer;   /* whose names can be used, too; or NULL */
    const struct cfxi_import_call *call;  /* of the function that this is in; or NULL */
    const cfxi_onnx_function *function;
    const cfxi_onnx_opset *opsets;
    size_t num_opsets;
    const cfxi_onnx_node *nodes;       /* to tell a cycle from a name that nobody gives */
    size_t num_nodes;
    const cfxi_onnx_graph *graph;      /* that declares types of values; or NULL */
    cfxi_hash_set declared;            /* of its cfxi_onnx_value, once one was asked for */
    cfxi_hash_set names;               /* of cfxi_imported */
} cfxi_import_frame;

/* What an operator of the default domain is read by. */
typedef struct cfxi_import_row {
    const char *op;  /* "": ops.def spells it, and no opset changed it */
    int64_t since;
    cfxi_import_rule *rule;
    uint32_t moves;  /* bit i: the elements of input i are among those of the outputs, unchanged;
                        the other inputs say which */
} cfxi_import_row;

typedef struct cfxi_import {
    const cfx_allocator *allocator;
    const cfx_onnx_read_options *options;
    const char *file;            /* for locations; NULL: there is none */
    cfxi_arena arena;            /* everything below, and the model */
    cfxi_onnx_model *model;
    cfxi_onnx_source source;
    cfxi_hash_key key;           /* of names */
    cfxi_hash_set rows;          /* of operators that have been looked for */
    cfxi_hash_set functions;     /* of cfxi_onnx_function: see cfxi_import_list_functions */
    cfxi_hash_set defaults;      /* of cfxi_onnx_tensor: initializers that are inputs, too */
    cfxi_vec tensors;            /* of cfx_tensor *: retained until the end */
    cfxi_pointers by_data;       /* elements -> tensor: tied weights are one */
    cfx_scope *trace;            /* while the graph is walked */
    cfx_scope *eager;            /* computes; NULL until it is needed */
    cfx_allocator eager_memory;  /* that it may use: a part of what there is */
    size_t eager_bytes;
    cfx_module *root;
    size_t findings;             /* that were reported */
    cfx_error first;             /* of them */
    uint32_t nodes;              /* that were walked, for locations */
    int depth;                   /* of functions and graphs in one another */
    size_t num_weights;          /* without a name of their own */
} cfxi_import;

enum {
    CFXI_IMPORT_DEPTH = 100,              /* of functions and graphs */
    CFXI_IMPORT_SMALL = 1 << 20,          /* bytes of tensors that are computed at once */
    CFXI_IMPORT_EAGER_MEMORY = 64 << 20   /* and what that may take meanwhile */
};

/* ---- names (import_graph.c) ---------------------------------------------------------------- */

/* What a name stands for; NULL if nothing of this name is there yet. */
cfxi_imported *cfxi_import_find(const cfxi_import *m, const cfxi_import_frame *f, cfxi_text name);
/* A new name, of kind NONE: the frame's. NULL with *err set if it is taken or memory is out. */
cfxi_imported *cfxi_import_define(cfxi_import *m, cfxi_import_frame *f, cfxi_text name,
                                  cfx_error *err);
/* Gives the frame the initializers of a graph. */
cfx_status cfxi_import_initializers(cfxi_import *m, cfxi_import_frame *f, const cfxi_onnx_graph *g,
                                    cfx_error *err);
/* Imports nodes one after the other; false, and the scope of the trace fails. */
bool cfxi_import_nodes(cfxi_import *m, cfxi_import_frame *f);
/* Fills one for each output of a graph; false, and the scope fails, if a name stands for
 * nothing. */
bool cfxi_import_outputs(cfxi_import *m, const cfxi_import_frame *f, const cfxi_onnx_graph *g,
                         const cfxi_imported **out);
void cfxi_import_frame_free(cfxi_import *m, cfxi_import_frame *f);
/* A node that calls a function of the model. */
void cfxi_import_function(cfxi_import_call *c, const cfxi_onnx_function *function);
/* Lists the functions of the model, before any is asked for; false if memory is out. */
bool cfxi_import_list_functions(cfxi_import *m);
/* The function of the model that a node calls; NULL if it calls none. */
const cfxi_onnx_function *cfxi_import_function_of(const cfxi_import *m, const cfxi_onnx_node *n);
/* The opset of a domain in a frame; 0 if it is not listed. */
int64_t cfxi_import_opset(const cfxi_import_frame *f, cfxi_text domain);
bool cfxi_import_is_default_domain(cfxi_text domain);

/* What the file says of output i of a node, of which nothing else is known: its element type and
 * its sizes. (import_declared.c) */
void cfxi_import_declare(cfxi_import_call *c, size_t i);
/* Whether input i is a list of tensors; the scope fails if that is unknown. (import_declared.c) */
bool cfxi_import_is_sequence(cfxi_import_call *c, size_t i);

/* ---- one node (import_call.c) -------------------------------------------------------------- */

/* Imports a node whose inputs are there: sets its outputs. */
void cfxi_import_node(cfxi_import_call *c);
/* Runs the rule now: all inputs are known. False if that does not work out, and nothing is set. */
bool cfxi_import_compute(cfxi_import_call *c, const cfxi_import_row *row);
/* Where a node stands in the user's program; `what` is filled, and borrowed by the result. */
cfxi_place cfxi_import_place(cfxi_import *m, const cfxi_onnx_node *n, char what[200]);

/* ---- sizes (import_sizes.c) ---------------------------------------------------------------- */

/* Imports a node with lists of sizes among its inputs item by item. False if it must be done with
 * tensors. */
bool cfxi_import_by_items(cfxi_import_call *c, const cfxi_import_row *row);

/* ---- rules (import_table.c) ---------------------------------------------------------------- */

/* The row for an operator of the default domain: a rule, or ops.def's spelling. NULL if there is
 * none. */
const cfxi_import_row *cfxi_import_row_of(cfxi_import *m, cfxi_text op, int64_t opset,
                                          cfx_error *err);
/* The oldest opset in which cfx reads an operator; 0 if it does not. */
int64_t cfxi_import_oldest(cfxi_text op);
/* The operator that ops.def spells, and the list of its parameters there (may be NULL). */
cfx_operator cfxi_import_spelling(cfxi_text op, const char **list);

/* ---- what is looked at first (import_check.c) ---------------------------------------------- */

/* Counts and reports everything that cannot be read: CFX_E_UNSUPPORTED if there is any. */
cfx_status cfxi_import_check(cfxi_import *m, cfx_error *err);
/* Reports one thing. */
void cfxi_import_report(cfxi_import *m, const cfxi_onnx_node *n, const char *why);
/* The error after findings were reported. */
cfx_status cfxi_import_refuse(cfxi_import *m, cfx_error *err);

/* ---- weights (import_weights.c) ------------------------------------------------------------ */

/* The elements of a KNOWN: borrowed; NULL with *err set. */
cfx_tensor *cfxi_import_elements(cfxi_import *m, cfxi_imported *v, cfx_error *err);
/* Keeps a reference until the end of the import. False if memory is out: it is released. */
bool cfxi_import_keep(cfxi_import *m, cfx_tensor *t);
/* A variable of the trace for a KNOWN: a weight of the module. */
cfx_var cfxi_import_weight(cfxi_import *m, cfxi_imported *v);
/* A name of the file as an identifier: in the arena. NULL if memory is out. */
const char *cfxi_import_identifier(cfxi_import *m, cfxi_text name);

/* ---- values (import_values.c) -------------------------------------------------------------- */

/* A value as a variable of the trace. */
cfx_var cfxi_import_var(cfxi_import *m, cfxi_imported *v);
/* Whether there is a value: an optional may have none. */
static inline bool cfxi_import_is_given(const cfxi_imported *v)
{
    return v && v->kind != CFXI_IMPORTED_NONE;
}

/* The variable as one of that type, if nothing else is known of it. (import_declared.c) */
cfx_var cfxi_import_typed(cfxi_import *m, cfx_var v, const cfxi_onnx_type *type);

/* ---- inputs with defaults (import_defaults.c) ---------------------------------------------- */

/* Finds them; false if memory is out. */
bool cfxi_import_list_defaults(cfxi_import *m);
/* What the input of that name is if nobody gives it; NULL: it must be given, or it is no input. */
const cfxi_onnx_tensor *cfxi_import_default_of(const cfxi_import *m, cfxi_text name);
/* The input, or that tensor if the input is None. */
cfx_var cfxi_import_or_default(cfxi_import *m, cfx_var given, const cfxi_onnx_value *input,
                               const cfxi_onnx_tensor *t);

/* ---- signature (import_signature.c) -------------------------------------------------------- */

/* The inputs of the graph that are no constants, those with defaults last, as cfx_class and
 * cfx_trace_options want them, and signature.ir. Names of inputs are made identifiers, each once.
 */
typedef struct cfxi_import_inputs {
    const cfxi_onnx_value **values;  /* in the arena */
    const char **names;
    size_t n;
    cfx_buffer list;    /* "x, mask" */
    cfx_buffer shapes;  /* "x=float32[N, 3], mask=?" */
    cfx_buffer signature;
} cfxi_import_inputs;

cfx_status cfxi_import_read_inputs(cfxi_import *m, cfxi_import_inputs *in, cfx_error *err);
void cfxi_import_inputs_free(cfxi_import_inputs *in);

#endif
