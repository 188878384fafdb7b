/* row_call.c - one operator: arguments, rule, memory, kernel. runtime_impl.h is the manual. */
#include "python_impl.h"

/* ---- the table ----------------------------------------------------------------------------- */

static cfx_status by_rule(cfxi_call *c)
{
    (void)c;
    return CFX_OK;
}

typedef struct row {
    cfxi_op_fn *rule;
    cfxi_op_fn *kernel;
} row;

static const row rows[CFX_OPERATOR_COUNT] = {
#define CFX_OPERATOR(id, schema, spellings, flags, rule)                                           \
    [CFX_OPID_##id] = {cfxi_rule_##rule, cfxi_kernel_##id},
#define CFX_BY_RULE(id, schema, spellings, flags, rule)                                            \
    [CFX_OPID_##id] = {cfxi_rule_##rule, by_rule},
#define CFX_IN_PLACE(id, schema, spellings, flags)
#define CFX_HOST_ONLY(id, schema, spellings, flags)
#include <cfx/ops.def>
#undef CFX_OPERATOR
};

bool cfxi_rt_is_by_rule(cfx_operator op) { return rows[op].kernel == by_rule; }

bool cfx_operator_has_kernel(cfx_operator op)
{
    if ((unsigned)op >= CFX_OPERATOR_COUNT)
        return false;
    return rows[op].rule || rows[cfx_operator_functional(op)].rule;
}

/* ---- results ------------------------------------------------------------------------------- */

cfx_status cfxi_rt_result(cfxi_call *c, size_t i, cfx_dtype dtype, const int64_t *sizes,
                          size_t ndim)
{
    cfx_tensor *t = cfxi_tensor_header(dtype, sizes, ndim, c->rt->allocator, c->err);
    if (!t)
        return c->err ? c->err->status : CFX_E_SHAPE;
    cfxi_rt_result_datum(c, i, cfx_datum_tensor(t));
    return CFX_OK;
}

void cfxi_rt_result_datum(cfxi_call *c, size_t i, cfx_datum d)
{
    cfx_datum_release(c->results[i]);
    c->results[i] = d;
}

cfx_status cfxi_rt_result_view(cfxi_call *c, size_t i, const cfx_tensor *base,
                               const int64_t *strides, int64_t offset)
{
    cfx_tensor *t = cfxi_rt_result_at(c, i);
    for (size_t d = 0; d < t->ndim; d++)
        t->stride[d] = strides[d];
    return cfxi_tensor_share(t, base, offset, c->err);
}

/* Whether the memory that is planned for a result is laid out as its header says. */
static bool fits_plan(const cfx_tensor *t, const cfx_tensor *planned)
{
    return planned->dtype == t->dtype && planned->ndim == t->ndim &&
           memcmp(planned->size, t->size, t->ndim * sizeof *t->size) == 0 &&
           memcmp(planned->stride, t->stride, t->ndim * sizeof *t->stride) == 0;
}

cfx_status cfxi_rt_result_allocate(cfxi_call *c, size_t i)
{
    cfx_tensor *t = cfxi_rt_result_at(c, i);
    if (c->planned && c->planned[i] && fits_plan(t, c->planned[i]))
        return cfxi_tensor_share(t, c->planned[i], 0, c->err);
    return cfxi_tensor_allocate(t, c->err);
}

static bool is_known(const cfx_tensor *t)
{
    for (size_t i = 0; i < t->ndim; i++)
        if (t->size[i] == CFX_DIM_UNKNOWN)
            return false;
    return true;
}

cfx_status cfxi_rt_result_provide(cfxi_call *c, size_t i)
{
    cfx_tensor *t = c->results[i].kind == CFX_DATUM_TENSOR ? cfxi_rt_result_at(c, i) : NULL;
    return t && !t->storage && is_known(t) ? cfxi_tensor_allocate(t, c->err) : CFX_OK;
}

/* Memory for the results that the kernel only fills. */
static cfx_status allocate_results(cfxi_call *c, const cfxi_signature *s)
{
    for (size_t i = 0; i < s->num_results; i++) {
        if (c->results[i].kind != CFX_DATUM_TENSOR || s->alias & 1u << i)
            continue;
        CFX_TRY(cfxi_rt_result_provide(c, i));
    }
    return CFX_OK;
}

cfx_datum cfxi_rt_call_pack(cfxi_call *c, const cfxi_signature *s)
{
    if (s->num_results == 0)
        return cfx_datum_none();
    if (s->num_results == 1) {
        cfx_datum one = c->results[0];
        c->results[0].kind = CFX_DATUM_INVALID;
        return one;
    }
    cfx_datum all = cfx_datum_seq(CFX_DATUM_TUPLE, c->results, s->num_results, c->rt->allocator,
                                  c->err);
    if (all.kind == CFX_DATUM_TUPLE)
        all.as.seq->op = (uint32_t)c->op;
    return all;
}

void cfxi_rt_call_drop_results(cfxi_call *c)
{
    for (size_t i = 0; i < CFXI_MOST_RESULTS; i++)
        cfx_datum_release(c->results[i]);
}

/* ---- without elements ---------------------------------------------------------------------- */

/* A tensor of sizes (2^50, 0) takes no memory, but a kernel that goes over its rows takes for ever.
 * That many rows are many. */
enum { MANY_ROWS = 1 << 20 };

static bool is_vast(const cfx_tensor *t)
{
    int64_t n = 1;
    if (cfxi_tensor_numel(t) != 0)
        return false;
    for (size_t i = 0; i < t->ndim; i++)
        n *= t->size[i] ? t->size[i] : 1;  /* fits: see cfxi_tensor_header */
    return n > MANY_ROWS;
}

static bool holds_vast(cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        if (items[i].kind == CFX_DATUM_TENSOR && is_vast(items[i].as.tensor))
            return true;
    return d.kind == CFX_DATUM_TENSOR && is_vast(d.as.tensor);
}

/* Whether the kernel has no element to write, and much to go over. */
static bool is_in_vain(const cfxi_call *c, const cfxi_signature *s)
{
    bool vast = false;
    for (size_t i = 0; i < s->num_results; i++) {
        const cfx_tensor *t = c->results[i].kind == CFX_DATUM_TENSOR ? cfxi_rt_result_at(c, i)
                                                                     : NULL;
        if (!t || !t->storage || cfxi_tensor_numel(t) != 0)
            return false;
        vast = vast || is_vast(t);
    }
    for (size_t i = 0; !vast && i < s->num_params; i++)
        vast = holds_vast(c->args[i]);
    return s->num_results > 0 && vast;
}

static cfx_status run_kernel(cfxi_call *c, const cfxi_signature *s)
{
    return is_in_vain(c, s) ? CFX_OK : rows[c->op].kernel(c);
}

/* What a rule says; an arithmetic on sizes that it did not ask after may have failed, too. */
static cfx_status apply_rule(cfxi_call *c)
{
    CFX_TRY(rows[c->op].rule(c));
    return c->err->status;
}

/* ---- in place ------------------------------------------------------------------------------ */

/* Rows whose kernels begin with a copy of their first argument, unless the result is that argument:
 * see cfxi_index_begin_from_self. */
static bool begins_from_self(cfx_operator op)
{
    return op == CFX_OPID_index_put || op == CFX_OPID_index_add || op == CFX_OPID_index_copy ||
           op == CFX_OPID_index_fill || op == CFX_OPID_scatter || op == CFX_OPID_scatter_add ||
           op == CFX_OPID_scatter_reduce;
}

/* Whether a tensor among the arguments from number 1 on, or in a list there, meets `self`. */
static bool meets(const cfxi_call *c, const cfxi_signature *s, const cfx_tensor *self)
{
    for (size_t i = 1; i < s->num_params; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i);
        size_t n;
        const cfx_datum *items = cfx_datum_items(c->args[i], &n);
        if (t && cfxi_tensor_may_overlap(self, t))
            return true;
        for (size_t k = 0; k < n; k++)
            if (items[k].kind == CFX_DATUM_TENSOR &&
                cfxi_tensor_may_overlap(self, items[k].as.tensor))
                return true;
    }
    return false;
}

/* Whether the kernel can write straight to `self`: the same type and sizes, strides as a kernel may
 * expect of a result, and every other argument is either exactly it or elsewhere. */
static bool writes_directly(const cfxi_call *c, const cfxi_signature *s, const cfx_tensor *self)
{
    const cfx_tensor *out = cfxi_rt_result_at(c, 0);
    bool from_self = begins_from_self(c->op);
    bool elementwise = cfx_operator_flags(c->op) & CFX_OPERATOR_ELEMENTWISE;
    if ((!elementwise && !from_self) || out->dtype != self->dtype ||
        !cfxi_tensor_has_whole_strides(self))
        return false;
    for (size_t i = 0; i < self->ndim; i++)
        if (self->stride[i] < 0 || (self->stride[i] == 0 && self->size[i] > 1))
            return false;
    if (from_self)
        return !meets(c, s, self);
    for (size_t i = 1; i < s->num_params; i++) {
        const cfx_tensor *t = cfxi_rt_tensor(c, i);
        if (t && cfxi_tensor_may_overlap(self, t) &&
            !(t->data == self->data && t->dtype == self->dtype && t->ndim == self->ndim &&
              memcmp(t->size, self->size, t->ndim * sizeof *t->size) == 0 &&
              memcmp(t->stride, self->stride, t->ndim * sizeof *t->stride) == 0))
            return false;
    }
    return true;
}

cfx_status cfxi_rt_check_cast(cfxi_call *c, cfx_dtype from, cfx_dtype to)
{
    if (cfxi_tensor_can_cast(from, to))
        return CFX_OK;
    return cfxi_fail(c, CFX_E_SHAPE, "result type %s can't be cast to the desired output type %s",
                     cfx_dtype_name(from), cfx_dtype_name(to));
}

cfx_status cfxi_rt_check_written(cfxi_call *c, const cfx_tensor *t)
{
    if (cfx_tensor_is_read_only(t))
        return cfxi_fail(c, CFX_E_VALUE, "cannot write to a tensor whose memory is read-only");
    const bool all_same = c->op == CFX_OPID_fill || c->op == CFX_OPID_zero;
    for (size_t i = 0; t->storage && !all_same && i < t->ndim; i++)
        if (t->stride[i] == 0 && t->size[i] > 1)
            return cfxi_fail(c, CFX_E_SHAPE,
                             "unsupported operation: more than one element of the written-to tensor"
                             " refers to a single memory location");
    return CFX_OK;
}

static cfx_status check_in_place(cfxi_call *c, const cfx_tensor *self)
{
    const cfx_tensor *out = cfxi_rt_result_at(c, 0);
    bool fits = out->ndim == self->ndim;
    for (size_t i = 0; fits && i < out->ndim; i++)
        fits = cfxi_rt_same_size(c, out->size[i], self->size[i]);
    if (!fits)
        return cfxi_fail(c, CFX_E_SHAPE,
                         "the result has a different shape from the tensor it is written to");
    CFX_TRY(cfxi_rt_check_cast(c, (cfx_dtype)out->dtype, (cfx_dtype)self->dtype));
    return cfxi_rt_check_written(c, self);
}

/* `self` takes the sizes and memory of the view that squeeze_ and the like give. */
static void become_view(cfx_tensor *self, const cfx_tensor *view)
{
    const size_t bytes = view->ndim * sizeof *view->size;
    self->reshaped = self->reshaped || self->ndim != view->ndim || self->data != view->data ||
                     memcmp(self->size, view->size, bytes) != 0 ||
                     memcmp(self->stride, view->stride, bytes) != 0;
    self->ndim = view->ndim;
    memcpy(self->size, view->size, sizeof self->size);
    memcpy(self->stride, view->stride, sizeof self->stride);
    self->data = view->data;
}

/* Views of the same memory change `self`'s header; other results its elements. */
static bool is_view_of(const cfx_tensor *out, const cfx_tensor *self)
{
    return out->storage && out->storage == self->storage && out != self;
}

static cfx_status compute_in_place(cfxi_call *c, const cfxi_signature *s, cfx_tensor *self)
{
    if (c->results[0].kind != CFX_DATUM_TENSOR)
        return cfxi_fail(c, CFX_E_TYPE, "the result of an in-place call must be a tensor");
    if (s->alias & 1) {  /* squeeze_, t_, ... or dropout_, whose result may be its argument */
        CFX_TRY(rows[c->op].kernel(c));
        if (is_view_of(cfxi_rt_result_at(c, 0), self)) {
            become_view(self, cfxi_rt_result_at(c, 0));
            return CFX_OK;
        }
        if (cfxi_rt_result_at(c, 0) == self)
            return CFX_OK;
        CFX_TRY(check_in_place(c, self));
        return cfxi_rt_copy(c->rt, self, cfxi_rt_result_at(c, 0), c->err);
    }
    CFX_TRY(check_in_place(c, self));
    if (writes_directly(c, s, self)) {
        cfxi_rt_result_datum(c, 0, cfx_datum_tensor(cfx_tensor_retain(self)));
        return run_kernel(c, s);
    }
    CFX_TRY(allocate_results(c, s));
    CFX_TRY(run_kernel(c, s));
    return cfxi_rt_copy(c->rt, self, cfxi_rt_result_at(c, 0), c->err);
}

/* squeeze_ and the like when nothing is computed: an abstract tensor takes the new sizes, but one
 * with memory is the caller's and stays what it is. */
static cfx_datum infer_view_in_place(cfxi_call *c, cfx_tensor *self)
{
    const cfx_datum view = c->results[0];
    c->results[0].kind = CFX_DATUM_INVALID;
    cfxi_rt_call_drop_results(c);
    if (self->storage || view.kind != CFX_DATUM_TENSOR)
        return view;
    become_view(self, view.as.tensor);
    cfx_datum_release(view);
    return cfx_datum_tensor(cfx_tensor_retain(self));
}

/* The row `c->op` computes; its first argument receives the result and is what comes back. */
static cfx_datum run_in_place(cfxi_call *c, const cfxi_signature *s)
{
    cfx_tensor *self = cfxi_rt_tensor(c, 0);
    cfx_status status = CFX_OK;
    if (!self)
        status = cfxi_fail(c, CFX_E_TYPE, "the first argument must be a tensor to write to");
    if (status == CFX_OK)
        status = apply_rule(c);
    if (status == CFX_OK && c->infer && !(s->alias & 1))
        status = check_in_place(c, self);
    else if (status == CFX_OK && c->infer)
        return infer_view_in_place(c, self);
    else if (status == CFX_OK)
        status = compute_in_place(c, s, self);
    cfxi_rt_call_drop_results(c);
    return status == CFX_OK ? cfx_datum_tensor(cfx_tensor_retain(self))
                            : cfx_datum_invalid();
}

/* ---- calling ------------------------------------------------------------------------------- */

static cfx_datum run_plain(cfxi_call *c, const cfxi_signature *s)
{
    cfx_status status = apply_rule(c);
    if (status == CFX_OK && !c->infer)
        status = allocate_results(c, s);
    if (status == CFX_OK && !c->infer)
        status = run_kernel(c, s);
    cfx_datum result = cfx_datum_invalid();
    if (status == CFX_OK)
        result = cfxi_rt_call_pack(c, s);
    cfxi_rt_call_drop_results(c);
    return result;
}

/* ---- planning ------------------------------------------------------------------------------ */

static bool is_planned(cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        if (is_planned(items[i]))
            return true;
    return d.kind == CFX_DATUM_TENSOR && d.as.tensor->storage && d.as.tensor->storage->planned;
}

/* Whether a call is to be noted, not computed: it reads memory that is only planned, or has to
 * happen in each run. */
static bool is_to_be_noted(cfx_operator op, const cfx_datum *args, size_t n)
{
    if (cfx_operator_flags(op) & (CFX_OPERATOR_RANDOM | CFX_OPERATOR_STATE | CFX_OPERATOR_CHECKS |
                                  CFX_OPERATOR_GLOBAL))
        return true;
    for (size_t i = 0; i < n; i++)
        if (is_planned(args[i]))
            return true;
    return false;
}

/* Whether the rule has described all results, as tensors of known sizes; the first may not be
 * None. */
static bool is_described(const cfxi_call *c, const cfxi_signature *s)
{
    for (size_t i = 0; i < s->num_results; i++) {
        const bool none = i > 0 && c->results[i].kind == CFX_DATUM_NONE;
        if (!none && (c->results[i].kind != CFX_DATUM_TENSOR || !is_known(cfxi_rt_result_at(c, i))))
            return false;
    }
    return true;
}

/* Whether something is left for the kernel: a result without memory, or an effect. */
static bool is_unfinished(const cfxi_call *c, const cfxi_signature *s)
{
    for (size_t i = 0; i < s->num_results; i++)
        if (c->results[i].kind == CFX_DATUM_TENSOR && !cfxi_rt_result_at(c, i)->storage)
            return true;
    return s->num_results == 0;
}

/* Whether a rule that computes its result, too, has only described it. */
static bool leaves_header(const cfxi_call *c, const cfxi_signature *s)
{
    for (size_t i = 0; i < s->num_results; i++)
        if (c->results[i].kind == CFX_DATUM_TENSOR && !cfxi_rt_result_at(c, i)->storage)
            return true;
    return false;
}

static cfx_datum plan_row(cfxi_call *c, const cfxi_signature *s, bool in_place)
{
    cfx_datum result = cfx_datum_invalid();
    cfx_status status = CFX_OK;
    if (in_place || cfx_operator_regions(c->op) > 0 || strchr(s->schema, '!'))
        status = cfxi_fail(c, CFX_E_UNSUPPORTED, "a call with regions or in place has no plan");
    if (status == CFX_OK)
        status = apply_rule(c);
    for (size_t i = 0; status == CFX_OK && i < s->num_results; i++)
        if (c->results[i].symbolic)
            status = cfxi_fail(c, CFX_E_UNSUPPORTED, "the result is a number of a tensor");
    if (status == CFX_OK && (!cfxi_rt_is_by_rule(c->op) || leaves_header(c, s))) {
        if (!is_described(c, s))
            status = cfxi_fail(c, CFX_E_UNSUPPORTED, "the result depends on elements");
        else if (is_unfinished(c, s))
            status = c->planner->note(c->planner, c, s);
    }
    if (status == CFX_OK)
        result = cfxi_rt_call_pack(c, s);
    cfxi_rt_call_drop_results(c);
    return result;
}

/* Moves a result that the kernel has put elsewhere to where it is planned. */
static cfx_status settle(cfxi_call *c, size_t i, cfx_status status)
{
    const cfx_datum found = c->results[i];
    if (!c->planned[i] || (found.kind == CFX_DATUM_TENSOR && found.as.tensor == c->planned[i]))
        return status;
    if (status == CFX_OK && found.as.tensor->data != c->planned[i]->data)
        status = cfxi_rt_copy(c->rt, c->planned[i], found.as.tensor, c->err);
    cfx_datum_release(found);
    c->results[i] = cfx_datum_tensor(c->planned[i]);
    return status;
}

/* A row that computes in its rule is asked for the rule again. */
cfx_status cfxi_rt_call_kernel(cfxi_call *c, const cfxi_signature *s)
{
    cfx_status status = cfxi_rt_is_by_rule(c->op) ? apply_rule(c) : run_kernel(c, s);
    for (size_t i = 0; i < s->num_results; i++)
        status = settle(c, i, status);
    return status;
}

/* ---- messages ------------------------------------------------------------------------------ */

/* Characters of the arguments and the reason in a message, and of the arguments in any case. */
enum { MOST_TOLD = 240, FEWEST_TOLD = 80 };

/* A sink for the beginning of a text: lists that are in many places print ever longer. */
static cfx_status write_beginning(void *ctx, const char *data, size_t size)
{
    cfx_buffer *text = ctx;
    const size_t room = text->size < MOST_TOLD ? MOST_TOLD - text->size : 0;
    const cfx_status status = cfx_buffer_append(text, data, size < room ? size : room);
    return status == CFX_OK && size > room ? CFX_E_LIMIT : status;
}

static cfx_sink beginning(cfx_buffer *text) { return (cfx_sink){write_beginning, text}; }

/* Whether it prints as the other does: good enough for what a message leaves out. */
static bool prints_as(const cfxi_call *c, cfx_datum a, cfx_datum b)
{
    cfx_buffer first;
    cfx_buffer second;
    cfx_buffer_init(&first, c->rt->allocator);
    cfx_buffer_init(&second, c->rt->allocator);
    const bool same = cfx_datum_print(a, c->dims, beginning(&first), NULL) == CFX_OK &&
                      cfx_datum_print(b, c->dims, beginning(&second), NULL) == CFX_OK &&
                      strcmp(first.data, second.data) == 0;
    cfx_buffer_free(&first);
    cfx_buffer_free(&second);
    return same;
}

/* How many arguments say something: defaults at the end do not. */
static size_t count_telling(const cfxi_call *c, const cfxi_signature *s)
{
    size_t n = s->num_params;
    while (n > 0 && (c->args[n - 1].kind == CFX_DATUM_INVALID ||
                     prints_as(c, c->args[n - 1], s->params[n - 1].value)))
        n--;
    return n;
}

void cfxi_rt_call_explain(const cfxi_call *c, const char *name, const cfxi_signature *s)
{
    char what[sizeof c->err->message];
    cfx_buffer text;
    if (!c->err || c->err->status == CFX_E_NOMEM)
        return;
    memcpy(what, c->err->message, sizeof what);
    const size_t n = count_telling(c, s);
    cfx_buffer_init(&text, c->rt->allocator);
    for (size_t i = 0; i < n; i++) {
        if (c->args[i].kind == CFX_DATUM_INVALID)
            continue;
        if (text.size)
            cfx_buffer_append(&text, ", ", 2);
        cfx_datum_print(c->args[i], c->dims, beginning(&text), NULL);
    }
    const size_t size = strlen(what);  /* why it fails comes first; the line is still to be added */
    const size_t room = size < MOST_TOLD - FEWEST_TOLD ? MOST_TOLD - size : FEWEST_TOLD;
    cfx_error_set(c->err, c->err->status, "%s(%.*s%s): %.280s", name, (int)room, text.data,
                  text.size > room ? "..." : "", what);
    cfx_buffer_free(&text);
}

/* Arguments of what Python computes: numbers and containers stay what they are. */
static cfx_status take_as_given(const cfxi_call *c, const cfxi_signature *s, const cfx_datum *args,
                                size_t n, cfx_datum *full)
{
    for (size_t i = 0; i < s->num_params; i++)
        full[i] = i < n ? cfx_datum_retain(args[i]) : cfx_datum_invalid();
    for (size_t i = 0; !c->infer && i < s->num_params; i++)
        if (full[i].kind == CFX_DATUM_TENSOR)
            CFX_TRY(cfxi_tensor_settle(full[i].as.tensor, c->err));
    return CFX_OK;
}

/* `c` says how: all but `op` and `args`. */
static cfx_datum call_row(cfxi_call c, cfx_operator op, const cfx_datum *args, size_t n)
{
    cfx_error own = {0};
    cfx_datum result = cfx_datum_invalid();
    cfx_datum full[CFXI_MOST_PARAMS];
    const cfxi_watch *watch = c.watch;
    c.err = cfxi_base_error_or(c.err, &own);
    c.err->status = CFX_OK;  /* rules ask whether an arithmetic on sizes went well */
    bool known = (unsigned)op < CFX_OPERATOR_COUNT;
    const cfxi_signature *s = cfxi_rt_signature_of(c.rt, known ? op : CFX_OPID_NONE, c.err);
    if (!s)
        return result;
    if (!known || (!rows[op].rule && !rows[s->functional].rule)) {
        cfx_error_set(c.err, CFX_E_UNSUPPORTED, "the operator '%s' has no kernel",
                      cfx_operator_name(op) ? cfx_operator_name(op) : "?");
        return result;
    }
    bool in_place = !rows[op].rule;
    c.op = in_place ? s->functional : op;
    c.args = full;
    bool python = cfxi_rt_python_takes(op, args, n);
    if (c.planner && !is_to_be_noted(op, args, n))
        c.planner = NULL;
    cfx_status status = python ? take_as_given(&c, s, args, n, full)
                               : cfxi_rt_arguments(&c, s, args, n, full);
    if (status == CFX_OK && python) {
        result = cfxi_rt_python_call(&c, in_place);
    } else if (status == CFX_OK && c.planner) {
        result = plan_row(&c, s, in_place);
    } else if (status == CFX_OK && in_place) {
        const cfxi_signature *functional = cfxi_rt_signature_of(c.rt, c.op, c.err);
        if (functional)
            result = run_in_place(&c, functional);
    } else if (status == CFX_OK) {
        result = run_plain(&c, s);
    }
    if (result.kind == CFX_DATUM_INVALID && cfx_operator_regions(op) == 0)
        cfxi_rt_call_explain(&c, cfx_operator_name(op), s);  /* what fails in a region says where */
    else if (result.kind != CFX_DATUM_INVALID && watch && watch->meter &&
             cfxi_rt_meter_call(watch->meter, &c, op, s->num_params, result) != CFX_OK) {
        cfx_datum_release(result);
        result.kind = CFX_DATUM_INVALID;
    }
    for (size_t i = 0; i < s->num_params; i++)
        cfx_datum_release(full[i]);
    return result;
}

cfx_datum cfxi_rt_call_watched(cfx_runtime *rt, cfx_dims *dims, bool infer, const cfxi_watch *watch,
                               cfx_operator op, const cfx_datum *args, size_t n, cfx_error *err)
{
    const cfxi_call how = {.rt = rt, .dims = dims, .infer = infer, .watch = watch, .err = err};
    return call_row(how, op, args, n);
}

cfx_datum cfxi_rt_call_giving(cfx_runtime *rt, cfx_operator op, const cfx_datum *args, size_t n,
                              cfx_error *err)
{
    const cfxi_call how = {.rt = rt, .gives = true, .err = err};
    return call_row(how, op, args, n);
}

cfx_datum cfxi_rt_call_planned(cfx_runtime *rt, cfxi_planner *planner, cfx_operator op,
                               const cfx_datum *args, size_t n, cfx_error *err)
{
    const cfxi_call how = {.rt = rt, .planner = planner, .err = err};
    return call_row(how, op, args, n);
}

bool cfxi_rt_all_given(const cfx_runtime *rt, const cfx_datum *args, size_t n, cfx_error *err)
{
    if (cfxi_base_expect(rt, "runtime", err) != CFX_OK)
        return false;
    for (size_t i = 0; err && err->status != CFX_OK && i < n; i++)
        if (args[i].kind == CFX_DATUM_INVALID)
            return false;
    return true;
}

static cfx_datum call(cfx_runtime *rt, cfx_dims *dims, bool infer, cfx_operator op,
                      const cfx_datum *args, size_t n, cfx_error *err)
{
    cfx_error own = {0};  /* *err is written to only if this call fails */
    if (!cfxi_rt_all_given(rt, args, n, err))
        return cfx_datum_invalid();
    cfx_datum result = cfxi_rt_call_watched(rt, dims, infer, NULL, op, args, n, &own);
    if (result.kind == CFX_DATUM_INVALID && err)
        *err = own;
    return result;
}

cfx_datum cfx_operator_run(cfx_runtime *rt, cfx_operator op, const cfx_datum *args, size_t n,
                           cfx_error *err)
{
    return call(rt, NULL, false, op, args, n, err);
}

cfx_datum cfx_operator_infer(cfx_runtime *rt, cfx_dims *dims, cfx_operator op,
                             const cfx_datum *args, size_t n, cfx_error *err)
{
    return call(rt, dims, true, op, args, n, err);
}

cfx_datum cfxi_rt_sub(cfxi_call *c, cfx_operator op, const cfx_datum *args, size_t n)
{
    const cfxi_call how = {.rt = c->rt, .dims = c->dims, .infer = c->infer, .planner = c->planner,
                           .err = c->err};
    return call_row(how, op, args, n);
}

cfx_tensor *cfxi_rt_sub_tensor(cfxi_call *c, cfx_operator op, const cfx_datum *args, size_t n)
{
    cfx_datum d = cfxi_rt_sub(c, op, args, n);
    if (d.kind == CFX_DATUM_TENSOR)
        return d.as.tensor;
    if (d.kind != CFX_DATUM_INVALID)
        cfxi_fail(c, CFX_E_TYPE, "'%s' did not return a tensor", cfx_operator_name(op));
    cfx_datum_release(d);
    return NULL;
}
