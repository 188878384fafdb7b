/* fuzz_dim.c - any text as a size: no crash; what is read prints as text that reads as the same. */
#include <cfx/dim.h>

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_dim: %s\n%s\n", what, detail);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer text;
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    if (!dims)
        return 0;
    int64_t d = cfx_dims_parse(dims, (const char *)data, size, &err);
    if (d == CFX_DIM_UNKNOWN && err.status == CFX_OK)
        fail("an error without a message", "");
    if (err.status == CFX_OK) {
        cfx_buffer_init(&text, NULL);
        cfx_dims_print(dims, d, cfx_buffer_sink(&text), &err);
        int64_t again = cfx_dims_parse(dims, text.data, text.size, &err);
        if (err.status == CFX_OK && again != d)
            fail("a size changed on the way through its text", text.data);
        if (err.status != CFX_OK && err.status != CFX_E_LIMIT && err.status != CFX_E_SHAPE)
            fail(err.message, text.data);
        cfx_buffer_free(&text);
    }
    cfx_dims_free(dims);
    return 0;
}
