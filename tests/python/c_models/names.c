/* names.c - parts that are called as what every module of PyTorch has, and weights that are tied.
 *
 * `half`, `train`, `type` and `to` are methods there: what is generated as Python must not confuse
 * them. The embedding and the layer that undoes it share a weight, `again` is it, too, and two
 * attentions share what comes last.
 */
#include <cfx/cfx.h>

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var tokens)
{
    cfx_var x = cfx_call(s, cfx_module_child(self, "embed"), tokens);
    x = cfx_call(s, cfx_module_child(self, "half"), x);
    x = cfx_mul(s, x, cfx_module_param(s, self, "train"));
    x = cfx_add(s, x, cfx_module_param(s, self, "type"));
    x = cfx_call(s, cfx_module_child(self, "layers.to"), x);
    x = cfx_sub(s, x, cfx_module_param(s, self, "layers.float"));
    x = cfx_getitem(s, cfx_call(s, cfx_module_child(self, "one"), x, x, x), 0);
    x = cfx_getitem(s, cfx_call(s, cfx_module_child(self, "two"), x, x, x), 0);
    cfx_var y = cfx_call(s, cfx_module_child(self, "head"), x);
    cfx_var shift = cfx_sum(s, cfx_module_param(s, self, "again"), .dim = cfx_v(1));
    return cfx_add(s, y, cfx_sub(s, shift, cfx_module_param(s, self, "mask")));
}

static const cfx_class names_class = {.name = "Names", .inputs = "tokens", .forward = forward};

static cfx_tensor *some(cfx_scope *s, int64_t n)
{
    return cfx_var_tensor(s, cfx_rand(s, cfx_ints(n)));
}

static void tie(cfx_scope *s, cfx_module *m, const char *name, cfx_module *with)
{
    cfx_module_set(s, m, name, cfx_module_param(s, with, name));
}

cfx_module *cfx_model(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &names_class);
    cfx_module *embed = cfx_module_add(s, m, "embed", cfx_nn_embedding(s, 7, 4));
    cfx_module_add(s, m, "half", cfx_nn_linear(s, 4, 4));
    cfx_module_add_parameter(s, m, "train", some(s, 4));
    cfx_module_add_buffer(s, m, "type", some(s, 4));
    cfx_module *layers = cfx_module_add(s, m, "layers", cfx_module_new(s, NULL));
    cfx_module_add(s, layers, "to", cfx_nn_linear(s, 4, 4));
    cfx_module_add_parameter(s, layers, "float", some(s, 4));
    cfx_module_add(s, m, "one", cfx_nn_multihead_attention(s, 4, 2));
    cfx_module_add(s, m, "two", cfx_nn_multihead_attention(s, 4, 2));
    tie(s, cfx_module_child(m, "two.out_proj"), "weight", cfx_module_child(m, "one.out_proj"));
    tie(s, cfx_module_add(s, m, "head", cfx_nn_linear(s, 4, 7)), "weight", embed);
    cfx_module_add_parameter(s, m, "again", cfx_module_attribute(embed, "weight").as.tensor);
    cfx_module_add_buffer(s, m, "mask", some(s, 7));
    cfx_module_train(m, false);
    return m;
}

cfx_var cfx_example(cfx_scope *s)
{
    return cfx_reshape(s, cfx_arange(s, 6), cfx_ints(2, 3));
}

#include "five_ways.h"
