/* cost.c - tests of src/runtime/flops.c, cost.c and src/check/stats.c: what programs cost. */
#include "check.h"
#include "test_alloc.h"
#include "runtime/runtime_impl.h"

#include <cfx/lower.h>
#include <cfx/embed/stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one operator -------------------------------------------------------------------------- */

enum { MOST = 12 };

/* The operations of a call with these arguments, as text: "float32[2, 3]; 1; [2, 2]". */
static const char *flops(cfx_operator op, const char *text)
{
    static char out[600];
    cfx_error err = {0};
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.threads = 1}, &err);
    cfx_datum args[MOST];
    size_t n = 0;
    while (*text) {
        size_t size = strcspn(text, ";");
        args[n++] = cfx_datum_parse(dims, text, size, NULL, &err);
        text += size + (text[size] == ';');
    }
    int64_t count = cfxi_rt_operator_flops(rt, dims, op, args, n, &err);
    cfx_buffer buffer;
    cfx_buffer_init(&buffer, NULL);
    if (count != CFX_DIM_UNKNOWN)
        cfx_dims_print(dims, count, cfx_buffer_sink(&buffer), NULL);
    snprintf(out, sizeof out, "%s", count == CFX_DIM_UNKNOWN ? err.message : buffer.data);
    cfx_buffer_free(&buffer);
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(args[i]);
    cfx_runtime_free(rt);
    cfx_dims_free(dims);
    return out;
}

TEST(products)
{
    CHECK_STR_EQ("48", flops(CFX_OPID_mm, "[2, 3]; [3, 4]"));
    CHECK_STR_EQ("240", flops(CFX_OPID_matmul, "[5, 2, 3]; [3, 4]"));
    CHECK_STR_EQ("24*N", flops(CFX_OPID_bmm, "[N, 2, 3]; [N, 3, 2]"));
    CHECK_STR_EQ("6", flops(CFX_OPID_dot, "[3]; [3]"));
    CHECK_STR_EQ("12", flops(CFX_OPID_mv, "[2, 3]; [3]"));
    CHECK_STR_EQ("48", flops(CFX_OPID_addmm, "[4]; [2, 3]; [3, 4]"));
    CHECK_STR_EQ("48", flops(CFX_OPID_addmm_, "[2, 4]; [2, 3]; [3, 4]"));
    CHECK_STR_EQ("240", flops(CFX_OPID_addbmm, "[2, 4]; [5, 2, 3]; [5, 3, 4]"));
    CHECK_STR_EQ("240", flops(CFX_OPID_baddbmm, "[5, 2, 4]; [5, 2, 3]; [5, 3, 4]"));
    CHECK_STR_EQ("48", flops(CFX_OPID_linear, "[2, 3]; [4, 3]; [4]"));
    CHECK_STR_EQ("240", flops(CFX_OPID_bilinear, "[2, 3]; [2, 5]; [4, 3, 5]"));
    CHECK_STR_EQ("12", flops(CFX_OPID_outer, "[3]; [4]"));
    CHECK_STR_EQ("240", flops(CFX_OPID__grouped_mm, "[10, 3]; [2, 3, 4]; int32[2]"));
    CHECK_STR_EQ("240", flops(CFX_OPID__grouped_mm, "[2, 4, 3]; [3, 10]; int32[2]"));
    CHECK_STR_EQ("240", flops(CFX_OPID__grouped_mm, "[3, 10]; [10, 4]; int32[2]"));
    CHECK_STR_EQ("240", flops(CFX_OPID__grouped_mm, "[2, 5, 3]; [2, 3, 4]"));
    CHECK_STR_EQ("24*N", flops(CFX_OPID_grouped_mm_fallback, "[N, 3]; [2, 3, 4]; int64[2]"));
}

TEST(convolutions)
{
    CHECK_STR_EQ("3456", flops(CFX_OPID_conv2d, "[1, 3, 6, 6]; [4, 3, 3, 3]"));
    CHECK_STR_EQ("1152", flops(CFX_OPID_conv2d, "[1, 4, 6, 6]; [4, 1, 3, 3]; [4]; 1; 0; 1; 4"));
    CHECK_STR_EQ("7776", flops(CFX_OPID_conv_transpose2d, "[1, 3, 6, 6]; [3, 4, 3, 3]"));
    CHECK_STR_EQ("108*N", flops(CFX_OPID_conv1d, "[N, 3, 4]; [3, 3, 2]"));
    CHECK_STR_EQ("3888*N", flops(CFX_OPID_deform_conv2d,
                                 "[N, 4, 5, 5]; [6, 4, 3, 3]; [N, 18, 3, 3]"));
}

TEST(attention_and_recurrent_layers)
{
    CHECK_STR_EQ("2520", flops(CFX_OPID_linear_attention,
                               "[2, 3, 4, 5]; [2, 3, 2, 5]; [2, 3, 2, 7]"));
    /* 2 * 4 heads * 5 queries * 7 keys * (8 + 8) */
    CHECK_STR_EQ("4480", flops(CFX_OPID_scaled_dot_product_attention,
                               "[4, 5, 8]; [4, 7, 8]; [4, 7, 8]"));
    CHECK_STR_EQ("160", flops(CFX_OPID_rnn_tanh_cell, "[2, 3]; [2, 5]; [5, 3]; [5, 5]"));
    CHECK_STR_EQ("480", flops(CFX_OPID_gru_cell, "[2, 3]; [2, 5]; [15, 3]; [15, 5]"));
}

TEST(elements)
{
    CHECK_STR_EQ("6", flops(CFX_OPID_relu, "[2, 3]"));
    CHECK_STR_EQ("6", flops(CFX_OPID_relu_, "[2, 3]"));
    CHECK_STR_EQ("3*N", flops(CFX_OPID_add, "[N, 1]; [3]"));
    CHECK_STR_EQ("6", flops(CFX_OPID_sum, "[2, 3]"));
    CHECK_STR_EQ("30", flops(CFX_OPID_softmax, "[2, 3]; 1"));
    CHECK_STR_EQ("36", flops(CFX_OPID_max_pool2d, "[1, 1, 6, 6]; 2"));
    CHECK_STR_EQ("0", flops(CFX_OPID_flatten, "[2, 3]; 0"));
    CHECK_STR_EQ("0", flops(CFX_OPID_clone, "[2, 3]"));
    CHECK_STR_EQ("0", flops(CFX_OPID_add, "2; 3"));
}

TEST(what_does_not_fit_fails)
{
    CHECK_STR_EQ("mm(float32[2, 3], float32[4, 5]): shapes cannot be multiplied: inner sizes 3 and "
                 "4 differ", flops(CFX_OPID_mm, "[2, 3]; [4, 5]"));
    CHECK_INT_EQ(CFX_DIM_UNKNOWN, cfxi_rt_operator_flops(NULL, NULL, CFX_OPID_mm, NULL, 0, NULL));
}

/* A list of tensors is no text that cfx_datum_parse reads. */
static int64_t of_list(cfx_operator op, const char *equation, const char *const *tensors, size_t n)
{
    cfx_error err = {0};
    cfx_dims *dims = cfx_dims_new(NULL, &err);
    cfx_runtime *rt = cfx_runtime_new(&(cfx_runtime_options){.threads = 1}, &err);
    cfx_datum items[4];
    for (size_t i = 0; i < n; i++)
        items[i] = cfx_datum_parse(dims, tensors[i], strlen(tensors[i]), NULL, &err);
    cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, items, n, NULL, &err);
    cfx_datum args[2] = {list, list};
    if (equation)
        args[0] = cfx_datum_from_text(CFX_DATUM_STR, equation, strlen(equation), NULL, &err);
    int64_t count = cfxi_rt_operator_flops(rt, dims, op, args, equation ? 2 : 1, &err);
    if (equation)
        cfx_datum_release(args[0]);
    cfx_datum_release(list);
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(items[i]);
    cfx_runtime_free(rt);
    cfx_dims_free(dims);
    return count;
}

TEST(lists_of_tensors)
{
    const char *const two[] = {"[2, 3]", "[3, 4]"};
    const char *const batched[] = {"[7, 2, 3]", "[7, 3, 4]"};
    const char *const three[] = {"[2, 3]", "[3, 4]", "[4, 5]"};
    CHECK_INT_EQ(48, of_list(CFX_OPID_einsum, "ij,jk->ik", two, 2));
    CHECK_INT_EQ(48, of_list(CFX_OPID_einsum, "ij, jk", two, 2));
    CHECK_INT_EQ(336, of_list(CFX_OPID_einsum, "...ij,...jk->...ik", batched, 2));
    CHECK_INT_EQ(6, of_list(CFX_OPID_einsum, "ij->i", two, 1));
    CHECK_INT_EQ(48 + 80, of_list(CFX_OPID_chain_matmul, NULL, three, 3));
}

/* ---- programs ------------------------------------------------------------------------------ */

typedef struct lab {
    cfx_graph *g;
    cfx_state *state;
    cfx_dims *dims;
    cfx_runtime *rt;
    cfx_program *p;
    cfx_datum x;
} lab;

static cfx_status lab_open(lab *l, const char *text, const char *x, const cfx_allocator *allocator,
                           cfx_error *err)
{
    *l = (lab){.x = cfx_datum_scalar(CFX_DATUM_INVALID, 0)};
    l->dims = cfx_dims_new(allocator, err);
    if (l->dims)
        l->rt = cfx_runtime_new(&(cfx_runtime_options){.threads = 1, .allocator = allocator}, err);
    if (l->rt)
        l->state = cfx_state_new(allocator, err);
    const int64_t sizes[] = {3, 3};
    cfx_tensor *w = l->state ? cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, sizes, 2, allocator, err)
                             : NULL;
    if (!w || cfx_state_set(l->state, "w", w, err) != CFX_OK) {
        cfx_tensor_release(w);
        return err->status;
    }
    cfx_tensor_release(w);
    l->x = cfx_datum_parse(l->dims, x, strlen(x), allocator, err);
    if (l->x.kind == CFX_DATUM_INVALID)
        return err->status;
    l->g = cfx_graph_parse(text, strlen(text), allocator, NULL, err);
    if (!l->g || cfx_graph_lower(l->g, NULL, NULL, err) != CFX_OK)
        return err->status;
    l->p = cfx_program_new(l->g, l->state, &(cfx_program_options){.allocator = allocator}, err);
    return l->p ? CFX_OK : err->status;
}

static void lab_close(lab *l)
{
    cfx_program_free(l->p);
    cfx_graph_release(l->g);
    cfx_datum_release(l->x);
    cfx_state_free(l->state);
    cfx_runtime_free(l->rt);
    cfx_dims_free(l->dims);
}

typedef struct notes {
    char text[1000];
    size_t used;
    const cfx_dims *dims;
    size_t stop_at;
} notes;

/* "relu:6/24/48" is operations, bytes of the result, bytes alive. */
static cfx_status note(void *ctx, const cfx_cost *cost)
{
    notes *n = ctx;
    const int64_t all[] = {cost->flops, cost->bytes, cost->live};
    if (n->stop_at && --n->stop_at == 0)
        return CFX_E_HOST;
    n->used += (size_t)snprintf(n->text + n->used, sizeof n->text - n->used, "%s%s:",
                                n->used ? " " : "", cost->node);
    for (int i = 0; i < 3; i++) {
        cfx_buffer text;
        cfx_buffer_init(&text, NULL);
        cfx_dims_print(n->dims, all[i], cfx_buffer_sink(&text), NULL);
        n->used += (size_t)snprintf(n->text + n->used, sizeof n->text - n->used, "%s%s",
                                    i ? "/" : "", text.data);
        cfx_buffer_free(&text);
    }
    return CFX_OK;
}

static const char *costs(const char *text, const char *x)
{
    static notes n;
    cfx_error err = {0};
    lab l;
    if (!CHECK_INT_EQ(CFX_OK, lab_open(&l, text, x, NULL, &err)))
        printf("    %s\n", err.message);
    n = (notes){.dims = l.dims};
    if (!CHECK_INT_EQ(CFX_OK, cfx_program_cost(l.p, l.rt, l.dims, &l.x, 1, note, &n, &err)))
        printf("    %s\n", err.message);
    lab_close(&l);
    return n.text;
}

#define HEAD "graph():\n %x = placeholder[target=x]()\n"
#define CALL(name, target, args) " %" name " = call_function[target=" target "](" args ")\n"

TEST(values_die_at_their_last_use)
{
    CHECK_STR_EQ("a:6/24/48 b:6/24/72 c:6/24/72",
                 costs(HEAD CALL("a", "torch.relu", "%x") CALL("b", "torch.relu", "%a")
                       CALL("c", "torch.relu", "%b") " output(%c)", "[2, 3]"));
    CHECK_STR_EQ("a:6/24/48 b:6/24/72 c:6/24/96",
                 costs(HEAD CALL("a", "torch.relu", "%x") CALL("b", "torch.relu", "%a")
                       CALL("c", "torch.add", "%a, %b") " output(%c)", "[2, 3]"));
    CHECK_STR_EQ("unused:6/24/48 c:6/24/48",
                 costs(HEAD CALL("unused", "torch.relu", "%x") CALL("c", "torch.relu", "%x")
                       " output(%c)", "[2, 3]"));
}

TEST(views_and_writes_need_no_memory)
{
    CHECK_STR_EQ("a:6/24/48 v:0/0/48 w:6/24/72 z:6/24/72",
                 costs(HEAD CALL("a", "torch.relu", "%x") CALL("v", "torch.flatten", "%a")
                       CALL("w", "torch.relu", "%v") CALL("z", "torch.relu", "%w") " output(%z)",
                       "[2, 3]"));
    CHECK_STR_EQ("a:6/24/48 b:6/0/48 c:6/24/72",
                 costs(HEAD CALL("a", "torch.relu", "%x") CALL("b", "torch.relu_", "%a")
                       CALL("c", "torch.relu", "%b") " output(%c)", "[2, 3]"));
}

TEST(parameters_count_nowhere)
{
    CHECK_STR_EQ("t:0/0/24 m:36/24/48",
                 costs(HEAD " %w = get_attr[target=w]()\n" CALL("t", "torch.t", "%w")
                       CALL("m", "torch.mm", "%x, %t") " output(%m)", "[2, 3]"));
}

TEST(several_results)
{
    CHECK_STR_EQ("m:6/24/48 i:0/0/48 r:2/8/40",
                 costs(HEAD CALL("m", "torch.max", "%x, 1") CALL("i", "operator.getitem", "%m, 0")
                       CALL("r", "torch.relu", "%i") " output(%r)", "[2, 3]"));
    CHECK_STR_EQ("s:0/0/24 i:0/0/24 r:3/12/36",
                 costs(HEAD CALL("s", "torch.split", "%x, 1") CALL("i", "operator.getitem", "%s, 0")
                       CALL("r", "torch.relu", "%i") " output(%r)", "[2, 3]"));
}

TEST(symbols)
{
    CHECK_STR_EQ("a:3*N/12*N/24*N b:3*N/4*N/28*N",
                 costs(HEAD CALL("a", "torch.relu", "%x") CALL("b", "torch.sum", "%a, 1")
                       " output(%b)", "[N, 3]"));
}

TEST(regions_count_once)
{
    CHECK_STR_EQ("loop/a:6/24/48 loop/b:6/24/72 loop:0/24/48 i:0/0/48 r:6/24/72",
                 costs(HEAD CALL("loop", "cfx.for_loop", "3, graph {\n"
                       " %i = placeholder[target=i]()\n %y = placeholder[target=y]()\n"
                       CALL("a", "torch.relu", "%y") CALL("b", "torch.relu", "%a")
                       " output((%b,))\n }, (%x,)")
                       CALL("i", "operator.getitem", "%loop, 0") CALL("r", "torch.relu", "%i")
                       " output(%r)", "[2, 3]"));
}

TEST(a_callback_that_fails_ends_it)
{
    cfx_error err = {0};
    lab l;
    notes n = {.stop_at = 2};
    lab_open(&l, HEAD CALL("a", "torch.relu", "%x") CALL("b", "torch.relu", "%a") " output(%b)",
             "[2, 3]", NULL, &err);
    n.dims = l.dims;
    CHECK_INT_EQ(CFX_E_HOST, cfx_program_cost(l.p, l.rt, l.dims, &l.x, 1, note, &n, &err));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_program_cost(NULL, l.rt, l.dims, &l.x, 1, note, &n, NULL));
    CHECK_INT_EQ(CFX_E_VALUE, cfx_program_cost(l.p, l.rt, NULL, &l.x, 1, note, &n, NULL));
    lab_close(&l);
}

/* ---- sums ---------------------------------------------------------------------------------- */

#define MODEL HEAD " %w = get_attr[target=w]()\n" CALL("m", "torch.mm", "%x, %w")                  \
    CALL("r", "torch.relu", "%m") CALL("s", "torch.relu", "%r") " output(%s)"

static cfx_status sum_up(cfx_stats *s, const cfx_allocator *allocator, cfx_error *err)
{
    lab l;
    cfx_status status = lab_open(&l, MODEL, "[N, 3]", allocator, err);
    if (status == CFX_OK)
        status = cfx_stats_add_graph(s, l.g, err);
    if (status == CFX_OK)
        status = cfx_stats_add_state(s, l.state, err);
    if (status == CFX_OK)
        status = cfx_stats_add_costs(s, l.p, l.rt, l.dims, &l.x, 1, err);
    lab_close(&l);
    return status;
}

TEST(sums)
{
    cfx_error err = {0};
    cfx_stats s;
    CHECK_INT_EQ(CFX_OK, cfx_stats_init(&s, NULL, &err));
    CHECK_INT_EQ(CFX_OK, sum_up(&s, NULL, &err));
    CHECK_INT_EQ(6, s.nodes);
    CHECK_INT_EQ(0, s.regions);
    CHECK_INT_EQ(3, s.opcodes[CFX_OP_CALL_FUNCTION]);
    CHECK_INT_EQ(1, s.opcodes[CFX_OP_GET_ATTR]);
    CHECK_INT_EQ(1, s.tensors[CFX_DTYPE_FLOAT32]);
    CHECK_INT_EQ(9, s.elements[CFX_DTYPE_FLOAT32]);
    CHECK_INT_EQ(36, s.weight_bytes);
    CHECK(s.has_costs && !s.peak_depends);
    CHECK_INT_EQ(2, s.n_rows);
    CHECK_STR_EQ("mm", s.rows[0].name);
    CHECK_STR_EQ("relu", s.rows[1].name);
    CHECK_INT_EQ(2, s.rows[1].count);
    CHECK_INT_EQ(2, s.rows[1].calls);
    CHECK_STR_EQ("r", s.peak_node);
    cfx_stats_free(&s);
    CHECK_INT_EQ(CFX_E_VALUE, cfx_stats_add_graph(&s, NULL, NULL));
}

static cfx_status sum_up_with(const cfx_allocator *allocator, void *arg)
{
    (void)arg;
    cfx_error err = {0};
    cfx_stats s;
    cfx_status status = cfx_stats_init(&s, allocator, &err);
    if (status == CFX_OK)
        status = sum_up(&s, allocator, &err);
    cfx_stats_free(&s);
    return status;
}

TEST(memory_may_run_out)
{
    CHECK(test_oom_sweep(sum_up_with, NULL) > 20);
}
