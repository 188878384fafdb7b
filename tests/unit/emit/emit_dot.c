/* emit_dot.c - pictures: options, what callers add, failures. The text itself: golden files. */
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <cfx/embed/embed.h>
#include <stdlib.h>

static const char source[] =
    "graph():\n"
    "  %x = placeholder[target=x]()  @ model.py:3\n"
    "  %w = get_attr[target=w]()  @ in a(M) > a.b(N)\n"
    "  %add = call_function[target=torch.add](%x, %w, alpha=2)  @ model.py:4 in a(M)\n"
    "  %cond = call_function[target=cfx.cond](%x, graph {\n"
    "      %y = placeholder[target=y]()\n"
    "      output(%y)\n"
    "    }, graph {\n"
    "      %y = placeholder[target=y]()\n"
    "      output(%y)\n"
    "    }, (%add,))\n"
    "  output(%cond)\n";

/* The picture of `source`; the caller frees it. */
static char *picture(const cfx_dot_options *options)
{
    cfx_buffer text;
    cfx_graph *g = cfx_graph_parse(source, strlen(source), NULL, NULL, NULL);
    cfx_buffer_init(&text, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_codegen_dot(g, options, cfx_buffer_sink(&text), NULL));
    cfx_graph_release(g);
    char *copy = malloc(text.size + 1);
    memcpy(copy, text.data, text.size + 1);
    cfx_buffer_free(&text);
    return copy;
}

static void expect(const cfx_dot_options *options, const char *wanted, bool there)
{
    char *text = picture(options);
    if (!CHECK((strstr(text, wanted) != NULL) == there))
        printf("    %s in\n%s", wanted, text);
    free(text);
}

TEST(defaults)
{
    expect(NULL, "digraph \"graph\" {\n", true);
    expect(NULL, "\"add\" [label=\"{%add|call_function torch.add|%x, %w, alpha=2}\", ", true);
    expect(NULL, "  \"x\" -> \"add\";\n", true);
    expect(NULL, "  \"cond/1/output\" -> \"cond\" [style=dashed];\n", true);
}

TEST(options)
{
    expect(&(cfx_dot_options){.name = "a \"b\""}, "digraph \"a \\\"b\\\"\" {\n", true);
    expect(&(cfx_dot_options){.shape = "box"}, "shape=\"box\"];\n", true);
    expect(&(cfx_dot_options){.shape = "box"}, "\"%x\\nplaceholder x\"", true);
    expect(&(cfx_dot_options){.locations = true}, "alpha=2|model.py:4}", true);
    expect(&(cfx_dot_options){.literals_only = true}, "torch.add|alpha=2}", true);
    expect(&(cfx_dot_options){.literals_only = true}, "{%x|placeholder x}", true);
    expect(&(cfx_dot_options){.hide_get_attr = true}, "\"w\"", false);
    expect(&(cfx_dot_options){.hide_get_attr = true}, "\"x\" -> \"add\"", true);
    expect(&(cfx_dot_options){.module_stacks = true}, "label=\"a.b N\";\n      \"w\" [", true);
    expect(&(cfx_dot_options){0}, "label=\"a M\"", false);
}

static cfx_status say(void *ctx, cfx_node *n, cfx_sink out, cfx_error *err)
{
    const char *text = ctx;
    (void)err;
    return cfx_node_op(n) == CFX_OP_PLACEHOLDER ? out.write(out.ctx, text, strlen(text)) : CFX_OK;
}

static cfx_status refuse(void *ctx, cfx_node *n, cfx_sink out, cfx_error *err)
{
    cfx_error why;
    (void)out;
    /* The graph is being read. */
    CHECK(cfx_graph_erase(cfx_node_graph(n), n, &why) != CFX_OK);
    (*(int *)ctx)++;
    return cfx_error_set(err, CFX_E_VALUE, "no idea");
}

static const char *only_placeholders(void *ctx, const cfx_node *n)
{
    return cfx_node_op(n) == CFX_OP_PLACEHOLDER ? ctx : NULL;
}

TEST(colours)
{
    const cfx_dot_options options = {.colour = only_placeholders, .ctx = "yellow"};
    expect(&options, "{%x|placeholder x}\", fillcolor=\"yellow\"", true);
    expect(&options, "{%w|get_attr w}\", fillcolor=\"lightgrey\"", true);
}

TEST(descriptions)
{
    const cfx_dot_options good = {.describe = say, .ctx = "f32[2, 3]\n{x}"};
    expect(&good, "{%x|placeholder x|f32[2, 3]\\n\\{x\\}}", true);
    expect(&good, "{%w|get_attr w}", true);
    int asked = 0;
    cfx_error err = {0};
    cfx_buffer text;
    const cfx_dot_options bad = {.describe = refuse, .ctx = &asked};
    cfx_graph *g = cfx_graph_parse(source, strlen(source), NULL, NULL, NULL);
    cfx_buffer_init(&text, NULL);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_codegen_dot(g, &bad, cfx_buffer_sink(&text), &err));
    CHECK_STR_EQ("no idea", err.message);
    CHECK_INT_EQ(1, asked);
    CHECK(!cfx_graph_is_frozen(g));
    cfx_buffer_free(&text);
    cfx_graph_release(g);
}

static cfx_status full(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return CFX_E_IO;
}

TEST(failing_sink)
{
    cfx_graph *g = cfx_graph_parse(source, strlen(source), NULL, NULL, NULL);
    CHECK_INT_EQ(CFX_E_IO, cfx_codegen_dot(g, NULL, (cfx_sink){full, NULL}, NULL));
    cfx_graph_release(g);
}

TEST(empty)
{
    cfx_buffer text;
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_buffer_init(&text, NULL);
    const cfx_dot_options options = {.module_stacks = true};
    CHECK_INT_EQ(CFX_OK, cfx_codegen_dot(g, &options, cfx_buffer_sink(&text), NULL));
    CHECK(strstr(text.data, "];\n}\n"));
    cfx_buffer_free(&text);
    cfx_graph_release(g);
}

/* Modules inside modules, as deep as anyone wants. */
TEST(deep_scopes)
{
    enum { DEPTH = 50000 };
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    uint32_t scope = 0;
    for (int i = 0; i < DEPTH; i++) {
        char path[16];
        snprintf(path, sizeof path, "m%d", i);
        scope = cfx_graph_intern_stack(g, scope, path, "M", NULL, NULL);
    }
    cfx_node_set_module_stack(cfx_graph_placeholder(g, "x", NULL), scope);
    size_t written = 0;
    const cfx_dot_options options = {.module_stacks = true};
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_codegen_dot(g, &options, cfx_buffer_sink(&text), NULL));
    for (size_t i = 0; i < text.size; i++)
        written += text.data[i] == '}' && text.data[i - 1] == ' ';
    CHECK_INT_EQ(DEPTH, written);
    CHECK(text.size < 200 * DEPTH);
    cfx_buffer_free(&text);
    cfx_graph_release(g);
}

static cfx_status draw(const cfx_allocator *a, void *arg)
{
    cfx_buffer text;
    const cfx_dot_options options = {.module_stacks = true, .describe = say, .ctx = "some text"};
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_parse(source, strlen(source), a, NULL, &err);
    (void)arg;
    if (!g)
        return err.status;
    cfx_buffer_init(&text, a);
    const cfx_status status = cfx_codegen_dot(g, &options, cfx_buffer_sink(&text), &err);
    CHECK_INT_EQ(status, err.status);
    cfx_buffer_free(&text);
    cfx_graph_release(g);
    return status;
}

TEST(out_of_memory) { CHECK(test_oom_sweep(draw, NULL) > 0); }
