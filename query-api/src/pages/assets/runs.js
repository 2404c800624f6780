"use strict";

/** One run: cancel or retry. The buttons may be redrawn while the run is watched. */
const shownRun = find("#run");
shownRun?.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-do]");
  if (!button) return;
  attempt(button, find("#run-fault"), async () => {
    const id = encodeURIComponent(shownRun.dataset.runId);
    const { position } = await send("POST", `/dashboard/api/v1/runs/${id}/${button.dataset.do}`);
    showAgain(position);
  });
});

/** All runs that match the filter: first how many, then a few at a time, until somebody stops. */
const allRuns = find("#all-runs");
const WORDS = { cancel: ["Cancel", "cancelled"], retry: ["Retry", "retried"] };
const AT_ONCE = 4;
let working = false;

for (const button of all("[data-all]")) {
  button.addEventListener("click", () =>
    attempt(button, find("#runs-fault"), () => askForAll(button.dataset.all)));
}

function matching(action) {
  const address = new URL("/dashboard/runs/matching", location.href);
  for (const name of ["workflow", "state", "from", "to"]) {
    const value = new URL(location.href).searchParams.get(name);
    if (value) address.searchParams.set(name, value);
  }
  address.searchParams.set("action", action);
  address.searchParams.set("limit", "100");
  return address.pathname + address.search;
}

async function askForAll(action) {
  const [verb] = WORDS[action];
  const { count, more } = await send("GET", matching(action));
  const runs = `${count.toLocaleString()}${more ? "+" : ""} ${count === 1 ? "run" : "runs"}`;
  find("#all-title").textContent = `${verb} ${runs}?`;
  find("#all-text").textContent = count
    ? "This works through the runs that match the filter, newest first. You can stop at any time."
    : "No run that matches the filter can be changed this way.";
  find("#all-status").textContent = "";
  find("#all-progress").hidden = true;
  tell(find(".fault", allRuns));
  const go = find("#all-go");
  go.hidden = !count;
  go.textContent = `${verb} ${runs}`;
  go.onclick = () => attempt(go, find(".fault", allRuns), () => doAll(action, count));
  allRuns.showModal();
}

async function doAll(action, count) {
  const [, done] = WORDS[action];
  const progress = find("#all-progress");
  progress.hidden = false;
  progress.max = count;
  working = true;
  find("#all-stop").textContent = "Stop";
  const told = { done: 0, left: 0, last: null, error: null };
  try {
    for (let page = matching(action); page && working;) {
      const { runs, next } = await send("GET", page);
      const queue = runs.map(({ id }) => id);
      await Promise.all(Array.from({ length: AT_ONCE }, () => work(queue, action, told, () => {
        progress.value = told.done + told.left;
        find("#all-status").textContent = `${told.done} of ${count} ${done}` + (told.left ? `, ${told.left} left as they are` : "");
      })));
      if (told.error) throw told.error;
      page = next;
    }
    find("#all-status").textContent += working ? ". Done." : ". Stopped.";
  } finally {
    working = false;
    find("#all-stop").textContent = "Close";
    find("#all-go").hidden = true;
    allRuns.addEventListener("close", () => showAgain(told.last, location.pathname + location.search), { once: true });
  }
}

async function work(queue, action, told, tellMore) {
  while (working && !told.error && queue.length) {
    const id = queue.shift();
    try {
      const { position } = await send("POST", `/dashboard/api/v1/runs/${encodeURIComponent(id)}/${action}`);
      told.done += 1;
      told.last = position;
    } catch (error) {
      // A run that has moved on in the meantime stays as it is; any other error ends the work.
      if (error.status !== 409) told.error = error;
      told.left += 1;
    }
    tellMore();
  }
}

find("#all-stop")?.addEventListener("click", () => {
  if (working) working = false;
  else allRuns.close();
});
allRuns?.addEventListener("cancel", (event) => { if (working) event.preventDefault(); });
