#!/usr/bin/env python3
"""Scores a served model with lm-eval, and compares each log-likelihood with that of our library: run.py URL NAME PROGRAM MODEL.

PROGRAM is the example `loglikelihood` of rocmforge-models, MODEL the file that the server serves under NAME.
"""

import json
import os
import pathlib
import subprocess
import sys

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}

import lm_eval
from lm_eval.tasks import TaskManager

TASK = "rocmforge_questions"
# The server and the library may put a prompt into steps of other lengths.
TOLERANCE = 1e-4


def judge(url, name, **settings):
    """Rates and samples of lm-eval."""
    arguments = {"model": name, "base_url": f"{url}/v1/completions", "max_length": 512, **settings}
    here = pathlib.Path(__file__).resolve().parent
    os.chdir(here)
    manager = TaskManager(include_path=str(here), include_defaults=False)
    result = lm_eval.simple_evaluate("local-completions", model_args=arguments, tasks=[TASK], task_manager=manager, bootstrap_iters=0)
    return result["results"][TASK], result["samples"][TASK]


def direct(program, model, pairs):
    """Log-likelihoods of continuations, and whether each is what the model would draw, by our library."""
    lines = "".join(json.dumps({"context": context, "continuation": continuation}) + "\n" for context, continuation in pairs)
    done = subprocess.run([program, model], input=lines, capture_output=True, text=True, check=True)
    answers = map(json.loads, done.stdout.splitlines())
    return [(answer["loglikelihood"], answer["is_greedy"]) for answer in answers]


def main():
    url, name, program, model = sys.argv[1:]
    program, model = pathlib.Path(program).resolve(), pathlib.Path(model).resolve()
    reference = None
    for settings in [{}, {"batch_size": 4}, {"num_concurrent": 8}]:
        rates, samples = judge(url.rstrip("/"), name, **settings)
        pairs = [tuple(pair) for sample in samples for pair in sample["arguments"]]
        found = [tuple(answer) for sample in samples for answer in sample["filtered_resps"]]
        reference = reference or dict(zip(pairs, direct(program, model, pairs)))
        worst = max(abs(float(loglikelihood) - reference[pair][0]) for pair, (loglikelihood, _) in zip(pairs, found))
        greedy = sum(bool(is_greedy) != reference[pair][1] for pair, (_, is_greedy) in zip(pairs, found))
        right = 0
        for sample in samples:
            scores = [reference[tuple(pair)][0] for pair in sample["arguments"]]
            right += scores.index(max(scores)) == sample["target"]
        accuracy = right / len(samples)
        print(f"{settings}: acc {rates['acc,none']:.4f}, by the library {accuracy:.4f}; acc_norm {rates['acc_norm,none']:.4f}; "
              f"{len(pairs)} log-likelihoods, largest difference {worst:.2e}; {greedy} of is_greedy differ", flush=True)
        assert worst <= TOLERANCE and not greedy and abs(accuracy - rates["acc,none"]) < 1e-9
    print("ok")


main()
