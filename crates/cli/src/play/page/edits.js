// What one does to a run: faults, in the words of a scenario's [[fault]].

export const seconds = (t) => `${Math.round(t)}us`;
export const micros = (text) => {
  const [, number, unit] = /^([\d.]+)(us|ms|s|m)$/.exec(text) ?? [null, 0, 's'];
  return Number(number) * { us: 1, ms: 1e3, s: 1e6, m: 6e7 }[unit];
};

/** Tools: what a click does. `key` is its key. */
export const TOOLS = [
  { tool: 'look', key: 'V', text: 'Look, move', hint: 'click a node for its state; drag it elsewhere' },
  { tool: 'kill', key: 'K', text: 'Kill, revive', hint: 'click a node; a dead one starts again with its disk' },
  { tool: 'freeze', key: 'Z', text: 'Freeze, thaw', hint: 'click a node: it stands still, and wakes without knowing' },
  { tool: 'disk', key: 'D', text: 'Fill its disk', hint: 'click a node: for ten seconds its disk keeps nothing' },
  { tool: 'link', key: 'C', text: 'Cut a link', hint: 'click two nodes; click them again to mend it' },
  { tool: 'way', key: 'O', text: 'Cut one direction', hint: 'click the sender, then the receiver' },
  { tool: 'part', key: 'P', text: 'Part', hint: 'draw a loop around the nodes that are to be apart' },
];

/** An edit in words. */
export function told(edit, name) {
  const all = (nodes) => (nodes.length > 5 ? `${nodes.length} nodes` : nodes.map(name).join(', '));
  switch (edit.kind) {
    case 'crash': return `kill ${name(edit.node)}`;
    case 'recover': return `revive ${name(edit.node)}`;
    case 'pause': return `freeze ${name(edit.node)} for ${lasts(edit)}`;
    case 'disk': return `fill the disk of ${name(edit.node)} for ${lasts(edit)}`;
    case 'cut': return edit.both ? `cut ${all(edit.from)} from ${all(edit.to)}${edit.for ? ` for ${lasts(edit)}` : ''}` : `cut ${all(edit.from)} → ${all(edit.to)}${edit.for ? ` for ${lasts(edit)}` : ''}`;
    case 'partition': return `part ${edit.groups.map(all).join(' | ')} from the rest`;
    case 'heal': return 'heal all';
    case 'loss': return `lose ${Math.round(edit.rate * 100)} % for ${lasts(edit)}`;
    case 'delay': return `${edit.by} more delay for ${lasts(edit)}`;
    case 'place': return `move ${name(edit.node)} to ${edit.to.map((one) => one.toFixed(1)).join(', ')}`;
    default: return edit.kind;
  }
}

const lasts = (edit) => `${(micros(edit.for) / 1e6).toFixed(2).replace(/\.?0+$/, '')} s`;

/** The last edit of these that still lasts at `t`. */
export function lasting(edits, t, test) {
  return edits.findLast((edit) => micros(edit.at) < t && (!edit.for || micros(edit.at) + micros(edit.for) > t) && test(edit));
}

/** What is left of a run at `t`, as how long something lasts; it must last for a while. */
export const rest = (t, end) => seconds(Math.max(1, end - t));

/** Ends an edit at `t`; one that would last no time at all is taken out. */
export function ended(edits, edit, t) {
  const length = Math.round(t) - micros(edit.at);
  return length > 0 ? edits.map((one) => (one === edit ? { ...one, for: seconds(length) } : one)) : edits.filter((one) => one !== edit);
}

/** The address of a state: everything it takes to see the same again. */
export function address(state, t) {
  const parts = new URLSearchParams();
  parts.set('scenario', state.world);
  parts.set('seed', state.seed);
  for (const set of state.sets) parts.append('set', set);
  for (const edit of state.edits) parts.append('edit', JSON.stringify(edit));
  if (state.beside) {
    parts.set('beside', 'yes');
    for (const set of state.besideSets) parts.append('beside-set', set);
  }
  parts.set('at', (t / 1e6).toFixed(6));
  return `#${parts}`;
}

export function fromAddress(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ''));
  if (!parts.has('scenario')) return null;
  return {
    world: parts.get('scenario'),
    seed: parts.get('seed') ?? '1',
    sets: parts.getAll('set'),
    edits: parts.getAll('edit').map((edit) => JSON.parse(edit)),
    beside: parts.has('beside'),
    besideSets: parts.getAll('beside-set'),
    t: Number(parts.get('at') ?? 0) * 1e6,
  };
}
