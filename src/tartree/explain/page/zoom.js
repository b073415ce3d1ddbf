// Moving and scaling what an svg shows: drag, pinch, Ctrl and the wheel, or the functions for buttons and keys.

const LEAST = 0.05; // all of 256 leaves
const MOST = 4;

/** Make `scene`, a group of `svg`, move and scale; `onChange` gets the scale. */
export function makeZoom(svg, scene, onChange) {
  const state = { scale: 1, x: 0, y: 0 };
  const pointers = new Map();
  let moved = false;

  const apply = () => {
    scene.setAttribute("transform", `translate(${state.x},${state.y}) scale(${state.scale})`);
    onChange(state.scale);
  };
  const toScreen = (event) => {
    const box = svg.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const scaleAt = (point, factor) => {
    const scale = Math.min(MOST, Math.max(LEAST, state.scale * factor));
    state.x = point.x - ((point.x - state.x) * scale) / state.scale;
    state.y = point.y - ((point.y - state.y) * scale) / state.scale;
    state.scale = scale;
    apply();
  };

  svg.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      scaleAt(toScreen(event), Math.exp(-event.deltaY / 300));
    },
    { passive: false },
  );
  svg.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    pointers.set(event.pointerId, toScreen(event));
    moved = false;
  });
  svg.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = toScreen(event);
    if (pointers.size === 1) {
      if (!moved && Math.hypot(now.x - before.x, now.y - before.y) < 4) return;
      if (!moved) svg.setPointerCapture(event.pointerId); // not before: a click must still reach its node
      moved = true;
      state.x += now.x - before.x;
      state.y += now.y - before.y;
      apply();
    } else {
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
      const distance = (point) => Math.max(1, Math.hypot(point.x - other.x, point.y - other.y));
      state.x += (now.x - before.x) / 2;
      state.y += (now.y - before.y) / 2;
      moved = true;
      scaleAt({ x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 }, distance(now) / distance(before));
    }
    pointers.set(event.pointerId, now);
  });
  const release = (event) => pointers.delete(event.pointerId);
  for (const name of ["pointerup", "pointercancel", "pointerleave"]) svg.addEventListener(name, release);
  // A drag that ends over a node is no click.
  svg.addEventListener("click", (event) => moved && (event.stopPropagation(), (moved = false)), true);

  const centre = () => ({ x: svg.clientWidth / 2, y: svg.clientHeight / 2 });
  return {
    /** Remember what is shown; gives a function that shows it again. */
    keep() {
      const kept = { ...state };
      return () => {
        Object.assign(state, kept);
        apply();
      };
    },
    /** The drawing in its own size, from its upper left corner. */
    reset() {
      Object.assign(state, { scale: 1, x: 0, y: 0 });
      apply();
    },
    zoomBy: (factor) => scaleAt(centre(), factor),
    /** Show all of a drawing of this size, no larger than life, and no smaller than `least`: then from its left. */
    fit(width, height, least) {
      const scale = Math.min(1, svg.clientWidth / width, svg.clientHeight / height);
      state.scale = Math.max(LEAST, least, scale);
      state.x = Math.max(0, (svg.clientWidth - width * state.scale) / 2);
      state.y = (svg.clientHeight - height * state.scale) / 2;
      apply();
    },
    /** Move as little as needed for a box of the drawing to be seen. */
    reveal(box) {
      const margin = 12;
      const near = (index, from, to, size) => {
        if (index + from < margin) return margin - from;
        if (index + to > size - margin) return size - margin - to;
        return index;
      };
      const { scale } = state;
      state.x = near(state.x, box.x * scale, (box.x + box.width) * scale, svg.clientWidth);
      state.y = near(state.y, box.y * scale, (box.y + box.height) * scale, svg.clientHeight);
      apply();
    },
  };
}
