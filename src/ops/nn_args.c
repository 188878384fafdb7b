/* nn_args.c - the constructor's arguments of a module that is there, from its attributes.
 *
 * Most parameters are attributes of the same name; the table says which are not. A bias is there or
 * not; a stride that is not given is the kernel's size; what is known only of a part (a transformer
 * layer's width) is read there. */
#include "ops_impl.h"

#include <cfx/embed/host.h>

#include <stdio.h>

typedef struct reading {
    const cfx_module_tree *modules;
    cfx_graph *g;
    const char *path;
    cfx_nn nn;
    cfx_error *err;
} reading;

/* ---- where a parameter is to be found ------------------------------------------------------ */

typedef enum how {
    IS,        /* the attribute is what was passed */
    PRESENT,   /* whether it is not None */
    UNLESS,    /* likewise, but None if it is what `other` is */
    DTYPE_OF,  /* the type of the tensor */
    MODULE,    /* the module of that name, or None */
    LOST       /* nothing tells: it is not known to have been passed */
} how;

typedef struct source {
    cfx_nn nn;  /* NONE: any class that has no row of its own */
    const char *param;
    const char *attribute;
    how how;
    const char *other;
} source;

#define LAYER(nn, prefix)                                                                          \
    {nn, "dim_feedforward", prefix "linear1.out_features", IS, NULL},                              \
    {nn, "dropout", prefix "dropout.p", IS, NULL},                                                 \
    {nn, "activation", prefix "activation", IS, NULL},                                             \
    {nn, "layer_norm_eps", prefix "norm1.eps", IS, NULL},                                          \
    {nn, "batch_first", prefix "self_attn.batch_first", IS, NULL},                                 \
    {nn, "norm_first", prefix "norm_first", IS, NULL},                                             \
    {nn, "bias", prefix "linear1.bias", PRESENT, NULL},                                            \
    {nn, "dtype", prefix "linear1.weight", DTYPE_OF, NULL}

#define RECURRENT(nn, weight)                                                                      \
    {nn, "bias", "bias", IS, NULL},                                                                \
    {nn, "dtype", weight, DTYPE_OF, NULL}

static const source sources[] = {
    LAYER(CFX_NN_TransformerEncoderLayer, ""),
    {CFX_NN_TransformerEncoderLayer, "d_model", "self_attn.embed_dim", IS, NULL},
    {CFX_NN_TransformerEncoderLayer, "nhead", "self_attn.num_heads", IS, NULL},
    LAYER(CFX_NN_TransformerDecoderLayer, ""),
    {CFX_NN_TransformerDecoderLayer, "d_model", "self_attn.embed_dim", IS, NULL},
    {CFX_NN_TransformerDecoderLayer, "nhead", "self_attn.num_heads", IS, NULL},
    {CFX_NN_TransformerEncoder, "encoder_layer", "layers.0", MODULE, NULL},
    {CFX_NN_TransformerEncoder, "norm", "norm", MODULE, NULL},
    {CFX_NN_TransformerDecoder, "decoder_layer", "layers.0", MODULE, NULL},
    {CFX_NN_TransformerDecoder, "norm", "norm", MODULE, NULL},
    {CFX_NN_Transformer, "batch_first", "batch_first", IS, NULL},
    {CFX_NN_Transformer, "custom_encoder", NULL, LOST, NULL},
    {CFX_NN_Transformer, "custom_decoder", NULL, LOST, NULL},
    LAYER(CFX_NN_Transformer, "encoder.layers.0."),
    {CFX_NN_Transformer, "num_encoder_layers", "encoder.num_layers", IS, NULL},
    {CFX_NN_Transformer, "num_decoder_layers", "decoder.num_layers", IS, NULL},
    {CFX_NN_MultiheadAttention, "bias", "in_proj_bias", PRESENT, NULL},
    {CFX_NN_MultiheadAttention, "add_bias_kv", "bias_k", PRESENT, NULL},
    {CFX_NN_MultiheadAttention, "kdim", "kdim", UNLESS, "embed_dim"},
    {CFX_NN_MultiheadAttention, "vdim", "vdim", UNLESS, "embed_dim"},
    {CFX_NN_MultiheadAttention, "dtype", "out_proj.weight", DTYPE_OF, NULL},
    {CFX_NN_PairwiseDistance, "p", "norm", IS, NULL},
    RECURRENT(CFX_NN_RNN, "weight_ih_l0"),
    RECURRENT(CFX_NN_LSTM, "weight_ih_l0"),
    RECURRENT(CFX_NN_GRU, "weight_ih_l0"),
    RECURRENT(CFX_NN_RNNCell, "weight_ih"),
    RECURRENT(CFX_NN_LSTMCell, "weight_ih"),
    RECURRENT(CFX_NN_GRUCell, "weight_ih"),
    {CFX_NN_Hardtanh, "min_value", NULL, LOST, NULL},
    {CFX_NN_Hardtanh, "max_value", NULL, LOST, NULL},
    {CFX_NN_NONE, "bias", "bias", PRESENT, NULL},
    {CFX_NN_NONE, "stride", "stride", UNLESS, "kernel_size"},
    {CFX_NN_NONE, "dtype", "weight", DTYPE_OF, "running_mean"},
    {CFX_NN_NONE, "_weight", NULL, LOST, NULL},
    {CFX_NN_NONE, "_freeze", NULL, LOST, NULL},
    {CFX_NN_NONE, "size_average", NULL, LOST, NULL},
    {CFX_NN_NONE, "reduce", NULL, LOST, NULL},
};

static source source_of(cfx_nn nn, const cfx_schema_param *param, char name[CFX_SPELLING_SIZE])
{
    snprintf(name, CFX_SPELLING_SIZE, "%.*s", (int)param->name.size, param->name.text);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if ((sources[i].nn == nn || sources[i].nn == CFX_NN_NONE) &&
            strcmp(sources[i].param, name) == 0)
            return sources[i];
    return (source){nn, name, name, IS, NULL};
}

bool cfxi_ops_nn_attribute(cfx_nn nn, const cfx_schema_param *param, char name[CFX_SPELLING_SIZE])
{
    const source s = source_of(nn, param, name);
    const bool plain = (s.how == IS || s.how == UNLESS) && !strchr(s.attribute, '.');
    if (plain && s.attribute != name)
        snprintf(name, CFX_SPELLING_SIZE, "%s", s.attribute);
    return plain;
}

/* ---- values -------------------------------------------------------------------------------- */

static cfx_status refuse(const reading *r, const char *what, const char *name)
{
    return cfx_error_set(r->err, CFX_E_TYPE, "torch.nn.%s(...) cannot recreate the module "
                         "'%.100s': %s '%s'", cfxi_ops_nn_name(r->nn), r->path, what, name);
}

static cfx_status attribute(const reading *r, const char *name, cfx_value *v)
{
    return cfxi_ops_module_attr(r->modules, r->g, r->path, name, v, r->err);
}

static cfx_status is_there(const reading *r, const char *name, bool *there)
{
    cfx_value v;
    CFX_TRY(attribute(r, name, &v));
    *there = v.kind != CFX_KIND_INVALID && v.kind != CFX_KIND_NONE;
    cfx_value_discard(r->g, v);
    return CFX_OK;
}

/* A bias may be a flag already; a norm without a weight has none in any case. */
static cfx_status read_present(const reading *r, const source *s, cfx_value *v)
{
    bool weight = true;
    if (v->kind == CFX_KIND_BOOL)
        return CFX_OK;
    const bool there = v->kind != CFX_KIND_NONE;
    cfx_value_discard(r->g, *v);
    *v = cfx_value_bool(there);
    if (!there && strcmp(s->attribute, "bias") == 0)
        CFX_TRY(is_there(r, "weight", &weight));
    if (!weight)
        *v = cfx_value_invalid();
    return CFX_OK;
}

static cfx_status read_unless(const reading *r, const source *s, cfx_value *v)
{
    cfx_value other;
    CFX_TRY(attribute(r, s->other, &other));
    if (cfx_value_equal(*v, other)) {
        cfx_value_discard(r->g, *v);
        *v = cfx_value_none();
    }
    cfx_value_discard(r->g, other);
    return CFX_OK;
}

/* Of the first of the two that is a tensor; float32 needs no mention. */
static cfx_status read_dtype(const reading *r, const source *s, cfx_value *v)
{
    const char *const names[] = {s->attribute, s->other};
    *v = cfx_value_invalid();
    for (size_t i = 0; i < 2 && names[i]; i++) {
        char full[CFX_SPELLING_SIZE];
        bool there;
        CFX_TRY(is_there(r, names[i], &there));
        if (!there)
            continue;
        snprintf(full, sizeof full, "%s.dtype", names[i]);
        CFX_TRY(attribute(r, full, v));
        if (v->kind == CFX_KIND_DTYPE && v->as.i != CFX_DTYPE_FLOAT32)
            return CFX_OK;
        cfx_value_discard(r->g, *v);
        *v = cfx_value_invalid();
        return CFX_OK;
    }
    return CFX_OK;
}

/* An activation that is one of the two functions that have a name of their own. */
static cfx_status name_activation(const reading *r, cfx_value *v)
{
    const char *name = v->kind == CFX_KIND_HOST ? cfx_value_host_name(r->g, *v, NULL) : NULL;
    const cfx_operator op = name ? cfx_operator_find(name, strlen(name)) : CFX_OPID_NONE;
    if (v->kind == CFX_KIND_STR)
        return CFX_OK;
    cfx_value_discard(r->g, *v);
    if (op != CFX_OPID_relu && op != CFX_OPID_gelu)
        return refuse(r, "it needs 'relu' or 'gelu' as its", "activation");
    *v = cfx_value_str(r->g, op == CFX_OPID_relu ? "relu" : "gelu", 4, r->err);
    return v->kind == CFX_KIND_INVALID ? r->err->status : CFX_OK;
}

/* Where a module is that was passed; None if there is none. */
static cfx_status read_module(const reading *r, const source *s, cfx_value *v)
{
    char path[512];
    cfx_buffer class_name;
    if (snprintf(path, sizeof path, "%s%s%s", r->path, r->path[0] ? "." : "", s->attribute) >=
        (int)sizeof path)
        return refuse(r, "its path is too long for attribute", s->attribute);
    cfx_buffer_init(&class_name, cfx_graph_allocator(r->g));
    const cfx_status status = cfxi_ops_module_class(r->modules, path, &class_name, r->err);
    *v = class_name.size == 0 ? cfx_value_none()
                              : cfx_value_str(r->g, s->attribute, strlen(s->attribute), r->err);
    cfx_buffer_free(&class_name);
    if (status != CFX_OK)
        return status;
    return v->kind == CFX_KIND_INVALID ? r->err->status : CFX_OK;
}

/* What was passed, floating; INVALID if nothing tells that anything was. */
static cfx_status read_param(const reading *r, const cfx_schema_param *param, cfx_value *v)
{
    char name[CFX_SPELLING_SIZE];
    const source s = source_of(r->nn, param, name);
    *v = cfx_value_invalid();
    if (s.how == LOST)
        return CFX_OK;
    if (s.how == DTYPE_OF)
        return read_dtype(r, &s, v);
    if (s.how == MODULE)
        return read_module(r, &s, v);
    CFX_TRY(attribute(r, s.attribute, v));
    if (v->kind == CFX_KIND_INVALID)
        return refuse(r, "it has no attribute", s.attribute);
    if (s.how == PRESENT)
        return read_present(r, &s, v);
    if (s.how == UNLESS && cfxi_ops_text_is_word(param->value, "None"))
        return read_unless(r, &s, v);
    return strcmp(name, "activation") == 0 ? name_activation(r, v) : CFX_OK;
}

/* ---- defaults ------------------------------------------------------------------------------ */

static bool is_number(cfx_schema_text text, cfx_value v)
{
    double f;
    if (!cfxi_base_parse_float(text.text, text.size, &f))
        return false;
    return (v.kind == CFX_KIND_INT && (double)v.as.i == f) ||
           (v.kind == CFX_KIND_FLOAT && v.as.f == f);
}

/* Where one number stands for a tuple, a tuple of it is the same. */
static bool is_default(const cfx_schema_param *param, cfx_value v)
{
    const cfx_schema_text text = param->value;
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    if (!text.text)
        return false;
    if (v.kind == CFX_KIND_NONE)
        return cfxi_ops_text_is_word(text, "None");
    if (v.kind == CFX_KIND_BOOL)
        return cfxi_ops_text_is_word(text, v.as.b ? "True" : "False");
    if (v.kind == CFX_KIND_STR && text.size >= 2) {
        const char *word = cfx_value_text(v, &n);
        return text.text[0] == '\'' && n == text.size - 2 && memcmp(word, text.text + 1, n) == 0;
    }
    if (!items || strstr(param->type, "[]"))
        return is_number(text, v);
    for (size_t i = 0; i < n; i++)
        if (!is_number(text, items[i]))
            return false;
    return true;
}

/* ---- modules that were changed ------------------------------------------------------------- */

/* The first sizes of `weight`, by the attributes that say the same: a weight that was exchanged for
 * one of other sizes is none that the constructor makes. */
typedef struct sizes {
    const char *family;  /* how the class's name begins */
    const char *attributes[3];
} sizes;

static const sizes weights[] = {
    {"Linear", {"out_features", "in_features"}},
    {"Bilinear", {"out_features", "in1_features", "in2_features"}},
    {"Embedding", {"num_embeddings", "embedding_dim"}},
    {"ConvTranspose", {"in_channels"}},
    {"Conv", {"out_channels"}},
    {"BatchNorm", {"num_features"}},
    {"SyncBatchNorm", {"num_features"}},
    {"InstanceNorm", {"num_features"}},
    {"GroupNorm", {"num_channels"}},
    {"PReLU", {"num_parameters"}},
};

static const sizes *sizes_of(cfx_nn nn)
{
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        if (strncmp(cfxi_ops_nn_name(nn), weights[i].family, strlen(weights[i].family)) == 0)
            return &weights[i];
    return NULL;
}

static cfx_status check_sizes(const reading *r)
{
    const sizes *s = sizes_of(r->nn);
    bool there = false;
    cfx_value shape = cfx_value_invalid();
    size_t n;
    if (s)
        CFX_TRY(is_there(r, "weight", &there));
    if (there)
        CFX_TRY(attribute(r, "weight.shape", &shape));
    const cfx_value *items = cfx_value_items(shape, &n);
    cfx_status status = CFX_OK;
    for (size_t i = 0; i < n && i < 3 && s->attributes[i] && status == CFX_OK; i++) {
        cfx_value want;
        status = attribute(r, s->attributes[i], &want);
        if (status == CFX_OK && want.kind == CFX_KIND_INT && !cfx_value_equal(want, items[i]))
            status = refuse(r, "the shape of its weight does not match its attribute",
                            s->attributes[i]);
        cfx_value_discard(r->g, want);
    }
    cfx_value_discard(r->g, shape);
    return status;
}

/* ---- the whole ----------------------------------------------------------------------------- */

cfx_status cfxi_ops_nn_each_arg(const cfx_module_tree *modules, cfx_graph *g, const char *path,
                                cfx_nn nn, cfxi_ops_nn_arg_fn *fn, void *ctx, cfx_error *err)
{
    cfx_error own;
    const reading r = {modules, g, path, nn, cfxi_base_error_or(err, &own)};
    cfx_schema_param param;
    bool skipped = false;
    if (!cfxi_ops_nn_name(nn))
        return cfx_error_set(err, CFX_E_TYPE, "the class of the module '%.100s' is not in cfx's "
                             "table of torch.nn classes", path);
    if (nn == CFX_NN_Sequential || nn == CFX_NN_ModuleList || nn == CFX_NN_ModuleDict)
        return cfx_error_set(err, CFX_E_TYPE, "torch.nn.%s(...) cannot recreate the module "
                             "'%.100s' with its children; capture the modules it calls instead",
                             cfxi_ops_nn_name(nn), path);
    CFX_TRY(check_sizes(&r));
    for (size_t i = 0; cfxi_ops_nn_param(nn, i, &param); i++) {
        cfx_value v;
        CFX_TRY(read_param(&r, &param, &v));
        if (v.kind == CFX_KIND_INVALID || is_default(&param, v)) {
            cfx_value_discard(g, v);
            skipped = true;
            continue;
        }
        const cfx_status status = fn(ctx, &param, skipped || param.keyword_only, v, err);
        cfx_value_discard(g, v);
        CFX_TRY(status);
    }
    return CFX_OK;
}
