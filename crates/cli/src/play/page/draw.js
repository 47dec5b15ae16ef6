// A scene, drawn: nodes where they are, messages as they fly, who names whom, what stands between them.

import { BELL } from './words.js';

const bell = new Path2D(BELL);
const TURN = 2 * Math.PI;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const FEW = 16;
/** Messages drawn at once, and how long a flight is drawn at least, in seconds of the person who looks. */
const MOST = 1500;
const GLIMPSE = 0.22;
/** Apart for people who see few colours; a leader's followers share its colour. */
const PALETTE = ['#0072b2', '#009e73', '#cc79a7', '#56b4e9', '#8a63d2', '#7a8a00', '#a0522d', '#4a6a8a'];
const NAMES = ['surface', 'raised', 'ink', 'muted', 'line', 'wire', 'alive', 'suspect', 'failed', 'left', 'leader', 'leader-text', 'on-leader', 'accent'];

export class Field {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext('2d');
    this.dragged = new Map();
    this.colours = {};
    this.selected = -1;
    this.pointed = -1;
    this.pending = -1;
    this.lasso = null;
    this.places = [];
    this.repaint();
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    this.resize();
  }

  repaint() {
    const style = getComputedStyle(document.documentElement);
    for (const name of NAMES) this.colours[name] = style.getPropertyValue(`--${name}`).trim();
  }

  resize() {
    const { width, height } = this.canvas.parentElement.getBoundingClientRect();
    if (!width || !height) return;
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    [this.width, this.height] = [width, height];
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.stale = true;
  }

  /** From the placement's unit to pixels, so that all places there will be fit. */
  scale(head) {
    if (this.scaled === head && !this.stale) return;
    [this.scaled, this.stale] = [head, false];
    this.links = null;
    if (!head.places) return;
    const points = head.legs ? head.legs.flat().map(([, x, y]) => [x, y]) : head.places;
    let [west, east, north, south] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const [x, y] of points) {
      [west, east] = [Math.min(west, x), Math.max(east, x)];
      [north, south] = [Math.min(north, y), Math.max(south, y)];
    }
    const margin = head.capacity <= FEW ? 64 : 34;
    const k = Math.min((this.width - 2 * margin) / Math.max(1e-6, east - west), (this.height - 2 * margin) / Math.max(1e-6, south - north));
    this.view = { k, x: this.width / 2 - (k * (west + east)) / 2, y: this.height / 2 - (k * (north + south)) / 2 };
  }

  /** Pixels to the placement's unit. */
  unit(x, y) {
    return [(x - this.view.x) / this.view.k, (y - this.view.y) / this.view.k];
  }

  layout(scene) {
    const { head } = scene.film;
    const count = head.capacity;
    this.scale(head);
    this.radius = count <= FEW ? 17 : Math.max(3, Math.min(11, Math.sqrt((this.width * this.height) / count) * 0.13));
    for (let node = 0; node < count; node += 1) {
      const place = scene.place(node);
      const dragged = this.dragged.get(node);
      if (dragged) this.places[node] = place ? dragged : [dragged[0] * this.width, dragged[1] * this.height];
      else if (place) this.places[node] = [this.view.x + place[0] * this.view.k, this.view.y + place[1] * this.view.k];
      else this.places[node] = this.seat(node, count);
    }
    this.places.length = count;
  }

  /** Where a node is drawn that has no place: a few on a ring, many like seeds of a sunflower. */
  seat(node, count) {
    const [x, y] = [this.width / 2, this.height / 2];
    if (count <= 24) {
      const turn = (TURN * node) / count - TURN / 4;
      const [a, b] = [Math.min(x - 70, 1.5 * (y - 62)), y - 62];
      return [x + a * Math.cos(turn), y + b * Math.sin(turn)];
    }
    const far = Math.sqrt((node + 0.5) / count);
    const turn = node * 2.39996323;
    return [x + (x - 34) * far * Math.cos(turn), y + (y - 34) * far * Math.sin(turn)];
  }

  draw(scene, { speed = 1, paused = false } = {}) {
    const { pen } = this;
    const { head } = scene.film;
    if (!this.width || !head) return;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    this.layout(scene);
    this.parts(scene);
    this.wires(scene);
    this.obstacles(scene);
    if (head.capacity <= 64) this.beliefs(scene);
    this.accusations(scene);
    this.messages(scene, speed, paused);
    this.nodes(scene);
    this.labels(scene);
    this.marks();
  }

  /** What is parted has a ground of its own around each node. */
  parts(scene) {
    if (!scene.sides.some((side) => side > 0)) return;
    const { pen, places } = this;
    pen.globalAlpha = 0.2;
    for (const side of new Set(scene.sides)) {
      pen.fillStyle = PALETTE[side % PALETTE.length];
      pen.beginPath();
      for (let node = 0; node < places.length; node += 1) {
        if ((scene.sides[node] ?? 0) !== side) continue;
        const [x, y] = places[node];
        pen.moveTo(x, y);
        pen.arc(x, y, this.radius * 2.2, 0, TURN);
      }
      pen.fill();
    }
    pen.globalAlpha = 1;
  }

  wires(scene) {
    const { pen, places, colours } = this;
    const { head } = scene.film;
    pen.strokeStyle = colours.wire;
    pen.lineWidth = 1;
    pen.globalAlpha = head.capacity > 100 ? 0.3 : 0.55;
    pen.beginPath();
    if (head.range) {
      const pairs = head.legs || scene.moved.size || this.dragged.size || !this.links ? within(places, head.range * this.view.k) : this.links;
      if (!head.legs && !scene.moved.size && !this.dragged.size) this.links = pairs;
      for (let i = 0; i < pairs.length; i += 2) {
        pen.moveTo(...places[pairs[i]]);
        pen.lineTo(...places[pairs[i + 1]]);
      }
    } else if (head.links) {
      for (const [a, b] of head.links) {
        pen.moveTo(...places[a]);
        pen.lineTo(...places[b]);
      }
    } else if (places.length <= 12) {
      for (let a = 0; a < places.length; a += 1) {
        for (let b = a + 1; b < places.length; b += 1) {
          pen.moveTo(...places[a]);
          pen.lineTo(...places[b]);
        }
      }
    }
    pen.stroke();
    pen.globalAlpha = 1;
  }

  /** Cut directions: red and broken, with an arrow that gets nowhere. */
  obstacles(scene) {
    const { pen, places, colours } = this;
    if (scene.cuts.length > 400) return;
    pen.strokeStyle = colours.failed;
    pen.fillStyle = colours.failed;
    pen.lineWidth = 2;
    const both = new Set(scene.cuts.map(([a, b]) => a * 65536 + b));
    for (const [a, b] of scene.cuts) {
      const mutual = both.has(b * 65536 + a);
      if (mutual && b < a) continue;
      const [[ax, ay], [bx, by]] = [places[a], places[b]];
      const turn = Math.atan2(by - ay, bx - ax);
      pen.setLineDash([3, 5]);
      pen.beginPath();
      pen.moveTo(ax, ay);
      pen.lineTo(bx, by);
      pen.stroke();
      pen.setLineDash([]);
      const part = mutual ? 0.5 : 0.62;
      const [x, y] = [ax + (bx - ax) * part, ay + (by - ay) * part];
      const across = turn + TURN / 4;
      pen.lineWidth = 3.5;
      pen.beginPath();
      pen.moveTo(x - 8 * Math.cos(across), y - 8 * Math.sin(across));
      pen.lineTo(x + 8 * Math.cos(across), y + 8 * Math.sin(across));
      pen.stroke();
      pen.lineWidth = 2;
      if (!mutual) {
        pen.beginPath();
        pen.moveTo(x - 3 * Math.cos(turn), y - 3 * Math.sin(turn));
        for (const side of [0.5, -0.5]) pen.lineTo(x - 14 * Math.cos(turn + side), y - 14 * Math.sin(turn + side));
        pen.fill();
      }
    }
  }

  /** A thin line from each node to whom it names. */
  beliefs(scene) {
    const { pen, places } = this;
    pen.lineWidth = 2;
    pen.globalAlpha = places.length <= FEW ? 0.45 : 0.2;
    for (let node = 0; node < places.length; node += 1) {
      const leader = scene.leader[node];
      if (!scene.up(node) || leader < 0 || leader === node || !places[leader]) continue;
      pen.strokeStyle = this.hue(leader);
      pen.setLineDash(scene.settled[node] ? [] : [2, 5]);
      pen.beginPath();
      pen.moveTo(...places[node]);
      pen.lineTo(...places[leader]);
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  /** The colour of whom a node names; where nobody is elected, that of those who are well. */
  ground(scene, node) {
    if (scene.leader[node] >= 0) return this.hue(scene.leader[node]);
    return scene.film.head.mode ? this.colours.left : this.colours.alive;
  }

  hue(leader) {
    return PALETTE[leader % PALETTE.length];
  }

  accusations(scene) {
    const { pen, places, colours } = this;
    pen.strokeStyle = colours.suspect;
    pen.lineWidth = 1.5;
    pen.setLineDash([7, 5]);
    pen.beginPath();
    for (const { of, by, count } of scene.accused()) {
      if (!count || scene.thinks.size > 4000) continue;
      for (const accuser of by) {
        if (!places[accuser]) continue;
        pen.moveTo(...places[accuser]);
        pen.lineTo(...places[of]);
      }
    }
    pen.stroke();
    pen.setLineDash([]);
  }

  /** Flights are drawn for at least a glimpse, or nobody would see one; slowly enough, they are as long as they are. */
  messages(scene, speed, paused) {
    const { film, t } = scene;
    const least = GLIMPSE * 1e6 * (paused ? Math.min(speed, 0.05) : speed);
    const [first, last] = film.between(t - Math.max(Math.min(film.longest, 5e6), least), t + 1);
    const step = Math.max(1, Math.ceil((last - first) / MOST));
    const { pen, places, colours } = this;
    const size = this.radius > 12 ? 3.4 : 2;
    const [good, lost] = [[], []];
    for (let i = first; i < last; i += step) {
      const sent = film.sent[i];
      const fate = film.fate[i];
      const until = Math.max(film.arrives[i], sent + least);
      if (until < t) continue;
      const [a, b] = [places[film.from[i]], places[film.to[i]]];
      if (!a || !b || a === b) continue;
      let part = (t - sent) / Math.max(1, until - sent);
      if (fate === 1) part *= 0.6;
      else if (fate === 2) part *= 0.86;
      (fate ? lost : good).push(a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part);
    }
    this.flying = good.length / 2 + lost.length / 2;
    pen.fillStyle = colours.accent;
    pen.beginPath();
    for (let i = 0; i < good.length; i += 2) pen.rect(good[i] - size, good[i + 1] - size, 2 * size, 2 * size);
    pen.fill();
    pen.strokeStyle = colours.failed;
    pen.lineWidth = 1.6;
    pen.beginPath();
    for (let i = 0; i < lost.length; i += 2) {
      const [x, y] = [lost[i], lost[i + 1]];
      pen.moveTo(x - size, y - size);
      pen.lineTo(x + size, y + size);
      pen.moveTo(x - size, y + size);
      pen.lineTo(x + size, y - size);
    }
    pen.stroke();
  }

  nodes(scene) {
    const { pen, places, colours, radius } = this;
    // What a few think of a node says as much about them: a ring is for what most think.
    const most = scene.state.filter((state) => state === 'up').length / 2;
    const accused = new Map(scene.accused().filter((one) => one.count || one.failed >= most).map((one) => [one.of, one]));
    const plain = new Map();
    const rest = [];
    for (let node = 0; node < places.length; node += 1) {
      const state = scene.state[node];
      if (state === 'absent') {
        this.ring(...places[node], Math.max(2, radius - 2), colours.line, 1.5);
        continue;
      }
      const simple = state === 'up' && !scene.frozen[node] && scene.leader[node] !== node && !accused.has(node) && scene.t - scene.unkept[node] > 2e6;
      if (!simple) {
        rest.push(node);
        continue;
      }
      const colour = this.ground(scene, node);
      if (!plain.has(colour)) plain.set(colour, []);
      plain.get(colour).push(node);
    }
    for (const [colour, nodes] of plain) {
      pen.fillStyle = colour;
      pen.beginPath();
      for (const node of nodes) {
        const [x, y] = places[node];
        pen.moveTo(x + radius, y);
        pen.arc(x, y, radius, 0, TURN);
      }
      pen.fill();
    }
    for (const node of rest) this.special(scene, node, accused.get(node));
  }

  special(scene, node, accused) {
    const { pen, colours, radius } = this;
    const [x, y] = this.places[node];
    const state = scene.state[node];
    const leads = scene.leads(node);
    const r = leads ? Math.max(radius * 1.2, 9) : Math.max(radius, 4);
    this.disc(x, y, r + 2, colours.surface);
    if (state === 'down' || state === 'left') {
      const colour = state === 'down' ? colours.failed : colours.left;
      this.ring(x, y, r - 1, colour, 2);
      const arm = r * 0.4;
      pen.beginPath();
      pen.moveTo(x - arm, y - (state === 'down' ? arm : 0));
      pen.lineTo(x + arm, y + (state === 'down' ? arm : 0));
      if (state === 'down') {
        pen.moveTo(x - arm, y + arm);
        pen.lineTo(x + arm, y - arm);
      }
      pen.stroke();
      return;
    }
    const colour = this.ground(scene, node);
    this.disc(x, y, r, leads ? colours.leader : colour);
    if (leads) {
      this.ring(x, y, r + 1.5, this.hue(node), 3);
      this.bell(x, y, r * 1.3, colours['on-leader']);
    }
    if (scene.until[node] > 0 && leads) {
      const left = Math.max(0, (scene.until[node] - scene.t) / Math.max(1, scene.until[node] - scene.since[node]));
      this.ring(x, y, r + 7, colours.line, 3);
      this.arc(x, y, r + 7, left > 0 ? colours.leader : colours.failed, 3.5, left || 1);
    }
    if (scene.frozen[node]) {
      this.disc(x, y, r, colours.raised);
      this.ring(x, y, r - 1, colour, 2);
      pen.fillStyle = colours.ink;
      pen.fillRect(x - r * 0.38, y - r * 0.45, r * 0.26, r * 0.9);
      pen.fillRect(x + r * 0.12, y - r * 0.45, r * 0.26, r * 0.9);
    }
    if (accused?.count) {
      pen.setLineDash([4, 3]);
      this.ring(x, y, r + 4, colours.suspect, 2.5);
      pen.setLineDash([]);
    } else if (accused?.failed) this.ring(x, y, r + 4, colours.failed, 2);
    if (scene.t - scene.unkept[node] <= 2e6) {
      pen.fillStyle = colours.failed;
      pen.fillRect(x + r * 0.5, y - r * 1.15, 8, 8);
    }
  }

  disc(x, y, radius, colour) {
    this.pen.fillStyle = colour;
    this.pen.beginPath();
    this.pen.arc(x, y, radius, 0, TURN);
    this.pen.fill();
  }

  ring(x, y, radius, colour, width) {
    this.arc(x, y, radius, colour, width, 1);
  }

  arc(x, y, radius, colour, width, part) {
    const { pen } = this;
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    pen.arc(x, y, radius, -TURN / 4, -TURN / 4 + TURN * Math.min(1, part));
    pen.stroke();
  }

  bell(x, y, size, colour) {
    const { pen } = this;
    pen.save();
    pen.translate(x - size / 2, y - size / 2);
    pen.scale(size / 24, size / 24);
    pen.fillStyle = colour;
    pen.fill(bell);
    pen.restore();
  }

  labels(scene) {
    const { pen, colours } = this;
    const { film } = scene;
    const few = this.places.length <= FEW;
    // Names over names would say nothing.
    const leaders = this.places.reduce((count, _, node) => count + (scene.leads(node) ? 1 : 0), 0);
    const named = leaders <= Math.max(6, (this.width * this.height) / 24000);
    pen.textAlign = 'center';
    pen.textBaseline = 'top';
    pen.lineJoin = 'round';
    for (let node = 0; node < this.places.length; node += 1) {
      const leads = scene.leads(node);
      if (scene.state[node] === 'absent' || !(few || (leads && named) || node === this.selected || node === this.pointed)) continue;
      const [x, y] = this.places[node];
      const below = y + Math.max(this.radius * 1.2, 9) + 11;
      this.text(film.name(node), x, below, `${leads ? 650 : 500} 13px ${FONT}`, colours.ink);
      if (few || leads) this.text(this.note(scene, node), x, below + 16, `500 11px ${FONT}`, leads ? colours['leader-text'] : colours.muted);
    }
  }

  note(scene, node) {
    const state = scene.state[node];
    if (state === 'down') return 'down';
    if (state === 'left') return 'gone';
    const epoch = scene.epoch[node]?.split('.')[0];
    const said = [];
    if (scene.frozen[node]) said.push('frozen');
    if (scene.leads(node)) said.push(epoch ? `leads, epoch ${epoch}` : 'leads');
    else if (scene.leader[node] === node) said.push('its lease has ended');
    else if (scene.leader[node] >= 0) said.push(`names ${scene.film.name(scene.leader[node])}${epoch ? `@${epoch}` : ''}`);
    else if (scene.film.head.mode) said.push('names nobody');
    return said.join(' · ');
  }

  text(text, x, y, font, colour) {
    const { pen } = this;
    pen.font = font;
    pen.lineWidth = 4;
    pen.strokeStyle = this.colours.surface;
    pen.strokeText(text, x, y);
    pen.fillStyle = colour;
    pen.fillText(text, x, y);
  }

  /** What is chosen, pointed at, or half of a choice. */
  marks() {
    const { pen, colours, places } = this;
    for (const [node, colour] of [[this.pointed, colours.accent], [this.selected, colours.accent], [this.pending, colours.failed]]) {
      if (places[node]) this.ring(...places[node], Math.max(this.radius, 6) + 10, colour, 2.5);
    }
    if (this.lasso?.length > 1) {
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 2;
      pen.setLineDash([6, 4]);
      pen.beginPath();
      pen.moveTo(...this.lasso[0]);
      for (const point of this.lasso) pen.lineTo(...point);
      pen.closePath();
      pen.stroke();
      pen.setLineDash([]);
    }
  }

  nearest(x, y) {
    let [best, distance] = [-1, Infinity];
    this.places.forEach(([px, py], node) => {
      const d = Math.hypot(px - x, py - y);
      if (d < distance) [best, distance] = [node, d];
    });
    return distance <= Math.max(this.radius + 6, 16) ? best : -1;
  }

  /** The next node in a direction, for the keyboard. */
  towards(from, dx, dy) {
    const here = this.places[from];
    if (!here) return this.places.length ? 0 : -1;
    let [best, least] = [from, Infinity];
    this.places.forEach(([x, y], node) => {
      const along = (x - here[0]) * dx + (y - here[1]) * dy;
      const aside = Math.abs((x - here[0]) * dy) + Math.abs((y - here[1]) * dx);
      if (node !== from && along > 0 && along + 2 * aside < least) [best, least] = [node, along + 2 * aside];
    });
    return best;
  }

  /** The nodes that the lasso has caught. */
  caught() {
    const loop = this.lasso ?? [];
    const inside = ([x, y]) => {
      let odd = false;
      for (let i = 0, j = loop.length - 1; i < loop.length; j = i, i += 1) {
        const [[ax, ay], [bx, by]] = [loop[i], loop[j]];
        if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
      }
      return odd;
    };
    return this.places.map((_, node) => node).filter((node) => inside(this.places[node]));
  }
}

/** Pairs of places at most this far apart, one after the other. */
export function within(places, range) {
  const cells = new Map();
  places.forEach(([x, y], node) => {
    const key = Math.floor(x / range) * 4096 + Math.floor(y / range);
    const cell = cells.get(key);
    if (cell) cell.push(node);
    else cells.set(key, [node]);
  });
  const pairs = [];
  const most = range * range;
  for (const [key, cell] of cells) {
    for (const step of [0, 1, 4095, 4096, 4097]) {
      const other = cells.get(key + step);
      if (!other) continue;
      for (let i = 0; i < cell.length; i += 1) {
        const [x, y] = places[cell[i]];
        for (let j = step ? 0 : i + 1; j < other.length; j += 1) {
          const [u, v] = places[other[j]];
          if ((x - u) ** 2 + (y - v) ** 2 <= most) pairs.push(cell[i], other[j]);
        }
      }
    }
  }
  return pairs;
}
