"""Models of diffusers: the networks of diffusion pipelines and their autoencoders, made small."""
import torch
from client_uses import define_nms

from . import Case

BLOCKS = {"block_out_channels": (16, 32), "norm_num_groups": 8, "layers_per_block": 1}
CROSS = {**BLOCKS, "cross_attention_dim": 16, "attention_head_dim": 8,
         "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D")}
CODER = {**BLOCKS, "down_block_types": ("DownEncoderBlock2D",) * 2,
         "up_block_types": ("UpDecoderBlock2D",) * 2}
HEADS = {"num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 2}


def noise(channels):
    """A latent image, and the time."""

    def inputs(batch, size):
        return (torch.randn(batch, channels, size, size), torch.randint(0, 99, (batch,))), {}

    return inputs


def named(**shapes):
    """Inputs by name: "B" is the batch, "S" the size, "SS" its square. `timestep` is a time."""

    def inputs(batch, size):
        known = {"B": batch, "S": size, "SS": size * size}
        found = {}
        for name, shape in shapes.items():
            shape = [known.get(s, s) for s in shape]
            found[name] = torch.randint(0, 99, shape) if name in TIMES else (
                torch.ones(shape) if name in MASKS else torch.randn(shape))
        return (), found

    return inputs


TIMES = ("timestep", "class_labels")
MASKS = ("encoder_attention_mask", "encoder_hidden_states_mask")
TEXT = {"encoder_hidden_states": ("B", 5, 16), "timestep": ("B",)}
IMAGE = {"sample": ("B", 3, "S", "S")}

MODELS = {  # class: arguments, inputs, size, another size
    "UNet2DModel": (
        {**BLOCKS, "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
         "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}, noise(3), 16, 24),
    "UNet2DConditionModel": (
        {**CROSS, "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D")},
        named(sample=("B", 4, "S", "S"), **TEXT), 16, 24),
    "UNet1DModel": ({"block_out_channels": (32, 32, 64), "extra_in_channels": 64},
                    named(sample=("B", 2, "S"), timestep=("B",)), 64, 96),
    "UNet3DConditionModel": (
        {**BLOCKS, "cross_attention_dim": 16, "attention_head_dim": 8,
         "down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"),
         "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D")},
        named(sample=("B", 4, 3, "S", "S"), **TEXT), 16, 24),
    "ControlNetModel": (
        {**CROSS, "conditioning_embedding_out_channels": (8, 16)},
        lambda batch, size: ((), {
            **named(sample=("B", 4, "S", "S"), **TEXT)(batch, size)[1],
            "controlnet_cond": torch.randn(batch, 3, 2 * size, 2 * size)}), 16, 24),
    "T2IAdapter": ({"channels": [16, 32], "downscale_factor": 8}, named(x=IMAGE["sample"]), 32, 48),
    "AutoencoderKL": (CODER, named(**IMAGE), 32, 48),
    "AsymmetricAutoencoderKL": (
        {"down_block_types": ("DownEncoderBlock2D",) * 2, "down_block_out_channels": (16, 32),
         "up_block_types": ("UpDecoderBlock2D",) * 2, "up_block_out_channels": (16, 32),
         "norm_num_groups": 8}, named(**IMAGE), 32, 48),
    "AutoencoderTiny": ({"encoder_block_out_channels": (8, 8, 8, 8),
                         "decoder_block_out_channels": (8, 8, 8, 8)}, named(**IMAGE), 32, 48),
    "VQModel": ({**CODER, "num_vq_embeddings": 16}, named(**IMAGE), 32, 48),
    "AutoencoderDC": (
        {"encoder_block_out_channels": (16, 32), "decoder_block_out_channels": (16, 32),
         "encoder_layers_per_block": (1, 1), "decoder_layers_per_block": (1, 1),
         "encoder_block_types": ("ResBlock", "EfficientViTBlock"), "attention_head_dim": 8,
         "decoder_block_types": ("ResBlock", "EfficientViTBlock"), "latent_channels": 4,
         "encoder_qkv_multiscales": ((), (5,)), "decoder_qkv_multiscales": ((), (5,))},
        named(**IMAGE), 32, 48),
    "AutoencoderKLTemporalDecoder": (
        {"block_out_channels": (32,), "down_block_types": ("DownEncoderBlock2D",)},
        lambda batch, size: ((), {"sample": torch.randn(batch, 3, size, size),
                                  "num_frames": batch}), 16, 24),
    "AutoencoderKLWan": ({"base_dim": 8, "z_dim": 4, "num_res_blocks": 1},
                         named(sample=("B", 3, 5, "S", "S")), 16, 24),
    "AutoencoderOobleck": (
        {"encoder_hidden_size": 8, "downsampling_ratios": [2, 4], "decoder_channels": 8,
         "decoder_input_channels": 4, "channel_multiples": [1, 2]},
        named(sample=("B", 2, "S")), 64, 96),
    "DiTTransformer2DModel": (
        {**HEADS, "sample_size": 8, "num_embeds_ada_norm": 99},
        named(hidden_states=("B", 4, "S", "S"), timestep=("B",), class_labels=("B",)), 8, 0),
    "PixArtTransformer2DModel": (
        {**HEADS, "sample_size": 8, "cross_attention_dim": 16, "caption_channels": 16,
         "use_additional_conditions": False},
        named(hidden_states=("B", 4, "S", "S"), **TEXT), 8, 12),
    "SD3Transformer2DModel": (
        {**HEADS, "sample_size": 8, "joint_attention_dim": 16, "caption_projection_dim": 16,
         "pooled_projection_dim": 24, "in_channels": 4, "out_channels": 4,
         "pos_embed_max_size": 12},
        named(hidden_states=("B", 4, "S", "S"), pooled_projections=("B", 24), **TEXT), 8, 12),
    "AuraFlowTransformer2DModel": (
        {"attention_head_dim": 8, "num_attention_heads": 2, "num_mmdit_layers": 1,
         "num_single_dit_layers": 1, "joint_attention_dim": 16, "caption_projection_dim": 16,
         "pos_embed_max_size": 144},
        named(hidden_states=("B", 4, "S", "S"), **TEXT), 8, 12),
    "SanaTransformer2DModel": (
        {**HEADS, "in_channels": 4, "out_channels": 4, "num_cross_attention_heads": 2,
         "cross_attention_head_dim": 8, "cross_attention_dim": 16, "caption_channels": 16,
         "sample_size": 8},
        named(hidden_states=("B", 4, "S", "S"), **TEXT), 8, 12),
    "FluxTransformer2DModel": (
        {"in_channels": 4, "num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16,
         "num_attention_heads": 2, "joint_attention_dim": 16, "pooled_projection_dim": 24,
         "axes_dims_rope": (4, 4, 8)},
        lambda batch, size: ((), {
            **named(hidden_states=("B", "SS", 4), pooled_projections=("B", 24), **TEXT)(
                batch, size)[1],
            "img_ids": torch.randn(size * size, 3), "txt_ids": torch.zeros(5, 3)}), 4, 6),
    "CogVideoXTransformer3DModel": (
        {**HEADS, "in_channels": 4, "out_channels": 4, "time_embed_dim": 8, "text_embed_dim": 16,
         "sample_width": 8, "sample_height": 8, "sample_frames": 9, "max_text_seq_length": 5},
        named(hidden_states=("B", 3, 4, "S", "S"), **TEXT), 8, 12),
    "WanTransformer3DModel": (
        {"num_attention_heads": 2, "attention_head_dim": 12, "in_channels": 4, "out_channels": 4,
         "text_dim": 16, "freq_dim": 32, "ffn_dim": 32, "num_layers": 2},
        named(hidden_states=("B", 4, 2, "S", "S"), **TEXT), 8, 12),
    "MochiTransformer3DModel": (
        {**HEADS, "in_channels": 4, "pooled_projection_dim": 16, "text_embed_dim": 16,
         "time_embed_dim": 4, "max_sequence_length": 5},
        named(hidden_states=("B", 4, 2, "S", "S"), encoder_attention_mask=("B", 5), **TEXT), 8, 12),
    "PriorTransformer": (
        {**HEADS, "embedding_dim": 16, "num_embeddings": 5},
        named(hidden_states=("B", 16), proj_embedding=("B", 16), **TEXT), 8, 0),
    "StableAudioDiTModel": (
        {"sample_size": 8, "in_channels": 4, "out_channels": 4, "num_layers": 2,
         "attention_head_dim": 8, "num_attention_heads": 2, "num_key_value_attention_heads": 1,
         "cross_attention_dim": 16, "cross_attention_input_dim": 16, "time_proj_dim": 8,
         "global_states_input_dim": 16},
        lambda batch, size: ((), {
            **named(hidden_states=("B", 4, "S"), global_hidden_states=("B", 1, 16), **TEXT)(
                batch, size)[1],
            "rotary_embedding": (torch.randn(size + 1, 4), torch.randn(size + 1, 4))}), 8, 12),
    "QwenImageTransformer2DModel": (
        {**HEADS, "attention_head_dim": 16, "in_channels": 16, "out_channels": 4,
         "joint_attention_dim": 16, "axes_dims_rope": (4, 4, 8)},
        lambda batch, size: ((), {
            **named(hidden_states=("B", "SS", 16), encoder_hidden_states_mask=("B", 5), **TEXT)(
                batch, size)[1],
            "img_shapes": [(1, size, size)] * batch}), 4, 6),
    "LTXVideoTransformer3DModel": (
        {**HEADS, "in_channels": 8, "out_channels": 8, "cross_attention_dim": 16,
         "caption_channels": 16},
        lambda batch, size: ((), {
            **named(hidden_states=("B", "SS", 8), encoder_attention_mask=("B", 5), **TEXT)(
                batch, size)[1],
            "num_frames": 1, "height": size, "width": size}), 4, 6),
    "HunyuanVideoTransformer3DModel": (
        {"in_channels": 4, "out_channels": 4, "num_attention_heads": 2, "attention_head_dim": 10,
         "num_layers": 1, "num_single_layers": 1, "num_refiner_layers": 1, "patch_size": 1,
         "text_embed_dim": 16, "pooled_projection_dim": 8, "rope_axes_dim": (2, 4, 4)},
        named(hidden_states=("B", 4, 1, "S", "S"), encoder_attention_mask=("B", 5),
              pooled_projections=("B", 8), guidance=("B",), **TEXT), 8, 12),
}  # fmt: skip


def load():
    define_nms()
    import diffusers

    diffusers.utils.logging.set_verbosity_error()


def build(name):
    import diffusers

    arguments, inputs, size, other = MODELS[name]
    return Case(getattr(diffusers, name)(**arguments), inputs, size, other)
