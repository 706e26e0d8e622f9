// The report of `stats`: an HTML file without scripts.

import assert from "node:assert/strict";
import path from "node:path";
import { after, test } from "node:test";
import { accessible, close, folder, report, samples } from "./harness.js";
import { Capture, Talk, weather } from "./generate.js";

after(close);

const login = [path.join(samples, "uru-login.pcapng"), "--keys", path.join(samples, "uru-keys.toml")];

test("the report shows totals, plots and tables", async (t) => {
  const { page } = await report(t, login);
  await page.getByRole("heading", { name: /uru-login/ }).waitFor();
  const sections = await page.getByRole("region").filter({ has: page.getByRole("heading") }).allTextContents();
  assert.equal(sections.length, 6);
  assert.equal(await page.locator("dl .value").nth(1).textContent(), "59");
  for (const label of ["Messages over time by sender", "Messages by size and sender", "Conversations over time"]) {
    assert.ok(await page.getByRole("img", { name: label }).isVisible(), label);
  }
  const row = page.getByRole("row", { name: /auth\.AcctLoginRequest/ }).last();
  assert.match((await row.textContent()) ?? "", /20\.7 ms/);
  assert.equal(await page.locator("script").count(), 0);
});

for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
  test(`it is accessible in ${colorScheme} mode, also on a phone`, async (t) => {
    for (const viewport of [{ width: 1100, height: 900 }, { width: 390, height: 800 }]) {
      const { page } = await report(t, login, { colorScheme, viewport });
      await accessible(page, `${colorScheme}, ${viewport.width} wide`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= viewport.width, `${wide} pixels on a screen of ${viewport.width}`);
    }
  });
}

test("hostile names stay text, and the size is bounded", async (t) => {
  const capture = path.join(folder(t), "<img src=x onerror=alert(1)>.pcap");
  const writer = new Capture(capture);
  for (let number = 0; number < 1000; number++) {
    const talk = new Talk(writer, 20_000 + number);
    talk.send("server", weather(number, Buffer.from("</title><script>document.title='owned'</script>")));
  }
  writer.close();
  const { page, size } = await report(t, [capture, "--data", path.join(samples, "ki-messages")]);
  assert.match(await page.title(), /<img src=x/);
  assert.equal(await page.locator("img, script").count(), 0);
  assert.ok(size < 1 << 20, `${size} bytes`);
});
