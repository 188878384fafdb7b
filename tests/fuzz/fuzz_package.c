/* fuzz_package.c - any bytes as a .cfx file: no crash, no endless work; what can be read is read
 * the same twice, and its module and executable can be made or are refused with a message. The
 * executable, whose graphs are compiled, runs twice: with a new plan, and with that again. */
#include <cfx/cfx.h>
#include <cfx/executable.h>
#include <cfx/package.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_package: %s\n%s\n", what, detail);
    abort();
}

/* Every byte of the texts, and the same of both. */
static void compare(const cfx_package *p, const cfx_package *again)
{
    const char *name;
    for (size_t i = 0; (name = cfx_package_entry(p, i, NULL)) != NULL; i++) {
        size_t size = 0;
        size_t other = 0;
        const char *text = cfx_package_text(p, name, &size);
        const char *same = cfx_package_text(again, name, &other);
        if (!text != !same || size != other || (size && memcmp(text, same, size) != 0))
            fail("an entry changed", name);
    }
}

static void make_module(const cfx_package *p)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    cfx_module *m = cfx_module_from_package(s, p);
    if (!m && (cfx_scope_ok(s) || !cfx_scope_error(s)->message[0]))
        fail("a module is missing without a message", "");
    cfx_scope_free(s);
}

/* What a graph is run for may be anything: its memory and its steps are bounded. */
enum { MOST_BYTES = 1 << 24, MOST_STEPS = 300, MOST_INPUTS = 8 };

static void *bounded_alloc(void *ctx, size_t size)
{
    size_t *left = ctx;
    if (size > *left)
        return NULL;
    *left -= size;
    return malloc(size);
}

static void bounded_free(void *ctx, void *block, size_t size)
{
    size_t *left = ctx;
    *left += block ? size : 0;
    free(block);
}

static bool enough(void *ctx) { return ++*(int *)ctx > MOST_STEPS; }

/* Zeros for an input that is a tensor; a size that may differ is 3. */
static cfx_datum input_for(const cfx_signature_input *in, const cfx_allocator *a)
{
    int64_t sizes[CFX_MAX_DIMS] = {0};
    if (in->kind == CFX_DATUM_INT)
        return cfx_datum_int(1);
    if (in->kind != CFX_DATUM_TENSOR || in->dtype == CFX_DTYPE_COUNT || in->rank > CFX_MAX_DIMS)
        return cfx_datum_invalid();
    for (int i = 0; i < in->rank; i++)
        sizes[i] = in->sizes[i] < 0 ? 3 : in->sizes[i];
    cfx_tensor *t = cfx_tensor_new(in->dtype, sizes, in->rank < 0 ? 2 : (size_t)in->rank, a, NULL);
    if (t && cfx_tensor_numel(t) > 0)
        memset(cfx_tensor_data(t), 0, (size_t)cfx_tensor_numel(t) * cfx_dtype_size(in->dtype));
    return t ? cfx_datum_tensor(t) : cfx_datum_invalid();
}

static void run_graph(const cfx_executable *e, size_t graph, cfx_runtime *rt,
                      const cfx_allocator *a)
{
    cfx_datum inputs[MOST_INPUTS];
    cfx_signature_input in;
    size_t n = 0;
    for (size_t i = 0; n < MOST_INPUTS &&
                       cfx_signature_input_at(cfx_executable_signature(e, graph), i, &in); i++)
        if (!in.state)
            inputs[n++] = input_for(&in, a);
    for (int run = 0; run < 2; run++) {
        cfx_error err = {.status = CFX_OK};
        bool agrees;
        cfx_session *s = cfx_executable_session(e, NULL);
        const cfx_datum y =
            cfx_executable_run_graph(e, graph, s, rt, inputs, n, &agrees, &err);
        if (y.kind == CFX_DATUM_INVALID && (err.status == CFX_OK || err.message[0] == '\0'))
            fail("a run failed without a message", "");
        cfx_datum_release(y);
        cfx_session_free(s);
    }
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(inputs[i]);
}

static void run_executable(const cfx_package *p)
{
    cfx_error err = {.status = CFX_OK};
    size_t left = MOST_BYTES;
    int steps = 0;
    const cfx_allocator a = {bounded_alloc, bounded_free, &left};
    const cfx_executable_options options = {.package.allocator = &a};
    cfx_executable *e = cfx_executable_new(p, &options, &err);
    if (!e && (err.status == CFX_OK || err.message[0] == '\0'))
        fail("an executable is missing without a message", "");
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.allocator = &a, .threads = 1,
                                                             .interrupted = enough,
                                                             .interrupted_ctx = &steps}, NULL);
    for (size_t i = 0; e && rt && i < cfx_executable_num_graphs(e); i++)
        run_graph(e, i, rt, &a);
    cfx_runtime_free(rt);
    cfx_executable_free(e);
    if (left != MOST_BYTES)
        fail("memory was not freed", "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cfx_error err = {.status = CFX_OK};
    cfx_package *p = cfx_package_read(data, size, NULL, &err);
    if (!p) {
        if (err.status == CFX_OK || err.message[0] == '\0')
            fail("an error without a message", "");
        return 0;
    }
    cfx_package *again = cfx_package_read(data, size, NULL, &err);
    if (!again)
        fail("what was read once cannot be read again", err.message);
    compare(p, again);
    cfx_package_verify(p, &err);
    make_module(p);
    run_executable(p);
    cfx_package_free(again);
    cfx_package_free(p);
    return 0;
}
