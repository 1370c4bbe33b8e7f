// Inline code, and functions that take the answer and its context apart: `(output, context)`, as in promptfoo.

import { createRequire } from 'node:module';
import { cwd } from 'node:process';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { contextOf } from './sdk/context.mjs';

/** Stands for the file of inline code, in stacks and messages. */
export const INLINE = '<javascript>';

/** What grades a payload with a function of the answer and the context. */
export function givenBoth(handler) {
  return (payload) => handler(payload.structured ?? payload.output, contextWithBoth(payload));
}

/** The context, with the author's own names left as they are written, and with what promptfoo has in it. */
function contextWithBoth(payload) {
  const { vars = {}, metadata = {}, config = {}, prompt = '', promptfoo = {} } = payload;
  const known = contextOf(payload);
  for (const own of ['promptfoo', 'structured']) delete known[own];
  return { ...known, vars, metadata, config, prompt, test: { vars, metadata }, ...promptfoo };
}

/**
 * The function that code stands for: an expression; statements that return; or statements that end with one. A function
 * that the code results in is called too, with the same arguments.
 */
export function compiled(code, names = 'output, context') {
  const made = functionOf(code, (body) => attempt(body, names));
  return async (...given) => {
    const result = await made(...given);
    return typeof result === 'function' ? result(...given) : result;
  };
}

function functionOf(code, made) {
  const text = code.replace(/[;\s]+$/, '');
  const expression = made(`(${text}\n)`);
  if (expression.made) return expression.made;
  const body = made(`{${code}\n}`);
  if (!body.made) throw text.includes('\n') || /\breturn\b/.test(text) ? body.error : expression.error;
  return /\breturn\b/.test(text) ? body.made : (returningLast(text, made) ?? body.made);
}

/** `const n = output.length; n > 3`: the last statement is what is returned. */
function returningLast(text, made) {
  for (let at = text.lastIndexOf(';'); at > 0; at = text.lastIndexOf(';', at - 1)) {
    const found = made(`{${text.slice(0, at + 1)} return (${text.slice(at + 1)}\n)}`);
    if (found.made) return found.made;
  }
  return undefined;
}

// inline code is no module, and has these in promptfoo; `require` must not be a parameter, since code may declare it
const require = createRequire(pathToFileURL(`${cwd()}/`));
process.mainModule ??= { require };

/** The function with that body, which begins on line 1, so that the lines in messages are those of the code. */
function attempt(body, names) {
  try {
    const script = new vm.Script(`((require) => async (${names}) => ${body})`, {
      filename: INLINE,
      importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
    return { made: script.runInThisContext()(require) };
  } catch (error) {
    return { error };
  }
}
