// Pictures of the page, to look at: node look.mjs FOLDER

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Browser } from './browser.mjs';
import { Stub } from './stub.mjs';

const folder = process.argv[2] ?? 'pictures';
mkdirSync(folder, { recursive: true });
const stub = await new Stub().start();
stub.pause = 0;
stub.models.reverse();
stub.models[0].status.value = 'loaded';
const browser = new Browser(process.env.CHROMIUM ?? 'chromium');

async function talk(page) {
  await page.until('$("#model").options.length > 1');
  await page.see('$("#question").focus()');
  await page.type('What shares the memory of my card? Think of a rich answer.');
  await page.press('Enter');
  await page.until('$(".stats")?.textContent.includes("prompt")');
}

const sizes = {
  light: {},
  dark: { dark: true },
  narrow: { width: 360, height: 740, scale: 2 },
  zoom: { width: 640, height: 360, scale: 2 },
};
try {
  for (const [name, size] of Object.entries(sizes)) {
    const page = await browser.open(stub.address, size);
    await page.until('$("#model").options.length > 1');
    const take = (part) => page.picture(join(folder, `${name}-${part}.png`));
    await take('welcome');
    await talk(page);
    await take('answer');
    await page.see('$("#conversation").scrollTop = 0');
    await take('answer-top');
    await page.click('#open-memory');
    await page.until('$(".legend")');
    await take('memory');
    await page.click('#open-settings');
    await take('settings');
  }
} finally {
  await browser.close();
  stub.stop();
}
