/* package.c - .cfx files: what was written comes back, what is damaged or new is refused. */
#include "check.h"
#include "full_disk.h"
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <cfx/embed/embed.h>

#include <stdlib.h>

#define GRAPH "graph():\n  %x = placeholder[target=x]()\n  output(%x)\n"

static cfx_state *weights_of(cfx_error *err)
{
    cfx_state *s = cfx_state_new(NULL, err);
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, (int64_t[]){2, 3}, 2, NULL, err);
    for (int i = 0; i < 6; i++)
        ((float *)cfx_tensor_data(t))[i] = (float)i;
    cfx_state_set(s, "fc.weight", t, err);
    cfx_state_set(s, "fc.bias", t, err);
    cfx_tensor_release(t);
    return s;
}

static cfx_status write_model(cfx_buffer *file, const cfx_state *weights, cfx_error *err)
{
    const cfx_package_part parts[] = {
        {"graph.ir", GRAPH, sizeof GRAPH - 1},
        {"graphs/1/graph.ir", GRAPH, sizeof GRAPH - 1},
        {"empty", "", 0},
    };
    const cfx_package_contents contents = {
        .model = "Net \"one\"", .parts = parts, .num_parts = 3, .weights = weights};
    cfx_buffer_init(file, NULL);
    return cfx_package_write(&contents, cfx_buffer_sink(file), err);
}

TEST(packages_come_back)
{
    cfx_error err = {0};
    cfx_buffer file;
    cfx_buffer again;
    size_t size;
    uint64_t bytes;
    cfx_state *weights = weights_of(&err);
    REQUIRE(write_model(&file, weights, &err) == CFX_OK);
    REQUIRE(write_model(&again, weights, &err) == CFX_OK);
    CHECK(file.size == again.size && memcmp(file.data, again.data, file.size) == 0);
    CHECK_STR_EQ("cfx", cfx_file_format_of_data(file.data, file.size)->name);
    cfx_package *p = cfx_package_read(file.data, file.size,
                                      &(cfx_package_options){.verify = true}, &err);
    REQUIRE(p != NULL);
    CHECK_STR_EQ("Net \"one\"", cfx_package_model(p));
    CHECK(strncmp("cfx ", cfx_package_producer(p), 4) == 0);
    CHECK_INT_EQ(1, cfx_package_format(p));
    CHECK_STR_EQ("cfx.json", cfx_package_entry(p, 0, NULL));
    CHECK_STR_EQ("graph.ir", cfx_package_entry(p, 1, &bytes));
    CHECK_INT_EQ(sizeof GRAPH - 1, bytes);
    CHECK(cfx_package_entry(p, 5, NULL) == NULL);
    const char *text = cfx_package_text(p, "graphs/1/graph.ir", &size);
    CHECK(text && size == sizeof GRAPH - 1 && memcmp(text, GRAPH, size) == 0);
    CHECK(cfx_package_text(p, "empty", &size) != NULL && size == 0);
    CHECK(cfx_package_text(p, "graph", &size) == NULL);
    CHECK(cfx_package_text(p, "weights.safetensors", &size) == NULL);
    CHECK_INT_EQ(CFX_OK, cfx_package_verify(p, &err));
    cfx_tensor *t = cfx_state_get(cfx_package_weights(p), "fc.weight");
    REQUIRE(t != NULL);
    CHECK_INT_EQ(5, (int)((float *)cfx_tensor_data(t))[5]);
    cfx_package_free(p);
    cfx_buffer_free(&file);
    cfx_buffer_free(&again);
    cfx_state_free(weights);
}

TEST(weights_may_be_kept_elsewhere)
{
    cfx_error err = {0};
    cfx_buffer file;
    REQUIRE(write_model(&file, NULL, &err) == CFX_OK);
    cfx_package *p = cfx_package_read(file.data, file.size, NULL, &err);
    REQUIRE(p != NULL);
    CHECK(cfx_package_weights(p) == NULL);
    cfx_package_free(p);
    cfx_buffer_free(&file);
}

TEST(files_are_mapped_or_copied)
{
    cfx_error err = {0};
    char path[] = "/tmp/cfx-package-XXXXXX";
    int handle = mkstemp(path);
    REQUIRE(handle >= 0);
    cfx_state *weights = weights_of(&err);
    const cfx_package_contents contents = {.model = "M", .weights = weights};
    REQUIRE(cfx_package_save(path, &contents, &err) == CFX_OK);
    for (int copy = 0; copy < 2; copy++) {
        cfx_package *p = cfx_package_load(path, &(cfx_package_options){.copy = copy}, &err);
        REQUIRE(p != NULL);
        cfx_tensor *t = cfx_tensor_retain(cfx_state_get(cfx_package_weights(p), "fc.weight"));
        cfx_package_free(p);  /* the tensor keeps the memory */
        CHECK_INT_EQ(0, (uintptr_t)cfx_tensor_data(t) % 64);
        CHECK_INT_EQ(4, (int)((float *)cfx_tensor_data(t))[4]);
        cfx_tensor_release(t);
    }
    CHECK(cfx_package_load("/nowhere/at/all.cfx", NULL, &err) == NULL);
    CHECK_INT_EQ(CFX_E_IO, err.status);
    CHECK_INT_EQ(CFX_E_IO, cfx_package_save("/nowhere/at/all.cfx", &contents, &err));
    cfx_state_free(weights);
    remove(path);
}

TEST(names_that_lead_elsewhere_are_refused)
{
    static const char *const names[] = {"", "..", "a/../b", "/a", "a//b", "a/", ".", "a/./b",
                                        "a\\b", "a\nb", "C:x", "cfx.json", "weights.safetensors",
                                        "\xff", "graph.ir"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cfx_error err = {0};
        cfx_buffer file;
        const cfx_package_part parts[] = {{"graph.ir", "", 0}, {names[i], "", 0}};
        const cfx_package_contents contents = {.parts = parts, .num_parts = 2};
        cfx_buffer_init(&file, NULL);
        CHECK_INT_EQ(CFX_E_VALUE, cfx_package_write(&contents, cfx_buffer_sink(&file), &err));
        cfx_buffer_free(&file);
    }
}

/* A package whose manifest says something else; the archive around it is right. */
static const char *message_for(const char *old, const char *new_, bool verify)
{
    static cfx_error err;
    cfx_buffer file;
    cfx_state *weights = weights_of(&err);
    err = (cfx_error){0};
    write_model(&file, weights, &err);
    const size_t size = strlen(old);
    for (size_t i = 0; i + size <= file.size; i++)
        if (memcmp(file.data + i, old, size) == 0) {
            memcpy(file.data + i, new_, size);  /* of the same length: nothing moves */
            break;
        }
    cfx_package *p = cfx_package_read(file.data, file.size,
                                      &(cfx_package_options){.verify = verify}, &err);
    if (p)
        snprintf(err.message, sizeof err.message, "read");
    cfx_package_free(p);
    cfx_state_free(weights);
    cfx_buffer_free(&file);
    return err.message;
}

TEST(manifests_are_checked)
{
    CHECK_STR_EQ("read", message_for("\"format\": 1", "\"format\": 9", false));  /* a newer one */
    CHECK(strstr(message_for("\"reads\": 1", "\"reads\": 9", false), "update cfx") != NULL);
    CHECK(strstr(message_for("\"reads\"", "\"raeds\"", false), "lacks one of") != NULL);
    CHECK(strstr(message_for("\"entries\"", "\"antries\"", false), "lacks one of") != NULL);
    CHECK(strstr(message_for("\"graph.ir\"", "\"graph.ix\"", false), "an entry is missing"));
    CHECK(strstr(message_for("\"size\": 5", "\"size\": 6", false), "another size") != NULL);
    CHECK_STR_EQ("read", message_for("\"producer\"", "\"productr\"", false));
    CHECK_STR_EQ("read", message_for("%x = placeholder", "%x = placehulder", false));
    CHECK(strstr(message_for("%x = placeholder", "%x = placehulder", true), "checksum") != NULL);
    CHECK(strstr(message_for("%x = placeholder", "%x = place\xff\xff" "lder", false), "not UTF-8"));
}

TEST(damage_never_harms)
{
    cfx_error err = {0};
    cfx_buffer file;
    cfx_state *weights = weights_of(&err);
    REQUIRE(write_model(&file, weights, &err) == CFX_OK);
    for (size_t i = 0; i < file.size; i++) {
        const char kept = file.data[i];
        for (int k = 0; k < 3; k++) {
            file.data[i] = (char)(k == 0 ? 0 : k == 1 ? 0xff : kept ^ 0x20);
            cfx_package_free(cfx_package_read(file.data, file.size, NULL, NULL));
        }
        file.data[i] = kept;
    }
    for (size_t size = 0; size < file.size; size++)
        CHECK(cfx_package_read(file.data, size, NULL, NULL) == NULL);
    cfx_state_free(weights);
    cfx_buffer_free(&file);
}

static bool stop_soon(void *ctx, uint64_t done, uint64_t all)
{
    int *calls = ctx;
    CHECK(done <= all + 2 * 4096);
    return ++*calls < 2;
}

TEST(saving_can_be_stopped)
{
    cfx_error err = {0};
    cfx_buffer file;
    int calls = 0;
    cfx_state *weights = weights_of(&err);
    const cfx_package_contents contents = {
        .model = "M", .weights = weights, .progress = stop_soon, .progress_ctx = &calls};
    cfx_buffer_init(&file, NULL);
    CHECK_INT_EQ(CFX_E_INTERRUPTED, cfx_package_write(&contents, cfx_buffer_sink(&file), &err));
    CHECK_STR_EQ("saving was stopped", err.message);
    cfx_state_free(weights);
    cfx_buffer_free(&file);
}

TEST(full_disks_are_reported)
{
    cfx_error err = {0};
    cfx_state *weights = weights_of(&err);
    const cfx_package_contents contents = {.model = "M", .weights = weights};
    cfx_buffer file;
    cfx_buffer_init(&file, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_package_write(&contents, cfx_buffer_sink(&file), &err));
    for (size_t room = 0; room < file.size; room += 7) {
        full_disk disk = {room};
        CHECK_INT_EQ(CFX_E_IO,
                     cfx_package_write(&contents, (cfx_sink){write_until_full, &disk}, &err));
    }
    cfx_buffer_free(&file);
    cfx_state_free(weights);
}

static cfx_status read_file(const cfx_allocator *a, void *ctx)
{
    const cfx_buffer *file = ctx;
    cfx_error err = {0};
    cfx_package *p = cfx_package_read(file->data, file->size,
                                      &(cfx_package_options){.allocator = a}, &err);
    cfx_package_free(p);
    return err.status;
}

TEST(reading_without_memory)
{
    cfx_error err = {0};
    cfx_buffer file;
    cfx_state *weights = weights_of(&err);
    REQUIRE(write_model(&file, weights, &err) == CFX_OK);
    CHECK(test_oom_sweep(read_file, &file) > 1);
    cfx_state_free(weights);
    cfx_buffer_free(&file);
}
