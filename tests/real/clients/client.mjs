// Drives a server with `@modelcontextprotocol/client`, the second generation of the TypeScript SDK.
//
// Its modes: "legacy", which it has unless told otherwise, is the handshake; "auto" asks for the stateless revision first
// and falls back to the handshake by what it is answered; a revision is asked for and nothing else is good enough.
import { drive } from './driver.mjs'
import { load } from './packages.mjs'

const { Client, SSEClientTransport, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client')

await drive({
  Client,
  transports: { http: StreamableHTTPClientTransport, sse: SSEClientTransport },
  options: ({ mode }) => ({ versionNegotiation: { mode: mode.startsWith('20') ? { pin: mode } : mode } }),
  answer: (client, method, reply) => client.setRequestHandler(method, reply),
  callTool: (client, params, options) => client.callTool(params, options),
})
