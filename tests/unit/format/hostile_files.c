/* hostile_files.c - files that lie: an error, and no more memory than the file justifies. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <cfx/embed/embed.h>

#include <stdlib.h>

/* What reading may allocate: in proportion to the file, and a little. */
static size_t justified(size_t size) { return 16 * size + (64 << 10); }

static void read_package(const char *data, size_t size)
{
    test_alloc ta;
    cfx_error err = {0};
    const cfx_allocator a = test_alloc_init(&ta);
    const cfx_package_options options = {.allocator = &a, .skip_files = true};
    cfx_package *p = cfx_package_read(data, size, &options, &err);
    CHECK(p || (err.status != CFX_OK && err.message[0]));
    cfx_package_free(p);
    test_alloc_check(&ta);
    CHECK(ta.peak_bytes <= justified(size));
}

/* The message about a safetensors file with this header and `more` bytes of elements. */
static const char *message_for(const char *header, size_t more)
{
    static cfx_error err;
    test_alloc ta;
    const cfx_allocator a = test_alloc_init(&ta);
    const uint64_t size = strlen(header);
    char *file = calloc(1, 8 + size + more);
    err = (cfx_error){0};
    memcpy(file, &size, 8);
    memcpy(file + 8, header, size);
    cfx_state *s = cfx_state_read(file, 8 + size + more, &a, &err);
    if (s)
        snprintf(err.message, sizeof err.message, "read");
    cfx_state_free(s);
    test_alloc_check(&ta);
    CHECK(ta.peak_bytes <= justified(8 + size + more));
    free(file);
    return err.message;
}

static cfx_status write_one(cfx_buffer *file)
{
    static const char graph[] = "graph():\n  %x = placeholder[target=x]()\n  output(%x)\n";
    const cfx_package_part part = {"graph.ir", graph, sizeof graph - 1};
    const int64_t size = 3;
    cfx_state *s = cfx_state_new(NULL, NULL);
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_COMPLEX128, &size, 1, NULL, NULL);
    memset(cfx_tensor_data(t), 0, 48);
    cfx_state_set(s, "z", t, NULL);
    const cfx_package_contents c = {.model = "M", .parts = &part, .num_parts = 1, .weights = s};
    cfx_buffer_init(file, NULL);
    const cfx_status status = cfx_package_write(&c, cfx_buffer_sink(file), NULL);
    cfx_tensor_release(t);
    cfx_state_free(s);
    return status;
}

TEST(no_change_of_a_file_costs_memory)
{
    cfx_buffer file;
    REQUIRE(write_one(&file) == CFX_OK);
    for (size_t i = 0; i < file.size; i++) {
        const char kept = file.data[i];
        static const unsigned char to[] = {0, 0x7f, 0xff};
        for (size_t k = 0; k < 3; k++) {
            file.data[i] = (char)to[k];
            read_package(file.data, file.size);
        }
        file.data[i] = kept;
        if (i + 4 <= file.size) {  /* a length or an offset */
            char four[4];
            memcpy(four, file.data + i, 4);
            memset(file.data + i, 0xff, 4);
            file.data[i + 3] = 0x3f;
            read_package(file.data, file.size);
            memcpy(file.data + i, four, 4);
        }
        read_package(file.data, i);  /* cut off */
    }
    cfx_buffer_free(&file);
}

TEST(headers_that_lie_are_refused_with_the_byte)
{
    CHECK(strstr(message_for("{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807,2],"
                             "\"data_offsets\":[0,8]}}", 8), "more bytes than memory"));
    CHECK(strstr(message_for("{\"a\":{\"dtype\":\"F32\",\"shape\":[1000000000000],"
                             "\"data_offsets\":[0,4000000000000]}}", 8), "outside the file"));
    CHECK(strstr(message_for("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                             "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}", 6),
                 "byte 2 of the elements belongs to more than one"));
    CHECK(strstr(message_for("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                             "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}", 8),
                 "occurs twice"));
    CHECK(strstr(message_for("{\"\xff\":{}}", 0), "byte 2: a string is not UTF-8"));
    CHECK(strstr(message_for("{\"__metadata__\":{\"complex128 a\":\"\"}}", 0),
                 "'a' is said to be complex128"));
    CHECK(strstr(message_for("{\"__metadata__\":{\"complex128 a\":\"\"},\"a\":{\"dtype\":\"F64\","
                             "\"shape\":[3],\"data_offsets\":[0,24]}}", 24),
                 "last dimension of 2"));
    CHECK_STR_EQ("read", message_for("{\"a\":{\"dtype\":\"F64\",\"shape\":[1,2],\"data_offsets\":"
                                     "[0,16]},\"__metadata__\":{\"complex128 a\":\"\"}}", 16));
}
