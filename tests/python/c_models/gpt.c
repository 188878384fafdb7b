/* gpt.c - a language model: layers made in a loop, a causal mask that is a buffer of bools, and an
 * embedding whose weight is also the last layer's. Sequences may be shorter than the mask. */
#include <cfx/cfx.h>
#include <math.h>
#include <stdio.h>

enum { WORDS = 40, WIDTH = 16, HEADS = 4, LAYERS = 3, LONGEST = 12 };

static cfx_var heads(cfx_scope *s, cfx_var x, cfx_var batch, cfx_var length)
{
    cfx_var sizes = cfx_tuple(s, batch, length, cfx_v(HEADS), cfx_v(WIDTH / HEADS));
    return cfx_transpose(s, cfx_view(s, x, sizes), 1, 2);
}

static cfx_var attend(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var batch = cfx_size(s, x, .dim = cfx_v(0));
    cfx_var length = cfx_size(s, x, .dim = cfx_v(1));
    cfx_var parts =
        cfx_split(s, cfx_call(s, cfx_module_child(self, "qkv"), x), WIDTH, .dim = cfx_v(2));
    cfx_var q = heads(s, cfx_getitem(s, parts, 0), batch, length);
    cfx_var k = heads(s, cfx_getitem(s, parts, 1), batch, length);
    cfx_var v = heads(s, cfx_getitem(s, parts, 2), batch, length);
    cfx_var first = cfx_slice_of(s, cfx_var_none(), length, cfx_var_none());
    cfx_var seen = cfx_getitem(s, cfx_module_param(s, self, "mask"), cfx_tuple(s, first, first));
    cfx_var scores = cfx_mul(s, cfx_matmul(s, q, cfx_transpose(s, k, -2, -1)), 0.5);
    scores = cfx_masked_fill(s, scores, cfx_logical_not(s, seen), -INFINITY);
    cfx_var y = cfx_transpose(s, cfx_matmul(s, cfx_softmax(s, scores, -1), v), 1, 2);
    y = cfx_reshape(s, y, cfx_tuple(s, batch, length, cfx_v(WIDTH)));
    return cfx_call(s, cfx_module_child(self, "out"), y);
}

static const cfx_class attention_class = {.name = "Attention", .forward = attend};

static cfx_var block(cfx_scope *s, cfx_module *self, cfx_var x)
{
    cfx_var h =
        cfx_call(s, cfx_module_child(self, "attn"), cfx_call(s, cfx_module_child(self, "ln_1"), x));
    x = cfx_add(s, x, h);
    h = cfx_call(s, cfx_module_child(self, "mlp.wide"),
                 cfx_call(s, cfx_module_child(self, "ln_2"), x));
    h = cfx_gelu(s, h, .approximate = cfx_v("tanh"));
    return cfx_add(s, x, cfx_call(s, cfx_module_child(self, "mlp.back"), h));
}

static const cfx_class block_class = {.name = "Block", .forward = block};

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var words)
{
    cfx_var places = cfx_arange(s, cfx_size(s, words, .dim = cfx_v(1)));
    cfx_var x = cfx_call(s, cfx_module_child(self, "wte"), words);
    x = cfx_add(s, x, cfx_call(s, cfx_module_child(self, "wpe"), places));
    for (int i = 0; i < LAYERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "layers.%d", i);
        x = cfx_call(s, cfx_module_child(self, name), x);
    }
    return cfx_linear(s, x, cfx_module_param(s, self, "wte.weight"));
}

static const cfx_class gpt_class = {.name = "GPT", .inputs = "words", .forward = forward};

static cfx_module *make_block(cfx_scope *s, cfx_tensor *mask)
{
    cfx_module *m = cfx_module_new(s, &block_class);
    cfx_module *attn = cfx_module_add(s, m, "attn", cfx_module_new(s, &attention_class));
    cfx_module *mlp = cfx_module_add(s, m, "mlp", cfx_module_new(s, NULL));
    cfx_module_add(s, m, "ln_1", cfx_nn_layer_norm(s, WIDTH));
    cfx_module_add(s, m, "ln_2", cfx_nn_layer_norm(s, cfx_ints(WIDTH), .bias = cfx_v(false)));
    cfx_module_add(s, attn, "qkv", cfx_nn_linear(s, WIDTH, 3 * WIDTH));
    cfx_module_add(s, attn, "out", cfx_nn_linear(s, WIDTH, WIDTH));
    cfx_module_add_buffer(s, attn, "mask", mask);
    cfx_module_add(s, mlp, "wide", cfx_nn_linear(s, WIDTH, 4 * WIDTH));
    cfx_module_add(s, mlp, "back", cfx_nn_linear(s, 4 * WIDTH, WIDTH));
    return m;
}

cfx_module *cfx_model(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &gpt_class);
    cfx_module_add(s, m, "wte", cfx_nn_embedding(s, WORDS, WIDTH));
    cfx_module_add(s, m, "wpe", cfx_nn_embedding(s, LONGEST, WIDTH));
    cfx_module *layers = cfx_module_add(s, m, "layers", cfx_module_new(s, NULL));
    cfx_var all = cfx_ones(s, cfx_ints(LONGEST, LONGEST), .dtype = cfx_var_dtype(CFX_DTYPE_BOOL));
    for (int i = 0; i < LAYERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "%d", i);
        cfx_module_add(s, layers, name, make_block(s, cfx_var_tensor(s, cfx_tril(s, all))));
    }
    return m;
}

cfx_var cfx_example(cfx_scope *s) { return cfx_randint(s, 0, WORDS, cfx_ints(2, 7)); }

#include "five_ways.h"
