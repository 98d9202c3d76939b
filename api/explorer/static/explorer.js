"use strict";
// Pages work without this file; it only saves clicks and reloads.

document.addEventListener("keydown", (event) => {
  const field = document.getElementById("q");
  const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
  if (event.key === "/" && field && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    field.focus();
    field.select();
  }
});

// When the stream reports a change, the server renders again: rows at the path in data-live, and
// the elements of this page with data-live-part, by their ids.
const leastMs = 1000;
const pollMs = 10000; // where no event comes, as behind a proxy that keeps streams back
let paused = false;
let renewedMs = 0;
let due = 0;
const written = new WeakMap();
for (const place of document.querySelectorAll("[data-live], [data-live-part]")) written.set(place, place.innerHTML);

function replace(place, html) {
  if (place.contains(document.activeElement) || written.get(place) === html) return;
  written.set(place, html);
  const known = new Set(Array.from(place.querySelectorAll("a"), (link) => link.getAttribute("href")));
  place.innerHTML = html;
  revealCopies(place);
  for (const row of known.size ? place.querySelectorAll("tr, li") : []) {
    const link = row.querySelector("a");
    if (link && !known.has(link.getAttribute("href"))) row.classList.add("fresh");
  }
}

async function renewRows(place) {
  const answer = await fetch(place.dataset.live, { headers: { "If-None-Match": place.dataset.tag || "" } });
  if (answer.status !== 200) return;
  place.dataset.tag = answer.headers.get("ETag") || "";
  replace(place, await answer.text());
}

async function renewParts(places) {
  const answer = await fetch(location.pathname + location.search);
  if (answer.status !== 200) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const place of places) {
    const found = page.getElementById(place.id);
    if (found) replace(place, found.innerHTML);
  }
}

function renew() {
  if (paused || document.hidden) return;
  const waitMs = renewedMs + leastMs - Date.now();
  if (waitMs > 0) {
    due = due || setTimeout(() => { due = 0; renew(); }, waitMs);
    return;
  }
  renewedMs = Date.now();
  const parts = Array.from(document.querySelectorAll("[data-live-part]"));
  const work = Array.from(document.querySelectorAll("[data-live]"), renewRows);
  if (parts.length) work.push(renewParts(parts));
  Promise.all(work).catch(() => undefined);
}

if (document.querySelector("[data-live], [data-live-part]")) {
  const path = document.body.dataset.stream;
  let stream;
  const follow = () => {
    stream?.close();
    if (document.hidden) return;
    stream = new EventSource(path);
    stream.onmessage = (event) => {
      const message = JSON.parse(event.data);
      const isConfirmed = message.type === "account_state_change" && message.finality === "confirmed";
      for (const note of document.querySelectorAll("[data-confirmed]")) note.hidden = !isConfirmed;
      if (message.finality !== "confirmed") renew();
    };
    // Browsers give up a stream that is refused, as one that begins before the log does.
    stream.onerror = () => {
      if (stream.readyState === EventSource.CLOSED) setTimeout(follow, pollMs);
    };
  };
  document.addEventListener("visibilitychange", follow);
  follow();
  setInterval(renew, pollMs);
}
for (const note of document.querySelectorAll("[data-live-note]")) note.hidden = false;
for (const button of document.querySelectorAll("[data-live-pause]")) {
  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
  });
}

// Copy buttons, useless without scripts.
function revealCopies(place) {
  if (!navigator.clipboard) return;
  for (const button of place.querySelectorAll("[data-copy]")) button.hidden = false;
}
revealCopies(document);
document.addEventListener("click", async (event) => {
  const button = event.target instanceof HTMLElement && event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
});

// Zoomable pictures.
for (const figure of document.querySelectorAll("[data-zoom]")) {
  const picture = figure.querySelector("svg");
  const [width, height] = ["width", "height"].map((name) => Number(picture.getAttribute(name)));
  let scale = 1;
  const bar = document.createElement("div");
  bar.className = "zoom";
  const choices = {
    "Smaller": () => scale / 1.25,
    "Larger": () => scale * 1.25,
    "Fit": () => Math.min(1, (figure.clientWidth - 16) / width),
    "Actual size": () => 1,
  };
  const draw = (wanted) => {
    scale = Math.min(4, Math.max(0.1, wanted));
    picture.style.width = `${width * scale}px`;
    picture.style.height = `${height * scale}px`;
  };
  // Fit the width if text stays readable; always on a phone, as the list below has the text.
  const least = matchMedia("(max-width: 40rem)").matches ? 0 : 0.7;
  draw(Math.max(least, choices.Fit()));
  for (const [title, choose] of Object.entries(choices)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = title;
    button.addEventListener("click", () => draw(choose()));
    bar.append(button);
  }
  figure.before(bar);
}

// The SQL editor: Ctrl+Enter runs the statement.
for (const editor of document.querySelectorAll("[data-editor]")) {
  editor.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      editor.form.requestSubmit();
    }
  });
}
for (const note of document.querySelectorAll("[data-editor-note]")) note.hidden = false;
