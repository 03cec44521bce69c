/** The page of a preview: shows what the extension tells. Texts are set as text; nothing that an agent wrote is markup. */

import type { Told } from "../preview/editor";
import { showImage } from "./image";
import { showPdf } from "./pdf";
import { showTable } from "./table";
import { element } from "./elements";

declare function acquireVsCodeApi(): { postMessage(message: unknown): void };

const main = document.getElementById("main") as HTMLElement;
let gone = new AbortController();

async function show(told: Told): Promise<void> {
  gone.abort();
  gone = new AbortController();
  switch (told.kind) {
    case "image":
      return showImage(main, told, gone.signal);
    case "pdf":
      return showPdf(main, told, gone.signal);
    case "table":
      return showTable(main, told, gone.signal);
    case "nothing":
      main.replaceChildren(element("p", "note", told.note));
  }
}

window.addEventListener("message", ({ data }: MessageEvent<Told>) => {
  show(data).catch((error: unknown) => {
    main.replaceChildren(element("p", "note", `This cannot be shown: ${error instanceof Error ? error.message : String(error)}`));
  });
});

acquireVsCodeApi().postMessage({ say: "ready" });
