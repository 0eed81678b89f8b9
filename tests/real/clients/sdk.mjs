// Drives a server with `@modelcontextprotocol/sdk`, the first generation of the TypeScript SDK.
import { drive } from './driver.mjs'
import { load } from './packages.mjs'

const { Client } = load('@modelcontextprotocol/sdk/client/index.js')
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js')
const { SSEClientTransport } = load('@modelcontextprotocol/sdk/client/sse.js')
const types = load('@modelcontextprotocol/sdk/types.js')

const questions = {
  'elicitation/create': types.ElicitRequestSchema,
  'roots/list': types.ListRootsRequestSchema,
  'sampling/createMessage': types.CreateMessageRequestSchema,
}

await drive({
  Client,
  transports: { http: StreamableHTTPClientTransport, sse: SSEClientTransport },
  options: () => ({}),
  answer: (client, method, reply) => client.setRequestHandler(questions[method], reply),
  callTool: (client, params, options) => client.callTool(params, types.CallToolResultSchema, options),
})
