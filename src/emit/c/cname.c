/* cname.c - names for C: what is a word of C or C++, a macro, or a name of cfx, gets a '_'. */
#include "ccode_impl.h"

/* Macros of the headers that a file includes, or that compilers have by themselves; functions at
 * whose redefinition they take offence; what the functions that are written have as parameters. */
static const char *const others[] = {"NULL", "linux", "unix", "i386", "main", "self", "ctx", "in",
                                     "n", "forward", "model_class", "vars", "parts", "part"};

static bool is_upper(char c) { return (c >= 'A' && c <= 'Z') || c == '_' || cfxi_base_is_digit(c); }

/* INT_MAX: most names of this kind are somebody's macros. */
static bool looks_like_macro(const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!is_upper(name[i]))
            return false;
    return size > 1;
}

/* forward_part2: the functions that a long one is made of are called so. */
static bool is_part(const char *name, size_t size)
{
    size_t end = size;
    while (end > 0 && cfxi_base_is_digit(name[end - 1]))
        end--;
    return end < size && end >= 5 && memcmp(name + end - 5, "_part", 5) == 0;
}

static bool is_free(const char *name, size_t size)
{
    if (cfxi_ops_c_name_is_taken(name, size) || looks_like_macro(name, size) ||
        strncmp(name, "cfx", 3) == 0 || strncmp(name, "CFX", 3) == 0 || is_part(name, size))
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(others[i], name, size) == 0 && others[i][size] == '\0')
            return false;
    return true;
}

const char *cfxi_emit_c_name(cfxi_ccode *c, cfx_namespace *ns, const char *wish, size_t size)
{
    cfx_buffer text;
    const char *name = NULL;
    cfx_buffer_init(&text, c->allocator);
    bool good = true;
    if (size > 1 && wish[0] == '_')  /* two of them, or a capital, would be the compiler's */
        good = cfx_buffer_append(&text, "v", 1) == CFX_OK;
    else if (size >= 3 && (strncmp(wish, "cfx", 3) == 0 || strncmp(wish, "CFX", 3) == 0))
        good = cfx_buffer_append(&text, "own_", 4) == CFX_OK;
    good = good && cfx_buffer_append(&text, wish, size) == CFX_OK;
    if (good && !is_free(text.data, text.size))
        good = cfx_buffer_append(&text, "_", 1) == CFX_OK;
    if (good)
        name = cfx_namespace_create(ns, text.data, text.size, true, NULL);
    c->nomem = c->nomem || !name;
    cfx_buffer_free(&text);
    return name;
}

/* loop[0] of a loop with one variable: the loop itself. */
static const cfx_node *loop_behind(const cfx_node *n)
{
    const cfx_value whole = cfx_node_arg(n, 0);
    const cfx_value index = cfx_node_arg(n, 1);
    return cfxi_analysis_is_getitem(n) && whole.kind == CFX_KIND_NODE &&
                   index.kind == CFX_KIND_INT && index.as.i == 0 &&
                   cfxi_emit_c_is_single_loop(whole.as.node)
               ? whole.as.node
               : NULL;
}

bool cfxi_emit_c_is_alias(const cfx_node *n) { return loop_behind(n) != NULL; }

/* Takes the names of the functions that the arguments mention. */
static cfx_status take_functions(cfxi_ccode *c, cfx_namespace *ns, const cfx_seq *args,
                                 cfx_error *err)
{
    for (uint32_t i = 0; args && i < args->size; i++) {
        const cfx_graph *region = cfx_value_graph(args->items[i]);
        const char *name = region ? cfxi_base_pointers_get(&c->function_of, region) : NULL;
        if (name)
            CFX_TRY(cfx_namespace_add(ns, name, strlen(name), err));
    }
    return CFX_OK;
}

cfx_status cfxi_emit_c_rename(cfxi_ccode *c, cfx_graph *g, cfx_error *err)
{
    cfx_namespace *ns = cfx_namespace_new(c->allocator, err);
    cfx_status status = ns ? CFX_OK : CFX_E_NOMEM;
    for (cfx_node *n = g->root.next; status == CFX_OK && n != &g->root; n = n->next)
        status = take_functions(c, ns, n->args, err);
    for (cfx_node *n = g->root.next; status == CFX_OK && n != &g->root; n = n->next) {
        const cfx_node *loop = loop_behind(n);
        const char *name = loop ? loop->name->data
                                : cfxi_emit_c_name(c, ns, n->name->data, n->name->size);
        status = name ? cfx_node_set_name(n, name, strlen(name), err) : cfxi_base_nomem(err);
    }
    cfx_namespace_free(ns);
    return status;
}
