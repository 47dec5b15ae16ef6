// The network, drawn. Nothing is drawn unless something has changed, and places never depend on state.

import { FEW, place } from './layout.js';
import { BELL, counter } from './words.js';

const bell = new Path2D(BELL);
const CALM = matchMedia('(prefers-reduced-motion: reduce)');
const MOVE = 450;
const PULSE = 1400;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
const TURN = 2 * Math.PI;

export class Graph {
  /** `on.pick(id)` when a node is chosen, `on.point(id)` when one is pointed at or moved to with the keyboard. */
  constructor(canvas, on) {
    this.canvas = canvas;
    this.pen = canvas.getContext('2d');
    this.on = on;
    this.nodes = new Map();
    this.links = [];
    this.view = { x: 0, y: 0, k: 1 };
    this.moved = false;
    this.pointed = null;
    this.selected = null;
    this.colours = {};
    this.pointers = new Map();
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    this.listen();
    this.repaint();
  }

  /** Reads the colours again, after they have changed. */
  repaint() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ['surface', 'ink', 'muted', 'line', 'wire', 'alive', 'suspect', 'failed', 'left', 'leader', 'leader-text', 'on-leader', 'accent']) {
      this.colours[name] = style.getPropertyValue(`--${name}`).trim();
    }
    this.invalidate();
  }

  /** `nodes` are `{ id, name, state, leader, epoch, own, cut, claims, until, total }`, `links` are `{ from, to, kind, fresh }`. */
  update(nodes, links) {
    const before = this.nodes;
    const now = performance.now();
    this.nodes = new Map();
    for (const node of nodes) {
      const old = before.get(node.id);
      const pulse = node.leader && old && !old.leader ? now : old?.pulse ?? 0;
      this.nodes.set(node.id, { ...node, x: old?.x, y: old?.y, from: old?.from, to: old?.to, since: old?.since, pulse });
    }
    this.links = links;
    this.arrange(before.size > 0);
  }

  /** Gives everybody a place; those who had another go there. */
  arrange(gently) {
    const nodes = [...this.nodes.values()];
    if (nodes.length === 0 || !this.width) return;
    const own = nodes.find((node) => node.own)?.id ?? nodes[0].id;
    const room = this.width / Math.max(1, this.height);
    const stretch = Math.min(1.9, Math.max(1, room * 0.92));
    const { places, step } = place(nodes, own, stretch);
    this.step = step;
    const now = performance.now();
    for (const node of nodes) {
      const to = places.get(node.id);
      if (node.x === undefined || !gently || CALM.matches) {
        [node.x, node.y, node.to, node.from] = [to.x, to.y, to, null];
      } else if (node.to.x !== to.x || node.to.y !== to.y) {
        [node.from, node.to, node.since] = [{ x: node.x, y: node.y }, to, now];
      }
    }
    if (!this.moved) this.fit();
    this.invalidate();
  }

  fit() {
    const nodes = [...this.nodes.values()];
    if (nodes.length === 0 || !this.width) return;
    const few = nodes.length <= FEW;
    const xs = nodes.map((node) => node.to.x);
    const ys = nodes.map((node) => node.to.y);
    const [west, east, north, south] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    // Labels need room beside few nodes; many have labels only where one looks closely.
    const [side, above, below] = few ? [80, 74, 84] : [36, 26, 42];
    const k = Math.min(
      (this.width - 2 * side) / Math.max(1, east - west),
      (this.height - above - below) / Math.max(1, south - north),
      few ? 1.6 : 1.2,
    );
    this.view = {
      k: Math.max(0.05, k),
      x: this.width / 2 - (k * (west + east)) / 2,
      y: above + (this.height - above - below) / 2 - (k * (north + south)) / 2,
    };
    this.moved = false;
    this.invalidate();
  }

  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const k = Math.min(6, Math.max(0.05, this.view.k * factor));
    const scale = k / this.view.k;
    this.view = { k, x: x - (x - this.view.x) * scale, y: y - (y - this.view.y) * scale };
    this.moved = true;
    this.invalidate();
  }

  pan(dx, dy) {
    this.view.x += dx;
    this.view.y += dy;
    this.moved = true;
    this.invalidate();
  }

  select(id) {
    this.selected = id;
    this.invalidate();
  }

  resize() {
    const { width, height } = this.canvas.parentElement.getBoundingClientRect();
    if (width === 0 || height === 0) return;
    const ratio = window.devicePixelRatio || 1;
    [this.width, this.height, this.ratio] = [width, height, ratio];
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.arrange(false);
    // At once: a canvas that has been resized is empty.
    this.draw(performance.now());
  }

  invalidate() {
    if (this.asked) return;
    this.asked = requestAnimationFrame((now) => {
      this.asked = null;
      if (this.draw(now)) this.invalidate();
      else this.tickLater();
    });
  }

  /** A countdown moves although nothing else does; ten times a second is enough to see it. */
  tickLater() {
    clearTimeout(this.tick);
    for (const node of this.nodes.values()) {
      if (node.state === 'suspect' && node.until) {
        this.tick = setTimeout(() => this.invalidate(), 100);
        return;
      }
    }
  }

  /** Draws, and says whether something is still moving. */
  draw(now) {
    const { pen, view, colours } = this;
    if (!this.width) return false;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    let moving = false;
    for (const node of this.nodes.values()) {
      if (node.from) {
        const part = Math.min(1, (now - node.since) / MOVE);
        const eased = 1 - (1 - part) ** 3;
        node.x = node.from.x + (node.to.x - node.from.x) * eased;
        node.y = node.from.y + (node.to.y - node.from.y) * eased;
        if (part >= 1) node.from = null;
        else moving = true;
      }
      node.sx = view.x + node.x * view.k;
      node.sy = view.y + node.y * view.k;
    }
    const few = this.nodes.size <= FEW;
    this.radius = few
      ? Math.min(26, Math.max(15, 17 * view.k))
      : Math.min(22, Math.max(2.4, this.step * view.k * 0.27));
    this.wires(few);
    const rest = [];
    // Those in good health are alike: one path for all of them.
    pen.fillStyle = colours.alive;
    pen.beginPath();
    for (const node of this.nodes.values()) {
      const plain = node.state === 'alive' && !node.leader && !node.cut && !node.claims;
      if (!plain) {
        rest.push(node);
        continue;
      }
      pen.moveTo(node.sx + this.radius, node.sy);
      pen.arc(node.sx, node.sy, this.radius, 0, TURN);
    }
    pen.fill();
    rest.sort((a, b) => Number(a.leader) - Number(b.leader));
    for (const node of rest) moving = this.mark(node, now) || moving;
    for (const id of new Set([this.selected, this.pointed])) {
      const node = this.nodes.get(id);
      if (node) this.ring(node, this.radiusOf(node) + 6, colours.accent, 2.5);
    }
    for (const node of this.nodes.values()) {
      if (node.own) this.ring(node, this.radiusOf(node) + 3, colours.ink, 1.5);
    }
    this.labels(few);
    return moving;
  }

  radiusOf(node) {
    return node.leader ? Math.max(this.radius * 1.2, 10) : node.state === 'alive' ? this.radius : Math.max(this.radius, 5);
  }

  wires(few) {
    const { pen, colours } = this;
    const styles = new Map();
    for (const link of this.links) {
      const [a, b] = [this.nodes.get(link.from), this.nodes.get(link.to)];
      if (!a || !b) continue;
      const style = link.kind === 'heard' ? `heard${link.fresh}` : link.kind;
      if (!styles.has(style)) styles.set(style, []);
      styles.get(style).push([a, b]);
    }
    for (const [style, pairs] of [...styles].sort()) {
      const accuses = style === 'accuses';
      pen.strokeStyle = accuses ? colours.suspect : colours.wire;
      pen.lineWidth = accuses ? (few ? 2 : 1.25) : few ? 1.5 : 1;
      pen.globalAlpha = style === 'heard0' ? (few ? 0.35 : 0.18) : few ? 1 : accuses ? 0.75 : style === 'relay' ? 0.8 : 0.5;
      pen.setLineDash(accuses ? [7, 5] : style === 'relay' ? [2, 4] : []);
      pen.beginPath();
      for (const [a, b] of pairs) {
        pen.moveTo(a.sx, a.sy);
        pen.lineTo(b.sx, b.sy);
      }
      pen.stroke();
      pen.setLineDash([]);
      if (accuses && pairs.length < 200) {
        pen.fillStyle = colours.suspect;
        for (const [a, b] of pairs) this.arrow(a, b);
      }
    }
    pen.globalAlpha = 1;
  }

  arrow(a, b) {
    const { pen } = this;
    const size = this.nodes.size <= FEW ? 10 : 7;
    const turn = Math.atan2(b.sy - a.sy, b.sx - a.sx);
    const back = this.radiusOf(b) + 5;
    const [x, y] = [b.sx - Math.cos(turn) * back, b.sy - Math.sin(turn) * back];
    pen.beginPath();
    pen.moveTo(x, y);
    for (const side of [0.42, -0.42]) pen.lineTo(x - size * Math.cos(turn + side), y - size * Math.sin(turn + side));
    pen.fill();
  }

  ring(node, radius, colour, width, dash = []) {
    const { pen } = this;
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.setLineDash(dash);
    pen.beginPath();
    pen.arc(node.sx, node.sy, radius, 0, TURN);
    pen.stroke();
    pen.setLineDash([]);
  }

  disc(node, radius, colour) {
    const { pen } = this;
    pen.fillStyle = colour;
    pen.beginPath();
    pen.arc(node.sx, node.sy, radius, 0, TURN);
    pen.fill();
  }

  /** One node that is not like most; whether it is still moving. */
  mark(node, now) {
    const { pen, colours } = this;
    const r = this.radiusOf(node);
    // Lines end at its edge, not under it.
    this.disc(node, r + 2, colours.surface);
    if (node.leader) {
      const age = now - node.pulse;
      const pulsing = age < PULSE && !CALM.matches;
      if (pulsing) {
        pen.globalAlpha = 1 - age / PULSE;
        this.ring(node, r + 4 + 26 * (age / PULSE), colours.leader, 3);
        pen.globalAlpha = 1;
      }
      this.disc(node, r, colours.leader);
      if (node.state === 'alive') this.ring(node, r + 3.5, colours.leader, 1.5);
      this.bell(node, r * 1.35, colours['on-leader']);
      if (node.state === 'suspect') this.countdown(node, r + 5);
      return pulsing;
    }
    const thick = Math.min(3, Math.max(1.5, r / 6));
    if (node.state === 'alive') {
      this.disc(node, r, node.cut ? colours.surface : colours.alive);
      if (node.cut) this.ring(node, r - thick / 2, colours.alive, thick, [5, 4]);
    } else if (node.state === 'suspect') {
      this.disc(node, r * 0.45, colours.suspect);
      this.countdown(node, r - thick / 2);
    } else {
      const colour = colours[node.state] ?? colours.left;
      this.ring(node, r - thick / 2, colour, thick, node.state === 'unknown' ? [5, 4] : []);
      const arm = r * 0.34;
      pen.lineWidth = thick;
      pen.beginPath();
      pen.moveTo(node.sx - arm, node.sy - (node.state === 'failed' ? arm : 0));
      pen.lineTo(node.sx + arm, node.sy + (node.state === 'failed' ? arm : 0));
      if (node.state === 'failed') {
        pen.moveTo(node.sx - arm, node.sy + arm);
        pen.lineTo(node.sx + arm, node.sy - arm);
      }
      if (!node.claims && node.state !== 'unknown') pen.stroke();
    }
    if (node.claims) this.bell(node, r * 1.2, colours.leader);
    return false;
  }

  bell(node, size, colour) {
    const { pen } = this;
    pen.save();
    pen.translate(node.sx - size / 2, node.sy - size / 2);
    pen.scale(size / 24, size / 24);
    pen.fillStyle = colour;
    pen.fill(bell);
    pen.restore();
  }

  /** What is left of its time to contradict. */
  countdown(node, radius) {
    const { pen, colours } = this;
    const thick = Math.max(2, radius / 5);
    pen.globalAlpha = 0.3;
    this.ring(node, radius, colours.suspect, thick, [4, 3]);
    pen.globalAlpha = 1;
    const left = node.until ? Math.max(0, node.until - performance.now()) / Math.max(1, node.total) : 1;
    pen.strokeStyle = colours.suspect;
    pen.lineWidth = thick;
    pen.beginPath();
    pen.arc(node.sx, node.sy, radius, -TURN / 4, -TURN / 4 + TURN * Math.min(1, left));
    pen.stroke();
  }

  labels(few) {
    const { pen, colours } = this;
    const apart = this.step * this.view.k;
    const all = few || apart >= 44;
    const size = few ? 13.5 : Math.min(13, Math.max(10.5, apart / 5));
    pen.textAlign = 'center';
    pen.textBaseline = 'top';
    pen.lineJoin = 'round';
    const shown = [...this.nodes.values()].filter((node) => {
      const special = node.leader || node.own || node.claims || node.id === this.selected || node.id === this.pointed;
      // Many in trouble are shown by shape and in the table; names over names would say nothing.
      return (all || special) && node.sx > -60 && node.sx < this.width + 60 && node.sy > -40 && node.sy < this.height + 40;
    });
    shown.sort((a, b) => Number(a.leader) - Number(b.leader));
    for (const node of shown) {
      const bold = node.leader || node.id === this.selected;
      const notes = this.notes(node, few);
      const gap = node.leader || node.own ? 8 : 6;
      // On top of a ring the label goes above, where no lines are.
      const above = few && node.to.y < 0 && Math.abs(node.to.x) < 1 && this.nodes.size > 2;
      let y = node.sy + (above ? -this.radiusOf(node) - gap - (notes ? 2 : 1) * (size + 3) : this.radiusOf(node) + gap);
      const room = few ? 28 : node.leader || node.id === this.pointed || node.id === this.selected ? 40 : 11;
      const name = node.name.length > room ? `${node.name.slice(0, room - 1)}…` : node.name;
      this.text(name, node.sx, y, `${bold ? 650 : 500} ${node.leader ? size + 1 : size}px ${FONT}`, colours.ink);
      y += size + 4;
      if (notes) this.text(notes, node.sx, y, `500 ${Math.max(10.5, size - 2)}px ${FONT}`, node.leader || node.claims ? colours['leader-text'] : colours.muted);
    }
  }

  notes(node, few) {
    const notes = [];
    if (node.leader) notes.push(`leads, epoch ${counter(node.epoch)}`);
    if (node.claims) notes.push(`says it leads, epoch ${counter(node.claims)}`);
    if (few && node.state !== 'alive') notes.push(node.state);
    if (node.cut) notes.push('cut off');
    if (node.own) notes.push('this node');
    return notes.join(' · ');
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

  nearest(x, y) {
    let best = null;
    let distance = Infinity;
    for (const node of this.nodes.values()) {
      const d = Math.hypot(node.sx - x, node.sy - y);
      if (d < distance) [best, distance] = [node, d];
    }
    return best && distance <= Math.max(this.radiusOf(best) + 4, 14) ? best.id : null;
  }

  /** The next node in a direction, for the keyboard. */
  towards(dx, dy) {
    const nodes = [...this.nodes.values()];
    const from = this.nodes.get(this.pointed ?? this.selected);
    if (!from) return nodes.find((node) => node.leader)?.id ?? nodes[0]?.id;
    let best = null;
    let cost = Infinity;
    for (const node of nodes) {
      const [x, y] = [node.sx - from.sx, node.sy - from.sy];
      const along = x * dx + y * dy;
      const across = Math.abs(x * dy) + Math.abs(y * dx);
      if (node !== from && along > 1 && along + 2 * across < cost) [best, cost] = [node, along + 2 * across];
    }
    return best?.id ?? from.id;
  }

  point(id) {
    if (this.pointed === id) return;
    this.pointed = id;
    this.on.point(id);
    this.invalidate();
  }

  listen() {
    const { canvas, pointers } = this;
    let box = null;
    // Looked up once per visit or press: every look makes the browser lay out the page.
    const measure = () => { box = canvas.getBoundingClientRect(); };
    const where = (event) => {
      if (!box) measure();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    canvas.addEventListener('pointerenter', measure);
    addEventListener('scroll', () => { box = null; }, { passive: true });
    addEventListener('resize', () => { box = null; });
    canvas.addEventListener('pointerdown', (event) => {
      measure();
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, where(event));
      this.still = where(event);
    });
    canvas.addEventListener('pointermove', (event) => {
      const at = where(event);
      const before = pointers.get(event.pointerId);
      if (!before) {
        const id = this.nearest(at.x, at.y);
        canvas.classList.toggle('over', id !== null);
        this.point(id);
        return;
      }
      if (pointers.size === 2) {
        const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
        const apart = (p) => Math.max(1, Math.hypot(p.x - other.x, p.y - other.y));
        this.zoom(apart(at) / apart(before), (at.x + other.x) / 2, (at.y + other.y) / 2);
      } else if (!this.still || Math.hypot(at.x - this.still.x, at.y - this.still.y) > 4) {
        this.still = null;
        canvas.classList.add('dragged');
        this.pan(at.x - before.x, at.y - before.y);
      } else {
        return;
      }
      pointers.set(event.pointerId, at);
    });
    const up = (event) => {
      const single = pointers.size === 1;
      pointers.delete(event.pointerId);
      canvas.classList.remove('dragged');
      if (single && this.still && event.type === 'pointerup') {
        const at = where(event);
        const id = this.nearest(at.x, at.y);
        if (id !== null) this.on.pick(id);
      }
    };
    canvas.addEventListener('pointerup', up);
    canvas.addEventListener('pointercancel', up);
    canvas.addEventListener('pointerleave', () => this.point(null));
    canvas.addEventListener('wheel', (event) => {
      // A page that cannot be scrolled past its graph is a trap; pinching, or having chosen the graph, means zooming.
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      const at = where(event);
      this.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), at.x, at.y);
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      const arrow = arrows[event.key];
      if (arrow && event.shiftKey) this.pan(-60 * arrow[0], -60 * arrow[1]);
      else if (arrow) this.point(this.towards(...arrow) ?? null);
      else if (event.key === '+' || event.key === '=') this.zoom(1.3);
      else if (event.key === '-') this.zoom(1 / 1.3);
      else if (event.key === '0') this.fit();
      else if ((event.key === 'Enter' || event.key === ' ') && this.pointed !== null) this.on.pick(this.pointed);
      else return;
      event.preventDefault();
    });
    canvas.addEventListener('blur', () => this.point(null));
  }
}
