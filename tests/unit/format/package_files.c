/* package_files.c - .cfx files on disks that fill up, and whose weights are in other files. */
#include "check.h"
#include "test_alloc.h"

#include "tensor/tensor_impl.h"

#include <cfx/cfx.h>
#include <cfx/embed/embed.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a folder and a model ------------------------------------------------------------------ */

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_folder(void)
{
    strcpy(folder, "/tmp/cfx-files-XXXXXX");
    if (!mkdtemp(folder))
        folder[0] = '\0';
}

/* How many files there are; removes them if asked. */
static int list_folder(bool empty)
{
    int n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (e->d_name[0] != '.') {
            n++;
            if (empty)
                unlink(in_folder(e->d_name));
        }
    if (d)
        closedir(d);
    if (empty)
        rmdir(folder);
    return n;
}

static cfx_state *weights_of(float value, size_t n, int64_t size)
{
    cfx_state *s = cfx_state_new(NULL, NULL);
    for (size_t i = 0; i < n; i++) {
        char name[32];
        cfx_tensor *t = cfx_tensor_new(CFX_DTYPE_FLOAT32, &size, 1, NULL, NULL);
        for (int64_t k = 0; k < size; k++)
            ((float *)cfx_tensor_data(t))[k] = value;
        snprintf(name, sizeof name, "w%zu", i);
        cfx_state_set(s, name, t, NULL);
        cfx_tensor_release(t);
    }
    return s;
}

static cfx_status save(const char *name, const cfx_state *weights, uint64_t shard_size,
                       cfx_error *err)
{
    const cfx_package_contents c = {.model = "M", .weights = weights, .shard_size = shard_size};
    return cfx_package_save(in_folder(name), &c, err);
}

/* The value of all weights of a file; -1 if it cannot be loaded, -2 if they differ. */
static float value_of(const char *name)
{
    const cfx_package_options options = {.verify = true};
    cfx_package *p = cfx_package_load(in_folder(name), &options, NULL);
    float value = -1;
    for (size_t i = 0; p && i < cfx_state_size(cfx_package_weights(p)); i++) {
        cfx_tensor *t;
        cfx_state_entry(cfx_package_weights(p), i, &t);
        const float found = ((const float *)cfx_tensor_data(t))[0];
        value = i == 0 || value == found ? found : -2;
    }
    cfx_package_free(p);
    return value;
}

/* ---- full disks ---------------------------------------------------------------------------- */

/* A limit of the process on the size of files stands for the end of the disk: write(2) fails at
 * that very byte. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

TEST(full_disks_leave_the_old_file)
{
    enum { STEP = 64 << 10, SIZE = 3 << 20 };
    struct rlimit before;
    make_folder();
    cfx_state *old = weights_of(1, 2, 10);
    cfx_state *new_ = weights_of(2, 3, SIZE / 12);
    CHECK_INT_EQ(CFX_OK, save("m.cfx", old, 0, NULL));
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t room = 0; room <= SIZE; room += STEP) {
        cfx_error err = {0};
        limit_files(room);
        const cfx_status status = save("m.cfx", new_, 0, &err);
        limit_files(before.rlim_cur);
        CHECK_INT_EQ(CFX_E_IO, status);
        CHECK(strstr(err.message, "cannot write '") != NULL);
        CHECK(value_of("m.cfx") == 1);
        CHECK_INT_EQ(1, list_folder(false));
    }
    for (size_t room = STEP; room < SIZE / 3; room += 4 * STEP) {  /* and shards */
        limit_files(room);
        const cfx_status status = save("m.cfx", new_, SIZE / 3, NULL);
        limit_files(before.rlim_cur);
        CHECK_INT_EQ(CFX_E_IO, status);
        CHECK(value_of("m.cfx") == 1);
        CHECK_INT_EQ(1, list_folder(false));
    }
    CHECK_INT_EQ(CFX_OK, save("m.cfx", new_, 0, NULL));
    CHECK(value_of("m.cfx") == 2);
    cfx_state_free(old);
    cfx_state_free(new_);
    list_folder(true);
}

/* Saves as somebody whom permissions stop: root is nobody for that, in a process of its own. */
static bool is_refused(const cfx_state *s)
{
    cfx_error err = {0};
    int status = 1;
    const pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(2);
        const bool refused = save("m.cfx", s, 0, &err) == CFX_E_IO;
        _exit(refused && strstr(err.message, "Permission denied") ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

TEST(folders_that_cannot_be_written_to_are_named)
{
    cfx_error err = {0};
    make_folder();
    cfx_state *s = weights_of(1, 1, 4);
    CHECK_INT_EQ(CFX_OK, save("m.cfx", s, 0, &err));
    chmod(folder, 0555);
    CHECK(is_refused(s));
    CHECK(value_of("m.cfx") == 1);
    CHECK_INT_EQ(1, list_folder(false));
    chmod(folder, 0755);
    cfx_state_free(s);
    list_folder(true);
}

/* ---- two writers --------------------------------------------------------------------------- */

static void *save_often(void *weights)
{
    for (int i = 0; i < 20; i++)
        CHECK_INT_EQ(CFX_OK, save("m.cfx", weights, 0, NULL));
    return NULL;
}

TEST(of_two_writers_one_wins)
{
    pthread_t thread;
    make_folder();
    cfx_state *one = weights_of(1, 3, 20000);
    cfx_state *two = weights_of(2, 3, 30000);
    CHECK_INT_EQ(CFX_OK, save("m.cfx", one, 0, NULL));
    REQUIRE(pthread_create(&thread, NULL, save_often, one) == 0);
    for (int i = 0; i < 20; i++) {
        char path[400];
        const cfx_package_contents c = {.model = "M", .weights = two};
        snprintf(path, sizeof path, "%s/m.cfx", folder);
        CHECK_INT_EQ(CFX_OK, cfx_package_save(path, &c, NULL));
    }
    pthread_join(thread, NULL);
    const float value = value_of("m.cfx");
    CHECK(value == 1 || value == 2);
    CHECK_INT_EQ(1, list_folder(false));
    cfx_state_free(one);
    cfx_state_free(two);
    list_folder(true);
}

/* ---- weights in other files ---------------------------------------------------------------- */

static cfx_status load_with(const cfx_allocator *a, void *ctx)
{
    cfx_error err = {0};
    const cfx_package_options options = {.allocator = a, .verify = true};
    cfx_package_free(cfx_package_load(ctx, &options, &err));
    return err.status;
}

TEST(shards_come_back)
{
    cfx_error err = {0};
    char path[400];
    make_folder();
    cfx_state *one = weights_of(1, 5, 100);
    cfx_state *two = weights_of(2, 5, 100);
    CHECK_INT_EQ(CFX_OK, save("m.cfx", one, 800, &err));
    CHECK_INT_EQ(1 + 3, list_folder(false));  /* 2 + 2 + 1 tensors */
    CHECK(value_of("m.cfx") == 1);
    CHECK_INT_EQ(CFX_OK, save("m.cfx", two, 1, &err));
    CHECK_INT_EQ(1 + 5, list_folder(false));
    CHECK(value_of("m.cfx") == 2);
    snprintf(path, sizeof path, "%s", in_folder("m.cfx"));
    CHECK(test_oom_sweep(load_with, path) > 1);
    CHECK_INT_EQ(CFX_OK, save("m.cfx", one, 0, &err));
    CHECK_INT_EQ(1, list_folder(false));
    const cfx_package_contents c = {.model = "M", .weights = one, .shard_size = 1};
    cfx_buffer file;
    cfx_buffer_init(&file, NULL);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_package_write(&c, cfx_buffer_sink(&file), &err));
    cfx_buffer_free(&file);
    cfx_state_free(one);
    cfx_state_free(two);
    list_folder(true);
}

/* ---- descriptors and memory ---------------------------------------------------------------- */

static void count_release(void *ctx) { ++*(int *)ctx; }

TEST(memory_is_borrowed_until_the_last_tensor_goes)
{
    cfx_error err = {0};
    cfx_buffer file;
    int released = 0;
    cfx_state *s = weights_of(3, 2, 64);
    const cfx_package_contents c = {.model = "M", .weights = s};
    cfx_buffer_init(&file, NULL);
    REQUIRE(cfx_package_write(&c, cfx_buffer_sink(&file), &err) == CFX_OK);
    char *memory = aligned_alloc(64, (file.size + 63) / 64 * 64);
    memcpy(memory, file.data, file.size);
    cfx_package *p = cfx_package_borrow(memory, file.size, count_release, &released, NULL, &err);
    REQUIRE(p != NULL);
    cfx_tensor *t = cfx_tensor_retain(cfx_state_get(cfx_package_weights(p), "w1"));
    const char *data = cfx_tensor_data(t);
    CHECK(data >= memory && data < memory + file.size);
    cfx_package_free(p);
    CHECK_INT_EQ(0, released);
    cfx_tensor_release(t);
    CHECK_INT_EQ(1, released);
    CHECK(cfx_package_borrow(memory, 10, count_release, &released, NULL, &err) == NULL);
    CHECK_INT_EQ(2, released);
    free(memory);
    cfx_buffer_free(&file);
    cfx_state_free(s);
}

TEST(descriptors_are_read_and_stay_open)
{
    cfx_error err = {0};
    make_folder();
    cfx_state *s = weights_of(3, 2, 64);
    CHECK_INT_EQ(CFX_OK, save("m.cfx", s, 0, &err));
    const int file = open(in_folder("m.cfx"), O_RDONLY);
    for (int copy = 0; copy < 2; copy++) {
        cfx_package *p = cfx_package_load_fd(file, &(cfx_package_options){.copy = copy}, &err);
        REQUIRE(p != NULL);
        CHECK(((float *)cfx_tensor_data(cfx_state_get(cfx_package_weights(p), "w0")))[1] == 3);
        cfx_package_free(p);
    }
    CHECK_INT_EQ(0, close(file));
    CHECK(cfx_package_load_fd(file, NULL, &err) == NULL);
    CHECK_INT_EQ(CFX_E_IO, err.status);
    cfx_state_free(s);
    list_folder(true);
}

/* ---- memory that is given back ------------------------------------------------------------- */

/* Kilobytes of the mapping at an address that are in memory; -1 if the system does not say so. */
static long resident(const void *at)
{
    char line[512];
    long found = -1;
    bool here = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long first;
        unsigned long end;
        if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
            here = (uintptr_t)at >= first && (uintptr_t)at < end;
        else if (here && strncmp(line, "Rss:", 4) == 0)
            found = strtol(line + 4, NULL, 10);
    }
    if (maps)
        fclose(maps);
    return found;
}

static float sum_of(const cfx_tensor *t)
{
    float sum = 0;
    for (int64_t i = 0; i < cfx_tensor_numel(t); i++)
        sum += ((const float *)cfx_tensor_data(t))[i];
    return sum;
}

TEST(weights_that_are_only_read_can_leave_memory)
{
    enum { MANY = 1 << 18 };
    cfx_error err = {0};
    make_folder();
    cfx_state *s = weights_of(1, 1, MANY);
    CHECK_INT_EQ(CFX_OK, save("m.cfx", s, 0, &err));
    for (int read_only = 0; read_only < 2; read_only++) {
        const cfx_package_options options = {.read_only = read_only};
        cfx_package *p = cfx_package_load(in_folder("m.cfx"), &options, &err);
        REQUIRE(p != NULL);
        cfx_tensor *t = cfx_state_get(cfx_package_weights(p), "w0");
        CHECK(cfx_tensor_is_read_only(t) == (bool)read_only);
        if (!read_only)
            ((float *)cfx_tensor_data(t))[MANY / 2] = 2;  /* what was written stays */
        const float sum = sum_of(t);
        const long before = resident(t->data);
        cfxi_tensor_give_back(t);
        const long after = resident(t->data);
        if (before >= 0)
            CHECK(read_only ? before >= MANY / 1024 * 4 && after < 100 : after == before);
        CHECK(sum_of(t) == sum);
        cfx_package_free(p);
    }
    cfx_state_free(s);
    list_folder(true);
}
