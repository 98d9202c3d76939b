// Scripts of the page /sql: an editor with completion, results without a page load, statements
// saved in this browser, a search in the schema. Without scripts its forms and links still work.
{
  const bench = document.querySelector("[data-bench]");
  const form = bench.querySelector("form.sql");
  const field = form.elements.query;
  const status = bench.querySelector("[data-status]");
  const say = (text) => { status.textContent = text; };
  const text = (node) => (node ? node.textContent : "");
  const longest = 6000; // characters of a path that every server and program passes on

  const describeColumn = (term) => ({
    name: text(term.querySelector("code")),
    type: text(term.querySelector("span")),
    doc: text(term.nextElementSibling),
  });
  const details = Array.from(bench.querySelectorAll("[data-view]"));
  const macros = Array.from(bench.querySelectorAll("[data-macro]"));
  const editor = tonlakeEditor.createEditor({
    field,
    views: details.map((each) => ({
      name: each.dataset.view,
      doc: text(each.querySelector("[data-doc]")),
      columns: Array.from(each.querySelectorAll("dt"), describeColumn),
    })),
    macros: macros.map((each) => ({
      name: each.dataset.macro,
      arguments: text(each.querySelector("code")).slice(each.dataset.macro.length),
      doc: text(each.querySelector("dd")),
    })),
    nonce: bench.dataset.nonce,
    label: text(form.querySelector("label")),
    run: () => form.requestSubmit(),
  });
  form.querySelector("label").addEventListener("click", () => editor.focus());

  const pathOf = (values) => "/sql?" + new URLSearchParams(values);
  const pathOfQuery = (query) => pathOf({ query, format: "html" });

  // Answers.
  let asked = 0;
  async function run(values) {
    const mine = ++asked;
    const path = pathOf(values);
    const short = path.length <= longest;
    say("Running");
    bench.setAttribute("aria-busy", "true");
    try {
      const answer = await (short ? fetch(path) : fetch("/sql", { method: "POST", body: values }));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.getElementById("answer");
      if (mine !== asked) return;
      if (!found) throw new Error(`the service answered with status ${answer.status}`);
      document.getElementById("answer").replaceWith(found);
      bench.querySelector("[data-examples]").open = false;
      if (short) history.pushState(null, "", path);
      say(text(found.querySelector("h2")) || "Done");
    } catch (error) {
      if (mine !== asked) return;
      const place = document.createElement("p");
      place.className = "unknown";
      place.textContent = `No answer: ${error.message}.`;
      document.getElementById("answer").replaceChildren(place);
      say(place.textContent);
    }
    if (mine === asked) bench.removeAttribute("aria-busy");
  }
  bench.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-run]")) return;
    event.preventDefault();
    const values = new URLSearchParams(new FormData(event.target));
    if (values.get("query").trim()) run(values);
    else say("Write a statement first");
  });
  addEventListener("popstate", () => location.reload());

  // Links.
  const share = bench.querySelector("[data-share]");
  share.hidden = !navigator.clipboard;
  share.addEventListener("click", async () => {
    const here = new URLSearchParams(location.search);
    const path = here.get("query") === field.value ? location.pathname + location.search : pathOfQuery(field.value);
    await navigator.clipboard.writeText(location.origin + path);
    say("Link copied");
    share.textContent = "Copied";
    setTimeout(() => { share.textContent = "Copy link"; }, 2000);
  });

  // Statements saved in this browser: a list of names and texts.
  const key = "tonlake.sql.saved";
  const saved = bench.querySelector("[data-saved]");
  const save = bench.querySelector("[data-save]");
  function load() {
    try {
      const found = JSON.parse(localStorage.getItem(key) || "[]");
      return Array.isArray(found) ? found.filter((each) => each && typeof each.query === "string") : [];
    } catch {
      return [];
    }
  }
  function keep(list) {
    localStorage.setItem(key, JSON.stringify(list));
    show(list);
  }
  function show(list) {
    saved.hidden = !list.length;
    const rows = list.map((each) => {
      const row = document.createElement("li");
      const link = document.createElement("a");
      link.href = pathOfQuery(each.query);
      link.textContent = each.name;
      const remove = document.createElement("button");
      remove.type = "button";
      remove.className = "copy";
      remove.textContent = "Delete";
      remove.setAttribute("aria-label", `Delete ${each.name}`);
      remove.addEventListener("click", () => keep(load().filter((other) => other.name !== each.name)));
      row.append(link, remove);
      return row;
    });
    saved.querySelector("ul").replaceChildren(...rows);
  }
  try {
    show(load());
    save.hidden = false;
  } catch {
    save.hidden = true; // the browser keeps nothing for this page
  }
  save.addEventListener("click", () => {
    const query = field.value.trim();
    const first = query.split("\n")[0].replace(/^--\s*/, "").slice(0, 60);
    const name = query && prompt("Name of the statement", first);
    if (!name) return;
    keep([...load().filter((each) => each.name !== name), { name, query }]);
    say(`Saved as ${name}`);
  });

  // The schema.
  const search = bench.querySelector("[data-schema-search]");
  const none = bench.querySelector("[data-schema-none]");
  search.hidden = false;
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (all) => words.every((word) => all.toLowerCase().includes(word));
    let shown = 0;
    for (const each of details) {
      const head = text(each.querySelector("summary")) + text(each.querySelector("[data-doc]"));
      const terms = Array.from(each.querySelectorAll("dt"));
      const found = terms.filter((term) => fits(`${head} ${text(term)} ${text(term.nextElementSibling)}`));
      each.hidden = !found.length;
      each.open = found.length > 0 && !fits(head);
      for (const term of terms) term.hidden = term.nextElementSibling.hidden = !found.includes(term);
      shown += found.length > 0;
    }
    for (const each of macros) {
      each.hidden = !fits(text(each));
      shown += !each.hidden;
    }
    none.hidden = shown > 0;
  });
}
