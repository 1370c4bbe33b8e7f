// Under this name bun finds our module (NODE_PATH).

export * from '../../../sdk/index.mjs';
