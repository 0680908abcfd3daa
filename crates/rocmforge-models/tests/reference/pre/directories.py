"""Ids by the library `tokenizers` for parts of tokenizer.json as the models' own files have them: directories.json, the judge of
`src/tokenizer/huggingface.rs`. Vocabulary and texts are those of ids.json, apart from the cases that have their own.
"""

import json

from ids import BYTES, vocabulary
from splits import CLASSES, HERE
from texts import HAND
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.pre_tokenizers import Metaspace, Sequence, Split

SPLIT = ["llama-bpe", "qwen2", "qwen35", "gpt-4o", "tekken", "deepseek-v3", "kimi-k2", "youtu", "superbpe", "afmoe", "bloom", "bailingmoe"]
WITH_BYTES = ["gpt-2", "smollm", "falcon"]
MARK = "\u2581"


def raw_vocabulary():
    """Characters of the texts, bytes, and merges over texts with marks for spaces."""
    learner = Tokenizer(models.BPE(unk_token="<unk>"))
    learner.normalizer = normalizers.Replace(" ", MARK)
    special = ["<unk>", "<s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=special, limit_alphabet=90, show_progress=False)
    learner.train_from_iterator(HAND, trainer)
    model = json.loads(learner.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


def raw(normalizer, pre, decoder):
    vocab, merges = raw_vocabulary()
    made = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer, made.decoder = normalizer, decoder
    if pre is not None:
        made.pre_tokenizer = pre
    return made


def unigram(pre):
    learner = Tokenizer(models.Unigram())
    learner.pre_tokenizer = pre
    trainer = trainers.UnigramTrainer(vocab_size=400, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    learner.train_from_iterator(HAND[:1] * 9 + HAND, trainer)
    model = json.loads(learner.to_str())["model"]
    made = Tokenizer(models.Unigram([tuple(entry) for entry in model["vocab"]], unk_id=0))
    made.pre_tokenizer, made.decoder = pre, decoders.Metaspace()
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    return made


def main():
    tokens, merges = vocabulary()
    vocab = {token: at for at, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ")) for merge in merges]
    fallback = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()])
    stripped = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    all_cases = {}
    for name in SPLIT + WITH_BYTES:
        made = Tokenizer(models.BPE(vocab=vocab, merges=pairs, ignore_merges=name in ("llama-bpe", "tekken")))
        made.pre_tokenizer = Sequence([CLASSES[name], BYTES]) if name in SPLIT else CLASSES[name]
        made.decoder = decoders.ByteLevel()
        all_cases[name] = made
    for name, normal in [("NFC", normalizers.NFC()), ("NFKC", normalizers.NFKC())]:
        made = Tokenizer(models.BPE(vocab=vocab, merges=pairs))
        made.normalizer, made.pre_tokenizer = normal, Sequence([CLASSES["qwen2"], BYTES])
        made.decoder = decoders.ByteLevel()
        all_cases[name] = made
    replace = normalizers.Replace(" ", MARK)
    all_cases["gemma"] = raw(replace, Split(" ", "merged_with_previous"), fallback)
    all_cases["llama-2"] = raw(normalizers.Sequence([normalizers.Prepend(MARK), replace]), None, stripped)
    all_cases["mistral"] = raw(None, Metaspace(replacement=MARK, prepend_scheme="first", split=False), stripped)
    all_cases["xlm-roberta"] = unigram(Sequence([pre_tokenizers.WhitespaceSplit(), Metaspace()]))
    cases = []
    for name, made in all_cases.items():
        file = json.loads(made.to_str())
        if file["model"].get("vocab") == vocab:
            del file["model"]["vocab"], file["model"]["merges"]
        encoded = [made.encode(text, add_special_tokens=False).ids for text in HAND]
        cases.append({"name": name, "file": file, "ids": encoded, "texts": [made.decode(ids, skip_special_tokens=False) for ids in encoded]})
        again = [at for at, text in enumerate(HAND) if cases[-1]["texts"][at] == text]
        if len(again) == len(HAND):
            del cases[-1]["texts"]
        print(f"{name:12} {sum(map(len, encoded))} ids, {len(again)} texts come back")
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (HERE / "directories.json").write_text("[\n" + lines + "\n]\n")


if __name__ == "__main__":
    main()
