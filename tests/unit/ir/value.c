/* value.c - tests of values: every kind, their layout, limits, counting. */
#include "graph_test.h"

#include "ir/graph_impl.h"

/* ---- closed sets --------------------------------------------------------------------------- */

TEST(names_of_closed_sets)
{
    CHECK_STR_EQ("invalid", cfx_kind_name(CFX_KIND_INVALID));
    CHECK_STR_EQ("host", cfx_kind_name(CFX_KIND_HOST));
    CHECK_STR_EQ("unknown", cfx_kind_name(CFX_KIND_COUNT));
    CHECK_STR_EQ("bool", cfx_dtype_name(CFX_DTYPE_BOOL));
    CHECK_STR_EQ("qint32", cfx_dtype_name(CFX_DTYPE_QINT32));
    CHECK_STR_EQ("unknown", cfx_dtype_name((cfx_dtype)-1));
    CHECK_INT_EQ(8, cfx_dtype_size(CFX_DTYPE_FLOAT64));
    CHECK_INT_EQ(16, cfx_dtype_size(CFX_DTYPE_COMPLEX128));
    CHECK_INT_EQ(0, cfx_dtype_size(CFX_DTYPE_COUNT));
    CHECK_STR_EQ("strided", cfx_layout_name(CFX_LAYOUT_STRIDED));
    CHECK_STR_EQ("jagged", cfx_layout_name(CFX_LAYOUT_JAGGED));
    CHECK_STR_EQ("unknown", cfx_layout_name(CFX_LAYOUT_COUNT));
    CHECK_STR_EQ("contiguous_format", cfx_memory_format_name(CFX_MEMORY_FORMAT_CONTIGUOUS));
    CHECK_STR_EQ("channels_last_3d", cfx_memory_format_name(CFX_MEMORY_FORMAT_CHANNELS_LAST_3D));
    CHECK_STR_EQ("unknown", cfx_memory_format_name(CFX_MEMORY_FORMAT_COUNT));
}

TEST(scalars)
{
    CHECK_INT_EQ(CFX_KIND_NONE, cfx_value_none().kind);
    CHECK_INT_EQ(CFX_KIND_ELLIPSIS, cfx_value_ellipsis().kind);
    CHECK(cfx_value_bool(true).as.b && !cfx_value_bool(false).as.b);
    CHECK_INT_EQ(INT64_MIN, cfx_value_int(INT64_MIN).as.i);
    CHECK(cfx_value_float(-0.5).as.f == -0.5);
    CHECK_INT_EQ(CFX_DTYPE_INT8, cfx_value_dtype(CFX_DTYPE_INT8).as.i);
    CHECK_INT_EQ(CFX_LAYOUT_JAGGED, cfx_value_layout(CFX_LAYOUT_JAGGED).as.i);
    CHECK_INT_EQ(CFX_KIND_MEMORY_FORMAT, cfx_value_memory_format(CFX_MEMORY_FORMAT_PRESERVE).kind);
    size_t n = 7;
    CHECK(!cfx_value_text(cfx_value_int(1), &n) && n == 0);
    n = 7;
    CHECK(!cfx_value_items(cfx_value_int(1), &n) && n == 0);
    CHECK(!cfx_value_items(cfx_value_int(1), NULL));
    CHECK(!cfx_value_graph(cfx_value_int(1)));
    CHECK(!cfx_value_object(cfx_value_int(1)));
    CHECK_INT_EQ(CFX_KIND_INVALID, cfxi_ir_value_get(cfx_value_int(1), "key").kind);
    CHECK_INT_EQ(3, cfx_value_retain(cfx_value_int(3)).as.i);
}

/* ---- strings ------------------------------------------------------------------------------- */

static void check_text(cfx_value v, cfx_kind kind, const char *want, size_t size)
{
    size_t n;
    CHECK_INT_EQ(kind, v.kind);
    const char *text = cfx_value_text(v, &n);
    REQUIRE(text);
    CHECK_INT_EQ(size, n);
    CHECK(memcmp(want, text, size + 1) == 0);
    CHECK(cfx_value_text(v, NULL) == text);
}

TEST(strings)
{
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    check_text(cfx_value_str(g, "h\xc3\xa9\0y", 5, &err), CFX_KIND_STR, "h\xc3\xa9\0y", 5);
    check_text(cfx_value_str(g, "", 0, &err), CFX_KIND_STR, "", 0);
    check_text(cfx_value_str(g, NULL, 0, &err), CFX_KIND_STR, "", 0);
    check_text(cfx_value_str(g, "\xed\xa0\x80", 3, &err), CFX_KIND_STR, "\xed\xa0\x80", 3);
    check_text(cfx_value_bytes(g, "\xff\0\x80", 3, &err), CFX_KIND_BYTES, "\xff\0\x80", 3);
    check_text(cfx_value_bytes(g, NULL, 0, &err), CFX_KIND_BYTES, "", 0);
    CHECK_INT_EQ(CFX_OK, err.status);
    static const char *const bad[] = {"\xff", "a\xc3", "\xc0\x80", "\xf5\x80\x80\x80"};
    for (size_t i = 0; i < 4; i++) {
        err.status = CFX_OK;
        CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_str(g, bad[i], strlen(bad[i]), &err).kind);
        CHECK_INT_EQ(CFX_E_VALUE, err.status);
    }
    static char big[100000];
    memset(big, 'b', sizeof big);
    const size_t before = cfx_graph_memory(g);
    cfx_value v = cfx_value_str(g, big, sizeof big, NULL);
    CHECK(cfx_graph_memory(g) > before + sizeof big);
    cfx_value_discard(g, v);
    CHECK(cfx_graph_memory(g) == before);
    cfx_graph_release(g);
}

TEST(integers)
{
    static const struct {
        const char *digits;
        cfx_kind kind;
        const char *text;
        int64_t i;
    } rows[] = {
        {"0", CFX_KIND_INT, NULL, 0},
        {"-0", CFX_KIND_INT, NULL, 0},
        {"007", CFX_KIND_INT, NULL, 7},
        {"9223372036854775807", CFX_KIND_INT, NULL, INT64_MAX},
        {"-9223372036854775808", CFX_KIND_INT, NULL, INT64_MIN},
        {"9223372036854775808", CFX_KIND_BIGINT, "9223372036854775808", 0},
        {"-9223372036854775809", CFX_KIND_BIGINT, "-9223372036854775809", 0},
        {"0009223372036854775808", CFX_KIND_BIGINT, "9223372036854775808", 0},
        {"-00099999999999999999999", CFX_KIND_BIGINT, "-99999999999999999999", 0},
        {"", CFX_KIND_INVALID, NULL, 0},
        {"-", CFX_KIND_INVALID, NULL, 0},
        {"--5", CFX_KIND_INVALID, NULL, 0},
        {"12a", CFX_KIND_INVALID, NULL, 0},
        {"1 2", CFX_KIND_INVALID, NULL, 0},
        {"99999999999999999999x", CFX_KIND_INVALID, NULL, 0},
        {"-99999999999999999999-", CFX_KIND_INVALID, NULL, 0},
        {"000000000000000000000x0", CFX_KIND_INVALID, NULL, 0},
    };
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cfx_error err = {0};
        cfx_value v = cfx_value_integer(g, rows[i].digits, strlen(rows[i].digits), &err);
        CHECK_INT_EQ(rows[i].kind, v.kind);
        CHECK_INT_EQ(rows[i].kind == CFX_KIND_INVALID ? CFX_E_VALUE : CFX_OK, err.status);
        if (rows[i].kind == CFX_KIND_INT)
            CHECK_INT_EQ(rows[i].i, v.as.i);
        if (rows[i].kind == CFX_KIND_BIGINT)
            check_text(v, CFX_KIND_BIGINT, rows[i].text, strlen(rows[i].text));
        if (rows[i].kind == CFX_KIND_INVALID)
            CHECK_INT_EQ(CFX_KIND_INVALID,
                         cfx_value_integer(g, rows[i].digits, strlen(rows[i].digits), NULL).kind);
    }
    cfx_graph_release(g);
}

TEST(devices)
{
    static const char *const good[] = {"cpu", "cuda:0", "cuda:12", "meta", "_x9", "xpu:3"};
    static const char *const bad[] = {"", ":0", "cuda:", "cuda:a", "cuda:0:1", "9cpu", "cu da",
                                      "cuda :0", "cpu\n"};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        check_text(cfx_value_device(g, good[i], strlen(good[i]), NULL), CFX_KIND_DEVICE, good[i],
                   strlen(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cfx_error err = {0};
        CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_device(g, bad[i], strlen(bad[i]), &err).kind);
        CHECK_INT_EQ(CFX_E_VALUE, err.status);
    }
    cfx_graph_release(g);
}

/* ---- containers ---------------------------------------------------------------------------- */

static cfx_status seq_status(cfx_graph *g, cfx_kind kind, const cfx_value *items, size_t n)
{
    cfx_error err = {0};
    cfx_value v = cfx_value_seq(g, kind, items, n, &err);
    CHECK((v.kind == CFX_KIND_INVALID) == (err.status != CFX_OK));
    if (v.kind != CFX_KIND_INVALID) {
        size_t got;
        const cfx_value *copy = cfx_value_items(v, &got);
        CHECK_INT_EQ(kind, v.kind);
        CHECK_INT_EQ(n, got);
        CHECK(n == 0 || memcmp(copy, items, n * sizeof *items) == 0);
        cfx_value_discard(g, v);
    }
    return err.status;
}

TEST(containers_have_a_layout)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    const cfx_value f = cfx_value_float(1);
    const cfx_value i = cfx_value_int(1);
    const cfx_value s = cfx_value_retain(text_value(g, "a"));
    const cfx_value big = cfx_value_retain(cfx_value_integer(g, "99999999999999999999", 20, NULL));
    const cfx_value type = cfx_value_retain(cfx_value_name(g, "m.P", 3, NULL));
    const cfx_value one = cfx_value_retain(tuple_of(g, 1, s));
    const cfx_value none = cfx_value_retain(tuple_of(g, 0));
    CHECK_INT_EQ(CFX_OK, seq_status(g, CFX_KIND_COMPLEX, (cfx_value[]){f, f}, 2));
    CHECK_INT_EQ(CFX_E_TYPE, seq_status(g, CFX_KIND_COMPLEX, (cfx_value[]){f, i}, 2));
    CHECK_INT_EQ(CFX_E_TYPE, seq_status(g, CFX_KIND_COMPLEX, &f, 1));
    CHECK_INT_EQ(CFX_OK, seq_status(g, CFX_KIND_SLICE, (cfx_value[]){s, f, none}, 3));
    CHECK_INT_EQ(CFX_E_TYPE, seq_status(g, CFX_KIND_SLICE, (cfx_value[]){i, i}, 2));
    CHECK_INT_EQ(CFX_OK, seq_status(g, CFX_KIND_RANGE, (cfx_value[]){i, big, i}, 3));
    CHECK_INT_EQ(CFX_E_TYPE, seq_status(g, CFX_KIND_RANGE, (cfx_value[]){i, f, i}, 3));
    CHECK_INT_EQ(CFX_OK, seq_status(g, CFX_KIND_DICT, (cfx_value[]){i, s, s, i}, 4));
    CHECK_INT_EQ(CFX_E_TYPE, seq_status(g, CFX_KIND_DICT, (cfx_value[]){i, s, s}, 3));
    CHECK_INT_EQ(CFX_OK, seq_status(g, CFX_KIND_NAMEDTUPLE, (cfx_value[]){type, one, i}, 3));
    CHECK_INT_EQ(CFX_OK, seq_status(g, CFX_KIND_NAMEDTUPLE, (cfx_value[]){type, none}, 2));
    CHECK_INT_EQ(CFX_E_TYPE, seq_status(g, CFX_KIND_NAMEDTUPLE, (cfx_value[]){type, one}, 2));
    CHECK_INT_EQ(CFX_E_TYPE, seq_status(g, CFX_KIND_NAMEDTUPLE, (cfx_value[]){s, one, i}, 3));
    CHECK_INT_EQ(CFX_E_TYPE, seq_status(g, CFX_KIND_NAMEDTUPLE, (cfx_value[]){type, s, i}, 3));
    CHECK_INT_EQ(CFX_E_TYPE, seq_status(g, CFX_KIND_NAMEDTUPLE, &type, 1));
    static const cfx_kind plain[] = {CFX_KIND_LIST, CFX_KIND_TUPLE, CFX_KIND_SET,
                                     CFX_KIND_FROZENSET};
    for (size_t k = 0; k < 4; k++) {
        CHECK_INT_EQ(CFX_OK, seq_status(g, plain[k], NULL, 0));
        CHECK_INT_EQ(CFX_OK, seq_status(g, plain[k], (cfx_value[]){i, s, f, none, type}, 5));
        CHECK_INT_EQ(CFX_E_VALUE,
                     seq_status(g, plain[k], (cfx_value[]){i, cfx_value_invalid()}, 2));
    }
    for (int kind = 0; kind <= CFX_KIND_COUNT; kind++)
        if (!cfxi_ir_is_seq(cfx_value_scalar((cfx_kind)kind, 0)))
            CHECK_INT_EQ(CFX_E_TYPE, seq_status(g, (cfx_kind)kind, &i, 1));
    const cfx_value odd = cfx_value_scalar(CFX_KIND_COUNT, 0);
    CHECK_INT_EQ(CFX_E_VALUE, seq_status(g, CFX_KIND_LIST, &odd, 1));
    cfx_graph_release(g);
}

TEST(short_constructors)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    const cfx_value i = cfx_value_int(4);
    CHECK_INT_EQ(CFX_KIND_LIST, cfx_value_list(g, &i, 1, NULL).kind);
    CHECK_INT_EQ(CFX_KIND_TUPLE, cfx_value_tuple(g, &i, 1, NULL).kind);
    CHECK_INT_EQ(CFX_KIND_SET, cfx_value_seq(g, CFX_KIND_SET, &i, 1, NULL).kind);
    CHECK_INT_EQ(CFX_KIND_COMPLEX, cfx_value_complex(g, 1, -2, NULL).kind);
    CHECK_INT_EQ(CFX_KIND_SLICE, cfx_value_slice(g, i, cfx_value_none(), i, NULL).kind);
    CHECK_INT_EQ(CFX_KIND_RANGE,
                 cfx_value_seq(g, CFX_KIND_RANGE, (cfx_value[]){i, i, i}, 3, NULL).kind);
    CHECK_INT_EQ(
        CFX_KIND_INVALID,
        cfx_value_seq(g, CFX_KIND_RANGE, (cfx_value[]){i, cfx_value_none(), i}, 3, NULL).kind);
    size_t n;
    const cfx_value *parts = cfx_value_items(cfx_value_complex(g, 1, -2, NULL), &n);
    CHECK(n == 2 && parts[0].as.f == 1 && parts[1].as.f == -2);
    cfx_graph_release(g);
}

/* A chain of constructors keeps the first reason. */
TEST(invalid_is_handed_on)
{
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value pair[] = {cfx_value_int(1), cfx_value_device(g, "no such", 7, &err)};
    cfx_value args[] = {cfx_value_list(g, pair, 2, &err)};
    CHECK_INT_EQ(CFX_KIND_INVALID, args[0].kind);
    CHECK(!cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", args, 1, NULL, 0, &err));
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    CHECK(strstr(err.message, "no such"));
    err = (cfx_error){0};
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_list(g, args, 1, &err).kind);
    CHECK(strstr(err.message, "check the call that created it"));
    CHECK(!cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", args, 1, NULL, 0, NULL));
    CHECK_INT_EQ(0, cfx_graph_size(g));
    cfx_graph_release(g);
}

TEST(depth_limit)
{
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *x = cfx_graph_placeholder(g, "x", NULL);
    cfx_value v = cfx_value_node(x);
    int depth = 0;
    for (;; depth++) {
        cfx_value up = cfx_value_seq(g, depth % 2 ? CFX_KIND_LIST : CFX_KIND_TUPLE, &v, 1, &err);
        if (up.kind == CFX_KIND_INVALID)
            break;
        v = up;
    }
    CHECK_INT_EQ(CFX_MAX_DEPTH, depth);
    CHECK_INT_EQ(CFX_E_LIMIT, err.status);
    CHECK_INT_EQ(1, x->graph->empty->refs); /* untouched by all this */
    cfx_value_discard(g, v); /* a thousand levels at once */
    v = tuple_of(g, 0);
    for (depth = 1; depth < CFX_MAX_DEPTH; depth++)
        v = tuple_of(g, 1, v);
    cfx_node *n = cfx_graph_create(g, CFX_OP_CALL_FUNCTION, by_name("f"), v, cfx_value_invalid(),
                                   NULL, cfx_value_invalid(), NULL);
    CHECK(n != NULL);
    cfx_value whole = cfx_node_args(n);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_list(g, &whole, 1, NULL).kind);
    CHECK_INT_EQ(CFX_OK, erase(n));
    cfx_graph_release(g);
}

/* The depth of args and of kwargs are two things, and both are forgotten with the arguments. */
TEST(depth_does_not_pile_up)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *n = call(g, "f", NULL);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_args(n, tuple_of(g, 1, cfx_value_int(1)), NULL));
    for (int i = 0; i < 2 * CFX_MAX_DEPTH; i++) {
        cfx_value list = tuple_of(g, 1, cfx_node_args(n));
        if (!CHECK_INT_EQ(CFX_OK, cfx_node_set_kwarg(n, "k", list, NULL)))
            break;
    }
    CHECK_INT_EQ(1, cfx_node_args(n).pad);
    CHECK_INT_EQ(3, cfx_node_kwargs(n).pad);
    cfx_graph_release(g);
}

/* The arguments of a node that has none are a value like any other. */
TEST(empty_arguments_are_values)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *n = cfx_graph_placeholder(g, "x", NULL);
    cfx_value both[] = {cfx_node_args(n), cfx_node_kwargs(n)};
    size_t size = 9;
    CHECK(cfx_value_items(both[0], &size) && size == 0);
    cfx_value list = cfx_value_list(g, both, 2, NULL);
    CHECK_INT_EQ(CFX_KIND_LIST, list.kind);
    cfx_value_release(g, cfx_value_retain(both[0]));
    cfx_value_discard(g, both[1]);
    CHECK_INT_EQ(CFX_OK, cfx_node_set_args(n, both[0], NULL));
    CHECK_INT_EQ(CFX_OK, cfx_node_set_args_kwargs(n, both[0], both[1], NULL));
    CHECK_INT_EQ(CFX_OK, cfx_value_each_node(list, NULL, NULL));
    cfx_value_discard(g, list);
    CHECK_INT_EQ(1, g->empty->refs);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfxi_ir_value_get(both[1], "a").kind);
    cfx_graph_release(g);
}

TEST(dict_lookup)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value items[] = {cfx_value_int(1),  cfx_value_int(10),   text_value(g, "k"),
                         cfx_value_int(20), text_value(g, "kk"), cfx_value_int(30),
                         text_value(g, ""), cfx_value_int(40)};
    cfx_value dict = cfx_value_seq(g, CFX_KIND_DICT, items, 8, NULL);
    CHECK_INT_EQ(20, cfxi_ir_value_get(dict, "k").as.i);
    CHECK_INT_EQ(30, cfxi_ir_value_get(dict, "kk").as.i);
    CHECK_INT_EQ(40, cfxi_ir_value_get(dict, "").as.i);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfxi_ir_value_get(dict, "kkk").kind);
    CHECK_INT_EQ(CFX_KIND_INVALID, cfxi_ir_value_get(cfx_value_list(g, items, 8, NULL), "k").kind);
    cfx_graph_release(g);
}

/* ---- nodes and graphs ---------------------------------------------------------------------- */

TEST(nodes_must_be_of_the_graph)
{
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *h = cfx_graph_new(NULL, NULL, NULL);
    cfx_value foreign = cfx_value_node(cfx_graph_placeholder(h, "y", NULL));
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_list(g, &foreign, 1, &err).kind);
    CHECK_INT_EQ(CFX_E_GRAPH, err.status);
    CHECK(strstr(err.message, "%y belongs to another graph"));
    cfx_value nested = cfx_value_tuple(h, &foreign, 1, NULL);
    CHECK(!cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", &nested, 1, NULL, 0, &err));
    CHECK_INT_EQ(CFX_E_GRAPH, err.status);
    cfx_node *n = cfx_graph_placeholder(g, "n", NULL);
    cfx_value dead = cfx_value_node(n);
    cfx_node_pin(n);
    CHECK_INT_EQ(CFX_OK, erase(n));
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_list(g, &dead, 1, &err).kind);
    CHECK(strstr(err.message, "%n was erased"));
    cfx_node_unpin(n);
    cfx_value nothing[] = {cfx_value_node(NULL), cfx_value_node(cfx_graph_root(g))};
    for (int i = 0; i < 2; i++) {
        err = (cfx_error){0}; /* a missing node leaves an earlier reason in place */
        CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_list(g, &nothing[i], 1, &err).kind);
        CHECK_INT_EQ(CFX_E_VALUE, err.status);
    }
    cfx_value name = cfx_value_name(h, "torch.Tensor", 12, NULL); /* refs tell where they belong */
    CHECK_INT_EQ(CFX_KIND_INVALID, cfx_value_list(g, &name, 1, &err).kind);
    CHECK_INT_EQ(CFX_E_GRAPH, err.status);
    nested = cfx_value_tuple(h, &name, 1, NULL);
    CHECK(!cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", &nested, 1, NULL, 0, &err));
    CHECK_INT_EQ(CFX_E_GRAPH, err.status);
    cfx_graph_release(g);
    cfx_graph_release(h);
}

typedef struct seen {
    cfx_node *nodes[8];
    size_t n, stop;
} seen;

static cfx_status see(void *ctx, cfx_node *n)
{
    seen *s = ctx;
    s->nodes[s->n++] = n;
    return s->n == s->stop ? CFX_E_KEY : CFX_OK;
}

TEST(each_node)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_node *a = cfx_graph_placeholder(g, "a", NULL);
    cfx_node *b = cfx_graph_placeholder(g, "b", NULL);
    cfx_value inner =
        cfx_value_slice(g, cfx_value_node(b), cfx_value_none(), cfx_value_node(a), NULL);
    cfx_value v = tuple_of(g, 4, cfx_value_node(a), inner, cfx_value_int(1), cfx_value_node(a));
    seen s = {.stop = 99};
    CHECK_INT_EQ(CFX_OK, cfx_value_each_node(v, see, &s));
    CHECK(s.n == 4 && s.nodes[0] == a && s.nodes[1] == b && s.nodes[2] == a && s.nodes[3] == a);
    s = (seen){.stop = 2};
    CHECK_INT_EQ(CFX_E_KEY, cfx_value_each_node(v, see, &s));
    CHECK_INT_EQ(2, s.n);
    cfx_graph_release(g);
}

/* ---- counting ------------------------------------------------------------------------------ */

/* Memory in use: what the arena has handed out and not got back. */
static size_t in_use(const cfx_graph *g)
{
    size_t free_bytes = (size_t)(g->arena.end - g->arena.next);
    for (size_t c = 0; c < CFXI_ARENA_CLASSES; c++) {
        void *p = g->arena.free_lists[c];
        while (p && c < 64) {
            free_bytes += (c + 1) * 8;
#ifdef __SANITIZE_ADDRESS__
            return 0; /* free blocks may not be read */
#endif
            memcpy(&p, p, sizeof p);
        }
    }
    return g->arena.bytes - free_bytes;
}

static cfx_value some_of_all(cfx_graph *g)
{
    cfx_value text = text_value(g, "shared");
    cfx_value pair = tuple_of(g, 2, text, text);
    cfx_value dict[] = {text_value(g, "key"), pair, pair, cfx_value_bytes(g, "b", 1, NULL)};
    cfx_value items[] = {
        pair,
        cfx_value_seq(g, CFX_KIND_DICT, dict, 4, NULL),
        text,
        cfx_value_complex(g, 1, 2, NULL),
        cfx_value_device(g, "cpu", 3, NULL),
        cfx_value_integer(g, "123456789012345678901", 21, NULL),
        cfx_value_seq(g, CFX_KIND_RANGE,
                      (cfx_value[]){cfx_value_int(1), cfx_value_int(2), cfx_value_int(3)}, 3, NULL),
        cfx_value_name(g, "torch.float", 11, NULL)};
    return cfx_value_list(g, items, 8, NULL);
}

TEST(discarding_gives_everything_back)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_value_discard(g, some_of_all(g)); /* what stays: the table of references */
    const size_t before = in_use(g);
    const size_t memory = cfx_graph_memory(g);
    for (int i = 0; i < 100; i++)
        cfx_value_discard(g, some_of_all(g));
    CHECK(in_use(g) == before);
    CHECK(cfx_graph_memory(g) == memory);
    cfx_value v = cfx_value_retain(some_of_all(g));
    cfx_value_discard(g, v); /* somebody holds it */
    CHECK(cfx_value_items(v, NULL)[2].kind == CFX_KIND_STR);
    cfx_value_retain(v);
    cfx_value_release(g, v);
    cfx_value_release(g, v);
    CHECK(in_use(g) == before);
    CHECK_INT_EQ(0, g->refs_table.size);
    cfx_graph_release(g);
}

/* What a failed edit was given still belongs to the caller. */
TEST(failures_take_nothing)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    cfx_graph *h = cfx_graph_new(NULL, NULL, NULL);
    cfx_value foreign = cfx_value_node(cfx_graph_placeholder(h, "y", NULL));
    cfx_value bad = cfx_value_list(h, &foreign, 1, NULL);
    cfx_value v = text_value(g, "mine");
    cfx_value two[] = {v, bad};
    cfx_kwarg kwargs[] = {{"a", v}, {"b", bad}};
    CHECK(!cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", two, 2, NULL, 0, NULL));
    CHECK(!cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "f", &v, 1, kwargs, 2, NULL));
    CHECK(!cfx_graph_call(g, CFX_OPCODE_COUNT, "f", &v, 1, kwargs, 1, NULL));
    CHECK_INT_EQ(0, v.as.str->refs);
    cfx_node *n = call(g, "f", NULL);
    cfx_value tuple = tuple_of(g, 2, v, bad);
    CHECK_INT_EQ(1, v.as.str->refs);
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_args(n, tuple, NULL));
    CHECK_INT_EQ(0, tuple.as.seq->refs);
    cfx_value_retain(bad);
    cfx_value_discard(g, tuple); /* takes `v` along */
    v = text_value(g, "mine");
    cfx_value list = tuple_of(g, 2, v, foreign);
    CHECK_INT_EQ(CFX_KIND_INVALID, list.kind);
    CHECK_INT_EQ(0, v.as.str->refs);
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_set_kwarg(n, "k", bad, NULL));
    CHECK_INT_EQ(CFX_E_GRAPH, cfx_node_insert_arg(n, 0, bad, NULL));
    CHECK_INT_EQ(1, bad.as.seq->refs);
    CHECK_INT_EQ(CFX_E_TYPE, cfx_node_set_type(n, bad, NULL));
    cfx_value_discard(g, v);
    cfx_graph_release(g);
    cfx_graph_release(h);
}

static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    (void)arg;
    cfx_graph *g = cfx_graph_new(a, NULL, &err);
    for (int i = 0; g && i < 10 && err.status == CFX_OK; i++) {
        static char big[9000];
        memset(big, 'x', sizeof big);
        cfx_value items[] = {
            cfx_value_str(g, big, sizeof big, &err),
            cfx_value_bytes(g, big, 500, &err),
            cfx_value_integer(g, "123456789012345678901", 21, &err),
            cfx_value_device(g, "cpu", 3, &err),
            cfx_value_complex(g, 1, 2, &err),
            cfx_value_slice(g, cfx_value_int(1), cfx_value_none(), cfx_value_none(), &err),
            cfx_value_seq(g, CFX_KIND_RANGE,
                          (cfx_value[]){cfx_value_int(1), cfx_value_int(1), cfx_value_int(1)}, 3,
                          &err),
            cfx_value_name(g, big, (size_t)i * 100, &err)};
        cfx_value_list(g, items, 8, &err);
    }
    cfx_graph_release(g);
    return err.status;
}

TEST(values_out_of_memory) { CHECK(test_oom_sweep(sweep, NULL) > 10); }
