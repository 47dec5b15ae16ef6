// Where nodes stand. A place depends on who is there and on nothing else: no state, no time, no chance. Few stand on
// one ring; many fill a disc ring by ring, in the order of their names, around the node through whose eyes we look.

export const FEW = 12;
const STEP = 60;

/** From identity to `{ x, y }`, and how far neighbours are apart, for nodes in the order of their names. */
export function place(sorted, own, stretch) {
  const places = new Map();
  if (sorted.length <= FEW) {
    const radius = sorted.length === 1 ? 0 : Math.max(110, sorted.length * 24);
    sorted.forEach((node, i) => {
      const turn = (i / sorted.length) * 2 * Math.PI - Math.PI / 2;
      places.set(node.id, { x: radius * Math.cos(turn), y: radius * Math.sin(turn) });
    });
    return { places, step: STEP * 2 };
  }
  places.set(own, { x: 0, y: 0 });
  // Whoever stands in the middle leaves a gap where it would stand, so that looking through other eyes moves two.
  let ring = 1;
  let slot = 0;
  let size = 6;
  let left = sorted.length;
  for (const node of sorted) {
    if (slot === size) {
      ring += 1;
      slot = 0;
      size = Math.min(6 * ring, left);
    }
    if (node.id !== own) {
      const turn = (slot / size) * 2 * Math.PI - Math.PI / 2 + (ring % 2) * (Math.PI / size);
      const radius = ring * STEP;
      places.set(node.id, { x: radius * Math.cos(turn) * stretch, y: radius * Math.sin(turn) });
    }
    slot += 1;
    left -= 1;
  }
  return { places, step: STEP };
}
