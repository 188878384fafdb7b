/* module.c - cfx._core: module state, errors, registration of the Python glue. */
#include "capture/capture.h"
#include "capture/capture_entry.h"
#include "quantize/quantizing.h"
#include "script/scripting.h"
#include "transform/comparison.h"

PyMODINIT_FUNC PyInit__core(void);

module_state *state_of(PyTypeObject *type)
{
    return PyModule_GetState(PyType_GetModuleByDef(type, &pycfx_module));
}

/* ---- errors -------------------------------------------------------------------------------- */

/* The arguments of the exception: for a text error also the place, as Python's own have it. */
static PyObject *exception_args(const cfx_error *err)
{
    const char *text = err->message[0] ? err->message : cfx_status_text(err->status);
    PyObject *message = str_from_utf8(text, strlen(text));  /* may quote a lone surrogate */
    if (!message || err->status != CFX_E_SYNTAX || err->line == 0)
        return message;
    return Py_BuildValue("(N(sIIO))", message, "<IR text>", err->line, err->column, Py_None);
}

PyObject *raise_cfx(const cfx_error *err)
{
    if (PyErr_Occurred())
        return NULL;
    const char *name = cfx_status_exception(err->status);
    PyObject *builtins = PyEval_GetBuiltins();
    PyObject *type = name ? PyDict_GetItemString(builtins, name) : NULL;
    PyObject *args = exception_args(err);
    if (args)
        PyErr_SetObject(type ? type : PyExc_RuntimeError, args);
    Py_XDECREF(args);
    return NULL;
}

PyObject *call_glue(module_state *st, const char *function, PyObject *argument)
{
    PyObject *fn = st->glue ? PyObject_GetAttrString(st->glue, function) : NULL;
    if (!fn && !PyErr_Occurred())
        PyErr_SetString(PyExc_ImportError, "cfx._core must be used through the package cfx");
    PyObject *result = fn ? PyObject_CallOneArg(fn, argument) : NULL;
    Py_XDECREF(fn);
    return result;
}

void *alloc_quietly(PyTypeObject *type)
{
    int enabled = PyGC_Disable();
    PyObject *object = type->tp_alloc(type, 0);
    if (enabled)
        PyGC_Enable();
    return object;
}

/* ---- arguments ----------------------------------------------------------------------------- */

static int index_of(const arg_spec *spec, PyObject *name)
{
    for (int i = 0; i < spec->n; i++)
        if (PyUnicode_CompareWithASCIIString(name, spec->names[i]) == 0)
            return i;
    return -1;
}

bool take_args(const arg_spec *spec, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
               PyObject **out)
{
    if (nargs > spec->positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments (%zd given)",
                     spec->function, spec->positional, nargs);
        return false;
    }
    for (int i = 0; i < spec->n; i++)
        out[i] = i < nargs ? args[i] : NULL;
    Py_ssize_t n_named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t k = 0; k < n_named; k++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, k);
        int i = index_of(spec, name);
        if (i < 0 || out[i]) {
            PyErr_Format(PyExc_TypeError, i < 0 ? "%s() got an unexpected keyword argument '%U'"
                                                : "%s() got multiple values for argument '%U'",
                         spec->function, name);
            return false;
        }
        out[i] = args[nargs + k];
    }
    for (int i = 0; i < spec->required; i++) {
        if (!out[i]) {
            PyErr_Format(PyExc_TypeError, "%s() missing required argument: '%s'", spec->function,
                         spec->names[i]);
            return false;
        }
    }
    return true;
}

/* ---- functions of the module --------------------------------------------------------------- */

/* What the Python glue may register, by the names of the state's members. */
#define REGISTERED(X)                                                                              \
    X(glue) X(graph_class) X(node_meta) X(appending_tracer) X(scope_class) X(library_paths)        \
    X(trace_code) X(sequential) X(tensor_types) X(module_class) X(parameter_class) X(tensor_class) \
    X(listeners) X(node_source) X(tensor_metadata) X(flag_hooks) X(fx_globals) X(fx_node_class)    \
    X(fx_readers)                                                                                  \
    X(torch_tensor) X(torch_to_dlpack) X(torch_from_dlpack)                                        \
    X(script_specials) X(script_builtins) X(script_operators) X(script_facts) X(script_methods)    \
    X(script_plain) X(script_contexts) X(script_inlined) X(graph_module_class)                     \
    X(script_trace_error) X(script_replaced) X(script_set_grad) X(script_refused)                  \
    X(script_refusal) X(script_environ) X(script_generator) X(script_linecache)                    \
    X(script_started) X(script_dunders) X(script_layers) X(script_requires_grad) X(script_packed)  \
    X(witness_class) X(int_class) X(float_class) X(symbol_classes) X(capture_torch)                \
    X(capture_describe)

static int register_one(module_state *st, PyObject *name, PyObject *value)
{
    PyObject *new_ = value == Py_None ? NULL : Py_NewRef(value);
#define X(member)                                                                                  \
    if (PyUnicode_CompareWithASCIIString(name, #member) == 0) {                                    \
        Py_XSETREF(st->member, new_);                                                              \
        return 0;                                                                                  \
    }
    REGISTERED(X)
#undef X
    Py_XDECREF(new_);
    PyErr_Format(PyExc_TypeError, "'%U' is not a name that can be registered", name);
    return -1;
}

static PyObject *py_register(PyObject *module, PyObject *args, PyObject *kwargs)
{
    module_state *st = PyModule_GetState(module);
    PyObject *name, *value;
    Py_ssize_t at = 0;
    if (!PyArg_ParseTuple(args, ":_register"))
        return NULL;
    while (kwargs && PyDict_Next(kwargs, &at, &name, &value))
        if (register_one(st, name, value) < 0)
            return NULL;
    if (st->glue && !st->NameType && !(st->NameType = PyObject_GetAttrString(st->glue, "Name")))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *py_kind_number(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = PyUnicode_AsUTF8(name);
    for (int kind = 0; text && kind < CFX_KIND_COUNT; kind++)
        if (strcmp(cfx_kind_name((cfx_kind)kind), text) == 0)
            return PyLong_FromLong(kind);
    return text ? PyErr_Format(PyExc_ValueError, "there is no value kind '%s'", text) : NULL;
}

/* Objects of `type` become values of `kind`: see token_value in convert.c. */
static PyObject *py_register_tokens(PyObject *module, PyObject *args)
{
    module_state *st = PyModule_GetState(module);
    PyObject *type;
    PyObject *kind_name;
    PyObject *numbers;
    if (!PyArg_ParseTuple(args, "OUO:_register_tokens", &type, &kind_name, &numbers))
        return NULL;
    PyObject *kind = py_kind_number(module, kind_name);
    PyObject *row = kind ? PyTuple_Pack(2, kind, numbers) : NULL;
    int failed = !row || PyDict_SetItem(st->token_types, type, row) < 0;
    Py_XDECREF(kind);
    Py_XDECREF(row);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

/* The names of a closed set ("dtype", "layout", "memory_format"), in the order of their numbers. */
static PyObject *py_token_names(PyObject *module, PyObject *set)
{
    PyObject *number = py_kind_number(module, set);
    PyObject *list = number ? PyList_New(0) : NULL;
    cfx_kind kind = number ? (cfx_kind)PyLong_AsLong(number) : CFX_KIND_INVALID;
    const char *text;
    for (int64_t i = 0; list && (text = token_name(kind, i)) != NULL; i++) {
        PyObject *item = PyUnicode_FromString(text);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    Py_XDECREF(number);
    return list;
}

static PyObject *py_is_reserved(PyObject *module, PyObject *name)
{
    (void)module;
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(name, &size);
    return text ? PyBool_FromLong(cfx_name_is_reserved(text, (size_t)size)) : NULL;
}

static PyObject *py_snake_case(PyObject *module, PyObject *name)
{
    (void)module;
    Py_ssize_t size;
    PyObject *keep = NULL;
    PyObject *result = NULL;
    const char *text = PyUnicode_Check(name) ? utf8_of(name, &size, &keep) : NULL;
    if (!text) {
        if (!PyErr_Occurred())
            PyErr_Format(PyExc_TypeError, "expected a str, got %R", (PyObject *)Py_TYPE(name));
        return NULL;
    }
    cfx_buffer out;
    cfx_buffer_init(&out, NULL);
    if (cfx_name_to_snake_case(text, (size_t)size, &out) == CFX_OK)
        result = str_from_utf8(out.data, out.size);
    else
        PyErr_NoMemory();
    cfx_buffer_free(&out);
    Py_XDECREF(keep);
    return result;
}

static PyMethodDef functions[] = {
    {"_register", (PyCFunction)(void (*)(void))py_register, METH_VARARGS | METH_KEYWORDS, NULL},
    {"_register_tokens", py_register_tokens, METH_VARARGS, NULL},
    {"_kind_number", py_kind_number, METH_O, NULL},
    {"_token_names", py_token_names, METH_O, NULL},
    {"_is_reserved", py_is_reserved, METH_O, NULL},
    {"_snake_case", py_snake_case, METH_O, NULL},
    {"_operator", py_operator, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

/* ---- set-up -------------------------------------------------------------------------------- */

static int add_type(PyObject *module, PyObject **slot, PyType_Spec *spec, PyTypeObject *base)
{
    *slot = PyType_FromModuleAndSpec(module, spec, (PyObject *)base);
    if (*slot)  /* error messages say 'Node', as for a class written in Python */
        ((PyTypeObject *)*slot)->tp_name = strrchr(spec->name, '.') + 1;
    return *slot ? PyModule_AddType(module, (PyTypeObject *)*slot) : -1;
}

static int add_types(PyObject *module, module_state *st)
{
    if (add_type(module, &st->GraphType, &graph_spec, NULL) < 0 ||
        add_type(module, &st->NodeType, &node_spec, NULL) < 0 ||
        add_type(module, &st->NodeListType, &node_list_spec, NULL) < 0 ||
        add_type(module, &st->NodeIterType, &node_iter_spec, NULL) < 0 ||
        add_type(module, &st->UsersType, &users_spec, &PyDict_Type) < 0 ||
        add_type(module, &st->UsersIterType, &users_iter_spec, NULL) < 0 ||
        add_type(module, &st->ImmutableListType, &immutable_list_spec, &PyList_Type) < 0 ||
        add_type(module, &st->ImmutableDictType, &immutable_dict_spec, &PyDict_Type) < 0 ||
        add_type(module, &st->NamespaceType, &namespace_spec, NULL) < 0 ||
        add_type(module, &st->InterpreterType, &interpreter_spec, NULL) < 0 ||
        add_type(module, &st->ProxyType, &proxy_spec, NULL) < 0 ||
        add_type(module, &st->TracerBaseType, &tracer_base_spec, NULL) < 0 ||
        add_type(module, &st->WrappedType, &wrapped_spec, NULL) < 0 ||
        add_type(module, &st->LazyType, &lazy_spec, NULL) < 0 ||
        add_type(module, &st->TensorType, &tensor_spec, NULL) < 0 ||
        add_type(module, &st->RuntimeType, &runtime_spec, NULL) < 0 ||
        add_type(module, &st->OperatorType, &operator_spec, NULL) < 0 ||
        add_type(module, &st->ProgramType, &program_spec, NULL) < 0 ||
        add_type(module, &st->SessionType, &session_spec, NULL) < 0 ||
        add_type(module, &st->ExecutableType, &executable_spec, NULL) < 0 ||
        add_type(module, &st->ScriptType, &script_spec, NULL) < 0 ||
        add_type(module, &st->ScriptFunctionType, &script_function_spec, NULL) < 0 ||
        add_type(module, &st->RecorderType, &recorder_spec, NULL) < 0 ||
        add_type(module, &st->NumberType, &number_spec, NULL) < 0 ||
        add_type(module, &st->SymbolType, &symbol_spec, NULL) < 0 || numbers_init(st) < 0 ||
        add_type(module, &st->GuardsType, &guards_spec, NULL) < 0 ||
        add_type(module, &st->EntryType, &entry_spec, NULL) < 0 ||
        add_type(module, &st->ComparisonType, &comparison_spec, NULL) < 0 ||
        add_type(module, &st->CorrectionType, &correction_spec, NULL) < 0 ||
        add_type(module, &st->ObserverType, &observer_spec, NULL) < 0 ||
        add_type(module, &st->RulesType, &rules_spec, NULL) < 0 ||
        tracer_type_ready(st->TracerBaseType) < 0)
        return -1;
    proxy_type_ready((PyTypeObject *)st->ProxyType);
    return add_type(module, &st->AttributeType, &attribute_spec,
                    (PyTypeObject *)st->ProxyType) < 0 ||
                   add_type(module, &st->TracerType, &tracer_spec,
                            (PyTypeObject *)st->TracerBaseType) < 0
               ? -1 : 0;
}

PyObject *interned_names(const char *const *texts, int n)
{
    PyObject *names = PyTuple_New(n);
    for (int i = 0; names && i < n; i++) {
        PyObject *name = PyUnicode_InternFromString(texts[i]);
        if (!name)
            Py_CLEAR(names);
        else
            PyTuple_SET_ITEM(names, i, name);
    }
    return names;
}

static int add_constants(module_state *st)
{
    st->op_names = PyTuple_New(CFX_OPCODE_COUNT);
    for (int i = 0; st->op_names && i < CFX_OPCODE_COUNT; i++) {
        PyObject *name = PyUnicode_InternFromString(cfx_opcode_name((cfx_opcode)i));
        if (!name)
            return -1;
        PyTuple_SET_ITEM(st->op_names, i, name);
    }
#define X(name, text) st->name = PyUnicode_InternFromString(text);
    STATE_STRINGS(X)
#undef X
    st->empty_tuple = PyTuple_New(0);
    st->empty_dict = immutable_dict_new(st);
    st->token_types = PyDict_New();
    st->patches = PyList_New(0);
    st->flag_saved = PyList_New(0);
    st->torch_targets = PyDict_New();
    st->operator_functions = PyDict_New();
    st->result_types = PyDict_New();
    st->result_rows = PyDict_New();
    st->names = PyDict_New();
    st->resolved = PyDict_New();
    st->script_sources = PyDict_New();
    st->script_files = PyDict_New();
    st->runtime_variable = PyContextVar_New("cfx_runtime", NULL);
    st->operators = proxy_operators();
    PyObject *builtins = PyEval_GetBuiltins();
    st->builtin_getattr = Py_XNewRef(PyDict_GetItemString(builtins, "getattr"));
    if (PyThread_tss_create(&st->session) != 0 || PyThread_tss_create(&st->flag) != 0)
        PyErr_NoMemory();
    return PyErr_Occurred() ? -1 : 0;
}

static int module_exec(PyObject *module)
{
    module_state *st = PyModule_GetState(module);
    if (refuse_interpreter() < 0)
        return -1;
    host_init(st);
    chunks_init(st);
    st->session = st->flag = (Py_tss_t)Py_tss_NEEDS_INIT;
    if (add_types(module, st) < 0 || add_constants(st) < 0 ||
        PyModule_AddFunctions(module, map_functions) < 0 ||
        PyModule_AddFunctions(module, codegen_functions) < 0 ||
        PyModule_AddFunctions(module, attribute_functions) < 0 ||
        PyModule_AddFunctions(module, use_order_functions) < 0 ||
        PyModule_AddFunctions(module, name_functions) < 0 ||
        PyModule_AddFunctions(module, pass_functions) < 0 ||
        PyModule_AddFunctions(module, resolve_functions) < 0 ||
        PyModule_AddFunctions(module, own_class_functions) < 0 ||
        PyModule_AddFunctions(module, parameter_functions) < 0 ||
        PyModule_AddFunctions(module, wrapped_functions) < 0 ||
        PyModule_AddFunctions(module, trace_functions) < 0 ||
        PyModule_AddFunctions(module, flag_functions) < 0 ||
        PyModule_AddFunctions(module, afterwards_functions) < 0 ||
        PyModule_AddFunctions(module, pass_order_functions) < 0 ||
        PyModule_AddFunctions(module, placement_functions) < 0 ||
        PyModule_AddFunctions(module, runtime_functions) < 0 ||
        PyModule_AddFunctions(module, lower_functions) < 0 ||
        PyModule_AddFunctions(module, command_functions) < 0 ||
        PyModule_AddFunctions(module, complete_functions) < 0 ||
        PyModule_AddFunctions(module, weights_functions) < 0 ||
        PyModule_AddFunctions(module, package_functions) < 0 ||
        PyModule_AddFunctions(module, onnx_save_functions) < 0 ||
        PyModule_AddFunctions(module, syntax_functions) < 0 ||
        PyModule_AddFunctions(module, script_functions) < 0 ||
        PyModule_AddFunctions(module, symbol_functions) < 0 ||
        PyModule_AddFunctions(module, guards_functions) < 0 ||
        PyModule_AddStringConstant(module, "__version__", cfx_version()) < 0)
        return -1;
    bool failed = interpreter_init(st) < 0 || meta_init(module) < 0 || shape_prop_init(module) < 0;
    return failed ? -1 : 0;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    module_state *st = PyModule_GetState(module);
#define X(name) Py_VISIT(st->name);
    STATE_OBJECTS(X)
#undef X
    for (int i = 0; i < 2; i++) {
#define X(name) Py_VISIT(st->hooks[i].name);
        MODULE_HOOK_OBJECTS(X)
#undef X
    }
    return 0;
}

static int module_clear(PyObject *module)
{
    module_state *st = PyModule_GetState(module);
    proxy_free_spares(st);
#define X(name) Py_CLEAR(st->name);
    STATE_OBJECTS(X)
#undef X
#define X(name, text) Py_CLEAR(st->name);
    STATE_STRINGS(X)
#undef X
    for (int i = 0; i < 2; i++) {
#define X(name) Py_CLEAR(st->hooks[i].name);
        MODULE_HOOK_OBJECTS(X)
#undef X
    }
    return 0;
}

static void module_free(void *module)
{
    module_state *st = PyModule_GetState(module);
    module_clear(module);
    chunks_release(st);
    PyThread_tss_delete(&st->session);
    PyThread_tss_delete(&st->flag);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
    INTERPRETER_SLOT
    {0, NULL},
};

struct PyModuleDef pycfx_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "cfx._core",
    .m_doc = "The C core of cfx. Use the package cfx.",
    .m_size = sizeof(module_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&pycfx_module); }
