#!/usr/bin/env python3
"""Runs coding agents that others wrote against a server, and shows what each asks and what it gets: run.py URL MODEL AGENT=PROGRAM ...

AGENT is aider, codex or opencode, PROGRAM its command. Between agent and server stands a proxy on this machine that records. Each agent runs twice:
as it is, and with the proxy leaving out the fields of --without. An answer must be a success, or an error 4xx.
"""

import argparse
import http.client
import http.server
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import urllib.parse

PROMPT = "Say hello. Change no file."
NO_COLOURS = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")


class Proxy(http.server.ThreadingHTTPServer):
    """Passes requests to the server, and keeps a line about each."""

    def __init__(self, target, without):
        super().__init__(("127.0.0.1", 0), Handler)
        self.target, self.without, self.seen = urllib.parse.urlsplit(target), without, []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def pass_on(self):
        proxy = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fields = {}
        try:
            fields = json.loads(body) if body else {}
        except ValueError:
            pass
        names = sorted(name for name, value in fields.items() if value not in (None, [], {}))
        if left_out := [name for name in proxy.without if name in fields]:
            body = json.dumps({name: value for name, value in fields.items() if name not in left_out}).encode()
        connection = http.client.HTTPConnection(proxy.target.netloc, timeout=300)
        skipped = ("host", "content-length", "connection", "accept-encoding", "transfer-encoding")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in skipped}
        connection.request(self.command, self.path, body, headers)
        answer = connection.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "connection", "transfer-encoding", "date", "server"):
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        whole = b""
        while part := answer.read1(65536):
            whole += part
            self.wfile.write(part)
            self.wfile.flush()
        self.close_connection = True
        proxy.seen.append((self.command, self.path, names, left_out, answer.status, whole))

    do_GET = do_POST = do_DELETE = do_HEAD = do_PUT = pass_on


def aider(program, url, model, folder):
    options = ["--no-check-update", "--no-show-model-warnings", "--no-analytics", "--no-gitignore", "--no-detect-urls", "--no-auto-commits", "--yes-always"]
    options += ["--map-tokens", "0", "--model", f"openai/{model}", "--openai-api-base", f"{url}/v1", "--openai-api-key", "none", "--message", PROMPT]
    return [program, *options], {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def codex(program, url, model, folder):
    home = folder / "codex"
    home.mkdir()
    (home / "config.toml").write_text(
        f'model = "{model}"\nmodel_provider = "here"\ncheck_for_update_on_startup = false\n'
        f'[model_providers.here]\nname = "here"\nbase_url = "{url}/v1"\nwire_api = "responses"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
        "[analytics]\nenabled = false\n"
    )
    return [program, "exec", "--skip-git-repo-check", PROMPT], {"CODEX_HOME": str(home)}


def opencode(program, url, model, folder):
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{url}/v1", "apiKey": "none"}, "models": {model: {}}}
    config = {"provider": {"here": provider}, "enabled_providers": ["here"], "autoupdate": False, "share": "disabled", "small_model": f"here/{model}"}
    names = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"]
    environment = {f"OPENCODE_DISABLE_{name}": "1" for name in names} | {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}
    return [program, "run", "--model", f"here/{model}", PROMPT], environment


def short(body):
    """What an answer says: the error, or the text of a stream or of a whole answer."""
    body = body.decode(errors="replace")
    if error := re.search(r'"message": ?"((?:[^"\\]|\\.)*)"', body):
        return error[1][:200]
    deltas = re.findall(r'"(?:content|delta)": ?"((?:[^"\\]|\\.)*)"', body)
    return "".join(deltas)[:60] or body[:60].replace("\n", " ")


def run(agent, program, url, model, without, seconds):
    proxy = Proxy(url, without)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        work = folder / "work"
        work.mkdir()
        (work / "a.txt").write_text("nothing\n")
        command, environment = {"aider": aider, "codex": codex, "opencode": opencode}[agent](program, proxy.url, model, folder)
        home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "XDG_DATA_HOME": str(folder / "data"), "DO_NOT_TRACK": "1"}
        subprocess.run(["git", "init", "-q"], cwd=work, check=True)
        full = {name: value for name, value in os.environ.items() if not name.endswith(("_KEY", "_TOKEN"))} | home | environment
        try:
            done = subprocess.run(command, cwd=work, env=full, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
            ended, output = f"exit status {done.returncode}", done.stdout + done.stderr
        except subprocess.TimeoutExpired as error:
            ended, output = f"stopped after {seconds} s", (error.stdout or b"") + (error.stderr or b"")
    proxy.shutdown()
    print(f"## {agent}, " + (f"without {', '.join(without)}" if without else "as it is") + f": {ended}")
    bad = not proxy.seen
    for method, path, names, left_out, status, body in proxy.seen:
        print(f"{method} {path}: {status}  {short(body)}\n    fields: {', '.join(names)}")
        bad |= status >= 500 or status < 200
    if bad or ended != "exit status 0":
        print("    the agent says: " + NO_COLOURS.sub(b"", output).decode(errors="replace").strip()[-600:].replace("\n", "\n        "))
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("agents", nargs="+")
    parser.add_argument("--without", default="tools,tool_choice,parallel_tool_calls")
    parser.add_argument("--seconds", type=int, default=120, help="longest time of an agent")
    args = parser.parse_args()
    bad = False
    for agent in args.agents:
        name, _, program = agent.partition("=")
        for without in ([], args.without.split(",")):
            bad |= run(name, program or name, args.url.rstrip("/"), args.model, without, args.seconds)
    raise SystemExit(bad)


main()
