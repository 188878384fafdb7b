/* onnx_import.c - ONNX models become packages; files that lie are refused, with the node. */
#include "check.h"
#include "onnx_model.h"
#include "test_alloc.h"

#include <stdlib.h>
#include <unistd.h>

/* y = relu(x W + b): one of everything that most files have. */
static cfx_buffer small_model(void)
{
    static float weight[] = {1, 2, 3, 4, 5, 6};
    static float bias[] = {-100, 1};
    cfxi_onnx_tensor weights[] = {
        {.has = BIT(tensor, dtype), .name = T("fc.weight"), .dtype = 1,
         .sizes = LIST(int64_t, 3, 2), .raw = {.data = (char *)weight, .size = sizeof weight}},
        {.has = BIT(tensor, dtype), .name = T("fc/bias"), .dtype = 1, .sizes = LIST(int64_t, 2),
         .floats = {bias, 2}}};
    cfxi_onnx_node nodes[] = {NODE("MatMul", (T("x")  , T("fc.weight")), (T("xw"))),
                              NODE("Add", (T("xw"), T("fc/bias")), (T("sum:0")), .name = T("add")),
                              NODE("Relu", (T("sum:0")), (T("y")))};
    cfxi_onnx_value in[] = {TYPED("x", 1, {.name = T("batch")}, DIM(3))};
    cfxi_onnx_value out[] = {{.name = T("y")}};
    cfxi_onnx_graph g = {.name = T("net"), .nodes = {nodes, 3}, .initializers = {weights, 2},
                         .inputs = {in, 1}, .outputs = {out, 1}};
    return model_bytes(&g, 18);
}

/* The message that reading bytes fails with; "" if they are read. */
static const char *message_of(cfx_buffer *file, cfx_status status)
{
    static cfx_error err;
    err = (cfx_error){0};
    cfx_package *p = cfx_onnx_read(file->data, file->size, NULL, NULL, &err);
    CHECK_INT_EQ(status, err.status);
    cfx_package_free(p);
    cfx_buffer_free(file);
    return err.message;
}

/* ---- what is read -------------------------------------------------------------------------- */

TEST(a_model_is_read_and_runs)
{
    cfx_buffer file = small_model();
    cfx_error err = {0};
    cfx_package *p = cfx_onnx_read(file.data, file.size, NULL, NULL, &err);
    CHECK_STR_EQ("", err.message);
    REQUIRE(p != NULL);
    CHECK_STR_EQ("net", cfx_package_model(p));
    CHECK(cfx_state_get(cfx_package_weights(p), "fc.weight") != NULL);
    CHECK(cfx_state_get(cfx_package_weights(p), "fc_bias") != NULL);
    cfx_executable *e = cfx_executable_new(p, NULL, &err);
    REQUIRE(e != NULL);
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    const int64_t sizes[] = {1, 3};
    cfx_tensor *x = cfx_tensor_new(CFX_DTYPE_FLOAT32, sizes, 2, NULL, NULL);
    for (int i = 0; i < 3; i++)
        ((float *)cfx_tensor_data(x))[i] = 1;
    cfx_datum in = cfx_datum_tensor(x);
    cfx_datum y = cfx_executable_run(e, NULL, rt, &in, 1, NULL, &err);
    REQUIRE(y.kind == CFX_DATUM_TENSOR);
    CHECK(((float *)cfx_tensor_data(y.as.tensor))[0] == 0);
    CHECK(((float *)cfx_tensor_data(y.as.tensor))[1] == 13);
    cfx_datum_release(y);
    cfx_datum_release(in);
    cfx_runtime_free(rt);
    cfx_executable_free(e);
    cfx_package_free(p);
    cfx_buffer_free(&file);
}

static cfx_status read_with(const cfx_allocator *a, void *arg)
{
    const cfx_buffer *file = arg;
    cfx_error err = {0};
    const cfx_onnx_read_options options = {.allocator = a};
    cfx_package *p = cfx_onnx_read(file->data, file->size, NULL, &options, &err);
    cfx_package_free(p);
    return p ? CFX_OK : err.status;
}

TEST(memory_may_run_out_anywhere)
{
    cfx_buffer file = small_model();
    CHECK(test_oom_sweep(read_with, &file) > 50);
    cfx_buffer_free(&file);
}

/* Scan of opset 8 with a length for each of two sequences, and SequenceMap over a list of two: the
 * body adds, and uses `w` of the graph around. */
static cfx_buffer of_regions(bool scan)
{
    cfxi_onnx_node add[] = {NODE("Add", (T("s"), T("a")), (T("t"))),
                            NODE("Mul", (T("t"), T("w")), (T("row")))};
    cfxi_onnx_value inputs[] = {{.name = T("s")}, {.name = T("a")}};
    cfxi_onnx_value rows[] = {{.name = T("t")}, {.name = T("row")}};
    cfxi_onnx_graph body = {.nodes = {add, 2}, .inputs = {inputs, 2}, .outputs = {rows, 2}};
    cfxi_onnx_attribute attributes[] = {
        {.has = BIT(attribute, kind), .kind = CFXI_ONNX_ATTR_GRAPH, .name = T("body"), .g = &body},
        {.has = BIT(attribute, i) | BIT(attribute, kind), .kind = CFXI_ONNX_ATTR_INT,
         .name = T("num_scan_inputs"), .i = 1}};
    cfxi_onnx_node nodes[] = {
        NODE("Scan", (T("n"), T("start"), T("x")), (T("last"), T("y")),
             .attributes = {attributes, 2}),
        NODE("SequenceConstruct", (T("start"), T("start")), (T("list"))),
        NODE("SequenceMap", (T("list"), T("start")), (T("last"), T("y")),
             .attributes = {attributes, 1})};
    cfxi_onnx_value in[] = {TYPED("n", 7, DIM(2)), TYPED("start", 1, DIM(2), DIM(2)),
                            TYPED("x", 1, DIM(2), DIM(3), DIM(2)), TYPED("w", 1, DIM(2))};
    cfxi_onnx_value out[] = {{.name = T("y")}};
    cfxi_onnx_graph g = {.inputs = {in, 4}, .outputs = {out, 1}};
    g.nodes.items = scan ? nodes : nodes + 1;
    g.nodes.n = scan ? 1 : 2;
    return model_bytes(&g, scan ? 8 : 17);
}

TEST(memory_may_run_out_in_regions)
{
    for (int scan = 0; scan < 2; scan++) {
        cfx_buffer file = of_regions(scan);
        CHECK(test_oom_sweep(read_with, &file) > 50);
        CHECK_STR_EQ("", message_of(&file, CFX_OK));
    }
}

TEST(a_file_is_mapped)
{
    char path[] = "/tmp/cfx_onnx_XXXXXX";
    cfx_buffer bytes = small_model();
    cfx_error err = {0};
    const int file = mkstemp(path);
    REQUIRE(file >= 0);
    CHECK_INT_EQ((long long)bytes.size, (long long)write(file, bytes.data, bytes.size));
    close(file);
    cfx_package *p = cfx_onnx_load(path, NULL, &err);
    CHECK_STR_EQ("", err.message);
    CHECK(p != NULL);
    cfx_package_free(p);
    unlink(path);
    CHECK(cfx_onnx_load(path, NULL, &err) == NULL);
    CHECK_INT_EQ(CFX_E_IO, err.status);
    cfx_buffer_free(&bytes);
}

/* ---- files that are cut off or changed ----------------------------------------------------- */

static void read_changed(const char *data, size_t size)
{
    test_alloc ta;
    cfx_error err = {0};
    const cfx_allocator a = test_alloc_init(&ta);
    const cfx_onnx_read_options options = {.allocator = &a};
    cfx_package *p = cfx_onnx_read(data, size, NULL, &options, &err);
    CHECK(p || (err.status != CFX_OK && err.message[0]));
    cfx_package_free(p);
    test_alloc_check(&ta);
    CHECK(ta.peak_bytes < (1 << 20));
}

TEST(every_byte_may_be_missing)
{
    cfx_buffer file = small_model();
    for (size_t n = 0; n < file.size; n++)
        read_changed(file.data, n);
    cfx_buffer_free(&file);
}

TEST(every_byte_may_be_another)
{
    cfx_buffer file = small_model();
    static const unsigned char others[] = {0x00, 0xff, 0x80, 0x7f};
    for (size_t i = 0; i < file.size; i++) {
        const char was = file.data[i];
        for (size_t k = 0; k < sizeof others; k++) {
            file.data[i] = (char)others[k];
            read_changed(file.data, file.size);
        }
        file.data[i] = was;
    }
    cfx_buffer_free(&file);
}

/* ---- graphs that are wrong ----------------------------------------------------------------- */

/* A graph of float32[2] to float32[2]. */
static cfx_buffer of_nodes(cfxi_onnx_node *nodes, size_t n, int64_t opset)
{
    cfxi_onnx_value in[] = {TYPED("x", 1, DIM(2))};
    cfxi_onnx_value out[] = {{.name = T("y")}};
    cfxi_onnx_graph g = {.nodes = {nodes, n}, .inputs = {in, 1}, .outputs = {out, 1}};
    return model_bytes(&g, opset);
}

TEST(nodes_must_be_sorted)
{
    cfxi_onnx_node nodes[] = {NODE("Relu", (T("b")), (T("y")), .name = T("first")),
                              NODE("Relu", (T("x")), (T("b")))};
    cfx_buffer file = of_nodes(nodes, 2, 18);
    CHECK_STR_EQ("node 'first' (Relu): it uses 'b' before that is computed: the nodes are not "
                 "sorted, or there is a cycle", message_of(&file, CFX_E_VALUE));
    cfxi_onnx_node cycle[] = {NODE("Add", (T("x"), T("y")), (T("y")))};
    file = of_nodes(cycle, 1, 18);
    CHECK(strstr(message_of(&file, CFX_E_VALUE), "before that is computed"));
}

TEST(names_must_stand_for_something)
{
    cfxi_onnx_node nodes[] = {NODE("Add", (T("x"), T("w")), (T("y")))};
    cfx_buffer file = of_nodes(nodes, 1, 18);
    CHECK_STR_EQ("node 'y' (Add): nothing in the file gives 'w'", message_of(&file, CFX_E_VALUE));
    cfxi_onnx_node other[] = {NODE("Relu", (T("x")), (T("z")))};
    file = of_nodes(other, 1, 18);
    CHECK(strstr(message_of(&file, CFX_E_VALUE), "nothing gives the output 'y' of the graph"));
}

TEST(a_name_is_given_once)
{
    cfxi_onnx_node nodes[] = {NODE("Relu", (T("x")), (T("y"))), NODE("Neg", (T("x")), (T("y")))};
    cfx_buffer file = of_nodes(nodes, 2, 18);
    CHECK_STR_EQ("node 'y' (Neg): two values are called 'y'", message_of(&file, CFX_E_VALUE));
}

TEST(names_need_not_be_identifiers)
{
    cfxi_onnx_node nodes[] = {NODE("Relu", (T("x")), (T("1/\xc3\xa9 class"))),
                              NODE("Neg", (T("1/\xc3\xa9 class")), (T("y")))};
    cfx_buffer file = of_nodes(nodes, 2, 18);
    CHECK_STR_EQ("", message_of(&file, CFX_OK));
}

/* ---- what cfx does not have ---------------------------------------------------------------- */

static void count(void *ctx, const cfx_onnx_finding *finding)
{
    char *all = ctx;
    snprintf(all + strlen(all), 300 - strlen(all), "%s %s; ", finding->node, finding->op);
}

TEST(all_that_cannot_be_read_is_reported)
{
    char found[300] = "";
    cfx_error err = {0};
    const cfx_onnx_read_options options = {.each = count, .ctx = found};
    cfxi_onnx_node nodes[] = {NODE("Frobnicate", (T("x")), (T("a"))),
                              NODE("FusedConv", (T("x")), (T("b")), .domain = T("com.microsoft")),
                              NODE("Add", (T("a"), T("b")), (T("y")))};
    cfx_buffer file = of_nodes(nodes, 3, 18);
    CHECK(cfx_onnx_read(file.data, file.size, NULL, &options, &err) == NULL);
    CHECK_INT_EQ(CFX_E_UNSUPPORTED, err.status);
    CHECK_STR_EQ("2 nodes cannot be read; the first: node 'a' (Frobnicate): cfx does not have this "
                 "operator", err.message);
    CHECK_STR_EQ("a Frobnicate; b com.microsoft::FusedConv; ", found);
    cfx_buffer_free(&file);
}

TEST(opsets_have_limits)
{
    cfxi_onnx_node nodes[] = {NODE("Shape", (T("x")), (T("y")))};
    cfx_buffer file = of_nodes(nodes, 1, 99);
    CHECK(strstr(message_of(&file, CFX_E_UNSUPPORTED), "it is of opset 99; cfx reads 6 to 28"));
    file = of_nodes(nodes, 1, 2);
    CHECK(strstr(message_of(&file, CFX_E_UNSUPPORTED), "it is of opset 2; cfx reads 6 to 28"));
}

TEST(attributes_must_be_known)
{
    cfxi_onnx_attribute odd[] = {{.has = BIT(attribute, i) | BIT(attribute, kind),
                                  .name = T("odd"), .kind = CFXI_ONNX_ATTR_INT, .i = 1}};
    cfxi_onnx_node nodes[] = {NODE("Relu", (T("x")), (T("y")), .attributes = {odd, 1})};
    cfx_buffer file = of_nodes(nodes, 1, 18);
    CHECK(strstr(message_of(&file, CFX_E_UNSUPPORTED), "the attribute 'odd' is not known"));
}

TEST(strings_are_not_tensors)
{
    cfxi_onnx_node nodes[] = {NODE("Identity", (T("x")), (T("y")))};
    cfxi_onnx_value in[] = {TYPED("x", 8, DIM(2))};
    cfxi_onnx_value out[] = {{.name = T("y")}};
    cfxi_onnx_graph g = {.nodes = {nodes, 1}, .inputs = {in, 1}, .outputs = {out, 1}};
    cfx_buffer file = model_bytes(&g, 18);
    CHECK_STR_EQ("the input 'x' has elements of type string, which cfx does not have",
                 message_of(&file, CFX_E_UNSUPPORTED));
}

/* ---- large and deep ------------------------------------------------------------------------ */

TEST(constants_do_not_take_memory_that_the_file_does_not_have)
{
    int64_t sizes[] = {1 << 20, 1 << 20};
    cfxi_onnx_tensor shape[] = {{.has = BIT(tensor, dtype), .name = T("s"), .dtype = 7,
                                 .sizes = LIST(int64_t, 2), .int64s = {sizes, 2}}};
    cfxi_onnx_node nodes[] = {NODE("ConstantOfShape", (T("s")), (T("y")))};
    cfxi_onnx_value out[] = {{.name = T("y")}};
    cfxi_onnx_graph g = {.nodes = {nodes, 1}, .initializers = {shape, 1}, .outputs = {out, 1}};
    cfx_buffer file = model_bytes(&g, 18);
    read_changed(file.data, file.size);
    sizes[0] = INT64_MAX;
    cfx_buffer_free(&file);
    file = model_bytes(&g, 18);
    CHECK(message_of(&file, CFX_E_SHAPE)[0]);
}

TEST(sizes_may_overflow)
{
    cfxi_onnx_tensor w[] = {{.has = BIT(tensor, dtype), .name = T("w"), .dtype = 1,
                             .sizes = LIST(int64_t, INT64_MAX, 2)}};
    cfxi_onnx_node nodes[] = {NODE("Add", (T("x"), T("w")), (T("y")))};
    cfxi_onnx_value in[] = {TYPED("x", 1, DIM(2))};
    cfxi_onnx_value out[] = {{.name = T("y")}};
    cfxi_onnx_graph g = {.nodes = {nodes, 1}, .initializers = {w, 1}, .inputs = {in, 1},
                         .outputs = {out, 1}};
    cfx_buffer file = model_bytes(&g, 18);
    CHECK(strstr(message_of(&file, CFX_E_VALUE), "tensor 'w': its sizes are too large"));
}

/* If in If in If, `deep` times. */
static void nest(cfxi_onnx_graph *graphs, cfxi_onnx_node *nodes, cfxi_onnx_attribute *attributes,
                 size_t deep)
{
    static cfxi_text cond[] = {T("c")};
    static cfxi_text name[] = {T("y")};
    static cfxi_onnx_value out[] = {{.name = T("y")}};
    static cfxi_text in[] = {T("x")};
    for (size_t i = 0; i < deep; i++) {
        const bool last = i + 1 == deep;
        nodes[i] = (cfxi_onnx_node){.op = last ? (cfxi_text)T("Relu") : (cfxi_text)T("If"),
                                    .inputs = {last ? in : cond, 1}, .outputs = {name, 1}};
        graphs[i] = (cfxi_onnx_graph){.nodes = {&nodes[i], 1}, .outputs = {out, 1}};
        if (last)
            continue;
        for (size_t k = 0; k < 2; k++)
            attributes[2 * i + k] = (cfxi_onnx_attribute){
                .has = BIT(attribute, kind), .kind = CFXI_ONNX_ATTR_GRAPH,
                .name = k ? (cfxi_text)T("then_branch") : (cfxi_text)T("else_branch"),
                .g = &graphs[i + 1]};
        nodes[i].attributes.items = &attributes[2 * i];
        nodes[i].attributes.n = 2;
    }
}

static const char *message_nested(size_t deep, cfx_status status)
{
    static cfxi_onnx_graph graphs[1000];
    static cfxi_onnx_node nodes[1000];
    static cfxi_onnx_attribute attributes[2000];
    cfxi_onnx_value in[] = {TYPED("x", 1, DIM(2)),
                            {.name = T("c"), .type = &(cfxi_onnx_type){
                                .tensor = &(cfxi_onnx_tensor_type){
                                    .has = BIT(tensor_type, dtype), .dtype = 9,
                                    .shape = &(cfxi_onnx_shape){0}}}}};
    nest(graphs, nodes, attributes, deep);
    for (size_t i = 0; i + 1 < deep; i++) {  /* one branch is deep: two would double each time */
        attributes[2 * i].g = &graphs[deep - 1];
    }
    graphs[0].inputs.items = in;
    graphs[0].inputs.n = 2;
    cfx_buffer file = model_bytes(&graphs[0], 18);
    return message_of(&file, status);
}

TEST(graphs_may_be_nested_but_not_too_deep)
{
    CHECK_STR_EQ("", message_nested(5, CFX_OK));
    CHECK(strstr(message_nested(200, CFX_E_VALUE), "nested"));
}

TEST(many_nodes)
{
    enum { MANY = 20000 };
    cfxi_onnx_node *nodes = calloc(MANY, sizeof *nodes);
    char(*names)[16] = calloc(MANY + 1, sizeof *names);
    cfxi_text *texts = calloc(MANY + 1, sizeof *texts);
    REQUIRE(nodes && names && texts);
    for (size_t i = 0; i <= MANY; i++) {
        snprintf(names[i], sizeof names[i], "%s%zu", i == 0 ? "x" : i == MANY ? "y" : "n",
                 i == 0 || i == MANY ? 0 : i);
        texts[i] = (cfxi_text){names[i], i == 0 || i == MANY ? 1 : strlen(names[i])};
    }
    for (size_t i = 0; i < MANY; i++)
        nodes[i] = (cfxi_onnx_node){.op = T("Relu"), .inputs = {&texts[i], 1},
                                    .outputs = {&texts[i + 1], 1}};
    cfx_buffer file = of_nodes(nodes, MANY, 18);
    CHECK_STR_EQ("", message_of(&file, CFX_OK));
    free(nodes);
    free(names);
    free(texts);
}
