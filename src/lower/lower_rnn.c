/* lower_rnn.c - recurrent modules: their weights as one list, the state that is not given as zeros,
 * and results as the classes return them. An input may lack the batch, which only its dimensions
 * tell: it is seen as a batch of one, and the results by the shape of the input. */
#include "lower_impl.h"
#include "recurrent.h"

#include <stdio.h>

/* ---- weights ------------------------------------------------------------------------------- */

enum { MOST_WEIGHTS = 1024 };

/* "weight_ih_l0_reverse" */
static cfx_value weight(cfxi_lower *l, cfx_node *n, const char *kind, int64_t layer, bool reverse)
{
    char name[64];
    snprintf(name, sizeof name, "%s_l%lld%s", kind, (long long)layer, reverse ? "_reverse" : "");
    return cfxi_lower_attribute(l, n, name);
}

static cfx_value all_weights(cfxi_lower *l, cfx_node *n, int64_t layers, bool both)
{
    static const char *const kinds[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh",
                                        "weight_hr"};
    cfxi_vec found = {0};
    cfx_value list = cfx_value_invalid();
    bool good = layers <= MOST_WEIGHTS;
    for (int64_t i = 0; good && i < layers * (both ? 2 : 1); i++)
        for (size_t k = 0; good && k < sizeof kinds / sizeof *kinds; k++) {
            const cfx_value v = weight(l, n, kinds[k], both ? i / 2 : i, both && i % 2);
            good = l->err->status == CFX_OK &&
                   cfxi_base_vec_reserve(&found, 1, sizeof v, l->g->allocator);
            if (good && v.kind == CFX_KIND_NODE)
                ((cfx_value *)found.data)[found.size++] = v;
        }
    if (good)
        list = cfx_value_list(l->g, found.data, found.size, l->err);
    else if (l->err->status == CFX_OK)
        cfxi_base_nomem(l->err);
    cfxi_base_vec_free(&found, sizeof(cfx_value), l->g->allocator);
    return list;
}

/* ---- states -------------------------------------------------------------------------------- */

/* Zeros of sizes (first, batch, width), or (batch, width) if `first` is 0; of the input's type. */
static cfx_value zeros(cfxi_lower *l, cfx_node *n, cfx_value input, int64_t first, int64_t batch,
                       int64_t width)
{
    const cfx_value size[] = {input, cfx_value_int(batch)};
    const cfx_value sizes[] = {cfx_value_int(first), cfxi_lower_row(l, n, CFX_OPID_size, size, 2),
                               cfx_value_int(width)};
    const cfx_value args[] = {input, cfx_value_list(l->g, sizes + (first == 0), first ? 3 : 2,
                                                    l->err)};
    return cfxi_lower_row(l, n, CFX_OPID_new_zeros, args, 2);
}

typedef struct recurrent {
    cfx_value given;       /* the input as it is passed */
    cfx_value input;       /* with a batch */
    cfx_value state;       /* as it is passed; None: zeros */
    int64_t layers;
    int64_t hidden;
    int64_t proj;
    bool bidirectional;
    bool batch_first;
} recurrent;

static recurrent read_module(cfxi_lower *l, cfx_node *n)
{
    recurrent r = {
        .given = cfxi_lower_argument(n, 0, "input"),
        .state = cfxi_lower_argument(n, 1, "hx"),
        .layers = cfxi_lower_int(l, n, "num_layers"),
        .hidden = cfxi_lower_int(l, n, "hidden_size"),
        .proj = cfxi_lower_int(l, n, "proj_size"),
        .bidirectional = cfxi_lower_flag(l, n, "bidirectional"),
        .batch_first = cfxi_lower_flag(l, n, "batch_first"),
    };
    const cfx_value last = cfxi_lower_size(l, n, r.given, -1);
    const cfx_value time = cfxi_lower_size(l, n, r.given, r.batch_first ? -2 : 0);
    const cfx_value first[] = {cfx_value_int(-1), time, last};
    const cfx_value second[] = {time, cfx_value_int(-1), last};
    r.input = cfxi_lower_reshape(l, n, r.given, r.batch_first ? first : second, 3);
    return r;
}

static int64_t rows_of(const recurrent *r) { return r->layers * (r->bidirectional ? 2 : 1); }

/* A state that is passed, with a batch. */
static cfx_value with_batch(cfxi_lower *l, cfx_node *n, const recurrent *r, cfx_value state,
                            int64_t width)
{
    const cfx_value sizes[] = {cfx_value_int(rows_of(r)), cfx_value_int(-1), cfx_value_int(width)};
    return cfxi_lower_reshape(l, n, state, sizes, 3);
}

static cfx_value one_tuple(cfxi_lower *l, int64_t i)
{
    const cfx_value number = cfx_value_int(i);
    return cfx_value_tuple(l->g, &number, 1, l->err);
}

/* Results with a batch only if the input has one. */
static cfx_value output_like(cfxi_lower *l, cfx_node *n, const recurrent *r, cfx_value output)
{
    const int64_t width = (r->proj > 0 ? r->proj : r->hidden) * (r->bidirectional ? 2 : 1);
    return cfxi_lower_reshape_by(l, n, output, cfx_value_invalid(),
                                 cfxi_lower_sizes(l, n, r->given, 0, -1), one_tuple(l, width));
}

static cfx_value state_like(cfxi_lower *l, cfx_node *n, const recurrent *r, cfx_value state,
                            int64_t width)
{
    const cfx_value batch = r->batch_first ? cfxi_lower_sizes(l, n, r->given, 0, -2)
                                           : cfxi_lower_sizes(l, n, r->given, 1, -1);
    return cfxi_lower_reshape_by(l, n, state, one_tuple(l, rows_of(r)), batch,
                                 one_tuple(l, width));
}

static cfx_value zero_state(cfxi_lower *l, cfx_node *n, const recurrent *r, int64_t width)
{
    return zeros(l, n, r->input, rows_of(r), r->batch_first ? 0 : 1, width);
}

static cfx_value item(cfxi_lower *l, cfx_node *n, cfx_value of, int64_t i)
{
    const cfx_value args[] = {of, cfx_value_int(i)};
    return cfxi_lower_row(l, n, CFX_OPID_getitem, args, 2);
}

/* Likewise, of a tuple that may be written down. */
static cfx_value part(cfxi_lower *l, cfx_node *n, cfx_value of, size_t i)
{
    size_t count;
    const cfx_value *items = cfx_value_items(of, &count);
    return i < count ? items[i] : item(l, n, of, (int64_t)i);
}

/* The row itself, before `n`. */
static cfx_value recur(cfxi_lower *l, cfx_node *n, cfx_operator op, const recurrent *r)
{
    cfx_value dropout = cfxi_lower_attribute(l, n, "dropout");
    if (dropout.kind == CFX_KIND_INT)
        dropout = cfx_value_float((double)dropout.as.i);
    const cfx_value args[] = {
        r->input,
        r->state,
        all_weights(l, n, r->layers, r->bidirectional),
        cfx_value_bool(cfxi_lower_flag(l, n, "bias")),
        cfx_value_int(r->layers),
        dropout,
        cfx_value_bool(cfxi_lower_flag(l, n, "training")),
        cfx_value_bool(r->bidirectional),
        cfx_value_bool(r->batch_first),
    };
    return cfxi_lower_row(l, n, op, args, sizeof args / sizeof *args);
}

/* (output, state) as a tuple: what `n` becomes. */
static cfx_status give_back(cfxi_lower *l, cfx_node *n, cfx_value output, cfx_value state)
{
    const cfx_value both[] = {output, state};
    if (output.kind == CFX_KIND_INVALID || state.kind == CFX_KIND_INVALID)
        return l->err->status ? l->err->status
                              : cfxi_lower_refuse(l, n, "the module lacks an attribute of its "
                                                  "class");
    const cfx_value tuple = cfx_value_tuple(l->g, both, 2, l->err);
    return cfxi_lower_finish(l, n, CFX_OPID_tuple, &tuple, 1);
}

/* ---- layers -------------------------------------------------------------------------------- */

cfx_status cfxi_lower_lstm(cfxi_lower *l, cfx_node *n)
{
    recurrent r = read_module(l, n);
    const int64_t width = r.proj > 0 ? r.proj : r.hidden;
    cfx_value both[] = {r.state, r.state};
    if (cfxi_lower_value_is_none(r.state)) {
        both[0] = zero_state(l, n, &r, width);
        both[1] = zero_state(l, n, &r, r.hidden);
    } else {
        both[0] = with_batch(l, n, &r, part(l, n, r.state, 0), width);
        both[1] = with_batch(l, n, &r, part(l, n, r.state, 1), r.hidden);
    }
    CFX_TRY(l->err->status);
    r.state = cfx_value_tuple(l->g, both, 2, l->err);
    const cfx_value all = recur(l, n, CFX_OPID_lstm, &r);
    const cfx_value output = output_like(l, n, &r, item(l, n, all, 0));
    const cfx_value state[] = {state_like(l, n, &r, item(l, n, all, 1), width),
                               state_like(l, n, &r, item(l, n, all, 2), r.hidden)};
    CFX_TRY(l->err->status);
    return give_back(l, n, output, cfx_value_tuple(l->g, state, 2, l->err));
}

static cfx_status lower_simple(cfxi_lower *l, cfx_node *n, cfx_operator op)
{
    recurrent r = read_module(l, n);
    r.state = cfxi_lower_value_is_none(r.state) ? zero_state(l, n, &r, r.hidden)
                                    : with_batch(l, n, &r, r.state, r.hidden);
    const cfx_value all = recur(l, n, op, &r);
    const cfx_value output = output_like(l, n, &r, item(l, n, all, 0));
    return give_back(l, n, output, state_like(l, n, &r, item(l, n, all, 1), r.hidden));
}

cfx_status cfxi_lower_gru(cfxi_lower *l, cfx_node *n) { return lower_simple(l, n, CFX_OPID_gru); }

/* Whether the attribute says relu: "RNN_RELU" of layers, "relu" of cells. */
static bool is_relu(cfxi_lower *l, cfx_node *n, const char *name, const char *relu)
{
    const cfx_value v = cfxi_lower_attribute(l, n, name);
    const bool is = v.kind == CFX_KIND_STR && strcmp(cfx_value_text(v, NULL), relu) == 0;
    cfx_value_discard(l->g, v);
    return is;
}

cfx_status cfxi_lower_rnn(cfxi_lower *l, cfx_node *n)
{
    return lower_simple(l, n, is_relu(l, n, "mode", "RNN_RELU") ? CFX_OPID_rnn_relu
                                                                : CFX_OPID_rnn_tanh);
}

/* ---- cells --------------------------------------------------------------------------------- */

static cfx_status lower_cell(cfxi_lower *l, cfx_node *n, cfx_operator op, bool two)
{
    const cfx_value input = cfxi_lower_argument(n, 0, "input");
    cfx_value state = cfxi_lower_argument(n, 1, "hx");
    if (cfxi_lower_value_is_none(state)) {
        state = zeros(l, n, input, 0, 0, cfxi_lower_int(l, n, "hidden_size"));
        const cfx_value both[] = {state, state};
        if (two && state.kind != CFX_KIND_INVALID)
            state = cfx_value_tuple(l->g, both, 2, l->err);
    }
    const cfx_value args[] = {
        input,
        state,
        cfxi_lower_attribute(l, n, "weight_ih"),
        cfxi_lower_attribute(l, n, "weight_hh"),
        cfxi_lower_attribute(l, n, "bias_ih"),
        cfxi_lower_attribute(l, n, "bias_hh"),
    };
    return cfxi_lower_finish(l, n, op, args, sizeof args / sizeof *args);
}

cfx_status cfxi_lower_lstm_cell(cfxi_lower *l, cfx_node *n)
{
    return lower_cell(l, n, CFX_OPID_lstm_cell, true);
}

cfx_status cfxi_lower_gru_cell(cfxi_lower *l, cfx_node *n)
{
    return lower_cell(l, n, CFX_OPID_gru_cell, false);
}

cfx_status cfxi_lower_rnn_cell(cfxi_lower *l, cfx_node *n)
{
    return lower_cell(l, n, is_relu(l, n, "nonlinearity", "relu") ? CFX_OPID_rnn_relu_cell
                                                                  : CFX_OPID_rnn_tanh_cell, false);
}

/* ---- in PyTorch's words --------------------------------------------------------------------- */

/* What a row that was written here is called there; methods begin with a dot. */
static const char *torch_name(cfx_operator op)
{
    static const struct { cfx_operator op; const char *name; } names[] = {
        {CFX_OPID_size, ".size"}, {CFX_OPID_new_zeros, ".new_zeros"},
        {CFX_OPID_reshape, "torch.reshape"}, {CFX_OPID_getitem, "operator.getitem"},
        {CFX_OPID_add, "operator.add"}, {CFX_OPID_tuple, "builtins.tuple"},
        {CFX_OPID_lstm, "torch.lstm"}, {CFX_OPID_gru, "torch.gru"},
        {CFX_OPID_rnn_tanh, "torch.rnn_tanh"}, {CFX_OPID_rnn_relu, "torch.rnn_relu"},
        {CFX_OPID_lstm_cell, "torch.lstm_cell"}, {CFX_OPID_gru_cell, "torch.gru_cell"},
        {CFX_OPID_rnn_tanh_cell, "torch.rnn_tanh_cell"},
        {CFX_OPID_rnn_relu_cell, "torch.rnn_relu_cell"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].op == op)
            return names[i].name;
    return NULL;
}

static cfx_status respell(cfx_node *n, cfx_error *err)
{
    const char *name = torch_name(cfx_node_operator(n));
    if (!name)
        return CFX_OK;
    const bool method = *name == '.';
    name += method;
    cfx_value v = cfx_value_retain(cfx_value_name(n->graph, name, strlen(name), err));
    if (v.kind == CFX_KIND_INVALID)
        return CFX_E_NOMEM;
    const cfx_target target = {.object = method ? NULL : cfx_value_object(v), .name = name,
                               .size = strlen(name)};
    cfx_status status = method ? cfx_node_set_op(n, CFX_OP_CALL_METHOD, err) : CFX_OK;
    if (status == CFX_OK)
        status = cfx_node_set_target(n, target, err);
    cfx_value_release(n->graph, v);
    return status;
}

static cfxi_special_fn *special_of(cfx_operator op)
{
    switch ((int)op) {
    case CFX_OPID_lstm: return cfxi_lower_lstm;
    case CFX_OPID_gru: return cfxi_lower_gru;
    case CFX_OPID_lstm_cell: return cfxi_lower_lstm_cell;
    case CFX_OPID_gru_cell: return cfxi_lower_gru_cell;
    case CFX_OPID_rnn_tanh_cell: return cfxi_lower_rnn_cell;
    default: return cfxi_lower_rnn;
    }
}

cfx_status cfxi_lower_recurrent(cfx_graph *g, const cfx_module_tree *modules, cfx_node *n,
                                cfx_operator op, cfx_error *err)
{
    cfxi_lower l = {.g = g, .modules = modules, .err = err};
    cfx_node *before = cfx_node_prev(n);
    l.what = cfx_node_map_new(g->allocator, err);
    cfx_status status = l.what ? special_of(op)(&l, n) : CFX_E_NOMEM;
    cfx_node *at = before ? cfx_node_next(before) : cfx_graph_first(g);
    for (; status == CFX_OK; at = cfx_node_next(at)) {
        if (at->op != CFX_OP_GET_ATTR)
            status = respell(at, err);
        if (at == n)
            break;
    }
    if (status == CFX_OK && l.refused > 0) {
        *err = l.first;
        status = l.first.status;
    }
    cfxi_lower_paths_free(&l);
    cfx_node_map_free(l.what);
    return status;
}
