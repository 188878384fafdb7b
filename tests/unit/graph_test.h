/* graph_test.h - what the tests of graphs share: a fake host, and the whole state as text. */
#ifndef CFX_TESTS_GRAPH_TEST_H
#define CFX_TESTS_GRAPH_TEST_H

#include "test_alloc.h"

#include <cfx/embed/graph.h>
#include <cfx/embed/host.h>
#include <cfx/embed/location.h>
#include <cfx/graph.h>
#include <stdarg.h>

/* ---- a fake host --------------------------------------------------------------------------- */

/* An object of the fake host. `died` is called when its last reference goes. */
typedef struct fake_object {
    const char *name;
    int refs;
    void (*died)(struct fake_object *self);
    void *ctx;
} fake_object;

/* The fake host's context: which calls fail, and whether they say why; how often it was asked. */
typedef struct fake_host {
    cfx_status fail_name, fail_hint, fail_resolve;
    bool fail_bind;
    bool silent; /* fails without filling in *err */
    int names, hints, bound;
    fake_object *known; /* what `resolve` finds, by its name */
    void (*asked)(void *ctx); /* called whenever the host is asked for something */
    void *ctx;
} fake_host;

static inline void fake_retain(void *ctx, void *object)
{
    (void)ctx;
    ((fake_object *)object)->refs++;
}

static inline void fake_release(void *ctx, void *object)
{
    fake_object *o = object;
    (void)ctx;
    if (--o->refs == 0 && o->died)
        o->died(o);
}

static inline cfx_status fake_answer(fake_host *h, cfx_status fail, const char *text, cfx_sink out,
                                     cfx_error *err)
{
    if (h->asked)
        h->asked(h->ctx);
    if (fail != CFX_OK)
        return h->silent ? fail : cfx_error_set(err, fail, "the fake host fails");
    return out.write(out.ctx, text, strlen(text));
}

static inline cfx_status fake_name(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    fake_host *h = ctx;
    h->names++;
    return fake_answer(h, h->fail_name, ((fake_object *)object)->name, out, err);
}

static inline cfx_status fake_hint(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    fake_host *h = ctx;
    const char *dot = strrchr(((fake_object *)object)->name, '.');
    h->hints++;
    return fake_answer(h, h->fail_hint, dot ? dot + 1 : ((fake_object *)object)->name, out, err);
}

static inline cfx_status fake_resolve(void *ctx, const char *name, void **object, cfx_error *err)
{
    fake_host *h = ctx;
    if (h->fail_resolve != CFX_OK)
        return h->silent ? h->fail_resolve : cfx_error_set(err, h->fail_resolve, "cannot resolve");
    *object = h->known && strcmp(h->known->name, name) == 0 ? h->known : NULL;
    if (*object)
        h->known->refs++;
    return CFX_OK;
}

/* The host's object for a region: holds the region, and lets go of it when it dies. */
static inline void fake_bound_died(fake_object *o)
{
    cfx_graph *region = o->ctx;
    free(o);
    cfx_graph_release(region);
}

static inline void *fake_bind(void *ctx, cfx_graph *region)
{
    fake_host *h = ctx;
    fake_object *o = h->fail_bind ? NULL : malloc(sizeof *o);
    if (o)
        *o = (fake_object){"region", 1, fake_bound_died, cfx_graph_retain(region)};
    h->bound += o != NULL;
    if (h->asked)
        h->asked(h->ctx);
    return o;
}

static inline cfx_host fake_host_table(fake_host *h)
{
    return (cfx_host){.retain = fake_retain, .release = fake_release, .repr = fake_name,
                      .qualified_name = fake_name, .resolve = fake_resolve,
                      .name_hint = fake_hint, .ctx = h};
}

/* ---- short forms --------------------------------------------------------------------------- */

static inline cfx_target by_name(const char *name)
{
    return (cfx_target){.name = name, .size = strlen(name)};
}

static inline cfx_target by_object(void *object) { return (cfx_target){.object = object}; }

static inline cfx_value text_value(cfx_graph *g, const char *text)
{
    return cfx_value_str(g, text, strlen(text), NULL);
}

/* A tuple of `n` values: TUPLE(g, 2, cfx_value_node(x), cfx_value_int(1)). */
static inline cfx_value tuple_of(cfx_graph *g, int n, ...)
{
    cfx_value items[8];
    va_list list;
    va_start(list, n);
    for (int i = 0; i < n; i++)
        items[i] = va_arg(list, cfx_value);
    va_end(list);
    return cfx_value_tuple(g, items, (size_t)n, NULL);
}

/* A call of `target` with one node, or none. */
static inline cfx_node *call(cfx_graph *g, const char *target, cfx_node *x)
{
    const cfx_value arg = cfx_value_node(x);
    return cfx_graph_call(g, CFX_OP_CALL_FUNCTION, target, &arg, x != NULL, NULL, 0, NULL);
}

static inline cfx_status erase(cfx_node *n) { return cfx_graph_erase(cfx_node_graph(n), n, NULL); }

/* ---- the whole state as text --------------------------------------------------------------- */

typedef struct dump_text {
    char data[8192];
    size_t size;
} dump_text;

static inline void dump_add(dump_text *d, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(d->data + d->size, sizeof d->data - d->size, format, list);
    va_end(list);
    d->size += n > 0 ? (size_t)n : 0;
    if (d->size >= sizeof d->data)
        d->size = sizeof d->data - 1;
}

static inline void dump_value(dump_text *d, cfx_value v)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    dump_add(d, "%s", cfx_kind_name((cfx_kind)v.kind));
    if (v.kind == CFX_KIND_NODE)
        dump_add(d, ":%s", cfx_node_name(v.as.node, NULL));
    else if (v.kind == CFX_KIND_INT)
        dump_add(d, ":%lld", (long long)v.as.i);
    else if (cfx_value_text(v, NULL))
        dump_add(d, ":%s", cfx_value_text(v, NULL));
    for (size_t i = 0; i < n; i++) {
        dump_add(d, i ? " " : "(");
        dump_value(d, items[i]);
    }
    if (n)
        dump_add(d, ")");
}

static inline void dump_node(dump_text *d, const cfx_node *n)
{
    dump_add(d, "%s %s ", cfx_node_name(n, NULL), cfx_opcode_name(cfx_node_op(n)));
    if (!cfx_node_target_object(n))
        dump_add(d, "%s ", cfx_node_target(n, NULL, NULL));
    dump_value(d, cfx_node_args(n));
    dump_value(d, cfx_node_kwargs(n));
    dump_value(d, cfx_node_type(n));
    dump_add(d, " %s:%u %u in:", cfx_node_file(n) ? cfx_node_file(n) : "", cfx_node_line(n),
             cfx_node_module_stack(n));
    for (size_t i = 0; i < cfx_node_num_inputs(n); i++)
        dump_add(d, " %s", cfx_node_name(cfx_node_input(n, i), NULL));
    dump_add(d, " users:");
    for (const cfx_use *u = cfx_node_first_use(n); u; u = cfx_use_next(u))
        dump_add(d, " %s*%u", cfx_node_name(cfx_use_user(u), NULL), cfx_use_count(u));
    dump_add(d, "\n");
}

/* Everything that can be seen of a graph, but for what its hosts know. */
static inline void dump_graph(dump_text *d, const cfx_graph *g)
{
    d->size = 0;
    d->data[0] = '\0';
    dump_add(d, "size %zu\n", cfx_graph_size(g));
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
        dump_node(d, n);
}

/* Names of the list, of users, of inputs: "a b c". */
static inline const char *list_names(const cfx_graph *g)
{
    static dump_text d;
    d.size = 0;
    d.data[0] = '\0';
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
        dump_add(&d, d.size ? " %s" : "%s", cfx_node_name(n, NULL));
    return d.data;
}

static inline const char *user_names(const cfx_node *n)
{
    static dump_text d;
    d.size = 0;
    d.data[0] = '\0';
    for (const cfx_use *u = cfx_node_first_use(n); u; u = cfx_use_next(u))
        dump_add(&d, d.size ? " %s" : "%s", cfx_node_name(cfx_use_user(u), NULL));
    return d.data;
}

static inline const char *input_names(const cfx_node *n)
{
    static dump_text d;
    d.size = 0;
    d.data[0] = '\0';
    for (size_t i = 0; i < cfx_node_num_inputs(n); i++)
        dump_add(&d, d.size ? " %s" : "%s", cfx_node_name(cfx_node_input(n, i), NULL));
    return d.data;
}

#endif
