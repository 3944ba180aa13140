"use strict";
(() => {
  const MARKS = 5000; // more than anyone steps through, and few enough to be drawn at once
  const box = document.querySelector(".search input");
  const told = document.querySelector(".search output");
  const unfold = document.querySelector(".search button");
  const contents = document.querySelector(".contents");
  const messages = [...document.querySelectorAll(".message")];
  const texts = new Map();
  const opened = new Set();
  let found = [];
  let here = -1;

  // What was said and done; the page's own words around it are not searched.
  const nodesOf = (message) => {
    const walker = document.createTreeWalker(message, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) => {
      if (node.nodeType === Node.TEXT_NODE) return NodeFilter.FILTER_ACCEPT;
      return node.matches("header, .label, .thinking > summary") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP;
    });
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    return nodes;
  };

  const textOf = (message) => {
    if (!texts.has(message)) texts.set(message, nodesOf(message).map((node) => node.data).join(""));
    return texts.get(message);
  };

  const patterns = (query) =>
    query.split(/\s+/u).filter(Boolean).map((word) => new RegExp(word.replace(/[\\^$.*+?()[\]{}|/]/gu, "\\$&"), "giu"));

  // Matches may begin in one text node and end in another: coloured code is cut into many.
  const rangesIn = (message, words) => {
    let length = 0;
    const nodes = nodesOf(message).map((node) => {
      const start = length;
      length += node.length;
      return { node, start };
    });
    const place = (offset, atEnd) => {
      let low = 0;
      let high = nodes.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (nodes[middle].start < offset || (!atEnd && nodes[middle].start === offset)) low = middle;
        else high = middle - 1;
      }
      return [nodes[low].node, offset - nodes[low].start];
    };
    return words
      .flatMap((word) => [...textOf(message).matchAll(word)])
      .sort((one, other) => one.index - other.index)
      .map((match) => {
        const range = new Range();
        range.setStart(...place(match.index, false));
        range.setEnd(...place(match.index + match[0].length, true));
        return range;
      });
  };

  const mark = (name, ranges) => {
    if (window.Highlight && CSS.highlights) CSS.highlights.set(name, new Highlight(...ranges));
  };

  const openAround = (node) => {
    const start = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
    for (let fold = start.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      if (!fold.open) {
        fold.open = true;
        opened.add(fold);
      }
    }
  };

  const search = () => {
    const words = patterns(box.value);
    const matching = messages.filter((message) => words.every((word) => textOf(message).search(word) >= 0));
    const shown = new Set(matching);
    for (const message of messages) message.hidden = !shown.has(message);
    for (const turn of document.querySelectorAll(".turn")) turn.hidden = !turn.querySelector(".message:not([hidden])");
    for (const entry of contents.querySelectorAll("li")) {
      entry.hidden = document.querySelector(entry.firstChild.hash).closest(".turn").hidden;
    }
    for (const fold of opened) fold.open = false;
    opened.clear();
    found = [];
    here = -1;
    for (const message of words.length ? matching : []) {
      if (found.length < MARKS) found.push(...rangesIn(message, words));
    }
    for (const range of found) openAround(range.startContainer);
    mark("found", found);
    mark("found-here", []);
    told.value = words.length ? `${matching.length} of ${messages.length}` : "";
  };

  const step = (by) => {
    if (!found.length) return;
    here = (here + by + found.length) % found.length;
    mark("found-here", [found[here]]);
    found[here].startContainer.parentElement.scrollIntoView({ block: "center" });
  };

  const goToTarget = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    if (target.closest("[hidden]")) {
      box.value = "";
      search();
    }
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView();
  };

  let waiting;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 120);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") {
      box.value = "";
      search();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== box && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      box.focus();
    }
  });

  unfold.addEventListener("click", () => {
    const open = unfold.textContent === "Unfold all";
    for (const fold of document.querySelectorAll("main details")) fold.open = open;
    opened.clear();
    unfold.textContent = open ? "Fold all" : "Unfold all";
  });

  document.querySelector("main").addEventListener("click", async (event) => {
    const link = event.target.closest("a.link");
    if (!link || !navigator.clipboard) return;
    try {
      await navigator.clipboard.writeText(link.href);
    } catch {
      return; // the link itself still works
    }
    const label = link.textContent;
    if (label === "copied") return;
    link.textContent = "copied";
    setTimeout(() => {
      link.textContent = label;
    }, 1200);
  });

  const entries = new Map([...contents.querySelectorAll("a")].map((entry) => [entry.hash.slice(1), entry]));
  const seen = new IntersectionObserver(
    (changes) => {
      for (const { isIntersecting, target } of changes) {
        const entry = entries.get(target.querySelector(".message")?.id);
        if (!entry || !isIntersecting) continue;
        contents.querySelector("[aria-current]")?.removeAttribute("aria-current");
        entry.setAttribute("aria-current", "true");
      }
    },
    { rootMargin: "-15% 0% -80% 0%" },
  );
  for (const turn of document.querySelectorAll(".turn")) seen.observe(turn);

  const narrow = matchMedia("(max-width: 63.99rem)");
  contents.open = !narrow.matches;
  contents.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest("a")) contents.open = false;
  });
  window.addEventListener("hashchange", goToTarget);
  document.documentElement.classList.add("scripted");
  goToTarget();
})();
