import { render } from "preact";
import { App } from "./app";
import { restoreTheme } from "./theme";
import "../node_modules/uplot/dist/uPlot.min.css";
import "./app.css";

restoreTheme();
const root = document.getElementById("app");
if (root !== null) {
  render(<App />, root);
}
