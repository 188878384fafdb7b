/* library.c - operators of one's own: reading their schemas, finding them by name. */
#include "library_impl.h"

#include "ops/ops_impl.h"

#include <stdlib.h>

enum { MOST_NAME = 200 };

/* ---- checking ------------------------------------------------------------------------------ */

/* Identifiers, two or more, with dots between them. */
static bool is_dotted(const char *name)
{
    size_t parts = 0;
    for (const char *at = name; at - name < MOST_NAME; at++) {
        const size_t size = cfxi_base_identifier_size(at, strlen(at));
        if (size == 0)
            return false;
        at += size;
        parts++;
        if (*at != '.')
            return !*at && parts > 1 && at - name < MOST_NAME;
    }
    return false;
}

static cfx_status check_name(const char *name, cfx_error *err)
{
    if (!name || !is_dotted(name))
        return cfx_error_set(err, CFX_E_VALUE, "'%.60s' is not a valid operator name; write "
                             "library.operator, as in mylib.swish",
                             name ? name : "NULL");
    const cfx_operator op = cfx_operator_parse(name);
    if (op)
        return cfx_error_set(err, CFX_E_VALUE, "'%.100s' is a built-in operator of cfx ('%s'); a "
                             "library cannot define it", name, cfx_operator_name(op));
    return CFX_OK;
}

static bool is_item(const cfxi_signature_param *p, cfx_datum d)
{
    switch ((cfxi_param_type)p->type) {
    case CFXI_PARAM_INT: return d.kind == CFX_DATUM_INT;
    case CFXI_PARAM_FLOAT: return d.kind == CFX_DATUM_FLOAT;
    case CFXI_PARAM_BOOL: return d.kind == CFX_DATUM_BOOL;
    case CFXI_PARAM_SCALAR: return cfxi_rt_is_number(d);
    case CFXI_PARAM_STR: return d.kind == CFX_DATUM_STR;
    case CFXI_PARAM_DTYPE: return d.kind == CFX_DATUM_DTYPE;
    case CFXI_PARAM_TENSOR:
    case CFXI_PARAM_OTHER: break;
    }
    return false;
}

static bool is_default(const cfxi_signature_param *p)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(p->value, &n);
    if (p->value.kind == CFX_DATUM_NONE)
        return p->optional || p->type == CFXI_PARAM_OTHER;
    if (!p->list)
        return is_item(p, p->value);
    if (p->value.kind != CFX_DATUM_LIST || (p->length && n != p->length))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_item(p, items[i]))
            return false;
    return true;
}

/* How many items a list is written with: those that a default cannot hold must not get lost. */
static size_t count_items(cfx_schema_text t)
{
    size_t n = 0;
    const char *at = t.text + 1;
    while (cfxi_ops_schema_next(&at).size > 0)
        n++;
    return n;
}

static cfx_status check_defaults(const cfxi_custom *f, cfx_error *err)
{
    cfx_schema_param param;
    for (size_t i = 0; cfxi_ops_schema_param(f->row.schema, i, &param); i++) {
        const cfx_schema_text t = param.value;
        const bool list = t.text && (t.text[0] == '[' || t.text[0] == '(');
        if (t.text && (!is_default(&f->signature->params[i]) ||
                       (list && count_items(t) > CFX_MAX_DIMS)))
            return cfx_error_set(err, CFX_E_SYNTAX, "the default %.*s does not fit the parameter "
                                 "'%.*s', which is %s", t.size < 60 ? (int)t.size : 60, t.text,
                                 (int)param.name.size, param.name.text, param.type);
    }
    return CFX_OK;
}

/* ---- making -------------------------------------------------------------------------------- */

static const char *keep(cfx_library *lib, const char *text, cfx_error *err)
{
    const size_t size = strlen(text) + 1;
    char *copy = cfxi_base_arena_alloc(&lib->arena, size);
    if (!copy) {
        cfxi_base_nomem(err);
        return NULL;
    }
    return memcpy(copy, text, size);
}

static cfx_status read_row(cfx_library *lib, const cfx_custom_operator *row, cfxi_custom *f,
                           cfx_error *err)
{
    f->row = *row;
    if (!row->schema)
        return cfx_error_set(err, CFX_E_VALUE, "the schema is missing");
    CFX_TRY(cfxi_ops_schema_check(row->schema, err));
    f->row.name = keep(lib, row->name, err);
    f->row.schema = f->row.name ? keep(lib, row->schema, err) : NULL;
    if (!f->row.schema)
        return CFX_E_NOMEM;
    f->signature = cfxi_rt_signature_new(f->row.schema, lib->allocator, err);
    return f->signature ? check_defaults(f, err) : CFX_E_NOMEM;
}

/* Says of which row it is what is wrong. */
static cfx_status add_row(cfx_library *lib, const cfx_custom_operator *row, cfx_error *err)
{
    cfx_error why = {0};
    CFX_TRY(check_name(row->name, err));
    if (cfxi_rt_library_find(lib->base, row->name))
        return cfx_error_set(err, CFX_E_VALUE, "the base library already has '%.100s'",
                             row->name);
    cfx_status status = read_row(lib, row, &lib->rows[lib->n], &why);
    lib->n += status == CFX_OK;
    if (status != CFX_OK)
        cfxi_rt_signature_free(lib->rows[lib->n].signature, lib->allocator);
    if (status == CFX_E_NOMEM)
        return cfxi_base_nomem(err);
    if (status == CFX_OK)
        return CFX_OK;
    return cfx_error_set(err, status, "the schema of '%.100s', \"%.200s\": %.160s", row->name,
                         row->schema ? row->schema : "", why.message);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const cfxi_custom *const *)a)->row.name,
                  (*(const cfxi_custom *const *)b)->row.name);
}

static cfx_status sort_rows(cfx_library *lib, cfx_error *err)
{
    for (size_t i = 0; i < lib->n; i++)
        lib->sorted[i] = &lib->rows[i];
    if (lib->n > 0)
        qsort(lib->sorted, lib->n, sizeof *lib->sorted, by_name);
    for (size_t i = 1; i < lib->n; i++)
        if (by_name(&lib->sorted[i - 1], &lib->sorted[i]) == 0)
            return cfx_error_set(err, CFX_E_VALUE, "the library defines '%.100s' twice",
                                 lib->sorted[i]->row.name);
    return CFX_OK;
}

/* Without telling the rows: it may not have come to be. */
static void dispose(cfx_library *lib)
{
    for (size_t i = 0; i < lib->n; i++)
        cfxi_rt_signature_free(lib->rows[i].signature, lib->allocator);
    cfx_library_release(lib->base);
    cfxi_base_arena_release(&lib->arena);
    cfxi_base_free(lib->allocator, lib, sizeof *lib);
}

cfx_library *cfx_library_new(const cfx_custom_operator *rows, size_t n, const cfx_library *base,
                             const cfx_allocator *allocator, cfx_error *err)
{
    size_t size = 0;
    const size_t each = sizeof *((cfx_library *)0)->rows + sizeof *((cfx_library *)0)->sorted;
    if (n > 0 && cfxi_base_expect(rows, "array of rows", err) != CFX_OK)
        return NULL;
    allocator = cfxi_base_allocator(allocator);
    cfx_library *lib = cfxi_base_alloc(allocator, sizeof *lib);
    if (!lib) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *lib = (cfx_library){.allocator = allocator, .base = cfx_library_retain(base)};
    atomic_init(&lib->refs, 1);
    cfxi_base_arena_init(&lib->arena, allocator);
    cfx_status status = CFX_OK;
    if (n > 0 && cfxi_base_mul_size(n, each, 0, &size))
        lib->rows = cfxi_base_arena_alloc(&lib->arena, size);
    if (n > 0 && !lib->rows)
        status = cfxi_base_nomem(err);
    if (lib->rows) {
        memset(lib->rows, 0, size);
        lib->sorted = (const cfxi_custom **)(lib->rows + n);
    }
    for (size_t i = 0; status == CFX_OK && i < n; i++)
        status = add_row(lib, &rows[i], err);
    if (status == CFX_OK)
        status = sort_rows(lib, err);
    if (status == CFX_OK)
        return lib;
    dispose(lib);
    return NULL;
}

/* The count is no part of what a library says. */
static cfx_library *counted(const cfx_library *lib) { return (cfx_library *)(uintptr_t)lib; }

const cfx_library *cfx_library_retain(const cfx_library *lib)
{
    if (lib)
        atomic_fetch_add_explicit(&counted(lib)->refs, 1, memory_order_relaxed);
    return lib;
}

void cfx_library_release(const cfx_library *lib)
{
    if (!lib || atomic_fetch_sub_explicit(&counted(lib)->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < lib->n; i++)
        if (lib->rows[i].row.release)
            lib->rows[i].row.release(lib->rows[i].row.ctx);
    dispose(counted(lib));
}

/* ---- finding ------------------------------------------------------------------------------- */

size_t cfxi_rt_library_size(const cfx_library *lib)
{
    size_t n = 0;
    for (; lib; lib = lib->base)
        n += lib->n;
    return n;
}

const cfx_custom_operator *cfxi_rt_library_at(const cfx_library *lib, size_t i)
{
    const size_t before = lib ? cfxi_rt_library_size(lib->base) : 0;
    if (lib && i < before)
        return cfxi_rt_library_at(lib->base, i);
    return lib && i - before < lib->n ? &lib->rows[i - before].row : NULL;
}

static int compare(const void *key, const void *row)
{
    return strcmp(key, (*(const cfxi_custom *const *)row)->row.name);
}

const cfxi_custom *cfxi_rt_library_find(const cfx_library *lib, const char *name)
{
    for (; lib; lib = lib->base) {
        const cfxi_custom *const *found =
            lib->n > 0 ? bsearch(name, lib->sorted, lib->n, sizeof *lib->sorted, compare) : NULL;
        if (found)
            return *found;
    }
    return NULL;
}

const cfx_custom_operator *cfxi_rt_library_get(const cfx_library *lib, const char *name)
{
    const cfxi_custom *f = cfxi_rt_library_find(lib, name);
    return f ? &f->row : NULL;
}

const cfx_custom_operator *cfxi_rt_node_custom(const cfx_node *n, const cfx_library *lib)
{
    if (!lib || cfx_node_op(n) != CFX_OP_CALL_FUNCTION || cfx_node_operator(n))
        return NULL;
    const char *name = cfx_node_target(n, NULL, NULL);
    return name ? cfxi_rt_library_get(lib, name) : NULL;
}
