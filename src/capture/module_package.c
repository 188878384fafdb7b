/* module_package.c - captured modules in .cfx files, whoever has written them.
 *
 * module.ir is a graph that returns one dict: "training", "modules" and "tensors" (docs/format.md).
 * The modules of a file are those that its graph names.
 */
#include "capture_impl.h"

#include <cfx/package.h>

/* ---- values -------------------------------------------------------------------------------- */

static cfx_status complain(const char *what, cfx_error *err)
{
    return cfx_error_set(err, CFX_E_VALUE, "module.ir: %s", what);
}

cfx_value cfxi_capture_field(cfx_value dict, const char *key)
{
    size_t n;
    const cfx_value *items = dict.kind == CFX_KIND_DICT ? cfx_value_items(dict, &n) : NULL;
    for (size_t i = 0; items && i + 1 < n; i += 2) {
        const char *text = cfx_value_text(items[i], NULL);
        if (items[i].kind == CFX_KIND_STR && strcmp(text, key) == 0)
            return items[i + 1];
    }
    return cfx_value_invalid();
}

static const char *text_of(cfx_value v)
{
    return v.kind == CFX_KIND_STR ? cfx_value_text(v, NULL) : NULL;
}

/* A row of a table: a tuple of at least `least` values whose first is a path. */
static const cfx_value *row_of(cfx_value v, size_t least, const char **path)
{
    size_t n;
    const cfx_value *items = v.kind == CFX_KIND_TUPLE ? cfx_value_items(v, &n) : NULL;
    *path = items && n >= least ? text_of(items[0]) : NULL;
    return *path && (*path)[0] ? items : NULL;
}

/* ---- reading: modules ---------------------------------------------------------------------- */

static cfx_status put_none(cfx_module *m, cfx_value names, cfxi_member_kind kind, cfx_error *err)
{
    size_t n = 0;
    const cfx_value *items = cfx_value_items(names, &n);
    for (size_t i = 0; i < n; i++) {
        const char *name = text_of(items[i]);
        if (!name)
            return complain("the name of a parameter is not a text", err);
        CFX_TRY(cfxi_capture_module_put(m, name, strlen(name), kind, NULL, cfx_datum_none(), err));
    }
    return CFX_OK;
}

/* A setting as rows in C ask for it: a function by the name of its operator, as C's own layers have
 * it ("relu"). INVALID with err->status CFX_OK for other functions and classes of Python, for which
 * they do not ask. */
static cfx_datum setting_of(cfx_graph *g, cfx_value v, const cfx_allocator *allocator,
                            cfx_error *err)
{
    cfx_error why = {0};
    if (v.kind == CFX_KIND_HOST) {
        const char *name = cfx_value_host_name(g, v, NULL);
        const cfx_operator op = name ? cfx_operator_find(name, strlen(name)) : CFX_OPID_NONE;
        const char *own = op ? cfx_operator_name(op) : NULL;
        return own ? cfx_datum_from_text(CFX_DATUM_STR, own, strlen(own), allocator, err)
                   : cfx_datum_invalid();
    }
    const cfx_datum d = cfxi_capture_datum_of_value(v, allocator, &why);
    if (d.kind == CFX_DATUM_INVALID && why.status == CFX_E_NOMEM)
        cfxi_base_nomem(err);
    return d;
}

static cfx_status put_settings(cfx_graph *g, cfx_module *m, cfx_value settings, cfx_error *err)
{
    size_t n = 0;
    const cfx_value *items = cfx_value_items(settings, &n);
    if (settings.kind != CFX_KIND_DICT)
        return complain("the settings of a module are not a dict", err);
    for (size_t i = 0; i + 1 < n; i += 2) {
        const char *name = text_of(items[i]);
        if (!name)
            return complain("the name of a setting is not a text", err);
        cfx_error why = {0};
        const cfx_datum d = setting_of(g, items[i + 1], m->allocator, &why);
        if (why.status != CFX_OK)
            return cfxi_base_nomem(err);
        if (d.kind == CFX_DATUM_INVALID)
            continue;
        const cfx_status status = cfxi_capture_module_put(m, name, strlen(name),
                                                          CFXI_MEMBER_ATTRIBUTE, NULL, d, err);
        cfx_datum_release(d);
        CFX_TRY(status);
    }
    return CFX_OK;
}

static cfx_status set_class(cfx_module *m, const char *name, cfx_error *err)
{
    m->nn = cfxi_ops_nn_find(name);
    if (m->nn || !name[0])
        return CFX_OK;
    const size_t size = strlen(name) + 1;
    m->name = cfxi_base_alloc(m->allocator, size);
    if (!m->name)
        return cfxi_base_nomem(err);
    memcpy(m->name, name, size);
    return CFX_OK;
}

/* (path, class, training, settings, parameters that are None, buffers that are None) */
static cfx_status read_module(cfx_graph *g, cfx_module *root, cfx_value v, cfx_error *err)
{
    const char *path;
    const char *last;
    const cfx_value *row = row_of(v, 6, &path);
    const char *class_name = row ? text_of(row[1]) : NULL;
    cfx_module *owner = class_name ? cfxi_capture_module_owner(root, path, &last) : NULL;
    if (!owner || cfxi_capture_module_find(owner, last, strlen(last)))
        return complain("a module belongs nowhere, or is there twice", err);
    cfx_module *m = cfxi_capture_module_make(root->allocator, err);
    cfx_status status = m ? set_class(m, class_name, err) : CFX_E_NOMEM;
    if (status == CFX_OK) {
        m->training = row[2].kind == CFX_KIND_BOOL && row[2].as.b;
        status = put_settings(g, m, row[3], err);
    }
    if (status == CFX_OK)
        status = put_none(m, row[4], CFXI_MEMBER_PARAMETER, err);
    if (status == CFX_OK)
        status = put_none(m, row[5], CFXI_MEMBER_BUFFER, err);
    if (status == CFX_OK)
        status = cfxi_capture_module_put(owner, last, strlen(last), CFXI_MEMBER_CHILD, m,
                                         cfx_datum_invalid(), err);
    cfx_module_release(m);
    return status;
}

/* ---- reading: tensors ---------------------------------------------------------------------- */

/* Whether a tensor has a type and sizes alone: (dtype, sizes, strides) in the place of strides. */
static bool is_abstract(cfx_value strides)
{
    size_t n = 0;
    const cfx_value *items = strides.kind == CFX_KIND_TUPLE ? cfx_value_items(strides, &n) : NULL;
    return n > 0 && items[0].kind == CFX_KIND_DTYPE;
}

/* (path, kind, requires_grad, persistent, path of the same tensor or None, strides or None) */
static cfx_status read_tensor(cfx_module *root, const cfx_state *weights, cfx_value v,
                              cfx_error *err)
{
    const char *path;
    const char *last;
    const cfx_value *row = row_of(v, 6, &path);
    const char *kind = row ? text_of(row[1]) : NULL;
    cfx_module *owner = kind ? cfxi_capture_module_owner(root, path, &last) : NULL;
    if (!owner || cfxi_capture_module_find(owner, last, strlen(last)))
        return complain("a tensor belongs nowhere, or is there twice", err);
    const char *same = text_of(row[4]);
    if (is_abstract(row[5]))
        return CFX_OK;
    cfx_tensor *t = cfx_state_get(weights, same ? same : path);
    if (!t)
        return cfx_error_set(err, CFX_E_VALUE, "the file has no tensor '%.100s'",
                             same ? same : path);
    const cfxi_member_kind as = strcmp(kind, "parameter") == 0 ? CFXI_MEMBER_PARAMETER
                                                               : CFXI_MEMBER_BUFFER;
    return cfxi_capture_module_put(owner, last, strlen(last), as, NULL, cfx_datum_tensor(t), err);
}

static cfx_status read_table(cfx_graph *g, cfx_module *root, cfx_value values,
                             const cfx_state *weights, cfx_error *err)
{
    size_t n = 0;
    const cfx_value *modules = cfx_value_items(cfxi_capture_field(values, "modules"), &n);
    for (size_t i = 0; i < n; i++)
        CFX_TRY(read_module(g, root, modules[i], err));
    const cfx_value *tensors = cfx_value_items(cfxi_capture_field(values, "tensors"), &n);
    for (size_t i = 0; i < n; i++)
        CFX_TRY(read_tensor(root, weights, tensors[i], err));
    const cfx_value training = cfxi_capture_field(values, "training");
    root->training = training.kind == CFX_KIND_BOOL && training.as.b;
    return CFX_OK;
}

/* ---- reading: all -------------------------------------------------------------------------- */

cfx_graph *cfxi_capture_package_graph(const cfx_package *p, const char *name,
                                      const cfx_allocator *allocator, cfx_error *err)
{
    size_t size;
    const char *text = cfx_package_text(p, name, &size);
    if (text)
        return cfx_graph_parse(text, size, allocator, &cfxi_capture_object_host, err);
    cfx_error_set(err, CFX_E_VALUE, "the file has no entry %s", name);
    return NULL;
}

bool cfxi_capture_returned_dict(const cfx_graph *g, cfx_value *dict)
{
    size_t n = 0;
    const cfx_node *output = cfx_graph_last(g);
    const cfx_value *args = output ? cfx_value_items(cfx_node_args(output), &n) : NULL;
    *dict = n == 1 ? args[0] : cfx_value_invalid();
    return dict->kind == CFX_KIND_DICT;
}

cfx_status cfxi_capture_package_modules(cfx_module *root, const cfx_package *p,
                                        const cfx_state *weights, cfx_error *err)
{
    cfx_value dict;
    cfx_graph *g = cfxi_capture_package_graph(p, "module.ir", root->allocator, err);
    cfx_status status = g ? CFX_OK : err->status;
    if (g && !cfxi_capture_returned_dict(g, &dict))
        status = complain("it is not a dict", err);
    if (status == CFX_OK)
        status = read_table(g, root, dict, weights, err);
    cfx_graph_release(g);
    return status;
}

cfx_module *cfx_module_from_package_at(cfx_at at, const cfx_package *p)
{
    cfx_error err = {0};
    cfx_module *m = NULL;
    if (!cfx_scope_ok(at.scope))
        return NULL;
    if (!cfx_package_weights(p)) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "the weights of this file are kept elsewhere");
        return NULL;
    }
    const size_t mark = at.scope->modules.size;
    cfx_module *root = cfx_module_new_at(at, NULL);
    cfx_graph *g = NULL;
    if (root &&
        cfxi_capture_package_modules(root, p, cfx_package_weights(p), &err) == CFX_OK)
        g = cfxi_capture_package_graph(p, "graph.ir", at.scope->allocator, &err);
    if (g)
        m = cfx_module_from_graph_at(at, g, cfx_package_model(p), root);
    else if (err.status != CFX_OK)
        cfxi_capture_scope_take(at, &err);
    if (m)
        m->training = root->training;  /* those below have their own */
    cfxi_capture_scope_keep(at, mark, m);
    cfx_graph_release(g);
    return m;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Rows of a table on their way into module.ir. */
typedef struct table {
    cfx_graph *graph;
    cfxi_vec modules;       /* cfx_value */
    cfxi_vec tensors;
    cfxi_places paths;      /* of tensors: the first that leads to each */
    cfx_state *weights;
} table;

static bool add_value(cfxi_vec *rows, cfx_value v, const cfx_allocator *allocator)
{
    if (!cfxi_base_vec_reserve(rows, 1, sizeof v, allocator))
        return false;
    ((cfx_value *)rows->data)[rows->size++] = v;
    return true;
}

static cfx_value text_value(cfx_graph *g, const char *text, cfx_error *err)
{
    return cfx_value_str(g, text, strlen(text), err);
}

/* A tuple whose items may have failed: INVALID then. */
static cfx_value tuple_value(cfx_graph *g, const cfx_value *items, size_t n, cfx_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (items[i].kind == CFX_KIND_INVALID)
            return items[i];
    return cfx_value_tuple(g, items, n, err);
}

static cfx_status add_row(table *t, cfxi_vec *rows, const cfx_value *items, size_t n,
                          cfx_error *err)
{
    const cfx_value row = tuple_value(t->graph, items, n, err);
    if (row.kind == CFX_KIND_INVALID)
        return err->status;
    return add_value(rows, row, t->paths.allocator) ? CFX_OK : cfxi_base_nomem(err);
}

static bool is_none(const cfxi_member *e, cfxi_member_kind kind)
{
    return e->kind == kind && e->value.kind == CFX_DATUM_NONE;
}

static cfx_value names_of_none(table *t, const cfx_module *m, cfxi_member_kind kind, cfx_error *err)
{
    cfxi_vec names = {0};
    cfx_value all = cfx_value_none();
    for (size_t i = 0; i < m->members.size && all.kind != CFX_KIND_INVALID; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (is_none(e, kind))
            all = text_value(t->graph, e->name, err);
        if (is_none(e, kind) && all.kind != CFX_KIND_INVALID &&
            !add_value(&names, all, t->paths.allocator)) {
            cfxi_base_nomem(err);
            all = cfx_value_invalid();
        }
    }
    if (all.kind != CFX_KIND_INVALID)
        all = cfx_value_tuple(t->graph, names.data, names.size, err);
    cfxi_base_vec_free(&names, sizeof(cfx_value), t->paths.allocator);
    return all;
}

static cfx_value settings_of(table *t, const cfx_module *m, cfx_error *err)
{
    cfxi_vec pairs = {0};
    cfx_value all = cfx_value_none();
    for (size_t i = 0; i < m->members.size && all.kind != CFX_KIND_INVALID; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (e->kind != CFXI_MEMBER_ATTRIBUTE)
            continue;
        const cfx_value key = text_value(t->graph, e->name, err);
        all = key.kind == CFX_KIND_INVALID ? key
                                           : cfxi_capture_value_from_datum(t->graph, e->value, err);
        if (all.kind != CFX_KIND_INVALID && (!add_value(&pairs, key, t->paths.allocator) ||
                                             !add_value(&pairs, all, t->paths.allocator))) {
            cfxi_base_nomem(err);
            all = cfx_value_invalid();
        }
    }
    if (all.kind != CFX_KIND_INVALID)
        all = cfx_value_seq(t->graph, CFX_KIND_DICT, pairs.data, pairs.size, err);
    cfxi_base_vec_free(&pairs, sizeof(cfx_value), t->paths.allocator);
    return all;
}

static cfx_status write_tensor(table *t, const char *path, const cfxi_member *e, cfx_error *err)
{
    cfx_tensor *tensor = e->value.as.tensor;
    const cfxi_path *known = cfxi_capture_places_find(&t->paths, tensor);
    const bool first = known && strcmp(known->path, path) == 0;
    if (first)
        CFX_TRY(cfx_state_set(t->weights, path, tensor, err));
    const cfx_value row[] = {
        text_value(t->graph, path, err),
        text_value(t->graph, e->kind == CFXI_MEMBER_PARAMETER ? "parameter" : "buffer", err),
        cfx_value_bool(e->kind == CFXI_MEMBER_PARAMETER),
        cfx_value_bool(true),
        first ? cfx_value_none() : text_value(t->graph, known ? known->path : "", err),
        cfx_value_none(),
    };
    return add_row(t, &t->tensors, row, 6, err);
}

static cfx_status write_tensors(table *t, const cfx_module *m, const char *path, cfx_error *err)
{
    cfx_buffer name;
    cfx_status status = CFX_OK;
    cfx_buffer_init(&name, t->paths.allocator);
    for (size_t i = 0; i < m->members.size && status == CFX_OK; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (e->value.kind != CFX_DATUM_TENSOR || e->kind == CFXI_MEMBER_CHILD)
            continue;
        name.size = 0;
        if (cfx_buffer_append(&name, path, strlen(path)) != CFX_OK ||
            cfx_buffer_append(&name, ".", path[0] ? 1 : 0) != CFX_OK ||
            cfx_buffer_append(&name, e->name, strlen(e->name)) != CFX_OK)
            status = cfxi_base_nomem(err);
        else
            status = write_tensor(t, name.data, e, err);
    }
    cfx_buffer_free(&name);
    return status;
}

static cfx_status write_module(void *ctx, cfx_module *m, const char *path, cfx_error *err)
{
    table *t = ctx;
    if (m->observing)
        return cfx_error_set(err, CFX_E_VALUE, "a file cannot hold the observer '%.100s' and what "
                             "it has seen: calibrate the module and convert it first "
                             "(cfx_quantize_convert)", path);
    if (path[0]) {
        const cfx_value row[] = {
            text_value(t->graph, path, err),
            text_value(t->graph, cfx_module_class_name(m), err),
            cfx_value_bool(m->training),
            settings_of(t, m, err),
            names_of_none(t, m, CFXI_MEMBER_PARAMETER, err),
            names_of_none(t, m, CFXI_MEMBER_BUFFER, err),
        };
        CFX_TRY(add_row(t, &t->modules, row, 6, err));
    }
    return write_tensors(t, m, path, err);
}

/* The dict that module.ir returns. */
static cfx_status finish(table *t, bool training, cfx_error *err)
{
    const cfx_value items[] = {
        text_value(t->graph, "training", err), cfx_value_bool(training),
        text_value(t->graph, "modules", err),
        cfx_value_list(t->graph, t->modules.data, t->modules.size, err),
        text_value(t->graph, "tensors", err),
        cfx_value_list(t->graph, t->tensors.data, t->tensors.size, err),
    };
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        if (items[i].kind == CFX_KIND_INVALID)
            return err->status;
    const cfx_value dict = cfx_value_seq(t->graph, CFX_KIND_DICT, items, 6, err);
    if (dict.kind == CFX_KIND_INVALID || !cfx_graph_output(t->graph, dict, err))
        return err->status;
    return CFX_OK;
}

cfx_status cfx_module_describe(cfx_module *m, cfx_sink graph, cfx_sink modules, cfx_state *weights,
                               cfx_error *err)
{
    const cfx_allocator *allocator = m->allocator;
    table t = {.graph = cfx_graph_new(allocator, NULL, err), .paths = {.allocator = allocator},
               .weights = weights};
    cfx_status status = t.graph ? cfxi_capture_places_fill(&t.paths, m, err) : CFX_E_NOMEM;
    if (status == CFX_OK)
        status = cfxi_capture_module_each(m, write_module, &t, err);
    if (status == CFX_OK)
        status = finish(&t, m->training, err);
    if (status == CFX_OK)
        status = cfx_graph_text(m->graph, graph, err);
    if (status == CFX_OK)
        status = cfx_graph_text(t.graph, modules, err);
    cfxi_base_vec_free(&t.modules, sizeof(cfx_value), allocator);
    cfxi_base_vec_free(&t.tensors, sizeof(cfx_value), allocator);
    cfxi_capture_places_free(&t.paths);
    cfx_graph_release(t.graph);
    return status;
}

cfx_status cfxi_capture_package_save(cfx_module *m, const char *path, cfx_error *err)
{
    cfx_state *weights = cfx_state_new(m->allocator, err);
    cfx_buffer graph;
    cfx_buffer modules;
    cfx_buffer_init(&graph, m->allocator);
    cfx_buffer_init(&modules, m->allocator);
    cfx_status status = weights ? cfx_module_describe(m, cfx_buffer_sink(&graph),
                                                      cfx_buffer_sink(&modules), weights, err)
                                : CFX_E_NOMEM;
    if (status == CFX_OK) {
        const cfx_package_part parts[] = {{"graph.ir", graph.data, graph.size},
                                          {"module.ir", modules.data, modules.size}};
        const cfx_package_contents contents = {.model = cfx_module_class_name(m), .parts = parts,
                                               .num_parts = 2, .weights = weights};
        status = cfx_package_save(path, &contents, err);
    }
    cfx_buffer_free(&graph);
    cfx_buffer_free(&modules);
    cfx_state_free(weights);
    return status;
}
