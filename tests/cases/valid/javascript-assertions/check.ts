export default (output: string, context: { vars: { wanted: string } }): boolean => output === context.vars.wanted;

export const rude = async (output: string): Promise<number> => (output.includes('Hello') ? 0.25 : 1);
