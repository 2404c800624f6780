import type { QueueStorage } from "../../dist/index.js";

/** A storage like React Native's AsyncStorage: everything takes time. */
export class Memory implements QueueStorage {
  readonly kept = new Map<string, string>();

  async getItem(key: string): Promise<string | null> {
    await Promise.resolve();
    return this.kept.get(key) ?? null;
  }

  async setItem(key: string, value: string): Promise<void> {
    await Promise.resolve();
    this.kept.set(key, value);
  }

  async removeItem(key: string): Promise<void> {
    await Promise.resolve();
    this.kept.delete(key);
  }
}
