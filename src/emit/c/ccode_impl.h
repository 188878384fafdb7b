/* ccode_impl.h - the state of the C generator, shared by its files.
 *
 *   cfile.c   the driver: lowers a copy, writes the file
 *   cfunc.c   functions: the graph, and its regions
 *   csplit.c  a very long graph as several functions
 *   cexpr.c   statements and expressions: calls, literals
 *   cmodel.c  the function that makes the module
 *   cname.c   names that are free in C
 *
 * The copy's nodes are renamed to what they are called in C. A statement is written to `line`, with
 * CFXI_C_GAP where it may be broken; the statements of a function go to `body`, and whole functions
 * to `text`. A failed allocation sets `nomem`, and is looked at once for each function.
 */
#ifndef CFXI_CCODE_IMPL_H
#define CFXI_CCODE_IMPL_H

#include "ops/ops_impl.h"
#include "analysis/analysis_impl.h"
#include "emit/named_members.h"
#include "emit/python/pycode_impl.h"

#include <cfx/nn.h>

#define CFXI_C_GAP '\1'

typedef struct cfxi_ccode {
    cfx_graph *g;                /* the copy */
    const cfx_module_tree *modules;  /* or NULL */
    const cfx_module_tree *given;  /* likewise; it may have but a library */
    const char *class_name;
    const cfx_allocator *allocator;
    cfx_buffer line;
    cfx_buffer body;
    cfx_buffer text;
    cfx_namespace *functions;    /* names of the file */
    cfxi_pointers function_of;     /* region -> its function's name */
    uint32_t location;           /* of the last statement that had one */
    bool nomem;
    bool math;                   /* needs <math.h> */
    bool scope_used;             /* by the function that is being written */
    bool self_used;
    bool in_used;
    size_t refused;              /* what cannot be written */
    cfx_error why;               /* all of it, as far as it fits */
} cfxi_ccode;

/* Where an expression stands: operators take numbers and texts as they are. */
typedef enum cfxi_c_form { CFXI_C_BARE, CFXI_C_VAR } cfxi_c_form;

/* ---- text (cexpr.c) ------------------------------------------------------------------------ */

void cfxi_emit_c_put(cfxi_ccode *c, cfx_buffer *to, const char *text, size_t size);
static inline void cfxi_emit_c_text(cfxi_ccode *c, const char *text)
{
    cfxi_emit_c_put(c, &c->line, text, strlen(text));
}
void cfxi_emit_c_printf(cfxi_ccode *c, const char *format, ...) CFX_PRINTF(2, 3);
void cfxi_emit_c_string(cfxi_ccode *c, const char *text, size_t size);
/* ", ", where the line may be broken. */
static inline void cfxi_emit_c_comma(cfxi_ccode *c)
{
    const char gap[] = {',', CFXI_C_GAP};
    cfxi_emit_c_put(c, &c->line, gap, 2);
}
/* Ends the statement: `line` goes to `body`, indented, in lines of at most 100 columns; with the
 * user's line as a comment if `n` (may be NULL) has another one than the statement before. */
void cfxi_emit_c_end_line(cfxi_ccode *c, const cfx_node *n);

/* Says what cannot be written; `n` may be NULL. */
void cfxi_emit_c_refuse(cfxi_ccode *c, const cfx_node *n, const char *format, ...) CFX_PRINTF(3, 4);

/* ---- expressions (cexpr.c) ----------------------------------------------------------------- */

/* `type` is that of the parameter it is for ("int[2]"), or NULL. */
void cfxi_emit_c_value(cfxi_ccode *c, const cfx_node *n, cfx_value v, const char *type,
                       cfxi_c_form form);
/* A value to be returned: nothing in it may live on the function's stack. */
void cfxi_emit_c_result(cfxi_ccode *c, const cfx_node *n, cfx_value v);
/* A call of a row, of a module, or a reading of an attribute: "cfx_relu(s, x)". */
void cfxi_emit_c_call(cfxi_ccode *c, const cfx_node *n);
/* For a loop with one variable: C has that one where the graph has a tuple of one. */
bool cfxi_emit_c_is_single_loop(const cfx_node *n);

/* ---- names (cname.c) ----------------------------------------------------------------------- */

/* A name made of `wish` that nothing else has in `ns`, nor in C: borrowed; NULL if memory is
 * out. */
const char *cfxi_emit_c_name(cfxi_ccode *c, cfx_namespace *ns, const char *wish, size_t size);
/* Whether the node is the first item of a loop with one variable: it has the loop's name. */
bool cfxi_emit_c_is_alias(const cfx_node *n);
/* Renames the nodes of one function. */
cfx_status cfxi_emit_c_rename(cfxi_ccode *c, cfx_graph *g, cfx_error *err);

/* ---- functions (cfunc.c) ------------------------------------------------------------------- */

/* `forward`, with all regions before it; *inputs is how many it has. */
cfx_status cfxi_emit_c_functions(cfxi_ccode *c, size_t *inputs, cfx_error *err);

/* What a function is for; `forward` and the regions of branches and loops. */
typedef enum cfxi_c_role {
    CFXI_C_FORWARD,
    CFXI_C_BLOCK,
    CFXI_C_TEST,
    CFXI_C_STEP,  /* the body of a while loop */
    CFXI_C_TURN   /* of a counted one: its first input is the index */
} cfxi_c_role;

typedef struct cfxi_c_function {
    cfx_graph *g;
    cfxi_c_role role;
    const char *name;
    size_t inputs;
    size_t named;  /* so many inputs, the first, are parameters of their own; the rest is in[] */
    bool single;   /* it gives the one variable of a loop, not a tuple */
} cfxi_c_function;

/* A graph with more nodes than this is written as several functions. */
enum { CFXI_C_LONG = 500 };
/* It in parts, each of which a compiler can digest. (csplit.c) */
cfx_status cfxi_emit_c_long_function(cfxi_ccode *c, const cfxi_c_function *f, cfx_error *err);

/* For those: an empty body; a statement; what the function gives (`output` may be NULL); text of a
 * function's head; "(void)x;" for what is not used; the whole function, with what is in the
 * body. */
void cfxi_emit_c_begin(cfxi_ccode *c);
void cfxi_emit_c_statement(cfxi_ccode *c, const cfx_node *n);
void cfxi_emit_c_output(cfxi_ccode *c, const cfxi_c_function *f, const cfx_node *output);
void cfxi_emit_c_head(cfxi_ccode *c, const char *text);
void cfxi_emit_c_unused(cfxi_ccode *c, bool used, const char *name, size_t size);
void cfxi_emit_c_finish(cfxi_ccode *c, const cfxi_c_function *f);

/* The call of a branch or a loop: "cfx_if(s, pred, cond_then, cond_else, NULL, x)". */
void cfxi_emit_c_control(cfxi_ccode *c, const cfx_node *n);

/* ---- modules (cmodel.c) -------------------------------------------------------------------- */

/* Whether a call of a module can stay one: its class is in the table, and its constructor makes
 * it. */
bool cfxi_emit_c_keep(void *ctx, const cfx_node *n, const char *class_name);
/* `cfx_model`. */
cfx_status cfxi_emit_c_model(cfxi_ccode *c, size_t inputs, cfx_error *err);

#endif
