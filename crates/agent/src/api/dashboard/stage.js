// What only `bellwether dev` has: nodes that may be looked through, killed, revived, cut off and healed.

import { json } from './feed.js';
import { el, say } from './words.js';

const EVERY = 1000;

export class Stage {
  /** `changed()` when somebody is dead, alive, cut off or of another opinion; `failed(text)` when something was refused. */
  constructor({ changed, failed }) {
    Object.assign(this, { changed, failed, nodes: [], waiting: new Map() });
    this.ready = this.look();
    setInterval(() => this.look(), EVERY);
  }

  find(name) {
    return this.nodes.find((node) => node.name === name);
  }

  async look() {
    if (this.looking) {
      this.again = true;
      return;
    }
    this.looking = true;
    try {
      do {
        this.again = false;
        const nodes = await json('/v1/dev/nodes');
        const differs = JSON.stringify(nodes) !== JSON.stringify(this.nodes);
        this.nodes = nodes;
        if (differs) this.changed();
      } while (this.again);
    } catch {
      // The feed says so, and tries again.
    } finally {
      this.looking = false;
    }
  }

  async act(name, act) {
    this.waiting.set(name, act);
    this.changed();
    try {
      await json(`/v1/dev/nodes/${encodeURIComponent(name)}/${act}`, { method: 'POST' });
    } catch (error) {
      this.failed(error.message);
    }
    this.waiting.delete(name);
    await this.look();
    this.changed();
  }

  /** The buttons of one node; each of the two does what can be done next. */
  buttons(name) {
    const life = el('button.act', { type: 'button' });
    const cable = el('button.act', { type: 'button' });
    const root = el('div.buttons', { role: 'group', 'aria-label': `Do something to ${name}` }, life, cable);
    for (const button of [life, cable]) {
      button.addEventListener('click', () => this.act(name, button.dataset.act));
    }
    const set = (button, act, disabled) => {
      if (button.dataset.act !== act) button.dataset.act = act;
      say(button, `${act[0].toUpperCase()}${act.slice(1)}`);
      button.setAttribute('aria-label', `${button.textContent} ${name}`);
      // Not disabled, which would drop the focus.
      button.setAttribute('aria-disabled', String(disabled));
    };
    const update = () => {
      const node = this.find(name);
      const busy = !node || this.waiting.has(name);
      set(life, node && !node.running ? 'revive' : 'kill', busy);
      set(cable, node?.cut ? 'heal' : 'cut', busy || !node?.running);
    };
    root.addEventListener('click', (event) => {
      if (event.target.getAttribute('aria-disabled') === 'true') event.stopImmediatePropagation();
    }, { capture: true });
    update();
    return { root, update };
  }
}
