"""A tokenizer of a few words, as transformers reads it: tokenizer.py FOLDER."""

import sys

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

WORDS = "time people water house light paper music river stone garden winter summer letter morning city mountain".split()
vocabulary = {word: number for number, word in enumerate(["<unk>", "<s>", "</s>", *WORDS])}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
fast.save_pretrained(sys.argv[1])
