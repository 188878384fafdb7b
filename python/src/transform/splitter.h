/* splitter.h - what the files of the splitter share: its sets and dicts as arrays of the core. */
#ifndef CFX_PYTHON_SPLITTER_H
#define CFX_PYTHON_SPLITTER_H

#include "base/pycfx.h"

#include <cfx/embed/partition.h>

typedef struct need_list {
    cfx_need *pairs;  /* to be freed with PyMem_Free, also after a failure */
    size_t n, capacity;
} need_list;

/* Whether the graph still has the version that it had before code of the user could run: what was
 * read of it by the positions of nodes is good then. False with an exception. */
bool is_unchanged(PyGraph *self, uint64_t version);

/* The flags of all nodes, to be freed with PyMem_Free: whether they are in the set, and whether
 * `is_tensor` (may be NULL) says so of those in the set or, if `all_calls`, of all calls. NULL with
 * an exception. */
unsigned char *read_acc(PyGraph *self, PyObject *acc, PyObject *is_tensor, bool all_calls);
/* The pairs of a dict {node: a set of nodes}, those of this graph; -1 with an exception. */
int read_pairs(PyGraph *self, PyObject *deps, need_list *list);
/* The number of the group of each node, for a list of sets; to be freed with PyMem_Free. NULL with
 * an exception. */
uint32_t *read_groups(PyGraph *self, PyObject *groups);

/* sets[key].add(member), for a dict of sets; a set never contains its own key. `member` may be
 * NULL: then the set is only made, if there is none. -1 with an exception. */
int add_to_set(PyGraph *self, PyObject *sets, cfx_node *key, cfx_node *member);
/* Makes sets for all members of groups that have none. -1 with an exception. */
int begin_sets(PyGraph *self, PyObject *sets, const uint32_t *groups);

#endif
