/* cfunc.c - C functions: `forward`, and one for each region, which stands before its user.
 *
 *     static cfx_var while_loop_body(cfx_scope *s, void *ctx, const cfx_var *in)
 *     {
 *         cfx_module *self = (cfx_module *)ctx;
 *         cfx_var x = in[0];
 *         ...
 *         return cfx_tuple(s, x, y);
 *     }
 */
#include "ccode_impl.h"

enum { MOST_SEPARATE = 3 };  /* inputs: forward, forward2, forward3 */

/* ---- control flow -------------------------------------------------------------------------- */

/* How the arguments of a row with regions lie. */
typedef struct c_form {
    cfx_operator op;
    const char *call;
    size_t regions[2];
    const char *suffix[2];
    cfxi_c_role roles[2];
    size_t num_regions;
    size_t operands;
} c_form;

static const c_form forms[] = {
    {CFX_OPID_cond, "cfx_if", {1, 2}, {"_then", "_else"}, {CFXI_C_BLOCK, CFXI_C_BLOCK}, 2, 3},
    {CFX_OPID_while_loop, "cfx_while", {0, 1}, {"_test", "_body"}, {CFXI_C_TEST, CFXI_C_STEP}, 2,
     2},
    {CFX_OPID_for_loop, "cfx_for", {1}, {"_body"}, {CFXI_C_TURN}, 1, 2},
};

static const c_form *form_of(const cfx_node *n)
{
    const cfx_operator op = n->op == CFX_OP_CALL_FUNCTION ? cfx_node_operator(n) : CFX_OPID_NONE;
    for (size_t i = 0; op && i < sizeof forms / sizeof *forms; i++)
        if (forms[i].op == op)
            return &forms[i];
    return NULL;
}

/* Moves inputs before all else, so that they are found without a look at the other nodes. */
static cfx_status inputs_first(cfx_graph *g, void *ctx, cfx_error *err)
{
    cfx_node *last = &g->root;
    for (cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        cfx_node *before = n->prev;
        if (n->op != CFX_OP_PLACEHOLDER)
            continue;
        if (before != last) {
            CFX_TRY(cfx_node_append(last, n, err));
            last = n;
            n = before;
        } else {
            last = n;
        }
    }
    return cfxi_analysis_each_region(g, inputs_first, ctx, err);
}

/* Asked for each reader of a loop's results: they stand first. */
static size_t count_inputs(const cfx_graph *g)
{
    size_t count = 0;
    const cfx_node *end = &g->root;
    for (const cfx_node *n = end->next; n != end && n->op == CFX_OP_PLACEHOLDER; n = n->next)
        count++;
    return count;
}

/* How many values the regions of a call are given. */
static size_t count_operands(const cfx_node *n, const c_form *form)
{
    size_t count;
    const cfx_value operands = cfx_node_arg(n, form->operands);
    const cfx_graph *last = cfx_value_graph(cfx_node_arg(n, form->regions[form->num_regions - 1]));
    if (cfx_value_items(operands, &count) || operands.kind != CFX_KIND_NODE)
        return count;
    count = last ? count_inputs(last) : 0;
    return count - (count > 0 && form->op == CFX_OPID_for_loop);
}

bool cfxi_emit_c_is_single_loop(const cfx_node *n)
{
    const c_form *form = form_of(n);
    return form && form->op != CFX_OPID_cond && count_operands(n, form) == 1;
}

/* Whether the region needs the module: reads an attribute, calls a module, or has one that does. */
static bool needs_self(const cfx_graph *g)
{
    for (const cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        if (n->op == CFX_OP_GET_ATTR || n->op == CFX_OP_CALL_MODULE)
            return true;
        for (uint32_t i = 0; n->args && i < n->args->size; i++)
            if (n->args->items[i].kind == CFX_KIND_GRAPH &&
                needs_self(cfx_value_graph(n->args->items[i])))
                return true;
    }
    return false;
}

/* The operands one by one; of a tuple that is a variable, its items. */
static void put_operands(cfxi_ccode *c, const cfx_node *n, const c_form *form)
{
    size_t count;
    const cfx_value operands = cfx_node_arg(n, form->operands);
    const cfx_value *items = cfx_value_items(operands, &count);
    const size_t wanted = count_operands(n, form);
    for (size_t i = 0; i < wanted; i++) {
        cfxi_emit_c_comma(c);
        if (items) {
            cfxi_emit_c_value(c, n, items[i], NULL, CFXI_C_VAR);
            continue;
        }
        cfxi_emit_c_text(c, "cfx_getitem(s, ");
        cfxi_emit_c_value(c, n, operands, NULL, CFXI_C_BARE);
        cfxi_emit_c_printf(c, ", %zu)", i);
    }
}

void cfxi_emit_c_control(cfxi_ccode *c, const cfx_node *n)
{
    const c_form *form = form_of(n);
    bool self = false;
    cfxi_emit_c_printf(c, "%s(s", form->call);
    if (form->op != CFX_OPID_while_loop) {
        cfxi_emit_c_comma(c);
        cfxi_emit_c_value(c, n, cfx_node_arg(n, 0), NULL, CFXI_C_BARE);
    }
    for (size_t i = 0; i < form->num_regions; i++) {
        const cfx_graph *region = cfx_value_graph(cfx_node_arg(n, form->regions[i]));
        const char *name = region ? cfxi_base_pointers_get(&c->function_of, region) : NULL;
        cfxi_emit_c_comma(c);
        cfxi_emit_c_text(c, name ? name : "?");
        self = self || (region && needs_self(region));
    }
    cfxi_emit_c_comma(c);
    cfxi_emit_c_text(c, self ? "self" : "NULL");
    c->self_used = c->self_used || self;
    put_operands(c, n, form);
    cfxi_emit_c_text(c, ")");
}

/* ---- statements ---------------------------------------------------------------------------- */

static void put_name(cfxi_ccode *c, const cfx_node *n)
{
    cfxi_emit_c_put(c, &c->line, n->name->data, n->name->size);
}

/* Whether a statement mentions it: an alias that nobody uses is no statement. */
static bool is_mentioned(const cfx_node *n)
{
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        if (cfx_use_user(use)->n_users > 0 || !cfxi_emit_c_is_alias(cfx_use_user(use)))
            return true;
    return false;
}

void cfxi_emit_c_statement(cfxi_ccode *c, const cfx_node *n)
{
    if (cfxi_emit_c_is_alias(n))
        return;
    if (is_mentioned(n)) {
        cfxi_emit_c_text(c, "cfx_var ");
        put_name(c, n);
        cfxi_emit_c_text(c, " = ");
    }
    cfxi_emit_c_call(c, n);
    cfxi_emit_c_text(c, ";");
    cfxi_emit_c_end_line(c, n);
}

/* What a loop's body with one variable returns: that one, not a tuple. */
static void put_single_result(cfxi_ccode *c, const cfx_node *n, cfx_value v)
{
    size_t count;
    const cfx_value *items = cfx_value_items(v, &count);
    if (items && count == 1) {
        cfxi_emit_c_result(c, n, items[0]);
        return;
    }
    cfxi_emit_c_text(c, "cfx_getitem(s, ");
    c->scope_used = true;
    cfxi_emit_c_value(c, n, v, NULL, CFXI_C_BARE);
    cfxi_emit_c_text(c, ", 0)");
}

void cfxi_emit_c_output(cfxi_ccode *c, const cfxi_c_function *f, const cfx_node *output)
{
    const cfx_value v = output ? cfx_node_arg(output, 0) : cfx_value_none();
    if (f->single && output)
        put_single_result(c, output, v);
    else
        cfxi_emit_c_result(c, output, v);
    cfxi_emit_c_text(c, ";");
    cfxi_emit_c_end_line(c, NULL);
}

/* The inputs that come in an array, those that are used. */
static void put_inputs(cfxi_ccode *c, const cfxi_c_function *f)
{
    size_t i = 0;
    for (const cfx_node *n = cfxi_ir_next_input(f->g, NULL); n; n = cfxi_ir_next_input(f->g, n)) {
        if (i++ < f->named || n->n_users == 0)
            continue;
        cfxi_emit_c_text(c, "cfx_var ");
        put_name(c, n);
        cfxi_emit_c_printf(c, " = in[%zu];", i - 1 - f->named);
        cfxi_emit_c_end_line(c, NULL);
        c->in_used = true;
    }
}

static cfx_status put_statements(cfxi_ccode *c, const cfxi_c_function *f, cfx_error *err)
{
    const cfx_node *n = f->g->root.next;
    for (; n != &f->g->root && n->op != CFX_OP_OUTPUT; n = n->next) {
        if (n->op != CFX_OP_PLACEHOLDER)
            cfxi_emit_c_statement(c, n);
        if (c->nomem)
            return cfxi_base_nomem(err);
    }
    cfxi_emit_c_text(c, "return ");
    cfxi_emit_c_output(c, f, n != &f->g->root ? n : NULL);
    return c->nomem ? cfxi_base_nomem(err) : CFX_OK;
}

/* ---- functions ----------------------------------------------------------------------------- */

void cfxi_emit_c_unused(cfxi_ccode *c, bool used, const char *name, size_t size)
{
    if (used)
        return;
    cfxi_emit_c_put(c, &c->text, "    (void)", 10);
    cfxi_emit_c_put(c, &c->text, name, size);
    cfxi_emit_c_put(c, &c->text, ";\n", 2);
}

void cfxi_emit_c_head(cfxi_ccode *c, const char *text)
{
    cfxi_emit_c_put(c, &c->text, text, strlen(text));
}

/* "cfx_var x, cfx_var y": as many inputs as have a `forward` of their own. */
static void put_parameters(cfxi_ccode *c, const cfx_node *first, size_t count)
{
    for (const cfx_node *n = first; n && count > 0; n = cfxi_ir_next_input(n->graph, n), count--) {
        cfxi_emit_c_head(c, ", cfx_var ");
        cfxi_emit_c_put(c, &c->text, n->name->data, n->name->size);
    }
}

static void unused_parameters(cfxi_ccode *c, const cfx_node *first, size_t count)
{
    for (const cfx_node *n = first; n && count > 0; n = cfxi_ir_next_input(n->graph, n), count--)
        cfxi_emit_c_unused(c, n->n_users > 0, n->name->data, n->name->size);
}

static void forward_head(cfxi_ccode *c, const cfxi_c_function *f)
{
    const cfx_node *first = cfxi_ir_next_input(f->g, NULL);
    const bool separate = f->named > 0;
    cfxi_emit_c_head(c, "\nstatic cfx_var forward(cfx_scope *s, cfx_module *self");
    put_parameters(c, first, f->named);
    cfxi_emit_c_head(c, separate ? ")\n{\n" : ", const cfx_var *in, size_t n)\n{\n");
    cfxi_emit_c_unused(c, c->scope_used, "s", 1);
    cfxi_emit_c_unused(c, c->self_used, "self", 4);
    cfxi_emit_c_unused(c, separate || c->in_used, "in", 2);
    cfxi_emit_c_unused(c, separate, "n", 1);
    unused_parameters(c, first, f->named);
}

static void region_head(cfxi_ccode *c, const cfxi_c_function *f)
{
    const bool turn = f->role == CFXI_C_TURN;
    const cfx_node *index = turn ? cfxi_ir_next_input(f->g, NULL) : NULL;
    cfxi_emit_c_head(c, "\nstatic cfx_var ");
    cfxi_emit_c_head(c, f->name);
    cfxi_emit_c_head(c, "(cfx_scope *s, void *ctx");
    if (index)
        put_parameters(c, index, 1);
    else if (turn)
        cfxi_emit_c_head(c, ", cfx_var i");
    cfxi_emit_c_head(c, ", const cfx_var *in)\n{\n");
    if (c->self_used)
        cfxi_emit_c_head(c, "    cfx_module *self = (cfx_module *)ctx;\n");
    cfxi_emit_c_unused(c, c->scope_used, "s", 1);
    cfxi_emit_c_unused(c, c->self_used, "ctx", 3);
    if (index)
        unused_parameters(c, index, 1);
    else
        cfxi_emit_c_unused(c, !turn, "i", 1);
    cfxi_emit_c_unused(c, c->in_used, "in", 2);
}

void cfxi_emit_c_finish(cfxi_ccode *c, const cfxi_c_function *f)
{
    if (f->role == CFXI_C_FORWARD)
        forward_head(c, f);
    else
        region_head(c, f);
    cfxi_emit_c_put(c, &c->text, c->body.data, c->body.size);
    cfxi_emit_c_head(c, "}\n");
}

void cfxi_emit_c_begin(cfxi_ccode *c)
{
    c->body.size = 0;
    c->location = 0;
    c->scope_used = c->self_used = c->in_used = false;
}

static cfxi_c_function function_of(cfx_graph *g, cfxi_c_role role, const char *name)
{
    cfxi_c_function f = {.g = g, .role = role, .name = name, .inputs = count_inputs(g)};
    if (role == CFXI_C_FORWARD)
        f.named = f.inputs <= MOST_SEPARATE ? f.inputs : 0;
    else
        f.named = role == CFXI_C_TURN && f.inputs > 0;
    f.single = (role == CFXI_C_STEP && f.inputs == 1) || (role == CFXI_C_TURN && f.inputs == 2);
    return f;
}

static cfx_status put_function(cfxi_ccode *c, const cfxi_c_function *f, cfx_error *err)
{
    CFX_TRY(cfxi_emit_c_rename(c, f->g, err));
    if (f->g->size > CFXI_C_LONG)
        return cfxi_emit_c_long_function(c, f, err);
    cfxi_emit_c_begin(c);
    put_inputs(c, f);
    CFX_TRY(put_statements(c, f, err));
    cfxi_emit_c_finish(c, f);
    return c->nomem ? cfxi_base_nomem(err) : CFX_OK;
}

/* ---- regions ------------------------------------------------------------------------------- */

static cfx_status put_regions(cfxi_ccode *c, cfx_graph *g, cfx_error *err);

static cfx_status put_region(cfxi_ccode *c, const cfx_node *n, const c_form *form, size_t i,
                             cfx_error *err)
{
    cfx_graph *region = cfx_value_graph(cfx_node_arg(n, form->regions[i]));
    cfx_buffer wish;
    if (!region) {
        cfxi_emit_c_refuse(c, n, "%s: an argument that must be a region is not a region",
                           cfx_operator_name(form->op));
        return CFX_OK;
    }
    cfx_buffer_init(&wish, c->allocator);
    bool good = cfx_buffer_append(&wish, n->name->data, n->name->size) == CFX_OK &&
                cfx_buffer_append(&wish, form->suffix[i], strlen(form->suffix[i])) == CFX_OK;
    const char *name = good ? cfxi_emit_c_name(c, c->functions, wish.data, wish.size) : NULL;
    cfx_buffer_free(&wish);
    if (!name ||
        !cfxi_base_pointers_set(&c->function_of, region, (void *)(uintptr_t)name, c->allocator))
        return cfxi_base_nomem(err);
    CFX_TRY(put_regions(c, region, err));
    const cfxi_c_function f = function_of(region, form->roles[i], name);
    return put_function(c, &f, err);
}

static cfx_status put_regions(cfxi_ccode *c, cfx_graph *g, cfx_error *err)
{
    for (const cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        const c_form *form = form_of(n);
        for (size_t i = 0; form && i < form->num_regions; i++)
            CFX_TRY(put_region(c, n, form, i, err));
    }
    return CFX_OK;
}

cfx_status cfxi_emit_c_functions(cfxi_ccode *c, size_t *inputs, cfx_error *err)
{
    CFX_TRY(inputs_first(c->g, NULL, err));
    const cfxi_c_function f = function_of(c->g, CFXI_C_FORWARD, "forward");
    *inputs = f.inputs;
    CFX_TRY(put_regions(c, c->g, err));
    return put_function(c, &f, err);
}
