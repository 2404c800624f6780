"use strict";

const find = (selector, within = document) => within.querySelector(selector);
const all = (selector) => document.querySelectorAll(selector);

/**
 * Sends a command; returns the answer, or throws with the server's message. A body given as `text`
 * is sent unchanged.
 */
async function send(method, path, body, { signIn = true, headers = {}, text } = {}) {
  const request = { method, credentials: "same-origin", headers: { ...headers } };
  if (body !== undefined || text !== undefined) {
    request.headers["Content-Type"] = "application/json";
    request.body = text ?? JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, request);
  } catch {
    throw new Error("Waypost does not answer. Try again in a moment.");
  }
  if (answer.status === 401 && signIn && path !== "/dashboard/sign-in") {
    location.assign("/dashboard/sign-in?next=" + encodeURIComponent(location.pathname));
  }
  const told = await answer.text();
  const read = told ? JSON.parse(told) : {};
  if (!answer.ok) throw Object.assign(new Error(read.error || "Something went wrong."), { status: answer.status });
  return { ...read, position: answer.headers.get("Waypost-Position") };
}

/** Opens the page once it shows the change. */
function showAgain(position, path = location.pathname) {
  const address = new URL(path, location.href);
  if (position) address.searchParams.set("position", position);
  location.assign(address);
}

function tell(place, error) {
  place.textContent = error ? error.message : "";
  place.hidden = !error;
}

/** Runs an action once at a time, and shows its error. The button keeps its focus meanwhile. */
async function attempt(button, place, doing) {
  if (button.ariaDisabled === "true") return;
  tell(place);
  button.ariaDisabled = "true";
  try {
    await doing();
  } catch (error) {
    tell(place, error);
  }
  button.ariaDisabled = null;
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

/** Parses JSON written by a person. */
function read(text) {
  try {
    return JSON.parse(text.trim() || "{}");
  } catch {
    throw new Error("Not valid JSON.");
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
  const shown = { place: find("#key-text"), button: find("#copy-key"), done: find("#copied") };
  showOnce(find("#key-made"), key, shown, () => showAgain(position));
}

for (const button of all("[data-revoke]")) {
  button.addEventListener("click", () => {
    const dialog = find("#key-revoke");
    find("#revoke-name").textContent = button.dataset.name;
    tell(find(".fault", dialog));
    find("#revoke-key").onclick = ({ target }) =>
      attempt(target, find(".fault", dialog), async () => {
        const given = find("#revoke-given").checked ? "?given=true" : "";
        const path = `/dashboard/keys/${button.dataset.revoke}${given}`;
        const { position } = await send("DELETE", path);
        showAgain(position);
      });
    dialog.showModal();
  });
}

/** Shows a secret once, to be copied. */
function showOnce(dialog, text, { place, button, done }, closed) {
  place.textContent = text;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    done.textContent = "Copied.";
  });
  dialog.addEventListener("close", closed);
  dialog.showModal();
}

const invite = find("#invite-form");
find("#invite-person")?.addEventListener("click", () => invite.showModal());
invite?.addEventListener("submit", (event) => {
  event.preventDefault();
  const email = find("#invite-email").value;
  attempt(find("[type=submit]", invite), find(".fault", invite), async () => {
    const { link } = await send("POST", "/dashboard/people", { email });
    invite.close();
    find("#invite-for").textContent = email;
    const shown = { place: find("#invite-link"), button: find("#copy-invite"), done: find("#invite-copied") };
    showOnce(find("#invite-made"), link, shown, () => showAgain());
  });
});

/** Asks before somebody is removed or an invite is taken back. */
function askToRemove({ name, what, text, path, next }) {
  const dialog = find("#person-remove");
  find("#remove-name").textContent = name;
  find("#remove-what").textContent = what;
  find("#remove-text").textContent = text;
  tell(find(".fault", dialog));
  find("#remove-person").onclick = ({ target }) =>
    attempt(target, find(".fault", dialog), async () => {
      await send("DELETE", path);
      location.assign(next);
    });
  dialog.showModal();
}

for (const button of all("[data-remove]")) {
  const own = "own" in button.dataset;
  button.addEventListener("click", () => askToRemove({
    name: own ? "this organization" : button.dataset.name,
    what: own ? "Leave" : "Remove",
    text: "They lose access within a second. Keys keep working: revoke those that nobody should have any more.",
    path: `/dashboard/people/${button.dataset.remove}`,
    next: own ? "/dashboard" : location.pathname,
  }));
}
for (const button of all("[data-withdraw]")) {
  button.addEventListener("click", () => askToRemove({
    name: button.dataset.name,
    what: "Withdraw the invitation of",
    text: "The link will stop working.",
    path: `/dashboard/people/invites/${button.dataset.withdraw}`,
    next: location.pathname,
  }));
}

/** The page of an invite: its code is after the address's `#`, which no server sees. */
const acceptance = find("#invite-accept");
async function openInvite() {
  const code = location.hash.slice(1);
  const fault = find("#invite-fault");
  try {
    if (!code) throw new Error("This link is incomplete: copy the whole link.");
    const invited = await send("POST", "/dashboard/invite/look", { code }, { signIn: false });
    showInvite(code, invited);
  } catch (error) {
    tell(fault, error);
  }
  find("#invite-wait").hidden = true;
}

function showInvite(code, { organization, email, account, signedIn }) {
  find("#invite-organization").textContent = organization;
  find("#invite-address").textContent = email;
  find("#invite-new").hidden = account;
  find("#invite-name").required = !account;
  find("#invite-secret").hidden = signedIn;
  const password = find("#invite-password");
  password.required = !signedIn;
  password.autocomplete = account ? "current-password" : "new-password";
  if (!account) password.minLength = 8;
  find("#invite-hint").textContent = account
    ? "The password of your existing account with this address. If that account is not yours, stop here and ask the person who invited you."
    : "At least 8 characters. An account will be created for you.";
  acceptance.hidden = false;
  acceptance.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(find("button", acceptance), find(".fault", acceptance), async () => {
      const accepted = { code };
      if (!account) accepted.name = find("#invite-name").value;
      if (!signedIn) accepted.password = password.value;
      await send("POST", "/dashboard/invite/accept", accepted, { signIn: false });
      if (!signedIn) await send("POST", "/dashboard/sign-in", { email, password: password.value });
      location.assign("/dashboard");
    });
  });
}
if (acceptance) openInvite();
