/* print_sink.c - where a program's print goes, and what happens if it cannot. */
#include "check.h"

#include "runtime/runtime_impl.h"

#include <cfx/cfx.h>

static cfx_status print_text(cfx_sink out, const char *text, bool infer, cfx_error *err)
{
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.threads = 1, .print = out}, err);
    cfx_datum arg = cfx_datum_from_text(CFX_DATUM_STR, text, strlen(text), NULL, err);
    cfx_datum d = infer ? cfx_operator_infer(rt, NULL, CFX_OPID_builtin_print, &arg, 1, err)
                        : cfx_operator_run(rt, CFX_OPID_builtin_print, &arg, 1, err);
    cfx_datum_release(d);
    cfx_datum_release(arg);
    cfx_runtime_free(rt);
    return err->status;
}

static cfx_status full(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return CFX_E_IO;
}

TEST(to_the_sink_of_the_owner)
{
    cfx_error err = {0};
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    CHECK_INT_EQ(CFX_OK, print_text(cfx_buffer_sink(&text), "a {} b\n", false, &err));
    CHECK_INT_EQ(CFX_OK, print_text(cfx_buffer_sink(&text), "", false, &err));
    CHECK_STR_EQ("a {} b\n", text.data);
    CHECK_INT_EQ(CFX_OK, print_text(cfx_buffer_sink(&text), "shapes alone", true, &err));
    CHECK_STR_EQ("a {} b\n", text.data);
    cfx_buffer_free(&text);
}

TEST(nowhere_and_full)
{
    cfx_error err = {0};
    CHECK_INT_EQ(CFX_E_UNSUPPORTED, print_text((cfx_sink){NULL, NULL}, "x", false, &err));
    CHECK(strstr(err.message, "set cfx_runtime_options.print"));
    CHECK_INT_EQ(CFX_E_IO, print_text((cfx_sink){full, NULL}, "x", false, &err));
}

/* A scope makes its runtime with the sink. */
TEST(of_a_scope)
{
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    cfx_scope *s = cfx_scope_new(&(cfx_scope_options){.threads = 1,
                                                      .print = cfx_buffer_sink(&text)}, NULL);
    cfx_builtin_print(s, "hello\n");
    CHECK(cfx_scope_ok(s));
    CHECK_STR_EQ("hello\n", text.data);
    cfx_scope_free(s);
    cfx_buffer_free(&text);
}
