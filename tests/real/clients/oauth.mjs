// From a bare URL to a tool call, by the OAuth code of the TypeScript SDK; its generation is the first argument.
//
// A job is {url, tool, arguments}; printed is {said, tokens, authorizations}. Whoever it sends to log in follows
// where that leads, as a browser would.
import { text } from 'node:stream/consumers'
import { load } from './packages.mjs'

const first = () => ({
  ...load('@modelcontextprotocol/sdk/client/index.js'),
  ...load('@modelcontextprotocol/sdk/client/streamableHttp.js'),
  ...load('@modelcontextprotocol/sdk/client/auth.js'),
})
const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  process.argv[2] === '1' ? first() : load('@modelcontextprotocol/client')

const CALLBACK = 'http://127.0.0.1:33418/callback'

class Memory {
  authorizations = []
  all = []
  redirectUrl = CALLBACK
  clientMetadata = {
    client_name: 'test',
    redirect_uris: [CALLBACK],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: 'native',
  }
  clientInformation() { return this.client }
  saveClientInformation(client) { this.client = client }
  tokens() { return this.kept }
  saveTokens(tokens) {
    this.kept = tokens
    this.all.push(tokens.access_token)
  }
  codeVerifier() { return this.verifier }
  saveCodeVerifier(verifier) { this.verifier = verifier }
  state() { return 'a-state-of-this-test' }
  async redirectToAuthorization(url) {
    this.authorizations.push(url.href)
    this.back = await follow(url)
  }
}

const follow = async (url) => {
  const cookies = new Map()
  for (let hop = 0; hop < 10; hop += 1) {
    const headers = { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') }
    const answer = await fetch(url, { redirect: 'manual', headers })
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/)
      cookies.set(name, value)
    }
    url = new URL(answer.headers.get('location'), url)
    if (url.href.startsWith(CALLBACK)) return url.searchParams
  }
  throw new Error(`the login leads nowhere: ${url}`)
}

const job = JSON.parse(await text(process.stdin))
const memory = new Memory()
const transport = () => new StreamableHTTPClientTransport(new URL(job.url), { authProvider: memory })
const client = () => new Client({ name: 'test', version: '1' })

// The SDK leaves it to us to try again once the user has come back; what it asks for, and how, is its own.
const loggedIn = (over) => over.finishAuth(process.argv[2] === '1' ? memory.back.get('code') : memory.back)

let [connected, over] = [client(), transport()]
try {
  await connected.connect(over)
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error
  const again = transport()
  await loggedIn(again)
  ;[connected, over] = [client(), again]
  await connected.connect(over)
}
const call = () => connected.callTool({ name: job.tool, arguments: job.arguments })
const result = await call().catch(async (error) => {
  if (!(error instanceof UnauthorizedError)) throw error
  await loggedIn(over)
  return call()
})
const found = {
  said: result.content[0].text,
  tokens: memory.all,
  authorizations: memory.authorizations,
}
console.log(JSON.stringify(found))
await connected.close()
