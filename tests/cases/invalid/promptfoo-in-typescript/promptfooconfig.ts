export default { prompts: ["a"], providers: ["echo"], tests: [] };
