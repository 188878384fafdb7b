/* row_chain.c - calls that chain, for rows that are made of others. */
#include "runtime_impl.h"

enum { MOST_MORE = 4 };

cfx_tensor *cfxi_rt_then(cfxi_call *c, cfx_operator op, cfx_tensor *x, const cfx_datum *more,
                         size_t n)
{
    cfx_datum args[1 + MOST_MORE];
    if (!x)
        return NULL;
    args[0] = cfx_datum_tensor(x);
    for (size_t i = 0; i < n && i < MOST_MORE; i++)
        args[1 + i] = more[i];
    cfx_tensor *y = cfxi_rt_sub_tensor(c, op, args, n + 1);
    cfx_tensor_release(x);
    return y;
}

cfx_tensor *cfxi_rt_then_with(cfxi_call *c, cfx_operator op, cfx_tensor *x, cfx_tensor *y)
{
    const cfx_datum other = cfx_datum_tensor(y);
    cfx_tensor *z = y ? cfxi_rt_then(c, op, x, &other, 1) : NULL;
    if (!y)
        cfx_tensor_release(x);
    cfx_tensor_release(y);
    return z;
}

cfx_tensor *cfxi_rt_then_list(cfxi_call *c, cfx_operator op, cfx_tensor *x, const int64_t *numbers,
                              size_t n)
{
    cfx_datum items[CFX_MAX_DIMS];
    for (size_t i = 0; i < n; i++)
        items[i] = cfx_datum_int(numbers[i]);
    cfx_datum list = cfx_datum_seq(CFX_DATUM_LIST, items, n, c->rt->allocator, c->err);
    const bool made = list.kind != CFX_DATUM_INVALID;
    cfx_tensor *y = made ? cfxi_rt_then(c, op, x, &list, 1) : NULL;
    if (!made)
        cfx_tensor_release(x);
    cfx_datum_release(list);
    return y;
}
