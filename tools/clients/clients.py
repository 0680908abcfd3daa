"""Asks a running server through the clients that others wrote, and asserts that each reads the answers.

    python clients.py http://127.0.0.1:8080 MODEL [KEY]
"""

import asyncio
import os
import subprocess
import sys

# Without these litellm fetches a list of prices, and langchain reports to its makers.
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGCHAIN_TRACING_V2": "false", "DO_NOT_TRACK": "1"}

import anthropic
import litellm
import ollama
import openai
from langchain_openai import ChatOpenAI

# Cases of llm-comply that need what the server does not have.
ABSENT = {"tool-calling", "image-input"}
litellm.suppress_debug_info = True
ASK = [{"role": "user", "content": "Say hello."}]
LONG = [{"role": "user", "content": "word " * 200_000}]


def openai_python(url, model, key):
    client = openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0)
    assert model in [known.id for known in client.models.list()]

    settings = {"model": model, "messages": ASK, "max_tokens": 16, "seed": 1}
    chat = client.chat.completions.create(**settings, logprobs=True, top_logprobs=2)
    choice = chat.choices[0]
    assert choice.message.role == "assistant" and choice.message.content and choice.message.refusal is None
    assert len(choice.logprobs.content[0].top_logprobs) == 2
    assert chat.usage.total_tokens == chat.usage.prompt_tokens + chat.usage.completion_tokens
    chunks = list(client.chat.completions.create(**settings, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == choice.message.content, (text, choice.message.content)
    assert chunks[-1].usage.completion_tokens == chat.usage.completion_tokens

    settings = {"model": model, "prompt": "The capital of France is", "max_tokens": 8, "seed": 1}
    completion = client.completions.create(**settings)
    assert completion.choices[0].text
    text = "".join(chunk.choices[0].text for chunk in client.completions.create(**settings, stream=True))
    assert text == completion.choices[0].text

    settings = {"model": model, "input": "Say hello.", "max_output_tokens": 16, "extra_body": {"seed": 1}}
    response = client.responses.create(**settings)
    assert response.output_text and response.usage.output_tokens
    with client.responses.stream(**settings) as stream:
        deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
    assert "".join(deltas) == response.output_text

    expect(openai.BadRequestError, lambda: client.chat.completions.create(model=model, messages=[]))
    expect(openai.BadRequestError, lambda: client.chat.completions.create(model=model, messages=LONG))
    expect(openai.BadRequestError, lambda: client.responses.create(model=model, input="x", previous_response_id="r"))
    expect(openai.NotFoundError, lambda: client.responses.retrieve("resp_1"))


async def openai_async(url, model, key):
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key=key, max_retries=0) as client:
        calls = [client.chat.completions.create(model=model, messages=ASK, max_tokens=8, seed=1) for _ in range(4)]
        answers = await asyncio.gather(*calls)
        assert len({answer.choices[0].message.content for answer in answers}) == 1
        # A client that goes away in the middle of a stream.
        stream = await client.chat.completions.create(model=model, messages=ASK, stream=True)
        await anext(stream)
        await stream.close()


def anthropic_python(url, model, key):
    client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
    settings = {"model": model, "messages": ASK, "max_tokens": 16, "system": "Be brief.", "extra_body": {"seed": 1}}
    message = client.messages.create(**settings)
    assert message.content[0].text and message.stop_reason in ("end_turn", "max_tokens")
    usage = message.usage
    with client.messages.stream(**settings) as stream:
        text = "".join(stream.text_stream)
        last = stream.get_final_message()
    assert text == message.content[0].text == last.content[0].text
    assert last.usage.output_tokens == usage.output_tokens
    count = client.messages.count_tokens(model=model, messages=ASK, system="Be brief.").input_tokens
    assert count == usage.input_tokens + usage.cache_read_input_tokens

    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    for messages in ([], LONG, [{"role": "user", "content": [image]}]):
        error = expect(
            anthropic.BadRequestError,
            lambda: client.messages.create(model=model, max_tokens=8, messages=messages),
        )
        assert error.body["error"]["type"] == "invalid_request_error"


def ollama_python(url, model, key):
    client = ollama.Client(host=url, headers={"Authorization": f"Bearer {key}"})
    assert model in [known.model for known in client.list().models]
    options = {"seed": 1, "num_predict": 16}
    chat = client.chat(model, ASK, options=options)
    assert chat.message.role == "assistant" and chat.message.content and chat.done and chat.eval_count
    parts = list(client.chat(model, ASK, options=options, stream=True))
    assert "".join(part.message.content for part in parts) == chat.message.content
    assert parts[-1].done and parts[-1].eval_count == chat.eval_count and parts[-1].done_reason == chat.done_reason
    generated = client.generate(model, "The capital of France is", options=options)
    assert generated.response and generated.total_duration
    parts = client.generate(model, "The capital of France is", options=options, stream=True)
    assert "".join(part.response for part in parts) == generated.response
    assert model in [running.model for running in client.ps().models]
    shown = client.show(model)
    assert shown.details.family and "completion" in shown.capabilities

    wanted = [
        (404, lambda: client.chat("no-such-model", ASK)),
        (400, lambda: client.generate(model, "The", suffix="end")),
        (400, lambda: client.chat(model, LONG)),
        (403, lambda: client.pull("x")),
        (403, lambda: client.delete(model)),
    ]
    for status, call in wanted:
        error = expect(ollama.ResponseError, call)
        assert error.status_code == status and error.error, error


async def ollama_async(url, model, key):
    client = ollama.AsyncClient(host=url, headers={"Authorization": f"Bearer {key}"})
    calls = [client.chat(model, ASK, options={"seed": 1, "num_predict": 8}) for _ in range(4)]
    assert len({answer.message.content for answer in await asyncio.gather(*calls)}) == 1
    # A client that goes away in the middle of a stream.
    async for _ in await client.chat(model, ASK, stream=True):
        break


def litellm_python(url, model, key):
    for provider, base in (("openai", url + "/v1"), ("anthropic", url), ("ollama_chat", url)):
        settings = {"model": f"{provider}/{model}", "api_base": base, "api_key": key, "messages": ASK, "max_tokens": 16}
        answer = litellm.completion(**settings)
        assert answer.choices[0].message.content and answer.usage.completion_tokens
        chunks = litellm.completion(**settings, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        expect(litellm.BadRequestError, lambda: litellm.completion(**settings | {"messages": LONG}))


def langchain(url, model, key):
    settings = {"base_url": url + "/v1", "api_key": key, "model": model, "max_tokens": 16}
    for responses in (False, True):
        chat = ChatOpenAI(**settings, use_responses_api=responses)
        answer = chat.invoke([("system", "Be brief."), ("user", "Say hello.")])
        assert answer.text and answer.usage_metadata["output_tokens"]
        assert "".join(chunk.text for chunk in chat.stream("Say hello."))


def expect(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def llm_comply(url, model, key):
    program = os.path.join(os.path.dirname(sys.executable), "llm-comply")
    for api in ("openai-chat", "anthropic", "open-responses"):
        names = subprocess.run([program, "--list", "--format", api], capture_output=True, text=True, check=True).stdout
        prefix = {"openai-chat": "chat-", "anthropic": "anth-", "open-responses": ""}[api]
        cases = [word for line in names.splitlines() for word in line.split()[:1]]
        wanted = [case for case in cases if case.removeprefix(prefix) not in ABSENT]
        command = [program, "-u", url + "/v1", "-k", key, "-m", model, "--format", api, "-f", ",".join(wanted)]
        # A small model may not come to an end in time, with other random numbers at each run.
        for _ in range(3):
            done = subprocess.run(["timeout", "60", *command], capture_output=True, text=True)
            if done.returncode == 0:
                break
        assert done.returncode == 0, done.stdout
        print(f"    {api}: {done.stdout.strip().splitlines()[-1]}", flush=True)


def openai_embeddings(url, model, key):
    client = openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0)
    texts = ["A cat sits outside.", "A feline rests outdoors.", "The price rose."]
    # The client asks for base64 unless it is told not to.
    packed = client.embeddings.create(model=model, input=texts)
    plain = client.embeddings.create(model=model, input=texts, encoding_format="float")
    assert [entry.index for entry in packed.data] == [0, 1, 2]
    for one, other in zip(packed.data, plain.data):
        assert max(abs(a - b) for a, b in zip(one.embedding, other.embedding)) < 1e-6
        assert abs(sum(value * value for value in one.embedding) - 1) < 1e-3
    assert packed.usage.total_tokens == packed.usage.prompt_tokens > len(texts)
    width = len(plain.data[0].embedding)
    assert len(client.embeddings.create(model=model, input=texts[0], dimensions=width).data) == 1
    expect(openai.BadRequestError, lambda: client.embeddings.create(model=model, input=texts, dimensions=width - 1))
    expect(openai.BadRequestError, lambda: client.embeddings.create(model=model, input="word " * 100_000))
    expect(openai.BadRequestError, lambda: client.chat.completions.create(model=model, messages=ASK))


def ollama_embed(url, model, key):
    client = ollama.Client(host=url, headers={"authorization": f"Bearer {key}"})
    answer = client.embed(model=model, input=["A cat sits outside.", "The price rose."])
    old = client.embeddings(model=model, prompt="A cat sits outside.")
    assert len(answer.embeddings) == 2 and len(answer.embeddings[0]) == len(old.embedding)
    assert answer.prompt_eval_count > 2
    assert "embedding" in client.show(model).capabilities
    expect(ollama.ResponseError, lambda: client.chat(model=model, messages=ASK))


def main():
    url, model, *key = sys.argv[1:]
    key = key[0] if key else "none"
    failed = False
    models = openai.OpenAI(base_url=url.rstrip("/") + "/v1", api_key=key).models.list()
    kind = next((known.model_extra["kind"] for known in models if known.id == model), None)
    judges = (
        openai_python,
        openai_async,
        anthropic_python,
        ollama_python,
        ollama_async,
        litellm_python,
        langchain,
        llm_comply,
    )
    if kind == "embedding":
        judges = (openai_embeddings, ollama_embed)
    for judge in judges:
        try:
            result = judge(url.rstrip("/"), model, key)
            if asyncio.iscoroutine(result):
                asyncio.run(result)
            print(f"ok      {judge.__name__}")
        except Exception as error:
            failed = True
            print(f"FAILED  {judge.__name__}: {type(error).__name__}: {error}")
    sys.exit(failed)


main()
