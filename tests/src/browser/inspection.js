// What is wrong with the layout of the pages in the frames that this stands behind; run by tests/src/browser.rs.
const SLACK = 1.0, SMALLEST = 9.5; // A pixel of difference is rounding.
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
  for (const figure of page.querySelectorAll("figure")) {
    const shown = [...figure.querySelectorAll(":scope > svg")].filter(svg => svg.getBoundingClientRect().width > 0);
    if (shown.length !== 1) say(`${shown.length} pictures shown`, figure);
    for (const svg of shown) picture(svg, view, say);
  }
}

function picture(svg, view, say) {
  if (!svg.querySelector("title") || !svg.querySelector("desc")) say("no title or description", svg);
  const frame = svg.getBoundingClientRect();
  const scale = frame.width / svg.viewBox.baseVal.width;
  const texts = [...svg.querySelectorAll("text")].map(text => [text, text.getBoundingClientRect()]);
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
    for (const bar of svg.querySelectorAll("rect")) {
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
