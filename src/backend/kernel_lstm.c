/* kernel_lstm.c - layers of an LSTM whose weights are constant.
 *
 * What the input of a layer adds to the gates is one product for all steps. The weights of the
 * state are packed so that the four gates of 16 units lie side by side: a piece of a step
 * multiplies the state by them, and computes new states while the gates are in the cache.
 */
#include "backend_impl.h"

#include <math.h>

enum {
    UNITS = CFXI_PANEL,
    GATES = 4,
    WIDTH = GATES * UNITS,  /* floats of a block: the gates of some units */
    LEAST_WORK = 1 << 16    /* multiplications for which another thread is worth waking */
};

/* Which of input, forget, cell and output gate come first: those of a sigmoid, then the cell's. */
static const int64_t order[GATES] = {0, 1, 3, 2};

/* The constants of a layer, in cfxi_constants.tensors after the states. */
enum { W_INPUT = 2, W_STATE, B_INPUT, B_STATE, EACH = 4 };

typedef struct lstm_layer {
    cfxi_kernel *of_input;  /* a product, whose columns are blocks, with both biases */
    float *of_state;        /* panels, likewise */
} lstm_layer;

typedef struct lstm_kernel {
    cfxi_kernel head;
    const cfxi_tiles *tiles;
    int panels, rows;    /* of a tile */
    int64_t blocks;
    float *first[2];     /* h and c of all layers, where they are constant; or NULL */
    lstm_layer layers[];
} lstm_kernel;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static const float *floats(const cfx_tensor *t) { return (const float *)(const void *)t->data; }

static bool query(const cfxi_problem *p, double *cost)
{
    if (p->kind != CFXI_LSTM)
        return false;
    *cost = (double)p->lstm.steps * (double)p->lstm.batch * (double)p->lstm.hidden;
    return true;
}

/* ---- preparing ----------------------------------------------------------------------------- */

/* The line of the weights that is column `at` of the blocks; -1 if none is. */
static int64_t line_of(int64_t at, int64_t hidden)
{
    const int64_t unit = at / WIDTH * UNITS + at % UNITS;
    return unit < hidden ? order[at % WIDTH / UNITS] * hidden + unit : -1;
}

static cfxi_kernel *product_of_input(const cfxi_problem *p, int64_t input, int64_t columns,
                                     cfx_tensor *const *c, const cfx_allocator *allocator,
                                     cfx_error *err)
{
    size_t bytes;
    if (!cfxi_base_mul_size((size_t)columns * sizeof(float), (size_t)input + 1, 0, &bytes))
        return cfxi_base_nomem(err), NULL;
    float *w = cfxi_base_alloc(allocator, bytes);
    if (!w)
        return cfxi_base_nomem(err), NULL;
    float *bias = w + columns * input;
    for (int64_t i = 0; i < columns; i++) {
        const int64_t line = line_of(i, p->lstm.hidden);
        if (line >= 0)
            memcpy(w + i * input, floats(c[W_INPUT]) + line * input, (size_t)input * sizeof *w);
        else
            memset(w + i * input, 0, (size_t)input * sizeof *w);
        bias[i] = line >= 0 && c[B_INPUT] ? floats(c[B_INPUT])[line] + floats(c[B_STATE])[line] : 0;
    }
    const cfxi_problem product = {
        .kind = CFXI_PRODUCT, .isa = p->isa, .threads = p->threads, .has_bias = true,
        .m = p->lstm.steps * p->lstm.batch, .n = columns, .k = input, .x_row = input,
        .out_row = columns, .w_k = 1, .w_n = input};
    const cfxi_constants constants = {.w = w, .bias = bias};
    cfxi_kernel *made = cfxi_backend_product.prepare(&product, &constants, allocator, err);
    cfxi_base_free(allocator, w, bytes);
    return made;
}

static void pack_state(float *to, const float *w, int64_t hidden, int64_t columns)
{
    for (int64_t j = 0; j < columns; j += CFXI_PANEL)
        for (int64_t k = 0; k < hidden; k++, to += CFXI_PANEL)
            for (int64_t i = 0; i < CFXI_PANEL; i++) {
                const int64_t line = line_of(j + i, hidden);
                to[i] = line >= 0 ? w[line * hidden + k] : 0;
            }
}

static float *copy_state(float *to, const cfx_tensor *t)
{
    return t ? memcpy(to, t->data, (size_t)cfxi_tensor_numel(t) * sizeof *to) : NULL;
}

static void release(cfxi_kernel *kernel)
{
    lstm_kernel *k = (lstm_kernel *)kernel;
    for (int64_t i = 0; i < kernel->problem.lstm.layers; i++)
        if (k->layers[i].of_input)
            k->layers[i].of_input->backend->release(k->layers[i].of_input);
    cfxi_base_free(kernel->allocator, k, kernel->bytes);
}

/* Tiles of as many panels as a block has, or what there are tiles of. */
static void choose_tiles(lstm_kernel *k)
{
    k->tiles = cfxi_tiles_of(k->head.problem.isa);
    k->panels = GATES;
    while (k->tiles->most_rows[k->panels - 1] == 0)
        k->panels /= 2;
    k->rows = k->tiles->most_rows[k->panels - 1];
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *c,
                            const cfx_allocator *allocator, cfx_error *err)
{
    const cfxi_lstm *l = &p->lstm;
    const int64_t blocks = cfxi_tiles_panels(l->hidden);
    const size_t each = (size_t)(blocks * WIDTH) * (size_t)l->hidden;
    const size_t states = (size_t)(l->layers * l->batch * l->hidden);
    const size_t head = sizeof(lstm_kernel) + (size_t)l->layers * sizeof(lstm_layer) + CFXI_ALIGN;
    size_t bytes;
    if (!cfxi_base_mul_size((size_t)l->layers, each * sizeof(float),
                            head + 2 * states * sizeof(float), &bytes))
        return cfxi_base_nomem(err), NULL;
    lstm_kernel *k = cfxi_base_alloc(allocator, bytes);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    memset(k, 0, head);
    k->head = (cfxi_kernel){&cfxi_backend_lstm, allocator, *p, bytes, NULL};
    k->blocks = blocks;
    choose_tiles(k);
    float *at = (float *)(void *)(((uintptr_t)&k->layers[l->layers] + CFXI_ALIGN - 1) /
                                  CFXI_ALIGN * CFXI_ALIGN);
    for (int64_t i = 0; i < l->layers; i++, at += each) {
        cfx_tensor *const *own = c->tensors + i * EACH;
        k->layers[i].of_state = at;
        pack_state(at, floats(own[W_STATE]), l->hidden, blocks * WIDTH);
        k->layers[i].of_input = product_of_input(p, i == 0 ? l->input : l->hidden, blocks * WIDTH,
                                                 own, allocator, err);
        if (!k->layers[i].of_input)
            return release(&k->head), NULL;
    }
    k->first[0] = copy_state(at, c->tensors[0]);
    k->first[1] = copy_state(at + states, c->tensors[1]);
    return &k->head;
}

/* ---- running ------------------------------------------------------------------------------- */

/* One step of a layer: batch x hidden each. */
typedef struct stepping {
    const lstm_kernel *k;
    const float *of_state;
    const float *gates;   /* what the input adds: batch x blocks x WIDTH */
    const float *before;  /* h */
    float *h, *c;
    cfxi_block_fn *sigmoid, *tanh;
} stepping;

/* The gates of some rows of a block. */
static void multiply(const stepping *s, int64_t block, int64_t row, int64_t rows, float *gates)
{
    static const int64_t at = 0;
    const int64_t hidden = s->k->head.problem.lstm.hidden;
    const int64_t line = s->k->blocks * WIDTH;
    for (int panel = 0; panel < GATES; panel += s->k->panels) {
        const int64_t column = block * WIDTH + panel * CFXI_PANEL;
        const cfxi_sum_tile t = {
            .a = s->before + row * hidden, .a_row = hidden, .a_at = &at,
            .b = s->of_state + column * hidden, .b_panel = CFXI_PANEL * hidden, .b_at = &at,
            .count = 1, .k = hidden, .c = gates + panel * CFXI_PANEL, .c_row = WIDTH,
            .columns = s->k->panels * CFXI_PANEL, .add = s->gates + row * line + column,
            .add_row = line, .low = -INFINITY, .high = INFINITY};
        s->k->tiles->fn[s->k->panels - 1][rows - 1](&t);
    }
}

/* New states of some units, of which the gates are there. */
static void apply(const stepping *s, float *gates, int64_t n, float *h, float *c)
{
    static const cfxi_scalars none = {{0}, {0}, {0}, NULL};
    const void *x = gates;
    float squashed[UNITS];
    s->sigmoid(&none, WIDTH - UNITS, &x, gates);
    x = gates + WIDTH - UNITS;
    s->tanh(&none, UNITS, &x, gates + WIDTH - UNITS);
    for (int64_t i = 0; i < n; i++)
        c[i] = gates[UNITS + i] * c[i] + gates[i] * gates[3 * UNITS + i];
    x = c;
    s->tanh(&none, n, &x, squashed);
    for (int64_t i = 0; i < n; i++)
        h[i] = gates[2 * UNITS + i] * squashed[i];
}

static void step_range(void *ctx, int64_t begin, int64_t end)
{
    const stepping *s = ctx;
    const cfxi_lstm *l = &s->k->head.problem.lstm;
    float gates[CFXI_TILE_MOST_ROWS * WIDTH];
    for (int64_t block = begin; block < end; block++) {
        const int64_t unit = block * UNITS;
        for (int64_t row = 0; row < l->batch; row += s->k->rows) {
            const int64_t rows = smaller(s->k->rows, l->batch - row);
            multiply(s, block, row, rows, gates);
            for (int64_t i = 0; i < rows; i++) {
                const int64_t at = (row + i) * l->hidden + unit;
                apply(s, gates + i * WIDTH, smaller(UNITS, l->hidden - unit), s->h + at, s->c + at);
            }
        }
    }
}

/* One layer: x and out have a row for each step and sequence; h and c become the last states. */
static cfx_status run_layer(const lstm_kernel *k, const cfxi_run *r, const lstm_layer *layer,
                            const float *x, float *out, float *gates, const float *h, float *c,
                            cfx_error *err)
{
    const cfxi_lstm *l = &k->head.problem.lstm;
    const int64_t state = l->batch * l->hidden;
    const cfxi_run product = {.rt = r->rt, .x = x, .out = gates};
    CFX_TRY(layer->of_input->backend->run(layer->of_input, &product, err));
    stepping s = {.k = k, .of_state = layer->of_state, .before = h, .c = c,
                  .sigmoid = cfxi_elementwise_block_of(r->rt, CFXI_FN_sigmoid, CFXI_IN_F32),
                  .tanh = cfxi_elementwise_block_of(r->rt, CFXI_FN_tanh, CFXI_IN_F32)};
    for (int64_t i = 0; i < l->steps; i++, s.before = s.h) {
        s.gates = gates + i * l->batch * k->blocks * WIDTH;
        s.h = out + i * state;
        cfxi_rt_parallel(r->rt, k->blocks, 1 + LEAST_WORK / (state * WIDTH), step_range, &s);
    }
    return CFX_OK;
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    const lstm_kernel *k = (const lstm_kernel *)kernel;
    const cfxi_lstm *l = &kernel->problem.lstm;
    const int64_t state = l->batch * l->hidden;
    const size_t all = (size_t)(l->steps * state);
    const size_t gates = (size_t)(l->steps * l->batch * k->blocks * WIDTH);
    cfx_tensor *const *given = r->tensors + 2;
    const float *h = k->first[0] ? k->first[0] : floats(*given++);
    const float *c = k->first[1] ? k->first[1] : floats(*given);
    float *last_h = (float *)(void *)r->tensors[0]->data;
    float *last_c = (float *)(void *)r->tensors[1]->data;
    float *room = cfxi_rt_scratch(r->rt, (gates + 2 * all) * sizeof *room);
    cfx_status status = room ? CFX_OK : cfxi_base_nomem(err);
    memmove(last_c, c, (size_t)(l->layers * state) * sizeof *c);
    const float *x = r->x;
    for (int64_t i = 0; status == CFX_OK && i < l->layers; i++) {
        float *out = i + 1 == l->layers ? r->out : room + gates + (i % 2 ? all : 0);
        status = run_layer(k, r, &k->layers[i], x, out, room, h + i * state, last_c + i * state,
                           err);
        if (status == CFX_OK)
            memcpy(last_h + i * state, out + (l->steps - 1) * state, (size_t)state * sizeof *out);
        x = out;
    }
    cfxi_rt_scratch_free(r->rt, room);
    return status;
}

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    const lstm_kernel *k = (const lstm_kernel *)kernel;
    cfxi_base_out_printf(out, "lstm, %lld layers, blocks of %d units",
                         (long long)kernel->problem.lstm.layers, k->panels * CFXI_PANEL / GATES);
}

const cfxi_backend cfxi_backend_lstm = {"built-in", query, prepare, run, release, print};
