/* plan_lstm.c - layers of an LSTM with constant weights against the row's kernel: odd sizes, states
 * that are inputs or constants, every instruction set; what stays with the row. */
#include "plan/plan_impl.h"

#include "plan_fixture.h"
#include "test_alloc.h"

typedef struct layers {
    int64_t steps, batch, input, hidden, layers;
    bool biases, constant;  /* the first states */
} layers;

/* IR text of x -> lstm(x), with weights named w0, w1, ...; `more` are the last two arguments. */
static void write_program(char *text, size_t size, const layers *l, const char *more)
{
    const int64_t params = l->layers * (l->biases ? 4 : 2);
    size_t n = (size_t)snprintf(text, size, "graph():\n  %%x = placeholder[target=x]()\n");
    for (int64_t i = 0; i < params; i++)
        n += (size_t)snprintf(text + n, size - n, "  %%w%lld = get_attr[target=w%lld]()\n",
                              (long long)i, (long long)i);
    n += (size_t)snprintf(
        text + n, size - n,
        "  %%h0 = get_attr[target=h]()\n  %%c0 = get_attr[target=c]()\n"
        "  %%e = call_function[target=cfx.ops.select](%%x, 2, 0)\n"
        "  %%f = call_function[target=cfx.ops.mean](%%e)\n"
        "  %%h1 = call_function[target=cfx.ops.add](%%h0, %%f)\n"
        "  %%c1 = call_function[target=cfx.ops.mul](%%c0, %%f)\n"
        "  %%y = call_function[target=cfx.ops.lstm](%%x, [%s], [", l->constant ? "%h0, %c0"
                                                                              : "%h1, %c1");
    for (int64_t i = 0; i < params; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%%w%lld", i ? ", " : "", (long long)i);
    snprintf(text + n, size - n, "], %s, %lld, 0.5, False, %s)\n  output(%%y)\n",
             l->biases ? "True" : "False", (long long)l->layers, more);
}

static cfx_state *weights_of(const layers *l)
{
    cfx_state *s = cfx_state_new(NULL, NULL);
    const int64_t each = l->biases ? 4 : 2;
    for (int64_t i = 0; i < l->layers * each; i++) {
        char name[24];
        const int64_t sizes[] = {4 * l->hidden, i == 0 ? l->input : l->hidden};
        snprintf(name, sizeof name, "w%lld", (long long)i);
        add_weight(s, name, i % each < 2 ? 2 : 1, sizes);
    }
    WEIGHT(s, "h", l->layers, l->batch, l->hidden);
    WEIGHT(s, "c", l->layers, l->batch, l->hidden);
    return s;
}

static bool uses_kernel(const cfx_program *p)
{
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_program_print_plans(p, cfx_buffer_sink(&text), NULL));
    const bool found = strstr(text.data, "blocks of") != NULL;
    cfx_buffer_free(&text);
    return found;
}

/* Twice, so that states of the first run do not stay; returns whether its kernel was used. */
static bool agrees(const layers *l, const char *more, const cfx_runtime_options *options)
{
    char text[4000];
    cfx_error err = {0};
    bool used = false;
    cfx_state *weights = weights_of(l);
    cfx_runtime *rt = cfx_runtime_new(options, &err);
    write_program(text, sizeof text, l, more);
    cfx_program *plain = program_of(text, weights, NULL, &err);
    cfx_program *p = program_of(text, weights, NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_program_compile(p, NULL, &err));
    for (int i = 0; p && i < 2; i++) {
        const int64_t sizes[] = {l->steps, l->batch, l->input};
        const cfx_datum x = cfx_datum_tensor(random_tensor(sizes, 3, false));
        const cfx_datum want = cfx_program_run(plain, rt, &x, 1, &err);
        const cfx_datum got = cfx_program_run(p, rt, &x, 1, &err);
        CHECK_STR_EQ("", err.message);
        CHECK(is_same(want, got));
        cfx_datum_release(want);
        cfx_datum_release(got);
        cfx_datum_release(x);
        used = uses_kernel(p);
    }
    cfx_program_free(p);
    cfx_program_free(plain);
    cfx_runtime_free(rt);
    cfx_state_free(weights);
    return used;
}

TEST(sizes_and_instruction_sets)
{
    static const layers all[] = {
        {1, 1, 1, 1, 1, true, false},  {3, 2, 5, 7, 2, true, false},
        {4, 1, 16, 16, 1, false, true}, {2, 17, 9, 33, 3, true, true},
        {5, 4, 31, 50, 2, false, false}, {1, 30, 3, 18, 1, true, false},
    };
    for (int isa = CFX_ISA_PLAIN; isa < CFX_ISA_COUNT; isa++)
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            const cfx_runtime_options options = {
                .limit_isa = true, .isa = (cfx_isa)isa, .threads = i % 2 ? 3 : 1};
            CHECK(agrees(&all[i], "False, False", &options));
        }
}

TEST(what_stays_with_the_row)
{
    const layers l = {3, 3, 4, 5, 1, true, true};
    CHECK(agrees(&l, "False, False", NULL));
    CHECK(!agrees(&l, "False, True", NULL));  /* the batch first */
}

/* ---- memory -------------------------------------------------------------------------------- */

typedef struct sweep {
    cfx_state *weights;
    const char *text;
    cfx_datum x;
} sweep;

static cfx_status compile_and_run(const cfx_allocator *a, void *arg)
{
    const sweep *w = arg;
    cfx_error err = {0};
    const cfx_runtime_options options = {.allocator = a, .threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&options, &err);
    cfx_program *p = rt ? program_of(w->text, w->weights, a, &err) : NULL;
    if (p && cfx_program_compile(p, NULL, &err) == CFX_OK)
        cfx_datum_release(cfx_program_run(p, rt, &w->x, 1, &err));
    cfx_program_free(p);
    cfx_runtime_free(rt);
    return err.status;
}

TEST(every_allocation_can_fail)
{
    const layers l = {2, 2, 3, 5, 2, true, false};
    const int64_t sizes[] = {2, 2, 3};
    char text[4000];
    write_program(text, sizeof text, &l, "False, False");
    sweep w = {weights_of(&l), text, cfx_datum_tensor(random_tensor(sizes, 3, false))};
    CHECK(test_oom_sweep(compile_and_run, &w) > 20);
    cfx_datum_release(w.x);
    cfx_state_free(w.weights);
}
