// Drives a server with `@modelcontextprotocol/client`, the second generation of the TypeScript SDK. Where the transport
// lets it, it asks for the modern revision first and falls back to the handshake by what it is answered.
import { drive } from './driver.mjs'
import { load } from './packages.mjs'

const { Client, SSEClientTransport, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client')

await drive({
  Client,
  transports: { http: StreamableHTTPClientTransport, sse: SSEClientTransport },
  options: { versionNegotiation: { mode: 'auto' } },
  answer: (client, method, reply) => client.setRequestHandler(method, reply),
  callTool: (client, params, options) => client.callTool(params, options),
})
