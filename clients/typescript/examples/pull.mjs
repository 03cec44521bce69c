// Brings everything that a page needs into OUT_DIR, and says where it lies: node pull.mjs turn_1/files/page.html
import { Client } from "artifact-sidecar-client";

const client = await Client.connect({ role: "renderer" });
const { present, rehosted, missing } = await client.request("assets/pull", { path: process.argv[2] });
for (const asset of [...present, ...rehosted]) console.log(asset.physical_path);
for (const hole of missing) console.error(`${hole.path}: ${hole.reason}`);
await client.close();
process.exitCode = missing.length > 0 ? 1 : 0;
