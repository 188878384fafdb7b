/* onnx_tensors.c - tensors of ONNX files in every encoding, and files beside the model. */
#include "check.h"
#include "onnx_model.h"
#include "test_alloc.h"

#include "format/package_impl.h"

#include <stdlib.h>
#include <unistd.h>

/* Reads a message; the tensor is the caller's. */
static cfx_tensor *read_tensor(cfxi_onnx_tensor *t, const char *folder, cfx_error *err)
{
    cfxi_bytes *bytes = cfxi_format_bytes_borrow(t->raw.data, t->raw.size, NULL, NULL);
    cfxi_onnx_source source = {.bytes = bytes, .folder = folder,
                               .allocator = cfxi_base_allocator(NULL)};
    *err = (cfx_error){0};
    t->name = (cfxi_text)T("w");
    cfx_tensor *made = cfxi_onnx_tensor_of(&source, t, err);
    cfxi_onnx_source_close(&source);
    cfxi_format_bytes_release(bytes);
    return made;
}

/* Whether the elements are these numbers. */
static bool has(cfx_tensor *t, const double *want, size_t n)
{
    bool same = t && (size_t)cfx_tensor_numel(t) == n;
    for (size_t i = 0; same && i < n; i++) {
        const char *at = (const char *)cfx_tensor_data(t) + i * cfx_dtype_size(cfx_tensor_dtype(t));
        same = cfxi_tensor_load_float(cfx_tensor_dtype(t), at) == want[i];
    }
    cfx_tensor_release(t);
    return same;
}

#define CHECK_TENSOR(number, list, ...)                                                            \
    do {                                                                                           \
        const double want_[] = {__VA_ARGS__};                                                      \
        cfxi_onnx_tensor t_ = {.dtype = number, .sizes = LIST(int64_t, 2), UNPACK list};           \
        cfx_error err_;                                                                            \
        CHECK(has(read_tensor(&t_, NULL, &err_), want_, 2));                                       \
        CHECK_STR_EQ("", err_.message);                                                            \
    } while (0)

TEST(lists_of_numbers)
{
    CHECK_TENSOR(1, (.floats = LIST(float, 1.5f, -2)), 1.5, -2);
    CHECK_TENSOR(11, (.doubles = LIST(double, 1.5, -2)), 1.5, -2);
    CHECK_TENSOR(2, (.int32s = LIST(int64_t, 1, 255)), 1, 255);
    CHECK_TENSOR(3, (.int32s = LIST(int64_t, 1, -2)), 1, -2);
    CHECK_TENSOR(4, (.int32s = LIST(int64_t, 1, 65535)), 1, 65535);
    CHECK_TENSOR(5, (.int32s = LIST(int64_t, 1, -2)), 1, -2);
    CHECK_TENSOR(6, (.int32s = LIST(int64_t, 1, -2)), 1, -2);
    CHECK_TENSOR(7, (.int64s = LIST(int64_t, 1, -2)), 1, -2);
    CHECK_TENSOR(9, (.int32s = LIST(int64_t, 1, 0)), 1, 0);
    CHECK_TENSOR(10, (.int32s = LIST(int64_t, 0x3c00, 0xc000)), 1, -2);
    CHECK_TENSOR(16, (.int32s = LIST(int64_t, 0x3f80, 0xc000)), 1, -2);
    CHECK_TENSOR(12, (.uint64s = LIST(int64_t, 1, 0xffffffff)), 1, 4294967295.0);
    CHECK_TENSOR(13, (.uint64s = LIST(int64_t, 1, -1)), 1, 0x1p64);
    CHECK_TENSOR(17, (.int32s = LIST(int64_t, 0x38, 0xc0)), 1, -2);
    CHECK_TENSOR(19, (.int32s = LIST(int64_t, 0x3c, 0xc0)), 1, -2);
    CHECK_TENSOR(22, (.int32s = LIST(int64_t, 0xe1)), 1, -2);
    CHECK_TENSOR(21, (.int32s = LIST(int64_t, 0xe1)), 1, 14);
    CHECK_TENSOR(23, (.int32s = LIST(int64_t, 0xc2)), 1, -2);
}

TEST(raw_bytes)
{
    static float two[] = {1.5f, -2};
    static char packed[] = {(char)0xe1};
    CHECK_TENSOR(1, (.raw = {.data = (char *)two, .size = 8}), 1.5, -2);
    CHECK_TENSOR(22, (.raw = {.data = packed, .size = 1}), 1, -2);
}

#define CHECK_REFUSED(text, status_, number, list, ...)                                            \
    do {                                                                                           \
        cfxi_onnx_tensor t_ = {.dtype = number, .sizes = LIST(int64_t, __VA_ARGS__), UNPACK list}; \
        cfx_error err_;                                                                            \
        CHECK(read_tensor(&t_, NULL, &err_) == NULL);                                              \
        CHECK_INT_EQ(status_, err_.status);                                                        \
        CHECK_STR_EQ(text, err_.message);                                                          \
    } while (0)

TEST(elements_must_fit)
{
    CHECK_REFUSED("tensor 'w': it has 1 numbers, and its sizes say 2", CFX_E_VALUE, 1,
                  (.floats = LIST(float, 1)), 2);
    CHECK_REFUSED("tensor 'w': it has a size of -1", CFX_E_VALUE, 1,
                  (.floats = LIST(float, 1)), -1);
    CHECK_REFUSED("tensor 'w': its sizes are too large", CFX_E_VALUE, 1, (.floats = LIST(float, 1)),
                  INT64_MAX, 4);
    CHECK_REFUSED("tensor 'w': its elements are of type string (8), which cfx does not have",
                  CFX_E_UNSUPPORTED, 8, (.floats = LIST(float, 1)), 1);
    CHECK_REFUSED("tensor 'w': its elements are of type unknown (99), which cfx does not have",
                  CFX_E_UNSUPPORTED, 99, (.floats = LIST(float, 1)), 1);
}

/* ---- files beside the model ---------------------------------------------------------------- */

#define ENTRY(k, v) {.key = T(k), .value = T(v)}

static const char *message_external(const char *folder, cfxi_onnx_entry *entries, size_t n)
{
    static cfx_error err;
    cfxi_onnx_tensor t = {.dtype = 1, .sizes = LIST(int64_t, 2), .location = 1,
                          .external = {entries, n}};
    cfx_tensor *made = read_tensor(&t, folder, &err);
    const double want[] = {1.5, -2};
    if (made)
        CHECK(has(made, want, 2));
    return err.message;
}

TEST(external_data_is_in_the_folder)
{
    char folder[] = "/tmp/cfx_onnx_XXXXXX";
    char path[64];
    const float elements[] = {0, 1.5f, -2, 7};
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/w.bin", folder);
    FILE *f = fopen(path, "wb");
    REQUIRE(f != NULL);
    fwrite(elements, sizeof *elements, 4, f);
    fclose(f);
    cfxi_onnx_entry good[] = {ENTRY("location", "w.bin"), ENTRY("offset", "4"),
                              ENTRY("length", "8")};
    CHECK_STR_EQ("", message_external(folder, good, 3));
    cfxi_onnx_entry outside[] = {ENTRY("location", "../w.bin")};
    CHECK(strstr(message_external(folder, outside, 1), "which is not in the folder of the model"));
    cfxi_onnx_entry absolute[] = {ENTRY("location", "/etc/passwd")};
    CHECK(strstr(message_external(folder, absolute, 1), "which is not in the folder of the model"));
    CHECK(strstr(message_external(NULL, good, 3), "which is not in the folder of the model"));
    cfxi_onnx_entry past[] = {ENTRY("location", "w.bin"), ENTRY("offset", "12"),
                              ENTRY("length", "8")};
    CHECK(strstr(message_external(folder, past, 3), "goes past the end of 'w.bin'"));
    cfxi_onnx_entry odd[] = {ENTRY("location", "w.bin"), ENTRY("offset", "four")};
    CHECK(strstr(message_external(folder, odd, 2), "the offset of its external data is not a"));
    unlink(path);
    rmdir(folder);
}
