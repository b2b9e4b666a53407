"""Libraries for C, called from other languages, and written from the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import export, lax
from maxjax._max.mojo import standard_library
from maxjax._runtime.c_libraries import Files
from maxjax.export import _command as export_command
from tests.gen import exported_programs
from tests.support.c_libraries import CLibrary, compiled, run, same_bits

pytestmark = pytest.mark.skipif(
    standard_library.why_not() is not None, reason=f"{standard_library.why_not()}")

X = exported_programs.X

C = r'''
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "classify.h"

static float images[4][64];
static float wanted[4][10];
static int failures;

static void *work(void *unused) {
    for (int i = 0; i < 200; i++) {
        float logits[4][10];
        int n = 1 + i % 4;
        if (classify(n, images[0], logits[0]) || memcmp(logits, wanted, sizeof *logits * n))
            __atomic_fetch_add(&failures, 1, __ATOMIC_SEQ_CST);
    }
    return unused;
}

int main(int count, char **words) {
    FILE *file = fopen(words[1], "rb");
    if (count != 2 || !file || fread(images, sizeof images, 1, file) != 1
        || fread(wanted, sizeof wanted, 1, file) != 1) return 2;
    fclose(file);
    if (count == 2) work(NULL);
    pthread_t threads[8];
    classify_threads(2);
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    int64_t shape[2] = {4, 64}, wrong[2] = {4, 63}, logits_shape[2] = {4, 10};
    float logits[4][10];
    maxjax_array given = {images, shape, MAXJAX_FLOAT32, 2};
    maxjax_array result = {logits, logits_shape, MAXJAX_FLOAT32, 2};
    if (classify_arrays(4, &given, 1, &result, 1) || memcmp(logits, wanted, sizeof wanted))
        failures++;
    given.shape = wrong;
    puts(classify_error(classify_arrays(4, &given, 1, &result, 1)));
    puts(classify_error(classify(5, images[0], logits[0])));
    puts(classify_error(classify(1, NULL, logits[0])));
    classify_release();
    printf("%d\n", failures);
    return failures != 0;
}
'''
RUST = r'''
use std::{env, ffi::{c_char, CStr}, fs};

#[link(name = "classify")]
extern "C" {
    fn classify(n: i64, images: *const f32, logits: *mut f32) -> i32;
    fn classify_error(code: i32) -> *const c_char;
}

fn main() {
    let bytes = fs::read(env::args().nth(1).unwrap()).unwrap();
    let numbers: Vec<f32> = bytes.chunks(4).map(
        |x| f32::from_ne_bytes(x.try_into().unwrap())).collect();
    let mut logits = [0f32; 40];
    unsafe {
        assert_eq!(classify(4, numbers.as_ptr(), logits.as_mut_ptr()), 0);
        assert!(logits.iter().zip(&numbers[256..]).all(|(a, b)| a.to_bits() == b.to_bits()));
        let code = classify(9, numbers.as_ptr(), logits.as_mut_ptr());
        println!("{}", CStr::from_ptr(classify_error(code)).to_str().unwrap());
    }
}
'''
OUT_OF_BOUNDS = "the function is not for these sizes: 1 <= n <= 4"


@pytest.fixture(scope="module")
def classifier(tmp_path_factory) -> Path:
    """A folder with a library, and a file of images and what it computes for them."""
    folder = tmp_path_factory.mktemp("classifier")
    w, v = exported_programs.weights(64, 32), exported_programs.weights(32, 10, seed=1)

    def classify(images):
        return maxjax.nn.relu(images @ w) @ v

    n, = export.symbolic_shape("n", constraints=["n <= 4"])
    export.library(classify, maxjax.ShapeDtypeStruct((n, 64), np.float32), path=folder)
    images = exported_programs.weights(4, 64, seed=5)
    (folder / "data").write_bytes(images.tobytes() + compiled(classify, images)[0].tobytes())
    return folder


def needs(compiler: str) -> str:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    return compiler


LINK = ("-L.", "-lclassify", "-Wl,-rpath,$ORIGIN", "-pthread")
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")


@pytest.mark.parametrize("compiler, options", [
    ("cc", ("-std=c99",)), ("cc", ("-std=c11", "-O2")),
    ("c++", ("-x", "c++", "-std=c++17", "-Wno-missing-field-initializers"))])
def test_c_programs_call_the_library(classifier, compiler, options):
    (classifier / "main.c").write_text(C)
    run(classifier, needs(compiler), *STRICT, *options, "main.c", "-o", "program",
        *(() if compiler == "cc" else ("-x", "none")), *LINK)
    assert run(classifier, "./program", "data").splitlines() == [
        "argument 0, images, float32[n,64]: the array has another shape", OUT_OF_BOUNDS,
        "argument 0, images, float32[n,64]: there is no array (its address is 0)", "0"]


SCAN = r'''
#include <stdio.h>
#include <string.h>
#include "smooth.h"

int main(int count, char **words) {
    float x[2][500], wanted[500], last, y[500];
    FILE *file = fopen(words[count - 1], "rb");
    if (!file || fread(x, sizeof x, 1, file) != 1 || fread(wanted, sizeof wanted, 1, file) != 1)
        return 2;
    if (smooth(x[0], x[1], &last, y)) return 3;
    printf("%d %d\n", memcmp(y, wanted, sizeof y), last == y[499]);
    return 0;
}
'''


def test_a_loop_in_c(tmp_path):
    def smooth(x, rates):
        def step(mean, item):
            mean = mean + (item[0] - mean) * item[1]
            return mean, mean
        return lax.scan(step, jnp.float32(0), (x, rates))

    x = exported_programs.weights(2, 500)
    export.library(smooth, *x, path=tmp_path)
    (tmp_path / "data").write_bytes(x.tobytes() + compiled(smooth, *x)[1].tobytes())
    (tmp_path / "main.c").write_text(SCAN)
    run(tmp_path, needs("cc"), *STRICT, "-std=c99", "main.c", "-o", "program", "-L.", "-lsmooth",
        "-Wl,-rpath,$ORIGIN")
    assert run(tmp_path, "./program", "data") == "0 1\n"


def test_rust_programs_call_the_library(classifier):
    (classifier / "main.rs").write_text(RUST)
    run(classifier, needs("rustc"), "--edition", "2021", "-L", ".", "main.rs", "-o", "rust_program",
        "-C", "link-arg=-Wl,-rpath,$ORIGIN")
    assert run(classifier, "./rust_program", "data").splitlines() == [OUT_OF_BOUNDS]


GO = r'''
package main

// #cgo LDFLAGS: -L${SRCDIR} -lclassify -Wl,-rpath,${SRCDIR}
// #include "classify.h"
import "C"
import (
    "encoding/binary"
    "fmt"
    "math"
    "os"
    "unsafe"
)

func main() {
    bytes, _ := os.ReadFile(os.Args[1])
    numbers := make([]float32, len(bytes)/4)
    for i := range numbers {
        numbers[i] = math.Float32frombits(binary.NativeEndian.Uint32(bytes[4*i:]))
    }
    logits := make([]float32, 40)
    images := (*C.float)(unsafe.Pointer(&numbers[0]))
    result := (*C.float)(unsafe.Pointer(&logits[0]))
    if C.classify(4, images, result) != 0 {
        panic("it fails")
    }
    for i, x := range logits {
        if x != numbers[256+i] {
            panic("another result")
        }
    }
    fmt.Println(C.GoString(C.classify_error(C.classify(9, images, result))))
}
'''


def test_go_programs_call_the_library(classifier):
    (classifier / "main.go").write_text(GO)
    (classifier / "go.mod").write_text("module classifier\n")
    run(classifier, needs("go"), "build", "-o", "go_program", ".")
    assert run(classifier, "./go_program", "data").splitlines() == [OUT_OF_BOUNDS]


# --- the command ---

SCRIPT = """
import jax
import jax.numpy as jnp

def predict(x, n):
    return jnp.tanh(x) * n

class Model:
    @staticmethod
    def __call__(x):
        return jax.nn.relu(x)

model = Model()
number = 3
if __name__ == "__main__":
    raise SystemExit("the script is the main program")
"""


def command(folder: Path, *words: str) -> subprocess.CompletedProcess:
    (folder / "model.py").write_text(SCRIPT)
    return subprocess.run([sys.executable, "-m", "maxjax", "export-library", *words],
                          cwd=folder, capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, "PYTHONPATH": str(Path(maxjax.__file__).parents[1])})


def test_the_command_line_writes_a_library(tmp_path):
    done = command(tmp_path, "model.py:predict", "float32[n,3]", "int32[]", "--path", "out",
                   "--constraint", "n <= 5", "--name", "g", "--threads", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["out/libg.so", "out/g.h", "out/g.json"]
    library = CLibrary(Files(*[tmp_path / line for line in done.stdout.split()]))
    x, n = X[:4], np.full((), 2, np.int32)
    same_bits(library(x, n, sizes=(4,)), compiled(lambda x, n: jnp.tanh(x) * n, x, n))


def test_command_with_a_saved_function(tmp_path):
    made = export.export(maxjax.jit(lambda x: x * 2))(X)
    (tmp_path / "saved").write_bytes(made.serialize())
    done = command(tmp_path, "saved", "--name", "twice")
    assert done.returncode == 0 and (tmp_path / "libtwice.so").exists(), done.stderr


@pytest.mark.parametrize("words, message", [
    (["model.py:nothing", "float32[3]"], "model.py defines no 'nothing'"),
    (["model.py:model.part", "float32[3]"], "there is no 'part'"),
    (["model.py:number"], "number of model.py is no function"),
    (["other.py:predict"], "there is no script other.py"),
    (["model.py"], "no function exported"),
    (["model.py:predict", "float32[3]"], "missing 1 required positional argument"),
    (["model.py:model", "float32(3)"], "'float32(3)' is no type of an argument"),
    (["model.py:model", "float31[3]"], "'float31[3]' is no type of an argument"),
    (["model.py:model", "float64[3]"], "float64 need JAX_ENABLE_X64=1"),
    (["model.py:model", "float32[n]"], "the size n has no greatest value")])
def test_command_says_what_is_wrong(tmp_path, monkeypatch, capsys, words, message):
    (tmp_path / "model.py").write_text(SCRIPT.replace("import jax", "import maxjax as jax", 1))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    assert export_command.main(words) == 1
    said = capsys.readouterr().err
    assert said.startswith("maxjax export-library: ") and message in said
