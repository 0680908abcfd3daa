"""Token ids by the `tokenizers` library, set up from a GGUF's vocabulary: an oracle for the two real models only.

Gemma's kind ("llama" in the file): byte-pair encoding whose merges are every split of a token into two tokens, best
score first. SmolLM2's kind ("gpt2"): byte-level BPE with the merges of the file, digits on their own, then GPT-2's split.
`check(...)` compares with llama.cpp's own tokenizer, through xllamacpp.
"""

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"


class Tokenizer:
    def __init__(self, meta):
        get = lambda name, default=None: meta.get(f"tokenizer.ggml.{name}", default)
        self.tokens, self.kinds = get("tokens"), get("token_type")
        vocab = {token: i for i, token in enumerate(self.tokens)}
        if (get("model"), get("pre")) == ("gpt2", "smollm"):
            merges = [(m[: m.index(" ", 1)], m[m.index(" ", 1) + 1 :]) for m in get("merges")]
            inner = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges))
            inner.pre_tokenizer = pre_tokenizers.Sequence(
                [
                    pre_tokenizers.Split(Regex(r"\p{N}"), "isolated"),
                    pre_tokenizers.Split(Regex(GPT2), "isolated"),
                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
                ]
            )
            inner.decoder = decoders.ByteLevel()
        elif get("model") == "llama":
            inner = tokenizers.Tokenizer(
                models.BPE(
                    vocab=vocab,
                    merges=self.merges_by_score(vocab, get("scores")),
                    byte_fallback=True,
                    fuse_unk=True,
                    unk_token=self.tokens[get("unknown_token_id", 0)],
                )
            )
            prefix = [normalizers.Prepend("\u2581")] if get("add_space_prefix", True) else []
            inner.normalizer = normalizers.Sequence(prefix + [normalizers.Replace(" ", "\u2581")])
            inner.decoder = decoders.Sequence(
                [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
            )
        else:
            raise ValueError("neither of the two tokenizers that this file knows")
        added = lambda kind: [
            AddedToken(t, normalized=False, special=kind == CONTROL)
            for t, k in zip(self.tokens, self.kinds)
            if k == kind
        ]
        inner.add_special_tokens(added(CONTROL))
        inner.add_tokens(added(USER_DEFINED))
        self.inner = inner
        self.bos = get("bos_token_id") if get("add_bos_token", get("model") == "llama") else None

    def merges_by_score(self, vocab, scores):
        found = []
        for token, kind in zip(self.tokens, self.kinds):
            if kind != NORMAL:
                continue
            score = scores[vocab[token]]
            for cut in range(1, len(token)):
                left, right = token[:cut], token[cut:]
                if left in vocab and right in vocab:
                    found.append((-score, vocab[left], vocab[right], left, right))
        found.sort(key=lambda merge: merge[:3])
        return [merge[3:] for merge in found]

    def encode(self, text, parse_special, add_special=True):
        """parse_special: `<|im_end|>` in the text is that token, not its letters. add_special: BOS where the file asks."""
        self.inner.encode_special_tokens = not parse_special
        ids = self.inner.encode(text, add_special_tokens=False).ids
        return ([self.bos] if add_special and self.bos is not None else []) + ids


def check(path, cases):
    """Asserts that llama.cpp gives the same ids for each (text, parse_special, ids)."""
    from llamacpp import Server

    with Server(path) as server:
        for text, parse_special, ids in cases:
            theirs = server.tokenize(text, parse_special)
            assert theirs == ids, (text, ids, theirs)
