// Runs a page's script on a document of its own, and prints what it drew: each
// section, and each figure with its value.
//
//     node draw.js PAGE
//
// The document has what the page and d3 use of one, and no way to parse HTML.
"use strict";
const fs = require("fs");
const page = fs.readFileSync(process.argv[2], "utf8");
const data = /<script type="application\/json" id="report">([^]*?)<\/script>/.exec(page)[1];
const d3 = /<script id="library">\n([^]*?)<\/script>/.exec(page)[1];
const script = /<script>\n([^]*?)<\/script>/.exec(page)[1];

class Node {
  constructor(tag) { this.tag = tag; this.children = []; this.attributes = {}; this.listeners = {}; this.own = ""; }
  append(...nodes) { for (const node of nodes) this.insertBefore(node instanceof Node ? node : String(node), null); }
  appendChild(node) { return this.insertBefore(node, null); }
  insertBefore(node, next) {
    if (node instanceof Node) node.parentNode = this;
    this.children.splice(next ? this.children.indexOf(next) : this.children.length, 0, node);
    return node;
  }
  replaceChildren(...nodes) { this.children = []; this.append(...nodes); }
  get ownerDocument() { return document; }
  getAttribute(key) { return key in this.attributes ? this.attributes[key] : null; }
  setAttribute(key, value) { this.attributes[key] = String(value); }
  addEventListener(event, act) { (this.listeners[event] ||= []).push(act); }
  set textContent(text) { this.children = []; this.own = text; }
  get textContent() { return this.own + this.children.map(child => child instanceof Node ? child.textContent : child).join(""); }
  all() { return this.children.filter(child => child instanceof Node).flatMap(child => [child, ...child.all()]); }
  // Tags, and classes, of which d3's have one each.
  querySelectorAll(name) { return this.all().filter(node => name[0] === "." ? node.attributes.class === name.slice(1) : node.tag === name); }
  querySelector(name) { return this.querySelectorAll(name)[0] || null; }
  getBoundingClientRect() { return {left: 0, top: 0, width: 1100}; }
}
const byId = {};
for (const id of ["report", "main", "nav", "title", "words"]) byId[id] = new Node(id);
byId.report.textContent = data;
global.document = {getElementById: id => byId[id], createElement: tag => new Node(tag), createElementNS: (space, tag) => new Node(tag), title: "", documentElement: new Node("html")};
new Function(d3)();
new Function(script)();

const nodes = byId.main.all();
// Every attribute and text has values, and every chart has axes with ticks that say something.
function check() {
  for (const node of byId.main.all())
    for (const [key, value] of [...Object.entries(node.attributes), ...(node.tag === "text" ? [["text", node.textContent]] : [])])
      if (/NaN|undefined|Infinity/.test(value)) throw new Error(`${node.tag} ${key}="${value}"`);
  for (const text of byId.main.querySelectorAll("text"))
    if (/\de[+-]?\d/.test(text.textContent) && text.parentNode.attributes.class === "tick") throw new Error(`a tick says ${text.textContent}`);
  for (const svg of byId.main.querySelectorAll("svg")) {
    const axes = svg.querySelectorAll("g").filter(group => group.querySelector(".domain"));
    const named = axes.map(axis => axis.querySelectorAll(".tick").filter(tick => tick.textContent).length);
    const label = svg.attributes["aria-label"];
    if (axes.length < (svg.attributes.class === "lanes" ? 1 : 2)) throw new Error(`${label}: axes are missing`);
    if (named.some(ticks => ticks < 2 || ticks > 30)) throw new Error(`${label}: axes of ${named.join(" and ")} ticks`);
  }
}
check();
// Every heading sorts, every row can be picked, every chart zooms.
for (const node of nodes)
  for (const [event, acts] of Object.entries(node.listeners))
    for (const act of acts) act.call(node, {target: {value: ""}, key: event === "keydown" ? "+" : "", clientX: 500, preventDefault() {}});
check();
console.log("title", byId.title.textContent);
for (const node of nodes) {
  if (node.tag === "caption") console.log("table", node.textContent);
  if (node.tag === "section") console.log("section", node.attributes.id, node.querySelectorAll("svg").length, "charts", node.querySelectorAll("tr").length, "rows");
  if (node.tag === "span" && node.attributes["data-key"]) console.log("figure", node.attributes["data-key"], node.attributes["data-value"]);
}
