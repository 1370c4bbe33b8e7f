export default { id: 'a' };
