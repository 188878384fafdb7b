/* value.c - building, counting and reading the values of a graph. */
#include "walk_impl.h"

_Static_assert(sizeof(cfx_value) == 16, "values are copied by the million");

/* ---- names of closed sets ------------------------------------------------------------------ */

const char *cfx_kind_name(cfx_kind kind)
{
    static const char *const names[CFX_KIND_COUNT] = {
#define CFX_KIND(id, name, payload) name,
#include <cfx/kind.def>
#undef CFX_KIND
    };
    return (unsigned)kind < CFX_KIND_COUNT ? names[kind] : "unknown";
}

/* As every text spells them; torch's own names start behind the dot. */
#define TORCH "torch."
#define BEHIND_TORCH(name) ((name) + sizeof TORCH - 1)

static const char *const dtype_words[CFX_DTYPE_COUNT] = {
#define CFX_DTYPE(id, name, size, brief) TORCH name,
#include <cfx/dtype.def>
#undef CFX_DTYPE
};

static const size_t dtype_sizes[CFX_DTYPE_COUNT] = {
#define CFX_DTYPE(id, name, size, brief) size,
#include <cfx/dtype.def>
#undef CFX_DTYPE
};

static const char *const layout_words[CFX_LAYOUT_COUNT] = {
#define CFX_LAYOUT(id, name) TORCH name,
#define CFX_MEMORY_FORMAT(id, name)
#include <cfx/layout.def>
#undef CFX_LAYOUT
#undef CFX_MEMORY_FORMAT
};

static const char *const memory_format_words[CFX_MEMORY_FORMAT_COUNT] = {
#define CFX_LAYOUT(id, name)
#define CFX_MEMORY_FORMAT(id, name) TORCH name,
#include <cfx/layout.def>
#undef CFX_LAYOUT
#undef CFX_MEMORY_FORMAT
};

static const char *word_at(const char *const *words, int64_t i, int64_t n)
{
    return i >= 0 && i < n ? words[i] : TORCH "unknown";
}

const char *cfxi_ir_value_word(cfx_value v)
{
    switch ((cfx_kind)v.kind) {
    case CFX_KIND_NONE:
        return "None";
    case CFX_KIND_BOOL:
        return v.as.b ? "True" : "False";
    case CFX_KIND_DTYPE:
        return word_at(dtype_words, v.as.i, CFX_DTYPE_COUNT);
    case CFX_KIND_LAYOUT:
        return word_at(layout_words, v.as.i, CFX_LAYOUT_COUNT);
    case CFX_KIND_MEMORY_FORMAT:
        return word_at(memory_format_words, v.as.i, CFX_MEMORY_FORMAT_COUNT);
    default:
        return NULL;
    }
}

const char *cfx_dtype_name(cfx_dtype dtype)
{
    return BEHIND_TORCH(word_at(dtype_words, dtype, CFX_DTYPE_COUNT));
}

size_t cfx_dtype_size(cfx_dtype dtype)
{
    return (unsigned)dtype < CFX_DTYPE_COUNT ? dtype_sizes[dtype] : 0;
}

const char *cfx_layout_name(cfx_layout layout)
{
    return BEHIND_TORCH(word_at(layout_words, layout, CFX_LAYOUT_COUNT));
}

const char *cfx_memory_format_name(cfx_memory_format format)
{
    return BEHIND_TORCH(word_at(memory_format_words, format, CFX_MEMORY_FORMAT_COUNT));
}

/* ---- strings ------------------------------------------------------------------------------- */

cfx_str *cfxi_ir_str_new(cfxi_arena *arena, const char *text, size_t size)
{
    if (size > UINT32_MAX - 64)
        return NULL;
    cfx_str *str = cfxi_base_arena_alloc(arena, sizeof *str + size + 1);
    if (!str)
        return NULL;
    str->refs = 0;
    str->size = (uint32_t)size;
    if (size)
        memcpy(str->data, text, size);
    str->data[size] = '\0';
    return str;
}

void cfxi_ir_str_free(cfxi_arena *arena, cfx_str *str)
{
    if (str)
        cfxi_base_arena_free(arena, str, sizeof *str + str->size + 1);
}

static cfx_value str_value(cfx_graph *g, cfx_kind kind, const char *text, size_t size,
                           cfx_error *err)
{
    cfx_str *str = cfxi_ir_str_new(&g->arena, text, size);
    if (!str) {
        cfxi_base_nomem(err);
        return cfx_value_invalid();
    }
    cfx_value v = cfx_value_scalar(kind, 0);
    v.as.str = str;
    return v;
}

cfx_value cfx_value_str(cfx_graph *g, const char *text, size_t size, cfx_error *err)
{
    if (!cfxi_base_utf8_valid(text, size)) {
        cfx_error_set(err, CFX_E_VALUE, "a string value must be UTF-8; use a bytes value instead");
        return cfx_value_invalid();
    }
    return str_value(g, CFX_KIND_STR, text, size, err);
}

cfx_value cfx_value_bytes(cfx_graph *g, const void *data, size_t size, cfx_error *err)
{
    return str_value(g, CFX_KIND_BYTES, data, size, err);
}

cfx_value cfx_value_integer(cfx_graph *g, const char *digits, size_t size, cfx_error *err)
{
    int64_t small;
    if (cfxi_base_parse_int(digits, size, &small))
        return cfx_value_int(small);
    bool negative = size > 0 && digits[0] == '-';
    size_t at = negative;
    while (at + 1 < size && digits[at] == '0')  /* one spelling for each number */
        at++;
    for (size_t i = at; i < size || i == at; i++) {
        if (i < size && cfxi_base_is_digit(digits[i]))
            continue;
        cfx_error_set(err, CFX_E_VALUE, "'%.*s' is not a decimal integer",
                      size > 40 ? 40 : (int)size, digits);
        return cfx_value_invalid();
    }
    cfx_value v = str_value(g, CFX_KIND_BIGINT, digits + at - negative, size - at + negative, err);
    if (v.kind == CFX_KIND_BIGINT && negative)
        v.as.str->data[0] = '-';
    return v;
}

static bool is_device(const char *name, size_t size)
{
    size_t i = cfxi_base_identifier_size(name, size);
    if (i == 0 || i == size)
        return i > 0;
    if (name[i] != ':' || i + 1 == size)
        return false;
    for (i++; i < size; i++)
        if (!cfxi_base_is_digit(name[i]))
            return false;
    return true;
}

cfx_value cfx_value_device(cfx_graph *g, const char *name, size_t size, cfx_error *err)
{
    if (is_device(name, size))
        return str_value(g, CFX_KIND_DEVICE, name, size, err);
    cfx_error_set(err, CFX_E_VALUE, "'%.*s' is not a device; write a type and an optional index, "
                  "as in cpu or cuda:0", size > 40 ? 40 : (int)size, name);
    return cfx_value_invalid();
}

/* ---- containers ---------------------------------------------------------------------------- */

cfx_status cfxi_ir_value_check(const cfx_graph *g, cfx_value v, cfx_error *err)
{
    if (v.kind == CFX_KIND_INVALID || v.kind >= CFX_KIND_COUNT) {
        if (err && err->status == CFX_OK)
            return cfx_error_set(err, CFX_E_VALUE, "an invalid value was passed; check the call "
                                 "that created it");
        return err ? err->status : CFX_E_VALUE;  /* the constructor has said why */
    }
    if (cfxi_ir_is_ref(v) && v.as.ref->graph != g)
        return cfx_error_set(err, CFX_E_GRAPH, "a %s value belongs to another graph; copy it into "
                             "this one first", cfx_kind_name((cfx_kind)v.kind));
    if (v.kind != CFX_KIND_NODE)
        return CFX_OK;
    const cfx_node *n = v.as.node;
    CFX_TRY(cfxi_base_expect(n, "node in a node value", err));
    if (cfxi_ir_node_is_root(n))
        return cfx_error_set(err, CFX_E_VALUE, "the node value has no node");
    if (n->graph != g)
        return cfx_error_set(err, CFX_E_GRAPH, "node %%%s belongs to another graph; copy it into "
                             "this one first", n->name->data);
    if (cfxi_ir_node_erased(n))
        return cfx_error_set(err, CFX_E_GRAPH, "node %%%s was erased and cannot be used as an "
                             "argument", n->name->data);
    return CFX_OK;
}

static bool all_of_kind(const cfx_value *items, size_t n, cfx_kind a, cfx_kind b)
{
    for (size_t i = 0; i < n; i++)
        if (items[i].kind != (uint32_t)a && items[i].kind != (uint32_t)b)
            return false;
    return true;
}

/* Whether the items have the layout that kind.def states. */
static bool layout_fits(cfx_kind kind, const cfx_value *items, size_t n)
{
    switch (kind) {
    case CFX_KIND_COMPLEX:
        return n == 2 && all_of_kind(items, n, CFX_KIND_FLOAT, CFX_KIND_FLOAT);
    case CFX_KIND_SLICE:
        return n == 3;
    case CFX_KIND_RANGE:
        return n == 3 && all_of_kind(items, n, CFX_KIND_INT, CFX_KIND_BIGINT);
    case CFX_KIND_DICT:
        return n % 2 == 0;
    case CFX_KIND_NAMEDTUPLE:
        return n >= 2 && items[0].kind == CFX_KIND_HOST && items[1].kind == CFX_KIND_TUPLE &&
               items[1].as.seq->size == n - 2 &&
               all_of_kind(items[1].as.seq->items, n - 2, CFX_KIND_STR, CFX_KIND_STR);
    default:
        return true;
    }
}

static cfx_status check_items(const cfx_graph *g, cfx_kind kind, const cfx_value *items, size_t n,
                              uint32_t *depth, cfx_error *err)
{
    if (n > UINT32_MAX - 64)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < n; i++) {
        if (!cfxi_ir_is_plain(items[i]))
            CFX_TRY(cfxi_ir_value_check(g, items[i], err));
        if (cfxi_ir_is_seq(items[i]) && items[i].pad + 1 > *depth)
            *depth = items[i].pad + 1;
    }
    if (*depth > CFX_MAX_DEPTH)
        return cfx_error_set(err, CFX_E_LIMIT, "an argument nests containers more than %d deep",
                             CFX_MAX_DEPTH);
    if (!layout_fits(kind, items, n))
        return cfx_error_set(err, CFX_E_TYPE, "these %zu items cannot form a %s", n,
                             cfx_kind_name(kind));
    return CFX_OK;
}

cfx_value cfx_value_seq(cfx_graph *g, cfx_kind kind, const cfx_value *items, size_t n,
                        cfx_error *err)
{
    uint32_t depth = 1;
    if (!cfxi_ir_is_seq(cfx_value_scalar(kind, 0))) {
        cfx_error_set(err, CFX_E_TYPE, "%s is not a container", cfx_kind_name(kind));
        return cfx_value_invalid();
    }
    if (check_items(g, kind, items, n, &depth, err) != CFX_OK)
        return cfx_value_invalid();
    if (n == 0)
        return cfxi_ir_seq_value(kind, g->empty, depth);
    cfx_seq *seq = cfxi_base_arena_alloc(&g->arena, sizeof *seq + n * sizeof *items);
    if (!seq) {
        cfxi_base_nomem(err);
        return cfx_value_invalid();
    }
    seq->refs = 0;
    seq->size = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        if (items[i].kind >= CFX_KIND_STR && items[i].kind != CFX_KIND_NODE)
            cfxi_ir_value_hold(items[i]);
        seq->items[i] = items[i];
    }
    return cfxi_ir_seq_value(kind, seq, depth);
}

cfx_value cfx_value_list(cfx_graph *g, const cfx_value *items, size_t n, cfx_error *err)
{
    return cfx_value_seq(g, CFX_KIND_LIST, items, n, err);
}

cfx_value cfx_value_tuple(cfx_graph *g, const cfx_value *items, size_t n, cfx_error *err)
{
    return cfx_value_seq(g, CFX_KIND_TUPLE, items, n, err);
}

cfx_value cfx_value_complex(cfx_graph *g, double re, double im, cfx_error *err)
{
    cfx_value parts[2] = {cfx_value_float(re), cfx_value_float(im)};
    return cfx_value_seq(g, CFX_KIND_COMPLEX, parts, 2, err);
}

cfx_value cfx_value_slice(cfx_graph *g, cfx_value start, cfx_value stop, cfx_value step,
                          cfx_error *err)
{
    cfx_value parts[3] = {start, stop, step};
    return cfx_value_seq(g, CFX_KIND_SLICE, parts, 3, err);
}

/* ---- references ---------------------------------------------------------------------------- */

static cfx_value ref_value(cfx_kind kind, cfx_ref *ref)
{
    if (!ref)
        return cfx_value_invalid();
    cfx_value v = cfx_value_scalar(kind, 0);
    v.as.ref = ref;
    ref->floating++;
    return v;
}

cfx_value cfx_value_host(cfx_graph *g, void *object, cfx_error *err)
{
    return ref_value(CFX_KIND_HOST, cfxi_ir_ref_object(g, object, err));
}

cfx_value cfx_value_name(cfx_graph *g, const char *name, size_t size, cfx_error *err)
{
    void *object = NULL;
    if (g->host && g->host->resolve && !memchr(name, '\0', size)) {
        cfx_str *text = cfxi_ir_str_new(&g->arena, name, size);
        if (!text) {
            cfxi_base_nomem(err);
            return cfx_value_invalid();
        }
        cfx_status status = g->host->resolve(g->host->ctx, text->data, &object, err);
        cfxi_ir_str_free(&g->arena, text);
        if (status != CFX_OK) {
            cfxi_base_failed(err, status);
            return cfx_value_invalid();
        }
    }
    if (!object)
        return ref_value(CFX_KIND_HOST, cfxi_ir_ref_name(g, name, size, err));
    cfx_value v = cfx_value_host(g, object, err);
    g->host->release(g->host->ctx, object);  /* the graph has its own reference now */
    return v;
}

cfx_value cfx_value_region(cfx_graph *g, cfx_graph *sub, cfx_error *err)
{
    return ref_value(CFX_KIND_GRAPH, cfxi_ir_ref_region(g, sub, err));
}

/* ---- counting ------------------------------------------------------------------------------ */

static void hold_ref(cfx_ref *ref)
{
    ref->refs++;
    ref->floating -= ref->floating > 0;
}

void cfxi_ir_value_hold(cfx_value v)
{
    if (cfxi_ir_is_str(v))
        v.as.str->refs++;
    else if (cfxi_ir_is_seq(v))
        v.as.seq->refs++;
    else if (cfxi_ir_is_ref(v))
        hold_ref(v.as.ref);
}

void cfxi_ir_value_unhold(cfx_value v)
{
    if (cfxi_ir_is_str(v))
        v.as.str->refs--;
    else if (cfxi_ir_is_seq(v))
        v.as.seq->refs--;
    else if (cfxi_ir_is_ref(v) && --v.as.ref->refs == 0)
        v.as.ref->floating++;
}

static void drop_leaf(cfx_graph *g, cfx_value v)
{
    if (cfxi_ir_is_str(v) && --v.as.str->refs == 0)
        cfxi_ir_str_free(&g->arena, v.as.str);
    else if (cfxi_ir_is_ref(v))
        cfxi_ir_ref_drop(g, v.as.ref);
}

/* Freeing cannot fail, so it needs no memory: a container that is being freed has no use for its
 * count, which numbers its items instead, and the item that leads to an inner one leads back out
 * while that is being freed. */
static void free_seq(cfx_graph *g, cfx_seq *seq)
{
    cfx_seq *outer = NULL;
    seq->refs = 0;
    for (;;) {
        while (seq->refs < seq->size) {
            cfx_value *item = &seq->items[seq->refs];
            if (!cfxi_ir_is_seq(*item)) {
                drop_leaf(g, *item);
            } else if (--item->as.seq->refs == 0) {
                cfx_seq *inner = item->as.seq;
                item->as.seq = outer;
                outer = seq;
                seq = inner;
                continue;
            }
            seq->refs++;
        }
        cfx_seq *done = seq;
        seq = outer;
        cfxi_base_arena_free(&g->arena, done, sizeof *done + done->size * sizeof *done->items);
        if (!seq)
            return;
        outer = seq->items[seq->refs++].as.seq;
    }
}

void cfxi_ir_value_drop(cfx_graph *g, cfx_value v)
{
    if (!cfxi_ir_is_seq(v))
        drop_leaf(g, v);
    else if (--v.as.seq->refs == 0)
        free_seq(g, v.as.seq);
}

cfx_value cfx_value_retain(cfx_value v)
{
    cfxi_ir_value_hold(v);
    return v;
}

void cfx_value_release(cfx_graph *g, cfx_value v)
{
    cfxi_ir_value_drop(g, v);
    cfxi_ir_graph_settle(g);
}

static void discard_ref(cfx_graph *g, cfx_ref *ref)
{
    ref->floating -= ref->floating > 0;
    cfxi_ir_ref_discard(g, ref);
}

void cfx_value_discard(cfx_graph *g, cfx_value v)
{
    if (cfxi_ir_is_str(v) && v.as.str->refs == 0)
        cfxi_ir_str_free(&g->arena, v.as.str);
    else if (cfxi_ir_is_seq(v) && v.as.seq->refs == 0)
        free_seq(g, v.as.seq);
    else if (cfxi_ir_is_ref(v))
        discard_ref(g, v.as.ref);
    cfxi_ir_graph_settle(g);
}

/* ---- reading ------------------------------------------------------------------------------- */

const char *cfx_value_text(cfx_value v, size_t *size)
{
    if (!cfxi_ir_is_str(v)) {
        if (size)
            *size = 0;
        return NULL;
    }
    if (size)
        *size = v.as.str->size;
    return v.as.str->data;
}

const cfx_value *cfx_value_items(cfx_value v, size_t *n)
{
    bool some = cfxi_ir_is_seq(v) && v.as.seq;
    if (n)
        *n = some ? v.as.seq->size : 0;
    return some ? v.as.seq->items : NULL;
}

cfx_value cfxi_ir_value_get(cfx_value dict, const char *key)
{
    size_t n = 0;
    size_t size = strlen(key);
    const cfx_value *items = dict.kind == CFX_KIND_DICT ? cfx_value_items(dict, &n) : NULL;
    for (size_t i = 0; i + 1 < n; i += 2) {
        const cfx_str *str = items[i].kind == CFX_KIND_STR ? items[i].as.str : NULL;
        if (str && str->size == size && memcmp(str->data, key, size) == 0)
            return items[i + 1];
    }
    return cfx_value_invalid();
}

cfx_graph *cfx_value_graph(cfx_value region)
{
    return region.kind == CFX_KIND_GRAPH ? region.as.ref->region : NULL;
}

void *cfx_value_object(cfx_value host)
{
    return host.kind == CFX_KIND_HOST ? host.as.ref->object : NULL;
}

const char *cfx_value_host_name(cfx_graph *g, cfx_value host, cfx_error *err)
{
    if (host.kind != CFX_KIND_HOST) {
        cfx_error_set(err, CFX_E_TYPE, "a %s is not a host value", cfx_kind_name(host.kind));
        return NULL;
    }
    const cfx_str *name = cfxi_ir_ref_qualified_name(g, host.as.ref, err);
    return name ? name->data : NULL;
}

static cfx_status each_node_deep(const cfx_value *items, size_t n, cfx_node_fn *fn, void *ctx)
{
    cfx_status status = CFX_OK;
    cfxi_walk w;
    cfxi_ir_walk_begin(&w, NULL);
    cfxi_ir_walk_items(&w, CFX_KIND_TUPLE, items, n);
    for (cfx_value v; status == CFX_OK && cfxi_ir_walk_leaf(&w, &v);)
        if (v.kind == CFX_KIND_NODE)
            status = fn(ctx, v.as.node);
    const cfx_status walked = cfxi_ir_walk_end(&w, NULL);
    return status == CFX_OK ? walked : status;
}

cfx_status cfx_value_each_node(cfx_value v, cfx_node_fn *fn, void *ctx)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    if (v.kind == CFX_KIND_NODE)
        return fn(ctx, v.as.node);
    size_t i = 0;
    for (; i < n && !cfxi_ir_is_seq(items[i]); i++)
        if (items[i].kind == CFX_KIND_NODE)
            CFX_TRY(fn(ctx, items[i].as.node));
    return i < n ? each_node_deep(items + i, n - i, fn, ctx) : CFX_OK;
}

cfx_value cfxi_ir_seq_item(cfx_value of, cfx_value i)
{
    size_t size;
    const cfx_value *items = cfx_value_items(of, &size);
    const int64_t n = (int64_t)size;
    if ((of.kind != CFX_KIND_TUPLE && of.kind != CFX_KIND_LIST) || i.kind != CFX_KIND_INT ||
        i.as.i < -n || i.as.i >= n)
        return cfx_value_invalid();
    return items[i.as.i < 0 ? i.as.i + n : i.as.i];
}
