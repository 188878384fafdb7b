"""Classes of torch.nn with random arguments and inputs that fit: {class: function of a generator}.

Each function returns (keyword arguments, inputs); no inputs if what it gives is random.
"""
import torch

CASES = {}


def some(r, required, **optional):
    """The required arguments, and of the optional ones some, each one of its choices."""
    made = dict(required)
    for name, choices in optional.items():
        if r.random() < 0.6:
            made[name] = r.choice(choices)
    return made


def case(*names):
    def add(function):
        for name in names:
            CASES[name] = lambda r, name=name: function(r, name)
        return function
    return add


def tensor(r, *sizes, low=-2.0, high=2.0):
    values = torch.tensor([r.uniform(low, high) for _ in range(torch.Size(sizes).numel())])
    return values.reshape(sizes)


def ints(r, low, high, *sizes):
    n = torch.Size(sizes).numel()
    return torch.tensor([r.randrange(low, high) for _ in range(n)]).reshape(sizes)


def dims(name):
    return next((int(c) for c in name if c.isdigit()), 2)


def image(r, name, channels, batch=2, size=9):
    return tensor(r, batch, channels, *[size + i for i in range(dims(name))])


def either(r, name, low, high):
    """A number, or one for each dimension."""
    if r.random() < 0.5:
        return r.randrange(low, high)
    return tuple(r.randrange(low, high) for _ in range(dims(name)))


@case("Sequential", "ModuleList", "ModuleDict")
def containers(r, name):
    return {}, []


@case("Identity", "Sigmoid", "LogSigmoid", "Tanh", "Tanhshrink", "Softsign")
def plain(r, name):
    return {}, [tensor(r, 3, 4)]


@case("Softmax2d")
def softmax2d(r, name):
    return {}, [tensor(r, 2, 3, 4, 5)]


@case("Linear")
def linear(r, name):
    n = r.randrange(1, 6)
    return some(r, {"in_features": n, "out_features": r.randrange(1, 6)}, bias=[True, False],
                dtype=[torch.float32]), [tensor(r, 3, n)]


@case("Bilinear")
def bilinear(r, name):
    a, b = r.randrange(1, 5), r.randrange(1, 5)
    return some(r, {"in1_features": a, "in2_features": b, "out_features": 3},
                bias=[True, False]), [tensor(r, 3, a), tensor(r, 3, b)]


@case("Embedding")
def embedding(r, name):
    return some(r, {"num_embeddings": 7, "embedding_dim": 4}, padding_idx=[0, 3, -1, None],
                max_norm=[1.5, 2], norm_type=[1.0, 2.0], sparse=[False], scale_grad_by_freq=[True],
                _weight=[tensor(r, 7, 4)]), [ints(r, 0, 7, 3, 5)]


@case("EmbeddingBag")
def embedding_bag(r, name):
    return some(r, {"num_embeddings": 7, "embedding_dim": 4}, padding_idx=[0, 3, -1, None],
                mode=["sum", "mean"], norm_type=[1.0, 2.0],
                include_last_offset=[False]), [ints(r, 0, 7, 3, 5)]


@case("Conv1d", "Conv2d", "Conv3d")
def conv(r, name):
    groups = r.choice([1, 1, 2])
    made = some(r, {"in_channels": 2 * groups, "out_channels": 4, "groups": groups,
                    "kernel_size": either(r, name, 1, 4)},
                padding=["valid", "same", 0, 1, (1, 2, 1)[:dims(name)]],
                dilation=[1, 2], bias=[True, False],
                padding_mode=["zeros", "reflect", "replicate", "circular"])
    if made.get("padding") != "same" and r.random() < 0.5:
        made["stride"] = either(r, name, 1, 3)
    return made, [image(r, name, 2 * groups)]


@case("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
def conv_transpose(r, name):
    groups = r.choice([1, 2])
    made = some(r, {"in_channels": 2 * groups, "out_channels": 4, "groups": groups,
                    "kernel_size": either(r, name, 2, 4), "stride": 2},
                padding=[0, 1], output_padding=[0, 1], dilation=[1, 2], bias=[True, False])
    return made, [image(r, name, 2 * groups, size=4)]


@case("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "InstanceNorm1d",
      "InstanceNorm2d", "InstanceNorm3d")
def norm(r, name):
    made = some(r, {"num_features": 3}, eps=[1e-3, 1e-5], momentum=[0.1, 0.3],
                affine=[True, False], track_running_stats=[True, False], bias=[True, False])
    if "Batch" in name and r.random() < 0.3:
        made["momentum"] = None
    return made, [image(r, name, 3)]


@case("LayerNorm", "RMSNorm")
def layer_norm(r, name):
    shape = r.choice([4, (4,), (3, 4)])
    made = some(r, {"normalized_shape": shape}, eps=[1e-3], elementwise_affine=[True, False])
    if name == "LayerNorm" and r.random() < 0.5:
        made["bias"] = r.choice([True, False])
    return made, [tensor(r, 2, 3, 4)]


@case("GroupNorm")
def group_norm(r, name):
    return some(r, {"num_groups": 2, "num_channels": 4}, eps=[1e-3], affine=[True, False],
                bias=[True, False]), [tensor(r, 2, 4, 5)]


@case("LocalResponseNorm")
def local_response_norm(r, name):
    return some(r, {"size": 2}, alpha=[1e-3], beta=[0.5], k=[2.0, 2]), [tensor(r, 2, 4, 5, 5)]


@case("MaxPool1d", "MaxPool2d", "MaxPool3d")
def max_pool(r, name):
    return some(r, {"kernel_size": either(r, name, 2, 4)}, stride=[None, 1, 2], padding=[0, 1],
                dilation=[1, 2], ceil_mode=[True, False],
                return_indices=[True, False]), [image(r, name, 2)]


@case("AvgPool1d", "AvgPool2d", "AvgPool3d")
def avg_pool(r, name):
    made = some(r, {"kernel_size": either(r, name, 2, 4)}, stride=[None, 1, 2], padding=[0, 1],
                ceil_mode=[True, False], count_include_pad=[True, False])
    if dims(name) > 1 and r.random() < 0.3:
        made["divisor_override"] = 3
    return made, [image(r, name, 2)]


@case("LPPool2d")
def lp_pool(r, name):
    return some(r, {"norm_type": r.choice([1, 2.0]), "kernel_size": either(r, name, 2, 4)},
                stride=[None, 1, 2], ceil_mode=[True, False]), [image(r, name, 2).abs()]


@case("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
      "AdaptiveMaxPool2d")
def adaptive_pool(r, name):
    several = {1: (3,), 2: (None, 3), 3: (2, None, 3)}[dims(name)]
    made = {"output_size": r.choice([2, 3, several])}
    if "Max" in name:
        made = some(r, made, return_indices=[True, False])
    return made, [image(r, name, 2)]


@case("FractionalMaxPool2d")
def fractional_pool(r, name):
    sized = r.choice([{"output_size": 3}, {"output_size": (3, 4)}, {"output_ratio": 0.5},
                      {"output_ratio": (0.4, 0.5)}])
    made = some(r, {"kernel_size": r.choice([2, (2, 2)]), **sized,
                    "_random_samples": tensor(r, 2, 2, 2, low=0.0, high=0.99)},
                return_indices=[True, False])
    return made, [image(r, name, 2)]


@case("MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d")
def unpool(r, name):
    d = dims(name)
    pool = getattr(torch.nn, f"MaxPool{d}d")(2, return_indices=True)
    return some(r, {"kernel_size": r.choice([2, (2,) * d])}, stride=[None, 2, (2,) * d],
                padding=[0]), list(pool(tensor(r, 2, 2, *[4] * d)))


@case("Dropout", "AlphaDropout", "FeatureAlphaDropout", "Dropout1d", "Dropout2d", "Dropout3d")
def dropout(r, name):
    sizes = (2, 3, 4) + (4,) * (dims(name) - 1 if name[-1] == "d" else 0)
    return some(r, {}, p=[0.1, 0, 1.0], inplace=[True, False]), [tensor(r, *sizes)]


@case("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardsigmoid", "Hardswish")
def in_place(r, name):
    return some(r, {}, inplace=[True, False]), [tensor(r, 3, 4) * 3]


@case("LeakyReLU", "RReLU", "ELU", "CELU", "GELU", "GLU", "Hardshrink", "Softshrink", "Softplus",
      "Threshold", "Hardtanh", "PReLU", "Softmax", "Softmin", "LogSoftmax")
def activation(r, name):
    options = {
        "LeakyReLU": dict(negative_slope=[0.2], inplace=[True]),
        "RReLU": dict(lower=[0.1], upper=[0.4], inplace=[True]),
        "ELU": dict(alpha=[0.5, 2], inplace=[True]), "CELU": dict(alpha=[0.5], inplace=[True]),
        "GELU": dict(approximate=["none", "tanh"]), "GLU": dict(dim=[0, -1]),
        "Hardshrink": dict(lambd=[0.7]), "Softshrink": dict(lambd=[0.7]),
        "Softplus": dict(beta=[2, 0.5], threshold=[1.0]), "Threshold": dict(inplace=[True]),
        "Hardtanh": dict(min_val=[-2.0, -1], max_val=[2.0], min_value=[None], inplace=[True]),
        "PReLU": dict(num_parameters=[4, 1], init=[0.1, 1]),
        "Softmax": dict(dim=[0, -1]), "Softmin": dict(dim=[1]), "LogSoftmax": dict(dim=[0, 1]),
    }[name]
    required = {"threshold": 0.5, "value": 3} if name == "Threshold" else {}
    if name.startswith(("Soft", "Log")) and "dim" in options:
        required = {"dim": r.choice(options.pop("dim"))}  # without it PyTorch guesses, and warns
    return some(r, required, **options), [tensor(r, 2, 4)]


@case("Flatten")
def flatten(r, name):
    return some(r, {}, start_dim=[0, 1, 2], end_dim=[-1, 2]), [tensor(r, 2, 3, 4, 2)]


@case("Unflatten")
def unflatten(r, name):
    return {"dim": r.choice([1, -1]), "unflattened_size": r.choice([(2, 3), (-1, 3), (6,)])}, [
        tensor(r, 2, 6)]


@case(*[f"{kind}Pad{d}d" for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular")
        for d in (1, 2, 3)])
def pad(r, name):
    made = {"padding": r.choice([1, 2, tuple(r.randrange(3) for _ in range(2 * dims(name)))])}
    if name.startswith("Constant"):
        made["value"] = r.choice([2, 0.5])
    return made, [image(r, name, 2, size=5)]


@case("Upsample", "UpsamplingNearest2d", "UpsamplingBilinear2d")
def upsample(r, name):
    made = r.choice([{"size": 6}, {"size": (5, 6)}, {"scale_factor": 2}, {"scale_factor": 1.5},
                     {"scale_factor": (2.0, 3)}])
    if name == "Upsample":
        made = some(r, made, mode=["nearest", "nearest-exact"])
        if r.random() < 0.5:
            made = {**made, "mode": "bilinear", "align_corners": r.choice([True, False, None])}
    return made, [tensor(r, 2, 3, 4, 4)]


@case("PixelShuffle", "PixelUnshuffle", "ChannelShuffle")
def shuffle(r, name):
    made = {"PixelShuffle": "upscale_factor", "PixelUnshuffle": "downscale_factor",
            "ChannelShuffle": "groups"}[name]
    return {made: 2}, [tensor(r, 2, 4, 4, 6)]


@case("Fold")
def fold(r, name):
    made = some(r, {"output_size": r.choice([6, (6, 6)]), "kernel_size": r.choice([2, (2, 2)]),
                    "stride": r.choice([2, (2, 2)])}, dilation=[1], padding=[0])
    return made, [tensor(r, 2, 8, 9)]


@case("Unfold")
def unfold(r, name):
    return some(r, {"kernel_size": either(r, name, 1, 3)}, dilation=[1, 2], padding=[0, (1, 2)],
                stride=[1, 2]), [tensor(r, 2, 3, 7, 6)]


@case("CosineSimilarity")
def cosine_similarity(r, name):
    return some(r, {}, dim=[0, 1, -1], eps=[1e-6]), [tensor(r, 3, 4), tensor(r, 3, 4)]


@case("PairwiseDistance")
def pairwise_distance(r, name):
    return some(r, {}, p=[1, 2.0, 3.0], eps=[1e-5], keepdim=[True, False]), [
        tensor(r, 3, 4), tensor(r, 3, 4)]


@case("RNN", "LSTM", "GRU")
def recurrent(r, name):
    made = some(r, {"input_size": 3, "hidden_size": 4}, num_layers=[1, 2, 3], bias=[True, False],
                batch_first=[True, False], bidirectional=[True, False])
    if made.get("num_layers", 1) > 1 and r.random() < 0.5:
        made["dropout"] = r.choice([0.5, 1])
    if name == "RNN" and r.random() < 0.5:
        made["nonlinearity"] = r.choice(["tanh", "relu"])
    if name == "LSTM" and r.random() < 0.5:
        made["proj_size"] = r.choice([0, 2])
    return made, [tensor(r, *r.choice([(5, 2, 3), (5, 3)]))]


@case("RNNCell", "LSTMCell", "GRUCell")
def cell(r, name):
    made = some(r, {"input_size": 3, "hidden_size": 4}, bias=[True, False])
    if name == "RNNCell" and r.random() < 0.5:
        made["nonlinearity"] = r.choice(["tanh", "relu"])
    return made, [tensor(r, 2, 3)]


@case("MultiheadAttention")
def attention(r, name):
    made = some(r, {"embed_dim": 8, "num_heads": r.choice([1, 2, 4])}, dropout=[0.1, 0],
                bias=[True, False], add_bias_kv=[True, False], add_zero_attn=[True, False],
                kdim=[3, 8], vdim=[5, None], batch_first=[True, False])
    return made, [tensor(r, 4, 2, 8), tensor(r, *((4, 3) if made.get("batch_first") else (3, 2)),
                                             made.get("kdim") or 8),
                  tensor(r, *((4, 3) if made.get("batch_first") else (3, 2)),
                         made.get("vdim") or 8)]


LAYER = dict(dim_feedforward=[5], dropout=[0.2], activation=["relu", "gelu"],
             layer_norm_eps=[1e-3], batch_first=[True, False], norm_first=[True, False],
             bias=[True, False])


@case("TransformerEncoderLayer", "TransformerDecoderLayer")
def transformer_layer(r, name):
    made = some(r, {"d_model": 4, "nhead": 2}, **LAYER)
    return made, [tensor(r, 3, 3, 4) for _ in range(1 if "Encoder" in name else 2)]


@case("Transformer")
def transformer(r, name):
    made = some(r, {"d_model": 4, "nhead": 2, "num_encoder_layers": r.choice([1, 2]),
                    "num_decoder_layers": r.choice([1, 2])}, **{**LAYER, "dim_feedforward": [5]})
    return {"dim_feedforward": 6, **made}, [tensor(r, 3, 3, 4), tensor(r, 3, 3, 4)]


def reduction(r, made):
    more = r.choice([{}, {"reduction": r.choice(["none", "mean", "sum"])},
                     {"size_average": r.choice([True, False])},
                     {"reduce": False}, {"size_average": True, "reduce": True}])
    return {**made, **more}


@case("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss", "SoftMarginLoss", "KLDivLoss",
      "PoissonNLLLoss", "BCELoss", "BCEWithLogitsLoss")
def pair_loss(r, name):
    options = {"SmoothL1Loss": dict(beta=[0.5]), "HuberLoss": dict(delta=[0.5, 2]),
               "KLDivLoss": dict(log_target=[True]), "PoissonNLLLoss": dict(
                   log_input=[True, False], full=[True], eps=[1e-6]),
               "BCELoss": dict(weight=[tensor(r, 4).abs()]), "BCEWithLogitsLoss": dict(
                   weight=[tensor(r, 4).abs()], pos_weight=[tensor(r, 4).abs()])}
    made = some(r, {}, **options.get(name, {}))
    if name == "HuberLoss":
        made = some(r, made, reduction=["none", "mean", "sum"])
    elif name == "KLDivLoss" and r.random() < 0.3:
        made["reduction"] = "batchmean"
    else:
        made = reduction(r, made)
    return made, [tensor(r, 3, 4, low=0.1, high=0.9), tensor(r, 3, 4, low=0.1, high=0.9)]


@case("CrossEntropyLoss", "NLLLoss")
def class_loss(r, name):
    made = some(r, {}, weight=[tensor(r, 5).abs()], ignore_index=[-100, 2])
    if name == "CrossEntropyLoss" and r.random() < 0.4:
        made["label_smoothing"] = 0.1
    return reduction(r, made), [tensor(r, 4, 5), ints(r, 0, 5, 4)]


@case("CTCLoss")
def ctc_loss(r, name):
    made = some(r, {}, blank=[0, 1], reduction=["none", "mean", "sum"],
                zero_infinity=[True, False])
    return made, [tensor(r, 6, 2, 5).log_softmax(2), ints(r, 2, 5, 2, 3), torch.tensor([6, 6]),
                  torch.tensor([3, 2])]


@case("HingeEmbeddingLoss", "MultiLabelMarginLoss", "CosineEmbeddingLoss", "MarginRankingLoss",
      "TripletMarginLoss")
def margin_loss(r, name):
    options = {"TripletMarginLoss": dict(margin=[0.5], p=[1, 2.0], eps=[1e-5], swap=[True]),
               "MultiLabelMarginLoss": {}}
    made = reduction(r, some(r, {}, **options.get(name, dict(margin=[0.5, 1]))))
    sign = torch.tensor([1.0, -1.0, 1.0])
    inputs = {
        "HingeEmbeddingLoss": [tensor(r, 3, 3), sign.expand(3, 3).clone()],
        "MultiLabelMarginLoss": [tensor(r, 3, 4), torch.tensor([[1, 2, -1, 0]] * 3)],
        "CosineEmbeddingLoss": [tensor(r, 3, 4), tensor(r, 3, 4), sign],
        "MarginRankingLoss": [tensor(r, 3), tensor(r, 3), sign],
        "TripletMarginLoss": [tensor(r, 3, 4) for _ in range(3)],
    }
    return made, inputs[name]
