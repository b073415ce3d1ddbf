// The drawing of the tree: cards for nodes, streams for branches, and the path of a row over them.

import { classColour, drawing, show } from "./elements.js";
import { columnLayout, linkPath, outlineLayout } from "./layout.js";
import { countText, shareText } from "./numbers.js";
import { answerLabels, decisionLabels, decisionTitle, fitText, textWidth } from "./labels.js";
import { makeZoom } from "./zoom.js";

const NARROW = 620; // pixels; below, an outline is easier to read
const LEGIBLE = 7.5; // pixels of letters; smaller ones are left out
const TALLEST = 960; // pixels of the window; 32 ends fit in, and are legible

/**
 * A drawing in `container` that reports the actions of the reader: `onSelect(node)`, `onToggle(node)`.
 *
 * `draw(scene)` shows {report, graph, names, chosen, member, condition(node), data(node), flow(link), selected, row},
 * where `row` is null or {arrival(node), flow(link)}.
 */
export function makeTree(container, { onSelect, onToggle }) {
  const links = drawing("g", { class: "links", "aria-hidden": "true" });
  const rowLinks = drawing("g", { class: "row-links", "aria-hidden": "true" });
  const cards = drawing("g", {});
  const inner = drawing("g", {}, links, rowLinks, cards);
  const svg = drawing("svg", { role: "tree", class: "tree" }, inner);
  show(container, svg);
  const zoom = makeZoom(svg, inner, (scale) => svg.classList.toggle("illegible", 10 * scale < LEGIBLE));
  let scene = null;
  let layout = null;
  let lastShape = "";
  let elements = new Map();

  function draw(next) {
    const hadFocus = svg.contains(document.activeElement);
    scene = next;
    const width = container.clientWidth;
    layout = width < NARROW ? outlineLayout(scene.chosen, width) : fullColumns(scene.chosen, width);
    svg.setAttribute("aria-label", `The tree: ${countText(layout.boxes.size, "node")} shown`);
    svg.classList.toggle("outline", layout.kind === "outline");
    svg.classList.toggle("with-row", Boolean(scene.row));
    drawLinks();
    elements = new Map([...layout.boxes].map(([node, box]) => [node, drawCard(node, box)]));
    show(cards, ...orderedNodes().map((node) => elements.get(node)));
    const shape = `${layout.kind} ${width} ${layout.width} ${layout.height}`;
    if (shape !== lastShape) fit(LEGIBLE / 10);
    lastShape = shape;
    if (hadFocus && scene.selected) elements.get(scene.selected)?.focus({ preventScroll: true });
  }

  function fit(least = 0) {
    const isOutline = layout.kind === "outline";
    const scale = isOutline ? 1 : Math.max(least, Math.min(1, container.clientWidth / layout.width));
    const height = isOutline ? layout.height : Math.min(TALLEST, Math.max(220, layout.height * scale));
    svg.style.height = `${height}px`;
    // On the screen a unit is a pixel; on paper, where no script runs, all of it is scaled to the width of the sheet.
    svg.setAttribute("viewBox", `0 0 ${container.clientWidth} ${height}`);
    zoom.fit(layout.width, layout.height, least);
  }

  // On paper nobody can move the drawing: all of it is shown, and afterwards what was shown before.
  let restore = null;
  window.addEventListener("beforeprint", () => {
    if (!layout || restore) return;
    restore = zoom.keep();
    const { width, height } = layout;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    zoom.reset();
  });
  window.addEventListener("afterprint", () => {
    if (!restore) return;
    svg.setAttribute("viewBox", `0 0 ${container.clientWidth} ${svg.clientHeight}`);
    restore();
    restore = null;
  });

  function drawLinks() {
    const streams = (flow, least) => streamsOf(scene.chosen.open, layout, flow, least);
    show(
      links,
      streams(scene.flow, 1).map(({ link, path, width }) => stream(link, path, width)),
    );
    const entry = scene.row ? streams(scene.row.flow, 0).filter(({ share }) => share >= 0.005) : [];
    show(
      rowLinks,
      entry.map(({ link, path, width }) => stream(link, path, Math.max(width, 1.5))),
    );
  }

  function stream(link, path, width) {
    const colour = link.from.kind === "joint" ? "var(--line)" : `var(--branch-${link.branch % 6})`;
    return drawing("path", { d: path, "stroke-width": Math.round(width * 10) / 10, stroke: colour, class: "stream" });
  }

  function drawCard(node, box) {
    const { report, names, selected, row, chosen } = scene;
    const data = scene.data(node);
    const isOpen = chosen.open.has(node);
    const isLeaf = node.kind === "leaf";
    const answer = isLeaf && row ? row.answer(node) : data;
    const labels = isLeaf ? answerLabels(report, answer, scene.target) : decisionLabels(report, scene.condition(node));
    const title = isLeaf ? labels.join(" ") : decisionTitle(report, scene.condition(node));
    const arrival = row ? row.arrival(node) : data ? data.arrival : null;
    const folded = isLeaf || isOpen ? names.get(node) : countText(node.nLeaves, "leaf", "leaves");
    const second = arrival === null ? folded : `${shareText(arrival)} · ${folded}`;
    const description = [
      names.get(node),
      isLeaf ? `predicts ${title}` : `decides by ${title}`,
      data ? `${shareText(data.arrival)} of rows` : null,
      row ? `this row arrives with ${shareText(row.arrival(node))}` : null,
      node.parents.length > 1 ? `${node.parents.length} parents` : null,
    ]
      .filter(Boolean)
      .join(", ");
    const faint = row && row.arrival(node) < 0.01;
    const group = drawing(
      "g",
      {
        class: `node ${node.kind}${isOpen || isLeaf ? "" : " folded"}${faint ? " faint" : ""}`,
        role: "treeitem",
        "aria-level": node.row + 1,
        "aria-expanded": isLeaf ? null : String(isOpen),
        "aria-selected": String(node === selected),
        "aria-label": description,
        "data-node": node.id,
        tabindex: node === (selected && layout.boxes.has(selected) ? selected : scene.graph.root) ? 0 : -1,
        transform: `translate(${Math.round(box.x)},${Math.round(box.y)})`,
        onclick: () => onSelect(node),
        ondblclick: () => !isLeaf && onToggle(node),
        onkeydown: (event) => onKey(event, node),
      },
      drawing("title", {}, `${names.get(node)}: ${title}`),
      drawing("rect", { class: "card-box", width: Math.round(box.width), height: box.height, rx: 6 }),
    );
    group.append(...cardTexts(node, labels, second, box), ...mixBar(answer, box));
    return group;
  }

  function cardTexts(node, labels, second, box) {
    const room = box.width - 16;
    const line = (text, y, size, weight, width = room) =>
      drawing(
        "text",
        { class: weight > 400 ? "card-title" : "card-second", x: 8, y },
        fitText(text, width, size, weight),
      );
    if (node.kind === "leaf" && labels.length > 1) {
      const share = drawing(
        "text",
        { class: "card-title", x: 8 + room, y: box.height < 36 ? 13 : 15, "text-anchor": "end" },
        labels[1],
      );
      const entry = room - textWidth(labels[1], 12, 600) - 6;
      return [line(labels[0], box.height < 36 ? 13 : 15, 12, 600, entry), share, line(second, box.height - 9, 10, 400)];
    }
    if (box.height > 40 && labels.length > 1) {
      return [line(labels[0], 13, 12, 600), line(labels[1], 27, 12, 600), line(second, box.height - 9, 10, 400)];
    }
    return [
      line(labels.join(", "), box.height < 36 ? 13 : box.height > 40 ? 18 : 15, 12, 600),
      line(second, box.height - 9, 10, 400),
    ];
  }

  function mixBar(data, box) {
    if (!data || data.arrival === 0) return [];
    const { report, target } = scene;
    const y = box.height - 5;
    const width = box.width - 16;
    if (report.task === "regression") {
      const [low, high] = scene.range;
      const index = high > low ? Math.min(1, Math.max(0, (data.predicted[target] - low) / (high - low))) : 0.5;
      return [
        drawing("rect", { class: "scale", x: 8, y: y + 0.5, width, height: 2, rx: 1 }),
        drawing("circle", { class: "scale-dot", cx: 8 + index * width, cy: y + 1.5, r: 3 }),
      ];
    }
    let x = 8;
    return (data.classes || data.predicted).map((share, label) => {
      const bar = drawing("rect", {
        class: "mix",
        x,
        y,
        width: Math.max(0, share * width),
        height: 3,
        fill: classColour(label),
      });
      x += share * width;
      return bar;
    });
  }

  // Top to bottom, then left to right: the order in which a reader of the screen meets them.
  function orderedNodes() {
    return [...layout.boxes].sort(([a, boxA], [b, boxB]) => a.row - b.row || boxA.y - boxB.y).map(([node]) => node);
  }

  function onKey(event, node) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const to = target(event.key, node);
    if (to) {
      onSelect(to);
      const result = elements.get(to);
      result?.focus({ preventScroll: layout.kind === "columns" });
      if (layout.kind === "columns" && layout.boxes.has(to)) zoom.reveal(layout.boxes.get(to));
    } else if (event.key === "Enter" || event.key === "ArrowRight") {
      onSelect(node);
      if (node.kind !== "leaf" && !scene.chosen.open.has(node)) onToggle(node);
    } else if (event.key === " ") {
      if (node.kind !== "leaf") onToggle(node);
    } else if (event.key === "+" || event.key === "=") zoom.zoomBy(1.25);
    else if (event.key === "-") zoom.zoomBy(0.8);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
  }

  function target(key, node) {
    const all = orderedNodes();
    const near = (step) => {
      const same = layout.kind === "outline" ? [...layout.boxes.keys()] : all.filter((other) => other.row === node.row);
      return same[same.indexOf(node) + step];
    };
    if (key === "ArrowRight") return scene.chosen.open.has(node) ? node.children[0].to : null;
    if (key === "ArrowLeft") return node.parents.map(({ from }) => from).find((from) => scene.chosen.open.has(from));
    if (key === "ArrowDown") return near(1);
    if (key === "ArrowUp") return near(-1);
    if (key === "Home") return scene.graph.root;
    if (key === "End") return all[all.length - 1];
    return null;
  }

  return { draw, fit: () => fit(), zoomBy: zoom.zoomBy, focus: (node) => elements.get(node)?.focus() };
}

// Columns that fill the width of the window also where they must be drawn smaller.
function fullColumns(chosen, width) {
  const layout = columnLayout(chosen, width);
  const scale = Math.max(LEGIBLE / 10, Math.min(TALLEST / layout.height, width / layout.width));
  return scale < 1 ? columnLayout(chosen, width / scale) : layout;
}

/** Lines of the links below open nodes, as wide as what flows, side by side where they leave and arrive. */
export function streamsOf(open, layout, flow, least) {
  const result = [...open].flatMap((node) => node.children.map((link) => ({ link, share: flow(link) })));
  const full = layout.kind === "columns" ? 24 : 7;
  result.forEach((entry) => (entry.width = Math.max(least, entry.share * full)));
  if (layout.kind === "columns") {
    const middle = (node) => layout.boxes.get(node).y;
    stack(
      result,
      (entry) => entry.link.from,
      (entry) => middle(entry.link.to),
      "fromOffset",
    );
    stack(
      result,
      (entry) => entry.link.to,
      (entry) => middle(entry.link.from),
      "toOffset",
    );
  }
  result.forEach((entry) => (entry.path = linkPath(layout, entry.link.from, entry.link.to, entry.fromOffset, entry.toOffset)));
  return result;
}

function stack(streams, end, order, offset) {
  const groups = new Map();
  streams.forEach((entry) => groups.set(end(entry), [...(groups.get(end(entry)) || []), entry]));
  for (const group of groups.values()) {
    let index = -group.reduce((sum, { width }) => sum + width, 0) / 2;
    group
      .sort((a, b) => order(a) - order(b))
      .forEach((entry) => {
        entry[offset] = index + entry.width / 2;
        index += entry.width;
      });
  }
}
