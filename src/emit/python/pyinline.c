/* pyinline.c - conditions: `if x.sum() > 0:` in place of three statements.
 *
 * A node stands in the condition if it is used there alone, and if what is evaluated before it
 * still is: so the nodes are taken from the end of the list, in the order in which the expression,
 * read from right to left, mentions them. A condition takes in a few; the others are statements. A
 * cond that gives its predicate on one way is `and` or `or`, if the other way is an expression.
 */
#include "pyregion_impl.h"

#include <limits.h>

enum { MOST_NODES = 6 };

cfx_status cfxi_emit_py_place_node(cfx_pycode *gen, const cfx_node *n, cfxi_py_place place,
                                   cfx_error *err)
{
    if (!cfxi_base_pointers_set(&gen->placed, n, (void *)(uintptr_t)place, gen->allocator))
        return cfxi_base_nomem(err);
    return CFX_OK;
}

/* ---- Python's words ------------------------------------------------------------------------ */

/* Functions of `operator` that torch.fx calls, and a condition says with Python's words. */
typedef struct word_row {
    const char *name;
    const char *word;
    int first, second;  /* which argument stands on which side; -1: none */
} word_row;

static const word_row words[] = {
    {"is_", " is ", 0, 1},
    {"is_not", " is not ", 0, 1},
    {"contains", " in ", 1, 0},
    {"not_", "not ", -1, 0},
};

static const word_row *word_of(const cfx_node *n)
{
    if (n->op != CFX_OP_CALL_FUNCTION || !n->args || n->kwargs)
        return NULL;
    const cfx_str *name = cfxi_ir_ref_qualified_name(n->graph, n->callee->ref, NULL);
    const char *text = name ? name->data + (name->data[0] == '_') : "";
    if (strncmp(text, "operator.", 9) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text + 9, words[i].name) == 0)
            return n->args->size == (words[i].first < 0 ? 1u : 2u) ? &words[i] : NULL;
    return NULL;
}

/* ---- and, or ------------------------------------------------------------------------------- */

typedef struct logic {
    const char *word;    /* " and ", " or "; NULL: it is neither */
    cfx_value pred;
    cfx_graph *rest;     /* what is evaluated if the predicate does not decide */
    bool read;           /* the rest reads the predicate, too */
} logic;

/* The number of the operand that a branch gives as it is; SIZE_MAX if it gives something else. */
static size_t given_operand(const cfx_graph *region)
{
    const cfx_value v = cfxi_emit_py_output_value(region);
    size_t k = 0;
    for (const cfx_node *in = cfxi_ir_next_input(region, NULL); in;
         in = cfxi_ir_next_input(region, in))
        if (k++, v.kind == CFX_KIND_NODE && v.as.node == in)
            return k - 1;
    return SIZE_MAX;
}

/* Whether a branch only gives the predicate. */
static bool gives_pred(const cfx_node *n, const cfx_graph *region)
{
    size_t count;
    const cfx_value pred = cfxi_emit_py_parameter(n, 0);
    const cfx_value *operands = cfx_value_items(cfxi_emit_py_operands(n), &count);
    const size_t k = given_operand(region);
    const cfx_node *output = cfxi_emit_py_output_of(region);
    return k < count && pred.kind == CFX_KIND_NODE && operands[k].kind == CFX_KIND_NODE &&
           operands[k].as.node == pred.as.node && output->prev->op == CFX_OP_PLACEHOLDER;
}

/* Whether a branch has an input for the predicate, and reads it. */
static bool reads_pred(const cfx_node *n, const cfx_graph *region)
{
    size_t count;
    const cfx_value pred = cfxi_emit_py_parameter(n, 0);
    const cfx_value *operands = cfx_value_items(cfxi_emit_py_operands(n), &count);
    const cfx_node *in = cfxi_ir_next_input(region, NULL);
    for (size_t k = 0; k < count && in; k++, in = cfxi_ir_next_input(region, in))
        if (operands[k].kind == CFX_KIND_NODE && operands[k].as.node == pred.as.node &&
            in->n_users > 0)
            return true;
    return false;
}

/* Whether a node is `and` or `or` of its predicate and something else. */
static cfx_status logic_of(cfx_pycode *gen, cfx_node *n, logic *l, cfx_error *err)
{
    const cfxi_py_callee *callee;
    *l = (logic){0};
    if (n->op != CFX_OP_CALL_FUNCTION || !cfxi_ir_node_form(n))
        return CFX_OK;
    CFX_TRY(cfxi_emit_py_callee_of(gen, n, &callee, err));
    if (callee->form != CFXI_PY_COND || !cfxi_emit_py_has_regions(n) ||
        !cfxi_emit_py_is_sequence(cfxi_emit_py_operands(n)))
        return CFX_OK;
    cfx_graph *then = cfxi_emit_py_region(n, 1);
    cfx_graph *otherwise = cfxi_emit_py_region(n, 2);
    const bool is_or = !gives_pred(n, otherwise) && gives_pred(n, then);
    l->rest = is_or ? otherwise : then;
    if (then == otherwise || (!is_or && !gives_pred(n, otherwise)) ||
        !cfxi_emit_py_output_of(l->rest))
        return CFX_OK;
    l->word = is_or ? " or " : " and ";
    l->pred = cfxi_emit_py_parameter(n, 0);
    l->read = reads_pred(n, l->rest);
    return CFX_OK;
}

bool cfxi_emit_py_is_expression(const cfx_pycode *gen, const cfx_graph *region)
{
    for (const cfx_node *n = region->root.next; n->op != CFX_OP_OUTPUT; n = n->next)
        if (n->op != CFX_OP_PLACEHOLDER && cfxi_emit_py_placed(gen, n) != CFXI_PY_INLINE)
            return false;
    return true;
}

cfx_status cfxi_emit_py_give_back(cfx_pycode *gen, const cfx_graph *region, cfx_error *err)
{
    for (const cfx_node *n = region->root.next; n != &region->root; n = n->next)
        if (cfxi_emit_py_placed(gen, n) == CFXI_PY_INLINE)
            CFX_TRY(cfxi_emit_py_place_node(gen, n, CFXI_PY_STATEMENT, err));
    return CFX_OK;
}

/* ---- what can be taken in ------------------------------------------------------------------ */

typedef struct take_in {
    cfx_pycode *gen;
    cfx_node *next;  /* the node before those that are taken */
    int left;        /* so many more can be */
    cfx_error *err;
    bool named;      /* also those that have a name of their own */
} take_in;

/* Whether a node can be, which its user reads `uses` times. */
static cfx_status can_take(take_in *t, cfx_node *n, uint32_t uses, bool *can)
{
    *can = false;
    if (n != t->next || t->left == 0 || n->n_users != 1 || n->users->count != uses ||
        (n->op != CFX_OP_GET_ATTR && !cfxi_ir_is_call(n)) ||
        (!t->named && !cfxi_ir_has_usual_name(n)) ||
        (n->ext && n->ext->type.kind != CFX_KIND_INVALID))
        return CFX_OK;
    *can = true;
    if (n->op != CFX_OP_CALL_FUNCTION || word_of(n))
        return CFX_OK;
    const cfxi_py_callee *callee;
    CFX_TRY(cfxi_emit_py_callee_of(t->gen, n, &callee, t->err));
    *can = callee->form != CFXI_PY_INPLACE && callee->form != CFXI_PY_SETITEM &&
           !cfxi_emit_py_has_regions(n);
    return CFX_OK;
}

static cfx_status take_value(take_in *t, cfx_value v);

static cfx_status take_items(take_in *t, const cfx_value *items, size_t n)
{
    while (n > 0)
        CFX_TRY(take_value(t, items[--n]));
    return CFX_OK;
}

static cfx_status take_node(take_in *t, cfx_node *n, uint32_t uses);

/* The way of `and` or `or` that is evaluated second, which must be an expression. */
static cfx_status take_rest(take_in *t, const cfx_graph *rest, bool *done)
{
    const cfx_node *output = cfxi_emit_py_output_of(rest);
    take_in inside = *t;
    inside.next = output->prev;
    inside.left--;  /* for the word itself */
    CFX_TRY(take_value(&inside, output->args->items[0]));
    *done = cfxi_emit_py_is_expression(t->gen, rest);
    if (*done)
        t->left = inside.left;
    return *done ? CFX_OK : cfxi_emit_py_give_back(t->gen, rest, t->err);
}

static cfx_status take_logic(take_in *t, cfx_node *n, uint32_t uses)
{
    logic l;
    bool done = false;
    CFX_TRY(logic_of(t->gen, n, &l, t->err));
    if (!l.word || n != t->next || t->left == 0 || n->n_users != 1 || n->users->count != uses ||
        cfxi_emit_py_has_type(n))
        return CFX_OK;
    CFX_TRY(take_rest(t, l.rest, &done));
    if (!done)
        return CFX_OK;
    CFX_TRY(cfxi_emit_py_place_node(t->gen, n, CFXI_PY_INLINE, t->err));
    t->next = n->prev;
    return l.read ? CFX_OK : take_node(t, l.pred.as.node, 2);
}

static cfx_status take_value(take_in *t, cfx_value v)
{
    if (cfxi_ir_is_seq(v) && v.as.seq)
        return take_items(t, v.as.seq->items, v.as.seq->size);
    return v.kind == CFX_KIND_NODE ? take_node(t, v.as.node, 1) : CFX_OK;
}

static cfx_status take_node(take_in *t, cfx_node *n, uint32_t uses)
{
    bool can;
    if (n->op == CFX_OP_CALL_FUNCTION && cfxi_ir_node_form(n))
        return take_logic(t, n, uses);
    CFX_TRY(can_take(t, n, uses, &can));
    if (!can)
        return CFX_OK;
    CFX_TRY(cfxi_emit_py_place_node(t->gen, n, CFXI_PY_INLINE, t->err));
    t->next = n->prev;
    t->left--;
    const word_row *word = word_of(n);
    if (word && word->first > 0) {  /* x in xs: the second argument is evaluated first */
        CFX_TRY(take_value(t, n->args->items[word->second]));
        return take_value(t, n->args->items[word->first]);
    }
    if (n->kwargs)
        CFX_TRY(take_items(t, n->kwargs->items, n->kwargs->size));
    return n->args ? take_items(t, n->args->items, n->args->size) : CFX_OK;
}

cfx_status cfxi_emit_py_take_in(cfx_pycode *gen, cfx_value v, cfx_node *before, bool is_test,
                                cfx_error *err)
{
    take_in t = {gen, before->prev, is_test ? INT_MAX : MOST_NODES, err, is_test};
    const word_row *word = v.kind == CFX_KIND_NODE ? word_of(v.as.node) : NULL;
    if (gen->options->record_func || (!is_test && word && word->first < 0))
        return CFX_OK;
    return take_value(&t, v);
}

/* ---- writing it ---------------------------------------------------------------------------- */

static bool is_inlined(cfx_pycode *gen, cfx_value v)
{
    return v.kind == CFX_KIND_NODE && cfxi_emit_py_placed(gen, v.as.node) == CFXI_PY_INLINE;
}

bool cfxi_emit_py_is_compound(cfx_pycode *gen, cfx_value v)
{
    const cfxi_py_callee *callee;
    if (!is_inlined(gen, v) || v.as.node->op != CFX_OP_CALL_FUNCTION)
        return false;
    if (word_of(v.as.node) || cfxi_ir_node_form(v.as.node))
        return true;
    return cfxi_emit_py_callee_of(gen, v.as.node, &callee, NULL) == CFX_OK &&
           (callee->form == CFXI_PY_INFIX || callee->form == CFXI_PY_PREFIX);
}

static cfx_status put_side(cfx_pycode *gen, cfx_value v, const cfx_node *n, cfx_error *err)
{
    bool compound = cfxi_emit_py_is_compound(gen, v);
    if (compound)
        cfxi_emit_py_char(gen, '(');
    CFX_TRY(cfxi_emit_py_value(gen, v, n, err));
    if (compound)
        cfxi_emit_py_char(gen, ')');
    return CFX_OK;
}

/* `a and b`: of both only a word of its own kind, on the right, stands without parentheses. */
static cfx_status put_logic_side(cfx_pycode *gen, cfx_value v, const char *alone, const cfx_node *n,
                                 cfx_error *err)
{
    logic side = {0};
    if (is_inlined(gen, v))
        CFX_TRY(logic_of(gen, v.as.node, &side, err));
    const bool parentheses = side.word && side.word != alone;
    cfxi_emit_py_put(gen, "(", parentheses);
    CFX_TRY(cfxi_emit_py_value(gen, v, n, err));
    cfxi_emit_py_put(gen, ")", parentheses);
    return CFX_OK;
}

static cfx_status put_logic(cfx_pycode *gen, cfx_node *n, const logic *l, cfx_error *err)
{
    size_t count;
    const cfx_value *items = cfx_value_items(cfxi_emit_py_operands(n), &count);
    const cfx_node *output = cfxi_emit_py_output_of(l->rest);
    CFX_TRY(cfxi_emit_py_check_count(n, cfxi_emit_py_operands(n),
                                     cfxi_emit_py_count_inputs(l->rest), "inputs of a branch",
                                     err));
    for (cfx_node *in = cfxi_ir_next_input(l->rest, NULL); in; in = cfxi_ir_next_input(l->rest, in))
        if (items++, in->n_users > 0)
            CFX_TRY(cfxi_emit_py_bind_input(gen, in, items - 1, err));
    CFX_TRY(put_logic_side(gen, l->pred, NULL, n, err));
    cfxi_emit_py_put(gen, l->word, strlen(l->word));
    return put_logic_side(gen, output->args->items[0], l->word, output, err);
}

cfx_status cfxi_emit_py_put_inline(cfx_pycode *gen, cfx_node *n, cfx_error *err)
{
    logic l;
    CFX_TRY(logic_of(gen, n, &l, err));
    if (l.word)
        return put_logic(gen, n, &l, err);
    const word_row *row = word_of(n);
    if (row) {
        if (row->first >= 0)
            CFX_TRY(put_side(gen, n->args->items[row->first], n, err));
        cfxi_emit_py_put(gen, row->word, strlen(row->word));
        return put_side(gen, n->args->items[row->second], n, err);
    }
    const cfxi_py_callee *callee = NULL;
    if (n->op == CFX_OP_CALL_FUNCTION) {
        CFX_TRY(cfxi_emit_py_callee_of(gen, n, &callee, err));
        CFX_TRY(cfxi_emit_py_wrap(gen, n, callee, err));
    }
    return cfxi_emit_py_rhs(gen, n, callee, err);
}
