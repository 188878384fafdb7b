/* executable.c - .cfx files that run: graphs, guards, state, weights, threads, and short memory. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/cfx.h>

#include <pthread.h>
#include <unistd.h>

#define LINEAR                                                                                     \
    "graph():\n  %x = placeholder[target=x]()\n"                                                   \
    "  %fc = call_module[target=fc](%x)\n  output(%fc)\n"
#define MODULES                                                                                    \
    "graph():\n  output({\"training\": False, \"modules\": [(\"fc\", \"torch.nn.Linear\", False, " \
    "{\"in_features\": 3, \"out_features\": 2}, (), ())], \"tensors\": [(\"fc.weight\", "          \
    "\"parameter\", True, True, None, None), (\"fc.bias\", \"parameter\", True, True, None, "      \
    "None)]})\n"
#define NO_MODULES "graph():\n  output({\"training\": False, \"modules\": [], \"tensors\": []})\n"
#define COUNTING                                                                                   \
    "graph():\n  %x = placeholder[target=x]()\n  %calls = placeholder[target=calls]()\n"           \
    "  %seen = placeholder[target=seen]()\n"                                                       \
    "  %more = call_function[target=operator.add](%calls, 1)\n"                                    \
    "  %kept = call_method[target=add_](%seen, %x)\n"                                              \
    "  %y = call_function[target=torch.mul](%kept, 2)\n  output((%y, %more, %kept))\n"
#define COUNTING_SIGNATURE                                                                         \
    "graph():\n  output({\"inputs\": [(\"x\", \"tensor\", torch.float32, (2,))], \"state\": ["     \
    "(\"calls\", \"int\", 5), (\"seen\", \"tensor\", torch.float32, (2,))], \"results\": ["        \
    "(\"result\", False), (\"calls\", True), (\"seen\", True)], \"guards\": \"\", "                \
    "\"structure\": None})\n"
#define SIGNATURE_OF(guard)                                                                        \
    "graph():\n  output({\"inputs\": [(\"x\", \"tensor\", torch.float32, (\"n\", \"m\"))], "       \
    "\"state\": [], \"results\": None, \"guards\": \"size program \\\"m.py:3\\\": "                \
    "x.shape[0] > 1 is " guard "\\n\", \"structure\": None})\n"
#define APPLIED(function)                                                                          \
    "graph():\n  %x = placeholder[target=x]()\n  %y = call_function[target=" function "](%x)\n"    \
    "  output(%y)\n"

typedef struct text {
    const char *name;
    const char *data;
} text;

static cfx_state *weights_of(const cfx_allocator *a, cfx_error *err)
{
    static const struct { const char *name; int64_t sizes[2]; size_t ndim; } rows[] = {
        {"fc.weight", {2, 3}, 2}, {"fc.bias", {2}, 1}, {"seen", {2}, 1}};
    cfx_state *s = cfx_state_new(a, err);
    for (size_t i = 0; s && i < 3; i++) {
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

/* A file of these texts, until one has no name; the caller frees it. */
static cfx_buffer file_of(const text *texts, bool with_weights)
{
    cfx_error err = {0};
    cfx_buffer file;
    cfx_package_part parts[8];
    size_t n = 0;
    cfx_state *weights = weights_of(NULL, &err);
    for (; texts[n].name; n++)
        parts[n] = (cfx_package_part){texts[n].name, texts[n].data, strlen(texts[n].data)};
    const cfx_package_contents contents = {.model = "Net", .parts = parts, .num_parts = n,
                                           .weights = with_weights ? weights : NULL};
    cfx_buffer_init(&file, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_package_write(&contents, cfx_buffer_sink(&file), &err));
    cfx_state_free(weights);
    return file;
}

static cfx_executable *prepare(const text *texts, const cfx_executable_options *options,
                               cfx_error *err)
{
    cfx_buffer file = file_of(texts, !options || !options->weights);
    cfx_package *p = cfx_package_read(file.data, file.size, NULL, err);
    cfx_executable *e = p ? cfx_executable_new(p, options, err) : NULL;
    cfx_package_free(p);  /* it keeps what it needs */
    cfx_buffer_free(&file);
    return e;
}

static const text linear[] = {{"graph.ir", LINEAR}, {"module.ir", MODULES}, {NULL, NULL}};
static const text counting[] = {{"graph.ir", COUNTING}, {"module.ir", NO_MODULES},
                                {"signature.ir", COUNTING_SIGNATURE}, {NULL, NULL}};
static const text two_graphs[] = {
    {"graph.ir", APPLIED("torch.neg")}, {"signature.ir", SIGNATURE_OF("True")},
    {"module.ir", NO_MODULES}, {"graphs/1/graph.ir", APPLIED("torch.exp")},
    {"graphs/1/signature.ir", SIGNATURE_OF("False")}, {NULL, NULL}};

static cfx_datum ones(int64_t a, int64_t b)
{
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, (int64_t[]){a, b}, b ? 2 : 1, NULL, NULL);
    for (int64_t i = 0; i < cfx_tensor_numel(t); i++)
        ((float *)cfx_tensor_data(t))[i] = 1;
    return cfx_datum_tensor(t);
}

static double element(cfx_datum d, size_t i)
{
    return d.kind == CFX_DATUM_TENSOR ? ((float *)cfx_tensor_data(d.as.tensor))[i] : -1;
}

/* ---- running ------------------------------------------------------------------------------- */

TEST(a_file_without_a_signature_runs)
{
    cfx_error err = {0};
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_executable *e = prepare(linear, NULL, &err);
    if (!CHECK(e != NULL))
        printf("    got  %s\n", err.message);
    REQUIRE(e != NULL);
    CHECK_STR_EQ("Net", cfx_executable_model(e));
    CHECK_INT_EQ(1, cfx_executable_num_graphs(e));
    CHECK(cfx_executable_signature(e, 1) == NULL);
    const cfx_datum x = ones(4, 3);
    const cfx_datum y = cfx_executable_run(e, NULL, rt, &x, 1, NULL, &err);
    CHECK(element(y, 0) == 3 && element(y, 1) == 13);  /* 0+1+2+0, 3+4+5+1 */
    cfx_datum_release(y);
    cfx_buffer plans;
    cfx_buffer_init(&plans, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_executable_print_plans(e, cfx_buffer_sink(&plans), &err));
    CHECK(strstr(plans.data, "product") != NULL);
    cfx_buffer_free(&plans);
    const cfx_datum two[] = {x, x};
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_executable_run(e, NULL, rt, two, 2, NULL, &err).kind);
    CHECK_STR_EQ("too many inputs: expected at most 1, got 2", err.message);
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_executable_run(e, NULL, rt, NULL, 0, NULL, &err).kind);
    CHECK(strstr(err.message, "'x'") != NULL);
    cfx_datum_release(x);
    cfx_executable_free(e);
    cfx_runtime_free(rt);
}

TEST(guards_choose_the_graph)
{
    cfx_error err = {0};
    size_t graph = 9;
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_executable *e = prepare(two_graphs, NULL, &err);
    REQUIRE(e != NULL);
    CHECK_INT_EQ(2, cfx_executable_num_graphs(e));
    for (int64_t rows = 1; rows < 3; rows++) {
        const cfx_datum x = ones(rows, 2);
        const cfx_datum y = cfx_executable_run(e, NULL, rt, &x, 1, &graph, &err);
        CHECK_INT_EQ(2 - rows, graph);
        CHECK(rows == 2 ? element(y, 0) == -1 : element(y, 0) > 2.7);
        cfx_datum_release(y);
        cfx_datum_release(x);
    }
    const cfx_datum wrong = ones(2, 0);
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_executable_run(e, NULL, rt, &wrong, 1, NULL, &err).kind);
    CHECK_INT_EQ(CFX_E_ASSERTION, err.status);
    CHECK_STR_EQ("the input 'x' must be float32[n, m]; got float32[2]", err.message);
    cfx_datum_release(wrong);
    bool agrees;
    const cfx_datum one = ones(1, 2);
    CHECK_INT_EQ(CFX_DATUM_INVALID,
                 cfx_executable_run_graph(e, 0, NULL, rt, &one, 1, &agrees, &err).kind);
    CHECK(!agrees && strstr(err.message, "at m.py:3") != NULL);
    const cfx_datum y = cfx_executable_run_graph(e, 1, NULL, rt, &one, 1, &agrees, &err);
    CHECK(agrees && element(y, 0) > 2.7);
    CHECK_INT_EQ(CFX_DATUM_INVALID,
                 cfx_executable_run_graph(e, 2, NULL, rt, &one, 1, &agrees, &err).kind);
    CHECK_INT_EQ(CFX_E_INDEX, err.status);
    cfx_datum_release(y);
    cfx_datum_release(one);
    cfx_executable_free(e);
    cfx_runtime_free(rt);
}

TEST(sessions_have_their_own_state)
{
    cfx_error err = {0};
    size_t n;
    cfx_runtime *rt = cfx_runtime_new(NULL, &err);
    cfx_executable *e = prepare(counting, NULL, &err);
    if (!CHECK(e != NULL))
        printf("    got  %s\n", err.message);
    REQUIRE(e != NULL);
    cfx_session *a = cfx_executable_session(e, &err);
    cfx_session *b = cfx_executable_session(e, &err);
    const cfx_datum x = ones(2, 0);
    for (int round = 1; round < 4; round++) {
        const cfx_datum y = cfx_executable_run(e, a, rt, &x, 1, NULL, &err);
        const cfx_datum *items = cfx_datum_items(y, &n);
        REQUIRE(n == 1);
        CHECK(element(items[0], 0) == 2 * round && element(items[0], 1) == 2 * (round + 1));
        cfx_datum_release(y);
    }
    CHECK_INT_EQ(8, cfx_session_get(a, "calls").as.i);
    CHECK_INT_EQ(5, cfx_session_get(b, "calls").as.i);
    CHECK(element(cfx_session_get(a, "seen"), 1) == 4);
    CHECK(element(cfx_session_get(b, "seen"), 1) == 1);
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_executable_run(e, NULL, rt, &x, 1, NULL, &err).kind);
    CHECK_STR_EQ("the model keeps state from run to run: pass a session", err.message);
    cfx_session_set(a, "calls", cfx_datum_float(1), &err);
    CHECK_INT_EQ(CFX_DATUM_INVALID, cfx_executable_run(e, a, rt, &x, 1, NULL, &err).kind);
    CHECK_STR_EQ("the state 'calls' must be int; got float 1.0", err.message);
    cfx_datum_release(x);
    cfx_session_free(a);
    cfx_session_free(b);
    cfx_executable_free(e);
    cfx_runtime_free(rt);
}

TEST(weights_may_be_given)
{
    cfx_error err = {0};
    cfx_state *weights = weights_of(NULL, &err);
    cfx_executable *e = prepare(linear, &(cfx_executable_options){.weights = weights}, &err);
    CHECK(e != NULL);
    cfx_executable_free(e);
    cfx_buffer file = file_of(linear, false);
    cfx_package *p = cfx_package_read(file.data, file.size, NULL, &err);
    CHECK(cfx_executable_new(p, NULL, &err) == NULL);
    CHECK(strstr(err.message, "kept elsewhere") != NULL);
    cfx_package_free(p);
    cfx_buffer_free(&file);
    cfx_state_free(weights);
}

TEST(files_load_from_a_path)
{
    cfx_error err = {0};
    char path[80];
    cfx_buffer file = file_of(linear, true);
    snprintf(path, sizeof path, "/tmp/cfx_executable_%d.cfx", (int)getpid());
    FILE *f = fopen(path, "wb");
    REQUIRE(f != NULL);
    fwrite(file.data, 1, file.size, f);
    fclose(f);
    cfx_executable *e = cfx_executable_load(path, NULL, &err);
    CHECK(e != NULL);
    cfx_executable_free(e);
    remove(path);
    CHECK(cfx_executable_load(path, NULL, &err) == NULL);
    CHECK_INT_EQ(CFX_E_IO, err.status);
    cfx_buffer_free(&file);
}

/* ---- what cannot run ----------------------------------------------------------------------- */

TEST(files_that_cannot_run_say_why)
{
    static const struct { text texts[5]; cfx_status status; const char *message; } rows[] = {
        {{{"module.ir", NO_MODULES}}, CFX_E_VALUE, "the file has no entry graph.ir"},
        {{{"graph.ir", LINEAR}}, CFX_E_VALUE, "the file has no entry module.ir"},
        {{{"graph.ir", "graph(:"}, {"module.ir", NO_MODULES}}, CFX_E_SYNTAX, "graph.ir: "},
        {{{"graph.ir", LINEAR}, {"module.ir", NO_MODULES}}, CFX_E_TYPE,
         "graph.ir: 1 call cannot run without Python: "},
        {{{"graph.ir", "graph():\n  %x = placeholder[target=x]()\n"
                       "  %first = call_function[target=my.f](%x)  @ net.py:7\n"
                       "  %second = call_function[target=my.g](%first)\n  output(%second)\n"},
          {"module.ir", NO_MODULES}}, CFX_E_TYPE, "2 calls cannot run without Python: net.py:7"},
        {{{"graph.ir", LINEAR}, {"module.ir", MODULES}, {"signature.ir", COUNTING_SIGNATURE}},
         CFX_E_VALUE, "graph.ir: the graph has 1 inputs, its signature 3"},
        {{{"graph.ir", LINEAR}, {"module.ir", MODULES}, {"signature.ir", LINEAR}}, CFX_E_VALUE,
         "signature.ir: the signature is not a dict"},
        {{{"graph.ir", LINEAR}, {"module.ir", MODULES}, {"graphs/1/graph.ir", "graph(:"}},
         CFX_E_SYNTAX, "graphs/1/graph.ir: "},
        {{{"graph.ir", LINEAR}, {"module.ir", MODULES},
          {"signature.ir", "graph():\n  output({\"inputs\": [(\"x\", \"any\")], \"results\": "
                           "[(\"a\", False), (\"b\", False)]})\n"}},
         CFX_E_VALUE, "a tuple of the 2 results"},
        {{{"graph.ir", "graph():\n  %x = placeholder[target=x]()\n"
                       "  %b = get_attr[target=fc.bias]()\n"
                       "  %v = call_method[target=view](%b, 2)\n"
                       "  %count = call_method[target=add_](%v, %x)\n  output(%count)\n"},
          {"module.ir", MODULES}}, CFX_E_UNSUPPORTED, "the node %count writes to weights"},
        {{{"graph.ir", APPLIED("torch.neg")}, {"module.ir", NO_MODULES},
          {"signature.ir", "graph():\n  output({\"inputs\": [], \"state\": [(\"lost\", \"tensor\", "
                           "None, None)]})\n"}},
         CFX_E_VALUE, "no tensor for the state 'lost'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cfx_error err = {0};
        CHECK(prepare(rows[i].texts, NULL, &err) == NULL);
        CHECK_INT_EQ(rows[i].status, err.status);
        if (!CHECK(strstr(err.message, rows[i].message) != NULL))
            printf("    %zu: got  %s\n", i, err.message);
    }
    cfx_error err = {0};
    CHECK(prepare(rows[4].texts, NULL, &err) == NULL);
    CHECK(strstr(err.message, "first") != NULL && strstr(err.message, "second") != NULL);
}

/* ---- threads ------------------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 1000, COLUMNS = 20000 };  /* so that the pool has work, too */

typedef struct job {
    const cfx_executable *e;
    cfx_runtime *rt;
    cfx_datum x;
    cfx_datum want;
    int wrong;
} job;

/* Bit by bit. */
static bool is_same(cfx_datum a, cfx_datum b)
{
    return a.kind == CFX_DATUM_TENSOR && b.kind == CFX_DATUM_TENSOR &&
           cfx_tensor_numel(a.as.tensor) == cfx_tensor_numel(b.as.tensor) &&
           memcmp(cfx_tensor_data(a.as.tensor), cfx_tensor_data(b.as.tensor),
                  (size_t)cfx_tensor_numel(a.as.tensor) * sizeof(float)) == 0;
}

static void *work(void *arg)
{
    job *j = arg;
    for (int round = 0; round < ROUNDS; round++) {
        cfx_error err = {0};
        const cfx_datum y = cfx_executable_run(j->e, NULL, j->rt, &j->x, 1, NULL, &err);
        j->wrong += !is_same(y, j->want);
        cfx_datum_release(y);
    }
    return NULL;
}

TEST(threads_run_one_executable)
{
    cfx_error err = {0};
    job jobs[THREADS];
    pthread_t threads[THREADS];
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.threads = 2}, &err);
    cfx_executable *e = prepare(two_graphs, NULL, &err);
    REQUIRE(e != NULL);
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){.e = e, .rt = rt, .x = ones(1 + i % 2, COLUMNS)};
        jobs[i].want = cfx_executable_run(e, NULL, rt, &jobs[i].x, 1, NULL, &err);
    }
    CHECK(element(jobs[0].want, 0) > 2.7 && element(jobs[1].want, 0) == -1);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &jobs[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT_EQ(0, jobs[i].wrong);
        cfx_datum_release(jobs[i].x);
        cfx_datum_release(jobs[i].want);
    }
    cfx_executable_free(e);
    cfx_runtime_free(rt);
}

/* ---- memory -------------------------------------------------------------------------------- */

static cfx_status use(cfx_executable *e, const cfx_allocator *a, cfx_error *err)
{
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.allocator = a, .threads = 1}, err);
    cfx_session *s = rt ? cfx_executable_session(e, err) : NULL;
    cfx_datum y = cfx_datum_invalid();
    if (s) {
        const cfx_datum x = cfx_session_get(s, "seen");
        y = cfx_executable_run(e, s, rt, &x, 1, NULL, err);
    }
    const cfx_status status = y.kind == CFX_DATUM_INVALID ? err->status : CFX_OK;
    cfx_datum_release(y);
    cfx_session_free(s);
    cfx_runtime_free(rt);
    return status;
}

static cfx_status load_and_run(const cfx_allocator *a, void *arg)
{
    const cfx_buffer *file = arg;
    cfx_error err = {0};
    const cfx_executable_options options = {.package = {.allocator = a}};
    cfx_package *p = cfx_package_read(file->data, file->size, &options.package, &err);
    cfx_executable *e = p ? cfx_executable_new(p, &options, &err) : NULL;
    cfx_package_free(p);
    const cfx_status status = e ? use(e, a, &err) : err.status;
    cfx_executable_free(e);
    return status;
}

TEST(memory_may_run_out)
{
    cfx_buffer file = file_of(counting, true);
    CHECK(test_oom_sweep(load_and_run, &file) > 20);
    cfx_buffer_free(&file);
}
