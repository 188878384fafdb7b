/* pythons.c - how deep C functions may call themselves, in every version of Python. */
#include "pythons.h"

#if PY_VERSION_HEX >= 0x030C0000

/* More than containers may nest in a graph (CFX_MAX_DEPTH), and about one megabyte of stack. */
enum { MAX_NESTING = 2000 };

static _Thread_local int nesting;

int enter_nested(const char *where)
{
    if (nesting >= MAX_NESTING) {
        PyErr_Format(PyExc_RecursionError, "maximum recursion depth exceeded%s", where);
        return -1;
    }
    if (Py_EnterRecursiveCall(where))
        return -1;
    nesting++;
    return 0;
}

void leave_nested(void)
{
    nesting--;
    Py_LeaveRecursiveCall();
}

#else

int enter_nested(const char *where) { return Py_EnterRecursiveCall(where) ? -1 : 0; }
void leave_nested(void) { Py_LeaveRecursiveCall(); }

#endif
