/* quantize.h - models in integers: observe, choose scales, convert.
 *
 *     prepared      the float graph, with an observer behind each value that is to be integers
 *     reference     quantize -> dequantize -> float operator -> quantize: runs anywhere
 *     integer       what cfx_program_freeze makes of the reference form: integer operators
 *
 * What an observer has seen gives a scale and a zero point:
 *
 *     real = (integer - zero) * scale
 *
 * docs/quantization.md describes all of it.
 */
#ifndef CFX_QUANTIZE_H
#define CFX_QUANTIZE_H

#include <cfx/state.h>
#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- how a value becomes integers ----------------------------------------------------------- */

typedef enum cfx_observer_kind {
    CFX_OBSERVE_NOTHING,         /* the value stays float */
    CFX_OBSERVE_MIN_MAX,         /* the least and greatest element of all calls */
    CFX_OBSERVE_MOVING_AVERAGE,  /* their moving average over calls */
    CFX_OBSERVE_HISTOGRAM,       /* the range that loses least, by a histogram */
    CFX_OBSERVE_PERCENTILE,      /* a range without the outermost elements */
    CFX_OBSERVE_FIXED,           /* scale and zero point are given */
    CFX_OBSERVE_EACH_RUN,        /* dynamic: chosen anew in each run */
    CFX_OBSERVE_AS_INPUT         /* the observer of the operator's input, if it has one */
} cfx_observer_kind;

typedef enum cfx_quantize_per {
    CFX_PER_TENSOR,
    CFX_PER_CHANNEL,  /* of dimension `axis` */
    CFX_PER_GROUP     /* of `group` elements of the last dimension, of each row; the last group may
                         be shorter */
} cfx_quantize_per;

/* All zero: the value stays float. cfx_quantize_spec_default fills in what is usual. */
typedef struct cfx_quantize_spec {
    cfx_observer_kind observer;
    cfx_dtype dtype;         /* UINT8, INT8, UINT16, INT16, INT32; FLOAT16: rounded, no scale */
    int64_t low, high;       /* the integers: 0..255, -128..127; -8..7 is int4 */
    cfx_quantize_per per;
    int64_t axis;
    int64_t group;
    bool symmetric;          /* the zero point is the middle of low and high: 128 of 0..255 */
    double eps;              /* the least scale */
    double averaging;        /* MOVING_AVERAGE: how much of the new range counts: 0.01 */
    int64_t bins;            /* HISTOGRAM, PERCENTILE: 2048 */
    double percentile;       /* PERCENTILE: 99.99 */
    double scale;            /* FIXED */
    int64_t zero;            /* FIXED; or, symmetric, another zero point than the middle */
} cfx_quantize_spec;

/* What is usual: all integers of the type, eps 2^-23, and the values written above. Per tensor and
 * affine. */
CFX_API void cfx_quantize_spec_default(cfx_quantize_spec *spec, cfx_observer_kind observer,
                                       cfx_dtype dtype);

/* ---- observers ------------------------------------------------------------------------------ */

/* What was seen of one value. One thread at a time. */
typedef struct cfx_observer cfx_observer;

/* NULL with *err set: CFX_E_VALUE for a spec that contradicts itself, with the field; CFX_E_NOMEM.
 * The allocator (NULL: malloc) must outlive it. */
CFX_API cfx_observer *cfx_observer_new(const cfx_quantize_spec *spec,
                                       const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_observer_free(cfx_observer *o);  /* NULL is allowed */
CFX_API const cfx_quantize_spec *cfx_observer_spec(const cfx_observer *o);

/* Takes the elements of a tensor of floats into account, whatever its strides. Elements that are
 * not finite are counted and otherwise ignored; an empty tensor changes nothing. CFX_E_TYPE for
 * other types; CFX_E_SHAPE if the channels are not as many as before. */
CFX_API cfx_status cfx_observer_observe(cfx_observer *o, const cfx_tensor *x, cfx_error *err);
/* How many elements it has seen, and how many of them were not finite. */
CFX_API int64_t cfx_observer_seen(const cfx_observer *o);
CFX_API int64_t cfx_observer_not_finite(const cfx_observer *o);

/* As if it had also seen what `from` has, which has the same spec: that of another process or
 * thread. A moving average becomes the mean, weighted by calls. */
CFX_API cfx_status cfx_observer_merge(cfx_observer *o, const cfx_observer *from, cfx_error *err);

/* The scales (float32) and zero points (int64), of one element or one for each channel; of groups,
 * [channels, groups]. CFX_E_VALUE if nothing was observed. A channel that is constant, or 0, has a
 * scale of at least eps. */
CFX_API cfx_status cfx_observer_scales(const cfx_observer *o, cfx_tensor **scale,
                                       cfx_tensor **zero, cfx_error *err);

/* What it has seen, as tensors by name ("min_val", "max_val", "histogram", as PyTorch's observers
 * name them), and back: CFX_E_KEY, CFX_E_TYPE or CFX_E_SHAPE for what does not belong to its
 * spec. */
CFX_API cfx_state *cfx_observer_save(const cfx_observer *o, cfx_error *err);
CFX_API cfx_status cfx_observer_load(cfx_observer *o, const cfx_state *state, cfx_error *err);

/* ---- configurations and rules --------------------------------------------------------------- */

/* How the results of an operator, and its weights, become integers. */
typedef struct cfx_qconfig {
    cfx_quantize_spec activation;
    cfx_quantize_spec weight;
    void *host;  /* for bindings: given back with it */
} cfx_qconfig;

/* Rules that say which configuration a node has. The most particular rule wins, as in PyTorch's
 * QConfigMapping: module name, type and order; module name; regular expression; type; global. One
 * thread at a time may change them. */
typedef struct cfx_qrules cfx_qrules;

/* Without rules; NULL with CFX_E_NOMEM. The allocator (NULL: malloc) must outlive it. */
CFX_API cfx_qrules *cfx_qrules_new(const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_qrules_free(cfx_qrules *r);  /* NULL is allowed */
/* `config` is copied; NULL: what the rule applies to stays float. A later rule replaces an earlier
 * one for the same thing. */
CFX_API cfx_status cfx_qrules_set_global(cfx_qrules *r, const cfx_qconfig *config, cfx_error *err);
/* `type` is a class ("torch.nn.Conv2d"), a function ("F.relu") or a method (".relu", or "relu"),
 * by any spelling that the operator table knows for it: the function is not the method.
 * "cfx.ops.relu" is whatever computes this operator, unless it has a rule of its own;
 * "cfx.ops.linear" also x @ w with a matrix of the model, in graphs with every_spelling. The
 * rule of a class also applies to the functions and methods that the forward of such a module
 * calls. */
CFX_API cfx_status cfx_qrules_set_type(cfx_qrules *r, const char *type, const cfx_qconfig *config,
                                       cfx_error *err);
/* `name` is the path of a module; it applies to all below it unless they have a rule of their
 * own. */
CFX_API cfx_status cfx_qrules_set_name(cfx_qrules *r, const char *name, const cfx_qconfig *config,
                                       cfx_error *err);
/* Modules whose path the expression matches from its beginning, and the calls directly in them; of
 * several that match, the one that was set first. An extended regular expression of POSIX without
 * back references, unless a matcher is set. CFX_E_SYNTAX if it is not one; CFX_E_LIMIT if it is
 * long, deep or repeats so often that matching would take too much memory. */
CFX_API cfx_status cfx_qrules_set_regex(cfx_qrules *r, const char *regex,
                                        const cfx_qconfig *config, cfx_error *err);
/* The index-th call of this function or class directly in the module `name`, counted from 0. */
CFX_API cfx_status cfx_qrules_set_order(cfx_qrules *r, const char *name, const char *type,
                                        size_t index, const cfx_qconfig *config, cfx_error *err);

/* Sets *matches to whether `name` matches `regex` from its beginning. */
typedef cfx_status cfx_qrules_match_fn(void *ctx, const char *regex, const char *name,
                                       bool *matches, cfx_error *err);
/* From now on `match` reads the regular expressions, and libc does not: a language has its own kind
 * (Python's has \d and (?!...), which POSIX has not), and a name must match in cfx as it does
 * there. Set it before the first expression: CFX_E_VALUE afterwards. `ctx` must outlive the
 * rules. */
CFX_API cfx_status cfx_qrules_set_matcher(cfx_qrules *r, cfx_qrules_match_fn *match, void *ctx,
                                          cfx_error *err);

/* ---- what a backend computes in integers ---------------------------------------------------- */

/* Of an input, a result or a weight: the type that it has to have, and what its configuration has
 * to keep to. FLOAT32 is what stays float. */
typedef struct cfx_backend_value {
    bool any;              /* whatever it is */
    cfx_dtype dtype;
    bool ranged;           /* the integers of the configuration are within low..high */
    int64_t low, high;
    double scale_min;      /* its eps is at least this; 0: any */
    bool fixed;            /* it fixes this scale and zero point */
    double scale;
    int64_t zero;
} cfx_backend_value;

typedef struct cfx_backend_types {
    cfx_backend_value input, output, weight;
    bool each_run;         /* ranges chosen in each run */
} cfx_backend_types;

typedef enum cfx_backend_result {
    CFX_RESULT_OWN,        /* the result has a scale of its own */
    CFX_RESULT_SHARED,     /* it has that of the inputs */
    CFX_RESULT_COUNTED,    /* OWN of two tensors, SHARED of a tensor and a number */
    CFX_RESULT_UNOBSERVED, /* only weights are quantized */
    CFX_RESULT_GIVEN       /* the inputs have scales; the result is taken as the call gives it */
} cfx_backend_result;

/* A call, or a chain of calls between which nothing is observed: each reads the one before it, and
 * alone does. Types are those of cfx_qrules_set_type. */
typedef struct cfx_backend_pattern {
    const char *const *calls;
    size_t n_calls;
    cfx_backend_result result;
    const cfx_backend_types *types;  /* a configuration has to fit one of them */
    size_t n_types;
} cfx_backend_pattern;

/* What can be quantized, instead of what cfx can (quantize.def): PyTorch's BackendConfig. One
 * thread at a time may change it. */
typedef struct cfx_backend cfx_backend;

/* Without patterns: nothing is quantized. NULL with CFX_E_NOMEM. The allocator (NULL: malloc) must
 * outlive it. */
CFX_API cfx_backend *cfx_backend_new(const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_backend_free(cfx_backend *b);  /* NULL is allowed */
/* The pattern is copied; a later one for the same calls replaces it. CFX_E_VALUE if it has no
 * calls. */
CFX_API cfx_status cfx_backend_add(cfx_backend *b, const cfx_backend_pattern *pattern,
                                   cfx_error *err);

/* ---- fusing, preparing, converting ---------------------------------------------------------- */

/* What a module tree cannot do: observers are modules of the host's. In Python they are those that
 * a QConfig makes, in C each holds a cfx_observer. Paths are those of the tree; the tree must see
 * what these functions change. A status other than CFX_OK stops the caller, which returns it. */
typedef struct cfx_quantize_host {
    void *ctx;

    /* Makes an observer at `path`, where there is nothing: of config->weight if `weight`, else of
     * config->activation. It is called with a tensor and returns it, rounded if it is a fake
     * quantization. */
    cfx_status (*observe)(void *ctx, const char *path, const cfx_qconfig *config, bool weight,
                          cfx_error *err);
    /* Makes the observer at `path` the same object as that at `with`. */
    cfx_status (*share)(void *ctx, const char *path, const char *with, cfx_error *err);
    /* What the observer at `path` gives; CFX_E_KEY if there is no observer. */
    cfx_status (*spec)(void *ctx, const char *path, cfx_quantize_spec *spec, cfx_error *err);
    /* Lets the observer at `path` observe a tensor now. */
    cfx_status (*look)(void *ctx, cfx_graph *g, const char *path, cfx_value tensor,
                       cfx_error *err);
    /* The scale and zero point of what it has observed, floating values: a FLOAT and an INT for one
     * pair, else tensors (float32, int64). CFX_E_VALUE if it has observed nothing,
     * CFX_E_UNSUPPORTED if there are no integers for what it has observed: it was not finite;
     * CFX_E_TYPE if that were integers or truth values, which stay as they are. */
    cfx_status (*scales)(void *ctx, cfx_graph *g, const char *path, cfx_value *scale,
                         cfx_value *zero, cfx_error *err);
    /* Replaces the layer at `path` by one for training that quantizes its weights, with an observer
     * `weight_fake_quant`; and that does what the batch-norm at `norm` does, too, unless `norm` is
     * NULL. NULL: no training. */
    cfx_status (*train)(void *ctx, const char *path, const char *norm, const cfx_qconfig *config,
                        cfx_error *err);
} cfx_quantize_host;

/* Puts batch-norms into the weights of the layers before them, as the pass fuse_bn does. Not what
 * is training: cfx_graph_prepare keeps that together. */
CFX_API cfx_status cfx_graph_fuse_layers(cfx_graph *g, const cfx_module_tree *modules,
                                         bool *changed, cfx_error *err);

typedef struct cfx_prepare_options {
    bool training;          /* quantization-aware: fake quantization, layers that learn with it */
    bool every_spelling;    /* x.flatten(1) as torch.flatten(x, 1): all spellings of an operator,
                               and x @ w as a linear layer; otherwise those that PyTorch's FX mode
                               looks at */
    const size_t *inputs;   /* places of inputs that are quantized already */
    size_t n_inputs;
    cfx_finding_fn *left;   /* called for each node that has a configuration but stays float */
    void *ctx;
    const cfx_backend *backend;  /* what can be quantized; NULL: all that cfx can */
    bool backend_adds;      /* what the backend does not have is quantized if cfx can */
    const size_t *whole;    /* places of inputs that are tensors of integers or truth values: masks,
                               tokens. They stay so, as does what is made of their elements alone */
    size_t n_whole;
} cfx_prepare_options;

/* Inserts calls of observers, "activation_post_process_0" and so on, behind the inputs and results
 * of what can be quantized (quantize.def), in `g` and its regions, where PyTorch's FX mode inserts
 * them (docs/quantization.md lists the differences). Layers with weights get an observer
 * `weight_observer` (or `weight_fake_quant`). `opts` may be NULL. CFX_E_VALUE, before any change,
 * if there are observers already or quantized values. If it fails later, the graph is valid, but
 * partly prepared. Linear in nodes and edges. */
CFX_API cfx_status cfx_graph_prepare(cfx_graph *g, const cfx_module_tree *modules,
                                     const cfx_quantize_host *host, const cfx_qrules *rules,
                                     const cfx_prepare_options *opts, cfx_error *err);

typedef struct cfx_convert_options {
    const char *const *keep;  /* names of nodes, or paths of modules, that stay float, as with a
                                 rule with NULL when the graph was prepared: what reads them in
                                 integers gets their result quantized */
    size_t n_keep;
    const size_t *outputs;    /* places of results that are returned in integers */
    size_t n_outputs;
    cfx_finding_fn *left;     /* called for each node that stays float, with the reason */
    void *ctx;
} cfx_convert_options;

/* Makes the reference form of a prepared graph: observers become quantize and dequantize, layers
 * functions of dequantized weights ("fc.weight_int8", "fc.weight_scale", "fc.weight_zero").
 * `opts` may be NULL. What was not finite stays float, and what was not observed in a region, a
 * branch that never ran. Before any change CFX_E_VALUE if the graph has no observers at all, if one
 * has observed nothing, or if nothing was finite; CFX_E_KEY for a name that the graph does not
 * have. */
CFX_API cfx_status cfx_graph_convert(cfx_graph *g, const cfx_module_tree *modules,
                                     const cfx_quantize_host *host,
                                     const cfx_convert_options *opts, cfx_error *err);

/* ---- the integer form ----------------------------------------------------------------------- */

/* Called, in the order of the graph, for each call that computes in float though what it reads are
 * integers that were dequantized, with the reason: it has no integer form, its sum may overflow,
 * its result is not quantized. `n` has the user's location; both are valid only during the call. A
 * status other than CFX_OK stops. */
typedef cfx_status cfx_integers_fn(void *ctx, const cfx_node *n, const char *why);

typedef struct cfx_integers_options {
    cfx_integers_fn *each;  /* or NULL */
    void *ctx;
} cfx_integers_options;

/* Turns the reference form in a lowered graph (lower.h) and its regions into integer operators, as
 * docs/quantization.md describes; the pass `integers`, and part of cfx_program_freeze. `modules`
 * (may be NULL) gives the shapes and values of weights: without them no sum is found to be too
 * long, and zero points that are all 0 are kept. Tables and the scales of weights become calls of
 * literals, which const_fold computes. *changed (may be NULL) tells whether anything changed. After
 * a failure the graph is valid and computes what it did, but some calls may have been changed.
 * Linear in nodes and edges. */
CFX_API cfx_status cfx_graph_integers(cfx_graph *g, const cfx_module_tree *modules,
                                      const cfx_integers_options *options, bool *changed,
                                      cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
