// Markdown: shows a text as DOM nodes. No part of the text is ever read as HTML, so none of it can run.
//
// Each step takes time in proportion to the text: a model may write anything.

// Lists and quotes within each other; what lies deeper is shown as text.
const DEPTH = 8;
const COLUMNS = 20;
// Where a pattern does not match, no shorter run of its first part must be tried: that takes time in the square of the line.
const FENCE = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))(.*)$/s;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/s;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+|$)/;

// An element with children.
export function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

// What each shown node was made of.
const made = new WeakMap();

// Shows a text in a container. Blocks that are shown already stay, so that a text that grows keeps what the reader has selected.
export function show(container, text) {
  const wanted = blocks(text.replaceAll('\r\n', '\n').split('\n'), 0);
  wanted.forEach((block, index) => {
    const old = container.children[index];
    const before = old && made.get(old);
    if (before?.kind === block.kind && (before.source === block.source || block.change?.(old))) {
      made.set(old, block);
      return;
    }
    const node = block.make();
    made.set(node, block);
    old ? old.replaceWith(node) : container.append(node);
  });
  while (container.children.length > wanted.length) {
    container.lastElementChild.remove();
  }
}

// The text without its marks, as it is spoken.
export function spoken(text) {
  return text
    .replace(/^[ \t]*(?:```|~~~).*$/gm, '')
    .replace(/\]\([^()\s]*\)/g, '')
    .replace(/[*_`#|[\]]+/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}

// Copies a text, also on pages without a secure connection.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const before = document.activeElement;
    const area = element('textarea', { value: text, className: 'unseen' });
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    before?.focus();
    return done;
  }
}

// A button that copies what `text` returns, and says so.
export function copyButton(text, name) {
  const button = element('button', { type: 'button' });
  const say = (word) => {
    button.textContent = word;
    button.setAttribute('aria-label', `${word} ${name}`);
  };
  say('Copy');
  button.addEventListener('click', async () => {
    say((await copy(text())) ? 'Copied' : 'Could not copy');
    setTimeout(() => say('Copy'), 1500);
  });
  return button;
}

// The mark and the words of a line that begins a block of code.
function opened(line) {
  const match = FENCE.exec(line);
  return match?.[2].includes('`') ? null : match;
}

function begins(lines, at) {
  const line = lines[at];
  return opened(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line) || isTable(lines, at);
}

// The blocks of some lines, each with the lines that it comes from.
function blocks(lines, depth) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const block = read(lines, at, depth);
    block.source = lines.slice(at, block.end).join('\n');
    found.push(block);
    at = block.end;
  }
  return found;
}

function read(lines, at, depth) {
  const line = lines[at];
  let match = opened(line);
  if (match) {
    return fence(lines, at, match);
  }
  match = HEADING.exec(line);
  if (match) {
    // The page and each message have headings above those of the text.
    const level = Math.min(match[1].length + 2, 6);
    const text = match[2].replace(/[ \t]#+[ \t]*$/, '');
    return { kind: 'heading', end: at + 1, make: () => inline(element(`h${level}`), text) };
  }
  if (RULE.test(line)) {
    return { kind: 'rule', end: at + 1, make: () => element('hr') };
  }
  if (depth < DEPTH && QUOTE.test(line)) {
    let end = at;
    while (end < lines.length && QUOTE.test(lines[end])) {
      end += 1;
    }
    const inside = lines.slice(at, end).map((quoted) => quoted.replace(QUOTE, ''));
    return { kind: 'quote', end, make: () => nested(element('blockquote'), inside, depth) };
  }
  if (depth < DEPTH && ITEM.test(line)) {
    return list(lines, at, depth);
  }
  if (isTable(lines, at)) {
    return table(lines, at);
  }
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !begins(lines, end)) {
    end += 1;
  }
  const text = lines.slice(at, end).map((part) => part.trim()).join('\n');
  return { kind: 'paragraph', end, make: () => inline(element('p'), text) };
}

function nested(parent, lines, depth) {
  parent.append(...blocks(lines, depth + 1).map((block) => block.make()));
  return parent;
}

function fence(lines, at, [, mark, info]) {
  const closes = (line) => line.trim().length >= mark.length && line.trim().replaceAll(mark[0], '') === '';
  let end = at + 1;
  while (end < lines.length && !closes(lines[end])) {
    end += 1;
  }
  const code = lines.slice(at + 1, end).join('\n');
  const language = info.trim().split(/\s/)[0].slice(0, 30);
  const fill = (node) => {
    const [bar, pre] = node.children;
    bar.firstElementChild.textContent = language || 'text';
    pre.setAttribute('aria-label', `Code, ${language || 'text'}`);
    pre.firstElementChild.textContent = code;
    return node;
  };
  const make = () => {
    const content = element('code');
    // What scrolls is reached with the keyboard.
    const pre = element('pre', { tabIndex: 0, role: 'group' }, content);
    const button = copyButton(() => content.textContent, 'this code');
    return fill(element('div', { className: 'code' }, element('div', {}, element('span'), button), pre));
  };
  return { kind: 'code', end: Math.min(end + 1, lines.length), make, change: fill };
}

function indent(line) {
  return line.length - line.trimStart().length;
}

// A list: lines with its kind of mark, and those that are indented below them.
function list(lines, at, depth) {
  const base = indent(lines[at]);
  const isNumber = (match) => /\d/.test(match[2]);
  const first = ITEM.exec(lines[at]);
  const items = [];
  let inner = 0;
  let end = at;
  for (let line = at; line < lines.length; line += 1) {
    const text = lines[line];
    const isAfterBlank = line > at && !lines[line - 1].trim();
    if (!text.trim()) {
      continue;
    }
    const match = indent(text) < base + 2 && !RULE.test(text) ? ITEM.exec(text) : null;
    if (match && isNumber(match) === isNumber(first)) {
      inner = match[1].length + match[2].length + Math.min(Math.max(match[3].length, 1), 4);
      items.push([text.slice(inner)]);
    } else if (!match && (indent(text) >= base + 2 || (!isAfterBlank && !begins(lines, line)))) {
      const item = items.at(-1);
      item.push(...(isAfterBlank ? [''] : []), text.slice(Math.min(indent(text), inner)));
    } else {
      break;
    }
    end = line + 1;
  }
  const make = () => {
    const node = element(isNumber(first) ? 'ol' : 'ul');
    if (isNumber(first)) {
      node.start = Number.parseInt(first[2], 10);
    }
    node.append(...items.map((item) => nested(element('li'), item, depth)));
    return node;
  };
  return { kind: 'list', end, make };
}

function cells(line) {
  const row = line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '');
  return row.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

function isTable(lines, at) {
  const below = lines[at + 1];
  if (!below?.includes('-') || !lines[at].includes('|')) {
    return false;
  }
  const marks = cells(below);
  return marks.length <= COLUMNS && marks.every((mark) => /^:?-+:?$/.test(mark)) && cells(lines[at]).length === marks.length;
}

function table(lines, at) {
  const sides = cells(lines[at + 1]).map((mark) => (mark.endsWith(':') ? (mark.startsWith(':') ? 'middle' : 'right') : 'left'));
  let end = at + 2;
  while (end < lines.length && lines[end].includes('|')) {
    end += 1;
  }
  const row = (name, line) => {
    const texts = cells(line);
    return element('tr', {}, ...sides.map((side, index) => inline(element(name, { className: side }), texts[index] ?? '')));
  };
  const make = () => {
    const body = element('tbody', {}, ...lines.slice(at + 2, end).map((line) => row('td', line)));
    const whole = element('table', {}, element('thead', {}, row('th', lines[at])), body);
    const frame = element('div', { className: 'table', tabIndex: 0, role: 'group' }, whole);
    frame.setAttribute('aria-label', 'Table');
    return frame;
  };
  return { kind: 'table', end, make };
}

const LINK = /!?\[([^[\]]{0,500})\]\(<?([^()\s<>]{1,2000}(?:\([^()\s]{0,500}\)[^()\s<>]{0,500})?)>?(?:[ \t]+"[^"\n]{0,300}")?\)/y;
const ADDRESS = /https?:\/\/[^\s<>"`]{1,2000}/y;
const BREAK = /<br ?\/?>/y;
const MARKS = ['***', '**', '*', '___', '__', '_', '~~'];
const WORD = /[\p{L}\p{N}]/u;

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

// A link to another page; null for an address that is none, or that would do something else than open one.
function link(address, isImage) {
  let url;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return null;
  }
  return element('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer nofollow', className: isImage ? 'image' : '' });
}

// Where a mark ends that begins at `at`; -1 if nowhere. Whether a place can end a mark does not depend on where the mark begins.
function closing(text, mark, at) {
  const letter = mark[0];
  let place = at + mark.length;
  for (;;) {
    place = text.indexOf(mark, place);
    if (place < 0) {
      return -1;
    }
    let run = place;
    while (text[run] === letter) {
      run += 1;
    }
    const length = run - place;
    const before = text[place - 1];
    const inWord = letter === '_' && WORD.test(text[run] ?? '');
    if (!/[\s\\]/.test(before) && !inWord && (mark.length > 1 || length !== 2)) {
      return run - mark.length;
    }
    place = run;
  }
}

// Adds text with its marks to an element.
function inline(parent, text, depth = 0, inLink = false) {
  // Marks that do not end after here: looking for each again would take time in proportion to the square.
  const endless = new Set();
  let shown = 0;
  let at = 0;
  const take = (node, end) => {
    parent.append(text.slice(shown, at), ...(node ? [node] : []));
    shown = at = end;
  };
  while (at < text.length) {
    const letter = text[at];
    if (letter === '\\' && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? '')) {
      take(null, at + 1);
      at += 1;
    } else if (letter === '`') {
      code();
    } else if ((letter === '*' || letter === '_' || letter === '~') && depth < DEPTH) {
      emphasis(letter);
    } else if (letter === '<') {
      const match = matchAt(BREAK, text, at);
      match ? take(element('br'), at + match[0].length) : (at += 1);
    } else if (!inLink && (letter === '[' || (letter === '!' && text[at + 1] === '['))) {
      const match = matchAt(LINK, text, at);
      const anchor = match && link(match[2], letter === '!');
      anchor ? take(inline(anchor, match[1] || match[2], depth + 1, true), at + match[0].length) : (at += match ? match[0].length : 1);
    } else if (!inLink && letter === 'h' && text.startsWith('http', at) && !WORD.test(text[at - 1] ?? '')) {
      address();
    } else {
      at += 1;
    }
  }
  take(null, at);
  return parent;

  function code() {
    let end = at;
    while (text[end] === '`') {
      end += 1;
    }
    const mark = text.slice(at, end);
    // As many as there are at the begin. Of each number only the last run finds no other, so the search needs no memory.
    let close = text.indexOf(mark, end);
    let run = close;
    while (close >= 0) {
      while (text[run] === '`') {
        run += 1;
      }
      if (run - close === mark.length) {
        break;
      }
      close = run = text.indexOf(mark, run);
    }
    if (close < 0) {
      at = end;
      return;
    }
    const inside = text.slice(end, close);
    const isPadded = inside.startsWith(' ') && inside.endsWith(' ') && inside.trim();
    take(element('code', { textContent: isPadded ? inside.slice(1, -1) : inside }), close + mark.length);
  }

  function emphasis(letter) {
    const mark = MARKS.find((candidate) => text.startsWith(candidate, at));
    const before = text[at - 1] ?? '';
    const after = text[at + (mark?.length ?? 1)] ?? ' ';
    const isProduct = mark === '*' && /\d/.test(before) && /\d/.test(after);
    const mayBegin = mark && !/\s/.test(after) && after !== letter && !isProduct && !(letter === '_' && WORD.test(before));
    const close = mayBegin && !endless.has(mark) ? closing(text, mark, at) : -1;
    if (close < 0) {
      if (mayBegin) {
        endless.add(mark);
      }
      do {
        at += 1;
      } while (text[at] === letter);
      return;
    }
    const inside = text.slice(at + mark.length, close);
    const names = { 1: ['em'], 2: [letter === '~' ? 'del' : 'strong'], 3: ['em', 'strong'] }[mark.length];
    const outer = element(names[0]);
    const inner = names[1] ? outer.appendChild(element(names[1])) : outer;
    inline(inner, inside, depth + 1, inLink);
    take(outer, close + mark.length);
  }

  function address() {
    const match = matchAt(ADDRESS, text, at);
    if (!match) {
      at += 1;
      return;
    }
    let end = match[0].length;
    const hasBracket = match[0].includes('(');
    while (end > 0 && `.,;:!?*_~'"]}${hasBracket ? '' : ')'}`.includes(match[0][end - 1])) {
      end -= 1;
    }
    const found = match[0].slice(0, end);
    const anchor = link(found, false);
    if (anchor) {
      anchor.textContent = found;
      take(anchor, at + found.length);
    } else {
      at += match[0].length;
    }
  }
}
