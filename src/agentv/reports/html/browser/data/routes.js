// Addresses of cases.

// A hash that finds the case again in this file and, where ids stay, in the report of another run.
export function giveRoutes(cases) {
  const taken = new Map();
  for (const one of cases) {
    const parts = [
      one.suite,
      one.id,
      one.target,
      ...(one.prompt === null ? [] : [one.prompt]),
      ...(one.variant === null ? [] : [one.variant]),
    ];
    let route = parts.map((part) => encodeURIComponent(part.toWellFormed())).join("/");
    for (let next = 2; taken.has(route); next += 1) route = `${route.replace(/~\d+$/, "")}~${next}`;
    taken.set(route, one);
    one.route = route;
  }
  return taken;
}

// The suite, the id, the target and so on that an address names; null where it is no address of a case.
export function missingParts(path) {
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
export function caseAt(routes, path) {
  if (!path.startsWith(CASE)) return null;
  const route = path.slice(CASE.length);
  return (
    routes.get(route) ??
    routes.get(
      route
        .split("/")
        .map((part) => encodeURIComponent(decoded(part).toWellFormed()))
        .join("/"),
    ) ??
    null
  );
}

export const CASE = "#/case/";
