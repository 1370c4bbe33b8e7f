// What `@agentv/sdk`, `agentv` and `@agentv/eval` export. Under agentv a definition is handed to the process that
// grades; in a file run by hand it runs.

import { settle } from './result.mjs';
import { runByHand } from './run.mjs';

export { createTargetClient, TargetInvocationError, TargetNotAvailableError } from './target.mjs';

const grader = globalThis[Symbol.for('agentv.grader')];

function define(handler, show) {
  if (typeof handler !== 'function') throw new TypeError('a handler must be a function');
  if (grader) grader.defined(handler);
  else runByHand(handler, show);
  return handler;
}

function showVerdict(result) {
  return JSON.stringify(settle(result), null, 2);
}

/** A reusable assertion: a file in `.agentv/assertions/` whose name is the type. */
export function defineAssertion(handler) {
  return define(handler, showVerdict);
}

/** A grader that an entry of `type: script` starts by its command. */
export function defineScriptGrader(handler) {
  return define(handler, showVerdict);
}

/** Older name of defineScriptGrader. */
export const defineCodeGrader = defineScriptGrader;

/** Oldest name of defineScriptGrader. */
export const defineCodeJudge = defineScriptGrader;

/** A prompt made by code: the text, or the messages, that the handler returns; run by hand, it prints them. */
export function definePromptTemplate(handler) {
  return define(handler, (made) => (typeof made === 'string' ? made : JSON.stringify(made, null, 2)));
}
