// API: requests to this server, and what went wrong in words.

const KEY = 'rocmforge.key';

// An error with words for people.
export class Problem extends Error {
  constructor(words, status = 0) {
    super(words);
    this.status = status;
  }
}

function stored(act) {
  // A browser may refuse to keep anything.
  try {
    return act(sessionStorage);
  } catch {
    return null;
  }
}

let key = stored((storage) => storage.getItem(KEY));

export function hasKey() {
  return Boolean(key);
}

// Uses a key from now on; an empty one is forgotten.
export function setKey(value) {
  key = value;
  stored((storage) => (value ? storage.setItem(KEY, value) : storage.removeItem(KEY)));
}

function words(error, status) {
  const said = typeof error?.message === 'string' ? error.message : '';
  if (error?.type === 'exceed_context_size_error') {
    return `The conversation has ${error.n_prompt_tokens} tokens, and the model takes ${error.n_ctx}. Begin a new chat, or ask a shorter question.`;
  }
  switch (status) {
    case 401:
      return key ? 'The server does not know this key.' : 'This server wants a key.';
    case 429:
      return `The server is busy. Try again in a moment. (${said || 'too many requests'})`;
    case 503:
      return `The server cannot answer now: ${said || 'it is not ready'}.`;
    default:
      return said ? `The server says: ${said}.` : `The server answered with an error (${status}).`;
  }
}

async function request(path, init = {}) {
  const headers = new Headers(init.headers);
  if (key) {
    headers.set('authorization', `Bearer ${key}`);
  }
  let response;
  try {
    response = await fetch(path, { ...init, headers, cache: 'no-store' });
  } catch (error) {
    if (error.name === 'AbortError') {
      throw error;
    }
    throw new Problem('The server does not answer. It may have ended, or the network is down.');
  }
  if (!response.ok) {
    const body = await response.json().catch(() => null);
    throw new Problem(words(body?.error, response.status), response.status);
  }
  return response;
}

// The JSON of a route.
export async function get(path) {
  const response = await request(path);
  return response.json().catch(() => {
    throw new Problem('The server answered with something that is no JSON.');
  });
}

// The chunks of an answer, one after another.
export async function* chat(body, signal) {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal };
  const response = await request('v1/chat/completions', init);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) {
        throw new Problem('The answer broke off before its end.');
      }
      const lines = (rest + value).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        if (!line.startsWith('data:')) {
          continue;
        }
        const data = line.slice('data:'.length).trim();
        if (data === '[DONE]') {
          return;
        }
        const chunk = JSON.parse(data);
        if (chunk.error) {
          throw new Problem(words(chunk.error, chunk.error.code), chunk.error.code);
        }
        yield chunk;
      }
    }
  } catch (error) {
    if (error instanceof Problem || error.name === 'AbortError') {
      throw error;
    }
    throw new Problem('The connection to the server broke off.');
  } finally {
    reader.cancel().catch(() => {});
  }
}
