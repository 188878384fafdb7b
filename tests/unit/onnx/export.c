/* export.c - packages written as ONNX: files, findings, bad options, full disks, short memory. */
#include "check.h"
#include "full_disk.h"
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <cfx/onnx.h>

#include <stdio.h>
#include <unistd.h>

#define MODULES                                                                                    \
    "graph():\n  output({\"training\": False, \"modules\": [(\"fc\", \"torch.nn.Linear\", False, " \
    "{\"in_features\": 3, \"out_features\": 2}, (), ())], \"tensors\": [(\"fc.weight\", "          \
    "\"parameter\", True, True, None, None), (\"fc.bias\", \"parameter\", True, True, None, "      \
    "None)]})\n"
#define SIGNATURE                                                                                  \
    "graph():\n  output({\"inputs\": [(\"x\", \"tensor\", torch.float32, (\"n\", 3))], "           \
    "\"state\": [], \"results\": None, \"guards\": \"\", \"structure\": None})\n"
#define LINEAR                                                                                     \
    "graph():\n  %x = placeholder[target=x]()\n  %fc = call_module[target=fc](%x) @ net.py:7\n"    \
    "  %relu = call_method[target=relu](%fc)\n  output(%relu)\n"
/* A branch, a loop, and a write through a view. */
#define CONTROL                                                                                    \
    "graph():\n  %x = placeholder[target=x]()\n"                                                   \
    "  %sum = call_method[target=sum](%x)\n"                                                       \
    "  %gt = call_function[target=operator.gt](%sum, 0)\n"                                         \
    "  %y = call_function[target=cfx.cond](%gt, graph {\n"                                         \
    "      %x = placeholder[target=x]()\n"                                                         \
    "      %a = call_function[target=torch.exp](%x)\n      output(%a)\n    }, graph {\n"           \
    "      %x = placeholder[target=x]()\n"                                                         \
    "      %b = call_function[target=torch.neg](%x)\n      output(%b)\n    }, (%x,))\n"            \
    "  %loop = call_function[target=cfx.for_loop](3, graph {\n"                                    \
    "      %i = placeholder[target=i]()\n      %z = placeholder[target=z]()\n"                     \
    "      %add = call_function[target=operator.add](%z, %i)\n      output((%add,))\n"             \
    "    }, (%y,))\n"                                                                              \
    "  %w = call_function[target=operator.getitem](%loop, 0)\n"                                    \
    "  %copy = call_method[target=clone](%w)\n"                                                    \
    "  %row = call_function[target=operator.getitem](%copy, 0)\n"                                  \
    "  %zero = call_method[target=zero_](%row)\n  output((%copy, %sum))\n"
#define REFUSED                                                                                    \
    "graph():\n  %x = placeholder[target=x]()\n"                                                   \
    "  %a = call_function[target=torch.lgamma](%x) @ net.py:3\n"                                   \
    "  %b = call_function[target=torch.digamma](%x) @ net.py:4\n"                                  \
    "  %c = call_function[target=operator.add](%a, %b)\n  output(%c)\n"

static cfx_state *weights_of(const cfx_allocator *a, cfx_error *err)
{
    static const struct { const char *name; int64_t sizes[2]; size_t ndim; } rows[] = {
        {"fc.weight", {2, 3}, 2}, {"fc.bias", {2}, 1}};
    cfx_state *s = cfx_state_new(a, err);
    for (size_t i = 0; s && i < 2; i++) {
        cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, rows[i].sizes, rows[i].ndim, a, err);
        for (int64_t k = 0; t && k < cfx_tensor_numel(t); k++)
            ((float *)cfx_tensor_data(t))[k] = (float)k;
        if (!t || cfx_state_set(s, rows[i].name, t, err) != CFX_OK) {
            cfx_state_free(s);
            s = NULL;
        }
        cfx_tensor_release(t);
    }
    return s;
}

static cfx_package *package_of(const char *graph, const char *signature, const cfx_allocator *a,
                               cfx_error *err)
{
    const cfx_package_part parts[] = {{"graph.ir", graph, strlen(graph)},
                                      {"module.ir", MODULES, strlen(MODULES)},
                                      {"signature.ir", signature, strlen(signature)}};
    cfx_state *weights = weights_of(a, err);
    const cfx_package_contents contents = {.model = "Net", .parts = parts, .num_parts = 3,
                                           .weights = weights};
    const cfx_package_options options = {.allocator = a};
    cfx_package *p = weights ? cfx_package_new(&contents, &options, err) : NULL;
    cfx_state_free(weights);
    return p;
}

static bool holds(const cfx_buffer *b, const char *word)
{
    const size_t size = strlen(word);
    for (size_t i = 0; i + size <= b->size; i++)
        if (memcmp(b->data + i, word, size) == 0)
            return true;
    return false;
}

TEST(a_model_is_written)
{
    cfx_error err = {0};
    cfx_buffer out;
    cfx_package *p = package_of(LINEAR, SIGNATURE, NULL, &err);
    cfx_buffer_init(&out, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_onnx_write(p, cfx_buffer_sink(&out), NULL, &err));
    CHECK(holds(&out, "Gemm"));
    CHECK(holds(&out, "Relu"));
    CHECK(holds(&out, "fc.weight"));
    CHECK(holds(&out, "net.py:7"));
    CHECK(holds(&out, "cfx.location"));
    cfx_buffer_free(&out);
    cfx_package_free(p);
}

TEST(control_flow_is_written)
{
    cfx_error err = {0};
    cfx_buffer out;
    cfx_package *p = package_of(CONTROL, SIGNATURE, NULL, &err);
    cfx_buffer_init(&out, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_onnx_write(p, cfx_buffer_sink(&out), NULL, &err));
    CHECK_STR_EQ("", err.message);
    CHECK(holds(&out, "then_branch"));
    CHECK(holds(&out, "Loop"));
    CHECK(holds(&out, "ScatterElements"));
    cfx_buffer_free(&out);
    cfx_package_free(p);
}

static void count(void *ctx, const cfx_onnx_finding *f)
{
    size_t *n = ctx;
    CHECK_STR_EQ(*n == 0 ? "net.py:3" : "net.py:4", f->where);
    CHECK_STR_EQ(*n == 0 ? "cfx.ops.lgamma" : "cfx.ops.digamma", f->op);
    ++*n;
}

TEST(all_findings_are_told_before_anything_is_written)
{
    cfx_error err = {0};
    size_t n = 0;
    char path[64];
    const cfx_onnx_write_options options = {.each = count, .ctx = &n};
    cfx_package *p = package_of(REFUSED, SIGNATURE, NULL, &err);
    snprintf(path, sizeof path, "/tmp/cfx_export_%ld.onnx", (long)getpid());
    CHECK_INT_EQ(CFX_E_UNSUPPORTED, cfx_onnx_save(p, path, &options, &err));
    CHECK_INT_EQ(2, n);
    CHECK(strstr(err.message, "2 calls") != NULL);
    CHECK(strstr(err.message, "net.py:3") != NULL);
    CHECK(access(path, F_OK) != 0);
    cfx_package_free(p);
}

TEST(weights_go_beside_the_file_if_asked_for)
{
    cfx_error err = {0};
    char path[64];
    const cfx_onnx_write_options options = {.external = true};
    cfx_package *p = package_of(LINEAR, SIGNATURE, NULL, &err);
    snprintf(path, sizeof path, "/tmp/cfx_export_%ld.onnx", (long)getpid());
    CHECK_INT_EQ(CFX_OK, cfx_onnx_save(p, path, &options, &err));
    CHECK(access(path, F_OK) == 0);
    CHECK_INT_EQ(0, unlink(path));  /* small weights stay inside: there is no other file */
    cfx_package_free(p);
}

TEST(bad_options_and_inputs)
{
    cfx_error err = {0};
    cfx_onnx_write_options options = {.opset = CFX_ONNX_OPSET - 1};
    cfx_package *p = package_of(LINEAR, SIGNATURE, NULL, &err);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_onnx_save(p, "/tmp/none.onnx", &options, &err));
    options.opset = CFX_ONNX_OPSET_NEWEST + 1;
    CHECK_INT_EQ(CFX_E_VALUE, cfx_onnx_save(p, "/tmp/none.onnx", &options, &err));
    CHECK_INT_EQ(CFX_E_IO, cfx_onnx_save(p, "/no/such/folder/none.onnx", NULL, &err));
    cfx_package_free(p);
    err = (cfx_error){0};
    CHECK_INT_EQ(CFX_E_VALUE, cfx_onnx_save(NULL, "/tmp/none.onnx", NULL, &err));
    err = (cfx_error){0};
    p = package_of(LINEAR, "graph():\n  output({\"inputs\": [(\"x\", \"any\")], \"state\": [], "
                           "\"results\": None, \"guards\": \"\", \"structure\": None})\n",
                   NULL, &err);
    CHECK_INT_EQ(CFX_E_UNSUPPORTED, cfx_onnx_save(p, "/tmp/none.onnx", NULL, &err));
    CHECK(strstr(err.message, "input 'x'") != NULL);
    cfx_package_free(p);
}

TEST(a_full_disk_is_an_error)
{
    cfx_error err = {0};
    cfx_package *p = package_of(LINEAR, SIGNATURE, NULL, &err);
    full_disk disk = {100};
    CHECK_INT_EQ(CFX_E_IO, cfx_onnx_write(p, (cfx_sink){write_until_full, &disk}, NULL, &err));
    cfx_package_free(p);
}

static cfx_status write_with(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    full_disk disk = {1 << 20};
    cfx_package *p = package_of(arg, SIGNATURE, a, &err);
    const cfx_status status =
        p ? cfx_onnx_write(p, (cfx_sink){write_until_full, &disk}, NULL, &err) : err.status;
    cfx_package_free(p);
    return status;
}

TEST(every_allocation_can_fail)
{
    char linear[] = LINEAR;
    char control[] = CONTROL;
    CHECK(test_oom_sweep(write_with, linear) > 100);
    CHECK(test_oom_sweep(write_with, control) > 100);
}
