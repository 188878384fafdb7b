/* prop_control.c - random programs with branches and loops: every pass, and passes one after the
 * other, leave what they compute as it is, and the graph well formed.
 *
 *     prop_control [FIRST [COUNT]]    (150 seeds; 5,000 with CFX_FULL=1; a failure names its seed)
 *     prop_control --text SEED        (prints the program)
 */
#include "random_control.h"
#include "pass/pass_impl.h"

#include <cfx/embed/tensor.h>
#include <cfx/lower.h>
#include <cfx/runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 4, ELEMENTS = 6, CHAINS = 12, CHAIN = 3 };

/* What a program gives and what it leaves in its inputs; or why it fails. */
typedef struct outcome {
    cfx_datum result;
    float x[ELEMENTS], y[ELEMENTS];
    cfx_error err;
} outcome;

static cfx_datum tensor(float *data)
{
    static const int64_t sizes[] = {2, 3};
    return cfx_datum_tensor(cfx_tensor_from_memory(CFX_DTYPE_FLOAT32, sizes, NULL, 2, data, false,
                                                   NULL, NULL, NULL, NULL));
}

static void run(cfx_graph *g, cfx_runtime *rt, uint64_t seed, outcome *o)
{
    random_source r = {seed};
    *o = (outcome){.result = cfx_datum_invalid()};
    for (size_t i = 0; i < ELEMENTS; i++) {
        o->x[i] = (float)random_below(&r, 8) / 4 - 1;
        o->y[i] = (float)random_below(&r, 8) / 4 - 1;
    }
    cfx_datum inputs[INPUTS] = {tensor(o->x), tensor(o->y),
                                cfx_datum_int((int64_t)random_below(&r, 5)),
                                cfx_datum_bool(random_below(&r, 2))};
    cfx_program *p = NULL;
    if (cfxi_pass_lower(g, NULL, NULL, NULL, &o->err) == CFX_OK)
        p = cfx_program_new(g, NULL, NULL, &o->err);
    if (p)
        o->result = cfx_program_run(p, rt, inputs, INPUTS, &o->err);
    cfx_program_free(p);
    for (size_t i = 0; i < INPUTS; i++)
        cfx_datum_release(inputs[i]);
}

/* ---- comparing ----------------------------------------------------------------------------- */

static bool same_float(double a, double b) { return a == b || (a != a && b != b); }

static bool same_tensor(const cfx_tensor *a, const cfx_tensor *b)
{
    const size_t ndim = cfx_tensor_ndim(a);
    int64_t at[8] = {0};
    if (cfx_tensor_dtype(a) != cfx_tensor_dtype(b) || ndim != cfx_tensor_ndim(b) || ndim > 8)
        return false;
    for (size_t d = 0; d < ndim; d++)
        if (cfx_tensor_sizes(a)[d] != cfx_tensor_sizes(b)[d])
            return false;
    for (int64_t i = 0; i < cfx_tensor_numel(a); i++) {
        const char *p = cfx_tensor_data(a);
        const char *q = cfx_tensor_data(b);
        int64_t left = i;
        for (size_t d = ndim; d-- > 0; left /= cfx_tensor_sizes(a)[d])
            at[d] = left % cfx_tensor_sizes(a)[d];
        for (size_t d = 0; d < ndim; d++) {
            p += at[d] * cfx_tensor_strides(a)[d];
            q += at[d] * cfx_tensor_strides(b)[d];
        }
        const cfx_datum x = cfx_datum_load(cfx_tensor_dtype(a), p);
        const cfx_datum y = cfx_datum_load(cfx_tensor_dtype(b), q);
        if (x.kind == CFX_DATUM_FLOAT ? !same_float(x.as.f, y.as.f) : x.as.i != y.as.i)
            return false;
    }
    return true;
}

static bool same(cfx_datum a, cfx_datum b)
{
    size_t n;
    size_t m;
    const cfx_datum *x = cfx_datum_items(a, &n);
    const cfx_datum *y = cfx_datum_items(b, &m);
    if (a.kind != b.kind || n != m)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!same(x[i], y[i]))
            return false;
    switch ((cfx_datum_kind)a.kind) {
    case CFX_DATUM_TENSOR:
        return same_tensor(a.as.tensor, b.as.tensor);
    case CFX_DATUM_BOOL:
        return a.as.b == b.as.b;
    case CFX_DATUM_INT:
        return a.as.i == b.as.i;
    case CFX_DATUM_FLOAT:
        return same_float(a.as.f, b.as.f);
    default:
        return true;
    }
}

static bool same_floats(const float *a, const float *b)
{
    for (size_t i = 0; i < ELEMENTS; i++)
        if (!same_float(a[i], b[i]))
            return false;
    return true;
}

static bool agree(const outcome *a, const outcome *b)
{
    return same(a->result, b->result) && same_floats(a->x, b->x) && same_floats(a->y, b->y);
}

/* ---- one program --------------------------------------------------------------------------- */

typedef struct trial {
    cfx_runtime *rt;
    cfx_graph *g;
    uint64_t seed;
    outcome expected;
    size_t *changes;  /* by pass: how many programs it changed */
} trial;

static const char *compare(const trial *t, cfx_graph *g)
{
    outcome o;
    run(g, t->rt, t->seed, &o);
    const char *failed = NULL;
    if (o.result.kind == CFX_DATUM_INVALID)
        failed = "a program that ran does not run any more";
    else if (!agree(&t->expected, &o))
        failed = "another result";
    if (o.result.kind == CFX_DATUM_INVALID)
        printf("    %s\n", o.err.message);
    cfx_datum_release(o.result);
    return failed;
}

static bool is_left_out(const cfx_pass *pass)  /* needs options; or is how programs are run */
{
    return strcmp(pass->name, "unlift_params") == 0 || strcmp(pass->name, "lower") == 0;
}

static const char *apply(cfx_graph *g, const cfx_pass *pass, bool *changed)
{
    cfx_error err = {.status = CFX_OK};
    const char *failed = NULL;
    *changed = false;
    if (pass->run(g, NULL, NULL, changed, &err) != CFX_OK)
        failed = "the pass fails";
    else if (cfx_graph_verify(g, NULL, NULL, &err) != CFX_OK)
        failed = "the graph is not well formed any more";
    if (failed)
        printf("    pass %s: %s\n", pass->name, err.message);
    return failed;
}

static const char *try_once(const trial *t, size_t i)
{
    const cfx_pass *pass = cfx_pass_get(i);
    cfx_graph *copy = cfx_graph_clone(t->g, NULL, NULL);
    bool changed;
    bool again = false;
    const char *failed = apply(copy, pass, &changed);
    cfx_graph *twice = failed ? NULL : cfx_graph_clone(copy, NULL, NULL);
    t->changes[i] += changed;
    if (!failed && !changed && !cfx_graph_equal(copy, t->g, false))
        failed = "it says that it changed nothing";
    if (!failed)
        failed = apply(twice, pass, &again);
    if (!failed && (again || !cfx_graph_equal(copy, twice, false)))
        failed = "a second run changes something";
    if (!failed && changed)
        failed = compare(t, copy);
    if (failed)
        printf("    pass %s\n", pass->name);
    cfx_graph_release(twice);
    cfx_graph_release(copy);
    return failed;
}

/* Some passes one after the other. */
static const char *try_chain(const trial *t, random_source *r, size_t passes)
{
    const cfx_pass *chain[CHAIN];
    cfx_graph *copy = cfx_graph_clone(t->g, NULL, NULL);
    const char *failed = NULL;
    size_t n = 0;
    while (n < CHAIN) {
        chain[n] = cfx_pass_get(random_below(r, passes));
        n += !is_left_out(chain[n]);
    }
    for (n = 0; !failed && n < CHAIN; n++) {
        bool changed;
        failed = apply(copy, chain[n], &changed);
    }
    if (!failed)
        failed = compare(t, copy);
    for (size_t i = 0; failed && i < n; i++)
        printf("    pass %s\n", chain[i]->name);
    cfx_graph_release(copy);
    return failed;
}

static const char *try_all(const trial *t, size_t passes)
{
    random_source r = {t->seed};
    const char *failed = NULL;
    for (size_t i = 0; !failed && i < passes; i++)
        if (!is_left_out(cfx_pass_get(i)))
            failed = try_once(t, i);
    for (size_t i = 0; !failed && i < CHAINS; i++)
        failed = try_chain(t, &r, passes);
    return failed;
}

/* 1 if it is as it should be, 0 if not, -1 if the program cannot be run anyhow. */
static int check_seed(cfx_runtime *rt, uint64_t seed, size_t *changes, size_t passes)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer text;
    const char *failed = NULL;
    cfx_buffer_init(&text, NULL);
    random_control_text(seed, &text);
    trial t = {.rt = rt, .seed = seed, .changes = changes};
    t.g = cfx_graph_parse(text.data, text.size, NULL, NULL, &err);
    cfx_graph *copy = t.g ? cfx_graph_clone(t.g, NULL, NULL) : NULL;
    if (!copy || cfx_graph_verify(copy, NULL, NULL, &err) != CFX_OK)
        failed = err.message;
    else
        run(copy, rt, seed, &t.expected);
    const bool ran = !failed && t.expected.result.kind != CFX_DATUM_INVALID;
    if (ran)
        failed = try_all(&t, passes);
    else if (!failed && getenv("CFX_VERBOSE"))
        printf("seed %llu: %s\n", (unsigned long long)seed, t.expected.err.message);
    if (failed)
        printf("seed %llu: failed: %s\n", (unsigned long long)seed, failed);
    cfx_datum_release(t.expected.result);
    cfx_graph_release(copy);
    cfx_graph_release(t.g);
    cfx_buffer_free(&text);
    return failed ? 0 : ran ? 1 : -1;
}

/* ---- all of them --------------------------------------------------------------------------- */

static int print_text(uint64_t seed)
{
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    random_control_text(seed, &text);
    cfx_graph *g = cfx_graph_parse(text.data, text.size, NULL, NULL, NULL);
    cfx_buffer_free(&text);
    if (g)
        cfx_graph_text(g, cfx_buffer_sink(&text), NULL);
    fputs(text.data ? text.data : "it cannot be read\n", stdout);
    cfx_graph_release(g);
    cfx_buffer_free(&text);
    return g == NULL;
}

/* Every pass that is for branches and loops finds something in one program of ten. */
static bool found_enough(const size_t *changes, size_t passes, size_t programs)
{
    static const char *const names[] = {"const_fold", "cse", "dce", "functionalize", "hoist",
                                        "normalize", "reinplace", "unroll"};
    bool enough = true;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (size_t i = 0; i < passes; i++)
            if (strcmp(cfx_pass_get(i)->name, names[k]) == 0 && changes[i] * 10 < programs) {
                printf("%s changed only %zu of %zu programs\n", names[k], changes[i], programs);
                enough = false;
            }
    return enough;
}

int main(int argc, char **argv)
{
    const char *full = getenv("CFX_FULL");
    if (argc > 2 && strcmp(argv[1], "--text") == 0)
        return print_text(strtoull(argv[2], NULL, 10));
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10)
                              : argc > 1 ? 1 : full && strcmp(full, "1") == 0 ? 5000 : 150;
    size_t passes = 0;
    while (cfx_pass_get(passes))
        passes++;
    size_t *changes = calloc(passes, sizeof *changes);
    size_t found[3] = {0};
    const cfx_runtime_options one_thread = {.threads = 1};
    cfx_runtime *rt = cfx_runtime_new(&one_thread, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);  /* what was printed survives a crash */
    for (uint64_t seed = first; rt && changes && seed < first + count; seed++)
        found[1 + check_seed(rt, seed, changes, passes)]++;
    if (found[0] * 4 > count) {
        printf("%zu of %llu programs cannot be run\n", found[0], (unsigned long long)count);
        found[1]++;
    }
    if (count >= 100 && !found_enough(changes, passes, found[2]))
        found[1]++;
    cfx_runtime_free(rt);
    free(changes);
    printf("prop_control: %zu passed, %zu failed\n", found[2], found[1]);
    return found[1] != 0;
}
