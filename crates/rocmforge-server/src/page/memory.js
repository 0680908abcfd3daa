// Memory: draws how the memory of each card is shared, as long as somebody looks.

import { get } from './api.js';
import { element } from './markdown.js';

const PAUSE = 2000;

// Bytes in words.
export function size(bytes) {
  const [unit, name] = bytes >= 2 ** 30 ? [2 ** 30, 'GiB'] : [2 ** 20, 'MiB'];
  const number = bytes / unit;
  return `${number.toFixed(number < 100 && bytes > 0 ? 1 : 0)} ${name}`;
}

function number(value) {
  return Number.isFinite(value) && value > 0 ? value : 0;
}

// The parts of a model's memory.
function partsOf(models) {
  const parts = { weights: 0, used: 0, unused: 0 };
  for (const model of models) {
    const cache = number(model.cache_bytes);
    const share = number(model.cache_blocks) ? number(model.cache_blocks_used) / model.cache_blocks : 0;
    parts.weights += number(model.weight_bytes);
    parts.used += cache * share;
    parts.unused += cache * (1 - share);
  }
  return [
    ['weights', 'Weights', parts.weights],
    ['used', 'Cache in use', parts.used],
    ['unused', 'Cache not in use', parts.unused],
  ];
}

// A bar of parts, with a legend that has all figures.
function bar(total, parts, budget) {
  const shown = parts.filter(([, , bytes]) => bytes > 0);
  const share = (bytes) => `${(100 * Math.min(bytes, total)) / total}%`;
  const pieces = shown.map(([kind, , bytes]) => {
    const piece = element('span', { className: kind });
    piece.style.width = share(bytes);
    return piece;
  });
  const strip = element('div', { className: 'bar' }, element('div', { className: 'parts' }, ...pieces));
  const rows = shown.map(([kind, name, bytes]) => row(kind, name, bytes));
  if (budget !== undefined) {
    const line = element('span', { className: 'budget' });
    line.style.left = share(budget);
    strip.append(line);
    rows.push(row('budget', 'Most this program may hold', budget));
  }
  // The legend says all that the bar shows.
  strip.setAttribute('aria-hidden', 'true');
  return [strip, element('ul', { className: 'legend' }, ...rows)];
}

function row(kind, name, bytes) {
  const swatch = element('span', { className: `swatch ${kind}` });
  swatch.setAttribute('aria-hidden', 'true');
  return element('li', {}, swatch, element('span', {}, name), element('b', {}, size(bytes)));
}

function card(figures, models) {
  const total = number(figures.total);
  const own = number(figures.own);
  const others = number(figures.others);
  const here = models.filter((model) => model.cards.includes(figures.id));
  // Of a model on several cards it is not known how much lies on each.
  const isSplit = here.some((model) => model.cards.length > 1);
  const parts = isSplit ? [] : partsOf(here);
  const rest = Math.max(own - parts.reduce((sum, [, , bytes]) => sum + bytes, 0), 0);
  parts.push(['rest', isSplit ? 'This program: models and all else' : 'Rest of this program', rest]);
  const held = parts.reduce((sum, [, , bytes]) => sum + bytes, 0);
  const kept = Math.min(number(figures.headroom), Math.max(total - held - others, 0));
  const knowsOthers = figures.others !== null && figures.others !== undefined;
  parts.push(['free', knowsOthers ? 'Free' : 'Free, or held by other programs', Math.max(total - held - others - kept, 0)]);
  parts.push(['others', 'Other programs, the desktop among them', others]);
  parts.push(['kept', 'Kept free for the desktop', kept]);
  const sum = knowsOthers
    ? `${size(held + others)} of ${size(total)} are in use.`
    : `This program holds ${size(held)} of ${size(total)}. The driver does not say what others hold.`;
  return element('section', {}, element('h3', {}, figures.name), element('p', {}, sum), ...bar(total || 1, parts, number(figures.budget)));
}

function inMainMemory(models) {
  const parts = partsOf(models);
  const total = parts.reduce((sum, [, , bytes]) => sum + bytes, 0);
  const title = element('h3', {}, 'Main memory (RAM)');
  const text = element('p', {}, 'No card is in use: the model runs on the processor.');
  if (total === 0) {
    text.append(' How much memory it takes is not known.');
    return element('section', {}, title, text);
  }
  text.append(` It takes ${size(total)}.`);
  return element('section', {}, title, text, ...bar(total, parts));
}

function about(model) {
  const node = element('li', {}, element('b', {}, model.model));
  const line = (text) => node.append(element('span', {}, text));
  if (model.weight_bytes || model.cache_bytes) {
    line(`Weights ${size(number(model.weight_bytes))}, cache ${size(number(model.cache_bytes))}`);
  }
  if (model.cache_blocks) {
    const percent = Math.round((100 * number(model.cache_blocks_used)) / model.cache_blocks);
    line(`${model.cache_blocks_used} of ${model.cache_blocks} blocks of the cache are in use (${percent}\u00a0%); ${number(model.cache_blocks_kept)} more have text of earlier questions.`);
  }
  return node;
}

// Draws the answer of /memory.
export function draw(container, { cards, models }) {
  const nodes = cards.map((figures) => card(figures, models));
  const onNoCard = models.filter((model) => model.cards.length === 0);
  if (onNoCard.length > 0) {
    nodes.push(inMainMemory(onNoCard));
  }
  if (models.length === 0) {
    nodes.push(element('p', {}, 'No model is loaded. The first question loads one.'));
  } else {
    const list = element('ul', { className: 'models' }, ...models.map(about));
    nodes.push(element('section', {}, element('h3', {}, models.length > 1 ? 'Models' : 'Model'), list));
  }
  container.replaceChildren(...nodes);
}

// A picture that is renewed while it is open and the page is visible. It ends where the server wants a key, and calls `onRefusal`.
export class Picture {
  #container;
  #timer;
  // Which opening it is: an answer to an earlier one comes too late.
  #round = 0;
  #isOpen = false;
  #shown;
  #onRefusal;

  constructor(container, onRefusal) {
    this.#container = container;
    this.#onRefusal = onRefusal;
    document.addEventListener('visibilitychange', () => this.#go());
  }

  open(isOpen) {
    this.#isOpen = isOpen;
    this.#go();
  }

  #go() {
    clearTimeout(this.#timer);
    this.#round += 1;
    if (this.#isOpen && document.visibilityState === 'visible') {
      this.#renew(this.#round);
    }
  }

  async #renew(round) {
    let problem;
    const figures = await get('memory').catch((error) => (problem = error));
    if (round !== this.#round) {
      return;
    }
    const text = problem?.message ?? JSON.stringify(figures);
    if (text !== this.#shown) {
      this.#shown = text;
      problem ? this.#container.replaceChildren(element('p', { className: 'problem' }, text)) : draw(this.#container, figures);
    }
    // Without a key there is nothing to ask for.
    if (problem?.status === 401) {
      this.#onRefusal(problem);
    } else {
      this.#timer = setTimeout(() => this.#renew(round), PAUSE);
    }
  }
}
