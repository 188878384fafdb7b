/* resolve.c - objects by qualified name, among what is already loaded.
 *
 *     torch.relu    typing.Dict[str, list[int]]    int | None
 *
 * Text never makes cfx import a module. "Not found" is NULL without an exception throughout.
 */
#include "pycfx.h"

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

/* getattr(o, name), NULL for None. */
static PyObject *attribute(PyObject *o, span name)
{
    PyObject *text = str_from_utf8(name.at, name.size);
    PyObject *found = text ? attr_or_none(o, text) : NULL;
    Py_XDECREF(text);
    if (found == Py_None)
        Py_CLEAR(found);
    return found;
}

static PyObject *attributes(PyObject *o, span path)
{
    const char *dot = NULL;
    Py_INCREF(o);
    do {
        dot = memchr(path.at, '.', path.size);
        size_t size = dot ? (size_t)(dot - path.at) : path.size;
        Py_SETREF(o, attribute(o, (span){path.at, size}));
        if (dot)
            path = (span){dot + 1, path.size - size - 1};
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
    PyObject *found = NULL;
    while (!found && !PyErr_Occurred() && end > 0) {
        PyObject *text = str_from_utf8(name.at, end);
        PyObject *module =
            text ? PyDict_GetItemWithError(PyImport_GetModuleDict(), text) : NULL;
        if (module && module != Py_None)
            found = attributes(module, (span){name.at + end + 1, name.size - end - 1});
        Py_XDECREF(text);
        size_t before = last_dot((span){name.at, end});
        end = before == end ? 0 : before;
    }
    return found;
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
    if (Py_EnterRecursiveCall(" while reading the name of a type"))
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
    Py_LeaveRecursiveCall();
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

PyObject *resolve_name(module_state *st, const char *name, size_t size)
{
    const span text = {name, size};
    if (!stays(text))
        return resolve(st, text);
    PyObject *key = str_from_utf8(name, size);
    PyObject *found = key ? Py_XNewRef(PyDict_GetItemWithError(st->resolved, key)) : NULL;
    if (key && !found && !PyErr_Occurred()) {
        found = resolve(st, text);
        if (found && is_lasting(found) && PyDict_SetItem(st->resolved, key, found) < 0)
            Py_CLEAR(found);
    }
    Py_XDECREF(key);
    return found;
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
