"""llama.cpp through PyPI's xllamacpp: tokens, and log-probabilities of the next token."""

import json
import urllib.request

import xllamacpp


class Server:
    """A server of xllamacpp in this process, on the CPU.

    `exact` asks for the most precise arithmetic: f32 KV cache, and no flash attention, which rounds to f16 on the way.
    """

    def __init__(self, path, context=1024, threads=2, exact=True, change=lambda params: None):
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = context
        params.n_parallel = 1
        params.n_gpu_layers = 0
        params.warmup = False
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        if exact:
            params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
            params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        change(params)
        self.inner = xllamacpp.Server(params)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        del self.inner

    def post(self, path, body):
        request = urllib.request.Request(
            self.inner.listening_address + path,
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def tokenize(self, text, parse_special, add_special=True):
        body = {"content": text, "add_special": add_special, "parse_special": parse_special}
        return self.post("/tokenize", body)["tokens"]

    def complete(self, ids, **options):
        return self.post("/completion", {"prompt": list(ids), "cache_prompt": False, **options})
