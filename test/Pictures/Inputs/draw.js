// Runs a page's script on a document of its own, and prints what it drew: each
// section, and each figure with its value.
//
//     node draw.js PAGE
//
// The document has what the page uses of one, and no way to parse HTML.
"use strict";
const fs = require("fs");
const page = fs.readFileSync(process.argv[2], "utf8");
const data = /<script type="application\/json" id="report">([^]*?)<\/script>/.exec(page)[1];
const script = /<script>\n([^]*?)<\/script>/.exec(page)[1];

class Node {
  constructor(tag) { this.tag = tag; this.children = []; this.attributes = {}; this.listeners = {}; this.own = ""; }
  append(...nodes) { for (const node of nodes) this.children.push(node instanceof Node ? node : String(node)); }
  replaceChildren(...nodes) { this.children = []; this.append(...nodes); }
  setAttribute(key, value) { this.attributes[key] = String(value); }
  addEventListener(event, act) { (this.listeners[event] ||= []).push(act); }
  set textContent(text) { this.children = []; this.own = text; }
  get textContent() { return this.own + this.children.map(child => child instanceof Node ? child.textContent : child).join(""); }
  all() { return this.children.filter(child => child instanceof Node).flatMap(child => [child, ...child.all()]); }
  querySelectorAll(tag) { return this.all().filter(node => node.tag === tag); }
  getBoundingClientRect() { return {left: 0, width: 1100}; }
}
const byId = {};
for (const id of ["report", "main", "nav", "title", "words"]) byId[id] = new Node(id);
byId.report.textContent = data;
global.document = {getElementById: id => byId[id], createElement: tag => new Node(tag), createElementNS: (space, tag) => new Node(tag), title: "", documentElement: new Node("html")};
new Function(script)();

const nodes = byId.main.all();
for (const node of nodes)
  for (const [key, value] of Object.entries(node.attributes))
    if (/NaN|undefined|Infinity/.test(value)) throw new Error(`${node.tag} ${key}="${value}"`);
// Every heading sorts, every row can be picked, every chart zooms.
for (const node of nodes)
  for (const [event, acts] of Object.entries(node.listeners))
    for (const act of acts) act({target: {value: ""}, key: event === "keydown" ? "+" : "", clientX: 500, preventDefault() {}});
console.log("title", byId.title.textContent);
for (const node of nodes) {
  if (node.tag === "caption") console.log("table", node.textContent);
  if (node.tag === "section") console.log("section", node.attributes.id, node.querySelectorAll("svg").length, "charts", node.querySelectorAll("tr").length, "rows");
  if (node.tag === "span" && node.attributes["data-key"]) console.log("figure", node.attributes["data-key"], node.attributes["data-value"]);
}
