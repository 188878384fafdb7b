/* interpreter.c - Interpreter: runs a graph node by node.
 *
 * Every step of a run is also a method that a subclass may override, as in torch.fx:
 *
 *     _run -> run_node -> _set_current_node
 *                      -> fetch_args_kwargs_from_env -> map_nodes_to_values
 *                      -> placeholder, call_function, ... -> fetch_attr
 *
 * Which of them are overridden is asked when a run begins; the others are called in C. The values
 * are in `env`, a dict {Node: value} that users read and change: so it is Python's from the start.
 */
#include "node/node_methods.h"

#include <cfx/embed/context.h>

/* The steps: those of the six opcodes first, in the opcodes' order. */
#define STEPS(X)                                                                                   \
    X(placeholder) X(get_attr) X(call_function) X(call_module) X(call_method) X(output)            \
    X(run_node) X(fetch_attr) X(fetch_args_kwargs_from_env) X(map_nodes_to_values)                 \
    X(_set_current_node)

/* Other names that are looked up in Python. */
#define NAMES(X)                                                                                   \
    X(env) X(graph) X(module) X(args_iter) X(garbage_collect_values) X(user_to_last_uses)          \
    X(process_outputs) X(_explain) X(_region) X(set_current_meta)

enum {
#define X(name) NAME_##name,
    STEPS(X) NAMES(X)
#undef X
    N_NAMES,
    N_STEPS = NAME_env,
};

#define NAME(st, id) PyTuple_GET_ITEM((st)->step_names, NAME_##id)
#define HAS(steps, id) (((steps) >> NAME_##id) & 1u)
/* run_node is ShapeProp's, which is C as well. */
#define RECORDS (1u << N_STEPS)

typedef struct PyInterpreter {
    PyObject_HEAD
    module_state *st;
    uint32_t steps;  /* a bit for each step that is overridden, while runs > 0 */
    uint32_t runs;   /* that go on */
} PyInterpreter;

static PyObject *interpreter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    PyInterpreter *self = (PyInterpreter *)type->tp_alloc(type, 0);
    if (self)
        self->st = state_of(type);
    return (PyObject *)self;
}

static const char *const texts[] = {
#define X(name) #name,
    STEPS(X) NAMES(X)
#undef X
};

int interpreter_init(module_state *st)
{
    st->step_names = interned_names(texts, N_NAMES);
    return st->step_names ? 0 : -1;
}

/* ---- calling Python ------------------------------------------------------------------------ */

static PyObject *call_step(PyInterpreter *self, PyObject *name, PyObject *a, PyObject *b,
                           PyObject *c)
{
    PyObject *in[] = {(PyObject *)self, a, b, c};
    size_t n = c ? 4 : b ? 3 : 2;
    return PyObject_VectorcallMethod(name, in, n, NULL);
}

/* self.env, a new reference. */
static PyObject *get_env(PyInterpreter *self)
{
    PyObject *env = PyObject_GetAttr((PyObject *)self, NAME(self->st, env));
    if (env && !PyDict_Check(env)) {
        PyErr_Format(PyExc_TypeError, "env must be a dict, got %R", (PyObject *)Py_TYPE(env));
        Py_CLEAR(env);
    }
    return env;
}

static bool need_str(PyObject *target)
{
    if (PyUnicode_Check(target))
        return true;
    PyErr_Format(PyExc_AssertionError, "Expected target to be str, got %R",
                 (PyObject *)Py_TYPE(target));
    return false;
}

/* ---- modules and their attributes ---------------------------------------------------------- */

static PyObject *attribute_at(PyObject *root, PyObject *parts)
{
    PyObject *at = Py_NewRef(root);
    Py_ssize_t n = PyList_GET_SIZE(parts);
    Py_ssize_t i = 0;
    for (; at && i < n; i++)
        Py_SETREF(at, PyObject_GetAttr(at, PyList_GET_ITEM(parts, i)));
    if (at || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return at;
    PyErr_Clear();  /* what matters is which part of the path leads nowhere */
    PyObject *dot = PyUnicode_FromString(".");
    PyObject *known = PyList_GetSlice(parts, 0, i);
    PyObject *path = dot && known ? PyUnicode_Join(dot, known) : NULL;
    if (path)
        PyErr_Format(PyExc_RuntimeError, "Node referenced nonexistent target %U", path);
    Py_XDECREF(dot);
    Py_XDECREF(known);
    Py_XDECREF(path);
    return NULL;
}

static PyObject *do_fetch_attr(PyInterpreter *self, PyObject *target)
{
    PyObject *module = PyObject_GetAttr((PyObject *)self, NAME(self->st, module));
    PyObject *dot = module ? PyUnicode_FromString(".") : NULL;
    PyObject *parts = dot && need_str(target) ? PyUnicode_Split(target, dot, -1) : NULL;
    PyObject *found = parts ? attribute_at(module, parts) : NULL;
    Py_XDECREF(parts);
    Py_XDECREF(dot);
    Py_XDECREF(module);
    return found;
}

static int find_steps(PyInterpreter *self, uint32_t *steps);

static PyObject *fetch(PyInterpreter *self, PyObject *target)
{
    uint32_t steps;
    if (!need_str(target) || find_steps(self, &steps) < 0)
        return NULL;
    return HAS(steps, fetch_attr)
               ? call_step(self, NAME(self->st, fetch_attr), target, NULL, NULL)
               : do_fetch_attr(self, target);
}

/* ---- the six opcodes ----------------------------------------------------------------------- */

/* What an opcode does: `args` is a tuple, `kwargs` a dict. */
typedef PyObject *op_fn(PyInterpreter *self, PyObject *target, PyObject *args, PyObject *kwargs);

/* Without an input left there is the default; and for **kwargs an empty dict. */
static PyObject *without_input(PyObject *target, PyObject *args)
{
    if (PyErr_Occurred())
        return NULL;
    if (PyTuple_GET_SIZE(args) > 0)
        return Py_NewRef(PyTuple_GET_ITEM(args, 0));
    PyErr_Format(PyExc_RuntimeError, "Expected positional argument for parameter %U, but one was "
                 "not passed in!", target);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyException_SetCause(value, PyObject_CallNoArgs(PyExc_StopIteration));
    PyErr_Restore(type, value, traceback);
    return NULL;
}

static PyObject *rest_of_inputs(PyObject *inputs, bool keywords)
{
    PyObject *rest = PySequence_List(inputs);
    if (rest && keywords && PyList_GET_SIZE(rest) == 0)
        Py_SETREF(rest, PyDict_New());
    return rest;
}

static PyObject *do_placeholder(PyInterpreter *self, PyObject *target, PyObject *args,
                                PyObject *kwargs)
{
    (void)kwargs;
    if (!need_str(target))
        return NULL;
    PyObject *inputs = PyObject_GetAttr((PyObject *)self, NAME(self->st, args_iter));
    if (!inputs)
        return NULL;
    PyObject *value;
    Py_ssize_t size = PyUnicode_GET_LENGTH(target);
    if (size > 0 && PyUnicode_READ_CHAR(target, 0) == '*') {
        value = rest_of_inputs(inputs, size > 1 && PyUnicode_READ_CHAR(target, 1) == '*');
    } else {
        value = PyIter_Next(inputs);
        if (!value)
            value = without_input(target, args);
    }
    Py_DECREF(inputs);
    return value;
}

static PyObject *do_get_attr(PyInterpreter *self, PyObject *target, PyObject *args,
                             PyObject *kwargs)
{
    (void)args;
    (void)kwargs;
    return fetch(self, target);
}

static PyObject *call(PyObject *callable, PyObject *args, PyObject *kwargs)
{
    return PyObject_Call(callable, args, PyDict_GET_SIZE(kwargs) ? kwargs : NULL);
}

static bool has_region(module_state *st, PyObject *args, PyObject *kwargs)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        if (is_graph(st, PyTuple_GET_ITEM(args, i)))
            return true;
    while (PyDict_Next(kwargs, &at, &key, &value))
        if (is_graph(st, value))
            return true;
    return false;
}

static PyObject *map_region(PyInterpreter *self, PyObject *value)
{
    return is_graph(self->st, value) ? call_step(self, NAME(self->st, _region), value, NULL, NULL)
                                     : Py_NewRef(value);
}

static PyObject *map_positional(PyInterpreter *self, PyObject *args)
{
    PyObject *mapped = PyTuple_New(PyTuple_GET_SIZE(args));
    for (Py_ssize_t i = 0; mapped && i < PyTuple_GET_SIZE(args); i++) {
        PyObject *value = map_region(self, PyTuple_GET_ITEM(args, i));
        if (value)
            PyTuple_SET_ITEM(mapped, i, value);
        else
            Py_CLEAR(mapped);
    }
    return mapped;
}

static PyObject *map_named(PyInterpreter *self, PyObject *kwargs)
{
    PyObject *mapped = PyDict_New();
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (mapped && PyDict_Next(kwargs, &at, &key, &value)) {
        PyObject *now = map_region(self, value);
        if (!now || PyDict_SetItem(mapped, key, now) < 0)
            Py_CLEAR(mapped);
        Py_XDECREF(now);
    }
    return mapped;
}

/* The arguments of a function as it gets them: self._region says what a Graph among them is. The
 * others stay the objects that they are: a region may change a list that it is given. */
static bool map_regions(PyInterpreter *self, PyObject **args, PyObject **kwargs)
{
    bool some = has_region(self->st, *args, *kwargs);
    *args = some ? map_positional(self, *args) : Py_NewRef(*args);
    *kwargs = some && *args ? map_named(self, *kwargs) : Py_NewRef(*kwargs);
    if (*args && *kwargs)
        return true;
    Py_CLEAR(*args);
    Py_CLEAR(*kwargs);
    return false;
}

static PyObject *do_call_function(PyInterpreter *self, PyObject *target, PyObject *args,
                                  PyObject *kwargs)
{
    if (PyUnicode_Check(target) && !is_name(self->st, target)) {
        PyErr_SetString(PyExc_AssertionError, "target should not be a string for call_function");
        return NULL;
    }
    if (!map_regions(self, &args, &kwargs))
        return NULL;
    PyObject *result = call(target, args, kwargs);
    Py_DECREF(args);
    Py_DECREF(kwargs);
    return result;
}

static PyObject *do_call_module(PyInterpreter *self, PyObject *target, PyObject *args,
                                PyObject *kwargs)
{
    PyObject *module = fetch(self, target);
    PyObject *result = module ? call(module, args, kwargs) : NULL;
    Py_XDECREF(module);
    return result;
}

static PyObject *do_call_method(PyInterpreter *self, PyObject *target, PyObject *args,
                                PyObject *kwargs)
{
    (void)self;
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (!need_str(target))
        return NULL;
    if (n == 0) {
        PyErr_SetString(PyExc_ValueError,
                        "not enough values to unpack (expected at least 1, got 0)");
        return NULL;
    }
    PyObject *const *items = &PyTuple_GET_ITEM(args, 0);
    if (PyDict_GET_SIZE(kwargs) == 0)
        return PyObject_VectorcallMethod(target, items, (size_t)n, NULL);
    PyObject *method = PyObject_GetAttr(items[0], target);
    PyObject *result = NULL;
    if (method)
        result = PyObject_VectorcallDict(method, items + 1, (size_t)n - 1, kwargs);
    Py_XDECREF(method);
    return result;
}

static PyObject *do_output(PyInterpreter *self, PyObject *target, PyObject *args, PyObject *kwargs)
{
    (void)self;
    (void)target;
    (void)kwargs;
    return PySequence_GetItem(args, 0);
}

static op_fn *const op_fns[CFX_OPCODE_COUNT] = {
    do_placeholder, do_get_attr, do_call_function, do_call_module, do_call_method, do_output,
};

/* ---- arguments ----------------------------------------------------------------------------- */

typedef struct lookup {
    module_state *st;
    PyObject *env;
    PyObject *node;  /* whose arguments they are */
} lookup;

static PyObject *value_of(void *ctx, PyObject *leaf)
{
    const lookup *look = ctx;
    if (!is_node(look->st, leaf))
        return Py_NewRef(leaf);
    PyObject *value = PyDict_GetItemWithError(look->env, leaf);
    if (value)
        return Py_NewRef(value);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_RuntimeError, "Node %S referenced nonexistent value %S! Run "
                     "Graph.lint() to diagnose such issues", look->node, leaf);
    return NULL;
}

/* Whether a call may keep a list or dict that is written down in its arguments, and the program
 * write to it later: then the call gets an ordinary one, new in each run, as generated code has it.
 * What takes anything may keep it; so does what is not in the operator table; and `a + [[0]]` keeps
 * what is in a list. What a region gives is written to outside of it. */
static bool may_keep(void *ctx, bool inside)
{
    const lookup *look = ctx;
    const cfx_node *n = ((PyNode *)look->node)->n;
    const cfx_operator op = cfx_node_operator(n);
    cfx_schema_param param;
    if (cfx_node_op(n) == CFX_OP_PLACEHOLDER || cfx_node_op(n) == CFX_OP_OUTPUT)
        return cfx_node_op(n) == CFX_OP_OUTPUT && cfx_graph_parent(cfx_node_graph(n));
    if (inside || !op)
        return true;
    for (size_t i = 0; cfx_operator_param(op, i, &param); i++)
        if (param.writes || strncmp(param.type, "Any", 3) == 0)
            return true;
    return false;
}

/* node.args and node.kwargs with values in the place of nodes. */
static bool find_arguments(const lookup *look, PyObject **args, PyObject **kwargs)
{
    PyNode *node = (PyNode *)look->node;
    PyObject *given = node_get_args(node, NULL);
    PyObject *named = given ? node_get_kwargs(node, NULL) : NULL;
    *args = named ? map_arguments(look->st, given, value_of, may_keep, (void *)look) : NULL;
    *kwargs = NULL;
    if (*args)
        *kwargs = PyDict_GET_SIZE(named)
                      ? map_arguments(look->st, named, value_of, may_keep, (void *)look)
                      : Py_NewRef(named);
    if (!*kwargs)
        Py_CLEAR(*args);
    Py_XDECREF(given);
    Py_XDECREF(named);
    return *args != NULL;
}

/* The same where map_nodes_to_values is overridden. */
static bool map_overridden(PyInterpreter *self, PyNode *node, PyObject **args, PyObject **kwargs)
{
    PyObject *name = NAME(self->st, map_nodes_to_values);
    PyObject *given = node_get_args(node, NULL);
    PyObject *named = given ? node_get_kwargs(node, NULL) : NULL;
    *args = named ? call_step(self, name, given, (PyObject *)node, NULL) : NULL;
    *kwargs = *args ? call_step(self, name, named, (PyObject *)node, NULL) : NULL;
    if (!*kwargs)
        Py_CLEAR(*args);
    Py_XDECREF(given);
    Py_XDECREF(named);
    return *args != NULL;
}

static bool default_arguments(PyInterpreter *self, PyNode *node, uint32_t steps, PyObject **args,
                              PyObject **kwargs)
{
    if (HAS(steps, map_nodes_to_values))
        return map_overridden(self, node, args, kwargs);
    lookup look = {self->st, get_env(self), (PyObject *)node};
    bool found = look.env && find_arguments(&look, args, kwargs);
    Py_XDECREF(look.env);
    return found;
}

static bool fetch_arguments(PyInterpreter *self, PyNode *node, uint32_t steps, PyObject **args,
                            PyObject **kwargs)
{
    if (!HAS(steps, fetch_args_kwargs_from_env))
        return default_arguments(self, node, steps, args, kwargs);
    PyObject *name = NAME(self->st, fetch_args_kwargs_from_env);
    PyObject *pair = call_step(self, name, (PyObject *)node, NULL, NULL);
    bool fine = pair && PyTuple_Check(pair) && PyArg_ParseTuple(pair, "OO", args, kwargs);
    if (fine) {
        Py_INCREF(*args);
        Py_INCREF(*kwargs);
    } else if (pair && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_AssertionError, "fetch_args_kwargs_from_env must return a pair");
    }
    Py_XDECREF(pair);
    return fine;
}

/* ---- one node ------------------------------------------------------------------------------ */

static bool are_arguments(PyObject *args, PyObject *kwargs)
{
    bool fine = PyTuple_Check(args) && PyDict_Check(kwargs);
    if (!fine)
        PyErr_Format(PyExc_AssertionError, "the arguments of a node must be a tuple and a dict, "
                     "got %R and %R", (PyObject *)Py_TYPE(args), (PyObject *)Py_TYPE(kwargs));
    return fine;
}

static PyObject *run_op(PyInterpreter *self, PyNode *node, uint32_t steps)
{
    PyObject *args = NULL;
    PyObject *kwargs = NULL;
    PyObject *result = NULL;
    if (!fetch_arguments(self, node, steps, &args, &kwargs))
        return NULL;
    if (are_arguments(args, kwargs)) {
        cfx_opcode op = cfx_node_op(node->n);
        PyObject *target = Py_NewRef(node->target);
        if (steps >> op & 1u)
            result = call_step(self, PyTuple_GET_ITEM(self->st->step_names, op), target, args,
                               kwargs);
        else
            result = op_fns[op](self, target, args, kwargs);
        Py_DECREF(target);
    }
    Py_DECREF(args);
    Py_DECREF(kwargs);
    return result;
}

/* Ends a `with` block whose body gave `result`, or NULL with an exception. */
static PyObject *leave(PyObject *manager, PyObject *result)
{
    PyObject *type = NULL;
    PyObject *value = NULL;
    PyObject *traceback = NULL;
    if (!result) {
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        if (traceback)
            PyException_SetTraceback(value, traceback);
    }
    PyObject *done = PyObject_CallMethod(manager, "__exit__", "OOO", type ? type : Py_None,
                                         value ? value : Py_None,
                                         traceback ? traceback : Py_None);
    int silenced = done ? PyObject_IsTrue(done) : -1;
    Py_XDECREF(done);
    if (result && silenced >= 0)
        return result;
    Py_XDECREF(result);
    if (silenced == 0) {
        PyErr_Restore(type, value, traceback);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return silenced > 0 ? Py_NewRef(Py_None) : NULL;
}

/* _set_current_node is overridden. */
static PyObject *run_inside(PyInterpreter *self, PyNode *node, uint32_t steps)
{
    PyObject *name = NAME(self->st, _set_current_node);
    PyObject *manager = call_step(self, name, (PyObject *)node, NULL, NULL);
    PyObject *entered = manager ? PyObject_CallMethod(manager, "__enter__", NULL) : NULL;
    PyObject *result = NULL;
    if (entered)
        result = leave(manager, run_op(self, node, steps));
    Py_XDECREF(entered);
    Py_XDECREF(manager);
    return result;
}

/* What set_current_meta calls the pass: a new reference. */
static PyObject *pass_name(PyInterpreter *self)
{
    PyObject *class = PyType_GetName(Py_TYPE(self));
    PyObject *name = class ? PyUnicode_FromFormat("Interpreter_%U", class) : NULL;
    Py_XDECREF(class);
    return name;
}

/* Some thread preserves metadata, perhaps this one. */
static PyObject *run_preserving(PyInterpreter *self, PyNode *node, uint32_t steps)
{
    PyObject *pass = pass_name(self);
    PyObject *before = pass ? meta_enter(self->st, node, pass) : NULL;
    PyObject *result = before ? run_op(self, node, steps) : NULL;
    if (before)
        meta_leave(self->st, before);
    Py_XDECREF(before);
    Py_XDECREF(pass);
    return result;
}

static PyObject *do_run_node(PyInterpreter *self, PyNode *node, uint32_t steps)
{
    if (HAS(steps, _set_current_node))
        return run_inside(self, node, steps);
    return self->st->node_meta ? run_preserving(self, node, steps) : run_op(self, node, steps);
}

/* ---- the last uses of values --------------------------------------------------------------- */

static cfx_status note_last_use(void *ctx, cfx_node *user, cfx_node *def)
{
    PyGraph *graph = ctx;
    graph->last_uses[graph->n_last_uses++] = (last_use){user, def};
    return CFX_OK;
}

/* The plan is kept with the graph, until the graph changes. */
static int plan_last_uses(PyGraph *graph)
{
    uint64_t version = cfx_graph_version(graph->g);
    if (graph->last_uses && graph->planned_version == version)
        return 0;
    PyMem_Free(graph->last_uses);
    graph->n_last_uses = 0;
    graph->last_uses = PyMem_New(last_use, cfx_graph_size(graph->g) + 1);
    if (!graph->last_uses) {
        PyErr_NoMemory();
        return -1;
    }
    graph->planned_version = version;
    cfx_graph_each_last_use(graph->g, note_last_use, graph);
    return 0;
}

static int add_last_use(PyObject *dict, PyObject *user, PyObject *def)
{
    PyObject *list = PyDict_GetItemWithError(dict, user);
    if (list)
        return PyList_Append(list, def);
    list = PyErr_Occurred() ? NULL : Py_BuildValue("[O]", def);
    int failed = list ? PyDict_SetItem(dict, user, list) : -1;
    Py_XDECREF(list);
    return failed;
}

/* ---- a run --------------------------------------------------------------------------------- */

typedef struct run {
    PyInterpreter *self;
    module_state *st;
    PyGraph *graph;
    PyObject *env;
    PyObject *own_plan;  /* user_to_last_uses, if somebody has read or set it; or NULL */
    uint64_t version;    /* of the graph when the run began */
    size_t left;         /* entries of the plan that are still to come: it runs backwards */
    bool collect;
} run;

static int drop(run *r, cfx_node *def)
{
    PyObject *node = cfx_node_binding(def);
    if (!node || PyDict_DelItem(r->env, node) == 0)
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_KeyError))
        return -1;
    PyErr_Clear();  /* somebody else has dropped it */
    return 0;
}

/* A user's own plan. */
static int drop_listed(run *r, PyObject *user)
{
    PyObject *list = PyDict_GetItemWithError(r->own_plan, user);
    PyObject *defs = list ? PySequence_Tuple(list) : NULL;
    int failed = PyErr_Occurred() ? -1 : 0;
    for (Py_ssize_t i = 0; defs && !failed && i < PyTuple_GET_SIZE(defs); i++)
        failed = PyObject_DelItem(r->env, PyTuple_GET_ITEM(defs, i));
    Py_XDECREF(defs);
    return failed;
}

/* The graph has changed since the run began: the uses are looked at one by one. */
static int drop_unused(run *r, cfx_node *user)
{
    int failed = 0;
    for (size_t i = 0; !failed && i < cfx_node_num_inputs(user); i++) {
        cfx_node *def = cfx_node_input(user, i);
        const cfx_use *use = cfx_node_first_use(def);
        while (use && !cfx_node_before(user, cfx_use_user(use)))
            use = cfx_use_next(use);
        failed = use ? 0 : drop(r, def);
    }
    return failed;
}

/* Lets go of what `n` was the last to use; of a node that did not run, only passes its part of the
 * plan by. */
static int drop_dead(run *r, cfx_node *n, PyObject *node, bool ran)
{
    if (!r->collect)
        return 0;
    if (r->own_plan)
        return ran ? drop_listed(r, node) : 0;
    if (cfx_graph_version(r->graph->g) != r->version)
        return ran && !cfx_node_is_erased(n) ? drop_unused(r, n) : 0;
    int failed = 0;
    while (!failed && cfx_graph_version(r->graph->g) == r->version && r->left > 0 &&
           r->graph->last_uses[r->left - 1].user == n) {
        r->left--;
        failed = ran ? drop(r, r->graph->last_uses[r->left].def) : 0;
    }
    return failed;
}

/* Python code that has the interpreter may have given it another env. */
static int refresh_env(run *r)
{
    if (!(r->self->steps & ~RECORDS))
        return 0;
    PyObject *env = get_env(r->self);
    if (env)
        Py_SETREF(r->env, env);
    return env ? 0 : -1;
}

/* Python adds the node and the user's line to what an exception says; or raises another. */
static void explain(run *r, PyObject *node)
{
    PyObject *type, *value, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback)
        PyException_SetTraceback(value, traceback);
    PyObject *done = call_step(r->self, NAME(r->st, _explain), node, value, NULL);
    if (done) {
        PyErr_Restore(type, value, traceback);
        Py_DECREF(done);
        return;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* ---- lists that grow ----------------------------------------------------------------------- */

/* `items + [x]` copies the list, and in a loop all rounds together would take a time that is
 * quadratic in their number. A list that nobody else has grows in place instead, as in the code
 * that is generated of the graph: `n` is the last to use it, and `env` alone refers to it. */

static bool is_operator_add(PyObject *target)
{
    return PyCFunction_Check(target) &&
           strcmp(((PyCFunctionObject *)target)->m_ml->ml_name, "add") == 0 &&
           ((PyCFunctionObject *)target)->m_module &&
           PyUnicode_Check(((PyCFunctionObject *)target)->m_module) &&
           PyUnicode_CompareWithASCIIString(((PyCFunctionObject *)target)->m_module,
                                            "_operator") == 0;
}

static bool dies_here(const run *r, const cfx_node *n, const cfx_node *def)
{
    if (!r->collect || r->own_plan || cfx_graph_version(r->graph->g) != r->version)
        return false;
    for (size_t i = r->left; i > 0 && r->graph->last_uses[i - 1].user == n; i--)
        if (r->graph->last_uses[i - 1].def == def)
            return true;
    return false;
}

/* The list that the node may let grow: borrowed from env, or NULL. */
static PyObject *growing_list(run *r, PyNode *node)
{
    if (r->self->steps || r->st->node_meta || cfx_node_num_args(node->n) != 2 ||
        cfx_node_op(node->n) != CFX_OP_CALL_FUNCTION || !is_operator_add(node->target))
        return NULL;
    const cfx_value first = cfx_node_arg(node->n, 0);
    if (first.kind != CFX_KIND_NODE || !dies_here(r, node->n, first.as.node))
        return NULL;
    PyObject *key = cfx_node_binding(first.as.node);
    PyObject *list = key ? PyDict_GetItemWithError(r->env, key) : NULL;
    return list && PyList_CheckExact(list) && Py_REFCNT(list) == 1 ? list : NULL;
}

/* The node's value, the list having grown; NULL without an exception if it is to be run as any
 * other. */
static PyObject *run_growing(run *r, PyObject *node)
{
    PyObject *args = NULL;
    PyObject *kwargs = NULL;
    PyObject *result = NULL;
    const lookup look = {r->st, r->env, node};
    PyObject *list = growing_list(r, (PyNode *)node);
    if (!list || !find_arguments(&look, &args, &kwargs))
        return NULL;
    PyObject *more = PyTuple_GET_ITEM(args, 1);
    const Py_ssize_t size = PyList_GET_SIZE(list);
    const bool plain = PyList_CheckExact(more) ||  /* or one that is written down in the graph */
                       Py_TYPE(more) == (PyTypeObject *)r->st->ImmutableListType;
    if (plain && more != list && Py_REFCNT(list) == 2 && PyDict_GET_SIZE(kwargs) == 0 &&
        PyList_SetSlice(list, size, size, more) == 0)
        result = Py_NewRef(list);
    Py_DECREF(args);
    Py_DECREF(kwargs);
    return result;
}

/* Runs one node and puts its value into env: the value, borrowed from there. */
static PyObject *run_one(run *r, PyObject *node)
{
    PyInterpreter *self = r->self;
    PyObject *value = run_growing(r, node);
    if (!value && !PyErr_Occurred())
        value = HAS(self->steps, run_node)
                    ? call_step(self, NAME(r->st, run_node), node, NULL, NULL)
                : self->steps & RECORDS ? run_and_record((PyObject *)self, node)
                                        : do_run_node(self, (PyNode *)node, self->steps);
    if (!value) {
        explain(r, node);
        return NULL;
    }
    int failed = refresh_env(r) < 0 || PyDict_SetItem(r->env, node, value) < 0;
    Py_DECREF(value);
    return failed ? NULL : value;
}

/* 1 at the output, which goes to *result; -1 with an exception. */
static int visit(run *r, cfx_node *n, PyObject *node, PyObject **result)
{
    if (PyErr_CheckSignals() < 0)  /* first, because handlers run code */
        return -1;
    PyObject *value = PyDict_GetItemWithError(r->env, node);
    bool ran = !value;
    if (PyErr_Occurred() || (ran && !(value = run_one(r, node))))
        return -1;
    Py_INCREF(value);
    int failed = drop_dead(r, n, node, ran);
    if (failed < 0 || cfx_node_op(n) != CFX_OP_OUTPUT) {
        Py_DECREF(value);
        return failed;
    }
    *result = value;
    return 1;
}

/* Leaves the context that `n` would leave, if the run has entered it: the value that `n` takes is
 * there then. A proxy of a Transformer is none. */
static void leave_context(run *r, cfx_node *n)
{
    cfx_node *opens;
    const cfx_context_kind kind = cfx_node_leaves_context(n, &opens);
    PyObject *key = kind ? node_wrap(r->graph, opens) : NULL;
    PyObject *value = key ? PyDict_GetItemWithError(r->env, key) : NULL;
    PyTypeObject *proxy = (PyTypeObject *)r->st->ProxyType;
    const bool is_real = value && (kind == CFX_CONTEXT_GRAD ? PyBool_Check(value)
                                                            : !PyObject_TypeCheck(value, proxy));
    PyObject *node = is_real ? node_wrap(r->graph, n) : NULL;
    PyObject *target = node ? PyObject_GetAttrString(node, "target") : NULL;
    PyObject *done = target ? PyObject_CallOneArg(target, value) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(target);
    Py_XDECREF(node);
    Py_XDECREF(key);
}

/* The node `n` has failed: leaves the contexts around it, the innermost first, as `with` does. */
static void leave_contexts(run *r, cfx_node *n)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    while (!cfx_node_is_erased(n) && (n = cfx_node_next(n)) != NULL) {
        leave_context(r, n);
        PyErr_Clear();  /* what the run has raised is what counts */
    }
    PyErr_Restore(type, value, traceback);
}

/* The output's value, or None if there is none; *found says which. */
static PyObject *run_nodes(run *r, bool *found)
{
    PyObject *result = NULL;
    int done = 0;
    cfx_iter it;
    cfx_iter_begin(&it, r->graph->g, false);
    for (cfx_node *n; done == 0 && (n = cfx_iter_next(&it)) != NULL;) {
        PyObject *node = node_wrap(r->graph, n);
        done = node ? visit(r, n, node, &result) : -1;
        if (done < 0)
            leave_contexts(r, n);
        Py_XDECREF(node);
    }
    cfx_iter_end(&it);
    *found = done > 0;
    return done == 0 ? Py_NewRef(Py_None) : result;
}

static bool is_native(PyInterpreter *self, int step, PyCFunction function);
static PyCFunction step_function(int step);

static int find_steps(PyInterpreter *self, uint32_t *steps)
{
    *steps = self->steps;
    if (self->runs > 0)
        return 0;
    *steps = 0;
    for (int i = 0; i < N_STEPS; i++)
        *steps |= is_native(self, i, step_function(i)) ? 0 : 1u << i;
    if (HAS(*steps, run_node) && is_native(self, NAME_run_node, run_and_record_def.ml_meth))
        *steps ^= (1u << NAME_run_node) | RECORDS;
    return PyErr_Occurred() ? -1 : 0;
}

/* The plan somebody has read or set, a new reference; or NULL, perhaps with an exception. */
static PyObject *own_plan(PyInterpreter *self, module_state *st)
{
    PyObject *dict = PyObject_GenericGetDict((PyObject *)self, NULL);
    PyObject *plan = NULL;
    if (dict)
        plan = Py_XNewRef(PyDict_GetItemWithError(dict, NAME(st, user_to_last_uses)));
    Py_XDECREF(dict);
    if (!plan || PyDict_Check(plan))
        return plan;
    PyErr_SetString(PyExc_TypeError, "user_to_last_uses must be a dict");
    Py_DECREF(plan);
    return NULL;
}

static bool begin_run(run *r)
{
    PyObject *graph = PyObject_GetAttr((PyObject *)r->self, NAME(r->st, graph));
    if (graph && !is_graph(r->st, graph)) {
        PyErr_Format(PyExc_TypeError, "an Interpreter runs a cfx.Graph, not %R",
                     (PyObject *)Py_TYPE(graph));
        Py_CLEAR(graph);
    }
    r->graph = (PyGraph *)graph;
    r->env = graph ? get_env(r->self) : NULL;
    if (!r->env)
        return false;
    PyObject *flag = PyObject_GetAttr((PyObject *)r->self, NAME(r->st, garbage_collect_values));
    int collect = flag ? PyObject_IsTrue(flag) : -1;
    Py_XDECREF(flag);
    r->collect = collect > 0;
    r->own_plan = r->collect ? own_plan(r->self, r->st) : NULL;
    if (collect < 0 || PyErr_Occurred() || plan_last_uses(r->graph) < 0)
        return false;
    r->version = cfx_graph_version(r->graph->g);
    r->left = r->graph->n_last_uses;
    return true;
}

PyDoc_STRVAR(run_doc, "_run($self, process_outputs, /)\n--\n\n"
"Runs the nodes of self.graph that are not in self.env; the value of the output, or None.");

static PyObject *interpreter_run(PyInterpreter *self, PyObject *process)
{
    run r = {.self = self, .st = self->st};
    PyObject *result = NULL;
    bool found = false;
    uint32_t steps;
    if (begin_run(&r) && find_steps(self, &steps) == 0) {
        self->steps = steps;
        self->runs++;
        result = run_nodes(&r, &found);
        self->runs--;
    }
    if (result && found && process == Py_True)
        Py_SETREF(result, PyObject_CallMethodOneArg((PyObject *)r.graph,
                                                    NAME(r.st, process_outputs), result));
    Py_XDECREF(r.own_plan);
    Py_XDECREF(r.env);
    Py_XDECREF((PyObject *)r.graph);
    return result;
}

/* ---- methods ------------------------------------------------------------------------------- */

#define METHOD_ARGS                                                                                \
    PyInterpreter *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames

/* The method of an opcode: arguments that came from Python may be any sequence and mapping. */
static PyObject *op_method(METHOD_ARGS, cfx_opcode op)
{
    static const char *const names[] = {"target", "args", "kwargs"};
    const arg_spec spec = {cfx_opcode_name(op), names, 3, 3, 3};
    PyObject *in[3];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    PyObject *result = NULL;
    PyObject *given = PySequence_Tuple(in[1]);
    PyObject *named = PyDict_Check(in[2]) ? Py_NewRef(in[2])
                                          : PyObject_CallOneArg((PyObject *)&PyDict_Type, in[2]);
    if (given && named)
        result = op_fns[op](self, in[0], given, named);
    Py_XDECREF(given);
    Py_XDECREF(named);
    return result;
}

#define OP_METHOD(name, op)                                                                        \
    static PyObject *name(METHOD_ARGS) { return op_method(self, args, nargs, kwnames, op); }
OP_METHOD(placeholder, CFX_OP_PLACEHOLDER)
OP_METHOD(get_attr, CFX_OP_GET_ATTR)
OP_METHOD(call_function, CFX_OP_CALL_FUNCTION)
OP_METHOD(call_module, CFX_OP_CALL_MODULE)
OP_METHOD(call_method, CFX_OP_CALL_METHOD)
OP_METHOD(output, CFX_OP_OUTPUT)

/* The one argument of a method that takes a node, borrowed; NULL with an exception. */
static PyObject *take_node(const char *function, const char *name, METHOD_ARGS)
{
    const arg_spec spec = {function, &name, 1, 1, 1};
    PyObject *node;
    if (!take_args(&spec, args, nargs, kwnames, &node))
        return NULL;
    if (is_node(self->st, node))
        return node;
    PyErr_Format(PyExc_TypeError, "%s() expects a Node, got %R", function,
                 (PyObject *)Py_TYPE(node));
    return NULL;
}

module_state *interpreter_state(PyObject *self) { return ((PyInterpreter *)self)->st; }

PyObject *interpreter_run_node(PyObject *self, PyObject *node)
{
    uint32_t steps;
    if (find_steps((PyInterpreter *)self, &steps) < 0)
        return NULL;
    return do_run_node((PyInterpreter *)self, (PyNode *)node, steps);
}

static PyObject *run_node(METHOD_ARGS)
{
    PyObject *node = take_node("run_node", "n", self, args, nargs, kwnames);
    return node ? interpreter_run_node((PyObject *)self, node) : NULL;
}

static PyObject *fetch_attr(METHOD_ARGS)
{
    static const char *const names[] = {"target"};
    static const arg_spec spec = {"fetch_attr", names, 1, 1, 1};
    PyObject *target;
    return take_args(&spec, args, nargs, kwnames, &target) ? do_fetch_attr(self, target) : NULL;
}

static PyObject *fetch_args_kwargs_from_env(METHOD_ARGS)
{
    uint32_t steps;
    PyObject *given, *named;
    PyObject *node = take_node("fetch_args_kwargs_from_env", "n", self, args, nargs, kwnames);
    if (!node || find_steps(self, &steps) < 0 ||
        !default_arguments(self, (PyNode *)node, steps, &given, &named))
        return NULL;
    return Py_BuildValue("(NN)", given, named);
}

static PyObject *map_nodes_to_values(METHOD_ARGS)
{
    static const char *const names[] = {"args", "n"};
    static const arg_spec spec = {"map_nodes_to_values", names, 2, 2, 2};
    PyObject *in[2];
    if (!take_args(&spec, args, nargs, kwnames, in))
        return NULL;
    lookup look = {self->st, get_env(self), in[1]};
    PyObject *mapped = look.env ? map_tree(look.st, in[0], value_of, &look) : NULL;
    Py_XDECREF(look.env);
    return mapped;
}

static PyObject *_set_current_node(METHOD_ARGS)
{
    PyObject *node = take_node("_set_current_node", "node", self, args, nargs, kwnames);
    PyObject *traceback = node ? PyImport_ImportModule("cfx.traceback") : NULL;
    PyObject *pass = traceback ? pass_name(self) : NULL;
    PyObject *in[] = {traceback, node, pass};
    PyObject *manager = NULL;
    if (pass)
        manager = PyObject_VectorcallMethod(NAME(self->st, set_current_meta), in, 3, NULL);
    Py_XDECREF(pass);
    Py_XDECREF(traceback);
    return manager;
}

/* {user: [nodes whose values die with it]}, as torch.fx keeps it. */
static PyObject *last_uses(PyInterpreter *self, PyObject *unused)
{
    (void)unused;
    run r = {.self = self, .st = self->st};
    PyObject *dict = begin_run(&r) ? PyDict_New() : NULL;
    for (size_t i = 0; dict && i < r.left; i++) {
        const last_use *at = &r.graph->last_uses[i];
        PyObject *user = node_wrap(r.graph, at->user);
        PyObject *def = user ? node_wrap(r.graph, at->def) : NULL;
        if (!def || add_last_use(dict, user, def) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(user);
        Py_XDECREF(def);
    }
    Py_XDECREF(r.own_plan);
    Py_XDECREF(r.env);
    Py_XDECREF((PyObject *)r.graph);
    return dict;
}

static PyObject *interpreter_map_regions(PyInterpreter *self, PyObject *in)
{
    PyObject *args;
    PyObject *kwargs;
    if (!PyArg_ParseTuple(in, "OO!:_map_regions", &args, &PyDict_Type, &kwargs))
        return NULL;
    PyObject *given = PySequence_Tuple(args);
    args = given;
    bool mapped = given && map_regions(self, &args, &kwargs);
    Py_XDECREF(given);
    return mapped ? Py_BuildValue("(NN)", args, kwargs) : NULL;
}

static PyMethodDef methods[] = {
    /* the steps, in their order */
    {"placeholder", FAST(placeholder),
     SIGNED("placeholder($self, target, args, kwargs)",
            "The next input that was passed to run, or the default in args.")},
    {"get_attr", FAST(get_attr),
     SIGNED("get_attr($self, target, args, kwargs)", "What the path `target` leads to.")},
    {"call_function", FAST(call_function),
     SIGNED("call_function($self, target, args, kwargs)", "Calls `target`.")},
    {"call_module", FAST(call_module),
     SIGNED("call_module($self, target, args, kwargs)", "Calls the sub-module at `target`.")},
    {"call_method", FAST(call_method),
     SIGNED("call_method($self, target, args, kwargs)", "Calls the method `target` of args[0].")},
    {"output", FAST(output),
     SIGNED("output($self, target, args, kwargs)", "The value that the graph returns.")},
    {"run_node", FAST(run_node),
     SIGNED("run_node($self, n)", "Runs one node, whose inputs are in env; returns its value.")},
    {"fetch_attr", FAST(fetch_attr),
     SIGNED("fetch_attr($self, target)", "What the dotted path leads to, from self.module.")},
    {"fetch_args_kwargs_from_env", FAST(fetch_args_kwargs_from_env),
     SIGNED("fetch_args_kwargs_from_env($self, n)",
            "The arguments of a node, with values in the place of nodes.")},
    {"map_nodes_to_values", FAST(map_nodes_to_values),
     SIGNED("map_nodes_to_values($self, args, n)",
            "`args` with values in the place of nodes; `n` is whose they are.")},
    {"_set_current_node", FAST(_set_current_node),
     SIGNED("_set_current_node($self, node)",
            "A context in which new nodes get the metadata of this one.")},
    /* others */
    {"_run", (PyCFunction)interpreter_run, METH_O, run_doc},
    {"_last_uses", (PyCFunction)last_uses, METH_NOARGS, NULL},
    {"_map_regions", (PyCFunction)interpreter_map_regions, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyCFunction step_function(int step) { return methods[step].ml_meth; }

/* Whether a step is this function: not a subclass's, nor the object's own. */
static bool is_native(PyInterpreter *self, int step, PyCFunction function)
{
    PyObject *name = PyTuple_GET_ITEM(self->st->step_names, step);
    PyObject *method = PyObject_GetAttr((PyObject *)self, name);
    bool native = method && PyCFunction_Check(method) &&
                  PyCFunction_GET_FUNCTION(method) == function &&
                  PyCFunction_GET_SELF(method) == (PyObject *)self;
    Py_XDECREF(method);
    return native;
}

static PyType_Slot slots[] = {
    {Py_tp_new, interpreter_new},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec interpreter_spec = {
    .name = "cfx._core.Interpreter",
    .basicsize = sizeof(PyInterpreter),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
