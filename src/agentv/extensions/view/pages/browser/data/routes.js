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

// The suite, the id, the target and so on that a route names.
export function namesIn(route) {
  return route.split("/").map(decoded);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// A route as `giveRoutes` writes it: programs that pass a link on may write its characters in another way.
export function routeAsWritten(route) {
  return namesIn(route)
    .map((part) => encodeURIComponent(part.toWellFormed()))
    .join("/");
}

export function routeIn(routes, route) {
  return routes.get(route) ?? routes.get(routeAsWritten(route)) ?? null;
}
