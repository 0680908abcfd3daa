#!/usr/bin/env python3
"""Time from the start to the first token, and peak memory, of programs with the same model, in turns: start.py MODEL.gguf NAME=COMMAND...

In COMMAND `{model}` and `{prompt}` are replaced. A program computes the prompt and one token, writes it and ends. A COMMAND with `{port}` is a server: it
is asked for one token as soon as it is ready, and ends at SIGTERM, which does not count; the time of a program is that to the first byte it writes. One run of each is not counted: it brings the file into the
system's cache. Memory is the largest resident set that the kernel counted for the process, pages of the model's file among it.
"""

import argparse
import json
import os
import shlex
import signal
import socket
import statistics
import subprocess
import threading
import time
import urllib.request

PROMPT = "The capital of France is"
# No run takes longer, in seconds.
LIMIT = 120


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def ask(port, begun):
    """The text of one token, when the server is ready."""
    address = f"http://127.0.0.1:{port}"
    while True:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=LIMIT):
                break
        except OSError:
            assert time.perf_counter() - begun < LIMIT, "the server is not ready"
            time.sleep(0.005)
    body = {"model": "", "prompt": PROMPT, "max_tokens": 1, "temperature": 0}
    with urllib.request.urlopen(f"{address}/v1/models", timeout=LIMIT) as models:
        body["model"] = json.load(models)["data"][0]["id"]
    request = urllib.request.Request(f"{address}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=LIMIT) as answer:
        return json.load(answer)["choices"][0]["text"]


def once(command, model):
    """Seconds to the first token, peak memory in MB, seconds of processor time, and what was written."""
    port = free_port()
    is_server = any("{port}" in part for part in command)
    command = [part.replace("{model}", model).replace("{prompt}", PROMPT).replace("{port}", str(port)) for part in command]
    output = subprocess.DEVNULL if is_server else subprocess.PIPE
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL)
    # A program that hangs ends, and with it the reads and waits below.
    limit = threading.Timer(LIMIT, process.kill)
    limit.start()
    try:
        if is_server:
            written, seconds = ask(port, begun), time.perf_counter() - begun
            process.send_signal(signal.SIGTERM)
        else:
            first = process.stdout.read(1)
            seconds = time.perf_counter() - begun
            written = (first + process.stdout.read()).decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        process.kill()
        raise
    finally:
        limit.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in ((0, -signal.SIGTERM) if is_server else (0,)), f"{shlex.join(command)} ended with {process.returncode}"
    return seconds, usage.ru_maxrss * 1024 / 1e6, usage.ru_utime + usage.ru_stime, written


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("programs", nargs="+", metavar="NAME=COMMAND")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    commands = {name: shlex.split(command) for name, _, command in (program.partition("=") for program in args.programs)}
    runs = {name: [] for name in commands}
    for number in range(args.rounds + 1):
        for name, command in commands.items():
            run = once(command, args.model)
            if number:
                runs[name].append(run)
            else:
                print(f"{name}: {run[3].strip()[-60:]!r}")
    first = None
    print("| | start to the first token, s | of the first row | processor time, s | peak memory, MB | of the first row |\n|---|---:|---:|---:|---:|---:|")
    for name, of in runs.items():
        seconds, memory, processor = (statistics.median(run[part] for run in of) for part in (0, 1, 2))
        least, most = min(run[0] for run in of), max(run[0] for run in of)
        first = first or (seconds, memory)
        print(f"| {name} | {seconds:.2f} ({least:.2f} to {most:.2f}) | {seconds / first[0]:.2f} | {processor:.2f} | {memory:.0f} | {memory / first[1]:.2f} |")


if __name__ == "__main__":
    main()
