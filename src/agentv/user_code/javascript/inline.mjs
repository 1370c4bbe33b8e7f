// Inline code, and functions that take the answer and its context apart: `(output, context)`, as in promptfoo.

import vm from 'node:vm';
import { contextOf } from './sdk/context.mjs';

/** Stands for the file of inline code, in stacks and messages. */
export const INLINE = '<javascript>';

/** What grades a payload with a function of the answer and the context. */
export function givenBoth(handler) {
  return (payload) => handler(payload.output, contextWithBoth(payload));
}

/** The context, with the author's own names left as they are written, and with what promptfoo has in it. */
function contextWithBoth(payload) {
  const { vars = {}, metadata = {}, config = {}, prompt = '' } = payload;
  return { ...contextOf(payload), vars, metadata, config, prompt, test: { vars, metadata } };
}

/** The function that code stands for: an expression; statements that return; or statements that end with one. */
export function compiled(code) {
  const text = code.replace(/[;\s]+$/, '');
  const expression = attempt(`(${text}\n)`);
  if (expression.made) return expression.made;
  const body = attempt(`{${code}\n}`);
  if (!body.made) throw text.includes('\n') || /\breturn\b/.test(text) ? body.error : expression.error;
  return /\breturn\b/.test(text) ? body.made : (returningLast(text) ?? body.made);
}

/** `const n = output.length; n > 3`: the last statement is what is returned. */
function returningLast(text) {
  for (let at = text.lastIndexOf(';'); at > 0; at = text.lastIndexOf(';', at - 1)) {
    const { made } = attempt(`{${text.slice(0, at + 1)} return (${text.slice(at + 1)}\n)}`);
    if (made) return made;
  }
  return undefined;
}

/** The function with that body, which begins on line 1, so that the lines in messages are those of the code. */
function attempt(body) {
  try {
    const script = new vm.Script(`(async (output, context) => ${body})`, {
      filename: INLINE,
      importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
    return { made: script.runInThisContext() };
  } catch (error) {
    return { error };
  }
}
