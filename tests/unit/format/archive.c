/* archive.c - zip archives: what was written comes back, what is damaged is refused. */
#include "check.h"

#include "format/format_impl.h"

#include <stdlib.h>

static cfx_status write_text(const void *ctx, cfx_sink sink, cfx_error *err)
{
    (void)err;
    return sink.write(sink.ctx, ctx, strlen(ctx));
}

static cfxi_bytes *borrowed(const cfx_buffer *file)
{
    return cfxi_format_bytes_borrow(file->data, file->size, NULL, NULL);
}

static void write_two(cfx_buffer *file)
{
    cfx_error err = {0};
    cfxi_part parts[] = {
        {.name = "one.txt", .write = write_text, .ctx = "the first", .hashed = true},
        {.name = "folder/zw\xc3\xb6lf", .write = write_text, .ctx = ""},
    };
    cfx_buffer_init(file, NULL);
    CHECK_INT_EQ(CFX_OK, cfxi_format_archive_plan(parts, 2, &err));
    CHECK_INT_EQ(CFX_OK, cfxi_format_archive_write(parts, 2, cfx_buffer_sink(file), &err));
}

TEST(sums_are_those_of_the_standards)
{
    cfxi_crc crc;
    cfxi_sha256 h;
    char text[65];
    cfxi_format_crc_init(&crc);
    CHECK_INT_EQ(0xcbf43926, cfxi_format_crc_more(&crc, 0, "123456789", 9));
    CHECK_INT_EQ(0xcbf43926, cfxi_format_crc_more(&crc, cfxi_format_crc_more(&crc, 0, "1234", 4),
                                                  "56789", 5));
    cfxi_format_sha256_begin(&h);
    cfxi_format_sha256_end(&h, text);
    CHECK_STR_EQ("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", text);
    cfxi_format_sha256_begin(&h);
    cfxi_format_sha256_more(&h, "abc", 3);
    cfxi_format_sha256_end(&h, text);
    CHECK_STR_EQ("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", text);
    cfxi_format_sha256_begin(&h);
    char letters[100];
    memset(letters, 'a', sizeof letters);
    for (int i = 0; i < 10000; i++)  /* pieces that lie across the ends of blocks */
        cfxi_format_sha256_more(&h, letters, sizeof letters);
    cfxi_format_sha256_end(&h, text);
    CHECK_STR_EQ("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", text);
}

TEST(every_length_has_one_hash_however_it_is_cut)
{
    char data[200];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7);
    for (size_t size = 0; size <= sizeof data; size++) {
        char whole[65];
        char cut[65];
        cfxi_sha256 h;
        cfxi_format_sha256_begin(&h);
        cfxi_format_sha256_more(&h, data, size);
        cfxi_format_sha256_end(&h, whole);
        cfxi_format_sha256_begin(&h);
        for (size_t i = 0; i < size; i++)
            cfxi_format_sha256_more(&h, data + i, 1);
        cfxi_format_sha256_end(&h, cut);
        CHECK_STR_EQ(whole, cut);
    }
}

TEST(entries_come_back)
{
    cfx_error err = {0};
    cfx_buffer file;
    cfxi_archive a;
    write_two(&file);
    cfxi_bytes *b = borrowed(&file);
    REQUIRE(cfxi_format_archive_open(&a, b, "test archive", "store it", &err) == CFX_OK);
    CHECK_INT_EQ(2, a.entries.size);
    const cfxi_entry *one = cfxi_format_archive_find(&a, "one.txt");
    REQUIRE(one != NULL);
    CHECK(one->size == 9 && memcmp(file.data + one->at, "the first", 9) == 0);
    CHECK_INT_EQ(0, one->at % 64);
    CHECK_INT_EQ(CFX_OK, cfxi_format_archive_check(&a, one, &err));
    REQUIRE(cfxi_format_archive_find(&a, "folder/zw\xc3\xb6lf") != NULL);
    CHECK_INT_EQ(0, cfxi_format_archive_find(&a, "folder/zw\xc3\xb6lf")->size);
    CHECK(cfxi_format_archive_find(&a, "one") == NULL);
    CHECK(cfxi_format_archive_find(&a, "one.txt2") == NULL);
    file.data[one->at] ^= 1;
    CHECK_INT_EQ(CFX_E_VALUE, cfxi_format_archive_check(&a, one, &err));
    CHECK_STR_EQ("test archive, byte 0: a file has a wrong checksum", err.message);
    cfxi_format_archive_close(&a);
    cfxi_format_bytes_release(b);
    cfx_buffer_free(&file);
}

/* Whatever single byte is changed, and wherever it is cut off: an error, or the same names. */
TEST(damage_is_found_or_harmless)
{
    cfx_buffer file;
    write_two(&file);
    for (size_t i = 0; i < file.size; i++)
        for (int bit = 0; bit < 8; bit++) {
            cfx_error err = {0};
            cfxi_archive a;
            file.data[i] ^= (char)(1 << bit);
            cfxi_bytes *b = borrowed(&file);
            if (cfxi_format_archive_open(&a, b, "test archive", "store it", &err) == CFX_OK)
                for (size_t k = 0; k < a.entries.size; k++) {
                    const cfxi_entry *e = (const cfxi_entry *)a.entries.data + k;
                    CHECK(e->at <= file.size && e->size <= file.size - e->at);
                }
            else
                CHECK(err.status != CFX_OK && err.message[0]);
            cfxi_format_archive_close(&a);
            cfxi_format_bytes_release(b);
            file.data[i] ^= (char)(1 << bit);
        }
    for (size_t size = 0; size < file.size; size++) {
        cfx_error err = {0};
        cfxi_archive a;
        cfx_buffer cut = file;
        cut.size = size;
        cfxi_bytes *b = borrowed(&cut);
        CHECK(cfxi_format_archive_open(&a, b, "test archive", "store it", &err) != CFX_OK);
        cfxi_format_archive_close(&a);
        cfxi_format_bytes_release(b);
    }
    cfx_buffer_free(&file);
}

typedef struct changing {
    int calls;
} changing;

static cfx_status write_changing(const void *ctx, cfx_sink sink, cfx_error *err)
{
    changing *c = (changing *)(uintptr_t)ctx;
    (void)err;
    return sink.write(sink.ctx, c->calls++ ? "b" : "a", 1);
}

TEST(what_changes_while_it_is_written_is_refused)
{
    cfx_error err = {0};
    cfx_buffer file;
    changing c = {0};
    cfxi_part part = {.name = "x", .write = write_changing, .ctx = &c};
    cfx_buffer_init(&file, NULL);
    CHECK_INT_EQ(CFX_OK, cfxi_format_archive_plan(&part, 1, &err));
    CHECK_INT_EQ(CFX_E_VALUE, cfxi_format_archive_write(&part, 1, cfx_buffer_sink(&file), &err));
    CHECK_STR_EQ("'x' has changed while it was written; do not change what is being saved",
                 err.message);
    cfx_buffer_free(&file);
}
