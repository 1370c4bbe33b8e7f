// The page of a team's server that lists the projects.

import { Api } from "./data/api.js";
import { count } from "./data/numbers.js";
import { element, pageLink } from "./dom/elements.js";
import { inline } from "./dom/text.js";
import { Frame } from "./page/frame.js";
import { listenToKeys } from "./page/keyboard.js";
import { problemBox } from "./page/loading.js";

/** @param {string[]} names */
function projectList(names) {
  const rows = names.map((name) => element("li", {}, pageLink(`projects/${encodeURIComponent(name)}/`, inline(name))));
  return rows.length
    ? element("ul", { class: "projects" }, rows)
    : element("p", { class: "panel" }, "There is no project that you may read.");
}

async function begin() {
  try {
    const { projects } = await new Api().get(["projects"]);
    const frame = new Frame("#/", [["t", "light, dark, or system theme"]]);
    const main = element(
      "main",
      { id: "main", class: "screen", tabindex: -1 },
      element(
        "article",
        {},
        element("h1", { tabindex: -1 }, "Projects"),
        element("p", {}, count(projects.length, "project")),
        projectList(projects),
        element("p", { class: "note" }, pageLink("sign-in", "Account")),
      ),
    );
    listenToKeys(() => ({ t: () => frame.nextTheme(), "?": () => frame.showHelp() }));
    frame.show(null, main);
    document.title = "Projects · agentv";
  } catch (problem) {
    document.getElementById("page").replaceChildren(problemBox(problem, begin));
  }
  document.documentElement.dataset.ready = "";
}

begin();
