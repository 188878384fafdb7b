/* export_recurrent.c - recurrent layers: LSTM, GRU and RNN of ONNX, one for each layer.
 *
 * ONNX has its gates in another order, both biases in one tensor, and the direction as a dimension
 * of its own: (time, direction, batch, hidden).
 */
#include "export_impl.h"

typedef struct recurrent {
    const char *op;
    size_t gates;
    const int *order;    /* ONNX's gate i is the order[i]-th of PyTorch */
    size_t states;
    size_t first;        /* parameter: params; the flags follow */
    const char *activation;  /* or NULL: ONNX's own */
} recurrent;

/* Gates of (gates * hidden, ...) in ONNX's order, with a direction in front. */
static cfxi_ev *ordered(cfxi_export_call *c, const recurrent *r, cfxi_ev *w)
{
    cfxi_ev *parts[4];
    cfxi_ev *gates[4];
    w = CAST(w, cfxi_export_result_dtype(c));
    if (r->gates == 1)
        return cfxi_export_unsqueeze(c, w, 0);
    cfxi_export_nodes(c->x, "Split", &w, 1, parts, r->gates);
    SET_INT("axis", 0);
    SET_INT("num_outputs", (int64_t)r->gates);
    for (size_t i = 0; i < r->gates; i++)
        gates[i] = parts[r->order[i]];
    return cfxi_export_unsqueeze(c, cfxi_export_concat(c, gates, r->gates, 0), 0);
}

/* Parameters of one layer: [w_ih, w_hh, b_ih, b_hh] for each direction. */
static cfxi_ev *parameter(cfxi_export_call *c, const recurrent *r, size_t layer, size_t directions,
                          size_t per, size_t which)
{
    const cfxi_ev *params = c->args[r->first];
    cfxi_ev *parts[2];
    for (size_t d = 0; d < directions; d++)
        parts[d] = ordered(c, r, params->items[(layer * directions + d) * per + which]);
    return cfxi_export_concat(c, parts, directions, 0);
}

static cfxi_ev *biases(cfxi_export_call *c, const recurrent *r, size_t layer, size_t directions,
                       size_t per)
{
    if (per < 4)
        return NULL;
    cfxi_ev *both[] = {parameter(c, r, layer, directions, per, 2),
                       parameter(c, r, layer, directions, per, 3)};
    return cfxi_export_concat(c, both, 2, 1);
}

/* The part of a state (layers * directions, batch, hidden) that is one layer's. */
static cfxi_ev *state_part(cfxi_export_call *c, cfxi_ev *h, size_t layer, size_t directions)
{
    return cfxi_export_slice(c, h, 0, INT((int64_t)(layer * directions)),
                             INT((int64_t)((layer + 1) * directions)), 1);
}

static void set_layer(cfxi_export_call *c, const recurrent *r, size_t directions, int64_t hidden)
{
    const char *words[2] = {r->activation, r->activation};
    SET_INT("hidden_size", hidden);
    SET_TEXT("direction", directions == 2 ? "bidirectional" : "forward");
    if (r->activation)
        cfxi_export_set_texts(c->x, "activations", words, directions);
    if (strcmp(r->op, "GRU") == 0)
        SET_INT("linear_before_reset", 1);
}

/* One layer of (time, batch, features); `outputs` are the sequence and the last states. */
static void run_layer(cfxi_export_call *c, const recurrent *r, cfxi_ev *x, cfxi_ev *const *states,
                      size_t layer, size_t directions, size_t per, cfxi_ev **outputs)
{
    const int64_t hidden = cfxi_export_known_size(c->x, c->args[r->first]->items[1], 1);
    cfxi_ev *inputs[7] = {x, parameter(c, r, layer, directions, per, 0),
                          parameter(c, r, layer, directions, per, 1),
                          biases(c, r, layer, directions, per), NULL};
    for (size_t i = 0; i < r->states; i++)
        inputs[5 + i] = state_part(c, states[i], layer, directions);
    cfxi_export_nodes(c->x, r->op, inputs, 5 + r->states, outputs, 1 + r->states);
    set_layer(c, r, directions, hidden);
    const int64_t perm[] = {0, 2, 1, 3};  /* directions side by side */
    cfxi_ev *all = cfxi_export_transpose(c, outputs[0], perm, 4);
    outputs[0] = NODE("Reshape", all, INTS(0, 0, hidden * (int64_t)directions));
}

static cfxi_ev *with_batch(cfxi_export_call *c, cfxi_ev *v, bool single)
{
    return single ? cfxi_export_unsqueeze(c, v, 1) : v;
}

static cfxi_ev *run_layers(cfxi_export_call *c, const recurrent *r)
{
    const size_t at = r->first;
    const size_t per = cfxi_export_bool(c, at + 1) ? 4 : 2;
    const size_t layers = (size_t)cfxi_export_int(c, at + 2);
    const size_t directions = cfxi_export_bool(c, at + 5) ? 2 : 1;
    const bool single = c->args[0]->rank == 2;
    const bool batch_first = cfxi_export_bool(c, at + 6) && !single;
    cfxi_ev *states[2];
    cfxi_ev *last[2][64];
    cfxi_ev *outputs[3];
    if (layers > 64 || c->args[at]->n != layers * directions * per)
        return cfxi_export_refuse(c, "recurrent layers with projections, or more than 64 of them, "
                                  "are not written");
    if (cfxi_export_float(c, at + 3) != 0 && cfxi_export_bool(c, at + 4) && layers > 1)
        return cfxi_export_refuse(c, "dropout between recurrent layers has no counterpart in "
                                  "ONNX; save the model after model.eval()");
    for (size_t i = 0; i < r->states; i++) {
        cfxi_ev *h = c->args[1]->items ? c->args[1]->items[i] : c->args[1];
        states[i] = with_batch(c, CAST(h, cfxi_export_result_dtype(c)), single);
    }
    cfxi_ev *x = with_batch(c, IN(0), single);
    x = batch_first ? cfxi_export_swap(c, x, 3, 0, 1) : x;
    for (size_t i = 0; i < layers; i++) {
        run_layer(c, r, x, states, i, directions, per, outputs);
        x = outputs[0];
        for (size_t k = 0; k < r->states; k++)
            last[k][i] = outputs[k + 1];
    }
    cfxi_ev *results[3];
    x = batch_first ? cfxi_export_swap(c, x, 3, 0, 1) : x;
    results[0] = single ? cfxi_export_squeeze(c, x, 1) : x;
    for (size_t k = 0; k < r->states; k++) {
        cfxi_ev *all = cfxi_export_concat(c, last[k], layers, 0);
        results[k + 1] = single ? cfxi_export_squeeze(c, all, 1) : all;
    }
    return cfxi_export_list(c->x, results, 1 + r->states);
}

cfxi_ev *cfxi_export_lstm(cfxi_export_call *c)
{
    static const int order[] = {0, 3, 1, 2};  /* input, output, forget, cell */
    const recurrent r = {"LSTM", 4, order, 2, 2, NULL};
    return run_layers(c, &r);
}

cfxi_ev *cfxi_export_gru(cfxi_export_call *c)
{
    static const int order[] = {1, 0, 2};  /* update, reset, new */
    const recurrent r = {"GRU", 3, order, 1, 2, NULL};
    return run_layers(c, &r);
}

static cfxi_ev *plain(cfxi_export_call *c, const char *activation)
{
    static const int order[] = {0};
    const recurrent r = {"RNN", 1, order, 1, 2, activation};
    return run_layers(c, &r);
}

cfxi_ev *cfxi_export_rnn_tanh(cfxi_export_call *c) { return plain(c, "Tanh"); }
cfxi_ev *cfxi_export_rnn_relu(cfxi_export_call *c) { return plain(c, "Relu"); }

/* ---- cells --------------------------------------------------------------------------------- */

/* x W^T + b, of the type of the result. */
static cfxi_ev *gates_of(cfxi_export_call *c, cfxi_ev *x, size_t w, size_t b)
{
    x = NODE("MatMul", x, cfxi_export_swap(c, IN(w), 2, 0, 1));
    return cfxi_export_given(c, b) ? NODE("Add", x, IN(b)) : x;
}

static void split_gates(cfxi_export_call *c, cfxi_ev *x, cfxi_ev **parts, size_t n)
{
    cfxi_export_nodes(c->x, "Split", &x, 1, parts, n);
    SET_INT("axis", -1);
    SET_INT("num_outputs", (int64_t)n);
}

cfxi_ev *cfxi_export_lstm_cell(cfxi_export_call *c)
{
    cfxi_ev *const *h = c->args[1]->items;
    cfxi_ev *g[4];
    cfxi_ev *all = NODE("Add", gates_of(c, IN(0), 2, 4), gates_of(c, h[0], 3, 5));
    split_gates(c, all, g, 4);
    cfxi_ev *kept = NODE("Mul", NODE("Sigmoid", g[1]), h[1]);
    cfxi_ev *cell = NODE("Add", kept, NODE("Mul", NODE("Sigmoid", g[0]), NODE("Tanh", g[2])));
    cfxi_ev *out = NODE("Mul", NODE("Sigmoid", g[3]), NODE("Tanh", cell));
    return cfxi_export_list(c->x, CFXI_EVS(out, cell), 2);
}

cfxi_ev *cfxi_export_gru_cell(cfxi_export_call *c)
{
    cfxi_ev *i[3];
    cfxi_ev *h[3];
    split_gates(c, gates_of(c, IN(0), 2, 4), i, 3);
    split_gates(c, gates_of(c, IN(1), 3, 5), h, 3);
    cfxi_ev *reset = NODE("Sigmoid", NODE("Add", i[0], h[0]));
    cfxi_ev *update = NODE("Sigmoid", NODE("Add", i[1], h[1]));
    cfxi_ev *fresh = NODE("Tanh", NODE("Add", i[2], NODE("Mul", reset, h[2])));
    return NODE("Add", fresh, NODE("Mul", update, NODE("Sub", IN(1), fresh)));
}

static cfxi_ev *plain_cell(cfxi_export_call *c, const char *activation)
{
    return NODE(activation, NODE("Add", gates_of(c, IN(0), 2, 4), gates_of(c, IN(1), 3, 5)));
}

cfxi_ev *cfxi_export_rnn_tanh_cell(cfxi_export_call *c) { return plain_cell(c, "Tanh"); }
cfxi_ev *cfxi_export_rnn_relu_cell(cfxi_export_call *c) { return plain_cell(c, "Relu"); }
