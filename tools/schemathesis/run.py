#!/usr/bin/env python3
"""Starts the example server with a random model, and runs schemathesis over its description: run.py [OPTION OF SCHEMATHESIS...]."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SERVER = ROOT / "target/debug/examples/cpu"
MODEL = ROOT / "crates/rocmforge-models/tests/reference/tiny/llama.gguf"
TEMPLATE = (
    "{% for m in messages %}<bos>{{ m.role }}: {{ m.content }}<eos>\n{% endfor %}"
    "{% if add_generation_prompt %}<bos>assistant: {% endif %}"
)
# Answers are short unless a request says otherwise.
DEFAULTS = {"max_tokens": 2, "max_output_tokens": 2}
PORT = 8093


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/ready") as answer:
            return answer.status == 200
    except OSError:
        return False


def main() -> int:
    if not SERVER.exists():
        sys.exit(f"{SERVER} is not there: cargo build -p rocmforge-server --example cpu")
    url = f"http://127.0.0.1:{PORT}"
    if is_ready(url):
        sys.exit(f"another server answers at {url}")
    with tempfile.TemporaryDirectory() as folder:
        template = pathlib.Path(folder) / "template.jinja"
        template.write_text(TEMPLATE)
        command = [SERVER, MODEL, str(PORT), "--name", "tiny", "--template", template, "--slots", "--ctx", "64"]
        server = subprocess.Popen([*command, "--defaults", json.dumps(DEFAULTS)])
        try:
            while not is_ready(url):
                if server.poll() is not None:
                    return 1
                time.sleep(0.1)
            schemathesis = pathlib.Path(sys.executable).parent / "schemathesis"
            command = [schemathesis, "--config-file", HERE / "schemathesis.toml", "run", f"{url}/openapi.json", *sys.argv[1:]]
            code = subprocess.call(command, cwd=folder)
            if server.poll() is not None:
                print(f"the server ended with {server.returncode}")
                return 1
            return code
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    sys.exit(main())
