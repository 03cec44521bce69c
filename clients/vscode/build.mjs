// Bundles the extension (one file for node), the preview page (one file for the browser, and the PDF worker beside it),
// and, with --units, the tests that need no editor.

import { cp, mkdir, readdir, rm } from "node:fs/promises";
import esbuild from "esbuild";

const production = process.argv.includes("--production");
const common = { bundle: true, minify: production, sourcemap: !production, logLevel: "warning" };
const node = { ...common, platform: "node", target: "node20", format: "cjs" };

const extension = {
  ...node,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  external: ["vscode"],
};
const page = {
  ...common,
  platform: "browser",
  target: "chrome128",
  format: "esm",
  entryPoints: { preview: "src/webview/main.ts", "pdf.worker": "pdfjs-dist/legacy/build/pdf.worker.min.mjs" },
  outdir: "dist/webview",
  outExtension: { ".js": ".mjs" },
};

if (process.argv.includes("--units")) {
  const tests = (await readdir("test")).filter((name) => name.endsWith(".test.ts"));
  await esbuild.build({
    ...node,
    entryPoints: tests.map((name) => `test/${name}`),
    outdir: "dist-test",
    outExtension: { ".js": ".cjs" },
  });
} else if (process.argv.includes("--watch")) {
  await Promise.all([extension, page].map(async (one) => (await esbuild.context(one)).watch()));
} else {
  await rm("dist", { recursive: true, force: true });
  await mkdir("dist/webview", { recursive: true });
  await Promise.all([extension, page].map((one) => esbuild.build(one)));
  await cp("src/webview/style.css", "dist/webview/style.css");
  for (const folder of ["standard_fonts", "cmaps"]) {
    await cp(`node_modules/pdfjs-dist/${folder}`, `dist/webview/${folder}`, { recursive: true });
  }
  await cp("../../LICENSE", "LICENSE");
}
