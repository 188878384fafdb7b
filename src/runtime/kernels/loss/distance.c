/* distance.c - how near vectors are: cosine_similarity, pairwise_distance, losses of them. */
#include "runtime/kernels/elementwise/elementwise_impl.h"
#include "loss_impl.h"

#include <math.h>

typedef enum measure { COSINE, COSINE_LOSS, NORM } measure;

typedef struct pairs {
    measure measure;
    cfx_dtype dtypes[3];
    int64_t n;
    int64_t step[2];
    cfx_dtype common;  /* of both: the products of integers wrap around */
    double p;
    double eps;
} pairs;

/* ---- lanes --------------------------------------------------------------------------------- */

static double lane_norm(const pairs *k, char *const at[])
{
    double sum = 0;
    double most = 0;
    for (int64_t i = 0; i < k->n; i++) {
        double a[2];
        double b[2];
        cfxi_tensor_load_complex(k->dtypes[0], at[0] + i * k->step[0], a);
        cfxi_tensor_load_complex(k->dtypes[1], at[1] + i * k->step[1], b);
        double d = hypot(a[0] - b[0] + k->eps, a[1] - b[1]);
        most = d > most || d != d ? d : most;
        sum += k->p == 2 ? d * d : k->p == 1 ? d : k->p == 0 ? d != 0 : pow(d, k->p);
    }
    if (isinf(k->p) && k->p > 0)
        return most;
    return k->p == 2 ? sqrt(sum) : k->p == 1 || k->p == 0 ? sum : pow(sum, 1 / k->p);
}

static double lane_cosine(const pairs *k, char *const at[])
{
    double ab = 0;
    double aa = 0;
    double bb = 0;
    for (int64_t i = 0; i < k->n; i++) {
        double a = cfxi_tensor_load_float(k->dtypes[0], at[0] + i * k->step[0]);
        double b = cfxi_tensor_load_float(k->dtypes[1], at[1] + i * k->step[1]);
        ab += cfxi_loss_wrapped(k->common, a * b);
        aa += cfxi_loss_wrapped(k->dtypes[0], a * a);
        bb += cfxi_loss_wrapped(k->dtypes[1], b * b);
    }
    if (k->measure == COSINE_LOSS)
        return ab / sqrt((aa + k->eps) * (bb + k->eps));
    double na = sqrt(aa) < k->eps ? k->eps : sqrt(aa);
    double nb = sqrt(bb) < k->eps ? k->eps : sqrt(bb);
    return ab / (na * nb);
}

static void pair_lane(void *ctx, char *const at[], void *scratch, int64_t lane)
{
    const pairs *k = ctx;
    (void)scratch;
    (void)lane;
    cfxi_tensor_store_float(k->dtypes[2], at[2],
                            k->measure == NORM ? lane_norm(k, at) : lane_cosine(k, at));
}

/* A header over t's memory with these sizes: dimensions of size 1 repeat. */
static cfx_tensor expanded(const cfx_tensor *t, const int64_t *sizes, size_t ndim)
{
    cfx_tensor e = *t;
    size_t skip = ndim - t->ndim;
    e.ndim = (uint8_t)ndim;
    for (size_t d = 0; d < ndim; d++) {
        bool repeats = d < skip || (t->size[d - skip] == 1 && sizes[d] != 1);
        e.size[d] = sizes[d];
        e.stride[d] = repeats ? 0 : t->stride[d - skip];
    }
    return e;
}

/* out: contiguous, with the sizes of a and b together but without dimension `dim`. */
static cfx_status measure_pairs(cfxi_call *c, const cfx_tensor *a, const cfx_tensor *b, int64_t dim,
                                cfx_tensor *out, pairs *k)
{
    const cfx_tensor *both[] = {a, b};
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    size_t d;
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));
    CFX_TRY(cfxi_rt_dim(c, dim, ndim, &d));
    cfx_tensor views[3] = {expanded(a, sizes, ndim), expanded(b, sizes, ndim), *out};
    k->common = cfxi_tensor_promote(both, 2);
    k->n = ndim ? sizes[d] : 1;
    k->step[0] = views[0].stride[d];
    k->step[1] = views[1].stride[d];
    if (ndim) {
        sizes[d] = 1;
    } else {
        k->step[0] = k->step[1] = 0;
    }
    views[2].ndim = (uint8_t)ndim;
    memcpy(views[2].size, sizes, sizeof sizes);
    cfxi_tensor_contiguous_strides(sizes, ndim, cfxi_tensor_itemsize(out), views[2].stride);
    cfx_tensor *all[3] = {&views[0], &views[1], &views[2]};
    for (size_t t = 0; t < 3; t++)
        k->dtypes[t] = (cfx_dtype)views[t].dtype;
    return cfxi_reduce_lanes(c, all, 3, d, 4 * k->n, 0, pair_lane, k);
}

/* Result 0: the sizes together, less `dim`. */
static cfx_status pair_result(cfxi_call *c, int64_t dim, bool keepdim, cfx_dtype dtype)
{
    const cfx_tensor *both[] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    size_t d;
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));
    CFX_TRY(cfxi_rt_dim(c, dim, ndim, &d));
    if (ndim == 0)
        return cfxi_rt_result(c, 0, dtype, NULL, 0);
    if (keepdim) {
        sizes[d] = 1;
        return cfxi_rt_result(c, 0, dtype, sizes, ndim);
    }
    memmove(sizes + d, sizes + d + 1, (ndim - d - 1) * sizeof *sizes);
    return cfxi_rt_result(c, 0, dtype, sizes, ndim - 1);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* (x1, x2, dim, eps) */
cfx_status cfxi_rule_cosine_similarity(cfxi_call *c)
{
    const cfx_tensor *both[] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    cfx_dtype dtype = cfxi_tensor_promote(both, 2);
    if (!cfx_dtype_is_float(dtype))
        return cfxi_fail(c, CFX_E_SHAPE, "expected common dtype to be floating point, yet common "
                         "dtype is %s", cfx_dtype_name(dtype));
    return pair_result(c, cfxi_rt_int(c, 2), false, dtype);
}

cfx_status cfxi_kernel_cosine_similarity(cfxi_call *c)
{
    pairs k = {.measure = COSINE, .eps = cfxi_rt_float(c, 3)};
    return measure_pairs(c, cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1), cfxi_rt_int(c, 2),
                         cfxi_rt_result_at(c, 0), &k);
}

static cfx_dtype distance_dtype(cfx_dtype dtype)
{
    if (dtype == CFX_DTYPE_COMPLEX128)
        return CFX_DTYPE_FLOAT64;
    return cfx_dtype_is_float(dtype) ? dtype : CFX_DTYPE_FLOAT32;
}

/* (x1, x2, p, eps, keepdim) */
cfx_status cfxi_rule_pairwise_distance(cfxi_call *c)
{
    const cfx_tensor *both[] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    cfx_dtype dtype = cfxi_tensor_promote(both, 2);
    CFX_TRY(cfxi_elementwise_check_subtraction(c));
    return pair_result(c, -1, cfxi_rt_bool(c, 4), distance_dtype(dtype));
}

/* Integers are subtracted as such, and wrap around: it is the difference's distance from 0. */
cfx_status cfxi_kernel_pairwise_distance(cfxi_call *c)
{
    pairs k = {.measure = NORM, .p = cfxi_rt_float(c, 2), .eps = cfxi_rt_float(c, 3)};
    const cfx_tensor *both[] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    if (!cfx_dtype_is_integer(cfxi_tensor_promote(both, 2)))
        return measure_pairs(c, both[0], both[1], -1, cfxi_rt_result_at(c, 0), &k);
    float nothing = 0;
    const cfx_tensor zero = {.dtype = CFX_DTYPE_FLOAT32, .data = (char *)&nothing};
    cfx_tensor *apart = cfxi_rt_sub_tensor(c, CFX_OPID_sub, c->args, 2);
    if (!apart)
        return c->err->status;
    cfx_status status = measure_pairs(c, apart, &zero, -1, cfxi_rt_result_at(c, 0), &k);
    cfx_tensor_release(apart);
    return status;
}

/* ---- losses -------------------------------------------------------------------------------- */

/* Result 0, one loss each so far, becomes what the reduction leaves of it. */
static cfx_status loss_result(cfxi_call *c, size_t reduction)
{
    cfx_dtype dtype = (cfx_dtype)cfxi_rt_result_at(c, 0)->dtype;
    CFX_TRY(cfxi_loss_check_reduction(c, reduction));
    return cfxi_loss_reduction_of(c, reduction) == CFXI_REDUCE_NONE
               ? CFX_OK
               : cfxi_rt_result(c, 0, dtype, NULL, 0);
}

/* (anchor, positive, negative, margin, p, eps, swap, reduction) */
cfx_status cfxi_rule_triplet_margin_loss(cfxi_call *c)
{
    const cfx_tensor *all[] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1), cfxi_rt_tensor(c, 2)};
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    const cfx_tensor *far[] = {all[0], all[2]};
    cfx_dtype dtype = cfxi_tensor_promote_types(distance_dtype(cfxi_tensor_promote(all, 2)),
                                                distance_dtype(cfxi_tensor_promote(far, 2)));
    if (cfxi_rt_bool(c, 6))  /* swap */
        dtype = cfxi_tensor_promote_types(dtype, distance_dtype(cfxi_tensor_promote(all + 1, 2)));
    if (all[0]->ndim != all[1]->ndim || all[0]->ndim != all[2]->ndim)
        return cfxi_fail(c, CFX_E_SHAPE, "The anchor, positive, and negative tensors are expected "
                         "to have the same number of dimensions");
    CFX_TRY(cfxi_rt_broadcast(c, all, 3, sizes, &ndim));
    CFX_TRY(cfxi_rt_result(c, 0, dtype, sizes, ndim ? ndim - 1 : 0));
    return loss_result(c, 7);
}

static cfx_tensor *distance_of(cfxi_call *c, cfx_datum a, cfx_datum b)
{
    cfx_datum args[] = {a, b, c->args[4], c->args[5]};
    return cfxi_rt_sub_tensor(c, CFX_OPID_pairwise_distance, args, 4);
}

cfx_status cfxi_kernel_triplet_margin_loss(cfxi_call *c)
{
    cfx_tensor *near = distance_of(c, c->args[0], c->args[1]);
    cfx_tensor *far = near ? distance_of(c, c->args[0], c->args[2]) : NULL;
    if (far && cfxi_rt_bool(c, 6)) {
        cfx_tensor *other = distance_of(c, c->args[1], c->args[2]);
        cfx_datum both[] = {cfx_datum_tensor(far), cfx_datum_tensor(other)};
        cfx_tensor *least = other ? cfxi_rt_sub_tensor(c, CFX_OPID_minimum, both, 2) : NULL;
        cfx_tensor_release(other);
        cfx_tensor_release(far);
        far = least;
    }
    cfx_status status = far ? CFX_OK : c->err->status;
    if (status == CFX_OK) {  /* margin + near - far */
        cfx_datum args[] = {cfx_datum_tensor(near), cfx_datum_tensor(far), cfx_datum_int(-1),
                            c->args[3], c->args[7]};
        cfx_tensor *loss = cfxi_rt_sub_tensor(c, CFX_OPID_margin_ranking_loss, args, 5);
        status = loss ? CFX_OK : c->err->status;
        if (loss)
            cfxi_rt_result_datum(c, 0, cfx_datum_tensor(loss));
    }
    cfx_tensor_release(near);
    cfx_tensor_release(far);
    return status;
}

/* (input1, input2, target, margin, reduction) */
cfx_status cfxi_rule_cosine_embedding_loss(cfxi_call *c)
{
    const cfx_tensor *both[] = {cfxi_rt_tensor(c, 0), cfxi_rt_tensor(c, 1)};
    const cfx_tensor *target = cfxi_rt_tensor(c, 2);
    cfx_dtype dtype = cfxi_tensor_promote(both, 2);
    if (target->ndim > 1 || both[0]->ndim != (size_t)target->ndim + 1 ||
        both[1]->ndim != both[0]->ndim)
        return cfxi_fail(c, CFX_E_SHAPE, "%uD target tensor expects %uD input tensors, but found "
                         "inputs with %u and %u dimensions", target->ndim, target->ndim + 1u,
                         both[0]->ndim, both[1]->ndim);
    CFX_TRY(pair_result(c, -1, false, cfx_dtype_is_float(dtype) ? dtype : CFX_DTYPE_FLOAT32));
    const cfx_tensor *losses[] = {target, cfxi_rt_result_at(c, 0)};
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    CFX_TRY(cfxi_rt_broadcast(c, losses, 2, sizes, &ndim));
    CFX_TRY(cfxi_rt_result(c, 0, (cfx_dtype)losses[1]->dtype, sizes, ndim));
    return loss_result(c, 4);
}

static void target_loss(const cfx_tensor *cosine, const cfx_tensor *target, double margin)
{
    cfx_dtype dtype = (cfx_dtype)cosine->dtype;
    for (int64_t i = 0, n = cfxi_tensor_numel(cosine); i < n; i++) {
        char *at = cosine->data + i * (int64_t)cfx_dtype_size(dtype);
        int64_t step = target->ndim && target->size[0] != 1 ? target->stride[0] : 0;
        double t = cfxi_tensor_load_float((cfx_dtype)target->dtype, target->data + i * step);
        double x = cfxi_tensor_load_float(dtype, at);
        double far = x - margin > 0 || x != x ? x - margin : 0;
        cfxi_tensor_store_float(dtype, at, t == 1 ? 1 - x : t == -1 ? far : 0);
    }
}

cfx_status cfxi_kernel_cosine_embedding_loss(cfxi_call *c)
{
    const cfx_tensor *a = cfxi_rt_tensor(c, 0);
    const cfx_tensor *b = cfxi_rt_tensor(c, 1);
    const cfx_tensor *both[] = {a, b};
    int64_t sizes[CFX_MAX_DIMS];
    size_t ndim;
    pairs k = {.measure = COSINE_LOSS, .eps = 1e-12};
    CFX_TRY(cfxi_rt_broadcast(c, both, 2, sizes, &ndim));
    cfx_tensor *all = cfx_tensor_new((cfx_dtype)cfxi_rt_result_at(c, 0)->dtype, sizes, ndim - 1,
                                     c->rt->allocator, c->err);
    if (!all)
        return c->err->status;
    cfx_status status = measure_pairs(c, a, b, -1, all, &k);
    bool one = ndim > 1 && sizes[0] == 1 && cfxi_rt_tensor(c, 2)->size[0] != 1;
    if (status == CFX_OK && one) {  /* it stands for all targets */
        cfx_tensor *wide = cfx_tensor_new((cfx_dtype)all->dtype, cfxi_rt_tensor(c, 2)->size, 1,
                                          c->rt->allocator, c->err);
        status = wide ? cfxi_rt_copy(c->rt, wide, all, c->err) : CFX_E_NOMEM;
        cfx_tensor_release(all);
        all = wide;
    }
    if (status != CFX_OK) {
        cfx_tensor_release(all);
        return status;
    }
    target_loss(all, cfxi_rt_tensor(c, 2), cfxi_rt_float(c, 3));
    return cfxi_loss_reduce_losses(c, all, cfxi_loss_reduction_of(c, 4));
}
