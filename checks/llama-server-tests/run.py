#!/usr/bin/env python3
"""Runs llama.cpp's server tests against this server: run.py SOURCES [-k EXPRESSION ...].

SOURCES is the unpacked source package llama-cpp-python, or a clone of llama.cpp. With --any-text, texts that only the true weights write may be
any text, and counts of tokens of the true vocabulary any count.
"""
import os
import pathlib
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
arguments = sys.argv[1:]
any_text = "--any-text" in arguments
arguments = [argument for argument in arguments if argument != "--any-text"]
sources = pathlib.Path(arguments.pop(0)).resolve()
tests = next(path for path in [sources, *sources.glob("*/vendor/llama.cpp"), sources / "vendor/llama.cpp"] if (path / "tools/server/tests").is_dir())
tests = tests / "tools/server/tests"
models = pathlib.Path(os.environ.setdefault("ROCMFORGE_TEST_MODELS", str(here / "models")))
if not (models / "jina-reranker-v1-tiny-en.gguf").exists():
    subprocess.run([sys.executable, here / "models.py", models], check=True)
environment = {
    **os.environ,
    "LLAMA_SERVER_BIN_PATH": str(here / "server"),
    "PYTHONPATH": f"{here}{os.pathsep}{tests}",
    "ROCMFORGE_ANY_TEXT": "1" if any_text else "",
}
command = [sys.executable, "-m", "pytest", "-p", "plugin", "-q", "--timeout", "60", "--tb", "short", *(arguments or ["unit"])]
sys.exit(subprocess.run(command, cwd=tests, env=environment).returncode)
