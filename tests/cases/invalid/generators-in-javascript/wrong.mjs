export default [{ id: 'a', assert: [{ contians: 'a' }] }];
