module.exports = {
  long: async (output, { config, providerResponse }) =>
    output.greeting.length > config.least && providerResponse.output.to === output.to,
};
