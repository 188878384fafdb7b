"""ONNX files that others have written: both exporters of PyTorch, tf2onnx, and skl2onnx."""
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import cfx
import cfx.onnx
import cfx.runtime

onnxruntime = pytest.importorskip("onnxruntime")


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8),
                                  nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=4),
                                  nn.BatchNorm2d(8), nn.Hardswish(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.rnn = kind(6, 8, num_layers=2, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.rnn(x)[0]


class Embeds(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 8, padding_idx=0)
        self.norm = nn.LayerNorm(8)

    def forward(self, tokens):
        x = self.norm(self.words(tokens))
        mask = (tokens != 0).unsqueeze(-1)
        return (x * mask).sum(1) / mask.sum(1).clamp(min=1)


class Detects(nn.Module):
    """Boxes from distances to a grid, the best few of them."""

    def __init__(self):
        super().__init__()
        self.head = nn.Conv2d(4, 4 + 3, 1)

    def forward(self, x):
        out = self.head(x).flatten(2).transpose(1, 2)
        h, w = x.shape[2], x.shape[3]
        at = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij"), -1)
        at = at.reshape(-1, 2).to(x.dtype)
        near, far = out[..., :2].exp(), out[..., 2:4].exp()
        boxes = torch.cat([at - near, at + far], -1)
        scores, labels = out[..., 4:].sigmoid().max(-1)
        best, index = scores.topk(5, dim=1)
        return boxes.gather(1, index.unsqueeze(-1).expand(-1, -1, 4)), best, labels.gather(1, index)


class Encoder(nn.Module):
    """A layer of a transformer. The old exporter cannot trace nn.TransformerEncoderLayer: it gives
    attention a tensor for `is_causal`, unless weights are wanted; and it fixes the length."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.feed = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x):
        x = self.first(x + self.attention(x, x, x)[0])
        return self.second(x + self.feed(x))


TOKENS = torch.tensor([[3, 5, 0, 0], [1, 2, 9, 4]])
MODELS = {  # a model, an input, another input of another size, the sizes that may differ
    "convnet": (ConvNet, torch.randn(2, 3, 16, 16), torch.randn(5, 3, 16, 16), [0]),
    "encoder": (Encoder, torch.randn(2, 7, 16), torch.randn(3, 7, 16), [0]),
    "lstm": (lambda: Recurrent(nn.LSTM), torch.randn(2, 5, 6), torch.randn(2, 9, 6), [1]),
    "gru": (lambda: Recurrent(nn.GRU), torch.randn(2, 5, 6), torch.randn(2, 9, 6), [1]),
    "embeds": (Embeds, TOKENS, torch.tensor([[7, 0, 0], [2, 2, 2], [1, 8, 0]]), [0, 1]),
    "detects": (Detects, torch.randn(2, 4, 6, 6), torch.randn(3, 4, 6, 6), [0]),
}


def exported(name, path, dynamo):
    make, x, other, dims = MODELS[name]
    torch.manual_seed(0)
    model = make().eval()
    axes = {i: f"d{i}" for i in dims}
    how = ({"dynamic_shapes": [axes]} if dynamo
           else {"dynamic_axes": {"x": axes}, "input_names": ["x"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (x,), str(path), dynamo=dynamo, opset_version=18, verbose=False,
                          **how)
    return model, (x, other)


def agree(got, want, tolerance=1e-4):
    got, want = (x if isinstance(x, (tuple, list)) else [x] for x in (got, want))
    assert len(got) == len(want)
    for one, other in zip(got, want):
        torch.testing.assert_close(torch.as_tensor(one).detach(), torch.as_tensor(other).detach(),
                                   rtol=tolerance, atol=tolerance)


def check_torch(name, tmp_path, dynamo):
    path = tmp_path / "model.onnx"
    model, inputs = exported(name, path, dynamo)
    gm, run = cfx.onnx.load(path), cfx.runtime.load(path)
    for x in inputs:
        want = model(x)
        agree(gm(x), want)  # with gradients: statistics of norms must not want any
        agree(run(x), want)


@pytest.mark.parametrize("name", MODELS)
def test_torchscript_exporter(name, tmp_path):
    check_torch(name, tmp_path, dynamo=False)


@pytest.mark.parametrize("name", MODELS)
def test_dynamo_exporter(name, tmp_path):
    pytest.importorskip("onnxscript")
    check_torch(name, tmp_path, dynamo=True)


# ---- tf2onnx, whose files are kept (tools/tf_models.py) -----------------------------------------

KEPT = Path(__file__).resolve().parents[1] / "golden/tf2onnx"


def calls_of(path):
    """(inputs, results) of TensorFlow; the calls have different sizes."""
    with np.load(path.with_suffix(".npz")) as kept:
        for k in range(2):
            yield tuple([torch.from_numpy(kept[name]) for name in kept.files
                         if name.startswith(f"{k}_{kind}")] for kind in ("in", "out"))


@pytest.mark.parametrize("name", sorted(path.stem for path in KEPT.glob("*.onnx")))
def test_tf2onnx(name):
    path = KEPT / f"{name}.onnx"
    gm, run = cfx.onnx.load(path), cfx.runtime.load(path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for inputs, want in calls_of(path):
        names = [one.name for one in session.get_inputs()]
        for got in (run(*inputs), gm(*inputs),
                    session.run(None, {n: x.numpy() for n, x in zip(names, inputs)})):
            agree(got, want)


def test_tf2onnx_files_are_there():
    assert len(list(KEPT.glob("*.onnx"))) >= 10


# ---- skl2onnx ----------------------------------------------------------------------------------

ROWS = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
LABELS = (ROWS[:, 0] + ROWS[:, 1] > 0).astype(np.int64)


def converted(estimator):
    """The bytes of a fitted estimator; probabilities as tensors."""
    skl2onnx = pytest.importorskip("skl2onnx")
    kind = skl2onnx.common.data_types.FloatTensorType([None, ROWS.shape[1]])
    options = {id(estimator): {"zipmap": False}} if hasattr(estimator, "predict_proba") else None
    return skl2onnx.convert_sklearn(estimator, initial_types=[("x", kind)], options=options,
                                    target_opset=18).SerializeToString()


def estimators():
    from sklearn import cluster, decomposition, neural_network, preprocessing

    return {
        "pca": decomposition.PCA(3),
        "kmeans": cluster.KMeans(3, n_init=2, random_state=0),
        "mlp": neural_network.MLPRegressor(hidden_layer_sizes=(8,), max_iter=20, random_state=0),
        "minmax": preprocessing.MinMaxScaler(),
    }


def ort(model, x):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})


@pytest.mark.parametrize("name", ["pca", "kmeans", "mlp", "minmax"])
@pytest.mark.filterwarnings("ignore")
def test_skl2onnx(name):
    pytest.importorskip("sklearn")
    estimator = estimators()[name].fit(ROWS, LABELS)
    model = converted(estimator)
    for x in (ROWS[:7], ROWS[7:12]):
        agree(cfx.runtime.load(model)(torch.from_numpy(x)), ort(model, x))


@pytest.mark.filterwarnings("ignore")
def test_operators_of_classical_learning_are_listed():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    for estimator, op in ((LogisticRegression(), "LinearClassifier"),
                          (MLPClassifier((8,), max_iter=20), "ArrayFeatureExtractor")):
        model = converted(estimator.fit(ROWS, LABELS))
        with pytest.raises(cfx.onnx.ReadError) as caught:
            cfx.onnx.load(model)
        assert f"ai.onnx.ml::{op}" in {one.op for one in caught.value.findings}
