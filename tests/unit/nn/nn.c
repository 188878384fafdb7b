/* nn.c - the classes of torch.nn: the table, modules made in C, mistakes, arguments read back.
 * (What PyTorch makes of the same arguments: tests/python/test_nn_in_c.py.) */
#include "test_alloc.h"
#include "ops/ops_impl.h"

#include <cfx/cfx.h>

#include <stdio.h>
#include <string.h>

/* ---- the table ----------------------------------------------------------------------------- */

TEST(rows)
{
    cfx_schema_param param;
    CHECK_INT_EQ(CFX_NN_Linear, cfxi_ops_nn_find("Linear"));
    CHECK_INT_EQ(CFX_NN_Conv2d, cfxi_ops_nn_find("torch.nn.Conv2d"));
    CHECK_INT_EQ(CFX_NN_NONE, cfxi_ops_nn_find("torch.nn.Lin"));
    CHECK_INT_EQ(CFX_NN_NONE, cfxi_ops_nn_find(""));
    CHECK_STR_EQ("GELU", cfxi_ops_nn_name(CFX_NN_GELU));
    CHECK_STR_EQ("multihead_attention", cfxi_ops_nn_function(CFX_NN_MultiheadAttention));
    CHECK_STR_EQ("(bool inplace=False)", cfxi_ops_nn_schema(CFX_NN_ReLU));
    CHECK(!cfxi_ops_nn_name(CFX_NN_NONE) && !cfxi_ops_nn_function(CFX_NN_NONE));
    CHECK(!cfxi_ops_nn_schema(CFX_NN_COUNT) && !cfxi_ops_nn_param(CFX_NN_NONE, 0, &param));
    REQUIRE(cfxi_ops_nn_param(CFX_NN_Linear, 2, &param));
    CHECK_STR_EQ("bool", param.type);
    CHECK(!param.keyword_only);
    CHECK(param.name.size == 4 && memcmp(param.name.text, "bias", 4) == 0);
    CHECK(param.value.size == 4 && memcmp(param.value.text, "True", 4) == 0);
    REQUIRE(cfxi_ops_nn_param(CFX_NN_Linear, 3, &param));
    CHECK(param.keyword_only);
    CHECK(!cfxi_ops_nn_param(CFX_NN_Linear, 4, &param));
}

TEST(every_row_is_found_by_its_name)
{
    for (int i = CFX_NN_NONE + 1; i < CFX_NN_COUNT; i++)
        CHECK_INT_EQ(i, cfxi_ops_nn_find(cfxi_ops_nn_name((cfx_nn)i)));
}

/* ---- making -------------------------------------------------------------------------------- */

/* Something for a parameter without a default. */
static cfx_var sample(const cfx_schema_param *param)
{
    if (strncmp(param->type, "float", 5) == 0)
        return cfx_var_float(2);
    return cfx_var_int(4);
}

static cfx_module *make_sample(cfx_scope *s, cfx_nn nn)
{
    cfx_var args[16] = {{0}};
    cfx_schema_param param;
    size_t n = 0;
    for (; cfxi_ops_nn_param(nn, n, &param); n++)
        if (!param.value.text)
            args[n] = sample(&param);
    if (nn == CFX_NN_FractionalMaxPool2d)
        args[1] = cfx_var_int(3);
    return cfx_nn_make_at(CFX_HERE(s), nn, args, n);
}

TEST(every_class_can_be_made)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    REQUIRE(s);
    for (int i = CFX_NN_NONE + 1; i < CFX_NN_COUNT; i++) {
        const cfx_nn nn = (cfx_nn)i;
        char name[64];
        if (nn == CFX_NN_Transformer || strstr(cfxi_ops_nn_schema(nn), "Module "))
            continue;  /* a large one by default; made of parts */
        cfx_module *m = make_sample(s, nn);
        snprintf(name, sizeof name, "torch.nn.%s", cfxi_ops_nn_name(nn));
        if (!CHECK_STR_EQ("", cfx_scope_error(s)->message) || !CHECK(m))
            break;
        CHECK_STR_EQ(name, cfx_module_class_name(m));
        CHECK(cfx_module_is_training(m));
    }
    cfx_scope_free(s);
}

static void check_state(cfx_scope *s, cfx_module *m, const char *want)
{
    char got[1000] = "";
    size_t used = 0;
    cfx_state *state = cfx_module_state(s, m);
    for (size_t i = 0; state && i < cfx_state_size(state); i++) {
        cfx_tensor *t;
        used += (size_t)snprintf(got + used, sizeof got - used, "%s%s[", i > 0 ? " " : "",
                                 cfx_state_entry(state, i, &t));
        for (size_t k = 0; k < cfx_tensor_ndim(t); k++)
            used += (size_t)snprintf(got + used, sizeof got - used, "%s%lld", k > 0 ? "," : "",
                                     (long long)cfx_tensor_sizes(t)[k]);
        used += (size_t)snprintf(got + used, sizeof got - used, "]");
    }
    CHECK_STR_EQ(want, got);
    cfx_state_free(state);
}

TEST(weights_have_their_names_and_sizes)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    REQUIRE(s);
    check_state(s, cfx_nn_linear(s, 2, 3), "weight[3,2] bias[3]");
    check_state(s, cfx_nn_linear(s, 2, 3, .bias = cfx_v(false)), "weight[3,2]");
    check_state(s, cfx_nn_conv2d(s, 4, 6, 3, .groups = cfx_v(2), .padding = cfx_v("same")),
                "weight[6,2,3,3] bias[6]");
    check_state(s, cfx_nn_conv_transpose1d(s, 4, 6, cfx_ints(s, 5), .groups = cfx_v(2)),
                "weight[4,3,5] bias[6]");
    check_state(s, cfx_nn_batch_norm2d(s, 4),
                "weight[4] bias[4] running_mean[4] running_var[4] num_batches_tracked[]");
    check_state(s, cfx_nn_layer_norm(s, cfx_ints(s, 2, 3), .bias = cfx_v(false)), "weight[2,3]");
    check_state(s, cfx_nn_lstm(s, 2, 4, .proj_size = cfx_v(3), .bias = cfx_v(0)),
                "weight_ih_l0[16,2] weight_hh_l0[16,3] weight_hr_l0[3,4]");
    check_state(s, cfx_nn_multihead_attention(s, 4, 2, .add_bias_kv = cfx_v(true)),
                "in_proj_weight[12,4] in_proj_bias[12] bias_k[1,1,4] bias_v[1,1,4] "
                "out_proj.weight[4,4] out_proj.bias[4]");
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

TEST(a_module_computes)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    REQUIRE(s);
    cfx_module *m = cfx_nn_prelu(s, .init = cfx_v(0.5));
    cfx_var y = cfx_call(s, m, cfx_full(s, cfx_ints(s, 1), -4.0));
    CHECK(cfx_var_number(s, cfx_sum(s, y)) == -2);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

TEST(the_seed_decides)
{
    float first[2] = {0, 0};
    for (size_t i = 0; i < 2; i++) {
        cfx_scope *s = cfx_scope_new(&(cfx_scope_options){.seed = 5}, NULL);
        REQUIRE(s);
        cfx_datum w = cfx_module_attribute(cfx_nn_linear(s, 8, 8), "weight");
        REQUIRE(w.kind == CFX_DATUM_TENSOR);
        const float *data = cfx_tensor_data(w.as.tensor);
        first[i] = data[0];
        for (size_t k = 0; k < 64; k++)
            CHECK(data[k] >= -0.36f && data[k] <= 0.36f);  /* 1 / sqrt(8) */
        CHECK(data[0] != data[1]);
        cfx_scope_free(s);
    }
    CHECK(first[0] == first[1]);
}

TEST(a_given_weight_is_shared)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    REQUIRE(s);
    cfx_var w = cfx_zeros(s, cfx_ints(s, 3, 2));
    cfx_module *m = cfx_nn_embedding(s, 3, 2, ._weight = w);
    CHECK(cfx_module_attribute(m, "weight").as.tensor == cfx_var_tensor(s, w));
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

/* ---- mistakes ------------------------------------------------------------------------------ */

static void check_mistake(cfx_scope *s, cfx_module *m, int line, const char *want)
{
    char full[300];
    snprintf(full, sizeof full, "%s:%d: torch.nn.%s", __FILE__, line, want);
    CHECK(!m);
    CHECK_STR_EQ(full, cfx_scope_error(s)->message);
    cfx_scope_clear_error(s);
}
#define CHECK_MISTAKE(s, m, want) check_mistake(s, m, __LINE__, want)

TEST(mistakes_are_told_with_the_line)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    REQUIRE(s);
    CHECK_MISTAKE(s, cfx_nn_linear(s, -2, 3),
                  "Linear: in_features must be at least 0, not -2");
    CHECK_MISTAKE(s, cfx_nn_linear(s, 2, "three"), "Linear: out_features must be an int, not str");
    CHECK_MISTAKE(s, cfx_nn_linear(s, 2, cfx_var_empty()),
                  "Linear: argument 'out_features' is required");
    CHECK_MISTAKE(s, cfx_nn_linear(s, 2, 3, .bias = cfx_v(2)),
                  "Linear: bias must be a bool, not int");
    CHECK_MISTAKE(s, cfx_nn_conv2d(s, 3, 4, 3, .groups = cfx_v(2)),
                  "Conv2d: in_channels 3 is not divisible by groups 2");
    CHECK_MISTAKE(s, cfx_nn_conv2d(s, 3, 4, 3, .padding = cfx_v("full")),
                  "Conv2d: padding must be one of 'valid', 'same', not 'full'");
    CHECK_MISTAKE(s, cfx_nn_conv2d(s, 3, 4, 3, .padding = cfx_ints(s, 1, 2, 3)),
                  "Conv2d: padding must be 'valid', 'same', an int, or 2 ints");
    CHECK_MISTAKE(s, cfx_nn_conv2d(s, 3, 4, cfx_ints(s, 3, 3, 3)),
                  "Conv2d: kernel_size needs 2 items, not 3");
    CHECK_MISTAKE(s, cfx_nn_layer_norm(s, cfx_v(0.5)),
                  "LayerNorm: normalized_shape must be an int or ints, not float");
    CHECK_MISTAKE(s, cfx_nn_linear(s, INT64_MAX / 2, 16),
                  "Linear: weight: the tensor has more bytes than memory can hold");
    CHECK_MISTAKE(s, cfx_nn_lstm(s, 2, INT64_MAX), "LSTM: hidden_size is too large");
    CHECK_MISTAKE(s, cfx_nn_conv1d(s, 1, 1, INT64_MAX, .dilation = cfx_v(INT64_MAX),
                                   .padding = cfx_v("same")),
                  "Conv1d: kernel_size and dilation are too large for padding 'same'");
    CHECK_MISTAKE(s, cfx_nn_make_at(CFX_HERE(s), CFX_NN_TransformerEncoder, NULL, 0),
                  "TransformerEncoder: this class takes modules; create it as part of "
                  "torch.nn.Transformer");
    CHECK_MISTAKE(s, cfx_nn_transformer(s, .custom_encoder = cfx_v(1)),
                  "Transformer: custom_encoder and custom_decoder are not supported; write a class "
                  "that calls those modules");
    cfx_scope_free(s);
}

TEST(after_a_failure_nothing_is_made)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    REQUIRE(s);
    cfx_module *bad = cfx_nn_dropout(s, .p = cfx_v(2));
    CHECK(!cfx_nn_relu(s));
    CHECK(!cfx_call(s, bad, cfx_v(1)).kind);
    CHECK(strstr(cfx_scope_error(s)->message, "p must be between 0 and 1, not 2"));
    cfx_scope_free(s);
    cfx_error err = {0};
    s = cfx_scope_new(NULL, &err);
    CHECK(!cfx_nn_make_at(CFX_HERE(s), CFX_NN_NONE, NULL, 0));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_scope_error(s)->status);
    cfx_scope_free(s);
}

/* ---- arguments, read back ------------------------------------------------------------------ */

typedef struct text {
    cfx_graph *g;
    cfx_buffer buffer;
} text;

static cfx_status add_arg(void *ctx, const cfx_schema_param *param, bool keyword, cfx_value v,
                          cfx_error *err)
{
    text *t = ctx;
    const cfx_sink out = cfx_buffer_sink(&t->buffer);
    cfx_status status = cfx_buffer_append(&t->buffer, ", ", t->buffer.size > 0 ? 2 : 0);
    if (status == CFX_OK && keyword)
        status = cfx_buffer_append(&t->buffer, param->name.text, param->name.size);
    if (status == CFX_OK && keyword)
        status = cfx_buffer_append(&t->buffer, "=", 1);
    return status == CFX_OK ? cfx_value_print(t->g, v, out, err) : status;
}

static cfx_status args_of(cfx_module *m, const char *path, cfx_nn nn, const cfx_allocator *a,
                          char *out, size_t size, cfx_error *err)
{
    text t = {.g = cfx_graph_new(a, NULL, err)};
    if (!t.g)
        return err->status;
    cfx_buffer_init(&t.buffer, a);
    const cfx_module_tree tree = cfx_module_as_tree(m);
    const cfx_status status = cfxi_ops_nn_each_arg(&tree, t.g, path, nn, add_arg, &t, err);
    snprintf(out, size, "%s", t.buffer.data);
    cfx_buffer_free(&t.buffer);
    cfx_graph_release(t.g);
    return status;
}

static void check_args(cfx_module *m, cfx_nn nn, const char *want)
{
    char got[200];
    cfx_error err = {0};
    CHECK_INT_EQ(CFX_OK, args_of(m, "", nn, NULL, got, sizeof got, &err));
    CHECK_STR_EQ("", err.message);
    CHECK_STR_EQ(want, got);
}

TEST(arguments_are_read_back)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    REQUIRE(s);
    check_args(cfx_nn_linear(s, 2, 3), CFX_NN_Linear, "2, 3");
    check_args(cfx_nn_linear(s, 2, 3, .bias = cfx_v(0), .dtype = cfx_var_dtype(CFX_DTYPE_FLOAT64)),
               CFX_NN_Linear, "2, 3, False, dtype=torch.float64");
    check_args(cfx_nn_conv2d(s, 1, 2, 3, .padding = cfx_v(1), .bias = cfx_v(false)), CFX_NN_Conv2d,
               "1, 2, (3, 3), padding=(1, 1), bias=False");
    check_args(cfx_nn_max_pool2d(s, 2), CFX_NN_MaxPool2d, "2");
    check_args(cfx_nn_max_pool2d(s, 2, .stride = cfx_v(1)), CFX_NN_MaxPool2d, "2, 1");
    check_args(cfx_nn_batch_norm1d(s, 4, .affine = cfx_v(false)), CFX_NN_BatchNorm1d,
               "4, affine=False");
    check_args(cfx_nn_layer_norm(s, 4, .bias = cfx_v(false)), CFX_NN_LayerNorm, "(4,), bias=False");
    check_args(cfx_nn_gru(s, 2, 3, .dropout = cfx_v(0)), CFX_NN_GRU, "2, 3");
    check_args(cfx_nn_multihead_attention(s, 4, 2, .kdim = cfx_v(3), .bias = cfx_v(false)),
               CFX_NN_MultiheadAttention, "4, 2, bias=False, kdim=3");
    check_args(cfx_nn_transformer_encoder_layer(s, 4, 2, .dim_feedforward = cfx_v(8)),
               CFX_NN_TransformerEncoderLayer, "4, 2, 8");
    check_args(cfx_nn_pairwise_distance(s, .p = cfx_v(1)), CFX_NN_PairwiseDistance, "1.0");
    check_args(cfx_nn_l1_loss(s, .size_average = cfx_v(false)), CFX_NN_L1Loss, "reduction=sum");
    check_args(cfx_nn_tanh(s), CFX_NN_Tanh, "");
    cfx_scope_free(s);
}

TEST(what_no_call_makes)
{
    char got[200];
    cfx_error err = {0};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    REQUIRE(s);
    cfx_module *root = cfx_module_new(s, NULL);
    cfx_module_add(s, root, "fc", cfx_nn_linear(s, 2, 3));
    CHECK_INT_EQ(CFX_E_TYPE,
                 args_of(root, "fc", CFX_NN_Conv2d, NULL, got, sizeof got, &err));
    CHECK_STR_EQ(
        "torch.nn.Conv2d(...) cannot recreate the module 'fc': it has no attribute 'in_channels'",
        err.message);
    err = (cfx_error){0};
    CHECK_INT_EQ(CFX_E_TYPE, args_of(root, "fc", CFX_NN_NONE, NULL, got, sizeof got, &err));
    CHECK_STR_EQ("the class of the module 'fc' is not in cfx's table of torch.nn classes",
                 err.message);
    err = (cfx_error){0};
    CHECK_INT_EQ(CFX_E_TYPE,
                 args_of(root, "fc", CFX_NN_TransformerDecoder, NULL, got, sizeof got, &err));
    err = (cfx_error){0};
    cfx_module_add(s, root, "seq", cfx_nn_sequential(s));
    CHECK_INT_EQ(CFX_E_TYPE, args_of(root, "seq", CFX_NN_Sequential, NULL, got, sizeof got, &err));
    CHECK_STR_EQ("torch.nn.Sequential(...) cannot recreate the module 'seq' with its children; "
                 "capture the modules it calls instead",
                 err.message);
    err = (cfx_error){0};
    cfx_module_set(s, cfx_module_child(root, "fc"), "in_features", 5);
    CHECK_INT_EQ(CFX_E_TYPE, args_of(root, "fc", CFX_NN_Linear, NULL, got, sizeof got, &err));
    CHECK_STR_EQ("torch.nn.Linear(...) cannot recreate the module 'fc': the shape of its weight "
                 "does not match its attribute 'in_features'",
                 err.message);
    cfx_scope_free(s);
}

/* ---- memory -------------------------------------------------------------------------------- */

static cfx_status make_some(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    char got[200];
    (void)arg;
    cfx_scope *s = cfx_scope_new(&(cfx_scope_options){.allocator = a, .threads = 1}, &err);
    if (!s)
        return err.status;
    cfx_module *conv = cfx_nn_conv2d(s, 2, 2, 3, .padding = cfx_v("same"));
    cfx_nn_batch_norm1d(s, 2);
    cfx_nn_embedding(s, 3, 2, .padding_idx = cfx_v(-1));
    cfx_nn_lstm(s, 2, 2, .bidirectional = cfx_v(true));
    cfx_module *layer = cfx_nn_transformer_encoder_layer(s, 2, 1, .dim_feedforward = cfx_v(2));
    cfx_nn_upsample(s, .scale_factor = cfx_v(2));
    cfx_status status = cfx_scope_error(s)->status;
    if (status == CFX_OK)
        status = args_of(conv, "", CFX_NN_Conv2d, a, got, sizeof got, &err);
    if (status == CFX_OK)
        status = args_of(layer, "", CFX_NN_TransformerEncoderLayer, a, got, sizeof got, &err);
    cfx_scope_free(s);
    return status;
}

TEST(running_out_of_memory) { CHECK(test_oom_sweep(make_some, NULL) > 100); }

static cfx_status make_transformer(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    (void)arg;
    cfx_scope *s = cfx_scope_new(&(cfx_scope_options){.allocator = a, .threads = 1}, &err);
    if (!s)
        return err.status;
    cfx_nn_transformer(s, .d_model = cfx_v(2), .nhead = cfx_v(1), .num_encoder_layers = cfx_v(1),
                       .num_decoder_layers = cfx_v(1), .dim_feedforward = cfx_v(2));
    const cfx_status status = cfx_scope_error(s)->status;
    cfx_scope_free(s);
    return status;
}

TEST(running_out_of_memory_in_parts) { CHECK(test_oom_sweep(make_transformer, NULL) > 100); }
