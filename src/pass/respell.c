/* respell.c - another operator in the place of one, spelled the same way. */
#include "respell_impl.h"

#include <stdio.h>

bool cfxi_pass_find_target(cfx_graph *g, const char *name, cfx_target *target, cfx_value *keep,
                           cfx_error *err)
{
    *keep = cfx_value_name(g, name, strlen(name), err);
    *target = (cfx_target){.name = name, .size = strlen(name)};
    if (keep->kind == CFX_KIND_INVALID)
        return false;
    target->object = cfx_value_object(*keep);
    return target->object || !g->host || !g->host->resolve;
}

/* "torch" of "torch.relu", "torch.ops.aten" of "torch.ops.aten.relu.default". */
static size_t prefix_size(const char *name, cfx_spelling kind)
{
    const char *dot = strrchr(name, '.');
    if (dot && kind == CFX_SPELLING_OVERLOAD)
        while (dot > name && *--dot != '.')
            ;
    return dot ? (size_t)(dot - name) : 0;
}

/* Whether `to` is to its operator what `from` is to its own: 0 not at all, 2 in every respect. */
static int likeness(const char *from, const char *to, cfx_spelling kind)
{
    static const char ops[] = "torch.ops.";
    const bool overload = strncmp(from, ops, sizeof ops - 1) == 0;
    if (overload != (kind == CFX_SPELLING_OVERLOAD) ||
        (kind != CFX_SPELLING_FUNCTION && kind != CFX_SPELLING_OVERLOAD))
        return 0;
    if (overload && strcmp(strrchr(from, '.'), strrchr(to, '.')) != 0)
        return 0;
    const size_t size = prefix_size(from, kind);
    if (size == prefix_size(to, kind) && memcmp(from, to, size) == 0)
        return 2;
    return 1;
}

/* The operators of Python's module `operator` are also known as _operator's. */
static const char *public_name(const char *name)
{
    return strncmp(name, "_operator.", 10) == 0 ? name + 1 : name;
}

static bool is_sign(const char *name) { return strncmp(name, "operator.", 9) == 0; }

/* The best spelling of `op` for a function of that name; false if there is none. */
static bool find_function(cfx_operator op, const char *from, char out[CFX_SPELLING_SIZE])
{
    char name[CFX_SPELLING_SIZE];
    cfx_spelling kind;
    int best = 0;
    for (size_t i = 0; cfx_operator_spelling(op, i, name, &kind); i++) {
        const int like = likeness(from, name, kind);
        /* A sign takes two operands and nothing else, of whatever type: no function of torch. */
        if (like <= best || (like < 2 && is_sign(from) != is_sign(name)))
            continue;
        best = like;
        memcpy(out, name, sizeof name);
    }
    return best > 0;
}

static bool find_method(cfx_operator op, char out[CFX_SPELLING_SIZE])
{
    char name[CFX_SPELLING_SIZE];
    cfx_spelling kind;
    for (size_t i = 0; cfx_operator_spelling(op, i, name, &kind); i++)
        if (kind == CFX_SPELLING_METHOD) {
            const char *last = strrchr(name, '.') + 1;
            memcpy(out, last, strlen(last) + 1);
            return true;
        }
    return false;
}

bool cfxi_pass_overload_of(cfx_operator op, char out[CFX_SPELLING_SIZE])
{
    cfx_spelling kind;
    for (size_t i = 0; cfx_operator_spelling(op, i, out, &kind); i++)
        if (kind == CFX_SPELLING_OVERLOAD)
            return true;
    return false;
}

static cfx_status make_method(cfx_node *n, const char *name, bool *done, cfx_error *err)
{
    const cfx_target target = {.name = name, .size = strlen(name)};
    CFX_TRY(cfx_node_set_target(n, target, err));
    if (n->op != CFX_OP_CALL_METHOD)
        CFX_TRY(cfx_node_set_op(n, CFX_OP_CALL_METHOD, err));
    *done = true;
    return CFX_OK;
}

static cfx_status make_function(cfx_node *n, const char *name, bool *done, cfx_error *err)
{
    cfx_target target;
    cfx_value keep;
    cfx_error own;
    err = cfxi_base_error_or(err, &own);
    *done = cfxi_pass_find_target(n->graph, name, &target, &keep, err);
    cfx_status status = keep.kind == CFX_KIND_INVALID ? err->status
                        : *done ? cfx_node_set_target(n, target, err) : CFX_OK;
    cfx_value_discard(n->graph, keep);
    return status;
}

/* cfx.ops.NAME, as lowering spells rows. */
bool cfxi_pass_is_lowered(const cfx_node *n)
{
    const cfx_str *name = n->callee->ref->name;
    return n->op == CFX_OP_CALL_FUNCTION && name && strncmp(name->data, "cfx.ops.", 8) == 0;
}

cfx_status cfxi_pass_respell(cfx_node *n, cfx_operator op, bool *done, cfx_error *err)
{
    char name[CFX_SPELLING_SIZE];
    const cfx_str *from = n->callee->ref->name;
    *done = false;
    if (n->op == CFX_OP_CALL_METHOD)
        return find_method(op, name) ? make_method(n, name, done, err) : CFX_OK;
    if (!from)
        return CFX_OK;
    if (cfxi_pass_is_lowered(n)) {
        snprintf(name, sizeof name, "cfx.ops.%s", cfx_operator_name(op));
        return make_function(n, name, done, err);
    }
    if (find_function(op, public_name(from->data), name))
        return make_function(n, name, done, err);
    bool plain = strncmp(from->data, "torch.ops.", 10) != 0 &&
                 !is_sign(public_name(from->data));
    return plain && cfx_node_num_args(n) > 0 && find_method(op, name)
               ? make_method(n, name, done, err) : CFX_OK;
}
