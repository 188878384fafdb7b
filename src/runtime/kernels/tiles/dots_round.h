/* dots_round.h - elements rounded to bfloat16 and kept as floats, by vectors; included after
 * vector.h. To the nearest, of two the even one; NaN stays NaN. */
INLINE V to_bfloat(V x)
{
    const VU bits = (VU)x;
    const VU rounded = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    const VU nan = (VU)(x != x);
    return (V)((nan & 0x7fc00000u) | (~nan & rounded));
}

static void round_elements(int64_t n, const float *from, void *to)
{
    float *out = to;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        STORE(out + i, to_bfloat(LOAD(from + i)));
    if (i < n)
        STORE_SOME(out + i, to_bfloat(LOAD_SOME(from + i, n - i)), n - i);
}
