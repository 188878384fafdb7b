/* multi_head_impl.h - the parameters of multi_head_attention_forward, and its parts. */
#ifndef CFXI_MULTI_HEAD_IMPL_H
#define CFXI_MULTI_HEAD_IMPL_H

#include "runtime/runtime_impl.h"

enum {
    QUERY, KEY, VALUE, EMBED_DIM, NUM_HEADS, IN_WEIGHT, IN_BIAS, BIAS_K, BIAS_V, ADD_ZERO, DROPOUT,
    OUT_WEIGHT, OUT_BIAS, TRAINING, KEY_PADDING_MASK, NEED_WEIGHTS, ATTN_MASK, SEPARATE, Q_WEIGHT,
    K_WEIGHT, V_WEIGHT, STATIC_K, STATIC_V, AVERAGE, IS_CAUSAL
};

/* For the rule of multi_head_attention_forward, if it is planned: whether it can be computed as
 * calls of its own, and these. (multi_head_parts.c) */
bool cfxi_linalg_multi_head_has_parts(const cfxi_call *c);
cfx_status cfxi_linalg_multi_head_parts(cfxi_call *c);

#endif
