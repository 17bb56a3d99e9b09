// What is wrong with the layout of the pages in the frames that this stands behind; run by tests/src/browser.rs.
const SLACK = 1.0, SMALLEST = 9.5; // A pixel of difference is rounding.
const NARROW = 600; // A window in which a table with many columns is to be a list.
const findings = [];

function inspect(frame) {
  const view = frame.contentWindow, page = view.document;
  const say = (what, element) =>
    findings.push(`${frame.title}: ${what}${element ? `: ${element.textContent.trim().slice(0, 60)}` : ""}`);
  const width = page.documentElement.scrollWidth;
  if (width > view.innerWidth + SLACK) say(`the page is ${width} pixels wide`);
  for (const element of page.querySelectorAll("h1, h2, p, dt, dd, li, figcaption, summary, td, th")) {
    if (element.scrollWidth > element.clientWidth + SLACK && element.clientWidth > 0) say("cut off", element);
  }
  for (const table of view.innerWidth < NARROW ? page.querySelectorAll("table.stacked") : []) {
    if (table.parentElement.scrollWidth > table.parentElement.clientWidth + SLACK) say("beyond the edge", table);
  }
  for (const figure of page.querySelectorAll("figure")) {
    const shown = [...figure.querySelectorAll(":scope > svg, [role=img]")].filter(isShown);
    if (shown.length !== 1) say(`${shown.length} pictures shown`, figure);
    for (const picture of shown) look(picture, view, say);
  }
}

const isShown = element => element.getBoundingClientRect().width > 0;

function look(picture, view, say) {
  const isNamed = picture.ariaLabel || (picture.querySelector("title") && picture.querySelector("desc"));
  if (!isNamed) say("no title or description", picture);
  const frame = picture.getBoundingClientRect();
  const scale = picture.viewBox ? frame.width / picture.viewBox.baseVal.width : 1;
  // What has words of its own, be it SVG's text or the page's.
  const texts = [...picture.querySelectorAll("*")]
    .filter(element => !element.children.length && element.textContent.trim() && isShown(element))
    .map(text => [text, text.getBoundingClientRect()]);
  // Letters do not fill the height of their line.
  const meet = (a, b, leading) =>
    a.left < b.right - SLACK && b.left < a.right - SLACK && a.top < b.bottom - leading && b.top < a.bottom - leading;
  texts.forEach(([text, place], number) => {
    const size = parseFloat(view.getComputedStyle(text).fontSize) * scale;
    if (size < SMALLEST) say(`only ${size.toFixed(1)} pixels high`, text);
    if (place.left < frame.left - SLACK || place.right > frame.right + SLACK
        || place.top < frame.top - SLACK || place.bottom > frame.bottom + SLACK) say("outside of its picture", text);
    for (const [other, there] of texts.slice(number + 1)) {
      if (meet(place, there, 3)) say(`runs into "${other.textContent}"`, text);
    }
    for (const bar of picture.querySelectorAll("rect, .bar")) {
      if (meet(place, bar.getBoundingClientRect(), 4)) say("on a bar", text);
    }
  });
}

addEventListener("load", () => {
  for (const frame of document.querySelectorAll("iframe")) inspect(frame);
  const pre = document.createElement("pre");
  pre.id = "findings";
  pre.textContent = findings.join("\n");
  document.body.append(pre);
});
