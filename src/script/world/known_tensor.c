/* known_tensor.c - tensors that are known: computed at once, by a graph of one node that is
 * lowered and run; so a call means here what it means in the graph. */
#include "world_impl.h"

#include <cfx/lower.h>

cfx_object *cfxi_world_tensor_object(cfxi_world *w, cfx_tensor *t, cfx_error *err)
{
    cfx_object *o = cfxi_world_object_new(w, CFXI_TYPE_TENSOR, err);
    if (o)
        o->as.tensor = cfx_tensor_retain(t);
    return o;
}

/* ---- data ---------------------------------------------------------------------------------- */

static cfx_object *from_items(cfxi_world *w, cfx_datum d, cfx_error *err)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    const bool dict = d.kind == CFX_DATUM_DICT;
    cfx_object *o = dict ? cfxi_world_dict_object(w, CFXI_TYPE_DICT, err)
                         : cfxi_world_seq_object(w, d.kind == CFX_DATUM_LIST    ? CFXI_TYPE_LIST
                                                : d.kind == CFX_DATUM_TUPLE ? CFXI_TYPE_TUPLE
                                                                            : CFXI_TYPE_SLICE,
                                                 NULL, 0, err);
    for (size_t i = 0; o && i < n; i += dict ? 2 : 1) {
        cfx_object *item = cfxi_world_from_datum(w, items[i], err);
        cfx_object *value = dict && item ? cfxi_world_from_datum(w, items[i + 1], err) : NULL;
        const bool good = item && (!dict || value) &&
                          (dict ? cfxi_world_dict_set(o, item, value, err)
                                : cfxi_world_list_append(o, item, err)) == CFX_OK;
        cfxi_world_unref(value);
        cfxi_world_unref(item);
        if (!good)
            cfxi_world_clear(&o);
    }
    return o;
}

cfx_object *cfxi_world_from_datum(cfxi_world *w, cfx_datum d, cfx_error *err)
{
    size_t n;
    const char *text = cfx_datum_text(d, &n);
    switch ((cfx_datum_kind)d.kind) {
    case CFX_DATUM_NONE: return cfxi_world_none(w);
    case CFX_DATUM_ELLIPSIS: return cfxi_world_ref(w->ellipsis);
    case CFX_DATUM_BOOL: return cfxi_world_truth_object(w, d.as.b);
    case CFX_DATUM_INT: return cfxi_world_int_object(w, d.as.i, err);
    case CFX_DATUM_FLOAT: return cfxi_world_float_object(w, d.as.f, err);
    case CFX_DATUM_COMPLEX: return cfxi_world_complex_object(w, d.as.c[0], d.as.c[1], err);
    case CFX_DATUM_DTYPE: return cfxi_world_numbered(w, CFXI_TYPE_DTYPE, d.as.i, err);
    case CFX_DATUM_LAYOUT: return cfxi_world_numbered(w, CFXI_TYPE_LAYOUT, d.as.i, err);
    case CFX_DATUM_MEMORY_FORMAT:
        return cfxi_world_numbered(w, CFXI_TYPE_MEMORY_FORMAT, d.as.i, err);
    case CFX_DATUM_STR: return cfxi_world_text_object(w, CFXI_TYPE_STR, text, n, err);
    case CFX_DATUM_DEVICE: return cfxi_world_text_object(w, CFXI_TYPE_DEVICE, text, n, err);
    case CFX_DATUM_TENSOR: return cfxi_world_tensor_object(w, d.as.tensor, err);
    case CFX_DATUM_LIST:
    case CFX_DATUM_TUPLE:
    case CFX_DATUM_DICT:
    case CFX_DATUM_SLICE: return from_items(w, d, err);
    case CFX_DATUM_REGION:
    case CFX_DATUM_INVALID: break;
    }
    cfx_error_set(err, CFX_E_TYPE, "a region or an invalid value cannot be used in a script");
    return NULL;
}

static cfx_datum to_items(cfxi_world *w, cfx_object *o, cfx_datum_kind kind, cfx_error *err)
{
    cfxi_vec data = {0};
    cfx_datum d = cfx_datum_invalid();
    const bool dict = o->type == CFXI_TYPE_DICT;
    const size_t n = dict ? o->as.dict.n * 2 : o->as.seq.n;
    cfx_object *key = NULL;
    cfx_object *value = NULL;
    if (cfxi_world_deeper(w, err) != CFX_OK)
        return d;
    bool good = cfxi_base_vec_reserve(&data, n + 1, sizeof d, w->allocator);
    if (!good)
        cfxi_base_nomem(err);
    cfx_datum *out = data.data;
    size_t at = 0;
    for (size_t i = 0; good && i < n; i++) {
        if (dict && i % 2 == 0)
            cfxi_world_dict_next(o, &at, &key, &value);
        out[i] = cfxi_world_to_datum(w, !dict ? o->as.seq.items[i] : i % 2 ? value : key, err);
        good = out[i].kind != CFX_DATUM_INVALID;
        data.size += good;
    }
    if (good)
        d = cfx_datum_seq(kind, out, n, w->allocator, err);
    for (size_t i = 0; i < data.size; i++)
        cfx_datum_release(out[i]);
    cfxi_base_vec_free(&data, sizeof d, w->allocator);
    w->depth--;
    return d;
}

cfx_datum cfxi_world_to_datum(cfxi_world *w, cfx_object *o, cfx_error *err)
{
    switch ((cfxi_type)o->type) {
    case CFXI_TYPE_NONE: return cfx_datum_none();
    case CFXI_TYPE_ELLIPSIS: return cfx_datum_scalar(CFX_DATUM_ELLIPSIS, 0);
    case CFXI_TYPE_BOOL: return cfx_datum_bool(o->as.b);
    case CFXI_TYPE_INT: return cfx_datum_int(o->as.i);
    case CFXI_TYPE_FLOAT: return cfx_datum_float(o->as.f);
    case CFXI_TYPE_COMPLEX: return cfx_datum_complex(o->as.c[0], o->as.c[1]);
    case CFXI_TYPE_DTYPE: return cfx_datum_dtype((cfx_dtype)o->as.i);
    case CFXI_TYPE_LAYOUT: return cfx_datum_scalar(CFX_DATUM_LAYOUT, o->as.i);
    case CFXI_TYPE_MEMORY_FORMAT: return cfx_datum_scalar(CFX_DATUM_MEMORY_FORMAT, o->as.i);
    case CFXI_TYPE_STR:
    case CFXI_TYPE_DEVICE:
        return cfx_datum_from_text(o->type == CFXI_TYPE_STR ? CFX_DATUM_STR : CFX_DATUM_DEVICE,
                                   o->as.text.data, o->as.text.size, w->allocator, err);
    case CFXI_TYPE_TENSOR: return cfx_datum_tensor(cfx_tensor_retain(o->as.tensor));
    case CFXI_TYPE_TUPLE: return to_items(w, o, CFX_DATUM_TUPLE, err);
    case CFXI_TYPE_LIST: return to_items(w, o, CFX_DATUM_LIST, err);
    case CFXI_TYPE_DICT: return to_items(w, o, CFX_DATUM_DICT, err);
    case CFXI_TYPE_SLICE: return to_items(w, o, CFX_DATUM_SLICE, err);
    default:
        cfxi_world_throw(w, err, CFXI_TypeError, "an object of type '%s' cannot be used here",
                         cfxi_world_type_name(o));
        return cfx_datum_invalid();
    }
}

/* ---- computing ----------------------------------------------------------------------------- */

typedef struct computing {
    cfxi_world *w;
    cfx_graph *g;
    cfx_object *tensors;    /* a list: one for each placeholder */
    cfx_node *next;         /* the placeholder of the next one */
} computing;

/* The tensors in an object become placeholders, which must stand before the call. */
static cfx_status add_inputs(computing *c, cfx_object *o, cfx_error *err)
{
    cfx_object *key;
    cfx_object *value;
    if (o->type == CFXI_TYPE_TENSOR)
        return cfxi_world_list_append(c->tensors, o, err);
    CFX_TRY(cfxi_world_deeper(c->w, err));
    cfx_status status = CFX_OK;
    const bool seq = o->type == CFXI_TYPE_TUPLE || o->type == CFXI_TYPE_LIST ||
                     o->type == CFXI_TYPE_SLICE;
    for (size_t i = 0; seq && status == CFX_OK && i < o->as.seq.n; i++)
        status = add_inputs(c, o->as.seq.items[i], err);
    for (size_t at = 0; o->type == CFXI_TYPE_DICT && status == CFX_OK &&
         cfxi_world_dict_next(o, &at, &key, &value);)
        status = add_inputs(c, value, err);
    c->w->depth--;
    return status;
}

/* The objects with placeholders in the place of tensors: recorded as if they were graph values. */
static cfx_object *replaced(computing *c, cfx_object *o, cfx_error *err)
{
    cfxi_world *w = c->w;
    cfx_object *key;
    cfx_object *value;
    if (o->type == CFXI_TYPE_TENSOR) {
        cfx_node *n = c->next;
        c->next = cfx_node_next(n);
        return cfxi_world_value_object(w, n, err);
    }
    const bool seq = o->type == CFXI_TYPE_TUPLE || o->type == CFXI_TYPE_LIST ||
                     o->type == CFXI_TYPE_SLICE;
    if ((!seq && o->type != CFXI_TYPE_DICT) || !cfxi_world_has_value(o, true))
        return cfxi_world_ref(o);  /* what else there is, no call takes: the graph will say so */
    cfx_object *made = cfxi_world_object_new(w, (cfxi_type)o->type, err);
    for (size_t i = 0; made && seq && i < o->as.seq.n; i++) {
        cfx_object *item = replaced(c, o->as.seq.items[i], err);
        if (!item || cfxi_world_list_append(made, item, err) != CFX_OK)
            cfxi_world_clear(&made);
        cfxi_world_unref(item);
    }
    for (size_t at = 0; made && o->type == CFXI_TYPE_DICT &&
         cfxi_world_dict_next(o, &at, &key, &value);) {
        cfx_object *item = replaced(c, value, err);
        if (!item || cfxi_world_dict_set(made, key, item, err) != CFX_OK)
            cfxi_world_clear(&made);
        cfxi_world_unref(item);
    }
    return made;
}

/* The graph of the call. */
static cfx_status build(computing *c, cfx_opcode op, const char *target, const cfx_call_args *a,
                        cfx_error *err)
{
    cfxi_world *w = c->w;
    cfx_object *args[CFXI_MOST_ARGS];
    size_t made = 0;
    cfx_object *call = NULL;
    if (a->n > CFXI_MOST_ARGS)
        return cfx_error_set(err, CFX_E_LIMIT, "calls with more than %d arguments are "
                             "not supported",
                             CFXI_MOST_ARGS);
    for (size_t i = 0; i < a->n; i++)
        CFX_TRY(add_inputs(c, a->args[i], err));
    for (size_t i = 0; i < c->tensors->as.seq.n; i++)
        if (!cfx_graph_placeholder(c->g, "x", err))
            return err->status;
    c->next = cfx_graph_first(c->g);
    for (; made < a->n; made++) {
        args[made] = replaced(c, a->args[made], err);
        if (!args[made])
            break;
    }
    if (made == a->n) {
        const cfx_call_args all = {args, a->n, a->names, a->n_named};
        call = cfxi_world_record(w, op, target, &all, err);
    }
    while (made > 0)
        cfxi_world_unref(args[--made]);
    cfx_status status = call ? CFX_OK : err->status;
    if (status == CFX_OK && !cfx_graph_output(c->g, cfx_value_node(call->as.node), err))
        status = err->status;
    cfxi_world_unref(call);
    return status;
}

static cfx_datum run(computing *c, cfx_error *err)
{
    cfx_runtime *rt = cfx_scope_runtime(c->w->scope);
    cfx_datum inputs[CFXI_MOST_ARGS];
    cfx_datum d = cfx_datum_invalid();
    const size_t n = c->tensors->as.seq.n;
    if (n > CFXI_MOST_ARGS) {
        cfx_error_set(err, CFX_E_LIMIT, "calls with more than %d tensors are "
                      "not supported", CFXI_MOST_ARGS);
        return d;
    }
    if (cfx_graph_lower(c->g, NULL, NULL, err) != CFX_OK)
        return d;
    cfx_program *p = cfx_program_new(c->g, NULL, NULL, err);
    for (size_t i = 0; p && i < n; i++)
        inputs[i] = cfx_datum_tensor(c->tensors->as.seq.items[i]->as.tensor);
    if (p)
        d = cfx_program_run(p, rt, inputs, n, err);
    cfx_program_free(p);
    return d;
}

/* What fails is said of a call in the program, not of a node in a graph that nobody sees. */
static void without_node(cfx_error *err)
{
    char *node = strstr(err->message, " (node %");
    if (node)
        *node = '\0';
}

cfx_object *cfxi_world_compute(cfxi_world *w, cfx_opcode op, const char *target,
                               const cfx_call_args *a, cfx_error *err)
{
    cfx_error why = {0};
    computing c = {.w = w, .g = cfx_graph_new(w->allocator, NULL, &why)};
    cfx_object *result = NULL;
    cfx_graph *outer = w->graph;
    const char *file = w->file;
    const size_t entered = w->entered.size;
    c.tensors = c.g ? cfxi_world_seq_object(w, CFXI_TYPE_LIST, NULL, 0, &why) : NULL;
    w->graph = c.g;
    w->file = NULL;
    w->entered.size = 0;  /* scopes are the outer graph's */
    cfx_datum d = cfx_datum_invalid();
    if (c.tensors && build(&c, op, target, a, &why) == CFX_OK)
        d = run(&c, &why);
    w->graph = outer;
    w->file = file;
    w->entered.size = entered;
    for (size_t i = 0; d.kind == CFX_DATUM_TENSOR && i < c.tensors->as.seq.n; i++)
        if (!result && c.tensors->as.seq.items[i]->as.tensor == d.as.tensor)
            result = cfxi_world_ref(c.tensors->as.seq.items[i]);  /* in place: it is the same */
    if (d.kind == CFX_DATUM_INVALID) {
        without_node(&why);
        cfxi_world_throw_error(w, &why, err);
    } else if (!result) {
        result = cfxi_world_from_datum(w, d, err);
    }
    cfx_datum_release(d);
    cfxi_world_unref(c.tensors);
    cfx_graph_release(c.g);
    return result;
}

/* ---- attributes ---------------------------------------------------------------------------- */

/* What is read of a tensor without a call. The last are fields of results with several parts. */
static const char *const properties[] = {
    "shape", "dtype", "device", "ndim", "T", "mT", "H", "mH", "data", "real", "imag", "layout",
    "requires_grad", "is_cuda", "grad", "itemsize", "nbytes", "is_sparse", "is_quantized",
    "values", "indices", "mode", "eigenvalues", "eigenvectors", "Q", "R", "U", "S", "Vh", NULL,
};

/* What is known of a tensor whatever its elements are. */
static cfx_object *static_fact(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err)
{
    const cfx_tensor *t = o->as.tensor;
    if (strcmp(name, "dtype") == 0)
        return cfxi_world_numbered(w, CFXI_TYPE_DTYPE, cfx_tensor_dtype(t), err);
    if (strcmp(name, "ndim") == 0)
        return cfxi_world_int_object(w, (int64_t)cfx_tensor_ndim(t), err);
    if (strcmp(name, "requires_grad") == 0)
        return cfxi_world_truth_object(w, o->flag);
    if (strcmp(name, "is_cuda") == 0 || strcmp(name, "is_sparse") == 0)
        return cfxi_world_truth_object(w, false);
    if (strcmp(name, "grad") == 0)
        return cfxi_world_none(w);
    if (strcmp(name, "device") == 0)
        return cfxi_world_text_object(w, CFXI_TYPE_DEVICE, "cpu", 3, err);
    if (strcmp(name, "data") == 0)
        return o->flag ? cfxi_world_tensor_object(w, o->as.tensor, err) : cfxi_world_ref(o);
    if (strcmp(name, "shape") != 0)
        return NULL;
    cfx_object *sizes = cfxi_world_seq_object(w, CFXI_TYPE_TUPLE, NULL, 0, err);
    for (size_t i = 0; sizes && i < cfx_tensor_ndim(t); i++) {
        cfx_object *size = cfxi_world_int_object(w, cfx_tensor_sizes(t)[i], err);
        if (!size || cfxi_world_list_append(sizes, size, err) != CFX_OK)
            cfxi_world_clear(&sizes);
        cfxi_world_unref(size);
    }
    return sizes;
}

/* x.dtype, x.device: what is read of them has the name of a method of tensors at times. */
static bool is_of_type(const cfx_node *n)
{
    size_t size;
    const cfx_value name = cfx_node_num_args(n) > 1 ? cfx_node_arg(n, 1) : cfx_value_none();
    const char *text = name.kind == CFX_KIND_STR ? cfx_value_text(name, &size) : NULL;
    return text && n->op == CFX_OP_CALL_FUNCTION && cfx_node_operator(n) == CFX_OPID_getattr &&
           (strcmp(text, "dtype") == 0 || strcmp(text, "device") == 0);
}

cfx_object *cfxi_world_tensor_get(cfxi_world *w, cfx_object *o, const char *name, cfx_error *err)
{
    err->status = CFX_OK;
    cfx_object *made = o->type == CFXI_TYPE_TENSOR ? static_fact(w, o, name, err) : NULL;
    if (made || err->status != CFX_OK)
        return made;
    if (strcmp(name, "__class__") == 0)
        return cfxi_world_class_of(w, o, err);
    cfx_object *word = cfxi_world_str(w, name, err);
    if (!word)
        return NULL;
    const bool field = o->type == CFXI_TYPE_VALUE &&  /* of a result with several parts */
                       (cfxi_ops_of_method(name, strlen(name)) == CFX_OPID_NONE ||
                        is_of_type(o->as.node));
    const bool property = field || cfxi_world_is_word(name, properties);
    cfx_object *pair[] = {o, word};
    if (o->type == CFXI_TYPE_TENSOR && property && cfx_script_is_fact(name))
        made = cfxi_world_compute(w, CFX_OP_CALL_FUNCTION, "builtins.getattr",
                                  &(cfx_call_args){.args = pair, .n = 2}, err);
    else if (property)
        made = cfxi_world_perform_on(w, "builtins.getattr", o, word, err);
    else
        made = cfxi_world_parts_object(w, CFXI_TYPE_ATTRIBUTE, o, word, NULL, err);
    cfxi_world_unref(word);
    return made;
}
