export default [{ vars: { name: 'Ann' } }];
export const more = async () => [{ id: 'named', vars: { name: 'Ann' }, assert: [{ type: 'icontains', value: 'ANN' }] }];
