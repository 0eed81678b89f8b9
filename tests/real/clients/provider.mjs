// A real authorization server: `oidc-provider`, which logs everybody in as ada. Prints its issuer; on stdin, `rotate` has
// it sign with another key from then on, and `forget` takes the former one out of its keys. Tokens for a resource that
// ends in /opaque/mcp are opaque, all others are JWT.
import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { load } from './packages.mjs'

console.info = console.warn = console.error // Its notices; on stdout we talk with the test.
const { default: Provider } = await import(pathToFileURL(load.resolve('oidc-provider')))
const scope = 'mcp:read mcp:write mcp:admin'
const account = 'ada'

const fresh = (kid) => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { ...createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' })).export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' }
}

const configured = (keys) => ({
  jwks: { keys },
  clients: [
    {
      client_id: 'viaduct',
      client_secret: process.env.INTROSPECTION_SECRET,
      redirect_uris: [],
      response_types: [],
      grant_types: [],
    },
  ],
  cookies: { keys: ['a-key-for-cookies-of-tests'] },
  scopes: ['openid', 'offline_access', ...scope.split(' ')],
  pkce: { required: () => true },
  // Clients register with the scopes that they want at first, and may ask for others later.
  extraClientMetadata: { properties: ['any_scope'], validator: (_context, _key, _value, metadata) => { delete metadata.scope } },
  findAccount: (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
  ttl: { AccessToken: 600, Grant: 600, Session: 600, Interaction: 600 },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true, allowedPolicy: () => true },
    introspection: { enabled: true, allowedPolicy: (_context, client) => client.clientId === 'viaduct' },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_context, resource) => ({
        scope,
        audience: resource,
        accessTokenFormat: resource.endsWith('/opaque/mcp') ? 'opaque' : 'jwt',
        jwt: { sign: { alg: 'RS256' } },
      }),
      useGrantedResource: () => true,
    },
  },
})

let keys = [fresh('first')]
let provider
let answer

const start = (issuer) => {
  provider = new Provider(issuer, configured(keys))
  provider.on('server_error', (_context, error) => console.error(error))
  answer = provider.callback()
}

const interact = async (request, response) => {
  const { prompt, params } = await provider.interactionDetails(request, response)
  if (prompt.name === 'login') {
    return provider.interactionFinished(request, response, { login: { accountId: account } })
  }
  const grant = new provider.Grant({ accountId: account, clientId: params.client_id })
  grant.addOIDCScope(params.scope ?? '')
  grant.addResourceScope(params.resource, params.scope ?? '')
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } })
}

const server = createServer((request, response) => {
  if (!request.url.startsWith('/interaction/')) return answer(request, response)
  interact(request, response).catch((error) => {
    console.error(error)
    response.writeHead(500).end()
  })
})

server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`
  start(issuer)
  console.log(issuer)
  createInterface({ input: process.stdin })
    .on('line', (order) => {
      keys = order === 'rotate' ? [fresh(`key-${keys.length}`), ...keys] : keys.slice(0, 1)
      start(issuer)
      console.log(order)
    })
    .on('close', () => process.exit(0))
})
