// What the agent knows, kept current: a stream of events says when something happened, and then it is asked for all of
// it. A stream is read by hand, because a browser's own reader can neither send a token nor say when it will try again.

const SOON = 120;
const IDLE = 2000;
const SILENCE = 40_000;
const LONGEST_WAIT = 10;

export class Denied extends Error {}
export class Gone extends Error {}
class Ended extends Error {}

export async function ask(path, { signal, ...options } = {}) {
  const headers = { ...options.headers };
  const token = sessionStorage.getItem('bellwether-token');
  if (token) headers.Authorization = `Bearer ${token}`;
  const response = await fetch(path, { cache: 'no-store', ...options, headers, signal });
  if (response.status === 401 || response.status === 403) throw new Denied();
  return response;
}

export async function json(path, options) {
  const response = await ask(path, options);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error ?? `status ${response.status}`);
  return body;
}

/** One agent, followed until stopped. `on` has status, events, event, state(name, seconds). */
export class Feed {
  constructor(base, on) {
    this.base = base;
    this.on = on;
    this.index = null;
    this.life = null;
    this.ended = new AbortController();
    this.fails = 0;
    this.run();
  }

  stop() {
    this.ended.abort();
    this.broken?.abort();
  }

  /** Try again at once, if it waits. */
  retry() {
    this.hurry?.();
  }

  /** Something will have changed. */
  nudge() {
    this.wanted = true;
    this.wake?.();
  }

  async run() {
    while (!this.ended.signal.aborted) {
      this.broken = new AbortController();
      const begun = performance.now();
      const signal = AbortSignal.any([this.broken.signal, this.ended.signal]);
      try {
        if (this.fails === 0) this.on.state('connecting');
        await this.refresh(signal);
        this.fails = 0;
        this.on.state('live');
        await Promise.race([this.follow(signal), this.keep(signal)]);
      } catch (error) {
        if (this.ended.signal.aborted) return;
        this.broken.abort();
        if (error instanceof Gone) {
          this.on.state('gone');
          return;
        }
        if (error instanceof Denied) {
          this.on.state('denied');
          return;
        }
        // Who ends a stream properly can be asked why at once, but not for ever.
        if (error instanceof Ended && performance.now() - begun > 500) continue;
      }
      this.broken.abort();
      if (!this.ended.signal.aborted) await this.pause();
    }
  }

  /** Waits, and says for how much longer. */
  async pause() {
    this.fails += 1;
    let left = Math.min(LONGEST_WAIT, 2 ** (this.fails - 1));
    for (; left > 0 && !this.ended.signal.aborted; left -= 1) {
      this.on.state('lost', left);
      const hurried = await new Promise((resolve) => {
        const timer = setTimeout(resolve, 1000, false);
        this.hurry = () => { clearTimeout(timer); resolve(true); };
      });
      this.hurry = null;
      if (hurried) break;
    }
    if (!this.ended.signal.aborted) this.on.state('lost', 0);
  }

  async refresh(signal) {
    this.wanted = false;
    const begun = performance.now();
    const status = await json(`${this.base}/status`, { signal });
    if (status === null) throw new Gone();
    if (signal.aborted) return;
    const life = `${status.node.id}.${status.node.boot}`;
    if (this.life !== life) {
      this.life = life;
      const kept = await json(`${this.base}/events?index=0`, { signal });
      this.index = kept.index;
      this.on.events(kept.events);
    }
    this.on.status(status);
    this.cost = performance.now() - begun;
  }

  /** Asks again when told to, not more often than is cheap, and now and then anyway. */
  async keep(signal) {
    while (!signal.aborted) {
      const nudged = this.wanted || await new Promise((resolve) => {
        const timer = setTimeout(resolve, IDLE, false);
        this.wake = () => { clearTimeout(timer); resolve(true); };
      });
      this.wake = null;
      if (nudged) await new Promise((resolve) => setTimeout(resolve, Math.max(SOON, 3 * this.cost)));
      if (signal.aborted) return;
      // Nobody looks: nobody need be asked.
      if (!document.hidden) await this.refresh(signal);
    }
  }

  async follow(signal) {
    const headers = { Accept: 'text/event-stream', 'Last-Event-ID': String(this.index) };
    const response = await ask(`${this.base}/events`, { headers, signal });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    let silence;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => this.broken.abort(), SILENCE);
    };
    try {
      for (;;) {
        heard();
        const { value, done } = await reader.read();
        if (done) throw new Ended();
        text += value;
        let end;
        while ((end = text.indexOf('\n\n')) >= 0) {
          this.take(text.slice(0, end));
          text = text.slice(end + 2);
        }
      }
    } finally {
      clearTimeout(silence);
    }
  }

  take(block) {
    const fields = { event: 'message', data: '' };
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':');
      if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
    }
    if (fields.id !== undefined) this.index = Number(fields.id);
    // After a gap all that happened is asked for again, by the next refresh.
    if (fields.event === 'reset' || fields.event === 'lagged') this.life = null;
    else if (fields.data) this.on.event(JSON.parse(fields.data));
    if (fields.data) this.nudge();
  }
}
