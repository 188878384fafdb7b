/* fuzz_onnx.c - any bytes as an ONNX model: no crash, no endless work; what can be read is read the
 * same twice, and its module and executable can be made or are refused with a message. */
#include <cfx/cfx.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_onnx: %s\n%s\n", what, detail);
    abort();
}

static void count(void *ctx, const cfx_onnx_finding *finding)
{
    if (!finding->where || !finding->node || !finding->op || !finding->why[0])
        fail("a finding without a reason", "");
    ++*(size_t *)ctx;
}

static void compare(const cfx_package *p, const cfx_package *again)
{
    static const char *const names[] = {"graph.ir", "module.ir", "signature.ir"};
    for (size_t i = 0; i < 3; i++) {
        size_t size = 0;
        size_t other = 0;
        const char *text = cfx_package_text(p, names[i], &size);
        const char *same = cfx_package_text(again, names[i], &other);
        if (!text || !same || size != other || memcmp(text, same, size) != 0)
            fail("a text changed", names[i]);
    }
}

static void make_executable(const cfx_package *p)
{
    cfx_error err = {.status = CFX_OK};
    cfx_executable *e = cfx_executable_new(p, NULL, &err);
    if (!e && (err.status == CFX_OK || err.message[0] == '\0'))
        fail("an executable is missing without a message", "");
    cfx_executable_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t findings = 0;
    cfx_error err = {.status = CFX_OK};
    const cfx_onnx_read_options options = {.each = count, .ctx = &findings};
    cfx_package *p = cfx_onnx_read(data, size, NULL, &options, &err);
    if (!p) {
        if (err.status == CFX_OK || err.message[0] == '\0')
            fail("refused without a message", "");
        return 0;
    }
    if (findings > 0)
        fail("findings, but the model was read", "");
    cfx_package *again = cfx_onnx_read(data, size, NULL, NULL, &err);
    if (!again)
        fail("it was read once, but not twice", err.message);
    compare(p, again);
    make_executable(p);
    cfx_package_free(again);
    cfx_package_free(p);
    return 0;
}
