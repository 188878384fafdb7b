/* random_shapes.c - shapes that fit together, for the rows whose schema does not tell them.
 *
 * A pattern has a word for each Tensor or Tensor[] parameter, in order: its sizes with commas,
 * where a letter stands for a random size, the same in the whole call ("4H" is four times H), and
 * ';' between the tensors of a list; "~" is None. A last "i3" is no size, but says that the
 * elements are indices below 3 ("u3": such numbers of the call's type). A word after them with '='
 * gives another parameter its value; numbers may be letters there, too.
 */
#include "random_call.h"

#include <string.h>

typedef struct shapes {
    const char *row;
    const char *pattern;
} shapes;

static const shapes patterns[] = {
    {"matmul", "A,B,C C,D"},
    {"mm", "A,B B,C"},
    {"bmm", "A,B,C A,C,D"},
    {"mv", "A,B B"},
    {"dot", "A A"},
    {"vdot", "A A"},
    {"outer", "A B"},
    {"addmm", "A,C A,B B,C"},
    {"addmv", "A A,B B"},
    {"addbmm", "B,D A,B,C A,C,D"},
    {"baddbmm", "A,B,D A,B,C A,C,D"},
    {"linear", "A,B,C D,C D"},
    {"bilinear", "A,B A,C D,B,C D"},
    {"einsum", "A,B;B,C equation=ij,jk->ik"},
    {"tensordot", "A,B,C C,B,D dims_self=[2,1] dims_other=[0,1]"},
    {"chain_matmul", "A,B;B,C;C,D"},
    {"cdist", "A,B,C A,D,C"},
    {"cross", "A,3 A,3"},
    {"trace", "A,B"},
    {"grouped_mm_fallback", "A,B C,B,D C,i3"},
    {"_grouped_mm", "A,B C,B,D C,i3"},
    {"linalg_inv", "A,B,B"},
    {"linalg_det", "A,B,B"},
    {"linalg_solve", "A,B,B A,B,C"},
    {"linalg_solve_triangular", "A,B,B A,B,C"},
    {"linalg_cholesky", "A,B,B"},
    {"linalg_qr", "A,B,C"},
    {"linalg_svd", "A,B,C"},
    {"linalg_eigh", "A,B,B"},
    {"linalg_matrix_norm", "A,B,C"},
    {"prelu", "A,B,C B"},
    {"conv1d", "N,2C,9 2O,C,K 2O groups=2"},
    {"conv2d", "N,C,9,H O,C,K,L O groups=1"},
    {"conv3d", "N,C,5,6,H O,C,K,2,1 O groups=1"},
    {"conv_transpose1d", "N,2C,W 2C,O,K 2O groups=2"},
    {"conv_transpose2d", "N,C,H,W C,O,K,L O groups=1"},
    {"conv_transpose3d", "N,C,3,H,W C,O,K,L,1 O groups=1"},
    {"convolution", "N,C,9,9 O,C,K,L O stride=[1,1] padding=[1,1] dilation=[1,1] "
                    "output_padding=[0,0] groups=1 transposed=0"},
    {"deform_conv2d", "N,2C,9,8 2O,C,2,3 N,12,8,6 2O N,6,8,6 stride=[1,1] padding=[0,0] "
                      "dilation=[1,1] groups=2 offset_groups=1"},
    {"roi_align", "N,C,9,8 R,4 R,i1 output_size=[2,3] sampling_ratio=2 mode=avg"},
    {"roi_max_pool", "N,C,9,8 R,5 output_size=[3,2]"},
    {"non_max_suppression", "N,B,4 N,C,B"},
    {"resize_nd", "N,C,H,W size=[4,5] scales=~ roi=~ dims=[2,3] mode=cubic transform=half_pixel "
                  "rounding=floor policy=stretch"},
    {"im2col", "N,C,9,8"},
    {"col2im", "N,4C,9 output_size=[4,4] kernel_size=[2,2] dilation=[1,1] padding=[0,0] "
               "stride=[1,1]"},
    {"max_pool1d", "N,C,9"},
    {"max_pool2d", "N,C,9,7"},
    {"max_pool3d", "N,C,5,6,7"},
    {"max_pool1d_with_indices", "N,C,9"},
    {"max_pool2d_with_indices", "N,C,9,7"},
    {"max_pool3d_with_indices", "N,C,5,6,7"},
    {"max_unpool1d", "N,C,W N,C,W,i9 output_size=[9] kernel_size=~ stride=~ padding=0"},
    {"max_unpool2d", "N,C,H,W N,C,H,W,i9 output_size=[5,6] kernel_size=~ stride=~ padding=0"},
    {"max_unpool3d", "N,C,2,H,W N,C,2,H,W,i9 output_size=[2,5,6] kernel_size=~ stride=~ padding=0"},
    {"avg_pool1d", "N,C,9"},
    {"avg_pool2d", "N,C,9,7"},
    {"avg_pool3d", "N,C,5,6,7"},
    {"adaptive_avg_pool1d", "N,C,W"},
    {"adaptive_avg_pool2d", "N,C,H,W"},
    {"adaptive_avg_pool3d", "N,C,5,H,W"},
    {"adaptive_max_pool1d", "N,C,W"},
    {"adaptive_max_pool2d", "N,C,H,W"},
    {"adaptive_max_pool1d_with_indices", "N,C,W"},
    {"adaptive_max_pool2d_with_indices", "N,C,H,W"},
    {"fractional_max_pool2d", "N,C,9,8 output_size=[3,3]"},
    {"lp_pool2d", "N,C,9,8"},
    {"batch_norm", "N,C,H,W C C C C"},
    {"native_batch_norm", "N,C,H C C C C"},
    {"instance_norm", "N,C,H,W C C C C"},
    {"layer_norm", "A,B,C C C normalized_shape=[C]"},
    {"native_layer_norm", "A,B,C C C normalized_shape=[C]"},
    {"group_norm", "N,4C,H,W 4C 4C num_groups=2"},
    {"native_group_norm", "N,4C,H 4C 4C N=N C=4C HxW=H group=2"},
    {"rms_norm", "A,B,C C normalized_shape=[C]"},
    {"local_response_norm", "N,C,H,W"},
    {"embedding", "9,D A,B,i9"},
    {"embedding_bag", "9,D 6,i9 3,i1 6 mode=0 include_last_offset=0 padding_idx=1"},
    {"one_hot", "A,i5 num_classes=5"},
    {"scaled_dot_product_attention", "N,A,L,E N,A,S,E N,A,S,V L,S"},
    {"multi_head_attention_forward",
     "L,N,4E S,N,4E S,N,4E 12E,4E 12E ~ ~ 4E,4E 4E N,S L,S ~ ~ ~ ~ ~ embed_dim_to_check=4E "
     "num_heads=2 use_separate_proj_weight=0 is_causal=0 dropout_p=0 add_zero_attn=0"},
    {"linear_attention", "N,T,2H,K N,T,H,K N,T,H,V N,H,K,V N,T,H,K N,T,H rule=gated_delta"},
    {"recurrent_sequence", "T,N,I 1,4H,I 1,4H,H 1,8H N,i2 1,N,H 1,N,H 1,3H cell=LSTM "
                           "direction=forward activations= alpha=[] beta=[]"},
    {"lstm", "T,N,I 1,N,H;1,N,H 4H,I;4H,H;4H;4H has_biases=1 num_layers=1 bidirectional=0 "
             "batch_first=0"},
    {"gru", "T,N,I 1,N,H 3H,I;3H,H;3H;3H has_biases=1 num_layers=1 bidirectional=0 batch_first=0"},
    {"rnn_tanh", "T,N,I 1,N,H H,I;H,H;H;H has_biases=1 num_layers=1 bidirectional=0 batch_first=0"},
    {"rnn_relu", "T,N,I 1,N,H H,I;H,H;H;H has_biases=1 num_layers=1 bidirectional=0 batch_first=0"},
    {"lstm_cell", "N,I N,H;N,H 4H,I 4H,H 4H 4H"},
    {"gru_cell", "N,I N,H 3H,I 3H,H 3H 3H"},
    {"rnn_tanh_cell", "N,I N,H H,I H,H H H"},
    {"rnn_relu_cell", "N,I N,H H,I H,H H H"},
    {"quantile", "A,B C,u2"},
    {"bincount", "A,i9 A"},
    {"searchsorted", "A,B A,C A,B,i2"},
    {"bucketize", "A,B C"},
    {"index", "A,B,C D,i2;D,i2"},
    {"index_select", "3,B,C D,i3 dim=0"},
    {"index_put", "A,B,C D,i2;D,i2 D,C"},
    {"index_add", "3,B,C D,i3 D,B,C dim=0"},
    {"index_copy", "3,B,C D,i3 D,B,C dim=0"},
    {"index_fill", "A,3,C D,i3 dim=1"},
    {"gather", "A,3,C A,D,C,i3 dim=1"},
    {"scatter", "A,3,C A,D,C,i3 A,D,C dim=1"},
    {"scatter_add", "A,3,C A,D,C,i3 A,D,C dim=1"},
    {"scatter_reduce", "A,3,C A,D,C,i3 A,D,C dim=1 reduce=sum"},
    {"masked_scatter", "A,B A,B A,B"},
    {"take", "3,3 A,B,i9"},
    {"take_along_dim", "A,3,C A,D,C,i3 dim=1"},
    {"select_scatter", "A,B,C A,C dim=1 index=0"},
    {"diagonal_scatter", "A,A,C C,A"},
    {"as_strided_scatter", "A,B,4 A,2 size=[A,2] stride=[1,1] storage_offset=0"},
    {"slice_scatter", "A,4,C A,2,C dim=1 start=0 end=2"},
    {"split_with_sizes", "A,5,C split_sizes=[2,3] dim=1"},
    {"reshape", "A,B,4 shape=[-1,2,2]"},
    {"view", "A,B,4 size=[-1,2,2]"},
    {"unflatten", "A,6,C dim=1 sizes=[2,3]"},
    {"permute", "A,B,C dims=[2,0,1]"},
    {"t", "A,B"},
    {"expand", "1,B,C size=[4,-1,C]"},
    {"repeat_interleave", "A,3,C 3,i4 dim=1"},
    {"unfold", "A,5,C dimension=1 size=2"},
    {"as_strided", "A,B,4 size=[A,2] stride=[1,1] storage_offset=0"},
    {"pad", "A,B,5,6 pad=[1,2,0,1]"},
    {"constant_pad_nd", "A,B,C pad=[1,2,0,1]"},
    {"pixel_shuffle", "A,4C,H,W upscale_factor=2"},
    {"pixel_unshuffle", "A,C,4,2H downscale_factor=2"},
    {"channel_shuffle", "A,4C,H,W groups=2"},
    {"interpolate", "N,C,H,W size=[5,4] scale_factor=~ mode=nearest align_corners=~ "
                    "recompute_scale_factor=~ antialias=0"},
    {"upsample_nearest1d", "N,C,W output_size=[5]"},
    {"upsample_nearest2d", "N,C,H,W output_size=[5,4]"},
    {"upsample_nearest3d", "N,C,3,H,W output_size=[5,4,3]"},
    {"upsample_nearest_exact1d", "N,C,W output_size=[5]"},
    {"upsample_nearest_exact2d", "N,C,H,W output_size=[5,4]"},
    {"upsample_nearest_exact3d", "N,C,3,H,W output_size=[5,4,3]"},
    {"upsample_linear1d", "N,C,W output_size=[5]"},
    {"upsample_bilinear2d", "N,C,H,W output_size=[5,4]"},
    {"upsample_bicubic2d", "N,C,H,W output_size=[5,4]"},
    {"upsample_trilinear3d", "N,C,3,H,W output_size=[5,4,3]"},
    {"upsample_bilinear2d_aa", "N,C,H,W output_size=[5,4]"},
    {"upsample_bicubic2d_aa", "N,C,H,W output_size=[5,4]"},
    {"grid_sampler", "N,C,H,W N,5,4,2 interpolation_mode=0 padding_mode=0"},
    {"grid_sample", "N,C,H,W N,5,4,2 mode=bilinear padding_mode=zeros"},
    {"affine_grid", "N,2,3 size=[N,C,H,W]"},
    {"cross_entropy", "N,5 N,i5 5"},
    {"nll_loss", "N,5,H N,H,i5 5"},
    {"ctc_loss", "6,N,5 N,3,i5 input_lengths=[6,6] target_lengths=[2,2] blank=0"},
    {"cosine_embedding_loss", "N,C N,C N"},
    {"multilabel_margin_loss", "N,C N,C,i1"},
    {"multinomial", "A,B,u9 num_samples=1"},
};

const char *random_shapes_of(cfx_operator op)
{
    const char *row = cfx_operator_name(op);
    if (cfx_operator_functional(op) != CFX_OPID_NONE)
        row = cfx_operator_name(cfx_operator_functional(op));
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (strcmp(patterns[i].row, row) == 0)
            return patterns[i].pattern;
    return NULL;
}

int64_t random_shapes_size(const random_call *c, const char **at)
{
    int64_t size = 1;
    const char *p = *at;
    bool negative = *p == '-';
    p += negative;
    if (*p >= '0' && *p <= '9')
        for (size = 0; *p >= '0' && *p <= '9'; p++)
            size = size * 10 + (*p - '0');
    if (*p >= 'A' && *p <= 'Z')
        size *= c->letters[*p++ - 'A'];
    *at = p;
    return negative ? -size : size;
}

const char *random_shapes_value(const char *pattern, cfx_schema_text name)
{
    for (const char *word = pattern; word; word = strchr(word, ' ')) {
        word += *word == ' ';
        if (strncmp(word, name.text, name.size) == 0 && word[name.size] == '=')
            return word + name.size + 1;
    }
    return NULL;
}
