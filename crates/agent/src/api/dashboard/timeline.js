// What happened, the newest first.

import { counter, el, sentence, shape, timeOfDay } from './words.js';

const SHOWN = 150;

export class Timeline {
  constructor(list, empty, filter) {
    [this.list, this.empty] = [list, empty];
    this.wanted = 'all';
    this.waiting = [];
    // Known, because asking for it would make the browser lay out the page.
    this.away = false;
    list.addEventListener('scroll', () => { this.away = list.scrollTop > 4; }, { passive: true });
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
    this.waiting = [];
    this.list.replaceChildren();
    this.put(events);
  }

  /** Shown with the next frame, together with whatever else happens until then. */
  add(event) {
    this.waiting.push(event);
    if (this.waiting.length === 1) requestAnimationFrame(() => this.flush());
  }

  flush() {
    const events = this.waiting;
    this.waiting = [];
    // Whoever reads further down is not pushed away.
    const before = this.away ? this.list.scrollHeight : 0;
    this.put(events);
    if (before) this.list.scrollTop += this.list.scrollHeight - before;
  }

  /** What is the same again is counted, not repeated. */
  put(events) {
    for (const event of events.slice(-SHOWN)) {
      const item = this.item(event);
      const last = this.list.firstChild;
      if (last?.dataset.same === item.dataset.same) {
        const times = Number(last.dataset.times) + 1;
        item.dataset.times = String(times);
        item.querySelector('p').append(el('span.times', { title: `${times} times` }, ` ×${times}`));
        last.remove();
      }
      this.list.prepend(item);
    }
    while (this.list.children.length > SHOWN) this.list.lastChild.remove();
    this.hollow();
  }

  item(event) {
    const [mark, [who, rest], leading] = sentence(event);
    // Who leads says it all; what is known of a member is what somebody says.
    const notes = leading ? event.epoch && `epoch ${counter(event.epoch)}` : event.detail;
    const same = [event.event, event.election, event.node?.id, notes].join(' ');
    return el('li', { 'data-kind': leading ? 'leading' : 'members', 'data-event': event.event, 'data-same': same, 'data-times': '1' },
      shape(mark),
      el('p', {}, el('strong', {}, who), rest, notes ? el('small', { title: event.epoch ? `Fencing token ${event.epoch}` : null }, notes) : null),
      el('time', { datetime: new Date(event.unix_ms).toISOString() }, timeOfDay(event.unix_ms)),
    );
  }

  hollow() {
    const shown = this.wanted === 'all' ? this.list.firstChild : this.list.querySelector(`[data-kind=${this.wanted}]`);
    this.empty.hidden = Boolean(shown);
  }
}
