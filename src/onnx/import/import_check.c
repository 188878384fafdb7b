/* import_check.c - what is looked at before anything is made: opsets, operators, types of inputs.
 *
 * Everything that cannot be read is reported, not only the first of it.
 */
#include "engine_impl.h"

#include <stdio.h>

/* ---- reporting ----------------------------------------------------------------------------- */

enum { NAME_SIZE = 160 };

static void copy_name(char out[NAME_SIZE], cfxi_text text)
{
    snprintf(out, NAME_SIZE, "%.*s", (int)(text.size < 150 ? text.size : 150),
             text.data ? text.data : "");
    cfxi_base_utf8_clean(out);
}

/* What a message calls a node: its name, or that of its first output. */
static cfxi_text name_of(const cfxi_onnx_node *n)
{
    if (n->name.size > 0 || n->outputs.n == 0)
        return n->name;
    return n->outputs.items[0];
}

void cfxi_import_report(cfxi_import *m, const cfxi_onnx_node *n, const char *why)
{
    char name[NAME_SIZE], op[2 * NAME_SIZE + 4], domain[NAME_SIZE], type[NAME_SIZE];
    copy_name(name, name_of(n));
    copy_name(domain, n->domain);
    copy_name(type, n->op);
    snprintf(op, sizeof op, "%s%s%s", domain, domain[0] ? "::" : "", type);
    const cfx_onnx_finding finding = {
        .where = m->file ? m->file : "", .node = name, .op = op, .why = why};
    if (m->findings++ == 0)
        cfx_error_set(&m->first, CFX_E_UNSUPPORTED, "node '%.60s' (%.60s): %.300s", name, op, why);
    if (m->options->each)
        m->options->each(m->options->ctx, &finding);
}

cfx_status cfxi_import_refuse(cfxi_import *m, cfx_error *err)
{
    if (m->findings == 0)
        return CFX_OK;
    return cfx_error_set(err, CFX_E_UNSUPPORTED, "%s%s%zu node%s cannot be read; the first: %s",
                         m->file ? m->file : "", m->file ? ": " : "", m->findings,
                         m->findings == 1 ? "" : "s", m->first.message);
}

/* ---- nodes --------------------------------------------------------------------------------- */

static cfx_status check_nodes(cfxi_import *m, const cfxi_import_frame *f,
                              const cfxi_onnx_node *nodes, size_t n, cfx_error *err);

static cfx_status check_operator(cfxi_import *m, const cfxi_import_frame *f,
                                 const cfxi_onnx_node *n, cfx_error *err)
{
    char why[300];
    const int64_t opset = cfxi_import_opset(f, n->domain);
    if (cfxi_import_function_of(m, n))
        return CFX_OK;
    if (!cfxi_import_is_default_domain(n->domain)) {
        cfxi_import_report(m, n, "the domain is not known, and the file has no function of this "
                                 "name");
        return CFX_OK;
    }
    cfx_error own = {0};
    const cfxi_import_row *row = cfxi_import_row_of(m, n->op, opset, &own);
    const bool never_changed = row && row->op[0] == '\0' && opset > 0;
    if (own.status != CFX_OK)
        return cfx_error_set(err, own.status, "%s", own.message);
    if ((opset < CFX_ONNX_OPSET_OLDEST && !never_changed) || opset > CFX_ONNX_OPSET_NEWEST) {
        snprintf(why, sizeof why, "it is of opset %lld; cfx reads %d to %d. onnx.version_converter "
                 "changes the opset of a file", (long long)opset, CFX_ONNX_OPSET_OLDEST,
                 CFX_ONNX_OPSET_NEWEST);
        cfxi_import_report(m, n, why);
        return CFX_OK;
    }
    if (row)
        return CFX_OK;
    const int64_t oldest = cfxi_import_oldest(n->op);
    if (oldest)
        snprintf(why, sizeof why, "in opset %lld it is another operator; cfx reads it from opset "
                 "%lld on", (long long)opset, (long long)oldest);
    else
        snprintf(why, sizeof why, "cfx does not have this operator");
    cfxi_import_report(m, n, why);
    return CFX_OK;
}

static cfx_status check_attributes(cfxi_import *m, const cfxi_import_frame *f,
                                   const cfxi_onnx_node *n, cfx_error *err)
{
    for (size_t i = 0; i < n->attributes.n; i++) {
        const cfxi_onnx_attribute *a = &n->attributes.items[i];
        if (a->g)
            CFX_TRY(check_nodes(m, f, a->g->nodes.items, a->g->nodes.n, err));
        for (size_t k = 0; k < a->graphs.n; k++)
            CFX_TRY(check_nodes(m, f, a->graphs.items[k].nodes.items, a->graphs.items[k].nodes.n,
                                err));
    }
    return CFX_OK;
}

static cfx_status check_nodes(cfxi_import *m, const cfxi_import_frame *f,
                              const cfxi_onnx_node *nodes, size_t n, cfx_error *err)
{
    for (size_t i = 0; i < n; i++) {
        CFX_TRY(check_operator(m, f, &nodes[i], err));
        CFX_TRY(check_attributes(m, f, &nodes[i], err));
    }
    return CFX_OK;
}

/* ---- all ----------------------------------------------------------------------------------- */

cfx_status cfxi_import_check(cfxi_import *m, cfx_error *err)
{
    const cfxi_onnx_model *model = m->model;
    const cfxi_import_frame top = {.opsets = model->opsets.items, .num_opsets = model->opsets.n};
    CFX_TRY(check_nodes(m, &top, model->graph->nodes.items, model->graph->nodes.n, err));
    for (size_t i = 0; i < model->functions.n; i++) {
        const cfxi_onnx_function *f = &model->functions.items[i];
        const cfxi_import_frame frame = {.opsets = f->opsets.items, .num_opsets = f->opsets.n};
        CFX_TRY(check_nodes(m, &frame, f->nodes.items, f->nodes.n, err));
    }
    return cfxi_import_refuse(m, err);
}
