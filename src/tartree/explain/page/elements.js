// Elements made from data. Text is always a text node, so that nothing in the data can become markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with attributes, listeners (`onclick: f`) and children: elements, texts, or null for none. */
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function drawing(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "colour") made.style.setProperty("--colour", value);
    else if (name === "share") made.style.setProperty("--share", value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return made;
}

/** Replace what an element holds. */
export function show(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
}

/** The element of the template with this id. */
export function byId(id) {
  return document.getElementById(id);
}

/** The colour of a class, or of an output: names of the palette in page.css, which knows about dark mode. */
export function classColour(index) {
  return `var(--class-${index % 10})`;
}
