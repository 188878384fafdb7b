/* pass.h - runs transforms (passes) by name.
 *
 *     const cfx_pass *dce = cfx_pass_find("dce");
 *     bool changed;
 *     cfx_pass_run(dce, g, NULL, NULL, &changed, &err);
 *
 * docs/passes.md describes what each pass does, needs and keeps. To write your own pass, fill in a
 * cfx_pass; cfx_pass_run runs it in the same way.
 */
#ifndef CFX_PASS_H
#define CFX_PASS_H

#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes `g` and its regions. `modules` gives the modules that the graph names; if it is NULL, a
 * pass skips everything it would have to look up there. `opts` is the pass's own option struct, or
 * NULL. *changed (may be NULL) tells whether anything changed. After a failure the graph is valid,
 * but may be partly changed. */
typedef cfx_status cfx_pass_fn(cfx_graph *g, const cfx_module_tree *modules, const void *opts,
                               bool *changed, cfx_error *err);

/* What a pass needs and keeps, as bits: CFX_PASS_NEEDS_MODULES, CFX_PASS_KEEPS_NAMES, ... Their
 * meanings are in pass_flag.def. */
enum {
#define CFX_PASS_NEED(id, words) CFX_PASS_NEED_BIT_##id,
#include <cfx/pass_flag.def>
    CFX_PASS_NEED_COUNT
};
enum {
#define CFX_PASS_KEEP(id, words) CFX_PASS_KEEP_BIT_##id,
#include <cfx/pass_flag.def>
    CFX_PASS_KEEP_COUNT
};
enum {
#define CFX_PASS_NEED(id, words) CFX_PASS_NEEDS_##id = 1 << CFX_PASS_NEED_BIT_##id,
#define CFX_PASS_KEEP(id, words) CFX_PASS_KEEPS_##id = 1 << CFX_PASS_KEEP_BIT_##id,
#include <cfx/pass_flag.def>
    CFX_PASS_NEEDS_NOTHING = 0
};

typedef struct cfx_pass {
    const char *name;
    const char *summary;  /* what it does */
    unsigned needs;       /* CFX_PASS_NEEDS_...: what must hold before it runs */
    unsigned keeps;       /* CFX_PASS_KEEPS_...: what it preserves */
    cfx_pass_fn *run;
} cfx_pass;

/* The i-th pass of the library, in alphabetical order; NULL past the end. */
CFX_API const cfx_pass *cfx_pass_get(size_t i);
/* NULL if there is no pass of this name. */
CFX_API const cfx_pass *cfx_pass_find(const char *name);

/* Needs and keeps as text: "names and order of the nodes that stay; every effect, in its order".
 * Both return `out`. */
enum { CFX_PASS_WORDS_SIZE = 400 };
CFX_API const char *cfx_pass_needs_words(unsigned needs, char out[CFX_PASS_WORDS_SIZE]);
CFX_API const char *cfx_pass_keeps_words(unsigned keeps, char out[CFX_PASS_WORDS_SIZE]);

/* Runs a pass. Debug builds also verify the graph afterwards, if it was valid before, and check
 * what the pass keeps. `opts` is NULL for C programs; embed/pass.h has the option structs. */
CFX_API cfx_status cfx_pass_run(const cfx_pass *pass, cfx_graph *g, const cfx_module_tree *modules,
                                const void *opts, bool *changed, cfx_error *err);

/* ---- options by name ----------------------------------------------------------------------- */

/* An option of a pass: a count or a flag. */
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

/* A pass with option settings, as parsed from text. */
enum { CFX_MAX_PASS_SETTINGS = 8 };
typedef struct cfx_pass_step {
    const cfx_pass *pass;
    cfx_pass_setting settings[CFX_MAX_PASS_SETTINGS];
    size_t n;
} cfx_pass_step;

/* Parses the first pass of a list such as "cse, unroll=4, dce:like_torch_fx" and advances *list
 * past it and its comma: NAME, NAME=N (sets its first option), NAME:OPTION=N:FLAG. The list ends
 * where **list is 0. CFX_E_KEY for an unknown pass or option, with the nearest name in the message;
 * CFX_E_VALUE for a value that is not a number; CFX_E_SYNTAX for a comma at the end. On
 * failure step->pass is the pass, if it was found. */
CFX_API cfx_status cfx_pass_list_next(const char **list, cfx_pass_step *step, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
