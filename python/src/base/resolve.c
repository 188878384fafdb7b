/* resolve.c - objects by qualified name, among what is already loaded.
 *
 *     torch.relu    typing.Dict[str, list[int]]    int | None
 *
 * Text never makes cfx import a module, nor run any code of one: attributes are read from the dicts
 * of modules and classes, past __getattr__, properties and other descriptors. torch's operators are
 * the exception, which torch's own registry has. "Not found" is NULL without an exception
 * throughout.
 *
 * While a text is parsed (resolve_from_text), only names of a few modules lead anywhere, and of
 * those only functions, classes and members of enums that are at home in these modules; and the
 * functions that cfx.script records (policy.def).
 */
#include "pycfx.h"

#include <cfx/embed/namespace.h>
#include <cfx/embed/script.h>

/* What the text that this thread parses may name beside HOMES: a set of modules' names; or NULL. */
static _Thread_local PyObject *allowed;
static _Thread_local bool from_text;

typedef struct span {
    const char *at;
    size_t size;
} span;

static bool is_text(span s, const char *text)
{
    return s.size == strlen(text) && memcmp(s.at, text, s.size) == 0;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static span strip(span s)
{
    while (s.size && is_space(s.at[0])) {
        s.at++;
        s.size--;
    }
    while (s.size && is_space(s.at[s.size - 1]))
        s.size--;
    return s;
}

/* Takes the text before the next separator that stands in no brackets; false if there is none, and
 * then it is all that is left. */
static bool take_part(span *rest, char separator, span *part)
{
    int depth = 0;
    for (size_t i = 0; i < rest->size; i++) {
        char c = rest->at[i];
        if (c == '[' || c == '(')
            depth++;
        else if (c == ']' || c == ')')
            depth--;
        else if (c == separator && depth == 0) {
            *part = strip((span){rest->at, i});
            *rest = (span){rest->at + i + 1, rest->size - i - 1};
            return true;
        }
    }
    *part = strip(*rest);
    return false;
}

/* Arguments that a generic does not take: then the whole is nothing that is loaded. */
static PyObject *not_found(PyObject *result)
{
    if (!result && PyErr_Occurred() && (PyErr_ExceptionMatches(PyExc_LookupError) ||
                                        PyErr_ExceptionMatches(PyExc_TypeError)))
        PyErr_Clear();
    return result;
}

/* ---- dotted names -------------------------------------------------------------------------- */

/* An entry of a dict: a new reference. */
static PyObject *entry(PyObject *dict, PyObject *name)
{
    return Py_XNewRef(PyDict_GetItemWithError(dict, name));
}

/* What a class or one of its bases has under a name, if to read it runs no code. */
static PyObject *class_attribute(PyTypeObject *type, PyObject *name)
{
    PyObject *text = PyUnicode_FromString("_member_map_");  /* of an enum */
    PyObject *members = text ? class_entry(type, text) : NULL;
    Py_XDECREF(text);
    PyObject *found = members && PyDict_CheckExact(members) ? entry(members, name) : NULL;
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; !found && !PyErr_Occurred() && i < PyTuple_GET_SIZE(mro); i++)
        found = Py_XNewRef(class_entry((PyTypeObject *)PyTuple_GET_ITEM(mro, i), name));
    if (found && Py_IS_TYPE(found, &PyStaticMethod_Type))
        Py_SETREF(found, PyObject_GetAttrString(found, "__func__"));
    const bool plain = found && (PyFunction_Check(found) || PyCFunction_Check(found) ||
                                 Py_IS_TYPE(found, &PyMethodDescr_Type) ||
                                 Py_IS_TYPE(found, &PyWrapperDescr_Type) ||
                                 !Py_TYPE(found)->tp_descr_get);
    if (found && !plain)
        Py_CLEAR(found);
    return found;
}

/* What a module or class has under a name; NULL for None. */
static PyObject *attribute(PyObject *o, span name)
{
    PyObject *text = str_from_utf8(name.at, name.size);
    PyObject *found = NULL;
    if (text && PyModule_Check(o))
        found = entry(PyModule_GetDict(o), text);
    else if (text && PyType_Check(o))
        found = class_attribute((PyTypeObject *)o, text);
    Py_XDECREF(text);
    if (found == Py_None)
        Py_CLEAR(found);
    return found;
}

/* Whether a module lies in the package that the path begins with: torch.os does not. */
static bool is_inside(PyObject *module, span path)
{
    const char *dot = memchr(path.at, '.', path.size);
    const size_t root = dot ? (size_t)(dot - path.at) : path.size;
    const char *name = PyModule_GetName(module);
    if (!name)
        PyErr_Clear();  /* without a name it is nowhere */
    return name && strncmp(name, path.at, root) == 0 && (name[root] == '.' || name[root] == '\0');
}

/* What `path` leads to from module `o`, whose name ends at `start` of the path. */
static PyObject *attributes(PyObject *o, span path, size_t start)
{
    span rest = {path.at + start + 1, path.size - start - 1};
    const char *dot = NULL;
    Py_INCREF(o);
    do {
        dot = memchr(rest.at, '.', rest.size);
        size_t size = dot ? (size_t)(dot - rest.at) : rest.size;
        Py_SETREF(o, attribute(o, (span){rest.at, size}));
        if (o && PyModule_Check(o) && from_text && !is_inside(o, path))
            Py_CLEAR(o);
        if (dot)
            rest = (span){dot + 1, rest.size - size - 1};
    } while (o && dot);
    return o;
}

/* A builtin, or one of those that `types` has: NoneType and its like. */
static PyObject *builtin(span name)
{
    PyObject *builtins = loaded_module("builtins");
    PyObject *types = loaded_module("types");
    PyObject *found = builtins ? attribute(builtins, name) : NULL;
    return found || PyErr_Occurred() || !types ? found : attribute(types, name);
}

static size_t last_dot(span name)
{
    size_t i = name.size;
    while (i > 0 && name.at[i - 1] != '.')
        i--;
    return i ? i - 1 : name.size;
}

/* torch.ops.aten.add.Tensor, as torch's registry has it; cfx.ops.add, a row of the operator table,
 * whose function is made when it is asked for. */
static PyObject *registered_operator(module_state *st, span name)
{
    PyObject *text = str_from_utf8(name.at, name.size);
    PyObject *found = text ? call_glue(st, "find_operator", text) : NULL;
    Py_XDECREF(text);
    if (found == Py_None)
        Py_CLEAR(found);
    return found;
}

/* An attribute of the module with the longest name that has it. */
static PyObject *dotted(module_state *st, span name)
{
    size_t end = last_dot(name);
    if (end == name.size)
        return builtin(name);
    if (end == strlen("builtins") && memcmp(name.at, "builtins", end) == 0)
        return builtin((span){name.at + end + 1, name.size - end - 1});
    if (end >= strlen("torch") && memcmp(name.at, "torch.", strlen("torch.")) == 0)
        Py_XDECREF(call_glue(st, "find_torch", Py_None));
    if (end > strlen("torch.ops") && memcmp(name.at, "torch.ops.", strlen("torch.ops.")) == 0)
        return registered_operator(st, name);
    PyObject *found = NULL;
    while (!found && !PyErr_Occurred() && end > 0) {
        PyObject *text = str_from_utf8(name.at, end);
        PyObject *module =
            text ? PyDict_GetItemWithError(PyImport_GetModuleDict(), text) : NULL;
        if (module && module != Py_None)
            found = attributes(module, name, end);
        Py_XDECREF(text);
        size_t before = last_dot((span){name.at, end});
        end = before == end ? 0 : before;
    }
    const bool row = name.size > strlen("cfx.ops.") &&
                     memcmp(name.at, "cfx.ops.", strlen("cfx.ops.")) == 0;
    return found || PyErr_Occurred() || !row ? found : registered_operator(st, name);
}

/* ---- types --------------------------------------------------------------------------------- */

static PyObject *resolve(module_state *st, span name);

/* The arguments between brackets: a new list. */
static PyObject *arguments(module_state *st, span text);

static PyObject *argument(module_state *st, span text)
{
    if (is_text(text, "..."))
        return Py_NewRef(Py_Ellipsis);
    if (is_text(text, "None"))
        return Py_NewRef(Py_None);
    if (text.size < 2 || text.at[0] != '[' || text.at[text.size - 1] != ']')
        return resolve(st, text);
    span inner = {text.at + 1, text.size - 2};
    return inner.size ? arguments(st, inner) : PyList_New(0);
}

static PyObject *arguments(module_state *st, span text)
{
    PyObject *list = PyList_New(0);
    bool more = true;
    while (list && more) {
        span part;
        more = take_part(&text, ',', &part);
        PyObject *item = argument(st, part);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* What `int | None` stands for, of which `first` is the first member. */
static PyObject *join_members(module_state *st, span first, span rest)
{
    PyObject *whole = argument(st, first);
    bool more = true;
    while (whole && more) {
        span part;
        more = take_part(&rest, '|', &part);
        PyObject *member = argument(st, part);
        Py_SETREF(whole, member ? PyNumber_Or(whole, member) : NULL);
        Py_XDECREF(member);
    }
    return not_found(whole);
}

/* generic[arguments] */
static PyObject *subscript(module_state *st, span base, span inner)
{
    PyObject *generic = dotted(st, base);
    if (generic && !PyType_Check(generic) && !is_annotation(st, generic))
        Py_CLEAR(generic);  /* to subscript it could run code */
    PyObject *list = generic ? arguments(st, inner) : NULL;
    PyObject *key = NULL;
    if (list)
        key = PyList_GET_SIZE(list) == 1 ? Py_NewRef(PyList_GET_ITEM(list, 0))
                                         : PyList_AsTuple(list);
    PyObject *whole = key ? PyObject_GetItem(generic, key) : NULL;
    Py_XDECREF(key);
    Py_XDECREF(list);
    Py_XDECREF(generic);
    return not_found(whole);
}

static PyObject *resolve(module_state *st, span name)
{
    span first;
    span rest = name;
    PyObject *found = NULL;
    if (enter_nested(" while reading the name of a type"))
        return NULL;
    bool is_union = take_part(&rest, '|', &first);
    const char *bracket = name.size ? memchr(name.at, '[', name.size) : NULL;
    if (is_union) {
        found = join_members(st, first, rest);
    } else if (!bracket || name.at[name.size - 1] != ']') {
        found = dotted(st, name);
    } else {
        size_t base = (size_t)(bracket - name.at);
        found = subscript(st, (span){name.at, base}, (span){bracket + 1, name.size - base - 2});
    }
    leave_nested();
    return found;
}

/* Whether nobody puts something else where this name leads. */
static bool stays(span name)
{
    static const char *const homes[] = {"operator.", "builtins.", "cfx."};
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
        if (name.size > strlen(homes[i]) && memcmp(name.at, homes[i], strlen(homes[i])) == 0)
            return true;
    return false;
}

static PyObject *resolve_loaded(module_state *st, span text)
{
    if (!stays(text))
        return resolve(st, text);
    PyObject *key = str_from_utf8(text.at, text.size);
    PyObject *found = key ? Py_XNewRef(PyDict_GetItemWithError(st->resolved, key)) : NULL;
    if (key && !found && !PyErr_Occurred()) {
        found = resolve(st, text);
        if (found && is_lasting(found) && PyDict_SetItem(st->resolved, key, found) < 0)
            Py_CLEAR(found);
    }
    Py_XDECREF(key);
    return found;
}

/* ---- names in a text ----------------------------------------------------------------------- */

/* Whether a text may name what is in a module: by default that of the modules here and below. */
static bool is_allowed(span module)
{
    static const char *const homes[] = {"torch", "operator", "_operator", "builtins", "math", "cfx",
                                        "typing", "types", "collections"};
    const char *dot = memchr(module.at, '.', module.size);
    const span root = {module.at, dot ? (size_t)(dot - module.at) : module.size};
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
        if (is_text(root, homes[i]))
            return true;
    for (size_t end = root.size; allowed && end <= module.size; end++) {
        if (end < module.size && module.at[end] != '.')
            continue;
        PyObject *text = str_from_utf8(module.at, end);
        const int found = text ? PySet_Contains(allowed, text) : -1;
        Py_XDECREF(text);
        if (found)
            return found > 0;
    }
    return false;
}

/* Whether somebody has listed this very name: "my.module:f" allows my.module.f alone. */
static bool is_listed(span name)
{
    bool found = false;
    for (size_t i = 0; allowed && !found && i < name.size; i++) {
        if (name.at[i] != '.')
            continue;
        PyObject *home = str_from_utf8(name.at, i);
        PyObject *rest = home ? str_from_utf8(name.at + i + 1, name.size - i - 1) : NULL;
        PyObject *text = rest ? PyUnicode_FromFormat("%U:%U", home, rest) : NULL;
        found = text && PySet_Contains(allowed, text) > 0;
        Py_XDECREF(text);
        Py_XDECREF(rest);
        Py_XDECREF(home);
    }
    return found;
}

/* Whether a name is that of a function which cfx.script records: none of them runs code. */
static bool is_recorded(span name)
{
    char text[64];
    if (name.size >= sizeof text)
        return false;
    memcpy(text, name.at, name.size);
    text[name.size] = '\0';
    return cfx_script_rule_of(text) != CFX_RULE_NEVER;
}

/* Whether each of the names in the text of a type is. A name without dots is a builtin. */
static bool all_allowed(span text)
{
    for (size_t at = 0; at < text.size; at++) {
        size_t end = at;
        while (end < text.size && !strchr("[], |", text.at[end]))
            end++;
        const span name = {text.at + at, end - at};
        const size_t dot = name.size ? last_dot(name) : 0;
        if (dot < name.size && !is_text(name, "...") && !is_allowed((span){name.at, dot}) &&
            !is_recorded(name) && !is_listed(name))
            return false;
        at = end;
    }
    return true;
}

/* Whether a function or class is at home in such a module: torch.hub.urlopen is not. */
static bool is_at_home(const module_state *st, PyObject *o)
{
    if (!PyFunction_Check(o) && !PyType_Check(o))
        return PyCallable_Check(o) || is_annotation(st, o) || is_enum(o) > 0;
    PyObject *home = PyFunction_Check(o) ? Py_XNewRef(PyFunction_GET_MODULE(o))
                                         : PyObject_GetAttr(o, st->str_module);
    const char *text = home && PyUnicode_Check(home) ? PyUnicode_AsUTF8(home) : NULL;
    const bool found = text && is_allowed((span){text, strlen(text)});
    Py_XDECREF(home);
    PyErr_Clear();  /* without a home it is nowhere */
    return found;
}

static PyObject *resolve_in_text(module_state *st, span text)
{
    if (cfx_name_runs_code(text.at, text.size) || !all_allowed(text))
        return NULL;
    PyObject *found = resolve_loaded(st, text);
    const bool may = found && !PyModule_Check(found) &&
                     (is_recorded(text) || is_listed(text) || is_at_home(st, found));
    if (!may)
        Py_CLEAR(found);
    return found;
}

PyObject *resolve_name(module_state *st, const char *name, size_t size)
{
    const span text = {name, size};
    return from_text ? resolve_in_text(st, text) : resolve_loaded(st, text);
}

void resolve_from_text(PyObject *modules, text_names *before)
{
    *before = (text_names){allowed, from_text};
    allowed = modules;
    from_text = true;
}

void resolve_as_before(text_names before)
{
    allowed = before.allowed;
    from_text = before.from_text;
}

static PyObject *py_resolve(PyObject *module, PyObject *name)
{
    PyObject *keep = NULL;
    const char *text = c_string_of(name, "a qualified name", &keep);
    PyObject *found = text ? resolve_name(PyModule_GetState(module), text, strlen(text)) : NULL;
    Py_XDECREF(keep);
    return found || PyErr_Occurred() ? found : Py_NewRef(Py_None);
}

PyMethodDef resolve_functions[] = {
    {"_resolve", py_resolve, METH_O,
     PyDoc_STR("The object that a name stands for among what is loaded; None if there is none.")},
    {NULL, NULL, 0, NULL},
};
