/* pyinline.c - conditions: `if x.sum() > 0:` in place of three statements.
 *
 * A node stands in the condition if it is used there alone, and if what is evaluated before it
 * still is: so the nodes are taken from the end of the list, in the order in which the expression,
 * read from right to left, mentions them. A condition takes in a few; the others are statements.
 */
#include "pycode_impl.h"

enum { MOST_NODES = 6 };

cfx_status cfxi_py_place_node(cfx_pycode *gen, const cfx_node *n, cfxi_py_place place,
                              cfx_error *err)
{
    if (!cfxi_pointers_set(&gen->placed, n, (void *)(uintptr_t)place, gen->allocator))
        return cfxi_nomem(err);
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
    const cfx_str *name = cfxi_ref_qualified_name(n->graph, n->callee->ref, NULL);
    const char *text = name ? name->data + (name->data[0] == '_') : "";
    if (strncmp(text, "operator.", 9) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text + 9, words[i].name) == 0)
            return n->args->size == (words[i].first < 0 ? 1u : 2u) ? &words[i] : NULL;
    return NULL;
}

/* ---- what can be taken in ------------------------------------------------------------------ */

typedef struct take_in {
    cfx_pycode *gen;
    cfx_node *next;  /* the node before those that are taken */
    int left;        /* so many more can be */
    cfx_error *err;
} take_in;

static cfx_status can_take(take_in *t, cfx_node *n, bool *can)
{
    *can = false;
    if (n != t->next || t->left == 0 || n->n_users != 1 || n->users->count != 1 ||
        (n->op != CFX_OP_GET_ATTR && !cfxi_is_call(n)) ||
        (n->ext && n->ext->type.kind != CFX_KIND_INVALID))
        return CFX_OK;
    *can = true;
    if (n->op != CFX_OP_CALL_FUNCTION || word_of(n))
        return CFX_OK;
    const cfxi_py_callee *callee;
    CFX_TRY(cfxi_py_callee_of(t->gen, n, &callee, t->err));
    *can = callee->form != CFXI_PY_INPLACE && callee->form != CFXI_PY_SETITEM &&
           !cfxi_py_has_regions(n, callee->form);
    return CFX_OK;
}

static cfx_status take_value(take_in *t, cfx_value v);

static cfx_status take_items(take_in *t, const cfx_value *items, size_t n)
{
    while (n > 0)
        CFX_TRY(take_value(t, items[--n]));
    return CFX_OK;
}

static cfx_status take_value(take_in *t, cfx_value v)
{
    bool can;
    if (cfxi_is_seq(v) && v.as.seq)
        return take_items(t, v.as.seq->items, v.as.seq->size);
    if (v.kind != CFX_KIND_NODE)
        return CFX_OK;
    cfx_node *n = v.as.node;
    CFX_TRY(can_take(t, n, &can));
    if (!can)
        return CFX_OK;
    CFX_TRY(cfxi_py_place_node(t->gen, n, CFXI_PY_INLINE, t->err));
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

cfx_status cfxi_py_take_in(cfx_pycode *gen, cfx_value v, cfx_node *before, cfx_error *err)
{
    take_in t = {gen, before->prev, MOST_NODES, err};
    return gen->options->record_func ? CFX_OK : take_value(&t, v);
}

/* ---- writing it ---------------------------------------------------------------------------- */

static bool is_inlined(cfx_pycode *gen, cfx_value v)
{
    return v.kind == CFX_KIND_NODE && cfxi_py_placed(gen, v.as.node) == CFXI_PY_INLINE;
}

bool cfxi_py_is_compound(cfx_pycode *gen, cfx_value v)
{
    const cfxi_py_callee *callee;
    if (!is_inlined(gen, v) || v.as.node->op != CFX_OP_CALL_FUNCTION)
        return false;
    if (word_of(v.as.node))
        return true;
    return cfxi_py_callee_of(gen, v.as.node, &callee, NULL) == CFX_OK &&
           (callee->form == CFXI_PY_INFIX || callee->form == CFXI_PY_PREFIX);
}

static cfx_status put_side(cfx_pycode *gen, cfx_value v, const cfx_node *n, cfx_error *err)
{
    bool compound = cfxi_py_is_compound(gen, v);
    if (compound)
        cfxi_py_char(gen, '(');
    CFX_TRY(cfxi_py_value(gen, v, n, err));
    if (compound)
        cfxi_py_char(gen, ')');
    return CFX_OK;
}

cfx_status cfxi_py_put_inline(cfx_pycode *gen, cfx_node *n, cfx_error *err)
{
    const word_row *row = word_of(n);
    if (row) {
        if (row->first >= 0)
            CFX_TRY(put_side(gen, n->args->items[row->first], n, err));
        cfxi_py_put(gen, row->word, strlen(row->word));
        return put_side(gen, n->args->items[row->second], n, err);
    }
    const cfxi_py_callee *callee = NULL;
    if (n->op == CFX_OP_CALL_FUNCTION) {
        CFX_TRY(cfxi_py_callee_of(gen, n, &callee, err));
        CFX_TRY(cfxi_py_wrap(gen, n, callee, err));
    }
    return cfxi_py_rhs(gen, n, callee, err);
}
