// Moves the pages without loading them anew. Without this script they are plain forms and links.
const LONGEST_LINK = 24000;  // characters; a longer config is sent as a body and has no link
const swapped = document.querySelectorAll("[data-swap]");
const answer = document.getElementById("answer");
const narrow = matchMedia("(max-width: 800px)");
let latest = new AbortController();

// The address of a form: what is empty, or as the page has it untouched, may still be said.
function addressOf(form) {
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value !== "") fields.append(name, value);
  for (const field of form.querySelectorAll("input[id]:not([type=checkbox], [type=range])"))
    if (field.value === "" && field.defaultValue !== "" && field.name) fields.append(field.name, "");
  const words = fields.toString();
  return new URL(form.getAttribute("action") + (words ? "?" + words : ""), location.href);
}

async function show(address, request = {}) {
  latest.abort();
  latest = new AbortController();
  answer.setAttribute("aria-busy", "true");
  try {
    const reply = await fetch(address, {...request, signal: latest.signal});
    const text = await reply.text();
    if ((reply.headers.get("content-type") || "").startsWith("text/html")) swap(text);
    else complain(text);
    answer.removeAttribute("aria-busy");
    return reply.ok;
  } catch (problem) {
    if (problem.name === "AbortError") return false;  // a newer one is on its way
    complain("The server does not answer; is archfit serve still running?");
    answer.removeAttribute("aria-busy");
    return false;
  }
}

function swap(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  for (const part of swapped) {
    const fresh = page.getElementById(part.id);
    if (fresh) part.replaceChildren(...fresh.childNodes);
  }
}

function complain(sentence) {
  const line = document.createElement("p");
  line.className = "problem";
  line.setAttribute("role", "alert");
  line.textContent = sentence;
  answer.replaceChildren(line);
}

async function go(address) {
  history.replaceState(null, "", address);
  if (await show(address)) drawAll();
}

async function send(form) {
  const address = addressOf(form);
  if (address.href.length <= LONGEST_LINK) return go(address);
  history.replaceState(null, "", form.getAttribute("action"));
  return show(form.getAttribute("action"), {method: "POST", body: new FormData(form).get("config")});
}

function later(work, milliseconds) {
  let timer = 0;
  return (...words) => { clearTimeout(timer); timer = setTimeout(() => work(...words), milliseconds); };
}

for (const form of document.querySelectorAll("form[data-live]")) {
  const soon = later(() => send(form), 150);
  form.addEventListener("submit", event => { event.preventDefault(); send(form); });
  form.addEventListener("input", event => { if (event.target.type !== "range") soon(); });
  if ("alone" in form.dataset)  // the other form of the page is another question
    form.addEventListener("input", () => {
      for (const other of document.querySelectorAll("form[data-alone]"))
        if (other !== form) for (const field of other.querySelectorAll("input, textarea")) field.value = "";
    });
  else form.querySelectorAll("button").forEach(button => { button.hidden = true; });  // it follows each move
}

document.addEventListener("click", event => {
  const link = event.target.closest("a[data-live]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const fields = new URL(link.href).searchParams, words = link.textContent;
  for (const name of ["sort", "down"]) document.querySelector(`input[name=${name}]`).value = fields.get(name) || "";
  go(link.href).then(() => [...answer.querySelectorAll("a[data-live]")].find(one => one.textContent === words)?.focus());
});

// Sliders: powers of ten between their ends, kept in step with the field beside them.
const SUFFIXES = {"": 1, K: 1e3, M: 1e6, B: 1e9, G: 1e9, T: 1e12};

function sizeOf(text) {
  const match = /^\s*(\d+(?:\.\d+)?(?:e\+?\d{1,3})?)([KMBGT]?)B?\s*$/i.exec(text);
  return match ? Number(match[1]) * SUFFIXES[match[2].toUpperCase()] : NaN;
}

function written(size) {
  const rounded = size < 1000 ? Math.round(size) : Number(size.toPrecision(3));
  for (const letter of ["T", "B", "M"])
    if (rounded >= SUFFIXES[letter]) return Number((rounded / SUFFIXES[letter]).toPrecision(6)) + letter;
  return String(rounded);
}

function endsOf(slider, form) {
  const counts = form.elements.of;
  if (slider.dataset.for === "budget" && counts && counts.value === "flops") return [15, 26];
  return [Number(slider.dataset.low), Number(slider.dataset.high)];
}

for (const slider of document.querySelectorAll("input.slider")) {
  const form = slider.form, field = form.elements[slider.dataset.for];
  const follow = () => {
    const [low, high] = endsOf(slider, form);
    const size = sizeOf(field.value || field.placeholder);
    if (size > 0) slider.value = (Math.log10(size) - low) / (high - low);
    slider.setAttribute("aria-valuetext", field.value || field.placeholder);
  };
  slider.step = 0.005;
  slider.hidden = false;
  follow();
  form.addEventListener("input", event => { if (event.target !== slider) follow(); });
  slider.addEventListener("input", () => {
    const [low, high] = endsOf(slider, form);
    const size = 10 ** (low + slider.valueAsNumber * (high - low));
    field.value = size >= 1e15 ? size.toExponential(1).replace("e+", "e") : written(size);
    slider.setAttribute("aria-valuetext", field.value);
    field.dispatchEvent(new Event("input", {bubbles: true}));
  });
}

// Charts, each with an address of its own; one that is folded away is not asked for.
const drawn = new Map();

async function draw(figure) {
  const name = figure.dataset.chart;
  drawn.get(name)?.abort();
  const stop = new AbortController();
  drawn.set(name, stop);
  const query = name === "models" ? "" : location.search;
  try {
    const reply = await fetch(`chart/${narrow.matches ? "narrow" : "wide"}/${name}${query}`, {signal: stop.signal});
    if (reply.status === 429) return setTimeout(() => { if (!stop.signal.aborted) draw(figure); }, 1500);
    const chart = await reply.json();
    const caption = figure.querySelector(".caption"), box = figure.querySelector("[role=img]");
    const drawing = document.createElement("div");  // shown when it is there
    if (chart.spec) await drawChart(drawing, chart.spec);
    if (stop.signal.aborted) return undefined;
    box.replaceChildren(drawing);
    caption.textContent = chart.caption || chart.error;
    if (reply.ok) figure.querySelector("h2").textContent = chart.title;
    box.setAttribute("aria-label", chart.description || chart.error);
    figure.dataset.drawn = query;
  } catch (problem) {
    if (problem.name !== "AbortError") figure.querySelector(".caption").textContent = "The chart could not be drawn.";
  }
  return undefined;
}

const isShown = figure => !figure.closest("details:not([open])");
const drawShown = () => [...document.querySelectorAll("figure[data-chart]")].filter(isShown).forEach(draw);
const drawAll = later(() => document.querySelectorAll("figure[data-chart]").forEach(figure => {
  if (isShown(figure) && (figure.dataset.chart !== "models" || !("drawn" in figure.dataset))) draw(figure);
}), 250);

for (const folded of document.querySelectorAll("details")) folded.addEventListener("toggle", drawAll);
narrow.addEventListener("change", drawShown);
drawShown();
