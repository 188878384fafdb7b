/* winograd_vector.h - Winograd's transforms, a vector of channels at a time; included once for each
 * instruction set, after vector.h. */
enum { SIDE = CFXI_WINOGRAD_SIDE };

/* B' x of a line or column. */
INLINE void turn_in(const V x[SIDE], V to[SIDE])
{
    to[0] = x[0] - x[2];
    to[1] = x[1] + x[2];
    to[2] = x[2] - x[1];
    to[3] = x[1] - x[3];
}

/* Channels from `at` on, `n` of them. Gives 0 in each if all are finite. The four places in the
 * corners together have each pixel once. */
INLINE V transform(const cfxi_winograd_in *t, int64_t at, int64_t n)
{
    V half[SIDE][SIDE];
    V all[SIDE][SIDE];
    UNROLL for (int j = 0; j < SIDE; j++) {
        V x[SIDE];
        V y[SIDE];
        UNROLL for (int i = 0; i < SIDE; i++) {
            const float *from = t->pixels[i * SIDE + j] + at;
            x[i] = v_load(from, n);
        }
        turn_in(x, y);
        UNROLL for (int i = 0; i < SIDE; i++)
            half[i][j] = y[i];
    }
    UNROLL for (int i = 0; i < SIDE; i++) {
        turn_in(half[i], all[i]);
        UNROLL for (int j = 0; j < SIDE; j++) {
            float *to = t->to + (i * SIDE + j) * t->to_place + at;
            v_store(to, all[i][j], n);
        }
    }
    return (all[0][0] + all[0][3] + all[3][0] + all[3][3]) * SET(0);
}

static bool in(const cfxi_winograd_in *t)
{
    V wrong = {0};
    int64_t at = 0;
    for (; at + LANES <= t->channels; at += LANES)
        wrong += transform(t, at, LANES);
    if (at < t->channels)
        wrong += transform(t, at, t->channels - at);
    return v_sum(wrong) == 0;
}

/* One of the four pixels. */
INLINE void put(const cfxi_winograd_out *t, int which, int64_t at, int64_t n, V x)
{
    const float *add = t->add[which];
    if (!t->to[which])
        return;
    if (add)
        x += v_load(add + at, n);
    x = v_clamp(x, SET(t->low), SET(t->high));
    v_store(t->to[which] + at, x, n);
}

INLINE void transform_back(const cfxi_winograd_out *t, int64_t at, int64_t n)
{
    const V bias = t->bias ? LOAD(t->bias + at) : (V){0};
    V half[2][SIDE];
    UNROLL for (int j = 0; j < SIDE; j++) {
        const float *from = t->sums + j * t->sums_place + at;
        const V a = LOAD(from);
        const V b = LOAD(from + SIDE * t->sums_place);
        const V c = LOAD(from + 2 * SIDE * t->sums_place);
        const V d = LOAD(from + 3 * SIDE * t->sums_place);
        half[0][j] = a + b + c;
        half[1][j] = b - c - d;
    }
    UNROLL for (int i = 0; i < 2; i++) {
        put(t, 2 * i, at, n, half[i][0] + half[i][1] + half[i][2] + bias);
        put(t, 2 * i + 1, at, n, half[i][1] - half[i][2] - half[i][3] + bias);
    }
}

static void out(const cfxi_winograd_out *t)
{
    int64_t at = 0;
    for (; at + LANES <= t->columns; at += LANES)
        transform_back(t, at, LANES);
    if (at < t->columns)
        transform_back(t, at, t->columns - at);
}

const cfxi_winograd ISA(cfxi_backend_winograd_tile) = {in, out};
