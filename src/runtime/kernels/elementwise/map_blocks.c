/* map_blocks.c - a function of blocks applied to tensors: operands converted where they must be,
 * the result written as it lies. */
#include "elementwise_impl.h"
#include "blocks.h"

enum { BLOCK = 512, WIDEST = 16 };  /* elements of a block, bytes of an element */

/* Elements between which threads share the work. */
enum { CHEAP_GRAIN = 32768, COSTLY_GRAIN = 4096 };

typedef struct job {
    const cfxi_map *m;
    cfxi_block_fn *fn;
    cfx_isa isa;
    cfx_dtype compute;
    cfx_dtype gives;
    cfx_dtype out;
    bool converts;      /* an operand is not of the type that is computed in */
    int64_t size;       /* of an element of that type, in bytes */
    int64_t out_size;
    bool wraps[3];  /* it is brought to a narrower type first */
} job;

/* ---- loading and storing ------------------------------------------------------------------- */

static void convert(const job *j, size_t k, int64_t n, const char *from, char *to)
{
    cfx_dtype dtype = (cfx_dtype)j->m->args[k]->dtype;
    char narrow[BLOCK * sizeof(int32_t)];  /* what wraps is no int64 */
    if (!j->wraps[k]) {
        cfxi_rt_convert(j->isa, j->compute, to, dtype, from, n);
        return;
    }
    cfxi_rt_convert(j->isa, j->m->common, narrow, dtype, from, n);
    cfxi_rt_convert(j->isa, j->compute, to, j->m->common, narrow, n);
}

/* n <= BLOCK elements of argument k as the function takes them. */
static void load(const job *j, size_t k, int64_t n, const char *from, int64_t step, char *to)
{
    _Alignas(CFXI_ALIGN) char raw[BLOCK * WIDEST];
    cfx_dtype dtype = (cfx_dtype)j->m->args[k]->dtype;
    size_t size = cfx_dtype_size(dtype);
    if (step == (int64_t)size || n == 1) {
        convert(j, k, n, from, to);
    } else if (dtype == j->compute && !j->wraps[k]) {
        cfxi_rt_move(size, n, from, step, to, (int64_t)size);
    } else {
        cfxi_rt_move(size, n, from, step, raw, (int64_t)size);
        convert(j, k, n, raw, to);
    }
}

static void store(const job *j, int64_t n, const char *from, char *to, int64_t step)
{
    _Alignas(CFXI_ALIGN) char raw[BLOCK * WIDEST];
    size_t size = cfx_dtype_size(j->out);
    if (step == (int64_t)size || n == 1) {
        cfxi_rt_convert(j->isa, j->out, to, j->gives, from, n);
    } else {
        cfxi_rt_convert(j->isa, j->out, raw, j->gives, from, n);
        cfxi_rt_move(size, n, raw, (int64_t)size, to, step);
    }
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* How argument k comes to the function, in a row. */
typedef enum way { AS_IT_LIES, ONE_FOR_ALL, BY_BLOCKS } way;

static way way_of(const job *j, size_t k, int64_t n, int64_t step)
{
    cfx_dtype dtype = (cfx_dtype)j->m->args[k]->dtype;
    if (dtype == j->compute && !j->wraps[k] && (step == (int64_t)cfx_dtype_size(dtype) || n == 1))
        return AS_IT_LIES;
    return step == 0 ? ONE_FOR_ALL : BY_BLOCKS;
}

static void run_blocks(const job *j, int64_t n, char *const *at, const int64_t *step)
{
    _Alignas(CFXI_ALIGN) char in[3][BLOCK * WIDEST];
    _Alignas(CFXI_ALIGN) char out[BLOCK * WIDEST];
    size_t num = j->m->n;
    size_t width = (size_t)j->size;
    way ways[3] = {AS_IT_LIES, AS_IT_LIES, AS_IT_LIES};
    bool out_lies = j->gives == j->out && (step[0] == j->out_size || n == 1);
    for (size_t k = 0; k < num; k++) {
        ways[k] = way_of(j, k, n, step[k + 1]);
        if (ways[k] == ONE_FOR_ALL) {
            load(j, k, 1, at[k + 1], 0, in[k]);
            cfxi_rt_repeat(width, n < BLOCK ? n : BLOCK, in[k]);
        }
    }
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t some = n - i < BLOCK ? n - i : BLOCK;
        const void *x[3] = {in[0], in[1], in[2]};
        for (size_t k = 0; k < num; k++) {
            if (ways[k] == AS_IT_LIES)
                x[k] = at[k + 1] + i * step[k + 1];
            else if (ways[k] == BY_BLOCKS)
                load(j, k, some, at[k + 1] + i * step[k + 1], step[k + 1], in[k]);
        }
        char *to = at[0] + i * step[0];
        j->fn(&j->m->s, some, x, out_lies ? to : out);
        if (!out_lies)
            store(j, some, out, to, step[0]);
    }
}

/* Mostly all operands lie as the function takes them. */
static void run_row(const job *j, int64_t n, char *const *at, const int64_t *step)
{
    bool lie = !j->converts && step[0] == j->out_size;
    for (size_t k = 0; k < j->m->n; k++)
        lie = lie && step[k + 1] == j->size;
    if (!lie) {
        run_blocks(j, n, at, step);
        return;
    }
    const void *x[3] = {at[1], at[2], at[3]};
    j->fn(&j->m->s, n, x, at[0]);
}

/* ---- short rows ---------------------------------------------------------------------------- */

enum { SHORT_ROW = 128 };

/* Whether rows of n elements follow one another without a gap. */
static bool joined(int64_t size, int64_t n, int64_t step, int64_t row_step)
{
    return step == size && row_step == n * size;
}

/* `rows` rows of argument k, n * rows <= BLOCK. */
static void load_rows(const job *j, size_t k, int64_t n, int64_t rows, const char *from,
                      int64_t step, int64_t row_step, char *to)
{
    if (joined((int64_t)cfxi_tensor_itemsize(j->m->args[k]), n, step, row_step)) {
        load(j, k, n * rows, from, step, to);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        load(j, k, n, from + r * row_step, step, to + r * n * j->size);
}

/* As many rows as a block holds are computed at once: a row that all share is loaded once. */
static void run_short_rows(const job *j, int64_t n, int64_t rows, char *const *at,
                           const int64_t *step, const int64_t *row_step)
{
    _Alignas(CFXI_ALIGN) char in[3][BLOCK * WIDEST];
    _Alignas(CFXI_ALIGN) char out[BLOCK * WIDEST];
    bool out_lies = joined(j->out_size, n, step[0], row_step[0]);
    bool lies[3];
    int64_t most = BLOCK / n < rows ? BLOCK / n : rows;
    for (size_t k = 0; k < j->m->n; k++) {
        lies[k] = (cfx_dtype)j->m->args[k]->dtype == j->compute && !j->wraps[k] &&
                  joined(j->size, n, step[k + 1], row_step[k + 1]);
        if (row_step[k + 1] == 0) {
            load(j, k, n, at[k + 1], step[k + 1], in[k]);
            cfxi_rt_repeat((size_t)(n * j->size), most, in[k]);
        }
    }
    for (int64_t r = 0; r < rows; r += most) {
        int64_t some = rows - r < most ? rows - r : most;
        const void *x[3] = {in[0], in[1], in[2]};
        for (size_t k = 0; k < j->m->n; k++) {
            const char *from = at[k + 1] + r * row_step[k + 1];
            if (lies[k])
                x[k] = from;
            else if (row_step[k + 1] != 0)
                load_rows(j, k, n, some, from, step[k + 1], row_step[k + 1], in[k]);
        }
        char *to = at[0] + r * row_step[0];
        bool direct = out_lies && j->gives == j->out;
        j->fn(&j->m->s, n * some, x, direct ? to : out);
        if (out_lies && !direct)
            store(j, n * some, out, to, step[0]);
        for (int64_t i = 0; !out_lies && i < some; i++)
            store(j, n, out + i * n * (int64_t)cfx_dtype_size(j->gives), to + i * row_step[0],
                  step[0]);
    }
}

/* ---- rows of which an operand has columns --------------------------------------------------- */

enum { TURNED_ROWS = 16, LEAST_TURNED = 8 };

/* Whether argument k has its elements side by side from row to row, not along a row. */
static bool is_turned(const job *j, size_t k, const int64_t *step, const int64_t *row_step)
{
    const int64_t size = (int64_t)cfxi_tensor_itemsize(j->m->args[k]);
    return row_step[k + 1] == size && step[k + 1] != size && step[k + 1] != 0;
}

/* Elements of a row for which a block has room, by the widest of what is turned; 0: nothing is. */
static int64_t turned_width(const job *j, const int64_t *step, const int64_t *row_step)
{
    size_t widest = 0;
    for (size_t k = 0; k < j->m->n; k++) {
        const size_t size = cfxi_tensor_itemsize(j->m->args[k]);
        if (is_turned(j, k, step, row_step) && size > widest)
            widest = size;
    }
    return widest ? BLOCK * WIDEST / TURNED_ROWS / (int64_t)widest : 0;
}

/* At most TURNED_ROWS rows of n elements, for which a block has room: what is turned becomes rows.
 */
static void run_turned_block(const job *j, int64_t n, int64_t rows, char *const *at,
                             const int64_t *step, const int64_t *row_step)
{
    _Alignas(CFXI_ALIGN) char in[3][BLOCK * WIDEST];
    char *data[4];
    int64_t steps[4];
    int64_t row_steps[4];
    memcpy(data, at, (j->m->n + 1) * sizeof *data);
    memcpy(steps, step, (j->m->n + 1) * sizeof *steps);
    memcpy(row_steps, row_step, (j->m->n + 1) * sizeof *row_steps);
    for (size_t k = 0; k < j->m->n; k++) {
        if (!is_turned(j, k, step, row_step))
            continue;
        const size_t size = cfxi_tensor_itemsize(j->m->args[k]);
        steps[k + 1] = (int64_t)size;
        row_steps[k + 1] = n * (int64_t)size;
        data[k + 1] = in[k];
        cfxi_rt_transpose(j->isa, size, rows, n, in[k], row_steps[k + 1], at[k + 1], step[k + 1]);
    }
    for (int64_t r = 0; r < rows; r++) {
        run_row(j, n, data, steps);
        for (size_t k = 0; k < j->m->n + 1; k++)
            data[k] += row_steps[k];
    }
}

static void run_turned(const job *j, int64_t width, int64_t n, int64_t rows, char *const *at,
                       const int64_t *step, const int64_t *row_step)
{
    for (int64_t r = 0; r < rows; r += TURNED_ROWS) {
        for (int64_t i = 0; i < n; i += width) {
            char *data[4] = {NULL};
            for (size_t k = 0; k < j->m->n + 1; k++)
                data[k] = at[k] + r * row_step[k] + i * step[k];
            run_turned_block(j, n - i < width ? n - i : width,
                             rows - r < TURNED_ROWS ? rows - r : TURNED_ROWS, data, step, row_step);
        }
    }
}

static void run_plane(void *ctx, int64_t n, int64_t rows, char *const *at, const int64_t *step,
                      const int64_t *row_step)
{
    const job *j = ctx;
    const int64_t width =
        rows < LEAST_TURNED || n < LEAST_TURNED ? 0 : turned_width(j, step, row_step);
    if (width > 0) {
        run_turned(j, width, n, rows, at, step, row_step);
        return;
    }
    if (rows > 1 && n < SHORT_ROW) {
        run_short_rows(j, n, rows, at, step, row_step);
        return;
    }
    char *data[4];
    memcpy(data, at, (j->m->n + 1) * sizeof *data);
    for (int64_t r = 0; r < rows; r++) {
        run_row(j, n, data, step);
        for (size_t k = 0; k < j->m->n + 1; k++)
            data[k] += row_step[k];
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

static cfxi_compute compute_of(cfx_dtype d)
{
    return cfx_dtype_is_complex(d)    ? CFXI_IN_C128
           : d == CFX_DTYPE_FLOAT64   ? CFXI_IN_F64
           : cfx_dtype_is_float(d)    ? CFXI_IN_F32
                                      : CFXI_IN_I64;
}

static CFXI_ISA_CHOICE(cfxi_blocks, blocks_of_floats, cfxi_elementwise_blocks)

cfxi_block_fn *cfxi_elementwise_block_of(const cfx_runtime *rt, cfxi_fn fn, cfxi_compute in)
{
    if (in != CFXI_IN_F32)
        return cfxi_elementwise_blocks_of_type[in].fn[fn];
    cfxi_block_fn *found = blocks_of_floats(rt->isa)->fn[fn];
    return found ? found : cfxi_elementwise_blocks_plain.fn[fn];
}

static bool is_cheap(cfxi_fn fn)
{
    switch ((int)fn) {
#define X(name, expr) case CFXI_FN_##name:
    CFXI_CHEAP_UNARY(X) CFXI_PREDICATES(X) CFXI_CHEAP_BINARY(X) CFXI_EQUALITIES(X) CFXI_ORDERS(X)
    CFXI_CHEAP_TERNARY(X)
#undef X
        return true;
    }
    return false;
}

/* Whether a number is rounded to the type that the arguments have together before it is computed
 * with: integers wrap; 16-bit floats are rounded but in products and quotients, as in PyTorch. */
static bool narrows(const cfxi_map *m, cfxi_compute in)
{
    bool half = m->common == CFX_DTYPE_FLOAT16 || m->common == CFX_DTYPE_BFLOAT16;
    if (half)
        return m->fn != CFXI_FN_mul && m->fn != CFXI_FN_div && m->n == 2;
    return in == CFXI_IN_I64 && m->common != CFX_DTYPE_INT64;
}

cfx_status cfxi_elementwise_map_run(cfxi_call *c, const cfxi_map *m, cfx_tensor *out)
{
    static const cfx_dtype types[] = {CFX_DTYPE_FLOAT32, CFX_DTYPE_FLOAT64, CFX_DTYPE_INT64,
                                      CFX_DTYPE_COMPLEX128};
    cfxi_compute in = compute_of(m->common);
    atomic_int bad = 0;
    if (c->described) {
        *c->described = *m;
        return CFX_OK;
    }
    cfxi_map own = *m;
    own.s.bad = &bad;
    job j = {.m = &own, .isa = c->rt->isa, .compute = types[in], .out = (cfx_dtype)out->dtype};
    j.fn = cfxi_elementwise_block_of(c->rt, m->fn, in);
    j.gives = m->gives == CFXI_GIVES_BOOL   ? CFX_DTYPE_BOOL
              : m->gives == CFXI_GIVES_REAL ? CFX_DTYPE_FLOAT64
                                            : j.compute;
    if (!j.fn)
        return cfxi_fail(c, CFX_E_UNSUPPORTED, "\"%s\" not implemented for '%s'",
                         cfx_operator_name(c->op), cfx_dtype_name(m->common));
    const cfx_tensor *operands[4] = {out};
    j.size = (int64_t)cfx_dtype_size(j.compute);
    j.out_size = (int64_t)cfx_dtype_size(j.out);
    j.converts = j.gives != j.out;
    for (size_t k = 0; k < m->n; k++) {
        operands[k + 1] = m->args[k];
        j.wraps[k] = m->args[k]->dtype != m->common && narrows(m, in);
        j.converts = j.converts || j.wraps[k] || m->args[k]->dtype != j.compute;
    }
    cfxi_rt_loop_planes(c->rt, operands, m->n + 1, is_cheap(m->fn) ? CHEAP_GRAIN : COSTLY_GRAIN,
                        run_plane, &j);
    if (atomic_load(&bad))
        return cfxi_fail(c, CFX_E_SHAPE, "ZeroDivisionError");
    return CFX_OK;
}

void cfxi_elementwise_set_scalar(cfxi_scalars *s, size_t k, const cfxi_call *c, size_t arg)
{
    cfx_datum d = c->args[arg];
    double both[2] = {0, 0};
    int64_t i = 0;
    if (d.kind == CFX_DATUM_TENSOR) {
        const cfx_tensor *t = d.as.tensor;
        if (t->data && cfxi_tensor_numel(t) == 1) {
            cfxi_tensor_load_complex((cfx_dtype)t->dtype, t->data, both);
            i = cfxi_tensor_load_int((cfx_dtype)t->dtype, t->data);
        }
    } else if (d.kind == CFX_DATUM_COMPLEX) {
        both[0] = d.as.c[0];
        both[1] = d.as.c[1];
    } else {
        both[0] = cfxi_rt_scalar(c, arg);
        i = d.kind == CFX_DATUM_INT ? d.as.i : d.kind == CFX_DATUM_BOOL ? d.as.b : 0;
        if (d.kind == CFX_DATUM_FLOAT)
            i = cfxi_tensor_load_int(CFX_DTYPE_FLOAT64, &d.as.f);
    }
    s->f[k] = both[0];
    s->im[k] = both[1];
    s->i[k] = i;
}

/* ---- for others ---------------------------------------------------------------------------- */

void cfxi_elementwise_exp_f32(const cfx_runtime *rt, int64_t n, const float *x, float *y)
{
    const void *from = x;
    const cfxi_scalars none = {.bad = NULL};
    cfxi_elementwise_block_of(rt, CFXI_FN_exp, CFXI_IN_F32)(&none, n, &from, y);
}
