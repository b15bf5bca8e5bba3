// Opens the pages of the site, and prints what is wrong with them. The argument is JSON; run.py makes it.
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import puppeteer from 'puppeteer-core';

const { site, browser: executablePath, pages, screenshots } = JSON.parse(process.argv[2]);
const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const WIDTHS = [360, 768, 1440];
const THEMES = ['light', 'dark'];
const CONTROLS = 'a[href], button, input, summary, [tabindex="0"]';
const PATTERN = 'pattern/tmkb-auth-007.html';

const faults = [];
const counts = { views: 0, rules: 0, stops: 0, requests: 0 };
const fault = (...parts) => faults.push(parts.join(' '));

const browser = await puppeteer.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--hide-scrollbars'] });

async function open(path, width, theme = 'light', isScripted = true) {
  const page = await browser.newPage();
  page.on('request', (request) => {
    counts.requests += 1;
    if (!/^(file|data):/.test(request.url())) fault(path, 'requests', request.url());
  });
  page.on('pageerror', (error) => fault(path, 'has an error:', error.message));
  await page.setJavaScriptEnabled(isScripted);
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
  await page.goto(`${pathToFileURL(site)}/${path}`);
  return page;
}

async function look(path, width, theme) {
  const page = await open(path, width, theme);
  const view = `${path} ${width} ${theme}`;
  counts.views += 1;
  const [wide, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  if (wide > shown) fault(view, `is ${wide} wide`);
  if (screenshots) {
    mkdirSync(screenshots, { recursive: true });
    await page.screenshot({ path: `${screenshots}/${path.replaceAll('/', '-')}-${width}-${theme}.png`, fullPage: true });
  }
  await page.evaluate(() => document.querySelectorAll('details').forEach((each) => { each.open = true; }));
  await page.addScriptTag({ path: axe });
  const { violations, passes } = await page.evaluate(() => globalThis.axe.run());
  counts.rules += passes.length;
  for (const { id, impact, nodes } of violations) {
    if (impact === 'serious' || impact === 'critical') fault(view, impact, id, nodes[0].html.slice(0, 120), nodes[0].failureSummary);
    else console.log(`${view}: ${impact} ${id} ${nodes[0].html.slice(0, 120)}`);
  }
  await page.close();
}

// Every visible control gets the focus by Tab. Of a list of tabs only the chosen one does.
async function tab(path, width) {
  const page = await open(path, width);
  const expected = await page.evaluate((controls) => {
    const all = [...document.querySelectorAll(controls)].filter((each) => each.tabIndex >= 0 && each.checkVisibility());
    all.forEach((each, index) => { each.dataset.stop = index; });
    return all.map((each) => each.outerHTML.slice(0, 100));
  }, CONTROLS);
  const reached = new Set();
  for (let presses = 0; presses < expected.length + 5; presses += 1) {
    await page.keyboard.press('Tab');
    const [stop, ring] = await page.evaluate(() => [document.activeElement.dataset.stop, getComputedStyle(document.activeElement).outlineStyle]);
    if (stop == null) continue;
    reached.add(Number(stop));
    if (ring === 'none') fault(path, width, 'shows no focus on', expected[stop]);
  }
  counts.stops += reached.size;
  expected.forEach((html, index) => { if (!reached.has(index)) fault(path, width, 'Tab does not reach', html); });
  await page.close();
}

async function tabs() {
  const page = await open(PATTERN, 1440);
  const chosen = () => page.$eval('[role=tab][aria-selected=true]', (each) => each.textContent);
  const visible = () => page.$$eval('[role=tabpanel]', (all) => all.filter((each) => each.checkVisibility()).map((each) => each.id));
  await page.focus('[role=tab][aria-selected=true]');
  const first = await chosen();
  await page.keyboard.press('ArrowRight');
  if ((await chosen()) === first) fault('an arrow key does not choose the next tab');
  await page.keyboard.press('End');
  if ((await chosen()) !== 'GraphQL') fault('End does not choose the last tab');
  if ((await visible()).join() !== 'graphql') fault('the chosen tab shows', await visible());
  await page.reload();
  if ((await chosen()) !== 'GraphQL') fault('the address does not keep the chosen tab');
  await page.goto(`${pathToFileURL(site)}/pattern/tmkb-auth-002.html`);
  if ((await chosen()) !== 'GraphQL') fault('the next pattern does not keep the chosen stack');
  await page.close();
}

async function picture() {
  const page = await open(PATTERN, 1440);
  const [boxes, items, curves, pairs, wrong] = await page.evaluate(() => {
    const texts = [...document.querySelectorAll('.picture text')].slice(1).map((each) => [...each.children].slice(1).map((line) => line.textContent).join(' '));
    const names = [...document.querySelectorAll('.related li a')].map((each) => each.textContent);
    const pairs = document.querySelector('.pairs').textContent.match(/ and /g);
    return [texts.length, names.length, document.querySelectorAll('.picture .link').length, pairs.length, names.filter((name, index) => name !== texts[index])];
  });
  if (boxes !== items || curves !== pairs) fault(`the picture has ${boxes} boxes for ${items} patterns and ${curves} curves for ${pairs} pairs`);
  if (wrong.length) fault('the picture lacks', wrong);
  await page.close();
}

async function search() {
  const page = await open(PATTERN, 360);
  const results = () => page.$$eval('#results a strong', (all) => all.map((each) => each.textContent));
  for (const [words, expected] of [['mass assign', 'Mass Assignment'], ['17', 'Tenant-Blind Cache Keys'], ['CWE-566', 'Sequential IDs'], ['webhook', 'Webhook']]) {
    await page.$eval('.search input', (each) => { each.value = ''; });
    await page.type('.search input', words);
    await page.waitForSelector('#results a', { timeout: 5000 }).catch(() => fault('search finds nothing for', words));
    const [first = ''] = await results();
    if (!first.includes(expected)) fault(`search for ${words} finds first: ${first}`);
  }
  await page.keyboard.press('ArrowDown');
  if (!(await page.evaluate(() => document.activeElement.matches('#results a')))) fault('an arrow key does not reach the results');
  await page.keyboard.press('Escape');
  if (await page.$eval('#results', (each) => each.checkVisibility())) fault('Escape does not close the results');
  await page.keyboard.press('Enter');
  await page.waitForFunction((path) => !location.href.endsWith(path), { timeout: 5000 }, PATTERN).catch(() => fault('Enter does not open the first result'));
  await page.close();
}

async function theme() {
  const page = await open('index.html', 768, 'light');
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await ground();
  await page.click('.theme');
  const after = await ground();
  if (before === after) fault('the switch does not change the theme');
  await page.reload();
  if ((await ground()) !== after) fault('the theme is not kept');
  await page.click('.theme');
  await page.close();
}

async function plain() {
  const page = await open(PATTERN, 768, 'light', false);
  const { hidden, controls } = await page.evaluate(() => ({
    hidden: [...document.querySelectorAll('main :is(h2, h3, p, li, pre, dd, td)')]
      .filter((each) => !each.closest('details, .toc') && !each.checkVisibility())
      .map((each) => each.outerHTML.slice(0, 80)),
    controls: [...document.querySelectorAll('button, input')].filter((each) => each.checkVisibility()).length,
  }));
  for (const each of hidden) fault('without scripts, this is hidden:', each);
  if (controls) fault('without scripts, controls are visible that do nothing');
  await page.close();
}

for (const path of pages) {
  for (const width of WIDTHS) for (const scheme of THEMES) await look(path, width, scheme);
}
for (const path of pages) for (const width of [360, 1440]) await tab(path, width);
await tabs();
await picture();
await search();
await theme();
await plain();
await browser.close();
for (const each of faults) console.log(each);
process.exitCode = faults.length ? 1 : 0;
console.log(`${counts.views} views, ${counts.rules} rules passed, ${counts.stops} controls reached, ${counts.requests} files read, ${faults.length} faults.`);
