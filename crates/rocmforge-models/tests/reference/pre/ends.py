"""Tokens that end a generation by llama.cpp, for vocabularies with each text that it knows: ends.json, the judge of `src/tokenizer/end.rs`.

    ends.py LLAMA_CPP_SOURCE LIBLLAMA_SO
"""

import json
import pathlib
import re
import sys
import tempfile

import llama_vocab
from splits import HERE
from tokenizers import pre_tokenizers

CONTROL, USER, NORMAL = 3, 4, 1
BASE = sorted(pre_tokenizers.ByteLevel.alphabet()) + ["ab", "<own-end>"]
FAMILIES = [
    ["<|return|>", "<|call|>", "<|end|>", "<|endoftext|>"],
    ["<|return|>", "<|end|>"],
    ["<|call|>", "<|end|>"],
    ["<|calls|>", "<|flush|>", "<|end|>", "<|endoftext|>"],
    ["<|return|>", "<|calls|>", "<|end|>"],
    ["<|flush|>", "<|end|>"],
    ["<eos>", "<turn|>", "<|tool_response>", "</s>"],
    ["[EOS]", "[EOT]", "[PAD]", "<|im_end|>"],
    ["<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|im_end|>", "<|endoftext|>"],
    ["<reponame>", "<fim_pad>", "<|end_of_text|>"],
    ["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"],
]
KEYS = ["eot", "eom", "fim_pad", "fim_rep", "fim_sep", "fim_pre", "fim_suf", "fim_mid"]


def main():
    source, library = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    text = (source / "src/llama-vocab.cpp").read_text()
    part = text[text.index("special_fim_pad_id == LLAMA_TOKEN_NULL") : text.index("quick hack for gpt-oss")]
    names = list(dict.fromkeys(re.findall(r't\.first == "([^"]+)"', part)))
    cases = [{"tokens": [[name, kind]], "keys": {}} for name in names for kind in (CONTROL, USER, NORMAL)]
    cases += [{"tokens": [[name, CONTROL] for name in family], "keys": {}} for family in FAMILIES]
    cases += [{"tokens": [["<named>", CONTROL]], "keys": {key: len(BASE)}} for key in KEYS]
    # A key counts, not a text beside it.
    cases += [
        {"tokens": [["<named>", CONTROL], [name, CONTROL]], "keys": {key: len(BASE)}}
        for key, name in [("fim_pad", "<|fim_pad|>"), ("fim_rep", "<|repo_name|>"), ("fim_sep", "<|file_sep|>"), ("eom", "<|eom_id|>")]
    ]
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for at, case in enumerate(cases):
            tokens = BASE + [name for name, _ in case["tokens"]]
            types = [NORMAL] * (len(BASE) - 1) + [CONTROL] + [kind for _, kind in case["tokens"]]
            keys = {**case["keys"], "eos": len(BASE) - 1, "bos": len(BASE) - 1}
            more = [(f"tokenizer.ggml.{key}_token_id", value) for key, value in keys.items()]
            files.append(f"{folder}/{at}.gguf")
            llama_vocab.write(files[-1], "gpt2", tokens, types, merges=["a b"], pre="gpt-2", more=more)
        found = llama_vocab.read(source, library, files, [])
    for case, (_, ends, _) in zip(cases, found):
        case["ends"] = [(BASE + [name for name, _ in case["tokens"]])[end] for end in ends]
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    (HERE / "ends.json").write_text(f'{{"base": {json.dumps(BASE)},\n"cases": [\n{lines}\n]}}\n')
    print(len(cases), "cases,", len(names), "names")


if __name__ == "__main__":
    main()
