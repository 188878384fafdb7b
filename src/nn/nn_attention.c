/* nn_attention.c - attention and the layers of transformers, whose parts are modules themselves. */
#include "nn_impl.h"

#include <cfx/layers.h>

#include <stdio.h>

static cfx_var same_type(const cfxi_making *k) { return cfx_var_dtype(k->dtype); }

static void zero_bias(cfxi_making *k, const char *path)
{
    const cfx_datum bias = cfx_module_attribute(k->m, path);
    if (cfx_scope_ok(k->at.scope) && bias.kind == CFX_DATUM_TENSOR)
        cfxi_nn_fill(k->at, bias.as.tensor, cfxi_nn_init_fill(0));
}

/* ---- attention ----------------------------------------------------------------------------- */

static void check_heads(const cfxi_making *k, const char *width, const char *heads)
{
    cfxi_nn_at_least(k, width, 1);
    cfxi_nn_at_least(k, heads, 1);
    if (cfx_scope_ok(k->at.scope) && cfxi_nn_int(k, width) % cfxi_nn_int(k, heads) != 0)
        cfxi_nn_fail(k, "%s %lld is not divisible by %s %lld", width,
                     (long long)cfxi_nn_int(k, width), heads, (long long)cfxi_nn_int(k, heads));
    if (cfxi_nn_int(k, width) > INT64_MAX / 8)
        cfxi_nn_fail(k, "%s is too large", width);
}

/* One weight for query, key and value, or one for each if they have different widths. */
static void add_projections(cfxi_making *k, int64_t width, int64_t kdim, int64_t vdim)
{
    static const char *const names[] = {"q_proj_weight", "k_proj_weight", "v_proj_weight"};
    const int64_t widths[] = {width, kdim, vdim};
    const int64_t packed[] = {3 * width, width};
    const bool one = kdim == width && vdim == width;
    if (one)
        cfxi_nn_parameter(k, "in_proj_weight", packed, 2, cfxi_nn_xavier_uniform(packed, 2));
    for (size_t i = 0; i < 3; i++) {
        const int64_t sizes[] = {width, widths[i]};
        if (one)
            cfxi_nn_no_parameter(k, names[i]);
        else
            cfxi_nn_parameter(k, names[i], sizes, 2, cfxi_nn_xavier_uniform(sizes, 2));
    }
    if (!one)
        cfxi_nn_no_parameter(k, "in_proj_weight");
    if (cfxi_nn_flag(k, "bias"))
        cfxi_nn_parameter(k, "in_proj_bias", packed, 1, cfxi_nn_init_fill(0));
    else
        cfxi_nn_no_parameter(k, "in_proj_bias");
    cfxi_nn_set(k, "_qkv_same_embed_dim", cfx_datum_bool(one));
}

static void add_bias_kv(cfxi_making *k, int64_t width)
{
    const int64_t sizes[] = {1, 1, width};
    const bool there = cfxi_nn_flag(k, "add_bias_kv");
    for (size_t i = 0; i < 2; i++) {
        const char *name = i == 0 ? "bias_k" : "bias_v";
        if (there)
            cfxi_nn_parameter(k, name, sizes, 3, cfxi_nn_xavier_normal(sizes, 3));
        else
            cfxi_nn_set(k, name, cfx_datum_none());
    }
}

void cfxi_nn_make_attention(cfxi_making *k)
{
    const int64_t width = cfxi_nn_int(k, "embed_dim");
    check_heads(k, "embed_dim", "num_heads");
    cfxi_nn_probability(k, "dropout");
    cfxi_nn_at_least(k, "kdim", 1);
    cfxi_nn_at_least(k, "vdim", 1);
    if (!cfx_scope_ok(k->at.scope))
        return;
    const int64_t kdim = cfxi_nn_is_none(k, "kdim") ? width : cfxi_nn_int(k, "kdim");
    const int64_t vdim = cfxi_nn_is_none(k, "vdim") ? width : cfxi_nn_int(k, "vdim");
    cfxi_nn_set(k, "kdim", cfx_datum_int(kdim));
    cfxi_nn_set(k, "vdim", cfx_datum_int(vdim));
    cfxi_nn_set(k, "head_dim", cfx_datum_int(width / cfxi_nn_int(k, "num_heads")));
    add_projections(k, width, kdim, vdim);
    const cfx_var linear[] = {cfx_var_int(width), cfx_var_int(width),
                              cfx_var_bool(cfxi_nn_flag(k, "bias")), same_type(k)};
    cfxi_nn_part(k, "out_proj", CFX_NN_Linear, linear, 4);
    zero_bias(k, "out_proj.bias");
    add_bias_kv(k, width);
}

/* ---- layers of transformers ---------------------------------------------------------------- */

static void add_attention(cfxi_making *k, const char *name)
{
    const cfx_var args[] = {
        cfx_var_int(cfxi_nn_int(k, "d_model")), cfx_var_int(cfxi_nn_int(k, "nhead")),
        cfx_var_float(cfxi_nn_float(k, "dropout")), cfx_var_bool(cfxi_nn_flag(k, "bias")),
        cfx_var_bool(false), cfx_var_bool(false), cfx_var_none(), cfx_var_none(),
        cfx_var_bool(cfxi_nn_flag(k, "batch_first")), same_type(k),
    };
    cfxi_nn_part(k, name, CFX_NN_MultiheadAttention, args, sizeof args / sizeof *args);
}

static void add_linear(cfxi_making *k, const char *name, const char *from, const char *to)
{
    const cfx_var args[] = {cfx_var_int(cfxi_nn_int(k, from)), cfx_var_int(cfxi_nn_int(k, to)),
                            cfx_var_bool(cfxi_nn_flag(k, "bias")), same_type(k)};
    cfxi_nn_part(k, name, CFX_NN_Linear, args, 4);
}

static void add_dropout(cfxi_making *k, const char *name)
{
    const cfx_var p = cfx_var_float(cfxi_nn_float(k, "dropout"));
    cfxi_nn_part(k, name, CFX_NN_Dropout, &p, 1);
}

static void add_norm(cfxi_making *k, const char *name)
{
    const cfx_var args[] = {
        cfx_var_int(cfxi_nn_int(k, "d_model")), cfx_var_float(cfxi_nn_float(k, "layer_norm_eps")),
        cfx_var_bool(true), cfx_var_bool(cfxi_nn_flag(k, "bias")), same_type(k),
    };
    cfxi_nn_part(k, name, CFX_NN_LayerNorm, args, sizeof args / sizeof *args);
}

static void check_layer(const cfxi_making *k)
{
    static const char *const words[] = {"relu", "gelu", NULL};
    check_heads(k, "d_model", "nhead");
    cfxi_nn_at_least(k, "dim_feedforward", 0);
    cfxi_nn_probability(k, "dropout");
    cfxi_nn_one_of(k, "activation", words);
}

void cfxi_nn_make_transformer_layer(cfxi_making *k)
{
    const bool decoder = k->nn == CFX_NN_TransformerDecoderLayer;
    check_layer(k);
    add_attention(k, "self_attn");
    if (decoder)
        add_attention(k, "multihead_attn");
    add_linear(k, "linear1", "d_model", "dim_feedforward");
    add_dropout(k, "dropout");
    add_linear(k, "linear2", "dim_feedforward", "d_model");
    add_norm(k, "norm1");
    add_norm(k, "norm2");
    if (decoder)
        add_norm(k, "norm3");
    add_dropout(k, "dropout1");
    add_dropout(k, "dropout2");
    if (decoder)
        add_dropout(k, "dropout3");
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* A module of the class without arguments, added to `parent`: borrowed; NULL, and the scope fails.
 * */
static cfx_module *add_empty(cfx_at at, cfx_module *parent, const char *name, cfx_nn nn)
{
    cfx_module *m = cfx_scope_ok(at.scope) ? cfxi_nn_new(at, nn) : NULL;
    cfx_module *added = m ? cfx_module_add_at(at, parent, name, m) : NULL;
    cfx_module_release(m);
    return added;
}

static void add_layers(cfxi_making *k, cfx_module *list, cfx_nn layer, int64_t count)
{
    char name[24];
    const cfx_var args[] = {
        cfx_var_int(cfxi_nn_int(k, "d_model")), cfx_var_int(cfxi_nn_int(k, "nhead")),
        cfx_var_int(cfxi_nn_int(k, "dim_feedforward")),
        cfx_var_float(cfxi_nn_float(k, "dropout")), cfx_var_str(cfxi_nn_text(k, "activation")),
        cfx_var_float(cfxi_nn_float(k, "layer_norm_eps")),
        cfx_var_bool(cfxi_nn_flag(k, "batch_first")), cfx_var_bool(cfxi_nn_flag(k, "norm_first")),
        cfx_var_bool(cfxi_nn_flag(k, "bias")), same_type(k),
    };
    for (int64_t i = 0; i < count && cfx_scope_ok(k->at.scope); i++) {
        snprintf(name, sizeof name, "%lld", (long long)i);
        cfx_module *made = cfx_nn_make_at(k->at, layer, args, sizeof args / sizeof *args);
        cfx_module_add_at(k->at, list, name, made);
    }
}

static void add_stack(cfxi_making *k, const char *name, cfx_nn stack, cfx_nn layer, int64_t count)
{
    cfx_module *m = add_empty(k->at, k->m, name, stack);
    cfx_module *list = m ? add_empty(k->at, m, "layers", CFX_NN_ModuleList) : NULL;
    if (!list)
        return;
    cfx_module_set_at(k->at, m, "num_layers", cfx_var_int(count));
    if (stack == CFX_NN_TransformerEncoder) {
        cfx_module_set_at(k->at, m, "enable_nested_tensor", cfx_var_bool(true));
        cfx_module_set_at(k->at, m, "mask_check", cfx_var_bool(true));
    }
    add_layers(k, list, layer, count);
    cfxi_making inside = *k;
    inside.m = m;
    add_norm(&inside, "norm");
}

/* All weights with more than one dimension are as Xavier Glorot proposed. */
static cfx_status reset(void *ctx, cfx_module *m, const char *path, cfx_error *err)
{
    cfxi_making *k = ctx;
    (void)path;
    (void)err;
    for (size_t i = 0; i < m->members.size; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        const cfx_tensor *t = e->value.kind == CFX_DATUM_TENSOR ? e->value.as.tensor : NULL;
        if (t && e->kind == CFXI_MEMBER_PARAMETER && cfx_tensor_ndim(t) > 1)
            cfxi_nn_fill(k->at, e->value.as.tensor,
                         cfxi_nn_xavier_uniform(cfx_tensor_sizes(t), cfx_tensor_ndim(t)));
    }
    return cfx_scope_ok(k->at.scope) ? CFX_OK : k->at.scope->error.status;
}

void cfxi_nn_make_transformer(cfxi_making *k)
{
    cfx_error err = {0};
    if (!cfxi_nn_is_none(k, "custom_encoder") || !cfxi_nn_is_none(k, "custom_decoder"))
        cfxi_nn_fail(k, "custom_encoder and custom_decoder are not supported; write a class that "
                     "calls those modules");
    check_layer(k);
    cfxi_nn_at_least(k, "num_encoder_layers", 0);
    cfxi_nn_at_least(k, "num_decoder_layers", 0);
    add_stack(k, "encoder", CFX_NN_TransformerEncoder, CFX_NN_TransformerEncoderLayer,
              cfxi_nn_int(k, "num_encoder_layers"));
    add_stack(k, "decoder", CFX_NN_TransformerDecoder, CFX_NN_TransformerDecoderLayer,
              cfxi_nn_int(k, "num_decoder_layers"));
    if (cfx_scope_ok(k->at.scope) && cfxi_capture_module_each(k->m, reset, k, &err) != CFX_OK)
        cfxi_capture_scope_take(k->at, &err);
}
