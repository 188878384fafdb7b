/* fuzz_npy.c - any bytes as a .npy file: no crash; what is read is written, and reads back as the
 * same. */
#include <cfx/embed/weights.h>
#include <cfx/weights.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_npy: %s\n%s\n", what, detail);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer file;
    cfx_tensor *t = cfx_tensor_read_npy(data, size, NULL, &err);
    if (!t) {
        if (err.status == CFX_OK || err.message[0] == '\0')
            fail("an error without a message", "");
        return 0;
    }
    cfx_buffer_init(&file, NULL);
    if (cfx_tensor_write_npy(t, cfx_buffer_sink(&file), &err) != CFX_OK)
        fail("what was read cannot be written", err.message);
    cfx_tensor *again = cfx_tensor_read_npy(file.data, file.size, NULL, &err);
    if (!again)
        fail("what was written cannot be read", err.message);
    if (cfx_tensor_dtype(t) != cfx_tensor_dtype(again) ||
        cfx_tensor_ndim(t) != cfx_tensor_ndim(again) ||
        memcmp(cfx_tensor_sizes(t), cfx_tensor_sizes(again), cfx_tensor_ndim(t) * sizeof(int64_t)))
        fail("the tensor changed", "");
    cfx_tensor_release(again);
    cfx_tensor_release(t);
    cfx_buffer_free(&file);
    return 0;
}
