// The page around the charts: tabs, experiments to choose from, light and dark, code to copy.

function tabs(list) {
  const all = [...list.querySelectorAll("[role=tab]")];
  const open = (tab, focus) => {
    for (const other of all) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).classList.toggle("open", chosen);
    }
    if (focus) tab.focus();
    list.scrollLeft = tab.offsetLeft - (list.clientWidth - tab.offsetWidth) / 2;
  };
  list.addEventListener("click", (e) => {
    const tab = e.target.closest("[role=tab]");
    if (!tab) return;
    open(tab);
    try { history.replaceState(null, "", `#${tab.getAttribute("aria-controls")}`); } catch { /* a sandboxed frame has no history */ }
  });
  list.addEventListener("keydown", (e) => {
    const here = all.indexOf(document.activeElement), last = all.length - 1;
    const next = { ArrowRight: here === last ? 0 : here + 1, ArrowLeft: here ? here - 1 : last, Home: 0, End: last }[e.key];
    if (next === undefined || here < 0) return;
    e.preventDefault();
    open(all[next], true);
  });
  const asked = all.find((tab) => `#${tab.getAttribute("aria-controls")}` === location.hash);
  open(asked || all[0]);
}

function picker(select) {
  const show = () => {
    for (const option of select.options) document.getElementById(option.value).classList.toggle("open", option.selected);
  };
  select.addEventListener("change", show);
  show();
}

function theme(button) {
  const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => {
    button.setAttribute("aria-label", dark() ? "Switch to light" : "Switch to dark");
    button.title = button.getAttribute("aria-label");
  };
  button.addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; name(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  name();
}

function copier(button) {
  button.addEventListener("click", async () => {
    const code = document.getElementById(button.dataset.copies).textContent;
    try { await navigator.clipboard.writeText(code); button.textContent = "Copied"; } catch { button.textContent = "Select and copy"; }
  });
}

document.documentElement.classList.add("js");
document.querySelectorAll("[role=tablist]").forEach(tabs);
document.querySelectorAll("select.picker").forEach(picker);
document.querySelectorAll("button.theme").forEach(theme);
document.querySelectorAll("button[data-copies]").forEach(copier);
const charts = JSON.parse(document.getElementById("charts").textContent);
const plots = [...document.querySelectorAll(".plot")].map((host) => new Plot(host, charts[Number(host.dataset.chart)]));
plots.forEach((plot) => plot.draw()); // once more: linked charts share their ends, and now all of them are known
addEventListener("beforeprint", () => plots.forEach((plot) => plot.draw()));
