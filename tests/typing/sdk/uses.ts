// What users write against the types of the SDK; `tsc --project tests/typing/sdk` checks it, and the types themselves.

import {
  type AssertionContext,
  type AssertionScore,
  createTargetClient,
  defineAssertion,
  definePromptTemplate,
  defineScriptGrader,
  type PromptTemplateInput,
} from '@agentv/sdk';

const grade = async ({ output, context, traceSummary }: AssertionContext): Promise<AssertionScore> => {
  const retrieved = context.map((found) => (typeof found === 'string' ? found : found.text));
  return { pass: retrieved.includes(output ?? ''), details: { events: traceSummary?.eventCount } };
};

export default defineAssertion(grade);

export const grader = defineScriptGrader(async ({ output }) => {
  const reply = await createTargetClient()?.invoke({ question: output ?? '', systemPrompt: 'Answer YES or NO.' });
  return { score: reply?.rawText === 'YES' ? 1 : 0, assertions: [{ text: 'asked', passed: true, evidence: 'e' }] };
});

export const template = definePromptTemplate((input: PromptTemplateInput) => {
  const retrieved: string | undefined = input.context;
  return `${input.question}\n${retrieved ?? ''}`;
});
