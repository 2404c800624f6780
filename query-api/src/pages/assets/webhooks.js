"use strict";

const HOOKS = "/dashboard/api/v1/webhooks";
const hookForm = find("#webhook-form");
const hookShown = find("#webhook");
const hookPath = hookShown && `${HOOKS}/${encodeURIComponent(hookShown.dataset.id)}`;

/** Shows the secret once; closing reloads the page. */
function showSecret({ secret, position }, next) {
  const shown = { place: find("#secret-text"), button: find("#copy-secret"), done: find("#secret-copied") };
  showOnce(find("#secret-made"), secret, shown, () => showAgain(position, next));
}

find("#new-webhook")?.addEventListener("click", () => hookForm.showModal());
find("#edit-webhook")?.addEventListener("click", () => hookForm.showModal());
hookForm?.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(find("[type=submit]", hookForm), find(".fault", hookForm), async () => {
    const given = new FormData(find("form", hookForm));
    const events = given.get("events").split(",").map((one) => one.trim()).filter(Boolean);
    const wanted = { url: given.get("url"), events };
    if (hookPath) {
      const { position } = await send("PATCH", hookPath, wanted);
      return showAgain(position);
    }
    if (given.get("description")) wanted.description = given.get("description");
    if (!events.length) delete wanted.events;
    const made = await send("POST", HOOKS, wanted);
    hookForm.close();
    showSecret(made, `/dashboard/webhooks/${encodeURIComponent(made.id)}`);
  });
});

/** Acts without asking; the page's notice shows what went wrong. */
function onClick(id, doing) {
  find(id)?.addEventListener("click", ({ currentTarget }) =>
    attempt(currentTarget, find("#notice"), doing));
}

onClick("#test-webhook", async () => {
  const { position } = await send("POST", `${hookPath}/test`);
  showAgain(position);
});
onClick("#switch-webhook", async () => {
  const status = hookShown.dataset.status === "DISABLED" ? "ENABLED" : "DISABLED";
  const { position } = await send("PATCH", hookPath, { status });
  showAgain(position);
});
for (const button of all("[data-replay]")) {
  button.addEventListener("click", () => attempt(button, find("#notice"), async () => {
    const { position } = await send("POST", `${hookPath}/replay`, { deliveryId: button.dataset.replay });
    showAgain(position);
  }));
}

/** Asks before an action that is irreversible or large. */
function sure(id, title, text, word, doing) {
  find(id)?.addEventListener("click", () => {
    const dialog = find("#webhook-sure");
    find("#sure-title").textContent = title;
    find("#sure-text").textContent = text;
    find("#sure").textContent = word;
    tell(find(".fault", dialog));
    find("#sure").onclick = ({ target }) =>
      attempt(target, find(".fault", dialog), () => doing(dialog));
    dialog.showModal();
  });
}

sure("#rotate-webhook", "Rotate the signing secret?",
  "A new secret is made and shown once. Requests are signed with both for a while, so that you can change over.",
  "Rotate", async (dialog) => {
    const made = await send("POST", `${hookPath}/rotate-secret`);
    dialog.close();
    showSecret(made);
  });
sure("#delete-webhook", "Delete this endpoint?",
  "Nothing is sent to it any more, and its deliveries are no longer shown. This cannot be undone.",
  "Delete", async () => {
    const { position } = await send("DELETE", hookPath);
    showAgain(position, "/dashboard/webhooks");
  });
sure("#replay-failed", "Replay all failed deliveries?",
  "All deliveries to this endpoint that are FAILED are sent again, with the webhook-id they had.",
  "Replay all", async (dialog) => {
    const { replayed, position } = await send("POST", `${hookPath}/replay`, { failed: true });
    if (replayed) return showAgain(position);
    dialog.close();
    tell(find("#notice"), new Error("No delivery to this endpoint has failed."));
  });
