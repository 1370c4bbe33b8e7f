// The wire object as handlers see it: every key in camelCase, users' own included, as AgentV does.

const known = new Map();

function camelCase(key) {
  let converted = known.get(key);
  if (converted === undefined) {
    // a leading capital is a proper noun, such as a tool's name
    converted = /^[A-Z]/.test(key) ? key : key.replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());
    if (known.size < 10_000) known.set(key, converted);
  }
  return converted;
}

function camelCaseDeep(value) {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(camelCaseDeep);
  const converted = {};
  for (const key of Object.keys(value)) converted[camelCase(key)] = camelCaseDeep(value[key]);
  return converted;
}

const lists = ['input', 'messages', 'expectedOutput', 'inputFiles', 'context'];
const objects = ['metadata', 'responseMetadata', 'vars', 'config'];
const values = [
  'output',
  'criteria',
  'trace',
  'traceSummary',
  'tokenUsage',
  'costUsd',
  'durationMs',
  'workspacePath',
];

/** The context of one grading. What the payload lacks is null or empty. */
export function contextOf(payload) {
  const context = camelCaseDeep(payload);
  for (const key of lists) context[key] ??= [];
  for (const key of objects) context[key] ??= {};
  for (const key of values) context[key] ??= null;
  return context;
}
