// What is there while data are under way, and when they do not come: a line that says so, and a way to try again.

import { button, element } from "../dom/elements.js";

const SOON_MS = 150; // what is there by then needs no word

export class Loading {
  /** @param {HTMLElement} place where pages are shown */
  constructor(place) {
    this.place = place;
    this.under = null;
  }

  /** Show a page that is there, instead of any that is under way. */
  show(page) {
    this.stop();
    this.place.replaceChildren(page);
  }

  stop() {
    this.under?.abort();
    this.under = null;
    this.place.removeAttribute("aria-busy");
  }

  /**
   * Show a page once it is there, unless another one is asked for before.
   *
   * @param {(signal: AbortSignal) => Promise<Node>} make
   * @param {() => void} [shown] called then
   */
  async during(make, shown = () => {}) {
    this.stop();
    const under = new AbortController();
    this.under = under;
    this.place.setAttribute("aria-busy", "true"); // shown by the style sheet where it lasts
    const soon = setTimeout(() => this.wait(under), SOON_MS);
    try {
      const page = await make(under.signal);
      if (this.under === under) {
        this.show(page);
        shown();
      }
    } catch (problem) {
      if (this.under === under) this.fail(problem, () => this.during(make, shown));
    } finally {
      clearTimeout(soon);
    }
  }

  wait(under) {
    if (this.under === under && !this.place.hasChildNodes())
      this.place.append(element("p", { class: "plain", role: "status" }, "Loading…"));
  }

  fail(problem, again) {
    this.show(problemBox(problem, again));
  }
}

// Messages of the server begin like those in a terminal.
function sentence(words) {
  const said = words[0].toUpperCase() + words.slice(1);
  return /[.?!]$/.test(said) ? said : `${said}.`;
}

export function problemBox(problem, again) {
  return element(
    "article",
    { class: "failure" },
    element("h1", { tabindex: -1 }, "This cannot be shown"),
    element("p", { class: "panel", role: "alert" }, sentence(problem.message)),
    again ? element("p", { class: "after" }, button("Try again", again, { class: "quiet" })) : null,
  );
}
