// Browser: starts Chromium without a window and drives it over the DevTools protocol, through two pipes.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE = 10_000;

export class Browser {
  #process;
  #folder = mkdtempSync(join(tmpdir(), 'page-test-'));
  #calls = new Map();
  #listeners = new Map();
  #last = 0;

  constructor(program) {
    const options = ['--headless=new', '--remote-debugging-pipe', `--user-data-dir=${this.#folder}`, '--no-first-run', '--disable-gpu'];
    if (process.getuid() === 0) {
      options.push('--no-sandbox');
    }
    this.#process = spawn(program, options, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    this.#process.on('error', (error) => {
      throw new Error(`${program} does not start (${error.message}): set CHROMIUM to the browser's program`);
    });
    let rest = '';
    this.#process.stdio[4].setEncoding('utf8').on('data', (data) => {
      const messages = (rest + data).split('\0');
      rest = messages.pop();
      messages.forEach((message) => this.#take(JSON.parse(message)));
    });
  }

  #take(message) {
    const call = this.#calls.get(message.id);
    if (call) {
      this.#calls.delete(message.id);
      message.error ? call.reject(new Error(`${call.method}: ${message.error.message}`)) : call.resolve(message.result);
    } else {
      this.#listeners.get(message.sessionId)?.(message.method, message.params);
    }
  }

  send(method, params = {}, sessionId = undefined) {
    const id = (this.#last += 1);
    this.#process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject, method }));
  }

  /// A page with storage of its own, unless it is given another's.
  async open(address, { context, ...size } = {}) {
    const browserContextId = context ?? (await this.send('Target.createBrowserContext')).browserContextId;
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank', browserContextId });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId, browserContextId);
    this.#listeners.set(sessionId, (method, params) => page.hear(method, params));
    for (const domain of ['Page', 'Runtime', 'Log', 'Accessibility']) {
      await page.send(`${domain}.enable`);
    }
    await page.size(size);
    await page.go(address);
    return page;
  }

  async close() {
    const end = new Promise((resolve) => this.#process.on('exit', resolve));
    await this.send('Browser.close').catch(() => {});
    await end;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const KEYS = {
  Enter: { code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' },
  Escape: { code: 'Escape', windowsVirtualKeyCode: 27 },
  Tab: { code: 'Tab', windowsVirtualKeyCode: 9 },
  ' ': { code: 'Space', windowsVirtualKeyCode: 32, text: ' ' },
};

class Page {
  #browser;
  #session;
  #loaded;
  context;
  /// What the page has done wrong: exceptions, and what its policy has stopped.
  wrongs = [];

  constructor(browser, session, context) {
    this.#browser = browser;
    this.#session = session;
    this.context = context;
  }

  send(method, params) {
    return this.#browser.send(method, params, this.#session);
  }

  hear(method, params) {
    if (method === 'Page.loadEventFired') {
      this.#loaded?.();
    } else if (method === 'Runtime.exceptionThrown') {
      this.wrongs.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    } else if (method === 'Log.entryAdded' && params.entry.level === 'error' && params.entry.source !== 'network') {
      this.wrongs.push(params.entry.text);
    } else if (method === 'Page.javascriptDialogOpening') {
      this.wrongs.push(`a dialog: ${params.message}`);
      this.send('Page.handleJavaScriptDialog', { accept: false });
    }
  }

  async #load(act) {
    const loaded = new Promise((resolve) => (this.#loaded = resolve));
    await act();
    await loaded;
  }

  go(address) {
    return this.#load(() => this.send('Page.navigate', { url: address }));
  }

  reload() {
    return this.#load(() => this.send('Page.reload'));
  }

  size({ width = 1200, height = 800, scale = 1, dark = false, still = false } = {}) {
    const features = [
      { name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' },
      { name: 'prefers-reduced-motion', value: still ? 'reduce' : 'no-preference' },
    ];
    return Promise.all([
      this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: scale, mobile: false }),
      this.send('Emulation.setEmulatedMedia', { features }),
    ]);
  }

  /// The value of an expression in the page. `$` finds an element.
  async see(expression) {
    const wrapped = `(async () => { const $ = (s) => document.querySelector(s); const $$ = (s) => [...document.querySelectorAll(s)]; return (${expression}); })()`;
    const answer = await this.send('Runtime.evaluate', { expression: wrapped, awaitPromise: true, returnByValue: true });
    if (answer.exceptionDetails) {
      throw new Error(`${expression}: ${answer.exceptionDetails.exception?.description}`);
    }
    return answer.result.value;
  }

  async until(expression, patience = PATIENCE) {
    const end = Date.now() + patience;
    while (!(await this.see(expression))) {
      if (Date.now() > end) {
        const text = await this.see('document.body.innerText');
        throw new Error(`it never came true: ${expression}\nThe page says:\n${text}`);
      }
      await sleep(20);
    }
  }

  async click(selector) {
    const place = await this.see(`(() => {
      const node = $(${JSON.stringify(selector)});
      node.scrollIntoView({ block: 'nearest' });
      const { x, y, width, height } = node.getBoundingClientRect();
      const [left, top] = [x + width / 2, y + height / 2];
      const hit = document.elementFromPoint(left, top);
      return { left, top, isHit: node.contains(hit) };
    })()`);
    if (!place.isHit) {
      throw new Error(`${selector} lies below something else`);
    }
    const event = { x: place.left, y: place.top, button: 'left', clickCount: 1 };
    await this.send('Input.dispatchMouseEvent', { type: 'mousePressed', ...event });
    await this.send('Input.dispatchMouseEvent', { type: 'mouseReleased', ...event });
  }

  async press(key, { shift = false } = {}) {
    const event = { key, modifiers: shift ? 8 : 0, ...KEYS[key] };
    await this.send('Input.dispatchKeyEvent', { type: event.text ? 'keyDown' : 'rawKeyDown', ...event });
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event, text: undefined });
  }

  type(text) {
    return this.send('Input.insertText', { text });
  }

  /// Presses Tab until the element has the focus.
  async tabTo(selector, most = 40) {
    for (let count = 0; count < most; count += 1) {
      if (await this.see(`document.activeElement?.matches(${JSON.stringify(selector)})`)) {
        return;
      }
      await this.press('Tab');
    }
    throw new Error(`${most} Tabs do not reach ${selector}`);
  }

  /// Role and name of all that a screen reader finds.
  async heard() {
    const { nodes } = await this.send('Accessibility.getFullAXTree');
    const seen = nodes.filter((node) => !node.ignored);
    return seen.map((node) => ({
      role: node.role?.value,
      name: node.name?.value ?? '',
      description: node.description?.value ?? '',
      ...Object.fromEntries((node.properties ?? []).map(({ name, value }) => [name, value.value])),
    }));
  }

  async picture(path) {
    const { data } = await this.send('Page.captureScreenshot', { format: 'png' });
    writeFileSync(path, Buffer.from(data, 'base64'));
  }
}
