// The window's copy of the process table: a snapshot, then all changes since.
const { core, event } = window.__TAURI__;
const rows = new Map();
const show = () => {
  const lines = [...rows.values()].map((row) => {
    const line = document.createElement("li");
    line.textContent = `${row.assistant_id}: ${row.status} ${row.result ?? ""}`;
    return line;
  });
  document.getElementById("processes").replaceChildren(...lines);
};
event.listen("change", ({ payload }) => {
  if (payload.process) rows.set(payload.process.process.id, payload.process.process);
  if (payload.delta) document.getElementById("says").textContent += payload.delta.text;
  show();
});
event.listen("approval", async ({ payload }) => {
  const allow = window.confirm(`May ${payload.tool} be called with ${JSON.stringify(payload.arguments)}?`);
  await core.invoke("decide", { ask: payload.ask, allow });
});
document.getElementById("task").addEventListener("submit", async (submitted) => {
  submitted.preventDefault();
  const query = document.getElementById("text").value;
  await core.invoke("call", { tool: "spawn_assistant", arguments: { search: { text: query }, query } });
});
// Changes are told from the snapshot on that this call makes.
core.invoke("watch").then((processes) => {
  for (const row of processes) rows.set(row.id, row);
  show();
});
