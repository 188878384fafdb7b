/* import_recurrent.c - RNN, GRU and LSTM: one row has all that the standard says of them. */
#include "rules_impl.h"

/* The names of the activations with commas between; EMPTY if the node gives none. */
static cfx_var activations(cfxi_import_call *c, char *text, size_t size)
{
    const cfxi_onnx_attribute *a = cfxi_import_attribute(c, "activations");
    size_t at = 0;
    for (size_t i = 0; a && i < a->strings.n; i++) {
        const cfxi_text name = a->strings.items[i];
        if (name.size + 2 > size - at)
            return cfxi_import_fail(c, CFX_E_VALUE, "the names of the activations are too long");
        if (i > 0)
            text[at++] = ',';
        memcpy(text + at, name.data, name.size);
        at += name.size;
    }
    text[at] = '\0';
    return at > 0 ? cfx_var_str(text) : cfx_var_empty();
}

/* A list of floats; EMPTY if the node gives none. */
static cfx_var floats(cfxi_import_call *c, const char *name)
{
    const cfxi_onnx_attribute *a = cfxi_import_attribute(c, name);
    cfx_var items[6];
    const size_t n = a && a->floats.n < 6 ? a->floats.n : a ? 6 : 0;
    for (size_t i = 0; i < n; i++)
        items[i] = cfx_v(a->floats.items[i]);
    return n ? cfxi_import_tuple(c->scope, items, n) : cfx_var_empty();
}

/* With layout 1 the batch is the first dimension. */
static cfx_var steps_first(cfxi_import_call *c, size_t i, bool batch_first)
{
    const cfx_var x = cfxi_import_optional(c, i);
    return batch_first && x.kind != CFX_VAR_EMPTY ? cfx_transpose(c->scope, x, 0, 1) : x;
}

static cfx_var recurrent(cfxi_import_call *c, const char *cell)
{
    enum { X, W, R, B, LENGTHS, FIRST_H, FIRST_C, P };
    cfx_scope *s = c->scope;
    char text[200];
    const bool batch_first = cfxi_import_int(c, "layout", 0) != 0;
    const bool is_lstm = strcmp(cell, "LSTM") == 0;
    const cfx_var result = cfx_recurrent_sequence(
        s, cell, steps_first(c, X, batch_first), cfxi_import_in(c, W), cfxi_import_in(c, R),
        .bias = cfxi_import_optional(c, B), .lengths = cfxi_import_optional(c, LENGTHS),
        .h = steps_first(c, FIRST_H, batch_first),
        .c = is_lstm ? steps_first(c, FIRST_C, batch_first) : cfx_var_empty(),
        .peepholes = is_lstm ? cfxi_import_optional(c, P) : cfx_var_empty(),
        .direction = cfxi_import_str(c, "direction", "forward"),
        .activations = activations(c, text, sizeof text),
        .alpha = floats(c, "activation_alpha"), .beta = floats(c, "activation_beta"),
        .clip = cfx_v(cfxi_import_float(c, "clip", 0)),
        .linear_before_reset = cfx_v(cfxi_import_int(c, "linear_before_reset", 0) != 0),
        .input_forget = cfx_v(cfxi_import_int(c, "input_forget", 0) != 0));
    for (int i = 1; i < (is_lstm ? 3 : 2); i++) {
        if (!cfxi_import_wants(c, (size_t)i))
            continue;
        const cfx_var last = cfx_getitem(s, result, i);
        cfxi_import_set(c, (size_t)i, batch_first ? cfx_transpose(s, last, 0, 1) : last);
    }
    if (!cfxi_import_wants(c, 0))
        return cfx_var_empty();
    const cfx_var y = cfx_getitem(s, result, 0);
    return batch_first ? cfx_permute(s, y, cfx_ints(s, 2, 0, 1, 3)) : y;
}

cfx_var cfxi_import_rnn(cfxi_import_call *c) { return recurrent(c, "RNN"); }
cfx_var cfxi_import_gru(cfxi_import_call *c) { return recurrent(c, "GRU"); }
cfx_var cfxi_import_lstm(cfxi_import_call *c) { return recurrent(c, "LSTM"); }
