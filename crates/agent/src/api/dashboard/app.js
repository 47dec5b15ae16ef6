// The dashboard: one agent's view of its cluster, kept current.

import { Feed, json } from './feed.js';
import { Graph } from './graph.js';
import { FEW } from './layout.js';
import { Leaders } from './leaders.js';
import { MeshMap } from './map.js';
import { Members } from './members.js';
import { Stage } from './stage.js';
import { Timeline } from './timeline.js';
import { Why } from './why.js';
import { STATES, at, el, exactly, plural, ranked, say, shape, timeOfDay } from './words.js';

const by = (id) => document.getElementById(id);
const page = {
  status: null,
  /** When it was told, on the clock of the page. */
  told: 0,
  link: 'connecting',
  chosen: null,
  viewpoint: null,
  members: [],
  /** How long suspects had when they were first seen as such. */
  totals: new Map(),
};

const staged = document.documentElement.dataset.stage === 'yes';
const stage = staged ? new Stage({ changed: onStage, failed: announce }) : null;
const acts = (name) => (stage ? stage.buttons(name) : null);

const graph = new Graph(by('graph'), { pick, point });
const leaders = new Leaders(by('leaders'), choose);
const mesh = new MeshMap({ card: by('map'), canvas: by('mesh'), note: by('map-note'), ranks: by('ranks') });
const timeline = new Timeline(by('timeline'), by('timeline-empty'), by('timeline-filter'));
const members = new Members(
  { rows: by('rows'), scroll: by('members-scroll'), empty: by('members-empty'), filter: by('members-filter'), search: by('members-search') },
  { pick, acts },
);
const why = new Why(
  { dialog: by('why'), name: by('why-name'), body: by('why-body'), close: by('why-close') },
  { look, acts, closed: () => graph.select(null) },
);
let feed = null;

/** Follows an agent: the one that serves the page, or on a stage the named one. */
function follow(name) {
  feed?.stop();
  page.viewpoint = name;
  by('viewpoint').value = name ?? '';
  feed = new Feed(base(), { status: onStatus, events: (events) => timeline.replace(events), event: (event) => timeline.add(event), state: onLink });
}

function base() {
  return page.viewpoint === null ? '/v1' : `/v1/dev/nodes/${encodeURIComponent(page.viewpoint)}`;
}

const age = () => performance.now() - page.told;

function onStatus(status) {
  const before = page.status;
  [page.status, page.told] = [status, performance.now()];
  if (before && before.node.id === status.node.id) tellChanges(before, status);
  render();
  stage?.look();
}

function render() {
  const { status } = page;
  if (!status) return;
  page.members = status.members.map(known);
  if (stage) {
    const names = new Set(page.members.map((member) => member.name));
    const unknown = stage.nodes.filter((node) => !names.has(node.name));
    page.members.push(...unknown.map(({ name }) => ({ id: `stage:${name}`, name, state: 'unknown', suspicions: 0 })));
  }
  page.members = ranked(page.members);
  const suspects = new Set(page.members.map((member) => member.total && member.id));
  for (const id of page.totals.keys()) if (!suspects.has(id)) page.totals.delete(id);
  if (!status.elections.some((election) => election.election === page.chosen)) page.chosen = status.elections[0]?.election;
  const live = status.members.filter(({ state }) => state === 'alive' || state === 'suspect').length;
  const leading = new Map();
  for (const { election, leader } of status.elections) {
    if (leader) leading.set(leader.id, [...(leading.get(leader.id) ?? []), election]);
  }
  const rival = stage?.nodes.find((node) => node.says?.is_leader && node.name !== status.elections[0]?.leader?.name);
  leaders.update(stage ? status.elections.map(asked) : status.elections, live, page.chosen, rival);
  const scored = status.elections.filter((election) => election.scores?.length);
  members.update(page.members, leading, scored.find((election) => election.election === page.chosen) ?? scored[0]);
  draw();
  drawMap();
  tick();
  by('main').setAttribute('aria-busy', 'false');
  say(by('cluster'), status.cluster);
  say(by('viewer'), status.node.name);
  say(by('graph-note'), live < status.members.length ? `${live} here, ${status.members.length - live} gone` : plural(live, 'member', 'members'));
  const alone = page.members.length === 1;
  by('graph-empty').hidden = !alone;
  by('graph-empty').classList.toggle('below', alone);
  say(by('graph-empty'), alone ? `Only this node is here. Others join it with --join ${status.members[0].addresses[0] ?? 'ADDRESS'}` : '');
  const first = status.elections[0];
  document.title = first ? `${first.leader ? at(first.leader.name, first.epoch) : 'no leader'} · ${status.cluster} · Bellwether` : `${status.cluster} · Bellwether`;
  const number = new Intl.NumberFormat('en');
  const refused = Object.values(status.counters.dropped).reduce((sum, count) => sum + count, 0);
  say(by('foot'), `Bellwether ${status.version} · ${status.node.name} up ${exactly(status.uptime_ms)} · ${number.format(status.counters.sent)} sent, ${number.format(status.counters.received)} received, ${number.format(refused)} refused`);
}

/** On a stage everybody in reach can be asked, which is sooner than hearing it from them by and by. */
function asked(election, at) {
  if (at > 0 || !election.leader) return election;
  const there = new Set(page.members.filter(({ state }) => state === 'alive' || state === 'suspect').map(({ name }) => name));
  const inReach = stage.nodes.filter((node) => there.has(node.name) && (!node.cut || node.name === page.status.node.name));
  const heard = inReach.filter((node) => node.says?.leader);
  const same = ({ says }) => says.leader === election.leader.name && says.epoch === election.epoch;
  const dissent = heard.filter((node) => !same(node)).map((node) => [node.name, node.says.leader]);
  return { ...election, agreement: { agree: heard.length - dissent.length, heard: heard.length, dissent } };
}

/** A member, with how long it had when its countdown was first seen. */
function known(member) {
  if (member.state !== 'suspect' || member.convicted_in_ms == null) {
    page.totals.delete(member.id);
    return member;
  }
  const total = Math.max(page.totals.get(member.id) ?? 0, member.convicted_in_ms);
  page.totals.set(member.id, total);
  return { ...member, total };
}

function draw() {
  const election = page.status.elections.find(({ election: name }) => name === page.chosen);
  const own = page.status.node;
  const nodes = page.members.map((member) => {
    const actor = stage?.find(member.name);
    const leader = member.id === election?.leader?.id;
    return {
      id: member.id,
      name: member.name,
      state: actor && !actor.running && member.state === 'alive' ? 'unknown' : member.state,
      own: member.id === own.id,
      leader,
      epoch: leader ? election.epoch : null,
      claims: !leader && actor?.says?.is_leader ? actor.says.epoch : null,
      cut: Boolean(actor?.cut),
      until: member.convicted_in_ms == null ? null : page.told + member.convicted_in_ms,
      total: member.total,
    };
  });
  graph.update(nodes, links(own));
}

function drawMap() {
  if (stage) return;
  const election = page.status.elections.find(({ election: name }) => name === page.chosen);
  mesh.update(election, `${base()}/elections/${encodeURIComponent(page.chosen)}/map`);
}

/** Which way leads to whom, as far as this node knows; on a small stage, as far as each knows. */
function links(own) {
  const ids = new Map(page.members.map(({ name, id }) => [name, id]));
  const found = [];
  for (const member of page.members) {
    for (const accuser of member.state === 'suspect' ? member.accusers : []) {
      found.push({ from: ids.get(accuser), to: member.id, kind: 'accuses' });
    }
    const there = member.state === 'alive' || member.state === 'suspect';
    if (!there || member.reach === 'own') continue;
    const relay = member.reach?.through;
    if (relay) found.push({ from: ids.get(relay), to: member.id, kind: 'relay' });
    else if (!stage || page.members.length > FEW) {
      found.push({ from: own.id, to: member.id, kind: 'heard', fresh: member.heard_ms != null && member.heard_ms < 60_000 ? 1 : 0 });
    }
  }
  if (stage && page.members.length <= FEW) {
    for (const a of stage.nodes) {
      for (const b of stage.nodes) {
        // Both must say so: who has been cut off takes a moment to notice.
        const both = a.name < b.name && a.reaches.includes(b.name) && b.reaches.includes(a.name);
        if (both && !a.cut && !b.cut) found.push({ from: ids.get(a.name), to: ids.get(b.name), kind: 'heard', fresh: 1 });
      }
    }
  }
  return found;
}

function tick(hurried = false) {
  if (!page.status || page.link === 'lost' || page.link === 'denied' || page.link === 'gone') return;
  if (!hurried) leaders.tick(age());
  members.tick(age(), hurried);
}

function choose(name) {
  page.chosen = name;
  render();
}

function pick(id) {
  const member = page.members.find((one) => one.id === id);
  if (!member) return;
  graph.select(id);
  why.open(member);
}

function point(id) {
  const member = page.members.find((one) => one.id === id);
  if (member && document.activeElement === by('graph')) announce(`${member.name}, ${member.state}`);
}

function look(id) {
  return id.startsWith('stage:') || page.link !== 'live' ? null : json(`${base()}/why/${encodeURIComponent(id)}`);
}

function announce(text) {
  by('announce').textContent = text;
}

function tellChanges(before, now) {
  for (const election of now.elections) {
    const old = before.elections.find(({ election: name }) => name === election.election);
    if (old && (old.leader?.id !== election.leader?.id || old.epoch !== election.epoch)) {
      announce(election.leader ? `${election.leader.name} leads ${election.election}, epoch ${election.epoch.split('.')[0]}` : `Nobody leads ${election.election}`);
    }
  }
}

const LOST = { lost: 'No agent answers.', denied: 'The agent wants its token.' };
const LINKS = { connecting: 'connecting', live: 'live', lost: 'connection lost', denied: 'token needed', gone: 'node is dead' };

function onLink(state, seconds) {
  // Once, not with every second that is counted down.
  if (state === 'lost' && page.link !== 'lost') announce('Connection lost; trying again');
  page.link = state;
  document.documentElement.dataset.link = state;
  by('link').dataset.state = state;
  say(by('link-text'), LINKS[state]);
  by('token-form').hidden = state !== 'denied';
  if (state === 'denied') by('token').focus();
  by('banner').hidden = state !== 'lost';
  by('retry').hidden = false;
  if (state === 'lost') {
    const wait = seconds ? `retrying in ${seconds} s` : 'retrying';
    const kept = page.told ? ` What is shown is of ${timeOfDay(Date.now() - age())}.` : '';
    say(by('banner-text'), `Connection lost, ${wait}.${kept}`);
  }
  if (!page.status && LOST[state]) for (const id of ['graph-empty', 'members-empty']) say(by(id), LOST[state]);
  if (state === 'gone') lookElsewhere();
}

/** The node we looked through is dead: look through another, or wait for one. */
async function lookElsewhere() {
  await stage.look();
  const next = stage.nodes.find((node) => node.running && !node.cut) ?? stage.nodes.find((node) => node.running);
  if (next) {
    announce(`${page.viewpoint} is dead; now seen by ${next.name}`);
    follow(next.name);
  } else {
    by('banner').hidden = false;
    by('retry').hidden = true;
    say(by('banner-text'), 'All nodes are dead. Revive one.');
  }
}

/** Something on the stage is otherwise than before. */
function onStage() {
  const select = by('viewpoint');
  const names = stage.nodes.map((node) => node.name);
  if (select.children.length !== names.length) select.replaceChildren(...names.map((name) => el('option', { value: name }, name)));
  stage.nodes.forEach((node, i) => {
    select.children[i].disabled = !node.running;
    say(select.children[i], `${node.name}${node.running ? '' : ' (dead)'}${node.cut ? ' (cut off)' : ''}`);
  });
  select.value = page.viewpoint ?? '';
  if (page.link === 'gone' && stage.nodes.some((node) => node.running)) lookElsewhere();
  render();
}

function themes() {
  const root = document.documentElement;
  const order = ['system', 'light', 'dark'];
  const icons = { system: 'system', light: 'sun', dark: 'moon' };
  const button = by('theme');
  const show = () => {
    const wish = root.dataset.theme ?? 'system';
    button.replaceChildren(shape(icons[wish]), el('span.sr', {}, `Colours: ${wish === 'system' ? 'as the system' : wish}. Change`));
    button.title = `Colours: ${wish === 'system' ? 'as the system' : wish}`;
    graph.repaint();
    mesh.draw();
  };
  button.addEventListener('click', () => {
    const wish = order[(order.indexOf(root.dataset.theme ?? 'system') + 1) % order.length];
    if (wish === 'system') delete root.dataset.theme;
    else root.dataset.theme = wish;
    try {
      localStorage.setItem('bellwether-theme', wish);
    } catch {
      // Then it lasts as long as the page.
    }
    show();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show);
  show();
}

function start() {
  by('legend').append(
    ...['leader', ...STATES].map((name) => el('li', {}, shape(name), name)),
    el('li', {}, el('span.wire'), 'reached directly'),
    el('li', {}, el('span.wire.relay'), 'through another'),
    el('li', {}, el('span.wire.accuses'), 'accuses'),
  );
  by('zoom-in').addEventListener('click', () => graph.zoom(1.3));
  by('zoom-out').addEventListener('click', () => graph.zoom(1 / 1.3));
  by('zoom-fit').addEventListener('click', () => graph.fit());
  by('retry').addEventListener('click', () => feed.retry());
  by('viewpoint').addEventListener('change', (event) => follow(event.target.value));
  by('token-form').addEventListener('submit', (event) => {
    event.preventDefault();
    sessionStorage.setItem('bellwether-token', by('token').value.trim());
    by('token').value = '';
    follow(page.viewpoint);
  });
  document.addEventListener('visibilitychange', () => feed?.nudge());
  themes();
  let beats = 0;
  setInterval(() => {
    beats += 1;
    // Countdowns are read to the tenth, ages to the second.
    if (page.totals.size > 0 || beats % 5 === 0) tick(beats % 5 !== 0);
    if (beats % 5 === 0 && why.id !== null && page.link === 'live') {
      const member = page.members.find((one) => one.id === why.id);
      if (member) why.update(member, age());
    }
  }, 200);
}

async function open() {
  start();
  if (!stage) {
    follow(null);
    return;
  }
  by('viewpoint').hidden = false;
  by('viewer').hidden = true;
  await stage.ready;
  const own = stage.nodes.find((node) => node.here && node.running);
  follow((own ?? stage.nodes.find((node) => node.running) ?? stage.nodes[0])?.name ?? null);
}

open();
