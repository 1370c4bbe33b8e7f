import { defineAssertion } from "@agentv/sdk";

export default defineAssertion(() => ({ pass: false, score: 0.9 }));
