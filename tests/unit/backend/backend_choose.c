/* backend_choose.c - which back end is chosen, by cost and by measuring; the file of measurements:
 * used again, of other machines, damaged, where it cannot be written. */
#include "backend/backend_impl.h"

#include "test_alloc.h"

#include <sys/stat.h>
#include <unistd.h>

static cfxi_problem product(void)
{
    return (cfxi_problem){.kind = CFXI_PRODUCT, .isa = CFX_ISA_PLAIN, .threads = 1, .m = 4, .n = 20,
                          .k = 8, .x_row = 8, .out_row = 20, .w_k = 20, .w_n = 1};
}

/* Of 16 channels; each on its own, or in two groups. */
static cfxi_problem convolution(bool depthwise)
{
    const int64_t groups = depthwise ? 16 : 2;
    const int64_t each = 16 / groups;
    cfxi_problem p = {.kind = CFXI_CONVOLUTION, .isa = CFX_ISA_PLAIN, .threads = 1,
                      .has_bias = true, .num_posts = 2,
                      .posts = {{.kind = CFXI_POST_ADD, .rows = {9 * 9 * 16, 9 * 16, 16}},
                                {.kind = CFXI_POST_CLAMP, .high = 6}}};
    p.conv = (cfxi_conv){.batch = 2, .groups = groups, .in_channels = each, .out_channels = each,
                         .in = {1, 9, 9}, .out = {1, 9, 9}, .kernel = {1, 3, 3},
                         .stride = {1, 1, 1}, .before = {0, 1, 1}, .dilation = {1, 1, 1},
                         .xs = {9 * 9 * 16, 1, 0, 9 * 16, 16}, .ys = {9 * 9 * 16, 1, 0, 9 * 16, 16},
                         .ws = {9 * each, 9, 0, 3, 1}, .wg = 9 * each * each};
    return p;
}

TEST(by_cost)
{
    const cfxi_choosing any = {0};
    const cfxi_choosing onednn = {.allowed = CFXI_ALLOW_ONEDNN};
    const cfxi_choosing ours = {.allowed = CFXI_ALLOW_BUILT_IN};
    cfxi_problem p = product();
    CHECK(cfxi_backend_choose(&p, &any, NULL) == &cfxi_backend_product);
    CHECK(cfxi_backend_choose(&p, &ours, NULL) == &cfxi_backend_product);
    CHECK(cfxi_backend_choose(&p, &onednn, NULL) == NULL);  /* it is not loaded */
    p = convolution(true);
    CHECK(cfxi_backend_choose(&p, &any, NULL) == &cfxi_backend_depthwise);
    p = convolution(false);
    CHECK(cfxi_backend_choose(&p, &any, NULL) == &cfxi_backend_convolution);
    p.conv.transposed = true;
    CHECK(cfxi_backend_choose(&p, &any, NULL) == NULL);
}

/* ---- measuring ----------------------------------------------------------------------------- */

static char folder[200];
static char file[240];

static void new_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/cfx_tune_XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(file, sizeof file, "%s/tune.txt", folder);
}

static void remove_folder(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_INT_EQ(0, system(command));
}

static size_t read_file(char *to, size_t room)
{
    FILE *f = fopen(file, "r");
    const size_t n = f ? fread(to, 1, room - 1, f) : 0;
    to[n] = '\0';
    if (f)
        fclose(f);
    return n;
}

static void write_file(const char *bytes, size_t size)
{
    FILE *f = fopen(file, "w");
    CHECK(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0);
}

/* Chooses for a depthwise convolution, which two back ends solve, with a tuner that was just made;
 * *measured: how many problems it has measured. */
static const cfxi_backend *choose_anew(const char *where, size_t *measured)
{
    cfx_error err = {0};
    const cfxi_problem p = convolution(true);
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.threads = 1}, NULL);
    cfxi_tuner *t = cfxi_backend_tuner_new(where, cfxi_base_allocator(NULL), &err);
    CHECK(t != NULL);
    if (!t)
        return NULL;
    const cfxi_choosing how = {.tuner = t, .rt = rt};
    const cfxi_backend *first = cfxi_backend_choose(&p, &how, NULL);
    CHECK(first == &cfxi_backend_depthwise || first == &cfxi_backend_convolution);
    CHECK(cfxi_backend_choose(&p, &how, NULL) == first);
    *measured = cfxi_backend_tuner_measured(t);
    cfxi_backend_tuner_free(t);
    cfx_runtime_free(rt);
    return first;
}

TEST(measured_once)
{
    size_t measured;
    char text[2000];
    new_folder();
    const cfxi_backend *first = choose_anew(folder, &measured);
    CHECK_INT_EQ(1, measured);
    CHECK(read_file(text, sizeof text) > 0 && strncmp(text, "cfx tune 1\n", 11) == 0);
    CHECK(choose_anew(folder, &measured) == first);
    CHECK_INT_EQ(0, measured);
    /* What the file says is done: here the other one. */
    const bool depthwise = first == &cfxi_backend_depthwise;
    char *name = strchr(text, '\t');
    REQUIRE(name != NULL);
    snprintf(name, 30, "\t%s\t1\n", depthwise ? "convolution" : "depthwise");
    write_file(text, strlen(text));
    CHECK(choose_anew(folder, &measured) ==
          (depthwise ? &cfxi_backend_convolution : &cfxi_backend_depthwise));
    CHECK_INT_EQ(0, measured);
    remove_folder();
}

TEST(other_problems_and_machines)
{
    size_t measured;
    char text[4000];
    new_folder();
    choose_anew(folder, &measured);
    read_file(text, sizeof text);
    char *cpu = strchr(text, '\n') + 1;
    const char was = *cpu;
    *cpu = '#';
    write_file(text, strlen(text));
    choose_anew(folder, &measured);
    CHECK_INT_EQ(1, measured);
    read_file(text, sizeof text);
    CHECK(strstr(text, "\n#") != NULL);  /* the other machine's line is kept */
    CHECK(strchr(text, was) != NULL);
    remove_folder();
}

TEST(damaged)
{
    static const char zeros[64];
    static const struct {
        const char *bytes;
        size_t size;
    } all[] = {{"", 0}, {zeros, sizeof zeros}, {"cfx tune 2\nx\tproduct\t1\n", 23},
               {"cfx tune 1", 10}, {"cfx tune 1\n\t\t\t\n\n\nAMD", 19}, {"\xff\xfe\x00\x01", 4}};
    size_t measured;
    new_folder();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        write_file(all[i].bytes, all[i].size);
        choose_anew(folder, &measured);
        CHECK_INT_EQ(1, measured);
        choose_anew(folder, &measured);  /* the file is good again */
        CHECK_INT_EQ(0, measured);
    }
    remove_folder();
}

/* Each prefix of a good file: what is cut off is measured again, and added. */
TEST(cut_off)
{
    char text[2000];
    size_t measured;
    new_folder();
    choose_anew(folder, &measured);
    const size_t size = read_file(text, sizeof text);
    for (size_t n = 0; n < size; n += 17) {
        write_file(text, n);
        choose_anew(folder, &measured);
        CHECK(measured <= 1);
        choose_anew(folder, &measured);
        CHECK_INT_EQ(0, measured);
    }
    remove_folder();
}

/* A candidate that does not solve this problem is not taken from the file. */
TEST(wrong_candidate)
{
    char text[2000];
    size_t measured;
    new_folder();
    choose_anew(folder, &measured);
    read_file(text, sizeof text);
    char *name = strchr(text, '\t');
    REQUIRE(name != NULL);
    strcpy(name, "\tproduct\t1\n");
    write_file(text, strlen(text));
    choose_anew(folder, &measured);
    CHECK_INT_EQ(1, measured);
    remove_folder();
}

TEST(folders)
{
    size_t measured;
    char deep[220];
    new_folder();
    snprintf(deep, sizeof deep, "%s/a/b", folder);  /* are made */
    choose_anew(deep, &measured);
    CHECK_INT_EQ(1, measured);
    choose_anew(deep, &measured);
    CHECK_INT_EQ(0, measured);
    write_file("x", 1);
    snprintf(deep, sizeof deep, "%s/tune.txt/c", folder);  /* cannot be made: below a file */
    choose_anew(deep, &measured);
    CHECK_INT_EQ(1, measured);
    choose_anew(deep, &measured);
    CHECK_INT_EQ(1, measured);
    choose_anew(NULL, &measured);  /* nothing is kept */
    CHECK_INT_EQ(1, measured);
    if (geteuid() != 0) {  /* root may write anywhere */
        snprintf(deep, sizeof deep, "%s/read_only", folder);
        CHECK(mkdir(deep, 0555) == 0);
        choose_anew(deep, &measured);
        CHECK_INT_EQ(1, measured);
    }
    remove_folder();
}

/* Without memory there is an error, or a choice all the same. */
TEST(out_of_memory)
{
    const cfxi_problem p = convolution(true);
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.threads = 1}, NULL);
    new_folder();
    for (size_t n = 0; n < 40; n++) {
        cfx_error err = {0};
        test_alloc ta;
        const cfx_allocator a = test_alloc_init(&ta);
        ta.fail_at = n;
        cfxi_tuner *t = cfxi_backend_tuner_new(folder, &a, &err);
        const cfxi_choosing how = {.tuner = t, .rt = rt};
        CHECK(t ? cfxi_backend_choose(&p, &how, NULL) != NULL : err.status == CFX_E_NOMEM);
        CHECK(t || n < 10);
        cfxi_backend_tuner_free(t);
        test_alloc_check(&ta);
    }
    remove_folder();
    cfx_runtime_free(rt);
}
