// The tree or graph to draw: nodes and links of a structure, and which of them are shown.

/**
 * Nodes and links of layers of child lists, without the nodes that only pass their arrival on to a child of their own.
 *
 * A node is {id, layer, index, number, kind, row, children, parents, nLeaves, position}; `layer` and `index` say which
 * node of the structure holds its decision or is its leaf, `number` counts the structure's nodes layer by layer, and
 * `position` is the middle of the leaves below it. A link is {from, to, branch, edge}: the branch is the number among
 * the children of the decision, the edge the number among all edges of the structure.
 */
export function buildGraph(layers) {
  const widths = [1, ...layers.map((layer) => 1 + Math.max(...layer.map((children) => Math.max(...children))))];
  const nParents = widths.map((width) => new Array(width).fill(0));
  layers.forEach((layer, depth) =>
    layer.forEach((children) => children.forEach((child) => (nParents[depth + 1][child] += 1))),
  );
  const nodes = [];
  const home = widths.map((width) => new Array(width).fill(null));
  const open = (layer, index) => {
    const node = {
      id: nodes.length,
      layer,
      index,
      kind: "leaf",
      row: 0,
      children: [],
      parents: [],
      nLeaves: 1,
      position: index,
    };
    nodes.push(node);
    return node;
  };
  home[0][0] = open(0, 0);
  let edge = 0;
  layers.forEach((layer, depth) => {
    layer.forEach((children, index) => {
      const node = home[depth][index];
      if (children.length === 1 && nParents[depth + 1][children[0]] === 1) {
        home[depth + 1][children[0]] = node;
        edge += 1;
        node.layer = depth + 1;
        node.index = children[0];
        return;
      }
      node.kind = children.length > 1 ? "decision" : "joint";
      children.forEach((child, branch) => {
        if (!home[depth + 1][child]) home[depth + 1][child] = open(depth + 1, child);
        const below = home[depth + 1][child];
        const link = { from: node, to: below, branch, edge };
        edge += 1;
        below.row = Math.max(below.row, node.row + 1);
        node.children.push(link);
        below.parents.push(link);
      });
    });
  });
  const firsts = widths.map((_, depth) => widths.slice(0, depth).reduce((sum, width) => sum + width, 0));
  nodes.forEach((node) => (node.number = firsts[node.layer] + node.index));
  countLeaves(nodes);
  return { root: nodes[0], nodes, isTree: nodes.every((node) => node.parents.length <= 1) };
}

function countLeaves(nodes) {
  const sets = new Map();
  [...nodes]
    .sort((a, b) => b.layer - a.layer)
    .forEach((node) => {
      const entry = new Set(node.kind === "leaf" ? [node.index] : []);
      node.children.forEach(({ to }) => sets.get(to).forEach((leaf) => entry.add(leaf)));
      sets.set(node, entry);
      node.nLeaves = entry.size;
      node.position = [...entry].reduce((sum, leaf) => sum + leaf, 0) / entry.size;
    });
}

/**
 * The nodes to show: those with the largest arrival are opened first, until `budget` ends are shown.
 *
 * `opened` and `closed` hold ids that the reader opened or closed; `wanted` says which nodes are to be opened too, such
 * as those on the path of a row. They do not count, so that nothing else closes. Gives {shown, open}: sets of nodes.
 */
export function chooseNodes(graph, mass, { budget, opened, closed, wanted }) {
  const shown = new Set([graph.root]);
  const open = new Set();
  let ends = 1;
  const openNode = (node) => {
    open.add(node);
    const before = shown.size;
    node.children.forEach(({ to }) => shown.add(to));
    ends += shown.size - before - 1;
  };
  const candidates = (test) =>
    [...shown].filter((node) => node.kind !== "leaf" && !open.has(node) && !closed.has(node.id) && test(node));
  const openAll = (test) => {
    for (let result = candidates(test); result.length; result = candidates(test)) result.forEach(openNode);
  };
  while (ends < budget) {
    const result = candidates(() => true);
    if (!result.length) break;
    openNode(result.reduce((best, node) => (mass(node) > mass(best) ? node : best)));
    openAll((node) => node.kind === "joint");
  }
  openAll((node) => opened.has(node.id) || wanted(node));
  return { shown, open };
}

/** Steps {node, link} from the root to the leaf of the largest arrival, by the parents that sent most to it. */
export function likeliestPath(graph, arrival, flow) {
  const leaves = graph.nodes.filter((node) => node.kind === "leaf");
  let node = leaves.reduce((best, leaf) => (arrival(leaf) > arrival(best) ? leaf : best));
  const steps = [{ node, link: null }];
  while (node.parents.length) {
    const link = node.parents.reduce((best, entry) => (flow(entry) > flow(best) ? entry : best));
    node = link.from;
    steps.unshift({ node, link });
  }
  return steps;
}
