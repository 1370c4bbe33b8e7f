export default ({ output }) => output;
