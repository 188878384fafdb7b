/* error.c - tests of statuses and of the error that a caller owns. */
#include "check.h"
#include "match/match_impl.h"

#include "base/base_impl.h"

#include <cfx/cfx.h>
#include <cfx/embed/embed.h>

TEST(every_status_has_a_row)
{
    static const char *const names[] = {"OK", "NOMEM", "TYPE", "VALUE", "INDEX", "KEY", "GRAPH",
                                        "LIMIT", "SHAPE", "DIVISION", "OVERFLOW", "ASSERTION",
                                        "SYNTAX", "UNSUPPORTED", "IO", "INTERRUPTED", "HOST"};
    CHECK_INT_EQ(sizeof names / sizeof *names, CFX_STATUS_COUNT);
    for (int i = 0; i < CFX_STATUS_COUNT; i++) {
        CHECK_STR_EQ(names[i], cfx_status_name((cfx_status)i));
        CHECK(cfx_status_text((cfx_status)i)[0] != '\0');
        const bool none = i == CFX_OK || i == CFX_E_HOST;
        CHECK(none == (cfx_status_exception((cfx_status)i) == NULL));
    }
    CHECK_STR_EQ("MemoryError", cfx_status_exception(CFX_E_NOMEM));
    CHECK_STR_EQ("unknown status", cfx_status_text((cfx_status)CFX_STATUS_COUNT));
    CHECK_STR_EQ("UNKNOWN", cfx_status_name((cfx_status)-1));
    CHECK_STR_EQ("RuntimeError", cfx_status_exception((cfx_status)1000000));
}

TEST(version_is_text)
{
    char want[32];
    snprintf(want, sizeof want, "%d.%d.%d", CFX_VERSION_MAJOR, CFX_VERSION_MINOR,
             CFX_VERSION_PATCH);
    CHECK_STR_EQ(want, cfx_version());
}

TEST(setting)
{
    cfx_error err = {.line = 7, .column = 8};
    CHECK_INT_EQ(CFX_E_TYPE, cfx_error_set(&err, CFX_E_TYPE, "%s is %d", "x", 5));
    CHECK_INT_EQ(CFX_E_TYPE, err.status);
    CHECK_STR_EQ("x is 5", err.message);
    CHECK_INT_EQ(0, err.line);
    CHECK_INT_EQ(0, err.column);
    CHECK_INT_EQ(CFX_E_KEY, cfx_error_set(NULL, CFX_E_KEY, "nobody reads this"));
    CHECK_INT_EQ(CFX_E_NOMEM, cfxi_base_nomem(&err));
    CHECK_STR_EQ("out of memory", err.message);
}

/* A cut message ends at a character, whatever its length and wherever the cut falls. */
TEST(long_messages_are_cut)
{
    static const char *const letters[] = {"a", "\xc3\xa9", "\xe6\x97\xa5", "\xf0\x9f\x98\x80"};
    cfx_error err = {0};
    for (size_t size = 1; size <= 4; size++) {
        for (size_t shift = 0; shift < 4; shift++) {
            char text[2000] = "xxxx";
            text[shift] = '\0';
            for (int i = 0; i < 300; i++)
                strcat(text, letters[size - 1]);
            cfx_error_set(&err, CFX_E_VALUE, "%s", text);
            const size_t length = strlen(err.message);
            CHECK(strncmp(text, err.message, length) == 0);
            CHECK(cfxi_base_utf8_valid(err.message, length));
            const size_t room = sizeof err.message - 1 - shift;
            CHECK_INT_EQ(strlen(text) <= room + shift ? strlen(text) : shift + room / size * size,
                         length);
        }
    }
    char exact[sizeof err.message];
    memset(exact, 'y', sizeof exact);
    exact[sizeof exact - 1] = '\0';
    cfx_error_set(&err, CFX_E_VALUE, "%s", exact);
    CHECK_STR_EQ(exact, err.message);
    memset(exact, 0x80, sizeof exact - 1); /* not text at all */
    cfx_error_set(&err, CFX_E_VALUE, "%sz", exact);
    CHECK_INT_EQ(sizeof exact - 1, strlen(err.message));
}

TEST(a_callback_need_not_say_why)
{
    cfx_error err = {0};
    CHECK_INT_EQ(CFX_E_HOST, cfxi_base_failed(&err, CFX_E_HOST));
    CHECK_INT_EQ(CFX_E_HOST, err.status);
    CHECK_STR_EQ(cfx_status_text(CFX_E_HOST), err.message);
    CHECK_INT_EQ(CFX_E_LIMIT,
                 cfxi_base_failed(&err, CFX_E_LIMIT)); /* what stood there was of old */
    CHECK_INT_EQ(CFX_E_LIMIT, err.status);
    cfx_error_set(&err, CFX_E_KEY, "said");
    CHECK_INT_EQ(CFX_E_KEY, cfxi_base_failed(&err, CFX_E_KEY));
    CHECK_STR_EQ("said", err.message);
    CHECK_INT_EQ(CFX_E_KEY, cfxi_base_failed(NULL, CFX_E_KEY));
    cfx_error own;
    CHECK(cfxi_base_error_or(&err, &own) == &err);
    CHECK(cfxi_base_error_or(NULL, &own) == &own);
    CHECK_INT_EQ(CFX_OK, own.status);
}

/* A call that is given what a failed call returned (INVALID, NULL) leaves the first reason. */
TEST(a_chain_keeps_the_first_reason)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = cfx_graph_new(NULL, NULL, &err);
    REQUIRE(g != NULL);
    cfx_value bad[] = {cfx_value_str(g, "\xff", 1, &err)};
    char first[sizeof err.message];
    memcpy(first, err.message, sizeof first);
    CHECK_INT_EQ(CFX_E_VALUE, err.status);
    cfx_node *a = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.relu", bad, 1, NULL, 0, &err);
    CHECK(a == NULL);
    cfx_value next[] = {cfx_value_node(a)};
    cfx_node *b = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.relu", next, 1, NULL, 0, &err);
    CHECK(b == NULL);
    CHECK(cfx_graph_output(g, cfx_value_node(b), &err) == NULL);
    CHECK_STR_EQ(first, err.message);
    CHECK_INT_EQ(0, (long long)cfx_graph_size(g));
    cfx_graph_release(g);
}

/* Every call that can fail may be the next one in a chain. */
static void call_with_nothing(int i, cfx_graph *g, cfx_error *err)
{
    cfx_graph *none = NULL;
    cfx_sink sink = {NULL, NULL};
    cfx_value one = cfx_value_int(1);
    cfx_stages_options stages = {.n = 1};
    cfx_split_options split = {.n = 0};
    cfx_extract_options extract = {.n = 0};
    cfx_split_result parts;
    cfx_subgraph part;
    cfx_pycode_result code;
    switch (i) {
    case 0: CHECK(!cfx_graph_placeholder(NULL, "x", err)); break;
    case 1: CHECK(!cfx_graph_output(NULL, one, err)); break;
    case 2: CHECK(cfx_graph_text(NULL, sink, err)); break;
    case 3: CHECK(cfx_graph_print(NULL, sink, err)); break;
    case 4: CHECK(cfx_graph_table(NULL, 0, sink, err)); break;
    case 5: CHECK(cfx_graph_verify(NULL, NULL, NULL, err)); break;
    case 6: CHECK(cfx_graph_lint(NULL, NULL, NULL, err)); break;
    case 7: CHECK(!cfx_graph_clone(NULL, NULL, err)); break;
    case 8: CHECK(cfx_codegen_dot(NULL, NULL, sink, err)); break;
    case 9: CHECK(cfx_codegen_python_file(NULL, NULL, sink, err)); break;
    case 10: CHECK(cfx_codegen_python(NULL, NULL, &code, err)); cfx_pycode_free(&code); break;
    case 11: CHECK(cfx_pass_run(cfx_pass_find("nope"), g, NULL, NULL, NULL, err)); break;
    case 12: CHECK(cfx_pass_run(cfx_pass_find("dce"), NULL, NULL, NULL, NULL, err)); break;
    case 13: CHECK(!cfx_matches_find(NULL, &g, 1, NULL, err)); break;
    case 14: CHECK(!cfx_matches_find(g, &none, 1, NULL, err)); break;
    case 15: CHECK(cfx_matches_replace(NULL, NULL, err)); break;
    case 16: CHECK(cfx_graph_stages(NULL, &stages, NULL, NULL, err)); break;
    case 17:
        CHECK(cfx_graph_split(NULL, &split, &parts, err));
        cfx_split_result_free(&parts);
        break;
    case 18: CHECK(cfx_graph_extract(NULL, &extract, &part, err)); cfx_subgraph_free(&part); break;
    case 19: CHECK(cfx_graph_erase(g, NULL, err)); break;
    case 20: CHECK(cfx_node_replace_uses(NULL, one, NULL, NULL, NULL, err)); break;
    case 21: CHECK(cfx_node_set_args(NULL, one, err)); break;
    case 22: CHECK(cfx_node_set_kwargs(NULL, one, err)); break;
    case 23: CHECK(cfx_node_set_kwarg(NULL, "k", one, err)); break;
    case 24: CHECK(cfx_node_set_type(NULL, one, err)); break;
    case 25: CHECK(cfx_node_rename(NULL, "x", err)); break;
    default: CHECK(cfxi_match_check_pattern(NULL, err)); break;
    }
}

TEST(nothing_is_an_error_and_no_crash)
{
    cfx_graph *g = cfx_graph_new(NULL, NULL, NULL);
    REQUIRE(g != NULL);
    for (int i = 0; i < 27; i++) {
        cfx_error err = {.status = CFX_OK};
        call_with_nothing(i, g, &err);
        CHECK_INT_EQ(CFX_E_VALUE, err.status);
        CHECK(strncmp("the ", err.message, 4) == 0 && strstr(err.message, " is NULL; ") != NULL);
        cfx_error first = {.status = CFX_E_KEY, .message = "why"};
        call_with_nothing(i, g, &first);
        CHECK_STR_EQ("why", first.message);
        call_with_nothing(i, g, NULL);
    }
    CHECK_INT_EQ(0, (long long)cfx_graph_size(NULL));
    CHECK_INT_EQ(0, (long long)cfx_matches_size(NULL));
    cfx_graph_release(g);
}
