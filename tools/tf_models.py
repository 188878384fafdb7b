#!/usr/bin/env python3
"""tf_models.py - writes the files of tests/golden/tf2onnx: models of TensorFlow, by tf2onnx.

usage: tf_models.py [NAME ...]

Makes NAME.onnx, and NAME.npz with inputs and TensorFlow's results: "0_in0", "0_out0" of the first
call, "1_..." of the second, which has other sizes. TensorFlow is too large for the tests, which
read these files (tests/python/test_onnx_producers.py). Needs a virtual environment with
tensorflow-cpu 2.21 and tf2onnx 1.17; cfx is not used.
"""
import os
import sys
from pathlib import Path

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0")

import numpy as np  # noqa: E402

np.object = object  # tf2onnx 1.17 asks for them, and NumPy 2 does not have them
np.cast = None

import tensorflow as tf  # noqa: E402
import tf2onnx  # noqa: E402

FOLDER = Path(__file__).resolve().parent.parent / "tests/golden/tf2onnx"
layers = tf.keras.layers
ops = tf.keras.ops


# ---- Keras --------------------------------------------------------------------------------------


def conv():
    """Convolutions of each kind, batch norm, pooling."""
    net = tf.keras.Sequential([
        layers.Input((8, 8, 3)), layers.Conv2D(8, 3, padding="same", strides=2, use_bias=False),
        layers.BatchNormalization(), layers.ReLU(6.0), layers.DepthwiseConv2D(3, padding="same"),
        layers.BatchNormalization(), layers.Activation("swish"), layers.Conv2D(6, 1),
        layers.MaxPool2D(2), layers.Conv2DTranspose(4, 2, strides=2),
        layers.AveragePooling2D(2, padding="same"), layers.GlobalAveragePooling2D(),
        layers.Dense(5, activation="softmax")])
    numbers = np.random.default_rng(0)
    for layer in net.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.set_weights([numbers.uniform(0.5, 1.5, w.shape) for w in layer.get_weights()])
    return net, [(None, 8, 8, 3)], [[(2, 8, 8, 3)], [(5, 8, 8, 3)]]


def lstm():
    """A dimension of size 1 is cut out of one of unknown size, and squeezed."""
    net = tf.keras.Sequential([
        layers.Input((None, 6)), layers.LSTM(8, return_sequences=True),
        layers.Bidirectional(layers.LSTM(5)), layers.Dense(3)])
    return net, [(None, None, 6)], [[(2, 5, 6)], [(3, 9, 6)]]


def gru():
    """tf2onnx writes a loop that stacks, and another that reads what it has stacked."""
    net = tf.keras.Sequential([
        layers.Input((None, 6)), layers.GRU(8, return_sequences=True),
        layers.GRU(4, reset_after=False), layers.Dense(3)])
    return net, [(None, None, 6)], [[(2, 5, 6)], [(3, 9, 6)]]


def transformer():
    x = layers.Input((None, 8))
    attended = layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    mixed = layers.LayerNormalization()(x + attended)
    wide = layers.Dense(12, activation=lambda t: tf.nn.gelu(t, approximate=True))(mixed)
    net = tf.keras.Model(x, layers.LayerNormalization()(mixed + layers.Dense(8)(wide)))
    return net, [(None, None, 8)], [[(2, 5, 8)], [(3, 7, 8)]]


def embedding():
    tokens = layers.Input((None,), dtype="int32")
    mask = ops.expand_dims(ops.cast(ops.not_equal(tokens, 0), "float32"), -1)
    total = ops.sum(layers.Embedding(20, 8)(tokens) * mask, 1)
    mean = total / ops.maximum(ops.sum(mask, 1), 1.0)
    net = tf.keras.Model(tokens, layers.Dense(4, activation="tanh")(mean))
    return net, [tf.TensorSpec((None, None), tf.int32)], [[(2, 5)], [(3, 7)]]


def matrix(n):
    """A variable, which is written as a constant; a captured tensor would be one more input."""
    return tf.Variable(np.random.default_rng(0).normal(size=(n, n)) * 0.4, dtype=tf.float32)


# ---- tf.function --------------------------------------------------------------------------------


def loop():
    weight = matrix(4)

    def call(x):
        def goes_on(i, y):
            return tf.logical_and(i < 10, tf.reduce_sum(tf.abs(y)) > 1.0)

        def body(i, y):
            return i + 1, tf.tanh(tf.matmul(y, weight)) + x * 0.1

        i, y = tf.while_loop(goes_on, body, [tf.constant(0), x])
        return y, i

    return call, [(None, 4)], [[(2, 4)], [(5, 4)]]


def branch():
    weight = matrix(4)

    def call(x):
        y = tf.cond(tf.reduce_mean(x) > 0.0, lambda: tf.matmul(x, weight), lambda: tf.tanh(x) - 1.0)
        return (y, *tf.math.top_k(y, 2))

    return call, [(None, 4)], [[(2, 4)], [(3, 4)]]


def array():
    """A TensorArray that a loop fills."""
    weight = matrix(3)

    def call(x):
        n = tf.shape(x)[0]

        def body(i, state, rows):
            state = tf.tanh(tf.linalg.matvec(weight, state) + x[i])
            return i + 1, state, rows.write(i, state)

        _, state, rows = tf.while_loop(lambda i, *_: i < n, body, [
            0, tf.zeros_like(x[0]), tf.TensorArray(tf.float32, size=n)])
        return rows.stack(), state

    return call, [(None, 3)], [[(4, 3)], [(6, 3)]]


def functions():
    def call(x):
        return (tf.image.resize(x, [9, 7]), tf.image.resize(x, [12, 12], method="nearest"),
                tf.gather_nd(x, [[0, 1, 1], [0, 2, 0]]), tf.one_hot(tf.argmax(x, -1), 3),
                tf.cumsum(x, axis=1, exclusive=True, reverse=True),
                tf.pad(x, [[0, 0], [1, 1], [2, 0], [0, 0]], mode="REFLECT"),
                tf.einsum("bhwc,bhwd->bcd", x, x), tf.where(x > 0.0, x, tf.math.erf(x)),
                tf.nn.space_to_depth(x[:, :4, :4], 2),
                tf.unique(tf.cast(tf.reshape(x, [-1]) * 2, tf.int32))[0])

    return call, [(None, 6, 6, 3)], [[(1, 6, 6, 3)], [(2, 6, 6, 3)]]


def boxes():
    def call(corners, scores):
        low, high = tf.minimum(*tf.split(corners, 2, 1)), tf.maximum(*tf.split(corners, 2, 1))
        kept = tf.image.non_max_suppression(tf.concat([low, high], 1), scores, 4, 0.5, -1.0)
        return kept, tf.gather(corners, kept)

    return call, [(None, 4), (None,)], [[(8, 4), (8,)], [(12, 4), (12,)]]


# ---- files --------------------------------------------------------------------------------------


def write(name):
    tf.keras.utils.set_random_seed(0)
    call, signature, calls = MODELS[name]()
    signature = [one if isinstance(one, tf.TensorSpec) else tf.TensorSpec(one, tf.float32)
                 for one in signature]
    signature = [tf.TensorSpec(one.shape, one.dtype, name=f"x{i}")
                 for i, one in enumerate(signature)]
    if isinstance(call, tf.keras.Model):
        net = call

        def call(x):
            return net(x, training=False)

    function = tf.function(call, input_signature=signature)
    path = FOLDER / f"{name}.onnx"
    tf2onnx.convert.from_function(function, input_signature=signature, opset=18,
                                  output_path=str(path))
    numbers = np.random.default_rng(1)
    kept = {}
    for k, sizes in enumerate(calls):
        inputs = [numbers.integers(0, 20, size).astype(np.int32) if one.dtype == tf.int32
                  else numbers.normal(size=size).astype(np.float32)
                  for one, size in zip(signature, sizes)]
        if k == 1 and name == "branch":
            inputs = [-abs(x) for x in inputs]  # the other way
        results = tf.nest.flatten(function(*map(tf.constant, inputs)))
        kept.update({f"{k}_in{i}": x for i, x in enumerate(inputs)})
        kept.update({f"{k}_out{i}": x.numpy() for i, x in enumerate(results)})
    np.savez_compressed(path.with_suffix(".npz"), **kept)
    print(f"{name}: {path.stat().st_size} and {path.with_suffix('.npz').stat().st_size} bytes")


MODELS = {one.__name__: one for one in (conv, lstm, gru, transformer, embedding, loop, branch,
                                        array, functions, boxes)}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for chosen in sys.argv[1:] or MODELS:
        write(chosen)
