/* export_writes.c - calls that write to tensors, as ONNX has only values.
 *
 * A tensor that shares memory with another knows how it was made from it (its view). Who writes to
 * a tensor gives it a new value; if it is a view, the elements go back to their places in what it
 * is a view of. To find those places, the view is made once more, of the numbers 0, 1, 2, ... in
 * the place of the elements:
 *
 *     x[:, 0] = 1     ->     x = ScatterElements(x, (0 ... n)[:, 0], 1), flat
 *
 * Other views of the same memory are made anew when someone asks for them next.
 */
#include "export_impl.h"

cfxi_ev *cfxi_export_root(cfxi_ev *v)
{
    while (v->view)
        v = v->view->base;
    return v;
}

/* Rows that give a view only if the layout allows it: a copy else. */
static bool may_copy(const cfxi_export_call *c)
{
    switch ((int)c->op) {
    case CFX_OPID_reshape: case CFX_OPID_flatten: case CFX_OPID_contiguous: case CFX_OPID_ravel:
    case CFX_OPID_reshape_as: return !cfx_tensor_is_contiguous(c->args[0]->datum.as.tensor);
    case CFX_OPID_to: case CFX_OPID_to_device: case CFX_OPID_to_layout: case CFX_OPID_to_other:
    case CFX_OPID_type_as: case CFX_OPID_cast_float: case CFX_OPID_cast_half:
    case CFX_OPID_cast_bfloat16: case CFX_OPID_cast_double: case CFX_OPID_cast_int:
    case CFX_OPID_cast_long: case CFX_OPID_cast_bool: case CFX_OPID_cast_short:
    case CFX_OPID_cast_char: case CFX_OPID_cast_byte: case CFX_OPID_cpu:
        return cfxi_export_result_dtype(c) != cfxi_export_dtype(c->args[0]);
    default: return false;
    }
}

static bool has_tensor_index(const cfxi_ev *index)
{
    for (size_t i = 0; i < index->n; i++)
        if (has_tensor_index(index->items[i]))
            return true;
    return index->datum.kind == CFX_DATUM_TENSOR;
}

void cfxi_export_note_view(cfxi_exporter *x, cfxi_ev *v, const cfxi_export_call *c, size_t item)
{
    cfx_schema_param first;
    cfx_schema_param result;
    if (c->n == 0 || c->args[0]->datum.kind != CFX_DATUM_TENSOR || may_copy(c) ||
        !cfx_operator_param(c->op, 0, &first) || !cfx_operator_result(c->op, 0, &result) ||
        !first.alias || first.alias != result.alias ||
        (c->op == CFX_OPID_getitem && has_tensor_index(c->args[1])))
        return;
    for (size_t i = 0; i < v->n; i++)
        cfxi_export_note_view(x, v->items[i], c, i);
    if (v->n > 0 || v->datum.kind != CFX_DATUM_TENSOR)
        return;
    cfxi_export_alias *view = cfxi_export_room(x, 1, sizeof *view);
    if (!view)
        return;
    *view = (cfxi_export_alias){c->args[0], c->op, c->args, c->n, item, c->node};
    v->view = view;
    view->base->viewed = true;
    v->seen = cfxi_export_root(v)->version;
}

cfxi_ev *cfxi_export_reshape_in_place(cfxi_exporter *x, cfxi_ev *v, const cfxi_ev *made)
{
    cfxi_ev *before = cfxi_export_room(x, 1, sizeof *before);
    cfxi_export_alias *view = cfxi_export_room(x, 1, sizeof *view);
    cfxi_ev **args = cfxi_export_room(x, made->view->n, sizeof *args);
    if (!before || !view || !args)
        return &x->broken;
    *before = *v;
    *view = *made->view;
    memcpy(args, view->args, view->n * sizeof *args);
    view->args = args;
    view->base = args[0] = before;
    *v = *made;
    v->view = view;
    v->viewed = false;
    return v;
}

/* The view of other elements: `base` in the place of what it is of. */
static cfxi_ev *view_of(cfxi_exporter *x, const cfxi_export_alias *view, cfxi_ev *base)
{
    cfxi_ev **args = cfxi_export_room(x, view->n, sizeof *args);
    if (!args)
        return &x->broken;
    memcpy(args, view->args, view->n * sizeof *args);
    args[0] = base;
    cfxi_ev *made = cfxi_export_apply(x, view->node, view->op, args, view->n);
    return view->item == SIZE_MAX || made->broken ? made : made->items[view->item];
}

cfxi_ev *cfxi_export_fresh(cfxi_exporter *x, cfxi_ev *v)
{
    if (!v->view || (v->seen == cfxi_export_root(v)->version &&
                     (!v->name || cfxi_export_is_visible(x, v->scope))))
        return v;
    const uint32_t now = cfxi_export_root(v)->version;
    cfxi_ev *made = view_of(x, v->view, cfxi_export_fresh(x, v->view->base));
    v->seen = now;
    v->name = made->name;
    v->scope = made->scope;
    v->broken = made->broken;
    v->shape = NULL;
    return v;
}

/* A value that stands for the numbers of the elements of `base`. */
static cfxi_ev *numbered(cfxi_export_call *c, const cfxi_ev *base, cfxi_ev *flat, cfxi_ev *shape)
{
    cfxi_ev *count = NODE("Size", flat);
    cfxi_ev *made = NODE("Reshape", NODE("Range", INT(0), count, INT(1)), shape);
    return cfxi_export_made(c->x, made, CFX_DTYPE_INT64, base->sizes, base->rank);
}

/* `base` with `elements` where the view shows it: all of it, or some. */
static cfxi_ev *put_back(cfxi_export_call *c, const cfxi_export_alias *view, cfxi_ev *elements)
{
    if (view->op == CFX_OPID_alias || view->op == CFX_OPID_detach)
        return elements;
    cfxi_ev *base = cfxi_export_fresh(c->x, view->base);
    cfxi_ev *shape = SHAPE(base);
    cfxi_ev *flat = NODE("Reshape", base, INTS(-1));
    cfxi_ev *numbers = view_of(c->x, view, numbered(c, base, flat, shape));
    cfxi_ev *places = NODE("Reshape", numbers, INTS(-1));
    cfxi_ev *all = NODE("ScatterElements", flat, places, NODE("Reshape", elements, INTS(-1)));
    SET_INT("axis", 0);
    return NODE("Reshape", all, shape);
}

void cfxi_export_rename(cfxi_ev *root, const cfxi_ev *made)
{
    root->name = made->name;
    root->scope = made->scope;
    root->broken = made->broken;
    root->path = NULL;
    root->shape = NULL;
}

static void take(cfxi_ev *v, const cfxi_ev *made, uint32_t version)
{
    cfxi_export_rename(v, made);
    v->seen = version;
}

/* A tensor of the module is state from now on: what it has in the file is the default of an input
 * of that name. */
static void keep(cfxi_exporter *x, cfxi_ev *root)
{
    const char *name = cfxi_export_name(x, root);
    cfxi_onnx_type *type = cfxi_export_type(x, root, true);
    if (x->failed || !type ||
        !cfxi_base_vec_reserve(&x->kept, 1, sizeof(cfxi_export_kept), x->allocator)) {
        cfxi_export_fail(x);
        return;
    }
    ((cfxi_export_kept *)x->kept.data)[x->kept.size++] = (cfxi_export_kept){root, name, type};
}

/* ---- tensors that may be the same ---------------------------------------------------------- */

static void add_partner(cfxi_exporter *x, cfxi_ev *a, cfxi_ev *b)
{
    cfxi_export_partner *p = cfxi_export_room(x, 1, sizeof *p);
    if (!p)
        return;
    *p = (cfxi_export_partner){b, a->partners};
    a->partners = p;
}

void cfxi_export_partner_with(cfxi_exporter *x, cfxi_ev *a, cfxi_ev *b)
{
    a = cfxi_export_root(a);
    b = cfxi_export_root(b);
    if (a == b)
        return;
    add_partner(x, a, b);
    add_partner(x, b, a);
}

/* The partners of a tensor that is written to, and theirs, are not known any more. False: one of
 * them is the model's own. */
static bool spoil_partners(cfxi_exporter *x, cfxi_ev *root)
{
    cfxi_vec all = {0};
    bool good = true;
    const cfxi_ev *at = root;
    for (size_t next = 0; at && good; next++) {
        for (const cfxi_export_partner *p = at->partners; p && good; p = p->next) {
            cfxi_ev *other = cfxi_export_root(p->of);
            if (other == root || other->stale)
                continue;
            other->stale = true;
            good = !other->path && cfxi_base_vec_reserve(&all, 1, sizeof other, x->allocator);
            if (good)
                ((cfxi_ev **)all.data)[all.size++] = other;
            else if (!other->path)
                cfxi_export_fail(x);
        }
        at = next < all.size ? ((cfxi_ev **)all.data)[next] : NULL;
    }
    cfxi_base_vec_free(&all, sizeof(cfxi_ev *), x->allocator);
    return good;
}

/* ---- what a branch or a loop writes to ----------------------------------------------------- */

void cfxi_export_note_written(cfxi_exporter *x, cfxi_ev *root)
{
    cfxi_vec *written = &x->scope->written;
    if (!cfxi_base_vec_reserve(written, 1, sizeof(cfxi_export_written), x->allocator)) {
        cfxi_export_fail(x);
        return;
    }
    ((cfxi_export_written *)written->data)[written->size++] = (cfxi_export_written){root, *root};
}

void cfxi_export_restore(cfxi_exporter *x)
{
    const cfxi_export_written *written = x->scope->written.data;
    for (size_t i = 0; i < x->scope->written.size; i++) {
        cfxi_ev *root = written[i].root;
        cfxi_export_rename(root, &written[i].before);
        root->path = written[i].before.path;
        root->version++;  /* views are made anew */
    }
}

static bool is_noted(const cfxi_exporter *x, const cfxi_ev *root)
{
    const cfxi_export_written *written = x->scope->written.data;
    for (size_t i = 0; i < x->scope->written.size; i++)
        if (written[i].root == root)
            return true;
    return false;
}

cfxi_ev *cfxi_export_snapshot(cfxi_exporter *x, cfxi_ev *v)
{
    cfxi_ev *made = cfxi_export_of_datum(x, v->datum);
    if (made->broken || v->broken)
        return &x->broken;
    made->name = cfxi_export_name(x, v);
    made->scope = cfxi_export_fresh(x, v)->scope;
    made->origin = cfxi_export_root(v);
    return made;
}

cfxi_ev *cfxi_export_freeze(cfxi_exporter *x, cfxi_ev *v)
{
    if (v->datum.kind == CFX_DATUM_TENSOR)
        return is_noted(x, cfxi_export_root(v)) ? cfxi_export_snapshot(x, v) : v;
    if (v->n == 0 || x->scope->written.size == 0)
        return v;
    cfxi_ev *made = cfxi_export_list(x, v->items, v->n);
    for (size_t i = 0; i < made->n; i++)
        made->items[i] = cfxi_export_freeze(x, v->items[i]);
    if (!made->broken)
        made->datum = v->datum;
    return made;
}

/* ---- writing ------------------------------------------------------------------------------- */

cfxi_ev *cfxi_export_write(cfxi_export_call *c, cfxi_ev *v, cfxi_ev *elements)
{
    cfxi_exporter *x = c->x;
    cfxi_ev *root = cfxi_export_root(v);
    if (root->datum.kind != CFX_DATUM_TENSOR)
        return cfxi_export_refuse(c, "it writes to a value that is not a tensor of the graph");
    if (root->shared || v->shared)
        return cfxi_export_refuse(c, "it writes to a tensor that is in a list whose length only a "
                                  "run knows; put a copy there");
    if (!spoil_partners(x, root))
        return cfxi_export_refuse(c, "it writes to a tensor that a branch or a loop has returned, "
                                  "which may be one of the model's; return a copy from there");
    if (x->scope->outer && root->scope != x->scope)
        cfxi_export_note_written(x, root);
    else if (root->path)
        keep(x, root);
    elements = cfxi_export_cast(x, elements, v->dtype);
    cfxi_ev *made = elements;
    const uint32_t version = root->version + 1;
    cfxi_export_name(x, elements);
    for (cfxi_ev *at = v; at->view && !made->broken; at = at->view->base) {
        cfxi_ev *whole = put_back(c, at->view, made);
        take(at, made, version);
        made = whole;
    }
    take(root, made, version);
    root->version = version;
    v->seen = version;
    return made->broken ? made : v;
}
