"""Writes the fixtures of a real model: `python real.py smollm2 MODEL.gguf LICENSE-APACHE`, or gemma3.

NAME.json holds prompts, token ids, greedy continuations and scores; NAME-*.f32 and NAME-*.u32 beside it hold arrays
(little endian). README.md describes each field.
"""

import hashlib
import json
import pathlib
import re
import sys

import jinja2
import numpy as np

import tokens
from forward import Model, log_softmax
from gguf_read import Gguf

HERE = pathlib.Path(__file__).parent
GREEDY = 24

CHAT = [{"role": "user", "content": "What is 2 + 2?"}]
PROMPTS = {
    "english": "The capital of France is",
    "short": "The sky is",
    "story": "Once upon a time, in a small village by the sea, there lived an old",
    "code": "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "digits": "1 2 3 5 8 13 21 34",
    "json": '{"name": "Ada", "born": 1815, "tags": ["',
    "emoji-cjk": "Hello 🙂 world: 你好，世界! こんにちは",
    "chat": CHAT,
}
# What differs by model: the prompts; how many tokens of the licence are scored (Gemma's window is 512); every how
# many-th logit is kept; how many best log-probabilities of each scored position are kept.
MODELS = {
    "smollm2": {"prompts": list(PROMPTS), "licence": 512, "every": 1, "top": 64},
    "gemma3": {"prompts": ["english", "code", "digits", "emoji-cjk"], "licence": 661, "every": 8, "top": 0},
}


def render(template, meta, messages):
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    vocabulary = meta["tokenizer.ggml.tokens"]
    return environment.from_string(template).render(
        messages=messages,
        add_generation_prompt=True,
        bos_token=vocabulary[meta["tokenizer.ggml.bos_token_id"]],
        eos_token=vocabulary[meta["tokenizer.ggml.eos_token_id"]],
    )


def sample(logits, every):
    """The logits that are kept: each `every`-th, then the 256 largest, and the ids of the latter; or all of them."""
    largest = np.argsort(-logits, kind="stable")[:256] if every > 1 else np.zeros(0, int)
    return np.concatenate([logits[::every], logits[largest]]), largest.tolist()


def write(name, values, dtype):
    np.asarray(values).astype(dtype).tofile(HERE / name)
    return name


def rounded(values, digits=7):
    return [round(float(v), digits) for v in values]


def main(name, path, licence):
    rule, meta = MODELS[name], Gguf(path).meta
    tokenizer = tokens.Tokenizer(meta)
    prompts = []
    for label in rule["prompts"]:
        text, chat = PROMPTS[label], None
        if not isinstance(text, str):
            chat, text = text, render(meta["tokenizer.chat_template"], meta, text)
        ids = tokenizer.encode(text, parse_special=chat is not None)
        prompt = {"name": label, "text": text, "parse_special": chat is not None, "ids": ids}
        prompts.append(prompt | ({"messages": chat} if chat else {}))
    text = pathlib.Path(licence).read_text()
    ids = tokenizer.encode(text, parse_special=False)
    print(f"licence: {len(ids)} tokens; prompts: {[len(p['ids']) for p in prompts]}", flush=True)
    cases = [(p["text"], p["parse_special"], p["ids"]) for p in prompts]
    tokens.check(path, cases + [(text, False, ids)])
    print("llama.cpp gives the same ids", flush=True)
    ids = ids[: rule["licence"]]

    model = Model(path)
    kept = []
    for prompt in prompts:
        logits, prompt["greedy"], gaps = model.greedy(prompt["ids"], GREEDY)
        prompt["gaps"] = rounded(gaps)
        values, prompt["largest_ids"] = sample(logits, rule["every"])
        kept.append(values)
        print(prompt["name"], repr(tokenizer.inner.decode(prompt["greedy"])), "least gap", min(gaps), flush=True)

    hidden, nll, best, gaps, last = model.score(ids)
    scored = {"source": "LICENSE-APACHE", "ids": ids, "best": best, "gaps": rounded(gaps)}
    scored["nll"] = rounded(nll[:-1], 9)
    scored["perplexity"] = float(np.exp(np.mean(nll[:-1])))
    print("perplexity", scored["perplexity"], flush=True)
    values, scored["largest_ids"] = sample(last, rule["every"])
    kept.append(values)
    if rule["top"]:
        logs = log_softmax(model.logits(hidden))
        order = np.argsort(-logs, axis=1, kind="stable")[:, : rule["top"]]
        scored["top"] = rule["top"]
        scored["top_ids"] = write(f"{name}-top.u32", order, "<u4")
        scored["top_logprobs"] = write(f"{name}-top.f32", np.take_along_axis(logs, order, 1), "<f4")

    fixture = {
        "file_sha256": hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest(),
        "vocabulary": len(last),
        "every": rule["every"],
        "logits": write(f"{name}-logits.f32", np.stack(kept), "<f4"),
        "prompts": prompts,
        "scored": scored,
    }
    text = json.dumps(fixture, ensure_ascii=False, indent=1)
    # Lists of numbers go on one line.
    text = re.sub(r"\[[^\[\]{}\"]*\]", lambda found: re.sub(r"\s+", " ", found.group()), text)
    (HERE / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
