// node check_pages.js PAGE...: opens pages at 390 and 1,280 px and as A4 print, light and dark: no console message, no
// violation that axe-core finds with everything unfolded, no horizontal scroll, under 1 MB; curves switch, values show.
// Needs axe-core and puppeteer-core (npm) and BROWSER; see check_report.
const fs = require('fs'), path = require('path'), puppeteer = require('puppeteer-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const views = [['phone', 390, 844, 'screen'], ['desk', 1280, 900, 'screen'], ['A4', 794, 1123, 'print']];
const problems = [];

async function look(browser, file, [name, width, height, media], scheme) {
  const page = await browser.newPage(), said = [];
  const where = `${path.basename(file)} ${name} ${scheme}`;
  page.on('console', m => said.push(m.text()));
  page.on('pageerror', e => said.push(String(e)));
  await page.emulateMediaType(media);
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await page.setViewport({ width, height });
  await page.goto('file://' + path.resolve(file));
  const state = await page.evaluate(() => {
    const wide = () => document.documentElement.scrollWidth - document.documentElement.clientWidth;
    const folded = wide();
    document.querySelectorAll('details').forEach(d => d.open = true);
    return { folded, open: wide(), switches: document.querySelectorAll('.switches button').length };
  });
  if (state.folded > 0 || state.open > 0) problems.push(`${where}: ${state.folded} px (unfolded ${state.open}) of horizontal scroll`);
  const readings = media === 'screen' ? await hover(page) : 0;
  for (const message of said) problems.push(`${where}: console: ${message}`);
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await axe.run(document)).violations.map(
    v => `${v.id}, ${v.nodes.length} times: ${v.nodes[0].html.slice(0, 160)}`));
  for (const v of found) problems.push(`${where}: ${v}`);
  console.log(`${where}: ${found.length} violations, ${said.length} messages, scroll ${state.open} px, ${state.switches} switches, values in ${readings} figures`);
  await page.close();
}

// Moves over every figure; how many say values. The first switch has to hide its curve.
async function hover(page) {
  let count = 0;
  for (const figure of await page.$$('figure')) {
    const svg = await figure.$('.drawing svg[data-axes]');
    if (!svg) continue;
    await svg.scrollIntoView();
    const box = await svg.boundingBox();
    // Figures of several frames have nothing to say between them.
    for (const [x, y] of [[0.3, 0.5], [0.45, 0.5], [0.2, 0.5], [0.3, 0.9], [0.45, 0.3], [0.3, 0.2]]) {
      await page.mouse.move(box.x + x * box.width, box.y + y * box.height);
      if (await figure.$eval('.reading', r => !r.hidden && r.textContent.length > 0).catch(() => false)) { count++; break; }
    }
    const button = await figure.$('.switches button');
    if (!button) continue;
    await button.evaluate(b => b.click());
    if (!await figure.$('g.plot.off')) problems.push('a switch hides nothing');
    await button.evaluate(b => b.click());
  }
  await page.mouse.move(0, 0);
  return count;
}

(async () => {
  const browser = await puppeteer.launch({ executablePath: process.env.BROWSER, args: ['--no-sandbox', '--disable-gpu'] });
  for (const file of process.argv.slice(2)) {
    const size = fs.statSync(file).size;
    if (size > 1e6) problems.push(`${path.basename(file)}: ${size} bytes`);
    for (const view of views) for (const scheme of ['light', 'dark']) await look(browser, file, view, scheme);
  }
  await browser.close();
  for (const problem of problems) console.error('check_pages: ' + problem);
  process.exit(problems.length > 0 ? 1 : 0);
})();
