// Browsers start no worker from a file. Where the site is opened from a folder, its search runs in
// a hidden frame instead, which answers as a worker would.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "Search";
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = async (...sources) => {
        for (const source of sources) await IFrameWorker.load(inside.document, source);
      };
      this.ready = IFrameWorker.load(inside.document, url).then(() => inside);
    }
    static load(page, source) {
      return new Promise((done, failed) => {
        const script = page.createElement("script");
        script.src = source;
        script.onload = done;
        script.onerror = failed;
        page.body.append(script);
      });
    }
    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }
  };
  window.Worker = window.IFrameWorker;
}
