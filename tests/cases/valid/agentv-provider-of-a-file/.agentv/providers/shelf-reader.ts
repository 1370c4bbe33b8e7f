export default () => 'unused: the target has a command';
