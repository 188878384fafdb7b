/* script_module.c - the world of scripts: attributes that the program assigns to modules, and the
 * flag `training`.
 *
 * What is assigned is kept aside. A module that has something aside, or has such a module below it,
 * is not called as a whole: the graph's module would be called with the old settings. Its forward
 * is evaluated instead, also if it is torch's.
 *
 * `training` is the one setting that people switch after the capture, so the graph reads it from
 * its module when it runs. It is read once for each module, at the start: the program can only
 * change what is aside.
 */
#include "scripting.h"

/* ---- what is aside ------------------------------------------------------------------------- */

static PyObject *aside_key(PyObject *o, PyObject *name)
{
    PyObject *id = PyLong_FromVoidPtr(o);
    PyObject *key = id ? PyTuple_Pack(2, id, name) : NULL;
    Py_XDECREF(id);
    return key;
}

PyObject *script_aside(PyScript *w, PyObject *o, PyObject *name)
{
    if (PyDict_GET_SIZE(w->aside) == 0)
        return NULL;
    PyObject *key = aside_key(o, name);
    PyObject *pair = key ? PyDict_GetItemWithError(w->aside, key) : NULL;
    Py_XDECREF(key);
    return pair ? PyTuple_GET_ITEM(pair, 1) : NULL;
}

static bool is_training(PyObject *name)
{
    return PyUnicode_CompareWithASCIIString(name, "training") == 0;
}

/* The entry of `flags`: borrowed, NULL if there is none, perhaps with an exception. */
static PyObject *flag_of(PyScript *w, PyObject *module)
{
    PyObject *id = PyLong_FromVoidPtr(module);
    PyObject *flag = id ? PyDict_GetItemWithError(w->flags, id) : NULL;
    Py_XDECREF(id);
    return flag;
}

/* Whether a value, or NULL, is what the module itself answers: 1, 0, -1 with an exception. The mode
 * of a module is not known before the graph checks it, so that to assign any is a change. */
static int is_answer(PyScript *w, PyObject *module, PyObject *name, PyObject *value)
{
    PyObject *flag = is_training(name) ? flag_of(w, module) : NULL;
    PyObject *answer = flag ? PyTuple_GET_ITEM(flag, 2) : NULL;
    if (flag)
        return value == PyTuple_GET_ITEM(flag, 1) || (answer != Py_None && value == answer);
    PyObject *real = PyErr_Occurred() ? NULL : script_own_entry(w, module, name);
    if (PyErr_Occurred())
        return -1;
    return real && value ? script_same(real, value) : !real && !value;
}

/* A list or dict of modules shows its items to Python's own code, which sees nothing aside. */
static int check_item(PyScript *w, PyObject *module, PyObject *name)
{
    const PyTypeObject *type = Py_TYPE(module);
    const bool holds = type->tp_iter || (type->tp_as_mapping && type->tp_as_mapping->mp_subscript);
    if (!holds || (!module_entry(module, w->st->str_modules, name) &&
                   !module_entry(module, w->st->str_parameters, name)))
        return PyErr_Occurred() ? -1 : 0;
    script_refuse(w, "cannot assign to item '%U' of this %s: the assignment would happen once, "
                  "during capture, not in each call; choose among modules that are all there "
                  "from the start", name, type->tp_name);
    return -1;
}

/* Whether a graph value is an nn.Parameter: 1, 0, -1 with an exception. */
static int makes_parameter(PyScript *w, PyObject *proxy)
{
    PyObject *node = PyObject_GetAttr(proxy, w->st->str_node);
    PyObject *target = node ? PyObject_GetAttrString(node, "target") : NULL;
    int makes = target ? target == w->st->parameter_class : -1;
    Py_XDECREF(target);
    Py_XDECREF(node);
    return makes;
}

/* A parameter can only be replaced by another, or by None. */
static int check_parameter(PyScript *w, PyObject *o, PyObject *name, PyObject *value)
{
    module_state *st = w->st;
    PyObject *now = module_entry(o, st->str_parameters, name);
    if (!now || !value || value == Py_None || value == now)
        return PyErr_Occurred() ? -1 : 0;
    int fits = is_proxy(st, value) ? makes_parameter(w, value)
                                   : PyObject_IsInstance(value, st->parameter_class);
    if (fits == 0 && is_proxy(st, value))
        script_refuse(w, "cannot assign to '%U', a parameter of %s, what is not known to be an "
                      "nn.Parameter; wrap it in nn.Parameter, or use the function of "
                      "torch.nn.functional with this tensor", name, Py_TYPE(o)->tp_name);
    else if (fits == 0)
        PyErr_Format(PyExc_TypeError, "cannot assign '%s' as parameter '%U' (torch.nn.Parameter or "
                     "None expected)", Py_TYPE(value)->tp_name, name);
    return fits > 0 ? 0 : -1;
}

int script_put_aside(PyScript *w, PyObject *o, PyObject *name, PyObject *value)
{
    if (check_item(w, o, name) < 0 || check_parameter(w, o, name, value) < 0)
        return -1;
    w->changes++;
    const int same = w->applied ? 0 : is_answer(w, o, name, value);
    PyObject *key = same < 0 ? NULL : aside_key(o, name);
    int failed = key ? 0 : -1;
    if (key && same) {
        if (PyDict_GetItemWithError(w->aside, key))
            failed = PyDict_DelItem(w->aside, key);
        else if (PyErr_Occurred())
            failed = -1;
    } else if (key) {
        PyObject *pair = PyTuple_Pack(2, o, value ? value : Py_Ellipsis);
        failed = pair ? PyDict_SetItem(w->aside, key, pair) : -1;
        Py_XDECREF(pair);
    }
    Py_XDECREF(key);
    return failed;
}

/* Whether an item of `aside` belongs to a module: set to -1 with an exception. */
static int has_aside(PyScript *w, PyObject *module)
{
    PyObject *key, *pair;
    Py_ssize_t at = 0;
    while (PyDict_Next(w->aside, &at, &key, &pair))
        if (PyTuple_GET_ITEM(pair, 0) == module)
            return 1;
    return 0;
}

int script_is_changed(PyScript *w, PyObject *module)
{
    if (PyDict_GET_SIZE(w->aside) == 0)
        return 0;
    if (has_aside(w, module))
        return 1;
    PyObject *dict = instance_dict(module);
    PyObject *below = dict ? PyDict_GetItemWithError(dict, w->st->str_modules) : NULL;
    PyObject *children = below && PyDict_Check(below) ? PyDict_Values(below) : NULL;
    int changed = PyErr_Occurred() || enter_nested(" while looking at modules") ? -1 : 0;
    for (Py_ssize_t i = 0; children && changed == 0 && i < PyList_GET_SIZE(children); i++)
        if (is_nn_module(w->st, PyList_GET_ITEM(children, i)))
            changed = script_is_changed(w, PyList_GET_ITEM(children, i));
    if (changed >= 0)
        leave_nested();
    Py_XDECREF(children);
    return changed;
}

/* ---- calls of Python's own code ------------------------------------------------------------ */

/* The dict that holds an attribute: borrowed; NULL with an exception. */
static PyObject *table_of(PyScript *w, PyObject *module, PyObject *name)
{
    module_state *st = w->st;
    PyObject *const kinds[3] = {st->str_parameters, st->str_buffers, st->str_modules};
    PyObject *dict = instance_dict(module);
    for (size_t i = 0; dict && i < 3; i++) {
        PyObject *table = PyDict_GetItemWithError(dict, kinds[i]);
        int has = table && PyDict_Check(table) ? PyDict_Contains(table, name) : 0;
        if (has != 0 || PyErr_Occurred())
            return has > 0 ? table : NULL;
    }
    if (!dict)
        PyErr_SetString(PyExc_AttributeError, "this module has no attributes");
    return dict;
}

/* Gives an attribute a value, Ellipsis: none; *was is a new reference to the one before. */
static int swap(PyScript *w, PyObject *module, PyObject *name, PyObject *value, PyObject **was)
{
    PyObject *table = table_of(w, module, name);
    PyObject *before = table ? PyDict_GetItemWithError(table, name) : NULL;
    *was = Py_NewRef(before ? before : Py_Ellipsis);
    if (!table || PyErr_Occurred())
        return -1;
    if (value != Py_Ellipsis)
        return PyDict_SetItem(table, name, value);
    return before ? PyDict_DelItem(table, name) : 0;
}

/* Puts back what `apply` has noted, the last first. An exception that is set stays. */
static void put_back(PyScript *w, PyObject *notes)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    for (Py_ssize_t i = notes ? PyList_GET_SIZE(notes) : 0; i-- > 0;) {
        PyObject *note = PyList_GET_ITEM(notes, i), *now = NULL;
        swap(w, PyTuple_GET_ITEM(note, 0), PyTuple_GET_ITEM(note, 1), PyTuple_GET_ITEM(note, 2),
             &now);
        Py_XDECREF(now);
        PyErr_Clear();  /* memory is out: the rest can still be put back */
    }
    PyErr_Restore(type, value, traceback);
}

/* Puts everything where Python's own code finds it: a list of what was there; NULL with an
 * exception, and nothing is changed. */
static PyObject *apply(PyScript *w)
{
    PyObject *items = PyDict_Items(w->aside), *notes = items ? PyList_New(0) : NULL;
    int failed = notes ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(items); i++) {
        PyObject *name = PyTuple_GET_ITEM(PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 0), 1);
        PyObject *pair = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 1);
        PyObject *module = PyTuple_GET_ITEM(pair, 0), *was = NULL;
        failed = swap(w, module, name, PyTuple_GET_ITEM(pair, 1), &was);
        PyObject *note = was ? PyTuple_Pack(3, module, name, was) : NULL;
        if (!note || PyList_Append(notes, note) < 0)
            failed = -1;
        Py_XDECREF(note);
        Py_XDECREF(was);
    }
    Py_XDECREF(items);
    if (failed) {
        put_back(w, notes);
        Py_CLEAR(notes);
    }
    return notes;
}

/* The modules that a call is given: a new list; NULL with an exception. */
static PyObject *modules_of(PyScript *w, PyObject *f, PyObject *args, PyObject *kwargs)
{
    PyObject *found = PyList_New(0), *name, *value;
    PyObject *self = PyMethod_Check(f) ? PyMethod_GET_SELF(f) : NULL;
    int failed = found && self && is_nn_module(w->st, self) ? PyList_Append(found, self) : 0;
    for (Py_ssize_t i = 0; found && !failed && i < PyTuple_GET_SIZE(args); i++)
        if (is_nn_module(w->st, PyTuple_GET_ITEM(args, i)))
            failed = PyList_Append(found, PyTuple_GET_ITEM(args, i));
    for (Py_ssize_t at = 0; found && kwargs && !failed && PyDict_Next(kwargs, &at, &name, &value);)
        if (is_nn_module(w->st, value))
            failed = PyList_Append(found, value);
    if (failed)
        Py_CLEAR(found);
    return found;
}

/* Whether a parameter, a buffer or a module below was replaced: 1, 0, -1 with an exception. */
static int has_members_aside(PyScript *w)
{
    PyObject *key, *pair;
    Py_ssize_t at = 0;
    while (PyDict_Next(w->aside, &at, &key, &pair)) {
        PyObject *module = PyTuple_GET_ITEM(pair, 0);
        PyObject *table = table_of(w, module, PyTuple_GET_ITEM(key, 1));
        if (!table || (has_dict(module) && table != instance_dict(module)))
            return table ? 1 : -1;
    }
    return 0;
}

/* What a call changed in the modules that it was given is undone, and refused. A generator would
 * read them when nothing is applied any more. -1 with an exception. */
static int check_call(PyScript *w, PyObject *f, PyObject *before, PyObject *result)
{
    PyObject *changed = call_glue(w->st, "script_undo", before);  /* (module, name), or None */
    PyObject *function = PyMethod_Check(f) ? PyMethod_GET_FUNCTION(f) : f;
    const char *name = !PyFunction_Check(function) ? "the function"
                       : PyUnicode_AsUTF8(((PyFunctionObject *)function)->func_qualname);
    if (!name) {
        Py_XDECREF(changed);
        return -1;
    }
    int late = changed == Py_None && result && PyGen_Check(result) ? has_members_aside(w) : 0;
    if (changed && changed != Py_None)
        script_refuse(w, "%s changes attribute '%U' of this %s: the change would happen once, "
                      "during capture, not in each call; do it before the capture", name,
                      PyTuple_GET_ITEM(changed, 1),
                      Py_TYPE(PyTuple_GET_ITEM(changed, 0))->tp_name);
    else if (late > 0)
        script_refuse(w, "%s does not see the attributes that were assigned to; call it before "
                      "the assignment", name);
    int failed = changed == Py_None && late == 0 ? 0 : -1;
    Py_XDECREF(changed);
    return failed;
}

/* The same, whatever became of the call: its result, or its exception stays. */
static PyObject *checked(PyScript *w, PyObject *f, PyObject *before, PyObject *result)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (check_call(w, f, before, result) == 0) {
        PyErr_Restore(type, value, traceback);
        return result;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    Py_XDECREF(result);
    return NULL;
}

PyObject *script_call_changed(PyScript *w, PyObject *f, PyObject *args, PyObject *kwargs)
{
    const bool python = PyFunction_Check(f) || PyMethod_Check(f) ||
                        Py_TYPE(f) == &PyWrapperDescr_Type;
    PyObject *modules = python ? modules_of(w, f, args, kwargs) : NULL;
    if (python && !modules)
        return NULL;
    const bool watched = modules && PyList_GET_SIZE(modules) > 0;
    const bool applies = python && PyDict_GET_SIZE(w->aside) > 0 && !w->applied;
    PyObject *notes = applies ? apply(w) : NULL;
    PyObject *before = watched ? call_glue(w->st, "script_watch", modules) : NULL;
    PyObject *result = NULL;
    w->applied += applies;
    if ((notes || !applies) && (before || !watched))
        result = PyObject_Call(f, args, kwargs);
    if (before)
        result = checked(w, f, before, result);
    w->applied -= applies;
    if (applies)
        put_back(w, notes);
    Py_XDECREF(before);
    Py_XDECREF(notes);
    Py_XDECREF(modules);
    return result;
}

/* ---- training ------------------------------------------------------------------------------ */

/* Records a node behind the inputs and the flags before it: a new reference to its Proxy. */
static PyObject *record_early(PyScript *w, const trace_call *call)
{
    cfx_graph *g = ((PyGraph *)w->tracer->graph)->g;
    const cfx_insert_point was = cfx_graph_insert_point(g);
    const cfx_insert_point here = {.node = w->flag, .after = true};
    cfx_error err = {0};
    if (cfx_graph_set_insert_point(g, here, &err) != CFX_OK)
        return raise_cfx(&err);
    PyObject *proxy = tracer_record(w->st, (PyObject *)w->tracer, call);
    cfx_node *n = proxy ? w->world.node(w, object(proxy)) : NULL;
    if (cfx_graph_set_insert_point(g, was, &err) != CFX_OK)
        raise_cfx(&err);
    if (n)
        w->flag = n;
    if (PyErr_Occurred())
        Py_CLEAR(proxy);
    return proxy;
}

/* The path of a module with `.name` behind it; NULL without an exception if it has no path. */
static PyObject *path_with(PyScript *w, PyObject *module, const char *name)
{
    PyObject *path = module_path(w->tracer, module);
    if (!path && PyErr_ExceptionMatches(PyExc_NameError))
        PyErr_Clear();  /* it is not a part of the root: its attributes are constants */
    PyObject *whole = !path ? NULL
                      : PyUnicode_GET_LENGTH(path) == 0 ? PyUnicode_FromString(name)
                                                        : PyUnicode_FromFormat("%U.%s", path, name);
    Py_XDECREF(path);
    return whole;
}

/* The graph checks that the flag is what it was taken for. The glue gives (operator.eq,
 * torch._assert, text). */
static int check_flag(PyScript *w, PyObject *proxy, PyObject *now)
{
    PyObject *job = PyTuple_Pack(2, w->mode, now);
    PyObject *check = job ? call_glue(w->st, "script_flag_check", job) : NULL;
    int done = 0;
    if (check) {
        PyObject *const asked[2] = {proxy, now};
        trace_call is = {.op = CFX_OP_CALL_FUNCTION, .target = PyTuple_GET_ITEM(check, 0),
                         .args = asked, .n = 2};
        PyObject *same = record_early(w, &is);
        PyObject *const asserted[2] = {same, PyTuple_GET_ITEM(check, 2)};
        is.target = PyTuple_GET_ITEM(check, 1);
        is.args = asserted;
        PyObject *assertion = same ? record_early(w, &is) : NULL;
        done = assertion != NULL;
        Py_XDECREF(assertion);
        Py_XDECREF(same);
    }
    Py_XDECREF(job);
    Py_XDECREF(check);
    return done ? 0 : -1;
}

/* The entry of `flags`, made if the graph can read the flag: borrowed; NULL if it cannot, or with
 * an exception. */
static PyObject *read_flag(PyScript *w, PyObject *module)
{
    PyObject *flag = flag_of(w, module);
    if (flag || PyErr_Occurred())
        return flag;
    PyObject *path = path_with(w, module, "training");
    const trace_call call = {.op = CFX_OP_GET_ATTR, .target = path};
    PyObject *proxy = path ? record_early(w, &call) : NULL;
    PyObject *id = proxy ? PyLong_FromVoidPtr(module) : NULL;
    PyObject *made = id ? PyTuple_Pack(3, module, proxy, Py_None) : NULL;
    if (made && PyDict_SetItem(w->flags, id, made) == 0)
        flag = made;
    Py_XDECREF(made);  /* which `flags` keeps */
    Py_XDECREF(id);
    Py_XDECREF(proxy);
    Py_XDECREF(path);
    return flag;
}

/* What the program reads: the entry's graph value, or what it is now, which the graph checks. A
 * new reference; NULL with an exception. */
static PyObject *answer_flag(PyScript *w, PyObject *flag, PyObject *now)
{
    PyObject *answer = PyTuple_GET_ITEM(flag, 2), *proxy = PyTuple_GET_ITEM(flag, 1);
    w->reads_flags = true;
    if (answer != Py_None)
        return Py_NewRef(answer);
    answer = w->training == -2 ? now : proxy;
    PyObject *id = PyLong_FromVoidPtr(PyTuple_GET_ITEM(flag, 0));
    PyObject *made = id ? PyTuple_Pack(3, PyTuple_GET_ITEM(flag, 0), proxy, answer) : NULL;
    int failed = made ? PyDict_SetItem(w->flags, id, made) : -1;
    Py_XDECREF(made);
    Py_XDECREF(id);
    if (!failed && answer == now)
        failed = check_flag(w, PyTuple_GET_ITEM(made, 1), now);
    return failed ? NULL : Py_NewRef(answer);
}

/* What the module itself has: borrowed, NULL if nothing, perhaps with an exception. */
static PyObject *own_flag(PyScript *w, PyObject *module)
{
    PyObject *name = PyUnicode_InternFromString("training");
    PyObject *now = name ? script_own_entry(w, module, name) : NULL;
    Py_XDECREF(name);
    return now;
}

PyObject *script_training(PyScript *w, PyObject *module)
{
    PyObject *now = own_flag(w, module);
    if (now && PyBool_Check(now) && w->training >= 0)
        return PyBool_FromLong(w->training);
    PyObject *flag = now && PyBool_Check(now) ? read_flag(w, module) : NULL;
    if (flag)
        return answer_flag(w, flag, now);
    return PyErr_Occurred() ? NULL : Py_XNewRef(now);
}

PyObject *script_peek_training(PyScript *w, PyObject *module)
{
    PyObject *now = w->training == -2 ? own_flag(w, module) : NULL;
    PyObject *flag = now && PyBool_Check(now) ? read_flag(w, module) : NULL;
    return flag ? Py_NewRef(PyTuple_GET_ITEM(flag, 1)) : NULL;
}

int script_look_inside(PyScript *w, PyObject *module, PyObject *name)
{
    static const char *const dicts[] = {"__dict__", "_parameters", "_buffers", "_modules"};
    bool inside = false;
    for (size_t i = 0; i < sizeof dicts / sizeof *dicts; i++)
        inside = inside || PyUnicode_CompareWithASCIIString(name, dicts[i]) == 0;
    if (!inside || w->applied)
        return 0;
    if (has_aside(w, module)) {
        script_refuse(w, "attributes of this %s were assigned to, which its '%U' does not show "
                      "during capture; read the attributes themselves",
                      Py_TYPE(module)->tp_name, name);
        return -1;
    }
    const int how = w->training;
    if (PyUnicode_CompareWithASCIIString(name, "__dict__") != 0 || how >= 0)
        return 0;
    w->training = -2;
    PyObject *answer = script_training(w, module);
    w->training = how;
    int failed = answer || !PyErr_Occurred() ? 0 : -1;
    if (answer && is_proxy(w->st, answer)) {
        script_refuse(w, "'training' of this %s is a value of the graph, which its '__dict__' does "
                      "not show; read the attribute itself", Py_TYPE(module)->tp_name);
        failed = -1;
    }
    Py_XDECREF(answer);
    return failed;
}

int script_check_training(PyScript *w, PyObject *module, PyObject *v)
{
    if (w->training != -2 || v != own_flag(w, module))
        return PyErr_Occurred() ? -1 : 0;
    PyObject *answer = script_training(w, module);
    Py_XDECREF(answer);
    return answer ? 1 : -1;
}

int script_keep_training(PyScript *w, PyObject *module, PyObject *v)
{
    PyObject *path = module_path(w->tracer, module);
    PyObject *set = PyDict_GetItemString(PyEval_GetBuiltins(), "setattr");
    PyObject *name = path && set ? PyUnicode_InternFromString("training") : NULL;
    const trace_call call = {.op = CFX_OP_GET_ATTR, .target = path};
    PyObject *of = name ? tracer_record(w->st, (PyObject *)w->tracer, &call) : NULL;
    PyObject *const args[3] = {of, name, v};
    PyObject *done = of ? script_record(w, set, args, 3, NULL) : NULL;
    int failed = done ? 0 : -1;
    Py_XDECREF(done);
    Py_XDECREF(of);
    Py_XDECREF(name);
    Py_XDECREF(path);
    return failed;
}
