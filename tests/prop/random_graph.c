/* random_graph.c - builds random graphs through the public interface, and edits them. */
#include "random_impl.h"

#include <cfx/embed/graph.h>
#include <cfx/embed/location.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t random_next(random_source *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

size_t random_below(random_source *r, size_t n) { return (size_t)(random_next(r) % n); }
bool random_chance(random_source *r, unsigned percent) { return random_below(r, 100) < percent; }

/* ---- the host ------------------------------------------------------------------------------ */

static const char *const objects[] = {
    "torch.relu", "torch.nn.functional.gelu", "operator.getitem", "torch.Tensor", "builtins.int",
    "typing.Optional", "mymod.Point", "mymod.helper",
};
enum { OBJECTS = sizeof objects / sizeof *objects };

static void *object_at(size_t i) { return (void *)(uintptr_t)&objects[i]; }
static const char *object_name(const void *object) { return *(const char *const *)object; }

static void host_nothing(void *ctx, void *object)
{
    (void)ctx;
    (void)object;
}

static cfx_status host_name(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    (void)ctx;
    (void)err;
    return out.write(out.ctx, object_name(object), strlen(object_name(object)));
}

static cfx_status host_hint(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    const char *dot = strrchr(object_name(object), '.');
    (void)ctx;
    (void)err;
    return out.write(out.ctx, dot + 1, strlen(dot + 1));
}

static cfx_status host_resolve(void *ctx, const char *name, void **object, cfx_error *err)
{
    (void)ctx;
    (void)err;
    *object = NULL;
    for (size_t i = 0; i < OBJECTS; i++)
        if (strcmp(objects[i], name) == 0)
            *object = object_at(i);
    return CFX_OK;
}

const cfx_host random_host = {
    .retain = host_nothing, .release = host_nothing, .repr = host_name,
    .qualified_name = host_name, .resolve = host_resolve, .name_hint = host_hint,
};

/* ---- values -------------------------------------------------------------------------------- */

/* How often a kind comes; leaves only, where containers are too deep already. */
typedef struct kind_weight {
    cfx_kind kind;
    unsigned weight;
} kind_weight;

static const kind_weight leaf_weights[] = {
    {CFX_KIND_NODE, 45}, {CFX_KIND_NONE, 6}, {CFX_KIND_ELLIPSIS, 5}, {CFX_KIND_BOOL, 7},
    {CFX_KIND_INT, 12}, {CFX_KIND_FLOAT, 8}, {CFX_KIND_DTYPE, 6}, {CFX_KIND_LAYOUT, 5},
    {CFX_KIND_MEMORY_FORMAT, 5}, {CFX_KIND_STR, 8}, {CFX_KIND_BYTES, 5}, {CFX_KIND_BIGINT, 5},
    {CFX_KIND_DEVICE, 5}, {CFX_KIND_HOST, 6}, {CFX_KIND_COMPLEX, 6}, {CFX_KIND_RANGE, 6},
};
static const kind_weight tree_weights[] = {
    {CFX_KIND_SLICE, 9}, {CFX_KIND_LIST, 14}, {CFX_KIND_TUPLE, 12}, {CFX_KIND_SET, 9},
    {CFX_KIND_FROZENSET, 9}, {CFX_KIND_DICT, 10}, {CFX_KIND_NAMEDTUPLE, 10},
};

static cfx_kind pick_kind(random_source *r, const kind_weight *rows, size_t n)
{
    unsigned total = 0;
    for (size_t i = 0; i < n; i++)
        total += rows[i].weight;
    unsigned at = (unsigned)random_below(r, total);
    size_t i = 0;
    while (at >= rows[i].weight)
        at -= rows[i++].weight;
    return rows[i].kind;
}

static double random_float(random_source *r)
{
    static const double special[] = {0.0, -0.0, 1.0, 0.1, -1.5, 1e-5, 1e16, 1e22, 5e-324,
                                     1.7976931348623157e308, 2.2250738585072014e-308};
    size_t at = random_below(r, 16);
    if (at < sizeof special / sizeof *special)
        return special[at];
    double f;
    uint64_t bits = at == 11 ? 0x7ff0000000000000u : at == 12 ? 0xfff0000000000000u
                  : at == 13 ? 0x7ff8000000000000u : random_next(r);
    memcpy(&f, &bits, sizeof f);
    return f;
}

static int64_t random_int(random_source *r)
{
    switch (random_below(r, 8)) {
    case 0:
        return INT64_MIN;
    case 1:
        return INT64_MAX;
    case 2:
        return (int64_t)random_next(r);
    default:
        return (int64_t)random_below(r, 200) - 100;
    }
}

static cfx_value random_str(builder *b)
{
    static const char *const pieces[] = {"a", "mean", " ", "'", "\"", "\\", "\n", "\t", "\x7f",
                                         "%x", "#", "{", "é", "日本", "\U0001f600", "\u200b",
                                         "\xed\xa0\x80", "torch", "0"};
    char text[64];
    size_t used = 0;
    for (size_t n = random_below(b->r, 6); n > 0; n--) {
        const char *piece = pieces[random_below(b->r, sizeof pieces / sizeof *pieces)];
        memcpy(text + used, piece, strlen(piece));
        used += strlen(piece);
    }
    return cfx_value_str(b->g, text, used, b->err);
}

static cfx_value random_bytes(builder *b)
{
    char data[8];
    size_t n = random_below(b->r, sizeof data + 1);
    for (size_t i = 0; i < n; i++)
        data[i] = (char)random_next(b->r);
    return cfx_value_bytes(b->g, data, n, b->err);
}

static cfx_value random_bigint(builder *b)
{
    char digits[48];
    size_t n = 20 + random_below(b->r, 25);
    size_t at = random_chance(b->r, 30);
    digits[0] = '-';
    digits[at] = '9';
    for (size_t i = at + 1; i < n; i++)
        digits[i] = (char)('0' + random_below(b->r, 10));
    return cfx_value_integer(b->g, digits, n, b->err);
}

static cfx_value random_device(builder *b)
{
    static const char *const devices[] = {"cpu", "cuda", "cuda:0", "cuda:15", "meta", "mps:1"};
    const char *name = devices[random_below(b->r, sizeof devices / sizeof *devices)];
    return cfx_value_device(b->g, name, strlen(name), b->err);
}

/* The name of an object: one that the host knows, or one that nobody does. */
static const char *random_name(random_source *r)
{
    static const char *const unknown[] = {"mymod.f", "a.b.c.D", "torch.ops.aten.add_.Tensor", "g"};
    size_t at = random_below(r, OBJECTS + sizeof unknown / sizeof *unknown);
    return at < OBJECTS ? objects[at] : unknown[at - OBJECTS];
}

static cfx_value random_host_value(builder *b)
{
    const char *name = random_name(b->r);
    return cfx_value_name(b->g, name, strlen(name), b->err);
}

static cfx_value random_range(builder *b)
{
    cfx_value stop = random_chance(b->r, 10) ? random_bigint(b) : cfx_value_int(random_int(b->r));
    cfx_value parts[3] = {cfx_value_int(random_int(b->r)), stop,
                          cfx_value_int(1 + (int64_t)random_below(b->r, 4))};
    return cfx_value_seq(b->g, CFX_KIND_RANGE, parts, 3, b->err);
}

cfx_value random_leaf(builder *b)
{
    cfx_kind kind = pick_kind(b->r, leaf_weights, sizeof leaf_weights / sizeof *leaf_weights);
    if (kind == CFX_KIND_NODE && b->n == 0)
        kind = CFX_KIND_INT;
    switch (kind) {
    case CFX_KIND_NODE:
        return cfx_value_node(b->nodes[random_below(b->r, b->n)]);
    case CFX_KIND_ELLIPSIS:
        return cfx_value_ellipsis();
    case CFX_KIND_BOOL:
        return cfx_value_bool(random_chance(b->r, 50));
    case CFX_KIND_INT:
        return cfx_value_int(random_int(b->r));
    case CFX_KIND_FLOAT:
        return cfx_value_float(random_float(b->r));
    case CFX_KIND_DTYPE:
        return cfx_value_dtype((cfx_dtype)random_below(b->r, CFX_DTYPE_COUNT));
    case CFX_KIND_LAYOUT:
        return cfx_value_layout((cfx_layout)random_below(b->r, CFX_LAYOUT_COUNT));
    case CFX_KIND_MEMORY_FORMAT:
        return cfx_value_memory_format(
            (cfx_memory_format)random_below(b->r, CFX_MEMORY_FORMAT_COUNT));
    case CFX_KIND_STR:
        return random_str(b);
    case CFX_KIND_BYTES:
        return random_bytes(b);
    case CFX_KIND_BIGINT:
        return random_bigint(b);
    case CFX_KIND_DEVICE:
        return random_device(b);
    case CFX_KIND_HOST:
        return random_host_value(b);
    case CFX_KIND_COMPLEX:
        return cfx_value_complex(b->g, random_float(b->r), random_float(b->r), b->err);
    case CFX_KIND_RANGE:
        return random_range(b);
    default:
        return cfx_value_none();
    }
}

/* Sets and dicts have distinct items and keys. */
static cfx_value distinct(builder *b, size_t i)
{
    char text[8] = {(char)('a' + i), (char)('a' + random_below(b->r, 26))};
    if (random_chance(b->r, 50))
        return cfx_value_str(b->g, text, 2, b->err);
    return cfx_value_int((int64_t)(100 * i + random_below(b->r, 100)));
}

enum { MOST_ITEMS = 4 };

static cfx_value random_namedtuple(builder *b, size_t nesting)
{
    cfx_value names[MOST_ITEMS];
    cfx_value items[MOST_ITEMS + 2];
    size_t n = random_below(b->r, MOST_ITEMS);
    for (size_t i = 0; i < n; i++) {
        char name[2] = {(char)('p' + i), 0};
        names[i] = cfx_value_str(b->g, name, 1, b->err);
        items[2 + i] = random_value(b, nesting + 1);
    }
    items[0] = cfx_value_name(b->g, "mymod.Point", 11, b->err);
    items[1] = cfx_value_tuple(b->g, names, n, b->err);
    return cfx_value_seq(b->g, CFX_KIND_NAMEDTUPLE, items, n + 2, b->err);
}

static cfx_value random_tree(builder *b, size_t nesting)
{
    cfx_kind kind = pick_kind(b->r, tree_weights, sizeof tree_weights / sizeof *tree_weights);
    cfx_value items[2 * MOST_ITEMS];
    size_t n = kind == CFX_KIND_SLICE ? 3 : random_below(b->r, MOST_ITEMS + 1);
    if (kind == CFX_KIND_NAMEDTUPLE)
        return random_namedtuple(b, nesting);
    if (kind == CFX_KIND_DICT)
        n *= 2;
    bool set = kind == CFX_KIND_SET || kind == CFX_KIND_FROZENSET;
    for (size_t i = 0; i < n; i++) {
        bool key = set || (kind == CFX_KIND_DICT && i % 2 == 0);
        items[i] = key ? distinct(b, i) : random_value(b, nesting + 1);
    }
    return cfx_value_seq(b->g, kind, items, n, b->err);
}

cfx_value random_value(builder *b, size_t nesting)
{
    bool tree = nesting < RANDOM_MAX_NESTING && random_chance(b->r, nesting ? 42 : 30);
    return tree ? random_tree(b, nesting) : random_leaf(b);
}

/* A value without nodes, for types. */
cfx_value random_constant(builder *b)
{
    builder none = *b;
    none.n = 0;
    return random_chance(b->r, 60) ? random_host_value(b) : random_value(&none, 1);
}

/* ---- nodes --------------------------------------------------------------------------------- */

cfx_value random_args(builder *b)
{
    cfx_value items[MOST_ITEMS];
    size_t n = random_below(b->r, MOST_ITEMS + 1);
    for (size_t i = 0; i < n; i++)
        items[i] = random_value(b, 0);
    return cfx_value_tuple(b->g, items, n, b->err);
}

cfx_value random_kwargs(builder *b)
{
    static const char *const keys[] = {"dim", "alpha", "out", "inplace"};
    cfx_value items[8];
    size_t n = random_chance(b->r, 70) ? 0 : 1 + random_below(b->r, 3);
    size_t first = random_below(b->r, 4);
    for (size_t i = 0; i < n; i++) {
        const char *key = keys[(first + i) % 4];
        items[2 * i] = cfx_value_str(b->g, key, strlen(key), b->err);
        items[2 * i + 1] = random_value(b, 0);
    }
    return cfx_value_seq(b->g, CFX_KIND_DICT, items, 2 * n, b->err);
}

static uint32_t random_scope(builder *b)
{
    static const char *const paths[] = {"layers.0", "layers.1", "head", "norm"};
    static const char *const types[] = {"nn.Linear", "mymod.Block", "nn.ReLU"};
    uint32_t scope = 0;
    for (size_t n = 1 + random_below(b->r, 3); n > 0; n--)
        scope = cfx_graph_intern_stack(b->g, scope, paths[random_below(b->r, 4)],
                                       types[random_below(b->r, 3)], NULL, b->err);
    return scope;
}

static bool decorate(builder *b, cfx_node *n)
{
    static const char *const files[] = {"model.py", "dir/my file.py", "a'b.py", "<stdin>"};
    if (random_chance(b->r, 50) &&
        cfx_node_set_location(n, files[random_below(b->r, 4)],
                              (uint32_t)random_below(b->r, 500), b->err) != CFX_OK)
        return false;
    if (random_chance(b->r, 40)) {
        uint32_t scope = random_scope(b);
        if (!scope)
            return false;
        cfx_node_set_module_stack(n, scope);
    }
    return !random_chance(b->r, 20) ||
           cfx_node_set_type(n, random_constant(b), b->err) == CFX_OK;
}

cfx_target random_target(builder *b, cfx_opcode op)
{
    static const char *const inputs[] = {"x", "y", "input", "mask"};
    static const char *const paths[] = {"weight", "layers.0.bias", "sub.mod", "fc1"};
    static const char *const methods[] = {"relu", "add_", "view", "__getitem__"};
    const char *name = "output";
    size_t at = random_below(b->r, 4);
    if (op == CFX_OP_CALL_FUNCTION && cfx_graph_host(b->g) && random_chance(b->r, 70))
        return (cfx_target){.object = object_at(random_below(b->r, OBJECTS))};
    if (op == CFX_OP_CALL_FUNCTION)
        name = random_name(b->r);
    else if (op == CFX_OP_PLACEHOLDER)
        name = inputs[at];
    else if (op == CFX_OP_CALL_METHOD)
        name = methods[at];
    else if (op != CFX_OP_OUTPUT)
        name = paths[at];
    return (cfx_target){.name = name, .size = strlen(name)};
}

/* A call, or a get_attr now and then. */
cfx_node *random_call(builder *b)
{
    static const kind_weight rows[] = {{(cfx_kind)CFX_OP_GET_ATTR, 15},
                                       {(cfx_kind)CFX_OP_CALL_FUNCTION, 45},
                                       {(cfx_kind)CFX_OP_CALL_MODULE, 20},
                                       {(cfx_kind)CFX_OP_CALL_METHOD, 20}};
    static const char *const wishes[] = {"tmp", "x_5", "for", "my value", "out_1"};
    cfx_opcode op = (cfx_opcode)pick_kind(b->r, rows, 4);
    bool plain = op == CFX_OP_GET_ATTR;
    cfx_value args = plain ? cfx_value_invalid() : random_args(b);
    cfx_value kwargs = plain ? cfx_value_invalid() : random_kwargs(b);
    if (b->err->status != CFX_OK)
        return NULL;
    const char *wish = random_chance(b->r, 20) ? wishes[random_below(b->r, 5)] : NULL;
    cfx_node *n = cfx_graph_create(b->g, op, random_target(b, op), args, kwargs, wish,
                                   cfx_value_invalid(), b->err);
    return n && decorate(b, n) ? n : NULL;
}

static cfx_node *random_placeholder(builder *b)
{
    cfx_value args = cfx_value_invalid();
    if (random_chance(b->r, 30)) {
        cfx_value value = random_constant(b);
        args = cfx_value_tuple(b->g, &value, 1, b->err);
    }
    if (b->err->status != CFX_OK)
        return NULL;
    cfx_node *n = cfx_graph_create(b->g, CFX_OP_PLACEHOLDER,
                                   random_target(b, CFX_OP_PLACEHOLDER), args, cfx_value_invalid(),
                                   NULL, cfx_value_invalid(), b->err);
    return n && decorate(b, n) ? n : NULL;
}

/* ---- control flow and graphs --------------------------------------------------------------- */

static bool fill_graph(builder *b, size_t inputs, size_t calls, long results, unsigned depth);

static cfx_value random_region(builder *b, size_t inputs, long results, unsigned depth)
{
    cfx_node *nodes[64];
    cfx_graph *sub = cfx_graph_new(cfx_graph_allocator(b->g), cfx_graph_host(b->g), b->err);
    cfx_value v = cfx_value_invalid();
    builder inner = {b->r, sub, nodes, 0, b->err};
    if (sub && fill_graph(&inner, inputs, 1 + random_below(b->r, 5), results, depth + 1))
        v = cfx_value_region(b->g, sub, b->err);
    cfx_graph_release(sub);
    return v;
}

/* A cond, while_loop or for_loop whose regions fit. */
static cfx_node *random_control(builder *b, unsigned depth)
{
    static const char *const names[] = {"cfx.cond", "cfx.while_loop", "cfx.for_loop"};
    size_t which = random_below(b->r, 3);
    size_t n = random_below(b->r, 4);
    cfx_value operands[4];
    cfx_value args[4];
    for (size_t i = 0; i < n; i++)
        operands[i] = random_value(b, 1);
    cfx_value state = cfx_value_tuple(b->g, operands, n, b->err);
    if (which == 0) {
        long results = random_chance(b->r, 50) ? -1 : (long)random_below(b->r, 3);
        args[0] = random_leaf(b);
        args[1] = random_region(b, n, results, depth);
        args[2] = random_region(b, n, results, depth);
    } else {
        args[0] = which == 1 ? random_region(b, n, -1, depth) : random_leaf(b);
        args[1] = random_region(b, which == 1 ? n : n + 1, (long)n, depth);
    }
    args[which == 0 ? 3 : 2] = state;
    if (b->err->status != CFX_OK)
        return NULL;
    cfx_node *node = cfx_graph_call(b->g, CFX_OP_CALL_FUNCTION, names[which], args,
                                    which == 0 ? 4 : 3, NULL, 0, b->err);
    return node && decorate(b, node) ? node : NULL;
}

static bool add_output(builder *b, long results)
{
    cfx_value items[MOST_ITEMS];
    cfx_value result;
    for (long i = 0; i < results; i++)
        items[i] = random_value(b, 1);
    if (results >= 0) {
        result = cfx_value_tuple(b->g, items, (size_t)results, b->err);
    } else {
        do  /* a tuple would say how many values there are */
            result = random_value(b, 0);
        while (result.kind == CFX_KIND_TUPLE);
    }
    if (b->err->status != CFX_OK)
        return false;
    cfx_node *n = cfx_graph_output(b->g, result, b->err);
    return n && decorate(b, n);
}

/* `results` values are returned as a tuple; -1: anything else. */
static bool fill_graph(builder *b, size_t inputs, size_t calls, long results, unsigned depth)
{
    for (size_t i = 0; i < inputs; i++) {
        cfx_node *n = random_placeholder(b);
        if (!n)
            return false;
        b->nodes[b->n++] = n;
    }
    for (size_t i = 0; i < calls; i++) {
        bool control = depth < RANDOM_MAX_REGIONS && random_chance(b->r, 12);
        cfx_node *n = control ? random_control(b, depth) : random_call(b);
        if (!n)
            return false;
        b->nodes[b->n++] = n;
    }
    return add_output(b, results);
}

cfx_graph *random_graph_new(uint64_t seed, size_t nodes, const cfx_allocator *allocator,
                            cfx_error *err)
{
    random_source r = {seed};
    cfx_error own = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_new(allocator, seed % 2 ? &random_host : NULL, &own);
    builder b = {&r, g, malloc((nodes + 8) * sizeof(cfx_node *)), 0, &own};
    size_t inputs = random_below(&r, 4);
    long results = random_chance(&r, 50) ? -1 : (long)random_below(&r, MOST_ITEMS);
    bool good = g && b.nodes && fill_graph(&b, inputs, nodes, results, 0);
    free(b.nodes);
    if (good)
        return g;
    cfx_graph_release(g);
    if (err)
        *err = own;
    return NULL;
}
