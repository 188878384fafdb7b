/* fuzz_run.c - runs graphs as `cfx run` does: no crash, no leak, an end, and the same results
 * whatever was in memory before.
 *
 * An input that begins with "graph" is IR text. From any other, calls of operators are made
 * (random_graph.h): each is computed alone; the calls make up a graph, which is written, parsed,
 * lowered, compiled with weights of a file and run. Memory is bounded, so huge tensors are errors,
 * and in a part of the inputs an allocation fails.
 *
 * FUZZ_SHOW=1 in the environment shows the graphs: what a finding is reported with. */
#include "random_graph.h"

#include <cfx/codegen.h>
#include <cfx/embed/weights.h>
#include <cfx/graph.h>
#include <cfx/lower.h>

#include <stdatomic.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MOST_BYTES = 1 << 24,  /* in all: what a kernel fills of it takes a fraction of a second */
    MOST_STEPS = 300,      /* instructions and rounds of loops */
    MOST_CALLS = 6,
    MOST_ARGS = 32
};

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_run: %s\n%s\n", what, detail);
    abort();
}

/* ---- memory -------------------------------------------------------------------------------- */

typedef struct memory {
    atomic_size_t live;
    atomic_size_t count;
    size_t fail_at;  /* this allocation fails, and no other */
    int pattern;     /* what new memory holds */
} memory;

static void *bounded_alloc(void *ctx, size_t size)
{
    memory *m = ctx;
    if (size > MOST_BYTES || atomic_load(&m->live) > MOST_BYTES - size ||
        atomic_fetch_add(&m->count, 1) == m->fail_at)
        return NULL;
    void *block = malloc(size);
    if (!block)
        return NULL;
    memset(block, m->pattern, size);
    atomic_fetch_add(&m->live, size);
    return block;
}

static void bounded_free(void *ctx, void *block, size_t size)
{
    memory *m = ctx;
    if (block)
        atomic_fetch_sub(&m->live, size);
    free(block);
}

static void check_leaks(memory *m)
{
    char text[60];
    snprintf(text, sizeof text, "%zu bytes", (size_t)atomic_load(&m->live));
    if (atomic_load(&m->live) != 0)
        fail("memory was not freed", text);
}

/* ---- writing a call ------------------------------------------------------------------------ */

static void put(cfx_buffer *b, const char *text) { cfx_buffer_append(b, text, strlen(text)); }

static void put_arg(cfx_buffer *b, const values *v, cfx_datum d);

static void put_items(cfx_buffer *b, const values *v, cfx_datum d, const char *open,
                      const char *close)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    const bool dict = d.kind == CFX_DATUM_DICT;
    put(b, open);
    for (size_t i = 0; i < n; i++) {
        put_arg(b, v, items[i]);
        put(b, dict && i % 2 == 0 ? ": " : i + 1 < n || d.kind == CFX_DATUM_TUPLE ? ", " : "");
    }
    put(b, close);
}

static void put_arg(cfx_buffer *b, const values *v, cfx_datum d)
{
    for (size_t i = 0; i < v->count; i++)
        if (d.kind >= CFX_DATUM_TENSOR && d.kind == v->datum[i].kind &&
            d.as.tensor == v->datum[i].as.tensor) {
            put(b, "%");
            put(b, v->name[i]);
            return;
        }
    if (d.kind == CFX_DATUM_LIST)
        put_items(b, v, d, "[", "]");
    else if (d.kind == CFX_DATUM_TUPLE)
        put_items(b, v, d, "(", ")");
    else if (d.kind == CFX_DATUM_DICT)
        put_items(b, v, d, "{", "}");
    else if (d.kind == CFX_DATUM_SLICE)
        put_items(b, v, d, "slice(", ")");
    else if (d.kind == CFX_DATUM_ELLIPSIS)
        put(b, "...");
    else if (d.kind == CFX_DATUM_STR) {
        put(b, "\"");
        put(b, cfx_datum_text(d, NULL));
        put(b, "\"");
    } else if (d.kind == CFX_DATUM_DEVICE)
        put(b, "device(\"cpu\")");
    else if (d.kind == CFX_DATUM_COMPLEX) {
        put(b, "complex(");
        put_arg(b, v, cfx_datum_float(d.as.c[0]));
        put(b, ", ");
        put_arg(b, v, cfx_datum_float(d.as.c[1]));
        put(b, ")");
    } else if (d.kind == CFX_DATUM_TENSOR)
        put(b, "None");
    else
        cfx_datum_print(d, NULL, cfx_buffer_sink(b), NULL);
}

/* "%v3 = call_function[target=cfx.ops.add](%x0, %x1, alpha=2)", or another spelling. */
static void put_call(source *s, cfx_buffer *b, const values *v, cfx_operator op,
                     const cfx_datum *args, size_t n)
{
    char spelling[CFX_SPELLING_SIZE];
    cfx_spelling kind = CFX_SPELLING_OVERLOAD;
    const char *target = chance(s, 25) ? cfx_operator_spelling(op, pick(s, 3), spelling, &kind)
                                       : NULL;
    const bool method = target && kind == CFX_SPELLING_METHOD;
    bool named = false;
    put(b, method ? "call_method[target=" : "call_function[target=");
    if (method || (target && kind == CFX_SPELLING_FUNCTION)) {
        put(b, method && strrchr(target, '.') ? strrchr(target, '.') + 1 : target);
    } else {
        put(b, "cfx.ops.");
        put(b, cfx_operator_name(op));
    }
    put(b, "](");
    for (size_t i = 0; i < n; i++) {
        cfx_schema_param p;
        if (args[i].kind == CFX_DATUM_INVALID) {
            named = true;
            continue;
        }
        cfx_operator_param(op, i, &p);
        if (named || p.keyword_only) {
            cfx_buffer_append(b, p.name.text, p.name.size);
            put(b, "=");
        }
        put_arg(b, v, args[i]);
        put(b, ", ");
    }
    put(b, ")\n");
}

/* ---- making a graph ------------------------------------------------------------------------ */

typedef struct made {
    cfx_buffer text;
    values v;
    size_t num_inputs;
    cfx_state *weights;
} made;

/* Inputs and weights: the same for the same bytes. */
static void make_inputs(source *s, made *m, const cfx_allocator *allocator)
{
    m->v = (values){.allocator = allocator};
    m->weights = cfx_state_new(allocator, NULL);
    const shape common = any_shape(s);
    const cfx_dtype usual = any_dtype(s);
    const size_t n = 1 + pick(s, 5);
    m->num_inputs = n - pick(s, n < 3 ? n : 3);
    for (size_t i = 0; i < n; i++) {
        const shape own = any_shape(s);
        const bool input = i < m->num_inputs;
        const cfx_dtype dtype = chance(s, 60) ? usual : any_dtype(s);
        cfx_tensor *t = any_tensor(s, dtype, chance(s, 65) ? &common : &own, !input, allocator,
                                   NULL);
        if (!t)
            break;
        values_add(&m->v, input ? "x" : "w", cfx_datum_tensor(t));
        if (!input && m->weights)
            cfx_state_set(m->weights, m->v.name[i], t, NULL);
    }
    if (m->num_inputs > m->v.count)
        m->num_inputs = m->v.count;
}

static void begin_graph(made *m)
{
    put(&m->text, "graph():\n");
    for (size_t i = 0; i < m->v.count; i++) {
        char line[100];
        const char *name = m->v.name[i];
        snprintf(line, sizeof line, "  %%%s = %s[target=%s]()\n", name,
                 i < m->num_inputs ? "placeholder" : "get_attr", name);
        put(&m->text, line);
    }
}

static cfx_operator any_operator(source *s)
{
    for (;;) {
        const cfx_operator op = (cfx_operator)(1 + pick(s, CFX_OPERATOR_COUNT - 1));
        if (cfx_operator_has_kernel(op))
            return op;
    }
}

static size_t any_args(source *s, const values *v, cfx_operator op, cfx_datum *args)
{
    size_t n = cfx_operator_num_params(op);
    n = n < MOST_ARGS ? n : MOST_ARGS;
    for (size_t i = 0; i < n; i++) {
        cfx_schema_param p;
        cfx_operator_param(op, i, &p);
        const bool skip = p.value.text && chance(s, 55);
        args[i] = skip ? cfx_datum_invalid() : any_arg(s, v, p.type, 0);
    }
    return n;
}

/* A region of one call, whose placeholders have the names of the values. */
static void put_region(source *s, made *m, const char *first)
{
    cfx_datum args[MOST_ARGS];
    cfx_operator op = any_operator(s);
    while (cfx_operator_regions(op) > 0)
        op = any_operator(s);
    const size_t n = any_args(s, &m->v, op, args);
    put(&m->text, "graph {\n");
    put(&m->text, first);
    for (size_t i = 0; i < m->v.count; i++) {
        char line[80];
        snprintf(line, sizeof line, "  %%%s = placeholder[target=%s]()\n", m->v.name[i],
                 m->v.name[i]);
        put(&m->text, line);
    }
    put(&m->text, "  %r = ");
    put_call(s, &m->text, &m->v, op, args, n);
    put(&m->text, chance(s, 50) ? "  output((%r,))\n}" : "  output(%x0)\n}");
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(args[i]);
}

static void put_all(made *m)
{
    put(&m->text, "(");
    for (size_t i = 0; i < m->v.count; i++) {
        put(&m->text, "%");
        put(&m->text, m->v.name[i]);
        put(&m->text, ", ");
    }
    put(&m->text, ")");
}

static void put_control(source *s, made *m, cfx_operator op)
{
    put(&m->text, "  %loop = call_function[target=cfx.");
    put(&m->text, cfx_operator_name(op));
    put(&m->text, "](");
    if (op != CFX_OPID_while_loop) {
        const cfx_datum count = op == CFX_OPID_cond ? any_value(s, &m->v, false)
                                                    : cfx_datum_int(any_int(s));
        put_arg(&m->text, &m->v, count);
        cfx_datum_release(count);
        put(&m->text, ", ");
    }
    if (op != CFX_OPID_for_loop) {
        put_region(s, m, "");
        put(&m->text, ", ");
    }
    put_region(s, m, op == CFX_OPID_for_loop ? "  %i = placeholder[target=i]()\n" : "");
    put(&m->text, ", ");
    put_all(m);
    put(&m->text, ")\n");
}

/* Whether a datum holds a tensor that only looks small: expanded to more elements than memory
 * holds. What computes with each of them takes as long, here and in PyTorch. */
static bool is_endless(cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        if (is_endless(items[i]))
            return true;
    return d.kind == CFX_DATUM_TENSOR && cfx_tensor_numel(d.as.tensor) > MOST_BYTES;
}

/* For who looks into a finding: the call with the types and shapes of its arguments. */
static void show_call(const char *line, const cfx_datum *args, size_t n)
{
    if (!getenv("FUZZ_SHOW"))
        return;
    fprintf(stderr, "%s", line);
    for (size_t i = 0; i < n; i++) {
        cfx_buffer text;
        cfx_buffer_init(&text, NULL);
        cfx_datum_print(args[i], NULL, cfx_buffer_sink(&text), NULL);
        cfx_buffer_append(&text, "", 1);
        fprintf(stderr, "      %s\n", text.data);
        cfx_buffer_free(&text);
    }
}

/* Computes a call, and appends it to the graph if that went well, or sometimes if not. */
static void make_call(source *s, made *m, cfx_runtime *rt)
{
    cfx_datum args[MOST_ARGS];
    cfx_error err = {.status = CFX_OK};
    const cfx_operator op = any_operator(s);
    if (cfx_operator_regions(op) > 0) {
        put_control(s, m, op);
        return;
    }
    const size_t n = any_args(s, &m->v, op, args);
    const size_t before = m->text.size;
    char name[32];
    snprintf(name, sizeof name, "  %%v%zu = ", m->v.count);
    put(&m->text, name);
    put_call(s, &m->text, &m->v, op, args, n);
    show_call(m->text.data + before, args, n);
    cfx_datum_release(cfx_operator_infer(rt, NULL, op, args, n, NULL));
    const cfx_datum r = cfx_operator_run(rt, op, args, n, &err);
    if (r.kind == CFX_DATUM_INVALID && (err.status == CFX_OK || err.message[0] == '\0'))
        fail("an error without a message", cfx_operator_name(op));
    const bool failed = r.kind == CFX_DATUM_INVALID;
    const bool endless = is_endless(r);
    if (endless || (failed && !chance(s, 10)))
        m->text.size = before;
    if (endless)
        cfx_datum_release(r);
    else if (!failed)
        values_add(&m->v, "v", r);
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(args[i]);
}

/* ---- running a graph ----------------------------------------------------------------------- */

static bool enough(void *ctx)
{
    return ++*(int *)ctx > MOST_STEPS;
}

static cfx_status discard(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return CFX_OK;
}

static const cfx_sink nowhere = {discard, NULL};

/* What `cfx run` prints and saves: all elements to `out`. */
static void write_result(cfx_datum d, cfx_buffer *out)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        write_result(items[i], out);
    if (d.kind == CFX_DATUM_TENSOR) {
        cfx_tensor_print(d.as.tensor, nowhere, NULL);
        cfx_tensor_write_npy(d.as.tensor, cfx_buffer_sink(out), NULL);
    } else {
        cfx_datum_print(d, NULL, cfx_buffer_sink(out), NULL);
    }
}

/* The weights as a file has them. */
static cfx_state *reread(const cfx_state *s, const cfx_allocator *allocator)
{
    cfx_buffer file;
    cfx_buffer_init(&file, NULL);
    cfx_state *again = NULL;
    if (s && cfx_state_write_safetensors(s, cfx_buffer_sink(&file), NULL) == CFX_OK)
        again = cfx_state_read(file.data, file.size, allocator, NULL);
    cfx_buffer_free(&file);
    return again;
}

/* Shapes alone, with a symbol for a size of each input. */
static void infer_symbols(const cfx_program *p, cfx_runtime *rt, const made *m)
{
    const cfx_allocator *allocator = cfx_runtime_allocator(rt);
    cfx_dims *dims = cfx_dims_new(allocator, NULL);
    cfx_datum inputs[MOST_VALUES];
    const size_t n = m && dims ? m->num_inputs : 0;
    for (size_t i = 0; i < n; i++) {
        const cfx_tensor *t = m->v.datum[i].as.tensor;
        int64_t sizes[CFX_MAX_DIMS] = {0};
        const size_t ndim = cfx_tensor_ndim(t);
        if (ndim)
            memcpy(sizes, cfx_tensor_sizes(t), ndim * sizeof *sizes);
        for (size_t d = 0; d < ndim; d++)
            if (sizes[d] > 1 && (d + i) % 2 == 0)
                sizes[d] = cfx_dims_parse(dims, d % 2 ? "N" : "M", 1, NULL);
        inputs[i] = cfx_datum_tensor(cfx_tensor_new_abstract(cfx_tensor_dtype(t), sizes, ndim,
                                                             allocator, NULL));
    }
    if (dims)
        cfx_datum_release(cfx_program_infer(p, rt, dims, inputs, n, NULL, NULL, NULL));
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(inputs[i]);
    cfx_dims_free(dims);
}

static void run_graph(const char *text, size_t size, const made *m, cfx_runtime *rt,
                      cfx_buffer *out)
{
    cfx_error err = {.status = CFX_OK};
    const cfx_allocator *allocator = cfx_runtime_allocator(rt);
    cfx_state *state = m ? reread(m->weights, allocator) : NULL;
    cfx_graph *g = cfx_graph_parse(text, size, allocator, NULL, &err);
    cfx_program *p = NULL;
    if (g && cfx_graph_lower(g, NULL, NULL, &err) == CFX_OK)
        p = cfx_program_new(g, state, &(cfx_program_options){.allocator = allocator}, &err);
    if (p) {
        const size_t n = m ? m->num_inputs : 0;
        infer_symbols(p, rt, m);
        cfx_datum_release(cfx_program_infer(p, rt, NULL, m ? m->v.datum : NULL, n, NULL, NULL,
                                            NULL));
        const cfx_datum r = cfx_program_run(p, rt, m ? m->v.datum : NULL, n, &err);
        if (r.kind == CFX_DATUM_INVALID && (err.status == CFX_OK || err.message[0] == '\0'))
            fail("an error without a message", text);
        write_result(r, out);
        cfx_datum_release(r);
        cfx_codegen_c(g, NULL, NULL, nowhere, NULL);
    }
    cfx_program_free(p);
    cfx_graph_release(g);
    cfx_state_free(state);
}

/* ---- one input ----------------------------------------------------------------------------- */

typedef struct settings {
    const uint8_t *data;
    size_t size;
    bool reference;
    cfx_isa isa;
    unsigned threads;
    size_t fail_at;
} settings;

static cfx_runtime *new_runtime(const settings *set, const cfx_allocator *allocator, int *steps)
{
    *steps = 0;
    return cfx_runtime_new(&(cfx_runtime_options){.allocator = allocator, .threads = set->threads,
                                                  .reference = set->reference, .limit_isa = true,
                                                  .isa = set->isa, .interrupted = enough,
                                                  .interrupted_ctx = steps}, NULL);
}

/* Makes the graph of the bytes; its text is NUL-terminated. */
static void make_graph(const settings *set, cfx_buffer *text)
{
    memory mem = {.fail_at = set->fail_at, .pattern = 0x5a};
    const cfx_allocator allocator = {bounded_alloc, bounded_free, &mem};
    source s = source_of(set->data, set->size);
    made m;
    int steps;
    cfx_runtime *rt = new_runtime(set, &allocator, &steps);
    if (rt) {
        cfx_buffer_init(&m.text, NULL);
        make_inputs(&s, &m, &allocator);
        begin_graph(&m);
        for (size_t i = 1 + pick(&s, MOST_CALLS); i > 0; i--)
            make_call(&s, &m, rt);
        put(&m.text, "  output(");
        put_all(&m);
        put(&m.text, ")\n");
        cfx_buffer_append(text, m.text.data, m.text.size);
        cfx_buffer_free(&m.text);
        values_release(&m.v);
        cfx_state_free(m.weights);
    }
    cfx_runtime_free(rt);
    check_leaks(&mem);
}

/* Runs a graph on the inputs of the bytes, in memory that holds `pattern`. */
static void run_once(const settings *set, bool made_up, const char *text, size_t size, int pattern,
                     cfx_buffer *out)
{
    memory mem = {.fail_at = set->fail_at, .pattern = pattern};
    const cfx_allocator allocator = {bounded_alloc, bounded_free, &mem};
    source s = source_of(set->data, set->size);
    made m = {.num_inputs = 0};
    int steps;
    cfx_runtime *rt = new_runtime(set, &allocator, &steps);
    if (rt) {
        if (made_up)
            make_inputs(&s, &m, &allocator);
        run_graph(text, size, made_up ? &m : NULL, rt, out);
        values_release(&m.v);
        cfx_state_free(m.weights);
    }
    cfx_runtime_free(rt);
    check_leaks(&mem);
}

static settings settings_of(const uint8_t *data, size_t size)
{
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + data[i];
    return (settings){.data = data, .size = size, .reference = sum % 7 == 0,
                      .isa = (cfx_isa)(sum / 7 % CFX_ISA_COUNT),
                      .threads = sum / 21 % 16 == 0 ? 2 : 1,
                      .fail_at = sum / 336 % 4 == 0 ? sum / 1344 % 200 : SIZE_MAX};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const settings set = settings_of(data, size);
    cfx_buffer text;
    cfx_buffer first;
    cfx_buffer second;
    cfx_buffer_init(&text, NULL);
    cfx_buffer_init(&first, NULL);
    cfx_buffer_init(&second, NULL);
    const bool made_up = size < 5 || memcmp(data, "graph", 5) != 0;
    if (made_up)
        make_graph(&set, &text);
    else
        cfx_buffer_append(&text, (const char *)data, size);
    cfx_buffer_append(&text, "", 1);
    if (getenv("FUZZ_SHOW"))
        fprintf(stderr, "%s\n", text.data);
    run_once(&set, made_up, text.data, text.size - 1, 0x00, &first);
    if (first.size > 0 && set.fail_at == SIZE_MAX && !strstr(text.data, "empty")) {
        run_once(&set, made_up, text.data, text.size - 1, 0xff, &second);
        if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0)
            fail("the result depends on what was in memory before", text.data);
    }
    cfx_buffer_free(&text);
    cfx_buffer_free(&first);
    cfx_buffer_free(&second);
    return 0;
}
