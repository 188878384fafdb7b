/* abstract_class.c - isinstance with the classes of collections.abc, numbers and typing: which of
 * the builtin classes each of them counts in, and which method decides for a user-defined class.
 */
#include "world_impl.h"

#define BIT(type) (UINT64_C(1) << CFXI_TYPE_##type)
#define TEXTS (BIT(STR) | BIT(BYTES))
#define LISTS (BIT(LIST) | BIT(TUPLE) | BIT(RANGE) | TEXTS)
#define SETS (BIT(SET) | BIT(FROZENSET))
#define ITEMS (LISTS | SETS | BIT(DICT))
#define CALLS (BIT(FUNCTION) | BIT(BUILTIN) | BIT(METHOD) | BIT(CLASS) | BIT(PARTIAL) |            \
               BIT(ATTRIBUTE) | BIT(MODULE))
#define TENSORS (BIT(TENSOR) | BIT(VALUE))

_Static_assert(CFXI_TYPES <= 64, "a set of types is 64 bits");

typedef struct abstract_class {
    const char *name;
    uint64_t types;
    const char *method;  /* of a user-defined class; NULL: such a class cannot be one */
} abstract_class;

static const abstract_class of_collections[] = {
    {"Sequence", LISTS, NULL},
    {"MutableSequence", BIT(LIST), NULL},
    {"Mapping", BIT(DICT), NULL},
    {"MutableMapping", BIT(DICT), NULL},
    {"Set", SETS, NULL},
    {"AbstractSet", SETS, NULL},
    {"MutableSet", BIT(SET), NULL},
    {"Iterable", ITEMS | TENSORS | BIT(ITERATOR), "__iter__"},
    {"Iterator", BIT(ITERATOR), "__next__"},
    {"Sized", ITEMS | TENSORS, "__len__"},
    {"Container", ITEMS | TENSORS, "__contains__"},
    {"Callable", CALLS, "__call__"},
    {NULL, 0, NULL},
};

static const abstract_class of_numbers[] = {
    {"Number", BIT(BOOL) | BIT(INT) | BIT(FLOAT) | BIT(COMPLEX), NULL},
    {"Complex", BIT(BOOL) | BIT(INT) | BIT(FLOAT) | BIT(COMPLEX), NULL},
    {"Real", BIT(BOOL) | BIT(INT) | BIT(FLOAT), NULL},
    {"Rational", BIT(BOOL) | BIT(INT), NULL},
    {"Integral", BIT(BOOL) | BIT(INT), NULL},
    {NULL, 0, NULL},
};

/* Of typing: what is a builtin class under another name, too. */
static const abstract_class of_typing[] = {
    {"List", BIT(LIST), NULL},
    {"Tuple", BIT(TUPLE), NULL},
    {"Dict", BIT(DICT), NULL},
    {"FrozenSet", BIT(FROZENSET), NULL},
    {"Type", BIT(CLASS), NULL},
    {"Hashable", 0, NULL},
    {NULL, 0, NULL},
};

static const abstract_class *find_row(const abstract_class *rows, const char *name)
{
    while (rows->name && strcmp(rows->name, name) != 0)
        rows++;
    return rows->name ? rows : NULL;
}

static const abstract_class *find(const char *full)
{
    const char *dot = strrchr(full, '.');
    const char *name = dot ? dot + 1 : full;
    const abstract_class *row = NULL;
    if (strncmp(full, "numbers.", 8) == 0)
        return find_row(of_numbers, name);
    if (strncmp(full, "typing.", 7) == 0 && strcmp(name, "Hashable") != 0)
        row = strcmp(name, "Set") == 0 ? NULL : find_row(of_typing, name);
    const bool here = strncmp(full, "typing.", 7) == 0 ||
                      strncmp(full, "collections.abc.", 16) == 0;
    return row || !here ? row : find_row(of_collections, name);
}

/* Whether a class of modules has the method: that of containers is written in C. */
static bool module_has(const cfx_object *cls, const char *method)
{
    const bool items = strcmp(method, "__iter__") == 0 || strcmp(method, "__len__") == 0;
    return items && cfxi_world_is_container(cls->as.cls.nn);
}

int cfxi_world_is_abstract(const cfx_object *cls, const cfx_object *abstract, const char *function,
                           cfx_error *err)
{
    const bool builtin = abstract->type == CFXI_TYPE_BUILTIN;
    const char *full = builtin ? abstract->as.builtin.name : abstract->as.text.data;
    const abstract_class *row = builtin ? NULL : find(full);
    const uint64_t type = UINT64_C(1) << cls->as.cls.layout;
    if (builtin && strcmp(full, "torch.device") == 0)
        return cls->as.cls.layout == CFXI_TYPE_DEVICE;
    if (builtin && strcmp(full, "torch.Size") == 0 && cls->as.cls.layout != CFXI_TYPE_TUPLE)
        return 0;
    if (!row) {
        cfx_error_set(err, CFX_E_UNSUPPORTED,
                      "%s() with %.80s is not supported in scripts; name a builtin class, such as "
                      "list, tuple, dict or torch.Tensor", function, full);
        return -1;
    }
    if (row->types & type)
        return 1;
    return row->method && ((cls->as.cls.own && cfxi_world_class_find(cls, row->method)) ||
                           (cls->as.cls.layout == CFXI_TYPE_MODULE &&
                            module_has(cls, row->method)));
}
