// What only Node can do: files.
import type { Export } from "./export.js";

/** What is used of `node:fs/promises`, stated by shape so that no types of Node are needed. */
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
 * Writes an export into a file, which is there only when it is whole: until then it is called
 * `<path>.part`. It begins anew where the connection breaks. Gives back its size in bytes.
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
