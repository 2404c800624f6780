"use strict";

/** Operations requested by an installation's operator, and their progress. */
const OPERATIONS = "/dashboard/system/operations";
const sure = find("#operation-sure");
const fault = find("#operation-fault");

const letters = (count) => (count === "1" ? "1 dead letter" : `${count} dead letters`);

/** Returns the confirmation: a rebuild is much work, a skip is final, and all are many. */
function words({ ask, projection, letter, count }) {
  const of = letter ? `the dead letter ${projection}:${letter}` : `${letters(count)} of ${projection}`;
  if (ask === "rebuild") {
    return [`Rebuild ${projection}?`, "It is read anew from the first event, beside the rows that are read until the new ones replace them. That may take long; cancelled, it goes on from there the next time.", "Rebuild"];
  }
  if (ask === "skip") {
    return [`Skip ${of}?`, "Skipped events are left out of the projection for good, in later rebuilds too. What waits behind them is then taken in. This cannot be undone.", "Skip"];
  }
  return [`Retry ${of}?`, "Each is tried again, and what waits behind it is taken in after it.", "Retry"];
}

async function ask({ ask: kind, projection, letter, count, upTo }) {
  const body = { kind, projection };
  if (letter) body.letter = Number(letter);
  if (count) Object.assign(body, { count: Number(count), upTo: Number(upTo) });
  await command("POST", OPERATIONS, body);
}

/** Whether done or refused, the page then shows the current state. */
async function command(...sent) {
  try {
    await send(...sent);
  } finally {
    await readAgain().catch(() => {});
  }
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-ask], [data-cancel]");
  if (!button) return;
  const { cancel, ...asked } = button.dataset;
  if (cancel) {
    attempt(button, fault, () => command("DELETE", `${OPERATIONS}/${cancel}`));
    return;
  }
  if (asked.ask === "verify" || (asked.ask === "retry" && asked.letter)) {
    attempt(button, fault, () => ask(asked));
    return;
  }
  const [title, text, word] = words(asked);
  find("#operation-title").textContent = title;
  find("#operation-text").textContent = text;
  const doing = find("#operation-do");
  doing.textContent = word;
  doing.className = asked.ask === "skip" ? "danger" : "";
  tell(find(".fault", sure));
  doing.onclick = () => attempt(doing, find(".fault", sure), async () => {
    await ask(asked);
    sure.close();
  });
  const part = button.closest("[data-live]").dataset.live;
  sure.onclose = () => {
    // The browser returns focus to the button, unless the page was redrawn meanwhile.
    if (!button.isConnected) keepFocus(find(`[data-live="${part}"]`), button);
  };
  sure.showModal();
});

/** Reads the page as the server renders it now, and replaces what has changed. */
async function readAgain() {
  const answer = await fetch(location.pathname, { credentials: "same-origin" });
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const fresh of page.querySelectorAll("[data-live]")) {
    for (const time of fresh.querySelectorAll("time")) {
      time.title = time.textContent;
      time.textContent = local.format(new Date(time.dateTime));
    }
    replace(find(`[data-live="${fresh.dataset.live}"]`), fresh);
  }
}

/** Keeps open details, scrolling and focus; focus on what is gone goes to the heading. */
function replace(old, fresh) {
  for (const { dataset } of old.querySelectorAll("details[open]")) {
    find(`details[data-told="${dataset.told}"]`, fresh)?.setAttribute("open", "");
  }
  if (old.isEqualNode(fresh)) return;
  const held = old.contains(document.activeElement) && document.activeElement;
  const aside = find(".scroll", old)?.scrollLeft ?? 0;
  old.replaceWith(fresh);
  find(".scroll", fresh)?.scrollTo({ left: aside, behavior: "instant" });
  if (held) keepFocus(fresh, held);
}

function keepFocus(within, held) {
  (same(within, held) ?? find("h2", within)).focus({ preventScroll: true });
}

/** Finds the same element in a newer part of the page. */
function same(within, { tagName, dataset }) {
  const wanted = JSON.stringify(dataset);
  return [...within.querySelectorAll(tagName)].find((one) => JSON.stringify(one.dataset) === wanted);
}

/** Only while work is open and the page is visible. */
setInterval(() => {
  if (document.hidden || !find("[data-open]")) return;
  readAgain().catch(() => {});
}, 1_000);
