/** Elements with text, and the bar above a preview. */

export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  className = "",
  text = "",
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

export function button(label: string, title: string, act: () => void): HTMLButtonElement {
  const made = element("button", "tool", label);
  made.type = "button";
  made.title = title;
  made.setAttribute("aria-label", title);
  made.addEventListener("click", act);
  return made;
}

/** What it is at the left, what can be done at the right. */
export function bar(facts: string[], tools: HTMLElement[]): HTMLElement {
  const made = element("header", "bar");
  const left = element("span", "facts");
  facts.filter((fact) => fact !== "").forEach((fact) => left.append(element("span", "fact", fact)));
  const right = element("span", "tools");
  right.append(...tools);
  made.append(left, right);
  return made;
}
