/* chosen_call.c - calls of what data choose from a container: layers[i](x), {"sin":
 * torch.sin}[name](x).
 *
 * No graph value is a function or a module. But if all that can be chosen is known, each is called
 * on a way of its own:
 *     n = [0, 1, 2][i]               raises what the container would, and i may be negative
 *     if n == 0: layers[0](x)  elif n == 1: layers[1](x)  else: layers[2](x)
 */
#include "evaluate_impl.h"

typedef struct choice {
    const cfxi_chosen *of;
    cfx_object *number;      /* a graph value: which one it is */
    cfx_call_args args;
    size_t i;
} choice;

/* Whether a value is nothing that a graph could hold. */
static bool is_called_only(cfx_evaluator *ev, cfx_object *o)
{
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, o);
    cfx_script_callee callee = {0};
    if (cfxi_eval_node(ev, o) || (kind != CFX_OBJECT_OTHER && kind != CFX_OBJECT_CLASS &&
                                  kind != CFX_OBJECT_MODULE))
        return false;
    return kind != CFX_OBJECT_OTHER ||
           ev->w->callee(ev->w->ctx, o, &callee, ev->err) == CFX_OK;
}

/* Whether it is a container of torch.nn's own: 0, or 1; 2: with keys. */
static int is_of_layers(cfx_evaluator *ev, cfx_object *o)
{
    static const char lists[][12] = {"ModuleList", "Sequential"};
    if (ev->w->kind(ev->w->ctx, o) != CFX_OBJECT_MODULE)
        return 0;
    const char *name = ev->w->type_name(ev->w->ctx, o);
    if (strcmp(name, "ModuleDict") == 0)
        return 2;
    return strcmp(name, lists[0]) == 0 || strcmp(name, lists[1]) == 0;
}

/* Of a ModuleDict: its keys are what it gives. */
static bool take_layers(cfx_evaluator *ev, cfx_object *o, cfxi_chosen *c)
{
    if (!cfxi_eval_items(ev, o, &c->keys, &c->n))
        return false;
    c->items = cfxi_eval_ev_alloc(ev, (c->n + 1) * sizeof *c->items);
    for (size_t i = 0; c->items && i < c->n; i++)
        if (!(c->items[i] = cfxi_eval_item(ev, o, c->keys[i])))
            return false;
    return c->items != NULL;
}

/* Of a dict: keys and values by turns. */
static bool take_pairs(cfx_evaluator *ev, cfx_object *o, cfxi_chosen *c)
{
    cfx_object **pairs;
    size_t n;
    if (!cfxi_eval_contents(ev, o, &pairs, &n))
        return false;
    c->n = n / 2;
    c->keys = cfxi_eval_ev_alloc(ev, (c->n + 1) * sizeof *c->keys);
    c->items = cfxi_eval_ev_alloc(ev, (c->n + 1) * sizeof *c->items);
    for (size_t i = 0; c->keys && c->items && i < c->n; i++) {
        c->keys[i] = pairs[2 * i];
        c->items[i] = pairs[2 * i + 1];
    }
    return c->keys && c->items;
}

bool cfxi_eval_find_chosen(cfx_evaluator *ev, cfx_object *o, cfx_object *key, cfxi_chosen *c)
{
    *c = (cfxi_chosen){0};
    if (cfxi_eval_node(ev, o) || !cfxi_eval_node(ev, key))
        return true;
    const cfx_object_kind kind = ev->w->kind(ev->w->ctx, o);
    const int layers = is_of_layers(ev, o);
    bool fine = true;
    if (layers == 2)
        fine = take_layers(ev, o, c);
    else if (layers || kind == CFX_OBJECT_LIST || kind == CFX_OBJECT_TUPLE)
        fine = cfxi_eval_items(ev, o, &c->items, &c->n);
    else if (kind == CFX_OBJECT_DICT)
        fine = take_pairs(ev, o, c);
    for (size_t i = 0; fine && i < c->n; i++)
        if (!is_called_only(ev, c->items[i]))
            c->n = 0;
    return fine && ev->err->status == CFX_OK;
}

/* The numbers of the items, in a list or by their keys, at the key. */
static cfx_object *number_at(cfx_evaluator *ev, const cfxi_chosen *c, cfx_object *key)
{
    const size_t step = c->keys ? 2 : 1;
    cfx_object **numbers = cfxi_eval_ev_alloc(ev, (step * c->n + 1) * sizeof *numbers);
    for (size_t i = 0; numbers && i < c->n; i++) {
        if (c->keys)
            numbers[2 * i] = c->keys[i];
        if (!(numbers[step * i + step - 1] = cfxi_eval_int(ev, (int64_t)i)))
            return NULL;
    }
    cfx_object *all = numbers ? cfxi_eval_build(ev, c->keys ? CFX_BUILD_DICT : CFX_BUILD_LIST,
                                                numbers, step * c->n)
                              : NULL;
    return all ? cfxi_eval_item(ev, all, key) : NULL;
}

static cfx_object *call_one(cfx_evaluator *ev, choice c);

static cfxi_flow way_this(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    const choice *c = ctx;
    *value = cfxi_eval_call(ev, c->of->items[c->i], c->args);
    return *value ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

static cfxi_flow way_later(cfx_evaluator *ev, void *ctx, cfx_object **value)
{
    choice next = *(const choice *)ctx;
    next.i++;
    *value = call_one(ev, next);
    return *value ? CFXI_FLOW_ON : cfxi_eval_failed_flow(ev);
}

/* Calls the i-th, or one behind it. */
static cfx_object *call_one(cfx_evaluator *ev, choice c)
{
    cfx_object *value = NULL;
    if (c.i + 1 == c.of->n)
        return cfxi_eval_call(ev, c.of->items[c.i], c.args);
    cfx_object *i = cfxi_eval_int(ev, (int64_t)c.i);
    cfx_object *is = i ? cfxi_eval_compare(ev, CFX_SIGN_EQ, c.number, i) : NULL;
    if (!is || cfxi_eval_branch(ev, is, way_this, way_later, &c, &value) != CFXI_FLOW_ON)
        return NULL;
    return value;
}

cfx_object *cfxi_eval_call_chosen(cfx_evaluator *ev, const cfxi_chosen *c, cfx_object *key,
                                  cfx_call_args args)
{
    choice first = {.of = c, .number = number_at(ev, c, key), .args = args};
    return first.number ? call_one(ev, first) : NULL;
}
