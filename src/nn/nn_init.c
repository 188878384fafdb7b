/* nn_init.c - weights of new modules, initialised as PyTorch initialises them, from the random
 * numbers of the scope's runtime. */
#include "nn_impl.h"

#include <math.h>

cfxi_init cfxi_nn_uniform_of(double n) { return cfxi_nn_uniform(n > 0 ? 1 / sqrt(n) : 0); }

static double product(const int64_t *sizes, size_t from, size_t ndim)
{
    double n = 1;
    for (size_t i = from; i < ndim; i++)
        n *= (double)sizes[i];
    return n;
}

double cfxi_nn_fan_in(const int64_t *sizes, size_t ndim) { return product(sizes, 1, ndim); }

static double fans(const int64_t *sizes, size_t ndim)
{
    return ((double)sizes[0] + (double)sizes[1]) * product(sizes, 2, ndim);
}

cfxi_init cfxi_nn_xavier_uniform(const int64_t *sizes, size_t ndim)
{
    const double n = fans(sizes, ndim);
    return cfxi_nn_uniform(n > 0 ? sqrt(6 / n) : 0);
}

cfxi_init cfxi_nn_xavier_normal(const int64_t *sizes, size_t ndim)
{
    const double n = fans(sizes, ndim);
    return cfxi_nn_normal(n > 0 ? sqrt(2 / n) : 0);
}

void cfxi_nn_fill(cfx_at at, cfx_tensor *t, cfxi_init init)
{
    cfx_error err = {0};
    cfx_operator op = CFX_OPID_fill_;
    cfx_datum args[] = {cfx_datum_tensor(t), cfx_datum_float(init.value), cfx_datum_none()};
    size_t n = 2;
    if (!cfx_scope_ok(at.scope) || cfx_tensor_numel(t) == 0)
        return;
    if (init.kind != CFXI_INIT_FILL) {
        const bool uniform = init.kind == CFXI_INIT_UNIFORM;
        op = uniform ? CFX_OPID_uniform_ : CFX_OPID_normal_;
        args[1] = cfx_datum_float(uniform ? -init.value : 0);
        args[2] = cfx_datum_float(init.value);
        n = 3;
    }
    cfx_datum done = cfx_operator_run(at.scope->rt, op, args, n, &err);
    if (done.kind == CFX_DATUM_INVALID)
        cfxi_capture_scope_take(at, &err);
    cfx_datum_release(done);
}

static void add(cfxi_making *k, const char *name, const int64_t *sizes, size_t ndim,
                cfxi_init init, cfxi_member_kind kind)
{
    cfx_error err = {0};
    if (!cfx_scope_ok(k->at.scope))
        return;
    cfx_tensor *t = cfx_tensor_new(k->dtype, sizes, ndim, k->at.scope->allocator, &err);
    if (!t) {
        if (err.status == CFX_E_NOMEM)
            cfxi_capture_scope_take(k->at, &err);
        else
            cfxi_nn_fail(k, "%s: %.150s", name, err.message);
        return;
    }
    cfxi_nn_fill(k->at, t, init);
    if (kind == CFXI_MEMBER_PARAMETER)
        cfx_module_add_parameter_at(k->at, k->m, name, t);
    else
        cfx_module_add_buffer_at(k->at, k->m, name, t);
    cfx_tensor_release(t);
}

void cfxi_nn_parameter(cfxi_making *k, const char *name, const int64_t *sizes, size_t ndim,
                       cfxi_init init)
{
    add(k, name, sizes, ndim, init, CFXI_MEMBER_PARAMETER);
}

void cfxi_nn_buffer(cfxi_making *k, const char *name, const int64_t *sizes, size_t ndim,
                    cfxi_init init)
{
    add(k, name, sizes, ndim, init, CFXI_MEMBER_BUFFER);
}

void cfxi_nn_no_parameter(cfxi_making *k, const char *name)
{
    cfx_module_add_parameter_at(k->at, k->m, name, NULL);
}

void cfxi_nn_no_buffer(cfxi_making *k, const char *name)
{
    cfx_module_add_buffer_at(k->at, k->m, name, NULL);
}
