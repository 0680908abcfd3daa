// Asks a running server through the clients of Node, and asserts that each reads the answers.
//
//     node clients.mjs http://127.0.0.1:8080 MODEL [KEY]

import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI from "openai";

const [url, model, apiKey = "none"] = process.argv.slice(2);
const messages = [{ role: "user", content: "Say hello." }];
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };

async function openai() {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
  const settings = { model, messages, max_tokens: 16, seed: 1 };
  const chat = await client.chat.completions.create(settings);
  assert(chat.choices[0].message.content);
  let text = "";
  for await (const chunk of await client.chat.completions.create({ ...settings, stream: true })) {
    text += chunk.choices[0]?.delta.content ?? "";
  }
  assert.equal(text, chat.choices[0].message.content);
  const response = await client.responses.create({ model, input: "Say hello.", max_output_tokens: 16, seed: 1 });
  const stream = client.responses.stream({ model, input: "Say hello.", max_output_tokens: 16, seed: 1 });
  assert.equal((await stream.finalResponse()).output[0].content[0].text, response.output_text);
  await assert.rejects(client.chat.completions.create({ model, messages: [] }), OpenAI.BadRequestError);
}

async function anthropic() {
  const client = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
  const settings = { model, messages, max_tokens: 16, seed: 1 };
  const message = await client.messages.create(settings);
  const streamed = await client.messages.stream(settings).finalMessage();
  assert.equal(streamed.content[0].text, message.content[0].text);
  assert.equal(streamed.stop_reason, message.stop_reason);
  assert((await client.messages.countTokens({ model, messages })).input_tokens > 0);
  await assert.rejects(
    client.messages.create({ ...settings, messages: [{ role: "user", content: [image] }] }),
    Anthropic.BadRequestError,
  );
}

async function ollama() {
  const client = new Ollama({ host: url, headers: { Authorization: `Bearer ${apiKey}` } });
  assert((await client.list()).models.some((known) => known.model === model));
  const settings = { model, messages, options: { seed: 1, num_predict: 16 } };
  const chat = await client.chat(settings);
  let text = "";
  for await (const part of await client.chat({ ...settings, stream: true })) {
    text += part.message.content;
  }
  assert(text);
  assert.equal(text, chat.message.content);
  const generated = await client.generate({ model, prompt: "The capital of France is", options: settings.options });
  assert(generated.response && generated.eval_count);
  assert((await client.ps()).models.some((running) => running.model === model));
  assert((await client.show({ model })).details.family);
  await assert.rejects(client.generate({ model, prompt: "The", suffix: "end" }), /suffix/);
  await assert.rejects(client.pull({ model: "x" }), { status_code: 403 });
}

for (const judge of [openai, anthropic, ollama]) {
  await judge();
  console.log(`ok      ${judge.name}`);
}
