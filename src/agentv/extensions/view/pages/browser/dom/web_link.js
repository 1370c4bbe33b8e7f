// Links to the web, which only answers that are shown as Markdown have.

import { plainly } from "../data/texts.js";
import { element } from "./elements.js";

const WEB = /^(https?|mailto):/i;

export function isWebAddress(address) {
  return WEB.test(address);
}

// Opens apart from the page, and is not told where it was followed. What it leads to can be read before it is followed.
export function webLink(address) {
  if (!isWebAddress(address)) throw new Error(`not an address of the web: ${address}`);
  const made = element("a", { class: "web", target: "_blank", rel: "noopener noreferrer", title: plainly(address) });
  made.setAttribute("href", address);
  return made;
}
