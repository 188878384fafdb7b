/* special_functions.c - functions that libm lacks, in double. */
#define _DEFAULT_SOURCE  /* lgamma_r: lgamma writes to a global */
#include "blocks.h"

#include <math.h>

double cfxi_elementwise_lgamma(double x)
{
    int sign;
    return x == -INFINITY ? INFINITY : lgamma_r(x, &sign);
}

/* Winitzki's approximation, then Newton's steps on erf. */
double cfxi_elementwise_erfinv(double x)
{
    double a = fabs(x);
    if (!(a < 1))
        return a == 1 ? copysign(INFINITY, x) : NAN;
    if (a == 0)
        return x;
    double l = log1p(-a * a);
    double h = 2 / (M_PI * 0.147) + l / 2;
    double y = sqrt(sqrt(h * h - l / 0.147) - h);
    for (int i = 0; i < 3; i++) {
        double off = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y);
        double step = off / (2 / sqrt(M_PI) * exp(-y * y));
        y -= step / (1 + y * step);
    }
    return copysign(y, x);
}

/* Up to 10 by recurrence, then the asymptotic series; negative arguments by reflection. */
double cfxi_elementwise_digamma(double x)
{
    static const double terms[] = {1 / 12.0, -1 / 120.0, 1 / 252.0, -1 / 240.0, 1 / 132.0,
                                   -691 / 32760.0, 1 / 12.0};
    if (x == 0)
        return copysign(INFINITY, -x);
    if (x == INFINITY)
        return x;
    double sum = 0;
    if (x < 0) {
        if (x == floor(x))
            return NAN;
        double whole;
        double part = modf(x, &whole);
        sum = -M_PI / tan(M_PI * part);
        x = 1 - x;
    }
    for (; x < 10; x++)
        sum -= 1 / x;
    double z = 1 / (x * x);
    double series = 0;
    for (size_t i = sizeof terms / sizeof *terms; i-- > 0;)
        series = z * (terms[i] + series);
    return sum + log(x) - 0.5 / x - series;
}

/* The power series where it is short; else e^x / sqrt(2 pi x) times its asymptotic series. */
double cfxi_elementwise_i0(double x)
{
    double a = fabs(x);
    double sum = 1;
    double term = 1;
    if (!(a < INFINITY))
        return a;
    if (a < 30) {
        double z = a * a / 4;
        for (int k = 1; k < 200 && term > sum * 1e-17; k++) {
            term *= z / ((double)k * k);
            sum += term;
        }
        return sum;
    }
    for (int k = 1; k < 40; k++) {
        double odd = 2 * k - 1;
        double next = term * odd * odd / (8 * a * k);
        if (next > term || next < sum * 1e-17)
            break;
        term = next;
        sum += term;
    }
    return exp(a / 2) / sqrt(2 * M_PI * a) * sum * exp(a / 2);
}
