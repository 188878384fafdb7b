/* pass.h - transforms by name.
 *
 *     const cfx_pass *dce = cfx_pass_find("dce");
 *     bool changed;
 *     cfx_pass_run(dce, g, NULL, NULL, &changed, &err);
 *
 * docs/passes.md says what each pass does, what it needs and what it keeps. A pass of your own is a
 * cfx_pass that you fill in; cfx_pass_run runs it in the same way.
 */
#ifndef CFX_PASS_H
#define CFX_PASS_H

#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes `g` and its regions. `modules` is what its paths lead to; if it is NULL, a pass leaves
 * alone what it would have to look up. `opts` is the pass's own option struct, or NULL. *changed
 * (may be NULL) receives whether anything changed. If it fails, the graph is valid, but may be half
 * changed. */
typedef cfx_status cfx_pass_fn(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                               bool *changed, cfx_error *err);

typedef struct cfx_pass {
    const char *name;
    const char *summary;  /* what it does */
    const char *needs;    /* what must hold before it runs */
    const char *keeps;    /* what it leaves as it was */
    cfx_pass_fn *run;
} cfx_pass;

/* The i-th pass of the library, in alphabetical order; NULL past the end. */
CFX_API const cfx_pass *cfx_pass_get(size_t i);
/* NULL if there is no pass of this name. */
CFX_API const cfx_pass *cfx_pass_find(const char *name);

/* Runs a pass. Debug builds also verify the graph afterwards, if it was valid before. `opts` is
 * NULL for C programs; embed/pass.h has the option structs. */
CFX_API cfx_status cfx_pass_run(const cfx_pass *pass, cfx_graph *g, const cfx_module_tree *modules,
                                const void *opts, bool *changed, cfx_error *err);

/* ---- options by name ----------------------------------------------------------------------- */

/* An option of a pass that is a count or a flag. */
typedef struct cfx_pass_option {
    const char *pass;        /* the pass that it belongs to */
    const char *name;
    const char *summary;
    bool is_flag;            /* 0 or 1; otherwise a count */
    uint32_t offset;         /* in the pass's option struct */
    uint64_t default_value;
} cfx_pass_option;

typedef struct cfx_pass_setting {
    const char *name;
    uint64_t value;
} cfx_pass_setting;

/* The i-th option of a pass; NULL past the end. */
CFX_API const cfx_pass_option *cfx_pass_get_option(const cfx_pass *pass, size_t i);

/* Runs a pass as cfx_pass_run does, with some of its options set. Before any change: CFX_E_KEY for
 * an option that the pass does not have, CFX_E_VALUE for a flag that is neither 0 nor 1. */
CFX_API cfx_status cfx_pass_run_with(const cfx_pass *pass, cfx_graph *g,
                                     const cfx_module_tree *modules,
                                     const cfx_pass_setting *settings, size_t n, bool *changed,
                                     cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
