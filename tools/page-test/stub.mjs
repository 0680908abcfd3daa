// Stub: a server with the real page, and answers that the tests have thought out.

import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const PAGE = new URL('../../crates/rocmforge-server/src/page/', import.meta.url);
const GIB = 2 ** 30;

/// Files and headers as the program has them.
function program() {
  const source = readFileSync(new URL('mod.rs', PAGE), 'utf8');
  const policy = /const POLICY: &str = "([^"]*)"/.exec(source)[1].replace(/\\\n\s*/g, '');
  const rows = [...source.matchAll(/\(\s*"(\/[^"]*)",\s*"([^"]*)",\s*include_str!\("([^"]*)"\),?\s*\)/g)];
  return { policy, files: new Map(rows.map(([, path, type, name]) => [path, { type, name }])) };
}

export const TEXTS = {
  rich: [
    '## How a card shares its memory\n\nA language model has **weights**, which never change, and a *cache*, which grows with the conversation. ',
    'The desktop wants its part, too:\n\n1. weights are loaded once,\n2. the cache takes what is left,\n   - in blocks of 16 tokens,\n   - and gives them back;\n',
    '3. the desktop keeps its share.\n\n| part | size | changes |\n|:--|--:|:-:|\n| weights | 9.1 GiB | no |\n| cache | 4.0 GiB | yes |\n\n',
    '```python\ndef fits(weights, cache, budget):\n    """Whether a model fits into what this program may hold."""\n    return weights + cache <= budget\n```\n\n',
    'Call `fits` before you load. More is in [the documents](https://example.org/memory).',
  ],
  hostile: [
    '# <script>alert(1)</script>\n\n<img src=x onerror=alert(2)> and <svg onload=alert(3)>\n\n',
    '[a](javascript:alert(4)) [b](JaVaScRiPt:alert(5)) [c](data:text/html,<script>alert(6)</script>) [d](//evil.example) [e](vbscript:x) ',
    '[f](&#106;avascript:alert(7)) [g](java\tscript:alert(8)) [h](https://example.org/" onmouseover="alert(9)) <javascript:alert(10)>\n\n',
    '![i](javascript:alert(11)) ![picture](https://example.org/x.png) <https://example.org/plain>\n\n',
    '| <b>x</b> | <iframe src=javascript:alert(12)> |\n|--|--|\n| <a href="javascript:alert(13)">y</a> | `<script>` |\n\n',
    '```"><script>alert(14)</script>\n</code></pre><script>alert(15)</script>\n```\n',
  ],
  plain: ['The answer is **plain**. ', 'It has two sentences.'],
};

export class Stub {
  requests = [];
  /// Requests for `/memory`.
  reads = 0;
  /// Answers that a client has left.
  left = 0;
  key = null;
  pause = 5;
  models = [
    { id: 'smollm2', object: 'model', status: { value: 'loaded' } },
    { id: 'qwen3-8b', object: 'model', status: { value: 'unloaded' } },
  ];
  memory = {
    cards: [
      {
        id: '0000:03:00.0',
        name: 'AMD Radeon RX 7900 XTX',
        total: 24 * GIB,
        budget: 20.6 * GIB,
        own: 14.4 * GIB,
        others: 1.9 * GIB,
        headroom: 1.5 * GIB,
      },
    ],
    models: [
      {
        model: 'qwen3-8b',
        device: 'AMD Radeon RX 7900 XTX',
        cards: ['0000:03:00.0'],
        weight_bytes: 9.1 * GIB,
        cache_bytes: 4 * GIB,
        cache_tokens: 29_184,
        cache_blocks: 1824,
        cache_blocks_used: 670,
        cache_blocks_kept: 211,
      },
    ],
  };

  async start() {
    this.program = program();
    this.server = createServer((request, response) => {
      this.#answer(request, response).catch((error) => response.destroy(error));
    });
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.address = `http://127.0.0.1:${this.server.address().port}/`;
    return this;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async #answer(request, response) {
    const path = new URL(request.url, this.address).pathname;
    const file = this.program.files.get(path);
    if (file) {
      response.writeHead(200, { 'content-type': file.type, 'content-security-policy': this.program.policy, 'x-content-type-options': 'nosniff' });
      return response.end(readFileSync(new URL(file.name, PAGE)));
    }
    const json = (status, value) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(value));
    };
    const fail = (status, message, more) => json(status, { error: { message, type: 'x', code: status, ...more } });
    if (this.key && request.headers.authorization !== `Bearer ${this.key}`) {
      return fail(401, 'Invalid API Key');
    }
    switch (path) {
      case '/v1/models':
        return json(200, { object: 'list', data: this.models });
      case '/memory':
        this.reads += 1;
        return json(200, this.memory);
      case '/v1/chat/completions':
        break;
      default:
        return fail(404, 'there is no such route');
    }
    let body = '';
    for await (const part of request) {
      body += part;
    }
    body = JSON.parse(body);
    this.requests.push(body);
    const question = body.messages.at(-1).content;
    if (question.includes('busy')) {
      return fail(429, '8 requests with this key are open');
    }
    if (question.includes('too long')) {
      return fail(400, 'too long', { type: 'exceed_context_size_error', n_prompt_tokens: 5000, n_ctx: 2048 });
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    let isOver = false;
    response.on('close', () => (this.left += isOver ? 0 : 1));
    const event = (value) => response.write(`data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`);
    const chunk = (delta, more = {}) => event({ choices: [{ index: 0, delta, finish_reason: null, ...more.choice }], ...more.chunk });
    chunk({ role: 'assistant', content: '' });
    if (question.includes('wait')) {
      await sleep(400);
    }
    if (question.includes('think')) {
      for (const word of 'First I look at the *question*. Then I answer.'.split(/(?= )/)) {
        chunk({ reasoning_content: word });
        await sleep(this.pause);
      }
    }
    const name = Object.keys(TEXTS).find((key) => question.includes(key));
    const pieces = question.includes('count') ? Array.from({ length: 400 }, (_, at) => `${at} `) : TEXTS[name ?? 'plain'].flatMap((text) => text.match(/[\s\S]{1,6}/g));
    for (const [at, content] of pieces.entries()) {
      if (response.destroyed) {
        return;
      }
      chunk({ content });
      // Pieces of bytes that end anywhere must come together again.
      await sleep(this.pause);
      if (at === 5 && question.includes('break off')) {
        return response.destroy();
      }
      if (at === 5 && question.includes('device is lost')) {
        event({ error: { message: 'the device is lost', type: 'server_error', code: 500 } });
        isOver = true;
        return response.end();
      }
    }
    const timings = { cache_n: 8, prompt_n: 24, prompt_ms: 20, predicted_n: pieces.length - 1, predicted_ms: (pieces.length - 1) * 24, predicted_per_second: 41.7 };
    chunk({}, { choice: { finish_reason: question.includes('longest') ? 'length' : 'stop' }, chunk: { timings } });
    event({ choices: [], usage: { prompt_tokens: 32, completion_tokens: pieces.length, prompt_tokens_details: { cached_tokens: 8 } } });
    event('[DONE]');
    isOver = true;
    response.end();
  }
}
