import { type AppStateLike, platform } from "./platform.js";

/** What a socket wants to know of the platform. */
export interface Watcher {
  /** The app went to the background. */
  away(): void;
  /** The app is before the user again. */
  back(): void;
  /** Connections may have died, or be possible again. */
  changed(): void;
}

/** Watches the app of a phone, or the page of a browser; elsewhere nothing. Gives back how to stop. */
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
  // A page keeps its connection out of sight, so that its title and sound can tell of something.
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
