module.exports = (output, context) => {
  const pass = output === 'hello' && context.vars.x === 1 && context.config.least === 2 && context.provider.id === 'echo';
  return { pass, score: 0.8, reason: 'all there', componentResults: [{ pass, score: 1, reason: context.prompt }] };
};
