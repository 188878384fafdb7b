/* pyname.c - names in generated Python: nodes, globals, and the functions that are called.
 *
 * torch.fx passes every name through one namespace, in the order in which the code mentions them.
 * Here the nodes of a graph nearly always keep the names they have, which are unique already; so
 * the namespace holds the globals alone until a global and a node want the same name, a node's
 * name is no free identifier, or a region brings names of its own. From then on (`exact`) every
 * name goes through it. The names given before are entered in their order, so that numbers come
 * out as if it had been so from the start.
 */
#include "pycode_impl.h"

#include <cfx/embed/script.h>

#include <stdio.h>

/* ---- nodes --------------------------------------------------------------------------------- */

static void name_early(cfx_pycode *gen, const cfx_node *n);

const cfxi_name *cfxi_emit_py_name(cfx_pycode *gen, const cfx_node *n)
{
    if (n->order > gen->order || n->op == CFX_OP_OUTPUT)
        name_early(gen, n);
    const cfxi_name *name = cfxi_base_pointers_get(&gen->overrides, n);
    return name ? name : n->name;
}

void cfxi_emit_py_put_name(cfx_pycode *gen, const cfx_node *n)
{
    const cfxi_name *name = cfxi_emit_py_name(gen, n);
    cfxi_emit_py_put(gen, name->data, name->size);
}

const char *cfx_pycode_node_name(cfx_pycode *gen, const cfx_node *n, size_t *size)
{
    const cfxi_name *name = cfxi_emit_py_name(gen, n);
    if (size)
        *size = name->size;
    return name->data;
}

/* Whether the name can stand as it is. */
static bool is_plain(const cfx_node *n)
{
    return n->name->owner == n && cfxi_ir_name_is_legal(n->name->data, n->name->size);
}

static cfx_status override(cfx_pycode *gen, const cfx_node *n, const cfxi_name *name,
                           cfx_error *err)
{
    if (!cfxi_base_pointers_set(&gen->overrides, n, (void *)(uintptr_t)name, gen->allocator))
        return cfxi_base_nomem(err);
    return CFX_OK;
}

static cfx_status take_name(cfx_pycode *gen, const cfx_node *n, cfx_error *err)
{
    const cfxi_name *own = n->name;
    if (n->op == CFX_OP_OUTPUT)
        return CFX_OK; /* if the code mentions it, name_early finds it a name */
    const cfxi_name *name = cfxi_ir_namespace_take(gen->names, own->data, own->size, false, err);
    if (!name)
        return CFX_E_NOMEM;
    if (name->size == own->size && memcmp(name->data, own->data, own->size) == 0)
        return CFX_OK;
    return override(gen, n, name, err);
}

/* Enters a global that the fast way has named already; it gets the same name again. */
static cfx_status enter_global(cfx_namespace *names, const cfxi_py_global *global, cfx_error *err)
{
    const char *name = global->entry.name;
    return cfxi_ir_namespace_take(names, name, strlen(name), true, err) ? CFX_OK : CFX_E_NOMEM;
}

cfx_status cfxi_emit_py_go_exact(cfx_pycode *gen, bool all, cfx_error *err)
{
    if (gen->exact && (!all || gen->all_named))
        return CFX_OK;
    cfx_node *n = gen->graph->root.next;
    size_t i = 0;
    size_t g = 0;
    if (gen->exact) {
        for (; i < gen->named; i++)
            n = n->next;
        g = gen->globals.size;
    } else {
        cfx_namespace *names = cfx_namespace_new(gen->allocator, err);
        if (!names)
            return CFX_E_NOMEM;
        /* Globals keep their text: it lives in the arena of the run, not in the namespace. */
        cfx_namespace_free(gen->names);
        gen->names = names;
        gen->exact = true;
        if (gen->is_method)
            CFX_TRY(cfx_namespace_add(names, gen->root, gen->root_size, err));
    }
    const cfxi_py_global *globals = gen->globals.data;
    for (;; i++, n = n->next) {
        for (; g < gen->globals.size && globals[g].named <= i; g++)
            CFX_TRY(enter_global(gen->names, &globals[g], err));
        if (cfxi_ir_node_is_root(n) || (!all && i >= gen->named))
            break;
        CFX_TRY(take_name(gen, n, err));
    }
    gen->all_named = all;
    return CFX_OK;
}

cfx_status cfxi_emit_py_define(cfx_pycode *gen, const cfx_node *n, cfx_error *err)
{
    const bool is_self = gen->is_method && n->name->size == gen->root_size &&
                         memcmp(n->name->data, gen->root, gen->root_size) == 0;
    if (!gen->exact && (is_self || !is_plain(n)))
        CFX_TRY(cfxi_emit_py_go_exact(gen, false, err));
    if (gen->exact && !gen->all_named && !cfxi_base_pointers_get(&gen->overrides, n))
        CFX_TRY(take_name(gen, n, err));
    gen->named++;
    return CFX_OK;
}

/* A use before the definition, in a graph whose nodes are out of order, or a use of an output,
 * which has none: torch.fx names a node where it is first mentioned. */
static void name_early(cfx_pycode *gen, const cfx_node *n)
{
    if (n->graph != gen->graph || gen->all_named || cfxi_base_pointers_get(&gen->overrides, n))
        return;
    const cfxi_name *name = NULL;
    if (cfxi_emit_py_go_exact(gen, false, NULL) == CFX_OK)
        name = cfxi_ir_namespace_take(gen->names, n->name->data, n->name->size, false, NULL);
    if (!name || override(gen, n, name, NULL))
        gen->nomem = true;
}

cfx_status cfxi_emit_py_define_local(cfx_pycode *gen, const cfx_node *n, cfx_error *err)
{
    const cfxi_name *own = n->name;
    const cfxi_name *name = cfxi_ir_namespace_take(gen->names, own->data, own->size, false, err);
    return name ? override(gen, n, name, err) : CFX_E_NOMEM;
}

cfx_status cfxi_emit_py_alias(cfx_pycode *gen, const cfx_node *n, const cfxi_name *name,
                              cfx_error *err)
{
    return override(gen, n, name, err);
}

/* ---- globals ------------------------------------------------------------------------------- */

static const char *keep_text(cfx_pycode *gen, const char *text, size_t size)
{
    char *copy = cfxi_base_arena_alloc(&gen->memory->arena, size + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

/* A name for a new global. Until `exact`, a live node of that name makes it so. */
static const char *global_name(cfx_pycode *gen, const char *wish, size_t size, bool allow_reserved,
                               cfx_error *err)
{
    if (!gen->exact) {
        cfxi_name *name = cfxi_ir_namespace_take(gen->names, wish, size, allow_reserved, err);
        if (!name)
            return NULL;
        const cfxi_name *taken = cfxi_ir_namespace_find(&gen->graph->names, name->data, name->size);
        if (!taken || !taken->owner)
            return keep_text(gen, name->data, name->size);
        if (cfxi_emit_py_go_exact(gen, false, err))
            return NULL;
    }
    cfxi_name *name = cfxi_ir_namespace_take(gen->names, wish, size, allow_reserved, err);
    return name ? keep_text(gen, name->data, name->size) : NULL;
}

static cfx_status add_global(cfx_pycode *gen, cfx_pycode_name entry, size_t qualified_size,
                             const char *wish, size_t size, bool allow_reserved, const char **name,
                             cfx_error *err)
{
    entry.name = global_name(gen, wish, size, allow_reserved, err);
    if (entry.qualified)
        entry.qualified = keep_text(gen, entry.qualified, qualified_size);
    if (!entry.name ||
        !cfxi_base_vec_reserve(&gen->globals, 1, sizeof(cfxi_py_global), gen->allocator))
        return cfxi_base_nomem(err);
    cfxi_py_global *globals = gen->globals.data;
    globals[gen->globals.size++] = (cfxi_py_global){entry, gen->named, qualified_size};
    *name = entry.name;
    return CFX_OK;
}

static cfx_status object_global(cfx_pycode *gen, void *object, cfx_pycode_text qualified,
                                cfx_pycode_text wish, bool allow_reserved, const char **name,
                                cfx_error *err)
{
    uintptr_t index = (uintptr_t)cfxi_base_pointers_get(&gen->objects, object);
    if (index) {
        *name = ((const cfxi_py_global *)gen->globals.data)[index - 1].entry.name;
        return CFX_OK;
    }
    cfx_pycode_name entry = {NULL, object, qualified.data};
    CFX_TRY(
        add_global(gen, entry, qualified.size, wish.data, wish.size, allow_reserved, name, err));
    index = gen->globals.size;
    if (!cfxi_base_pointers_set(&gen->objects, object, (void *)index, gen->allocator))
        return cfxi_base_nomem(err);
    return CFX_OK;
}

cfx_status cfx_pycode_global(cfx_pycode *gen, void *object, const char *wish, size_t size,
                             bool allow_reserved, const char **name, cfx_error *err)
{
    return object_global(gen, object, (cfx_pycode_text){NULL, 0}, (cfx_pycode_text){wish, size},
                         allow_reserved, name, err);
}

/* Globals that are known by name only: the same name is the same global, in regions too. */
typedef struct named_global {
    const char *name;
    uint32_t size;
    uint32_t hash;
    const char *qualified;
} named_global;

static bool same_named(const void *item, const void *key, size_t size)
{
    const named_global *named = item;
    return named->size == size && memcmp(named->qualified, key, size) == 0;
}

static uint32_t hash_named(const void *item)
{
    return ((const named_global *)item)->hash;
}

static cfx_status name_global(cfx_pycode *gen, cfx_pycode_text qualified, cfx_pycode_text wish,
                              bool allow_reserved, const char **name, cfx_error *err)
{
    uint32_t hash = cfxi_base_hash_keyed(&gen->graph->names.key, qualified.data, qualified.size);
    named_global *named =
        cfxi_base_set_find(&gen->by_name, hash, same_named, qualified.data, qualified.size);
    if (named) {
        *name = named->name;
        return CFX_OK;
    }
    if (!cfxi_base_set_reserve(&gen->by_name, hash_named, gen->allocator) ||
        !(named = cfxi_base_arena_alloc(&gen->memory->arena, sizeof *named)))
        return cfxi_base_nomem(err);
    cfx_pycode_name entry = {NULL, NULL, qualified.data};
    CFX_TRY(
        add_global(gen, entry, qualified.size, wish.data, wish.size, allow_reserved, name, err));
    const cfxi_py_global *globals = gen->globals.data;
    *named = (named_global){*name, (uint32_t)qualified.size, hash,
                            globals[gen->globals.size - 1].entry.qualified};
    cfxi_base_set_insert(&gen->by_name, hash, named);
    return CFX_OK;
}

/* ---- functions and types ------------------------------------------------------------------- */

static bool starts_with(cfx_pycode_text text, const char *prefix)
{
    size_t size = strlen(prefix);
    return text.size > size && memcmp(text.data, prefix, size) == 0;
}

static cfx_pycode_text drop(cfx_pycode_text text, size_t size)
{
    return (cfx_pycode_text){text.data + size, text.size - size};
}

static bool is_text(cfx_pycode_text text, const char *other)
{
    return text.size == strlen(other) && memcmp(text.data, other, text.size) == 0;
}

/* Names that are there without being registered. */
static bool builtin_text(cfx_pycode *gen, cfx_pycode_text name, cfx_pycode_text *text)
{
    if (is_text(name, "torch.device")) {
        gen->builtins |= CFX_PYCODE_DEVICE;
        *text = (cfx_pycode_text){"device", 6};
        return true;
    }
    if (is_text(name, "NoneType") || is_text(name, "types.NoneType")) {
        gen->builtins |= CFX_PYCODE_NONETYPE;
        *text = (cfx_pycode_text){"NoneType", 8};
        return true;
    }
    if (starts_with(name, "torch.") && !starts_with(name, "torch.Tensor.")) {
        gen->builtins |= CFX_PYCODE_TORCH;
        *text = name;
        return true;
    }
    return false;
}

/* What torch.fx makes of a qualified name: torch's as they are, others one global each. */
static cfx_status qualified_text(cfx_pycode *gen, cfx_ref *ref, cfx_pycode_text qualified,
                                 cfx_pycode_text *text, cfx_error *err)
{
    cfx_pycode_text name = qualified;
    if (starts_with(name, "builtins."))
        name = drop(name, 9);
    if (builtin_text(gen, name, text))
        return CFX_OK;
    bool bare = memchr(name.data, '.', name.size) == NULL &&
                !cfxi_base_is_keyword(name.data, name.size);
    char wish[512] = "_";
    if (starts_with(name, "operator.") && name.size < sizeof wish) {
        /* The functions of operator live in _operator, and torch.fx shows it. */
        memcpy(wish + 1, name.data, name.size);
        bool getter = is_text(drop(name, 9), "attrgetter") ||
                      is_text(drop(name, 9), "itemgetter") ||
                      is_text(drop(name, 9), "methodcaller");
        if (!getter)
            name = (cfx_pycode_text){wish, name.size + 1};
    }
    const char *global = NULL;
    if (ref->kind == CFXI_REF_OBJECT)
        CFX_TRY(object_global(gen, ref->object, qualified, name, bare, &global, err));
    else
        CFX_TRY(name_global(gen, qualified, name, bare, &global, err));
    *text = (cfx_pycode_text){global, strlen(global)};
    return CFX_OK;
}

/* The qualified name, or an empty text for an object that has none. */
static cfx_status qualified_name(cfx_graph *g, cfx_ref *ref, cfx_pycode_text *name, cfx_error *err)
{
    cfx_error local = {.status = CFX_E_HOST};
    const cfx_str *str = cfxi_ir_ref_qualified_name(g, ref, &local);
    *name = (cfx_pycode_text){str ? str->data : "", str ? str->size : 0};
    if (str || local.status == CFX_E_KEY)
        return CFX_OK;
    if (err)
        *err = local;
    return local.status;
}

/* `torch.ops.aten.random.from` -> `getattr(torch.ops.aten.random, 'from')` */
static cfx_status dotted_text(cfx_pycode *gen, cfx_pycode_text *text, cfx_error *err)
{
    const char *end = text->data + text->size;
    const size_t start = gen->body.size;
    bool same = true;
    for (const char *part = text->data;; part++) {
        const char *dot = memchr(part, '.', (size_t)(end - part));
        const size_t size = (size_t)((dot ? dot : end) - part);
        cfxi_emit_py_put_member(gen, start, part, size, part != text->data);
        same = same && !cfxi_base_is_keyword(part, size);
        if (!dot)
            break;
        part = dot;
    }
    if (!same && !gen->nomem) {
        text->size = gen->body.size - start;
        text->data = keep_text(gen, gen->body.data + start, text->size);
    }
    if (gen->nomem || !text->data)
        return cfxi_base_nomem(err);
    gen->body.size = start;
    return CFX_OK;
}

static cfx_status refuse_name(const cfx_node *n, cfx_pycode_text name, cfx_error *err)
{
    return cfxi_emit_py_fail(n, CFX_E_VALUE, err, "'%.*s' cannot be written in Python: it is not a "
                             "dotted name of identifiers",
                             name.size > 80 ? 80 : (int)name.size, name.data);
}

/* Whether a part behind a dot is a keyword: `my.or`. In one name of torch's, dotted_text writes
 * getattr for it; everywhere else it is wrong syntax. */
static bool has_keyword(cfx_pycode_text name)
{
    const char *end = name.data + name.size;
    if (starts_with(name, "torch.") && cfxi_base_is_python_path(name.data, name.size))
        return false;
    for (const char *dot = name.data; (dot = memchr(dot, '.', (size_t)(end - dot))) != NULL;) {
        const char *part = ++dot;
        while (part < end && (cfxi_base_is_ident(*part) || (unsigned char)*part >= 0x80))
            part++;
        if (cfxi_base_is_keyword(dot, (size_t)(part - dot)))
            return true;
    }
    return false;
}

/* The last gate for the names of functions and types: what becomes part of the source is a dotted
 * name, or in a file such names with the signs of a type between them. What becomes one global has
 * a name of its own, and may be anything. */
static cfx_status check_text(const cfx_pycode *gen, const cfx_ref *ref, const cfx_node *n,
                             cfx_pycode_text name, cfx_error *err)
{
    if (!gen->names_only && !starts_with(name, "torch."))
        return CFX_OK;
    if (!cfxi_ir_is_type_text(name.data, name.size) || (gen->names_only && has_keyword(name)))
        return refuse_name(n, name, err);
    if (gen->names_only && ref->kind == CFXI_REF_NAME &&
        cfx_name_runs_code(name.data, name.size))
        return cfxi_emit_py_fail(n, CFX_E_VALUE, err, "a graph that is read from a file may not "
                                 "call '%.80s', which can run code or reach files", name.data);
    return CFX_OK;
}

/* What the host calls an object; if that is not a name in Python, a global. */
static cfx_status host_text(cfx_pycode *gen, void *object, cfx_pycode_text *text, cfx_error *err)
{
    const char *global = NULL;
    *text = (cfx_pycode_text){gen->scratch.data, gen->scratch.size};
    if (!cfxi_base_is_python_path(text->data, text->size)) {
        CFX_TRY(cfx_pycode_global(gen, object, text->data, text->size, false, &global, err));
        *text = (cfx_pycode_text){global, strlen(global)};
        return CFX_OK;
    }
    text->data = keep_text(gen, text->data, text->size);
    return text->data ? dotted_text(gen, text, err) : cfxi_base_nomem(err);
}

cfx_status cfxi_emit_py_ref_text(cfx_pycode *gen, cfx_graph *g, cfx_ref *ref, const cfx_node *n,
                                 cfx_pycode_text *text, cfx_error *err)
{
    const cfx_pycode_options *options = gen->options;
    if (ref->kind == CFXI_REF_OBJECT && options->target) {
        cfx_sink out = cfxi_emit_py_scratch(gen);
        CFX_TRY(options->target(options->ctx, gen, ref->object, out, err));
        if (gen->scratch.size)
            return host_text(gen, ref->object, text, err);
    }
    cfx_pycode_text name;
    CFX_TRY(qualified_name(g, ref, &name, err));
    if (!name.size)
        return cfxi_emit_py_fail(n, CFX_E_KEY, err,
                                 "the function or type has no qualified name");
    CFX_TRY(check_text(gen, ref, n, name, err));
    CFX_TRY(qualified_text(gen, ref, name, text, err));
    return cfxi_base_is_python_path(text->data, text->size) ? dotted_text(gen, text, err) : CFX_OK;
}

/* ---- functions that are called ------------------------------------------------------------- */

typedef struct operator_row {
    const char *name;
    cfxi_py_form form;
    const char *symbol;
} operator_row;

static const operator_row operators[] = {
#define CFX_SIGN_UNARY(id, sign, function, ast) {function, CFXI_PY_PREFIX, sign},
#define CFX_SIGN_BINARY(id, sign, function, in_place, ...)                                         \
    {function, CFXI_PY_INFIX, " " sign " "}, {in_place, CFXI_PY_INPLACE, " " sign "= "},
#define CFX_SIGN_COMPARE(id, sign, function, ...) {function, CFXI_PY_INFIX, " " sign " "},
#define CFX_SIGN_OTHER(function, form, sign, kind) {function, CFXI_PY_##form, sign},
#include <cfx/embed/sign.def>
};

static const operator_row *find_operator(cfx_pycode_text name)
{
    if (starts_with(name, "_operator."))
        name = drop(name, 10);
    else if (starts_with(name, "operator."))
        name = drop(name, 9);
    else
        return NULL;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (is_text(name, operators[i].name))
            return &operators[i];
    return NULL;
}

static cfxi_py_form region_form(const cfx_node *n)
{
    switch (cfx_node_operator(n)) {
    case CFX_OPID_cond:
        return CFXI_PY_COND;
    case CFX_OPID_while_loop:
        return CFXI_PY_WHILE;
    case CFX_OPID_for_loop:
        return CFXI_PY_FOR;
    default:  /* one of hundreds that are called */
        return CFXI_PY_CALL;
    }
}

static cfx_status callee_text(cfx_pycode *gen, cfx_node *n, cfxi_py_callee *callee, cfx_error *err)
{
    cfx_pycode_text text;
    CFX_TRY(cfxi_emit_py_ref_text(gen, n->graph, n->callee->ref, n, &text, err));
    if (memchr(text.data, '[', text.size))
        return refuse_name(n, text, err);
    callee->text = text.data;
    callee->size = text.size;
    return CFX_OK;
}

static cfx_status describe(cfx_pycode *gen, cfx_node *n, cfxi_py_callee *callee, cfx_error *err)
{
    cfx_ref *ref = n->callee->ref;
    cfx_pycode_text name;
    CFX_TRY(qualified_name(n->graph, ref, &name, err));
    const operator_row *row = find_operator(name);
    if (row) {
        *callee = (cfxi_py_callee){.form = row->form, .wrapped = true, .text = row->symbol,
                                   .size = strlen(row->symbol)};
        return CFX_OK;
    }
    *callee = (cfxi_py_callee){.form = region_form(n),
                               .context = cfxi_emit_py_is_context(name.data, name.size)};
    if (callee->form != CFXI_PY_CALL)
        return CFX_OK; /* its text is needed only if the arguments are no regions */
    CFX_TRY(callee_text(gen, n, callee, err));
    if (is_text(name, "builtins.getattr") || is_text(name, "getattr"))
        callee->form = CFXI_PY_GETATTR;
    return CFX_OK;
}

cfx_status cfxi_emit_py_callee_of(cfx_pycode *gen, cfx_node *n, const cfxi_py_callee **callee,
                                  cfx_error *err)
{
    if (n->callee == gen->last_callee) {
        *callee = gen->last_info;
        return CFX_OK;
    }
    cfxi_py_callee *info = cfxi_base_pointers_get(&gen->callees, n->callee);
    if (!info) {
        info = cfxi_base_arena_alloc(&gen->memory->arena, sizeof *info);
        if (!info)
            return cfxi_base_nomem(err);
        CFX_TRY(describe(gen, n, info, err));
        if (!cfxi_base_pointers_set(&gen->callees, n->callee, info, gen->allocator))
            return cfxi_base_nomem(err);
    }
    if (!info->text && !cfxi_emit_py_has_regions(n))
        CFX_TRY(callee_text(gen, n, info, err));
    gen->last_callee = info->text ? n->callee : NULL;
    gen->last_info = info;
    *callee = info;
    return CFX_OK;
}

cfx_status cfxi_emit_py_wrap(cfx_pycode *gen, cfx_node *n, const cfxi_py_callee *callee,
                             cfx_error *err)
{
    const cfx_pycode_options *options = gen->options;
    if (!options->is_wrapped || callee->wrapped ||
        (callee->form == CFXI_PY_GETATTR && cfxi_emit_py_is_attribute(gen, n)))
        return CFX_OK;
    int wrapped = options->is_wrapped(options->ctx, n);
    if (wrapped < 0)
        return cfx_error_set(err, CFX_E_HOST, "the callback that tells whether a function is "
                             "wrapped failed");
    if (!wrapped)
        return CFX_OK;
    cfx_sink out = cfx_buffer_sink(&gen->wraps);
    if ((gen->wraps.size && cfxi_base_sink_write(out, "\n", 1)) ||
        cfxi_base_sink_write(out, "cfx._symbolic_trace.wrap(\"", 26) ||
        cfxi_base_sink_write(out, callee->text, callee->size) ||
        cfxi_base_sink_write(out, "\")", 2))
        return cfxi_base_nomem(err);
    ((cfxi_py_callee *)cfxi_base_pointers_get(&gen->callees, n->callee))->wrapped = true;
    return CFX_OK;
}
