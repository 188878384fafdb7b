/* lower_dict.c - views of dicts: d.keys(), d.values(), d.items().
 *
 * A view shows the dict as it is when somebody looks. The runtime has lists of what it held when
 * the view was made. So each view must be read before anything can change the dict.
 */
#include "lower_impl.h"

#include "analysis/analysis_impl.h"

/* Whether nothing that it does can change a dict. */
static bool only_reads(const cfx_node *n)
{
    const cfx_operator op = cfx_node_operator(n);
    return n->op == CFX_OP_PLACEHOLDER || n->op == CFX_OP_GET_ATTR ||
           (op != CFX_OPID_NONE && cfx_operator_regions(op) == 0 &&
            !cfxi_analysis_operator_writes(op));
}

static bool is_view(const cfx_node *n)
{
    const cfx_operator op = cfx_node_operator(n);
    return op == CFX_OPID_dict_keys || op == CFX_OPID_dict_values || op == CFX_OPID_dict_items;
}

cfx_status cfxi_lower_check_view(cfxi_lower *l, cfx_node *n, bool *refused)
{
    size_t left = n->n_users;
    *refused = false;
    if (!is_view(n))
        return CFX_OK;
    for (const cfx_node *m = cfx_node_next(n); m && left > 0; m = cfx_node_next(m)) {
        bool reads = false;
        for (const cfx_use *use = cfx_node_first_use(n); use && !reads; use = cfx_use_next(use))
            reads = use->user == m;
        if (m->op == CFX_OP_OUTPUT)
            break;
        left -= reads;
        if (!only_reads(m))
            break;
    }
    if (left == 0)
        return CFX_OK;
    *refused = true;
    return cfxi_lower_refuse(l, n, "a program in C has lists of keys, values and items, but no "
                             "views of a dict that may change; write list(d.items())");
}
