// All pages are readable without this script. It adds the theme switch, search, tabs, the picture of related
// patterns, and colors in code.
const root = document.documentElement;
const base = new URL('.', document.currentScript.src).href;
const dark = matchMedia('(prefers-color-scheme: dark)');

function stored(key, value) {
  try {
    if (value !== undefined) localStorage.setItem(key, value);
    return localStorage.getItem(key);
  } catch {
    return null; // no storage for local files in some browsers
  }
}

root.classList.add('js');
if (stored('theme')) root.dataset.theme = stored('theme');

addEventListener('DOMContentLoaded', () => {
  const bar = document.querySelector('.bar');
  bar.insertAdjacentHTML('beforeend', `<form class="search" role="search">
<input type="search" aria-label="Search the patterns" placeholder="Search" autocomplete="off" spellcheck="false" aria-controls="results">
<div id="results" hidden><p role="status"></p><ul></ul></div>
</form>
<button class="theme" type="button"></button>`);
  addThemeSwitch(bar.querySelector('.theme'));
  addSearch(bar.querySelector('.search'));
  for (const each of document.querySelectorAll('.stacks')) addTabs(each);
  for (const each of document.querySelectorAll('.related')) addPicture(each);
  addColors();
  const update = () => document.querySelectorAll('pre, .scroll').forEach(makeScrollable);
  update();
  addEventListener('resize', update);
  document.addEventListener('toggle', update, true);
  document.addEventListener('shown', update);
});

// A region that scrolls can be focused, so that arrow keys scroll it.
function makeScrollable(element) {
  if (!element.clientWidth) return;
  if (element.scrollWidth > element.clientWidth) {
    element.tabIndex = 0;
    element.setAttribute('role', 'region');
    const part = element.closest('figure, article, .stacks > section');
    const heading = part ? part.querySelector('figcaption, h3') : element.previousElementSibling;
    element.setAttribute('aria-label', heading.textContent);
  } else {
    for (const name of ['tabindex', 'role', 'aria-label']) element.removeAttribute(name);
  }
}

function addThemeSwitch(button) {
  const other = () => ((root.dataset.theme ?? (dark.matches ? 'dark' : 'light')) === 'dark' ? 'light' : 'dark');
  const show = () => {
    button.textContent = other() === 'dark' ? 'Dark' : 'Light';
    button.setAttribute('aria-label', `${button.textContent} theme`);
  };
  button.addEventListener('click', () => {
    root.dataset.theme = stored('theme', other()) ?? other();
    show();
  });
  dark.addEventListener('change', show);
  show();
}

function addTabs(section) {
  const list = document.createElement('ul');
  const panels = [...section.querySelectorAll(':scope > section')];
  const tabs = panels.map(() => document.createElement('a'));
  list.className = 'jump choices';
  list.setAttribute('role', 'tablist');
  list.setAttribute('aria-label', 'Stacks');
  panels[0].before(list);
  tabs.forEach((tab, index) => {
    const item = document.createElement('li');
    item.append(tab);
    list.append(item);
    item.setAttribute('role', 'presentation');
    tab.href = `#${panels[index].id}`;
    tab.textContent = panels[index].querySelector('h3').firstChild.textContent.trim();
    tab.setAttribute('role', 'tab');
    tab.id = `tab-${panels[index].id}`;
    tab.setAttribute('aria-controls', panels[index].id);
    panels[index].setAttribute('role', 'tabpanel');
    panels[index].setAttribute('aria-labelledby', tab.id);
    panels[index].tabIndex = 0;
    tab.addEventListener('click', (event) => {
      event.preventDefault();
      stored('stack', panels[index].id);
      history.replaceState(null, '', tab.hash);
      select(index);
    });
  });
  list.addEventListener('keydown', (event) => {
    const at = tabs.indexOf(document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const tab = tabs[(next + tabs.length) % tabs.length];
    tab.focus();
    tab.click();
  });
  function select(chosen) {
    tabs.forEach((tab, index) => {
      tab.setAttribute('aria-selected', index === chosen);
      tab.tabIndex = index === chosen ? 0 : -1;
      panels[index].hidden = index !== chosen;
    });
    document.dispatchEvent(new Event('shown'));
  }
  const named = (id) => panels.findIndex((panel) => panel.id === id);
  const byHash = () => named(location.hash.slice(1));
  select(byHash() >= 0 ? byHash() : Math.max(named(stored('stack')), 0));
  if (byHash() >= 0) section.scrollIntoView();
  addEventListener('hashchange', () => byHash() >= 0 && select(byHash()));
}

function addSearch(form) {
  const input = form.querySelector('input');
  const panel = form.querySelector('div');
  const list = panel.querySelector('ul');
  const status = panel.querySelector('p');
  let patterns = null;

  window.searchIndex = (rows) => {
    patterns = rows.map(([page, id, name, threat, more]) => {
      const fields = [`${id} ${Number(number(id))} ${name}`, threat, more].map(words);
      return { page, id, name, threat, fields };
    });
    show();
  };
  const load = () => {
    if (patterns) return;
    patterns = [];
    const script = document.createElement('script');
    script.src = `${base}search.js`;
    document.head.append(script);
  };

  function show() {
    const terms = words(input.value);
    panel.hidden = !terms.length;
    if (panel.hidden) return;
    const found = rank(patterns ?? [], terms);
    status.textContent = found.length ? `${found.length} ${found.length === 1 ? 'pattern' : 'patterns'}` : 'No pattern matches.';
    list.replaceChildren(...found.slice(0, 12).map(({ page, id, name, threat }) => {
      const item = document.createElement('li');
      const link = document.createElement('a');
      const text = document.createElement('span');
      const label = document.createElement('strong');
      link.href = base + page;
      label.textContent = name;
      text.textContent = `${id} · ${threat}`;
      link.append(label, text);
      item.append(link);
      return item;
    }));
  }
  const close = () => { panel.hidden = true; };

  input.addEventListener('focus', () => { load(); show(); });
  input.addEventListener('input', show);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    list.querySelector('a')?.click();
  });
  form.addEventListener('focusout', (event) => { if (!form.contains(event.relatedTarget)) close(); });
  panel.addEventListener('mousedown', (event) => event.preventDefault()); // keeps the focus, so that the click arrives
  form.addEventListener('keydown', (event) => {
    const stops = [input, ...list.querySelectorAll('a')];
    const at = stops.indexOf(document.activeElement);
    if (event.key === 'Escape') { input.focus(); close(); }
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    event.preventDefault();
    stops[Math.min(Math.max(at + (event.key === 'ArrowDown' ? 1 : -1), 0), stops.length - 1)].focus();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target.closest('input, textarea') || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    input.focus();
  });
}

function words(text) {
  return text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
}

// A pattern matches a term with its name best, then with its threat, then with other words. If no pattern has all
// terms, those with the most come first.
function rank(patterns, terms) {
  const weights = [6, 3, 2];
  const scored = patterns.map((pattern) => {
    const each = terms.map((term) => Math.max(...pattern.fields.map((field, index) => match(field, term) * weights[index])));
    return { pattern, missing: each.filter((value) => !value).length, score: each.reduce((sum, value) => sum + value, 0) };
  });
  const fewest = Math.min(...scored.map(({ missing }) => missing));
  const chosen = scored.filter(({ missing, score }) => score && missing === fewest);
  return chosen.sort((one, other) => other.score - one.score).map(({ pattern }) => pattern);
}

function match(field, term) {
  if (field.includes(term)) return 1.5;
  return field.some((word) => word.startsWith(term)) ? 1 : 0;
}

// The picture of the related patterns, in units of the SVG. The list beside it says the same.
function addPicture(section) {
  const [width, center, left, box, line] = [340, 66, 102, 208, 14]; // the width of a phone, so that texts keep their size
  let top = 1;
  const boxes = [...section.querySelectorAll('li')].map((item) => {
    const [id, kind] = item.querySelector('.via').textContent.split(', ');
    const lines = wrapped(item.querySelector('a')?.textContent ?? '', 28);
    const height = line * (lines.length + 1) + 10;
    top += height + 8;
    return { id, kind, lines, height, top: top - height - 8, middle: top - 8 - height / 2 };
  });
  const height = Math.max(top - 7, 44);
  const [middle, right] = [height / 2, left + box];
  const named = (id) => boxes.findIndex((each) => each.id === id);
  const pairs = section.querySelector('.pairs')?.textContent.matchAll(/(\S+) and ([^\s;.]+)/g) ?? [];
  const links = [...pairs].map(([, one, other]) => [named(one), named(other)]);
  const curves = boxes.map(({ kind, middle: y }) =>
    `<path class="${kind}" d="M${center} ${middle}C${left - 14} ${middle} ${center + 14} ${y} ${left} ${y}"/>`);
  const bows = links.map(([one, other]) => {
    const [from, to] = [boxes[one].middle, boxes[other].middle];
    const x = right + Math.min(8 + 6 * Math.abs(other - one), width - right) * 4 / 3 - 2;
    return `<path class="link" d="M${right} ${from}C${x} ${from} ${x} ${to} ${right} ${to}"/>`;
  });
  const rects = boxes.map(({ lines, height: high, top: y }) =>
    `<rect x="${left}" y="${y}" width="${box}" height="${high}" rx="6"/><text x="${left + 10}" y="${y + 16}"><tspan class="kind"></tspan>${
      lines.map(() => `<tspan x="${left + 10}" dy="${line}"></tspan>`).join('')}</text>`);
  const own = document.querySelector('.meta .number').textContent;
  const texts = [number(own), ...boxes.flatMap(({ id, kind, lines }) => [`${number(id)} · ${kind}`, ...lines])];
  const figure = document.createElement('figure');
  figure.className = 'picture';
  figure.setAttribute('aria-hidden', 'true');
  figure.innerHTML = `<svg viewBox="0 0 ${width} ${Math.round(height)}">${[...curves, ...bows].join('')}
<rect class="center" x="1" y="${middle - 20}" width="${center - 1}" height="40" rx="6"/>
<text class="center" x="${center / 2}" y="${middle + 5}" text-anchor="middle"></text>${rects.join('')}</svg>
${links.length ? '<figcaption>Curves on the right connect patterns that are also related to each other.</figcaption>' : ''}`;
  figure.querySelectorAll('text.center, tspan').forEach((each, index) => { each.textContent = texts[index]; });
  section.prepend(figure);
}

function number(id) {
  return id.split('-').pop();
}

// The lines of a text, each with so many characters at most where its words allow it.
function wrapped(text, most) {
  const lines = [];
  for (const word of text.split(' ').filter(Boolean)) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && longer.length <= most) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

// Colors without extra elements: the browser paints ranges of the text.
const HASH = new Set(['python', 'ruby', 'php']);
const KEYWORDS = 'abstract add alter and any as async await begin boolean break case catch check class const continue create def default del delete do elif else elsif end enable enum except export extends false final finally fn for foreach from fun func function if implements import in insert interface into is lambda let level map match module namespace new nil none not null on or package policy private protected public raise record references require rescue return returns security select self set static struct super switch table this throw to trigger true try type undefined unless until update using val var void when where while with yield';
const KEYWORD = new Set(KEYWORDS.split(' '));

function addColors() {
  if (!globalThis.Highlight) return;
  const kinds = { comment: new Highlight(), string: new Highlight(), keyword: new Highlight() };
  for (const code of document.querySelectorAll('pre code')) {
    const language = code.dataset.language;
    const comment = HASH.has(language) ? '#.*' : language === 'sql' ? '--.*' : '//.*|/\\*[^]*?\\*/';
    const token = new RegExp(`(${comment})|("""[^]*?"""|"(?:\\\\.|[^"\\\\\\n])*"|'(?:\\\\.|[^'\\\\\\n])*'|\`[^\`]*\`)|([A-Za-z_$][\\w$]*)`, 'g');
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      for (const found of walker.currentNode.data.matchAll(token)) {
        const kind = found[1] ? 'comment' : found[2] ? 'string' : KEYWORD.has(language === 'sql' || found[3] === 'None' || found[3] === 'True' || found[3] === 'False' ? found[3].toLowerCase() : found[3]) ? 'keyword' : null;
        if (!kind) continue;
        const range = new StaticRange({ startContainer: walker.currentNode, startOffset: found.index, endContainer: walker.currentNode, endOffset: found.index + found[0].length });
        kinds[kind].add(range);
      }
    }
  }
  for (const [kind, highlight] of Object.entries(kinds)) CSS.highlights.set(kind, highlight);
}
