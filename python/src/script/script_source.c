/* script_source.c - the world of scripts: from code objects to functions of a parsed source.
 *
 * The text of a file is what linecache has, so that notebooks and doctests have a source, too. Each
 * is parsed once, and again when it has changed: `script_sources` maps it to (lines, capsule).
 */
#include "scripting.h"

#include <sys/stat.h>

static const char capsule_name[] = "cfx_script";

static void release_capsule(PyObject *capsule)
{
    cfx_script_release(PyCapsule_GetPointer(capsule, capsule_name));
}

/* ---- files --------------------------------------------------------------------------------- */

int script_is_users(module_state *st, PyObject *file)
{
    PyObject *known = PyDict_GetItemWithError(st->script_files, file);
    if (known || PyErr_Occurred())
        return known ? known == Py_True : -1;
    PyObject *answer = call_glue(st, "script_is_users", file);
    int users = answer ? PyObject_IsTrue(answer) : -1;
    if (users >= 0 && PyDict_SetItem(st->script_files, file, users ? Py_True : Py_False) < 0)
        users = -1;
    Py_XDECREF(answer);
    return users;
}

/* The parsed text: a new capsule; NULL with *err set, or an exception. */
static PyObject *parse(PyObject *file, PyObject *lines, cfx_error *err)
{
    PyObject *nothing = PyUnicode_FromString("");
    PyObject *text = nothing ? PyUnicode_Join(nothing, lines) : NULL;
    PyObject *keep = NULL;
    PyObject *keep_file = NULL;
    PyObject *capsule = NULL;
    Py_ssize_t size;
    const char *source = text ? utf8_of(text, &size, &keep) : NULL;
    const char *name = source ? c_string_of(file, "the name of a file", &keep_file) : NULL;
    cfx_script *script = name ? cfx_script_parse(source, (size_t)size, name, true, NULL, err)
                              : NULL;
    if (script && !(capsule = PyCapsule_New(script, capsule_name, release_capsule)))
        cfx_script_release(script);
    Py_XDECREF(keep_file);
    Py_XDECREF(keep);
    Py_XDECREF(text);
    Py_XDECREF(nothing);
    return capsule;
}

/* The capsule of a file with these lines, borrowed. */
static PyObject *source_of(module_state *st, PyObject *file, PyObject *lines, cfx_error *err)
{
    PyObject *pair = PyDict_GetItemWithError(st->script_sources, file);
    if (pair && PyTuple_GET_ITEM(pair, 0) == lines)
        return PyTuple_GET_ITEM(pair, 1);
    PyObject *capsule = PyErr_Occurred() ? NULL : parse(file, lines, err);
    PyObject *new_pair = capsule ? PyTuple_Pack(2, lines, capsule) : NULL;
    int failed = new_pair ? PyDict_SetItem(st->script_sources, file, new_pair) : -1;
    Py_XDECREF(new_pair);
    Py_XDECREF(capsule);
    return failed ? NULL : capsule;  /* the dict has it */
}

/* ---- functions ----------------------------------------------------------------------------- */

/* Where the body of a lambda begins in its line, in bytes: that of its first instruction with a
 * place; -1 if that is not known. */
static int64_t body_column(PyObject *code)
{
    PyObject *rows = PyObject_CallMethod(code, "co_positions", NULL);
    PyObject *row = NULL;
    long best_line = 0;
    long best = -1;
    while (rows && (row = PyIter_Next(rows))) {
        PyObject *line = PyTuple_GET_ITEM(row, 0);
        PyObject *column = PyTuple_GET_ITEM(row, 2);
        PyObject *end = PyTuple_GET_ITEM(row, 3);
        if (line != Py_None && column != Py_None && end != Py_None &&
            PyLong_AsLong(end) > 0) {  /* what stands for the whole function has 0 for both */
            long l = PyLong_AsLong(line);
            long c = PyLong_AsLong(column);
            if (best < 0 || l < best_line || (l == best_line && c < best)) {
                best_line = l;
                best = c;
            }
        }
        Py_DECREF(row);
    }
    Py_XDECREF(rows);
    PyErr_Clear();  /* a version of Python that has no positions */
    return best;
}

static const cfx_script_def *find(PyScript *w, PyObject *function, PyObject *lines, cfx_error *err)
{
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    PyObject *capsule = source_of(w->st, code->co_filename, lines, err);
    const char *name = capsule ? PyUnicode_AsUTF8(code->co_name) : NULL;
    if (!name || PyList_Append(w->sources, capsule) < 0)
        return NULL;
    bool is_lambda = strcmp(name, "<lambda>") == 0;
    int64_t column = is_lambda ? body_column((PyObject *)code) : -1;
    return cfx_script_find(PyCapsule_GetPointer(capsule, capsule_name),
                           (uint32_t)code->co_firstlineno, column, name);
}

/* What linecache has of the file, if that is as old as the program: borrowed, or NULL. */
static PyObject *lines_on_disk(module_state *st, PyObject *file)
{
    struct stat now;
    const char *path = PyUnicode_AsUTF8(file);
    PyObject *cache = path ? PyObject_GetAttrString(st->script_linecache, "cache") : NULL;
    PyObject *entry = cache && PyDict_Check(cache) ? PyDict_GetItemWithError(cache, file) : NULL;
    PyObject *lines = entry && PyTuple_Check(entry) && PyTuple_GET_SIZE(entry) == 4
                          ? PyTuple_GET_ITEM(entry, 2) : NULL;
    Py_XDECREF(cache);
    PyErr_Clear();  /* whatever is wrong with it, script_lines will say */
    if (!lines || stat(path, &now) != 0)
        return NULL;
    const double written = (double)now.st_mtim.tv_sec + 1e-9 * (double)now.st_mtim.tv_nsec;
    return written <= PyFloat_AsDouble(st->script_started) ? lines : NULL;
}

/* The same; the file is looked at once while a program is evaluated, which is one point in time. */
static PyObject *known_lines(PyScript *w, PyObject *file)
{
    if (w->looked_at != file) {
        Py_XSETREF(w->looked_at, Py_NewRef(file));
        Py_XSETREF(w->seen_lines, Py_XNewRef(lines_on_disk(w->st, file)));
    }
    return w->seen_lines;
}

/* Whether a function is how a layer of torch's computes: its forward, or what that calls. What
 * manages modules is Python's own to run. */
static bool is_layers(const PyScript *w, const PyCodeObject *code)
{
    const char *file = PyUnicode_AsUTF8(code->co_filename);
    const char *name = PyUnicode_AsUTF8(code->co_name);
    const char *home = w->st->script_layers ? PyUnicode_AsUTF8(w->st->script_layers) : NULL;
    const size_t size = home ? strlen(home) : 0;
    PyErr_Clear();  /* a name without UTF-8 is none of torch's */
    if (!file || !name || !home || strncmp(file, home, size) != 0)
        return false;
    if (strcmp(name, "forward") == 0 || strcmp(name, "__setattr__") == 0)
        return strcmp(file + size, "module.py") != 0;
    return strncmp(name, "__", 2) != 0 && strcmp(file + size, "module.py") != 0 &&
           strcmp(file + size, "container.py") != 0;
}

/* Looks for it: NULL if there is none, perhaps with an exception or *err set. */
static const cfx_script_def *look_up(PyScript *w, PyObject *function, cfx_error *err)
{
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    const int unusual = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    int users = code->co_flags & unusual ? 0 : script_is_users(w->st, code->co_filename);
    if (users == 0 && w->st->script_inlined)
        users = PySet_Contains(w->st->script_inlined, function);
    if (users == 0 && !(code->co_flags & unusual))
        users = is_layers(w, code);
    if (users <= 0)
        return NULL;
    PyObject *lines = Py_XNewRef(known_lines(w, code->co_filename));
    if (!lines)
        lines = call_glue(w->st, "script_lines", function);  /* a list, or None */
    const cfx_script_def *def = NULL;
    if (lines && lines != Py_None)
        def = find(w, function, lines, err);
    Py_XDECREF(lines);
    return def;
}

const cfx_script_def *script_def(PyScript *w, PyObject *function, cfx_error *err)
{
    PyObject *known = PyDict_GetItemWithError(w->defs, function);
    if (known)
        return known == Py_None ? NULL : PyLong_AsVoidPtr(known);
    const cfx_script_def *def = PyErr_Occurred() ? NULL : look_up(w, function, err);
    if (PyErr_Occurred() || (err && err->status != CFX_OK))
        return NULL;
    PyObject *address = def ? PyLong_FromVoidPtr((void *)(uintptr_t)def) : Py_NewRef(Py_None);
    if (address && PyDict_SetItem(w->defs, function, address) < 0)
        def = NULL;
    Py_XDECREF(address);
    return def;
}
