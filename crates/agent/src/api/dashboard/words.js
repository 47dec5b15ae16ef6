// Everything the page says, and the small pieces of document it says it with.

/** An element: `el('p.note', { title: 'x' }, 'text', child)`. Text is always text, never markup. */
export function el(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split('.');
  const element = document.createElement(tag);
  element.classList.add(...classes);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, '');
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

const said = new WeakMap();

/** Sets text only if it differs: an unchanged page costs no layout, and asking the document would cost some. */
export function say(element, text) {
  if (said.get(element) === text) return;
  said.set(element, text);
  element.textContent = text;
}

const SVG = 'http://www.w3.org/2000/svg';
export const BELL =
  'M12 2a1.5 1.5 0 0 1 1.5 1.5v.7A6 6 0 0 1 18 10v4l1.7 2.6a.9.9 0 0 1-.75 1.4H5.05a.9.9 0 0 1-.75-1.4L6 14v-4a6 6 0 0 1 4.5-5.8v-.7A1.5 1.5 0 0 1 12 2Zm-2.2 17.5h4.4a2.2 2.2 0 0 1-4.4 0Z';

/** Each state has a shape of its own, the same in graph, table and legend. */
const SHAPES = {
  alive: [['circle', { cx: 12, cy: 12, r: 8, class: 'full' }]],
  suspect: [
    ['circle', { cx: 12, cy: 12, r: 8.5, class: 'dashed' }],
    ['circle', { cx: 12, cy: 12, r: 3.5, class: 'full' }],
  ],
  failed: [
    ['circle', { cx: 12, cy: 12, r: 8.5, class: 'open' }],
    ['path', { d: 'M8.5 8.5l7 7m0-7l-7 7', class: 'open' }],
  ],
  left: [
    ['circle', { cx: 12, cy: 12, r: 8.5, class: 'open' }],
    ['path', { d: 'M8 12h8', class: 'open' }],
  ],
  unknown: [['circle', { cx: 12, cy: 12, r: 8.5, class: 'dashed' }]],
  leader: [['path', { d: BELL, class: 'full' }]],
  sun: [
    ['circle', { cx: 12, cy: 12, r: 4.5, class: 'open' }],
    ['path', { d: 'M12 2v3m0 14v3M2 12h3m14 0h3M5 5l2 2m10 10l2 2M19 5l-2 2M7 17l-2 2', class: 'open' }],
  ],
  moon: [['path', { d: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z', class: 'open' }]],
  system: [
    ['circle', { cx: 12, cy: 12, r: 8.5, class: 'open' }],
    ['path', { d: 'M12 3.5a8.5 8.5 0 0 1 0 17Z', class: 'full' }],
  ],
};

export function shape(name) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', `shape ${name}`);
  svg.setAttribute('aria-hidden', 'true');
  for (const [tag, attributes] of SHAPES[name]) {
    const part = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
    svg.append(part);
  }
  return svg;
}

export const STATES = ['alive', 'suspect', 'failed', 'left'];

/** How long, coarse enough not to flicker. */
export function span(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 60) return `${Math.floor(s)} s`;
  const m = s / 60;
  if (m < 60) return `${Math.floor(m)} min`;
  const h = m / 60;
  if (h < 48) return `${Math.floor(h)} h ${String(Math.floor(m % 60)).padStart(2, '0')} min`;
  return `${Math.floor(h / 24)} days`;
}

/** How long, to the second. */
export function exactly(ms) {
  const s = Math.floor(Math.max(0, ms) / 1000);
  const two = (n) => String(n).padStart(2, '0');
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} min`;
}

/** The part of an epoch that people count by. The whole of it is in the title. */
export function counter(epoch) {
  return epoch == null ? '–' : epoch.split('.')[0];
}

export function at(leader, epoch) {
  return `${leader}@${counter(epoch)}`;
}

const ordered = new Intl.Collator('en', { numeric: true });
let ranks = new Map();

/** Members in the order of their names, node-2 before node-10, each with its rank. Names are compared only if they are new. */
export function ranked(members) {
  const known = ranks.size === members.length && members.every(({ id, name }) => ranks.get(id)?.name === name);
  if (!known) {
    const sorted = [...members].sort((a, b) => ordered.compare(a.name, b.name) || (a.id < b.id ? -1 : 1));
    ranks = new Map(sorted.map(({ id, name }, rank) => [id, { name, rank }]));
  }
  const places = new Array(members.length);
  for (const member of members) {
    const { rank } = ranks.get(member.id);
    places[rank] = { ...member, rank };
  }
  return places;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
export const timeOfDay = (unix) => clock.format(unix);

export function reached(member, age) {
  if (member.reach === 'own') return 'this node';
  if (member.reach?.through) return `through ${member.reach.through}`;
  if (member.state === 'unknown') return '–';
  if (member.state === 'failed' || member.state === 'left') {
    return member.heard_ms == null ? 'never heard' : `last heard ${span(member.heard_ms + age)} ago`;
  }
  if (member.heard_ms == null) return 'not heard yet';
  // To the second it would flicker with every answer.
  return member.heard_ms < 5000 ? 'directly, just now' : `directly, ${span(member.heard_ms + age)} ago`;
}

/** What happened, as a shape, a sentence and whether it is about leading. */
export function sentence(event) {
  const who = event.node?.name ?? 'somebody';
  const where = event.election ?? '';
  switch (event.event) {
    case 'leader-elected': return ['leader', [who, ` leads ${where}`], true];
    case 'leader-confirmed': return ['leader', [who, ` leads ${where}, and nobody doubts it`], true];
    case 'leader-lost': return ['failed', [who, ` no longer leads ${where}; nobody does`], true];
    case 'became-leader': return ['leader', [who, `, this node, may act for ${where}`], true];
    case 'stopped-leading': return ['left', [who, `, this node, stopped leading ${where}`], true];
    case 'member-join': return ['alive', [who, ' joined'], false];
    case 'member-suspect': return ['suspect', [who, ' did not answer'], false];
    case 'member-alive': return ['alive', [who, ' contradicted: it is alive'], false];
    case 'member-failed': return ['failed', [who, ' was given up'], false];
    case 'member-leave': return ['left', [who, ' said goodbye'], false];
    case 'member-update': return ['unknown', [who, ' introduced itself'], false];
    case 'same-name': return ['suspect', [event.detail], true];
    case 'table-filling': return ['suspect', [event.detail], true];
    case 'versions-differ': return ['suspect', [who, ` cannot be talked to: ${event.detail}`], true];
    case 'settings-differ': return ['suspect', [who, ` has other settings for ${where}: ${event.detail}`], true];
    case 'duplicate-identity': return ['failed', [who, ' runs under our identity'], false];
    case 'disk-refused': return ['failed', ['the disk', ` refuses what must be kept: ${event.detail}`], false];
    case 'disk-recovered': return ['alive', ['the disk', ' takes what must be kept again'], false];
    case 'stalled': return ['suspect', ['this node', ' was not running'], false];
    case 'join-failed': return ['suspect', ['this node', ` cannot join by ${event.detail}`], false];
    case 'join-found': return ['alive', [event.detail], false];
    case 'address-differs': return ['suspect', [event.detail], true];
    case 'record-ended': return ['suspect', ['this node', ` is no longer recorded: ${event.detail}`], false];
    default: return ['unknown', [who, ` ${event.event}`], false];
  }
}

export const plural = (n, one, many) => `${n} ${n === 1 ? one : many}`;
