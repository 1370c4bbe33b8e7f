export default () => ({ pass: true });
