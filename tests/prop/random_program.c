/* random_program.c - the text of random graphs that can be run, statement by statement. */
#include "random_program.h"

#include <cfx/layers.h>
#include <cfx/operators.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PICK(r, array) ((array)[random_below(r, sizeof(array) / sizeof *(array))])

enum { MOST_NAMES = 24, NAME_SIZE = 40, MOST_DEEP = 3 };

/* What is known of the graph or region that is being written. */
typedef struct level {
    char names[MOST_NAMES][NAME_SIZE];  /* some of its tensors */
    size_t n;
} level;

typedef struct program {
    random_source r;
    cfx_buffer text;
    level *at;
    size_t deep;      /* regions around it */
    unsigned number;  /* makes names unique */
} program;

static const char *const hard_names[] = {
    "int", "double", "self", "s", "in", "n", "ctx", "forward", "forward_1", "cfx", "cfx_add",
    "cfx_model", "NULL", "INT_MAX", "main", "errno", "stdin", "asm", "typeof", "inline", "_x",
    "__y", "vars", "parts", "part", "model_class", "class_", "lambda_", "nan", "inf", "linux",
    "bool", "true", "size_t", "exp", "malloc", "i", "x", "cond_then", "torch", "operator", "M_PI",
    "NAN", "signed", "auto", "nullptr", "wchar_t", "and_", "assert_", "printf", "free", "y0",
    "while_loop_body", "restrict", "I", "isnan", "div", "index", "register", "far", "small",
};

/* ---- text ---------------------------------------------------------------------------------- */

static void put(program *p, const char *format, ...) CFX_PRINTF(2, 3);
static void put(program *p, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cfx_buffer_append(&p->text, text, strlen(text));
}

static const char *new_name(program *p)
{
    static char name[NAME_SIZE];
    snprintf(name, sizeof name, "%s", PICK(&p->r, hard_names));
    if (strstr(p->text.data, name))  /* most are taken once the text is long */
        snprintf(name, sizeof name, "%s_%u", PICK(&p->r, hard_names), ++p->number);
    return name;
}

/* Remembers a tensor; of those that are too many, one is forgotten. */
static void add_tensor(program *p, const char *name)
{
    level *at = p->at;
    const size_t i = at->n < MOST_NAMES ? at->n++ : random_below(&p->r, MOST_NAMES);
    snprintf(at->names[i], NAME_SIZE, "%s", name);
}

/* One of the tensors there are, mostly a late one. */
static const char *some(program *p)
{
    const size_t n = p->at->n;
    const size_t late = n > 4 && random_chance(&p->r, 60) ? n - 4 : 0;
    return p->at->names[late + random_below(&p->r, n - late)];
}

/* Begins a statement, and copies its name to `name`. */
static void begin(program *p, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "%s", new_name(p));
    put(p, "  %%%s = ", name);
}

static void end(program *p)
{
    if (random_chance(&p->r, 20))
        put(p, " @ %s:%u", random_chance(&p->r, 50) ? "m.py" : "dir/net.c",
            (unsigned)random_below(&p->r, 90) + 1);
    put(p, "\n");
}

/* "%name = kind[target=...](...)" with a format for the arguments. */
static void call(program *p, char name[NAME_SIZE], const char *target, const char *format, ...)
    CFX_PRINTF(4, 5);
static void call(program *p, char name[NAME_SIZE], const char *target, const char *format, ...)
{
    char args[300];
    va_list list;
    const bool method = target[0] == '.';
    va_start(list, format);
    vsnprintf(args, sizeof args, format, list);
    va_end(list);
    begin(p, name);
    put(p, "%s[target=%s](%s)", method ? "call_method" : "call_function", target + method, args);
    end(p);
}

/* ---- statements ---------------------------------------------------------------------------- */

static void unary(program *p)
{
    static const char *const targets[] = {
        "torch.relu", ".relu", "torch.neg", "operator.neg", "torch.tanh", ".sigmoid", "torch.abs",
        "torch.nn.functional.relu", "torch.sin", ".exp", "torch.nn.functional.gelu", ".contiguous",
    };
    char name[NAME_SIZE];
    call(p, name, PICK(&p->r, targets), "%%%s", some(p));
    call(p, name, "torch.clamp", "%%%s, -4, 4", name);
    add_tensor(p, name);
}

static void binary(program *p)
{
    static const char *const targets[] = {"torch.add", "operator.sub", ".mul", "torch.maximum",
                                          "operator.add", "torch.minimum"};
    char name[NAME_SIZE];
    const char *a = some(p);
    if (random_chance(&p->r, 20))
        call(p, name, "torch.add", "%%%s, %%%s, alpha=0.5", a, some(p));
    else
        call(p, name, PICK(&p->r, targets), "%%%s, %%%s", a, some(p));
    add_tensor(p, name);
}

static void with_number(program *p)
{
    static const char *const targets[] = {"operator.add", "operator.mul", "operator.sub",
                                          "torch.add", ".mul", "operator.truediv"};
    static const char *const numbers[] = {"3", "-0.5", "1e-05", "2", "-1", "1e+16", "0.1"};
    char name[NAME_SIZE];
    if (random_chance(&p->r, 10))
        call(p, name, "operator.mul", "%%%s, True", some(p));
    else if (random_chance(&p->r, 25))
        call(p, name, "torch.clamp", "%%%s, min=-inf, max=%s", some(p), PICK(&p->r, numbers));
    else
        call(p, name, PICK(&p->r, targets), "%%%s, %s", some(p), PICK(&p->r, numbers));
    call(p, name, "torch.nan_to_num", "%%%s, nan=0.5, posinf=1.0, neginf=-1.0", name);
    add_tensor(p, name);
}

static void views(program *p)
{
    char name[NAME_SIZE];
    switch (random_below(&p->r, 5)) {
    case 0:
        call(p, name, ".reshape", "%%%s, 4, 2", some(p));
        call(p, name, ".view", "%%%s, (2, -1)", name);
        break;
    case 1:
        call(p, name, ".transpose", "%%%s, 0, 1", some(p));
        call(p, name, "torch.transpose", "%%%s, dim0=0, dim1=1", name);
        break;
    case 2:
        call(p, name, "operator.getitem", "%%%s, (..., None, slice(None, None, 1))", some(p));
        call(p, name, "torch.squeeze", "%%%s, dim=[1]", name);
        break;
    case 3:
        call(p, name, ".to", "%%%s, torch.float64", some(p));
        call(p, name, ".to", "%%%s, dtype=torch.float32", name);
        break;
    default:
        call(p, name, ".flatten", "%%%s", some(p));
        call(p, name, ".unflatten", "%%%s, 0, [2, 4]", name);
        break;
    }
    add_tensor(p, name);
}

/* Parts of a tensor, and the whole again. */
static void pieces(program *p)
{
    char whole[NAME_SIZE];
    char a[NAME_SIZE];
    char b[NAME_SIZE];
    if (random_chance(&p->r, 40)) {  /* no rows, and all of them */
        snprintf(whole, sizeof whole, "%s", some(p));
        call(p, a, "operator.getitem", "%%%s, slice(None, 0, None)", whole);
        call(p, b, "torch.cat", "[%%%s, %%%s]", a, whole);
    } else {
        call(p, whole, random_chance(&p->r, 50) ? "torch.chunk" : ".split", "%%%s, 2, dim=1",
             some(p));
        call(p, a, "operator.getitem", "%%%s, 0", whole);
        call(p, b, "operator.getitem", "%%%s, 1", whole);
        call(p, b, "torch.cat", "(%%%s, %%%s), 1", b, a);
    }
    add_tensor(p, b);
}

static void sizes(program *p)
{
    char a[NAME_SIZE];
    char n[NAME_SIZE];
    snprintf(a, sizeof a, "%s", some(p));
    call(p, n, ".size", "%%%s, %s", a, random_chance(&p->r, 50) ? "1" : "-1");
    if (random_chance(&p->r, 50))
        call(p, n, "operator.floordiv", "%%%s, 1", n);
    call(p, a, ".reshape", "%%%s, (-1, %%%s)", a, n);
    add_tensor(p, a);
}

static void reductions(program *p)
{
    char a[NAME_SIZE];
    char b[NAME_SIZE];
    snprintf(a, sizeof a, "%s", some(p));
    switch (random_below(&p->r, 3)) {
    case 0: call(p, b, "torch.sum", "%%%s, dim=(0,), keepdim=True", a); break;
    case 1: call(p, b, ".mean", "%%%s, -1, keepdim=True", a); break;
    default:
        call(p, b, "torch.max", "%%%s, 1", a);
        call(p, b, "operator.getitem", "%%%s, 0", b);
        call(p, b, ".unsqueeze", "%%%s, -1", b);
        break;
    }
    call(p, b, "torch.sub", "%%%s, %%%s", a, b);
    add_tensor(p, b);
}

static void constants(program *p)
{
    char name[NAME_SIZE];
    switch (random_below(&p->r, 4)) {
    case 0: call(p, name, "torch.full", "(2, 4), 0.25"); break;
    case 1: call(p, name, "torch.ones", "[2, 4], dtype=torch.float32"); break;
    case 2: call(p, name, "torch.full_like", "%%%s, -3", some(p)); break;
    default:
        call(p, name, "torch.arange", "8.0");
        call(p, name, ".view", "%%%s, 2, 4", name);
        break;
    }
    add_tensor(p, name);
}

/* ---- modules ------------------------------------------------------------------------------- */

static const char *const module_paths[] = {"int", "class", "layers.0", "layers.1", "twin", "drop",
                                           "deep.cfx_add.self", "deep.printf"};
static const char *const tensor_paths[] = {"w", "deep.w", "buffer", "layers.main", "NULL_"};

static void module_call(program *p)
{
    char name[NAME_SIZE];
    begin(p, name);
    put(p, "call_module[target=%s](%%%s)", PICK(&p->r, module_paths), some(p));
    end(p);
    add_tensor(p, name);
}

static void reading(program *p)
{
    char name[NAME_SIZE];
    char sum[NAME_SIZE];
    begin(p, name);
    put(p, "get_attr[target=%s]()", PICK(&p->r, tensor_paths));
    end(p);
    call(p, sum, "torch.add", "%%%s, %%%s", some(p), name);
    add_tensor(p, sum);
}

cfx_module *random_program_modules(cfx_scope *s)
{
    cfx_module *m = cfx_module_new(s, NULL);
    cfx_module *layers = cfx_module_add(s, m, "layers", cfx_nn_module_list(s));
    cfx_module *deep = cfx_module_add(s, m, "deep", cfx_module_new(s, NULL));
    cfx_module *deeper = cfx_module_add(s, deep, "cfx_add", cfx_module_new(s, NULL));
    cfx_module_add(s, m, "int", cfx_nn_linear(s, 4, 4));
    cfx_module_add(s, m, "twin", cfx_module_child(m, "int"));
    cfx_module_add(s, m, "class", cfx_nn_leaky_relu(s, .negative_slope = cfx_v(0.25)));
    cfx_module_add(s, m, "drop", cfx_nn_dropout(s, .p = cfx_v(0.25)));
    cfx_module_add(s, layers, "0", cfx_nn_linear(s, 4, 4, .bias = cfx_v(false)));
    cfx_module_add(s, layers, "1", cfx_nn_layer_norm(s, 4));
    cfx_module_add(s, deeper, "self", cfx_nn_softmax(s, .dim = cfx_v(-1)));
    cfx_module_add(s, deep, "printf", cfx_nn_batch_norm1d(s, 4));
    cfx_module_add_parameter(s, m, "w", cfx_var_tensor(s, cfx_full(s, cfx_ints(2, 4), 0.5)));
    cfx_module_add_parameter(s, deep, "w", cfx_var_tensor(s, cfx_arange(s, 4.0)));
    cfx_module_add_buffer(s, m, "buffer", cfx_var_tensor(s, cfx_full(s, cfx_ints(1, 4), -1.5)));
    cfx_module_add_buffer(s, layers, "main", cfx_var_tensor(s, cfx_ones(s, cfx_ints(4))));
    cfx_module_add_parameter(s, m, "NULL_", cfx_var_tensor(s, cfx_full(s, cfx_ints(), 2)));
    cfx_module_train(m, false);
    return m;
}

/* ---- regions ------------------------------------------------------------------------------- */

static void statement(program *p);

/* "graph {", its inputs and some statements; *inner is its level then. */
static level *open_region(program *p, level *inner, size_t inputs, bool counted)
{
    level *outer = p->at;
    char name[NAME_SIZE];
    put(p, "graph {\n");
    inner->n = 0;
    p->at = inner;
    p->deep++;
    for (size_t i = 0; i < inputs + counted; i++) {
        begin(p, name);
        put(p, "placeholder[target=%s]()\n", name);
        if (i >= counted)
            add_tensor(p, name);
    }
    return outer;
}

static void close_region(program *p, level *outer)
{
    put(p, "  }");
    p->at = outer;
    p->deep--;
}

static void put_some(program *p, size_t n)
{
    put(p, "(");
    for (size_t i = 0; i < n; i++)
        put(p, "%%%s,%s", some(p), i + 1 < n ? " " : "");
    put(p, ")");
}

static void branch(program *p)
{
    const size_t inputs = 1 + random_below(&p->r, 3);
    const bool two = random_chance(&p->r, 40);
    char name[NAME_SIZE];
    level inner;
    call(p, name, "torch.sum", "%%%s", some(p));
    call(p, name, "operator.gt", "%%%s, 0.5", name);
    char pred[NAME_SIZE];
    snprintf(pred, sizeof pred, "%s", name);
    begin(p, name);
    put(p, "call_function[target=cfx.cond](%%%s, ", pred);
    for (int i = 0; i < 2; i++) {
        level *outer = open_region(p, &inner, inputs, false);
        for (size_t k = random_below(&p->r, 4); k > 0; k--)
            statement(p);
        put(p, "  output(");
        if (two)
            put_some(p, 2);
        else
            put(p, "%%%s", some(p));
        put(p, ")\n");
        close_region(p, outer);
        put(p, ", ");
    }
    put_some(p, inputs);
    put(p, ")\n");
    if (two)
        call(p, name, "operator.getitem", "%%%s, 1", name);
    add_tensor(p, name);
}

static void counted(program *p)
{
    const size_t inputs = 1 + random_below(&p->r, 3);
    char name[NAME_SIZE];
    level inner;
    begin(p, name);
    put(p, "call_function[target=cfx.for_loop](%u, ", (unsigned)random_below(&p->r, 3));
    level *outer = open_region(p, &inner, inputs, true);
    for (size_t k = random_below(&p->r, 4); k > 0; k--)
        statement(p);
    put(p, "  output(");
    put_some(p, inputs);
    put(p, ")\n");
    close_region(p, outer);
    put(p, ", ");
    put_some(p, inputs);
    put(p, ")\n");
    call(p, name, "operator.getitem", "%%%s, %u", name, (unsigned)random_below(&p->r, inputs));
    add_tensor(p, name);
}

/* Until the largest element is 50: it grows by 1 at least. */
static void until(program *p)
{
    const size_t inputs = 1 + random_below(&p->r, 2);
    char name[NAME_SIZE];
    char grown[NAME_SIZE];
    level inner;
    begin(p, name);
    put(p, "call_function[target=cfx.while_loop](");
    level *outer = open_region(p, &inner, inputs, false);
    call(p, grown, "torch.max", "%%%s", inner.names[0]);
    call(p, grown, "torch.lt", "%%%s, 50.0", grown);
    put(p, "  output(%%%s)\n", grown);
    close_region(p, outer);
    put(p, ", ");
    outer = open_region(p, &inner, inputs, false);
    call(p, grown, "torch.abs", "%%%s", inner.names[0]);
    call(p, grown, "torch.add", "%%%s, %%%s", grown, grown);
    call(p, grown, "operator.add", "%%%s, 1", grown);
    for (size_t k = random_below(&p->r, 3); k > 0; k--)
        statement(p);
    put(p, "  output((%%%s,%s%s))\n", grown, inputs > 1 ? " %" : "", inputs > 1 ? some(p) : "");
    close_region(p, outer);
    put(p, ", ");
    put_some(p, inputs);
    put(p, ")\n");
    call(p, name, "operator.getitem", "%%%s, 0", name);
    call(p, name, "torch.tanh", "%%%s", name);
    add_tensor(p, name);
}

/* ---- graphs -------------------------------------------------------------------------------- */

static void statement(program *p)
{
    static void (*const plain[])(program *) = {unary, binary, with_number, views, pieces, sizes,
                                               reductions, constants, module_call, reading,
                                               binary, module_call};
    static void (*const regions[])(program *) = {branch, counted, until};
    if (p->deep < MOST_DEEP && random_chance(&p->r, p->deep ? 20 : 10))
        PICK(&p->r, regions)(p);
    else
        PICK(&p->r, plain)(p);
}

static void put_output(program *p)
{
    const char *a = some(p);
    const char *b = some(p);
    const char *c = some(p);
    switch (random_below(&p->r, 5)) {
    case 0: put(p, "  output((%%%s, [%%%s, 1, -2.5], None))\n", a, b); break;
    case 1: put(p, "  output({\"a\\\"b\": %%%s, \"\\u00e9\": (%%%s, (1, 2))})\n", a, b); break;
    case 2: put(p, "  output((%%%s, %%%s, (), True, [%%%s]))\n", a, b, c); break;
    default: put(p, "  output(%%%s)\n", a); break;
    }
}

cfx_graph *random_program_new(uint64_t seed, size_t nodes, cfx_error *err)
{
    level top = {.n = 0};
    program p = {.r = {seed * 0xd1342543de82ef95u}, .at = &top};
    char name[NAME_SIZE];
    cfx_buffer_init(&p.text, NULL);
    put(&p, "graph():\n");
    for (size_t i = 1 + random_below(&p.r, RANDOM_PROGRAM_INPUTS); i > 0; i--) {
        begin(&p, name);
        put(&p, "placeholder[target=%s]()\n", name);
        add_tensor(&p, name);
    }
    for (size_t i = 0; i < nodes / 2; i++)
        statement(&p);
    put_output(&p);
    cfx_graph *g = cfx_graph_parse(p.text.data, p.text.size, NULL, NULL, err);
    cfx_buffer_free(&p.text);
    return g;
}

size_t random_program_inputs(cfx_scope *s, const cfx_graph *g, uint64_t seed,
                             cfx_var in[RANDOM_PROGRAM_INPUTS])
{
    random_source r = {seed + 77};
    size_t n = 0;
    for (const cfx_node *at = cfx_graph_first(g); at; at = cfx_node_next(at)) {
        if (cfx_node_op(at) != CFX_OP_PLACEHOLDER || n == RANDOM_PROGRAM_INPUTS)
            continue;
        in[n] = cfx_zeros(s, cfx_ints(2, 4));
        cfx_tensor *t = cfx_var_tensor(s, in[n++]);
        for (size_t i = 0; t && i < 8; i++)
            ((float *)cfx_tensor_data(t))[i] = (float)random_below(&r, 4097) / 1024 - 2;
    }
    return n;
}
