// SPDX-License-Identifier: Apache-2.0
//
// page.js SERVER FOLDER: opens the dashboard of SERVER in Chromium, uses it as people do, and writes
// screenshots to FOLDER. Exits with 77 if Chromium or playwright-core is missing.
"use strict";

const assert = require("node:assert");
const {spawn} = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

const CHROMIUM = "/usr/bin/chromium";
const [server, folder] = process.argv.slice(2);

function skip(reason) {
  console.log(reason);
  process.exit(process.env.WEIR_REQUIRE === "all" ? 1 : 77);
}

let chromium;
try {
  ({chromium} = require("playwright-core"));
} catch {
  skip("playwright-core is missing: tools/npm_packages.py");
}
if (!fs.existsSync(CHROMIUM))
  skip(`${CHROMIUM} is missing`);

// Starts the server; the result has its URL, and ends it.
function start(...options) {
  const child = spawn(server, options.map(String), {stdio: ["pipe", "pipe", "ignore"]});
  const ended = new Promise((resolve) => child.on("exit", resolve));
  return new Promise((resolve) => child.stdout.once("data", (data) =>
    resolve({url: String(data).trim(), end: async () => { child.stdin.end(); return await ended; }})));
}

const text = (page, selector) => page.locator(selector).first().innerText();

// Waits until fn, which runs in the page, returns true.
const wait = (page, fn, argument) => page.waitForFunction(fn, argument, {timeout: 20000, polling: 50});

async function open(context, url) {
  const page = await context.newPage();
  page.errors = [];
  page.on("pageerror", (error) => page.errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && page.errors.push(message.text()));
  await page.goto(url);
  await wait(page, () => document.querySelector("#status.live") && document.querySelectorAll(".row").length > 0);
  return page;
}

const screenshot = (page, name, fullPage = true) =>
  page.screenshot({path: path.join(folder, name + ".png"), fullPage, animations: "disabled"});

async function showsValuesThatChange(page, url) {
  const hello = new URL("/hello", url).href;
  await page.evaluate(async (address) => { for (let i = 0; i < 30; i++) await fetch(address); }, hello);
  await wait(page, () => document.querySelector("#tiles .tile:nth-child(2) .more").textContent !== "0 in total");
  const before = await text(page, "#tiles .tile:nth-child(4) .more");
  await wait(page, (old) => document.querySelector("#tiles .tile:nth-child(4) .more").textContent !== old, before);
  assert.match(await text(page, "#loops-summary"), /^4 loops, 2 other executors$/);
  assert.equal(await page.locator(".row .name.here").count(), 1);
}

// What happened before the page was opened is not of the last minute.
async function countsWhatItHasSeen(page) {
  const count = (values) => page.evaluate((histogram) => inWindow("test", counts(histogram))
    .reduce((a, b) => a + b, 0), values);
  assert.deepEqual([await count([10, 500]), await count([10, 507, 1])], [0, 8]);
}

async function chatsBetweenTabs(one, two) {
  await one.fill("#name", "Ada");
  await one.locator("#text").focus();
  await one.keyboard.type("does it work?");
  await one.keyboard.press("Enter");
  await wait(two, () => document.querySelector("#chat").textContent.includes("Ada: does it work?"));
  await two.fill("#text", "<b>yes</b>");
  await two.locator("#chat-form button").press("Enter");
  await wait(one, () => document.querySelector("#chat").textContent.includes(": <b>yes</b>"));
  assert.equal(await one.inputValue("#text"), "");
}

async function block(page) {
  await wait(page, () => !document.querySelector("#block").disabled);
  await page.locator("#block").press("Enter");
  await wait(page, () => !document.querySelector("#block").disabled);
}

async function namesTheHandlerThatBlocks(page) {
  await block(page);
  await wait(page, () => /blocked \d+ ms by dashboard-block in read/.test(document.querySelector(".row.blocked .note")?.textContent));
  const report = await text(page, "#blocks .block");
  assert.match(report, /dashboard-block in read, channel \[/);
  await page.locator("#blocks summary").first().press("Space");
  assert.match(await text(page, "#blocks pre"), /block_this_loop/);
  await wait(page, () => document.querySelector("#handlers").textContent.includes("dashboard-block"));
}

// After the fourth block; on a busy machine the watchdog may miss one.
async function movesTheHandler(page) {
  const moved = /was moved: it slept for 400 ms on blocking-\d, and .* stayed free/;
  await page.locator("#move").press("Space");
  for (let i = 0; i < 10 && !moved.test(await text(page, "#demo-state")); i++)
    await block(page);
  assert.match(await text(page, "#demo-state"), moved);
  await wait(page, () => document.querySelector("#handlers").textContent.includes("moved away"));
  await page.locator("#move").press("Space");
  await wait(page, () => document.querySelector("#demo-state").textContent.startsWith("Press the button"));
}

async function looksGood(browser, url, name, options) {
  const context = await browser.newContext({...options, reducedMotion: "reduce"});
  const page = await open(context, url);
  const width = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(width <= 0, `${name}: the page is wider than the window`);
  await page.waitForTimeout(Number(process.env.WEIR_SCREENSHOT_MS ?? 300)); // for the eye: some seconds of lines
  await screenshot(page, name);
  assert.deepEqual(page.errors, []);
  await context.close();
}

// Rows do not move or change their height from one update to the next.
async function isCalm(browser) {
  const {url, end} = await start(64);
  const context = await browser.newContext({viewport: {width: 1440, height: 900}});
  const page = await open(context, url);
  const places = () => page.evaluate(() => [...document.querySelectorAll(".row, .card")].map((row) => {
    const {x, y, width, height} = row.getBoundingClientRect();
    return [x, y, width, height].map(Math.round).join();
  }).join(" "));
  const update = async () => {
    const old = await text(page, "#tiles .tile:nth-child(4) .more");
    await wait(page, (before) => document.querySelector("#tiles .tile:nth-child(4) .more").textContent !== before, old);
  };
  await update();
  await update();
  const first = await places();
  await update();
  assert.equal(await places(), first);
  assert.equal(await page.locator(".dense .row").count(), 66);
  await screenshot(page, "loops-64");
  await context.close();
  assert.equal(await end(), 0);
}

async function noticesTheEnd(page, end) {
  assert.equal(await end(), 0);
  await wait(page, () => document.querySelector("#status.lost"));
  assert.match(await text(page, "#status"), /connection lost, trying again/);
}

// A program that is started again counts from 1 again: chats, log lines, blocks.
async function seesAnotherProcess(browser) {
  const first = await start(2), port = new URL(first.url).port;
  const context = await browser.newContext();
  const page = await open(context, first.url);
  const says = async (message) => {
    await page.fill("#text", message);
    await page.locator("#text").press("Enter");
    await wait(page, (said) => document.querySelector("#chat").textContent.includes(said), message);
  };
  await says("before");
  await noticesTheEnd(page, first.end);
  const second = await start(2, "", port);
  await wait(page, () => document.querySelector("#status.live"));
  await says("after");
  assert.ok(!(await text(page, "#chat")).includes("before"), "the chat of the first process is still there");
  assert.match(await text(page, "#log"), /dashboard shop http/);
  await context.close();
  assert.equal(await second.end(), 0);
}

async function main() {
  fs.mkdirSync(folder, {recursive: true});
  const browser = await chromium.launch({executablePath: CHROMIUM, args: ["--no-sandbox"]});
  const {url, end} = await start(4, "secret");
  const context = await browser.newContext({viewport: {width: 1440, height: 900}});
  const one = await open(context, url), two = await open(context, url.replace(/\?.*/, ""));

  assert.ok(!one.url().includes("token"), "the token is not in the address of the page");
  await showsValuesThatChange(one, url);
  await countsWhatItHasSeen(two);
  await chatsBetweenTabs(one, two);
  await namesTheHandlerThatBlocks(one);
  await screenshot(one, "blocked", false);
  await movesTheHandler(one);
  for (const colorScheme of ["light", "dark"])
    for (const [width, height] of [[390, 844], [1440, 900]])
      await looksGood(browser, url, `${width}-${colorScheme}`, {viewport: {width, height}, colorScheme,
        deviceScaleFactor: width === 390 ? 2 : 1});
  assert.deepEqual(one.errors.concat(two.errors), []);
  await noticesTheEnd(one, end);
  await context.close();
  await seesAnotherProcess(browser);
  await isCalm(browser);
  await browser.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
