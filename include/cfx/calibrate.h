/* calibrate.h - modules in integers: prepare one, run it on data, convert it, see what it lost.
 *
 *     cfx_module *prepared = cfx_quantize_prepare(s, model);
 *     for each batch:
 *         cfx_call(s, prepared, x);
 *     cfx_module *quantized = cfx_quantize_convert(s, prepared);
 *     cfx_module_write(s, quantized, "model_int8.cfx");
 *
 * What is run afterwards (cfx_executable, cfx run, cfx.runtime in Python) computes in integers. A
 * call in a scope computes the reference form: the same integers, one operator after the other.
 *
 * A module that a function here returns is borrowed from the scope, as in module.h. NULL means that
 * the scope has failed.
 */
#ifndef CFX_CALIBRATE_H
#define CFX_CALIBRATE_H

#pragma GCC system_header /* see scope.h */

#include <cfx/compare.h>
#include <cfx/correct.h>
#include <cfx/module.h>
#include <cfx/quantize.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cfx_quantize_mode {
    CFX_QUANTIZE_STATIC,   /* values and weights; the ranges of values are observed beforehand */
    CFX_QUANTIZE_DYNAMIC,  /* linear and recurrent layers, whose inputs get the range that they have
                            * in a run */
    CFX_QUANTIZE_WEIGHTS,  /* the weights of linear and recurrent layers and of embeddings alone. To
                            * both modes x @ w is a linear layer, too */
    CFX_QUANTIZE_MODE_COUNT
} cfx_quantize_mode;

/* All zero: static, uint8 values by histogram, int8 weights by output channel. */
typedef struct cfx_quantize_options {
    cfx_quantize_mode mode;
    cfx_observer_kind observer;  /* of values: MIN_MAX, MOVING_AVERAGE, HISTOGRAM, PERCENTILE */
    bool per_tensor;             /* weights have one scale, not one for each output channel */
    int bits;                    /* of weights: 8, or 4 */
    int64_t group;               /* of weights: a scale for each so many elements of a row; or 0 */
    bool equalize;               /* run the pass equalize first */
    const cfx_qrules *rules;     /* instead of all above but `equalize`; or NULL */
    cfx_finding_fn *left;        /* called for each node that stays float, with the reason */
    void *ctx;                   /* for `left` */
    const cfx_backend *backend;  /* what can be quantized; NULL: all that cfx can */
} cfx_quantize_options;

/* Sets the rules that these options stand for, for graphs whose calls may have any spelling. What
 * has no integer form (norms, softmax) stays float. CFX_E_VALUE for options that contradict
 * themselves. */
CFX_API cfx_status cfx_qrules_set_usual(cfx_qrules *r, const cfx_quantize_options *options,
                                        cfx_error *err);

/* A copy of `m` (captured, or traced now) with batch-norms in the weights of the layers before
 * them, and observers behind the values that are to be integers. Calling it computes what `m` does,
 * and observes. `m` must not be training, nor be quantized or prepared already. */
CFX_API cfx_module *cfx_quantize_prepare_at(cfx_at at, cfx_module *m, cfx_quantize_options options);
#define cfx_quantize_prepare(s, m, ...)                                                            \
    cfx_quantize_prepare_at(CFX_HERE(s), m, CFX_OPTIONS(cfx_quantize_options, __VA_ARGS__))

/* A copy of a prepared module in the reference form (quantize.h). `keep` names nodes, or modules
 * with all that is in them, that stay float; NULL if `n` is 0. The scope fails with CFX_E_KEY for a
 * name that the graph does not have, with CFX_E_VALUE if something observed nothing, or if nothing
 * was finite; values among which some were infinite or NaN stay float. */
CFX_API cfx_module *cfx_quantize_convert_at(cfx_at at, cfx_module *prepared,
                                            const char *const *keep, size_t n,
                                            cfx_quantize_options options);
#define cfx_quantize_convert(s, prepared, ...)                                                     \
    cfx_quantize_convert_at(CFX_HERE(s), prepared, NULL, 0,                                        \
                            CFX_OPTIONS(cfx_quantize_options, __VA_ARGS__))
#define cfx_quantize_convert_but(s, prepared, keep, n, ...)                                        \
    cfx_quantize_convert_at(CFX_HERE(s), prepared, keep, n,                                        \
                            CFX_OPTIONS(cfx_quantize_options, __VA_ARGS__))

/* ---- two versions side by side -------------------------------------------------------------- */

/* Runs two captured modules on the same inputs, and compares their layers. */
typedef struct cfx_trial cfx_trial;

/* Prepares both to run; they must not change meanwhile. The caller frees it. */
CFX_API cfx_trial *cfx_trial_new_at(cfx_at at, cfx_module *a, cfx_module *b);
#define cfx_trial_new(s, a, b) cfx_trial_new_at(CFX_HERE(s), a, b)
CFX_API void cfx_trial_free(cfx_trial *t);  /* NULL is allowed */
/* One call of both. The inputs are borrowed; they are the same for both, which must not write to
 * them. */
CFX_API cfx_status cfx_trial_run(cfx_trial *t, const cfx_datum *inputs, size_t n, cfx_error *err);
/* What was found so far: borrowed; NULL for one that corrects. */
CFX_API cfx_comparison *cfx_trial_comparison(cfx_trial *t);

/* ---- bias correction (correct.h) ------------------------------------------------------------ */

/* A trial that finds what is to be taken from the biases of a copy of `quantized`, so that the
 * means of its layers are those of `model` on the data that it is run on. */
CFX_API cfx_trial *cfx_trial_correct_at(cfx_at at, cfx_module *model, cfx_module *quantized);
#define cfx_trial_correct(s, model, quantized) cfx_trial_correct_at(CFX_HERE(s), model, quantized)
/* That copy, borrowed from the scope. Call it once, and then only free the trial. The scope fails
 * with CFX_E_VALUE if the trial does not correct, or has run nothing. */
CFX_API cfx_module *cfx_trial_corrected_at(cfx_at at, cfx_trial *t);
#define cfx_trial_corrected(s, t) cfx_trial_corrected_at(CFX_HERE(s), t)

#ifdef __cplusplus
}
#endif
#endif
