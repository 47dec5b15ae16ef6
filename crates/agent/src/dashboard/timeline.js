// What happened, the newest first.

import { counter, el, sentence, shape, timeOfDay } from './words.js';

const SHOWN = 150;

export class Timeline {
  constructor(list, empty, filter) {
    [this.list, this.empty] = [list, empty];
    this.wanted = 'all';
    for (const [value, text] of [['all', 'All'], ['leading', 'Leading'], ['members', 'Members']]) {
      const chip = el('button.chip', { type: 'button', 'aria-pressed': String(value === 'all') }, text);
      chip.addEventListener('click', () => {
        for (const other of filter.children) other.setAttribute('aria-pressed', String(other === chip));
        this.wanted = value;
        list.dataset.wanted = value;
        this.hollow();
      });
      filter.append(chip);
    }
  }

  /** All that is known, instead of what was. */
  replace(events) {
    this.list.replaceChildren(...events.slice(-SHOWN).reverse().map((event) => this.item(event)));
    this.hollow();
  }

  add(event) {
    // Whoever reads further down is not pushed away.
    const reading = this.list.scrollTop > 4 ? this.list.scrollHeight : 0;
    const item = this.item(event);
    item.classList.add('new');
    this.list.prepend(item);
    while (this.list.children.length > SHOWN) this.list.lastChild.remove();
    if (reading) this.list.scrollTop += this.list.scrollHeight - reading;
    this.hollow();
  }

  item(event) {
    const [mark, [who, rest], leading] = sentence(event);
    // Who leads says it all; what is known of a member is what somebody says.
    const notes = leading ? event.epoch && `epoch ${counter(event.epoch)}` : event.detail;
    return el('li', { 'data-kind': leading ? 'leading' : 'members', 'data-event': event.event },
      shape(mark),
      el('p', {}, el('strong', {}, who), rest, notes ? el('small', {}, notes) : null),
      el('time', { datetime: new Date(event.unix_ms).toISOString() }, timeOfDay(event.unix_ms)),
    );
  }

  hollow() {
    const shown = this.wanted === 'all' ? this.list.firstChild : this.list.querySelector(`[data-kind=${this.wanted}]`);
    this.empty.hidden = Boolean(shown);
  }
}
