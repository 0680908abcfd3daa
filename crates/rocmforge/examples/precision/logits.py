"""Logits of llama.cpp for given tokens: `logits.py MODEL.gguf IDS.json LOGITS.bin`, with the package llama-cpp-python.

The text is one sequence, in steps of 64 tokens with a cache of f32, as in the example `precision`. LLAMA_CPP_LIB_PATH may name a folder with another
build of the library, whose backends are files of their own.
"""

import ctypes
import json
import os
import sys

import numpy
from llama_cpp import Llama

GGML_TYPE_F32 = 0

model, ids, out = sys.argv[1:]
with open(ids) as file:
    ids = json.load(file)
folder = os.environ.get("LLAMA_CPP_LIB_PATH")
if folder:
    ctypes.CDLL(f"{folder}/libggml.so").ggml_backend_load_all_from_path(folder.encode())
llama = Llama(
    model, n_ctx=len(ids), n_batch=64, n_ubatch=64, logits_all=True, type_k=GGML_TYPE_F32, type_v=GGML_TYPE_F32, verbose=False
)
llama.eval(ids)
numpy.asarray(llama.scores[: len(ids)], dtype="<f4").tofile(out)
