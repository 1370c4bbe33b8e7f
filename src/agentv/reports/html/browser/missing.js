// The page of an address that leads to no case: a link from the report of another run, or a mistyped one.

const NEAR = 10;

function missingPage(state) {
  const parts = missingParts(state.path);
  const near = parts ? state.run.cases.filter((one) => parts.includes(one.id)).slice(0, NEAR) : [];
  return element(
    "article",
    { class: "missing" },
    element("h1", { tabindex: -1 }, parts ? "This report does not contain the case" : "This report has no such page"),
    element("p", { class: "panel" }, "The link asks for ", element("code", {}, inline(parts ? parts.join(" · ") : state.path)), `. This is the report of the run ${plainly(state.run.facts.run_id)}; the link may belong to the report of another one.`),
    near.length ? section("Cases with this id", element("ol", { class: "panel looks" }, near.map((one) => element("li", {}, lookLink(state, one))))) : null,
    element("p", { class: "after" }, element("a", { href: state.home() }, "Overview")),
  );
}

// The suite, the id, the target and so on that an address names; null where it is no address of a case.
function missingParts(path) {
  if (!path.startsWith(CASE)) return null;
  return path.slice(CASE.length).split("/").map(decoded);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// Programs that pass a link on may write its characters in another way.
function caseAt(routes, path) {
  if (!path.startsWith(CASE)) return null;
  const route = path.slice(CASE.length);
  return routes.get(route) ?? routes.get(route.split("/").map((part) => encodeURIComponent(decoded(part).toWellFormed())).join("/")) ?? null;
}
