// The page of a file: one run, or two of them side by side, whose data the file contains.

import { FileSource } from "./data/file_source.js";
import { moment } from "./data/numbers.js";
import { element } from "./dom/elements.js";
import { inline } from "./dom/text.js";
import { Frame, openOnPaper } from "./page/frame.js";
import { listenToKeys, RUN_KEYS } from "./page/keyboard.js";
import { placeLinks, RunPage, whatRan } from "./page/run_page.js";

function subjectWords(run) {
  const { facts, against } = run;
  return [
    element("span", { class: "what" }, inline(whatRan(run))),
    inline(facts.run_id),
    facts.started ? element("span", { class: "when" }, moment(facts.started)) : null,
    against ? element("span", { class: "against" }, "against ", inline(against.base.run_id)) : null,
  ].filter(Boolean);
}

function start() {
  const source = new FileSource();
  const frame = new Frame("#/", RUN_KEYS);
  const page = new RunPage(source, source.told, "#");
  frame.subject.append(...subjectWords(source.told));
  frame.show(page.side, page.main);
  page.moved = () => frame.places.replaceChildren(...placeLinks(page));
  const follow = () => {
    const [hash, query = ""] = location.hash.split("?");
    page.goTo(hash.slice(1), new URLSearchParams(query));
  };
  addEventListener("hashchange", follow);
  listenToKeys(() => ({ ...page.keys(), t: () => frame.nextTheme(), "?": () => frame.showHelp() }));
  openOnPaper();
  follow();
  document.documentElement.dataset.ready = "";
}

start();
