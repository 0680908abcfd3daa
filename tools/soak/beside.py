#!/usr/bin/env python3
"""Throughput of two servers with the same model and the same clients, in turns: beside.py MODEL.gguf LLAMA_SERVER ROCMFORGE.

Each client sends its requests one after another; answers are greedy and go on to their last token. A round is one server from start to end, without
its loading and one request that warms it up.
"""

import argparse
import asyncio
import pathlib
import shlex
import socket
import statistics
import time

from client import Closed, Connection, percentile

WORDS = "time people water house light paper music river stone garden winter summer letter morning city mountain window story bread forest".split()


def prompt(client, number, words):
    """A text that no other request begins with."""
    step = 1 + (client * 7 + number * 3) % len(WORDS)
    return f"{client} {number}: " + " ".join(WORDS[(client + number + step * place) % len(WORDS)] for place in range(words))


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


async def ask(address, model, text, tokens):
    """Time to the first token, the gaps after it, the numbers of tokens."""
    body = {"model": model, "prompt": text, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True}
    body |= {"stream_options": {"include_usage": True}, "cache_prompt": False}
    begun = last = time.perf_counter()
    first, gaps, usage = None, [], None
    async with Connection(address) as connection:
        await connection.send("POST", "/v1/completions", body)
        status, _ = await connection.head()
        assert status == 200, await connection.body()
        async for event in connection.events():
            usage = event.get("usage") or usage
            if not event["choices"] or event["choices"][0]["finish_reason"]:
                continue
            now = time.perf_counter()
            if first is None:
                first = now - begun
            else:
                gaps.append(now - last)
            last = now
    assert usage["completion_tokens"] == tokens, usage
    return first, gaps, usage["prompt_tokens"], tokens


async def measure(command, address, model, args):
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                async with Connection(address) as connection:
                    await connection.send("GET", "/health")
                    if (await connection.head())[0] == 200:
                        break
            except (OSError, Closed):
                assert process.returncode is None, f"{command} ended"
            await asyncio.sleep(0.1)
        await ask(address, model, "warm up", 4)

        async def client(number):
            return [await ask(address, model, prompt(number, request, args.words), args.tokens) for request in range(args.requests)]

        begun = time.perf_counter()
        answers = [answer for answers in await asyncio.gather(*map(client, range(args.clients))) for answer in answers]
        seconds = time.perf_counter() - begun
    finally:
        process.terminate()
        await process.wait()
    gaps = [gap for answer in answers for gap in answer[1]]
    return {
        "tokens/s": sum(answer[3] for answer in answers) / seconds,
        "prompt + answer tokens/s": sum(answer[2] + answer[3] for answer in answers) / seconds,
        "first token, s": statistics.median(answer[0] for answer in answers),
        "between tokens p50, ms": percentile(gaps, 0.5) * 1e3,
        "p99, ms": percentile(gaps, 0.99) * 1e3,
    }


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("llama_server")
    parser.add_argument("rocmforge")
    parser.add_argument("--ours", default="", help="further options of rocmforge serve, as one text")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=2, help="of each client")
    parser.add_argument("--tokens", type=int, default=64, help="of each answer")
    parser.add_argument("--words", type=int, default=48, help="of each prompt")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--context", type=int, default=512, help="tokens of each sequence")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    port = free_port()
    address, name, number = ("127.0.0.1", port), args.model.name.removesuffix(".gguf"), str
    theirs = [args.llama_server, "-m", number(args.model), "--port", number(port), "--parallel", number(args.clients), "-c", number(args.clients * args.context)]
    theirs += ["-t", number(args.threads), "-tb", number(args.threads), "--no-webui", "--cache-ram", "0"]
    ours = [args.rocmforge, "serve", "-m", number(args.model), "--device", "cpu", "--port", number(port), "--parallel", number(args.clients)]
    ours += ["--ctx", number(args.context), "--threads", number(args.threads), *shlex.split(args.ours)]
    rounds = {"llama-server": [], "rocmforge": []}
    for _ in range(args.rounds):
        for server, command in (("llama-server", theirs), ("rocmforge", ours)):
            rounds[server].append(await measure(command, address, name, args))
            print(server, {name: round(value, 2) for name, value in rounds[server][-1].items()}, flush=True)
    middle = {server: {name: statistics.median(one[name] for one in all) for name in all[0]} for server, all in rounds.items()}
    print("\n| | " + " | ".join(middle["rocmforge"]) + " |\n|---|" + "---:|" * len(middle["rocmforge"]))
    for server, values in middle.items():
        print(f"| {server} | " + " | ".join(f"{value:.2f}" for value in values.values()) + " |")
    print(f"\nours / theirs, tokens/s: {middle['rocmforge']['tokens/s'] / middle['llama-server']['tokens/s']:.2f}")


asyncio.run(main())
