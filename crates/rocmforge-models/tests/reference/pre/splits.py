"""Pieces of texts by each class of pre-tokenizers: the judge of `src/tokenizer/pre.rs`.

Writes splits.json: the texts, and for each class, under the first of its names, the lengths in characters of each text's pieces. The library
`tokenizers` makes them from the parts that stand in the models' own tokenizer.json. With the folder of llama.cpp's sources as argument its
splitting is compiled and counted beside it; `--count N` takes N random texts, `--seed S` others.
"""

import argparse
import json
import pathlib
import re
import subprocess
import tempfile

from tokenizers import Regex, pre_tokenizers
from tokenizers.pre_tokenizers import ByteLevel, Digits, Punctuation, Sequence, Split
from texts import texts

HERE = pathlib.Path(__file__).parent
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"


def split(*patterns):
    return Sequence([Split(Regex(pattern), "isolated") for pattern in patterns])


def words(word, number, symbols, contraction=CONTRACTION + "|"):
    return rf"{contraction}[^\r\n\p{{L}}\p{{N}}]?{word}+|{number}|{symbols}|\s*[\r\n]+|\s+(?!\S)|\s+"


def cased(number, tail=CONTRACTION + "?", han="", slash="/"):
    upper = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}" + han + "]"
    lower = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}" + han + "]"
    before = r"[^\r\n\p{L}\p{N}]?"
    return (
        rf"{before}{upper}*{lower}+{tail}|{before}{upper}+{lower}*{tail}|{number}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n{slash}]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


def byte_level():
    return ByteLevel(add_prefix_space=False, use_regex=True)


SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
LLAMA3 = words(r"\p{L}", r"\p{N}{1,3}", SYMBOLS)
QWEN2 = words(r"\p{L}", r"\p{N}", SYMBOLS)
O200K = cased(r"\p{N}{1,3}")
KANA = "[一-龥぀-ゟ゠-ヿ]+"
MARKED = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
)
DEEPSEEK3 = MARKED + r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LETTERS = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdb"
    "ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ"
    "𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
)
HAN = "[一-龥ࠀ-一가-퟿]+"
WORD = " ?[^(\\s|.,!?…。，、।۔،)]+"

# The first name of each class as llama.cpp writes it, with the parts of the original tokenizer.json.
CLASSES = {
    "gpt-2": byte_level(),
    "smollm": Sequence([Digits(individual_digits=True), byte_level()]),
    "llama-bpe": split(LLAMA3),
    "dbrx": split(LLAMA3),
    "glm4": split(LLAMA3),
    "qwen2": split(QWEN2),
    "qwen35": split(words(r"[\p{L}\p{M}]", r"\p{N}", r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*")),
    "laguna": split(r"[^\n]+|[\n]+", QWEN2),
    "ufakzeka": split(words(r"\p{L}", r"\p{N}", SYMBOLS, "")),
    "seed-coder": split(words(r"\p{L}", r"\p{N}{1}", r" ?[^\s\p{L}\p{N}\r\n]+")),
    "minicpm5": split(r"\p{N}{1,3}", words(r"\p{L}", r"\p{N}+", SYMBOLS)),
    "bailingmoe": split(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
    ),
    "exaone-moe": split(
        CONTRACTION
        + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
    ),
    "jais-2": split(
        CONTRACTION
        + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)"
        r"|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}"
    ),
    "gpt-4o": split(O200K),
    "granite-embed-multi-97m": split(O200K),
    "tekken": split(cased(r"\p{N}", "")),
    "tiny_aya": split(r"\d{1,3}(?=(?:\d{3})*\b)", O200K),
    "youtu": split(
        "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|" + KANA, cased(r"\p{N}")
    ),
    "kimi-k2": split(r"[\p{Han}]+|" + cased(r"\p{N}{1,3}", han=r"&&[^\p{Han}]", slash="")),
    "superbpe": split(r"\p{N}+", r"(?=(\d{3})+(?!\d))"),
    "deepseek-coder": split(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN, r"\p{N}"),
    "deepseek-llm": split(
        r"[\r\n]", rf"\s?[{LETTERS}]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", HAN, r"\p{N}+"
    ),
    "deepseek-v3": split(r"\p{N}{1,3}", KANA, DEEPSEEK3),
    "spark2_5": split(
        r"\p{N}{1,3}", KANA, MARKED + r"| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+", r"\p{N}"
    ),
    # Digits in groups of three from the right, as llama.cpp describes them; 豈 is U+F900.
    "afmoe": split(
        r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
        "[一-鿿㐀-䶿\uf900-\ufaff぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+",
        DEEPSEEK3,
    ),
    "falcon": Sequence([Punctuation("contiguous"), byte_level(), Split(Regex("[0-9][0-9][0-9]"), "isolated")]),
    # llama.cpp's own: no model's file has it.
    "default": split(
        r"[\p{P}\$\+<=>\^~\|]+",
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
        r"\p{N}+",
        "[0-9][0-9][0-9]",
    ),
    "bloom": split(WORD),
    "viking": split(WORD, r"\p{N}"),
    "chameleon": split(
        "<sentinel:[0-9]+>",
        "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
        r"([\t\n]|    |  )",
        r"\p{N}",
        r"[\p{P}!-/:-@\[-`{-~]",
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    ),
    "gemma4": split(r"[^\n]+|[\n]+"),
    "sarvam-moe": split(r"[^\n]+|[\n]+"),
}


def lengths(pre, text):
    return " ".join(str(end - start) for _, (start, end) in pre.pre_tokenize_str(text))


def names_of_llama(source):
    """Each name with llama.cpp's expressions."""
    vocab = (source / "src/llama-vocab.cpp").read_text()
    switch = vocab[vocab.index("struct llm_tokenizer_bpe :") :]
    expressions, cases = {}, []
    for line in switch[: switch.index("std::vector<std::string> regex_exprs;")].splitlines():
        line = re.sub(r"\s//.*", "", line)
        if found := re.search(r"(?:case LLAMA_VOCAB_PRE_TYPE_(\w+)|default):", line):
            cases.append(found[1] or "DEFAULT")
        elif found := re.match(r'\s+"(.*)",?\s*$', line):
            for case in cases:
                expressions.setdefault(case, []).append(json.loads('"' + found[1] + '"'))
        elif "break" in line:
            cases = []
    names, waiting = {}, []
    load = vocab[vocab.index('tokenizer_pre == "default"') :]
    for line in load[: load.index("unknown pre-tokenizer")].splitlines():
        waiting += re.findall(r'tokenizer_pre == "([^"]+)"', line)
        if found := re.search(r"pre_type = LLAMA_VOCAB_PRE_TYPE_(\w+)", line):
            names.update({name: expressions.get(found[1], []) for name in waiting})
            waiting = []
    return names


PROGRAM = r"""
#include "unicode.h"
#include <cstdio>
#include <string>
#include <vector>
static std::string next() {
    unsigned n = 0;
    if (scanf("%u%*c", &n) != 1) return "";
    std::string s(n, 0);
    if (fread(&s[0], 1, n, stdin) != n) return "";
    return s;
}
static int number() { int n = 0; return scanf("%d", &n) == 1 ? n : 0; }
int main() {
    int classes = number();
    std::vector<std::vector<std::string>> all(classes);
    for (auto & one : all) { one.resize(number()); for (auto & e : one) e = next(); }
    int count = number();
    std::vector<std::string> texts(count);
    for (auto & t : texts) t = next();
    for (auto & one : all) for (auto & t : texts) {
        const char * gap = "";
        for (auto & w : unicode_regex_split(t, one, false)) {
            size_t n = 0;
            for (unsigned char c : w) n += (c & 0xC0) != 0x80;
            if (n) { printf("%s%zu", gap, n); gap = " "; }
        }
        printf("\n");
    }
}
"""


def splits_of_llama(source, lists, all_texts):
    """Lengths of pieces for each list of expressions and each text."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "judge.cpp").write_text(PROGRAM)
        files = [folder / "judge.cpp", source / "src/unicode.cpp", source / "src/unicode-data.cpp"]
        program = folder / "judge"
        subprocess.run(["g++", "-O1", "-std=c++17", f"-I{source}/src", *files, "-o", program], check=True)

        def packed(text):
            data = text.encode()
            return str(len(data)).encode() + b" " + data + b"\n"

        job = f"{len(lists)}\n".encode()
        for one in lists:
            job += f"{len(one)}\n".encode() + b"".join(packed(expression) for expression in one)
        job += f"{len(all_texts)}\n".encode() + b"".join(packed(text) for text in all_texts)
        lines = subprocess.run([program], input=job, capture_output=True, check=True).stdout.decode().split("\n")
    count = len(all_texts)
    return [lines[at * count : (at + 1) * count] for at in range(len(lists))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("llama_cpp", nargs="?", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "splits.json")
    given = parser.parse_args()
    all_texts = texts(given.count, given.seed)
    classes = {name: [lengths(pre, text) for text in all_texts] for name, pre in CLASSES.items()}
    parts = [f'"texts": {json.dumps(all_texts)}', '"classes": {']
    parts[1] += ",\n".join(f"{json.dumps(name)}: {json.dumps(lists)}" for name, lists in classes.items()) + "}"
    given.out.write_text("{" + ",\n".join(parts) + "}\n")
    if given.llama_cpp:
        names = names_of_llama(given.llama_cpp)
        found = splits_of_llama(given.llama_cpp, [names[name] for name in CLASSES], all_texts)
        for (name, ours), theirs in zip(classes.items(), found):
            wrong = [at for at in range(len(all_texts)) if ours[at] != theirs[at]]
            print(f"{name:24} {len(all_texts) - len(wrong)} of {len(all_texts)} texts as llama.cpp splits them")
            for at in wrong[:2]:
                print(f"    {all_texts[at]!r}\n    {ours[at]}\n    {theirs[at]}")
        print(len(names), "names:", " ".join(sorted(names)))


if __name__ == "__main__":
    main()
