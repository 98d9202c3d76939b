(() => {
  // Returns what a reader with other eyes or hands would stumble over.
  const found = [];
  const name = (node) =>
    (node.getAttribute("aria-label") || node.textContent || "").trim() ||
    Array.from(node.querySelectorAll("img[alt]"), (each) => each.alt).join("");
  const wide = document.documentElement.scrollWidth;
  const room = document.documentElement.clientWidth;
  if (wide > room) found.push(`overflow: ${wide} > ${room}`);
  if (!document.documentElement.lang) found.push("no language");
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (document.querySelectorAll("main").length !== 1) found.push("not one main");
  for (const field of document.querySelectorAll("input:not([type=hidden]), textarea, select")) {
    if (!field.labels.length && !field.getAttribute("aria-label")) found.push(`no label: ${field.outerHTML}`);
  }
  for (const node of document.querySelectorAll("a, button, summary, [role=region], [role=img]")) {
    if (!name(node)) found.push(`no name: ${node.outerHTML.slice(0, 80)}`);
  }
  for (const image of document.querySelectorAll("img:not([alt])")) found.push(`no alt: ${image.src}`);
  for (const head of document.querySelectorAll("th:not([scope])")) found.push(`no scope: ${head.textContent}`);
  for (const box of document.querySelectorAll("*")) {
    const style = getComputedStyle(box);
    const scrolls = style.overflowX === "auto" && box.scrollWidth > box.clientWidth + 1;
    if (scrolls && box.tabIndex < 0) found.push(`cannot be scrolled by key: ${box.className}`);
  }
  let level = 0;
  for (const head of document.querySelectorAll("h1, h2, h3, h4")) {
    const next = Number(head.tagName[1]);
    if (next > level + 1) found.push(`heading skips a level: ${head.textContent}`);
    level = next;
  }
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const channels = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return Array.from(canvas.getImageData(0, 0, 1, 1).data);
  };
  const light = ([r, g, b]) => {
    const part = (value) => (value / 255 <= 0.03928 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const rect = each instanceof SVGElement && each.parentElement?.querySelector("rect.box");
      if (rect && each.tagName === "text" && each.closest("a")) return channels(getComputedStyle(rect).fill);
      const color = channels(getComputedStyle(each).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || seen.has(node) || node.closest("title, .quiet, .skip, script")) continue;
    seen.add(node);
    const style = getComputedStyle(node);
    const [one, two] = [light(channels(node instanceof SVGElement ? style.fill : style.color)), light(ground(node))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    const size = parseFloat(style.fontSize);
    if (ratio < (size >= 24 ? 3 : 4.5)) found.push(`contrast ${ratio.toFixed(2)}: ${texts.currentNode.data.trim().slice(0, 40)}`);
  }
  return found;
})();
