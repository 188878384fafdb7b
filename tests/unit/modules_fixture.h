/* modules_fixture.h - a small tree of modules for tests of passes: a list of paths, in which a
 * tensor is one float with a shape of ones.
 *
 *     fake_tree tree = {0};
 *     fake_module(&tree, "fc", "torch.nn.Linear", NULL);
 *     fake_tensor(&tree, "fc.weight", 0.5, 2);              (two dimensions)
 *     fake_attr(&tree, "fc.training", cfx_value_bool(false));
 *     cfx_module_tree modules = fake_modules(&tree);
 */
#ifndef CFX_TESTS_MODULES_FIXTURE_H
#define CFX_TESTS_MODULES_FIXTURE_H

#include <cfx/tree.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct fake_entry {
    char path[64];
    const char *class_name;  /* of a module; NULL for other entries */
    cfx_graph *graph;        /* of a module that was captured */
    cfx_value value;
    int rank;                /* of a tensor, from 1 on */
} fake_entry;

typedef struct fake_tree {
    fake_entry entries[48];
    size_t n;
    int calls;               /* operators computed so far */
    int fail_call;           /* the number of the call that fails, from 1 on; 0: none does */
    const char *fail_set;    /* attributes of this name (".bias") cannot be set */
} fake_tree;

static inline fake_entry *fake_find(fake_tree *tree, const char *path, size_t size)
{
    for (size_t i = 0; i < tree->n; i++)
        if (strlen(tree->entries[i].path) == size && !memcmp(tree->entries[i].path, path, size))
            return &tree->entries[i];
    return NULL;
}

static inline fake_entry *fake_put(fake_tree *tree, const char *path)
{
    fake_entry *e = fake_find(tree, path, strlen(path));
    if (!e)
        e = &tree->entries[tree->n++];
    *e = (fake_entry){.value = cfx_value_none()};
    const size_t size = strnlen(path, sizeof e->path - 1);
    memcpy(e->path, path, size);
    return e;
}

static inline void fake_module(fake_tree *tree, const char *path, const char *name, cfx_graph *g)
{
    fake_entry *e = fake_put(tree, path);
    e->class_name = name;
    e->graph = g;
}

static inline void fake_attr(fake_tree *tree, const char *path, cfx_value v)
{
    fake_put(tree, path)->value = v;
}

static inline void fake_tensor(fake_tree *tree, const char *path, double value, int rank)
{
    fake_entry *e = fake_put(tree, path);
    e->value = cfx_value_float(value);
    e->rank = rank;
}

static inline double fake_number(fake_tree *tree, const char *path)
{
    fake_entry *e = fake_find(tree, path, strlen(path));
    return e && e->value.kind == CFX_KIND_FLOAT ? e->value.as.f : NAN;
}

/* ---- the table ----------------------------------------------------------------------------- */

static inline cfx_status fake_missing(const char *path, cfx_error *err)
{
    return cfx_error_set(err, CFX_E_KEY, "the fake tree has no '%s'", path);
}

static inline cfx_status fake_class_name(void *ctx, const char *path, cfx_sink out, cfx_error *err)
{
    fake_entry *e = fake_find(ctx, path, strlen(path));
    if (!e || !e->class_name)
        return fake_missing(path, err);
    return out.write(out.ctx, e->class_name, strlen(e->class_name));
}

static inline const void *fake_identity(void *ctx, const char *path)
{
    return fake_find(ctx, path, strlen(path));
}

/* "x.dtype" and "x.shape" of a tensor x are made up. */
static inline cfx_value fake_get(void *ctx, cfx_graph *g, const char *path, cfx_error *err)
{
    const char *dot = strrchr(path, '.');
    fake_entry *e = fake_find(ctx, path, strlen(path));
    if (e)
        return e->class_name ? cfx_value_name(g, e->class_name, strlen(e->class_name), err)
                             : e->value;
    e = dot ? fake_find(ctx, path, (size_t)(dot - path)) : NULL;
    const cfx_value ones[] = {cfx_value_int(1), cfx_value_int(1), cfx_value_int(1),
                              cfx_value_int(1), cfx_value_int(1)};
    if (e && e->rank > 0 && strcmp(dot, ".dtype") == 0)
        return cfx_value_dtype(CFX_DTYPE_FLOAT32);
    if (e && e->rank > 0 && strcmp(dot, ".shape") == 0)
        return cfx_value_tuple(g, ones, (size_t)e->rank, err);
    fake_missing(path, err);
    return cfx_value_invalid();
}

static inline cfx_status fake_set(void *ctx, cfx_graph *g, const char *path, cfx_value v,
                                  cfx_error *err)
{
    fake_tree *tree = ctx;
    (void)g;
    if (tree->fail_set && strcmp(strrchr(path, '.'), tree->fail_set) == 0)
        return cfx_error_set(err, CFX_E_HOST, "the fake tree cannot set '%s'", path);
    fake_entry *old = fake_find(tree, path, strlen(path));
    fake_tensor(tree, path, v.as.f, old && old->rank ? old->rank : 1);
    return CFX_OK;
}

/* Whether `path` is `prefix`, or in it. */
static inline bool fake_is_in(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(path, prefix, n) == 0 && (path[n] == '.' || path[n] == '\0');
}

static inline cfx_status fake_remove(void *ctx, const char *path, cfx_error *err)
{
    fake_tree *tree = ctx;
    size_t kept = 0;
    const size_t n = tree->n;
    for (size_t i = 0; i < n; i++)
        if (!fake_is_in(tree->entries[i].path, path))
            tree->entries[kept++] = tree->entries[i];
    tree->n = kept;
    return kept < n ? CFX_OK : fake_missing(path, err);
}

static inline cfx_status fake_copy(void *ctx, const char *from, const char *to, cfx_error *err)
{
    fake_tree *tree = ctx;
    const size_t n = tree->n;
    char path[128];
    bool found = false;
    for (size_t i = 0; i < n && strcmp(from, to) != 0; i++) {
        const fake_entry e = tree->entries[i];
        if (!fake_is_in(e.path, from))
            continue;
        snprintf(path, sizeof path, "%s%s", to, e.path + strlen(from));
        fake_entry *copy = fake_put(tree, path);
        copy->class_name = e.class_name;
        copy->graph = e.graph;
        copy->value = e.value;
        copy->rank = e.rank;
        found = true;
    }
    return found || strcmp(from, to) == 0 ? CFX_OK : fake_missing(from, err);
}

static inline cfx_graph *fake_graph(void *ctx, const char *path)
{
    fake_entry *e = fake_find(ctx, path, strlen(path));
    return e ? e->graph : NULL;
}

/* Operators on numbers: tensors have one element. */
static inline cfx_value fake_call(void *ctx, cfx_graph *g, cfx_operator op, const cfx_value *args,
                                  size_t n, cfx_error *err)
{
    fake_tree *tree = ctx;
    const double a = args[0].as.f;
    const double b = n > 1 ? args[1].as.f : 0;
    (void)g;
    if (++tree->calls == tree->fail_call) {
        cfx_error_set(err, CFX_E_HOST, "call %d fails", tree->calls);
        return cfx_value_invalid();
    }
    if (op == CFX_OPID_add)
        return cfx_value_float(a + b);
    if (op == CFX_OPID_sub)
        return cfx_value_float(a - b);
    if (op == CFX_OPID_mul)
        return cfx_value_float(a * b);
    if (op == CFX_OPID_neg)
        return cfx_value_float(-a);
    if (op == CFX_OPID_rsqrt)
        return cfx_value_float(1 / sqrt(a));
    return args[0];  /* reshape, to */
}

static inline cfx_module_tree fake_modules(fake_tree *tree)
{
    return (cfx_module_tree){.ctx = tree, .class_name = fake_class_name, .identity = fake_identity,
                             .get = fake_get, .set = fake_set, .remove = fake_remove,
                             .copy = fake_copy, .graph = fake_graph, .call = fake_call};
}

#endif
