/* package_signature.c - what the graph of a file takes and gives: read, checked, printed.
 *
 * signature.ir is a graph that returns one dict (docs/format.md). "structure" is not looked at: it
 * is for Python.
 */
#include "capture_impl.h"

#include <cfx/signature.h>

enum {
    MOST_INPUTS = 10000,  /* names are compared with one another */
    FEW_TERMS = 32        /* sizes of guards for which the C stack has room */
};

struct cfx_signature {
    const cfx_allocator *allocator;
    cfxi_arena arena;               /* inputs, results and their texts */
    cfx_signature_input *inputs;
    cfx_datum *values;              /* for each input: the first value of a number that is state */
    size_t num_inputs;
    size_t num_arguments;
    cfx_signature_result *results;
    size_t num_results;
    cfx_guards *guards;             /* or NULL */
    cfxi_nesting *slots;               /* attributes that the model keeps */
    size_t num_slots;
    cfxi_nesting *present;             /* `after`: how each of them is nested in the file */
    size_t num_present;
    cfxi_literal *literals;         /* state that becomes a number which is the same in each run */
    size_t num_literals;
    const char *refused;            /* why the graph cannot run in C; or NULL */
};

/* ---- reading ------------------------------------------------------------------------------- */

static cfx_status complain(const char *field, size_t i, const char *what, cfx_error *err)
{
    return cfx_error_set(err, CFX_E_VALUE, "%s[%zu] %s", field, i, what);
}

static const char *keep_text(cfx_signature *s, cfx_value v, cfx_error *err)
{
    size_t size;
    const char *text = cfx_value_text(v, &size);
    char *copy = cfxi_base_arena_alloc(&s->arena, size + 1);
    if (!copy)
        cfxi_base_nomem(err);
    return copy ? memcpy(copy, text, size + 1) : NULL;
}

static cfx_status read_size(cfx_signature *s, cfx_value v, int64_t *size, const char **name,
                            cfx_error *err)
{
    *size = -1;
    *name = NULL;
    if (v.kind == CFX_KIND_STR) {
        *name = keep_text(s, v, err);
        return *name ? CFX_OK : CFX_E_NOMEM;
    }
    if (v.kind == CFX_KIND_INT && v.as.i >= 0)
        *size = v.as.i;
    else if (v.kind != CFX_KIND_NONE)
        return cfx_error_set(err, CFX_E_VALUE, "has a size that is not a number, a name or None");
    return CFX_OK;
}

static cfx_status read_sizes(cfx_signature *s, cfx_value v, cfx_signature_input *in, cfx_error *err)
{
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    if (v.kind == CFX_KIND_NONE)
        return CFX_OK;
    if (v.kind != CFX_KIND_TUPLE)
        return cfx_error_set(err, CFX_E_VALUE, "has sizes that are not a tuple");
    if (n > CFX_MAX_DIMS)
        return cfx_error_set(err, CFX_E_VALUE, "has %zu dimensions; at most %d are possible", n,
                             CFX_MAX_DIMS);
    int64_t *sizes = cfxi_base_arena_zeros(&s->arena, n, sizeof *sizes);
    const char **dims = cfxi_base_arena_zeros(&s->arena, n, sizeof *dims);
    if (!sizes || !dims)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < n; i++)
        CFX_TRY(read_size(s, items[i], &sizes[i], &dims[i], err));
    in->rank = (int)n;
    in->sizes = sizes;
    in->dims = dims;
    return CFX_OK;
}

/* (name, "tensor", dtype or None, sizes or None) */
static cfx_status read_tensor_input(cfx_signature *s, const cfx_value *row, size_t n,
                                    cfx_signature_input *in, cfx_error *err)
{
    if (n < 4)
        return cfx_error_set(err, CFX_E_VALUE, "is a tensor without a type and sizes");
    if (row[2].kind == CFX_KIND_DTYPE)
        in->dtype = (cfx_dtype)row[2].as.i;
    else if (row[2].kind != CFX_KIND_NONE)
        return cfx_error_set(err, CFX_E_VALUE, "has a type that is neither a dtype nor None");
    return read_sizes(s, row[3], in, err);
}

/* A number that is state has its first value behind its kind. */
static cfx_status read_number(const cfx_value *row, size_t n, cfx_datum_kind kind, cfx_datum *value,
                              cfx_error *err)
{
    const cfx_value v = n > 2 ? row[2] : cfx_value_invalid();
    if (v.kind == CFX_KIND_NONE)
        return CFX_OK;  /* the model had no such state when it was saved: another graph makes it */
    if (kind == CFX_DATUM_INT && v.kind == CFX_KIND_INT)
        *value = cfx_datum_int(v.as.i);
    else if (kind == CFX_DATUM_FLOAT && v.kind == CFX_KIND_FLOAT)
        *value = cfx_datum_float(v.as.f);
    else if (kind == CFX_DATUM_BOOL && v.kind == CFX_KIND_BOOL)
        *value = cfx_datum_bool(v.as.b);
    else
        return cfx_error_set(err, CFX_E_VALUE, "is state without a first value of its type");
    return CFX_OK;
}

static bool kind_of_name(const char *name, cfx_datum_kind *kind)
{
    static const struct { const char *name; cfx_datum_kind kind; } rows[] = {
        {"tensor", CFX_DATUM_TENSOR}, {"int", CFX_DATUM_INT}, {"float", CFX_DATUM_FLOAT},
        {"bool", CFX_DATUM_BOOL}, {"any", CFX_DATUM_INVALID}};
    for (size_t i = 0; name && i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *kind = rows[i].kind;
            return true;
        }
    }
    return false;
}

static cfx_status read_input(cfx_signature *s, cfx_value v, bool state, cfx_error *err)
{
    size_t n;
    const cfx_value *row = cfx_value_items(v, &n);
    cfx_signature_input *in = &s->inputs[s->num_inputs];
    cfx_datum *value = &s->values[s->num_inputs];
    *in = (cfx_signature_input){.dtype = CFX_DTYPE_COUNT, .rank = -1, .state = state};
    *value = cfx_datum_invalid();
    if (v.kind != CFX_KIND_TUPLE || n < 2 || row[0].kind != CFX_KIND_STR ||
        row[1].kind != CFX_KIND_STR)
        return cfx_error_set(err, CFX_E_VALUE, "is not a tuple of a name, a kind, ...");
    if (!kind_of_name(cfx_value_text(row[1], NULL), &in->kind))
        return cfx_error_set(err, CFX_E_VALUE, "is of the unknown kind '%.40s'",
                             cfx_value_text(row[1], NULL));
    in->name = keep_text(s, row[0], err);
    if (!in->name)
        return CFX_E_NOMEM;
    if (in->kind == CFX_DATUM_TENSOR)
        CFX_TRY(read_tensor_input(s, row, n, in, err));
    else if (state)
        CFX_TRY(read_number(row, n, in->kind, value, err));
    s->num_inputs++;
    return CFX_OK;
}

/* "inputs[2] is ..." */
static cfx_status read_inputs(cfx_signature *s, cfx_value list, const char *field, bool state,
                              cfx_error *err)
{
    size_t n;
    const cfx_value *items = cfx_value_items(list, &n);
    for (size_t i = 0; i < n; i++) {
        cfx_error why = {0};
        const cfx_status status = read_input(s, items[i], state, &why);
        if (status == CFX_E_NOMEM)
            return cfxi_base_nomem(err);
        if (status != CFX_OK)
            return complain(field, i, why.message, err);
    }
    return CFX_OK;
}

static bool is_kept_already(const cfx_signature *s, const char *name)
{
    for (size_t i = 0; i < s->num_results; i++)
        if (s->results[i].state && strcmp(s->results[i].name, name) == 0)
            return true;
    return false;
}

/* (name, whether it is state) */
static cfx_status read_result(cfx_signature *s, cfx_value v, size_t i, cfx_error *err)
{
    size_t n;
    const cfx_value *row = cfx_value_items(v, &n);
    if (v.kind != CFX_KIND_TUPLE || n < 2 || row[0].kind != CFX_KIND_STR ||
        row[1].kind != CFX_KIND_BOOL)
        return complain("results", i, "is not a tuple of a name and a bool", err);
    const char *name = keep_text(s, row[0], err);
    if (!name)
        return CFX_E_NOMEM;
    if (row[1].as.b && is_kept_already(s, name))
        return complain("results", i, "is the second new value of a state", err);
    s->results[s->num_results++] = (cfx_signature_result){name, row[1].as.b};
    return CFX_OK;
}

static cfx_status read_results(cfx_signature *s, cfx_value list, cfx_error *err)
{
    size_t n;
    const cfx_value *items = cfx_value_items(list, &n);
    if (list.kind == CFX_KIND_NONE || list.kind == CFX_KIND_INVALID)
        return CFX_OK;
    if (list.kind != CFX_KIND_LIST || n > MOST_INPUTS)
        return cfx_error_set(err, CFX_E_VALUE, "results must be None or a list of at "
                             "most %d items", MOST_INPUTS);
    s->results = cfxi_base_arena_zeros(&s->arena, n, sizeof *s->results);
    if (!s->results)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < n; i++)
        CFX_TRY(read_result(s, items[i], i, err));
    return CFX_OK;
}

/* Names are checked even if there are no guards. */
static cfx_status read_guards(cfx_signature *s, cfx_value text, cfx_error *err)
{
    size_t size = 0;
    cfx_error why = {0};
    const char *data = cfx_value_text(text, &size);
    const char **names = cfxi_base_arena_zeros(&s->arena, s->num_inputs, sizeof *names);
    if (!names)
        return cfxi_base_nomem(err);
    if (text.kind != CFX_KIND_STR && text.kind != CFX_KIND_NONE && text.kind != CFX_KIND_INVALID)
        return cfx_error_set(err, CFX_E_VALUE, "guards must be a text");
    for (size_t i = 0; i < s->num_inputs; i++)
        names[i] = s->inputs[i].name;
    s->guards = cfx_guards_new(names, s->num_inputs, s->allocator, &why);
    if (s->guards && (!data || cfx_guards_parse(s->guards, data, size, &why) == CFX_OK))
        return CFX_OK;
    if (why.status == CFX_E_NOMEM)
        return cfxi_base_nomem(err);
    return cfx_error_set(err, CFX_E_VALUE, "guards, line %u: %.400s", why.line,
                         why.message);
}

/* ---- reading: how state is nested ---------------------------------------------------------- */

/* (path, text or None, text), or (path, text) of a present one. Texts are opaque: they are the same
 * if attributes are nested alike. */
static cfx_status read_slots(cfx_signature *s, cfx_value list, const char *field, size_t fields,
                             cfxi_nesting **slots, size_t *num, cfx_error *err)
{
    size_t n;
    const cfx_value *items = cfx_value_items(list, &n);
    *slots = cfxi_base_arena_zeros(&s->arena, n, sizeof **slots);
    if (!*slots)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < n; i++) {
        size_t size;
        cfxi_nesting *slot = &(*slots)[i];
        const cfx_value *row = cfx_value_items(items[i], &size);
        const bool whole = items[i].kind == CFX_KIND_TUPLE && size >= fields;
        const bool reads = whole && fields == 3 && row[1].kind == CFX_KIND_STR;
        if (!whole || row[0].kind != CFX_KIND_STR || row[fields - 1].kind != CFX_KIND_STR)
            return complain(field, i, "is not a path and texts", err);
        slot->path = keep_text(s, row[0], err);
        slot->before = reads ? keep_text(s, row[1], err) : NULL;
        slot->after = keep_text(s, row[fields - 1], err);
        if (!slot->path || !slot->after || (reads && !slot->before))
            return CFX_E_NOMEM;
    }
    *num = n;
    return CFX_OK;
}

/* (name, number) */
static cfx_status read_literals(cfx_signature *s, cfx_value list, cfx_error *err)
{
    size_t n;
    const cfx_value *items = cfx_value_items(list, &n);
    s->literals = cfxi_base_arena_zeros(&s->arena, n, sizeof *s->literals);
    if (!s->literals)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < n; i++) {
        size_t size;
        const cfx_value *row = cfx_value_items(items[i], &size);
        if (items[i].kind != CFX_KIND_TUPLE || size < 2 || row[0].kind != CFX_KIND_STR ||
            (row[1].kind != CFX_KIND_INT && row[1].kind != CFX_KIND_FLOAT))
            return complain("literals", i, "is not a name and a number", err);
        s->literals[i].name = keep_text(s, row[0], err);
        s->literals[i].value = row[1].kind == CFX_KIND_INT ? cfx_datum_int(row[1].as.i)
                                                           : cfx_datum_float(row[1].as.f);
        if (!s->literals[i].name)
            return CFX_E_NOMEM;
    }
    s->num_literals = n;
    return CFX_OK;
}

static cfx_status read_state(cfx_signature *s, cfx_value dict, cfx_error *err)
{
    const cfx_value refused = cfxi_capture_field(dict, "refused");
    if (refused.kind == CFX_KIND_STR && !(s->refused = keep_text(s, refused, err)))
        return CFX_E_NOMEM;
    CFX_TRY(read_literals(s, cfxi_capture_field(dict, "literals"), err));
    CFX_TRY(read_slots(s, cfxi_capture_field(dict, "slots"), "slots", 3, &s->slots, &s->num_slots,
                       err));
    return read_slots(s, cfxi_capture_field(dict, "present"), "present", 2, &s->present,
                      &s->num_present, err);
}

static cfx_status read_fields(cfx_signature *s, cfx_value dict, cfx_error *err)
{
    size_t num_inputs;
    size_t num_state;
    const cfx_value inputs = cfxi_capture_field(dict, "inputs");
    const cfx_value state = cfxi_capture_field(dict, "state");
    cfx_value_items(inputs, &num_inputs);
    cfx_value_items(state, &num_state);
    if (inputs.kind != CFX_KIND_LIST)
        return cfx_error_set(err, CFX_E_VALUE, "inputs must be a list");
    if (state.kind != CFX_KIND_LIST && state.kind != CFX_KIND_NONE &&
        state.kind != CFX_KIND_INVALID)
        return cfx_error_set(err, CFX_E_VALUE, "state must be a list or None");
    if (num_inputs > MOST_INPUTS || num_state > MOST_INPUTS - num_inputs)
        return cfx_error_set(err, CFX_E_VALUE, "a graph has at most %d inputs",
                             MOST_INPUTS);
    s->inputs = cfxi_base_arena_zeros(&s->arena, num_inputs + num_state, sizeof *s->inputs);
    s->values = cfxi_base_arena_zeros(&s->arena, num_inputs + num_state, sizeof *s->values);
    if (!s->inputs || !s->values)
        return cfxi_base_nomem(err);
    CFX_TRY(read_inputs(s, inputs, "inputs", false, err));
    s->num_arguments = s->num_inputs;
    CFX_TRY(read_inputs(s, state, "state", true, err));
    CFX_TRY(read_results(s, cfxi_capture_field(dict, "results"), err));
    CFX_TRY(read_state(s, dict, err));
    return read_guards(s, cfxi_capture_field(dict, "guards"), err);
}

static cfx_signature *make(const cfx_allocator *allocator, cfx_error *err)
{
    allocator = cfxi_base_allocator(allocator);
    cfx_signature *s = cfxi_base_alloc(allocator, sizeof *s);
    if (!s) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *s = (cfx_signature){.allocator = allocator};
    cfxi_base_arena_init(&s->arena, allocator);
    return s;
}

cfx_signature *cfx_signature_parse(const char *text, size_t size, const cfx_allocator *allocator,
                                   cfx_error *err)
{
    cfx_signature *s = NULL;
    cfx_value dict;
    cfx_graph *g = cfx_graph_parse(text, size, allocator, NULL, err);
    if (!g)
        return NULL;
    cfx_status status = CFX_OK;
    if (!cfxi_capture_returned_dict(g, &dict))
        status = cfx_error_set(err, CFX_E_VALUE, "the signature is not a dict");
    if (status == CFX_OK) {
        s = make(allocator, err);
        status = s ? read_fields(s, dict, err) : CFX_E_NOMEM;
    }
    cfx_graph_release(g);
    if (status == CFX_OK)
        return s;
    cfx_signature_free(s);
    return NULL;
}

static cfx_status name_placeholders(cfx_signature *s, const cfx_graph *g, cfx_error *err)
{
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
        s->num_arguments += cfx_node_op(n) == CFX_OP_PLACEHOLDER;
    s->inputs = cfxi_base_arena_zeros(&s->arena, s->num_arguments, sizeof *s->inputs);
    s->values = cfxi_base_arena_zeros(&s->arena, s->num_arguments, sizeof *s->values);
    if (!s->inputs || !s->values)
        return cfxi_base_nomem(err);
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n)) {
        size_t size;
        const char *target = cfx_node_target(n, &size, NULL);
        if (cfx_node_op(n) != CFX_OP_PLACEHOLDER)
            continue;
        char *name = cfxi_base_arena_zeros(&s->arena, size + 1, 1);
        if (!name)
            return cfxi_base_nomem(err);
        s->inputs[s->num_inputs++] = (cfx_signature_input){
            .name = memcpy(name, target, size), .dtype = CFX_DTYPE_COUNT, .rank = -1};
    }
    return CFX_OK;
}

cfx_signature *cfx_signature_of_graph(const cfx_graph *g, const cfx_allocator *allocator,
                                      cfx_error *err)
{
    if (cfxi_base_expect(g, "graph", err) != CFX_OK)
        return NULL;
    cfx_signature *s = make(allocator, err);
    if (!s || name_placeholders(s, g, err) == CFX_OK)
        return s;
    cfx_signature_free(s);
    return NULL;
}

void cfx_signature_free(cfx_signature *s)
{
    if (!s)
        return;
    cfx_guards_free(s->guards);
    cfxi_base_arena_release(&s->arena);
    cfxi_base_free(s->allocator, s, sizeof *s);
}

/* ---- what it says -------------------------------------------------------------------------- */

bool cfx_signature_input_at(const cfx_signature *s, size_t i, cfx_signature_input *out)
{
    if (i >= s->num_inputs)
        return false;
    *out = s->inputs[i];
    return true;
}

bool cfx_signature_result_at(const cfx_signature *s, size_t i, cfx_signature_result *out)
{
    if (i >= s->num_results)
        return false;
    *out = s->results[i];
    return true;
}

size_t cfx_signature_num_arguments(const cfx_signature *s) { return s->num_arguments; }

size_t cfxi_capture_signature_size(const cfx_signature *s) { return s->num_inputs; }

bool cfxi_capture_signature_lists(const cfx_signature *s, size_t *n)
{
    *n = s->num_results;
    return s->results != NULL;
}

cfx_datum cfxi_capture_signature_value(const cfx_signature *s, size_t i)
{
    return s->values[i];
}

const char *cfxi_capture_signature_refused(const cfx_signature *s) { return s->refused; }

const cfxi_nesting *cfxi_capture_signature_slots(const cfx_signature *s, size_t *n)
{
    *n = s->num_slots;
    return s->slots;
}

const cfxi_nesting *cfxi_capture_signature_present(const cfx_signature *s, size_t *n)
{
    *n = s->num_present;
    return s->present;
}

const cfxi_literal *cfxi_capture_signature_literals(const cfx_signature *s, size_t *n)
{
    *n = s->num_literals;
    return s->literals;
}

/* ---- checking ------------------------------------------------------------------------------ */

static void print_sizes(const cfx_signature_input *in, cfxi_out *out)
{
    cfxi_base_out_char(out, '[');
    for (int i = 0; i < in->rank; i++) {
        if (i > 0)
            cfxi_base_out_str(out, ", ");
        if (in->sizes[i] >= 0)
            cfxi_base_out_printf(out, "%lld", (long long)in->sizes[i]);
        else
            cfxi_base_out_str(out, in->dims[i] ? in->dims[i] : "?");
    }
    cfxi_base_out_char(out, ']');
}

/* "float32[n, 3]", "tensor", "int", "any" */
static void print_type(const cfx_signature_input *in, cfxi_out *out)
{
    if (in->kind == CFX_DATUM_INVALID)
        cfxi_base_out_str(out, "any");
    else if (in->kind != CFX_DATUM_TENSOR)
        cfxi_base_out_str(out, cfx_datum_kind_name(in->kind));
    else
        cfxi_base_out_str(out, in->dtype == CFX_DTYPE_COUNT ? "tensor" : cfx_dtype_name(in->dtype));
    if (in->rank >= 0)
        print_sizes(in, out);
}

static bool fits(const cfx_signature_input *in, cfx_datum d)
{
    if (in->kind == CFX_DATUM_INVALID)
        return true;
    if (d.kind != in->kind)
        return false;
    if (d.kind != CFX_DATUM_TENSOR)
        return true;
    const cfx_tensor *t = d.as.tensor;
    if (in->dtype != CFX_DTYPE_COUNT && cfx_tensor_dtype(t) != in->dtype)
        return false;
    if (in->rank >= 0 && cfx_tensor_ndim(t) != (size_t)in->rank)
        return false;
    for (int i = 0; i < in->rank; i++)
        if (in->sizes[i] >= 0 && cfx_tensor_sizes(t)[i] != in->sizes[i])
            return false;
    return true;
}

/* "the input 'x' must be float32[n, 3]; got float32[2, 4]" */
static cfx_status refuse(const cfx_signature *s, const cfx_signature_input *in, cfx_datum d,
                         cfx_error *err)
{
    cfxi_out out;
    cfx_buffer want;
    cfx_buffer got;
    cfx_buffer_init(&want, s->allocator);
    cfx_buffer_init(&got, s->allocator);
    cfxi_base_out_begin(&out, cfx_buffer_sink(&want));
    print_type(in, &out);
    cfxi_base_out_end(&out, NULL);  /* without memory it is short */
    cfx_datum_print(d, NULL, cfx_buffer_sink(&got), NULL);
    cfx_error_set(err, CFX_E_ASSERTION, "the %s '%.100s' must be %.120s; got %s%s%.120s",
                  in->state ? "state" : "input", in->name, want.data,
                  d.kind == CFX_DATUM_TENSOR ? "" : cfx_datum_kind_name((cfx_datum_kind)d.kind),
                  d.kind == CFX_DATUM_TENSOR ? "" : " ", got.data);
    cfx_buffer_free(&want);
    cfx_buffer_free(&got);
    return CFX_E_ASSERTION;
}

/* What a guard asks for: INVALID, and *known false, if the input is not given. */
static cfx_datum term_of(const cfx_guards *guards, size_t i, const cfx_datum *values, bool *known)
{
    size_t input = 0;
    size_t dim = 0;
    cfx_guards_term(guards, i, &input, &dim);
    const cfx_datum d = values[input];
    if (dim == CFX_GUARD_NUMBER && d.kind == CFX_DATUM_BOOL)
        return cfx_datum_int(d.as.b);
    if (dim == CFX_GUARD_NUMBER && (d.kind == CFX_DATUM_INT || d.kind == CFX_DATUM_FLOAT))
        return d;
    if (dim != CFX_GUARD_NUMBER && d.kind == CFX_DATUM_TENSOR &&
        dim < cfx_tensor_ndim(d.as.tensor))
        return cfx_datum_int(cfx_tensor_sizes(d.as.tensor)[dim]);
    if (d.kind == CFX_DATUM_INVALID)
        *known = false;
    return cfx_datum_invalid();
}

/* A division by zero in a guard is another answer, too: the graph is not for these inputs. */
static cfx_status check_guards(const cfx_signature *s, const cfx_datum *values, cfx_error *err)
{
    cfx_datum few[FEW_TERMS];
    cfx_error why = {0};
    bool known = true;
    const size_t n = s->guards ? cfx_guards_num_terms(s->guards) : 0;
    cfx_datum *terms = n <= FEW_TERMS ? few : cfxi_base_alloc(s->allocator, n * sizeof *terms);
    if (!terms)
        return cfxi_base_nomem(err);
    for (size_t i = 0; i < n; i++)
        terms[i] = term_of(s->guards, i, values, &known);
    const bool holds = n == 0 || !known || cfx_guards_hold(s->guards, terms, NULL, &why);
    if (terms != few)
        cfxi_base_free(s->allocator, terms, n * sizeof *terms);
    return holds ? CFX_OK : cfx_error_set(err, CFX_E_ASSERTION, "%s", why.message);
}

cfx_status cfx_signature_check(const cfx_signature *s, const cfx_datum *values, size_t n,
                               cfx_error *err)
{
    CFX_TRY(cfxi_base_expect(s, "signature", err));
    if (n != s->num_inputs)
        return cfx_error_set(err, CFX_E_ASSERTION, "the graph has %zu inputs; got %zu values",
                             s->num_inputs, n);
    for (size_t i = 0; i < n; i++)
        if (values[i].kind != CFX_DATUM_INVALID && !fits(&s->inputs[i], values[i]))
            return refuse(s, &s->inputs[i], values[i], err);
    return check_guards(s, values, err);
}

/* ---- printing ------------------------------------------------------------------------------ */

static void print_input(const cfx_signature *s, size_t i, cfxi_out *out)
{
    const cfx_signature_input *in = &s->inputs[i];
    cfxi_base_out_str(out, in->name);
    cfxi_base_out_str(out, ": ");
    print_type(in, out);
    if (in->state) {
        cfxi_base_out_str(out, " (state");
        if (s->values[i].kind != CFX_DATUM_INVALID) {
            cfxi_base_out_str(out, ", first ");
            cfx_datum_print(s->values[i], NULL, cfxi_base_out_sink(out), NULL);
        }
        cfxi_base_out_char(out, ')');
    }
    cfxi_base_out_char(out, '\n');
}

static void print_guards(const cfx_guards *guards, cfxi_out *out)
{
    cfx_guard guard;
    for (size_t i = 0; cfx_guards_get(guards, i, &guard); i++) {
        cfxi_base_out_str(out, "assumes ");
        cfx_guards_print_question(guards, i, cfxi_base_out_sink(out), NULL);
        cfxi_base_out_str(out, " is ");
        cfx_datum_print(guard.value, NULL, cfxi_base_out_sink(out), NULL);
        if (guard.line[0]) {
            cfxi_base_out_str(out, ", asked at ");
            cfxi_base_out_str(out, guard.line);
        }
        cfxi_base_out_char(out, '\n');
    }
}

cfx_status cfx_signature_print(const cfx_signature *s, cfx_sink sink, cfx_error *err)
{
    cfxi_out out;
    CFX_TRY(cfxi_base_expect(s, "signature", err));
    cfxi_base_out_begin(&out, sink);
    for (size_t i = 0; i < s->num_inputs; i++)
        print_input(s, i, &out);
    for (size_t i = 0; i < s->num_results; i++) {
        cfxi_base_out_str(&out, i ? ", " : "-> ");
        cfxi_base_out_str(&out, s->results[i].name);
        cfxi_base_out_str(&out, s->results[i].state ? " (state)" : "");
    }
    if (s->num_results > 0)
        cfxi_base_out_char(&out, '\n');
    if (s->guards)
        print_guards(s->guards, &out);
    return cfxi_base_out_end(&out, err);
}
