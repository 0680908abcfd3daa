#!/usr/bin/env python3
"""Soak test: many clients, aborts, malformed requests and several models in turns, with each text compared with the one computed alone.

    soak.py [OPTIONS] -- rocmforge serve -m MODEL -m MODEL ...

It starts the server on a free port, and ends it. The models need no chat templates. The exit status is 1 if a text was wrong, a request stuck, an
answer unexpected, or the server did not end by itself.
"""

import argparse
import asyncio
import collections
import json
import math
import random
import re
import sys
import time

from client import Closed, Connection, percentile
from server import Server

PROMPTS = ["The capital of France is", "Once upon a time", "The capital of Italy is", "1, 2, 3,", "a b c d e f g h i j k l m n o p " * 4]
# Seconds after which a request counts as stuck.
STUCK = 120
# Difference of log-probabilities below which rounding may choose another token.
CLOSE = 0.02
# Seconds after which the server must hold no more than its budget, when a desktop has taken memory.
GIVES_WAY = 10
# Bytes that each engine keeps on a card when all of its parts are on the host: flags of its kernels.
KEPT = 64 << 10
# Part of the cases with drawn texts that may differ by rounding: how close a draw was is not known.
DRAWN_OTHERWISE = 0.1


class Soak:
    def __init__(self, args, server):
        self.args, self.server = args, server
        self.counts, self.gaps, self.pressure, self.over = collections.Counter(), [], [], [0.0]
        self.problems, self.cases = [], collections.defaultdict(set)
        self.expected, self.close = {}, {}
        self.begun = time.monotonic()

    def problem(self, kind, text):
        self.counts[kind] += 1
        if len(self.problems) < 20:
            self.problems.append(f"{kind}: {text}")
            print(self.problems[-1], flush=True)

    def case(self, case):
        model, prompt, seed, tokens = case
        # Seed 0 stands for the most likely tokens.
        return {"model": model, "prompt": PROMPTS[prompt], "seed": seed, "max_tokens": tokens, "temperature": 0.8 if seed else 0}

    async def whole(self, case, **more):
        async with Connection(self.server.address) as connection:
            await connection.send("POST", "/v1/completions", self.case(case) | more)
            status, _ = await connection.head()
            answer = json.loads(await connection.body())
            return status, answer["choices"][0]["text"] if status == 200 else answer, answer

    async def references(self):
        """Each text computed alone, on a server that does nothing else."""
        for model in self.server.models:
            for prompt in range(len(PROMPTS)):
                for seed in range(self.args.seeds):
                    case = (model, prompt, seed, random.choice([1, 8, 24, 64]))
                    status, text, answer = await self.whole(case, logprobs=2)
                    assert status == 200, (case, text)
                    self.expected[case] = text
                    logprobs = answer["choices"][0]["logprobs"]
                    best = [sorted(top.values(), reverse=True) for top in logprobs["top_logprobs"]]
                    self.close[case] = [(offset, top[0] - top[1]) for offset, top in zip(logprobs["text_offset"], best) if len(top) == 2]

    def take(self):
        """A case of the model whose turn it is, seldom of another."""
        models = self.server.models
        turn = int((time.monotonic() - self.begun) / self.args.turn) % len(models)
        model = models[turn] if random.random() > self.args.others else random.choice(models)
        return random.choice([case for case in self.expected if case[0] == model])

    def refused(self, status, answer):
        """Whether the server had no room, which it may say."""
        if status in (429, 503):
            self.counts[f"refused {status}"] += 1
            return True
        if status != 200:
            self.problem("unexpected", f"{status} {answer}")
        return status != 200

    async def check_whole(self):
        case = self.take()
        status, text, _ = await self.whole(case)
        if not self.refused(status, text):
            self.compare(case, text, text == self.expected[case])
        return status

    def compare(self, case, text, is_equal):
        """Judges a text by the one computed alone. Batches change rounding (docs/models.md, what repeats), and a choice that was close may change."""
        self.counts["  texts" if case[2] else "  texts, greedy"] += 1
        if is_equal:
            return
        expected = self.expected[case]
        same = next((at for at, (a, b) in enumerate(zip(text, expected)) if a != b), min(len(text), len(expected)))
        at, gap = next((token for token in reversed(self.close[case]) if token[0] <= same), (0, 0.0))
        if case[2]:
            self.counts["other texts"] += 1
            self.cases[case].add(text)
        elif any(gap < CLOSE for offset, gap in self.close[case] if at - 3 <= offset <= same + 1):
            self.counts["other texts, greedy, close"] += 1
        else:
            self.problem("wrong text", f"{case}: {text!r}, alone {expected!r}: they differ at {same}, where the choice was clear by {gap:.3f}")

    async def check_stream(self, aborts):
        case = self.take()
        async with Connection(self.server.address) as connection:
            await connection.send("POST", "/v1/completions", self.case(case) | {"stream": True})
            status, headers = await connection.head()
            if status != 200:
                self.refused(status, await connection.body())
                return status
            text, last = "", None
            leaves_after = random.randrange(0, case[3]) if aborts else math.inf
            async for event in connection.events():
                if "error" in event:
                    self.problem("unexpected", f"{case}: {event}")
                    return status
                text += event["choices"][0]["text"]
                now = time.monotonic()
                if last is not None and event["choices"][0]["text"]:
                    self.gaps.append(now - last)
                last = now
                leaves_after -= 1
                if leaves_after <= 0:
                    break
            expected = self.expected[case]
            self.compare(case, text, expected.startswith(text) if aborts else text == expected)
        return status

    async def abort_whole(self):
        async with Connection(self.server.address) as connection:
            await connection.send("POST", "/v1/completions", self.case(self.take()), rest=random.choice([0.5, 1.0]))
            await asyncio.sleep(random.random() * 0.05)

    async def malformed(self):
        model, several = self.server.models[0], len(self.server.models) > 1
        body = {"model": model, "prompt": "a", "max_tokens": 2}
        wrong = random.choice([
            (400, b"{"), (400, b"[1]"), (400, b'{"a":' * 500), (400, b"\xff\xfe\x00"), (400, b""),
            (400, body | {"temperature": "hot"}), (400, body | {"n": 10**9}), (400, body | {"prompt": []}), (400, body | {"prompt": [-1]}),
            (400, body | {"prompt": [10**9]}), (400, body | {"logprobs": 10**6}), (400, body | {"tools": [{}]}), (400, body | {"stop": ["x"] * 1000}),
            (400, body | {"prompt": "word " * 20_000}), (404, body | {"model": "x" * 5000}),
            (404 if several else 200, body | {"model": "../../etc/passwd"}),
        ])
        path, method, media_type = "/v1/completions", "POST", "application/json"
        if random.random() < 0.2:
            wrong, media_type = (415, body), "text/plain"
        elif random.random() < 0.2:
            wrong, path = (404, body), "/v1/../nothing"
        elif random.random() < 0.2:
            wrong, method = (405, body), "DELETE"
        async with Connection(self.server.address) as connection:
            await connection.send(method, path, wrong[1], media_type)
            status, _ = await connection.head()
            answer = await connection.body()
        if status not in (wrong[0], 429, 503):
            self.problem("unexpected", f"{status} in place of {wrong[0]} for {method} {path} {str(wrong[1])[:100]}: {answer[:300]}")
        return status

    async def garbage(self):
        async with Connection(self.server.address) as connection:
            junk = random.choice([b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9.9\r\n\r\n", b"A" * 100_000, b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 5000 + b"\r\n"])
            connection.writer.write(junk)
            try:
                await connection.writer.drain()
                connection.writer.write_eof()
                answer = await connection.reader.read()
            except OSError:
                return
            if answer and not answer.startswith(b"HTTP/1.1 4"):
                self.problem("unexpected", f"an answer to garbage: {answer[:200]}")

    async def look(self):
        path = random.choice(["/health", "/metrics", "/v1/models", "/ready", "/memory", "/api/ps", "/props", "/"])
        async with Connection(self.server.address) as connection:
            await connection.send("GET", path)
            status, _ = await connection.head()
            answer = await connection.body()
            if status != 200 and not (path == "/props" and status == 404 and len(self.server.models) > 1):
                self.problem("unexpected", f"{status} of {path}: {answer[:200]}")
        if path == "/memory" and status == 200:
            over = self.read_over(answer)
            self.pressure += over
            if any(over):
                await self.gives_way()
        return status

    @staticmethod
    def read_over(answer):
        """Whether the server holds more of each card than its budget."""
        answer = json.loads(answer)
        return [card["own"] > card["budget"] + KEPT * len(answer["models"]) for card in answer["cards"]]

    async def gives_way(self):
        """A desktop has taken memory: the next steps give it back."""
        begun = time.monotonic()
        while (waited := time.monotonic() - begun) < GIVES_WAY:
            await asyncio.sleep(0.02)
            async with Connection(self.server.address) as connection:
                await connection.send("GET", "/memory")
                await connection.head()
                if not any(self.read_over(await connection.body())):
                    self.over.append(waited)
                    return
        self.problem("over budget", f"more than the budget is held for {waited:.1f} s")

    async def moves(self):
        """How often parts of models went to the host, and came back."""
        async with Connection(self.server.address) as connection:
            await connection.send("GET", "/metrics")
            await connection.head()
            text = (await connection.body()).decode()
        sums = collections.Counter()
        for name, value in re.findall(r"^rocmforge_(spills|returns)_total\{.*\} (\d+)$", text, re.MULTILINE):
            sums[name] += int(value)
        return sums["spills"], sums["returns"]

    async def client(self):
        kinds = {
            "whole": (self.check_whole, 4), "stream": (lambda: self.check_stream(False), 6), "stream, left": (lambda: self.check_stream(True), 3),
            "whole, left": (self.abort_whole, 2), "malformed": (self.malformed, 2), "garbage": (self.garbage, 1), "look": (self.look, 2),
        }
        names, weights = list(kinds), [weight for _, weight in kinds.values()]
        while time.monotonic() - self.begun < self.args.seconds and self.server.process.returncode is None:
            name = random.choices(names, weights)[0]
            self.counts["requests"] += 1
            self.counts[f"  {name}"] += 1
            try:
                status = await asyncio.wait_for(kinds[name][0](), STUCK)
                if status in (429, 503):
                    await asyncio.sleep(random.random() * 0.5)
            except asyncio.TimeoutError:
                self.problem("stuck", name)
            except (Closed, OSError, asyncio.IncompleteReadError) as error:
                self.problem("unexpected", f"{name}: the connection ended: {error!r}")
            # Now and then nobody asks this model, so that it can be unloaded.
            await asyncio.sleep(random.random() * self.args.pause)

    async def idle(self):
        """Waits until no request is open."""
        for _ in range(STUCK * 5):
            async with Connection(self.server.address) as connection:
                await connection.send("GET", "/health")
                await connection.head()
                health = json.loads(await connection.body())
            if not any(model["open_requests"] for model in health["models"]):
                return
            await asyncio.sleep(0.2)
        self.problem("stuck", f"open requests without clients: {health}")


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seeds", type=int, default=4, help="texts for each prompt and model")
    parser.add_argument("--turn", type=float, default=10, help="seconds for which most requests name the same model")
    parser.add_argument("--others", type=float, default=0.02, help="part of the requests that name any model")
    parser.add_argument("--pause", type=float, default=0.05, help="longest pause of a client between requests, in seconds")
    parser.add_argument("--moves", type=int, default=0, help="fewest parts of models that must go to the host, and come back")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("command", nargs="+", help="the server, with its options")
    args = parser.parse_args()
    random.seed(args.seed)
    print(f"seed {args.seed}", flush=True)
    server = await Server.start([*args.command, "--port", "0"])
    if server.address is None:
        sys.exit("the server did not start:\n" + "\n".join(server.log))
    soak = Soak(args, server)
    await soak.references()
    # All models were loaded once, and buffers have their sizes.
    start = server.figures()
    soak.begun = time.monotonic()
    clients = [asyncio.create_task(soak.client()) for _ in range(args.clients)]
    reports = 0
    while not all(client.done() for client in clients):
        await asyncio.wait(clients, timeout=1)
        minutes = int((time.monotonic() - soak.begun) / 60)
        if minutes > reports and server.process.returncode is None:
            reports = minutes
            rss, handles, threads = server.figures()
            print(f"{minutes} min: {soak.counts['requests']} requests, {rss / 1024:.1f} MiB, {handles} handles, {threads} threads", flush=True)
    await asyncio.gather(*clients)
    await soak.idle()
    # Connections that ended are noticed.
    await asyncio.sleep(2)
    end = server.figures()
    spills, returns = await soak.moves()
    if min(spills, returns) < args.moves:
        soak.problem("unexpected", f"{spills} spills and {returns} returns, and {args.moves} of each were wanted")
    status = await server.stop()
    if status != 0:
        soak.problem("unexpected", f"the server ended with {status}:\n" + "\n".join(server.log))
    for name, count in sorted(soak.counts.items(), key=lambda item: (item[0] != "requests", item[0])):
        print(f"{name:16} {count}")
    drawn = sum(case[2] != 0 for case in soak.expected)
    print(f"drawn texts: {len(soak.cases)} of {drawn} cases were at some time other than alone")
    if len(soak.cases) > drawn * DRAWN_OTHERWISE:
        soak.problem("wrong text", f"of {len(soak.cases)} of {drawn} cases: {list(soak.cases.items())[:3]}")
    print(f"texts compared with those alone: {len(soak.expected)} cases; wrong {soak.counts['wrong text']}, stuck {soak.counts['stuck']}, unexpected {soak.counts['unexpected']}")
    print(f"time between tokens: p50 {percentile(soak.gaps, 0.5) * 1e3:.2f} ms, p99 {percentile(soak.gaps, 0.99) * 1e3:.2f} ms, most {max(soak.gaps, default=math.nan) * 1e3:.2f} ms of {len(soak.gaps)}")
    print(f"models loaded {server.loads} times")
    if soak.pressure:
        over = sum(soak.pressure)
        print(f"budget of the card: looked at {len(soak.pressure)} times, {over} times smaller than what was held, at most for {max(soak.over):.2f} s")
        print(f"parts of models: {spills} went to the host, {returns} came back")
    for line in server.log:
        if line.startswith("desktop: "):
            print(line)
    for name, (rss, handles, threads) in (("start", start), ("end", end)):
        print(f"at the {name}: {rss / 1024:.1f} MiB resident, {handles} handles, {threads} threads")
    sys.exit(bool(soak.problems))


if __name__ == "__main__":
    asyncio.run(main())
