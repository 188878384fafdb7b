/* prepare.c - tests of fusing, preparing and converting (patterns.c, prepare.c,
 * reference*.c). */
#include "quantize/prepare_impl.h"

#include "check.h"
#include "modules_fixture.h"
#include "test_alloc.h"
#include "text_tools.h"

/* ---- a host whose observers are numbers ----------------------------------------------------- */

typedef struct fake_observer {
    char path[64];
    int number;  /* two paths with one number are one observer */
    cfx_quantize_spec spec;
} fake_observer;

typedef struct fake_quantizer {
    fake_tree *tree;
    fake_observer observers[32];
    int n, made;
    bool blind;     /* they have observed nothing */
    int looks;
    int trained;
} fake_quantizer;

static fake_observer *observer_at(fake_quantizer *q, const char *path)
{
    for (int i = 0; i < q->n; i++)
        if (strcmp(q->observers[i].path, path) == 0)
            return &q->observers[i];
    return NULL;
}

static cfx_status put(fake_quantizer *q, const char *path, int number, cfx_quantize_spec spec)
{
    fake_observer *o = observer_at(q, path);
    if (!o)
        o = &q->observers[q->n++];
    snprintf(o->path, sizeof o->path, "%s", path);
    o->number = number;
    o->spec = spec;
    fake_module(q->tree, path, "Observer", NULL);
    return CFX_OK;
}

static cfx_status observe(void *ctx, const char *path, const cfx_qconfig *config, bool weight,
                          cfx_error *err)
{
    fake_quantizer *q = ctx;
    (void)err;
    return put(q, path, q->made++, weight ? config->weight : config->activation);
}

static cfx_status share(void *ctx, const char *path, const char *with, cfx_error *err)
{
    const fake_observer *o = observer_at(ctx, with);
    (void)err;
    CHECK(o);
    return put(ctx, path, o->number, o->spec);
}

static cfx_status spec_at(void *ctx, const char *path, cfx_quantize_spec *spec, cfx_error *err)
{
    const fake_observer *o = observer_at(ctx, path);
    if (!o)
        return cfx_error_set(err, CFX_E_KEY, "no observer");
    *spec = o->spec;
    return CFX_OK;
}

static cfx_status look(void *ctx, cfx_graph *g, const char *path, cfx_value v, cfx_error *err)
{
    (void)g, (void)path, (void)v, (void)err;
    ((fake_quantizer *)ctx)->looks++;
    return CFX_OK;
}

static cfx_status scales(void *ctx, cfx_graph *g, const char *path, cfx_value *scale,
                         cfx_value *zero, cfx_error *err)
{
    const fake_quantizer *q = ctx;
    (void)g, (void)path;
    if (q->blind)
        return cfx_error_set(err, CFX_E_VALUE, "it has observed nothing");
    *scale = cfx_value_float(0.5);
    *zero = cfx_value_int(3);
    return CFX_OK;
}

static cfx_status train(void *ctx, const char *path, const char *norm, const cfx_qconfig *config,
                        cfx_error *err)
{
    fake_quantizer *q = ctx;
    char name[64];
    (void)norm, (void)err;
    q->trained++;
    snprintf(name, sizeof name, "%.40s.weight_fake_quant", path);
    return put(q, name, q->made++, config->weight);
}

static cfx_quantize_host host_of(fake_quantizer *q)
{
    return (cfx_quantize_host){.ctx = q, .observe = observe, .share = share, .spec = spec_at,
                               .look = look, .scales = scales, .train = train};
}

/* ---- what is tested with -------------------------------------------------------------------- */

static cfx_qconfig usual_config(void)
{
    cfx_qconfig c = {0};
    cfx_quantize_spec_default(&c.activation, CFX_OBSERVE_MIN_MAX, CFX_DTYPE_UINT8);
    cfx_quantize_spec_default(&c.weight, CFX_OBSERVE_MIN_MAX, CFX_DTYPE_INT8);
    return c;
}

static fake_tree usual_tree(void)
{
    fake_tree tree = {0};
    fake_module(&tree, "fc", "torch.nn.Linear", NULL);
    fake_tensor(&tree, "fc.weight", 2, 2);
    fake_tensor(&tree, "fc.bias", 1, 1);
    fake_module(&tree, "relu", "torch.nn.ReLU", NULL);
    fake_tensor(&tree, "w", 4, 2);
    return tree;
}

static const char usual[] =
    "graph(): %x = placeholder[target=x]() %fc = call_module[target=fc](%x) "
    "%relu = call_module[target=relu](%fc) %n = call_method[target=size](%relu, 0) "
    "%view = call_method[target=view](%relu, %n, -1) %w = get_attr[target=w]() "
    "%lin = call_function[target=torch.nn.functional.linear](%view, %w) "
    "%sub = call_function[target=torch.sub](%lin, %x) output(%sub)";

static cfx_graph *parsed(const char *text, const cfx_allocator *a, cfx_error *err)
{
    return cfx_graph_parse(text, strlen(text), a, NULL, err);
}

static cfx_qrules *rules_for(const cfx_qconfig *config, const cfx_allocator *a, cfx_error *err)
{
    cfx_qrules *rules = cfx_qrules_new(a, err);
    if (rules && cfx_qrules_set_global(rules, config, err) != CFX_OK) {
        cfx_qrules_free(rules);
        return NULL;
    }
    return rules;
}

static cfx_status prepare(cfx_graph *g, fake_quantizer *q, const cfx_qconfig *config,
                          const cfx_prepare_options *opts, cfx_error *err)
{
    const cfx_module_tree modules = fake_modules(q->tree);
    const cfx_quantize_host host = host_of(q);
    cfx_qrules *rules = rules_for(config, cfx_graph_allocator(g), err);
    const cfx_status status = rules ? cfx_graph_prepare(g, &modules, &host, rules, opts, err)
                                    : CFX_E_NOMEM;
    cfx_qrules_free(rules);
    return status;
}

static cfx_status convert(cfx_graph *g, fake_quantizer *q, const cfx_convert_options *opts,
                          cfx_error *err)
{
    const cfx_module_tree modules = fake_modules(q->tree);
    const cfx_quantize_host host = host_of(q);
    return cfx_graph_convert(g, &modules, &host, opts, err);
}

/* The name of what node `name` reads as its i-th argument. */
static const char *read_by(const cfx_graph *g, const char *name, size_t i)
{
    const cfx_node *n = cfx_graph_find(g, name);
    const cfx_value v = n ? cfx_node_arg(n, i) : cfx_value_invalid();
    return v.kind == CFX_KIND_NODE ? cfx_node_name(v.as.node, NULL) : "";
}

/* ---- preparing ------------------------------------------------------------------------------ */

TEST(observers_stand_behind_inputs_and_results)
{
    fake_tree tree = usual_tree();
    fake_quantizer q = {.tree = &tree};
    const cfx_qconfig config = usual_config();
    cfx_error err = {0};
    cfx_graph *g = parsed(usual, NULL, &err);
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, NULL, &err));
    CHECK_STR_EQ("", err.message);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    CHECK_STR_EQ("activation_post_process_0", read_by(g, "fc", 0));
    CHECK_STR_EQ("fc", read_by(g, "relu", 0));
    CHECK_STR_EQ("activation_post_process_1", read_by(g, "view", 0));
    CHECK_STR_EQ("n", read_by(g, "view", 1));
    CHECK_STR_EQ("activation_post_process_2", read_by(g, "lin", 0));
    CHECK_STR_EQ("activation_post_process_3", read_by(g, "lin", 1));
    CHECK_STR_EQ("activation_post_process_4", read_by(g, "sub", 0));
    CHECK_STR_EQ("x", read_by(g, "sub", 1));
    CHECK_INT_EQ(observer_at(&q, "activation_post_process_1")->number,
                 observer_at(&q, "activation_post_process_2")->number);
    CHECK(observer_at(&q, "fc.weight_observer"));
    CHECK_INT_EQ(CFX_DTYPE_INT8, observer_at(&q, "activation_post_process_3")->spec.dtype);
    CHECK_INT_EQ(CFX_E_VALUE, prepare(g, &q, &config, NULL, &err));
    CHECK(strstr(err.message, "prepared already"));
    cfx_graph_release(g);
}

static void count_left(void *ctx, const cfx_node *n, const char *message)
{
    CHECK(n && message[0]);
    ++*(int *)ctx;
}

TEST(what_stays_float_is_said)
{
    fake_tree tree = usual_tree();
    fake_quantizer q = {.tree = &tree};
    const cfx_qconfig config = usual_config();
    int left = 0;
    const cfx_prepare_options opts = {.left = count_left, .ctx = &left};
    cfx_graph *g = parsed("graph(): %x = placeholder[target=x]() "
                          "%s = call_function[target=torch.sub](%x, 1) "
                          "%t = call_function[target=torch.sigmoid](%s) output(%t)", NULL, NULL);
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, &opts, NULL));
    CHECK_INT_EQ(2, left);  /* no integer form; no fixed scale */
    CHECK_INT_EQ(4, (long)cfx_graph_size(g));
    cfx_graph_release(g);
}

TEST(spellings_inputs_and_training)
{
    fake_tree tree = usual_tree();
    fake_quantizer q = {.tree = &tree};
    const cfx_qconfig config = usual_config();
    const size_t first = 0;
    const cfx_prepare_options opts = {.every_spelling = true, .training = true, .inputs = &first,
                                      .n_inputs = 1};
    cfx_graph *g = parsed("graph(): %x = placeholder[target=x]() "
                          "%fc = call_module[target=fc](%x) "
                          "%flat = call_method[target=flatten](%fc, 1) output(%flat)", NULL, NULL);
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, &opts, NULL));
    CHECK_STR_EQ("x", read_by(g, "fc", 0));
    CHECK_STR_EQ("activation_post_process_0", read_by(g, "flat", 0));
    CHECK_STR_EQ("activation_post_process_1", read_by(g, "output", 0));
    CHECK_INT_EQ(1, q.trained);
    cfx_graph_release(g);
}

TEST(numbers_in_a_loop_are_not_observed)
{
    fake_tree tree = usual_tree();
    fake_quantizer q = {.tree = &tree};
    const cfx_qconfig config = usual_config();
    cfx_error err = {0};
    cfx_graph *g = parsed(
        "graph():\n  %x = placeholder[target=x]()\n"
        "  %loop = call_function[target=cfx.for_loop](3, graph {\n"
        "    %i = placeholder[target=i]()\n    %y = placeholder[target=y]()\n"
        "    %j = call_function[target=operator.add](%i, 1)\n"
        "    %z = call_function[target=operator.mul](%y, %j)\n"
        "    output((%z,))\n  }, (%x,))\n  output(%loop)\n", NULL, &err);
    if (!CHECK(g))
        printf("    %s\n", err.message);
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, NULL, &err));
    CHECK_INT_EQ(2, q.n);  /* of %y and, the same one, of %z */
    CHECK_INT_EQ(1, q.made);
    cfx_graph_release(g);
}

static const cfx_backend_types bytes = {
    .input = {.dtype = CFX_DTYPE_UINT8}, .output = {.dtype = CFX_DTYPE_UINT8, .ranged = true,
                                                    .low = 0, .high = 255},
    .weight = {.dtype = CFX_DTYPE_INT8}};

static cfx_status add_calls(cfx_backend *b, const char *first, const char *second,
                            cfx_backend_result result, cfx_error *err)
{
    const char *const calls[] = {first, second};
    const cfx_backend_pattern p = {.calls = calls, .n_calls = second ? 2 : 1, .result = result,
                                   .types = &bytes, .n_types = 1};
    return cfx_backend_add(b, &p, err);
}

static cfx_status some_backend(cfx_backend *b, cfx_error *err)
{
    cfx_status status = add_calls(b, "torch.nn.Linear", "torch.nn.ReLU", CFX_RESULT_OWN, err);
    if (status == CFX_OK)
        status = add_calls(b, "torch.sub", NULL, CFX_RESULT_OWN, err);
    if (status == CFX_OK)
        status = add_calls(b, "view", NULL, CFX_RESULT_SHARED, err);
    return status;
}

TEST(a_backend_says_what_is_quantized)
{
    fake_tree tree = usual_tree();
    fake_quantizer q = {.tree = &tree};
    cfx_qconfig config = usual_config();
    cfx_error err = {0};
    cfx_backend *b = cfx_backend_new(NULL, NULL);
    const cfx_prepare_options opts = {.backend = b};
    const cfx_backend_pattern nothing = {.n_calls = 0};
    CHECK_INT_EQ(CFX_E_VALUE, cfx_backend_add(b, &nothing, &err));
    CHECK_INT_EQ(CFX_OK, some_backend(b, NULL));
    cfx_graph *g = parsed(usual, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, &opts, NULL));
    CHECK_STR_EQ("fc", read_by(g, "relu", 0));
    CHECK_STR_EQ("activation_post_process_1", read_by(g, "view", 0));
    CHECK_STR_EQ("w", read_by(g, "lin", 1));  /* the function is not the class */
    CHECK_STR_EQ("activation_post_process_0", read_by(g, "sub", 1));
    CHECK_STR_EQ("activation_post_process_4", read_by(g, "output", 0));
    cfx_graph_release(g);
    g = parsed(usual, NULL, NULL);
    tree = usual_tree();
    q = (fake_quantizer){.tree = &tree};
    config.activation.low = -1;
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, &opts, NULL));
    CHECK_INT_EQ(0, q.n);
    cfx_graph_release(g);
    cfx_backend_free(b);
}

/* ---- converting ----------------------------------------------------------------------------- */

TEST(the_reference_form)
{
    fake_tree tree = usual_tree();
    fake_quantizer q = {.tree = &tree};
    const cfx_qconfig config = usual_config();
    cfx_error err = {0};
    cfx_graph *g = parsed(usual, NULL, &err);
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, NULL, &err));
    CHECK_INT_EQ(CFX_OK, convert(g, &q, NULL, &err));
    CHECK_STR_EQ("", err.message);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    const cfx_node *fc = cfx_graph_find(g, "fc"), *lin = cfx_graph_find(g, "lin");
    CHECK_STR_EQ("torch.nn.functional.linear", cfx_node_target(fc, NULL, NULL));
    CHECK_INT_EQ(CFX_OPID_dequantize_per_tensor, cfx_node_operator(cfx_node_input(fc, 0)));
    CHECK_INT_EQ(CFX_OPID_dequantize_per_tensor, cfx_node_operator(cfx_node_input(fc, 1)));
    CHECK_STR_EQ("fc_bias", read_by(g, "fc", 2));
    CHECK_INT_EQ(CFX_OPID_dequantize_per_tensor, cfx_node_operator(cfx_node_input(lin, 1)));
    CHECK_INT_EQ(2, q.looks);
    CHECK(!isnan(fake_number(&tree, "fc.weight_int8")) && isnan(fake_number(&tree, "fc.weight")));
    CHECK(!isnan(fake_number(&tree, "w_int8")));
    CHECK(isnan(fake_number(&tree, "w")));
    CHECK(!fake_find(&tree, "activation_post_process_0", 25));
    CHECK_INT_EQ(CFX_E_VALUE, convert(g, &q, NULL, &err));
    cfx_graph_release(g);
}

TEST(what_is_kept_stays_float)
{
    fake_tree tree = usual_tree();
    fake_quantizer q = {.tree = &tree};
    const cfx_qconfig config = usual_config();
    const char *const keep[] = {"relu"};
    int left = 0;
    const cfx_convert_options opts = {.keep = keep, .n_keep = 1, .left = count_left, .ctx = &left};
    cfx_graph *g = parsed(usual, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, NULL, NULL));
    CHECK_INT_EQ(CFX_OK, convert(g, &q, &opts, NULL));
    CHECK_INT_EQ(2, left);  /* relu, and the layer that counts as one with it */
    CHECK_STR_EQ("x", read_by(g, "fc", 0));
    CHECK_STR_EQ("fc", read_by(g, "relu", 0));
    CHECK_STR_EQ("relu", read_by(g, "n", 0));
    CHECK(!isnan(fake_number(&tree, "fc.weight")));
    cfx_graph_release(g);
}

TEST(what_reads_a_kept_call_in_integers_gets_integers)
{
    fake_tree tree = usual_tree();
    fake_quantizer q = {.tree = &tree};
    const cfx_qconfig config = usual_config();
    const char *const keep[] = {"fc"};
    const cfx_convert_options opts = {.keep = keep, .n_keep = 1};
    cfx_graph *g = parsed("graph(): %x = placeholder[target=x]() %fc = call_module[target=fc](%x) "
                          "%view = call_method[target=view](%fc, -1) "
                          "%fc2 = call_module[target=fc2](%view) output((%fc2, %fc))", NULL, NULL);
    fake_module(&tree, "fc2", "torch.nn.Linear", NULL);
    fake_tensor(&tree, "fc2.weight", 2, 2);
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, NULL, NULL));
    CHECK_INT_EQ(CFX_OK, convert(g, &q, &opts, NULL));
    const cfx_node *view = cfx_graph_find(g, "view"), *fc2 = cfx_graph_find(g, "fc2");
    CHECK_STR_EQ("x", read_by(g, "fc", 0));
    CHECK_INT_EQ(CFX_OPID_dequantize_per_tensor, cfx_node_operator(cfx_node_input(view, 0)));
    CHECK_INT_EQ(CFX_OPID_dequantize_per_tensor, cfx_node_operator(cfx_node_input(fc2, 0)));
    const cfx_node *output = cfx_graph_last(g);
    CHECK_INT_EQ(CFX_OPID_dequantize_per_tensor, cfx_node_operator(cfx_node_input(output, 0)));
    CHECK_STR_EQ("fc", cfx_node_name(cfx_node_input(output, 1), NULL));  /* not rounded */
    cfx_graph_release(g);
}

TEST(observers_that_saw_nothing_are_an_error)
{
    fake_tree tree = usual_tree();
    fake_quantizer q = {.tree = &tree, .blind = true};
    const cfx_qconfig config = usual_config();
    cfx_error err = {0};
    cfx_graph *g = parsed(usual, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, NULL, NULL));
    const size_t size = cfx_graph_size(g);
    CHECK_INT_EQ(CFX_E_VALUE, convert(g, &q, NULL, &err));
    CHECK(strstr(err.message, "activation_post_process_0") && strstr(err.message, "nothing"));
    CHECK_INT_EQ((long)size, (long)cfx_graph_size(g));
    cfx_graph_release(g);
}

static cfx_status no_spec(void *ctx, const char *path, cfx_quantize_spec *spec, cfx_error *err)
{
    (void)ctx, (void)spec;
    return cfx_error_set(err, CFX_E_HOST, "no answer for '%s'", path);
}

/* "I cannot tell" is not "it is no observer". */
TEST(a_host_that_fails_is_an_error)
{
    fake_tree tree = usual_tree();
    fake_quantizer q = {.tree = &tree};
    const cfx_module_tree modules = fake_modules(&tree);
    const cfx_qconfig config = usual_config();
    cfx_quantize_host failing = host_of(&q);
    cfx_error err = {0};
    failing.spec = no_spec;
    cfx_graph *g = parsed(usual, NULL, NULL);
    cfx_qrules *rules = cfx_qrules_new(NULL, NULL);
    CHECK_INT_EQ(CFX_E_HOST, cfx_graph_prepare(g, &modules, &failing, rules, NULL, &err));
    CHECK_STR_EQ("no answer for 'fc'", err.message);
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, NULL, NULL));
    const size_t size = cfx_graph_size(g);
    CHECK_INT_EQ(CFX_E_HOST, cfx_graph_convert(g, &modules, &failing, NULL, &err));
    CHECK(strstr(err.message, "no answer for "));
    CHECK_INT_EQ((long)size, (long)cfx_graph_size(g));
    cfx_qrules_free(rules);
    cfx_graph_release(g);
}

TEST(ranges_of_each_run)
{
    fake_tree tree = usual_tree();
    fake_quantizer q = {.tree = &tree, .blind = false};
    cfx_qconfig config = usual_config();
    cfx_quantize_spec_default(&config.activation, CFX_OBSERVE_EACH_RUN, CFX_DTYPE_UINT8);
    cfx_graph *g = parsed(usual, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, NULL, NULL));
    CHECK_INT_EQ(CFX_OK, convert(g, &q, NULL, NULL));
    const cfx_node *fc = cfx_graph_find(g, "fc");
    CHECK_INT_EQ(CFX_OPID_dequantize_per_tensor_tensor, cfx_node_operator(cfx_node_input(fc, 0)));
    CHECK_STR_EQ("relu", read_by(g, "view", 0));
    cfx_graph_release(g);
}

static const char products[] =
    "graph(): %x = placeholder[target=x]() %w = get_attr[target=w]() %b = get_attr[target=b]() "
    "%y = call_function[target=torch.addmm](%b, %x, %w) "
    "%t = call_method[target=t](%w) %z = call_method[target=matmul](%y, %t) "
    "%u = call_function[target=torch.mm](%w, %z) output(%u)";

static fake_tree products_tree(void)
{
    fake_tree tree = {0};
    fake_tensor(&tree, "w", 4, 2);
    fake_tensor(&tree, "b", 1, 1);
    return tree;
}

TEST(products_with_matrices_are_layers)
{
    fake_tree tree = products_tree();
    fake_quantizer q = {.tree = &tree};
    cfx_qconfig config = usual_config();
    config.activation.observer = CFX_OBSERVE_NOTHING;
    const cfx_prepare_options opts = {.every_spelling = true};
    cfx_error err = {0};
    cfx_graph *g = parsed(products, NULL, &err);
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, &opts, &err));
    CHECK_INT_EQ(2, q.made);  /* of %w with its columns first, and of %w */
    CHECK(!cfx_graph_find(g, "t"));
    CHECK_INT_EQ(CFX_OK, convert(g, &q, NULL, &err));
    CHECK_STR_EQ("", err.message);
    CHECK_INT_EQ(CFX_OK, cfx_graph_verify(g, NULL, NULL, NULL));
    const cfx_node *y = cfx_graph_find(g, "y"), *z = cfx_graph_find(g, "z");
    CHECK_INT_EQ(CFX_OPID_linear, cfx_node_operator(y));
    CHECK_INT_EQ(CFX_OPID_linear, cfx_node_operator(z));
    CHECK_INT_EQ(CFX_OPID_mm, cfx_node_operator(cfx_graph_find(g, "u")));
    CHECK_STR_EQ("x", read_by(g, "y", 0));
    CHECK_STR_EQ("b", read_by(g, "y", 2));
    CHECK(!isnan(fake_number(&tree, "w_int8")) && !isnan(fake_number(&tree, "w_2_int8")));
    CHECK(!isnan(fake_number(&tree, "w")));  /* %u reads it */
    cfx_graph_release(g);
}

TEST(other_spellings_of_products_are_left_alone)
{
    fake_tree tree = products_tree();
    fake_quantizer q = {.tree = &tree};
    cfx_qconfig config = usual_config();
    config.activation.observer = CFX_OBSERVE_NOTHING;
    cfx_graph *g = parsed(products, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, prepare(g, &q, &config, NULL, NULL));
    CHECK_INT_EQ(0, q.made);
    cfx_graph_release(g);
}

TEST(fusing_is_the_pass)
{
    fake_tree tree = usual_tree();
    const cfx_module_tree modules = fake_modules(&tree);
    bool changed = true;
    cfx_graph *g = parsed(usual, NULL, NULL);
    CHECK_INT_EQ(CFX_OK, cfx_graph_fuse_layers(g, &modules, &changed, NULL));
    CHECK(!changed);
    cfx_graph_release(g);
}

/* ---- memory --------------------------------------------------------------------------------- */

static const char with_backend[] =
    "graph(): %x = placeholder[target=x]() %fc = call_module[target=fc](%x) "
    "%relu = call_module[target=relu](%fc) %sub = call_function[target=torch.sub](%relu, %x) "
    "output(%sub)";

static cfx_status body(const cfx_allocator *a, void *ctx)
{
    fake_tree tree = usual_tree();
    fake_quantizer q = {.tree = &tree};
    const cfx_qconfig config = usual_config();
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = parsed(ctx, a, &err);
    cfx_backend *b = ctx == with_backend ? cfx_backend_new(a, &err) : NULL;
    if (b)
        some_backend(b, &err);
    const cfx_prepare_options opts = {.every_spelling = ctx == products, .backend = b};
    if (ctx == products)
        tree = products_tree();
    if (g && err.status == CFX_OK && prepare(g, &q, &config, &opts, &err) == CFX_OK)
        convert(g, &q, NULL, &err);
    cfx_backend_free(b);
    if (g)
        CHECK_INT_EQ(CFX_OK, cfx_graph_lint(g, NULL, NULL, NULL));
    cfx_graph_release(g);
    return err.status;
}

TEST(out_of_memory)
{
    CHECK(test_oom_sweep(body, (void *)(uintptr_t)usual) > 50);
    CHECK(test_oom_sweep(body, (void *)(uintptr_t)products) > 50);
    CHECK(test_oom_sweep(body, (void *)(uintptr_t)with_backend) > 50);
}
