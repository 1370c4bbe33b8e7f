// A file that answers, in the forms that promptfoo takes: a class or an object with `callApi`, or a function.

/** What takes a payload `{prompt, context, options}` and answers it. One provider is made for each `options`. */
export function providerFrom(exported) {
  const made = new Map();
  return ({ prompt, context, options }) => {
    const key = JSON.stringify(options);
    if (!made.has(key)) made.set(key, providerOf(exported, options));
    return made.get(key)(prompt, { ...context, logger: console }, options);
  };
}

function providerOf(exported, options) {
  if (typeof exported === 'function' && !isConstructor(exported)) return exported;
  const provider = typeof exported === 'function' ? new exported(options) : exported;
  if (typeof provider?.callApi !== 'function') {
    throw new Error("the file exports no provider: a class or an object with 'callApi', or a function");
  }
  return (...given) => provider.callApi(...given);
}

/** Whether a function is to be called with `new`: a class, also as older compilers write one. */
function isConstructor(called) {
  const text = Function.prototype.toString.call(called);
  if (text.startsWith('class') || called.prototype?.callApi !== undefined) return true;
  return called.prototype !== undefined && /\bthis\b/.test(text);
}
