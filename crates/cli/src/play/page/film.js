// A film, as `bellwether` writes it (crates/sim/src/play/film.rs), and how things are at an instant of it.

const EVERY = 3000;

/** What happened in a run, as far as it is known yet. Times are microseconds. */
export class Film {
  constructor() {
    Object.assign(this, { head: null, tail: null, failed: null, words: [], horizon: 0, rest: '' });
    this.events = [];
    this.sent = [];
    this.arrives = [];
    this.from = [];
    this.to = [];
    this.word = [];
    /** 0 arrives, 1 is lost on the way, 2 is stopped where it arrives. */
    this.fate = [];
    this.longest = 0;
    this.marks = [];
    this.broken = [];
    this.named = new Map();
    /** The last epoch under which each node was said to lead: some doubt it for a moment, and go on. */
    this.led = new Map();
  }

  /** Reads on: whole lines, and perhaps the beginning of one. */
  feed(text) {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop();
    for (const line of lines) if (line) this.line(JSON.parse(line));
  }

  line(line) {
    if (line[0] === 'head') this.head = line[1];
    else if (line[0] === 'failed') this.failed = line[1];
    else if (line[0] === 'tail') {
      this.tail = line[1];
      this.horizon = this.head.duration;
      for (const [t, invariant, detail] of this.tail.violations) this.breaks(t, invariant, detail);
    } else this.event(line);
  }

  event(line) {
    const [t, what] = line;
    this.horizon = Math.max(this.horizon, t);
    switch (what) {
      case '#': this.words.push(line[2]); return;
      case 'm': this.flies(t, line[2], line[3], line[4], line[5]); return;
      case 'x': this.stops(t, line[2], line[3]); return;
      case 'v': this.breaks(t, line[2], line[3]); return;
      case 'n': this.names(t, line); break;
      case '+': this.mark(t, 'alive', line[2], 'starts'); break;
      case '-': this.mark(t, 'failed', line[2], 'stops'); break;
      case 'z': this.mark(t, 'suspect', line[2], 'is frozen'); break;
      case 'u': this.mark(t, 'alive', line[2], 'runs again'); break;
      case 'k': this.mark(t, 'suspect', line[2], 'cannot keep what it must'); break;
      case 'b': this.mark(t, 'left', -1, between(line)); break;
    }
    this.events.push(line);
  }

  flies(t, from, to, arrives, word) {
    this.sent.push(t);
    this.arrives.push(arrives < 0 ? t : arrives);
    this.from.push(from);
    this.to.push(to);
    this.word.push(word);
    this.fate.push(arrives < 0 ? 1 : 0);
    if (arrives > 0) this.longest = Math.max(this.longest, arrives - t);
  }

  stops(t, from, to) {
    for (let i = this.sent.length - 1; i >= 0 && this.sent[i] + this.longest >= t; i -= 1) {
      if (this.arrives[i] === t && this.from[i] === from && this.to[i] === to && this.fate[i] === 0) {
        this.fate[i] = 2;
        return;
      }
    }
  }

  names(t, [, , node, leader, epoch]) {
    const before = this.named.get(node);
    this.named.set(node, `${leader} ${epoch}`);
    if (leader === node && before !== `${leader} ${epoch}` && (!epoch || this.led.get(node) !== epoch)) {
      this.led.set(node, epoch);
      this.mark(t, 'leader', node, `leads${epoch ? `, epoch ${epoch.split('.')[0]}` : ''}`);
    }
  }

  breaks(t, invariant, detail) {
    if (this.broken.some((one) => one.invariant === invariant)) return;
    this.broken.push({ t, invariant, detail });
    this.broken.sort((a, b) => a.t - b.t);
    this.mark(t, 'failed', -1, `${invariant.replaceAll('_', ' ')}: broken`, true);
  }

  mark(t, shape, node, text, broken = false) {
    const mark = { t, shape, node, text, broken };
    const last = this.marks.at(-1);
    this.marks.push(mark);
    if (last && last.t > t) this.marks.sort((a, b) => a.t - b.t);
  }

  name(node) {
    return this.head.names?.[node] ?? `n${node}`;
  }

  /** Indices of messages sent in this span: the first, and one past the last. */
  between(from, to) {
    return [lower(this.sent, from), lower(this.sent, to)];
  }
}

function between([, , sides, cuts, loss, delay]) {
  const said = [];
  if (sides.some((side) => side > 0)) {
    const parts = new Map();
    sides.forEach((side, node) => parts.set(side, [...(parts.get(side) ?? []), node]));
    said.push(`the network is parted: ${[...parts.values()].map((part) => (part.length > 6 ? `${part.length} nodes` : part.join(', '))).join(' | ')}`);
  }
  if (cuts.length) said.push(`${cuts.length} ${cuts.length === 1 ? 'direction is' : 'directions are'} cut`);
  if (loss > 0) said.push(`${Math.round(loss * 100)} % of messages are lost`);
  if (delay > 0) said.push(`messages take up to ${delay / 1000} ms longer`);
  return said.join('; ') || 'nothing stands between nodes';
}

function lower(list, value) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How things are at an instant. Going on is cheap; going back begins at the last of the states kept on the way. */
export class Scene {
  constructor(film) {
    this.film = film;
    this.kept = [];
    this.reset();
  }

  reset() {
    const count = this.film.head?.capacity ?? 0;
    const all = (value) => new Array(count).fill(value);
    Object.assign(this, {
      t: 0, next: 0,
      state: all('absent'), frozen: all(false), leader: all(-1), epoch: all(''), settled: all(false),
      until: all(-1), since: all(0), waits: all(-1), why: all(-1), unkept: all(-1e15), boots: all(0),
      thinks: new Map(), moved: new Map(), sides: [], cuts: [], loss: 0, delay: 0, share: 1, changed: true,
    });
  }

  keep() {
    const { kept, film, ...rest } = this;
    this.kept.push(structuredClone(rest));
  }

  /** Goes to `t`: everything before it has happened. */
  seek(t) {
    if (t < this.t) {
      const at = this.kept.findLast((one) => one.t <= t);
      if (at) Object.assign(this, structuredClone(at));
      else this.reset();
    }
    const { events } = this.film;
    while (this.next < events.length && events[this.next][0] <= t) {
      this.apply(events[this.next]);
      this.t = events[this.next][0];
      this.next += 1;
      if (this.next % EVERY === 0 && this.kept.length < this.next / EVERY) this.keep();
    }
    this.t = t;
  }

  apply([t, what, node, ...rest]) {
    this.changed = true;
    switch (what) {
      case '+':
        this.state[node] = 'up';
        [this.frozen[node], this.leader[node], this.epoch[node], this.until[node]] = [false, -1, '', -1];
        this.boots[node] += 1;
        this.forget(node);
        break;
      case '-': {
        this.state[node] = this.state[node] === 'leaving' ? 'left' : 'down';
        [this.frozen[node], this.leader[node], this.until[node], this.waits[node], this.why[node]] = [false, -1, -1, -1, -1];
        this.forget(node);
        break;
      }
      case 'z': this.frozen[node] = true; break;
      case 'u': this.frozen[node] = false; break;
      case 'l': this.state[node] = 'leaving'; break;
      case 'k': this.unkept[node] = t; break;
      case 'n': {
        const [leader, epoch, settled, until] = rest;
        if (until !== this.until[node]) this.since[node] = t;
        [this.leader[node], this.epoch[node], this.settled[node], this.until[node]] = [leader, epoch, settled === 1, until];
        break;
      }
      case 'w': [this.waits[node], this.why[node]] = rest; break;
      case 'o': {
        const [of, opinion, by] = rest;
        const key = node * 65536 + of;
        if (opinion === 0) this.thinks.delete(key);
        else this.thinks.set(key, { node, of, opinion, by });
        break;
      }
      case 'b': [this.sides, this.cuts, this.loss, this.delay] = [node, ...rest]; break;
      case 'p': this.moved.set(node, rest); break;
      case 's': this.share = node; break;
    }
  }

  forget(node) {
    for (const [key, thought] of this.thinks) if (thought.node === node) this.thinks.delete(key);
  }

  up(node) {
    return this.state[node] === 'up' || this.state[node] === 'leaving';
  }

  /** Whether a node names itself, and its lease, if it leads on one, has not ended. */
  leads(node) {
    return this.up(node) && this.leader[node] === node && !(this.until[node] > 0 && this.until[node] <= this.t);
  }

  /** What most say: leader and epoch, how many say so, and how many are up. */
  opinion() {
    const votes = new Map();
    let up = 0;
    for (let node = 0; node < this.state.length; node += 1) {
      if (!this.up(node)) continue;
      up += 1;
      const leader = this.leader[node];
      if (leader >= 0) votes.set(leader, (votes.get(leader) ?? 0) + 1);
    }
    const [leader, agree] = [...votes].sort((a, b) => b[1] - a[1])[0] ?? [-1, 0];
    const leading = this.state.map((_, node) => node).filter((node) => this.leads(node));
    return { leader, agree, up, leading, epoch: leader < 0 ? '' : this.epoch[leader] || '' };
  }

  /** Who accuses whom: a list of `{ of, by, count, failed }`, made anew only if something has changed. */
  accused() {
    if (this.changed || !this.accusations) {
      const all = new Map();
      for (const { of, opinion, by } of this.thinks.values()) {
        const one = all.get(of) ?? { of, by: new Set(), count: 0, failed: 0 };
        if (opinion === 1) {
          one.count += 1;
          if (by >= 0) one.by.add(by);
        } else one.failed += 1;
        all.set(of, one);
      }
      this.accusations = [...all.values()];
      this.changed = false;
    }
    return this.accusations;
  }

  /** Where a node is, in the unit of the placement; none where nobody has a place. */
  place(node, t = this.t) {
    const moved = this.moved.get(node);
    if (moved) return moved;
    const { legs, places } = this.film.head;
    if (!legs) return places?.[node] ?? null;
    const leg = legs[node];
    const s = t / 1e6;
    let [low, high] = [0, leg.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (leg[middle][0] <= s) low = middle + 1;
      else high = middle;
    }
    const a = leg[Math.max(0, low - 1)];
    const b = leg[low];
    if (!b || low === 0) return [a[1], a[2]];
    const part = (s - a[0]) / (b[0] - a[0]);
    return [a[1] + part * (b[1] - a[1]), a[2] + part * (b[2] - a[2])];
  }
}
