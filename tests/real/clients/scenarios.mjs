// What a client does with a server. Each takes its session and an argument, and returns what it found, as the wire had it.

import { BOUND_MS } from './session.mjs'

export const scenarios = {
  greeting,
  lists,
  call,
  tools,
  attempt,
  changes,
  settle,
  read,
  prompt,
  complete,
  ask,
  roots,
  hear,
  subscribe,
  log,
  logging,
  progress,
  cancel,
  resume,
  many,
}

async function greeting(session) {
  return {
    protocolVersion: session.protocolVersion,
    serverInfo: session.client.getServerVersion(),
    capabilities: session.client.getServerCapabilities(),
    instructions: session.client.getInstructions() ?? null,
  }
}

async function lists({ client }) {
  const offers = client.getServerCapabilities()
  return {
    tools: (await client.listTools()).tools.map(tool => tool.name),
    ...(offers.resources && {
      resources: (await client.listResources()).resources.map(resource => resource.uri),
      templates: (await client.listResourceTemplates()).resourceTemplates.map(template => template.uriTemplate),
    }),
    ...(offers.prompts && { prompts: (await client.listPrompts()).prompts.map(prompt => prompt.name) }),
  }
}

function call(session, tool) {
  return orError(session.call(tool))
}

/**
 * Calls a tool, with whatever comes of it; questions are answered by the methods in `answers`. Its server may have to
 * start first, beside others.
 */
function attempt(session, { answers, ...tool }) {
  Object.assign(session.answers, answers)
  return orError(session.call(tool, { timeout: 3 * BOUND_MS }))
}

/** All there are, on however many pages. */
async function tools({ client }) {
  const found = []
  let cursor
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor })
    found.push(...page.tools.map(({ name, inputSchema }) => ({ name, inputSchema })))
    cursor = page.nextCursor
  } while (cursor)
  return found
}

/** How often it was told that the tools are others now. */
async function changes({ told }) {
  return told.filter(({ method }) => method === 'notifications/tools/list_changed').length
}

/** Calls a tool until it says what is to come about by itself. */
async function settle(session, { tool, text }) {
  const giveUpAt = Date.now() + BOUND_MS
  for (;;) {
    const result = await session.call(tool)
    if (result.content[0].text.includes(text)) return result
    if (Date.now() > giveUpAt) throw new Error(`still without ${text}: ${result.content[0].text}`)
  }
}

function read({ client }, resource) {
  return orError(client.readResource(resource))
}

function prompt({ client }, wanted) {
  return orError(client.getPrompt(wanted))
}

function complete({ client }, partial) {
  return orError(client.complete(partial))
}

/** Calls a tool that asks back, and answers by the methods in `answers`. */
async function ask(session, { tool, answers }) {
  const since = session.asked.length
  Object.assign(session.answers, answers)
  const result = await session.call(tool)
  return { asked: session.asked.slice(since), result }
}

/** Changes the roots, says so, and waits until the server has asked for them and logged that it has them. */
async function roots(session, { roots: changed }) {
  const since = session.told.length
  session.answers['roots/list'] = { roots: changed }
  await session.client.sendRootsListChanged()
  return session.hears(isLogged(`Roots updated: ${changed.length} root(s)`), since)
}

/** Waits for a log message that begins like this. */
function hear(session, { data }) {
  return session.hears(isLogged(data))
}

/** Subscribes to a resource, or to lists, calls a tool that changes it, and waits until told. */
function subscribe(session, { uri, lists, tool }) {
  return session.listening({ resources: uri ? [uri] : [], lists }, async next => {
    const result = await session.call(tool)
    const { method, params } = await next()
    return { updated: { method, params: withoutMeta(params) }, result }
  })
}

/** Calls a tool that logs, with messages from a level on; what it logged came with the call. */
async function log(session, { level, tool }) {
  const since = session.told.length
  const result = await session.callAt(level, tool)
  const told = session.told.slice(since).filter(({ method }) => method === 'notifications/message')
  return { result, logged: told.map(({ params }) => params) }
}

/** Subscribing is logged by the server at level info: below the first level, above the second. */
async function logging(session, { uri }) {
  const since = session.told.length
  await session.client.setLoggingLevel('error')
  await session.client.subscribeResource({ uri })
  await session.client.setLoggingLevel('info')
  await session.client.unsubscribeResource({ uri })
  await session.hears(({ method }) => method === 'notifications/message', since)
  return session.told.slice(since)
}

async function progress(session, tool) {
  const seen = []
  const result = await session.call(tool, { onprogress: report => seen.push(report) })
  return { progress: seen, result }
}

/** Cancels a call at its second report, and then looks whether anything of it still comes while the next call runs. */
async function cancel(session, { tool, next: yardstick }) {
  const seen = []
  const abort = new AbortController()
  const onprogress = report => seen.push(report) === 2 && abort.abort('enough seen')
  const rejected = await session.call(tool, { onprogress, signal: abort.signal }).then(() => null, String)
  const since = session.complaints.length
  const next = await progress(session, yardstick)
  const complaints = session.complaints.slice(since).filter(said => said.includes(`"total":${tool.arguments.steps}`))
  return { rejected, progress: seen, next, complaints }
}

/** Leaves in the middle of a call, and fetches its result over a new connection with the last token it was given. */
async function resume(session, tool) {
  let token
  const onresumptiontoken = given => (token = given)
  await new Promise((resolve, reject) => {
    const onprogress = ({ progress }) => progress === 2 && resolve()
    session.call(tool, { onprogress, onresumptiontoken }).catch(reject)
  }).then(() => session.reconnect())
  return { result: await session.call(tool, { resumptionToken: token, onresumptiontoken }) }
}

/** Many sessions of silent clients at once, each with calls of its own at once; what each was answered. */
async function many(_, { count, calls }, open) {
  const sessions = await Promise.all(Array.from({ length: count }, () => open()))
  const answered = await Promise.all(sessions.map((session, index) => echoes(session, index, calls)))
  await Promise.all(sessions.map(session => session.end()))
  return answered
}

function echoes(session, index, calls) {
  const messages = Array.from({ length: calls }, (_, call) => `session ${index} call ${call}`)
  const asked = messages.map(message => session.call({ name: 'echo', arguments: { message } }))
  return Promise.all(asked.map(async answer => (await answer).content[0].text))
}

function withoutMeta({ _meta, ...params } = {}) {
  return params
}

const isLogged = beginning => told => String(told.params?.data).startsWith(beginning)

function orError(answer) {
  return answer.catch(error => {
    if (typeof error.code !== 'number') throw error
    return { error: { code: error.code, message: error.message, data: error.data ?? null } }
  })
}
