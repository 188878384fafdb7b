/* kernel_matmul_bytes.c - products of two matrices of 8-bit integers that both come in each run, in
 * any number of batches, which are broadcast.
 *
 * A piece of work is some rows of one matrix of the result. The right operand is packed in panels
 * first; rows of the left one are read in place, unless they have a sign, are not in fours, or
 * their numbers lie apart. As in kernel_bytes.c, numbers of the wrong kind are moved by 128, and
 * zero points become sums of columns and of rows.
 */
#include "pieces.h"

#include "runtime/kernels/linalg/product_impl.h"

#pragma GCC optimize("O3")  /* loops over bytes become vectors */

enum {
    PIECES = 2,            /* of work, for each thread, */
    LEAST_ROWS = 32,       /* with so many rows, unless there is one for each matrix */
    MIDDLE = 128,
    LEAST_WORK = 1 << 18   /* multiplications for which another thread is worth waking */
};

/* An operand: strides are in bytes. */
typedef struct matrix {
    const uint8_t *data;
    int64_t row, column;
    bool is_signed;
    int32_t zero;      /* as it is multiplied: unsigned on the left, signed on the right */
} matrix;

typedef struct matmul_kernel {
    cfxi_kernel head;
    const cfxi_bytes *bytes;
    cfxi_tiling tiling;
    int64_t panels;
    int64_t steps;         /* bytes of a column: k in whole steps */
    int64_t batches;
    int64_t block, blocks; /* rows of a piece, and pieces of a matrix */
    size_t packed;         /* bytes of the right operand, */
    size_t firsts;         /* of what sums begin with, */
    size_t rows;           /* of copied rows, */
    size_t scratch;        /* and of all of it, with sums of rows */
    int32_t right_zero;    /* the same for all columns, as they are multiplied: repeated */
    int32_t *zeros;
    float *factor, *bias;  /* likewise */
} matmul_kernel;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

static size_t whole_lines(int64_t bytes)
{
    return (size_t)divide_up(bytes, CFXI_ALIGN) * CFXI_ALIGN;
}

static bool query(const cfxi_problem *p, double *cost)
{
    if (p->kind != CFXI_MATMUL || !p->integers.used || p->m <= 0 || p->n <= 0 || p->k <= 0 ||
        p->k > INT32_MAX / (255 * 255))
        return false;
    *cost = (double)p->m * (double)p->n * (double)p->k / 128.0 / 3.0;
    return true;
}

/* ---- preparing ----------------------------------------------------------------------------- */

static void shape(matmul_kernel *k)
{
    const cfxi_problem *p = &k->head.problem;
    const cfxi_integers *q = &p->integers;
    const int64_t threads = larger(1, p->threads);
    k->bytes = cfxi_tiles_bytes_of(p->isa, p->int8, p->m, p->k);
    k->panels = cfxi_tiles_panels(p->n);
    k->steps = divide_up(p->k, CFXI_STEP) * CFXI_STEP;
    k->batches = q->batches;
    k->blocks = k->batches >= PIECES * threads ? 1 : divide_up(PIECES * threads, k->batches);
    k->blocks = threads == 1 ? 1 : larger(1, smaller(k->blocks, p->m / LEAST_ROWS));
    k->block = divide_up(p->m, k->blocks);
    k->blocks = divide_up(p->m, k->block);
    k->tiling = cfxi_tiles_bytes_tiling(k->bytes, k->block, k->panels, p->k);
    k->packed = whole_lines(k->panels * CFXI_PANEL * k->steps);
    k->firsts = whole_lines(k->panels * CFXI_PANEL * (int64_t)sizeof(int32_t));
    k->rows = whole_lines(k->block * k->steps);
    k->scratch = k->packed + k->firsts + k->rows + (size_t)k->block * sizeof(int32_t);
    k->right_zero = q->w_zero - (q->w_signed ? 0 : MIDDLE);
}

static cfxi_kernel *prepare(const cfxi_problem *p, const cfxi_constants *from,
                            const cfx_allocator *allocator, cfx_error *err)
{
    matmul_kernel made = {.head = {&cfxi_backend_matmul_bytes, allocator, *p, 0, NULL}};
    size_t room;
    shape(&made);
    const size_t columns = (size_t)made.panels * CFXI_PANEL;
    if (!cfxi_base_mul_size(columns, 3 * sizeof(float), sizeof made, &room))
        return cfxi_base_nomem(err), NULL;
    matmul_kernel *k = cfxi_base_alloc(allocator, room);
    if (!k)
        return cfxi_base_nomem(err), NULL;
    *k = made;
    k->head.bytes = room;
    k->zeros = (int32_t *)(k + 1);
    k->factor = (float *)(k->zeros + columns);
    k->bias = k->factor + columns;
    for (size_t i = 0; i < columns; i++) {
        k->zeros[i] = k->right_zero;
        k->factor[i] = *from->scale;
        k->bias[i] = 0;
    }
    return &k->head;
}

/* ---- packing ------------------------------------------------------------------------------- */

/* Four bytes of a column, the first in the lowest part, and zeros after the last row. */
static uint32_t four_of(const uint8_t *column, int64_t row, int64_t rows, uint32_t flip)
{
    uint32_t four = 0;
    for (int64_t u = 0; u < rows; u++)
        four |= ((uint32_t)column[u * row] ^ flip) << (8 * u);
    return four;
}

/* A step of a panel whose columns, or whose rows, lie side by side. */
static void pack_step(const matrix *b, const uint8_t *at, int64_t columns, uint32_t flip,
                      uint32_t *to)
{
    const uint32_t flips = flip * 0x01010101u;
    if (b->row == 1) {
        for (int64_t j = 0; j < columns; j++) {
            uint32_t four;
            memcpy(&four, at + j * b->column, sizeof four);
            to[j] = four ^ flips;
        }
    } else if (b->column == 1 && columns == CFXI_PANEL) {
        const uint8_t *second = at + b->row;
        const uint8_t *third = second + b->row;
        const uint8_t *fourth = third + b->row;
        for (int j = 0; j < CFXI_PANEL; j++)
            to[j] = (at[j] | (uint32_t)second[j] << 8 | (uint32_t)third[j] << 16 |
                     (uint32_t)fourth[j] << 24) ^ flips;
    } else {
        for (int64_t j = 0; j < columns; j++)
            to[j] = four_of(at + j * b->column, b->row, CFXI_STEP, flip);
    }
}

/* The four signed bytes of a number, added up. */
static int32_t sum_of(uint32_t four)
{
    return (int32_t)(int8_t)four + (int8_t)(four >> 8) + (int8_t)(four >> 16) +
           (int8_t)(four >> 24);
}

/* Columns of the right operand, in panels; first[j] is what the sums of a column begin with. */
static void pack(const matmul_kernel *k, const matrix *a, const matrix *b, uint32_t *to,
                 int32_t *first)
{
    const cfxi_problem *p = &k->head.problem;
    const uint32_t flip = b->is_signed ? 0 : MIDDLE;
    const int64_t whole = p->k / CFXI_STEP;
    for (int64_t column = 0; column < p->n; column += CFXI_PANEL, first += CFXI_PANEL) {
        const int64_t columns = smaller(CFXI_PANEL, p->n - column);
        const uint8_t *at = b->data + column * b->column;
        int32_t sums[CFXI_PANEL] = {0};
        memset(to, 0, (size_t)(k->steps * CFXI_PANEL));
        for (int64_t s = 0; s * CFXI_STEP < p->k; s++, to += CFXI_PANEL) {
            if (s < whole)
                pack_step(b, at + s * CFXI_STEP * b->row, columns, flip, to);
            for (int64_t j = 0; s == whole && j < columns; j++)
                to[j] = four_of(at + whole * CFXI_STEP * b->row + j * b->column, b->row,
                                p->k % CFXI_STEP, flip);
            for (int j = 0; j < CFXI_PANEL; j++)
                sums[j] += sum_of(to[j]);
        }
        for (int j = 0; j < CFXI_PANEL; j++)
            first[j] = (int32_t)((uint32_t)a->zero *
                                 ((uint32_t)p->k * (uint32_t)k->right_zero - (uint32_t)sums[j]));
    }
}

/* Rows as they are multiplied. */
static void copy_rows(const matmul_kernel *k, const matrix *a, const uint8_t *from, int64_t rows,
                      uint8_t *to)
{
    const int64_t n = k->head.problem.k;
    const uint8_t flip = a->is_signed ? MIDDLE : 0;
    for (int64_t i = 0; i < rows; i++, from += a->row, to += k->steps) {
        if (a->column == 1)
            for (int64_t p = 0; p < n; p++)
                to[p] = from[p] ^ flip;
        else
            for (int64_t p = 0; p < n; p++)
                to[p] = from[p * a->column] ^ flip;
        for (int64_t p = n; p < k->steps; p++)
            to[p] = 0;
    }
}

static int32_t sum_row(const uint8_t *row, int64_t n)
{
    uint32_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += row[i];
    return (int32_t)sum;
}

/* ---- running ------------------------------------------------------------------------------- */

typedef struct running {
    const matmul_kernel *k;
    const cfxi_run *r;
    atomic_bool no_memory;
} running;

static matrix matrix_of(const cfx_tensor *t, const cfx_tensor *out, int64_t i, bool is_signed,
                        int32_t zero)
{
    return (matrix){(const uint8_t *)cfxi_linalg_matrix_at(t, out, i), t->stride[t->ndim - 2],
                    t->stride[t->ndim - 1], is_signed, zero};
}

/* `a` are rows of the left operand as they are multiplied, `row` bytes apart; c is the first row of
 * the result. */
static void multiply(const matmul_kernel *k, const uint8_t *a, int64_t row, int64_t rows,
                     const int8_t *b, const int32_t *first, const int32_t *sums, char *c,
                     int64_t c_row)
{
    static const int64_t at = 0;
    const cfxi_problem *p = &k->head.problem;
    const size_t item = p->integers.end.to_float ? sizeof(float) : 1;
    for (int64_t panel = 0, n; panel < k->panels; panel += n) {
        n = cfxi_tiles_across(k->bytes->most_rows, k->tiling, k->panels - panel);
        const int64_t column = panel * CFXI_PANEL;
        int64_t step;
        for (int64_t i = 0; i < rows; i += step) {
            const int64_t down = larger(1, (rows - i) / k->tiling.rows);
            const int64_t each = smaller(k->tiling.rows, rows - i);
            step = down * each;
            const cfxi_byte_tile t = {
                .down = down,
                .a = a + i * row,
                .a_row = row,
                .a_at = &at,
                .b = b + column * k->steps,
                .b_panel = CFXI_PANEL * k->steps,
                .b_at = &at,
                .count = 1,
                .k = p->k,
                .columns = smaller(n * CFXI_PANEL, p->n - column),
                .first = first + column,
                .factor = k->factor + column,
                .bias = k->bias + column,
                .b_zero = sums ? k->zeros + column : NULL,
                .a_sums = sums ? sums + i : NULL,
                .end = &p->integers.end,
                .c = c + (size_t)(i * c_row + column) * item,
                .c_row = c_row,
                .next = b,
            };
            k->bytes->tile(&t, (int)each, (int)n);
        }
    }
}

static void run_piece(const running *w, int64_t piece, uint8_t *scratch)
{
    const matmul_kernel *k = w->k;
    const cfxi_problem *p = &k->head.problem;
    const cfxi_integers *q = &p->integers;
    const cfx_tensor *out = w->r->out_tensor;
    const int64_t batch = piece / k->blocks;
    const int64_t from = piece % k->blocks * k->block;
    const int64_t rows = smaller(k->block, p->m - from);
    const int64_t item = (int64_t)cfxi_tensor_itemsize(out);
    const matrix a = matrix_of(w->r->tensors[0], out, batch, q->x_signed,
                               q->x_zero + (q->x_signed ? MIDDLE : 0));
    const matrix b = matrix_of(w->r->tensors[1], out, batch, q->w_signed, k->right_zero);
    uint32_t *packed = (uint32_t *)(void *)scratch;
    int32_t *first = (int32_t *)(void *)(scratch + k->packed);
    uint8_t *copied = scratch + k->packed + k->firsts;
    int32_t *sums = (int32_t *)(void *)(copied + k->rows);
    const uint8_t *left = a.data + from * a.row;
    const bool in_place = a.column == 1 && !a.is_signed && p->k % CFXI_STEP == 0;
    pack(k, &a, &b, packed, first);
    if (!in_place)
        copy_rows(k, &a, left, rows, copied);
    left = in_place ? left : copied;
    const int64_t row = in_place ? a.row : k->steps;
    for (int64_t i = 0; k->right_zero != 0 && i < rows; i++)
        sums[i] = sum_row(left + i * row, p->k);
    multiply(k, left, row, rows, (const int8_t *)packed, first, k->right_zero ? sums : NULL,
             cfxi_linalg_matrix_at(out, out, batch) + from * out->stride[out->ndim - 2],
             out->stride[out->ndim - 2] / item);
}

static void run_pieces(void *ctx, int64_t begin, int64_t end, cfxi_worker *self)
{
    running *w = ctx;
    uint8_t *scratch = cfxi_rt_worker_scratch(self, w->k->scratch);
    if (!scratch) {
        atomic_store(&w->no_memory, true);
        return;
    }
    for (int64_t i = begin; i < end; i++)
        run_piece(w, i, scratch);
}

static cfx_status run(const cfxi_kernel *kernel, const cfxi_run *r, cfx_error *err)
{
    const matmul_kernel *k = (const matmul_kernel *)kernel;
    const cfxi_problem *p = &kernel->problem;
    const int64_t pieces = k->batches * k->blocks;
    const double work = (double)k->batches * (double)p->m * (double)p->n * (double)p->k;
    running w = {.k = k, .r = r};
    atomic_init(&w.no_memory, false);
    cfxi_rt_parallel_work(r->rt, pieces, work < LEAST_WORK ? pieces : 1, run_pieces, &w);
    return atomic_load(&w.no_memory) ? cfxi_base_nomem(err) : CFX_OK;
}

static void release(cfxi_kernel *k) { cfxi_base_free(k->allocator, k, k->bytes); }

static void print(const cfxi_kernel *kernel, cfxi_out *out)
{
    const matmul_kernel *k = (const matmul_kernel *)kernel;
    cfxi_backend_print_tiles(&kernel->problem, "integer ", k->bytes->name, k->tiling, out);
}

const cfxi_backend cfxi_backend_matmul_bytes = {"built-in, int8", query, prepare,
                                                run,              release, print};
