/* library_source.c - runs the parts of Python's library and of torch that are written in Python
 * (library.py) like a user's program: what they change is noted like any other change.
 *
 * A part is run before a program that has one of its names in its text. Beside Python's builtins it
 * sees these, which are C:
 *
 *     _record(name, *args)    a call of that function as a node, while a call is captured
 *     _refuse(message)        ends the capture; the message gets the line of the user
 *     _keep(dict, key, value) keeps what a cache returns: refuses what a graph computes
 *     _has(dict, key), _item(dict, key)   of a dict, whatever methods its class has
 */
#include "world_impl.h"

#include <cfx/pyscript.h>

#include <ctype.h>

/* Texts of library.py, which are not terminated. */
typedef struct part {
    const char *spaces;  /* the modules that the names are in; a colon ends them */
    const char *names;   /* what it defines; they end where the source begins */
    const char *source;
    size_t size;
} part;

static const char library[] = {
#include "library.inc"  /* generated */
};

/* ---- what the parts see -------------------------------------------------------------------- */

CFXI_BUILTIN(record)
{
    if (a->n == 0 || a->n_named > 0 || a->args[0]->type != CFXI_TYPE_STR || !w->recording)
        return cfxi_world_none(w);
    const cfx_call_args rest = {.args = a->args + 1, .n = a->n - 1};
    return cfxi_world_record(w, CFX_OP_CALL_FUNCTION, a->args[0]->as.text.data, &rest, err);
}

CFXI_BUILTIN(refuse)
{
    const bool text = a->n == 1 && a->args[0]->type == CFXI_TYPE_STR;
    cfx_error_set(err, CFX_E_UNSUPPORTED, "%.280s", text ? a->args[0]->as.text.data : "refused");
    return NULL;
}

/* A cache outlives the call: what it holds was there before the next one. */
static void mark_outside(cfx_object *o, int depth)
{
    cfx_object *key;
    cfx_object *value;
    o->outside = true;
    if (depth == CFXI_DEEPEST)
        return;
    for (size_t i = 0; (o->type == CFXI_TYPE_LIST || o->type == CFXI_TYPE_TUPLE) &&
                       i < o->as.seq.n; i++)
        mark_outside(o->as.seq.items[i], depth + 1);
    for (size_t at = 0; o->type == CFXI_TYPE_DICT && cfxi_world_dict_next(o, &at, &key, &value);)
        mark_outside(value, depth + 1);
}

CFXI_BUILTIN(keep)
{
    cfx_object *in[3];
    if (cfxi_world_args(w, a, "_keep", NULL, 3, 3, in, err) != CFX_OK)
        return NULL;
    if (w->recording && cfxi_world_has_value(in[2], true)) {
        cfx_error_set(err, CFX_E_UNSUPPORTED,
                      "the result of a function with a cache is computed by the graph: it would be "
                      "computed in each call, not once; call the function in __init__ and keep its "
                      "result in a buffer, or remove the cache");
        return NULL;
    }
    if (w->recording)
        mark_outside(in[2], 0);
    return cfxi_world_done(w, cfxi_world_dict_set(in[0], in[1], in[2], err));
}

static cfx_object *look_up(cfxi_world *w, const cfx_call_args *a, cfx_object **in, cfx_error *err)
{
    cfx_object *found = NULL;
    if (cfxi_world_args(w, a, "_item", NULL, 2, 2, in, err) != CFX_OK)
        return NULL;
    if (in[0]->type != CFXI_TYPE_DICT)
        cfxi_world_raise(w, err, CFXI_TypeError, "this method is for dicts");
    else if (cfxi_world_dict_find(in[0], in[1], &found, err) == CFX_OK)
        return found;
    return NULL;
}

CFXI_BUILTIN(has)
{
    cfx_object *in[2];
    err->status = CFX_OK;
    const bool there = look_up(w, a, in, err) != NULL;
    return err->status == CFX_OK ? cfxi_world_truth_object(w, there) : NULL;
}

CFXI_BUILTIN(item)
{
    cfx_object *in[2];
    err->status = CFX_OK;
    cfx_object *found = look_up(w, a, in, err);
    if (!found && err->status == CFX_OK)
        cfxi_world_throw_key(w, in[1], err);
    return cfxi_world_ref(found);
}

static const cfxi_builtin seen[] = {{"_record", record}, {"_refuse", refuse}, {"_keep", keep},
                                    {"_has", has}, {"_item", item}, {NULL, NULL}};

/* ---- running them -------------------------------------------------------------------------- */

/* The next part from *at on, and *at becomes its end; false if there is none. */
static bool next_part(const char **at, part *p)
{
    static const char mark[] = "\n# in ";
    const char *begin = strstr(*at, mark);
    if (!begin)
        return false;
    p->spaces = begin + sizeof mark - 1;
    p->names = p->spaces + strcspn(p->spaces, ":");
    p->source = p->names;
    do
        p->source += strcspn(p->source, "\n") + 1;
    while (*p->source == '#');
    const char *end = strstr(p->source, mark);
    p->size = end ? (size_t)(end - p->source) : strlen(p->source);
    *at = p->source + p->size;
    return true;
}

/* The next word of a part's header, copied; false at the end. */
static bool next_word(const char **at, const char *end, char *out, size_t size)
{
    *at += strspn(*at, " :#\n");
    const size_t n = strcspn(*at, " :\n");
    if (*at >= end || n >= size)
        return false;
    memcpy(out, *at, n);
    out[n] = '\0';
    *at += n;
    return true;
}

static bool is_word_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Whether a text has the word. */
static bool mentions(const char *text, size_t size, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = text, *end = text + size;
         (size_t)(end - at) >= n && (at = memchr(at, word[0], (size_t)(end - at) - n + 1)); at++)
        if (memcmp(at, word, n) == 0 && (at == text || !is_word_char(at[-1])) &&
            (at + n == end || !is_word_char(at[n])))
            return true;
    return false;
}

static bool is_wanted(const part *p, const char *text, size_t size)
{
    char name[32];
    const char *names = p->names;
    while (next_word(&names, p->source, name, sizeof name))
        if (mentions(text, size, name))
            return true;
    return false;
}

static cfx_status add_seen(cfxi_world *w, cfx_object *globals, cfx_error *err)
{
    for (const cfxi_builtin *row = seen; row->name; row++) {
        cfx_object *f = cfxi_world_builtin_object(w, row->name, row->fn, CFX_OPID_NONE, err);
        const cfx_status status = f ? cfxi_world_dict_put(globals, row->name, f, err) : err->status;
        cfxi_world_unref(f);
        CFX_TRY(status);
    }
    return CFX_OK;
}

/* What the part has defined becomes what a module holds. */
static cfx_status publish(cfxi_world *w, const part *p, const char *module,
                          const cfx_object *globals, cfx_error *err)
{
    char name[32];
    cfx_object *space = cfxi_world_namespace(w, module, err);
    cfx_status status = space ? CFX_OK : err->status;
    const char *names = p->names;
    if (space && !space->attrs)
        space->attrs = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
    if (space && !space->attrs)
        status = err->status;
    while (status == CFX_OK && next_word(&names, p->source, name, sizeof name)) {
        cfx_object *made = cfxi_world_dict_get(globals, name);
        status = made ? cfxi_world_dict_put(space->attrs, name, made, err) : CFX_OK;
    }
    cfxi_world_unref(space);
    return status;
}

static cfx_status run_part(cfxi_world *w, const part *p, cfx_error *err)
{
    char module[32];
    const char *spaces = p->spaces;
    cfx_script *script = cfx_script_parse(p->source, p->size, CFX_SCRIPT_LIBRARY, true,
                                          w->allocator, err);
    cfx_object *globals = script ? cfxi_world_dict_object(w, CFXI_TYPE_DICT, err) : NULL;
    cfx_status status = globals ? add_seen(w, globals, err) : err->status;
    if (status == CFX_OK && !cfxi_base_vec_reserve(&w->scripts, 1, sizeof script, w->allocator))
        status = cfxi_base_nomem(err);
    if (status == CFX_OK) {
        ((cfx_script **)w->scripts.data)[w->scripts.size++] = cfx_script_retain(script);
        status = cfx_evaluator_run(w->evaluator, script, globals, err);
    }
    while (status == CFX_OK && next_word(&spaces, p->names, module, sizeof module))
        status = publish(w, p, module, globals, err);
    cfxi_world_unref(globals);
    cfx_script_release(script);
    return status;
}

cfx_status cfxi_world_load_library(cfxi_world *w, const char *text, size_t size, cfx_error *err)
{
    part p;
    for (const char *at = library; next_part(&at, &p);)
        if (is_wanted(&p, text, size))
            CFX_TRY(run_part(w, &p, err));
    return CFX_OK;
}

void cfxi_world_free_library(cfxi_world *w)
{
    for (size_t i = 0; i < w->scripts.size; i++)
        cfx_script_release(((cfx_script **)w->scripts.data)[i]);
    cfxi_base_vec_free(&w->scripts, sizeof(cfx_script *), w->allocator);
}

cfx_object *cfxi_world_library_function(const cfxi_world *w, const char *space, const char *name)
{
    const cfx_object *found = cfxi_world_dict_get(w->spaces, space);
    return found && found->attrs ? cfxi_world_dict_get(found->attrs, name) : NULL;
}
