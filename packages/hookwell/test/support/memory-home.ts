import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";

/**
 * A directory in memory where the system has one with so much room (bytes), else the ordinary one for temporary
 * files. What tests keep there is not meant to outlive the machine, and making and dropping databases, thousands of
 * files, would be most of what they do on a disk. A process that is killed loses nothing there either.
 */
export function memoryHome(room: number): string {
  try {
    const { bavail, bsize } = statfsSync("/dev/shm");
    if (bavail * bsize > room) return "/dev/shm";
  } catch {
    // Not on this system.
  }
  return tmpdir();
}
