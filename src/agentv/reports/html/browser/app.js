// The page that a server hands out.

import { App } from "./app/app.js";
import { Api } from "./data/api.js";
import { element } from "./dom/elements.js";
import { openOnPaper } from "./page/frame.js";
import { Loading } from "./page/loading.js";

function begin() {
  const api = new Api();
  const page = document.getElementById("page");
  const loading = new Loading(page);
  loading.during(
    async (signal) => {
      const project = await api.get(["project"], {}, signal);
      queueMicrotask(() => {
        new App(api, project);
        document.documentElement.dataset.ready = "";
      });
      return element("p", { class: "plain" }, "Opening…");
    },
    () => openOnPaper(),
  );
}

begin();
