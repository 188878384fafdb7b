/* export_parts.c - what is known of calls whose own rules need sizes that are not known.
 *
 * How many parts split and unbind give is not known then, but the graph says which of them it uses:
 * so many are written. Attention takes the numbers of heads as they come.
 */
#include "dim/dim_impl.h"
#include "export_impl.h"

/* What a program has checked len(parts) to be; 0 if it has not. */
static size_t checked_length(const cfx_node *len)
{
    for (const cfx_use *u = cfx_node_first_use(len); u; u = cfx_use_next(u)) {
        const cfx_value other = cfx_node_arg(cfx_use_user(u), 1);
        if (cfx_node_operator(cfx_use_user(u)) == CFX_OPID_eq && other.kind == CFX_KIND_INT)
            return other.as.i > 0 ? (size_t)other.as.i : 0;
    }
    return 0;
}

/* How many parts the users of the node read, or expect; 0 if that cannot be told. */
static size_t count_used(const cfx_node *node)
{
    int64_t most = -1;
    for (const cfx_use *u = cfx_node_first_use(node); u; u = cfx_use_next(u)) {
        const cfx_node *user = cfx_use_user(u);
        const cfx_value index = cfx_node_arg(user, 1);
        if (cfx_node_operator(user) == CFX_OPID_check_length && index.kind == CFX_KIND_INT)
            return cfx_node_num_args(user) == 2 && index.as.i > 0 ? (size_t)index.as.i : 0;
        if (cfx_node_operator(user) == CFX_OPID_len)
            return checked_length(user);
        if (cfx_node_operator(user) != CFX_OPID_getitem || index.kind != CFX_KIND_INT ||
            index.as.i < 0)
            return 0;
        most = index.as.i > most ? index.as.i : most;
    }
    return (size_t)(most + 1);
}

/* A part of a split has the size that was asked for, but the last may have less. */
static cfx_datum describe_part(cfxi_export_call *c, const cfxi_ev *x, int64_t dim, int64_t size)
{
    int64_t sizes[CFX_MAX_DIMS];
    size_t n = 0;
    for (int i = 0; i < x->rank; i++) {
        if (i != dim)
            sizes[n++] = x->sizes[i];
        else if (c->op == CFX_OPID_split)
            sizes[n++] = size;
    }
    return cfx_datum_tensor(cfx_tensor_new_abstract(x->dtype, sizes, n, c->x->allocator,
                                                    c->x->err));
}

/* The sizes of the query, and the size of a value. */
static bool describe_attention(cfxi_export_call *c, cfxi_ev *const *given, size_t n, cfx_error *err)
{
    int64_t sizes[CFX_MAX_DIMS];
    if (n < 3 || given[0]->rank < 2 || given[2]->rank != given[0]->rank)
        return false;
    memcpy(sizes, given[0]->sizes, (size_t)given[0]->rank * sizeof *sizes);
    sizes[given[0]->rank - 1] = given[2]->sizes[given[2]->rank - 1];
    *err = (cfx_error){0};
    c->result = cfx_datum_tensor(cfx_tensor_new_abstract(
        given[0]->dtype, sizes, (size_t)given[0]->rank, c->x->allocator, err));
    return c->result.kind != CFX_DATUM_INVALID;
}

bool cfxi_export_described(cfxi_export_call *c, cfxi_ev *const *given, size_t n, cfx_error *err)
{
    if (c->op == CFX_OPID_scaled_dot_product_attention)
        return describe_attention(c, given, n, err);
    const size_t at = c->op == CFX_OPID_split ? 2 : 1;
    if ((c->op != CFX_OPID_split && c->op != CFX_OPID_unbind) || !c->node ||
        given[0]->datum.kind != CFX_DATUM_TENSOR)
        return false;
    const cfxi_ev *x = given[0];
    const size_t count = cfx_node_operator(c->node) == c->op ? count_used(c->node) : 0;
    int64_t dim = n > at && cfxi_export_is_known(given[at]) ? given[at]->datum.as.i : 0;
    dim += dim < 0 ? x->rank : 0;
    cfx_datum *parts = count > 0 ? cfxi_export_room(c->x, count, sizeof *parts) : NULL;
    if (!parts)
        return false;
    const bool known = c->op == CFX_OPID_split && cfxi_export_is_known(given[1]);
    for (size_t i = 0; i < count; i++) {
        const int64_t size = known && i + 1 < count ? given[1]->datum.as.i
                                                    : cfxi_dim_fresh(c->x->dims, c->x->err);
        parts[i] = cfxi_export_own(c->x, describe_part(c, x, dim, size));
    }
    *err = (cfx_error){0};
    c->result = cfx_datum_seq(CFX_DATUM_LIST, parts, count, c->x->allocator, err);
    return c->result.kind != CFX_DATUM_INVALID;
}
