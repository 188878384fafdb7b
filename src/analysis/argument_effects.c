/* argument_effects.c - what a call does to each of its arguments: writes to it, shares its memory,
 * reads it.
 *
 * For operators of the table the schema says it: "Tensor(a!)" is written to, and a parameter and a
 * result with the same letter may share their memory.
 */
#include "effects_impl.h"
#include "ops/ops_impl.h"
#include "runtime/library_rows.h"

enum { BOTH = CFX_TOUCH_WRITES | CFX_TOUCH_SHARES };

/* What is called, of the table or of a library; without a schema nothing is known of it. */
typedef struct callee_row {
    const char *schema;
    unsigned flags;
    bool custom;
} callee_row;

typedef struct touch_job {
    cfx_node *n;
    callee_row row;
    bool writes;    /* some argument */
    bool shares;    /* some result of the operator shares memory with some parameter */
    bool joins;     /* the result may hold the operands themselves */
    bool in_place;
    bool reads;     /* it does nothing to any argument: most do not */
    cfx_touch_fn *fn;
    void *ctx;
    unsigned touch;  /* of the argument that is being walked */
} touch_job;

/* ---- what is known ------------------------------------------------------------------------- */

static callee_row row_of(const cfx_node *n, cfx_operator op, const cfx_library *library)
{
    const cfx_custom_operator *custom = op ? NULL : cfxi_rt_node_custom(n, library);
    if (custom)
        return (callee_row){custom->schema, custom->flags, true};
    return (callee_row){cfx_operator_schema(op), cfx_operator_flags(op), false};
}

static bool has_result(const callee_row *row, char alias)
{
    cfx_schema_param result;
    for (size_t i = 0; cfxi_ops_schema_result(row->schema, i, &result); i++)
        if (alias ? result.alias == alias : result.alias != 0)
            return true;
    return false;
}

/* setitem puts its value into a container: the two then share memory, through the call. */
static bool is_stored(const callee_row *row, char alias)
{
    cfx_schema_param param;
    size_t count = 0;
    for (size_t i = 0; cfxi_ops_schema_param(row->schema, i, &param); i++)
        count += param.alias == alias;
    return count > 1;
}

/* Whether the row or the arguments say what a call writes to. A module writes to its arguments. */
static bool is_explained(const cfx_node *n, const callee_row *row)
{
    return n->op == CFX_OP_CALL_MODULE || cfxi_ops_schema_writes(row->schema) ||
           (row->flags & CFX_OPERATOR_STATE) || cfxi_analysis_has_out(n) ||
           cfxi_analysis_is_in_place(n);
}

static bool is_opaque(const cfx_node *n, const callee_row *row, unsigned does)
{
    if (!row->schema || (row->flags & CFX_OPERATOR_GLOBAL) || (does & CFXI_WRITES_ALL) ||
        cfx_operator_regions(cfx_node_operator(n)) > 0)
        return true;
    return (does & CFXI_WRITES_ARGUMENTS) && !is_explained(n, row);
}

bool cfxi_analysis_is_opaque(const cfx_node *n, cfx_operator op, const cfx_library *library,
                             unsigned does)
{
    const callee_row row = row_of(n, op, library);
    return is_opaque(n, &row, does);
}

/* Whether a value can only be a tensor or a number. */
static bool is_simple(cfx_value v)
{
    cfx_schema_param result;
    if (v.kind != CFX_KIND_NODE)
        return v.kind == CFX_KIND_INT || v.kind == CFX_KIND_FLOAT || v.kind == CFX_KIND_BOOL;
    const cfx_operator op = cfx_node_operator(v.as.node);
    if (!op)
        return true;  /* an input, an attribute, a module: taken for a tensor */
    return cfx_operator_num_results(op) == 1 && cfx_operator_result(op, 0, &result) &&
           strcmp(result.type, "Tensor") == 0;
}

/* operator.add joins tuples and lists, whose items stay what they are. */
static bool may_join(const cfx_node *n)
{
    const cfx_str *name = n->callee->ref->name;
    if (n->op != CFX_OP_CALL_FUNCTION || !name ||
        (strncmp(name->data, "operator.", 9) && strncmp(name->data, "_operator.", 10)))
        return false;
    for (uint32_t i = 0; n->args && i < n->args->size; i++)
        if (!is_simple(n->args->items[i]))
            return true;
    return false;
}

/* ---- arguments ----------------------------------------------------------------------------- */

static unsigned touch_of_param(const touch_job *job, const cfx_schema_param *param)
{
    unsigned touch = param->writes ? CFX_TOUCH_WRITES : 0;
    if (param->alias && (has_result(&job->row, param->alias) || is_stored(&job->row, param->alias)))
        touch |= CFX_TOUCH_SHARES;
    bool statistics = (job->row.flags & CFX_OPERATOR_STATE) &&
                      param->name.size > 8 && memcmp(param->name.text, "running_", 8) == 0;
    return statistics && job->writes ? touch | CFX_TOUCH_WRITES : touch;
}

/* An argument by its place, or by its keyword. */
static unsigned touch_of_argument(const touch_job *job, size_t place, const char *keyword)
{
    cfx_schema_param param;
    if (job->n->op == CFX_OP_CALL_MODULE)
        return job->writes ? BOTH : job->shares ? CFX_TOUCH_SHARES : 0;
    if (keyword && strcmp(keyword, "out") == 0)
        return BOTH;
    size_t at = !job->row.custom ? cfxi_ops_node_param_of(job->n, place, keyword)
                : keyword ? cfxi_ops_schema_find_param(job->row.schema, keyword, strlen(keyword))
                          : place;
    if (!cfxi_ops_schema_param(job->row.schema, at,
                               &param)) /* one of a list that is passed loosely */
        return job->shares ? CFX_TOUCH_SHARES : 0;
    if (at == 0 && job->in_place)
        return BOTH;
    return touch_of_param(job, &param) | (job->joins ? CFX_TOUCH_SHARES : 0);
}

static cfx_status report(void *ctx, cfx_node *input)
{
    const touch_job *job = ctx;
    return job->fn(job->ctx, input, job->touch);
}

static cfx_status walk(touch_job *job, cfx_value v, bool opaque, size_t place, const char *keyword)
{
    if (cfxi_ir_is_plain(v) && !cfxi_ir_is_seq(v))
        return CFX_OK;
    if (job->reads)
        job->touch = 0;
    else if (opaque)
        job->touch = job->writes ? BOTH : CFX_TOUCH_SHARES;
    else
        job->touch = touch_of_argument(job, place, keyword);
    return cfx_value_each_node(v, report, job);
}

cfx_status cfxi_analysis_node_touches(cfx_node *n, cfx_operator op, const cfx_library *library,
                                      unsigned does, cfx_touch_fn *fn, void *ctx)
{
    touch_job job = {.n = n, .row = row_of(n, op, library), .fn = fn, .ctx = ctx};
    const bool opaque = is_opaque(n, &job.row, does);
    job.writes = does & (CFXI_WRITES_ARGUMENTS | CFXI_WRITES_ALL);
    job.joins = !opaque && may_join(n);
    job.shares = job.joins || has_result(&job.row, 0);
    job.in_place = !opaque && cfxi_analysis_is_in_place(n);
    job.reads = !opaque && !job.writes && !job.shares;
    for (uint32_t i = 0; n->args && i < n->args->size; i++)
        CFX_TRY(walk(&job, n->args->items[i], opaque, i, NULL));
    for (uint32_t i = 0; n->kwargs && i + 1 < n->kwargs->size; i += 2)
        CFX_TRY(walk(&job, n->kwargs->items[i + 1], opaque, 0, n->kwargs->items[i].as.str->data));
    return CFX_OK;
}

cfx_status cfx_node_each_touch(cfx_node *n, const cfx_module_tree *modules, cfx_touch_fn *fn,
                               void *ctx, cfx_error *err)
{
    cfxi_effect_model m = {.modules = modules};
    unsigned does;
    cfx_operator op;
    cfx_status status = cfxi_analysis_does(&m, n, &does, err);
    if (status == CFX_OK)
        status = cfxi_analysis_model_operator(&m, n, &op, err);
    if (status == CFX_OK && n->op != CFX_OP_OUTPUT)  /* which reads what it returns */
        status = cfxi_analysis_node_touches(n, op, cfxi_analysis_library_of(modules), does, fn,
                                            ctx);
    cfxi_analysis_model_end(&m);
    return status;
}
