export const f = () => 'a';
