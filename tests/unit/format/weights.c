/* weights.c - tensors in files: what is written is read again, what is damaged is refused. */
#include <cfx/embed/weights.h>
#include <cfx/weights.h>

#include "check.h"
#include "full_disk.h"
#include "test_alloc.h"
#include "tensor/tensor_impl.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static cfx_tensor *sequence(cfx_dtype dtype, const int64_t *sizes, size_t ndim,
                            const cfx_allocator *a, cfx_error *err)
{
    cfx_tensor *t = cfx_tensor_new(dtype, sizes, ndim, a, err);
    if (!t)
        return NULL;
    size_t bytes = (size_t)cfx_tensor_numel(t) * cfx_dtype_size(dtype);
    for (size_t i = 0; i < bytes; i++)
        ((char *)cfx_tensor_data(t))[i] = (char)(dtype == CFX_DTYPE_BOOL ? i % 2 : i + 1);
    return t;
}

static bool same(const cfx_tensor *a, const cfx_tensor *b)
{
    size_t bytes = (size_t)cfx_tensor_numel(a) * cfx_dtype_size(cfx_tensor_dtype(a));
    return cfx_tensor_dtype(a) == cfx_tensor_dtype(b) &&
           cfx_tensor_ndim(a) == cfx_tensor_ndim(b) &&
           memcmp(cfx_tensor_sizes(a), cfx_tensor_sizes(b),
                  cfx_tensor_ndim(a) * sizeof(int64_t)) == 0 &&
           (bytes == 0 || memcmp(cfx_tensor_data(a), cfx_tensor_data(b), bytes) == 0);
}

static cfx_state *model(const cfx_allocator *a, cfx_error *err)
{
    static const int64_t sizes[] = {2, 3, 0};
    static const cfx_dtype types[] = {CFX_DTYPE_FLOAT32, CFX_DTYPE_BFLOAT16, CFX_DTYPE_BOOL,
                                      CFX_DTYPE_INT64, CFX_DTYPE_COMPLEX64};
    static const char *const names[] = {"a.weight", "b\"\\\n", "\xc3\xa9", "", "c"};
    cfx_state *s = cfx_state_new(a, err);
    for (size_t i = 0; s && i < 5 && err->status == CFX_OK; i++) {
        cfx_tensor *t = sequence(types[i], sizes, i < 4 ? i % 3 : 3, a, err);
        if (t)
            cfx_state_set(s, names[i], t, err);
        cfx_tensor_release(t);
    }
    if (err->status == CFX_OK)
        return s;
    cfx_state_free(s);
    return NULL;
}

/* Whatever the size of the header is: its first bytes may look like a line of text. */
TEST(safetensors_of_all_sizes_are_recognised)
{
    static const int64_t sizes[] = {1};
    char name[2700];
    cfx_error err = {0};
    cfx_tensor *t = sequence(CFX_DTYPE_FLOAT32, sizes, 1, NULL, &err);
    REQUIRE(t != NULL);
    for (size_t n = 2500; n < sizeof name; n += 8) {
        cfx_buffer file;
        cfx_state *s = cfx_state_new(NULL, &err);
        memset(name, 'a', n);
        name[n] = '\0';
        cfx_buffer_init(&file, NULL);
        CHECK_INT_EQ(CFX_OK, cfx_state_set(s, name, t, &err));
        CHECK_INT_EQ(CFX_OK, cfx_state_write_safetensors(s, cfx_buffer_sink(&file), &err));
        cfx_state *back = cfx_state_read(file.data, file.size, NULL, &err);
        CHECK_STR_EQ("", err.message);
        CHECK(back && cfx_state_get(back, name));
        cfx_state_free(back);
        cfx_state_free(s);
        cfx_buffer_free(&file);
    }
    cfx_tensor_release(t);
}

TEST(safetensors_come_back)
{
    cfx_error err = {0};
    cfx_buffer file;
    cfx_buffer again;
    cfx_buffer_init(&file, NULL);
    cfx_buffer_init(&again, NULL);
    cfx_state *s = model(NULL, &err);
    REQUIRE(s != NULL);
    CHECK_INT_EQ(CFX_OK, cfx_state_write_safetensors(s, cfx_buffer_sink(&file), &err));
    cfx_state *back = cfx_state_read(file.data, file.size, NULL, &err);
    CHECK_STR_EQ("", err.message);
    REQUIRE(back != NULL);
    CHECK_INT_EQ(5, cfx_state_size(back));
    for (size_t i = 0; i < 5; i++) {
        cfx_tensor *t;
        const char *name = cfx_state_entry(s, i, &t);
        CHECK(cfx_state_get(back, name) && same(t, cfx_state_get(back, name)));
    }
    CHECK_INT_EQ(CFX_OK, cfx_state_write_safetensors(s, cfx_buffer_sink(&again), &err));
    CHECK(again.size == file.size && memcmp(again.data, file.data, file.size) == 0);
    /* No prefix of a file is one. */
    for (size_t n = 0; n < file.size; n++) {
        CHECK(cfx_state_read(file.data, n, NULL, &err) == NULL);
        CHECK_INT_EQ(CFX_E_VALUE, err.status);
    }
    cfx_state_free(back);
    cfx_state_free(s);
    cfx_buffer_free(&again);
    cfx_buffer_free(&file);
}

/* A header, and how many bytes of elements. */
static const char *refused(const char *header, size_t data)
{
    static cfx_error err;
    char file[1200] = {0};
    uint64_t size = strlen(header);
    memcpy(file, &size, 8);
    memcpy(file + 8, header, size);
    err = (cfx_error){0};
    cfx_state *s = cfx_state_read(file, 8 + size + data, NULL, &err);
    cfx_state_free(s);
    return s ? "read" : err.message;
}

TEST(damaged_safetensors_are_refused)
{
    static const struct { const char *header; size_t data; const char *message;
    } cases[] = {
        {"{}", 0, "read"},
        {"{} ", 0, "read"},
        {"{}", 1, "safetensors: byte 0 of the elements belongs to no tensor"},
        {"{", 0, "safetensors header, byte 1: expected '\"'"},
        {"[]", 0, "safetensors header, byte 0: expected '{'"},
        {"{} x", 0, "safetensors header, byte 3: unexpected text after the end"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "read"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},}", 4,
         "safetensors header, byte 54: expected '\"'"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 3,
         "safetensors header, byte 53: tensor 'a' has data_offsets outside the file"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
         "safetensors header, byte 53: tensor 'a' has data_offsets that do not match its shape and "
         "dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4,
         "safetensors header, byte 29: expected a non-negative integer"},
        {"{\"a\":{\"dtype\":\"F99\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
         "safetensors header, byte 19: the dtype is not supported"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
         "safetensors header, byte 39: tensor 'a' lacks one of dtype, shape and data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4000000000,4000000000,4],\"data_offsets\":[0,0]}}", 0,
         "safetensors header, byte 74: tensor 'a' has more bytes than memory can hold"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
         2, "safetensors header, byte 57: tensor 'a' occurs twice"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         1, "safetensors: byte 0 of the elements belongs to more than one tensor"},
        {"{\"\\u0000\":{}}", 0, "safetensors header, byte 8: a name contains a NUL character"},
        {"{\"\\ud800\":{}}", 0, "safetensors header, byte 8: unpaired surrogate"},
        {"{\"__metadata__\":{\"a\":\"b\"}}", 0, "read"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "safetensors header, byte 21: expected '\"'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_STR_EQ(cases[i].message, refused(cases[i].header, cases[i].data));
    cfx_error err = {0};
    CHECK(!cfx_state_read("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, NULL, &err));
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
}

/* ---- the table ----------------------------------------------------------------------------- */

TEST(formats_are_known_by_data_and_path)
{
    char list[CFX_FILE_FORMAT_LIST_SIZE];
    for (size_t i = 0; cfx_file_format_get(i); i++) {
        const cfx_file_format *f = cfx_file_format_get(i);
        char path[40];
        snprintf(path, sizeof path, "dir.x/file%s", f->extension);
        CHECK(cfx_file_format_find(f->name) == f);
        CHECK(cfx_file_format_of_path(path) == f);
        CHECK(strstr(cfx_file_format_list(f->content, list), f->extension) != NULL);
        CHECK(i == 0 || strcmp(cfx_file_format_get(i - 1)->name, f->name) < 0);
    }
    CHECK(!cfx_file_format_find("zip") && !cfx_file_format_of_path("x.zip"));
    CHECK(!cfx_file_format_of_path(".npy"));  /* a name, not an extension */
    CHECK(!cfx_file_format_of_data("", 0) && !cfx_file_format_of_data("\0\0", 2));
    CHECK_STR_EQ("ir", cfx_file_format_of_data(" # c\n graph():", 14)->name);
    CHECK_STR_EQ("npy", cfx_file_format_of_data("\x93NUMPY", 6)->name);
    CHECK_STR_EQ("npz", cfx_file_format_of_data("PK\x03\x04", 4)->name);
    CHECK_STR_EQ("csv", cfx_file_format_of_data("1, -2.5\n", 8)->name);
    /* A header of 0x0a38 bytes: the file begins like a line "8". */
    static const char header[8 + 0x0a38] = "8\n\0\0\0\0\0\0{\"a\": {}";
    CHECK_STR_EQ("safetensors", cfx_file_format_of_data(header, sizeof header)->name);
    CHECK(!cfx_file_format_of_data("1; 2\n", 5));
}

TEST(the_extension_selects_the_format)
{
    static const int64_t sizes[] = {2, 3};
    static const char *const one[] = {"t.npy", "t.csv", "t"};
    char folder[] = "/tmp/cfx_weights_XXXXXX";
    char path[64];
    cfx_error err = {0};
    cfx_state *s = cfx_state_new(NULL, &err);
    cfx_tensor *t = sequence(CFX_DTYPE_INT64, sizes, 2, NULL, &err);
    REQUIRE(s && t && mkdtemp(folder));
    CHECK_INT_EQ(CFX_OK, cfx_state_set(s, "t", t, &err));
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, one[i]);
        CHECK_INT_EQ(CFX_OK, cfx_tensor_save(t, path, &err));
        cfx_tensor *back = cfx_tensor_load(path, NULL, &err);
        CHECK(back && same(t, back));
        cfx_tensor_release(back);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/t.npz", folder);
    CHECK_INT_EQ(CFX_OK, cfx_state_save(s, path, &err));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_tensor_save(t, path, &err));
    CHECK(strstr(err.message, "a .npz file holds named tensors; write one tensor to ") != NULL);
    CHECK(!cfx_tensor_load(path, NULL, &err));
    CHECK(strstr(err.message, "a .npz file holds named tensors; give a file with one tensor: ") !=
          NULL);
    unlink(path);
    CHECK_INT_EQ(0, rmdir(folder));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_state_save(s, "/tmp/none.ir", &err));
    CHECK(!cfx_state_read("\x93NUMPY", 6, NULL, &err));
    CHECK(strstr(err.message, "a .npy file holds one tensor; give a file with named tensors: ") !=
          NULL);
    CHECK(!cfx_state_read("oops", 4, NULL, &err));
    CHECK(strstr(err.message, "not a file with named tensors: cfx reads ") != NULL);
    CHECK(cfx_state_save(NULL, path, NULL) != CFX_OK);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_state_save(s, NULL, NULL));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_tensor_save(t, NULL, NULL));
    cfx_tensor_release(t);
    cfx_state_free(s);
}

/* Reads one tensor from memory with little of it. */
static cfx_status read_csv(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    cfx_tensor *t = cfx_tensor_load(arg, a, &err);
    cfx_tensor_release(t);
    return err.status;
}

TEST(csv_without_memory)
{
    char path[] = "/tmp/cfx_weights_csv_XXXXXX";
    const int file = mkstemp(path);
    REQUIRE(file >= 0 && write(file, "1,2.5\n", 6) == 6 && close(file) == 0);
    CHECK(test_oom_sweep(read_csv, path) > 1);
    unlink(path);
}

TEST(npy_comes_back)
{
    static const int64_t sizes[] = {2, 3, 4};
    for (int type = 0; type <= CFX_DTYPE_COMPLEX128; type++) {
        if (!cfxi_tensor_dtype_is_computable((cfx_dtype)type))
            continue;
        for (size_t ndim = 0; ndim < 4; ndim++) {
            cfx_error err = {0};
            cfx_buffer file;
            cfx_buffer_init(&file, NULL);
            cfx_tensor *t = sequence((cfx_dtype)type, sizes, ndim, NULL, &err);
            cfx_status status = cfx_tensor_write_npy(t, cfx_buffer_sink(&file), &err);
            CHECK_INT_EQ(type == CFX_DTYPE_BFLOAT16 ? CFX_E_UNSUPPORTED : CFX_OK, status);
            if (status == CFX_OK) {
                cfx_tensor *back = cfx_tensor_read_npy(file.data, file.size, NULL, &err);
                CHECK(back && same(t, back));
                CHECK(!cfx_tensor_read_npy(file.data, file.size - 1, NULL, &err));
                cfx_tensor_release(back);
            }
            cfx_tensor_release(t);
            cfx_buffer_free(&file);
        }
    }
}

/* The model without what archives have no place for: bfloat16, a tensor without a name. */
static cfx_state *archived(cfx_error *err)
{
    cfx_state *s = cfx_state_new(NULL, err);
    cfx_state *all = model(NULL, err);
    cfx_tensor *t;
    for (size_t i = 0; s && all && i < 5; i++) {
        const char *name = cfx_state_entry(all, i, &t);
        if (*name && cfx_tensor_dtype(t) != CFX_DTYPE_BFLOAT16)
            cfx_state_set(s, name, t, err);
    }
    cfx_state_free(all);
    return s;
}

TEST(npz_comes_back)
{
    cfx_error err = {0};
    cfx_buffer file;
    cfx_buffer again;
    cfx_buffer_init(&file, NULL);
    cfx_buffer_init(&again, NULL);
    cfx_state *s = archived(&err);
    REQUIRE(s != NULL);
    CHECK_INT_EQ(CFX_OK, cfx_state_write_npz(s, cfx_buffer_sink(&file), &err));
    cfx_state *back = cfx_state_read(file.data, file.size, NULL, &err);
    CHECK_STR_EQ("", err.message);
    REQUIRE(back != NULL);
    CHECK_INT_EQ(3, cfx_state_size(back));
    for (size_t i = 0; i < 3; i++) {
        cfx_tensor *t;
        cfx_tensor *u;
        CHECK_STR_EQ(cfx_state_entry(s, i, &t), cfx_state_entry(back, i, &u));
        CHECK(same(t, u));
    }
    CHECK_INT_EQ(CFX_OK, cfx_state_write_npz(s, cfx_buffer_sink(&again), &err));
    CHECK(again.size == file.size && memcmp(again.data, file.data, file.size) == 0);
    for (size_t n = 0; n < file.size; n++)
        CHECK(cfx_state_read(file.data, n, NULL, &err) == NULL);
    cfx_state_free(back);
    cfx_state_free(s);
    cfx_buffer_free(&again);
    cfx_buffer_free(&file);
}

TEST(archives_that_cannot_be)
{
    cfx_error err = {0};
    full_disk disk = {0};
    cfx_state *s = archived(&err);
    CHECK_INT_EQ(CFX_E_IO, cfx_state_write_npz(s, (cfx_sink){write_until_full, &disk}, &err));
    disk.room = 300;
    CHECK_INT_EQ(CFX_E_IO, cfx_state_write_npz(s, (cfx_sink){write_until_full, &disk}, &err));
    CHECK_INT_EQ(CFX_E_IO, cfx_state_save_npz(s, "/nowhere/at/all.npz", &err));
    cfx_state_free(s);
    err = (cfx_error){0};
    s = model(NULL, &err);
    CHECK_INT_EQ(CFX_E_UNSUPPORTED,
                 cfx_state_write_npz(s, (cfx_sink){write_until_full, &disk}, &err));
    CHECK_STR_EQ("'b\"\\\n': a tensor of bfloat16 cannot be written to a .npy file", err.message);
    cfx_state *unnamed = cfx_state_new(NULL, &err);
    cfx_state_set(unnamed, "", cfx_state_get(s, "c"), &err);
    CHECK_INT_EQ(CFX_E_VALUE,
                 cfx_state_write_npz(unnamed, (cfx_sink){write_until_full, &disk}, &err));
    CHECK_STR_EQ("'' is not a valid tensor name for a file", err.message);
    cfx_state_free(unnamed);
    cfx_state_free(s);
}

static const char *npy_message(const char *header, char version, size_t data)
{
    static cfx_error err;
    char file[1000] = "\x93NUMPY";
    size_t begin = version == 1 ? 10 : 12;
    file[6] = version;
    file[8] = (char)strlen(header);
    memcpy(file + begin, header, strlen(header));
    for (size_t i = 0; i < data; i++)
        file[begin + strlen(header) + i] = (char)i;
    err = (cfx_error){0};
    cfx_tensor *t = cfx_tensor_read_npy(file, begin + strlen(header) + data, NULL, &err);
    if (!t)
        return err.message;
    snprintf(err.message, sizeof err.message, "%s", cfx_dtype_name(cfx_tensor_dtype(t)));
    for (size_t i = 0; i < cfx_tensor_ndim(t); i++)
        snprintf(err.message + strlen(err.message), 60, " %lld/%lld",
                 (long long)cfx_tensor_sizes(t)[i], (long long)cfx_tensor_strides(t)[i]);
    if (cfx_tensor_dtype(t) == CFX_DTYPE_INT16)
        snprintf(err.message + strlen(err.message), 60, " %d",
                 (int)*(int16_t *)cfx_tensor_data(t));
    cfx_tensor_release(t);
    return err.message;
}

TEST(headers_of_npy)
{
    static const struct {
        const char *header;
        char version;
        size_t data;
        const char *want;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 1, 24, "float32 2/12 3/4"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 2, 24, "float32 2/4 3/8"},
        {"{'shape': (3L,), 'descr': '|u1', 'fortran_order': False}  \n", 3, 3, "uint8 3/1"},
        {"{'descr': '>i2', 'fortran_order': False, 'shape': (), }", 1, 2, "int16 1"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (1,), }", 1, 2, "int16 1/2 256"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 1, 23,
         "npy: the file ends before the end of its elements"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2), }", 1, 8,
         "npy, byte 52 of the header: expected ','"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", 1, 8,
         "npy, byte 34 of the header: expected True or False"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 1, 8,
         "npy, byte 10 of the header: structured dtypes are not supported"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", 1, 8,
         "npy, byte 14 of the header: the dtype '|O' is not supported"},
        {"{'descr': '<f4', 'shape': (2,), }", 1, 8,
         "npy, byte 33 of the header: one of descr, fortran_order and shape is missing"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 1, 8,
         "npy: the file ends before the end of its elements"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 1, 4,
         "npy, byte 68 of the header: tensors with more than 8 dimensions are not supported"},
        {"{}", 1, 4, "npy, byte 2 of the header: one of descr, fortran_order and shape is missing"},
        {"", 1, 4, "npy, byte 0 of the header: expected '{'"},
        {"{}", 4, 4, "npy: version 4.0 of .npy files is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_STR_EQ(cases[i].want,
                     npy_message(cases[i].header, cases[i].version, cases[i].data));
}

TEST(files_are_mapped_and_replaced)
{
    cfx_error err = {0};
    char folder[] = "/tmp/cfx-weights-XXXXXX";
    char path[100];
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/w.safetensors", folder);
    cfx_state *s = model(NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_state_save_safetensors(s, path, &err));
    cfx_state *back = cfx_state_load(path, NULL, &err);
    REQUIRE(back != NULL);
    cfx_tensor *w = cfx_tensor_retain(cfx_state_get(back, "b\"\\\n"));
    CHECK_INT_EQ(CFX_OK, cfx_state_save_safetensors(s, path, &err));
    cfx_state_free(back);
    CHECK(same(w, cfx_state_get(s, "b\"\\\n")));  /* the map outlives the file and the state */
    ((char *)cfx_tensor_data(w))[0] = 99;
    cfx_tensor_release(w);
    back = cfx_state_load(path, NULL, &err);
    CHECK(same(cfx_state_get(back, "b\"\\\n"), cfx_state_get(s, "b\"\\\n")));
    cfx_state_free(back);
    unlink(path);
    CHECK(!cfx_state_load(path, NULL, &err));
    CHECK_INT_EQ(CFX_E_IO, err.status);
    CHECK(!cfx_tensor_load_npy(folder, NULL, &err));
    CHECK_INT_EQ(CFX_E_IO, err.status);
    snprintf(path, sizeof path, "%s/none/w.npy", folder);
    CHECK_INT_EQ(CFX_E_IO, cfx_tensor_save_npy(cfx_state_get(s, "a.weight"), path, &err));
    CHECK_INT_EQ(0, rmdir(folder));  /* nothing was left behind */
    cfx_state_free(s);
}

/* A device or a pipe is written to: putting a file in its place would destroy it. */
TEST(what_is_no_file_is_not_replaced)
{
    char folder[] = "/tmp/cfx_weights_XXXXXX";
    char path[64];
    char got[6];
    struct stat after;
    cfx_error err = {0};
    cfx_state *s = model(NULL, &err);
    if (!CHECK(mkdtemp(folder) != NULL))
        return;
    snprintf(path, sizeof path, "%s/pipe", folder);
    CHECK_INT_EQ(0, mkfifo(path, 0600));
    int end = open(path, O_RDWR | O_NONBLOCK);
    CHECK_INT_EQ(CFX_OK, cfx_tensor_save_npy(cfx_state_get(s, "a.weight"), path, &err));
    CHECK(stat(path, &after) == 0 && S_ISFIFO(after.st_mode));
    CHECK(read(end, got, 6) == 6 && memcmp(got, "\x93NUMPY", 6) == 0);
    close(end);
    unlink(path);
    CHECK_INT_EQ(CFX_E_IO, cfx_tensor_save_npy(cfx_state_get(s, "a.weight"), folder, &err));
    CHECK_INT_EQ(0, rmdir(folder));
    cfx_state_free(s);
}

TEST(names_are_matched)
{
    cfx_error err = {0};
    int64_t two[] = {2};
    cfx_state *s = model(NULL, &err);
    cfx_state *from = model(NULL, &err);
    CHECK_INT_EQ(CFX_OK, cfx_state_assign(s, from, CFX_LOAD_STRICT, &err));
    CHECK(cfx_state_get(s, "c") == cfx_state_get(from, "c"));
    cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_INT8, two, 1, NULL, &err);
    cfx_state_set(s, "new", t, &err);
    cfx_state_set(from, "c", t, &err);
    cfx_state_set(from, "odd", t, &err);
    CHECK_INT_EQ(CFX_E_KEY, cfx_state_assign(s, from, CFX_LOAD_STRICT, &err));
    CHECK_STR_EQ(
        "'c' must be complex64[2, 3, 0], not int8[2]; 'new' is missing; 'odd' is unexpected",
        err.message);
    CHECK_INT_EQ(CFX_E_KEY,
                 cfx_state_assign(s, from, CFX_LOAD_MISSING | CFX_LOAD_UNEXPECTED, &err));
    CHECK_STR_EQ("'c' must be complex64[2, 3, 0], not int8[2]", err.message);
    cfx_state *none = cfx_state_new(NULL, &err);
    for (int i = 0; i < 100; i++) {
        char name[40];
        snprintf(name, sizeof name, "layers.%d.weight", i);
        cfx_state_set(s, name, t, &err);
    }
    CHECK_INT_EQ(CFX_E_KEY, cfx_state_assign(s, none, CFX_LOAD_STRICT, &err));
    CHECK(strstr(err.message, "more") != NULL);
    CHECK_INT_EQ(CFX_OK, cfx_state_assign(s, none, CFX_LOAD_MISSING, &err));
    cfx_tensor_release(t);
    cfx_state_free(none);
    cfx_state_free(from);
    cfx_state_free(s);
}

static cfx_status read_all(const cfx_allocator *a, void *arg)
{
    const cfx_buffer *file = arg;
    cfx_error err = {0};
    cfx_state *s = cfx_state_read(file->data, file->size, a, &err);
    cfx_state_free(s);
    return err.status;
}

TEST(every_allocation_may_fail)
{
    cfx_error err = {0};
    cfx_buffer file;
    cfx_buffer_init(&file, NULL);
    cfx_state *s = model(NULL, &err);
    cfx_state_write_safetensors(s, cfx_buffer_sink(&file), &err);
    CHECK(test_oom_sweep(read_all, &file) > 5);
    cfx_state_free(s);
    cfx_buffer_free(&file);
}
