// Who leads each election, under which epoch and for how long, and whether the others say the same.

import { at, counter, el, exactly, plural, say, shape, span } from './words.js';

/** What the light shows: how it looks, what it says, and what else there is to say. */
export function agreement(election, live, rival) {
  const found = heard(election, believed(election, live, rival));
  const other = (election.differing ?? []).map(({ name, settings }) => `${name} has other settings: ${settings.join(', ')}`);
  if (other.length > 3) other.splice(3, Infinity, `${other.length - 3} more have`);
  if (!other.length) return found;
  return { ...found, light: found.light === 'all' ? 'some' : found.light, more: [...other, found.more].join(' · ') };
}

/** Whoever hears nobody cannot know what the others believe. */
function heard(election, found) {
  if (election.silent_ms == null || found.light === 'none') return found;
  return { ...found, light: 'some', more: `Nothing heard from anybody for ${span(election.silent_ms)}` };
}

function believed(election, live, rival) {
  if (!election.leader) return { light: 'none', text: 'No leader known', more: election.why };
  if (election.central) return central(election);
  const { agree, heard, dissent } = election.agreement;
  const of = Math.max(live, heard);
  const text = `${agree} of ${of} agree on ${at(election.leader.name, election.epoch)}`;
  const more = dissent.slice(0, 3).map(([member, leader]) => `${member} says ${leader}`);
  if (dissent.length > 3) more.push(`${dissent.length - 3} more differ`);
  const silent = of - heard;
  if (silent > 0) more.push(`${plural(silent, 'has', 'have')} not said`);
  if (!election.settled) more.push('not settled');
  if (rival) more.push(`out of reach, ${rival.name} says it leads, epoch ${counter(rival.says.epoch)}`);
  const light = agree === of && election.settled ? 'all' : 'some';
  return { light, text, more: more.join(' · ') || (of === 1 ? 'There is nobody else in reach.' : 'Everybody in reach says the same.') };
}

/** Nobody votes: whoever holds the same map says the same. */
function central({ leader, settled, central: { members, unknown, map, problem } }) {
  const text = members === 1 ? 'Nobody else is in range' : `${leader.name} is the most central of ${members}`;
  const more = [`map ${map.slice(0, 8)}`];
  if (unknown > 0) more.push(`${plural(unknown, 'has', 'have')} not told whom they hear`);
  if (!settled) more.push('not settled');
  if (problem) more.push(problem);
  return { light: settled && !problem ? 'all' : 'some', text, more: more.join(' · ') };
}

export class Leaders {
  constructor(section, choose) {
    this.section = section;
    this.choose = choose;
    this.cards = new Map();
  }

  /** `rival` is another leader of the first election, beyond what the agent can know. */
  update(elections, live, chosen, rival) {
    for (const [name, card] of this.cards) {
      if (!elections.some((election) => election.election === name)) {
        card.root.remove();
        this.cards.delete(name);
      }
    }
    for (const election of elections) {
      let card = this.cards.get(election.election);
      if (!card) {
        card = this.card(election.election);
        this.cards.set(election.election, card);
        this.section.append(card.root);
      }
      this.fill(card, election, live, elections.length > 1 && election.election === chosen, election === elections[0] ? rival : null);
    }
  }

  card(name) {
    const parts = {
      leader: el('strong.leader'),
      epoch: el('dd.epoch'),
      age: el('dd'),
      mode: el('dd'),
      changes: el('dd'),
      why: el('p.why'),
      light: el('span.light', { 'aria-hidden': 'true' }),
      text: el('strong.text'),
      more: el('span.more'),
    };
    const fact = (term, value) => el('div', {}, el('dt', {}, term), value);
    const pick = el('button.pick', { type: 'button' }, name);
    pick.addEventListener('click', () => this.choose(name));
    const root = el('article.card.election', { 'data-election': name },
      el('div.who', {}, shape('leader'), el('div', {}, el('h2', {}, pick), parts.leader)),
      el('dl', {}, fact('Epoch', parts.epoch), fact('For', parts.age), fact('Promise', parts.mode), fact('Changes', parts.changes)),
      el('div.agreement', {}, parts.light, el('div', {}, parts.text, parts.more)),
      parts.why,
    );
    return { root, pick, ...parts };
  }

  fill(card, election, live, marked, rival) {
    card.since = election.since_ms;
    card.root.classList.toggle('chosen', marked);
    card.root.dataset.led = election.leader ? 'yes' : 'no';
    card.pick.setAttribute('aria-pressed', String(marked));
    say(card.leader, election.leader?.name ?? 'Nobody');
    say(card.epoch, counter(election.epoch));
    card.epoch.title = election.epoch ? `Fencing token ${election.epoch}` : '';
    card.epoch.dataset.epoch = election.epoch ?? '';
    const lease = election.valid_for_ms == null ? '' : `, valid for ${election.valid_for_ms} ms`;
    say(card.mode, (election.settled ? election.mode : `${election.mode}, settling`) + lease);
    say(card.changes, String(election.changes));
    const { light, text, more } = agreement(election, live, rival);
    card.light.dataset.light = light;
    say(card.text, text);
    say(card.more, more);
    say(card.why, election.is_leader ? `This node leads: ${election.why}` : election.why);
  }

  /** Ages go on between two answers. */
  tick(age) {
    for (const card of this.cards.values()) say(card.age, exactly(card.since + age));
  }
}
