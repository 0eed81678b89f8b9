// The packages that tests/real/install laid into the cache, by their names.
import { createRequire } from 'node:module'

export const load = createRequire(new URL('../../../.cache/real/package.json', import.meta.url))
