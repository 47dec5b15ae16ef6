// One side: a film that grows, the instant that is looked at, and what is said about it.

import { Field } from './draw.js';
import { Film, Scene } from './film.js';
import { PROMISES, meaning } from './promise.js';
import { el, say } from './words.js';

/** Reads a film that the server makes, until it is over or nobody wants it any more. */
export async function readFilm(wish, film, wanted, grew) {
  const begun = await fetch('/api/film', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(wish) });
  const answer = await begun.json();
  if (!begun.ok) throw new Error(answer.error);
  const decoder = new TextDecoder();
  let from = 0;
  while (wanted() && !film.tail && !film.failed) {
    const piece = await fetch(`/api/film/${answer.id}?from=${from}`);
    if (!piece.ok) throw new Error(await piece.text());
    const bytes = await piece.arrayBuffer();
    if (bytes.byteLength) {
      film.feed(decoder.decode(bytes));
      from += bytes.byteLength;
      grew();
    } else await new Promise((done) => setTimeout(done, 60));
  }
  if (film.failed) throw new Error(film.failed);
}

export class Panel {
  constructor(label, jump) {
    this.label = el('h2', {}, label);
    this.canvas = el('canvas', { tabindex: '0', role: 'application', 'aria-roledescription': 'network', 'aria-label': 'Nodes. Arrow keys go from node to node, Enter chooses one.' });
    this.light = el('span.light', { role: 'img' });
    this.promise = el('p');
    this.broken = el('p.broken');
    this.leads = el('p.headline');
    this.trace = el('span', { title: 'The digest of the whole run: bellwether sim gives the same' });
    this.count = el('span');
    this.jump = jump;
    this.root = el('section.card.stage-card', { 'aria-label': label },
      el('div.promise', {}, this.light, el('div', {}, this.label, this.promise, this.broken), this.leads),
      el('div.canvas', {}, this.canvas),
      el('p.trace', {}, this.trace, this.count));
    this.film = null;
    this.scene = null;
    this.turn = 0;
    this.making = false;
  }

  /** When it stands in the document. */
  open() {
    this.field = new Field(this.canvas);
  }

  show(film) {
    this.film = film;
    this.scene = new Scene(film);
    this.field.links = null;
    this.field.dragged.clear();
  }

  /** Has the film of this wish made; the one before is shown until the new one has come as far. */
  async want(wish, now) {
    this.turn += 1;
    const turn = this.turn;
    const film = new Film();
    const ready = () => {
      const far = film.head && (film.tail || film.horizon > now() + 5e4);
      if (turn === this.turn && far && this.film !== film) this.show(film);
    };
    this.making = true;
    try {
      await readFilm(wish, film, () => turn === this.turn, ready);
      if (turn === this.turn && this.film !== film) this.show(film);
    } finally {
      if (turn === this.turn) this.making = false;
    }
  }

  draw(t, how) {
    if (!this.scene) return;
    this.scene.seek(Math.min(t, this.film.horizon));
    this.field.draw(this.scene, how);
  }

  /** What is said in words; several times a second is enough. */
  tell(t) {
    const { film, scene } = this;
    if (!scene) return;
    const { leader, agree, up, leading, epoch } = scene.opinion();
    const broken = film.broken.filter((one) => one.t <= t);
    this.light.dataset.light = broken.length ? 'broken' : 'all';
    this.light.setAttribute('aria-label', broken.length ? 'A promise is broken' : 'No promise is broken');
    say(this.promise, PROMISES[film.head.mode] ?? (film.head.mode ? '' : 'Nobody is elected here; members find out who is there.'));
    const first = broken[0];
    const key = first ? `${first.invariant} ${first.t}` : '';
    if (this.told !== key) {
      this.told = key;
      this.broken.replaceChildren();
      if (first) {
        const at = el('button', { type: 'button', title: 'Go to just before it' }, `${(first.t / 1e6).toFixed(3)} s`);
        at.addEventListener('click', () => this.jump(first.t - 5e5));
        this.broken.append('Broken at ', at, `: ${meaning(first.invariant)} `, el('small', {}, `${first.invariant} ${first.detail}`));
      }
    }
    const text = !film.head.mode ? `${up} up` : leader < 0 ? 'nobody' : leading.length > 1 ? `${leading.length} leaders` : film.name(leader);
    const note = !film.head.mode ? '' : leader < 0 ? `of ${up} up, none names a leader` : `${epoch ? `epoch ${epoch.split('.')[0]}, ` : ''}${agree} of ${up} name ${film.name(leader)}`;
    if (this.said !== text + note) {
      this.said = text + note;
      this.leads.replaceChildren(el('strong', {}, text), note);
    }
    say(this.trace, film.tail ? `trace ${film.tail.trace} · seed ${film.head.seed}` : `running … ${(film.horizon / 1e6).toFixed(0)} of ${(film.head.duration / 1e6).toFixed(0)} s`);
    say(this.count, scene.share < 1 ? `${Math.max(1, Math.floor(scene.share * 100))} % of messages are shown` : '');
  }
}
