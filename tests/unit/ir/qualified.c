/* qualified.c - tests of names of functions and types that come from a file. */
#include "check.h"

#include "ir/graph_impl.h"

#include <cfx/embed/namespace.h>

static bool is_type(const char *text) { return cfxi_ir_is_type_text(text, strlen(text)); }
static bool runs_code(const char *name) { return cfx_name_runs_code(name, strlen(name)); }

TEST(texts_of_types)
{
    static const char *const good[] = {
        "int", "torch.Tensor", "typing.Dict[str, list[int]]", "int | None", "tuple[int, ...]",
        "typing.Callable[[int, str], a.b]", "[int]", "torch.ops.aten.random.from",
        "typing.Callable[[], None]", "a[b] | c[d][e]",
    };
    static const char *const bad[] = {
        "", " a", "a b", "a()", "a[b()]", "[x for y in z]", "a; b", "a\nb", "a.b:c", "lambda",
        "a,\"b\"", "a[b", "a]",
        "a[b]c", "a[b] c", "a[]", "a,b", "a |", "| a", "a[,b]", "a[b,,c]", "a[b c]", "...",
        "...[a]",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!CHECK(is_type(good[i])))
            printf("    %s\n", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!CHECK(!is_type(bad[i])))
            printf("    %s\n", bad[i]);
}

TEST(names_that_run_code)
{
    static const char *const bad[] = {
        "exec", "builtins.eval", "builtins.__import__", "os.system", "torch.os.system",
        "torch.load", "torch.hub.load", "subprocess.run", "a.__globals__", "typing.List[os.system]",
        "torch.save",
        "torch.utils.cpp_extension.load_inline", "torch.ops.load_library", "io.open",
        "torch.jit.load", "pickle.loads",
    };
    static const char *const good[] = {
        "torch.relu", "builtins.getattr", "operator.add", "torch.ops.aten.add.Tensor", "math.sqrt",
        "my.exec_all", "my.open", "torch.Tensor.__add__", "torch.jit.annotate", "list[int]", "code",
        "torch.loader", "oslo.fn", "",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!CHECK(runs_code(bad[i])))
            printf("    %s\n", bad[i]);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!CHECK(!runs_code(good[i])))
            printf("    %s\n", good[i]);
}
