// Tells what came of runs of the HTTP cache tests: one line of JSON for each test of a shared cache.
//
//   node tell.mjs FOLDER RESULTS.json ...
//
// FOLDER holds the tests: a clone of http-tests/cache-tests, or the npm package. A test is told as
// {"suite", "id", "kind", "runs": ["pass", "fail", ...], "why"}; what a result means is asked of the tests' own code, so
// that a test whose dependency failed does not count as passed.

import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const [folder, ...files] = process.argv.slice(2)
const load = file => import(pathToFileURL(path.resolve(folder, file)).href)
const isRepository = fs.existsSync(path.join(folder, 'test-engine'))
const { determineTestResult } = await load(isRepository ? 'test-engine/lib/results.mjs' : 'lib/display.mjs')
const suites = (await load('tests/index.mjs')).default
const runs = files.map(file => JSON.parse(fs.readFileSync(file, 'utf8')))

const names = { '✅': 'pass', Y: 'pass', '⛔️': 'fail', '⚠️': 'fail', N: 'fail', '🔹': 'setup', '⁉️': 'harness', '⚪️': 'dependency', '↻': 'retry', '-': 'untested' }

for (const suite of suites) {
  for (const test of suite.tests) {
    if (test.browser_only) continue
    const results = runs.map(run => names[determineTestResult(suites, test.id, run)[2]] ?? 'unknown')
    const failed = runs.map(run => run[test.id]).find(result => Array.isArray(result))
    const told = { suite: suite.id, id: test.id, kind: test.kind ?? 'required', runs: results, why: failed ? failed.join(': ') : '' }
    console.log(JSON.stringify(told))
  }
}
