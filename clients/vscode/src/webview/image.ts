/** A picture: as large as fits, or pixel by pixel, on a ground that shows what is transparent. */

import type { Told } from "../preview/editor";
import { bar, button, element } from "./elements";

type Image = Extract<Told, { kind: "image" | "pdf" }>;

export async function showImage(main: HTMLElement, told: Image, gone: AbortSignal): Promise<void> {
  const url = URL.createObjectURL(new Blob([told.bytes as BlobPart], { type: told.mime }));
  gone.addEventListener("abort", () => URL.revokeObjectURL(url));
  const picture = element("img", "picture");
  picture.alt = told.name;
  picture.src = url;
  await picture.decode();
  if (gone.aborted) {
    return;
  }
  const stage = element("div", "stage fitted");
  stage.tabIndex = 0;
  stage.append(picture);
  const toggle = button("1:1", "Show it pixel by pixel", () => {
    const fitted = stage.classList.toggle("fitted");
    toggle.textContent = fitted ? "1:1" : "Fit";
    toggle.title = fitted ? "Show it pixel by pixel" : "Fit it into the window";
  });
  picture.addEventListener("click", () => toggle.click());
  const pixels = picture.naturalWidth > 0 ? `${picture.naturalWidth} × ${picture.naturalHeight}` : "";
  main.replaceChildren(bar([pixels, told.size], [toggle]), stage);
}
