/* fuzz_syntax.c - any bytes as Python source: no crash; a tree whose dump ends, or a message. */
#include <cfx/embed/syntax.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_syntax: %s\n%s\n", what, detail);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    const cfx_sink sink = cfx_buffer_sink(&text);
    const cfx_status status = cfx_syntax_dump((const char *)data, size, NULL, &sink, &err);
    if (status != err.status || (status != CFX_OK && err.message[0] == '\0'))
        fail("an error without a message", "");
    if (status == CFX_E_SYNTAX && (err.line == 0 || err.column == 0))
        fail("an error without a place", err.message);
    if (status == CFX_OK && strncmp(text.data, "Module(", 7) != 0)
        fail("a source that is right has no tree", text.data);
    cfx_buffer_free(&text);
    return 0;
}
