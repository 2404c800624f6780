// Files, only for Node.
import type { Export } from "./export.js";

/** The used part of `node:fs/promises`, declared here so that Node's types are not needed. */
interface Files {
  open(
    path: string,
    flags: "w",
  ): Promise<{
    writeFile(data: Uint8Array): Promise<void>;
    sync(): Promise<void>;
    close(): Promise<void>;
  }>;
  rename(from: string, to: string): Promise<void>;
  rm(path: string, options: { force: boolean }): Promise<void>;
}

/**
 * Writes an export to a file, which exists only once it is complete: until then it is called
 * `<path>.part`. Starts over if the connection breaks. Returns the size in bytes.
 */
export async function saveExport(file: Export, path: string): Promise<number> {
  const name = "node:fs/promises";
  const { open, rename, rm } = (await import(name)) as Files;
  const part = `${path}.part`;
  try {
    const bytes = await file.read(async ({ chunks }) => {
      const handle = await open(part, "w");
      try {
        let written = 0;
        for await (const chunk of chunks) {
          await handle.writeFile(chunk);
          written += chunk.length;
        }
        await handle.sync();
        return written;
      } finally {
        await handle.close();
      }
    });
    await rename(part, path);
    return bytes;
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}
