// Places for the nodes that are shown: side by side in columns, or below each other as in an outline.

/**
 * Columns from the root on the left to the leaves on the right, for windows that are wide enough.
 *
 * Gives {boxes, width, height}: a Map of nodes to {x, y, width, height}, where x and y are the upper left corner. The
 * height does not depend on `width`.
 */
export function columnLayout({ shown, open }, width) {
  const nodes = [...shown];
  const depth = Math.max(...nodes.map((node) => node.row));
  const ends = nodes.filter((node) => !open.has(node)).sort((a, b) => a.position - b.position || a.row - b.row);
  const step = ends.length > 18 ? 39 : ends.length > 8 ? 42 : 56;
  const boxHeight = ends.length > 18 ? 34 : 36; // two lines and a bar, with room for what hangs below the first
  const heightOf = (node) => (open.has(node) ? Math.max(boxHeight, 48) : boxHeight); // ends stand close to each other
  const boxWidth = depth ? Math.min(190, Math.max(118, (width / (depth + 1)) * 0.76)) : 220;
  const column = depth ? Math.max(boxWidth + 20, (width - boxWidth - 8) / depth) : 0;
  const middle = new Map(ends.map((node, index) => [node, index * step]));
  [...open]
    .sort((a, b) => b.row - a.row)
    .forEach((node) => {
      const entry = node.children.map(({ to }) => middle.get(to));
      middle.set(node, (Math.min(...entry) + Math.max(...entry)) / 2);
    });
  for (let row = 0; row <= depth; row += 1) {
    separate(
      nodes.filter((node) => node.row === row),
      middle,
      heightOf,
    );
  }
  const top = Math.min(...nodes.map((node) => middle.get(node) - heightOf(node) / 2));
  const boxes = new Map();
  nodes.forEach((node) => {
    const height = heightOf(node);
    boxes.set(node, { x: 4 + node.row * column, y: middle.get(node) - height / 2 - top + 4, width: boxWidth, height });
  });
  const bottom = Math.max(...[...boxes.values()].map((box) => box.y + box.height));
  return { kind: "columns", boxes, width: 8 + depth * column + boxWidth, height: bottom + 4 };
}

// Push nodes of a column apart where they overlap, as shared children can make them.
function separate(nodes, middle, heightOf) {
  const ordered = [...nodes].sort((a, b) => middle.get(a) - middle.get(b) || a.position - b.position);
  for (let i = 1; i < ordered.length; i += 1) {
    const least = middle.get(ordered[i - 1]) + (heightOf(ordered[i - 1]) + heightOf(ordered[i])) / 2 + 5;
    if (middle.get(ordered[i]) < least) middle.set(ordered[i], least);
  }
}

/** One node a line, children indented below their first parent: an outline that is as wide as a phone. */
export function outlineLayout({ shown, open }, width) {
  const boxes = new Map();
  const lineHeight = 44;
  const deepest = Math.max(1, ...[...shown].map((node) => node.row));
  const indent = Math.min(22, (width * 0.4) / deepest);
  const visit = (node) => {
    if (boxes.has(node)) return;
    const x = 4 + node.row * indent;
    boxes.set(node, { x, y: 4 + boxes.size * lineHeight, width: width - x - 4, height: 36 });
    if (open.has(node)) node.children.forEach(({ to }) => visit(to));
  };
  [...shown].filter((node) => !node.parents.length).forEach(visit);
  return { kind: "outline", boxes, width, height: 4 + boxes.size * lineHeight };
}

/** The line of a link: from the right side of a box to the left side of another, or down and to the right. */
export function linkPath(layout, from, to, fromOffset = 0, toOffset = 0) {
  const a = layout.boxes.get(from);
  const b = layout.boxes.get(to);
  if (layout.kind === "columns") {
    const start = [a.x + a.width, a.y + a.height / 2 + fromOffset];
    const end = [b.x, b.y + b.height / 2 + toOffset];
    const bend = (end[0] - start[0]) / 2;
    return line("M", start, "C", [start[0] + bend, start[1]], [end[0] - bend, end[1]], end);
  }
  const down = b.y > a.y; // a shared child may stand above its second parent
  const start = [a.x + 9, down ? a.y + a.height : a.y];
  const end = [b.x, b.y + b.height / 2];
  if (end[0] <= start[0] + 2) return line("M", start, "C", [start[0] - 12, start[1] + 8], [start[0] - 12, end[1]], end);
  const corner = Math.min(8, end[0] - start[0]);
  const turn = [start[0], end[1] + (down ? -corner : corner)];
  return line("M", start, "L", turn, "Q", [start[0], end[1]], [start[0] + corner, end[1]], "L", end);
}

// Letters and points as the data of a path.
function line(...parts) {
  return parts
    .map((part) => (typeof part === "string" ? part : part.map((value) => Math.round(value * 10) / 10).join(",")))
    .join(" ");
}
