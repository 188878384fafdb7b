/* amx.h - how AMX multiplies two matrices, whatever their elements are; included after vector.h by
 * files that define DOTS(sums, a, b), the instruction.
 *
 * A register holds 16 rows of 64 bytes. Four of them have the sums of up to 32 rows by two panels,
 * two have rows of `a`, and two have 16 steps of a panel, which lie there as the instruction takes
 * them: each step has four bytes of 16 columns. A function that is compiled for tiles ends with
 * their release, so that nobody else pays for saving them.
 */
enum {
    ROWS = 16,
    STEP_BYTES = 4,
    LINE = 64,  /* bytes of a row, */
    TURN = 64   /* and of k at a time; a k of less than one turn is a shorter turn */
};

/* What is in memory may be read by instructions that the compiler does not see through. */
#define SEEN(x) __asm__ volatile("" : : "r"(x) : "memory")

typedef struct shapes {
    uint8_t palette, first_row, unused[14];
    uint16_t bytes[16];  /* of a row of each register */
    uint8_t rows[16];
} shapes;

/* For tiles of `rows` rows and blocks of `k` bytes. */
static void set_up(int rows, int64_t k)
{
    shapes s = {.palette = 1};
    const int top = rows < ROWS ? rows : ROWS;
    const int rest = rows - top > 0 ? rows - top : 1;
    const int steps = k < TURN ? (int)((k + STEP_BYTES - 1) / STEP_BYTES) : TURN / STEP_BYTES;
    const int row = steps * STEP_BYTES;
    const int rows_of[] = {top, top, rest, rest, top, rest, steps, steps};
    const int bytes_of[] = {LINE, LINE, LINE, LINE, row, row, LINE, LINE};
    for (int i = 0; i < 8; i++) {
        s.bytes[i] = (uint16_t)bytes_of[i];
        s.rows[i] = (uint8_t)rows_of[i];
    }
    SEEN(&s);
    _tile_loadconfig(&s);
}

/* As in a tile, but distances are in bytes, those of blocks in units of so many. */
typedef struct matrices {
    const char *a;
    int64_t a_row;
    const int64_t *a_at;
    const char *b;
    int64_t b_panel;
    const int64_t *b_at;
    int64_t unit;
    int64_t count;
    int64_t k;             /* bytes of a row of a block */
    const void *first[2];  /* what the sums of each panel begin with: 16 */
} matrices;

/* Sums of two panels (or one) by 16 rows, or more if `both`. */
INLINE void sum_registers(bool both, bool two, const matrices *t, char *sums)
{
    _tile_loadd(0, t->first[0], 0);  /* the same for all rows */
    if (two)
        _tile_loadd(1, t->first[1], 0);
    if (both)
        _tile_loadd(2, t->first[0], 0);
    if (both && two)
        _tile_loadd(3, t->first[1], 0);
    for (int64_t q = 0; q < t->count; q++) {
        const char *a = t->a + t->a_at[q] * t->unit;
        const char *b = t->b + t->b_at[q] * t->unit;
        for (int64_t p = 0; p < t->k; p += TURN, a += TURN, b += TURN * CFXI_PANEL) {
            _tile_loadd(6, b, LINE);
            if (two)
                _tile_loadd(7, b + t->b_panel, LINE);
            _tile_loadd(4, a, t->a_row);
            DOTS(0, 4, 6);
            if (two)
                DOTS(1, 4, 7);
            if (both) {
                _tile_loadd(5, a + ROWS * t->a_row, t->a_row);
                DOTS(2, 5, 6);
            }
            if (both && two)
                DOTS(3, 5, 7);
        }
    }
    const int64_t line = (two ? 2 : 1) * LINE;
    _tile_stored(0, sums, line);
    if (two)
        _tile_stored(1, sums + LINE, line);
    if (both)
        _tile_stored(2, sums + ROWS * line, line);
    if (both && two)
        _tile_stored(3, sums + ROWS * line + LINE, line);
    SEEN(sums);
}

/* Sums of `rows` rows by one panel, or two: rows of as many panels. */
static void sum_panels(int rows, int panels, const matrices *t, void *sums)
{
    SEEN(t->first[0]);
    if (rows > ROWS && panels == 2)
        sum_registers(true, true, t, sums);
    else if (rows > ROWS)
        sum_registers(true, false, t, sums);
    else if (panels == 2)
        sum_registers(false, true, t, sums);
    else
        sum_registers(false, false, t, sums);
}

/* 16 cycles for each product of two registers, which has 16 steps. */
static double cycles(int rows, int panels)
{
    return (rows > ROWS ? 2 : 1) * (panels + 0.5);
}
