/* emit_json.c - tests of src/emit/graph_json.c; golden files show the whole of it. */
#include "check.h"
#include "graph_fixture.h"
#include "test_alloc.h"

#include <cfx/codegen.h>
#include <cfx/embed/codegen.h>

/* Deeper than a C stack would like: containers in containers, in regions in regions. */
TEST(deep)
{
    enum { REGIONS = 60, LISTS = 500 };
    cfx_error err = {0};
    cfx_graph *inner = NULL;
    for (int r = 0; r < REGIONS; r++) {
        cfx_graph *g = cfx_graph_new(NULL, NULL, &err);
        cfx_value v = inner ? cfx_value_region(g, inner, &err) : cfx_value_int(1);
        for (int i = 0; i < LISTS; i++)
            v = cfx_value_list(g, &v, 1, &err);
        cfx_graph_output(g, v, &err);
        cfx_graph_release(inner);
        inner = g;
    }
    cfx_buffer buffer;
    cfx_buffer_init(&buffer, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_codegen_json(inner, cfx_buffer_sink(&buffer), &err));
    int depth = 0;
    for (size_t i = 0; i < buffer.size; i++)
        depth += (buffer.data[i] == '[' || buffer.data[i] == '{') -
                 (buffer.data[i] == ']' || buffer.data[i] == '}');
    CHECK_INT_EQ(0, depth);
    CHECK(buffer.size > REGIONS * LISTS * 2);
    cfx_buffer_free(&buffer);
    cfx_graph_release(inner);
}

static cfx_status full(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return CFX_E_IO;
}

TEST(what_the_sink_says_counts)
{
    cfx_error err = {0};
    cfx_graph *g = sample_graph(NULL, &err);
    CHECK_INT_EQ(CFX_E_IO, cfx_codegen_json(g, (cfx_sink){full, NULL}, &err));
    CHECK_INT_EQ(CFX_E_IO, cfx_codegen_node_json(cfx_graph_first(g), (cfx_sink){full, NULL}, NULL));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_codegen_json(NULL, (cfx_sink){full, NULL}, NULL));
    cfx_graph_release(g);
}

static cfx_status write_sample(const cfx_allocator *allocator, void *arg)
{
    (void)arg;
    cfx_error err = {0};
    cfx_buffer buffer;
    cfx_buffer_init(&buffer, allocator);
    cfx_graph *g = sample_graph(allocator, &err);
    if (g)
        cfx_codegen_json(g, cfx_buffer_sink(&buffer), &err);
    cfx_graph_release(g);
    cfx_buffer_free(&buffer);
    return err.status;
}

TEST(memory_may_run_out)
{
    CHECK(test_oom_sweep(write_sample, NULL) > 3);
}
