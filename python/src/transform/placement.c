/* placement.c - parts of a graph on devices, for cfx.experimental.accelerator_partitioner. */
#include "graph/graph_methods.h"

#include <cfx/embed/placement.h>

/* ---- lists of numbers ---------------------------------------------------------------------- */

double *read_doubles(PyObject *list)
{
    if (!PyList_Check(list)) {
        PyErr_Format(PyExc_TypeError, "expected a list of numbers, got %R", Py_TYPE(list));
        return NULL;
    }
    const Py_ssize_t n = PyList_GET_SIZE(list);
    double *numbers = PyMem_Calloc((size_t)n + 1, sizeof *numbers);
    if (!numbers)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; numbers && i < n && i < PyList_GET_SIZE(list); i++) {
        numbers[i] = PyFloat_AsDouble(PyList_GET_ITEM(list, i));
        if (numbers[i] == -1 && PyErr_Occurred()) {
            PyMem_Free(numbers);
            return NULL;
        }
    }
    return numbers;
}

/* Of tuples (from, to, weight). */
static cfx_link *read_links(PyObject *list)
{
    const Py_ssize_t n = PyList_GET_SIZE(list);
    cfx_link *links = PyMem_Malloc(((size_t)n + 1) * sizeof *links);
    if (!links)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; links && i < n; i++) {
        PyObject *item = PyList_GET_ITEM(list, i);
        if (!PyTuple_Check(item) ||
            !PyArg_ParseTuple(item, "IId", &links[i].from, &links[i].to, &links[i].weight)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "expected tuples (from, to, weight)");
            PyMem_Free(links);
            return NULL;
        }
    }
    return links;
}

/* CFX_NO_PART as None. */
static PyObject *numbers_to_py(const uint32_t *numbers, size_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *item = numbers[i] == CFX_NO_PART ? Py_NewRef(Py_None)
                                                   : PyLong_FromUnsignedLong(numbers[i]);
        if (item)
            PyList_SET_ITEM(list, (Py_ssize_t)i, item);
        else
            Py_CLEAR(list);
    }
    return list;
}

static int numbers_from_py(PyObject *list, uint32_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        PyObject *item = PyList_GET_ITEM(list, (Py_ssize_t)i);
        numbers[i] = item == Py_None ? CFX_NO_PART : (uint32_t)PyLong_AsUnsignedLong(item);
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* ---- functions on links -------------------------------------------------------------------- */

static PyObject *longest_ways(const double *weights, size_t n, const cfx_link *links,
                              size_t n_links)
{
    cfx_error err = {0};
    PyObject *list = NULL;
    double *far = PyMem_Malloc((n + 1) * sizeof *far);
    if (!far)
        return PyErr_NoMemory();
    if (cfx_longest_paths(n, weights, links, n_links, far, NULL, NULL, &err) == CFX_OK)
        list = PyList_New((Py_ssize_t)n);
    else
        raise_cfx(&err);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *way = PyFloat_FromDouble(far[i]);
        if (way)
            PyList_SET_ITEM(list, (Py_ssize_t)i, way);
        else
            Py_CLEAR(list);
    }
    PyMem_Free(far);
    return list;
}

static PyObject *py_longest_ways(PyObject *module, PyObject *args)
{
    PyObject *weights, *links, *answer = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!:_longest_ways", &PyList_Type, &weights, &PyList_Type,
                          &links))
        return NULL;
    double *numbers = read_doubles(weights);
    cfx_link *core_links = numbers ? read_links(links) : NULL;
    if (core_links)
        answer = longest_ways(numbers, (size_t)PyList_GET_SIZE(weights), core_links,
                              (size_t)PyList_GET_SIZE(links));
    PyMem_Free(numbers);
    PyMem_Free(core_links);
    return answer;
}

static PyObject *fit_parts(const cfx_fit_options *fit)
{
    cfx_error err = {0};
    bool fits;
    PyObject *list = NULL;
    uint32_t *devices = PyMem_Malloc((fit->n_parts + 1) * sizeof *devices);
    if (!devices)
        PyErr_NoMemory();
    else if (cfx_devices_fit(fit, devices, &fits, NULL, &err) != CFX_OK)
        raise_cfx(&err);
    else
        list = numbers_to_py(devices, fit->n_parts);
    PyMem_Free(devices);
    return list ? Py_BuildValue("(NN)", PyBool_FromLong(fits), list) : NULL;
}

static PyObject *py_fit_parts(PyObject *module, PyObject *args)
{
    PyObject *memory, *sizes, *shared, *placed, *answer = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!O!:_fit_parts", &PyList_Type, &memory, &PyList_Type, &sizes,
                          &PyList_Type, &shared, &PyList_Type, &placed))
        return NULL;
    double *of_devices = read_doubles(memory);
    double *of_parts = of_devices ? read_doubles(sizes) : NULL;
    cfx_link *links = of_parts ? read_links(shared) : NULL;
    cfx_link *places = links ? read_links(placed) : NULL;
    if (places) {
        const cfx_fit_options fit = {of_devices, (size_t)PyList_GET_SIZE(memory),
                                     of_parts, (size_t)PyList_GET_SIZE(sizes),
                                     links, (size_t)PyList_GET_SIZE(shared),
                                     places, (size_t)PyList_GET_SIZE(placed)};
        answer = fit_parts(&fit);
    }
    PyMem_Free(of_devices);
    PyMem_Free(of_parts);
    PyMem_Free(links);
    PyMem_Free(places);
    return answer;
}

/* ---- the longest way through a set of nodes ------------------------------------------------ */

typedef struct path_job {
    PyObject *calls;     /* a list, in the order of the graph */
    PyObject *places;    /* {call: its place in the list} */
    double *memory, *computing, *weights, *far;
    uint32_t *before;
    cfx_link *links;
    size_t n, n_links, room;
} path_job;

static int is_leaf(const cfx_node *n)
{
    return cfx_node_op(n) == CFX_OP_PLACEHOLDER || cfx_node_op(n) == CFX_OP_GET_ATTR;
}

/* The two numbers of a NodeLatency. */
static int read_latency(path_job *job, size_t i, PyObject *mapping)
{
    PyObject *latency = PyObject_GetItem(mapping, PyList_GET_ITEM(job->calls, (Py_ssize_t)i));
    PyObject *pair = latency ? PySequence_Tuple(latency) : NULL;
    int good = pair && PyArg_ParseTuple(pair, "dd", &job->memory[i], &job->computing[i]);
    Py_XDECREF(latency);
    Py_XDECREF(pair);
    job->weights[i] = job->memory[i] > job->computing[i] ? job->memory[i] : job->computing[i];
    return good ? 0 : -1;
}

static int add_path_links(path_job *job, size_t i)
{
    PyNode *call = (PyNode *)PyList_GET_ITEM(job->calls, (Py_ssize_t)i);
    for (size_t k = 0; k < cfx_node_num_inputs(call->n) && job->n_links < job->room; k++) {
        PyObject *def = node_wrap(node_graph(call), cfx_node_input(call->n, k));
        PyObject *place = def ? PyDict_GetItemWithError(job->places, def) : NULL;
        Py_XDECREF(def);
        if (place)
            job->links[job->n_links++] =
                (cfx_link){(uint32_t)PyLong_AsUnsignedLong(place), (uint32_t)i, 0};
        else if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* Sorts the calls of a set, and counts what they read. */
static int take_calls(module_state *st, path_job *job, PyObject *set)
{
    PyObject *nodes = PySequence_List(set);
    job->calls = PyList_New(0);
    job->places = PyDict_New();
    int failed = nodes && job->calls && job->places ? 0 : -1;
    for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(nodes); i++) {
        PyObject *node = PyList_GET_ITEM(nodes, i);
        if (!is_node(st, node)) {
            PyErr_Format(PyExc_TypeError, "expected a Node, got %R", node);
            failed = -1;
        } else if (!is_leaf(((PyNode *)node)->n)) {
            job->room += cfx_node_num_inputs(((PyNode *)node)->n);
            failed = PyList_Append(job->calls, node);
        }
    }
    Py_XDECREF(nodes);
    if (failed || PyList_Sort(job->calls) < 0)
        return -1;
    job->n = (size_t)PyList_GET_SIZE(job->calls);
    for (size_t i = 0; i < job->n; i++) {
        PyObject *place = PyLong_FromSize_t(i);
        failed = place ? PyDict_SetItem(job->places, PyList_GET_ITEM(job->calls, (Py_ssize_t)i),
                                        place) : -1;
        Py_XDECREF(place);
        if (failed)
            return -1;
    }
    return 0;
}

static PyObject *find_path(path_job *job, PyObject *mapping)
{
    cfx_error err = {0};
    double memory = 0, computing = 0;
    uint32_t end = CFX_NO_PART;
    for (size_t i = 0; i < job->n; i++)
        if (read_latency(job, i, mapping) < 0 || add_path_links(job, i) < 0)
            return NULL;
    if (cfx_longest_paths(job->n, job->weights, job->links, job->n_links, job->far, job->before,
                          NULL, &err) != CFX_OK)
        return raise_cfx(&err);
    for (size_t i = 0; i < job->n; i++)
        if (end == CFX_NO_PART || job->far[i] > job->far[end])
            end = (uint32_t)i;
    const double overall = end == CFX_NO_PART ? 0 : job->far[end];
    for (; end != CFX_NO_PART; end = job->before[end]) {
        memory += job->memory[end];
        computing += job->computing[end];
    }
    return Py_BuildValue("(ddd)", memory, computing, overall);
}

static PyObject *py_critical_path(PyObject *module, PyObject *args)
{
    PyObject *set, *mapping, *answer = NULL;
    path_job job = {0};
    if (!PyArg_ParseTuple(args, "OO:_critical_path", &set, &mapping))
        return NULL;
    if (take_calls(PyModule_GetState(module), &job, set) == 0) {
        double *numbers = PyMem_Malloc((4 * job.n + 1) * sizeof *numbers);
        job.before = PyMem_Malloc((job.n + 1) * sizeof *job.before);
        job.links = PyMem_Malloc((job.room + 1) * sizeof *job.links);
        job.memory = numbers;
        job.computing = numbers + job.n;
        job.weights = numbers + 2 * job.n;
        job.far = numbers + 3 * job.n;
        answer = numbers && job.before && job.links ? find_path(&job, mapping) : PyErr_NoMemory();
        PyMem_Free(numbers);
        PyMem_Free(job.before);
        PyMem_Free(job.links);
    }
    Py_XDECREF(job.calls);
    Py_XDECREF(job.places);
    return answer;
}

/* ---- links between sets of nodes ----------------------------------------------------------- */

typedef struct linker {
    module_state *st;
    PyObject *owners;  /* {node: the number of the set that it is in} */
    PyObject *links;   /* {(from, to): bytes} */
    bool bytes;
} linker;

static int own(linker *l, PyObject *node, PyObject *number)
{
    if (!is_node(l->st, node)) {
        PyErr_Format(PyExc_TypeError, "expected a Node, got %R", node);
        return -1;
    }
    return is_leaf(((PyNode *)node)->n) ? 0 : PyDict_SetItem(l->owners, node, number);
}

/* node.size_bytes.output_size, or 0 if that is not asked for. */
static PyObject *bytes_of(const linker *l, PyObject *node)
{
    if (!l->bytes)
        return PyLong_FromLong(0);
    PyObject *sizes = PyObject_GetAttrString(node, "size_bytes");
    PyObject *size = sizes ? PyObject_GetAttrString(sizes, "output_size") : NULL;
    Py_XDECREF(sizes);
    return size;
}

static int add_link(linker *l, PyObject *from, PyObject *to, PyObject *def)
{
    PyObject *key = PyTuple_Pack(2, from, to);
    PyObject *size = key ? bytes_of(l, def) : NULL;
    PyObject *old = size ? PyDict_GetItemWithError(l->links, key) : NULL;
    PyObject *sum = old ? PyNumber_Add(old, size) : Py_XNewRef(size);
    int failed = sum && !PyErr_Occurred() ? PyDict_SetItem(l->links, key, sum) : -1;
    Py_XDECREF(sum);
    Py_XDECREF(size);
    Py_XDECREF(key);
    return failed;
}

static int link_node(linker *l, PyObject *node, PyObject *to)
{
    const cfx_node *n = ((PyNode *)node)->n;
    for (size_t i = 0; i < cfx_node_num_inputs(n); i++) {
        PyObject *def = node_wrap(node_graph((PyNode *)node), cfx_node_input(n, i));
        PyObject *from = def ? PyDict_GetItemWithError(l->owners, def) : NULL;
        int failed = !def || PyErr_Occurred();
        if (from && from != to)
            failed = add_link(l, from, to, def);
        Py_XDECREF(def);
        if (failed)
            return -1;
    }
    return 0;
}

static PyObject *links_to_list(const linker *l)
{
    Py_ssize_t at = 0;
    PyObject *key, *size, *list = PyList_New(0);
    while (list && PyDict_Next(l->links, &at, &key, &size)) {
        PyObject *link = PyTuple_Pack(3, PyTuple_GET_ITEM(key, 0), PyTuple_GET_ITEM(key, 1), size);
        if (!link || PyList_Append(list, link) < 0)
            Py_CLEAR(list);
        Py_XDECREF(link);
    }
    return list;
}

/* The numbers are objects of `numbers`, so that they can be compared as such. */
static PyObject *link_sets(linker *l, PyObject *sets, PyObject *numbers)
{
    for (int pass = 0; pass < 2; pass++)
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(sets); i++) {
            PyObject *number = PyList_GET_ITEM(numbers, i);
            PyObject *nodes = PySequence_List(PyList_GET_ITEM(sets, i));
            int failed = nodes ? 0 : -1;
            for (Py_ssize_t k = 0; !failed && k < PyList_GET_SIZE(nodes); k++)
                failed = pass == 0 ? own(l, PyList_GET_ITEM(nodes, k), number)
                                   : link_node(l, PyList_GET_ITEM(nodes, k), number);
            Py_XDECREF(nodes);
            if (failed)
                return NULL;
        }
    return links_to_list(l);
}

static PyObject *py_part_links(PyObject *module, PyObject *args)
{
    PyObject *sets, *answer = NULL;
    int bytes;
    if (!PyArg_ParseTuple(args, "O!p:_part_links", &PyList_Type, &sets, &bytes))
        return NULL;
    linker l = {PyModule_GetState(module), PyDict_New(), PyDict_New(), bytes};
    PyObject *copy = PySequence_List(sets);  /* sizes are asked of objects, which may do anything */
    const Py_ssize_t n = copy ? PyList_GET_SIZE(copy) : 0;
    uint32_t *count = PyMem_Malloc(((size_t)n + 1) * sizeof *count);
    for (Py_ssize_t i = 0; count && i < n; i++)
        count[i] = (uint32_t)i;
    PyObject *numbers = count ? numbers_to_py(count, (size_t)n) : PyErr_NoMemory();
    if (l.owners && l.links && copy && numbers)
        answer = link_sets(&l, copy, numbers);
    PyMem_Free(count);
    Py_XDECREF(numbers);
    Py_XDECREF(copy);
    Py_XDECREF(l.owners);
    Py_XDECREF(l.links);
    return answer;
}

PyMethodDef placement_functions[] = {
    {"_longest_ways", py_longest_ways, METH_VARARGS,
     PyDoc_STR("_longest_ways(weights, links): the longest way to each thing")},
    {"_critical_path", py_critical_path, METH_VARARGS,
     PyDoc_STR("_critical_path(nodes, latencies): the latencies along the longest way")},
    {"_fit_parts", py_fit_parts, METH_VARARGS,
     PyDoc_STR("_fit_parts(memory, sizes, shared, placed): whether all parts fit, and the device "
               "of each that was not placed")},
    {"_part_links", py_part_links, METH_VARARGS,
     PyDoc_STR("_part_links(sets, bytes): (from, to, size) for sets of nodes of which one reads "
               "from another; the size counts each reader, or is 0")},
    {NULL, NULL, 0, NULL},
};

/* ---- Graph._place -------------------------------------------------------------------------- */

typedef struct place_args {
    PyObject *outputs, *totals, *latencies, *embedding, *memory, *parts, *devices;
    cfx_place_options what;
    uint32_t *part_numbers, *device_numbers;
    size_t n;
} place_args;

/* A list with a number for each node, or None; false with an exception. */
static bool read_column(PyGraph *self, PyObject *list, const double **column)
{
    if (list == Py_None)
        return true;
    if (PyList_Check(list) && (size_t)PyList_GET_SIZE(list) != cfx_graph_size(self->g))
        PyErr_SetString(PyExc_TypeError, "expected a list with a number for each node");
    else
        *column = read_doubles(list);
    return *column != NULL;
}

static bool read_embedding(place_args *a, size_t n, bool *flags)
{
    if (a->embedding == Py_None)
        return true;
    for (size_t i = 0; i < n; i++)
        flags[i] = PyList_GET_ITEM(a->embedding, (Py_ssize_t)i) == Py_True;
    a->what.embedding = flags;
    return true;
}

static bool read_start(place_args *a, size_t n)
{
    if (a->parts == Py_None)
        return true;
    a->n = (size_t)PyList_GET_SIZE(a->devices);
    return numbers_from_py(a->parts, a->part_numbers, n) == 0 &&
           numbers_from_py(a->devices, a->device_numbers, a->n) == 0;
}

static bool are_lists(const place_args *a, Py_ssize_t n)
{
    if (PyList_Check(a->memory) &&
        (a->embedding == Py_None ||
         (PyList_Check(a->embedding) && PyList_GET_SIZE(a->embedding) == n)) &&
        (a->parts == Py_None ||
         (PyList_Check(a->parts) && PyList_GET_SIZE(a->parts) == n && PyList_Check(a->devices) &&
          PyList_GET_SIZE(a->devices) <= n)))
        return true;
    PyErr_SetString(PyExc_TypeError, "expected lists with an item for each node");
    return false;
}

static PyObject *place(PyGraph *self, place_args *a)
{
    cfx_error err = {0};
    if (cfx_graph_place(self->g, &a->what, a->part_numbers, a->device_numbers, &a->n, &err) !=
        CFX_OK)
        return raise_cfx(&err);
    PyObject *parts = numbers_to_py(a->part_numbers, cfx_graph_size(self->g));
    PyObject *devices = parts ? numbers_to_py(a->device_numbers, a->n) : NULL;
    if (devices)
        return Py_BuildValue("(NN)", parts, devices);
    Py_XDECREF(parts);
    return NULL;
}

PyObject *graph_place(PyGraph *self, PyObject *args)
{
    place_args a = {0};
    int mode;
    const size_t n = cfx_graph_size(self->g);
    PyObject *answer = NULL;
    if (!PyArg_ParseTuple(args, "iOOOOOdOO:_place", &mode, &a.outputs, &a.totals, &a.latencies,
                          &a.embedding, &a.memory, &a.what.rate, &a.parts, &a.devices) ||
        !are_lists(&a, (Py_ssize_t)n))
        return NULL;
    bool *flags = PyMem_Malloc(n + 1);
    a.part_numbers = PyMem_Malloc((n + 1) * sizeof *a.part_numbers);
    a.device_numbers = PyMem_Malloc((n + 1) * sizeof *a.device_numbers);
    a.what.mode = (cfx_place_mode)mode;
    a.what.n_devices = (size_t)PyList_GET_SIZE(a.memory);
    a.what.memory = read_doubles(a.memory);
    if (!flags || !a.part_numbers || !a.device_numbers)
        PyErr_NoMemory();
    else if (a.what.memory && read_column(self, a.outputs, &a.what.outputs) &&
             read_column(self, a.totals, &a.what.totals) &&
             read_column(self, a.latencies, &a.what.latencies) && read_embedding(&a, n, flags) &&
             read_start(&a, n))
        answer = place(self, &a);
    PyMem_Free(flags);
    PyMem_Free(a.part_numbers);
    PyMem_Free(a.device_numbers);
    PyMem_Free((double *)(uintptr_t)a.what.memory);
    PyMem_Free((double *)(uintptr_t)a.what.outputs);
    PyMem_Free((double *)(uintptr_t)a.what.totals);
    PyMem_Free((double *)(uintptr_t)a.what.latencies);
    return answer;
}
