// The page: time, tools, settings, one side or two; or a film by itself.

import { TOOLS, address, ended, fromAddress, lasting, micros, rest, seconds, told } from './edits.js';
import { Film } from './film.js';
import { Lanes } from './lanes.js';
import { Panel } from './panel.js';
import { LESSONS } from './tutorial.js';
import { el, say, shape } from './words.js';

const $ = (id) => document.getElementById(id);
const SPEEDS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50];
const MODES = ['eventual', 'leased', 'learned', 'announced', 'central'];
const TIMINGS = ['local', 'lan', 'wan', 'mesh'];
const recorded = $('film');

const state = { world: '', seed: '1', sets: [], edits: [], beside: false, besideSets: [] };
const time = { t: 0, going: false, speed: SPEEDS.indexOf(1), last: 0, told: 0 };
const tools = { tool: 'look', pending: -1, selected: -1, drag: null };
let worlds = [];
let lesson = -1;

const panels = [new Panel('', jump)];
const lanes = new Lanes($('lanes'));
const main = () => panels[0];
const name = (node) => main().film?.name(node) ?? `n${node}`;
const end = () => main().film?.head?.duration ?? 1e6;

// ---- Time

function jump(t) {
  time.t = Math.max(0, Math.min(t, end()));
  stop();
}

function stop() {
  time.going = false;
  say($('go'), 'Go');
  remember();
}

function go() {
  if (time.t >= end()) time.t = 0;
  time.going = true;
  say($('go'), 'Stop');
}

/** To the next thing that happens, or the one before. */
function step(direction) {
  const { film } = main();
  if (!film) return;
  const times = [];
  const [from, to] = film.between(time.t - 2e6, time.t + 2e6);
  for (let i = from; i < to; i += 1) times.push(film.sent[i], film.arrives[i]);
  for (const mark of film.marks) times.push(mark.t);
  const next = times.filter((t) => (direction > 0 ? t > time.t : t < time.t));
  const target = next.length ? (direction > 0 ? Math.min(...next) : Math.max(...next)) : time.t + direction * 1e6;
  jump(target);
}

function frame(now) {
  const passed = Math.min(0.1, (now - time.last) / 1000);
  time.last = now;
  const speed = SPEEDS[time.speed];
  if (time.going) {
    // Nobody is shown what is not known yet; both sides have the same instant.
    const known = Math.min(...panels.map((panel) => (panel.film ? (panel.film.tail ? end() : panel.film.horizon) : 0)));
    time.t = Math.max(time.t, Math.min(time.t + passed * speed * 1e6, known));
    if (time.t >= end()) stop();
  }
  for (const panel of panels) panel.draw(time.t, { speed, paused: !time.going });
  if (main().scene) lanes.draw(main().scene, main().field.colours, tools.selected, (node) => main().field.hue(node));
  if (now - time.told > 120) {
    time.told = now;
    tell();
  }
  requestAnimationFrame(frame);
}

// ---- What is said

function tell() {
  const { film, scene } = main();
  if (!film?.head) return;
  say($('clock'), `${(time.t / 1e6).toFixed(time.going ? 1 : 3)} s`);
  const known = film.tail ? `of ${(end() / 1e6).toFixed(0)} s` : `${(film.horizon / 1e6).toFixed(0)} of ${(end() / 1e6).toFixed(0)} s computed`;
  say($('known'), known);
  say($('speed'), `×${SPEEDS[time.speed]}`);
  if (document.activeElement !== $('scrub') || time.going) $('scrub').value = String((time.t / end()) * 1000);
  say($('title'), film.head.name);
  for (const panel of panels) panel.tell(time.t);
  story(film);
  nodeCard(scene);
  ticks(film);
  if (recorded) return;
  edits();
  const losing = lasting(state.edits, time.t + 1, (edit) => edit.kind === 'loss');
  const slowed = lasting(state.edits, time.t + 1, (edit) => edit.kind === 'delay');
  slider('loss', losing ? losing.rate * 100 : 0, (value) => (value ? `${value} %` : 'none'));
  slider('delay', slowed ? micros(slowed.by) / 1000 : 0, (value) => (value ? `${value} ms more` : 'none more'));
  lessons();
}

function slider(id, value, words) {
  if (document.activeElement !== $(id)) $(id).value = String(value);
  say($(`${id}-said`), words(Number($(id).value)));
}

let shownStory = '';
function story(film) {
  const marks = film.marks.filter((mark) => mark.t <= time.t).slice(-80).reverse();
  const key = `${marks.length} ${marks[0]?.t} ${marks[0]?.text} ${film.broken.length} ${marks[0]?.node}`;
  if (key === shownStory) return;
  shownStory = key;
  $('story').replaceChildren(...marks.map((mark) => {
    const at = el('button', { type: 'button', title: 'Go there' }, `${(mark.t / 1e6).toFixed(2)} s`);
    at.addEventListener('click', () => jump(mark.t));
    return el('li', { 'data-shape': mark.shape }, shape(mark.shape), el('p', {}, mark.node >= 0 ? el('strong', {}, film.name(mark.node)) : null, `${mark.node >= 0 ? ' ' : ''}${mark.text}`), at);
  }));
}

let shownTicks = '';
function ticks(film) {
  const key = `${film.marks.length} ${state.edits.length} ${film.broken.length}`;
  if (key === shownTicks) return;
  shownTicks = key;
  const svg = $('ticks');
  svg.setAttribute('viewBox', '0 0 1000 8');
  svg.replaceChildren();
  const tick = (t, colour, width) => {
    const line = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
    for (const [key, value] of [['x', (t / end()) * 1000 - width / 2], ['y', 0], ['width', width], ['height', 8], ['fill', `var(--${colour})`]]) line.setAttribute(key, value);
    svg.append(line);
  };
  for (const mark of film.marks.slice(0, 400)) if (mark.shape === 'leader') tick(mark.t, 'leader', 1.5);
  for (const edit of state.edits) tick(micros(edit.at), 'accent', 3);
  for (const one of film.broken) tick(one.t, 'failed', 5);
}

function nodeCard(scene) {
  const node = tools.selected;
  $('node').hidden = node < 0 || !scene;
  if ($('node').hidden) return;
  const { film } = scene;
  say($('node-title'), film.name(node));
  const ms = (t) => `${((t - time.t) / 1000).toFixed(0)} ms`;
  const leader = scene.leader[node];
  const facts = [['is', scene.frozen[node] ? 'frozen' : scene.state[node]], ['lives so far', scene.boots[node]]];
  if (film.head.mode) facts.push(['names', leader < 0 ? 'nobody' : leader === node ? 'itself' : film.name(leader)], ['epoch', scene.epoch[node] || 'none'], ['doubts it', scene.settled[node] ? 'no' : 'yes']);
  if (scene.until[node] > 0) facts.push(['may act until', scene.until[node] > time.t ? `${ms(scene.until[node])} from now` : 'no longer']);
  if (scene.up(node)) {
    const why = film.words[scene.why[node]];
    if (film.head.capacity > 64) facts.push(['waits', 'not recorded above 64 nodes']);
    else facts.push(['waits for', why ? words(why) : 'others'], ['until', scene.waits[node] > 0 ? `${(scene.waits[node] / 1e6).toFixed(3)} s, in ${ms(scene.waits[node])}` : 'somebody says something']);
  }
  const thoughts = [...scene.thinks.values()].filter((one) => one.node === node && one.opinion > 0);
  facts.push(['suspects', thoughts.filter((one) => one.opinion === 1).map((one) => `${film.name(one.of)}${one.by >= 0 ? ` (${film.name(one.by)} says so)` : ''}`).join(', ') || 'nobody']);
  const gone = thoughts.filter((one) => one.opinion > 1).map((one) => film.name(one.of));
  facts.push(['has given up', gone.slice(0, 8).join(', ') || 'nobody']);
  const about = scene.accused().find((one) => one.of === node);
  facts.push(['is accused by', about ? [...about.by].map((by) => film.name(by)).join(', ') || 'nobody' : 'nobody']);
  const key = JSON.stringify(facts);
  if ($('node-facts').dataset.key !== key) {
    $('node-facts').dataset.key = key;
    $('node-facts').replaceChildren(...facts.flatMap(([what, value]) => [el('dt', {}, what), el('dd', {}, String(value))]));
  }
}

/** `ConvictSuspect` as `convict suspect`. */
const words = (word) => word.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();

// ---- What is done

function edit(fault) {
  state.edits = [...state.edits, { at: seconds(time.t), ...fault }].sort((a, b) => micros(a.at) - micros(b.at));
  changed();
}

function change(edits) {
  state.edits = edits;
  changed();
}

/** The run is another one from now on. */
async function changed() {
  remember();
  shownTicks = '';
  const wish = { world: state.world, seed: state.seed, sets: state.sets, edits: state.edits };
  const all = [main().want(wish, () => time.t)];
  if (state.beside) all.push(panels[1].want({ ...wish, sets: [...state.sets, ...state.besideSets] }, () => time.t));
  try {
    await Promise.all(all);
    complain('');
  } catch (error) {
    complain(error.message);
  }
}

function complain(text) {
  $('banner').hidden = !text;
  say($('banner'), text);
}

function remember() {
  if (!recorded && state.world) history.replaceState(null, '', address(state, time.t));
}

/** Does to a node what the chosen tool does. */
function act(tool, node) {
  const { scene } = main();
  const now = time.t;
  switch (tool) {
    case 'look':
      tools.selected = tools.selected === node ? -1 : node;
      break;
    case 'kill':
      if (scene.up(node) || scene.frozen[node]) edit({ kind: 'crash', node });
      else edit({ kind: 'recover', node, state: 'kept' });
      break;
    case 'freeze': {
      const before = lasting(state.edits, now, (one) => one.kind === 'pause' && one.node === node);
      if (before) change(ended(state.edits, before, now));
      else edit({ kind: 'pause', node, for: rest(now, end()) });
      break;
    }
    case 'disk':
      edit({ kind: 'disk', node, for: '10s' });
      break;
    case 'link':
    case 'way': {
      if (tools.pending < 0 || tools.pending === node) {
        tools.pending = tools.pending === node ? -1 : node;
        break;
      }
      const [from, to, both] = [[tools.pending], [node], tool === 'link'];
      tools.pending = -1;
      const same = (one) => one.kind === 'cut' && Boolean(one.both) === both && one.from.length === 1 && one.to.length === 1
        && ((one.from[0] === from[0] && one.to[0] === to[0]) || (both && one.from[0] === to[0] && one.to[0] === from[0]));
      const before = lasting(state.edits, now, same);
      const healed = before && state.edits.some((one) => one.kind === 'heal' && micros(one.at) > micros(before.at) && micros(one.at) <= now);
      if (before && !healed) change(ended(state.edits, before, now));
      else edit({ kind: 'cut', from, to, ...(both ? { both } : {}) });
      break;
    }
  }
  for (const panel of panels) [panel.field.selected, panel.field.pending] = [tools.selected, tools.pending];
}

function choose(tool) {
  tools.tool = tool;
  tools.pending = -1;
  for (const chip of $('tools').children) chip.setAttribute('aria-pressed', String(chip.dataset.tool === tool));
  say($('hint'), TOOLS.find((one) => one.tool === tool).hint);
  for (const panel of panels) panel.canvas.dataset.tool = tool;
}

/** What a mouse, a finger or a key does on the canvas of a side. */
function listen(panel) {
  const { canvas } = panel;
  const where = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.x, event.clientY - box.y];
  };
  canvas.addEventListener('pointerdown', (event) => {
    if (!panel.scene) return;
    canvas.setPointerCapture(event.pointerId);
    const at = where(event);
    const node = panel.field.nearest(...at);
    tools.drag = { node, at, moved: false };
    if (tools.tool === 'part' && !recorded) panel.field.lasso = [at];
  });
  canvas.addEventListener('pointermove', (event) => {
    const at = where(event);
    const over = panel.field.nearest(...at);
    panel.field.pointed = over;
    canvas.dataset.over = over >= 0 ? 'yes' : 'no';
    const { drag } = tools;
    if (!drag) return;
    if (panel.field.lasso) panel.field.lasso.push(at);
    else if (tools.tool === 'look' && drag.node >= 0 && (drag.moved || Math.hypot(at[0] - drag.at[0], at[1] - drag.at[1]) > 5)) {
      const { head } = panel.film;
      if (head.legs || (recorded && head.places)) return;
      drag.moved = true;
      drag.to = at;
      panel.field.dragged.set(drag.node, head.places ? at : [at[0] / panel.field.width, at[1] / panel.field.height]);
    }
  });
  canvas.addEventListener('pointerup', () => {
    const { drag } = tools;
    tools.drag = null;
    if (!drag) return;
    if (panel.field.lasso) {
      const loop = panel.field.caught();
      panel.field.lasso = null;
      const all = panel.film.head.capacity;
      if (loop.length && loop.length < all) edit({ kind: 'partition', groups: [loop] });
    } else if (drag.moved) {
      if (panel.film.head.fixed) edit({ kind: 'place', node: drag.node, to: panel.field.unit(...drag.to).map((one) => Math.round(one * 1000) / 1000) });
    } else if (drag.node >= 0) act(recorded ? 'look' : tools.tool, drag.node);
    else if (tools.tool === 'look') act('look', tools.selected);
  });
  canvas.addEventListener('pointerleave', () => { panel.field.pointed = -1; });
  canvas.addEventListener('keydown', (event) => {
    const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (arrow) panel.field.pointed = panel.field.towards(panel.field.pointed, ...arrow);
    else if (event.key === 'Enter' && panel.field.pointed >= 0) act(recorded ? 'look' : tools.tool, panel.field.pointed);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

let shownEdits = '';
function edits() {
  const key = JSON.stringify([state.edits, state.edits.map((one) => micros(one.at) > time.t), main().film.head.name]);
  if (key === shownEdits) return;
  shownEdits = key;
  $('edits').replaceChildren(...state.edits.map((one) => {
    const undo = el('button', { type: 'button', 'aria-label': `Undo: ${told(one, name)}`, title: 'Undo' }, '×');
    undo.addEventListener('click', () => change(state.edits.filter((other) => other !== one)));
    return el('li', { 'data-later': micros(one.at) > time.t }, el('time', {}, `${(micros(one.at) / 1e6).toFixed(2)} s`), el('span', {}, told(one, name)), undo);
  }));
}

// ---- Settings

const split = (text) => text.split(/\s+/).filter(Boolean);
const electionOf = () => main().film?.head?.election;
const modeSet = (mode) => `node.election.${electionOf()}.mode=${mode}`;

function settings() {
  const { head } = main().film;
  $('node-settings').hidden = !head.node;
  $('mode').value = head.mode ?? '';
  $('timing').value = state.sets.find((set) => set.startsWith('node.timing.profile='))?.split('=')[1] ?? '';
  $('sets').value = state.sets.join(' ');
  const options = [el('option', { value: '' }, 'nothing'), ...(head.node ? MODES.map((mode) => el('option', { value: mode }, mode)) : []), el('option', { value: 'other' }, 'overrides …')];
  $('beside').replaceChildren(...options);
  const mode = state.besideSets.length === 1 && MODES.find((one) => state.besideSets[0] === modeSet(one));
  $('beside').value = state.beside ? mode || 'other' : '';
  $('beside-sets').hidden = $('beside').value !== 'other';
  $('beside-sets').value = state.besideSets.join(' ');
}

function setOne(prefix, value) {
  state.sets = state.sets.filter((set) => !set.startsWith(prefix));
  if (value) state.sets.push(prefix + value);
}

/** Shows the other side, or no longer. */
function sides() {
  if (state.beside && panels.length === 1) {
    panels.push(new Panel('', jump));
    $('stages').append(panels[1].root);
    panels[1].open();
    listen(panels[1]);
    choose(tools.tool);
  } else if (!state.beside && panels.length === 2) {
    panels[1].turn += 1;
    panels.pop().root.remove();
  }
  const said = (sets) => sets.map((set) => set.replace(/^node\.election\.[^.]+\./, '').replace('=', ' ')).join(', ');
  say(panels[0].label, state.beside ? said(state.sets) || 'as it is' : '');
  if (panels[1]) say(panels[1].label, said(state.besideSets) || 'the same');
}

/** Another run altogether. */
async function begin(wish) {
  Object.assign(state, { sets: [], edits: [], beside: false, besideSets: [] }, wish);
  delete state.t;
  delete state.at;
  [tools.selected, tools.pending] = [-1, -1];
  $('world').value = state.world;
  $('seed').value = state.seed;
  sides();
  const all = changed();
  await Promise.race([all, new Promise((done) => {
    const wait = () => (main().film?.head ? done() : setTimeout(wait, 30));
    wait();
  })]);
  if (main().film?.head) settings();
  return all;
}

// ---- The tutorial

function teach(index) {
  lesson = index;
  $('lesson').hidden = index < 0;
  if (index < 0) return;
  const { title, text, wish } = LESSONS[index];
  say($('lesson-title'), title);
  say($('lesson-step'), `${index + 1} of ${LESSONS.length}`);
  say($('lesson-text'), text);
  say($('lesson-done'), '');
  $('lesson-back').disabled = index === 0;
  say($('lesson-next'), index + 1 === LESSONS.length ? 'Done' : 'Next');
  $('lesson').dataset.done = 'no';
  choose('look');
  stop();
  time.t = wish.at * 1e6;
  begin({ world: wish.world, seed: wish.seed, sets: [...wish.sets] });
}

function lessons() {
  if (lesson < 0 || $('lesson').dataset.done === 'yes') return;
  const { film, scene } = main();
  if (!scene || film.head.file !== LESSONS[lesson].wish.world) return;
  if (LESSONS[lesson].done({ film, scene, state, t: time.t })) {
    $('lesson').dataset.done = 'yes';
    say($('lesson-done'), LESSONS[lesson].look);
  }
}

// ---- The beginning

function controls() {
  $('go').addEventListener('click', () => (time.going ? stop() : go()));
  $('back').addEventListener('click', () => jump(0));
  $('ahead').addEventListener('click', () => step(1));
  $('behind').addEventListener('click', () => step(-1));
  const faster = (by) => { time.speed = Math.max(0, Math.min(SPEEDS.length - 1, time.speed + by)); };
  $('faster').addEventListener('click', () => faster(1));
  $('slower').addEventListener('click', () => faster(-1));
  $('scrub').addEventListener('input', () => {
    time.t = (Number($('scrub').value) / 1000) * end();
    if (time.going) stop();
  });
  $('scrub').addEventListener('change', remember);
  $('lanes-span').addEventListener('change', () => { lanes.span = Number($('lanes-span').value); });
  $('node-close').addEventListener('click', () => act('look', tools.selected));
  $('theme').prepend(shape('system'));
  $('theme').addEventListener('click', () => {
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    const { dataset } = document.documentElement;
    const next = (dataset.theme ?? (dark ? 'dark' : 'light')) === 'dark' ? 'light' : 'dark';
    dataset.theme = next;
    try {
      localStorage.setItem('bellwether-theme', next);
    } catch {
      // Storage may be forbidden; then it lasts as long as the page.
    }
    for (const panel of panels) panel.field.repaint();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => panels.forEach((panel) => panel.field.repaint()));
  document.addEventListener('keydown', (event) => {
    if (event.target.matches('input:not([type=range]), select') || event.ctrlKey || event.metaKey || event.altKey) return;
    const tool = TOOLS.find((one) => one.key === event.key.toUpperCase());
    if (event.key === ' ' && !event.target.matches('button')) time.going ? stop() : go();
    else if (event.key === '.') step(1);
    else if (event.key === ',') step(-1);
    else if (event.key === '+') faster(1);
    else if (event.key === '-') faster(-1);
    else if (event.key === 'Home') jump(0);
    else if (event.key === 'Escape') [tools.selected, tools.pending] = [-1, -1];
    else if (!recorded && tool) choose(tool.tool);
    else if (!recorded && event.key.toUpperCase() === 'H') edit({ kind: 'heal' });
    else return;
    for (const panel of panels) [panel.field.selected, panel.field.pending] = [tools.selected, tools.pending];
    event.preventDefault();
  });
}

function liveControls() {
  for (const { tool, key, text } of TOOLS) {
    const chip = el('button.chip', { type: 'button', 'data-tool': tool, 'aria-pressed': 'false', title: key }, text);
    chip.addEventListener('click', () => choose(tool));
    $('tools').append(chip);
  }
  for (const [tool, text] of [['kill', 'Kill or revive'], ['freeze', 'Freeze or thaw'], ['disk', 'Fill its disk']]) {
    const chip = el('button.chip', { type: 'button' }, text);
    chip.addEventListener('click', () => act(tool, tools.selected));
    $('node-acts').append(chip);
  }
  $('heal').addEventListener('click', () => edit({ kind: 'heal' }));
  for (const [id, fault] of [['loss', (value) => ({ kind: 'loss', rate: value / 100 })], ['delay', (value) => ({ kind: 'delay', by: `${value}ms` })]]) {
    $(id).addEventListener('input', () => tell());
    $(id).addEventListener('change', () => {
      const value = Number($(id).value);
      const before = lasting(state.edits, time.t, (one) => one.kind === id);
      const list = (before ? ended(state.edits, before, time.t) : state.edits).filter((one) => one.kind !== id || micros(one.at) !== Math.round(time.t));
      const added = value ? [{ at: seconds(time.t), ...fault(value), for: rest(time.t, end()) }] : [];
      $(id).blur();
      change([...list, ...added].sort((a, b) => micros(a.at) - micros(b.at)));
    });
  }
  $('world').addEventListener('change', () => {
    time.t = 0;
    teach(-1);
    begin({ world: $('world').value, seed: state.seed });
  });
  const again = () => begin({ ...state });
  $('seed').addEventListener('change', () => {
    state.seed = $('seed').value.trim() || '1';
    again();
  });
  $('sets').addEventListener('change', () => {
    state.sets = split($('sets').value);
    again();
  });
  for (const mode of MODES) $('mode').append(el('option', { value: mode }, mode));
  for (const timing of ['', ...TIMINGS]) $('timing').append(el('option', { value: timing }, timing || 'as it is'));
  $('mode').addEventListener('change', () => {
    setOne(`node.election.${electionOf()}.mode=`, $('mode').value);
    again();
  });
  $('timing').addEventListener('change', () => {
    setOne('node.timing.profile=', $('timing').value);
    again();
  });
  $('beside').addEventListener('change', () => {
    const value = $('beside').value;
    state.beside = value !== '';
    state.besideSets = MODES.includes(value) ? [modeSet(value)] : [];
    again();
  });
  $('beside-sets').addEventListener('change', () => {
    state.besideSets = split($('beside-sets').value);
    again();
  });
  $('copy').addEventListener('click', async () => {
    remember();
    try {
      await navigator.clipboard.writeText(location.href);
      say($('copy'), 'Copied');
    } catch {
      say($('copy'), 'It is in the address bar');
    }
    setTimeout(() => say($('copy'), 'Copy address'), 1500);
  });
  $('export').addEventListener('click', async () => {
    const body = JSON.stringify({ world: state.world, seed: state.seed, sets: state.sets, edits: state.edits });
    const answer = await fetch('/api/scenario', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    if (!answer.ok) return complain((await answer.json()).error);
    const link = el('a', { href: URL.createObjectURL(new Blob([await answer.text()], { type: 'text/plain' })), download: 'played.toml' });
    link.click();
  });
  $('teach').addEventListener('click', () => teach(0));
  $('lesson-next').addEventListener('click', () => teach(lesson + 1 < LESSONS.length ? lesson + 1 : -1));
  $('lesson-back').addEventListener('click', () => teach(Math.max(0, lesson - 1)));
  $('lesson-end').addEventListener('click', () => teach(-1));
  window.addEventListener('hashchange', () => {
    const wish = fromAddress(location.hash);
    if (!wish) return;
    stop();
    time.t = wish.t;
    begin(wish);
  });
}

async function start() {
  $('stages').append(main().root);
  main().open();
  listen(main());
  controls();
  if (recorded) {
    document.documentElement.dataset.film = 'yes';
    const film = new Film();
    film.feed(recorded.textContent.trimStart());
    main().show(film);
    time.t = Number(new URLSearchParams(location.hash.slice(1)).get('at') ?? 0) * 1e6;
  } else {
    liveControls();
    choose('look');
    const answer = await (await fetch('/api/worlds')).json();
    worlds = answer.worlds;
    $('world').replaceChildren(...worlds.map((world) => el('option', { value: world.key, title: world.about }, world.key === world.title ? world.key : `${world.title}`)));
    const wish = fromAddress(location.hash);
    time.t = wish?.t ?? 0;
    begin(wish ?? { world: worlds[0].key, seed: answer.seed });
  }
  requestAnimationFrame(frame);
}

// For tests, and for the curious: what is looked at, and how it is.
window.play = { state, clock: time, tools, panels, jump, edit, start: go, stop };
start();
