"""Ids by llama.cpp for each name of a pre-tokenizer that it knows: ids.json, the judge of the table of names.

    ids.py LLAMA_CPP_SOURCE LIBLLAMA_SO

A vocabulary of bytes and of merges over texts that nothing has split, so that ids show where a text is split. Texts in which llama.cpp's way of
splitting differs from that of the model's own file (see splits.py) are left out for that name.
"""

import json
import pathlib
import sys
import tempfile

import llama_vocab
from splits import CLASSES, HERE, names_of_llama
from texts import HAND, texts
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
MERGES = 700
# Tokens that no merges make: only a piece that is taken whole becomes one.
WHOLE = ["Hello", "world", "\u0120three", "123", "bom"]
# Not in the byte alphabet.
RAW = {"gemma4", "sarvam-moe", "granite-embed-multi-311m", "whitespace"}


def vocabulary():
    """Tokens and merges."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = BYTES
    trainer = trainers.BpeTrainer(vocab_size=256 + MERGES, initial_alphabet=alphabet, show_progress=False)
    learner.train_from_iterator(texts(300, seed=2), trainer)
    model = json.loads(learner.to_str())["model"]
    tokens = [token for token, _ in sorted(model["vocab"].items(), key=lambda entry: entry[1])]
    merges = [" ".join(merge) if isinstance(merge, list) else merge for merge in model["merges"]]
    return tokens + [token for token in WHOLE if token not in model["vocab"]] + ["<s>"], merges


def by_hugging_face(tokens, merges, pre, whole):
    pairs = [tuple(merge.split(" ")) for merge in merges]
    vocab = {token: at for at, token in enumerate(tokens)}
    made = Tokenizer(models.BPE(vocab=vocab, merges=pairs, ignore_merges=whole))

    def ids(text):
        result = []
        for _, (start, end) in pre.pre_tokenize_str(text):
            made.pre_tokenizer = BYTES
            result += made.encode(text[start:end]).ids
        return result

    return ids


def main():
    source, library = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    names = {name: rules for name, rules in sorted(names_of_llama(source).items()) if name not in RAW}
    tokens, merges = vocabulary()
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name in names:
            path = f"{folder}/{name}.gguf"
            types = [1] * (len(tokens) - 1) + [3]
            ids = [("tokenizer.ggml.bos_token_id", len(tokens) - 1), ("tokenizer.ggml.eos_token_id", len(tokens) - 1)]
            llama_vocab.write(path, "gpt2", tokens, types, merges=merges, pre=name, more=ids)
            files.append(path)
        found = llama_vocab.read(source, library, files, HAND)
    groups = []
    for (name, rules), answer in zip(names.items(), found):
        if answer is None:
            print(f"{name}: llama.cpp refuses it")
            continue
        bos, _, ids = answer
        same = [first for first in CLASSES if first not in RAW and names[first] == rules]
        judges = [by_hugging_face(tokens, merges, CLASSES[first], whole) for first in same for whole in (False, True)]
        kept = [text if any(judge(HAND[at]) == text for judge in judges) else None for at, text in enumerate(ids)]
        print(f"{name:24} class {same[:1]}, {sum(text is not None for text in kept)} of {len(HAND)} texts")
        group = next((group for group in groups if group["bos"] == (bos >= 0) and group["ids"] == kept), None)
        if group is None:
            groups.append({"names": [name], "bos": bos >= 0, "ids": kept})
        else:
            group["names"].append(name)
    lines = ",\n".join(json.dumps(group, separators=(",", ":")) for group in groups)
    head = f'"tokens": {json.dumps(tokens)},\n"merges": {json.dumps(merges)},\n"texts": {json.dumps(HAND)},\n'
    (HERE / "ids.json").write_text("{" + head + '"groups": [\n' + lines + "\n]}\n")


if __name__ == "__main__":
    main()
