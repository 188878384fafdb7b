/* pycode_impl.h - the state of the Python generator, shared by its files.
 *
 *   pyfunction.c    the driver: body, signature, line map, transformer
 *   pystmt.c    one statement for each node
 *   pyregion.c  if, while and for
 *   pycontext.c with
 *   pyexpr.c    expressions: literals, paths, calls
 *   pyname.c    names: nodes, globals, functions
 *   pyfile.c    a complete file around the function
 *   pymodule.c  its class with a constructor that makes the modules
 *
 * Text is appended to `body`; a failed allocation sets `nomem`, later appends do nothing, and the
 * statement loop checks it once for each node.
 */
#ifndef CFXI_PYCODE_IMPL_H
#define CFXI_PYCODE_IMPL_H

#include "ir/graph_impl.h"

#include <cfx/embed/codegen.h>
#include <cfx/embed/ops.h>

/* How a call of a function is written. */
typedef enum cfxi_py_form {
    CFXI_PY_CALL,    /* f(a, b) */
    CFXI_PY_INFIX,   /* a + b */
    CFXI_PY_PREFIX,  /* -a */
    CFXI_PY_INPLACE, /* a += b */
    CFXI_PY_GETITEM, /* a[b] */
    CFXI_PY_SETITEM, /* a[b] = c */
    CFXI_PY_GETATTR, /* a.b where b is an identifier, else a call */
    CFXI_PY_COND,    /* regions; plain calls where the arguments are not regions */
    CFXI_PY_WHILE,
    CFXI_PY_FOR
} cfxi_py_form;

/* What is known of a function that is called; kept for each callee of the graph. */
typedef struct cfxi_py_callee {
    cfxi_py_form form;
    bool wrapped;     /* its wrap statement is written */
    bool context;     /* it enters or leaves a context, or may (pycontext.c) */
    const char *text; /* the function's expression, or the operator's symbol */
    size_t size;
} cfxi_py_callee;

/* A global, and when it was registered: after how many nodes had their names. */
typedef struct cfxi_py_global {
    cfx_pycode_name entry;
    size_t named;
    size_t qualified_size;
} cfxi_py_global;

/* Python wants parameters in this order. */
typedef enum cfxi_py_order {
    CFXI_PY_PLAIN,    /* without a default */
    CFXI_PY_DEFAULT,
    CFXI_PY_STAR,     /* *args, and all after it but */
    CFXI_PY_STARS     /* **kwargs */
} cfxi_py_order;

typedef struct cfxi_py_param {
    size_t start, size; /* in params_text */
} cfxi_py_param;

/* What outlives the run, behind cfx_pycode_result.memory. */
typedef struct cfxi_py_memory {
    const cfx_allocator *allocator;
    cfxi_arena arena;
    cfx_pycode_name *globals;
    size_t n_globals;
    cfxi_vec lines; /* of uint32_t */
} cfxi_py_memory;

struct cfx_pycode {
    cfx_graph *graph; /* the function's; regions are below it */
    const cfx_pycode_options *options;
    const cfx_allocator *allocator;
    cfxi_py_memory *memory;
    bool names_only; /* host objects go by their qualified names, for a file */
    const struct cfxi_parts *parts; /* what the file's constructor makes; or NULL */
    bool is_method;  /* in a file, where nothing but the module is called `self` */
    bool own_params; /* in a file: the parameters are called as the nodes are */
    const char *root;
    size_t root_size;

    cfx_buffer body;        /* the statements, indented unless there are pieces */
    cfx_buffer scratch;     /* what a callback writes */
    cfx_buffer type_text;   /* a type's expression */
    cfx_buffer params_text; /* the parameters, one after another */
    cfx_buffer returns;     /* "" or " -> T" */
    cfx_buffer wraps;       /* the wrap statements */
    cfxi_vec params;        /* of cfxi_py_param */
    cfxi_py_order order_of_params; /* in a file: what the last of them was */
    cfxi_vec pieces;        /* of size_t: where each piece of the body ends */
    bool use_pieces;        /* a transformer wants them */
    bool nomem;
    bool raw;        /* newlines in callbacks' text stay as they are */
    uint32_t indent; /* of the statement being written, in spaces */
    uint32_t node;   /* number of the top-level node being written, for the line map */
    uint64_t order;  /* its order label: a node with a greater one has no name yet */

    cfx_namespace *names;    /* of globals; of nodes too once `exact` */
    bool exact;              /* node names go through the namespace */
    bool all_named;          /* all nodes of `graph` have gone through it */
    size_t named;            /* nodes that have got their names */
    cfxi_pointers overrides; /* node -> cfxi_name, where it is not the node's own */
    cfxi_pointers objects;   /* host object -> cfxi_py_global index + 1 */
    cfxi_pointers callees;   /* cfxi_callee -> cfxi_py_callee */
    cfxi_pointers wanted;    /* node of a region -> cfxi_name: the variable that it is to be in */
    cfxi_pointers holders;   /* cfxi_name -> node: whose a variable is now, if several share it */
    cfxi_pointers placed;    /* node -> cfxi_py_place, if it has no statement of its own */
    cfxi_pointers wishes;    /* node -> the input of a loop that it is called after */
    cfxi_pointers operands;  /* input of a branch -> node: the value outside that it is */
    cfxi_pointers instead;   /* node -> cfx_value: what is written where the node is mentioned */
    cfxi_pointers growing;   /* list + [...] of a loop -> itself: nobody else has the list */
    cfxi_vec globals;        /* of cfxi_py_global */
    cfxi_hash_set by_name;      /* of cfxi_py_named: globals known by their qualified names only */
    const cfxi_callee *last_callee;
    cfxi_py_callee *last_info;
    unsigned builtins;
    bool returned; /* the branches of the last statement return */
    const struct cfxi_py_way_out *way_out; /* in a loop that `break` ends; or NULL */
    cfxi_vec blocks; /* of const cfx_node *: where the `with` blocks being written end */
};

/* Where a node without a statement of its own is. */
typedef enum cfxi_py_place {
    CFXI_PY_STATEMENT,  /* it has one */
    CFXI_PY_INLINE,     /* written where it is used: in a condition */
    CFXI_PY_SHARED      /* an item of what a branch or loop gives: its variable has it */
} cfxi_py_place;

/* The nodes being written: the function's own or a region's. A node's mark says who uses it last:
 * stamp + that node's index. If the graph's stamp is no longer `next`, a callback has made somebody
 * else use the marks, and they are set anew. */
typedef struct cfxi_py_frame {
    cfx_graph *graph;
    uint32_t stamp;
    uint32_t next;
    uint32_t index; /* of the node being written */
    bool region;    /* placeholders belong to someone else and are not cleared */
    bool returns;   /* what the region gives, the function returns */
} cfxi_py_frame;

/* ---- appending ----------------------------------------------------------------------------- */

void cfxi_emit_py_put_slow(cfx_pycode *gen, const char *text, size_t size);

static inline void cfxi_emit_py_put(cfx_pycode *gen, const char *text, size_t size)
{
    cfx_buffer *b = &gen->body;
    if (b->capacity - b->size <= size) { /* the terminator needs a byte too */
        cfxi_emit_py_put_slow(gen, text, size);
        return;
    }
    memcpy(b->data + b->size, text, size);
    b->size += size;
}

static inline void cfxi_emit_py_char(cfx_pycode *gen, char c)
{
    cfx_buffer *b = &gen->body;
    if (b->capacity - b->size > 1)
        b->data[b->size++] = c;
    else
        cfxi_emit_py_put_slow(gen, &c, 1);
}

#define CFXI_PY_LIT(gen, literal) cfxi_emit_py_put(gen, "" literal, sizeof(literal) - 1)

/* A callback's text: its newlines get the statement's indentation and a place in the line map. */
void cfxi_emit_py_put_text(cfx_pycode *gen, const char *text, size_t size);

/* Replaces what would end a comment: it stays one line. (pyfunction.c) */
void cfxi_emit_py_one_line(cfx_buffer *text);

/* ---- lines and pieces (pyfunction.c) ------------------------------------------------------- */

void cfxi_emit_py_begin_line(cfx_pycode *gen); /* indentation */
void cfxi_emit_py_end_line(cfx_pycode *gen);  /* newline, line map */
void cfxi_emit_py_end_piece(cfx_pycode *gen);  /* where a transformer sees a boundary */

/* The constructor of a file: lines that stand before `forward` in the class, and what they make. */
typedef struct cfxi_py_init {
    const cfx_buffer *text;
    const struct cfxi_parts *parts;
} cfxi_py_init;

/* cfx_codegen_python, for options that are not NULL; for a file whose constructor is `init`. */
cfx_status cfxi_emit_py_generate(cfx_graph *g, const cfx_pycode_options *options, bool names_only,
                                 const cfxi_py_init *init, cfx_pycode_result *result,
                                 cfx_error *err);

/* A complete file; `init` may be NULL. */
cfx_status cfxi_emit_py_file(cfx_graph *g, const char *class_name, const cfxi_py_init *init,
                             cfx_sink sink, cfx_error *err);

/* Whether every torch.nn.Module has an attribute of that name. (pymember.c) */
bool cfxi_emit_py_is_member(const char *name);

/* Finds out who uses each node last. */
cfxi_py_frame cfxi_emit_py_frame_of(cfx_graph *g, bool region);

/* ---- statements (pystmt.c, pyregion.c) ----------------------------------------------------- */

/* What the host says of a node, in lines of its own. Whatever it is, code does not follow from it.
 * (pyfunction.c) */
cfx_status cfxi_emit_py_comment(cfx_pycode *gen, cfx_node *n, cfx_error *err);
cfx_status cfxi_emit_py_statement(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                                  cfx_error *err);
cfx_status cfxi_emit_py_control_flow(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n,
                                     cfxi_py_form form, cfx_error *err);
bool cfxi_emit_py_has_regions(const cfx_node *n);
/* `name : type`, or what the host wants after the name. */
cfx_status cfxi_emit_py_assigned_name(cfx_pycode *gen, cfx_node *n, cfx_error *err);
/* The type of `n` into gen->type_text, "" if it has none. */
cfx_status cfxi_emit_py_type_text(cfx_pycode *gen, cfx_node *n, cfx_error *err);
/* Marks that somebody else has overwritten are set anew. */
void cfxi_emit_py_refresh(cfxi_py_frame *frame);
/* "a = b = " for what `n` uses last; returns how many names. */
size_t cfxi_emit_py_dead_inputs(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *n);

/* Looks ahead in a graph with regions: which nodes conditions take in, and what is called after the
 * state of a loop. */
cfx_status cfxi_emit_py_plan(cfx_pycode *gen, cfxi_py_frame *frame, cfx_error *err);

/* ---- contexts (pycontext.c) ---------------------------------------------------------------- */

/* Whether calls of a function of this name enter or leave a context. */
bool cfxi_emit_py_is_context(const char *name, size_t size);
/* Writes `n`, a call of such a function, as the head or the end of a `with` block. *done is false,
 * and nothing is written, if it is a statement as any other: the calls do not nest. */
cfx_status cfxi_emit_py_context(cfx_pycode *gen, cfxi_py_frame *frame, cfx_node *n, bool *done,
                                cfx_error *err);

/* ---- conditions (pyinline.c) --------------------------------------------------------------- */

static inline cfxi_py_place cfxi_emit_py_placed(const cfx_pycode *gen, const cfx_node *n)
{
    return (cfxi_py_place)(uintptr_t)cfxi_base_pointers_get(&gen->placed, n);
}

cfx_status cfxi_emit_py_place_node(cfx_pycode *gen, const cfx_node *n, cfxi_py_place place,
                                   cfx_error *err);
/* Finds the nodes just before `before` that can stand where the condition `v` is written: those of
 * the test of a loop (`is_test`) however many they are. In that of a branch no `not` comes first:
 * whoever reads it would take it for the other way round. */
cfx_status cfxi_emit_py_take_in(cfx_pycode *gen, cfx_value v, cfx_node *before, bool is_test,
                                cfx_error *err);
/* Whether all of a region is: it is an expression. */
bool cfxi_emit_py_is_expression(const cfx_pycode *gen, const cfx_graph *region);
/* All its nodes have statements again. */
cfx_status cfxi_emit_py_give_back(cfx_pycode *gen, const cfx_graph *region, cfx_error *err);
/* Whether `v` is written with a sign, and needs parentheses within an expression. */
bool cfxi_emit_py_is_compound(cfx_pycode *gen, cfx_value v);
/* The expression of a node that has no statement. */
cfx_status cfxi_emit_py_put_inline(cfx_pycode *gen, cfx_node *n, cfx_error *err);

/* ---- variables (pyvar.c) ------------------------------------------------------------------- */

cfx_node *cfxi_emit_py_holder(const cfx_pycode *gen, const cfxi_name *name);
cfx_status cfxi_emit_py_hold(cfx_pycode *gen, const cfxi_name *name, const cfx_node *n,
                             cfx_error *err);
/* Likewise, unless it is held by a node that is used longer, or outside of the region. */
cfx_status cfxi_emit_py_hold_longest(cfx_pycode *gen, const cfxi_name *name, const cfx_node *n,
                                     cfx_error *err);
/* Whether `def` is used last by the node being written, and its variable is free then. */
bool cfxi_emit_py_may_take(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *def);
/* The variable that `n` is to be in, if nobody needs what is there now; else NULL. */
const cfxi_name *cfxi_emit_py_wanted(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *n);
cfx_status cfxi_emit_py_want(cfx_pycode *gen, const cfx_node *n, const cfxi_name *name,
                             cfx_error *err);
/* A new name for a node: after the loop's state that it becomes, or after itself. */
cfx_status cfxi_emit_py_name_own(cfx_pycode *gen, const cfxi_py_frame *frame, const cfx_node *n,
                                 cfx_error *err);
/* A name for a node of a region: what is wanted, else a new one. */
cfx_status cfxi_emit_py_name_local(cfx_pycode *gen, cfxi_py_frame *frame, const cfx_node *n,
                                   cfx_error *err);
/* Whether two names differ at most in a number at the end: x and x_1. */
bool cfxi_emit_py_same_base(const cfxi_name *a, const char *b, size_t size);
/* Whether `use` takes one of `size` items of `n`, which is *item. */
cfx_status cfxi_emit_py_takes_item(cfx_pycode *gen, const cfx_use *use, size_t size, size_t *item,
                                   bool *takes, cfx_error *err);

/* ---- expressions (pyexpr.c) ---------------------------------------------------------------- */

cfx_status cfxi_emit_py_value(cfx_pycode *gen, cfx_value v, const cfx_node *n, cfx_error *err);
cfx_status cfxi_emit_py_rhs(cfx_pycode *gen, cfx_node *n, const cfxi_py_callee *callee,
                            cfx_error *err);
cfx_status cfxi_emit_py_inplace(cfx_pycode *gen, const cfx_node *n, const cfxi_py_callee *callee,
                                bool copy, cfx_error *err);
/* Whether a call of getattr can be written `a.b`. */
bool cfxi_emit_py_is_attribute(const cfx_pycode *gen, const cfx_node *n);
/* Runs a callback that writes to gen->scratch, empty before. */
cfx_sink cfxi_emit_py_scratch(cfx_pycode *gen);
/* Writes a name, or if `inside` that member of what was written from `start` on: `.name`, or
 * `getattr(..., "from")` if it is a keyword. */
void cfxi_emit_py_put_member(cfx_pycode *gen, size_t start, const char *name, size_t size,
                             bool inside);
/* Whether it can follow a dot in a class: no keyword, nor a name that Python would change there. */
bool cfxi_emit_py_is_plain(const char *text, size_t size);
/* Fails with the node's location and name around the message. */
cfx_status cfxi_emit_py_fail(const cfx_node *n, cfx_status status, cfx_error *err,
                             const char *format, ...) CFX_PRINTF(4, 5);

/* ---- names (pyname.c) ---------------------------------------------------------------------- */

void cfxi_emit_py_put_name(cfx_pycode *gen, const cfx_node *n);
const cfxi_name *cfxi_emit_py_name(cfx_pycode *gen, const cfx_node *n);
/* Gives `n` its name in the function; once for each node, when its statement is written. */
cfx_status cfxi_emit_py_define(cfx_pycode *gen, const cfx_node *n, cfx_error *err);
/* From here on every name goes through the namespace; `all` takes those still to come as well. */
cfx_status cfxi_emit_py_go_exact(cfx_pycode *gen, bool all, cfx_error *err);
/* A new name for a node of a region; `alias` gives it another node's name. */
cfx_status cfxi_emit_py_define_local(cfx_pycode *gen, const cfx_node *n, cfx_error *err);
cfx_status cfxi_emit_py_alias(cfx_pycode *gen, const cfx_node *n, const cfxi_name *name,
                              cfx_error *err);

cfx_status cfxi_emit_py_callee_of(cfx_pycode *gen, cfx_node *n, const cfxi_py_callee **callee,
                                  cfx_error *err);
/* The expression for a function or type, by object or name; allocated in the run's arena. */
cfx_status cfxi_emit_py_ref_text(cfx_pycode *gen, cfx_graph *g, cfx_ref *ref, const cfx_node *n,
                                 cfx_pycode_text *text, cfx_error *err);
cfx_status cfxi_emit_py_wrap(cfx_pycode *gen, cfx_node *n, const cfxi_py_callee *callee,
                             cfx_error *err);

#endif
