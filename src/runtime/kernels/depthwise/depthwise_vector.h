/* depthwise_vector.h - a line of a depthwise convolution, a vector of channels at a time; included
 * once for each instruction set, after vector.h.
 *
 * Windows of 3 and 5 places without gaps, and of 7 with a step of 1, have tiles: some neighbouring
 * pixels, for which a line of weights stays in registers, and each column of the image is loaded
 * once. Any other window is computed place by place. Either way sums are added up in the order of
 * lines and places.
 *
 * Expects LINE_TYPE, what describes a line, and X_TYPE, the elements of its image; load_x(t, x, n),
 * which gives n of them as floats; begin() and finish() for the sums of some pixels; and
 * may_repeat(t), whether channels can be computed a second time. With GROUPS, channels are in small
 * groups: each result has a tap for every channel of its own group, and windows of 3 have tiles.
 */
#ifdef GROUPS
#define TAPS(t) ((t)->taps)

/* Which lanes of a vector have the channel number `tap` of the group of each lane. */
INLINE VI lanes_of(const LINE_TYPE *t, int64_t tap)
{
    VI lane;
    UNROLL for (int i = 0; i < LANES; i++)
        lane[i] = i;
    return (lane & -(int32_t)t->taps) + (int32_t)tap;
}

INLINE V spread(V x, VI lanes)
{
#if LANES == 16
    return _mm512_permutexvar_ps((__m512i)lanes, x);
#else
    return _mm256_permutevar8x32_ps(x, (__m256i)lanes);
#endif
}
#else
#define TAPS(t) 1
INLINE VI lanes_of(const LINE_TYPE *t, int64_t tap) { return (void)t, (void)tap, (VI){0}; }
INLINE V spread(V x, VI lanes) { return (void)lanes, x; }
#endif

/* ---- tiles --------------------------------------------------------------------------------- */

/* `edge`: some columns may be outside of the image. (Few pixels are taken for an edge always: that
 * saves code.) */
INLINE void tile(int pixels, int places, int step, bool edge, const LINE_TYPE *t,
                 int64_t i, int64_t c)
{
    const int64_t from = t->left + i * step;
    const X_TYPE *x = t->x + c;
    const float *w = t->w + c;
    V sums[MOST_PIXELS];
    begin(pixels, sums, t, c, LANES);
    for (int64_t r = 0; r < t->lines; r++, x += t->x_line, w += t->w_line)
        for (int64_t tap = 0; tap < TAPS(t); tap++) {
            const VI lanes = lanes_of(t, tap);
            V weights[MOST_PLACES];
            UNROLL for (int s = 0; s < places; s++)
                weights[s] = LOAD(w + tap * t->channels + s * t->w_place);
            UNROLL for (int j = 0; j < (pixels - 1) * step + places; j++) {
                if (edge && (from + j < 0 || from + j >= t->columns))
                    continue;
                const V column = spread(load_x(t, x + (from + j) * t->x_column, LANES), lanes);
                UNROLL for (int k = 0; k < pixels; k++)
                    if (j >= k * step && j < k * step + places)
                        sums[k] += column * weights[j - k * step];
            }
        }
    finish(pixels, sums, t, i, c, LANES);
}

typedef void tile_fn(const LINE_TYPE *t, int64_t i, int64_t c);

/* X(pixels, edge, places, step) */
#define TILES(X, places, step)                                                                     \
    X(7, false, places, step) X(7, true, places, step) X(4, true, places, step)                    \
    X(2, true, places, step) X(1, true, places, step)
#ifdef GROUPS
#define WINDOWS(X) TILES(X, 3, 1) TILES(X, 3, 2)
#else
#define WINDOWS(X)                                                                                 \
    TILES(X, 3, 1) TILES(X, 3, 2) TILES(X, 5, 1) TILES(X, 5, 2) TILES(X, 7, 1)
#endif

/* The tiles of a window: [pixels][edge]. */
typedef tile_fn *const tiles_of_window[MOST_PIXELS + 1][2];

/* Portable code has no tiles, which would be most of its size: it is what is left if nothing else
 * runs on a processor. */
#if LANES == 4 && !defined(NEON)
static tiles_of_window *tiles_for(const LINE_TYPE *t)
{
    (void)t;
    return NULL;
}
#else
#define X(pixels, edge, places, step)                                                              \
    static void tile_##pixels##_##edge##_##places##_##step(const LINE_TYPE *t,           \
                                                           int64_t i, int64_t c)                   \
    {                                                                                              \
        tile(pixels, places, step, edge, t, i, c);                                                 \
    }
WINDOWS(X)
#undef X

#define X(pixels, edge, places, step)                                                              \
    [pixels][edge] = tile_##pixels##_##edge##_##places##_##step,
static tiles_of_window tiles_3_1 = {TILES(X, 3, 1)};
static tiles_of_window tiles_3_2 = {TILES(X, 3, 2)};
#ifndef GROUPS
static tiles_of_window tiles_5_1 = {TILES(X, 5, 1)};
static tiles_of_window tiles_5_2 = {TILES(X, 5, 2)};
static tiles_of_window tiles_7_1 = {TILES(X, 7, 1)};
#endif
#undef X

/* NULL if the window has none. */
static tiles_of_window *tiles_for(const LINE_TYPE *t)
{
    if (t->gap != 1 || t->step > 2)
        return NULL;
    switch (t->places) {
    case 3: return t->step == 1 ? &tiles_3_1 : &tiles_3_2;
#ifndef GROUPS
    case 5: return t->step == 1 ? &tiles_5_1 : &tiles_5_2;
    case 7: return t->step == 1 ? &tiles_7_1 : NULL;
#endif
    default: return NULL;
    }
}
#endif

/* Lines of images are often multiples of 7. */
static int64_t next_tile(int64_t left) { return left >= 7 ? 7 : left >= 4 ? 4 : left >= 2 ? 2 : 1; }

/* All pixels, a vector of channels of each. */
static void run_tiles(tiles_of_window *tiles, const LINE_TYPE *t, int64_t c)
{
    for (int64_t i = 0, n; i < t->pixels; i += n) {
        n = next_tile(t->pixels - i);
        const int64_t from = t->left + i * t->step;
        const bool edge = n < MOST_PIXELS || from < 0 ||
                          from + (n - 1) * t->step + t->places > t->columns;
        (*tiles)[n][edge](t, i, c);
    }
}

/* ---- any window ---------------------------------------------------------------------------- */

/* `pixels` neighbours whose windows have the places [first, last) inside of the image: every weight
 * is loaded once for all of them. */
INLINE void sum_pixels(int pixels, const LINE_TYPE *t, int64_t i, int64_t first,
                       int64_t last, int64_t c, int64_t n)
{
    const int64_t from = t->left + i * t->step;
    V sums[MOST_PIXELS];
    begin(pixels, sums, t, c, n);
    for (int64_t r = 0; r < t->lines; r++)
        for (int64_t s = first; s < last; s++) {
            const X_TYPE *at = t->x + c + r * t->x_line + (from + s * t->gap) * t->x_column;
            const float *w = t->w + c + r * t->w_line + s * t->w_place;
            for (int64_t tap = 0; tap < TAPS(t); tap++) {
                const VI lanes = lanes_of(t, tap);
                const V weight = v_load(w + tap * t->channels, n);
                UNROLL for (int k = 0; k < pixels; k++)
                    sums[k] += spread(load_x(t, at + k * t->step * t->x_column, n), lanes) * weight;
            }
        }
    finish(pixels, sums, t, i, c, n);
}

/* All pixels, n channels of each. */
INLINE void sum_line(const LINE_TYPE *t, int64_t c, int64_t n)
{
    const int64_t window = (t->places - 1) * t->gap + 1;
    for (int64_t i = 0; i < t->pixels;) {
        const int64_t from = t->left + i * t->step;
        if (from >= 0 && i + MOST_PIXELS <= t->pixels &&
            from + (MOST_PIXELS - 1) * t->step + window <= t->columns) {
            sum_pixels(MOST_PIXELS, t, i, 0, t->places, c, n);
            i += MOST_PIXELS;
            continue;
        }
        int64_t first = 0;
        int64_t last = t->places;
        while (first < last && from + first * t->gap < 0)
            first++;
        while (first < last && from + (last - 1) * t->gap >= t->columns)
            last--;
        sum_pixels(1, t, i++, first, last, c, n);
    }
}

/* ---- a line -------------------------------------------------------------------------------- */

/* The last channels, of which there are not enough for a vector, are computed together with some
 * before them a second time, unless the result is where it was added to. */
static void line(const LINE_TYPE *t)
{
    tiles_of_window *tiles = tiles_for(t);
    int64_t c = 0;
    for (; c + LANES <= t->channels; c += LANES)
        if (tiles)
            run_tiles(tiles, t, c);
        else
            sum_line(t, c, LANES);
    if (c == t->channels)
        return;
    if (tiles && c > 0 && may_repeat(t))
        run_tiles(tiles, t, t->channels - LANES);
    else
        sum_line(t, c, t->channels - c);
}
