/* init_functions.c - torch.nn.init: weights that a model sets itself. */
#include "world_impl.h"

#include <math.h>

/* Calls a method of the tensor that writes to it, with numbers. */
static cfx_status write(cfxi_world *w, cfx_object *t, const char *method, const double *numbers,
                        size_t n, cfx_error *err)
{
    cfx_object *args[3] = {t, NULL, NULL};
    cfx_status status = CFX_OK;
    for (size_t i = 0; status == CFX_OK && i < n; i++) {
        args[i + 1] = cfxi_world_float_object(w, numbers[i], err);
        status = args[i + 1] ? CFX_OK : err->status;
    }
    cfx_object *made = NULL;
    if (status == CFX_OK)
        made = cfxi_world_compute(w, CFX_OP_CALL_METHOD, method,
                                  &(cfx_call_args){.args = args, .n = n + 1}, err);
    cfxi_world_unref(args[1]);
    cfxi_world_unref(args[2]);
    cfxi_world_unref(made);
    return made ? CFX_OK : err->status;
}

static cfx_object *finish(cfx_object *t, cfx_status status)
{
    return status == CFX_OK ? cfxi_world_ref(t) : NULL;
}

/* The tensor, and up to three numbers behind it. */
static cfx_status numbers_of(cfxi_world *w, const cfx_call_args *a, const char *const *names,
                             size_t most, double *numbers, cfx_object **in, cfx_error *err)
{
    CFX_TRY(cfxi_world_args(w, a, "nn.init.*", names, 1, most + 1, in, err));
    if (in[0]->type != CFXI_TYPE_TENSOR)
        return cfxi_world_throw(w, err, CFXI_TypeError,
                                "nn.init functions take a tensor with known values, not '%s'",
                                cfxi_world_type_name(in[0]));
    if (w->recording)
        return cfxi_world_throw(w, err, CFXI_RuntimeError,
                                "weights cannot be initialised during capture; initialise them in "
                                "__init__");
    for (size_t i = 0; i < most; i++) {
        if (!in[i + 1] || !numbers)
            continue;
        if (!cfxi_world_is_real(in[i + 1]))
            return cfxi_world_throw(w, err, CFXI_TypeError, "'%s' must be a number", names[i + 1]);
        numbers[i] = cfxi_world_real(in[i + 1]);
    }
    return CFX_OK;
}

CFXI_BUILTIN(uniform)
{
    static const char *const names[] = {"tensor", "a", "b", "generator"};
    double n[3] = {0, 1, 0};
    cfx_object *in[4];
    if (numbers_of(w, a, names, 2, n, in, err) != CFX_OK)
        return NULL;
    return finish(in[0], write(w, in[0], "uniform_", n, 2, err));
}

CFXI_BUILTIN(normal)
{
    static const char *const names[] = {"tensor", "mean", "std", "generator"};
    double n[3] = {0, 1, 0};
    cfx_object *in[4];
    if (numbers_of(w, a, names, 2, n, in, err) != CFX_OK)
        return NULL;
    return finish(in[0], write(w, in[0], "normal_", n, 2, err));
}

CFXI_BUILTIN(constant)
{
    static const char *const names[] = {"tensor", "val"};
    double n[1] = {0};
    cfx_object *in[2];
    if (numbers_of(w, a, names, 1, n, in, err) != CFX_OK)
        return NULL;
    return finish(in[0], write(w, in[0], "fill_", n, 1, err));
}

static cfx_object *filled(cfxi_world *w, const cfx_call_args *a, double value, cfx_error *err)
{
    static const char *const names[] = {"tensor"};
    cfx_object *in[1];
    if (numbers_of(w, a, names, 0, NULL, in, err) != CFX_OK)
        return NULL;
    return finish(in[0], write(w, in[0], "fill_", &value, 1, err));
}

CFXI_BUILTIN(zeros) { return filled(w, a, 0, err); }
CFXI_BUILTIN(ones) { return filled(w, a, 1, err); }

/* By the inverse of the distribution: uniform numbers between the bounds' probabilities. */
CFXI_BUILTIN(trunc_normal)
{
    static const char *const names[] = {"tensor", "mean", "std", "a", "b", "generator"};
    double n[5] = {0, 1, -2, 2, 0};
    cfx_object *in[6];
    if (numbers_of(w, a, names, 4, n, in, err) != CFX_OK)
        return NULL;
    const double root = sqrt(2);
    const double range[] = {erf((n[2] - n[0]) / n[1] / root), erf((n[3] - n[0]) / n[1] / root)};
    const double scale = n[1] * root;
    const double bounds[] = {n[2], n[3]};
    cfx_status status = write(w, in[0], "uniform_", range, 2, err);
    if (status == CFX_OK)
        status = write(w, in[0], "erfinv_", NULL, 0, err);
    if (status == CFX_OK)
        status = write(w, in[0], "mul_", &scale, 1, err);
    if (status == CFX_OK)
        status = write(w, in[0], "add_", &n[0], 1, err);
    if (status == CFX_OK)
        status = write(w, in[0], "clamp_", bounds, 2, err);
    return finish(in[0], status);
}

/* ---- by the sizes -------------------------------------------------------------------------- */

static cfx_status fans(cfxi_world *w, const cfx_object *t, double *in, double *out, cfx_error *err)
{
    const int64_t *sizes = cfx_tensor_sizes(t->as.tensor);
    const size_t ndim = cfx_tensor_ndim(t->as.tensor);
    if (ndim < 2)
        return cfxi_world_throw(w, err, CFXI_ValueError,
                                "Fan in and fan out can not be computed for "
                                "tensor with fewer than 2 dimensions");
    *in = cfxi_nn_fan_in(sizes, ndim);
    *out = sizes[1] ? *in / (double)sizes[1] * (double)sizes[0] : 0;
    return CFX_OK;
}

static cfx_object *xavier(cfxi_world *w, const cfx_call_args *a, bool is_normal, cfx_error *err)
{
    static const char *const names[] = {"tensor", "gain", "generator"};
    double gain = 1;
    double fan_in;
    double fan_out;
    cfx_object *in[3];
    if (numbers_of(w, a, names, 1, &gain, in, err) != CFX_OK ||
        fans(w, in[0], &fan_in, &fan_out, err) != CFX_OK)
        return NULL;
    const double std = gain * sqrt(2 / (fan_in + fan_out));
    const double n[] = {is_normal ? 0 : -sqrt(3) * std, is_normal ? std : sqrt(3) * std};
    return finish(in[0], write(w, in[0], is_normal ? "normal_" : "uniform_", n, 2, err));
}

CFXI_BUILTIN(xavier_uniform) { return xavier(w, a, false, err); }
CFXI_BUILTIN(xavier_normal) { return xavier(w, a, true, err); }

/* How much an activation makes of its input. */
static double gain_of(const char *name, double slope)
{
    if (strcmp(name, "tanh") == 0)
        return 5.0 / 3;
    if (strcmp(name, "relu") == 0)
        return sqrt(2);
    if (strcmp(name, "leaky_relu") == 0)
        return sqrt(2 / (1 + slope * slope));
    return strcmp(name, "selu") == 0 ? 0.75 : 1;
}

CFXI_BUILTIN(calculate_gain)
{
    static const char *const names[] = {"nonlinearity", "param"};
    cfx_object *in[2];
    if (cfxi_world_args(w, a, "calculate_gain", names, 1, 2, in, err) != CFX_OK)
        return NULL;
    const double slope = in[1] && cfxi_world_is_real(in[1]) ? cfxi_world_real(in[1]) : 0.01;
    return cfxi_world_float_object(w, in[0]->type == CFXI_TYPE_STR
                                   ? gain_of(in[0]->as.text.data, slope) : 1, err);
}

static cfx_object *kaiming(cfxi_world *w, const cfx_call_args *a, bool is_normal, cfx_error *err)
{
    static const char *const names[] = {"tensor", "a", "mode", "nonlinearity", "generator"};
    double fan_in;
    double fan_out;
    cfx_object *in[5];
    if (numbers_of(w, a, names, 4, NULL, in, err) != CFX_OK ||
        fans(w, in[0], &fan_in, &fan_out, err) != CFX_OK)
        return NULL;
    const double slope = in[1] && cfxi_world_is_real(in[1]) ? cfxi_world_real(in[1]) : 0;
    const bool out = in[2] && in[2]->type == CFXI_TYPE_STR &&
                     strcmp(in[2]->as.text.data, "fan_out") == 0;
    const char *what = in[3] && in[3]->type == CFXI_TYPE_STR ? in[3]->as.text.data : "leaky_relu";
    const double fan = out ? fan_out : fan_in;
    const double std = fan > 0 ? gain_of(what, slope) / sqrt(fan) : 0;
    const double n[] = {is_normal ? 0 : -sqrt(3) * std, is_normal ? std : sqrt(3) * std};
    return finish(in[0], write(w, in[0], is_normal ? "normal_" : "uniform_", n, 2, err));
}

CFXI_BUILTIN(kaiming_uniform) { return kaiming(w, a, false, err); }
CFXI_BUILTIN(kaiming_normal) { return kaiming(w, a, true, err); }

static const cfxi_builtin functions[] = {
    {"uniform_", uniform}, {"normal_", normal}, {"constant_", constant}, {"zeros_", zeros},
    {"ones_", ones}, {"trunc_normal_", trunc_normal}, {"xavier_uniform_", xavier_uniform},
    {"xavier_normal_", xavier_normal}, {"kaiming_uniform_", kaiming_uniform},
    {"kaiming_normal_", kaiming_normal}, {"calculate_gain", calculate_gain}, {NULL, NULL},
};

const cfxi_builtin *cfxi_world_init_function(const char *name)
{
    return cfxi_world_row_find(functions, name);
}
