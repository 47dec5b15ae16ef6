// The first minute: five faults, what to look for, and what each mode promised.

const up = (scene) => scene.opinion().up;

/** Each lesson: the world it needs, what it says, and when it is done. `view` has the scene, the state and the instant. */
export const LESSONS = [
  {
    title: 'Who leads?',
    wish: { world: 'five', sets: [], seed: '1', at: 0 },
    text: 'Five agents start, hear of each other, and agree on one: the gold one with the bell. The colour of a node says whom it names. Press Go (or the space bar), and kill the leader once all agree: choose Kill, click it.',
    look: 'The others accuse it (dashed), give it up, and elect another under a higher epoch. The light stays green: between two leaders there may be none, and that is no broken promise.',
    done: ({ scene, state }) => state.edits.some((edit) => edit.kind === 'crash') && up(scene) === 4 && scene.opinion().agree === 4 && scene.up(scene.opinion().leader),
  },
  {
    title: 'A network in two halves',
    wish: { world: 'five', sets: [], seed: '2', at: 8 },
    text: 'Choose Part and draw a loop around two or three nodes. Let some seconds pass.',
    look: 'Each half elects a leader of its own, under its own epoch. This mode, eventual, promises one leader in each connected part, so the light stays green. A store that refuses older epochs is what keeps two leaders from doing harm.',
    done: ({ scene }) => scene.sides.some((side) => side > 0) && scene.opinion().leading.length > 1,
  },
  {
    title: 'And the same, leased',
    wish: { world: 'five', sets: ['node.election.demo.mode=leased'], seed: '2', at: 8 },
    text: 'Now the mode is leased: a leader may act only while its lease, the shrinking arc, lasts. Part the leader, alone or with one other, from the rest.',
    look: 'The leader loses its lease, and then, not before, the larger half elects another. The smaller half has nobody: that is the price of at most one.',
    done: ({ scene }) => {
      const { leading } = scene.opinion();
      if (leading.length !== 1 || !scene.sides.some((side) => side > 0)) return false;
      const side = scene.sides[leading[0]];
      return scene.sides.filter((one) => one === side).length > scene.sides.length / 2 && scene.epoch[leading[0]].split('.')[0] > 1;
    },
  },
  {
    title: 'Only one direction',
    wish: { world: 'five', sets: [], seed: '3', at: 8 },
    text: 'Choose Cut one direction. Click the leader, then another node: that node no longer hears it, though it hears that node.',
    look: 'Nothing happens, or almost: others pass on what the two cannot tell each other, and no healthy leader is deposed for the sake of one bad cable.',
    done: ({ scene, state, t }) => scene.cuts.length === 1 && state.edits.some((edit) => edit.kind === 'cut' && Number.parseInt(edit.at, 10) + 6e6 < t),
  },
  {
    title: 'A rule left out',
    wish: { world: 'hasty', sets: [], seed: '1', at: 20 },
    text: 'A leased election again, in which who takes over does not wait until the lease before has ended. Press Go, and watch the light. You need break nothing: at 25 s the scenario freezes the leader.',
    look: 'The light is red: two leases were valid at one instant, and the sentence says whose. Click the time to go to just before it, and step on with the full stop key. Under Settings, override election.waits=true, and the light stays green.',
    done: ({ film, t }) => film.broken.some((one) => one.t <= t),
  },
];
