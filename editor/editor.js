// The editor of the page /sql: CodeMirror with DuckDB's words and the names of the lake.
import {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { SQLDialect, sql } from "@codemirror/lang-sql";
import { bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { Prec } from "@codemirror/state";
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

const duckdb = SQLDialect.define({
  keywords:
    "all and anti any array as asc asof between both by case cast coalesce collate columns cross " +
    "current_date current_timestamp default describe desc distinct else end except exclude exists " +
    "explain extract filter first following for from full glob group grouping having if ilike in inner " +
    "intersect interval into is isnull join lambda last lateral leading left like limit map natural not " +
    "notnull null nulls offset on only or order outer over overlaps partition pivot positional " +
    "preceding qualify range recursive replace respect right row rows sample select semi sets show " +
    "similar some struct summarize table tablesample then ties to trailing try_cast unbounded union " +
    "unpivot using values when where window with within",
  types:
    "bigint blob boolean decimal double float hugeint integer int smallint timestamp timestamptz " +
    "tinyint ubigint uhugeint uinteger usmallint utinyint uuid varchar",
  builtin: "",
  doubleDollarQuotedStrings: true,
  operatorChars: "*+-%<>!=&|~^/",
});

const WORD = /[\w@]+/;

// The columns of all views that the statement names, and every macro: what follows no dot.
function completeNames(views, macros) {
  const columns = new Map(
    views.map((view) => [
      view.name,
      view.columns.map((each) => ({ label: each.name, type: "property", detail: each.type, info: each.doc })),
    ]),
  );
  const functions = macros.map((each) => ({
    label: each.name,
    apply: `${each.name}(`,
    type: "function",
    detail: each.arguments,
    info: each.doc,
  }));
  return (context) => {
    const word = context.matchBefore(WORD);
    if (!word && !context.explicit) return null;
    const from = word ? word.from : context.pos;
    if (context.state.sliceDoc(from - 1, from) === ".") return null;
    const named = new Set(context.state.doc.toString().match(/\w+/g));
    const found = new Map();
    for (const name of named) for (const each of columns.get(name) ?? []) found.set(each.label, each);
    return { from, options: [...found.values(), ...functions], validFor: /^\w*$/ };
  };
}

// Returns an editor in the place of a text field: what is written stands in the field as well.
export function createEditor({ field, views, macros, nonce, label, run }) {
  const schema = Object.fromEntries(
    views.map((view) => [
      view.name,
      {
        self: { label: view.name, type: "type", info: view.doc },
        children: view.columns.map((each) => ({
          label: each.name,
          type: "property",
          detail: each.type,
          info: each.doc,
        })),
      },
    ]),
  );
  const language = sql({ dialect: duckdb, schema });
  const place = document.createElement("div");
  field.after(place);
  const view = new EditorView({
    parent: place,
    doc: field.value,
    extensions: [
      EditorView.cspNonce.of(nonce),
      Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (run(), true) }])),
      history(),
      lineNumbers(),
      drawSelection(),
      bracketMatching(),
      closeBrackets(),
      autocompletion({ icons: false, maxRenderedOptions: 60 }),
      language,
      duckdb.language.data.of({ autocomplete: completeNames(views, macros) }),
      syntaxHighlighting(classHighlighter),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) field.value = update.state.doc.toString();
      }),
      keymap.of([
        { key: "Tab", run: acceptCompletion },
        ...closeBracketsKeymap,
        ...completionKeymap,
        ...defaultKeymap,
        ...historyKeymap,
        indentWithTab,
      ]),
    ],
  });
  field.hidden = true;
  field.required = false; // a browser would refuse to submit what it cannot show as missing
  return {
    focus: () => view.focus(),
    insert: (text) => view.dispatch(view.state.replaceSelection(text)),
    set: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
  };
}
