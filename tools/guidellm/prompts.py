"""Prompts, one JSON object a line: prompts.py NUMBER."""

import json
import sys

WORDS = "time people water house light paper music river stone garden winter summer letter morning city mountain".split()
for number in range(int(sys.argv[1])):
    words = " ".join(WORDS[(number * 5 + place * (1 + number % 7)) % len(WORDS)] for place in range(8 + number % 40))
    print(json.dumps({"prompt": f"{number}: {words}"}))
