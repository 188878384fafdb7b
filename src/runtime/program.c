/* program.c - a lowered graph becomes a program: slots, constants, instructions. */
#include "program_impl.h"

#include <stdio.h>

/* What the graph's nodes are in the program, by their number. */
typedef struct place {
    uint32_t slot;       /* CFXI_NO_SLOT: none */
    uint32_t attribute;  /* 1 + which; 0: it is none */
    uint32_t uses;       /* that are still to come */
} place;

typedef struct compiler {
    cfx_program *p;
    const cfx_graph *g;
    const cfx_state *state;
    place *places;
    size_t num_places;
    uint32_t first_mark;
    cfxi_vec free_slots;   /* of uint32_t */
    cfxi_pointers files;   /* name of a file, which the graph has once -> copy */
    cfx_buffer complaints; /* what cannot be run, for one message */
    size_t num_complaints;
    cfx_status why;        /* of the first of them */
    const cfx_node *at;    /* whose arguments are being added */
    cfx_operator op;       /* that it calls, or none */
    enum { UNKNOWN, NO, YES } keeps;  /* see may_be_kept */
    uint32_t nesting;      /* of the containers around a value */
    cfx_error *err;
} compiler;

/* ---- pieces of the program ----------------------------------------------------------------- */

/* Room for one more item, which is counted already; NULL if memory is out. */
static void *push(compiler *c, cfxi_vec *vec, size_t item_size)
{
    if (vec->size >= UINT32_MAX - 1 || !cfxi_base_vec_reserve(vec, 1, item_size, c->p->allocator)) {
        cfxi_base_nomem(c->err);
        return NULL;
    }
    return (char *)vec->data + item_size * vec->size++;
}

static char *keep_text(compiler *c, const char *text, size_t size)
{
    char *copy = cfxi_base_arena_alloc(&c->p->arena, size + 1);
    if (!copy) {
        cfxi_base_nomem(c->err);
        return NULL;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

static const char *keep_name(compiler *c, const cfx_node *n)
{
    return keep_text(c, n->name->data, n->name->size);
}

/* The name of a node's file, once for each; *out stays NULL if it has none. */
static cfx_status keep_file(compiler *c, const cfx_node *n, const char **out)
{
    const char *file = cfx_node_file(n);
    if (!file)
        return CFX_OK;
    *out = cfxi_base_pointers_get(&c->files, file);
    if (*out)
        return CFX_OK;
    char *copy = keep_text(c, file, strlen(file));
    if (!copy || !cfxi_base_pointers_set(&c->files, file, copy, c->p->allocator))
        return cfxi_base_nomem(c->err);
    *out = copy;
    return CFX_OK;
}

static cfx_status add_piece(compiler *c, cfxi_piece_kind kind, cfx_datum_kind datum, size_t index)
{
    cfxi_piece *piece = push(c, &c->p->pieces, sizeof *piece);
    if (!piece)
        return CFX_E_NOMEM;
    *piece = (cfxi_piece){(uint16_t)kind, (uint16_t)datum, (uint32_t)index};
    return CFX_OK;
}

/* Takes the datum over, also if it fails. */
static cfx_status add_constant(compiler *c, cfx_datum d)
{
    cfx_datum *constant = d.kind == CFX_DATUM_INVALID
                              ? NULL : push(c, &c->p->constants, sizeof *constant);
    if (!constant) {
        cfx_datum_release(d);
        return c->err->status;
    }
    *constant = d;
    return add_piece(c, CFXI_PIECE_CONSTANT, CFX_DATUM_INVALID, c->p->constants.size - 1);
}

/* ---- slots --------------------------------------------------------------------------------- */

static place *place_of(compiler *c, const cfx_node *n)
{
    return &c->places[n->mark - c->first_mark];
}

static uint32_t count_uses(const cfx_node *n)
{
    uint32_t count = 0;
    for (const cfx_use *use = cfx_node_first_use(n); use; use = cfx_use_next(use))
        count += cfx_use_count(use);
    return count;
}

/* A slot for the value of `n`, if anybody uses it. */
static cfx_status take_slot(compiler *c, const cfx_node *n, uint32_t *slot)
{
    place *at = place_of(c, n);
    *slot = CFXI_NO_SLOT;
    at->uses = count_uses(n);
    if (at->uses == 0)
        return CFX_OK;
    if (c->free_slots.size > 0) {
        *slot = ((uint32_t *)c->free_slots.data)[--c->free_slots.size];
    } else {  /* room to give it back, so that doing so cannot fail */
        if (!cfxi_base_vec_reserve(&c->free_slots, c->p->num_slots + 1, sizeof *slot,
                                   c->p->allocator))
            return cfxi_base_nomem(c->err);
        *slot = c->p->num_slots++;
    }
    at->slot = *slot;
    return CFX_OK;
}

/* Notes what cannot be run; all of it is said at once. */
static cfx_status complain(compiler *c, cfx_status why, const cfx_node *n, const char *what)
{
    char text[200];
    cfx_error line = {0};
    const char *file = cfx_node_file(n);
    if (file)
        cfx_error_set(&line, why, "%.120s:%u: ", file, cfx_node_line(n));
    int size = snprintf(text, sizeof text, "%s%s%.100s (node %%%.60s)",
                        c->num_complaints ? "; " : "", line.message, what, n->name->data);
    c->why = c->num_complaints++ ? c->why : why;
    size_t length = (size_t)size < sizeof text ? (size_t)size : sizeof text - 1;
    return cfx_buffer_append(&c->complaints, text, length) == CFX_OK ? CFX_OK
                                                                     : cfxi_base_nomem(c->err);
}

/* ---- arguments ----------------------------------------------------------------------------- */

static cfx_status add_value(compiler *c, cfx_value v);

static cfx_status add_node(compiler *c, const cfx_node *n)
{
    place *at = place_of(c, n);
    if (at->attribute) {
        const cfxi_attribute *all = c->p->attributes.data;
        return add_constant(c, cfx_datum_retain(all[at->attribute - 1].value));
    }
    if (at->slot == CFXI_NO_SLOT)  /* a call that was complained of; or it stands further down */
        return cfx_error_set(c->err, CFX_E_GRAPH, "node %%%s is used before it is defined",
                             n->name->data);
    const bool last = --at->uses == 0;
    if (last)
        ((uint32_t *)c->free_slots.data)[c->free_slots.size++] = at->slot;
    return add_piece(c, last ? CFXI_PIECE_TAKE : CFXI_PIECE_SLOT, CFX_DATUM_INVALID, at->slot);
}

static cfx_program *program_new(const cfx_graph *g, const cfx_state *state,
                                const cfx_program_options *options, bool partial, cfx_error *err);

static cfx_status add_region(compiler *c, cfx_graph *region)
{
    cfx_program **sub = push(c, &c->p->regions, sizeof *sub);
    if (!sub)
        return CFX_E_NOMEM;
    const cfx_program_options options = {c->p->allocator, c->p->library};
    *sub = program_new(region, c->state, &options, c->p->partial, c->err);
    if (!*sub) {
        c->p->regions.size--;
        return c->err->status;
    }
    cfx_datum d = cfx_datum_scalar(CFX_DATUM_REGION, 0);
    d.as.region = *sub;
    return add_constant(c, d);
}

/* Makes one constant of the last `n`, which are the items of a container. */
static cfx_status fold(compiler *c, cfx_datum_kind kind, size_t n)
{
    cfx_program *p = c->p;
    cfx_datum *items = (cfx_datum *)p->constants.data + (p->constants.size - n);
    cfx_datum whole = cfx_datum_seq(kind, items, n, p->allocator, c->err);
    if (whole.kind == CFX_DATUM_INVALID)
        return c->err->status;
    for (size_t i = 0; i < n; i++)
        cfx_datum_release(items[i]);
    p->constants.size -= n;
    p->pieces.size -= n;
    return add_constant(c, whole);
}

/* Whether a list that is an argument of the call, or is returned, may be changed later: what takes
 * anything may keep it, and give it away; and `a + [[0]]` keeps what is in a list. */
static bool may_be_kept(compiler *c)
{
    cfx_schema_param param;
    if (c->at->op == CFX_OP_PLACEHOLDER)  /* a default, of which each run has a copy */
        return false;
    if (c->nesting > 0)
        return true;
    for (size_t i = 0; c->keeps == UNKNOWN && cfx_operator_param(c->op, i, &param); i++)
        if (strncmp(param.type, "Any", 3) == 0)
            c->keeps = YES;
    c->keeps = c->keeps == UNKNOWN ? NO : c->keeps;
    return c->keeps == YES;
}

static cfx_status add_items(compiler *c, cfx_datum_kind kind, const cfx_value *items, size_t n)
{
    const size_t first = c->p->pieces.size;
    c->nesting++;
    for (size_t i = 0; i < n; i++)
        CFX_TRY(add_value(c, items[i]));
    c->nesting--;
    const bool mutable = kind == CFX_DATUM_LIST || kind == CFX_DATUM_DICT;
    bool constant = c->p->pieces.size == first + n && !(mutable && may_be_kept(c));
    for (size_t i = first; constant && i < first + n; i++)
        constant = ((cfxi_piece *)c->p->pieces.data)[i].kind == CFXI_PIECE_CONSTANT;
    return constant ? fold(c, kind, n) : add_piece(c, CFXI_PIECE_SEQ, kind, n);
}

/* A set is a tuple of its items here: only rows that cannot tell the difference may have one. */
static bool takes_set(const compiler *c)
{
    return c->nesting == 0 &&
           (c->op == CFX_OPID_contains || c->op == CFX_OPID_len || c->op == CFX_OPID_bool ||
            c->op == CFX_OPID_not || c->op == CFX_OPID_builtin_sorted ||
            c->op == CFX_OPID_builtin_sum || c->op == CFX_OPID_builtin_any ||
            c->op == CFX_OPID_builtin_all);
}

/* Recursive: a graph's containers nest up to CFX_MAX_DEPTH. */
static cfx_status add_value(compiler *c, cfx_value v)
{
    cfx_datum_kind kind;
    size_t n;
    const cfx_value *items = cfx_value_items(v, &n);
    if (v.kind == CFX_KIND_NODE)
        return add_node(c, v.as.node);
    if (v.kind == CFX_KIND_GRAPH)
        return add_region(c, cfx_value_graph(v));
    if ((v.kind == CFX_KIND_SET || v.kind == CFX_KIND_FROZENSET) && !takes_set(c))
        CFX_TRY(complain(c, CFX_E_TYPE, c->at, "the runtime has no sets; use a list or a tuple"));
    if (!cfxi_rt_seq_kind((cfx_kind)v.kind, &kind))
        return add_constant(c, cfxi_rt_datum_from_value(v, c->p->allocator, c->err));
    const size_t skip = v.kind == CFX_KIND_NAMEDTUPLE ? 2 : 0;  /* its type and names */
    return add_items(c, kind, items + skip, n - skip);
}

/* ---- nodes --------------------------------------------------------------------------------- */

static cfx_status add_input(compiler *c, const cfx_node *n)
{
    const cfx_str *target = n->callee->ref->name;
    const cfx_value value = cfx_node_arg(n, 0);
    cfxi_input *input = push(c, &c->p->inputs, sizeof *input);
    if (!input)
        return CFX_E_NOMEM;
    *input = (cfxi_input){keep_name(c, n), CFXI_NO_SLOT, cfx_datum_invalid()};
    if (!input->name)
        return CFX_E_NOMEM;
    CFX_TRY(take_slot(c, n, &input->slot));
    c->at = n;
    c->op = CFX_OPID_NONE;
    if (value.kind != CFX_KIND_INVALID) {  /* as a constant that then moves here */
        CFX_TRY(add_value(c, value));
        if (((cfxi_piece *)c->p->pieces.data)[--c->p->pieces.size].kind != CFXI_PIECE_CONSTANT)
            return cfx_error_set(c->err, CFX_E_TYPE, "the default of %%%s is not a constant",
                                 n->name->data);
        input->value = ((cfx_datum *)c->p->constants.data)[--c->p->constants.size];
    } else if (target->data[0] == '*') {  /* *args, **kwargs */
        input->value = cfx_datum_seq(target->data[1] == '*' ? CFX_DATUM_DICT : CFX_DATUM_TUPLE,
                                     NULL, 0, c->p->allocator, c->err);
        if (input->value.kind == CFX_DATUM_INVALID)
            return CFX_E_NOMEM;
    }
    return CFX_OK;
}

/* A call, or what stands for one whose value nobody knows (i->op is NONE). */
static cfx_status add_instruction(compiler *c, const cfx_node *n, cfxi_instruction *i)
{
    i->line = cfx_node_line(n);
    i->end = (uint32_t)c->p->pieces.size;
    if (i->end - i->first > c->p->most_pieces)
        c->p->most_pieces = i->end - i->first;
    CFX_TRY(take_slot(c, n, &i->slot));
    CFX_TRY(keep_file(c, n, &i->file));
    i->name = keep_name(c, n);
    cfxi_instruction *at = i->name ? push(c, &c->p->instructions, sizeof *i) : NULL;
    if (!at)
        return CFX_E_NOMEM;
    *at = *i;
    return CFX_OK;
}

static cfx_status add_unknown(compiler *c, const cfx_node *n)
{
    cfxi_instruction i = {.op = CFX_OPID_NONE, .first = (uint32_t)c->p->pieces.size};
    return add_instruction(c, n, &i);
}

static cfx_status add_attribute(compiler *c, const cfx_node *n)
{
    const char *path = n->callee->ref->name->data;
    cfx_tensor *t = c->state ? cfx_state_get(c->state, path) : NULL;
    char what[160];
    snprintf(what, sizeof what, "the state has no tensor '%.120s'", path);
    if (!t)
        return c->p->partial ? add_unknown(c, n) : complain(c, CFX_E_KEY, n, what);
    cfxi_attribute *attribute = push(c, &c->p->attributes, sizeof *attribute);
    if (!attribute)
        return CFX_E_NOMEM;
    *attribute = (cfxi_attribute){keep_name(c, n), cfx_datum_tensor(cfx_tensor_retain(t))};
    place_of(c, n)->attribute = (uint32_t)c->p->attributes.size;
    return attribute->name ? CFX_OK : CFX_E_NOMEM;
}

/* The row that a lowered call names, of the table or of the library; false if it names none, or one
 * without a kernel. */
static bool find_row(const compiler *c, const cfx_node *n, cfxi_instruction *i,
                     const char **target)
{
    static const char prefix[] = "cfx.ops.";
    cfx_operator op = n->op == CFX_OP_CALL_FUNCTION ? cfx_node_operator(n) : CFX_OPID_NONE;
    *target = cfx_node_target(n, NULL, NULL);
    if (!*target)
        *target = "(unnamed function)";
    const bool row = strncmp(*target, prefix, sizeof prefix - 1) == 0;
    i->op = op && row && cfx_operator_has_kernel(op) ? op : CFX_OPID_NONE;
    i->custom = (const cfxi_custom *)cfxi_rt_node_custom(n, c->p->library);
    return i->op || (i->custom && i->custom->row.kernel);
}

static cfx_status add_call(compiler *c, const cfx_node *n)
{
    const char *target;
    char what[160];
    const size_t args = cfx_node_num_args(n);
    cfxi_instruction i = {.first = (uint32_t)c->p->pieces.size, .num_args = (uint32_t)args};
    const bool found = find_row(c, n, &i, &target);
    if (!found || (n->kwargs && n->kwargs->size > 0)) {
        if (c->p->partial)
            return add_unknown(c, n);
        snprintf(what, sizeof what, "'%.100s' is not an operator with a kernel; lower the graph "
                 "first", target);
        if (found)
            snprintf(what, sizeof what, "'%.100s' has keyword arguments; lower the graph first",
                     target);
        CFX_TRY(complain(c, CFX_E_TYPE, n, what));
    }
    c->at = n;
    c->op = i.op;
    c->keeps = UNKNOWN;
    cfx_status status = CFX_OK;
    for (size_t k = 0; status == CFX_OK && k < args && c->num_complaints == 0; k++)
        status = add_value(c, n->args->items[k]);
    if (status == CFX_OK)
        return add_instruction(c, n, &i);
    if (!c->p->partial || status == CFX_E_NOMEM)
        return status;
    *c->err = (cfx_error){0};  /* an argument that means nothing here, as values of the host do */
    c->nesting = 0;
    c->p->pieces.size = i.first;
    return add_unknown(c, n);
}

static cfx_status add_output(compiler *c, const cfx_node *n)
{
    const size_t first = c->p->pieces.size;
    if (c->num_complaints > 0 || cfx_node_num_args(n) == 0)
        return CFX_OK;
    c->keeps = YES;
    c->at = n;
    c->op = CFX_OPID_NONE;
    CFX_TRY(add_value(c, cfx_node_arg(n, 0)));
    c->p->result = (uint32_t)first;
    if (c->p->pieces.size - first > c->p->most_pieces)
        c->p->most_pieces = (uint32_t)(c->p->pieces.size - first);
    return CFX_OK;
}

/* Inputs are there from the start, wherever they stand: no slot of theirs is another's before. */
static cfx_status add_inputs(compiler *c)
{
    for (const cfx_node *n = c->g->root.next; n != &c->g->root && n->op != CFX_OP_OUTPUT;
         n = n->next)
        if (n->op == CFX_OP_PLACEHOLDER)
            CFX_TRY(add_input(c, n));
    return CFX_OK;
}

static cfx_status add_nodes(compiler *c)
{
    CFX_TRY(add_inputs(c));
    for (const cfx_node *n = c->g->root.next; n != &c->g->root; n = n->next) {
        switch ((cfx_opcode)n->op) {
        case CFX_OP_PLACEHOLDER: break;
        case CFX_OP_GET_ATTR: CFX_TRY(add_attribute(c, n)); break;
        case CFX_OP_OUTPUT: return add_output(c, n);
        case CFX_OP_CALL_FUNCTION:
        case CFX_OP_CALL_METHOD:
        case CFX_OP_CALL_MODULE: CFX_TRY(add_call(c, n)); break;
        case CFX_OPCODE_COUNT: break;
        }
    }
    return CFX_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static cfx_status compile(compiler *c)
{
    c->num_places = c->g->size;
    if (c->num_places > 0) {
        c->places = cfxi_base_alloc(c->p->allocator, c->num_places * sizeof *c->places);
        if (!c->places)
            return cfxi_base_nomem(c->err);
    }
    for (size_t i = 0; i < c->num_places; i++)
        c->places[i] = (place){CFXI_NO_SLOT, 0, 0};
    CFX_TRY(add_nodes(c));
    if (c->num_complaints == 0)
        return CFX_OK;
    return cfx_error_set(c->err, c->why, "%s", c->complaints.data);
}

static cfx_program *program_new(const cfx_graph *g, const cfx_state *state,
                                const cfx_program_options *options, bool partial, cfx_error *err)
{
    cfx_error own;
    if (cfxi_base_expect(g, "graph", err) != CFX_OK)
        return NULL;
    err = cfxi_base_error_or(err, &own);
    const cfx_allocator *allocator = cfxi_base_allocator(options ? options->allocator : NULL);
    cfx_program *p = cfxi_base_alloc(allocator, sizeof *p);
    if (!p) {
        cfxi_base_nomem(err);
        return NULL;
    }
    *p = (cfx_program){.allocator = allocator, .result = CFXI_NO_SLOT, .partial = partial,
                       .library = cfx_library_retain(options ? options->library : NULL)};
    cfxi_base_arena_init(&p->arena, allocator);
    compiler c = {.p = p, .g = g, .state = state, .err = err};
    cfx_buffer_init(&c.complaints, allocator);
    cfxi_ir_graph_freeze(g);  /* the host may be asked for names */
    c.first_mark = cfxi_ir_graph_number((cfx_graph *)(uintptr_t)g);
    cfx_status status = compile(&c);
    cfxi_ir_graph_thaw(g);
    cfx_buffer_free(&c.complaints);
    cfxi_base_pointers_free(&c.files, allocator);
    cfxi_base_vec_free(&c.free_slots, sizeof(uint32_t), allocator);
    if (c.places)
        cfxi_base_free(allocator, c.places, c.num_places * sizeof *c.places);
    if (status == CFX_OK)
        return p;
    cfx_program_free(p);
    return NULL;
}

cfx_program *cfx_program_new(const cfx_graph *g, const cfx_state *state,
                             const cfx_program_options *options, cfx_error *err)
{
    return program_new(g, state, options, false, err);
}

cfx_program *cfxi_rt_program_partial(const cfx_graph *g, const cfx_state *state,
                                     const cfx_allocator *allocator, cfx_error *err)
{
    const cfx_program_options options = {.allocator = allocator};
    return program_new(g, state, &options, true, err);
}

void cfx_program_free(cfx_program *p)
{
    if (!p)
        return;
    if (p->stretches)
        p->stretches->free(p->stretches);
    for (size_t i = 0; i < p->constants.size; i++)
        cfx_datum_release(((cfx_datum *)p->constants.data)[i]);
    for (size_t i = 0; i < p->attributes.size; i++)
        cfx_datum_release(((cfxi_attribute *)p->attributes.data)[i].value);
    for (size_t i = 0; i < p->inputs.size; i++)
        cfx_datum_release(((cfxi_input *)p->inputs.data)[i].value);
    for (size_t i = 0; i < p->regions.size; i++)
        cfx_program_free(((cfx_program **)p->regions.data)[i]);
    cfxi_base_vec_free(&p->constants, sizeof(cfx_datum), p->allocator);
    cfxi_base_vec_free(&p->attributes, sizeof(cfxi_attribute), p->allocator);
    cfxi_base_vec_free(&p->inputs, sizeof(cfxi_input), p->allocator);
    cfxi_base_vec_free(&p->instructions, sizeof(cfxi_instruction), p->allocator);
    cfxi_base_vec_free(&p->pieces, sizeof(cfxi_piece), p->allocator);
    cfxi_base_vec_free(&p->regions, sizeof(cfx_program *), p->allocator);
    cfxi_base_arena_release(&p->arena);
    cfx_library_release(p->library);
    cfxi_base_free(p->allocator, p, sizeof *p);
}

size_t cfx_program_num_inputs(const cfx_program *p) { return p->inputs.size; }

const char *cfx_program_input(const cfx_program *p, size_t i)
{
    return i < p->inputs.size ? ((const cfxi_input *)p->inputs.data)[i].name : NULL;
}
