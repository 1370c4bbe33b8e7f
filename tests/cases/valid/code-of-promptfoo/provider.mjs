export default class Greeter {
  constructor(options) {
    this.word = options.config.word;
  }
  id() {
    return 'greeter';
  }
  async callApi(prompt, context) {
    return { output: { greeting: `${this.word} ${prompt}`, to: context.vars.name } };
  }
}
