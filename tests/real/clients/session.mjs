// One client in one session, whichever generation of the SDK it is of: what it was asked and told is kept.
export const BOUND_MS = 15_000

const LOG_LEVEL = 'io.modelcontextprotocol/logLevel'
const CAPABILITIES = { elicitation: { form: {}, url: {} }, roots: { listChanged: true }, sampling: {} }

export class Session {
  /** Questions, notifications and faults of the connection, in the order in which they came. */
  asked = []
  told = []
  complaints = []
  /** What a question is answered with, by its method. */
  answers = {}
  protocolVersion = undefined
  #sdk
  #target
  #waiting = []

  constructor(sdk, target) {
    this.#sdk = sdk
    this.#target = target
    this.answers['roots/list'] = { roots: target.roots ?? [] }
  }

  static async open(sdk, target) {
    const session = new Session(sdk, target)
    await session.#connect()
    return session
  }

  async #connect() {
    const capabilities = this.#target.silent ? {} : CAPABILITIES
    const options = { capabilities, ...this.#sdk.options(this.#target) }
    this.client = new this.#sdk.Client({ name: 'viaduct-tests', version: '1.0.0' }, options)
    this.client.onerror = error => this.complaints.push(String(error.message ?? error))
    this.client.fallbackNotificationHandler = async notification => this.#tell(notification)
    if (!this.#target.silent) {
      for (const method of ['elicitation/create', 'roots/list', 'sampling/createMessage']) {
        this.#sdk.answer(this.client, method, async request => this.#answer(request))
      }
    }
    this.transport = this.#transport()
    await this.client.connect(this.transport)
  }

  #transport(options = {}) {
    const Transport = this.#sdk.transports[this.#target.transport]
    const headers = { Authorization: `Bearer ${this.#target.token}` }
    const transport = new Transport(new URL(this.#target.url), { requestInit: { headers }, ...options })
    const settle = transport.setProtocolVersion?.bind(transport)
    transport.setProtocolVersion = version => {
      this.protocolVersion = version
      settle?.(version)
    }
    return transport
  }

  /** Drops the connections and not the session, and goes on in it over new ones. */
  async reconnect() {
    const { sessionId } = this.transport
    await this.client.close()
    this.transport = this.#transport({ sessionId, protocolVersion: this.protocolVersion })
    await this.client.connect(this.transport)
  }

  call({ name, arguments: given = {}, ...rest }, options = {}) {
    return this.#sdk.callTool(this.client, { name, arguments: given, ...rest }, { timeout: BOUND_MS, ...options })
  }

  get isStateless() {
    return this.client.getProtocolEra?.() === 'modern'
  }

  /** Calls the tool with log messages from this level on, or without asking for any. */
  async callAt(level, tool) {
    if (level === null) return this.call(tool)
    if (this.isStateless) return this.call({ ...tool, _meta: { [LOG_LEVEL]: level } })
    await this.client.setLoggingLevel(level)
    return this.call(tool)
  }

  /** Subscribes, as its era does, to `resources` and to the lists of `lists`, for as long as `body` runs. */
  async listening({ resources = [], lists = [] }, body) {
    const since = this.told.length
    const next = () => this.hears(({ method }) => /\/(updated|list_changed)$/.test(method), since)
    if (this.isStateless) {
      const changes = Object.fromEntries(lists.map(name => [`${name}ListChanged`, true]))
      const subscription = await this.client.listen({ resourceSubscriptions: resources, ...changes })
      const found = await body(next)
      await subscription.close()
      return found
    }
    for (const uri of resources) await this.client.subscribeResource({ uri })
    const found = await body(next)
    for (const uri of resources) await this.client.unsubscribeResource({ uri })
    return found
  }

  /** The first notification from the one numbered `since` on that is as it should be. */
  hears(isIt, since = 0) {
    const heard = this.told.slice(since).find(isIt)
    if (heard) return Promise.resolve(heard)
    return within(BOUND_MS, resolve => this.#waiting.push({ isIt, resolve }))
  }

  async end() {
    await this.transport.terminateSession?.()
    await this.client.close()
  }

  #answer({ method, params }) {
    this.asked.push({ method, params })
    return this.answers[method]
  }

  #tell({ method, params }) {
    const notification = { method, params }
    this.told.push(notification)
    for (const waiting of this.#waiting.filter(({ isIt }) => isIt(notification))) waiting.resolve(notification)
  }
}

function within(milliseconds, executor) {
  return new Promise((resolve, reject) => {
    const alarm = setTimeout(() => reject(new Error(`nothing came within ${milliseconds} ms`)), milliseconds)
    executor(value => {
      clearTimeout(alarm)
      resolve(value)
    })
  })
}
