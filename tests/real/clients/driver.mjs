// Reads a job from standard input, does its steps in one session, and prints one line of JSON for each.
//
// A job is {transport: "http" | "sse", mode, url, token, roots?, silent?, steps: [{as, do, with}]}; `do` names a
// scenario, `as` the line. A silent client declares no capabilities. Mode is how a client that knows both eras chooses.
import { text } from 'node:stream/consumers'

import { scenarios } from './scenarios.mjs'
import { Session } from './session.mjs'

export async function drive(sdk) {
  const { steps, ...target } = JSON.parse(await text(process.stdin))
  const open = () => Session.open(sdk, { ...target, silent: true })
  const session = await Session.open(sdk, target)
  for (const step of steps) {
    console.log(JSON.stringify({ as: step.as, ...(await outcome(step, session, open)) }))
  }
  await session.end()
}

async function outcome(step, session, open) {
  try {
    return { found: (await scenarios[step.do](session, step.with, open)) ?? null }
  } catch (error) {
    return { failed: error.stack, complaints: session.complaints }
  }
}
