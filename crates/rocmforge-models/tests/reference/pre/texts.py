"""Texts that pre-tokenizers split in different ways: by hand, and random ones from a seed."""

import random

HAND = [
    "Hello world",
    "I'm you're WE'VE they'll he'd don't IT'S 'tis ''s 'S x'Tx 'RE's",
    "\u017fs '\u017f a'\u017f b'\u017fc",
    "1 12 123 1234 12345 123456 1234567 a1 1a 12a 1234a 1234_ 12.345,678 3\u00bd \u00bd4567 \u0661\u0662\u0663\u0664\u0665 \u2167 \u00b23\u00b9",
    "  two  spaces   three    four\ttab\t\ttabs \t mixed\n",
    "\n\n\n a\n b\r\nc\r\n\r\n  \n  \n\nd \n",
    "trailing   ",
    "trailing\n\n",
    "   ",
    "\u00a0nbsp\u00a0\u00a0two \u2003em\u3000wide\u2028line\u2029par\u0085next\u200bzero\u180emongol\ufeffbom",
    "caf\u00e9 cafe\u0301 e\u0301\u0302x \u0301start n\u0303o \u0915\u094d\u0937\u093f \u0e01\u0e33\u0e25\u0e31\u0e07 \u05e9\u05b8\u05dc\u05d5\u05b9\u05dd",
    "CamelCase camelCASE XMLHttpRequest \u00c9cole \u00e9COLE \u0416\u0443\u043a \u0436\u0423\u041a \u03a3\u03c3\u03c2 \u01c5\u01c6 \u02b0\u02b0a \u10d0\u10b0 \u1c90",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u4eca\u65e5\u306f\u30ab\u30bf\u30ab\u30ca\u30fc \uff76\uff85 \ud55c\uad6d\uc5b4 \u1100\u1161 \u3105\u3106 \u3131 \u2f00 \U00020000\U0002f800 \uf900 abc\u4e2d\u6587def \u4e2d1\u6587 \u3005\u3007",
    "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f 1\ufe0f\u20e3 \U0001f44d\U0001f3fd!!",
    "!!! ... ?!? --- === /* c */ // path/to/file.rs a/b\n/c \n/ ;/\n/\n",
    "$100 + 5% = \u20ac105 <tag> a^b `code` ~x|y \u00ac \u00b1\u00d7 \u2211 a\u00b7b \u00ab\u00bb \u201cq\u201d \u2026\u2014\u2013",
    "#include <a.h>\n\tfor (int i = 0; i < 10; ++i) {\n\t\tx[i]='\\n';\n\t}\n",
    '{"k": [1, 2.5e-3, null], "s": "a\\"b"}',
    "!a $b #C \"d &e -f .g @H [i \\j ]k ^l _m `n {o }p ~q !\u00e9 a!b",
    "(a) , b ( c | d ( e.f !g \u3001h\u3002 \u0964i \u06d4j \u060ck",
    "<sentinel:12> <sentinel:x> IMGIMGABZ IMGIMGABCDEZ a  b    c\td",
    "A B C a b c \u00e9 \u00e8 d1 e f  g",
    "x" + " " * 3 + "y" + " " * 5 + "z" + " " * 21 + "w" + " " * 33 + "\n" + " " * 70,
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0651\u0629\u060c \u0661\u0662\u0663 \u06f1\u06f2\u06f3\u06f4 \u0939\u093f\u0928\u094d\u0926\u0940 \u0967\u0968\u0969\u096a \u1019\u103c\u1014\u103a\u1019\u102c \u17d7\u1781\u17d2\u1798\u17c2\u179a \u0eb2",
    "\x00\x01\x1f \x7f\x80 \ufffd \ue000 \U000e0001",
    "https://example.org/?q=1&r=%20#x user@mail.example v1.2.3-rc4 0x1F 1e10 1_000_000 12:34:56",
    "\u0130\u0131\u00df\u1e9e \ufb01 \u212a\u212b \u01c4\u01c5\u01c6 \u00aa\u00ba \u1d2c\u02b0 \u24d0\u2160",
    "T\u00fcrkiye'nin Ankara'da o'nun",
    "\u00be1234\u00be 123\u00be456 \u216012\u2160 \u0661234 12\u0663\u06645",
]

ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "0123456789",
    "0123456789\u0661\u0968\u00bd\u2167\u00b2",
    " ",
    " \t\n\r",
    " \n\u00a0\u2003\u3000\u2028\u0085\u000b",
    "'\u2019",
    "'",
    "stmdreveSTllLLdD",
    "!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~",
    "/\n\r",
    "\u00e9\u00df\u00c9\u00d1\u0436\u0416\u03c3\u03a3\u0130\u017f",
    "\u01c5\u01c8\u1f88\u02b0\u1d2c\u3005\u30fc\u00aa",
    "\u0301\u0302\u0e31\u094d\u093f\u20dd\u0488",
    "\u4f60\u597d\u4e16\u754c\u9fa5\u9fff\u3400\U00020000\uf900",
    "\u3042\u30a2\u30fc\u3041\uff76\ud55c\uae00\uac00\u3131\u3105\u0e01\u0e81\u1780\u1000",
    "\uff0c\u3002\u3001\u2026\u201c\u2019\u00a7\u00b7\u20ac\u00d7\u2211",
    "\U0001f600\U0001f468\u200d\ufe0f\U0001f1e9\U0001f3fd",
    "\u0627\u0628\u05d0\u0915\u1019\u10d0\u10b0",
    "\x00\x1f\x7f\ue000\ufffd\u200b\u00ad",
]


def random_texts(count, seed):
    pick = random.Random(seed)
    texts = []
    for _ in range(count):
        parts = []
        for _ in range(pick.randint(1, 12)):
            letters = pick.choice(ALPHABETS)
            parts.append("".join(pick.choice(letters) for _ in range(pick.choice([1, 1, 1, 2, 3, 4, 7]))))
        texts.append("".join(parts))
    return texts


def texts(count, seed=1):
    return HAND + random_texts(count, seed)
