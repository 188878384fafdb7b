"""Architectures of transformers at small sizes with random weights.

`build` makes a model from nothing but its name in transformers (model_type): it shrinks what the
configuration says about sizes (SMALL, in nested configurations too), takes the class that
transformers has for the task, and finds out from the configuration what the model reads. SPECIAL
has what this does not find out.
"""
import inspect

import torch
from client_uses import define_nms

from . import Case

# ---- configurations -----------------------------------------------------------------------------

SMALL = {  # what a field of a configuration becomes, if the configuration has it
    "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embed_dim": 32, "emb_dim": 32,
    "embedding_size": 32, "hidden_dim": 32, "word_embed_proj_dim": 32, "projection_dim": 32,
    "output_hidden_size": 32, "d_embed": 32, "model_dim": 32, "cross_attention_hidden_size": 32,
    "num_hidden_layers": 2, "num_layers": 2, "n_layer": 2, "n_layers": 2, "encoder_layers": 2,
    "decoder_layers": 2, "num_decoder_layers": 2, "num_encoder_layers": 2, "depth": 2,
    "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "attention_heads": 4,
    "num_key_value_heads": 2, "n_kv_heads": 2, "head_dim": 8, "attention_head_size": 8, "d_kv": 8,
    "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "qk_head_dim": 16, "v_head_dim": 8,
    "kv_lora_rank": 16, "q_lora_rank": 16, "index_n_heads": 2, "index_head_dim": 16,
    "intermediate_size": 64, "ffn_dim": 64, "n_inner": 64, "d_ff": 64, "ffn_hidden_size": 64,
    "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "ffn_embed_dim": 64, "mlp_dim": 64,
    "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "d_inner": 64,
    "shared_intermediate_size": 32, "block_ff_dim": 64, "dense_intermediate_size": 64,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "moe_num_experts": 4,
    "num_experts_per_tok": 2, "moe_topk": 2, "moe_k": 2, "n_group": 1, "topk_group": 1,
    "first_k_dense_replace": 1, "vocab_size": 99, "max_position_embeddings": 128,
    "n_positions": 128, "n_ctx": 128, "max_source_positions": 60, "max_target_positions": 60,
    "image_size": 32, "patch_size": 8, "num_channels": 3, "num_frames": 4, "tubelet_size": 2,
    "state_size": 8, "time_step_rank": 8, "mamba_d_state": 8, "mamba_d_ssm": 64,
    "mamba_n_heads": 4, "mamba_d_head": 16, "chunk_size": 16, "mamba_chunk_size": 16,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
    "linear_value_head_dim": 8, "sliding_window": 8, "num_mel_bins": 16, "conv_bias": True,
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2, "num_codevectors_per_group":
    8, "codevector_dim": 16, "proj_codevector_dim": 16, "type_vocab_size": 4, "num_labels": 3,
    "num_queries": 6, "num_codebooks": 2, "codebook_size": 16,
}  # fmt: skip
TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
          "forced_eos_token_id": None, "suppress_tokens": None, "begin_suppress_tokens": None}


def small_fields(config, special):
    """The fields that make a configuration like this one small, those of nested ones included."""
    nested = getattr(type(config), "sub_configs", {}) or {}
    fields = {}
    for name in nested:
        inner = getattr(config, name, None)
        if inner is not None and hasattr(inner, "to_dict"):
            given = special.get(name, {})
            fields[name] = {"model_type": inner.model_type, **small_fields(inner, given)}
    known = config.to_dict()
    names = getattr(type(config), "attribute_map", {}) or {}
    for name, value in {**SMALL, **TOKENS}.items():
        name = names.get(name, name)
        now = known.get(name, getattr(config, name, None) if name in names.values() else None)
        plain = isinstance(now, int) and not isinstance(now, bool) or name in TOKENS
        if name in known and plain and (now is not None or value is None):
            fields[name] = value
    for name, value in special.items():
        if not (name in nested and isinstance(value, dict)):
            fields[name] = value
    return fields


def small_config(model_type, special, use_cache):
    from transformers import AutoConfig

    kind = type(AutoConfig.for_model(model_type))
    fields = small_fields(kind(), special)
    config = kind(**fields)
    for part in (config, *(getattr(config, name, None) for name in kind.sub_configs)):
        if hasattr(part, "use_cache"):
            part.use_cache = use_cache
    return config


# ---- inputs -------------------------------------------------------------------------------------


def text_config(config):
    get = getattr(config, "get_text_config", None)
    return get() if get else config


def tokens(config, batch, length):
    vocabulary = getattr(text_config(config), "vocab_size", None) or 99
    return torch.randint(4, vocabulary - 1, (batch, length))


def mask(batch, length):
    """An attention mask: the first row of the batch is two tokens shorter."""
    found = torch.ones(batch, length, dtype=torch.long)
    found[0, -2:] = 0
    return found


def image_size(config):
    vision = getattr(config, "vision_config", None) or config
    size = getattr(vision, "image_size", None) or 32
    return size if isinstance(size, int) else size[0]


def features(config, batch, length):
    """A spectrogram, in the order that most models of speech take it."""
    bins = getattr(config, "num_mel_bins", None) or getattr(config, "input_feat_per_channel", 80)
    return torch.randn(batch, length, bins)


INPUTS = {  # name of a parameter of forward: (how it is made of config, batch, length)
    "input_ids": tokens,
    "attention_mask": lambda config, batch, length: mask(batch, length),
    "decoder_input_ids": lambda config, batch, length: tokens(config, batch, length - 3),
    "pixel_values": lambda config, batch, length: torch.randn(
        batch, getattr(config, "num_channels", None) or 3, length, length),
    "input_values": lambda config, batch, length: torch.randn(batch, length),
    "input_features": features,
}


def reads(model, config):
    """What a model is given, and at which two lengths (or sizes of images)."""
    main = model.main_input_name
    parameters = inspect.signature(model.forward).parameters
    if main == "pixel_values":
        size = image_size(config)
        return ["pixel_values"], (size, size + 32)
    if main == "input_values":
        return ["input_values"], (4000, 5200)
    names = [main]
    if main == "input_ids" and "attention_mask" in parameters:
        names.append("attention_mask")
    if config.is_encoder_decoder and "decoder_input_ids" in parameters:
        names.append("decoder_input_ids")
    return names, (12, 17)


# ---- models -------------------------------------------------------------------------------------

# The first of these that transformers has for a configuration
TASKS = ("AutoModelForSeq2SeqLM", "AutoModelForMaskedLM", "AutoModelForCausalLM", "AutoModel")
NAMES = """
    gpt-sw3 afmoe aimv2_vision_model albert apertus arcee aria aria_text audioflamingo3
    aya_vision bailing_hybrid bamba bart beam beit bert bert-generation big_bird
    bigbird_pegasus biogpt bitnet blenderbot blenderbot-small bloom camembert canine
    chinese_clip_vision_model clip_text_model clip_vision_model cohere cohere2 cohere2_moe
    cohere2_vision convbert cosmos3_omni cpmant ctrl cvt cwm data2vec-audio data2vec-text
    data2vec-vision deberta deberta-v2 deepseek_v4 deepseek_vl deepseek_vl_hybrid deit
    diffllama dinov2 dinov2_with_registers dinov3_vit distilbert doge dpr dpt electra
    embedding_gemma2 embedding_gemma2_text emu3 ernie ernie4_5 ernie4_5_moe eurobert exaone4
    exaone4_5 exaone_moe falcon falcon_h1 falcon_mamba fastspeech2_conformer flaubert flava
    flex_olmo flint fnet focalnet fsmt fuyu gemma gemma2 gemma3 gemma3_text gemma4_unified
    gemma4_unified_text git glm glm4 glm4_moe glmasr glpn got_ocr2 gpt2 gpt_bigcode gpt_neox
    gpt_neox_japanese gpt_oss granite granite_docling_text granite_speech granite_speech_plus
    granite_swa granitemoe granitemoe_swa granitemoeshared gte helium hgnet_v2 hiera
    higgs_audio_v2 hrm_text hubert hy_v3 hy_v4 hyperclovax hyperclovax_vision_v2 ibert
    idefics2 idefics3 ijepa imagegpt inkling2_text inkling_mm_model inkling_text internlm3
    internvl internvl_vision iquestcoder jais2 jamba jetmoe jina_embeddings_v3 kimi_linear
    kolibri1 kosmos-2.5 laguna layoutlm led lfm2 lfm2_vl lfm3 lfm3_vl lighton_ocr llama llama4
    llama4_text llava llava_next llava_next_video llava_onevision longformer longt5 m2m_100
    mamba marian markuplm mbart megatron-bert mellum mimo_v2_flash minicpm_ocr minicpmv4_6
    minicpmv4_7 minimax minimax_m2 minimax_m3_vl minimax_m3_vl_text ministral3 mistral
    mistral3 mixtral mlcd_vision_model mllama mobilebert mobilenet_v1 mobilenet_v2 mobilevit
    modernbert modernbert-decoder modernvbert molmo2_text moshi moss_transcribe_diarize mpnet
    mpt mra mt5 muse_glimmer_text muse_spark_text musicflamingo mvp nanochat
    nemotron3_5_transcribe_asr_audio nemotron3_diarization_audio
    nemotron_asr_streaming_encoder nemotron_h nllb-moe nomic_bert nystromformer olmo olmo2
    olmo3 olmo_hybrid olmoe openai-gpt openai_privacy_filter opt ovis2 paligemma
    parakeet_encoder pegasus pegasus_x persimmon phi phi3 phi4_multimodal phimoe pixio pixtral
    plbart poolformer prophetnet pvt pvt_v2 qianfan_ocr qianfan_ocr_vision qwen2 qwen2_audio
    qwen2_moe qwen3 qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_asr qwen3_moe
    qwen3_next qwen3_vl qwen3_vl_moe qwen3_vl_moe_text qwen3_vl_text qwen4_exp qwen4_exp_text
    radio recurrent_gemma regnet rembert rf_detr roberta roberta-prelayernorm roc_bert
    roformer rwkv sam3_vision_model sam3_vit_model sam_hq_vision_model sam_vision_model
    sapiens2 seed_oss segformer sew sew-d siglip_vision_model smollm3 smolvlm solar_open
    speech_to_text splinter squeezebert stablelm starcoder2 swiftformer switch_transformers t5
    t5gemma t5gemma2 tapas textnet tipsv2 tipsv2_text_model tipsv2_vision_model trocr
    ultrabert ultravbert umt5 unispeech unispeech-sat univnet unlimited_ocr vaultgemma
    video_llama_3 video_llava vipllava visual_bert vit vit_mae vit_msn vitdet vits voxtral
    wav2vec2 wav2vec2-conformer wavlm whisper xglm xlm xlm-roberta xlm-roberta-xl xlnet xlstm
    yolos yoso mlcd
""".split()


def texts_and_images(config, batch, length):
    """For models that compare texts with images. They take one size of images."""
    return {"input_ids": tokens(config, batch, length), "attention_mask": mask(batch, length),
            "pixel_values": torch.randn(batch, 3, image_size(config), image_size(config))}


def text_about_image(config, batch, length):
    """For models that read images in a text: each patch has its place among the tokens."""
    size, patch = image_size(config), config.vision_config.patch_size
    given = texts_and_images(config, batch, length)
    image = torch.full((batch, (size // patch) ** 2), config.image_token_id)
    ids = torch.cat([given["input_ids"][:, :2], image, given["input_ids"][:, 2:]], 1)
    return {**given, "input_ids": ids, "attention_mask": mask(*ids.shape)}


def with_boxes(config, batch, length):
    """For models of documents: each word has a box."""
    corner = torch.randint(0, 50, (batch, length, 2))
    return {"input_ids": tokens(config, batch, length), "attention_mask": mask(batch, length),
            "bbox": torch.cat([corner, corner + torch.randint(1, 40, corner.shape)], -1)}


def speech_and_text(config, batch, length):
    """For models that write down what they hear."""
    return {"input_features": torch.randn(batch, config.num_mel_bins, 120),
            "decoder_input_ids": tokens(config, batch, length)}


def spectrogram(config, batch, length):
    return {"input_values": torch.randn(batch, config.max_length, config.num_mel_bins)}


def waves(config, batch, length):
    return {"input_values": torch.randn(batch, 1, length)}


def clip(batch, length, frames=4):
    return torch.randn(batch, frames, 3, length, length)


# What the rules above do not find out: fields of the configuration; "task", the class; "inputs",
# how inputs are made of config, batch and length; "lengths", two of them; "model_type"
HEADS = {"num_key_value_heads": 4}
BOTH = {"inputs": texts_and_images, "lengths": (12, 17)}
IMAGE_TEXT = {"inputs": text_about_image, "lengths": (12, 17),
              "task": "AutoModelForImageTextToText", "image_token_id": 98}
STAGES = {"num_stages": 4, "depths": [1, 1, 1, 1], "hidden_sizes": [8, 16, 24, 32]}
VISUAL = {"task": "AutoModelForImageClassification"}
SPECIAL = {
    **dict.fromkeys("deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa longcat_flash "
                    "minicpm3 axk1 esmc".split(), HEADS),
    **dict.fromkeys("codegen gptj".split(), {"rotary_dim": 4}),
    **dict.fromkeys("altclip blip chinese_clip clip clipseg groupvit metaclip_2 siglip aimv2 "
                    "vision-text-dual-encoder owlvit owlv2 flava vilt".split(), BOTH),
    **dict.fromkeys("llava paligemma".split(), IMAGE_TEXT),
    "lilt": {"inputs": with_boxes, "lengths": (12, 17), "hidden_size": 48},
    "layoutlmv3": {"inputs": with_boxes, "lengths": (12, 17), "coordinate_size": 6,
                   "shape_size": 4, "visual_embed": False},
    "deepseek_v2": {**HEADS, "num_experts_per_tok": 2},
    "mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 2},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 8},
    "hunyuan_v1_dense": {"head_dim": 8}, "ministral": {"head_dim": 8},
    "esm": {"vocab_size": 99, "pad_token_id": 1, "mask_token_id": 98},
    "funnel": {"block_sizes": [1, 1, 1], "d_model": 32, "num_decoder_layers": 1},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"]},
    "whisper": {"inputs": speech_and_text, "lengths": (8, 11),
                "task": "AutoModelForSpeechSeq2Seq"},
    "audio-spectrogram-transformer": {"inputs": spectrogram, "max_length": 32},
    "encodec": {"inputs": waves, "lengths": (640, 960), "num_filters": 4, "upsampling_ratios":
                [4, 2], "norm_type": "time_group_norm", "codebook_size": 16, "hidden_size": 8,
                "codebook_dim": 8},
    "dac": {"inputs": waves, "lengths": (640, 960), "encoder_hidden_size": 8, "n_codebooks": 2,
            "decoder_hidden_size": 32, "downsampling_ratios": [4, 2], "codebook_dim": 4},
    "convnext": {**STAGES, **VISUAL, "patch_size": 4, "lengths": (64, 96)},
    "convnextv2": {**STAGES, **VISUAL, "patch_size": 4, "lengths": (64, 96)},
    "resnet": {**STAGES, **VISUAL, "embedding_size": 8, "lengths": (64, 96)},
    "swin": {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "patch_size": 4,
             "window_size": 4, **VISUAL, "lengths": (32, 48)},
    "swinv2": {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "patch_size": 4,
               "window_size": 4, **VISUAL, "lengths": (32, 0)},
    "swin2sr": {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4,
                "patch_size": 1, "lengths": (16, 24)},
    "donut-swin": {"embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "patch_size": 4,
                   "window_size": 4, "lengths": (32, 48)},
    "efficientnet": {"width_coefficient": 0.2, "depth_coefficient": 0.1, "hidden_dim": 256,
                     **VISUAL, "lengths": (64, 96)},
    "mobilevitv2": {**VISUAL, "patch_size": 2, "lengths": (64, 96)},
    **dict.fromkeys("detr conditional_detr deformable_detr table-transformer".split(), {
        "backbone_config": {"backbone": "resnet10t", "out_indices": [1, 2, 3, 4]},
        "task": "AutoModelForObjectDetection", "lengths": (64, 96)}),
    **dict.fromkeys("videomae timesformer vivit".split(), {
        "inputs": lambda config, batch, length: {"pixel_values": clip(batch, length)},
        "lengths": (32, 0)}),
    "vjepa2": {"inputs": lambda config, batch, length: {
        "pixel_values_videos": clip(batch, length)}, "lengths": (32, 0), "crop_size": 32,
        "frames_per_clip": 4, "pred_hidden_size": 32, "pred_num_attention_heads": 2,
        "pred_num_hidden_layers": 1},
    "patchtst": {"num_input_channels": 2, "context_length": 32, "patch_length": 8,
                 "patch_stride": 8, "do_mask_input": False, "lengths": (32, 0),
                 "inputs": lambda config, batch, length: {
                     "past_values": torch.randn(batch, length, 2)}},
    "patchtsmixer": {"num_input_channels": 2, "context_length": 32, "patch_length": 8,
                     "patch_stride": 8, "lengths": (32, 0),
                     "inputs": lambda config, batch, length: {
                         "past_values": torch.randn(batch, length, 2)}},
    "moonshine": {"inputs": lambda config, batch, length: {
        "input_values": torch.randn(batch, length), "decoder_input_ids": tokens(config, batch, 5)},
        "lengths": (4000, 5200)},
    "decision_transformer": {"state_dim": 5, "act_dim": 3, "lengths": (6, 9), "inputs":
                             lambda config, batch, length: {
                                 "states": torch.randn(batch, length, 5),
                                 "actions": torch.randn(batch, length, 3),
                                 "rewards": torch.randn(batch, length, 1),
                                 "returns_to_go": torch.randn(batch, length, 1),
                                 "timesteps": torch.arange(length).repeat(batch, 1),
                                 "attention_mask": torch.ones(batch, length)}},
    "lxmert": {"l_layers": 1, "x_layers": 1, "r_layers": 1, "visual_feat_dim": 16, "lengths":
               (12, 17), "inputs": lambda config, batch, length: {
                   "input_ids": tokens(config, batch, length),
                   "visual_feats": torch.randn(batch, 5, 16),
                   "visual_pos": torch.rand(batch, 5, 4)}},
}  # fmt: skip


def load():
    define_nms()
    import transformers
    import transformers.modeling_utils  # noqa: F401  (once for all processes)

    transformers.logging.set_verbosity_error()


def names():
    return sorted({*NAMES, *SPECIAL})


def build(name, use_cache=False):
    import transformers

    special = dict(SPECIAL.get(name, {}))
    made = special.pop("inputs", None)
    lengths = special.pop("lengths", None)
    task = special.pop("task", None)
    model_type = special.pop("model_type", name)
    config = small_config(model_type, special, use_cache)
    kinds = [getattr(transformers, kind) for kind in ([task] if task else TASKS)]
    kind = next(kind for kind in kinds if type(config) in kind._model_mapping)
    model = kind.from_config(config)
    names, found = reads(model, config)

    def inputs(batch, length):
        if made is not None:
            return (), made(config, batch, length)
        return (), {name: INPUTS[name](config, batch, length) for name in names}

    def unpadded(batch, length):
        given = inputs(batch, length)[1]
        return (), {**given, "attention_mask": torch.ones_like(given["attention_mask"])}

    masked = "attention_mask" in inputs(1, (lengths or found)[0])[1]
    return Case(model, inputs, *(lengths or found), variant=unpadded if masked else None)


# ---- decoding with a cache ----------------------------------------------------------------------

DECODERS = """
    llama gpt2 gpt_neox mistral qwen3 gemma2 phi3 opt bloom falcon mixtral starcoder2 mamba t5 bart
""".split()


def decoders():
    return [f"{name}, {part}" for name in DECODERS for part in ("prefill", "step")]


def decoding(name):
    """A decoder that keeps keys and values of what it has read. "prefill" reads a text; "step"
    reads one more token, three times, beginning with the cache of a text."""
    name, _, part = name.partition(", ")
    model, inputs, *lengths = build(name, use_cache=True)[:4]
    config = model.config
    if part == "prefill":
        return Case(model, inputs, *lengths)
    state = "cache_params" if name == "mamba" else "past_key_values"
    token = "decoder_input_ids" if config.is_encoder_decoder else "input_ids"

    def after(given, result, ids):
        """The inputs of the step that follows."""
        given = {**given, token: ids, state: result[state], "use_cache": True}
        if not config.is_encoder_decoder:
            longer = torch.ones(len(ids), 1, dtype=torch.long)
            given["attention_mask"] = torch.cat([given["attention_mask"], longer], 1)
        else:
            given["encoder_outputs"] = (result["encoder_last_hidden_state"],)
            given.pop("input_ids", None)
        return given

    def first(batch, length):
        given = inputs(batch, length)[1]
        with torch.no_grad():
            result = model(**given)
        return (), after(given, result, tokens(config, batch, 1))

    def following(given, result):
        return (), after(given[1], result, (given[1][token] * 7 + 5) % 90 + 4)

    return Case(model, first, *lengths, following)
