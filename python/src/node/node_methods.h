/* node_methods.h - the methods of Node, by the file that has them; node_type.c lists them. */
#ifndef NODE_METHODS_H
#define NODE_METHODS_H

#include "base/pycfx.h"

#define FAST_ARGS PyNode *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames

/* node_type.c */
PyObject *node_get_meta(PyNode *self, void *unused);  /* made if need be */

/* node_args.c */
PyObject *node_get_args(PyNode *self, void *unused);
PyObject *node_get_kwargs(PyNode *self, void *unused);
int node_set_args(PyNode *self, PyObject *value, void *unused);
int node_set_kwargs(PyNode *self, PyObject *value, void *unused);
PyObject *node_update_arg(FAST_ARGS);
PyObject *node_insert_arg(FAST_ARGS);
PyObject *node_update_kwarg(FAST_ARGS);

/* node_uses.c */
PyObject *node_get_users(PyNode *self, void *unused);
PyObject *node_get_inputs(PyNode *self, void *unused);
PyObject *node_get_input_dict(PyNode *self, void *unused);
PyObject *node_replace_all_uses_with(FAST_ARGS);
PyObject *node_replace_input_with(FAST_ARGS);

/* scope.c: the modules it was traced in, as ((key, class), ...) or None. */
PyObject *node_get_scope(PyNode *self, void *unused);
int node_set_scope(PyNode *self, PyObject *chain, void *unused);

#endif
