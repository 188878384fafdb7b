/* integers.c - the pass integers: what it reports, want of memory, constants. */
#include "check.h"
#include "test_alloc.h"

#include <cfx/cfx.h>
#include <cfx/embed/pass.h>
#include <cfx/pass.h>

#define QUANTIZE "call_function[target=cfx.ops.quantize_per_tensor]"
#define DEQUANTIZE "call_function[target=cfx.ops.dequantize_per_tensor]"
#define BYTES "0, 255, torch.uint8)"

static const char text[] =
    "graph():\n"
    "  %x = placeholder[target=x]()\n"
    "  %q = " QUANTIZE "(%x, 0.5, 3, " BYTES "\n"
    "  %dq = " DEQUANTIZE "(%q, 0.5, 3, " BYTES "\n"
    "  %w = get_attr[target=w]()\n"
    "  %ws = get_attr[target=ws]()\n"
    "  %wz = get_attr[target=wz]()\n"
    "  %wdq = call_function[target=cfx.ops.dequantize_per_channel]"
    "(%w, %ws, %wz, 0, -128, 127, torch.int8)\n"
    "  %fc = call_function[target=cfx.ops.linear](%dq, %wdq)\n"
    "  %fc_q = " QUANTIZE "(%fc, 0.5, 3, " BYTES "\n"
    "  %fc_dq = " DEQUANTIZE "(%fc_q, 0.5, 3, " BYTES "\n"
    "  %pool = call_function[target=cfx.ops.max_pool1d](%fc_dq, 2)\n"
    "  %act = call_function[target=cfx.ops.sigmoid](%pool)\n"
    "  %act_q = " QUANTIZE "(%act, 0.25, 0, " BYTES "\n"
    "  %act_dq = " DEQUANTIZE "(%act_q, 0.25, 0, " BYTES "\n"
    "  %norm = call_function[target=cfx.ops.layer_norm](%act_dq, [4])  @ model.py:7\n"
    "  %tanh = call_function[target=cfx.ops.tanh](%act_dq)  @ model.py:8\n"
    "  %more = call_function[target=cfx.ops.add](%act_dq, %fc_dq)  @ model.py:9\n"
    "  %same = call_function[target=cfx.ops.add_](%norm, %more)\n"
    "  output((%same, %tanh))\n";

static cfx_graph *parse(const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

/* ---- the report ---------------------------------------------------------------------------- */

typedef struct heard {
    char text[400];
    size_t n, stop_at;  /* 0: never */
} heard;

static cfx_status hear(void *ctx, const cfx_node *n, const char *why)
{
    heard *h = ctx;
    const size_t used = strlen(h->text);
    snprintf(h->text + used, sizeof h->text - used, "%s:%u %s: %s\n", cfx_node_file(n),
             cfx_node_line(n), cfx_node_name(n, NULL), why);
    return ++h->n == h->stop_at ? CFX_E_LIMIT : CFX_OK;
}

TEST(what_stays_float_is_told)
{
    heard h = {.n = 0};
    const cfx_integers_options options = {.each = hear, .ctx = &h};
    bool changed = false;
    cfx_graph *g = parse(NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_integers(g, NULL, &options, &changed, NULL));
    CHECK(changed);
    CHECK_STR_EQ("model.py:7 norm: this operator has no integer form for such inputs\n"
                 "model.py:8 tanh: its result is not quantized\n"
                 "model.py:9 more: its result is not quantized\n", h.text);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

TEST(a_listener_can_stop)
{
    heard h = {.stop_at = 2};
    cfx_error err = {0};
    const cfx_integers_options options = {.each = hear, .ctx = &h};
    cfx_graph *g = parse(NULL, NULL);
    CHECK_INT_EQ(CFX_E_LIMIT, cfx_graph_integers(g, NULL, &options, NULL, &err));
    CHECK_INT_EQ(2, h.n);
    CHECK_INT_EQ(CFX_E_LIMIT, err.status);
    cfx_graph_release(g);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_graph_integers(NULL, NULL, NULL, NULL, &err));
}

/* ---- again --------------------------------------------------------------------------------- */

TEST(a_second_run_changes_nothing)
{
    bool changed = false;
    cfx_graph *g = parse(NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_integers(g, NULL, NULL, &changed, NULL));
    CHECK(changed);
    cfx_graph *before = cfx_graph_clone(g, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_integers(g, NULL, NULL, &changed, NULL));
    CHECK(!changed);
    CHECK(cfx_graph_equal(before, g, false));
    cfx_graph_release(before);
    cfx_graph_release(g);
}

/* ---- long chains --------------------------------------------------------------------------- */

enum { LONG = 20000 };

/* Integers that are moved over and over, and functions of functions. */
TEST(long_chains)
{
    cfx_buffer line;
    char words[200];
    cfx_buffer_init(&line, NULL);
    const char *begin = "graph():\n  %x = placeholder[target=x]()\n  %n0 = " DEQUANTIZE
                        "(%x, 0.5, 3, " BYTES "\n";
    cfx_buffer_append(&line, begin, strlen(begin));
    for (int i = 0; i < LONG; i++) {
        const int n = snprintf(words, sizeof words, "  %%n%d = call_function[target=cfx.ops.%s]"
                               "(%%n%d)\n", i + 1, i % 3 ? "t" : i > LONG / 2 ? "exp" : "relu", i);
        cfx_buffer_append(&line, words, (size_t)n);
    }
    const int n = snprintf(words, sizeof words, "  %%end = " QUANTIZE "(%%n%d, 0.5, 3, " BYTES
                           "\n  output(%%end)\n", LONG);
    cfx_buffer_append(&line, words, (size_t)n);
    cfx_graph *g = cfx_graph_parse(line.data, line.size, NULL, NULL, NULL);
    cfx_buffer_free(&line);
    CHECK_INT_EQ(CFX_OK, cfx_graph_integers(g, NULL, NULL, NULL, NULL));
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    cfx_graph_release(g);
}

/* ---- want of memory ------------------------------------------------------------------------- */

static cfx_status sweep(const cfx_allocator *a, void *arg)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parse(a, &err);
    (void)arg;
    if (g && cfx_graph_integers(g, NULL, NULL, NULL, &err) != CFX_OK) {
        ((test_alloc *)a->ctx)->fail_at = TEST_ALLOC_NEVER;
        CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    }
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(sweep, NULL) > 20);
}
