// SPDX-License-Identifier: Apache-2.0
// A Worker for pages that are opened as files, for which browsers start none: its program runs in a hidden frame.
// The search asks for it by the name IFrameWorker.
"use strict";

class IFrameWorker extends EventTarget {
  onmessage = null;
  #frame = document.createElement("iframe");
  #loaded;

  constructor(program) {
    super();
    this.#frame.hidden = true;
    document.body.append(this.#frame);
    const scope = this.#frame.contentWindow;
    // a document that some browsers do not replace later
    scope.document.open();
    scope.document.write("<!doctype html><title>search</title><body></body>");
    scope.document.close();
    scope.postMessage = (data) => this.#receive(data);
    scope.importScripts = (...urls) =>
      urls.reduce((before, url) => before.then(() => this.#load(url)), Promise.resolve());
    this.#loaded = this.#load(program);
  }

  postMessage(data) {
    const scope = this.#frame.contentWindow;
    this.#loaded.then(() => scope.dispatchEvent(new scope.MessageEvent("message", { data: structuredClone(data) })));
  }

  terminate() {
    this.#frame.remove();
  }

  #receive(data) {
    const event = new MessageEvent("message", { data });
    this.dispatchEvent(event);
    this.onmessage?.(event);
  }

  #load(url) {
    const inside = this.#frame.contentDocument;
    return new Promise((resolve, reject) => {
      const script = inside.createElement("script");
      script.src = new URL(url, document.baseURI).href;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${script.src} can't be read`));
      inside.body.append(script);
    });
  }
}

if (location.protocol === "file:") {
  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
