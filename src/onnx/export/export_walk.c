/* export_walk.c - walks a lowered graph: what each call gives, and the rule that writes it. */
#include "export_impl.h"
#include "runtime/program_impl.h"

#include <stdio.h>

/* ---- arguments ----------------------------------------------------------------------------- */

/* A result that a rule left out, and that is used after all. */
static bool is_unmade(const cfxi_ev *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (is_unmade(v->items[i]))
            return true;
    return v->unmade;
}

static bool is_broken(const cfxi_ev *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (is_broken(v->items[i]))
            return true;
    return v->broken;
}

static cfxi_ev *of_value(cfxi_exporter *x, cfx_value v);

static cfxi_ev *of_items(cfxi_exporter *x, cfx_datum_kind kind, const cfx_value *values, size_t n)
{
    cfxi_ev **items = cfxi_export_room(x, n, sizeof *items);
    cfx_datum *data = cfxi_export_room(x, n, sizeof *data);
    for (size_t i = 0; items && data && i < n; i++) {
        items[i] = of_value(x, values[i]);
        data[i] = items[i]->datum.kind == CFX_DATUM_INVALID ? cfx_datum_none() : items[i]->datum;
    }
    cfxi_ev *list = items && data ? cfxi_export_list(x, items, n) : &x->broken;
    if (list == &x->broken)
        return list;
    const cfx_datum d = cfx_datum_seq(kind, data, n, x->allocator, x->err);
    if (d.kind == CFX_DATUM_INVALID)
        return cfxi_export_fail(x);
    list->datum = cfxi_export_own(x, d);
    return list;
}

static cfxi_ev *of_scalar(cfxi_exporter *x, cfx_value v)
{
    cfxi_export_call c = {.x = x, .node = x->at};
    cfx_error why = {0};
    const cfx_datum d = cfxi_rt_datum_from_value(v, x->allocator, &why);
    if (d.kind == CFX_DATUM_INVALID)
        return cfxi_export_refuse(&c, "%s", why.message);
    return cfxi_export_of_datum(x, cfxi_export_own(x, d));
}

static cfxi_ev *of_value(cfxi_exporter *x, cfx_value v)
{
    cfx_datum_kind kind;
    size_t n;
    if (v.kind == CFX_KIND_NODE) {
        cfxi_ev *known = cfxi_base_pointers_get(&x->nodes, v.as.node);
        return known ? known : &x->broken;
    }
    if (v.kind == CFX_KIND_GRAPH) {
        cfxi_ev *region = cfxi_export_of_datum(x, cfx_datum_none());
        if (!region->broken)
            region->graph = cfx_value_graph(v);
        return region;
    }
    if (!cfxi_rt_seq_kind((cfx_kind)v.kind, &kind))
        return of_scalar(x, v);
    const cfx_value *items = cfx_value_items(v, &n);
    const size_t skip = v.kind == CFX_KIND_NAMEDTUPLE ? 2 : 0;
    return of_items(x, kind, items + skip, n - skip);
}

/* ---- results ------------------------------------------------------------------------------- */

/* Whether nothing about it is left to compute. */
static bool is_constant(cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; items && i < n; i++)
        if (!is_constant(items[i]))
            return false;
    return d.kind != CFX_DATUM_TENSOR && !d.symbolic;
}

void cfxi_export_note_type(cfxi_exporter *x, const cfxi_ev *v)
{
    cfxi_vec *values = &x->scope->values;
    if (!v->name || x->failed)
        return;
    if (!cfxi_base_vec_reserve(values, 1, sizeof(cfxi_onnx_value), x->allocator)) {
        cfxi_export_fail(x);
        return;
    }
    cfxi_onnx_value *value = (cfxi_onnx_value *)values->data + values->size++;
    *value = (cfxi_onnx_value){.name = {v->name, strlen(v->name)}};
    value->type = cfxi_export_type(x, v, true);
}

/* The output of the node that was made last has the name of the graph's node; but not if it is a
 * value of the graph already: others may know its name. */
static bool rename_output(cfxi_exporter *x, cfxi_ev *v, const cfx_node *node)
{
    cfxi_vec *nodes = &x->scope->nodes;
    if (x->failed || nodes->size == 0 || !v->name || v->scope != x->scope || !node ||
        v->datum.kind != CFX_DATUM_INVALID)
        return false;
    cfxi_onnx_node *last = (cfxi_onnx_node *)nodes->data + nodes->size - 1;
    if (last->outputs.n != 1 || last->outputs.items[0].data != v->name)
        return false;
    v->name = cfxi_export_unique(x, cfx_node_name(node, NULL));
    last->outputs.items[0] = (cfxi_text){v->name, strlen(v->name)};
    last->name = last->outputs.items[0];
    return true;
}

/* Whether it is a value of the graph already, of that kind: in a list, it stays itself. */
static bool is_value(const cfxi_ev *v, cfx_datum known)
{
    return v->datum.kind != CFX_DATUM_INVALID && v->datum.kind == known.kind;
}

/* A result that the rule did not make: who uses it is told. */
static cfxi_ev *without(cfxi_exporter *x, cfxi_ev *v)
{
    if (v != &x->broken)
        v->unmade = true;
    return v;
}

/* What a rule gave, with what is known of it: a new value, whose type is the row's. */
static cfxi_ev *adopt(cfxi_exporter *x, cfxi_ev *v, cfx_datum known, const cfx_node *node)
{
    size_t n;
    if (v->broken || x->failed)
        return &x->broken;
    cfxi_ev *own = cfxi_export_of_datum(x, known);
    if (v->unmade)
        return without(x, own);
    const cfx_datum *items = cfx_datum_items(known, &n);
    if (items) {
        for (size_t i = 0; i < own->n && i < v->n; i++)
            own->items[i] = is_value(v->items[i], items[i]) ? v->items[i]
                            : is_constant(items[i]) ? own->items[i]
                            : v->items[i]->broken ? without(x, own->items[i])
                                                  : adopt(x, v->items[i], items[i], NULL);
        return own;
    }
    if (own->broken || cfxi_export_is_known(own))
        return own;
    if (v->of && !v->name) {  /* a size that nobody has asked for yet */
        own->of = v->of;
        own->dim = v->dim;
        return own;
    }
    if (v->later) {
        own->datum = v->datum;
        own->path = v->path;
        return own;
    }
    v = cfxi_export_cast(x, v, cfxi_export_dtype(own));
    const bool is_new = rename_output(x, v, node);
    own->name = cfxi_export_name(x, v);
    own->scope = v->scope;
    own->source = v->source;
    own->maybe_none = v->maybe_none;
    own->shared = v->shared;
    if (is_new && own->rank >= 0)
        cfxi_export_note_type(x, own);
    return own;
}

/* ---- calls --------------------------------------------------------------------------------- */

typedef struct export_row {
    cfx_operator op;
    int since;
    cfxi_export_rule *rule;
} export_row;

static const export_row rows[] = {
#define CFX_ONNX_EXPORT(row, since, rule) {CFX_OPID_##row, since, cfxi_export_##rule},
#include "export.def"
};

/* The rule of the newest opset that is not newer than the one written. */
static cfxi_export_rule *rule_of(const cfxi_exporter *x, cfx_operator op)
{
    char name[CFX_SPELLING_SIZE];
    const char *list;
    const export_row *best = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == op && rows[i].since <= x->opset &&
            (!best || best->since < rows[i].since))
            best = &rows[i];
    if (best)
        return best->rule;
    return cfxi_export_has_spelling(op, name, &list) ? cfxi_export_spelled : NULL;
}

static cfxi_ev *run_rule(cfxi_export_call *c)
{
    cfxi_exporter *x = c->x;
    cfxi_export_rule *rule = rule_of(x, c->op);
    if (!rule)
        return cfxi_export_refuse(c, "ONNX has no operator for '%s' in opset %d, and cfx does not "
                                  "decompose it; compute it outside of the exported part",
                                  cfx_operator_name(c->op), x->opset);
    cfxi_ev *v = rule(c);
    return c->refused ? &x->broken : v;
}

/* Arguments as the row's rule sees them, and what it says of the result. */
static bool infer(cfxi_export_call *c, cfxi_ev *const *given, size_t n, cfx_error *why)
{
    cfxi_exporter *x = c->x;
    cfx_datum data[CFXI_MOST_PARAMS];
    cfx_datum full[CFXI_MOST_PARAMS];
    const cfxi_signature *s = cfxi_rt_signature_of(x->rt, c->op, why);
    if (!s || n > CFXI_MOST_PARAMS)
        return false;
    for (size_t i = 0; i < n; i++)
        data[i] = given[i] ? given[i]->datum : cfx_datum_invalid();
    c->result = cfx_operator_infer(x->rt, x->dims, c->op, data, n, why);
    if (c->result.kind == CFX_DATUM_INVALID && !cfxi_export_described(c, given, n, why))
        return false;
    cfxi_export_own(x, c->result);
    for (size_t i = 0; i < s->num_params; i++)
        full[i] = cfx_datum_invalid();
    cfxi_call call = {.op = c->op, .rt = x->rt, .dims = x->dims, .infer = true, .err = why};
    const bool python = cfxi_rt_arguments(&call, s, data, n, full) != CFX_OK &&
                        why->status != CFX_E_NOMEM;
    c->n = s->num_params;
    c->full = cfxi_export_room(x, c->n, sizeof *c->full);
    c->args = cfxi_export_room(x, c->n, sizeof *c->args);
    for (size_t i = 0; i < s->num_params; i++) {
        if (!c->full || !c->args) {
            cfx_datum_release(full[i]);
            continue;
        }
        if (python && i < n) {  /* lists, which the row takes as Python does */
            cfx_datum_release(full[i]);
            full[i] = cfx_datum_retain(data[i]);
        }
        if (full[i].kind == CFX_DATUM_INVALID)
            full[i] = cfx_datum_none();
        c->full[i] = cfxi_export_own(x, full[i]);
        c->args[i] = i < n && given[i] && given[i]->datum.kind != CFX_DATUM_INVALID
                         ? given[i] : cfxi_export_of_datum(x, full[i]);
    }
    return (python || why->status == CFX_OK) && !x->failed;
}

/* Branches and loops: their rules follow the regions themselves. */
static bool takes_regions(cfx_operator op) { return cfx_operator_regions(op) > 0; }

static cfxi_ev *apply_regions(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    c->args = (cfxi_ev **)(uintptr_t)given;
    c->n = n;
    return run_rule(c);
}

/* relu_ is relu, whose result the argument has from then on. */
static cfxi_ev *apply_in_place(cfxi_export_call *c, cfx_operator op, cfxi_ev *const *given,
                               size_t n)
{
    const bool viewed = n > 0 && given[0] && (given[0]->viewed || given[0]->path);
    cfxi_ev *made = cfxi_export_apply(c->x, c->node, op, given, n);
    if (made->broken || n == 0)
        return made;
    if (made->view && made->view->base == given[0])
        return viewed ? cfxi_export_refuse(c, "it gives another shape to a tensor of the model, or "
                                           "to one of which there are views; use a copy")
                      : cfxi_export_reshape_in_place(c->x, given[0], made);
    return cfxi_export_write(c, given[0], made);
}

static bool has_constants(const cfxi_export_call *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (!is_constant(c->args[i]->datum))
            return false;
    return true;
}

/* `is` of two tensors, or of one that may be None: what is known of types does not tell. */
static bool asks_identity(const cfxi_export_call *c)
{
    if (c->op == CFX_OPID_is || c->op == CFX_OPID_is_not)
        return c->args[0]->maybe_none || c->args[1]->maybe_none ||
               (c->args[0]->datum.kind == CFX_DATUM_TENSOR &&
                c->args[1]->datum.kind == CFX_DATUM_TENSOR);
    return false;
}

/* Questions about a flag, whose answers tell as much as the flag. */
static bool asks_flag(cfx_operator op)
{
    switch ((int)op) {
    case CFX_OPID_not: case CFX_OPID_bool: case CFX_OPID_logical_not: case CFX_OPID_eq:
    case CFX_OPID_ne: case CFX_OPID_lt: case CFX_OPID_le: case CFX_OPID_gt: case CFX_OPID_ge:
        return true;
    default: return false;
    }
}

/* Sizes of inputs are taken to be at least 2, as rules for shapes need it. A program that asks
 * whether there are none, or one, gets its answer when it runs. */
static bool asks_for_few(const cfxi_export_call *c)
{
    const bool alone = c->op == CFX_OPID_not || c->op == CFX_OPID_bool;
    if (!asks_flag(c->op) || c->op == CFX_OPID_logical_not || c->n == 0 ||
        c->result.kind != CFX_DATUM_BOOL)
        return false;
    const cfxi_ev *a = c->args[0];
    const cfxi_ev *b = alone ? a : c->args[1];
    if (!cfxi_export_is_number(a) || !cfxi_export_is_number(b))
        return false;
    const cfxi_ev *known = cfxi_export_is_known(a) ? a : b;
    const cfxi_ev *asked = known == a ? b : a;
    return asked->datum.kind == CFX_DATUM_INT && !cfxi_export_is_known(asked) &&
           (alone || (cfxi_export_is_known(known) && known->datum.kind == CFX_DATUM_INT &&
                      known->datum.as.i >= 0 && known->datum.as.i < 2));
}

static cfxi_ev *apply_row(cfxi_export_call *c, cfxi_ev *const *given, size_t n)
{
    cfxi_exporter *x = c->x;
    cfx_error why = {0};
    if (!infer(c, given, n, &why)) {
        if (why.status == CFX_E_NOMEM) {
            *x->err = why;
            return cfxi_export_fail(x);
        }
        cfxi_ev *list = cfxi_export_by_sequence(c, given, n);
        return list ? list : cfxi_export_refuse(c, "types and sizes are not known: %s",
                                                why.message);
    }
    if (cfx_operator_flags(c->op) & CFX_OPERATOR_CHECKS)
        cfxi_export_note_check(x, c->node);
    if (asks_identity(c))
        return run_rule(c);
    if (c->result.kind == CFX_DATUM_STR && !has_constants(c))
        return without(x, cfxi_export_of_datum(x, c->result));  /* checks may have it */
    if (is_constant(c->result) && asks_for_few(c))
        c->result.symbolic = 1;
    if (is_constant(c->result) && c->op != CFX_OPID_setitem)
        return cfxi_export_of_datum(x, c->result);
    cfxi_ev *made = run_rule(c);
    if (made->broken || c->op == CFX_OPID_setitem ||
        (c->op == CFX_OPID_getitem && c->args[0]->items && is_value(made, c->result)))
        return made;
    cfxi_ev *result = adopt(x, made, c->result, c->node);
    if (!result->broken && asks_flag(c->op))
        result->source = c->args[0]->source;
    if (!result->broken)
        cfxi_export_note_view(x, result, c, SIZE_MAX);
    return result;
}

cfxi_ev *cfxi_export_apply(cfxi_exporter *x, const cfx_node *node, cfx_operator op,
                           cfxi_ev *const *given, size_t n)
{
    cfxi_export_call c = {.x = x, .node = node, .op = op};
    const cfx_operator functional = cfx_operator_functional(op);
    for (size_t i = 0; i < n; i++)  /* of a tuple, some results may be there and others not */
        if (given[i] && (op == CFX_OPID_getitem ? given[i]->broken : is_broken(given[i])))
            return &x->broken;
    if (x->failed)
        return &x->broken;
    if (n > 0 && given[0] && given[0]->maybe_none &&
        (op == CFX_OPID_bool || op == CFX_OPID_not || op == CFX_OPID_isinstance))
        return cfxi_export_refuse(&c, "whether a value is None differs from way to way, and ONNX "
                                  "has no None; use a flag of its own");
    const bool checks = (cfx_operator_flags(op) & CFX_OPERATOR_CHECKS) != 0;
    for (size_t i = 0; i < n && op != CFX_OPID_getitem && !checks; i++)
        if (given[i] && is_unmade(given[i]))
            return cfxi_export_refuse(&c, "it uses what ONNX does not have: a text that depends on "
                                      "data, statistics that a norm would update, or a result "
                                      "that only training needs");
    if (takes_regions(op))
        return apply_regions(&c, given, n);
    for (size_t i = 0; i < n; i++)
        if (given[i] && cfxi_export_has_sequence(given[i]))
            return cfxi_export_on_sequence(&c, given, n);
    if (functional != CFX_OPID_NONE && functional != op)
        return apply_in_place(&c, functional, given, n);
    return apply_row(&c, given, n);
}

/* ---- nodes --------------------------------------------------------------------------------- */

static cfxi_ev *export_call(cfxi_exporter *x, const cfx_node *n)
{
    const cfx_operator op = cfx_node_operator(n);
    cfxi_export_call c = {.x = x, .node = n, .op = op};
    const size_t num_args = cfx_node_num_args(n);
    const char *target = cfx_node_target(n, NULL, NULL);
    if (x->unlowered && (!target || strncmp(target, "cfx.ops.", 8) != 0))
        return &x->broken;  /* lowering has told why */
    if (op == CFX_OPID_NONE)
        return cfxi_export_refuse(&c, "it is not an operator of cfx's table; replace it by "
                                  "operators of torch");
    cfxi_ev **args = cfxi_export_room(x, num_args, sizeof *args);
    for (size_t i = 0; args && i < num_args; i++)
        args[i] = of_value(x, cfx_node_arg(n, i));
    return args ? cfxi_export_apply(x, n, op, args, num_args) : &x->broken;
}

static cfxi_ev *export_attribute(cfxi_exporter *x, const cfx_node *n)
{
    cfxi_export_call c = {.x = x, .node = n};
    const char *path = cfx_node_target(n, NULL, NULL);
    const cfxi_member *e = path ? cfxi_capture_module_at(x->root, path) : NULL;
    if (!e || (e->value.kind == CFX_DATUM_TENSOR && cfx_tensor_is_abstract(e->value.as.tensor)))
        return cfxi_export_refuse(&c, "the model has no tensor '%s'; give the file its weights",
                                  path ? path : "");
    const bool tensor = e->value.kind == CFX_DATUM_TENSOR;
    cfxi_ev *known = tensor ? cfxi_base_pointers_get(&x->reads, e->value.as.tensor) : NULL;
    if (known)  /* what is written to it is read everywhere */
        return known;
    cfxi_ev *v = cfxi_export_of_datum(x, e->value);
    if (v->broken || !tensor)
        return v;
    v->path = path;
    if (!cfxi_base_pointers_set(&x->reads, e->value.as.tensor, v, x->allocator))
        return cfxi_export_fail(x);
    return v;
}

static void bind(cfxi_exporter *x, const cfx_node *n, cfxi_ev *v)
{
    if (!x->failed && !cfxi_base_pointers_set(&x->nodes, n, v, x->allocator))
        cfxi_export_fail(x);
}

static cfxi_ev *export_nodes(cfxi_exporter *x, cfx_graph *g, cfxi_ev *const *inputs, size_t n)
{
    size_t next = 0;
    for (const cfx_node *node = cfx_graph_first(g); node && !x->failed;
         node = cfx_node_next(node)) {
        x->at = node;
        x->made = 0;
        switch (cfx_node_op(node)) {
        case CFX_OP_PLACEHOLDER:
            bind(x, node, next < n ? inputs[next] : &x->broken);
            next++;
            break;
        case CFX_OP_GET_ATTR: bind(x, node, export_attribute(x, node)); break;
        case CFX_OP_CALL_FUNCTION:
        case CFX_OP_CALL_METHOD:
        case CFX_OP_CALL_MODULE: bind(x, node, export_call(x, node)); break;
        case CFX_OP_OUTPUT:
            return cfx_node_num_args(node) > 0 ? of_value(x, cfx_node_arg(node, 0))
                                               : cfxi_export_of_datum(x, cfx_datum_none());
        case CFX_OPCODE_COUNT: break;
        }
    }
    return x->failed ? &x->broken : cfxi_export_of_datum(x, cfx_datum_none());
}

cfxi_ev *cfxi_export_graph(cfxi_exporter *x, cfx_graph *g, cfxi_ev *const *inputs, size_t n)
{
    return export_nodes(x, g, inputs, n);
}

cfxi_ev *cfxi_export_region(cfxi_exporter *x, cfx_graph *g, cfxi_ev *const *args, size_t n)
{
    const cfx_node *at = x->at;
    const size_t made = x->made;
    if (x->depth >= CFX_MAX_REGION_DEPTH) {
        cfx_error_set(x->err, CFX_E_LIMIT, "branches and loops nest more than %d deep",
                      CFX_MAX_REGION_DEPTH);
        return cfxi_export_fail(x);
    }
    x->depth++;
    cfxi_ev *result = export_nodes(x, g, args, n);
    x->depth--;
    x->at = at;
    x->made = made;
    return result;
}

/* ---- graphs inside graphs ------------------------------------------------------------------ */

void cfxi_export_scope_begin(cfxi_exporter *x, cfxi_export_scope *s)
{
    *s = (cfxi_export_scope){.outer = x->scope};
    x->scope = s;
}

/* The items of a growing array, kept in the arena. */
static void *keep_items(cfxi_exporter *x, cfxi_vec *v, size_t size)
{
    void *items = cfxi_export_room(x, v->size, size);
    if (items && v->size > 0)
        memcpy(items, v->data, v->size * size);
    return items;
}

cfxi_onnx_graph *cfxi_export_scope_end(cfxi_exporter *x, const char *name)
{
    cfxi_export_scope *s = x->scope;
    cfxi_onnx_graph *g = cfxi_export_room(x, 1, sizeof *g);
    cfxi_onnx_node *nodes = keep_items(x, &s->nodes, sizeof *nodes);
    cfxi_onnx_value *values = keep_items(x, &s->values, sizeof *values);
    if (g && nodes && values) {
        g->name = (cfxi_text){name, strlen(name)};
        g->nodes.items = nodes;
        g->nodes.n = s->nodes.size;
        g->values.items = values;
        g->values.n = s->values.size;
    }
    cfxi_base_vec_free(&s->nodes, sizeof(cfxi_onnx_node), x->allocator);
    cfxi_base_vec_free(&s->values, sizeof(cfxi_onnx_value), x->allocator);
    cfxi_base_vec_free(&s->written, sizeof(cfxi_export_written), x->allocator);
    x->scope = s->outer;
    return x->failed ? NULL : g;
}

static const char *print_size(cfxi_exporter *x, int64_t size)
{
    cfx_buffer text;
    cfx_buffer_init(&text, x->allocator);
    const cfx_status status = cfx_dims_print(x->dims, size, cfx_buffer_sink(&text), NULL);
    const char *name = status == CFX_OK ? cfxi_export_text(x, "%.*s", (int)text.size, text.data)
                                        : "";
    cfx_buffer_free(&text);
    if (status == CFX_E_NOMEM)
        cfxi_export_fail(x);
    return name;
}

static void describe_dim(cfxi_exporter *x, const cfxi_ev *v, int i, cfxi_onnx_dim *dim)
{
    const int64_t known = cfxi_export_known_size(x, v, i);
    if (known >= 0) {
        CFXI_ONNX_SET(dim, dim, size, known);
    } else if (v->sizes[i] != CFX_DIM_UNKNOWN) {
        const char *name = print_size(x, v->sizes[i]);
        dim->name = (cfxi_text){name, strlen(name)};
    }
}

cfxi_onnx_type *cfxi_export_type(cfxi_exporter *x, const cfxi_ev *v, bool sizes)
{
    cfxi_onnx_type *type = cfxi_export_room(x, 1, sizeof *type);
    if (type && v->element) {
        type->sequence = cfxi_export_room(x, 1, sizeof *type->sequence);
        if (type->sequence)
            type->sequence->type = cfxi_export_type(x, v->element, sizes);
        return x->failed ? NULL : type;
    }
    cfxi_onnx_tensor_type *tensor = cfxi_export_room(x, 1, sizeof *tensor);
    cfxi_onnx_shape *shape = cfxi_export_room(x, 1, sizeof *shape);
    const int rank = cfxi_export_is_number(v) ? 0 : v->rank;
    cfxi_onnx_dim *dims = cfxi_export_room(x, (size_t)(rank < 0 ? 0 : rank), sizeof *dims);
    if (x->failed)
        return NULL;
    tensor->dtype = cfxi_onnx_dtype_number(cfxi_export_dtype(v));
    type->tensor = tensor;
    if (rank < 0)
        return type;
    for (int i = 0; sizes && i < rank; i++)
        describe_dim(x, v, i, &dims[i]);
    shape->dims.items = dims;
    shape->dims.n = (size_t)rank;
    tensor->shape = shape;
    return type;
}
