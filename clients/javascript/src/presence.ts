import { type AppStateLike, platform } from "./platform.js";

/** The platform's events for a socket. */
export interface Watcher {
  /** The app went to the background. */
  away(): void;
  /** The app is in the foreground again. */
  back(): void;
  /** Connections may have died, or be possible again. */
  changed(): void;
}

/** Watches a phone's app or a browser's page; elsewhere nothing. Returns a function that stops it. */
export function watchPlatform(appState: AppStateLike | undefined, watcher: Watcher): () => void {
  if (appState) {
    const subscription = appState.addEventListener("change", (state) => {
      if (state === "active") {
        watcher.back();
      } else if (state === "background") {
        watcher.away();
      }
    });
    return () => subscription.remove();
  }
  const { document } = platform;
  if (!document || !platform.addEventListener) {
    return () => undefined;
  }
  // A hidden page keeps its connection, so that its title and sound can report something.
  const seen = (): void => {
    if (document.visibilityState === "visible") {
      watcher.changed();
    }
  };
  const online = (): void => watcher.changed();
  document.addEventListener("visibilitychange", seen);
  platform.addEventListener("online", online);
  return () => {
    document.removeEventListener("visibilitychange", seen);
    platform.removeEventListener?.("online", online);
  };
}
