"use strict";
// Texts are data: they reach the page by textContent alone.
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const keys = { a: "first", b: "second", t: "tie", x: "both_bad", s: "skip" };
let rater = null, order = [], votes = [], shownAt = 0;

function place(number) { return "judgeline-vote:" + data.page + ":" + number; }

function warn(text) { at("warning").textContent = text; at("warning").hidden = false; }

function load(number) {
  try {
    const kept = JSON.parse(localStorage.getItem(place(number)) || "null");
    return kept && Array.isArray(kept.votes) ? kept : null;
  } catch (error) { return null; }
}

function keep() {
  try {
    localStorage.setItem(place(rater.number), JSON.stringify({ name: rater.name, votes }));
  } catch (error) { warn("This browser keeps nothing: save your votes before you close the page."); }
}

function show() {
  const next = order[votes.length], done = next === undefined;
  at("progress").max = order.length;
  at("progress").value = votes.length;
  at("status").textContent = done
    ? "All " + order.length + " battles are done: save your votes to a file. Thank you."
    : "Battle " + (votes.length + 1) + " of " + order.length + ".";
  at("battle").hidden = done;
  for (const button of document.querySelectorAll("[data-choice]")) button.hidden = done;
  at("undo").disabled = !votes.length;
  at("save").disabled = !votes.length;
  if (done) return at("save").focus();
  const battle = data.battles[next.key], sides = [battle.a, battle.b];
  if (next.first === "b") sides.reverse();
  at("question").textContent = battle.question;
  at("first").textContent = sides[0];
  at("second").textContent = sides[1];
  shownAt = Date.now();
  at("question-title").focus();
  scrollTo(0, 0);
}

function vote(choice) {
  const next = order[votes.length];
  if (!rater || next === undefined) return;
  votes.push({
    page: data.page, key: next.key, rater: rater.name, rater_number: rater.number,
    place: next.place, n_possible: data.n_possible, probability: next.probability,
    shown_first: next.first, choice, time: new Date().toISOString(),
    seconds: Math.round((Date.now() - shownAt) / 100) / 10,
  });
  keep();
  show();
}

function undo() {
  if (!rater || !votes.length) return;
  votes.pop();
  keep();
  show();
}

function save() {
  const lines = votes.map((one) => JSON.stringify(one) + "\n").join("");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines], { type: "application/x-ndjson" }));
  link.download = "votes-" + data.page + "-" + rater.number + ".jsonl";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function begin(event) {
  event.preventDefault();
  const number = Number(at("number").value), kept = load(number), name = at("name").value.trim();
  if (!name) return;
  rater = { name: kept && kept.votes.length ? kept.name : name, number };
  order = data.raters[number - 1];
  votes = kept ? kept.votes.slice(0, order.length) : [];
  if (rater.name !== name) warn("Number " + number + " goes on as " + rater.name + ".");
  at("start").hidden = true;
  at("desk").hidden = false;
  keep();
  show();
}

at("told").textContent = data.told;
data.raters.forEach((_, index) => {
  const option = document.createElement("option");
  const kept = load(index + 1);
  option.value = index + 1;
  option.textContent = index + 1 + (kept && kept.votes.length
    ? " (" + kept.name + ", " + kept.votes.length + " votes)" : "");
  at("number").append(option);
});
at("start").addEventListener("submit", begin);
for (const button of document.querySelectorAll("[data-choice]")) {
  button.addEventListener("click", () => vote(button.dataset.choice));
}
at("undo").addEventListener("click", undo);
at("save").addEventListener("click", save);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const key = event.key.toLowerCase();
  if (key === "u") undo();
  else if (Object.hasOwn(keys, key)) vote(keys[key]);
});
