/* peak_vector.h - what peak.c measures, for one instruction set; included once for each, after
 * vector.h. */

/* Chains are as many as hide the latency and fit into registers. */
#if LANES == 16 || defined(NEON)
enum { CHAINS = 24 };
#else
enum { CHAINS = 12 };
#endif
enum { READS = 8 };  /* vectors that are read at once */

static float multiply(int64_t n, float by)
{
    V sums[CHAINS];
    const V factor = SET(by);
    UNROLL for (int i = 0; i < CHAINS; i++)
        sums[i] = factor * (float)(i + 1);
    for (int64_t k = 0; k < n; k++)
        UNROLL for (int i = 0; i < CHAINS; i++)
            sums[i] = FMA(sums[i], factor, factor);
    UNROLL for (int i = 1; i < CHAINS; i++)
        sums[0] += sums[i];
    return sums[0][0];
}

static float read(const float *at, int64_t n)
{
    V sums[READS] = {{0}};
    for (int64_t k = 0; k < n; k += READS * LANES)
        UNROLL for (int i = 0; i < READS; i++)
            sums[i] += LOAD(at + k + i * LANES);
    UNROLL for (int i = 1; i < READS; i++)
        sums[0] += sums[i];
    return sums[0][0];
}

const cfxi_peak_loops ISA(cfxi_rt_peak_loops) = {multiply, read, CHAINS * LANES};
