// Space and time: a line for each node, and a slanted one for each message between them.

const LANES_FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const MOST_LANES = 40;
const MOST_SLANTS = 1200;

export class Lanes {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext('2d');
    this.span = 2;
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    this.resize();
  }

  resize() {
    const { width, height } = this.canvas.parentElement.getBoundingClientRect();
    this.ratio = Math.min(2, window.devicePixelRatio || 1);
    [this.width, this.height] = [width, height];
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
  }

  /** Which nodes have a line: all if they are few, else the chosen one, the leaders and those it talks to. */
  chosen(scene, selected) {
    const count = scene.film.head.capacity;
    const all = Array.from({ length: count }, (_, node) => node);
    if (count <= MOST_LANES) return all;
    const first = new Set(selected >= 0 ? [selected] : []);
    const [from, to] = scene.film.between(scene.t - this.span * 1e6, scene.t);
    for (let i = to - 1; i >= from && first.size < MOST_LANES && selected >= 0; i -= 1) {
      if (scene.film.from[i] === selected) first.add(scene.film.to[i]);
      if (scene.film.to[i] === selected) first.add(scene.film.from[i]);
    }
    for (const node of all) {
      if (first.size >= MOST_LANES) break;
      first.add(node);
    }
    return [...first].sort((a, b) => a - b);
  }

  draw(scene, colours, selected, hue) {
    const { pen } = this;
    if (!this.width || !scene.film.head) return;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    const { film, t } = scene;
    const begin = t - this.span * 1e6;
    const [left, right] = [64, this.width - 16];
    const x = (at) => left + ((at - begin) / (this.span * 1e6)) * (right - left);
    const lanes = new Map(this.chosen(scene, selected).map((node, row, all) => [node, ((row + 0.8) * this.height) / (all.length + 0.6)]));
    pen.font = LANES_FONT;
    pen.textBaseline = 'middle';
    pen.textAlign = 'right';
    const skip = Math.ceil(12 / (this.height / lanes.size));
    let row = 0;
    for (const [node, y] of lanes) {
      const up = scene.up(node);
      pen.strokeStyle = scene.leads(node) ? colours.leader : scene.leader[node] >= 0 ? hue(scene.leader[node]) : colours.wire;
      pen.lineWidth = node === selected ? 2.5 : 1.2;
      pen.globalAlpha = up ? 0.8 : 0.25;
      pen.setLineDash(up && !scene.frozen[node] ? [] : [3, 4]);
      pen.beginPath();
      pen.moveTo(left, y);
      pen.lineTo(right, y);
      pen.stroke();
      pen.globalAlpha = 1;
      pen.fillStyle = node === selected ? colours.accent : colours.muted;
      if (row % skip === 0 || node === selected) pen.fillText(film.name(node).slice(-9), left - 8, y);
      row += 1;
    }
    pen.setLineDash([]);
    const [from, to] = film.between(begin - Math.min(film.longest, 5e6), t + 1);
    const step = Math.max(1, Math.ceil((to - from) / MOST_SLANTS));
    for (const [fates, colour, width] of [[[0], colours.accent, 1], [[1, 2], colours.failed, 1.4]]) {
      pen.strokeStyle = colour;
      pen.globalAlpha = to - from > 400 ? 0.35 : 0.65;
      pen.lineWidth = width;
      pen.beginPath();
      for (let i = from; i < to; i += step) {
        if (!fates.includes(film.fate[i])) continue;
        const [a, b] = [lanes.get(film.from[i]), lanes.get(film.to[i])];
        if (a === undefined || b === undefined || a === b) continue;
        const sent = film.sent[i];
        const lost = film.fate[i] === 1;
        const arrives = lost ? sent + this.span * 2e4 : film.arrives[i];
        const part = Math.min(1, (t - sent) / Math.max(1, arrives - sent)) * (lost ? 0.4 : 1);
        if (sent + (arrives - sent) * part < begin) continue;
        pen.moveTo(x(sent), a);
        pen.lineTo(x(sent + (arrives - sent) * part), a + (b - a) * part);
      }
      pen.stroke();
    }
    pen.globalAlpha = 1;
    for (const mark of film.marks) {
      if (mark.t < begin || mark.t > t || !lanes.has(mark.node)) continue;
      pen.fillStyle = colours[mark.shape] ?? colours.ink;
      pen.beginPath();
      pen.arc(x(mark.t), lanes.get(mark.node), 4.5, 0, 7);
      pen.fill();
    }
    pen.clearRect(0, 0, 2, this.height);
  }
}
