/* correct.h - biases of a quantized model that make up for what rounding shifts.
 *
 *     cfx_correction *c = cfx_correction_new(model, quantized, NULL, &err);
 *     for each call of both, the float model first:
 *         cfx_correction_expect(c, i, what %a gave, &err);
 *         shift = cfx_correction_meet(c, i, what %b gave, &err);    subtract it, and go on
 *     cfx_correction_finish(c, &modules, &changed, &err);
 *
 * Rounded weights do not only add noise: the mean of each output channel moves, and the layers
 * behind see it. The bias of a layer can take exactly that away. A layer is measured while all
 * layers before it are corrected already, because what is met is corrected at once: one run over
 * the data does for all layers. The core does not run anything here: the caller does, in C
 * (calibrate.h) or in PyTorch.
 */
#ifndef CFX_CORRECT_H
#define CFX_CORRECT_H

#include <cfx/tensor.h>
#include <cfx/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is known of the means. One thread at a time. */
typedef struct cfx_correction cfx_correction;

/* The linear layers and convolutions of `quantized` (in the reference form, quantize.h) whose
 * weights are integers, and their counterparts in `model`, as cfx_comparison_new finds them; those
 * of regions are left as they are. Retains both graphs, which must not be changed before the
 * correction is finished. The allocator (NULL: malloc) must outlive it. NULL with *err set. Linear
 * in nodes and edges. */
CFX_API cfx_correction *cfx_correction_new(cfx_graph *model, cfx_graph *quantized,
                                           const cfx_allocator *allocator, cfx_error *err);
CFX_API void cfx_correction_free(cfx_correction *c);  /* NULL is allowed */

/* The i-th layer, in both graphs; false past the last. */
CFX_API bool cfx_correction_pair(const cfx_correction *c, size_t i, cfx_node **a, cfx_node **b);

/* What the i-th layer of the float model gives in this call. Other values than tensors of floats
 * with channels, and values that are not all finite, are not expected. CFX_E_INDEX past the last
 * layer; CFX_E_NOMEM. */
CFX_API cfx_status cfx_correction_expect(cfx_correction *c, size_t i, const cfx_tensor *x,
                                         cfx_error *err);
/* What that of the quantized one gives. *shift becomes how far the means of its channels are above
 * those expected, float32, one reference, in a shape that is subtracted from `x`; or NULL if
 * nothing was expected, or they cannot be compared. */
CFX_API cfx_status cfx_correction_meet(cfx_correction *c, size_t i, const cfx_tensor *x,
                                       cfx_tensor **shift, cfx_error *err);

/* Gives the layers their new biases: the old ones less the mean shift of all calls; where it
 * differs so much from call to call that it may be chance, less a part of it or nothing. A bias
 * that nothing else reads is replaced, "fc.bias"; for others "fc.bias_corrected" is made.
 * `modules` are those of `quantized`. *changed (may be NULL) tells whether anything did.
 * CFX_E_VALUE, before any change, if no layer was met. After another failure the graph is valid,
 * but partly corrected. Call it once. */
CFX_API cfx_status cfx_correction_finish(cfx_correction *c, const cfx_module_tree *modules,
                                         bool *changed, cfx_error *err);

#ifdef __cplusplus
}
#endif
#endif
