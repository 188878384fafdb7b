/* program_run.c - the interpreter: one loop, for computing and for propagating types and shapes.
 *
 * Of a compiled program (src/plan), it runs only what lies between the stretches that are planned.
 *
 * A run has its slots and a stack for arguments in one block, so that a program can be run by any
 * number of threads. Regions are run by the operators that take them (kernels/control.c).
 */
#include "program_impl.h"

#include <stdio.h>

enum { FEW = 64 };  /* values for which the C stack has room */

typedef struct run {
    const cfx_program *p;
    cfx_runtime *rt;
    cfx_dims *dims;
    bool infer;
    const cfxi_watch *watch;  /* or NULL */
    cfx_datum *slots;
    cfx_datum *stack;
    size_t depth;             /* of the stack */
    cfx_datum *taken;         /* the inputs, if the caller gives them up; or NULL */
    bool strict;              /* of a partial program: an operator that fails ends it */
    bool whole;               /* of a partial region: a value that is not known ends it, too */
    cfx_error *err;
} run;

static void drop(run *r, size_t depth)
{
    while (r->depth > depth)
        cfx_datum_release(r->stack[--r->depth]);
}

/* Makes one container of the last values. */
static bool make_seq(run *r, const cfxi_piece *piece)
{
    const size_t first = r->depth - piece->index;
    cfx_datum d = cfx_datum_seq((cfx_datum_kind)piece->datum, r->stack + first, piece->index,
                                r->rt->allocator, r->err);
    drop(r, first);
    r->stack[r->depth++] = d;
    return d.kind != CFX_DATUM_INVALID;
}

/* A value that nobody knows is None to who looks at the result. */
static cfx_datum known(const run *r, cfx_datum d)
{
    return r->p->partial && d.kind == CFX_DATUM_INVALID ? cfx_datum_none() : d;
}

/* Puts what the pieces say on the stack; false if memory is out, or lists nest too deeply. */
static bool evaluate(run *r, uint32_t first, uint32_t end)
{
    const cfxi_piece *pieces = r->p->pieces.data;
    const cfx_datum *constants = r->p->constants.data;
    for (uint32_t i = first; i < end; i++) {
        const cfxi_piece *piece = &pieces[i];
        switch ((cfxi_piece_kind)piece->kind) {
        case CFXI_PIECE_CONSTANT:
            r->stack[r->depth++] = cfx_datum_retain(constants[piece->index]);
            break;
        case CFXI_PIECE_SLOT:
            r->stack[r->depth++] = known(r, cfx_datum_retain(r->slots[piece->index]));
            break;
        case CFXI_PIECE_TAKE:
            r->stack[r->depth++] = known(r, r->slots[piece->index]);
            r->slots[piece->index].kind = CFX_DATUM_INVALID;
            break;
        case CFXI_PIECE_SEQ:
            if (!make_seq(r, piece))
                return false;
            break;
        }
    }
    return true;
}

/* ---- messages ------------------------------------------------------------------------------ */

void cfxi_rt_locate(const char *node, const char *in, uint32_t line, cfx_error *err)
{
    char what[sizeof err->message];
    char file[160] = "";
    if (err->status == CFX_E_NOMEM || strstr(err->message, "(node %"))
        return;
    memcpy(what, err->message, sizeof what);
    if (in) {
        const size_t size = strlen(in);  /* the end of a path says most */
        snprintf(file, sizeof file, "%s:%u: ", in + (size > 120 ? size - 120 : 0), line);
    }
    cfx_error_set(err, err->status, "%s%.290s (node %%%.60s)", file, what, node);
}

static void locate(const cfxi_instruction *i, cfx_error *err)
{
    cfxi_rt_locate(i->name, i->file, i->line, err);
}

/* ---- who watches --------------------------------------------------------------------------- */

static cfx_status add_path(cfx_buffer *path, const cfxi_watch *w)
{
    if (!w || !w->node)
        return CFX_OK;
    CFX_TRY(add_path(path, w->outer));  /* as deep as regions nest */
    CFX_TRY(cfx_buffer_append(path, w->node, strlen(w->node)));
    return cfx_buffer_append(path, "/", 1);
}

static cfx_status tell(const run *r, const char *node, cfx_datum result)
{
    const cfxi_watch *w = r->watch;
    cfx_buffer path;
    if (!w || !w->each)
        return CFX_OK;
    cfx_buffer_init(&path, r->rt->allocator);
    cfx_status status = add_path(&path, w);
    if (status == CFX_OK)
        status = cfx_buffer_append(&path, node, strlen(node));
    if (status != CFX_OK)
        cfxi_base_nomem(r->err);
    else if ((status = w->each(w->ctx, path.data, result)) != CFX_OK)
        cfxi_base_failed(r->err, status);
    cfx_buffer_free(&path);
    return status;
}

/* ---- running ------------------------------------------------------------------------------- */

static cfx_status set_inputs(run *r, const cfx_datum *inputs, size_t n)
{
    const cfx_program *p = r->p;
    if (n > p->inputs.size)
        return cfx_error_set(r->err, CFX_E_TYPE, "too many inputs: expected at most %zu, got %zu",
                             p->inputs.size, n);
    for (size_t i = 0; i < p->inputs.size; i++) {
        const cfxi_input *input = (const cfxi_input *)p->inputs.data + i;
        const bool given = i < n && inputs[i].kind != CFX_DATUM_INVALID;
        const cfx_datum d = given ? inputs[i] : input->value;
        if (d.kind == CFX_DATUM_INVALID)
            return cfx_error_set(r->err, CFX_E_TYPE, "the input '%s' is missing", input->name);
        if (input->slot != CFXI_NO_SLOT) {
            /* all runs have the default in common, and this one may write to a list in it */
            r->slots[input->slot] = !given      ? cfxi_tensor_copy_lists(d, r->err)
                                    : r->taken ? d
                                               : cfx_datum_retain(d);
            if (r->slots[input->slot].kind == CFX_DATUM_INVALID)
                return r->err->status;
            if (given && r->taken)
                r->taken[i].kind = CFX_DATUM_INVALID;
            if (r->watch && r->watch->meter)
                CFX_TRY(cfxi_rt_meter_set(r->watch->meter, input->slot, d, r->err));
        }
        CFX_TRY(tell(r, input->name, d));
    }
    for (size_t i = 0; r->watch && i < p->attributes.size; i++) {
        const cfxi_attribute *attribute = (const cfxi_attribute *)p->attributes.data + i;
        CFX_TRY(tell(r, attribute->name, attribute->value));
    }
    return CFX_OK;
}

/* What dies with an instruction, and what it leaves. */
static cfx_status meter_step(const run *r, const cfxi_instruction *i, cfx_datum result)
{
    const cfxi_piece *pieces = r->p->pieces.data;
    cfxi_meter *meter = r->watch ? r->watch->meter : NULL;
    if (!meter)
        return CFX_OK;
    for (uint32_t k = i->first; k < i->end; k++)
        if (pieces[k].kind == CFXI_PIECE_TAKE)
            CFX_TRY(cfxi_rt_meter_drop(meter, pieces[k].index, r->err));
    if (i->slot != CFXI_NO_SLOT)
        CFX_TRY(cfxi_rt_meter_set(meter, i->slot, result, r->err));
    return cfxi_rt_meter_end_call(meter, r->err);
}

/* list + list, where nobody holds the first but the stack, so that it was used for the last time:
 * the items are added to it. So a loop that appends to a list in its state does not copy it at each
 * turn. */
static bool appends(const run *r, const cfxi_instruction *i)
{
    return i->op == CFX_OPID_add && !i->custom && !r->infer && !r->watch && i->num_args == 2 &&
           cfxi_tensor_can_extend(r->stack[0], r->stack[1]);
}

static cfx_datum extended(run *r)
{
    size_t at;
    size_t n;
    const cfx_datum list = r->stack[0];
    const cfx_datum *items = cfx_datum_items(r->stack[1], &n);
    cfx_datum_items(list, &at);
    const cfx_status status = cfxi_tensor_splice(list, at, 0, items, n, r->err);
    return status == CFX_OK ? cfx_datum_retain(list) : cfx_datum_invalid();
}

/* Whoever watches wants to see each node, and the reference is computed by plain kernels. */
static bool runs_stretches(const run *r)
{
    return r->p->stretches && !r->infer && !r->watch && !r->rt->reference;
}

static cfx_datum perform(run *r, const cfxi_instruction *i, const cfxi_watch *watch)
{
    if (appends(r, i))
        return extended(r);
    if (runs_stretches(r)) {
        const cfxi_instruction *first = r->p->instructions.data;
        const cfx_datum d = r->p->stretches->call(r->p->stretches, r->rt, (uint32_t)(i - first),
                                                  r->stack, r->depth, r->err);
        if (d.kind != CFX_DATUM_INVALID || r->err->status != CFX_OK)
            return d;
    }
    if (!i->custom && !r->infer && !watch && cfx_operator_regions(i->op) > 0)
        return cfxi_rt_call_giving(r->rt, i->op, r->stack, i->num_args, r->err);
    return i->custom ? cfxi_rt_custom_call(r->rt, r->dims, r->infer, watch, i->custom, r->stack,
                                           i->num_args, r->err)
                     : cfxi_rt_call_watched(r->rt, r->dims, r->infer, watch, i->op, r->stack,
                                            i->num_args, r->err);
}

/* Whether the value of an instruction is not known, because it calls nothing, or one of its
 * arguments is not. */
static bool is_unknown(const run *r, const cfxi_instruction *i)
{
    const cfxi_piece *pieces = r->p->pieces.data;
    if (!i->op && !i->custom)
        return true;
    for (uint32_t k = i->first; k < i->end; k++)
        if ((pieces[k].kind == CFXI_PIECE_SLOT || pieces[k].kind == CFXI_PIECE_TAKE) &&
            r->slots[pieces[k].index].kind == CFX_DATUM_INVALID)
            return true;
    return false;
}

/* What a run of a partial program that cannot go on leaves: CFX_OK, and a value that is not known,
 * if it need not end. What nobody can compute here is not an error of the program's. */
static cfx_status forgive(const run *r, cfx_status status)
{
    if (status == CFX_E_NOMEM || r->whole || (r->strict && status != CFX_E_UNSUPPORTED))
        return status;
    *r->err = (cfx_error){0};
    return CFX_OK;
}

/* An instruction of a partial program. */
static cfx_status step_partly(run *r, const cfxi_instruction *i)
{
    const cfxi_piece *pieces = r->p->pieces.data;
    cfx_datum result = cfx_datum_invalid();
    if (is_unknown(r, i))
        cfx_error_set(r->err, CFX_E_UNSUPPORTED, "the value of %%%.60s is not known", i->name);
    else if (evaluate(r, i->first, i->end))
        result = perform(r, i, NULL);
    drop(r, 0);
    if (result.kind == CFX_DATUM_INVALID)
        CFX_TRY(forgive(r, r->err->status));
    for (uint32_t k = i->first; k < i->end; k++) {  /* what was not evaluated */
        if (pieces[k].kind == CFXI_PIECE_TAKE) {
            cfx_datum_release(r->slots[pieces[k].index]);
            r->slots[pieces[k].index] = cfx_datum_invalid();
        }
    }
    if (i->slot == CFXI_NO_SLOT) {
        cfx_datum_release(result);
        return CFX_OK;
    }
    cfx_datum_release(r->slots[i->slot]);
    r->slots[i->slot] = result;
    return CFX_OK;
}

static cfx_status step(run *r, const cfxi_instruction *i)
{
    cfxi_watch inner = {.node = i->name, .outer = r->watch};
    if (cfxi_rt_go_on(r->rt, r->err) != CFX_OK) {
        locate(i, r->err);
        return CFX_E_INTERRUPTED;
    }
    if (r->watch) {
        inner.each = r->watch->each;
        inner.ctx = r->watch->ctx;
        inner.meter = r->watch->meter;
    }
    if (!evaluate(r, i->first, i->end)) {
        locate(i, r->err);
        return r->err->status;
    }
    const bool tells = r->rt->step && !r->infer;
    cfx_step told = {.node = i->name, .file = i->file, .line = i->line,
                     .kernel = i->custom ? "custom" : cfx_operator_name(i->op)};
    for (size_t k = 0; tells && k < r->depth; k++)
        told.bytes += cfxi_rt_bytes_of(r->stack[k]);
    told.begin = tells ? cfxi_rt_clock() : 0;
    cfx_datum result = perform(r, i, r->watch ? &inner : NULL);
    drop(r, 0);
    if (result.kind == CFX_DATUM_INVALID) {
        locate(i, r->err);
        return r->err->status;
    }
    if (tells) {
        told.bytes += cfxi_rt_bytes_of(result);
        cfxi_rt_tell_step(r->rt, told);
    }
    cfx_status status = tell(r, i->name, result);
    if (status == CFX_OK)
        status = meter_step(r, i, result);
    if (i->slot == CFXI_NO_SLOT)
        cfx_datum_release(result);
    else
        r->slots[i->slot] = result;
    return status;
}

static cfx_datum run_all(run *r, const cfx_datum *inputs, size_t n)
{
    const cfx_program *p = r->p;
    const cfxi_instruction *instructions = p->instructions.data;
    const cfx_datum nothing = cfx_datum_invalid();
    cfxi_meter *meter = r->watch ? r->watch->meter : NULL;
    if (meter && cfxi_rt_meter_enter(meter, p->num_slots, r->err) != CFX_OK)
        return nothing;
    cfx_status status = set_inputs(r, inputs, n);
    uint32_t again = 0;
    for (uint32_t i = 0; status == CFX_OK && i < p->instructions.size; i++) {
        if (runs_stretches(r) && i >= again)
            status = p->stretches->run(p->stretches, r->rt, i, r->slots, &i, &again, r->err);
        if (status == CFX_OK && i < p->instructions.size)
            status = p->partial ? step_partly(r, &instructions[i]) : step(r, &instructions[i]);
    }
    if (meter)
        cfxi_rt_meter_leave(meter);
    if (status != CFX_OK)
        return nothing;
    if (p->result == CFXI_NO_SLOT)
        return cfx_datum_none();
    if (!evaluate(r, p->result, (uint32_t)p->pieces.size))
        return nothing;
    return r->stack[--r->depth];
}

static cfx_datum run_program(run *r, const cfx_datum *inputs, size_t n)
{
    cfx_datum few[FEW];
    cfx_error own;
    const size_t count = (size_t)r->p->num_slots + r->p->most_pieces;
    cfx_datum *block =
        count <= FEW ? few : cfxi_base_alloc(r->rt->allocator, count * sizeof *block);
    r->err = cfxi_base_error_or(r->err, &own);
    if (!block) {
        cfxi_base_nomem(r->err);
        return cfx_datum_invalid();
    }
    r->slots = block;
    r->stack = block + r->p->num_slots;
    for (size_t i = 0; i < r->p->num_slots; i++)
        r->slots[i].kind = CFX_DATUM_INVALID;
    cfx_datum result = run_all(r, inputs, n);
    drop(r, 0);
    for (size_t i = 0; i < r->p->num_slots; i++)
        cfx_datum_release(r->slots[i]);
    if (block != few)
        cfxi_base_free(r->rt->allocator, block, count * sizeof *block);
    return result;
}

/* For the caller of the library: what earlier calls should have made is there, or *err keeps their
 * reason; it is written to only if this one fails. */
static cfx_datum run_given(run *r, const cfx_datum *inputs, size_t n, cfx_error *err)
{
    const cfx_datum nothing = cfx_datum_invalid();
    cfx_error own = {0};
    if (cfxi_base_expect(r->p, "program", err) || cfxi_base_expect(r->rt, "runtime", err))
        return nothing;
    for (size_t i = 0; err && err->status != CFX_OK && i < n; i++)
        if (inputs[i].kind == CFX_DATUM_INVALID)
            return nothing;
    r->err = &own;
    const cfxi_run_mark mark = r->infer ? 0 : cfxi_rt_run_begin(r->rt);
    cfx_datum result = run_program(r, inputs, n);
    cfxi_rt_run_end(r->rt, mark);
    if (result.kind == CFX_DATUM_INVALID && err)
        *err = own;
    return result;
}

/* Whether some of it is memory that nobody may write to: weights in a file. */
static bool has_file(cfx_datum d)
{
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    for (size_t i = 0; i < n; i++)
        if (has_file(items[i]))
            return true;
    return d.kind == CFX_DATUM_TENSOR && d.as.tensor->storage && d.as.tensor->storage->give_back;
}

/* The same with copies of what is in a file: the caller may write to what it is given. */
static cfx_datum without_file(cfx_runtime *rt, cfx_datum d, cfx_error *err)
{
    if (!has_file(d))
        return cfx_datum_retain(d);
    if (d.kind == CFX_DATUM_TENSOR)
        return cfx_operator_run(rt, CFX_OPID_clone, &d, 1, err);
    size_t n;
    const cfx_datum *items = cfx_datum_items(d, &n);
    cfx_datum made = cfx_datum_seq((cfx_datum_kind)d.kind, items, n, d.as.seq->allocator, err);
    for (size_t i = 0; made.kind != CFX_DATUM_INVALID && i < n; i++) {
        const cfx_datum item = without_file(rt, items[i], err);
        if (item.kind == CFX_DATUM_INVALID) {
            cfx_datum_release(made);
            return item;
        }
        cfx_datum_release(made.as.seq->items[i]);
        made.as.seq->items[i] = item;
    }
    if (made.kind != CFX_DATUM_INVALID)
        made.as.seq->op = d.as.seq->op;
    return made;
}

cfx_datum cfx_program_run(const cfx_program *p, cfx_runtime *rt, const cfx_datum *inputs, size_t n,
                          cfx_error *err)
{
    run r = {.p = p, .rt = rt};
    const cfx_datum result = run_given(&r, inputs, n, err);
    if (!has_file(result))
        return result;
    const cfx_datum made = without_file(rt, result, err);
    cfx_datum_release(result);
    return made;
}

cfx_datum cfxi_rt_program_watch(const cfx_program *p, cfx_runtime *rt, cfx_dims *dims,
                                const cfx_datum *inputs, size_t n, const cfxi_watch *watch,
                                cfx_error *err)
{
    run r = {.p = p, .rt = rt, .dims = dims, .infer = true, .watch = watch};
    return run_given(&r, inputs, n, err);
}

cfx_datum cfx_program_infer(const cfx_program *p, cfx_runtime *rt, cfx_dims *dims,
                            const cfx_datum *inputs, size_t n, cfx_infer_fn *each, void *ctx,
                            cfx_error *err)
{
    const cfxi_watch watch = {.each = each, .ctx = ctx};
    return cfxi_rt_program_watch(p, rt, dims, inputs, n, &watch, err);
}

cfx_datum cfxi_rt_program_sizes(const cfx_program *p, cfx_runtime *rt, cfx_dims *dims,
                                const cfx_datum *inputs, size_t n, bool strict, cfx_error *err)
{
    run r = {.p = p, .rt = rt, .dims = dims, .infer = true, .strict = strict};
    return run_given(&r, inputs, n, err);
}

cfx_datum cfxi_rt_region_take(const cfxi_call *c, cfx_datum region, cfx_datum *args, size_t n)
{
    run r = {.p = region.as.region, .rt = c->rt, .dims = c->dims, .infer = c->infer,
             .watch = c->watch, .whole = true, .err = c->err, .taken = args};
    const cfx_datum result = run_program(&r, args, n);
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(args[i]);
    return result;
}

cfx_datum cfxi_rt_region_run(const cfxi_call *c, cfx_datum region, const cfx_datum *args, size_t n)
{
    run r = {.p = region.as.region, .rt = c->rt, .dims = c->dims, .infer = c->infer,
             .watch = c->watch, .whole = true, .err = c->err};
    return run_program(&r, args, n);
}
