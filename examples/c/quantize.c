/* quantize.c - a small network in integers: calibrated, converted, saved, loaded and run, without
 * Python.
 *
 *     make build/examples/c/quantize && build/examples/c/quantize /tmp
 *
 * It leaves float.cfx, int8.cfx and data.npy in the folder that it is given, for
 *
 *     cfx quantize --calibrate data.npy --report -o again.cfx float.cfx
 */
#include <cfx/cfx.h>
#include <stdio.h>
#include <string.h>

enum { CALLS = 8, BATCH = 4 };

/* ---- the network --------------------------------------------------------------------------- */

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    x = cfx_relu(s, cfx_call_child(s, self, "bn1", cfx_call_child(s, self, "conv1", x)));
    x = cfx_max_pool2d(s, x, cfx_v(2));
    x = cfx_relu(s, cfx_call_child(s, self, "conv2", x));
    x = cfx_flatten(s, cfx_adaptive_avg_pool2d(s, x, cfx_v(1)), .start_dim = cfx_v(1));
    return cfx_call_child(s, self, "fc", x);
}

static const cfx_class net_class = {.name = "Net", .forward = forward};

static cfx_module *make_net(cfx_scope *s)
{
    cfx_module *net = cfx_module_new(s, &net_class);
    cfx_module_add(s, net, "conv1", cfx_nn_conv2d(s, 3, 16, cfx_v(3)));
    cfx_module_add(s, net, "bn1", cfx_nn_batch_norm2d(s, 16));
    cfx_module_add(s, net, "conv2", cfx_nn_conv2d(s, 16, 32, cfx_v(3)));
    cfx_module_add(s, net, "fc", cfx_nn_linear(s, 32, 10));
    cfx_module_train(net, false);
    return cfx_trace(s, net);
}

/* ---- in integers --------------------------------------------------------------------------- */

static cfx_var batch(cfx_scope *s, cfx_var data, int i)
{
    return cfx_narrow(s, data, 0, cfx_v(i * BATCH), BATCH);
}

static cfx_module *quantize(cfx_scope *s, cfx_module *net, cfx_var data)
{
    cfx_module *prepared = cfx_quantize_prepare(s, net, .observer = CFX_OBSERVE_MIN_MAX);
    for (int i = 0; i < CALLS; i++)
        cfx_call(s, prepared, batch(s, data, i));
    return cfx_quantize_convert(s, prepared);
}

static cfx_status write_stdout(void *ctx, const char *data, size_t size)
{
    (void)ctx;
    return fwrite(data, 1, size, stdout) == size ? CFX_OK : CFX_E_IO;
}

/* What each layer loses, the worst first. */
static void report(cfx_scope *s, cfx_module *net, cfx_module *quantized, cfx_var data)
{
    const cfx_sink out = {write_stdout, NULL};
    cfx_trial *t = cfx_trial_new(s, net, quantized);
    for (int i = 0; t && i < CALLS; i++) {
        cfx_datum x = cfx_var_datum(s, batch(s, data, i));
        cfx_trial_run(t, &x, 1, cfx_scope_err(s));
        cfx_datum_release(x);
    }
    if (cfx_scope_ok(s))
        cfx_comparison_print(cfx_trial_comparison(t), CFX_COMPARISON_TABLE, 100, 0, out,
                             cfx_scope_err(s));
    cfx_trial_free(t);
}

/* ---- from its file ------------------------------------------------------------------------- */

/* As a program does that only runs the model: integer arithmetic. */
static cfx_var run_file(cfx_scope *s, const char *path, cfx_var x)
{
    cfx_var y = cfx_var_empty();
    cfx_executable *e = cfx_executable_load(path, NULL, cfx_scope_err(s));
    cfx_datum in = cfx_var_datum(s, x);
    if (e && cfx_scope_ok(s)) {
        cfx_datum out = cfx_executable_run(e, NULL, cfx_scope_runtime(s), &in, 1, NULL,
                                           cfx_scope_err(s));
        y = cfx_var_from_datum(s, out);
        cfx_datum_release(out);
    }
    cfx_datum_release(in);
    cfx_executable_free(e);
    return y;
}

static const char *in_folder(const char *folder, const char *name, char path[512])
{
    snprintf(path, 512, "%.400s/%s", folder, name);
    return path;
}

int main(int argc, char **argv)
{
    char path[512];
    const char *folder = argc > 1 ? argv[1] : ".";
    cfx_scope *s = cfx_scope_new(NULL, NULL);
    if (!s)
        return 1;
    cfx_module *net = make_net(s);
    cfx_var data = cfx_randn(s, cfx_ints(s, CALLS * BATCH, 3, 16, 16));
    cfx_module *quantized = quantize(s, net, data);
    report(s, net, quantized, data);
    cfx_module_write(s, net, in_folder(folder, "float.cfx", path));
    cfx_tensor_save(cfx_var_tensor(s, data), in_folder(folder, "data.npy", path),
                    cfx_scope_err(s));
    cfx_module_write(s, quantized, in_folder(folder, "int8.cfx", path));
    cfx_var x = batch(s, data, 0);
    cfx_var y = cfx_call(s, net, x);
    cfx_var off = cfx_sub(s, run_file(s, path, x), y);
    cfx_var loss = cfx_div(s, cfx_norm(s, off), cfx_norm(s, y));
    printf("int8.cfx is %.1f %% off\n", 100 * cfx_var_number(s, loss));
    const bool good = cfx_scope_ok(s);
    if (!good)
        printf("%s\n", cfx_scope_error(s)->message);
    cfx_scope_free(s);
    return good ? 0 : 1;
}
