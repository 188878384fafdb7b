/* importable.c - the modules that a script can import, and what is in them: torch by the tables of
 * operators and classes, and what models use of Python's library (library_functions.c). */
#include "world_impl.h"

#include <math.h>
#include <stdio.h>

enum { NAME_SIZE = 128 };

/* ---- which there are ----------------------------------------------------------------------- */

static const char *const spaces[] = {
    "torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.parameter",
    "torch.nn.utils", "torch.jit", "torch.autograd", "torch.cuda", "torch.fx", "torch.utils",
    "torch.types", "math", "typing", "typing_extensions", "dataclasses", "collections",
    "collections.abc", "enum", "functools", "itertools", "operator", "copy", "abc", "warnings",
    "builtins", "numbers", "contextlib", "torch.profiler", "torch.amp", "torch.cuda.amp",
    "__future__", "cfx", "cfx.ops", NULL,
};

bool cfxi_world_is_word(const char *word, const char *const *words)
{
    while (*words && strcmp(word, *words) != 0)
        words++;
    return *words != NULL;
}

/* Whether a spelling of an operator begins with it and a dot: torch._C._nn, torch.ops.aten. */
static bool is_prefix(const char *name)
{
    char text[CFX_SPELLING_SIZE];
    const size_t n = strlen(name);
    static const char *const hidden[] = {"torch._C", "torch._C._nn", "torch._C._linalg",
                                         "torch._C._special", "torch._C._fft", "torch.ops",
                                         "torch.ops.higher_order", "torch.special", NULL};
    if (cfxi_world_is_word(name, hidden))
        return true;
    if (strncmp(name, "torch.", 6) != 0)
        return false;
    for (int op = 1; op < CFX_OPERATOR_COUNT; op++)
        for (size_t i = 0; cfx_operator_spelling((cfx_operator)op, i, text, NULL); i++)
            if (strncmp(text, name, n) == 0 && text[n] == '.')
                return true;
    return false;
}

static cfx_object *make_space(cfxi_world *w, const char *name, cfx_error *err)
{
    cfx_object *space = cfxi_world_dict_get(w->spaces, name);
    if (space)
        return cfxi_world_ref(space);
    space = cfxi_world_text_object(w, CFXI_TYPE_NAMESPACE, name, strlen(name), err);
    if (space && cfxi_world_dict_put(w->spaces, name, space, err) != CFX_OK)
        cfxi_world_clear(&space);
    return space;
}

cfx_object *cfxi_world_namespace(cfxi_world *w, const char *name, cfx_error *err)
{
    if (cfxi_world_is_word(name, spaces) || is_prefix(name))
        return make_space(w, name, err);
    return cfxi_world_raise(w, err, CFXI_ModuleNotFoundError,
                            "No module named '%.100s': scripts can import torch, and from the "
                            "standard library math, typing, dataclasses, enum, collections, "
                            "contextlib, functools, itertools, operator, copy and abc; capture a "
                            "model that needs others in Python, with cfx.script",
                            name);
}

/* ---- what is in torch ---------------------------------------------------------------------- */

/* Types of elements, layouts and memory formats. NULL without an error: it is something else. */
static cfx_object *torch_constant(cfxi_world *w, const char *name, cfx_error *err)
{
    static const struct {
        char name[8];
        uint8_t dtype;
    } others[] = {
        {"float", CFX_DTYPE_FLOAT32}, {"double", CFX_DTYPE_FLOAT64}, {"half", CFX_DTYPE_FLOAT16},
        {"long", CFX_DTYPE_INT64}, {"int", CFX_DTYPE_INT32}, {"short", CFX_DTYPE_INT16},
        {"cfloat", CFX_DTYPE_COMPLEX64}, {"cdouble", CFX_DTYPE_COMPLEX128},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].name, name) == 0)
            return cfxi_world_numbered(w, CFXI_TYPE_DTYPE, others[i].dtype, err);
    for (int i = 0; i < CFX_DTYPE_COUNT; i++)
        if (strcmp(cfx_dtype_name((cfx_dtype)i), name) == 0)
            return cfxi_world_numbered(w, CFXI_TYPE_DTYPE, i, err);
    for (int i = 0; i < CFX_LAYOUT_COUNT; i++)
        if (strcmp(cfx_layout_name((cfx_layout)i), name) == 0)
            return cfxi_world_numbered(w, CFXI_TYPE_LAYOUT, i, err);
    for (int i = 0; i < CFX_MEMORY_FORMAT_COUNT; i++)
        if (strcmp(cfx_memory_format_name((cfx_memory_format)i), name) == 0)
            return cfxi_world_numbered(w, CFXI_TYPE_MEMORY_FORMAT, i, err);
    return NULL;
}

/* math.pi and its like, which torch has, too. */
static cfx_object *number_constant(cfxi_world *w, const char *name, cfx_error *err)
{
    static const struct {
        char name[4];
        double value;
    } numbers[] = {{"pi", 3.141592653589793}, {"e", 2.718281828459045}, {"inf", INFINITY},
                   {"nan", NAN}, {"tau", 6.283185307179586}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(numbers[i].name, name) == 0)
            return cfxi_world_float_object(w, numbers[i].value, err);
    return NULL;
}

/* Classes of torch.nn. */
static cfx_object *nn_name(cfxi_world *w, const char *name, cfx_error *err)
{
    if (strcmp(name, "Module") == 0)
        return cfxi_world_layer_class(w, CFX_NN_NONE, err);
    const cfx_nn nn = cfxi_ops_nn_find(name);
    if (nn != CFX_NN_NONE)
        return cfxi_world_layer_class(w, nn, err);
    return NULL;
}

/* An operator, or a part of the names of some. */
static cfx_object *operator_name(cfxi_world *w, const char *full, cfx_error *err)
{
    const cfx_operator op = cfx_operator_find(full, strlen(full));
    if (op != CFX_OPID_NONE)
        return cfxi_world_builtin_object(w, full, NULL, op, err);
    return is_prefix(full) ? make_space(w, full, err) : NULL;
}

static cfx_object *torch_name(cfxi_world *w, const char *space, const char *name, const char *full,
                              cfx_error *err)
{
    cfx_object *made = NULL;
    if (strcmp(space, "torch") == 0) {
        made = torch_constant(w, name, err);
        if (!made && err->status == CFX_OK)
            made = number_constant(w, name, err);
        if (!made && err->status == CFX_OK && strcmp(name, "Tensor") == 0)
            made = cfxi_world_type_class(w, CFXI_TYPE_TENSOR, err);
    } else if (strncmp(space, "torch.nn", 8) == 0 && strcmp(space, "torch.nn.functional") != 0) {
        made = nn_name(w, name, err);
    }
    if (!made && err->status == CFX_OK)
        made = operator_name(w, full, err);
    return made;
}

/* A function of special.def that has no operator. NULL without an error: it has no row there. */
static cfx_object *evaluated(cfxi_world *w, const char *full, cfx_error *err)
{
    const bool is = strncmp(full, "cfx.", 4) != 0 && cfxi_world_is_special(full);
    return is ? cfxi_world_builtin_object(w, full, NULL, CFX_OPID_NONE, err) : NULL;
}

/* ---- looking up ---------------------------------------------------------------------------- */

static cfx_object *find(cfxi_world *w, const char *space, const char *name, cfx_error *err)
{
    char full[NAME_SIZE];
    if (snprintf(full, sizeof full, "%s.%s", space, name) >= (int)sizeof full)
        return NULL;
    cfx_object *made = cfxi_world_library_get(w, space, name, full, err);
    if (made || err->status != CFX_OK)
        return made;
    if (cfxi_world_is_word(full, spaces))
        return make_space(w, full, err);
    if (strcmp(space, "builtins") == 0)
        return cfxi_world_builtin_get(w, name, err);
    if (strcmp(space, "math") == 0 && (made = number_constant(w, name, err)) != NULL)
        return made;
    if (strncmp(space, "torch", 5) == 0)
        made = torch_name(w, space, name, full, err);
    else if (err->status == CFX_OK)
        made = operator_name(w, full, err);
    return made || err->status != CFX_OK ? made : evaluated(w, full, err);
}

static cfx_object *missing(cfxi_world *w, const char *space, const char *name, cfx_error *err)
{
    const bool nn = strcmp(space, "torch.nn") == 0;
    if (strcmp(space, "cfx") == 0 || strcmp(space, "cfx.ops") == 0)
        return cfxi_world_raise(w, err, CFXI_AttributeError,
                                "%s.%s needs Python: capture this model there, with cfx.script",
                                space, name);
    if (strcmp(space, "contextlib") == 0)
        return cfxi_world_raise(w, err, CFXI_AttributeError,
                                "contextlib.%s is not supported in scripts; write a class with "
                                "__enter__ and __exit__ instead", name);
    if (strncmp(space, "torch", 5) == 0)
        return cfxi_world_raise(w, err, CFXI_AttributeError,
                                "cfx does not support '%s.%s': it is not in the table of %s under "
                                "any name%s", space, name,
                                nn ? "classes" : "operators", nn ? "" : " (cfx ops lists them)");
    return cfxi_world_raise(w, err, CFXI_AttributeError, "module '%s' has no attribute '%s' that "
                            "scripts support", space, name);
}

cfx_object *cfxi_world_namespace_get(cfxi_world *w, cfx_object *space, const char *name,
                                     cfx_error *err)
{
    const char *text = space->type == CFXI_TYPE_BUILTIN ? space->as.builtin.name
                                                        : space->as.text.data;
    if (!space->attrs)
        space->attrs = cfxi_world_dict_object(w, CFXI_TYPE_DICT, err);
    if (!space->attrs)
        return NULL;
    cfx_object *made = cfxi_world_dict_get(space->attrs, name);
    if (made)
        return cfxi_world_ref(made);
    err->status = CFX_OK;
    made = find(w, text, name, err);
    if (!made && err->status == CFX_OK && strcmp(name, "__name__") == 0)
        made = cfxi_world_str(w, text, err);
    if (!made && err->status == CFX_OK)
        return missing(w, text, name, err);
    if (made && cfxi_world_dict_put(space->attrs, name, made, err) != CFX_OK)
        cfxi_world_clear(&made);
    return made;
}
