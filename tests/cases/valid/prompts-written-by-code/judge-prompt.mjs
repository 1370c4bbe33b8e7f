import { definePromptTemplate } from '@agentv/sdk';

export default definePromptTemplate(({ answer }) => `Does it greet?\n${answer}`);
