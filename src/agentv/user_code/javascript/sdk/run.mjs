// A file run by hand, `echo JSON | node FILE`: stdin → handler → stdout.

import { pathToFileURL } from 'node:url';
import { contextOf } from './context.mjs';

let started = false;

/**
 * Run the handler once the module that defines it is complete.
 * @param handler what the user wrote
 * @param show makes the text to print out of what the handler returned
 */
export function runByHand(handler, show) {
  if (started || isUnderTest()) return;
  started = true;
  setImmediate(() => run(handler, show).then(finish, fail));
}

async function run(handler, show) {
  if (process.stdin.isTTY) throw new Error('pipe a JSON payload to this file');
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const piece of process.stdin) text += piece;
  const payload = JSON.parse(text);
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) {
    throw new Error('the payload must be a JSON object');
  }
  return show(await handler(contextOf(payload)));
}

function finish(text) {
  // what the handler left open must not keep the process
  process.stdout.write(`${text}\n`, () => process.exit());
}

function fail(error) {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`, () => process.exit(1));
}

/** Test runners import the file to look into it; then it is not the program that was started. */
function isUnderTest() {
  const { VITEST, JEST_WORKER_ID, NODE_TEST_CONTEXT, NODE_ENV } = process.env;
  const isRunner = VITEST || JEST_WORKER_ID || NODE_TEST_CONTEXT || (process.versions.bun && NODE_ENV === 'test');
  if (!isRunner) return false;
  const program = process.argv[1] ?? '';
  const stack = new Error().stack ?? '';
  return !(program && (stack.includes(program) || stack.includes(pathToFileURL(program).href)));
}
