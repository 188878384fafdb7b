/* program_value.c - constants of a graph as run-time values. */
#include "program_impl.h"

enum { MOST_OF_RANGE = 1 << 20 };

bool cfxi_rt_seq_kind(cfx_kind kind, cfx_datum_kind *out)
{
    switch (kind) {
    case CFX_KIND_LIST: *out = CFX_DATUM_LIST; return true;
    case CFX_KIND_TUPLE:
    case CFX_KIND_SET:
    case CFX_KIND_FROZENSET:
    case CFX_KIND_NAMEDTUPLE: *out = CFX_DATUM_TUPLE; return true;
    case CFX_KIND_DICT: *out = CFX_DATUM_DICT; return true;
    case CFX_KIND_SLICE: *out = CFX_DATUM_SLICE; return true;
    default: return false;
    }
}

static cfx_datum refuse(cfx_value v, cfx_error *err)
{
    cfx_error_set(err, CFX_E_TYPE, "a value of kind %s cannot be used without its host language",
                  cfx_kind_name((cfx_kind)v.kind));
    return cfx_datum_invalid();
}

/* A range as the list of its numbers, as iterating would give them. */
static cfx_datum from_range(cfx_value v, const cfx_allocator *allocator, cfx_error *err)
{
    size_t n;
    const cfx_value *part = cfx_value_items(v, &n);
    if (n != 3 || part[0].kind != CFX_KIND_INT || part[1].kind != CFX_KIND_INT ||
        part[2].kind != CFX_KIND_INT || part[2].as.i == 0)
        return refuse(v, err);
    const uint64_t start = (uint64_t)part[0].as.i;
    const uint64_t stop = (uint64_t)part[1].as.i;
    const uint64_t step = (uint64_t)part[2].as.i;
    uint64_t count = 0;  /* differences of any two numbers fit an unsigned one */
    if (part[2].as.i > 0 && part[0].as.i < part[1].as.i)
        count = (stop - start - 1) / step + 1;
    else if (part[2].as.i < 0 && part[0].as.i > part[1].as.i)
        count = (start - stop - 1) / (0 - step) + 1;
    if (count > MOST_OF_RANGE)
        return refuse(v, err);
    cfxi_vec items = {0};
    cfx_datum list = cfx_datum_invalid();
    if (!cfxi_base_vec_reserve(&items, (size_t)count + 1, sizeof list, allocator)) {
        cfxi_base_nomem(err);
        return list;
    }
    for (uint64_t k = 0; k < count; k++)
        ((cfx_datum *)items.data)[items.size++] = cfx_datum_int((int64_t)(start + k * step));
    list = cfx_datum_seq(CFX_DATUM_LIST, items.data, items.size, allocator, err);
    cfxi_base_vec_free(&items, sizeof list, allocator);
    return list;
}

cfx_datum cfxi_rt_datum_from_value(cfx_value v, const cfx_allocator *allocator, cfx_error *err)
{
    size_t n;
    switch ((cfx_kind)v.kind) {
    case CFX_KIND_NONE: return cfx_datum_none();
    case CFX_KIND_ELLIPSIS: return cfx_datum_scalar(CFX_DATUM_ELLIPSIS, 0);
    case CFX_KIND_BOOL: return cfx_datum_bool(v.as.b);
    case CFX_KIND_INT: return cfx_datum_int(v.as.i);
    case CFX_KIND_FLOAT: return cfx_datum_float(v.as.f);
    case CFX_KIND_DTYPE: return cfx_datum_scalar(CFX_DATUM_DTYPE, v.as.i);
    case CFX_KIND_LAYOUT: return cfx_datum_scalar(CFX_DATUM_LAYOUT, v.as.i);
    case CFX_KIND_MEMORY_FORMAT: return cfx_datum_scalar(CFX_DATUM_MEMORY_FORMAT, v.as.i);
    case CFX_KIND_STR:
    case CFX_KIND_DEVICE: {
        const char *text = cfx_value_text(v, &n);
        return cfx_datum_from_text(v.kind == CFX_KIND_STR ? CFX_DATUM_STR : CFX_DATUM_DEVICE, text,
                                   n, allocator, err);
    }
    case CFX_KIND_COMPLEX: {
        const cfx_value *part = cfx_value_items(v, &n);
        return cfx_datum_complex(part[0].as.f, part[1].as.f);
    }
    case CFX_KIND_RANGE: return from_range(v, allocator, err);
    default: return refuse(v, err);
    }
}
