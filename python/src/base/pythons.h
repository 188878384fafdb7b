/* pythons.h - what differs between versions of CPython, and all of its private interface that cfx
 * uses. `make test-pythons` runs the tests with each version that is found.
 *
 * No other file calls a function whose name begins with _Py, reads tp_dict or tp_version_tag, or
 * asks for the version of Python; tools/style.py checks it. The bytecode is read in one place,
 * too: trace/bytecode.c.
 */
#ifndef PYTHONS_H
#define PYTHONS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#if PY_VERSION_HEX < 0x030B0000
#error "cfx needs Python 3.11 or newer"
#endif

/* ---- whether this Python will do ------------------------------------------------------------ */

/* Raises an ImportError where cfx would not work: in a sub-interpreter, because classes and
 * functions of torch are shared by all of them, and without the GIL, which protects graphs and the
 * state of the module. 0, or -1 with the exception. */
static inline int refuse_interpreter(void)
{
    const char *message = NULL;
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        message = "cfx does not work in sub-interpreters yet; import it in the main interpreter";
#ifdef Py_GIL_DISABLED
    message = "cfx does not work with free-threaded builds of Python yet; use a build with the GIL";
#endif
    if (message)
        PyErr_SetString(PyExc_ImportError, message);
    return message ? -1 : 0;
}

/* The slots that say the same to Python, from those versions on that ask. */
#ifdef Py_mod_multiple_interpreters
#define INTERPRETER_SLOT \
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#else
#define INTERPRETER_SLOT
#endif

/* ---- classes -------------------------------------------------------------------------------- */

/* The dict of a class: a new reference. From 3.12 on, tp_dict of Python's own classes is NULL. */
static inline PyObject *class_dict(PyTypeObject *type)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyType_GetDict(type);
#else
    return Py_XNewRef(type->tp_dict);
#endif
}

/* What a class itself, not one of its bases, has under a name: borrowed from the class; NULL if
 * there is nothing, or with an exception. */
static inline PyObject *class_entry(PyTypeObject *type, PyObject *name)
{
    PyObject *dict = class_dict(type);
    PyObject *found = dict ? PyDict_GetItemWithError(dict, name) : NULL;
    Py_XDECREF(dict);
    return found;
}

/* What a class or its first base that has it has under a name: borrowed, without descriptors being
 * called; NULL without an exception. There is no public function that does it. */
static inline PyObject *class_lookup(PyTypeObject *type, PyObject *name)
{
    return _PyType_Lookup(type, name);
}

/* A number that changes whenever the class or one of its bases does; 0 if it has none now. It has
 * one after a look-up, unless Python has run out of them. */
static inline unsigned class_version(PyTypeObject *type)
{
#if PY_VERSION_HEX < 0x030E0000  /* from 3.14 on there is no flag beside it */
    if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG))
        return 0;
#endif
    return type->tp_version_tag;
}

/* ---- objects -------------------------------------------------------------------------------- */

/* Whether an object can have attributes of its own; and the dict of those, borrowed, or NULL if it
 * has none. */
static inline bool has_dict(PyObject *o) { return _PyObject_GetDictPtr(o) != NULL; }
static inline PyObject *instance_dict(PyObject *o)
{
    PyObject **dict = _PyObject_GetDictPtr(o);
    return dict ? *dict : NULL;
}

/* object.__getattribute__, but NULL without an exception if there is no such attribute: to make an
 * exception takes longer than everything else. */
static inline PyObject *generic_getattr(PyObject *o, PyObject *name)
{
    return _PyObject_GenericGetAttrWithDict(o, name, NULL, 1);
}

/* hasattr(o, name), but false as well if to ask for it fails: from 3.13 on, PyObject_HasAttr
 * reports such a failure on the console. */
static inline bool has_attribute(PyObject *o, PyObject *name)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *found;
    bool has = PyObject_GetOptionalAttr(o, name, &found) > 0;
    Py_XDECREF(found);
    PyErr_Clear();
    return has;
#else
    return PyObject_HasAttr(o, name);
#endif
}

static inline Py_hash_t hash_of_address(const void *address)
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_HashPointer(address);
#else
    return _Py_HashPointer(address);
#endif
}

/* Gives memory that was an object of the same class before its first reference again. */
static inline void revive(PyObject *o) { _Py_NewReference(o); }

/* What a weak reference leads to: a new reference; NULL without an exception if it is gone. */
static inline PyObject *weak_target(PyObject *weak)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *target = NULL;
    if (PyWeakref_GetRef(weak, &target) < 0)
        PyErr_Clear();  /* not a weak reference: it leads nowhere */
    return target;
#else
    PyObject *target = PyWeakref_GetObject(weak);
    return target && target != Py_None ? Py_NewRef(target) : NULL;
#endif
}

/* ---- the C stack ---------------------------------------------------------------------------- */

/* Around a function that calls itself for what a value contains: enter_nested is 0, or -1 with a
 * RecursionError that ends in `where`. Python 3.11 counts such calls with those of Python. 3.12 and
 * 3.13 allow so many that they need more stack than there is; 3.14 looks at the stack, and what is
 * that deep takes too long. */
int enter_nested(const char *where);
void leave_nested(void);

#endif
