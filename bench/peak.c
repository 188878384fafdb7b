/* peak.c - the most multiply-adds of float32 that this machine does: loops on registers alone.
 *
 *     peak [THREADS]     prints GFLOP/s (two for each multiply-add), the best of ten tries
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { TIMES = 2000000, TRIES = 10, MOST_THREADS = 256, SUMS = 16 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Each has SUMS sums of its own, so that none waits for another; returns multiply-adds. */
#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double loop_avx512(float *keep)
{
    __m512 sum[SUMS];
    for (int i = 0; i < SUMS; i++)
        sum[i] = _mm512_set1_ps((float)i);
    const __m512 a = _mm512_set1_ps(0.999f);
    const __m512 b = _mm512_set1_ps(0.001f);
    for (int n = 0; n < TIMES; n++) {
#pragma GCC unroll 16
        for (int i = 0; i < SUMS; i++)
            sum[i] = _mm512_fmadd_ps(sum[i], a, b);
    }
    for (int i = 0; i < SUMS; i++)
        *keep += _mm512_reduce_add_ps(sum[i]);
    return 16.0 * SUMS * TIMES;
}

__attribute__((target("avx2,fma"))) static double loop_avx2(float *keep)
{
    __m256 sum[SUMS / 2 + 2];
    enum { COUNT = SUMS / 2 + 2 };
    for (int i = 0; i < COUNT; i++)
        sum[i] = _mm256_set1_ps((float)i);
    const __m256 a = _mm256_set1_ps(0.999f);
    const __m256 b = _mm256_set1_ps(0.001f);
    for (int n = 0; n < TIMES; n++) {
#pragma GCC unroll 16
        for (int i = 0; i < COUNT; i++)
            sum[i] = _mm256_fmadd_ps(sum[i], a, b);
    }
    for (int i = 0; i < COUNT; i++)
        *keep += _mm256_cvtss_f32(sum[i]);
    return 8.0 * COUNT * TIMES;
}
#endif

static double loop_plain(float *keep)
{
    float sum[SUMS];
    for (int i = 0; i < SUMS; i++)
        sum[i] = (float)i;
    for (int n = 0; n < TIMES; n++)
        for (int i = 0; i < SUMS; i++)
            sum[i] = sum[i] * 0.999f + 0.001f;
    for (int i = 0; i < SUMS; i++)
        *keep += sum[i];
    return (double)SUMS * TIMES;
}

static double work(float *keep)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return loop_avx512(keep);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return loop_avx2(keep);
#endif
    return loop_plain(keep);
}

static void *one_thread(void *done)
{
    float keep = 0;
    *(double *)done = work(&keep) + (keep == 1.5f ? 1 : 0);
    return NULL;
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t made[MOST_THREADS];
    double done[MOST_THREADS];
    double best = 0;
    if (threads < 1 || threads > MOST_THREADS)
        return fprintf(stderr, "peak: threads: 1 to %d\n", MOST_THREADS), 2;
    for (int t = 0; t < TRIES; t++) {
        const double start = now();
        double all = 0;
        for (int i = 0; i < threads; i++)
            if (pthread_create(&made[i], NULL, one_thread, &done[i]) != 0)
                return fprintf(stderr, "peak: a thread cannot be started\n"), 1;
        for (int i = 0; i < threads; i++) {
            pthread_join(made[i], NULL);
            all += done[i];
        }
        const double rate = 2 * all / (now() - start) * 1e-9;
        best = rate > best ? rate : best;
    }
    printf("%.1f GFLOP/s\n", best);
    return 0;
}
