// The members, each a row that is changed in place: five hundred of them are touched only where they differ.

import { STATES, el, reached, say, shape, span } from './words.js';

const RANK = { suspect: 0, failed: 1, unknown: 2, alive: 3, left: 4 };

const left = (member) => member.convicted_in_ms ?? Number.MAX_SAFE_INTEGER;
const ORDERS = {
  name: (a, b) => a.rank - b.rank,
  state: (a, b) => RANK[a.state] - RANK[b.state] || a.rank - b.rank,
  since: (a, b) => (a.since_ms ?? 0) - (b.since_ms ?? 0) || a.rank - b.rank,
  score: (a, b) => (b.score?.score ?? -1) - (a.score?.score ?? -1) || a.rank - b.rank,
  suspicion: (a, b) => left(a) - left(b) || b.suspicions - a.suspicions || a.rank - b.rank,
};

export class Members {
  /** `on.pick(id)` opens a member, `acts(name)` gives the buttons of a stage, or nothing. */
  constructor({ rows, scroll, empty, filter, search }, on) {
    Object.assign(this, { rows, scroll, empty, on, kept: new Map(), wanted: 'all', sought: '', sort: 'name', down: false, members: [] });
    this.chips = new Map();
    for (const state of ['all', ...STATES]) {
      const count = el('span.count');
      const chip = el('button.chip', { type: 'button', 'aria-pressed': String(state === 'all') },
        state === 'all' ? null : shape(state), `${state[0].toUpperCase()}${state.slice(1)} `, count);
      chip.addEventListener('click', () => {
        this.wanted = state;
        for (const [name, other] of this.chips) other.chip.setAttribute('aria-pressed', String(name === state));
        this.arrange();
      });
      this.chips.set(state, { chip, count });
      filter.append(chip);
    }
    search.addEventListener('input', () => {
      this.sought = search.value.trim().toLowerCase();
      this.arrange();
    });
    const headings = [...scroll.querySelectorAll('[data-sort]')];
    for (const heading of headings) {
      heading.addEventListener('click', () => {
        this.down = this.sort === heading.dataset.sort && !this.down;
        this.sort = heading.dataset.sort;
        for (const other of headings) {
          const order = other !== heading ? 'none' : this.down ? 'descending' : 'ascending';
          other.closest('th').setAttribute('aria-sort', order);
        }
        this.arrange();
      });
    }
    rows.addEventListener('click', (event) => {
      const row = event.target.closest('tr');
      if (row && !event.target.closest('.acts')) on.pick(row.dataset.id);
    });
    // Down and up go from name to name, as in a list.
    rows.addEventListener('keydown', (event) => {
      const step = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' }[event.key];
      if (!step || !event.target.matches('.name')) return;
      event.preventDefault();
      event.target.closest('tr')[step]?.querySelector('.name').focus();
    });
  }

  /** `learned` is an election that keeps scores, if there is one. */
  update(members, leading, learned) {
    const scores = new Map(learned?.scores.map((score) => [score.id, score]));
    this.members = members.map((member) => ({ ...member, score: scores.get(member.id) }));
    members = this.members;
    this.scroll.querySelector('table').classList.toggle('scored', Boolean(learned));
    this.scroll.querySelector('[data-sort=score]').title = learned ? `How reliable this node has found it, for ${learned.election}` : '';
    const counts = Object.fromEntries(STATES.map((state) => [state, 0]));
    for (const member of members) if (member.state in counts) counts[member.state] += 1;
    for (const [state, { count }] of this.chips) say(count, String(state === 'all' ? members.length : counts[state]));
    const there = new Set();
    for (const member of members) {
      there.add(member.id);
      let row = this.kept.get(member.id);
      if (!row) this.kept.set(member.id, row = this.row(member));
      this.fill(row, member, leading.get(member.id));
    }
    for (const [id, row] of this.kept) {
      if (!there.has(id)) {
        row.root.remove();
        this.kept.delete(id);
      }
    }
    this.arrange();
  }

  row(member) {
    const parts = {
      state: el('span.word'),
      mark: el('span'),
      name: el('button.name', { type: 'button', title: 'Why?' }),
      leads: el('span.leads'),
      since: el('td.num', { role: 'cell', 'data-label': 'For' }),
      bar: el('progress', { max: '1', hidden: true }),
      suspicion: el('span'),
      scored: el('td.score', { role: 'cell', 'data-label': 'Score' }),
      meter: el('progress', { max: '1', hidden: true }),
      score: el('span'),
      reach: el('td', { role: 'cell', 'data-label': 'Reached' }),
      address: el('td.address', { role: 'cell', 'data-label': 'Address' }),
    };
    const acts = this.on.acts(member.name);
    const root = el('tr', { role: 'row', 'data-id': member.id, 'data-name': member.name },
      el('td.state', { role: 'cell', 'data-label': 'State' }, parts.mark, parts.state),
      el('th', { scope: 'row', role: 'rowheader' }, parts.name, parts.leads),
      parts.since,
      el('td.suspicion', { role: 'cell', 'data-label': 'Suspicion' }, parts.bar, parts.suspicion),
      parts.scored,
      parts.reach,
      parts.address,
      el('td.acts', { role: 'cell', 'data-label': 'Demo' }, acts?.root),
    );
    parts.scored.append(parts.meter, parts.score);
    return { root, acts, ...parts };
  }

  fill(row, member, leads) {
    row.member = member;
    if (row.root.dataset.state !== member.state) {
      row.root.dataset.state = member.state;
      row.mark.replaceChildren(shape(member.state));
      say(row.state, member.state);
    }
    say(row.name, member.name);
    const led = leads ? `leads ${leads.join(', ')}` : '';
    if (row.led !== led) {
      row.led = led;
      row.root.classList.toggle('leading', Boolean(leads));
      row.leads.replaceChildren(...(leads ? [shape('leader'), el('span', {}, led)] : []));
    }
    row.root.classList.toggle('own', member.reach === 'own');
    const { score } = member;
    row.meter.hidden = !score;
    if (score) {
      row.meter.value = score.score;
      row.scored.title = score.why;
    }
    row.scored.classList.toggle('away', Boolean(score?.away));
    say(row.score, score ? `${(100 * score.score).toFixed(1)} %, ${score.away ? 'last' : `no. ${score.rank}`}` : '–');
    say(row.address, member.addresses?.join(', ') || '–');
    row.acts?.update();
  }

  /** What goes on between two answers: ages and countdowns, or countdowns alone. */
  tick(age, hurried = false) {
    for (const row of this.kept.values()) {
      const { member } = row;
      if (hurried && member.state !== 'suspect') continue;
      say(row.since, member.since_ms == null ? '–' : span(member.since_ms + age));
      say(row.reach, reached(member, age));
      const suspect = member.state === 'suspect' && member.convicted_in_ms != null;
      if (row.bar.hidden === suspect) row.bar.hidden = !suspect;
      if (suspect) {
        const left = Math.max(0, member.convicted_in_ms - age);
        row.bar.value = left / Math.max(1, member.total ?? left);
      }
      say(row.suspicion, suspicion(member, age));
    }
  }

  /** Puts rows in order, and touches none that is in its place. */
  arrange() {
    const sought = (member) => [member.name, member.id, ...(member.addresses ?? []), ...Object.entries(member.tags ?? {}).map((tag) => tag.join('='))]
      .some((text) => text.toLowerCase().includes(this.sought));
    const shown = this.members.filter((member) => (this.wanted === 'all' || member.state === this.wanted) && (!this.sought || sought(member)));
    shown.sort(ORDERS[this.sort]);
    if (this.down) shown.reverse();
    let at = this.rows.firstElementChild;
    for (const member of shown) {
      const { root } = this.kept.get(member.id);
      if (root === at) at = at.nextElementSibling;
      else this.rows.insertBefore(root, at);
    }
    while (at) {
      const next = at.nextElementSibling;
      at.remove();
      at = next;
    }
    this.empty.hidden = shown.length > 0;
    say(this.empty, this.members.length ? 'No member is like that.' : 'Nobody is known yet.');
  }
}

export function suspicion(member, age) {
  const by = member.accusers?.length ? `accused by ${member.accusers.join(', ')}` : '';
  if (member.state === 'suspect' && member.convicted_in_ms != null) {
    const left = Math.max(0, member.convicted_in_ms - age) / 1000;
    return `${left.toFixed(1)} s left${by ? `, ${by}` : ''}`;
  }
  if (member.state === 'failed') return by || 'given up';
  if (member.state === 'alive' && member.suspicions > 0) return `${member.suspicions}× lately`;
  return '–';
}
