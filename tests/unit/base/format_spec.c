/* format_spec.c - Python's little language of formats: values, messages, memory that runs out.
 * tests/python/script_cases.py compares more of it with Python. */
#include "base/base_impl.h"

#include "test_alloc.h"

#include <math.h>

typedef struct example {
    char kind;           /* 'i', 'f' or 's' */
    double number;
    const char *text;    /* of an 's' */
    const char *spec;
    const char *shown;   /* NULL: it fails */
    const char *words;   /* of the failure; NULL: it is no spec */
} example;

static const example examples[] = {
    {'f', 3.14159, NULL, ".2f", "3.14", NULL},
    {'f', -3.14159, NULL, "08.2f", "-0003.14", NULL},
    {'f', 2.5, NULL, "^+9.1e", "+2.5e+00 ", NULL},
    {'f', 0.125, NULL, ".1%", "12.5%", NULL},
    {'f', 1234567.891, NULL, ",.1f", "1,234,567.9", NULL},
    {'f', 123456.0, NULL, ".3", "1.23e+05", NULL},
    {'f', INFINITY, NULL, "6", "   inf", NULL},
    {'i', 1234567, NULL, "_", "1_234_567", NULL},
    {'i', 255, NULL, "#06x", "0x00ff", NULL},
    {'i', -5, NULL, "05d", "-0005", NULL},
    {'i', 7, NULL, ".1f", "7.0", NULL},
    {'i', 233, NULL, "c", "\u00e9", NULL},
    {'s', 0, "h\u00e9llo", "*^7.3", "**h\u00e9l**", NULL},
    {'s', 0, "a", ">3s", "  a", NULL},
    {'s', 0, "a", "d", NULL, "Unknown format code 'd' for object of type 'str'"},
    {'s', 0, "a", "=5", NULL, "'=' alignment not allowed in string format specifier"},
    {'s', 0, "a", "+", NULL, "Sign not allowed in string format specifier"},
    {'f', 1, NULL, "d", NULL, "Unknown format code 'd' for object of type 'float'"},
    {'f', 1, NULL, ".401f", NULL, "precision too big"},
    {'i', 1, NULL, "s", NULL, "Unknown format code 's' for object of type 'int'"},
    {'i', 1, NULL, ".2d", NULL, "Precision not allowed in integer format specifier"},
    {'i', 1, NULL, "5.", NULL, NULL},
    {'i', 1, NULL, "dd", NULL, NULL},
    {'i', 1, NULL, "999999999", NULL, NULL},
};

static cfx_status show(const example *e, cfx_buffer *out, cfx_error *err)
{
    cfxi_spec s;
    if (!cfxi_base_spec_read(e->spec, strlen(e->spec), &s))
        return CFX_E_SYNTAX;
    return e->kind == 's'   ? cfxi_base_spec_text(&s, e->text, strlen(e->text), out, err)
           : e->kind == 'i' ? cfxi_base_spec_int(&s, (int64_t)e->number, out, err)
                            : cfxi_base_spec_float(&s, e->number, out, err);
}

TEST(formats)
{
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const example *e = &examples[i];
        cfx_error err = {0};
        cfx_buffer out;
        cfx_buffer_init(&out, NULL);
        const cfx_status status = show(e, &out, &err);
        CHECK_INT_EQ(e->shown ? CFX_OK : e->words ? CFX_E_VALUE : CFX_E_SYNTAX, status);
        CHECK_STR_EQ(e->words ? e->words : "", err.message);
        CHECK_STR_EQ(e->shown ? e->shown : "", out.size ? out.data : "");
        cfx_buffer_free(&out);
    }
}

static cfx_status show_wide(const cfx_allocator *a, void *arg)
{
    const example e = {'i', 1234567, NULL, "0200,", "", NULL};
    cfx_error err = {0};
    cfx_buffer out;
    (void)arg;
    cfx_buffer_init(&out, a);
    const cfx_status status = show(&e, &out, &err);
    cfx_buffer_free(&out);
    return status;
}

TEST(memory_may_run_out) { CHECK(test_oom_sweep(show_wide, NULL) > 1); }
