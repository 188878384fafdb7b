/* module_hooks.c - nn.Module's __call__ and __getattr__ while traces run.
 *
 * Both are functions. The first trace swaps their code, and the last one swaps it back: to assign
 * to the class instead would invalidate the method caches of every class of modules, which takes a
 * hundred times as long. But if the class has another function by then, because somebody has
 * replaced or wrapped nn.Module's own, then a function of ours takes its place and calls it: a new
 * one each time, for whoever wraps it during the trace may keep it. What a hook calls plainly is
 * one of its own default values, and tells whether it is the one that is active now.
 *
 * Others may do the same, before a trace, during one, or across its end. What they have put there
 * stays; what they put back of ours when no trace runs goes away when it is called.
 */
#include "trace.h"

static PyObject *name_of(const module_state *st, int which)
{
    return which == MODULE_CALL ? st->str_call : st->str_getattr;
}

/* What the class has under the name of a hook: borrowed, or NULL without an exception. */
static PyObject *in_class(const module_state *st, int which)
{
    PyObject *found = class_entry((PyTypeObject *)st->hooked_class, name_of(st, which));
    if (!found)
        PyErr_Clear();  /* somebody has removed it */
    return found;
}

static int put_in_class(const module_state *st, int which, PyObject *function)
{
    return PyObject_SetAttr(st->hooked_class, name_of(st, which), function);
}

/* ---- whose function it is ------------------------------------------------------------------ */

/* The functions of torch.fx have its globals, whatever functools.wraps makes of their names. */
static bool is_torch_fx(PyObject *function)
{
    PyObject *globals = PyFunction_Check(function) ? PyFunction_GET_GLOBALS(function) : NULL;
    PyObject *name = globals ? PyDict_GetItemString(globals, "__name__") : NULL;
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    const size_t size = strlen("torch.fx");
    bool found = text && strncmp(text, "torch.fx", size) == 0 &&
                 (text[size] == '.' || text[size] == '\0');
    PyErr_Clear();  /* a name that is not text is not torch.fx's */
    return found;
}

/* Others may have wrapped it in turn: functools.wraps says what. */
bool module_hook_is_foreign(PyObject *function)
{
    enum { MAX_WRAPPED = 100 };
    for (int i = 0; function && i < MAX_WRAPPED; i++) {
        if (is_torch_fx(function))
            return true;
        PyObject *dict = PyFunction_Check(function) ? instance_dict(function) : NULL;
        function = dict ? PyDict_GetItemString(dict, "__wrapped__") : NULL;
    }
    return false;
}

PyObject *module_hook_bind(PyObject *function, PyObject *module)
{
    descrgetfunc get = Py_TYPE(function)->tp_descr_get;
    return get ? get(function, module, (PyObject *)Py_TYPE(module)) : Py_NewRef(function);
}

/* ---- coming and going ---------------------------------------------------------------------- */

/* Gives a function another code, unless it has it already: that would slow down its calls. */
static int set_code(const module_state *st, PyObject *function, PyObject *code)
{
    PyObject *now = PyObject_GetAttr(function, st->str_code);
    int failed = !now || (now != code && PyObject_SetAttr(function, st->str_code, code) < 0);
    Py_XDECREF(now);
    return failed ? -1 : 0;
}

/* Somebody may have swapped the code as well: without a trace, that is what runs. */
static int swap_code(const module_state *st, module_hook *hook)
{
    PyObject *now = PyObject_GetAttr(hook->function, st->str_code);
    if (!now || set_code(st, hook->plain, now) < 0 ||
        set_code(st, hook->function, hook->code) < 0) {
        Py_XDECREF(now);
        return -1;
    }
    Py_XSETREF(hook->saved_code, now);
    Py_XSETREF(hook->active, Py_NewRef(hook->plain));
    return 0;
}

/* A function like the hooked one that calls `plain` plainly. */
static PyObject *new_stand_in(const module_hook *hook, PyObject *plain)
{
    PyObject *made = PyFunction_New(hook->code, PyFunction_GET_GLOBALS(hook->function));
    PyObject *defaults = PyFunction_GetKwDefaults(hook->function);  /* borrowed */
    PyObject *own = made && defaults ? PyDict_Copy(defaults) : NULL;
    if (!own || PyDict_SetItemString(own, "__cfx_plain__", plain) < 0 ||
        PyFunction_SetKwDefaults(made, own) < 0)
        Py_CLEAR(made);
    Py_XDECREF(own);
    return made;
}

/* Puts ours in the place of `now`. What torch.fx does with modules is none of our trace's. */
static int take_place(module_state *st, int which, PyObject *now)
{
    module_hook *hook = &st->hooks[which];
    PyObject *plain = module_hook_is_foreign(now) ? hook->plain : now;
    PyObject *made = new_stand_in(hook, plain);
    if (!made)
        return -1;
    Py_XSETREF(hook->stand_in, made);
    Py_XSETREF(hook->replaced, Py_NewRef(now));
    Py_XSETREF(hook->active, Py_NewRef(plain));
    return put_in_class(st, which, made);
}

/* What is set here may run code that traces: the hook has forgotten about it by then. */
static void remove_hook(module_state *st, int which)
{
    module_hook *hook = &st->hooks[which];
    PyObject *saved = hook->saved_code, *stand_in = hook->stand_in, *replaced = hook->replaced;
    PyObject *active = hook->active;
    hook->saved_code = hook->stand_in = hook->replaced = hook->active = NULL;
    PyObject *now = saved ? PyObject_GetAttr(hook->function, st->str_code) : NULL;
    int failed = saved && now == hook->code ? set_code(st, hook->function, saved) : 0;
    if (stand_in && in_class(st, which) == stand_in)
        failed = put_in_class(st, which, replaced) < 0 || failed;
    if (failed || PyErr_Occurred())
        PyErr_WriteUnraisable(hook->function);
    Py_XDECREF(now);
    Py_XDECREF(active);
    Py_XDECREF(saved);
    Py_XDECREF(replaced);
    Py_XDECREF(stand_in);
}

/* Takes away a code or a function that somebody has kept from a trace and put back later. */
static int heal(module_state *st, int which)
{
    module_hook *hook = &st->hooks[which];
    PyObject *codes[2] = {PyObject_GetAttr(hook->function, st->str_code),
                          PyObject_GetAttr(hook->plain, st->str_code)};
    int failed = !codes[0] || !codes[1] ||
                 (codes[0] == hook->code && set_code(st, hook->function, codes[1]) < 0);
    Py_XDECREF(codes[0]);
    Py_XDECREF(codes[1]);
    PyObject *now = in_class(st, which);
    if (failed || !now || now == hook->function || !PyFunction_Check(now) ||
        PyFunction_GET_CODE(now) != hook->code)
        return failed ? -1 : 0;
    PyObject *defaults = PyFunction_GetKwDefaults(now);
    PyObject *plain = defaults ? PyDict_GetItemString(defaults, "__cfx_plain__") : NULL;
    return put_in_class(st, which, plain && plain != hook->plain ? plain : hook->function);
}

int module_hooks_install(module_state *st)
{
    for (int i = 0; i < 2; i++) {
        int failed = heal(st, i);
        PyObject *now = failed ? NULL : in_class(st, i);
        if (!failed)
            failed = !now || now == st->hooks[i].function ? swap_code(st, &st->hooks[i])
                                                          : take_place(st, i, now);
        if (failed) {
            module_hooks_remove(st);
            return -1;
        }
    }
    return 0;
}

/* Nothing may fail here for good, nor hide the exception that ended a trace. */
void module_hooks_remove(module_state *st)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    for (int i = 0; i < 2; i++)
        remove_hook(st, i);
    PyErr_Restore(type, value, traceback);
}

int module_hooks_heal(module_state *st)
{
    return heal(st, MODULE_CALL) < 0 || heal(st, MODULE_GETATTR) < 0 ? -1 : 0;
}
