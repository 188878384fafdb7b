/* nn_rnn.c - recurrent modules and their cells: weights for each layer and direction. */
#include "nn_impl.h"

#include <stdio.h>

static int64_t gates_of(cfx_nn nn)
{
    return nn == CFX_NN_LSTM || nn == CFX_NN_LSTMCell ? 4
           : nn == CFX_NN_GRU || nn == CFX_NN_GRUCell ? 3
                                                      : 1;
}

static void check_nonlinearity(cfxi_making *k)
{
    static const char *const words[] = {"tanh", "relu", NULL};
    if (cfxi_nn_arg(k, "nonlinearity").kind != CFX_DATUM_INVALID)
        cfxi_nn_one_of(k, "nonlinearity", words);
}

static void check_sizes(cfxi_making *k)
{
    cfxi_nn_at_least(k, "input_size", 0);
    cfxi_nn_at_least(k, "hidden_size", 1);
    cfxi_nn_at_least(k, "num_layers", 1);
    cfxi_nn_at_least(k, "proj_size", 0);
    /* the rows of a weight are as many for each gate */
    if (cfxi_nn_int(k, "hidden_size") > INT64_MAX / 8)
        cfxi_nn_fail(k, "hidden_size is too large");
    if (cfxi_nn_int(k, "proj_size") > 0 &&
        cfxi_nn_int(k, "proj_size") >= cfxi_nn_int(k, "hidden_size"))
        cfxi_nn_fail(k, "proj_size must be less than hidden_size");
}

/* ---- layers -------------------------------------------------------------------------------- */

typedef struct rnn {
    int64_t rows;    /* of weights: gates times hidden size */
    int64_t hidden;
    int64_t proj;    /* what is given back, if the hidden state is projected; else 0 */
    cfxi_init init;
} rnn;

/* The parameters of one direction of a layer, in PyTorch's order. */
static void add_layer(cfxi_making *k, const rnn *r, int64_t layer, bool reverse, int64_t input)
{
    char name[48];
    const char *end = reverse ? "_reverse" : "";
    const int64_t ih[] = {r->rows, input};
    const int64_t hh[] = {r->rows, r->proj > 0 ? r->proj : r->hidden};
    const int64_t hr[] = {r->proj, r->hidden};
    snprintf(name, sizeof name, "weight_ih_l%lld%s", (long long)layer, end);
    cfxi_nn_parameter(k, name, ih, 2, r->init);
    snprintf(name, sizeof name, "weight_hh_l%lld%s", (long long)layer, end);
    cfxi_nn_parameter(k, name, hh, 2, r->init);
    if (cfxi_nn_flag(k, "bias")) {
        snprintf(name, sizeof name, "bias_ih_l%lld%s", (long long)layer, end);
        cfxi_nn_parameter(k, name, ih, 1, r->init);
        snprintf(name, sizeof name, "bias_hh_l%lld%s", (long long)layer, end);
        cfxi_nn_parameter(k, name, hh, 1, r->init);
    }
    if (r->proj > 0) {
        snprintf(name, sizeof name, "weight_hr_l%lld%s", (long long)layer, end);
        cfxi_nn_parameter(k, name, hr, 2, r->init);
    }
}

void cfxi_nn_make_rnn(cfxi_making *k)
{
    const int64_t layers = cfxi_nn_int(k, "num_layers");
    const int64_t directions = cfxi_nn_flag(k, "bidirectional") ? 2 : 1;
    const char *mode = k->nn == CFX_NN_LSTM ? "LSTM" : k->nn == CFX_NN_GRU ? "GRU" : "RNN_TANH";
    check_nonlinearity(k);
    check_sizes(k);
    cfxi_nn_probability(k, "dropout");
    if (!cfx_scope_ok(k->at.scope))
        return;
    rnn r = {.hidden = cfxi_nn_int(k, "hidden_size"), .proj = cfxi_nn_int(k, "proj_size")};
    r.rows = gates_of(k->nn) * r.hidden;
    r.init = cfxi_nn_uniform_of((double)r.hidden);
    if (strcmp(cfxi_nn_text(k, "nonlinearity"), "relu") == 0)
        mode = "RNN_RELU";
    cfxi_nn_set_text(k, "mode", mode);
    if (k->nn != CFX_NN_LSTM)
        cfxi_nn_set(k, "proj_size", cfx_datum_int(0));
    int64_t input = cfxi_nn_int(k, "input_size");
    for (int64_t i = 0; i < layers && cfx_scope_ok(k->at.scope); i++) {
        for (int64_t d = 0; d < directions; d++)
            add_layer(k, &r, i, d > 0, input);
        input = directions * (r.proj > 0 ? r.proj : r.hidden);
    }
}

/* ---- cells --------------------------------------------------------------------------------- */

void cfxi_nn_make_rnn_cell(cfxi_making *k)
{
    check_nonlinearity(k);
    check_sizes(k);
    if (!cfx_scope_ok(k->at.scope))
        return;
    const int64_t hidden = cfxi_nn_int(k, "hidden_size");
    const int64_t ih[] = {gates_of(k->nn) * hidden, cfxi_nn_int(k, "input_size")};
    const int64_t hh[] = {ih[0], hidden};
    const cfxi_init init = cfxi_nn_uniform_of((double)hidden);
    cfxi_nn_parameter(k, "weight_ih", ih, 2, init);
    cfxi_nn_parameter(k, "weight_hh", hh, 2, init);
    if (cfxi_nn_flag(k, "bias")) {
        cfxi_nn_parameter(k, "bias_ih", ih, 1, init);
        cfxi_nn_parameter(k, "bias_hh", hh, 1, init);
    } else {
        cfxi_nn_no_parameter(k, "bias_ih");
        cfxi_nn_no_parameter(k, "bias_hh");
    }
}
