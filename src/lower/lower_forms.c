/* lower_forms.c - what else a spelling can mean: a row, and how its parameters are then passed.
 *
 * The row that a spelling stands in (ops.def) comes first, then these, from the top; the first
 * whose parameters the arguments fit is meant. Lists are written as in ops.def. */
#include "lower_impl.h"

typedef struct form {
    cfx_operator from;
    cfx_operator to;
    const char *list;  /* NULL: the row's own */
} form;

#define FORM(from, to, list) {CFX_OPID_##from, CFX_OPID_##to, list}

static const form forms[] = {
    FORM(max, max_dim, NULL),
    FORM(max, maximum, NULL),
    FORM(min, min_dim, NULL),
    FORM(min, minimum, NULL),
    FORM(median, median_dim, NULL),
    FORM(split, split_with_sizes, "self:tensor,split_sizes:split_size_or_sections,dim=0"),
    FORM(split, split_with_sizes, "self,split_sizes:split_size,dim=0"),
    FORM(split, split, "self:tensor,split_size:split_size_or_sections,dim=0"),
    FORM(view, view_dtype, NULL),
    FORM(view, view, "self,size:shape"),
    FORM(reshape, reshape, "self,shape:size"),
    FORM(squeeze, squeeze_dim, NULL),
    FORM(squeeze_, squeeze_dim_, NULL),
    FORM(std, std_dim, NULL),
    FORM(std, std_dim, "self,unbiased"),
    FORM(var, var_dim, NULL),
    FORM(var, var_dim, "self,unbiased"),
    FORM(std_mean, std_mean, "self,dim,correction:unbiased,keepdim"),
    FORM(std_mean, std_mean, "self,correction:unbiased"),
    FORM(var_mean, var_mean, "self,dim,correction:unbiased,keepdim"),
    FORM(var_mean, var_mean, "self,correction:unbiased"),
    FORM(sort, sort_stable, NULL),
    FORM(argsort, argsort_stable, NULL),
    FORM(arange, arange_start, NULL),
    FORM(where, where_nonzero, NULL),
    FORM(atleast_1d, atleast_1d_each, NULL),
    FORM(atleast_2d, atleast_2d_each, NULL),
    FORM(atleast_3d, atleast_3d_each, NULL),
    FORM(to, to_other, NULL),
    FORM(to, to_layout, "self,device,dtype,non_blocking,copy,memory_format"),
    FORM(scatter, scatter, "self,dim,index,src:value"),
    FORM(scatter_, scatter_, "self,dim,index,src:value"),
    FORM(scatter, scatter_reduce, "self,dim,index,src,reduce"),
    FORM(scatter, scatter_reduce, "self,dim,index,src:value,reduce"),
    FORM(scatter_, scatter_reduce_, "self,dim,index,src,reduce"),
    FORM(scatter_, scatter_reduce_, "self,dim,index,src:value,reduce"),
    FORM(bernoulli, bernoulli_p, NULL),
    FORM(round, builtin_round, NULL),
    FORM(normal_of, normal_numbers, NULL),
    FORM(randint, randint, "high,size,low=0,dtype,layout,device,pin_memory"),
    FORM(randint_like, randint_like,
         "self,high,low=0,dtype,layout,device,pin_memory,memory_format"),
};

bool cfxi_lower_form(cfx_operator from, size_t i, cfx_operator *to, const char **list)
{
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (forms[k].from == from && i-- == 0) {
            *to = forms[k].to;
            *list = forms[k].list;
            return true;
        }
    return false;
}
