// Addresses of the checks of judges.

/** @param {{ run?: string, assertion?: string }} of */
export function judgeAddress({ run = "", assertion = "" }) {
  const query = new URLSearchParams({ ...(run && { run }), ...(assertion && { assertion }) });
  return query.size ? `#/judge?${query}` : "#/judge";
}
