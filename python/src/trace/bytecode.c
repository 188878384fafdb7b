/* bytecode.c - the instruction that asks a proxy something, and the variables that take what a call
 * gives, in every version of CPython.
 *
 *             unpacking           the truth that `assert` asks for, and what follows
 *     3.11    UNPACK_SEQUENCE n   POP_JUMP_FORWARD_IF_TRUE, LOAD_ASSERTION_ERROR
 *     3.12                        POP_JUMP_IF_TRUE, LOAD_ASSERTION_ERROR
 *     3.13                        TO_BOOL or COMPARE_OP, POP_JUMP_IF_TRUE, LOAD_ASSERTION_ERROR
 *     3.14                        the same, NOT_TAKEN, LOAD_COMMON_CONSTANT 0
 *
 *     3.13    also: STORE_FAST_LOAD_FAST, STORE_FAST_STORE_FAST, whose argument has two numbers
 *
 * The code that Python gives is the compiler's: nothing in it is specialised, and nothing shows
 * that a debugger or profiler is at work.
 */
#include "trace.h"

#include <opcode.h>

#ifdef POP_JUMP_FORWARD_IF_TRUE
#define JUMP_OVER POP_JUMP_FORWARD_IF_TRUE
#else
#define JUMP_OVER POP_JUMP_IF_TRUE
#endif

#ifdef TO_BOOL
/* COMPARE_OP has the comparison above these bits of its argument, and one that says that it turns
 * the result into a bool itself. */
enum { COMPARE_SHIFT = 5, COMPARE_TO_BOOL = 16 };
#endif

/* The bytes of the code that runs now, and the instruction. */
typedef struct position {
    PyObject *bytes;  /* owned */
    const unsigned char *code;
    Py_ssize_t at, size;
} position;

static bool current_position(position *p)
{
    PyFrameObject *frame = PyEval_GetFrame();
    PyCodeObject *code = frame ? PyFrame_GetCode(frame) : NULL;
    p->bytes = code ? PyCode_GetCode(code) : NULL;
    Py_XDECREF(code);
    if (!p->bytes)
        return false;
    p->code = (const unsigned char *)PyBytes_AS_STRING(p->bytes);
    p->size = PyBytes_GET_SIZE(p->bytes);
    p->at = PyFrame_GetLasti(frame);
    return p->at >= 0 && p->at + 1 < p->size;
}

Py_ssize_t bytecode_unpack_count(void)
{
    position p;
    Py_ssize_t n = -1;
    if (current_position(&p) && p.code[p.at] == UNPACK_SEQUENCE) {
        n = p.code[p.at + 1];
        int shift = 8;
        for (Py_ssize_t i = p.at - 2; i >= 0 && p.code[i] == EXTENDED_ARG; i -= 2, shift += 8)
            n |= (Py_ssize_t)p.code[i + 1] << shift;
    }
    Py_XDECREF(p.bytes);
    PyErr_Clear();  /* without the code there is no telling: then it is not unpacked */
    return n;
}

/* The instruction after the current one; -1 behind the last. */
static int step(position *p)
{
    do
        p->at += 2;
    while (p->at + 1 < p->size && p->code[p->at] == CACHE);
    return p->at + 1 < p->size ? p->code[p->at] : -1;
}

/* Whether the current instruction loads AssertionError. */
static bool loads_assertion_error(position *p, int now)
{
#ifdef NOT_TAKEN
    if (now == NOT_TAKEN)
        now = step(p);
#endif
#ifdef LOAD_COMMON_CONSTANT
    return now == LOAD_COMMON_CONSTANT && p->code[p->at + 1] == 0;
#else
    (void)p;
    return now == LOAD_ASSERTION_ERROR;
#endif
}

bool bytecode_in_assert(int *comparison)
{
    position p;
    bool found = false;
    *comparison = -1;
    if (current_position(&p)) {
        int now = p.code[p.at];
#ifdef TO_BOOL
        const int argument = p.code[p.at + 1];
        const bool compares = now == COMPARE_OP && argument & COMPARE_TO_BOOL;
        if (compares)
            *comparison = argument >> COMPARE_SHIFT;
        now = compares || now == TO_BOOL ? step(&p) : -1;
#endif
        found = now == JUMP_OVER && loads_assertion_error(&p, step(&p));
    }
    Py_XDECREF(p.bytes);
    PyErr_Clear();  /* as above */
    return found;
}

/* ---- variables ----------------------------------------------------------------------------- */

/* The argument of the current instruction, which is behind the prefixes that it has. */
static long argument_of(position *p, int *now)
{
    long argument = *now < 0 ? 0 : p->code[p->at + 1];
    while (*now == EXTENDED_ARG) {
        *now = step(p);
        argument = argument << 8 | (*now < 0 ? 0 : p->code[p->at + 1]);
    }
    return argument;
}

/* The local variables that an instruction stores to, by number: how many, 0 to 2. */
static int stores(int now, long argument, long out[2])
{
    out[0] = argument;
    if (now == STORE_FAST)
        return 1;
#ifdef STORE_FAST_LOAD_FAST
    out[0] = argument >> 4;
    out[1] = argument & 15;
    if (now == STORE_FAST_LOAD_FAST || now == STORE_FAST_STORE_FAST)
        return now == STORE_FAST_LOAD_FAST ? 1 : 2;
#endif
    return 0;
}

/* Its name, a new reference; None for one that does not say anything (`_`, and the compiler's), and
 * for `self`, which generated code has for the module. */
static PyObject *variable(PyObject *names, long number)
{
    PyObject *name = number < PyTuple_GET_SIZE(names) ? PyTuple_GET_ITEM(names, number) : Py_None;
    const bool says = PyUnicode_Check(name) && PyUnicode_GET_LENGTH(name) > 0 &&
                      Py_UNICODE_ISALPHA(PyUnicode_READ_CHAR(name, 0)) &&
                      PyUnicode_CompareWithASCIIString(name, "self") != 0;
    return Py_NewRef(says ? name : Py_None);
}

/* The variables that the items of a sequence are unpacked into: a new tuple, with None for what is
 * not a local variable. */
static PyObject *unpacked(position *p, PyObject *names, long n)
{
    PyObject *all = PyTuple_New(n);
    long at[2], i = 0;
    bool known = true;
    while (all && i < n) {
        int now = known ? step(p) : -1;
        const long argument = argument_of(p, &now);
        const int count = stores(now, argument, at);
        known = count > 0;
        for (int k = 0; k < (known ? count : 1) && i < n; k++, i++)
            PyTuple_SET_ITEM(all, i, known ? variable(names, at[k]) : Py_NewRef(Py_None));
    }
    return all;
}

PyObject *bytecode_targets(PyCodeObject *code, Py_ssize_t at)
{
    PyObject *bytes = PyCode_GetCode(code);
    PyObject *names = bytes ? PyCode_GetVarnames(code) : NULL;
    PyObject *found = NULL;
    if (names) {
        position p = {bytes, (const unsigned char *)PyBytes_AS_STRING(bytes), at,
                      PyBytes_GET_SIZE(bytes)};
        long out[2];
        int now = at >= 0 && at + 1 < p.size ? step(&p) : -1;
        const long argument = argument_of(&p, &now);
        if (now == UNPACK_SEQUENCE)
            found = unpacked(&p, names, argument);
        else
            found = stores(now, argument, out) ? variable(names, out[0]) : Py_NewRef(Py_None);
    }
    Py_XDECREF(names);
    Py_XDECREF(bytes);
    return found;
}
