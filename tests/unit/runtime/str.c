/* str.c - values as texts: what nobody knows yet, messages, memory that runs out.
 * tests/python/test_python_rows.py compares them with Python. */
#include "runtime/runtime_impl.h"

#include "test_alloc.h"

/* The text with (0.5, x) and x for its fields; *args are passed as one list. */
static cfx_status format(const cfx_allocator *a, const char *text, cfx_datum x, bool infer,
                         char out[64], cfx_error *err)
{
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.allocator = a, .threads = 1}, err);
    const cfx_datum pair[] = {cfx_datum_float(0.5), x};
    cfx_datum tuple = rt ? cfx_datum_seq(CFX_DATUM_TUPLE, pair, 2, a, err) : cfx_datum_invalid();
    const cfx_datum both[] = {tuple, x};
    cfx_datum args[2] = {cfx_datum_invalid(), cfx_datum_invalid()};
    cfx_datum made = cfx_datum_invalid();
    if (tuple.kind)
        args[0] = cfx_datum_from_text(CFX_DATUM_STR, text, strlen(text), a, err);
    if (args[0].kind)
        args[1] = cfx_datum_seq(CFX_DATUM_LIST, both, 2, a, err);
    if (args[1].kind)
        made = infer ? cfx_operator_infer(rt, NULL, CFX_OPID_str_format, args, 2, err)
                     : cfx_operator_run(rt, CFX_OPID_str_format, args, 2, err);
    if (made.kind)
        snprintf(out, 64, "%s", cfx_datum_text(made, NULL));
    const cfx_status status = made.kind ? CFX_OK : err->status;
    cfx_datum_release(made);
    cfx_datum_release(args[1]);
    cfx_datum_release(args[0]);
    cfx_datum_release(tuple);
    cfx_runtime_free(rt);
    return status;
}

TEST(fields_are_filled_one_after_the_other)
{
    cfx_error err = {0};
    char text[64] = "";
    CHECK_INT_EQ(CFX_OK, format(NULL, "{} and {{{}}}", cfx_datum_int(-3), false, text, &err));
    CHECK_STR_EQ("(0.5, -3) and {-3}", text);
}

TEST(fields_have_formats)
{
    cfx_error err = {0};
    char text[64] = "";
    CHECK_INT_EQ(CFX_OK, format(NULL, "{!r}|{:>4d}", cfx_datum_int(-3), false, text, &err));
    CHECK_STR_EQ("(0.5, -3)|  -3", text);
}

TEST(what_nobody_knows_is_left_out)
{
    cfx_error err = {0};
    char text[64] = "?";
    cfx_datum size = cfx_datum_int(CFX_DIM_UNKNOWN);
    size.symbolic = 1;
    CHECK_INT_EQ(CFX_OK, format(NULL, "{}", size, true, text, &err));
    CHECK_STR_EQ("", text);
}

TEST(messages)
{
    static const struct { const char *text; cfx_status status; const char *words;
    } cases[] = {
        {"{} {} {}", CFX_E_INDEX, "Replacement index 2 out of range"},
        {"{:>4}", CFX_E_TYPE, "unsupported format string passed to tuple.__format__"},
        {"{} {:>4dd}", CFX_E_VALUE, "Invalid format specifier '>4dd' for object of type 'int'"},
        {"{} {:s}", CFX_E_VALUE, "Unknown format code 's' for object of type 'int'"},
        {"{0}", CFX_E_UNSUPPORTED, "only unnamed fields such as {}, {!r} and {:>8} are supported"},
        {"{:{}}", CFX_E_UNSUPPORTED,
         "only unnamed fields such as {}, {!r} and {:>8} are supported"},
        {"{", CFX_E_UNSUPPORTED, "only unnamed fields such as {}, {!r} and {:>8} are supported"},
        {"a } b", CFX_E_VALUE, "Single '}' encountered"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cfx_error err = {0};
        char text[64];
        CHECK_INT_EQ(cases[i].status, format(NULL, cases[i].text, cfx_datum_int(1), false, text,
                                             &err));
        if (!CHECK(strstr(err.message, cases[i].words)))
            printf("    %s\n", err.message);
    }
}

static cfx_status fill_fields(const cfx_allocator *a, void *arg)
{
    cfx_error err = {0};
    char text[64];
    (void)arg;
    return format(a, "{!r} and {:>40}, and a text that is long enough for a block of its own: {{}}",
                  cfx_datum_bool(true), false, text, &err);
}

TEST(memory_may_run_out)
{
    CHECK(test_oom_sweep(fill_fields, NULL) > 3);
}
