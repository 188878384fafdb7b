/* module.c - modules in C: a class, and members by name: children, parameters, buffers, others. */
#include "capture_impl.h"

/* ---- memory -------------------------------------------------------------------------------- */

cfx_module *cfxi_capture_module_make(const cfx_allocator *allocator, cfx_error *err)
{
    allocator = cfxi_base_allocator(allocator);
    cfx_module *m = cfxi_base_alloc(allocator, sizeof *m);
    if (!m) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *m = (cfx_module){.allocator = allocator, .training = true,
                      .key = cfxi_base_hash_key_new(m)};
    atomic_init(&m->refs, 1);
    return m;
}

cfx_module *cfx_module_retain(cfx_module *m)
{
    if (m)
        atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

static void free_text(const cfx_allocator *allocator, char *text)
{
    if (text)
        cfxi_base_free(allocator, text, strlen(text) + 1);
}

static char *copy_text(const cfx_allocator *allocator, const char *text, size_t size)
{
    char *copy = cfxi_base_alloc(allocator, size + 1);
    if (copy) {
        memcpy(copy, text, size);
        copy[size] = '\0';
    }
    return copy;
}

static void member_free(const cfx_module *m, cfxi_member *e)
{
    cfx_module_release(e->child);
    cfx_datum_release(e->value);
    free_text(m->allocator, e->name);
    cfxi_base_free(m->allocator, e, sizeof *e);
}

void cfx_module_release(cfx_module *m)
{
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < m->members.size; i++)
        member_free(m, cfxi_capture_member_at(m, i));
    cfxi_base_vec_free(&m->members, sizeof(cfxi_member *), m->allocator);
    cfxi_base_set_free(&m->by_name, m->allocator);
    free_text(m->allocator, m->name);
    cfx_graph_release(m->graph);
    cfxi_capture_observing_release(m->observing);
    cfx_runtime_free(atomic_load(&m->runtime));
    cfxi_base_free(m->allocator, m, sizeof *m);
}

cfx_module *cfxi_capture_module_copy(const cfx_module *m, cfx_error *err)
{
    cfx_module *copy = cfxi_capture_module_make(m->allocator, err);
    if (!copy)
        return NULL;
    copy->type = m->type;
    copy->nn = m->nn;
    copy->data = m->data;
    copy->training = m->training;
    copy->level = m->level;
    copy->graph = m->graph ? cfx_graph_retain(m->graph) : NULL;
    copy->observing = cfxi_capture_observing_retain(m->observing);
    copy->name = m->name ? copy_text(m->allocator, m->name, strlen(m->name)) : NULL;
    bool good = !m->name || copy->name;
    for (size_t i = 0; good && i < m->members.size; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        good = cfxi_capture_module_put(copy, e->name, strlen(e->name), e->kind, e->child, e->value,
                                       NULL) == CFX_OK;
    }
    if (good)
        return copy;
    cfx_module_release(copy);
    cfxi_base_nomem(err);
    return NULL;
}

/* ---- members ------------------------------------------------------------------------------- */

static uint32_t hash_of_member(const void *item)
{
    return ((const cfxi_member *)item)->hash;
}

static bool is_called(const void *item, const void *name, size_t size)
{
    const char *own = ((const cfxi_member *)item)->name;
    return strncmp(own, name, size) == 0 && own[size] == '\0';
}

cfxi_member *cfxi_capture_module_find(const cfx_module *m, const char *name, size_t size)
{
    return cfxi_base_set_find(&m->by_name, cfxi_base_hash_keyed(&m->key, name, size), is_called,
                              name, size);
}

static cfxi_member *add_member(cfx_module *m, const char *name, size_t size, cfxi_member_kind kind)
{
    const cfx_allocator *allocator = m->allocator;
    cfxi_member *e = cfxi_base_alloc(allocator, sizeof *e);
    char *copy = e ? copy_text(allocator, name, size) : NULL;
    if (!copy || !cfxi_base_vec_reserve(&m->members, 1, sizeof e, allocator) ||
        !cfxi_base_set_reserve(&m->by_name, hash_of_member, allocator)) {
        free_text(allocator, copy);
        cfxi_base_free(allocator, e, sizeof *e);
        return NULL;
    }
    *e = (cfxi_member){.name = copy, .kind = kind, .value = cfx_datum_invalid(),
                       .hash = cfxi_base_hash_keyed(&m->key, name, size)};
    ((cfxi_member **)m->members.data)[m->members.size++] = e;
    cfxi_base_set_insert(&m->by_name, e->hash, e);
    return e;
}

/* Moves what is below `m`, too; false if it would be too deep. Only what was added to something
 * deeper is written to: a module that is read by several threads has its level already. */
static bool deepen(cfx_module *m, int32_t level)
{
    if (level <= m->level)
        return true;
    if (level >= CFX_MAX_REGION_DEPTH)
        return false;
    m->level = level;
    for (size_t i = 0; i < m->members.size; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (e->kind == CFXI_MEMBER_CHILD && !deepen(e->child, level + 1))
            return false;
    }
    return true;
}

static bool is_tensor_or_none(cfx_datum d)
{
    return d.kind == CFX_DATUM_TENSOR || d.kind == CFX_DATUM_NONE;
}

cfx_status cfxi_capture_module_put(cfx_module *m, const char *name, size_t size,
                                   cfxi_member_kind kind, cfx_module *child, cfx_datum value,
                                   cfx_error *err)
{
    if (child && !deepen(child, m->level + 1))
        return cfx_error_set(err, CFX_E_LIMIT, "modules nest more than %d deep",
                             CFX_MAX_REGION_DEPTH);
    cfxi_member *e = cfxi_capture_module_find(m, name, size);
    e = e ? e : add_member(m, name, size, kind);
    if (!e)
        return cfxi_base_nomem(err);
    const bool was_tensor = e->kind == CFXI_MEMBER_PARAMETER || e->kind == CFXI_MEMBER_BUFFER;
    if (!(was_tensor && kind == CFXI_MEMBER_ATTRIBUTE && is_tensor_or_none(value)))
        e->kind = kind;
    cfx_module *old = e->child;
    cfx_datum before = e->value;
    e->child = cfx_module_retain(child);
    e->value = cfx_datum_retain(value);
    cfx_module_release(old);
    cfx_datum_release(before);
    m->version++;
    return CFX_OK;
}

bool cfxi_capture_module_drop(cfx_module *m, const char *name, size_t size)
{
    cfxi_member *e = cfxi_capture_module_find(m, name, size);
    if (!e)
        return false;
    cfxi_member **at = m->members.data;
    while (*at != e)
        at++;
    memmove(at, at + 1, (--m->members.size - (size_t)(at - (cfxi_member **)m->members.data)) *
                            sizeof *at);
    cfxi_base_set_remove(&m->by_name, e->hash, e);
    m->version++;
    member_free(m, e);
    return true;
}

/* ---- paths --------------------------------------------------------------------------------- */

static cfx_module *child_of(const cfx_module *m, const char *name, size_t size)
{
    const cfxi_member *e = cfxi_capture_module_find(m, name, size);
    return e && e->kind == CFXI_MEMBER_CHILD ? e->child : NULL;
}

cfx_module *cfxi_capture_module_owner(const cfx_module *m, const char *path, const char **last)
{
    const char *dot;
    while (m && (dot = strchr(path, '.')) != NULL) {
        m = child_of(m, path, (size_t)(dot - path));
        path = dot + 1;
    }
    *last = path;
    return (cfx_module *)m;
}

cfxi_member *cfxi_capture_module_at(const cfx_module *m, const char *path)
{
    const char *last;
    const cfx_module *owner = m ? cfxi_capture_module_owner(m, path, &last) : NULL;
    return owner ? cfxi_capture_module_find(owner, last, strlen(last)) : NULL;
}

cfx_module *cfx_module_child(const cfx_module *m, const char *path)
{
    const cfxi_member *e = path ? cfxi_capture_module_at(m, path) : NULL;
    return e && e->kind == CFXI_MEMBER_CHILD ? e->child : NULL;
}

/* ---- the tree ------------------------------------------------------------------------------ */

typedef struct walk {
    cfxi_module_fn *fn;
    void *ctx;
    cfxi_pointers seen;  /* modules */
    cfx_buffer path;
    const cfx_allocator *allocator;
    size_t depth;
} walk;

static cfx_status visit(walk *w, cfx_module *m, cfx_error *err)
{
    const size_t size = w->path.size;
    if (cfxi_base_pointers_get(&w->seen, m))
        return CFX_OK;
    if (w->depth++ >= CFX_MAX_REGION_DEPTH)
        return cfx_error_set(err, CFX_E_LIMIT, "modules nest more than %d deep",
                             CFX_MAX_REGION_DEPTH);
    if (!cfxi_base_pointers_set(&w->seen, m, m, w->allocator))
        return cfxi_base_nomem(err);
    CFX_TRY(w->fn(w->ctx, m, w->path.data, err));
    for (size_t i = 0; i < m->members.size; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (e->kind != CFXI_MEMBER_CHILD)
            continue;
        if (cfx_buffer_append(&w->path, ".", size > 0) != CFX_OK ||
            cfx_buffer_append(&w->path, e->name, strlen(e->name)) != CFX_OK)
            return cfxi_base_nomem(err);
        CFX_TRY(visit(w, e->child, err));
        w->path.size = size;
        w->path.data[size] = '\0';
    }
    w->depth--;
    return CFX_OK;
}

cfx_status cfxi_capture_module_each(cfx_module *m, cfxi_module_fn *fn, void *ctx, cfx_error *err)
{
    walk w = {.fn = fn, .ctx = ctx, .allocator = m->allocator};
    cfx_buffer_init(&w.path, m->allocator);
    /* The empty path has no memory of its own that could be cut back to. */
    cfx_status status = cfx_buffer_reserve(&w.path, 64) == CFX_OK ? CFX_OK : cfxi_base_nomem(err);
    if (status == CFX_OK)
        status = visit(&w, m, err);
    cfxi_base_pointers_free(&w.seen, m->allocator);
    cfx_buffer_free(&w.path);
    return status;
}

/* Of the graph and of its regions, which are edited by themselves. */
static uint64_t graph_stamp(const cfx_graph *g)
{
    uint64_t stamp = g->version;
    size_t at = 0;
    for (const cfx_ref *ref; (ref = cfxi_base_set_next(&g->refs_table, &at)) != NULL;)
        if (ref->kind == CFXI_REF_REGION)
            stamp = cfxi_base_hash_mix(stamp, graph_stamp(ref->region));
    return stamp;
}

static bool has_children(const cfx_module *m)
{
    for (size_t i = 0; i < m->members.size; i++)
        if (cfxi_capture_member_at(m, i)->kind == CFXI_MEMBER_CHILD)
            return true;
    return false;
}

/* Mixes what is at and below `m` into *stamp. Other threads may read the same modules, so that they
 * are not marked; those without children, which most are, may be met again. */
static bool mix_stamp(const cfx_module *m, cfxi_pointers *seen, const cfx_allocator *allocator,
                      uint64_t *stamp)
{
    *stamp = cfxi_base_hash_mix(*stamp, (uint64_t)(uintptr_t)m);
    if (cfxi_base_pointers_get(seen, m))
        return true;
    if (has_children(m) && !cfxi_base_pointers_set(seen, m, (cfx_module *)m, allocator))
        return false;
    *stamp = cfxi_base_hash_mix(*stamp, 2 * m->version + m->training);
    if (m->graph)
        *stamp = cfxi_base_hash_mix(*stamp, graph_stamp(m->graph));
    for (size_t i = 0; i < m->members.size; i++) {
        const cfxi_member *e = cfxi_capture_member_at(m, i);
        if (e->kind == CFXI_MEMBER_CHILD && !mix_stamp(e->child, seen, allocator, stamp))
            return false;
    }
    return true;
}

bool cfxi_capture_module_stamp(const cfx_module *m, uint64_t *out)
{
    cfxi_pointers seen = {0};
    *out = 0;
    const bool good = mix_stamp(m, &seen, m->allocator, out);
    cfxi_base_pointers_free(&seen, m->allocator);
    return good;
}

/* ---- making, as users do it ---------------------------------------------------------------- */

/* Inputs may be called anything: graphs of other languages have such as "1". */
static bool class_is_good(cfx_at at, const cfx_class *type)
{
    const int forwards = !!type->forward + !!type->forward2 + !!type->forward3 + !!type->forward_n;
    if (!type->name || !cfxi_base_is_identifier(type->name, strlen(type->name)))
        cfx_scope_fail_at(at, CFX_E_VALUE,
                          "the class name must be an identifier, not '%.60s'",
                          type->name ? type->name : "");
    else if (forwards != 1)
        cfx_scope_fail_at(at, CFX_E_VALUE,
                          "class %.60s must set exactly one of forward, forward2, forward3 and "
                          "forward_n, not %d",
                          type->name, forwards);
    return cfx_scope_ok(at.scope) && cfxi_capture_inputs_are_good(at, type);
}

cfx_module *cfx_module_new_at(cfx_at at, const cfx_class *type)
{
    cfx_error err = {0};
    if (!cfx_scope_ok(at.scope))
        return NULL;
    if (type && !class_is_good(at, type))
        return NULL;
    cfx_module *m = cfxi_capture_module_make(cfx_scope_allocator(at.scope), &err);
    if (!m) {
        cfxi_capture_scope_take(at, &err);
        return NULL;
    }
    m->type = type;
    return cfxi_capture_scope_own(at, m);
}

/* Whether a member may be called so: a name, or the number of an item. */
static bool is_name(const char *name)
{
    size_t digits = 0;
    while (name && cfxi_base_is_digit(name[digits]))
        digits++;
    return name &&
           ((digits > 0 && name[digits] == '\0') || cfxi_base_is_identifier(name, strlen(name)));
}

/* CFX_OK if `m` can get a new member of this name; also for NULL, after a failure. */
static bool can_add(cfx_at at, const cfx_module *m, const char *name)
{
    if (!cfx_scope_ok(at.scope))
        return false;
    if (!m)
        cfx_scope_fail_at(at, CFX_E_VALUE, "cannot add '%.100s': the module is NULL",
                          name ? name : "");
    else if (!is_name(name))
        cfx_scope_fail_at(at, CFX_E_VALUE, "'%.100s' is not a valid name for a member of a module",
                          name ? name : "");
    else if (strcmp(name, "training") == 0)
        cfx_scope_fail_at(at, CFX_E_KEY,
                          "'training' is reserved; set it with cfx_module_train");
    else if (cfxi_capture_module_find(m, name, strlen(name)))
        cfx_scope_fail_at(at, CFX_E_KEY, "%s already has a "
                          "member '%.100s'", cfxi_capture_module_title(m),
                          name);
    return cfx_scope_ok(at.scope);
}

static void add(cfx_at at, cfx_module *m, const char *name, cfxi_member_kind kind,
                cfx_module *child, cfx_datum value)
{
    cfx_error err = {0};
    if (cfxi_capture_module_put(m, name, strlen(name), kind, child, value, &err) != CFX_OK)
        cfxi_capture_scope_take(at, &err);
}

static cfx_status stop_at(void *ctx, cfx_module *m, const char *path, cfx_error *err)
{
    (void)path;
    (void)err;
    return m == ctx ? CFX_E_VALUE : CFX_OK;
}

/* Whether `m` is not part of `child`; if it were, it would be deeper. */
static bool can_contain(cfx_at at, cfx_module *m, const char *name, cfx_module *child)
{
    cfx_error err = {0};
    cfx_status status = child == m ? CFX_E_VALUE : CFX_OK;
    if (child->level < m->level)
        status = cfxi_capture_module_each(child, stop_at, m, &err);
    if (status == CFX_E_VALUE)
        cfx_scope_fail_at(at, status,
                          "%s would contain itself: it is part of the module added as '%.100s'",
                          cfxi_capture_module_title(m), name);
    else if (status != CFX_OK)
        cfxi_capture_scope_take(at, &err);
    return status == CFX_OK;
}

cfx_module *cfx_module_add_at(cfx_at at, cfx_module *m, const char *name, cfx_module *child)
{
    if (!can_add(at, m, name))
        return NULL;
    if (!child) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "cannot add '%.100s': the child module is NULL", name);
        return NULL;
    }
    if (!can_contain(at, m, name, child))
        return NULL;
    add(at, m, name, CFXI_MEMBER_CHILD, child, cfx_datum_invalid());
    return cfx_scope_ok(at.scope) ? child : NULL;
}

static void add_tensor(cfx_at at, cfx_module *m, const char *name, cfxi_member_kind kind,
                       cfx_tensor *t)
{
    if (!can_add(at, m, name))
        return;
    add(at, m, name, kind, NULL, t ? cfx_datum_tensor(t) : cfx_datum_none());
}

void cfx_module_add_parameter_at(cfx_at at, cfx_module *m, const char *name, cfx_tensor *t)
{
    add_tensor(at, m, name, CFXI_MEMBER_PARAMETER, t);
}

void cfx_module_add_buffer_at(cfx_at at, cfx_module *m, const char *name, cfx_tensor *t)
{
    add_tensor(at, m, name, CFXI_MEMBER_BUFFER, t);
}

void cfx_module_declare_at(cfx_at at, cfx_module *m, const char *name)
{
    cfx_error err = {0};
    if (!cfx_scope_ok(at.scope))
        return;
    /* One of its own for each, so that a trace can tell them apart. */
    cfx_tensor *none = cfx_tensor_new_abstract(CFX_DTYPE_FLOAT32, NULL, 0, at.scope->allocator,
                                               &err);
    if (none)
        add_tensor(at, m, name, CFXI_MEMBER_PARAMETER, none);
    else
        cfxi_capture_scope_take(at, &err);
    cfx_tensor_release(none);
}

void cfx_module_set_at(cfx_at at, cfx_module *m, const char *name, cfx_var v)
{
    if (!cfx_scope_ok(at.scope))
        return;
    if (!m || !is_name(name) || v.kind == CFX_VAR_EMPTY) {
        cfx_scope_fail_at(at, CFX_E_VALUE, "an attribute needs a module, a name and a value");
        return;
    }
    if (strcmp(name, "training") == 0) {
        cfx_scope_fail_at(at, CFX_E_KEY, "'training' is reserved; set it with cfx_module_train");
        return;
    }
    const cfxi_member *old = cfxi_capture_module_find(m, name, strlen(name));
    cfx_datum d = cfx_var_datum_at(at, v);
    if (d.kind != CFX_DATUM_INVALID && old && old->kind == CFXI_MEMBER_CHILD)
        cfx_scope_fail_at(at, CFX_E_KEY, "cannot set an attribute of %s: '%.100s' "
                          "is a module", cfxi_capture_module_title(m),
                          name);
    else if (d.kind != CFX_DATUM_INVALID && old && old->kind != CFXI_MEMBER_ATTRIBUTE &&
             !is_tensor_or_none(d))
        cfx_scope_fail_at(at, CFX_E_TYPE,
                          "'%.100s' of %s is a parameter or a buffer; its value must be a tensor "
                          "or None, not %s",
                          name, cfxi_capture_module_title(m),
                          cfx_datum_kind_name((cfx_datum_kind)d.kind));
    else if (d.kind != CFX_DATUM_INVALID)
        add(at, m, name, CFXI_MEMBER_ATTRIBUTE, NULL, d);
    cfx_datum_release(d);
}

void cfx_module_set_data(cfx_module *m, void *data)
{
    if (m)
        m->data = data;
}

void *cfx_module_data(const cfx_module *m) { return m ? m->data : NULL; }

/* ---- reading ------------------------------------------------------------------------------- */

size_t cfx_module_num_children(const cfx_module *m)
{
    size_t n = 0;
    for (size_t i = 0; m && i < m->members.size; i++)
        n += cfxi_capture_member_at(m, i)->kind == CFXI_MEMBER_CHILD;
    return n;
}

cfx_module *cfx_module_get_child(const cfx_module *m, size_t i, const char **name)
{
    for (size_t k = 0; m && k < m->members.size; k++) {
        const cfxi_member *e = cfxi_capture_member_at(m, k);
        if (e->kind != CFXI_MEMBER_CHILD || i-- > 0)
            continue;
        if (name)
            *name = e->name;
        return e->child;
    }
    return NULL;
}

static const char *const nn_names[CFX_NN_COUNT] = {
#define CFX_NN(name, function, schema, make) [CFX_NN_##name] = "torch.nn." #name,
#include <cfx/nn.def>
#undef CFX_NN
};

const char *cfx_module_class_name(const cfx_module *m)
{
    if (!m)
        return "";
    if (m->nn)
        return nn_names[m->nn];
    return m->name ? m->name : m->type ? m->type->name : "";
}

const char *cfxi_capture_module_title(const cfx_module *m)
{
    const char *name = cfx_module_class_name(m);
    return name[0] ? name : "the module";
}

cfx_datum cfx_module_attribute(const cfx_module *m, const char *path)
{
    const cfxi_member *e = m && path ? cfxi_capture_module_at(m, path) : NULL;
    return e ? e->value : cfx_datum_invalid();
}

/* Sets all that is not visited yet, or takes the marks off again: without memory of its own, so
 * that it cannot fail, and each module once, in however many places it is. */
static void set_training(cfx_module *m, bool training, bool visited)
{
    if (m->visited == visited)
        return;
    m->visited = visited;
    m->training = training;
    for (size_t i = 0; i < m->members.size; i++)
        if (cfxi_capture_member_at(m, i)->child)
            set_training(cfxi_capture_member_at(m, i)->child, training, visited);
}

void cfx_module_train(cfx_module *m, bool training)
{
    if (!m)
        return;
    set_training(m, training, true);
    set_training(m, training, false);
}

bool cfx_module_is_training(const cfx_module *m) { return m && m->training; }

cfx_graph *cfx_module_graph(const cfx_module *m) { return m ? m->graph : NULL; }
