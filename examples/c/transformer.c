/* transformer.c - a small language model: tokens, two pre-norm transformer blocks, logits.
 *
 *     make build/examples/c/transformer && build/examples/c/transformer
 *     build/cfx trace --shapes 'tokens=int64[B, T]' examples/c/transformer.c
 *
 * Nothing depends on the sizes of a batch: with symbols for them, as above, the graph is captured
 * once for all, and checked for all.
 */
#include <cfx/cfx.h>

enum { TOKENS = 100, CONTEXT = 32, WIDTH = 64, HEADS = 4 };

/* ---- attention ----------------------------------------------------------------------------- */

/* [batch, tokens, width] to [batch, heads, tokens, width / heads]. */
static cfx_var split_heads(cfx_scope *s, cfx_module *self, cfx_var x)
{
    const int64_t heads = cfx_module_attribute(self, "num_heads").as.i;
    return cfx_transpose(s, cfx_unflatten(s, x, -1, cfx_ints(s, heads, -1)), 1, 2);
}

static cfx_var attention_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var parts = cfx_chunk(s, cfx_call_child(s, self, "qkv", x), 3, .dim = cfx_v(-1));
    cfx_var query = split_heads(s, self, cfx_getitem(s, parts, 0));
    cfx_var key = split_heads(s, self, cfx_getitem(s, parts, 1));
    cfx_var value = split_heads(s, self, cfx_getitem(s, parts, 2));
    cfx_var y = cfx_scaled_dot_product_attention(s, query, key, value, .is_causal = cfx_v(true));
    y = cfx_flatten(s, cfx_transpose(s, y, 1, 2), .start_dim = cfx_v(2));
    return cfx_call_child(s, self, "proj", y);
}

static const cfx_class attention_class = {.name = "Attention", .forward = attention_forward};

static cfx_module *attention(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &attention_class);
    cfx_module_set(s, m, "num_heads", HEADS);
    cfx_module_add(s, m, "qkv", cfx_nn_linear(s, WIDTH, 3 * WIDTH));
    cfx_module_add(s, m, "proj", cfx_nn_linear(s, WIDTH, WIDTH));
    return m;
}

/* ---- a block ------------------------------------------------------------------------------- */

static cfx_var mlp(cfx_scope *s, cfx_module *self, cfx_var x)
{
    x = cfx_gelu(s, cfx_call_child(s, self, "fc1", x));
    return cfx_call_child(s, self, "dropout", cfx_call_child(s, self, "fc2", x));
}

static cfx_var block_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    x = cfx_add(s, x, cfx_call_child(s, self, "attention", cfx_call_child(s, self, "norm1", x)));
    return cfx_add(s, x, mlp(s, self, cfx_call_child(s, self, "norm2", x)));
}

static const cfx_class block_class = {.name = "Block", .forward = block_forward};

static cfx_module *block(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &block_class);
    cfx_module_add(s, m, "norm1", cfx_nn_layer_norm(s, WIDTH));
    cfx_module_add(s, m, "attention", attention(s));
    cfx_module_add(s, m, "norm2", cfx_nn_layer_norm(s, WIDTH));
    cfx_module_add(s, m, "fc1", cfx_nn_linear(s, WIDTH, 4 * WIDTH));
    cfx_module_add(s, m, "fc2", cfx_nn_linear(s, 4 * WIDTH, WIDTH));
    cfx_module_add(s, m, "dropout", cfx_nn_dropout(s, .p = cfx_v(0.1)));
    return m;
}

/* ---- the model ----------------------------------------------------------------------------- */

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var tokens)
{
    cfx_var places = cfx_arange(s, cfx_size(s, tokens, .dim = cfx_v(1)));
    cfx_var x = cfx_call_child(s, self, "embed", tokens);
    x = cfx_add(s, x, cfx_call_child(s, self, "places", places));
    x = cfx_call_child(s, self, "blocks", x);
    return cfx_call_child(s, self, "head", cfx_call_child(s, self, "norm", x));
}

static const cfx_class model_class = {.name = "Transformer", .inputs = "tokens",
                                      .forward = forward};

cfx_module *cfx_model(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &model_class);
    cfx_module_add(s, m, "embed", cfx_nn_embedding(s, TOKENS, WIDTH));
    cfx_module_add(s, m, "places", cfx_nn_embedding(s, CONTEXT, WIDTH));
    cfx_module *blocks = cfx_module_add(s, m, "blocks", cfx_nn_sequential(s));
    cfx_module_add(s, blocks, "0", block(s));
    cfx_module_add(s, blocks, "1", block(s));
    cfx_module_add(s, m, "norm", cfx_nn_layer_norm(s, WIDTH));
    cfx_module_add(s, m, "head", cfx_nn_linear(s, WIDTH, TOKENS, .bias = cfx_v(false)));
    cfx_module_train(m, false);
    return m;
}

cfx_var cfx_example(cfx_scope *s) { return cfx_randint(s, 0, TOKENS, cfx_ints(s, 2, 16)); }

#include "five_ways.h"
