"""Draw a digit: a page that classifies it, and shows what is compiled meanwhile.

    python examples/draw_digit.py [steps]      # needs pip install 'maxjax[page]'

A network is trained on small pictures of digits while the page is open. Each program says how it
runs: interpreted at first, native or compiled when it has become hot; nothing waits for that.
"""

import sys
import threading

import gradio as gr
import numpy as np
from sklearn.datasets import load_digits

import maxjax as jax
import maxjax.numpy as jnp

SIZE = 240


def logits_of(params, x):
    return jax.nn.relu(x @ params["w1"]) @ params["w2"]


@jax.jit
def train(params, x, y):
    def loss_of(params):
        scores = jax.nn.log_softmax(logits_of(params, x))
        return -jnp.take_along_axis(scores, y[:, None], axis=1).mean()

    loss, gradient = jax.value_and_grad(loss_of)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), loss


@jax.jit
def classify(params, ink):
    """Probabilities of the digits for a square picture, 1 where there is ink."""
    small = jax.image.resize(ink, (8, 8), "linear")
    return jax.nn.softmax(logits_of(params, (small / small.max()).reshape(64)))


def cut_out(picture):
    """The ink of a drawing, in a square that it fills as digits do; None if there is none."""
    if not picture or not picture["layers"][0][..., -1].max() > 99:
        return None
    ink = picture["layers"][0][..., -1].astype(np.float32) / 255
    rows, columns = np.nonzero(ink > 0.3)
    ink = ink[rows.min():rows.max() + 1, columns.min():columns.max() + 1]
    spare = [max(ink.shape) - length for length in ink.shape]
    square = np.pad(ink, [(n // 2, n - n // 2) for n in spare])
    return jax.image.resize(square, (SIZE, SIZE), "linear")      # one size, one program


class Model:
    def __init__(self):
        digits = load_digits()
        self.x, self.y = jnp.asarray(digits.data / 16, jnp.float32), jnp.asarray(digits.target)
        one, two = jax.random.split(jax.random.key(0))
        self.params = {"w1": jax.random.normal(one, (64, 128)) / 6,
                       "w2": jax.random.normal(two, (128, 10)) / 8}
        self.steps = 0

    def learn(self, steps):
        for _ in range(steps):
            self.params, self.loss = train(self.params, self.x, self.y)
            self.steps += 1

    def status(self):
        lines = [f"{self.steps} steps, loss {float(self.loss):.3f}" if self.steps else "untrained"]
        for name, function in (("train", train), ("classify", classify)):
            found = jax.debug.statistics(function)
            lines.append(f"{name}: {found.state}; calls: {found.interpreted_calls} interpreted, "
                         f"{found.compiled_calls} in machine code")
        return "\n".join(lines)

    def answer(self, picture):
        ink = cut_out(picture)
        return {} if ink is None else {
            str(digit): p for digit, p in enumerate(classify(self.params, ink).tolist())}


def show(model):
    with gr.Blocks(title="Draw a digit") as blocks:
        gr.Markdown("# Draw a digit\nIt is classified at each stroke, while the network learns.")
        with gr.Row():
            pad = gr.Sketchpad(label="A digit", height=SIZE + 120, canvas_size=(SIZE, SIZE),
                               brush=gr.Brush(default_size=22, default_color="#000000"))
            with gr.Column():
                label = gr.Label(label="It looks like", num_top_classes=3)
                gr.Textbox(model.status, label="What runs how", lines=3, every=1.0)
        pad.change(model.answer, pad, label)
    blocks.launch()      # at GRADIO_SERVER_PORT


if __name__ == "__main__":
    model = Model()
    threading.Thread(target=model.learn, args=[int([*sys.argv, 20_000][1])], daemon=True).start()
    show(model)
