#!/usr/bin/env bun
import { defineAssertion } from '@agentv/sdk';

export default defineAssertion(({ output }) => {
  const wordCount = (output ?? '').trim().split(/\s+/).filter(Boolean).length;
  const minWords = 3;
  const pass = wordCount >= minWords;

  return {
    pass,
    score: pass ? 1.0 : Math.min(wordCount / minWords, 0.9),
    assertions: [
      {
        text: pass
          ? `Output has ${wordCount} words (>= ${minWords} required)`
          : `Output has only ${wordCount} words (need >= ${minWords})`,
        passed: pass,
      },
    ],
  };
});
