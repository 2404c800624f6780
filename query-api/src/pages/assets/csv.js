"use strict";

/** How much of a file is read at a time: little enough that the page stays quick. */
const SLICE = 1024 * 1024;

/** The text of a file piece by piece, each with how many bytes have been read by then. */
async function* piecesOf(file) {
  const decoder = new TextDecoder(await encodingOf(file));
  for (let at = 0; at < file.size; at += SLICE) {
    const bytes = await file.slice(at, at + SLICE).arrayBuffer();
    const read = Math.min(at + SLICE, file.size);
    yield { text: decoder.decode(bytes, { stream: read < file.size }), read };
  }
}

/** UTF-8, unless the beginning is none: then what spreadsheets on Windows write. */
async function encodingOf(file) {
  const bytes = await file.slice(0, SLICE).arrayBuffer();
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true });
    return "utf-8";
  } catch {
    return "windows-1252";
  }
}

/** The separator of a CSV: whichever its first line has most of. */
function separatorOf(text) {
  const line = text.split(/\r?\n/, 1)[0].replace(/"[^"]*"/g, "");
  const counts = [",", ";", "\t"].map((one) => [line.split(one).length, one]);
  return counts.reduce((best, one) => (one[0] > best[0] ? one : best))[1];
}

/** Cuts text into rows of cells as RFC 4180 has them, whatever pieces it comes in. */
class CsvReader {
  constructor(separator) {
    this.separator = separator;
    this.row = [];
    this.cell = "";
    this.quoted = false;
    this.closing = false;
  }

  /** The rows that are whole by now. */
  take(text, ended = false) {
    const rows = [];
    for (let at = 0; at < text.length; at++) {
      const character = text[at];
      if (this.quoted && !this.closing) {
        const quote = text.indexOf('"', at);
        const end = quote < 0 ? text.length : quote;
        this.cell += text.slice(at, end);
        if (quote >= 0) this.closing = true;
        at = end;
      } else if (this.closing && character === '"') {
        this.cell += '"';
        this.closing = false;
      } else {
        if (this.closing) this.quoted = this.closing = false;
        if (character === '"' && this.cell === "") this.quoted = true;
        else if (character === this.separator) this.endCell();
        else if (character === "\n") this.endRow(rows);
        else if (character !== "\r") this.cell += character;
      }
    }
    if (ended && (this.cell !== "" || this.row.length)) this.endRow(rows);
    return rows;
  }

  endCell() {
    this.row.push(this.cell);
    this.cell = "";
  }

  endRow(rows) {
    this.endCell();
    this.quoted = this.closing = false;
    if (this.row.length > 1 || this.row[0].trim() !== "") rows.push(this.row);
    this.row = [];
  }
}

/** The rows of a CSV file, the first of them its header, in arrays as they are read. */
async function* rowsOf(file) {
  let reader = null;
  for await (const { text, read } of piecesOf(file)) {
    reader ??= new CsvReader(separatorOf(text));
    yield { rows: reader.take(text, read === file.size), read };
  }
}

/** The lines of an NDJSON file, in arrays as they are read. */
async function* linesOf(file) {
  let rest = "";
  for await (const { text, read } of piecesOf(file)) {
    const lines = (rest + text).split("\n");
    rest = read === file.size ? "" : lines.pop();
    yield { rows: lines.filter((line) => line.trim() !== "").map((line) => [line]), read };
  }
}

/** A cell as it stands in a CSV. One that a spreadsheet would run is told apart by a quote. */
function csvCell(text) {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^[+-]?\d+(\.\d+)?$/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
