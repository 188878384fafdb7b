/* plan_images.c - layouts of images: channels side by side as far as the program cannot tell.
 *
 * Convolutions with known weights get images with their channels last; what is element-wise, or
 * does not care, goes on from there. Whoever reads strides, and whoever is given results, gets the
 * layout that the program would have: the same memory with other strides, or a copy.
 */
#include "plan_builder.h"

bool cfxi_plan_keeps_layout(cfx_operator op, bool divides)
{
    switch ((int)op) {
    case CFX_OPID_reshape: case CFX_OPID_view: case CFX_OPID_alias: case CFX_OPID_chunk:
    case CFX_OPID_split: case CFX_OPID_len:
        return divides;
    case CFX_OPID_conv1d: case CFX_OPID_conv2d: case CFX_OPID_convolution:
    case CFX_OPID_batch_norm:
    case CFX_OPID_max_pool2d: case CFX_OPID_avg_pool2d: case CFX_OPID_adaptive_avg_pool2d:
    case CFX_OPID_dropout: case CFX_OPID_cat: case CFX_OPID_mean:
    case CFX_OPID_transpose: case CFX_OPID_permute: case CFX_OPID_layer_norm:
    case CFX_OPID_linear: case CFX_OPID_weight_linear: case CFX_OPID_getitem:
    case CFX_OPID_interpolate: case CFX_OPID_pad:
    case CFX_OPID_size: case CFX_OPID_conv_transpose2d:
    case CFX_OPID_quantize_per_tensor: case CFX_OPID_dequantize_per_tensor:
    case CFX_OPID_integer_conv: case CFX_OPID_integer_linear: case CFX_OPID_integer_add:
    case CFX_OPID_integer_mul: case CFX_OPID_integer_table: case CFX_OPID_integer_mean:
    case CFX_OPID_integer_avg_pool: case CFX_OPID_dynamic_linear:
        return true;
    default:
        return cfx_operator_flags(op) & CFX_OPERATOR_ELEMENTWISE;
    }
}

/* Another layout of a tensor, which was made before or is made now and noted in `made`: borrowed.
 * NULL with b->err set. */
static cfx_tensor *other_layout(cfxi_builder *b, cfxi_pointers *made, cfx_tensor *t,
                                cfx_memory_format format)
{
    cfx_tensor *other = cfxi_base_pointers_get(made, t);
    if (other)
        return other;
    const cfx_datum d = cfxi_plan_lay_as(b->rt, &b->planner, t, format, b->err);
    if (d.kind != CFX_DATUM_TENSOR)
        return NULL;
    if (cfxi_base_pointers_set(made, t, d.as.tensor, b->plan->allocator))
        return d.as.tensor;
    cfx_datum_release(d);
    return cfxi_base_nomem(b->err), NULL;
}

static cfx_datum permuted(cfxi_builder *b, cfx_datum d, const int64_t *order)
{
    cfx_datum args[2] = {d};
    cfx_datum items[CFX_MAX_DIMS];
    const size_t n = d.as.tensor->ndim;
    for (size_t i = 0; i < n; i++)
        items[i] = cfx_datum_int(order[i]);
    args[1] = cfx_datum_seq(CFX_DATUM_LIST, items, n, b->plan->allocator, b->err);
    const cfx_datum result =
        args[1].kind == CFX_DATUM_INVALID
            ? args[1]
            : cfxi_rt_call_planned(b->rt, &b->planner, CFX_OPID_permute, args, 2, b->err);
    cfx_datum_release(args[1]);
    return result;
}

/* Dimensions from that with the largest stride on, and where each of them is then. */
static void order_of(const cfx_tensor *t, int64_t *order, int64_t *back)
{
    for (size_t i = 0; i < t->ndim; i++) {
        size_t at = i;
        for (; at > 0 && t->stride[order[at - 1]] < t->stride[i]; at--)
            order[at] = order[at - 1];
        order[at] = (int64_t)i;
    }
    for (size_t i = 0; i < t->ndim; i++)
        back[order[i]] = (int64_t)i;
}

/* A copy of a tensor with the strides of `was`: dense, with its dimensions in any order. */
static cfx_datum laid_out_as(cfxi_builder *b, cfx_tensor *t, const cfx_tensor *was)
{
    int64_t order[CFX_MAX_DIMS];
    int64_t back[CFX_MAX_DIMS];
    order_of(was, order, back);
    const cfx_datum turned = permuted(b, cfx_datum_tensor(t), order);
    if (turned.kind == CFX_DATUM_INVALID)
        return turned;
    cfx_tensor *dense = other_layout(b, &b->back, turned.as.tensor, CFX_MEMORY_FORMAT_CONTIGUOUS);
    cfx_datum_release(turned);
    return dense ? permuted(b, cfx_datum_tensor(dense), back) : cfx_datum_invalid();
}

/* A tensor of the same memory, with the strides of `was`. Made before, or now and noted: borrowed.
 * NULL with b->err set. */
static cfx_tensor *other_strides(cfxi_builder *b, cfx_tensor *t, const cfx_tensor *was)
{
    cfx_tensor *other = cfxi_base_pointers_get(&b->back, t);
    if (other || cfxi_plan_list(b->plan, cfx_datum_tensor(t), b->err) != CFX_OK)
        return other;
    other = cfxi_plan_with_strides(t, was->stride, b->err);
    if (!other || cfxi_base_pointers_set(&b->back, t, other, b->plan->allocator))
        return other;
    cfx_tensor_release(other);
    return cfxi_base_nomem(b->err), NULL;
}

static bool has_strides(const cfx_tensor *t, const cfx_tensor *was)
{
    return memcmp(t->stride, was->stride, was->ndim * sizeof *was->stride) == 0;
}

/* A tensor that lies as the program would have it. Takes `d` over. */
static cfx_datum with_strides(cfxi_builder *b, cfx_datum d, const cfx_tensor *was)
{
    if (has_strides(d.as.tensor, was))
        return d;
    cfx_tensor *other = other_strides(b, d.as.tensor, was);
    cfx_datum_release(d);
    if (other && has_strides(other, was))
        return cfx_datum_tensor(cfx_tensor_retain(other));
    if (other)
        cfx_error_set(b->err, CFX_E_UNSUPPORTED, "strides that are not kept");
    return cfx_datum_invalid();
}

/* Whether a tensor, or one in a container, lies otherwise than `was`, which is the same. */
static bool lies_otherwise(cfx_datum d, cfx_datum was)
{
    size_t n;
    size_t m;
    const cfx_datum *items = cfx_datum_items(d, &n);
    const cfx_datum *others = cfx_datum_items(was, &m);
    for (size_t i = 0; n == m && i < n; i++)
        if (lies_otherwise(items[i], others[i]))
            return true;
    return cfxi_plan_is_planned(d) && was.kind == CFX_DATUM_TENSOR &&
           !has_strides(d.as.tensor, was.as.tensor);
}

/* A tensor as the program would have it, which is as `was`. */
static cfx_datum restored_tensor(void *ctx, cfx_tensor *t, cfx_datum was, cfx_error *err)
{
    cfxi_builder *b = ctx;
    cfx_datum result = cfx_datum_invalid();
    if (!cfxi_plan_is_planned(cfx_datum_tensor(t)) || was.kind != CFX_DATUM_TENSOR)
        return cfx_datum_tensor(cfx_tensor_retain(t));
    if (cfxi_plan_lie_alike(t, was.as.tensor))
        return with_strides(b, cfx_datum_tensor(cfx_tensor_retain(t)), was.as.tensor);
    if (cfx_tensor_is_contiguous(was.as.tensor)) {
        cfx_tensor *back = other_layout(b, &b->back, t, CFX_MEMORY_FORMAT_CONTIGUOUS);
        result = back ? cfx_datum_tensor(cfx_tensor_retain(back)) : result;
    } else {
        result = laid_out_as(b, t, was.as.tensor);
    }
    if (cfxi_plan_is_planned(result) && !cfxi_plan_lie_alike(result.as.tensor, was.as.tensor)) {
        cfx_datum_release(result);
        cfx_error_set(err, CFX_E_UNSUPPORTED, "strides that are not kept");
        return cfx_datum_invalid();
    }
    return cfxi_plan_is_planned(result) ? with_strides(b, result, was.as.tensor) : result;
}

cfx_datum cfxi_plan_restored(cfxi_builder *b, cfx_datum d, cfx_datum was)
{
    if (cfxi_tensor_is_seq(d) ? !lies_otherwise(d, was) : d.kind != CFX_DATUM_TENSOR)
        return d;
    const cfx_datum result =
        cfxi_plan_map(d, was, restored_tensor, b, b->plan->allocator, b->err);
    cfx_datum_release(d);  /* headers stay: steps have them */
    return result;
}

/* Which argument the weights of a convolution of images are; 0 if the operator is another. */
static size_t weights_of(cfx_operator op)
{
    switch ((int)op) {
    case CFX_OPID_conv2d: case CFX_OPID_convolution: return 1;
    case CFX_OPID_integer_conv: return 3;
    default: return 0;
    }
}

cfx_status cfxi_plan_turn_image(cfxi_builder *b, cfx_operator op)
{
    const cfx_datum x = b->stack[0];
    const size_t weights = weights_of(op);
    const bool is_conv = weights > 0 && b->depth > weights && cfxi_plan_is_planned(x) &&
                         x.as.tensor->ndim == 4 &&
                         (x.as.tensor->dtype == CFX_DTYPE_FLOAT32 || weights > 1) &&
                         !cfxi_plan_is_planned(b->stack[weights]);
    b->planner.finds_layouts = b->planner.finds_layouts || is_conv;
    if (!is_conv || !b->eager ||
        x.as.tensor->stride[1] == (int64_t)cfxi_tensor_itemsize(x.as.tensor))
        return CFX_OK;
    cfx_tensor *turned =
        other_layout(b, &b->turned, x.as.tensor, CFX_MEMORY_FORMAT_CHANNELS_LAST);
    if (!turned)
        return b->err->status;
    cfx_datum_release(x);
    b->stack[0] = cfx_datum_tensor(cfx_tensor_retain(turned));
    return CFX_OK;
}

static void forget(cfxi_builder *b, cfxi_pointers *made)
{
    size_t at = 0;
    for (cfx_tensor *t; (t = cfxi_base_pointers_next(made, &at)) != NULL;)
        cfx_tensor_release(t);
    cfxi_base_pointers_free(made, b->plan->allocator);
}

void cfxi_plan_forget_layouts(cfxi_builder *b)
{
    forget(b, &b->turned);
    forget(b, &b->back);
}
