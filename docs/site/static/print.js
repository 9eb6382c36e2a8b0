// SPDX-License-Identifier: Apache-2.0
// Paper is white, so what is printed has the colours of the light theme.
let shown;
addEventListener("beforeprint", () => {
  shown = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
});
addEventListener("afterprint", () => {
  document.documentElement.dataset.theme = shown;
});
