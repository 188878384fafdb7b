/* emit_check.h - building graphs and checking the Python generated from them, for codegen_py*.c.
 *
 * The helpers work on one global graph, the one of the running test. */
#ifndef CFXI_EMIT_CHECK_H
#define CFXI_EMIT_CHECK_H

#include "check.h"

#include <cfx/cfx.h>
#include <cfx/embed/embed.h>
#include <math.h>
#include <stdlib.h>

/* ---- building graphs ----------------------------------------------------------------------- */

static cfx_graph *graph;  /* of the running test */
static cfx_error error;

#define V(node) cfx_value_node(node)
#define I(i) cfx_value_int(i)
#define F(f) cfx_value_float(f)
#define NONE cfx_value_none()
#define S(text) cfx_value_str(graph, text, strlen(text), &error)
#define HOST(name) cfx_value_name(graph, name, strlen(name), &error)
#define ITEMS(...)                                                                                 \
    (cfx_value[]){__VA_ARGS__}, sizeof((cfx_value[]){__VA_ARGS__}) / sizeof(cfx_value)
#define TUPLE(...) cfx_value_tuple(graph, ITEMS(__VA_ARGS__), &error)
#define LIST(...) cfx_value_list(graph, ITEMS(__VA_ARGS__), &error)
#define DICT(...) cfx_value_seq(graph, CFX_KIND_DICT, ITEMS(__VA_ARGS__), &error)
#define SET(...) cfx_value_seq(graph, CFX_KIND_SET, ITEMS(__VA_ARGS__), &error)
#define SLICE(a, b, c) cfx_value_slice(graph, a, b, c, &error)
#define RANGE(a, b, c)                                                                             \
    cfx_value_seq(graph, CFX_KIND_RANGE, (cfx_value[]){I(a), I(b), I(c)}, 3, &error)
#define DEVICE(text) cfx_value_device(graph, text, strlen(text), &error)
#define EMPTY(kind) cfx_value_seq(graph, CFX_KIND_##kind, NULL, 0, &error)

#define CALL(target, ...) call(CFX_OP_CALL_FUNCTION, target, ITEMS(__VA_ARGS__))
#define METHOD(target, ...) call(CFX_OP_CALL_METHOD, target, ITEMS(__VA_ARGS__))
#define MODULE(target, ...) call(CFX_OP_CALL_MODULE, target, ITEMS(__VA_ARGS__))
#define RELU(x) CALL("torch.relu", V(x))

static inline cfx_node *call(cfx_opcode op, const char *target, const cfx_value *args, size_t n)
{
    cfx_node *node = cfx_graph_call(graph, op, target, args, n, NULL, 0, &error);
    if (!CHECK(node))
        printf("    %s\n", error.message);
    return node;
}

static inline cfx_node *with_kwarg(cfx_node *n, const char *key, cfx_value v)
{
    CHECK_INT_EQ(CFX_OK, cfx_node_set_kwarg(n, key, v, &error));
    return n;
}

static inline cfx_node *with_type(cfx_node *n, const char *type)
{
    CHECK_INT_EQ(CFX_OK, cfx_node_set_type(n, HOST(type), &error));
    return n;
}

static inline cfx_node *with_name(cfx_node *n, const char *name)
{
    CHECK_INT_EQ(CFX_OK, cfx_node_set_name(n, name, strlen(name), &error));
    return n;
}

static inline cfx_node *input(const char *name)
{
    cfx_node *n = cfx_graph_placeholder(graph, name, &error);
    CHECK(n);
    return n;
}

/* A placeholder with a default value, for which `args` stands. */
static inline cfx_node *input_default(const char *name, cfx_value v)
{
    cfx_node *n = input(name);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_args(n, TUPLE(v), &error));
    return n;
}

static inline cfx_node *attribute(const char *path)
{
    return cfx_graph_get_attr(graph, path, &error);
}

static inline cfx_node *result(cfx_value v)
{
    cfx_node *n = cfx_graph_output(graph, v, &error);
    if (!CHECK(n))
        printf("    %s\n", error.message);
    return n;
}

static inline void start(void)
{
    graph = cfx_graph_new(NULL, NULL, &error);
}

/* A named tuple of two fields. */
#define POINT(a, b)                                                                                \
    cfx_value_seq(graph, CFX_KIND_NAMEDTUPLE,                                                      \
                  ITEMS(HOST("usermod.Pt"), TUPLE(S("a"), S("b")), a, b), &error)

/* ---- regions ------------------------------------------------------------------------------- */

/* Makes `graph` the region being built; region_end turns it into a value of the outer graph. */
static cfx_graph *outer_graphs[8];
static int depth;

static inline void region_begin(void)
{
    outer_graphs[depth++] = graph;
    graph = cfx_graph_new(NULL, NULL, &error);
}

static inline cfx_value region_end(void)
{
    cfx_graph *region = graph;
    graph = outer_graphs[--depth];
    cfx_value v = cfx_value_region(graph, region, &error);
    cfx_graph_release(region);
    return v;
}

/* input -> function(input), or the input itself for NULL. */
static inline cfx_value unary_region(const char *function, const char *name)
{
    region_begin();
    cfx_node *x = input(name);
    result(V(function ? CALL(function, V(x)) : x));
    return region_end();
}

/* ---- checking ------------------------------------------------------------------------------ */

/* The names of the globals and the line map as text: "a b | 1:0 2:0 | 4". */
static inline void describe(const cfx_pycode_result *code, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < code->n_globals; i++)
        used += (size_t)snprintf(text + used, size - used, "%s ", code->globals[i].name);
    used += (size_t)snprintf(text + used, size - used, "|");
    for (size_t i = 0; i < code->n_lines; i++) {
        unsigned line = (unsigned)(code->first_line + i);
        if (code->line_nodes[i] == CFX_PYCODE_NO_NODE)
            used += (size_t)snprintf(text + used, size - used, " %u:-", line);
        else
            used += (size_t)snprintf(text + used, size - used, " %u:%u", line,
                                     (unsigned)code->line_nodes[i]);
    }
    snprintf(text + used, size - used, " | %u", (unsigned)code->prologue_start);
}

/* Generates, and compares the source less the three newlines before and the line after it.
 * `about` is what describe() gives, or NULL. */
#define EXPECT(want, about) expect(NULL, want, about, __LINE__)
#define EXPECT_WITH(options, want, about) expect(options, want, about, __LINE__)
static inline void expect(const cfx_pycode_options *options, const char *want, const char *about,
                          int line)
{
    cfx_pycode_result code;
    if (!CHECK_INT_EQ(CFX_OK, cfx_codegen_python(graph, options, &code, &error))) {
        printf("    line %d: %s\n", line, error.message);
        cfx_graph_release(graph);
        return;
    }
    size_t size = strlen(want);
    bool same = code.source.size == size + 8 && memcmp(code.source.data, "\n\n\n", 3) == 0 &&
                memcmp(code.source.data + 3, want, size) == 0 &&
                strcmp(code.source.data + 3 + size, "\n    ") == 0;
    if (!CHECK(same))
        printf("    line %d, want:\n%s\n    got:%s|\n", line, want, code.source.data);
    char text[1000];
    describe(&code, text, sizeof text);
    if (about && !CHECK_STR_EQ(about, text))
        printf("    line %d\n", line);
    cfx_pycode_free(&code);
    cfx_graph_release(graph);
}

/* ---- a host -------------------------------------------------------------------------------- */

static inline cfx_status say(cfx_sink out, const char *text)
{
    return out.write(out.ctx, text, strlen(text));
}

/* An object of the test's host language: its qualified name (NULL for none) and its repr. */
typedef struct object {
    const char *name, *repr;
} object;

static inline void host_count(void *ctx, void *thing) { (void)ctx, (void)thing; }

static inline cfx_status host_repr(void *ctx, void *thing, cfx_sink out, cfx_error *err)
{
    (void)ctx, (void)err;
    return say(out, ((object *)thing)->repr);
}

static inline cfx_status host_name(void *ctx, void *thing, cfx_sink out, cfx_error *err)
{
    (void)ctx;
    const char *name = ((object *)thing)->name;
    return name ? say(out, name) : cfx_error_set(err, CFX_E_KEY, "no name");
}

static inline cfx_status host_hint(void *ctx, void *thing, cfx_sink out, cfx_error *err)
{
    (void)ctx, (void)err;
    const char *name = ((object *)thing)->name;
    const char *dot = name ? strrchr(name, '.') : NULL;
    return say(out, dot ? dot + 1 : "lambda");
}

static const cfx_host host = {.retain = host_count, .release = host_count, .repr = host_repr,
                              .qualified_name = host_name, .name_hint = host_hint};

static inline void start_hosted(void)
{
    graph = cfx_graph_new(NULL, &host, &error);
}

static inline cfx_node *call_object(object *function, cfx_value arg)
{
    cfx_target target = {.object = function};
    return cfx_graph_create(graph, CFX_OP_CALL_FUNCTION, target, TUPLE(arg), cfx_value_invalid(),
                            NULL, cfx_value_invalid(), &error);
}

#endif
