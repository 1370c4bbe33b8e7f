// The page that a server hands out.

import { App } from "./app/app.js";
import { Api } from "./data/api.js";
import { openOnPaper } from "./page/frame.js";
import { problemBox } from "./page/loading.js";
import { keepToken, tokensToTry } from "./page/token.js";

const pageTokens = tokensToTry();

async function begin() {
  const api = new Api();
  try {
    new App(api, await projectOf(api));
    openOnPaper();
  } catch (problem) {
    document.getElementById("page").replaceChildren(problemBox(problem, begin));
  }
  document.documentElement.dataset.ready = "";
}

/** The project, with the first token that it takes. */
async function projectOf(api) {
  for (const token of pageTokens) {
    api.token = token;
    const project = await api.get(["project"]);
    if (!project.locked) {
      keepToken(token);
      return project;
    }
  }
  api.token = "";
  return api.get(["project"]);
}

begin();
