"use strict";

const find = (selector, within = document) => within.querySelector(selector);
const all = (selector) => document.querySelectorAll(selector);

/** Sends a command; gives the answer, or throws with the server's own words. */
async function send(method, path, body) {
  const request = { method, credentials: "same-origin" };
  if (body !== undefined) {
    request.headers = { "Content-Type": "application/json" };
    request.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, request);
  } catch {
    throw new Error("Waypost does not answer. Try again in a moment.");
  }
  if (answer.status === 401 && path !== "/dashboard/sign-in") {
    location.assign("/dashboard/sign-in?next=" + encodeURIComponent(location.pathname));
  }
  const text = await answer.text();
  const read = text ? JSON.parse(text) : {};
  if (!answer.ok) throw new Error(read.error || "Something went wrong.");
  return { ...read, position: answer.headers.get("Waypost-Position") };
}

/** The same page once it shows what was done. */
function showAgain(position, path = location.pathname) {
  const address = new URL(path, location.href);
  if (position) address.searchParams.set("position", position);
  location.assign(address);
}

function tell(place, error) {
  place.textContent = error ? error.message : "";
  place.hidden = !error;
}

/** Does something once at a time, and says what went wrong. */
async function attempt(button, place, doing) {
  tell(place);
  button.disabled = true;
  try {
    await doing();
  } catch (error) {
    tell(place, error);
  }
  button.disabled = false;
}

// The position has done its work; a reload later should not wait for it.
if (new URL(location.href).searchParams.has("position")) {
  const address = new URL(location.href);
  address.searchParams.delete("position");
  history.replaceState(null, "", address);
}

const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
for (const time of all("time")) {
  time.title = time.textContent;
  time.textContent = local.format(new Date(time.dateTime));
}

for (const button of all("dialog [data-close]")) {
  button.addEventListener("click", () => button.closest("dialog").close());
}

find("#sign-in")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  attempt(find("button", form), find(".fault", form), async () => {
    const { email, password } = Object.fromEntries(new FormData(form));
    await send("POST", "/dashboard/sign-in", { email, password });
    location.assign(form.dataset.next);
  });
});

find("#sign-out")?.addEventListener("click", ({ target }) =>
  attempt(target, find("#notice"), async () => {
    await send("POST", "/dashboard/sign-out");
    location.assign("/dashboard/sign-in");
  }));

find("#organization")?.addEventListener("change", ({ target }) => {
  document.cookie = `waypost_organization=${encodeURIComponent(target.value)}; Path=/dashboard; SameSite=Strict`;
  location.assign("/dashboard");
});

/** What a person has written as JSON. */
function read(text) {
  try {
    return JSON.parse(text.trim() || "{}");
  } catch {
    throw new Error("This is no JSON.");
  }
}

const run = find("#run-form");
for (const button of all("[data-run]")) {
  button.addEventListener("click", () => {
    find("#run-name").textContent = button.dataset.name;
    run.dataset.workflow = button.dataset.run;
    tell(find(".fault", run));
    run.showModal();
  });
}
run?.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(find("[type=submit]", run), find(".fault", run), async () => {
    const path = `/dashboard/workflows/${encodeURIComponent(run.dataset.workflow)}/run`;
    const { runId, position } = await send("POST", path, read(find("#run-payload").value));
    showAgain(position, `/dashboard/runs/${runId}`);
  });
});

const form = find("#key-form");
find("#new-key")?.addEventListener("click", () => form.showModal());
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const fault = find(".fault", form);
  const given = new FormData(find("form", form));
  attempt(find("[type=submit]", form), fault, async () => {
    const wanted = {
      name: given.get("name"),
      scopes: given.getAll("scope"),
      rateLimit: Number(given.get("rateLimit")),
    };
    if (given.get("expiresAt")) wanted.expiresAt = new Date(given.get("expiresAt")).toISOString();
    const made = await send("POST", "/dashboard/keys", wanted);
    form.close();
    showKey(made);
  });
});

function showKey({ key, position }) {
  const dialog = find("#key-made");
  find("#key-text").textContent = key;
  find("#copy-key").addEventListener("click", async () => {
    await navigator.clipboard.writeText(key);
    find("#copied").textContent = "Copied.";
  });
  dialog.addEventListener("close", () => showAgain(position));
  dialog.showModal();
}

for (const button of all("[data-revoke]")) {
  button.addEventListener("click", () => {
    const dialog = find("#key-revoke");
    find("#revoke-name").textContent = button.dataset.name;
    tell(find(".fault", dialog));
    find("#revoke-key").onclick = ({ target }) =>
      attempt(target, find(".fault", dialog), async () => {
        const { position } = await send("DELETE", `/dashboard/keys/${button.dataset.revoke}`);
        showAgain(position);
      });
    dialog.showModal();
  });
}
