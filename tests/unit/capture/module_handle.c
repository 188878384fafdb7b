/* module_handle.c - modules and variables as a C program holds them: references, its own pointer,
 * what a variable tells of itself. */
#include "check.h"

#include <cfx/cfx.h>

/* What `probe` saw when it was last called. */
typedef struct probe_record {
    int calls;
    bool tracing;
} probe_record;

static cfx_var probe(cfx_scope *s, cfx_module *self, cfx_var x)
{
    probe_record *seen = cfx_module_data(self);
    if (seen) {
        seen->calls++;
        seen->tracing = cfx_scope_is_tracing(s);
    }
    return cfx_relu(s, x);
}

static const cfx_class probe_class = {.name = "Probe", .inputs = "x", .forward = probe};

TEST(forward_finds_the_users_pointer)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    REQUIRE(s);
    cfx_module *m = cfx_module_new(s, &probe_class);
    probe_record seen = {0};
    CHECK(cfx_module_data(m) == NULL && !cfx_scope_is_tracing(s));
    cfx_module_set_data(m, &seen);
    CHECK(cfx_module_data(m) == &seen);
    cfx_call(s, m, cfx_ones(s, cfx_ints(s, 2)));
    CHECK(seen.calls == 1 && !seen.tracing);
    cfx_trace(s, m);
    CHECK(seen.calls == 2 && seen.tracing && !cfx_scope_is_tracing(s));
    CHECK(cfx_scope_ok(s));
    cfx_scope_free(s);
}

TEST(a_retained_module_outlives_its_scope)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    REQUIRE(s);
    cfx_module *m = cfx_module_new(s, &probe_class);
    cfx_module_add(s, m, "fc", cfx_nn_linear(s, 2, 3));
    CHECK(cfx_module_retain(m) == m && cfx_module_retain(NULL) == NULL);
    cfx_scope_free(s);
    CHECK_STR_EQ("Probe", cfx_module_class_name(m));
    CHECK_STR_EQ("torch.nn.Linear", cfx_module_class_name(cfx_module_child(m, "fc")));
    cfx_module_release(m);
    cfx_module_release(NULL);
}

TEST(variables_of_data)
{
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    REQUIRE(s);
    cfx_var c = cfx_var_from_datum(s, cfx_datum_complex(1, -2));
    cfx_datum d = cfx_var_datum(s, c);
    CHECK(d.kind == CFX_DATUM_COMPLEX && d.as.c[0] == 1 && d.as.c[1] == -2);
    cfx_datum_release(d);
    cfx_var x = cfx_zeros(s, cfx_ints(s, 2), .dtype = cfx_var_dtype(CFX_DTYPE_INT32));
    CHECK_INT_EQ(CFX_DTYPE_INT32, cfx_var_dtype_of(s, x));
    cfx_buffer text;
    cfx_buffer_init(&text, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_var_print(s, x, cfx_buffer_sink(&text)));
    CHECK_STR_EQ("tensor([0, 0], dtype=torch.int32)", text.data);
    CHECK(cfx_scope_ok(s));
    cfx_var_dtype_of(s, cfx_v(3));
    CHECK_INT_EQ(CFX_E_TYPE, cfx_scope_error(s)->status);
    cfx_buffer_free(&text);
    cfx_scope_free(s);
}
