// The map of a central election: who hears whom, who is how central, and so why the leader leads. The leader is in the
// middle and everybody else on a ring for each hop from it, beside whoever it is reached through: the same map always
// looks the same, and five hundred nodes cost one pass.

import { json } from './feed.js';
import { BELL, el, plural, say } from './words.js';

const bell = new Path2D(BELL);
const TURN = 2 * Math.PI;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
/** Up to so many have their names beside them, if each finds so many pixels of the width. */
const NAMED = 40;
const NAME = 25;
/** Up to so many rows; whoever wants all asks /v1/elections/NAME/map. */
const ROWS = 100;
/** What scores are, by the criterion. */
const SCORES = {
  closeness: { called: 'sum of distances' },
  degree: { called: 'neighbours' },
  betweenness: { called: 'betweenness', thousandths: true },
  tree: { called: 'sum of distances in the tree' },
  eigenvector: { called: 'eigenvector', thousandths: true },
};

/** Places, in rings around the first of `order`; those that it does not reach are left out. */
export function rings(count, links, middle) {
  const near = Array.from({ length: count }, () => []);
  for (const [a, b] of links) {
    near[a].push(b);
    near[b].push(a);
  }
  const parent = new Array(count).fill(-1);
  const depth = new Array(count).fill(-1);
  const order = [middle];
  depth[middle] = 0;
  for (let at = 0; at < order.length; at += 1) {
    for (const next of near[order[at]]) {
      if (depth[next] >= 0) continue;
      [depth[next], parent[next]] = [depth[order[at]] + 1, order[at]];
      order.push(next);
    }
  }
  // Whoever many are reached through gets a wide sector.
  const weight = new Array(count).fill(0);
  const below = Array.from({ length: count }, () => []);
  for (let at = order.length - 1; at >= 0; at -= 1) {
    const node = order[at];
    weight[node] = Math.max(1, weight[node]);
    if (parent[node] >= 0) {
      weight[parent[node]] += weight[node];
      below[parent[node]].unshift(node);
    }
  }
  const places = new Array(count).fill(null);
  const sectors = new Array(count).fill(null);
  sectors[middle] = [-TURN / 4, TURN];
  const deepest = depth[order.at(-1)];
  for (const node of order) {
    const [from, width] = sectors[node];
    const turn = from + width / 2;
    const radius = deepest ? depth[node] / deepest : 0;
    places[node] = { x: radius * Math.cos(turn), y: radius * Math.sin(turn), depth: depth[node] };
    let start = from;
    const all = below[node].reduce((sum, child) => sum + weight[child], 0);
    for (const child of below[node]) {
      const part = (width * weight[child]) / all;
      sectors[child] = [start, part];
      start += part;
    }
  }
  return { places, deepest };
}

export class MeshMap {
  constructor({ card, canvas, note, ranks }) {
    [this.card, this.canvas, this.note, this.ranks] = [card, canvas, note, ranks];
    this.pen = canvas.getContext('2d');
    this.shown = null;
    this.map = null;
    new ResizeObserver(() => this.draw()).observe(canvas.parentElement);
  }

  /** `election` is the chosen one; `path` leads to its map. */
  async update(election, path) {
    this.card.hidden = !election?.central;
    if (this.card.hidden) {
      [this.shown, this.map] = [null, null];
      return;
    }
    const { map, members, unknown } = election.central;
    const wanted = [path, map, members, unknown, election.leader?.id].join();
    const nameless = this.map?.nodes.some(({ id, name }) => id === name);
    if ((wanted === this.shown && !nameless) || this.asking) return;
    this.asking = true;
    try {
      this.map = await json(path);
      this.shown = wanted;
    } catch {
      // The next answer asks again; until then the last map stays.
    } finally {
      this.asking = false;
    }
    if (this.map) this.show();
  }

  show() {
    const { nodes, links, criterion, map, problem } = this.map;
    const words = [plural(nodes.length, 'node', 'nodes'), plural(links.length, 'link', 'links'), `by ${criterion}`, `map ${map.slice(0, 8)}`];
    say(this.note, problem ? `${words.join(' · ')} · ${problem}` : words.join(' · '));
    const { called, thousandths } = SCORES[criterion];
    const rows = nodes.slice(0, ROWS).map((node) => {
      const leads = node.id === this.map.leader;
      const row = el('li', { 'data-id': node.id },
        el('span.rank', {}, String(node.rank)),
        el('strong', {}, node.name),
        el('span.times', {}, `${called} ${thousandths ? (node.score / 1000).toFixed(3) : node.score} · degree ${node.degree} · ${node.hops === 0 ? 'this node' : plural(node.hops, 'hop', 'hops')}`));
      row.classList.toggle('leading', leads);
      if (leads) row.append(el('span.leads', {}, 'leads'));
      return row;
    });
    if (nodes.length > ROWS) rows.push(el('li', {}, el('span.times', {}, `and ${nodes.length - ROWS} more`)));
    this.ranks.replaceChildren(...rows);
    const middle = Math.max(0, nodes.findIndex(({ id }) => id === this.map.leader));
    this.layout = rings(nodes.length, links, middle);
    const [best, worst] = [nodes[0].score, nodes.at(-1).score];
    this.share = nodes.map(({ score }) => (best === worst ? 1 : (worst - score) / (worst - best)));
    this.canvas.setAttribute('aria-label', `Map: ${words.join(', ')}. ${nodes[0].name} is the most central. The list beside it has the same.`);
    this.draw();
  }

  draw() {
    if (!this.layout) return;
    const { width, height } = this.canvas.parentElement.getBoundingClientRect();
    if (width === 0 || height === 0) return;
    const ratio = window.devicePixelRatio || 1;
    [this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const { pen, map: { nodes, links, own, leader } } = this;
    const few = nodes.length <= Math.min(NAMED, width / NAME);
    const [wide, high] = [width / 2 - (few ? 70 : 20), height / 2 - (few ? 36 : 18)];
    const places = this.layout.places.map((place) => place && { x: width / 2 + place.x * wide, y: height / 2 + place.y * high });
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.strokeStyle = colour('line');
    pen.lineWidth = 1;
    for (let ring = 1; ring <= this.layout.deepest; ring += 1) {
      const part = ring / this.layout.deepest;
      pen.beginPath();
      pen.ellipse(width / 2, height / 2, wide * part, high * part, 0, 0, TURN);
      pen.stroke();
    }
    pen.strokeStyle = colour('wire');
    pen.globalAlpha = few ? 1 : 0.55;
    pen.beginPath();
    for (const [a, b] of links) {
      if (!places[a] || !places[b]) continue;
      pen.moveTo(places[a].x, places[a].y);
      pen.lineTo(places[b].x, places[b].y);
    }
    pen.stroke();
    pen.globalAlpha = 1;
    const radius = few ? 11 : Math.max(3, Math.min(9, 100 / Math.sqrt(nodes.length)));
    const [surface, accent, gold, ink] = ['surface', 'accent', 'leader', 'ink'].map(colour);
    pen.textAlign = 'center';
    pen.textBaseline = 'top';
    pen.lineJoin = 'round';
    // The best last, above the others.
    for (let at = nodes.length - 1; at >= 0; at -= 1) {
      if (!places[at]) continue;
      const { x, y } = places[at];
      const leads = nodes[at].id === leader;
      const r = leads ? Math.max(radius, 12) : radius;
      const disc = (size, fill) => {
        pen.fillStyle = fill;
        pen.beginPath();
        pen.arc(x, y, size, 0, TURN);
        pen.fill();
      };
      disc(r + 1.5, surface);
      // The nearer to the middle of all, the fuller.
      pen.globalAlpha = leads ? 1 : 0.15 + 0.85 * this.share[at];
      disc(r, leads ? gold : accent);
      pen.globalAlpha = 1;
      pen.strokeStyle = leads ? gold : accent;
      pen.lineWidth = nodes[at].id === own ? 3 : 1;
      pen.beginPath();
      pen.arc(x, y, r + (leads ? 3 : 0), 0, TURN);
      pen.stroke();
      if (leads) {
        pen.save();
        pen.translate(x - r * 0.7, y - r * 0.7);
        pen.scale((r * 1.4) / 24, (r * 1.4) / 24);
        pen.fillStyle = colour('on-leader');
        pen.fill(bell);
        pen.restore();
      }
    }
    for (let at = nodes.length - 1; at >= 0; at -= 1) {
      const leads = nodes[at].id === leader;
      if (!places[at] || !(few || leads || nodes[at].id === own)) continue;
      const { x, y } = places[at];
      const below = y + (leads ? Math.max(radius, 12) : radius) + 5;
      const name = nodes[at].name.length > 18 ? `${nodes[at].name.slice(0, 17)}…` : nodes[at].name;
      pen.font = `${leads ? 650 : 500} 12px ${FONT}`;
      pen.lineWidth = 4;
      pen.strokeStyle = surface;
      pen.strokeText(name, x, below);
      pen.fillStyle = ink;
      pen.fillText(name, x, below);
    }
  }
}
