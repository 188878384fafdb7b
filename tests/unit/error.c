/* error.c - tests of statuses and of the error that a caller owns. */
#include "check.h"

#include "base/base_impl.h"

#include <cfx/graph.h>

TEST(every_status_has_a_row)
{
    static const char *const names[] = {"OK", "NOMEM", "TYPE", "VALUE", "INDEX", "KEY", "GRAPH",
                                        "LIMIT", "SYNTAX", "UNSUPPORTED", "IO", "HOST"};
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
    CHECK_INT_EQ(CFX_E_NOMEM, cfxi_nomem(&err));
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
            CHECK(cfxi_utf8_valid(err.message, length));
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
    CHECK_INT_EQ(CFX_E_HOST, cfxi_failed(&err, CFX_E_HOST));
    CHECK_INT_EQ(CFX_E_HOST, err.status);
    CHECK_STR_EQ(cfx_status_text(CFX_E_HOST), err.message);
    CHECK_INT_EQ(CFX_E_LIMIT, cfxi_failed(&err, CFX_E_LIMIT)); /* what stood there was of old */
    CHECK_INT_EQ(CFX_E_LIMIT, err.status);
    cfx_error_set(&err, CFX_E_KEY, "said");
    CHECK_INT_EQ(CFX_E_KEY, cfxi_failed(&err, CFX_E_KEY));
    CHECK_STR_EQ("said", err.message);
    CHECK_INT_EQ(CFX_E_KEY, cfxi_failed(NULL, CFX_E_KEY));
    cfx_error own;
    CHECK(cfxi_error_or(&err, &own) == &err);
    CHECK(cfxi_error_or(NULL, &own) == &own);
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
    cfx_value next[] = {cfx_from_node(a)};
    cfx_node *b = cfx_graph_call(g, CFX_OP_CALL_FUNCTION, "torch.relu", next, 1, NULL, 0, &err);
    CHECK(b == NULL);
    CHECK(cfx_graph_output(g, cfx_from_node(b), &err) == NULL);
    CHECK_STR_EQ(first, err.message);
    CHECK_INT_EQ(0, (long long)cfx_graph_size(g));
    cfx_graph_release(g);
}
