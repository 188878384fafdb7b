/* csplit.c - a very long graph as several functions: compilers take more than twice as long for a
 * function of twice the length.
 *
 *     static void forward_2(cfx_scope *s, cfx_module *self, cfx_var *vars)
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
    uint32_t first;    /* the mark of the first node */
    c_place *places;
    uint32_t *free;    /* slots that nobody needs any more */
    size_t num_free;
    uint32_t slots;    /* so many were needed so far */
    size_t parts;
    bool vars_used;    /* by the part that is being written */
    const cfx_node *output;
} c_split;

/* The node whose name it has: the first item of a loop with one variable is the loop. */
static const cfx_node *named(const cfx_node *n)
{
    return cfxi_c_is_alias(n) ? cfx_node_arg(n, 0).as.node : n;
}

/* How many of its inputs it mentions: an alias is no statement. */
static uint32_t num_read(const cfx_node *n) { return cfxi_c_is_alias(n) ? 0 : n->n_inputs; }

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
            p->output = n;
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
        cfxi_c_text(c, "cfx_var ");
    else
        cfxi_c_printf(c, "vars[%u] = ", slot);
    cfxi_c_put(c, &c->line, n->name->data, n->name->size);
    if (load)
        cfxi_c_printf(c, " = vars[%u]", slot);
    cfxi_c_text(c, ";");
    cfxi_c_end_line(c, NULL);
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
    cfxi_c_begin(c);
    p->vars_used = false;
    for (; end != root && (end->mark - p->first) / PART == part; end = end->next) {
        load_inputs(p, end, part);
        if (end->op == CFX_OP_OUTPUT)
            break;
    }
    for (const cfx_node *n = first; n != end; n = n->next)
        if (n->op != CFX_OP_PLACEHOLDER)
            cfxi_c_statement(c, n);
    for (const cfx_node *n = first; n != end; n = n->next) {
        c_place *place = place_of(p, n);
        if (n->op == CFX_OP_PLACEHOLDER || cfxi_c_is_alias(n) || place->last == NO_PART ||
            place->last == part)
            continue;
        place->slot = take_slot(p);
        put_move(p, n, false);
    }
    if (end != root && end->op == CFX_OP_OUTPUT) {
        p->vars_used = true;
        cfxi_c_text(c, "vars[0] = ");
        cfxi_c_result(c, end, cfx_node_arg(end, 0));
        cfxi_c_text(c, ";");
        cfxi_c_end_line(c, NULL);
        return root;
    }
    return end;
}

static void put_part_function(c_split *p)
{
    cfxi_ccode *c = p->c;
    char head[120];
    snprintf(head, sizeof head, "\nstatic void forward_%zu(cfx_scope *s, cfx_module *self, "
             "cfx_var *vars)\n{\n", ++p->parts);
    cfxi_c_head(c, head);
    cfxi_c_unused(c, c->scope_used, "s", 1);
    cfxi_c_unused(c, c->self_used, "self", 4);
    cfxi_c_unused(c, p->vars_used, "vars", 4);
    cfxi_c_put(c, &c->text, c->body.data, c->body.size);
    cfxi_c_head(c, "}\n");
}

/* ---- the function that calls them ---------------------------------------------------------- */

static void put_caller(c_split *p, size_t inputs)
{
    cfxi_ccode *c = p->c;
    const bool separate = inputs >= 1 && inputs <= 3;
    cfxi_c_begin(c);
    cfxi_c_text(c, "static void (*const parts[])(cfx_scope *, cfx_module *, cfx_var *) = {");
    for (size_t i = 1; i <= p->parts; i++) {
        if (i > 1)
            cfxi_c_comma(c);
        cfxi_c_printf(c, "forward_%zu", i);
    }
    cfxi_c_text(c, "};");
    cfxi_c_end_line(c, NULL);
    cfxi_c_printf(c, "cfx_var vars[%u];", p->slots);
    cfxi_c_end_line(c, NULL);
    size_t i = 0;
    for (const cfx_node *n = cfxi_next_input(c->g, NULL); n; n = cfxi_next_input(c->g, n)) {
        if (separate)
            put_move(p, n, false);
        else {
            cfxi_c_printf(c, "vars[%u] = in[%zu];", place_of(p, n)->slot, i);
            cfxi_c_end_line(c, NULL);
        }
        i++;
    }
    cfxi_c_text(c, "for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)");
    cfxi_c_end_line(c, NULL);
    cfxi_c_text(c, "    parts[part](s, self, vars);");
    cfxi_c_end_line(c, NULL);
    cfxi_c_text(c, p->output ? "return vars[0];" : "return cfx_var_none();");
    cfxi_c_end_line(c, NULL);
    c->scope_used = c->self_used = true;
    c->in_used = inputs > 0;
    cfxi_c_forward_head(c, c->g, inputs);
    cfxi_c_put(c, &c->text, c->body.data, c->body.size);
    cfxi_c_head(c, "}\n");
}

cfx_status cfxi_c_long_forward(cfxi_ccode *c, size_t inputs, cfx_error *err)
{
    const cfx_graph *g = c->g;
    c_split p = {.c = c, .first = cfxi_graph_number(c->g)};
    const size_t size = g->size * (sizeof *p.places + sizeof *p.free);  /* of nodes in memory */
    p.places = cfxi_alloc(c->allocator, size);
    if (!p.places)
        return cfxi_nomem(err);
    p.free = (uint32_t *)(p.places + g->size);
    for (size_t i = 0; i < g->size; i++)
        p.places[i] = (c_place){.last = NO_PART};
    find_readers(&p, g);
    for (const cfx_node *n = cfxi_next_input(g, NULL); n; n = cfxi_next_input(g, n))
        place_of(&p, n)->slot = take_slot(&p);
    p.slots += p.slots == 0;  /* the first is for the result */
    for (const cfx_node *n = g->root.next; n != &g->root && !c->nomem;) {
        n = put_part(&p, n, (n->mark - p.first) / PART);
        put_part_function(&p);
    }
    put_caller(&p, inputs);
    cfxi_free(c->allocator, p.places, size);
    return c->nomem ? cfxi_nomem(err) : CFX_OK;
}
