// What stands around every page: the bar at the top, the theme and the keys.

import { button, drawing, element, pageLink } from "../dom/elements.js";
import { store, stored } from "../dom/storage.js";
import { inline } from "../dom/text.js";
import { helpDialog } from "./keyboard.js";

const THEMES = ["system", "light", "dark"];
const SIGNS = { system: "◐", light: "○", dark: "●" };

export class Frame {
  /**
   * @param {string} home address that the name of the program leads to
   * @param {[string, string][]} keys what is listed as keys
   */
  constructor(home, keys, ...buttons) {
    this.subject = element("span", { class: "runid" });
    this.places = element("nav", { class: "places", "aria-label": "Run" });
    this.pages = element("nav", { class: "pages", "aria-label": "Pages" });
    this.body = element("div", { class: "body" });
    this.lost = element("p", { class: "lost", role: "status", hidden: true });
    this.help = helpDialog(keys);
    this.themeButton = button("", () => this.nextTheme(), { class: "quiet" });
    const skip = element("a", { class: "skip", href: "#/", click: (event) => this.skip(event) }, "Skip to the page");
    const header = element(
      "header",
      { class: "top" },
      skip,
      this.lost,
      element("a", { class: "brand", href: home }, logo(), "agentv"),
      this.subject,
      this.places,
      this.pages,
      ...buttons,
      this.themeButton,
      button("?", () => this.showHelp(), { class: "quiet", "aria-label": "Keys" }),
    );
    document.getElementById("page").replaceChildren(header, this.body, this.help);
    this.theme(stored("theme") ?? "system");
  }

  /**
   * @param {HTMLElement | null} side what stands beside the page
   * @param {HTMLElement} main
   */
  show(side, main) {
    this.body.replaceChildren(...[side, main].filter(Boolean));
    this.body.classList.toggle("alone", side === null);
  }

  /** Name the project, one of several on a server, and lead to their list. */
  tellProject(name) {
    this.subject.before(pageLink("../../", "Projects"), element("span", {}, inline(name)));
    this.subject.after(pageLink("../../sign-in", "Account"));
  }

  /** Say why nothing can be changed here, and what to do. */
  tellLocked() {
    const words = "Read only: open the address that agentv view printed, which has the token.";
    this.lost.after(element("p", { class: "locked" }, words));
  }

  /** Tell something that is about every page; empty: nothing. */
  tell(words) {
    this.lost.textContent = words;
    this.lost.hidden = !words;
  }

  showHelp() {
    this.help.showModal();
  }

  skip(event) {
    event.preventDefault();
    this.focus();
  }

  /** Go on reading at the heading of the page. */
  focus() {
    /** @type {HTMLElement | null} */
    const heading = document.querySelector("main h1");
    heading?.focus({ preventScroll: true });
  }

  nextTheme() {
    this.theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
  }

  theme(name) {
    const theme = THEMES.includes(name) ? name : "system";
    document.documentElement.dataset.theme = theme;
    this.themeButton.textContent = SIGNS[theme];
    this.themeButton.setAttribute("aria-label", `Colours: ${theme}`);
    this.themeButton.title = `Colours: ${theme} (t)`;
    store("theme", name);
  }
}

function logo() {
  return drawing(
    "svg",
    { viewBox: "0 0 24 24", class: "logo", "aria-hidden": "true" },
    drawing("rect", { width: 24, height: 24, rx: 6 }),
    drawing("path", { d: "M6 12.5 10.2 16.5 18 7.5" }),
  );
}

export function unfocus() {
  const active = document.activeElement;
  if (active instanceof HTMLElement) active.blur();
}

/** @returns {NodeListOf<HTMLDetailsElement>} */
function detailsIn(selector) {
  return document.querySelectorAll(selector);
}

// What is folded is opened on paper.
export function openOnPaper() {
  addEventListener("beforeprint", () => {
    for (const one of detailsIn("main details:not([open])")) {
      one.open = true;
      one.dataset.folded = "";
      one.dispatchEvent(new Event("toggle"));
    }
  });
  addEventListener("afterprint", () => {
    for (const one of detailsIn("main details[data-folded]")) {
      one.open = false;
      delete one.dataset.folded;
    }
  });
}
