/* signature.c - the parameters of a row, read once from its schema. */
#include "ops/ops_impl.h"
#include "runtime_impl.h"

#include <stdlib.h>

/* ---- types --------------------------------------------------------------------------------- */

typedef struct type_name {
    const char *name;
    cfxi_param_type type;
} type_name;

static const type_name type_names[] = {
    {"Tensor", CFXI_PARAM_TENSOR}, {"int", CFXI_PARAM_INT},       {"float", CFXI_PARAM_FLOAT},
    {"bool", CFXI_PARAM_BOOL},     {"Scalar", CFXI_PARAM_SCALAR}, {"str", CFXI_PARAM_STR},
    {"ScalarType", CFXI_PARAM_DTYPE},
};

/* "int[2]?", "Tensor?[]", "float" */
static void read_type(const char *text, cfxi_signature_param *p)
{
    size_t size = strcspn(text, "?[");
    p->type = CFXI_PARAM_OTHER;
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++)
        if (strlen(type_names[i].name) == size && memcmp(text, type_names[i].name, size) == 0)
            p->type = (uint8_t)type_names[i].type;
    const char *bracket = strchr(text, '[');
    p->list = bracket != NULL;
    p->items_optional = bracket && text[size] == '?';
    p->length = bracket ? (uint8_t)strtol(bracket + 1, NULL, 10) : 0;
    p->optional = text[strlen(text) - 1] == '?';
}

/* Whether the rule also reads words for these numbers. */
static bool takes_words(cfx_operator op, const cfx_schema_param *param,
                        const cfxi_signature_param *p)
{
    const bool conv = op == CFX_OPID_conv1d || op == CFX_OPID_conv2d || op == CFX_OPID_conv3d;
    return op && p->type == CFXI_PARAM_INT &&
           (cfxi_ops_text_is_word(param->name, "reduction") ||
            (conv && cfxi_ops_text_is_word(param->name, "padding")));
}

/* ---- defaults ------------------------------------------------------------------------------ */

static cfx_datum number_default(cfx_schema_text text, const cfxi_signature_param *p)
{
    int64_t i;
    double f;
    if (cfxi_base_parse_int(text.text, text.size, &i))
        return p->type == CFXI_PARAM_FLOAT ? cfx_datum_float((double)i) : cfx_datum_int(i);
    if (cfxi_base_parse_float(text.text, text.size, &f))
        return cfx_datum_float(f);
    return cfx_datum_invalid();
}

/* "[0, 1]", "()" */
static cfx_datum list_default(cfx_schema_text text, const cfxi_signature_param *p,
                              const cfx_allocator *allocator, cfx_error *err)
{
    cfx_datum items[CFX_MAX_DIMS];
    size_t n = 0;
    const char *at = text.text + 1;
    for (cfx_schema_text item; n < CFX_MAX_DIMS && (item = cfxi_ops_schema_next(&at)).size > 0;)
        items[n++] = number_default(item, p);
    return cfx_datum_seq(CFX_DATUM_LIST, items, n, allocator, err);
}

static cfx_datum read_default(cfx_schema_text text, const cfxi_signature_param *p,
                              const cfx_allocator *allocator, cfx_error *err)
{
    if (!text.text)
        return cfx_datum_invalid();
    if (cfxi_ops_text_is_word(text, "None"))
        return cfx_datum_none();
    if (cfxi_ops_text_is_word(text, "True") || cfxi_ops_text_is_word(text, "False"))
        return cfx_datum_bool(text.text[0] == 'T');
    if (text.text[0] == '\'')
        return cfx_datum_from_text(CFX_DATUM_STR, text.text + 1, text.size - 2, allocator, err);
    if (text.text[0] == '[' || text.text[0] == '(')
        return list_default(text, p, allocator, err);
    cfx_datum number = number_default(text, p);
    if (p->list && p->length) {
        cfx_datum items[CFX_MAX_DIMS];
        for (size_t i = 0; i < p->length && i < CFX_MAX_DIMS; i++)
            items[i] = number;
        return cfx_datum_seq(CFX_DATUM_LIST, items, p->length, allocator, err);
    }
    return number;
}

void cfxi_rt_signature_read(const cfx_schema_param *param, cfxi_signature_param *p,
                            const cfx_allocator *allocator, cfx_error *err)
{
    read_type(param->type, p);
    p->value = read_default(param->value, p, allocator, err);
}

/* ---- the whole ----------------------------------------------------------------------------- */

void cfxi_rt_signature_free(cfxi_signature *s, const cfx_allocator *allocator)
{
    for (size_t i = 0; s && i < s->num_params; i++)
        cfx_datum_release(s->params[i].value);
    cfxi_base_free(allocator, s, sizeof *s);
}

/* `op` is the row whose schema it is, or NONE. */
static cfxi_signature *signature_new(cfx_operator op, const char *schema,
                                     const cfx_allocator *allocator, cfx_error *err)
{
    cfx_error own = {0};
    cfx_schema_param param;
    cfxi_signature *s = cfxi_base_alloc(allocator, sizeof *s);
    if (!s) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *s = (cfxi_signature){.functional = cfx_operator_functional(op), .schema = schema};
    for (size_t i = 0; i < CFXI_MOST_PARAMS && cfxi_ops_schema_param(schema, i, &param); i++) {
        cfxi_signature_param *p = &s->params[i];
        cfxi_rt_signature_read(&param, p, allocator, &own);
        if (param.variadic)
            p->list = true;
        p->words = takes_words(op, &param, p);
        s->num_params = (uint8_t)(i + 1);
    }
    for (size_t i = 0; i < CFXI_MOST_RESULTS && cfxi_ops_schema_result(schema, i, &param); i++) {
        s->alias |= (uint8_t)((param.alias != 0) << i);
        s->num_results = (uint8_t)(i + 1);
    }
    if (own.status != CFX_E_NOMEM)  /* a default that cannot be read is INVALID */
        return s;
    cfxi_rt_signature_free(s, allocator);
    cfxi_base_nomem(err);
    return NULL;
}

cfxi_signature *cfxi_rt_signature_new(const char *schema, const cfx_allocator *allocator,
                                      cfx_error *err)
{
    return signature_new(CFX_OPID_NONE, schema, allocator, err);
}

const cfxi_signature *cfxi_rt_signature_of(cfx_runtime *rt, cfx_operator op, cfx_error *err)
{
    cfxi_signature *s = atomic_load_explicit(&rt->signatures[op], memory_order_acquire);
    if (s)
        return s;
    s = signature_new(op, cfx_operator_schema(op), rt->allocator, err);
    cfxi_signature *other = NULL;
    if (s && !atomic_compare_exchange_strong(&rt->signatures[op], &other, s)) {
        cfxi_rt_signature_free(s, rt->allocator);  /* another thread was first */
        return other;
    }
    return s;
}

void cfxi_rt_signatures_free(cfx_runtime *rt)
{
    for (size_t op = 0; op < CFX_OPERATOR_COUNT; op++) {
        cfxi_signature *s = atomic_load(&rt->signatures[op]);
        if (s)
            cfxi_rt_signature_free(s, rt->allocator);
    }
}
