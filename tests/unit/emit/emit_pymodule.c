/* emit_pymodule.c - Python modules that are complete without their weights. */
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <math.h>

static const char *const text =
    "graph():\n"
    "  %x = placeholder[target=x]()\n"
    "  %fc = call_module[target=fc](%x)\n"
    "  %same = call_module[target=deep.same](%fc)\n"
    "  %act = call_module[target=deep.class](%same)\n"
    "  %w = get_attr[target=deep.0.__w]()\n"
    "  %b = get_attr[target=count]()\n"
    "  %add = call_function[target=torch.add](%act, %w)\n"
    "  %eps = get_attr[target=eps]()\n"
    "  %far = get_attr[target=far]()\n"
    "  output((%add, %b, %eps, %far))\n";

static cfx_module *modules_of(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, NULL);
    cfx_module *deep = cfx_module_add(s, m, "deep", cfx_module_new(s, NULL));
    cfx_module *first = cfx_module_add(s, deep, "0", cfx_module_new(s, NULL));
    cfx_module_add(s, m, "fc", cfx_nn_linear(s, 4, 4, .bias = cfx_v(false)));
    cfx_module_add(s, deep, "same", cfx_module_child(m, "fc"));
    cfx_module_add(s, deep, "class", cfx_nn_dropout(s, .p = cfx_v(0.25)));
    cfx_module_add_parameter(s, first, "__w", cfx_var_tensor(s, cfx_zeros(s, cfx_ints(s, 2, 0))));
    cfx_module_add_buffer(s, m, "count", cfx_var_tensor(s, cfx_arange(s, 3)));
    cfx_module_set(s, m, "eps", -INFINITY);
    cfx_module_set(s, m, "far", cfx_tuple(s, cfx_v(1), cfx_v(NAN), cfx_v("a\"b")));
    cfx_module_train(cfx_module_child(m, "deep.class"), false);
    return m;
}

/* The file for a graph, or why there is none; freed by the next call. */
static const char *file_of(const char *graph, cfx_module *(*make)(cfx_scope *s), const char *name,
                           const cfx_allocator *a, cfx_status *status)
{
    static char out[4000];
    cfx_error err = {0};
    cfx_buffer file;
    cfx_buffer_init(&file, a);
    cfx_scope *s = cfx_scope_new(&(cfx_scope_options){.allocator = a, .threads = 1}, &err);
    cfx_graph *g = s ? cfx_graph_parse(graph, strlen(graph), a, NULL, &err) : NULL;
    cfx_module *m = g ? cfx_module_from_graph(s, g, "Net", make(s)) : NULL;
    if (m) {
        const cfx_module_tree tree = cfx_module_as_tree(m);
        cfx_codegen_python_module(cfx_module_graph(m), &tree, name, cfx_buffer_sink(&file), &err);
    } else if (s && err.status == CFX_OK) {
        err = *cfx_scope_error(s);
    }
    *status = err.status;
    snprintf(out, sizeof out, "%s", err.status == CFX_OK ? file.data : err.message);
    cfx_buffer_free(&file);
    cfx_graph_release(g);
    cfx_scope_free(s);
    return out;
}

TEST(a_module_with_all_kinds_of_parts)
{
    cfx_status status;
    CHECK_STR_EQ("import torch\n\n\n"
                 "class Net(torch.nn.Module):\n"
                 "    def __init__(self):\n"
                 "        super().__init__()\n"
                 "        self.fc = torch.nn.Linear(4, 4, False)\n"
                 "        self.deep = torch.nn.Module()\n"
                 "        self.deep.same = self.fc\n"
                 "        setattr(self.deep, \"class\", torch.nn.Dropout(0.25))\n"
                 "        setattr(self.deep, \"0\", torch.nn.Module())\n"
                 "        getattr(self.deep, \"0\")._parameters[\"__w\"] = "
                 "torch.nn.Parameter(torch.zeros(2, 0))\n"
                 "        self.register_buffer(\"count\", torch.zeros(3, dtype=torch.int64))\n"
                 "        self.eps = float('-inf')\n"
                 "        self.far = (1, float('nan'), 'a\"b')\n"
                 "        getattr(self.deep, \"class\").eval()\n"
                 "\n"
                 "    def forward(self, x):\n"
                 "        fc = self.fc(x);  x = None\n"
                 "        same = self.deep.same(fc);  fc = None\n"
                 "        act = getattr(self.deep, \"class\")(same);  same = None\n"
                 "        w = getattr(self.deep, \"0\")._parameters[\"__w\"]\n"
                 "        b = self.count\n"
                 "        add = torch.add(act, w);  act = w = None\n"
                 "        eps = self.eps\n"
                 "        far = self.far\n"
                 "        return (add, b, eps, far)\n",
                 file_of(text, modules_of, "Net", NULL, &status));
    CHECK_INT_EQ(CFX_OK, status);
}

static cfx_module *containers(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, NULL);
    cfx_module_add(s, m, "a", cfx_nn_sequential(s));
    cfx_module_add(s, m, "b", cfx_nn_relu(s));
    return m;
}

TEST(what_cannot_be_made)
{
    cfx_status status;
    CHECK_STR_EQ("cannot write the constructor: 'a' is an instance of torch.nn.Sequential: "
                 "torch.nn.Sequential(...) cannot recreate the module 'a' with its children; "
                 "capture the modules it calls instead",
                 file_of("graph():\n  %x = placeholder[target=x]()\n"
                         "  %a = call_module[target=a](%x)\n  %b = call_module[target=b](%a)\n"
                         "  output(%b)\n",
                         containers, NULL, NULL, &status));
    CHECK_INT_EQ(CFX_E_TYPE, status);
    file_of(text, modules_of, "a b", NULL, &status);
    CHECK_INT_EQ(CFX_E_VALUE, status);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_codegen_python_module(NULL, NULL, NULL, (cfx_sink){0}, NULL));
}

static cfx_status write_with(const cfx_allocator *a, void *arg)
{
    cfx_status status;
    file_of(arg, modules_of, NULL, a, &status);
    return status;
}

TEST(every_allocation_can_fail)
{
    CHECK(test_oom_sweep(write_with, (void *)(uintptr_t)text) > 100);
}
