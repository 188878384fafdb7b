/* generators.c - the table of code generators: every row writes the same graph. */
#include "check.h"

#include <cfx/cfx.h>

#include <string.h>

static const char text[] = "graph():\n"
                           "  %x = placeholder[target=x]()\n"
                           "  %y = call_function[target=torch.relu](%x)  @ a.py:3\n"
                           "  output(%y)\n";

TEST(every_generator_writes)
{
    cfx_error err = {0};
    cfx_graph *g = cfx_graph_parse(text, sizeof text - 1, NULL, NULL, &err);
    const cfx_generator *row;
    const char *last = "";
    REQUIRE(g);
    for (size_t i = 0; (row = cfx_generator_get(i)) != NULL; i++) {
        cfx_buffer out;
        cfx_buffer_init(&out, NULL);
        CHECK(strcmp(last, row->name) < 0);  /* sorted */
        CHECK(cfx_generator_find(row->name) == row);
        CHECK(row->extension[0] == '.' && row->summary[0]);
        if (!CHECK_INT_EQ(CFX_OK, cfx_generate(row, g, NULL, cfx_buffer_sink(&out), &err)))
            printf("    %s: %s\n", row->name, err.message);
        CHECK(strstr(out.data, "relu") != NULL);
        cfx_buffer_free(&out);
        last = row->name;
    }
    cfx_graph_release(g);
}

TEST(what_is_missing_is_an_error)
{
    cfx_error err = {0};
    cfx_buffer out;
    cfx_buffer_init(&out, NULL);
    CHECK(!cfx_generator_find("fortran"));
    CHECK(cfx_generate(NULL, NULL, NULL, cfx_buffer_sink(&out), &err) != CFX_OK);
    err = (cfx_error){0};
    CHECK(cfx_generate(cfx_generator_get(0), NULL, NULL, cfx_buffer_sink(&out), &err) != CFX_OK);
    cfx_buffer_free(&out);
}

/* Takes so many writes. */
static cfx_status take_some(void *ctx, const char *data, size_t size)
{
    int *left = ctx;
    (void)data;
    (void)size;
    return (*left)-- > 0 ? CFX_OK : CFX_E_IO;
}

TEST(a_sink_that_fails_is_told)
{
    cfx_graph *g = cfx_graph_parse(text, sizeof text - 1, NULL, NULL, NULL);
    const cfx_generator *row;
    REQUIRE(g);
    for (size_t i = 0; (row = cfx_generator_get(i)) != NULL; i++) {
        cfx_status status = CFX_E_IO;
        for (int n = 0; n < 100 && status != CFX_OK; n++) {
            int left = n;
            cfx_error err = {0};
            status = cfx_generate(row, g, NULL, (cfx_sink){take_some, &left}, &err);
            CHECK_INT_EQ(status, err.status);
            CHECK((status != CFX_OK) == (err.message[0] != '\0'));
        }
        CHECK_INT_EQ(CFX_OK, status);
    }
    cfx_graph_release(g);
}
