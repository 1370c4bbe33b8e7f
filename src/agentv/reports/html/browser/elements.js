// Elements. The only way in which this page makes any: text goes in as text, and a link leads nowhere but into the page,
// or, in an answer that is shown as Markdown, to an address of the web.

const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawing(tag, attributes = {}, ...children) {
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

const WEB = /^(https?|mailto):/i;

function isWebAddress(address) {
  return WEB.test(address);
}

// Opens apart from the page, and is not told where it was followed. What it leads to can be read before it is followed.
function webLink(address) {
  if (!isWebAddress(address)) throw new Error(`not an address of the web: ${address}`);
  const made = element("a", { class: "web", target: "_blank", rel: "noopener noreferrer", title: plainly(address) });
  made.setAttribute("href", address);
  return made;
}

function button(label, press, attributes = {}) {
  return element("button", { type: "button", click: press, ...attributes }, label);
}

function hidden(label) {
  return element("span", { class: "unseen" }, label);
}

// Shapes and words, so that colour is never all that tells one outcome from another.
const STATUSES = ["passed", "failed", "errored", "skipped", "shown"];
const STATUS_WORDS = { passed: "passed", failed: "failed", errored: "errored", skipped: "not run", shown: "shown", flaky: "flaky" };
const STATUS_SHAPES = {
  passed: "M4 8.5 7 11.5 12.5 5",
  failed: "M4.5 4.5 11.5 11.5M11.5 4.5 4.5 11.5",
  errored: "M8 3.5V9.2M8 11.6V12.4",
  skipped: "M4.5 8H11.5",
  shown: "M3.5 8C5.5 5 10.5 5 12.5 8C10.5 11 5.5 11 3.5 8M8 7.2V8.8",
  flaky: "M3.5 9C5 5.5 7 5.5 8 8S11 10.5 12.5 7",
};

function statusIcon(status) {
  return drawing(
    "svg",
    { class: `icon ${status}`, viewBox: "0 0 16 16", role: "img", "aria-label": STATUS_WORDS[status] },
    drawing("circle", { cx: 8, cy: 8, r: 8 }),
    drawing("path", { d: STATUS_SHAPES[status] }),
  );
}

function badge(status) {
  return element("span", { class: `badge ${status}` }, statusIcon(status), STATUS_WORDS[status]);
}

function section(title, ...children) {
  return element("section", {}, element("h2", {}, title), ...children);
}

// What is folded is made only when somebody looks.
function folded(title, make, attributes = {}) {
  const body = element("div", { class: "folded" });
  const made = element("details", attributes, element("summary", {}, title), body);
  const fill = () => {
    if (made.open && !body.hasChildNodes()) body.append(make());
  };
  made.addEventListener("toggle", fill);
  fill();
  return made;
}
