"""Libraries with einops in every line (x-transformers, vit-pytorch and their like), graph networks
of torch_geometric, and layers of torch itself."""
import torch
from client_uses import define_nms

from . import Case


def tokens(batch, length):
    return (torch.randint(0, 99, (batch, length)),), {}


def images(batch, size):
    return (torch.randn(batch, 3, size, size),), {}


def sequences(batch, length):
    return (torch.randn(batch, length, 32),), {}


# ---- einops -------------------------------------------------------------------------------------


def x_transformer(kind="Decoder", **arguments):
    import x_transformers

    layers = getattr(x_transformers, kind)(dim=32, depth=2, heads=4, **arguments)
    model = x_transformers.TransformerWrapper(num_tokens=99, max_seq_len=64, attn_layers=layers)
    return Case(model, tokens, 12, 17)


def vision(path, name, size=32, other=0, **arguments):
    module = __import__(f"vit_pytorch.{path}", fromlist=[name])
    return Case(getattr(module, name)(**arguments), images, size, other)


VIT = {"image_size": 32, "patch_size": 8, "num_classes": 10, "dim": 32, "depth": 2, "heads": 2,
       "mlp_dim": 64}
EINOPS = {
    "x-transformers: decoder": x_transformer,
    "x-transformers: encoder": lambda: x_transformer("Encoder"),
    "x-transformers: rotary, swiglu": lambda: x_transformer(rotary_pos_emb=True, ff_swish=True,
                                                            ff_glu=True),
    "x-transformers: alibi, grouped": lambda: x_transformer(alibi_pos_bias=True, attn_kv_heads=2),
    "x-transformers: T5 bias": lambda: x_transformer(rel_pos_bias=True),
    "x-transformers: rmsnorm, qk norm": lambda: x_transformer(use_rmsnorm=True, attn_qk_norm=True),
    "x-transformers: macaron": lambda: x_transformer("Encoder", macaron=True),
    "vit-pytorch: ViT": lambda: vision("vit", "ViT", **VIT),
    "vit-pytorch: SimpleViT": lambda: vision("simple_vit", "SimpleViT", **VIT),
    "vit-pytorch: DeepViT": lambda: vision("deepvit", "DeepViT", **VIT),
    "vit-pytorch: ViT for small data": lambda: vision("vit_for_small_dataset", "ViT", **VIT),
    "vit-pytorch: CaiT": lambda: vision("cait", "CaiT", cls_depth=1, **VIT),
    "vit-pytorch: ParallelViT": lambda: vision("parallel_vit", "ViT", **VIT),
    "vit-pytorch: T2T": lambda: vision(
        "t2t", "T2TViT", dim=32, image_size=32, depth=2, heads=2, mlp_dim=64, num_classes=10,
        t2t_layers=((7, 4), (3, 2))),
    "vit-pytorch: CCT": lambda: vision(
        "cct", "CCT", 32, 0, img_size=32, embedding_dim=32, num_layers=2, num_heads=2,
        mlp_ratio=2, num_classes=10),
    "vit-pytorch: CrossFormer": lambda: vision(
        "crossformer", "CrossFormer", 224, 0, dim=(32, 32, 64, 64), depth=(1, 1, 1, 1),
        num_classes=10, global_window_size=(8, 4, 2, 1), local_window_size=7),
    "vit-pytorch: LeViT": lambda: vision(
        "levit", "LeViT", 64, 0, image_size=64, num_classes=10, stages=2, dim=(16, 32), depth=1,
        heads=(2, 2), mlp_mult=2),
    "vit-pytorch: MobileViT": lambda: vision(
        "mobile_vit", "MobileViT", 64, 0, image_size=(64, 64), dims=[16, 24, 32],
        channels=[8, 8, 16, 16, 16, 16, 24, 24, 32, 32, 64], num_classes=10),
    "vit-pytorch: NesT": lambda: vision(
        "nest", "NesT", image_size=32, patch_size=4, dim=16, heads=2, num_hierarchies=2,
        block_repeats=(1, 1), num_classes=10),
    "vit-pytorch: PiT": lambda: vision(
        "pit", "PiT", image_size=32, patch_size=8, dim=16, num_classes=10, depth=(1, 1), heads=2,
        mlp_dim=32),
    "vit-pytorch: RvT": lambda: vision("rvt", "RvT", **VIT),
    "vit-pytorch: ScalableViT": lambda: vision(
        "scalable_vit", "ScalableViT", 64, 96, num_classes=10, dim=16, heads=(1, 2),
        depth=(1, 1), ssa_dim_key=(8, 8), reduction_factor=(2, 1), window_size=(4, None)),
    "vit-pytorch: SepViT": lambda: vision(
        "sep_vit", "SepViT", 56, 112, num_classes=10, dim=16, dim_head=8, heads=(1, 2),
        depth=(1, 1), window_size=7),
    "vit-pytorch: TwinsSVT": lambda: vision("twins_svt", "TwinsSVT", 224, 0, num_classes=10),
    "vit-pytorch: MaxViT": lambda: vision(
        "max_vit", "MaxViT", 64, 128, num_classes=10, dim_conv_stem=8, dim=8, dim_head=8,
        depth=(1, 1), window_size=4),
    "perceiver-pytorch: Perceiver": lambda: Case(
        imported("perceiver_pytorch").Perceiver(
            input_channels=3, input_axis=2, num_freq_bands=2, max_freq=4.0, depth=1,
            num_latents=8, latent_dim=16, cross_dim_head=8, latent_dim_head=8, num_classes=10),
        lambda batch, size: ((torch.randn(batch, size, size, 3),), {}), 8, 12),
    "perceiver-pytorch: PerceiverIO": lambda: Case(
        imported("perceiver_pytorch").PerceiverIO(
            dim=32, queries_dim=32, logits_dim=10, depth=1, num_latents=8, latent_dim=16,
            cross_dim_head=8, latent_dim_head=8),
        lambda batch, length: ((torch.randn(batch, length, 32),),
                               {"queries": torch.randn(6, 32)}), 12, 17),
    "performer-pytorch: PerformerLM": lambda: Case(
        imported("performer_pytorch").PerformerLM(
            num_tokens=99, max_seq_len=64, dim=32, depth=2, heads=2, dim_head=16),
        tokens, 12, 17),
    "linformer: LinformerLM": lambda: Case(
        imported("linformer").LinformerLM(num_tokens=99, dim=32, seq_len=16, depth=2, heads=2,
                                          k=8), tokens, 16, 0),
    "local-attention: transformer": lambda: Case(
        imported("local_attention").LocalTransformer(
            num_tokens=99, dim=32, depth=2, max_seq_len=64, local_attn_window_size=8),
        tokens, 16, 24),
    "conformer: Conformer": lambda: Case(
        imported("conformer").Conformer(dim=32, depth=2, dim_head=8, heads=4), sequences, 12, 17),
    "vector-quantize-pytorch: VectorQuantize": lambda: Case(
        imported("vector_quantize_pytorch").VectorQuantize(dim=32, codebook_size=16), sequences,
        12, 17),
    "vector-quantize-pytorch: ResidualVQ": lambda: Case(
        imported("vector_quantize_pytorch").ResidualVQ(dim=32, codebook_size=16, num_quantizers=3),
        sequences, 12, 17),
    "vector-quantize-pytorch: FSQ": lambda: Case(
        imported("vector_quantize_pytorch").FSQ(levels=[8, 5, 5], dim=32), sequences, 12, 17),
    "tab-transformer-pytorch: FTTransformer": lambda: Case(
        imported("tab_transformer_pytorch").FTTransformer(
            categories=(5, 4), num_continuous=3, dim=16, dim_out=1, depth=2, heads=2),
        lambda batch, length: ((torch.randint(0, 4, (batch, 2)), torch.randn(batch, 3)), {})),
}  # fmt: skip


def imported(name):
    return __import__(name)


def load_einops():
    define_nms()  # vit_pytorch imports torchvision
    import vit_pytorch  # noqa: F401
    import x_transformers  # noqa: F401


def einops_model(name):
    return EINOPS[name]()


# ---- graph networks -----------------------------------------------------------------------------

LAYERS = {  # layer of torch_geometric.nn: arguments
    "GCNConv": (16, 8), "SAGEConv": (16, 8), "GATConv": (16, 8, 2), "GATv2Conv": (16, 8, 2),
    "GraphConv": (16, 8), "TransformerConv": (16, 8, 2), "ChebConv": (16, 8, 3), "TAGConv": (16, 8),
    "SGConv": (16, 8, 2), "APPNP": (3, 0.1), "ARMAConv": (16, 8), "LEConv": (16, 8),
    "ClusterGCNConv": (16, 8), "FiLMConv": (16, 8), "GatedGraphConv": (16, 2), "MFConv": (16, 8),
    "ResGatedGraphConv": (16, 8), "SuperGATConv": (16, 8), "GENConv": (16, 8), "EGConv": (16, 8),
}  # fmt: skip
NETWORKS = {name: (16, 8, 2, 4) for name in ("GCN", "GraphSAGE", "GAT", "GIN", "EdgeCNN")}


def graph(batch, nodes):
    """A random graph: features of its nodes, and its edges. The batch is the edges of a node."""
    edges = torch.stack([torch.randint(0, nodes, (nodes * batch,)),
                         torch.arange(nodes).repeat(batch)])  # fmt: skip
    return (torch.randn(nodes, 16), edges), {}


def load_geometric():
    import torch_geometric.nn  # noqa: F401


def geometric_model(name):
    from torch_geometric import nn

    return Case(getattr(nn, name)(*{**LAYERS, **NETWORKS}[name]), graph, 12, 17)


# ---- torch --------------------------------------------------------------------------------------

TORCH = {
    "LSTM": lambda: Case(torch.nn.LSTM(32, 16, 2, batch_first=True), sequences, 12, 17),
    "LSTM, two directions": lambda: Case(
        torch.nn.LSTM(32, 16, batch_first=True, bidirectional=True), sequences, 12, 17),
    "GRU": lambda: Case(torch.nn.GRU(32, 16, batch_first=True), sequences, 12, 17),
    "RNN": lambda: Case(torch.nn.RNN(32, 16, batch_first=True), sequences, 12, 17),
    "Transformer": lambda: Case(
        torch.nn.Transformer(32, 4, 2, 2, 64, batch_first=True),
        lambda batch, length: ((torch.randn(batch, length, 32), torch.randn(batch, 5, 32)), {}),
        12, 17),
    "TransformerEncoder": lambda: Case(
        torch.nn.TransformerEncoder(
            torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2), sequences, 12, 17),
    "MultiheadAttention": lambda: Case(
        torch.nn.MultiheadAttention(32, 4, batch_first=True),
        lambda batch, length: (tuple(torch.randn(3, batch, length, 32)), {}), 12, 17),
    "AdaptiveLogSoftmaxWithLoss": lambda: Case(
        torch.nn.AdaptiveLogSoftmaxWithLoss(32, 20, [5, 10]),
        lambda batch, length: ((torch.randn(batch * length, 32),
                                torch.randint(0, 20, (batch * length,))), {}), 12, 17),
}  # fmt: skip


def torch_model(name):
    return TORCH[name]()
