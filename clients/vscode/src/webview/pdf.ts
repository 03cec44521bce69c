/** A PDF, page under page; a page is drawn when it comes near the window. Scripts in it never run. */

import * as pdfjs from "pdfjs-dist/legacy/build/pdf.mjs";
import type { Told } from "../preview/editor";
import { bar, button, element } from "./elements";

type Pdf = Extract<Told, { kind: "image" | "pdf" }>;

const STEPS = [0.5, 0.75, 1, 1.25, 1.5, 2, 3];
const NEAR = "600px";

let worker: Promise<string> | undefined;

/** A worker may only come from the page's own origin, so it is fetched and handed over as a blob. */
function workerUrl(): Promise<string> {
  worker ??= fetch(document.body.dataset["worker"] ?? "")
    .then((answer) => answer.blob())
    .then((blob) => URL.createObjectURL(new Blob([blob], { type: "text/javascript" })));
  return worker;
}

export async function showPdf(main: HTMLElement, told: Pdf, gone: AbortSignal): Promise<void> {
  pdfjs.GlobalWorkerOptions.workerSrc = await workerUrl();
  const task = pdfjs.getDocument({
    data: told.bytes,
    isEvalSupported: false,
    enableXfa: false,
    standardFontDataUrl: document.body.dataset["fonts"],
    cMapUrl: document.body.dataset["cmaps"],
    cMapPacked: true,
    useWorkerFetch: false,
    useSystemFonts: false,
    stopAtErrors: false,
  });
  gone.addEventListener("abort", () => void task.destroy());
  const pdf = await task.promise;
  const sheets = element("div", "sheets");
  sheets.tabIndex = 0;
  let zoom = 1;
  const scale = element("span", "scale", "100 %");
  const step = (by: 1 | -1): void => {
    const next = by > 0 ? STEPS.find((one) => one > zoom) : STEPS.findLast((one) => one < zoom);
    zoom = next ?? zoom;
    scale.textContent = `${Math.round(zoom * 100)} %`;
    pages.forEach((page) => page.resize(zoom));
  };
  const tools = [button("−", "Smaller", () => step(-1)), scale, button("+", "Larger", () => step(1))];
  main.replaceChildren(bar([`${pdf.numPages} ${pdf.numPages === 1 ? "page" : "pages"}`, told.size], tools), sheets);
  const first = (await pdf.getPage(1)).getViewport({ scale: 1 });
  const fit = Math.min(1.5, Math.max(0.3, (sheets.clientWidth - 64) / first.width));
  const pages = Array.from({ length: pdf.numPages }, (_, i) => new Sheet(pdf, i + 1, fit, first));
  const near = new IntersectionObserver(
    (entries) => entries.forEach((entry) => entry.isIntersecting && pages.find((page) => page.frame === entry.target)?.draw()),
    { root: sheets, rootMargin: NEAR },
  );
  gone.addEventListener("abort", () => near.disconnect());
  pages.forEach((page) => {
    sheets.append(page.frame);
    near.observe(page.frame);
  });
}

class Sheet {
  readonly frame = element("div", "page");
  private drawn = 0;
  private zoom = 1;

  constructor(
    private readonly pdf: pdfjs.PDFDocumentProxy,
    private readonly number: number,
    private readonly fit: number,
    private size: { width: number; height: number },
  ) {
    this.frame.setAttribute("role", "img");
    this.frame.setAttribute("aria-label", `Page ${number}`);
    this.lay();
  }

  resize(zoom: number): void {
    this.zoom = zoom;
    this.lay();
    if (this.drawn > 0) {
      this.drawn = 0;
      void this.draw();
    }
  }

  async draw(): Promise<void> {
    const scale = this.fit * this.zoom;
    if (this.drawn === scale) {
      return;
    }
    this.drawn = scale;
    const page = await this.pdf.getPage(this.number);
    const sharp = Math.min(window.devicePixelRatio || 1, 2);
    const viewport = page.getViewport({ scale: scale * sharp });
    this.size = page.getViewport({ scale: 1 });
    this.lay();
    const canvas = element("canvas");
    canvas.width = Math.floor(viewport.width);
    canvas.height = Math.floor(viewport.height);
    await page.render({ canvas, viewport }).promise;
    if (this.drawn === scale) {
      this.frame.replaceChildren(canvas);
    }
  }

  private lay(): void {
    // Through the object model: the page's policy lets no style attributes in.
    this.frame.style.width = `${Math.floor(this.size.width * this.fit * this.zoom)}px`;
    this.frame.style.height = `${Math.floor(this.size.height * this.fit * this.zoom)}px`;
  }
}
