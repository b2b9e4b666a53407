# libraries: keras
# tolerance: 2e-4 (three epochs of Adam amplify the rounding)
# absolute: 2e-5 (values around zero)
"""Keras on its JAX backend: a convolutional and a recurrent model, a custom layer, saving."""
import os
import tempfile

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(0)
random = np.random.default_rng(0)


def show(name, values):
    print(name, *(f"{float(value):.6g}" for value in np.ravel(values)))


class Scaled(keras.layers.Layer):
    """A learnt scale of each channel, and a loss that keeps it near one."""

    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, x):
        self.add_loss(0.1 * ops.sum((self.scale - 1.0) ** 2))
        return x * self.scale


def images():
    x = random.normal(size=(128, 12, 12, 1)).astype("float32")
    y = (x[:, :6].sum((1, 2, 3)) > x[:, 6:].sum((1, 2, 3))).astype("int32")
    model = keras.Sequential([
        layers.Input((12, 12, 1)), layers.Conv2D(8, 3, activation="relu"),
        layers.BatchNormalization(), layers.MaxPooling2D(), layers.Flatten(), Scaled(),
        layers.Dropout(0.1), layers.Dense(2)])
    model.compile(
        keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"])
    history = model.fit(x, y, epochs=3, batch_size=32, validation_split=0.25, verbose=0,
                        callbacks=[keras.callbacks.LearningRateScheduler(lambda n: 1e-3 / (n + 1))])
    for name in ("loss", "accuracy", "val_loss"):
        show(name, history.history[name])
    show("evaluated", model.evaluate(x, y, verbose=0))
    show("predicted", model.predict(x[:2], verbose=0))


def sequences():
    x = random.integers(0, 20, (64, 10))
    y = (x.sum(1) % 2).astype("float32")
    tokens = keras.Input((10,), dtype="int32")
    hidden = layers.Embedding(20, 8)(tokens)
    hidden = layers.LayerNormalization()(hidden + layers.MultiHeadAttention(2, 4)(hidden, hidden))
    hidden = layers.Bidirectional(layers.GRU(4))(layers.LSTM(8, return_sequences=True)(hidden))
    model = keras.Model(tokens, layers.Dense(1, activation="sigmoid")(hidden))
    model.compile(keras.optimizers.AdamW(1e-2, clipnorm=1.0), "binary_crossentropy",
                  metrics=["auc"])
    history = model.fit(x, y, epochs=2, batch_size=16, verbose=0)
    show("loss", history.history["loss"])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        loaded = keras.models.load_model(path)
    before, after = (m.predict(x, verbose=0) for m in (model, loaded))
    print("the same after loading:", bool(np.array_equal(before, after)))
    show("predicted", before[:4])


def operations():
    x = random.normal(size=(2, 6, 6, 3)).astype("float32")
    show("resized", ops.image.resize(x, (3, 3))[0, :, :, 0])
    show("normal", keras.random.normal((4,), seed=7))
    show("scanned", ops.scan(lambda carry, row: (carry + row, carry), ops.zeros(3), x[0, 0])[0])
    show("solved", ops.linalg.solve(ops.eye(2) * 2 + 1, ops.ones((2, 1))))
    show("top", ops.top_k(x[0, 0, :, 0], 2)[0])


images()
sequences()
operations()
