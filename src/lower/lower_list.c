/* lower_list.c - methods that change a list, as the rows that change one:
 *
 *     items.append(x)        items += [x]
 *     items.insert(i, x)     items[i:i] = [x]
 *     items.pop(i)           items[i], and del items[i]
 *     items.sort()           items[:] = sorted(items)
 *
 * It is the same list before and after, for all who hold it.
 */
#include "lower_impl.h"

static cfx_value whole(cfxi_lower *l)
{
    const cfx_value none = cfx_value_none();
    return cfx_value_slice(l->g, none, none, none, l->err);
}

static cfx_value add_to(cfxi_lower *l, cfx_node *n, cfx_value list, cfx_value more)
{
    const cfx_value args[] = {list, more};
    return cfxi_lower_row(l, n, CFX_OPID_add_, args, 2);
}

/* list[part] = items */
static cfx_value put_in(cfxi_lower *l, cfx_node *n, cfx_value list, cfx_value part, cfx_value items)
{
    const cfx_value args[] = {list, part, items};
    return cfxi_lower_row(l, n, CFX_OPID_setitem, args, 3);
}

static cfx_value append(cfxi_lower *l, cfx_node *n, const cfx_value *a)
{
    return add_to(l, n, a[0], cfx_value_list(l->g, &a[1], 1, l->err));
}

static cfx_value extend(cfxi_lower *l, cfx_node *n, const cfx_value *a)
{
    return add_to(l, n, a[0], cfxi_lower_row(l, n, CFX_OPID_list, &a[1], 1));
}

static cfx_value insert(cfxi_lower *l, cfx_node *n, const cfx_value *a)
{
    return put_in(l, n, a[0], cfx_value_slice(l->g, a[1], a[1], cfx_value_none(), l->err),
                  cfx_value_list(l->g, &a[2], 1, l->err));
}

static cfx_value pop_at(cfxi_lower *l, cfx_node *n, const cfx_value *a)
{
    const cfx_value item = cfxi_lower_row(l, n, CFX_OPID_getitem, a, 2);
    const cfx_value done = cfxi_lower_row(l, n, CFX_OPID_delitem, a, 2);
    return done.kind == CFX_KIND_INVALID ? done : item;
}

static cfx_value pop(cfxi_lower *l, cfx_node *n, const cfx_value *a)
{
    const cfx_value args[] = {a[0], cfx_value_int(-1)};
    return pop_at(l, n, args);
}

static cfx_value clear(cfxi_lower *l, cfx_node *n, const cfx_value *a)
{
    const cfx_value args[] = {a[0], whole(l)};
    return cfxi_lower_row(l, n, CFX_OPID_delitem, args, 2);
}

static cfx_value reverse(cfxi_lower *l, cfx_node *n, const cfx_value *a)
{
    const cfx_value none = cfx_value_none();
    const cfx_value args[] = {
        a[0], cfx_value_slice(l->g, none, none, cfx_value_int(-1), l->err)};
    return put_in(l, n, a[0], whole(l), cfxi_lower_row(l, n, CFX_OPID_getitem, args, 2));
}

static cfx_value sort(cfxi_lower *l, cfx_node *n, const cfx_value *a)
{
    return put_in(l, n, a[0], whole(l), cfxi_lower_row(l, n, CFX_OPID_builtin_sorted, a, 1));
}

static const struct {
    const char *name;
    size_t args;  /* the list is the first */
    bool gives;   /* what the calls give; else None */
    cfx_value (*lower)(cfxi_lower *l, cfx_node *n, const cfx_value *args);
} methods[] = {
    {"append", 2, false, append}, {"extend", 2, false, extend},  {"insert", 3, false, insert},
    {"pop", 1, true, pop},        {"pop", 2, true, pop_at},      {"clear", 1, false, clear},
    {"reverse", 1, false, reverse}, {"sort", 1, false, sort},
};

/* Only what is known to be a list is meant as one: a tensor has a method `sort`, too, and an input
 * may be a deque, which the runtime does not have. */
static bool is_list(const cfxi_lower *l, cfx_value v)
{
    const cfx_operator op = v.kind == CFX_KIND_NODE ? cfx_node_operator(v.as.node) : CFX_OPID_NONE;
    const cfxi_what what = cfxi_lower_what(l, v);
    return v.kind == CFX_KIND_LIST || op == CFX_OPID_tolist || op == CFX_OPID_list ||
           op == CFX_OPID_builtin_sorted || what == CFXI_WHAT_NUMBERS || what == CFXI_WHAT_TENSORS;
}

/* The item of a list or dict that the graph has made, with a method that only lists have: of what
 * the runtime has, nothing else can be meant. */
static bool is_item_with(const cfxi_lower *l, cfx_value v, const char *method)
{
    static const char names[][8] = {"append", "extend", "insert", "reverse"};
    const cfx_operator op = v.kind == CFX_KIND_NODE ? cfx_node_operator(v.as.node) : CFX_OPID_NONE;
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        found = found || strcmp(names[i], method) == 0;
    return found && (op == CFX_OPID_getitem || op == CFX_OPID_dict_get) &&
           cfxi_lower_what(l, v) == CFXI_WHAT_ANY;
}

cfx_status cfxi_lower_list_method(cfxi_lower *l, cfx_node *n, bool *done)
{
    size_t count;
    size_t i = 0;
    const size_t size = sizeof methods / sizeof *methods;
    const cfx_value *args = cfx_value_items(cfx_node_args(n), &count);
    *done = false;
    if (n->op != CFX_OP_CALL_METHOD || (n->kwargs && n->kwargs->size > 0) || count == 0)
        return CFX_OK;
    const char *name = cfx_node_target(n, NULL, NULL);
    if (!is_list(l, args[0]) && !is_item_with(l, args[0], name))
        return CFX_OK;
    while (i < size && (strcmp(methods[i].name, name) != 0 || methods[i].args != count))
        i++;
    if (i == size)
        return CFX_OK;
    *done = true;
    cfx_value given[3];
    memcpy(given, args, count * sizeof *args);
    const cfx_value result = methods[i].lower(l, n, given);
    if (result.kind == CFX_KIND_INVALID)
        return l->err->status;
    const cfx_value v = methods[i].gives ? result : cfx_value_none();
    CFX_TRY(cfx_node_replace_uses(n, v, NULL, NULL, NULL, l->err));
    return cfx_graph_erase(l->g, n, l->err);
}
