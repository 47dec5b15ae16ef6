// Why a member is what it is: what is held against it, and by whom.

import { suspicion } from './members.js';
import { el, exactly, reached, say, shape, span } from './words.js';

const WHAT = {
  'member-join': 'joined', 'member-suspect': 'did not answer', 'member-alive': 'contradicted', 'member-failed': 'was given up',
  'member-leave': 'said goodbye', 'member-update': 'introduced itself',
};

export class Why {
  /** `look(id)` finds out, `acts(name)` gives the buttons of a stage, `closed()` is told. */
  constructor({ dialog, name, body, close }, { look, acts, closed }) {
    Object.assign(this, { dialog, name, body, look, acts, closed, id: null });
    close.addEventListener('click', () => this.close());
    dialog.addEventListener('close', () => this.forget());
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && dialog.open) this.close();
    });
  }

  async open(member) {
    if (!this.dialog.open) {
      this.before = document.activeElement;
      this.dialog.show();
    }
    if (this.id !== member.id) {
      this.id = member.id;
      // Made once and then filled, so that a button keeps the focus while the rest changes.
      this.buttons = this.acts(member.name);
      this.parts = { summary: el('p.summary'), facts: el('dl'), heading: el('h3', {}, 'Record'), record: el('ol') };
      const { summary, facts, heading, record } = this.parts;
      this.body.replaceChildren(...[summary, facts, this.buttons?.root, heading, record].filter(Boolean));
    }
    this.told = null;
    this.show(member, 0);
    await this.refresh();
  }

  close() {
    this.dialog.close();
  }

  forget() {
    this.id = null;
    this.closed();
    this.before?.focus?.();
  }

  /** The member has changed, or time has passed. */
  async update(member, age) {
    if (this.id === null) return;
    this.show(member, age);
    await this.refresh();
  }

  async refresh() {
    const id = this.id;
    if (id === null || this.asking) return;
    this.asking = true;
    try {
      const told = await this.look(id);
      if (this.id === id && told) {
        this.told = told;
        this.show(told, 0);
      }
    } catch {
      // The rest of the page says that the agent cannot be asked.
    } finally {
      this.asking = false;
    }
  }

  show(member, age) {
    this.name.replaceChildren(shape(member.state), el('span', {}, member.name));
    const facts = [
      ['State', member.since_ms == null ? member.state : `${member.state} for ${exactly(member.since_ms + age)}`],
      ['Suspicion', suspicion(member, age)],
      ['Reached', reached(member, age)],
      ['Addresses', member.addresses?.join(', ')],
      ['Identity', member.id.includes(':') ? null : member.id],
      ['Life', member.boot == null ? null : `${member.boot}, incarnation ${member.incarnation}`],
      ['Tags', Object.entries(member.tags ?? {}).map((tag) => tag.join(' = ')).join(', ')],
    ].filter(([, value]) => value);
    const record = [...(member.verdicts ?? [])].reverse().map((verdict) => el('li', {},
      el('span', {}, WHAT[verdict.what] ?? verdict.what, verdict.by ? el('small', {}, ` says ${verdict.by}`) : null),
      el('time', {}, `${span(verdict.ago_ms + age)} ago`)));
    const { parts } = this;
    say(parts.summary, this.told ? `${this.told.summary}.` : '…');
    parts.facts.replaceChildren(...facts.map(([term, value]) => el('div', {}, el('dt', {}, term), el('dd', {}, value))));
    parts.heading.hidden = record.length === 0;
    parts.record.replaceChildren(...record);
    this.buttons?.update();
  }
}
