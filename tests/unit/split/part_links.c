/* part_links.c - programs that make all that a graph names: what is tied, what has a taken name. */
#include "scope_test.h"

#include <cfx/cfx.h>

#include <stdio.h>
#include <string.h>

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    x = cfx_call(s, cfx_module_child(self, "half"), x);
    x = cfx_call(s, cfx_module_child(self, "again"), x);
    x = cfx_call(s, cfx_module_child(self, "head"), x);
    x = cfx_add(s, x, cfx_module_param(s, self, "train"));
    x = cfx_add(s, x, cfx_module_param(s, cfx_module_child(self, "parts"), "type"));
    return cfx_matmul(s, x, cfx_module_param(s, self, "tied"));
}

static const cfx_class net_class = {.name = "Net", .forward = forward};

static cfx_module *net(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, &net_class);
    cfx_module *half = cfx_module_add(s, m, "half", cfx_nn_linear(s, 2, 2));
    cfx_module_add(s, m, "again", half);
    cfx_module *head = cfx_module_add(s, m, "head", cfx_nn_linear(s, 2, 2));
    cfx_var weight = cfx_module_param(s, half, "weight");
    cfx_module_set(s, head, "weight", weight);
    cfx_module_add_parameter(s, m, "train", cfx_var_tensor(s, cfx_ones(s, cfx_ints(s, 2))));
    cfx_module *parts = cfx_module_add(s, m, "parts", cfx_module_new(s, NULL));
    cfx_module_add_buffer(s, parts, "type", cfx_var_tensor(s, cfx_ones(s, cfx_ints(s, 2))));
    cfx_module_add_parameter(s, m, "tied", cfx_scope_ok(s) ? cfx_var_tensor(s, weight) : NULL);
    return m;
}

static void generate(cfx_scope *s, cfx_module *t, bool python, cfx_buffer *out)
{
    cfx_error err = {0};
    const cfx_module_tree tree = cfx_module_as_tree(t);
    cfx_status status = CFX_OK;
    if (!cfx_scope_ok(s))
        return;
    status = python
                 ? cfx_codegen_python_module(cfx_module_graph(t), &tree, "Net",
                                             cfx_buffer_sink(out), &err)
                 : cfx_codegen_c(cfx_module_graph(t), &tree, "Net", cfx_buffer_sink(out), &err);
    if (status != CFX_OK)
        cfx_scope_fail(s, status, "%s", err.message);
}

static void check_has(const cfx_buffer *text, const char *const *lines)
{
    for (; *lines; lines++)
        if (!CHECK(strstr(text->data, *lines) != NULL))
            printf("    no   %s\n", *lines);
}

/* A trace calls what it has seen by its first name: this names each. */
static const char names_all[] =
    "graph():\n"
    "  %x = placeholder[target=x]()\n"
    "  %half = call_module[target=half](%x)\n"
    "  %again = call_module[target=again](%half)\n"
    "  %head = call_module[target=head](%again)\n"
    "  %train = get_attr[target=train]()\n"
    "  %add = call_function[target=torch.add](%head, %train)\n"
    "  %type = get_attr[target=parts.type]()\n"
    "  %add_1 = call_function[target=torch.add](%add, %type)\n"
    "  %tied = get_attr[target=tied]()\n"
    "  %matmul = call_function[target=torch.matmul](%add_1, %tied)\n"
    "  output(%matmul)\n";

TEST(what_is_tied_is_made_once)
{
    static const char *const python[] = {
        "        self._modules[\"half\"] = torch.nn.Linear(2, 2)\n",
        "        self.again = self._modules[\"half\"]\n",
        "        self.head = torch.nn.Linear(2, 2)\n"
        "        self.head.weight = self._modules[\"half\"].weight\n",
        "        self._parameters[\"train\"] = torch.nn.Parameter(torch.zeros(2))\n",
        "        self.parts._buffers[\"type\"] = torch.zeros(2)\n",
        "        self.tied = self._modules[\"half\"].weight\n",
        "= self._modules[\"half\"](x);", "= self.again(half);", "= self._parameters[\"train\"]\n",
        "= self.parts._buffers[\"type\"]\n", "= self.tied\n", NULL};
    static const char *const c[] = {
        "    cfx_module_add(s, self, \"again\", cfx_module_child(self, \"half\"));\n",
        "    cfx_module_set(s, cfx_module_child(self, \"head\"), \"weight\",\n"
        "                   cfx_module_param(s, self, \"half.weight\"));\n",
        "    cfx_module_add_parameter(s, self, \"tied\",\n"
        "                             cfx_var_tensor(s, cfx_module_param(s, self, "
        "\"half.weight\")));\n", NULL};
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_graph *g = cfx_graph_parse(names_all, sizeof names_all - 1, NULL, NULL, NULL);
    cfx_module *t = cfx_module_from_graph(s, g, "Net", net(s));
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    generate(s, t, true, &text);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    check_has(&text, python);
    text.size = 0;
    generate(s, t, false, &text);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    check_has(&text, c);
    cfx_buffer_free(&text);
    cfx_graph_release(g);
    cfx_scope_free(s);
}

static void everything(cfx_scope *s, const cfx_allocator *a)
{
    cfx_module *t = cfx_trace(s, net(s));
    cfx_buffer text;
    cfx_buffer_init(&text, a);
    generate(s, t, true, &text);
    generate(s, t, false, &text);
    cfx_buffer_free(&text);
}

TEST(memory_may_run_out_anywhere) { CHECK(scope_oom_sweep(everything) > 50); }
