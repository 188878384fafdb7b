/* memory_format.c - results in the memory format that an argument asks for. */
#include "view_impl.h"

cfx_status cfxi_rt_memory_format(cfxi_call *c, size_t i, size_t ndim,
                                          cfx_memory_format *out)
{
    cfx_datum d = c->args[i];
    bool known = cfxi_rt_is_none(c, i) ||
                 ((d.kind == CFX_DATUM_MEMORY_FORMAT || d.kind == CFX_DATUM_INT) && d.as.i >= 0 &&
                  d.as.i < CFX_MEMORY_FORMAT_COUNT);
    if (!known)
        return cfxi_fail(c, CFX_E_TYPE, "argument 'memory_format' must be torch.memory_format, not "
                         "%s", cfx_datum_kind_name((cfx_datum_kind)d.kind));
    *out = cfxi_rt_is_none(c, i) ? CFX_MEMORY_FORMAT_PRESERVE : (cfx_memory_format)d.as.i;
    if (*out == CFX_MEMORY_FORMAT_CHANNELS_LAST && ndim != 4)
        return cfxi_fail(c, CFX_E_SHAPE, "required rank 4 tensor to use channels_last format");
    if (*out == CFX_MEMORY_FORMAT_CHANNELS_LAST_3D && ndim != 5)
        return cfxi_fail(c, CFX_E_SHAPE, "required rank 5 tensor to use channels_last_3d format");
    return CFX_OK;
}

void cfxi_rt_channels_last_strides(cfx_tensor *t)
{
    static const uint8_t orders[2][5] = {{0, 2, 3, 1}, {0, 2, 3, 4, 1}};
    cfxi_tensor_ordered_strides(t->size, t->ndim, cfxi_tensor_itemsize(t), orders[t->ndim - 4],
                                t->stride);
}

cfx_status cfxi_rt_result_format(cfxi_call *c, size_t i, cfx_dtype dtype,
                                          const cfx_tensor *t, cfx_memory_format format)
{
    if (format == CFX_MEMORY_FORMAT_PRESERVE)
        return cfxi_rt_result_like(c, i, dtype, t);
    CFX_TRY(cfxi_rt_result(c, i, dtype, t->size, t->ndim));
    if (format != CFX_MEMORY_FORMAT_CONTIGUOUS && !c->infer)
        cfxi_rt_channels_last_strides(cfxi_rt_result_at(c, i));
    return CFX_OK;
}
