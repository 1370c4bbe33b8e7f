// The page that a server hands out.

import { App } from "./app/app.js";
import { Api } from "./data/api.js";
import { openOnPaper } from "./page/frame.js";
import { problemBox } from "./page/loading.js";

async function begin() {
  const api = new Api();
  try {
    new App(api, await api.get(["project"]));
    openOnPaper();
  } catch (problem) {
    document.getElementById("page").replaceChildren(problemBox(problem, begin));
  }
  document.documentElement.dataset.ready = "";
}

begin();
