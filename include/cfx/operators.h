/* operators.h - a function for each operator; made by tools/c_api.py.
 *
 * Each takes the scope, what has no default by position, and what has one by name. Numbers and
 * texts can be given as they are, by name with cfx_v; lists of integers are cfx_ints(2, 2), others
 * cfx_list(s, x, y). A function that returns several values gives a tuple: cfx_getitem(s, t, 0).
 * Those that end with '_' write to their first argument. Where a type or function of cfx has the
 * name already, it ends with _row: cfx_var_row, cfx_tensor_row. In C++ before C++20 options have no
 * names: call cfx_NAME_at with a struct.
 */
#ifndef CFX_OPERATORS_H
#define CFX_OPERATORS_H

#pragma GCC system_header /* see scope.h */

#include <cfx/scope.h>

#ifdef __cplusplus
extern "C" {
#endif


/* ---- Control flow is data ------------------------------------------------------------------- */

/* ---- Element-wise arithmetic ---------------------------------------------------------------- */

/* add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
 * torch.add, Tensor.add, operator.add */
typedef struct cfx_add_args { cfx_var alpha; } cfx_add_args;
static inline cfx_var cfx_add_at(cfx_at at, cfx_var self, cfx_var other, cfx_add_args o)
{
    const cfx_var args[] = {self, other, o.alpha};
    return cfx_apply_at(at, CFX_OPID_add, args, 3);
}
#define cfx_add(s, self, other, ...)                                                               \
    cfx_add_at(CFX_HERE(s), cfx_v(self), cfx_v(other), CFX_OPTIONS(cfx_add_args, __VA_ARGS__))

/* add_(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
 * Tensor.add_, operator.iadd */
typedef struct cfx_add__args { cfx_var alpha; } cfx_add__args;
static inline cfx_var cfx_add__at(cfx_at at, cfx_var self, cfx_var other, cfx_add__args o)
{
    const cfx_var args[] = {self, other, o.alpha};
    return cfx_apply_at(at, CFX_OPID_add_, args, 3);
}
#define cfx_add_(s, self, other, ...)                                                              \
    cfx_add__at(CFX_HERE(s), cfx_v(self), cfx_v(other), CFX_OPTIONS(cfx_add__args,                 \
        __VA_ARGS__))

/* sub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
 * torch.sub, Tensor.sub, torch.subtract, Tensor.subtract */
typedef struct cfx_sub_args { cfx_var alpha; } cfx_sub_args;
static inline cfx_var cfx_sub_at(cfx_at at, cfx_var self, cfx_var other, cfx_sub_args o)
{
    const cfx_var args[] = {self, other, o.alpha};
    return cfx_apply_at(at, CFX_OPID_sub, args, 3);
}
#define cfx_sub(s, self, other, ...)                                                               \
    cfx_sub_at(CFX_HERE(s), cfx_v(self), cfx_v(other), CFX_OPTIONS(cfx_sub_args, __VA_ARGS__))

/* sub_(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
 * Tensor.sub_, Tensor.subtract_, operator.isub */
typedef struct cfx_sub__args { cfx_var alpha; } cfx_sub__args;
static inline cfx_var cfx_sub__at(cfx_at at, cfx_var self, cfx_var other, cfx_sub__args o)
{
    const cfx_var args[] = {self, other, o.alpha};
    return cfx_apply_at(at, CFX_OPID_sub_, args, 3);
}
#define cfx_sub_(s, self, other, ...)                                                              \
    cfx_sub__at(CFX_HERE(s), cfx_v(self), cfx_v(other), CFX_OPTIONS(cfx_sub__args,                 \
        __VA_ARGS__))

/* rsub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
 * torch.rsub */
typedef struct cfx_rsub_args { cfx_var alpha; } cfx_rsub_args;
static inline cfx_var cfx_rsub_at(cfx_at at, cfx_var self, cfx_var other, cfx_rsub_args o)
{
    const cfx_var args[] = {self, other, o.alpha};
    return cfx_apply_at(at, CFX_OPID_rsub, args, 3);
}
#define cfx_rsub(s, self, other, ...)                                                              \
    cfx_rsub_at(CFX_HERE(s), cfx_v(self), cfx_v(other), CFX_OPTIONS(cfx_rsub_args,                 \
        __VA_ARGS__))

/* mul(Tensor self, Tensor other) -> Tensor
 * torch.mul, Tensor.mul, torch.multiply, Tensor.multiply */
static inline cfx_var cfx_mul_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_mul, args, 2);
}
#define cfx_mul(s, self, other) cfx_mul_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* mul_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.mul_, Tensor.multiply_, operator.imul */
static inline cfx_var cfx_mul__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_mul_, args, 2);
}
#define cfx_mul_(s, self, other) cfx_mul__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* div(Tensor self, Tensor other, *, str? rounding_mode=None) -> Tensor
 * torch.div, Tensor.div, torch.divide, Tensor.divide */
typedef struct cfx_div_args { cfx_var rounding_mode; } cfx_div_args;
static inline cfx_var cfx_div_at(cfx_at at, cfx_var self, cfx_var other, cfx_div_args o)
{
    const cfx_var args[] = {self, other, o.rounding_mode};
    return cfx_apply_at(at, CFX_OPID_div, args, 3);
}
#define cfx_div(s, self, other, ...)                                                               \
    cfx_div_at(CFX_HERE(s), cfx_v(self), cfx_v(other), CFX_OPTIONS(cfx_div_args, __VA_ARGS__))

/* div_(Tensor(a!) self, Tensor other, *, str? rounding_mode=None) -> Tensor(a!)
 * Tensor.div_, Tensor.divide_, Tensor.true_divide_, operator.itruediv */
typedef struct cfx_div__args { cfx_var rounding_mode; } cfx_div__args;
static inline cfx_var cfx_div__at(cfx_at at, cfx_var self, cfx_var other, cfx_div__args o)
{
    const cfx_var args[] = {self, other, o.rounding_mode};
    return cfx_apply_at(at, CFX_OPID_div_, args, 3);
}
#define cfx_div_(s, self, other, ...)                                                              \
    cfx_div__at(CFX_HERE(s), cfx_v(self), cfx_v(other), CFX_OPTIONS(cfx_div__args,                 \
        __VA_ARGS__))

/* floor_divide(Tensor self, Tensor other) -> Tensor
 * torch.floor_divide, Tensor.floor_divide, operator.floordiv */
static inline cfx_var cfx_floor_divide_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_floor_divide, args, 2);
}
#define cfx_floor_divide(s, self, other) cfx_floor_divide_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* floor_divide_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.floor_divide_, operator.ifloordiv */
static inline cfx_var cfx_floor_divide__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_floor_divide_, args, 2);
}
#define cfx_floor_divide_(s, self, other)                                                          \
    cfx_floor_divide__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* remainder(Tensor self, Tensor other) -> Tensor
 * torch.remainder, Tensor.remainder, operator.mod */
static inline cfx_var cfx_remainder_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_remainder, args, 2);
}
#define cfx_remainder(s, self, other) cfx_remainder_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* remainder_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.remainder_, operator.imod */
static inline cfx_var cfx_remainder__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_remainder_, args, 2);
}
#define cfx_remainder_(s, self, other) cfx_remainder__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* fmod(Tensor self, Tensor other) -> Tensor
 * torch.fmod, Tensor.fmod */
static inline cfx_var cfx_fmod_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_fmod, args, 2);
}
#define cfx_fmod(s, self, other) cfx_fmod_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* fmod_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.fmod_ */
static inline cfx_var cfx_fmod__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_fmod_, args, 2);
}
#define cfx_fmod_(s, self, other) cfx_fmod__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* pow(Tensor self, Tensor exponent) -> Tensor
 * torch.pow, Tensor.pow, operator.pow, builtins.pow */
static inline cfx_var cfx_pow_at(cfx_at at, cfx_var self, cfx_var exponent)
{
    const cfx_var args[] = {self, exponent};
    return cfx_apply_at(at, CFX_OPID_pow, args, 2);
}
#define cfx_pow(s, self, exponent) cfx_pow_at(CFX_HERE(s), cfx_v(self), cfx_v(exponent))

/* pow_(Tensor(a!) self, Tensor exponent) -> Tensor(a!)
 * Tensor.pow_, operator.ipow */
static inline cfx_var cfx_pow__at(cfx_at at, cfx_var self, cfx_var exponent)
{
    const cfx_var args[] = {self, exponent};
    return cfx_apply_at(at, CFX_OPID_pow_, args, 2);
}
#define cfx_pow_(s, self, exponent) cfx_pow__at(CFX_HERE(s), cfx_v(self), cfx_v(exponent))

/* float_power(Tensor self, Tensor exponent) -> Tensor
 * torch.float_power, Tensor.float_power */
static inline cfx_var cfx_float_power_at(cfx_at at, cfx_var self, cfx_var exponent)
{
    const cfx_var args[] = {self, exponent};
    return cfx_apply_at(at, CFX_OPID_float_power, args, 2);
}
#define cfx_float_power(s, self, exponent)                                                         \
    cfx_float_power_at(CFX_HERE(s), cfx_v(self), cfx_v(exponent))

/* float_power_(Tensor(a!) self, Tensor exponent) -> Tensor(a!)
 * Tensor.float_power_ */
static inline cfx_var cfx_float_power__at(cfx_at at, cfx_var self, cfx_var exponent)
{
    const cfx_var args[] = {self, exponent};
    return cfx_apply_at(at, CFX_OPID_float_power_, args, 2);
}
#define cfx_float_power_(s, self, exponent)                                                        \
    cfx_float_power__at(CFX_HERE(s), cfx_v(self), cfx_v(exponent))

/* neg(Tensor self) -> Tensor
 * torch.neg, Tensor.neg, torch.negative, Tensor.negative */
static inline cfx_var cfx_neg_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_neg, args, 1);
}
#define cfx_neg(s, self) cfx_neg_at(CFX_HERE(s), cfx_v(self))

/* neg_(Tensor(a!) self) -> Tensor(a!)
 * torch.neg_, Tensor.neg_, torch.negative_, Tensor.negative_ */
static inline cfx_var cfx_neg__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_neg_, args, 1);
}
#define cfx_neg_(s, self) cfx_neg__at(CFX_HERE(s), cfx_v(self))

/* positive(Tensor(a) self) -> Tensor(a)
 * torch.positive, Tensor.positive, operator.pos */
static inline cfx_var cfx_positive_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_positive, args, 1);
}
#define cfx_positive(s, self) cfx_positive_at(CFX_HERE(s), cfx_v(self))

/* abs(Tensor self) -> Tensor
 * torch.abs, Tensor.abs, torch.absolute, Tensor.absolute */
static inline cfx_var cfx_abs_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_abs, args, 1);
}
#define cfx_abs(s, self) cfx_abs_at(CFX_HERE(s), cfx_v(self))

/* abs_(Tensor(a!) self) -> Tensor(a!)
 * torch.abs_, Tensor.abs_, Tensor.absolute_ */
static inline cfx_var cfx_abs__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_abs_, args, 1);
}
#define cfx_abs_(s, self) cfx_abs__at(CFX_HERE(s), cfx_v(self))

/* sign(Tensor self) -> Tensor
 * torch.sign, Tensor.sign */
static inline cfx_var cfx_sign_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_sign, args, 1);
}
#define cfx_sign(s, self) cfx_sign_at(CFX_HERE(s), cfx_v(self))

/* sign_(Tensor(a!) self) -> Tensor(a!)
 * Tensor.sign_ */
static inline cfx_var cfx_sign__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_sign_, args, 1);
}
#define cfx_sign_(s, self) cfx_sign__at(CFX_HERE(s), cfx_v(self))

/* sgn(Tensor self) -> Tensor
 * torch.sgn, Tensor.sgn */
static inline cfx_var cfx_sgn_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_sgn, args, 1);
}
#define cfx_sgn(s, self) cfx_sgn_at(CFX_HERE(s), cfx_v(self))

/* sgn_(Tensor(a!) self) -> Tensor(a!)
 * Tensor.sgn_ */
static inline cfx_var cfx_sgn__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_sgn_, args, 1);
}
#define cfx_sgn_(s, self) cfx_sgn__at(CFX_HERE(s), cfx_v(self))

/* reciprocal(Tensor self) -> Tensor
 * torch.reciprocal, Tensor.reciprocal */
static inline cfx_var cfx_reciprocal_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_reciprocal, args, 1);
}
#define cfx_reciprocal(s, self) cfx_reciprocal_at(CFX_HERE(s), cfx_v(self))

/* reciprocal_(Tensor(a!) self) -> Tensor(a!)
 * torch.reciprocal_, Tensor.reciprocal_ */
static inline cfx_var cfx_reciprocal__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_reciprocal_, args, 1);
}
#define cfx_reciprocal_(s, self) cfx_reciprocal__at(CFX_HERE(s), cfx_v(self))

/* sqrt(Tensor self) -> Tensor
 * torch.sqrt, Tensor.sqrt */
static inline cfx_var cfx_sqrt_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_sqrt, args, 1);
}
#define cfx_sqrt(s, self) cfx_sqrt_at(CFX_HERE(s), cfx_v(self))

/* sqrt_(Tensor(a!) self) -> Tensor(a!)
 * torch.sqrt_, Tensor.sqrt_ */
static inline cfx_var cfx_sqrt__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_sqrt_, args, 1);
}
#define cfx_sqrt_(s, self) cfx_sqrt__at(CFX_HERE(s), cfx_v(self))

/* rsqrt(Tensor self) -> Tensor
 * torch.rsqrt, Tensor.rsqrt */
static inline cfx_var cfx_rsqrt_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_rsqrt, args, 1);
}
#define cfx_rsqrt(s, self) cfx_rsqrt_at(CFX_HERE(s), cfx_v(self))

/* rsqrt_(Tensor(a!) self) -> Tensor(a!)
 * torch.rsqrt_, Tensor.rsqrt_ */
static inline cfx_var cfx_rsqrt__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_rsqrt_, args, 1);
}
#define cfx_rsqrt_(s, self) cfx_rsqrt__at(CFX_HERE(s), cfx_v(self))

/* square(Tensor self) -> Tensor
 * torch.square, Tensor.square */
static inline cfx_var cfx_square_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_square, args, 1);
}
#define cfx_square(s, self) cfx_square_at(CFX_HERE(s), cfx_v(self))

/* square_(Tensor(a!) self) -> Tensor(a!)
 * torch.square_, Tensor.square_ */
static inline cfx_var cfx_square__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_square_, args, 1);
}
#define cfx_square_(s, self) cfx_square__at(CFX_HERE(s), cfx_v(self))

/* exp(Tensor self) -> Tensor
 * torch.exp, Tensor.exp */
static inline cfx_var cfx_exp_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_exp, args, 1);
}
#define cfx_exp(s, self) cfx_exp_at(CFX_HERE(s), cfx_v(self))

/* exp_(Tensor(a!) self) -> Tensor(a!)
 * torch.exp_, Tensor.exp_ */
static inline cfx_var cfx_exp__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_exp_, args, 1);
}
#define cfx_exp_(s, self) cfx_exp__at(CFX_HERE(s), cfx_v(self))

/* exp2(Tensor self) -> Tensor
 * torch.exp2, Tensor.exp2 */
static inline cfx_var cfx_exp2_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_exp2, args, 1);
}
#define cfx_exp2(s, self) cfx_exp2_at(CFX_HERE(s), cfx_v(self))

/* exp2_(Tensor(a!) self) -> Tensor(a!)
 * torch.exp2_, Tensor.exp2_ */
static inline cfx_var cfx_exp2__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_exp2_, args, 1);
}
#define cfx_exp2_(s, self) cfx_exp2__at(CFX_HERE(s), cfx_v(self))

/* expm1(Tensor self) -> Tensor
 * torch.expm1, Tensor.expm1 */
static inline cfx_var cfx_expm1_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_expm1, args, 1);
}
#define cfx_expm1(s, self) cfx_expm1_at(CFX_HERE(s), cfx_v(self))

/* expm1_(Tensor(a!) self) -> Tensor(a!)
 * torch.expm1_, Tensor.expm1_ */
static inline cfx_var cfx_expm1__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_expm1_, args, 1);
}
#define cfx_expm1_(s, self) cfx_expm1__at(CFX_HERE(s), cfx_v(self))

/* log(Tensor self) -> Tensor
 * torch.log, Tensor.log */
static inline cfx_var cfx_log_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_log, args, 1);
}
#define cfx_log(s, self) cfx_log_at(CFX_HERE(s), cfx_v(self))

/* log_(Tensor(a!) self) -> Tensor(a!)
 * torch.log_, Tensor.log_ */
static inline cfx_var cfx_log__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_log_, args, 1);
}
#define cfx_log_(s, self) cfx_log__at(CFX_HERE(s), cfx_v(self))

/* log2(Tensor self) -> Tensor
 * torch.log2, Tensor.log2 */
static inline cfx_var cfx_log2_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_log2, args, 1);
}
#define cfx_log2(s, self) cfx_log2_at(CFX_HERE(s), cfx_v(self))

/* log2_(Tensor(a!) self) -> Tensor(a!)
 * torch.log2_, Tensor.log2_ */
static inline cfx_var cfx_log2__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_log2_, args, 1);
}
#define cfx_log2_(s, self) cfx_log2__at(CFX_HERE(s), cfx_v(self))

/* log10(Tensor self) -> Tensor
 * torch.log10, Tensor.log10 */
static inline cfx_var cfx_log10_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_log10, args, 1);
}
#define cfx_log10(s, self) cfx_log10_at(CFX_HERE(s), cfx_v(self))

/* log10_(Tensor(a!) self) -> Tensor(a!)
 * torch.log10_, Tensor.log10_ */
static inline cfx_var cfx_log10__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_log10_, args, 1);
}
#define cfx_log10_(s, self) cfx_log10__at(CFX_HERE(s), cfx_v(self))

/* log1p(Tensor self) -> Tensor
 * torch.log1p, Tensor.log1p */
static inline cfx_var cfx_log1p_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_log1p, args, 1);
}
#define cfx_log1p(s, self) cfx_log1p_at(CFX_HERE(s), cfx_v(self))

/* log1p_(Tensor(a!) self) -> Tensor(a!)
 * torch.log1p_, Tensor.log1p_ */
static inline cfx_var cfx_log1p__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_log1p_, args, 1);
}
#define cfx_log1p_(s, self) cfx_log1p__at(CFX_HERE(s), cfx_v(self))

/* sin(Tensor self) -> Tensor
 * torch.sin, Tensor.sin */
static inline cfx_var cfx_sin_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_sin, args, 1);
}
#define cfx_sin(s, self) cfx_sin_at(CFX_HERE(s), cfx_v(self))

/* sin_(Tensor(a!) self) -> Tensor(a!)
 * torch.sin_, Tensor.sin_ */
static inline cfx_var cfx_sin__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_sin_, args, 1);
}
#define cfx_sin_(s, self) cfx_sin__at(CFX_HERE(s), cfx_v(self))

/* cos(Tensor self) -> Tensor
 * torch.cos, Tensor.cos */
static inline cfx_var cfx_cos_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_cos, args, 1);
}
#define cfx_cos(s, self) cfx_cos_at(CFX_HERE(s), cfx_v(self))

/* cos_(Tensor(a!) self) -> Tensor(a!)
 * torch.cos_, Tensor.cos_ */
static inline cfx_var cfx_cos__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_cos_, args, 1);
}
#define cfx_cos_(s, self) cfx_cos__at(CFX_HERE(s), cfx_v(self))

/* tan(Tensor self) -> Tensor
 * torch.tan, Tensor.tan */
static inline cfx_var cfx_tan_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_tan, args, 1);
}
#define cfx_tan(s, self) cfx_tan_at(CFX_HERE(s), cfx_v(self))

/* tan_(Tensor(a!) self) -> Tensor(a!)
 * torch.tan_, Tensor.tan_ */
static inline cfx_var cfx_tan__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_tan_, args, 1);
}
#define cfx_tan_(s, self) cfx_tan__at(CFX_HERE(s), cfx_v(self))

/* asin(Tensor self) -> Tensor
 * torch.asin, Tensor.asin, torch.arcsin, Tensor.arcsin */
static inline cfx_var cfx_asin_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_asin, args, 1);
}
#define cfx_asin(s, self) cfx_asin_at(CFX_HERE(s), cfx_v(self))

/* asin_(Tensor(a!) self) -> Tensor(a!)
 * torch.asin_, Tensor.asin_, torch.arcsin_, Tensor.arcsin_ */
static inline cfx_var cfx_asin__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_asin_, args, 1);
}
#define cfx_asin_(s, self) cfx_asin__at(CFX_HERE(s), cfx_v(self))

/* acos(Tensor self) -> Tensor
 * torch.acos, Tensor.acos, torch.arccos, Tensor.arccos */
static inline cfx_var cfx_acos_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_acos, args, 1);
}
#define cfx_acos(s, self) cfx_acos_at(CFX_HERE(s), cfx_v(self))

/* acos_(Tensor(a!) self) -> Tensor(a!)
 * torch.acos_, Tensor.acos_, torch.arccos_, Tensor.arccos_ */
static inline cfx_var cfx_acos__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_acos_, args, 1);
}
#define cfx_acos_(s, self) cfx_acos__at(CFX_HERE(s), cfx_v(self))

/* atan(Tensor self) -> Tensor
 * torch.atan, Tensor.atan, torch.arctan, Tensor.arctan */
static inline cfx_var cfx_atan_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_atan, args, 1);
}
#define cfx_atan(s, self) cfx_atan_at(CFX_HERE(s), cfx_v(self))

/* atan_(Tensor(a!) self) -> Tensor(a!)
 * torch.atan_, Tensor.atan_, torch.arctan_, Tensor.arctan_ */
static inline cfx_var cfx_atan__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_atan_, args, 1);
}
#define cfx_atan_(s, self) cfx_atan__at(CFX_HERE(s), cfx_v(self))

/* atan2(Tensor self, Tensor other) -> Tensor
 * torch.atan2, Tensor.atan2, torch.arctan2, Tensor.arctan2 */
static inline cfx_var cfx_atan2_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_atan2, args, 2);
}
#define cfx_atan2(s, self, other) cfx_atan2_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* atan2_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.atan2_, Tensor.arctan2_ */
static inline cfx_var cfx_atan2__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_atan2_, args, 2);
}
#define cfx_atan2_(s, self, other) cfx_atan2__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* sinh(Tensor self) -> Tensor
 * torch.sinh, Tensor.sinh */
static inline cfx_var cfx_sinh_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_sinh, args, 1);
}
#define cfx_sinh(s, self) cfx_sinh_at(CFX_HERE(s), cfx_v(self))

/* sinh_(Tensor(a!) self) -> Tensor(a!)
 * torch.sinh_, Tensor.sinh_ */
static inline cfx_var cfx_sinh__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_sinh_, args, 1);
}
#define cfx_sinh_(s, self) cfx_sinh__at(CFX_HERE(s), cfx_v(self))

/* cosh(Tensor self) -> Tensor
 * torch.cosh, Tensor.cosh */
static inline cfx_var cfx_cosh_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_cosh, args, 1);
}
#define cfx_cosh(s, self) cfx_cosh_at(CFX_HERE(s), cfx_v(self))

/* cosh_(Tensor(a!) self) -> Tensor(a!)
 * torch.cosh_, Tensor.cosh_ */
static inline cfx_var cfx_cosh__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_cosh_, args, 1);
}
#define cfx_cosh_(s, self) cfx_cosh__at(CFX_HERE(s), cfx_v(self))

/* asinh(Tensor self) -> Tensor
 * torch.asinh, Tensor.asinh, torch.arcsinh, Tensor.arcsinh */
static inline cfx_var cfx_asinh_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_asinh, args, 1);
}
#define cfx_asinh(s, self) cfx_asinh_at(CFX_HERE(s), cfx_v(self))

/* asinh_(Tensor(a!) self) -> Tensor(a!)
 * torch.asinh_, Tensor.asinh_, torch.arcsinh_, Tensor.arcsinh_ */
static inline cfx_var cfx_asinh__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_asinh_, args, 1);
}
#define cfx_asinh_(s, self) cfx_asinh__at(CFX_HERE(s), cfx_v(self))

/* acosh(Tensor self) -> Tensor
 * torch.acosh, Tensor.acosh, torch.arccosh, Tensor.arccosh */
static inline cfx_var cfx_acosh_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_acosh, args, 1);
}
#define cfx_acosh(s, self) cfx_acosh_at(CFX_HERE(s), cfx_v(self))

/* acosh_(Tensor(a!) self) -> Tensor(a!)
 * torch.acosh_, Tensor.acosh_, torch.arccosh_, Tensor.arccosh_ */
static inline cfx_var cfx_acosh__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_acosh_, args, 1);
}
#define cfx_acosh_(s, self) cfx_acosh__at(CFX_HERE(s), cfx_v(self))

/* atanh(Tensor self) -> Tensor
 * torch.atanh, Tensor.atanh, torch.arctanh, Tensor.arctanh */
static inline cfx_var cfx_atanh_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_atanh, args, 1);
}
#define cfx_atanh(s, self) cfx_atanh_at(CFX_HERE(s), cfx_v(self))

/* atanh_(Tensor(a!) self) -> Tensor(a!)
 * torch.atanh_, Tensor.atanh_, torch.arctanh_, Tensor.arctanh_ */
static inline cfx_var cfx_atanh__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_atanh_, args, 1);
}
#define cfx_atanh_(s, self) cfx_atanh__at(CFX_HERE(s), cfx_v(self))

/* erf(Tensor self) -> Tensor
 * torch.erf, Tensor.erf */
static inline cfx_var cfx_erf_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_erf, args, 1);
}
#define cfx_erf(s, self) cfx_erf_at(CFX_HERE(s), cfx_v(self))

/* erf_(Tensor(a!) self) -> Tensor(a!)
 * torch.erf_, Tensor.erf_ */
static inline cfx_var cfx_erf__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_erf_, args, 1);
}
#define cfx_erf_(s, self) cfx_erf__at(CFX_HERE(s), cfx_v(self))

/* erfc(Tensor self) -> Tensor
 * torch.erfc, Tensor.erfc */
static inline cfx_var cfx_erfc_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_erfc, args, 1);
}
#define cfx_erfc(s, self) cfx_erfc_at(CFX_HERE(s), cfx_v(self))

/* erfc_(Tensor(a!) self) -> Tensor(a!)
 * torch.erfc_, Tensor.erfc_ */
static inline cfx_var cfx_erfc__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_erfc_, args, 1);
}
#define cfx_erfc_(s, self) cfx_erfc__at(CFX_HERE(s), cfx_v(self))

/* erfinv(Tensor self) -> Tensor
 * torch.erfinv, Tensor.erfinv */
static inline cfx_var cfx_erfinv_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_erfinv, args, 1);
}
#define cfx_erfinv(s, self) cfx_erfinv_at(CFX_HERE(s), cfx_v(self))

/* erfinv_(Tensor(a!) self) -> Tensor(a!)
 * Tensor.erfinv_ */
static inline cfx_var cfx_erfinv__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_erfinv_, args, 1);
}
#define cfx_erfinv_(s, self) cfx_erfinv__at(CFX_HERE(s), cfx_v(self))

/* lgamma(Tensor self) -> Tensor
 * torch.lgamma, Tensor.lgamma */
static inline cfx_var cfx_lgamma_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_lgamma, args, 1);
}
#define cfx_lgamma(s, self) cfx_lgamma_at(CFX_HERE(s), cfx_v(self))

/* lgamma_(Tensor(a!) self) -> Tensor(a!)
 * Tensor.lgamma_ */
static inline cfx_var cfx_lgamma__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_lgamma_, args, 1);
}
#define cfx_lgamma_(s, self) cfx_lgamma__at(CFX_HERE(s), cfx_v(self))

/* digamma(Tensor self) -> Tensor
 * torch.digamma, Tensor.digamma */
static inline cfx_var cfx_digamma_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_digamma, args, 1);
}
#define cfx_digamma(s, self) cfx_digamma_at(CFX_HERE(s), cfx_v(self))

/* digamma_(Tensor(a!) self) -> Tensor(a!)
 * Tensor.digamma_ */
static inline cfx_var cfx_digamma__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_digamma_, args, 1);
}
#define cfx_digamma_(s, self) cfx_digamma__at(CFX_HERE(s), cfx_v(self))

/* floor(Tensor self) -> Tensor
 * torch.floor, Tensor.floor */
static inline cfx_var cfx_floor_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_floor, args, 1);
}
#define cfx_floor(s, self) cfx_floor_at(CFX_HERE(s), cfx_v(self))

/* floor_(Tensor(a!) self) -> Tensor(a!)
 * torch.floor_, Tensor.floor_ */
static inline cfx_var cfx_floor__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_floor_, args, 1);
}
#define cfx_floor_(s, self) cfx_floor__at(CFX_HERE(s), cfx_v(self))

/* ceil(Tensor self) -> Tensor
 * torch.ceil, Tensor.ceil */
static inline cfx_var cfx_ceil_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_ceil, args, 1);
}
#define cfx_ceil(s, self) cfx_ceil_at(CFX_HERE(s), cfx_v(self))

/* ceil_(Tensor(a!) self) -> Tensor(a!)
 * torch.ceil_, Tensor.ceil_ */
static inline cfx_var cfx_ceil__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_ceil_, args, 1);
}
#define cfx_ceil_(s, self) cfx_ceil__at(CFX_HERE(s), cfx_v(self))

/* round(Tensor self, *, int decimals=0) -> Tensor
 * torch.round, Tensor.round, builtins.round */
typedef struct cfx_round_args { cfx_var decimals; } cfx_round_args;
static inline cfx_var cfx_round_at(cfx_at at, cfx_var self, cfx_round_args o)
{
    const cfx_var args[] = {self, o.decimals};
    return cfx_apply_at(at, CFX_OPID_round, args, 2);
}
#define cfx_round(s, self, ...)                                                                    \
    cfx_round_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_round_args, __VA_ARGS__))

/* round_(Tensor(a!) self, *, int decimals=0) -> Tensor(a!)
 * torch.round_, Tensor.round_ */
typedef struct cfx_round__args { cfx_var decimals; } cfx_round__args;
static inline cfx_var cfx_round__at(cfx_at at, cfx_var self, cfx_round__args o)
{
    const cfx_var args[] = {self, o.decimals};
    return cfx_apply_at(at, CFX_OPID_round_, args, 2);
}
#define cfx_round_(s, self, ...)                                                                   \
    cfx_round__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_round__args, __VA_ARGS__))

/* trunc(Tensor self) -> Tensor
 * torch.trunc, Tensor.trunc, torch.fix, Tensor.fix */
static inline cfx_var cfx_trunc_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_trunc, args, 1);
}
#define cfx_trunc(s, self) cfx_trunc_at(CFX_HERE(s), cfx_v(self))

/* trunc_(Tensor(a!) self) -> Tensor(a!)
 * torch.trunc_, Tensor.trunc_, torch.fix_, Tensor.fix_ */
static inline cfx_var cfx_trunc__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_trunc_, args, 1);
}
#define cfx_trunc_(s, self) cfx_trunc__at(CFX_HERE(s), cfx_v(self))

/* frac(Tensor self) -> Tensor
 * torch.frac, Tensor.frac */
static inline cfx_var cfx_frac_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_frac, args, 1);
}
#define cfx_frac(s, self) cfx_frac_at(CFX_HERE(s), cfx_v(self))

/* frac_(Tensor(a!) self) -> Tensor(a!)
 * torch.frac_, Tensor.frac_ */
static inline cfx_var cfx_frac__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_frac_, args, 1);
}
#define cfx_frac_(s, self) cfx_frac__at(CFX_HERE(s), cfx_v(self))

/* clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor
 * torch.clamp, Tensor.clamp, torch.clip, Tensor.clip */
typedef struct cfx_clamp_args { cfx_var min, max; } cfx_clamp_args;
static inline cfx_var cfx_clamp_at(cfx_at at, cfx_var self, cfx_clamp_args o)
{
    const cfx_var args[] = {self, o.min, o.max};
    return cfx_apply_at(at, CFX_OPID_clamp, args, 3);
}
#define cfx_clamp(s, self, ...)                                                                    \
    cfx_clamp_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_clamp_args, __VA_ARGS__))

/* clamp_(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor(a!)
 * torch.clamp_, Tensor.clamp_, torch.clip_, Tensor.clip_ */
typedef struct cfx_clamp__args { cfx_var min, max; } cfx_clamp__args;
static inline cfx_var cfx_clamp__at(cfx_at at, cfx_var self, cfx_clamp__args o)
{
    const cfx_var args[] = {self, o.min, o.max};
    return cfx_apply_at(at, CFX_OPID_clamp_, args, 3);
}
#define cfx_clamp_(s, self, ...)                                                                   \
    cfx_clamp__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_clamp__args, __VA_ARGS__))

/* clamp_min(Tensor self, Scalar min) -> Tensor
 * torch.clamp_min, Tensor.clamp_min */
static inline cfx_var cfx_clamp_min_at(cfx_at at, cfx_var self, cfx_var min)
{
    const cfx_var args[] = {self, min};
    return cfx_apply_at(at, CFX_OPID_clamp_min, args, 2);
}
#define cfx_clamp_min(s, self, min) cfx_clamp_min_at(CFX_HERE(s), cfx_v(self), cfx_v(min))

/* clamp_min_(Tensor(a!) self, Scalar min) -> Tensor(a!)
 * torch.clamp_min_, Tensor.clamp_min_ */
static inline cfx_var cfx_clamp_min__at(cfx_at at, cfx_var self, cfx_var min)
{
    const cfx_var args[] = {self, min};
    return cfx_apply_at(at, CFX_OPID_clamp_min_, args, 2);
}
#define cfx_clamp_min_(s, self, min) cfx_clamp_min__at(CFX_HERE(s), cfx_v(self), cfx_v(min))

/* clamp_max(Tensor self, Scalar max) -> Tensor
 * torch.clamp_max, Tensor.clamp_max */
static inline cfx_var cfx_clamp_max_at(cfx_at at, cfx_var self, cfx_var max)
{
    const cfx_var args[] = {self, max};
    return cfx_apply_at(at, CFX_OPID_clamp_max, args, 2);
}
#define cfx_clamp_max(s, self, max) cfx_clamp_max_at(CFX_HERE(s), cfx_v(self), cfx_v(max))

/* clamp_max_(Tensor(a!) self, Scalar max) -> Tensor(a!)
 * torch.clamp_max_, Tensor.clamp_max_ */
static inline cfx_var cfx_clamp_max__at(cfx_at at, cfx_var self, cfx_var max)
{
    const cfx_var args[] = {self, max};
    return cfx_apply_at(at, CFX_OPID_clamp_max_, args, 2);
}
#define cfx_clamp_max_(s, self, max) cfx_clamp_max__at(CFX_HERE(s), cfx_v(self), cfx_v(max))

/* maximum(Tensor self, Tensor other) -> Tensor
 * torch.maximum, Tensor.maximum */
static inline cfx_var cfx_maximum_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_maximum, args, 2);
}
#define cfx_maximum(s, self, other) cfx_maximum_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* minimum(Tensor self, Tensor other) -> Tensor
 * torch.minimum, Tensor.minimum */
static inline cfx_var cfx_minimum_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_minimum, args, 2);
}
#define cfx_minimum(s, self, other) cfx_minimum_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* fmax(Tensor self, Tensor other) -> Tensor
 * torch.fmax, Tensor.fmax */
static inline cfx_var cfx_fmax_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_fmax, args, 2);
}
#define cfx_fmax(s, self, other) cfx_fmax_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* fmin(Tensor self, Tensor other) -> Tensor
 * torch.fmin, Tensor.fmin */
static inline cfx_var cfx_fmin_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_fmin, args, 2);
}
#define cfx_fmin(s, self, other) cfx_fmin_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* lerp(Tensor self, Tensor end, Tensor weight) -> Tensor
 * torch.lerp, Tensor.lerp */
static inline cfx_var cfx_lerp_at(cfx_at at, cfx_var self, cfx_var end, cfx_var weight)
{
    const cfx_var args[] = {self, end, weight};
    return cfx_apply_at(at, CFX_OPID_lerp, args, 3);
}
#define cfx_lerp(s, self, end, weight)                                                             \
    cfx_lerp_at(CFX_HERE(s), cfx_v(self), cfx_v(end), cfx_v(weight))

/* lerp_(Tensor(a!) self, Tensor end, Tensor weight) -> Tensor(a!)
 * Tensor.lerp_ */
static inline cfx_var cfx_lerp__at(cfx_at at, cfx_var self, cfx_var end, cfx_var weight)
{
    const cfx_var args[] = {self, end, weight};
    return cfx_apply_at(at, CFX_OPID_lerp_, args, 3);
}
#define cfx_lerp_(s, self, end, weight)                                                            \
    cfx_lerp__at(CFX_HERE(s), cfx_v(self), cfx_v(end), cfx_v(weight))

/* addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor
 * torch.addcmul, Tensor.addcmul */
typedef struct cfx_addcmul_args { cfx_var value; } cfx_addcmul_args;
static inline cfx_var cfx_addcmul_at(cfx_at at, cfx_var self, cfx_var tensor1, cfx_var tensor2,
        cfx_addcmul_args o)
{
    const cfx_var args[] = {self, tensor1, tensor2, o.value};
    return cfx_apply_at(at, CFX_OPID_addcmul, args, 4);
}
#define cfx_addcmul(s, self, tensor1, tensor2, ...)                                                \
    cfx_addcmul_at(CFX_HERE(s), cfx_v(self), cfx_v(tensor1), cfx_v(tensor2),                       \
        CFX_OPTIONS(cfx_addcmul_args, __VA_ARGS__))

/* addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)
 * Tensor.addcmul_ */
typedef struct cfx_addcmul__args { cfx_var value; } cfx_addcmul__args;
static inline cfx_var cfx_addcmul__at(cfx_at at, cfx_var self, cfx_var tensor1, cfx_var tensor2,
        cfx_addcmul__args o)
{
    const cfx_var args[] = {self, tensor1, tensor2, o.value};
    return cfx_apply_at(at, CFX_OPID_addcmul_, args, 4);
}
#define cfx_addcmul_(s, self, tensor1, tensor2, ...)                                               \
    cfx_addcmul__at(CFX_HERE(s), cfx_v(self), cfx_v(tensor1), cfx_v(tensor2),                      \
        CFX_OPTIONS(cfx_addcmul__args, __VA_ARGS__))

/* addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor
 * torch.addcdiv, Tensor.addcdiv */
typedef struct cfx_addcdiv_args { cfx_var value; } cfx_addcdiv_args;
static inline cfx_var cfx_addcdiv_at(cfx_at at, cfx_var self, cfx_var tensor1, cfx_var tensor2,
        cfx_addcdiv_args o)
{
    const cfx_var args[] = {self, tensor1, tensor2, o.value};
    return cfx_apply_at(at, CFX_OPID_addcdiv, args, 4);
}
#define cfx_addcdiv(s, self, tensor1, tensor2, ...)                                                \
    cfx_addcdiv_at(CFX_HERE(s), cfx_v(self), cfx_v(tensor1), cfx_v(tensor2),                       \
        CFX_OPTIONS(cfx_addcdiv_args, __VA_ARGS__))

/* addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor(a!)
 * Tensor.addcdiv_ */
typedef struct cfx_addcdiv__args { cfx_var value; } cfx_addcdiv__args;
static inline cfx_var cfx_addcdiv__at(cfx_at at, cfx_var self, cfx_var tensor1, cfx_var tensor2,
        cfx_addcdiv__args o)
{
    const cfx_var args[] = {self, tensor1, tensor2, o.value};
    return cfx_apply_at(at, CFX_OPID_addcdiv_, args, 4);
}
#define cfx_addcdiv_(s, self, tensor1, tensor2, ...)                                               \
    cfx_addcdiv__at(CFX_HERE(s), cfx_v(self), cfx_v(tensor1), cfx_v(tensor2),                      \
        CFX_OPTIONS(cfx_addcdiv__args, __VA_ARGS__))

/* nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor
 * torch.nan_to_num, Tensor.nan_to_num */
typedef struct cfx_nan_to_num_args { cfx_var nan, posinf, neginf; } cfx_nan_to_num_args;
static inline cfx_var cfx_nan_to_num_at(cfx_at at, cfx_var self, cfx_nan_to_num_args o)
{
    const cfx_var args[] = {self, o.nan, o.posinf, o.neginf};
    return cfx_apply_at(at, CFX_OPID_nan_to_num, args, 4);
}
#define cfx_nan_to_num(s, self, ...)                                                               \
    cfx_nan_to_num_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_nan_to_num_args, __VA_ARGS__))

/* nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, float? neginf=None) ->
 *     Tensor(a!)
 * torch.nan_to_num_, Tensor.nan_to_num_ */
typedef struct cfx_nan_to_num__args { cfx_var nan, posinf, neginf; } cfx_nan_to_num__args;
static inline cfx_var cfx_nan_to_num__at(cfx_at at, cfx_var self, cfx_nan_to_num__args o)
{
    const cfx_var args[] = {self, o.nan, o.posinf, o.neginf};
    return cfx_apply_at(at, CFX_OPID_nan_to_num_, args, 4);
}
#define cfx_nan_to_num_(s, self, ...)                                                              \
    cfx_nan_to_num__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_nan_to_num__args,                 \
        __VA_ARGS__))

/* hypot(Tensor self, Tensor other) -> Tensor
 * torch.hypot, Tensor.hypot */
static inline cfx_var cfx_hypot_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_hypot, args, 2);
}
#define cfx_hypot(s, self, other) cfx_hypot_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* hypot_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.hypot_ */
static inline cfx_var cfx_hypot__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_hypot_, args, 2);
}
#define cfx_hypot_(s, self, other) cfx_hypot__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* copysign(Tensor self, Tensor other) -> Tensor
 * torch.copysign, Tensor.copysign */
static inline cfx_var cfx_copysign_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_copysign, args, 2);
}
#define cfx_copysign(s, self, other) cfx_copysign_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* copysign_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.copysign_ */
static inline cfx_var cfx_copysign__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_copysign_, args, 2);
}
#define cfx_copysign_(s, self, other) cfx_copysign__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* logaddexp(Tensor self, Tensor other) -> Tensor
 * torch.logaddexp, Tensor.logaddexp */
static inline cfx_var cfx_logaddexp_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_logaddexp, args, 2);
}
#define cfx_logaddexp(s, self, other) cfx_logaddexp_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* logaddexp2(Tensor self, Tensor other) -> Tensor
 * torch.logaddexp2, Tensor.logaddexp2 */
static inline cfx_var cfx_logaddexp2_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_logaddexp2, args, 2);
}
#define cfx_logaddexp2(s, self, other) cfx_logaddexp2_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* xlogy(Tensor self, Tensor other) -> Tensor
 * torch.xlogy, Tensor.xlogy */
static inline cfx_var cfx_xlogy_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_xlogy, args, 2);
}
#define cfx_xlogy(s, self, other) cfx_xlogy_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* xlogy_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * torch.xlogy_, Tensor.xlogy_ */
static inline cfx_var cfx_xlogy__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_xlogy_, args, 2);
}
#define cfx_xlogy_(s, self, other) cfx_xlogy__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* deg2rad(Tensor self) -> Tensor
 * torch.deg2rad, Tensor.deg2rad */
static inline cfx_var cfx_deg2rad_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_deg2rad, args, 1);
}
#define cfx_deg2rad(s, self) cfx_deg2rad_at(CFX_HERE(s), cfx_v(self))

/* deg2rad_(Tensor(a!) self) -> Tensor(a!)
 * torch.deg2rad_, Tensor.deg2rad_ */
static inline cfx_var cfx_deg2rad__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_deg2rad_, args, 1);
}
#define cfx_deg2rad_(s, self) cfx_deg2rad__at(CFX_HERE(s), cfx_v(self))

/* rad2deg(Tensor self) -> Tensor
 * torch.rad2deg, Tensor.rad2deg */
static inline cfx_var cfx_rad2deg_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_rad2deg, args, 1);
}
#define cfx_rad2deg(s, self) cfx_rad2deg_at(CFX_HERE(s), cfx_v(self))

/* rad2deg_(Tensor(a!) self) -> Tensor(a!)
 * torch.rad2deg_, Tensor.rad2deg_ */
static inline cfx_var cfx_rad2deg__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_rad2deg_, args, 1);
}
#define cfx_rad2deg_(s, self) cfx_rad2deg__at(CFX_HERE(s), cfx_v(self))

/* logit(Tensor self, float? eps=None) -> Tensor
 * torch.logit, Tensor.logit */
typedef struct cfx_logit_args { cfx_var eps; } cfx_logit_args;
static inline cfx_var cfx_logit_at(cfx_at at, cfx_var self, cfx_logit_args o)
{
    const cfx_var args[] = {self, o.eps};
    return cfx_apply_at(at, CFX_OPID_logit, args, 2);
}
#define cfx_logit(s, self, ...)                                                                    \
    cfx_logit_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_logit_args, __VA_ARGS__))

/* logit_(Tensor(a!) self, float? eps=None) -> Tensor(a!)
 * torch.logit_, Tensor.logit_ */
typedef struct cfx_logit__args { cfx_var eps; } cfx_logit__args;
static inline cfx_var cfx_logit__at(cfx_at at, cfx_var self, cfx_logit__args o)
{
    const cfx_var args[] = {self, o.eps};
    return cfx_apply_at(at, CFX_OPID_logit_, args, 2);
}
#define cfx_logit_(s, self, ...)                                                                   \
    cfx_logit__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_logit__args, __VA_ARGS__))

/* i0(Tensor self) -> Tensor
 * torch.i0, Tensor.i0 */
static inline cfx_var cfx_i0_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_i0, args, 1);
}
#define cfx_i0(s, self) cfx_i0_at(CFX_HERE(s), cfx_v(self))

/* i0_(Tensor(a!) self) -> Tensor(a!)
 * torch.i0_, Tensor.i0_ */
static inline cfx_var cfx_i0__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_i0_, args, 1);
}
#define cfx_i0_(s, self) cfx_i0__at(CFX_HERE(s), cfx_v(self))

/* ---- Comparison ----------------------------------------------------------------------------- */

/* eq(Tensor self, Tensor other) -> Tensor
 * torch.eq, Tensor.eq, operator.eq */
static inline cfx_var cfx_eq_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_eq, args, 2);
}
#define cfx_eq(s, self, other) cfx_eq_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* eq_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.eq_ */
static inline cfx_var cfx_eq__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_eq_, args, 2);
}
#define cfx_eq_(s, self, other) cfx_eq__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* ne(Tensor self, Tensor other) -> Tensor
 * torch.ne, Tensor.ne, torch.not_equal, Tensor.not_equal */
static inline cfx_var cfx_ne_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_ne, args, 2);
}
#define cfx_ne(s, self, other) cfx_ne_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* ne_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.ne_, Tensor.not_equal_ */
static inline cfx_var cfx_ne__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_ne_, args, 2);
}
#define cfx_ne_(s, self, other) cfx_ne__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* lt(Tensor self, Tensor other) -> Tensor
 * torch.lt, Tensor.lt, torch.less, Tensor.less */
static inline cfx_var cfx_lt_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_lt, args, 2);
}
#define cfx_lt(s, self, other) cfx_lt_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* lt_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.lt_, Tensor.less_ */
static inline cfx_var cfx_lt__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_lt_, args, 2);
}
#define cfx_lt_(s, self, other) cfx_lt__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* le(Tensor self, Tensor other) -> Tensor
 * torch.le, Tensor.le, torch.less_equal, Tensor.less_equal */
static inline cfx_var cfx_le_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_le, args, 2);
}
#define cfx_le(s, self, other) cfx_le_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* le_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.le_, Tensor.less_equal_ */
static inline cfx_var cfx_le__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_le_, args, 2);
}
#define cfx_le_(s, self, other) cfx_le__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* gt(Tensor self, Tensor other) -> Tensor
 * torch.gt, Tensor.gt, torch.greater, Tensor.greater */
static inline cfx_var cfx_gt_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_gt, args, 2);
}
#define cfx_gt(s, self, other) cfx_gt_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* gt_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.gt_, Tensor.greater_ */
static inline cfx_var cfx_gt__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_gt_, args, 2);
}
#define cfx_gt_(s, self, other) cfx_gt__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* ge(Tensor self, Tensor other) -> Tensor
 * torch.ge, Tensor.ge, torch.greater_equal, Tensor.greater_equal */
static inline cfx_var cfx_ge_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_ge, args, 2);
}
#define cfx_ge(s, self, other) cfx_ge_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* ge_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.ge_, Tensor.greater_equal_ */
static inline cfx_var cfx_ge__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_ge_, args, 2);
}
#define cfx_ge_(s, self, other) cfx_ge__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool
 *     equal_nan=False) -> Tensor
 * torch.isclose, Tensor.isclose */
typedef struct cfx_isclose_args { cfx_var rtol, atol, equal_nan; } cfx_isclose_args;
static inline cfx_var cfx_isclose_at(cfx_at at, cfx_var self, cfx_var other, cfx_isclose_args o)
{
    const cfx_var args[] = {self, other, o.rtol, o.atol, o.equal_nan};
    return cfx_apply_at(at, CFX_OPID_isclose, args, 5);
}
#define cfx_isclose(s, self, other, ...)                                                           \
    cfx_isclose_at(CFX_HERE(s), cfx_v(self), cfx_v(other), CFX_OPTIONS(cfx_isclose_args,           \
        __VA_ARGS__))

/* isnan(Tensor self) -> Tensor
 * torch.isnan, Tensor.isnan */
static inline cfx_var cfx_isnan_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_isnan, args, 1);
}
#define cfx_isnan(s, self) cfx_isnan_at(CFX_HERE(s), cfx_v(self))

/* isinf(Tensor self) -> Tensor
 * torch.isinf, Tensor.isinf */
static inline cfx_var cfx_isinf_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_isinf, args, 1);
}
#define cfx_isinf(s, self) cfx_isinf_at(CFX_HERE(s), cfx_v(self))

/* isfinite(Tensor self) -> Tensor
 * torch.isfinite, Tensor.isfinite */
static inline cfx_var cfx_isfinite_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_isfinite, args, 1);
}
#define cfx_isfinite(s, self) cfx_isfinite_at(CFX_HERE(s), cfx_v(self))

/* equal(Tensor self, Tensor other) -> bool
 * torch.equal, Tensor.equal */
static inline cfx_var cfx_equal_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_equal, args, 2);
}
#define cfx_equal(s, self, other) cfx_equal_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool
 *     equal_nan=False) -> bool
 * torch.allclose, Tensor.allclose */
typedef struct cfx_allclose_args { cfx_var rtol, atol, equal_nan; } cfx_allclose_args;
static inline cfx_var cfx_allclose_at(cfx_at at, cfx_var self, cfx_var other, cfx_allclose_args o)
{
    const cfx_var args[] = {self, other, o.rtol, o.atol, o.equal_nan};
    return cfx_apply_at(at, CFX_OPID_allclose, args, 5);
}
#define cfx_allclose(s, self, other, ...)                                                          \
    cfx_allclose_at(CFX_HERE(s), cfx_v(self), cfx_v(other), CFX_OPTIONS(cfx_allclose_args,         \
        __VA_ARGS__))

/* isin(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) ->
 *     Tensor
 * torch.isin */
typedef struct cfx_isin_args { cfx_var assume_unique, invert; } cfx_isin_args;
static inline cfx_var cfx_isin_at(cfx_at at, cfx_var elements, cfx_var test_elements, cfx_isin_args
        o)
{
    const cfx_var args[] = {elements, test_elements, o.assume_unique, o.invert};
    return cfx_apply_at(at, CFX_OPID_isin, args, 4);
}
#define cfx_isin(s, elements, test_elements, ...)                                                  \
    cfx_isin_at(CFX_HERE(s), cfx_v(elements), cfx_v(test_elements), CFX_OPTIONS(cfx_isin_args,     \
        __VA_ARGS__))

/* ---- Logic and bits ------------------------------------------------------------------------- */

/* logical_and(Tensor self, Tensor other) -> Tensor
 * torch.logical_and, Tensor.logical_and */
static inline cfx_var cfx_logical_and_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_logical_and, args, 2);
}
#define cfx_logical_and(s, self, other) cfx_logical_and_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* logical_and_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.logical_and_ */
static inline cfx_var cfx_logical_and__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_logical_and_, args, 2);
}
#define cfx_logical_and_(s, self, other) cfx_logical_and__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* logical_or(Tensor self, Tensor other) -> Tensor
 * torch.logical_or, Tensor.logical_or */
static inline cfx_var cfx_logical_or_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_logical_or, args, 2);
}
#define cfx_logical_or(s, self, other) cfx_logical_or_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* logical_or_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.logical_or_ */
static inline cfx_var cfx_logical_or__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_logical_or_, args, 2);
}
#define cfx_logical_or_(s, self, other) cfx_logical_or__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* logical_xor(Tensor self, Tensor other) -> Tensor
 * torch.logical_xor, Tensor.logical_xor */
static inline cfx_var cfx_logical_xor_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_logical_xor, args, 2);
}
#define cfx_logical_xor(s, self, other) cfx_logical_xor_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* logical_xor_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.logical_xor_ */
static inline cfx_var cfx_logical_xor__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_logical_xor_, args, 2);
}
#define cfx_logical_xor_(s, self, other) cfx_logical_xor__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* logical_not(Tensor self) -> Tensor
 * torch.logical_not, Tensor.logical_not */
static inline cfx_var cfx_logical_not_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_logical_not, args, 1);
}
#define cfx_logical_not(s, self) cfx_logical_not_at(CFX_HERE(s), cfx_v(self))

/* logical_not_(Tensor(a!) self) -> Tensor(a!)
 * Tensor.logical_not_ */
static inline cfx_var cfx_logical_not__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_logical_not_, args, 1);
}
#define cfx_logical_not_(s, self) cfx_logical_not__at(CFX_HERE(s), cfx_v(self))

/* bitwise_and(Tensor self, Tensor other) -> Tensor
 * torch.bitwise_and, Tensor.bitwise_and, operator.and_ */
static inline cfx_var cfx_bitwise_and_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_bitwise_and, args, 2);
}
#define cfx_bitwise_and(s, self, other) cfx_bitwise_and_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* bitwise_and_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.bitwise_and_, operator.iand */
static inline cfx_var cfx_bitwise_and__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_bitwise_and_, args, 2);
}
#define cfx_bitwise_and_(s, self, other) cfx_bitwise_and__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* bitwise_or(Tensor self, Tensor other) -> Tensor
 * torch.bitwise_or, Tensor.bitwise_or, operator.or_ */
static inline cfx_var cfx_bitwise_or_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_bitwise_or, args, 2);
}
#define cfx_bitwise_or(s, self, other) cfx_bitwise_or_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* bitwise_or_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.bitwise_or_, operator.ior */
static inline cfx_var cfx_bitwise_or__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_bitwise_or_, args, 2);
}
#define cfx_bitwise_or_(s, self, other) cfx_bitwise_or__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* bitwise_xor(Tensor self, Tensor other) -> Tensor
 * torch.bitwise_xor, Tensor.bitwise_xor, operator.xor */
static inline cfx_var cfx_bitwise_xor_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_bitwise_xor, args, 2);
}
#define cfx_bitwise_xor(s, self, other) cfx_bitwise_xor_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* bitwise_xor_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.bitwise_xor_, operator.ixor */
static inline cfx_var cfx_bitwise_xor__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_bitwise_xor_, args, 2);
}
#define cfx_bitwise_xor_(s, self, other) cfx_bitwise_xor__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* bitwise_not(Tensor self) -> Tensor
 * torch.bitwise_not, Tensor.bitwise_not, operator.invert, operator.inv */
static inline cfx_var cfx_bitwise_not_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_bitwise_not, args, 1);
}
#define cfx_bitwise_not(s, self) cfx_bitwise_not_at(CFX_HERE(s), cfx_v(self))

/* bitwise_not_(Tensor(a!) self) -> Tensor(a!)
 * Tensor.bitwise_not_ */
static inline cfx_var cfx_bitwise_not__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_bitwise_not_, args, 1);
}
#define cfx_bitwise_not_(s, self) cfx_bitwise_not__at(CFX_HERE(s), cfx_v(self))

/* bitwise_left_shift(Tensor self, Tensor other) -> Tensor
 * torch.bitwise_left_shift, Tensor.bitwise_left_shift, operator.lshift */
static inline cfx_var cfx_bitwise_left_shift_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_bitwise_left_shift, args, 2);
}
#define cfx_bitwise_left_shift(s, self, other)                                                     \
    cfx_bitwise_left_shift_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* bitwise_left_shift_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.bitwise_left_shift_, operator.ilshift */
static inline cfx_var cfx_bitwise_left_shift__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_bitwise_left_shift_, args, 2);
}
#define cfx_bitwise_left_shift_(s, self, other)                                                    \
    cfx_bitwise_left_shift__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* bitwise_right_shift(Tensor self, Tensor other) -> Tensor
 * torch.bitwise_right_shift, Tensor.bitwise_right_shift, operator.rshift */
static inline cfx_var cfx_bitwise_right_shift_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_bitwise_right_shift, args, 2);
}
#define cfx_bitwise_right_shift(s, self, other)                                                    \
    cfx_bitwise_right_shift_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* bitwise_right_shift_(Tensor(a!) self, Tensor other) -> Tensor(a!)
 * Tensor.bitwise_right_shift_, operator.irshift */
static inline cfx_var cfx_bitwise_right_shift__at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_bitwise_right_shift_, args, 2);
}
#define cfx_bitwise_right_shift_(s, self, other)                                                   \
    cfx_bitwise_right_shift__at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* ---- Activations ---------------------------------------------------------------------------- */

/* relu(Tensor self) -> Tensor
 * torch.relu, torch.nn.functional.relu, Tensor.relu */
static inline cfx_var cfx_relu_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_relu, args, 1);
}
#define cfx_relu(s, self) cfx_relu_at(CFX_HERE(s), cfx_v(self))

/* relu_(Tensor(a!) self) -> Tensor(a!)
 * torch.relu_, torch.nn.functional.relu_, Tensor.relu_ */
static inline cfx_var cfx_relu__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_relu_, args, 1);
}
#define cfx_relu_(s, self) cfx_relu__at(CFX_HERE(s), cfx_v(self))

/* relu6(Tensor self) -> Tensor
 * torch.nn.functional.relu6 */
static inline cfx_var cfx_relu6_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_relu6, args, 1);
}
#define cfx_relu6(s, self) cfx_relu6_at(CFX_HERE(s), cfx_v(self))

/* relu6_(Tensor(a!) self) -> Tensor(a!) */
static inline cfx_var cfx_relu6__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_relu6_, args, 1);
}
#define cfx_relu6_(s, self) cfx_relu6__at(CFX_HERE(s), cfx_v(self))

/* sigmoid(Tensor self) -> Tensor
 * torch.sigmoid, torch.nn.functional.sigmoid, Tensor.sigmoid */
static inline cfx_var cfx_sigmoid_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_sigmoid, args, 1);
}
#define cfx_sigmoid(s, self) cfx_sigmoid_at(CFX_HERE(s), cfx_v(self))

/* sigmoid_(Tensor(a!) self) -> Tensor(a!)
 * torch.sigmoid_, Tensor.sigmoid_ */
static inline cfx_var cfx_sigmoid__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_sigmoid_, args, 1);
}
#define cfx_sigmoid_(s, self) cfx_sigmoid__at(CFX_HERE(s), cfx_v(self))

/* tanh(Tensor self) -> Tensor
 * torch.tanh, torch.nn.functional.tanh, Tensor.tanh */
static inline cfx_var cfx_tanh_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_tanh, args, 1);
}
#define cfx_tanh(s, self) cfx_tanh_at(CFX_HERE(s), cfx_v(self))

/* tanh_(Tensor(a!) self) -> Tensor(a!)
 * torch.tanh_, Tensor.tanh_ */
static inline cfx_var cfx_tanh__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_tanh_, args, 1);
}
#define cfx_tanh_(s, self) cfx_tanh__at(CFX_HERE(s), cfx_v(self))

/* elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor
 * torch.nn.functional.elu */
typedef struct cfx_elu_args { cfx_var alpha, scale, input_scale; } cfx_elu_args;
static inline cfx_var cfx_elu_at(cfx_at at, cfx_var self, cfx_elu_args o)
{
    const cfx_var args[] = {self, o.alpha, o.scale, o.input_scale};
    return cfx_apply_at(at, CFX_OPID_elu, args, 4);
}
#define cfx_elu(s, self, ...)                                                                      \
    cfx_elu_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_elu_args, __VA_ARGS__))

/* elu_(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor(a!)
 * torch.nn.functional.elu_ */
typedef struct cfx_elu__args { cfx_var alpha, scale, input_scale; } cfx_elu__args;
static inline cfx_var cfx_elu__at(cfx_at at, cfx_var self, cfx_elu__args o)
{
    const cfx_var args[] = {self, o.alpha, o.scale, o.input_scale};
    return cfx_apply_at(at, CFX_OPID_elu_, args, 4);
}
#define cfx_elu_(s, self, ...)                                                                     \
    cfx_elu__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_elu__args, __VA_ARGS__))

/* selu(Tensor self) -> Tensor
 * torch.selu, torch.nn.functional.selu */
static inline cfx_var cfx_selu_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_selu, args, 1);
}
#define cfx_selu(s, self) cfx_selu_at(CFX_HERE(s), cfx_v(self))

/* selu_(Tensor(a!) self) -> Tensor(a!)
 * torch.selu_, torch.nn.functional.selu_ */
static inline cfx_var cfx_selu__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_selu_, args, 1);
}
#define cfx_selu_(s, self) cfx_selu__at(CFX_HERE(s), cfx_v(self))

/* celu(Tensor self, Scalar alpha=1.) -> Tensor
 * torch.celu, torch.nn.functional.celu */
typedef struct cfx_celu_args { cfx_var alpha; } cfx_celu_args;
static inline cfx_var cfx_celu_at(cfx_at at, cfx_var self, cfx_celu_args o)
{
    const cfx_var args[] = {self, o.alpha};
    return cfx_apply_at(at, CFX_OPID_celu, args, 2);
}
#define cfx_celu(s, self, ...)                                                                     \
    cfx_celu_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_celu_args, __VA_ARGS__))

/* celu_(Tensor(a!) self, Scalar alpha=1.) -> Tensor(a!)
 * torch.celu_, torch.nn.functional.celu_ */
typedef struct cfx_celu__args { cfx_var alpha; } cfx_celu__args;
static inline cfx_var cfx_celu__at(cfx_at at, cfx_var self, cfx_celu__args o)
{
    const cfx_var args[] = {self, o.alpha};
    return cfx_apply_at(at, CFX_OPID_celu_, args, 2);
}
#define cfx_celu_(s, self, ...)                                                                    \
    cfx_celu__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_celu__args, __VA_ARGS__))

/* gelu(Tensor self, *, str approximate='none') -> Tensor
 * torch.nn.functional.gelu */
typedef struct cfx_gelu_args { cfx_var approximate; } cfx_gelu_args;
static inline cfx_var cfx_gelu_at(cfx_at at, cfx_var self, cfx_gelu_args o)
{
    const cfx_var args[] = {self, o.approximate};
    return cfx_apply_at(at, CFX_OPID_gelu, args, 2);
}
#define cfx_gelu(s, self, ...)                                                                     \
    cfx_gelu_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_gelu_args, __VA_ARGS__))

/* gelu_(Tensor(a!) self, *, str approximate='none') -> Tensor(a!) */
typedef struct cfx_gelu__args { cfx_var approximate; } cfx_gelu__args;
static inline cfx_var cfx_gelu__at(cfx_at at, cfx_var self, cfx_gelu__args o)
{
    const cfx_var args[] = {self, o.approximate};
    return cfx_apply_at(at, CFX_OPID_gelu_, args, 2);
}
#define cfx_gelu_(s, self, ...)                                                                    \
    cfx_gelu__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_gelu__args, __VA_ARGS__))

/* silu(Tensor self) -> Tensor
 * torch.nn.functional.silu */
static inline cfx_var cfx_silu_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_silu, args, 1);
}
#define cfx_silu(s, self) cfx_silu_at(CFX_HERE(s), cfx_v(self))

/* silu_(Tensor(a!) self) -> Tensor(a!) */
static inline cfx_var cfx_silu__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_silu_, args, 1);
}
#define cfx_silu_(s, self) cfx_silu__at(CFX_HERE(s), cfx_v(self))

/* mish(Tensor self) -> Tensor
 * torch.nn.functional.mish */
static inline cfx_var cfx_mish_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_mish, args, 1);
}
#define cfx_mish(s, self) cfx_mish_at(CFX_HERE(s), cfx_v(self))

/* mish_(Tensor(a!) self) -> Tensor(a!) */
static inline cfx_var cfx_mish__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_mish_, args, 1);
}
#define cfx_mish_(s, self) cfx_mish__at(CFX_HERE(s), cfx_v(self))

/* leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor
 * torch.nn.functional.leaky_relu */
typedef struct cfx_leaky_relu_args { cfx_var negative_slope; } cfx_leaky_relu_args;
static inline cfx_var cfx_leaky_relu_at(cfx_at at, cfx_var self, cfx_leaky_relu_args o)
{
    const cfx_var args[] = {self, o.negative_slope};
    return cfx_apply_at(at, CFX_OPID_leaky_relu, args, 2);
}
#define cfx_leaky_relu(s, self, ...)                                                               \
    cfx_leaky_relu_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_leaky_relu_args, __VA_ARGS__))

/* leaky_relu_(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor(a!)
 * torch.nn.functional.leaky_relu_ */
typedef struct cfx_leaky_relu__args { cfx_var negative_slope; } cfx_leaky_relu__args;
static inline cfx_var cfx_leaky_relu__at(cfx_at at, cfx_var self, cfx_leaky_relu__args o)
{
    const cfx_var args[] = {self, o.negative_slope};
    return cfx_apply_at(at, CFX_OPID_leaky_relu_, args, 2);
}
#define cfx_leaky_relu_(s, self, ...)                                                              \
    cfx_leaky_relu__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_leaky_relu__args,                 \
        __VA_ARGS__))

/* prelu(Tensor self, Tensor weight) -> Tensor
 * torch.prelu, torch.nn.functional.prelu, Tensor.prelu */
static inline cfx_var cfx_prelu_at(cfx_at at, cfx_var self, cfx_var weight)
{
    const cfx_var args[] = {self, weight};
    return cfx_apply_at(at, CFX_OPID_prelu, args, 2);
}
#define cfx_prelu(s, self, weight) cfx_prelu_at(CFX_HERE(s), cfx_v(self), cfx_v(weight))

/* _prelu_kernel(Tensor self, Tensor weight) -> Tensor */
static inline cfx_var cfx__prelu_kernel_at(cfx_at at, cfx_var self, cfx_var weight)
{
    const cfx_var args[] = {self, weight};
    return cfx_apply_at(at, CFX_OPID__prelu_kernel, args, 2);
}
#define cfx__prelu_kernel(s, self, weight)                                                         \
    cfx__prelu_kernel_at(CFX_HERE(s), cfx_v(self), cfx_v(weight))

/* rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False,
 *     Generator? generator=None) -> Tensor
 * torch.rrelu, torch.nn.functional.rrelu */
typedef struct cfx_rrelu_args { cfx_var lower, upper, training, generator; } cfx_rrelu_args;
static inline cfx_var cfx_rrelu_at(cfx_at at, cfx_var self, cfx_rrelu_args o)
{
    const cfx_var args[] = {self, o.lower, o.upper, o.training, o.generator};
    return cfx_apply_at(at, CFX_OPID_rrelu, args, 5);
}
#define cfx_rrelu(s, self, ...)                                                                    \
    cfx_rrelu_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_rrelu_args, __VA_ARGS__))

/* rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool
 *     training=False, Generator? generator=None) -> Tensor(a!)
 * torch.rrelu_, torch.nn.functional.rrelu_ */
typedef struct cfx_rrelu__args { cfx_var lower, upper, training, generator; } cfx_rrelu__args;
static inline cfx_var cfx_rrelu__at(cfx_at at, cfx_var self, cfx_rrelu__args o)
{
    const cfx_var args[] = {self, o.lower, o.upper, o.training, o.generator};
    return cfx_apply_at(at, CFX_OPID_rrelu_, args, 5);
}
#define cfx_rrelu_(s, self, ...)                                                                   \
    cfx_rrelu__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_rrelu__args, __VA_ARGS__))

/* hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor
 * torch.nn.functional.hardtanh */
typedef struct cfx_hardtanh_args { cfx_var min_val, max_val; } cfx_hardtanh_args;
static inline cfx_var cfx_hardtanh_at(cfx_at at, cfx_var self, cfx_hardtanh_args o)
{
    const cfx_var args[] = {self, o.min_val, o.max_val};
    return cfx_apply_at(at, CFX_OPID_hardtanh, args, 3);
}
#define cfx_hardtanh(s, self, ...)                                                                 \
    cfx_hardtanh_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_hardtanh_args, __VA_ARGS__))

/* hardtanh_(Tensor(a!) self, Scalar min_val=-1, Scalar max_val=1) -> Tensor(a!)
 * torch.nn.functional.hardtanh_ */
typedef struct cfx_hardtanh__args { cfx_var min_val, max_val; } cfx_hardtanh__args;
static inline cfx_var cfx_hardtanh__at(cfx_at at, cfx_var self, cfx_hardtanh__args o)
{
    const cfx_var args[] = {self, o.min_val, o.max_val};
    return cfx_apply_at(at, CFX_OPID_hardtanh_, args, 3);
}
#define cfx_hardtanh_(s, self, ...)                                                                \
    cfx_hardtanh__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_hardtanh__args, __VA_ARGS__))

/* hardsigmoid(Tensor self) -> Tensor
 * torch.nn.functional.hardsigmoid */
static inline cfx_var cfx_hardsigmoid_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_hardsigmoid, args, 1);
}
#define cfx_hardsigmoid(s, self) cfx_hardsigmoid_at(CFX_HERE(s), cfx_v(self))

/* hardsigmoid_(Tensor(a!) self) -> Tensor(a!) */
static inline cfx_var cfx_hardsigmoid__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_hardsigmoid_, args, 1);
}
#define cfx_hardsigmoid_(s, self) cfx_hardsigmoid__at(CFX_HERE(s), cfx_v(self))

/* hardswish(Tensor self) -> Tensor
 * torch.nn.functional.hardswish */
static inline cfx_var cfx_hardswish_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_hardswish, args, 1);
}
#define cfx_hardswish(s, self) cfx_hardswish_at(CFX_HERE(s), cfx_v(self))

/* hardswish_(Tensor(a!) self) -> Tensor(a!) */
static inline cfx_var cfx_hardswish__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_hardswish_, args, 1);
}
#define cfx_hardswish_(s, self) cfx_hardswish__at(CFX_HERE(s), cfx_v(self))

/* hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor
 * torch.hardshrink, torch.nn.functional.hardshrink, Tensor.hardshrink */
typedef struct cfx_hardshrink_args { cfx_var lambd; } cfx_hardshrink_args;
static inline cfx_var cfx_hardshrink_at(cfx_at at, cfx_var self, cfx_hardshrink_args o)
{
    const cfx_var args[] = {self, o.lambd};
    return cfx_apply_at(at, CFX_OPID_hardshrink, args, 2);
}
#define cfx_hardshrink(s, self, ...)                                                               \
    cfx_hardshrink_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_hardshrink_args, __VA_ARGS__))

/* softshrink(Tensor self, Scalar lambd=0.5) -> Tensor
 * torch.nn.functional.softshrink */
typedef struct cfx_softshrink_args { cfx_var lambd; } cfx_softshrink_args;
static inline cfx_var cfx_softshrink_at(cfx_at at, cfx_var self, cfx_softshrink_args o)
{
    const cfx_var args[] = {self, o.lambd};
    return cfx_apply_at(at, CFX_OPID_softshrink, args, 2);
}
#define cfx_softshrink(s, self, ...)                                                               \
    cfx_softshrink_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_softshrink_args, __VA_ARGS__))

/* softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor
 * torch.nn.functional.softplus */
typedef struct cfx_softplus_args { cfx_var beta, threshold; } cfx_softplus_args;
static inline cfx_var cfx_softplus_at(cfx_at at, cfx_var self, cfx_softplus_args o)
{
    const cfx_var args[] = {self, o.beta, o.threshold};
    return cfx_apply_at(at, CFX_OPID_softplus, args, 3);
}
#define cfx_softplus(s, self, ...)                                                                 \
    cfx_softplus_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_softplus_args, __VA_ARGS__))

/* threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor
 * torch.threshold, torch.nn.functional.threshold, torch.nn.functional._threshold */
static inline cfx_var cfx_threshold_at(cfx_at at, cfx_var self, cfx_var threshold, cfx_var value)
{
    const cfx_var args[] = {self, threshold, value};
    return cfx_apply_at(at, CFX_OPID_threshold, args, 3);
}
#define cfx_threshold(s, self, threshold, value)                                                   \
    cfx_threshold_at(CFX_HERE(s), cfx_v(self), cfx_v(threshold), cfx_v(value))

/* threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)
 * torch.threshold_, torch.nn.functional.threshold_ */
static inline cfx_var cfx_threshold__at(cfx_at at, cfx_var self, cfx_var threshold, cfx_var value)
{
    const cfx_var args[] = {self, threshold, value};
    return cfx_apply_at(at, CFX_OPID_threshold_, args, 3);
}
#define cfx_threshold_(s, self, threshold, value)                                                  \
    cfx_threshold__at(CFX_HERE(s), cfx_v(self), cfx_v(threshold), cfx_v(value))

/* log_sigmoid(Tensor self) -> Tensor
 * torch.nn.functional.logsigmoid */
static inline cfx_var cfx_log_sigmoid_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_log_sigmoid, args, 1);
}
#define cfx_log_sigmoid(s, self) cfx_log_sigmoid_at(CFX_HERE(s), cfx_v(self))

/* log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer) */
static inline cfx_var cfx_log_sigmoid_forward_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_log_sigmoid_forward, args, 1);
}
#define cfx_log_sigmoid_forward(s, self) cfx_log_sigmoid_forward_at(CFX_HERE(s), cfx_v(self))

/* tanhshrink(Tensor self) -> Tensor
 * torch.nn.functional.tanhshrink */
static inline cfx_var cfx_tanhshrink_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_tanhshrink, args, 1);
}
#define cfx_tanhshrink(s, self) cfx_tanhshrink_at(CFX_HERE(s), cfx_v(self))

/* softsign(Tensor self) -> Tensor
 * torch.nn.functional.softsign */
static inline cfx_var cfx_softsign_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_softsign, args, 1);
}
#define cfx_softsign(s, self) cfx_softsign_at(CFX_HERE(s), cfx_v(self))

/* glu(Tensor self, int dim=-1) -> Tensor
 * torch.nn.functional.glu */
typedef struct cfx_glu_args { cfx_var dim; } cfx_glu_args;
static inline cfx_var cfx_glu_at(cfx_at at, cfx_var self, cfx_glu_args o)
{
    const cfx_var args[] = {self, o.dim};
    return cfx_apply_at(at, CFX_OPID_glu, args, 2);
}
#define cfx_glu(s, self, ...)                                                                      \
    cfx_glu_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_glu_args, __VA_ARGS__))

/* softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
 * torch.softmax, torch.nn.functional.softmax, Tensor.softmax */
typedef struct cfx_softmax_args { cfx_var dtype; } cfx_softmax_args;
static inline cfx_var cfx_softmax_at(cfx_at at, cfx_var self, cfx_var dim, cfx_softmax_args o)
{
    const cfx_var args[] = {self, dim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_softmax, args, 3);
}
#define cfx_softmax(s, self, dim, ...)                                                             \
    cfx_softmax_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), CFX_OPTIONS(cfx_softmax_args,             \
        __VA_ARGS__))

/* log_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
 * torch.log_softmax, torch.nn.functional.log_softmax, Tensor.log_softmax */
typedef struct cfx_log_softmax_args { cfx_var dtype; } cfx_log_softmax_args;
static inline cfx_var cfx_log_softmax_at(cfx_at at, cfx_var self, cfx_var dim, cfx_log_softmax_args
        o)
{
    const cfx_var args[] = {self, dim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_log_softmax, args, 3);
}
#define cfx_log_softmax(s, self, dim, ...)                                                         \
    cfx_log_softmax_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), CFX_OPTIONS(cfx_log_softmax_args,     \
        __VA_ARGS__))

/* _softmax(Tensor self, int dim, bool half_to_float) -> Tensor
 * torch._softmax */
static inline cfx_var cfx__softmax_at(cfx_at at, cfx_var self, cfx_var dim, cfx_var half_to_float)
{
    const cfx_var args[] = {self, dim, half_to_float};
    return cfx_apply_at(at, CFX_OPID__softmax, args, 3);
}
#define cfx__softmax(s, self, dim, half_to_float)                                                  \
    cfx__softmax_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(half_to_float))

/* _log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
 * torch._log_softmax */
static inline cfx_var cfx__log_softmax_at(cfx_at at, cfx_var self, cfx_var dim, cfx_var
        half_to_float)
{
    const cfx_var args[] = {self, dim, half_to_float};
    return cfx_apply_at(at, CFX_OPID__log_softmax, args, 3);
}
#define cfx__log_softmax(s, self, dim, half_to_float)                                              \
    cfx__log_softmax_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(half_to_float))

/* softmin(Tensor self, int dim, ScalarType? dtype=None) -> Tensor
 * torch.nn.functional.softmin */
typedef struct cfx_softmin_args { cfx_var dtype; } cfx_softmin_args;
static inline cfx_var cfx_softmin_at(cfx_at at, cfx_var self, cfx_var dim, cfx_softmin_args o)
{
    const cfx_var args[] = {self, dim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_softmin, args, 3);
}
#define cfx_softmin(s, self, dim, ...)                                                             \
    cfx_softmin_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), CFX_OPTIONS(cfx_softmin_args,             \
        __VA_ARGS__))

/* ---- Matrix products ------------------------------------------------------------------------ */

/* matmul(Tensor self, Tensor other) -> Tensor
 * torch.matmul, Tensor.matmul, operator.matmul */
static inline cfx_var cfx_matmul_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_matmul, args, 2);
}
#define cfx_matmul(s, self, other) cfx_matmul_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* mm(Tensor self, Tensor mat2) -> Tensor
 * torch.mm, Tensor.mm */
static inline cfx_var cfx_mm_at(cfx_at at, cfx_var self, cfx_var mat2)
{
    const cfx_var args[] = {self, mat2};
    return cfx_apply_at(at, CFX_OPID_mm, args, 2);
}
#define cfx_mm(s, self, mat2) cfx_mm_at(CFX_HERE(s), cfx_v(self), cfx_v(mat2))

/* bmm(Tensor self, Tensor mat2) -> Tensor
 * torch.bmm, Tensor.bmm */
static inline cfx_var cfx_bmm_at(cfx_at at, cfx_var self, cfx_var mat2)
{
    const cfx_var args[] = {self, mat2};
    return cfx_apply_at(at, CFX_OPID_bmm, args, 2);
}
#define cfx_bmm(s, self, mat2) cfx_bmm_at(CFX_HERE(s), cfx_v(self), cfx_v(mat2))

/* mv(Tensor self, Tensor vec) -> Tensor
 * torch.mv, Tensor.mv */
static inline cfx_var cfx_mv_at(cfx_at at, cfx_var self, cfx_var vec)
{
    const cfx_var args[] = {self, vec};
    return cfx_apply_at(at, CFX_OPID_mv, args, 2);
}
#define cfx_mv(s, self, vec) cfx_mv_at(CFX_HERE(s), cfx_v(self), cfx_v(vec))

/* dot(Tensor self, Tensor tensor) -> Tensor
 * torch.dot, Tensor.dot */
static inline cfx_var cfx_dot_at(cfx_at at, cfx_var self, cfx_var tensor)
{
    const cfx_var args[] = {self, tensor};
    return cfx_apply_at(at, CFX_OPID_dot, args, 2);
}
#define cfx_dot(s, self, tensor) cfx_dot_at(CFX_HERE(s), cfx_v(self), cfx_v(tensor))

/* vdot(Tensor self, Tensor other) -> Tensor
 * torch.vdot, Tensor.vdot */
static inline cfx_var cfx_vdot_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_vdot, args, 2);
}
#define cfx_vdot(s, self, other) cfx_vdot_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* outer(Tensor self, Tensor vec2) -> Tensor
 * torch.outer, Tensor.outer, torch.ger, Tensor.ger */
static inline cfx_var cfx_outer_at(cfx_at at, cfx_var self, cfx_var vec2)
{
    const cfx_var args[] = {self, vec2};
    return cfx_apply_at(at, CFX_OPID_outer, args, 2);
}
#define cfx_outer(s, self, vec2) cfx_outer_at(CFX_HERE(s), cfx_v(self), cfx_v(vec2))

/* addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
 * torch.addmm, Tensor.addmm */
typedef struct cfx_addmm_args { cfx_var beta, alpha; } cfx_addmm_args;
static inline cfx_var cfx_addmm_at(cfx_at at, cfx_var self, cfx_var mat1, cfx_var mat2,
        cfx_addmm_args o)
{
    const cfx_var args[] = {self, mat1, mat2, o.beta, o.alpha};
    return cfx_apply_at(at, CFX_OPID_addmm, args, 5);
}
#define cfx_addmm(s, self, mat1, mat2, ...)                                                        \
    cfx_addmm_at(CFX_HERE(s), cfx_v(self), cfx_v(mat1), cfx_v(mat2),                               \
        CFX_OPTIONS(cfx_addmm_args, __VA_ARGS__))

/* addmm_(Tensor(a!) self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) ->
 *     Tensor(a!)
 * Tensor.addmm_ */
typedef struct cfx_addmm__args { cfx_var beta, alpha; } cfx_addmm__args;
static inline cfx_var cfx_addmm__at(cfx_at at, cfx_var self, cfx_var mat1, cfx_var mat2,
        cfx_addmm__args o)
{
    const cfx_var args[] = {self, mat1, mat2, o.beta, o.alpha};
    return cfx_apply_at(at, CFX_OPID_addmm_, args, 5);
}
#define cfx_addmm_(s, self, mat1, mat2, ...)                                                       \
    cfx_addmm__at(CFX_HERE(s), cfx_v(self), cfx_v(mat1), cfx_v(mat2),                              \
        CFX_OPTIONS(cfx_addmm__args, __VA_ARGS__))

/* addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor
 * torch.addmv, Tensor.addmv */
typedef struct cfx_addmv_args { cfx_var beta, alpha; } cfx_addmv_args;
static inline cfx_var cfx_addmv_at(cfx_at at, cfx_var self, cfx_var mat, cfx_var vec,
        cfx_addmv_args o)
{
    const cfx_var args[] = {self, mat, vec, o.beta, o.alpha};
    return cfx_apply_at(at, CFX_OPID_addmv, args, 5);
}
#define cfx_addmv(s, self, mat, vec, ...)                                                          \
    cfx_addmv_at(CFX_HERE(s), cfx_v(self), cfx_v(mat), cfx_v(vec), CFX_OPTIONS(cfx_addmv_args,     \
        __VA_ARGS__))

/* addmv_(Tensor(a!) self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) ->
 *     Tensor(a!)
 * torch.addmv_, Tensor.addmv_ */
typedef struct cfx_addmv__args { cfx_var beta, alpha; } cfx_addmv__args;
static inline cfx_var cfx_addmv__at(cfx_at at, cfx_var self, cfx_var mat, cfx_var vec,
        cfx_addmv__args o)
{
    const cfx_var args[] = {self, mat, vec, o.beta, o.alpha};
    return cfx_apply_at(at, CFX_OPID_addmv_, args, 5);
}
#define cfx_addmv_(s, self, mat, vec, ...)                                                         \
    cfx_addmv__at(CFX_HERE(s), cfx_v(self), cfx_v(mat), cfx_v(vec),                                \
        CFX_OPTIONS(cfx_addmv__args, __VA_ARGS__))

/* addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
 * torch.addbmm, Tensor.addbmm */
typedef struct cfx_addbmm_args { cfx_var beta, alpha; } cfx_addbmm_args;
static inline cfx_var cfx_addbmm_at(cfx_at at, cfx_var self, cfx_var batch1, cfx_var batch2,
        cfx_addbmm_args o)
{
    const cfx_var args[] = {self, batch1, batch2, o.beta, o.alpha};
    return cfx_apply_at(at, CFX_OPID_addbmm, args, 5);
}
#define cfx_addbmm(s, self, batch1, batch2, ...)                                                   \
    cfx_addbmm_at(CFX_HERE(s), cfx_v(self), cfx_v(batch1), cfx_v(batch2),                          \
        CFX_OPTIONS(cfx_addbmm_args, __VA_ARGS__))

/* addbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) ->
 *     Tensor(a!)
 * Tensor.addbmm_ */
typedef struct cfx_addbmm__args { cfx_var beta, alpha; } cfx_addbmm__args;
static inline cfx_var cfx_addbmm__at(cfx_at at, cfx_var self, cfx_var batch1, cfx_var batch2,
        cfx_addbmm__args o)
{
    const cfx_var args[] = {self, batch1, batch2, o.beta, o.alpha};
    return cfx_apply_at(at, CFX_OPID_addbmm_, args, 5);
}
#define cfx_addbmm_(s, self, batch1, batch2, ...)                                                  \
    cfx_addbmm__at(CFX_HERE(s), cfx_v(self), cfx_v(batch1), cfx_v(batch2),                         \
        CFX_OPTIONS(cfx_addbmm__args, __VA_ARGS__))

/* baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
 * torch.baddbmm, Tensor.baddbmm */
typedef struct cfx_baddbmm_args { cfx_var beta, alpha; } cfx_baddbmm_args;
static inline cfx_var cfx_baddbmm_at(cfx_at at, cfx_var self, cfx_var batch1, cfx_var batch2,
        cfx_baddbmm_args o)
{
    const cfx_var args[] = {self, batch1, batch2, o.beta, o.alpha};
    return cfx_apply_at(at, CFX_OPID_baddbmm, args, 5);
}
#define cfx_baddbmm(s, self, batch1, batch2, ...)                                                  \
    cfx_baddbmm_at(CFX_HERE(s), cfx_v(self), cfx_v(batch1), cfx_v(batch2),                         \
        CFX_OPTIONS(cfx_baddbmm_args, __VA_ARGS__))

/* baddbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) ->
 *     Tensor(a!)
 * Tensor.baddbmm_ */
typedef struct cfx_baddbmm__args { cfx_var beta, alpha; } cfx_baddbmm__args;
static inline cfx_var cfx_baddbmm__at(cfx_at at, cfx_var self, cfx_var batch1, cfx_var batch2,
        cfx_baddbmm__args o)
{
    const cfx_var args[] = {self, batch1, batch2, o.beta, o.alpha};
    return cfx_apply_at(at, CFX_OPID_baddbmm_, args, 5);
}
#define cfx_baddbmm_(s, self, batch1, batch2, ...)                                                 \
    cfx_baddbmm__at(CFX_HERE(s), cfx_v(self), cfx_v(batch1), cfx_v(batch2),                        \
        CFX_OPTIONS(cfx_baddbmm__args, __VA_ARGS__))

/* linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor
 * torch.nn.functional.linear */
typedef struct cfx_linear_args { cfx_var bias; } cfx_linear_args;
static inline cfx_var cfx_linear_at(cfx_at at, cfx_var input, cfx_var weight, cfx_linear_args o)
{
    const cfx_var args[] = {input, weight, o.bias};
    return cfx_apply_at(at, CFX_OPID_linear, args, 3);
}
#define cfx_linear(s, input, weight, ...)                                                          \
    cfx_linear_at(CFX_HERE(s), cfx_v(input), cfx_v(weight), CFX_OPTIONS(cfx_linear_args,           \
        __VA_ARGS__))

/* bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor
 * torch.bilinear, torch.nn.functional.bilinear */
typedef struct cfx_bilinear_args { cfx_var bias; } cfx_bilinear_args;
static inline cfx_var cfx_bilinear_at(cfx_at at, cfx_var input1, cfx_var input2, cfx_var weight,
        cfx_bilinear_args o)
{
    const cfx_var args[] = {input1, input2, weight, o.bias};
    return cfx_apply_at(at, CFX_OPID_bilinear, args, 4);
}
#define cfx_bilinear(s, input1, input2, weight, ...)                                               \
    cfx_bilinear_at(CFX_HERE(s), cfx_v(input1), cfx_v(input2), cfx_v(weight),                      \
        CFX_OPTIONS(cfx_bilinear_args, __VA_ARGS__))

/* einsum(str equation, Tensor(a)[] tensors, *, int[]? path=None) -> Tensor(a)
 * torch.einsum */
typedef struct cfx_einsum_args { cfx_var path; } cfx_einsum_args;
static inline cfx_var cfx_einsum_at(cfx_at at, cfx_var equation, cfx_var tensors, cfx_einsum_args
        o)
{
    const cfx_var args[] = {equation, tensors, o.path};
    return cfx_apply_at(at, CFX_OPID_einsum, args, 3);
}
#define cfx_einsum(s, equation, tensors, ...)                                                      \
    cfx_einsum_at(CFX_HERE(s), cfx_v(equation), cfx_v(tensors), CFX_OPTIONS(cfx_einsum_args,       \
        __VA_ARGS__))

/* tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor
 * torch.tensordot */
static inline cfx_var cfx_tensordot_at(cfx_at at, cfx_var self, cfx_var other, cfx_var dims_self,
        cfx_var dims_other)
{
    const cfx_var args[] = {self, other, dims_self, dims_other};
    return cfx_apply_at(at, CFX_OPID_tensordot, args, 4);
}
#define cfx_tensordot(s, self, other, dims_self, dims_other)                                       \
    cfx_tensordot_at(CFX_HERE(s), cfx_v(self), cfx_v(other), cfx_v(dims_self),                     \
        cfx_v(dims_other))

/* kron(Tensor self, Tensor other) -> Tensor
 * torch.kron, Tensor.kron */
static inline cfx_var cfx_kron_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_kron, args, 2);
}
#define cfx_kron(s, self, other) cfx_kron_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* chain_matmul(Tensor(a)[] matrices) -> Tensor(a)
 * torch.chain_matmul */
static inline cfx_var cfx_chain_matmul_at(cfx_at at, cfx_var matrices)
{
    const cfx_var args[] = {matrices};
    return cfx_apply_at(at, CFX_OPID_chain_matmul, args, 1);
}
#define cfx_chain_matmul(s, matrices) cfx_chain_matmul_at(CFX_HERE(s), cfx_v(matrices))

/* cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor
 * torch.cdist */
typedef struct cfx_cdist_args { cfx_var p, compute_mode; } cfx_cdist_args;
static inline cfx_var cfx_cdist_at(cfx_at at, cfx_var x1, cfx_var x2, cfx_cdist_args o)
{
    const cfx_var args[] = {x1, x2, o.p, o.compute_mode};
    return cfx_apply_at(at, CFX_OPID_cdist, args, 4);
}
#define cfx_cdist(s, x1, x2, ...)                                                                  \
    cfx_cdist_at(CFX_HERE(s), cfx_v(x1), cfx_v(x2), CFX_OPTIONS(cfx_cdist_args, __VA_ARGS__))

/* cross(Tensor self, Tensor other, int? dim=None) -> Tensor
 * torch.cross, Tensor.cross */
typedef struct cfx_cross_args { cfx_var dim; } cfx_cross_args;
static inline cfx_var cfx_cross_at(cfx_at at, cfx_var self, cfx_var other, cfx_cross_args o)
{
    const cfx_var args[] = {self, other, o.dim};
    return cfx_apply_at(at, CFX_OPID_cross, args, 3);
}
#define cfx_cross(s, self, other, ...)                                                             \
    cfx_cross_at(CFX_HERE(s), cfx_v(self), cfx_v(other), CFX_OPTIONS(cfx_cross_args,               \
        __VA_ARGS__))

/* trace(Tensor self) -> Tensor
 * torch.trace, Tensor.trace */
static inline cfx_var cfx_trace_row_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_trace, args, 1);
}
#define cfx_trace_row(s, self) cfx_trace_row_at(CFX_HERE(s), cfx_v(self))

/* grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor */
static inline cfx_var cfx_grouped_mm_fallback_at(cfx_at at, cfx_var input, cfx_var weight, cfx_var
        offs)
{
    const cfx_var args[] = {input, weight, offs};
    return cfx_apply_at(at, CFX_OPID_grouped_mm_fallback, args, 3);
}
#define cfx_grouped_mm_fallback(s, input, weight, offs)                                            \
    cfx_grouped_mm_fallback_at(CFX_HERE(s), cfx_v(input), cfx_v(weight), cfx_v(offs))

/* ---- Linear algebra ------------------------------------------------------------------------- */

/* norm(Tensor self, Any p=2, int[1]? dim=None, bool keepdim=False) -> Tensor
 * torch.norm, Tensor.norm */
typedef struct cfx_norm_args { cfx_var p, dim, keepdim; } cfx_norm_args;
static inline cfx_var cfx_norm_at(cfx_at at, cfx_var self, cfx_norm_args o)
{
    const cfx_var args[] = {self, o.p, o.dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_norm, args, 4);
}
#define cfx_norm(s, self, ...)                                                                     \
    cfx_norm_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_norm_args, __VA_ARGS__))

/* linalg_norm(Tensor self, Any ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType?
 *     dtype=None) -> Tensor
 * torch.linalg.norm */
typedef struct cfx_linalg_norm_args { cfx_var ord, dim, keepdim, dtype; } cfx_linalg_norm_args;
static inline cfx_var cfx_linalg_norm_at(cfx_at at, cfx_var self, cfx_linalg_norm_args o)
{
    const cfx_var args[] = {self, o.ord, o.dim, o.keepdim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_linalg_norm, args, 5);
}
#define cfx_linalg_norm(s, self, ...)                                                              \
    cfx_linalg_norm_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_linalg_norm_args,                 \
        __VA_ARGS__))

/* linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *,
 *     ScalarType? dtype=None) -> Tensor
 * torch.linalg.vector_norm */
typedef struct cfx_linalg_vector_norm_args { cfx_var ord, dim, keepdim, dtype; }
        cfx_linalg_vector_norm_args;
static inline cfx_var cfx_linalg_vector_norm_at(cfx_at at, cfx_var self,
        cfx_linalg_vector_norm_args o)
{
    const cfx_var args[] = {self, o.ord, o.dim, o.keepdim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_linalg_vector_norm, args, 5);
}
#define cfx_linalg_vector_norm(s, self, ...)                                                       \
    cfx_linalg_vector_norm_at(CFX_HERE(s), cfx_v(self),                                            \
        CFX_OPTIONS(cfx_linalg_vector_norm_args, __VA_ARGS__))

/* linalg_matrix_norm(Tensor self, Any ord='fro', int[] dim=[-2, -1], bool keepdim=False, *,
 *     ScalarType? dtype=None) -> Tensor
 * torch.linalg.matrix_norm */
typedef struct cfx_linalg_matrix_norm_args { cfx_var ord, dim, keepdim, dtype; }
        cfx_linalg_matrix_norm_args;
static inline cfx_var cfx_linalg_matrix_norm_at(cfx_at at, cfx_var self,
        cfx_linalg_matrix_norm_args o)
{
    const cfx_var args[] = {self, o.ord, o.dim, o.keepdim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_linalg_matrix_norm, args, 5);
}
#define cfx_linalg_matrix_norm(s, self, ...)                                                       \
    cfx_linalg_matrix_norm_at(CFX_HERE(s), cfx_v(self),                                            \
        CFX_OPTIONS(cfx_linalg_matrix_norm_args, __VA_ARGS__))

/* linalg_inv(Tensor A) -> Tensor
 * torch.linalg.inv, torch.inverse, Tensor.inverse */
static inline cfx_var cfx_linalg_inv_at(cfx_at at, cfx_var A)
{
    const cfx_var args[] = {A};
    return cfx_apply_at(at, CFX_OPID_linalg_inv, args, 1);
}
#define cfx_linalg_inv(s, A) cfx_linalg_inv_at(CFX_HERE(s), cfx_v(A))

/* linalg_det(Tensor A) -> Tensor
 * torch.linalg.det, torch.det, Tensor.det */
static inline cfx_var cfx_linalg_det_at(cfx_at at, cfx_var A)
{
    const cfx_var args[] = {A};
    return cfx_apply_at(at, CFX_OPID_linalg_det, args, 1);
}
#define cfx_linalg_det(s, A) cfx_linalg_det_at(CFX_HERE(s), cfx_v(A))

/* linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor
 * torch.linalg.solve */
typedef struct cfx_linalg_solve_args { cfx_var left; } cfx_linalg_solve_args;
static inline cfx_var cfx_linalg_solve_at(cfx_at at, cfx_var A, cfx_var B, cfx_linalg_solve_args o)
{
    const cfx_var args[] = {A, B, o.left};
    return cfx_apply_at(at, CFX_OPID_linalg_solve, args, 3);
}
#define cfx_linalg_solve(s, A, B, ...)                                                             \
    cfx_linalg_solve_at(CFX_HERE(s), cfx_v(A), cfx_v(B), CFX_OPTIONS(cfx_linalg_solve_args,        \
        __VA_ARGS__))

/* linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor
 * torch.linalg.cholesky */
typedef struct cfx_linalg_cholesky_args { cfx_var upper; } cfx_linalg_cholesky_args;
static inline cfx_var cfx_linalg_cholesky_at(cfx_at at, cfx_var self, cfx_linalg_cholesky_args o)
{
    const cfx_var args[] = {self, o.upper};
    return cfx_apply_at(at, CFX_OPID_linalg_cholesky, args, 2);
}
#define cfx_linalg_cholesky(s, self, ...)                                                          \
    cfx_linalg_cholesky_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_linalg_cholesky_args,         \
        __VA_ARGS__))

/* linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)
 * torch.linalg.qr */
typedef struct cfx_linalg_qr_args { cfx_var mode; } cfx_linalg_qr_args;
static inline cfx_var cfx_linalg_qr_at(cfx_at at, cfx_var A, cfx_linalg_qr_args o)
{
    const cfx_var args[] = {A, o.mode};
    return cfx_apply_at(at, CFX_OPID_linalg_qr, args, 2);
}
#define cfx_linalg_qr(s, A, ...)                                                                   \
    cfx_linalg_qr_at(CFX_HERE(s), cfx_v(A), CFX_OPTIONS(cfx_linalg_qr_args, __VA_ARGS__))

/* linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S,
 *     Tensor Vh)
 * torch.linalg.svd */
typedef struct cfx_linalg_svd_args { cfx_var full_matrices, driver; } cfx_linalg_svd_args;
static inline cfx_var cfx_linalg_svd_at(cfx_at at, cfx_var A, cfx_linalg_svd_args o)
{
    const cfx_var args[] = {A, o.full_matrices, o.driver};
    return cfx_apply_at(at, CFX_OPID_linalg_svd, args, 3);
}
#define cfx_linalg_svd(s, A, ...)                                                                  \
    cfx_linalg_svd_at(CFX_HERE(s), cfx_v(A), CFX_OPTIONS(cfx_linalg_svd_args, __VA_ARGS__))

/* linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)
 * torch.linalg.eigh */
typedef struct cfx_linalg_eigh_args { cfx_var UPLO; } cfx_linalg_eigh_args;
static inline cfx_var cfx_linalg_eigh_at(cfx_at at, cfx_var self, cfx_linalg_eigh_args o)
{
    const cfx_var args[] = {self, o.UPLO};
    return cfx_apply_at(at, CFX_OPID_linalg_eigh, args, 2);
}
#define cfx_linalg_eigh(s, self, ...)                                                              \
    cfx_linalg_eigh_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_linalg_eigh_args,                 \
        __VA_ARGS__))

/* ---- Convolution, and its sliding windows as matrices --------------------------------------- */

/* conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=[1], int[1] padding=[0],
 *     int[1] dilation=[1], int groups=1) -> Tensor
 * torch.conv1d, torch.nn.functional.conv1d */
typedef struct cfx_conv1d_args { cfx_var bias, stride, padding, dilation, groups; }
        cfx_conv1d_args;
static inline cfx_var cfx_conv1d_at(cfx_at at, cfx_var input, cfx_var weight, cfx_conv1d_args o)
{
    const cfx_var args[] = {input, weight, o.bias, o.stride, o.padding, o.dilation, o.groups};
    return cfx_apply_at(at, CFX_OPID_conv1d, args, 7);
}
#define cfx_conv1d(s, input, weight, ...)                                                          \
    cfx_conv1d_at(CFX_HERE(s), cfx_v(input), cfx_v(weight), CFX_OPTIONS(cfx_conv1d_args,           \
        __VA_ARGS__))

/* conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=[1, 1], int[2]
 *     padding=[0, 0], int[2] dilation=[1, 1], int groups=1) -> Tensor
 * torch.conv2d, torch.nn.functional.conv2d */
typedef struct cfx_conv2d_args { cfx_var bias, stride, padding, dilation, groups; }
        cfx_conv2d_args;
static inline cfx_var cfx_conv2d_at(cfx_at at, cfx_var input, cfx_var weight, cfx_conv2d_args o)
{
    const cfx_var args[] = {input, weight, o.bias, o.stride, o.padding, o.dilation, o.groups};
    return cfx_apply_at(at, CFX_OPID_conv2d, args, 7);
}
#define cfx_conv2d(s, input, weight, ...)                                                          \
    cfx_conv2d_at(CFX_HERE(s), cfx_v(input), cfx_v(weight), CFX_OPTIONS(cfx_conv2d_args,           \
        __VA_ARGS__))

/* conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=[1, 1, 1], int[3]
 *     padding=[0, 0, 0], int[3] dilation=[1, 1, 1], int groups=1) -> Tensor
 * torch.conv3d, torch.nn.functional.conv3d */
typedef struct cfx_conv3d_args { cfx_var bias, stride, padding, dilation, groups; }
        cfx_conv3d_args;
static inline cfx_var cfx_conv3d_at(cfx_at at, cfx_var input, cfx_var weight, cfx_conv3d_args o)
{
    const cfx_var args[] = {input, weight, o.bias, o.stride, o.padding, o.dilation, o.groups};
    return cfx_apply_at(at, CFX_OPID_conv3d, args, 7);
}
#define cfx_conv3d(s, input, weight, ...)                                                          \
    cfx_conv3d_at(CFX_HERE(s), cfx_v(input), cfx_v(weight), CFX_OPTIONS(cfx_conv3d_args,           \
        __VA_ARGS__))

/* conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=[1], int[1]
 *     padding=[0], int[1] output_padding=[0], int groups=1, int[1] dilation=[1]) -> Tensor
 * torch.conv_transpose1d, torch.nn.functional.conv_transpose1d */
typedef struct cfx_conv_transpose1d_args { cfx_var bias, stride, padding, output_padding, groups,
        dilation; } cfx_conv_transpose1d_args;
static inline cfx_var cfx_conv_transpose1d_at(cfx_at at, cfx_var input, cfx_var weight,
        cfx_conv_transpose1d_args o)
{
    const cfx_var args[] = {input, weight, o.bias, o.stride, o.padding, o.output_padding, o.groups,
        o.dilation};
    return cfx_apply_at(at, CFX_OPID_conv_transpose1d, args, 8);
}
#define cfx_conv_transpose1d(s, input, weight, ...)                                                \
    cfx_conv_transpose1d_at(CFX_HERE(s), cfx_v(input), cfx_v(weight),                              \
        CFX_OPTIONS(cfx_conv_transpose1d_args, __VA_ARGS__))

/* conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=[1, 1], int[2]
 *     padding=[0, 0], int[2] output_padding=[0, 0], int groups=1, int[2] dilation=[1, 1]) ->
 *     Tensor
 * torch.conv_transpose2d, torch.nn.functional.conv_transpose2d */
typedef struct cfx_conv_transpose2d_args { cfx_var bias, stride, padding, output_padding, groups,
        dilation; } cfx_conv_transpose2d_args;
static inline cfx_var cfx_conv_transpose2d_at(cfx_at at, cfx_var input, cfx_var weight,
        cfx_conv_transpose2d_args o)
{
    const cfx_var args[] = {input, weight, o.bias, o.stride, o.padding, o.output_padding, o.groups,
        o.dilation};
    return cfx_apply_at(at, CFX_OPID_conv_transpose2d, args, 8);
}
#define cfx_conv_transpose2d(s, input, weight, ...)                                                \
    cfx_conv_transpose2d_at(CFX_HERE(s), cfx_v(input), cfx_v(weight),                              \
        CFX_OPTIONS(cfx_conv_transpose2d_args, __VA_ARGS__))

/* conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=[1, 1, 1],
 *     int[3] padding=[0, 0, 0], int[3] output_padding=[0, 0, 0], int groups=1, int[3]
 *     dilation=[1, 1, 1]) -> Tensor
 * torch.conv_transpose3d, torch.nn.functional.conv_transpose3d */
typedef struct cfx_conv_transpose3d_args { cfx_var bias, stride, padding, output_padding, groups,
        dilation; } cfx_conv_transpose3d_args;
static inline cfx_var cfx_conv_transpose3d_at(cfx_at at, cfx_var input, cfx_var weight,
        cfx_conv_transpose3d_args o)
{
    const cfx_var args[] = {input, weight, o.bias, o.stride, o.padding, o.output_padding, o.groups,
        o.dilation};
    return cfx_apply_at(at, CFX_OPID_conv_transpose3d, args, 8);
}
#define cfx_conv_transpose3d(s, input, weight, ...)                                                \
    cfx_conv_transpose3d_at(CFX_HERE(s), cfx_v(input), cfx_v(weight),                              \
        CFX_OPTIONS(cfx_conv_transpose3d_args, __VA_ARGS__))

/* convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[]
 *     dilation, bool transposed, int[] output_padding, int groups) -> Tensor
 * torch.convolution */
static inline cfx_var cfx_convolution_at(cfx_at at, cfx_var input, cfx_var weight, cfx_var bias,
        cfx_var stride, cfx_var padding, cfx_var dilation, cfx_var transposed, cfx_var
        output_padding, cfx_var groups)
{
    const cfx_var args[] = {input, weight, bias, stride, padding, dilation, transposed,
        output_padding, groups};
    return cfx_apply_at(at, CFX_OPID_convolution, args, 9);
}
#define cfx_convolution(s, input, weight, bias, stride, padding, dilation, transposed,             \
        output_padding, groups)                                                                    \
    cfx_convolution_at(CFX_HERE(s), cfx_v(input), cfx_v(weight), cfx_v(bias), cfx_v(stride),       \
        cfx_v(padding), cfx_v(dilation), cfx_v(transposed), cfx_v(output_padding),                 \
        cfx_v(groups))

/* im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) ->
 *     Tensor
 * torch.nn.functional.unfold */
static inline cfx_var cfx_im2col_at(cfx_at at, cfx_var self, cfx_var kernel_size, cfx_var dilation,
        cfx_var padding, cfx_var stride)
{
    const cfx_var args[] = {self, kernel_size, dilation, padding, stride};
    return cfx_apply_at(at, CFX_OPID_im2col, args, 5);
}
#define cfx_im2col(s, self, kernel_size, dilation, padding, stride)                                \
    cfx_im2col_at(CFX_HERE(s), cfx_v(self), cfx_v(kernel_size), cfx_v(dilation),                   \
        cfx_v(padding), cfx_v(stride))

/* col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding,
 *     int[2] stride) -> Tensor
 * torch.nn.functional.fold */
static inline cfx_var cfx_col2im_at(cfx_at at, cfx_var self, cfx_var output_size, cfx_var
        kernel_size, cfx_var dilation, cfx_var padding, cfx_var stride)
{
    const cfx_var args[] = {self, output_size, kernel_size, dilation, padding, stride};
    return cfx_apply_at(at, CFX_OPID_col2im, args, 6);
}
#define cfx_col2im(s, self, output_size, kernel_size, dilation, padding, stride)                   \
    cfx_col2im_at(CFX_HERE(s), cfx_v(self), cfx_v(output_size), cfx_v(kernel_size),                \
        cfx_v(dilation), cfx_v(padding), cfx_v(stride))

/* ---- Pooling -------------------------------------------------------------------------------- */

/* max_pool1d(Tensor self, int[1] kernel_size, int[1]? stride=[], int[1] padding=[0], int[1]
 *     dilation=[1], bool ceil_mode=False, bool return_indices=False) -> Tensor
 * torch.max_pool1d, torch.nn.functional.max_pool1d */
typedef struct cfx_max_pool1d_args { cfx_var stride, padding, dilation, ceil_mode, return_indices;
        } cfx_max_pool1d_args;
static inline cfx_var cfx_max_pool1d_at(cfx_at at, cfx_var self, cfx_var kernel_size,
        cfx_max_pool1d_args o)
{
    const cfx_var args[] = {self, kernel_size, o.stride, o.padding, o.dilation, o.ceil_mode,
        o.return_indices};
    return cfx_apply_at(at, CFX_OPID_max_pool1d, args, 7);
}
#define cfx_max_pool1d(s, self, kernel_size, ...)                                                  \
    cfx_max_pool1d_at(CFX_HERE(s), cfx_v(self), cfx_v(kernel_size),                                \
        CFX_OPTIONS(cfx_max_pool1d_args, __VA_ARGS__))

/* max_pool2d(Tensor self, int[2] kernel_size, int[2]? stride=[], int[2] padding=0, int[2]
 *     dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor
 * torch.max_pool2d, torch.nn.functional.max_pool2d */
typedef struct cfx_max_pool2d_args { cfx_var stride, padding, dilation, ceil_mode, return_indices;
        } cfx_max_pool2d_args;
static inline cfx_var cfx_max_pool2d_at(cfx_at at, cfx_var self, cfx_var kernel_size,
        cfx_max_pool2d_args o)
{
    const cfx_var args[] = {self, kernel_size, o.stride, o.padding, o.dilation, o.ceil_mode,
        o.return_indices};
    return cfx_apply_at(at, CFX_OPID_max_pool2d, args, 7);
}
#define cfx_max_pool2d(s, self, kernel_size, ...)                                                  \
    cfx_max_pool2d_at(CFX_HERE(s), cfx_v(self), cfx_v(kernel_size),                                \
        CFX_OPTIONS(cfx_max_pool2d_args, __VA_ARGS__))

/* max_pool3d(Tensor self, int[3] kernel_size, int[3]? stride=[], int[3] padding=0, int[3]
 *     dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor
 * torch.max_pool3d, torch.nn.functional.max_pool3d */
typedef struct cfx_max_pool3d_args { cfx_var stride, padding, dilation, ceil_mode, return_indices;
        } cfx_max_pool3d_args;
static inline cfx_var cfx_max_pool3d_at(cfx_at at, cfx_var self, cfx_var kernel_size,
        cfx_max_pool3d_args o)
{
    const cfx_var args[] = {self, kernel_size, o.stride, o.padding, o.dilation, o.ceil_mode,
        o.return_indices};
    return cfx_apply_at(at, CFX_OPID_max_pool3d, args, 7);
}
#define cfx_max_pool3d(s, self, kernel_size, ...)                                                  \
    cfx_max_pool3d_at(CFX_HERE(s), cfx_v(self), cfx_v(kernel_size),                                \
        CFX_OPTIONS(cfx_max_pool3d_args, __VA_ARGS__))

/* max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1]? stride=[], int[1]
 *     padding=[0], int[1] dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)
 * torch.max_pool1d_with_indices, torch.nn.functional.max_pool1d_with_indices */
typedef struct cfx_max_pool1d_with_indices_args { cfx_var stride, padding, dilation, ceil_mode; }
        cfx_max_pool1d_with_indices_args;
static inline cfx_var cfx_max_pool1d_with_indices_at(cfx_at at, cfx_var self, cfx_var kernel_size,
        cfx_max_pool1d_with_indices_args o)
{
    const cfx_var args[] = {self, kernel_size, o.stride, o.padding, o.dilation, o.ceil_mode};
    return cfx_apply_at(at, CFX_OPID_max_pool1d_with_indices, args, 6);
}
#define cfx_max_pool1d_with_indices(s, self, kernel_size, ...)                                     \
    cfx_max_pool1d_with_indices_at(CFX_HERE(s), cfx_v(self), cfx_v(kernel_size),                   \
        CFX_OPTIONS(cfx_max_pool1d_with_indices_args, __VA_ARGS__))

/* max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2]? stride=[], int[2] padding=0,
 *     int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)
 * torch.nn.functional.max_pool2d_with_indices */
typedef struct cfx_max_pool2d_with_indices_args { cfx_var stride, padding, dilation, ceil_mode; }
        cfx_max_pool2d_with_indices_args;
static inline cfx_var cfx_max_pool2d_with_indices_at(cfx_at at, cfx_var self, cfx_var kernel_size,
        cfx_max_pool2d_with_indices_args o)
{
    const cfx_var args[] = {self, kernel_size, o.stride, o.padding, o.dilation, o.ceil_mode};
    return cfx_apply_at(at, CFX_OPID_max_pool2d_with_indices, args, 6);
}
#define cfx_max_pool2d_with_indices(s, self, kernel_size, ...)                                     \
    cfx_max_pool2d_with_indices_at(CFX_HERE(s), cfx_v(self), cfx_v(kernel_size),                   \
        CFX_OPTIONS(cfx_max_pool2d_with_indices_args, __VA_ARGS__))

/* max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3]? stride=[], int[3] padding=0,
 *     int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)
 * torch.nn.functional.max_pool3d_with_indices */
typedef struct cfx_max_pool3d_with_indices_args { cfx_var stride, padding, dilation, ceil_mode; }
        cfx_max_pool3d_with_indices_args;
static inline cfx_var cfx_max_pool3d_with_indices_at(cfx_at at, cfx_var self, cfx_var kernel_size,
        cfx_max_pool3d_with_indices_args o)
{
    const cfx_var args[] = {self, kernel_size, o.stride, o.padding, o.dilation, o.ceil_mode};
    return cfx_apply_at(at, CFX_OPID_max_pool3d_with_indices, args, 6);
}
#define cfx_max_pool3d_with_indices(s, self, kernel_size, ...)                                     \
    cfx_max_pool3d_with_indices_at(CFX_HERE(s), cfx_v(self), cfx_v(kernel_size),                   \
        CFX_OPTIONS(cfx_max_pool3d_with_indices_args, __VA_ARGS__))

/* max_unpool1d(Tensor self, Tensor indices, int[]? output_size=None, int[1]? stride=None, int[1]
 *     padding=0, int[1]? kernel_size=None) -> Tensor
 * torch.nn.functional.max_unpool1d */
typedef struct cfx_max_unpool1d_args { cfx_var output_size, stride, padding, kernel_size; }
        cfx_max_unpool1d_args;
static inline cfx_var cfx_max_unpool1d_at(cfx_at at, cfx_var self, cfx_var indices,
        cfx_max_unpool1d_args o)
{
    const cfx_var args[] = {self, indices, o.output_size, o.stride, o.padding, o.kernel_size};
    return cfx_apply_at(at, CFX_OPID_max_unpool1d, args, 6);
}
#define cfx_max_unpool1d(s, self, indices, ...)                                                    \
    cfx_max_unpool1d_at(CFX_HERE(s), cfx_v(self), cfx_v(indices),                                  \
        CFX_OPTIONS(cfx_max_unpool1d_args, __VA_ARGS__))

/* max_unpool2d(Tensor self, Tensor indices, int[]? output_size=None, int[2]? stride=None, int[2]
 *     padding=0, int[2]? kernel_size=None) -> Tensor
 * torch.nn.functional.max_unpool2d */
typedef struct cfx_max_unpool2d_args { cfx_var output_size, stride, padding, kernel_size; }
        cfx_max_unpool2d_args;
static inline cfx_var cfx_max_unpool2d_at(cfx_at at, cfx_var self, cfx_var indices,
        cfx_max_unpool2d_args o)
{
    const cfx_var args[] = {self, indices, o.output_size, o.stride, o.padding, o.kernel_size};
    return cfx_apply_at(at, CFX_OPID_max_unpool2d, args, 6);
}
#define cfx_max_unpool2d(s, self, indices, ...)                                                    \
    cfx_max_unpool2d_at(CFX_HERE(s), cfx_v(self), cfx_v(indices),                                  \
        CFX_OPTIONS(cfx_max_unpool2d_args, __VA_ARGS__))

/* max_unpool3d(Tensor self, Tensor indices, int[]? output_size=None, int[3]? stride=None, int[3]
 *     padding=0, int[3]? kernel_size=None) -> Tensor
 * torch.nn.functional.max_unpool3d */
typedef struct cfx_max_unpool3d_args { cfx_var output_size, stride, padding, kernel_size; }
        cfx_max_unpool3d_args;
static inline cfx_var cfx_max_unpool3d_at(cfx_at at, cfx_var self, cfx_var indices,
        cfx_max_unpool3d_args o)
{
    const cfx_var args[] = {self, indices, o.output_size, o.stride, o.padding, o.kernel_size};
    return cfx_apply_at(at, CFX_OPID_max_unpool3d, args, 6);
}
#define cfx_max_unpool3d(s, self, indices, ...)                                                    \
    cfx_max_unpool3d_at(CFX_HERE(s), cfx_v(self), cfx_v(indices),                                  \
        CFX_OPTIONS(cfx_max_unpool3d_args, __VA_ARGS__))

/* avg_pool1d(Tensor self, int[1] kernel_size, int[1]? stride=[], int[1] padding=[0], bool
 *     ceil_mode=False, bool count_include_pad=True) -> Tensor
 * torch.avg_pool1d, torch.nn.functional.avg_pool1d */
typedef struct cfx_avg_pool1d_args { cfx_var stride, padding, ceil_mode, count_include_pad; }
        cfx_avg_pool1d_args;
static inline cfx_var cfx_avg_pool1d_at(cfx_at at, cfx_var self, cfx_var kernel_size,
        cfx_avg_pool1d_args o)
{
    const cfx_var args[] = {self, kernel_size, o.stride, o.padding, o.ceil_mode,
        o.count_include_pad};
    return cfx_apply_at(at, CFX_OPID_avg_pool1d, args, 6);
}
#define cfx_avg_pool1d(s, self, kernel_size, ...)                                                  \
    cfx_avg_pool1d_at(CFX_HERE(s), cfx_v(self), cfx_v(kernel_size),                                \
        CFX_OPTIONS(cfx_avg_pool1d_args, __VA_ARGS__))

/* avg_pool2d(Tensor self, int[2] kernel_size, int[2]? stride=[], int[2] padding=0, bool
 *     ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor
 * torch.nn.functional.avg_pool2d */
typedef struct cfx_avg_pool2d_args { cfx_var stride, padding, ceil_mode, count_include_pad,
        divisor_override; } cfx_avg_pool2d_args;
static inline cfx_var cfx_avg_pool2d_at(cfx_at at, cfx_var self, cfx_var kernel_size,
        cfx_avg_pool2d_args o)
{
    const cfx_var args[] = {self, kernel_size, o.stride, o.padding, o.ceil_mode,
        o.count_include_pad, o.divisor_override};
    return cfx_apply_at(at, CFX_OPID_avg_pool2d, args, 7);
}
#define cfx_avg_pool2d(s, self, kernel_size, ...)                                                  \
    cfx_avg_pool2d_at(CFX_HERE(s), cfx_v(self), cfx_v(kernel_size),                                \
        CFX_OPTIONS(cfx_avg_pool2d_args, __VA_ARGS__))

/* avg_pool3d(Tensor self, int[3] kernel_size, int[3]? stride=[], int[3] padding=0, bool
 *     ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor
 * torch.nn.functional.avg_pool3d */
typedef struct cfx_avg_pool3d_args { cfx_var stride, padding, ceil_mode, count_include_pad,
        divisor_override; } cfx_avg_pool3d_args;
static inline cfx_var cfx_avg_pool3d_at(cfx_at at, cfx_var self, cfx_var kernel_size,
        cfx_avg_pool3d_args o)
{
    const cfx_var args[] = {self, kernel_size, o.stride, o.padding, o.ceil_mode,
        o.count_include_pad, o.divisor_override};
    return cfx_apply_at(at, CFX_OPID_avg_pool3d, args, 7);
}
#define cfx_avg_pool3d(s, self, kernel_size, ...)                                                  \
    cfx_avg_pool3d_at(CFX_HERE(s), cfx_v(self), cfx_v(kernel_size),                                \
        CFX_OPTIONS(cfx_avg_pool3d_args, __VA_ARGS__))

/* adaptive_avg_pool1d(Tensor self, int?[1] output_size) -> Tensor
 * torch.adaptive_avg_pool1d, torch.nn.functional.adaptive_avg_pool1d */
static inline cfx_var cfx_adaptive_avg_pool1d_at(cfx_at at, cfx_var self, cfx_var output_size)
{
    const cfx_var args[] = {self, output_size};
    return cfx_apply_at(at, CFX_OPID_adaptive_avg_pool1d, args, 2);
}
#define cfx_adaptive_avg_pool1d(s, self, output_size)                                              \
    cfx_adaptive_avg_pool1d_at(CFX_HERE(s), cfx_v(self), cfx_v(output_size))

/* adaptive_avg_pool2d(Tensor self, int?[2] output_size) -> Tensor
 * torch.nn.functional.adaptive_avg_pool2d */
static inline cfx_var cfx_adaptive_avg_pool2d_at(cfx_at at, cfx_var self, cfx_var output_size)
{
    const cfx_var args[] = {self, output_size};
    return cfx_apply_at(at, CFX_OPID_adaptive_avg_pool2d, args, 2);
}
#define cfx_adaptive_avg_pool2d(s, self, output_size)                                              \
    cfx_adaptive_avg_pool2d_at(CFX_HERE(s), cfx_v(self), cfx_v(output_size))

/* adaptive_avg_pool3d(Tensor self, int?[3] output_size) -> Tensor
 * torch.nn.functional.adaptive_avg_pool3d */
static inline cfx_var cfx_adaptive_avg_pool3d_at(cfx_at at, cfx_var self, cfx_var output_size)
{
    const cfx_var args[] = {self, output_size};
    return cfx_apply_at(at, CFX_OPID_adaptive_avg_pool3d, args, 2);
}
#define cfx_adaptive_avg_pool3d(s, self, output_size)                                              \
    cfx_adaptive_avg_pool3d_at(CFX_HERE(s), cfx_v(self), cfx_v(output_size))

/* adaptive_max_pool1d(Tensor self, int?[1] output_size, bool return_indices=False) -> Tensor
 * torch.nn.functional.adaptive_max_pool1d */
typedef struct cfx_adaptive_max_pool1d_args { cfx_var return_indices; }
        cfx_adaptive_max_pool1d_args;
static inline cfx_var cfx_adaptive_max_pool1d_at(cfx_at at, cfx_var self, cfx_var output_size,
        cfx_adaptive_max_pool1d_args o)
{
    const cfx_var args[] = {self, output_size, o.return_indices};
    return cfx_apply_at(at, CFX_OPID_adaptive_max_pool1d, args, 3);
}
#define cfx_adaptive_max_pool1d(s, self, output_size, ...)                                         \
    cfx_adaptive_max_pool1d_at(CFX_HERE(s), cfx_v(self), cfx_v(output_size),                       \
        CFX_OPTIONS(cfx_adaptive_max_pool1d_args, __VA_ARGS__))

/* adaptive_max_pool2d(Tensor self, int?[2] output_size, bool return_indices=False) -> Tensor
 * torch.nn.functional.adaptive_max_pool2d */
typedef struct cfx_adaptive_max_pool2d_args { cfx_var return_indices; }
        cfx_adaptive_max_pool2d_args;
static inline cfx_var cfx_adaptive_max_pool2d_at(cfx_at at, cfx_var self, cfx_var output_size,
        cfx_adaptive_max_pool2d_args o)
{
    const cfx_var args[] = {self, output_size, o.return_indices};
    return cfx_apply_at(at, CFX_OPID_adaptive_max_pool2d, args, 3);
}
#define cfx_adaptive_max_pool2d(s, self, output_size, ...)                                         \
    cfx_adaptive_max_pool2d_at(CFX_HERE(s), cfx_v(self), cfx_v(output_size),                       \
        CFX_OPTIONS(cfx_adaptive_max_pool2d_args, __VA_ARGS__))

/* adaptive_max_pool1d_with_indices(Tensor self, int?[1] output_size) -> (Tensor, Tensor)
 * torch.adaptive_max_pool1d, torch.nn.functional.adaptive_max_pool1d_with_indices */
static inline cfx_var cfx_adaptive_max_pool1d_with_indices_at(cfx_at at, cfx_var self, cfx_var
        output_size)
{
    const cfx_var args[] = {self, output_size};
    return cfx_apply_at(at, CFX_OPID_adaptive_max_pool1d_with_indices, args, 2);
}
#define cfx_adaptive_max_pool1d_with_indices(s, self, output_size)                                 \
    cfx_adaptive_max_pool1d_with_indices_at(CFX_HERE(s), cfx_v(self), cfx_v(output_size))

/* adaptive_max_pool2d_with_indices(Tensor self, int?[2] output_size) -> (Tensor, Tensor)
 * torch.nn.functional.adaptive_max_pool2d_with_indices */
static inline cfx_var cfx_adaptive_max_pool2d_with_indices_at(cfx_at at, cfx_var self, cfx_var
        output_size)
{
    const cfx_var args[] = {self, output_size};
    return cfx_apply_at(at, CFX_OPID_adaptive_max_pool2d_with_indices, args, 2);
}
#define cfx_adaptive_max_pool2d_with_indices(s, self, output_size)                                 \
    cfx_adaptive_max_pool2d_with_indices_at(CFX_HERE(s), cfx_v(self), cfx_v(output_size))

/* fractional_max_pool2d(Tensor input, int[2] kernel_size, int[2]? output_size=None, float[2]?
 *     output_ratio=None, bool return_indices=False, Tensor? _random_samples=None) -> Tensor
 * torch.nn.functional.fractional_max_pool2d */
typedef struct cfx_fractional_max_pool2d_args { cfx_var output_size, output_ratio, return_indices,
        _random_samples; } cfx_fractional_max_pool2d_args;
static inline cfx_var cfx_fractional_max_pool2d_at(cfx_at at, cfx_var input, cfx_var kernel_size,
        cfx_fractional_max_pool2d_args o)
{
    const cfx_var args[] = {input, kernel_size, o.output_size, o.output_ratio, o.return_indices,
        o._random_samples};
    return cfx_apply_at(at, CFX_OPID_fractional_max_pool2d, args, 6);
}
#define cfx_fractional_max_pool2d(s, input, kernel_size, ...)                                      \
    cfx_fractional_max_pool2d_at(CFX_HERE(s), cfx_v(input), cfx_v(kernel_size),                    \
        CFX_OPTIONS(cfx_fractional_max_pool2d_args, __VA_ARGS__))

/* fractional_max_pool2d_with_indices(Tensor input, int[2] kernel_size, int[2]? output_size=None,
 *     float[2]? output_ratio=None, bool return_indices=False, Tensor? _random_samples=None) ->
 *     (Tensor, Tensor)
 * torch.nn.functional.fractional_max_pool2d_with_indices */
typedef struct cfx_fractional_max_pool2d_with_indices_args { cfx_var output_size, output_ratio,
        return_indices, _random_samples; } cfx_fractional_max_pool2d_with_indices_args;
static inline cfx_var cfx_fractional_max_pool2d_with_indices_at(cfx_at at, cfx_var input, cfx_var
        kernel_size, cfx_fractional_max_pool2d_with_indices_args o)
{
    const cfx_var args[] = {input, kernel_size, o.output_size, o.output_ratio, o.return_indices,
        o._random_samples};
    return cfx_apply_at(at, CFX_OPID_fractional_max_pool2d_with_indices, args, 6);
}
#define cfx_fractional_max_pool2d_with_indices(s, input, kernel_size, ...)                         \
    cfx_fractional_max_pool2d_with_indices_at(CFX_HERE(s), cfx_v(input), cfx_v(kernel_size),       \
        CFX_OPTIONS(cfx_fractional_max_pool2d_with_indices_args, __VA_ARGS__))

/* lp_pool2d(Tensor input, float norm_type, int[2] kernel_size, int[2]? stride=None, bool
 *     ceil_mode=False) -> Tensor
 * torch.nn.functional.lp_pool2d */
typedef struct cfx_lp_pool2d_args { cfx_var stride, ceil_mode; } cfx_lp_pool2d_args;
static inline cfx_var cfx_lp_pool2d_at(cfx_at at, cfx_var input, cfx_var norm_type, cfx_var
        kernel_size, cfx_lp_pool2d_args o)
{
    const cfx_var args[] = {input, norm_type, kernel_size, o.stride, o.ceil_mode};
    return cfx_apply_at(at, CFX_OPID_lp_pool2d, args, 5);
}
#define cfx_lp_pool2d(s, input, norm_type, kernel_size, ...)                                       \
    cfx_lp_pool2d_at(CFX_HERE(s), cfx_v(input), cfx_v(norm_type), cfx_v(kernel_size),              \
        CFX_OPTIONS(cfx_lp_pool2d_args, __VA_ARGS__))

/* ---- Normalisation -------------------------------------------------------------------------- */

/* batch_norm(Tensor input, Tensor? weight=None, Tensor? bias=None, Tensor? running_mean=None,
 *     Tensor? running_var=None, bool training=False, float momentum=0.1, float
 *     eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor
 * torch.batch_norm, torch.nn.functional.batch_norm */
typedef struct cfx_batch_norm_args { cfx_var weight, bias, running_mean, running_var, training,
        momentum, eps, cudnn_enabled; } cfx_batch_norm_args;
static inline cfx_var cfx_batch_norm_at(cfx_at at, cfx_var input, cfx_batch_norm_args o)
{
    const cfx_var args[] = {input, o.weight, o.bias, o.running_mean, o.running_var, o.training,
        o.momentum, o.eps, o.cudnn_enabled};
    return cfx_apply_at(at, CFX_OPID_batch_norm, args, 9);
}
#define cfx_batch_norm(s, input, ...)                                                              \
    cfx_batch_norm_at(CFX_HERE(s), cfx_v(input), CFX_OPTIONS(cfx_batch_norm_args,                  \
        __VA_ARGS__))

/* native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor?
 *     running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)
 * torch.native_batch_norm */
static inline cfx_var cfx_native_batch_norm_at(cfx_at at, cfx_var input, cfx_var weight, cfx_var
        bias, cfx_var running_mean, cfx_var running_var, cfx_var training, cfx_var momentum,
        cfx_var eps)
{
    const cfx_var args[] = {input, weight, bias, running_mean, running_var, training, momentum,
        eps};
    return cfx_apply_at(at, CFX_OPID_native_batch_norm, args, 8);
}
#define cfx_native_batch_norm(s, input, weight, bias, running_mean, running_var, training,         \
        momentum, eps)                                                                             \
    cfx_native_batch_norm_at(CFX_HERE(s), cfx_v(input), cfx_v(weight), cfx_v(bias),                \
        cfx_v(running_mean), cfx_v(running_var), cfx_v(training), cfx_v(momentum), cfx_v(eps))

/* _weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor
 * torch._weight_norm */
typedef struct cfx__weight_norm_args { cfx_var dim; } cfx__weight_norm_args;
static inline cfx_var cfx__weight_norm_at(cfx_at at, cfx_var v, cfx_var g, cfx__weight_norm_args o)
{
    const cfx_var args[] = {v, g, o.dim};
    return cfx_apply_at(at, CFX_OPID__weight_norm, args, 3);
}
#define cfx__weight_norm(s, v, g, ...)                                                             \
    cfx__weight_norm_at(CFX_HERE(s), cfx_v(v), cfx_v(g), CFX_OPTIONS(cfx__weight_norm_args,        \
        __VA_ARGS__))

/* _weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)
 * torch._weight_norm_interface */
typedef struct cfx__weight_norm_interface_args { cfx_var dim; } cfx__weight_norm_interface_args;
static inline cfx_var cfx__weight_norm_interface_at(cfx_at at, cfx_var v, cfx_var g,
        cfx__weight_norm_interface_args o)
{
    const cfx_var args[] = {v, g, o.dim};
    return cfx_apply_at(at, CFX_OPID__weight_norm_interface, args, 3);
}
#define cfx__weight_norm_interface(s, v, g, ...)                                                   \
    cfx__weight_norm_interface_at(CFX_HERE(s), cfx_v(v), cfx_v(g),                                 \
        CFX_OPTIONS(cfx__weight_norm_interface_args, __VA_ARGS__))

/* instance_norm(Tensor input, Tensor? weight=None, Tensor? bias=None, Tensor? running_mean=None,
 *     Tensor? running_var=None, bool use_input_stats=True, float momentum=0.1, float
 *     eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor
 * torch.instance_norm, torch.nn.functional.instance_norm */
typedef struct cfx_instance_norm_args { cfx_var weight, bias, running_mean, running_var,
        use_input_stats, momentum, eps, cudnn_enabled; } cfx_instance_norm_args;
static inline cfx_var cfx_instance_norm_at(cfx_at at, cfx_var input, cfx_instance_norm_args o)
{
    const cfx_var args[] = {input, o.weight, o.bias, o.running_mean, o.running_var,
        o.use_input_stats, o.momentum, o.eps, o.cudnn_enabled};
    return cfx_apply_at(at, CFX_OPID_instance_norm, args, 9);
}
#define cfx_instance_norm(s, input, ...)                                                           \
    cfx_instance_norm_at(CFX_HERE(s), cfx_v(input), CFX_OPTIONS(cfx_instance_norm_args,            \
        __VA_ARGS__))

/* layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float
 *     eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor
 * torch.layer_norm, torch.nn.functional.layer_norm */
typedef struct cfx_layer_norm_args { cfx_var weight, bias, eps, cudnn_enable; }
        cfx_layer_norm_args;
static inline cfx_var cfx_layer_norm_at(cfx_at at, cfx_var input, cfx_var normalized_shape,
        cfx_layer_norm_args o)
{
    const cfx_var args[] = {input, normalized_shape, o.weight, o.bias, o.eps, o.cudnn_enable};
    return cfx_apply_at(at, CFX_OPID_layer_norm, args, 6);
}
#define cfx_layer_norm(s, input, normalized_shape, ...)                                            \
    cfx_layer_norm_at(CFX_HERE(s), cfx_v(input), cfx_v(normalized_shape),                          \
        CFX_OPTIONS(cfx_layer_norm_args, __VA_ARGS__))

/* native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float
 *     eps) -> (Tensor, Tensor, Tensor)
 * torch.native_layer_norm */
static inline cfx_var cfx_native_layer_norm_at(cfx_at at, cfx_var input, cfx_var normalized_shape,
        cfx_var weight, cfx_var bias, cfx_var eps)
{
    const cfx_var args[] = {input, normalized_shape, weight, bias, eps};
    return cfx_apply_at(at, CFX_OPID_native_layer_norm, args, 5);
}
#define cfx_native_layer_norm(s, input, normalized_shape, weight, bias, eps)                       \
    cfx_native_layer_norm_at(CFX_HERE(s), cfx_v(input), cfx_v(normalized_shape),                   \
        cfx_v(weight), cfx_v(bias), cfx_v(eps))

/* group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float
 *     eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor
 * torch.group_norm, torch.nn.functional.group_norm */
typedef struct cfx_group_norm_args { cfx_var weight, bias, eps, cudnn_enabled; }
        cfx_group_norm_args;
static inline cfx_var cfx_group_norm_at(cfx_at at, cfx_var input, cfx_var num_groups,
        cfx_group_norm_args o)
{
    const cfx_var args[] = {input, num_groups, o.weight, o.bias, o.eps, o.cudnn_enabled};
    return cfx_apply_at(at, CFX_OPID_group_norm, args, 6);
}
#define cfx_group_norm(s, input, num_groups, ...)                                                  \
    cfx_group_norm_at(CFX_HERE(s), cfx_v(input), cfx_v(num_groups),                                \
        CFX_OPTIONS(cfx_group_norm_args, __VA_ARGS__))

/* native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int
 *     group, float eps) -> (Tensor, Tensor, Tensor)
 * torch.native_group_norm */
static inline cfx_var cfx_native_group_norm_at(cfx_at at, cfx_var input, cfx_var weight, cfx_var
        bias, cfx_var N, cfx_var C, cfx_var HxW, cfx_var group, cfx_var eps)
{
    const cfx_var args[] = {input, weight, bias, N, C, HxW, group, eps};
    return cfx_apply_at(at, CFX_OPID_native_group_norm, args, 8);
}
#define cfx_native_group_norm(s, input, weight, bias, N, C, HxW, group, eps)                       \
    cfx_native_group_norm_at(CFX_HERE(s), cfx_v(input), cfx_v(weight), cfx_v(bias), cfx_v(N),      \
        cfx_v(C), cfx_v(HxW), cfx_v(group), cfx_v(eps))

/* rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor
 * torch.rms_norm, torch.nn.functional.rms_norm */
typedef struct cfx_rms_norm_args { cfx_var weight, eps; } cfx_rms_norm_args;
static inline cfx_var cfx_rms_norm_at(cfx_at at, cfx_var input, cfx_var normalized_shape,
        cfx_rms_norm_args o)
{
    const cfx_var args[] = {input, normalized_shape, o.weight, o.eps};
    return cfx_apply_at(at, CFX_OPID_rms_norm, args, 4);
}
#define cfx_rms_norm(s, input, normalized_shape, ...)                                              \
    cfx_rms_norm_at(CFX_HERE(s), cfx_v(input), cfx_v(normalized_shape),                            \
        CFX_OPTIONS(cfx_rms_norm_args, __VA_ARGS__))

/* local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, float k=1.)
 *     -> Tensor
 * torch.nn.functional.local_response_norm */
typedef struct cfx_local_response_norm_args { cfx_var alpha, beta, k; }
        cfx_local_response_norm_args;
static inline cfx_var cfx_local_response_norm_at(cfx_at at, cfx_var input, cfx_var size,
        cfx_local_response_norm_args o)
{
    const cfx_var args[] = {input, size, o.alpha, o.beta, o.k};
    return cfx_apply_at(at, CFX_OPID_local_response_norm, args, 5);
}
#define cfx_local_response_norm(s, input, size, ...)                                               \
    cfx_local_response_norm_at(CFX_HERE(s), cfx_v(input), cfx_v(size),                             \
        CFX_OPTIONS(cfx_local_response_norm_args, __VA_ARGS__))

/* normalize(Tensor input, float p=2., int dim=1, float eps=1e-12) -> Tensor
 * torch.nn.functional.normalize */
typedef struct cfx_normalize_args { cfx_var p, dim, eps; } cfx_normalize_args;
static inline cfx_var cfx_normalize_at(cfx_at at, cfx_var input, cfx_normalize_args o)
{
    const cfx_var args[] = {input, o.p, o.dim, o.eps};
    return cfx_apply_at(at, CFX_OPID_normalize, args, 4);
}
#define cfx_normalize(s, input, ...)                                                               \
    cfx_normalize_at(CFX_HERE(s), cfx_v(input), CFX_OPTIONS(cfx_normalize_args, __VA_ARGS__))

/* ---- Embedding and attention ---------------------------------------------------------------- */

/* embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False,
 *     bool sparse=False) -> Tensor
 * torch.embedding, torch.nn.functional.embedding */
typedef struct cfx_embedding_args { cfx_var padding_idx, scale_grad_by_freq, sparse; }
        cfx_embedding_args;
static inline cfx_var cfx_embedding_at(cfx_at at, cfx_var weight, cfx_var indices,
        cfx_embedding_args o)
{
    const cfx_var args[] = {weight, indices, o.padding_idx, o.scale_grad_by_freq, o.sparse};
    return cfx_apply_at(at, CFX_OPID_embedding, args, 5);
}
#define cfx_embedding(s, weight, indices, ...)                                                     \
    cfx_embedding_at(CFX_HERE(s), cfx_v(weight), cfx_v(indices),                                   \
        CFX_OPTIONS(cfx_embedding_args, __VA_ARGS__))

/* embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor */
static inline cfx_var cfx_embedding_renorm_at(cfx_at at, cfx_var self, cfx_var indices, cfx_var
        max_norm, cfx_var norm_type)
{
    const cfx_var args[] = {self, indices, max_norm, norm_type};
    return cfx_apply_at(at, CFX_OPID_embedding_renorm, args, 4);
}
#define cfx_embedding_renorm(s, self, indices, max_norm, norm_type)                                \
    cfx_embedding_renorm_at(CFX_HERE(s), cfx_v(self), cfx_v(indices), cfx_v(max_norm),             \
        cfx_v(norm_type))

/* embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) ->
 *     Tensor(a!)
 * torch.embedding_renorm_ */
static inline cfx_var cfx_embedding_renorm__at(cfx_at at, cfx_var self, cfx_var indices, cfx_var
        max_norm, cfx_var norm_type)
{
    const cfx_var args[] = {self, indices, max_norm, norm_type};
    return cfx_apply_at(at, CFX_OPID_embedding_renorm_, args, 4);
}
#define cfx_embedding_renorm_(s, self, indices, max_norm, norm_type)                               \
    cfx_embedding_renorm__at(CFX_HERE(s), cfx_v(self), cfx_v(indices), cfx_v(max_norm),            \
        cfx_v(norm_type))

/* embedding_bag(Tensor weight, Tensor indices, Tensor? offsets=None, bool
 *     scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None,
 *     bool include_last_offset=False, int? padding_idx=None) -> (Tensor, Tensor, Tensor, Tensor)
 * torch.embedding_bag, torch.nn.functional.embedding_bag */
typedef struct cfx_embedding_bag_args { cfx_var offsets, scale_grad_by_freq, mode, sparse,
        per_sample_weights, include_last_offset, padding_idx; } cfx_embedding_bag_args;
static inline cfx_var cfx_embedding_bag_at(cfx_at at, cfx_var weight, cfx_var indices,
        cfx_embedding_bag_args o)
{
    const cfx_var args[] = {weight, indices, o.offsets, o.scale_grad_by_freq, o.mode, o.sparse,
        o.per_sample_weights, o.include_last_offset, o.padding_idx};
    return cfx_apply_at(at, CFX_OPID_embedding_bag, args, 9);
}
#define cfx_embedding_bag(s, weight, indices, ...)                                                 \
    cfx_embedding_bag_at(CFX_HERE(s), cfx_v(weight), cfx_v(indices),                               \
        CFX_OPTIONS(cfx_embedding_bag_args, __VA_ARGS__))

/* one_hot(Tensor self, int num_classes=-1) -> Tensor
 * torch.nn.functional.one_hot */
typedef struct cfx_one_hot_args { cfx_var num_classes; } cfx_one_hot_args;
static inline cfx_var cfx_one_hot_at(cfx_at at, cfx_var self, cfx_one_hot_args o)
{
    const cfx_var args[] = {self, o.num_classes};
    return cfx_apply_at(at, CFX_OPID_one_hot, args, 2);
}
#define cfx_one_hot(s, self, ...)                                                                  \
    cfx_one_hot_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_one_hot_args, __VA_ARGS__))

/* scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None,
 *     float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) ->
 *     Tensor
 * torch.nn.functional.scaled_dot_product_attention */
typedef struct cfx_scaled_dot_product_attention_args { cfx_var attn_mask, dropout_p, is_causal,
        scale, enable_gqa; } cfx_scaled_dot_product_attention_args;
static inline cfx_var cfx_scaled_dot_product_attention_at(cfx_at at, cfx_var query, cfx_var key,
        cfx_var value, cfx_scaled_dot_product_attention_args o)
{
    const cfx_var args[] = {query, key, value, o.attn_mask, o.dropout_p, o.is_causal, o.scale,
        o.enable_gqa};
    return cfx_apply_at(at, CFX_OPID_scaled_dot_product_attention, args, 8);
}
#define cfx_scaled_dot_product_attention(s, query, key, value, ...)                                \
    cfx_scaled_dot_product_attention_at(CFX_HERE(s), cfx_v(query), cfx_v(key), cfx_v(value),       \
        CFX_OPTIONS(cfx_scaled_dot_product_attention_args, __VA_ARGS__))

/* _scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float
 *     dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) ->
 *     (Tensor output, Tensor logsumexp) */
typedef struct cfx__scaled_dot_product_flash_attention_for_cpu_args { cfx_var dropout_p, is_causal,
        attn_mask, scale; } cfx__scaled_dot_product_flash_attention_for_cpu_args;
static inline cfx_var cfx__scaled_dot_product_flash_attention_for_cpu_at(cfx_at at, cfx_var query,
        cfx_var key, cfx_var value, cfx__scaled_dot_product_flash_attention_for_cpu_args o)
{
    const cfx_var args[] = {query, key, value, o.dropout_p, o.is_causal, o.attn_mask, o.scale};
    return cfx_apply_at(at, CFX_OPID__scaled_dot_product_flash_attention_for_cpu, args, 7);
}
#define cfx__scaled_dot_product_flash_attention_for_cpu(s, query, key, value, ...)                 \
    cfx__scaled_dot_product_flash_attention_for_cpu_at(CFX_HERE(s), cfx_v(query), cfx_v(key),      \
        cfx_v(value), CFX_OPTIONS(cfx__scaled_dot_product_flash_attention_for_cpu_args,            \
        __VA_ARGS__))

/* multi_head_attention_forward(Tensor query, Tensor key, Tensor value, int embed_dim_to_check,
 *     int num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias, Tensor? bias_k, Tensor?
 *     bias_v, bool add_zero_attn, float dropout_p, Tensor out_proj_weight, Tensor?
 *     out_proj_bias, bool training=True, Tensor? key_padding_mask=None, bool need_weights=True,
 *     Tensor? attn_mask=None, bool use_separate_proj_weight=False, Tensor? q_proj_weight=None,
 *     Tensor? k_proj_weight=None, Tensor? v_proj_weight=None, Tensor? static_k=None, Tensor?
 *     static_v=None, bool average_attn_weights=True, bool is_causal=False) -> (Tensor, Tensor?)
 * torch.nn.functional.multi_head_attention_forward */
typedef struct cfx_multi_head_attention_forward_args { cfx_var training, key_padding_mask,
        need_weights, attn_mask, use_separate_proj_weight, q_proj_weight, k_proj_weight,
        v_proj_weight, static_k, static_v, average_attn_weights, is_causal; }
        cfx_multi_head_attention_forward_args;
static inline cfx_var cfx_multi_head_attention_forward_at(cfx_at at, cfx_var query, cfx_var key,
        cfx_var value, cfx_var embed_dim_to_check, cfx_var num_heads, cfx_var in_proj_weight,
        cfx_var in_proj_bias, cfx_var bias_k, cfx_var bias_v, cfx_var add_zero_attn, cfx_var
        dropout_p, cfx_var out_proj_weight, cfx_var out_proj_bias,
        cfx_multi_head_attention_forward_args o)
{
    const cfx_var args[] = {query, key, value, embed_dim_to_check, num_heads, in_proj_weight,
        in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias,
        o.training, o.key_padding_mask, o.need_weights, o.attn_mask, o.use_separate_proj_weight,
        o.q_proj_weight, o.k_proj_weight, o.v_proj_weight, o.static_k, o.static_v,
        o.average_attn_weights, o.is_causal};
    return cfx_apply_at(at, CFX_OPID_multi_head_attention_forward, args, 25);
}
#define cfx_multi_head_attention_forward(s, query, key, value, embed_dim_to_check, num_heads,      \
        in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight,   \
        out_proj_bias, ...)                                                                        \
    cfx_multi_head_attention_forward_at(CFX_HERE(s), cfx_v(query), cfx_v(key), cfx_v(value),       \
        cfx_v(embed_dim_to_check), cfx_v(num_heads), cfx_v(in_proj_weight),                        \
        cfx_v(in_proj_bias), cfx_v(bias_k), cfx_v(bias_v), cfx_v(add_zero_attn),                   \
        cfx_v(dropout_p), cfx_v(out_proj_weight), cfx_v(out_proj_bias),                            \
        CFX_OPTIONS(cfx_multi_head_attention_forward_args, __VA_ARGS__))

/* ---- Recurrent networks --------------------------------------------------------------------- */

/* lstm(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float
 *     dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)
 * torch.lstm */
static inline cfx_var cfx_lstm_at(cfx_at at, cfx_var input, cfx_var hx, cfx_var params, cfx_var
        has_biases, cfx_var num_layers, cfx_var dropout, cfx_var train, cfx_var bidirectional,
        cfx_var batch_first)
{
    const cfx_var args[] = {input, hx, params, has_biases, num_layers, dropout, train,
        bidirectional, batch_first};
    return cfx_apply_at(at, CFX_OPID_lstm, args, 9);
}
#define cfx_lstm(s, input, hx, params, has_biases, num_layers, dropout, train, bidirectional,      \
        batch_first)                                                                               \
    cfx_lstm_at(CFX_HERE(s), cfx_v(input), cfx_v(hx), cfx_v(params), cfx_v(has_biases),            \
        cfx_v(num_layers), cfx_v(dropout), cfx_v(train), cfx_v(bidirectional),                     \
        cfx_v(batch_first))

/* gru(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout,
 *     bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
 * torch.gru */
static inline cfx_var cfx_gru_at(cfx_at at, cfx_var input, cfx_var hx, cfx_var params, cfx_var
        has_biases, cfx_var num_layers, cfx_var dropout, cfx_var train, cfx_var bidirectional,
        cfx_var batch_first)
{
    const cfx_var args[] = {input, hx, params, has_biases, num_layers, dropout, train,
        bidirectional, batch_first};
    return cfx_apply_at(at, CFX_OPID_gru, args, 9);
}
#define cfx_gru(s, input, hx, params, has_biases, num_layers, dropout, train, bidirectional,       \
        batch_first)                                                                               \
    cfx_gru_at(CFX_HERE(s), cfx_v(input), cfx_v(hx), cfx_v(params), cfx_v(has_biases),             \
        cfx_v(num_layers), cfx_v(dropout), cfx_v(train), cfx_v(bidirectional),                     \
        cfx_v(batch_first))

/* rnn_tanh(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float
 *     dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
 * torch.rnn_tanh */
static inline cfx_var cfx_rnn_tanh_at(cfx_at at, cfx_var input, cfx_var hx, cfx_var params, cfx_var
        has_biases, cfx_var num_layers, cfx_var dropout, cfx_var train, cfx_var bidirectional,
        cfx_var batch_first)
{
    const cfx_var args[] = {input, hx, params, has_biases, num_layers, dropout, train,
        bidirectional, batch_first};
    return cfx_apply_at(at, CFX_OPID_rnn_tanh, args, 9);
}
#define cfx_rnn_tanh(s, input, hx, params, has_biases, num_layers, dropout, train, bidirectional,  \
        batch_first)                                                                               \
    cfx_rnn_tanh_at(CFX_HERE(s), cfx_v(input), cfx_v(hx), cfx_v(params), cfx_v(has_biases),        \
        cfx_v(num_layers), cfx_v(dropout), cfx_v(train), cfx_v(bidirectional),                     \
        cfx_v(batch_first))

/* rnn_relu(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float
 *     dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)
 * torch.rnn_relu */
static inline cfx_var cfx_rnn_relu_at(cfx_at at, cfx_var input, cfx_var hx, cfx_var params, cfx_var
        has_biases, cfx_var num_layers, cfx_var dropout, cfx_var train, cfx_var bidirectional,
        cfx_var batch_first)
{
    const cfx_var args[] = {input, hx, params, has_biases, num_layers, dropout, train,
        bidirectional, batch_first};
    return cfx_apply_at(at, CFX_OPID_rnn_relu, args, 9);
}
#define cfx_rnn_relu(s, input, hx, params, has_biases, num_layers, dropout, train, bidirectional,  \
        batch_first)                                                                               \
    cfx_rnn_relu_at(CFX_HERE(s), cfx_v(input), cfx_v(hx), cfx_v(params), cfx_v(has_biases),        \
        cfx_v(num_layers), cfx_v(dropout), cfx_v(train), cfx_v(bidirectional),                     \
        cfx_v(batch_first))

/* lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor?
 *     b_hh=None) -> (Tensor, Tensor)
 * torch.lstm_cell */
typedef struct cfx_lstm_cell_args { cfx_var b_ih, b_hh; } cfx_lstm_cell_args;
static inline cfx_var cfx_lstm_cell_at(cfx_at at, cfx_var input, cfx_var hx, cfx_var w_ih, cfx_var
        w_hh, cfx_lstm_cell_args o)
{
    const cfx_var args[] = {input, hx, w_ih, w_hh, o.b_ih, o.b_hh};
    return cfx_apply_at(at, CFX_OPID_lstm_cell, args, 6);
}
#define cfx_lstm_cell(s, input, hx, w_ih, w_hh, ...)                                               \
    cfx_lstm_cell_at(CFX_HERE(s), cfx_v(input), cfx_v(hx), cfx_v(w_ih), cfx_v(w_hh),               \
        CFX_OPTIONS(cfx_lstm_cell_args, __VA_ARGS__))

/* gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor?
 *     b_hh=None) -> Tensor
 * torch.gru_cell */
typedef struct cfx_gru_cell_args { cfx_var b_ih, b_hh; } cfx_gru_cell_args;
static inline cfx_var cfx_gru_cell_at(cfx_at at, cfx_var input, cfx_var hx, cfx_var w_ih, cfx_var
        w_hh, cfx_gru_cell_args o)
{
    const cfx_var args[] = {input, hx, w_ih, w_hh, o.b_ih, o.b_hh};
    return cfx_apply_at(at, CFX_OPID_gru_cell, args, 6);
}
#define cfx_gru_cell(s, input, hx, w_ih, w_hh, ...)                                                \
    cfx_gru_cell_at(CFX_HERE(s), cfx_v(input), cfx_v(hx), cfx_v(w_ih), cfx_v(w_hh),                \
        CFX_OPTIONS(cfx_gru_cell_args, __VA_ARGS__))

/* rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor?
 *     b_hh=None) -> Tensor
 * torch.rnn_tanh_cell */
typedef struct cfx_rnn_tanh_cell_args { cfx_var b_ih, b_hh; } cfx_rnn_tanh_cell_args;
static inline cfx_var cfx_rnn_tanh_cell_at(cfx_at at, cfx_var input, cfx_var hx, cfx_var w_ih,
        cfx_var w_hh, cfx_rnn_tanh_cell_args o)
{
    const cfx_var args[] = {input, hx, w_ih, w_hh, o.b_ih, o.b_hh};
    return cfx_apply_at(at, CFX_OPID_rnn_tanh_cell, args, 6);
}
#define cfx_rnn_tanh_cell(s, input, hx, w_ih, w_hh, ...)                                           \
    cfx_rnn_tanh_cell_at(CFX_HERE(s), cfx_v(input), cfx_v(hx), cfx_v(w_ih), cfx_v(w_hh),           \
        CFX_OPTIONS(cfx_rnn_tanh_cell_args, __VA_ARGS__))

/* rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor?
 *     b_hh=None) -> Tensor
 * torch.rnn_relu_cell */
typedef struct cfx_rnn_relu_cell_args { cfx_var b_ih, b_hh; } cfx_rnn_relu_cell_args;
static inline cfx_var cfx_rnn_relu_cell_at(cfx_at at, cfx_var input, cfx_var hx, cfx_var w_ih,
        cfx_var w_hh, cfx_rnn_relu_cell_args o)
{
    const cfx_var args[] = {input, hx, w_ih, w_hh, o.b_ih, o.b_hh};
    return cfx_apply_at(at, CFX_OPID_rnn_relu_cell, args, 6);
}
#define cfx_rnn_relu_cell(s, input, hx, w_ih, w_hh, ...)                                           \
    cfx_rnn_relu_cell_at(CFX_HERE(s), cfx_v(input), cfx_v(hx), cfx_v(w_ih), cfx_v(w_hh),           \
        CFX_OPTIONS(cfx_rnn_relu_cell_args, __VA_ARGS__))

/* ---- Reductions ----------------------------------------------------------------------------- */

/* sum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
 * torch.sum, Tensor.sum */
typedef struct cfx_sum_args { cfx_var dim, keepdim, dtype; } cfx_sum_args;
static inline cfx_var cfx_sum_at(cfx_at at, cfx_var self, cfx_sum_args o)
{
    const cfx_var args[] = {self, o.dim, o.keepdim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_sum, args, 4);
}
#define cfx_sum(s, self, ...)                                                                      \
    cfx_sum_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_sum_args, __VA_ARGS__))

/* mean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
 * torch.mean, Tensor.mean */
typedef struct cfx_mean_args { cfx_var dim, keepdim, dtype; } cfx_mean_args;
static inline cfx_var cfx_mean_at(cfx_at at, cfx_var self, cfx_mean_args o)
{
    const cfx_var args[] = {self, o.dim, o.keepdim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_mean, args, 4);
}
#define cfx_mean(s, self, ...)                                                                     \
    cfx_mean_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_mean_args, __VA_ARGS__))

/* prod(Tensor self, int? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
 * torch.prod, Tensor.prod */
typedef struct cfx_prod_args { cfx_var dim, keepdim, dtype; } cfx_prod_args;
static inline cfx_var cfx_prod_at(cfx_at at, cfx_var self, cfx_prod_args o)
{
    const cfx_var args[] = {self, o.dim, o.keepdim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_prod, args, 4);
}
#define cfx_prod(s, self, ...)                                                                     \
    cfx_prod_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_prod_args, __VA_ARGS__))

/* nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
 * torch.nansum, Tensor.nansum */
typedef struct cfx_nansum_args { cfx_var dim, keepdim, dtype; } cfx_nansum_args;
static inline cfx_var cfx_nansum_at(cfx_at at, cfx_var self, cfx_nansum_args o)
{
    const cfx_var args[] = {self, o.dim, o.keepdim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_nansum, args, 4);
}
#define cfx_nansum(s, self, ...)                                                                   \
    cfx_nansum_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_nansum_args, __VA_ARGS__))

/* nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) ->
 *     Tensor
 * torch.nanmean, Tensor.nanmean */
typedef struct cfx_nanmean_args { cfx_var dim, keepdim, dtype; } cfx_nanmean_args;
static inline cfx_var cfx_nanmean_at(cfx_at at, cfx_var self, cfx_nanmean_args o)
{
    const cfx_var args[] = {self, o.dim, o.keepdim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_nanmean, args, 4);
}
#define cfx_nanmean(s, self, ...)                                                                  \
    cfx_nanmean_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_nanmean_args, __VA_ARGS__))

/* amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
 * torch.amax, Tensor.amax */
typedef struct cfx_amax_args { cfx_var dim, keepdim; } cfx_amax_args;
static inline cfx_var cfx_amax_at(cfx_at at, cfx_var self, cfx_amax_args o)
{
    const cfx_var args[] = {self, o.dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_amax, args, 3);
}
#define cfx_amax(s, self, ...)                                                                     \
    cfx_amax_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_amax_args, __VA_ARGS__))

/* amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
 * torch.amin, Tensor.amin */
typedef struct cfx_amin_args { cfx_var dim, keepdim; } cfx_amin_args;
static inline cfx_var cfx_amin_at(cfx_at at, cfx_var self, cfx_amin_args o)
{
    const cfx_var args[] = {self, o.dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_amin, args, 3);
}
#define cfx_amin(s, self, ...)                                                                     \
    cfx_amin_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_amin_args, __VA_ARGS__))

/* max(Tensor self) -> Tensor
 * torch.max, Tensor.max */
static inline cfx_var cfx_max_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_max, args, 1);
}
#define cfx_max(s, self) cfx_max_at(CFX_HERE(s), cfx_v(self))

/* min(Tensor self) -> Tensor
 * torch.min, Tensor.min */
static inline cfx_var cfx_min_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_min, args, 1);
}
#define cfx_min(s, self) cfx_min_at(CFX_HERE(s), cfx_v(self))

/* max_dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices) */
typedef struct cfx_max_dim_args { cfx_var keepdim; } cfx_max_dim_args;
static inline cfx_var cfx_max_dim_at(cfx_at at, cfx_var self, cfx_var dim, cfx_max_dim_args o)
{
    const cfx_var args[] = {self, dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_max_dim, args, 3);
}
#define cfx_max_dim(s, self, dim, ...)                                                             \
    cfx_max_dim_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), CFX_OPTIONS(cfx_max_dim_args,             \
        __VA_ARGS__))

/* min_dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices) */
typedef struct cfx_min_dim_args { cfx_var keepdim; } cfx_min_dim_args;
static inline cfx_var cfx_min_dim_at(cfx_at at, cfx_var self, cfx_var dim, cfx_min_dim_args o)
{
    const cfx_var args[] = {self, dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_min_dim, args, 3);
}
#define cfx_min_dim(s, self, dim, ...)                                                             \
    cfx_min_dim_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), CFX_OPTIONS(cfx_min_dim_args,             \
        __VA_ARGS__))

/* aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)
 * torch.aminmax, Tensor.aminmax */
typedef struct cfx_aminmax_args { cfx_var dim, keepdim; } cfx_aminmax_args;
static inline cfx_var cfx_aminmax_at(cfx_at at, cfx_var self, cfx_aminmax_args o)
{
    const cfx_var args[] = {self, o.dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_aminmax, args, 3);
}
#define cfx_aminmax(s, self, ...)                                                                  \
    cfx_aminmax_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_aminmax_args, __VA_ARGS__))

/* argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
 * torch.argmax, Tensor.argmax */
typedef struct cfx_argmax_args { cfx_var dim, keepdim; } cfx_argmax_args;
static inline cfx_var cfx_argmax_at(cfx_at at, cfx_var self, cfx_argmax_args o)
{
    const cfx_var args[] = {self, o.dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_argmax, args, 3);
}
#define cfx_argmax(s, self, ...)                                                                   \
    cfx_argmax_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_argmax_args, __VA_ARGS__))

/* argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
 * torch.argmin, Tensor.argmin */
typedef struct cfx_argmin_args { cfx_var dim, keepdim; } cfx_argmin_args;
static inline cfx_var cfx_argmin_at(cfx_at at, cfx_var self, cfx_argmin_args o)
{
    const cfx_var args[] = {self, o.dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_argmin, args, 3);
}
#define cfx_argmin(s, self, ...)                                                                   \
    cfx_argmin_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_argmin_args, __VA_ARGS__))

/* any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
 * torch.any, Tensor.any */
typedef struct cfx_any_args { cfx_var dim, keepdim; } cfx_any_args;
static inline cfx_var cfx_any_at(cfx_at at, cfx_var self, cfx_any_args o)
{
    const cfx_var args[] = {self, o.dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_any, args, 3);
}
#define cfx_any(s, self, ...)                                                                      \
    cfx_any_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_any_args, __VA_ARGS__))

/* all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
 * torch.all, Tensor.all */
typedef struct cfx_all_args { cfx_var dim, keepdim; } cfx_all_args;
static inline cfx_var cfx_all_at(cfx_at at, cfx_var self, cfx_all_args o)
{
    const cfx_var args[] = {self, o.dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_all, args, 3);
}
#define cfx_all(s, self, ...)                                                                      \
    cfx_all_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_all_args, __VA_ARGS__))

/* std(Tensor self, int[1]? dim=None, bool? unbiased=None, bool keepdim=False, *, Scalar?
 *     correction=None) -> Tensor
 * torch.std, Tensor.std */
typedef struct cfx_std_args { cfx_var dim, unbiased, keepdim, correction; } cfx_std_args;
static inline cfx_var cfx_std_at(cfx_at at, cfx_var self, cfx_std_args o)
{
    const cfx_var args[] = {self, o.dim, o.unbiased, o.keepdim, o.correction};
    return cfx_apply_at(at, CFX_OPID_std, args, 5);
}
#define cfx_std(s, self, ...)                                                                      \
    cfx_std_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_std_args, __VA_ARGS__))

/* var(Tensor self, int[1]? dim=None, bool? unbiased=None, bool keepdim=False, *, Scalar?
 *     correction=None) -> Tensor
 * torch.var, Tensor.var */
typedef struct cfx_var_row_args { cfx_var dim, unbiased, keepdim, correction; } cfx_var_row_args;
static inline cfx_var cfx_var_row_at(cfx_at at, cfx_var self, cfx_var_row_args o)
{
    const cfx_var args[] = {self, o.dim, o.unbiased, o.keepdim, o.correction};
    return cfx_apply_at(at, CFX_OPID_var, args, 5);
}
#define cfx_var_row(s, self, ...)                                                                  \
    cfx_var_row_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_var_row_args, __VA_ARGS__))

/* std_dim(Tensor self, int[1]? dim=None, bool unbiased=True, bool keepdim=False) -> Tensor */
typedef struct cfx_std_dim_args { cfx_var dim, unbiased, keepdim; } cfx_std_dim_args;
static inline cfx_var cfx_std_dim_at(cfx_at at, cfx_var self, cfx_std_dim_args o)
{
    const cfx_var args[] = {self, o.dim, o.unbiased, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_std_dim, args, 4);
}
#define cfx_std_dim(s, self, ...)                                                                  \
    cfx_std_dim_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_std_dim_args, __VA_ARGS__))

/* var_dim(Tensor self, int[1]? dim=None, bool unbiased=True, bool keepdim=False) -> Tensor */
typedef struct cfx_var_dim_args { cfx_var dim, unbiased, keepdim; } cfx_var_dim_args;
static inline cfx_var cfx_var_dim_at(cfx_at at, cfx_var self, cfx_var_dim_args o)
{
    const cfx_var args[] = {self, o.dim, o.unbiased, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_var_dim, args, 4);
}
#define cfx_var_dim(s, self, ...)                                                                  \
    cfx_var_dim_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_var_dim_args, __VA_ARGS__))

/* std_mean(Tensor self, int[1]? dim=None, bool? unbiased=None, bool keepdim=False, *, Scalar?
 *     correction=None) -> (Tensor, Tensor)
 * torch.std_mean */
typedef struct cfx_std_mean_args { cfx_var dim, unbiased, keepdim, correction; } cfx_std_mean_args;
static inline cfx_var cfx_std_mean_at(cfx_at at, cfx_var self, cfx_std_mean_args o)
{
    const cfx_var args[] = {self, o.dim, o.unbiased, o.keepdim, o.correction};
    return cfx_apply_at(at, CFX_OPID_std_mean, args, 5);
}
#define cfx_std_mean(s, self, ...)                                                                 \
    cfx_std_mean_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_std_mean_args, __VA_ARGS__))

/* var_mean(Tensor self, int[1]? dim=None, bool? unbiased=None, bool keepdim=False, *, Scalar?
 *     correction=None) -> (Tensor, Tensor)
 * torch.var_mean */
typedef struct cfx_var_mean_args { cfx_var dim, unbiased, keepdim, correction; } cfx_var_mean_args;
static inline cfx_var cfx_var_mean_at(cfx_at at, cfx_var self, cfx_var_mean_args o)
{
    const cfx_var args[] = {self, o.dim, o.unbiased, o.keepdim, o.correction};
    return cfx_apply_at(at, CFX_OPID_var_mean, args, 5);
}
#define cfx_var_mean(s, self, ...)                                                                 \
    cfx_var_mean_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_var_mean_args, __VA_ARGS__))

/* logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor
 * torch.logsumexp, Tensor.logsumexp */
typedef struct cfx_logsumexp_args { cfx_var keepdim; } cfx_logsumexp_args;
static inline cfx_var cfx_logsumexp_at(cfx_at at, cfx_var self, cfx_var dim, cfx_logsumexp_args o)
{
    const cfx_var args[] = {self, dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_logsumexp, args, 3);
}
#define cfx_logsumexp(s, self, dim, ...)                                                           \
    cfx_logsumexp_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), CFX_OPTIONS(cfx_logsumexp_args,         \
        __VA_ARGS__))

/* median(Tensor self) -> Tensor
 * torch.median, Tensor.median */
static inline cfx_var cfx_median_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_median, args, 1);
}
#define cfx_median(s, self) cfx_median_at(CFX_HERE(s), cfx_v(self))

/* median_dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices) */
typedef struct cfx_median_dim_args { cfx_var keepdim; } cfx_median_dim_args;
static inline cfx_var cfx_median_dim_at(cfx_at at, cfx_var self, cfx_var dim, cfx_median_dim_args
        o)
{
    const cfx_var args[] = {self, dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_median_dim, args, 3);
}
#define cfx_median_dim(s, self, dim, ...)                                                          \
    cfx_median_dim_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), CFX_OPTIONS(cfx_median_dim_args,       \
        __VA_ARGS__))

/* mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)
 * torch.mode, Tensor.mode */
typedef struct cfx_mode_args { cfx_var dim, keepdim; } cfx_mode_args;
static inline cfx_var cfx_mode_at(cfx_at at, cfx_var self, cfx_mode_args o)
{
    const cfx_var args[] = {self, o.dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_mode, args, 3);
}
#define cfx_mode(s, self, ...)                                                                     \
    cfx_mode_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_mode_args, __VA_ARGS__))

/* count_nonzero(Tensor self, int[]? dim=None) -> Tensor
 * torch.count_nonzero, Tensor.count_nonzero */
typedef struct cfx_count_nonzero_args { cfx_var dim; } cfx_count_nonzero_args;
static inline cfx_var cfx_count_nonzero_at(cfx_at at, cfx_var self, cfx_count_nonzero_args o)
{
    const cfx_var args[] = {self, o.dim};
    return cfx_apply_at(at, CFX_OPID_count_nonzero, args, 2);
}
#define cfx_count_nonzero(s, self, ...)                                                            \
    cfx_count_nonzero_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_count_nonzero_args,             \
        __VA_ARGS__))

/* quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str
 *     interpolation='linear') -> Tensor
 * torch.quantile, Tensor.quantile */
typedef struct cfx_quantile_args { cfx_var dim, keepdim, interpolation; } cfx_quantile_args;
static inline cfx_var cfx_quantile_at(cfx_at at, cfx_var self, cfx_var q, cfx_quantile_args o)
{
    const cfx_var args[] = {self, q, o.dim, o.keepdim, o.interpolation};
    return cfx_apply_at(at, CFX_OPID_quantile, args, 5);
}
#define cfx_quantile(s, self, q, ...)                                                              \
    cfx_quantile_at(CFX_HERE(s), cfx_v(self), cfx_v(q), CFX_OPTIONS(cfx_quantile_args,             \
        __VA_ARGS__))

/* histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor
 * torch.histc, Tensor.histc */
typedef struct cfx_histc_args { cfx_var bins, min, max; } cfx_histc_args;
static inline cfx_var cfx_histc_at(cfx_at at, cfx_var self, cfx_histc_args o)
{
    const cfx_var args[] = {self, o.bins, o.min, o.max};
    return cfx_apply_at(at, CFX_OPID_histc, args, 4);
}
#define cfx_histc(s, self, ...)                                                                    \
    cfx_histc_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_histc_args, __VA_ARGS__))

/* bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor
 * torch.bincount, Tensor.bincount */
typedef struct cfx_bincount_args { cfx_var weights, minlength; } cfx_bincount_args;
static inline cfx_var cfx_bincount_at(cfx_at at, cfx_var self, cfx_bincount_args o)
{
    const cfx_var args[] = {self, o.weights, o.minlength};
    return cfx_apply_at(at, CFX_OPID_bincount, args, 3);
}
#define cfx_bincount(s, self, ...)                                                                 \
    cfx_bincount_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_bincount_args, __VA_ARGS__))

/* ---- Scans and orders ----------------------------------------------------------------------- */

/* cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
 * torch.cumsum, Tensor.cumsum */
typedef struct cfx_cumsum_args { cfx_var dtype; } cfx_cumsum_args;
static inline cfx_var cfx_cumsum_at(cfx_at at, cfx_var self, cfx_var dim, cfx_cumsum_args o)
{
    const cfx_var args[] = {self, dim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_cumsum, args, 3);
}
#define cfx_cumsum(s, self, dim, ...)                                                              \
    cfx_cumsum_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), CFX_OPTIONS(cfx_cumsum_args,               \
        __VA_ARGS__))

/* cumsum_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)
 * Tensor.cumsum_ */
typedef struct cfx_cumsum__args { cfx_var dtype; } cfx_cumsum__args;
static inline cfx_var cfx_cumsum__at(cfx_at at, cfx_var self, cfx_var dim, cfx_cumsum__args o)
{
    const cfx_var args[] = {self, dim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_cumsum_, args, 3);
}
#define cfx_cumsum_(s, self, dim, ...)                                                             \
    cfx_cumsum__at(CFX_HERE(s), cfx_v(self), cfx_v(dim), CFX_OPTIONS(cfx_cumsum__args,             \
        __VA_ARGS__))

/* cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
 * torch.cumprod, Tensor.cumprod */
typedef struct cfx_cumprod_args { cfx_var dtype; } cfx_cumprod_args;
static inline cfx_var cfx_cumprod_at(cfx_at at, cfx_var self, cfx_var dim, cfx_cumprod_args o)
{
    const cfx_var args[] = {self, dim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_cumprod, args, 3);
}
#define cfx_cumprod(s, self, dim, ...)                                                             \
    cfx_cumprod_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), CFX_OPTIONS(cfx_cumprod_args,             \
        __VA_ARGS__))

/* cumprod_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)
 * Tensor.cumprod_ */
typedef struct cfx_cumprod__args { cfx_var dtype; } cfx_cumprod__args;
static inline cfx_var cfx_cumprod__at(cfx_at at, cfx_var self, cfx_var dim, cfx_cumprod__args o)
{
    const cfx_var args[] = {self, dim, o.dtype};
    return cfx_apply_at(at, CFX_OPID_cumprod_, args, 3);
}
#define cfx_cumprod_(s, self, dim, ...)                                                            \
    cfx_cumprod__at(CFX_HERE(s), cfx_v(self), cfx_v(dim), CFX_OPTIONS(cfx_cumprod__args,           \
        __VA_ARGS__))

/* cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)
 * torch.cummax, Tensor.cummax */
static inline cfx_var cfx_cummax_at(cfx_at at, cfx_var self, cfx_var dim)
{
    const cfx_var args[] = {self, dim};
    return cfx_apply_at(at, CFX_OPID_cummax, args, 2);
}
#define cfx_cummax(s, self, dim) cfx_cummax_at(CFX_HERE(s), cfx_v(self), cfx_v(dim))

/* cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)
 * torch.cummin, Tensor.cummin */
static inline cfx_var cfx_cummin_at(cfx_at at, cfx_var self, cfx_var dim)
{
    const cfx_var args[] = {self, dim};
    return cfx_apply_at(at, CFX_OPID_cummin, args, 2);
}
#define cfx_cummin(s, self, dim) cfx_cummin_at(CFX_HERE(s), cfx_v(self), cfx_v(dim))

/* logcumsumexp(Tensor self, int dim) -> Tensor
 * torch.logcumsumexp, Tensor.logcumsumexp */
static inline cfx_var cfx_logcumsumexp_at(cfx_at at, cfx_var self, cfx_var dim)
{
    const cfx_var args[] = {self, dim};
    return cfx_apply_at(at, CFX_OPID_logcumsumexp, args, 2);
}
#define cfx_logcumsumexp(s, self, dim) cfx_logcumsumexp_at(CFX_HERE(s), cfx_v(self), cfx_v(dim))

/* diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor
 * torch.diff, Tensor.diff */
typedef struct cfx_diff_args { cfx_var n, dim, prepend, append; } cfx_diff_args;
static inline cfx_var cfx_diff_at(cfx_at at, cfx_var self, cfx_diff_args o)
{
    const cfx_var args[] = {self, o.n, o.dim, o.prepend, o.append};
    return cfx_apply_at(at, CFX_OPID_diff, args, 5);
}
#define cfx_diff(s, self, ...)                                                                     \
    cfx_diff_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_diff_args, __VA_ARGS__))

/* sort(Tensor self, int dim=-1, bool descending=False, *, bool? stable=None) -> (Tensor values,
 *     Tensor indices)
 * torch.sort, Tensor.sort */
typedef struct cfx_sort_args { cfx_var dim, descending, stable; } cfx_sort_args;
static inline cfx_var cfx_sort_at(cfx_at at, cfx_var self, cfx_sort_args o)
{
    const cfx_var args[] = {self, o.dim, o.descending, o.stable};
    return cfx_apply_at(at, CFX_OPID_sort, args, 4);
}
#define cfx_sort(s, self, ...)                                                                     \
    cfx_sort_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_sort_args, __VA_ARGS__))

/* sort_stable(Tensor self, *, bool? stable=None, int dim=-1, bool descending=False) -> (Tensor
 *     values, Tensor indices) */
typedef struct cfx_sort_stable_args { cfx_var stable, dim, descending; } cfx_sort_stable_args;
static inline cfx_var cfx_sort_stable_at(cfx_at at, cfx_var self, cfx_sort_stable_args o)
{
    const cfx_var args[] = {self, o.stable, o.dim, o.descending};
    return cfx_apply_at(at, CFX_OPID_sort_stable, args, 4);
}
#define cfx_sort_stable(s, self, ...)                                                              \
    cfx_sort_stable_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_sort_stable_args,                 \
        __VA_ARGS__))

/* argsort(Tensor self, int dim=-1, bool descending=False, *, bool stable=False) -> Tensor
 * torch.argsort, Tensor.argsort */
typedef struct cfx_argsort_args { cfx_var dim, descending, stable; } cfx_argsort_args;
static inline cfx_var cfx_argsort_at(cfx_at at, cfx_var self, cfx_argsort_args o)
{
    const cfx_var args[] = {self, o.dim, o.descending, o.stable};
    return cfx_apply_at(at, CFX_OPID_argsort, args, 4);
}
#define cfx_argsort(s, self, ...)                                                                  \
    cfx_argsort_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_argsort_args, __VA_ARGS__))

/* argsort_stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor */
typedef struct cfx_argsort_stable_args { cfx_var dim, descending; } cfx_argsort_stable_args;
static inline cfx_var cfx_argsort_stable_at(cfx_at at, cfx_var self, cfx_var stable,
        cfx_argsort_stable_args o)
{
    const cfx_var args[] = {self, stable, o.dim, o.descending};
    return cfx_apply_at(at, CFX_OPID_argsort_stable, args, 4);
}
#define cfx_argsort_stable(s, self, stable, ...)                                                   \
    cfx_argsort_stable_at(CFX_HERE(s), cfx_v(self), cfx_v(stable),                                 \
        CFX_OPTIONS(cfx_argsort_stable_args, __VA_ARGS__))

/* topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values,
 *     Tensor indices)
 * torch.topk, Tensor.topk */
typedef struct cfx_topk_args { cfx_var dim, largest, sorted; } cfx_topk_args;
static inline cfx_var cfx_topk_at(cfx_at at, cfx_var self, cfx_var k, cfx_topk_args o)
{
    const cfx_var args[] = {self, k, o.dim, o.largest, o.sorted};
    return cfx_apply_at(at, CFX_OPID_topk, args, 5);
}
#define cfx_topk(s, self, k, ...)                                                                  \
    cfx_topk_at(CFX_HERE(s), cfx_v(self), cfx_v(k), CFX_OPTIONS(cfx_topk_args, __VA_ARGS__))

/* kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor
 *     indices)
 * torch.kthvalue, Tensor.kthvalue */
typedef struct cfx_kthvalue_args { cfx_var dim, keepdim; } cfx_kthvalue_args;
static inline cfx_var cfx_kthvalue_at(cfx_at at, cfx_var self, cfx_var k, cfx_kthvalue_args o)
{
    const cfx_var args[] = {self, k, o.dim, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_kthvalue, args, 4);
}
#define cfx_kthvalue(s, self, k, ...)                                                              \
    cfx_kthvalue_at(CFX_HERE(s), cfx_v(self), cfx_v(k), CFX_OPTIONS(cfx_kthvalue_args,             \
        __VA_ARGS__))

/* unique(Tensor input, bool sorted=True, bool return_inverse=False, bool return_counts=False,
 *     int? dim=None) -> Any
 * torch.unique, Tensor.unique */
typedef struct cfx_unique_args { cfx_var sorted, return_inverse, return_counts, dim; }
        cfx_unique_args;
static inline cfx_var cfx_unique_at(cfx_at at, cfx_var input, cfx_unique_args o)
{
    const cfx_var args[] = {input, o.sorted, o.return_inverse, o.return_counts, o.dim};
    return cfx_apply_at(at, CFX_OPID_unique, args, 5);
}
#define cfx_unique(s, input, ...)                                                                  \
    cfx_unique_at(CFX_HERE(s), cfx_v(input), CFX_OPTIONS(cfx_unique_args, __VA_ARGS__))

/* searchsorted(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False,
 *     str? side=None, Tensor? sorter=None) -> Tensor
 * torch.searchsorted */
typedef struct cfx_searchsorted_args { cfx_var out_int32, right, side, sorter; }
        cfx_searchsorted_args;
static inline cfx_var cfx_searchsorted_at(cfx_at at, cfx_var sorted_sequence, cfx_var self,
        cfx_searchsorted_args o)
{
    const cfx_var args[] = {sorted_sequence, self, o.out_int32, o.right, o.side, o.sorter};
    return cfx_apply_at(at, CFX_OPID_searchsorted, args, 6);
}
#define cfx_searchsorted(s, sorted_sequence, self, ...)                                            \
    cfx_searchsorted_at(CFX_HERE(s), cfx_v(sorted_sequence), cfx_v(self),                          \
        CFX_OPTIONS(cfx_searchsorted_args, __VA_ARGS__))

/* bucketize(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor
 * torch.bucketize */
typedef struct cfx_bucketize_args { cfx_var out_int32, right; } cfx_bucketize_args;
static inline cfx_var cfx_bucketize_at(cfx_at at, cfx_var self, cfx_var boundaries,
        cfx_bucketize_args o)
{
    const cfx_var args[] = {self, boundaries, o.out_int32, o.right};
    return cfx_apply_at(at, CFX_OPID_bucketize, args, 4);
}
#define cfx_bucketize(s, self, boundaries, ...)                                                    \
    cfx_bucketize_at(CFX_HERE(s), cfx_v(self), cfx_v(boundaries),                                  \
        CFX_OPTIONS(cfx_bucketize_args, __VA_ARGS__))

/* nonzero(Tensor self) -> Tensor
 * torch.nonzero, Tensor.nonzero */
static inline cfx_var cfx_nonzero_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_nonzero, args, 1);
}
#define cfx_nonzero(s, self) cfx_nonzero_at(CFX_HERE(s), cfx_v(self))

/* ---- Indexing ------------------------------------------------------------------------------- */

/* index(Tensor self, Tensor?[] indices) -> Tensor */
static inline cfx_var cfx_index_at(cfx_at at, cfx_var self, cfx_var indices)
{
    const cfx_var args[] = {self, indices};
    return cfx_apply_at(at, CFX_OPID_index, args, 2);
}
#define cfx_index(s, self, indices) cfx_index_at(CFX_HERE(s), cfx_v(self), cfx_v(indices))

/* index_select(Tensor self, int dim, Tensor index) -> Tensor
 * torch.index_select, Tensor.index_select */
static inline cfx_var cfx_index_select_at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index)
{
    const cfx_var args[] = {self, dim, index};
    return cfx_apply_at(at, CFX_OPID_index_select, args, 3);
}
#define cfx_index_select(s, self, dim, index)                                                      \
    cfx_index_select_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index))

/* index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
 * torch.index_put, Tensor.index_put */
typedef struct cfx_index_put_args { cfx_var accumulate; } cfx_index_put_args;
static inline cfx_var cfx_index_put_at(cfx_at at, cfx_var self, cfx_var indices, cfx_var values,
        cfx_index_put_args o)
{
    const cfx_var args[] = {self, indices, values, o.accumulate};
    return cfx_apply_at(at, CFX_OPID_index_put, args, 4);
}
#define cfx_index_put(s, self, indices, values, ...)                                               \
    cfx_index_put_at(CFX_HERE(s), cfx_v(self), cfx_v(indices), cfx_v(values),                      \
        CFX_OPTIONS(cfx_index_put_args, __VA_ARGS__))

/* index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) ->
 *     Tensor(a!)
 * torch.index_put_, Tensor.index_put_ */
typedef struct cfx_index_put__args { cfx_var accumulate; } cfx_index_put__args;
static inline cfx_var cfx_index_put__at(cfx_at at, cfx_var self, cfx_var indices, cfx_var values,
        cfx_index_put__args o)
{
    const cfx_var args[] = {self, indices, values, o.accumulate};
    return cfx_apply_at(at, CFX_OPID_index_put_, args, 4);
}
#define cfx_index_put_(s, self, indices, values, ...)                                              \
    cfx_index_put__at(CFX_HERE(s), cfx_v(self), cfx_v(indices), cfx_v(values),                     \
        CFX_OPTIONS(cfx_index_put__args, __VA_ARGS__))

/* index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor
 * torch.index_add, Tensor.index_add */
typedef struct cfx_index_add_args { cfx_var alpha; } cfx_index_add_args;
static inline cfx_var cfx_index_add_at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index, cfx_var
        source, cfx_index_add_args o)
{
    const cfx_var args[] = {self, dim, index, source, o.alpha};
    return cfx_apply_at(at, CFX_OPID_index_add, args, 5);
}
#define cfx_index_add(s, self, dim, index, source, ...)                                            \
    cfx_index_add_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index), cfx_v(source),            \
        CFX_OPTIONS(cfx_index_add_args, __VA_ARGS__))

/* index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) ->
 *     Tensor(a!)
 * Tensor.index_add_ */
typedef struct cfx_index_add__args { cfx_var alpha; } cfx_index_add__args;
static inline cfx_var cfx_index_add__at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index,
        cfx_var source, cfx_index_add__args o)
{
    const cfx_var args[] = {self, dim, index, source, o.alpha};
    return cfx_apply_at(at, CFX_OPID_index_add_, args, 5);
}
#define cfx_index_add_(s, self, dim, index, source, ...)                                           \
    cfx_index_add__at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index), cfx_v(source),           \
        CFX_OPTIONS(cfx_index_add__args, __VA_ARGS__))

/* index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor
 * torch.index_copy, Tensor.index_copy */
static inline cfx_var cfx_index_copy_at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index,
        cfx_var source)
{
    const cfx_var args[] = {self, dim, index, source};
    return cfx_apply_at(at, CFX_OPID_index_copy, args, 4);
}
#define cfx_index_copy(s, self, dim, index, source)                                                \
    cfx_index_copy_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index), cfx_v(source))

/* index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) -> Tensor(a!)
 * Tensor.index_copy_ */
static inline cfx_var cfx_index_copy__at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index,
        cfx_var source)
{
    const cfx_var args[] = {self, dim, index, source};
    return cfx_apply_at(at, CFX_OPID_index_copy_, args, 4);
}
#define cfx_index_copy_(s, self, dim, index, source)                                               \
    cfx_index_copy__at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index), cfx_v(source))

/* index_fill(Tensor self, int dim, Tensor index, Scalar value) -> Tensor
 * torch.index_fill, Tensor.index_fill */
static inline cfx_var cfx_index_fill_at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index,
        cfx_var value)
{
    const cfx_var args[] = {self, dim, index, value};
    return cfx_apply_at(at, CFX_OPID_index_fill, args, 4);
}
#define cfx_index_fill(s, self, dim, index, value)                                                 \
    cfx_index_fill_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index), cfx_v(value))

/* index_fill_(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)
 * Tensor.index_fill_ */
static inline cfx_var cfx_index_fill__at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index,
        cfx_var value)
{
    const cfx_var args[] = {self, dim, index, value};
    return cfx_apply_at(at, CFX_OPID_index_fill_, args, 4);
}
#define cfx_index_fill_(s, self, dim, index, value)                                                \
    cfx_index_fill__at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index), cfx_v(value))

/* gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor
 * torch.gather, Tensor.gather */
typedef struct cfx_gather_args { cfx_var sparse_grad; } cfx_gather_args;
static inline cfx_var cfx_gather_at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index,
        cfx_gather_args o)
{
    const cfx_var args[] = {self, dim, index, o.sparse_grad};
    return cfx_apply_at(at, CFX_OPID_gather, args, 4);
}
#define cfx_gather(s, self, dim, index, ...)                                                       \
    cfx_gather_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index),                              \
        CFX_OPTIONS(cfx_gather_args, __VA_ARGS__))

/* scatter(Tensor self, int dim, Tensor index, Tensor src, *, str? reduce=None) -> Tensor
 * torch.scatter, Tensor.scatter */
typedef struct cfx_scatter_args { cfx_var reduce; } cfx_scatter_args;
static inline cfx_var cfx_scatter_at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index, cfx_var
        src, cfx_scatter_args o)
{
    const cfx_var args[] = {self, dim, index, src, o.reduce};
    return cfx_apply_at(at, CFX_OPID_scatter, args, 5);
}
#define cfx_scatter(s, self, dim, index, src, ...)                                                 \
    cfx_scatter_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index), cfx_v(src),                 \
        CFX_OPTIONS(cfx_scatter_args, __VA_ARGS__))

/* scatter_(Tensor(a!) self, int dim, Tensor index, Tensor src, *, str? reduce=None) ->
 *     Tensor(a!)
 * Tensor.scatter_ */
typedef struct cfx_scatter__args { cfx_var reduce; } cfx_scatter__args;
static inline cfx_var cfx_scatter__at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index, cfx_var
        src, cfx_scatter__args o)
{
    const cfx_var args[] = {self, dim, index, src, o.reduce};
    return cfx_apply_at(at, CFX_OPID_scatter_, args, 5);
}
#define cfx_scatter_(s, self, dim, index, src, ...)                                                \
    cfx_scatter__at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index), cfx_v(src),                \
        CFX_OPTIONS(cfx_scatter__args, __VA_ARGS__))

/* scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
 * torch.scatter_add, Tensor.scatter_add */
static inline cfx_var cfx_scatter_add_at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index,
        cfx_var src)
{
    const cfx_var args[] = {self, dim, index, src};
    return cfx_apply_at(at, CFX_OPID_scatter_add, args, 4);
}
#define cfx_scatter_add(s, self, dim, index, src)                                                  \
    cfx_scatter_add_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index), cfx_v(src))

/* scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)
 * Tensor.scatter_add_ */
static inline cfx_var cfx_scatter_add__at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index,
        cfx_var src)
{
    const cfx_var args[] = {self, dim, index, src};
    return cfx_apply_at(at, CFX_OPID_scatter_add_, args, 4);
}
#define cfx_scatter_add_(s, self, dim, index, src)                                                 \
    cfx_scatter_add__at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index), cfx_v(src))

/* scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool
 *     include_self=True) -> Tensor
 * torch.scatter_reduce, Tensor.scatter_reduce */
typedef struct cfx_scatter_reduce_args { cfx_var include_self; } cfx_scatter_reduce_args;
static inline cfx_var cfx_scatter_reduce_at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index,
        cfx_var src, cfx_var reduce, cfx_scatter_reduce_args o)
{
    const cfx_var args[] = {self, dim, index, src, reduce, o.include_self};
    return cfx_apply_at(at, CFX_OPID_scatter_reduce, args, 6);
}
#define cfx_scatter_reduce(s, self, dim, index, src, reduce, ...)                                  \
    cfx_scatter_reduce_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index), cfx_v(src),          \
        cfx_v(reduce), CFX_OPTIONS(cfx_scatter_reduce_args, __VA_ARGS__))

/* scatter_reduce_(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool
 *     include_self=True) -> Tensor(a!)
 * Tensor.scatter_reduce_ */
typedef struct cfx_scatter_reduce__args { cfx_var include_self; } cfx_scatter_reduce__args;
static inline cfx_var cfx_scatter_reduce__at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index,
        cfx_var src, cfx_var reduce, cfx_scatter_reduce__args o)
{
    const cfx_var args[] = {self, dim, index, src, reduce, o.include_self};
    return cfx_apply_at(at, CFX_OPID_scatter_reduce_, args, 6);
}
#define cfx_scatter_reduce_(s, self, dim, index, src, reduce, ...)                                 \
    cfx_scatter_reduce__at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index), cfx_v(src),         \
        cfx_v(reduce), CFX_OPTIONS(cfx_scatter_reduce__args, __VA_ARGS__))

/* masked_fill(Tensor self, Tensor mask, Tensor value) -> Tensor
 * torch.masked_fill, Tensor.masked_fill */
static inline cfx_var cfx_masked_fill_at(cfx_at at, cfx_var self, cfx_var mask, cfx_var value)
{
    const cfx_var args[] = {self, mask, value};
    return cfx_apply_at(at, CFX_OPID_masked_fill, args, 3);
}
#define cfx_masked_fill(s, self, mask, value)                                                      \
    cfx_masked_fill_at(CFX_HERE(s), cfx_v(self), cfx_v(mask), cfx_v(value))

/* masked_fill_(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor(a!)
 * Tensor.masked_fill_ */
static inline cfx_var cfx_masked_fill__at(cfx_at at, cfx_var self, cfx_var mask, cfx_var value)
{
    const cfx_var args[] = {self, mask, value};
    return cfx_apply_at(at, CFX_OPID_masked_fill_, args, 3);
}
#define cfx_masked_fill_(s, self, mask, value)                                                     \
    cfx_masked_fill__at(CFX_HERE(s), cfx_v(self), cfx_v(mask), cfx_v(value))

/* masked_select(Tensor self, Tensor mask) -> Tensor
 * torch.masked_select, Tensor.masked_select */
static inline cfx_var cfx_masked_select_at(cfx_at at, cfx_var self, cfx_var mask)
{
    const cfx_var args[] = {self, mask};
    return cfx_apply_at(at, CFX_OPID_masked_select, args, 2);
}
#define cfx_masked_select(s, self, mask) cfx_masked_select_at(CFX_HERE(s), cfx_v(self), cfx_v(mask))

/* masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor
 * torch.masked_scatter, Tensor.masked_scatter */
static inline cfx_var cfx_masked_scatter_at(cfx_at at, cfx_var self, cfx_var mask, cfx_var source)
{
    const cfx_var args[] = {self, mask, source};
    return cfx_apply_at(at, CFX_OPID_masked_scatter, args, 3);
}
#define cfx_masked_scatter(s, self, mask, source)                                                  \
    cfx_masked_scatter_at(CFX_HERE(s), cfx_v(self), cfx_v(mask), cfx_v(source))

/* masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)
 * Tensor.masked_scatter_ */
static inline cfx_var cfx_masked_scatter__at(cfx_at at, cfx_var self, cfx_var mask, cfx_var source)
{
    const cfx_var args[] = {self, mask, source};
    return cfx_apply_at(at, CFX_OPID_masked_scatter_, args, 3);
}
#define cfx_masked_scatter_(s, self, mask, source)                                                 \
    cfx_masked_scatter__at(CFX_HERE(s), cfx_v(self), cfx_v(mask), cfx_v(source))

/* where(Tensor condition, Tensor self, Tensor other) -> Tensor
 * torch.where, Tensor.where */
static inline cfx_var cfx_where_at(cfx_at at, cfx_var condition, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {condition, self, other};
    return cfx_apply_at(at, CFX_OPID_where, args, 3);
}
#define cfx_where(s, condition, self, other)                                                       \
    cfx_where_at(CFX_HERE(s), cfx_v(condition), cfx_v(self), cfx_v(other))

/* where_nonzero(Tensor condition) -> Tensor[] */
static inline cfx_var cfx_where_nonzero_at(cfx_at at, cfx_var condition)
{
    const cfx_var args[] = {condition};
    return cfx_apply_at(at, CFX_OPID_where_nonzero, args, 1);
}
#define cfx_where_nonzero(s, condition) cfx_where_nonzero_at(CFX_HERE(s), cfx_v(condition))

/* take(Tensor self, Tensor index) -> Tensor
 * torch.take, Tensor.take */
static inline cfx_var cfx_take_at(cfx_at at, cfx_var self, cfx_var index)
{
    const cfx_var args[] = {self, index};
    return cfx_apply_at(at, CFX_OPID_take, args, 2);
}
#define cfx_take(s, self, index) cfx_take_at(CFX_HERE(s), cfx_v(self), cfx_v(index))

/* take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor
 * torch.take_along_dim, Tensor.take_along_dim */
typedef struct cfx_take_along_dim_args { cfx_var dim; } cfx_take_along_dim_args;
static inline cfx_var cfx_take_along_dim_at(cfx_at at, cfx_var self, cfx_var indices,
        cfx_take_along_dim_args o)
{
    const cfx_var args[] = {self, indices, o.dim};
    return cfx_apply_at(at, CFX_OPID_take_along_dim, args, 3);
}
#define cfx_take_along_dim(s, self, indices, ...)                                                  \
    cfx_take_along_dim_at(CFX_HERE(s), cfx_v(self), cfx_v(indices),                                \
        CFX_OPTIONS(cfx_take_along_dim_args, __VA_ARGS__))

/* select(Tensor(a) self, int dim, int index) -> Tensor(a)
 * torch.select, Tensor.select */
static inline cfx_var cfx_select_at(cfx_at at, cfx_var self, cfx_var dim, cfx_var index)
{
    const cfx_var args[] = {self, dim, index};
    return cfx_apply_at(at, CFX_OPID_select, args, 3);
}
#define cfx_select(s, self, dim, index)                                                            \
    cfx_select_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(index))

/* narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)
 * torch.narrow, Tensor.narrow */
static inline cfx_var cfx_narrow_at(cfx_at at, cfx_var self, cfx_var dim, cfx_var start, cfx_var
        length)
{
    const cfx_var args[] = {self, dim, start, length};
    return cfx_apply_at(at, CFX_OPID_narrow, args, 4);
}
#define cfx_narrow(s, self, dim, start, length)                                                    \
    cfx_narrow_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(start), cfx_v(length))

/* slice(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a) */
typedef struct cfx_slice_args { cfx_var dim, start, end, step; } cfx_slice_args;
static inline cfx_var cfx_slice_at(cfx_at at, cfx_var self, cfx_slice_args o)
{
    const cfx_var args[] = {self, o.dim, o.start, o.end, o.step};
    return cfx_apply_at(at, CFX_OPID_slice, args, 5);
}
#define cfx_slice(s, self, ...)                                                                    \
    cfx_slice_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_slice_args, __VA_ARGS__))

/* select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor
 * torch.select_scatter, Tensor.select_scatter */
static inline cfx_var cfx_select_scatter_at(cfx_at at, cfx_var self, cfx_var src, cfx_var dim,
        cfx_var index)
{
    const cfx_var args[] = {self, src, dim, index};
    return cfx_apply_at(at, CFX_OPID_select_scatter, args, 4);
}
#define cfx_select_scatter(s, self, src, dim, index)                                               \
    cfx_select_scatter_at(CFX_HERE(s), cfx_v(self), cfx_v(src), cfx_v(dim), cfx_v(index))

/* diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor
 * torch.diagonal_scatter, Tensor.diagonal_scatter */
typedef struct cfx_diagonal_scatter_args { cfx_var offset, dim1, dim2; } cfx_diagonal_scatter_args;
static inline cfx_var cfx_diagonal_scatter_at(cfx_at at, cfx_var self, cfx_var src,
        cfx_diagonal_scatter_args o)
{
    const cfx_var args[] = {self, src, o.offset, o.dim1, o.dim2};
    return cfx_apply_at(at, CFX_OPID_diagonal_scatter, args, 5);
}
#define cfx_diagonal_scatter(s, self, src, ...)                                                    \
    cfx_diagonal_scatter_at(CFX_HERE(s), cfx_v(self), cfx_v(src),                                  \
        CFX_OPTIONS(cfx_diagonal_scatter_args, __VA_ARGS__))

/* as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int?
 *     storage_offset=None) -> Tensor
 * torch.as_strided_scatter, Tensor.as_strided_scatter */
typedef struct cfx_as_strided_scatter_args { cfx_var storage_offset; } cfx_as_strided_scatter_args;
static inline cfx_var cfx_as_strided_scatter_at(cfx_at at, cfx_var self, cfx_var src, cfx_var size,
        cfx_var stride, cfx_as_strided_scatter_args o)
{
    const cfx_var args[] = {self, src, size, stride, o.storage_offset};
    return cfx_apply_at(at, CFX_OPID_as_strided_scatter, args, 5);
}
#define cfx_as_strided_scatter(s, self, src, size, stride, ...)                                    \
    cfx_as_strided_scatter_at(CFX_HERE(s), cfx_v(self), cfx_v(src), cfx_v(size),                   \
        cfx_v(stride), CFX_OPTIONS(cfx_as_strided_scatter_args, __VA_ARGS__))

/* slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1)
 *     -> Tensor
 * torch.slice_scatter, Tensor.slice_scatter */
typedef struct cfx_slice_scatter_args { cfx_var dim, start, end, step; } cfx_slice_scatter_args;
static inline cfx_var cfx_slice_scatter_at(cfx_at at, cfx_var self, cfx_var src,
        cfx_slice_scatter_args o)
{
    const cfx_var args[] = {self, src, o.dim, o.start, o.end, o.step};
    return cfx_apply_at(at, CFX_OPID_slice_scatter, args, 6);
}
#define cfx_slice_scatter(s, self, src, ...)                                                       \
    cfx_slice_scatter_at(CFX_HERE(s), cfx_v(self), cfx_v(src),                                     \
        CFX_OPTIONS(cfx_slice_scatter_args, __VA_ARGS__))

/* tril(Tensor self, int diagonal=0) -> Tensor
 * torch.tril, Tensor.tril */
typedef struct cfx_tril_args { cfx_var diagonal; } cfx_tril_args;
static inline cfx_var cfx_tril_at(cfx_at at, cfx_var self, cfx_tril_args o)
{
    const cfx_var args[] = {self, o.diagonal};
    return cfx_apply_at(at, CFX_OPID_tril, args, 2);
}
#define cfx_tril(s, self, ...)                                                                     \
    cfx_tril_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_tril_args, __VA_ARGS__))

/* tril_(Tensor(a!) self, int diagonal=0) -> Tensor(a!)
 * Tensor.tril_ */
typedef struct cfx_tril__args { cfx_var diagonal; } cfx_tril__args;
static inline cfx_var cfx_tril__at(cfx_at at, cfx_var self, cfx_tril__args o)
{
    const cfx_var args[] = {self, o.diagonal};
    return cfx_apply_at(at, CFX_OPID_tril_, args, 2);
}
#define cfx_tril_(s, self, ...)                                                                    \
    cfx_tril__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_tril__args, __VA_ARGS__))

/* triu(Tensor self, int diagonal=0) -> Tensor
 * torch.triu, Tensor.triu */
typedef struct cfx_triu_args { cfx_var diagonal; } cfx_triu_args;
static inline cfx_var cfx_triu_at(cfx_at at, cfx_var self, cfx_triu_args o)
{
    const cfx_var args[] = {self, o.diagonal};
    return cfx_apply_at(at, CFX_OPID_triu, args, 2);
}
#define cfx_triu(s, self, ...)                                                                     \
    cfx_triu_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_triu_args, __VA_ARGS__))

/* triu_(Tensor(a!) self, int diagonal=0) -> Tensor(a!)
 * Tensor.triu_ */
typedef struct cfx_triu__args { cfx_var diagonal; } cfx_triu__args;
static inline cfx_var cfx_triu__at(cfx_at at, cfx_var self, cfx_triu__args o)
{
    const cfx_var args[] = {self, o.diagonal};
    return cfx_apply_at(at, CFX_OPID_triu_, args, 2);
}
#define cfx_triu_(s, self, ...)                                                                    \
    cfx_triu__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_triu__args, __VA_ARGS__))

/* diag(Tensor self, int diagonal=0) -> Tensor
 * torch.diag, Tensor.diag */
typedef struct cfx_diag_args { cfx_var diagonal; } cfx_diag_args;
static inline cfx_var cfx_diag_at(cfx_at at, cfx_var self, cfx_diag_args o)
{
    const cfx_var args[] = {self, o.diagonal};
    return cfx_apply_at(at, CFX_OPID_diag, args, 2);
}
#define cfx_diag(s, self, ...)                                                                     \
    cfx_diag_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_diag_args, __VA_ARGS__))

/* diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)
 * torch.diagonal, Tensor.diagonal */
typedef struct cfx_diagonal_args { cfx_var offset, dim1, dim2; } cfx_diagonal_args;
static inline cfx_var cfx_diagonal_at(cfx_at at, cfx_var self, cfx_diagonal_args o)
{
    const cfx_var args[] = {self, o.offset, o.dim1, o.dim2};
    return cfx_apply_at(at, CFX_OPID_diagonal, args, 4);
}
#define cfx_diagonal(s, self, ...)                                                                 \
    cfx_diagonal_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_diagonal_args, __VA_ARGS__))

/* diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor
 * torch.diag_embed, Tensor.diag_embed */
typedef struct cfx_diag_embed_args { cfx_var offset, dim1, dim2; } cfx_diag_embed_args;
static inline cfx_var cfx_diag_embed_at(cfx_at at, cfx_var self, cfx_diag_embed_args o)
{
    const cfx_var args[] = {self, o.offset, o.dim1, o.dim2};
    return cfx_apply_at(at, CFX_OPID_diag_embed, args, 4);
}
#define cfx_diag_embed(s, self, ...)                                                               \
    cfx_diag_embed_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_diag_embed_args, __VA_ARGS__))

/* ---- Joining and splitting ------------------------------------------------------------------ */

/* cat(Tensor[] tensors, int dim=0) -> Tensor
 * torch.cat, torch.concat, torch.concatenate */
typedef struct cfx_cat_args { cfx_var dim; } cfx_cat_args;
static inline cfx_var cfx_cat_at(cfx_at at, cfx_var tensors, cfx_cat_args o)
{
    const cfx_var args[] = {tensors, o.dim};
    return cfx_apply_at(at, CFX_OPID_cat, args, 2);
}
#define cfx_cat(s, tensors, ...)                                                                   \
    cfx_cat_at(CFX_HERE(s), cfx_v(tensors), CFX_OPTIONS(cfx_cat_args, __VA_ARGS__))

/* stack(Tensor[] tensors, int dim=0) -> Tensor
 * torch.stack */
typedef struct cfx_stack_args { cfx_var dim; } cfx_stack_args;
static inline cfx_var cfx_stack_at(cfx_at at, cfx_var tensors, cfx_stack_args o)
{
    const cfx_var args[] = {tensors, o.dim};
    return cfx_apply_at(at, CFX_OPID_stack, args, 2);
}
#define cfx_stack(s, tensors, ...)                                                                 \
    cfx_stack_at(CFX_HERE(s), cfx_v(tensors), CFX_OPTIONS(cfx_stack_args, __VA_ARGS__))

/* hstack(Tensor[] tensors) -> Tensor
 * torch.hstack */
static inline cfx_var cfx_hstack_at(cfx_at at, cfx_var tensors)
{
    const cfx_var args[] = {tensors};
    return cfx_apply_at(at, CFX_OPID_hstack, args, 1);
}
#define cfx_hstack(s, tensors) cfx_hstack_at(CFX_HERE(s), cfx_v(tensors))

/* vstack(Tensor[] tensors) -> Tensor
 * torch.vstack, torch.row_stack */
static inline cfx_var cfx_vstack_at(cfx_at at, cfx_var tensors)
{
    const cfx_var args[] = {tensors};
    return cfx_apply_at(at, CFX_OPID_vstack, args, 1);
}
#define cfx_vstack(s, tensors) cfx_vstack_at(CFX_HERE(s), cfx_v(tensors))

/* dstack(Tensor[] tensors) -> Tensor
 * torch.dstack */
static inline cfx_var cfx_dstack_at(cfx_at at, cfx_var tensors)
{
    const cfx_var args[] = {tensors};
    return cfx_apply_at(at, CFX_OPID_dstack, args, 1);
}
#define cfx_dstack(s, tensors) cfx_dstack_at(CFX_HERE(s), cfx_v(tensors))

/* split(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]
 * torch.split, Tensor.split, torch.unsafe_split, Tensor.unsafe_split */
typedef struct cfx_split_args { cfx_var dim; } cfx_split_args;
static inline cfx_var cfx_split_at(cfx_at at, cfx_var self, cfx_var split_size, cfx_split_args o)
{
    const cfx_var args[] = {self, split_size, o.dim};
    return cfx_apply_at(at, CFX_OPID_split, args, 3);
}
#define cfx_split(s, self, split_size, ...)                                                        \
    cfx_split_at(CFX_HERE(s), cfx_v(self), cfx_v(split_size), CFX_OPTIONS(cfx_split_args,          \
        __VA_ARGS__))

/* split_with_sizes(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]
 * torch.split_with_sizes, Tensor.split_with_sizes, torch.unsafe_split_with_sizes,
 *     Tensor.unsafe_split_with_sizes */
typedef struct cfx_split_with_sizes_args { cfx_var dim; } cfx_split_with_sizes_args;
static inline cfx_var cfx_split_with_sizes_at(cfx_at at, cfx_var self, cfx_var split_sizes,
        cfx_split_with_sizes_args o)
{
    const cfx_var args[] = {self, split_sizes, o.dim};
    return cfx_apply_at(at, CFX_OPID_split_with_sizes, args, 3);
}
#define cfx_split_with_sizes(s, self, split_sizes, ...)                                            \
    cfx_split_with_sizes_at(CFX_HERE(s), cfx_v(self), cfx_v(split_sizes),                          \
        CFX_OPTIONS(cfx_split_with_sizes_args, __VA_ARGS__))

/* tensor_split(Tensor(a -> *) self, Any sections, int dim=0) -> Tensor(a)[]
 * torch.tensor_split, Tensor.tensor_split */
typedef struct cfx_tensor_split_args { cfx_var dim; } cfx_tensor_split_args;
static inline cfx_var cfx_tensor_split_at(cfx_at at, cfx_var self, cfx_var sections,
        cfx_tensor_split_args o)
{
    const cfx_var args[] = {self, sections, o.dim};
    return cfx_apply_at(at, CFX_OPID_tensor_split, args, 3);
}
#define cfx_tensor_split(s, self, sections, ...)                                                   \
    cfx_tensor_split_at(CFX_HERE(s), cfx_v(self), cfx_v(sections),                                 \
        CFX_OPTIONS(cfx_tensor_split_args, __VA_ARGS__))

/* chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]
 * torch.chunk, Tensor.chunk, torch.unsafe_chunk, Tensor.unsafe_chunk */
typedef struct cfx_chunk_args { cfx_var dim; } cfx_chunk_args;
static inline cfx_var cfx_chunk_at(cfx_at at, cfx_var self, cfx_var chunks, cfx_chunk_args o)
{
    const cfx_var args[] = {self, chunks, o.dim};
    return cfx_apply_at(at, CFX_OPID_chunk, args, 3);
}
#define cfx_chunk(s, self, chunks, ...)                                                            \
    cfx_chunk_at(CFX_HERE(s), cfx_v(self), cfx_v(chunks), CFX_OPTIONS(cfx_chunk_args,              \
        __VA_ARGS__))

/* unbind(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]
 * torch.unbind, Tensor.unbind */
typedef struct cfx_unbind_args { cfx_var dim; } cfx_unbind_args;
static inline cfx_var cfx_unbind_at(cfx_at at, cfx_var self, cfx_unbind_args o)
{
    const cfx_var args[] = {self, o.dim};
    return cfx_apply_at(at, CFX_OPID_unbind, args, 2);
}
#define cfx_unbind(s, self, ...)                                                                   \
    cfx_unbind_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_unbind_args, __VA_ARGS__))

/* meshgrid(Tensor(a)[] tensors, *, str indexing='ij') -> Tensor(a)[]
 * torch.meshgrid */
typedef struct cfx_meshgrid_args { cfx_var indexing; } cfx_meshgrid_args;
static inline cfx_var cfx_meshgrid_at(cfx_at at, cfx_var tensors, cfx_meshgrid_args o)
{
    const cfx_var args[] = {tensors, o.indexing};
    return cfx_apply_at(at, CFX_OPID_meshgrid, args, 2);
}
#define cfx_meshgrid(s, tensors, ...)                                                              \
    cfx_meshgrid_at(CFX_HERE(s), cfx_v(tensors), CFX_OPTIONS(cfx_meshgrid_args, __VA_ARGS__))

/* broadcast_tensors(Tensor(a)[] tensors) -> Tensor(a)[]
 * torch.broadcast_tensors */
static inline cfx_var cfx_broadcast_tensors_at(cfx_at at, cfx_var tensors)
{
    const cfx_var args[] = {tensors};
    return cfx_apply_at(at, CFX_OPID_broadcast_tensors, args, 1);
}
#define cfx_broadcast_tensors(s, tensors) cfx_broadcast_tensors_at(CFX_HERE(s), cfx_v(tensors))

/* ---- Shapes --------------------------------------------------------------------------------- */

/* reshape(Tensor(a) self, int[] shape) -> Tensor(a)
 * torch.reshape, Tensor.reshape */
static inline cfx_var cfx_reshape_at(cfx_at at, cfx_var self, cfx_var shape)
{
    const cfx_var args[] = {self, shape};
    return cfx_apply_at(at, CFX_OPID_reshape, args, 2);
}
#define cfx_reshape(s, self, shape) cfx_reshape_at(CFX_HERE(s), cfx_v(self), cfx_v(shape))

/* view(Tensor(a) self, int[] size) -> Tensor(a)
 * Tensor.view */
static inline cfx_var cfx_view_at(cfx_at at, cfx_var self, cfx_var size)
{
    const cfx_var args[] = {self, size};
    return cfx_apply_at(at, CFX_OPID_view, args, 2);
}
#define cfx_view(s, self, size) cfx_view_at(CFX_HERE(s), cfx_v(self), cfx_v(size))

/* view_dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a) */
static inline cfx_var cfx_view_dtype_at(cfx_at at, cfx_var self, cfx_var dtype)
{
    const cfx_var args[] = {self, dtype};
    return cfx_apply_at(at, CFX_OPID_view_dtype, args, 2);
}
#define cfx_view_dtype(s, self, dtype) cfx_view_dtype_at(CFX_HERE(s), cfx_v(self), cfx_v(dtype))

/* view_as(Tensor(a) self, Tensor other) -> Tensor(a)
 * Tensor.view_as */
static inline cfx_var cfx_view_as_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_view_as, args, 2);
}
#define cfx_view_as(s, self, other) cfx_view_as_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)
 * Tensor.reshape_as */
static inline cfx_var cfx_reshape_as_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_reshape_as, args, 2);
}
#define cfx_reshape_as(s, self, other) cfx_reshape_as_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* flatten(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)
 * torch.flatten, Tensor.flatten */
typedef struct cfx_flatten_args { cfx_var start_dim, end_dim; } cfx_flatten_args;
static inline cfx_var cfx_flatten_at(cfx_at at, cfx_var self, cfx_flatten_args o)
{
    const cfx_var args[] = {self, o.start_dim, o.end_dim};
    return cfx_apply_at(at, CFX_OPID_flatten, args, 3);
}
#define cfx_flatten(s, self, ...)                                                                  \
    cfx_flatten_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_flatten_args, __VA_ARGS__))

/* unflatten(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)
 * torch.unflatten, Tensor.unflatten */
static inline cfx_var cfx_unflatten_at(cfx_at at, cfx_var self, cfx_var dim, cfx_var sizes)
{
    const cfx_var args[] = {self, dim, sizes};
    return cfx_apply_at(at, CFX_OPID_unflatten, args, 3);
}
#define cfx_unflatten(s, self, dim, sizes)                                                         \
    cfx_unflatten_at(CFX_HERE(s), cfx_v(self), cfx_v(dim), cfx_v(sizes))

/* ravel(Tensor(a) self) -> Tensor(a)
 * torch.ravel, Tensor.ravel */
static inline cfx_var cfx_ravel_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_ravel, args, 1);
}
#define cfx_ravel(s, self) cfx_ravel_at(CFX_HERE(s), cfx_v(self))

/* squeeze(Tensor(a) self) -> Tensor(a)
 * torch.squeeze, Tensor.squeeze */
static inline cfx_var cfx_squeeze_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_squeeze, args, 1);
}
#define cfx_squeeze(s, self) cfx_squeeze_at(CFX_HERE(s), cfx_v(self))

/* squeeze_(Tensor(a!) self) -> Tensor(a!)
 * Tensor.squeeze_ */
static inline cfx_var cfx_squeeze__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_squeeze_, args, 1);
}
#define cfx_squeeze_(s, self) cfx_squeeze__at(CFX_HERE(s), cfx_v(self))

/* squeeze_dim(Tensor(a) self, int[1] dim) -> Tensor(a) */
static inline cfx_var cfx_squeeze_dim_at(cfx_at at, cfx_var self, cfx_var dim)
{
    const cfx_var args[] = {self, dim};
    return cfx_apply_at(at, CFX_OPID_squeeze_dim, args, 2);
}
#define cfx_squeeze_dim(s, self, dim) cfx_squeeze_dim_at(CFX_HERE(s), cfx_v(self), cfx_v(dim))

/* squeeze_dim_(Tensor(a!) self, int[1] dim) -> Tensor(a!) */
static inline cfx_var cfx_squeeze_dim__at(cfx_at at, cfx_var self, cfx_var dim)
{
    const cfx_var args[] = {self, dim};
    return cfx_apply_at(at, CFX_OPID_squeeze_dim_, args, 2);
}
#define cfx_squeeze_dim_(s, self, dim) cfx_squeeze_dim__at(CFX_HERE(s), cfx_v(self), cfx_v(dim))

/* unsqueeze(Tensor(a) self, int dim) -> Tensor(a)
 * torch.unsqueeze, Tensor.unsqueeze */
static inline cfx_var cfx_unsqueeze_at(cfx_at at, cfx_var self, cfx_var dim)
{
    const cfx_var args[] = {self, dim};
    return cfx_apply_at(at, CFX_OPID_unsqueeze, args, 2);
}
#define cfx_unsqueeze(s, self, dim) cfx_unsqueeze_at(CFX_HERE(s), cfx_v(self), cfx_v(dim))

/* unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)
 * Tensor.unsqueeze_ */
static inline cfx_var cfx_unsqueeze__at(cfx_at at, cfx_var self, cfx_var dim)
{
    const cfx_var args[] = {self, dim};
    return cfx_apply_at(at, CFX_OPID_unsqueeze_, args, 2);
}
#define cfx_unsqueeze_(s, self, dim) cfx_unsqueeze__at(CFX_HERE(s), cfx_v(self), cfx_v(dim))

/* permute(Tensor(a) self, int[] dims) -> Tensor(a)
 * torch.permute, Tensor.permute */
static inline cfx_var cfx_permute_at(cfx_at at, cfx_var self, cfx_var dims)
{
    const cfx_var args[] = {self, dims};
    return cfx_apply_at(at, CFX_OPID_permute, args, 2);
}
#define cfx_permute(s, self, dims) cfx_permute_at(CFX_HERE(s), cfx_v(self), cfx_v(dims))

/* transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)
 * torch.transpose, Tensor.transpose, torch.swapaxes, Tensor.swapaxes */
static inline cfx_var cfx_transpose_at(cfx_at at, cfx_var self, cfx_var dim0, cfx_var dim1)
{
    const cfx_var args[] = {self, dim0, dim1};
    return cfx_apply_at(at, CFX_OPID_transpose, args, 3);
}
#define cfx_transpose(s, self, dim0, dim1)                                                         \
    cfx_transpose_at(CFX_HERE(s), cfx_v(self), cfx_v(dim0), cfx_v(dim1))

/* transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)
 * Tensor.transpose_, Tensor.swapaxes_, Tensor.swapdims_ */
static inline cfx_var cfx_transpose__at(cfx_at at, cfx_var self, cfx_var dim0, cfx_var dim1)
{
    const cfx_var args[] = {self, dim0, dim1};
    return cfx_apply_at(at, CFX_OPID_transpose_, args, 3);
}
#define cfx_transpose_(s, self, dim0, dim1)                                                        \
    cfx_transpose__at(CFX_HERE(s), cfx_v(self), cfx_v(dim0), cfx_v(dim1))

/* t(Tensor(a) self) -> Tensor(a)
 * torch.t, Tensor.t */
static inline cfx_var cfx_t_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_t, args, 1);
}
#define cfx_t(s, self) cfx_t_at(CFX_HERE(s), cfx_v(self))

/* t_(Tensor(a!) self) -> Tensor(a!)
 * Tensor.t_ */
static inline cfx_var cfx_t__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_t_, args, 1);
}
#define cfx_t_(s, self) cfx_t__at(CFX_HERE(s), cfx_v(self))

/* numpy_T(Tensor(a) self) -> Tensor(a) */
static inline cfx_var cfx_numpy_T_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_numpy_T, args, 1);
}
#define cfx_numpy_T(s, self) cfx_numpy_T_at(CFX_HERE(s), cfx_v(self))

/* mT(Tensor(a) self) -> Tensor(a) */
static inline cfx_var cfx_mT_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_mT, args, 1);
}
#define cfx_mT(s, self) cfx_mT_at(CFX_HERE(s), cfx_v(self))

/* adjoint(Tensor(a) self) -> Tensor(a)
 * torch.adjoint, Tensor.adjoint */
static inline cfx_var cfx_adjoint_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_adjoint, args, 1);
}
#define cfx_adjoint(s, self) cfx_adjoint_at(CFX_HERE(s), cfx_v(self))

/* movedim(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)
 * torch.movedim, Tensor.movedim, torch.moveaxis, Tensor.moveaxis */
static inline cfx_var cfx_movedim_at(cfx_at at, cfx_var self, cfx_var source, cfx_var destination)
{
    const cfx_var args[] = {self, source, destination};
    return cfx_apply_at(at, CFX_OPID_movedim, args, 3);
}
#define cfx_movedim(s, self, source, destination)                                                  \
    cfx_movedim_at(CFX_HERE(s), cfx_v(self), cfx_v(source), cfx_v(destination))

/* expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)
 * Tensor.expand */
typedef struct cfx_expand_args { cfx_var implicit; } cfx_expand_args;
static inline cfx_var cfx_expand_at(cfx_at at, cfx_var self, cfx_var size, cfx_expand_args o)
{
    const cfx_var args[] = {self, size, o.implicit};
    return cfx_apply_at(at, CFX_OPID_expand, args, 3);
}
#define cfx_expand(s, self, size, ...)                                                             \
    cfx_expand_at(CFX_HERE(s), cfx_v(self), cfx_v(size), CFX_OPTIONS(cfx_expand_args,              \
        __VA_ARGS__))

/* expand_as(Tensor(a) self, Tensor other) -> Tensor(a)
 * Tensor.expand_as */
static inline cfx_var cfx_expand_as_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_expand_as, args, 2);
}
#define cfx_expand_as(s, self, other) cfx_expand_as_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)
 * torch.broadcast_to, Tensor.broadcast_to */
static inline cfx_var cfx_broadcast_to_at(cfx_at at, cfx_var self, cfx_var size)
{
    const cfx_var args[] = {self, size};
    return cfx_apply_at(at, CFX_OPID_broadcast_to, args, 2);
}
#define cfx_broadcast_to(s, self, size) cfx_broadcast_to_at(CFX_HERE(s), cfx_v(self), cfx_v(size))

/* repeat(Tensor self, int[] repeats) -> Tensor
 * Tensor.repeat */
static inline cfx_var cfx_repeat_at(cfx_at at, cfx_var self, cfx_var repeats)
{
    const cfx_var args[] = {self, repeats};
    return cfx_apply_at(at, CFX_OPID_repeat, args, 2);
}
#define cfx_repeat(s, self, repeats) cfx_repeat_at(CFX_HERE(s), cfx_v(self), cfx_v(repeats))

/* tile(Tensor self, int[] dims) -> Tensor
 * torch.tile, Tensor.tile */
static inline cfx_var cfx_tile_at(cfx_at at, cfx_var self, cfx_var dims)
{
    const cfx_var args[] = {self, dims};
    return cfx_apply_at(at, CFX_OPID_tile, args, 2);
}
#define cfx_tile(s, self, dims) cfx_tile_at(CFX_HERE(s), cfx_v(self), cfx_v(dims))

/* repeat_interleave(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) ->
 *     Tensor
 * torch.repeat_interleave, Tensor.repeat_interleave */
typedef struct cfx_repeat_interleave_args { cfx_var dim, output_size; } cfx_repeat_interleave_args;
static inline cfx_var cfx_repeat_interleave_at(cfx_at at, cfx_var self, cfx_var repeats,
        cfx_repeat_interleave_args o)
{
    const cfx_var args[] = {self, repeats, o.dim, o.output_size};
    return cfx_apply_at(at, CFX_OPID_repeat_interleave, args, 4);
}
#define cfx_repeat_interleave(s, self, repeats, ...)                                               \
    cfx_repeat_interleave_at(CFX_HERE(s), cfx_v(self), cfx_v(repeats),                             \
        CFX_OPTIONS(cfx_repeat_interleave_args, __VA_ARGS__))

/* unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)
 * Tensor.unfold */
static inline cfx_var cfx_unfold_at(cfx_at at, cfx_var self, cfx_var dimension, cfx_var size,
        cfx_var step)
{
    const cfx_var args[] = {self, dimension, size, step};
    return cfx_apply_at(at, CFX_OPID_unfold, args, 4);
}
#define cfx_unfold(s, self, dimension, size, step)                                                 \
    cfx_unfold_at(CFX_HERE(s), cfx_v(self), cfx_v(dimension), cfx_v(size), cfx_v(step))

/* as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)
 * torch.as_strided, Tensor.as_strided */
typedef struct cfx_as_strided_args { cfx_var storage_offset; } cfx_as_strided_args;
static inline cfx_var cfx_as_strided_at(cfx_at at, cfx_var self, cfx_var size, cfx_var stride,
        cfx_as_strided_args o)
{
    const cfx_var args[] = {self, size, stride, o.storage_offset};
    return cfx_apply_at(at, CFX_OPID_as_strided, args, 4);
}
#define cfx_as_strided(s, self, size, stride, ...)                                                 \
    cfx_as_strided_at(CFX_HERE(s), cfx_v(self), cfx_v(size), cfx_v(stride),                        \
        CFX_OPTIONS(cfx_as_strided_args, __VA_ARGS__))

/* as_strided_(Tensor(a!) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a!)
 * torch.as_strided_, Tensor.as_strided_ */
typedef struct cfx_as_strided__args { cfx_var storage_offset; } cfx_as_strided__args;
static inline cfx_var cfx_as_strided__at(cfx_at at, cfx_var self, cfx_var size, cfx_var stride,
        cfx_as_strided__args o)
{
    const cfx_var args[] = {self, size, stride, o.storage_offset};
    return cfx_apply_at(at, CFX_OPID_as_strided_, args, 4);
}
#define cfx_as_strided_(s, self, size, stride, ...)                                                \
    cfx_as_strided__at(CFX_HERE(s), cfx_v(self), cfx_v(size), cfx_v(stride),                       \
        CFX_OPTIONS(cfx_as_strided__args, __VA_ARGS__))

/* flip(Tensor self, int[] dims) -> Tensor
 * torch.flip, Tensor.flip */
static inline cfx_var cfx_flip_at(cfx_at at, cfx_var self, cfx_var dims)
{
    const cfx_var args[] = {self, dims};
    return cfx_apply_at(at, CFX_OPID_flip, args, 2);
}
#define cfx_flip(s, self, dims) cfx_flip_at(CFX_HERE(s), cfx_v(self), cfx_v(dims))

/* roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor
 * torch.roll, Tensor.roll */
typedef struct cfx_roll_args { cfx_var dims; } cfx_roll_args;
static inline cfx_var cfx_roll_at(cfx_at at, cfx_var self, cfx_var shifts, cfx_roll_args o)
{
    const cfx_var args[] = {self, shifts, o.dims};
    return cfx_apply_at(at, CFX_OPID_roll, args, 3);
}
#define cfx_roll(s, self, shifts, ...)                                                             \
    cfx_roll_at(CFX_HERE(s), cfx_v(self), cfx_v(shifts), CFX_OPTIONS(cfx_roll_args,                \
        __VA_ARGS__))

/* rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor
 * torch.rot90, Tensor.rot90 */
typedef struct cfx_rot90_args { cfx_var k, dims; } cfx_rot90_args;
static inline cfx_var cfx_rot90_at(cfx_at at, cfx_var self, cfx_rot90_args o)
{
    const cfx_var args[] = {self, o.k, o.dims};
    return cfx_apply_at(at, CFX_OPID_rot90, args, 3);
}
#define cfx_rot90(s, self, ...)                                                                    \
    cfx_rot90_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_rot90_args, __VA_ARGS__))

/* atleast_1d(Tensor(a) self) -> Tensor(a)
 * torch.atleast_1d */
static inline cfx_var cfx_atleast_1d_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_atleast_1d, args, 1);
}
#define cfx_atleast_1d(s, self) cfx_atleast_1d_at(CFX_HERE(s), cfx_v(self))

/* atleast_2d(Tensor(a) self) -> Tensor(a)
 * torch.atleast_2d */
static inline cfx_var cfx_atleast_2d_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_atleast_2d, args, 1);
}
#define cfx_atleast_2d(s, self) cfx_atleast_2d_at(CFX_HERE(s), cfx_v(self))

/* atleast_3d(Tensor(a) self) -> Tensor(a)
 * torch.atleast_3d */
static inline cfx_var cfx_atleast_3d_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_atleast_3d, args, 1);
}
#define cfx_atleast_3d(s, self) cfx_atleast_3d_at(CFX_HERE(s), cfx_v(self))

/* atleast_1d_each(Tensor(a)[] tensors) -> Tensor(a)[] */
static inline cfx_var cfx_atleast_1d_each_at(cfx_at at, cfx_var tensors)
{
    const cfx_var args[] = {tensors};
    return cfx_apply_at(at, CFX_OPID_atleast_1d_each, args, 1);
}
#define cfx_atleast_1d_each(s, tensors) cfx_atleast_1d_each_at(CFX_HERE(s), cfx_v(tensors))

/* atleast_2d_each(Tensor(a)[] tensors) -> Tensor(a)[] */
static inline cfx_var cfx_atleast_2d_each_at(cfx_at at, cfx_var tensors)
{
    const cfx_var args[] = {tensors};
    return cfx_apply_at(at, CFX_OPID_atleast_2d_each, args, 1);
}
#define cfx_atleast_2d_each(s, tensors) cfx_atleast_2d_each_at(CFX_HERE(s), cfx_v(tensors))

/* atleast_3d_each(Tensor(a)[] tensors) -> Tensor(a)[] */
static inline cfx_var cfx_atleast_3d_each_at(cfx_at at, cfx_var tensors)
{
    const cfx_var args[] = {tensors};
    return cfx_apply_at(at, CFX_OPID_atleast_3d_each, args, 1);
}
#define cfx_atleast_3d_each(s, tensors) cfx_atleast_3d_each_at(CFX_HERE(s), cfx_v(tensors))

/* real(Tensor(a) self) -> Tensor(a)
 * torch.real */
static inline cfx_var cfx_real_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_real, args, 1);
}
#define cfx_real(s, self) cfx_real_at(CFX_HERE(s), cfx_v(self))

/* imag(Tensor(a) self) -> Tensor(a)
 * torch.imag */
static inline cfx_var cfx_imag_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_imag, args, 1);
}
#define cfx_imag(s, self) cfx_imag_at(CFX_HERE(s), cfx_v(self))

/* view_as_real(Tensor(a) self) -> Tensor(a)
 * torch.view_as_real */
static inline cfx_var cfx_view_as_real_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_view_as_real, args, 1);
}
#define cfx_view_as_real(s, self) cfx_view_as_real_at(CFX_HERE(s), cfx_v(self))

/* view_as_complex(Tensor(a) self) -> Tensor(a)
 * torch.view_as_complex */
static inline cfx_var cfx_view_as_complex_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_view_as_complex, args, 1);
}
#define cfx_view_as_complex(s, self) cfx_view_as_complex_at(CFX_HERE(s), cfx_v(self))

/* conj(Tensor(a) self) -> Tensor(a)
 * torch.conj, Tensor.conj */
static inline cfx_var cfx_conj_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_conj, args, 1);
}
#define cfx_conj(s, self) cfx_conj_at(CFX_HERE(s), cfx_v(self))

/* ---- Padding and resizing ------------------------------------------------------------------- */

/* pad(Tensor self, int[] pad, str mode='constant', float? value=None) -> Tensor
 * torch.nn.functional.pad */
typedef struct cfx_pad_args { cfx_var mode, value; } cfx_pad_args;
static inline cfx_var cfx_pad_at(cfx_at at, cfx_var self, cfx_var pad, cfx_pad_args o)
{
    const cfx_var args[] = {self, pad, o.mode, o.value};
    return cfx_apply_at(at, CFX_OPID_pad, args, 4);
}
#define cfx_pad(s, self, pad, ...)                                                                 \
    cfx_pad_at(CFX_HERE(s), cfx_v(self), cfx_v(pad), CFX_OPTIONS(cfx_pad_args, __VA_ARGS__))

/* constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor
 * torch.constant_pad_nd */
typedef struct cfx_constant_pad_nd_args { cfx_var value; } cfx_constant_pad_nd_args;
static inline cfx_var cfx_constant_pad_nd_at(cfx_at at, cfx_var self, cfx_var pad,
        cfx_constant_pad_nd_args o)
{
    const cfx_var args[] = {self, pad, o.value};
    return cfx_apply_at(at, CFX_OPID_constant_pad_nd, args, 3);
}
#define cfx_constant_pad_nd(s, self, pad, ...)                                                     \
    cfx_constant_pad_nd_at(CFX_HERE(s), cfx_v(self), cfx_v(pad),                                   \
        CFX_OPTIONS(cfx_constant_pad_nd_args, __VA_ARGS__))

/* pixel_shuffle(Tensor self, int upscale_factor) -> Tensor
 * torch.pixel_shuffle, torch.nn.functional.pixel_shuffle */
static inline cfx_var cfx_pixel_shuffle_at(cfx_at at, cfx_var self, cfx_var upscale_factor)
{
    const cfx_var args[] = {self, upscale_factor};
    return cfx_apply_at(at, CFX_OPID_pixel_shuffle, args, 2);
}
#define cfx_pixel_shuffle(s, self, upscale_factor)                                                 \
    cfx_pixel_shuffle_at(CFX_HERE(s), cfx_v(self), cfx_v(upscale_factor))

/* pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor
 * torch.pixel_unshuffle, torch.nn.functional.pixel_unshuffle */
static inline cfx_var cfx_pixel_unshuffle_at(cfx_at at, cfx_var self, cfx_var downscale_factor)
{
    const cfx_var args[] = {self, downscale_factor};
    return cfx_apply_at(at, CFX_OPID_pixel_unshuffle, args, 2);
}
#define cfx_pixel_unshuffle(s, self, downscale_factor)                                             \
    cfx_pixel_unshuffle_at(CFX_HERE(s), cfx_v(self), cfx_v(downscale_factor))

/* channel_shuffle(Tensor self, int groups) -> Tensor
 * torch.channel_shuffle, torch.nn.functional.channel_shuffle, torch.native_channel_shuffle */
static inline cfx_var cfx_channel_shuffle_at(cfx_at at, cfx_var self, cfx_var groups)
{
    const cfx_var args[] = {self, groups};
    return cfx_apply_at(at, CFX_OPID_channel_shuffle, args, 2);
}
#define cfx_channel_shuffle(s, self, groups)                                                       \
    cfx_channel_shuffle_at(CFX_HERE(s), cfx_v(self), cfx_v(groups))

/* interpolate(Tensor input, int[]? size=None, float[]? scale_factor=None, str mode='nearest',
 *     bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) ->
 *     Tensor
 * torch.nn.functional.interpolate, torch.nn.functional.upsample */
typedef struct cfx_interpolate_args { cfx_var size, scale_factor, mode, align_corners,
        recompute_scale_factor, antialias; } cfx_interpolate_args;
static inline cfx_var cfx_interpolate_at(cfx_at at, cfx_var input, cfx_interpolate_args o)
{
    const cfx_var args[] = {input, o.size, o.scale_factor, o.mode, o.align_corners,
        o.recompute_scale_factor, o.antialias};
    return cfx_apply_at(at, CFX_OPID_interpolate, args, 7);
}
#define cfx_interpolate(s, input, ...)                                                             \
    cfx_interpolate_at(CFX_HERE(s), cfx_v(input), CFX_OPTIONS(cfx_interpolate_args,                \
        __VA_ARGS__))

/* upsample_nearest1d(Tensor input, int[]? output_size, float[]? scale_factors=None, float?
 *     scales=None) -> Tensor */
typedef struct cfx_upsample_nearest1d_args { cfx_var scale_factors, scales; }
        cfx_upsample_nearest1d_args;
static inline cfx_var cfx_upsample_nearest1d_at(cfx_at at, cfx_var input, cfx_var output_size,
        cfx_upsample_nearest1d_args o)
{
    const cfx_var args[] = {input, output_size, o.scale_factors, o.scales};
    return cfx_apply_at(at, CFX_OPID_upsample_nearest1d, args, 4);
}
#define cfx_upsample_nearest1d(s, input, output_size, ...)                                         \
    cfx_upsample_nearest1d_at(CFX_HERE(s), cfx_v(input), cfx_v(output_size),                       \
        CFX_OPTIONS(cfx_upsample_nearest1d_args, __VA_ARGS__))

/* upsample_nearest2d(Tensor input, int[]? output_size, float[]? scale_factors=None, float?
 *     scales_h=None, float? scales_w=None) -> Tensor */
typedef struct cfx_upsample_nearest2d_args { cfx_var scale_factors, scales_h, scales_w; }
        cfx_upsample_nearest2d_args;
static inline cfx_var cfx_upsample_nearest2d_at(cfx_at at, cfx_var input, cfx_var output_size,
        cfx_upsample_nearest2d_args o)
{
    const cfx_var args[] = {input, output_size, o.scale_factors, o.scales_h, o.scales_w};
    return cfx_apply_at(at, CFX_OPID_upsample_nearest2d, args, 5);
}
#define cfx_upsample_nearest2d(s, input, output_size, ...)                                         \
    cfx_upsample_nearest2d_at(CFX_HERE(s), cfx_v(input), cfx_v(output_size),                       \
        CFX_OPTIONS(cfx_upsample_nearest2d_args, __VA_ARGS__))

/* upsample_nearest3d(Tensor input, int[]? output_size, float[]? scale_factors=None, float?
 *     scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor */
typedef struct cfx_upsample_nearest3d_args { cfx_var scale_factors, scales_d, scales_h, scales_w; }
        cfx_upsample_nearest3d_args;
static inline cfx_var cfx_upsample_nearest3d_at(cfx_at at, cfx_var input, cfx_var output_size,
        cfx_upsample_nearest3d_args o)
{
    const cfx_var args[] = {input, output_size, o.scale_factors, o.scales_d, o.scales_h,
        o.scales_w};
    return cfx_apply_at(at, CFX_OPID_upsample_nearest3d, args, 6);
}
#define cfx_upsample_nearest3d(s, input, output_size, ...)                                         \
    cfx_upsample_nearest3d_at(CFX_HERE(s), cfx_v(input), cfx_v(output_size),                       \
        CFX_OPTIONS(cfx_upsample_nearest3d_args, __VA_ARGS__))

/* upsample_nearest_exact1d(Tensor input, int[]? output_size, float[]? scale_factors=None, float?
 *     scales=None) -> Tensor */
typedef struct cfx_upsample_nearest_exact1d_args { cfx_var scale_factors, scales; }
        cfx_upsample_nearest_exact1d_args;
static inline cfx_var cfx_upsample_nearest_exact1d_at(cfx_at at, cfx_var input, cfx_var
        output_size, cfx_upsample_nearest_exact1d_args o)
{
    const cfx_var args[] = {input, output_size, o.scale_factors, o.scales};
    return cfx_apply_at(at, CFX_OPID_upsample_nearest_exact1d, args, 4);
}
#define cfx_upsample_nearest_exact1d(s, input, output_size, ...)                                   \
    cfx_upsample_nearest_exact1d_at(CFX_HERE(s), cfx_v(input), cfx_v(output_size),                 \
        CFX_OPTIONS(cfx_upsample_nearest_exact1d_args, __VA_ARGS__))

/* upsample_nearest_exact2d(Tensor input, int[]? output_size, float[]? scale_factors=None, float?
 *     scales_h=None, float? scales_w=None) -> Tensor */
typedef struct cfx_upsample_nearest_exact2d_args { cfx_var scale_factors, scales_h, scales_w; }
        cfx_upsample_nearest_exact2d_args;
static inline cfx_var cfx_upsample_nearest_exact2d_at(cfx_at at, cfx_var input, cfx_var
        output_size, cfx_upsample_nearest_exact2d_args o)
{
    const cfx_var args[] = {input, output_size, o.scale_factors, o.scales_h, o.scales_w};
    return cfx_apply_at(at, CFX_OPID_upsample_nearest_exact2d, args, 5);
}
#define cfx_upsample_nearest_exact2d(s, input, output_size, ...)                                   \
    cfx_upsample_nearest_exact2d_at(CFX_HERE(s), cfx_v(input), cfx_v(output_size),                 \
        CFX_OPTIONS(cfx_upsample_nearest_exact2d_args, __VA_ARGS__))

/* upsample_nearest_exact3d(Tensor input, int[]? output_size, float[]? scale_factors=None, float?
 *     scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor */
typedef struct cfx_upsample_nearest_exact3d_args { cfx_var scale_factors, scales_d, scales_h,
        scales_w; } cfx_upsample_nearest_exact3d_args;
static inline cfx_var cfx_upsample_nearest_exact3d_at(cfx_at at, cfx_var input, cfx_var
        output_size, cfx_upsample_nearest_exact3d_args o)
{
    const cfx_var args[] = {input, output_size, o.scale_factors, o.scales_d, o.scales_h,
        o.scales_w};
    return cfx_apply_at(at, CFX_OPID_upsample_nearest_exact3d, args, 6);
}
#define cfx_upsample_nearest_exact3d(s, input, output_size, ...)                                   \
    cfx_upsample_nearest_exact3d_at(CFX_HERE(s), cfx_v(input), cfx_v(output_size),                 \
        CFX_OPTIONS(cfx_upsample_nearest_exact3d_args, __VA_ARGS__))

/* upsample_linear1d(Tensor input, int[]? output_size, bool align_corners, float[]?
 *     scale_factors=None, float? scales=None) -> Tensor */
typedef struct cfx_upsample_linear1d_args { cfx_var scale_factors, scales; }
        cfx_upsample_linear1d_args;
static inline cfx_var cfx_upsample_linear1d_at(cfx_at at, cfx_var input, cfx_var output_size,
        cfx_var align_corners, cfx_upsample_linear1d_args o)
{
    const cfx_var args[] = {input, output_size, align_corners, o.scale_factors, o.scales};
    return cfx_apply_at(at, CFX_OPID_upsample_linear1d, args, 5);
}
#define cfx_upsample_linear1d(s, input, output_size, align_corners, ...)                           \
    cfx_upsample_linear1d_at(CFX_HERE(s), cfx_v(input), cfx_v(output_size),                        \
        cfx_v(align_corners), CFX_OPTIONS(cfx_upsample_linear1d_args, __VA_ARGS__))

/* upsample_bilinear2d(Tensor input, int[]? output_size, bool align_corners, float[]?
 *     scale_factors=None, float? scales_h=None, float? scales_w=None) -> Tensor */
typedef struct cfx_upsample_bilinear2d_args { cfx_var scale_factors, scales_h, scales_w; }
        cfx_upsample_bilinear2d_args;
static inline cfx_var cfx_upsample_bilinear2d_at(cfx_at at, cfx_var input, cfx_var output_size,
        cfx_var align_corners, cfx_upsample_bilinear2d_args o)
{
    const cfx_var args[] = {input, output_size, align_corners, o.scale_factors, o.scales_h,
        o.scales_w};
    return cfx_apply_at(at, CFX_OPID_upsample_bilinear2d, args, 6);
}
#define cfx_upsample_bilinear2d(s, input, output_size, align_corners, ...)                         \
    cfx_upsample_bilinear2d_at(CFX_HERE(s), cfx_v(input), cfx_v(output_size),                      \
        cfx_v(align_corners), CFX_OPTIONS(cfx_upsample_bilinear2d_args, __VA_ARGS__))

/* upsample_bicubic2d(Tensor input, int[]? output_size, bool align_corners, float[]?
 *     scale_factors=None, float? scales_h=None, float? scales_w=None) -> Tensor */
typedef struct cfx_upsample_bicubic2d_args { cfx_var scale_factors, scales_h, scales_w; }
        cfx_upsample_bicubic2d_args;
static inline cfx_var cfx_upsample_bicubic2d_at(cfx_at at, cfx_var input, cfx_var output_size,
        cfx_var align_corners, cfx_upsample_bicubic2d_args o)
{
    const cfx_var args[] = {input, output_size, align_corners, o.scale_factors, o.scales_h,
        o.scales_w};
    return cfx_apply_at(at, CFX_OPID_upsample_bicubic2d, args, 6);
}
#define cfx_upsample_bicubic2d(s, input, output_size, align_corners, ...)                          \
    cfx_upsample_bicubic2d_at(CFX_HERE(s), cfx_v(input), cfx_v(output_size),                       \
        cfx_v(align_corners), CFX_OPTIONS(cfx_upsample_bicubic2d_args, __VA_ARGS__))

/* upsample_trilinear3d(Tensor input, int[]? output_size, bool align_corners, float[]?
 *     scale_factors=None, float? scales_d=None, float? scales_h=None, float? scales_w=None) ->
 *     Tensor */
typedef struct cfx_upsample_trilinear3d_args { cfx_var scale_factors, scales_d, scales_h, scales_w;
        } cfx_upsample_trilinear3d_args;
static inline cfx_var cfx_upsample_trilinear3d_at(cfx_at at, cfx_var input, cfx_var output_size,
        cfx_var align_corners, cfx_upsample_trilinear3d_args o)
{
    const cfx_var args[] = {input, output_size, align_corners, o.scale_factors, o.scales_d,
        o.scales_h, o.scales_w};
    return cfx_apply_at(at, CFX_OPID_upsample_trilinear3d, args, 7);
}
#define cfx_upsample_trilinear3d(s, input, output_size, align_corners, ...)                        \
    cfx_upsample_trilinear3d_at(CFX_HERE(s), cfx_v(input), cfx_v(output_size),                     \
        cfx_v(align_corners), CFX_OPTIONS(cfx_upsample_trilinear3d_args, __VA_ARGS__))

/* upsample_bilinear2d_aa(Tensor input, int[]? output_size, bool align_corners, float[]?
 *     scale_factors=None, float? scales_h=None, float? scales_w=None) -> Tensor */
typedef struct cfx_upsample_bilinear2d_aa_args { cfx_var scale_factors, scales_h, scales_w; }
        cfx_upsample_bilinear2d_aa_args;
static inline cfx_var cfx_upsample_bilinear2d_aa_at(cfx_at at, cfx_var input, cfx_var output_size,
        cfx_var align_corners, cfx_upsample_bilinear2d_aa_args o)
{
    const cfx_var args[] = {input, output_size, align_corners, o.scale_factors, o.scales_h,
        o.scales_w};
    return cfx_apply_at(at, CFX_OPID_upsample_bilinear2d_aa, args, 6);
}
#define cfx_upsample_bilinear2d_aa(s, input, output_size, align_corners, ...)                      \
    cfx_upsample_bilinear2d_aa_at(CFX_HERE(s), cfx_v(input), cfx_v(output_size),                   \
        cfx_v(align_corners), CFX_OPTIONS(cfx_upsample_bilinear2d_aa_args, __VA_ARGS__))

/* upsample_bicubic2d_aa(Tensor input, int[]? output_size, bool align_corners, float[]?
 *     scale_factors=None, float? scales_h=None, float? scales_w=None) -> Tensor */
typedef struct cfx_upsample_bicubic2d_aa_args { cfx_var scale_factors, scales_h, scales_w; }
        cfx_upsample_bicubic2d_aa_args;
static inline cfx_var cfx_upsample_bicubic2d_aa_at(cfx_at at, cfx_var input, cfx_var output_size,
        cfx_var align_corners, cfx_upsample_bicubic2d_aa_args o)
{
    const cfx_var args[] = {input, output_size, align_corners, o.scale_factors, o.scales_h,
        o.scales_w};
    return cfx_apply_at(at, CFX_OPID_upsample_bicubic2d_aa, args, 6);
}
#define cfx_upsample_bicubic2d_aa(s, input, output_size, align_corners, ...)                       \
    cfx_upsample_bicubic2d_aa_at(CFX_HERE(s), cfx_v(input), cfx_v(output_size),                    \
        cfx_v(align_corners), CFX_OPTIONS(cfx_upsample_bicubic2d_aa_args, __VA_ARGS__))

/* grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool
 *     align_corners) -> Tensor
 * torch.grid_sampler, torch.grid_sampler_2d, torch.grid_sampler_3d */
static inline cfx_var cfx_grid_sampler_at(cfx_at at, cfx_var input, cfx_var grid, cfx_var
        interpolation_mode, cfx_var padding_mode, cfx_var align_corners)
{
    const cfx_var args[] = {input, grid, interpolation_mode, padding_mode, align_corners};
    return cfx_apply_at(at, CFX_OPID_grid_sampler, args, 5);
}
#define cfx_grid_sampler(s, input, grid, interpolation_mode, padding_mode, align_corners)          \
    cfx_grid_sampler_at(CFX_HERE(s), cfx_v(input), cfx_v(grid), cfx_v(interpolation_mode),         \
        cfx_v(padding_mode), cfx_v(align_corners))

/* grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool?
 *     align_corners=None) -> Tensor
 * torch.nn.functional.grid_sample */
typedef struct cfx_grid_sample_args { cfx_var mode, padding_mode, align_corners; }
        cfx_grid_sample_args;
static inline cfx_var cfx_grid_sample_at(cfx_at at, cfx_var input, cfx_var grid,
        cfx_grid_sample_args o)
{
    const cfx_var args[] = {input, grid, o.mode, o.padding_mode, o.align_corners};
    return cfx_apply_at(at, CFX_OPID_grid_sample, args, 5);
}
#define cfx_grid_sample(s, input, grid, ...)                                                       \
    cfx_grid_sample_at(CFX_HERE(s), cfx_v(input), cfx_v(grid),                                     \
        CFX_OPTIONS(cfx_grid_sample_args, __VA_ARGS__))

/* affine_grid(Tensor theta, int[] size, bool? align_corners=None) -> Tensor
 * torch.nn.functional.affine_grid, torch.affine_grid_generator */
typedef struct cfx_affine_grid_args { cfx_var align_corners; } cfx_affine_grid_args;
static inline cfx_var cfx_affine_grid_at(cfx_at at, cfx_var theta, cfx_var size,
        cfx_affine_grid_args o)
{
    const cfx_var args[] = {theta, size, o.align_corners};
    return cfx_apply_at(at, CFX_OPID_affine_grid, args, 3);
}
#define cfx_affine_grid(s, theta, size, ...)                                                       \
    cfx_affine_grid_at(CFX_HERE(s), cfx_v(theta), cfx_v(size),                                     \
        CFX_OPTIONS(cfx_affine_grid_args, __VA_ARGS__))

/* ---- Copies and casts ----------------------------------------------------------------------- */

/* clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor
 * torch.clone, Tensor.clone */
typedef struct cfx_clone_args { cfx_var memory_format; } cfx_clone_args;
static inline cfx_var cfx_clone_at(cfx_at at, cfx_var self, cfx_clone_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_clone, args, 2);
}
#define cfx_clone(s, self, ...)                                                                    \
    cfx_clone_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_clone_args, __VA_ARGS__))

/* to(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat?
 *     memory_format=None) -> Tensor(a)
 * Tensor.to, Tensor.type */
typedef struct cfx_to_args { cfx_var non_blocking, copy, memory_format; } cfx_to_args;
static inline cfx_var cfx_to_at(cfx_at at, cfx_var self, cfx_var dtype, cfx_to_args o)
{
    const cfx_var args[] = {self, dtype, o.non_blocking, o.copy, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_to, args, 5);
}
#define cfx_to(s, self, dtype, ...)                                                                \
    cfx_to_at(CFX_HERE(s), cfx_v(self), cfx_v(dtype), CFX_OPTIONS(cfx_to_args, __VA_ARGS__))

/* to_device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool
 *     copy=False, MemoryFormat? memory_format=None) -> Tensor(a) */
typedef struct cfx_to_device_args { cfx_var non_blocking, copy, memory_format; }
        cfx_to_device_args;
static inline cfx_var cfx_to_device_at(cfx_at at, cfx_var self, cfx_var device, cfx_var dtype,
        cfx_to_device_args o)
{
    const cfx_var args[] = {self, device, dtype, o.non_blocking, o.copy, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_to_device, args, 6);
}
#define cfx_to_device(s, self, device, dtype, ...)                                                 \
    cfx_to_device_at(CFX_HERE(s), cfx_v(self), cfx_v(device), cfx_v(dtype),                        \
        CFX_OPTIONS(cfx_to_device_args, __VA_ARGS__))

/* to_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
 *     bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat?
 *     memory_format=None) -> Tensor(a) */
typedef struct cfx_to_layout_args { cfx_var dtype, layout, device, pin_memory, non_blocking, copy,
        memory_format; } cfx_to_layout_args;
static inline cfx_var cfx_to_layout_at(cfx_at at, cfx_var self, cfx_to_layout_args o)
{
    const cfx_var args[] = {self, o.dtype, o.layout, o.device, o.pin_memory, o.non_blocking,
        o.copy, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_to_layout, args, 8);
}
#define cfx_to_layout(s, self, ...)                                                                \
    cfx_to_layout_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_to_layout_args, __VA_ARGS__))

/* to_other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat?
 *     memory_format=None) -> Tensor(a) */
typedef struct cfx_to_other_args { cfx_var non_blocking, copy, memory_format; } cfx_to_other_args;
static inline cfx_var cfx_to_other_at(cfx_at at, cfx_var self, cfx_var other, cfx_to_other_args o)
{
    const cfx_var args[] = {self, other, o.non_blocking, o.copy, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_to_other, args, 5);
}
#define cfx_to_other(s, self, other, ...)                                                          \
    cfx_to_other_at(CFX_HERE(s), cfx_v(self), cfx_v(other), CFX_OPTIONS(cfx_to_other_args,         \
        __VA_ARGS__))

/* _to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
 *     bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) ->
 *     Tensor */
typedef struct cfx__to_copy_args { cfx_var dtype, layout, device, pin_memory, non_blocking,
        memory_format; } cfx__to_copy_args;
static inline cfx_var cfx__to_copy_at(cfx_at at, cfx_var self, cfx__to_copy_args o)
{
    const cfx_var args[] = {self, o.dtype, o.layout, o.device, o.pin_memory, o.non_blocking,
        o.memory_format};
    return cfx_apply_at(at, CFX_OPID__to_copy, args, 7);
}
#define cfx__to_copy(s, self, ...)                                                                 \
    cfx__to_copy_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx__to_copy_args, __VA_ARGS__))

/* type_as(Tensor(a) self, Tensor other) -> Tensor(a)
 * Tensor.type_as */
static inline cfx_var cfx_type_as_at(cfx_at at, cfx_var self, cfx_var other)
{
    const cfx_var args[] = {self, other};
    return cfx_apply_at(at, CFX_OPID_type_as, args, 2);
}
#define cfx_type_as(s, self, other) cfx_type_as_at(CFX_HERE(s), cfx_v(self), cfx_v(other))

/* cast_float(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
 * Tensor.float */
typedef struct cfx_cast_float_args { cfx_var memory_format; } cfx_cast_float_args;
static inline cfx_var cfx_cast_float_at(cfx_at at, cfx_var self, cfx_cast_float_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_cast_float, args, 2);
}
#define cfx_cast_float(s, self, ...)                                                               \
    cfx_cast_float_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cast_float_args, __VA_ARGS__))

/* cast_half(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
 * Tensor.half */
typedef struct cfx_cast_half_args { cfx_var memory_format; } cfx_cast_half_args;
static inline cfx_var cfx_cast_half_at(cfx_at at, cfx_var self, cfx_cast_half_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_cast_half, args, 2);
}
#define cfx_cast_half(s, self, ...)                                                                \
    cfx_cast_half_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cast_half_args, __VA_ARGS__))

/* cast_bfloat16(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
 * Tensor.bfloat16 */
typedef struct cfx_cast_bfloat16_args { cfx_var memory_format; } cfx_cast_bfloat16_args;
static inline cfx_var cfx_cast_bfloat16_at(cfx_at at, cfx_var self, cfx_cast_bfloat16_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_cast_bfloat16, args, 2);
}
#define cfx_cast_bfloat16(s, self, ...)                                                            \
    cfx_cast_bfloat16_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cast_bfloat16_args,             \
        __VA_ARGS__))

/* cast_double(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
 * Tensor.double */
typedef struct cfx_cast_double_args { cfx_var memory_format; } cfx_cast_double_args;
static inline cfx_var cfx_cast_double_at(cfx_at at, cfx_var self, cfx_cast_double_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_cast_double, args, 2);
}
#define cfx_cast_double(s, self, ...)                                                              \
    cfx_cast_double_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cast_double_args,                 \
        __VA_ARGS__))

/* cast_int(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
 * Tensor.int */
typedef struct cfx_cast_int_args { cfx_var memory_format; } cfx_cast_int_args;
static inline cfx_var cfx_cast_int_at(cfx_at at, cfx_var self, cfx_cast_int_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_cast_int, args, 2);
}
#define cfx_cast_int(s, self, ...)                                                                 \
    cfx_cast_int_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cast_int_args, __VA_ARGS__))

/* cast_long(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
 * Tensor.long */
typedef struct cfx_cast_long_args { cfx_var memory_format; } cfx_cast_long_args;
static inline cfx_var cfx_cast_long_at(cfx_at at, cfx_var self, cfx_cast_long_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_cast_long, args, 2);
}
#define cfx_cast_long(s, self, ...)                                                                \
    cfx_cast_long_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cast_long_args, __VA_ARGS__))

/* cast_bool(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
 * Tensor.bool */
typedef struct cfx_cast_bool_args { cfx_var memory_format; } cfx_cast_bool_args;
static inline cfx_var cfx_cast_bool_at(cfx_at at, cfx_var self, cfx_cast_bool_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_cast_bool, args, 2);
}
#define cfx_cast_bool(s, self, ...)                                                                \
    cfx_cast_bool_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cast_bool_args, __VA_ARGS__))

/* cast_short(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
 * Tensor.short */
typedef struct cfx_cast_short_args { cfx_var memory_format; } cfx_cast_short_args;
static inline cfx_var cfx_cast_short_at(cfx_at at, cfx_var self, cfx_cast_short_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_cast_short, args, 2);
}
#define cfx_cast_short(s, self, ...)                                                               \
    cfx_cast_short_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cast_short_args, __VA_ARGS__))

/* cast_char(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
 * Tensor.char */
typedef struct cfx_cast_char_args { cfx_var memory_format; } cfx_cast_char_args;
static inline cfx_var cfx_cast_char_at(cfx_at at, cfx_var self, cfx_cast_char_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_cast_char, args, 2);
}
#define cfx_cast_char(s, self, ...)                                                                \
    cfx_cast_char_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cast_char_args, __VA_ARGS__))

/* cast_byte(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
 * Tensor.byte */
typedef struct cfx_cast_byte_args { cfx_var memory_format; } cfx_cast_byte_args;
static inline cfx_var cfx_cast_byte_at(cfx_at at, cfx_var self, cfx_cast_byte_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_cast_byte, args, 2);
}
#define cfx_cast_byte(s, self, ...)                                                                \
    cfx_cast_byte_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cast_byte_args, __VA_ARGS__))

/* cast_cfloat(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
 * Tensor.cfloat */
typedef struct cfx_cast_cfloat_args { cfx_var memory_format; } cfx_cast_cfloat_args;
static inline cfx_var cfx_cast_cfloat_at(cfx_at at, cfx_var self, cfx_cast_cfloat_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_cast_cfloat, args, 2);
}
#define cfx_cast_cfloat(s, self, ...)                                                              \
    cfx_cast_cfloat_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cast_cfloat_args,                 \
        __VA_ARGS__))

/* cast_cdouble(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
 * Tensor.cdouble */
typedef struct cfx_cast_cdouble_args { cfx_var memory_format; } cfx_cast_cdouble_args;
static inline cfx_var cfx_cast_cdouble_at(cfx_at at, cfx_var self, cfx_cast_cdouble_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_cast_cdouble, args, 2);
}
#define cfx_cast_cdouble(s, self, ...)                                                             \
    cfx_cast_cdouble_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cast_cdouble_args,               \
        __VA_ARGS__))

/* cpu(Tensor(a) self, *, MemoryFormat? memory_format=None) -> Tensor(a)
 * Tensor.cpu */
typedef struct cfx_cpu_args { cfx_var memory_format; } cfx_cpu_args;
static inline cfx_var cfx_cpu_at(cfx_at at, cfx_var self, cfx_cpu_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_cpu, args, 2);
}
#define cfx_cpu(s, self, ...)                                                                      \
    cfx_cpu_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cpu_args, __VA_ARGS__))

/* contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)
 * Tensor.contiguous */
typedef struct cfx_contiguous_args { cfx_var memory_format; } cfx_contiguous_args;
static inline cfx_var cfx_contiguous_at(cfx_at at, cfx_var self, cfx_contiguous_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_contiguous, args, 2);
}
#define cfx_contiguous(s, self, ...)                                                               \
    cfx_contiguous_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_contiguous_args, __VA_ARGS__))

/* detach(Tensor(a) self) -> Tensor(a)
 * torch.detach, Tensor.detach */
static inline cfx_var cfx_detach_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_detach, args, 1);
}
#define cfx_detach(s, self) cfx_detach_at(CFX_HERE(s), cfx_v(self))

/* detach_(Tensor(a!) self) -> Tensor(a!)
 * torch.detach_, Tensor.detach_ */
static inline cfx_var cfx_detach__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_detach_, args, 1);
}
#define cfx_detach_(s, self) cfx_detach__at(CFX_HERE(s), cfx_v(self))

/* alias(Tensor(a) self) -> Tensor(a) */
static inline cfx_var cfx_alias_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_alias, args, 1);
}
#define cfx_alias(s, self) cfx_alias_at(CFX_HERE(s), cfx_v(self))

/* lift_fresh_copy(Tensor self) -> Tensor */
static inline cfx_var cfx_lift_fresh_copy_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_lift_fresh_copy, args, 1);
}
#define cfx_lift_fresh_copy(s, self) cfx_lift_fresh_copy_at(CFX_HERE(s), cfx_v(self))

/* requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)
 * Tensor.requires_grad_ */
typedef struct cfx_requires_grad__args { cfx_var requires_grad; } cfx_requires_grad__args;
static inline cfx_var cfx_requires_grad__at(cfx_at at, cfx_var self, cfx_requires_grad__args o)
{
    const cfx_var args[] = {self, o.requires_grad};
    return cfx_apply_at(at, CFX_OPID_requires_grad_, args, 2);
}
#define cfx_requires_grad_(s, self, ...)                                                           \
    cfx_requires_grad__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_requires_grad__args,           \
        __VA_ARGS__))

/* item(Tensor self) -> Scalar
 * Tensor.item */
static inline cfx_var cfx_item_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_item, args, 1);
}
#define cfx_item(s, self) cfx_item_at(CFX_HERE(s), cfx_v(self))

/* tolist(Tensor self) -> Any
 * Tensor.tolist */
static inline cfx_var cfx_tolist_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_tolist, args, 1);
}
#define cfx_tolist(s, self) cfx_tolist_at(CFX_HERE(s), cfx_v(self))

/* numpy(Tensor(a) self, *, bool force=False) -> Any(a)
 * Tensor.numpy */
typedef struct cfx_numpy_args { cfx_var force; } cfx_numpy_args;
static inline cfx_var cfx_numpy_at(cfx_at at, cfx_var self, cfx_numpy_args o)
{
    const cfx_var args[] = {self, o.force};
    return cfx_apply_at(at, CFX_OPID_numpy, args, 2);
}
#define cfx_numpy(s, self, ...)                                                                    \
    cfx_numpy_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_numpy_args, __VA_ARGS__))

/* copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor */
typedef struct cfx_copy_args { cfx_var non_blocking; } cfx_copy_args;
static inline cfx_var cfx_copy_at(cfx_at at, cfx_var self, cfx_var src, cfx_copy_args o)
{
    const cfx_var args[] = {self, src, o.non_blocking};
    return cfx_apply_at(at, CFX_OPID_copy, args, 3);
}
#define cfx_copy(s, self, src, ...)                                                                \
    cfx_copy_at(CFX_HERE(s), cfx_v(self), cfx_v(src), CFX_OPTIONS(cfx_copy_args, __VA_ARGS__))

/* copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)
 * Tensor.copy_ */
typedef struct cfx_copy__args { cfx_var non_blocking; } cfx_copy__args;
static inline cfx_var cfx_copy__at(cfx_at at, cfx_var self, cfx_var src, cfx_copy__args o)
{
    const cfx_var args[] = {self, src, o.non_blocking};
    return cfx_apply_at(at, CFX_OPID_copy_, args, 3);
}
#define cfx_copy_(s, self, src, ...)                                                               \
    cfx_copy__at(CFX_HERE(s), cfx_v(self), cfx_v(src), CFX_OPTIONS(cfx_copy__args,                 \
        __VA_ARGS__))

/* write_out(Tensor(a!) out, Tensor result, bool same_dtype=False, bool resize=True) ->
 *     Tensor(a!) */
typedef struct cfx_write_out_args { cfx_var same_dtype, resize; } cfx_write_out_args;
static inline cfx_var cfx_write_out_at(cfx_at at, cfx_var out, cfx_var result, cfx_write_out_args
        o)
{
    const cfx_var args[] = {out, result, o.same_dtype, o.resize};
    return cfx_apply_at(at, CFX_OPID_write_out, args, 4);
}
#define cfx_write_out(s, out, result, ...)                                                         \
    cfx_write_out_at(CFX_HERE(s), cfx_v(out), cfx_v(result), CFX_OPTIONS(cfx_write_out_args,       \
        __VA_ARGS__))

/* fill(Tensor self, Tensor value) -> Tensor
 * torch.fill */
static inline cfx_var cfx_fill_at(cfx_at at, cfx_var self, cfx_var value)
{
    const cfx_var args[] = {self, value};
    return cfx_apply_at(at, CFX_OPID_fill, args, 2);
}
#define cfx_fill(s, self, value) cfx_fill_at(CFX_HERE(s), cfx_v(self), cfx_v(value))

/* fill_(Tensor(a!) self, Tensor value) -> Tensor(a!)
 * torch.fill_, Tensor.fill_ */
static inline cfx_var cfx_fill__at(cfx_at at, cfx_var self, cfx_var value)
{
    const cfx_var args[] = {self, value};
    return cfx_apply_at(at, CFX_OPID_fill_, args, 2);
}
#define cfx_fill_(s, self, value) cfx_fill__at(CFX_HERE(s), cfx_v(self), cfx_v(value))

/* zero(Tensor self) -> Tensor */
static inline cfx_var cfx_zero_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_zero, args, 1);
}
#define cfx_zero(s, self) cfx_zero_at(CFX_HERE(s), cfx_v(self))

/* zero_(Tensor(a!) self) -> Tensor(a!)
 * torch.zero_, Tensor.zero_ */
static inline cfx_var cfx_zero__at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_zero_, args, 1);
}
#define cfx_zero_(s, self) cfx_zero__at(CFX_HERE(s), cfx_v(self))

/* ---- Factories ------------------------------------------------------------------------------ */

/* zeros(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
 *     pin_memory=None) -> Tensor
 * torch.zeros */
typedef struct cfx_zeros_args { cfx_var dtype, layout, device, pin_memory; } cfx_zeros_args;
static inline cfx_var cfx_zeros_at(cfx_at at, cfx_var size, cfx_zeros_args o)
{
    const cfx_var args[] = {size, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_zeros, args, 5);
}
#define cfx_zeros(s, size, ...)                                                                    \
    cfx_zeros_at(CFX_HERE(s), cfx_v(size), CFX_OPTIONS(cfx_zeros_args, __VA_ARGS__))

/* ones(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
 *     pin_memory=None) -> Tensor
 * torch.ones */
typedef struct cfx_ones_args { cfx_var dtype, layout, device, pin_memory; } cfx_ones_args;
static inline cfx_var cfx_ones_at(cfx_at at, cfx_var size, cfx_ones_args o)
{
    const cfx_var args[] = {size, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_ones, args, 5);
}
#define cfx_ones(s, size, ...)                                                                     \
    cfx_ones_at(CFX_HERE(s), cfx_v(size), CFX_OPTIONS(cfx_ones_args, __VA_ARGS__))

/* full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device?
 *     device=None, bool? pin_memory=None) -> Tensor
 * torch.full */
typedef struct cfx_full_args { cfx_var dtype, layout, device, pin_memory; } cfx_full_args;
static inline cfx_var cfx_full_at(cfx_at at, cfx_var size, cfx_var fill_value, cfx_full_args o)
{
    const cfx_var args[] = {size, fill_value, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_full, args, 6);
}
#define cfx_full(s, size, fill_value, ...)                                                         \
    cfx_full_at(CFX_HERE(s), cfx_v(size), cfx_v(fill_value), CFX_OPTIONS(cfx_full_args,            \
        __VA_ARGS__))

/* empty(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
 *     pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
 * torch.empty */
typedef struct cfx_empty_args { cfx_var dtype, layout, device, pin_memory, memory_format; }
        cfx_empty_args;
static inline cfx_var cfx_empty_at(cfx_at at, cfx_var size, cfx_empty_args o)
{
    const cfx_var args[] = {size, o.dtype, o.layout, o.device, o.pin_memory, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_empty, args, 6);
}
#define cfx_empty(s, size, ...)                                                                    \
    cfx_empty_at(CFX_HERE(s), cfx_v(size), CFX_OPTIONS(cfx_empty_args, __VA_ARGS__))

/* arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
 *     pin_memory=None) -> Tensor
 * torch.arange */
typedef struct cfx_arange_args { cfx_var dtype, layout, device, pin_memory; } cfx_arange_args;
static inline cfx_var cfx_arange_at(cfx_at at, cfx_var end, cfx_arange_args o)
{
    const cfx_var args[] = {end, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_arange, args, 5);
}
#define cfx_arange(s, end, ...)                                                                    \
    cfx_arange_at(CFX_HERE(s), cfx_v(end), CFX_OPTIONS(cfx_arange_args, __VA_ARGS__))

/* arange_start(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout?
 *     layout=None, Device? device=None, bool? pin_memory=None) -> Tensor */
typedef struct cfx_arange_start_args { cfx_var step, dtype, layout, device, pin_memory; }
        cfx_arange_start_args;
static inline cfx_var cfx_arange_start_at(cfx_at at, cfx_var start, cfx_var end,
        cfx_arange_start_args o)
{
    const cfx_var args[] = {start, end, o.step, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_arange_start, args, 7);
}
#define cfx_arange_start(s, start, end, ...)                                                       \
    cfx_arange_start_at(CFX_HERE(s), cfx_v(start), cfx_v(end),                                     \
        CFX_OPTIONS(cfx_arange_start_args, __VA_ARGS__))

/* linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None,
 *     Device? device=None, bool? pin_memory=None) -> Tensor
 * torch.linspace */
typedef struct cfx_linspace_args { cfx_var dtype, layout, device, pin_memory; } cfx_linspace_args;
static inline cfx_var cfx_linspace_at(cfx_at at, cfx_var start, cfx_var end, cfx_var steps,
        cfx_linspace_args o)
{
    const cfx_var args[] = {start, end, steps, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_linspace, args, 7);
}
#define cfx_linspace(s, start, end, steps, ...)                                                    \
    cfx_linspace_at(CFX_HERE(s), cfx_v(start), cfx_v(end), cfx_v(steps),                           \
        CFX_OPTIONS(cfx_linspace_args, __VA_ARGS__))

/* logspace(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None,
 *     Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
 * torch.logspace */
typedef struct cfx_logspace_args { cfx_var base, dtype, layout, device, pin_memory; }
        cfx_logspace_args;
static inline cfx_var cfx_logspace_at(cfx_at at, cfx_var start, cfx_var end, cfx_var steps,
        cfx_logspace_args o)
{
    const cfx_var args[] = {start, end, steps, o.base, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_logspace, args, 8);
}
#define cfx_logspace(s, start, end, steps, ...)                                                    \
    cfx_logspace_at(CFX_HERE(s), cfx_v(start), cfx_v(end), cfx_v(steps),                           \
        CFX_OPTIONS(cfx_logspace_args, __VA_ARGS__))

/* eye(int n, int? m=None, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
 *     bool? pin_memory=None) -> Tensor
 * torch.eye */
typedef struct cfx_eye_args { cfx_var m, dtype, layout, device, pin_memory; } cfx_eye_args;
static inline cfx_var cfx_eye_at(cfx_at at, cfx_var n, cfx_eye_args o)
{
    const cfx_var args[] = {n, o.m, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_eye, args, 6);
}
#define cfx_eye(s, n, ...) cfx_eye_at(CFX_HERE(s), cfx_v(n), CFX_OPTIONS(cfx_eye_args, __VA_ARGS__))

/* scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
 *     bool? pin_memory=None) -> Tensor
 * torch.scalar_tensor */
typedef struct cfx_scalar_tensor_args { cfx_var dtype, layout, device, pin_memory; }
        cfx_scalar_tensor_args;
static inline cfx_var cfx_scalar_tensor_at(cfx_at at, cfx_var s_, cfx_scalar_tensor_args o)
{
    const cfx_var args[] = {s_, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_scalar_tensor, args, 5);
}
#define cfx_scalar_tensor(s, s_, ...)                                                              \
    cfx_scalar_tensor_at(CFX_HERE(s), cfx_v(s_), CFX_OPTIONS(cfx_scalar_tensor_args,               \
        __VA_ARGS__))

/* tensor(Any data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False,
 *     bool pin_memory=False) -> Tensor
 * torch.tensor */
typedef struct cfx_tensor_row_args { cfx_var dtype, device, requires_grad, pin_memory; }
        cfx_tensor_row_args;
static inline cfx_var cfx_tensor_row_at(cfx_at at, cfx_var data, cfx_tensor_row_args o)
{
    const cfx_var args[] = {data, o.dtype, o.device, o.requires_grad, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_tensor, args, 5);
}
#define cfx_tensor_row(s, data, ...)                                                               \
    cfx_tensor_row_at(CFX_HERE(s), cfx_v(data), CFX_OPTIONS(cfx_tensor_row_args, __VA_ARGS__))

/* as_tensor(Any(a) data, ScalarType? dtype=None, Device? device=None) -> Tensor(a)
 * torch.as_tensor */
typedef struct cfx_as_tensor_args { cfx_var dtype, device; } cfx_as_tensor_args;
static inline cfx_var cfx_as_tensor_at(cfx_at at, cfx_var data, cfx_as_tensor_args o)
{
    const cfx_var args[] = {data, o.dtype, o.device};
    return cfx_apply_at(at, CFX_OPID_as_tensor, args, 3);
}
#define cfx_as_tensor(s, data, ...)                                                                \
    cfx_as_tensor_at(CFX_HERE(s), cfx_v(data), CFX_OPTIONS(cfx_as_tensor_args, __VA_ARGS__))

/* zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
 *     bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
 * torch.zeros_like */
typedef struct cfx_zeros_like_args { cfx_var dtype, layout, device, pin_memory, memory_format; }
        cfx_zeros_like_args;
static inline cfx_var cfx_zeros_like_at(cfx_at at, cfx_var self, cfx_zeros_like_args o)
{
    const cfx_var args[] = {self, o.dtype, o.layout, o.device, o.pin_memory, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_zeros_like, args, 6);
}
#define cfx_zeros_like(s, self, ...)                                                               \
    cfx_zeros_like_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_zeros_like_args, __VA_ARGS__))

/* ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
 *     bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
 * torch.ones_like */
typedef struct cfx_ones_like_args { cfx_var dtype, layout, device, pin_memory, memory_format; }
        cfx_ones_like_args;
static inline cfx_var cfx_ones_like_at(cfx_at at, cfx_var self, cfx_ones_like_args o)
{
    const cfx_var args[] = {self, o.dtype, o.layout, o.device, o.pin_memory, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_ones_like, args, 6);
}
#define cfx_ones_like(s, self, ...)                                                                \
    cfx_ones_like_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_ones_like_args, __VA_ARGS__))

/* full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None,
 *     Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
 * torch.full_like */
typedef struct cfx_full_like_args { cfx_var dtype, layout, device, pin_memory, memory_format; }
        cfx_full_like_args;
static inline cfx_var cfx_full_like_at(cfx_at at, cfx_var self, cfx_var fill_value,
        cfx_full_like_args o)
{
    const cfx_var args[] = {self, fill_value, o.dtype, o.layout, o.device, o.pin_memory,
        o.memory_format};
    return cfx_apply_at(at, CFX_OPID_full_like, args, 7);
}
#define cfx_full_like(s, self, fill_value, ...)                                                    \
    cfx_full_like_at(CFX_HERE(s), cfx_v(self), cfx_v(fill_value),                                  \
        CFX_OPTIONS(cfx_full_like_args, __VA_ARGS__))

/* empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
 *     bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
 * torch.empty_like */
typedef struct cfx_empty_like_args { cfx_var dtype, layout, device, pin_memory, memory_format; }
        cfx_empty_like_args;
static inline cfx_var cfx_empty_like_at(cfx_at at, cfx_var self, cfx_empty_like_args o)
{
    const cfx_var args[] = {self, o.dtype, o.layout, o.device, o.pin_memory, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_empty_like, args, 6);
}
#define cfx_empty_like(s, self, ...)                                                               \
    cfx_empty_like_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_empty_like_args, __VA_ARGS__))

/* new_zeros(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device?
 *     device=None, bool? pin_memory=None) -> Tensor
 * Tensor.new_zeros */
typedef struct cfx_new_zeros_args { cfx_var dtype, layout, device, pin_memory; }
        cfx_new_zeros_args;
static inline cfx_var cfx_new_zeros_at(cfx_at at, cfx_var self, cfx_var size, cfx_new_zeros_args o)
{
    const cfx_var args[] = {self, size, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_new_zeros, args, 6);
}
#define cfx_new_zeros(s, self, size, ...)                                                          \
    cfx_new_zeros_at(CFX_HERE(s), cfx_v(self), cfx_v(size), CFX_OPTIONS(cfx_new_zeros_args,        \
        __VA_ARGS__))

/* new_ones(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device?
 *     device=None, bool? pin_memory=None) -> Tensor
 * Tensor.new_ones */
typedef struct cfx_new_ones_args { cfx_var dtype, layout, device, pin_memory; } cfx_new_ones_args;
static inline cfx_var cfx_new_ones_at(cfx_at at, cfx_var self, cfx_var size, cfx_new_ones_args o)
{
    const cfx_var args[] = {self, size, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_new_ones, args, 6);
}
#define cfx_new_ones(s, self, size, ...)                                                           \
    cfx_new_ones_at(CFX_HERE(s), cfx_v(self), cfx_v(size), CFX_OPTIONS(cfx_new_ones_args,          \
        __VA_ARGS__))

/* new_full(Tensor self, int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout?
 *     layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
 * Tensor.new_full */
typedef struct cfx_new_full_args { cfx_var dtype, layout, device, pin_memory; } cfx_new_full_args;
static inline cfx_var cfx_new_full_at(cfx_at at, cfx_var self, cfx_var size, cfx_var fill_value,
        cfx_new_full_args o)
{
    const cfx_var args[] = {self, size, fill_value, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_new_full, args, 7);
}
#define cfx_new_full(s, self, size, fill_value, ...)                                               \
    cfx_new_full_at(CFX_HERE(s), cfx_v(self), cfx_v(size), cfx_v(fill_value),                      \
        CFX_OPTIONS(cfx_new_full_args, __VA_ARGS__))

/* new_empty(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device?
 *     device=None, bool? pin_memory=None) -> Tensor
 * Tensor.new_empty */
typedef struct cfx_new_empty_args { cfx_var dtype, layout, device, pin_memory; }
        cfx_new_empty_args;
static inline cfx_var cfx_new_empty_at(cfx_at at, cfx_var self, cfx_var size, cfx_new_empty_args o)
{
    const cfx_var args[] = {self, size, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_new_empty, args, 6);
}
#define cfx_new_empty(s, self, size, ...)                                                          \
    cfx_new_empty_at(CFX_HERE(s), cfx_v(self), cfx_v(size), CFX_OPTIONS(cfx_new_empty_args,        \
        __VA_ARGS__))

/* new_tensor(Tensor self, Any data, *, ScalarType? dtype=None, Device? device=None, bool
 *     requires_grad=False) -> Tensor
 * Tensor.new_tensor */
typedef struct cfx_new_tensor_args { cfx_var dtype, device, requires_grad; } cfx_new_tensor_args;
static inline cfx_var cfx_new_tensor_at(cfx_at at, cfx_var self, cfx_var data, cfx_new_tensor_args
        o)
{
    const cfx_var args[] = {self, data, o.dtype, o.device, o.requires_grad};
    return cfx_apply_at(at, CFX_OPID_new_tensor, args, 5);
}
#define cfx_new_tensor(s, self, data, ...)                                                         \
    cfx_new_tensor_at(CFX_HERE(s), cfx_v(self), cfx_v(data), CFX_OPTIONS(cfx_new_tensor_args,      \
        __VA_ARGS__))

/* complex(Tensor real, Tensor imag) -> Tensor
 * torch.complex */
static inline cfx_var cfx_complex_at(cfx_at at, cfx_var real, cfx_var imag)
{
    const cfx_var args[] = {real, imag};
    return cfx_apply_at(at, CFX_OPID_complex, args, 2);
}
#define cfx_complex(s, real, imag) cfx_complex_at(CFX_HERE(s), cfx_v(real), cfx_v(imag))

/* ---- Random numbers ------------------------------------------------------------------------- */

/* dropout(Tensor(a) input, float p, bool train) -> Tensor(a)
 * torch.dropout, torch.nn.functional.dropout */
static inline cfx_var cfx_dropout_at(cfx_at at, cfx_var input, cfx_var p, cfx_var train)
{
    const cfx_var args[] = {input, p, train};
    return cfx_apply_at(at, CFX_OPID_dropout, args, 3);
}
#define cfx_dropout(s, input, p, train)                                                            \
    cfx_dropout_at(CFX_HERE(s), cfx_v(input), cfx_v(p), cfx_v(train))

/* dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)
 * torch.dropout_ */
static inline cfx_var cfx_dropout__at(cfx_at at, cfx_var self, cfx_var p, cfx_var train)
{
    const cfx_var args[] = {self, p, train};
    return cfx_apply_at(at, CFX_OPID_dropout_, args, 3);
}
#define cfx_dropout_(s, self, p, train)                                                            \
    cfx_dropout__at(CFX_HERE(s), cfx_v(self), cfx_v(p), cfx_v(train))

/* alpha_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)
 * torch.alpha_dropout, torch.nn.functional.alpha_dropout */
static inline cfx_var cfx_alpha_dropout_at(cfx_at at, cfx_var input, cfx_var p, cfx_var train)
{
    const cfx_var args[] = {input, p, train};
    return cfx_apply_at(at, CFX_OPID_alpha_dropout, args, 3);
}
#define cfx_alpha_dropout(s, input, p, train)                                                      \
    cfx_alpha_dropout_at(CFX_HERE(s), cfx_v(input), cfx_v(p), cfx_v(train))

/* alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)
 * torch.alpha_dropout_ */
static inline cfx_var cfx_alpha_dropout__at(cfx_at at, cfx_var self, cfx_var p, cfx_var train)
{
    const cfx_var args[] = {self, p, train};
    return cfx_apply_at(at, CFX_OPID_alpha_dropout_, args, 3);
}
#define cfx_alpha_dropout_(s, self, p, train)                                                      \
    cfx_alpha_dropout__at(CFX_HERE(s), cfx_v(self), cfx_v(p), cfx_v(train))

/* feature_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)
 * torch.feature_dropout, torch.nn.functional.dropout1d, torch.nn.functional.dropout2d,
 *     torch.nn.functional.dropout3d */
static inline cfx_var cfx_feature_dropout_at(cfx_at at, cfx_var input, cfx_var p, cfx_var train)
{
    const cfx_var args[] = {input, p, train};
    return cfx_apply_at(at, CFX_OPID_feature_dropout, args, 3);
}
#define cfx_feature_dropout(s, input, p, train)                                                    \
    cfx_feature_dropout_at(CFX_HERE(s), cfx_v(input), cfx_v(p), cfx_v(train))

/* feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)
 * torch.feature_dropout_ */
static inline cfx_var cfx_feature_dropout__at(cfx_at at, cfx_var self, cfx_var p, cfx_var train)
{
    const cfx_var args[] = {self, p, train};
    return cfx_apply_at(at, CFX_OPID_feature_dropout_, args, 3);
}
#define cfx_feature_dropout_(s, self, p, train)                                                    \
    cfx_feature_dropout__at(CFX_HERE(s), cfx_v(self), cfx_v(p), cfx_v(train))

/* feature_alpha_dropout(Tensor(a) input, float p, bool train) -> Tensor(a)
 * torch.feature_alpha_dropout, torch.nn.functional.feature_alpha_dropout */
static inline cfx_var cfx_feature_alpha_dropout_at(cfx_at at, cfx_var input, cfx_var p, cfx_var
        train)
{
    const cfx_var args[] = {input, p, train};
    return cfx_apply_at(at, CFX_OPID_feature_alpha_dropout, args, 3);
}
#define cfx_feature_alpha_dropout(s, input, p, train)                                              \
    cfx_feature_alpha_dropout_at(CFX_HERE(s), cfx_v(input), cfx_v(p), cfx_v(train))

/* feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)
 * torch.feature_alpha_dropout_ */
static inline cfx_var cfx_feature_alpha_dropout__at(cfx_at at, cfx_var self, cfx_var p, cfx_var
        train)
{
    const cfx_var args[] = {self, p, train};
    return cfx_apply_at(at, CFX_OPID_feature_alpha_dropout_, args, 3);
}
#define cfx_feature_alpha_dropout_(s, self, p, train)                                              \
    cfx_feature_alpha_dropout__at(CFX_HERE(s), cfx_v(self), cfx_v(p), cfx_v(train))

/* native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)
 * torch.native_dropout */
static inline cfx_var cfx_native_dropout_at(cfx_at at, cfx_var input, cfx_var p, cfx_var train)
{
    const cfx_var args[] = {input, p, train};
    return cfx_apply_at(at, CFX_OPID_native_dropout, args, 3);
}
#define cfx_native_dropout(s, input, p, train)                                                     \
    cfx_native_dropout_at(CFX_HERE(s), cfx_v(input), cfx_v(p), cfx_v(train))

/* bernoulli(Tensor self, *, Generator? generator=None) -> Tensor
 * torch.bernoulli, Tensor.bernoulli */
typedef struct cfx_bernoulli_args { cfx_var generator; } cfx_bernoulli_args;
static inline cfx_var cfx_bernoulli_at(cfx_at at, cfx_var self, cfx_bernoulli_args o)
{
    const cfx_var args[] = {self, o.generator};
    return cfx_apply_at(at, CFX_OPID_bernoulli, args, 2);
}
#define cfx_bernoulli(s, self, ...)                                                                \
    cfx_bernoulli_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_bernoulli_args, __VA_ARGS__))

/* bernoulli_p(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor */
typedef struct cfx_bernoulli_p_args { cfx_var generator; } cfx_bernoulli_p_args;
static inline cfx_var cfx_bernoulli_p_at(cfx_at at, cfx_var self, cfx_var p, cfx_bernoulli_p_args
        o)
{
    const cfx_var args[] = {self, p, o.generator};
    return cfx_apply_at(at, CFX_OPID_bernoulli_p, args, 3);
}
#define cfx_bernoulli_p(s, self, p, ...)                                                           \
    cfx_bernoulli_p_at(CFX_HERE(s), cfx_v(self), cfx_v(p), CFX_OPTIONS(cfx_bernoulli_p_args,       \
        __VA_ARGS__))

/* bernoulli_p_(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!) */
typedef struct cfx_bernoulli_p__args { cfx_var generator; } cfx_bernoulli_p__args;
static inline cfx_var cfx_bernoulli_p__at(cfx_at at, cfx_var self, cfx_var p, cfx_bernoulli_p__args
        o)
{
    const cfx_var args[] = {self, p, o.generator};
    return cfx_apply_at(at, CFX_OPID_bernoulli_p_, args, 3);
}
#define cfx_bernoulli_p_(s, self, p, ...)                                                          \
    cfx_bernoulli_p__at(CFX_HERE(s), cfx_v(self), cfx_v(p), CFX_OPTIONS(cfx_bernoulli_p__args,     \
        __VA_ARGS__))

/* multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator?
 *     generator=None) -> Tensor
 * torch.multinomial, Tensor.multinomial */
typedef struct cfx_multinomial_args { cfx_var replacement, generator; } cfx_multinomial_args;
static inline cfx_var cfx_multinomial_at(cfx_at at, cfx_var self, cfx_var num_samples,
        cfx_multinomial_args o)
{
    const cfx_var args[] = {self, num_samples, o.replacement, o.generator};
    return cfx_apply_at(at, CFX_OPID_multinomial, args, 4);
}
#define cfx_multinomial(s, self, num_samples, ...)                                                 \
    cfx_multinomial_at(CFX_HERE(s), cfx_v(self), cfx_v(num_samples),                               \
        CFX_OPTIONS(cfx_multinomial_args, __VA_ARGS__))

/* normal_of(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor
 * torch.normal */
typedef struct cfx_normal_of_args { cfx_var generator; } cfx_normal_of_args;
static inline cfx_var cfx_normal_of_at(cfx_at at, cfx_var mean, cfx_var std, cfx_normal_of_args o)
{
    const cfx_var args[] = {mean, std, o.generator};
    return cfx_apply_at(at, CFX_OPID_normal_of, args, 3);
}
#define cfx_normal_of(s, mean, std, ...)                                                           \
    cfx_normal_of_at(CFX_HERE(s), cfx_v(mean), cfx_v(std), CFX_OPTIONS(cfx_normal_of_args,         \
        __VA_ARGS__))

/* normal_numbers(float mean, float std, int[] size, *, ScalarType? dtype=None, Layout?
 *     layout=None, Device? device=None, bool? pin_memory=None) -> Tensor */
typedef struct cfx_normal_numbers_args { cfx_var dtype, layout, device, pin_memory; }
        cfx_normal_numbers_args;
static inline cfx_var cfx_normal_numbers_at(cfx_at at, cfx_var mean, cfx_var std, cfx_var size,
        cfx_normal_numbers_args o)
{
    const cfx_var args[] = {mean, std, size, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_normal_numbers, args, 7);
}
#define cfx_normal_numbers(s, mean, std, size, ...)                                                \
    cfx_normal_numbers_at(CFX_HERE(s), cfx_v(mean), cfx_v(std), cfx_v(size),                       \
        CFX_OPTIONS(cfx_normal_numbers_args, __VA_ARGS__))

/* normal(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor */
typedef struct cfx_normal_args { cfx_var mean, std, generator; } cfx_normal_args;
static inline cfx_var cfx_normal_at(cfx_at at, cfx_var self, cfx_normal_args o)
{
    const cfx_var args[] = {self, o.mean, o.std, o.generator};
    return cfx_apply_at(at, CFX_OPID_normal, args, 4);
}
#define cfx_normal(s, self, ...)                                                                   \
    cfx_normal_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_normal_args, __VA_ARGS__))

/* normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) ->
 *     Tensor(a!)
 * Tensor.normal_ */
typedef struct cfx_normal__args { cfx_var mean, std, generator; } cfx_normal__args;
static inline cfx_var cfx_normal__at(cfx_at at, cfx_var self, cfx_normal__args o)
{
    const cfx_var args[] = {self, o.mean, o.std, o.generator};
    return cfx_apply_at(at, CFX_OPID_normal_, args, 4);
}
#define cfx_normal_(s, self, ...)                                                                  \
    cfx_normal__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_normal__args, __VA_ARGS__))

/* poisson(Tensor self, Generator? generator=None) -> Tensor
 * torch.poisson */
typedef struct cfx_poisson_args { cfx_var generator; } cfx_poisson_args;
static inline cfx_var cfx_poisson_at(cfx_at at, cfx_var self, cfx_poisson_args o)
{
    const cfx_var args[] = {self, o.generator};
    return cfx_apply_at(at, CFX_OPID_poisson, args, 2);
}
#define cfx_poisson(s, self, ...)                                                                  \
    cfx_poisson_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_poisson_args, __VA_ARGS__))

/* rand(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
 *     pin_memory=None) -> Tensor
 * torch.rand */
typedef struct cfx_rand_args { cfx_var dtype, layout, device, pin_memory; } cfx_rand_args;
static inline cfx_var cfx_rand_at(cfx_at at, cfx_var size, cfx_rand_args o)
{
    const cfx_var args[] = {size, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_rand, args, 5);
}
#define cfx_rand(s, size, ...)                                                                     \
    cfx_rand_at(CFX_HERE(s), cfx_v(size), CFX_OPTIONS(cfx_rand_args, __VA_ARGS__))

/* rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
 *     bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
 * torch.rand_like */
typedef struct cfx_rand_like_args { cfx_var dtype, layout, device, pin_memory, memory_format; }
        cfx_rand_like_args;
static inline cfx_var cfx_rand_like_at(cfx_at at, cfx_var self, cfx_rand_like_args o)
{
    const cfx_var args[] = {self, o.dtype, o.layout, o.device, o.pin_memory, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_rand_like, args, 6);
}
#define cfx_rand_like(s, self, ...)                                                                \
    cfx_rand_like_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_rand_like_args, __VA_ARGS__))

/* randn(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool?
 *     pin_memory=None) -> Tensor
 * torch.randn */
typedef struct cfx_randn_args { cfx_var dtype, layout, device, pin_memory; } cfx_randn_args;
static inline cfx_var cfx_randn_at(cfx_at at, cfx_var size, cfx_randn_args o)
{
    const cfx_var args[] = {size, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_randn, args, 5);
}
#define cfx_randn(s, size, ...)                                                                    \
    cfx_randn_at(CFX_HERE(s), cfx_v(size), CFX_OPTIONS(cfx_randn_args, __VA_ARGS__))

/* randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None,
 *     bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
 * torch.randn_like */
typedef struct cfx_randn_like_args { cfx_var dtype, layout, device, pin_memory, memory_format; }
        cfx_randn_like_args;
static inline cfx_var cfx_randn_like_at(cfx_at at, cfx_var self, cfx_randn_like_args o)
{
    const cfx_var args[] = {self, o.dtype, o.layout, o.device, o.pin_memory, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_randn_like, args, 6);
}
#define cfx_randn_like(s, self, ...)                                                               \
    cfx_randn_like_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_randn_like_args, __VA_ARGS__))

/* randint(int low, int high, int[] size, *, ScalarType? dtype=4, Layout? layout=None, Device?
 *     device=None, bool? pin_memory=None) -> Tensor
 * torch.randint */
typedef struct cfx_randint_args { cfx_var dtype, layout, device, pin_memory; } cfx_randint_args;
static inline cfx_var cfx_randint_at(cfx_at at, cfx_var low, cfx_var high, cfx_var size,
        cfx_randint_args o)
{
    const cfx_var args[] = {low, high, size, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_randint, args, 7);
}
#define cfx_randint(s, low, high, size, ...)                                                       \
    cfx_randint_at(CFX_HERE(s), cfx_v(low), cfx_v(high), cfx_v(size),                              \
        CFX_OPTIONS(cfx_randint_args, __VA_ARGS__))

/* randint_like(Tensor self, int low, int high, *, ScalarType? dtype=None, Layout? layout=None,
 *     Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
 * torch.randint_like */
typedef struct cfx_randint_like_args { cfx_var dtype, layout, device, pin_memory, memory_format; }
        cfx_randint_like_args;
static inline cfx_var cfx_randint_like_at(cfx_at at, cfx_var self, cfx_var low, cfx_var high,
        cfx_randint_like_args o)
{
    const cfx_var args[] = {self, low, high, o.dtype, o.layout, o.device, o.pin_memory,
        o.memory_format};
    return cfx_apply_at(at, CFX_OPID_randint_like, args, 8);
}
#define cfx_randint_like(s, self, low, high, ...)                                                  \
    cfx_randint_like_at(CFX_HERE(s), cfx_v(self), cfx_v(low), cfx_v(high),                         \
        CFX_OPTIONS(cfx_randint_like_args, __VA_ARGS__))

/* randperm(int n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool?
 *     pin_memory=None) -> Tensor
 * torch.randperm */
typedef struct cfx_randperm_args { cfx_var dtype, layout, device, pin_memory; } cfx_randperm_args;
static inline cfx_var cfx_randperm_at(cfx_at at, cfx_var n, cfx_randperm_args o)
{
    const cfx_var args[] = {n, o.dtype, o.layout, o.device, o.pin_memory};
    return cfx_apply_at(at, CFX_OPID_randperm, args, 5);
}
#define cfx_randperm(s, n, ...)                                                                    \
    cfx_randperm_at(CFX_HERE(s), cfx_v(n), CFX_OPTIONS(cfx_randperm_args, __VA_ARGS__))

/* uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor */
typedef struct cfx_uniform_args { cfx_var from, to, generator; } cfx_uniform_args;
static inline cfx_var cfx_uniform_at(cfx_at at, cfx_var self, cfx_uniform_args o)
{
    const cfx_var args[] = {self, o.from, o.to, o.generator};
    return cfx_apply_at(at, CFX_OPID_uniform, args, 4);
}
#define cfx_uniform(s, self, ...)                                                                  \
    cfx_uniform_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_uniform_args, __VA_ARGS__))

/* uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) ->
 *     Tensor(a!)
 * Tensor.uniform_ */
typedef struct cfx_uniform__args { cfx_var from, to, generator; } cfx_uniform__args;
static inline cfx_var cfx_uniform__at(cfx_at at, cfx_var self, cfx_uniform__args o)
{
    const cfx_var args[] = {self, o.from, o.to, o.generator};
    return cfx_apply_at(at, CFX_OPID_uniform_, args, 4);
}
#define cfx_uniform_(s, self, ...)                                                                 \
    cfx_uniform__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_uniform__args, __VA_ARGS__))

/* exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor */
typedef struct cfx_exponential_args { cfx_var lambd, generator; } cfx_exponential_args;
static inline cfx_var cfx_exponential_at(cfx_at at, cfx_var self, cfx_exponential_args o)
{
    const cfx_var args[] = {self, o.lambd, o.generator};
    return cfx_apply_at(at, CFX_OPID_exponential, args, 3);
}
#define cfx_exponential(s, self, ...)                                                              \
    cfx_exponential_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_exponential_args,                 \
        __VA_ARGS__))

/* exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)
 * Tensor.exponential_ */
typedef struct cfx_exponential__args { cfx_var lambd, generator; } cfx_exponential__args;
static inline cfx_var cfx_exponential__at(cfx_at at, cfx_var self, cfx_exponential__args o)
{
    const cfx_var args[] = {self, o.lambd, o.generator};
    return cfx_apply_at(at, CFX_OPID_exponential_, args, 3);
}
#define cfx_exponential_(s, self, ...)                                                             \
    cfx_exponential__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_exponential__args,               \
        __VA_ARGS__))

/* geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor */
typedef struct cfx_geometric_args { cfx_var generator; } cfx_geometric_args;
static inline cfx_var cfx_geometric_at(cfx_at at, cfx_var self, cfx_var p, cfx_geometric_args o)
{
    const cfx_var args[] = {self, p, o.generator};
    return cfx_apply_at(at, CFX_OPID_geometric, args, 3);
}
#define cfx_geometric(s, self, p, ...)                                                             \
    cfx_geometric_at(CFX_HERE(s), cfx_v(self), cfx_v(p), CFX_OPTIONS(cfx_geometric_args,           \
        __VA_ARGS__))

/* geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)
 * Tensor.geometric_ */
typedef struct cfx_geometric__args { cfx_var generator; } cfx_geometric__args;
static inline cfx_var cfx_geometric__at(cfx_at at, cfx_var self, cfx_var p, cfx_geometric__args o)
{
    const cfx_var args[] = {self, p, o.generator};
    return cfx_apply_at(at, CFX_OPID_geometric_, args, 3);
}
#define cfx_geometric_(s, self, p, ...)                                                            \
    cfx_geometric__at(CFX_HERE(s), cfx_v(self), cfx_v(p), CFX_OPTIONS(cfx_geometric__args,         \
        __VA_ARGS__))

/* cauchy(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) -> Tensor */
typedef struct cfx_cauchy_args { cfx_var median, sigma, generator; } cfx_cauchy_args;
static inline cfx_var cfx_cauchy_at(cfx_at at, cfx_var self, cfx_cauchy_args o)
{
    const cfx_var args[] = {self, o.median, o.sigma, o.generator};
    return cfx_apply_at(at, CFX_OPID_cauchy, args, 4);
}
#define cfx_cauchy(s, self, ...)                                                                   \
    cfx_cauchy_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cauchy_args, __VA_ARGS__))

/* cauchy_(Tensor(a!) self, float median=0., float sigma=1., *, Generator? generator=None) ->
 *     Tensor(a!)
 * Tensor.cauchy_ */
typedef struct cfx_cauchy__args { cfx_var median, sigma, generator; } cfx_cauchy__args;
static inline cfx_var cfx_cauchy__at(cfx_at at, cfx_var self, cfx_cauchy__args o)
{
    const cfx_var args[] = {self, o.median, o.sigma, o.generator};
    return cfx_apply_at(at, CFX_OPID_cauchy_, args, 4);
}
#define cfx_cauchy_(s, self, ...)                                                                  \
    cfx_cauchy__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_cauchy__args, __VA_ARGS__))

/* log_normal(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor */
typedef struct cfx_log_normal_args { cfx_var mean, std, generator; } cfx_log_normal_args;
static inline cfx_var cfx_log_normal_at(cfx_at at, cfx_var self, cfx_log_normal_args o)
{
    const cfx_var args[] = {self, o.mean, o.std, o.generator};
    return cfx_apply_at(at, CFX_OPID_log_normal, args, 4);
}
#define cfx_log_normal(s, self, ...)                                                               \
    cfx_log_normal_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_log_normal_args, __VA_ARGS__))

/* log_normal_(Tensor(a!) self, float mean=1., float std=2., *, Generator? generator=None) ->
 *     Tensor(a!)
 * Tensor.log_normal_ */
typedef struct cfx_log_normal__args { cfx_var mean, std, generator; } cfx_log_normal__args;
static inline cfx_var cfx_log_normal__at(cfx_at at, cfx_var self, cfx_log_normal__args o)
{
    const cfx_var args[] = {self, o.mean, o.std, o.generator};
    return cfx_apply_at(at, CFX_OPID_log_normal_, args, 4);
}
#define cfx_log_normal_(s, self, ...)                                                              \
    cfx_log_normal__at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_log_normal__args,                 \
        __VA_ARGS__))

/* random(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor */
typedef struct cfx_random_args { cfx_var generator; } cfx_random_args;
static inline cfx_var cfx_random_at(cfx_at at, cfx_var self, cfx_var from, cfx_var to,
        cfx_random_args o)
{
    const cfx_var args[] = {self, from, to, o.generator};
    return cfx_apply_at(at, CFX_OPID_random, args, 4);
}
#define cfx_random(s, self, from, to, ...)                                                         \
    cfx_random_at(CFX_HERE(s), cfx_v(self), cfx_v(from), cfx_v(to),                                \
        CFX_OPTIONS(cfx_random_args, __VA_ARGS__))

/* random_(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)
 * Tensor.random_ */
typedef struct cfx_random__args { cfx_var generator; } cfx_random__args;
static inline cfx_var cfx_random__at(cfx_at at, cfx_var self, cfx_var from, cfx_var to,
        cfx_random__args o)
{
    const cfx_var args[] = {self, from, to, o.generator};
    return cfx_apply_at(at, CFX_OPID_random_, args, 4);
}
#define cfx_random_(s, self, from, to, ...)                                                        \
    cfx_random__at(CFX_HERE(s), cfx_v(self), cfx_v(from), cfx_v(to),                               \
        CFX_OPTIONS(cfx_random__args, __VA_ARGS__))

/* gumbel_softmax(Tensor logits, float tau=1., bool hard=False, float eps=1e-10, int dim=-1) ->
 *     Tensor
 * torch.nn.functional.gumbel_softmax */
typedef struct cfx_gumbel_softmax_args { cfx_var tau, hard, eps, dim; } cfx_gumbel_softmax_args;
static inline cfx_var cfx_gumbel_softmax_at(cfx_at at, cfx_var logits, cfx_gumbel_softmax_args o)
{
    const cfx_var args[] = {logits, o.tau, o.hard, o.eps, o.dim};
    return cfx_apply_at(at, CFX_OPID_gumbel_softmax, args, 5);
}
#define cfx_gumbel_softmax(s, logits, ...)                                                         \
    cfx_gumbel_softmax_at(CFX_HERE(s), cfx_v(logits), CFX_OPTIONS(cfx_gumbel_softmax_args,         \
        __VA_ARGS__))

/* ---- Losses and distances ------------------------------------------------------------------- */

/* mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor
 * torch.nn.functional.mse_loss */
typedef struct cfx_mse_loss_args { cfx_var reduction; } cfx_mse_loss_args;
static inline cfx_var cfx_mse_loss_at(cfx_at at, cfx_var self, cfx_var target, cfx_mse_loss_args o)
{
    const cfx_var args[] = {self, target, o.reduction};
    return cfx_apply_at(at, CFX_OPID_mse_loss, args, 3);
}
#define cfx_mse_loss(s, self, target, ...)                                                         \
    cfx_mse_loss_at(CFX_HERE(s), cfx_v(self), cfx_v(target), CFX_OPTIONS(cfx_mse_loss_args,        \
        __VA_ARGS__))

/* l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor
 * torch.nn.functional.l1_loss */
typedef struct cfx_l1_loss_args { cfx_var reduction; } cfx_l1_loss_args;
static inline cfx_var cfx_l1_loss_at(cfx_at at, cfx_var self, cfx_var target, cfx_l1_loss_args o)
{
    const cfx_var args[] = {self, target, o.reduction};
    return cfx_apply_at(at, CFX_OPID_l1_loss, args, 3);
}
#define cfx_l1_loss(s, self, target, ...)                                                          \
    cfx_l1_loss_at(CFX_HERE(s), cfx_v(self), cfx_v(target), CFX_OPTIONS(cfx_l1_loss_args,          \
        __VA_ARGS__))

/* smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor
 * torch.nn.functional.smooth_l1_loss */
typedef struct cfx_smooth_l1_loss_args { cfx_var reduction, beta; } cfx_smooth_l1_loss_args;
static inline cfx_var cfx_smooth_l1_loss_at(cfx_at at, cfx_var self, cfx_var target,
        cfx_smooth_l1_loss_args o)
{
    const cfx_var args[] = {self, target, o.reduction, o.beta};
    return cfx_apply_at(at, CFX_OPID_smooth_l1_loss, args, 4);
}
#define cfx_smooth_l1_loss(s, self, target, ...)                                                   \
    cfx_smooth_l1_loss_at(CFX_HERE(s), cfx_v(self), cfx_v(target),                                 \
        CFX_OPTIONS(cfx_smooth_l1_loss_args, __VA_ARGS__))

/* huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor
 * torch.nn.functional.huber_loss */
typedef struct cfx_huber_loss_args { cfx_var reduction, delta; } cfx_huber_loss_args;
static inline cfx_var cfx_huber_loss_at(cfx_at at, cfx_var self, cfx_var target,
        cfx_huber_loss_args o)
{
    const cfx_var args[] = {self, target, o.reduction, o.delta};
    return cfx_apply_at(at, CFX_OPID_huber_loss, args, 4);
}
#define cfx_huber_loss(s, self, target, ...)                                                       \
    cfx_huber_loss_at(CFX_HERE(s), cfx_v(self), cfx_v(target),                                     \
        CFX_OPTIONS(cfx_huber_loss_args, __VA_ARGS__))

/* cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int
 *     ignore_index=-100, float label_smoothing=0.) -> Tensor
 * torch.nn.functional.cross_entropy */
typedef struct cfx_cross_entropy_args { cfx_var weight, reduction, ignore_index, label_smoothing; }
        cfx_cross_entropy_args;
static inline cfx_var cfx_cross_entropy_at(cfx_at at, cfx_var self, cfx_var target,
        cfx_cross_entropy_args o)
{
    const cfx_var args[] = {self, target, o.weight, o.reduction, o.ignore_index,
        o.label_smoothing};
    return cfx_apply_at(at, CFX_OPID_cross_entropy, args, 6);
}
#define cfx_cross_entropy(s, self, target, ...)                                                    \
    cfx_cross_entropy_at(CFX_HERE(s), cfx_v(self), cfx_v(target),                                  \
        CFX_OPTIONS(cfx_cross_entropy_args, __VA_ARGS__))

/* nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int
 *     ignore_index=-100) -> Tensor
 * torch.nn.functional.nll_loss */
typedef struct cfx_nll_loss_args { cfx_var weight, reduction, ignore_index; } cfx_nll_loss_args;
static inline cfx_var cfx_nll_loss_at(cfx_at at, cfx_var self, cfx_var target, cfx_nll_loss_args o)
{
    const cfx_var args[] = {self, target, o.weight, o.reduction, o.ignore_index};
    return cfx_apply_at(at, CFX_OPID_nll_loss, args, 5);
}
#define cfx_nll_loss(s, self, target, ...)                                                         \
    cfx_nll_loss_at(CFX_HERE(s), cfx_v(self), cfx_v(target), CFX_OPTIONS(cfx_nll_loss_args,        \
        __VA_ARGS__))

/* binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) ->
 *     Tensor
 * torch.nn.functional.binary_cross_entropy */
typedef struct cfx_binary_cross_entropy_args { cfx_var weight, reduction; }
        cfx_binary_cross_entropy_args;
static inline cfx_var cfx_binary_cross_entropy_at(cfx_at at, cfx_var self, cfx_var target,
        cfx_binary_cross_entropy_args o)
{
    const cfx_var args[] = {self, target, o.weight, o.reduction};
    return cfx_apply_at(at, CFX_OPID_binary_cross_entropy, args, 4);
}
#define cfx_binary_cross_entropy(s, self, target, ...)                                             \
    cfx_binary_cross_entropy_at(CFX_HERE(s), cfx_v(self), cfx_v(target),                           \
        CFX_OPTIONS(cfx_binary_cross_entropy_args, __VA_ARGS__))

/* binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor?
 *     pos_weight=None, int reduction=1) -> Tensor
 * torch.binary_cross_entropy_with_logits, torch.nn.functional.binary_cross_entropy_with_logits */
typedef struct cfx_binary_cross_entropy_with_logits_args { cfx_var weight, pos_weight, reduction; }
        cfx_binary_cross_entropy_with_logits_args;
static inline cfx_var cfx_binary_cross_entropy_with_logits_at(cfx_at at, cfx_var self, cfx_var
        target, cfx_binary_cross_entropy_with_logits_args o)
{
    const cfx_var args[] = {self, target, o.weight, o.pos_weight, o.reduction};
    return cfx_apply_at(at, CFX_OPID_binary_cross_entropy_with_logits, args, 5);
}
#define cfx_binary_cross_entropy_with_logits(s, self, target, ...)                                 \
    cfx_binary_cross_entropy_with_logits_at(CFX_HERE(s), cfx_v(self), cfx_v(target),               \
        CFX_OPTIONS(cfx_binary_cross_entropy_with_logits_args, __VA_ARGS__))

/* kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor
 * torch.kl_div, torch.nn.functional.kl_div */
typedef struct cfx_kl_div_args { cfx_var reduction, log_target; } cfx_kl_div_args;
static inline cfx_var cfx_kl_div_at(cfx_at at, cfx_var self, cfx_var target, cfx_kl_div_args o)
{
    const cfx_var args[] = {self, target, o.reduction, o.log_target};
    return cfx_apply_at(at, CFX_OPID_kl_div, args, 4);
}
#define cfx_kl_div(s, self, target, ...)                                                           \
    cfx_kl_div_at(CFX_HERE(s), cfx_v(self), cfx_v(target), CFX_OPTIONS(cfx_kl_div_args,            \
        __VA_ARGS__))

/* poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, float
 *     eps=1e-08, int reduction=1) -> Tensor
 * torch.poisson_nll_loss, torch.nn.functional.poisson_nll_loss */
typedef struct cfx_poisson_nll_loss_args { cfx_var log_input, full, eps, reduction; }
        cfx_poisson_nll_loss_args;
static inline cfx_var cfx_poisson_nll_loss_at(cfx_at at, cfx_var input, cfx_var target,
        cfx_poisson_nll_loss_args o)
{
    const cfx_var args[] = {input, target, o.log_input, o.full, o.eps, o.reduction};
    return cfx_apply_at(at, CFX_OPID_poisson_nll_loss, args, 6);
}
#define cfx_poisson_nll_loss(s, input, target, ...)                                                \
    cfx_poisson_nll_loss_at(CFX_HERE(s), cfx_v(input), cfx_v(target),                              \
        CFX_OPTIONS(cfx_poisson_nll_loss_args, __VA_ARGS__))

/* cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int
 *     reduction=1) -> Tensor
 * torch.cosine_embedding_loss, torch.nn.functional.cosine_embedding_loss */
typedef struct cfx_cosine_embedding_loss_args { cfx_var margin, reduction; }
        cfx_cosine_embedding_loss_args;
static inline cfx_var cfx_cosine_embedding_loss_at(cfx_at at, cfx_var input1, cfx_var input2,
        cfx_var target, cfx_cosine_embedding_loss_args o)
{
    const cfx_var args[] = {input1, input2, target, o.margin, o.reduction};
    return cfx_apply_at(at, CFX_OPID_cosine_embedding_loss, args, 5);
}
#define cfx_cosine_embedding_loss(s, input1, input2, target, ...)                                  \
    cfx_cosine_embedding_loss_at(CFX_HERE(s), cfx_v(input1), cfx_v(input2), cfx_v(target),         \
        CFX_OPTIONS(cfx_cosine_embedding_loss_args, __VA_ARGS__))

/* hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor
 * torch.hinge_embedding_loss, torch.nn.functional.hinge_embedding_loss */
typedef struct cfx_hinge_embedding_loss_args { cfx_var margin, reduction; }
        cfx_hinge_embedding_loss_args;
static inline cfx_var cfx_hinge_embedding_loss_at(cfx_at at, cfx_var self, cfx_var target,
        cfx_hinge_embedding_loss_args o)
{
    const cfx_var args[] = {self, target, o.margin, o.reduction};
    return cfx_apply_at(at, CFX_OPID_hinge_embedding_loss, args, 4);
}
#define cfx_hinge_embedding_loss(s, self, target, ...)                                             \
    cfx_hinge_embedding_loss_at(CFX_HERE(s), cfx_v(self), cfx_v(target),                           \
        CFX_OPTIONS(cfx_hinge_embedding_loss_args, __VA_ARGS__))

/* margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int
 *     reduction=1) -> Tensor
 * torch.margin_ranking_loss, torch.nn.functional.margin_ranking_loss */
typedef struct cfx_margin_ranking_loss_args { cfx_var margin, reduction; }
        cfx_margin_ranking_loss_args;
static inline cfx_var cfx_margin_ranking_loss_at(cfx_at at, cfx_var input1, cfx_var input2, cfx_var
        target, cfx_margin_ranking_loss_args o)
{
    const cfx_var args[] = {input1, input2, target, o.margin, o.reduction};
    return cfx_apply_at(at, CFX_OPID_margin_ranking_loss, args, 5);
}
#define cfx_margin_ranking_loss(s, input1, input2, target, ...)                                    \
    cfx_margin_ranking_loss_at(CFX_HERE(s), cfx_v(input1), cfx_v(input2), cfx_v(target),           \
        CFX_OPTIONS(cfx_margin_ranking_loss_args, __VA_ARGS__))

/* triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float
 *     p=2., float eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor
 * torch.triplet_margin_loss, torch.nn.functional.triplet_margin_loss */
typedef struct cfx_triplet_margin_loss_args { cfx_var margin, p, eps, swap, reduction; }
        cfx_triplet_margin_loss_args;
static inline cfx_var cfx_triplet_margin_loss_at(cfx_at at, cfx_var anchor, cfx_var positive,
        cfx_var negative, cfx_triplet_margin_loss_args o)
{
    const cfx_var args[] = {anchor, positive, negative, o.margin, o.p, o.eps, o.swap, o.reduction};
    return cfx_apply_at(at, CFX_OPID_triplet_margin_loss, args, 8);
}
#define cfx_triplet_margin_loss(s, anchor, positive, negative, ...)                                \
    cfx_triplet_margin_loss_at(CFX_HERE(s), cfx_v(anchor), cfx_v(positive), cfx_v(negative),       \
        CFX_OPTIONS(cfx_triplet_margin_loss_args, __VA_ARGS__))

/* multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor
 * torch.nn.functional.multilabel_margin_loss */
typedef struct cfx_multilabel_margin_loss_args { cfx_var reduction; }
        cfx_multilabel_margin_loss_args;
static inline cfx_var cfx_multilabel_margin_loss_at(cfx_at at, cfx_var self, cfx_var target,
        cfx_multilabel_margin_loss_args o)
{
    const cfx_var args[] = {self, target, o.reduction};
    return cfx_apply_at(at, CFX_OPID_multilabel_margin_loss, args, 3);
}
#define cfx_multilabel_margin_loss(s, self, target, ...)                                           \
    cfx_multilabel_margin_loss_at(CFX_HERE(s), cfx_v(self), cfx_v(target),                         \
        CFX_OPTIONS(cfx_multilabel_margin_loss_args, __VA_ARGS__))

/* soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor
 * torch.nn.functional.soft_margin_loss */
typedef struct cfx_soft_margin_loss_args { cfx_var reduction; } cfx_soft_margin_loss_args;
static inline cfx_var cfx_soft_margin_loss_at(cfx_at at, cfx_var self, cfx_var target,
        cfx_soft_margin_loss_args o)
{
    const cfx_var args[] = {self, target, o.reduction};
    return cfx_apply_at(at, CFX_OPID_soft_margin_loss, args, 3);
}
#define cfx_soft_margin_loss(s, self, target, ...)                                                 \
    cfx_soft_margin_loss_at(CFX_HERE(s), cfx_v(self), cfx_v(target),                               \
        CFX_OPTIONS(cfx_soft_margin_loss_args, __VA_ARGS__))

/* ctc_loss(Tensor log_probs, Tensor targets, Any input_lengths, Any target_lengths, int blank=0,
 *     int reduction=1, bool zero_infinity=False) -> Tensor
 * torch.ctc_loss, torch.nn.functional.ctc_loss */
typedef struct cfx_ctc_loss_args { cfx_var blank, reduction, zero_infinity; } cfx_ctc_loss_args;
static inline cfx_var cfx_ctc_loss_at(cfx_at at, cfx_var log_probs, cfx_var targets, cfx_var
        input_lengths, cfx_var target_lengths, cfx_ctc_loss_args o)
{
    const cfx_var args[] = {log_probs, targets, input_lengths, target_lengths, o.blank,
        o.reduction, o.zero_infinity};
    return cfx_apply_at(at, CFX_OPID_ctc_loss, args, 7);
}
#define cfx_ctc_loss(s, log_probs, targets, input_lengths, target_lengths, ...)                    \
    cfx_ctc_loss_at(CFX_HERE(s), cfx_v(log_probs), cfx_v(targets), cfx_v(input_lengths),           \
        cfx_v(target_lengths), CFX_OPTIONS(cfx_ctc_loss_args, __VA_ARGS__))

/* cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor
 * torch.cosine_similarity, torch.nn.functional.cosine_similarity */
typedef struct cfx_cosine_similarity_args { cfx_var dim, eps; } cfx_cosine_similarity_args;
static inline cfx_var cfx_cosine_similarity_at(cfx_at at, cfx_var x1, cfx_var x2,
        cfx_cosine_similarity_args o)
{
    const cfx_var args[] = {x1, x2, o.dim, o.eps};
    return cfx_apply_at(at, CFX_OPID_cosine_similarity, args, 4);
}
#define cfx_cosine_similarity(s, x1, x2, ...)                                                      \
    cfx_cosine_similarity_at(CFX_HERE(s), cfx_v(x1), cfx_v(x2),                                    \
        CFX_OPTIONS(cfx_cosine_similarity_args, __VA_ARGS__))

/* pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool
 *     keepdim=False) -> Tensor
 * torch.pairwise_distance, torch.nn.functional.pairwise_distance */
typedef struct cfx_pairwise_distance_args { cfx_var p, eps, keepdim; } cfx_pairwise_distance_args;
static inline cfx_var cfx_pairwise_distance_at(cfx_at at, cfx_var x1, cfx_var x2,
        cfx_pairwise_distance_args o)
{
    const cfx_var args[] = {x1, x2, o.p, o.eps, o.keepdim};
    return cfx_apply_at(at, CFX_OPID_pairwise_distance, args, 5);
}
#define cfx_pairwise_distance(s, x1, x2, ...)                                                      \
    cfx_pairwise_distance_at(CFX_HERE(s), cfx_v(x1), cfx_v(x2),                                    \
        CFX_OPTIONS(cfx_pairwise_distance_args, __VA_ARGS__))

/* ---- Assertions, and what changes how later calls run --------------------------------------- */

/* _assert(Any condition, str message) -> ()
 * torch._assert */
static inline cfx_var cfx__assert_at(cfx_at at, cfx_var condition, cfx_var message)
{
    const cfx_var args[] = {condition, message};
    return cfx_apply_at(at, CFX_OPID__assert, args, 2);
}
#define cfx__assert(s, condition, message)                                                         \
    cfx__assert_at(CFX_HERE(s), cfx_v(condition), cfx_v(message))

/* _assert_async(Tensor self, str assert_msg) -> ()
 * torch._assert_async */
static inline cfx_var cfx__assert_async_at(cfx_at at, cfx_var self, cfx_var assert_msg)
{
    const cfx_var args[] = {self, assert_msg};
    return cfx_apply_at(at, CFX_OPID__assert_async, args, 2);
}
#define cfx__assert_async(s, self, assert_msg)                                                     \
    cfx__assert_async_at(CFX_HERE(s), cfx_v(self), cfx_v(assert_msg))

/* _assert_scalar(Scalar self, str assert_msg) -> () */
static inline cfx_var cfx__assert_scalar_at(cfx_at at, cfx_var self, cfx_var assert_msg)
{
    const cfx_var args[] = {self, assert_msg};
    return cfx_apply_at(at, CFX_OPID__assert_scalar, args, 2);
}
#define cfx__assert_scalar(s, self, assert_msg)                                                    \
    cfx__assert_scalar_at(CFX_HERE(s), cfx_v(self), cfx_v(assert_msg))

/* _assert_tensor_metadata(Tensor a, int[]? size=None, int[]? stride=None, ScalarType?
 *     dtype=None, *, Device? device=None, Layout? layout=None) -> ()
 * torch._assert_tensor_metadata */
typedef struct cfx__assert_tensor_metadata_args { cfx_var size, stride, dtype, device, layout; }
        cfx__assert_tensor_metadata_args;
static inline cfx_var cfx__assert_tensor_metadata_at(cfx_at at, cfx_var a,
        cfx__assert_tensor_metadata_args o)
{
    const cfx_var args[] = {a, o.size, o.stride, o.dtype, o.device, o.layout};
    return cfx_apply_at(at, CFX_OPID__assert_tensor_metadata, args, 6);
}
#define cfx__assert_tensor_metadata(s, a, ...)                                                     \
    cfx__assert_tensor_metadata_at(CFX_HERE(s), cfx_v(a),                                          \
        CFX_OPTIONS(cfx__assert_tensor_metadata_args, __VA_ARGS__))

/* sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> () */
typedef struct cfx_sym_constrain_range_args { cfx_var min, max; } cfx_sym_constrain_range_args;
static inline cfx_var cfx_sym_constrain_range_at(cfx_at at, cfx_var size,
        cfx_sym_constrain_range_args o)
{
    const cfx_var args[] = {size, o.min, o.max};
    return cfx_apply_at(at, CFX_OPID_sym_constrain_range, args, 3);
}
#define cfx_sym_constrain_range(s, size, ...)                                                      \
    cfx_sym_constrain_range_at(CFX_HERE(s), cfx_v(size),                                           \
        CFX_OPTIONS(cfx_sym_constrain_range_args, __VA_ARGS__))

/* sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> () */
typedef struct cfx_sym_constrain_range_for_size_args { cfx_var min, max; }
        cfx_sym_constrain_range_for_size_args;
static inline cfx_var cfx_sym_constrain_range_for_size_at(cfx_at at, cfx_var size,
        cfx_sym_constrain_range_for_size_args o)
{
    const cfx_var args[] = {size, o.min, o.max};
    return cfx_apply_at(at, CFX_OPID_sym_constrain_range_for_size, args, 3);
}
#define cfx_sym_constrain_range_for_size(s, size, ...)                                             \
    cfx_sym_constrain_range_for_size_at(CFX_HERE(s), cfx_v(size),                                  \
        CFX_OPTIONS(cfx_sym_constrain_range_for_size_args, __VA_ARGS__))

/* check(bool cond, Any message=None) -> ()
 * torch._check */
typedef struct cfx_check_args { cfx_var message; } cfx_check_args;
static inline cfx_var cfx_check_at(cfx_at at, cfx_var cond, cfx_check_args o)
{
    const cfx_var args[] = {cond, o.message};
    return cfx_apply_at(at, CFX_OPID_check, args, 2);
}
#define cfx_check(s, cond, ...)                                                                    \
    cfx_check_at(CFX_HERE(s), cfx_v(cond), CFX_OPTIONS(cfx_check_args, __VA_ARGS__))

/* fail(str kind, Any message=None) -> () */
typedef struct cfx_fail_args { cfx_var message; } cfx_fail_args;
static inline cfx_var cfx_fail_at(cfx_at at, cfx_var kind, cfx_fail_args o)
{
    const cfx_var args[] = {kind, o.message};
    return cfx_apply_at(at, CFX_OPID_fail, args, 2);
}
#define cfx_fail(s, kind, ...)                                                                     \
    cfx_fail_at(CFX_HERE(s), cfx_v(kind), CFX_OPTIONS(cfx_fail_args, __VA_ARGS__))

/* ---- Sizes and properties of tensors -------------------------------------------------------- */

/* size(Tensor self, int? dim=None) -> Any
 * Tensor.size */
typedef struct cfx_size_args { cfx_var dim; } cfx_size_args;
static inline cfx_var cfx_size_at(cfx_at at, cfx_var self, cfx_size_args o)
{
    const cfx_var args[] = {self, o.dim};
    return cfx_apply_at(at, CFX_OPID_size, args, 2);
}
#define cfx_size(s, self, ...)                                                                     \
    cfx_size_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_size_args, __VA_ARGS__))

/* sym_size(Tensor self, int dim) -> int */
static inline cfx_var cfx_sym_size_at(cfx_at at, cfx_var self, cfx_var dim)
{
    const cfx_var args[] = {self, dim};
    return cfx_apply_at(at, CFX_OPID_sym_size, args, 2);
}
#define cfx_sym_size(s, self, dim) cfx_sym_size_at(CFX_HERE(s), cfx_v(self), cfx_v(dim))

/* sym_stride(Tensor self, int dim) -> int */
static inline cfx_var cfx_sym_stride_at(cfx_at at, cfx_var self, cfx_var dim)
{
    const cfx_var args[] = {self, dim};
    return cfx_apply_at(at, CFX_OPID_sym_stride, args, 2);
}
#define cfx_sym_stride(s, self, dim) cfx_sym_stride_at(CFX_HERE(s), cfx_v(self), cfx_v(dim))

/* sym_numel(Tensor self) -> int */
static inline cfx_var cfx_sym_numel_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_sym_numel, args, 1);
}
#define cfx_sym_numel(s, self) cfx_sym_numel_at(CFX_HERE(s), cfx_v(self))

/* dim(Tensor self) -> int
 * Tensor.dim, Tensor.ndimension */
static inline cfx_var cfx_dim_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_dim, args, 1);
}
#define cfx_dim(s, self) cfx_dim_at(CFX_HERE(s), cfx_v(self))

/* numel(Tensor self) -> int
 * torch.numel, Tensor.numel, Tensor.nelement */
static inline cfx_var cfx_numel_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_numel, args, 1);
}
#define cfx_numel(s, self) cfx_numel_at(CFX_HERE(s), cfx_v(self))

/* element_size(Tensor self) -> int
 * Tensor.element_size */
static inline cfx_var cfx_element_size_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_element_size, args, 1);
}
#define cfx_element_size(s, self) cfx_element_size_at(CFX_HERE(s), cfx_v(self))

/* is_contiguous(Tensor self, MemoryFormat memory_format=0) -> bool
 * Tensor.is_contiguous */
typedef struct cfx_is_contiguous_args { cfx_var memory_format; } cfx_is_contiguous_args;
static inline cfx_var cfx_is_contiguous_at(cfx_at at, cfx_var self, cfx_is_contiguous_args o)
{
    const cfx_var args[] = {self, o.memory_format};
    return cfx_apply_at(at, CFX_OPID_is_contiguous, args, 2);
}
#define cfx_is_contiguous(s, self, ...)                                                            \
    cfx_is_contiguous_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_is_contiguous_args,             \
        __VA_ARGS__))

/* stride(Tensor self, int? dim=None) -> Any
 * Tensor.stride */
typedef struct cfx_stride_args { cfx_var dim; } cfx_stride_args;
static inline cfx_var cfx_stride_at(cfx_at at, cfx_var self, cfx_stride_args o)
{
    const cfx_var args[] = {self, o.dim};
    return cfx_apply_at(at, CFX_OPID_stride, args, 2);
}
#define cfx_stride(s, self, ...)                                                                   \
    cfx_stride_at(CFX_HERE(s), cfx_v(self), CFX_OPTIONS(cfx_stride_args, __VA_ARGS__))

/* is_floating_point(Tensor self) -> bool
 * torch.is_floating_point, Tensor.is_floating_point */
static inline cfx_var cfx_is_floating_point_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_is_floating_point, args, 1);
}
#define cfx_is_floating_point(s, self) cfx_is_floating_point_at(CFX_HERE(s), cfx_v(self))

/* ---- Python's own operations on sizes, tuples and objects ----------------------------------- */

/* getitem(Any(a) a, Any b) -> Any(a)
 * operator.getitem */
static inline cfx_var cfx_getitem_at(cfx_at at, cfx_var a, cfx_var b)
{
    const cfx_var args[] = {a, b};
    return cfx_apply_at(at, CFX_OPID_getitem, args, 2);
}
#define cfx_getitem(s, a, b) cfx_getitem_at(CFX_HERE(s), cfx_v(a), cfx_v(b))

/* setitem(Any(a!) a, Any b, Any(a) c) -> ()
 * operator.setitem */
static inline cfx_var cfx_setitem_at(cfx_at at, cfx_var a, cfx_var b, cfx_var c)
{
    const cfx_var args[] = {a, b, c};
    return cfx_apply_at(at, CFX_OPID_setitem, args, 3);
}
#define cfx_setitem(s, a, b, c) cfx_setitem_at(CFX_HERE(s), cfx_v(a), cfx_v(b), cfx_v(c))

/* finfo(Any type=None) -> Any
 * torch.finfo */
typedef struct cfx_finfo_args { cfx_var type; } cfx_finfo_args;
static inline cfx_var cfx_finfo_at(cfx_at at, cfx_finfo_args o)
{
    const cfx_var args[] = {o.type};
    return cfx_apply_at(at, CFX_OPID_finfo, args, 1);
}
#define cfx_finfo(s, ...) cfx_finfo_at(CFX_HERE(s), CFX_OPTIONS(cfx_finfo_args, __VA_ARGS__))

/* iinfo(Any type) -> Any
 * torch.iinfo */
static inline cfx_var cfx_iinfo_at(cfx_at at, cfx_var type)
{
    const cfx_var args[] = {type};
    return cfx_apply_at(at, CFX_OPID_iinfo, args, 1);
}
#define cfx_iinfo(s, type) cfx_iinfo_at(CFX_HERE(s), cfx_v(type))

/* getattr(Any(a) object, str name, Any default=None) -> Any(a)
 * builtins.getattr */
typedef struct cfx_getattr_args { cfx_var default_; } cfx_getattr_args;
static inline cfx_var cfx_getattr_at(cfx_at at, cfx_var object, cfx_var name, cfx_getattr_args o)
{
    const cfx_var args[] = {object, name, o.default_};
    return cfx_apply_at(at, CFX_OPID_getattr, args, 3);
}
#define cfx_getattr(s, object, name, ...)                                                          \
    cfx_getattr_at(CFX_HERE(s), cfx_v(object), cfx_v(name), CFX_OPTIONS(cfx_getattr_args,          \
        __VA_ARGS__))

/* len(Any obj) -> int
 * builtins.len */
static inline cfx_var cfx_len_at(cfx_at at, cfx_var obj)
{
    const cfx_var args[] = {obj};
    return cfx_apply_at(at, CFX_OPID_len, args, 1);
}
#define cfx_len(s, obj) cfx_len_at(CFX_HERE(s), cfx_v(obj))

/* int(Any x=0) -> int
 * builtins.int, torch.sym_int */
typedef struct cfx_int_args { cfx_var x; } cfx_int_args;
static inline cfx_var cfx_int_at(cfx_at at, cfx_int_args o)
{
    const cfx_var args[] = {o.x};
    return cfx_apply_at(at, CFX_OPID_int, args, 1);
}
#define cfx_int(s, ...) cfx_int_at(CFX_HERE(s), CFX_OPTIONS(cfx_int_args, __VA_ARGS__))

/* float(Any x=0.) -> float
 * builtins.float, torch.sym_float */
typedef struct cfx_float_args { cfx_var x; } cfx_float_args;
static inline cfx_var cfx_float_at(cfx_at at, cfx_float_args o)
{
    const cfx_var args[] = {o.x};
    return cfx_apply_at(at, CFX_OPID_float, args, 1);
}
#define cfx_float(s, ...) cfx_float_at(CFX_HERE(s), CFX_OPTIONS(cfx_float_args, __VA_ARGS__))

/* bool(Any x=False) -> bool
 * builtins.bool, operator.truth */
typedef struct cfx_bool_args { cfx_var x; } cfx_bool_args;
static inline cfx_var cfx_bool_at(cfx_at at, cfx_bool_args o)
{
    const cfx_var args[] = {o.x};
    return cfx_apply_at(at, CFX_OPID_bool, args, 1);
}
#define cfx_bool(s, ...) cfx_bool_at(CFX_HERE(s), CFX_OPTIONS(cfx_bool_args, __VA_ARGS__))

/* not(Any a) -> bool
 * operator.not_, torch.sym_not */
static inline cfx_var cfx_not_at(cfx_at at, cfx_var a)
{
    const cfx_var args[] = {a};
    return cfx_apply_at(at, CFX_OPID_not, args, 1);
}
#define cfx_not(s, a) cfx_not_at(CFX_HERE(s), cfx_v(a))

/* is(Any a, Any b) -> bool
 * operator.is_ */
static inline cfx_var cfx_is_at(cfx_at at, cfx_var a, cfx_var b)
{
    const cfx_var args[] = {a, b};
    return cfx_apply_at(at, CFX_OPID_is, args, 2);
}
#define cfx_is(s, a, b) cfx_is_at(CFX_HERE(s), cfx_v(a), cfx_v(b))

/* is_not(Any a, Any b) -> bool
 * operator.is_not */
static inline cfx_var cfx_is_not_at(cfx_at at, cfx_var a, cfx_var b)
{
    const cfx_var args[] = {a, b};
    return cfx_apply_at(at, CFX_OPID_is_not, args, 2);
}
#define cfx_is_not(s, a, b) cfx_is_not_at(CFX_HERE(s), cfx_v(a), cfx_v(b))

/* contains(Any a, Any b) -> bool
 * operator.contains */
static inline cfx_var cfx_contains_at(cfx_at at, cfx_var a, cfx_var b)
{
    const cfx_var args[] = {a, b};
    return cfx_apply_at(at, CFX_OPID_contains, args, 2);
}
#define cfx_contains(s, a, b) cfx_contains_at(CFX_HERE(s), cfx_v(a), cfx_v(b))

/* operator_index(Any a) -> int
 * operator.index */
static inline cfx_var cfx_operator_index_at(cfx_at at, cfx_var a)
{
    const cfx_var args[] = {a};
    return cfx_apply_at(at, CFX_OPID_operator_index, args, 1);
}
#define cfx_operator_index(s, a) cfx_operator_index_at(CFX_HERE(s), cfx_v(a))

/* operator_concat(Any a, Any b) -> Any
 * operator.concat */
static inline cfx_var cfx_operator_concat_at(cfx_at at, cfx_var a, cfx_var b)
{
    const cfx_var args[] = {a, b};
    return cfx_apply_at(at, CFX_OPID_operator_concat, args, 2);
}
#define cfx_operator_concat(s, a, b) cfx_operator_concat_at(CFX_HERE(s), cfx_v(a), cfx_v(b))

/* tuple(Any(a) iterable=()) -> Any(a)
 * builtins.tuple */
typedef struct cfx_tuple_row_args { cfx_var iterable; } cfx_tuple_row_args;
static inline cfx_var cfx_tuple_row_at(cfx_at at, cfx_tuple_row_args o)
{
    const cfx_var args[] = {o.iterable};
    return cfx_apply_at(at, CFX_OPID_tuple, args, 1);
}
#define cfx_tuple_row(s, ...)                                                                      \
    cfx_tuple_row_at(CFX_HERE(s), CFX_OPTIONS(cfx_tuple_row_args, __VA_ARGS__))

/* list(Any(a) iterable=()) -> Any(a)
 * builtins.list */
typedef struct cfx_list_row_args { cfx_var iterable; } cfx_list_row_args;
static inline cfx_var cfx_list_row_at(cfx_at at, cfx_list_row_args o)
{
    const cfx_var args[] = {o.iterable};
    return cfx_apply_at(at, CFX_OPID_list, args, 1);
}
#define cfx_list_row(s, ...)                                                                       \
    cfx_list_row_at(CFX_HERE(s), CFX_OPTIONS(cfx_list_row_args, __VA_ARGS__))

/* dict(Any(a) mapping=()) -> Any(a)
 * builtins.dict */
typedef struct cfx_dict_row_args { cfx_var mapping; } cfx_dict_row_args;
static inline cfx_var cfx_dict_row_at(cfx_at at, cfx_dict_row_args o)
{
    const cfx_var args[] = {o.mapping};
    return cfx_apply_at(at, CFX_OPID_dict, args, 1);
}
#define cfx_dict_row(s, ...)                                                                       \
    cfx_dict_row_at(CFX_HERE(s), CFX_OPTIONS(cfx_dict_row_args, __VA_ARGS__))

/* sym_max(Any a, Any b) -> Any
 * torch.sym_max */
static inline cfx_var cfx_sym_max_at(cfx_at at, cfx_var a, cfx_var b)
{
    const cfx_var args[] = {a, b};
    return cfx_apply_at(at, CFX_OPID_sym_max, args, 2);
}
#define cfx_sym_max(s, a, b) cfx_sym_max_at(CFX_HERE(s), cfx_v(a), cfx_v(b))

/* sym_min(Any a, Any b) -> Any
 * torch.sym_min */
static inline cfx_var cfx_sym_min_at(cfx_at at, cfx_var a, cfx_var b)
{
    const cfx_var args[] = {a, b};
    return cfx_apply_at(at, CFX_OPID_sym_min, args, 2);
}
#define cfx_sym_min(s, a, b) cfx_sym_min_at(CFX_HERE(s), cfx_v(a), cfx_v(b))

/* sym_ite(bool b, Any t, Any f) -> Any
 * torch.sym_ite */
static inline cfx_var cfx_sym_ite_at(cfx_at at, cfx_var b, cfx_var t, cfx_var f)
{
    const cfx_var args[] = {b, t, f};
    return cfx_apply_at(at, CFX_OPID_sym_ite, args, 3);
}
#define cfx_sym_ite(s, b, t, f) cfx_sym_ite_at(CFX_HERE(s), cfx_v(b), cfx_v(t), cfx_v(f))

/* sym_sqrt(Any a) -> float
 * torch._sym_sqrt */
static inline cfx_var cfx_sym_sqrt_at(cfx_at at, cfx_var a)
{
    const cfx_var args[] = {a};
    return cfx_apply_at(at, CFX_OPID_sym_sqrt, args, 1);
}
#define cfx_sym_sqrt(s, a) cfx_sym_sqrt_at(CFX_HERE(s), cfx_v(a))

/* str(Any object='') -> str
 * builtins.str */
typedef struct cfx_str_row_args { cfx_var object; } cfx_str_row_args;
static inline cfx_var cfx_str_row_at(cfx_at at, cfx_str_row_args o)
{
    const cfx_var args[] = {o.object};
    return cfx_apply_at(at, CFX_OPID_str, args, 1);
}
#define cfx_str_row(s, ...) cfx_str_row_at(CFX_HERE(s), CFX_OPTIONS(cfx_str_row_args, __VA_ARGS__))

/* repr(Any obj) -> str
 * builtins.repr */
static inline cfx_var cfx_repr_at(cfx_at at, cfx_var obj)
{
    const cfx_var args[] = {obj};
    return cfx_apply_at(at, CFX_OPID_repr, args, 1);
}
#define cfx_repr(s, obj) cfx_repr_at(CFX_HERE(s), cfx_v(obj))

/* format(Any value, str format_spec='') -> str
 * builtins.format */
typedef struct cfx_format_args { cfx_var format_spec; } cfx_format_args;
static inline cfx_var cfx_format_at(cfx_at at, cfx_var value, cfx_format_args o)
{
    const cfx_var args[] = {value, o.format_spec};
    return cfx_apply_at(at, CFX_OPID_format, args, 2);
}
#define cfx_format(s, value, ...)                                                                  \
    cfx_format_at(CFX_HERE(s), cfx_v(value), CFX_OPTIONS(cfx_format_args, __VA_ARGS__))

/* str_format(str self, *Any values) -> str
 * Tensor.format */
static inline cfx_var cfx_str_format_at(cfx_at at, cfx_var self, cfx_var values)
{
    const cfx_var args[] = {self, values};
    return cfx_apply_at(at, CFX_OPID_str_format, args, 2);
}
#define cfx_str_format(s, self, values) cfx_str_format_at(CFX_HERE(s), cfx_v(self), cfx_v(values))

/* str_startswith(Any self, Any prefix) -> bool
 * Tensor.startswith */
static inline cfx_var cfx_str_startswith_at(cfx_at at, cfx_var self, cfx_var prefix)
{
    const cfx_var args[] = {self, prefix};
    return cfx_apply_at(at, CFX_OPID_str_startswith, args, 2);
}
#define cfx_str_startswith(s, self, prefix)                                                        \
    cfx_str_startswith_at(CFX_HERE(s), cfx_v(self), cfx_v(prefix))

/* str_endswith(Any self, Any suffix) -> bool
 * Tensor.endswith */
static inline cfx_var cfx_str_endswith_at(cfx_at at, cfx_var self, cfx_var suffix)
{
    const cfx_var args[] = {self, suffix};
    return cfx_apply_at(at, CFX_OPID_str_endswith, args, 2);
}
#define cfx_str_endswith(s, self, suffix)                                                          \
    cfx_str_endswith_at(CFX_HERE(s), cfx_v(self), cfx_v(suffix))

/* str_lower(Any self) -> str
 * Tensor.lower */
static inline cfx_var cfx_str_lower_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_str_lower, args, 1);
}
#define cfx_str_lower(s, self) cfx_str_lower_at(CFX_HERE(s), cfx_v(self))

/* str_upper(Any self) -> str
 * Tensor.upper */
static inline cfx_var cfx_str_upper_at(cfx_at at, cfx_var self)
{
    const cfx_var args[] = {self};
    return cfx_apply_at(at, CFX_OPID_str_upper, args, 1);
}
#define cfx_str_upper(s, self) cfx_str_upper_at(CFX_HERE(s), cfx_v(self))

/* isinstance(Any obj, Any cls) -> bool
 * builtins.isinstance */
static inline cfx_var cfx_isinstance_at(cfx_at at, cfx_var obj, cfx_var cls)
{
    const cfx_var args[] = {obj, cls};
    return cfx_apply_at(at, CFX_OPID_isinstance, args, 2);
}
#define cfx_isinstance(s, obj, cls) cfx_isinstance_at(CFX_HERE(s), cfx_v(obj), cfx_v(cls))

/* math_sqrt(Any x) -> float */
static inline cfx_var cfx_math_sqrt_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_sqrt, args, 1);
}
#define cfx_math_sqrt(s, x) cfx_math_sqrt_at(CFX_HERE(s), cfx_v(x))

/* math_exp(Any x) -> float */
static inline cfx_var cfx_math_exp_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_exp, args, 1);
}
#define cfx_math_exp(s, x) cfx_math_exp_at(CFX_HERE(s), cfx_v(x))

/* math_log2(Any x) -> float */
static inline cfx_var cfx_math_log2_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_log2, args, 1);
}
#define cfx_math_log2(s, x) cfx_math_log2_at(CFX_HERE(s), cfx_v(x))

/* math_log10(Any x) -> float */
static inline cfx_var cfx_math_log10_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_log10, args, 1);
}
#define cfx_math_log10(s, x) cfx_math_log10_at(CFX_HERE(s), cfx_v(x))

/* math_sin(Any x) -> float */
static inline cfx_var cfx_math_sin_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_sin, args, 1);
}
#define cfx_math_sin(s, x) cfx_math_sin_at(CFX_HERE(s), cfx_v(x))

/* math_cos(Any x) -> float */
static inline cfx_var cfx_math_cos_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_cos, args, 1);
}
#define cfx_math_cos(s, x) cfx_math_cos_at(CFX_HERE(s), cfx_v(x))

/* math_tan(Any x) -> float */
static inline cfx_var cfx_math_tan_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_tan, args, 1);
}
#define cfx_math_tan(s, x) cfx_math_tan_at(CFX_HERE(s), cfx_v(x))

/* math_tanh(Any x) -> float */
static inline cfx_var cfx_math_tanh_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_tanh, args, 1);
}
#define cfx_math_tanh(s, x) cfx_math_tanh_at(CFX_HERE(s), cfx_v(x))

/* math_fabs(Any x) -> float */
static inline cfx_var cfx_math_fabs_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_fabs, args, 1);
}
#define cfx_math_fabs(s, x) cfx_math_fabs_at(CFX_HERE(s), cfx_v(x))

/* math_ceil(Any x) -> int */
static inline cfx_var cfx_math_ceil_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_ceil, args, 1);
}
#define cfx_math_ceil(s, x) cfx_math_ceil_at(CFX_HERE(s), cfx_v(x))

/* math_floor(Any x) -> int */
static inline cfx_var cfx_math_floor_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_floor, args, 1);
}
#define cfx_math_floor(s, x) cfx_math_floor_at(CFX_HERE(s), cfx_v(x))

/* math_trunc(Any x) -> int */
static inline cfx_var cfx_math_trunc_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_trunc, args, 1);
}
#define cfx_math_trunc(s, x) cfx_math_trunc_at(CFX_HERE(s), cfx_v(x))

/* math_log(Any x, Any base=None) -> float */
typedef struct cfx_math_log_args { cfx_var base; } cfx_math_log_args;
static inline cfx_var cfx_math_log_at(cfx_at at, cfx_var x, cfx_math_log_args o)
{
    const cfx_var args[] = {x, o.base};
    return cfx_apply_at(at, CFX_OPID_math_log, args, 2);
}
#define cfx_math_log(s, x, ...)                                                                    \
    cfx_math_log_at(CFX_HERE(s), cfx_v(x), CFX_OPTIONS(cfx_math_log_args, __VA_ARGS__))

/* math_pow(Any x, Any y) -> float */
static inline cfx_var cfx_math_pow_at(cfx_at at, cfx_var x, cfx_var y)
{
    const cfx_var args[] = {x, y};
    return cfx_apply_at(at, CFX_OPID_math_pow, args, 2);
}
#define cfx_math_pow(s, x, y) cfx_math_pow_at(CFX_HERE(s), cfx_v(x), cfx_v(y))

/* math_prod(Any iterable, *, Any start=None) -> Any */
typedef struct cfx_math_prod_args { cfx_var start; } cfx_math_prod_args;
static inline cfx_var cfx_math_prod_at(cfx_at at, cfx_var iterable, cfx_math_prod_args o)
{
    const cfx_var args[] = {iterable, o.start};
    return cfx_apply_at(at, CFX_OPID_math_prod, args, 2);
}
#define cfx_math_prod(s, iterable, ...)                                                            \
    cfx_math_prod_at(CFX_HERE(s), cfx_v(iterable), CFX_OPTIONS(cfx_math_prod_args,                 \
        __VA_ARGS__))

/* math_acos(Any x) -> float */
static inline cfx_var cfx_math_acos_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_acos, args, 1);
}
#define cfx_math_acos(s, x) cfx_math_acos_at(CFX_HERE(s), cfx_v(x))

/* math_acosh(Any x) -> float */
static inline cfx_var cfx_math_acosh_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_acosh, args, 1);
}
#define cfx_math_acosh(s, x) cfx_math_acosh_at(CFX_HERE(s), cfx_v(x))

/* math_asin(Any x) -> float */
static inline cfx_var cfx_math_asin_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_asin, args, 1);
}
#define cfx_math_asin(s, x) cfx_math_asin_at(CFX_HERE(s), cfx_v(x))

/* math_asinh(Any x) -> float */
static inline cfx_var cfx_math_asinh_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_asinh, args, 1);
}
#define cfx_math_asinh(s, x) cfx_math_asinh_at(CFX_HERE(s), cfx_v(x))

/* math_atan(Any x) -> float */
static inline cfx_var cfx_math_atan_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_atan, args, 1);
}
#define cfx_math_atan(s, x) cfx_math_atan_at(CFX_HERE(s), cfx_v(x))

/* math_atanh(Any x) -> float */
static inline cfx_var cfx_math_atanh_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_atanh, args, 1);
}
#define cfx_math_atanh(s, x) cfx_math_atanh_at(CFX_HERE(s), cfx_v(x))

/* math_cbrt(Any x) -> float */
static inline cfx_var cfx_math_cbrt_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_cbrt, args, 1);
}
#define cfx_math_cbrt(s, x) cfx_math_cbrt_at(CFX_HERE(s), cfx_v(x))

/* math_cosh(Any x) -> float */
static inline cfx_var cfx_math_cosh_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_cosh, args, 1);
}
#define cfx_math_cosh(s, x) cfx_math_cosh_at(CFX_HERE(s), cfx_v(x))

/* math_degrees(Any x) -> float */
static inline cfx_var cfx_math_degrees_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_degrees, args, 1);
}
#define cfx_math_degrees(s, x) cfx_math_degrees_at(CFX_HERE(s), cfx_v(x))

/* math_erf(Any x) -> float */
static inline cfx_var cfx_math_erf_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_erf, args, 1);
}
#define cfx_math_erf(s, x) cfx_math_erf_at(CFX_HERE(s), cfx_v(x))

/* math_erfc(Any x) -> float */
static inline cfx_var cfx_math_erfc_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_erfc, args, 1);
}
#define cfx_math_erfc(s, x) cfx_math_erfc_at(CFX_HERE(s), cfx_v(x))

/* math_exp2(Any x) -> float */
static inline cfx_var cfx_math_exp2_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_exp2, args, 1);
}
#define cfx_math_exp2(s, x) cfx_math_exp2_at(CFX_HERE(s), cfx_v(x))

/* math_expm1(Any x) -> float */
static inline cfx_var cfx_math_expm1_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_expm1, args, 1);
}
#define cfx_math_expm1(s, x) cfx_math_expm1_at(CFX_HERE(s), cfx_v(x))

/* math_log1p(Any x) -> float */
static inline cfx_var cfx_math_log1p_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_log1p, args, 1);
}
#define cfx_math_log1p(s, x) cfx_math_log1p_at(CFX_HERE(s), cfx_v(x))

/* math_radians(Any x) -> float */
static inline cfx_var cfx_math_radians_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_radians, args, 1);
}
#define cfx_math_radians(s, x) cfx_math_radians_at(CFX_HERE(s), cfx_v(x))

/* math_sinh(Any x) -> float */
static inline cfx_var cfx_math_sinh_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_sinh, args, 1);
}
#define cfx_math_sinh(s, x) cfx_math_sinh_at(CFX_HERE(s), cfx_v(x))

/* math_isfinite(Any x) -> bool */
static inline cfx_var cfx_math_isfinite_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_isfinite, args, 1);
}
#define cfx_math_isfinite(s, x) cfx_math_isfinite_at(CFX_HERE(s), cfx_v(x))

/* math_isinf(Any x) -> bool */
static inline cfx_var cfx_math_isinf_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_isinf, args, 1);
}
#define cfx_math_isinf(s, x) cfx_math_isinf_at(CFX_HERE(s), cfx_v(x))

/* math_isnan(Any x) -> bool */
static inline cfx_var cfx_math_isnan_at(cfx_at at, cfx_var x)
{
    const cfx_var args[] = {x};
    return cfx_apply_at(at, CFX_OPID_math_isnan, args, 1);
}
#define cfx_math_isnan(s, x) cfx_math_isnan_at(CFX_HERE(s), cfx_v(x))

/* math_isclose(Any a, Any b, *, Any rel_tol=1e-09, Any abs_tol=0.0) -> bool */
typedef struct cfx_math_isclose_args { cfx_var rel_tol, abs_tol; } cfx_math_isclose_args;
static inline cfx_var cfx_math_isclose_at(cfx_at at, cfx_var a, cfx_var b, cfx_math_isclose_args o)
{
    const cfx_var args[] = {a, b, o.rel_tol, o.abs_tol};
    return cfx_apply_at(at, CFX_OPID_math_isclose, args, 4);
}
#define cfx_math_isclose(s, a, b, ...)                                                             \
    cfx_math_isclose_at(CFX_HERE(s), cfx_v(a), cfx_v(b), CFX_OPTIONS(cfx_math_isclose_args,        \
        __VA_ARGS__))

/* math_atan2(Any y, Any x) -> float */
static inline cfx_var cfx_math_atan2_at(cfx_at at, cfx_var y, cfx_var x)
{
    const cfx_var args[] = {y, x};
    return cfx_apply_at(at, CFX_OPID_math_atan2, args, 2);
}
#define cfx_math_atan2(s, y, x) cfx_math_atan2_at(CFX_HERE(s), cfx_v(y), cfx_v(x))

/* math_copysign(Any x, Any y) -> float */
static inline cfx_var cfx_math_copysign_at(cfx_at at, cfx_var x, cfx_var y)
{
    const cfx_var args[] = {x, y};
    return cfx_apply_at(at, CFX_OPID_math_copysign, args, 2);
}
#define cfx_math_copysign(s, x, y) cfx_math_copysign_at(CFX_HERE(s), cfx_v(x), cfx_v(y))

/* math_fmod(Any x, Any y) -> float */
static inline cfx_var cfx_math_fmod_at(cfx_at at, cfx_var x, cfx_var y)
{
    const cfx_var args[] = {x, y};
    return cfx_apply_at(at, CFX_OPID_math_fmod, args, 2);
}
#define cfx_math_fmod(s, x, y) cfx_math_fmod_at(CFX_HERE(s), cfx_v(x), cfx_v(y))

/* math_remainder(Any x, Any y) -> float */
static inline cfx_var cfx_math_remainder_at(cfx_at at, cfx_var x, cfx_var y)
{
    const cfx_var args[] = {x, y};
    return cfx_apply_at(at, CFX_OPID_math_remainder, args, 2);
}
#define cfx_math_remainder(s, x, y) cfx_math_remainder_at(CFX_HERE(s), cfx_v(x), cfx_v(y))

/* math_hypot(*Any coordinates) -> float */
static inline cfx_var cfx_math_hypot_at(cfx_at at, cfx_var coordinates)
{
    const cfx_var args[] = {coordinates};
    return cfx_apply_at(at, CFX_OPID_math_hypot, args, 1);
}
#define cfx_math_hypot(s, coordinates) cfx_math_hypot_at(CFX_HERE(s), cfx_v(coordinates))

/* math_gcd(*Any integers) -> int */
static inline cfx_var cfx_math_gcd_at(cfx_at at, cfx_var integers)
{
    const cfx_var args[] = {integers};
    return cfx_apply_at(at, CFX_OPID_math_gcd, args, 1);
}
#define cfx_math_gcd(s, integers) cfx_math_gcd_at(CFX_HERE(s), cfx_v(integers))

/* math_isqrt(Any n) -> int */
static inline cfx_var cfx_math_isqrt_at(cfx_at at, cfx_var n)
{
    const cfx_var args[] = {n};
    return cfx_apply_at(at, CFX_OPID_math_isqrt, args, 1);
}
#define cfx_math_isqrt(s, n) cfx_math_isqrt_at(CFX_HERE(s), cfx_v(n))

/* ---- Python's functions of numbers and lists ------------------------------------------------ */

/* builtin_min(*Any(a) values) -> Any(a)
 * builtins.min */
static inline cfx_var cfx_builtin_min_at(cfx_at at, cfx_var values)
{
    const cfx_var args[] = {values};
    return cfx_apply_at(at, CFX_OPID_builtin_min, args, 1);
}
#define cfx_builtin_min(s, values) cfx_builtin_min_at(CFX_HERE(s), cfx_v(values))

/* builtin_max(*Any(a) values) -> Any(a)
 * builtins.max */
static inline cfx_var cfx_builtin_max_at(cfx_at at, cfx_var values)
{
    const cfx_var args[] = {values};
    return cfx_apply_at(at, CFX_OPID_builtin_max, args, 1);
}
#define cfx_builtin_max(s, values) cfx_builtin_max_at(CFX_HERE(s), cfx_v(values))

/* builtin_round(Any number, Any ndigits=None) -> Any */
typedef struct cfx_builtin_round_args { cfx_var ndigits; } cfx_builtin_round_args;
static inline cfx_var cfx_builtin_round_at(cfx_at at, cfx_var number, cfx_builtin_round_args o)
{
    const cfx_var args[] = {number, o.ndigits};
    return cfx_apply_at(at, CFX_OPID_builtin_round, args, 2);
}
#define cfx_builtin_round(s, number, ...)                                                          \
    cfx_builtin_round_at(CFX_HERE(s), cfx_v(number), CFX_OPTIONS(cfx_builtin_round_args,           \
        __VA_ARGS__))

/* builtin_sum(Any iterable, Any start=0) -> Any
 * builtins.sum */
typedef struct cfx_builtin_sum_args { cfx_var start; } cfx_builtin_sum_args;
static inline cfx_var cfx_builtin_sum_at(cfx_at at, cfx_var iterable, cfx_builtin_sum_args o)
{
    const cfx_var args[] = {iterable, o.start};
    return cfx_apply_at(at, CFX_OPID_builtin_sum, args, 2);
}
#define cfx_builtin_sum(s, iterable, ...)                                                          \
    cfx_builtin_sum_at(CFX_HERE(s), cfx_v(iterable), CFX_OPTIONS(cfx_builtin_sum_args,             \
        __VA_ARGS__))

/* builtin_sorted(Any iterable, *, bool reverse=False) -> Any
 * builtins.sorted */
typedef struct cfx_builtin_sorted_args { cfx_var reverse; } cfx_builtin_sorted_args;
static inline cfx_var cfx_builtin_sorted_at(cfx_at at, cfx_var iterable, cfx_builtin_sorted_args o)
{
    const cfx_var args[] = {iterable, o.reverse};
    return cfx_apply_at(at, CFX_OPID_builtin_sorted, args, 2);
}
#define cfx_builtin_sorted(s, iterable, ...)                                                       \
    cfx_builtin_sorted_at(CFX_HERE(s), cfx_v(iterable), CFX_OPTIONS(cfx_builtin_sorted_args,       \
        __VA_ARGS__))

/* builtin_any(Any iterable) -> bool
 * builtins.any */
static inline cfx_var cfx_builtin_any_at(cfx_at at, cfx_var iterable)
{
    const cfx_var args[] = {iterable};
    return cfx_apply_at(at, CFX_OPID_builtin_any, args, 1);
}
#define cfx_builtin_any(s, iterable) cfx_builtin_any_at(CFX_HERE(s), cfx_v(iterable))

/* builtin_all(Any iterable) -> bool
 * builtins.all */
static inline cfx_var cfx_builtin_all_at(cfx_at at, cfx_var iterable)
{
    const cfx_var args[] = {iterable};
    return cfx_apply_at(at, CFX_OPID_builtin_all, args, 1);
}
#define cfx_builtin_all(s, iterable) cfx_builtin_all_at(CFX_HERE(s), cfx_v(iterable))

/* builtin_divmod(Any x, Any y) -> Any
 * builtins.divmod */
static inline cfx_var cfx_builtin_divmod_at(cfx_at at, cfx_var x, cfx_var y)
{
    const cfx_var args[] = {x, y};
    return cfx_apply_at(at, CFX_OPID_builtin_divmod, args, 2);
}
#define cfx_builtin_divmod(s, x, y) cfx_builtin_divmod_at(CFX_HERE(s), cfx_v(x), cfx_v(y))

#ifdef __cplusplus
}
#endif
#endif
