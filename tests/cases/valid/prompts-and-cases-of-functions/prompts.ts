interface Context {
  vars: { name: string };
}

export default async ({ vars }: Context): Promise<string> => `Greet ${vars.name}.`;

export function chat({ vars }: Context): string {
  console.log('printed');
  return JSON.stringify([
    { role: 'system', content: 'Be kind' },
    { role: 'user', content: `I am ${vars.name}` },
  ]);
}
