/* calibrate.c - tests of src/capture/calibrate.c, observing.c, showing.c, trial.c and
 * quantize_rules.c: modules in integers, in C. */
#include "check.h"
#include "scope_test.h"

#include <cfx/cfx.h>
#include <math.h>
#include <string.h>

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    x = cfx_relu(s, cfx_call_child(s, self, "fc1", x));
    return cfx_softmax(s, cfx_call_child(s, self, "fc2", x), -1);
}

static const cfx_class net_class = {.name = "Net", .forward = forward};

static cfx_module *make_net(cfx_scope *s)
{
    cfx_module *net = cfx_module_new(s, &net_class);
    cfx_module_add(s, net, "fc1", cfx_nn_linear(s, 6, 8));
    cfx_module_add(s, net, "fc2", cfx_nn_linear(s, 8, 4));
    if (net)
        cfx_module_train(net, false);
    return net;
}

static cfx_scope *new_scope(void)
{
    const cfx_scope_options options = {.threads = 1, .seed = 3};
    return cfx_scope_new(&options, NULL);
}

static cfx_var data(cfx_scope *s) { return cfx_randn(s, cfx_ints(s, 16, 6)); }

static size_t count(const cfx_module *m, const char *word)
{
    size_t n = 0;
    const cfx_node *node = m ? cfx_graph_first(cfx_module_graph(m)) : NULL;
    for (; node; node = cfx_node_next(node))
        n += strstr(cfx_node_target(node, NULL, NULL), word) != NULL;
    return n;
}

static double off(cfx_scope *s, cfx_var a, cfx_var b)
{
    return cfx_var_number(s, cfx_div(s, cfx_norm(s, cfx_sub(s, a, b)), cfx_norm(s, b)));
}

/* Words, an LSTM, and a bag of other words. */
static cfx_var read_words(cfx_scope *s, cfx_module *self, cfx_var ids)
{
    cfx_var x = cfx_call_child(s, self, "words", ids);
    cfx_var y = cfx_getitem(s, cfx_call_child(s, self, "memory", x), 0);
    return cfx_add(s, cfx_sum(s, y, .dim = cfx_ints(s, 1)), cfx_call_child(s, self, "bag", ids));
}

static const cfx_class words_class = {.name = "Words", .inputs = "ids", .forward = read_words};

static cfx_module *make_words(cfx_scope *s)
{
    cfx_module *net = cfx_module_new(s, &words_class);
    cfx_module_add(s, net, "words", cfx_nn_embedding(s, 20, 6));
    cfx_module_add(s, net, "memory", cfx_nn_lstm(s, 6, 8));
    cfx_module_add(s, net, "bag", cfx_nn_embedding_bag(s, 20, 8));
    if (net)
        cfx_module_train(net, false);
    return net;
}

static cfx_var some_words(cfx_scope *s)
{
    return cfx_reshape(s, cfx_arange(s, 12), cfx_ints(s, 4, 3));
}

/* ---- static -------------------------------------------------------------------------------- */

TEST(prepare_calibrate_convert)
{
    cfx_scope *s = new_scope();
    cfx_module *net = make_net(s);
    cfx_var x = data(s);
    cfx_var y = cfx_call(s, net, x);
    cfx_module *prepared = cfx_quantize_prepare(s, net, .observer = CFX_OBSERVE_MIN_MAX);
    CHECK(count(prepared, "activation_post_process") >= 3);
    CHECK(off(s, cfx_call(s, prepared, x), y) < 1e-6);
    cfx_module *q = cfx_quantize_convert(s, prepared);
    CHECK_INT_EQ(0, (long long)count(q, "activation_post_process"));
    CHECK_INT_EQ(2, (long long)count(q, "weight_int8"));
    CHECK(cfx_module_attribute(q, "fc1.weight_int8").kind == CFX_DATUM_TENSOR);
    CHECK(cfx_module_attribute(q, "fc1.weight").kind == CFX_DATUM_INVALID);
    const double error = off(s, cfx_call(s, q, x), y);
    CHECK(error > 0 && error < 0.05);
    CHECK(off(s, cfx_call(s, net, x), y) == 0);
    CHECK(cfx_module_attribute(net, "fc1.weight").kind == CFX_DATUM_TENSOR);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

static cfx_quantize_options with(cfx_observer_kind kind, bool per_tensor)
{
    return (cfx_quantize_options){.observer = kind, .per_tensor = per_tensor};
}

TEST(every_observer)
{
    static const cfx_observer_kind kinds[] = {CFX_OBSERVE_NOTHING, CFX_OBSERVE_MIN_MAX,
                                              CFX_OBSERVE_MOVING_AVERAGE, CFX_OBSERVE_HISTOGRAM,
                                              CFX_OBSERVE_PERCENTILE};
    for (size_t i = 0; i < 2 * sizeof kinds / sizeof *kinds; i++) {
        cfx_scope *s = new_scope();
        cfx_module *net = make_net(s);
        cfx_var x = data(s);
        cfx_module *prepared = cfx_quantize_prepare_at(CFX_HERE(s), net,
                                                       with(kinds[i / 2], i % 2));
        cfx_call(s, prepared, x);
        cfx_module *q = cfx_quantize_convert(s, prepared);
        CHECK(off(s, cfx_call(s, q, x), cfx_call(s, net, x)) < 0.1);
        CHECK_STR_EQ("", cfx_scope_error(s)->message);
        CHECK_INT_EQ(i % 2 ? 0 : 2, (long long)count(q, "weight_scale"));
        cfx_scope_free(s);
    }
}

/* What computes what is left in float is told by test_quantize_recurrent.py. */
TEST(words_and_recurrent_layers)
{
    static const struct { cfx_quantize_options options; size_t integers; double off; } kinds[] = {
        {{.mode = CFX_QUANTIZE_WEIGHTS}, 4, 0.02},
        {{.mode = CFX_QUANTIZE_WEIGHTS, .per_tensor = true}, 4, 0.02},
        {{.mode = CFX_QUANTIZE_WEIGHTS, .bits = 4, .group = 2}, 4, 0.2},
        {{.mode = CFX_QUANTIZE_DYNAMIC}, 2, 0.02},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        cfx_scope *s = new_scope();
        cfx_module *net = make_words(s);
        cfx_var ids = some_words(s);
        cfx_module *prepared = cfx_quantize_prepare_at(CFX_HERE(s), net, kinds[i].options);
        cfx_call(s, prepared, ids);
        cfx_module *q = cfx_quantize_convert(s, prepared);
        CHECK_INT_EQ((long long)kinds[i].integers,
                     (long long)count(q, kinds[i].options.bits == 4 ? "_int4" : "_int8") -
                         (kinds[i].options.bits == 4 ? 4 : 0));
        const double error = off(s, cfx_call(s, q, ids), cfx_call(s, net, ids));
        CHECK(error > 0 && error < kinds[i].off);
        CHECK_STR_EQ("", cfx_scope_error(s)->message);
        cfx_scope_free(s);
    }
}

TEST(a_backend_says_what_becomes_integers)
{
    static const char *const relu[] = {"torch.nn.ReLU"};
    const cfx_backend_types bytes = {.input = {.dtype = CFX_DTYPE_UINT8}, .output = {.any = true},
                                     .weight = {.any = true}};
    const cfx_backend_pattern pattern = {.calls = relu, .n_calls = 1, .types = &bytes,
                                         .n_types = 1, .result = CFX_RESULT_SHARED};
    cfx_backend *backend = cfx_backend_new(NULL, NULL);
    cfx_scope *s = new_scope();
    cfx_module *none = cfx_quantize_prepare(s, make_net(s), .backend = backend);
    CHECK_INT_EQ(0, (long long)count(none, "activation_post_process"));
    CHECK_INT_EQ(CFX_OK, cfx_backend_add(backend, &pattern, NULL));
    cfx_module *some = cfx_quantize_prepare(s, make_net(s), .backend = backend);
    CHECK(count(some, "activation_post_process") > 0);
    CHECK_INT_EQ(0, (long long)count(some, "weight_observer"));
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
    cfx_backend_free(backend);
}

TEST(what_is_kept_stays_float)
{
    static const char *const keep[] = {"fc1"};
    static const char *const wrong[] = {"fc3"};
    cfx_scope *s = new_scope();
    cfx_module *prepared = cfx_quantize_prepare(s, make_net(s), .observer = CFX_OBSERVE_MIN_MAX);
    cfx_call(s, prepared, data(s));
    cfx_module *q = cfx_quantize_convert_but(s, prepared, keep, 1);
    CHECK_INT_EQ(1, (long long)count(q, "weight_int8"));
    CHECK(cfx_module_attribute(q, "fc1.weight").kind == CFX_DATUM_TENSOR);
    CHECK(cfx_quantize_convert_but(s, prepared, wrong, 1) == NULL);
    CHECK_INT_EQ(CFX_E_KEY, cfx_scope_error(s)->status);
    CHECK(strstr(cfx_scope_error(s)->message, "no node or module 'fc3'; did you mean 'fc"));
    cfx_scope_free(s);
}

static void note(void *ctx, const cfx_node *n, const char *why)
{
    char *names = ctx;
    (void)why;
    strcat(strcat(names, cfx_node_name(n, NULL)), " ");
}

TEST(what_has_no_integer_form_is_told)
{
    char names[200] = "";
    cfx_qrules *rules = cfx_qrules_new(NULL, NULL);
    cfx_qconfig config = {.host = NULL};
    cfx_scope *s = new_scope();
    cfx_quantize_spec_default(&config.activation, CFX_OBSERVE_MIN_MAX, CFX_DTYPE_UINT8);
    cfx_quantize_spec_default(&config.weight, CFX_OBSERVE_MIN_MAX, CFX_DTYPE_INT8);
    CHECK_INT_EQ(CFX_OK, cfx_qrules_set_global(rules, &config, NULL));
    CHECK(cfx_quantize_prepare(s, make_net(s), .rules = rules, .left = note, .ctx = names) != NULL);
    CHECK_STR_EQ("softmax ", names);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_qrules_free(rules);
    cfx_scope_free(s);
}

/* ---- options and errors -------------------------------------------------------------------- */

static cfx_status usual(cfx_quantize_options o)
{
    cfx_qrules *r = cfx_qrules_new(NULL, NULL);
    const cfx_status status = cfx_qrules_set_usual(r, &o, NULL);
    cfx_qrules_free(r);
    return status;
}

TEST(options_that_contradict_themselves)
{
    CHECK_INT_EQ(CFX_OK, usual((cfx_quantize_options){.bits = 8}));
    CHECK_INT_EQ(CFX_E_VALUE, usual((cfx_quantize_options){.bits = 3}));
    CHECK_INT_EQ(CFX_E_VALUE, usual((cfx_quantize_options){.bits = 4}));
    CHECK_INT_EQ(CFX_E_VALUE, usual((cfx_quantize_options){.group = 4}));
    CHECK_INT_EQ(CFX_E_VALUE, usual((cfx_quantize_options){.group = -1}));
    CHECK_INT_EQ(CFX_E_VALUE, usual((cfx_quantize_options){.mode = CFX_QUANTIZE_MODE_COUNT}));
    CHECK_INT_EQ(CFX_E_VALUE, usual((cfx_quantize_options){.observer = CFX_OBSERVE_FIXED}));
    CHECK_INT_EQ(CFX_E_VALUE, usual((cfx_quantize_options){
        .mode = CFX_QUANTIZE_WEIGHTS, .group = 4, .per_tensor = true}));
    CHECK_INT_EQ(CFX_OK, usual((cfx_quantize_options){
        .mode = CFX_QUANTIZE_WEIGHTS, .group = 4, .bits = 4}));
}

static void fails(cfx_scope *s, const void *made, cfx_status status, const char *words)
{
    CHECK(made == NULL);
    CHECK_INT_EQ(status, cfx_scope_error(s)->status);
    if (!CHECK(strstr(cfx_scope_error(s)->message, words) != NULL))
        printf("    %s\n", cfx_scope_error(s)->message);
    cfx_scope_clear_error(s);
}

TEST(wrong_use)
{
    cfx_scope *s = new_scope();
    cfx_module *net = make_net(s);
    cfx_module *prepared = cfx_quantize_prepare(s, net);
    fails(s, cfx_quantize_convert(s, prepared), CFX_E_VALUE, "nothing was observed");
    fails(s, cfx_quantize_prepare(s, prepared), CFX_E_VALUE, "prepared already");
    fails(s, cfx_quantize_convert(s, net), CFX_E_VALUE, "not a prepared module");
    fails(s, cfx_quantize_prepare(s, NULL), CFX_E_VALUE, "got NULL");
    fails(s, cfx_quantize_convert(s, NULL), CFX_E_VALUE, "got NULL");
    fails(s, cfx_trial_new(s, net, NULL), CFX_E_VALUE, "two captured modules");
    cfx_call(s, prepared, data(s));
    cfx_module *q = cfx_quantize_convert(s, prepared);
    CHECK(q != NULL);
    fails(s, cfx_quantize_prepare(s, q), CFX_E_VALUE, "quantized already");
    cfx_module_train(net, true);
    fails(s, cfx_quantize_prepare(s, net), CFX_E_VALUE, "is training");
    CHECK_INT_EQ(CFX_E_VALUE, cfx_trial_run(NULL, NULL, 0, NULL));
    CHECK(cfx_trial_comparison(NULL) == NULL);
    cfx_trial_free(NULL);
    cfx_scope_free(s);
}

TEST(a_prepared_module_is_not_written)
{
    static const char path[] = "/nowhere/prepared.cfx";
    cfx_scope *s = new_scope();
    cfx_module *prepared = cfx_quantize_prepare(s, make_net(s));
    cfx_call(s, prepared, data(s));
    cfx_module_write(s, prepared, path);
    fails(s, NULL, CFX_E_VALUE, "cannot hold the observer 'fc1.weight_observer'");
    cfx_scope_free(s);
}

TEST(data_that_is_not_finite)
{
    cfx_scope *s = new_scope();
    cfx_module *prepared = cfx_quantize_prepare(s, make_net(s), .observer = CFX_OBSERVE_MIN_MAX);
    cfx_call(s, prepared, data(s));
    cfx_call(s, prepared, cfx_full(s, cfx_ints(s, 1, 6), cfx_v(INFINITY)));
    fails(s, cfx_quantize_convert(s, prepared), CFX_E_VALUE, "not finite");
    cfx_scope_free(s);
}

static cfx_var masked(cfx_scope *s, cfx_module *self, cfx_var x, cfx_var mask)
{
    cfx_var wide = cfx_reshape(s, mask, cfx_ints(s, 16, 1));
    return cfx_mul(s, cfx_call_child(s, self, "fc", x), cfx_add(s, wide, cfx_v(1)));
}

TEST(integers_that_are_inputs_stay_so)
{
    static const cfx_class type = {.name = "Masked", .inputs = "x, mask", .forward2 = masked};
    char names[200] = "";
    cfx_scope *s = new_scope();
    cfx_module *net = cfx_module_new(s, &type);
    cfx_module_add(s, net, "fc", cfx_nn_linear(s, 6, 4));
    cfx_module_train(net, false);
    cfx_var x = data(s);
    cfx_var mask = cfx_arange(s, cfx_v(16));
    cfx_module *prepared = cfx_quantize_prepare(s, net);
    cfx_var y = cfx_call(s, prepared, x, mask);
    cfx_module *q = cfx_quantize_convert(s, prepared, .left = note, .ctx = names);
    CHECK(off(s, cfx_call(s, q, x, mask), y) < 0.05);
    CHECK_STR_EQ("", names);
    CHECK_INT_EQ(3, count(q, "quantized_decomposed.quantize_per_tensor"));  /* x, fc and mul */
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

/* ---- side by side -------------------------------------------------------------------------- */

TEST(a_trial_compares_layers)
{
    cfx_compared row;
    cfx_closeness result;
    cfx_error err = {0};
    cfx_scope *s = new_scope();
    cfx_module *net = cfx_trace(s, make_net(s));
    cfx_var x = data(s);
    cfx_module *prepared = cfx_quantize_prepare(s, net, .observer = CFX_OBSERVE_MIN_MAX);
    cfx_call(s, prepared, x);
    cfx_module *q = cfx_quantize_convert(s, prepared);
    cfx_trial *t = cfx_trial_new(s, net, q);
    cfx_datum in = cfx_var_datum(s, x);
    for (int i = 0; i < 2; i++)
        CHECK_INT_EQ(CFX_OK, cfx_trial_run(t, &in, 1, &err));
    cfx_comparison *c = cfx_trial_comparison(t);
    CHECK(cfx_comparison_size(c) >= 4);
    CHECK(cfx_comparison_row(c, 0, &row) && row.close.sqnr > 20 && row.close.sqnr < 80);
    CHECK(cfx_comparison_result(c, &result));
    CHECK_INT_EQ(2 * 16 * 4, result.elements);
    CHECK(fabs(result.error - off(s, cfx_call(s, q, x), cfx_call(s, net, x))) < 1e-6);
    CHECK(cfx_trial_run(t, NULL, 0, &err) != CFX_OK);
    cfx_datum_release(in);
    cfx_trial_free(t);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

/* ---- bias correction ------------------------------------------------------------------------ */

/* The mean of each column. */
static cfx_var means(cfx_scope *s, cfx_var x)
{
    return cfx_mean(s, x, .dim = cfx_ints(s, 0));
}

static cfx_var chain_forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    x = cfx_relu(s, cfx_call_child(s, self, "fc1", x));
    return cfx_call_child(s, self, "fc2", cfx_relu(s, cfx_call_child(s, self, "mid", x)));
}

static const cfx_class chain_class = {.name = "Chain", .forward = chain_forward};

/* A layer without bias, and another that is not to be written to because it is shared. */
static cfx_module *make_chain(cfx_scope *s)
{
    cfx_module *net = cfx_module_new(s, &chain_class);
    cfx_module_add(s, net, "fc1", cfx_nn_linear(s, 6, 8));
    cfx_module_add(s, net, "mid", cfx_nn_linear(s, 8, 8, .bias = cfx_v(false)));
    cfx_module_add(s, net, "fc2", cfx_nn_linear(s, 8, 4));
    if (net)
        cfx_module_train(net, false);
    return net;
}

static cfx_module *corrected(cfx_scope *s, cfx_module *net, cfx_module *q, cfx_var x)
{
    cfx_trial *t = cfx_trial_correct(s, net, q);
    cfx_datum in = cfx_var_datum(s, x);
    if (cfx_scope_ok(s))
        cfx_trial_run(t, &in, 1, cfx_scope_err(s));
    cfx_module *better = cfx_trial_corrected(s, t);
    cfx_datum_release(in);
    cfx_trial_free(t);
    return better;
}

TEST(a_trial_corrects_biases)
{
    cfx_scope *s = new_scope();
    cfx_module *net = cfx_trace(s, make_chain(s));
    cfx_var x = cfx_add(s, data(s), cfx_v(2.0));
    const cfx_quantize_options options = {.mode = CFX_QUANTIZE_WEIGHTS, .bits = 4};
    cfx_module *prepared = cfx_quantize_prepare_at(CFX_HERE(s), net, options);
    cfx_module *q = cfx_quantize_convert_at(CFX_HERE(s), prepared, NULL, 0, options);
    cfx_module *better = corrected(s, net, q, x);
    cfx_var y = cfx_call(s, net, x);
    const double before = off(s, means(s, cfx_call(s, q, x)), means(s, y));
    CHECK(before > 1e-3);
    CHECK(off(s, means(s, cfx_call(s, better, x)), means(s, y)) < 1e-5);
    CHECK(off(s, cfx_call(s, better, x), y) < off(s, cfx_call(s, q, x), y));
    CHECK(off(s, means(s, cfx_call(s, q, x)), means(s, y)) == before);
    CHECK(cfx_module_attribute(better, "mid.bias").kind == CFX_DATUM_TENSOR);
    CHECK(cfx_module_attribute(better, "fc1.bias_corrected").kind == CFX_DATUM_INVALID);
    CHECK_STR_EQ("", cfx_scope_error(s)->message);
    cfx_scope_free(s);
}

TEST(correcting_needs_a_run_of_integers)
{
    cfx_scope *s = new_scope();
    cfx_module *net = cfx_trace(s, make_chain(s));
    fails(s, corrected(s, net, net, data(s)), CFX_E_VALUE, "no layer has weights");
    cfx_trial *t = cfx_trial_new(s, net, net);
    fails(s, cfx_trial_corrected(s, t), CFX_E_VALUE, "cfx_trial_correct has made");
    cfx_trial_free(t);
    fails(s, cfx_trial_correct(s, NULL, net), CFX_E_VALUE, "two captured modules");
    cfx_scope_free(s);
}

/* ---- memory -------------------------------------------------------------------------------- */

static void whole(cfx_scope *s, const cfx_allocator *a)
{
    (void)a;
    cfx_module *net = cfx_trace(s, make_net(s));
    cfx_var x = data(s);
    cfx_module *prepared = cfx_quantize_prepare(s, net, .observer = CFX_OBSERVE_MIN_MAX);
    cfx_call(s, prepared, x);
    cfx_module *q = cfx_quantize_convert(s, prepared);
    cfx_trial *t = cfx_trial_new(s, net, q);
    cfx_datum in = cfx_var_datum(s, x);
    if (cfx_scope_ok(s))
        cfx_trial_run(t, &in, 1, cfx_scope_err(s));
    cfx_datum_release(in);
    cfx_trial_free(t);
    corrected(s, net, q, x);
}

static void whole_of_words(cfx_scope *s, const cfx_allocator *a)
{
    (void)a;
    cfx_module *prepared = cfx_quantize_prepare(s, make_words(s), .mode = CFX_QUANTIZE_WEIGHTS,
                                                .bits = 4, .group = 4);
    cfx_var ids = some_words(s);
    cfx_call(s, prepared, ids);
    cfx_call(s, cfx_quantize_convert(s, prepared), ids);
}

TEST(memory_may_run_out_anywhere)
{
    CHECK(scope_oom_sweep(whole) > 100);
    CHECK(scope_oom_sweep(whole_of_words) > 100);
}
