// Tests of the web page in a real browser: node test.mjs [NAME ...]. With SERVER=http://127.0.0.1:8080 the tests of `real` ask that server.

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Browser } from './browser.mjs';
import { Stub, TEXTS } from './stub.mjs';

const GIB = 2 ** 30;

async function ask(page, text) {
  await page.see('$("#question").focus()');
  await page.type(text);
  await page.press('Enter');
}

const DONE = '$("#send").textContent === "Send" && $$(".assistant").length > 0';
const answer = 'document.querySelector(".assistant:last-child .text:not(details .text)")';

async function talk(page, text) {
  await ask(page, text);
  await page.until(DONE);
}

/// Contrast of each text with what lies behind it: those below 4.5, or 3 where it is large.
const PALE = `(() => {
  const parse = (colour) => (colour.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = parse(getComputedStyle(node).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) { return colour; }
    }
    return [255, 255, 255];
  };
  const pale = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    const style = getComputedStyle(node);
    if (!walker.currentNode.data.trim() || !node.checkVisibility() || node.closest('.unseen, .skip, :disabled, noscript, option')) { continue; }
    const [a, b] = [light(parse(style.color)), light(behind(node))].sort((x, y) => y - x);
    const least = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
    if ((a + 0.05) / (b + 0.05) < least) { pale.push(walker.currentNode.data.trim() + ' ' + ((a + 0.05) / (b + 0.05)).toFixed(2)); }
  }
  return pale;
})()`;

const WIDER = '$$("body *").filter((n) => n.checkVisibility() && !n.closest(".unseen, pre, .table") && n.getBoundingClientRect().right > innerWidth + 1).map((n) => n.outerHTML.slice(0, 80))';

const tests = {
  async 'send, stream and figures'({ page, stub }) {
    await page.until('$("#model").options.length === 2');
    assert.equal(await page.see('$("#model").options[1].text'), 'qwen3-8b (not loaded)');
    assert.equal(await page.see('document.activeElement.id'), 'question');
    stub.pause = 20;
    await ask(page, 'A rich answer, please');
    // It grows while it comes.
    await page.until(`${answer}?.textContent.length > 20`);
    const early = await page.see(`${answer}.textContent.length`);
    assert.equal(await page.see('$("#send").textContent'), 'Stop');
    assert.match(await page.see('$(".stats").textContent'), /^about \d+ tokens/);
    stub.pause = 1;
    await page.until(DONE);
    assert.ok((await page.see(`${answer}.textContent.length`)) > early);
    assert.match(await page.see('$(".stats").textContent'), /^\d+ tokens · 42 a second · prompt of 32, 8 of them from the cache$/);
    const names = await page.see(`[...${answer}.children].map((n) => n.className || n.localName)`);
    assert.deepEqual(names, ['h4', 'p', 'ol', 'table', 'code', 'p']);
    assert.equal(await page.see(`${answer}.querySelectorAll('ol > li > ul > li').length`), 2);
    assert.equal(await page.see(`${answer}.querySelector('td.right').textContent`), '9.1 GiB');
    assert.equal(await page.see(`${answer}.querySelector('pre code').textContent.split('\\n').length`), 3);
    const [request] = stub.requests;
    assert.deepEqual(request.messages, [{ role: 'user', content: 'A rich answer, please' }]);
    assert.deepEqual([request.model, request.stream, request.temperature], ['smollm2', true, undefined]);
  },

  async 'the conversation goes on'({ page, stub }) {
    await talk(page, 'one plain question');
    await page.see('$("#question").focus()');
    await page.type('first line');
    await page.press('Enter', { shift: true });
    await page.type('second line');
    assert.equal(stub.requests.length, 1);
    await page.press('Enter');
    await page.until(`$$('.assistant').length === 2 && ${DONE}`);
    assert.deepEqual(stub.requests[1].messages.map(({ role, content }) => [role, content]), [
      ['user', 'one plain question'],
      ['assistant', TEXTS.plain.join('')],
      ['user', 'first line\nsecond line'],
    ]);
    // Only the last answer can be asked for again.
    assert.deepEqual(await page.see('$$(".assistant .foot button:nth-child(2)").map((b) => b.hidden)'), [true, false]);
  },

  async 'stop by button and by Escape'({ page, stub }) {
    stub.pause = 15;
    for (const [round, stop] of [() => page.click('#send'), () => page.press('Escape')].entries()) {
      await ask(page, 'count for a long time');
      await page.until(`$$('.assistant').length === ${round + 1} && ${answer}.textContent.length > 20`);
      await stop();
      await page.until(DONE);
      assert.equal(await page.see('$(".assistant:last-child .note").textContent'), 'Stopped.');
      const text = await page.see(`${answer}.textContent`);
      for (let wait = 0; stub.left < round + 1 && wait < 100; wait += 1) {
        await sleep(20);
      }
      assert.equal(stub.left, round + 1, 'the server sees that the client has gone');
      assert.equal(await page.see(`${answer}.textContent`), text);
    }
  },

  async 'answer again'({ page, stub }) {
    await talk(page, 'a plain question');
    await page.click('.foot button:nth-child(2)');
    await page.until(`${DONE} && ${answer}.textContent.includes('two sentences')`);
    assert.equal(stub.requests.length, 2);
    assert.deepEqual(stub.requests[0].messages, stub.requests[1].messages);
    assert.equal(await page.see('$$("article").length'), 2);
  },

  async 'reload keeps the conversation, and clearing can be undone'({ page, stub }) {
    await talk(page, 'a plain question');
    await page.reload();
    await page.until(`${answer}?.textContent.includes('two sentences')`);
    assert.equal(await page.see(`${answer}.querySelector('strong').textContent`), 'plain');
    assert.match(await page.see('$(".stats").textContent'), /a second/);
    // Another tab of the same browser follows.
    const second = await page.other(stub.address);
    await second.until('$$("article").length === 2');
    await page.click('#clear');
    await page.until('$("#welcome").checkVisibility() && $$("article").length === 0');
    await second.until('$$("article").length === 0');
    await page.click('#notice button');
    await page.until('$$("article").length === 2');
    await page.click('#clear');
    await page.reload();
    await page.until('$("#welcome").checkVisibility()');
    // An answer that a reload cuts off is kept as far as it came. A tab behind another shows nothing new.
    await page.send('Page.bringToFront');
    stub.pause = 15;
    await ask(page, 'count for a long time');
    await page.until(`${answer}?.textContent.length > 60`);
    await page.reload();
    await page.until(`${answer}?.textContent.length > 20`);
    assert.equal(await page.see('$(".note").textContent'), 'The page was closed before the answer ended.');
    assert.deepEqual(second.wrongs, []);
  },

  async 'clearing while an answer runs'({ page, stub }) {
    stub.pause = 15;
    await ask(page, 'count for a long time');
    await page.until(`${answer}?.textContent.length > 20`);
    await page.click('#clear');
    await page.until('$("#send").textContent === "Send" && $$("article").length === 0', 2000);
    await talk(page, 'a plain question');
    assert.deepEqual(stub.requests[1].messages, [{ role: 'user', content: 'a plain question' }]);
  },

  async 'a store with nonsense'({ page }) {
    for (const text of ['{"messages": [null, 3, {"role": "system"}, {"role": "user", "content": {}}], "sampler": {"seed": "x"}}', '[', 'null']) {
      await page.see(`localStorage.setItem('rocmforge.chat', ${JSON.stringify(text)})`);
      await page.reload();
      await page.until('$("#model").options.length === 2');
    }
  },

  async 'thinking is folded'({ page, stub }) {
    stub.pause = 20;
    await ask(page, 'think about it');
    await page.until('$("details")?.checkVisibility() && $("summary").textContent === "The model thinks …"');
    stub.pause = 1;
    await page.until(DONE);
    assert.deepEqual(await page.see('[$("summary").textContent, $("details").open, $("details .text em").textContent]'), ['What the model thought', false, 'question']);
    assert.equal(await page.see(`${answer}.textContent`), 'The answer is plain. It has two sentences.');
    await talk(page, 'go on');
    assert.equal(JSON.stringify(stub.requests[1]).includes('First I look'), false, 'thoughts are not sent back');
  },

  async 'hostile markdown'({ page }) {
    await talk(page, 'a hostile answer');
    await sleep(200);
    assert.deepEqual(await page.see(`[...${answer}.querySelectorAll('script, img, svg, iframe, style, object, embed, form, b')].length`), 0);
    const attributes = await page.see(`[...${answer}.querySelectorAll('*')].flatMap((n) => [...n.attributes].map((a) => a.name))`);
    assert.deepEqual([...new Set(attributes)].sort(), ['aria-label', 'class', 'href', 'rel', 'role', 'tabindex', 'target', 'type']);
    const links = await page.see(`[...${answer}.querySelectorAll('a')].map((a) => [a.href, a.rel, a.target])`);
    assert.deepEqual(links.map(([href]) => href), ['https://example.org/', 'https://example.org/x.png', 'https://example.org/plain']);
    assert.ok(links.every(([, rel, target]) => rel === 'noopener noreferrer nofollow' && target === '_blank'));
    const text = await page.see(`${answer}.textContent`);
    for (const number of [1, 2, 3, 12, 13, 15]) {
      assert.ok(text.includes(`alert(${number})`), `alert(${number}) is shown as text`);
    }
    // A user's text is no markdown, and no HTML.
    await talk(page, '<img src=x onerror=alert(1)> **bold** plain');
    assert.equal(await page.see('$(".user:nth-last-child(2) .text").innerHTML'), '&lt;img src=x onerror=alert(1)&gt; **bold** plain');
  },

  async 'markdown, part by part'({ page }) {
    const html = (text) => page.see(`import('./page/markdown.js').then(({ show }) => { const d = document.createElement('div'); show(d, ${JSON.stringify(text)}); return d.innerHTML; })`);
    const cases = {
      '**a** *b* ***c*** __d__ _e_ ~~f~~': '<p><strong>a</strong> <em>b</em> <em><strong>c</strong></em> <strong>d</strong> <em>e</em> <del>f</del></p>',
      '**a *b***': '<p><strong>a <em>b</em></strong></p>',
      '*a **b** c*': '<p><em>a <strong>b</strong> c</em></p>',
      '2*3*4 and snake_case_name and a * b * c': '<p>2*3*4 and snake_case_name and a * b * c</p>',
      '\\*a\\* `b*c*` ``d`e`` `f': '<p>*a* <code>b*c*</code> <code>d`e</code> `f</p>',
      '# a #\n####### b': '<h3>a</h3><p>####### b</p>',
      '###### a': '<h6>a</h6>',
      'a\nb\n\nc': '<p>a\nb</p><p>c</p>',
      'a\n- b\n- c\n\n  d\n\ne': '<p>a</p><ul><li><p>b</p></li><li><p>c</p><p>d</p></li></ul><p>e</p>',
      '3. a\n4. b\n- c': '<ol start="3"><li><p>a</p></li><li><p>b</p></li></ol><ul><li><p>c</p></li></ul>',
      '- a\n  lazy\nmore\n  1. b\n     - c': '<ul><li><p>a\nlazy\nmore</p><ol start="1"><li><p>b</p><ul><li><p>c</p></li></ul></li></ol></li></ul>',
      '> a\n> > b\n\n---\nc': '<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><hr><p>c</p>',
      'see https://example.org/a_(b), or http://x.': '<p>see <a href="https://example.org/a_(b)" target="_blank" rel="noopener noreferrer nofollow" class="">https://example.org/a_(b)</a>, or http://x.</p>',
      '[**a**](https://example.org "t")': '<p><a href="https://example.org/" target="_blank" rel="noopener noreferrer nofollow" class=""><strong>a</strong></a></p>',
      '|a|b|\n|-|-|\n|1 \\| 2|': '<div class="table" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th class="left">a</th><th class="left">b</th></tr></thead><tbody><tr><td class="left">1 | 2</td><td class="left"></td></tr></tbody></table></div>',
      'a<br>b &amp; <i>': '<p>a<br>b &amp;amp; &lt;i&gt;</p>',
      '': '',
    };
    for (const [text, wanted] of Object.entries(cases)) {
      const found = (await html(text)).replace(/(<a [^>]*>)http:\/\/x(<\/a>)/, 'http://x').replaceAll(/<li>\s*/g, '<li>');
      assert.equal(found, wanted, text);
    }
    // What a text looks like does not depend on how it came.
    const steps = await page.see(`import('./page/markdown.js').then(({ show }) => {
      const [grown, whole] = [document.createElement('div'), document.createElement('div')];
      for (const text of ${JSON.stringify([TEXTS.rich.join(''), TEXTS.hostile.join('')])}) {
        grown.replaceChildren();
        for (let end = 0; end <= text.length; end += 1) { show(grown, text.slice(0, end)); }
        whole.replaceChildren();
        show(whole, text);
        if (grown.innerHTML !== whole.innerHTML) { return grown.innerHTML; }
      }
      return 'equal';
    })`);
    assert.equal(steps, 'equal');
    // Blocks that are complete stay the same nodes.
    assert.ok(await page.see(`import('./page/markdown.js').then(({ show }) => {
      const d = document.createElement('div');
      show(d, 'a\\n\\nb'); const first = d.firstChild; show(d, 'a\\n\\nb c'); return first === d.firstChild && d.textContent === 'ab c';
    })`));
  },

  async 'markdown takes time in proportion to the text'({ page }) {
    const parts = ['*a ', '**a ', '_a ', '`a ``b ', '[', '![', '[a](', '[a](b', '> ', '- ', '* * ', '  - a\n', '> > > > ', '1. ', '|-', '| a |\n|-|\n', 'http://!!!', 'https://a.b/((( ', '~~~\n', '\\', '<br', '#', '# ', '***', '*_~', 'a\n', '\t', '``````` ', ' |'];
    // A long run that the end of the line makes none.
    const lines = [`${'~'.repeat(100_000)}\``, `# ${' '.repeat(100_000)}\u2028`];
    for (const part of [...parts, ...lines]) {
      const time = await page.see(`import('./page/markdown.js').then(({ show, spoken }) => {
        const text = ${JSON.stringify(part)}.repeat(${Math.ceil(100_000 / part.length)});
        const begun = performance.now(); const d = document.createElement('div'); show(d, text); spoken(text); return performance.now() - begun;
      })`);
      assert.ok(time < 2500, `${JSON.stringify(part.slice(0, 20))} takes ${time} ms`);
    }
    const runs = Array.from({ length: 400 }, (_, count) => `${'`'.repeat(count)} `).join('');
    const time = await page.see(`import('./page/markdown.js').then(({ show }) => {
      const begun = performance.now(); show(document.createElement('div'), ${JSON.stringify(runs)}); return performance.now() - begun;
    })`);
    assert.ok(time < 2500, `runs of back quotes take ${time} ms`);
  },

  async 'copy a code block'({ page, stub }) {
    await page.browser.send('Browser.grantPermissions', { permissions: ['clipboardReadWrite', 'clipboardSanitizedWrite'], origin: stub.address, browserContextId: page.context });
    await talk(page, 'a rich answer');
    await page.click('.code button');
    await page.until('$(".code button").textContent === "Copied"');
    assert.match(await page.see('navigator.clipboard.readText()'), /^def fits\(.*budget$/s);
    // Without a secure connection there is no such clipboard.
    await page.see('Object.defineProperty(navigator, "clipboard", { value: undefined }) && 0');
    await page.click('.foot button');
    await page.until('$(".foot button").textContent === "Copied"');
    assert.equal(await page.see('$$("body > textarea").length'), 0);
  },

  async 'errors in words'({ page, stub }) {
    const says = async (question, words) => {
      await page.see('localStorage.clear()');
      await page.reload();
      await talk(page, question);
      const said = await page.see('$(".assistant .problem").textContent');
      assert.match(said, words, question);
      assert.ok(await page.see('$(".assistant .foot button:nth-child(2)").checkVisibility()'), 'one can try again');
      await page.until(`$("#spoken").textContent === ${JSON.stringify(said)}`);
    };
    await says('are you busy?', /^The server is busy\. Try again in a moment\./);
    await says('this is too long', /^The conversation has 5000 tokens, and the model takes 2048\. Begin a new chat/);
    await says('break off in a plain answer', /^The connection to the server broke off\.$/);
    assert.match(await page.see(`${answer}.textContent`), /^The answer/);
    await says('the device is lost', /^The server says: the device is lost\.$/);
    // A question after a failure makes one turn of both.
    await talk(page, 'a plain one');
    assert.deepEqual(stub.requests.at(-1).messages.map(({ role }) => role), ['user', 'assistant', 'user']);
    await talk(page, 'the longest answer');
    assert.equal(await page.see('$(".assistant:last-child .note").textContent'), 'The answer ends here because it reached the longest length.');
    stub.stop();
    await talk(page, 'is someone there?');
    assert.equal(await page.see('$(".assistant:last-child .problem").textContent'), 'The server does not answer. It may have ended, or the network is down.');
  },

  async 'keys'({ page, stub }) {
    stub.key = 'a-key-of-22-characters';
    await page.reload();
    await page.until('$("#key-form").checkVisibility() && document.activeElement.id === "key"');
    assert.equal(await page.see('$("#key-problem").textContent'), 'This server wants a key.');
    await page.type('wrong');
    await page.press('Enter');
    await page.until('$("#key-problem").textContent === "The server does not know this key."');
    await page.see('$("#key").value = ""');
    await page.type('ключ');
    await page.press('Enter');
    await page.until('$("#key-problem").textContent.startsWith("A key has letters")');
    // A question that was asked meanwhile is answered when the key is there.
    await talk(page, 'a plain question');
    assert.equal(await page.see('$(".assistant .problem").textContent'), 'The server does not know this key.');
    await page.see('$("#key").focus(), $("#key").value = ""');
    await page.type(stub.key);
    await page.press('Enter');
    await page.until(`!$("#key-form").checkVisibility() && ${DONE} && ${answer}.textContent.includes('two sentences')`);
    assert.deepEqual(await page.see('[localStorage, sessionStorage].map((s) => JSON.stringify(s).includes("a-key-of"))'), [false, true]);
    await page.reload();
    await page.until('$("#model").options.length === 2');
    await page.click('#open-settings');
    await page.click('#forget');
    assert.equal(await page.see('sessionStorage.length'), 0);
    await page.click('#open-memory');
    await page.until('$("#key-form").checkVisibility() && document.activeElement.id === "key"');
    // It asks once, and leaves the focus where it is then.
    await page.see('$("#question").focus()');
    await sleep(2500);
    assert.equal(await page.see('document.activeElement.id'), 'question');
    await page.see('$("#key").focus()');
    await page.type(stub.key);
    await page.press('Enter');
    await page.until('$(".legend")');
    // On a narrow screen the picture would cover the field.
    await page.size({ width: 360, height: 740 });
    stub.key = 'another-key-of-the-server';
    await page.until('document.activeElement.id === "key" && $("#memory").hidden && !$("#composer").inert');
  },

  async 'settings change the request and are kept'({ page, stub }) {
    await page.click('#open-settings');
    const fill = async (id, text) => {
      await page.see(`$('#${id}').focus(), $('#${id}').value = ''`);
      await page.type(text);
      await page.press('Tab');
    };
    await fill('system', 'Answer in short sentences.');
    for (const [id, text] of Object.entries({ temperature: '0', top_p: '0.9', top_k: '20', min_p: '0.1', max_tokens: '64', seed: '7' })) {
      await fill(id, text);
    }
    await page.see('$("#model").value = "qwen3-8b", $("#model").dispatchEvent(new Event("change"))');
    await talk(page, 'a plain question');
    const { messages, ...rest } = stub.requests[0];
    assert.deepEqual(messages[0], { role: 'system', content: 'Answer in short sentences.' });
    const wanted = { model: 'qwen3-8b', temperature: 0, top_p: 0.9, top_k: 20, min_p: 0.1, max_tokens: 64, seed: 7 };
    assert.deepEqual(rest, { ...wanted, stream: true, stream_options: { include_usage: true } });
    await page.reload();
    await page.until('$("#model").value === "qwen3-8b"');
    assert.deepEqual(await page.see('[$("#temperature").value, $("#system").value]'), ['0', 'Answer in short sentences.']);
    await page.click('#open-settings');
    await fill('top_p', '1.5');
    assert.equal(await page.see('$("#top_p-problem").textContent'), 'This must be a number from 0 to 1. It is not used.');
    await talk(page, 'another plain question');
    assert.equal(stub.requests[1].top_p, undefined);
    await page.click('#defaults');
    await talk(page, 'a third plain question');
    assert.deepEqual(Object.keys(stub.requests[2]).sort(), ['messages', 'model', 'stream', 'stream_options']);
  },

  async 'the conversation as a file'({ page }) {
    await talk(page, 'a plain question');
    await page.click('#open-settings');
    await page.see(`(window.blobs = []) && (URL.createObjectURL = (blob) => { blobs.push(blob); return 'blob:x'; }) && 0`);
    await page.see(`(HTMLAnchorElement.prototype.click = function () { window.saved = this.download; }) && 0`);
    await page.click('#export');
    const value = JSON.parse(await page.see('blobs[0].text()'));
    assert.equal(await page.see('saved'), 'conversation.json');
    assert.deepEqual(value.messages.map(({ role, content }) => [role, content]), [['user', 'a plain question'], ['assistant', TEXTS.plain.join('')]]);
  },

  async 'the picture of the memory'({ page, stub }) {
    assert.equal(stub.reads, 0, 'nobody looks');
    await page.click('#open-memory');
    await page.until('$(".legend")');
    const rows = () => page.see('$$(".legend li").map((row) => [row.children[1].textContent, row.children[2].textContent])');
    assert.deepEqual(await rows(), [
      ['Weights', '9.1 GiB'],
      ['Cache in use', '1.5 GiB'],
      ['Cache not in use', '2.5 GiB'],
      ['Rest of this program', '1.3 GiB'],
      ['Free', '6.2 GiB'],
      ['Other programs, the desktop among them', '1.9 GiB'],
      ['Kept free for the desktop', '1.5 GiB'],
      ['Most this program may hold', '20.6 GiB'],
    ]);
    assert.equal(await page.see('$("#picture p").textContent'), '16.3 GiB of 24.0 GiB are in use.');
    const widths = await page.see('$$(".parts > span").map((n) => n.getBoundingClientRect().width / $(".parts").getBoundingClientRect().width * 24)');
    [9.1, 1.47, 2.53, 1.3, 6.2, 1.9, 1.5].forEach((size, at) => assert.ok(Math.abs(widths[at] - size) < 0.1, `${widths}`));
    const line = await page.see('(($(".bar .budget").getBoundingClientRect().left + 1.5) - $(".parts").getBoundingClientRect().left) / $(".parts").getBoundingClientRect().width * 24');
    assert.ok(Math.abs(line - 20.6) < 0.1, line);
    // It follows the figures, and rests while nobody sees it.
    stub.memory.cards[0].others = null;
    await page.until('$("#picture p").textContent.includes("The driver does not say")');
    assert.ok((await rows()).some(([name]) => name === 'Free, or held by other programs'));
    await page.see('Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true }) && document.dispatchEvent(new Event("visibilitychange"))');
    let reads = stub.reads;
    await sleep(2600);
    assert.equal(stub.reads, reads, 'the page is hidden');
    await page.see('delete document.visibilityState && document.dispatchEvent(new Event("visibilitychange"))');
    await page.until('true');
    await sleep(200);
    assert.equal(stub.reads, reads + 1, 'the page is visible again');
    await page.press('Escape');
    assert.equal(await page.see('document.activeElement.id'), 'open-memory');
    reads = stub.reads;
    await sleep(2600);
    assert.equal(stub.reads, reads, 'the picture is closed');
    // Several cards, several models, a model on two cards, one on none.
    const card = (id, own) => ({ id, name: 'AMD Radeon RX 7900 XT', total: 20 * GIB, budget: 17 * GIB, own: own * GIB, others: 0, headroom: GIB });
    const model = (model, cards, weight) => ({ model, cards, weight_bytes: weight * GIB, cache_bytes: GIB, cache_blocks: 10, cache_blocks_used: 0, cache_blocks_kept: 0 });
    stub.memory = { cards: [card('a', 10), card('b', 4)], models: [model('large', ['a', 'b'], 9), model('small', ['a'], 2), model('tiny', [], 0.1)] };
    await page.click('#open-memory');
    await page.until('$$(".bar").length === 3');
    assert.deepEqual(await page.see('$$("#picture h3").map((n) => n.textContent)'), ['AMD Radeon RX 7900 XT', 'AMD Radeon RX 7900 XT', 'Main memory (RAM)', 'Models']);
    assert.equal((await rows())[0].join(), 'This program: models and all else,10.0 GiB');
    stub.memory = { cards: [], models: [{ ...model('tiny', [], 0), cache_bytes: 0, cache_blocks: 0 }] };
    await page.until('$("#picture").textContent.includes("No card is in use: the model runs on the processor. How much memory it takes is not known.")');
    stub.memory = { cards: [], models: [] };
    await page.until('$("#picture").textContent === "No model is loaded. The first question loads one."');
    stub.memory = { cards: [{ id: 'a', name: 'odd', total: 0, budget: -1, own: 'x', others: 1e30, headroom: {} }], models: [] };
    await page.until('$("#picture h3")?.textContent === "odd"');
  },

  async 'by keyboard alone'({ page, stub }) {
    await page.until('$("#model").options.length === 2');
    await page.type('a rich question');
    await page.press('Enter');
    await page.until(DONE);
    await page.tabTo('.skip');
    assert.ok(await page.see('$(".skip").getBoundingClientRect().top >= 0'), 'the link is seen when it has the focus');
    for (const selector of ['#model', '#open-memory', '#open-settings', '#clear', '#conversation', '.table', '.code button', 'pre', 'a[target]', '.foot button:nth-child(1)', '.foot button:nth-child(2)']) {
      await page.tabTo(selector);
      const ring = await page.see('getComputedStyle(document.activeElement).outlineStyle !== "none" && parseFloat(getComputedStyle(document.activeElement).outlineWidth) >= 2');
      assert.ok(ring, `${selector} shows that it has the focus`);
    }
    await page.press('Enter');
    await page.until(`${DONE} && $$('article').length === 2`);
    assert.equal(stub.requests.length, 2);
    assert.equal(await page.see('document.activeElement.id'), 'question');
    await page.tabTo('#open-settings');
    await page.press(' ');
    assert.equal(await page.see('document.activeElement.id'), 'settings-title');
    await page.tabTo('#seed');
    await page.press('Escape');
    assert.deepEqual(await page.see('[document.activeElement.id, $("#settings").hidden]'), ['open-settings', true]);
  },

  async 'what a screen reader finds'({ page }) {
    await talk(page, 'a rich answer, think');
    await page.click('#open-settings');
    const heard = await page.heard();
    const has = (role, name) => assert.ok(heard.some((node) => node.role === role && node.name === name), `${role} ${name}`);
    for (const [role, name] of [
      ['heading', 'ROCmForge'],
      ['combobox', 'Model'],
      ['button', 'Memory'],
      ['button', 'Settings'],
      ['button', 'New chat'],
      ['main', 'Conversation'],
      ['heading', 'Question'],
      ['heading', 'Answer of smollm2'],
      ['heading', 'How a card shares its memory'],
      ['DisclosureTriangle', 'What the model thought'],
      ['group', 'Code, python'],
      ['button', 'Copy this code'],
      ['button', 'Copy this answer'],
      ['button', 'Answer again'],
      ['textbox', 'Your question'],
      ['button', 'Send'],
      ['complementary', 'Settings'],
      ['button', 'Close settings'],
      ['textbox', 'System message'],
      ['spinbutton', 'Temperature'],
      ['spinbutton', 'Top-p'],
      ['spinbutton', 'Top-k'],
      ['spinbutton', 'Min-p'],
      ['spinbutton', 'Longest answer, in tokens'],
      ['spinbutton', 'Seed'],
    ]) {
      has(role, name);
    }
    assert.deepEqual(heard.filter(({ role, name }) => ['button', 'textbox', 'spinbutton', 'combobox', 'link'].includes(role) && !name), []);
    assert.equal(heard.find(({ name, role }) => role === 'button' && name === 'Settings').expanded, true);
    assert.match(heard.find(({ name }) => name === 'Temperature').description, /^0 always takes the most likely word/);
    await page.click('#open-memory');
    await page.until('$(".legend")');
    const texts = (await page.heard()).filter(({ role }) => role === 'StaticText').map(({ name }) => name);
    assert.ok(texts.includes('Kept free for the desktop') && texts.includes('20.6 GiB'));
  },

  async 'the stream is spoken in sentences'({ page, stub }) {
    await page.see(`(window.said = []) && new MutationObserver(() => said.push(document.querySelector('#spoken').textContent)).observe($('#spoken'), { childList: true }), 0`);
    stub.pause = 60;
    await ask(page, 'a rich answer');
    await page.until(`said.some((text) => text.includes('language model'))`);
    stub.pause = 1;
    await page.until('said.at(-1) === "The answer is complete."');
    const said = await page.see('said');
    assert.equal(said[0], 'The answer begins.');
    assert.ok(said.length <= 8, `${said.length} announcements`);
    assert.match(said[1], /[.,!?:;]$/);
    assert.ok(!said.join().includes('**'));
    const live = await page.see('$$("[aria-live], [role=status], [role=alert], [role=log]").filter((n) => n.contains($("#messages")) || $("#messages").contains(n)).length');
    assert.equal(live, 0, 'the conversation itself is not spoken');
  },

  async 'reading further up is not disturbed'({ page, stub }) {
    stub.pause = 4;
    await ask(page, 'count for a long time, at length: '.repeat(200));
    const main = '$("#conversation")';
    await page.until(`${main}.scrollHeight > ${main}.clientHeight * 1.5 && ${answer}.textContent.length > 100`);
    assert.ok(await page.see(`${main}.scrollHeight - ${main}.scrollTop - ${main}.clientHeight < 80`), 'it follows');
    await page.see(`${main}.scrollTop = 0`);
    const length = await page.see(`${answer}.textContent.length`);
    await page.until(`${answer}.textContent.length > ${length + 100}`);
    assert.equal(await page.see(`${main}.scrollTop`), 0);
    await page.press('Escape');
    await page.until(DONE);
  },

  async 'colours can be read, in light and dark'({ page }) {
    const papers = [];
    for (const dark of [false, true]) {
      await page.size({ dark });
      await page.reload();
      await page.until('$("#model").options.length === 2');
      assert.deepEqual(await page.see(PALE), []);
      await talk(page, 'a rich answer, think');
      await page.see('$("details").open = true');
      await page.click('#open-memory');
      await page.until('$(".legend")');
      assert.deepEqual(await page.see(PALE), []);
      await page.click('#open-settings');
      assert.deepEqual(await page.see(PALE), []);
      await talk(page, 'are you busy?');
      assert.deepEqual(await page.see(PALE), []);
      papers.push(await page.see('getComputedStyle(document.body).backgroundColor'));
      await page.click('#clear');
    }
    assert.deepEqual(papers, ['rgb(252, 251, 249)', 'rgb(24, 22, 20)']);
  },

  async 'narrow screens and large type'({ page }) {
    for (const size of [{ width: 360, height: 740 }, { width: 320, height: 480 }, { width: 640, height: 360, scale: 2 }]) {
      await page.size(size);
      await page.reload();
      await page.until('$("#model").options.length === 2');
      assert.deepEqual(await page.see(WIDER), [], 'nothing is wider than the screen');
      await talk(page, `a rich answer, think ${'m'.repeat(200)}`);
      assert.deepEqual(await page.see(WIDER), []);
      assert.ok((await page.see('$("#conversation").clientHeight')) > 100, 'the conversation has a place');
      for (const panel of ['memory', 'settings']) {
        await page.click(`#open-${panel}`);
        await page.until(`$('#${panel}').checkVisibility()`);
        await page.until('$(".legend")');
        assert.deepEqual(await page.see(WIDER), []);
        assert.ok(await page.see('$("#conversation").inert'), 'what is covered takes no focus');
        await page.click(`#${panel} .close`);
        assert.equal(await page.see('$("#conversation").inert'), false);
      }
      await page.click('#open-settings');
      await page.click('#clear');
      assert.deepEqual(await page.see('[$("#settings").hidden, document.activeElement.id]'), [true, 'question']);
    }
  },

  async 'still pages for who wants them'({ page }) {
    await page.size({ still: true });
    await ask(page, 'wait for a plain answer');
    await page.until('$(".wait")?.checkVisibility()');
    assert.equal(await page.see('getComputedStyle($(".wait"), "::before").animationName'), 'none');
    await page.until(DONE);
  },

  async 'the policy of the browser'({ page }) {
    const before = page.wrongs.length;
    await page.see(`document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = 1' }))`);
    await page.see(`document.body.insertAdjacentHTML('beforeend', '<img src="https://example.org/x.png"><p style="color: red" id="red"></p>')`);
    await page.see(`fetch('https://example.org/').catch(() => 0) && 0`);
    await sleep(200);
    assert.equal(await page.see('window.ran'), undefined);
    assert.equal(await page.see('getComputedStyle($("#red")).color === "rgb(255, 0, 0)"'), false);
    assert.ok(page.wrongs.length >= before + 3, page.wrongs.join('\n'));
    page.wrongs.length = before;
  },
};

/// Tests with a server and its model.
const real = {
  async 'a real server answers, is stopped, and is asked again'({ page }) {
    await page.until('$("#model").options.length > 0');
    await page.click('#open-settings');
    await page.see('$("#max_tokens").focus()');
    await page.type('24');
    await page.press('Tab');
    await ask(page, 'The capital of France is');
    await page.until(DONE, 120_000);
    console.log(`    ${await page.see(`${answer}.textContent`)}\n    ${await page.see('$(".stats").textContent')}`);
    assert.equal(await page.see('$(".problem")?.textContent ?? ""'), '');
    assert.match(await page.see('$(".stats").textContent'), /^\d+ tokens · [\d.]+ a second · prompt of \d+/);
    await page.see('$("#max_tokens").value = "", $("#max_tokens").dispatchEvent(new Event("change"))');
    await ask(page, 'Write a long story.');
    await page.until(`$$('.assistant').length === 2 && ${answer}.textContent.length > 30`, 120_000);
    await page.press('Escape');
    await page.until(DONE);
    await page.click('#open-memory');
    await page.until('$("#picture h3")');
    console.log(`    ${await page.see('$("#picture").innerText.replaceAll("\\n", " | ")')}`);
    await page.reload();
    await page.until('$$("article").length === 4');
  },
};

const wanted = process.argv.slice(2);
const server = process.env.SERVER;
const browser = new Browser(process.env.CHROMIUM ?? 'chromium');
let failed = 0;
try {
  for (const [name, test] of Object.entries(server ? real : tests)) {
    if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) {
      continue;
    }
    const stub = server ? { address: server } : await new Stub().start();
    const page = await browser.open(stub.address);
    page.browser = browser;
    page.other = (address) => browser.open(address, { context: page.context });
    const begun = Date.now();
    try {
      await test({ page, stub });
      assert.deepEqual(page.wrongs, []);
      console.log(`ok      ${name} (${Date.now() - begun} ms)`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}\n${error.stack}\n${page.wrongs.join('\n')}`);
    }
    await browser.send('Target.disposeBrowserContext', { browserContextId: page.context });
    stub.stop?.();
  }
} finally {
  await browser.close();
}
console.log(failed ? `${failed} failed` : 'all passed');
process.exitCode = failed ? 1 : 0;
