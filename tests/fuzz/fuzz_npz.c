/* fuzz_npz.c - any bytes as a .npz file: no crash; what is read is written, and reads back as the
 * same. A reader compares checksums first, so an archive that can be opened is also tried with
 * right ones: its contents are what is looked at then. */
#include "format/format_impl.h"

#include <cfx/weights.h>

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "fuzz_npz: %s\n%s\n", what, detail);
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
        if (!u || cfx_tensor_dtype(u) != cfx_tensor_dtype(t) ||
            cfx_tensor_ndim(u) != cfx_tensor_ndim(t) ||
            memcmp(cfx_tensor_sizes(u), cfx_tensor_sizes(t),
                   cfx_tensor_ndim(t) * sizeof(int64_t)) != 0)
            fail("a tensor changed", name);
    }
}

static void read_tensors(const void *data, size_t size)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer file;
    cfx_state *s = cfx_state_read(data, size, NULL, &err);
    if (!s) {
        if (err.status == CFX_OK || err.message[0] == '\0')
            fail("an error without a message", "");
        return;
    }
    cfx_buffer_init(&file, NULL);
    if (cfx_state_write_npz(s, cfx_buffer_sink(&file), &err) == CFX_OK) {
        cfx_state *again = cfx_state_read(file.data, file.size, NULL, &err);
        if (!again)
            fail("what was written cannot be read", err.message);
        compare(s, again);
        cfx_state_free(again);
    } else if (err.status != CFX_E_UNSUPPORTED && err.status != CFX_E_VALUE) {
        fail("what was read cannot be written", err.message);
    }
    cfx_buffer_free(&file);
    cfx_state_free(s);
}

/* ---- right checksums ----------------------------------------------------------------------- */

/* The sum of an entry is 16 bytes behind the beginning of its row in the directory, whose name is
 * 46 bytes behind it. */
static void mend_sums(char *copy, const cfxi_archive *a)
{
    const cfxi_entry *all = a->entries.data;
    for (size_t i = 0; i < a->entries.size; i++) {
        char *row = copy + (all[i].name - a->bytes->data) - 46;
        const uint32_t sum = cfxi_format_crc_more(&a->crc, 0, a->bytes->data + all[i].at,
                                                  all[i].size);
        for (int k = 0; k < 4; k++)
            row[16 + k] = (char)(sum >> 8 * k & 0xff);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cfx_error err = {.status = CFX_OK};
    cfxi_archive a;
    cfxi_bytes *b = cfxi_format_bytes_borrow(data, size, NULL, &err);
    read_tensors(data, size);
    if (cfxi_format_archive_open(&a, b, "archive", "store it", &err) == CFX_OK && size > 0) {
        char *copy = malloc(size);
        memcpy(copy, data, size);
        mend_sums(copy, &a);
        read_tensors(copy, size);
        free(copy);
    }
    cfxi_format_archive_close(&a);
    cfxi_format_bytes_release(b);
    return 0;
}
