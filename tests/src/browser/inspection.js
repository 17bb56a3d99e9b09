// What is wrong with the layout of the page that this stands behind; run by tests/src/browser.rs.
const findings = [];
const say = (what, element) => findings.push(what + ": " + (element.textContent || "").trim().slice(0, 60));
// A pixel of difference is rounding.
const SLACK = 1.0, SMALLEST = 9.5;
const width = document.documentElement.scrollWidth;
if (width > innerWidth) findings.push("the page is " + width + " pixels wide in a window of " + innerWidth);
for (const element of document.querySelectorAll("h1, h2, p, dt, dd, li, figcaption, summary, td, th")) {
  if (element.scrollWidth > element.clientWidth + SLACK && element.clientWidth > 0) say("cut off", element);
}
for (const figure of document.querySelectorAll("figure")) {
  const shown = [...figure.querySelectorAll(":scope > svg")].filter(svg => svg.getBoundingClientRect().width > 0);
  if (shown.length !== 1) say(shown.length + " pictures shown", figure);
  for (const svg of shown) {
    if (!svg.querySelector("title") || !svg.querySelector("desc")) say("no title or description", figure);
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map(text => [text, text.getBoundingClientRect()]);
    for (const [text, place] of texts) {
      const size = parseFloat(getComputedStyle(text).fontSize) * frame.width / svg.viewBox.baseVal.width;
      if (size < SMALLEST) say("only " + size.toFixed(1) + " pixels high", text);
      if (place.left < frame.left - SLACK || place.right > frame.right + SLACK || place.top < frame.top - SLACK
          || place.bottom > frame.bottom + SLACK) say("outside of its picture", text);
    }
    texts.forEach(([text, a], number) => texts.slice(number + 1).forEach(([other, b]) => {
      if (a.left < b.right - SLACK && b.left < a.right - SLACK && a.top < b.bottom - 3 && b.top < a.bottom - 3) {
        say("runs into \"" + other.textContent + "\"", text);
      }
    }));
    for (const bar of svg.querySelectorAll("rect")) {
      const a = bar.getBoundingClientRect();
      for (const [text, b] of texts) {
        if (a.left < b.right - SLACK && b.left < a.right - SLACK && a.top < b.bottom - 4 && b.top < a.bottom - 4) say("on a bar", text);
      }
    }
  }
}
const pre = document.createElement("pre");
pre.id = "findings";
pre.textContent = findings.join("\n");
document.body.append(pre);
