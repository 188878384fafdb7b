/* name.c - unique names as torch.fx makes them: cleaning, reserved words, counting suffixes.
 *
 * Each base ("add" of "add", "add_1", "add_2") has a counter, so that the next free number is
 * found in O(1) amortised. Names are never given back: an erased node's name stays taken.
 */
#include "graph_impl.h"

/* Python's builtins, and the globals that every generated function has; sorted. */
static const char *const reserved[] = {
    "ArithmeticError", "AssertionError", "AttributeError", "BaseException", "BaseExceptionGroup",
    "BlockingIOError", "BrokenPipeError", "BufferError", "BytesWarning", "ChildProcessError",
    "ConnectionAbortedError", "ConnectionError", "ConnectionRefusedError", "ConnectionResetError",
    "DeprecationWarning", "EOFError", "Ellipsis", "EncodingWarning", "EnvironmentError",
    "Exception", "ExceptionGroup", "FileExistsError", "FileNotFoundError", "FloatingPointError",
    "FutureWarning", "GeneratorExit", "IOError", "ImportError", "ImportWarning",
    "IndentationError", "IndexError", "InterruptedError", "IsADirectoryError", "KeyError",
    "KeyboardInterrupt", "LookupError", "MemoryError", "ModuleNotFoundError", "NameError",
    "NoneType", "NotADirectoryError", "NotImplemented", "NotImplementedError", "OSError",
    "OverflowError", "PendingDeprecationWarning", "PermissionError", "ProcessLookupError",
    "RecursionError", "ReferenceError", "ResourceWarning", "RuntimeError", "RuntimeWarning",
    "StopAsyncIteration", "StopIteration", "SyntaxError", "SyntaxWarning", "SystemError",
    "SystemExit", "TabError", "TimeoutError", "TypeError", "UnboundLocalError",
    "UnicodeDecodeError", "UnicodeEncodeError", "UnicodeError", "UnicodeTranslateError",
    "UnicodeWarning", "UserWarning", "ValueError", "Warning", "ZeroDivisionError",
    "__build_class__", "__debug__", "__doc__", "__import__", "__loader__", "__name__",
    "__package__", "__spec__", "abs", "aiter", "all", "anext", "any", "ascii", "bin", "bool",
    "breakpoint", "bytearray", "bytes", "callable", "chr", "classmethod", "compile", "complex",
    "copyright", "credits", "delattr", "device", "dict", "dir", "divmod", "enumerate", "eval",
    "exec", "exit", "filter", "float", "format", "frozenset", "fx_pytree", "getattr", "globals",
    "hasattr", "hash", "help", "hex", "id", "inf", "input", "int", "isinstance", "issubclass",
    "iter", "len", "license", "list", "locals", "map", "max", "memoryview", "min", "nan", "next",
    "object", "oct", "open", "ord", "pow", "print", "property", "pytree", "quit", "range", "repr",
    "reversed", "round", "set", "setattr", "slice", "sorted", "staticmethod", "str", "sum",
    "super", "torch", "tuple", "type", "vars", "zip",
};

/* Of those and the keywords, none has a digit, and only fx_pytree and what begins with '_' has an
 * underscore: this spares most names the search. */
static bool may_be_reserved(const char *name, size_t size)
{
    if (size < 2 || cfxi_base_is_digit(name[size - 1]))
        return false;
    return name[0] == '_' || name[0] == 'f' || !memchr(name, '_', size);
}

bool cfx_name_is_reserved(const char *name, size_t size)
{
    return may_be_reserved(name, size) &&
           (cfxi_base_is_keyword(name, size) ||
            cfxi_base_is_word_of(reserved, sizeof reserved / sizeof *reserved, name, size));
}

bool cfxi_ir_name_is_legal(const char *name, size_t size)
{
    return cfxi_base_is_identifier(name, size) && !cfx_name_is_reserved(name, size);
}

/* ---- tables -------------------------------------------------------------------------------- */

static uint32_t hash_text(const cfx_namespace *ns, const char *text, size_t size)
{
    return cfxi_base_hash_keyed(&ns->key, text, size);
}

static bool same_name(const void *item, const void *key, size_t size)
{
    const cfxi_name *name = item;
    return name->size == size && memcmp(name->data, key, size) == 0;
}

static uint32_t hash_name(const void *item)
{
    return ((const cfxi_name *)item)->hash;
}

static bool same_base(const void *item, const void *key, size_t size)
{
    const cfxi_base *base = item;
    return base->size == size && memcmp(base->data, key, size) == 0;
}

static uint32_t hash_base(const void *item)
{
    return ((const cfxi_base *)item)->hash;
}

void cfxi_ir_namespace_init(cfx_namespace *ns, cfxi_arena *arena)
{
    memset(ns, 0, sizeof *ns);
    ns->arena = arena;
    ns->key = cfxi_base_hash_key_new(ns);
}

void cfxi_ir_namespace_release(cfx_namespace *ns)
{
    cfxi_base_set_free(&ns->names, ns->arena->allocator);
    cfxi_base_set_free(&ns->bases, ns->arena->allocator);
}

void cfxi_ir_namespace_forget(cfx_namespace *ns)
{
    size_t at = 0;
    for (cfxi_name *name; (name = cfxi_base_set_next(&ns->names, &at)) != NULL;) {
        name->taken = false;
        name->owner = NULL;
    }
    at = 0;
    for (cfxi_base *base; (base = cfxi_base_set_next(&ns->bases, &at)) != NULL;)
        base->count = 0;
}

/* A new entry for a name that has none; not taken yet. */
static cfxi_name *new_name(cfx_namespace *ns, const char *text, size_t size, uint32_t hash,
                           cfx_error *err)
{
    cfxi_name *name = NULL;
    if (size < UINT32_MAX / 2 && cfxi_base_set_reserve(&ns->names, hash_name, ns->arena->allocator))
        name = cfxi_base_arena_alloc(ns->arena, offsetof(cfxi_name, data) + size + 1);
    if (!name) {
        cfxi_base_nomem(err);
        return NULL;
    }
    name->owner = NULL;
    name->size = (uint32_t)size & INT32_MAX;
    name->hash = hash;
    name->taken = false;
    memcpy(name->data, text, size);
    name->data[size] = '\0';
    cfxi_base_set_insert(&ns->names, hash, name);
    return name;
}

static cfxi_name *find_name(const cfx_namespace *ns, const char *text, size_t size, uint32_t hash)
{
    cfxi_name *name = cfxi_base_set_find(&ns->names, hash, same_name, text, size);
    return name && name->hash == hash ? name : NULL;  /* a text that was changed is not there */
}

/* Takes a name if it is free; *free tells. NULL if it is not, or with *err set. */
static cfxi_name *take_exactly(cfx_namespace *ns, const char *text, size_t size, bool *free,
                               cfx_error *err)
{
    uint32_t hash = hash_text(ns, text, size);
    cfxi_name *name = find_name(ns, text, size, hash);
    *free = !name || !name->taken;
    if (!*free)
        return NULL;
    if (!name)
        name = new_name(ns, text, size, hash, err);
    if (name)
        name->taken = true;
    return name;
}

cfxi_name *cfxi_ir_namespace_find(const cfx_namespace *ns, const char *name, size_t size)
{
    return find_name(ns, name, size, hash_text(ns, name, size));
}

bool cfx_namespace_has(const cfx_namespace *ns, const char *text, size_t size)
{
    const cfxi_name *name = cfxi_ir_namespace_find(ns, text, size);
    return name && name->taken;
}

/* The counter for names that start with `text`. */
static cfxi_base *base_of(cfx_namespace *ns, const char *text, size_t size, cfx_error *err)
{
    uint32_t hash = hash_text(ns, text, size);
    cfxi_base *base = cfxi_base_set_find(&ns->bases, hash, same_base, text, size);
    if (base)
        return base;
    if (size < UINT32_MAX / 2 && cfxi_base_set_reserve(&ns->bases, hash_base, ns->arena->allocator))
        base = cfxi_base_arena_alloc(ns->arena, sizeof *base + size + 1);
    if (!base) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *base = (cfxi_base){.size = (uint32_t)size, .hash = hash};
    memcpy(base->data, text, size);
    base->data[size] = '\0';
    cfxi_base_set_insert(&ns->bases, hash, base);
    return base;
}

/* ---- making a name ------------------------------------------------------------------------- */

enum { SHORT_NAME = 128 };

/* A cleaned wish; on the stack unless it is long. */
typedef struct clean_name {
    char *text;
    size_t size;
    size_t base_size;  /* without the number at its end */
    uint64_t number;
    bool has_number;
    char stack[SHORT_NAME];
} clean_name;

/* Takes "add_12" apart. Numbers beyond 18 digits count as a part of the base. */
static void split_number(clean_name *clean)
{
    size_t digits = 0;
    while (digits < clean->size && cfxi_base_is_digit(clean->text[clean->size - 1 - digits]))
        digits++;
    clean->base_size = clean->size;
    clean->has_number = false;
    clean->number = 0;
    if (digits == 0 || digits > 18 || clean->size < digits + 2 ||
        clean->text[clean->size - digits - 1] != '_')
        return;
    clean->has_number = true;
    clean->base_size = clean->size - digits - 1;
    for (size_t i = clean->size - digits; i < clean->size; i++)
        clean->number = clean->number * 10 + (uint64_t)(clean->text[i] - '0');
}

size_t cfxi_ir_base_size(const char *name, size_t size)
{
    clean_name parts = {.text = (char *)(uintptr_t)name, .size = size};  /* only read */
    split_number(&parts);
    return parts.base_size;
}

static void clean_up(clean_name *clean, const cfx_allocator *allocator, size_t wish_size)
{
    if (clean->text != clean->stack)
        cfxi_base_free(allocator, clean->text, wish_size + 16);
}

static bool clean_wish(clean_name *clean, const char *wish, size_t size,
                       const cfx_allocator *allocator)
{
    if (size > INT32_MAX / 2)
        return false;
    clean->text = size + 16 <= SHORT_NAME ? clean->stack : cfxi_base_alloc(allocator, size + 16);
    if (!clean->text)
        return false;
    clean->size = 0;
    if (size > 0 && cfxi_base_is_digit(wish[0]))
        clean->text[clean->size++] = '_';
    for (size_t i = 0; i < size; i++) {
        if (cfxi_base_is_ident(wish[i]))
            clean->text[clean->size++] = wish[i];
        else if (i == 0 || cfxi_base_is_ident(wish[i - 1]))
            clean->text[clean->size++] = '_';  /* one for a whole run */
    }
    if (clean->size == 0) {
        memcpy(clean->text, "_unnamed", 8);
        clean->size = 8;
    }
    split_number(clean);
    return true;
}

cfxi_name *cfxi_ir_namespace_next(cfx_namespace *ns, cfxi_base *base, cfx_error *err)
{
    char stack[SHORT_NAME];
    size_t room = (size_t)base->size + CFXI_NUMBER_SIZE + 1;
    char *text = room <= sizeof stack ? stack : cfxi_base_alloc(ns->arena->allocator, room);
    if (!text) {
        cfxi_base_nomem(err);
        return NULL;
    }
    memcpy(text, base->data, base->size);
    text[base->size] = '_';
    cfxi_name *name = NULL;
    uint64_t number = base->count;
    for (bool free = false; !free;) {
        size_t size = (size_t)base->size + 1;
        size += cfxi_base_format_int((int64_t)++number, text + size);
        name = take_exactly(ns, text, size, &free, err);
    }
    if (name)
        base->count = number;
    if (text != stack)
        cfxi_base_free(ns->arena->allocator, text, room);
    return name;
}

static cfxi_name *take_clean(cfx_namespace *ns, const clean_name *clean, bool allow_reserved,
                             cfxi_base *base, cfx_error *err)
{
    bool free = false;
    cfxi_name *name = NULL;
    if (allow_reserved || !cfx_name_is_reserved(clean->text, clean->size))
        name = take_exactly(ns, clean->text, clean->size, &free, err);
    if (!free)
        return cfxi_ir_namespace_next(ns, base, err);
    if (name && clean->has_number)
        base->count = clean->number;
    return name;
}

cfxi_name *cfxi_ir_namespace_take_from(cfx_namespace *ns, const char *wish, size_t size,
                                       bool allow_reserved, cfxi_base **next, cfx_error *err)
{
    clean_name clean;
    if (!clean_wish(&clean, wish, size, ns->arena->allocator)) {
        cfxi_base_nomem(err);
        return NULL;
    }
    cfxi_base *base = base_of(ns, clean.text, clean.base_size, err);
    cfxi_name *name = base ? take_clean(ns, &clean, allow_reserved, base, err) : NULL;
    *next = name && !clean.has_number ? base : NULL;
    clean_up(&clean, ns->arena->allocator, size);
    return name;
}

cfxi_name *cfxi_ir_namespace_take(cfx_namespace *ns, const char *wish, size_t size,
                                  bool allow_reserved, cfx_error *err)
{
    cfxi_base *next;
    return cfxi_ir_namespace_take_from(ns, wish, size, allow_reserved, &next, err);
}

cfxi_name *cfxi_ir_namespace_entry(cfx_namespace *ns, const char *text, size_t size, cfx_error *err)
{
    uint32_t hash = hash_text(ns, text, size);
    cfxi_name *name = find_name(ns, text, size, hash);
    return name ? name : new_name(ns, text, size, hash, err);
}

cfxi_name *cfxi_ir_namespace_exact(cfx_namespace *ns, const char *text, size_t size, cfx_error *err)
{
    cfxi_name *name = cfxi_ir_namespace_entry(ns, text, size, err);
    if (name)
        name->taken = true;
    return name;
}

cfxi_name *cfxi_ir_namespace_keep(cfx_namespace *ns, const char *text, size_t size, bool is_free,
                                  cfx_error *err)
{
    uint32_t hash = hash_text(ns, text, size);
    cfxi_name *name = is_free ? NULL : find_name(ns, text, size, hash);
    if (name && name->taken)
        return name;
    if (!name)
        name = new_name(ns, text, size, hash, err);
    if (!name)
        return NULL;
    name->taken = true;
    clean_name parts = {.text = (char *)(uintptr_t)text, .size = size};  /* only read */
    split_number(&parts);
    if (!parts.has_number)
        return name;
    cfxi_base *base = base_of(ns, text, parts.base_size, err);
    if (!base)
        return NULL;
    base->count = parts.number;
    return name;
}

/* ---- namespaces of their own --------------------------------------------------------------- */

typedef struct own_namespace {
    cfx_namespace names;  /* first: what the user sees */
    cfxi_arena arena;
} own_namespace;

cfx_namespace *cfx_namespace_new(const cfx_allocator *allocator, cfx_error *err)
{
    own_namespace *own = cfxi_base_alloc(allocator, sizeof *own);
    if (!own) {
        cfxi_base_nomem(err);
        return NULL;
    }
    cfxi_base_arena_init(&own->arena, allocator);
    cfxi_ir_namespace_init(&own->names, &own->arena);
    return &own->names;
}

void cfx_namespace_free(cfx_namespace *ns)
{
    if (!ns)
        return;
    own_namespace *own = (own_namespace *)ns;
    const cfx_allocator *allocator = own->arena.allocator;
    cfxi_ir_namespace_release(ns);
    cfxi_base_arena_release(&own->arena);
    cfxi_base_free(allocator, own, sizeof *own);
}

const char *cfx_namespace_create(cfx_namespace *ns, const char *wish, size_t size,
                                 bool allow_reserved, cfx_error *err)
{
    cfxi_name *name = cfxi_ir_namespace_take(ns, wish, size, allow_reserved, err);
    return name ? name->data : NULL;
}

cfx_status cfx_namespace_add(cfx_namespace *ns, const char *text, size_t size, cfx_error *err)
{
    return cfxi_ir_namespace_exact(ns, text, size, err) ? CFX_OK : CFX_E_NOMEM;
}

const char *cfx_namespace_each(const cfx_namespace *ns, size_t *cursor, size_t *size)
{
    const cfxi_name *name = cfxi_base_set_next(&ns->names, cursor);
    while (name && !name->taken)
        name = cfxi_base_set_next(&ns->names, cursor);
    if (name && size)
        *size = name->size;
    return name ? name->data : NULL;
}

cfx_namespace *cfx_graph_namespace(cfx_graph *g) { return &g->names; }

cfx_status cfx_name_to_snake_case(const char *name, size_t size, cfx_buffer *out)
{
    size_t most;
    if (!cfxi_base_mul_size(size, 2, 0, &most))
        return CFX_E_NOMEM;
    CFX_TRY(cfx_buffer_reserve(out, most));
    char *to = out->data + out->size;
    for (size_t i = 0; i < size; i++) {
        bool upper = name[i] >= 'A' && name[i] <= 'Z';
        if (upper && i > 0 && name[i - 1] >= 'a' && name[i - 1] <= 'z')
            *to++ = '_';
        *to++ = upper ? (char)(name[i] - 'A' + 'a') : name[i];
    }
    out->size = (size_t)(to - out->data);
    if (size > 0)
        *to = '\0';
    return CFX_OK;
}
