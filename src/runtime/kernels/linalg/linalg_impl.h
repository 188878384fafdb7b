/* linalg_impl.h - what the linear algebra rows share: matrices of double complex.
 *
 * All of them compute in double complex, on row-major copies of one matrix at a time: one text for
 * float, double and both complex types, and no loss of precision that the type does not have
 * anyway. Results are column-major, as LAPACK leaves them.
 */
#ifndef CFXI_LINALG_IMPL_H
#define CFXI_LINALG_IMPL_H

#include "product_impl.h"

#include <complex.h>

typedef double complex cfxi_z;

/* a b without the detour for infinities that C asks for. */
static inline cfxi_z cfxi_linalg_z_mul(cfxi_z a, cfxi_z b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b),
                 creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* ---- rules --------------------------------------------------------------------------------- */

/* A float or complex type, of 32 or 64 bits a part, and two dimensions or more. */
cfx_status cfxi_linalg_check_matrices(cfxi_call *c, const cfx_tensor *t, const char *name);
/* And as many rows as columns. */
cfx_status cfxi_linalg_check_square(cfxi_call *c, const cfx_tensor *t, const char *name);
/* Result i: [batch of like..., rows, columns], column-major. */
cfx_status cfxi_linalg_matrix_result(cfxi_call *c, size_t i, cfx_dtype dtype,
                                     const cfx_tensor *like, int64_t rows, int64_t columns);
cfx_dtype cfxi_linalg_real_type(cfx_dtype d);

/* ---- matrices in memory -------------------------------------------------------------------- */

static inline int64_t cfxi_linalg_rows(const cfx_tensor *t) { return t->size[t->ndim - 2]; }
static inline int64_t cfxi_linalg_columns(const cfx_tensor *t) { return t->size[t->ndim - 1]; }

/* A matrix to and from row-major memory. */
void cfxi_linalg_matrix_load(const cfx_tensor *t, const char *at, cfxi_z *a);
void cfxi_linalg_matrix_store(const cfx_tensor *t, char *at, const cfxi_z *a);
/* Scratch for n numbers; NULL with c->err set. */
cfxi_z *cfxi_linalg_matrix_scratch(cfxi_call *c, int64_t n);

/* ---- decompositions ------------------------------------------------------------------------ */

/* Of [..., m, n]: a new tensor [..., min(m, n)], or NULL with c->err set. */
cfx_tensor *cfxi_linalg_singular_values(cfxi_call *c, const cfx_tensor *t);

#endif
