/* fuzz_parse.c - any bytes: no crash; what parses is written, and reads back as the same graph. */
#include <cfx/graph.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_parse: %s\n%s\n", what, detail);
    abort();
}

static cfx_status discard(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return CFX_OK;
}

static void print_all(cfx_graph *g)
{
    const cfx_sink nowhere = {discard, NULL};
    if (cfx_graph_print(g, nowhere, NULL) != CFX_OK || cfx_graph_table(g, 80, nowhere, NULL))
        fail("a graph that was parsed does not print", "");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer text;
    cfx_graph *g = cfx_graph_parse((const char *)data, size, NULL, NULL, &err);
    if (!g) {
        if (err.status == CFX_OK || err.line == 0 || err.column == 0)
            fail("an error without a place", err.message);
        return 0;
    }
    cfx_buffer_init(&text, NULL);
    if (cfx_graph_text(g, cfx_buffer_sink(&text), &err) != CFX_OK)
        fail("a graph that was parsed has no text", err.message);
    cfx_graph *again = cfx_graph_parse(text.data, text.size, NULL, NULL, &err);
    if (!again)
        fail(err.message, text.data);
    if (!cfx_graph_equal(g, again, false))
        fail("the graph changed on the way through its text", text.data);
    print_all(g);
    cfx_graph_release(again);
    cfx_graph_release(g);
    cfx_buffer_free(&text);
    return 0;
}
