/* schema_check.c - schemas that users write: which are some, and what is said of the others. */
#include "check.h"

#include "ops/ops_impl.h"

static void expect_ok(const char *schema)
{
    cfx_error err = {0};
    if (!CHECK_INT_EQ(CFX_OK, cfxi_ops_schema_check(schema, &err)))
        printf("    %s: %s\n", schema, err.message);
}

static void expect_error(const char *schema, const char *message)
{
    cfx_error err = {0};
    CHECK_INT_EQ(CFX_E_SYNTAX, cfxi_ops_schema_check(schema, &err));
    CHECK_STR_EQ(message, err.message);
    CHECK_INT_EQ(CFX_E_SYNTAX, cfxi_ops_schema_check(schema, NULL));
}

TEST(schemas_in_all_their_parts)
{
    expect_ok("() -> ()");
    expect_ok("(Tensor x) -> Tensor");
    expect_ok("(Tensor x, float beta=1.0) -> Tensor");
    expect_ok("(Tensor(a!) x, Tensor y, *, Scalar alpha=1) -> Tensor(a!)");
    expect_ok("(Tensor?[] xs, int[2]? size=[1, 2], str mode='a, (b)', bool b=False) -> "
              "(Tensor, int n)");
    expect_ok("(ScalarType t, Layout l, Device d, Generator? g, Any a, MemoryFormat? f=None) -> "
              "Any[]");
    expect_ok("(Tensor(a) x, Tensor(b!) y) -> (Tensor(a), Tensor(b!), Tensor)");
}

TEST(every_table_row_without_regions_would_pass)
{
    cfx_schema_param param;
    size_t others = 0;
    for (int op = CFX_OPID_NONE + 1; op < CFX_OPERATOR_COUNT; op++) {
        const char *schema = cfx_operator_schema((cfx_operator)op);
        bool own = cfx_operator_regions((cfx_operator)op) > 0 || strstr(schema, "->*");
        for (size_t i = 0; cfxi_ops_schema_param(schema, i, &param); i++)
            own = own || param.variadic || strstr(schema, " -> *)");
        others += own;
        if (!own && cfxi_ops_schema_check(schema, NULL) != CFX_OK) {
            cfx_error err = {0};
            cfxi_ops_schema_check(schema, &err);
            printf("    %s %s: %s\n", cfx_operator_name((cfx_operator)op), schema, err.message);
            CHECK(false);
        }
    }
    CHECK(others < 60);
}

TEST(what_is_wrong_is_said)
{
    expect_error("", "'(' is missing at the beginning, before ''");
    expect_error("Tensor x", "'(' is missing at the beginning, before 'Tensor x'");
    expect_error("(Tensor x)", "') -> ' is missing after the parameters, before ')'");
    expect_error("(Tensor x) -> ", "a type is missing before ''");
    expect_error("(Tensr x) -> Tensor", "'Tensr' is not a type");
    expect_error("(Graph g) -> Tensor", "'Graph' is not a type");
    expect_error("(Tensor) -> Tensor", "' ' is missing after the type of a parameter, before "
                 "') -> Tensor'");
    expect_error("(Tensor 2x) -> Tensor", "a parameter has no name before ') -> Tensor'");
    expect_error("(Tensor x,int y) -> Tensor", "', ' is missing between two parameters, before "
                 "',int y) -> Tensor'");
    expect_error("(Tensor x, int x) -> Tensor", "two parameters are named 'x'");
    expect_error("(Tensor x, float b = 1.0) -> Tensor", "' = 1.0) -> Tensor' cannot follow the "
                 "parameter 'b'; a default is written without blanks: b=1");
    expect_error("(*Tensor xs) -> Tensor",
                 "'*' must be followed by ', ' and keyword-only parameters; write a variable "
                 "number of tensors as Tensor[]");
    expect_error("(int[9] x) -> Tensor", "']' is missing after a list (its length, if any, is 1 to "
                 "8), before '9] x) -> Tensor'");
    expect_error("(int x=1, int y) -> Tensor",
                 "'y' needs a default, because a parameter before it has one");
    expect_error("(int x=) -> Tensor", "the default of 'x' cannot be parsed");
    expect_error("(str x='a) -> Tensor", "the default of 'x' cannot be parsed");
    expect_error("(str x=') -> ') -> Tensor", "a default contains ') -> '");
    expect_error("(Tensor x) -> Tensor(a)", "the result is (a), but no parameter is (a)");
    expect_error("(Tensor(a) x) -> Tensor(a!)", "the result is (a!), but no parameter is (a!)");
    expect_error("(Tensor(A) x) -> Tensor",
                 "'(A) x)' is not an alias; write one letter, as in (a) or (a!)");
    expect_error("(Tensor x) -> (Tensor", "', ' is missing between two results, before ''");
    expect_error("(Tensor x) -> Tensor, int", "unexpected ', int' at the end");
}

TEST(there_is_an_end_of_everything)
{
    char schema[1000] = "(";
    for (int i = 0; i < 29; i++)
        sprintf(schema + strlen(schema), "%sint x%d", i ? ", " : "", i);
    strcat(schema, ") -> Tensor");
    expect_error(schema, "it has more than 28 parameters");
    expect_error("() -> (int, int, int, int, int, int, int, int, int)",
                 "it has more than 8 results");
    for (size_t n = strlen(schema); n-- > 0;) {  /* every beginning of it is refused, not read on */
        schema[n] = '\0';
        CHECK_INT_EQ(CFX_E_SYNTAX, cfxi_ops_schema_check(schema, NULL));
    }
}
