/* source_text.c - the user's source lines, found on Python's stack while a program is traced.
 *
 * A frame tells its code object and instruction. The lines of a code object are asked for one by
 * one at first; if many nodes come from it, they are read once into a table, because Python finds
 * the line of an instruction by counting from the start of the function.
 */
#include "trace.h"

enum { FEW_LOOKUPS = 8 };

typedef struct source_code {
    PyObject *code;      /* owned; NULL in an empty slot */
    PyObject *file;      /* owned */
    uint32_t *numbers;   /* of the locations of instructions in the graph, + 1; 0: not known yet */
    int *lines;          /* of the instructions, or NULL before there were many lookups */
    PyObject **targets;  /* what takes the results of instructions (bytecode_targets): owned, and
                            NULL where nobody asked; or NULL */
    Py_ssize_t n;        /* instructions */
    int lookups;
    bool is_library;     /* torch's or cfx's own code */
    bool is_ours;        /* cfx's */
    bool passes;         /* torch's, but it only hands calls on: of modules, and to modes */
} source_code;

/* ---- code objects -------------------------------------------------------------------------- */

/* The number of the library that has the file: 0 is cfx; -1 if it is in none. */
static int library_of(module_state *st, PyObject *file)
{
    for (Py_ssize_t i = 0; st->library_paths && i < PyTuple_GET_SIZE(st->library_paths); i++) {
        PyObject *path = PyTuple_GET_ITEM(st->library_paths, i);
        if (PyUnicode_Tailmatch(file, path, 0, PY_SSIZE_T_MAX, -1) == 1)
            return (int)i;
    }
    return -1;
}

static bool hands_on(PyObject *file)
{
    static const char *const files[] = {"torch/nn/modules/module.py", "torch/overrides.py"};
    bool found = false;
    for (size_t i = 0; i < sizeof files / sizeof *files && !found; i++) {
        PyObject *end = PyUnicode_FromString(files[i]);
        found = end && PyUnicode_Tailmatch(file, end, 0, PY_SSIZE_T_MAX, 1) == 1;
        Py_XDECREF(end);
    }
    PyErr_Clear();  /* then it is code like any other */
    return found;
}

static source_code *slot_of(source_code *slots, size_t capacity, PyObject *code)
{
    size_t i = ((uintptr_t)code >> 4) * (size_t)0x9E3779B97F4A7C15u >> 20;
    for (;; i++) {
        source_code *slot = &slots[i & (capacity - 1)];
        if (!slot->code || slot->code == code)
            return slot;
    }
}

static bool grow(source_cache *cache)
{
    size_t capacity = cache->capacity ? 2 * cache->capacity : 32;
    source_code *slots = PyMem_Calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < cache->capacity; i++)
        if (cache->slots[i].code)
            *slot_of(slots, capacity, cache->slots[i].code) = cache->slots[i];
    PyMem_Free(cache->slots);
    cache->slots = slots;
    cache->capacity = capacity;
    return true;
}

/* What is known of a code object: NULL if memory is out. */
static source_code *find(source_cache *cache, module_state *st, PyCodeObject *code)
{
    if (2 * cache->n >= cache->capacity && !grow(cache))
        return NULL;
    source_code *slot = slot_of(cache->slots, cache->capacity, (PyObject *)code);
    if (!slot->code) {
        slot->code = Py_NewRef((PyObject *)code);
        slot->file = Py_NewRef(code->co_filename);
        int library = library_of(st, code->co_filename);
        slot->is_library = library >= 0;
        slot->is_ours = library == 0;
        slot->passes = library > 0 && hands_on(code->co_filename);
        slot->n = Py_SIZE((PyObject *)code);
        cache->n++;
    }
    return slot;
}

void source_clear(source_cache *cache)
{
    source_code *slots = cache->slots;
    size_t capacity = cache->capacity;
    cache->slots = NULL;
    cache->n = cache->capacity = 0;
    for (size_t i = 0; i < capacity; i++) {
        PyMem_Free(slots[i].numbers);
        PyMem_Free(slots[i].lines);
        for (Py_ssize_t k = 0; slots[i].targets && k < slots[i].n; k++)
            Py_XDECREF(slots[i].targets[k]);
        PyMem_Free(slots[i].targets);
        Py_XDECREF(slots[i].file);
        Py_XDECREF(slots[i].code);
    }
    PyMem_Free(slots);
}

/* ---- lines --------------------------------------------------------------------------------- */

/* The lines of all instructions; NULL with an exception. Garbage may be collected. */
static int *read_lines(PyObject *code)
{
    Py_ssize_t n = Py_SIZE(code);
    PyObject *rows = PyObject_CallMethod(code, "co_lines", NULL);
    int *lines = rows ? PyMem_Calloc((size_t)n + 1, sizeof *lines) : NULL;
    PyObject *row = NULL;
    if (rows && !lines)
        PyErr_NoMemory();
    while (lines && (row = PyIter_Next(rows))) {
        Py_ssize_t start, end;
        PyObject *line;
        if (PyArg_ParseTuple(row, "nnO", &start, &end, &line) && line != Py_None)
            for (Py_ssize_t i = start / 2; i < end / 2 && i < n; i++)
                lines[i] = (int)PyLong_AsLong(line);
        Py_DECREF(row);
    }
    Py_XDECREF(rows);
    if (PyErr_Occurred()) {
        PyMem_Free(lines);
        return NULL;
    }
    return lines;
}

/* Reads the lines of a slot's code. Finalizers of garbage may trace, and so make the slots move or
 * go: the slot is looked up again. NULL with an exception. */
static source_code *with_lines(source_cache *cache, module_state *st, source_code *slot)
{
    PyObject *code = Py_NewRef(slot->code);
    int *lines = read_lines(code);
    slot = lines ? find(cache, st, (PyCodeObject *)code) : NULL;
    if (slot && !slot->lines)
        slot->lines = lines;
    else
        PyMem_Free(lines);
    if (!slot && !PyErr_Occurred())
        PyErr_NoMemory();
    Py_DECREF(code);
    return slot;
}

/* The number of a line in the graph; 0 with or without an exception. Runs no code. */
static uint32_t number_line(source_code *slot, int line, PyGraph *graph)
{
    cfx_error err = {0};
    Py_ssize_t size;
    PyObject *keep = NULL;
    const char *file = line > 0 ? utf8_of(slot->file, &size, &keep) : NULL;
    uint32_t number = 0;
    if (file) {
        number = cfx_graph_intern_location(graph->g, file, (uint32_t)line, &err);
        if (!number && err.status == CFX_E_NOMEM)
            raise_cfx(&err);
    }
    Py_XDECREF(keep);
    return number;
}

/* The number of an instruction's line in the graph; 0 with or without an exception. */
static uint32_t number_of(source_cache *cache, source_code *slot, Py_ssize_t instruction,
                          PyGraph *graph)
{
    int line;
    if (instruction < 0 || instruction >= slot->n)
        return 0;
    if (slot->numbers && slot->numbers[instruction])
        return slot->numbers[instruction] - 1;
    if (slot->lookups < FEW_LOOKUPS) {
        slot->lookups++;
        line = PyCode_Addr2Line((PyCodeObject *)slot->code, (int)(2 * instruction));
    } else {
        if (!slot->lines && !(slot = with_lines(cache, graph->st, slot)))
            return 0;
        line = slot->lines[instruction];
    }
    uint32_t number = number_line(slot, line, graph);
    if (PyErr_Occurred() || cache->graph != (PyObject *)graph)
        return number;
    if (!slot->numbers)
        slot->numbers = PyMem_Calloc((size_t)slot->n, sizeof *slot->numbers);
    if (slot->numbers)  /* else it is looked up each time */
        slot->numbers[instruction] = number + 1;
    return number;
}

/* ---- the stack ----------------------------------------------------------------------------- */

uint32_t source_location(source_cache *cache, PyGraph *graph, bool users_only)
{
    module_state *st = graph->st;
    uint32_t number = 0;
    uint32_t fallback = 0;
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        source_code *slot = find(cache, st, code);
        bool start = (PyObject *)code == st->trace_code;
        Py_DECREF(code);
        if (!slot || start)
            break;
        bool library = slot->is_library;
        if (!library || (!fallback && !slot->is_ours && !users_only)) {
            uint32_t here = number_of(cache, slot, PyFrame_GetLasti(frame) / 2, graph);
            if (PyErr_Occurred())
                break;
            if (!library) {
                number = here;
                break;
            }
            fallback = here;
        }
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return number ? number : fallback;
}

/* What takes the result of an instruction: borrowed, or NULL with an exception. */
static PyObject *targets_at(source_code *slot, Py_ssize_t instruction)
{
    if (instruction < 0 || instruction >= slot->n)
        return Py_None;
    if (!slot->targets)
        slot->targets = PyMem_Calloc((size_t)slot->n, sizeof *slot->targets);
    if (!slot->targets)
        return PyErr_NoMemory();
    PyObject **known = &slot->targets[instruction];
    if (!*known)  /* strings and tuples of them: no code runs, so the slot stays where it is */
        *known = bytecode_targets((PyCodeObject *)slot->code, 2 * instruction);
    return *known;
}

PyObject *source_targets(source_cache *cache, module_state *st, PyObject *function)
{
    PyObject *own = function && PyFunction_Check(function) ? PyFunction_GET_CODE(function) : NULL;
    PyObject *found = Py_None;
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        source_code *slot = find(cache, st, code);
        const bool ends = !slot || (PyObject *)code == st->trace_code;
        const bool between = !ends && (slot->is_ours || slot->passes || (PyObject *)code == own);
        Py_DECREF(code);
        if (!between) {
            if (!ends && !slot->is_library)
                found = targets_at(slot, PyFrame_GetLasti(frame) / 2);
            break;
        }
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return found;
}
