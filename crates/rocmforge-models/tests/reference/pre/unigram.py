"""Ids of llama.cpp for a Unigram vocabulary: unigram.json.

    unigram.py LLAMA_CPP_SOURCE LIBLLAMA_SO GGML_VOCAB_NOMIC_BERT_MOE_GGUF [RANDOM_TEXTS]
"""

import json
import pathlib
import sys

import llama_vocab
from splits import HERE
from texts import texts

MORE = ["", " ", "a", " a", "a ", "  a   b  ", "a\n\nb\tc", "</s>", "<mask> x", "ﬁ ① ㌔ Å ｶﾞ", "▁a ▁", "a<unk>b", "x" * 40, "naïve café"]


def main():
    source, library, file = (pathlib.Path(given) for given in sys.argv[1:4])
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 40
    all_texts = MORE + texts(count, seed=3)
    (_, _, ids), = llama_vocab.read(source, library, [file], all_texts)
    cases = [{"text": text, "ids": found} for text, found in zip(all_texts, ids)]
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (HERE / "unigram.json").write_text("[\n" + lines + "\n]\n")


if __name__ == "__main__":
    main()
