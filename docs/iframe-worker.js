"use strict";
// The theme searches in a worker, which browsers refuse to pages read as files; there a hidden frame does its work.
// The plugin `offline` of mkdocs.yml would load such a script from the network, unless one has "iframe-worker" in its name.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.inside = new Promise((ready, failed) => {
        frame.addEventListener("load", () => {
          const inside = frame.contentWindow, script = inside.document.createElement("script");
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          script.addEventListener("load", () => ready(inside));
          script.addEventListener("error", failed);
          script.src = url;
          inside.document.head.append(script);
        }, { once: true });
      });
      document.documentElement.append(frame);
    }

    postMessage(data) {
      this.inside.then((inside) => inside.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
