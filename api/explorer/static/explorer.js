"use strict";
// Pages work without this file; it only saves the reader a click or a reload.

document.addEventListener("keydown", (event) => {
  const field = document.getElementById("q");
  const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
  if (event.key === "/" && field && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    field.focus();
    field.select();
  }
});

// Elements with data-live hold rows that the server writes; they are asked for anew.
const everyMs = 3000;
let paused = false;

async function renew(place) {
  if (paused || document.hidden || place.contains(document.activeElement)) return;
  const answer = await fetch(place.dataset.live, { headers: { "If-None-Match": place.dataset.tag || "" } });
  if (answer.status !== 200) return;
  const first = place.querySelector("a")?.getAttribute("href");
  const known = new Set(Array.from(place.querySelectorAll("a"), (link) => link.getAttribute("href")));
  place.dataset.tag = answer.headers.get("ETag") || "";
  place.innerHTML = await answer.text();
  if (first === undefined) return;
  for (const row of place.children) {
    const link = row.querySelector("a");
    if (link && !known.has(link.getAttribute("href"))) row.classList.add("fresh");
  }
}

for (const place of document.querySelectorAll("[data-live]")) {
  setInterval(() => renew(place).catch(() => undefined), everyMs);
}
for (const note of document.querySelectorAll("[data-live-note]")) note.hidden = false;
for (const button of document.querySelectorAll("[data-live-pause]")) {
  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
  });
}

// Buttons that copy are of no use without this.
for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// The editor of SQL: Ctrl+Enter runs what was written.
for (const editor of document.querySelectorAll("[data-editor]")) {
  editor.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      editor.form.requestSubmit();
    }
  });
}
for (const note of document.querySelectorAll("[data-editor-note]")) note.hidden = false;
