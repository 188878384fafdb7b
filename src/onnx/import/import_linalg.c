/* import_linalg.c - products of matrices. */
#include "import_impl.h"

/* alpha * A' * B' + beta * C */
cfx_var cfxi_import_gemm(cfxi_import_call *c)
{
    cfx_scope *s = c->scope;
    const double alpha = cfxi_import_float(c, "alpha", 1);
    const double beta = cfxi_import_float(c, "beta", 1);
    cfx_var a = cfxi_import_in(c, 0);
    cfx_var b = cfxi_import_in(c, 1);
    const bool turned = cfxi_import_int(c, "transB", 0) != 0;
    if (cfxi_import_int(c, "transA", 0))
        a = cfx_t(s, a);
    const bool adds = cfxi_import_has(c, 2) && beta != 0;
    if (alpha == 1 && beta == 1 && turned && cfxi_import_rank(c, 2) == 1)
        return cfx_linear(s, a, b, .bias = cfxi_import_in(c, 2));
    if (alpha == 1 && turned && !adds)
        return cfx_linear(s, a, b);
    cfx_var product = cfx_matmul(s, a, turned ? cfx_t(s, b) : b);
    if (alpha != 1)
        product = cfx_mul(s, product, alpha);
    if (!adds)
        return product;
    cfx_var bias = cfxi_import_in(c, 2);
    if (beta != 1)
        bias = cfx_mul(s, bias, beta);
    return cfx_add(s, product, bias);
}

cfx_var cfxi_import_einsum(cfxi_import_call *c)
{
    const cfx_var equation = cfxi_import_str(c, "equation", NULL);
    if (equation.kind != CFX_VAR_STR)
        return cfxi_import_fail(c, CFX_E_VALUE, "the equation is missing");
    return cfx_einsum(c->scope, equation, cfxi_import_list(c, 0));
}
