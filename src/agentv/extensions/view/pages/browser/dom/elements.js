// Elements. The only way in which this page makes any: text goes in as text, and a link leads nowhere but into the page,
// or, in an answer that is shown as Markdown, to an address of the web.

const SVG = "http://www.w3.org/2000/svg";

export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function drawing(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else if (name === "href" && !String(value).startsWith("#")) throw new Error(`a link out of the page: ${value}`);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export function button(label, press, attributes = {}) {
  return element("button", { type: "button", click: press, ...attributes }, label);
}

export function hidden(label) {
  return element("span", { class: "unseen" }, label);
}

export function section(title, ...children) {
  return element("section", {}, element("h2", {}, title), ...children);
}

// What is folded is made only when somebody looks.
export function folded(title, make, attributes = {}) {
  const body = element("div", { class: "folded" });
  const made = element("details", attributes, element("summary", {}, title), body);
  const fill = () => {
    if (made.open && !body.hasChildNodes()) body.append(make());
  };
  made.addEventListener("toggle", fill);
  fill();
  return made;
}

/** A link to another page of the same server; `address` is made of our own words, never of data as they are. */
export function pageLink(address, ...content) {
  const link = element("a", {}, ...content);
  link.setAttribute("href", address);
  return link;
}
