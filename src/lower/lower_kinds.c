/* lower_kinds.c - what nodes give, as far as it can be known before anything runs: tensors,
 * numbers, sizes. Which of several rows a call means hangs on it: torch.max(x, n) and
 * torch.max(x, y). */
#include "lower_impl.h"
#include "runtime/library_rows.h"

/* ---- values -------------------------------------------------------------------------------- */

static cfxi_what items_what(const cfxi_lower *l, cfx_value v)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    bool tensors = n > 0;
    bool numbers = true;
    for (size_t i = 0; i < n; i++) {
        const cfxi_what what = cfxi_lower_what(l, items[i]);
        tensors = tensors && what == CFXI_WHAT_TENSOR;
        numbers = numbers && what == CFXI_WHAT_NUMBER;
    }
    return tensors ? CFXI_WHAT_TENSORS : numbers ? CFXI_WHAT_NUMBERS : CFXI_WHAT_ANY;
}

cfxi_what cfxi_lower_what(const cfxi_lower *l, cfx_value v)
{
    switch ((cfx_kind)v.kind) {
    case CFX_KIND_NODE: {
        const cfx_value known = cfx_node_map_get(l->what, v.as.node);
        return known.kind == CFX_KIND_INT ? (cfxi_what)known.as.i : CFXI_WHAT_ANY;
    }
    case CFX_KIND_NONE: return CFXI_WHAT_NONE;
    case CFX_KIND_BOOL:
    case CFX_KIND_INT:
    case CFX_KIND_FLOAT:
    case CFX_KIND_COMPLEX: return CFXI_WHAT_NUMBER;
    case CFX_KIND_DTYPE: return CFXI_WHAT_DTYPE;
    case CFX_KIND_DEVICE: return CFXI_WHAT_DEVICE;
    case CFX_KIND_LIST:
    case CFX_KIND_TUPLE: return items_what(l, v);
    default: return CFXI_WHAT_ANY;
    }
}

/* ---- nodes --------------------------------------------------------------------------------- */

typedef struct attribute_what {
    const char *name;
    cfxi_what what;
} attribute_what;

static const attribute_what attributes[] = {
    {"shape", CFXI_WHAT_NUMBERS}, {"dtype", CFXI_WHAT_DTYPE},   {"device", CFXI_WHAT_DEVICE},
    {"ndim", CFXI_WHAT_NUMBER},   {"T", CFXI_WHAT_TENSOR},      {"mT", CFXI_WHAT_TENSOR},
    {"H", CFXI_WHAT_TENSOR},      {"mH", CFXI_WHAT_TENSOR},     {"data", CFXI_WHAT_TENSOR},
    {"real", CFXI_WHAT_TENSOR},   {"imag", CFXI_WHAT_TENSOR},   {"is_cuda", CFXI_WHAT_NUMBER},
    {"requires_grad", CFXI_WHAT_NUMBER},
};

static cfxi_what attribute_gives(const cfxi_lower *l, const cfx_node *n)
{
    const cfx_value name = cfx_node_arg(n, 1);
    const cfxi_what base = cfxi_lower_what(l, cfx_node_arg(n, 0));
    if (base == CFXI_WHAT_LIMITS)
        return CFXI_WHAT_NUMBER;
    for (size_t i = 0; name.kind == CFX_KIND_STR && i < sizeof attributes / sizeof *attributes; i++)
        if (strcmp(cfx_value_text(name, NULL), attributes[i].name) == 0)
            return attributes[i].what;
    return CFXI_WHAT_ANY;
}

/* The item of a tuple that is written down, in the node or in the call that makes it. */
static const cfx_value *literal_item(cfx_value whole, cfx_value index)
{
    size_t n;
    if (whole.kind == CFX_KIND_NODE && cfx_node_operator(whole.as.node) == CFX_OPID_tuple)
        whole = cfx_node_arg(whole.as.node, 0);
    const cfx_value *items = cfx_value_items(whole, &n);
    return index.kind == CFX_KIND_INT && index.as.i >= 0 && (uint64_t)index.as.i < n
               ? &items[index.as.i] : NULL;
}

static bool takes_regions(cfx_value v)
{
    return v.kind == CFX_KIND_NODE && cfx_operator_regions(cfx_node_operator(v.as.node)) > 0;
}

static cfxi_what item_gives(const cfxi_lower *l, const cfx_node *n)
{
    const cfx_value index = cfx_node_arg(n, 1);
    const cfx_value whole = cfx_node_arg(n, 0);
    const cfxi_what base = cfxi_lower_what(l, whole);
    const bool part = index.kind == CFX_KIND_SLICE;
    const cfx_value *item = literal_item(whole, index);
    if (item)
        return cfxi_lower_what(l, *item);
    if (takes_regions(whole) && index.kind == CFX_KIND_INT && index.as.i >= 0)
        return cfxi_lower_region_item(l, whole.as.node, (size_t)index.as.i);
    switch (base) {
    case CFXI_WHAT_TENSOR: return CFXI_WHAT_TENSOR;
    case CFXI_WHAT_TENSORS: return part ? CFXI_WHAT_TENSORS : CFXI_WHAT_TENSOR;
    case CFXI_WHAT_NUMBERS: return part ? CFXI_WHAT_NUMBERS : CFXI_WHAT_NUMBER;
    default: return CFXI_WHAT_ANY;
    }
}

/* Arithmetic on numbers gives numbers, on sizes sizes, on lists of tensors such lists. An empty
 * list may be either. */
static cfxi_what tensor_or_number(const cfxi_lower *l, const cfx_node *n, cfx_operator op)
{
    cfx_schema_param param;
    bool all_numbers = true;
    cfxi_what list = CFXI_WHAT_ANY;
    for (size_t i = 0; cfx_operator_param(op, i, &param); i++) {
        if (strcmp(param.type, "Tensor") != 0)
            continue;
        size_t size;
        const cfx_value v = cfx_node_arg(n, i);
        const cfxi_what what = cfxi_lower_what(l, v);
        if (what == CFXI_WHAT_TENSOR)
            return what;
        if (what == CFXI_WHAT_TENSORS)
            list = what;
        all_numbers = all_numbers && what == CFXI_WHAT_NUMBER;
        if (what == CFXI_WHAT_NUMBERS && list == CFXI_WHAT_ANY &&
            (v.kind == CFX_KIND_NODE || (cfx_value_items(v, &size) && size > 0)))
            list = what;
    }
    if (list != CFXI_WHAT_ANY)
        return op == CFX_OPID_add || op == CFX_OPID_mul ? list : CFXI_WHAT_NUMBER;
    const bool sign = cfx_operator_num_params(op) > 0 && cfx_operator_param(op, 0, &param) &&
                      strcmp(param.type, "Tensor") == 0;
    return sign && all_numbers ? CFXI_WHAT_NUMBER : sign ? CFXI_WHAT_ANY : CFXI_WHAT_TENSOR;
}

static cfxi_what type_gives(const char *type)
{
    if (strcmp(type, "Tensor") == 0)
        return CFXI_WHAT_TENSOR;
    if (strcmp(type, "Tensor[]") == 0)
        return CFXI_WHAT_TENSORS;
    if (strcmp(type, "int") == 0 || strcmp(type, "float") == 0 || strcmp(type, "bool") == 0 ||
        strcmp(type, "Scalar") == 0)
        return CFXI_WHAT_NUMBER;
    return CFXI_WHAT_ANY;
}

/* A row of a library: several results are tensors if all of them are. */
static cfxi_what custom_gives(const cfx_custom_operator *f)
{
    cfx_schema_param result;
    bool tensors = true;
    size_t n = 0;
    for (; cfxi_ops_schema_result(f->schema, n, &result); n++)
        tensors = tensors && type_gives(result.type) == CFXI_WHAT_TENSOR;
    if (n == 1)
        return type_gives(result.type);
    return n == 0 ? CFXI_WHAT_NONE : tensors ? CFXI_WHAT_TENSORS : CFXI_WHAT_ANY;
}

static cfxi_what call_gives(const cfxi_lower *l, const cfx_node *n)
{
    const cfx_operator op = cfx_node_operator(n);
    const cfx_custom_operator *custom = cfxi_rt_node_custom(n, l->library);
    cfx_schema_param result;
    if (custom)
        return custom_gives(custom);
    if (op == CFX_OPID_getitem)
        return item_gives(l, n);
    if (op == CFX_OPID_getattr)
        return attribute_gives(l, n);
    if (cfx_operator_regions(op) > 0)
        return cfxi_lower_region_item(l, n, SIZE_MAX);
    if (op == CFX_OPID_size)
        return cfx_node_num_args(n) > 1 ? CFXI_WHAT_NUMBER : CFXI_WHAT_NUMBERS;
    if (cfx_operator_num_results(op) != 1 || !cfx_operator_result(op, 0, &result))
        return cfx_operator_num_results(op) > 1 ? CFXI_WHAT_TENSORS : CFXI_WHAT_NONE;
    return strcmp(result.type, "Tensor") == 0 ? tensor_or_number(l, n, op)
                                              : type_gives(result.type);
}

/* An input is a tensor unless it says something else. */
static cfxi_what input_is(const cfxi_lower *l, const cfx_node *n)
{
    cfx_error ignored = {0};
    const cfx_value type = cfx_node_type(n);
    const cfx_value value = cfx_node_arg(n, 0);
    const char *name = type.kind == CFX_KIND_HOST ? cfx_value_host_name(n->graph, type, &ignored)
                                                  : NULL;
    if (name && (strcmp(name, "builtins.int") == 0 || strcmp(name, "builtins.float") == 0 ||
                 strcmp(name, "builtins.bool") == 0 || strcmp(name, "int") == 0 ||
                 strcmp(name, "float") == 0 || strcmp(name, "bool") == 0))
        return CFXI_WHAT_NUMBER;
    if (value.kind != CFX_KIND_INVALID && value.kind != CFX_KIND_NONE)
        return cfxi_lower_what(l, value);
    const bool many = n->callee->ref->name->data[0] == '*';
    return many ? CFXI_WHAT_ANY : CFXI_WHAT_TENSOR;
}

cfx_status cfxi_lower_note(cfxi_lower *l, const cfx_node *n)
{
    const cfxi_what what = n->op == CFX_OP_PLACEHOLDER ? input_is(l, n)
                           : n->op == CFX_OP_GET_ATTR  ? CFXI_WHAT_TENSOR
                                                       : call_gives(l, n);
    return cfx_node_map_set(l->what, n, cfx_value_int(what), l->err);
}

/* ---- parameters ---------------------------------------------------------------------------- */

static bool is_type(const char *type, const char *name)
{
    const size_t size = strlen(name);
    return strncmp(type, name, size) == 0 && (type[size] == '\0' || type[size] == '?');
}

static bool is_host(cfx_value v) { return v.kind == CFX_KIND_HOST; }

static bool is_list(cfxi_what what, cfx_value v)
{
    return what == CFXI_WHAT_NUMBERS || what == CFXI_WHAT_TENSORS || v.kind == CFX_KIND_LIST ||
           v.kind == CFX_KIND_TUPLE;
}

/* Of a value that is no list. */
static bool fits_one(const char *type, cfx_value v, cfxi_what what, bool strictly)
{
    const bool open = what == CFXI_WHAT_ANY && v.kind == CFX_KIND_NODE;
    const bool tensor = what == CFXI_WHAT_TENSOR;
    const bool number = what == CFXI_WHAT_NUMBER;
    if (strncmp(type, "Tensor", 6) == 0)
        return tensor || number || open || (what == CFXI_WHAT_NUMBERS && !strictly);
    if (strncmp(type, "int", 3) == 0)
        return open || (number && v.kind != CFX_KIND_FLOAT && v.kind != CFX_KIND_COMPLEX &&
                        (v.kind != CFX_KIND_BOOL || !strictly)) || (tensor && !strictly);
    if (strncmp(type, "float", 5) == 0)
        return open || (number && (v.kind != CFX_KIND_BOOL || !strictly)) || (tensor && !strictly);
    if (strncmp(type, "bool", 4) == 0)
        return open || v.kind == CFX_KIND_BOOL || (number && v.kind == CFX_KIND_NODE) ||
               (!strictly && (number || tensor));
    if (strncmp(type, "Scalar", 6) == 0 && type[6] != 'T')
        return open || number || tensor || (v.kind == CFX_KIND_STR && !strictly);
    if (strncmp(type, "str", 3) == 0)
        return open || v.kind == CFX_KIND_STR;
    if (strncmp(type, "ScalarType", 10) == 0)
        return open || what == CFXI_WHAT_DTYPE || is_host(v);
    if (strncmp(type, "Device", 6) == 0)
        return open || what == CFXI_WHAT_DEVICE || v.kind == CFX_KIND_STR || is_host(v);
    if (strncmp(type, "Layout", 6) == 0)
        return open || v.kind == CFX_KIND_LAYOUT;
    if (strncmp(type, "MemoryFormat", 12) == 0)
        return open || v.kind == CFX_KIND_MEMORY_FORMAT;
    if (strncmp(type, "Graph", 5) == 0)
        return v.kind == CFX_KIND_GRAPH;
    return true;
}

bool cfxi_lower_fits(const cfxi_lower *l, const char *type, cfx_value v, bool strictly)
{
    const cfxi_what what = cfxi_lower_what(l, v);
    const char *bracket = strchr(type, '[');
    if (v.kind == CFX_KIND_NONE)
        return type[strlen(type) - 1] == '?' || is_type(type, "Any") || is_type(type, "Generator");
    if (!bracket)
        return !is_list(what, v) || is_type(type, "Any") ||
               (what == CFXI_WHAT_NUMBERS && is_type(type, "Tensor"))
                   ? fits_one(type, v, what, strictly) : false;
    if (v.kind != CFX_KIND_LIST && v.kind != CFX_KIND_TUPLE) {
        if (what == CFXI_WHAT_NUMBERS || what == CFXI_WHAT_TENSORS)
            return (what == CFXI_WHAT_TENSORS) == (strncmp(type, "Tensor", 6) == 0) ||
                   strncmp(type, "Any", 3) == 0;
        /* padding="same" */
        return fits_one(type, v, what, strictly) ||
               (v.kind == CFX_KIND_STR && strncmp(type, "int", 3) == 0 && !strictly);
    }
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    for (size_t i = 0; i < n; i++)
        if (!(items[i].kind == CFX_KIND_NONE && bracket > type && bracket[-1] == '?') &&
            !fits_one(type, items[i], cfxi_lower_what(l, items[i]), strictly))
            return false;
    return true;
}
