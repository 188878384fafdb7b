/* library.c - libraries of operators: making, finding, and what is said of rows that are wrong. */
#include "check.h"
#include "test_alloc.h"
#include "runtime/library_rows.h"

#include <cfx/cfx.h>

static const cfx_custom_operator rows[] = {
    {.name = "mylib.swish", .schema = "(Tensor x, float beta=1.0) -> Tensor"},
    {.name = "mylib.add_one_", .schema = "(Tensor(a!) x) -> Tensor(a!)"},
    {.name = "mylib.nn.norm", .schema = "(Tensor x, int[2] size=1, float[] w=[0.5,1], str m='a')"
                                        " -> (Tensor, int)"},
};

static void expect_error(const cfx_custom_operator *row, size_t n, cfx_status status,
                         const char *message)
{
    cfx_error err = {0};
    CHECK(!cfx_library_new(row, n, NULL, NULL, &err));
    CHECK_INT_EQ(status, err.status);
    CHECK_STR_EQ(message, err.message);
}

TEST(rows_are_found_by_name_and_number)
{
    cfx_error err = {0};
    cfx_library *lib = cfx_library_new(rows, 3, NULL, NULL, &err);
    REQUIRE(lib);
    CHECK_INT_EQ(3, cfxi_rt_library_size(lib));
    for (size_t i = 0; i < 3; i++) {
        CHECK_STR_EQ(rows[i].name, cfxi_rt_library_at(lib, i)->name);
        CHECK(cfxi_rt_library_get(lib, rows[i].name) == cfxi_rt_library_at(lib, i));
        CHECK(cfxi_rt_library_at(lib, i)->name != rows[i].name);  /* a copy */
    }
    CHECK(!cfxi_rt_library_at(lib, 3));
    CHECK(!cfxi_rt_library_get(lib, "mylib.swis"));
    CHECK(!cfxi_rt_library_get(NULL, "mylib.swish"));
    CHECK_INT_EQ(0, cfxi_rt_library_size(NULL));
    CHECK(!cfxi_rt_library_at(NULL, 0));
    cfx_library_release(lib);
    cfx_library_release(NULL);
}

static void count_release(void *ctx) { ++*(int *)ctx; }

TEST(a_library_has_the_rows_of_its_base)
{
    int gone = 0;
    cfx_error err = {0};
    const cfx_custom_operator mine = {.name = "mine.f", .schema = "() -> int", .ctx = &gone,
                                      .release = count_release};
    const cfx_custom_operator yours = {.name = "yours.f", .schema = "() -> int", .ctx = &gone,
                                       .release = count_release};
    cfx_library *base = cfx_library_new(&mine, 1, NULL, NULL, &err);
    cfx_library *lib = cfx_library_new(&yours, 1, base, NULL, &err);
    cfx_library *twice = cfx_library_new(&mine, 1, lib, NULL, &err);
    CHECK(!twice);
    CHECK_STR_EQ("the base library already has 'mine.f'", err.message);
    cfx_library_release(base);
    REQUIRE(lib);
    CHECK_INT_EQ(0, gone);
    CHECK_INT_EQ(2, cfxi_rt_library_size(lib));
    CHECK_STR_EQ("mine.f", cfxi_rt_library_at(lib, 0)->name);
    CHECK_STR_EQ("yours.f", cfxi_rt_library_at(lib, 1)->name);
    CHECK(cfxi_rt_library_get(lib, "mine.f") == cfxi_rt_library_at(lib, 0));
    CHECK(cfx_library_retain(lib) == lib);
    cfx_library_release(lib);
    CHECK_INT_EQ(0, gone);
    cfx_library_release(lib);
    CHECK_INT_EQ(2, gone);
}

TEST(names_that_are_none)
{
    static const char *const bad[] = {"swish", "", ".swish", "mylib.", "my lib.f", "mylib..f",
                                      "mylib.2f", "mylib.f("};
    char message[200];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const cfx_custom_operator row = {.name = bad[i], .schema = "() -> int"};
        snprintf(message, sizeof message,
                 "'%s' is not a valid operator name; write library.operator, as in mylib.swish",
                 bad[i]);
        expect_error(&row, 1, CFX_E_VALUE, message);
    }
    char huge[300];
    memset(huge, 'a', sizeof huge);
    huge[1] = '.';
    huge[sizeof huge - 1] = '\0';
    const cfx_custom_operator row = {.name = huge, .schema = "() -> int"};
    CHECK(!cfx_library_new(&row, 1, NULL, NULL, NULL));
    const cfx_custom_operator none = {.schema = "() -> int"};
    CHECK(!cfx_library_new(&none, 1, NULL, NULL, NULL));
    const cfx_custom_operator relu = {.name = "torch.relu", .schema = "(Tensor x) -> Tensor"};
    expect_error(&relu, 1, CFX_E_VALUE,
                 "'torch.relu' is a built-in operator of cfx ('relu'); a library cannot define it");
    const cfx_custom_operator twice[] = {rows[0], rows[1], rows[0]};
    expect_error(twice, 3, CFX_E_VALUE, "the library defines 'mylib.swish' twice");
}

TEST(schemas_and_defaults_that_are_none)
{
    static const struct {
        const char *schema;
        const char *why;
    } bad[] = {
        {"(Tensr x) -> Tensor", "'Tensr' is not a type"},
        {"(Tensor x=1) -> Tensor", "the default 1 does not fit the parameter 'x', which is Tensor"},
        {"(int i=1.5) -> Tensor", "the default 1.5 does not fit the parameter 'i', which is int"},
        {"(int i=None) -> Tensor", "the default None does not fit the parameter 'i', which is int"},
        {"(int i=[1]) -> Tensor", "the default [1] does not fit the parameter 'i', which is int"},
        {"(float f=x) -> Tensor", "the default x does not fit the parameter 'f', which is float"},
        {"(bool b=1) -> Tensor", "the default 1 does not fit the parameter 'b', which is bool"},
        {"(str s=a) -> Tensor", "the default a does not fit the parameter 's', which is str"},
        {"(int[2] i=[1, 2, 3]) -> Tensor",
         "the default [1, 2, 3] does not fit the parameter 'i', which is "
         "int[2]"},
        {"(int[] i=1) -> Tensor", "the default 1 does not fit the parameter 'i', which is int[]"},
        {"(int[] i=[1, a]) -> Tensor",
         "the default [1, a] does not fit the parameter 'i', which is int[]"},
        {"(int[] i=[1, 2, 3, 4, 5, 6, 7, 8, 9]) -> Tensor",
         "the default [1, 2, 3, 4, 5, 6, 7, 8, 9] does not fit the parameter 'i', which is int[]"},
        {"(Device d=cpu) -> Tensor",
         "the default cpu does not fit the parameter 'd', which is Device"},
    };
    char message[400];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const cfx_custom_operator row = {.name = "a.b", .schema = bad[i].schema};
        snprintf(message, sizeof message, "the schema of 'a.b', \"%s\": %s", bad[i].schema,
                 bad[i].why);
        expect_error(&row, 1, CFX_E_SYNTAX, message);
    }
    const cfx_custom_operator row = {.name = "a.b"};
    expect_error(&row, 1, CFX_E_VALUE, "the schema of 'a.b', \"\": the schema is missing");
}

TEST(a_failed_library_releases_nothing)
{
    int gone = 0;
    const cfx_custom_operator two[] = {
        {.name = "a.b", .schema = "() -> int", .ctx = &gone, .release = count_release},
        {.name = "a.c", .schema = "() -> in", .ctx = &gone, .release = count_release},
    };
    CHECK(!cfx_library_new(two, 2, NULL, NULL, NULL));
    CHECK_INT_EQ(0, gone);
}

static cfx_status make(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    (void)arg;
    cfx_library *lib = cfx_library_new(rows, 3, NULL, a, &err);
    cfx_library *more = lib ? cfx_library_new(rows, 0, lib, a, &err) : NULL;
    cfx_library_release(lib);
    cfx_library_release(more);
    return err.status;
}

TEST(memory_runs_out)
{
    CHECK(test_oom_sweep(make, NULL) > 5);
}
