export const words = (output) => ({ words: output.greeting.split(' ') });
