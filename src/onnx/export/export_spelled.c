/* export_spelled.c - rows that are an ONNX operator under other names, as ops.def spells them:
 *
 *     onnx:LeakyRelu(self,negative_slope:alpha=0.01)
 *
 * Tensors are inputs, everything else is an attribute. A parameter that is not listed must have its
 * default.
 */
#include "export_impl.h"
#include "ops/ops_impl.h"

bool cfxi_export_has_spelling(cfx_operator op, char name[CFX_SPELLING_SIZE], const char **list)
{
    char full[CFX_SPELLING_SIZE];
    cfx_spelling kind;
    for (size_t i = 0; cfx_operator_spelling(op, i, full, &kind); i++) {
        if (kind != CFX_SPELLING_ONNX)
            continue;
        memcpy(name, full + strlen("onnx:"), strlen(full) - strlen("onnx:") + 1);
        *list = cfxi_ops_spelling_list(cfxi_ops_op_lookup(full, strlen(full)).spelling);
        return true;
    }
    return false;
}

static void set_attribute(cfxi_export_call *c, const char *name, size_t i, const char *type)
{
    int64_t ints[CFX_MAX_DIMS * 2];
    const cfx_datum d = c->full[i];
    if (cfx_datum_text(d, NULL)) {
        SET_TEXT(name, cfx_datum_text(d, NULL));
    } else if (d.kind == CFX_DATUM_LIST || d.kind == CFX_DATUM_TUPLE) {
        const size_t n = cfxi_export_ints(c, i, ints);
        SET_INTS(name, ints, n);
    } else if (strncmp(type, "float", 5) == 0 || strncmp(type, "Scalar", 6) == 0) {
        SET_FLOAT(name, cfxi_export_float(c, i));
    } else {
        SET_INT(name, cfxi_export_int(c, i));
    }
}

/* Whether the row's parameter is listed. */
static bool is_listed(cfx_operator op, const char *list, size_t i)
{
    cfxi_spelled_param listed;
    for (size_t k = 0; cfxi_ops_listed_param(op, list, k, &listed); k++)
        if (listed.param == i)
            return true;
    return false;
}

/* A parameter that ONNX has no counterpart of must not matter. */
static bool check_unlisted(cfxi_export_call *c, const char *list)
{
    cfx_schema_param param;
    cfxi_signature_param p;
    for (size_t i = 0; list && cfx_operator_param(c->op, i, &param); i++) {
        if (is_listed(c->op, list, i) || !param.value.text)
            continue;
        cfx_error ignored = {0};
        cfxi_rt_signature_read(&param, &p, c->x->allocator, &ignored);
        const cfx_datum a = p.value;
        const cfx_datum b = c->full[i];
        const bool same = a.kind == b.kind && (a.kind == CFX_DATUM_NONE || a.as.i == b.as.i);
        cfx_datum_release(p.value);
        if (ignored.status == CFX_E_NOMEM)
            cfxi_export_fail(c->x);
        if (!same) {
            cfxi_export_refuse(c, "ONNX has no counterpart of '%.*s'; leave it at its default",
                               (int)param.name.size, param.name.text);
            return false;
        }
    }
    return true;
}

cfxi_ev *cfxi_export_spelled(cfxi_export_call *c)
{
    char name[CFX_SPELLING_SIZE];
    const char *list;
    cfxi_ev *inputs[CFXI_MOST_PARAMS];
    cfxi_spelled_param listed;
    cfx_schema_param param;
    size_t n = 0;
    cfxi_export_has_spelling(c->op, name, &list);
    if (!check_unlisted(c, list))
        return &c->x->broken;
    for (size_t k = 0; cfxi_ops_listed_param(c->op, list, k, &listed); k++)
        if (listed.param != SIZE_MAX && cfx_operator_param(c->op, listed.param, &param) &&
            strncmp(param.type, "Tensor", 6) == 0)
            inputs[n++] = IN(listed.param);
    cfxi_ev *made = cfxi_export_node(c->x, cfxi_export_text(c->x, "%s", name), inputs, n);
    for (size_t k = 0; cfxi_ops_listed_param(c->op, list, k, &listed); k++)
        if (listed.param != SIZE_MAX && cfx_operator_param(c->op, listed.param, &param) &&
            strncmp(param.type, "Tensor", 6) != 0 && cfxi_export_given(c, listed.param))
            set_attribute(c, cfxi_export_text(c->x, "%.*s", (int)listed.name.size,
                                              listed.name.text), listed.param, param.type);
    return made;
}
