/* lower_attention.c - attention and the layers of transformers: their parts are called as modules,
 * which are then lowered themselves. */
#include "lower_impl.h"

#include <stdio.h>

/* ---- parts --------------------------------------------------------------------------------- */

enum { PATH_SIZE = 512 };

static bool part_path(const cfx_node *n, const char *part, char out[PATH_SIZE])
{
    return snprintf(out, PATH_SIZE, "%s.%s", n->callee->ref->name->data, part) < PATH_SIZE;
}

/* Calls a part of the module that `n` calls, and lowers that. Chains as cfxi_lower_row does. */
static cfx_value call_part(cfxi_lower *l, cfx_node *n, const char *part, const cfx_value *args,
                           size_t count, const cfx_kwarg *kwargs, size_t n_kwargs)
{
    char path[PATH_SIZE];
    const cfx_insert_point old = cfx_graph_insert_point(l->g);
    for (size_t i = 0; i < count; i++)
        if (args[i].kind == CFX_KIND_INVALID)
            return cfx_value_invalid();
    if (!part_path(n, part, path) ||
        cfx_graph_set_insert_point(l->g, (cfx_insert_point){n, false}, l->err) != CFX_OK)
        return cfx_value_invalid();
    cfx_node *call = cfx_graph_call(l->g, CFX_OP_CALL_MODULE, path, args, count, kwargs, n_kwargs,
                                    l->err);
    cfx_graph_set_insert_point(l->g, old, NULL);
    if (!call)
        return cfx_value_invalid();
    cfxi_analysis_place_like(call, n);
    return cfxi_lower_module(l, call) == CFX_OK ? cfx_value_node(call) : cfx_value_invalid();
}

static cfx_value apply(cfxi_lower *l, cfx_node *n, const char *part, cfx_value x)
{
    return call_part(l, n, part, &x, 1, NULL, 0);
}

static cfx_value add(cfxi_lower *l, cfx_node *n, cfx_value x, cfx_value y)
{
    const cfx_value args[] = {x, y};
    return cfxi_lower_row(l, n, CFX_OPID_add, args, 2);
}

/* `n` is what `v`, a node before it, is. */
static cfx_status become(cfxi_lower *l, cfx_node *n, cfx_value v)
{
    CFX_TRY(l->err->status);
    if (v.kind == CFX_KIND_INVALID)
        return cfxi_lower_refuse(l, n, "the module lacks an attribute of its class");
    return cfxi_lower_finish(l, n, CFX_OPID_alias, &v, 1);
}

/* ---- attention ----------------------------------------------------------------------------- */

/* (batch, length, width) as (length, batch, width), and back; what lacks the batch, which only its
 * dimensions tell, is seen as a batch of one first. */
static cfx_value with_batch(cfxi_lower *l, cfx_node *n, cfx_value x)
{
    const cfx_value sizes[] = {cfx_value_int(-1), cfxi_lower_size(l, n, x, -2),
                               cfxi_lower_size(l, n, x, -1)};
    return cfxi_lower_reshape(l, n, x, sizes, 3);
}

static cfx_value swap(cfxi_lower *l, cfx_node *n, cfx_value x)
{
    const cfx_value dims[] = {cfx_value_int(1), cfx_value_int(0), cfx_value_int(2)};
    const cfx_value args[] = {x, cfx_value_list(l->g, dims, 3, l->err)};
    return cfxi_lower_row(l, n, CFX_OPID_permute, args, 2);
}

static cfx_value swap_batch(cfxi_lower *l, cfx_node *n, cfx_value x)
{
    return swap(l, n, with_batch(l, n, x));
}

/* (length,) as (1, length). */
static cfx_value batch_of_masks(cfxi_lower *l, cfx_node *n, cfx_value mask)
{
    if (cfxi_lower_value_is_none(mask))
        return mask;
    const cfx_value sizes[] = {cfx_value_int(-1), cfxi_lower_size(l, n, mask, -1)};
    return cfxi_lower_reshape(l, n, mask, sizes, 2);
}

typedef struct argument {
    const char *param;
    cfx_value value;
} argument;

/* Passes what the row takes; what it does not must ask for nothing. */
static cfx_status set_all(cfxi_lower *l, const cfx_node *n, cfxi_lowered *c, const argument *all,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const cfx_value v = all[i].value;
        const size_t at = cfx_operator_find_param(c->op, all[i].param);
        CFX_TRY(l->err->status);
        if (at < c->n)
            c->args[at] = v.kind == CFX_KIND_INVALID ? cfx_value_none() : v;
        else if (!cfxi_lower_value_is_none(v) && !(v.kind == CFX_KIND_BOOL && !v.as.b))
            return cfxi_lower_refuse(l, n, "the operator '%s' has no parameter '%s'",
                                     cfx_operator_name(c->op), all[i].param);
    }
    return CFX_OK;
}

static cfx_value as_float(cfx_value v)
{
    return v.kind == CFX_KIND_INT ? cfx_value_float((double)v.as.i) : v;
}

/* The row before `n`: (output, weights). */
static cfx_status attend(cfxi_lower *l, cfx_node *n, bool batch_first, cfxi_lowered *c)
{
    const cfx_value q = cfxi_lower_argument(n, 0, "query");
    const cfx_value k = cfxi_lower_argument(n, 1, "key");
    const cfx_value v = cfxi_lower_argument(n, 2, "value");
    const cfx_value mask = cfxi_lower_argument(n, 5, "attn_mask");
    const cfx_value causal = cfxi_lower_argument(n, 7, "is_causal");
    const cfx_value average = cfxi_lower_argument(n, 6, "average_attn_weights");
    const cfx_value weights = cfxi_lower_argument(n, 4, "need_weights");
    const cfx_value swapped = batch_first ? swap_batch(l, n, q) : q;
    const cfx_value one = cfxi_lower_attribute(l, n, "in_proj_weight");
    const cfx_value padding = cfxi_lower_argument(n, 3, "key_padding_mask");
    const argument all[] = {
        {"query", swapped},
        {"key", !batch_first            ? k
                : cfx_value_equal(k, q) ? swapped
                                        : swap_batch(l, n, k)},
        {"value", !batch_first            ? v
                  : cfx_value_equal(v, q) ? swapped
                                          : swap_batch(l, n, v)},
        {"embed_dim_to_check", cfxi_lower_attribute(l, n, "embed_dim")},
        {"num_heads", cfxi_lower_attribute(l, n, "num_heads")},
        {"in_proj_weight", one},
        {"in_proj_bias", cfxi_lower_attribute(l, n, "in_proj_bias")},
        {"bias_k", cfxi_lower_attribute(l, n, "bias_k")},
        {"bias_v", cfxi_lower_attribute(l, n, "bias_v")},
        {"add_zero_attn", cfx_value_bool(cfxi_lower_flag(l, n, "add_zero_attn"))},
        {"dropout_p", as_float(cfxi_lower_attribute(l, n, "dropout"))},
        {"out_proj_weight", cfxi_lower_attribute(l, n, "out_proj.weight")},
        {"out_proj_bias", cfxi_lower_attribute(l, n, "out_proj.bias")},
        {"training", cfx_value_bool(cfxi_lower_flag(l, n, "training"))},
        {"key_padding_mask", batch_first ? batch_of_masks(l, n, padding) : padding},
        {"need_weights", weights.kind == CFX_KIND_NONE ? cfx_value_bool(true) : weights},
        {"attn_mask", mask},
        {"use_separate_proj_weight", cfx_value_bool(cfxi_lower_value_is_none(one))},
        {"q_proj_weight", cfxi_lower_attribute(l, n, "q_proj_weight")},
        {"k_proj_weight", cfxi_lower_attribute(l, n, "k_proj_weight")},
        {"v_proj_weight", cfxi_lower_attribute(l, n, "v_proj_weight")},
        {"average_attn_weights", average.kind == CFX_KIND_NONE ? cfx_value_bool(true) : average},
        /* beside a mask it is a hint that the mask is such a one */
        {"is_causal", cfxi_lower_value_is_none(mask) && !cfxi_lower_value_is_none(causal)
                          ? causal
                          : cfx_value_bool(false)},
    };
    cfxi_lower_lowered_begin(c, CFX_OPID_multi_head_attention_forward);
    return set_all(l, n, c, all, sizeof all / sizeof *all);
}

/* The weights of a batch, (batch, heads?, length, keys), by the shape of the query. */
static cfx_value weights_like(cfxi_lower *l, cfx_node *n, cfx_value both)
{
    const cfx_value need = cfxi_lower_argument(n, 4, "need_weights");
    const cfx_value second[] = {both, cfx_value_int(1)};
    if (need.kind == CFX_KIND_BOOL && !need.as.b)
        return cfx_value_none();
    const cfx_value weights = cfxi_lower_row(l, n, CFX_OPID_getitem, second, 2);
    const cfx_value batch = cfxi_lower_sizes(l, n, cfxi_lower_argument(n, 0, "query"), 0, -2);
    return cfxi_lower_reshape_by(l, n, weights, cfx_value_invalid(), batch,
                                 cfxi_lower_sizes(l, n, weights, 1, 8));
}

cfx_status cfxi_lower_attention(cfxi_lower *l, cfx_node *n)
{
    cfxi_lowered c;
    const size_t refused = l->refused;
    const bool batch_first = cfxi_lower_flag(l, n, "batch_first");
    CFX_TRY(attend(l, n, batch_first, &c));
    if (l->refused > refused)
        return CFX_OK;
    if (!batch_first)
        return cfxi_lower_write(l, n, &c);
    size_t last = c.n;
    while (last > 0 && c.args[last - 1].kind == CFX_KIND_INVALID)
        last--;
    for (size_t i = 0; i < last; i++)
        if (c.args[i].kind == CFX_KIND_INVALID)
            c.args[i] = cfx_value_none();
    const cfx_value both = cfxi_lower_row(l, n, c.op, c.args, last);
    const cfx_value first[] = {both, cfx_value_int(0)};
    const cfx_value like[] = {swap(l, n, cfxi_lower_row(l, n, CFX_OPID_getitem, first, 2)),
                              cfxi_lower_argument(n, 0, "query")};
    const cfx_value items[] = {cfxi_lower_row(l, n, CFX_OPID_reshape_as, like, 2),
                               weights_like(l, n, both)};
    CFX_TRY(l->err->status);
    const cfx_value tuple = cfx_value_tuple(l->g, items, 2, l->err);
    return cfxi_lower_finish(l, n, CFX_OPID_tuple, &tuple, 1);
}

/* What attention gives, without the weights. */
static cfx_value attention_part(cfxi_lower *l, cfx_node *n, const char *part, cfx_value x,
                                cfx_value memory, cfx_value mask, cfx_value padding,
                                cfx_value causal)
{
    const cfx_value args[] = {x, memory, memory};
    const bool on = causal.kind == CFX_KIND_NODE || (causal.kind == CFX_KIND_BOOL && causal.as.b);
    const cfx_kwarg kwargs[] = {{"attn_mask", mask}, {"key_padding_mask", padding},
                                {"need_weights", cfx_value_bool(false)}, {"is_causal", causal}};
    const cfx_value both[] = {call_part(l, n, part, args, 3, kwargs, on ? 4 : 3), cfx_value_int(0)};
    return cfxi_lower_row(l, n, CFX_OPID_getitem, both, 2);
}

/* ---- layers of transformers ---------------------------------------------------------------- */

/* The activation is a function, its name ("relu", in C), or a module. */
static cfx_value activate(cfxi_lower *l, cfx_node *n, cfx_value x)
{
    const cfx_value f = cfxi_lower_attribute(l, n, "activation");
    const char *name = f.kind == CFX_KIND_HOST ? cfx_value_host_name(l->g, f, NULL) : NULL;
    const cfx_operator op = f.kind == CFX_KIND_STR ? cfx_operator_parse(cfx_value_text(f, NULL))
                            : name ? cfx_operator_find(name, strlen(name)) : CFX_OPID_NONE;
    cfx_value_discard(l->g, f);
    return op ? cfxi_lower_row(l, n, op, &x, 1) : apply(l, n, "activation", x);
}

static cfx_value feed_forward(cfxi_lower *l, cfx_node *n, cfx_value x, const char *dropout)
{
    const cfx_value y = activate(l, n, apply(l, n, "linear1", x));
    return apply(l, n, dropout, apply(l, n, "linear2", apply(l, n, "dropout", y)));
}

typedef struct layer {
    bool norm_first;
    cfx_value memory, mask, memory_mask, padding, memory_padding, causal, memory_causal;
} layer;

static cfx_value self_attention(cfxi_lower *l, cfx_node *n, const layer *a, cfx_value x)
{
    return apply(l, n, "dropout1", attention_part(l, n, "self_attn", x, x, a->mask, a->padding,
                                                  a->causal));
}

static cfx_value cross_attention(cfxi_lower *l, cfx_node *n, const layer *a, cfx_value x)
{
    return apply(l, n, "dropout2",
                 attention_part(l, n, "multihead_attn", x, a->memory, a->memory_mask,
                                a->memory_padding, a->memory_causal));
}

cfx_status cfxi_lower_encoder_layer(cfxi_lower *l, cfx_node *n)
{
    const layer a = {
        .norm_first = cfxi_lower_flag(l, n, "norm_first"),
        .mask = cfxi_lower_argument(n, 1, "src_mask"),
        .padding = cfxi_lower_argument(n, 2, "src_key_padding_mask"),
        .causal = cfxi_lower_argument(n, 3, "is_causal"),
    };
    cfx_value x = cfxi_lower_argument(n, 0, "src");
    if (a.norm_first) {
        x = add(l, n, x, self_attention(l, n, &a, apply(l, n, "norm1", x)));
        x = add(l, n, x, feed_forward(l, n, apply(l, n, "norm2", x), "dropout2"));
    } else {
        x = apply(l, n, "norm1", add(l, n, x, self_attention(l, n, &a, x)));
        x = apply(l, n, "norm2", add(l, n, x, feed_forward(l, n, x, "dropout2")));
    }
    return become(l, n, x);
}

cfx_status cfxi_lower_decoder_layer(cfxi_lower *l, cfx_node *n)
{
    const layer a = {
        .norm_first = cfxi_lower_flag(l, n, "norm_first"),
        .memory = cfxi_lower_argument(n, 1, "memory"),
        .mask = cfxi_lower_argument(n, 2, "tgt_mask"),
        .memory_mask = cfxi_lower_argument(n, 3, "memory_mask"),
        .padding = cfxi_lower_argument(n, 4, "tgt_key_padding_mask"),
        .memory_padding = cfxi_lower_argument(n, 5, "memory_key_padding_mask"),
        .causal = cfxi_lower_argument(n, 6, "tgt_is_causal"),
        .memory_causal = cfxi_lower_argument(n, 7, "memory_is_causal"),
    };
    cfx_value x = cfxi_lower_argument(n, 0, "tgt");
    if (a.norm_first) {
        x = add(l, n, x, self_attention(l, n, &a, apply(l, n, "norm1", x)));
        x = add(l, n, x, cross_attention(l, n, &a, apply(l, n, "norm2", x)));
        x = add(l, n, x, feed_forward(l, n, apply(l, n, "norm3", x), "dropout3"));
    } else {
        x = apply(l, n, "norm1", add(l, n, x, self_attention(l, n, &a, x)));
        x = apply(l, n, "norm2", add(l, n, x, cross_attention(l, n, &a, x)));
        x = apply(l, n, "norm3", add(l, n, x, feed_forward(l, n, x, "dropout3")));
    }
    return become(l, n, x);
}

/* ---- stacks of them ------------------------------------------------------------------------ */

/* The layers one after another, each with what the call passes beside its input, and the norm. */
static cfx_status lower_stack(cfxi_lower *l, cfx_node *n, cfx_value x, const cfx_value *more,
                              size_t n_more, const cfx_kwarg *kwargs, size_t n_kwargs)
{
    char name[32];
    const int64_t layers = cfxi_lower_int(l, n, "num_layers");
    const cfx_value norm = cfxi_lower_attribute(l, n, "norm");
    for (int64_t i = 0; i < layers && x.kind != CFX_KIND_INVALID; i++) {
        cfx_value args[2] = {x, n_more ? more[0] : cfx_value_none()};
        snprintf(name, sizeof name, "layers.%lld", (long long)i);
        x = call_part(l, n, name, args, 1 + n_more, kwargs, n_kwargs);
    }
    if (!cfxi_lower_value_is_none(norm))
        x = apply(l, n, "norm", x);
    cfx_value_discard(l->g, norm);
    return become(l, n, x);
}

/* A hint beside a mask is no more than that. */
static cfx_value causal_of(const cfx_node *n, size_t i, const char *name)
{
    const cfx_value v = cfxi_lower_argument(n, i, name);
    return v.kind == CFX_KIND_NONE ? cfx_value_bool(false) : v;
}

cfx_status cfxi_lower_encoder(cfxi_lower *l, cfx_node *n)
{
    const cfx_kwarg kwargs[] = {
        {"src_mask", cfxi_lower_argument(n, 1, "mask")},
        {"src_key_padding_mask", cfxi_lower_argument(n, 2, "src_key_padding_mask")},
        {"is_causal", causal_of(n, 3, "is_causal")},
    };
    return lower_stack(l, n, cfxi_lower_argument(n, 0, "src"), NULL, 0, kwargs, 3);
}

cfx_status cfxi_lower_decoder(cfxi_lower *l, cfx_node *n)
{
    const cfx_value memory = cfxi_lower_argument(n, 1, "memory");
    const cfx_kwarg kwargs[] = {
        {"tgt_mask", cfxi_lower_argument(n, 2, "tgt_mask")},
        {"memory_mask", cfxi_lower_argument(n, 3, "memory_mask")},
        {"tgt_key_padding_mask", cfxi_lower_argument(n, 4, "tgt_key_padding_mask")},
        {"memory_key_padding_mask", cfxi_lower_argument(n, 5, "memory_key_padding_mask")},
        {"tgt_is_causal", causal_of(n, 6, "tgt_is_causal")},
        {"memory_is_causal", causal_of(n, 7, "memory_is_causal")},
    };
    return lower_stack(l, n, cfxi_lower_argument(n, 0, "tgt"), &memory, 1, kwargs, 6);
}

cfx_status cfxi_lower_transformer(cfxi_lower *l, cfx_node *n)
{
    const cfx_value src = cfxi_lower_argument(n, 0, "src");
    const cfx_kwarg encoder[] = {
        {"mask", cfxi_lower_argument(n, 2, "src_mask")},
        {"src_key_padding_mask", cfxi_lower_argument(n, 5, "src_key_padding_mask")},
    };
    const cfx_kwarg decoder[] = {
        {"tgt_mask", cfxi_lower_argument(n, 3, "tgt_mask")},
        {"memory_mask", cfxi_lower_argument(n, 4, "memory_mask")},
        {"tgt_key_padding_mask", cfxi_lower_argument(n, 6, "tgt_key_padding_mask")},
        {"memory_key_padding_mask", cfxi_lower_argument(n, 7, "memory_key_padding_mask")},
    };
    const cfx_value memory = call_part(l, n, "encoder", &src, 1, encoder, 2);
    const cfx_value args[] = {cfxi_lower_argument(n, 1, "tgt"), memory};
    return become(l, n, call_part(l, n, "decoder", args, 2, decoder, 4));
}
