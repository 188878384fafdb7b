/* fuzz_safetensors.c - any bytes as named tensors: no crash; what is read is written, and reads
 * back as the same. */
#include <cfx/embed/weights.h>
#include <cfx/weights.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_safetensors: %s\n%s\n", what, detail);
    abort();
}

static void compare(const cfx_state *s, const cfx_state *again)
{
    if (cfx_state_size(s) != cfx_state_size(again))
        fail("the number of tensors changed", "");
    for (size_t i = 0; i < cfx_state_size(s); i++) {
        cfx_tensor *t;
        const char *name = cfx_state_entry(s, i, &t);
        const cfx_tensor *u = cfx_state_get(again, name);
        if (!u || cfx_tensor_numel(u) != cfx_tensor_numel(t) ||
            cfx_tensor_dtype(u) != cfx_tensor_dtype(t))
            fail("a tensor changed", name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer file;
    cfx_state *s = cfx_state_read(data, size, NULL, &err);
    if (!s) {
        if (err.status == CFX_OK || err.message[0] == '\0')
            fail("an error without a message", "");
        return 0;
    }
    cfx_buffer_init(&file, NULL);
    if (cfx_state_write_safetensors(s, cfx_buffer_sink(&file), &err) != CFX_OK) {
        if (err.status != CFX_E_UNSUPPORTED && err.status != CFX_E_VALUE)  /* of a .npz */
            fail("what was read cannot be written", err.message);
    } else {
        cfx_state *again = cfx_state_read(file.data, file.size, NULL, &err);
        if (!again)
            fail("what was written cannot be read", err.message);
        compare(s, again);
        cfx_state_free(again);
    }
    cfx_buffer_free(&file);
    cfx_state_free(s);
    return 0;
}
