/* session.h - sessions of lowered programs: what lowered.c asks of session.c. */
#ifndef PYCFX_SESSION_H
#define PYCFX_SESSION_H

#include "base/pycfx.h"

#include <cfx/session.h>

/* Of a _Session: borrowed. */
cfx_session *session_of(PyObject *session);
/* A _Session that takes over `s`; NULL with an exception. */
PyObject *session_wrap(module_state *st, cfx_session *s);
/* Reads what a program takes and keeps; the names are borrowed from the tuples. False with an
 * exception. The caller frees it. */
bool keeping_from_py(module_state *st, PyObject *takes, PyObject *keeps, cfx_keeping *out);
void keeping_free(cfx_keeping *k);

#endif
