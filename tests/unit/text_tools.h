/* text_tools.h - what the tests of the texts share: graphs to strings, a host of fake objects. */
#ifndef CFX_TESTS_TEXT_TOOLS_H
#define CFX_TESTS_TEXT_TOOLS_H

#include "test_alloc.h"
#include "ir/graph_impl.h"

#include <cfx/graph.h>

/* The text of a buffer, for CHECK_STR_EQ; the next call but seven overwrites it. */
static inline const char *keep(cfx_buffer *b, cfx_status status)
{
    static char kept[8][1 << 16];
    static int next;
    char *out = kept[next++ % 8];
    snprintf(out, sizeof kept[0], "%s%s", status == CFX_OK ? "" : cfx_status_name(status), b->data);
    cfx_buffer_free(b);
    return out;
}

#define AS_STRING(call_)                                                                           \
    cfx_buffer b;                                                                                  \
    cfx_buffer_init(&b, NULL);                                                                     \
    const cfx_sink out = cfx_buffer_sink(&b);                                                      \
    return keep(&b, call_)

static inline const char *printed(cfx_graph *g) { AS_STRING(cfx_graph_print(g, out, NULL)); }
static inline const char *node_printed(cfx_node *n) { AS_STRING(cfx_node_print(n, out, NULL)); }
static inline const char *text_of(cfx_graph *g) { AS_STRING(cfx_graph_text(g, out, NULL)); }
static inline const char *table_of(cfx_graph *g, size_t width)
{
    AS_STRING(cfx_graph_table(g, width, out, NULL));
}
static inline const char *value_printed(cfx_graph *g, cfx_value v)
{
    AS_STRING(cfx_value_print(g, v, out, NULL));
}
static inline const char *value_repr(cfx_graph *g, cfx_value v)
{
    AS_STRING(cfxi_ir_value_repr(g, v, out, NULL));
}

/* ---- a host -------------------------------------------------------------------------------- */

typedef struct fake_object {
    const char *repr;
    const char *str;
    const char *name;  /* NULL: it has none */
    int refs;
} fake_object;

static inline cfx_status fake_write(cfx_sink out, const char *text)
{
    return out.write(out.ctx, text, strlen(text));
}
static inline void fake_retain(void *ctx, void *object)
{
    (void)ctx;
    ((fake_object *)object)->refs++;
}
static inline void fake_release(void *ctx, void *object)
{
    (void)ctx;
    ((fake_object *)object)->refs--;
}
static inline cfx_status fake_repr(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    const fake_object *o = object;
    (void)ctx;
    return o->repr ? fake_write(out, o->repr) : cfx_error_set(err, CFX_E_HOST, "repr raised");
}
static inline cfx_status fake_show(void *ctx, void *object, cfx_show where, cfx_sink out,
                                   cfx_error *err)
{
    const fake_object *o = object;
    (void)ctx;
    (void)err;
    return fake_write(out, where == CFX_SHOW_TYPE || where == CFX_SHOW_TARGET ? o->name : o->str);
}
static inline cfx_status fake_name(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    const fake_object *o = object;
    (void)ctx;
    return o->name ? fake_write(out, o->name) : cfx_error_set(err, CFX_E_KEY, "no name");
}
static inline cfx_status fake_hint(void *ctx, void *object, cfx_sink out, cfx_error *err)
{
    (void)ctx;
    (void)object;
    (void)err;
    return fake_write(out, "hint");
}
/* Knows the one object that is its context. */
static inline cfx_status fake_resolve(void *ctx, const char *name, void **object, cfx_error *err)
{
    fake_object *known = ctx;
    (void)err;
    *object = NULL;
    if (known && known->name && strcmp(name, known->name) == 0) {
        known->refs++;
        *object = known;
    }
    return CFX_OK;
}
static inline cfx_host fake_host(fake_object *known)
{
    const cfx_host host = {.retain = fake_retain, .release = fake_release, .repr = fake_repr,
                           .show = fake_show, .qualified_name = fake_name,
                           .resolve = fake_resolve, .name_hint = fake_hint, .ctx = known};
    return host;
}

#endif
