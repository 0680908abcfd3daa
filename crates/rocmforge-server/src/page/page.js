// Page: the conversation, its settings, and what the buttons do.

import { Problem, chat, get, hasKey, setKey } from './api.js';
import { copyButton, element, show, spoken } from './markdown.js';
import { Picture } from './memory.js';

const KEEP = 'rocmforge.chat';
const CLOSED = 'The page was closed before the answer ended.';
const SAMPLER = ['temperature', 'top_p', 'top_k', 'min_p', 'max_tokens', 'seed'];
// How often a running answer is kept, and spoken by screen readers.
const KEEP_EVERY = 1000;
const SPEAK_EVERY = 2500;
// Someone who reads further up is left there.
const NEAR_END = 80;

const $ = (id) => document.getElementById(id);
const main = $('conversation');
const question = $('question');

let state = kept();
// The nodes of each message.
let views = [];
// Ends the answer that runs.
let running = null;
let unloaded = new Set();
// Comes true when the models are known.
let learned;

// What is kept of an earlier visit. Others may have written there, so nothing is taken on trust.
function kept() {
  let value;
  try {
    value = JSON.parse(localStorage.getItem(KEEP));
  } catch {
    value = null;
  }
  const text = (part) => (typeof part === 'string' ? part : '');
  const message = (part) => ({
    role: part.role,
    content: text(part.content),
    reasoning: text(part.reasoning),
    model: text(part.model),
    note: text(part.note),
    problem: text(part.problem),
    stats: text(part.stats),
  });
  const isMessage = (part) => part?.role === 'user' || part?.role === 'assistant';
  const messages = Array.isArray(value?.messages) ? value.messages.filter(isMessage).map(message) : [];
  const sampler = SAMPLER.map((name) => [name, value?.sampler?.[name]]).filter(([, number]) => Number.isFinite(number));
  return { messages, system: text(value?.system), model: text(value?.model), sampler: Object.fromEntries(sampler) };
}

function keep() {
  // If this page is closed now, the next one finds the running answer as it is.
  const unfinished = (_, part) => (running && part === running.message ? { ...part, note: CLOSED } : part);
  try {
    localStorage.setItem(KEEP, JSON.stringify(state, unfinished));
  } catch {
    notice('This browser does not keep the conversation: its store is full or closed.');
  }
}

function notice(text, button) {
  $('notice').replaceChildren(text, ...(button ? [' ', button] : []));
}

function speak(text) {
  $('spoken').textContent = text;
}

// ---- Messages ----

function view(message) {
  const isUser = message.role === 'user';
  const title = element('h2', { className: 'unseen' }, 'Question');
  const body = element('div', { className: 'text' });
  const node = element('article', { className: message.role }, title);
  const nodes = { node, title, body };
  if (isUser) {
    body.textContent = message.content;
    node.append(body);
  } else {
    nodes.summary = element('summary');
    nodes.thoughts = element('div', { className: 'text' });
    nodes.thinking = element('details', { hidden: true }, nodes.summary, nodes.thoughts);
    nodes.wait = element('p', { className: 'wait', hidden: true });
    nodes.note = element('p', { className: 'note', hidden: true });
    nodes.problem = element('p', { className: 'problem', hidden: true });
    nodes.stats = element('span', { className: 'stats' });
    nodes.copy = copyButton(() => message.content, 'this answer');
    nodes.again = element('button', { type: 'button', textContent: 'Answer again' });
    nodes.again.addEventListener('click', again);
    nodes.foot = element('div', { className: 'foot' }, nodes.copy, nodes.again, nodes.stats);
    node.append(nodes.thinking, nodes.wait, body, nodes.note, nodes.problem, nodes.foot);
  }
  return nodes;
}

// Shows a message as it is now.
function refresh(message, nodes) {
  if (message.role === 'user') {
    return;
  }
  const isOpen = running?.message === message;
  const isLast = message === state.messages.at(-1);
  const text = (node, words) => {
    node.hidden = !words;
    if (node.textContent !== words) {
      node.textContent = words;
    }
  };
  text(nodes.title, message.model ? `Answer of ${message.model}` : 'Answer');
  show(nodes.body, message.content);
  nodes.thinking.hidden = !message.reasoning;
  if (message.reasoning) {
    text(nodes.summary, isOpen && !message.content ? 'The model thinks …' : 'What the model thought');
    show(nodes.thoughts, message.reasoning);
  }
  text(nodes.wait, isOpen && !message.content && !message.reasoning ? running.wait : '');
  text(nodes.note, message.note);
  text(nodes.problem, message.problem);
  text(nodes.stats, message.stats);
  nodes.copy.hidden = !message.content;
  nodes.again.hidden = !isLast;
  nodes.foot.hidden = isOpen && !message.stats;
  nodes.copy.disabled = nodes.again.disabled = isOpen;
}

function add(message) {
  state.messages.push(message);
  views.push(view(message));
  $('messages').append(views.at(-1).node);
  $('welcome').hidden = true;
  // The answer before is the last no more.
  refreshAll();
}

function refreshAll() {
  state.messages.forEach((message, index) => refresh(message, views[index]));
}

function showAll() {
  views = state.messages.map(view);
  $('messages').replaceChildren(...views.map(({ node }) => node));
  refreshAll();
  $('welcome').hidden = state.messages.length > 0;
  main.scrollTop = state.messages.length > 0 ? main.scrollHeight : 0;
}

// ---- Answers ----

function body() {
  const messages = state.system.trim() ? [{ role: 'system', content: state.system }] : [];
  for (const { role, content } of state.messages) {
    const last = messages.at(-1);
    if (!content) {
      continue;
    }
    // Many templates want questions and answers in turn, and an answer may have failed.
    if (last?.role === role) {
      last.content += `\n\n${content}`;
    } else {
      messages.push({ role, content });
    }
  }
  const model = $('model').value;
  return { ...(model && { model }), messages, ...state.sampler, stream: true, stream_options: { include_usage: true } };
}

function rate(tokens, milliseconds) {
  const perSecond = (1000 * tokens) / milliseconds;
  return Number.isFinite(perSecond) && perSecond > 0 ? `${perSecond.toFixed(perSecond < 10 ? 1 : 0)} a second` : '';
}

// Figures of a finished answer, in words.
function figures(timings, usage, pieces) {
  const drawn = usage?.completion_tokens ?? timings?.predicted_n ?? pieces;
  const prompt = usage?.prompt_tokens ?? (timings ? timings.prompt_n + timings.cache_n : 0);
  const cached = usage?.prompt_tokens_details?.cached_tokens ?? timings?.cache_n ?? 0;
  const parts = [`${drawn} ${drawn === 1 ? 'token' : 'tokens'}`, timings ? rate(timings.predicted_n, timings.predicted_ms) : ''];
  if (prompt) {
    parts.push(`prompt of ${prompt}${cached ? `, ${cached} of them from the cache` : ''}`);
  }
  return parts.filter(Boolean).join(' · ');
}

// Asks for an answer to the messages so far, and shows it while it comes.
async function answer() {
  const message = { role: 'assistant', content: '', reasoning: '', model: '', note: '', problem: '', stats: '' };
  const abort = new AbortController();
  running = { message, abort, wait: 'The model reads …', isLeft: false };
  let pieces = 0;
  let begun = 0;
  let timings;
  let usage;
  let keptAt = performance.now();
  let frame = 0;
  let said = 0;
  add(message);
  const nodes = views.at(-1);
  main.scrollTop = main.scrollHeight;
  setBusy(true);
  speak('The answer begins.');
  const paint = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    const isAtEnd = main.scrollHeight - main.scrollTop - main.clientHeight < NEAR_END;
    refresh(message, nodes);
    if (isAtEnd) {
      main.scrollTop = main.scrollHeight;
    }
  };
  // Whole sentences, so that a screen reader does not stammer.
  const say = (isOver) => {
    const text = message.content.slice(said);
    const end = isOver ? text.length : Math.max(...['. ', '! ', '? ', '\n'].map((mark) => text.lastIndexOf(mark))) + 1;
    if (end > 0) {
      said += end;
      speak(spoken(text.slice(0, end)));
    }
  };
  const speaking = setInterval(() => say(false), SPEAK_EVERY);
  try {
    await learned;
    const request = body();
    message.model = request.model ?? '';
    if (unloaded.has(message.model)) {
      running.wait = 'The model is being loaded …';
    }
    paint();
    for await (const chunk of chat(request, abort.signal)) {
      const choice = chunk.choices?.[0];
      const { content, reasoning_content: thought } = choice?.delta ?? {};
      message.content += content ?? '';
      message.reasoning += thought ?? '';
      timings = chunk.timings ?? timings;
      usage = chunk.usage ?? usage;
      if (choice?.finish_reason === 'length') {
        message.note = 'The answer ends here because it reached the longest length.';
      }
      const now = performance.now();
      if (content || thought) {
        pieces += 1;
        begun ||= now;
        message.stats = [`about ${pieces} tokens`, pieces > 5 ? rate(pieces - 1, now - begun) : ''].filter(Boolean).join(' · ');
      }
      if (now - keptAt > KEEP_EVERY) {
        keptAt = now;
        keep();
      }
      frame ||= requestAnimationFrame(paint);
    }
    message.stats = figures(timings, usage, pieces);
    if (!message.content && !message.note) {
      message.note = 'The model gave no answer.';
    }
  } catch (problem) {
    if (problem.name === 'AbortError') {
      message.note = 'Stopped.';
    } else if (running.isLeft) {
      message.note = CLOSED;
    } else {
      fail(problem, message);
    }
  }
  clearInterval(speaking);
  running = null;
  paint();
  setBusy(false);
  keep();
  say(true);
  const end = message.problem || message.note || 'The answer is complete.';
  setTimeout(() => running || speak(end), SPEAK_EVERY);
  loadModels();
}

function fail(problem, message) {
  // What is none of ours is a defect of this page; its words still help.
  message.problem = problem instanceof Problem ? problem.message : `This page has a defect: ${problem.message}`;
  if (problem.status === 401) {
    askForKey(problem);
  }
}

function again() {
  if (running || state.messages.at(-1)?.role !== 'assistant') {
    return;
  }
  state.messages.pop();
  views.pop().node.remove();
  question.focus();
  answer();
}

function send() {
  const content = question.value.trim();
  if (!content || running) {
    return;
  }
  question.value = '';
  fit();
  notice('');
  add({ role: 'user', content });
  keep();
  answer();
}

function setBusy(isBusy) {
  const button = $('send');
  button.textContent = isBusy ? 'Stop' : 'Send';
  button.classList.toggle('primary', !isBusy);
  main.setAttribute('aria-busy', String(isBusy));
}

function stop() {
  running?.abort.abort();
}

// ---- Keys and models ----

function askForKey(problem) {
  uncover();
  $('key-problem').textContent = problem.message;
  $('key-form').hidden = false;
  $('key').focus();
}

// Learns which models there are. True if the server says it.
async function loadModels() {
  let models;
  try {
    // Encoders answer no questions.
    models = (await get('v1/models')).data.filter(({ kind }) => kind !== 'embedding' && kind !== 'ranking');
  } catch (problem) {
    if (problem.status === 401) {
      askForKey(problem);
    } else if (!state.messages.at(-1)?.problem) {
      notice(problem.message);
    }
    return false;
  }
  unloaded = new Set(models.filter(({ status }) => status?.value === 'unloaded').map(({ id }) => id));
  const select = $('model');
  const wanted = state.model || select.value;
  const options = models.map(({ id }) => element('option', { value: id }, unloaded.has(id) ? `${id} (not loaded)` : id));
  select.replaceChildren(...options);
  if (models.some(({ id }) => id === wanted)) {
    select.value = wanted;
  }
  $('forget').hidden = !hasKey();
  return true;
}

async function useKey(event) {
  event.preventDefault();
  const value = $('key').value.trim();
  if (!/^[\x21-\x7e]+$/.test(value)) {
    $('key-problem').textContent = 'A key has letters, digits and signs, and no spaces.';
    return;
  }
  setKey(value);
  if (await loadModels()) {
    $('key').value = '';
    $('key-form').hidden = true;
    question.focus();
    picture.open(!$('memory').hidden);
    if (state.messages.at(-1)?.problem) {
      again();
    }
  }
}

// ---- Panels ----

const picture = new Picture($('picture'), askForKey);
const isNarrow = matchMedia('(max-width: 56rem)');

function openPanel(name) {
  for (const panel of ['memory', 'settings']) {
    const isOpen = panel === name;
    $(panel).hidden = !isOpen;
    $(`open-${panel}`).setAttribute('aria-expanded', String(isOpen));
  }
  picture.open(name === 'memory');
  // On a narrow screen the panel covers the conversation, which must not take the focus then.
  main.inert = $('composer').inert = Boolean(name) && isNarrow.matches;
}

// Closes a panel that covers the conversation.
function uncover() {
  if (isNarrow.matches) {
    openPanel(null);
  }
}

function openOf() {
  return ['memory', 'settings'].find((panel) => !$(panel).hidden);
}

function closePanel() {
  const panel = openOf();
  openPanel(null);
  $(`open-${panel}`).focus();
}

for (const panel of ['memory', 'settings']) {
  $(`open-${panel}`).addEventListener('click', () => {
    if ($(panel).hidden) {
      openPanel(panel);
      $(`${panel}-title`).focus();
    } else {
      openPanel(null);
    }
  });
  $(panel).querySelector('.close').addEventListener('click', closePanel);
}
isNarrow.addEventListener('change', () => openPanel(openOf()));

function fillSettings() {
  $('system').value = state.system;
  for (const name of SAMPLER) {
    $(name).value = state.sampler[name] ?? '';
    check($(name));
  }
}

// Says what is wrong with a field. True if nothing is.
function check(field) {
  const isRight = field.validity.valid;
  const id = `${field.id}-problem`;
  $(id)?.remove();
  field.setAttribute('aria-invalid', String(!isRight));
  if (!isRight) {
    const { min, max, step } = field;
    const words = `This must be a ${step === '1' ? 'whole number' : 'number'} from ${min} to ${max}. It is not used.`;
    field.after(element('p', { id, className: 'problem', role: 'alert' }, words));
  }
  return isRight;
}

for (const name of SAMPLER) {
  $(name).addEventListener('change', ({ target }) => {
    delete state.sampler[name];
    if (check(target) && target.value !== '') {
      state.sampler[name] = target.valueAsNumber;
    }
    keep();
  });
}
$('system').addEventListener('input', ({ target }) => {
  state.system = target.value;
  keep();
});
$('defaults').addEventListener('click', () => {
  state.sampler = {};
  fillSettings();
  keep();
});
$('model').addEventListener('change', ({ target }) => {
  state.model = target.value;
  keep();
});
$('forget').addEventListener('click', () => {
  setKey('');
  $('forget').hidden = true;
  notice('The key is forgotten.');
  $('settings-title').focus();
});
$('export').addEventListener('click', () => {
  const text = JSON.stringify({ saved: new Date().toISOString(), ...state }, null, 2);
  const href = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  element('a', { href, download: 'conversation.json' }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
});
$('clear').addEventListener('click', () => {
  stop();
  uncover();
  const before = state.messages;
  if (before.length > 0) {
    const undo = element('button', { type: 'button', textContent: 'Bring it back' });
    undo.addEventListener('click', () => {
      stop();
      state.messages = [...before, ...state.messages];
      showAll();
      keep();
      notice('');
      question.focus();
    });
    notice('The conversation is cleared.', undo);
  }
  state.messages = [];
  showAll();
  keep();
  question.focus();
});

// ---- The question ----

// Makes the field as high as its text.
function fit() {
  question.style.height = 'auto';
  question.style.height = `${question.scrollHeight}px`;
}

question.addEventListener('input', fit);
question.addEventListener('keydown', (event) => {
  // Enter ends a word while one writes Chinese or Japanese.
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    send();
  }
});
$('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  running ? stop() : send();
});
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.isComposing) {
    return;
  }
  if (running) {
    stop();
  } else if (openOf()) {
    closePanel();
  }
});
for (const button of document.querySelectorAll('.examples button')) {
  button.addEventListener('click', () => {
    question.value = button.textContent;
    send();
    question.focus();
  });
}
$('key-form').addEventListener('submit', useKey);

// Another tab has the same conversation.
addEventListener('storage', (event) => {
  if (event.key === KEEP && !running) {
    state = kept();
    fillSettings();
    showAll();
  }
});
addEventListener('pagehide', () => {
  if (running) {
    running.isLeft = true;
    keep();
  }
});

fillSettings();
showAll();
learned = loadModels();
