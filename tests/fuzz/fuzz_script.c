/* fuzz_script.c - any bytes as a Python source whose model is captured: no crash, an end, and a
 * graph that is well formed or a message. */
#include <cfx/pyscript.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_script: %s\n%s\n", what, detail);
    abort();
}

static cfx_status nowhere(void *ctx, const char *text, size_t size)
{
    (void)ctx;
    (void)text;
    (void)size;
    return CFX_OK;
}

/* A program may ask for a tensor of a petabyte, which the sanitizer takes for a mistake. */
static void *alloc(void *ctx, size_t size)
{
    (void)ctx;
    return size <= 1 << 26 ? malloc(size) : NULL;
}

static void release(void *ctx, void *block, size_t size)
{
    (void)ctx;
    (void)size;
    free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const cfx_allocator bounded = {.alloc = alloc, .free = release};
    const cfx_sink ignored = {nowhere, NULL};
    cfx_error err = {.status = CFX_OK};
    cfx_scope *s = cfx_scope_new(&(cfx_scope_options){.allocator = &bounded, .threads = 1}, &err);
    if (!s)
        return 0;
    cfx_module *m = cfx_script_model(s, (const char *)data, size, "fuzz.py",
                                     .most_rounds = 50, .most_calls = 20,
                                     .most_bytes = 1 << 22, .print = ignored);
    if ((m != NULL) != cfx_scope_ok(s))
        fail("a module and a failure, or neither", cfx_scope_error(s)->message);
    if (!m && cfx_scope_error(s)->message[0] == '\0')
        fail("a failure without a message", "");
    if (m && cfx_graph_verify(cfx_module_graph(m), NULL, NULL, &err) != CFX_OK)
        fail("a graph that is not well formed", err.message);
    cfx_scope_free(s);
    return 0;
}
