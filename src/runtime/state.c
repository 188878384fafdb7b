/* state.c - tensors by name: the parameters and buffers of a model. */
#include "named_impl.h"

struct cfx_state {
    cfxi_named tensors;
};

cfx_state *cfx_state_new(const cfx_allocator *allocator, cfx_error *err)
{
    allocator = cfxi_base_allocator(allocator);
    cfx_state *s = cfxi_base_alloc(allocator, sizeof *s);
    if (!s) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *s = (cfx_state){.tensors = cfxi_rt_named_new(allocator)};
    return s;
}

void cfx_state_free(cfx_state *s)
{
    if (!s)
        return;
    cfxi_rt_named_free(&s->tensors);
    cfxi_base_free(s->tensors.allocator, s, sizeof *s);
}

cfx_status cfx_state_set(cfx_state *s, const char *name, cfx_tensor *t, cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(s, "state", err));
    CFX_TRY(cfxi_base_expect(t, "tensor", err));
    return cfxi_rt_named_set(&s->tensors, name, cfx_datum_tensor(t), err);
}

cfx_tensor *cfx_state_get(const cfx_state *s, const char *name)
{
    const cfx_datum found = s ? cfxi_rt_named_get(&s->tensors, name) : cfx_datum_invalid();
    return found.kind == CFX_DATUM_TENSOR ? found.as.tensor : NULL;
}

size_t cfx_state_size(const cfx_state *s) { return s->tensors.entries.size; }

const char *cfx_state_entry(const cfx_state *s, size_t i, cfx_tensor **t)
{
    cfx_datum value = cfx_datum_invalid();
    const char *name = cfxi_rt_named_entry(&s->tensors, i, &value);
    if (t && name)
        *t = value.as.tensor;
    return name;
}
