/* quantized.c - what of a quantized model computes in integers, and what stays float, and why.
 *
 *     in integers: 12 linear, 4 matmul, 5 add
 *     in float:    2 layer_norm: this operator has no integer form for such inputs (norm1, norm2)
 *
 * A copy of the graph is lowered and becomes integers, as it does when it runs: that is what is
 * counted. Reasons of preparing and converting come before those of that copy.
 */
#include "cli.h"

#include <cfx/calibrate.h>
#include <cfx/embed/stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cli_left {
    char *name;      /* of a node */
    char *operator_; /* what it calls */
    char *why;
    bool printed;
};

/* ---- the list ------------------------------------------------------------------------------ */

void cli_lefts_free(cli_lefts *all)
{
    for (size_t i = 0; i < all->n; i++) {
        free(all->items[i].name);
        free(all->items[i].operator_);
        free(all->items[i].why);
    }
    free(all->items);
    *all = (cli_lefts){0};
}

static cli_left *find(const cli_lefts *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->items[i].name, name) == 0)
            return &all->items[i];
    return NULL;
}

static void set_text(cli_lefts *all, char **to, const char *text)
{
    char *copy = strdup(text);
    all->nomem = all->nomem || !copy;
    free(*to);
    *to = copy;
}

/* "softmax", or the class of a module: "MultiheadAttention". */
static const char *operator_of(const cli_lefts *all, const cfx_node *n)
{
    const char *name = cfx_operator_name(cfx_node_operator(n));
    const char *target = cfx_node_target(n, NULL, NULL);
    const cfx_module *m = cfx_node_op(n) == CFX_OP_CALL_MODULE && all->model
                              ? cfx_module_child(all->model, target) : NULL;
    if (m)
        name = cfx_module_class_name(m);
    if (!name)
        name = target;
    return strrchr(name, '.') ? strrchr(name, '.') + 1 : name;
}

static void add(cli_lefts *all, const cfx_node *n, const char *why)
{
    cli_left *items = realloc(all->items, (all->n + 1) * sizeof *items);
    if (items)
        all->items = items;
    if (!items || all->nomem) {
        all->nomem = true;
        return;
    }
    cli_left *left = &items[all->n++];
    *left = (cli_left){.name = NULL};
    set_text(all, &left->name, cfx_node_name(n, NULL));
    set_text(all, &left->operator_, operator_of(all, n));
    set_text(all, &left->why, why);
}

void cli_lefts_note(cli_lefts *all, const cfx_node *n, const char *why)
{
    cli_left *old = all->nomem ? NULL : find(all, cfx_node_name(n, NULL));
    if (old)
        set_text(all, &old->why, why);  /* what was found later is truer */
    else
        add(all, n, why);
}

/* ---- the integer form ---------------------------------------------------------------------- */

static cfx_status note_float(void *ctx, const cfx_node *n, const char *why)
{
    cli_lefts *all = ctx;
    if (!all->nomem && !find(all, cfx_node_name(n, NULL)))
        add(all, n, why);
    return CFX_OK;
}

/* What has products of floats, of which nobody has said anything. */
static bool is_product(cfx_operator op)
{
    static const cfx_operator products[] = {
        CFX_OPID_linear, CFX_OPID_conv1d, CFX_OPID_conv2d, CFX_OPID_conv3d,
        CFX_OPID_conv_transpose1d, CFX_OPID_conv_transpose2d, CFX_OPID_conv_transpose3d,
        CFX_OPID_matmul, CFX_OPID_mm, CFX_OPID_bmm, CFX_OPID_addmm, CFX_OPID_baddbmm,
        CFX_OPID_scaled_dot_product_attention, CFX_OPID_multi_head_attention_forward,
        CFX_OPID_lstm, CFX_OPID_gru, CFX_OPID_rnn_tanh, CFX_OPID_rnn_relu};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (op == products[i])
            return true;
    return false;
}

static bool reads_integers(const cfx_node *n)
{
    for (size_t i = 0; i < cfx_node_num_inputs(n); i++) {
        const char *name = cfx_operator_name(cfx_node_operator(cfx_node_input(n, i)));
        if (name && strncmp(name, "dequantize_per_", strlen("dequantize_per_")) == 0)
            return true;
    }
    return false;
}

/* Why a product is of floats. Layers that are not in `quantized` are parts of a module that is one
 * call there, in whatever mode. */
static const char *why_float(const cfx_node *n, const cfx_graph *quantized, const char *why)
{
    static const cfx_operator layers[] = {CFX_OPID_linear, CFX_OPID_lstm, CFX_OPID_gru,
                                          CFX_OPID_rnn_tanh, CFX_OPID_rnn_relu};
    if (reads_integers(n))
        return "its weights are integers in the file, and floats when it runs";
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (cfx_node_operator(n) == layers[i] &&
            !cfx_graph_find(quantized, cfx_node_name(n, NULL)))
            return "it is a part of a module that is called as a whole";
    return why;
}

static void note_products(cli_lefts *all, cfx_graph *g, const cfx_graph *quantized,
                          const char *why)
{
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n))
        if (is_product(cfx_node_operator(n)))
            note_float(all, n, why_float(n, quantized, why));
}

static cfx_graph *integer_form(cli_lefts *all, cfx_module *m, cfx_error *err)
{
    const cfx_module_tree tree = cfx_module_as_tree(m);
    const cfx_integers_options options = {.each = note_float, .ctx = all};
    cfx_graph *g = cfx_graph_clone(cfx_module_graph(m), NULL, err);
    if (g && cfx_graph_lower(g, &tree, NULL, err) == CFX_OK &&
        cfx_graph_integers(g, &tree, &options, NULL, err) == CFX_OK)
        return g;
    cfx_graph_release(g);
    return NULL;
}

/* ---- printing ------------------------------------------------------------------------------ */

/* "linear" of "integer_linear"; NULL for what computes in float. */
static const char *in_integers(const char *name)
{
    static const char prefix[] = "integer_";
    static const char *const others[] = {"dynamic_linear", "weight_linear", "weight_embedding",
                                         "weight_embedding_bag"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return name;
    if (strcmp(name, "integer_table") == 0)
        return "by table";
    return strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : NULL;
}

static cfx_status print_integers(cfx_graph *g, cfx_error *err)
{
    cfx_stats s;
    const char *between = "in integers: ";
    cfx_status status = cfx_stats_init(&s, NULL, err);
    if (status == CFX_OK)
        status = cfx_stats_add_graph(&s, g, err);
    for (size_t i = 0; status == CFX_OK && i < s.n_rows; i++) {
        const char *name = in_integers(s.rows[i].name);
        if (!name)
            continue;
        printf("%s%zu %s", between, s.rows[i].count, name);
        between = ", ";
    }
    if (status == CFX_OK)
        printf("%s\n", strcmp(between, ", ") == 0 ? "" : "in integers: nothing");
    cfx_stats_free(&s);
    return status;
}

/* How much of a reason is the same for many: behind a colon are the numbers of one. */
static size_t size_of_why(const cli_left *left)
{
    const char *colon = strstr(left->why, ": ");
    return colon ? (size_t)(colon - left->why) : strlen(left->why);
}

static bool are_alike(const cli_left *a, const cli_left *b)
{
    const size_t size = size_of_why(a);
    return strcmp(a->operator_, b->operator_) == 0 && size == size_of_why(b) &&
           memcmp(a->why, b->why, size) == 0;
}

/* All calls of an operator with one reason, in a line. */
static void print_alike(const cli_lefts *all, size_t first)
{
    enum { MOST_NAMES = 4 };
    size_t count = 0, shown = 0;
    for (size_t i = first; i < all->n; i++)
        count += are_alike(&all->items[i], &all->items[first]);
    printf("in float:    %zu %s: %.*s (", count, all->items[first].operator_,
           (int)size_of_why(&all->items[first]), all->items[first].why);
    for (size_t i = first; i < all->n; i++) {
        cli_left *left = &all->items[i];
        if (!are_alike(left, &all->items[first]))
            continue;
        left->printed = true;
        if (shown < MOST_NAMES)
            printf("%s%s", shown > 0 ? ", " : "", left->name);
        shown++;
    }
    if (count > MOST_NAMES)
        printf(" and %zu more", count - MOST_NAMES);
    printf(")\n");
}

cfx_status cli_lefts_print(cli_lefts *all, cfx_module *quantized, const char *why_product,
                           cfx_error *err)
{
    cfx_graph *g = integer_form(all, quantized, err);
    if (!g)
        return err->status;
    note_products(all, g, cfx_module_graph(quantized), why_product);
    cfx_status status = print_integers(g, err);
    for (size_t i = 0; status == CFX_OK && !all->nomem && i < all->n; i++)
        if (!all->items[i].printed)
            print_alike(all, i);
    cfx_graph_release(g);
    return all->nomem ? cfx_error_set(err, CFX_E_NOMEM, "out of memory") : status;
}
