/* csplit.c - a very long graph as several functions: compilers take more than twice as long for a
 * function of twice the length.
 *
 *     static void forward_part2(cfx_scope *s, cfx_module *self, cfx_var *vars)
 *     {
 *         cfx_var relu_199 = vars[3];                  what earlier parts made
 *         ...
 *         vars[3] = add_57;                            what later parts need
 *     }
 *
 * A place of `vars` is free again after the last part that reads it.
 */
#include "ccode_impl.h"

#include <stdio.h>

enum { PART = 200 };  /* nodes */

#define NO_PART UINT32_MAX

/* What is known of a node, by its number. */
typedef struct c_place {
    uint32_t last;    /* the last part that reads it */
    uint32_t loaded;  /* 1 + the part that has it as a variable by now */
    uint32_t slot;    /* of vars */
} c_place;

typedef struct c_split {
    cfxi_ccode *c;
    const cfxi_c_function *f;
    uint32_t first;    /* the mark of the first node */
    c_place *places;
    uint32_t *free;    /* slots that nobody needs any more */
    size_t num_free;
    uint32_t slots;    /* so many were needed so far */
    bool vars_used;    /* by the part that is being written */
    cfxi_vec names;    /* of const char *: of the functions so far */
    bool has_output;
} c_split;

/* The node whose name it has: the first item of a loop with one variable is the loop. */
static const cfx_node *named(const cfx_node *n)
{
    return cfxi_emit_c_is_alias(n) ? cfx_node_arg(n, 0).as.node : n;
}

/* How many of its inputs it mentions: an alias is no statement. */
static uint32_t num_read(const cfx_node *n) { return cfxi_emit_c_is_alias(n) ? 0 : n->n_inputs; }

static c_place *place_of(const c_split *p, const cfx_node *n)
{
    return &p->places[n->mark - p->first];
}

static uint32_t part_of(const c_split *p, const cfx_node *n)
{
    return n->op == CFX_OP_PLACEHOLDER ? NO_PART : (n->mark - p->first) / PART;
}

static bool is_before(const c_split *p, const cfx_node *n, uint32_t part)
{
    return n->op == CFX_OP_PLACEHOLDER || part_of(p, n) < part;
}

/* ---- what is read where -------------------------------------------------------------------- */

static void find_readers(c_split *p, const cfx_graph *g)
{
    for (const cfx_node *n = g->root.next; n != &g->root; n = n->next) {
        for (uint32_t i = 0; i < num_read(n); i++)
            place_of(p, named(n->inputs[i].def))->last = (n->mark - p->first) / PART;
        if (n->op == CFX_OP_OUTPUT) {
            p->has_output = true;
            return;
        }
    }
}

static uint32_t take_slot(c_split *p)
{
    return p->num_free > 0 ? p->free[--p->num_free] : p->slots++;
}

/* ---- parts --------------------------------------------------------------------------------- */

static void put_move(c_split *p, const cfx_node *n, bool load)
{
    cfxi_ccode *c = p->c;
    const uint32_t slot = place_of(p, n)->slot;
    p->vars_used = true;
    if (load)
        cfxi_emit_c_text(c, "cfx_var ");
    else
        cfxi_emit_c_printf(c, "vars[%u] = ", slot);
    cfxi_emit_c_put(c, &c->line, n->name->data, n->name->size);
    if (load)
        cfxi_emit_c_printf(c, " = vars[%u]", slot);
    cfxi_emit_c_text(c, ";");
    cfxi_emit_c_end_line(c, NULL);
}

/* Reads what a node needs of earlier parts. */
static void load_inputs(c_split *p, const cfx_node *n, uint32_t part)
{
    for (uint32_t i = 0; i < num_read(n); i++) {
        const cfx_node *def = named(n->inputs[i].def);
        c_place *place = place_of(p, def);
        if (!is_before(p, def, part) || place->loaded == part + 1)
            continue;
        place->loaded = part + 1;
        put_move(p, def, true);
        if (place->last == part)
            p->free[p->num_free++] = place->slot;
    }
}

/* The nodes of a part, from `first` on; returns the first of the next. */
static const cfx_node *put_part(c_split *p, const cfx_node *first, uint32_t part)
{
    cfxi_ccode *c = p->c;
    const cfx_node *root = &first->graph->root;
    const cfx_node *end = first;
    cfxi_emit_c_begin(c);
    p->vars_used = false;
    for (; end != root && (end->mark - p->first) / PART == part; end = end->next) {
        load_inputs(p, end, part);
        if (end->op == CFX_OP_OUTPUT)
            break;
    }
    for (const cfx_node *n = first; n != end; n = n->next)
        if (n->op != CFX_OP_PLACEHOLDER)
            cfxi_emit_c_statement(c, n);
    for (const cfx_node *n = first; n != end; n = n->next) {
        c_place *place = place_of(p, n);
        if (n->op == CFX_OP_PLACEHOLDER || cfxi_emit_c_is_alias(n) || place->last == NO_PART ||
            place->last == part)
            continue;
        place->slot = take_slot(p);
        put_move(p, n, false);
    }
    if (end != root && end->op == CFX_OP_OUTPUT) {
        p->vars_used = true;
        cfxi_emit_c_text(c, "vars[0] = ");
        cfxi_emit_c_output(c, p->f, end);
        return root;
    }
    return end;
}

/* "forward_part2": a name that no other function has; NULL if memory is out. */
static const char *next_name(c_split *p)
{
    cfxi_ccode *c = p->c;
    char number[32];
    const char *name = NULL;
    cfx_buffer wish;
    cfx_buffer_init(&wish, c->allocator);
    snprintf(number, sizeof number, "_part%zu", p->names.size + 1);
    cfx_buffer_append(&wish, p->f->name, strlen(p->f->name));
    if (cfx_buffer_append(&wish, number, strlen(number)) == CFX_OK &&
        cfxi_base_vec_reserve(&p->names, 1, sizeof name, c->allocator))
        name = cfx_namespace_create(c->functions, wish.data, wish.size, true, NULL);
    cfx_buffer_free(&wish);
    if (name)
        ((const char **)p->names.data)[p->names.size++] = name;
    else
        c->nomem = true;
    return name;
}

static void put_part_function(c_split *p)
{
    cfxi_ccode *c = p->c;
    const char *name = next_name(p);
    if (!name)
        return;
    cfxi_emit_c_head(c, "\nstatic void ");
    cfxi_emit_c_head(c, name);
    cfxi_emit_c_head(c, "(cfx_scope *s, cfx_module *self, cfx_var *vars)\n{\n");
    cfxi_emit_c_unused(c, c->scope_used, "s", 1);
    cfxi_emit_c_unused(c, c->self_used, "self", 4);
    cfxi_emit_c_unused(c, p->vars_used, "vars", 4);
    cfxi_emit_c_put(c, &c->text, c->body.data, c->body.size);
    cfxi_emit_c_head(c, "}\n");
}

/* ---- the function that calls them ---------------------------------------------------------- */

static void put_inputs(c_split *p)
{
    const cfxi_c_function *f = p->f;
    size_t i = 0;
    for (const cfx_node *n = cfxi_ir_next_input(f->g, NULL); n; n = cfxi_ir_next_input(f->g, n)) {
        if (i++ < f->named) {
            put_move(p, n, false);
            continue;
        }
        cfxi_emit_c_printf(p->c, "vars[%u] = in[%zu];", place_of(p, n)->slot, i - 1 - f->named);
        cfxi_emit_c_end_line(p->c, NULL);
    }
}

static void put_caller(c_split *p)
{
    cfxi_ccode *c = p->c;
    cfxi_emit_c_begin(c);
    cfxi_emit_c_text(c, "static void (*const parts[])(cfx_scope *, cfx_module *, cfx_var *) = {");
    for (size_t i = 0; i < p->names.size; i++) {
        if (i > 0)
            cfxi_emit_c_comma(c);
        cfxi_emit_c_text(c, ((const char **)p->names.data)[i]);
    }
    cfxi_emit_c_text(c, "};");
    cfxi_emit_c_end_line(c, NULL);
    cfxi_emit_c_printf(c, "cfx_var vars[%u];", p->slots);
    cfxi_emit_c_end_line(c, NULL);
    put_inputs(p);
    cfxi_emit_c_text(c, "for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)");
    cfxi_emit_c_end_line(c, NULL);
    cfxi_emit_c_text(c, "    parts[part](s, self, vars);");
    cfxi_emit_c_end_line(c, NULL);
    cfxi_emit_c_text(c, p->has_output ? "return vars[0];" : "return cfx_var_none();");
    cfxi_emit_c_end_line(c, NULL);
    c->scope_used = c->self_used = true;
    c->in_used = p->f->inputs > p->f->named;
    cfxi_emit_c_finish(c, p->f);
}

cfx_status cfxi_emit_c_long_function(cfxi_ccode *c, const cfxi_c_function *f, cfx_error *err)
{
    const cfx_graph *g = f->g;
    c_split p = {.c = c, .f = f, .first = cfxi_ir_graph_number(f->g)};
    const size_t size = g->size * (sizeof *p.places + sizeof *p.free);  /* of nodes in memory */
    p.places = cfxi_base_alloc(c->allocator, size);
    if (!p.places)
        return cfxi_base_nomem(err);
    p.free = (uint32_t *)(p.places + g->size);
    for (size_t i = 0; i < g->size; i++)
        p.places[i] = (c_place){.last = NO_PART};
    find_readers(&p, g);
    for (const cfx_node *n = cfxi_ir_next_input(g, NULL); n; n = cfxi_ir_next_input(g, n))
        place_of(&p, n)->slot = take_slot(&p);
    p.slots += p.slots == 0;  /* the first is for the result */
    for (const cfx_node *n = g->root.next; n != &g->root && !c->nomem;) {
        n = put_part(&p, n, (n->mark - p.first) / PART);
        put_part_function(&p);
    }
    put_caller(&p);
    cfxi_base_vec_free(&p.names, sizeof(const char *), c->allocator);
    cfxi_base_free(c->allocator, p.places, size);
    return c->nomem ? cfxi_base_nomem(err) : CFX_OK;
}
